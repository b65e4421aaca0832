"""river's side of the contest: linear models, random features, trees and forests that adapt; half-space trees."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from entries import CLASSES, LINEAR, NUMBERS, SUPERVISED, WIDTHS, Entry, Model, Setup
from river import anomaly, compose, feature_extraction, forest, linear_model, optim, preprocessing, tree


class River(Model):
    """A river model; rows are made dicts before the time is taken."""

    def __init__(self, setup: Setup, model: Any) -> None:
        self.setup, self.model = setup, model
        self.names = [f"x{j}" for j in range(setup.sample.shape[1])]
        self.first = setup.classes[0] if setup.task in CLASSES else 0.0

    def rows(self, X: np.ndarray, y: np.ndarray) -> Any:
        dicts = [dict(zip(self.names, x, strict=True)) for x in X.tolist()]
        targets = y > 0 if self.setup.task == "binary" else y  # its two classes are False and True
        return list(zip(dicts, targets.tolist(), strict=True))

    def step(self, rows: Any) -> np.ndarray | list[Any]:
        model, guess = self.model, []
        if self.setup.task == "novelty":
            for x, _ in rows:
                guess.append(model.score_one(x))
                model.learn_one(x)
            return guess
        for x, y in rows:
            guess.append(model.predict_one(x))
            model.learn_one(x, y)
        if self.setup.task == "binary":
            return np.where(np.array(guess, dtype=bool), self.setup.classes[1], self.setup.classes[0])
        return [self.first if value is None else value for value in guess]

    def size(self) -> int | None:
        forests = (forest.ARFClassifier, forest.ARFRegressor)
        trees = self.model if isinstance(self.model, forests) else [self.model]
        nodes = [getattr(one, "n_nodes", None) for one in trees]
        return None if None in nodes else sum(nodes)


def _linear(setup: Setup, step: float, reg: float, fall: bool) -> Any:
    """The linear model of the task."""
    rate: Any = optim.schedulers.InverseScaling(step, 0.25) if fall else step
    optimizer = optim.SGD(rate)
    if setup.task == "binary":
        return linear_model.LogisticRegression(optimizer, l2=reg)
    if setup.task == "multiclass":
        return linear_model.SoftmaxRegression(optimizer, l2=reg)
    loss = optim.losses.Quantile(setup.level) if setup.task == "quantile" else optim.losses.Squared()
    return linear_model.LinearRegression(optimizer, loss, l2=reg)


def linear(setup: Setup, *, step: float, reg: float, fall: bool) -> River:
    """Scaled, as its documentation does."""
    return River(setup, preprocessing.StandardScaler() | _linear(setup, step, reg, fall))


def fourier(setup: Setup, *, size: int, width: float, step: float, reg: float, fall: bool, linear: float) -> River:
    """Random Fourier features, or they and the row itself, and the linear model."""
    features: Any = feature_extraction.RBFSampler(gamma=width * setup.scale, n_components=size, seed=0)
    if linear:
        factor = math.sqrt(linear * setup.scale)
        features += compose.FuncTransformer(lambda x: {name: factor * value for name, value in x.items()})
    return River(setup, features | _linear(setup, step, reg, fall))


def hoeffding(setup: Setup, *, grace: float, delta: float, leaf: str) -> River:
    """One tree that replaces branches when they err more than they did."""
    if setup.task in CLASSES:
        leaf = {"mean": "mc", "model": "nba"}[leaf]
        return River(setup, tree.HoeffdingAdaptiveTreeClassifier(int(grace), delta=delta, leaf_prediction=leaf, seed=0))
    leaf = {"mean": "mean", "model": "adaptive"}[leaf]
    return River(setup, tree.HoeffdingAdaptiveTreeRegressor(int(grace), delta=delta, leaf_prediction=leaf, seed=0))


def arf(setup: Setup, *, grace: float, delta: float, share: Any, leaf: str) -> River:
    """The adaptive random forest with its ten trees."""
    if setup.task in CLASSES:
        leaf = {"mean": "mc", "model": "nba"}[leaf]
        kind: Any = forest.ARFClassifier
    else:
        leaf = {"mean": "mean", "model": "adaptive"}[leaf]
        kind = forest.ARFRegressor
    return River(setup, kind(grace_period=int(grace), delta=delta, max_features=share, leaf_prediction=leaf, seed=0))


def half_spaces(setup: Setup, *, trees: float, height: int, window: float) -> River:
    """Half-space trees, scaled into [0, 1] as its documentation does."""
    detector = anomaly.HalfSpaceTrees(n_trees=int(trees), height=height, window_size=int(window), seed=0)
    return River(setup, preprocessing.MinMaxScaler() | detector)


def one_class(setup: Setup, *, size: int, width: float, step: float, nu: float) -> River:
    """Its one-class SVM on random features."""
    sampler = feature_extraction.RBFSampler(gamma=width * setup.scale, n_components=size, seed=0)
    return River(setup, compose.Pipeline(sampler, anomaly.OneClassSVM(nu=nu, optimizer=optim.SGD(step))))


_STEPS: dict[str, Any] = {"step": (0.001, 1.0), "reg": (1e-8, 1e-3), "fall": [False, True]}
_STEP: dict[str, Any] = {"step": 0.01, "reg": 0.0, "fall": False}
_TREES: dict[str, Any] = {"grace": (20.0, 500.0), "delta": (1e-7, 0.1), "leaf": ["model", "mean"]}
_TREE: dict[str, Any] = {"grace": 200.0, "delta": 1e-7, "leaf": "model"}

RIVER = [
    Entry("linear", "river", SUPERVISED, linear, _STEPS, _STEP, slow="wide"),
    Entry(
        "RBFSampler(100) + linear", "river", ("binary", *NUMBERS), partial(fourier, size=100),
        {"width": WIDTHS, **_STEPS, "linear": LINEAR}, {"width": 1.0, **_STEP, "linear": 0.0}, slow="always",
        made_of="components",
    ),
    Entry(
        "Hoeffding adaptive tree", "river", (*CLASSES, "regression"), hoeffding, _TREES, _TREE,
        slow="always", made_of="nodes",
    ),
    Entry(
        "adaptive random forest", "river", (*CLASSES, "regression"), arf,
        {**_TREES, "share": ["sqrt", "log2", None]}, {**_TREE, "grace": 50.0, "delta": 0.01, "share": "sqrt"},
        slow="always", made_of="nodes",
    ),
    Entry(
        "half-space trees", "river", ("novelty",), half_spaces,
        {"trees": (10.0, 50.0), "height": [6, 8, 10], "window": (50.0, 500.0)},
        {"trees": 10.0, "height": 8, "window": 250.0}, made_of="trees",
    ),
    Entry(
        "RBFSampler(100) + one-class SVM", "river", ("novelty",), partial(one_class, size=100),
        {"width": WIDTHS, "step": (0.001, 1.0), "nu": [0.05, 0.1, 0.2]}, {"width": 1.0, "step": 0.01, "nu": 0.1},
        made_of="components",
    ),
]  # fmt: skip
