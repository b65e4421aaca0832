"""Losses of a score per class: the graph-structured hinge with any costs, and softmax (ALGORITHMS 2.6, 2.7).

A class is an index 0, 1, ...; classes that were not given in advance join as they come. `taxonomy` turns a tree of
labels into a cost matrix and a label kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax, wrightomega

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.losses.base import LEAST_STIFFNESS, Loss, over

#: The largest number of classes: a score for each is allocated with the first row.
MOST_CLASSES = 2**20


def apart(p: Floats, y: int) -> bool:
    """Whether the scores are comparable with that of y: a model that has diverged takes no step."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(p - p[y]).all())


@dataclass(frozen=True)
class Multiclass(Loss):
    """max_j (cost(y, j) + z_j) - z_y, with cost(y, y) = 0 (Cheng et al. 2006, equation (17); cost is Delta).

    Parameters
    ----------
    cost : what it costs to say j instead of y, a matrix; None costs ``margin`` for every mistake.
    label_kernel : k_Y, for the joint kernel k(x, x') k_Y(y, y'); None keeps the classes apart.
    classes : the number of classes, if known; the size of a matrix says it too. None lets classes join later.
    step : "exact" solves the implicit step; "runner_up" is the paper's, exact for two classes only.
    margin : the cost of a mistake if there is no matrix.

    >>> Multiclass().value(np.array([0.5, 0.2, 1.0]), 0)
    1.5
    >>> Multiclass().implicit_many(np.array([0.5, 0.2, 1.0]), 0, kappa=1.0, weight=10.0).round(3).tolist()
    [0.75, -0.0, -0.75]
    """

    twin: ClassVar[str] = "structured"
    aliases: ClassVar[tuple[str, ...]] = ("structured",)
    target: ClassVar[str] = "label"
    steepest: ClassVar[float] = 1.0  # in the norm of k(x, y) - k(x, y'), ALGORITHMS 15.4
    adaptive: ClassVar[str] = "margin"
    cost: Any = None
    label_kernel: Any = None
    classes: int | None = None
    step: str = "exact"
    margin: float = 1.0

    def __post_init__(self) -> None:
        _checks.one_of(self, "step", self.step, ["exact", "runner_up"])
        _checks.number(self, "margin", self.margin, 0.0, math.inf, "left")
        if self.cost is not None and self.margin != 1.0:
            raise _checks.wrong(self, "margin", "1 where a cost matrix is given", self.margin)
        for name in ("cost", "label_kernel"):
            given = getattr(self, name)
            if given is not None:
                matrix = _square(self, name, given, self.classes)
                object.__setattr__(self, name, tuple(map(tuple, matrix.tolist())))
                object.__setattr__(self, "classes", len(matrix))
        if self.classes is not None:
            _checks.whole(self, "classes", self.classes, 1, MOST_CLASSES)
        if self.cost is not None and (np.diagonal(self.cost).any() or np.min(self.cost) < 0):
            raise _checks.wrong(self, "cost", "not negative, and 0 on the diagonal", self.cost)
        if self.label_kernel is not None:
            kernel = np.array(self.label_kernel)
            smallest = float(np.linalg.eigvalsh(kernel).min())
            if not np.allclose(kernel, kernel.T) or smallest < -1e-9 * max(1.0, float(np.abs(kernel).max())):
                raise _checks.wrong(self, "label_kernel", "symmetric and positive semidefinite", self.label_kernel)

    def costs(self, y: int, n: int) -> Floats:
        """cost(y, j) for the n classes known."""
        if self.cost is not None:
            return np.array(self.cost[y])
        return np.where(np.arange(n) == y, 0.0, self.margin)

    def labels(self, n: int) -> Floats:
        """The label kernel of n classes."""
        return np.eye(n) if self.label_kernel is None else np.array(self.label_kernel)

    def value(self, z: Floats, y: int) -> float:
        return float((self.costs(y, len(z)) + z).max() - z[y])

    def values(self, Z: Floats, y: Any) -> Floats:
        """`value` for many rows; -inf in Z for a class that is not known yet."""
        rows = np.arange(len(Z))
        if self.cost is not None:
            costs = np.array(self.cost)[y]
        else:
            costs = np.full(Z.shape, self.margin)
            costs[rows, y] = 0.0
        return np.asarray((costs + Z).max(axis=1) - Z[rows, y])

    def rival(self, z: Floats, y: int) -> int | None:
        """The runner-up, the class that most threatens y; the lowest of equals, None if y is the only class."""
        threats = self.costs(y, len(z)) + z
        threats[y] = -np.inf
        return int(threats.argmax()) if len(z) > 1 else None

    def slope(self, z: Floats, y: int) -> Floats:
        slope = np.zeros(len(z))
        rival = self.rival(z, y)
        if rival is not None and self.costs(y, len(z))[rival] + z[rival] - z[y] >= 0:
            slope[y], slope[rival] = -1.0, 1.0
        return slope

    def implicit_many(self, p: Floats, y: int, kappa: float, weight: float, before: Floats | None = None) -> Floats:
        """The coefficients a, one per class, that minimise a' K a / 2 + weight * value(p + K a), K = kappa k_Y.

        ``before``: the scores before the decay, where the paper looks for the runner-up.
        """
        if len(p) < 2 or not apart(p, y):
            return np.zeros(len(p))
        if self.step == "runner_up":
            return self._clipped(p, y, kappa, weight, p if before is None else before)
        return self._simplex(p, y, kappa, weight) if self.label_kernel is None else self._pairwise(p, y, kappa, weight)

    def _clipped(self, p: Floats, y: int, kappa: float, weight: float, before: Floats) -> Floats:
        rival, K = self.rival(before, y), self.labels(len(p))
        a = np.zeros(len(p))
        d = kappa * (K[y, y] + K[rival, rival] - 2 * K[y, rival])
        if d > 0:
            a[y] = min(max((self.costs(y, len(p))[rival] + p[rival] - p[y]) / d, 0.0), weight)
            a[rival] = -a[y]
        return a

    def _simplex(self, p: Floats, y: int, kappa: float, weight: float) -> Floats:
        """Classes above a common level theta come down to it; the sum of their losses lifts y, by at most weight."""
        u = self.costs(y, len(p)) + p
        others = np.sort(np.delete(u, y))[::-1]
        if others[0] <= u[y]:
            return np.zeros(len(p))
        counts = np.arange(1, len(others) + 1)
        levels = (u[y] + np.cumsum(others)) / (counts + 1)
        theta = levels[others > np.append(u[y], levels[:-1])][-1]
        if (theta - u[y]) / kappa <= weight:
            a: Floats = -np.maximum(0.0, u - theta) / kappa
            a[y] = 0.0
            a[y] = -a.sum()
            return a
        # y rises by its limit; the k highest other classes share the fall, each relative to their mean
        means = np.cumsum(others) / counts
        k = 1 + int(np.sum(others[1:] > means[:-1] - weight * kappa / counts[:-1]))
        mean = others[0] + float(np.mean(others[:k] - others[0]))
        a = np.where(u >= others[k - 1], -np.maximum(0.0, weight / k + (u - mean) / kappa), 0.0)
        a[y] = weight
        return a

    def _pairwise(self, p: Floats, y: int, kappa: float, weight: float) -> Floats:
        """Ascent on the dual, two classes at a time, until its gradient is flat on the support."""
        K, n = kappa * self.labels(len(p)), len(p)
        pi = np.zeros(n)
        pi[y] = 1.0
        gradient = self.costs(y, n) + p
        size = max(1.0, float(np.abs(gradient).max()))
        for _ in range(20_000 * n):  # a singular label kernel may take thousands
            up = int(gradient.argmax())
            down = int(np.where(pi > 0, gradient, np.inf).argmin())
            gap = gradient[up] - gradient[down]
            if gap <= 1e-13 * size:
                break
            d = weight * (K[up, up] + K[down, down] - 2 * K[up, down])
            step = min(pi[down], gap / d) if d > 0 else pi[down]
            pi[up] += step
            pi[down] = 0.0 if step == pi[down] else pi[down] - step
            gradient -= weight * step * (K[:, up] - K[:, down])
        a = -weight * pi
        a[y] = 0.0
        a[y] = -a.sum()
        return a

    def gap(self, p: Floats, y: int, kappa: float, weight: float, a: Floats) -> float:
        """Primal minus dual objective of a step: 0 exactly at the minimiser, elsewhere a bound on its suboptimality."""
        K = kappa * self.labels(len(p))
        threats = self.costs(y, len(p)) + p
        pi = -a / weight
        pi[y] += 1.0
        primal = 0.5 * a @ K @ a + weight * self.value(p + K @ a, y)
        dual = weight * (pi @ threats - p[y]) - 0.5 * a @ K @ a
        return float(primal - dual)

    def numbers(self) -> tuple[float, ...]:
        matrices = [m for m in (self.cost, self.label_kernel) if m is not None]
        flat = [float(x) for matrix in matrices for row in matrix for x in row]
        given = (self.cost is not None, self.label_kernel is not None)
        head = (self.margin, self.step == "runner_up", self.classes or 0, *given)
        return (*map(float, head), *flat)


@dataclass(frozen=True)
class Softmax(Loss):
    """log sum_j exp z_j - z_y: multinomial logistic regression.

    Parameters
    ----------
    classes : the number of classes, if known; None lets classes join later.

    >>> round(Softmax().value(np.zeros(4), 2), 4)
    1.3863
    """

    twin: ClassVar[str] = "softmax"
    log_odds: ClassVar[bool] = True
    target: ClassVar[str] = "label"
    steepest: ClassVar[float] = 1.0
    classes: int | None = None

    def __post_init__(self) -> None:
        if self.classes is not None:
            _checks.whole(self, "classes", self.classes, 1, MOST_CLASSES)

    def value(self, z: Floats, y: int) -> float:
        return float(-log_softmax(z)[y])

    def values(self, Z: Floats, y: Any) -> Floats:
        """`value` for many rows; -inf in Z for a class that is not known yet."""
        return np.asarray(-log_softmax(Z, axis=1)[np.arange(len(Z)), y])

    def slope(self, z: Floats, y: int) -> Floats:
        slope = np.asarray(softmax(z))
        slope[y] = 0.0
        slope[y] = -slope.sum()
        return slope

    def bend(self, z: Floats, y: int, v: Floats) -> Floats:
        """The second derivative at z, applied to v: (diag(p) - p p') v."""
        p = softmax(z)
        return np.asarray(p * (v - p @ v))

    def stiffness(self, z: Floats, y: int, slope: Floats) -> float:
        p = softmax(z)
        return max(LEAST_STIFFNESS, float(np.mean(p * (1 - p))))

    def implicit_many(self, p: Floats, y: int, kappa: float, weight: float, before: Floats | None = None) -> Floats:
        """a = weight (e_y - softmax(p + kappa a)). With q = weight kappa and omega the Wright function, -kappa a_j is
        w_j = omega(p_j - p_y + shift) for j != y, W their sum, and the shift is found where shift + W - ln(q - W) = 0;
        the left side rises with it.
        """
        if len(p) < 2 or not apart(p, y):
            return np.zeros(len(p))
        q = min(weight * kappa, 1e300)  # beyond it, its logarithm would have no end
        above = np.delete(p, y) - p[y]
        if not q > 1e-300:
            return -weight * self.slope(p, y)

        def excess(shift: float) -> float:
            sum_ = float(wrightomega(above + shift).sum())
            return shift + sum_ - math.log(q - sum_) if sum_ < q else 1e300

        high, step = math.log(q), 1.0
        while excess(high - step) > 0:
            step *= 2.0
        shift = float(brentq(excess, high - step, high, xtol=1e-300, rtol=1e-15, maxiter=1000))
        a = np.insert(-wrightomega(above + shift) / kappa, y, 0.0)
        a[y] = -a.sum()
        return np.asarray(a)

    def numbers(self) -> tuple[float, ...]:
        return (float(self.classes or 0),)


@dataclass(frozen=True)
class OneVsRest(Loss):
    """sum_j max(0, margin - s_j z_j)^2 / 2, with s_j = 1 for the class y and -1 for the others: a squared hinge for
    each class against the rest.

    Parameters
    ----------
    classes : the number of classes, if known; None lets classes join later.
    margin : the score from which a class loses nothing.

    >>> OneVsRest().value(np.array([0.5, -0.5, 0.0]), 0)
    0.75
    >>> OneVsRest().implicit_many(np.array([0.5, -0.5, 0.0]), 0, kappa=1.0, weight=1.0).tolist()
    [0.25, -0.25, -0.5]
    """

    twin: ClassVar[str] = "one_vs_rest"
    widening: ClassVar[float] = 1.0
    target: ClassVar[str] = "label"
    classes: int | None = None
    margin: float = 1.0

    def __post_init__(self) -> None:
        _checks.number(self, "margin", self.margin, 0.0, math.inf)
        if self.classes is not None:
            _checks.whole(self, "classes", self.classes, 1, MOST_CLASSES)

    def missing(self, z: Floats, y: int) -> Floats:
        """s_j times what each class is short of its margin."""
        short: Floats = -np.maximum(0.0, self.margin + z)
        short[y] = max(0.0, self.margin - z[y])
        return short

    def value(self, z: Floats, y: int) -> float:
        return 0.5 * float(np.sum(self.missing(z, y) ** 2))

    def values(self, Z: Floats, y: Any) -> Floats:
        """`value` for many rows; -inf in Z for a class that is not known yet."""
        rows, short = np.arange(len(Z)), np.maximum(0.0, self.margin + Z)
        short[rows, y] = np.maximum(0.0, self.margin - Z[rows, y])
        return np.asarray(0.5 * np.sum(short**2, axis=1))

    def slope(self, z: Floats, y: int) -> Floats:
        return -self.missing(z, y)

    def bend(self, z: Floats, y: int, v: Floats) -> Floats:
        """The second derivative at z, applied to v."""
        return np.asarray(np.where(self.missing(z, y) != 0, v, 0.0))

    def implicit_many(self, p: Floats, y: int, kappa: float, weight: float, before: Floats | None = None) -> Floats:
        """Each class by itself, as `SquaredHinge`."""
        if not apart(p, y):
            return np.zeros(len(p))
        return np.asarray(self.missing(p, y) / (over(1.0, weight) + kappa))

    def numbers(self) -> tuple[float, ...]:
        return (float(self.classes or 0), self.margin)


def _square(owner: object, name: str, values: Any, classes: int | None) -> Floats:
    try:
        matrix = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise _checks.wrong(owner, name, "a square matrix of numbers", values) from None
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or classes not in (None, len(matrix)):
        size = "square" if classes is None else f"{classes} x {classes}"
        raise _checks.wrong(owner, name, f"a {size} matrix", matrix.shape)
    if not np.isfinite(matrix).all():
        raise _checks.wrong(owner, name, "finite", values)
    return matrix
