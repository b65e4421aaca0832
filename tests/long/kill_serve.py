"""Kill -9 a server at random moments under load: nothing acknowledged is lost, nothing is learned twice, and the model
has the bytes of one that was never stopped.

    python tests/long/kill_serve.py --count 200
    python tests/long/kill_serve.py --count 50 --mixed      # rows with texts, gaps and dates

Several connections send blocks of rows to one model, some also ask for predictions by id and send the labels later.
Each block has a request id and is sent again until it is acknowledged, through every restart. In the end the blocks, in
the order of their entries, are learned by an estimator in this process: the served model must have the same bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "serve"))

import load
import mixed_rows

from gossamer import from_bytes
from gossamer.serve import AsyncClient, ServerError
from gossamer.serve.recipes import Recipe, make_model

COLUMNS = ["a", "b", "c", "d"]
RECIPE = {"learner": "SILKClassifier", "columns": COLUMNS, "params": {"budget": 32}}


class Blocks:
    """The blocks of a stream, by number, and the entries that they became."""

    recipe = RECIPE

    def __init__(self, seed: int) -> None:
        self.seed, self.next, self.entries = seed, 0, {}
        self.repeated = 0

    def block(self, number: int) -> tuple[list[Any], list[str]]:
        """The rows and labels of a block: one row, or some."""
        rng = np.random.default_rng([self.seed, number])
        X = rng.normal(size=(int(rng.choice([1, 1, 7, 40])), len(COLUMNS)))
        return X.tolist(), np.where(X[:, 0] * X[:, 1] > 0, "up", "down").tolist()

    def learn(self) -> bytes:
        """The model of all acknowledged blocks, in the order of their entries, learned here."""
        model = make_model(Recipe(**RECIPE), "classification", len(COLUMNS))
        for _, (X, y) in sorted(self.entries.items()):
            model.predict_learn(np.array(X), np.array(y))
        return model.to_bytes()


class MixedBlocks(Blocks):
    """The same, of rows that an encoder reads. The first has 40 rows: they decide what the columns are."""

    recipe: ClassVar = {"learner": "SILKClassifier", "columns": mixed_rows.COLUMNS, "params": {"budget": 32}}

    def block(self, number: int) -> tuple[list[Any], list[str]]:
        """The rows and labels of a block: one row, or some."""
        rng = np.random.default_rng([self.seed, number])
        count = 40 if number == 0 else int(rng.choice([1, 1, 7, 40]))
        rows, y = mixed_rows.mixed_stream("classification", count, int(rng.integers(2**32)))
        return [{name: row.get(name) for name in mixed_rows.COLUMNS} for row in rows], y

    def learn(self) -> bytes:
        """The model of all acknowledged blocks, in the order of their entries, learned here."""
        calls = [block for _, block in sorted(self.entries.items())]
        return mixed_rows.learn_here({**self.recipe, "columns": None}, "classification", calls)


async def send(client: AsyncClient, blocks: Blocks, until: asyncio.Event) -> None:
    """Send blocks, each until it is acknowledged."""
    while not until.is_set():
        number = blocks.next
        blocks.next += 1
        X, y = blocks.block(number)
        if number % 5 == 4 and blocks.entries:  # predict by id, and send the labels later, in another order
            ids = [f"{number}-{i}" for i in range(len(X))]
            body = {"rows": X, "ids": ids, "request": f"ask {number}"}
            shown = await again(client, "predict", body, blocks)
            order = np.random.default_rng(number).permutation(len(X)).tolist()
            told = {"ids": [ids[i] for i in order], "y": [y[i] for i in order], "request": f"labels {number}"}
            answer = await again(client, "labels", told, blocks)
            assert answer["rows"] == len(X)
            assert answer["unknown"] == []
            assert answer["predictions"] == [shown["predictions"][i] for i in order]
            blocks.entries[answer["seq"]] = ([X[i] for i in order], told["y"])
        else:
            body = {"rows": X, "y": y, "request": f"learn {number}"}
            answer = await again(client, "learn", body, blocks)
            assert answer["rows"] == len(X)
            assert answer["seq"] not in blocks.entries, "two blocks have one entry"
            blocks.entries[answer["seq"]] = (X, y)


async def again(client: AsyncClient, verb: str, body: dict, blocks: Blocks) -> dict:
    """Send a request until it is acknowledged; what the client does by itself, for as long as it takes."""
    data = json.dumps(body).encode()
    while True:
        try:
            answer = await client._call("POST", f"/v1/models/m/{verb}", data)
            blocks.repeated += bool(answer.get("repeated"))
            return answer
        except (OSError, EOFError):
            await asyncio.sleep(0.01)
        except ServerError as error:
            if error.status != 503:  # it starts
                raise
            await asyncio.sleep(0.02)


async def campaign(folder: Path, count: int, seed: int, forks: load.Forks, mixed: bool = False) -> dict[str, int]:
    """Kill the server so many times; returns what came of it."""
    rng, blocks, port = random.Random(seed), (MixedBlocks if mixed else Blocks)(seed), load.free_port()
    options = ["--limit", "snapshot_rows=400", "--limit", "snapshots=2"]
    process, until = forks.start(folder, port, *options), asyncio.Event()
    async with AsyncClient(f"http://127.0.0.1:{port}", retries=0, timeout=20) as client:
        await client.create("m", **blocks.recipe)
        first = {"rows": blocks.block(0)[0], "y": blocks.block(0)[1], "request": "learn 0"}
        blocks.entries[(await again(client, "learn", first, blocks))["seq"]] = blocks.block(0)
        blocks.next = 1
        senders = [asyncio.create_task(send(client, blocks, until)) for _ in range(8)]
        for _ in range(count):
            await asyncio.sleep(rng.uniform(0.02, 0.5))
            process.send_signal(signal.SIGKILL)
            await asyncio.to_thread(load.stop, process)
            assert not any(sender.done() for sender in senders), "a sender failed"
            process = await asyncio.to_thread(forks.start, folder, port, *options)
        until.set()
        await asyncio.gather(*senders)
        served = await client.export("m")
        rows = (await client.describe("m"))["learned"]
    load.stop(process)
    learned = sum(len(X) for X, _ in blocks.entries.values())
    assert rows == learned, f"{rows} rows are in the model, {learned} were acknowledged"
    assert from_bytes(served).to_bytes() == blocks.learn(), "the model has other bytes"
    return {"blocks": len(blocks.entries), "rows": rows, "repeated": blocks.repeated}


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mixed", action="store_true", help="rows with texts, gaps and dates")
    options = parser.parse_args()
    start = time.time()
    with tempfile.TemporaryDirectory() as folder, load.Forks() as forks:
        found = asyncio.run(campaign(Path(folder) / "data", options.count, options.seed, forks, options.mixed))
    told = f"{options.count} kills in {time.time() - start:.0f} s, {found['blocks']} blocks of {found['rows']} rows"
    again = f"{found['repeated']} sent again after they had been learned"
    print(f"kill_serve: {told} acknowledged, {again}: none lost, none twice, the same bytes")


if __name__ == "__main__":
    main()
