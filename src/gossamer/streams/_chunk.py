"""What goes in and out of a stream: its options, blocks of columns, chunks of rows."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Floats, Ints
from gossamer.rows import Coded, RowEncoder
from gossamer.rows.parse import NUMBER
from gossamer.rows.table import Values
from gossamer.streams._schema import CATEGORIES, FEATURES, TASKS, Schema


@dataclass(frozen=True)
class Options:
    """The options of `open_stream` that all formats share."""

    target: str | int | None = None
    columns: Any = None
    ignore: Any = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    missing: str = "fill"
    chunk_rows: int = 8192
    categories: int = CATEGORIES
    position: Mapping[str, Any] | None = None
    schema: Schema | None = None
    na_values: Any = ()
    max_features: int = FEATURES
    encode: bool = True
    bad_rows: str = "error"
    time: str | None = None
    sparse: bool | None = None

    def __post_init__(self) -> None:
        _checks.one_of("open_stream", "missing", self.missing, ["fill", "error", "skip"])
        _checks.one_of("open_stream", "bad_rows", self.bad_rows, ["error", "skip"])
        _checks.one_of("open_stream", "encode", self.encode, [False, True])
        _checks.one_of("open_stream", "sparse", self.sparse, [None, False, True])
        if self.task is not None:
            _checks.one_of("open_stream", "task", self.task, TASKS)
        _checks.whole("open_stream", "chunk_rows", self.chunk_rows, 1)
        _checks.whole("open_stream", "categories", self.categories, 1)
        _checks.whole("open_stream", "max_features", self.max_features, 1)
        if self.time is not None and not isinstance(self.time, str):
            raise _checks.wrong("open_stream", "time", "the name of a column", self.time)
        if not isinstance(self.kinds, Mapping):
            raise _checks.wrong("open_stream", "kinds", "a dict of names and kinds", self.kinds)
        given = self.na_values
        if isinstance(given, str) or not isinstance(given, Sequence) or not all(map(_is_plain, given)):
            raise _checks.wrong("open_stream", "na_values", "a list of texts and finite numbers", given)

    @property
    def na_texts(self) -> list[str]:
        """The ``na_values`` as texts."""
        return [str(value) for value in self.na_values]

    @property
    def na_numbers(self) -> list[float]:
        """The ``na_values`` that are numbers, also if they were given as text."""
        numbers = [float(text) for text in self.na_texts if NUMBER.fullmatch(text)]
        return [number for number in numbers if np.isfinite(number)]


def _is_plain(value: object) -> bool:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (str, int, float)):
        return False
    return isinstance(value, str) or bool(np.isfinite(value))


class BadRowError(ValueError):
    """A row that cannot be read; what follows it can. Its arguments are pieces of text, and each `Setting` in it."""

    __module__ = "gossamer.streams"

    def __str__(self) -> str:
        return "".join(map(str, self.args))


@dataclass(frozen=True)
class Chunk:
    """Some rows of a stream.

    Attributes
    ----------
    X : the features, a C-ordered float64 array of shape (rows, features); with ``encode=False`` the columns as they
        are, a `gossamer.rows.Table`, for a model that begins with a `gossamer.RowEncoder`; of a sparse stream a CSR
        array of SciPy.
    y : the targets (str, int64, bool or float64), or None.
    rows : the number of each row in its source, the first data row being 1.
    names : the names of the features.
    time : when each row came, in seconds since 1970, if ``time`` named a column; else None.
    position : where to go on after these rows: ``open_stream(source, position=...)``. A small dict that JSON can hold;
        it is made when it is asked for.
    """

    X: Any
    y: Array | None
    rows: Ints
    names: Sequence[str]
    _place: dict[str, Any] = field(repr=False)
    _encoder: RowEncoder | None = field(repr=False, default=None)
    time: Floats | None = None

    @functools.cached_property
    def position(self) -> dict[str, Any]:
        """Where to go on after these rows."""
        return self._place if self._encoder is None else {**self._place, "encoder": pack(self._encoder)}

    def __len__(self) -> int:
        return len(self.rows)


@dataclass
class Block:
    """The columns of ``rows`` rows as a format has read them, and the error that stopped it.

    ``X`` holds the features that are not in ``values``. ``starts`` says where each row begins and where the next one
    would; ``lines`` likewise, where the format counts lines.
    """

    rows: int
    values: dict[str, Values]
    starts: Ints
    lines: Ints | None = None
    X: Any = None
    error: ValueError | None = None

    def cut(self, rows: int, error: ValueError) -> Block:
        """The first rows, and the error of the next."""
        values = {
            name: Coded(value.codes[:rows], value.values) if isinstance(value, Coded) else value[:rows]
            for name, value in self.values.items()
        }
        lines = None if self.lines is None else self.lines[: rows + 1]
        X = None if self.X is None else self.X[:rows]
        return Block(rows, values, self.starts[: rows + 1], lines, X, error)


def pack(encoder: RowEncoder) -> str:
    """An encoder as text, for a position."""
    return base64.b64encode(encoder.to_bytes()).decode()
