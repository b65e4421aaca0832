"""Forged files of a `ModelBank`: refused with a ValueError, or they work; a damaged model is told when it is needed.

    python tests/long/fuzz_bank.py --count 50000

SQLite files of banks, compiled and of estimators, changed in their bytes, in their facts (the JSON, the model), in keys
and states of models (most with the checksums made right) and in the schema. No crash, no hang of more than 2 s, no more
than 100 MB and 20 times the file.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import sqlite3
import struct
import sys
import tempfile
import warnings
import zlib
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cases
import folders  # noqa: F401
import forge
import numpy as np

from gossamer import (
    AutoRegressor,
    KernelPerceptron,
    NewtonClassifier,
    NORMADetector,
    OnlineScaler,
    SILKClassifier,
    SILKRegressor,
    SVMDRegressor,
    pipeline,
)
from gossamer.bank import ModelBank
from gossamer.bank.compact import HEAD, MAGIC
from gossamer.budgets import Merge, Nystrom, Project
from gossamer.kernels import Gaussian

MODELS: dict[str, Any] = {
    "classes": pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.5), budget=3)),
    "given": SILKClassifier(Gaussian(0.5), budget=Project(3), loss="logistic"),
    "widths": KernelPerceptron("gaussian", budget=Merge(3)),
    "numbers": SVMDRegressor(Gaussian(0.5), budget=3),
    "alarms": NORMADetector(Gaussian(0.5), budget=3),
    "estimators": SILKRegressor(Gaussian(0.5), budget=3, average="sparse"),
    "dictionary": pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.5), budget=Nystrom(3))),
    "metrics": pipeline(OnlineScaler(), NewtonClassifier(Gaussian(0.5), budget=3)),
    "mixtures": AutoRegressor(budget=3),
    "clocks": pipeline(OnlineScaler(half_life=9.0), SILKRegressor(Gaussian(0.5), budget=3, half_life=5.0)),
    "weights": SILKClassifier(Gaussian(0.5), budget=3, class_weight="balanced"),
    "late": SILKRegressor(Gaussian(0.5), budget=3),
}
#: What an earlier change may lead to.
IN_THE_WAY = (sqlite3.Error, IndexError, TypeError, ValueError, AttributeError, RecursionError, struct.error)
KEYS = [1, 2, "a", b"b"]
GIVEN = {"given": ["x", "y", "z"]}


def rows(name: str, count: int = 24) -> tuple[list[Any], Any, Any]:
    rng = np.random.default_rng(0)
    keys, X = [KEYS[i] for i in rng.integers(0, 4, count)], rng.normal(size=(count, 2))
    if name in ("classes", "given", "dictionary", "metrics", "weights"):
        return keys, X, np.array(["x", "y", "z"])[rng.integers(0, 3, count)]
    if name == "widths":
        return keys, X, X[:, 0] > 0
    return keys, X, None if name == "alarms" else X[:, 0]


def when(name: str) -> dict[str, Any]:
    """The time of rows, of models with a clock; always the same."""
    return {"time": np.full(24, 1e9)} if name == "clocks" else {}


@functools.cache
def banks() -> dict[str, bytes]:
    """The files of small banks."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in MODELS.items():
            with ModelBank(model, classes=GIVEN.get(name)) as bank:
                keys, X, y = rows(name)
                bank.learn(keys, X, y, offset={"at": 24}, **when(name))
                if name == "late":
                    bank.predict(keys, X, ids=list(range(24)))
                    bank.learn_labels([3, 4, 99], [0.5, 1.0, 2.0])
                bank.snapshot(os.path.join(folder, name))
            with open(os.path.join(folder, name), "rb") as file:
                found[name] = file.read()
    return found


# ------------------------------------------------------------------------------------------------------------- forging


def change_state(rng: random.Random, data: bytes) -> bytes:
    """The bytes of a model, changed; most with the checksum made right."""
    if data[:4] != MAGIC:
        return forge.forge(rng, data)
    body = bytearray(data[8:])
    how = rng.randrange(6)
    if how == 0:
        body = body[: rng.randrange(len(body))]
    elif how == 1:
        body += bytes(rng.randrange(1, 40))
    elif how == 2:  # a number of the head
        at, size = rng.choice([(0, 1), (4, 4), (16, 4), *((HEAD.size - 8 + i, 1) for i in range(4))])
        body[at : at + size] = rng.randrange(256**size).to_bytes(size, "little")
    elif how == 3:  # sizes of the state
        length = struct.unpack_from("<I", data, HEAD.size - 4)[0]
        at = HEAD.size - 8 + length + 4 * rng.randrange(1, 5)
        body[at : at + 4] = struct.pack("<I", rng.choice([0, 1, 2, 3, 4, 255, 2**16, 2**31, 2**32 - 1]))
    else:  # an aligned number, or any bytes
        at = rng.randrange(len(body))
        new = rng.choice([struct.pack("<d", rng.choice([0.0, -1.0, np.nan, np.inf, 1e300, 5e-324])), rng.randbytes(3)])
        body[at : at + len(new)] = new[: len(body) - at]
    checksum = zlib.crc32(body) if rng.random() < 0.9 else rng.randrange(2**32)
    return MAGIC + checksum.to_bytes(4, "little") + bytes(body)


def change_told(rng: random.Random, text: str) -> Any:
    """The JSON of a bank, changed."""
    told = {"bank": json.loads(text)}
    node, key = rng.choice(forge.places(told))
    how = rng.randrange(5)
    if how == 0:
        del node[key]
    elif how == 1:
        return rng.choice([None, 1, b"{}", "", "[]", text[: rng.randrange(len(text))], "[" * 100_000, text + "x"])
    else:
        node[key] = forge.nearby(rng, node[key]) if how == 2 else forge.odd(rng, 3)
    return json.dumps(told.get("bank"))


def statement(rng: random.Random, file: sqlite3.Connection) -> None:
    """One change inside the database."""
    how = rng.randrange(12)
    keys = [row[0] for row in file.execute("SELECT id FROM models")]
    if how < 4:
        key = rng.choice(keys)
        state = file.execute("SELECT state FROM models WHERE id = ?", (key,)).fetchone()[0]
        file.execute("UPDATE models SET state = ? WHERE id = ?", (change_state(rng, state), key))
    elif how < 6:
        text = file.execute("SELECT value FROM facts WHERE name = 'bank'").fetchone()[0]
        file.execute("UPDATE facts SET value = ? WHERE name = 'bank'", (change_told(rng, text),))
    elif how == 6:
        raw = file.execute("SELECT value FROM facts WHERE name = 'model'").fetchone()[0]
        changed = rng.choice([forge.forge(rng, raw), None, "text", 7, raw[:-1]])
        file.execute("UPDATE facts SET value = ? WHERE name = 'model'", (changed,))
    elif how == 7:
        file.execute("DELETE FROM facts" + rng.choice(["", " WHERE name = 'bank'", " WHERE name = 'model'"]))
    elif how == 8:
        value = rng.choice([0.5, "", b"", 2**63 - 1, "long" * 1000, 3])
        file.execute("UPDATE OR REPLACE models SET key = ? WHERE id = ?", (value, rng.choice(keys)))
    elif how == 9:
        value = rng.choice([0, 0.5, "text", b"", b"GSB\x01", b"\x89GSM\r\n\x1a\n"])
        file.execute("UPDATE models SET state = ? WHERE id = ?", (value, rng.choice(keys)))
    elif how == 10:
        file.execute(rng.choice([
            "DROP TABLE facts", "DROP TABLE models", "PRAGMA application_id = 7", "CREATE TABLE more (a)",
            "ALTER TABLE models RENAME COLUMN state TO other", "CREATE INDEX i ON models (length(state))",
            "CREATE TRIGGER t AFTER UPDATE ON facts BEGIN DELETE FROM models; END",
            "ALTER TABLE models ADD COLUMN extra",
        ]))  # fmt: skip
    else:
        file.execute("DROP TABLE models")
        endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)"
        file.execute(f"CREATE VIEW models AS {endless} SELECT x AS id, x AS key, x AS state FROM c")


def forged(number: int) -> tuple[str, bytes]:
    """The file of a case, the same in every run."""
    rng = random.Random(number)
    name = rng.choice(sorted(MODELS))
    raw = banks()[name]
    if rng.randrange(3) == 0:  # bytes anywhere, most often near the heads of pages
        changed = bytearray(raw)
        for _ in range(rng.choice([1, 1, 2, 8, 64])):
            page = rng.randrange(len(raw) // 4096) * 4096
            at = rng.choice([rng.randrange(100), page + rng.randrange(16), rng.randrange(len(raw))])
            changed[at] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        return name, bytes(changed[: rng.choice([len(raw), len(raw), len(raw), rng.randrange(len(raw))])])
    file = sqlite3.connect(":memory:", isolation_level=None)
    with contextlib.closing(file):
        file.deserialize(raw)
        for _ in range(rng.choice([1, 1, 2])):
            if file.execute("SELECT 1 FROM sqlite_master WHERE type = 'view'").fetchone():
                break  # which never ends
            with contextlib.suppress(*IN_THE_WAY):
                statement(rng, file)
        return name, bytes(file.serialize())


# --------------------------------------------------------------------------------------------------------------- using


def case(number: int) -> str:
    """Open, restore and use it; a ValueError is fine wherever it comes."""
    name, raw = forged(number)
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    path, said = os.path.join(folder, "bank"), []
    try:
        with open(path, "wb") as file:
            file.write(raw)
        with cases.Limited(forge.ROOM + forge.FACTOR * len(raw)), np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for use in random.Random(number).sample((restored, opened, spilled), 2):
                try:
                    use(name, path)
                    said.append("works")
                except ValueError as error:
                    if isinstance(error, UnicodeError) or "must be" not in str(error):
                        raise RuntimeError(f"not a sentence: {error}") from error
                    said.append("refused")
    finally:
        for left in os.listdir(folder):
            os.unlink(os.path.join(folder, left))
        os.rmdir(folder)
    return said[0] if said[0] == said[1] else "in part"


def restored(name: str, path: str) -> None:
    with ModelBank.restore(path, threads=1) as bank:
        work(name, bank)


def opened(name: str, path: str) -> None:
    with ModelBank(MODELS[name], path=path, threads=1, classes=GIVEN.get(name)) as bank:
        work(name, bank)
        bank.commit()


def spilled(name: str, path: str) -> None:
    with ModelBank(MODELS[name], path=path, threads=1, memory=1, classes=GIVEN.get(name)) as bank:
        work(name, bank)


def work(name: str, bank: ModelBank) -> None:
    """Ask, teach, look at and copy all models; what is wrong with one of them does not keep the others."""
    keys, X, y = rows(name)
    problem: ValueError | None = None
    for act in (
        lambda: bank.score(keys, X, unknown="default"),
        lambda: bank.predict(keys, X, unknown="default"),
        lambda: bank.learn(keys, X, y, offset=1, **when(name)),
        lambda: bank.learn_labels([5, 99], [1.0, 2.0]) if name == "late" else None,
        lambda: bank.predict(keys[:2], X[:2], ids=["a", 5]) if name == "late" else None,
        lambda: [(len(bank), key in bank, bank.dump(key), bank.model(key)) for key in bank],
        lambda: bank.put(1, bank.dump(2)),
        lambda: [bank.drop(key) for key in list(bank)[:1]],
        lambda: bank.learn(["new"] * 24, X, y, **when(name)),
    ):
        try:
            act()
        except ValueError as error:
            problem = error
    if problem is not None:
        raise problem


if __name__ == "__main__":
    sys.exit(cases.main("forged files of banks", case, lambda number: forged(number)[0]))
