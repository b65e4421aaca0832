"""LIBSVM: rows of a label and the values that are not 0, dense or sparse."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from operator import ge
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gossamer import _checks
from gossamer._sparse import MOST_FEATURES
from gossamer._typing import Floats, Ints
from gossamer.rows.table import Values, coded_numbers
from gossamer.streams._chunk import BadRowError, Block, Options
from gossamer.streams._describe import look
from gossamer.streams._find import find_schema
from gossamer.streams._indices import IndexSchema
from gossamer.streams._lines import WIDER, LineStream, broken
from gossamer.streams._schema import FEATURES, Sampled, Schema, Setting
from gossamer.streams._source import Source

LABEL = "label"
#: Rows are sparse if they have at least this many features, and take at most this share of the memory so.
LEAST_SPARSE, SMALLER = 1024, 0.25


@dataclass
class First:
    """The first rows: their labels, the extent of their indices, and how many entries they have."""

    labels: list[float]
    highest: int
    lowest: int
    entries: int


class LIBSVMStream(LineStream):
    """Rows of a LIBSVM file, ``label index:value ...``; see `open_stream`.

    Indices begin at 1, or at 0 if a 0 is among the first rows. The number of features is ``n_features``, or the
    largest index of the first rows; where that is beyond 65,536, there is room for indices of twice its size and more.
    A missing index is 0. Rows are dense, or sparse where the first rows take much less memory so.

    >>> from gossamer.streams import open_stream
    >>> chunk = next(open_stream(b"1 3:0.5 1000000:2\\n-1 7:1\\n"))
    >>> chunk.X.shape, chunk.X.nnz
    ((2, 2097152), 3)
    """

    format = "libsvm"
    plain = True

    def __init__(self, source: Source, options: Options, n_features: int | None = None) -> None:
        self._width, self._base = 0, 1
        #: The highest index of sparse rows.
        self._limit = MOST_FEATURES if options.max_features == FEATURES else options.max_features
        if n_features is not None:
            self._width = _checks.whole("open_stream", "n_features", n_features, 1, MOST_FEATURES)
            options = replace(options, max_features=max(options.max_features, self._width))
            self._limit = max(self._limit, self._width)
        self._highest = options.max_features if options.sparse is False else self._limit
        self._marks = np.array(options.na_numbers)
        if options.target is None and options.columns is None:
            options = replace(options, ignore=[*options.ignore, LABEL])
        super().__init__(options=options, source=source)

    def _begin(self, at: Any) -> None:
        super()._begin(at)
        if at is not None:
            self._width, self._base, self.sparse = int(at["width"]), int(at["base"]), bool(at.get("sparse"))
            self._highest = max(self._highest, self._width)

    def _mark(self, start: int, line: int) -> Any:
        more = {"sparse": True} if self.sparse else {}
        return {**super()._mark(start, line), "width": self._width, "base": self._base, **more}

    def _infer_schema(self) -> Schema:
        o, self._first = self._options, self._look()
        first, schema = self._first, o.schema
        wide = self._width or max(1, first.highest + 1 - first.lowest)
        if schema is None:
            self.sparse = self._choose(first, wide)
        if isinstance(schema, IndexSchema):
            self.sparse, self._base, self._width = True, schema.base, len(schema.names)
        if not self.sparse:
            self._highest = max(o.max_features, self._width)
            if schema is None and first.highest > self._highest:
                self._first = self._look()  # without the rows that are too wide, or with the error of the first
            return super()._infer_schema()
        if schema is None:
            room = wide if wide <= FEATURES else min(1 << (2 * wide - 1).bit_length(), self._limit)
            self._base, self._width = first.lowest, self._width or room
        sample = {LABEL: Sampled(np.array(first.labels), "number"), str(self._base): Sampled(np.zeros(0), "number")}
        self._seen = look(sample)
        target = find_schema(sample, o.target, None, o.ignore, o.kinds, o.task, o.categories, None, True).target
        if schema is not None:
            target = None if schema.target is None else target
        return IndexSchema(self._base, self._width, target)

    def _choose(self, first: First, wide: int) -> bool:
        """Whether rows are to be sparse."""
        o = self._options
        named = {*o.kinds, *o.ignore} - {LABEL}
        chosen = o.columns is not None or o.time is not None or bool(named)
        if o.sparse is not None:
            if o.sparse and chosen:
                raise _checks.wrong("open_stream", "sparse", "False where columns are chosen or have kinds", True)
            return o.sparse
        size = 12 * first.entries / len(first.labels) + 8
        return not chosen and wide >= LEAST_SPARSE and size <= SMALLER * 8 * wide

    def _look(self) -> First:
        """What the first rows have."""
        texts = [text for _, _, text in self._held] or self._first_lines()
        first = First([], 0, 1, 0)
        for i, text in enumerate(texts):
            try:
                label, indices, _ = parse_line(text, self._highest)
            except ValueError as error:
                if not first.labels:
                    raise self._broken(1, self._held[i][1], error) from None
                break
            first.labels.append(label)
            first.entries += len(indices)
            if indices:
                first.highest, first.lowest = max(first.highest, indices[-1]), min(first.lowest, indices[0])
        return first

    def _sample(self) -> dict[str, Sampled]:
        highest, lowest = self._first.highest, self._first.lowest
        if self._options.schema is not None:
            known = [int(column.name) for column in self._options.schema.features if column.name.isdecimal()]
            self._highest = max([self._highest, *known])
            lowest, highest = min([1, *known]), max([1, *known])
        self._base = lowest
        self._width = self._width or max(1, highest + 1 - lowest)
        names = [str(i + lowest) for i in range(self._width)]
        labels = Sampled(np.array(self._first.labels), "number")
        return {LABEL: labels, **dict.fromkeys(names, Sampled(np.zeros(0), "number"))}

    def _chunk_rows(self) -> int:
        return self._options.chunk_rows if self.sparse and not self._careful else super()._chunk_rows()

    def _broken(self, row: int, line: int, error: ValueError) -> ValueError:
        return broken(f"{self.name}, row {row} (line {line}): must be 'label index:value ...'", error)

    def _settle(self) -> None:
        target = self.schema.target
        if target is not None and target.name != LABEL:
            raise _checks.wrong("open_stream", "target", "'label' in LIBSVM, or left out", target.name)
        if self.sparse:
            return
        for column in self.schema.features:
            if column.kind != "number" or column.name == LABEL:
                rule = "among the indices, whose values are numbers, in LIBSVM"
                raise _checks.wrong("open_stream", "columns", rule, column.name)
        # where each index goes; -1 for those that are not used
        self._places = np.full(self._width, -1)
        for slot, name in enumerate(self.schema.names):
            self._places[int(name) - self._base] = slot

    def _read(self, rows: int) -> Block | None:
        texts, starts, lines = self._lines(rows)
        if not texts:
            return None
        labels: list[float] = []
        which: list[int] = []
        counts: list[int] = []
        values: list[float] = []
        error = None
        for text in texts:
            number, line = self._row + len(labels) + 1, int(lines[len(labels)])
            try:
                label, indices, entries = parse_line(text, self._highest)
            except ValueError as problem:
                error = self._broken(number, line, problem)
                break
            if indices and not (self._base <= indices[0] and indices[-1] < self._base + self._width):
                known = f"among the indices {self._base} to {self._base + self._width - 1} ("
                rule = (known, Setting("n_features=", "n_features"), " allows more)")
                wrong = indices[-1] if indices[0] >= self._base else indices[0]
                error = self.bad(number, str(wrong), rule, wrong, line)
                break
            labels.append(label)
            which += indices
            values += entries
            counts.append(len(indices))
        numbers, goals = np.array(values, dtype=np.float64), np.array(labels, dtype=np.float64)
        if len(self._marks):
            numbers, goals = (np.where(np.isin(part, self._marks), np.nan, part) for part in (numbers, goals))
        X = self._table(np.array(which, dtype=np.int64) - self._base, numbers, np.array(counts, dtype=np.int64))
        count = len(labels)
        target = self.schema.target
        columns: dict[str, Values] = {}
        if target is not None:
            columns[target.name] = coded_numbers(goals) if target.kind in ("text", "date") else goals
        return Block(count, columns, starts[: count + 1], lines[: count + 1], X, error)

    def _table(self, columns: Ints, numbers: Floats, counts: Ints) -> Any:
        """The rows of so many numbers each, sparse or dense."""
        if self.sparse:
            starts = np.concatenate([[0], np.cumsum(counts)])
            return csr_array((numbers, columns, starts), shape=(len(counts), self._width))
        X = np.zeros((len(counts), len(self.schema.names)))
        places = self._places[columns]
        used = places >= 0
        X[np.repeat(np.arange(len(counts)), counts)[used], places[used]] = numbers[used]
        return X

    def describe(self) -> list[str]:
        """What the columns were taken for (see `Stream.describe`); of sparse rows, all indices in one line."""
        if not self.sparse:
            return super().describe()
        names, target = self.schema.names, self.schema.target
        goal = [] if target is None else [f"{target.name} (target): {target.kind}"]
        return [*goal, f"{names[0]} ... {names[-1]} ({len(names):,} columns): number, of which the non-zeros are kept"]

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of every column that is used; of sparse rows, of the target alone: the others are numbers."""
        if not self.sparse:
            return super().kinds
        return {} if self.schema.target is None else {self.schema.target.name: self.schema.target.kind}


def parse_line(text: bytes, highest: int) -> tuple[float, list[int], list[float]]:
    """Label, indices and values of a line."""
    line = text.split(b"#", 1)[0]
    first, *pairs = line.split(None, highest + 2) or [b""]  # more cannot ascend
    if len(pairs) > highest + 1:
        raise BadRowError(f"it has more than {highest + 1} entries (", WIDER, " allows more)")
    if b"_" in line or b":" in first:  # Python would take 1_0 for a number
        raise ValueError(f"{first[:40].decode(errors='replace')!r} is not a label, or there is an underscore")
    label = float(first)
    if any(pair.count(b":") != 1 for pair in pairs):
        raise ValueError("it has something other than index:value")
    flat = b" ".join(pairs).replace(b":", b" ").split()
    indices, values = list(map(int, flat[::2])), list(map(float, flat[1::2]))
    if len(indices) != len(pairs) or len(values) != len(pairs):
        raise ValueError("it has an index or a value too few")
    if indices and (indices[0] < 0 or indices[-1] > highest or any(map(ge, indices, indices[1:]))):
        raise BadRowError(f"its indices do not ascend from 0 to at most {highest} (", WIDER, " allows more)")
    if any(map(math.isinf, values)) or math.isinf(label):
        raise ValueError("it has a number that is not finite")
    return label, indices, values
