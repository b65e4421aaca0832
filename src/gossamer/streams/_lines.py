"""Formats with a row per line, and JSON lines."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from gossamer.streams._chunk import BadRowError, Block, Options
from gossamer.streams._csv import BOM, LONGEST
from gossamer.streams._find import check_width, repeated
from gossamer.streams._memory import sampled, typed_block, without
from gossamer.streams._schema import SAMPLE, SAMPLE_CELLS, Sampled, Setting
from gossamer.streams._source import PIECE, Source
from gossamer.streams._stream import Stream

#: The most bytes of a chunk of lines: as Python objects they take many times as much.
TEXT = 1 << 21
#: Longer JSON texts are counted before they are parsed: a value of two bytes becomes an object of seventy.
LARGE = 1 << 20
WIDER = Setting("max_features=", "max_features")


class LineStream(Stream):
    """A stream with a row per line; blank lines are skipped."""

    def __init__(self, source: Source, options: Options) -> None:
        self._source, self.name = source, source.name
        self._buffer, self._used, self._final, self._line = b"", 0, False, 1
        self._held: list[tuple[int, int, bytes]] = []
        self._given: list[tuple[int, int, bytes]] = []
        self._failed: ValueError | None = None
        super().__init__(options)

    def _begin(self, at: Any) -> None:
        if at is None:
            if self._source.peek(3) == BOM:
                self._source.read(3)
        else:
            self._source.skip(at)
            self._line = int(at["line"])

    def _take(self, rows: int, wait: bool = False) -> list[tuple[int, int, bytes]]:
        """The next lines that are not blank, with offsets and numbers; the next call raises an error that follows them.

        From a pipe, the lines that have arrived, unless ``wait``.
        """
        taken, self._held = self._held[:rows], self._held[rows:]
        size = 0
        while len(taken) < rows and size < TEXT and self._failed is None:
            end = self._buffer.find(b"\n", self._used)
            if end < 0 and not self._final:
                if taken and self._source.live and not wait:
                    break
                try:
                    self._more()
                except ValueError as error:
                    self._failed = error
                continue
            if end < 0 and self._used == len(self._buffer):
                break
            end = len(self._buffer) if end < 0 else end + 1
            text = self._buffer[self._used : end]
            if not text.isspace():
                taken.append((self._offset(), self._line, text))
                size += len(text)
            self._used, self._line = end, self._line + 1
        return taken

    def _more(self) -> None:
        left = len(self._buffer) - self._used
        if left > LONGEST:
            raise self.bad(self._line, None, f"shorter than {LONGEST} bytes", "more")
        data, self._final = self._source.piece(min(max(PIECE, left), LONGEST + PIECE - left), left)
        self._buffer, self._used = self._buffer[self._used :] + data, 0

    def _offset(self) -> int:
        return self._source.offset - len(self._buffer) + self._used

    def _lines(self, rows: int) -> tuple[list[bytes], Any, Any]:
        """Texts with their starts and line numbers, and the start and number of the next line."""
        taken = self._given = self._take(rows)
        if not taken and self._failed is not None:
            raise self._failed
        after = self._held[0][:2] if self._held else (self._offset(), self._line)
        starts = np.array([start for start, _, _ in taken] + [after[0]], dtype=np.int64)
        lines = np.array([line for _, line, _ in taken] + [after[1]], dtype=np.int64)
        return [text for _, _, text in taken], starts, lines

    def _pass_over(self, start: int, line: int) -> bool:
        later = [place for place, _, _ in self._given].index(start) + 1
        self._held = self._given[later:] + self._held
        return True

    def _first_lines(self) -> list[bytes]:
        self._held = self._take(SAMPLE, wait=True)
        if not self._held:
            raise self._failed or self._empty()
        return [text for _, _, text in self._held]

    def _mark(self, start: int, line: int) -> Any:
        return {**self._source.mark(start), "line": line}

    def _now(self) -> tuple[int, int]:
        return self._held[0][:2] if self._held else (self._offset(), self._line)

    def close(self) -> None:
        self._source.close()


class JSONStream(LineStream):
    """Rows of a JSON lines file, an object with plain values per line; see `open_stream`."""

    format = "jsonl"

    def _begin(self, at: Any) -> None:
        super()._begin(at)
        self._late: dict[str, None] = {}
        self._columns: list[str] = [] if at is None else list(at["columns"])

    def _mark(self, start: int, line: int) -> Any:
        return {**super()._mark(start, line), "columns": self._columns}

    def _sample(self) -> dict[str, Sampled]:
        texts = self._first_lines()
        lines = [line for _, line, _ in self._held]
        rows: list[dict[str, Any]] = []
        columns: dict[str, None] = {}
        for i, text in enumerate(texts):
            try:
                row = _object(text, self._options.max_features)
            except ValueError as error:
                if not rows:
                    raise self._broken(1, lines[i], error) from None
                break  # the rows before it come first
            if rows and len(columns.keys() | row.keys()) * (len(rows) + 1) > SAMPLE_CELLS:
                break  # rows of few of the columns each: they are looked at as full ones
            rows.append(row)
            columns.update(dict.fromkeys(row))
            check_width(len(columns) - 1, self._options.max_features)  # one may be the target
        self._columns = list(columns)

        def fail(row: int, column: str, rule: str, got: object) -> ValueError:
            return self.bad(row, column, rule, got, lines[row - 1])

        def first(name: str) -> Any:
            return without([row.get(name) for row in rows], self._options)

        cope = self._options.missing == "fill"
        return {name: sampled(name, first(name), fail, cope) for name in self._columns}

    def _broken(self, row: int, line: int, error: ValueError) -> ValueError:
        return broken(f"{self.name}, row {row} (line {line}): must be a JSON object", error)

    def _read(self, rows: int) -> Block | None:
        texts, starts, lines = self._lines(rows)
        if not texts:
            return None
        known = set(self._columns)
        objects: list[dict[str, Any]] = []
        error = None
        for text in texts:
            number, line = self._row + len(objects) + 1, int(lines[len(objects)])
            try:
                row = _object(text, self._options.max_features)
            except ValueError as problem:
                error = self._broken(number, line, problem)
                break
            if not row.keys() <= known and self._options.missing == "fill":
                for new in sorted(row.keys() - known)[:10]:
                    self._late.setdefault(new, None)
            elif not row.keys() <= known:
                new = min(row.keys() - known)
                error = self.bad(number, new, "one of the columns of the first rows", "a new one", line)
                break
            objects.append(row)
        count = len(objects)
        columns = {name: [row.get(name) for row in objects] for name in self.kinds}
        block = typed_block(self, columns, self.kinds, starts[: count + 1], lines[: count + 1])
        if block.error is None:
            block.error = error
        return block


def broken(rule: str, error: ValueError) -> BadRowError:
    """The error for a row that is not of its format, with what its parser says."""
    pieces = error.args if isinstance(error, BadRowError) else [str(error)[:200]]
    return BadRowError(f"{rule}. Got an error: ", *pieces)


def _object(text: bytes, most: int) -> dict[str, Any]:
    """One JSON object; a ValueError for anything else, and for more than ``most`` values and a target."""
    if len(text) > LARGE and _values(text) > most + 1:
        raise BadRowError(f"it has more than {most + 1} values (", WIDER, " allows more)")
    try:
        value = DECODER.decode(text.decode())
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError(f"it is a {type(value).__name__}")
    if not value:
        raise ValueError("it has no columns")
    return value


def _values(text: bytes) -> int:
    """A lower bound on the number of values in a JSON text: commas and opening brackets outside of strings.

    >>> _values(b'{"a": 1, "b,": "[,"}')
    2
    """
    plain = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    count, inside = 0, 0
    for start in range(0, len(plain), LARGE):
        part = np.frombuffer(plain, np.uint8, min(LARGE, len(plain) - start), start)
        quotes = np.add.accumulate(part == 34, dtype=np.uint8) + np.uint8(inside)  # odd inside of a string
        marks = (part == 44) | (part == 91) | (part == 123)
        count += int(np.count_nonzero(marks & (quotes & 1 == 0)))
        inside = int(quotes[-1]) & 1
    return count


def _different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        raise ValueError(f"column {(repeated([name for name, _ in pairs]) or '')[:80]!r} comes more than once")
    return row


DECODER = json.JSONDecoder(object_pairs_hook=_different)
