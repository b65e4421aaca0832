"""Learners over learners: experts with settings of their own, mixed by weights that follow the best of them.

`MixedLearner` chooses, starts and retires its experts itself; `weights` is the mixture alone, for any scores.
"""

from gossamer.mixture.learner import MixedLearner
from gossamer.mixture.settings import Setting

__all__ = ["MixedLearner", "Setting"]
