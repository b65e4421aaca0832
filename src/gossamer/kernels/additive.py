"""Semiseparable kernels of one number, and sums of them over the features of a row (Herbster 2001, section 5;
ALGORITHMS 11).

k(p, q) = sum_j phi_j(min) psi_j(max): the points to the left of p act on those to its right through a few sums.
A learner with such a kernel keeps its expansion in search trees and learns a row in O(log m).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._typing import Array
from gossamer.kernels.base import Coordinate, Instruction, Kernel, Term, flat, joined

#: The largest p of a Matern kernel p + 1/2, and the largest order of a spline: beyond, powers overflow.
MATERN_ORDER, SPLINE_ORDER = 16, 32


def matern_coefs(p: int) -> tuple[float, ...]:
    """c_j of Matern p + 1/2: e^-r sum_j c_j r^j.

    >>> matern_coefs(2)
    (1.0, 1.0, 0.3333333333333333)
    """
    f = math.factorial
    return tuple(f(p) * f(2 * p - j) * 2**j / (f(2 * p) * f(p - j) * f(j)) for j in range(p + 1))


class _OneNumber(Kernel):
    """A kernel of rows with one feature; `Additive` carries it to more."""

    def __call__(self, A: Array, B: Array) -> Array:
        p, q = self._column(A)[:, None], self._column(B)[None, :]
        return self._values(p, q)

    def diag(self, A: Array) -> Array:
        p = self._column(A)
        return self._values(p, p)

    def _values(self, p: Array, q: Array) -> Array:
        raise NotImplementedError

    def _column(self, A: Array) -> Array:
        A = np.asarray(A)
        if A.shape[1] != 1:
            rule = f"of one feature, or the kernel Additive({type(self).__name__}(...))"
            raise _checks.wrong(self, "X", rule, f"{A.shape[1]} features")
        return A[:, 0]

    def check_domain(self, owner: object, X: Array, column: int | None = None) -> None:
        self._column(X)

    def program(self, features: int) -> list[Instruction] | None:
        return _program(self.coordinates(features))


class _FromZero(_OneNumber):
    """A kernel of one non-negative number."""

    def check_domain(self, owner: object, X: Array, column: int | None = None) -> None:
        values = self._column(X)
        if len(values) and values.min() < 0:
            row, rule = int(np.argmin(values)), f"not negative for the kernel {type(self).__name__}"
            raise _checks.wrong(owner, "X", rule, _checks.Entry(str(values[row]), row, column))


@dataclass(frozen=True)
class Exponential(_OneNumber):
    """k(p, q) = exp(-abs(p - q) / length): the Ornstein-Uhlenbeck kernel.

    >>> round(float(Exponential(2.0)(np.zeros((1, 1)), np.ones((1, 1)))[0, 0]), 6)
    0.606531
    """

    twin: ClassVar[str] = "exponential"
    length: float = 1.0

    def __post_init__(self) -> None:
        _checks.number(self, "length", self.length, 0.0, math.inf)

    def _values(self, p: Array, q: Array) -> Array:
        return np.asarray(np.exp(-np.abs(p - q) / p.dtype.type(self.length)))

    def terms(self) -> list[Term] | None:
        return [Term("decay", 0, 1.0, 1.0 / float(self.length), (1.0,))] if type(self) is Exponential else None


@dataclass(frozen=True)
class Brownian(_FromZero):
    """k(p, q) = min(p, q) for p, q >= 0: Brownian motion, linear splines without their constant.

    >>> Brownian()(np.array([[0.5], [2.0]]), np.array([[1.0]])).tolist()
    [[0.5], [1.0]]
    """

    twin: ClassVar[str] = "brownian"

    def _values(self, p: Array, q: Array) -> Array:
        return np.asarray(np.minimum(p, q))

    def terms(self) -> list[Term] | None:
        return [Term("ramp", 0)] if type(self) is Brownian else None


@dataclass(frozen=True)
class Spline(_FromZero):
    """Splines of degree 2 order + 1 with knots at the data, for p, q >= 0 (Herbster 2001, equation 2), z = order:

    k(p, q) = sum_(r <= z) (p q)^r + integral over t in [0, min(p, q)] of (p - t)^z (q - t)^z.

    For z = 1, with a = min and b = max: 1 + p q + a^2 b / 2 - a^3 / 6 (the paper's equation 4 has 5/6 by mistake).
    Features are best scaled to about 1: powers up to 2 z + 1 of them are taken.

    >>> round(float(Spline(1)(np.array([[0.7]]), np.array([[1.9]]))[0, 0]), 4)
    2.7383
    """

    twin: ClassVar[str] = "spline"
    order: int = 1

    def __post_init__(self) -> None:
        _checks.whole(self, "order", self.order, 0, SPLINE_ORDER)

    def _values(self, p: Array, q: Array) -> Array:
        z, a, r = int(self.order), np.minimum(p, q), np.abs(p - q)
        powers = sum((p * q) ** j for j in range(1, z + 1))
        ramps = sum(math.comb(z, j) / (2 * z + 1 - j) * a ** (2 * z + 1 - j) * r**j for j in range(z + 1))
        return np.asarray(1 + powers + ramps, dtype=p.dtype)

    def terms(self) -> list[Term] | None:
        if type(self) is not Spline:
            return None
        return [Term("ramp", int(self.order)), *(Term("power", r) for r in range(int(self.order) + 1))]


@dataclass(frozen=True)
class Additive(Kernel):
    """k(x, s) = sum over the features i of weight_i base(x_i, s_i): the kernel of functions f(x) = sum_i f_i(x_i).

    Parameters
    ----------
    base : a kernel of one number, or a kernel for each coordinate. If all are semiseparable (`Exponential`, `Matern`,
        `Brownian`, `Spline`, `Linear`, their sums and multiples) a row is learned in O(log m); others work too.
    weights : a positive factor for each coordinate.
    products, differences : pairs of features whose product or difference is a further coordinate, after the features:
        interactions of low order.

    >>> x, s = np.array([[0.5, 1.0]]), np.array([[1.5, 1.0]])
    >>> round(float(Additive(Exponential())(x, s)[0, 0]), 6)
    1.367879
    >>> round(float(Additive(Brownian(), weights=(1.0, 2.0, 1.0), products=((0, 1),))(x, s)[0, 0]), 6)
    3.0
    """

    by_norm: ClassVar[bool] = False
    base: Any = Spline()
    weights: Sequence[float] | None = None
    products: Sequence[tuple[int, int]] = ()
    differences: Sequence[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        several = isinstance(self.base, (list, tuple))
        if several and not self.base:
            raise _checks.wrong(self, "base", "at least one kernel", self.base)
        for base in self.base if several else (self.base,):
            if not isinstance(base, Kernel):
                raise _checks.wrong(self, "base", "a Kernel of one number, or a list of one per coordinate", base)
        for name in ("products", "differences"):
            pairs = getattr(self, name)
            listed = isinstance(pairs, (list, tuple)) and all(isinstance(pair, (list, tuple)) for pair in pairs)
            if not listed or not all(len(pair) == 2 and all(_is_index(i) for i in pair) for pair in pairs):
                raise _checks.wrong(self, name, "pairs of feature numbers 0, 1, ...", pairs)
            object.__setattr__(self, name, tuple((int(a), int(b)) for a, b in pairs))
        if self.weights is not None:
            if not isinstance(self.weights, (list, tuple)) or not self.weights:
                raise _checks.wrong(self, "weights", "a list with a number for each coordinate", self.weights)
            weights = tuple(_checks.number(self, "weights", w, 0.0, math.inf) for w in self.weights)
            object.__setattr__(self, "weights", weights)
        if several:
            object.__setattr__(self, "base", tuple(self.base))

    def columns(self, X: Array) -> Array:
        """The coordinates of every row: its features, then the products, then the differences."""
        X = np.asarray(X)
        width = X.shape[1]
        for name in ("products", "differences"):
            for pair in getattr(self, name):
                if max(pair) >= width:
                    raise _checks.wrong(self, name, f"pairs of the {width} features", pair)
        with np.errstate(over="ignore"):  # an infinite k(x, x) is an error later
            made = [X[:, a] * X[:, b] for a, b in self.products] + [X[:, a] - X[:, b] for a, b in self.differences]
        return np.column_stack([X, *made]) if made else X

    def bases(self, features: int) -> list[Kernel]:
        """The kernel of each coordinate, with its weight."""
        count = features + len(self.products) + len(self.differences)
        bases = list(self.base) if isinstance(self.base, tuple) else [self.base] * count
        for name, values in (("base", bases), ("weights", self.weights)):
            if values is not None and len(values) != count:
                raise _checks.wrong(self, name, f"given for each of the {count} coordinates", len(values))
        return bases if self.weights is None else [w * base for w, base in zip(self.weights, bases, strict=True)]

    def __call__(self, A: Array, B: Array) -> Array:
        p, q = self.columns(A), self.columns(B)
        parts = [base(p[:, [i]], q[:, [i]]) for i, base in enumerate(self.bases(np.shape(A)[1]))]
        return np.asarray(sum(parts[1:], parts[0]))

    def diag(self, A: Array) -> Array:
        p = self.columns(A)
        parts = [base.diag(p[:, [i]]) for i, base in enumerate(self.bases(np.shape(A)[1]))]
        return np.asarray(sum(parts[1:], parts[0]))

    def resolve(self, X: Array) -> Kernel:
        if not isinstance(self.base, tuple) and self.base.resolve(X[:, :1]) is self.base:
            return self
        p = self.columns(X)
        bases = list(self.base) if isinstance(self.base, tuple) else [self.base] * p.shape[1]
        return replace(self, base=tuple(base.resolve(p[:, [i]]) for i, base in enumerate(bases)))

    def check_domain(self, owner: object, X: Array, column: int | None = None) -> None:
        p = self.columns(X)
        for i, base in enumerate(self.bases(np.shape(X)[1])):
            base.check_domain(owner, p[:, [i]], i)

    @property
    def splits(self) -> bool:
        bases = self.base if isinstance(self.base, tuple) else (self.base,)
        return type(self) is Additive and all(base.terms() is not None for base in bases)

    def coordinates(self, features: int) -> list[Coordinate] | None:
        terms = [base.terms() for base in self.bases(features)]
        if type(self) is not Additive or any(part is None for part in terms):
            return None
        places = [(i, 0, "plain") for i in range(features)]
        places += [(a, b, "product") for a, b in self.products] + [(a, b, "difference") for a, b in self.differences]
        made = zip(places, terms, strict=True)
        return joined([Coordinate(a, tuple(part or ()), b, how) for (a, b, how), part in made])

    def program(self, features: int) -> list[Instruction] | None:
        return _program(self.coordinates(features))


def _program(coordinates: list[Coordinate] | None) -> list[Instruction] | None:
    return None if coordinates is None else [("additive", flat(coordinates))]


def _is_index(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and int(value) >= 0
