"""Update rules: what one example does to the model, as pure functions of numbers.

A rule sees the score of the example, never the expansion: that is why each costs O(1) after the prediction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gossamer import _checks
from gossamer._loss import Loss
from gossamer._rule import TINY, Example, Rule, Schedule, Step, Trace, as_rule, goes_with
from gossamer.losses import EpsilonInsensitive, Hinge, Novelty

__all__ = [
    "ALMA",
    "ROMMA",
    "SVMD",
    "Adatron",
    "Example",
    "Gradient",
    "Implicit",
    "PassiveAggressive",
    "Perceptron",
    "Projection",
    "Rule",
    "Step",
    "as_rule",
]

#: How far above the first one SVMD's step size may rise.
LARGEST_GROWTH = 1e6
#: The least margin that ROMMA believes in, as a share of sqrt(k(x, x)): what is smaller is rounding, not separable.
LEAST_MARGIN = 1e-4


def stable(size: float, curvature: float, reach: float) -> float:
    """The size of a gradient step that goes no further than to the minimum; ``reach``: how far it moves the score.

    The minimum of a parabola of this curvature is 1 / (curvature * reach) away. Steps of twice that diverge; with a
    budget that drops terms, where each error is made good later, all that go beyond it do. Shorter ones stay as is.

    >>> stable(0.5, 1.0, 1.5), stable(0.5, 1.0, 4.0), stable(0.5, 0.0, 4.0)
    (0.5, 0.25, 0.5)
    """
    pull = curvature * reach
    return size if size * pull <= 1.0 else 1.0 / pull


def _stable_one(size: float, loss: Loss, z: float, e: Example, slope: float, reach: float) -> float:
    """`stable` for a single score. Where a loss of real targets is a straight line, steps that move the score by 2 or
    more go no further than to its minimum either."""
    size = stable(size, loss.curvature(z, e.y), reach)
    if loss.target == "real" and loss.twin is not None and size * reach >= 2.0 and slope != 0:
        size = min(size, abs(loss.implicit(z, e.y, reach, math.inf) / slope))
    return size


def _stable_many(size: float, loss: Loss, e: Example, slope: NDArray[np.float64]) -> float:
    """`stable` for several classes, by the curvature along the slope."""
    square = float(slope @ slope)
    along = float(slope @ loss.bend(e.value, int(e.y), slope)) / square if square > 0 else 0.0
    return stable(size, along, e.kappa)


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
    shorten : whether steps are held back as below; False takes them all as the paper has them.

    A step that would go past the minimum of the loss, rate_t * curvature * k(x, x) > 1 (with an offset, k(x, x) + 1),
    goes to the minimum: rate_t = 1 / (curvature * k(x, x)), see `stable`. The curvature is 1 for the squared losses, 0
    for those of straight lines; with real targets, their steps go to the minimum where rate_t * k(x, x) >= 2.

    With several classes: the rows of the right class and of the one that most threatens it (ALGORITHMS 1.10).

    >>> from gossamer.losses import Hinge
    >>> Gradient(rate=0.5, reg=0.1).step(Hinge(), Example(0.2, 0.0, 1.0, 1.0, 0.5))[:3]
    (0.95, 0.5, 0.0)
    """

    twin: ClassVar[str] = "gradient"
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
        if loss.target == "label":
            slope = loss.slope(e.value, int(e.y))
            size = e.rate * e.weight
            moves = -(_stable_many(size, loss, e, slope) if self.shorten else size) * slope
            return Step(1.0 - e.rate * self.reg, moves, e.offset, loss.level)
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

    def check_rates(self, rates: NDArray[np.float64], first: int) -> None:
        super().check_rates(rates, first)
        product = rates * self.reg
        # rate * reg = 1 erases f: tolerable only while there is nothing to erase, at t = 1 of rate = 1 / (reg t)
        bad = (product >= 1) & ~((product == 1) & (np.arange(first, first + len(rates)) == 1))
        if bad.any():
            t = first + int(np.argmax(bad))
            raise _checks.wrong(self, "schedule", "such that rate * reg < 1", f"{product[t - first]:g} at t = {t}")

    def numbers(self) -> tuple[float, ...]:
        # with the default, the numbers are those of older versions: states of a bank go by them
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
        if loss.target == "label" and type(loss).implicit_many is Loss.implicit_many:
            raise _checks.wrong("Learner", "loss", "one that defines implicit_many with Implicit", loss)
        if self.joint and not loss.adapts:
            raise _checks.wrong(self, "joint", "False for a loss without nu", True)
        if self.joint and type(loss).joint is Loss.joint:
            loss.joint(0.0, 0.0, 1.0, 1.0, 1.0)
        if math.isinf(self.C) and (loss.adapts or loss.twin in (None, "logistic", "softmax", "structured")):
            raise _checks.wrong(self, "C", f"finite for {type(loss).__name__}", self.C)

    def step(self, loss: Loss, e: Example) -> Step:
        grow = 1.0 + e.rate * self.reg
        keep = 1.0 / grow
        if loss.target == "label":
            moves, c = np.zeros(len(e.value)), e.rate * self.C * e.weight * keep
            if e.kappa > 0 and e.weight > 0:
                moves = loss.implicit_many(keep * e.value, int(e.y), e.kappa, c, e.value)
            return Step(keep, moves, e.offset, loss.level)
        p = keep * e.value + e.offset
        reach = e.kappa + grow if self.fit_intercept else e.kappa  # how far the score moves per unit of coefficient
        move, level = 0.0, loss.level
        if e.weight > 0:
            level_rate = e.rate * self.C * e.weight
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
class Perceptron(Rule):
    """The kernel perceptron: on a mistake (y f(x) <= 0), f <- f + y k(x, .) (Rosenblatt 1958; ALGORITHMS 6).

    It is `Gradient` with rate 1 and no forgetting, and the perceptron with ``Hinge(0.0)``, whose margin is 0; with
    several classes, on ``Multiclass(margin=0.0)``, the right class gains and the one that beat it loses.

    >>> Perceptron().step(Hinge(0.0), Example(0.0, 0.0, 1.0, 1.0, 1.0))[:2]
    (1.0, 1.0)
    """

    twin: ClassVar[str] = "gradient"

    def check(self, loss: Loss) -> None:
        super().check(loss)
        if loss.target not in ("binary", "label"):
            raise _checks.wrong("Learner", "loss", "one of classes with Perceptron, such as Hinge(0.0)", loss)

    def step(self, loss: Loss, e: Example) -> Step:
        return Gradient(1.0, 0.0).step(loss, e)

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), 0.0)


@dataclass(frozen=True)
class Projection(Rule):
    """Herbster (2001), Figs. 2-4: project f onto the functions without loss on this example, then onto a norm ball.

    f <- f + (y - f(x)) / k(x, x) k(x, .) where y f(x) < 1 (or the loss's margin); for regression, to the edge of the
    epsilon tube; then f <- f radius / ||f|| where the norm is larger.

    Parameters
    ----------
    radius : gamma, the largest norm; None does not constrain it.

    >>> Projection().step(Hinge(), Example(0.25, 0.0, 1.0, 1.0, 1.0))[:2]
    (1.0, 0.75)
    >>> Projection(radius=0.5).step(Hinge(), Example(0.0, 0.0, 1.0, 1.0, 1.0))[:2]
    (0.5, 0.5)
    """

    twin: ClassVar[str] = "projection"
    radius: float | None = None

    def __post_init__(self) -> None:
        if self.radius is not None:
            _checks.number(self, "radius", self.radius, 0.0, math.inf)

    @property
    def needs_norm(self) -> bool:
        return self.radius is not None

    def check(self, loss: Loss) -> None:
        goes_with(self, loss, Hinge, EpsilonInsensitive, Novelty)
        if getattr(loss, "margin", 1.0) == 0:
            raise _checks.wrong(loss, "margin", "positive with Projection (f = 0 would never be left)", 0)

    def step(self, loss: Loss, e: Example) -> Step:
        if not (e.kappa > 0 and e.weight > 0):
            return Step(1.0, 0.0, e.offset, loss.level)
        move, keep = loss.implicit(e.value, e.y, e.kappa, math.inf), 1.0
        norm2 = e.norm2 + 2 * move * e.value + move * move * e.kappa
        if self.radius is not None and move != 0 and norm2 > self.radius**2:
            keep = self.radius / math.sqrt(norm2)
        return Step(keep, keep * move, e.offset, loss.level)

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), 0.0, math.inf, math.inf if self.radius is None else float(self.radius))


@dataclass(frozen=True)
class PassiveAggressive(Rule):
    """Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (2006): the step to zero loss, held back by C (ALGORITHMS 7).

    With the loss l and its step a = l / k(x, x) to zero: PA takes a, PA-I min(C, a), PA-II l / (k(x, x) + 1 / (2 C)).

    Parameters
    ----------
    C : how far noise may pull; inf for ``variant="PA"``.
    variant : "PA", "PA-I" or "PA-II".

    >>> PassiveAggressive(C=0.5).step(Hinge(), Example(0.25, 0.0, 1.0, 1.0, 1.0))[:2]
    (1.0, 0.5)
    """

    twin: ClassVar[str] = "projection"
    C: float = 1.0
    variant: str = "PA-I"

    def __post_init__(self) -> None:
        _checks.number(self, "C", self.C, 0.0, math.inf, "right")
        _checks.one_of(self, "variant", self.variant, ["PA", "PA-I", "PA-II"])
        if self.variant == "PA" and not math.isinf(self.C):
            raise _checks.wrong(self, "C", "inf for the variant 'PA'", self.C)

    check = Projection.check

    def step(self, loss: Loss, e: Example) -> Step:
        if not (e.kappa > 0 and e.weight > 0):
            return Step(1.0, 0.0, e.offset, loss.level)
        move = loss.implicit(e.value, e.y, e.kappa, math.inf)
        if self.variant == "PA-I":
            move = min(max(move, -self.C * e.weight), self.C * e.weight)
        elif self.variant == "PA-II":
            move *= e.kappa / (e.kappa + 1 / (2 * self.C * e.weight))
        return Step(1.0, move, e.offset, loss.level)

    def numbers(self) -> tuple[float, ...]:
        slack = ["PA", "PA-I", "PA-II"].index(self.variant)
        return (*super().numbers(), float(slack), float(self.C), math.inf)


@dataclass(frozen=True)
class ALMA(Rule):
    """ALMA_2, Gentile (2001): the approximate large margin algorithm (ALGORITHMS 5). Before the k-th correction,

    if y f(x) / sqrt(k(x, x)) <= (1 - alpha) B / sqrt(k):
    f <- f + C / sqrt(k) y k(x, .) / sqrt(k(x, x)), then f <- f / ||f|| where the norm exceeds 1.

    Parameters
    ----------
    alpha : in (0, 1]: how near to the largest margin (small is near); 1 corrects mistakes only (ALMA_0).
    B, C : the sizes of margin and step; None for B is sqrt(8) / alpha, its theory's choice.

    >>> ALMA(1.0).step(Hinge(), Example(0.0, 0.0, 1.0, 4.0, 1.0))[:2]
    (0.7071067811865475, 0.5)
    """

    twin: ClassVar[str] = "alma"
    alpha: float = 0.9
    B: float | None = None
    C: float = math.sqrt(2)

    def __post_init__(self) -> None:
        _checks.number(self, "alpha", self.alpha, 0.0, 1.0, "right")
        if self.B is not None:
            _checks.number(self, "B", self.B, 0.0, math.inf)
        _checks.number(self, "C", self.C, 0.0, math.inf)

    @property
    def needs_norm(self) -> bool:
        return True

    def check(self, loss: Loss) -> None:
        _unit_hinge(self, loss)

    @property
    def width(self) -> float:
        """B, or its theory's choice."""
        return math.sqrt(8) / self.alpha if self.B is None else self.B

    def step(self, loss: Loss, e: Example) -> Step:
        if not (e.kappa > 0 and e.weight > 0):
            return Step(1.0, 0.0, e.offset, loss.level)
        root, k = math.sqrt(e.kappa), e.updates + 1
        margin = e.y * e.value / root
        if margin > (1 - self.alpha) * self.width / math.sqrt(k):
            return Step(1.0, 0.0, e.offset, loss.level)
        size = self.C / math.sqrt(k)
        norm2 = e.norm2 + 2 * size * margin + size * size
        keep = 1 / math.sqrt(norm2) if norm2 > 1 else 1.0
        return Step(keep, keep * size * e.y / root, e.offset, loss.level)

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.alpha), float(self.width), float(self.C))


@dataclass(frozen=True)
class ROMMA(Rule):
    """Li, Long (2002): the relaxed online maximum margin algorithm (ALGORITHMS 8). On a mistake (``aggressive``: where
    y f(x) < 1), the smallest f that is right by 1 on this example and keeps <f, f_t> >= ||f_t||^2:

    f <- ((k N - y f(x)) f + N (y - f(x)) k(x, .)) / (k N - f(x)^2), k = k(x, x), N = ||f||^2.

    On data that no function separates, the norm would grow with every mistake, without end. 1 / ||f|| is the margin
    that f claims; where that would be less than `LEAST_MARGIN` of sqrt(k(x, x)), f is scaled down to it, which changes
    no prediction.

    Parameters
    ----------
    aggressive : also learn from examples that are right by less than 1.

    >>> ROMMA().step(Hinge(), Example(-0.5, 0.0, 1.0, 1.0, norm2=1.0))[:2]
    (2.0, 2.0)
    """

    twin: ClassVar[str] = "romma"
    aggressive: bool = False

    def __post_init__(self) -> None:
        _checks.one_of(self, "aggressive", self.aggressive, [False, True])

    @property
    def needs_norm(self) -> bool:
        return True

    def check(self, loss: Loss) -> None:
        _unit_hinge(self, loss)

    def step(self, loss: Loss, e: Example) -> Step:
        right, kn = e.y * e.value, e.kappa * e.norm2
        if not (e.kappa > 0 and e.weight > 0) or (right >= 1 if self.aggressive else right > 0):
            return Step(1.0, 0.0, e.offset, loss.level)
        den = kn - e.value * e.value
        if e.norm2 == 0 or right >= kn or not den > 1e-12 * kn:  # only the newest constraint binds, or start anew
            return Step(0.0, e.y / e.kappa, e.offset, loss.level)
        keep, move = (kn - right) / den, e.norm2 / den * (e.y - e.value)
        norm2 = keep * keep * e.norm2 + 2 * keep * move * e.value + move * move * e.kappa
        if norm2 * e.kappa * LEAST_MARGIN**2 > 1:
            size = 1 / (LEAST_MARGIN * math.sqrt(norm2 * e.kappa))
            keep, move = size * keep, size * move
        return Step(keep, move, e.offset, loss.level)

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.aggressive))


@dataclass(frozen=True)
class Adatron(Rule):
    """Kernel-Adatron, Friess, Cristianini, Campbell (1998): coordinate ascent on the dual (ALGORITHMS 9). The example's
    own coefficient a (0 when it is new) becomes clip(a + rate (1 - y f(x)), 0, C), times y.

    Examples that return under their id change their own coefficient, so that passes converge to the SVM without offset.

    Parameters
    ----------
    rate : eta; passes converge for rate < 2 / max k(x, x).
    C : the largest coefficient; inf for a hard margin.

    >>> Adatron(rate=0.5).step(Hinge(), Example(0.25, 0.0, 1.0, 1.0, 0.5))[:2]
    (1.0, 0.375)
    """

    twin: ClassVar[str] = "adatron"
    needs_ids: ClassVar[bool] = True
    rate: float = 1.0
    C: float = math.inf

    def __post_init__(self) -> None:
        _checks.number(self, "rate", self.rate, 0.0, math.inf)
        _checks.number(self, "C", self.C, 0.0, math.inf, "right")

    def check(self, loss: Loss) -> None:
        _unit_hinge(self, loss)

    def step(self, loss: Loss, e: Example) -> Step:
        if not (e.kappa > 0 and e.weight > 0):
            return Step(1.0, 0.0, e.offset, loss.level)
        now = e.y * e.own
        move = min(max(now + e.rate * (1 - e.y * e.value), 0.0), self.C * e.weight) - now
        return Step(1.0, e.y * move, e.offset, loss.level)

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.C))


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
        many = loss.target == "label"
        size = (1.0 if self.C is None else self.C) * e.weight
        z, y, v = e.value + e.offset, int(e.y) if many else e.y, e.trace
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
                move = loss.implicit_many(p, int(y), e.kappa, c, e.value) if many else loss.implicit(p, y, e.kappa, c)
        return Step(keep, move, e.offset, loss.level if many else loss.adapt(z, y, rate * size), trace)

    def numbers(self) -> tuple[float, ...]:
        own = (self.reg, self.meta, self.memory, 0.0 if self.C is None else self.C)
        return (*super().numbers(), *map(float, own))


def _unit_hinge(rule: Rule, loss: Loss) -> None:
    """These algorithms have their own idea of a margin: the loss is the plain hinge."""
    goes_with(rule, loss, Hinge)
    if loss.level != 1.0:
        raise _checks.wrong(loss, "margin", f"1 with {type(rule).__name__}", loss.level)
