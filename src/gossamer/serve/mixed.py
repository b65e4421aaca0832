"""Rows with texts, gaps and times: typed columns as a request brought them, and their bytes in the journal.

The journal has the rows, not their features: the encoder learns from them, and learns the same from the same rows, in
whichever way they are cut. A replay through the same encoder thus gives the same bytes, and a row with 80 features of
a category takes the bytes of its text. What the first rows have decided, the plan, stands in the first block: a later
version may look at rows in another way, and still replays this journal.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from gossamer import _checks
from gossamer.rows import Coded, RowEncoder, Table
from gossamer.rows.table import Values, from_objects
from gossamer.serve.limits import LARGEST_NUMBER, LONGEST_CELL

Label = float | int | str | bool
Key = int | str

#: What the bytes of a block begin with: a byte that no MessagePack has, and the version of the format.
MARK, VERSION = b"\xc1", 1
#: The kinds of a column: numbers, booleans, times (as seconds), texts, and nothing but gaps.
HINTS = {"f": "", "b": "boolean", "t": "timestamp", "s": "", "n": ""}
KINDS = {hint: kind for kind, hint in reversed(HINTS.items()) if kind in "fbt"}
#: Bytes of a value of each kind.
SIZES = {"f": 8, "b": 8, "t": 8, "s": 4, "n": 0}


class Cells(msgspec.Struct, array_like=True):
    """A column of a block: float64 with NaN for a gap, or codes (int32) into texts with -1 for a gap."""

    kind: str
    data: bytes = b""
    texts: list[str] = []

    @classmethod
    def of(cls, values: Values, hint: str = "") -> Cells:
        """From a column of a table.

        >>> Cells.of(Coded.of(["Rome", None, "Oslo", "Rome"])).texts
        ['Rome', 'Oslo']
        """
        if isinstance(values, Coded):
            if not values.values:
                return cls("n")
            return cls("s", np.ascontiguousarray(values.codes, dtype=np.int32).tobytes(), values.values)
        if np.isnan(values).all():
            return cls("n")
        return cls(KINDS[hint], np.ascontiguousarray(values, dtype=np.float64).tobytes())

    def values(self, count: int) -> Values:
        """As a column of a table."""
        if self.kind == "n":
            return Coded(np.full(count, -1, dtype=np.int32), [])
        if self.kind == "s":
            return Coded(np.frombuffer(self.data, dtype=np.int32), self.texts)
        return np.frombuffer(self.data)

    def check(self, count: int) -> None:
        """Raise unless this is a column of so many rows: what was read may be forged."""
        good = self.kind in SIZES and len(self.data) == SIZES[self.kind] * count
        if good and self.kind == "s":
            codes = array("i", self.data)
            good = min(codes) >= -1 and max(codes) < len(self.texts) == len(set(self.texts))
            good = good and all(len(text) <= LONGEST_CELL for text in self.texts)
        elif good and self.kind != "n":
            good = not self.texts and _all_fit(self.data, count)
        if not good:
            raise _checks.wrong("journal", "block", f"columns of {count} values", self.kind[:20])


def _all_fit(data: bytes, count: int) -> bool:
    """Whether numbers are gaps or within the limit; NumPy takes longer for a few."""
    if count < 16:
        return not any(abs(x) > LARGEST_NUMBER for x in array("d", data))
    return not bool((np.abs(np.frombuffer(data)) > LARGEST_NUMBER).any())


def weigh(values: Sequence[Any] | None) -> int:
    """About how many bytes numbers or texts have.

    >>> weigh([1.5, 2.0]), weigh(["one", "three"])
    (16, 24)
    """
    if not values:
        return 0
    return 8 * len(values) + sum(len(value) for value in values if type(value) is str)


class Mixed(msgspec.Struct, array_like=True):
    """Rows of typed columns, and what came with them: `rows.Block` for rows that an encoder reads.

    ``columns`` are the names of a model's columns in its first block, and ``plan`` what they become; else None.
    """

    count: int
    cells: list[Cells]
    y: list[Label] | None = None
    keys: list[Key] | None = None
    ids: list[Key] | None = None
    weights: list[float] | None = None
    columns: list[str] | None = None
    shown: bool = False
    plan: list[dict[str, Any]] | None = None

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.cells)

    def rows(self, columns: Sequence[str] | None) -> Table:
        """The table, for an encoder."""
        names = columns or [f"x{i}" for i in range(len(self.cells))]
        values = {name: cells.values(self.count) for name, cells in zip(names, self.cells, strict=True)}
        hints = {name: HINTS[c.kind] for name, c in zip(names, self.cells, strict=True) if HINTS[c.kind]}
        return Table(self.count, values, hints)

    def size(self) -> int:
        """About how many bytes it has."""
        cells = sum(len(one.data) + sum(map(len, one.texts)) for one in self.cells)
        return cells + weigh(self.y) + weigh(self.keys) + weigh(self.ids) + weigh(self.weights)

    def row(self, i: int) -> bytes:
        """One row, as the bytes of a block."""
        cells = []
        for one in self.cells:
            size = SIZES[one.kind]
            part = one.data[i * size : (i + 1) * size]
            if one.kind == "s":
                code = int(np.frombuffer(part, dtype=np.int32)[0])
                cells.append(Cells("n") if code < 0 else Cells("s", b"\0\0\0\0", [one.texts[code]]))
            else:
                gap = one.kind == "n" or bool(np.isnan(np.frombuffer(part)[0]))
                cells.append(Cells("n") if gap else Cells(one.kind, part))
        return encode_mixed(Mixed(1, cells))


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Mixed).decode


def encode_mixed(block: Mixed) -> bytes:
    """The bytes of a block."""
    return MARK + bytes([VERSION]) + _encode(block)


def decode_mixed(data: bytes) -> Mixed:
    """The block of these bytes, checked; ValueError for what is none.

    >>> block = Mixed(1, [Cells("n"), Cells("f", np.ones(1).tobytes())], y=["yes"])
    >>> decode_mixed(encode_mixed(block)) == block
    True
    """
    if data[:1] != MARK or len(data) < 2 or data[1] != VERSION:
        raise _checks.wrong("journal", "block", f"of version {VERSION}", data[:2])
    try:
        block = _decode(memoryview(data)[2:])
    except (msgspec.MsgspecError, TypeError) as error:  # a value that cannot be hashed is a TypeError of older versions
        raise _checks.wrong("journal", "block", "rows of typed columns", str(error)[:200]) from None
    if block.count < 1 or not block.cells:
        raise _checks.wrong("journal", "block", "rows of typed columns", block.count)
    for one in block.cells:
        one.check(block.count)
    for part in (block.y, block.keys, block.ids, block.weights):
        if part is not None and len(part) != block.count:
            raise _checks.wrong("journal", "block", f"{block.count} of everything that comes with rows", len(part))
    return block


def plain_rows(table: Table) -> list[list[Any]]:
    """Rows as plain data, None for a gap: as JSON brings them.

    >>> plain_rows(Table(2, {"a": np.array([1.5, np.nan]), "b": Coded.of([None, "x"])}))
    [[1.5, None], [None, 'x']]
    """
    columns = []
    for name, values in table.columns.items():
        if isinstance(values, Coded):
            columns.append([None if code < 0 else values.values[code] for code in values.codes.tolist()])
        else:
            plain: list[Any] = [None if value != value else value for value in values.tolist()]
            truth = table.hints.get(name) == "boolean"
            columns.append([value if value is None else bool(value) for value in plain] if truth else plain)
    return [list(row) for row in zip(*columns, strict=True)]


# ------------------------------------------------------------------------------------------------------ joining blocks


def join_mixed(blocks: Sequence[Mixed]) -> list[Mixed]:
    """Blocks one after the other, joined as long as each column stays of one kind.

    A column of numbers and one of texts are not joined: the numbers would have to become texts, and a text that looks
    like a number is not always read as one. So a block means the same alone and among others.
    """
    runs: list[tuple[list[str], list[Mixed]]] = []
    for block in blocks:
        kinds = [cells.kind for cells in block.cells]
        both = [b if a == "n" else a for a, b in zip(runs[-1][0], kinds, strict=True)] if runs else []
        if runs and all(kind in ("n", known) for kind, known in zip(kinds, both, strict=True)):
            runs[-1][1].append(block)
            runs[-1][0][:] = both
        else:
            runs.append((kinds, [block]))
    return [_join(kinds, found) for kinds, found in runs]


def join_lists(blocks: Sequence[Any]) -> tuple[Any, Any, Any]:
    """The targets, the keys and the weights of several blocks, one after the other; None where no block has them."""

    def chain(name: str) -> Any:
        return None if getattr(blocks[0], name) is None else [v for block in blocks for v in getattr(block, name)]

    weights = None
    if any(block.weights is not None for block in blocks):
        weights = [w for block in blocks for w in block.weights or [1.0] * block.count]
    return chain("y"), chain("keys"), weights


def _join(kinds: Sequence[str], blocks: Sequence[Mixed]) -> Mixed:
    if len(blocks) == 1:
        return blocks[0]
    y, keys, weights = join_lists(blocks)
    counts = [block.count for block in blocks]
    cells = [_join_cells(kind, [block.cells[i] for block in blocks], counts) for i, kind in enumerate(kinds)]
    return Mixed(sum(counts), cells, y, keys, None, weights)


def _join_cells(kind: str, parts: Sequence[Cells], counts: Sequence[int]) -> Cells:
    if kind == "n":
        return Cells("n")
    if kind != "s":
        gap = np.full(max(counts), np.nan).tobytes()
        return Cells(kind, b"".join([p.data or gap[: 8 * count] for p, count in zip(parts, counts, strict=True)]))
    places: dict[str, int] = {}
    pieces = []
    for part, count in zip(parts, counts, strict=True):
        if part.kind == "n":
            pieces.append(np.full(count, -1, dtype=np.int32))
            continue
        new = [places.setdefault(text, len(places)) for text in part.texts]
        pieces.append(np.array([*new, -1], dtype=np.int32)[np.frombuffer(part.data, dtype=np.int32)])
    return Cells("s", np.concatenate(pieces).tobytes(), list(places))


# -------------------------------------------------------------------------------------------------------- reading rows


def find_columns(rows: Sequence[Any], left_out: Sequence[str | None]) -> list[str]:
    """The names of the columns of first rows, in the order of their coming."""
    if not isinstance(rows[0], dict):
        return [f"x{i}" for i in range(len(rows[0]))]
    names: dict[str, None] = {}
    for row in rows:
        if isinstance(row, dict):
            names.update(dict.fromkeys(row))
    return [name for name in names if name not in left_out]


def read_cells(rows: Sequence[Any], columns: Sequence[str], extras: Sequence[str]) -> list[Cells]:
    """The typed columns of rows, validated; a name that a row does not have is a gap."""
    width, known = len(columns), {*columns, *extras}
    for i, row in enumerate(rows):
        if not isinstance(row, dict):
            if len(row) != width:
                raise _checks.wrong("request", "rows", f"of {width} values", f"{len(row)} in row {i}")
        elif not row.keys() <= known or row.keys().isdisjoint(columns):
            unknown = [name[:80] for name in row if name not in known]
            got = f"row {i} with {unknown[:5]}" if unknown else f"row {i} with none of them"
            raise _checks.wrong("request", "rows", f"of the columns {list(columns[:20])}", got)
    made = []
    for place, name in enumerate(columns):
        values = [row.get(name) if isinstance(row, dict) else row[place] for row in rows]
        made.append(check_cells(*from_objects(values, name, "request"), name))
    return made


def check_cells(values: Values, hint: str, name: str) -> Cells:
    """A column within the limits, as cells."""
    if isinstance(values, Coded):
        if values.values and max(map(len, values.values)) > LONGEST_CELL:
            got = f"{max(map(len, values.values))} in column {name!r:.80}"
            raise _checks.wrong("request", "rows", f"texts of at most {LONGEST_CELL} characters", got)
    else:
        good = np.isnan(values) | (np.abs(values) <= LARGEST_NUMBER)
        if not good.all():
            row = int(np.argmin(good))
            got = f"{values[row]:g} in row {row}, column {name!r:.80}"
            raise _checks.wrong("request", "rows", f"numbers up to {LARGEST_NUMBER:g}", got)
    return Cells.of(values, hint)


def has_more_than_numbers(rows: Sequence[Any], extras: Sequence[str]) -> bool:
    """Whether a text or a gap is among the cells of rows: then an encoder reads them."""
    for row in rows:
        if isinstance(row, dict):
            if any((value is None or type(value) is str) and name not in extras for name, value in row.items()):
                return True
        elif any(value is None or type(value) is str for value in row):
            return True
    return False


# -------------------------------------------------------------------------------------------------------- the encoder


def settle(made: RowEncoder, block: Mixed, columns: Sequence[str]) -> RowEncoder:
    """Decide what the columns are, by the block's plan, or by its rows; the plan then stands in the block."""
    given = made.columns
    if block.plan is None:
        block.plan = made.settle(block.rows(columns)).plan_.to_dicts()
    made.columns = block.plan
    try:
        made.settle()
    finally:
        made.columns = given
    if [column.name for column in made.plan_] != list(columns):
        raise _checks.wrong("journal", "plan", f"of the columns {list(columns[:20])}", len(made.plan_))
    return made
