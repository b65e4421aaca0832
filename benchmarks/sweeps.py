"""A grid search in one process, in threads and on Dask: ``python benchmarks/sweeps.py``; needs gossamer[dask]."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np
from distributed import Client, LocalCluster
from harness import centres_stream, machine, progress, publish
from sklearn.model_selection import GridSearchCV

from gossamer import OnlineScaler, SILKClassifier, pipeline
from gossamer.kernels import Gaussian

PAGE = Path(__file__).parent.parent / "docs" / "sweeps.md"
GRID = {
    "silkclassifier__kernel": [Gaussian(gamma) for gamma in (0.01, 0.03, 0.1)],
    "silkclassifier__C": [0.1, 0.3, 1.0, 3.0],
}


@contextlib.contextmanager
def dask() -> Iterator[None]:
    """Two workers on this machine."""
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    X, y = centres_stream(3_000 if quick else 100_000, 16, seed=0)
    ways = {
        "one processor": contextlib.nullcontext,
        "two threads": lambda: joblib.parallel_config(backend="threading", n_jobs=2),
        "two processes": lambda: joblib.parallel_config(backend="loky", n_jobs=2),
        "Dask, two workers": dask,
    }
    model = pipeline(OnlineScaler(), SILKClassifier(budget=256))
    lines, scores, alone = ["| where | seconds | times as fast |", "|---|---|---|"], None, 0.0
    for name, way in ways.items():
        progress(name)
        with way():  # the start of workers is not part of a search
            GridSearchCV(model, GRID, cv=3).fit(X[:600], y[:600])
            start = time.perf_counter()
            found = GridSearchCV(model, GRID, cv=3, refit=False).fit(X, y)
            seconds = time.perf_counter() - start
        alone = alone or seconds
        lines.append(f"| {name} | {seconds:.1f} | {alone / seconds:.2f} |")
        scores = found.cv_results_["mean_test_score"] if scores is None else scores
        assert np.array_equal(scores, found.cv_results_["mean_test_score"]), name
    settings = f"12 settings, 3 folds, {len(X):,} x 16 rows, budget 256"
    text = "\n".join([*lines, "", f"`GridSearchCV` of {settings}; the workers had started. {machine()}."])
    print(text)
    if not quick:
        publish("sweeps", text, PAGE)


if __name__ == "__main__":
    main()
