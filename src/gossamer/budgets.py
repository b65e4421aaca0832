"""Budgets: which support point to give up when there is no room for another.

A budget sees the expansion and the newcomer, and answers with a slot. The oldest of equals goes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks

if TYPE_CHECKING:
    from gossamer.expansion import Expansion

#: The answer of a budget that keeps the newcomer out.
REFUSE = -1


class Budget:
    """How many support points are kept, and which one leaves."""

    twin: ClassVar[str | None] = None

    def choose(self, expansion: Expansion, coefficient: float, kappa: float) -> int:
        """The slot for a newcomer: one to overwrite, ``expansion.size`` to append, or `REFUSE`."""
        return expansion.size

    def expired(self, expansion: Expansion, time: int) -> int | None:
        """A slot whose term has no part in round ``time``, or None."""
        return None

    @property
    def limit(self) -> int | None:
        """The largest number of support points, None if there is none."""
        return None

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        """The C++ twin's name and numbers; None for a budget without one."""
        name = type(self).__dict__.get("twin")
        return None if name is None else (name, self.numbers())

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes."""
        return ()


@dataclass(frozen=True)
class Unlimited(Budget):
    """Every support point is kept."""

    twin: ClassVar[str] = "unlimited"


@dataclass(frozen=True)
class Oldest(Budget):
    """Drop the oldest: truncated NORMA (Kivinen et al. 2004, section III-C).

    Parameters
    ----------
    size : the number of support points kept (truncation by count).
    age : round t sees only terms from the last ``age`` rounds, whether or not they stored anything (tau, by age).

    >>> Oldest(128).limit, Oldest(age=50).limit
    (128, 50)
    """

    twin: ClassVar[str] = "oldest"
    size: int | None = None
    age: int | None = None

    def __post_init__(self) -> None:
        if self.size is None and self.age is None:
            raise _checks.wrong(self, "size", "given, or age", None)
        if self.size is not None:
            _checks.whole(self, "size", self.size, 1)
        if self.age is not None:
            _checks.whole(self, "age", self.age, 1)

    def choose(self, expansion: Expansion, coefficient: float, kappa: float) -> int:
        if self.size is None or expansion.size < self.size:
            return expansion.size
        return int(np.argmin(expansion.births))

    def expired(self, expansion: Expansion, time: int) -> int | None:
        if self.age is None or not expansion.size:
            return None
        oldest = int(np.argmin(expansion.births))
        return oldest if expansion.births[oldest] < time - self.age else None

    @property
    def limit(self) -> int | None:
        return min(bound for bound in (self.size, self.age) if bound is not None)

    def numbers(self) -> tuple[float, ...]:
        return tuple(math.inf if bound is None else float(bound) for bound in (self.size, self.age))


@dataclass(frozen=True)
class Smallest(Budget):
    """Drop the term that weighs least now, the newcomer included: SILK (Cheng et al. 2006, section 5).

    Parameters
    ----------
    size : the number of support points kept (omega).
    by : "norm" weighs |coefficient| sqrt(k(x, x)), the RKHS norm of what is lost; "coefficient" is the paper to the
        letter, the same for kernels with constant k(x, x).

    >>> Smallest(64)
    Smallest(size=64, by='norm')
    """

    twin: ClassVar[str] = "smallest"
    size: int
    by: str = "norm"

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1)
        _checks.one_of(self, "by", self.by, ["norm", "coefficient"])

    def choose(self, expansion: Expansion, coefficient: float, kappa: float) -> int:
        if expansion.size < self.size:
            return expansion.size
        weights = np.abs(expansion.raw)
        newcomer = abs(coefficient / expansion.scale)
        if self.by == "norm":
            weights, newcomer = weights * np.sqrt(expansion.kappas), newcomer * math.sqrt(kappa)
        least = weights.min()
        if newcomer < least:
            return REFUSE
        lightest = np.flatnonzero(weights == least)
        return int(lightest[np.argmin(expansion.births[lightest])])

    @property
    def limit(self) -> int | None:
        return self.size

    def numbers(self) -> tuple[float, ...]:
        return (float(self.size), float(self.by == "norm"))


def as_budget(budget: Any) -> Budget:
    """A Budget from a Budget or None (unlimited)."""
    if budget is None:
        return Unlimited()
    if isinstance(budget, Budget):
        return budget
    raise _checks.wrong("Learner", "budget", "a Budget, such as Smallest(128), or None", budget)
