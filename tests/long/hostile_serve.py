"""Hostile requests: mutated bodies and headers, wrong tokens, tricks with paths, bombs, slow clients, many connections.

    python tests/long/hostile_serve.py --count 100000

The server has tokens. Whatever is sent, it does not crash, answers nothing with 500, lets nobody in, and goes on
serving; a model that no good token has touched keeps its bytes, and one that has learned what was accepted has them
again after `kill -9`. Everything stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import copy
import gzip
import io
import json
import logging
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "serve"))

import load
from mixed_rows import mixed_stream

from gossamer.serve import Client, ServerError
from gossamer.serve.tokens import Tokens

COLUMNS = ["a", "b", "c"]
PIECES = [b"null", b"NaN", b"1e999", b"-0", b"[]", b"{}", b'"', b"\\u0000", b"\xff\xfe", b"[" * 200, b"9" * 400,
          b"true", b'"\\ud800"', b"\r\n", b"\x00", b'{"rows":', b"../", b"%00", b"e-400", b"," * 50,
          b'"0001-01-01T00:00:00+05:00"', b'"9999-12-31T23:59:59-05:00"', b'"1e999"', b'"\xf0\x9f\x98\x80"', b'"$1,0"',
          b'"' + b"x" * 12_000 + b'"', b'"nan"', b'"\\u0000"', b'"' + b"9" * 5000 + b'"', b'""']  # fmt: skip
ARROW = "application/vnd.apache.arrow.stream"
REFUSED = (400, 401, 403, 404, 405, 408, 409, 411, 413, 415, 422, 429, 431, 501, 503)


#: Values of cells that JSON has and nobody expects.
CELLS = [None, True, -0.0, 1e100, -1e100, 5e-324, 2**63, 10**30, "", " ", "nan", "inf", "-1e999", "1e400", "0x10",
         "1_000", "NULL", "\x00", "\u202e", "é" * 9999, "9" * 5000, "1," * 2000, "$" * 50, "0001-01-01T00:00:00+05:00",
         "9999-12-31T23:59:59-05:00", "2024-02-30", "2024-01-01T24:00", "2024-W01-1", "20240101", "1.1.24", "12:00",
         "true", "TRUE", "no", "%s%n", "${jndi:x}", "../../etc/passwd", "'; DROP TABLE journal; --", "<script>",
         1.7976931348623157e308, [], {}, [1], {"a": 1}]  # fmt: skip


def spoil(rng: random.Random, content: dict[str, Any]) -> bytes:
    """Good JSON with some cells, names or labels that nobody expects."""
    made = copy.deepcopy(content)
    for row in made["rows"]:
        for name in rng.sample(sorted(row), rng.choice([0, 1, 1, 3])):
            row[name] = rng.choice(CELLS)
        if rng.random() < 0.05:
            row[rng.choice(["", "size ", "x" * 300, "\x00", "label"])] = rng.choice(CELLS)
        if rng.random() < 0.1:
            del row[rng.choice(sorted(row))]
    for part in ("y", "keys", "ids", "weights"):
        if part in made and rng.random() < 0.1:
            made[part][rng.randrange(len(made[part]))] = rng.choice(CELLS)
    return json.dumps(made).encode()


def mutate(rng: random.Random, data: bytes) -> bytes:
    """Change some bytes: flip, drop, repeat, splice in something nasty, cut."""
    made = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        at = rng.randrange(len(made) + 1)
        how = rng.randrange(6)
        if how == 0 and at < len(made):
            made[at] = rng.randrange(256)
        elif how == 1:
            del made[at : at + rng.randrange(1, 20)]
        elif how == 2:
            made[at:at] = rng.choice(PIECES)
        elif how == 3:
            made[at:at] = made[at : at + rng.randrange(1, 200)]
        elif how == 4 and rng.random() < 0.2:
            del made[at:]
        else:
            other = rng.randrange(len(made) + 1)
            made[at:at] = made[other : other + 30]
    return bytes(made)


def bodies() -> list[tuple[str, str, bytes, str]]:
    """Good requests: method, path, body, type."""
    X = np.random.default_rng(0).normal(size=(4, 3)).round(3)
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in X.tolist()]
    y = ["up", "down", "up", "down"]
    first = "".join(json.dumps({**row, "y": "up"}) + "\n" for row in rows).encode()
    contents = [
        ("learn", {"rows": rows, "y": y, "request": "r"}),
        ("learn", {"rows": X.tolist(), "y": y, "weights": [1, 2, 1, 1]}),
        ("predict", {"rows": rows}),
        ("predict?proba=1", {"row": rows[0]}),
        ("predict", {"rows": rows, "ids": list("abcd")}),
        ("labels", {"ids": list("abcd"), "y": y}),
        ("predict_learn", {"columns": {c: [1.0] for c in COLUMNS}, "y": "up"}),
    ]
    found = [("POST", f"/v1/models/open/{verb}", json.dumps(content).encode(), "") for verb, content in contents]
    keyed = {"rows": X.tolist(), "y": [1.5] * 4, "keys": ["k", 1, 2, "k"]}
    found += [
        ("POST", "/v1/models/keyed/learn", json.dumps(keyed).encode(), ""),
        ("POST", "/v1/models/open/learn", first, "application/x-ndjson"),
        ("POST", "/v1/models/open/versions", b'{"label": "x"}', ""),
        ("POST", "/v1/models/open/rollback", b'{"version": 3}', ""),
        ("PUT", "/v1/models/new", json.dumps({"task": "regression", "learner": "SILKRegressor", "columns": COLUMNS,
         "params": {"kernel": "gaussian:gamma=0.5", "budget": 32, "C": 1.0}, "scale": True}).encode(), ""),
    ]  # fmt: skip
    found += mixed_bodies()
    with contextlib.suppress(ImportError):
        import pyarrow

        table = pyarrow.table({name: X[:, i] for i, name in enumerate(COLUMNS)})
        sink = io.BytesIO()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found += [("POST", "/v1/models/open/predict", sink.getvalue(), ARROW)] * 2
        rows, _ = mixed_stream("classification", 5, 3)
        names = ["size", "shop", "open", "when", "note"]
        table = pyarrow.table({name: [row.get(name) for row in rows] for name in names})
        sink = io.BytesIO()
        with pyarrow.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        found += [("POST", "/v1/models/mixed/predict", sink.getvalue(), ARROW)] * 2
    return found


def mixed_bodies() -> list[tuple[str, str, bytes, str]]:
    """The same for rows with texts, gaps and dates: a model of them, one per key, and new ones of first rows."""
    rows, y = mixed_stream("classification", 4, 2)
    columns = {name: [row.get(name) for row in rows] for name in rows[0]}
    contents = [
        ("mixed/learn", {"rows": rows, "y": y, "request": "r"}),
        ("mixed/learn", {"columns": columns, "y": y}),
        ("mixed/predict", {"rows": rows}),
        ("mixed/predict?proba=1", {"row": rows[0]}),
        ("mixed/predict", {"rows": rows, "ids": list("abcd")}),
        ("mixed/labels", {"ids": list("abcd"), "y": y}),
        ("mixed/predict_learn", {"rows": [[row.get(name) for name in rows[0]] for row in rows], "y": y}),
        ("mixed keyed/learn", {"rows": rows, "y": [1.5] * 4, "keys": ["k", 1, 2, "k"]}),
        ("found/learn", {"rows": rows, "y": y}),
    ]
    found = [
        ("POST", f"/v1/models/{path.replace(' ', '-')}", json.dumps(content).encode(), "") for path, content in contents
    ]
    lines = "".join(json.dumps({**row, "y": "up"}) + "\n" for row in rows).encode()
    kinds = {"shop": "category:places=4,hashed=2", "when": "timestamp", "note": "text:16", "size": "number"}
    recipe = {"kinds": kinds, "encoder": {"timezone": "Europe/Rome", "missing": "fill"}, "learner": "SILKClassifier"}
    return [
        *found,
        ("POST", "/v1/models/mixed/learn", lines, "application/x-ndjson"),
        ("PUT", "/v1/models/new", json.dumps(recipe).encode(), ""),
        ("DELETE", "/v1/models/found", b"", ""),
        ("DELETE", "/v1/models/new", b"", ""),
    ]


class Campaign:
    """What was sent, and what came back."""

    def __init__(self, port: int, seed: int) -> None:
        self.port, self.rng, self.statuses, self.problems = port, random.Random(seed), Counter(), []
        self.closed = 0

    async def talk(self, data: bytes, what: str) -> int | None:
        """Send bytes on a new connection; the status of the answer, None if there is none."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            self.closed += 1
            return None
        try:
            writer.write(data)
            head = await asyncio.wait_for(reader.read(400), 20)
        except (OSError, TimeoutError):
            head = b""
        finally:
            writer.close()
        return self.note(head, what, data)

    def note(self, head: bytes, what: str, data: bytes) -> int | None:
        """Keep the status of an answer."""
        if head[:9] != b"HTTP/1.1 ":
            self.closed += 1
            return None
        status = int(head[9:12])
        self.statuses[what, status] += 1
        if status == 500 or (status not in REFUSED and status not in (100, 200, 201)):
            self.problems.append((what, status, data[:500]))
        return status

    async def many(self, count: int, make, what: str, at_once: int = 32) -> None:
        """Send so many requests, some at a time."""
        left = iter(range(count))

        async def one() -> None:
            for _ in left:
                await self.talk(make(), what)

        await asyncio.gather(*(one() for _ in range(at_once)))
        told = {status: n for (name, status), n in sorted(self.statuses.items()) if name == what}
        print(f"{what}: {told}", flush=True)


async def attack(port: int, tokens: dict[str, str], count: int, seed: int, connections: int) -> Campaign:
    """All that is tried."""
    campaign, good = Campaign(port, seed), bodies()
    rng = campaign.rng

    def body(token: str = "admin") -> bytes:
        method, path, data, kind = rng.choice(good)
        extra = f"authorization: Bearer {tokens[token]}\r\nconnection: close\r\n"
        extra += f"content-type: {kind or 'application/json'}\r\n"
        return load.request(method, path, mutate(rng, data), extra)

    def head() -> bytes:
        whole = body()
        end = whole.index(b"\r\n\r\n")
        return mutate(rng, whole[:end]) + whole[end:]

    def stranger() -> bytes:
        method, path, data, _ = rng.choice(good)
        token = rng.choice(["", "x", tokens["learn"][:-1], tokens["learn"] + "x", "gsm_" + "A" * 43, "\x00", "é" * 100])
        scheme = rng.choice(["Bearer ", "bearer ", "Basic ", ""])
        path = path.replace("open", "guarded")
        return load.request(method, path, data, f"authorization: {scheme}{token}\r\nconnection: close\r\n")

    def trick() -> bytes:
        part = rng.choice(
            ["..", "%2e%2e", "a%00", "%ff", "\\", "guarded", "gossamer.db", "tokens.json", "x" * 3000, ".", "//", "é"]
        )
        path = "/".join(
            [
                "",
                rng.choice(["v1", "page", ""]),
                rng.choice(["models", "..", ""]),
                part,
                rng.choice(["file", "predict", ".."]),
            ]
        )
        verb = rng.choice(["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT", "TRACE"])
        return load.request(verb, path, b"", f"authorization: Bearer {tokens['predict']}\r\nconnection: close\r\n")

    def cells() -> bytes:
        rows, y = mixed_stream("classification", rng.choice([1, 4, 20]), rng.randrange(1000))
        verb, name = rng.choice(["learn", "learn", "predict", "predict_learn"]), rng.choice(["mixed", "mixed", "found"])
        content = {"rows": rows} if verb == "predict" else {"rows": rows, "y": y}
        extra = f"authorization: Bearer {tokens['admin']}\r\nconnection: close\r\n"
        if rng.random() < 0.02:
            return load.request("DELETE", "/v1/models/found", b"", extra)
        return load.request("POST", f"/v1/models/{name}/{verb}", spoil(rng, content), extra)

    bomb = gzip.compress(b"[" + b"1," * 20_000_000 + b"1]", 1)
    await campaign.many(count * 6 // 10, body, "mutated bodies")
    await campaign.many(count * 2 // 10, cells, "strange cells")
    await campaign.many(count * 2 // 10, head, "mutated headers")
    await campaign.many(count // 10, stranger, "wrong tokens")
    await campaign.many(count // 10, trick, "paths")
    let_in = [key for key in campaign.statuses if key[0] == "wrong tokens" and key[1] not in (400, 401, 403)]
    campaign.problems += [("let in", key, b"") for key in let_in]
    extra = f"authorization: Bearer {tokens['admin']}\r\ncontent-encoding: gzip\r\nconnection: close\r\n"
    await campaign.many(20, lambda: load.request("POST", "/v1/models/open/learn", bomb, extra), "bombs", 4)
    await flood(campaign, tokens["predict"], connections)
    return campaign


async def flood(campaign: Campaign, token: str, connections: int) -> None:
    """Open as many connections as the system gives, each with half a request, while one asks for predictions."""
    held, refused = [], 0
    for first in range(0, connections, 200):
        opened = await asyncio.gather(
            *(asyncio.open_connection("127.0.0.1", campaign.port) for _ in range(first, min(first + 200, connections))),
            return_exceptions=True,
        )
        for one in opened:
            if isinstance(one, BaseException):
                refused += 1
                continue
            held.append(one)
            with contextlib.suppress(OSError):
                one[1].write(b"POST /v1/models/open/learn HTTP/1.1\r\nhost: localhost\r\nx: ")
    campaign.statuses["connections held", len(held)] += 1
    for _ in range(20):  # slow clients: a byte now and then
        for _, writer in held[::50]:
            with contextlib.suppress(OSError):
                writer.write(b"y")
        await asyncio.sleep(0.1)
    begun = time.monotonic()
    body = json.dumps({"rows": [[1.0, 2.0, 3.0]]}).encode()
    head = f"authorization: Bearer {token}\r\nconnection: close\r\n"
    while await campaign.talk(load.request("POST", "/v1/models/open/predict", body, head), "after the flood") != 200:
        if time.monotonic() - begun > 60:
            campaign.problems.append(("not served after the flood", 0, b""))
            break
        await asyncio.sleep(0.5)
    for _, writer in held:
        writer.close()


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--connections", type=int, default=10_000)
    options = parser.parse_args()
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # of every connection that the server has closed
    start = time.time()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "data"
        made = Tokens(folder)
        tokens = {scope: made.create(scope, [scope]) for scope in ("predict", "learn", "admin")}
        port = load.free_port()
        process = load.start(
            folder, port, "--limit", "models=50", "--limit", "header_seconds=5", "--limit", "body_seconds=5"
        )
        client = Client(f"http://127.0.0.1:{port}", tokens["admin"])
        X = np.random.default_rng(1).normal(size=(200, 3))
        y = np.where(X[:, 0] > 0, "up", "down")
        for model in ("open", "guarded"):
            client.create(model, columns=COLUMNS, target="y")
            client.learn(model, X, y)
        client.create("keyed", columns=COLUMNS, key="k", task="regression")
        rows, labels = mixed_stream("classification", 100)
        client.create("mixed", target="y", learner="NewtonClassifier")
        client.learn("mixed", rows, labels)
        client.create("mixed-keyed", key="k", task="regression", encoder={})
        before = client.export("guarded")
        campaign = asyncio.run(attack(port, tokens, options.count, options.seed, options.connections))
        assert process.poll() is None, process.stderr.read()[-2000:]
        try:
            after = client.export("guarded")
        except ServerError as error:
            after = str(error).encode()
        if before != after:
            campaign.problems.append(("the guarded model has changed", 0, after[:100]))
        assert client.ready()["status"] == "ready"
        accepted = client.export("mixed")
        client.close()
        load.stop(process, signal.SIGKILL)
        process = load.start(folder, port)
        if client.export("mixed") != accepted:
            campaign.problems.append(("what was accepted is replayed to another model", 0, b""))
        client.close()
        load.stop(process)
    told = Counter()
    for (what, status), count in campaign.statuses.items():
        told[what] += count if what != "connections held" else status
        if status == 500:
            print("500:", what, count)
    for problem in campaign.problems[:10]:
        print(problem)
    summary = ", ".join(f"{count} {what}" for what, count in told.items())
    outcome = "no crash, no 500, nobody let in" if not campaign.problems else f"{len(campaign.problems)} PROBLEMS"
    told_closed = f"{campaign.closed} closed without an answer in {time.time() - start:.0f} s"
    print(f"hostile_serve: {summary}, {told_closed}: {outcome}")
    sys.exit(bool(campaign.problems))


if __name__ == "__main__":
    main()
