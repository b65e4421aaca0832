"""Kernels of rows of numbers: linear, polynomial, Gaussian, Laplace, Matern."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._registry import as_part
from gossamer._sparse import SparseRows, squared_norms
from gossamer._typing import Array
from gossamer.kernels.additive import MATERN_ORDER, matern_coefs
from gossamer.kernels.base import Custom, Kernel, Term
from gossamer.kernels.pairs import distances, products, squared_distances

#: The largest degree of a polynomial: beyond, its values are practically 0, 1 or infinite.
MOST_DEGREE = 2**20


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, s) = <x, s>.

    >>> float(Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))[0, 0])
    11.0
    """

    twin: ClassVar[str] = "linear"
    sparse: ClassVar[bool] = True

    def __call__(self, A: Array, B: Array) -> Array:
        return products(A, B)

    def diag(self, A: Array) -> Array:
        return squared_norms(A)

    def terms(self) -> list[Term] | None:
        return [Term("power", 1)] if type(self) is Linear else None


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, s) = (gamma <x, s> + coef0) ** degree.

    >>> float(Polynomial(2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))[0, 0])
    144.0
    """

    twin: ClassVar[str] = "polynomial"
    sparse: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ("poly",)  # as in scikit-learn
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        _checks.whole(self, "degree", self.degree, 1, MOST_DEGREE)
        _checks.number(self, "gamma", self.gamma, 0.0, math.inf)
        _checks.number(self, "coef0", self.coef0, 0.0, math.inf, "left")

    def __call__(self, A: Array, B: Array) -> Array:
        return self._power(products(A, B))

    def diag(self, A: Array) -> Array:
        return self._power(squared_norms(A))

    def _power(self, products: Array) -> Array:
        base: Array = products * products.dtype.type(self.gamma) + products.dtype.type(self.coef0)
        result: Array = np.ones_like(base)
        degree = int(self.degree)
        while degree:  # by squaring: many times faster than **, and exact for small integers
            if degree & 1:
                result = result * base
            degree >>= 1
            if degree:
                base = base * base
        return result

    def numbers(self) -> tuple[float, ...]:
        return (float(self.gamma), float(self.coef0), float(self.degree))


@dataclass(frozen=True)
class _ByGamma(Kernel):
    """A function of gamma times a distance, 1 at x = s; gamma may be settled on the data."""

    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        if isinstance(self.gamma, str):
            _checks.one_of(self, "gamma", self.gamma, ["scale"])
        else:
            _checks.number(self, "gamma", self.gamma, 0.0, math.inf)

    def settle(self, X: Array) -> float:
        """The gamma for rows like those of X."""
        raise NotImplementedError

    def resolve(self, X: Array) -> Kernel:
        return replace(self, gamma=self.settle(X)) if isinstance(self.gamma, str) else self

    def diag(self, A: Array) -> Array:
        return np.ones(len(A), dtype=A.dtype)

    def numbers(self) -> tuple[float, ...]:
        return (float(self.gamma),)


@dataclass(frozen=True)
class Gaussian(_ByGamma):
    """k(x, s) = exp(-gamma ||x - s||^2).

    ``gamma="scale"`` settles gamma = 1 / (features * variance) on the first batch learned, if it has at least ten
    rows, and 1 / features (right for standardised features) otherwise. It is the only thing in the library that
    depends on how a stream is cut into batches; give a number where that matters.

    >>> round(float(Gaussian(0.5)(np.zeros((1, 2)), np.ones((1, 2)))[0, 0]), 6)
    0.367879
    """

    twin: ClassVar[str] = "gaussian"
    sparse: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ("rbf",)

    def __call__(self, A: Array, B: Array) -> Array:
        gamma = self.settle(A) if isinstance(self.gamma, str) else float(self.gamma)
        return np.asarray(np.exp(-A.dtype.type(gamma) * squared_distances(A, B, gamma)))

    def settle(self, X: Array) -> float:
        return 1.0 / (int(X.shape[1]) * _variance(X))

    def spectrum(self, rng: np.random.Generator, count: int, features: int) -> Array:
        return math.sqrt(2 * float(self.gamma)) * rng.standard_normal((count, features))


@dataclass(frozen=True)
class Laplace(_ByGamma):
    """k(x, s) = exp(-gamma ||x - s||_1).

    ``gamma="scale"`` settles gamma = 1 / (features * standard deviation), on the same batch as `Gaussian`.

    >>> round(float(Laplace(0.5)(np.zeros((1, 2)), np.ones((1, 2)))[0, 0]), 6)
    0.367879
    """

    twin: ClassVar[str] = "laplace"
    sparse: ClassVar[bool] = True
    aliases: ClassVar[tuple[str, ...]] = ("laplacian",)

    def __call__(self, A: Array, B: Array) -> Array:
        gamma = self.settle(A) if isinstance(self.gamma, str) else float(self.gamma)
        return np.asarray(np.exp(-gamma * distances(A, B, "cityblock"))).astype(A.dtype, copy=False)

    def settle(self, X: Array) -> float:
        return 1.0 / (int(X.shape[1]) * math.sqrt(_variance(X)))

    def spectrum(self, rng: np.random.Generator, count: int, features: int) -> Array:
        return float(self.gamma) * rng.standard_cauchy((count, features))


@dataclass(frozen=True)
class Matern(Kernel):
    """Matern kernel of smoothness ``nu`` = p + 1/2, p = 0, 1, 2, ...; with r = sqrt(2 nu) ||x - s|| / length:

    e^-r p! / (2p)! sum_i (p + i)! / (i! (p - i)!) (2r)^(p - i); for 1/2, 3/2, 5/2: e^-r, e^-r (1 + r),
    e^-r (1 + r + r^2 / 3).

    >>> round(float(Matern(1.5, length=2.0)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0]), 6)
    0.784888
    """

    twin: ClassVar[str] = "matern"
    sparse: ClassVar[bool] = True
    nu: float = 1.5
    length: float = 1.0

    def __post_init__(self) -> None:
        known = [p + 0.5 for p in range(MATERN_ORDER + 1)]
        _checks.one_of(self, "nu", float(self.nu) if isinstance(self.nu, numbers.Real) else self.nu, known)
        _checks.number(self, "length", self.length, 0.0, math.inf)

    def __call__(self, A: Array, B: Array) -> Array:
        # by differences, not by products: near r = 0 the root would turn a rounding of 1e-16 into 1e-8
        # up to 750, where e^-r is 0: beyond, a power of r may be infinite
        r = np.minimum(distances(A, B, "euclidean") * self._theta, 750.0).astype(A.dtype, copy=False)
        return np.asarray(np.exp(-r) * np.polynomial.polynomial.polyval(r, np.array(self._coefs, dtype=A.dtype)))

    def diag(self, A: Array) -> Array:
        return np.ones(len(A), dtype=A.dtype)

    @property
    def _theta(self) -> float:
        return math.sqrt(2 * self.nu) / float(self.length)

    @property
    def _coefs(self) -> tuple[float, ...]:
        return matern_coefs(round(self.nu - 0.5))

    def terms(self) -> list[Term] | None:
        return [Term("decay", round(self.nu - 0.5), 1.0, self._theta, self._coefs)] if type(self) is Matern else None

    def numbers(self) -> tuple[float, ...]:
        return (self._theta, *self._coefs)

    def spectrum(self, rng: np.random.Generator, count: int, features: int) -> Array:
        # Student's t with 2 nu degrees of freedom: a normal vector over the root of a mean of squared normals
        normal = rng.standard_normal((count, features)) / float(self.length)
        return np.asarray(normal / np.sqrt(rng.chisquare(2 * self.nu, (count, 1)) / (2 * self.nu)))


def as_kernel(kernel: Any) -> Kernel:
    """A Kernel from a Kernel, a name ("gaussian", or as in scikit-learn "rbf", ...) or a function of two batches.

    A name may have parameters behind it, as that of every part (`as_loss`, `as_rule`, `as_budget`).

    >>> as_kernel("poly"), as_kernel("matern:nu=2.5,length=3")
    (Polynomial(degree=3, gamma=1.0, coef0=1.0), Matern(nu=2.5, length=3.0))
    """
    if callable(kernel) and not isinstance(kernel, (Kernel, type)):
        return Custom(kernel)
    return as_part(Kernel, kernel, "kernel", "a Kernel, a name or a function of two batches")


def _variance(X: Any) -> float:
    """The variance of all numbers of at least ten rows; 1 for fewer rows, or where nothing varies."""
    if len(X) < 10:
        return 1.0
    variance = X.variance() if isinstance(X, SparseRows) else float(np.var(X, dtype=np.float64))
    return variance if variance > 0 else 1.0
