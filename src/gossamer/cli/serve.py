"""``gossamer serve``: start a server, make tokens, check and copy its journal."""

from __future__ import annotations

import argparse
import contextlib
import sqlite3
from dataclasses import fields
from pathlib import Path

from gossamer import _checks
from gossamer.serve.limits import Limits
from gossamer.serve.problems import Problem
from gossamer.serve.start import make_server, run


def work(options: argparse.Namespace) -> None:
    """Serve, or what else was asked for."""
    try:
        _work(options)
    except Problem as error:
        raise ValueError(str(error)) from error


def _work(options: argparse.Namespace) -> None:
    first, *rest = options.what or [""]
    if first in ("token", "check", "backup"):
        {"token": _token, "check": _check, "backup": _backup}[first](options, rest)
        return
    for path in options.what:
        if not Path(path).is_file():
            raise _checks.wrong("serve", "what", "files of models", path)
    server = make_server(
        options.data, options.host, options.port, read_limits(options.limit), options.log_requests,
        certificate=options.certificate, key=options.key,
    )  # fmt: skip
    run(server, tuple(options.what))


def read_limits(given: list[str]) -> Limits:
    """The limits of the command line.

    >>> read_limits(["rows=100", "queue=500"]).queue
    500
    """
    known = [field.name for field in fields(Limits)]
    found = {}
    for text in given:
        name, _, value = text.partition("=")
        _checks.one_of("serve", "limit", name, known)
        if not value.isdigit():
            raise _checks.wrong("serve", "limit", "like rows=10000", text)
        found[name] = int(value)
    return Limits(**found)


def _token(options: argparse.Namespace, names: list[str]) -> None:
    from gossamer.serve.tokens import Tokens

    tokens = Tokens(options.data)
    if not names:
        for name, scopes in tokens.names().items():
            print(f"{name}: {', '.join(scopes)}")
    for name in names:
        if options.revoke:
            tokens.revoke(name)
        else:
            print(tokens.create(name, options.scopes.split(",")))


def _check(options: argparse.Namespace, _: list[str]) -> None:
    _checks.extra("msgspec", "gossamer serve", "serve")
    from gossamer.serve.journal import DamagedError, Journal

    if not (Path(options.data) / "gossamer.db").is_file():
        raise _checks.wrong("serve", "data", "a folder that a server has used", options.data)
    journal = Journal(options.data)
    try:
        found = journal.check()
        count = sum(1 for _ in journal.entries(journal.trimmed))
        for number, name in journal.models().items():
            for seq, *_rest in journal.states(number):
                journal.state(number, seq)
            print(f"{name}: {len(journal.states(number))} states")
    except DamagedError as error:
        raise ValueError(f"{journal.path}: {error}") from None
    finally:
        journal.close()
    if found:
        raise ValueError(f"{journal.path}: {found[0]}")
    print(f"{count} entries, up to {journal.seq}: all as they were written")


def _backup(options: argparse.Namespace, names: list[str]) -> None:
    source = Path(options.data) / "gossamer.db"
    if len(names) != 1 or Path(names[0]).exists() or not source.is_file():
        raise _checks.wrong("serve", "what", "backup and the name of a new file, of a folder with a journal", names)
    with (
        contextlib.closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as connection,
        contextlib.closing(sqlite3.connect(names[0])) as copy,
    ):
        connection.backup(copy)
    print(names[0])
