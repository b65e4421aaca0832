"""Where waiting rows are: in memory, or in a file of SQLite."""

from __future__ import annotations

import json
import sqlite3
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gossamer import _checks
from gossamer._typing import Array


class Row(NamedTuple):
    """A row that was shown: its id, when, its features, the prediction, and the key of its model or None."""

    id: Any
    time: float
    x: Array
    prediction: Any
    key: Any


class HeldInMemory:
    """Rows in one array, whose slots are used again; ids in the order of their showing."""

    def __init__(self) -> None:
        self._slots: dict[Any, int] = {}
        self._free: list[int] = []
        self._rows: Array = np.zeros((0, 0))
        self._more: list[tuple[float, Any, Any]] = []  # time, prediction, key of each slot
        self._fates: dict[Any, tuple[int, int]] = {}  # what became of ids that are gone, and their number among these
        self._gone = 0

    def __len__(self) -> int:
        return len(self._slots)

    def check(self, X: Any) -> None:
        """Raise unless the rows fit those that are here."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f":
            raise _checks.wrong("Pending", "X", "a matrix of numbers, where labels come later", type(X).__name__)
        if self._slots and X.shape[1] != self._rows.shape[1]:
            raise _checks.wrong("Pending", "X", f"of {self._rows.shape[1]} features, as the rows that wait", X.shape)
        if not self._slots:
            self._rows, self._more, self._free = np.zeros((0, X.shape[1]), dtype=X.dtype), [], []

    def put(self, row: Row, event: int) -> bool:
        """Add a row; whether one of its id was here already."""
        again = self._slots.pop(row.id, None)
        slot = again
        if slot is None:
            self._fates.pop(row.id, None)
            if not self._free:
                self._grow()
            slot = self._free.pop()
        self._slots[row.id] = slot
        self._rows[slot] = row.x
        self._more[slot] = row.time, row.prediction, row.key
        return again is not None

    def _grow(self) -> None:
        size = len(self._rows)
        new = max(64, size // 2)
        self._rows = np.concatenate([self._rows, np.zeros((new, self._rows.shape[1]), dtype=self._rows.dtype)])
        self._more += [(0.0, None, None)] * new
        self._free += range(size + new - 1, size - 1, -1)

    def get(self, name: Any) -> Row | None:
        """The row of an id."""
        slot = self._slots.get(name)
        if slot is None:
            return None
        time, prediction, key = self._more[slot]
        return Row(name, time, self._rows[slot], prediction, key)

    def gather(self, rows: list[Row]) -> Array:
        """The features of rows that are here."""
        return np.asarray(self._rows[[self._slots[row.id] for row in rows]])

    def fate(self, name: Any, limit: int) -> int | None:
        """What became of the row of an id, if it is one of the last ``limit`` that are gone."""
        found = self._fates.get(name)
        return None if found is None or found[1] <= self._gone - limit else found[0]

    def remove(self, names: list[Any], fate: int, event: int) -> None:
        """Take rows away."""
        for name in names:
            slot = self._slots.pop(name)
            self._more[slot] = 0.0, None, None
            self._free.append(slot)
            self._gone += 1
            self._fates.pop(name, None)
            self._fates[name] = fate, self._gone

    def expire(self, before: float, fate: int, event: int, dry: bool) -> int:
        """Take away the rows that were shown before a time; they are the first."""
        old = []
        for name, slot in self._slots.items():
            if self._more[slot][0] >= before:
                break
            old.append(name)
        if not dry:
            self.remove(old, fate, event)
        return len(old)

    def drop(self, limit: int, fate: int, event: int) -> int:
        """Take away the oldest rows beyond a number."""
        count = max(0, len(self._slots) - limit)
        self.remove(list(islice(self._slots, count)), fate, event)
        return count

    def forget(self, limit: int) -> None:
        """Keep the fates of the last ``limit`` ids that are gone."""
        for name in list(islice(self._fates, max(0, len(self._fates) - limit))):
            del self._fates[name]

    def state(self, event: int) -> dict[str, Any]:
        """All of it as plain data, in the order of showing."""
        slots = list(self._slots.values())
        more = [self._more[slot] for slot in slots]
        return {
            "ids": list(self._slots), "rows": self._rows[slots], "times": np.array([part[0] for part in more]),
            "predictions": [part[1] for part in more], "keys": [part[2] for part in more],
            "fates": [list(self._fates), *map(list, zip(*self._fates.values(), strict=True))], "gone": self._gone,
        }  # fmt: skip

    def restore(self, state: Any, event: int) -> None:
        """From `state`, which may be forged."""
        ids, rows, times = list(state["ids"]), state["rows"], np.array(state["times"], dtype=np.float64)
        names, fates, numbers = state["fates"] if len(state["fates"]) == 3 else ([], [], [])
        plain = all(type(name) in (int, str) for name in [*ids, *names])
        lengths = {len(ids), len(rows), len(times), len(state["predictions"]), len(state["keys"])}
        good = plain and len(set(ids)) == len(ids) and len(lengths) == 1 and len(names) == len(fates) == len(numbers)
        good = good and isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind == "f"
        if not good or not np.isfinite(rows).all() or np.isnan(times).any() or np.any(np.diff(times) < 0):
            raise _checks.wrong("Pending", "held", "rows by id, in the order of their times", len(ids))
        self._slots = {name: slot for slot, name in enumerate(ids)}
        self._rows, self._free = rows.copy(), []
        self._more = list(zip(times.tolist(), state["predictions"], state["keys"], strict=True))
        self._fates = dict(zip(names, zip(map(int, fates), map(int, numbers), strict=True), strict=True))
        self._gone = int(state["gone"])


class HeldInSQLite:
    """Rows in a file. Nothing that a saved model may come back to is deleted: a row that is gone is marked with the
    number of the call that took it, and kept as long as its fate."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._gone = 0
        self._saved = 0, 0  # the last call that a stored model may come back to, and the rows that were gone then
        self._open: sqlite3.Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def __deepcopy__(self, memo: Any) -> HeldInSQLite:
        made = HeldInSQLite(self.path)
        made._gone, made._saved = self._gone, self._saved
        return made

    @property
    def _file(self) -> sqlite3.Connection:
        if self._open is None:
            self._open = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
            self._open.execute("PRAGMA journal_mode=WAL")
            self._open.execute("PRAGMA synchronous=NORMAL")
            self._open.execute(
                "CREATE TABLE IF NOT EXISTS pending (number INTEGER PRIMARY KEY, id, time REAL, x BLOB, more TEXT,"
                " shown INTEGER, gone INTEGER, fate INTEGER, rank INTEGER)"
            )
            self._open.execute("CREATE INDEX IF NOT EXISTS by_id ON pending (id)")
            self._open.execute("CREATE INDEX IF NOT EXISTS by_gone ON pending (gone)")
        return self._open

    def __len__(self) -> int:
        return int(self._file.execute("SELECT count(*) FROM pending WHERE gone IS NULL").fetchone()[0])

    def check(self, X: Any) -> None:
        """Raise unless the rows can be here."""
        if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype != np.float64:
            raise _checks.wrong("Pending", "X", "a matrix of float64, where labels come later", type(X).__name__)

    def put(self, row: Row, event: int) -> bool:
        """Add a row; whether one of its id was here already."""
        again = self.get(row.id) is not None
        if again:
            self._begin()
            self._file.execute("UPDATE pending SET gone = ?, rank = 0 WHERE id = ? AND gone IS NULL", (event, row.id))
        more = json.dumps([row.prediction, row.key])
        self._begin()
        values = (row.id, row.time, row.x.tobytes(), more, event)
        self._file.execute("INSERT INTO pending (id, time, x, more, shown) VALUES (?, ?, ?, ?, ?)", values)
        return again

    def _begin(self) -> None:
        if not self._file.in_transaction:
            self._file.execute("BEGIN")

    def get(self, name: Any) -> Row | None:
        """The row of an id."""
        query = "SELECT time, x, more FROM pending WHERE id = ? AND gone IS NULL"
        found = self._file.execute(query, (name,)).fetchone()
        if found is None:
            return None
        prediction, key = json.loads(found[2])
        return Row(name, found[0], np.frombuffer(found[1]), prediction, key)

    def gather(self, rows: list[Row]) -> Array:
        """The features of rows."""
        return np.stack([row.x for row in rows])

    def fate(self, name: Any, limit: int) -> int | None:
        """What became of the row of an id, if it is one of the last ``limit`` that are gone."""
        query = "SELECT fate FROM pending WHERE id = ? AND rank > ? ORDER BY number DESC LIMIT 1"
        found = self._file.execute(query, (name, max(0, self._gone - limit))).fetchone()
        return None if found is None else int(found[0])

    def remove(self, names: list[Any], fate: int, event: int) -> None:
        """Take rows away."""
        self._begin()
        change = "UPDATE pending SET gone = ?, fate = ?, rank = ? WHERE id = ? AND gone IS NULL"
        ranks = range(self._gone + 1, self._gone + 1 + len(names))
        self._file.executemany(change, [(event, fate, rank, name) for rank, name in zip(ranks, names, strict=True)])
        self._gone += len(names)

    def expire(self, before: float, fate: int, event: int, dry: bool) -> int:
        """Take away the rows that were shown before a time."""
        query = "SELECT id FROM pending WHERE gone IS NULL AND time < ? ORDER BY number"
        old = [name for (name,) in self._file.execute(query, (before,))]
        if old and not dry:
            self.remove(old, fate, event)
        return len(old)

    def drop(self, limit: int, fate: int, event: int) -> int:
        """Take away the oldest rows beyond a number."""
        query = "SELECT id FROM pending WHERE gone IS NULL ORDER BY number LIMIT ?"
        oldest = [name for (name,) in self._file.execute(query, (max(0, len(self) - limit),))]
        self.remove(oldest, fate, event)
        return len(oldest)

    def forget(self, limit: int) -> None:
        """Delete what is too old to have a fate, and no stored model can come back to; write what has changed."""
        self._begin()
        saved, gone = self._saved
        self._file.execute("DELETE FROM pending WHERE gone <= ? AND rank <= ?", (saved, gone - limit))
        self._file.execute("COMMIT")

    def state(self, event: int) -> dict[str, Any]:
        """What a stored model needs besides the file."""
        self._saved = event, self._gone
        return {"event": event, "gone": self._gone}

    def restore(self, state: Any, event: int) -> None:
        """Undo what came after the model was saved."""
        if state["event"] != event or type(state["gone"]) is not int:
            raise _checks.wrong("Pending", "held", f"the state of call {event}", state)
        self._gone, self._saved = state["gone"], (event, state["gone"])
        self._begin()
        self._file.execute("DELETE FROM pending WHERE shown > ?", (event,))
        self._file.execute("UPDATE pending SET gone = NULL, fate = NULL, rank = NULL WHERE gone > ?", (event,))
        self._file.execute("COMMIT")
