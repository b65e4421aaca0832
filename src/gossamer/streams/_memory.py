"""Arrays and frames (pandas, polars) as streams."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._checks import Array
from gossamer.streams._schema import SAMPLE, Coded, Sampled, Values, coded_numbers
from gossamer.streams._stream import Block, Options, Stream

TARGET = "target"


class MemoryStream(Stream):
    """Rows of columns that are in memory; see `open_stream`."""

    format = "memory"
    name = "the data"

    def __init__(self, columns: dict[str, Array], rows: int, options: Options) -> None:
        self._columns, self._rows = columns, rows
        super().__init__(options)

    def _begin(self, at: Any) -> None:
        self._next = 0 if at is None else _checks.whole("position", "at", at, 0)
        if self._next > self._rows:
            raise _checks.wrong("open_stream", "position", f"inside the data ({self._rows} rows)", at)

    def _sample(self) -> dict[str, Sampled]:
        if not self._rows:
            raise self._empty()
        return {name: sampled(name, values[:SAMPLE]) for name, values in self._columns.items()}

    def _settle(self) -> None:
        schema = self.schema
        self._used = {column.name: column.kind for column in schema.features}
        if schema.target is not None:
            self._used[schema.target.name] = schema.target.kind
        for name in self._used:
            if name not in self._columns:
                raise _checks.wrong("open_stream", "position", f"one in data with a column {name!r}", list(self._columns))

    def _read(self, rows: int) -> Block | None:
        if self._next >= self._rows:
            return None
        part = slice(self._next, min(self._next + rows, self._rows))
        self._next = part.stop
        values: dict[str, Values] = {}
        wrong: list[tuple[int, ValueError]] = []
        for name, kind in self._used.items():
            try:
                values[name] = as_values(self._columns[name][part], kind)
            except Misplaced as bad:
                error = self.bad(part.start + bad.row + 1, name, f"a {kind}, as in the rows before", bad.got)
                wrong.append((bad.row, error))
                values[name] = as_values(self._columns[name][part.start : part.start + bad.row], kind)
        block = Block(part.stop - part.start, values, np.arange(part.start, part.stop + 1))
        return block.cut(*min(wrong, key=lambda each: each[0])) if wrong else block


class Misplaced(Exception):  # noqa: N818
    """A value of another type than its column's."""

    def __init__(self, row: int, got: object) -> None:
        super().__init__(row, got)
        self.row, self.got = row, got


def array_columns(X: Any, y: Any) -> tuple[dict[str, Array], int]:
    """The columns x0, x1, ... of a matrix, and y as "target"."""
    matrix = np.asarray(X)
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise _checks.wrong("open_stream", "source", "a matrix of shape (rows, features)", matrix.shape)
    columns = {f"x{i}": matrix[:, i] for i in range(matrix.shape[1])}
    if y is not None:
        labels = np.asarray(y)
        if labels.shape != (len(matrix),):
            raise _checks.wrong("open_stream", "source", f"with one target per row ({len(matrix)})", labels.shape)
        columns[TARGET] = labels
    return columns, len(matrix)


def frame_columns(frame: Any, y: Any = None) -> tuple[dict[str, Array], int]:
    """The columns of a pandas or polars frame."""
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        again = min(name for name in names if names.count(name) > 1)
        raise ValueError(f"the frame must have columns of different names. Got {again!r} more than once instead.")
    columns = {str(name): _series(frame[name]) for name in frame.columns}
    if y is not None:
        columns[TARGET] = np.asarray(y)
    return columns, len(frame)


def _series(series: Any) -> Array:
    dtype = str(series.dtype).lower()
    if dtype.startswith(("int", "uint", "float")) and hasattr(series, "isna"):  # pandas, also its nullable numbers
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series.to_numpy())


def sampled(name: str, array: Array) -> Sampled:
    """The kind that the values of a column have, and the values."""
    kind = {"f": "number", "i": "number", "u": "number", "b": "boolean", "M": "date"}.get(array.dtype.kind)
    if kind is None:
        kind = _kind_of_objects(array)
    if kind == "text":
        values = as_values(array, kind)
        return Sampled(values, None if _all_dates(values) else "text")
    try:
        return Sampled(as_values(array, kind), kind)
    except Misplaced as bad:
        raise ValueError(f"the data, row {bad.row + 1}, column {name!r}: must be a {kind}, as in the rows before. "
                         f"Got {bad.got!r} instead.") from None  # fmt: skip


def _all_dates(values: Values) -> bool:
    return isinstance(values, Coded) and bool(values.values) and not np.isinf(values.numbers("date")).any()


def _kind_of_objects(array: Array) -> str:
    for value in array.tolist():
        if not is_missing(value):
            return "boolean" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "text"
    return "number"


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas puts in their place."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def as_values(array: Array, kind: str) -> Values:
    """A column as numbers or coded texts, NaN and -1 for the missing."""
    if array.dtype.kind in "fiub":
        numbers = np.ascontiguousarray(array, dtype=np.float64)
        return coded_numbers(numbers) if kind == "text" else numbers
    if array.dtype.kind == "M":
        seconds = array.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(array), np.nan, seconds)
    return from_objects(array.tolist(), kind)


def from_objects(objects: list[Any], kind: str) -> Values:
    """Python values as numbers or coded texts."""
    if kind in ("text", "date"):
        return Coded.of([_text(row, value) for row, value in enumerate(objects)])
    return np.array([_number(row, value, kind) for row, value in enumerate(objects)], dtype=np.float64)


def _text(row: int, value: Any) -> str | None:
    if is_missing(value):
        return None
    if isinstance(value, (str, int)) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    raise Misplaced(row, value)


def _number(row: int, value: Any, kind: str) -> float:
    if is_missing(value):
        return float("nan")
    if isinstance(value, bool) != (kind == "boolean") or not isinstance(value, (int, float)):
        raise Misplaced(row, value)
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return float("inf")
