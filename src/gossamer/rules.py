"""Update rules: what one example does to the model, as pure functions of numbers.

A rule sees the score of the example, never the expansion: that is why each costs O(1) after the prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gossamer import _checks
from gossamer.losses import Loss

#: How the step size changes with the round t = 1, 2, ...: rate * schedule(t).
Schedule = str | Callable[[int], float]

SCHEDULES = ("constant", "inverse_sqrt")


class Step(NamedTuple):
    """What a rule decided: all coefficients times ``keep``, a new one, and the offset and level from now on."""

    keep: float
    coefficient: float
    offset: float
    level: float


class Rule:
    """One update of the model. A subclass says `step`; its fields include rate, schedule and fit_intercept."""

    twin: ClassVar[str | None] = None
    rate: float
    schedule: Schedule
    fit_intercept: bool

    def step(
        self, loss: Loss, value: float, offset: float, y: float, kappa: float, rate: float, weight: float
    ) -> Step:
        """The update for an example with f(x) = ``value`` (without the offset) and k(x, x) = ``kappa``."""
        raise NotImplementedError

    def check(self, loss: Loss) -> None:
        """Raise if the rule and the loss do not go together."""
        if self.fit_intercept and loss.target == "none":
            raise _checks.wrong(self, "fit_intercept", f"False for {type(loss).__name__}", True)

    def check_rates(self, rates: NDArray[np.float64], first: int) -> None:
        """Raise if a step size of the rounds first, first + 1, ... is out of range."""
        bad = ~((rates > 0) & np.isfinite(rates))
        if bad.any():
            t = first + int(np.argmax(bad))
            raise _checks.wrong(self, "schedule", "positive and finite", f"{rates[t - first]:g} at t = {t}")

    def rates(self, first: int, count: int) -> NDArray[np.float64]:
        """The step sizes of the rounds first ... first + count - 1."""
        times = np.arange(first, first + count)
        if callable(self.schedule):
            factors = np.array([float(self.schedule(int(t))) for t in times], dtype=np.float64)
        else:
            factors = np.ones(count) if self.schedule == "constant" else 1.0 / np.sqrt(times)
        return np.asarray(self.rate * factors)

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        """The C++ twin's name and numbers; None for a rule without one."""
        name = type(self).__dict__.get("twin")
        return None if name is None else (name, self.numbers())

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes: rate, 1 if it falls with 1 / sqrt(t), intercept, then its own."""
        return (float(self.rate), float(self.schedule == "inverse_sqrt"), float(self.fit_intercept))

    def _check_common(self) -> None:
        _checks.number(self, "rate", self.rate, 0.0, math.inf)
        if not callable(self.schedule):
            _checks.one_of(self, "schedule", self.schedule, SCHEDULES)
        _checks.one_of(self, "fit_intercept", self.fit_intercept, [False, True])


@dataclass(frozen=True)
class Gradient(Rule):
    """NORMA: a gradient step on loss + reg / 2 ||f||^2 (Kivinen, Smola, Williamson 2004, equations (9)-(18)).

    f <- (1 - rate_t reg) f - rate_t slope k(x, .),   offset <- offset - rate_t slope

    Parameters
    ----------
    rate : eta, the step size; rate * reg < 1.
    reg : lambda, the weight of the norm; 0 never forgets.
    schedule : "constant", "inverse_sqrt" (rate / sqrt(t)), or a function t -> factor, t = 1, 2, ...
    fit_intercept : whether an offset is learned.

    >>> from gossamer.losses import Hinge
    >>> Gradient(rate=0.5, reg=0.1).step(Hinge(), 0.2, 0.0, 1.0, 1.0, rate=0.5, weight=1.0)
    Step(keep=0.95, coefficient=0.5, offset=0.0, level=1.0)
    """

    twin: ClassVar[str] = "gradient"
    rate: float = 0.5
    reg: float = 0.01
    schedule: Schedule = "constant"
    fit_intercept: bool = False

    def __post_init__(self) -> None:
        self._check_common()
        _checks.number(self, "reg", self.reg, 0.0, math.inf, "left")
        if not callable(self.schedule) and self.rate * self.reg >= 1:
            raise _checks.wrong(self, "rate", "a number with rate * reg < 1", f"{self.rate} * {self.reg}")

    def step(
        self, loss: Loss, value: float, offset: float, y: float, kappa: float, rate: float, weight: float
    ) -> Step:
        z = value + offset
        move = -(rate * weight) * float(loss.slope(z, y))
        return Step(
            keep=1.0 - rate * self.reg,
            coefficient=move if kappa > 0 else 0.0,
            offset=offset + move if self.fit_intercept else offset,
            level=loss.adapt(z, y, rate * weight),
        )

    def check_rates(self, rates: NDArray[np.float64], first: int) -> None:
        super().check_rates(rates, first)
        product = rates * self.reg
        # rate * reg = 1 erases f: tolerable only while there is nothing to erase, at t = 1 of rate = 1 / (reg t)
        bad = (product >= 1) & ~((product == 1) & (np.arange(first, first + len(rates)) == 1))
        if bad.any():
            t = first + int(np.argmax(bad))
            raise _checks.wrong(self, "schedule", "such that rate * reg < 1", f"{product[t - first]:g} at t = {t}")

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.reg))


@dataclass(frozen=True)
class Implicit(Rule):
    """ILK: the exact minimiser of ||f - f_t||^2 / 2 + rate_t (reg / 2 ||f||^2 + C loss(f)) (Cheng et al. 2006,
    equations (6)-(16)); with a bounded budget it is SILK. With c = rate_t C / (1 + rate_t reg):

    f <- f / (1 + rate_t reg) + a k(x, .),   a = argmin kappa a^2 / 2 + c loss(f(x) / (1 + rate_t reg) + a kappa)

    Parameters
    ----------
    C : weight of the loss; ``inf`` (for losses with a closed form) projects onto zero loss.
    rate, reg, schedule : eta, lambda and how eta changes; any positive values.
    fit_intercept : whether an offset is learned, by a joint step (ALGORITHMS 2.5).
    joint : for a loss with ``nu``, whether its level moves in one joint implicit step with f (ALGORITHMS 2.3a) or by
        the explicit rule that keeps the alarm rate at nu (2.3b, the default).

    >>> from gossamer.losses import Hinge
    >>> Implicit(C=10.0).step(Hinge(), 0.25, 0.0, 1.0, 1.0, rate=1.0, weight=1.0)
    Step(keep=1.0, coefficient=0.75, offset=0.0, level=1.0)
    """

    twin: ClassVar[str] = "implicit"
    C: float = 1.0
    rate: float = 1.0
    reg: float = 0.0
    schedule: Schedule = "constant"
    fit_intercept: bool = False
    joint: bool = False

    def __post_init__(self) -> None:
        self._check_common()
        _checks.number(self, "C", self.C, 0.0, math.inf, "right")
        _checks.number(self, "reg", self.reg, 0.0, math.inf, "left")
        _checks.one_of(self, "joint", self.joint, [False, True])

    def check(self, loss: Loss) -> None:
        super().check(loss)
        if getattr(loss, "margin", None) == 0 and not loss.adapts:
            raise _checks.wrong(loss, "margin", "positive with Implicit (f = 0 would never be left)", 0)
        if self.joint and not loss.adapts:
            raise _checks.wrong(self, "joint", "False for a loss without nu", True)
        if self.joint and type(loss).joint is Loss.joint:
            loss.joint(0.0, 0.0, 1.0, 1.0, 1.0)
        if math.isinf(self.C) and (loss.adapts or loss.twin in (None, "logistic")):
            raise _checks.wrong(self, "C", f"finite for {type(loss).__name__}", self.C)

    def step(
        self, loss: Loss, value: float, offset: float, y: float, kappa: float, rate: float, weight: float
    ) -> Step:
        grow = 1.0 + rate * self.reg
        keep = 1.0 / grow
        p = keep * value + offset
        reach = kappa + grow if self.fit_intercept else kappa  # how far the score moves per unit of coefficient
        move, level = 0.0, loss.level
        if weight > 0:
            level_rate = rate * self.C * weight
            if self.joint:
                # with kappa = 0 only the level can move: a tiny reach gives the same limit
                move, level = loss.joint(p, y, max(reach, TINY), level_rate * keep, level_rate)
            else:
                level = loss.adapt(value + offset, y, level_rate) if loss.adapts else level
                move = loss.implicit(p, y, reach, level_rate * keep) if reach > 0 else 0.0
        return Step(
            keep=keep,
            coefficient=move if kappa > 0 else 0.0,
            offset=offset + grow * move if self.fit_intercept else offset,
            level=level,
        )

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.C), float(self.reg), float(self.joint))


#: What counts as zero for k(x, x).
TINY = 1e-300


def as_rule(rule: Any) -> Rule:
    """A Rule, or a clear error."""
    if isinstance(rule, Rule):
        return rule
    raise _checks.wrong("Learner", "rule", "a Rule, such as Implicit(C=1.0)", rule)
