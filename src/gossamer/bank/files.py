"""The SQLite file of a `ModelBank`: opened by one process alone, or only read; every error names the file."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import secrets
import sqlite3
from collections.abc import Iterator
from typing import Any

from gossamer import _checks

#: Kilobytes of the file that SQLite keeps in memory.
CACHE = 32_000
#: The application id of the SQLite file: "GSMB".
APPLICATION = 0x47534D42

SCHEMA = """
CREATE TABLE models (id INTEGER PRIMARY KEY, key UNIQUE NOT NULL, state BLOB NOT NULL);
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
"""
#: The exceptions of SQLite; the message for a damaged file may not be valid text.
FAILURES = (sqlite3.Error, UnicodeDecodeError)


def failure(error: Exception, path: str) -> Exception:
    """The error for a file, with its name: an OSError of the disk, or a ValueError for a file that is no bank."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM):
        return OSError(errno.EIO, str(error), path)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return _checks.wrong("ModelBank", "path", f"a file that only this bank has open ({error})", path)
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return _checks.wrong("ModelBank", "path", f"a file that can be opened and written ({error})", path)
    return _checks.wrong("ModelBank", "path", f"what a ModelBank has stored, undamaged ({error})", path)


@contextlib.contextmanager
def _connect(path: str, address: str, **options: Any) -> Iterator[tuple[sqlite3.Connection, contextlib.ExitStack]]:
    """A connection, closed if the statements fail; ``pop_all`` of the stack keeps it open."""
    try:
        with contextlib.ExitStack() as stack:
            file = stack.enter_context(contextlib.closing(sqlite3.connect(address, check_same_thread=False, **options)))
            file.execute("PRAGMA trusted_schema = OFF")
            file.execute("PRAGMA cell_size_check = ON")
            yield file, stack
    except FAILURES as error:
        raise failure(error, path) from None


def _check_schema(file: sqlite3.Connection, path: str) -> None:
    """Validate that a file has the two tables and nothing else: no view and no trigger, which a statement would run."""
    if file.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise _checks.wrong("ModelBank", "path", "a file that a ModelBank has made", path)
    expected = {" ".join(table.split()) for table in SCHEMA.split(";") if table.strip()}
    tables = "SELECT sql FROM sqlite_master WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' LIMIT 3"
    found = {sql if type(sql) is not str else " ".join(sql.split()) for (sql,) in file.execute(tables)}
    if found != expected:
        raise _checks.wrong("ModelBank", "path", "a file that a ModelBank has made, with its two tables", path)


def open_file(path: str) -> sqlite3.Connection:
    """Open the file of a bank, made if it does not exist, for this process alone."""
    with _connect(path, path, isolation_level=None, timeout=1.0) as (file, stack):
        file.execute("PRAGMA locking_mode = EXCLUSIVE")
        fresh = not file.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not fresh:
            _check_schema(file, path)
        file.execute("PRAGMA journal_mode = WAL")
        file.execute(f"PRAGMA cache_size = -{CACHE}")
        file.execute("PRAGMA synchronous = FULL")  # a commit survives a power failure
        if fresh:
            file.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION}; COMMIT;")
        else:
            file.execute("BEGIN IMMEDIATE")  # fails if another process has the file open
            file.execute("COMMIT")
        stack.pop_all()
        return file


@contextlib.contextmanager
def read_file(path: str | os.PathLike[str]) -> Iterator[tuple[dict[str, Any], Iterator[tuple[Any, bytes]]]]:
    """The metadata and the models of a file that no bank has open; it is only read, and closed at the end."""
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise _checks.wrong("ModelBank", "path", "the name of a file", name)
    address = f"{pathlib.Path(name).resolve().as_uri()}?mode=ro"
    with _connect(name, address, uri=True) as (file, _):
        _check_schema(file, name)
        yield dict(file.execute("SELECT name, value FROM facts")), _models(file, name)


def _models(file: sqlite3.Connection, name: str) -> Iterator[tuple[Any, bytes]]:
    try:
        yield from file.execute("SELECT key, state FROM models ORDER BY id")
    except FAILURES as error:
        raise failure(error, name) from None


def is_storable(key: Any) -> bool:
    """Whether SQLite can hold a key."""
    if isinstance(key, str):
        try:
            return key.isascii() or bool(key.encode())
        except UnicodeEncodeError:
            return False
    return not isinstance(key, int) or -(2**63) <= key < 2**63


def create_file(start: str, target: str) -> str:
    """An empty file with a name that cannot be guessed, so that nobody can have made it before."""
    path = f"{start}.{secrets.token_hex(8)}.tmp"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    except OSError as error:
        raise OSError(error.errno, error.strerror, target) from None
    return path


def rename(path: str, target: str) -> None:
    """Rename a file, unless another process has made a file of that name meanwhile."""
    try:
        os.link(path, target)
    except FileExistsError:
        raise
    except OSError:  # a disk without links
        if os.path.exists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target) from None
        os.replace(path, target)
