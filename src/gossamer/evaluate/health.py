"""Warn about predictions that are not finite, absurdly large, or all the same: once, with the reason."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from gossamer.estimators.divergence import first_time
from gossamer.evaluate.predictions import Predictions
from gossamer.exceptions import CollapseWarning, DivergenceWarning

#: Rows that a window needs before constant scores count as a collapse.
ENOUGH = 50
#: The largest sane score: of a classifier or detector, and of a regressor relative to the targets seen.
LARGEST = 1e9


class Health:
    """Checks each window of an evaluation and warns, once of each kind.

    >>> from gossamer.learner import Learner
    >>> from gossamer.rules import Implicit
    >>> made = Predictions(np.full(60, np.inf), np.ones(60, bool), np.full(60, np.inf), np.zeros(60))
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     Health("regression", Learner("gaussian", "squared", Implicit())).check(60, np.arange(60.0), made, True)
    >>> str(told[0].message)[:52]
    'The predictions are not finite in the rows up to 60:'
    """

    def __init__(self, task: str, model: Any) -> None:
        self.task, self.model, self._told, self._largest = task, model, set[str](), 1.0

    def check(self, row: int, y: Any, made: Predictions, learned: bool) -> None:
        """Check a window that ends with ``row``; ``learned``: whether the model had learned rows when it began."""
        scores = made.single()[made.known]
        if not len(scores) or np.isnan(scores).all():
            return
        real = np.asarray(y, dtype=np.float64) if self.task == "regression" and y is not None else None
        if real is not None:
            self._largest = max(self._largest, float(np.abs(real).max()))
        if not np.isfinite(scores).all():
            self._tell("finite", f"The predictions are not finite in the rows up to {row:,}: the steps are too large "
                       "for these features. Take a smaller rate or C, or scale the features.")  # fmt: skip
            return
        largest = float(np.abs(scores).max())
        if largest > LARGEST * self._largest:
            self._tell("large", f"The scores have grown to {largest:.3g} in the rows up to {row:,}: the model "
                       "diverges. Take a smaller rate or C, or scale the features.")  # fmt: skip
        elif learned and len(scores) >= ENOUGH and (y is None or len(np.unique(y)) > 1) and _same(scores, real):
            self._tell("constant", f"The predictions are all the same in the {len(scores):,} rows up to {row:,}: the "
                       "model does not tell rows apart. The kernel may be too narrow for these features (a smaller "
                       "gamma), or the model forgets too fast (a smaller reg).")  # fmt: skip

    def _tell(self, kind: str, message: str) -> None:
        category = CollapseWarning if kind == "constant" else DivergenceWarning
        if kind in self._told:
            return
        if first_time(self.model, category) or self._told:  # else the model has said so itself
            warnings.warn(message, category, stacklevel=5)
        self._told.add(kind)

    def state(self) -> list[Any]:
        """The warnings so far, and the largest target; a resumed evaluation does not warn again."""
        return [sorted(self._told), self._largest]

    def restore(self, state: list[Any]) -> None:
        """From `state`."""
        if state:
            self._told, self._largest = set(state[0]), float(state[1])


def _same(scores: Any, real: Any) -> bool:
    size = float(np.ptp(real)) if real is not None else float(np.abs(scores).max()) + 1e-300
    return float(np.ptp(scores)) <= 1e-12 * size
