"""The trace of an evaluation: a record every ``every`` rows, as arrays, a table, a file."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats, Ints


@dataclass(frozen=True)
class Record:
    """The metrics and the size of the model after some rows.

    Attributes
    ----------
    row : rows predicted so far.
    rows : rows in the window, those since the record before.
    total, window : each metric over all rows, and over the window.
    support : the number of support points; None for a model without.
    norm : the RKHS norm, where the learner tracks it.
    discarded : the sum of the norms of the terms that the budget has discarded; None for a model without.
    seconds : since the start; no part of a comparison.
    """

    row: int
    rows: int
    total: dict[str, float]
    window: dict[str, float]
    support: int | None = None
    norm: float | None = None
    discarded: float | None = None
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True)
class Trace:
    """The course of an evaluation.

    Attributes
    ----------
    task : "classification", "regression" or "novelty".
    metrics : their names.
    records : a `Record` every ``every`` rows, and a last one for the rest.
    confusion : for classes, how often each (true, predicted) pair came.
    unpredicted : rows for which there was no prediction, since no class had been seen. They count as errors.

    Examples
    --------
    >>> first = Record(100, 100, {"error": 0.5}, {"error": 0.5}, 7)
    >>> trace = Trace("classification", ["error"], [first, Record(200, 100, {"error": 0.3}, {"error": 0.1}, 9)])
    >>> trace.row.tolist(), trace.window("error").tolist(), trace.support.tolist()
    ([100, 200], [0.5, 0.1], [7.0, 9.0])
    >>> print(trace.table())
             row       error  in window  support  discarded
             100      0.5000     0.5000        7          -
             200      0.3000     0.1000        9          -
    """

    task: str
    metrics: list[str]
    records: list[Record]
    confusion: dict[tuple[Any, Any], int] = field(default_factory=dict)
    unpredicted: int = 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        mine, theirs = ((t.task, t.metrics, t.confusion, t.unpredicted) for t in (self, other))
        return mine == theirs and self._numbers() == other._numbers()

    __hash__ = None  # type: ignore[assignment]

    def _numbers(self) -> str:
        """The records without the time; as text, for NaN (a loss that is not measured) is equal to itself here."""
        return repr([{**asdict(record), "seconds": 0} for record in self.records])

    def __len__(self) -> int:
        return len(self.records)

    @property
    def row(self) -> Ints:
        """Rows predicted at each record."""
        return np.array([record.row for record in self.records], dtype=np.int64)

    def total(self, metric: str) -> Floats:
        """A metric over all rows so far, at each record."""
        return self._values("total", metric)

    def window(self, metric: str) -> Floats:
        """A metric over the rows since the record before, at each record."""
        return self._values("window", metric)

    def _values(self, name: str, metric: str) -> Floats:
        _checks.one_of("Trace", "metric", metric, self.metrics)
        return np.array([getattr(record, name)[metric] for record in self.records], dtype=np.float64)

    @property
    def support(self) -> Floats:
        """The number of support points at each record, NaN for a model without."""
        return self._facts("support")

    @property
    def norm(self) -> Floats:
        """The RKHS norm at each record, NaN where it is not tracked."""
        return self._facts("norm")

    @property
    def discarded(self) -> Floats:
        """The sum of the norms that the budget has discarded up to each record, NaN for a model without."""
        return self._facts("discarded")

    @property
    def seconds(self) -> Floats:
        """Seconds since the start at each record."""
        return self._facts("seconds")

    def _facts(self, name: str) -> Floats:
        return np.array([getattr(record, name) for record in self.records], dtype=np.float64)  # None becomes NaN

    def confusion_matrix(self) -> tuple[list[Any], Ints]:
        """The classes, and how often each was (rows) and was predicted (columns).

        >>> Trace("classification", [], [], {("a", "a"): 3, ("b", "a"): 1}).confusion_matrix()[1].tolist()
        [[3, 0], [1, 0]]
        """
        labels = sorted({label for pair in self.confusion for label in pair})
        counts = np.zeros((len(labels), len(labels)), dtype=np.int64)
        for (true, predicted), count in self.confusion.items():
            counts[labels.index(true), labels.index(predicted)] = count
        return labels, counts

    def table(self) -> str:
        """A line each time that the number of records has doubled, and for the last."""
        lines = [table_head(self.metrics)]
        count = len(self.records)
        lines += [table_line(r) for i, r in enumerate(self.records, 1) if i & (i - 1) == 0 or i == count]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON data; `from_dict` makes an equal Trace."""
        confusion = [[true, predicted, count] for (true, predicted), count in self.confusion.items()]
        records = [asdict(record) for record in self.records]
        named = {"task": self.task, "metrics": self.metrics, "records": records}
        return {**named, "confusion": confusion, "unpredicted": self.unpredicted}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Trace:
        """From `to_dict`."""
        confusion = {(true, predicted): count for true, predicted, count in given["confusion"]}
        records = [Record(**record) for record in given["records"]]
        return cls(given["task"], list(given["metrics"]), records, confusion, given["unpredicted"])

    def to_csv(self, path: str | PathLike[str]) -> None:
        """A line per record: row, each metric over all rows and over the window, support, norm, discarded, seconds."""
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            pairs = [name for metric in self.metrics for name in (metric, f"{metric}_window")]
            writer.writerow(["row", *pairs, "support", "norm", "discarded", "seconds"])
            for r in self.records:
                values = [value for metric in self.metrics for value in (r.total[metric], r.window[metric])]
                shown = ["" if math.isnan(value) else repr(value) for value in values]
                ends = ["" if value is None else value for value in (r.support, r.norm, r.discarded)]
                writer.writerow([r.row, *shown, *ends, f"{r.seconds:.6f}"])


def table_head(metrics: Sequence[str]) -> str:
    """The heading of a table of records."""
    middle = "".join(f"{metric:>12}{'in window':>11}" for metric in metrics)
    return f"{'row':>12}{middle}{'support':>9}{'discarded':>11}"


def table_line(record: Record) -> str:
    """A record as a line of a table."""
    values = "".join(f"{record.total[m]:>12.4f}{record.window[m]:>11.4f}" for m in record.total)
    support = "-" if record.support is None else record.support
    discarded = "-" if record.discarded is None else f"{record.discarded:.4g}"
    return f"{record.row:>12,}{values}{support:>9}{discarded:>11}"
