"""Scale targets online: centred and scaled as they come, so that no regressor depends on their units.

A regressor learns z = (y - mean) / deviation, with the mean and the deviation of the targets up to and with y, and its
learner's score is turned back with those known before: f(x) * deviation + mean. With targets a y + b, predictions are
a times those of y, plus b. Sums run row by row (Welford 1962; West 1979 for weights), with the first target taken off,
so that any batches give the same bits and large targets lose no digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats

#: The sum of weights, the first target, the weighted sum of the distances from it, and of the squared distances from
#: the mean.
Moments = tuple[float, float, float, float]
NOTHING: Moments = (0.0, 0.0, 0.0, 0.0)


def units(moments: Moments) -> tuple[float, float]:
    """The mean and the deviation; 0 and 0 before the first target.

    >>> units((4.0, 1000.0, 20.0, 36.0))
    (1005.0, 3.0)
    """
    weight, first, sums, squares = moments
    return (first + sums / weight, math.sqrt(squares / weight)) if weight > 0 else (0.0, 0.0)


def fade_moments(moments: Moments, factor: float) -> Moments:
    """The moments after time has passed: what came before weighs less by a factor.

    >>> fade_moments((4.0, 1000.0, 20.0, 36.0), 0.5)
    (2.0, 1000.0, 10.0, 18.0)
    """
    total, first, sums, squares = moments
    return moments if factor == 1.0 else (factor * total, first, factor * sums, factor * squares)


def follow(moments: Moments, y: float, weight: float = 1.0, fade: float = 1.0) -> tuple[float, Moments]:
    """One target as it is learned, and the moments after it. A weight of 0 leaves them as they are. ``fade``: what the
    time since the target before leaves of their weight.

    >>> z, moments = follow(NOTHING, 1000.0)
    >>> z, *units(moments)
    (0.0, 1000.0, 0.0)
    >>> z, moments = follow(moments, 1004.0)
    >>> z, *units(moments)
    (1.0, 1002.0, 2.0)
    """
    total, first, sums, squares = fade_moments(moments, fade)
    if weight > 0:
        first = y if total == 0 else first
        away = y - first
        news = away - (sums / total if total > 0 else 0.0)
        total += weight
        sums += weight * away
        squares += weight * news * news * (1.0 - weight / total)
    moments = (total, first, sums, squares)
    deviation = math.sqrt(squares / total) if total > 0 else 0.0
    return ((y - first) - sums / total) / deviation if deviation > 0 else 0.0, moments


def follow_all(
    moments: Moments, y: Floats, weights: Floats | None, fades: Floats | None = None
) -> tuple[Floats, Moments]:
    """`follow` for every target of a batch, bit for bit: three rows, of the targets as they are learned and of the mean
    and the deviation known before each; and the moments after the last."""
    out = np.empty((3, len(y)))
    return out, _core.follow_targets(moments, y, weights, out, fades)


def check_finite(owner: object, moments: Moments, y: Any) -> None:
    """Raise for targets that are not finite, or so large that their variance is not."""
    if not all(map(math.isfinite, moments)):
        _checks.vector(owner, "y", y, len(y))
        largest = float(np.abs(y).max())
        raise _checks.wrong(owner, "y", "small enough for its variance to be finite", largest)


def check_moments(owner: object, found: Any) -> None:
    """Validate the moments of a file."""
    fits = isinstance(found, tuple) and len(found) == 4 and all(type(value) is float for value in found)
    if not fits or not all(map(math.isfinite, found)) or found[0] < 0 or found[3] < 0:
        raise _checks.wrong(owner, "_moments", "four finite numbers, no weight or square negative", found)


def pool(parts: Sequence[Moments], shares: Floats) -> Moments:
    """The moments of several models as one (Chan, Golub, LeVeque 1979), its mean that of the weighted sum of models.

    >>> pool([(1.0, 2.0, 0.0, 0.0), (1.0, 6.0, 0.0, 0.0)], np.array([0.5, 0.5]))
    (2.0, 2.0, 4.0, 8.0)
    """
    weights = np.array([part[0] for part in parts])
    means = np.array([units(part)[0] for part in parts])
    first, total = parts[0][1], float(weights.sum())
    mean = float(weights @ (means - first)) / total if total > 0 else 0.0
    squares = sum(part[3] for part in parts) + float(weights @ (means - first - mean) ** 2)
    return total, first, float(shares @ means - first) * total, squares
