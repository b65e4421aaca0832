"""The probabilities of a classifier: a link, its mean, and a curve over their log-odds that takes what one slope cannot
bend.

Of two classes the link is quick, about 125 rows. Beside it goes the mean of its slopes and offsets, of about 2,000
rows: the mean of quick estimates is nearly as exact as a slow one where nothing changes (Polyak and Juditsky 1992). The
log-odds are those of both, u = u_link + .55 (u_mean - u_link), so that they follow a change and are steady without.

The curve adds to the log-odds u of the link a piecewise linear shift, 0 at the start, with a knot at each of `AT`:

    v = u + (1 - s) shift_i + s shift_{i+1},    s = (u - at_i) / (at_{i+1} - at_i),

learned by the same safeguarded steps as the link, each knot by itself, and forgetting only where rows come. A step that
would let v fall as u grows is not taken: probabilities keep the order of the scores. With many classes the curve is
over the log-odds of the class with the largest score; the others share the rest in proportion.

This is the specification of core/certainty/calibration.hpp, which the estimators use.
"""

from __future__ import annotations

import math
from typing import Any

from gossamer._typing import Floats
from gossamer.certainty.links import FORGETTING, LARGEST_SCORE, PRIOR_SLOPE, Link, SoftmaxLink, safe_curvature, sigmoid

AT = (-5.0, -3.0, -1.5, -0.6, 0.0, 0.6, 1.5, 3.0, 5.0)
PER_WIDTH = (1 / 2.0, 1 / 1.5, 1 / 0.9, 1 / 0.6, 1 / 0.6, 1 / 0.9, 1 / 1.5, 1 / 2.0)
KEEP = 0.998
#: How firmly a shift stays near 0, in rows.
SHIFT_PRECISION = 2.5
STEEPEST_FALL = 0.95
#: The forgetting of the link of two classes, and the share of its mean in the log-odds.
QUICK, STEADY = 0.992, 0.55
#: The least share of a row in the mean, and the rows that its prior counts for.
SLOWEST, FIRST_ROWS = 0.0005, 50.0
#: The more probable of two classes is the predicted one, if only by this.
BARELY = 1e-6


class Curve:
    """u -> u + a piecewise linear shift that keeps the order.

    >>> curve = Curve()
    >>> for _ in range(200):
    ...     curve.learn(3.0, hit=False)
    >>> round(curve.apply(3.0), 2), curve.apply(-0.5)
    (1.58, -0.5)
    """

    def __init__(self) -> None:
        self.shifts = [0.0] * len(AT)
        self.curvatures = [SHIFT_PRECISION] * len(AT)

    def _place(self, u: float) -> tuple[int, float]:
        x = min(AT[-1], max(AT[0], u))
        i = 0
        while i + 2 < len(AT) and x >= AT[i + 1]:
            i += 1
        return i, (x - AT[i]) * PER_WIDTH[i]

    def apply(self, u: float) -> float:
        """The corrected log-odds."""
        i, share = self._place(u)
        return u + (1.0 - share) * self.shifts[i] + share * self.shifts[i + 1]

    def learn(self, u: float, hit: bool, weight: float = 1.0) -> None:
        """Learn log-odds and whether the event came."""
        i, share = self._place(u)
        v = self.apply(u)
        p = sigmoid(v)
        error, safe = p - (1.0 if hit else 0.0), safe_curvature(v, p)
        parts = (weight * (1.0 - share), weight * share)
        wanted = list(self.shifts)
        for k, part in enumerate(parts, start=i):
            fresh = min(1.0, (1.0 - KEEP) * part)
            self.curvatures[k] += fresh * (SHIFT_PRECISION - self.curvatures[k])
            along = error * part + fresh * SHIFT_PRECISION * self.shifts[k]
            wanted[k] = self.shifts[k] - along / (self.curvatures[k] + safe * part)
            self.curvatures[k] += p * (1.0 - p) * part
        near = range(max(0, i - 1), min(len(AT) - 2, i + 1) + 1)
        if all(wanted[k] - wanted[k + 1] <= STEEPEST_FALL * (AT[k + 1] - AT[k]) for k in near):
            self.shifts = wanted

    def fade(self, factor: float) -> None:
        """Time has passed: what was learned counts less by a factor, and goes back to the prior."""
        for i in range(len(AT)):
            self.curvatures[i] = factor * self.curvatures[i] + (1.0 - factor) * SHIFT_PRECISION
            self.shifts[i] -= (1.0 - factor) * SHIFT_PRECISION * self.shifts[i] / self.curvatures[i]
        falls = (self.shifts[i] - self.shifts[i + 1] for i in range(len(AT) - 1))
        steepest = (STEEPEST_FALL * (AT[i + 1] - AT[i]) * (1 + 1e-9) for i in range(len(AT) - 1))
        if any(fall > most for fall, most in zip(falls, steepest, strict=True)):
            self.shifts = [0.0] * len(AT)


class LinkMean:
    """The mean of the slopes and offsets of a link, of about the last 2,000 rows.

    >>> mean = LinkMean()
    >>> for slope in (3.0, 5.0) * 5000:
    ...     mean.follow(Link(slope=slope))
    >>> round(mean.slope, 2)
    4.0
    """

    def __init__(self) -> None:
        self.slope, self.offset, self.gain = PRIOR_SLOPE, 0.0, 1.0 / FIRST_ROWS

    def follow(self, link: Link, weight: float = 1.0) -> None:
        """One more link."""
        grown = weight * self.gain
        self._move(link, min(1.0, grown))
        self.gain = max(SLOWEST, self.gain / (1.0 + grown)) if self.gain > SLOWEST else self.gain

    def fade(self, link: Link, factor: float) -> None:
        """Time has passed: the mean follows the link, which goes back to the prior."""
        self._move(link, 1.0 - factor)
        self.gain = max(SLOWEST, 1.0 / (factor / self.gain + (1.0 - factor) * FIRST_ROWS))

    def _move(self, link: Link, share: float) -> None:
        self.slope += share * (link.slope - self.slope)
        self.offset += share * (link.offset - self.offset)

    @property
    def numbers(self) -> tuple[float, float, float]:
        """All numbers, in the order of the compiled twin."""
        return self.slope, self.offset, self.gain


class Calibration:
    """A link for two classes and its mean, a link for many, and the curve over either.

    >>> calibration = Calibration()
    >>> for _ in range(300):
    ...     calibration.learn(2.0, True)
    ...     calibration.learn(-1.0, False)
    >>> round(calibration.probability(2.0), 2), round(calibration.probability(-1.0), 2)
    (0.99, 0.01)
    """

    def __init__(self) -> None:
        self.two, self.mean, self.many, self.curve = Link(QUICK), LinkMean(), SoftmaxLink(), Curve()

    def log_odds(self, f: float) -> float:
        """The log-odds of the second class by the link and its mean."""
        own, mean = self.two, self.mean
        z = own.standardize(min(LARGEST_SCORE, max(-LARGEST_SCORE, f)))
        return own.log_odds(f) + STEADY * ((mean.slope - own.slope) * z + (mean.offset - own.offset))

    def probability(self, f: float) -> float:
        """The probability of the second class."""
        p = sigmoid(self.curve.apply(self.log_odds(f)))
        return max(p, 0.5 + BARELY) if f > 0 else min(p, 0.5 - BARELY) if f < 0 else p

    def learn(self, f: float, second: bool, weight: float = 1.0) -> None:
        """Learn a score and whether its row was of the second class."""
        self.curve.learn(self.log_odds(f), second, weight)
        self.two = self.two.learn(f, second, weight)
        self.mean.follow(self.two, weight)

    def probability_many(self, f: Any) -> Floats:
        """The probability of each class."""
        p = self.many.probability(f)
        best = _top(f)
        rest = 0.0 if best is None else _others(p, best)
        if best is None or not rest > 0:
            return p
        second = max(p[k] / rest for k in range(len(p)) if k != best)
        wanted = sigmoid(self.curve.apply(math.log(p[best]) - math.log(rest)))
        chance = max(wanted, second / (1.0 + second) + BARELY)
        p *= (1.0 - chance) / rest
        p[best] = chance
        return p

    def learn_many(self, f: Any, label: int, weight: float = 1.0) -> None:
        """Learn the scores of a row and the number of its class."""
        best = _top(f)
        if best is not None and 0 <= label < len(f) and math.isfinite(f[label]):
            p = self.many.probability(f)
            rest = _others(p, best)
            if rest > 0:
                self.curve.learn(math.log(p[best]) - math.log(rest), label == best, weight)
        self.many = self.many.learn(f, label, weight)

    def fade(self, factor: float) -> None:
        """Time has passed: what was learned counts less by a factor."""
        if factor == 1.0:
            return
        self.two, self.many = self.two.fade(factor), self.many.fade(factor)
        self.mean.fade(self.two, factor)
        self.curve.fade(factor)

    def widen(self) -> None:
        """A third class has come: a score for each of them from now on."""
        slope = self.two.slope + STEADY * (self.mean.slope - self.two.slope)
        self.many = self.two._replace(forgetting=FORGETTING, slope=slope).widened()
        self.curve = Curve()


def _others(p: Floats, best: int) -> float:
    total = 0.0
    for k, value in enumerate(p.tolist()):
        if k != best:
            total += value
    return total


def _top(f: Any) -> int | None:
    """The first class with the largest score; None if no class has one."""
    known = [k for k, score in enumerate(f) if math.isfinite(score)]
    return max(known, key=lambda k: (f[k], -k)) if known else None
