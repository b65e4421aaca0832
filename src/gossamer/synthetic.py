"""Synthetic streams that drift: two classes in the plane, each a mixture of two moving Gaussians, seeded.

Cheng et al. 2006 (Fig. 1) learn such a stream but do not give its drift; these are ours (ALGORITHMS 13.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from gossamer import _checks
from gossamer._typing import Floats

__all__ = ["rotating_xor", "rotating_xor_error", "speeding_xor", "speeding_xor_turns", "wandering_box"]

#: A source of randomness: a seed, or a generator, which advances.
Seed = int | np.random.Generator

#: The turns in 2,000 rows of the parts of `speeding_xor`.
SPEEDS = (0.0, 1.0, 2.0, 4.0)


def rotating_xor(
    n: int, seed: Seed = 0, turns: float = 1.0, radius: float = 1.0, std: float = 0.35, start: float = 0.0
) -> tuple[Floats, Floats]:
    """Four Gaussians on a circle, of alternating class, which turns while the stream runs: an XOR that drifts.

    Row t has the class y = -1 or +1 and the component j = 0 or 1, each with probability 1/2, and

    angle = start + 2 pi turns t / n + pi j + (pi / 2) [y < 0],   x = radius (cos angle, sin angle) + std N(0, I)

    so that in every full turn each place changes its class four times.

    Parameters
    ----------
    n : number of rows.
    seed : a seed or a NumPy Generator.
    turns : full turns of the circle over the whole stream; 0 does not drift.
    radius, std : of the circle, and of each Gaussian.
    start : the angle, in radians, of a Gaussian of class +1 at the first row.

    Returns
    -------
    X of shape (n, 2) and y of -1 and +1, both float64.

    >>> X, y = rotating_xor(2000, seed=0)
    >>> X.shape, int((y > 0).sum())
    ((2000, 2), 1043)
    >>> near_first_axis = np.abs(X[:, 0]) > np.abs(X[:, 1])  # first the places of +1; a quarter turn later, of -1
    >>> [round(float((y[part] > 0)[near_first_axis[part]].mean()), 2) for part in (slice(0, 50), slice(475, 525))]
    [0.96, 0.11]
    """
    owner = "rotating_xor"
    n, rng = _checks.whole(owner, "n", n, 1), _generator(owner, seed)
    _circle(owner, radius, std)
    turns = _checks.number(owner, "turns", turns, -math.inf, math.inf)
    start = _checks.number(owner, "start", start, -math.inf, math.inf)
    return _cross(rng, start + 2 * math.pi * turns * np.arange(n) / n, radius, std)


def _cross(rng: np.random.Generator, angles: Floats, radius: float, std: float) -> tuple[Floats, Floats]:
    """Four Gaussians on a circle that has turned by an angle at each row."""
    n = len(angles)
    y = rng.choice([-1.0, 1.0], size=n)
    component = rng.integers(2, size=n)
    angle = angles + math.pi * component + math.pi / 2 * (y < 0)
    X = radius * np.column_stack([np.cos(angle), np.sin(angle)]) + std * rng.standard_normal((n, 2))
    return X, y


def rotating_xor_error(radius: float = 1.0, std: float = 0.35) -> float:
    """The error rate of the best possible rule on `rotating_xor`, which knows the angle at every row.

    Its boundary is the two lines midway between the Gaussians. Seen along these, every centre is at distance
    radius / sqrt(2) from both, and an error is to cross exactly one: 2 q (1 - q) with q = Phi(-radius / (sqrt(2) std)).

    >>> round(rotating_xor_error(), 4)
    0.0424
    """
    _circle("rotating_xor_error", radius, std)
    crossing = float(ndtr(-radius / (math.sqrt(2) * std)))
    return 2 * crossing * (1 - crossing)


def speeding_xor(
    n: int, seed: Seed = 0, speeds: Sequence[float] = SPEEDS, radius: float = 1.0, std: float = 0.35
) -> tuple[Floats, Floats]:
    """`rotating_xor` with a drift that speeds up: the parts of the stream, of equal length, turn at different speeds.

    Parameters
    ----------
    n : number of rows.
    seed : a seed or a NumPy Generator.
    speeds : of each part, in full turns for 2,000 rows; by default a quarter stands still, and the others turn.
    radius, std : of the circle, and of each Gaussian.

    Returns
    -------
    X of shape (n, 2) and y of -1 and +1, both float64. The best possible rule has the error of `rotating_xor_error`.

    >>> X, y = speeding_xor(4000, seed=0)
    >>> X.shape, int((y > 0).sum())
    ((4000, 2), 2029)
    """
    owner = "speeding_xor"
    n, rng = _checks.whole(owner, "n", n, 1), _generator(owner, seed)
    _circle(owner, radius, std)
    return _cross(rng, 2 * math.pi * speeding_xor_turns(n, speeds), radius, std)


def speeding_xor_turns(n: int, speeds: Sequence[float] = SPEEDS) -> Floats:
    """The turns that `speeding_xor` has made before each row.

    >>> speeding_xor_turns(4000)[[0, 1000, 2000, 3000, 3999]].round(3).tolist()
    [0.0, 0.0, 0.5, 1.5, 3.498]
    """
    owner = "speeding_xor"
    n = _checks.whole(owner, "n", n, 1)
    given = np.array([_checks.number(owner, "speeds", speed, -math.inf, math.inf) for speed in speeds])
    if not len(given):
        raise _checks.wrong(owner, "speeds", "at least one number", speeds)
    each = given[np.arange(n) * len(given) // n] / 2000
    return np.asarray(np.cumsum(each) - each)


def wandering_box(
    n: int, seed: Seed = 0, speed: float = 0.004, half_width: float = 2.0, std: float = 0.3
) -> tuple[Floats, Floats]:
    """Four Gaussians, two of each class, that wander in a square box and bounce off its walls.

    The centres start uniformly in [-half_width, half_width]^2 and move by ``speed`` per row, each in a random direction
    of its own; row t has the class y = -1 or +1 and one of that class's two centres, each with probability 1/2, and
    x = centre_t + std N(0, I).

    Parameters
    ----------
    n : number of rows.
    seed : a seed or a NumPy Generator.
    speed : distance that a centre moves per row; 0 does not drift.
    half_width : of the box.
    std : of each Gaussian.

    Returns
    -------
    X of shape (n, 2) and y of -1 and +1, both float64.

    >>> X, y = wandering_box(2000, seed=0)
    >>> X.shape, int((y > 0).sum())
    ((2000, 2), 1038)
    """
    owner = "wandering_box"
    n, rng = _checks.whole(owner, "n", n, 1), _generator(owner, seed)
    speed = _checks.number(owner, "speed", speed, 0.0, math.inf, "left")
    half_width = _checks.number(owner, "half_width", half_width, 0.0, math.inf)
    std = _checks.number(owner, "std", std, 0.0, math.inf)
    origins = rng.uniform(-half_width, half_width, size=(4, 2))
    heading = rng.uniform(0, 2 * math.pi, size=4)
    y = rng.choice([-1.0, 1.0], size=n)
    centre = rng.integers(2, size=n) + 2 * (y < 0)
    way = speed * np.arange(n)[:, None] * np.column_stack([np.cos(heading), np.sin(heading)])[centre]
    # a bouncing point is a straight path in a plane tiled by mirrored boxes, folded back: period two boxes
    phase = (origins[centre] + way + half_width) % (4 * half_width)
    X = np.minimum(phase, 4 * half_width - phase) - half_width + std * rng.standard_normal((n, 2))
    return X, y


def _circle(owner: str, radius: float, std: float) -> None:
    _checks.number(owner, "radius", radius, 0.0, math.inf)
    _checks.number(owner, "std", std, 0.0, math.inf)


def _generator(owner: str, seed: Any) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(_checks.whole(owner, "seed", seed, 0))
