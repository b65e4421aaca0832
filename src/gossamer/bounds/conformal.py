"""The theorem on the coverage of adaptive conformal intervals, for every sequence whatever."""

from __future__ import annotations

from gossamer.bounds.theorem import bound

FOLLOWED = "alpha follows the misses, alpha_1 being the share asked for; all is covered where alpha <= 0"


@bound("Gibbs, Candes 2021, Proposition 4.1", FOLLOWED, missed=(0.0, 1.0), step=(0.0, float("inf")))
def conformal_coverage(*, missed: float, step: float, rounds: int) -> float:
    """|share of rows outside of their intervals - missed| <= (max(a, 1 - a) + step) / (step T) for every sequence of T
    rows, where a = missed is one minus the coverage asked for.

    step is gamma: `gossamer.certainty.conformal` has 0.1 * missed.

    >>> round(conformal_coverage(missed=0.1, step=0.01, rounds=10_000), 4)
    0.0091
    """
    return (max(missed, 1.0 - missed) + step) / (step * rounds)
