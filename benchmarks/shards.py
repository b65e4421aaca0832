"""What data-parallel shards cost in accuracy: ``GOSSAMER_DATA=... python benchmarks/shards.py``.

Rows are dealt at random to 1, 2, 4 or 8 models, each makes one pass over its share, and `gossamer.merge` makes one
model of them with the budget of one. The error is that on rows that none has seen. C is tuned for one shard.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from harness import machine, progress, publish
from sklearn.base import clone

from gossamer import OnlineScaler, SILKClassifier, SILKRegressor, merge, pipeline
from gossamer.budgets import Project
from gossamer.kernels import Gaussian, Linear

PAGE = Path(__file__).parent.parent / "docs" / "capacity.md"
COUNTS = (1, 2, 4, 8)


def cases(quick: bool) -> list[tuple[str, datasets.Dataset, int, Any]]:
    """What, rows, how many of them are learned, and the model."""

    def scaled(model: Any) -> Any:
        return pipeline(OnlineScaler(), model)

    elec = scaled(SILKClassifier(Gaussian(0.5) + 0.1 * Linear(), budget=Project(256)))
    machines = scaled(SILKClassifier(Gaussian(0.3), reg=1e-6, budget=Project(512)))
    rings = scaled(SILKRegressor(Gaussian(0.1) + 0.1 * Linear(), fit_intercept=True, budget=Project(128)))
    digits = SILKClassifier(Gaussian(0.02), reg=1e-5, budget=Project(256))
    found = [
        ("ijcnn1, shuffled", datasets.ijcnn1().shuffled(0), 40_000, machines),
        ("elec2, shuffled", datasets.elec2().shuffled(0), 36_000, elec),
        ("elec2, in time, the last fifth predicted", datasets.elec2(), 36_000, elec),
        ("abalone, mean absolute error", datasets.abalone().shuffled(0), 3_000, rings),
        ("MNIST, ten classes", datasets.mnist(), 50_000, digits),
    ]
    return [(name, data.first(4000), 3000, model) for name, data, _, model in found[:2]] if quick else found


def tuned(data: datasets.Dataset, learned: int, model: Any) -> Any:
    """The model with the C that is best for one shard, on the last fifth of the rows to learn."""
    part, best = replace(data, X=data.X[:learned], y=data.y[:learned]), {}
    name = "C" if "C" in model.get_params() else f"{model.steps[-1][0]}__C"
    for C in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        best[C] = errors(part, learned * 4 // 5, clone(model).set_params(**{name: C}), 1)[0]
    return clone(model).set_params(**{name: min(best, key=lambda C: best[C])})


def errors(data: datasets.Dataset, learned: int, model: Any, shards: int) -> tuple[float, float, float, float]:
    """The error of the merged model, the mean error of its parts, the share of the norm lost, and seconds to merge."""
    which = np.random.default_rng(0).integers(0, shards, learned)
    X, y = data.X[:learned], data.y[:learned]
    parts = [clone(model).partial_fit(X[which == shard], y[which == shard]) for shard in range(shards)]
    start = time.perf_counter()
    merged, error, norm = merge(parts)
    seconds = time.perf_counter() - start

    def away(part: Any) -> float:
        predicted = part.predict(data.X[learned:])
        wrong = np.abs(predicted - data.y[learned:]) if data.task == "regression" else predicted != data.y[learned:]
        return float(np.mean(wrong))

    return away(merged), float(np.mean([away(part) for part in parts])), error / norm, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    lines = ["| data | " + " | ".join(f"{count} shard{'s' * (count > 1)}" for count in COUNTS) + " |"]
    lines.append("|---" * (1 + len(COUNTS)) + "|")
    slowest = 0.0
    for name, data, learned, model in cases(quick):
        progress(name)
        model = tuned(data, learned, model)
        cells = []
        for count in COUNTS:
            merged, alone, lost, seconds = errors(data, learned, model, count)
            slowest = max(slowest, seconds)
            shown = "{:.3f}" if data.task == "regression" else "{:.1%}"
            rest = f" ({shown.format(alone)}; {lost:.2f})" if count > 1 else ""
            cells.append(f"**{shown.format(merged)}**{rest}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    note = (
        "Error of the merged model on rows not learned; in brackets, the mean of its shards by themselves, and the "
        "share of the norm of their mean that the projection lost. "
        f"The slowest merge took {slowest:.1f} s. {machine()}."
    )
    text = "\n".join([*lines, "", note])
    print(text)
    if not quick:
        publish("shards", text, PAGE)


if __name__ == "__main__":
    main()
