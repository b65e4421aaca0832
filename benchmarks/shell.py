"""What the command line costs on top of reading and learning: ``python benchmarks/shell.py``."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import DOCS, Row, add, best_of, centres_stream, machine, progress, report, table

from gossamer import OnlineScaler, SILKClassifier, pipeline, store
from gossamer.cli.checkpoint import SECONDS
from gossamer.kernels import Gaussian
from gossamer.streams import open_stream

FEATURES = 16


def write_csv(path: Path, rows: int) -> None:
    """Two classes that wander, 16 numbers of six digits a row."""
    X, y = centres_stream(rows, FEATURES, seed=0)
    with open(path, "w") as file:
        file.write(",".join([*(f"x{i}" for i in range(FEATURES)), "y"]) + "\n")
        for start in range(0, rows, 10_000):
            part = slice(start, start + 10_000)
            for x, label in zip(X[part].tolist(), y[part].tolist(), strict=True):
                file.write(",".join([*(f"{value:.6g}" for value in x), f"{label:.0f}"]) + "\n")


def command(*arguments: object) -> None:
    """``gossamer ...`` as the shell runs it, start of Python and imports included."""
    subprocess.run([sys.executable, "-m", "gossamer", *map(str, arguments)], check=True)


def whole_runs(rows: list[Row], path: Path, quick: bool) -> None:
    """The command against reading the file and learning the rows in memory."""
    with open_stream(path, "y") as stream:
        chunks = list(stream)
    X = np.concatenate([chunk.X for chunk in chunks])
    y = np.concatenate([chunk.y for chunk in chunks if chunk.y is not None])
    del chunks
    out, mark = path.with_name("out.csv"), path.with_name("mark.gsm")

    def read() -> None:
        with open_stream(path, "y") as stream:
            for _ in stream:
                pass

    def learn() -> None:
        pipeline(OnlineScaler(), SILKClassifier(Gaussian(1 / FEATURES), C=0.5)).predict_learn(X, y)

    progress(f"{len(X):,} rows: reading, learning, gossamer run")
    reading, learning, run, run_out, run_marked = best_of(
        1 if quick else 3, read, learn,
        lambda: command("run", path, "--target", "y", "--quiet"),
        lambda: command("run", path, "--target", "y", "--quiet", "--out", out),
        lambda: command("run", path, "--target", "y", "--quiet", "--checkpoint", mark),
    )  # fmt: skip
    work = f"`gossamer run` on a {len(X):,} x {FEATURES} CSV, SILK, Project(256): all / (reading + learning in memory)"
    add(rows, work, run / (reading + learning), 2.0, 1.5)
    add(rows, "the same with `--out predictions.csv`", run_out / (reading + learning), 3.0, 2.0)
    add(rows, "the same with `--checkpoint` / without", run_marked / run, 1.05, 1.02)


def one_checkpoint(rows: list[Row], path: Path) -> None:
    """How long the work stands still for a checkpoint, of the time between two."""
    mark = path.with_name("mark.gsm")
    content = store.load(mark)
    progress("one checkpoint")
    times = []
    for _ in range(20):
        start = time.perf_counter()
        store.save(content, mark)
        times.append(time.perf_counter() - start)
    share = 100.0 * float(np.median(times)) / SECONDS
    size = os.path.getsize(mark) / 1000
    add(rows, f"one checkpoint ({size:,.0f} kB, fsync) / the {SECONDS:g} s between two", share, 5.0, 1.0, unit=" %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.csv"
        progress("writing the file")
        write_csv(path, 100_000 if quick else 1_000_000)
        whole_runs(rows, path, quick)
        one_checkpoint(rows, path)
    note = f"Best of 3 taken in turns; `gossamer run` with the start of Python and all imports. {machine()}."
    if quick:
        print(table(rows), note, sep="\n\n")
    else:
        report("shell", rows, note, page=DOCS / "performance.md")


if __name__ == "__main__":
    main()
