"""Every check of what comes in, and the one sentence every error is told in."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def wrong(owner: object, parameter: str, rule: str, got: object) -> ValueError:
    """The error for a value that breaks a rule: owner, parameter, rule and what was given.

    >>> print(wrong("Smallest", "size", "an int in [1, inf)", 0))
    The 'size' parameter of Smallest must be an int in [1, inf). Got 0 instead.
    """
    name = owner if isinstance(owner, str) else type(owner).__name__
    return ValueError(f"The '{parameter}' parameter of {name} must be {rule}. Got {got!r} instead.")


def number(
    owner: object, parameter: str, value: Any, low: float, high: float, closed: str = "neither"
) -> float:
    """A finite (or, where ``high`` is inf and closed, infinite) real number inside an interval."""
    left, right = closed in ("left", "both"), closed in ("right", "both")
    rule = f"a number in {'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise wrong(owner, parameter, rule, value)
    real = float(value)
    inside = (low < real or (left and low == real)) and (real < high or (right and high == real))
    if not inside:  # NaN is never inside
        raise wrong(owner, parameter, rule, value)
    return real


def whole(owner: object, parameter: str, value: Any, low: int) -> int:
    """An integer, at least ``low``."""
    if (
        isinstance(value, (bool, np.bool_))
        or not isinstance(value, numbers.Integral)
        or int(value) < low
    ):
        raise wrong(owner, parameter, f"an int in [{low}, inf)", value)
    return int(value)


def one_of(owner: object, parameter: str, value: Any, known: Iterable[Any]) -> Any:
    """One of the known values; the error lists them."""
    known = list(known)
    if not any(type(value) is type(item) and value == item for item in known):
        raise wrong(owner, parameter, "one of " + ", ".join(repr(item) for item in known), value)
    return value


def matrix(owner: object, X: Any, width: int | None = None, finite: bool = True) -> Array:
    """X as a C-ordered float32 or float64 array of shape (rows, width); float64 unless it is float32."""
    try:
        array = np.asarray(X)
    except ValueError:
        raise wrong(owner, "X", "a matrix of numbers", X) from None
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise wrong(owner, "X", "a matrix of numbers", _short(X)) from None
    if array.dtype.kind not in "fiub":
        raise wrong(owner, "X", "a matrix of numbers", array.dtype)
    if array.ndim != 2:
        raise wrong(owner, "X", "of shape (rows, features)", array.shape)
    if array.shape[1] < 1 or (width is not None and array.shape[1] != width):
        expected = f"{width} features, as in the rows before" if width else "at least one feature"
        raise wrong(owner, "X", f"a matrix with {expected}", f"{array.shape[1]} features")
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    array = np.ascontiguousarray(array, dtype=dtype)
    if finite:
        all_finite(owner, array)
    return array


def all_finite(owner: object, X: Array) -> None:
    """Raise for NaN or infinity, naming the first place."""
    if not np.isfinite(X).all():
        raise not_finite(owner, X)


def not_finite(owner: object, X: Array) -> ValueError:
    """The error for the first entry of X that is NaN or infinite."""
    row, column = np.argwhere(~np.isfinite(X))[0]
    return wrong(owner, "X", "finite", f"{X[row, column]} in row {row}, column {column}")


def vector(owner: object, parameter: str, values: Any, length: int) -> NDArray[np.float64]:
    """A finite float64 vector of the given length."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise wrong(owner, parameter, "a vector of numbers", _short(values)) from None
    if array.dtype.kind not in "fiu":
        raise wrong(owner, parameter, "a vector of numbers", _short(values))
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.shape[0] != length:
        raise wrong(owner, parameter, f"a vector with one entry per row ({length})", array.shape)
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise wrong(owner, parameter, "finite", f"{array[row]} in row {row}")
    return array


def weights(owner: object, values: Any, length: int) -> NDArray[np.float64] | None:
    """Sample weights: finite and not negative."""
    if values is None:
        return None
    array = vector(owner, "sample_weight", values, length)
    if array.size and array.min() < 0:
        row = int(array.argmin())
        raise wrong(owner, "sample_weight", "not negative", f"{array[row]} in row {row}")
    return array


def signs(owner: object, y: NDArray[np.float64]) -> None:
    """Binary targets are -1 and +1, nothing else."""
    good = np.abs(y) == 1.0
    if not good.all():
        row = int(np.argmin(good))
        raise wrong(owner, "y", "-1 or +1", f"{y[row]:g} in row {row}")


def indices(owner: object, y: NDArray[np.float64], classes: int | None) -> None:
    """Class labels are 0, 1, ..., below the number of classes where it is known."""
    good = (y >= 0) & (y == np.floor(y)) & (y < (2**20 if classes is None else classes))
    if not good.all():
        row = int(np.argmin(good))
        rule = "a class index 0, 1, ..." + ("" if classes is None else f" below {classes}")
        raise wrong(owner, "y", rule, f"{y[row]:g} in row {row}")


def lookup(owner: object, parameter: str, name: str, known: dict[str, Callable[[], Any]]) -> Any:
    """The part of a given name; the error lists the known names."""
    if name not in known:
        raise wrong(owner, parameter, "one of " + ", ".join(map(repr, sorted(known))), name)
    return known[name]()


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def is_table(X: Any) -> bool:
    """Whether X reads as a matrix of numbers, rather than as a sequence of other things."""
    if isinstance(X, Sequence) and (isinstance(X, str) or not X or isinstance(X[0], str)):
        return False
    try:
        array = np.asarray(X)
    except ValueError:
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"
