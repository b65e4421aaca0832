"""The comparators of the theorems of `gossamer.bounds`, and their measurement on a stream.

A comparator is a fixed function of the kernel's space; a theorem about a stream that drifts takes one for each round.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._engine.expansion import norm_of
from gossamer._typing import Floats
from gossamer.kernels import Kernel, as_kernel
from gossamer.losses import Loss


class Comparator:
    """A function g = sum_j coefs_j k(points_j, .), with its norm in the kernel's space.

    Parameters
    ----------
    points : the points z_j, as the kernel takes them.
    coefs : a coefficient for each point.
    kernel : a Kernel, a name, or a function of two batches.

    >>> from gossamer.kernels import Gaussian
    >>> g = Comparator(np.array([[0.0], [1.0]]), [1.0, -1.0], Gaussian(0.5))
    >>> round(g.norm, 4), g.values(np.array([[0.0], [0.5]])).round(4).tolist()
    (0.8871, [0.3935, 0.0])
    >>> round(g.distance(2.0 * g), 4)
    0.8871
    """

    def __init__(self, points: Any, coefs: Any, kernel: Any) -> None:
        self.kernel: Kernel = as_kernel(kernel).resolve(points)
        self.points = points
        self.coefs: Floats = _checks.vector(self, "coefs", coefs, len(points))
        self._norm: float | None = None

    @property
    def norm(self) -> float:
        """||g||."""
        if self._norm is None:
            self._norm = norm_of(self.coefs, self.kernel(self.points, self.points))
        return self._norm

    def values(self, X: Any) -> Floats:
        """g(x) for every row of X."""
        return np.asarray(self.kernel(X, self.points) @ self.coefs, dtype=np.float64)

    def distance(self, other: Comparator) -> float:
        """||g - other||, for two functions of one kernel."""
        if self.kernel != other.kernel:
            raise _checks.wrong(self, "other", f"a Comparator with the kernel {self.kernel}", other.kernel)
        if self.points is other.points:
            return norm_of(self.coefs - other.coefs, self.kernel(self.points, self.points))
        arrays = isinstance(self.points, np.ndarray) and isinstance(other.points, np.ndarray)
        points: Any = np.concatenate([self.points, other.points]) if arrays else [*self.points, *other.points]
        return norm_of(np.concatenate([self.coefs, -other.coefs]), self.kernel(points, points))

    def __mul__(self, factor: float) -> Comparator:
        return Comparator(self.points, factor * self.coefs, self.kernel)

    __rmul__ = __mul__


def largest_kappa(kernel: Any, X: Any) -> float:
    """The largest k(x, x) of the rows, X^2 (or R^2) of the theorems.

    >>> from gossamer.kernels import Linear
    >>> largest_kappa(Linear(), np.array([[3.0, 4.0], [1.0, 0.0]]))
    25.0
    """
    return float(np.max(as_kernel(kernel).diag(X)))


def log_det(kernel: Any, X: Any, noise: float) -> float:
    """ln det(I + K / noise) for the kernel matrix K of the rows, as in bounds on second-order learners: how many
    directions the rows have, and how far each goes beyond the noise.

    >>> from gossamer.kernels import Linear
    >>> round(log_det(Linear(), np.array([[1.0], [2.0]]), 5.0) / math.log(2.0), 12)
    1.0
    """
    _checks.number("log_det", "noise", noise, 0.0, math.inf)
    gram = np.asarray(as_kernel(kernel)(X, X), dtype=np.float64)
    return float(np.log1p(np.maximum(0.0, np.linalg.eigvalsh(gram)) / noise).sum())


def values(comparators: Comparator | Sequence[Comparator], X: Any) -> Floats:
    """g_t(x_t) for every round t, for a single comparator or a comparator per row.

    >>> from gossamer.kernels import Linear
    >>> g = Comparator(np.array([[1.0]]), [1.0], Linear())
    >>> values([g, 2.0 * g], np.array([[1.0], [3.0]])).tolist()
    [1.0, 6.0]
    """
    if isinstance(comparators, Comparator):
        return comparators.values(X)
    if len(comparators) != len(X):
        raise _checks.wrong("values", "comparators", f"one, or one for each of {len(X)} rows", len(comparators))
    parts = [comparators[start].values(X[start:end]) for start, end in _constant_ranges(comparators)]
    return np.concatenate(parts)


def path_lengths(comparators: Comparator | Sequence[Comparator]) -> tuple[float, float]:
    """How far a sequence of comparators moves: the sums of ||g_t - g_(t+1)|| and of its square, D_1 and D_2.

    >>> from gossamer.kernels import Linear
    >>> g = Comparator(np.array([[1.0]]), [1.0], Linear())
    >>> path_lengths([g, g, 3.0 * g])
    (2.0, 4.0)
    """
    if isinstance(comparators, Comparator):
        return 0.0, 0.0
    moves = np.array([a.distance(b) for a, b in pairwise(comparators) if a is not b])
    return float(moves.sum()), float((moves * moves).sum())


def margin_deficit(comparators: Comparator | Sequence[Comparator], X: Any, y: Any, margin: float) -> float:
    """How much a sequence of comparators falls short of a margin: K = sum_t max(0, margin - y_t g_t(x_t)).

    >>> from gossamer.kernels import Linear
    >>> margin_deficit(Comparator(np.array([[1.0]]), [1.0], Linear()), np.array([[0.5], [2.0]]), [1.0, -1.0], 1.0)
    3.5
    """
    y = _checks.vector("margin_deficit", "y", y, len(X))
    _checks.signs("margin_deficit", y)
    return float(np.maximum(0.0, margin - y * values(comparators, X)).sum())


def cumulative_risk(loss: Loss, scores: Floats, y: Any, norms: Any = 0.0, reg: float = 0.0, C: float = 1.0) -> float:
    """sum_t C loss(score_t, y_t) + reg / 2 norm_t^2: the risk that regret bounds are about.

    ``scores`` and ``norms`` are those of f_1 ... f_T before each was updated, or those of one comparator.

    >>> from gossamer.losses import Hinge
    >>> cumulative_risk(Hinge(), np.array([0.0, 0.5]), np.array([1.0, 1.0]), norms=2.0, reg=0.1)
    1.9
    """
    square = np.broadcast_to(np.asarray(norms, dtype=np.float64) ** 2, np.shape(scores))
    return float(np.sum(C * loss.value(np.asarray(scores), 0.0 if y is None else np.asarray(y)) + 0.5 * reg * square))


@dataclass(frozen=True)
class Rivals:
    """The inputs of mistake bounds: numbers of a stream and of the comparators g_1 ... g_m.

    Each number may be an upper bound on what it measures (``margin`` may not): the theorems hold with it as well.

    Parameters
    ----------
    margin : mu, the margin that the comparators aim at.
    norm : B, the largest norm of a comparator.
    kappa : X^2, the largest k(x, x).
    rounds : m, the length of the stream.
    deficit : K = sum_t max(0, mu - y_t g_t(x_t)), how much the comparators miss the margin.
    path : D_1 = sum_t ||g_t - g_(t+1)||.
    squared_path : D_2 = sum_t ||g_t - g_(t+1)||^2.

    >>> Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100).difficulty
    1.0
    """

    margin: float
    norm: float
    kappa: float
    rounds: int
    deficit: float = 0.0
    path: float = 0.0
    squared_path: float = 0.0

    def __post_init__(self) -> None:
        for name in ("margin", "norm", "kappa"):
            _checks.number(self, name, getattr(self, name), 0.0, math.inf)
        for name in ("deficit", "path", "squared_path"):
            _checks.number(self, name, getattr(self, name), 0.0, math.inf, "left")
        _checks.whole(self, "rounds", self.rounds, 1)
        # the theorems divide by these
        if self.path > 0 and not self.squared_path > 0:
            raise _checks.wrong(self, "squared_path", "positive where path is", self.squared_path)
        if not self.difficulty > 0:
            raise _checks.wrong(self, "norm", "large enough that its square is not 0", self.norm)

    @classmethod
    def measured(cls, comparators: Comparator | Sequence[Comparator], X: Any, y: Any, margin: float = 1.0) -> Rivals:
        """The numbers of given comparators on a stream.

        >>> from gossamer.kernels import Linear
        >>> g = Comparator(np.array([[1.0]]), [2.0], Linear())
        >>> Rivals.measured(g, np.array([[0.5], [1.0]]), [1.0, -1.0])
        Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=2, deficit=3.0, path=0.0, squared_path=0.0)
        """
        every = [comparators] if isinstance(comparators, Comparator) else comparators
        path, squared_path = path_lengths(comparators)
        return cls(
            margin=margin,
            norm=max(g.norm for g in every),
            kappa=largest_kappa(every[0].kernel, X),
            rounds=len(X),
            deficit=margin_deficit(comparators, X, y, margin),
            path=path,
            squared_path=squared_path,
        )

    @property
    def difficulty(self) -> float:
        """C = X^2 / 4 (B^2 + B (sqrt(m D_2) + D_1)), equation (31) of Kivinen et al. 2004."""
        drift = math.sqrt(self.rounds * self.squared_path) + self.path
        return 0.25 * self.kappa * self.norm * (self.norm + drift)


def _constant_ranges(comparators: Sequence[Comparator]) -> Iterator[tuple[int, int]]:
    """The ranges of rounds in which the comparator stays the same."""
    start = 0
    for _, group in groupby(comparators, key=id):
        end = start + len(list(group))
        yield start, end
        start = end
