"""scikit-learn's side: random and Nystroem features with stochastic gradients; batch machines, retrained."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from entries import CLASSES, LINEAR, NUMBERS, SUPERVISED, WIDTHS, Entry, Model, Setup
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.svm import SVC, SVR, OneClassSVM


class Features(Model):
    """A feature map and a linear model that learns by stochastic gradients, a row or a batch in a call.

    A batch is as large as everything before it, from 10 rows up to the size that is set, so that the first is no loss.
    """

    def __init__(
        self, setup: Setup, *, sampler: str | None, size: int, batches: bool, step: float, schedule: str, average: bool,
        reg: float = 0.0, loss: str = "hinge", width: float = 1.0, linear: float = 0.0, nu: float = 0.05,
    ) -> None:  # fmt: skip
        self.setup, self.sampler, self.seen = setup, None, 0
        self.beside = math.sqrt(linear * setup.scale)  # the factor of the row itself, beside its features
        self.most = setup.batch if batches else 1
        gamma = width * setup.scale
        if sampler == "RBFSampler":
            self.sampler = RBFSampler(gamma=gamma, n_components=size, random_state=0).fit(setup.sample[:1])
        elif sampler == "Nystroem":
            size = min(size, len(setup.sample))
            self.sampler = Nystroem(gamma=gamma, n_components=size, random_state=0).fit(setup.sample)
        options = {"learning_rate": schedule, "eta0": step, "average": average, "random_state": 0}
        if setup.task in CLASSES:
            self.model: Any = SGDClassifier(loss, alpha=reg, **options)
        elif setup.task == "novelty":
            self.model = SGDOneClassSVM(nu, **options)
        else:
            kind = "squared_error" if setup.task == "regression" else "epsilon_insensitive"
            self.model = SGDRegressor(kind, alpha=reg, epsilon=0.0, **options)

    def step(self, rows: Any) -> np.ndarray:
        X, y = rows
        first, guesses = 0, []
        while first < len(y):
            part = slice(first, first + min(self.most, max(10, self.seen)))
            guesses.append(self._batch(X[part], y[part]))
            first = part.stop
        return np.concatenate(guesses)

    def _batch(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        task, model = self.setup.task, self.model
        Z = X if self.sampler is None else self.sampler.transform(X)
        if self.beside:
            Z = np.hstack([Z, self.beside * X])
        guess = self._predict(Z)
        if task in CLASSES:
            model.partial_fit(Z, y, classes=None if self.seen else self.setup.classes)
        elif task == "novelty":
            model.partial_fit(Z)
        elif task == "quantile":  # |residual| weighted by its side is the pinball loss
            model.partial_fit(Z, y, sample_weight=np.where(y > guess, self.setup.level, 1 - self.setup.level))
        else:
            model.partial_fit(Z, y)
        self.seen += len(y)
        return guess

    def _predict(self, Z: np.ndarray) -> np.ndarray:
        if not self.seen:  # nothing to predict with
            return np.full(len(Z), self.setup.classes[0] if self.setup.task in CLASSES else 0.0)
        return -self.model.decision_function(Z) if self.setup.task == "novelty" else self.model.predict(Z)

    def size(self) -> int:
        return int(np.asarray(self.model.coef_).shape[-1])


_STEPS: dict[str, Any] = {"step": (0.003, 3.0), "schedule": ["constant", "invscaling"], "average": [False, True]}


def features(sampler: str | None, size: int, batches: bool) -> list[Entry]:
    """A feature map (or none) of a size, with a batch or a row in a call: for classes, and for numbers."""
    name = "linear SGD" if sampler is None else f"{sampler}({size}) + SGD"
    name = f"{name}, {'batches' if batches else 'a row a call'}"
    make = partial(Features, sampler=sampler, size=size, batches=batches)
    shared, first = {**_STEPS, "reg": (1e-7, 1e-3)}, {"average": False, "reg": 1e-4}  # first, scikit-learn's defaults
    if sampler is not None:
        shared, first = {"width": WIDTHS, **shared, "linear": LINEAR}, {"width": 1.0, **first, "linear": 0.0}
    more = {"schedule": ["optimal", "constant", "invscaling"], "loss": ["hinge", "log_loss"]}
    usual = {**first, "step": 0.01, "schedule": "optimal", "loss": "hinge"}
    slow = "never" if batches else "always"
    return [
        Entry(name, "scikit-learn", CLASSES, make, {**shared, **more}, usual, slow, "components"),
        Entry(name, "scikit-learn", NUMBERS, make, shared, {**first, "step": 0.01, "schedule": "invscaling"}, slow,
              "components"),
    ]  # fmt: skip


def one_class(sampler: str, size: int) -> Entry:
    """The same for novelty."""
    name = f"{sampler}({size}) + SGDOneClassSVM, batches"
    make = partial(Features, sampler=sampler, size=size, batches=True)
    space = {"width": WIDTHS, **_STEPS, "schedule": ["optimal", "constant", "invscaling"], "nu": [0.05, 0.1, 0.2]}
    usual = {"width": 1.0, "step": 0.01, "schedule": "optimal", "average": False, "nu": 0.05}
    return Entry(name, "scikit-learn", ("novelty",), make, space, usual, made_of="components")


class Retrained(Model):
    """A batch machine, trained again on the last rows whenever half as many have come as it was trained on."""

    def __init__(self, setup: Setup, machine: Any, most: int) -> None:
        self.setup, self.model, self.most = setup, machine, most
        self.X, self.y = np.empty((0, setup.sample.shape[1])), np.empty(0)
        self.trained, self.fresh = 0, 0

    def step(self, rows: Any) -> np.ndarray:
        X, y = rows
        guess = []
        for first in range(0, len(y), 50):
            part = slice(first, first + 50)
            guess.append(self._predict(X[part]))
            self.X = np.vstack([self.X, X[part]])[-self.most :]
            self.y = np.concatenate([self.y, y[part]])[-self.most :]
            self.fresh += len(y[part])
            if self.fresh >= max(50, self.trained // 2):
                self._train()
        return np.concatenate(guess)

    def _predict(self, X: np.ndarray) -> np.ndarray:
        if not self.trained:
            return np.full(len(X), self.setup.classes[0] if self.setup.task in CLASSES else 0.0)
        return -self.model.decision_function(X) if self.setup.task == "novelty" else self.model.predict(X)

    def _train(self) -> None:
        if self.setup.task in CLASSES and len(np.unique(self.y)) < 2:
            return
        self.model.fit(self.X, None if self.setup.task == "novelty" else self.y)
        self.trained, self.fresh = len(self.X), 0

    def size(self) -> int | None:
        return len(self.model.support_) if hasattr(self.model, "support_") else None


def machine(setup: Setup, *, width: float, C: float = 1.0, nu: float = 0.05, most: int = 4000) -> Retrained:
    """SVC, SVR or the one-class SVM."""
    gamma = width * setup.scale
    if setup.task in CLASSES:
        return Retrained(setup, SVC(C=C, gamma=gamma, cache_size=500), most)
    if setup.task == "novelty":
        return Retrained(setup, OneClassSVM(gamma=gamma, nu=nu), most)
    return Retrained(setup, SVR(C=C, gamma=gamma, cache_size=500), most)


def boosted(setup: Setup, *, rounds: float, step: float, leaves: int, most: int) -> Retrained:
    """Gradient boosting, for classes, means and quantiles."""
    options = {
        "max_iter": int(rounds), "learning_rate": step, "max_leaf_nodes": leaves, "early_stopping": False,
        "random_state": 0,
    }  # fmt: skip
    if setup.task in CLASSES:
        return Retrained(setup, HistGradientBoostingClassifier(**options), most)
    if setup.task == "quantile":
        options |= {"loss": "quantile", "quantile": setup.level}
    return Retrained(setup, HistGradientBoostingRegressor(**options), most)


def boosting(name: str, most: int, like: str = "") -> Entry:
    """What most people would do instead: gradient boosting, trained again now and then. First, its defaults."""
    space = {"rounds": (20.0, 200.0), "step": (0.02, 0.3), "leaves": [5, 15, 31]}
    usual = {"rounds": 100.0, "step": 0.1, "leaves": 31}
    make = partial(boosted, most=most)
    return Entry(name, "batch", SUPERVISED, make, space, usual, wide_tuning=400, raw=True, like=like)


_BOOSTED = "HistGradientBoosting, retrained on 4,000 rows"


SKLEARN = [
    *features("RBFSampler", 100, batches=True),
    *features("RBFSampler", 500, batches=True),
    *features("RBFSampler", 100, batches=False),
    *features("Nystroem", 100, batches=True),
    *features("Nystroem", 500, batches=True),
    *features("Nystroem", 100, batches=False),
    *features(None, 0, batches=True),
    one_class("RBFSampler", 100),
    one_class("RBFSampler", 500),
    one_class("Nystroem", 100),
    one_class("Nystroem", 500),
    Entry(
        "SVM, retrained", "batch", (*CLASSES, "regression"), machine, {"width": WIDTHS, "C": (0.1, 30.0)},
        {"width": 1.0, "C": 1.0}, made_of="points",
    ),
    boosting(_BOOSTED, 4000),
    boosting("HistGradientBoosting, retrained on all rows", 10**9, like=_BOOSTED),
    Entry(
        "one-class SVM, retrained", "batch", ("novelty",), machine, {"width": WIDTHS, "nu": [0.05, 0.1, 0.2, 0.5]},
        {"width": 1.0, "nu": 0.05}, made_of="points",
    ),
]  # fmt: skip
