"""Budgets that project: what leaves is expressed by what stays."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer.budgets.base import LARGEST_GRAM, REFUSE, Budget

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion


class _Projecting(Budget):
    """What `Project` and `Auto` share."""

    size: int | None
    tolerance: float

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
        """Which slot is missed least once the newcomer is there; `REFUSE` if that is the newcomer itself."""
        inverse = expansion.inverse
        losses = expansion.weights2 / inverse.diagonal
        least = float(losses.min())
        if (size / expansion.scale) ** 2 * inverse.residual < least:
            return REFUSE
        slots = np.flatnonzero(losses == least)
        return int(slots[np.argmin(expansion.births[slots])])

    def room(self, expansion: Expansion) -> int:
        """The number of support points kept now."""
        return self.limit

    def grow(self, expansion: Expansion, lost: float) -> None:
        """Told the norm of each loss."""

    @property
    def limit(self) -> int:
        return LARGEST_GRAM if self.size is None else self.size

    @property
    def needs_gram(self) -> bool:
        return True

    @property
    def at_once(self) -> bool:
        """Whether newcomers are projected before the budget is full."""
        return False


@dataclass(frozen=True)
class Project(_Projecting):
    """Give up the point that the others can replace best, and let them: its function is projected on their span.

    With Q the inverse Gram matrix of the points, the newcomer included, the part of term i that the others cannot
    express has the squared norm a_i^2 / Q_ii. The term with the least goes, a_j <- a_j - a_i Q_ji / Q_ii, and that part
    alone is lost. An update costs O(size^2), a row without one nothing more; 16 size^2 bytes are kept. A newcomer in
    the span of the points is not stored: it is learned inside the span.

    Until it is full for the first time this is no budget at all, to the bit. With a perceptron's steps it is the
    Projectron (Orabona, Keshet, Caputo 2008); ``size=None`` is the original, whose size the tolerance bounds.

    Parameters
    ----------
    size : the number of support points kept, at most 4,096; None: so many, and newcomers are projected from the start.
    tolerance : a newcomer is in the span if the squared norm of its part outside is at most this share of k(x, x).

    >>> Project(100)
    Project(size=100, tolerance=0.001)
    """

    twin: ClassVar[str] = "project"
    size: int | None = 256
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.size is not None:
            _checks.whole(self, "size", self.size, 1)
        _checks.number(self, "tolerance", self.tolerance, 0.0, 1.0, closed="left")

    @property
    def at_once(self) -> bool:
        return self.size is None

    def numbers(self) -> tuple[float, ...]:
        return (float(self.limit), self.tolerance, float(self.at_once), 0.0, 0.0)


@dataclass(frozen=True)
class Auto(_Projecting):
    """`Project` with a size that finds itself: it doubles while what is lost matters, up to a limit of memory.

    So many losses as there are points make a window. If the norms of what was lost in it add up to more than ``share``
    of the norm of f, there is twice the room from then on (``learner.discarded`` counts all of it).

    Parameters
    ----------
    memory : the most bytes for the points and the two matrices of `Project`.
    start : the number of support points to begin with.
    share : how much may be lost.
    size : the largest number of points, from ``memory`` and the first rows.

    >>> Auto(memory=1_000_000).resolve(np.zeros((1, 20))).size
    243
    """

    twin: ClassVar[str] = "auto"
    tolerance: ClassVar[float] = 1e-3  # type: ignore[misc]
    memory: float = 8e6
    start: int = 64
    share: float = 0.1
    size: int | None = None

    def __post_init__(self) -> None:
        _checks.number(self, "memory", self.memory, 0.0, math.inf, closed="right")
        _checks.whole(self, "start", self.start, 1)
        _checks.number(self, "share", self.share, 0.0, math.inf)
        if self.size is not None:
            _checks.whole(self, "size", self.size, 1)

    def resolve(self, X: Any) -> Budget:
        if self.size is not None:
            return self
        row = X.shape[1] * X.dtype.itemsize if isinstance(X, np.ndarray) else 0
        half = (row + 64) / 2  # bytes of a point and its numbers: 16 m^2 + 2 half m <= memory
        most = (math.sqrt(half * half + 16 * min(self.memory, 1e12)) - half) / 16
        return replace(self, size=min(LARGEST_GRAM, max(self.start, int(most))))

    def room(self, expansion: Expansion) -> int:
        return min(self.limit, max(int(expansion.room), self.start))

    def grow(self, expansion: Expansion, lost: float) -> None:
        expansion.window_lost += lost
        expansion.window += 1
        if expansion.window < self.room(expansion):
            return
        if expansion.window_lost > self.share * math.sqrt(expansion.norm2):
            expansion.room = float(min(self.limit, 2 * self.room(expansion)))
        expansion.window, expansion.window_lost = 0, 0.0

    def numbers(self) -> tuple[float, ...]:
        return (float(self.limit), self.tolerance, float(min(self.start, self.limit)), self.share)
