"""Arrays and frames (pandas, polars) as streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array
from gossamer.rows import Coded
from gossamer.rows.table import Values, as_text, coded_numbers, is_missing, unique_names
from gossamer.streams._chunk import Block, Options
from gossamer.streams._schema import SAMPLE, Sampled, as_number
from gossamer.streams._stream import Stream

#: What a value may be.
PLAIN = "a number, a boolean, a text or a date"

TARGET = "target"


class MemoryStream(Stream):
    """Rows of columns that are in memory; see `open_stream`."""

    format = "memory"
    name = "the data"
    bounded = False

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
        first = {name: without(values[:SAMPLE], self._options) for name, values in self._columns.items()}
        cope = self._options.missing == "fill"
        return {name: sampled(name, values, self.bad, cope) for name, values in first.items()}

    def _settle(self) -> None:
        self._used = self.kinds
        for name in self._used:
            if name not in self._columns:
                rule = f"one in data with a column {name!r}"
                raise _checks.wrong("open_stream", "position", rule, list(self._columns))

    def _pass_over(self, start: int, line: int) -> bool:
        self._next = start + 1
        return True

    def _read(self, rows: int) -> Block | None:
        if self._next >= self._rows:
            return None
        part = slice(self._next, min(self._next + rows, self._rows))
        self._next = part.stop
        columns = {name: self._columns[name][part] for name in self._used}
        return typed_block(self, columns, self._used, np.arange(part.start, part.stop + 1))


def typed_block(
    stream: Stream, columns: dict[str, Any], kinds: dict[str, str], starts: Any, lines: Any = None
) -> Block:
    """Columns of Python values or arrays as a block, up to the first row with a value of another type."""
    values: dict[str, Values] = {}
    wrong: list[tuple[int, ValueError]] = []
    for name, kind in kinds.items():
        column = without(columns[name], stream._options)
        try:
            values[name] = as_values(column, kind)
        except Misplaced as bad:
            target = stream.schema.target
            rule, place, got, mixed = f"a {kind}, as in the rows before", bad.row, bad.got, False
            if stream._options.missing == "fill" and (target is None or name != target.name):
                try:
                    values[name] = as_mixed(column)
                    continue
                except Misplaced as strange:
                    rule, place, got, mixed = PLAIN, strange.row, strange.got, True
            line = None if lines is None else int(lines[place])
            wrong.append((place, stream.bad(stream.rows_read + place + 1, name, rule, got, line)))
            values[name] = as_mixed(column[:place]) if mixed else as_values(column[:place], kind)
    block = Block(len(starts) - 1, values, starts, lines)
    return block.cut(*min(wrong, key=lambda each: each[0])) if wrong else block


def without(column: Any, options: Options) -> Any:
    """A column with its ``na_values`` replaced by None or NaN."""
    if not options.na_values:
        return column
    texts, numbers = set(options.na_texts), options.na_numbers
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiu":
        return np.where(np.isin(column, numbers), np.nan, column)
    if isinstance(column, np.ndarray) and column.dtype.kind in "bM":
        return column
    objects = column if isinstance(column, list) else column.tolist()
    marks = texts.union(numbers)
    plain = (str, int, float)
    return [None if type(value) in plain and value in marks else value for value in objects]


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
    names = unique_names([str(name) for name in frame.columns])
    parts = [frame.iloc[:, i] for i in range(frame.shape[1])] if hasattr(frame, "iloc") else frame.get_columns()
    columns = {name: _series(part) for name, part in zip(names, parts, strict=True)}
    if y is not None:
        columns[TARGET] = np.asarray(y)
    return columns, len(frame)


def _series(series: Any) -> Array:
    dtype = str(series.dtype).lower()
    if dtype.startswith(("int", "uint", "float")) and hasattr(series, "isna"):  # pandas, also its nullable numbers
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(series.to_numpy())


def as_mixed(column: Any) -> Values:
    """Values of several types as texts, whatever types a chunk happens to have."""
    texts: list[str | None] = []
    for row, value in enumerate(column if isinstance(column, list) else column.tolist()):
        try:
            texts.append(as_text(value, "", row, "open_stream"))
        except ValueError:
            raise Misplaced(row, value) from None
    return Coded.of(texts)


def sampled(name: str, column: Any, fail: Callable[..., ValueError], cope: bool = False) -> Sampled:
    """The first values of a column and their kind: their type, or the type of the first value that is not missing.

    ``fail(row, column, rule, got)`` makes the error for a value of another type; ``cope`` takes all for texts instead.
    """
    kinds = {"f": "number", "i": "number", "u": "number", "b": "boolean", "M": "date"}
    kind = kinds.get(column.dtype.kind) if isinstance(column, np.ndarray) else None
    if kind is None:
        kind = _kind_of_objects(column if isinstance(column, list) else column.tolist())
    try:
        values = as_values(column, kind)
    except Misplaced as bad:
        if cope:
            try:
                return Sampled(as_mixed(column), None)
            except Misplaced as strange:
                raise fail(strange.row + 1, name, PLAIN, strange.got) from None
        raise fail(bad.row + 1, name, f"a {kind}, as in the rows before", bad.got) from None
    if kind == "text" and isinstance(values, Coded):
        kind = "date" if all(as_number(value, "date") < np.inf for value in values.values) else kind
    return Sampled(values, kind)


def _kind_of_objects(objects: list[Any]) -> str:
    for value in objects:
        if not is_missing(value):
            return "boolean" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "text"
    return "number"


def as_values(array: Any, kind: str) -> Values:
    """A column as numbers or coded texts, NaN and -1 for the missing."""
    if isinstance(array, list):
        return typed_objects(array, kind)
    if array.dtype.kind in "fiub":
        numbers = np.ascontiguousarray(array, dtype=np.float64)
        return coded_numbers(numbers) if kind == "text" else numbers
    if array.dtype.kind == "M":
        seconds = array.astype("datetime64[us]").astype(np.int64) / 1e6
        return np.where(np.isnat(array), np.nan, seconds)
    return typed_objects(array.tolist(), kind)


def typed_objects(objects: list[Any], kind: str) -> Values:
    """Python values as numbers or coded texts."""
    # all of one type, as nearly always: no test of each value
    types = set(map(type, objects)) - {type(None)}
    if types <= ({bool} if kind == "boolean" else {int, float}) and kind not in ("text", "date"):
        try:
            return np.array(objects, dtype=np.float64)  # None becomes NaN
        except OverflowError:
            pass
    if kind in ("text", "date"):
        if types <= {str}:
            return Coded.of(objects)
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
