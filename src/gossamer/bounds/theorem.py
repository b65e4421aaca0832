"""How a theorem is written down, and the assumptions, checks and formulas that several of them share."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from gossamer import _checks
from gossamer.bounds.comparators import Rivals


class Bound(NamedTuple):
    """A theorem: the function that computes it, where it is from, and what it assumes."""

    function: Callable[..., float]
    source: str
    assumptions: tuple[str, ...]


class Tuning(NamedTuple):
    """The parameters that a theorem prescribes to a learner."""

    rate: float
    reg: float
    margin: float
    C: float = 1.0


#: Every bound by name.
ALL: dict[str, Bound] = {}

Function = TypeVar("Function", bound=Callable[..., float])


def bound(source: str, *assumptions: str) -> Callable[[Function], Function]:
    """Enter a function in `ALL`."""

    def register(function: Function) -> Function:
        ALL[function.__name__] = Bound(function, source, assumptions)
        return function

    return register


# What many theorems assume.
SOFT_MARGIN = "the rule is Gradient, the loss Hinge, the rate constant"
COMPARED = "rivals are the numbers of one comparator for each round, or larger ones"
LIPSCHITZ = "the loss is convex and its slopes are at most slope in size"
FALLING = "the schedule is inverse_sqrt, rate / sqrt(t)"
KAPPA = "k(x, x) <= kappa in every round"


def positive(owner: str, parameter: str, value: float) -> float:
    """A number in (0, inf)."""
    return _checks.number(owner, parameter, value, 0.0, math.inf)


def not_negative(owner: str, parameter: str, value: float) -> float:
    """A number in [0, inf)."""
    return _checks.number(owner, parameter, value, 0.0, math.inf, "left")


def finite(owner: str, parameter: str, value: float) -> float:
    """A number in (-inf, inf)."""
    return _checks.number(owner, parameter, value, -math.inf, math.inf)


def rounds_of(owner: str, value: int) -> int:
    """A number of rounds, at least 1."""
    return _checks.whole(owner, "rounds", value, 1)


def shrinkage(owner: str, rate: float, reg: float) -> float:
    """rate * reg, by which Gradient shrinks f: less than 1."""
    product = positive(owner, "rate", rate) * positive(owner, "reg", reg)
    if product >= 1:
        raise _checks.wrong(owner, "rate", "a number with rate * reg < 1", f"{rate} * {reg}")
    return product


def radius(owner: str, kappa: float, reg: float, slope: float) -> float:
    """U = slope sqrt(kappa) / reg: no hypothesis, and no minimiser of the regularised risk, has a larger norm."""
    return positive(owner, "slope", slope) * math.sqrt(positive(owner, "kappa", kappa)) / positive(owner, "reg", reg)


def regret(
    owner: str, kappa: float, reg: float, rate: float, rounds: int, slope: float, factor: float, C: float = 1.0
) -> float:
    """a sqrt(m) + b with a = factor eta C^2 c^2 X^2 + 2 U^2 / eta and b = U^2 / (2 eta)."""
    force = (positive(owner, "C", C) * positive(owner, "slope", slope)) ** 2 * positive(owner, "kappa", kappa)
    square = force / positive(owner, "reg", reg) ** 2
    a = factor * positive(owner, "rate", rate) * force + 2.0 * square / rate
    return a * math.sqrt(rounds_of(owner, rounds)) + square / (2.0 * rate)


def best_half_step(rivals: Rivals, margin: float) -> float:
    """h(x, K, C) = sqrt(C / K (x + C / K)) - C / K, and x / 2 for K = 0, equation (30) of Kivinen et al. 2004: the z
    that minimises K / (x - z) + C / (z (x - z)). Written so that a small K cancels nothing."""
    return margin / (1.0 + math.sqrt(1.0 + margin * rivals.deficit / rivals.difficulty))


def best_errors(rivals: Rivals, margin: float) -> float:
    """K/d + 2 C/d^2 + 2 sqrt(C/d^2) sqrt(K/d + C/d^2), a square: the minimum that `best_half_step` attains."""
    share = rivals.difficulty / margin**2
    return float((math.sqrt(share) + math.sqrt(rivals.deficit / margin + share)) ** 2)


def best_step(rivals: Rivals, margin: float) -> tuple[float, float]:
    """The step before shrinking eta' = 2 h / X^2 and lambda = sqrt(D_2 / m) / (B eta'), equation (32)."""
    step = 2.0 * best_half_step(rivals, margin) / rivals.kappa
    return step, math.sqrt(rivals.squared_path / rivals.rounds) / (rivals.norm * step)
