"""The cache of a `ModelBank`: states in memory; beyond a limit the least recently used are evicted to SQLite."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from gossamer import _checks
from gossamer.bank.files import FAILURES, create_file, failure, is_storable, open_file, rename

#: The bytes of an entry besides its state: the key, a place in a dict, the head of an object.
OVERHEAD = 200
#: The number of keys in one SELECT.
AT_ONCE = 500


class Shelf:
    """States by key. With a file, changes since the last `commit` are lost if the process dies.

    States evicted between two commits go into one open transaction, so that the file, seen after a
    crash, is that of the last commit: all models of one moment, and the facts stored with them.
    """

    def __init__(self, path: str | os.PathLike[str] | None, memory: int | None) -> None:
        self.memory = memory
        self.pack: Callable[[Any], bytes] = bytes
        self.unpack: Callable[[bytes], Any] = bytes
        self.size: Callable[[Any], int] = len
        self.states: dict[Any, Any] = {}  # the first is the least recently used
        self.dirty: set[Any] = set()  # changed since they were written to the file
        self.held = 0  # bytes of the states in memory
        self.count = 0  # keys, wherever they are
        self.largest = 256
        self.path = ""
        self._file: sqlite3.Connection | None = None
        self._only_there = False  # whether the open transaction has evicted states
        self._lost = False  # whether a failure has rolled them back
        if path is not None or memory is not None:
            folder = tempfile.mkdtemp(prefix="gossamer-bank-") if path is None else None
            self.path = os.path.join(folder, "bank.sqlite") if folder else os.fspath(path or "")
            self._file = open_file(self.path)
            self._discard = weakref.finalize(self, _discard, self._file, folder)
            with self._statements() as file:
                self.count = int(file.execute("SELECT count(*) FROM models").fetchone()[0])

    def __len__(self) -> int:
        return self.count

    @contextlib.contextmanager
    def _statements(self) -> Iterator[sqlite3.Connection]:
        """The file, for a few statements. Should they fail, the error names it, and the file is at its last commit."""
        assert self._file is not None
        if self._lost:
            raise OSError(errno.EIO, "a write has failed; the last commit is there: open the bank again", self.path)
        try:
            yield self._file
        except FAILURES as error:
            if self._file.in_transaction and not self._only_there:
                with contextlib.suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")  # everything is in memory too
            elif self._only_there and not self._file.in_transaction:
                self._lost = True  # SQLite has rolled back
            raise failure(error, self.path) from None

    # -------------------------------------------------------------------------------------------------------- states

    def get(self, keys: list[Any]) -> list[Any]:
        """The states of keys, None where there is none; the order of use does not change."""
        found = [self.states.get(key) for key in keys]
        if self._file is None or self.count == len(self.states):
            return found
        missing = [i for i, state in enumerate(found) if state is None]
        for start in range(0, len(missing), AT_ONCE):
            part = [i for i in missing[start : start + AT_ONCE] if is_storable(keys[i])]
            query = f"SELECT key, state FROM models WHERE key IN ({','.join('?' * len(part))})"
            with self._statements() as file:
                stored = dict(file.execute(query, [keys[i] for i in part]))
            for i in part:
                data = stored.get(keys[i])
                found[i] = None if data is None else self._unpack(keys[i], data)
        return found

    def _unpack(self, key: Any, data: Any) -> Any:
        """The state of a key from its bytes in the file."""
        try:
            if type(data) is not bytes:
                raise _checks.wrong("ModelBank", "data", "bytes", type(data).__name__)
            return self.unpack(data)
        except ValueError as error:
            raise ValueError(f"{error} It is the model of key {key!r} in {self.path!r}.") from None

    def has(self, key: Any) -> bool:
        """Whether there is a state for a key; it need not be a good one."""
        if key in self.states or self._file is None or self.count == len(self.states) or not is_storable(key):
            return key in self.states
        with self._statements() as file:
            return file.execute("SELECT 1 FROM models WHERE key = ?", (key,)).fetchone() is not None

    def check(self, keys: list[Any]) -> None:
        """Raise for new keys that the file cannot hold."""
        if self._file is not None:
            for key in keys:
                if not is_storable(key):
                    raise _checks.wrong("ModelBank", "keys", "ints of 64 bits, Unicode texts or bytes in a file", key)

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
                self._evict()

    def drop(self, key: Any) -> None:
        """Forget a key."""
        state = self.states.pop(key, None)
        if state is not None and self.memory is not None:
            self.held -= self.size(state) + OVERHEAD
        self.dirty.discard(key)
        if self._file is not None:
            with self._transaction() as file:
                self._only_there = True
                file.execute("DELETE FROM models WHERE key = ?", (key,))
        self.count -= 1

    def keys(self) -> Iterator[Any]:
        """All keys: those in memory, then the others."""
        yield from list(self.states)
        if self._file is not None and self.count > len(self.states):
            with self._statements() as file:
                found = file.execute("SELECT key FROM models ORDER BY id").fetchall()
            for (key,) in found:
                if key not in self.states:
                    yield key

    # ---------------------------------------------------------------------------------------------------------- file

    def facts(self) -> dict[str, Any]:
        """The metadata of the last commit."""
        if self._file is None:
            return {}
        with self._statements() as file:
            return dict(file.execute("SELECT name, value FROM facts"))

    def commit(self, facts: dict[str, Any]) -> None:
        """Write all states and this metadata in one transaction."""
        if self._file is None:
            raise _checks.wrong("ModelBank", "path", "the name of a file for commit", None)
        with self._transaction() as file:
            self._write(file, self.dirty)
            file.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", facts.items())
            file.execute("COMMIT")
        self._only_there = False
        self.dirty.clear()

    def mark(self) -> None:
        """Set a savepoint that `back` can return to, though states are evicted meanwhile."""
        with self._transaction() as file:
            self._write(file, self.dirty)
            file.execute("SAVEPOINT call")
        self._only_there = True
        self.dirty.clear()
        self._count = self.count

    def back(self) -> None:
        """Return to the `mark`."""
        if not self._lost:
            with self._statements() as file:
                file.execute("ROLLBACK TO call")
        self.states.clear()
        self.dirty.clear()
        self.held, self.count = 0, self._count

    def snapshot(self, path: str | os.PathLike[str], facts: dict[str, Any]) -> None:
        """Write all states to a new file; this shelf stays as it is."""
        target = os.fspath(path)
        if os.path.exists(target):
            raise _checks.wrong("ModelBank", "path", "a file that does not exist yet", target)
        keys = list(self.keys())
        for key in keys:
            if not is_storable(key):
                raise _checks.wrong("ModelBank", "keys", "ints of 64 bits, Unicode texts or bytes in a file", key)
        folder, name = os.path.split(os.path.realpath(target))
        beside = create_file(os.path.join(folder, f".{name}"), target)
        try:
            with contextlib.closing(open_file(beside)) as copy:
                copy.execute("BEGIN IMMEDIATE")
                for start in range(0, len(keys), AT_ONCE):
                    part = keys[start : start + AT_ONCE]
                    packed = zip(part, map(self.pack, self.get(part)), strict=True)
                    copy.executemany("INSERT INTO models (key, state) VALUES (?, ?)", packed)
                copy.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
                copy.execute("COMMIT")
                copy.execute("PRAGMA journal_mode = DELETE")  # all in one file
            rename(beside, target)
        except FAILURES as error:
            raise failure(error, target) from None
        except FileExistsError:
            raise _checks.wrong("ModelBank", "path", "a file that does not exist yet", target) from None
        except OSError as error:
            raise OSError(error.errno, error.strerror, target) from None
        finally:
            for left in (beside, f"{beside}-wal", f"{beside}-shm", f"{beside}-journal"):
                with contextlib.suppress(OSError):
                    os.unlink(left)

    def close(self) -> None:
        """Close the file; uncommitted changes are lost."""
        if self._file is not None:
            self._file = None
            self._discard()

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """The file inside a transaction."""
        with self._statements() as file:
            if not file.in_transaction:
                file.execute("BEGIN IMMEDIATE")
            yield file

    def _write(self, file: sqlite3.Connection, keys: Any) -> None:
        rows = ((key, self.pack(self.states[key])) for key in keys)
        file.executemany(
            "INSERT INTO models (key, state) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET state = excluded.state", rows
        )

    def _evict(self) -> None:
        """Evict the least recently used states until three quarters of the memory are used."""
        assert self.memory is not None
        leaving = []
        for key, state in self.states.items():
            if self.held <= 0.75 * self.memory:
                break
            leaving.append(key)
            self.held -= self.size(state) + OVERHEAD
        with self._transaction() as file:
            self._write(file, [key for key in leaving if key in self.dirty])
        self._only_there = True
        self.dirty.difference_update(leaving)
        for key in leaving:
            del self.states[key]


def _discard(file: sqlite3.Connection, folder: str | None) -> None:
    """Close a file, and remove the folder that was made for it."""
    file.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
