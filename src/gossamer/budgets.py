"""Budgets: which support point to give up when there is no room for another.

A budget sees the expansion and the newcomer, and answers with a slot. The oldest of equals goes first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks

if TYPE_CHECKING:
    from gossamer._kernel import Kernel
    from gossamer._loss import Loss
    from gossamer._rule import Rule
    from gossamer.expansion import Expansion

#: The answer of a budget that keeps the newcomer out.
REFUSE = -1
#: The most support points whose kernel values with each other are kept.
LARGEST_GRAM = 4096


class Budget:
    """How many support points are kept, and which one leaves."""

    twin: ClassVar[str | None] = None

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
        """The slot for a newcomer whose coefficients have the norm ``size``: one to overwrite, ``expansion.size`` to
        append, or `REFUSE`."""
        return expansion.size

    def expired(self, expansion: Expansion, time: int) -> int | None:
        """A slot whose term has no part in round ``time``, or None; asked at the end of each round for the next."""
        return None

    @property
    def needs_gram(self) -> bool:
        """Whether the kernel values of all points with each other are kept for it."""
        return False

    def check(self, kernel: Kernel, loss: Loss, rule: Rule) -> None:
        """Raise if the budget does not go with the other parts."""

    def resolve(self, X: Any) -> Budget:
        """The budget with everything that depends on the data settled, by the first rows learned."""
        return self

    @property
    def limit(self) -> int | None:
        """The largest number of support points, None if there is none."""
        return None

    @property
    def drops(self) -> bool:
        """Whether a support point may ever leave."""
        return True

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


@dataclass(frozen=True)
class Forgetron(Budget):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2008), with `Perceptron` steps: before the oldest term
    leaves, all coefficients shrink by the largest factor phi <= 1 for which the damage of all removals so far,

    sum of sigma^2 k(x, x) + 2 sigma (1 - y f(x)),   sigma = phi |coefficient|, f after the shrinking,

    stays below 15/32 of the mistakes (ALGORITHMS 3.5), which is what its mistake bound asks for.

    Parameters
    ----------
    size : the number of support points kept.

    >>> Forgetron(64)
    Forgetron(size=64)
    """

    twin: ClassVar[str] = "forgetron"
    size: int

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1)

    def check(self, kernel: Kernel, loss: Loss, rule: Rule) -> None:
        if type(rule).__name__ != "Perceptron" or loss.target != "binary":
            got = f"{type(rule).__name__} with {type(loss).__name__}"
            raise _checks.wrong("Learner", "rule", "Perceptron, for two classes, with a Forgetron budget", got)

    def factor(self, sigma: float, kappa: float, value: float, left: float) -> tuple[float, float]:
        """phi for a term of weight sigma at whose point y f(x) is ``value``, and its damage; ``left``: what may be."""
        a, b = sigma * sigma * kappa - 2 * sigma * value, 2 * sigma
        phi = 1.0 if a + b <= left else 2 * left / (b + math.sqrt(max(0.0, b * b + 4 * a * left)))
        return phi, (a * phi + b) * phi

    @property
    def limit(self) -> int | None:
        return self.size

    @property
    def needs_gram(self) -> bool:
        return True

    def numbers(self) -> tuple[float, ...]:
        return (float(self.size),)


@dataclass(frozen=True)
class Merge(Budget):
    """Two points become the best single point between them; for Gaussian kernels (Wang, Crammer, Vucetic 2012).

    The lightest term m is merged with the term n of equal sign for which the least is lost: z = h m + (1 - h) n with

    coefficient a_m k^((1-h)^2) + a_n k^(h^2),   k = k(m, n),

    h where that is largest. What is lost has the squared norm a_m^2 + a_n^2 + 2 a_m a_n k minus its square (ALGORITHMS
    3.5). Without a term of equal sign the lightest is dropped. Several classes: norms and products of the coefficients.

    Parameters
    ----------
    size : the number of support points kept, at most 4,096.

    >>> Merge(64)
    Merge(size=64)
    """

    twin: ClassVar[str] = "merge"
    size: int

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1)

    def check(self, kernel: Kernel, loss: Loss, rule: Rule) -> None:
        if type(kernel).__name__ != "Gaussian":
            raise _checks.wrong("Learner", "kernel", "a Gaussian with a Merge budget", kernel)
        if rule.needs_ids:
            raise _checks.wrong("Learner", "budget", f"another one where examples come back ({rule})", self)

    def blend(self, a2: float, b2: float, ab: float, log_k: float, halvings: int) -> tuple[float, float, float, float]:
        """h by bisection of the slope, the factors of both coefficients, and the squared norm of the new term; a2, b2,
        ab: the squared weights of the two and their product."""
        low, high, h, u, w = 0.0, 1.0, 0.0, 0.0, 0.0
        for _ in range(halvings):
            h = 0.5 * (low + high)
            u, w = math.exp(log_k * (1 - h) * (1 - h)), math.exp(log_k * h * h)
            slope = a2 * u * u * (1 - h) - b2 * w * w * h + ab * u * w * (1 - 2 * h)
            low, high = (h, high) if slope > 0 else (low, h)
        return h, u, w, a2 * u * u + b2 * w * w + 2 * ab * u * w

    @property
    def limit(self) -> int | None:
        return self.size

    @property
    def needs_gram(self) -> bool:
        return True

    def numbers(self) -> tuple[float, ...]:
        return (float(self.size),)


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
    size: int | None
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

    twin: ClassVar[str] = "project"
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
        return (float(self.limit), self.tolerance, 0.0, float(min(self.start, self.limit)), self.share)


def as_budget(budget: Any) -> Budget:
    """A Budget from a Budget, None (unlimited) or "auto"."""
    if budget is None:
        return Unlimited()
    if isinstance(budget, str) and budget == "auto":
        return Auto()
    if isinstance(budget, Budget):
        return budget
    raise _checks.wrong("Learner", "budget", "a Budget, such as Project(128), 'auto' or None", budget)
