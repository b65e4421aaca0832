"""Labels of any type as inner numbers, and scores for two classes as scores for each."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax

from gossamer import _checks
from gossamer._typing import Array, Floats

#: What of a state changes when a score for two classes becomes a score for each: f = g_1 - g_0, g_1 = -g_0.
HALVED = ("raw", "trace", "summed", "dropped")


def check_discrete(owner: object, labels: Array) -> None:
    """Fractions most of which come once are no labels; fractions that come back may be."""
    different = len(unique(owner, "y", labels)[0])
    if labels.dtype.kind == "f" and 2 * different > len(labels) and (labels != np.floor(labels)).any():
        rule = "labels, not continuous numbers (Unknown label type: continuous)"
        raise _checks.wrong(owner, "y", rule, f"{different} different numbers in {len(labels)} rows")


def unique(owner: object, parameter: str, labels: Array) -> tuple[Array, Array, Array]:
    """The different labels in order, where each comes first, and their numbers; an error where they have no order."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise _checks.wrong(owner, parameter, "labels without NaN or infinity", labels[~np.isfinite(labels)][0])
    try:
        if labels.ndim == 1:
            return np.unique(labels, return_index=True, return_inverse=True)
    except TypeError:
        pass
    raise _checks.wrong(owner, parameter, "a vector of labels of one kind", labels.tolist())


def known(labels: Array, order: list[Any]) -> Floats | None:
    """The inner numbers of labels if all are among a few known ones, several times faster than by sorting."""
    if labels.dtype.kind == "O" or len(order) > 8:
        return None
    codes = np.zeros(len(labels))
    missing = len(labels)
    for number, label in enumerate(order):
        same = labels == label
        missing -= int(np.count_nonzero(same))
        if number:
            codes += number * same
    return None if missing else codes


def widened(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a score for two classes as a state of a score for each, with the same difference."""
    if not state:
        return state
    halves = {name: np.vstack([-0.5 * state[name], 0.5 * state[name]]) for name in HALVED if len(state[name])}
    return {**state, **halves, "norm2": 0.5 * state["norm2"], "inner": 0.5 * state["inner"], "known": 2}


def per_class(scores: Floats, codes: Floats, known: int, columns: int) -> Floats:
    """Scores for two classes as scores for each; -inf for those not yet seen."""
    out = np.full((len(scores), columns), -np.inf)
    first, second = np.arange(len(codes)) > 0, np.cumsum(codes > 0) - (codes > 0) > 0
    out[first | (known > 0), 0] = -0.5 * scores[first | (known > 0)]
    out[second | (known > 1), 1] = 0.5 * scores[second | (known > 1)]
    return out


def probabilities(scores: Floats, classes: int) -> Floats:
    """The probabilities of the classes, of scores with the logistic loss: one for two classes, or one for each."""
    if scores.ndim == 2:
        # in C order, in which every row is summed alike, whatever rows are around it
        return np.asarray(softmax(np.ascontiguousarray(scores), axis=1))
    if classes == 1:
        return np.ones((len(scores), 1))
    return np.column_stack([expit(-scores), expit(scores)])
