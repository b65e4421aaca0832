"""What all benchmarks share: one thread, timing as ratios within one run, and the tables the pages include."""

from __future__ import annotations

import gzip
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import gossamer
from gossamer import _core

ONE_THREAD = threadpool_limits(limits=1)  # of every linear algebra library, for as long as the run lasts
RESULTS = Path(__file__).parent / "results"
README = Path(__file__).parent.parent / "README.md"
DOCS = README.parent / "docs"


@dataclass
class Row:
    """One line of a benchmark table: the work, what was measured, and what it must and should reach."""

    work: str
    measured: str
    must: str
    aim: str
    value: float
    reached: bool


def best_of(repeats: int, *jobs: Callable[[], object]) -> list[float]:
    """The best time of each job in seconds, the jobs taking turns so that a slow moment hits all of them."""
    times = [float("inf")] * len(jobs)
    for _ in range(repeats):
        for i, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            times[i] = min(times[i], time.perf_counter() - start)
    return times


def mnist() -> tuple[np.ndarray, np.ndarray, str]:
    """60,000 x 784 float32 in [0, 1] and digits: MNIST where GOSSAMER_DATA has it, else made-up images."""
    folder = Path(os.environ.get("GOSSAMER_DATA", "")) / "mnist"
    images = folder / "train-images-idx3-ubyte.gz"
    if os.environ.get("GOSSAMER_DATA") and images.exists():
        with gzip.open(images) as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
        with gzip.open(folder / "train-labels-idx1-ubyte.gz") as file:
            digits = np.frombuffer(file.read(), np.uint8, offset=8)
        return pixels.astype(np.float32) / np.float32(255), digits.astype(np.int64), "MNIST"
    rng = np.random.default_rng(0)
    digits = rng.integers(0, 10, 60_000)
    prototypes = np.clip(rng.normal(0.0, 0.5, (10, 784)), 0, 1).astype(np.float32)
    noise = np.clip(rng.normal(0.0, 0.35, (60_000, 784)), 0, 1).astype(np.float32)
    return np.minimum(prototypes[digits] + noise, 1), digits, "made-up images of MNIST's shape"


def centres_stream(rows: int, features: int, seed: int, centres: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, each a mixture of Gaussians around centres that wander: not linear, and it drifts."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-2, 2, (centres, features))
    X, y = np.empty((rows, features)), np.empty(rows)
    for start in range(0, rows, 1000):
        part = slice(start, min(start + 1000, rows))
        places += rng.normal(0, 0.02, places.shape)
        which = rng.integers(0, centres, part.stop - part.start)
        X[part] = places[which] + rng.normal(0, 0.9, (len(which), features))
        y[part] = np.where(which % 2, 1.0, -1.0)
    return X, y


def progress(text: str) -> None:
    """A line for people who wait."""
    print(f"... {text}", file=sys.stderr, flush=True)


def machine() -> str:
    """What this ran on."""
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    version = re.sub(r"(\d+\.\d+)\..*dev.*", r"\1 in development", gossamer.__version__)
    return (
        f"{name}, {os.cpu_count()} cores, code path {_core.isa()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Gossamer {version}"
    )


def add(
    rows: list[Row], work: str, value: float, must: float, aim: float, *, faster: bool = False, unit: str | None = None
) -> None:
    """One ratio: lower is better, or with ``faster`` higher."""
    sign, usual = (">=", "x faster") if faster else ("<=", "")
    unit = usual if unit is None else unit
    reached = value >= must if faster else value <= must
    measured = f"{value:.1f}{unit}" if faster and unit else f"{value:.2f}{unit}"
    rows.append(Row(work, measured, f"{sign} {must:g}{unit}", f"{sign} {aim:g}{unit}", value, reached))


def table(rows: Iterable[Row]) -> str:
    """The rows in Markdown."""
    lines = ["| work | measured | must | aim |", "|---|---|---|---|"]
    for row in rows:
        mark = "" if row.reached else " **(not reached)**"
        lines.append(f"| {row.work} | **{row.measured}**{mark} | {row.must} | {row.aim} |")
    return "\n".join(lines)


def publish(name: str, text: str, page: Path = README) -> None:
    """Write a text as results/<name>.md, and put it into the README (or a page) between its markers."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text(text + "\n")
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    shown = page.read_text()
    if begin in shown and end in shown:
        head, rest = shown.split(begin, 1)
        page.write_text(f"{head}{begin}\n{text}\n{end}{rest.split(end, 1)[1]}")


def report(name: str, rows: list[Row], note: str, page: Path = README) -> None:
    """Print the table, write it as JSON, and publish it."""
    text = f"{table(rows)}\n\n{note}"
    print(text)
    RESULTS.mkdir(exist_ok=True)
    record = {"machine": machine(), "note": note, "rows": [asdict(row) for row in rows]}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    publish(name, text, page)
