"""The contract of a loss, and `check_loss`, which validates a loss that a user has written."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq

from gossamer import _checks
from gossamer._registry import twin_of
from gossamer._typing import Array

#: The least curvature that a second-order step with a smooth loss of classes counts.
LEAST_STIFFNESS = 1e-4

Real = Any  # a float, or an array of them: every formula of a loss is written for both


def over(value: float, weight: float) -> float:
    """value / weight; infinite for a weight so small that it has become 0.

    >>> over(1.0, 4.0), over(1.0, 0.0)
    (0.25, inf)
    """
    return value / weight if weight > 0 else math.inf


class Loss:
    """A convex function of the score. ``target`` says what y is: "binary" (-1, +1) and "label" (0, 1, ...; then the
    score is a vector, one entry per class) for the task classification, "real" for regression, "none" for novelty;
    "several" if y is a vector, one real or binary target for each entry of the score.

    A loss with a ``nu`` has a level (margin, epsilon or delta) that follows the stream: `at` gives the loss at another
    level, `adapt` the level after one more example.
    """

    twin: ClassVar[str | None] = None
    target: ClassVar[str] = "real"
    #: The largest |slope|; inf if it is unbounded.
    steepest: ClassVar[float] = math.inf
    #: The field that adapts when ``nu`` is given.
    adaptive: ClassVar[str | None] = None
    #: The score of two classes, as a part of that of each class when a third comes: g_1 = -g_0 = widening * f.
    widening: ClassVar[float] = 0.5
    #: Whether scores are log-odds: their logistic function, or softmax, is a probability.
    log_odds: ClassVar[bool] = False

    @property
    def many(self) -> bool:
        """Whether the score is a vector: an entry for each class or target."""
        return self.target in ("label", "several")

    def value(self, z: Real, y: Real) -> Real:
        """The loss of score z."""
        raise NotImplementedError

    def values(self, Z: Any, y: Any) -> Any:
        """The loss of every row. With a score per class, a class that is not known yet has the score -inf."""
        if self.target != "label":
            return self.value(Z, y)
        known = np.isfinite(Z)
        pairs = ((z[k], int(np.count_nonzero(k[:label]))) for z, k, label in zip(Z, known, y, strict=True))
        return np.array([self.value(z, label) for z, label in pairs])

    def slope(self, z: Real, y: Real) -> Real:
        """A subgradient of the loss in z."""
        raise NotImplementedError

    def implicit(self, p: float, y: float, kappa: float, weight: float) -> float:
        """The a that minimises kappa a^2 / 2 + weight * value(p + a kappa, y), by root search.

        a + weight * slope(p + a kappa) is increasing in a, and its root lies between 0 and the explicit step.
        """
        if not math.isfinite(weight):
            raise _checks.wrong("Implicit", "C", f"finite for {type(self).__name__}", weight)

        def residual(a: float) -> float:
            return a + weight * float(self.slope(p + a * kappa, y))

        explicit = -weight * float(self.slope(p, y))
        if explicit == 0.0 or residual(explicit) == 0.0:
            return explicit
        return float(brentq(residual, min(0.0, explicit), max(0.0, explicit), xtol=1e-300, rtol=1e-15, maxiter=5000))

    def prox(self, z: float, y: float, step: float) -> float:
        """argmin_u (u - z)^2 / 2 + step * value(u, y)."""
        return z + self.implicit(z, y, 1.0, step)

    @property
    def lipschitz(self) -> float:
        """The largest |slope|, inf if it is unbounded (ALGORITHMS 15.4); the papers' bounds need it."""
        return self.steepest

    @property
    def level(self) -> float:
        """The adaptive parameter; 0 for a loss without."""
        return float(getattr(self, self.adaptive)) if self.adaptive else 0.0

    @property
    def adapts(self) -> bool:
        """Whether the level follows the stream."""
        return getattr(self, "nu", None) is not None

    def at(self, level: float) -> Loss:
        """This loss at another level."""
        return replace(self, **{self.adaptive: level}) if self.adaptive and self.adapts else self  # type: ignore[type-var]

    def adapt(self, z: float, y: float, rate: float) -> float:
        """The level after one example with step size ``rate``."""
        return self.level

    def implicit_many(self, p: Any, y: int, kappa: float, weight: float, before: Any) -> Any:
        """The implicit step of a loss with several classes; ``before``: the scores before the decay."""
        raise NotImplementedError

    def for_classes(self, classes: int | None) -> Loss | None:
        """The loss of a score per class that belongs to this loss, with the number of classes if it is known; None if
        there is none."""
        if self.target != "label":
            return None
        joining = getattr(self, "classes", 0) is None and classes is not None
        return replace(self, classes=classes) if joining else self  # type: ignore[type-var]

    def curvature(self, z: float, y: float) -> float:
        """The second derivative of the loss in z (SVMD and `Gradient` use it); 0 by default."""
        return 0.0

    def bend(self, z: Any, y: Any, v: Any) -> Any:
        """The second derivative at z, applied to v."""
        return self.curvature(z, y) * v

    def stiffness(self, z: Any, y: Any, slope: Any) -> float:
        """The curvature that a second-order step (`gossamer.rules.Newton`) counts at the score z where it ends, with
        this slope of the loss; with a score per class, the mean over them.

        By default the second derivative. Where that is 0: 1 for classes and novelty, as AROW has it; for real targets
        |slope / residual|, at most 1, as in iteratively reweighted least squares.
        """
        if self.target == "label":
            return float(np.mean(slope != 0))
        bend = self.curvature(z, y)
        if bend > 0 or self.target != "real":
            return bend or 1.0
        return abs(slope / (y - z)) if abs(slope) < abs(y - z) else 1.0

    def joint(self, p: float, y: float, kappa: float, weight: float, rate: float) -> tuple[float, float]:
        """The coefficient and the level after a joint implicit step in both, where a loss has it (ALGORITHMS 2.3)."""
        raise _checks.wrong("Implicit", "joint", f"False for {type(self).__name__}", True)

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes, the level first."""
        return ()

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        """The C++ twin's name and numbers; None for a loss without one."""
        name = twin_of(self)
        return None if name is None else (name, self.numbers())


@dataclass(frozen=True)
class LossReport:
    """The result of `check_loss`; true if the loss qualifies."""

    convex: bool
    consistent: bool
    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.problems


def check_loss(loss: Loss, targets: Any = None, scores: Array | None = None) -> LossReport:
    """Whether a loss qualifies for the implicit step: finite, convex, and its slope a subgradient of its value.

    Both are tested on a grid of scores (-10 ... 10) for each target, so a fault between its points may be missed.

    >>> from gossamer.losses import Hinge
    >>> bool(check_loss(Hinge()))
    True
    >>> class Wrong(Loss):
    ...     def value(self, z, y): return (y - z) ** 4
    ...     def slope(self, z, y): return 4 * (y - z) ** 3
    >>> print(check_loss(Wrong()).problems[0])
    slope is no subgradient of value: at y = -1, z = 10 it is -5324, but the value rises by 5287.81 per unit beside it
    """
    if loss.many:
        raise _checks.wrong("check_loss", "loss", "a loss of a single score", loss)
    grid = np.linspace(-10.0, 10.0, 401) if scores is None else np.sort(np.asarray(scores, dtype=np.float64))
    if targets is None:
        targets = (-1.0, 1.0) if loss.target in ("binary", "none") else (-1.0, 0.0, 0.3, 2.0)
    problems: list[str] = []
    convex = consistent = True
    for y in map(float, targets):
        value = np.array([float(loss.value(z, y)) for z in grid.tolist()])
        slope = np.array([float(loss.slope(z, y)) for z in grid.tolist()])
        if not (np.isfinite(value).all() and np.isfinite(slope).all()):
            problems.append(f"value or slope is not finite at y = {y:g}")
            continue
        rises = np.diff(value) / np.diff(grid)
        slack = 1e-7 * (1.0 + np.abs(rises).max())
        if (np.diff(rises) < -slack).any():
            z = grid[1 + int(np.argmin(np.diff(rises)))]
            problems.append(f"value is not convex: at y = {y:g}, z = {z:g} it bends down")
            convex = False
        # a subgradient lies between the mean rises to the left and to the right of its point
        excess = np.maximum(np.append(-np.inf, rises) - slope, slope - np.append(rises, np.inf))
        i = int(excess.argmax())
        if excess[i] > slack:
            near = " and ".join(f"{rise:g}" for rise in rises[max(0, i - 1) : i + 1])
            problems.append(
                f"slope is no subgradient of value: at y = {y:g}, z = {grid[i]:g} it is {slope[i]:g}, "
                f"but the value rises by {near} per unit beside it"
            )
            consistent = False
    return LossReport(convex, consistent, tuple(problems))
