"""Online learning with kernels: learners that predict, then learn, one example at a time, in bounded memory."""

from gossamer import bounds, budgets, kernels, losses, rules, store
from gossamer._version import __version__
from gossamer.additive import AdditiveClassifier, AdditiveRegressor
from gossamer.classic import (
    AdatronClassifier,
    ALMAClassifier,
    KernelPerceptron,
    PAClassifier,
    PARegressor,
    ProjectionClassifier,
    ProjectionRegressor,
    ROMMAClassifier,
)
from gossamer.estimators import (
    NORMAClassifier,
    NORMADetector,
    NORMARegressor,
    SILKClassifier,
    SILKDetector,
    SILKRegressor,
    SVMDClassifier,
    SVMDDetector,
    SVMDRegressor,
)
from gossamer.learner import Learner
from gossamer.merging import merge
from gossamer.multiclass import Taxonomy, taxonomy
from gossamer.pipelines import OnlinePipeline, pipeline
from gossamer.scaling import OnlineScaler
from gossamer.store import load
from gossamer.store import loads as from_bytes

__all__ = [
    "ALMAClassifier",
    "AdatronClassifier",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "KernelPerceptron",
    "Learner",
    "NORMAClassifier",
    "NORMADetector",
    "NORMARegressor",
    "OnlinePipeline",
    "OnlineScaler",
    "PAClassifier",
    "PARegressor",
    "ProjectionClassifier",
    "ProjectionRegressor",
    "ROMMAClassifier",
    "SILKClassifier",
    "SILKDetector",
    "SILKRegressor",
    "SVMDClassifier",
    "SVMDDetector",
    "SVMDRegressor",
    "Taxonomy",
    "__version__",
    "bounds",
    "budgets",
    "from_bytes",
    "kernels",
    "load",
    "losses",
    "merge",
    "pipeline",
    "rules",
    "store",
    "taxonomy",
]
