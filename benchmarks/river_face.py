"""The river face beside river's own linear model, on the same dict rows: part of ``make bench``."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import river
from harness import RESULTS, Row, add, best_of, centres_stream, machine, progress, report, table
from river import linear_model

from gossamer.kernels import Gaussian
from gossamer.river import NORMAClassifier, SILKClassifier

Stream = list[tuple[dict[str, float], bool]]


def dict_rows(count: int) -> Stream:
    """Two classes that drift, 16 features."""
    X, y = centres_stream(count, 16, seed=1)
    names = [f"x{j:02}" for j in range(16)]
    return [(dict(zip(names, row, strict=True)), label > 0) for row, label in zip(X.tolist(), y.tolist(), strict=True)]


def predict_and_learn(model: Any, rows: Stream) -> float:
    """What progressive validation does, without a metric's time; returns the share of errors."""
    errors = 0
    for x, y in rows:
        errors += model.predict_one(x) != y
        model.learn_one(x, y)
    return errors / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows = dict_rows(2_000 if quick else 50_000)
    makers: dict[str, Callable[[], Any]] = {
        "SILKClassifier": lambda: SILKClassifier(Gaussian(0.05), C=1.0, reg=0.01, budget=128),
        "NORMAClassifier": lambda: NORMAClassifier(Gaussian(0.05), budget=128),
        "LogisticRegression": lambda: linear_model.LogisticRegression(),
    }
    progress(f"{len(rows):,} dict rows: {', '.join(makers)}")
    errors = {name: predict_and_learn(make(), rows) for name, make in makers.items()}
    jobs = [lambda make=make: predict_and_learn(make(), rows) for make in makers.values()]
    seconds = dict(zip(makers, best_of(1 if quick else 5, *jobs), strict=True))
    results: list[Row] = []
    for name in ("SILKClassifier", "NORMAClassifier"):
        work = f"`predict_one` + `learn_one`, 16 features, {name}, budget 128 / river's LogisticRegression"
        add(results, work, seconds[name] / seconds["LogisticRegression"], 1.0, 0.8)
    each = [f"{name} {1e6 * seconds[name] / len(rows):.1f} us, {errors[name]:.1%} errors" for name in makers]
    note = (
        f"Per row: {'; '.join(each)}. {len(rows):,} rows of a drifting mixture, one thread, best of 5 taken in turns "
        f"within one run. {machine()}, river {river.__version__}."
    )
    if quick:
        print(table(results), note, sep="\n\n")
    else:
        report("river_face", results, note, page=RESULTS.parents[1] / "docs" / "river.md")


if __name__ == "__main__":
    main()
