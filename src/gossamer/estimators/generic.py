"""Classifiers, regressors and detectors of any four parts; all other estimators are named recipes over them.

The file is long because the three are one concept: they differ in what y is.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin, OutlierMixin, RegressorMixin

from gossamer import _checks
from gossamer._locks import exclusive, shared
from gossamer._typing import Array, Floats
from gossamer.clock import read_times
from gossamer.estimators import (
    certain,
    class_weights,
    divergence,
    fitting,
    inputs,
    labels as _labels,
    several,
    targets as _targets,
    wary,
)
from gossamer.estimators.base import Online
from gossamer.estimators.choose import choose_loss_many
from gossamer.estimators.labels import Predictions
from gossamer.estimators.late import remembers
from gossamer.learner import Learner
from gossamer.losses import Loss, Taxonomy


class OnlineClassifier(ClassifierMixin, Online):  # type: ignore[misc]
    """A classifier of any four parts, for two or more classes; labels are of any type.

    Parameters
    ----------
    kernel : a Kernel, a name or a function of two batches.
    loss : a Loss or a name: of two classes, to which one of more may belong ("hinge", "logistic"), or of any number
        ("multiclass", "softmax").
    rule : a Rule or a name. A name may have parameters behind it, as here; see `gossamer.rules.as_rule`.
    budget : a Budget or a name; a number drops the lightest term; None keeps all.
    cost : what each mistake costs, a matrix over the sorted classes, or a `Taxonomy` of them (see `taxonomy`).
    average : "fit": ``fit`` hands out the mean of the hypotheses of the second half of its last pass, on the points
        that the budget leaves; online verbs go on from it and do not average. False: no mean. True, or "sparse" to
        bound its memory: all verbs keep the mean of all hypotheses so far, and predictions use it.
    n_passes : passes made by ``fit``.
    shuffle, random_state : whether ``fit`` makes each pass in a new random order, and the seed of the orders.
    half_life : what was learned loses half of its weight in this time: seconds, a timedelta, a text such as "7 days",
        or a `gossamer.HalfLife`. The verbs that learn then take the ``time`` of each row, and ``fit`` makes one pass in
        the order of the rows. None: time does not matter.
    class_weight : what a row of each class counts for: a dict of labels and weights (1 for the others), or "balanced",
        which gives all classes the same weight by the rows so far (`gossamer.estimators.class_weights`). It multiplies
        ``sample_weight``.

    Inside, the first label seen is -1, the second +1; a third makes a score for each class.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> model = gossamer.OnlineClassifier("matern:nu=2.5", "logistic", "gradient:rate=2", "random:size=64")
    >>> model.fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    task = "classification"
    targets = ("binary", "label", "several")
    class_weight: Any = None

    def __init__(
        self, kernel: Any = "gaussian", loss: Any = "hinge", rule: Any = "implicit:C=0.5,reg=1e-4",
        budget: Any = "project", *, cost: Any = None, average: bool | str = "fit", n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rule, self.budget, self.cost = kernel, loss, rule, budget, cost
        self.average, self.n_passes, self.shuffle, self.random_state = average, n_passes, shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight

    def _loss_many(self, classes: int | None) -> Loss:
        """The loss for more than two classes."""
        return choose_loss_many(self, classes)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = tags.target_tags.multi_output
        try:
            self._loss_many(None)
        except ValueError:
            tags.classifier_tags.multi_class = False
        return tags

    def _start(self, loss: Loss | None = None) -> Learner:
        class_weights.check(self, self.class_weight, self._rule())
        return super()._start(loss)

    def _structure(self) -> Any:
        """The cost matrix or taxonomy, or a loss with a fixed number of classes: all labels must be known then."""
        cost, loss = getattr(self, "cost", None), getattr(self, "loss", None)
        if cost is not None or loss is None or (isinstance(loss, str) and ":" not in loss):
            return cost
        loss = self._loss()
        return None if getattr(loss, "classes", None) is None else loss

    def fit(self, X: Any, y: Any, sample_weight: Any = None, time: Any = None) -> Any:
        """Start anew and make ``n_passes`` passes over the rows, each in a new order if ``shuffle``; with the ``time``
        of each row, one pass in their order."""
        if several.are_several(y):
            return self._anew(X, _checks.targets(self, y, len(y), None), sample_weight, time)
        labels = _checks.column(self, y)
        _labels.check_discrete(self, labels)
        return self._anew(X, labels, sample_weight, time)

    def _pass(self, part: fitting.Part) -> Floats | None:
        self._learn(part.X, part.y, part.weights, np.unique(np.asarray(part.whole_y)), time=part.time)
        return None

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, time: Any = None) -> Any:
        """Go on with more rows. ``classes`` may be given with the first: then no other label may come. ``time``: of
        each row, with ``half_life``."""
        self._learn(X, y, sample_weight, classes, time=time)
        return self

    def predict_learn(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None, *, method: str = "scores",
        coverage: Any = 0.9,
    ) -> Array:  # fmt: skip
        """Predict each row and then learn it; returns the scores, positive for ``classes_[1]``.

        While only one class has been seen, positive scores mean that class. With more than two classes: a column for
        each of ``classes_``, -inf where a class had not yet been seen. With ``method="proba"``, the probabilities that
        `predict_proba` would have given, 0 where a class had not yet been seen; with ``method="set"``, the sets of
        `predict_set` for ``coverage``.
        """
        if _checks.one_of(self, "method", method, ["scores", "proba", "set"]) == "scores":
            return self._predict_learn(X, y, sample_weight, time).decision()
        missed, one = certain.shares(self, coverage)
        made = self._predict_learn(X, y, sample_weight, time, missed=missed)
        if method == "proba":
            return made.probabilities()
        assert made.thresholds is not None
        return certain.sets(made.probabilities(), made.thresholds, one)

    def _predict_learn(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None, *, missed: Any = None
    ) -> Predictions:
        return self._learn(X, y, sample_weight, None, missed=missed, time=time)

    @exclusive
    @inputs.speaks
    def _learn(
        self, X: Any, y: Any, sample_weight: Any, classes: Any, ids: Any = None, time: Any = None, missed: Any = None
    ) -> Predictions:
        labels = several.check(self, y)
        if labels.ndim == 2:
            several.refuse_certainty(self, missed)
            return Predictions(several.learn_labels(self, X, labels, sample_weight, classes, time))
        names = self._names(X)
        before: list[Any] = self.__dict__.get("_order", [])
        order, given, codes = self._encoded(labels, classes)
        learner = self.__dict__.get("learner_")
        if learner is None:
            loss = self._loss()
            many = given and (len(order) > 2 or loss.target == "label" or self._structure() is not None)
            learner = self._begin(self._loss_many(len(order)) if many else loss)
        many = learner.loss.target == "label"
        pairs, counts = _labels.NONE, self.__dict__.get("_class_counts")
        fades = None if time is None else learner.elapse(time, len(codes))[0]
        weights, counted = class_weights.weigh(self, self.class_weight, order, codes, sample_weight, fades, counts)
        if many or len(order) <= 2:
            targets = codes if many else 2.0 * codes - 1.0
            scores, _ = inputs.learn(learner, X, targets, weights, ids=ids, owner=self, time=time)
        else:
            learner, scores, pairs = self._third_class(learner, X, codes, weights, time)
        told, found = None, {} if order == before else {"_order": order, "classes_": np.unique(np.array(order))}
        sure = self._certain()
        if sure is not None:
            given_weights = _checks.weights(self, sample_weight, len(codes))
            told = certain.learn_classes(sure, scores, codes, given_weights, pairs, missed, fades)
            found["_certainty"] = sure
        self._keep(learner, names, _given=given, **found, **counted)
        divergence.watch_rows(self, scores, codes, learner.steps - len(codes))
        fixed = max(2, len(order)) if given else len(order) if len(order) == len(before) else None
        known = _labels.count_known(codes, len(before)) if fixed is None else fixed
        chances, thresholds = told or (None, None)
        return Predictions(scores, order, self.classes_, known, pairs=pairs, chances=chances, thresholds=thresholds)

    def _third_class(
        self, learner: Learner, X: Any, codes: Floats, sample_weight: Any, time: Any
    ) -> tuple[Learner, Floats, Floats]:
        """Learn rows among which is the first of a third class: from there on, with a score for each class.

        Returns the learner of all classes, the scores, and those for two classes of the rows up to that first.
        """
        X = inputs.check(learner, X)
        inputs.settle(learner, X)  # on the whole batch, not on what comes before the third class
        rows = inputs.count(X)
        codes, weights = _checks.vector(self, "y", codes, rows), _checks.weights(self, sample_weight, rows)
        learner.elapse(time, rows)
        times = None if time is None else read_times(self, time, rows)
        split = int(np.argmax(codes > 1))
        later = self._start(self._loss_many(None))
        before, after = (
            [None if values is None else values[part] for values in (weights, times)]
            for part in (slice(split), slice(split, None))
        )
        scores, first = np.zeros(0), learner.state()
        if split:
            scores, _ = inputs.learn(learner, X[:split], 2.0 * codes[:split] - 1.0, before[0], time=before[1])
        later.kernel = learner.kernel
        learner.retire()
        state = learner.state()
        later.restore(None if state is None else state.widened(later.loss.widening))
        try:
            rest, _ = inputs.learn(later, X[split:], codes[split:], after[0], time=after[1])
        except BaseException:  # a user's kernel has failed: undo the first part as well
            learner.restore(first)
            raise
        known = _labels.count_known(codes[:split], len(self.__dict__.get("_order", [])))
        early = Predictions(scores, range(2), known=known).by_class(range(rest.shape[1]))
        return later, np.vstack([early, rest]), np.append(scores, rest[0, 1] - rest[0, 0])

    def _encoded(self, labels: Array, classes: Any) -> tuple[list[Any], bool, Floats]:
        """All labels in the order of their codes, whether they were given, and the codes of this batch."""
        order = self.__dict__.get("_order", [])
        if order and classes is None and labels.dtype.kind == self.classes_.dtype.kind:
            codes = _labels.encode(labels, order)
            if codes is not None:
                return order, self._given, codes
        unique, first, inverse = _labels.unique(self, "y", labels)
        order, given = self._order_after(unique[np.argsort(first)].tolist(), classes)
        numbers = np.array([order.index(label) for label in unique.tolist()], dtype=np.float64)
        return order, given, numbers[inverse]

    def _order_after(self, labels: list[Any], classes: Any) -> tuple[list[Any], bool]:
        """The order of the labels after this batch, and whether they were all given."""
        order = list(self.__dict__.get("_order", []))
        given = bool(self.__dict__.get("_given", False))
        structure = self._structure()
        if isinstance(structure, Taxonomy):
            classes = structure.labels
        if classes is not None:
            known = _labels.unique(self, "classes", np.asarray(classes))[0].tolist()
            if order and (not given or set(known) != set(order)):
                raise _checks.wrong(self, "classes", f"those of the first call, {sorted(order)}", known)
            order, given = order or known, True
        if structure is not None and not given:
            raise _checks.wrong(self, "classes", "given to partial_fit where there is a cost", None)
        for label in labels:
            if label in order:
                continue
            if given:
                raise _checks.wrong(self, "y", f"one of the classes {order}", label)
            order.append(label)
        return order, given

    def _outward(self, values: Floats) -> Floats:
        """Inner scores, or a part of them, with a row for each output, as the outside sees them."""
        if self._fitted().loss.target == "label":
            return values[self._columns()]
        return -values if _labels.is_turned(self._order, self.classes_) else values

    def _columns(self) -> list[int]:
        """The code of each of ``classes_``."""
        known = self.__dict__
        return [known["_order"].index(label) for label in known["classes_"].tolist()]

    def _predictions(self, X: Any) -> Predictions:
        """The scores of rows, with the classes known now."""
        known = self._known()
        order = known["_order"]
        return Predictions(self._scores(X, known["learner_"]), order, known["classes_"], len(order))

    def decision_function(self, X: Any) -> Floats:
        """The score of each row, positive for ``classes_[1]``; with more classes or several labels, a column for
        each."""
        return self._scores(X) if several.is_several(self) else self._predictions(X).decision()

    @remembers
    def predict(self, X: Any) -> Array:
        """The class of each row; a score of 0 goes to ``classes_[1]``, of several equal scores the first wins. With
        several labels a matrix: 1 where the score is above 0."""
        if several.is_several(self):
            return (self._scores(X) > 0).astype(np.int64)
        return self._predictions(X).labels()

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each of ``classes_``, calibrated on the scores that rows had before they were learned.

        A model of a file from before version 0.2 has no calibration: with the logistic loss its scores are log-odds.
        """
        if several.is_several(self):
            return several.probabilities(self, self._scores(X))
        return self._chances(X).probabilities()

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithm of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict_set(self, X: Any, coverage: Any = 0.9) -> Array:
        """The classes that are not strange at each row, True in a column for each of ``classes_``: of the rows learned,
        a share of ``coverage`` had their class in the set made before. Several coverages add an axis.

        The guarantee is that of `gossamer.bounds.conformal_coverage`, for the coverages .5, .8, .9, .95 and .99. A set
        may be empty, where every class would be strange, or have all classes, where little is known.
        """
        missed, one = certain.shares(self, coverage)
        several.refuse_certainty(self, missed)
        p = self._chances(X).probabilities()
        return certain.sets(p, certain.thresholds(self._known().get("_certainty"), missed, len(p)), one)

    def _chances(self, X: Any) -> Predictions:
        made, sure = self._predictions(X), self._known().get("_certainty")
        if sure is not None:
            return made._replace(chances=certain.chances(sure, made.scores))
        if self._fitted().loss.log_odds:
            return made._replace(chances=_labels.probabilities(made.scores, 2))
        return made._replace(chances=certain.chances(self._new_certainty(), made.scores))


class OnlineRegressor(RegressorMixin, Online):  # type: ignore[misc]
    """A regressor of any four parts.

    Parameters
    ----------
    kernel, rule, budget, average, n_passes, shuffle, random_state, half_life : as in `OnlineClassifier`.
    loss : a Loss of real targets, or a name.
    scale_target : whether the targets are centred and scaled as they come, so that their units do not matter; the
        parameters of loss and rule are then for targets so scaled.

    Coefficients, norm and intercept are in the units of the targets; ``learner_`` has them in scaled units.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.OnlineRegressor("gaussian:1", "huber:delta=0.5", "implicit:C=10", "project:64")
    >>> [round(float(value), 1) for value in model.fit(X, np.sin(X[:, 0])).predict([[1.5], [4.7]])]
    [1.0, -1.0]
    """

    task = "regression"
    targets = ("real", "several")
    _of_old: ClassVar[dict[str, Any]] = {"scale_target": False}

    def __init__(
        self, kernel: Any = "gaussian", loss: Any = "squared", rule: Any = "implicit:C=0.5,reg=1e-4",
        budget: Any = "project", *, average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True,
        random_state: Any = 0, scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rule, self.budget, self.scale_target = kernel, loss, rule, budget, scale_target
        self.average, self.n_passes, self.shuffle, self.random_state = average, n_passes, shuffle, random_state
        self.half_life = half_life

    def _moments(self) -> Any:
        """The moments of the targets so far; None if targets are not scaled."""
        if "learner_" in self.__dict__:
            return self.__dict__.get("_target_moments")
        return _targets.NOTHING if getattr(self, "scale_target", False) else None

    def _units(self) -> tuple[Any, Any]:
        """The targets that 0 and 1 of the learner stand for."""
        moments = self._moments()
        if moments is None:
            return 0.0, 1.0
        return several.units(moments) if several.is_several(self) else _targets.units(moments)

    def _start(self, loss: Loss | None = None) -> Learner:
        _checks.one_of(self, "scale_target", getattr(self, "scale_target", False), [False, True])
        return super()._start(loss)

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        if "_target_moments" in learned:
            several.check_moments(self, learned.get("learner_"), learned["_target_moments"])

    def fit(self, X: Any, y: Any, sample_weight: Any = None, time: Any = None) -> Any:
        """Start anew and make ``n_passes`` passes over the rows, each in a new order if ``shuffle``; with the ``time``
        of each row, one pass in their order."""
        matrix = several.are_several(y)
        targets = _checks.targets(self, y, len(y), None) if matrix else _checks.column(self, y)
        return self._anew(X, targets, sample_weight, time)

    def _pass(self, part: fitting.Part) -> Floats | None:
        self._predict_learn(part.X, part.y, part.weights, part.time)
        return None

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None, time: Any = None) -> Any:
        """Go on with more rows. ``time``: of each row, with ``half_life``."""
        self._predict_learn(X, y, sample_weight, time)
        return self

    def predict_learn(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None, *, method: str = "scores",
        coverage: Any = 0.9,
    ) -> Floats:  # fmt: skip
        """Predict each row and then learn it; returns the predictions, or with ``method="interval"`` the intervals that
        `predict_interval` would have given for ``coverage``."""
        if _checks.one_of(self, "method", method, ["scores", "interval"]) == "scores":
            return self._predict_learn(X, y, sample_weight, time).scores
        missed, one = certain.shares(self, coverage)
        made = self._predict_learn(X, y, sample_weight, time, missed=missed)
        assert made.thresholds is not None
        return certain.intervals(made.scores, made.thresholds, one)

    @exclusive
    @inputs.speaks
    def _predict_learn(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None, *, missed: Any = None
    ) -> Predictions:
        targets = several.check(self, y)
        if targets.ndim == 2:
            several.refuse_certainty(self, missed)
            return Predictions(several.learn_numbers(self, X, targets, sample_weight, time))
        names, learner, moments = self._names(X), self._learner(), self._moments()
        if moments is None:
            fades = None if time is None else learner.elapse(time, len(targets))[0]
            scores, _ = inputs.learn(learner, X, targets, sample_weight, owner=self, time=time)
            weights = _checks.weights(self, sample_weight, len(scores))
            sure, told = self._follow(scores, _checks.vector(self, "y", targets, len(scores)), weights, missed, fades)
            self._keep(learner, names, **sure)
            divergence.watch_rows(self, scores, targets, learner.steps - len(scores))
            return Predictions(scores, thresholds=told)
        rows = X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else len(targets)
        try:
            targets = _checks.vector(self, "y", targets, rows, finite=sample_weight is not None)
            weights = _checks.weights(self, sample_weight, rows)
            fades, _ = learner.elapse(time, rows)
            followed, moments = _targets.follow_all(moments, targets, weights, fades)
            _targets.check_finite(self, moments, targets)  # and with that the targets, if each of them counts
        except ValueError:
            inputs.check(learner, X)  # errors of X come first
            raise
        scaled, means, deviations = followed
        scores, _ = inputs.learn(learner, X, scaled, weights, owner=self, time=time)
        outward = scores * deviations + means
        sure, told = self._follow(outward, targets, weights, missed, fades)
        self._keep(learner, names, _target_moments=moments, **sure)
        divergence.watch_rows(self, scores, scaled, learner.steps - len(scores), scaled=True)
        return Predictions(outward, thresholds=told)

    def _follow(
        self, made: Floats, y: Floats, weights: Any, missed: Any, fades: Floats | None
    ) -> tuple[dict[str, Any], Floats | None]:
        """Learn how far predictions were from their targets; returns the learned attribute, and thresholds if asked."""
        sure = self._certain()
        if sure is None:
            return {}, None
        told = certain.learn_plain(sure, y - made, weights, missed, fades)
        return {"_certainty": sure}, None if told is None else told[1]

    @remembers
    def predict(self, X: Any) -> Floats:
        """The prediction for each row."""
        known = self._known()  # of one moment
        moments = known.get("_target_moments")
        scores = self._scores(X, known["learner_"])
        if moments is None:
            return scores
        mean, deviation = (several.units if scores.ndim == 2 else _targets.units)(moments)
        return np.asarray(scores * deviation + mean)

    def predict_interval(self, X: Any, coverage: Any = 0.9) -> Floats:
        """The low and the high end for each row, (rows, 2): of the rows learned, a share of ``coverage`` had their
        target inside the interval made before. Several coverages give (rows, coverages, 2).

        The guarantee is that of `gossamer.bounds.conformal_coverage`, for every stream, at the coverages .5, .8, .9,
        .95 and .99. Ends are infinite before the first row, and for a while after many misses.
        """
        missed, one = certain.shares(self, coverage)
        several.refuse_certainty(self, missed)
        made = self.predict(X)
        return certain.intervals(made, certain.thresholds(self._known().get("_certainty"), missed, len(made)), one)

    @property
    def target_mean_(self) -> Any:
        """The mean of the targets learned, which a score of 0 stands for; 0 without ``scale_target``. Of several
        targets, one for each."""
        self._fitted()
        return self._units()[0]

    @property
    def target_scale_(self) -> Any:
        """The deviation of the targets learned, which a score of 1 adds; 1 without ``scale_target``. Of several
        targets, one for each."""
        self._fitted()
        return self._units()[1]

    def _outward(self, values: Floats) -> Floats:
        if self._moments() is None:
            return values
        unit = self._units()[1]
        return np.asarray((unit[:, None] if np.ndim(unit) else unit) * values)

    @property
    @shared
    def intercept_(self) -> Any:
        """The constant part of a prediction: the learned offset b, and the mean target."""
        return super().intercept_ + self.target_mean_

    @property
    @shared
    def discarded_(self) -> float:
        """The sum of the RKHS norms of the terms that the budget discarded, in the present units of the targets."""
        return self._fitted().discarded * self._unit()

    @property
    @shared
    def norm_(self) -> float:
        """The RKHS norm of the hypothesis without its intercept, in the units of the targets."""
        return self._fitted().norm * self._unit()

    def _unit(self) -> float:
        """The unit of norms: that of the target; those of several targets have none in common."""
        return 1.0 if several.is_several(self) else float(self.target_scale_)


class OnlineDetector(OutlierMixin, Online):  # type: ignore[misc]
    """A novelty detector of any four parts: a row whose score is below ``offset_`` (rho) is an alarm.

    Parameters
    ----------
    kernel, rule, budget, n_passes, shuffle, random_state, half_life : as in `OnlineClassifier`.
    loss : a Loss without a target, or a name: "novelty" with a fixed margin, or with nu, the fraction of alarms.
    average : as there, but no mean by default: rho belongs to one hypothesis, and their mean has other alarms.
    skip : alarms are rows with a p-value below this (`score_pvalue`), and where they come in runs they are not learned,
        so that an anomaly that lasts is not learned away. None: alarms are scores below rho, and all rows are learned.

    >>> import gossamer
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = gossamer.OnlineDetector("gaussian:0.5", "novelty:nu=0.1")
    >>> round(float((model.predict_learn(X) < 0).mean()), 2)
    0.1
    """

    task = "novelty"
    targets = ("none",)
    _of_old: ClassVar[dict[str, Any]] = {"skip": None}

    def _start(self, loss: Loss | None = None) -> Learner:
        if getattr(self, "skip", None) is not None:
            _checks.number(self, "skip", self.skip, 0.0, 1.0)
        return super()._start(loss)

    def __init__(
        self, kernel: Any = "gaussian", loss: Any = "novelty:nu=0.05", rule: Any = "implicit:C=0.02,reg=1e-4",
        budget: Any = 256, *, average: bool | str = False, n_passes: int = 1, shuffle: bool = True,
        random_state: Any = 0, skip: float | None = None, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rule, self.budget, self.skip = kernel, loss, rule, budget, skip
        self.average, self.n_passes, self.shuffle, self.random_state = average, n_passes, shuffle, random_state
        self.half_life = half_life

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Any:
        """Start anew and make ``n_passes`` passes over the rows, each in a new order if ``shuffle``; with the ``time``
        of each row, one pass in their order."""
        return self._anew(X, None, sample_weight, time)

    def _pass(self, part: fitting.Part) -> Floats | None:
        return np.asarray(self._predict_learn(part.X, None, part.weights, part.time).levels)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None) -> Any:
        """Go on with more rows. ``time``: of each row, with ``half_life``."""
        self.predict_learn(X, y, sample_weight, time)
        return self

    def predict_learn(
        self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, *, method: str = "scores"
    ) -> Floats:
        """Score each row and then learn it; returns f(x) - rho as it was then, negative for an alarm; or with
        ``method="pvalue"`` the p-values that `score_pvalue` would have given."""
        if _checks.one_of(self, "method", method, ["scores", "pvalue"]) == "scores":
            return self._predict_learn(X, y, sample_weight, time).decision()
        chances = self._predict_learn(X, y, sample_weight, time, missed=()).chances
        assert chances is not None
        return chances

    @exclusive
    @inputs.speaks
    def _predict_learn(
        self, X: Any, y: Any = None, sample_weight: Any = None, time: Any = None, *, missed: Any = None
    ) -> Predictions:
        names, learner = self._names(X), self._learner()
        if getattr(self, "skip", None) is not None:
            return wary.predict_learn(self, learner, names, X, sample_weight, time)
        fades = None if time is None else learner.elapse(time, inputs.count(X))[0]
        scores, levels = inputs.learn(learner, X, None, sample_weight, owner=self, time=time)
        told, found, sure = None, {}, self._certain()
        if sure is not None:
            weights = _checks.weights(self, sample_weight, len(scores))
            told = certain.learn_plain(sure, self._compared(scores, levels), weights, missed, fades)
            found["_certainty"] = sure
        self._keep(learner, names, **found)
        chances, thresholds = told or (None, None)
        return Predictions(scores, levels=levels, chances=chances, thresholds=thresholds)

    @property
    def offset_(self) -> float:
        """rho: scores below it are alarms."""
        return self._fitted().level

    def score_samples(self, X: Any) -> Floats:
        """f(x) for every row: the larger, the more usual."""
        return self._scores(X)

    def score_pvalue(self, X: Any) -> Floats:
        """The share of alarms at which each row is just about to raise one: small for a strange row. Of the rows
        learned, a share p had a p-value of at most p, also while the model learns: at p = .01 by
        `gossamer.bounds.conformal_coverage`; at .05, .1, .2 and .5 too, unless the levels of these shares cross."""
        (scores, levels), sure = self._scores_levels(X), self._known().get("_certainty")
        out = np.ones(len(scores))
        if sure is not None:
            sure.p_values(np.ascontiguousarray(self._compared(scores, levels)), out)
        return out

    def _compared(self, scores: Any, levels: Any) -> Any:
        """What p-values compare: how far scores are above rho, which moves as they do while the model learns. With
        ``skip`` the scores themselves (`gossamer.estimators.wary`)."""
        return scores - levels if getattr(self, "skip", None) is None else scores

    def decision_function(self, X: Any) -> Floats:
        """f(x) - rho: negative for an alarm. With ``skip``, log(p-value / skip)."""
        skip = getattr(self, "skip", None)
        if skip is not None:
            return np.asarray(np.log(self.score_pvalue(X) / skip))
        scores, levels = self._scores_levels(X)
        return scores - levels

    @remembers
    def predict(self, X: Any) -> Array:
        """1 for a usual row, -1 for an alarm."""
        return np.where(self.decision_function(X) < 0, -1, 1)
