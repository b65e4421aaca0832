"""What experts cost in bytes and microseconds, and how many fit a limit. Counted, not measured: a limit must not make a
model depend on the machine."""

from __future__ import annotations

from bisect import bisect_left

from gossamer import _checks
from gossamer.mixture.roster import MOVES, WORLDS

#: Experts that are awake besides the settled ones, on the average: young ones and those on trial.
VISITORS = 3
#: The most learners that sleep, which cost memory (those that guess how the world moves share one); the most sleepers,
#: which are asked and learn nothing, and the share of an expert's time that each costs.
SLEEPERS, ASKED, SLEEPING_TIME = 2 * WORLDS + 1, 2 * WORLDS + 2 * len(MOVES), 0.1
#: Points below which an expert is no use.
FEWEST_POINTS = 8
#: Microseconds for a row: those of the mixture, of an expert, for each squared point, and for each value of the points.
MIXTURE_TIME, EXPERT_TIME, SQUARE_TIME, VALUE_TIME = 8.0, 1.5, 3.0e-4, 1.0e-4


def expert_bytes(points: int, features: int) -> int:
    """The bytes of an expert: its metric, its Gram matrix and the inverse, its points and their coefficients.

    >>> expert_bytes(256, 20)
    1622016
    """
    return 8 * (3 * points * points + points * (features + 4))


def expert_time(points: int, features: int) -> float:
    """The microseconds of a row with a step, on a usual processor.

    >>> round(expert_time(256, 20), 1)
    21.7
    """
    return EXPERT_TIME + SQUARE_TIME * points * points + VALUE_TIME * points * features


def fit_limits(budget: int, awake: int, features: int, memory: float | None, time: float | None) -> tuple[int, int]:
    """The points of each expert and how many stay awake, at most these, within limits of bytes and microseconds.

    Experts go first, down to two; then points.

    >>> fit_limits(256, 6, 20, None, None), fit_limits(256, 6, 20, 5e6, None), fit_limits(256, 6, 20, None, 50.0)
    ((256, 6), (127, 2), (132, 2))
    >>> fit_limits(2**31 - 1, 6, 20, 5e6, None)
    (127, 2)
    """

    def fits(points: int, count: int) -> bool:
        everybody = count + VISITORS
        used = (everybody + SLEEPERS) * expert_bytes(points, features)
        spent = MIXTURE_TIME + (everybody + ASKED * SLEEPING_TIME) * expert_time(points, features)
        return (memory is None or used <= memory) and (time is None or spent <= time)

    while awake > 2 and not fits(budget, awake):
        awake -= 1
    if budget <= FEWEST_POINTS or fits(budget, awake):
        return budget, awake
    # the largest number of points that fits: cost grows with points
    return max(FEWEST_POINTS, bisect_left(range(budget), True, key=lambda points: not fits(points, awake)) - 1), awake


def check_limits(owner: object, memory: float | None, time: float | None) -> None:
    """Validate limits: positive numbers, or None."""
    for name, value in (("memory", memory), ("time", time)):
        if value is not None:
            _checks.number(owner, name, value, 0.0, float("inf"))
