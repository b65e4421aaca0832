"""How sure a model was, and how often it was right: probabilities and intervals of the last rows, made before their
labels were known. Part of a model's state, the same to the bit for any cut of the rows.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gossamer._typing import Array, Bools, Codes, Floats

#: Rows whose probabilities are kept, whose intervals or sets are, and whose targets are drawn with their intervals.
PROBABILITIES, COVERED, DRAWN = 2000, 1000, 120
#: Bins of the reliability diagram, and the parts of 1 that a probability is kept in: sums of whole numbers are exact.
BINS, PARTS = 15, 1_000_000
#: Rows or probabilities that are looked at together.
TOGETHER = 1024


def read_chances(made: Any, y: Array) -> tuple[Codes, Bools]:
    """What the `Predictions` of a classifier said about rows with these labels: a code for each row, 2 * the
    probability in millionths + whether the event came, -1 for a row without one; and which rows knew more than two
    classes. The event is that the second of two classes comes, in the order of their names; of more, the most probable.

    >>> from gossamer.estimators.labels import Predictions
    >>> chances = np.array([[0.3, 0.7], [0.6, 0.4]])
    >>> made = Predictions(np.zeros(2), ["no", "yes"], np.array(["no", "yes"]), 2, chances=chances)
    >>> read_chances(made, np.array(["yes", "yes"]))[0].tolist()
    [1400001, 800001]
    """
    known = np.broadcast_to(made.known, len(y))
    codes, many = np.full(len(y), -1, dtype=np.int32), known > 2
    if (known == 2).any():
        column = _second(made.order)
        found = _code(made.chances[:, column], y == made.order[column])
        codes = np.where(known == 2, found, codes)
    if many.any():
        best = made.chances[:, : len(made.order)].argmax(axis=1)
        found = _code(made.chances[np.arange(len(best)), best], made.codes(y) == best)
        codes = np.where(many, found, codes)
    return codes, many


def _second(order: Any) -> int:
    """The column of the second of two classes."""
    return int(order[0] < order[1])


def _code(p: Floats, hits: Any) -> Codes:
    return np.asarray(2 * np.rint(PARTS * p).astype(np.int32) + hits, dtype=np.int32)


class Rows(NamedTuple):
    """What was said about some rows: `Predictions` with probabilities, or None; whether targets lay in the interval or
    set, or None; values and how far the intervals around them reached, or None."""

    y: Array
    made: Any = None
    inside: Bools | None = None
    predicted: Floats | None = None
    reach: Floats | None = None


class Certainty:
    """The last probabilities of a classifier, and the last intervals of a regressor.

    What comes is looked at when somebody asks, or when many rows wait: many calls together cost little more than one.

    >>> certainty = Certainty()
    >>> certainty.add(Rows(np.array([1.0, 5.0]), None, np.array([True, False]), np.array([1.5, 2.0]), np.ones(2)))
    >>> certainty.coverage(), certainty.band()
    (0.5, [[1.0, 1.5, 1.0], [5.0, 2.0, 1.0]])
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.many: bool = state.get("many", False)
        self.codes: Codes = np.frombuffer(state.get("codes", b""), dtype="<i4")
        self.covered: Array = np.frombuffer(state.get("covered", b""), dtype=np.uint8)
        self.drawn: Floats = np.frombuffer(state.get("drawn", b""), dtype="<f8").reshape(-1, 3)
        self._waiting: list[Rows] = []
        self._count = 0
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """As plain data."""
        with self._settled():
            return {
                "many": self.many, "codes": self.codes.astype("<i4").tobytes(), "covered": self.covered.tobytes(),
                "drawn": self.drawn.astype("<f8").tobytes(),
            }  # fmt: skip

    def add(self, rows: Rows) -> None:
        """Keep what was said about rows before they were learned."""
        with self._lock:
            self._waiting.append(rows)
            self._count += len(rows.y) if rows.made is None else rows.made.chances.size
            if self._count >= TOGETHER:
                self._settle()

    @contextlib.contextmanager
    def _settled(self) -> Iterator[None]:
        with self._lock:
            self._settle()
            yield

    def _settle(self) -> None:
        """Look at the rows that wait."""
        waiting, self._waiting, self._count = self._waiting, [], 0
        inside = [rows.inside for rows in waiting if rows.inside is not None]
        if inside:
            self.covered = np.concatenate([self.covered, *inside])[-COVERED:]
        ends = [(rows.y, rows.predicted, rows.reach) for rows in waiting if rows.reach is not None]
        if ends:
            fresh = [np.concatenate(column)[-DRAWN:] for column in zip(*ends, strict=True)]
            self.drawn = np.concatenate([self.drawn, np.column_stack(fresh)])[-DRAWN:]
        told = (rows for rows in waiting if rows.made is not None)
        for (_, two), group in itertools.groupby(told, lambda rows: (id(rows.made.order), _are_two(rows.made))):
            if two:
                self._add_two(list(group))
            else:
                for rows in group:
                    self._add_chances(*read_chances(rows.made, rows.y))

    def _add_two(self, group: list[Rows]) -> None:
        """Rows that knew the same two classes."""
        order = group[0].made.order
        column = _second(order)
        p = np.concatenate([rows.made.chances[:, column] for rows in group])
        hits = np.concatenate([rows.y == order[column] for rows in group])
        self.codes = np.concatenate([self.codes, _code(p, hits)])[-PROBABILITIES:]

    def _add_chances(self, codes: Codes, many: Bools) -> None:
        """With the third class another event is asked for, and what was before goes."""
        if not self.many and many[-1]:  # classes never become fewer
            codes = codes[int(np.argmax(many)) :]
            self.codes, self.many = self.codes[:0], True
        self.codes = np.concatenate([self.codes, codes[codes >= 0]])[-PROBABILITIES:]

    def coverage(self) -> float | None:
        """The share of targets inside, over the last rows; None where there were no intervals or sets."""
        with self._settled():
            return float(self.covered.mean()) if len(self.covered) else None

    def calibration(self) -> dict[str, Any] | None:
        """The mean distance between the probabilities and the share of events, and for each bin with rows: their
        count, the mean probability, and the share of them where the event came. None without probabilities."""
        with self._settled():
            codes = self.codes
        if not len(codes):
            return None
        chances, hits = codes // 2, codes % 2
        places = np.minimum(chances.astype(np.int64) * BINS // PARTS, BINS - 1)
        rows, told, came = (np.bincount(places, values, BINS) for values in (None, chances / PARTS, hits))
        table = np.column_stack([rows, told / np.maximum(rows, 1), came / np.maximum(rows, 1)])[rows > 0]
        bins = [[int(n), round(p, 6), round(share, 6)] for n, p, share in table.tolist()]
        error = float(np.abs(told - came).sum()) / len(codes)
        return {"rows": len(codes), "error": round(error, 6), "bins": bins}

    def band(self) -> list[list[float]]:
        """The last targets with their predictions and the reach of their intervals."""
        with self._settled():
            found: list[list[float]] = self.drawn.tolist()
            return found


def _are_two(made: Any) -> bool:
    """Whether all rows knew two classes and no more."""
    return isinstance(made.known, int) and made.known == 2
