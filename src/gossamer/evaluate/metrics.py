"""The metrics of an evaluation: over a window of predictions, and over all rows by counts that add up."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer._typing import Floats
from gossamer.evaluate.predictions import Predictions

#: Known metrics by task, the default metrics first.
METRICS = {
    "classification": (
        "error",
        "loss",
        "accuracy",
        "precision",
        "recall",
        "f1",
        "auc",
        "log_loss",
        "brier",
        "calibration",
    ),
    "regression": ("mae", "rmse", "loss", "pinball", "coverage", "width"),
    "novelty": ("alarms", "loss", "error", "auc"),
}
#: The metrics that need probabilities, and those that need intervals.
CHANCES, BANDS = {"log_loss", "brier", "calibration"}, {"coverage", "width"}
#: The metrics that follow from the confusion counts of each class.
RATIOS = {"precision", "recall", "f1"}


class Tally:
    """For each class, how often it was rightly predicted, wrongly predicted, and missed.

    >>> tally = Tally(None, [["no", 2, 1, 0], ["yes", 3, 0, 1]])
    >>> tally.ratio("precision", tally), tally.ratio("recall", tally)
    (1.0, 0.75)
    """

    def __init__(self, positive: Any = None, counts: Any = ()) -> None:
        self.positive = positive
        self.counts: dict[Any, list[int]] = {label: list(three) for label, *three in counts}

    def to_list(self) -> list[list[Any]]:
        """The counts as JSON data."""
        return [[label, *three] for label, three in self.counts.items()]

    def add(self, y: Any, made: Predictions) -> Tally:
        """Count some rows; returns the counts of these alone."""
        said = made.labels[made.known]
        classes, codes = np.unique(np.concatenate([np.asarray(y), said]), return_inverse=True)
        codes = codes.reshape(-1)
        true, predicted = codes[: len(y)], np.full(len(y), -1)
        predicted[made.known] = codes[len(y) :]
        size, right = len(classes), true == predicted
        hits = np.bincount(true[right], minlength=size)
        alarms = np.bincount(predicted[made.known & ~right], minlength=size)
        missed = np.bincount(true[~right], minlength=size)
        table = zip(classes.tolist(), hits.tolist(), alarms.tolist(), missed.tolist(), strict=True)
        part = Tally(self.positive, table)
        for label, three in part.counts.items():
            mine = self.counts.setdefault(label, [0, 0, 0])
            self.counts[label] = [a + b for a, b in zip(mine, three, strict=True)]
        return part

    def ratio(self, name: str, every: Tally) -> float:
        """Precision, recall or F1: of the positive class, or of more than two the mean; ``every`` knows the classes.

        A class that came or was predicted has 0 where its ratio is 0 / 0; NaN where there is nothing to measure.
        """
        classes = sorted(every.counts)
        if self.positive is not None:
            wanted = [self.positive]
        elif len(classes) > 2:
            wanted = sorted(self.counts)
        else:
            wanted = classes[1:]
        ratios = []
        for label in wanted:
            hits, alarms, missed = self.counts.get(label, (0, 0, 0))
            if hits + alarms + missed:
                over = {"precision": hits + alarms, "recall": hits + missed, "f1": hits + 0.5 * (alarms + missed)}[name]
                ratios.append(hits / over if over else 0.0)
        return float(np.mean(ratios)) if ratios else float("nan")


def auc(positive: Any, scores: Floats) -> tuple[float, float]:
    """The chance that a positive row scores above another, ties half (Mann and Whitney), weighed by the rows."""
    count, rows = int(positive.sum()), len(positive)
    if count in (0, rows) or np.isnan(scores).any():
        return float("nan"), 0.0
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2.0)[inverse.reshape(-1)]
    above = float(ranks[positive].sum()) - count * (count + 1) / 2.0
    return above / (count * (rows - count)), float(rows)


def class_auc(y: Any, made: Predictions, classes: list[Any], positive: Any) -> tuple[float, float]:
    """The area for the positive of two classes, or the mean over several, each against the rest; and its weight."""
    two = len(classes) < 3 and len(made.classes) < 3
    scored = made.counts > (1 if two else 0)
    labels = np.asarray(y)[scored]
    if two:
        goal = classes[-1] if positive is None else positive
        sign = 1.0 if not made.classes or goal == made.classes[-1] else -1.0
        return auc(labels == goal, sign * made.single()[scored])
    columns = made.by_class()[scored]
    areas = [auc(labels == label, columns[:, place]) for place, label in enumerate(made.classes)
             if positive is None or label == positive]  # fmt: skip
    found = [area for area, weight in areas if weight]
    return (float(np.mean(found)), float(len(labels))) if found else (float("nan"), 0.0)


def brier(y: Any, made: Predictions) -> tuple[float, float]:
    """The mean squared distance of the probabilities from 1 for the class that came and 0 for the others, over its
    largest value 2, where there are probabilities (Brier 1950)."""
    told = ~np.isnan(made.chances)
    if not told.any():
        return float("nan"), 0.0
    p, own = made.probabilities()[told], made.chances[told]
    return float(((p * p).sum(axis=1) - 2 * own + 1.0).mean() / 2), float(told.sum())


class Reliability:
    """Counts of rows, sums of probabilities and counts of hits in bins of equal width: for two classes the probability
    of the second, for more that of the most probable.

    >>> bins = Reliability()
    >>> bins.count(np.array([0.9, 0.9, 0.1]), np.array([True, False, False]))
    >>> round(bins.error(), 3)
    0.3
    """

    BINS = 15

    def __init__(self, table: Any = None) -> None:
        self.table = np.zeros((3, self.BINS)) if table is None else np.array(table, dtype=np.float64)

    def count(self, p: Any, hits: Any) -> None:
        """Count rows by the probability of an event and whether it came."""
        places = np.minimum((np.asarray(p) * self.BINS).astype(int), self.BINS - 1)
        for row, values in enumerate((np.ones(len(places)), p, hits)):
            self.table[row] += np.bincount(places, weights=values, minlength=self.BINS)

    def add(self, y: Any, made: Predictions) -> Reliability:
        """Count predictions; returns the bins of these alone."""
        part = Reliability()
        told = ~np.isnan(made.chances)
        if told.any():
            p, classes = made.probabilities()[told], np.array(made.classes)
            best = p.argmax(axis=1) if len(classes) > 2 else np.full(len(p), len(classes) - 1)
            part.count(p[np.arange(len(p)), best], classes[best] == np.asarray(y)[told])
        self.table += part.table
        return part

    def error(self) -> float:
        """The mean distance between probability and share of hits over the bins, weighed by their rows."""
        rows, chances, hits = self.table
        return float(np.abs(chances - hits).sum() / rows.sum()) if rows.any() else float("nan")


def log_loss(made: Predictions) -> tuple[float, float]:
    """The mean of -log of the probability of the class that came, where there is one; clipped as scikit-learn does."""
    chances = made.chances[~np.isnan(made.chances)]
    if not len(chances):
        return float("nan"), 0.0
    return float(-np.log(np.clip(chances, np.finfo(np.float64).eps, 1.0)).mean()), float(len(chances))
