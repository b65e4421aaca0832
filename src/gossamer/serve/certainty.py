"""How sure a model was, and how often it was right: probabilities and intervals of the last rows, made before their
labels were known. Part of a model's state, the same to the bit for any cut of the rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer._typing import Array, Bools, Codes, Floats

#: Rows whose probabilities are kept, whose intervals or sets are, and whose targets are drawn with their intervals.
PROBABILITIES, COVERED, DRAWN = 2000, 1000, 120
#: Bins of the reliability diagram, and the parts of 1 that a probability is kept in: sums of whole numbers are exact.
BINS, PARTS = 15, 1_000_000


class Told(NamedTuple):
    """What the probabilities of some rows were, and whether the event came.

    Attributes
    ----------
    codes : 2 * the probability in millionths + whether the event came; -1 for a row without a probability.
    many : whether more than two classes were known: the event is that the most probable class comes; of two classes,
        that the second does, in the order of their names.
    """

    codes: Codes
    many: Bools


def read_chances(made: Any, y: Array) -> Told | None:
    """What the `Predictions` of a classifier told about rows with these labels; None where there were no probabilities.

    >>> from gossamer.estimators.labels import Predictions
    >>> chances = np.array([[0.3, 0.7], [0.6, 0.4]])
    >>> made = Predictions(np.zeros(2), ["no", "yes"], np.array(["no", "yes"]), 2, chances=chances)
    >>> read_chances(made, np.array(["yes", "yes"])).codes.tolist()
    [1400001, 800001]
    """
    if made.chances is None:
        return None
    rows = len(y)
    if isinstance(made.known, int):
        if made.known < 2:
            return None
        find = _of_two if made.known == 2 else _of_many
        return Told(find(made, y), np.full(rows, made.known > 2))
    codes, many = np.full(rows, -1, dtype=np.int32), made.known > 2
    for chosen, find in ((made.known == 2, _of_two), (many, _of_many)):
        if chosen.any():
            codes[chosen] = find(made, y)[chosen]
    return Told(codes, many)


def _of_two(made: Any, y: Array) -> Codes:
    column = int(made.order[0] < made.order[1])
    return _code(made.chances[:, column], y == made.order[column])


def _of_many(made: Any, y: Array) -> Codes:
    best = made.chances[:, : len(made.order)].argmax(axis=1)
    return _code(made.chances[np.arange(len(best)), best], made.codes(y) == best)


def _code(p: Floats, hits: Any) -> Codes:
    return np.asarray(2 * np.rint(PARTS * p).astype(np.int32) + hits, dtype=np.int32)


class Certainty:
    """The last probabilities of a classifier, and the last intervals of a regressor.

    >>> certainty = Certainty()
    >>> certainty.add_chances(Told(np.array([1_800_001, 1_800_000]), np.zeros(2, dtype=bool)))
    >>> certainty.calibration()["error"], certainty.calibration()["bins"]
    (0.4, [[2, 0.9, 0.5]])
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.many: bool = state.get("many", False)
        self.codes: Codes = np.frombuffer(state.get("codes", b""), dtype="<i4")
        self.covered: Array = np.frombuffer(state.get("covered", b""), dtype=np.uint8)
        self.drawn: Floats = np.frombuffer(state.get("drawn", b""), dtype="<f8").reshape(-1, 3)

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "many": self.many, "codes": self.codes.astype("<i4").tobytes(), "covered": self.covered.tobytes(),
            "drawn": self.drawn.astype("<f8").tobytes(),
        }  # fmt: skip

    def add_chances(self, told: Told) -> None:
        """Keep what was told about rows; with the third class another event is asked for, and what was before goes."""
        codes, many = told
        if not self.many and many[-1]:  # classes never become fewer
            codes = codes[int(np.argmax(many)) :]
            self.codes, self.many = self.codes[:0], True
        codes = codes if codes[0] >= 0 else codes[codes >= 0]  # rows without one are the first of a model
        self.codes = np.concatenate([self.codes, codes])[-PROBABILITIES:]

    def add_covered(self, inside: Bools) -> None:
        """Keep whether targets lay in the intervals or sets made before."""
        self.covered = np.concatenate([self.covered, inside])[-COVERED:]

    def add_drawn(self, y: Floats, predicted: Floats, widths: Floats) -> None:
        """Keep the last targets, predictions, and how far the intervals around those reached."""
        fresh = np.column_stack([y[-DRAWN:], predicted[-DRAWN:], widths[-DRAWN:]])
        self.drawn = np.concatenate([self.drawn, fresh])[-DRAWN:]

    def coverage(self) -> float | None:
        """The share of targets inside, over the last rows; None where there were no intervals or sets."""
        return float(self.covered.mean()) if len(self.covered) else None

    def calibration(self) -> dict[str, Any] | None:
        """The mean distance between the probabilities and the share of events, and for each bin with rows: their
        count, the mean probability, and the share of them where the event came. None without probabilities."""
        if not len(self.codes):
            return None
        chances, hits = self.codes // 2, self.codes % 2
        places = np.minimum(chances.astype(np.int64) * BINS // PARTS, BINS - 1)
        rows, told, came = (np.bincount(places, values, BINS) for values in (None, chances / PARTS, hits))
        filled = rows > 0
        table = np.column_stack([rows, told / np.maximum(rows, 1), came / np.maximum(rows, 1)])[filled]
        bins = [[int(n), round(p, 6), round(share, 6)] for n, p, share in table.tolist()]
        error = float(np.abs(told - came).sum()) / len(self.codes)
        return {"rows": len(self.codes), "error": round(error, 6), "bins": bins}

    def band(self) -> list[list[float]]:
        """The last targets with their predictions and the reach of their intervals."""
        found: list[list[float]] = self.drawn.tolist()
        return found
