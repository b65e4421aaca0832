"""Averaging in ``fit``: its result is the mean of the hypotheses of the second half of its last pass.

The last hypothesis of a pass is noisy: it leans towards the rows that came last. The mean of the later hypotheses does
not (suffix averaging: Rakhlin, Shamir, Sridharan 2012). Where the budget has dropped points meanwhile, the part of the
mean on the dropped points is projected on the remaining points, so that a fitted model has no more points than any
other; no state of the averaging remains, and the online methods continue from the mean.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer._engine.state import State
from gossamer._typing import Floats
from gossamer.estimators.projection import project
from gossamer.learner import Learner

#: Dropped points have at most this many values together (128 MB of float64): wide rows are averaged over fewer rounds.
MOST_VALUES = 2**24


def first_averaged(rows: int, features: int) -> int:
    """The rows of a pass that are learned before the mean begins: half of them, or more if rows are wide."""
    return max(rows // 2 + 1, rows - max(MOST_VALUES // max(features, 1), 64))


def averaging(learner: Learner, twin: Learner) -> Learner:
    """A new learner of the same parts that keeps the mean continues from this state."""
    twin.kernel = learner.kernel
    twin.restore(learner.state())
    return twin


def replace_by_mean(learner: Learner, plain: Learner, rounds: int, levels: Floats | None) -> Learner:
    """The plain learner, new and of the same parts, becomes the mean of the last hypothesis and of those that met the
    last ``rounds`` rows, for which alone the learner has averaged; ``levels``: the rho that these rows met."""
    state = _state(learner)
    count = rounds + 1
    coefs = (state.sums + state.coefs) / count
    points, dropped = state.points, state.dropped_points
    if len(dropped) and len(points):
        coefs += project(learner.kernel, points, dropped, state.dropped / count)
    level = state.level if levels is None else float((levels.sum() + state.level) / count)
    zeros = {name: np.zeros_like(getattr(state, name)) for name in ("summed", "entered", "trace")}
    mean = state.replace(
        **zeros, raw=coefs, scale=1.0, offset=(state.offset_sum + state.offset) / count, offset_sum=0.0,
        rounds_scale=0.0, dropped=np.zeros((len(coefs), 0)), dropped_points=dropped[:0], trace_scale=1.0, mix=0.0,
        inner=0.0, level=level,
    )  # fmt: skip
    plain.kernel = learner.kernel
    plain.restore(mean)
    if plain.track_norm or not plain.budget.drops:  # then the state has the norm, and it is not asked for again
        plain.restore(_state(plain).replace(norm2=max(0.0, _squared_norm(plain))))
    return plain


def hypothesis(learner: Learner) -> tuple[Any, Floats, float]:
    """The points, coefficients (a row per output) and offset of what a learner predicts with: its last hypothesis, or
    the mean of all if it keeps that."""
    if learner.average is None or not learner.steps:
        return learner.points, np.atleast_2d(learner.coefs), learner.offset
    state = _state(learner)
    points, coefs, offset = state.mean()
    if learner.budget.space:  # the sums are of weights: let a learner turn them to points
        parts = (learner.kernel, learner.loss, learner.rule, learner.budget)
        twin = Learner(*parts, average="sparse", half_life=learner.half_life)
        twin.restore(state.replace(raw=coefs, scale=1.0))
        return twin.points, np.atleast_2d(twin.coefs), offset
    return points, coefs, offset


def _squared_norm(learner: Learner) -> float:
    """||f||^2 = sum_i coefs_i f(x_i), without the matrix of all kernel values."""
    state, machine = _state(learner), learner._machine
    assert machine is not None
    coefs = state.coefs
    if learner.budget.space:  # weights of a Euclidean space
        labels = getattr(learner.loss, "label_kernel", None)
        return float(np.sum(coefs * (coefs if labels is None else np.array(labels) @ coefs)))
    if not len(state.points):
        return 0.0
    return float(np.sum(coefs * (machine.score(state.points, False) - state.offset).T))


def _state(learner: Learner) -> State:
    state = learner.state()
    assert state is not None
    return state
