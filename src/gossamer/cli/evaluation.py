"""Prequential evaluation in constant memory: as the stream gets longer, the windows of its records get wider."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from gossamer.evaluate import Prequential, Record

#: The first width of a record, the largest width that is measured at once, and the largest number of records.
FIRST, WIDEST, MOST = 100, 6400, 256


class Evaluation(Prequential):
    """A `Prequential` that keeps at most 256 records: then two neighbours become one, which is twice as wide.

    A mean over the wider window is that of the two; so are "auc", "precision", "recall" and "f1" in a record that was
    made of two. Over all rows they are exact, as `Prequential` says.

    >>> import numpy as np
    >>> from gossamer import SILKRegressor
    >>> run = Evaluation(SILKRegressor("linear"), every=1)
    >>> x = np.arange(700.0)[:, None] / 700
    >>> predictions = run.update(x, x[:, 0])
    >>> trace = run.finish()
    >>> len(trace), trace.records[0].rows, trace.records[-1].row
    (175, 4, 700)
    """

    def __init__(self, model: Any, *, every: int | None = None, **options: Any) -> None:
        super().__init__(model, every=FIRST if every is None else every, **options)
        self.width = self.every

    def _record(self) -> None:
        super()._record()
        records = self._records
        if len(records) > 1 and records[-2].rows < self.width:
            records[-2:] = [merged(*records[-2:])]
        if len(records) == MOST and records[-1].rows == self.width:
            records[:] = [merged(*records[i : i + 2]) for i in range(0, MOST, 2)]
            self.width *= 2
            self.every = self.width if self.width <= WIDEST else self.every

    def state(self) -> dict[str, Any]:
        """With the widths."""
        return {**super().state(), "width": self.width, "every": self.every}

    def restore(self, state: dict[str, Any]) -> None:
        """With the widths."""
        super().restore(state)
        self.width, self.every = int(state["width"]), int(state["every"])


def merged(first: Record, second: Record) -> Record:
    """Merge two neighbouring records."""
    window = {}
    for name, late in second.window.items():
        early = first.window[name]
        power = 2.0 if name == "rmse" else 1.0
        mean = (first.rows * early**power + second.rows * late**power) / (first.rows + second.rows)
        window[name] = late if math.isnan(early) else early if math.isnan(late) else float(mean ** (1.0 / power))
    return replace(second, rows=first.rows + second.rows, window=window)
