"""Many models on one machine: the speed of a `ModelBank`, and a million models. The first half of ``make bench-scale``.

The opponent is a loop over native learners, one for each key and built beforehand, that hands each its rows in order,
already grouped: what compiled code takes for the same rows without keys, states or scores to put back in place.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from harness import Row, add, machine, progress, report, table

from gossamer import SILKRegressor, _core
from gossamer._engine.native import compiled_parts, rounding
from gossamer.bank import ModelBank
from gossamer.kernels import Gaussian

FEATURES = 20
MODEL = SILKRegressor(Gaussian(0.05), budget=100)
PAGE = Path(__file__).parent.parent / "docs" / "bank.md"


def stream(keys: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows for keys, in the order given, and a target that is not linear."""
    X = np.random.default_rng(seed).normal(size=(len(keys), FEATURES)).astype(np.float32)
    return keys, X, np.sin(X[:, 0].astype(np.float64)) * X[:, 1]


def looped(keys: np.ndarray, X: np.ndarray, y: np.ndarray, threads: int) -> float:
    """Seconds of the loop over native learners, the keys dealt out to the threads by rows."""
    learner = MODEL._start()
    order = np.argsort(keys, kind="stable")
    X, y = np.ascontiguousarray(X[order]), y[order]
    ends = np.concatenate([[0], np.cumsum(np.unique(keys, return_counts=True)[1])])
    program, parts = learner.kernel.program(FEATURES), compiled_parts(learner)
    settings: dict[str, Any] = {"average": "none", "gram": False, "epsilon": rounding(X), "features": FEATURES}
    cores = [_core.Learner32(kernel=program, **settings, **parts) for _ in range(len(ends) - 1)]
    out = np.empty((len(X), 1))

    def part(thread: int) -> None:
        for k in range(thread, len(cores), threads):
            rows = slice(ends[k], ends[k + 1])
            cores[k].learn(X[rows], y[rows], None, None, None, out[rows], None)

    with ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        list(pool.map(part, range(threads)))
        return time.perf_counter() - start


def banked(keys: np.ndarray, X: np.ndarray, y: np.ndarray, threads: int) -> tuple[float, ModelBank]:
    """Seconds of one call to a new bank."""
    bank = ModelBank(MODEL, threads=threads)
    start = time.perf_counter()
    bank.learn(keys, X, y)
    return time.perf_counter() - start, bank


def speed(rows: list[Row], quick: bool) -> str:
    """10,000 keys with 40 rows each, mixed; the same number of rows with Zipf's keys; one row per key and call."""
    count, each = (1000, 40) if quick else (10_000, 40)
    rng = np.random.default_rng(0)
    progress(f"{count:,} keys with {each} rows each")
    uniform = stream(rng.permutation(np.repeat(np.arange(count), each)))
    zipf = stream(rng.zipf(1.2, count * each) % count)
    named = (np.char.add("sensor-", uniform[0].astype(str)), *uniform[1:])
    times: dict[str, float] = {}
    for _ in range(2 if quick else 5):  # in turns, so that a slow moment hits all
        for name, job in {
            "loop 1": lambda: looped(*uniform, threads=1),
            "bank 1": lambda: banked(*uniform, threads=1)[0],
            "loop 2": lambda: looped(*uniform, threads=2),
            "bank 2": lambda: banked(*uniform, threads=2)[0],
            "names 2": lambda: banked(*named, threads=2)[0],
            "zipf loop 2": lambda: looped(*zipf, threads=2),
            "zipf 2": lambda: banked(*zipf, threads=2)[0],
        }.items():
            times[name] = min(times.get(name, np.inf), job())
    total = count * each
    work = f"{count:,} keys x {each} rows, 20 features float32, SILK, budget 100"
    add(rows, f"{work}, 2 threads", total / times["bank 2"] / 1000, 150, 300, faster=True, unit="k rows/s")
    fair = min(times["loop 2"], times["loop 1"])  # a busy machine may make two threads slower than one
    add(rows, "the same / the rows of each key handed to native learners in a loop", times["bank 2"] / fair, 1.5, 1.2)
    add(rows, "the same, one thread each", times["bank 1"] / times["loop 1"], 1.5, 1.2)
    skewed = times["zipf 2"] / times["bank 2"]
    add(rows, "keys from Zipf's law (exponent 1.2) / uniform ones, as many rows", skewed, 2, 1.5)
    _, bank = banked(*uniform, threads=2)
    single = [rng.permutation(count) for _ in range(3)]
    calls = [(keys, *stream(keys)[1:]) for keys in single]
    start = time.perf_counter()
    for call in calls:
        bank.learn(*call)
    touched = (time.perf_counter() - start) / (3 * count)
    data = bank.dump(0)
    start = time.perf_counter()
    for key in range(1000):
        bank.dump(key)
    dumped = (time.perf_counter() - start) / 1000
    start = time.perf_counter()
    for key in range(1000):
        bank.put(key, data)
    put = (time.perf_counter() - start) / 1000
    add(rows, "a model of 40 points as bytes: `dump`", dumped * 1e6, 50, 20, unit=" us")
    add(rows, "the same: `put`", put * 1e6, 50, 20, unit=" us")
    return (
        f"Calls with one row for each of {count:,} keys cost {touched * 1e6:.1f} us per row. With keys as text: "
        f"{total / times['names 2'] / 1000:.0f}k rows/s. With Zipf's keys the bank takes "
        f"{times['zipf 2'] / times['zipf loop 2']:.2f} of the loop's time. "
        f"A model of 40 points takes {len(data):,} bytes."
    )


def million(rows: list[Row], quick: bool, memory: int) -> str:
    """A million keys that come back in another order each time, in less memory than they need."""
    count, batch, passes = (20_000, 5000, 3) if quick else (1_000_000, 50_000, 3)
    if quick:
        memory = min(memory, 4 * 2**20)
    progress(f"{count:,} keys in {memory / 2**20:.0f} MB, {passes} passes")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with ModelBank(MODEL, memory=memory, path=Path(folder) / "bank.sqlite", threads=2) as bank:
            start = time.perf_counter()
            for turn in range(passes):
                for keys in np.array_split(rng.permutation(count), count // batch):
                    bank.learn(*stream(keys, seed=turn))
                bank.commit(turn)
                progress(f"pass {turn + 1}: {(turn + 1) * count / (time.perf_counter() - start) / 1000:.1f}k rows/s")
            took = time.perf_counter() - start
            resident = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**10
            sizes = [len(bank.dump(int(key))) for key in rng.integers(0, count, 1000)]
            inside = len(bank._shelf.states)
            stored = (Path(folder) / "bank.sqlite").stat().st_size / count
    work = f"{count:,} keys, {passes} rows each at random, at most {memory / 2**20:.0f} MB of models in memory"
    add(rows, f"{work}: resident memory grew by", resident, 4096, 1.5 * memory / 2**20, unit=" MB")
    return (
        f"The {count:,} models were learned, spilled and committed at {passes * count / took / 1000:.1f}k rows/s; "
        f"{inside:,} were in memory at the end. A model of {passes} points takes {np.mean(sizes):.0f} bytes, "
        f"{stored:.0f} in the file."
    )


def heavy(quick: bool) -> str:
    """A key with a million rows beside a million keys with one row."""
    count = 20_000 if quick else 1_000_000
    progress(f"a key with {count:,} rows beside {count:,} keys with one")
    keys, X, y = stream(np.random.default_rng(0).permutation(np.concatenate([np.full(count, -1), np.arange(count)])))
    start = time.perf_counter()
    bank = ModelBank(MODEL, threads=2)
    for rows in np.array_split(np.arange(len(keys)), max(1, len(keys) // 200_000)):
        bank.learn(keys[rows], X[rows], y[rows])
    took = time.perf_counter() - start
    assert len(bank) == count + 1
    assert bank.model(-1).n_seen_ == count
    return f"A key with {count:,} rows beside {count:,} keys with one row: {2 * count / took / 1000:.0f}k rows/s."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--memory", type=int, default=256, help="megabytes for a million models")
    arguments = parser.parse_args()
    rows: list[Row] = []
    quick, memory = arguments.quick, arguments.memory * 2**20
    last: list[Row] = []
    spilled = million(last, quick, memory)  # first, while nothing else has made the process grow
    notes = [speed(rows, quick), spilled, heavy(quick)]
    rows += last
    note = f"Best of 5 in turns. {' '.join(notes)} {machine()}."
    if quick:
        print(table(rows), note, sep="\n\n")
    else:
        report("scale_bank", rows, note, PAGE)


if __name__ == "__main__":
    main()
