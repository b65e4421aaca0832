"""What an estimator keeps beside its learner to say how sure it is: a `_core.Certainty`, fed with prequential scores.

The numbers and formulas are those of `gossamer.certainty`. Here are the places where scores meet their targets, and the
conversions from what the core writes to what the public verbs return.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Floats
from gossamer.certainty.calibration import AT, STEEPEST_FALL
from gossamer.certainty.links import Link, SoftmaxLink, check_link
from gossamer.certainty.sketch import BINS, LARGEST_GAIN
from gossamer.estimators.labels import probabilities

#: The numbers of a curve, and those of a state before the alphas of a classifier.
KNOTS, FIRST = len(AT), len(Link._fields) + len(SoftmaxLink._fields) + 2 * len(AT)


def shares(owner: object, coverage: Any) -> tuple[list[float], bool]:
    """The shares of misses of one coverage or of several, and whether it was one.

    >>> shares("model", [0.5, 0.75])
    ([0.5, 0.25], False)
    """
    one = np.ndim(coverage) == 0
    rule = "numbers between 0 and 1" if not one else "a number between 0 and 1"
    wanted = [coverage] if one else list(coverage)
    plain = all(isinstance(value, float | np.floating) and 0 < value < 1 for value in wanted)
    if not wanted or not plain:
        raise _checks.wrong(owner, "coverage", rule, coverage)
    return [round(1.0 - float(value), 12) for value in wanted], one


def is_own(sure: Any) -> bool:
    """Whether probabilities are those of the model itself, whose scores are their logarithms."""
    return bool(sure.task == "log_odds")


def learn_classes(
    sure: Any, scores: Floats, codes: Floats, weights: Floats | None, pairs: Floats, missed: Sequence[float] | None,
    fades: Floats | None = None,
) -> tuple[Floats, Floats] | None:  # fmt: skip
    """Learn scores of two classes, or one for each; ``pairs`` are those of two in a batch that brought a third.

    ``fades``: what the time before each row leaves of what was learned. With ``missed``, returns the probability of
    each class before each row, and the thresholds of these shares.
    """
    if scores.ndim == 1:
        out = None if missed is None else np.empty((len(scores), 1 + len(missed)))
        sure.learn_two(scores, codes, weights, list(missed or ()), out, fades)
        if out is None:
            return None
        return chances(sure, scores) if is_own(sure) else np.column_stack([1.0 - out[:, 0], out[:, 0]]), out[:, 1:]
    split = max(0, len(pairs) - 1)
    parts = slice(split), slice(split, None)
    cut, faded = (
        [None if values is None else np.ascontiguousarray(values[part]) for part in parts]
        for values in (weights, fades)
    )
    first = np.ascontiguousarray(pairs[:split])
    early = learn_classes(sure, first, codes[:split], cut[0], pairs[:0], missed, faded[0])
    if len(pairs):
        sure.widen()
    width = scores.shape[1]
    out = None if missed is None else np.empty((len(scores) - split, width + len(missed)))
    sure.learn_many(np.ascontiguousarray(scores[split:]), codes[split:], cut[1], list(missed or ()), out, faded[1])
    if out is None or early is None:
        return None
    levels = np.vstack([early[1], out[:, width:]])
    if is_own(sure):
        return chances(sure, scores), levels
    p = np.vstack([np.pad(early[0], ((0, 0), (0, width - 2))), out[:, :width]]) if width > 1 else out[:, :width]
    return p, levels


def learn_plain(
    sure: Any, values: Floats, weights: Floats | None, missed: Sequence[float] | None, fades: Floats | None = None
) -> tuple[Floats, Floats] | None:
    """Learn residuals of a regressor or scores of a detector; returns p-values of the latter, and thresholds."""
    novelty = sure.task == "novelty"
    out = None if missed is None else np.empty((len(values), novelty + len(missed)))
    learn = sure.learn_novelty if novelty else sure.learn_real
    learn(np.ascontiguousarray(values), weights, list(missed or ()), out, fades)
    return None if out is None else (out[:, 0] if novelty else out[:, :0], out[:, int(novelty) :])


def chances(sure: Any, scores: Floats) -> Floats:
    """The probability of each class, a column for each code, of scores as a learner gives them."""
    if is_own(sure):
        return probabilities(np.where(np.isneginf(scores).all(axis=-1, keepdims=True), 0.0, scores), 2)
    if scores.ndim == 2:
        out = np.empty(scores.shape)
        sure.probabilities_many(np.ascontiguousarray(scores), out)
        return out
    second = np.empty(len(scores))
    sure.probabilities_two(np.ascontiguousarray(scores), second)
    return np.column_stack([1.0 - second, second])


def restore(owner: Any, fresh: Any, state: Any) -> Any:
    """A new `_core.Certainty` with the numbers of a file, which are validated."""
    numbers = isinstance(state, np.ndarray) and state.dtype == np.float64 and state.shape == fresh.state().shape
    if not numbers or not np.isfinite(state).all():
        raise _checks.wrong(owner, "_certainty", f"{len(fresh.state())} finite numbers", state)
    values = state.tolist()
    if fresh.task == "classification":
        check_link(owner, "_certainty", Link(*values[: len(Link._fields)]))
        check_link(owner, "_certainty", SoftmaxLink(*values[len(Link._fields) :][: len(SoftmaxLink._fields)]))
        shifts, curvatures = np.split(state[FIRST - 2 * KNOTS : FIRST], 2)
        falls = -np.diff(shifts) > STEEPEST_FALL * np.diff(AT) * (1 + 1e-9)
        if falls.any() or not (curvatures > 0).all():
            raise _checks.wrong(owner, "_certainty", "a curve that rises, of positive curvatures", state)
    octave, gain, total = values[-BINS - 3 : -BINS]
    sound = octave == math.floor(octave) and abs(octave) < 1100 and 1 <= gain <= 2 * LARGEST_GAIN
    alphas = state[-BINS - 8 : -BINS - 3]
    if not sound or total < 0 or state[-BINS:].min() < 0 or alphas.min() < -1 or alphas.max() > 2:
        raise _checks.wrong(owner, "_certainty", "a sketch of weights and shares of misses", state)
    fresh.restore(state)
    return fresh


def intervals(made: Floats, radii: Floats, one: bool) -> Floats:
    """Predictions with a radius for each coverage, as (rows, 2), or (rows, coverages, 2)."""
    ends = np.stack([made[:, None] - radii, made[:, None] + radii], axis=2)
    return ends[:, 0] if one else ends


def sets(p: Floats, thresholds: Floats, one: bool) -> Array:
    """The classes that are not strange, of probabilities with a threshold for each coverage, as (rows, classes), or
    (rows, classes, coverages)."""
    found = 1.0 - p[:, :, None] <= thresholds[:, None, :]
    return found[:, :, 0] if one else found


def thresholds(sure: Any, missed: Sequence[float], rows: int) -> Floats:
    """The thresholds of these shares of misses now, (rows, shares); infinite if nothing is known."""
    levels = [np.inf if sure is None else sure.threshold(share) for share in missed]
    return np.broadcast_to(np.array(levels), (rows, len(levels)))
