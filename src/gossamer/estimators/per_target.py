"""Several targets for models that learn one: a model of its own for each column of y."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gossamer import _checks
from gossamer._locks import Snapshot, exclusive, publish
from gossamer._stored import Stored
from gossamer._typing import Array, Floats
from gossamer.clock import read_times
from gossamer.estimators import inputs
from gossamer.estimators.base import Online
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.estimators.late import LateLabels, check_pending, remembers
from gossamer.estimators.pipelines import OnlinePipeline, has_clock, last_step
from gossamer.estimators.several import LABELS

#: The learned attributes.
LEARNED = ("models_", "n_features_in_", "_late")


class PerTarget(LateLabels, Stored, Snapshot, BaseEstimator):  # type: ignore[misc]
    """A copy of a model for each column of y: multi-output regression, or multi-label classification of 0 and 1.

    For models that learn one target, such as Auto. The estimators that take a matrix themselves share points and kernel
    values among the targets, and are faster.

    Parameters
    ----------
    model : a regressor or a classifier of Gossamer, or a pipeline of one; it is cloned for each target.

    Attributes
    ----------
    models_ : the models, in the order of the columns.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(-2, 2, size=(400, 1))
    >>> model = PerTarget(gossamer.AutoRegressor()).partial_fit(X, np.hstack([np.sin(X), 100 * X]))
    >>> model.predict([[1.0]]).round(1).tolist(), len(model.models_)
    ([[0.8, 100.0]], 2)
    """

    models_: list[Any]

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def task(self) -> str:
        """What the models do: "classification" or "regression"."""
        return "classification" if self._classifies() else "regression"

    def _classifies(self) -> bool:
        return isinstance(last_step(self.model), OnlineClassifier)

    def _timed(self) -> bool:
        return has_clock(self.model)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, RegressorTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier" if self._classifies() else "regressor"
        tags.target_tags.required = tags.target_tags.multi_output = tags.input_tags.sparse = True
        tags.target_tags.single_output = False
        if self._classifies():
            tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        else:
            tags.regressor_tags = RegressorTags()
        return tags

    # -------------------------------------------------------------------------------------------------- learning

    @inputs.speaks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **parameters: Any) -> Any:
        """Start anew: each model learns these rows with its column."""
        self._check()
        targets = self._targets(X, y)
        weighed = {} if sample_weight is None else {"sample_weight": sample_weight}
        models = [clone(self.model).fit(X, column, **weighed, **parameters) for column in targets.T]
        self._replace({"models_": models, "n_features_in_": models[0].n_features_in_})
        return self

    @exclusive
    def _replace(self, learned: dict[str, Any]) -> None:
        publish(self, learned, instead_of=LEARNED[:2])

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, time: Any = None) -> Any:
        """Go on with more rows; ``time``: of each, for models with a half_life."""
        if classes is not None and not np.isin(np.asarray(classes), LABELS).all():
            raise _checks.wrong(self, "classes", "None or [0, 1] for an indicator matrix", classes)
        self._learn(X, y, sample_weight, time)
        return self

    def predict_learn(self, X: Any, y: Any, sample_weight: Any = None, time: Any = None) -> Floats:
        """Predict each row and then learn it; returns the predictions, or scores, made before: a column per target."""
        return self._learn(X, y, sample_weight, time)

    @exclusive
    @inputs.speaks
    def _learn(self, X: Any, y: Any, sample_weight: Any, time: Any) -> Floats:
        self._check()
        targets = self._targets(X, y)
        rows = len(targets)
        weights = _checks.weights(self, sample_weight, rows)
        given: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
        if time is not None or self._timed():
            given["time"] = None if time is None else read_times(self, time, rows)
        models = self._models(X, targets.shape[1])
        made = [_predict_learn(model, X, column, given) for model, column in zip(models, targets.T, strict=True)]
        publish(self, {"models_": models, "n_features_in_": models[0].n_features_in_})
        return np.column_stack(made)

    def _models(self, X: Any, count: int) -> list[Any]:
        """The models to go on with: those that are there if rows can be refused by the first alone, else copies."""
        known = self.__dict__.get("models_")
        if known is None:
            return [clone(self.model) for _ in range(count)]
        if len(known) != count:
            raise _checks.wrong(self, "y", f"a matrix with {len(known)} columns, as in the rows before", count)
        models: list[Any] = known
        lasts = [last_step(model) for model in models]
        if not all(last.learner_.backend.endswith("native") for last in lasts):
            return [copy.deepcopy(model) for model in models]
        if models[0] is lasts[0]:
            inputs.check(lasts[0].learner_, X)
        return models

    def _targets(self, X: Any, y: Any) -> Array:
        """y as a matrix of numbers, or of the labels 0 and 1."""
        if y is None:
            rule = "given: it requires y to be passed, but the target y is None"
            raise _checks.wrong(self, "y", rule, None)
        array = np.asarray(y)
        if array.ndim != 2 or not array.shape[1]:
            if isinstance(X, np.ndarray):
                _checks.matrix(self, X)  # errors of X come first
            raise _checks.wrong(self, "y", "a matrix with a column for each target", np.shape(array))
        if not self._classifies():
            return _checks.targets(self, array, len(array), array.shape[1])
        if not np.isin(array, LABELS).all():
            raise _checks.wrong(self, "y", "an indicator matrix of 0 and 1", array[~np.isin(array, LABELS)][0])
        return array.astype(np.int64)

    def _check(self) -> None:
        last = last_step(self.model)
        fits = isinstance(self.model, (Online, OnlinePipeline)) and isinstance(
            last, (OnlineClassifier, OnlineRegressor)
        )
        if not fits:
            rule = "a classifier or a regressor of Gossamer, or a pipeline of one"
            raise _checks.wrong(self, "model", rule, self.model)

    # ------------------------------------------------------------------------------------------------ predicting

    def _known(self) -> list[Any]:
        check_is_fitted(self, "models_")
        return self.models_

    @remembers
    @inputs.speaks
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The predictions, a column per target; with ``return_std`` also the deviations, of models that have them."""
        if not return_std:
            return np.column_stack([model.predict(X) for model in self._known()])
        made = [model.predict(X, return_std=True) for model in self._known()]
        return tuple(np.column_stack([found[i] for found in made]) for i in (0, 1))

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Floats:
        """The scores, a column per label: positive where it is predicted."""
        return np.column_stack([model.decision_function(X) for model in self._known()])

    @available_if(lambda self: self._classifies())  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each label."""
        return np.column_stack([model.predict_proba(X)[:, 1] for model in self._known()])

    @available_if(lambda self: not self._classifies())  # type: ignore[untyped-decorator]
    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """The low and the high end for each row and target, of shape (rows, targets, 2)."""
        return np.stack([model.predict_interval(X, coverage) for model in self._known()], axis=1)

    def score(self, X: Any, y: Any) -> float:
        """R^2, the mean over the targets; of labels the share of rows whose labels are all right."""
        from sklearn.metrics import accuracy_score, r2_score

        return float((accuracy_score if self._classifies() else r2_score)(y, self.predict(X)))

    def _relearn(self, learned: dict[str, Any]) -> None:
        super()._relearn(learned)
        self._check()
        check_pending(self, learned)
        if not learned.keys() - {"_late"}:
            return
        models: Any = learned.get("models_")
        good = learned.keys() <= set(LEARNED) and isinstance(models, list) and bool(models)
        good = good and all(type(model) is type(self.model) and self._fits(last_step(model)) for model in models)
        if not good or {model.n_features_in_ for model in models} != {learned.get("n_features_in_")}:
            raise _checks.wrong(self, "models_", "a model that has learned for each target", models)

    def _fits(self, last: Any) -> bool:
        """Whether this is the last step of a model that has learned: of labels, 0 and 1."""
        if type(last) is not type(last_step(self.model)) or "learner_" not in vars(last):
            return False
        return not self._classifies() or np.array_equal(last.classes_, LABELS)


def _predict_learn(model: Any, X: Any, y: Array, given: dict[str, Any]) -> Floats:
    """The predictions of a column, or its scores; a classifier is told the labels with its first row."""
    last = last_step(model)
    if not isinstance(last, OnlineClassifier) or "learner_" in vars(last):
        return np.asarray(model.predict_learn(X, y, **given))
    one, rest = ({name: _part(values, part) for name, values in given.items()} for part in (slice(1), slice(1, None)))
    model.partial_fit(X[:1], y[:1], classes=LABELS, **one)
    if len(y) == 1:
        return np.zeros(1)
    return np.concatenate([[0.0], model.predict_learn(X[1:], y[1:], **rest)])


def _part(values: Any, part: slice) -> Any:
    return None if values is None else values[part]
