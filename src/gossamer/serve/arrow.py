"""Rows as an Arrow IPC stream: uncompressed batches of numbers, texts for keys and labels."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.exceptions import ParameterError
from gossamer.serve.limits import LARGEST_NUMBER
from gossamer.serve.rows import Block, check_columns

TYPE = "application/vnd.apache.arrow.stream"
WHAT = "an Arrow IPC stream of uncompressed record batches"


def read_arrow(data: bytes, columns: Any, target: str | None, key: str | None, most: int) -> Block:
    """The block of an Arrow stream; the target and the key are columns of it."""
    arrow = _checks.extra("pyarrow", "Arrow", "io")
    try:
        _check_messages(data, most)
        table = arrow.ipc.open_stream(arrow.BufferReader(data)).read_all()
    except (arrow.ArrowException, OSError, ValueError, struct.error, IndexError, NotImplementedError) as error:
        if isinstance(error, ParameterError):
            raise
        raise _checks.wrong("request", "body", WHAT, str(error)[:200]) from None
    count = table.num_rows
    if not 1 <= count <= most:
        raise _checks.wrong("request", "rows", f"between 1 and {most}", count)
    names = table.column_names
    if len(set(names)) < len(names):
        raise _checks.wrong("request", "columns", "different names", names[:20])
    decided = None
    if columns is None:
        columns = decided = [name for name in names if name not in (target, key)]
        check_columns(columns)
    missing = [name for name in columns if name not in names]
    if missing or len(names) - sum(name in names for name in (target, key)) != len(columns):
        raise _checks.wrong("request", "rows", f"of the columns {list(columns[:20])}", names[:20])
    X = np.empty((count, len(columns)))
    types = arrow.types
    for i, name in enumerate(columns):
        column = table[name]
        kind = column.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)) or column.null_count:
            raise _checks.wrong("request", "rows", "columns of numbers without nulls", f"{kind} in {name!r:.80}")
        X[:, i] = column.to_numpy()
    if not (np.abs(X) <= LARGEST_NUMBER).all():
        raise _checks.wrong("request", "rows", f"numbers up to {LARGEST_NUMBER:g}", "more, or NaN")
    y = _plain(table, target) if target is not None and target in names else None
    keys = _plain(table, key) if key is not None and key in names else None
    if (key is None) != (keys is None):
        raise _checks.wrong("request", "keys", f"given in the column {key!r}", names[:20])
    return Block(count, X.tobytes(), y, keys, None, None, decided)


def _plain(table: Any, name: str) -> list[Any]:
    values: list[Any] = table[name].to_pylist()
    if not {type(value) for value in values} <= {str, int, float, bool}:
        raise _checks.wrong("request", name, "texts or numbers without nulls", str(table[name].type))
    return values


def _check_messages(data: bytes, most: int) -> None:
    """Refuse compressed bodies, which may be small and become large, and batches of more rows than are allowed.

    A message is 0xFFFFFFFF, the length of its metadata, the metadata (a flatbuffer), and the body.
    """
    place = 0
    while place + 8 <= len(data):
        mark, length = struct.unpack_from("<Ii", data, place)
        if mark != 0xFFFFFFFF or length < 0 or place + 8 + length > len(data):
            raise ValueError("the stream is not made of messages")
        if length == 0:
            return
        message = _Table(data, place + 8, place + 8 + length)
        header, kind = message.table(2), message.byte(1)
        if kind not in (1, 3):  # a schema, a record batch; dictionaries and tensors are refused
            raise ValueError("dictionaries are not read")
        if kind == 3 and (header.place(3) or not 0 <= header.long(0) <= most):
            raise ValueError(f"compressed, or more than {most} rows")
        body = message.long(3)
        if body < 0:
            raise ValueError("a body of a negative length")
        place += 8 + length + body
        if body > len(data):
            raise ValueError("a body beyond the end")


class _Table:
    """A table of a flatbuffer, read field by field within bounds."""

    def __init__(self, data: bytes, start: int, end: int, root: bool = True) -> None:
        self.data, self.end = data, end
        self.at = start + self._read("<I", start) if root else start
        self.fields = self.at - self._read("<i", self.at)

    def _read(self, form: str, at: int) -> int:
        if at < 0 or at + struct.calcsize(form) > self.end:
            raise ValueError("an offset beyond the end")
        return int(struct.unpack_from(form, self.data, at)[0])

    def place(self, field: int) -> int:
        """Where a field is; 0 if it is left out."""
        if 4 + 2 * field >= self._read("<H", self.fields):
            return 0
        offset = self._read("<H", self.fields + 4 + 2 * field)
        return self.at + offset if offset else 0

    def long(self, field: int) -> int:
        return self._read("<q", self.place(field)) if self.place(field) else 0

    def byte(self, field: int) -> int:
        return self._read("<B", self.place(field)) if self.place(field) else 0

    def table(self, field: int) -> _Table:
        at = self.place(field)
        if not at:
            raise ValueError("a message without a header")
        return _Table(self.data, at + self._read("<I", at), self.end, root=False)


def write_arrow(answer: dict[str, Any]) -> bytes:
    """Predictions as an Arrow stream."""
    arrow = _checks.extra("pyarrow", "Arrow", "io")
    table = arrow.table({name: answer[name] for name in ("predictions", "std", "scores") if name in answer})
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
