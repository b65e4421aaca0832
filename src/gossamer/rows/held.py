"""Where waiting rows are: in memory, or in a file of SQLite."""

from __future__ import annotations

import json
import math
import os
import sqlite3
import threading
from collections import deque
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from gossamer import _checks
from gossamer._sparse import TABLES, SparseRows
from gossamer._typing import Array, Floats
from gossamer.rows.slots import DenseSlots, Slots, from_stored, join_rows, make_slots

#: The application id in the header of a file: no other file of SQLite is written to.
MARK = 0x474F5350
#: One thread at a time reads a file, or opens it: a connection has one place in a table.
_one = threading.RLock()

#: What `find` says of a row that waited too long.
OLD = False
#: The last bytes of a model that a file can be taken back to: not all that were made are saved.
SAVES = 8


class Row(NamedTuple):
    """A row in a file: its id, when it was shown, its features, the prediction, and the key of its model or None.

    A sparse row has a ``width``; its features are the columns, as numbers, and after them the values.
    """

    id: Any
    time: float
    x: Array
    prediction: Any
    key: Any
    width: int | None


class HeldInMemory:
    """Rows in one array, whose slots are used again; ids in the order of their showing. A handle is a slot."""

    def __init__(self) -> None:
        self._slots: dict[Any, int] = {}
        self._free: list[int] = []
        self._rows: Slots = DenseSlots(0, np.float64)
        self._times: Floats = np.zeros(0)
        self._predictions: list[Any] = []
        self._keys: list[Any] = []
        self._fates: dict[Any, int] = {}  # of ids that are gone: 4 times their number among these, and what became
        self._gone = 0

    def __len__(self) -> int:
        return len(self._slots)

    def check(self, X: Any) -> None:
        """Raise unless the rows fit those that are here."""
        if not isinstance(X, TABLES) or X.ndim != 2 or X.dtype.kind != "f":
            raise _checks.wrong("Pending", "X", "a matrix of numbers, where labels come later", type(X).__name__)
        if self._slots and (X.shape[1] != self._rows.width or type(make_slots(X)) is not type(self._rows)):
            kind = "dense" if isinstance(self._rows, DenseSlots) else "sparse"
            rule = f"{kind} and of {self._rows.width} features, as the rows that wait"
            raise _checks.wrong("Pending", "X", rule, X.shape)
        if not self._slots:
            self._rows, self._times = make_slots(X), np.zeros(0)
            self._predictions, self._keys, self._free = [], [], []

    def put(self, names: list[Any], time: float, X: Any, predictions: list[Any], keys: list[Any], event: int) -> int:
        """Add rows; how many have an id that was here already."""
        again, places, known = 0, list[int](), self._slots
        for name in names:
            slot = known.pop(name, None)
            if slot is None:
                self._fates.pop(name, None)
                if not self._free:
                    self._grow(len(names) - len(places))
                slot = self._free.pop()
            else:
                again += 1
            known[name] = slot
            places.append(slot)
        self._rows.put(places, X)
        self._times[places] = time
        for slot, prediction, key in zip(places, predictions, keys, strict=True):
            self._predictions[slot], self._keys[slot] = prediction, key
        return again

    def _grow(self, least: int) -> None:
        size = len(self._rows)
        new = max(64, least, size // 2)
        self._rows.grow(new)
        self._times = np.concatenate([self._times, np.zeros(new)])
        self._predictions += [None] * new
        self._keys += [None] * new
        self._free += range(size + new - 1, size - 1, -1)

    def find(self, names: list[Any], since: float) -> list[Any]:
        """The handle of each id's row; None where none waits, `OLD` where it was shown before ``since``."""
        known, times = self._slots, self._times
        if since == -math.inf:
            return [known.get(name) for name in names]
        slots = [known.get(name) for name in names]
        return [OLD if slot is not None and times[slot] < since else slot for slot in slots]

    def gather(self, handles: list[Any]) -> Any:
        """The features of rows that are here: an array, or a CSR array of sparse ones."""
        return self._rows.take(handles)

    def tell(self, handles: list[Any]) -> tuple[list[Any], list[Any]]:
        """The predictions and the keys of rows that are here."""
        return [self._predictions[slot] for slot in handles], [self._keys[slot] for slot in handles]

    @property
    def keyed(self) -> bool:
        """Whether a row has the key of a model."""
        return any(self._keys[slot] is not None for slot in self._slots.values())

    def fate(self, name: Any, limit: int) -> int | None:
        """What became of the row of an id, if it is one of the last ``limit`` that are gone."""
        found = self._fates.get(name)
        return None if found is None or found // 4 <= self._gone - limit else found % 4

    def remove(self, names: list[Any], fate: int, event: int) -> None:
        """Take rows away."""
        slots = [self._slots.pop(name) for name in names]
        for slot in slots:
            self._predictions[slot] = self._keys[slot] = None
        self._free += slots
        first = 4 * (self._gone + 1) + fate
        self._fates.update(zip(names, range(first, first + 4 * len(names), 4), strict=True))
        self._gone += len(names)

    def expire(self, before: float, fate: int, event: int, dry: bool) -> int:
        """Take away the rows that were shown before a time; they are the first."""
        old = []
        for name, slot in self._slots.items():
            if self._times[slot] >= before:
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
        predictions, keys = self.tell(slots)
        fates = [[found % 4 for found in self._fates.values()], [found // 4 for found in self._fates.values()]]
        return {
            "ids": list(self._slots), "rows": self._rows.to_stored(slots), "times": self._times[slots],
            "predictions": predictions, "keys": keys, "gone": self._gone,
            "fates": [list(self._fates), *fates] if self._fates else [[]],
        }  # fmt: skip

    def restore(self, state: Any, event: int) -> None:
        """From `state`, which may be forged."""
        ids, rows, times = list(state["ids"]), from_stored(state["rows"]), np.array(state["times"], dtype=np.float64)
        names, fates, numbers = state["fates"] if len(state["fates"]) == 3 else ([], [], [])
        plain = all(type(name) in (int, str) for name in [*ids, *names])
        lengths = {len(ids), len(rows), len(times), len(state["predictions"]), len(state["keys"])}
        good = plain and times.ndim == 1 and len({key is None for key in state["keys"]}) < 2
        good = good and len(set(ids)) == len(ids) and len(lengths) == 1 and len(names) == len(fates) == len(numbers)
        good = good and all(
            int(fate) in range(4) and int(number) >= 0 for fate, number in zip(fates, numbers, strict=True)
        )
        if not good or np.isnan(times).any() or np.any(np.diff(times) < 0):
            raise _checks.wrong("Pending", "held", "rows by id, in the order of their times", len(ids))
        self._slots = {name: slot for slot, name in enumerate(ids)}
        self._rows, self._times, self._free = rows, times, []
        self._predictions, self._keys = list(state["predictions"]), list(state["keys"])
        self._fates = {
            name: 4 * int(number) + int(fate) for name, fate, number in zip(names, fates, numbers, strict=True)
        }
        self._gone = int(state["gone"])


class HeldInSQLite:
    """Rows in a file. Nothing that one of the last eight saved models may come back to is deleted: a row that is gone
    is marked with the number of the call that took it, and kept as long as its fate."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._gone = 0
        # the calls that a stored model may come back to, and the rows that were gone then, the oldest first
        self._saved = deque([(0, 0)], maxlen=SAVES)
        self._new = True  # rows in the file are those of a process that was killed before it had saved a model
        self._undo: int | None = None  # a stored model goes on from this call, once the file is used
        self._open: sqlite3.Connection | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_open": None}

    def __deepcopy__(self, memo: Any) -> HeldInSQLite:
        made = HeldInSQLite(self.path)
        made._gone, made._saved, made._undo = self._gone, self._saved.copy(), self._undo
        made._new = self._new and self._open is None
        return made

    @property
    def _file(self) -> sqlite3.Connection:
        with _one:
            if self._open is None:
                try:
                    self._open = self._connect()
                except (sqlite3.Error, ValueError) as error:
                    found = f"a file of waiting rows{'' if self._undo is None else ' that is there'} ({error})"
                    raise _checks.wrong("Pending", "spill", found, self.path) from error
                self._undo, self._new = None, False
            return self._open

    def _connect(self) -> sqlite3.Connection:
        """A new file gets its tables. The file that a stored model names must be one of ours: it is taken back."""
        there = os.path.exists(self.path)
        if self._undo is not None and not there:
            raise ValueError("there is none")
        file = sqlite3.connect(self.path, check_same_thread=False, isolation_level=None)
        mark = file.execute("PRAGMA application_id").fetchone()[0]
        empty = mark == 0 and file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0
        if mark != MARK and (self._undo is not None or not empty):
            file.close()
            raise ValueError("it is something else")
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("PRAGMA synchronous=NORMAL")
        file.execute(f"PRAGMA application_id={MARK}")
        file.execute(
            "CREATE TABLE IF NOT EXISTS pending (number INTEGER PRIMARY KEY, id, time REAL, x BLOB, more TEXT,"
            " shown INTEGER, gone INTEGER, fate INTEGER, rank INTEGER)"
        )
        file.execute("CREATE INDEX IF NOT EXISTS by_id ON pending (id)")
        file.execute("CREATE INDEX IF NOT EXISTS by_gone ON pending (gone)")
        if self._new:
            file.execute("DELETE FROM pending")
        elif self._undo is not None:
            file.execute("BEGIN")
            file.execute("DELETE FROM pending WHERE shown > ?", (self._undo,))
            file.execute("UPDATE pending SET gone = NULL, fate = NULL, rank = NULL WHERE gone > ?", (self._undo,))
            file.execute("COMMIT")
        return file

    def __len__(self) -> int:
        with _one:
            return int(self._file.execute("SELECT count(*) FROM pending WHERE gone IS NULL").fetchone()[0])

    def check(self, X: Any) -> None:
        """Raise unless the rows can be here."""
        if not isinstance(X, TABLES) or X.ndim != 2 or X.dtype != np.float64:
            raise _checks.wrong("Pending", "X", "a matrix of float64, where labels come later", type(X).__name__)

    def put(self, names: list[Any], time: float, X: Any, predictions: list[Any], keys: list[Any], event: int) -> int:
        """Add rows; how many have an id that was here already."""
        again = 0
        width = [X.width] if isinstance(X, SparseRows) else []
        self._begin()
        for row, name in enumerate(names):
            change = "UPDATE pending SET gone = ?, rank = 0 WHERE id = ? AND gone IS NULL"
            again += self._file.execute(change, (event, name)).rowcount
            x = np.concatenate([X[row].columns, X[row].values]) if isinstance(X, SparseRows) else X[row]
            values = (name, time, x.tobytes(), json.dumps([predictions[row], keys[row], *width]), event)
            self._file.execute("INSERT INTO pending (id, time, x, more, shown) VALUES (?, ?, ?, ?, ?)", values)
        return again

    def _begin(self) -> None:
        if not self._file.in_transaction:
            self._file.execute("BEGIN")

    def get(self, name: Any) -> Row | None:
        """The row of an id."""
        query = "SELECT time, x, more FROM pending WHERE id = ? AND gone IS NULL"
        with _one:
            found = self._file.execute(query, (name,)).fetchone()
        if found is None:
            return None
        prediction, key, *width = json.loads(found[2])
        return Row(name, found[0], np.frombuffer(found[1]), prediction, key, width[0] if width else None)

    def find(self, names: list[Any], since: float) -> list[Any]:
        """The row of each id; None where none waits, `OLD` where it was shown before ``since``."""
        rows = map(self.get, names)
        return [OLD if row is not None and row.time < since else row for row in rows]

    def gather(self, handles: list[Row]) -> Any:
        """The features of rows: an array, or a CSR array of sparse ones."""
        width = handles[0].width
        if {row.width for row in handles} != {width}:
            raise _checks.wrong("Pending", "X", "all dense, or all sparse and of one width", "others")
        if width is None:
            return np.stack([row.x for row in handles])
        halves = [np.split(row.x, 2) for row in handles]
        return join_rows([(columns, values) for columns, values in halves], width).tocsr()

    def tell(self, handles: list[Row]) -> tuple[list[Any], list[Any]]:
        """The predictions and the keys of rows."""
        return [row.prediction for row in handles], [row.key for row in handles]

    def fate(self, name: Any, limit: int) -> int | None:
        """What became of the row of an id, if it is one of the last ``limit`` that are gone."""
        query = "SELECT fate FROM pending WHERE id = ? AND rank > ? ORDER BY number DESC LIMIT 1"
        with _one:
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
        saved, gone = self._saved[0]
        self._file.execute("DELETE FROM pending WHERE gone <= ? AND rank <= ?", (saved, gone - limit))
        self._file.execute("COMMIT")

    def state(self, event: int) -> dict[str, Any]:
        """What a stored model needs besides the file, whose rows are on the disk before."""
        with _one:
            if self._open is not None:
                self._open.execute("PRAGMA wal_checkpoint")
        self._saved.append((event, self._gone))
        return {"event": event, "gone": self._gone}

    def restore(self, state: Any, event: int) -> None:
        """Undo what came after the model was saved, as soon as the file is used: loading a model changes no file."""
        if state["event"] != event or type(state["gone"]) is not int or not 0 <= state["gone"] < 2**62:
            raise _checks.wrong("Pending", "held", f"the state of call {event}", state)
        self._gone, self._saved = state["gone"], deque([(event, state["gone"])], maxlen=SAVES)
        self._new, self._undo = event == 0, event or None
