"""The rows of one call to a `ModelBank`: validated one by one, and grouped by key."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from gossamer import _checks, _core
from gossamer._typing import Array, Floats, Ints
from gossamer.clock import read_times
from gossamer.estimators import labels as _labels

#: The types of a key: those whose equality is the same in SQLite and in Python.
KEYS = (int, str, bytes)
#: The types of a label.
LABELS = (str, bool, int, float)
#: The most values of the sparse rows of a call once they are dense (1 GB of float64).
MOST_VALUES = 2**27


class RowError(NamedTuple):
    """A row that was left out: its key, its position in the call, and its error."""

    key: Any
    position: int
    message: str


class UnknownKeyError(ValueError, KeyError):
    """A key without a model: a ValueError, like every error of Gossamer, and a KeyError too."""

    __str__ = ValueError.__str__  # KeyError would put it in quotation marks


@dataclass
class Rows:
    """The rows of a call in their order, with the errors of bad rows by position."""

    keys: list[Any] | Ints
    X: Array
    y: Floats | None = None
    weights: Floats | None = None
    order: Array | None = None
    time: Floats | None = None
    bad: dict[int, str] = field(default_factory=dict)

    def key(self, position: int) -> Any:
        """The key of a row, as Python's object."""
        key = self.keys[position]
        return key.item() if isinstance(key, np.generic) else key

    def refuse(self, positions: Any, rule: Callable[[int], ValueError]) -> None:
        """Mark rows as bad; the first error of a row stays."""
        for position in positions:
            self.bad.setdefault(int(position), str(rule(int(position))))


@dataclass
class Groups:
    """Rows grouped by key: ``rows[starts[g]:starts[g + 1]]`` are the rows of ``keys[g]``, in the order of learning."""

    keys: list[Any]
    rows: Ints
    starts: Ints

    def part(self, first: int, last: int) -> Groups:
        """Some of the keys."""
        starts = self.starts[first : last + 1]
        return Groups(self.keys[first:last], self.rows[starts[0] : starts[-1]], starts - starts[0])

    def only(self, groups: list[int]) -> Groups:
        """These keys and no others."""
        starts = np.concatenate([[0], np.cumsum(np.diff(self.starts)[groups])]).astype(np.int64)
        rows = np.concatenate([self.of(group) for group in groups]) if groups else self.rows[:0]
        return Groups([self.keys[group] for group in groups], rows, starts)

    def of(self, group: int) -> Ints:
        """The rows of one key."""
        return self.rows[self.starts[group] : self.starts[group + 1]]


def gathered(rows: Rows) -> Groups:
    """The good rows by key, keys with many rows first: threads that take them in turn end together."""
    sequence = np.delete(np.arange(len(rows.keys)), list(rows.bad))
    if rows.order is not None:
        try:
            sequence = sequence[np.argsort(rows.order[sequence], kind="stable")]
        except TypeError as error:
            raise _checks.wrong("ModelBank", "order", f"of things that have an order ({error})", rows.order) from None
    keys = rows.keys
    if rows.order is not None or rows.bad:
        keys = keys[sequence] if isinstance(keys, np.ndarray) else [keys[i] for i in sequence]
    groups, names = _encode_keys(keys)
    sizes = np.bincount(groups, minlength=len(names))
    heavy = sizes > 8 * max(1.0, len(keys) / max(1, len(names)))
    if heavy.any():
        ranks = np.argsort(-np.where(heavy, sizes, 0), kind="stable")
        place = np.empty_like(ranks)
        place[ranks] = np.arange(len(ranks))
        groups, sizes, names = place[groups], sizes[ranks], [names[i] for i in ranks]
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Groups(names, sequence[_stable_order(groups)].astype(np.int64), starts)


def _encode_keys(keys: list[Any] | Ints) -> tuple[Ints, list[Any]]:
    """A number 0, 1, ... for every key, and the keys by their numbers."""
    if isinstance(keys, np.ndarray) and len(keys):
        low, high = int(keys.min()), int(keys.max())
        if high >= 2**63 or high - low > 4 * len(keys) + 2**16:
            found, groups = np.unique(keys, return_inverse=True)
            return groups, found.tolist()
        places = keys.astype(np.int64) - low
        there = np.zeros(high - low + 1, dtype=bool)
        there[places] = True
        return (np.cumsum(there) - 1)[places], (np.flatnonzero(there) + low).tolist()
    codes: dict[Any, int] = defaultdict(itertools.count().__next__)  # in the order of their first coming
    return np.fromiter(map(codes.__getitem__, keys), np.int64, len(keys)), list(codes)


def _stable_order(groups: Ints) -> Ints:
    """A stable argsort of group numbers, 16 bits at a time, for which NumPy uses a radix sort."""
    by_low = np.argsort((groups & 0xFFFF).astype(np.uint16), kind="stable")
    if not len(groups) or groups.max() <= 0xFFFF:
        return by_low
    return by_low[np.argsort((groups[by_low] >> 16).astype(np.uint16), kind="stable")]


# ---------------------------------------------------------------------------------------------------------- checks


def checked(owner: object, keys: Any, X: Any, order: Any, width: int | None, dtype: Any) -> Rows:
    """Validate keys, X and order of a call. Errors of the call as a whole are raised here."""
    names, sure = _names(owner, keys)
    bad: dict[int, str] = {}
    rows = Rows(names, _matrix(owner, X, len(names), width, dtype, bad), bad=bad)
    if len(rows.X) != len(names):
        raise _checks.wrong(owner, "keys", f"one for each of {len(rows.X)} rows", len(names))
    if not sure and not set(map(type, names)) <= set(KEYS):
        strange = [i for i, key in enumerate(names) if type(key) not in KEYS]
        rows.refuse(strange, lambda i: _checks.wrong(owner, "keys", "ints, texts or bytes", names[i]))
    if not _core.all_finite(rows.X):
        finite = np.isfinite(rows.X).all(axis=1)
        rows.refuse(np.flatnonzero(~finite), lambda i: _not_finite(owner, rows.X[i]))
    if order is not None:
        rows.order = np.asarray(order)
        if rows.order.shape != (len(names),) or rows.order.dtype.kind in "cV":
            raise _checks.wrong(owner, "order", f"{len(names)} numbers, times or texts", rows.order.shape)
        if rows.order.dtype.kind in "fmMO":
            nothing = np.array([x is None or x != x for x in rows.order], dtype=bool)
            rows.refuse(np.flatnonzero(nothing), lambda i: _checks.wrong(owner, "order", "no NaN", order[i]))
    return rows


def real_targets(owner: object, rows: Rows, y: Any) -> Floats:
    """The targets of a regression; a row whose target is not a finite number is bad."""
    values = _sequence(owner, "y", y, len(rows.keys))
    try:
        targets = _checks.vector(owner, "y", values, len(rows.keys))
    except ValueError:
        targets = np.array([_number(value) for value in values])
        wrong = np.flatnonzero(~np.isfinite(targets))
        rows.refuse(wrong, lambda i: _checks.wrong(owner, "y", "a finite number", values[i]))
    return targets


def several_targets(owner: Any, rows: Rows, y: Any) -> Floats:
    """The targets of a regression of several; a row with one that is not a finite number is bad."""
    values, shape = _sequence(owner, "y", y, len(rows.keys)), (len(rows.keys), owner.targets)
    try:
        targets = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        targets = np.zeros(0)
    if targets.shape != shape:
        raise _checks.wrong(owner, "y", f"a matrix of numbers, of shape {shape}", np.shape(targets))
    wrong = np.flatnonzero(~np.isfinite(targets).all(axis=1))
    rows.refuse(wrong, lambda i: _checks.wrong(owner, "y", "finite numbers", targets[i].tolist()))
    return targets


def row_weights(owner: object, rows: Rows, values: Any) -> Floats | None:
    """The sample weights; a row whose weight is not finite, or negative, is bad."""
    if values is None:
        return None
    given = _sequence(owner, "sample_weight", values, len(rows.keys))
    try:
        return _checks.weights(owner, given, len(rows.keys))
    except ValueError:
        weights = np.array([_number(value) for value in given])
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    rows.refuse(wrong, lambda i: _checks.wrong(owner, "sample_weight", "a finite number in [0, inf)", given[i]))
    return weights


def row_times(owner: object, rows: Rows, values: Any) -> Floats | None:
    """The times of rows in seconds; a row without a time is bad."""
    if values is None:
        return None
    given = _sequence(owner, "time", values, len(rows.keys))
    try:
        return read_times(owner, given, len(rows.keys))
    except ValueError:
        times = np.full(len(rows.keys), np.nan)
    for position, value in enumerate(given):
        try:
            times[position] = read_times(owner, [value], 1)[0]
        except ValueError as error:
            rows.bad.setdefault(position, str(error))
    return times


def label_targets(owner: object, rows: Rows, y: Any, known: Sequence[Any], given: bool) -> tuple[Floats, list[Any]]:
    """The codes of the labels, and the list that they index: known labels, then new labels."""
    labels, count = _checks.column(owner, _sequence(owner, "y", y, len(rows.keys))), len(rows.keys)
    order = list(known)
    if labels.dtype.kind in "biufU" and count and not rows.bad:  # the common case: few labels, no bad rows
        first = order if given else list(dict.fromkeys([*order, *labels[:64].tolist()]))
        if len({isinstance(label, str) for label in first}) == 1:
            codes = _labels.encode(labels, first)
            if codes is not None and np.isfinite(np.array(first) if labels.dtype.kind == "f" else 0.0).all():
                return codes, first
    numbers = {label: float(number) for number, label in enumerate(order)}
    codes = np.full(count, -1.0)
    for position, label in enumerate(labels.tolist()):
        number = numbers.get(label) if type(label) in LABELS else None
        if number is None and position not in rows.bad:
            rule = _label_rule(label, order, given)
            if rule is not None:
                rows.bad[position] = str(_checks.wrong(owner, "y", rule, label))
                continue
            number = numbers[label] = float(len(order))
            order.append(label)
        codes[position] = -1.0 if number is None else number
    return codes, order


def _label_rule(label: Any, order: list[Any], given: bool) -> str | None:
    """The error of a new label; None if it is valid."""
    if type(label) not in LABELS or label != label or label in (math.inf, -math.inf):
        return "a label: a text, a number or a bool"
    if given:
        return f"one of the classes {order}"
    if order and isinstance(label, str) != isinstance(order[0], str):
        return f"a label of the kind of {order[0]!r}"
    return None


def _names(owner: object, keys: Any) -> tuple[list[Any] | Ints, bool]:
    """The keys, numbers as an array and others as Python objects, and whether all are known to be of a valid type."""
    if isinstance(keys, (str, bytes)):
        raise _checks.wrong(owner, "keys", "one for each row", keys)
    values = keys if isinstance(keys, (list, tuple)) else np.asarray(keys)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise _checks.wrong(owner, "keys", "a vector, one for each row", values.shape)
        if values.dtype.kind in "iu":
            return values, True
        if values.dtype.kind in "US":
            return values.tolist(), True
        values = values.tolist()
    if any(issubclass(kind, np.generic) for kind in set(map(type, values))):
        values = [key.item() if isinstance(key, np.generic) else key for key in values]
    return list(values), False


def _matrix(owner: object, X: Any, count: int, width: int | None, dtype: Any, bad: dict[int, str]) -> Array:
    if issparse(X):
        if X.ndim == 2 and X.shape[0] * X.shape[1] > MOST_VALUES:
            rule = f"of at most {MOST_VALUES} values where rows are sparse, as a bank keeps all features"
            raise _checks.wrong(owner, "X", rule, X.shape)
        X = X.toarray()
    try:
        rows = _checks.matrix(owner, X, width, finite=False)
    except ValueError as error:
        rows = _row_by_row(owner, X, count, width, bad, error)
    if dtype is not None and rows.dtype != dtype:
        with np.errstate(over="ignore"):
            rows = rows.astype(dtype)
    return rows


def _row_by_row(owner: object, X: Any, count: int, width: int | None, bad: dict[int, str], error: ValueError) -> Array:
    """The rows as a matrix; a row that is not one of numbers is bad, and NaN in the matrix."""
    values = np.asarray(X) if hasattr(X, "__array__") else X
    if not isinstance(values, (list, tuple, np.ndarray)) or len(values) != count or np.ndim(values[:0]) > 2:
        raise error
    if isinstance(values, np.ndarray) and values.ndim != 2:
        raise error
    found: list[Any] = []
    for position, row in enumerate(values):
        try:
            found.append(_checks.matrix(owner, [row], width, finite=False)[0])
        except (ValueError, TypeError) as problem:
            bad[position] = str(problem)
            found.append(None)
            continue
        width = len(found[-1])
    if width is None:
        raise error
    if len(bad) == count:  # nothing will be learned: no room for rows that may be wide
        return np.full((count, 1), np.nan)
    return np.array([np.full(width, np.nan) if row is None else row for row in found])


def _not_finite(owner: object, x: Array) -> ValueError:
    column = int(np.argmin(np.isfinite(x)))
    return _checks.wrong(owner, "X", "finite, without NaN or infinity", f"{x[column]} in column {column}")


def _sequence(owner: object, parameter: str, y: Any, count: int) -> Any:
    if y is None:
        raise _checks.wrong(owner, parameter, "given for a model that learns targets", None)
    try:
        values = y if hasattr(y, "__len__") else list(y)
        length = len(values)
    except TypeError:
        length = None
    if length != count:
        got = y if length is None else length
        raise _checks.wrong(owner, parameter, f"a vector with one entry per row ({count})", got)
    return values if isinstance(values, list) else np.asarray(values)


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, (str, bytes)) else float(value)
    except (TypeError, ValueError):
        return math.nan
