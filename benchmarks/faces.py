"""What the faces cost on top of the engine: ``python benchmarks/faces.py``."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from harness import DOCS, Row, add, best_of, centres_stream, machine, progress, report, table

from gossamer import Learner, OnlineScaler, SILKClassifier, pipeline
from gossamer.budgets import Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge
from gossamer.rules import Implicit


def sklearn_face(rows: list[Row], quick: bool) -> None:
    """`partial_fit` of batches against the engine on the same prepared rows, many short runs of each in turns."""
    X, y = centres_stream(10_000, 16, seed=0)
    batches = [(X[i : i + 500], y[i : i + 500]) for i in range(0, len(X), 500)]
    progress("partial_fit, 500 rows at a time")
    learners = [Learner(Gaussian(0.05), Hinge(), Implicit(C=1.0, reg=1e-4), Smallest(128)) for _ in range(2)]
    models = [SILKClassifier(Gaussian(0.05), C=1.0, reg=1e-4, budget=128) for _ in range(2)]
    scaler, piped = OnlineScaler(), pipeline(OnlineScaler(), models[1])

    def each(step: Callable[[np.ndarray, np.ndarray], object]) -> Callable[[], None]:
        def run() -> None:
            for batch in batches:
                step(*batch)

        return run

    bare, face, by_hand, pipe = best_of(
        20 if quick else 300,
        each(learners[0].learn),
        each(models[0].partial_fit),
        each(lambda X, y: learners[1].learn(scaler.learn_transform(X), y)),
        each(piped.partial_fit),
    )
    work = "16 features, Gaussian, budget 128, 500 rows at a time: `partial_fit` / the engine's `learn`"
    add(rows, work, face / bare, 1.15, 1.1)
    work = "the same with `pipeline(OnlineScaler(), SILKClassifier(...))` / scaler and engine by hand"
    add(rows, work, pipe / by_hand, 1.3, 1.2)


def scaler(rows: list[Row], quick: bool) -> None:
    """`OnlineScaler.learn_transform` by itself."""
    values = np.random.default_rng(0).normal(size=(100_000 if quick else 1_000_000, 16))
    progress("OnlineScaler")
    (seconds,) = best_of(10, lambda: OnlineScaler().learn_transform(values))
    work = f"`OnlineScaler.learn_transform`, {len(values):,} x 16 float64, million values per second"
    add(rows, work, values.size / seconds / 1e6, 100, 200, faster=True, unit="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows: list[Row] = []
    sklearn_face(rows, quick)
    scaler(rows, quick)
    note = f"One thread, best of 300 (faces) and 10 (scaler) taken in turns within one run. {machine()}."
    if quick:
        print(table(rows), note, sep="\n\n")
    else:
        report("faces", rows, note, page=DOCS / "performance.md")


if __name__ == "__main__":
    main()
