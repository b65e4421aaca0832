"""Streams of rows: arrays, frames, CSV, JSON lines, LIBSVM and Parquet files, in constant memory.

`open_stream` opens any of them; the stream is an iterator of `Chunk`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.streams._csv import CSVStream
from gossamer.streams._memory import TARGET, MemoryStream, array_columns, frame_columns
from gossamer.streams._schema import CATEGORIES, infer_task
from gossamer.streams._source import Source
from gossamer.streams._stream import Chunk, Options, Stream

__all__ = ["Chunk", "Stream", "infer_task", "open_stream"]

FORMATS = ("csv",)


def open_stream(
    source: Any, target: str | int | None = None, columns: Sequence[str | int] | None = None, *,
    format: str | None = None, ignore: Sequence[str | int] = (), kinds: Mapping[str, str] | None = None,
    task: str | None = None, missing: str = "error", chunk_rows: int = 8192, categories: int = CATEGORIES,
    delimiter: str | None = None, header: bool | None = None, position: Mapping[str, Any] | None = None,
) -> Stream:  # fmt: skip
    options = Options(target, columns, ignore, kinds or {}, task, missing, chunk_rows, categories, position)
    if isinstance(source, tuple) and len(source) == 2:
        X, y = source
        if y is not None and target is None:
            options = Options(TARGET, columns, ignore, kinds or {}, task, missing, chunk_rows, categories, position)
        made = frame_columns(X, y) if hasattr(X, "columns") else array_columns(X, y)
        return MemoryStream(*made, options)
    if hasattr(source, "columns"):
        return MemoryStream(*frame_columns(source), options)
    if isinstance(source, np.ndarray):
        return MemoryStream(*array_columns(source, None), options)
    return CSVStream(Source(source), options, delimiter, header)
