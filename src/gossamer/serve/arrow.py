"""Rows as an Arrow IPC stream: uncompressed batches of numbers, texts, booleans and times."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.exceptions import ParameterError
from gossamer.rows import as_table
from gossamer.serve.limits import LARGEST_NUMBER
from gossamer.serve.mixed import Mixed, check_cells
from gossamer.serve.rows import AnyBlock, Block, check_columns

TYPE = "application/vnd.apache.arrow.stream"
WHAT = "an Arrow IPC stream of uncompressed record batches"


def read_arrow(
    data: bytes, columns: Any, target: str | None, key: str | None, most: int, encoded: bool | None = False
) -> AnyBlock:
    """The block of an Arrow stream; the target and the key are columns of it. ``encoded``: as in `read_rows`."""
    arrow = _checks.extra("pyarrow", "Arrow", "io")
    try:
        _check_messages(data, most)
        table = arrow.ipc.open_stream(arrow.BufferReader(data)).read_all()
        table.validate(full=True)  # offsets of texts may lead anywhere
        names = table.column_names  # which may be no texts
    except (arrow.ArrowException, OSError, ValueError, struct.error, IndexError, NotImplementedError) as error:
        if isinstance(error, ParameterError):
            raise
        raise _checks.wrong("request", "body", WHAT, str(error)[:200]) from None
    count = table.num_rows
    if not 1 <= count <= most:
        raise _checks.wrong("request", "rows", f"between 1 and {most}", count)
    if len(set(names)) < len(names):
        raise _checks.wrong("request", "columns", "different names", names[:20])
    decided = None
    if columns is None:
        columns = decided = [name for name in names if name not in (target, key)]
        check_columns(columns)
    missing = [name for name in columns if name not in names]
    unknown = [name for name in names if name not in columns and name not in (target, key)]
    numbers = all(_is_number(arrow.types, table[name].type) and not table[name].null_count for name in columns
                  if name in names)  # fmt: skip
    encoded = not numbers if encoded is None else encoded
    if unknown or (missing and (not encoded or len(missing) == len(columns))):
        raise _checks.wrong("request", "rows", f"of the columns {list(columns[:20])}", names[:20])
    y = _plain(table, target) if target is not None and target in names else None
    keys = _plain(table, key) if key is not None and key in names else None
    if (key is None) != (keys is None):
        raise _checks.wrong("request", "keys", f"given in the column {key!r}", names[:20])
    if encoded:
        return Mixed(count, _cells(arrow, table, columns), y, keys, columns=decided)
    X = np.empty((count, len(columns)))
    for i, name in enumerate(columns):
        column = table[name]
        if not _is_number(arrow.types, column.type) or column.null_count:
            raise _checks.wrong("request", "rows", "columns of numbers without nulls", f"{column.type} in {name!r:.80}")
        X[:, i] = column.to_numpy()
    if not (np.abs(X) <= LARGEST_NUMBER).all():
        raise _checks.wrong("request", "rows", f"numbers up to {LARGEST_NUMBER:g}", "more, or NaN")
    return Block(count, X.tobytes(), y, keys, None, None, decided)


def _is_number(types: Any, kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _cells(arrow: Any, table: Any, columns: Any) -> list[Any]:
    """The columns of a table with texts, gaps or times."""
    types, made = arrow.types, []
    for name in columns:
        column = table[name] if name in table.column_names else arrow.nulls(table.num_rows)
        kind = column.type
        text = types.is_string(kind) or types.is_large_string(kind)
        time = types.is_timestamp(kind) or types.is_date(kind)
        if not (_is_number(types, kind) or text or time or types.is_null(kind)):
            rule = "columns of numbers, booleans, texts or times"
            raise _checks.wrong("request", "rows", rule, f"{kind} in {name!r:.80}")
        try:
            found = as_table(arrow.table({name: column}))
        except (arrow.ArrowException, OverflowError) as error:
            raise _checks.wrong("request", "rows", f"times that are some, in {name!r:.80}", str(error)[:200]) from None
        made.append(check_cells(found[name], found.hints.get(name, ""), name))
    return made


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
