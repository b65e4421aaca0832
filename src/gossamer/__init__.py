"""Online learning with kernels."""

from gossamer._version import __version__
from gossamer.learner import Learner

__all__ = ["Learner", "__version__"]
