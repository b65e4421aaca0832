"""Losses of a single score: classification, regression, quantiles, novelty, with closed forms of the implicit step
(ALGORITHMS 2.2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from gossamer import _checks
from gossamer._registry import as_part
from gossamer.losses.base import LEAST_STIFFNESS, Loss, Real, over
from gossamer.losses.multiclass import Multiclass, OneVsRest, Softmax


def _positive(value: Real) -> Real:
    return np.maximum(0.0, value) if isinstance(value, np.ndarray) else max(0.0, value)


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def _nu(loss: Any, closed: str = "neither") -> None:
    if loss.nu is not None:
        _checks.number(loss, "nu", loss.nu, 0.0, 1.0, closed)


def _nu_number(loss: Any) -> float:
    return math.nan if loss.nu is None else float(loss.nu)


@dataclass(frozen=True)
class _Margin(Loss):
    """A loss below a margin, which may adapt."""

    steepest: ClassVar[float] = 1.0
    adaptive: ClassVar[str] = "margin"
    margin: float = 1.0
    nu: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        # one that adapts may be below 0 for a while
        least, closed = (0.0, "left") if self.nu is None else (-math.inf, "neither")
        _checks.number(self, "margin", self.margin, least, math.inf, closed)
        _nu(self, "right")

    def numbers(self) -> tuple[float, ...]:
        return (float(self.margin), _nu_number(self))


@dataclass(frozen=True)
class Hinge(_Margin):
    """max(0, margin - y z); slope -y where y z <= margin (so that margin 0 is the perceptron). margin is rho.

    With ``nu``, margin <- margin + rate (nu - [y z <= margin]): a fraction nu of margin errors
    (Kivinen et al. 2004, section IV, with the sign corrected).

    >>> Hinge().value(0.25, 1), Hinge().slope(0.25, 1), Hinge().prox(0.25, 1, 0.5)
    (0.75, -1.0, 0.75)
    """

    twin: ClassVar[str] = "hinge"
    target: ClassVar[str] = "binary"

    def value(self, z: Real, y: Real) -> Real:
        return _positive(self.margin - y * z)

    def slope(self, z: Real, y: Real) -> Real:
        return -y * (y * z <= self.margin) + 0.0

    def for_classes(self, classes: int | None) -> Loss | None:
        return None if self.adapts else Multiclass(classes=classes, margin=self.margin)

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        return y * _clip((self.margin - y * p) / kappa, 0.0, weight)

    def adapt(self, z: float, y: float, rate: float) -> float:
        return self.margin if self.nu is None else self.margin + rate * (self.nu - (y * z <= self.margin))


@dataclass(frozen=True)
class SquaredHinge(Loss):
    """max(0, margin - y z)^2 / 2.

    >>> SquaredHinge().value(0.5, 1), SquaredHinge().slope(0.5, 1), SquaredHinge().prox(0.5, 1, 1.0)
    (0.125, -0.5, 0.75)
    """

    twin: ClassVar[str] = "squared_hinge"
    target: ClassVar[str] = "binary"
    margin: float = 1.0

    def __post_init__(self) -> None:
        _checks.number(self, "margin", self.margin, 0.0, math.inf, "left")

    def value(self, z: Real, y: Real) -> Real:
        return 0.5 * _positive(self.margin - y * z) ** 2

    def slope(self, z: Real, y: Real) -> Real:
        return -y * _positive(self.margin - y * z)

    def curvature(self, z: float, y: float) -> float:
        return float(y * z < self.margin)

    def for_classes(self, classes: int | None) -> Loss | None:
        return OneVsRest(classes, self.margin)

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        return y * max(0.0, self.margin - y * p) / (over(1.0, weight) + kappa)

    def numbers(self) -> tuple[float, ...]:
        return (float(self.margin),)


@dataclass(frozen=True)
class Logistic(Loss):
    """log(1 + exp(-y z)).

    >>> round(float(Logistic().value(0.0, 1)), 6), float(Logistic().slope(0.0, 1))
    (0.693147, -0.5)
    """

    twin: ClassVar[str] = "logistic"
    log_odds: ClassVar[bool] = True
    target: ClassVar[str] = "binary"
    steepest: ClassVar[float] = 1.0

    def value(self, z: Real, y: Real) -> Real:
        return np.logaddexp(0.0, -y * z)

    def slope(self, z: Real, y: Real) -> Real:
        return -y * expit(-y * z)

    def curvature(self, z: float, y: float) -> float:
        return float(expit(z) * expit(-z))

    def stiffness(self, z: float, y: float, slope: float) -> float:
        return max(LEAST_STIFFNESS, self.curvature(z, y))

    def for_classes(self, classes: int | None) -> Loss | None:
        return Softmax(classes)

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        """Safeguarded Newton for a = weight / (1 + exp(y p + a kappa)), ALGORITHMS 2.4."""
        if not math.isfinite(weight):
            raise _checks.wrong("Implicit", "C", "finite for Logistic", weight)
        m = y * p
        high = weight * float(expit(-m))
        low = weight * float(expit(-(m + kappa * high)))
        a = min(high, max(low, -m / kappa)) if kappa > 0 else low  # from the inflection Newton never overshoots
        for _ in range(100):
            q = float(expit(-(m + a * kappa)))
            residual = a - weight * q
            low, high = (low, a) if residual > 0 else (a, high)
            step = residual / (1.0 + weight * kappa * q * (1.0 - q))
            best = a - step if low < a - step < high else 0.5 * (low + high)
            if abs(best - a) <= 1e-15 * best or best in (low, high):
                return y * best
            a = best
        return y * a


@dataclass(frozen=True)
class Squared(Loss):
    """(y - z)^2 / 2.

    >>> Squared().value(0.0, 2.0), Squared().slope(0.0, 2.0), Squared().prox(0.0, 2.0, 1.0)
    (2.0, -2.0, 1.0)
    """

    twin: ClassVar[str] = "squared"

    def value(self, z: Real, y: Real) -> Real:
        return 0.5 * (y - z) ** 2

    def slope(self, z: Real, y: Real) -> Real:
        return z - y

    def curvature(self, z: float, y: float) -> float:
        return 1.0

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        return (y - p) / (over(1.0, weight) + kappa)


@dataclass(frozen=True)
class EpsilonInsensitive(Loss):
    """max(0, |y - z| - epsilon).

    With ``nu``, epsilon <- epsilon + rate ([|y - z| > epsilon] - nu), not below 0: a fraction nu of the examples
    lies outside the tube (Kivinen et al. 2004, equation (22)).

    >>> EpsilonInsensitive(0.1).value(0.0, 2.0), EpsilonInsensitive(0.1).prox(0.0, 2.0, 1.0)
    (1.9, 1.0)
    """

    twin: ClassVar[str] = "epsilon_insensitive"
    steepest: ClassVar[float] = 1.0
    adaptive: ClassVar[str] = "epsilon"
    epsilon: float = 0.1
    nu: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        _checks.number(self, "epsilon", self.epsilon, 0.0, math.inf, "left")
        _nu(self)

    def value(self, z: Real, y: Real) -> Real:
        return _positive(abs(y - z) - self.epsilon)

    def slope(self, z: Real, y: Real) -> Real:
        return np.sign(z - y) * (abs(y - z) > self.epsilon) + 0.0

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        r = y - p
        return math.copysign(min(weight, max(0.0, abs(r) - self.epsilon) / kappa), r)

    def adapt(self, z: float, y: float, rate: float) -> float:
        if self.nu is None:
            return self.epsilon
        return max(0.0, self.epsilon + rate * ((abs(y - z) > self.epsilon) - self.nu))

    def joint(self, p: float, y: float, kappa: float, weight: float, rate: float) -> tuple[float, float]:
        assert self.nu is not None
        r = y - p
        beta = _clip((abs(r) - self.epsilon + rate * self.nu) / (weight * kappa + rate), 0.0, 1.0)
        level = self.epsilon + rate * (beta - self.nu)
        if level < 0.0:
            level, beta = 0.0, _clip(abs(r) / (weight * kappa), 0.0, 1.0)
        return math.copysign(weight * beta, r), level

    def numbers(self) -> tuple[float, ...]:
        return (float(self.epsilon), _nu_number(self))


@dataclass(frozen=True)
class Huber(Loss):
    """|r| - delta / 2 if |r| > delta, else r^2 / (2 delta), with r = y - z (Kivinen et al. 2004, equation (23);
    delta is sigma there). Slopes lie in [-1, 1]; ``standard=True`` multiplies by delta, the textbook form.

    With ``nu``, delta follows the stream. ``adapts_by="quantile"`` (the paper): delta + rate ([|r| > delta] - nu), so
    that a fraction nu of the residuals is larger; ``"gradient"``: delta + rate / 2 (min(1, (r / delta)^2) - nu).

    >>> Huber(1.0).value(0.0, 3.0), Huber(1.0).slope(0.0, 3.0), Huber(2.0).value(0.0, 1.0)
    (2.5, -1.0, 0.25)
    """

    twin: ClassVar[str] = "huber"
    steepest: ClassVar[float] = 1.0
    adaptive: ClassVar[str] = "delta"
    smallest: ClassVar[float] = 1e-6  # delta never adapts below this
    delta: float = 1.0
    standard: bool = False
    nu: float | None = field(default=None, kw_only=True)
    adapts_by: str = field(default="quantile", kw_only=True)

    def __post_init__(self) -> None:
        _checks.number(self, "delta", self.delta, 0.0, math.inf)
        _checks.one_of(self, "standard", self.standard, [False, True])
        _checks.one_of(self, "adapts_by", self.adapts_by, ["quantile", "gradient"])
        _nu(self)

    @property
    def factor(self) -> float:
        """The factor of the standard form, which is also the largest slope."""
        return self.delta if self.standard else 1.0

    @property
    def lipschitz(self) -> float:
        return self.factor

    def value(self, z: Real, y: Real) -> Real:
        r = abs(y - z)
        inside = np.minimum(r, self.delta) if isinstance(r, np.ndarray) else min(r, self.delta)
        return self.factor * (inside * inside / (2 * self.delta) + (r - inside))

    def slope(self, z: Real, y: Real) -> Real:
        r = (z - y) / self.delta
        return self.factor * (np.clip(r, -1.0, 1.0) if isinstance(r, np.ndarray) else _clip(r, -1.0, 1.0))

    def curvature(self, z: float, y: float) -> float:
        return self.factor / self.delta if abs(z - y) < self.delta else 0.0

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        weight = weight * self.factor
        return _clip((y - p) / (over(self.delta, weight) + kappa), -weight, weight)

    def adapt(self, z: float, y: float, rate: float) -> float:
        if self.nu is None:
            return self.delta
        r = abs(y - z)
        if self.adapts_by == "quantile":
            change = rate * ((r > self.delta) - self.nu)
        else:
            change = 0.5 * rate * (min(1.0, (r / self.delta) ** 2) - self.nu)
        return max(self.smallest, self.delta + change)

    def numbers(self) -> tuple[float, ...]:
        return (float(self.delta), _nu_number(self), float(self.standard), float(self.adapts_by == "gradient"))


@dataclass(frozen=True)
class Pinball(Loss):
    """max(quantile r, (quantile - 1) r) with r = y - z: its minimiser is a conditional quantile.

    >>> Pinball(0.9).value(0.0, 1.0), Pinball(0.9).prox(0.0, 1.0, 0.5)
    (0.9, 0.45)
    """

    twin: ClassVar[str] = "pinball"
    quantile: float = 0.5

    def __post_init__(self) -> None:
        _checks.number(self, "quantile", self.quantile, 0.0, 1.0)

    @property
    def lipschitz(self) -> float:
        return max(self.quantile, 1.0 - self.quantile)

    def value(self, z: Real, y: Real) -> Real:
        r = y - z
        high, low = self.quantile * r, (self.quantile - 1.0) * r
        return np.maximum(high, low) if isinstance(r, np.ndarray) else max(high, low)

    def slope(self, z: Real, y: Real) -> Real:
        r = y - z
        return -(self.quantile * (r > 0) + (self.quantile - 1.0) * (r < 0))

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        return _clip((y - p) / kappa, -weight * (1.0 - self.quantile), weight * self.quantile)

    def numbers(self) -> tuple[float, ...]:
        return (float(self.quantile),)


@dataclass(frozen=True)
class Novelty(_Margin):
    """max(0, margin - z), without a target: a score below the margin is an alarm. margin is rho.

    With ``nu``, margin <- margin + rate (nu - [z < margin]): a fraction nu of alarms (Kivinen et al. 2004, equation
    (20) with its sign corrected). The margin then starts where it is given, 0 for the detectors.

    >>> Novelty().value(0.25, 0.0), Novelty().slope(0.25, 0.0), Novelty().prox(0.25, 0.0, 0.5)
    (0.75, -1.0, 0.75)
    """

    twin: ClassVar[str] = "novelty"
    target: ClassVar[str] = "none"

    def value(self, z: Real, y: Real) -> Real:
        return _positive(self.margin - z)

    def slope(self, z: Real, y: Real) -> Real:
        return -1.0 * (z < self.margin)

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        return _clip((self.margin - p) / kappa, 0.0, weight)

    def adapt(self, z: float, y: float, rate: float) -> float:
        return self.margin if self.nu is None else self.margin + rate * (self.nu - (z < self.margin))

    def joint(self, p: float, y: float, kappa: float, weight: float, rate: float) -> tuple[float, float]:
        assert self.nu is not None
        beta = _clip((self.margin + rate * self.nu - p) / (weight * kappa + rate), 0.0, 1.0)
        return weight * beta, self.margin + rate * (self.nu - beta)


def as_loss(loss: Any) -> Loss:
    """A Loss from a Loss or a name.

    >>> as_loss("hinge"), as_loss("pinball:quantile=0.9")
    (Hinge(margin=1.0, nu=None), Pinball(quantile=0.9))
    """
    return as_part(Loss, loss, "loss", "a Loss or a name")
