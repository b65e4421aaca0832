"""Rows of a request as a block, validated whole: a `Block` of numbers, `Mixed` where there is more; its bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

import msgspec
import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.serve import mixed
from gossamer.serve.limits import LARGEST_NUMBER, LARGEST_WEIGHT, LONGEST_TEXT, MOST_COLUMNS
from gossamer.serve.mixed import Key, Label, Mixed

Cell = float | int | str | bool | None
Row = dict[str, Cell] | list[Cell]

NUMBER = "a number, as in its first rows ('encoder': {} in a model's recipe reads texts, nulls and dates)"


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """The body of predict, learn, predict_learn and labels."""

    rows: list[Row] | None = None
    row: Row | None = None
    columns: dict[str, list[Cell]] | None = None
    y: list[Label] | Label | None = None
    keys: list[Key] | None = None
    ids: list[Key] | None = None
    weights: list[float] | None = None
    request: str | None = None

    def table(self) -> list[Row]:
        """The rows, whichever way they were given."""
        given = [self.rows is not None, self.row is not None, self.columns is not None]
        if sum(given) != 1:
            raise _checks.wrong("request", "rows", "given once, as 'rows', 'row' or 'columns'", sum(given))
        if self.rows is not None:
            return self.rows
        if self.row is not None:
            return [self.row]
        columns = self.columns or {}
        if len({len(values) for values in columns.values()}) > 1:
            raise _checks.wrong("request", "columns", "all of one length", sorted(map(len, columns.values())))
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def labels(self) -> list[Label] | None:
        """The labels, one for each row."""
        return [self.y] if isinstance(self.y, (str, bool, int, float)) else self.y


class Block(msgspec.Struct, array_like=True):
    """Rows as the journal keeps them: a matrix of float64, and what came with it.

    ``columns`` are the names of a model's columns in its first block, which decides them, and else None.
    """

    count: int
    data: bytes
    y: list[Label] | None = None
    keys: list[Key] | None = None
    ids: list[Key] | None = None
    weights: list[float] | None = None
    columns: list[str] | None = None
    shown: bool = False  # whether the answer has the predictions

    @property
    def X(self) -> Floats:  # noqa: N802
        """The matrix, of shape (rows, columns)."""
        return np.frombuffer(self.data).reshape(self.count, -1)

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.data) // (8 * self.count)

    def rows(self, columns: Sequence[str] | None) -> Floats:
        """The matrix."""
        return self.X

    def size(self) -> int:
        """About how many bytes it has."""
        return len(self.data) + sum(map(mixed.weigh, (self.y, self.keys, self.ids, self.weights)))

    def row(self, i: int) -> bytes:
        """One row, as bytes."""
        return np.ascontiguousarray(self.X[i]).tobytes()


AnyBlock = Block | Mixed

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Block).decode


def encode_block(block: AnyBlock) -> bytes:
    """The bytes of a block; those of `Mixed` begin with a mark and a version."""
    return mixed.encode_mixed(block) if isinstance(block, Mixed) else _encode(block)


def decode_block(data: bytes) -> AnyBlock:
    """The block of these bytes; ValueError for what is none."""
    if data[:1] == mixed.MARK:
        return mixed.decode_mixed(data)
    try:
        return _decode(data)
    except (msgspec.MsgspecError, TypeError) as error:  # a value that cannot be hashed is a TypeError of older versions
        raise _checks.wrong("journal", "block", "rows", str(error)[:200]) from None


def digest(kind: str, payload: bytes) -> int:
    """The digest of a request: equal for one that is sent again, also if the first has decided the columns."""
    if kind in ("learn", "ask"):
        block = decode_block(payload)
        undecided = {"columns": None, "plan": None} if isinstance(block, Mixed) else {"columns": None}
        payload = encode_block(msgspec.structs.replace(block, **undecided))
    return zlib.crc32(payload)


def join(blocks: Sequence[AnyBlock]) -> list[AnyBlock]:
    """The rows of several blocks of one model, one after the other, in as few blocks as they can be."""
    if isinstance(blocks[0], Mixed):
        return list(mixed.join_mixed([block for block in blocks if isinstance(block, Mixed)]))
    return [join_numbers([block for block in blocks if isinstance(block, Block)])]


def join_numbers(blocks: Sequence[Block]) -> Block:
    """The rows of several blocks of one model, one after the other.

    >>> one = Block(1, np.ones(2).tobytes(), [0])
    >>> join_numbers([one, one]).X.tolist(), join_numbers([one, one]).y
    ([[1.0, 1.0], [1.0, 1.0]], [0, 0])
    """
    if len(blocks) == 1:
        return blocks[0]

    data = b"".join([block.data for block in blocks])
    y, keys, weights = mixed.join_lists(blocks)
    return Block(sum(block.count for block in blocks), data, y, keys, None, weights)


def read_rows(
    request: Request, columns: Sequence[str] | None, target: str | None, key: str | None, most: int,
    encoded: bool | None = False,
) -> AnyBlock:  # fmt: skip
    """Validate the rows of a request and make a block of them. ``columns`` None: those of the first rows.

    ``encoded``: whether an encoder reads them; None: if there is more than numbers.
    """
    rows = request.table()
    count = len(rows)
    if not 1 <= count <= most:
        raise _checks.wrong("request", "rows", f"between 1 and {most}", count)
    y, keys = request.labels(), request.keys
    first = rows[0]
    block_columns = None
    extras = [name for name in (target, key) if name is not None]
    if encoded is None:
        encoded = mixed.has_more_than_numbers(rows, extras)
    if columns is None:
        if encoded:
            columns = mixed.find_columns(rows, extras)
        elif isinstance(first, dict):
            columns = [name for name in first if name not in (target, key)]
        else:
            columns = [f"x{i}" for i in range(len(first))]
        check_columns(columns)
        block_columns = list(columns)
    if isinstance(first, dict):
        if y is None and target is not None and target in first:
            y = [_field(row, target, i) for i, row in enumerate(rows)]
        if keys is None and key is not None:
            keys = [_field(row, key, i) for i, row in enumerate(rows)]
    cells = mixed.read_cells(rows, columns, extras) if encoded else []
    data = b"" if encoded else _numbers(rows, columns, extras)
    for name, values in (("y", y), ("keys", keys), ("ids", request.ids), ("weights", request.weights)):
        if values is not None and len(values) != count:
            raise _checks.wrong("request", name, f"one for each row ({count})", len(values))
    if (key is None) != (keys is None):
        rule = "left out for a model without keys" if key is None else f"given, or {key!r} in each row"
        raise _checks.wrong("request", "keys", rule, keys)
    if keys is not None and not all(type(one) in (int, str) and short(one) for one in keys):
        raise _checks.wrong("request", "keys", "whole numbers or short texts", next(k for k in keys if not short(k)))
    if request.weights is not None and not all(0 <= w <= LARGEST_WEIGHT for w in request.weights):
        raise _checks.wrong("request", "weights", f"in [0, {LARGEST_WEIGHT:g}]", request.weights[:3])
    if encoded:
        return Mixed(count, cells, y, keys, request.ids, request.weights, block_columns)
    return Block(count, data, y, keys, request.ids, request.weights, block_columns)


def check_columns(columns: Sequence[str]) -> None:
    """Validate the names of columns."""
    if not 1 <= len(columns) <= MOST_COLUMNS:
        raise _checks.wrong("request", "columns", f"between 1 and {MOST_COLUMNS}", len(columns))
    if len(set(columns)) < len(columns) or not all(0 < len(name) <= LONGEST_TEXT for name in columns):
        raise _checks.wrong(
            "request", "columns", f"different names of at most {LONGEST_TEXT} characters", list(columns)
        )


def short(value: Any) -> bool:
    """Whether a label, key or id is small enough to be kept."""
    return len(value) <= LONGEST_TEXT if isinstance(value, str) else -(2**53) <= value <= 2**53


def _field(row: Any, name: str, i: int) -> Any:
    if not isinstance(row, dict) or row.get(name) is None:
        raise _checks.wrong("request", name, "in each row", f"row {i} without it")
    return row[name]


def _numbers(rows: Sequence[Row], columns: Sequence[str], extras: Sequence[str]) -> bytes:
    """The bytes of the matrix; the error names the row and the column."""
    width = len(columns)
    pack = struct.Struct(f"{width}d").pack
    get = itemgetter(*columns) if width > 1 else lambda row, name=columns[0]: (row[name],)
    pieces = []
    for i, row in enumerate(rows):
        try:
            if isinstance(row, dict):
                if len(row) != width and len(row) - sum(name in row for name in extras) != width:
                    raise _misfit(row, columns, extras, i)
                pieces.append(pack(*get(row)))
            else:
                pieces.append(pack(*row))
        except (KeyError, struct.error, OverflowError, TypeError):
            raise _misfit(row, columns, extras, i) from None
    data = b"".join(pieces)
    X = np.frombuffer(data)
    if not (np.abs(X) <= LARGEST_NUMBER).all():
        place = int(np.argmin(np.abs(X) <= LARGEST_NUMBER))
        got = f"{X[place]:g} in row {place // width}, column {columns[place % width]!r}"
        raise _checks.wrong("request", "rows", f"numbers up to {LARGEST_NUMBER:g}", got)
    return data


def _misfit(row: Row, columns: Sequence[str], extras: Sequence[str], i: int) -> ValueError:
    """The error for a row that is not one of numbers for these columns."""
    if not isinstance(row, dict):
        if len(row) != len(columns):
            return _checks.wrong("request", "rows", f"of {len(columns)} numbers", f"{len(row)} in row {i}")
        row = dict(zip(columns, row, strict=True))
    missing = [name for name in columns if name not in row]
    unknown = [name for name in row if name not in columns and name not in extras]
    if missing or unknown:
        got = f"row {i} " + " and ".join(
            [f"without {missing[:5]}"] * bool(missing) + [f"with {unknown[:5]}"] * bool(unknown)
        )
        return _checks.wrong("request", "rows", f"of the columns {list(columns[:20])}", got)
    for name in columns:
        if not isinstance(row[name], (bool, int, float)) or abs(row[name]) > LARGEST_NUMBER:  # type: ignore[arg-type]
            return _checks.wrong("request", "rows", NUMBER, f"{row[name]!r:.80} in row {i}, column {name!r}")
    return _checks.wrong("request", "rows", NUMBER, f"row {i}")
