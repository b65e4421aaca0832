"""The stream that all formats share: blocks of columns become chunks of rows, and errors name the row and column."""

from __future__ import annotations

import base64
import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gossamer import _checks
from gossamer._locks import exclusive, shared
from gossamer._typing import Bools, Floats
from gossamer.rows import Coded, RowEncoder, Table
from gossamer.rows.clock import read_seconds
from gossamer.rows.parse import parse_number
from gossamer.streams._chunk import BadRowError, Block, Chunk, Options, pack
from gossamer.streams._describe import Seen, describe, look
from gossamer.streams._find import Names, find_schema
from gossamer.streams._indices import read_schema
from gossamer.streams._schema import Misfit, Rule, Sampled, Schema, Setting

#: The version of a position; a stream refuses the positions of other versions.
VERSION = 2
#: The most numbers in a chunk of a file: wide rows come in chunks of fewer.
CELLS = 1 << 19
SKIP, FILL = Setting("missing='skip'", "missing", "skip"), Setting("'fill'", "missing", "fill")
#: The rule that a missing value breaks.
PRESENT = ("there (", SKIP, " leaves such rows out, ", FILL, " takes the mean of the rows before)")


class Stream:
    """An iterator of `Chunk`; see `open_stream`.

    The rows before a bad row are handed out first; then the error is raised, on every further call. Several threads
    may take chunks from one stream: each chunk goes to one of them.

    >>> from gossamer.streams import open_stream
    >>> stream = open_stream(b"size;rate;id\\n1;50%;7\\n2;;8\\n", target="size", ignore=["id"])
    >>> for line in stream.describe():  # what each column was taken for
    ...     print(line)
    size (target): integer, such as '1'
    rate: number, 1 missing, such as '50%': indicator; numbers written like '50%'
    id (ignored): number, such as '7'
    """

    format = ""
    name = ""
    #: Whether rows come from a file, so that their memory must be bounded.
    bounded = True
    #: Whether all rows are numbers without gaps, which need no encoder.
    plain = False
    #: Whether rows come as CSR arrays, of their non-zeros only.
    sparse = False

    def __init__(self, options: Options) -> None:
        self._options = options
        self._seen: dict[str, Seen] = {}
        #: How many rows were left out so far, for missing values and as bad ones; and what was wrong with the first.
        self.left_out, self.first_bad = (0, 0), ""
        #: What was decided besides: names of the header, values of another kind.
        self.notes: list[str] = []
        self.strays: dict[str, tuple[int, str]] = {}
        self._error: Exception | None = None
        self._careful = 0  # after a bad row, the most rows that are read at once, if not 0
        self._row = 0
        position = options.position
        if position is None:
            self._begin(None)
            self.schema = self._infer_schema()
        else:
            if position.get("format") != self.format or position.get("version") != VERSION:
                rule = f"one that a stream of format {self.format!r} gave"
                raise _checks.wrong("open_stream", "position", rule, dict(position))
            self.schema = read_schema(position.get("schema"))
            self._row = _checks.whole("position", "row", position.get("row"), 0)
            try:
                if "left_out" in position:
                    missing, bad, self.first_bad = position["left_out"]
                    self.left_out = int(missing), int(bad)
                self._begin(position["at"])
            except (KeyError, TypeError, AttributeError):
                rule = f"one that a stream of format {self.format!r} gave"
                raise _checks.wrong("open_stream", "position", rule, dict(position)) from None
        self._check_time()
        self._settle()
        self._at, self._at_line = self._now()
        #: What encodes the rows, if the stream does; it learns from each chunk that is handed out.
        self.encoder = self._make_encoder(position) if options.encode and not self.plain else None

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of every column that is used."""
        target = [] if self.schema.target is None else [self.schema.target]
        return {column.name: column.kind for column in (*self.schema.features, *target)}

    def describe(self) -> list[str]:
        """What each column was taken for, in a line per column.

        Its use and kind, how many values were missing or different in the first rows, and an example. A text that
        looks like numbers in disguise (``1,5``, ``$1,234.50``, ``50%``) is pointed out. Of more than 40 columns,
        neighbours of one kind share a line. A stream that goes on at a ``position`` has looked at no rows: it tells
        the kinds alone.
        """
        return describe(self.schema, self._seen)

    # ------------------------------------------------------------------------------------------ what a format does

    def _begin(self, at: Any) -> None:
        """Open at the beginning, or at what `_mark` returned."""
        raise NotImplementedError

    def _sample(self) -> dict[str, Sampled]:
        """The first rows of each column, without consuming them."""
        raise NotImplementedError

    def _settle(self) -> None:
        """Called once the schema is known."""

    def _read(self, rows: int) -> Block | None:
        """At most ``rows`` rows; None at the end. A block without rows has an error."""
        raise NotImplementedError

    def _mark(self, start: int, line: int) -> Any:
        """The data that `_begin` needs to resume at ``start``, one of the last block's ``starts``, in that line."""
        return start

    def _now(self) -> tuple[int, int]:
        """The start and the line of the row that comes next."""
        return self._row, 0

    def close(self) -> None:
        """Close the files that the stream has opened."""

    # ----------------------------------------------------------------------------------------------- what users see

    @property
    def names(self) -> Sequence[str]:
        """The names of the features."""
        return self.schema.names

    @property
    def target(self) -> str | None:
        """The name of the target."""
        return None if self.schema.target is None else self.schema.target.name

    @property
    def task(self) -> str:
        """The task, given or inferred from the target: "classification", "regression" or "novelty"."""
        return self._options.task or self.schema.task

    @property
    def rows_read(self) -> int:
        """The number of the last row that was read."""
        return self._row

    @property
    @shared
    def position(self) -> dict[str, Any]:
        """Where the next row is: ``open_stream(source, position=...)`` goes on there."""
        place = self._position()
        return place if self.encoder is None else {**place, "encoder": pack(self.encoder)}

    def _position(self) -> dict[str, Any]:
        """The position without the encoder."""
        at = self._mark(self._at, self._at_line)
        position = {"format": self.format, "version": VERSION, "row": self._row, "at": at}
        if any(self.left_out):
            position["left_out"] = [*self.left_out, self.first_bad]
        return {**position, "schema": self.schema.to_dict()}

    def __iter__(self) -> Iterator[Chunk]:
        return self

    @exclusive
    def __next__(self) -> Chunk:
        while self._error is None:
            try:
                block = self._read(self._chunk_rows())
                if block is None:
                    raise self._empty() if self._row == 0 else StopIteration
                chunk = self._chunk(block)
                if isinstance(self._error, BadRowError) and self._options.bad_rows == "skip":
                    self._skip_row(self._error)
                    self._careful = 16  # rows after a bad one are read again: few of them, so that time stays linear
                elif self._careful:
                    self._careful = 2 * self._careful if self._careful < self._options.chunk_rows else 0
            except (ValueError, StopIteration) as error:
                self._error = error
                break
            if chunk is not None:
                return chunk
        self.close()
        raise self._error

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --------------------------------------------------------------------------------------------------- the work

    def _infer_schema(self) -> Schema:
        o = self._options
        sample = self._sample()
        self._seen = look(sample)
        if o.schema is not None:
            schema = self._check_schema(o.schema, list(sample))
        else:
            most = o.max_features if self.bounded else None
            rest = (o.task, o.categories, most, self.plain, o.encode)
            schema = find_schema(sample, o.target, o.columns, o.ignore, o.kinds, *rest)
            others = {column.name for column in schema.plan.used} | ({schema.target.name} if schema.target else set())
            if o.time in sample and o.time not in others and o.time not in o.ignore:  # taken for an id
                kinds = {**o.kinds, str(o.time): o.kinds.get(str(o.time), "timestamp")}
                schema = find_schema(sample, o.target, o.columns, o.ignore, kinds, *rest)
        return schema

    def _check_time(self) -> None:
        """Raise unless the column of the time is one of numbers or dates."""
        name = self._options.time
        if name is None:
            return
        kinds = {column.name: column.kind for column in self.schema.plan.used}
        if kinds.get(name) not in ("number", "timestamp"):
            got = f"{name!r}, of kind {kinds[name]!r}" if name in kinds else name
            raise _checks.wrong("open_stream", "time", "a column of dates or numbers that is a feature", got)

    def _times(self, found: Any) -> Floats | None:
        """When rows came, in seconds; NaN where that is missing."""
        name = self._options.time
        if name is None:
            return None
        if not isinstance(found, Table):
            return np.ascontiguousarray(found[:, self.schema.names.index(name)])
        column, values = next(c for c in self.schema.plan.used if c.name == name), found[name]
        if column.kind == "timestamp":
            return read_seconds(column, values)
        if isinstance(values, Coded):
            return values.map([parse_number(text, column.decimal) for text in values.values])
        return np.asarray(values, dtype=np.float64)

    def _make_encoder(self, position: Mapping[str, Any] | None) -> RowEncoder:
        """The encoder of the rows, as it was at a position."""
        if position is None:
            sparse = "auto" if self._options.sparse is None else self._options.sparse
            made: RowEncoder = RowEncoder(self.schema.plan, scale=False, largest=np.inf, sparse=sparse).settle()
            return made
        try:
            encoder = RowEncoder.from_bytes(base64.b64decode(position["encoder"]))
        except (KeyError, TypeError, ValueError):
            raise _checks.wrong("open_stream", "position", "one of a stream with encode=True", dict(position)) from None
        if encoder.plan_ != self.schema.plan:
            raise _checks.wrong("open_stream", "position", "one whose encoder has the columns", encoder.plan_)
        return encoder

    def _skip_row(self, error: BadRowError) -> None:
        """Go on after the row that the stream has stopped at, if the format can; count it."""
        if not self._pass_over(self._at, self._at_line):
            return
        self._error = None
        self._row += 1
        self._at, self._at_line = self._now()
        missing, bad = self.left_out
        self.left_out = missing, bad + 1
        self.first_bad = self.first_bad or str(error)

    def _count_stray(self, name: str, text: str) -> None:
        """Count a value of another kind than its column's, which is taken for missing."""
        count, first = self.strays.get(name, (0, text))
        self.strays[name] = count + 1, first

    def _pass_over(self, start: int, line: int) -> bool:
        """Go to the row that begins at ``start``, in the last block read, and skip it; False if the format cannot."""
        return False

    def _chunk_rows(self) -> int:
        """The most rows of the next chunk: as asked for, and not too many numbers."""
        rows = self._options.chunk_rows
        rows = min(rows, max(1, CELLS // len(self.schema.names))) if self.bounded else rows
        return min(rows, self._careful) if self._careful else rows

    def _check_schema(self, schema: Schema, names: list[str]) -> Schema:
        """A schema given, for data that must have its features; its target is used if it is there."""
        known = set(names)
        for column in schema.features:
            if column.name not in known:
                shown = Names(names).shown()
                raise ValueError(f"{self.name} must have the column {column.name!r}. Got the columns {shown} instead.")
        there = schema.target is not None and schema.target.name in known
        return Schema(schema.plan, schema.target if there else None)

    def _empty(self) -> ValueError:
        return ValueError(f"{self.name} must have at least one row. Got none.")

    def bad(self, row: int, column: str | None, rule: Rule, got: object, line: int | None = None) -> ValueError:
        """The error for a value, by the number of its row (from 1), its line where that differs, and its column."""
        text = repr(got[:80] if isinstance(got, (str, bytes)) else got)
        text = text if len(text) <= 80 else text[:77] + "..."
        where = f"row {row}" + ("" if line is None else f" (line {line})")
        where += f", column {column[:80]!r}" if column else ""
        pieces = [rule] if isinstance(rule, str) else rule
        return BadRowError(f"{self.name}, {where}: must be ", *pieces, f". Got {text} instead.")

    def _chunk(self, block: Block) -> Chunk | None:
        """The rows of a block up to the first bad one; None if none remains, after a skip."""
        missing, schema, rows = self._options.missing, self.schema, block.rows
        strict = missing != "fill"
        found: Any
        if block.X is not None:
            found, misfits = block.X, list[Misfit]()
            gone = find_gaps(block.X)
        else:
            found, misfits = schema.table(rows, block.values, strict)
            gone = _gaps(found) if strict else np.zeros(rows, dtype=np.bool_)
        target, lost, more = schema.targets(block.values)
        misfits += more
        if lost is None:
            lost = np.zeros(rows, dtype=np.bool_)
        if gone.any() and (missing == "error" or (block.X is not None and not strict)):
            row = int(np.argmax(gone))
            misfits.append(Misfit(row, self._first_gap(found, row), PRESENT, "a missing value"))
        if missing == "error" and lost.any():
            assert schema.target is not None
            rule = ("there, for it is the target (", SKIP, " leaves such rows out)")
            misfits.append(Misfit(int(np.argmax(lost)), schema.target.name, rule, "a missing value"))
        times = self._times(found)
        if times is not None and not np.isfinite(times).all():
            needed = "there, for it is the time of the row"
            row = int(np.argmin(np.isfinite(times)))
            misfits.append(Misfit(row, str(self._options.time), needed, "a missing value"))
        error = block.error
        if misfits:
            first = min(misfits, key=lambda misfit: misfit.row)
            rows = first.row
            line = None if block.lines is None else int(block.lines[rows])
            error = self.bad(self._row + rows + 1, first.column, first.rule, first.got, line)
        keep = np.ones(rows, dtype=np.bool_)
        if missing != "error":
            keep = ~(gone | lost)[:rows]
            self.left_out = self.left_out[0] + rows - int(keep.sum()), self.left_out[1]
        numbers = np.arange(self._row + 1, self._row + rows + 1)
        self._row += rows
        self._at = int(block.starts[rows])
        self._at_line = 0 if block.lines is None else int(block.lines[rows])
        self._error = error
        if not keep.any():
            return None
        if not (block.rows == len(keep) and keep.all()):
            found, numbers = found[:rows][keep], numbers[keep]
            times = None if times is None else times[:rows][keep]
        if self.encoder is not None:
            found = self.encoder.learn_transform(found)
        y = None if target is None else schema.labels(target, np.flatnonzero(keep))
        known = None if self.encoder is None else copy.copy(self.encoder)  # what it learns later is not in the copy
        return Chunk(found, y, numbers, schema.names, self._position(), known, times)

    def _first_gap(self, found: Any, row: int) -> str:
        """The first column that has nothing in a row."""
        if issparse(found):
            return str(self.schema.names[int(found.indices[np.argmax(np.isnan(found.data))])])
        if not isinstance(found, Table):
            return str(self.schema.names[int(np.argmax(np.isnan(found[row])))])
        return next(name for name in found.columns if _gaps(found[row : row + 1], name)[0])


def find_gaps(X: Any) -> Bools:
    """Which rows have a missing value."""
    if not issparse(X):
        return np.asarray(np.isnan(X).any(axis=1))
    gone = np.zeros(X.shape[0], dtype=np.bool_)
    gone[np.searchsorted(X.indptr, np.flatnonzero(np.isnan(X.data)), side="right") - 1] = True
    return gone


def _gaps(table: Table, name: str | None = None) -> Bools:
    """The rows where something is missing, in a column or in any."""
    gone = np.zeros(table.rows, dtype=np.bool_)
    for values in table.columns.values() if name is None else [table[name]]:
        gone |= values.codes < 0 if isinstance(values, Coded) else np.isnan(values)
    return gone
