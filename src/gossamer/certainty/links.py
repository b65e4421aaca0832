"""Calibrated links: scores become probabilities through one or two numbers, learned on the scores themselves.

A prequential score was made before its label was used, so it is an honest example for calibration (Platt 2000), and no
rows need be kept aside. A score is first divided by the root mean square of the scores up to and with itself, so that
its units do not matter and an outlier stays bounded. The loss of all rows so far, those before weighing less by a
factor `forgetting` at each row, plus a parabola around the prior, is minimized by one Newton step a row:

    H <- forgetting * H + (1 - forgetting) * H_0
    theta <- theta - (H + h_safe x x')^-1 gradient
    H <- H + p (1 - p) x x'

with x = (z, 1) and theta = (slope, offset). h_safe is the curvature of Jaakkola and Jordan's parabola, which lies above
the loss: no step overshoots. As forgetting goes back to the prior, separable scores do not send the slope to infinity.

Links are values: `learn` returns another one. The compiled twins (core/certainty/link.hpp) change in place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats

#: The defaults of both links: see core/certainty/link.hpp.
FORGETTING = 0.998
PRIOR_SLOPE = 2.0
PRIOR_PRECISION = 1.0
OFFSET_PRECISION = 1.0
LEAST_SLOPE, LARGEST_SLOPE = 1e-3, 100.0
LARGEST_SCORE = 1e150


def sigmoid(u: float) -> float:
    """1 / (1 + exp(-u)), without overflow."""
    if u >= 0:
        return 1.0 / (1.0 + math.exp(-u))
    e = math.exp(u)
    return e / (1.0 + e)


def safe_curvature(u: float, p: float) -> float:
    """The curvature of the parabola that touches log(1 + exp(-u)) and lies above it; p is the sigmoid of u."""
    return 0.25 if abs(u) < 1e-4 else (p - 0.5) / u


def _clip(low: float, value: float, high: float) -> float:
    return min(high, max(low, value))


def _check_score(owner: object, f: Any) -> float:
    if not isinstance(f, float | int | np.floating | np.integer) or not math.isfinite(f):
        raise _checks.wrong(owner, "f", "a finite score", f)
    return _clip(-LARGEST_SCORE, float(f), LARGEST_SCORE)


class Link(NamedTuple):
    """Two classes: p = sigmoid(slope * f / scale + offset), for scores f of any units.

    Attributes
    ----------
    forgetting : rows before weigh less by this factor at each row; .998 is about five hundred rows.
    slope, offset : the two learned numbers; the slope stays positive, so that probabilities are in the order of scores.
    slopes, mixed, offsets : the curvature of the loss so far, a symmetric 2 x 2 matrix.
    total, squares : the sums of weights and of squared scores; scale^2 = squares / total.

    >>> link = Link()
    >>> rng = np.random.default_rng(0)
    >>> scores = 1000 * rng.normal(size=5000)
    >>> y = rng.random(5000) < 1 / (1 + np.exp(-3 * scores / 1000))
    >>> p, link = link.learn_all(scores, y)
    >>> round(link.probability(500.0), 2), round(float(1 / (1 + np.exp(-1.5))), 2)
    (0.79, 0.82)
    """

    forgetting: float = FORGETTING
    slope: float = PRIOR_SLOPE
    offset: float = 0.0
    slopes: float = PRIOR_PRECISION
    mixed: float = 0.0
    offsets: float = OFFSET_PRECISION
    total: float = 0.0
    squares: float = 0.0

    def standardize(self, f: float, weight: float = 1.0) -> float:
        """A score in units of the scores up to and with itself."""
        squares = self.forgetting * self.squares + weight * f * f
        return f / math.sqrt(squares / (self.forgetting * self.total + weight)) if squares > 0 else 0.0

    def log_odds(self, f: float) -> float:
        """The log-odds of the second class for a score."""
        return self.slope * self.standardize(_check_score(self, f)) + self.offset

    def probability(self, f: float) -> float:
        """The probability of the second class for a score."""
        return sigmoid(self.log_odds(f))

    def learn(self, f: float, second: bool, weight: float = 1.0) -> Link:
        """The link after a score and whether its row was of the second class."""
        f = _check_score(self, f)
        _check_weight(self, weight)
        if weight == 0:
            return self
        keep, fresh, z = self.forgetting, 1.0 - self.forgetting, self.standardize(f, weight)
        u = self.slope * z + self.offset
        p = sigmoid(u)
        slopes = keep * self.slopes + fresh * PRIOR_PRECISION
        mixed = keep * self.mixed
        offsets = keep * self.offsets + fresh * OFFSET_PRECISION
        error = weight * (p - (1.0 if second else 0.0))
        along_slope = error * z + fresh * PRIOR_PRECISION * (self.slope - PRIOR_SLOPE)
        along_offset = error + fresh * OFFSET_PRECISION * self.offset
        safe = weight * safe_curvature(u, p)
        a, b, c = slopes + safe * z * z, mixed + safe * z, offsets + safe
        step = (c * along_slope - b * along_offset) / (a * c - b * b)
        slope = _clip(LEAST_SLOPE, self.slope - step, LARGEST_SLOPE)
        offset = self.offset - (along_offset + b * (slope - self.slope)) / c  # the best one for this slope
        curvature = weight * p * (1.0 - p)
        return Link(
            keep, slope, offset, slopes + curvature * z * z, mixed + curvature * z, offsets + curvature,
            keep * self.total + weight, keep * self.squares + weight * f * f,
        )  # fmt: skip

    def fade(self, factor: float) -> Link:
        """The link after time has passed: what was learned counts less by a factor (`gossamer.clock`), and slope and
        offset go back to the prior by as much."""
        if factor == 1.0:
            return self
        fresh = 1.0 - factor
        slopes = factor * self.slopes + fresh * PRIOR_PRECISION
        mixed = factor * self.mixed
        offsets = factor * self.offsets + fresh * OFFSET_PRECISION
        along_slope = fresh * PRIOR_PRECISION * (self.slope - PRIOR_SLOPE)
        along_offset = fresh * OFFSET_PRECISION * self.offset
        step = (offsets * along_slope - mixed * along_offset) / (slopes * offsets - mixed * mixed)
        slope = _clip(LEAST_SLOPE, self.slope - step, LARGEST_SLOPE)
        offset = self.offset - (along_offset + mixed * (slope - self.slope)) / offsets
        sums = factor * self.total, factor * self.squares
        return Link(self.forgetting, slope, offset, slopes, mixed, offsets, *sums)

    def learn_all(self, scores: Any, second: Any, weights: Any = None, fades: Any = None) -> tuple[Floats, Link]:
        """`learn` for every row, compiled: the probabilities before each, and the link after the last. ``fades``: what
        the time before each row leaves."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        p, y = np.empty(len(scores)), np.ascontiguousarray(second, dtype=np.float64)
        return p, Link(*_core.learn_link(list(self), scores, y, _as_floats(weights), p, _as_floats(fades)))

    def probabilities(self, scores: Floats) -> Floats:
        """`probability` of every score, compiled."""
        p = np.empty(len(scores))
        _core.link_probability(list(self), np.ascontiguousarray(scores, dtype=np.float64), p)
        return p

    def widened(self) -> SoftmaxLink:
        """The link for a score per class, when a third class comes: f = g_1 - g_0, g_1 = -g_0."""
        return SoftmaxLink(
            self.forgetting, max(LEAST_SLOPE, self.slope / 2), 4 * self.slopes, self.total, self.squares / 4
        )


class SoftmaxLink(NamedTuple):
    """Many classes: p = softmax(slope * f / scale), scale the deviation of the scores of a row over its classes.

    A score of -inf is that of a class that was not known then: its probability is 0, and a row of such a class teaches
    nothing. Attributes as in `Link`.

    >>> p, link = SoftmaxLink().learn_all([[3.0, 1.0, -np.inf], [0.0, 2.0, 1.0]], [0, 1])
    >>> p.round(2).tolist()
    [[0.98, 0.02, 0.0], [0.01, 0.89, 0.1]]
    """

    forgetting: float = FORGETTING
    slope: float = PRIOR_SLOPE
    slopes: float = PRIOR_PRECISION
    total: float = 0.0
    squares: float = 0.0

    def _look(self, f: Any) -> tuple[list[int], list[float], float]:
        """The classes with a score, the scores, and their mean square around their mean."""
        known = [k for k, score in enumerate(f) if score != -math.inf]
        scores = [_check_score(self, f[k]) for k in known]
        mean = sum(scores) / len(known) if known else 0.0
        return known, scores, sum((score - mean) ** 2 for score in scores) / len(known) if known else 0.0

    def _unit(self, square: float, weight: float = 1.0) -> float:
        squares = self.forgetting * self.squares + weight * square
        return 1.0 / math.sqrt(squares / (self.forgetting * self.total + weight)) if squares > 0 else 0.0

    def probability(self, f: Any) -> Floats:
        """The probability of each class for the scores of a row; all 0 if no class is known."""
        known, scores, square = self._look(f)
        p = np.zeros(len(f))
        factor = self.slope * self._unit(square)
        shares = [math.exp(factor * (score - max(scores))) for score in scores]
        p[known] = np.array(shares) / sum(shares) if known else 0.0
        return p

    def learn(self, f: Any, label: int, weight: float = 1.0) -> SoftmaxLink:
        """The link after the scores of a row and the number of its class."""
        known, scores, square = self._look(f)
        _check_weight(self, weight)
        if weight == 0 or label not in known or len(known) < 2:
            return self
        keep, fresh, scale = self.forgetting, 1.0 - self.forgetting, self._unit(square, weight)
        own = scores.pop(known.index(label))
        top = max(scores)
        away = [scale * (score - top) for score in scores]
        shares = [math.exp(self.slope * z) for z in away]
        mass = sum(shares)
        mean = sum(share * z for share, z in zip(shares, away, strict=True)) / mass
        mean_square = sum(share * z * z for share, z in zip(shares, away, strict=True)) / mass
        variance = max(0.0, mean_square - mean * mean)
        z = scale * (own - top) - mean
        u = self.slope * (z + mean) - math.log(mass)
        q = sigmoid(u)
        slopes = keep * self.slopes + fresh * PRIOR_PRECISION
        along = weight * (q - 1.0) * z + fresh * PRIOR_PRECISION * (self.slope - PRIOR_SLOPE)
        spread = (1.0 - q) * variance
        step = along / (slopes + weight * (safe_curvature(u, q) * z * z + spread))
        slopes += weight * (q * (1.0 - q) * z * z + spread)
        slope = _clip(LEAST_SLOPE, self.slope - step, LARGEST_SLOPE)
        return SoftmaxLink(keep, slope, slopes, keep * self.total + weight, keep * self.squares + weight * square)

    def fade(self, factor: float) -> SoftmaxLink:
        """The link after time has passed, as that of `Link`."""
        if factor == 1.0:
            return self
        fresh = 1.0 - factor
        slopes = factor * self.slopes + fresh * PRIOR_PRECISION
        step = fresh * PRIOR_PRECISION * (self.slope - PRIOR_SLOPE) / slopes
        slope = _clip(LEAST_SLOPE, self.slope - step, LARGEST_SLOPE)
        return SoftmaxLink(self.forgetting, slope, slopes, factor * self.total, factor * self.squares)

    def learn_all(self, scores: Any, labels: Any, weights: Any = None, fades: Any = None) -> tuple[Floats, SoftmaxLink]:
        """`learn` for every row, compiled: the probabilities before each, and the link after the last. ``fades``: what
        the time before each row leaves."""
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        p, y = np.empty(scores.shape), np.ascontiguousarray(labels, dtype=np.float64)
        given = (scores, y, _as_floats(weights), p, _as_floats(fades))
        return p, SoftmaxLink(*_core.learn_softmax_link(list(self), *given))

    def probabilities(self, scores: Floats) -> Floats:
        """`probability` of every row, compiled."""
        p = np.empty(scores.shape)
        _core.softmax_link_probability(list(self), np.ascontiguousarray(scores, dtype=np.float64), p)
        return p


def _as_floats(weights: Any) -> Floats | None:
    return None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)


def _check_weight(owner: object, weight: float) -> None:
    if not (weight >= 0 and math.isfinite(weight)):
        raise _checks.wrong(owner, "weight", "a number in [0, inf)", weight)


def check_link(owner: object, parameter: str, link: Any) -> None:
    """Validate a link of a file: finite numbers in the ranges that learning keeps."""
    kind = isinstance(link, Link | SoftmaxLink)
    if not kind or not all(type(value) is float and math.isfinite(value) for value in link):
        raise _checks.wrong(owner, parameter, "a link of finite numbers", link)
    if not (0 < link.forgetting <= 1 and LEAST_SLOPE <= link.slope <= LARGEST_SLOPE):
        raise _checks.wrong(owner, parameter, "a link with a forgetting in (0, 1] and a slope in [0.001, 100]", link)
    positive = link.slopes > 0 and link.total >= 0 and link.squares >= 0
    if isinstance(link, Link):
        positive = positive and link.offsets > 0 and link.slopes * link.offsets > link.mixed**2
    if not positive:
        raise _checks.wrong(owner, parameter, "a link of positive curvature and no negative sum", link)
