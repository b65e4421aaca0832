"""Several targets at once: one loss for each of them, over one set of points."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._registry import twin_of
from gossamer._typing import Floats
from gossamer.losses.base import Loss
from gossamer.losses.scalar import EpsilonInsensitive, Hinge, Huber, Logistic, Pinball, Squared, SquaredHinge

#: The most targets of a row.
MOST_TARGETS = 2**20
#: The losses that the core takes for each target, by their numbers there.
BASES = (Squared, EpsilonInsensitive, Huber, Pinball, Hinge, SquaredHinge, Logistic)


@dataclass(frozen=True)
class Several(Loss):
    """sum_j base(z_j, y_j): a score z_j for each of several targets, all over the same points.

    Steps of first order are those of one learner for each target, which share their kernel values and points. With
    second order the targets share the metric too: its curvature is the mean over them.

    Parameters
    ----------
    base : the loss of each target, of real or binary targets, without ``nu``.
    targets : their number.

    >>> loss = Several(Squared(), 2)
    >>> loss.value(np.array([1.0, 2.0]), np.array([0.0, 2.0])), loss.slope(np.array([1.0, 2.0]), np.zeros(2)).tolist()
    (0.5, [1.0, 2.0])
    """

    twin: ClassVar[str] = "several"
    target: ClassVar[str] = "several"
    base: Loss = field(default_factory=Squared)
    targets: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.base, Loss) or self.base.target not in ("real", "binary") or self.base.adapts:
            raise _checks.wrong(self, "base", "a loss of real or binary targets, without nu", self.base)
        _checks.whole(self, "targets", self.targets, 1, MOST_TARGETS)

    @property
    def classes(self) -> int:
        """The number of scores."""
        return self.targets

    @property
    def log_odds(self) -> bool:  # type: ignore[override]
        """Whether the scores are log-odds."""
        return self.base.log_odds

    def value(self, z: Floats, y: Floats) -> float:
        return float(np.sum(self.base.value(np.asarray(z), np.asarray(y))))

    def values(self, Z: Any, y: Any) -> Any:
        """`value` for many rows."""
        return np.sum(self.base.value(np.asarray(Z), np.asarray(y)), axis=1)

    def slope(self, z: Floats, y: Floats) -> Floats:
        return np.array([float(self.base.slope(*pair)) for pair in _pairs(z, y)])

    def bend(self, z: Floats, y: Floats, v: Floats) -> Floats:
        """The second derivative at z, applied to v."""
        return np.array([self.base.curvature(*pair) for pair in _pairs(z, y)]) * v

    def stiffness(self, z: Floats, y: Floats, slope: Floats) -> float:
        """The mean over the targets, of those that ask for a step."""
        each = [
            self.base.stiffness(*pair, s) if s else 0.0 for pair, s in zip(_pairs(z, y), slope.tolist(), strict=True)
        ]
        return sum(each) / len(each)

    def implicit_many(self, p: Floats, y: Any, kappa: float, weight: float, before: Any = None) -> Floats:
        """Each target by itself."""
        return np.array([self.base.implicit(*pair, kappa, weight) for pair in _pairs(p, y)])

    def numbers(self) -> tuple[float, ...]:
        return (float(self.targets), float(BASES.index(type(self.base))), *self.base.numbers())

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        if twin_of(self) is None or self.base.compiled() is None or type(self.base) not in BASES:
            return None
        return super().compiled()


def _pairs(z: Any, y: Any) -> list[tuple[float, float]]:
    return list(zip(np.asarray(z).tolist(), np.asarray(y).tolist(), strict=True))
