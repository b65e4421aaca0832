"""A conformal test martingale: capital that grows when scores stop being exchangeable (Vovk 2021).

Each score gets a p-value, its rank among the scores before, ties broken at random. If all scores are exchangeable, the
p-values are independent and uniform. Six players bet that they are not: with a stake e on a view x of the p-value,
p - 1/2 or |2 p - 1| - 1/2, capital is multiplied by 1 + e x, whose mean is 1. In each row a share ``jump`` of the
capital of a player is spread over its stakes (the simple jumper), so that it can change its mind. The sum of all
capital is a martingale that begins at 1; by Ville's inequality it ever reaches 1 / level with a chance of at most
level.

With a unit of capital that comes before each row (Shiryaev and Roberts), capital minus rows is a martingale, so that
the mean time until it reaches N is at least N.

The reference of the ranks begins anew after ``memory`` rows, while capital goes on: p-values stay independent.

This is the specification of core/certainty/martingale.hpp.
"""

from __future__ import annotations

import bisect
from typing import Any

import numpy as np

JUMPS = (0.0001, 0.001, 0.01)
BETS = (-1.9, -1.0, 0.0, 1.0, 1.9)
STAKES = 2 * len(JUMPS) * len(BETS)
LARGEST = 1e200
_MASK = 2**64 - 1


def uniform(seed: int, count: int) -> float:
    """A random number in (0, 1): SplitMix64 of the seed and a counter.

    >>> round(uniform(0, 1), 6), round(uniform(0, 2), 6)
    (0.883311, 0.431528)
    """
    z = (seed + count * 0x9E3779B97F4A7C15) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (((z ^ (z >> 31)) >> 12) + 0.5) / 4503599627370496.0


class Martingale:
    """The capital of all players.

    >>> martingale = Martingale()
    >>> for t in range(200):
    ...     martingale.bet(martingale.p_value(float(t % 7 + (10 if t >= 150 else 0)), 0, 10_000))
    >>> martingale.wealth() > 1000
    True
    """

    def __init__(self, fed: bool = False) -> None:
        self.sorted: list[float] = []
        self.capital: Any = np.full(STAKES, 1.0 / STAKES)
        self.salt, self.fed = 0, fed

    def wealth(self) -> float:
        """The sum of all capital."""
        total = 0.0
        for part in self.capital.tolist():
            total += part
        return total

    def p_value(self, score: float, seed: int, memory: int) -> float:
        """The share of scores above this one, ties broken at random."""
        if len(self.sorted) >= memory:
            self.sorted = []
        low, high = bisect.bisect_left(self.sorted, score), bisect.bisect_right(self.sorted, score)
        self.salt += 1
        draw = uniform(seed, self.salt)
        p = ((len(self.sorted) - high) + (high - low + 1.0) * draw) / (len(self.sorted) + 1.0)
        self.sorted.insert(high, score)
        return p

    def bet(self, p: float) -> None:
        """All players bet on a p-value."""
        capital = self.capital.reshape(2, len(JUMPS), len(BETS))
        if self.fed:
            capital += 1.0 / STAKES
        for view, x in enumerate((p - 0.5, abs(2.0 * p - 1.0) - 0.5)):
            for player, jump in zip(capital[view], JUMPS, strict=True):
                share = jump * sum(player.tolist()) / len(BETS)
                player[:] = np.minimum(LARGEST, ((1.0 - jump) * player + share) * (1.0 + np.array(BETS) * x))
