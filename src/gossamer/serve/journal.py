"""The journal: every change of every model, in one SQLite file, synced before it is acknowledged.

SQLite in WAL mode with ``synchronous=FULL``: a transaction that has been committed survives a loss of power. One thread
writes. An entry carries a checksum, since SQLite has none for its pages; entries are numbered without gaps.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gossamer.serve.problems import ReadOnlyError
from gossamer.serve.rows import digest

#: The numbers of an entry, for its checksum.
HEAD = struct.Struct("<qqd")
#: The version of the tables.
FORMAT = 1
TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS journal (
    seq INTEGER PRIMARY KEY, time REAL NOT NULL, model INTEGER NOT NULL, kind TEXT NOT NULL, request TEXT,
    payload BLOB NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS models (number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS states (
    model INTEGER NOT NULL, seq INTEGER NOT NULL, upto INTEGER NOT NULL, time REAL NOT NULL, label TEXT,
    data BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (model, seq));
CREATE TABLE IF NOT EXISTS requests (
    model INTEGER NOT NULL, request TEXT NOT NULL, seq INTEGER NOT NULL, digest INTEGER NOT NULL, answer BLOB,
    PRIMARY KEY (model, request)) WITHOUT ROWID;
"""


class Entry(NamedTuple):
    """A change of a model: rows learned, a model made, a version named, a rollback, ..."""

    seq: int
    time: float
    model: int
    kind: str
    request: str | None
    payload: bytes

    def checksum(self) -> int:
        """The checksum of everything in the entry."""
        head = HEAD.pack(self.seq, self.model, self.time) + f"{self.kind} {self.request or ''}".encode()
        return zlib.crc32(self.payload, zlib.crc32(head))


class Stored(NamedTuple):
    """A stored state of a model: after the entry ``seq`` of the model, and good up to entry ``upto`` of the journal."""

    model: int
    seq: int
    upto: int
    time: float
    label: str | None
    data: bytes


class DamagedError(Exception):
    """An entry or a state that is not what was written; ``seq`` is that of the first."""

    def __init__(self, seq: int, what: str) -> None:
        super().__init__(f"{what} (entry {seq})")
        self.seq = seq


class Journal:
    """The file of a server. All writes come from one thread; readers open their own connection."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = self.folder / "gossamer.db"
        self._lock = _lock_folder(self.folder)
        self.connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=1.0)
        os.chmod(self.path, 0o600)
        run = self.connection.execute
        try:
            if run("PRAGMA journal_mode=WAL").fetchone()[0] != "wal":
                raise ReadOnlyError(f"{self.path} is on a file system without write-ahead logging")
            run("PRAGMA synchronous=FULL")
            run("PRAGMA wal_autocheckpoint=4000")
            run("PRAGMA cell_size_check=ON")
            run("PRAGMA trusted_schema=OFF")
            run("BEGIN IMMEDIATE")
            for statement in TABLES.split(";"):
                if statement.strip():
                    run(statement)
            if self.fact("format") is None:
                self.set_fact("format", FORMAT)
            run("COMMIT")
        except sqlite3.OperationalError as error:
            self.close()
            raise ReadOnlyError(f"{self.path} cannot be opened: {error}") from error
        if self.fact("format") != FORMAT:
            self.close()
            raise ReadOnlyError(f"{self.path} is of a later version of Gossamer")
        last = run("SELECT max(seq) FROM journal").fetchone()[0]
        self.trimmed = int(self.fact("trimmed") or 0)
        self.seq = self.trimmed if last is None else int(last)
        self.last_time = float(run("SELECT coalesce(max(time), 0) FROM journal").fetchone()[0])
        _sync_folder(self.folder)  # the names of new files are durable too

    def fact(self, name: str) -> Any:
        """A fact about the journal."""
        found = self.connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    def set_fact(self, name: str, value: Any) -> None:
        """Set a fact, within a transaction of the caller or alone."""
        self.connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    # -------------------------------------------------------------------------------------------------------- writing

    def append(self, entries: Sequence[Entry], answers: Sequence[tuple[bytes, int, str]] = ()) -> None:
        """Append entries, and answers of earlier requests, in one transaction; returns once it is synced."""
        run = self.connection
        run.execute("BEGIN IMMEDIATE")
        try:
            rows = [(*entry, entry.checksum()) for entry in entries]
            run.executemany("INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
            asked = [(e.model, e.request, e.seq, digest(e.kind, e.payload)) for e in entries if e.request is not None]
            if asked:
                run.executemany("INSERT INTO requests (model, request, seq, digest) VALUES (?, ?, ?, ?)", asked)
            for entry in entries:
                if entry.kind == "create":
                    run.execute("INSERT INTO models VALUES (?, ?)", (entry.model, created_name(entry)))
                elif entry.kind == "delete":
                    self._forget(entry.model)
            self._keep_answers(answers)
            run.execute("COMMIT")
        except BaseException:
            if run.in_transaction:
                run.execute("ROLLBACK")
            raise
        self.seq = entries[-1].seq
        self.last_time = entries[-1].time

    def store(self, states: Sequence[Stored], answers: Sequence[tuple[bytes, int, str]] = ()) -> None:
        """Store states of models, with answers of earlier requests, in one transaction."""
        run = self.connection
        run.execute("BEGIN IMMEDIATE")
        try:
            rows = [(*state, zlib.crc32(state.data)) for state in states]
            # a state of this entry may be there as a version: it has the same bytes, and keeps its label
            insert = "INSERT INTO states VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET upto = excluded.upto"
            run.executemany(insert, rows)
            self._keep_answers(answers)
            run.execute("COMMIT")
        except BaseException:
            if run.in_transaction:
                run.execute("ROLLBACK")
            raise

    def _keep_answers(self, answers: Sequence[tuple[bytes, int, str]]) -> None:
        if answers:
            self.connection.executemany("UPDATE requests SET answer = ? WHERE model = ? AND request = ?", answers)

    def _forget(self, model: int) -> None:
        self.connection.execute("DELETE FROM models WHERE number = ?", (model,))
        self.connection.execute("DELETE FROM states WHERE model = ?", (model,))
        self.connection.execute("DELETE FROM requests WHERE model = ?", (model,))

    def trim(self, models: Sequence[int], keep_states: int, keep_entries: int, keep_requests: int) -> int:
        """Drop old states without a label, and the entries that no remaining state needs; the entries dropped.

        ``models`` are those whose newest state holds everything up to now: their states reach up to the end.
        """
        run = self.connection
        run.execute("BEGIN IMMEDIATE")
        try:
            for model in models:
                newest = run.execute("SELECT max(seq) FROM states WHERE model = ?", (model,)).fetchone()[0]
                run.execute("UPDATE states SET upto = ? WHERE model = ? AND seq = ?", (self.seq, model, newest))
            old = """SELECT model, seq FROM (SELECT model, seq, label, row_number() OVER
                     (PARTITION BY model ORDER BY seq DESC) AS place FROM states) WHERE label IS NULL AND place > ?"""
            for model, seq in run.execute(old, (keep_states,)).fetchall():
                run.execute("DELETE FROM states WHERE model = ? AND seq = ?", (model, seq))
            floor = self._floor(keep_states) if models else self.trimmed
            floor = max(self.trimmed, min(floor, self.seq - keep_entries))
            dropped = run.execute("DELETE FROM journal WHERE seq <= ?", (floor,)).rowcount
            run.execute("DELETE FROM requests WHERE seq <= ?", (min(floor, self.seq - keep_requests),))
            self.set_fact("trimmed", floor)
            run.execute("COMMIT")
        except BaseException:
            if run.in_transaction:
                run.execute("ROLLBACK")
            raise
        self.trimmed = floor
        return dropped

    def _floor(self, keep_states: int) -> int:
        """The last entry that no model needs: each can start again from any of its newest states."""
        found = self.connection.execute(
            """SELECT min(upto) FROM (SELECT model, upto, row_number() OVER (PARTITION BY model ORDER BY seq DESC)
               AS place FROM states) WHERE place <= ?""",
            (keep_states,),
        ).fetchone()[0]
        without = "SELECT count(*) FROM models WHERE number NOT IN (SELECT model FROM states)"
        if found is None or self.connection.execute(without).fetchone()[0]:
            return 0
        return int(found)

    # -------------------------------------------------------------------------------------------------------- reading

    def models(self) -> dict[int, str]:
        """The models there are, by number."""
        return dict(self.connection.execute("SELECT number, name FROM models ORDER BY number"))

    def entries(self, after: int) -> Iterator[Entry]:
        """The entries after a number, in order; DamagedError at the first that is not what was written."""
        expected = after + 1
        try:
            for *fields, checksum in self.connection.execute(
                "SELECT * FROM journal WHERE seq > ? ORDER BY seq", (after,)
            ):
                entry = Entry(*fields)
                if entry.seq != expected:
                    raise DamagedError(expected, "an entry of the journal is missing")
                if entry.checksum() != checksum:
                    raise DamagedError(expected, "an entry of the journal does not match its checksum")
                expected += 1
                yield entry
        except (sqlite3.DatabaseError, TypeError) as error:
            raise DamagedError(expected, f"the journal cannot be read: {error}") from error

    def versions(self, model: int) -> list[tuple[int, int, float, str | None, int]]:
        """As `states`, for other threads than the writer: by a connection of its own, which can only read."""
        with contextlib.closing(sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)) as reader:
            query = "SELECT seq, upto, time, label, length(data) FROM states WHERE model = ? ORDER BY seq DESC"
            return list(reader.execute(query, (model,)))

    def states(self, model: int) -> list[tuple[int, int, float, str | None, int]]:
        """The stored states of a model, newest first: seq, upto, time, label, bytes."""
        query = "SELECT seq, upto, time, label, length(data) FROM states WHERE model = ? ORDER BY seq DESC"
        return list(self.connection.execute(query, (model,)))

    def state(self, model: int, seq: int) -> bytes:
        """The bytes of a stored state; DamagedError if they are not what was written, or not there."""
        query = "SELECT data, checksum FROM states WHERE model = ? AND seq = ?"
        try:
            found = self.connection.execute(query, (model, seq)).fetchone()
        except sqlite3.DatabaseError as error:
            raise DamagedError(seq, f"a stored state cannot be read: {error}") from error
        if found is None or zlib.crc32(found[0]) != found[1]:
            raise DamagedError(seq, "a stored state is missing or does not match its checksum")
        return bytes(found[0])

    def request(self, model: int, request: str) -> tuple[int, int, bytes | None] | None:
        """The entry, the digest and the answer of a request id, if it is known."""
        query = "SELECT seq, digest, answer FROM requests WHERE model = ? AND request = ?"
        found = self.connection.execute(query, (model, request)).fetchone()
        return None if found is None else (found[0], found[1], found[2])

    def size(self) -> int:
        """The bytes of the files."""
        return sum(os.path.getsize(path) for path in self.folder.glob("gossamer.db*"))

    def check(self) -> list[str]:
        """SQLite's own check of the whole file; empty if nothing is wrong."""
        found = [str(row[0]) for row in self.connection.execute("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole journal, as it is now, to a new file."""
        with sqlite3.connect(path) as copy:
            self.connection.backup(copy)

    def close(self) -> None:
        """Close the file."""
        self.connection.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def pin(self, model: int, seq: int) -> None:
        """Keep a state as long as the model: an entry of the journal refers to it."""
        query = "UPDATE states SET label = coalesce(label, 'rolled back to') WHERE model = ? AND seq = ?"
        self.connection.execute(query, (model, seq))


def _lock_folder(folder: Path) -> int | None:
    """Refuse a second server on the same folder. The system drops the lock with the process, however it ends."""
    with contextlib.suppress(ImportError):
        import fcntl

        handle = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise ReadOnlyError(f"{folder} is used by another server") from None
        return handle
    return None


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def created_name(entry: Entry) -> str:
    """The name of the model that an entry creates: the first line of its payload."""
    return entry.payload.partition(b"\n")[0].decode()
