"""Checkpoints of a run: model, input position, length of the output and metrics, in a file replaced atomically."""

from __future__ import annotations

import contextlib
import glob
import os
import time
from typing import Any

from gossamer import store
from gossamer.cli.output import named

KIND = "gossamer checkpoint"
#: Seconds between checkpoints, unless they go by rows, and the largest share of time spent on them.
SECONDS, SHARE = 5.0, 0.03


class Checkpoint:
    """Decide when to write a checkpoint, write it and read it.

    Parameters
    ----------
    path : the file; None writes no checkpoint.
    every : rows between two checkpoints; None goes by time.
    """

    def __init__(self, path: str | None, every: int | None = None) -> None:
        self.path, self.every = path, every
        self.row = 0
        self._at = time.monotonic()
        self._pause = SECONDS

    def due(self, row: int) -> bool:
        """Whether a checkpoint is due after this row."""
        if self.path is None:
            return False
        if self.every is not None:
            return row - self.row >= self.every
        return time.monotonic() - self._at >= self._pause

    def write(self, row: int, content: dict[str, Any]) -> None:
        """Write it. A large model that takes long to write is written less often."""
        if self.path is None:
            return
        start = time.monotonic()
        with named(self.path):
            store.save({"kind": KIND, "version": 1, "row": row, **content}, self.path)
        self.row, self._at = row, time.monotonic()
        self._pause = max(SECONDS, (self._at - start) / SHARE)

    def read(self, resume: bool) -> dict[str, Any] | None:
        """The content of the file; None if there is no file, or if its run is finished and not to be resumed."""
        if self.path is None or not os.path.exists(self.path):
            return None
        found = store.load(self.path)
        if not isinstance(found, dict) or found.get("kind") != KIND:
            raise ValueError(f"{self.path} must be a checkpoint. Got another file; it stays as it is.")
        if not resume:
            if not found.get("done"):
                raise FileExistsError(f"{self.path} is the checkpoint of a run that stopped at row {found['row']:,}: "
                                      "--resume goes on from there; remove it to begin anew")  # fmt: skip
            return None
        self.row = int(found["row"])
        return found


def remove_leftovers(path: str | None) -> None:
    """Remove temporary files that a killed run has left."""
    if path is None:
        return
    folder, name = os.path.split(os.path.realpath(path))
    for left in glob.glob(os.path.join(glob.escape(folder), f".{glob.escape(name)}.????????.tmp")):
        with contextlib.suppress(OSError):
            os.unlink(left)
