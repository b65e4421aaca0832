"""Progress of a command: a table of errors, a line each time the rows have doubled, and a progress bar."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from typing import Any

from gossamer.evaluate import Record, Trace
from gossamer.evaluate.trace import table_head, table_line

WIDTH = 30


class Table:
    """The progressive table, line by line; on standard error where predictions go to standard output."""

    def __init__(self, bar: Bar, to: Any = None, quiet: bool = False) -> None:
        self._bar, self._to, self._quiet = bar, to or sys.stdout, quiet
        self._next, self._last = 0, 0

    def add(self, record: Record) -> None:
        """Add a record; it is shown if there are twice as many rows as in the line before."""
        self._bar.note(record)
        if record.row >= self._next:
            self._next = 2 * record.row
            self._show(record)

    def finish(self, trace: Trace) -> None:
        """Print the last line, if it is not there yet."""
        if trace.records and trace.records[-1].row > self._last:
            self._show(trace.records[-1])

    def resumed(self, trace: Trace) -> None:
        """Resume after the records of an earlier part."""
        for record in trace.records:
            self._next = 2 * record.row if record.row >= self._next else self._next

    def _show(self, record: Record) -> None:
        if not self._quiet:
            self._bar.clear()
            if not self._last:
                self._print(table_head(list(record.total)))
            self._print(table_line(record))
        self._last = record.row

    def _print(self, line: str) -> None:
        print(line, file=self._to, flush=True)


class Bar:
    """A progress bar: rows, rows per second, the error so far, the share of a file; on a terminal only."""

    def __init__(self, path: str, on: bool = True) -> None:
        self._to = sys.stderr
        self._on = on and self._to.isatty()
        self._size = os.path.getsize(path) if os.path.isfile(path) else None
        self._start = self._shown = time.monotonic()
        self._first, self._words, self._drawn = 0, "", False

    def begin(self, row: int) -> None:
        """The work starts after this row."""
        self._first, self._start = row, time.monotonic()

    def note(self, record: Record) -> None:
        """The metrics so far."""
        name = next(iter(record.total), None)
        self._words = "" if name is None else f"   {name} {record.total[name]:.4f}"

    def update(self, row: int, position: Mapping[str, Any]) -> None:
        """Draw, ten times a second at most."""
        now = time.monotonic()
        if not self._on or now - self._shown < 0.1:
            return
        self._shown, self._drawn = now, True
        done = position.get("at")
        offset = done.get("offset") if isinstance(done, Mapping) else None
        part = min(1.0, offset / self._size) if offset is not None and self._size else None
        bar = "" if part is None else f"[{'#' * int(WIDTH * part):<{WIDTH}}] {part:4.0%}   "
        speed = (row - self._first) / max(now - self._start, 1e-9)
        self._to.write(f"\r\x1b[K{bar}{row:,} rows   {speed:,.0f} rows/s{self._words}")
        self._to.flush()

    def clear(self) -> None:
        """Clear the bar, for a line of text."""
        if self._drawn:
            self._to.write("\r\x1b[K")
            self._to.flush()
            self._drawn = False
