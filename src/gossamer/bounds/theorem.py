"""How a theorem is written down, and the assumptions, ranges and formulas that several of them share."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

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


#: The least value of each parameter that is an integer, and the interval (low, high, closed) of each that is a number.
WHOLE = {
    "rounds": 1, "size": 1, "kept": 0, "margin_errors": 0, "experts": 1, "switches": 0, "newcomers": 0, "arrivals": 0,
}  # fmt: skip
RANGES: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("kappa", "reg", "rate", "slope", "C", "radius", "largest_risk"), (0.0, math.inf)),
    **dict.fromkeys(("noise", "largest"), (0.0, math.inf)),
    **dict.fromkeys(("distance", "norm", "loss", "squared_loss", "dropped"), (0.0, math.inf, "left")),
    **dict.fromkeys(("squared_scores", "deficit", "log_det"), (0.0, math.inf, "left")),
    **dict.fromkeys(("nu", "alpha"), (0.0, 1.0, "right")), "weight": (0.0, 1.0, "right"),
    **dict.fromkeys(("confidence", "share", "entry"), (0.0, 1.0)),
    **dict.fromkeys(("first_level", "last_level"), (-math.inf, math.inf)),
}  # fmt: skip


def bound(source: str, *assumptions: str, **ranges: tuple[Any, ...]) -> Callable[[Function], Function]:
    """Enter a function in `ALL`; its numbers are validated, by `RANGES` unless ``ranges`` has other intervals."""

    def register(function: Function) -> Function:
        name, signature, intervals = function.__name__, inspect.signature(function), {**RANGES, **ranges}

        @functools.wraps(function)
        def checked(*args: Any, **given: Any) -> float:
            values = signature.bind(*args, **given).arguments
            for key, value in values.items():
                if key in WHOLE:
                    values[key] = _checks.whole(name, key, value, WHOLE[key])
                elif key in intervals:
                    values[key] = _checks.number(name, key, value, *intervals[key])
            return function(**values)

        ALL[name] = Bound(checked, source, assumptions)
        return cast(Function, checked)

    return register


# What many theorems assume.
SOFT_MARGIN = "the rule is Gradient, the loss Hinge, the rate constant"
COMPARED = "rivals are the numbers of one comparator for each round, or larger ones"
LIPSCHITZ = "the loss is convex and its slopes are at most slope in size"
FALLING = "the schedule is inverse_sqrt, rate / sqrt(t)"
KAPPA = "k(x, x) <= kappa in every round"


def shrinkage(owner: str, rate: float, reg: float) -> float:
    """rate * reg, by which Gradient shrinks f: less than 1."""
    if rate * reg >= 1:
        raise _checks.wrong(owner, "rate", "a number with rate * reg < 1", f"{rate} * {reg}")
    return rate * reg


def radius_of(kappa: float, reg: float, slope: float) -> float:
    """U = slope sqrt(kappa) / reg: no hypothesis, and no minimiser of the regularised risk, has a larger norm."""
    return slope * math.sqrt(kappa) / reg


def regret(kappa: float, reg: float, rate: float, rounds: int, slope: float, factor: float, C: float = 1.0) -> float:
    """a sqrt(m) + b with a = factor eta C^2 c^2 X^2 + 2 U^2 / eta and b = U^2 / (2 eta)."""
    force = (C * slope) ** 2 * kappa
    square = force / reg**2
    return (factor * rate * force + 2.0 * square / rate) * math.sqrt(rounds) + square / (2.0 * rate)


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
