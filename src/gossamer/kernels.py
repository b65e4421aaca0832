"""Kernels: batched functions k(A, B) -> matrix, with k.diag(A) = (k(a, a) for a in A).

A kernel is a value. Kernels add, multiply and scale: ``0.5 * Gaussian(1.0) + Linear() * Polynomial(2)``.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gossamer import _checks
from gossamer._checks import Array
from gossamer._gram import check_kernel, checked_values, squared_distances

__all__ = [
    "Custom",
    "Gaussian",
    "Kernel",
    "Laplace",
    "Linear",
    "Matern",
    "Polynomial",
    "Product",
    "Scaled",
    "Sum",
    "as_kernel",
    "check_kernel",
]

#: One step of a kernel's compiled program: a name and its numbers.
Instruction = tuple[str, tuple[float, ...]]


class Kernel:
    """A positive semidefinite function of two points, evaluated on batches.

    A subclass says ``__call__`` and ``diag``. One that has a C++ twin names it in its own ``twin``; a subclass of it
    that does not is taken at its Python word.
    """

    twin: ClassVar[str | None] = None
    #: Whether points may be other things than rows of numbers.
    any_points: ClassVar[bool] = False

    def __call__(self, A: Any, B: Any) -> Array:
        raise NotImplementedError

    def diag(self, A: Any) -> Array:
        """k(a, a) for every a of A."""
        raise NotImplementedError

    def resolve(self, X: Any) -> Kernel:
        """The kernel with everything that depends on the data settled, from the first rows seen."""
        return self

    def takes_any(self) -> bool:
        """Whether this kernel, or a part of it, accepts points that are not rows of numbers."""
        return self.any_points

    def program(self) -> list[Instruction] | None:
        """The kernel in postfix form for the compiled core; None if a part has no twin."""
        if type(self).__dict__.get("twin") is None:
            return None
        return [(str(self.twin), self.numbers())]

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes."""
        return ()

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, as_kernel(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, numbers.Real):
            return Scaled(self, float(other))
        return Product(self, as_kernel(other))

    __rmul__ = __mul__


@dataclass(frozen=True)
class Linear(Kernel):
    """k(x, s) = <x, s>.

    >>> float(Linear()(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))[0, 0])
    11.0
    """

    twin: ClassVar[str] = "linear"

    def __call__(self, A: Array, B: Array) -> Array:
        return np.asarray(A @ B.T)

    def diag(self, A: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", A, A))


@dataclass(frozen=True)
class Polynomial(Kernel):
    """k(x, s) = (gamma <x, s> + coef0) ** degree.

    >>> float(Polynomial(2)(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))[0, 0])
    144.0
    """

    twin: ClassVar[str] = "polynomial"
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 1.0

    def __post_init__(self) -> None:
        _checks.whole(self, "degree", self.degree, 1)
        _checks.number(self, "gamma", self.gamma, 0.0, math.inf)
        _checks.number(self, "coef0", self.coef0, 0.0, math.inf, "left")

    def __call__(self, A: Array, B: Array) -> Array:
        return self._power(A @ B.T)

    def diag(self, A: Array) -> Array:
        return self._power(np.einsum("ij,ij->i", A, A))

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
class Gaussian(Kernel):
    """k(x, s) = exp(-gamma ||x - s||^2).

    ``gamma="scale"`` settles gamma = 1 / (features * variance) on the first batch learned, if it has at least ten
    rows, and 1 / features (right for standardised features) otherwise. It is the only thing in the library that
    depends on how a stream is cut into batches; give a number where that matters.

    >>> round(float(Gaussian(0.5)(np.zeros((1, 2)), np.ones((1, 2)))[0, 0]), 6)
    0.367879
    """

    twin: ClassVar[str] = "gaussian"
    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        _check_gamma(self, self.gamma)

    def __call__(self, A: Array, B: Array) -> Array:
        gamma = _settled(self, self.gamma, A)
        return np.asarray(np.exp(-A.dtype.type(gamma) * squared_distances(A, B, gamma)))

    def diag(self, A: Array) -> Array:
        return np.ones(len(A), dtype=A.dtype)

    def resolve(self, X: Array) -> Kernel:
        return replace(self, gamma=_scale(X)) if isinstance(self.gamma, str) else self

    def numbers(self) -> tuple[float, ...]:
        return (float(self.gamma),)


@dataclass(frozen=True)
class Laplace(Kernel):
    """k(x, s) = exp(-gamma ||x - s||_1); ``gamma="scale"`` as in `Gaussian`.

    >>> round(float(Laplace(0.5)(np.zeros((1, 2)), np.ones((1, 2)))[0, 0]), 6)
    0.367879
    """

    twin: ClassVar[str] = "laplace"
    gamma: float | str = "scale"

    def __post_init__(self) -> None:
        _check_gamma(self, self.gamma)

    def __call__(self, A: Array, B: Array) -> Array:
        gamma = _settled(self, self.gamma, A)
        return np.asarray(np.exp(-gamma * cdist(A, B, "cityblock"))).astype(A.dtype, copy=False)

    def diag(self, A: Array) -> Array:
        return np.ones(len(A), dtype=A.dtype)

    def resolve(self, X: Array) -> Kernel:
        return replace(self, gamma=_scale(X)) if isinstance(self.gamma, str) else self

    def numbers(self) -> tuple[float, ...]:
        return (float(self.gamma),)


@dataclass(frozen=True)
class Matern(Kernel):
    """Matern kernel of smoothness ``nu`` in {0.5, 1.5, 2.5}; with r = sqrt(2 nu) ||x - s|| / length:

    e^-r, e^-r (1 + r), e^-r (1 + r + r^2 / 3).

    >>> round(float(Matern(1.5, length=2.0)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0]), 6)
    0.784888
    """

    twin: ClassVar[str] = "matern"
    nu: float = 1.5
    length: float = 1.0

    def __post_init__(self) -> None:
        nu = float(self.nu) if isinstance(self.nu, numbers.Real) else self.nu
        _checks.one_of(self, "nu", nu, [0.5, 1.5, 2.5])
        _checks.number(self, "length", self.length, 0.0, math.inf)

    def __call__(self, A: Array, B: Array) -> Array:
        # by differences, not by products: near r = 0 the root would turn a rounding of 1e-16 into 1e-8
        r = (cdist(A, B) * (math.sqrt(2 * self.nu) / self.length)).astype(A.dtype, copy=False)
        decay = np.exp(-r)
        if self.nu == 0.5:
            return np.asarray(decay)
        return np.asarray(decay * (1 + r if self.nu == 1.5 else 1 + r + r * r / 3))

    def diag(self, A: Array) -> Array:
        return np.ones(len(A), dtype=A.dtype)

    def numbers(self) -> tuple[float, ...]:
        return (float(self.nu), math.sqrt(2 * self.nu) / float(self.length))


class _Pair(Kernel):
    """Two kernels joined pointwise."""

    joined: ClassVar[str]
    left: Kernel
    right: Kernel

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            if not isinstance(getattr(self, name), Kernel):
                raise _checks.wrong(self, name, "a Kernel", getattr(self, name))

    def resolve(self, X: Any) -> Kernel:
        return type(self)(self.left.resolve(X), self.right.resolve(X))  # type: ignore[call-arg]

    def takes_any(self) -> bool:
        return self.left.takes_any() and self.right.takes_any()

    def program(self) -> list[Instruction] | None:
        left, right = self.left.program(), self.right.program()
        if left is None or right is None or type(self) not in (Sum, Product):
            return None
        return [*left, *right, (self.joined, ())]


@dataclass(frozen=True)
class Sum(_Pair):
    """k(x, s) = left(x, s) + right(x, s)."""

    joined: ClassVar[str] = "sum"
    left: Kernel
    right: Kernel

    def __call__(self, A: Any, B: Any) -> Array:
        return self.left(A, B) + self.right(A, B)

    def diag(self, A: Any) -> Array:
        return self.left.diag(A) + self.right.diag(A)


@dataclass(frozen=True)
class Product(_Pair):
    """k(x, s) = left(x, s) * right(x, s)."""

    joined: ClassVar[str] = "product"
    left: Kernel
    right: Kernel

    def __call__(self, A: Any, B: Any) -> Array:
        return self.left(A, B) * self.right(A, B)

    def diag(self, A: Any) -> Array:
        return self.left.diag(A) * self.right.diag(A)


@dataclass(frozen=True)
class Scaled(Kernel):
    """k(x, s) = factor * base(x, s), factor > 0."""

    base: Kernel
    factor: float

    def __post_init__(self) -> None:
        if not isinstance(self.base, Kernel):
            raise _checks.wrong(self, "base", "a Kernel", self.base)
        _checks.number(self, "factor", self.factor, 0.0, math.inf)

    def __call__(self, A: Any, B: Any) -> Array:
        values = self.base(A, B)
        return np.asarray(values * values.dtype.type(self.factor))

    def diag(self, A: Any) -> Array:
        values = self.base.diag(A)
        return np.asarray(values * values.dtype.type(self.factor))

    def resolve(self, X: Any) -> Kernel:
        return replace(self, base=self.base.resolve(X))

    def takes_any(self) -> bool:
        return self.base.takes_any()

    def program(self) -> list[Instruction] | None:
        base = self.base.program()
        return None if base is None or type(self) is not Scaled else [*base, ("scale", (float(self.factor),))]


@dataclass(frozen=True)
class Custom(Kernel):
    """A kernel from a function of two batches, ``function(A, B) -> (len(A), len(B))``.

    Points are rows of numbers, or whatever the function understands: then X is a sequence of objects, and A and B
    are lists of them. ``objects=True`` says so where X could be read as a matrix too. ``diagonal(A)`` gives k(a, a)
    directly; without it, the function is called for one point at a time.

    >>> def shared_letters(A, B):
    ...     return np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float)
    >>> Custom(shared_letters)(["kernel", "colonel"], ["line"]).tolist()
    [[3.0], [3.0]]
    """

    any_points: ClassVar[bool] = True
    function: Callable[[Any, Any], Any]
    diagonal: Callable[[Any], Any] | None = None
    objects: bool = False

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise _checks.wrong(self, "function", "callable", self.function)

    def __call__(self, A: Any, B: Any) -> Array:
        return checked_values(self, self.function(A, B), (len(A), len(B)))

    def diag(self, A: Any) -> Array:
        if self.diagonal is not None:
            return checked_values(self, self.diagonal(A), (len(A),))
        singles = (A[i : i + 1] for i in range(len(A)))
        return np.array([self(a, a)[0, 0] for a in singles], dtype=np.float64)


def as_kernel(kernel: Any) -> Kernel:
    """A Kernel from a Kernel, a name ("gaussian", ...) or a function of two batches."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str):
        named: dict[str, Callable[[], Kernel]] = {
            str(part.twin): part for part in (Linear, Polynomial, Gaussian, Laplace, Matern)
        }
        found: Kernel = _checks.lookup("Learner", "kernel", kernel, named)
        return found
    if callable(kernel) and not isinstance(kernel, type):
        return Custom(kernel)
    raise _checks.wrong("Learner", "kernel", "a Kernel, a name or a function of two batches", kernel)


def _check_gamma(kernel: Kernel, gamma: Any) -> None:
    if isinstance(gamma, str):
        _checks.one_of(kernel, "gamma", gamma, ["scale"])
    else:
        _checks.number(kernel, "gamma", gamma, 0.0, math.inf)


def _settled(kernel: Kernel, gamma: float | str, A: Array) -> float:
    return _scale(A) if isinstance(gamma, str) else float(gamma)


def _scale(X: Array) -> float:
    variance = float(np.var(X, dtype=np.float64)) if len(X) >= 10 else 1.0
    return 1.0 / (int(X.shape[1]) * (variance if variance > 0 else 1.0))
