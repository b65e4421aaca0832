"""Where the features of each column stand, and the state that its encoder learns."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from gossamer import _checks, _core
from gossamer._typing import Bools, Floats
from gossamer.rows import clock
from gossamer.rows.categories import Categories
from gossamer.rows.find import as_codes, drop_texts, without_missing
from gossamer.rows.parse import map_texts, parse_number, parse_truth
from gossamer.rows.plan import LEFT_OUT, Column, Plan
from gossamer.rows.table import Coded, Table, coded_times
from gossamer.rows.text import hash_texts

#: Non-zeros of a text, as an estimate: its words, pairs of words and n-grams.
TEXT = 120
#: The largest number of rows that can be counted.
MOST_ROWS = 2**62


class Layout:
    """The places of all features, and what was learned: the statistics of numbers, the categories, the last times.

    Numbers of all columns are encoded together; ``numbers`` lists them by column and by what they are there. If
    ``sparse``, texts are no part of the block of dense features that is filled first: its columns are at ``block``.
    """

    def __init__(self, plan: Plan, clip: float, largest: float, sparse: bool = False) -> None:
        self.plan, self.largest, self.sparse = plan, largest, sparse
        self.starts: dict[str, int] = {}
        self.width, block = 0, list[int]()
        self.columns = plan.used
        numbers: list[tuple[int, int, float, float]] = []  # place, mark, clip, unit
        self.number_of: dict[str, int] = {}
        self.categories: dict[str, Categories] = {}
        for column in self.columns:
            start, count = self.width, len(column.features)
            if not (sparse and column.kind == "text"):
                start = len(block)
                block += range(self.width, self.width + count)
            self.starts[column.name] = start
            self.width += count
            if column.kind in ("number", "boolean", "mixed"):
                self.number_of[column.name] = len(numbers)
                scaled = 0.0 if column.kind == "boolean" else clip
                numbers.append((start, start + 1 if column.indicator else -1, scaled, column.log))
            elif column.kind == "timestamp":
                self.number_of[column.name] = len(numbers)
                count = ("gap" in column.parts) + ("since" in column.parts)
                numbers += [(start + i, -1, clip, 0.0) for i in range(count)]
            if column.kind in ("category", "mixed"):
                self.categories[column.name] = Categories(column.places, column.hashed)
        self.block = np.array(block, dtype=np.int32)
        self.places, self.marks = (np.array([row[i] for row in numbers], dtype=np.int64) for i in (0, 1))
        self.clips, self.units = (np.array([row[i] for row in numbers], dtype=np.float64) for i in (2, 3))
        self.weight, self.mean, self.squares = np.zeros((3, len(numbers)))
        self.last = dict.fromkeys((c.name for c in self.columns if c.kind == "timestamp"), math.nan)
        #: How many values of each column were missing, and how many were of another kind, so far.
        self.gaps, self.strays = dict.fromkeys(self.starts, 0), dict.fromkeys(self.starts, 0)

    # ------------------------------------------------------------------------------------------------ encoding

    def encode(self, table: Table, *, learn: bool, memory: float, keep: float, zone: Any, strict: bool) -> Any:
        """The features of the rows, an array or CSR; ``strict`` raises for what is missing or of another kind."""
        out = np.zeros((table.rows, len(self.block)))
        texts: list[tuple[int, Any]] = []
        numbers = np.full((table.rows, len(self.places)), np.nan)
        fast: list[Column] = []
        for column in self.columns:
            values, hint = table.columns.get(column.name), table.hints.get(column.name, "")
            values = np.full(table.rows, np.nan) if values is None else _as_among_others(column, values, hint)
            if column.kind == "number" and not column.missing and isinstance(values, np.ndarray):
                numbers[:, self.number_of[column.name]] = values
                fast.append(column)
                continue
            values = self._present(column, values)
            gaps = values.codes < 0 if isinstance(values, Coded) else np.isnan(values)
            strays = None
            if column.kind == "text":
                self._write_text(column, as_codes(values, hint), out, texts)
            else:
                strays = self._write(column, values, hint, out, numbers, learn, memory, zone)
            if strict:
                _refuse(column, values, gaps, strays)
            if learn:
                self.gaps[column.name] += int(gaps.sum())
                self.strays[column.name] += 0 if strays is None else int(strays.sum())
        self._check_numbers(fast, numbers, learn, strict)
        if numbers.shape[1]:
            known = self if learn else self.clone()  # the arrays of a loaded pickle may be read-only
            _core.encode_numbers(
                numbers, out, self.clips, self.units, self.places, self.marks,
                known.weight, known.mean, known.squares, learn, keep,
            )  # fmt: skip
        return self._join(out, texts) if self.sparse else out

    def _write_text(self, column: Column, coded: Coded, out: Floats, texts: list[tuple[int, Any]]) -> None:
        start, rows = self.starts[column.name], hash_texts(coded, column.width)
        if self.sparse:
            texts.append((start, rows))
        else:
            out[:, start : start + column.width] = rows.toarray()

    def _join(self, out: Floats, texts: list[tuple[int, Any]]) -> csr_matrix:
        """The dense features and those of texts, each where it stands, as CSR."""
        parts = [csr_matrix(out), *(rows for _, rows in texts)]
        where = [self.block, *(np.arange(start, start + rows.shape[1], dtype=np.int32) for start, rows in texts)]
        found = hstack(parts, format="csr")
        made = csr_matrix((found.data, np.concatenate(where)[found.indices], found.indptr), (len(out), self.width))
        made.sort_indices()
        return made

    def _check_numbers(self, columns: list[Column], numbers: Floats, learn: bool, strict: bool) -> None:
        """Columns of numbers all at once: what is infinite or very large becomes a gap."""
        if not columns:
            return
        which = [self.number_of[column.name] for column in columns]
        part = numbers[:, which]
        gaps = np.isnan(part)
        with np.errstate(invalid="ignore"):
            strays = np.abs(part) >= self.largest
        if strict:
            for i, column in enumerate(columns):
                _refuse(column, part[:, i], gaps[:, i], strays[:, i])
        if strays.any():
            numbers[:, which] = np.where(strays, np.nan, part)
        if learn:
            for column, gone, odd in zip(columns, gaps.sum(axis=0).tolist(), strays.sum(axis=0).tolist(), strict=True):
                self.gaps[column.name] += gone
                self.strays[column.name] += odd

    def clone(self) -> Layout:
        """A copy that learns by itself."""
        made = copy.copy(self)
        made.weight, made.mean, made.squares = self.weight.copy(), self.mean.copy(), self.squares.copy()
        made.categories = {name: part.clone() for name, part in self.categories.items()}
        made.last, made.gaps, made.strays = dict(self.last), dict(self.gaps), dict(self.strays)
        return made

    def _present(self, column: Column, values: Any) -> Any:
        """The values with NaN or -1 for all that stands for a missing one."""
        values = without_missing(values)
        if not column.missing:
            return values
        if isinstance(values, Coded):
            marks = [mark if isinstance(mark, str) else f"{mark:g}" for mark in column.missing]
            known = {value for value in values.values if parse_number(value, column.decimal) in column.missing}
            return drop_texts(values, {*marks, *known})
        return np.where(np.isin(values, [mark for mark in column.missing if not isinstance(mark, str)]), np.nan, values)

    def _write(
        self,
        column: Column,
        values: Any,
        hint: str,
        out: Floats,
        numbers: Floats,
        learn: bool,
        memory: float,
        zone: Any,
    ) -> Bools | None:
        """Write the features of a column; returns where its values are of another kind."""
        start, name = self.starts[column.name], column.name
        if column.kind == "category":
            self.categories[name].encode(as_codes(values, hint), out, start, learn, memory)
            return None
        if column.kind == "timestamp":
            seconds = self._seconds(column, values)
            first = self.number_of[name]
            if "gap" in column.parts:
                numbers[:, first], last = clock.since_before(seconds, self.last[name], together=not learn)
                self.last[name] = last if learn else self.last[name]
            if "since" in column.parts:
                numbers[:, first + ("gap" in column.parts)] = seconds
            circle = start + ("gap" in column.parts) + ("since" in column.parts)
            places = dict.fromkeys(("day", "week", "year"), -1)
            places.update({part: circle + 2 * i for i, part in enumerate(column.circles)})
            _core.encode_clock(clock.to_local(seconds, zone), out, places["day"], places["week"], places["year"])
            return _strange(values, seconds)
        found = self._numbers(column, values, hint)
        if column.kind == "cyclic":
            _core.encode_cycle(found, out, start, column.period)
            return _strange(values, found)
        numbers[:, self.number_of[name]] = found
        if column.kind != "mixed":
            return _strange(values, found)
        texts = as_codes(values, hint)
        codes = np.where(np.isnan(found), texts.codes, np.int32(-1)).astype(np.int32)
        first = start + 1 + column.indicator
        self.categories[name].encode(Coded(codes, texts.values), out, first, learn, memory)
        return None

    def _numbers(self, column: Column, values: Any, hint: str) -> Floats:
        """Finite numbers, NaN for what is missing or none."""
        if isinstance(values, Coded):
            if column.kind == "boolean":
                values = map_texts(values, lambda text: _truth(text))
            else:
                values = map_texts(values, lambda text: _number(text, column.decimal))
        if column.kind == "boolean":
            return np.where(np.isnan(values), np.nan, (values != 0.0).astype(np.float64))
        with np.errstate(invalid="ignore"):
            return np.ascontiguousarray(np.where(np.abs(values) < self.largest, values, np.nan))

    def _seconds(self, column: Column, values: Any) -> Floats:
        if column.format in ("s", "ms") and isinstance(values, Coded):
            values = map_texts(values, parse_number)
        seconds = clock.read_seconds(column, values)
        with np.errstate(invalid="ignore"):
            return np.where(np.abs(seconds) < 1e13, seconds, np.nan) + 0.0  # -0 and 0 are one time, in one bit pattern

    # --------------------------------------------------------------------------------------------- the state as data

    def state(self) -> dict[str, Any]:
        """What was learned, as plain data."""
        return {
            "numbers": np.stack([self.weight, self.mean, self.squares]),
            "categories": {name: part.state() for name, part in self.categories.items()},
            "last": dict(self.last),
            "gaps": dict(self.gaps),
            "strays": dict(self.strays),
        }

    def restore(self, state: Any, memory: float) -> None:
        """From `state`; data that may be forged are checked."""
        try:
            numbers = np.array(state["numbers"], dtype=np.float64).reshape(3, len(self.places))
            last = {name: float(state["last"][name]) for name in self.last}
            counts = [{name: int(state[part][name]) for name in self.starts} for part in ("gaps", "strays")]
            for name, part in self.categories.items():
                part.restore(state["categories"][name], memory)
            good = bool(np.isfinite(numbers).all()) and bool((numbers[[0, 2]] >= 0.0).all())
            good = good and bool(np.all(np.abs(numbers[1]) < self.largest))
            good = good and all(0 <= count <= MOST_ROWS for part in counts for count in part.values())
            good = good and set(state) == {"numbers", "categories", "last", "gaps", "strays"}
        except (TypeError, KeyError, ValueError, OverflowError) as error:
            if isinstance(error, ValueError) and "state_" in str(error):
                raise
            good = False
        if not good:
            raise _checks.wrong("RowEncoder", "state_", "what an encoder of these columns has learned", state)
        self.weight, self.mean, self.squares = numbers.copy()
        self.last = last
        self.gaps, self.strays = counts


def _as_among_others(column: Column, values: Any, hint: str) -> Any:
    """The values of a batch that are all dates, or all numbers, in a column of the other: as texts, which they would be
    in a batch of both. What a row is does not depend on the rows that come with it."""
    if isinstance(values, Coded):
        return values
    dates = column.kind == "timestamp" and column.format not in ("s", "ms")
    if hint == "timestamp":
        return values if dates else coded_times(values)
    return as_codes(values, hint) if dates or (column.kind == "timestamp" and hint == "boolean") else values


def _number(text: str, decimal: str) -> float:
    """A number; true and false are 1 and 0, as they are in a batch of booleans alone."""
    return float(text == "true") if text in ("true", "false") else parse_number(text, decimal)


def _truth(text: str) -> float:
    found = parse_truth(text)
    return parse_number(text) if found != found else found


def _strange(values: Any, found: Floats) -> Bools | None:
    """Where a value is there, but not one of the kind of its column."""
    present = values.codes >= 0 if isinstance(values, Coded) else ~np.isnan(values)
    strange: Bools = present & np.isnan(found)
    return strange


def _refuse(column: Column, values: Any, gaps: Bools, strays: Bools | None) -> None:
    wrong = gaps if strays is None else gaps | strays
    if not wrong.any():
        return
    row = int(np.argmax(wrong))
    what = (
        "a missing value"
        if gaps[row]
        else values.values[values.codes[row]]
        if isinstance(values, Coded)
        else values[row]
    )
    rule = f"a {column.kind} in every row of {column.name!r} (missing='fill' copes)"
    raise _checks.wrong("RowEncoder", "X", rule, _checks.Entry(str(what)[:80], row, column.name))


def is_sparse(plan: Plan) -> bool:
    """Whether rows take less than half of the memory as CSR, by an estimate: only wide texts make them so.

    >>> is_sparse(Plan([Column("note", "text", width=128)])), is_sparse(Plan([Column("note", "text", width=4096)]))
    (False, True)
    """
    if not any(column.kind == "text" for column in plan):
        return False
    one = ("category", "mixed")  # of their features, one or two are not 0
    counts = [2 if c.kind in one else min(TEXT, c.width) if c.kind == "text" else len(c.features) for c in plan]
    return 12 * sum(counts) < 0.5 * 8 * len(plan.names)  # a value has 8 bytes, its column 4


def effective_width(plan: Plan) -> int:
    """How many numbers of variance 1 the features are worth: two rows lie at a squared distance of about twice that.

    A number is scaled to variance 1; a category, a text and a circle have variances of about 1 together. A column that
    has had one value so far is worth nothing yet.
    """
    awake = [column for column in plan if column.kind not in LEFT_OUT and not column.dormant]
    return max(1, sum(len(column.parts) if column.kind == "timestamp" else 1 for column in awake))
