"""Labels of any type as codes 0, 1, ... in the order of their coming; scores with the classes known at the time.

A learner of two classes has one score f, positive for the second class that came. A third class makes a score for each:
g_1 = f / 2, g_0 = -f / 2. Outside, classes are sorted, and while there is only one class, its score is positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from gossamer import _checks
from gossamer._typing import Array, Floats, Ints


def check_discrete(owner: object, labels: Array) -> None:
    """Raise for continuous targets: fractions most of which occur once."""
    different = len(unique(owner, "y", labels)[0])
    if labels.dtype.kind == "f" and 2 * different > len(labels) and (labels != np.floor(labels)).any():
        rule = "labels, not continuous numbers (Unknown label type: continuous)"
        raise _checks.wrong(owner, "y", rule, f"{different} different numbers in {len(labels)} rows")


def unique(owner: object, parameter: str, labels: Array) -> tuple[Array, Array, Array]:
    """The distinct labels in order, the first row of each, and their codes; an error if they cannot be sorted."""
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise _checks.wrong(owner, parameter, "labels without NaN or infinity", labels[~np.isfinite(labels)][0])
    try:
        if labels.ndim == 1:
            return np.unique(labels, return_index=True, return_inverse=True)
    except TypeError:
        pass
    raise _checks.wrong(owner, parameter, "a vector of labels of one kind", labels.tolist())


def encode(labels: Array, order: Sequence[Any]) -> Floats | None:
    """The codes of labels if all are among a few known ones, several times faster than by sorting."""
    if labels.dtype.kind == "O" or len(order) > 8:
        return None
    codes = np.zeros(len(labels))
    missing = len(labels)
    for number, label in enumerate(order):
        same = labels == label
        missing -= int(np.count_nonzero(same))
        if number:
            codes += number * same
    return None if missing else codes


def count_known(codes: Floats, known: int) -> Ints:
    """How many classes are known before each row learned, if ``known`` were before the first.

    >>> count_known(np.array([0.0, 0.0, 1.0, 0.0, 2.0]), 0).tolist()
    [0, 1, 1, 2, 2]
    """
    counts = np.full(len(codes), known, dtype=np.int64)
    counts[1:] = codes[:-1] + 1
    return np.maximum.accumulate(counts)


def is_turned(order: Sequence[Any], classes: Array) -> bool:
    """Whether a score for the second class that came has the other sign outside."""
    return len(order) == 1 or bool(classes[1] != order[1])


#: No scores.
NONE: Floats = np.zeros(0)


class Predictions(NamedTuple):  # made faster than a dataclass, once for each call
    """The scores of some rows, and what was known when each was made. Public verbs return `decision` and `labels`.

    Attributes
    ----------
    scores : f(x) of each row; of a classifier one for two classes, positive for ``order[1]``, or a column for each of
        ``order``, -inf for classes that were not known. Of a regressor in the units of the targets.
    order : the classes after these rows, in the order of their coming; empty for regressors and detectors.
    classes : the same, sorted; None for regressors, detectors and classifiers that have learned nothing.
    known : how many classes were known when each row was scored, or for all rows one number.
    levels : rho of a detector when each row was scored; None for the others.
    pairs : the scores for two classes that the first rows had, in a batch that brought a third.
    chances : the probability of each of ``order`` when each row was scored, where it was asked for; 0 for classes that
        were not known. The p-values of a detector.
    thresholds : the values beyond which a row was strange, a column for each coverage asked for.

    >>> made = Predictions(np.array([0.0, -0.5, 2.0]), ["no", "maybe"], np.array(["maybe", "no"]), np.array([0, 1, 2]))
    >>> made.decision().tolist(), made.labels().tolist()
    ([-0.0, 0.5, -2.0], ['no', 'no', 'maybe'])
    >>> made.by_class(["maybe", "no", "yes"]).tolist()
    [[-inf, -inf, -inf], [-inf, 0.25, -inf], [1.0, -1.0, -inf]]
    """

    scores: Floats
    order: Sequence[Any] = ()
    classes: Array | None = None
    known: int | Ints = 0
    levels: float | Floats | None = None
    pairs: Floats = NONE
    chances: Floats | None = None
    thresholds: Floats | None = None

    def decision(self) -> Floats:
        """One score a row, positive for ``classes[1]``, or for the only class known; of more, a column for each of
        ``classes``. The prediction of a regressor; f(x) - rho of a detector."""
        if self.levels is not None:
            return np.asarray(self.scores - self.levels)
        if self.classes is None:
            return self.scores
        if self.scores.ndim == 2:
            return self.scores[:, self._columns()]  # another thread may have told the learner of more
        turned = self.classes[-1] != self.order[-1]
        if isinstance(self.known, int):
            return -self.scores if turned or self.known < 2 else self.scores
        return np.asarray(np.where(turned | (self.known < 2), -1.0, 1.0) * self.scores)

    def labels(self) -> Array:
        """The predicted classes; a score of 0 goes to ``classes[1]``, of several equal scores the first wins."""
        assert self.classes is not None
        if len(self.classes) == 1:
            return np.full(len(self.scores), self.classes[0])
        scores = self.decision()
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores >= 0).astype(int)
        if not isinstance(self.known, int):
            columns = self._columns()
            best[: len(self.pairs)][self.pairs == 0] = max(map(columns.index, range(2))) if len(self.pairs) else 0
            best = np.where(self.known < 2, columns.index(0), best)
        return np.asarray(self.classes[best])

    def _columns(self) -> list[int]:
        assert self.classes is not None
        return [self.order.index(label) for label in self.classes.tolist()]

    def codes(self, labels: Array) -> Ints:
        """The codes of labels: their places in ``order``, and ``len(order)`` for a label that is not there."""
        kinds = {"n" if kind in "biuf" else kind for kind in (labels.dtype.kind, np.asarray(self.classes).dtype.kind)}
        codes = encode(labels, self.order) if len(kinds) == 1 else None
        if codes is not None:
            return codes.astype(np.int64)
        places = {label: code for code, label in enumerate(self.order)}
        return np.array([places.get(label, len(places)) for label in labels.tolist()], dtype=np.int64)

    def probabilities(self) -> Floats:
        """The probability of each of ``classes``: 1 for the only one known, and 0 for those that were not known."""
        assert self.chances is not None
        p = self.chances[:, : max(1, len(self.order))].copy()
        known = np.broadcast_to(self.known, len(p))
        p[known < 2] = 0.0
        p[known == 1, 0] = 1.0
        return p[:, self._columns()]

    def by_code(self) -> Floats:
        """A score for each of ``order``, -inf for classes that were not known."""
        if self.scores.ndim == 2:
            return self.scores
        columns = [np.where(np.greater(self.known, code), half * self.scores, -np.inf)
                   for code, half in zip(range(len(self.order)), (-0.5, 0.5), strict=False)]  # fmt: skip
        return np.column_stack(columns)

    def by_class(self, classes: Sequence[Any]) -> Floats:
        """A score for each of ``classes``, those of ``order`` and maybe others; -inf for those that were not known."""
        out = np.full((len(self.scores), len(classes)), -np.inf)
        out[:, [classes.index(label) for label in self.order]] = self.by_code()[:, : len(self.order)]
        return out


def probabilities(scores: Floats, classes: int) -> Floats:
    """The probabilities of the classes, of scores with the logistic loss: one for two classes, or one for each."""
    if scores.ndim == 2:
        # in C order, in which every row is summed alike, whatever rows are around it
        return np.asarray(softmax(np.ascontiguousarray(scores), axis=1))
    if classes == 1:
        return np.ones((len(scores), 1))
    return np.column_stack([expit(-scores), expit(scores)])
