"""Rules that descend: explicit and implicit gradient steps, and stochastic meta-descent."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.losses import Loss
from gossamer.rules.base import TINY, Example, Rule, Schedule, Step, Trace

#: The largest ratio of SVMD's step size to its first.
LARGEST_GROWTH = 1e6


def stable(size: float, curvature: float, reach: float) -> float:
    """The size of a gradient step that goes no further than to the minimum; ``reach``: how far it moves the score.

    The minimum of a parabola of this curvature is 1 / (curvature * reach) away. Steps of twice that length diverge;
    with a budget that drops terms, so does any step beyond the minimum. Shorter steps are left as they are.

    >>> stable(0.5, 1.0, 1.5), stable(0.5, 1.0, 4.0), stable(0.5, 0.0, 4.0)
    (0.5, 0.25, 0.5)
    """
    pull = curvature * reach
    return size if size * pull <= 1.0 else 1.0 / pull


def _stable_one(size: float, loss: Loss, z: float, e: Example, slope: float, reach: float) -> float:
    """`stable` for a single score. Where a loss of real targets is linear, a step that moves the score by 2 or more
    ends at its minimum too."""
    size = stable(size, loss.curvature(z, e.y), reach)
    if loss.target == "real" and loss.twin is not None and size * reach >= 2.0 and slope != 0:
        size = min(size, abs(loss.implicit(z, e.y, reach, math.inf) / slope))
    return size


def _stable_many(size: float, loss: Loss, e: Example, slope: Floats) -> float:
    """`stable` for several classes, by the curvature along the slope."""
    square = float(slope @ slope)
    along = float(slope @ loss.bend(e.value, e.aim, slope)) / square if square > 0 else 0.0
    return stable(size, along, e.kappa)


def _stable_each(size: float, loss: Any, e: Example, slope: Floats) -> Floats:
    """`_stable_one` for each of several targets."""
    each = zip(e.value.tolist(), e.y.tolist(), slope.tolist(), strict=True)
    return np.array([_stable_one(size, loss.base, z, e._replace(y=y), s, e.kappa) for z, y, s in each])


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
    shorten : whether steps are shortened as below; False takes them as in the paper.

    A step that would go past the minimum of the loss, rate_t * curvature * k(x, x) > 1 (with an offset, k(x, x) + 1),
    goes to the minimum: rate_t = 1 / (curvature * k(x, x)), see `stable`. The curvature is 1 for the squared losses, 0
    for piecewise linear losses; with real targets, their steps end at the minimum where rate_t * k(x, x) >= 2.

    With several classes: the rows of the right class and of its runner-up (ALGORITHMS 1.10).

    >>> from gossamer.losses import Hinge
    >>> Gradient(rate=0.5, reg=0.1).step(Hinge(), Example(0.2, 0.0, 1.0, 1.0, 0.5))[:3]
    (0.95, 0.5, 0.0)
    """

    twin: ClassVar[str] = "gradient"
    aliases: ClassVar[tuple[str, ...]] = ("norma",)
    rate: float = 0.5
    reg: float = 0.01
    schedule: Schedule = "constant"
    fit_intercept: bool = False
    shorten: bool = True

    def __post_init__(self) -> None:
        self._check_common()
        _checks.number(self, "reg", self.reg, 0.0, math.inf, "left")
        _checks.one_of(self, "shorten", self.shorten, [False, True])
        if not callable(self.schedule) and self.rate * self.reg >= 1:
            raise _checks.wrong(self, "rate", "a number with rate * reg < 1", f"{self.rate} * {self.reg}")

    def step(self, loss: Loss, e: Example) -> Step:
        if loss.many:
            slope = loss.slope(e.value, e.aim)
            size: Any = e.rate * e.weight
            if self.shorten:
                size = (_stable_each if loss.target == "several" else _stable_many)(size, loss, e, slope)
            return Step(1.0 - e.rate * self.reg, -size * slope, e.offset, loss.level)
        z = e.value + e.offset
        slope = float(loss.slope(z, e.y))
        size = e.rate * e.weight
        if self.shorten:
            size = _stable_one(size, loss, z, e, slope, e.kappa + self.fit_intercept)
        move = -size * slope
        return Step(
            keep=1.0 - e.rate * self.reg,
            coefficient=move,
            offset=e.offset + move if self.fit_intercept else e.offset,
            level=loss.adapt(z, e.y, e.rate * e.weight),
        )

    def check_rates(self, rates: Floats, first: int) -> None:
        super().check_rates(rates, first)
        product = rates * self.reg
        # rate * reg = 1 erases f: tolerable only while there is nothing to erase, at t = 1 of rate = 1 / (reg t)
        bad = (product >= 1) & ~((product == 1) & (np.arange(first, first + len(rates)) == 1))
        if bad.any():
            t = first + int(np.argmax(bad))
            raise _checks.wrong(self, "schedule", "such that rate * reg < 1", f"{product[t - first]:g} at t = {t}")

    def numbers(self) -> tuple[float, ...]:
        # with the default, the numbers are those of older versions: stored banks are keyed by them
        return (*super().numbers(), float(self.reg), *([] if self.shorten else [0.0]))


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
    >>> Implicit(C=10.0).step(Hinge(), Example(0.25, 0.0, 1.0, 1.0, 1.0))[:3]
    (1.0, 0.75, 0.0)
    """

    twin: ClassVar[str] = "implicit"
    aliases: ClassVar[tuple[str, ...]] = ("ilk",)
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
        base = getattr(loss, "base", loss)  # of several targets
        if getattr(base, "margin", None) == 0 and not loss.adapts:
            raise _checks.wrong(base, "margin", "positive with Implicit (f = 0 would never be left)", 0)
        if loss.many and type(loss).implicit_many is Loss.implicit_many:
            raise _checks.wrong("Learner", "loss", "one that defines implicit_many with Implicit", loss)
        if self.joint and not loss.adapts:
            raise _checks.wrong(self, "joint", "False for a loss without nu", True)
        if self.joint and type(loss).joint is Loss.joint:
            loss.joint(0.0, 0.0, 1.0, 1.0, 1.0)
        if math.isinf(self.C) and (loss.adapts or base.twin in (None, "logistic", "softmax", "structured")):
            raise _checks.wrong(self, "C", f"finite for {type(base).__name__}", self.C)

    def step(self, loss: Loss, e: Example) -> Step:
        grow = 1.0 + e.rate * self.reg
        keep = 1.0 / grow
        if loss.many:
            moves, c = np.zeros(len(e.value)), e.rate * self.C * e.weight * keep
            if e.kappa > 0 and e.weight > 0:
                moves = loss.implicit_many(keep * e.value, e.aim, e.kappa, c, e.value)
            return Step(keep, moves, e.offset, loss.level)
        p = keep * e.value + e.offset
        reach = e.kappa + grow if self.fit_intercept else e.kappa  # how far the score moves per unit of coefficient
        move, level = 0.0, loss.level
        level_rate = e.rate * self.C * e.weight if e.weight > 0 else 0.0
        if level_rate > 0:  # a tiny weight may have become 0
            if self.joint:
                # with e.kappa = 0 only the level can move: a tiny reach gives the same limit
                move, level = loss.joint(p, e.y, max(reach, TINY), level_rate * keep, level_rate)
            else:
                level = loss.adapt(e.value + e.offset, e.y, level_rate) if loss.adapts else level
                move = loss.implicit(p, e.y, reach, level_rate * keep) if reach > 0 else 0.0
        return Step(
            keep=keep,
            coefficient=move,
            offset=e.offset + grow * move if self.fit_intercept else e.offset,
            level=level,
        )

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.C), float(self.reg), float(self.joint))


@dataclass(frozen=True)
class SVMD(Rule):
    """Vishwanathan, Schraudolph, Smola (2006): the step size descends too, by stochastic meta-descent (ALGORITHMS 4).

    With g = reg f + slope k(x, .), the gradient of NORMA, and v (with memory 1) the derivative of f by log(rate):
    rate <- rate max(1/2, 1 - meta <g, v>),  v <- memory v - rate (g + memory H v),  f <- f - rate g.

    Parameters
    ----------
    rate : eta_0, the first step size.
    reg : c, the weight of the norm.
    meta : mu, how fast the step size adapts; 0 is NORMA.
    memory : lambda in [0, 1], how long the past counts.
    C : None for gradient steps; a number takes implicit steps with this weight of the loss, with the adapted rate.

    Steps of f and of v that overshoot are shortened as those of `Gradient`.

    >>> from gossamer.losses import Hinge
    >>> SVMD(rate=0.5, reg=0.1).step(Hinge(), Example(0.2, 0.0, 1.0, 1.0, trace=0.0, last_rate=0.5))[:2]
    (0.95, 0.5)
    """

    twin: ClassVar[str] = "svmd"
    needs_trace: ClassVar[bool] = True
    rate: float = 0.5
    reg: float = 0.01
    meta: float = 0.1
    memory: float = 0.95
    C: float | None = None

    def __post_init__(self) -> None:
        _checks.number(self, "rate", self.rate, 0.0, math.inf)
        _checks.number(self, "reg", self.reg, 0.0, math.inf, "left")
        _checks.number(self, "meta", self.meta, 0.0, math.inf, "left")
        _checks.number(self, "memory", self.memory, 0.0, 1.0, "both")
        if self.C is not None:
            _checks.number(self, "C", self.C, 0.0, math.inf)
        if self.rate * self.reg >= 1:
            raise _checks.wrong(self, "rate", "a number with rate * reg < 1", f"{self.rate} * {self.reg}")

    @property
    def needs_norm(self) -> bool:
        return True

    def check(self, loss: Loss) -> None:
        super().check(loss)
        if getattr(loss, "label_kernel", None) is not None:
            raise _checks.wrong("Learner", "loss", "without a label kernel with SVMD", loss)
        if self.C is not None:
            Implicit(self.C).check(loss)

    def step(self, loss: Loss, e: Example) -> Step:
        many = loss.many
        size = (1.0 if self.C is None else self.C) * e.weight
        z, y, v = e.value + e.offset, e.aim if many else e.y, e.trace
        slope = loss.slope(z, y)
        growth = self.meta * (self.reg * e.inner + size * float(np.dot(slope, v)))
        lost = not math.isfinite(growth)  # the trace has overflowed: start it again
        rate = e.last_rate
        if self.meta > 0 and not lost:
            rate *= max(0.5, 1 - growth)
            rate = min(max(rate, 1e-12), LARGEST_GROWTH * self.rate, 0.999 / self.reg if self.reg > 0 else math.inf)
        decay = 1.0 - rate * self.reg
        bend = 0.0 * slope if lost else loss.bend(z, y, v)
        keep_trace = 0.0 if lost else self.memory * decay
        step = (
            _stable_many(rate * size, loss, e, slope) if many
            else _stable_one(rate * size, loss, z, e, float(slope), e.kappa)
        )  # fmt: skip
        trace = Trace(keep_trace, rate * self.reg, -step * (slope + self.memory * bend), rate)
        keep, move = decay, -step * slope
        if self.C is not None:
            keep = 1.0 / (1.0 + rate * self.reg)
            if e.kappa > 0 and e.weight > 0:
                p, c = keep * e.value, rate * size * keep
                move = loss.implicit_many(p, y, e.kappa, c, e.value) if many else loss.implicit(p, y, e.kappa, c)
        return Step(keep, move, e.offset, loss.level if many else loss.adapt(z, y, rate * size), trace)

    def numbers(self) -> tuple[float, ...]:
        own = (self.reg, self.meta, self.memory, 0.0 if self.C is None else self.C)
        return (*super().numbers(), *map(float, own))
