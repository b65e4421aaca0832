"""Pipelines that learn online: scikit-learn's Pipeline with `partial_fit` and `predict_learn`."""

from __future__ import annotations

import copy
import functools
import inspect
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from gossamer import _checks
from gossamer._locks import Snapshot, exclusive, shared
from gossamer._stored import Stored
from gossamer._typing import Array, Floats
from gossamer.clock import read_times
from gossamer.estimators import inputs, wary
from gossamer.estimators.labels import Predictions


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline (of river too); the model itself if it is none."""
    steps = getattr(model, "steps", None)
    if not isinstance(steps, (list, tuple)) or not steps:
        return model
    return steps[-1][-1] if isinstance(steps[-1], tuple) else steps[-1]


def pipeline(*steps: Any) -> OnlinePipeline:
    """A pipeline of transformers and, last, a model; each step is named after its class, in small letters.

    >>> import numpy as np
    >>> from gossamer import OnlineScaler, SILKClassifier
    >>> model = pipeline(OnlineScaler(), SILKClassifier("gaussian", C=2.0))
    >>> X = np.random.default_rng(0).normal(size=(1000, 2)) * [1.0, 1e6]
    >>> scores = model.predict_learn(X, X[:, 1] > 0)
    >>> round(float(np.mean((scores > 0) == (X[:, 1] > 0))), 2)
    0.96
    >>> model["onlinescaler"].n_seen_, model[-1].n_seen_
    (1000, 1000)
    """
    return OnlinePipeline(make_pipeline(*steps).steps)


def _shared_method(name: str) -> Any:
    """A method of scikit-learn's Pipeline that waits while another thread learns: the steps are of one moment then."""
    found = inspect.getattr_static(Pipeline, name)

    @shared
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(super(OnlinePipeline, self), name)(*args, **kwargs)

    @functools.wraps(getattr(found, "fn", found))
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if name == "predict" and kwargs.get("ids") is not None:
            return self._show(*args, **kwargs)
        return call(self, *args, **kwargs)

    if not hasattr(found, "fn"):
        return method
    return available_if(lambda self: hasattr(super(OnlinePipeline, self), name))(method)


def _own_method(name: str) -> Any:
    """A method of the last step that scikit-learn's Pipeline does not know; the other steps transform the rows."""

    @shared
    def method(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        for _, step in self.steps[:-1]:
            X = step.transform(X)
        return getattr(self.steps[-1][1], name)(X, *args, **kwargs)

    method.__name__, method.__doc__ = name, f"The last step's ``{name}``, of rows that the other steps transform."
    return available_if(lambda self: hasattr(self.steps[-1][1], name))(method)


class OnlinePipeline(Stored, Snapshot, Pipeline):  # type: ignore[misc]
    """scikit-learn's Pipeline, for streams: `partial_fit` and `predict_learn` go on with more rows.

    ``fit`` is that of scikit-learn: it starts anew, and each transformer learns all rows before it hands them on.
    ``partial_fit`` and ``predict_learn`` take each row as it comes: the transformers learn it, scale it with what they
    know by then (``learn_transform``), and the model predicts and learns it. Any split into batches gives the same.
    A call that fails, in whichever step, leaves every step as it was. Several threads may use one pipeline: they learn
    one after the other, and who predicts waits for a batch that is being learned, so that all steps are of one moment.

    Parameters
    ----------
    steps : a list of (name, step). The last is a model with ``predict_learn``; the others have ``learn_transform``, as
        `OnlineScaler`, or need no fitting, as scikit-learn's Normalizer, FunctionTransformer or HashingVectorizer.

    Steps are at ``model["name"]`` or ``model[-1]``, their parameters at ``name__parameter``, as in scikit-learn.

    >>> from gossamer import NORMARegressor, OnlineScaler
    >>> model = OnlinePipeline([("scale", OnlineScaler(forget=0.01)), ("model", NORMARegressor())])
    >>> model.partial_fit([[1.0], [2.0]], [0.5, 1.0])["scale"].mean_.round(4).tolist()
    [1.5025]
    >>> model.get_params()["model__rate"]
    0.5
    """

    # the other parameters of scikit-learn's Pipeline: intermediate results are not cached, and nothing is printed
    memory = None
    verbose = False
    transform_input = None

    predict, predict_proba, predict_log_proba = map(_shared_method, ("predict", "predict_proba", "predict_log_proba"))
    decision_function, score_samples, score = map(_shared_method, ("decision_function", "score_samples", "score"))
    predict_set, predict_interval, score_pvalue = map(_own_method, ("predict_set", "predict_interval", "score_pvalue"))
    transform, inverse_transform = map(_shared_method, ("transform", "inverse_transform"))

    def __init__(self, steps: list[tuple[str, Any]]) -> None:
        self.steps = steps

    def __getitem__(self, index: Any) -> Any:
        """A step by name or number; a slice is a plain Pipeline."""
        return Pipeline(self.steps[index]) if isinstance(index, slice) else super().__getitem__(index)

    @property
    def offset_(self) -> float:
        """rho of a detector: scores below it are alarms."""
        return float(self.steps[-1][1].offset_)

    def fit(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        """Start anew: each transformer learns all rows and hands them on, then the model makes its passes."""
        self._check_steps()
        fresh = clone(self)
        Pipeline.fit(fresh, X, y, **_route(self, parameters))
        for (_, step), (_, new) in zip(self.steps, fresh.steps, strict=True):
            new.__dict__.update(step.get_params(deep=False))  # parameters stay the very objects that were given
        self._replace([step for _, step in fresh.steps])
        return self

    def fit_predict(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        """``fit``, then ``predict`` for the same rows."""
        return self.fit(X, y, **parameters).predict(X)

    def partial_fit(self, X: Any, y: Any = None, **parameters: Any) -> Any:
        """Go on with more rows; ``classes`` and ``sample_weight`` go to the model, ``time`` to all steps with a
        half_life."""
        self._learn("partial_fit", X, y, parameters)
        return self

    def predict_learn(self, X: Any, y: Any = None, **parameters: Any) -> Floats:
        """Scale, predict and then learn each row; returns the scores made before."""
        scores: Any = self._learn("predict_learn", X, y, parameters)
        if isinstance(scores, Predictions):  # of a detector that goes row by row
            assert scores.chances is not None
            return scores.chances if parameters.get("method") == "pvalue" else scores.decision()
        return np.asarray(scores)

    def _predict_learn(self, X: Any, y: Any = None, **parameters: Any) -> Predictions:
        made: Predictions = self._learn("_predict_learn", X, y, parameters)
        return made

    # ----------------------------------------------------------------------------------------------- late labels

    def keep_pending(self, limit: int = 1_000_000, ttl: Any = None, spill: str | None = None) -> Any:
        """How rows wait for their labels, as in the model: the most of them, how long, a file instead of memory."""
        self.steps[-1][1].keep_pending(limit, ttl, spill)
        return self

    @property
    def pending_(self) -> Any:
        """The rows that wait for labels, with ``counts`` of what became of the others."""
        return self.steps[-1][1].pending_

    @exclusive
    def learn_labels(self, ids: Any, y: Any, *, time: Any = None) -> Any:
        """Learn labels of rows that ``predict(X, ids=...)`` was shown; returns the predictions that were made then."""
        return self.steps[-1][1].learn_labels(ids, y, time=time)

    @exclusive
    def _show(self, X: Any, /, ids: Any, time: Any = None, **parameters: Any) -> Any:
        """Predict rows whose labels come later. The transformers learn them now: a row is known before its label."""
        self._check_steps()
        learned, X = self._learn_steps(X, None if time is None else np.full(inputs.count(X), float(time)))
        made = self.steps[-1][1].predict(X, ids=ids, time=time, **parameters)
        self._commit(learned)
        return made

    @shared
    def _predictions(self, X: Any) -> Predictions:
        """The scores of rows and their classes; the last step is a classifier."""
        for _, step in self.steps[:-1]:
            X = step.transform(X)
        made: Predictions = self.steps[-1][1]._predictions(X)
        return made

    @shared
    def _chances(self, X: Any) -> Predictions:
        """The same with the probabilities of the classes."""
        for _, step in self.steps[:-1]:
            X = step.transform(X)
        made: Predictions = self.steps[-1][1]._chances(X)
        return made

    @exclusive
    def _learn(self, method: str, X: Any, y: Any, parameters: dict[str, Any]) -> Any:
        """Run copies of the transformers, then the model; commit the copies only if the model succeeds."""
        self._check_steps()
        if getattr(self.steps[-1][1], "skip", None) is not None and isinstance(X, np.ndarray) and X.ndim == 2:
            return self._learn_wary(X, parameters)
        learned, X = self._learn_steps(X, parameters.get("time"))
        last = self.steps[-1][1]
        if getattr(last, "half_life", None) is None and _clocks(self.steps):
            parameters = {name: value for name, value in parameters.items() if name != "time"}
        result = getattr(last, method)(X, y, **parameters)
        self._commit(learned)
        return result

    def _learn_steps(self, X: Any, time: Any) -> tuple[list[Any], Any]:
        """Copies of the transformers that have learned the rows, and what they made of them."""
        learned = []
        for _, step in self.steps[:-1]:
            if hasattr(step, "learn_transform"):
                step = copy.deepcopy(step)
                X = step.learn_transform(X, **_clock(step, {"time": time}))
            else:
                X = step.transform(X)
            learned.append(step)
        return learned, X

    def _learn_wary(self, X: Array, parameters: dict[str, Any]) -> Any:
        """The same for a detector that does not learn runs of alarms, a row at a time: the transformers do not learn
        these rows either, as they would scale the anomaly away."""
        fresh = [copy.deepcopy(step) for _, step in self.steps[:-1]]
        last, parts, start = copy.deepcopy(self.steps[-1][1]), [], 0
        weights, missed = parameters.get("sample_weight"), parameters.get("missed")
        time = parameters.get("time")
        times = None if time is None else read_times(self, time, len(X))
        while start < len(X):
            seen = last.learner_.steps if "learner_" in last.__dict__ else 0
            stop = start + max(1, wary.BLIND - seen)
            row = Z = X[start:stop]
            when = {} if times is None else {"time": times[start:stop]}
            for step in fresh:
                blind = seen < wary.BLIND and hasattr(step, "learn_transform")
                Z = step.learn_transform(Z, **_clock(step, when)) if blind else step.transform(Z)
            weight = None if weights is None else weights[start:stop]
            own = {} if last.half_life is None and _clocks(self.steps) else when
            parts.append(last._predict_learn(Z, None, weight, missed=missed, **own))
            if seen >= wary.BLIND and last.learner_.steps > seen:
                for step in fresh:
                    learns = hasattr(step, "learn_transform")
                    row = step.learn_transform(row, **_clock(step, when)) if learns else step.transform(row)
            start = stop
        self._commit([*fresh, last])
        scores, levels, chances = (np.concatenate([getattr(part, name) for part in parts])
                                   for name in ("scores", "levels", "chances"))  # fmt: skip
        return Predictions(scores, levels=levels, chances=chances)

    @exclusive
    def _replace(self, learned: list[Any]) -> None:
        self._commit(learned)

    def _commit(self, learned: list[Any]) -> None:
        """Copy the learned attributes into the steps, which other objects may hold too."""
        for (_, step), new in zip(self.steps, learned, strict=False):
            step.__dict__ = new.__dict__

    def _relearn(self, learned: dict[str, Any]) -> None:
        """Validate the steps of a file: each has validated itself, here that they are steps and fit together."""
        super()._relearn(learned)
        steps = self.steps
        listed = isinstance(steps, list) and all(isinstance(step, tuple) and len(step) == 2 for step in steps)
        if not listed or not all(isinstance(name, str) and hasattr(step, "get_params") for name, step in steps):
            raise _checks.wrong(self, "steps", "a list of (name, step)", steps)
        if learned:
            raise _checks.wrong(self, "learned", "empty: the steps have learned", sorted(learned))
        self._check_steps()
        self._validate_names([name for name, _ in steps])
        widths = [_widths(step) for _, step in steps]
        fitted = [hasattr(step, "__sklearn_is_fitted__") and step.__sklearn_is_fitted__() for _, step in steps[:-1]]
        if any(hasattr(step, "predict_learn") for _, step in steps[:-1]):
            raise _checks.wrong(self, "steps", "transformers before the last", steps)
        taught = "learner_" in vars(steps[-1][1])
        known = [(before[1], after[0]) for before, after in pairwise(widths) if before[1] and after[0]]
        if any(out != taken for out, taken in known) or (taught and not all(fitted)):
            raise _checks.wrong(self, "steps", "steps that have learned the same rows", widths)

    def _check_steps(self) -> None:
        if not self.steps:
            raise _checks.wrong(self, "steps", "at least a model", self.steps)
        for name, step in self.steps[:-1]:
            # scikit-learn 1.6 and 1.7 do not tag the hashers, which learn nothing
            stateless = not get_tags(step).requires_fit or type(step).__name__ in ("HashingVectorizer", "FeatureHasher")
            if not (hasattr(step, "learn_transform") or stateless):
                rule = f"transformers with learn_transform, or without fit, before the last (see {name!r})"
                raise _checks.wrong(self, "steps", rule, step)
        if not hasattr(self.steps[-1][1], "predict_learn"):
            raise _checks.wrong(self, "steps", "a model with predict_learn at the end", self.steps[-1][1])


def _widths(step: Any) -> tuple[int | None, int | None]:
    """The features that a step takes and makes; None where it does not know yet, or takes any."""
    taken = getattr(step, "n_features_in_", None)
    return taken, getattr(step, "n_features_out_", taken)


def _route(model: OnlinePipeline, parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters of ``fit`` as scikit-learn's Pipeline takes them: those without a step's name are the model's."""
    if get_config()["enable_metadata_routing"]:
        return parameters
    last = model.steps[-1][0]
    given = {name if "__" in name else f"{last}__{name}": value for name, value in parameters.items()}
    if "time" in parameters and (found := _clocks(model.steps)):
        del given[f"{last}__time"]
        given.update({f"{name}__time": parameters["time"] for name in found})
    return given


def _clocks(steps: Any) -> list[str]:
    """The names of the steps that forget by the clock."""
    return [name for name, step in steps if getattr(step, "half_life", None) is not None]


def has_clock(model: Any) -> bool:
    """Whether a model, or a step of a pipeline, forgets by the clock."""
    return bool(_clocks(getattr(model, "steps", [("model", model)])))


def _clock(step: Any, parameters: dict[str, Any]) -> dict[str, Any]:
    """The ``time`` of the rows, for a step that forgets by the clock."""
    return {"time": parameters.get("time")} if getattr(step, "half_life", None) is not None else {}
