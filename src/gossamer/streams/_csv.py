"""CSV: parsed by the compiled core, chunk by chunk. Any delimiter, quotes, line ends and blank lines."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer.rows import Coded
from gossamer.rows.parse import parse_number
from gossamer.rows.table import MISSING, Values, unique_names
from gossamer.streams._chunk import Block, Options
from gossamer.streams._find import check_width, is_number
from gossamer.streams._schema import SAMPLE, SAMPLE_CELLS, Column, Sampled
from gossamer.streams._source import HEAD, PIECE, Source
from gossamer.streams._stream import Stream

#: A record may not be longer than this, nor the text of a chunk much longer: a quote that is never closed ends here.
LONGEST = 1 << 24
DELIMITERS = ",;\t|"
BOM = b"\xef\xbb\xbf"


class CSVStream(Stream):
    """Rows of a CSV file; see `open_stream`."""

    format = "csv"

    def __init__(
        self, source: Source, options: Options, delimiter: str | None = None, header: bool | None = None,
        decimal: str | None = None,
    ) -> None:  # fmt: skip
        self._source, self.name = source, source.name
        self._delimiter, self._header, self._decimal = delimiter, header, decimal or "."
        self._guesses = decimal is None
        # the missing values, as texts and as numbers
        self._missing, self._missing_numbers = [*MISSING, *options.na_texts], options.na_numbers
        if header is not None:
            _checks.one_of("open_stream", "header", header, [True, False])
        self._buffer, self._used, self._final = b"", 0, False
        self._line, self._need = 1, 1 << 16
        super().__init__(options)

    def _begin(self, at: Any) -> None:
        if at is None:
            self._header_and_names()
            return
        self._source.skip(at)
        self._columns, self._delimiter, self._line = list(at["columns"]), str(at["delimiter"]), int(at["line"])
        self._decimal = str(at.get("decimal", self._decimal)) if self._guesses else self._decimal

    def _header_and_names(self) -> None:
        if self._source.peek(3) == BOM:
            self._source.read(3)
        asked = HEAD  # a pipe may have only the first line so far
        while b"\n" not in (start := self._source.peek(asked)).lstrip() and len(start) == asked < PIECE:
            asked *= 2
        if not start.strip():
            raise self._empty()
        if self._delimiter is None:
            self._delimiter = _delimiter(start, self._decimal)
        first, end, line = self._first_record()
        numeric = any(is_number(text, self._decimal) for text in first)
        has_header = not numeric if self._header is None else self._header
        self._columns = unique_names(first if has_header else [""] * len(first))
        if has_header and self._columns != first:
            changed = [f"{new!r} for {old[:40]!r}" for old, new in zip(first, self._columns, strict=True) if old != new]
            self.notes.append(f"header: names that are empty or repeated get others: {', '.join(changed[:10])}")
        if has_header:
            self._used += end
            self._line += line

    def _first_record(self) -> tuple[list[str], int, int]:
        """The fields of the first record, where it ends, and its lines."""
        fields = 1
        while True:
            parsed = self._parse([_core.CSV_TEXT - i for i in range(fields)], 0, fields, 1, missing=[])
            if parsed["error"] in ("too_few", "too_many"):
                fields = parsed["fields"]
                check_width(fields - 1, self._options.max_features)  # one may be the target
            elif parsed["error"]:
                raise self._parse_error(parsed, 1, [f"c{i + 1}" for i in range(fields)])
            elif len(parsed["y"]):
                texts = [self._decode(values[0]) for _, values in parsed["texts"]]
                return texts, int(parsed["starts"][1]), int(parsed["lines"][1])
            elif not self._more():
                raise self._empty()

    def _sample(self) -> dict[str, Sampled]:
        slots = [_core.CSV_TEXT - i for i in range(len(self._columns))]
        rows = min(SAMPLE, max(1, SAMPLE_CELLS // len(slots)))
        while True:
            parsed = self._parse(slots, 0, len(slots), rows)
            enough = len(parsed["y"]) == rows or (len(parsed["y"]) and len(self._buffer) > LONGEST)
            try:
                if enough or parsed["error"] or not self._more():
                    break
            except ValueError:  # damaged data: the rows before it come first
                if not len(parsed["y"]):
                    raise
                break
        if not len(parsed["y"]):
            line = self._line + int(parsed["lines"][-1])
            raise self._parse_error(parsed, 1, self._columns, line) if parsed["error"] else self._empty()
        if self._guesses and self._delimiter != "," and _has_commas(parsed["texts"]):
            self._decimal = ","
            self.notes.append("numbers have decimal commas")
        sample, texts = dict[str, Sampled](), parsed["texts"][::-1]
        parsed.clear()
        for name in self._columns:
            codes, values = texts.pop()  # free the bytes of a column once its texts are made: there may be many
            decoded = [value.decode(errors="replace") for value in values]
            if self._missing_numbers:  # -999.0 is -999
                marks = [parse_number(text, self._decimal) in self._missing_numbers for text in decoded]
                codes = np.append(np.where(marks, -1, np.arange(len(decoded))), -1).astype(np.int32)[codes]
            sample[name] = Sampled(Coded(codes, decoded), None, self._decimal)
        return sample

    def _settle(self) -> None:
        """Where each field goes: numbers straight into the matrix, the rest as coded texts."""
        schema, kinds = self.schema, {column.name: column for column in self.schema.features}
        self._slots, self._texts, self._numbers = [], list[Column](), list[str]()
        for name in self._columns:
            column = kinds.get(name)
            if column is None and schema.target is not None and name == schema.target.name:
                column = schema.target
            if column is None:
                self._slots.append(_core.CSV_IGNORED)
            elif column.kind in ("number", "integer") and column is schema.target:
                self._slots.append(_core.CSV_TARGET)
            elif column.kind in ("number", "integer"):
                self._slots.append(len(self._numbers))
                self._numbers.append(name)
            else:
                self._slots.append(_core.CSV_TEXT - len(self._texts))
                self._texts.append(column)

    def _parse(self, slots: list[int], width: int, texts: int, rows: int, missing: Any = None) -> dict[str, Any]:
        missing = self._missing if missing is None else missing
        return _core.parse_csv(
            self._buffer, self._used, self._final, self._delimiter or ",", slots, width, texts, missing, rows,
            self._decimal, self._missing_numbers, self._options.missing == "fill",
        )  # fmt: skip

    def _more(self) -> bool:
        """Read on; False at the end of the data."""
        if self._final:
            return False
        left = len(self._buffer) - self._used
        if left > LONGEST:
            rule = f"shorter than {LONGEST} bytes (is a quote not closed?)"
            raise self.bad(self._row + 1, None, rule, "more", self._line)
        # at most the longest record: a larger buffer would only take memory
        data, self._final = self._source.piece(min(max(self._need, left), LONGEST + (1 << 16) - left), left)
        self._buffer, self._used = self._buffer[self._used :] + data, 0
        return True

    def _read(self, rows: int) -> Block | None:
        blocks: list[Block] = []
        count, size = 0, 0
        while True:
            block, taken = self._piece(rows - count, self._row + count)
            if block.rows or block.error:
                blocks.append(block)
            count, size = count + block.rows, size + taken
            # a bad row is skipped in the buffer: then one piece at a time
            alone = self._source.live or self._options.bad_rows == "skip"
            if count == rows or size >= LONGEST or block.error or (count and alone):
                break
            try:
                if not self._more():
                    break
            except ValueError as error:
                if not blocks:
                    raise
                blocks[-1].error = error  # after the rows that are there
                break
        if count:  # the next time, read as much at once as this chunk took
            self._need = min(max(size + size // 8, 1 << 16), LONGEST)
        return _joined(blocks) if blocks else None

    def _pass_over(self, start: int, line: int) -> bool:
        self._used, self._line = start - (self._source.offset - len(self._buffer)), line
        fields = len(self._columns)
        while True:
            parsed = self._parse([_core.CSV_TEXT - i for i in range(fields)], 0, fields, 1, missing=[])
            if len(parsed["y"]):
                self._used += int(parsed["starts"][1])
                self._line += int(parsed["lines"][1])
                return True
            if parsed["error"] in ("too_few", "too_many") and parsed["fields"] != fields:
                fields = parsed["fields"]
                continue
            end = self._buffer.find(b"\n", self._used) if parsed["error"] == "after_quote" else -1
            if end >= 0:
                self._used, self._line = end + 1, self._line + 1
                return True
            try:
                if parsed["error"] == "open_quote" or not self._more():
                    return False
            except ValueError:
                return False

    def _piece(self, rows: int, before: int) -> tuple[Block, int]:
        """Parse the buffer after the row number ``before``; returns the block and the number of bytes consumed."""
        parsed = self._parse(self._slots, len(self._numbers), len(self._texts), rows)
        count, offset = len(parsed["y"]), self._source.offset - len(self._buffer) + self._used
        lines = parsed["lines"] + self._line
        values: dict[str, Values] = {name: parsed["X"][:, i] for i, name in enumerate(self._numbers)}
        for column, text in parsed["strays"]:
            self._count_stray(self._columns[column], text.decode(errors="replace"))
        wrong: list[tuple[int, ValueError]] = []
        for column, (codes, texts) in zip(self._texts, parsed["texts"], strict=True):
            values[column.name] = self._coded(codes, texts, column.name, lines, before, wrong)
        target = self.schema.target
        if target is not None and target.kind in ("number", "integer"):
            values[target.name] = parsed["y"]
        row, line = before + count + 1, int(lines[-1])
        error = self._parse_error(parsed, row, self._columns, line) if parsed["error"] else None
        taken = int(parsed["starts"][-1])
        self._used += taken
        self._line = line
        block = Block(count, values, parsed["starts"] + offset, lines, None, error)
        return (block.cut(*min(wrong, key=lambda each: each[0])) if wrong else block), taken

    def _coded(
        self, codes: Any, values: list[bytes], name: str, lines: Any, before: int, wrong: list[tuple[int, ValueError]]
    ) -> Coded:
        texts = []
        for i, value in enumerate(values):
            try:
                texts.append(value.decode())
            except UnicodeDecodeError:
                texts.append("")
                rows = np.flatnonzero(codes == i)
                if len(rows):  # else only the row that was cut off has it
                    row = int(rows[0])
                    wrong.append((row, self.bad(before + row + 1, name, "UTF-8", value, int(lines[row]))))
        return Coded(codes, texts)

    def _decode(self, value: bytes) -> str:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ValueError(f"{self.name}, header: must be UTF-8. Got {value[:40]!r} instead.") from None

    def _parse_error(self, parsed: dict[str, Any], row: int, columns: list[str], line: int = 1) -> ValueError:
        """The parser's error in words."""
        what, fields, width = parsed["error"], parsed["fields"], len(columns)
        column = columns[min(parsed["column"], width - 1)]
        text = parsed["text"].decode(errors="replace")
        if what == "too_many":
            return self.bad(row, None, f"of {width} fields, as the columns", f"{fields} fields", line)
        if what == "too_few":
            return self.bad(row, column, f"there: {width} fields, as the columns", f"{fields} fields", line)
        rules = {
            "not_number": "a number, as in the rows before",
            "not_finite": "finite",
            "after_quote": "followed by a delimiter or a line end after its closing quote",
            "open_quote": "closed: its quote is open to the end of the data",
        }
        return self.bad(row, column, rules[what], text or "something else", line)

    def _mark(self, start: int, line: int) -> Any:
        return {**self._source.mark(start), "columns": self._columns, "delimiter": self._delimiter, "line": line,
                "decimal": self._decimal}  # fmt: skip

    def _now(self) -> tuple[int, int]:
        return self._source.offset - len(self._buffer) + self._used, self._line

    def close(self) -> None:
        self._source.close()


def check_delimiter(delimiter: Any, decimal: str) -> None:
    """Validate a delimiter: a character that can be part of a number, a name or a line end is refused."""
    good = isinstance(delimiter, str) and len(delimiter) == 1 and "\0" < delimiter <= "\x7f"
    if not good or delimiter.isalnum() or delimiter in '"\r\n.+-' or delimiter == decimal:
        rule = "one ASCII character, no letter, digit, quote, line end or sign of a number (. + - and the decimal sign)"
        raise _checks.wrong("open_stream", "delimiter", rule, delimiter)


def _has_commas(texts: list[Any]) -> bool:
    """Whether a column of the first rows has decimal commas, and none has decimal points."""
    commas = points = 0
    for _, values in texts:
        some = [value.decode(errors="replace") for value in values[:50]]
        if some and all(is_number(text, ",") for text in some) and not all(is_number(text) for text in some):
            commas += 1
        elif any("." in text for text in some) and all(is_number(text) for text in some):
            points += 1
    return commas > points == 0


def _delimiter(start: bytes, decimal: str) -> str:
    """The most frequent delimiter of the first line, outside quotes; the first allowed one if there is none."""
    line = start.lstrip(b"\r\n").split(b"\n", 1)[0].split(b"\r", 1)[0].decode(errors="replace")
    outside = "".join(line.split('"')[::2])
    return max(DELIMITERS.replace(decimal, ""), key=outside.count)


def _joined(blocks: list[Block]) -> Block:
    if len(blocks) == 1:
        return blocks[0]
    values: dict[str, Values] = {}
    for name, first in blocks[0].values.items():
        parts: list[Any] = [block.values[name] for block in blocks]
        values[name] = _join_texts(parts) if isinstance(first, Coded) else np.concatenate(parts)
    starts = np.concatenate([block.starts[: block.rows] for block in blocks] + [blocks[-1].starts[-1:]])
    lines = [block.lines for block in blocks if block.lines is not None]
    return Block(
        sum(block.rows for block in blocks), values, starts,
        np.concatenate([part[:-1] for part in lines] + [lines[-1][-1:]]),
        None, blocks[-1].error,
    )  # fmt: skip


def _join_texts(parts: list[Any]) -> Coded:
    places: dict[str, int] = {}
    codes = []
    for part in parts:
        numbers = [places.setdefault(value, len(places)) for value in part.values]
        codes.append(np.array([*numbers, -1], dtype=np.int32)[part.codes])
    return Coded(np.concatenate(codes), list(places))
