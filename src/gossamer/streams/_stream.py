"""The stream that all formats share: blocks of columns become chunks of rows, and errors name the row and column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._locks import exclusive, shared
from gossamer._typing import Array, Ints
from gossamer.streams._describe import Seen, describe, look
from gossamer.streams._find import NUMBER, Names, find_schema
from gossamer.streams._indices import read_schema
from gossamer.streams._means import Means, find_gaps, sample_means
from gossamer.streams._schema import CATEGORIES, FEATURES, TASKS, Coded, Misfit, Rule, Sampled, Schema, Setting, Values

#: The version of a position; a stream refuses the positions of other versions.
VERSION = 1
#: The most numbers in a chunk of a file: wide rows come in chunks of fewer.
CELLS = 1 << 19
SKIP, MEAN = Setting("missing='skip'", "missing", "skip"), Setting("'mean'", "missing", "mean")
#: The rule that a missing value breaks.
PRESENT = ("there (", SKIP, " leaves such rows out, ", MEAN, " takes the mean of the rows before)")


@dataclass(frozen=True)
class Options:
    """The options of `open_stream` that all formats share."""

    target: str | int | None = None
    columns: Any = None
    ignore: Any = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    task: str | None = None
    missing: str = "error"
    chunk_rows: int = 8192
    categories: int = CATEGORIES
    position: Mapping[str, Any] | None = None
    schema: Schema | None = None
    na_values: Any = ()
    max_features: int = FEATURES
    means: Any = None
    keep_means: bool = False
    bad_rows: str = "error"
    sparse: bool | None = None

    def __post_init__(self) -> None:
        _checks.one_of("open_stream", "missing", self.missing, ["error", "skip", "mean"])
        _checks.one_of("open_stream", "bad_rows", self.bad_rows, ["error", "skip"])
        _checks.one_of("open_stream", "keep_means", self.keep_means, [False, True])
        _checks.one_of("open_stream", "sparse", self.sparse, [None, False, True])
        if self.task is not None:
            _checks.one_of("open_stream", "task", self.task, TASKS)
        _checks.whole("open_stream", "chunk_rows", self.chunk_rows, 1)
        _checks.whole("open_stream", "categories", self.categories, 1)
        _checks.whole("open_stream", "max_features", self.max_features, 1)
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
    X : the features, a C-ordered float64 array of shape (rows, features); of a sparse stream a CSR array of SciPy.
    y : the targets (str, int64, bool or float64), or None.
    rows : the number of each row in its source, the first data row being 1.
    names : the names of the features.
    position : where to go on after these rows: ``open_stream(source, position=...)``. A small dict that JSON can hold.
    """

    X: Any
    y: Array | None
    rows: Ints
    names: Sequence[str]
    position: dict[str, Any] = field(repr=False)

    def __len__(self) -> int:
        return int(self.X.shape[0])


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


class Stream:
    """An iterator of `Chunk`; see `open_stream`.

    The rows before a bad row are handed out first; then the error is raised, on every further call. Several threads
    may take chunks from one stream: each chunk goes to one of them.

    >>> from gossamer.streams import open_stream
    >>> stream = open_stream(b"size;price;id\\n1;1,5;7\\n2;2,5;8\\n", target="price", ignore=["id"])
    >>> for line in stream.describe():  # what each column was taken for
    ...     print(line)
    size: number, such as '1'
    price (target): text, such as '1,5': numbers with a decimal comma? Then decimal=',' reads them
    id (ignored): number, such as '7'
    """

    format = ""
    name = ""
    #: Whether rows come from a file, so that their memory must be bounded.
    bounded = True
    #: Whether rows come as CSR arrays, of their non-zeros only.
    sparse = False

    def __init__(self, options: Options) -> None:
        self._options = options
        self._seen: dict[str, Seen] = {}
        #: How many rows were left out so far, for missing values and as bad ones; and what was wrong with the first.
        self.left_out, self.first_bad = (0, 0), ""
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
                means = position.get("means")
                if means is None and "sums" in position:  # of an earlier version
                    means = {"sums": position["sums"]}
                fills = means is not None or options.missing == "mean"
                self._means = Means(len(self.schema.names) if fills else 0, means, options.keep_means)
                if "left_out" in position:
                    missing, bad, self.first_bad = position["left_out"]
                    self.left_out = int(missing), int(bad)
                self._begin(position["at"])
            except (KeyError, TypeError, AttributeError):
                rule = f"one that a stream of format {self.format!r} gave"
                raise _checks.wrong("open_stream", "position", rule, dict(position)) from None
        self._settle()
        self._at, self._at_line = self._now()

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
        at = self._mark(self._at, self._at_line)
        position = {"format": self.format, "version": VERSION, "row": self._row, "at": at}
        if self._options.missing == "mean":
            position["means"] = self._means.state()
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
            schema = find_schema(sample, o.target, o.columns, o.ignore, o.kinds, o.task, o.categories, most)
        means = o.means
        if o.missing == "mean" and means is None:
            means = {"start": sample_means(schema, sample)}
        self._means = Means(len(schema.names), means, o.keep_means)
        return schema

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
        return Schema(schema.features, schema.target if there else None)

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
        X, misfits = schema.encode(rows, block.values, block.X)
        target, lost, more = schema.targets(block.values)
        misfits += more
        if lost is None:
            lost = np.zeros(rows, dtype=np.bool_)
        absent, slot = find_gaps(X)
        if missing == "error" and absent.any():
            misfits.append(Misfit(int(np.argmax(absent)), schema.owner(slot), PRESENT, "a missing value"))
        if missing != "skip" and lost.any():
            assert schema.target is not None
            rule = ("there, for it is the target (", SKIP, " leaves such rows out)")
            misfits.append(Misfit(int(np.argmax(lost)), schema.target.name, rule, "a missing value"))
        error = block.error
        if misfits:
            first = min(misfits, key=lambda misfit: misfit.row)
            rows = first.row
            line = None if block.lines is None else int(block.lines[rows])
            error = self.bad(self._row + rows + 1, first.column, first.rule, first.got, line)
        keep = np.ones(rows, dtype=np.bool_)
        if missing == "skip":
            keep = ~(absent | lost)[:rows]
            self.left_out = self.left_out[0] + rows - int(keep.sum()), self.left_out[1]
        elif missing == "mean" and rows:
            X = self._means.fill(X[:rows])
        numbers = np.arange(self._row + 1, self._row + rows + 1)
        self._row += rows
        self._at = int(block.starts[rows])
        self._at_line = 0 if block.lines is None else int(block.lines[rows])
        self._error = error
        if not keep.any():
            return None
        whole = X.shape[0] == len(keep) and bool(keep.all())
        X = X if whole else X[:rows][keep]
        y = None if target is None else schema.labels(target, np.flatnonzero(keep))
        return Chunk(X, y, numbers if whole else numbers[keep], schema.names, self.position)
