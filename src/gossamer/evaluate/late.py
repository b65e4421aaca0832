"""Delayed labels: predict a row, then learn an older row, without the cost of a whole call for each.

The rows of a block are checked and their labels encoded together; what is left for each row is to scale it, to score
it and to learn the older row: straight in the learner for classifiers, by a call of the estimator for the others. The
numbers are those of one call after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats
from gossamer.estimators import OnlineClassifier, OnlinePipeline, OnlineRegressor, OnlineScaler, targets as _targets
from gossamer.estimators.base import Online
from gossamer.estimators.scaler import scaled
from gossamer.learner import Learner


class Steps(NamedTuple):
    """The scalers of a model, and the estimator at its end."""

    scalers: list[OnlineScaler]
    last: Any


def find_steps(model: Any) -> Steps | None:
    """The steps of a model that has learned rows; None if it has other steps, or none learned yet."""
    steps = [step for _, step in model.steps] if isinstance(model, OnlinePipeline) else [model]
    *scalers, last = steps
    if any(getattr(step, name, None) is not None for step in steps for name in ("half_life", "class_weight", "skip")):
        return None
    if not all(type(step) is OnlineScaler and step.is_linear and "mean_" in step.__dict__ for step in scalers):
        return None
    if isinstance(last, Learner):
        return Steps(scalers, last) if last.steps else None
    return Steps(scalers, last) if isinstance(last, Online) and "learner_" in last.__dict__ else None


def known_rows(steps: Steps, labels: Any, start: int) -> int:
    """The end of the rows from ``start`` on whose classes the model knows: those bring no new class."""
    if labels is None or not isinstance(steps.last, OnlineClassifier):
        return 1 << 62
    unknown = ~np.isin(labels[start:], steps.last.classes_)
    return start + (int(np.argmax(unknown)) if unknown.any() else len(unknown))


def predict_learn(steps: Steps, X: Any, due: Any, due_y: Any) -> tuple[Floats, Floats]:
    """Score row i of X, then learn row i of ``due``; its scores, and the levels of a detector."""
    last = steps.last
    scalers = [_Scaler(scaler) for scaler in steps.scalers]
    learner = last if isinstance(last, Learner) else last.learner_
    targets, moments = due_y, None
    if isinstance(last, OnlineClassifier):
        codes = np.array([last._order.index(label) for label in np.asarray(due_y).tolist()], dtype=np.float64)
        targets = codes if learner.loss.target == "label" else 2.0 * codes - 1.0
    elif isinstance(last, OnlineRegressor):
        targets = _checks.vector(last, "y", due_y, len(due))
        moments = last._moments()
        if moments is not None:
            _targets.check_finite(last, _targets.follow_all(moments, targets, None)[-1], targets)
    many, scores, levels = learner.loss.target == "label", [], []
    sure = None if isinstance(last, Learner) else last._sure()
    try:
        for i in range(len(X)):
            x, late = X[i : i + 1], due[i : i + 1]
            for scaler in scalers:
                x, late = scaler.step(x, late)
            score = learner.score(x)[0] if many else learner.score_one(x[0])
            target = None if targets is None else float(targets[i])
            units = None if moments is None else _targets.units(moments)
            if moments is not None and units is not None:
                score = score * units[1] + units[0]
                target, moments = _targets.follow(moments, float(targets[i]))
            scores.append(score)
            if targets is None:
                levels.append(learner.level)
            if many:
                before = learner.learn(late, targets[i : i + 1])
                if sure is not None:
                    sure.learn_many(np.ascontiguousarray(before), targets[i : i + 1], None, [], None)
                continue
            level = learner.level if targets is None else 0.0
            before = learner.learn_one(late[0], target) - level
            if sure is not None:
                if units is not None:
                    before, target = before * units[1] + units[0], float(targets[i])
                sure.learn_one(before, 0.0 if target is None else target, 1.0)
    finally:
        for scaler in scalers:
            scaler.commit()
        if moments is not None:
            last._keep(learner, None, _target_moments=moments)
    return np.array(scores, dtype=np.float64), np.array(levels)


class _Scaler:
    """The statistics of an `OnlineScaler`, one row at a time, given back at the end."""

    def __init__(self, scaler: OnlineScaler) -> None:
        self.scaler = scaler
        self.mean, self.squares = scaler.mean_.copy(), scaler.squares_.copy()
        self.weight, self.seen, self.keep = scaler.weight_, scaler.n_seen_, 1.0 - float(scaler.forget)

    def step(self, x: Any, late: Any) -> tuple[Any, Any]:
        """Scale x by the statistics so far; then learn ``late``, and scale it with itself included."""
        with_mean, with_std = self.scaler.with_mean, self.scaler.with_std
        x = scaled(x, self.mean, self.squares * (1.0 / self.weight), with_mean, with_std)
        out = np.empty_like(late)
        self.weight = _core.scale_rows(late, out, self.mean, self.squares, self.weight, self.keep, with_mean, with_std)
        self.seen += 1
        return x, out

    def commit(self) -> None:
        """Copy the statistics back to the scaler."""
        learned = {"mean_": self.mean, "squares_": self.squares, "weight_": self.weight, "n_seen_": self.seen}
        self.scaler.__dict__.update(learned)
