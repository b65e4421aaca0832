"""A table: named columns of numbers or coded texts, whatever they came in."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Codes, Floats

#: The texts of a missing value.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?")
#: The first day of the seconds of a timestamp.
EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(slots=True)
class Coded:
    """Texts as codes into a list: ``values[codes]``; the code -1 is a missing text."""

    codes: Codes
    values: list[str]

    @classmethod
    def of(cls, texts: Iterable[str | None]) -> Coded:
        """Number texts in the order of their first coming.

        >>> Coded.of(["b", None, "a", "b"]).codes.tolist()
        [0, -1, 1, 0]
        """
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return cls(np.array(codes, dtype=np.int32), list(places))

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, key: Any) -> Coded:
        """Some of the texts, with their values alone where that is far fewer: each value may be parsed.

        >>> Coded.of(str(i) for i in range(1000)).take(slice(5, 7)).values
        ['5', '6']
        """
        codes = self.codes[key]
        if len(self.values) <= 64 + 2 * len(codes):
            return Coded(codes, self.values)
        used = np.unique(codes[codes >= 0])
        fewer = np.where(codes < 0, -1, np.searchsorted(used, codes)).astype(np.int32)
        return Coded(fewer, [self.values[code] for code in used.tolist()])

    def map(self, numbers: Sequence[float]) -> Floats:
        """A number for each value; NaN for the missing."""
        return np.append(np.asarray(numbers, dtype=np.float64), np.nan)[self.codes]


#: The values of a column: numbers, NaN where missing, or coded texts.
Values = Floats | Coded


@dataclass
class Table:
    """Rows in columns. ``hints`` says of some columns what their type was: "boolean", "timestamp" or "category".

    >>> table = as_table([{"size": 1, "shop": "Rome"}, {"size": 2.5}])
    >>> table["size"].tolist(), table["shop"].codes.tolist(), table[1:].rows
    ([1.0, 2.5], [0, -1], 1)
    """

    rows: int
    columns: dict[str, Values]
    hints: dict[str, str] = field(default_factory=dict)
    #: Whether the columns have names of their own, or only positions.
    named: bool = True

    def __len__(self) -> int:
        return self.rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.rows, len(self.columns)

    def __getitem__(self, key: Any) -> Any:
        """A column by name, or rows by a slice or an array of numbers."""
        if isinstance(key, str):
            return self.columns[key]
        if not isinstance(key, slice):
            key = np.asarray(key)
        columns: dict[str, Values] = {
            name: part.take(key) if isinstance(part, Coded) else part[key] for name, part in self.columns.items()
        }
        rows = len(range(*key.indices(self.rows))) if isinstance(key, slice) else len(np.arange(self.rows)[key])
        return Table(rows, columns, self.hints, self.named)


def as_table(X: Any, names: Sequence[str] | None = None, owner: object = "as_table") -> Table:
    """A pandas or polars frame, an Arrow table, a list of dicts, a dict or an array as a `Table`.

    ``names`` are those of the columns where the data have none of their own; x0, x1, ... unless given.
    """
    if isinstance(X, Table):
        return X
    if isinstance(X, Mapping):
        X = [X]
    if isinstance(X, (list, tuple)) and X and all(isinstance(row, Mapping) for row in X):
        return _from_dicts(owner, X)
    module = type(X).__module__.partition(".")[0]
    if module == "pyarrow" and hasattr(X, "column_names"):
        return _named(X.column_names, [_arrow(column) for column in X.columns], len(X))
    if module == "polars" and hasattr(X, "columns"):
        return _named(X.columns, [_polars(column) for column in X.get_columns()], len(X))
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        return _named(X.columns, [_pandas(X.iloc[:, i]) for i in range(X.shape[1])], len(X))
    return _from_array(owner, X, names)


def _named(names: Iterable[Any], columns: list[tuple[Values, str]], rows: int) -> Table:
    made = unique_names([str(name) for name in names])
    found = dict(zip(made, columns, strict=True))
    hints = {name: hint for name, (_, hint) in found.items() if hint}
    return Table(rows, {name: values for name, (values, _) in found.items()}, hints)


def unique_names(names: Sequence[str]) -> list[str]:
    """Names that differ: a repeated one is numbered, an empty one is its position.

    >>> unique_names(["a", "", "a", "a"])
    ['a', 'c2', 'a.2', 'a.3']
    """
    taken, used, made = set(names), set[str](), list[str]()
    numbers: dict[str, int] = {}  # the last number of each repeated name
    for i, name in enumerate(names):
        new = wanted = name or f"c{i + 1}"
        while new in used or (new in taken and new != name):
            numbers[wanted] = numbers.get(wanted, 1) + 1
            new = f"{wanted}.{numbers[wanted]}"
        used.add(new)
        made.append(new)
    return made


def _from_dicts(owner: object, rows: Sequence[Mapping[Any, Any]]) -> Table:
    names: dict[Any, None] = {}
    for row in rows:
        if row.keys() - names.keys():
            names.update(dict.fromkeys(row))
    columns = [from_objects([row.get(name) for row in rows], str(name), owner) for name in names]
    return _named(names, columns, len(rows))


def _from_array(owner: object, X: Any, names: Sequence[str] | None) -> Table:
    array = np.asarray(X) if not isinstance(X, list) else np.array(X, dtype=object) if _ragged(X) else np.asarray(X)
    if array.dtype == object or array.dtype.kind in "US":
        if array.ndim != 2 or not array.shape[1]:
            rule = "of shape (rows, columns). Reshape your data with reshape(1, -1) for one row"
            raise _checks.wrong(owner, "X", rule, array.shape)
        given = _positions(owner, array, names)
        made = _named(
            given, [from_objects(array[:, i].tolist(), name, owner) for i, name in enumerate(given)], len(array)
        )
    else:
        matrix = _checks.matrix(owner, array, None, finite=False)
        hint = "boolean" if array.dtype.kind == "b" else ""
        given = _positions(owner, matrix, names)
        made = _named(given, [(matrix[:, i].astype(np.float64), hint) for i in range(len(given))], len(matrix))
    made.named = False
    return made


def _positions(owner: object, array: Array, names: Sequence[str] | None) -> list[str]:
    """The names of the columns of an array, which must be as many as before."""
    given = list(names or [f"x{i}" for i in range(array.shape[1])])
    if len(given) != array.shape[1]:
        width = _checks.Width(array.shape[1], len(given), owner if isinstance(owner, str) else type(owner).__name__)
        raise _checks.wrong(owner, "X", f"a matrix with {len(given)} features, as in the rows before", width)
    return given


def _ragged(X: list[Any]) -> bool:
    """Whether rows have texts or nothing in them, which an array of one type would change."""
    first = X[0] if X else None
    return isinstance(first, (list, tuple)) and any(isinstance(value, str) or value is None for value in first)


# ---------------------------------------------------------------------------------------------- columns of each kind


def _pandas(series: Any) -> tuple[Values, str]:
    dtype = series.dtype
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan)), ""
    if kind == "b":
        return np.asarray(series.to_numpy(dtype=np.float64, na_value=np.nan)), "boolean"
    if kind == "M":
        return seconds_of(series.to_numpy(dtype="datetime64[us]")), "timestamp"
    if kind == "m":
        return series.dt.total_seconds().to_numpy(dtype=np.float64, na_value=np.nan), ""
    if hasattr(series, "cat"):
        return _recoded(series.cat.codes.to_numpy(), series.cat.categories.tolist()), "category"
    from pandas import factorize
    from pandas.api.types import infer_dtype

    if infer_dtype(series, skipna=True) == "string":
        codes, values = factorize(series)
        return _recoded(codes, list(values)), ""
    return from_objects(series.tolist(), str(series.name), "as_table")


def _polars(series: Any) -> tuple[Values, str]:
    kind = str(series.dtype)
    if series.dtype.is_numeric():
        return np.array(series.cast(float).to_numpy(), dtype=np.float64), ""
    if kind == "Boolean":
        return np.array(series.cast(float).to_numpy(), dtype=np.float64), "boolean"
    if kind.startswith(("Datetime", "Date")):
        stamps = series.dt.epoch("us").cast(float).to_numpy()
        return np.asarray(stamps, dtype=np.float64) / 1e6, "timestamp"
    if kind.startswith("Duration"):
        return np.asarray(series.dt.total_microseconds().cast(float).to_numpy()) / 1e6, ""
    hint = "category" if kind.startswith(("Categorical", "Enum")) else ""
    if kind in ("String", "Utf8") or hint:
        texts = series.cast(str)
        values = texts.drop_nulls().unique(maintain_order=True)
        codes = texts.replace_strict(values, np.arange(len(values)), default=-1)
        return _recoded(codes.to_numpy(), values.to_list()), hint
    return from_objects(series.to_list(), series.name, "as_table")


def _arrow(column: Any) -> tuple[Values, str]:
    import pyarrow
    import pyarrow.compute as compute

    types, kind = pyarrow.types, column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return _nan(compute.cast(column, pyarrow.float64(), safe=False)), ""
    if types.is_boolean(kind):
        return _nan(compute.cast(column, pyarrow.float64())), "boolean"
    if types.is_timestamp(kind) or types.is_date(kind):
        return seconds_of(compute.cast(column, pyarrow.timestamp("us"), safe=False).to_numpy()), "timestamp"
    hint = "category" if types.is_dictionary(kind) else ""
    if types.is_null(kind):
        return np.full(len(column), np.nan), ""
    if hint or types.is_string(kind) or types.is_large_string(kind):
        coded = column if hint else compute.dictionary_encode(column)
        coded = coded.combine_chunks() if isinstance(coded, pyarrow.ChunkedArray) else coded
        if isinstance(coded, pyarrow.ChunkedArray):  # no chunks at all
            coded = coded.chunk(0) if coded.num_chunks else pyarrow.array([], coded.type)
        codes = coded.indices.cast(pyarrow.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
        return _recoded(codes, coded.dictionary.to_pylist()), hint
    return from_objects(column.to_pylist(), "", "as_table")


def _nan(column: Any) -> Floats:
    return np.array(column.to_numpy(), dtype=np.float64)


def seconds_of(stamps: Array) -> Floats:
    """Times of NumPy as seconds since 1970, NaN where there is none."""
    return np.where(np.isnat(stamps), np.nan, stamps.astype("datetime64[us]").astype(np.int64) / 1e6)


def _recoded(codes: Array, values: list[Any]) -> Coded:
    """Codes of any type, -1 for the missing; values that are no texts become some."""
    made = Coded(np.ascontiguousarray(codes, dtype=np.int32), values)
    if all(type(value) is str for value in values):
        return made
    texts = Coded.of([as_text(value, "", 0, "as_table") for value in values])
    return Coded(np.append(texts.codes, np.int32(-1))[made.codes], texts.values)


def from_objects(values: list[Any], name: str, owner: object) -> tuple[Values, str]:
    """Python values as numbers or coded texts, and the hint at their type."""
    types = set(map(type, values)) - {type(None)}
    if not types:
        return Coded.of(values), ""  # texts or numbers may come
    if types <= {float, int}:
        try:
            return np.array(values, dtype=np.float64), ""  # None becomes NaN
        except OverflowError:
            pass
    if types <= {str}:
        return Coded.of(values), ""
    if types <= {bool, np.bool_}:
        return np.array(values, dtype=np.float64), "boolean"
    present = [value for value in values if not is_missing(value)]
    if all(isinstance(value, (datetime.date, np.datetime64)) for value in present):
        return np.array([np.nan if is_missing(value) else _seconds(value) for value in values]), "timestamp"
    if all(isinstance(value, (numbers.Real, decimal.Decimal)) and not isinstance(value, bool) for value in present):
        return np.array([_float(value) for value in values], dtype=np.float64), ""
    return Coded.of([as_text(value, name, row, owner) for row, value in enumerate(values)]), ""


def _float(value: Any) -> float:
    try:
        return float("nan") if is_missing(value) else float(value)
    except OverflowError:  # an integer beyond all floats
        return float("inf")


def is_missing(value: object) -> bool:
    """None, NaN, and what pandas puts in their place."""
    if value is None or (isinstance(value, (float, np.floating, decimal.Decimal)) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")


def as_text(value: Any, name: str, row: int, owner: object) -> str | None:
    """A value as the text that a CSV file would have; None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (numbers.Integral, decimal.Decimal)):
        return str(value)
    if isinstance(value, numbers.Real):
        return number_text(float(value))
    if isinstance(value, (datetime.date, np.datetime64)):
        return time_text(_seconds(value))
    raise _checks.wrong(owner, "X", "numbers, booleans, texts or dates", _checks.Entry(repr(value)[:80], row, name))


def number_text(x: float) -> str:
    """A number as text, a whole one without a point."""
    return str(int(x)) if x.is_integer() else repr(x)


def time_text(seconds: float) -> str:
    """A time as text."""
    return str(np.datetime64(EPOCH, "us") + np.timedelta64(round(seconds * 1e6), "us"))


def coded_times(seconds: Floats) -> Coded:
    """Times as texts."""
    return Coded.of([None if x != x else time_text(x) for x in seconds.tolist()])


def coded_numbers(numbers: Floats, boolean: bool = False) -> Coded:
    """Numbers as texts.

    >>> coded_numbers(np.array([1.0, 0.5, np.nan])).values
    ['0.5', '1']
    """
    if boolean:
        return Coded(np.where(np.isnan(numbers), -1, numbers != 0).astype(np.int32), ["false", "true"])
    values, codes = np.unique(numbers[~np.isnan(numbers)], return_inverse=True)
    texts = Coded.of([number_text(x) if np.isfinite(x) else repr(x) for x in values.tolist()])  # -0 and 0 are one
    found = np.full(len(numbers), -1, dtype=np.int32)
    found[~np.isnan(numbers)] = texts.codes[codes]
    return Coded(found, texts.values)


def _seconds(value: Any) -> float:
    if isinstance(value, np.datetime64):
        return float(seconds_of(np.array([value]))[0])
    if not isinstance(value, datetime.datetime):
        return (datetime.datetime(value.year, value.month, value.day) - EPOCH).total_seconds()
    if value.tzinfo is not None:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    parts = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return (datetime.datetime(*parts) - EPOCH) / datetime.timedelta(microseconds=1) / 1e6  # pandas has nanoseconds too
