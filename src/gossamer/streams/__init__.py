"""Streams of rows: arrays, frames, CSV, JSON lines, LIBSVM and Parquet files, in constant memory.

`open_stream` opens any of them; a `Stream` is an iterator of `Chunk`. What a column holds is found in the first 1,000
rows (or 400,000 values) and then fixed; what does not fit is an error that names the row and the column.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.streams._chunk import BadRowError, Chunk, Options
from gossamer.streams._csv import CSVStream, check_delimiter
from gossamer.streams._find import infer_task
from gossamer.streams._libsvm import LABEL, LIBSVMStream
from gossamer.streams._lines import JSONStream
from gossamer.streams._magic import PARQUET, identify
from gossamer.streams._memory import TARGET, MemoryStream, array_columns, frame_columns
from gossamer.streams._parquet import ParquetStream
from gossamer.streams._schema import CATEGORIES, FEATURES, Schema
from gossamer.streams._source import Source
from gossamer.streams._stream import Stream

__all__ = ["FORMATS", "BadRowError", "Chunk", "Schema", "Stream", "infer_task", "open_stream"]

#: The formats that `open_stream` reads, by name.
FORMATS = ("csv", "jsonl", "libsvm", "parquet")
WORDS = {"csv": "CSV", "jsonl": "JSON lines", "libsvm": "LIBSVM", "parquet": "Parquet"}
ENDINGS = {
    ".csv": "csv", ".tsv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
    ".libsvm": "libsvm", ".svmlight": "libsvm", ".svm": "libsvm", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
PACKED = (".gz", ".bz2", ".xz", ".zst", ".zstd")
LIBSVM = re.compile(rb"[-+0-9.eE]++(?:[ \t]++\d++:[-+0-9.eE]++)++[ \t]*+(?:#.*+)?+")


def open_stream(
    source: Any, target: str | int | None = None, columns: Sequence[str | int] | None = None, *,
    format: str | None = None, ignore: Sequence[str | int] = (), kinds: Mapping[str, str] | None = None,
    task: str | None = None, missing: str = "fill", chunk_rows: int = 8192, categories: int = CATEGORIES,
    delimiter: str | None = None, header: bool | None = None, decimal: str | None = None, encoding: str | None = None,
    na_values: Sequence[str | float] = (), n_features: int | None = None, max_features: int = FEATURES,
    position: Mapping[str, Any] | None = None, schema: Schema | None = None, encode: bool = True,
    bad_rows: str = "error", time: str | None = None, sparse: bool | None = None,
) -> Stream:  # fmt: skip
    """Open rows of any kind: an iterator of `Chunk`, in constant memory.

    Parameters
    ----------
    source : a path, "-" for standard input, a file object, bytes; ``(X, y)``, a matrix, a pandas or polars frame.
        gzip, bzip2, xz and zstd are unpacked, whatever the file is called. zstd and Parquet need ``gossamer[io]``.
    target : the column to predict, by name or position (-1 is the last). LIBSVM and ``(X, y)`` have one anyway.
    columns : the columns that are features; all others but the target, unless given.
    format : "csv", "jsonl", "libsvm" or "parquet"; the ending of the name tells, or else the first bytes do.
    ignore : columns that are not features.
    kinds : for some columns a kind of `gossamer.rows.KINDS`, such as "number", "category", "text:64" or "cyclic:24", in
        place of what the first rows look like; for the target "number", "integer", "boolean", "date" or "text".
    task : "classification", "regression" or "novelty" in place of what the target looks like (`infer_task`).
    missing : "fill" copes as `gossamer.RowEncoder` does: a gap is the mean of the rows before, with an indicator where
        the first rows have gaps; a value of another kind is a gap; rows without a target are left out. "error" refuses
        all that, "skip" leaves out rows where something is missing. In CSV an empty field and NA, N/A, NaN, NULL,
        null, None and ? are missing.
    na_values : what else stands for a missing value: texts, and numbers, which also a number column may have (-999).
    chunk_rows : the most rows of a chunk. Wide rows of a file come in chunks of at most 2^19 numbers.
    categories : the most categories of a column that have a feature of their own at a time; the others share some.
    delimiter, header : of CSV; otherwise "," ";" tab or "|", and a header unless a field of the first line is a number.
    decimal : of CSV: "," reads ``1,5``; found in the first rows unless given, where no comma is the delimiter.
    encoding : of text, where it is not UTF-8: "latin-1", "cp1252", "utf-16" and others that Python knows.
    n_features : of LIBSVM; otherwise the largest index of the first rows.
    max_features : data with more features are refused, before they take memory: rows are dense, and each feature takes
        some hundred bytes besides. Reading takes at most 100 MB and 20 times the size of the file, whatever is in it.
        Sparse rows may have up to 2^31 features unless a limit is given.
    position : where to go on: the ``position`` of a chunk, or of a stream, of the same source. What the columns are
        comes from there; the parameters on how to read (``missing``, ``chunk_rows``) are given again.
    schema : what the columns are, instead of finding out: the ``schema`` of another stream. Its features must be there;
        its target may be. ``target``, ``columns``, ``ignore``, ``kinds`` and ``categories`` are then of no use.
    encode : whether X is the features of a `gossamer.RowEncoder` that learns on the way, numbers unscaled; otherwise X
        is the columns as they are, a `gossamer.rows.Table`, for a model that begins with an encoder of its own.
    bad_rows : "error", or "skip" to leave out rows that do not fit, count them (``stream.left_out``) and go on. The
        first row must be good.
    time : the column that says when each row came: a date or a number of seconds. It is a feature as others, and the
        ``time`` of a chunk has its values, for models that forget by the clock.
    sparse : of LIBSVM: whether rows come as CSR arrays of their non-zeros. None: where there are at least 1,024
        features, and the first rows take a quarter of the memory or less so. Of others: that of the `RowEncoder`,
        None for "auto".

    Examples
    --------
    >>> data = b"size,shop,price\\n1,Rome,10.5\\n2,Oslo,20.1\\n3,Rome,29.8\\n"
    >>> stream = open_stream(data, target="price", chunk_rows=2)
    >>> stream.names, stream.task
    (['size', 'shop:1', 'shop:2', 'shop:3', 'shop:4', 'shop:other1', 'shop:other2'], 'regression')
    >>> [chunk.y.tolist() for chunk in stream]
    [[10.5, 20.1], [29.8]]
    >>> list(open_stream(b"size,price\\n1,10\\n2,20,2\\n"))
    Traceback (most recent call last):
    gossamer.streams.BadRowError: the data, row 2 (line 3): must be of 2 fields, as the columns. Got '3 fields' instead.
    """
    if task == "novelty" and format is None and target is None and isinstance(source, tuple):
        source = (source[0], None)

    def options(goal: str | int | None) -> Options:
        return Options(goal, columns, ignore, kinds or {}, task, missing, chunk_rows, categories, position, schema,
                       na_values, max_features, encode, bad_rows, time, sparse)  # fmt: skip

    if isinstance(source, tuple) and len(source) == 2:
        X, y = source
        made = frame_columns(X, y) if hasattr(X, "columns") else array_columns(X, y)
        return MemoryStream(*made, options(TARGET if target is None and y is not None else target))
    if hasattr(source, "columns"):
        return MemoryStream(*frame_columns(source), options(target))
    if isinstance(source, np.ndarray):
        return MemoryStream(*array_columns(source, None), options(target))
    if decimal is not None:
        _checks.one_of("open_stream", "decimal", decimal, [".", ","])
    if delimiter is not None:
        check_delimiter(delimiter, decimal or ".")
    if format is not None:
        _checks.one_of("open_stream", "format", format, FORMATS)
    ending = ENDINGS.get(_suffix(source))
    if (format or ending) == "parquet" and isinstance(source, (str, os.PathLike)):
        _check_text_only("parquet", decimal, encoding)
        return ParquetStream(source, os.path.basename(os.fspath(source)), options(target))
    data = Source(source, encoding)
    try:
        start = data.peek()
        form = format or (position or {}).get("format") or ending or _looks_like(start)
        _check_text_only(form, decimal, encoding)
        if form == "parquet":
            return ParquetStream(data.rewound(), data.name, options(target))
        if (what := identify(start)) is not None:
            raise ValueError(f"{data.name} must be {WORDS.get(form, form)}. Got {what} instead.")
        if form == "jsonl":
            return JSONStream(data, options(target))
        if form == "libsvm":
            return LIBSVMStream(data, options(LABEL if target is None and task != "novelty" else target), n_features)
        if delimiter is None and _suffix(source) == ".tsv":
            delimiter = "\t"
        return CSVStream(data, options(target), delimiter, header, decimal)
    except BaseException:
        data.close()
        raise


def _check_text_only(form: str, decimal: str | None, encoding: str | None) -> None:
    if form != "csv" and decimal not in (None, "."):
        raise _checks.wrong("open_stream", "decimal", f"'.' in {WORDS[form]}: it is for CSV", decimal)
    if form == "parquet" and encoding is not None:
        raise _checks.wrong("open_stream", "encoding", "left out for Parquet, which has its own", encoding)


def _suffix(source: Any) -> str:
    """The ending of a name, without that of an archive; empty if there is no name."""
    name = os.fspath(source) if isinstance(source, os.PathLike) else source
    if not isinstance(name, str):
        return ""
    base, end = os.path.splitext(name.lower())
    return os.path.splitext(base)[1] if end in PACKED else end


def _is_parquet(start: bytes) -> bool:
    """Whether data begin like a Parquet file, also if the magic bytes are cut or damaged."""
    if len(start) < 5:
        return start != b"" and PARQUET.startswith(start[:4])
    return start[4] == 0x15 and sum(a == b for a, b in zip(start, PARQUET, strict=False)) >= 3


def _looks_like(start: bytes) -> str:
    """The format of data that begins like this."""
    if _is_parquet(start):
        return "parquet"
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text.startswith(b"{"):
        return "jsonl"
    return "libsvm" if LIBSVM.fullmatch(text.split(b"\n", 1)[0].rstrip()) else "csv"
