"""A mixture of models that a user brings."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gossamer import _checks, _core
from gossamer._locks import Snapshot, exclusive, publish
from gossamer._stored import Stored
from gossamer._typing import Array, Floats
from gossamer.clock import HalfLife, as_half_life, check_time, elapse_rows, read_times
from gossamer.estimators import certain, inputs, labels as _labels, targets
from gossamer.estimators.base import Online
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.estimators.labels import Predictions
from gossamer.estimators.late import LateLabels, check_pending, remembers
from gossamer.estimators.pipelines import OnlinePipeline, last_step
from gossamer.mixture.state import sound
from gossamer.mixture.weights import SHARE, Weights, opinion_numbers

#: The learned attributes.
LEARNED = (
    "models_", "classes_", "n_features_in_", "_opinions", "_weights", "_credits", "_moments", "_certainty", "_late",
    "_time",
)  # fmt: skip


class Mixture(LateLabels, Stored, Snapshot, BaseEstimator):  # type: ignore[misc]
    """Models of any settings, mixed by Bayes weights with a fixed share (Herbster and Warmuth 1998).

    Every model learns every row. Scores of classifiers become probabilities through calibrated links, predictions of
    regressors densities whose spread is learned, and the mixture has the weighted mean of them. After each row

        weight_e <- (1 - share) weight_e p_e(y) / sum of all + share / number of models.

    The log loss is at most `gossamer.bounds.fixed_share` above that of the best sequence of models. `AutoClassifier`
    and `AutoRegressor` choose their experts themselves.

    Parameters
    ----------
    experts : estimators or pipelines of Gossamer, all classifiers or all regressors; they are cloned.
    share : of the weight that all share after each row: the larger, the faster the mixture follows another model.

    Attributes
    ----------
    models_ : the models as they are now.
    weights_ : their weights.

    >>> import gossamer
    >>> from gossamer.kernels import Gaussian, Linear
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.where(X[:, 0] > 0, "right", "left")
    >>> model = gossamer.Mixture([gossamer.SILKClassifier(Gaussian(1.0)), gossamer.NewtonClassifier(Linear())])
    >>> shares = model.predict_learn(X, y)
    >>> model.weights_.round(2).tolist(), model.predict([[2.0, 0.0]]).tolist()
    ([0.01, 0.99], ['right'])
    """

    def __init__(self, experts: Sequence[Any], share: float = SHARE) -> None:
        self.experts, self.share = experts, share

    @property
    def _estimator_type(self) -> str:
        return "classifier" if self._classifies() else "regressor"

    @property
    def task(self) -> str:
        """What the models do: "classification" or "regression"."""
        return "classification" if self._classifies() else "regression"

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = self._estimator_type
        tags.target_tags.required = True
        tags.input_tags.sparse = True
        if self._classifies():
            tags.classifier_tags = ClassifierTags()
        else:
            tags.regressor_tags = RegressorTags()
        return tags

    def _classifies(self) -> bool:
        return bool(self.experts) and isinstance(last_step(self.experts[0]), OnlineClassifier)

    def _check(self) -> None:
        _checks.number(self, "share", self.share, 0.0, 1.0)
        experts = self.experts if isinstance(self.experts, (list, tuple)) else []
        kinds = {kind for model in experts for kind in (OnlineClassifier, OnlineRegressor) if _is(model, kind)}
        if len(kinds) != 1 or not all(_is(model, kind) for model in experts for kind in kinds):
            rule = "a list of classifiers or of regressors of Gossamer, or of pipelines of them"
            raise _checks.wrong(self, "experts", rule, self.experts)

    # -------------------------------------------------------------------------------------------------- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None, time: Any = None) -> Any:
        """Start anew with these rows, in their order."""
        fresh = clone(self)
        if self._classifies():
            _labels.check_discrete(self, _checks.column(self, y))
        weights = _checks.weights(self, sample_weight, len(_checks.column(self, y)))
        if weights is not None and not weights.any():
            raise _checks.wrong(self, "sample_weight", "above zero for some row", sample_weight)
        fresh._learn(X, y, sample_weight, time=time)
        self._replace({name: fresh.__dict__[name] for name in LEARNED if name in fresh.__dict__})
        return self

    @exclusive
    def _replace(self, learned: dict[str, Any]) -> None:
        publish(self, learned, instead_of=LEARNED)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, time: Any = None) -> Any:
        """Go on with more rows. ``classes`` may be given with the first: then no other label may come. ``time``: of
        each row, for experts with a half_life."""
        self._learn(X, y, sample_weight, classes, time)
        return self

    def predict_learn(
        self, X: Any, y: Any, sample_weight: Any = None, time: Any = None, *, method: str = "scores",
        coverage: Any = 0.9,
    ) -> Array:  # fmt: skip
        """Predict each row and then learn it: the probabilities of ``classes_``, a column for each, 0 for a class not
        yet seen; of regressors the predictions. With ``method="set"`` the sets of `predict_set` for ``coverage``, with
        ``method="interval"`` the intervals of `predict_interval`; "proba" is the same as "scores"."""
        methods = ["scores", "proba", "set"] if self._classifies() else ["scores", "interval"]
        if _checks.one_of(self, "method", method, methods) in ("scores", "proba"):
            return self._learn(X, y, sample_weight, time=time)[0]
        missed, one = certain.shares(self, coverage)
        made, thresholds = self._learn(X, y, sample_weight, missed=missed, time=time)
        assert thresholds is not None
        return certain.sets(made, thresholds, one) if method == "set" else certain.intervals(made, thresholds, one)

    @exclusive
    def _learn(
        self, X: Any, y: Any, sample_weight: Any, classes: Any = None, time: Any = None, missed: Any = None
    ) -> tuple[Floats, Floats | None]:
        """Learn rows; what was predicted before each, and the thresholds of these shares of misses, if asked for."""
        self._check()
        known = self.__dict__
        given = _checks.column(self, y)
        weights = _checks.weights(self, sample_weight, len(given))
        fades, last = elapse_rows(self, self._clock(), known.get("_time"), time, len(given))
        times = None if time is None else read_times(self, time, len(given))
        models = self._models(X, given)
        told = {} if classes is None else {"classes": np.asarray(classes)}
        made = [_predict_learn(model, X, given, weights, told, times) for model in models]
        mixed, sure = self._mixed(len(models)), copy.deepcopy(self._sure())
        now: dict[str, Any] = {"models_": models, "n_features_in_": models[0].n_features_in_}
        if self._classifies():
            known_classes = np.asarray(last_step(models[0]).classes_)
            order = known_classes.tolist()
            scores = np.stack([_outputs(one.by_class(order)) for one in made])
            codes = np.searchsorted(known_classes, given).astype(np.float64)
            logs = mixed.learn(scores, None, codes, weights, fades)
            out = softmax(_finite(logs), axis=1)
            logs = np.ascontiguousarray(logs)
            found = certain.learn_classes(sure, logs, codes, weights, _labels.NONE, missed, fades)
            now["classes_"] = known_classes
        else:
            values = _checks.vector(self, "y", given, len(given))
            moments = known.get("_moments", targets.NOTHING)
            (z, means, deviations), moments = targets.follow_all(moments, values, weights)
            targets.check_finite(self, moments, values)
            scores = np.stack([_scaled(one.scores, means, deviations) for one in made])
            ones = np.ones(scores.shape[:2])
            out = mixed.learn(scores, ones, z, weights, fades)[:, 0] * deviations + means
            found = certain.learn_plain(sure, values - out, weights, missed, fades)
            now["_moments"] = moments
        if last is not None:
            now["_time"] = last
        now.update(_opinions=mixed.opinions, _weights=mixed.weights, _credits=mixed.credits, _certainty=sure)
        publish(self, now)
        return np.asarray(out), None if found is None else found[1]

    def _sure(self) -> Any:
        """What says how sure the mixture is: its own, or a new one."""
        found = self.__dict__.get("_certainty")
        return _core.Certainty("log_odds" if self._classifies() else "regression") if found is None else found

    def _timed(self) -> bool:
        return self._clock() is not None

    def _clock(self) -> HalfLife | None:
        """The links forget in twice the longest half-life of an expert; None: by rows, if no expert has one."""
        found = [as_half_life(self, step.half_life) for model in self.experts for step in _timed(model)]
        lives = [life for life in found if life is not None]
        if not lives:
            return None
        late = "clamp" if all(life.late == "clamp" for life in lives) else "error"
        return HalfLife(2.0 * max(life.seconds for life in lives), late)

    def _models(self, X: Any, y: Array) -> list[Any]:
        """The models to go on with: those that are there, if no row or label can be refused by one after another has
        learned it; else copies, so that nothing changes if one refuses."""
        known = self.__dict__
        if "models_" not in known:
            return [clone(model) for model in self.experts]
        models: list[Any] = known["models_"]
        lasts = [last_step(model) for model in models]
        safe = all(last.learner_.backend.endswith("native") for last in lasts)
        new = self._classifies() and not np.isin(y, known["classes_"]).all()
        if new or not safe:
            return [copy.deepcopy(model) for model in models]
        for model, last in zip(models, lasts, strict=True):
            if model is last:
                inputs.check(last.learner_, X)
        return models

    def _mixed(self, count: int) -> Weights:
        known = self.__dict__
        mixed = Weights("class" if self._classifies() else "value", count, self.share)
        if "_weights" in known:
            mixed.opinions, mixed.weights = known["_opinions"].copy(), known["_weights"].copy()
            mixed.credits = known["_credits"].copy()
        return mixed

    # ------------------------------------------------------------------------------------------------ predicting

    def _known(self) -> dict[str, Any]:
        check_is_fitted(self, "models_")
        return self.__dict__

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each of ``classes_``."""
        known = self._known()
        order = known["classes_"].tolist()
        made = [_predictions(model, X) for model in known["models_"]]
        scores = np.stack([_outputs(found.by_class(order)) for found in made])
        return np.asarray(softmax(_finite(self._mixed(len(made)).predict(scores, None)), axis=1))

    @remembers
    def predict(self, X: Any) -> Array:
        """The class, or the number, of each row."""
        known = self._known()
        if "classes_" in known:
            return np.asarray(known["classes_"][self.predict_proba(X).argmax(axis=1)])
        return np.asarray(known["_weights"] @ np.stack([model.predict(X) for model in known["models_"]]))

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def predict_set(self, X: Any, coverage: Any = 0.9) -> Array:
        """The classes that are not strange at each row, as `OnlineClassifier.predict_set`."""
        missed, one = certain.shares(self, coverage)
        p = self.predict_proba(X)
        return certain.sets(p, certain.thresholds(self._sure(), missed, len(p)), one)

    @available_if(lambda self: not self._classifies())  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: Any = 0.9) -> Floats:
        """The low and the high end for each row, as `OnlineRegressor.predict_interval`."""
        missed, one = certain.shares(self, coverage)
        made = self.predict(X)
        return certain.intervals(made, certain.thresholds(self._sure(), missed, len(made)), one)

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """The log-odds of ``classes_[1]``; of more classes the logarithms of their probabilities."""
        shares = self.predict_proba(X)
        with np.errstate(divide="ignore"):
            logs = np.log(shares)
        return np.asarray(logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs)

    def score(self, X: Any, y: Any) -> float:
        """The accuracy; of regressors R^2."""
        from sklearn.metrics import accuracy_score, r2_score

        return float((accuracy_score if self._classifies() else r2_score)(y, self.predict(X)))

    @property
    def weights_(self) -> Floats:
        """The weights of the models."""
        return np.array(self._known()["_weights"])

    def explain(self, least: float = 0.01) -> str:
        """The models that carry the weight now: a line for each with at least this weight, the heaviest first."""
        known = self._known()
        order = np.argsort(-known["_weights"], kind="stable").tolist()
        found = [(float(known["_weights"][i]), known["models_"][i]) for i in order]
        return "\n".join(f"{weight:5.1%}  {model}" for weight, model in found if weight >= least)

    def best(self) -> Any:
        """The heaviest model alone, as it is now."""
        known = self._known()
        return known["models_"][int(np.argmax(known["_weights"]))]

    def _learned(self) -> dict[str, Any]:
        learned = super()._learned()
        if "_certainty" in learned:
            learned["_certainty"] = learned["_certainty"].state()
        return learned

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        self._check()
        check_pending(self, learned)
        if not learned.keys() - {"_late"}:
            return
        if unknown := sorted(learned.keys() - set(LEARNED)):
            raise _checks.wrong(self, unknown[0], "left out: nothing of this name is learned", learned[unknown[0]])
        kind, many = "class" if self._classifies() else "value", len(self.experts)
        models = learned.get("models_")
        if not isinstance(models, list) or [type(model) for model in models] != [type(e) for e in self.experts]:
            raise _checks.wrong(self, "models_", "the experts that have learned", models)
        for name, shape in (("_opinions", (many, opinion_numbers(kind))), ("_weights", (many,)), ("_credits", (many,))):
            found: Any = learned.get(name)
            fits = isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == shape
            if not fits or not np.isfinite(found).all():
                raise _checks.wrong(self, name, f"finite numbers of shape {shape}", found)
        weights = learned["_weights"]
        if not (weights > 0).all() or abs(weights.sum() - 1) > 1e-6 or not sound(kind, learned["_opinions"]):
            raise _checks.wrong(self, "_weights", "positive with the sum 1", weights)
        check_time(self, "_time", self._clock(), learned.get("_time"))
        if "_certainty" in learned:
            fresh = _core.Certainty("log_odds" if kind == "class" else "regression")
            self._certainty = certain.restore(self, fresh, learned["_certainty"])
        if kind == "value":
            targets.check_moments(self, learned.get("_moments"))
        elif not np.array_equal(learned.get("classes_", ()), np.asarray(getattr(last_step(models[0]), "classes_", 0))):
            raise _checks.wrong(self, "classes_", "those of the models", learned.get("classes_"))


def _is(model: Any, kind: type[Online]) -> bool:
    return isinstance(model, (Online, OnlinePipeline)) and isinstance(last_step(model), kind)


def _timed(model: Any) -> list[Any]:
    """The steps of a model that forget by the clock."""
    steps = [step for _, step in model.steps] if isinstance(model, OnlinePipeline) else [model]
    return [step for step in steps if getattr(step, "half_life", None) is not None]


def _predict_learn(
    model: Any, X: Any, y: Any, weights: Floats | None, told: dict[str, Any], times: Floats | None
) -> Predictions:
    """Predict rows and then learn them; of a classifier that is told its classes, the first row is learned alone."""
    given = {} if weights is None else {"sample_weight": weights}
    if times is not None and _timed(model):
        given["time"] = times
    if not told:
        found: Predictions = model._predict_learn(X, y, **given)
        return found
    one, rest = ({name: values[part] for name, values in given.items()} for part in (slice(1), slice(1, None)))
    model.partial_fit(X[:1], y[:1], **told, **one)
    made = _predictions(model, X[:1])
    nothing = made._replace(scores=np.zeros_like(made.scores), known=np.zeros(1, dtype=np.int64))
    if len(y) == 1:
        return nothing
    later: Predictions = model._predict_learn(X[1:], y[1:], **rest)
    known = np.concatenate([[0], np.broadcast_to(later.known, len(y) - 1)])
    return later._replace(scores=np.concatenate([nothing.scores, later.scores]), known=known)


def _predictions(model: Any, X: Any) -> Predictions:
    found: Predictions = model._predictions(X)
    return found


def _outputs(scores: Floats) -> Floats:
    return np.ascontiguousarray(scores)


def _finite(logs: Floats) -> Floats:
    """Logarithms of probabilities; where no class was known, all alike."""
    return np.where(np.isfinite(logs).any(axis=1, keepdims=True), logs, 0.0)


def _scaled(scores: Floats, means: Floats, deviations: Floats) -> Floats:
    """Predictions in units of the targets known before each row, (rows, 1)."""
    scaled = np.divide(scores - means, deviations, out=np.zeros(len(scores)), where=deviations > 0)
    return np.asarray(scaled)[:, None]
