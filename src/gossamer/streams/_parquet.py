"""Parquet files, batch by batch, with pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.streams._memory import sampled, typed_block
from gossamer.streams._schema import SAMPLE, Sampled
from gossamer.streams._stream import Block, Options, Stream


class ParquetStream(Stream):
    """Rows of a Parquet file; see `open_stream`."""

    format = "parquet"

    def __init__(self, source: Any, name: str, options: Options) -> None:
        try:
            import pyarrow.parquet as parquet
        except ImportError as error:
            raise ImportError('Parquet needs pyarrow: pip install "gossamer[io]"') from error
        self.name = name
        try:
            self._file = parquet.ParquetFile(source)
        except (OSError, ValueError) as error:
            if isinstance(error, FileNotFoundError):
                raise
            raise ValueError(f"{name} must be a whole Parquet file. Got an error: {error}") from None
        super().__init__(options)

    def _begin(self, at: Any) -> None:
        names = self._file.schema_arrow.names
        if len(set(names)) < len(names):
            again = min(name for name in names if names.count(name) > 1)
            raise ValueError(f"{self.name} must have columns of different names. Got {again!r} more than once instead.")
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
        count = 0
        for batch in self._batches(0, SAMPLE, names):
            for name in names:
                first[name].append(_column(batch[name].slice(0, SAMPLE - count), name))
            count += batch.num_rows
            if count >= SAMPLE:
                break
        empty = {name: Sampled(np.zeros(0), "number") for name in unused}
        return {**{name: sampled(name, _chained(parts), self.bad) for name, parts in first.items()}, **empty}

    def _settle(self) -> None:
        names = list(self.kinds)
        absent = [name for name in names if name not in self._file.schema_arrow.names]
        if absent:
            raise _checks.wrong("open_stream", "position", f"one in data with a column {absent[0]!r}", "another")
        self._iterator = self._batches(self._next, self._options.chunk_rows, names)

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
        for batch in self._file.iter_batches(rows, row_groups=groups, columns=columns, use_threads=False):
            skipped = min(start, batch.num_rows)
            start -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped)

    def _read(self, rows: int) -> Block | None:
        try:
            batch = next(self._iterator, None)
        except OSError as error:
            raise ValueError(f"{self.name}, row {self._next + 1}: must be readable. Got an error: {error}") from None
        if batch is None:
            return None
        starts = np.arange(self._next, self._next + batch.num_rows + 1)
        self._next += batch.num_rows
        kinds = self.kinds
        return typed_block(self, {name: _column(batch[name], name) for name in kinds}, kinds, starts)

    def close(self) -> None:
        self._file.close()


def _chained(parts: list[Any]) -> Any:
    return [value for part in parts for value in part] if isinstance(parts[0], list) else np.concatenate(parts)


def _column(column: Any, name: str) -> Any:
    """A pyarrow column as an array (NaN and NaT for nulls) or a list of Python values."""
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
    rule = "must hold numbers, booleans, dates or text (or be in ignore=)"
    raise ValueError(f"column {name!r}: {rule}. Got {kind} instead.")
