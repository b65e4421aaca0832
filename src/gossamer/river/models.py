"""The adapters under the river models: dict rows and frames in, an estimator of the package inside."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._locks import Snapshot, exclusive
from gossamer._typing import Floats
from gossamer.estimators import certain
from gossamer.estimators.base import Online
from gossamer.estimators.class_weights import check as check_class_weight
from gossamer.estimators.divergence import watch
from gossamer.learner import Learner
from gossamer.losses import Taxonomy
from gossamer.river.columns import Columns, Label, Learned, Row

try:
    from river import base
    from river.utils import dataframe
except ImportError as error:
    raise ImportError("gossamer.river needs river: pip install 'gossamer[river]'.", name="river") from error


class Transformer(base.Transformer):
    """river's base of transformers."""


class Model(Snapshot, base.Estimator):
    """The base of all models: the parameters of an estimator, and its learned state.

    Several threads may use a model: most rows go straight to compiled code, which has a lock of its own; all others are
    serialised here. The attributes of `Learned` are replaced in an order in which a row never fits a wrong learner.
    """

    _estimator: ClassVar[type[Online]]
    _parameters: ClassVar[tuple[str, ...]]
    _example: ClassVar[str]
    _learned: Learned | None = None
    kernel: Any
    half_life: Any

    @property
    def learner(self) -> Learner | None:
        """The `Learner` inside: support points, coefficients, number of updates. None before the first row."""
        return None if self._learned is None else self._learned.learner

    @property
    def features(self) -> tuple[Any, ...]:
        """The features learned so far, in the order of the columns of ``learner.points``; spare columns follow."""
        return () if self._learned is None else tuple(self._learned.columns.places)

    @property
    def _raw_memory_usage(self) -> int:
        own: int = super()._raw_memory_usage
        learner = self.learner
        if learner is None or learner.backend != "native":
            return own
        state = learner.state()
        return own if state is None else own + state.nbytes

    def _made(self, **changed: Any) -> Any:
        """The estimator with the same parameters."""
        return self._estimator(**{**{name: getattr(self, name) for name in self._parameters}, **changed})

    def _begin(self, table: Floats, columns: Columns) -> Learned:
        # settled with one row, so that a first batch is learned like its rows
        return Learned(self._made(kernel=self._made()._kernel_for(table[:1])), columns, [])

    def _absorb(self, X: Any, y: Any, w: Any, t: Any = None) -> Learned:
        """The general path: learn the first row, a row with new features or labels, one with a time, or a frame."""
        learned = self._learned
        columns = Columns(type(self).__name__) if learned is None else learned.columns
        if not isinstance(X, Mapping) and not hasattr(X, "to_native"):  # neither a row nor a frame as river wraps it
            raise columns.fault(X)
        new = columns.new(X if isinstance(X, Mapping) else X.columns)
        width = columns.room(new)
        table = columns.table(X, new, width)
        if learned is None:
            learned = self._begin(table, columns)
        else:
            learned.widen(width)
        weights = np.full(len(table), w) if np.ndim(w) == 0 else np.asarray(w)
        self._feed(learned, table, y, weights, t)
        learned.learner = learned.estimator.learner_
        learned.columns = columns.added(new, width)
        self._learned = learned
        return learned

    def _feed(self, learned: Learned, table: Floats, y: Any, weights: Any, t: Any) -> None:
        learned.estimator.partial_fit(table, y, sample_weight=weights, time=t)

    @exclusive
    def _learn_timed(self, x: Row, y: Any, w: float, t: Any) -> None:
        """Learn a row that has a time."""
        self._absorb(x, None if y is None else [y], w, None if t is None else [t])

    @exclusive
    def _learn_together(self, x: Row, y: list[Any], w: float, t: Any) -> None:
        """Learn a row with several targets (`gossamer.river.several`)."""
        self._absorb(x, np.array([y], dtype=np.float64), w, None if t is None else [t])

    @exclusive
    def _learn_long(self, x: Row, y: Any, w: float) -> None:
        """Learn a row that the fast path has refused."""
        if self._learned is None or not self._learned.learn_one(x, y, w):
            self._absorb(x, None if y is None else [y], w)

    @exclusive
    def _score_long(self, x: Row) -> tuple[Any, Learned]:
        """The score of one row, or a score per class, and the labels known then."""
        assert self._learned is not None
        return self._learned.score_one(x), copy.copy(self._learned)

    def _score(self, x: Row, learned: Learned) -> Any:
        score = learned.score_fast(x)
        score = self._score_long(x)[0] if score is None else score
        if not isinstance(score, float) or not math.isfinite(score):
            watch(self, np.atleast_1d(score)[None, :] if np.ndim(score) else np.array([score]))
        return score

    @exclusive
    def _absorb_frame(self, X: Any, y: Any, w: Any, t: Any) -> None:
        frame = self._frame(X)
        try:
            targets = None if y is None else dataframe.into_series(y)
        except TypeError:
            raise _checks.wrong(self, "y", "a series", type(y)) from None
        learned = self._absorb(frame, None if targets is None else targets.to_list(), w, t)
        learned.name = None if targets is None else targets.name

    def _frame(self, X: Any) -> Any:
        try:
            return dataframe.into_frame(X)
        except TypeError:
            raise _checks.wrong(self, "X", "a frame of pandas, polars, ...", type(X)) from None

    @exclusive  # a new feature may need more columns
    def _scores(self, X: Any) -> tuple[Floats, Learned] | None:
        """The scores of a frame, and the labels known then; None before the first row."""
        learned = self._learned
        if learned is None:
            return None
        return learned.learner.score(learned.table(X), average=learned.averaged), copy.copy(learned)


class Classifier(Model, base.MiniBatchClassifier):
    _example = """
    >>> from gossamer import river
    >>> model = river.{name}()
    >>> for x, y in [(0.0, "no"), (1.0, "yes"), (0.1, "no"), (0.9, "yes")]:
    ...     model.learn_one({{"x": x}}, y)
    >>> model.predict_one({{"x": 0.8}})
    'yes'
    """

    class_weight: Any = None  # of estimators that have none

    @property
    def _multiclass(self) -> bool:
        return bool(self._made().__sklearn_tags__().classifier_tags.multi_class)

    def learn_one(self, x: Row, y: Label, w: float = 1.0, t: Any = None) -> None:
        """Learn one row with a label of any hashable type and a weight; ``t``: its time, with ``half_life``."""
        if t is not None or self.half_life is not None or self.class_weight is not None:
            self._learn_timed(x, y, w, t)
            return
        learned = self._learned
        target = None if learned is None else learned.target(y)
        if target is None or learned is None or not learned.learn_fast(x, target, w):
            self._learn_long(x, y, w)

    @exclusive
    def _learn_long(self, x: Row, y: Any, w: float) -> None:
        learned = self._learned
        target = None if learned is None else learned.target(y)
        if target is None or learned is None or not learned.learn_one(x, target, w):
            self._absorb(x, [y], w)

    def learn_many(self, X: Any, y: Any, w: Any = 1.0, t: Any = None) -> None:
        """Learn the rows of a frame in order, as ``learn_one`` would."""
        self._absorb_frame(X, y, w, t)

    def _begin(self, table: Floats, columns: Columns) -> Learned:
        learned, cost = super()._begin(table, columns), getattr(self, "cost", None)
        if isinstance(cost, Taxonomy):  # inside, labels are codes in order of appearance, or in the order of the costs
            learned.labels = list(cost.labels)
            learned.estimator.cost = dataclasses.replace(cost, labels=tuple(range(len(cost.labels))))
        elif cost is not None:
            if np.ndim(cost) != 2:
                raise _checks.wrong(self, "cost", "a Taxonomy, a matrix over the labels 0, 1, ... or None", cost)
            learned.labels = list(range(len(cost)))
        learned.given = bool(learned.labels)
        if isinstance(check_class_weight(self, self.class_weight), Mapping):  # of labels, which the face alone knows
            learned.estimator.class_weight = None
        return learned

    def _feed(self, learned: Learned, table: Floats, y: Any, weights: Any, t: Any) -> None:
        if isinstance(y, np.ndarray) and y.ndim == 2:  # several labels at once
            super()._feed(learned, table, y, weights, t)
            return
        numbers = {label: i for i, label in enumerate(learned.labels)}
        for label in y:
            if not _is_label(label):
                raise _checks.wrong(self, "y", "a hashable label, not None or NaN", label)
            if learned.given and label not in numbers:
                raise _checks.wrong(self, "y", f"one of the classes {learned.labels}", label)
            numbers.setdefault(label, len(numbers))
        first = learned.given and not learned.targets
        codes = np.array([numbers[label] for label in y], dtype=np.int64)
        if isinstance(self.class_weight, Mapping):
            weights = weights * [float(self.class_weight.get(label, 1.0)) for label in y]
        classes = np.arange(len(numbers)) if first else None
        learned.estimator.partial_fit(table, codes, classes=classes, sample_weight=weights, time=t)
        many = learned.estimator.learner_.loss.target == "label"
        learned.labels = list(numbers)
        learned.targets = {label: float(i if many else 2 * i - 1) for label, i in numbers.items()}

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """The label; None before the first was learned."""
        learned = self._learned
        if learned is None:
            return None
        labels, score = learned.labels, self._score(x, learned)
        if isinstance(score, float):
            return labels[1] if score >= 0 and len(labels) > 1 else labels[0]
        return labels[int(np.argmax(score[: len(labels)]))]  # another thread may have added a class

    def predict_many(self, X: Any) -> Any:
        """The labels of the rows of a frame."""
        frame = self._frame(X)
        found = self._scores(frame)
        if found is None:
            return dataframe.to_native_series([None] * len(frame), name=None, like=frame)
        scores, learned = found
        codes = _winners(scores.reshape(len(frame), -1), len(learned.labels)).tolist()
        return dataframe.to_native_series([learned.labels[i] for i in codes], name=learned.name, like=frame)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """The probability of each label, calibrated on the scores that rows had before they were learned."""
        if self._learned is None:
            return self._both({}, 0.5)
        score, learned = self._score_long(x)
        shares = _shares(learned, np.atleast_1d(score)[None] if np.ndim(score) else np.array([score]))
        return self._both(dict(zip(learned.labels, shares[0].tolist(), strict=True)), 0.0)

    def predict_proba_many(self, X: Any) -> Any:
        """``predict_proba_one`` for the rows of a frame: a column for each label."""
        frame = self._frame(X)
        if self._learned is None:
            shares = self._both({}, np.full(len(frame), 0.5))
        else:
            found = self._scores(frame)
            assert found is not None
            columns = _shares(found[1], found[0]).T
            shares = self._both(dict(zip(found[1].labels, columns, strict=True)), np.zeros(len(frame)))
        return dataframe.to_native_frame(shares, like=frame) if shares else frame.select([]).to_native()

    def _both(self, shares: dict[Any, Any], rest: Any) -> dict[Any, Any]:
        """river asks a model for two classes for True and False, also when it has not seen both."""
        if len(shares) < 2 and all(isinstance(label, (bool, np.bool_)) for label in shares) and not self._multiclass:
            return {False: rest, True: rest, **shares}
        return shares


def _is_label(value: Any) -> bool:
    try:
        hash(value)
        return value is not None and bool(value == value)  # NaN is not itself
    except TypeError:
        return False


def _winners(scores: Floats, labels: int) -> Any:
    """The code of the predicted label, for scores in columns: one column for two labels, else one per label."""
    return scores.argmax(axis=1) if scores.shape[1] > 1 else np.minimum(scores[:, 0] >= 0, labels - 1)


def _shares(learned: Learned, scores: Floats) -> Floats:
    """The probabilities of the labels, from scores as the learner gives them."""
    labels = len(learned.labels)
    if labels == 1:
        return np.ones((len(scores), 1))
    return certain.chances(learned.estimator._sure(), scores)[:, :labels]


class Regressor(Model, base.MiniBatchRegressor):
    _example = """
    >>> from gossamer import river
    >>> model = river.{name}()
    >>> for _ in range(100):
    ...     model.learn_one({{"x": 0.0}}, 2.0)
    >>> round(model.predict_one({{"x": 0.0}}))
    2
    """

    def learn_one(self, x: Row, y: float, w: float = 1.0, t: Any = None) -> None:
        """Learn one row with its target and a weight; ``t``: its time, with ``half_life``."""
        if t is not None or self.half_life is not None:
            self._learn_timed(x, y, w, t)
            return
        learned = self._learned
        # targets in units of their own come one after the other; others may be learned by any thread
        if learned is None or learned.scales or not learned.learn_fast(x, y, w):
            self._learn_long(x, y, w)

    @exclusive
    def _learn_long(self, x: Row, y: Any, w: float) -> None:
        if self._learned is None or not self._learned.learn_target(x, y, w):
            self._absorb(x, [y], w)

    def learn_many(self, X: Any, y: Any, w: Any = 1.0, t: Any = None) -> None:
        """Learn the rows of a frame in order, as ``learn_one`` would."""
        self._absorb_frame(X, y, w, t)

    def predict_one(self, x: Row) -> float:
        """The prediction; 0 before the first row."""
        learned = self._learned
        return 0.0 if learned is None else float(learned.outward(self._score(x, learned)))

    def predict_interval_one(self, x: Row, coverage: Any = 0.9) -> Any:
        """The low and the high end that a share of ``coverage`` of the targets lay between; several coverages give a
        list of pairs. See `gossamer.OnlineRegressor.predict_interval`."""
        learned = self._learned
        missed, one = certain.shares(self, coverage)
        middle = self.predict_one(x)
        radii = [math.inf if learned is None else learned.estimator._sure().threshold(share) for share in missed]
        ends = [(middle - radius, middle + radius) for radius in radii]
        return ends[0] if one else ends

    def predict_many(self, X: Any) -> Any:
        """The predictions for the rows of a frame."""
        frame = self._frame(X)
        found = self._scores(frame)
        if found is None:
            return dataframe.to_native_series(np.zeros(len(frame)), name=None, like=frame)
        scores, learned = found
        return dataframe.to_native_series(learned.outward(scores), name=learned.name, like=frame)


class Detector(Model, base.AnomalyDetector):
    _example = """
    >>> from gossamer import river
    >>> model = river.{name}()
    >>> for _ in range(100):
    ...     model.learn_one({{"x": 0.0}})
    >>> model.score_one({{"x": 3.0}}) > model.score_one({{"x": 0.0}})
    True
    """

    def learn_one(self, x: Row, w: float = 1.0, t: Any = None) -> None:
        """Learn one row with a weight; ``t``: its time, with ``half_life``."""
        if t is not None or self.half_life is not None:
            self._learn_timed(x, None, w, t)
            return
        learned = self._learned
        if learned is not None and getattr(self, "skip", None) is not None:
            self._absorb_wary(x, w)
        elif learned is None or not learned.learn_fast(x, None, w):
            self._learn_long(x, None, w)

    def learn_many(self, X: Any, w: Any = 1.0, t: Any = None) -> None:
        """Learn the rows of a frame in order, as ``learn_one`` would."""
        self._absorb_frame(X, None, w, t)

    def score_one(self, x: Row) -> float:
        """rho - f(x): the higher, the less usual; positive for an alarm. 0 before the first row."""
        learned = self._learned
        return 0.0 if learned is None else float(learned.learner.level - self._score(x, learned))

    @exclusive
    def _absorb_wary(self, x: Row, w: float) -> None:
        """Runs of alarms are not learned: the estimator decides."""
        self._absorb(x, None, w)

    def score_pvalue_one(self, x: Row) -> float:
        """The share of recent rows that were at least as strange, each before it was learned; 1 before any."""
        learned = self._learned
        if learned is None:
            return 1.0
        out = np.empty(1)
        own = learned.estimator
        own._sure().p_values(np.array([own._compared(self._score(x, learned), learned.learner.level)]), out)
        return float(out[0])

    def score_many(self, X: Any) -> Any:
        """``score_one`` for the rows of a frame."""
        frame = self._frame(X)
        found = self._scores(frame)
        values = np.zeros(len(frame)) if found is None else found[1].learner.level - found[0]
        return dataframe.to_native_series(values, name=None, like=frame)
