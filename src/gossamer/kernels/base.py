"""The contract of a kernel, and the kernels made of other kernels: sums, products, multiples."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._registry import twin_of
from gossamer._typing import Array
from gossamer.kernels.checks import checked_values

#: The largest number of additive parts that a compiled program has room for.
MOST_ADDITIVE = 5
#: One step of a kernel's compiled program: a name and its numbers.
Instruction = tuple[str, tuple[float, ...]]


@dataclass(frozen=True)
class Term:
    """One term of a semiseparable kernel of one number, k(p, q) with a = min(p, q), r = abs(p - q):

    "decay": weight e^-u sum_j coefs_j u^j, u = theta r; "ramp": weight times the integral over t in [0, a] of
    (p - t)^order (q - t)^order; "power": weight (p q)^order.
    """

    kind: str
    order: int
    weight: float = 1.0
    theta: float = 1.0
    coefs: tuple[float, ...] = ()

    def numbers(self) -> tuple[float, ...]:
        """As the core reads it."""
        kind = ("decay", "ramp", "power").index(self.kind)
        return (float(kind), float(self.order), self.weight, self.theta, *self.coefs)


@dataclass(frozen=True)
class Coordinate:
    """One number made of a row, x_a, x_a x_b or x_a - x_b, and the terms of its kernel."""

    a: int
    terms: tuple[Term, ...]
    b: int = 0
    made: str = "plain"

    def numbers(self) -> tuple[float, ...]:
        """As the core reads it."""
        made = ("plain", "product", "difference").index(self.made)
        return (made, self.a, self.b, len(self.terms), *(number for term in self.terms for number in term.numbers()))


def scaled(coordinate: Coordinate, factor: float) -> Coordinate:
    """The coordinate with its kernel times a factor."""
    return replace(
        coordinate, terms=tuple(replace(term, weight=float(factor) * term.weight) for term in coordinate.terms)
    )


def joined(coordinates: list[Coordinate]) -> list[Coordinate]:
    """The coordinates with duplicates merged: the terms of equal numbers are joined, which saves a tree."""
    found: dict[tuple[int, int, str], Coordinate] = {}
    for c in coordinates:
        place = (c.a, c.b, c.made)
        found[place] = replace(c, terms=found[place].terms + c.terms) if place in found else c
    return list(found.values())


def flat(coordinates: list[Coordinate]) -> tuple[float, ...]:
    """As the core reads them."""
    return tuple(float(number) for coordinate in coordinates for number in coordinate.numbers())


class Kernel:
    """A positive semidefinite function of two points, evaluated on batches.

    A subclass defines ``__call__`` and ``diag``. A class with a C++ twin names it in its own ``twin``; a subclass
    that names none runs in Python.
    """

    twin: ClassVar[str | None] = None
    #: Whether points may be objects other than rows of numbers.
    any_points: ClassVar[bool] = False
    #: Whether the kernel is one of products and differences of rows, so that features that are 0 in both do not matter.
    sparse: ClassVar[bool] = False
    #: Whether k(x, x) is largest where ||x|| is.
    by_norm: ClassVar[bool] = True

    @property
    def splits(self) -> bool:
        """Whether the kernel may be a sum of semiseparable kernels of one number, for some number of features."""
        return self.terms() is not None

    def __call__(self, A: Any, B: Any) -> Array:
        raise NotImplementedError

    def diag(self, A: Any) -> Array:
        """k(a, a) for every a of A."""
        raise NotImplementedError

    def resolve(self, X: Any) -> Kernel:
        """The kernel with everything that depends on the data settled, from the first rows seen."""
        return self

    def terms(self) -> list[Term] | None:
        """The terms of a semiseparable kernel of one number (ALGORITHMS 11.1); None for any other kernel."""
        return None

    def coordinates(self, features: int) -> list[Coordinate] | None:
        """The coordinates of a sum of semiseparable kernels of one number each; None for any other kernel."""
        terms = self.terms() if features == 1 else None
        return None if terms is None else [Coordinate(0, tuple(terms))]

    def check_domain(self, owner: object, X: Array, column: int | None = None) -> None:
        """Raise for a row outside the kernel's domain; ``column``: the column that a single feature of X comes from."""

    def spectrum(self, rng: np.random.Generator, count: int, features: int) -> Array:
        """Random frequencies w, one in each row, with k(x, s) = E cos(w . (x - s)); for kernels that are 1 at x = s."""
        raise NotImplementedError

    def takes_any(self) -> bool:
        """Whether this kernel, or a part of it, accepts points that are not rows of numbers."""
        return self.any_points

    def takes_sparse(self) -> bool:
        """Whether rows of which only the non-zeros are kept (`SparseRows`) may be given, here and in compiled code."""
        return self.sparse and twin_of(self) is not None

    @property
    def slow_diag(self) -> bool:
        """Whether `diag` costs a call for each row, so that a diagonal that is known already is better."""
        return False

    def program(self, features: int) -> list[Instruction] | None:
        """The kernel of rows with this many features, in postfix form for the core; None if a part has no twin."""
        name = twin_of(self)
        return None if name is None else [(name, self.numbers())]

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes."""
        return ()

    def __add__(self, other: Kernel) -> Kernel:
        return Sum(self, _part(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        if isinstance(other, numbers.Real):
            return Scaled(self, float(other))
        return Product(self, _part(other))

    __rmul__ = __mul__


class _Pair(Kernel):
    """Two kernels combined pointwise."""

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

    def takes_sparse(self) -> bool:
        return type(self) in (Sum, Product) and self.left.takes_sparse() and self.right.takes_sparse()

    def check_domain(self, owner: object, X: Array, column: int | None = None) -> None:
        self.left.check_domain(owner, X, column)
        self.right.check_domain(owner, X, column)

    @property
    def by_norm(self) -> bool:  # type: ignore[override]
        return self.left.by_norm and self.right.by_norm

    def program(self, features: int) -> list[Instruction] | None:
        left, right = self.left.program(features), self.right.program(features)
        if left is None or right is None or type(self) not in (Sum, Product):
            return None
        program = [*left, *right, (self.joined, ())]
        return program if sum(name == "additive" for name, _ in program) <= MOST_ADDITIVE else None


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

    @property
    def splits(self) -> bool:
        return self.left.splits and self.right.splits and type(self) is Sum

    def terms(self) -> list[Term] | None:
        left, right = self.left.terms(), self.right.terms()
        return None if left is None or right is None or type(self) is not Sum else [*left, *right]

    def coordinates(self, features: int) -> list[Coordinate] | None:
        left, right = self.left.coordinates(features), self.right.coordinates(features)
        return None if left is None or right is None or type(self) is not Sum else joined([*left, *right])

    def program(self, features: int) -> list[Instruction] | None:
        parts, coordinates = [self.left.program(features), self.right.program(features)], self.coordinates(features)
        if coordinates is not None and all(part and part[0][0] == "additive" for part in parts):
            return [("additive", flat(coordinates))]  # one part, not a sum of several
        return super().program(features)


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

    def takes_sparse(self) -> bool:
        return type(self) is Scaled and self.base.takes_sparse()

    def check_domain(self, owner: object, X: Array, column: int | None = None) -> None:
        self.base.check_domain(owner, X, column)

    @property
    def by_norm(self) -> bool:  # type: ignore[override]
        return self.base.by_norm

    @property
    def splits(self) -> bool:
        return self.base.splits

    def terms(self) -> list[Term] | None:
        terms = self.base.terms() if type(self) is Scaled else None
        return None if terms is None else [replace(term, weight=self.factor * term.weight) for term in terms]

    def coordinates(self, features: int) -> list[Coordinate] | None:
        base = self.base.coordinates(features) if type(self) is Scaled else None
        return None if base is None else [scaled(coordinate, self.factor) for coordinate in base]

    def program(self, features: int) -> list[Instruction] | None:
        base = self.base.program(features)
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

    @property
    def slow_diag(self) -> bool:
        return self.diagonal is None

    def diag(self, A: Any) -> Array:
        if self.diagonal is not None:
            return checked_values(self, self.diagonal(A), (len(A),))
        singles = (A[i : i + 1] for i in range(len(A)))
        return np.array([self(a, a)[0, 0] for a in singles], dtype=np.float64)


def _part(kernel: Any) -> Kernel:
    """The other operand of a sum or a product: a kernel, or a function of two batches."""
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return Custom(kernel)
    raise _checks.wrong("Kernel", "other", "a Kernel, a number or a function of two batches", kernel)
