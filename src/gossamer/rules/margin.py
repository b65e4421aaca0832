"""Rules that correct a margin: perceptron, projection, passive-aggressive, ALMA, ROMMA, Adatron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from gossamer import _checks
from gossamer.losses import EpsilonInsensitive, Hinge, Loss, Novelty
from gossamer.rules.base import Example, Rule, Step, goes_with
from gossamer.rules.descent import Gradient

#: The smallest margin of ROMMA, as a share of sqrt(k(x, x)): a smaller one means that the data are not separable.
LEAST_MARGIN = 1e-4


@dataclass(frozen=True)
class Perceptron(Rule):
    """The kernel perceptron: on a mistake (y f(x) <= 0), f <- f + y k(x, .) (Rosenblatt 1958; ALGORITHMS 6).

    It is `Gradient` with rate 1 and no forgetting, and the perceptron with ``Hinge(0.0)``, whose margin is 0; with
    several classes, on ``Multiclass(margin=0.0)``, the right class gains and the predicted class loses.

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
    weighs: ClassVar[bool] = False
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
        if self.radius is not None and move != 0 and norm2 > self.radius * self.radius:
            keep = self.radius / math.sqrt(norm2)
        return Step(keep, keep * move, e.offset, loss.level)

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), 0.0, math.inf, math.inf if self.radius is None else float(self.radius))


@dataclass(frozen=True)
class PassiveAggressive(Rule):
    """Crammer, Dekel, Keshet, Shalev-Shwartz, Singer (2006): the step to zero loss, limited by C (ALGORITHMS 7).

    With the loss l and its step a = l / k(x, x) to zero: PA takes a, PA-I min(C, a), PA-II l / (k(x, x) + 1 / (2 C)).

    Parameters
    ----------
    C : how far noise may pull; inf for ``variant="PA"``.
    variant : "PA", "PA-I" or "PA-II".

    >>> PassiveAggressive(C=0.5).step(Hinge(), Example(0.25, 0.0, 1.0, 1.0, 1.0))[:2]
    (1.0, 0.5)
    """

    twin: ClassVar[str] = "projection"
    aliases: ClassVar[tuple[str, ...]] = ("pa",)
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
    weighs: ClassVar[bool] = False
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
        """B, by default sqrt(8) / alpha."""
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
    weighs: ClassVar[bool] = False
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


def _unit_hinge(rule: Rule, loss: Loss) -> None:
    """Check that the loss is the plain hinge: these algorithms define the margin themselves."""
    goes_with(rule, loss, Hinge)
    if loss.level != 1.0:
        raise _checks.wrong(loss, "margin", f"1 with {type(rule).__name__}", loss.level)
