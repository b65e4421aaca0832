"""Validation of all input, and the one sentence that every error is."""

from __future__ import annotations

import importlib
import math
import numbers
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from gossamer import _core
from gossamer._typing import Array, Floats
from gossamer.exceptions import SHORT, ParameterError


class WrongTypeError(ParameterError, TypeError):
    """A ParameterError that is a TypeError too, for the few places where scikit-learn promises a TypeError."""


def wrong(
    owner: object, parameter: str, rule: str, got: object, kind: type[Exception] = ParameterError
) -> ParameterError:
    """The error for a value that breaks a rule: owner, parameter, rule and what was given.

    >>> print(wrong("Smallest", "size", "an int in [1, inf)", 0))
    The 'size' parameter of Smallest must be an int in [1, inf). Got 0 instead.
    """
    name = owner if isinstance(owner, str) else type(owner).__name__
    rule = rule if len(rule) <= 1000 else f"{rule[:700]} ... {rule[-200:]}"
    return (WrongTypeError if issubclass(kind, TypeError) else ParameterError)(name, parameter, rule, got)


@dataclass(frozen=True, repr=False)
class Entry:
    """A bad entry of X: its value as text, its row, and its column if there are several."""

    shown: str
    row: int
    column: object = None

    def __repr__(self) -> str:
        column = "" if self.column is None else f", column {SHORT.repr(self.column)}"
        return repr(f"{self.shown} in row {self.row}{column}")


@dataclass(frozen=True, repr=False)
class Width:
    """A number of features that differs from that of the rows before."""

    features: int
    expected: int
    owner: str

    def __repr__(self) -> str:
        expected = f"{self.owner} is expecting {self.expected} features as input"
        return repr(f"X has {self.features} features, but {expected}")


def in_the_name_of(
    owner: str, parameters: Collection[str], error: ValueError, columns: Sequence[Any] = ()
) -> ValueError:
    """Rewrite an error so that it names the object that the user called, and the columns of a frame by their names.

    >>> error = wrong("Learner", "X", "finite", Entry("nan", 0, 1))
    >>> print(in_the_name_of("SILKClassifier", ["X"], error, ["width", "height"]))
    The 'X' parameter of SILKClassifier must be finite. Got "nan in row 0, column 'height'" instead.
    """
    if not isinstance(error, ParameterError) or error.parameter not in parameters:
        return error
    got = error.got
    if isinstance(got, Entry) and isinstance(got.column, int) and got.column < len(columns):
        got = replace(got, column=columns[got.column])
    elif isinstance(got, Width):
        got = replace(got, owner=owner)
    return wrong(owner, error.parameter, error.rule, got, type(error))


def number(owner: object, parameter: str, value: Any, low: float, high: float, closed: str = "neither") -> float:
    """Validate a real number inside an interval: finite, or infinite where ``high`` is inf and closed."""
    left, right = closed in ("left", "both"), closed in ("right", "both")
    rule = f"a number in {'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise wrong(owner, parameter, rule, value)
    real = float(value)
    inside = (low < real or (left and low == real)) and (real < high or (right and high == real))
    if not inside:  # NaN is never inside
        raise wrong(owner, parameter, rule, value)
    return real


def whole(owner: object, parameter: str, value: Any, low: int, high: int | None = None) -> int:
    """Validate an integer: at least ``low``, and at most ``high`` where a large one costs memory or time."""
    least = isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)) and int(value) >= low
    if not least or int(value) > (2**62 if high is None else high):
        upper = "inf)" if high is None else f"{high}]"
        raise wrong(owner, parameter, f"an int in [{low}, {upper}", value)
    return int(value)


def one_of(owner: object, parameter: str, value: Any, known: Iterable[Any]) -> Any:
    """Validate a choice among known values; the error lists them."""
    known = list(known)
    if not any(type(value) is type(item) and value == item for item in known):
        raise wrong(owner, parameter, "one of " + ", ".join(repr(item) for item in known), value)
    return value


def matrix(owner: object, X: Any, width: int | None = None, finite: bool = True) -> Array:
    """Validate X: a C-ordered float32 or float64 array of shape (rows, width); float64 unless it is float32.

    The messages contain the words that scikit-learn's checks of an estimator look for.
    """
    if issparse(X):
        raise wrong(owner, "X", "dense here, not sparse: use X.toarray()", type(X).__name__, TypeError)
    try:
        array = np.asarray(X)
    except ValueError:
        raise wrong(owner, "X", "a matrix of numbers, all rows of one length", X) from None
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            reason, got = SHORT.repr(str(error))[1:-1], _no_number(array) or X
            raise wrong(owner, "X", f"a matrix of numbers ({reason})", got, type(error)) from None
    if array.dtype.kind == "c":
        raise wrong(owner, "X", "a matrix of real numbers. Complex data not supported", array.dtype)
    if array.dtype.kind not in "fiub":
        raise wrong(owner, "X", "a matrix of numbers", _no_number(array) or array.dtype)
    if array.ndim != 2:
        hint = "Reshape your data with reshape(1, -1) for one row or reshape(-1, 1) for one feature"
        raise wrong(owner, "X", f"of shape (rows, features). {hint}", array.shape)
    check_width(owner, array.shape, width)
    dtype = np.float32 if array.dtype == np.float32 else np.float64
    array = np.ascontiguousarray(array, dtype=dtype)
    if finite:
        all_finite(owner, array)
    return array


def check_width(owner: object, shape: tuple[int, ...], width: int | None) -> None:
    """Validate the number of features: at least one, and as many as in the rows before."""
    if shape[1] < 1:
        few = f"0 feature(s) (shape={shape}) while a minimum of 1 is required."
        raise wrong(owner, "X", "a matrix with at least one feature", few)
    if width is not None and shape[1] != width:
        name = owner if isinstance(owner, str) else type(owner).__name__
        other = Width(shape[1], width, name)
        raise wrong(owner, "X", f"a matrix with {width} features, as in the rows before", other)


def _no_number(array: Array) -> Entry | None:
    """The first entry of a matrix that is not a number, searched column by column."""
    for column in range(array.shape[1] if array.ndim == 2 else 0):
        for row, value in enumerate(array[:, column].tolist()):
            if not isinstance(value, numbers.Real) and value is not None:
                return Entry(SHORT.repr(value), row, column)
    return None


def all_finite(owner: object, X: Array) -> None:
    """Raise for NaN or infinity, naming the first entry."""
    if not np.isfinite(X).all():
        raise not_finite(owner, X)


def not_finite(owner: object, X: Array) -> ValueError:
    """The error for the first entry of X that is NaN or infinite."""
    row, column = np.argwhere(~np.isfinite(X))[0]
    return wrong(owner, "X", "finite, without NaN or infinity", Entry(str(X[row, column]), int(row), int(column)))


def vector(owner: object, parameter: str, values: Any, length: int, finite: bool = True) -> Floats:
    """Validate a float64 vector of the given length; ``finite``: whether its entries are looked at, too."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise wrong(owner, parameter, "a vector of numbers", values) from None
    if array.dtype.kind not in "fiu":
        raise wrong(owner, parameter, "a vector of numbers", values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.shape[0] != length:
        raise wrong(owner, parameter, f"a vector with one entry per row ({length})", array.shape)
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not finite:
        return array
    low, high = _core.extent(array)  # in one pass; infinite if there are no entries
    if array.size and not (math.isfinite(low) and math.isfinite(high)):
        row = int(np.argmin(np.isfinite(array)))
        raise wrong(owner, parameter, "finite", f"{array[row]} in row {row}")
    return array


def targets(owner: object, values: Any, rows: int, columns: int | None, binary: bool = False) -> Floats:
    """Validate several targets of each row: a finite float64 matrix of this shape; signs if they are binary."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise wrong(owner, "y", "a matrix of numbers, a column for each target", values) from None
    if array.dtype.kind not in "fiub" or array.ndim != 2 or columns not in (None, array.shape[1]) or len(array) != rows:
        shape = f"({rows}, {'targets' if columns is None else columns})"
        raise wrong(owner, "y", f"a matrix of numbers of shape {shape}", array.shape)
    array = np.ascontiguousarray(array, dtype=np.float64)
    if not np.isfinite(array).all():
        row, place = np.argwhere(~np.isfinite(array))[0].tolist()
        raise wrong(owner, "y", "finite", f"{array[row, place]} in row {row}, target {place}")
    if binary and not (np.abs(array) == 1.0).all():
        row, place = np.argwhere(np.abs(array) != 1.0)[0].tolist()
        raise wrong(owner, "y", "-1 or +1", f"{array[row, place]:g} in row {row}, target {place}")
    return array


def column(owner: object, y: Any) -> Array:
    """Validate y as a vector; a single column passes with scikit-learn's warning."""
    if y is None:
        name = type(owner).__name__
        raise wrong(owner, "y", f"given ({name} requires y to be passed, but the target y is None)", None)
    try:
        array = np.asarray(y)
    except ValueError:
        raise wrong(owner, "y", "a vector with one entry per row", y) from None
    if array.ndim == 2 and array.shape[1] == 1:
        text = "A column-vector y was passed when a 1d array was expected. Please use y.ravel()."
        warnings.warn(text, DataConversionWarning, stacklevel=4)
        array = array[:, 0]
    if array.ndim != 1:
        raise wrong(owner, "y", "a vector with one entry per row", array.shape)
    return array


def weights(owner: object, values: Any, length: int) -> Floats | None:
    """Validate sample weights: finite and not negative."""
    if values is None:
        return None
    array = vector(owner, "sample_weight", values, length)
    if array.size and array.min() < 0:
        row = int(array.argmin())
        raise wrong(owner, "sample_weight", "not negative", f"{array[row]} in row {row}")
    return array


def signs(owner: object, y: Floats) -> None:
    """Validate binary targets: -1 and +1, nothing else."""
    good = np.abs(y) == 1.0
    if not good.all():
        row = int(np.argmin(good))
        raise wrong(owner, "y", "-1 or +1", f"{y[row]:g} in row {row}")


def indices(owner: object, y: Floats, classes: int | None) -> None:
    """Validate class labels: 0, 1, ..., below the number of classes where it is known."""
    good = (y >= 0) & (y == np.floor(y)) & (y < (2**20 if classes is None else classes))
    if not good.all():
        row = int(np.argmin(good))
        rule = "a class index 0, 1, ..." + ("" if classes is None else f" below {classes}")
        raise wrong(owner, "y", rule, f"{y[row]:g} in row {row}")


def extra(module: str, what: str, name: str) -> Any:
    """An optional module. Where it is missing, the error is one sentence that names the extra to install.

    >>> extra("spam", "Breakfast", "kitchen")
    Traceback (most recent call last):
    ImportError: Breakfast needs spam: pip install 'gossamer[kitchen]'.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        missing = (error.name or module).partition(".")[0]
        raise ImportError(f"{what} needs {missing}: pip install 'gossamer[{name}]'.", name=missing) from error


def is_table(X: Any) -> bool:
    """Whether X is a matrix of numbers, rather than a sequence of objects."""
    if isinstance(X, Sequence) and (isinstance(X, str) or not X or isinstance(X[0], str)):
        return False
    try:
        array = np.asarray(X)
    except ValueError:
        return False
    return array.ndim == 2 and array.dtype.kind in "fiub"
