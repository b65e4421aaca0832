"""Budgets that drop terms: the oldest, the lightest, a random one. Of equal terms the oldest is dropped."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from gossamer import _checks
from gossamer.budgets.base import REFUSE, Budget

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion


@dataclass(frozen=True)
class Unlimited(Budget):
    """Every support point is kept."""

    twin: ClassVar[str] = "unlimited"
    aliases: ClassVar[tuple[str, ...]] = ("none",)

    @property
    def drops(self) -> bool:
        return False


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

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
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
class Sublinear(Budget):
    """The truncation of NORMA's Theorem 6, for ``Gradient(rate, reg, schedule="inverse_sqrt")``: round t sees the terms
    of its last min(t, max(start, ceil(t ** (1/2 + exponent)))) rounds (Kivinen et al. 2004; ALGORITHMS 1.8 bridges the
    paper's jump at start). The regret stays O(sqrt(t)), the size o(t).

    Parameters
    ----------
    rate, reg : of the rule.
    exponent : epsilon in (0, 1/2). Small rate * reg or exponent make ``start``, from which terms are dropped, useless.

    >>> Sublinear(rate=0.9, reg=1.0, exponent=0.4).start, Sublinear(rate=0.5, reg=1.0, exponent=0.25).start
    (26, 14457)
    """

    twin: ClassVar[str] = "sublinear"
    rate: float
    reg: float
    exponent: float = 0.4

    def __post_init__(self) -> None:
        _checks.number(self, "rate", self.rate, 0.0, math.inf)
        _checks.number(self, "reg", self.reg, 0.0, math.inf)
        _checks.number(self, "exponent", self.exponent, 0.0, 0.5)
        if self.rate * self.reg >= 1:
            raise _checks.wrong(self, "rate", "a number with rate * reg < 1", f"{self.rate} * {self.reg}")

    @cached_property
    def start(self) -> int | None:
        """t0: the least from which the theorem's conditions hold for ever, exp(-p t^e) <= p / sqrt(t) with p = rate reg
        and e the exponent, and ceil(t^(1/2 + e)) <= 3 t / 4; None if there is none among the first million."""
        limit, product, power = 1_000_000, self.rate * self.reg, 0.5 + self.exponent
        t = np.arange(1.0, limit + 1.0)
        broken = (-product * t**self.exponent > math.log(product) - 0.5 * np.log(t)) | (np.ceil(t**power) > 0.75 * t)
        last = int(t[broken].max(initial=0.0))
        # beyond these rounds the slack of either condition only grows, so that what holds at the limit holds for ever
        grows = max(-math.log(2.0 * product * self.exponent) / self.exponent, math.log(power / 0.75) / (1.0 - power))
        certain = grows <= math.log(limit) and limit**power + 1.0 <= 0.75 * limit
        return last + 1 if last < limit and certain else None

    def rounds(self, time: int) -> int:
        """How many of the last rounds round ``time`` sees: min(t, max(t0, ceil(t^(1/2 + e)))), t if there is no t0."""
        if self.start is None:
            return time
        return min(time, max(self.start, math.ceil(math.pow(time, 0.5 + self.exponent))))

    def expired(self, expansion: Expansion, time: int) -> int | None:
        if not expansion.size:
            return None
        oldest = int(np.argmin(expansion.births))
        return oldest if expansion.births[oldest] < time - self.rounds(time) else None

    def numbers(self) -> tuple[float, ...]:
        return (math.inf if self.start is None else float(self.start), 0.5 + self.exponent)


@dataclass(frozen=True)
class Smallest(Budget):
    """Drop the term that weighs least now, the newcomer included: SILK (Cheng et al. 2006, section 5).

    Parameters
    ----------
    size : the number of support points kept (omega).
    by : "norm" weighs |coefficient| sqrt(k(x, x)), the RKHS norm of what is lost (with several classes the Euclidean
        norm over classes, without their label kernel); "coefficient" is the paper to the letter, the same for kernels
        with constant k(x, x).

    >>> Smallest(64)
    Smallest(size=64, by='norm')
    """

    twin: ClassVar[str] = "smallest"
    size: int
    by: str = "norm"

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1)
        _checks.one_of(self, "by", self.by, ["norm", "coefficient"])

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
        if expansion.size < self.size:
            return expansion.size
        weights = np.sqrt((expansion.raw**2).sum(axis=0)) if len(expansion.raw) > 1 else np.abs(expansion.raw[0])
        newcomer = size / expansion.scale
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


@dataclass(frozen=True)
class Random(Budget):
    """Drop a point at random, never the newcomer: the randomized budget perceptron's choice (Cavallanti, Cesa-Bianchi,
    Gentile 2007).

    Parameters
    ----------
    size : the number of support points kept.
    seed : of the draws. They depend on it and on the round in which the youngest point came, so that they are the same
        in any split into batches and after a restart.

    >>> Random(64)
    Random(size=64, seed=0)
    """

    twin: ClassVar[str] = "random"
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1)
        if _checks.whole(self, "seed", self.seed, 0) >= 2**32:
            raise _checks.wrong(self, "seed", "an int in [0, 2**32)", self.seed)

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
        if expansion.size < self.size:
            return expansion.size
        word, golden = 2**64 - 1, 0x9E3779B97F4A7C15
        x = (self.seed * golden + int(expansion.births.max()) + golden) & word  # splitmix64
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
        return (x ^ (x >> 31)) % expansion.size

    @property
    def limit(self) -> int | None:
        return self.size

    def numbers(self) -> tuple[float, ...]:
        return (float(self.size), float(self.seed))
