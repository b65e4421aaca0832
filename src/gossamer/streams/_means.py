"""Imputation: where numbers are missing; each is replaced by the mean of its feature in the rows before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Bools, Floats
from gossamer.streams._schema import Coded, Sampled, Schema, Values, coded_numbers


class Means:
    """The sums and counts of each feature so far, and the values that fill gaps before the first.

    Parameters
    ----------
    width : the number of features.
    given : the `state` of another object.
    keep : fill gaps with the means as they are, and learn nothing.

    >>> means = Means(1, {"sums": [[0.0], [0.0]], "start": [5.0]})
    >>> nan = np.nan
    >>> means.fill(np.array([[nan], [1.0], [nan], [3.0], [nan]])).ravel().tolist()
    [5.0, 1.0, 1.0, 3.0, 2.0]
    """

    def __init__(self, width: int, given: Any = None, keep: bool = False) -> None:
        self.keep = keep
        given = {} if given is None else given
        try:
            zeros = [0.0] * width
            self.sums = np.array(given.get("sums", [zeros, zeros]), dtype=np.float64).reshape(2, width)
            self.start = np.array(given.get("start", zeros), dtype=np.float64).reshape(width)
        except (AttributeError, TypeError, ValueError):
            raise _checks.wrong("open_stream", "means", f"of {width} features", given) from None

    def state(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"sums": self.sums.tolist(), "start": self.start.tolist()}

    def fill(self, X: Floats) -> Floats:
        """X without gaps, one row after the other."""
        gone = np.isnan(X)
        if self.keep:
            means = np.where(self.sums[1] > 0, self.sums[0] / np.maximum(self.sums[1], 1.0), self.start)
            return np.where(gone, means, X)
        known = np.where(gone, 0.0, X)
        # accumulate adds in order, so that the sums do not depend on the chunks
        sums = np.add.accumulate(np.vstack([self.sums[:1], known]), axis=0)
        counts = np.add.accumulate(np.vstack([self.sums[1:], ~gone]), axis=0)
        self.sums = np.stack([sums[-1], counts[-1]])
        means = np.where(counts[:-1] > 0, sums[:-1] / np.maximum(counts[:-1], 1.0), self.start)
        return np.where(gone, means, X)


def find_gaps(X: Any) -> tuple[Bools, int]:
    """Which rows have a missing value, and in the first of them the first such feature.

    >>> find_gaps(np.array([[1.0, 2.0], [3.0, np.nan]]))
    (array([False,  True]), 1)
    """
    if isinstance(X, np.ndarray):
        gone = np.isnan(X)
        absent = gone.any(axis=1)
        return absent, int(np.argmax(gone[int(np.argmax(absent))])) if len(X) else 0
    places = np.flatnonzero(np.isnan(X.data))
    absent = np.zeros(X.shape[0], dtype=np.bool_)
    absent[np.searchsorted(X.indptr, places, side="right") - 1] = True
    return absent, int(X.indices[places[0]]) if len(places) else 0


#: Columns of the first rows that are encoded together.
COLUMNS = 256


def sample_means(schema: Schema, sample: Mapping[str, Sampled]) -> list[float]:
    """The mean of each feature in the first rows, 0 where they have none: it fills the gaps before a first value."""
    means: list[float] = []
    for start in range(0, len(schema.features), COLUMNS):
        columns = schema.features[start : start + COLUMNS]
        found = sample[columns[0].name].values
        rows = len(found.codes) if isinstance(found, Coded) else len(found)
        values = {column.name: _encodable(sample[column.name], column.kind) for column in columns}
        X, _ = Schema(columns, None).encode(rows, values, None)
        known = np.isfinite(X)
        means += (np.where(known, X, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)).tolist()
    return means


def _encodable(found: Sampled, kind: str) -> Values:
    values = found.values
    if not isinstance(values, Coded):
        return coded_numbers(values) if kind == "text" else values
    return values.map([_number(text, found.decimal) for text in values.values]) if kind == "number" else values


def _number(text: str, decimal: str) -> float:
    try:
        return float(text.replace(decimal, ".") if decimal != "." else text)
    except ValueError:  # kinds= says number where the first rows have something else
        return float("nan")
