"""The work of the contest: data sets with a part to choose settings on and a part that is scored.

Everybody gets the same rows, each scaled by what was known when it came. ``GOSSAMER_DATA`` has all of them
but those that are made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import datasets
import numpy as np
from datasets import Dataset
from scipy.spatial.distance import pdist

from gossamer import OnlineScaler
from gossamer.synthetic import rotating_xor, rotating_xor_error


@dataclass(frozen=True)
class Series:
    """One stream: rows, targets, and rows known before it starts (to choose landmarks and widths from); and, if rows
    are scaled, what they were before, for those who need no scaling."""

    X: np.ndarray
    y: np.ndarray
    sample: np.ndarray
    raw: np.ndarray | None = None

    @property
    def scale(self) -> float:
        """1 / the median squared distance between known rows: the usual first guess of a Gaussian's gamma."""
        distances = pdist(self.sample[:500].astype(np.float64), "sqeuclidean")
        median = float(np.median(distances))
        return 1.0 / median if median > 0 else 1.0

    def first(self, rows: int) -> Series:
        """The first so many rows."""
        return Series(self.X[:rows], self.y[:rows], self.sample, None if self.raw is None else self.raw[:rows])

    def unscaled(self) -> Series:
        """With the rows as they were before scaling."""
        return self if self.raw is None else replace(self, X=self.raw)


@dataclass(frozen=True)
class Work:
    """A task on streams: some to choose settings on, and those that are scored, each by a model that starts anew.

    ``warm`` is the share of a stream that is learned but not scored, ``unit`` what 1.0 of a target is in the data.
    """

    name: str
    task: str  # "binary", "multiclass", "regression", "quantile" or "novelty"
    tuning: list[Series]
    scored: list[Series]
    note: str
    warm: float = 0.0
    unit: float = 1.0
    level: float = 0.5  # of the quantile
    classes: tuple[float, ...] = ()
    batch: int = 50  # rows, for those that learn in batches

    @property
    def metric(self) -> str:
        """What is measured."""
        return {"regression": "RMSE", "quantile": f"pinball loss at {self.level:g}", "novelty": "AUC"}.get(
            self.task, "error"
        )

    @property
    def higher(self) -> bool:
        """Whether a higher number is the better one."""
        return self.task == "novelty"

    @property
    def wide(self) -> bool:
        """Whether a row is long."""
        return self.tuning[0].X.shape[1] > 100

    @property
    def longest(self) -> int:
        """The rows of the longest stream."""
        return max(len(stream.y) for stream in self.scored)

    @property
    def about(self) -> str:
        """Rows and columns in words."""
        rows, streams = sum(len(stream.y) for stream in self.scored), len(self.scored)
        several = f" in {streams} streams" if streams > 1 else ""
        return f"{rows:,} x {self.scored[0].X.shape[1]}{several}, {self.note}; batches of {self.batch}"

    def first(self, rows: int | None) -> Work:
        """With the first rows of each stream, and half as many to choose settings on; None is all."""
        if rows is None or self.task == "novelty":  # whose anomalies come late
            return self
        tuning = [stream.first(rows // 2) for stream in self.tuning]
        return replace(self, tuning=tuning, scored=[stream.first(rows) for stream in self.scored])

    def measured(self, predictions: list[np.ndarray], rows: int | None = None) -> float:
        """The score of one list of predictions for each scored stream (for their first rows), a mean over streams."""
        pairs = zip(self.scored, predictions, strict=True)
        return measured(self, [(one.y[:rows], guess[:rows]) for one, guess in pairs])


def measured(work: Work, pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> float:
    """The mean over streams of the score of targets and predictions."""
    return float(np.mean([_one(work, y, guess) for y, guess in pairs]))


def _one(work: Work, y: np.ndarray, guess: np.ndarray) -> float:
    warm = int(work.warm * len(y))
    y, guess = y[warm:], guess[warm:]
    if work.task == "novelty":
        return area(y, guess)
    if work.task in ("binary", "multiclass"):
        return float(np.mean(guess != y))
    away = work.unit * (y - guess)
    if work.task == "quantile":
        return float(np.mean(np.maximum(work.level * away, (work.level - 1) * away)))
    return float(np.sqrt(np.mean(away**2)))


def area(truth: np.ndarray, scores: np.ndarray) -> float:
    """The area under the ROC curve; a score that is not finite counts as the lowest of all."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth > 0, np.nan_to_num(scores, nan=-1e300, posinf=1e300, neginf=-1e300)))


# ------------------------------------------------------------------------------------------------------ how it is made


def _scaled(X: np.ndarray, by: np.ndarray) -> np.ndarray:
    """Mean 0 and deviation 1, as in the rows ``by``."""
    deviation = by.std(axis=0)
    return (X - by.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)


def table(
    data: Dataset, task: str, prefix: int, *, rows: int | None = None, scale: bool = True, orders: int = 1,
    level: float = 0.5, name: str | None = None,
) -> Work:  # fmt: skip
    """A table: its first rows choose the settings, those after are scored (in so many orders if they have none)."""
    if not data.in_time:
        data = data.shuffled(0)
    X, y = data.X[:rows], data.y[:rows]
    raw = X
    if scale:  # a feature that rested for long jumps by many deviations when it moves
        X = np.clip(OnlineScaler().learn_transform(X), -10, 10)
    unit, classes = 1.0, tuple(np.unique(y).tolist())
    if task in ("regression", "quantile"):
        unit = float(y[:prefix].std())
        y, classes = (y - y[:prefix].mean()) / unit, ()
    sample, rest = X[:prefix], np.arange(prefix, len(X))
    ways = [rest] + [np.random.default_rng(seed).permutation(rest) for seed in range(1, orders)]
    order = "in the order of the file" if data.in_time else "shuffled"
    tuning = [Series(sample, y[:prefix], sample, raw[:prefix])]
    scored = [Series(X[way], y[way], sample, raw[way]) for way in ways]
    note = f"{order}; settings from {prefix:,} rows before"
    return Work(
        name or data.name, task, tuning, scored, note, unit=unit, level=level, classes=classes, batch=_batch(len(rest))
    )


def _batch(rows: int) -> int:
    """Fewer where streams are short."""
    return 500 if rows > 10_000 else 50


def rotating(rows: int, turn: int = 5000) -> Work:
    """Two classes that turn around each other; settings from another seed."""
    made = []
    for seed, count in ((1, rows // 5), (0, rows)):
        X, y = rotating_xor(count, seed=seed, turns=count / turn)
        made.append(Series(X, y, rotating_xor(500, seed=seed + 2, turns=0)[0]))
    best = f"{rotating_xor_error():.4f}"
    note = f"a turn every {turn:,} rows (the best rule there is errs in {best}); settings from another seed"
    return Work("rotating XOR", "binary", made[:1], made[1:], note, classes=(-1.0, 1.0), batch=_batch(rows))


def wave(rows: int) -> Work:
    """A sine with noise that grows with x, made here: the work of ``--quick``."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (rows, 2))
    y = 10 + 4 * (np.sin(2 * X[:, 0]) + 0.3 * (1 + np.abs(X[:, 1])) * rng.normal(size=rows))
    return table(Dataset("wave", X, y, "regression", True), "quantile", rows // 4, level=0.9)


def strangers(rows: int) -> Work:
    """Points of a ring, and now and then one that is not: the work of ``--quick``."""
    made = []
    for seed in (1, 0, 2):
        rng = np.random.default_rng(seed)
        angle, y = rng.uniform(0, 2 * np.pi, rows), (rng.uniform(size=rows) < 0.05).astype(np.float64)
        X = np.where(y > 0, 0.3, 1.0)[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
        X += 0.1 * rng.normal(size=X.shape)
        made.append(Series(X, y, X[: rows // 7]))
    return Work("ring", "novelty", made[:1], made[1:], "a ring and strangers inside; settings from another", 0.15)


def windows(series: Iterable[Dataset], name: str, lags: int, longest: int) -> Work:
    """Series with anomalies, a row being the values of now and the last few steps. Those without anomalies and the long
    ones are left out, every sixth is for the settings; the first 15 % are learned, but not scored."""
    made = []
    for one in series:
        warm = int(0.15 * len(one.y))
        if len(one.y) > longest or not 0 < one.y[warm + lags :].sum() < len(one.y) - warm - lags:
            continue
        X = _scaled(one.X, one.X[:warm])
        X = np.clip(X, -50, 50)  # a sensor that did not move in the first part
        X = np.hstack([X[lags - lag : len(X) - lag] for lag in range(lags + 1)])
        made.append(Series(np.ascontiguousarray(X), one.y[lags:], np.ascontiguousarray(X[:warm])))
    scored = [one for index, one in enumerate(made) if index % 6]
    note = f"{lags + 1} steps in a row; settings from {len(made) - len(scored)} other series"
    return Work(name, "novelty", made[::6], scored, note, 0.15)


#: What `make bench` does, by name.
WORKS: dict[str, Callable[[], Work]] = {
    "MNIST": lambda: table(datasets.mnist(), "multiclass", 4000, rows=44_000, scale=False),
    "MNIST 0-4 / 5-9": lambda: table(datasets.two_halves(datasets.mnist()), "binary", 4000, rows=44_000, scale=False),
    "ijcnn1": lambda: table(datasets.ijcnn1(), "binary", 5000),
    "a9a": lambda: table(datasets.a9a(), "binary", 5000, scale=False),
    "elec2": lambda: table(datasets.elec2(), "binary", 5000),
    "SEA": lambda: table(datasets.sea(), "binary", 5000),
    "rotating XOR": lambda: rotating(40_000),
    "abalone": lambda: table(datasets.abalone(), "regression", 1000, orders=5),
    "abalone, upper decile": lambda: table(
        datasets.abalone(), "quantile", 1000, orders=5, level=0.9, name="abalone, upper decile"
    ),
    "Mackey-Glass": lambda: table(datasets.mackey_glass(), "regression", 400, orders=10),
    "SKAB": lambda: windows(datasets.skab(), "SKAB", 0, 2000),
    "NAB": lambda: windows(datasets.nab(), "NAB", 4, 5000),
}

#: What the tests do: seconds, without data.
QUICK: dict[str, Callable[[], Work]] = {
    "rotating XOR": lambda: rotating(1000, 500),
    "digits": lambda: table(_digits(), "multiclass", 150, rows=500, scale=False),
    "wave": lambda: wave(500),
    "ring": lambda: strangers(200),
}


def _digits() -> Dataset:
    from sklearn.datasets import load_digits

    small = load_digits()
    return Dataset("digits", (small.data / 16).astype(np.float32), small.target.astype(np.int64), "multiclass")
