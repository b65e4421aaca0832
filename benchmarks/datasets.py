"""The data of the benchmarks and experiments, from the folder that GOSSAMER_DATA names; none of it is shipped.

Rows come in the order of their file. ``in_time`` says whether that order means something: elsewhere, shuffle.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.io import loadmat
from sklearn.datasets import fetch_openml, load_digits, load_svmlight_file


@dataclass(frozen=True)
class Dataset:
    """Rows, what to predict (-1 and +1, digits, a number, or 1 where a series is anomalous), what the order means."""

    name: str
    X: np.ndarray
    y: np.ndarray
    task: str  # "binary", "multiclass", "regression" or "novelty"
    in_time: bool = False

    def shuffled(self, seed: int) -> Dataset:
        """The same rows in a random order."""
        order = np.random.default_rng(seed).permutation(len(self.X))
        return replace(self, X=self.X[order], y=self.y[order])

    def first(self, rows: int) -> Dataset:
        """The first so many rows."""
        return replace(self, X=self.X[:rows], y=self.y[:rows])


def folder() -> Path | None:
    """Where the data is, None if GOSSAMER_DATA does not say."""
    named = os.environ.get("GOSSAMER_DATA")
    return Path(named) if named and Path(named).is_dir() else None


def _file(*parts: str) -> Path:
    data = folder()
    if data is None:
        raise FileNotFoundError("GOSSAMER_DATA does not name a folder with the data sets")
    return data.joinpath(*parts)


def mnist(test: bool = False, quick: bool = False) -> Dataset:
    """28 x 28 digits in [0, 1], float32: from GOSSAMER_DATA, else by the network; ``quick`` is content with the 8 x 8
    digits of scikit-learn."""
    if folder() is not None and _file("mnist").is_dir():
        stem = "t10k" if test else "train"
        with gzip.open(_file("mnist", f"{stem}-images-idx3-ubyte.gz")) as file:
            pixels = np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784)
        with gzip.open(_file("mnist", f"{stem}-labels-idx1-ubyte.gz")) as file:
            digits = np.frombuffer(file.read(), np.uint8, offset=8)
        return Dataset("MNIST", pixels.astype(np.float32) / np.float32(255), digits.astype(np.int64), "multiclass")
    if quick:
        small = load_digits()
        return Dataset("digits", (small.data / 16).astype(np.float32), small.target.astype(np.int64), "multiclass")
    whole = fetch_openml("mnist_784", version=1, as_frame=False)
    part = slice(60_000, None) if test else slice(60_000)
    pixels, digits = whole.data[part].astype(np.float32), whole.target[part].astype(np.int64)
    return Dataset("MNIST", pixels / np.float32(255), digits, "multiclass")


def two_halves(digits: Dataset) -> Dataset:
    """The digits 0-4 (+1) against 5-9 (-1)."""
    return replace(digits, name=f"{digits.name} 0-4 / 5-9", y=np.where(digits.y < 5, 1.0, -1.0), task="binary")


def usps(test: bool = False) -> Dataset:
    """16 x 16 digits in [0, 1], float32."""
    import h5py

    with h5py.File(_file("usps", "usps.h5")) as file:
        part = file["test" if test else "train"]
        return Dataset("USPS", part["data"][:], part["target"][:].astype(np.int64), "multiclass")


def _sparse(name: str, file: str, features: int, task: str = "binary", group: str = "libsvm") -> Dataset:
    rows, y = load_svmlight_file(str(_file(group, file)), n_features=features)
    return Dataset(name, rows.toarray(), y.astype(np.float64), task)


def _matrix(name: str, file: str, task: str = "binary", group: str = "libsvm") -> Dataset:
    table = loadmat(str(_file(group, file)))["data"].astype(np.float64)
    return Dataset(name, np.ascontiguousarray(table[:, 1:]), np.ascontiguousarray(table[:, 0]), task)


def ijcnn1() -> Dataset:
    """49,990 x 22, in the order of a machine that runs."""
    return _sparse("ijcnn1", "ijcnn1.trn.bz2", 22)


def a9a() -> Dataset:
    """32,561 x 123 binary features of a census."""
    return _sparse("a9a", "a9a.gz", 123)


def german() -> Dataset:
    """1,000 x 24."""
    return _sparse("german", "german.gz", 24)


def svmguide3() -> Dataset:
    """1,243 x 21."""
    return _matrix("svmguide3", "svmguide3.mat")


def spambase() -> Dataset:
    """4,601 x 57 word frequencies, not scaled and sorted by class: shuffle."""
    return _matrix("spambase", "spambase.mat")


def elec2() -> Dataset:
    """45,312 half-hours of an electricity market: does the price go up (+1)? As half an hour ago: 85.3 %."""
    with gzip.open(_file("elec2", "elec.csv.gz")) as file:
        table = np.genfromtxt(file, delimiter=",", skip_header=1)
    return Dataset("elec2", np.ascontiguousarray(table[:, :-1]), np.where(table[:, -1] > 0, 1.0, -1.0), "binary", True)


def sea() -> Dataset:
    """50,000 x 3 made-up rows with four concepts and a tenth of the labels wrong."""
    with gzip.open(_file("sea", "SEA_training_data.csv.gz")) as file:
        X = np.loadtxt(file, delimiter=",")
    with gzip.open(_file("sea", "SEA_training_class.csv.gz")) as file:
        y = np.loadtxt(file)
    return Dataset("SEA", X, np.where(y > 0, 1.0, -1.0), "binary", True)


def abalone() -> Dataset:
    """4,177 x 8; the rings of a shell."""
    return _sparse("abalone", "abalone.trn.bz2", 8, "regression", "regression")


def mackey_glass() -> Dataset:
    """1,385 x 6 values of the series, and the one to come; the rows are not in time order."""
    return _matrix("Mackey-Glass", "mg.mat", "regression", "regression")


def skab() -> Iterator[Dataset]:
    """34 series of 8 sensors on a pump, each with its anomalies marked."""
    with tarfile.open(_file("skab", "skab_data.tar.gz")) as archive:
        for member in sorted(archive.getmembers(), key=lambda member: member.name):
            if not member.name.endswith(".csv") or "anomaly-free" in member.name:
                continue
            file = archive.extractfile(member)
            assert file is not None
            table = np.loadtxt(file, delimiter=";", skiprows=1, usecols=range(1, 10))
            name = member.name.removeprefix("data/").removesuffix(".csv")
            yield Dataset(f"SKAB {name}", np.ascontiguousarray(table[:, :8]), table[:, 8], "novelty", True)


def nab() -> Iterator[Dataset]:
    """58 series of one value, with windows around their anomalies."""
    with tarfile.open(_file("nab", "nab_data_labels.tar.gz")) as archive:
        file = archive.extractfile("labels/combined_windows.json")
        assert file is not None
        windows = json.load(file)
        for name in sorted(windows):
            file = archive.extractfile(f"data/{name}")
            assert file is not None
            lines = [line.split(",") for line in io.TextIOWrapper(file, "utf-8").read().splitlines()[1:]]
            times = np.array([stamp.strip() for stamp, _ in lines], "datetime64[us]")
            y = np.zeros(len(lines))
            for first, last in windows[name]:
                y[(times >= np.datetime64(first)) & (times <= np.datetime64(last))] = 1
            values = np.array([[float(value)] for _, value in lines])
            yield Dataset(f"NAB {name.removesuffix('.csv')}", values, y, "novelty", True)


#: Those with one table of rows, by name.
TABLES: dict[str, Callable[[], Dataset]] = {
    "MNIST": mnist,
    "ijcnn1": ijcnn1,
    "a9a": a9a,
    "elec2": elec2,
    "SEA": sea,
    "spambase": spambase,
    "svmguide3": svmguide3,
    "german": german,
    "abalone": abalone,
    "Mackey-Glass": mackey_glass,
}
