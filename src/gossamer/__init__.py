"""Online learning with kernels: learners that predict, then learn, one example at a time, in bounded memory."""

from gossamer import budgets, kernels, losses, rules
from gossamer._version import __version__
from gossamer.estimators import (
    NORMAClassifier,
    NORMADetector,
    NORMARegressor,
    SILKClassifier,
    SILKDetector,
    SILKRegressor,
)
from gossamer.learner import Learner

__all__ = [
    "Learner",
    "NORMAClassifier",
    "NORMADetector",
    "NORMARegressor",
    "SILKClassifier",
    "SILKDetector",
    "SILKRegressor",
    "__version__",
    "budgets",
    "kernels",
    "losses",
    "rules",
]
