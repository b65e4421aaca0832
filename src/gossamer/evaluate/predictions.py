"""The predictions for some rows, each made before the row was learned: labels, scores, losses, probabilities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import softmax

from gossamer._typing import Array, Bools, Floats, Ints


@dataclass(frozen=True)
class Predictions:
    """The predictions for some rows, each made before the row was learned.

    Attributes
    ----------
    labels : the predicted classes, values, or True for an alarm; where ``known`` is False, of no meaning.
    known : whether there was a prediction: a classifier that has not seen a class has none.
    scores : f(x), for a detector minus its threshold; with several classes, a column for each of ``classes``, -inf for
        those that had not come. NaN for models that do not tell.
    losses : the model's loss for each row; NaN where it is not measured (an adaptive level).
    classes : the classes known after these rows, sorted.
    counts : how many classes were known when each row was predicted.
    chances : the probability that was given to the class that then came; NaN where the model tells none, or where that
        class had not been seen.
    shares : the probability of each of ``classes``, where the model tells one; else without columns.
    radii : of a regressor, half the length of the interval of each coverage asked for; of a detector, the p-value.
    """

    labels: Array
    known: Bools
    scores: Floats
    losses: Floats
    classes: tuple[Any, ...] = ()
    counts: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    chances: Floats = field(default_factory=lambda: np.zeros(0))
    shares: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    radii: Floats = field(default_factory=lambda: np.zeros((0, 0)))

    def __len__(self) -> int:
        return len(self.labels)

    @staticmethod
    def join(parts: list[Predictions]) -> Predictions:
        """One after the other; classes only get more, so that the last part knows them all."""
        if len(parts) == 1:
            return parts[0]
        classes = parts[-1].classes
        if all(part.scores.ndim == 1 for part in parts):
            scores = np.concatenate([part.scores for part in parts])
        else:
            scores = np.concatenate([part.by_class(classes) for part in parts])
        names = ("labels", "known", "losses", "counts", "chances")
        joined = {name: np.concatenate([getattr(part, name) for part in parts]) for name in names}
        joined["radii"] = np.concatenate([part.radii for part in parts]) if len(parts[-1].radii) else parts[0].radii
        if all(part.tells or not len(part) for part in parts):
            joined["shares"] = np.concatenate([part.probabilities(classes) for part in parts])
        return Predictions(scores=scores, classes=classes, **joined)

    def by_class(self, classes: tuple[Any, ...] | None = None) -> Floats:
        """A score for each class, -inf for those that had not come: of one score f, -f/2 and f/2 (f/2 if alone)."""
        own, wanted = list(self.classes), list(self.classes if classes is None else classes)
        scores = self.scores
        if scores.ndim == 1:
            scores = np.full((len(self), len(own)), -np.inf)
            pair, alone = self.counts > 1, np.flatnonzero(self.counts == 1)
            if len(own) > 1:
                scores[pair, 0], scores[pair, -1] = -0.5 * self.scores[pair], 0.5 * self.scores[pair]
            scores[alone, [own.index(label) for label in self.labels[alone].tolist()]] = 0.5 * self.scores[alone]
        if own == wanted:
            return scores
        out = np.full((len(self), len(wanted)), -np.inf)
        out[:, [wanted.index(label) for label in own]] = scores
        return out

    @property
    def tells(self) -> bool:
        """Whether there are probabilities of the model's own."""
        return self.shares.ndim == 2 and self.shares.shape[1] > 0

    def single(self) -> Floats:
        """One score a row: f(x) for up to two classes (positive is the second), else that of the best class.

        Rows from before a third class came have a score per class if it came in the same chunk; they get back the f(x)
        that they had, so that the chunks do not show.
        """
        scores = self.scores
        if scores.ndim == 1:
            return scores
        finite = np.isfinite(scores)
        count = finite.sum(axis=1)
        best = np.where(finite, scores, -np.inf).max(axis=1)
        if scores.shape[1] == 1 or (count > 2).all():
            return np.asarray(best)
        places = np.arange(len(scores))
        low = scores[places, finite.argmax(axis=1)]
        high = scores[places, scores.shape[1] - 1 - finite[:, ::-1].argmax(axis=1)]
        with np.errstate(invalid="ignore"):
            early = np.where(count == 2, high - low, np.where(count == 1, 2.0 * high, 0.0))
        return np.asarray(np.where(count > 2, best, early))

    def probabilities(self, classes: tuple[Any, ...] | None = None) -> Floats:
        """The probability of each class: what the model says, or the softmax of the scores over the classes known, as
        a learner of the logistic loss says; NaN without a class."""
        if self.tells:
            out = np.zeros((len(self), len(self.classes if classes is None else classes)))
            places = range(len(self.classes)) if classes is None else [classes.index(label) for label in self.classes]
            out[:, list(places)] = self.shares
            return out
        known = np.where(self.counts[:, None] > 0, self.by_class(), np.nan)
        return np.asarray(softmax(known, axis=1))
