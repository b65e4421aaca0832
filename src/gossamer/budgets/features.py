"""Budgets of coordinates: the same rules and losses in a space of finite dimension, f(x) = <w, z(x)>.

A step of any rule is f <- keep f + coefficient k(x, .), and in such a space k(x, .) is z(x). Every step is taken and
none is dropped later; what is lost is lost in z, as <z(x), z(s)> is not quite k(x, s). Online gradient descent in
these spaces is NOGD and FOGD (Lu, Hoi, Wang, Zhao, Liu, "Large scale online kernel learning", JMLR 17, 2016);
implicit steps, and every other rule but those with a coefficient for each example, work as well.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from gossamer import _checks
from gossamer._typing import Array, Floats
from gossamer.budgets.base import Budget
from gossamer.kernels import Kernel
from gossamer.losses import Loss
from gossamer.rules import Rule

#: The most points of a dictionary, and the most coordinates of random features, which are all made with the first row.
MOST_LANDMARKS, MOST_WAVES = 2**14, 2**16
#: A share of k(x, x) below this many units of rounding counts as zero.
UNITS = 256


class _Space(Budget):
    """A budget of weights, one for each coordinate of a space."""

    space: ClassVar[bool] = True
    size: int

    def check(self, kernel: Kernel, loss: Loss, rule: Rule, backend: str) -> None:
        super().check(kernel, loss, rule, backend)
        if rule.needs_ids or rule.needs_gram:
            what = f"one without a coefficient for each example, or a direction, with {type(self).__name__}"
            raise _checks.wrong("Learner", "rule", what, rule)
        if backend == "trees":
            raise _checks.wrong("Learner", "budget", "one of support points where they stand in trees", self)

    @property
    def limit(self) -> int | None:
        return self.size

    @property
    def drops(self) -> bool:
        return False


@dataclass(frozen=True)
class Nystrom(_Space):
    """The space that the first ``size`` support points span that are far enough from each other's span:
    z(x) = L^-1 k(points, x), with L L' = k(points, points). For every kernel; O(size^2) for a row.

    A row that makes a step joins the points, while there is room, if its residual k(x, x) - ||z(x)||^2 is more than
    ``tolerance`` k(x, x). It appends a row to L, so the older coordinates and their weights stay as they are. Every
    other step is taken inside the span, with ||z(x)||^2 for k(x, x). Until the dictionary is full, and with tolerance
    0, this is the learner without a budget. (Rows that make no step know nothing that f does not: to let them join as
    well errs as often on elec2 and SEA, and more often on ijcnn1 and, with 500 points, on MNIST.)

    ``learner.points`` is the dictionary, ``learner.coefs`` = L^-T w, so that f(x) = sum_i coefs_i k(points_i, x).

    Parameters
    ----------
    size : the largest number of points, at most 16,384; size^2 numbers are kept once the dictionary is full.
    tolerance : in [0, 1): a row joins if more than this share of k(x, x) lies outside the span; a row that cannot join
        makes a step only if more than this share lies inside, as it would take huge weights to fit the others.

    >>> from gossamer import Learner
    >>> from gossamer.rules import Gradient
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> nogd = Learner("gaussian", "hinge", Gradient(rate=0.2), Nystrom(50))
    >>> scores = nogd.learn(X, np.sign(X[:, 0] * X[:, 1]))
    >>> len(nogd.points), nogd.mistakes
    (50, 199)
    """

    twin: ClassVar[str] = "unlimited"
    size: int
    tolerance: float = 0.01

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1, MOST_LANDMARKS)
        _checks.number(self, "tolerance", self.tolerance, 0.0, 1.0, "left")

    def core_options(self, kernel: Kernel, X: Array) -> dict[str, Any]:
        """The options of the compiled engine for rows like those of X."""
        program, nothing = kernel.program(X.shape[1]), np.empty((0, X.shape[1]), dtype=X.dtype)
        return {"kernel": program, "limit": self.size, "tolerance": self.least(X.dtype), "frequencies": nothing}

    def values(self, kernel: Kernel, points: Any, X: Any) -> Floats:
        whitening = Whitening()
        whitening.factor = np.asarray(np.linalg.cholesky(super().values(kernel, points, points)), dtype=np.float64)
        return whitening.features(super().values(kernel, points, X))

    def least(self, dtype: Any) -> float:
        """The share of k(x, x) from which a row is outside the span, or inside."""
        return max(float(self.tolerance), UNITS * float(np.finfo(dtype or np.float64).eps))


@dataclass(frozen=True)
class Fourier(_Space):
    """Random Fourier features, z(x) = sqrt(2 / size) (cos(w_i . x), sin(w_i . x)) for i = 1 ... size / 2.

    The frequencies w_i are drawn from the spectrum of the kernel, so that <z(x), z(s)> is k(x, s) in the mean, with an
    error of about 1 / sqrt(size), and k(x, x) = 1 exactly (Rahimi, Recht, "Random features for large-scale kernel
    machines", NIPS 2007). For kernels with a ``spectrum``: `Gaussian`, `Laplace`, `Matern`. O(size) for a row.

    ``learner.points`` has the frequency of each coordinate, the size / 2 of the cosines and again those of the sines;
    ``learner.coefs`` are their coefficients: f(x) = sum_i a_i cos(w_i . x) + b_i sin(w_i . x).

    Parameters
    ----------
    size : the number of coordinates, even: two for each frequency; at most 65,536.
    seed : of the frequencies.

    >>> from gossamer import Learner
    >>> from gossamer.kernels import Gaussian
    >>> from gossamer.rules import Gradient
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> fogd = Learner(Gaussian(0.5), "hinge", Gradient(rate=0.2), Fourier(100))
    >>> scores = fogd.learn(X, np.sign(X[:, 0] * X[:, 1]))
    >>> fogd.coefs.shape, fogd.mistakes
    ((100,), 231)
    """

    twin: ClassVar[str] = "unlimited"
    fixed: ClassVar[bool] = True
    size: int
    seed: int = 0

    def __post_init__(self) -> None:
        if _checks.whole(self, "size", self.size, 2, MOST_WAVES) % 2:
            raise _checks.wrong(self, "size", "even: a cosine and a sine for each frequency", self.size)
        _checks.whole(self, "seed", self.seed, 0)

    def check(self, kernel: Kernel, loss: Loss, rule: Rule, backend: str) -> None:
        super().check(kernel, loss, rule, backend)
        if "spectrum" not in vars(type(kernel)):
            raise _checks.wrong(self, "kernel", "Gaussian, Laplace or Matern, or a class with its own spectrum", kernel)

    def core_options(self, kernel: Kernel, X: Array) -> dict[str, Any]:
        """The options of the compiled engine for rows like those of X."""
        frequencies = self.frequencies(kernel, X)
        return {"kernel": [("linear", ())], "limit": 0, "tolerance": 0.0, "frequencies": frequencies}

    def values(self, kernel: Kernel, points: Any, X: Any) -> Floats:
        return waves(points[: self.size // 2], X)

    def frequencies(self, kernel: Kernel, X: Array) -> Array:
        """The frequencies for rows like those of X, one in each row."""
        rng = np.random.default_rng(self.seed)
        drawn = kernel.spectrum(rng, self.size // 2, X.shape[1])
        return np.ascontiguousarray(drawn.astype(X.dtype, copy=False))


class Whitening:
    """L, the Cholesky factor of a Gram matrix that grows by one row at a time; z = L^-1 k."""

    def __init__(self) -> None:
        self.factor: Floats = np.zeros((0, 0))

    def __len__(self) -> int:
        return len(self.factor)

    def features(self, values: Floats) -> Floats:
        """z for columns of kernel values."""
        if not len(self):
            return values
        return np.asarray(solve_triangular(self.factor, values, lower=True, check_finite=False))

    def append(self, z: Floats, root: float) -> None:
        """L gets the row (z, root)."""
        self.factor = np.pad(self.factor, (0, 1))
        self.factor[-1, :-1], self.factor[-1, -1] = z, root

    def coefs(self, weights: Floats) -> Floats:
        """L^-T w for each row of weights."""
        if not len(self):
            return weights
        return np.asarray(solve_triangular(self.factor, weights.T, lower=True, trans=1, check_finite=False).T)

    def cut(self, size: int) -> None:
        """Keep the first rows and columns only."""
        self.factor = self.factor[:size, :size].copy()


def waves(frequencies: Array, X: Array) -> Floats:
    """Fourier features of the rows of X, a column for each row."""
    phases = frequencies @ X.T
    return np.concatenate([np.cos(phases), np.sin(phases)]).astype(np.float64) / math.sqrt(len(frequencies))
