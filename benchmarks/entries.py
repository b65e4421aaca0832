"""Who takes part in the contest: what an entry is, Gossamer's own, and the baselines that learn nothing to speak of.

A further learner is one line in `GOSSAMER` (or in a list of opponents_*.py).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import qmc

import gossamer
from gossamer.budgets import Budget, Merge, Nystrom, Oldest, Project, Smallest
from gossamer.kernels import Gaussian, Kernel, Linear, Polynomial
from gossamer.losses import Pinball, Squared
from gossamer.rules import Newton

CLASSES = ("binary", "multiclass")
NUMBERS = ("regression", "quantile")
SUPERVISED = (*CLASSES, *NUMBERS)
Setting = dict[str, Any]


@dataclass(frozen=True)
class Effort:
    """How many settings every entry may try (in all of its space, in half of it around the best, in a quarter), how
    many rows of a stream are scored (None: all), and how many for entries that take a millisecond or more for one, also
    if a row is wide."""

    settings: tuple[int, ...]
    rows: int | None
    slow: int
    slow_wide: int


FULL = Effort((12, 6, 6), 15_000, 1500, 200)
SHORT = Effort((3, 1), 3000, 300, 60)
TRIAL = Effort((2, 1), None, 150, 150)


@dataclass(frozen=True)
class Setup:
    """What is known before the first row of a stream."""

    task: str
    sample: np.ndarray  # rows from before
    scale: float  # 1 / their median squared distance
    classes: np.ndarray
    level: float  # of the quantile
    batch: int  # rows, for those that learn in batches


class Model:
    """Predicts rows, then learns them. A prediction is a label, a number or, for novelty, how strange the row is."""

    def rows(self, X: np.ndarray, y: np.ndarray) -> Any:
        """The rows as the library wants them; not part of the time."""
        return X, y

    def step(self, rows: Any) -> np.ndarray | Sequence[Any]:
        """The prediction for each row before it, or the call's rows, were learned."""
        raise NotImplementedError

    def size(self) -> int | None:
        """Support points, components, nodes: whatever the model is made of."""
        return None


@dataclass(frozen=True)
class Entry:
    """A learner with the space its settings come from.

    A space has a pair (low, high) for a number drawn on a logarithmic scale, a list for a choice; ``usual`` are the
    settings to try first. One that is ``slow``, "always" or where a row is "wide", gets fewer rows.
    """

    name: str
    library: str
    tasks: tuple[str, ...]
    make: Callable[..., Model]
    space: Mapping[str, Any] = field(default_factory=dict)
    usual: Setting = field(default_factory=dict)
    slow: str = "never"
    made_of: str = ""  # what `Model.size` counts
    wide_tuning: int | None = None  # the rows it chooses settings on where a row is wide, if training takes minutes
    raw: bool = False  # whether it gets rows as they come: a scale that moves blurs thresholds of trees; Auto scales
    like: str = ""  # the entry whose settings it takes: on as few rows as they are chosen on, the two hardly differ

    def limit(self, effort: Effort, wide: bool) -> int | None:
        """How many rows of each stream it is given, None for all."""
        if self.slow == "always" or (wide and self.slow == "wide"):
            return effort.slow_wide if wide else effort.slow
        return None

    def tuning_limit(self, effort: Effort, wide: bool) -> int | None:
        """How many rows of each stream it chooses its settings on, None for all."""
        limit = self.limit(effort, wide)
        return max(100, limit // 4) if limit is not None else self.wide_tuning if wide else None

    def settings(self, count: int, best: Setting | None = None, side: float = 1.0) -> list[Setting]:
        """So many, the same in every run: the usual one and points of a Latin hypercube in all the space; or points in
        a part of it, so long on each side, with the best so far in its middle."""
        first = [self.usual] if best is None else []
        if not self.space:
            return first
        cube = qmc.LatinHypercube(len(self.space), seed=np.random.default_rng(round(1 / side)))
        middle = np.array([_place(self.space[name], value) for name, value in (best or {}).items()] or 0.5)
        corner = np.clip(middle - side / 2, 0, 1 - side)
        return first + [_setting(self.space, corner + side * point) for point in cube.random(count - len(first))]


def _setting(space: Mapping[str, Any], point: np.ndarray) -> Setting:
    setting: Setting = {}
    for (name, choice), place in zip(space.items(), point, strict=True):
        if isinstance(choice, list):
            setting[name] = choice[min(int(place * len(choice)), len(choice) - 1)]
        else:
            low, high = choice
            setting[name] = float(f"{low * (high / low) ** place:.2g}")
    return setting


def _place(choice: Any, value: Any) -> float:
    """Where a value stands in the unit interval; what is outside, at its end."""
    if isinstance(choice, list):
        return (choice.index(value) + 0.5) / len(choice)
    low, high = choice
    return float(np.clip(np.log(max(value, low) / low) / np.log(high / low), 0, 1))


# ----------------------------------------------------------------------------------------------------------- Gossamer


class Ours(Model):
    """An estimator of Gossamer: the rows of a call are predicted and learned one after the other, exactly."""

    def __init__(self, setup: Setup, estimator: Any) -> None:
        self.setup, self.estimator, self.started = setup, estimator, False

    def step(self, rows: Any) -> np.ndarray:
        X, y = rows
        if self.started:
            return self._learn(X, y)
        self.started = True  # the first row is predicted by nobody; with it, the classes are said, as for scikit-learn
        if self.setup.task in CLASSES:
            self.estimator.partial_fit(X[:1], y[:1], classes=self.setup.classes)
            first = self.setup.classes[:1]
        else:
            first = self._guess(self.estimator.predict_learn(X[:1], y[:1]))
        return np.concatenate([first, self._learn(X[1:], y[1:])]) if len(y) > 1 else first

    def _learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._guess(self.estimator.predict_learn(X, y))

    def _guess(self, scores: np.ndarray) -> np.ndarray:
        if self.setup.task == "multiclass":
            return self.setup.classes[np.argmax(scores, axis=1)]
        if self.setup.task == "binary":
            return np.where(scores >= 0, self.setup.classes[1], self.setup.classes[0])
        return -scores if self.setup.task == "novelty" else scores

    def size(self) -> int:
        return len(self.estimator.support_vectors_)


class OneRow(Ours):
    """The same with a call of the engine for each row."""

    def _learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if self.setup.task in CLASSES:
            y = np.searchsorted(self.setup.classes, y)
        if self.setup.task == "binary":
            y = 2.0 * y - 1.0
        learn = self.estimator.learner_.learn_one
        return self._guess(np.array([learn(x, target) for x, target in zip(X, y.tolist(), strict=True)]))


def kernel(setup: Setup, width: float, linear: float) -> Kernel:
    """A Gaussian, and so much of a linear kernel: what is straight in the data need not be made of bumps."""
    gaussian = Gaussian(width * setup.scale)
    return gaussian + linear * setup.scale * Linear() if linear else gaussian


def silk(
    setup: Setup, *, width: float, linear: float = 0.0, kind: type[Ours] = Ours, loss: str = "hinge", **options: Any
) -> Ours:
    """Implicit updates."""
    if setup.task == "novelty":
        level = {"margin": 1.0} if options["nu"] is None else {}
        return kind(setup, gossamer.SILKDetector(kernel(setup, width, linear), **options, **level))
    make = gossamer.SILKClassifier if setup.task in CLASSES else gossamer.SILKRegressor
    return kind(setup, make(kernel(setup, width, linear), **_task(setup, loss), **options))


def norma(setup: Setup, *, width: float, linear: float = 0.0, loss: str = "hinge", **options: Any) -> Ours:
    """Gradient steps."""
    if setup.task == "novelty":
        return Ours(setup, gossamer.NORMADetector(kernel(setup, width, linear), **options))
    make = gossamer.NORMAClassifier if setup.task in CLASSES else gossamer.NORMARegressor
    return Ours(setup, make(kernel(setup, width, linear), **_task(setup, loss), **options))


def newton(
    setup: Setup, *, width: float, noise: float, forgetting: float, budget: Budget, linear: float = 0.0,
    loss: str = "squared_hinge",
) -> Ours:  # fmt: skip
    """Second-order steps; the constant beside a linear part is their intercept. `NewtonRegressor`, but for the scaling
    of targets: they are scaled for everybody already."""
    made = Gaussian(width * setup.scale)
    made = made + Polynomial(1, linear * setup.scale, 1.0) if linear else made
    if setup.task in CLASSES:
        options: dict[str, Any] = {"noise": noise, "forgetting": forgetting, "budget": budget}
        return Ours(setup, gossamer.NewtonClassifier(made, loss=loss, **options))
    target = Pinball(setup.level) if setup.task == "quantile" else Squared()
    rule = Newton(noise, forgetting, settling=1.0)
    return Ours(setup, gossamer.OnlineRegressor(made, target, rule, budget, scale_target=False))


class Untuned(Ours):
    """A mixture: what it is made of are the points of all experts that are awake."""

    def size(self) -> int:
        learners = {id(learner): learner for _, _, learner in self.estimator.learner_.experts()}  # some share one
        return sum(len(learner.births) for learner in learners.values())


def auto(setup: Setup, **options: Any) -> Untuned:
    """The estimators without settings, as they come."""
    if setup.task in CLASSES:
        return Untuned(setup, gossamer.AutoClassifier(**options))
    quantile = setup.level if setup.task == "quantile" else None
    return Untuned(setup, gossamer.AutoRegressor(quantile=quantile, **options))


def _task(setup: Setup, loss: str) -> dict[str, Any]:
    """The loss, for many classes one of two, and an intercept where there can be one, as the opponents have. Targets
    are scaled for everybody already."""
    if setup.task == "multiclass":
        return {"loss": loss if loss == "hinge" else "logistic"}
    if setup.task == "binary":
        return {"loss": loss, "fit_intercept": True}
    kind = {"loss": "pinball", "quantile": setup.level} if setup.task == "quantile" else {"loss": "squared"}
    return {**kind, "fit_intercept": True, "scale_target": False}


#: Widths, in units of one over the median squared distance, and the share of a linear kernel beside a Gaussian's 1, in
#: the same: alike for every kernel and feature map of the contest.
WIDTHS, LINEAR = (0.3, 15.0), [0.0, 0.3, 3.0]
_SHARED: dict[str, Any] = {"width": WIDTHS, "reg": (1e-6, 0.03), "schedule": ["constant", "inverse_sqrt"]}
_USUAL: dict[str, Any] = {"width": 1.0, "reg": 1e-4, "schedule": "constant"}
_USUAL_TASK: dict[str, Any] = {**_USUAL, "loss": "hinge", "linear": 0.0}
_LOSSES = ["hinge", "squared_hinge", "logistic"]


def implicit(name: str, budget: Budget, kind: type[Ours] = Ours) -> list[Entry]:
    """SILK with a budget: for classes and numbers, and as a detector (without nu, its margin is the paper's 1)."""
    make = partial(silk, kind=kind, budget=budget)
    linear = [0.0] if isinstance(budget, Merge) else LINEAR  # points of a sum of kernels cannot be merged
    space = {**_SHARED, "C": (0.03, 30.0), "loss": _LOSSES, "linear": linear}
    novelty = {**_SHARED, "C": (2e-4, 2.0), "nu": [None, 0.05, 0.2]}
    return [
        Entry(name, "Gossamer", SUPERVISED, make, space, {**_USUAL_TASK, "C": 1.0}, made_of="points"),
        Entry(name, "Gossamer", ("novelty",), make, novelty, {**_USUAL, "C": 0.02, "nu": None}, made_of="points"),
    ]


def explicit(name: str, budget: Budget) -> list[Entry]:
    """NORMA with a budget: the same."""
    make = partial(norma, budget=budget)
    space = {**_SHARED, "rate": (0.03, 3.0), "loss": _LOSSES, "linear": LINEAR}
    novelty = {**_SHARED, "rate": (6e-4, 0.3), "nu": [0.02, 0.05, 0.2]}
    return [
        Entry(name, "Gossamer", SUPERVISED, make, space, {**_USUAL_TASK, "rate": 0.5}, made_of="points"),
        Entry(name, "Gossamer", ("novelty",), make, novelty, {**_USUAL, "rate": 0.1, "nu": 0.05}, made_of="points"),
    ]


def second_order(name: str, budget: Budget) -> Entry:
    """Newton with a budget, for classes and numbers."""
    space = {
        "width": WIDTHS, "noise": (0.01, 3.0), "forgetting": [1.0, 0.99999, 0.9999, 0.9997, 0.999, 0.997, 0.99, 0.97],
        "loss": ["squared_hinge", "logistic"], "linear": [0.0] if isinstance(budget, Merge) else LINEAR,
    }  # fmt: skip
    usual = {"width": 1.0, "noise": 0.1, "forgetting": 1.0, "loss": "squared_hinge", "linear": 0.0}
    return Entry(name, "Gossamer", SUPERVISED, partial(newton, budget=budget), space, usual, made_of="points")


GOSSAMER = [
    Entry("Auto", "Gossamer", SUPERVISED, auto, made_of="points of experts", raw=True),
    Entry("Auto, 100 points", "Gossamer", SUPERVISED, partial(auto, budget=100), made_of="points of experts", raw=True),
    second_order("Newton, Project(100)", Project(100)),
    second_order("Newton, Project(256)", Project(256)),
    second_order("Newton, Project(500)", Project(500)),
    second_order("Newton, Merge(100)", Merge(100)),
    second_order("Newton, Merge(500)", Merge(500)),
    *implicit("SILK, Project(100)", Project(100)),
    *implicit("SILK, Project(500)", Project(500)),
    *implicit("SILK, Project(100), a row a call", Project(100), OneRow)[:1],  # the engine's row has no detector's level
    *implicit("SILK, Merge(100)", Merge(100)),
    *implicit("SILK, Merge(500)", Merge(500)),
    *implicit("SILK(100)", Smallest(100)),
    *implicit("SILK(500)", Smallest(500)),
    *implicit("SILK, Nystrom(500)", Nystrom(500)),
    *explicit("NORMA(100)", Oldest(100)),
    *explicit("NORMA(500)", Oldest(500)),
]


# ---------------------------------------------------------------------------------------------------------- baselines


class LabelBefore(Model):
    """As the last row."""

    def __init__(self, setup: Setup) -> None:
        self.last = setup.classes[0]

    def step(self, rows: Any) -> np.ndarray:
        _, y = rows
        guess, self.last = np.concatenate([[self.last], y[:-1]]), y[-1]
        return guess


class Usual(Model):
    """As most rows so far: the most frequent label, the mean or the quantile."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.counts, self.sum, self.seen = np.zeros(len(setup.classes), int), 0.0, [0.0]

    def step(self, rows: Any) -> list[Any]:
        return [self._guess_then_learn(y) for y in rows[1]]

    def _guess_then_learn(self, y: Any) -> Any:
        if self.setup.task in CLASSES:
            guess = self.setup.classes[int(np.argmax(self.counts))]
            self.counts += self.setup.classes == y
        elif self.setup.task == "regression":
            guess = self.sum / len(self.seen)
            self.sum += y
            self.seen.append(y)
        else:
            guess = self.seen[min(int(self.setup.level * len(self.seen)), len(self.seen) - 1)]
            insort(self.seen, y)
        return guess


class RowBefore(Model):
    """A row is as strange as it is far from the last one."""

    def __init__(self, setup: Setup) -> None:
        self.last: np.ndarray | None = None

    def step(self, rows: Any) -> np.ndarray:
        X, _ = rows
        before = np.vstack([X[:1] if self.last is None else self.last, X[:-1]])
        self.last = X[-1:]
        return np.linalg.norm(X - before, axis=1)


BASELINES = [
    Entry("the label before", "baseline", CLASSES, LabelBefore),
    Entry("the usual so far", "baseline", SUPERVISED, Usual),
    Entry("distance from the row before", "baseline", ("novelty",), RowBefore),
]
