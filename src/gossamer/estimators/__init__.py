"""The scikit-learn estimators: four parts with names, defaults and the fit-predict interface.

All have ``fit`` (start anew, ``n_passes`` passes), ``partial_fit`` (go on), ``predict_learn`` (predict each row, then
learn it: the scores that an online evaluation counts) and ``predict``. A learned attribute ends in an underscore:
``support_vectors_``, ``dual_coef_``, ``intercept_``, ``n_seen_``, ``n_updates_``, ``norm_``, ``n_features_in_``.
"""

from gossamer.estimators.additive import AdditiveClassifier, AdditiveRegressor
from gossamer.estimators.auto import AutoClassifier, AutoRegressor
from gossamer.estimators.classic import (
    AdatronClassifier,
    ALMAClassifier,
    KernelPerceptron,
    PAClassifier,
    PARegressor,
    ProjectionClassifier,
    ProjectionRegressor,
    ROMMAClassifier,
)
from gossamer.estimators.combine import merge
from gossamer.estimators.generic import OnlineClassifier, OnlineDetector, OnlineRegressor
from gossamer.estimators.mixing import Mixture
from gossamer.estimators.newton import NewtonClassifier, NewtonRegressor
from gossamer.estimators.papers import (
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
from gossamer.estimators.per_target import PerTarget
from gossamer.estimators.pipelines import OnlinePipeline, pipeline
from gossamer.estimators.scaler import OnlineScaler

__all__ = [
    "ALMAClassifier",
    "AdatronClassifier",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "AutoClassifier",
    "AutoRegressor",
    "KernelPerceptron",
    "Mixture",
    "NORMAClassifier",
    "NORMADetector",
    "NORMARegressor",
    "NewtonClassifier",
    "NewtonRegressor",
    "OnlineClassifier",
    "OnlineDetector",
    "OnlinePipeline",
    "OnlineRegressor",
    "OnlineScaler",
    "PAClassifier",
    "PARegressor",
    "PerTarget",
    "ProjectionClassifier",
    "ProjectionRegressor",
    "ROMMAClassifier",
    "SILKClassifier",
    "SILKDetector",
    "SILKRegressor",
    "SVMDClassifier",
    "SVMDDetector",
    "SVMDRegressor",
    "merge",
    "pipeline",
]
