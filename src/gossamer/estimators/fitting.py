"""``fit``: passes over all rows, each in an order of its own; the mean over the last pass is the result."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from gossamer import _checks
from gossamer._sparse import SparseRows
from gossamer._typing import Array, Floats
from gossamer.clock import read_times
from gossamer.estimators import averaging, inputs


@dataclass(frozen=True)
class Part:
    """Some rows of a `Table` in the order in which they are learned; ``ids`` are their places in it."""

    X: Any
    y: Array | None
    weights: Floats | None
    ids: Array
    whole_y: Array | None  # of the whole table
    time: Floats | None


@dataclass(frozen=True)
class Table:
    """The validated rows of ``fit``; ``order``: the order of learning, None for the order of the rows."""

    X: Any
    y: Array | None
    weights: Floats | None
    order: Array | None
    time: Floats | None = None

    @property
    def rows(self) -> int:
        return inputs.count(self.X)

    @property
    def features(self) -> int:
        """The numbers that a row keeps; of sparse rows their mean."""
        if isinstance(self.X, SparseRows):
            return 1 + len(self.X.values) // len(self.X)
        return 1 if isinstance(self.X, list) else int(self.X.shape[1])

    def part(self, rows: slice) -> Part:
        """The rows of a slice of the order."""
        place: Any = rows if self.order is None else self.order[rows]
        y, weights = (None if values is None else values[place] for values in (self.y, self.weights))
        X = [self.X[i] for i in np.arange(self.rows)[place]] if isinstance(self.X, list) else self.X[place]
        time = None if self.time is None else self.time[place]
        return Part(X, y, weights, np.arange(self.rows)[place], self.y, time)


def fit(estimator: Any, X: Any, y: Array | None, sample_weight: Any, time: Any = None) -> None:
    """Make the ``n_passes`` passes of an estimator that has learned nothing yet. A clock runs through the rows once, in
    their order, and the last hypothesis is the result: the mean of older ones would not have forgotten."""
    weights = None if sample_weight is None else np.asarray(sample_weight)
    if weights is not None and weights.dtype.kind in "biuf" and not weights.any():
        raise _checks.wrong(estimator, "sample_weight", "above zero for some row", sample_weight)
    check_parameters(estimator)
    rng = check_random_state(estimator.random_state)
    X = inputs.check(estimator._start(), X)
    rows = inputs.count(X)
    if y is not None and len(y) != rows:
        raise _checks.wrong(estimator, "y", f"a vector with one entry per row ({rows})", y.shape)
    weights = _checks.weights(estimator, sample_weight, rows)
    estimator._all_rows = X
    if estimator.half_life is not None or time is not None:
        if estimator.n_passes != 1:
            raise _checks.wrong(estimator, "n_passes", "1 with half_life: time passes once", estimator.n_passes)
        estimator._start().elapse(time, rows)
        estimator._pass(Table(X, y, weights, None, read_times(estimator, time, rows)).part(slice(None)))
        return
    for number in range(1, estimator.n_passes + 1):
        if number > 1:
            estimator._rehearses = True
        table = Table(X, y, weights, rng.permutation(rows) if estimator.shuffle else None)
        _pass(estimator, table, average=estimator.average == "fit" and number == estimator.n_passes)


def _pass(estimator: Any, table: Table, average: bool) -> None:
    """One pass; optionally its result is the mean of the hypotheses of its second half (`averaging`)."""
    first = averaging.first_averaged(table.rows, table.features) if average else table.rows
    estimator._pass(table.part(slice(first)))
    if first >= table.rows:
        return
    loss = estimator.learner_.loss
    estimator.average = True
    estimator.learner_ = averaging.averaging(estimator.learner_, estimator._start(loss))
    levels = estimator._pass(table.part(slice(first, None)))
    estimator.average = "fit"
    estimator.learner_ = averaging.replace_by_mean(
        estimator.learner_, estimator._start(loss), table.rows - first, levels
    )


def check_parameters(estimator: Any) -> None:
    """Check the parameters of ``fit``."""
    _checks.whole(estimator, "n_passes", estimator.n_passes, 1)
    _checks.one_of(estimator, "shuffle", estimator.shuffle, [False, True])
    seed = estimator.random_state  # checked without making a generator of it, which takes long
    known = seed is None or seed is np.random or isinstance(seed, np.random.RandomState)
    if not known and not (isinstance(seed, Integral) and 0 <= int(seed) < 2**32):
        raise _checks.wrong(estimator, "random_state", "an int in [0, 2**32), a NumPy RandomState or None", seed)
