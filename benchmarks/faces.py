"""What the faces cost on top of the engine: ``python benchmarks/faces.py``."""

from __future__ import annotations

import argparse

import numpy as np
from harness import Row, add, best_of, centres_stream, machine, progress, report, table

from gossamer import Learner, OnlineScaler, SILKClassifier, pipeline
from gossamer.budgets import Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge
from gossamer.rules import Implicit


def sklearn_face(rows: list[Row], quick: bool) -> None:
    """`partial_fit` of batches against the engine on the same prepared rows."""
    X, y = centres_stream(20_000 if quick else 200_000, 16, seed=0)
    batches = [(X[i : i + 500], y[i : i + 500]) for i in range(0, len(X), 500)]
    repeats = 2 if quick else 15
    progress(f"partial_fit, {len(batches)} batches of 500 rows")

    def engine() -> None:
        learner = Learner(Gaussian(0.05), Hinge(), Implicit(C=1.0, reg=1e-4), Smallest(128))
        for batch in batches:
            learner.learn(*batch)

    def estimator() -> None:
        model = SILKClassifier(Gaussian(0.05), C=1.0, reg=1e-4, budget=128)
        for batch in batches:
            model.partial_fit(*batch)

    def scaled() -> None:
        model = pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.05), C=1.0, reg=1e-4, budget=128))
        for batch in batches:
            model.partial_fit(*batch)

    bare, face, pipe = best_of(repeats, engine, estimator, scaled)
    work = f"{len(X):,} x 16, Gaussian, budget 128, 500 rows at a time: `partial_fit` / the engine's `learn`"
    add(rows, work, face / bare, 1.15, 1.1)
    add(rows, "the same, `pipeline(OnlineScaler(), ...)` / the engine's `learn` of raw rows", pipe / bare, 2.0, 1.5)


def scaler(rows: list[Row], quick: bool) -> None:
    """`OnlineScaler.learn_transform` by itself."""
    values = np.random.default_rng(0).normal(size=(100_000 if quick else 1_000_000, 16))
    progress("OnlineScaler")
    (seconds,) = best_of(3, lambda: OnlineScaler().learn_transform(values))
    work = f"`OnlineScaler.learn_transform`, {len(values):,} x 16 float64, million values per second"
    add(rows, work, values.size / seconds / 1e6, 100, 200, faster=True, unit="")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows: list[Row] = []
    sklearn_face(rows, quick)
    scaler(rows, quick)
    note = f"One thread, best of 15 (faces) and 3 (scaler) taken in turns within one run. {machine()}."
    if quick:
        print(table(rows), note, sep="\n\n")
    else:
        report("faces", rows, note)


if __name__ == "__main__":
    main()
