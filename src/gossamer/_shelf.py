"""Where a `ModelBank` keeps its states: in memory, and beyond a limit in an SQLite file, least recently used first."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from gossamer import _checks

#: What an entry costs besides its state: the key, a place in a dict, the head of an object.
OVERHEAD = 200
#: Kilobytes of the file that SQLite keeps in memory.
CACHE = 32_000
#: Keys asked for in one statement.
AT_ONCE = 500
#: What an SQLite file says it is: "GSMB".
APPLICATION = 0x47534D42

SCHEMA = """
CREATE TABLE models (id INTEGER PRIMARY KEY, key UNIQUE NOT NULL, state BLOB NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""


class Shelf:
    """States by key. With a file, what was put since the last `commit` is gone if the process dies before the next.

    Everything that leaves memory between two commits goes into one open transaction, so that the file, seen after a
    crash, is that of the last commit: all models of one moment, and the facts stored with them.
    """

    def __init__(self, path: str | os.PathLike[str] | None, memory: int | None) -> None:
        self.memory = memory
        self.pack: Callable[[Any], bytes] = bytes
        self.unpack: Callable[[bytes], Any] = bytes
        self.size: Callable[[Any], int] = len
        self.states: dict[Any, Any] = {}  # the first is the least recently used
        self.dirty: set[Any] = set()  # not yet in the file as they are in memory
        self.held = 0  # bytes of the states in memory
        self.count = 0  # keys, wherever they are
        self.largest = 256
        self._file: sqlite3.Connection | None = None
        if path is not None or memory is not None:
            folder = tempfile.mkdtemp(prefix="gossamer-bank-") if path is None else None
            self._file = opened(os.path.join(folder, "bank.sqlite") if folder else os.fspath(path or ""))
            self._discard = weakref.finalize(self, _discard, self._file, folder)
            self.count = int(self._file.execute("SELECT count(*) FROM models").fetchone()[0])

    # -------------------------------------------------------------------------------------------------------- states

    def get(self, keys: list[Any]) -> list[Any]:
        """The states of keys, None for those without one; nothing moves."""
        found = [self.states.get(key) for key in keys]
        if self._file is None or self.count == len(self.states):
            return found
        missing = [i for i, state in enumerate(found) if state is None]
        for start in range(0, len(missing), AT_ONCE):
            part = missing[start : start + AT_ONCE]
            query = f"SELECT key, state FROM models WHERE key IN ({','.join('?' * len(part))})"
            stored = dict(self._file.execute(query, [keys[i] for i in part]))
            for i in part:
                data = stored.get(keys[i])
                found[i] = None if data is None else self.unpack(data)
        return found

    def put(self, keys: list[Any], states: list[Any], before: list[Any]) -> None:
        """New states, which become the most recently used; ``before`` are those that `get` gave."""
        for key, state, old in zip(keys, states, before, strict=True):
            self.count += old is None
            previous = self.states.pop(key, None) if self.memory is not None else self.states.get(key)
            self.states[key] = state
            if self.memory is not None:
                size = self.size(state)
                self.largest = max(self.largest, size)
                self.held += size + OVERHEAD - (0 if previous is None else self.size(previous) + OVERHEAD)
        if self._file is not None:
            self.dirty.update(keys)
            if self.memory is not None and self.held > self.memory:
                self._spill()

    def drop(self, key: Any) -> None:
        """Forget a key."""
        state = self.states.pop(key, None)
        if state is not None and self.memory is not None:
            self.held -= self.size(state) + OVERHEAD
        self.dirty.discard(key)
        if self._file is not None:
            self._begin()
            self._file.execute("DELETE FROM models WHERE key = ?", (key,))
        self.count -= 1

    def keys(self) -> Iterator[Any]:
        """All keys: those in memory, then the others."""
        yield from list(self.states)
        if self._file is not None and self.count > len(self.states):
            for (key,) in self._file.execute("SELECT key FROM models ORDER BY id").fetchall():
                if key not in self.states:
                    yield key

    # ---------------------------------------------------------------------------------------------------------- file

    def facts(self) -> dict[str, Any]:
        """What the last commit stored beside the models."""
        return {} if self._file is None else dict(self._file.execute("SELECT name, value FROM facts"))

    def commit(self, facts: dict[str, Any]) -> None:
        """All states as they are now, and these facts, in one transaction."""
        if self._file is None:
            raise _checks.wrong("ModelBank", "path", "the name of a file for commit", None)
        self._begin()
        self._write(self.dirty)
        self._file.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
        self._file.execute("COMMIT")
        self.dirty.clear()

    def mark(self) -> None:
        """Begin something that `back` can undo although states leave memory meanwhile."""
        assert self._file is not None
        self._begin()
        self._write(self.dirty)
        self.dirty.clear()
        self._file.execute("SAVEPOINT call")
        self._count = self.count

    def back(self) -> None:
        """As it was at the `mark`."""
        assert self._file is not None
        self._file.execute("ROLLBACK TO call")
        self.states.clear()
        self.dirty.clear()
        self.held, self.count = 0, self._count

    def snapshot(self, path: str | os.PathLike[str], facts: dict[str, Any]) -> None:
        """A new file with all states as they are now; this shelf stays as it is."""
        target = os.fspath(path)
        if os.path.exists(target):
            raise _checks.wrong("ModelBank", "path", "a file that does not exist yet", target)
        beside = f"{target}.tmp"
        if os.path.exists(beside):
            os.unlink(beside)
        copy = opened(beside)
        copy.execute("BEGIN IMMEDIATE")
        keys = list(self.keys())
        for start in range(0, len(keys), AT_ONCE):
            part = keys[start : start + AT_ONCE]
            packed = zip(part, map(self.pack, self.get(part)), strict=True)
            copy.executemany("INSERT INTO models (key, state) VALUES (?, ?)", packed)
        copy.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
        copy.execute("COMMIT")
        copy.execute("PRAGMA journal_mode = DELETE")  # all in one file
        copy.close()
        os.replace(beside, target)

    def close(self) -> None:
        """Give the file back; what was not committed is lost."""
        if self._file is not None:
            self._file = None
            self._discard()

    def _begin(self) -> None:
        assert self._file is not None
        if not self._file.in_transaction:
            self._file.execute("BEGIN IMMEDIATE")

    def _write(self, keys: Any) -> None:
        assert self._file is not None
        rows = ((key, self.pack(self.states[key])) for key in keys)
        self._file.executemany(
            "INSERT INTO models (key, state) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state", rows
        )

    def _spill(self) -> None:
        """Write the least recently used states until three quarters of the memory are used."""
        assert self.memory is not None
        leaving = []
        for key, state in self.states.items():
            if self.held <= 0.75 * self.memory:
                break
            leaving.append(key)
            self.held -= self.size(state) + OVERHEAD
        self._begin()
        self._write([key for key in leaving if key in self.dirty])
        self.dirty.difference_update(leaving)
        for key in leaving:
            del self.states[key]


def _discard(file: sqlite3.Connection, folder: str | None) -> None:
    """Close a file, and remove the folder that was made for it."""
    file.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def opened(path: str) -> sqlite3.Connection:
    """The file of a bank, made if it is not there; this process has it alone."""
    file = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
    try:
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        fresh = not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not fresh and file.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise _checks.wrong("ModelBank", "path", "a file that a ModelBank has made", path)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(f"PRAGMA cache_size = -{CACHE}")
        file.execute("PRAGMA synchronous = FULL")  # what is committed stays, also if the power fails
        if fresh:
            file.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION}; COMMIT;")
        else:
            file.execute("BEGIN IMMEDIATE")  # whoever else has it open shows here
            file.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        file.close()
        raise _checks.wrong("ModelBank", "path", f"a file that only this bank has open ({error})", path) from None
    except ValueError:
        file.close()
        raise
    return file


def stored(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Iterator[tuple[Any, bytes]]]:
    """The facts and the models of a file that no bank has open; it is only read."""
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise _checks.wrong("ModelBank", "path", "the name of a file", name)
    try:
        file = sqlite3.connect(f"{pathlib.Path(name).resolve().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        if file.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise sqlite3.DatabaseError("it is another file")
        return dict(file.execute("SELECT name, value FROM facts")), _models(file)
    except sqlite3.DatabaseError as error:
        raise _checks.wrong("ModelBank", "path", f"what a ModelBank has stored ({error})", name) from None


def _models(file: sqlite3.Connection) -> Iterator[tuple[Any, bytes]]:
    with contextlib.closing(file):
        yield from file.execute("SELECT key, state FROM models ORDER BY id")


def plain(owner: object, parameter: str, value: Any) -> str:
    """A value as JSON, for what users store with the models."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _checks.wrong(owner, parameter, f"plain data that JSON can hold ({error})", value) from None
