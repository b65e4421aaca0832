"""Sweeps run in parallel, in threads and on Dask, and find what one process finds."""

import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

from gossamer import OnlineScaler, SILKClassifier, pipeline
from gossamer.kernels import Gaussian
from gossamer.synthetic import rotating_xor

SETTINGS = ["silk:C=0.1", "silk:C=1"]


def search():
    """The mean scores of a small grid, pipelines and kernels as parameters."""
    X, y = rotating_xor(600, seed=0, turns=1)
    model = pipeline(OnlineScaler(), SILKClassifier(Gaussian(1.0), budget=40))
    grid = {"silkclassifier__kernel": [Gaussian(0.3), Gaussian(3.0)], "silkclassifier__C": [0.1, 1.0]}
    found = GridSearchCV(model, grid, cv=3).fit(X, y)
    return found.cv_results_["mean_test_score"], found.best_params_["silkclassifier__kernel"]


def compare(path, setting):
    """The line of one setting in the table of `gossamer compare`, without the seconds."""
    options = ["--target", "y", "--quiet", "--learners", setting]
    command = [sys.executable, "-m", "gossamer", "compare", str(path), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[1].split()[:-1]


def sweep(path):
    return joblib.Parallel()(joblib.delayed(compare)(path, setting) for setting in SETTINGS)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    X, y = rotating_xor(500, seed=1, turns=1)
    place = tmp_path_factory.mktemp("sweeps") / "data.csv"
    place.write_text("a,b,y\n" + "".join(f"{a},{b},{c:g}\n" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)))
    return place


@pytest.fixture(scope="module")
def alone(path):
    """What one process finds."""
    return search(), sweep(path)


def assert_found(found, wanted):
    assert np.array_equal(found[0][0], wanted[0][0])
    assert found[0][1] == wanted[0][1]
    assert found[1] == wanted[1]
    assert [line[0] for line in found[1]] == SETTINGS


def test_threads(path, alone):
    """The core releases the GIL: threads are the cheapest way to use all processors of one machine."""
    with joblib.parallel_config(backend="threading", n_jobs=2):
        assert_found((search(), sweep(path)), alone)


@pytest.mark.filterwarnings("ignore")  # Dask's own, about its ports and pandas
def test_dask(path, alone):
    """The same on the workers of a cluster."""
    distributed = pytest.importorskip("distributed", reason="Dask is not tested: gossamer[dask] is not installed")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
    with cluster, distributed.Client(cluster), joblib.parallel_config(backend="dask"):
        assert_found((search(), sweep(path)), alone)
