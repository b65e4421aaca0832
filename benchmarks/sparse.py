"""Sparse rows: 100,000 rows of a million features with 50 non-zeros each, one pass, 256 points: time, memory, error.

Every model runs in a process of its own, which makes its rows in chunks of 1,000, so that the peak of its memory is
that of learning. A narrower stream of the same kind, where dense rows fit, and a9a (if GOSSAMER_DATA is set) hold
sparse rows to the errors of dense ones.

    python benchmarks/sparse.py [--rows 100000] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import gossamer
from gossamer.kernels import Gaussian, Linear, Polynomial

FEATURES, NON_ZEROS, CHUNK, POINTS = 10**6, 50, 1000, 256
MODELS: dict[str, Any] = {
    "SILK, Gaussian": lambda: gossamer.SILKClassifier(Gaussian(0.5), budget=POINTS),
    "SILK, linear": lambda: gossamer.SILKClassifier(Linear(), budget=POINTS),
    "NORMA, polynomial": lambda: gossamer.NORMAClassifier(Polynomial(2), budget=POINTS),
    "projecting, Gaussian": lambda: gossamer.OnlineClassifier(Gaussian(0.5), budget=f"project:{POINTS}"),
    "Newton, linear": lambda: gossamer.NewtonClassifier(Linear(), budget=POINTS),
}


def chunks(rows: int, features: int, seed: int = 0) -> Iterator[tuple[csr_array, Any]]:
    """Rows like texts: column j comes with a probability of about 1 / j, rows have the norm 1; a linear concept of all
    columns labels them."""
    rng = np.random.default_rng(seed)
    concept = rng.normal(size=features)
    for _ in range(0, rows, CHUNK):
        columns = (features ** rng.random((CHUNK, NON_ZEROS))).astype(np.int64) - 1
        values = rng.exponential(size=(CHUNK, NON_ZEROS))
        values /= np.sqrt((values * values).sum(axis=1, keepdims=True))
        starts = np.arange(0, CHUNK * NON_ZEROS + 1, NON_ZEROS)
        X = csr_array((values.ravel(), columns.ravel(), starts), shape=(CHUNK, features))
        X.sum_duplicates()
        yield X, np.where(X @ concept > 0, 1, -1)


def run(name: str, rows: int, features: int, dense: bool, send: Any) -> None:
    """Learn a stream in this process; sends seconds, peak megabytes beyond those of the imports, and the error."""
    model = MODELS[name]()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, wrong = 0.0, 0
    for X, y in chunks(rows, features):
        start = time.process_time()
        scores = model.predict_learn(X.toarray() if dense else X, y)
        seconds += time.process_time() - start
        wrong += int(((scores > 0) != (y > 0)).sum())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    send.send({"seconds": seconds, "peak MB": peak / 1024, "own MB": (peak - before) / 1024, "error": wrong / rows})


def alone(name: str, rows: int, features: int, dense: bool = False) -> dict[str, float]:
    """`run` in a new process."""
    context = multiprocessing.get_context("spawn")
    receive, send = context.Pipe(False)
    process = context.Process(target=run, args=(name, rows, features, dense, send))
    process.start()
    found: dict[str, float] = receive.recv()
    process.join()
    return found


def a9a() -> dict[str, dict[str, float]]:
    """Every model over a9a, from its LIBSVM file, dense and sparse."""
    from gossamer.streams import open_stream

    path = os.path.join(os.environ["GOSSAMER_DATA"], "libsvm", "a9a.gz")
    found: dict[str, dict[str, float]] = {}
    for name, make in MODELS.items():
        found[name] = {}
        for form, sparse in (("dense", False), ("sparse", True)):
            model, wrong, rows, seconds = make(), 0, 0, 0.0
            for chunk in open_stream(path, n_features=123, sparse=sparse):
                start = time.process_time()
                scores = model.predict_learn(chunk.X, chunk.y)
                seconds += time.process_time() - start
                wrong, rows = wrong + int(((scores > 0) != (chunk.y > 0)).sum()), rows + len(chunk)
            found[name] |= {f"{form} error": wrong / rows, f"{form} seconds": seconds}
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--json", metavar="FILE", help="write the figures too")
    options = parser.parse_args()
    print(f"{options.rows:,} rows, {FEATURES:,} features, {NON_ZEROS} non-zeros, {POINTS} points", flush=True)
    print(f"{'':24}{'seconds':>9}{'peak MB':>9}{'own MB':>8}{'error':>8}")
    wide = {}
    for name in MODELS:
        wide[name] = found = alone(name, options.rows, FEATURES)
        print(
            f"{name:24}{found['seconds']:9.2f}{found['peak MB']:9.0f}{found['own MB']:8.0f}{found['error']:8.4f}",
            flush=True,
        )
    rows = min(options.rows, 20_000)
    print(f"\n{rows:,} rows, 2,000 features: error and seconds of sparse and of dense rows")
    narrow = {}
    for name in MODELS:
        sparse, full = alone(name, rows, 2000), alone(name, rows, 2000, dense=True)
        narrow[name] = {"sparse": sparse, "dense": full}
        print(
            f"{name:24}{sparse['error']:8.4f}{full['error']:8.4f}{sparse['seconds']:9.2f}{full['seconds']:9.2f}",
            flush=True,
        )
    real = a9a() if os.environ.get("GOSSAMER_DATA") else None
    if real is None:
        print("\na9a: GOSSAMER_DATA is not set", file=sys.stderr)
    else:
        print("\na9a, 32,561 rows, 123 features: the same")
        for name, found in real.items():
            print(f"{name:24}" + "".join(f"{found[key]:9.4f}" for key in ("sparse error", "dense error"))
                  + "".join(f"{found[key]:9.2f}" for key in ("sparse seconds", "dense seconds")))  # fmt: skip
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"wide": wide, "narrow": narrow, "a9a": real}, file, indent=1)


if __name__ == "__main__":
    main()
