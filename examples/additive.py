"""A generalized additive model learned online, against splines and stochastic gradients of scikit-learn.

The demand for electricity in New South Wales is predicted a day ahead: at every midnight the 48 half hours of the next
day, from the calendar and from what is known by then; after the day they are learned. Both sides get the same
coordinates and as many settings, tried on the first year, which is not scored.

    GOSSAMER_DATA=... python examples/additive.py        # needs matplotlib; elec2/elec.csv.gz in that folder
    python examples/additive.py                          # without that folder: scikit-learn's diabetes data
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import SGDRegressor
from sklearn.preprocessing import SplineTransformer

from gossamer import AdditiveRegressor, plots
from gossamer.kernels import Matern

DAY, WEEK = 48, 336


@dataclass
class Stream:
    """Rows in order, how many are predicted and learned at once, and how many come before the first that is scored."""

    name: str
    X: np.ndarray
    y: np.ndarray
    names: list[str]
    batch: int
    prefix: int
    differences: list[tuple[int, int]]
    rivals: dict[str, np.ndarray] = field(default_factory=dict)  # predictions that need no model

    def columns(self) -> np.ndarray:
        """The coordinates of our model, for those that do not make them themselves."""
        made = [self.X[:, a] - self.X[:, b] for a, b in self.differences]
        return np.column_stack([self.X, *made])


def electricity(folder: Path, quick: bool) -> Stream:
    """elec2 (Harries 1999): 944 days in order, without dates, so that days are counted from the first; demand and price
    are scaled to [0, 1] in the data."""
    with gzip.open(folder / "elec2" / "elec.csv.gz") as file:
        table = np.genfromtxt(file, delimiter=",", skip_header=1)
    hour, price, demand = 24 * table[:, 0], table[:, 1], table[:, 2]
    day = np.arange(len(demand)) // DAY
    ago = {lag: demand[WEEK - lag : len(demand) - lag] for lag in (DAY, WEEK)}
    old_price = price[WEEK - DAY : len(price) - DAY]
    X = np.column_stack([hour[WEEK:], (day % 7)[WEEK:], (day % 365)[WEEK:], ago[DAY], ago[WEEK], old_price])
    names = ["hour", "day of 7", "day of 365", "demand a day ago", "demand a week ago", "price a day ago"]
    rivals = {"demand a day ago": ago[DAY], "demand a week ago": ago[WEEK]}
    rows = 60 * DAY if quick else len(X)
    rivals = {name: values[:rows] for name, values in rivals.items()}
    prefix = (30 if quick else 365) * DAY
    return Stream("elec2, demand a day ahead", X[:rows], demand[WEEK:][:rows], names, DAY, prefix, [(3, 4)], rivals)


def diabetes() -> Stream:
    """442 patients in no order; the disease a year later, in deviations."""
    data = load_diabetes()
    order = np.random.default_rng(0).permutation(len(data.target))
    X, y = data.data[order], (data.target[order] - 150.0) / 75.0
    rivals = {"the mean of the prefix": np.full(len(y), y[:200].mean())}
    return Stream("scikit-learn's diabetes data", X, y, list(data.feature_names), 4, 200, [], rivals)


class Splines:
    """SplineTransformer + SGDRegressor; the knots are the quantiles of the prefix."""

    def __init__(self, stream: Stream, knots: int, schedule: str, step: float) -> None:
        transformer = SplineTransformer(knots, knots="quantile", extrapolation="constant")
        self.transformer = transformer.fit(stream.columns()[: stream.prefix])
        self.model = SGDRegressor(alpha=1e-6, learning_rate=schedule, eta0=step, random_state=0)

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model.predict(self.transformer.transform(X))

    def partial_fit(self, X: np.ndarray, y: np.ndarray) -> None:
        self.model.partial_fit(self.transformer.transform(X), y)


def falling(t: int) -> float:
    """The schedule that scikit-learn calls "invscaling"."""
    return float(t**-0.25)


@dataclass
class Side:
    """One side of the race: its rows, and a model for each of its settings."""

    name: str
    X: np.ndarray
    make: Callable[..., Any]
    settings: list[tuple[Any, ...]]


def sides(stream: Stream, quick: bool) -> Iterator[Side]:
    """Both choose how finely the curves bend, the size of the steps, and whether it falls as t^-1/4: 36 settings."""
    steps = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    ours = itertools.product((0.05, 0.1, 0.3), ("constant", falling), steps)
    theirs = itertools.product((5, 10, 20), ("constant", "invscaling"), steps)

    def additive(length: float, schedule: Any, C: float) -> AdditiveRegressor:
        return AdditiveRegressor(Matern(1.5, length), schedule=schedule, C=C, reg=1e-6, differences=stream.differences)

    def splines(knots: int, schedule: str, step: float) -> Splines:
        return Splines(stream, knots, schedule, step)

    tried = slice(None, None, 8) if quick else slice(None)
    yield Side("AdditiveRegressor", stream.X, additive, list(ours)[tried])
    yield Side("SplineTransformer + SGDRegressor", stream.columns(), splines, list(theirs)[tried])


def prequential(model: Any, X: np.ndarray, y: np.ndarray, batch: int) -> tuple[np.ndarray, float]:
    """Each batch is predicted, then learned; the predictions, and the seconds it took."""
    predictions, start = np.zeros(len(y)), time.perf_counter()
    for first in range(0, len(y), batch):
        rows = slice(first, first + batch)
        if first:
            predictions[rows] = model.predict(X[rows])
        model.partial_fit(X[rows], y[rows])
    return predictions, time.perf_counter() - start


def tuned(side: Side, stream: Stream) -> tuple[Any, ...]:
    """The settings with the smallest mean absolute error on the last three quarters of the prefix."""

    def error(settings: tuple[Any, ...]) -> float:
        y, end = stream.y[: stream.prefix], stream.prefix
        with np.errstate(all="ignore"):  # some steps are too large for some settings
            predictions, _ = prequential(side.make(*settings), side.X[:end], y, stream.batch)
            found = float(np.abs(predictions - y)[end // 4 :].mean())
        return found if np.isfinite(found) else float("inf")

    return min(side.settings, key=error)


def race(stream: Stream, quick: bool) -> AdditiveRegressor:
    """Print the table; return our model at the end of the stream."""
    scored = slice(stream.prefix, None)
    truth = stream.y[scored]
    print(f"{stream.name}: {len(truth):,} rows scored after {stream.prefix:,} for tuning, {stream.batch} at a time\n")
    print(f"{'':36} {'MAE':>8} {'RMSE':>8} {'seconds':>8}   settings")
    for name, predictions in stream.rivals.items():
        print(line(name, predictions[scored] - truth))
    models = []
    for side in sides(stream, quick):
        settings = tuned(side, stream)
        models.append(side.make(*settings))
        predictions, seconds = prequential(models[-1], side.X, stream.y, stream.batch)
        shown = ", ".join(getattr(value, "__name__", str(value)) for value in settings)
        print(f"{line(side.name, predictions[scored] - truth)} {seconds:8.2f}   {shown}")
    return models[0]


def line(name: str, errors: np.ndarray) -> str:
    return f"{name:36} {np.abs(errors).mean():8.4f} {np.sqrt((errors**2).mean()):8.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rows and settings, to try the script")
    parser.add_argument("--out", type=Path, help="where to write the picture")
    arguments = parser.parse_args()
    folder = os.environ.get("GOSSAMER_DATA")
    if folder:
        stream = electricity(Path(folder), arguments.quick)
    else:
        print("GOSSAMER_DATA is not set: using scikit-learn's diabetes data instead of elec2.\n")
        stream = diabetes()
    model = race(stream, arguments.quick)
    names = stream.names + [f"{stream.names[a]} - {stream.names[b]}" for a, b in stream.differences]
    out = arguments.out
    if out is None:
        out = Path(__file__).with_suffix(".png") if folder and not arguments.quick else Path("out") / "additive.png"
    out.parent.mkdir(exist_ok=True)
    shown = [name.replace(" - demand", "\n- demand") for name in names]
    plots.effects(model, stream.X, names=shown, path=str(out))
    print(f"\n{out}: what the additive model has learned in each coordinate")


if __name__ == "__main__":
    main()
