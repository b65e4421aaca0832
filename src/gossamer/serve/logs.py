"""The log: JSON lines, with what happened and never what was in a row."""

from __future__ import annotations

import json
import sys
import time
import traceback
from typing import Any


class Log:
    """Writes a line for each event, with ``requests`` one for each request. Rows, labels and tokens are left out."""

    def __init__(self, requests: bool = False, quiet: bool = False, out: Any = None) -> None:
        self.requests, self.quiet, self.out = requests, quiet, out

    def write(self, event: str, **facts: Any) -> None:
        """A line with these facts."""
        if not self.quiet:
            line = json.dumps({"time": round(time.time(), 3), "event": event, **facts}, default=str)
            print(line, file=self.out or sys.stderr, flush=True)

    def error(self, route: str, error: Exception) -> None:
        """The line for an error that nobody expected: where it was raised; its text may hold a row, and is left out."""
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        where = [f"{frame.filename.rpartition('gossamer/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        self.write("error", route=route, type=type(error).__name__, where=where)
