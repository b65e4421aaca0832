"""`OnlineScaler` for sparse rows: the deviation of every feature, in time that goes with the non-zeros.

The numbers of a feature rest while it is 0, and the rounds in which it was 0 are joined to them when it comes again.
Where a batch ends makes no difference to that, so any split into batches gives the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._sparse import SparseRows
from gossamer._typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class Resting:
    """The mean and the squares of each feature as they were after round ``touched``, the last in which it was not 0.

    ``round`` counts the rounds since the sparse rows began, when all rows before weighed ``origin``; ``keep`` is the
    share of its weight that the past keeps with each.

    >>> from scipy.sparse import csr_array
    >>> rows = SparseRows.of(csr_array([[2.0, 0.0], [0.0, 1.0], [4.0, 0.0]]))
    >>> known, scaled = Resting.begin(np.zeros(2), np.zeros(2), 0.0, keep=1.0).learn(rows, divide=True)
    >>> known.settle()[0].round(3).tolist(), scaled.round(3).tolist()
    ([2.0, 0.333], [0.0, 2.0, 2.449])
    """

    mean: Floats
    squares: Floats
    touched: Ints
    origin: float
    keep: float
    round: int = 0

    @classmethod
    def begin(cls, mean: Floats, squares: Floats, weight: float, keep: float) -> Resting:
        """Go on from the statistics of all rows before."""
        return cls(mean.copy(), squares.copy(), np.zeros(len(mean), dtype=np.int64), float(weight), keep)

    def learn(self, rows: SparseRows, divide: bool) -> tuple[Resting, Any]:
        """The numbers after these rows, and their values, each divided by the deviation of the rows up to its own."""
        mean, squares, touched = self.mean.copy(), self.squares.copy(), self.touched.copy()
        values = np.empty_like(rows.values)
        _core.scale_sparse_rows(rows.arrays, values, mean, squares, touched, self.origin, self.round, self.keep, divide)
        return replace(self, mean=mean, squares=squares, touched=touched, round=self.round + len(rows)), values

    def settle(self) -> tuple[Floats, Floats]:
        """The mean and the squares of each feature now."""
        mean, squares, touched = self.mean.copy(), self.squares.copy(), self.touched.copy()
        _core.rest_features(mean, squares, touched, self.origin, self.round, self.keep)
        return mean, squares

    def to_stored(self) -> dict[str, Any]:
        """As a file has it."""
        return dict(vars(self))


def from_stored(owner: object, found: Any, width: int) -> Resting:
    """Validate the numbers of a file."""
    names = {"mean", "squares", "touched", "origin", "keep", "round"}
    if not isinstance(found, dict) or found.keys() != names:
        raise _checks.wrong(owner, "resting_", f"a dict of {sorted(names)}", found)
    rounds = _checks.whole(owner, "resting_.round", found["round"], 0)
    origin = _checks.number(owner, "resting_.origin", found["origin"], 0.0, np.inf, "left")
    keep = _checks.number(owner, "resting_.keep", found["keep"], 0.0, 1.0, "right")
    for name, dtype in (("mean", np.float64), ("squares", np.float64), ("touched", np.int64)):
        values: Any = found[name]
        fits = isinstance(values, np.ndarray) and values.dtype == dtype and values.shape == (width,)
        if not fits or not np.isfinite(values).all() or (name != "mean" and bool((values < 0).any())):
            raise _checks.wrong(owner, f"resting_.{name}", f"{width} finite numbers", values)
    if int(found["touched"].max()) > rounds:
        raise _checks.wrong(owner, "resting_.touched", f"rounds up to {rounds}", int(found["touched"].max()))
    return Resting(found["mean"], found["squares"], found["touched"], origin, keep, rounds)
