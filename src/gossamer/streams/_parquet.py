"""Parquet files, batch by batch, with pyarrow."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.streams._chunk import Block, Options
from gossamer.streams._find import check_width, repeated
from gossamer.streams._memory import sampled, typed_block, without
from gossamer.streams._schema import SAMPLE, SAMPLE_CELLS, Sampled
from gossamer.streams._source import ChangedDataError
from gossamer.streams._stream import Stream


class ParquetStream(Stream):
    """Rows of a Parquet file; see `open_stream`."""

    format = "parquet"

    def __init__(self, source: Any, name: str, options: Options) -> None:
        parquet = _checks.extra("pyarrow.parquet", "Parquet", "io")
        self.name = name
        self._given = source
        with self._translate_errors():
            self._file = parquet.ParquetFile(source, page_checksum_verification=True)
        super().__init__(options)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of pyarrow into a ValueError that names the file; errors of the disk stay OSErrors."""
        import pyarrow

        try:
            yield
        except (OSError, ValueError, MemoryError, pyarrow.ArrowException) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
            raise ValueError(f"{self.name} must be a whole Parquet file. Got an error: {reason}") from None

    def _begin(self, at: Any) -> None:
        with self._translate_errors():
            names = self._file.schema_arrow.names
        check_width(len(names) - 1, self._options.max_features)
        if (again := repeated(names)) is not None:
            raise ValueError(f"{self.name} must have columns of different names. Got {again!r} more than once instead.")
        self._check = self._checksum()
        if isinstance(at, dict):
            if at.get("check") != self._check:
                raise ChangedDataError(f"{self.name} has changed", at)
            at = at.get("row")
        self._next = 0 if at is None else _checks.whole("position", "at", at, 0)
        if self._next > self._file.metadata.num_rows:
            rule = f"inside the data ({self._file.metadata.num_rows} rows)"
            raise _checks.wrong("open_stream", "position", rule, at)

    def _sample(self) -> dict[str, Sampled]:
        if not self._file.metadata.num_rows:
            raise self._empty()
        unused = set(map(str, self._options.ignore)) if self._options.columns is None else set()
        names = [name for name in self._file.schema_arrow.names if name not in unused]
        first: dict[str, list[Any]] = {name: [] for name in names}
        count, rows = 0, min(SAMPLE, max(1, SAMPLE_CELLS // max(1, len(names))))
        for batch in self._batches(0, rows, names):
            for name in names:
                first[name].append(self._column(batch[name].slice(0, rows - count), name))
            count += batch.num_rows
            if count >= rows:
                break
        if not count:
            raise ValueError(f"{self.name} must be a whole Parquet file. Got fewer rows than it says.")
        empty = {name: Sampled(np.zeros(0), "number") for name in unused}
        chained = {name: without(_concatenate(parts), self._options) for name, parts in first.items()}
        cope = self._options.missing == "fill"
        return {**{name: sampled(name, values, self.bad, cope) for name, values in chained.items()}, **empty}

    def _settle(self) -> None:
        names = list(self.kinds)
        absent = [name for name in names if name not in self._file.schema_arrow.names]
        if absent:
            raise _checks.wrong("open_stream", "position", f"one in data with a column {absent[0]!r}", "another")
        self._iterator = self._batches(self._next, self._chunk_rows(), names)
        self._left: Any = None

    def _batches(self, start: int, rows: int, columns: list[str] | None) -> Iterator[Any]:
        """Record batches from a row on; row groups before it are not read."""
        metadata = self._file.metadata
        groups: list[int] = []
        for group in range(metadata.num_row_groups):
            count = metadata.row_group(group).num_rows
            if start >= count and not groups:
                start -= count
            else:
                groups.append(group)
        if not groups:  # an error in pyarrow 18 and 19
            return
        batches = self._file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False)
        while True:
            with self._translate_errors():
                batch = next(batches, None)
            if batch is None:
                return
            skipped = min(start, batch.num_rows)
            start -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped)

    def _pass_over(self, start: int, line: int) -> bool:
        self._left = self._batch.slice(start + 1 - self._first)
        self._next = start + 1
        return True

    def _mark(self, start: int, line: int) -> Any:
        return {"row": start, "check": self._check}

    def _checksum(self) -> int:
        """Of the footer's bytes: sizes, places, the smallest and largest values.

        (pyarrow's words for them would do too, but those of a damaged footer can end the process.)
        """
        if not isinstance(self._given, (str, os.PathLike)):
            return _footer_sum(self._given)
        with open(self._given, "rb") as file:
            return _footer_sum(file)

    def _read(self, rows: int) -> Block | None:
        batch = self._left if self._left is not None and self._left.num_rows else next(self._iterator, None)
        if batch is None:
            if self._next < (promised := self._file.metadata.num_rows):
                rule = f"must have the {promised} rows that it says"
                raise ValueError(f"{self.name} {rule}. Got {self._next} instead.")
            return None
        # after a bad row the rest of a batch is read in small parts
        self._batch, self._first, self._left = batch, self._next, batch.slice(rows)
        batch = batch.slice(0, rows)
        starts = np.arange(self._next, self._next + batch.num_rows + 1)
        self._next += batch.num_rows
        kinds = self.kinds
        return typed_block(self, {name: self._column(batch[name], name) for name in kinds}, kinds, starts)

    def _column(self, column: Any, name: str) -> Any:
        with self._translate_errors():
            values = _column(column)
        if values is None:
            rule = "must hold numbers, booleans, dates or text (or be in ignore=)"
            raise ValueError(f"{self.name}, column {name!r}: {rule}. Got {column.type} instead.")
        return values

    def close(self) -> None:
        self._file.close()


def _footer_sum(file: Any) -> int:
    """The checksum of the footer, whose length precedes the last magic bytes; the file position is restored."""
    place, end = file.tell(), file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 8))
    length = int.from_bytes(file.read(4), "little")
    file.seek(max(0, end - 8 - length))
    check = zlib.crc32(file.read(length + 8))
    file.seek(place)
    return check


def _concatenate(parts: list[Any]) -> Any:
    return [value for part in parts for value in part] if isinstance(parts[0], list) else np.concatenate(parts)


def _column(column: Any) -> Any:
    """A pyarrow column as an array (NaN and NaT for nulls) or a list of Python values; None for other types."""
    import pyarrow
    import pyarrow.compute as compute

    types = pyarrow.types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return compute.cast(column, pyarrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    if types.is_timestamp(kind) or types.is_date(kind):
        return compute.cast(column, pyarrow.timestamp("us"), safe=False).to_numpy(zero_copy_only=False)
    if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind):
        return column.to_pylist()
    return None
