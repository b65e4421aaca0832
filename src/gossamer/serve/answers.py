"""Ask a model: predict rows, or predict and then learn them; an estimator, a pipeline and a bank alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
from sklearn.exceptions import NotFittedError

from gossamer import _checks, store
from gossamer._typing import Array, Bools, Floats
from gossamer.bank import ModelBank
from gossamer.estimators import OnlinePipeline
from gossamer.rows import RowEncoder, Table
from gossamer.serve.problems import ConflictError
from gossamer.serve.recipes import Recipe, check_encoder, check_loaded, make_model

#: What may be asked for besides predictions, with the method of the last step that gives it.
WANTED = {"scores": "decision_function", "proba": "predict_proba", "std": "predict", "interval": "predict_interval",
          "set": "predict_set"}  # fmt: skip


#: The coverage of the intervals and sets that are counted as metrics.
COVERAGE = 0.9


def encode(encoder: RowEncoder, rows: Table, learn: bool = False) -> Any:
    """The features of rows. Whatever an encoder stumbles over is an error of these rows alone."""
    try:
        return encoder.learn_transform(rows) if learn else encoder.transform(rows)
    except (ArithmeticError, LookupError, TypeError, AttributeError) as error:
        raise _checks.wrong("request", "rows", "such that they can be encoded", repr(error)[:200]) from error


class Made(NamedTuple):
    """What was said about rows before each was learned.

    Attributes
    ----------
    predicted : labels, values, or alarms.
    known : whether there was a prediction.
    inside : whether the target lay in the interval or set for `COVERAGE`; None where there is none.
    reach : how far the interval of a regressor reached to both sides; None where there is none.
    made : the `Predictions` of a classifier with its probabilities; None where there are none.
    """

    predicted: Array
    known: Bools
    inside: Bools | None = None
    reach: Floats | None = None
    made: Any = None


def predict_learn(model: Any, task: str | None, X: Any, y: Array | None, keys: Any, weights: Any) -> Made:
    """Predict each row, then learn it."""
    known: Bools = np.ones(len(X), dtype=np.bool_)
    more = {} if weights is None else {"sample_weight": weights}
    if isinstance(model, ModelBank):
        scores = model.learn(keys, X, y, **more)
        if task == "classification":
            best = scores.argmax(axis=1) if scores.ndim == 2 else (scores >= 0).astype(int)
            return Made(np.asarray(model.classes_)[best], known)
        return Made(scores < 0 if task == "novelty" else scores, known)
    if task == "novelty":
        return Made(model._predict_learn(X, y, **more).decision() < 0, known)
    made = model._predict_learn(X, y, **more, missed=[round(1.0 - COVERAGE, 12)])
    inside, reach = None, None
    if made.thresholds is not None and y is not None:
        reach = made.thresholds[:, 0]
        inside = _strangeness(made, task, y) <= reach
    if task == "classification":
        known = np.broadcast_to(np.greater(made.known, 0), len(X))
        return Made(made.labels(), known, inside, None, None if made.chances is None else made)
    return Made(made.decision(), known, inside, reach)


def _strangeness(made: Any, task: str | None, y: Array) -> Floats:
    """The values that are compared with thresholds: 1 - p of the class that came, or |y - f|."""
    if task == "regression":
        return np.asarray(np.abs(y - made.scores))
    p = made.probabilities()
    return np.asarray(1.0 - p[np.arange(len(p)), np.searchsorted(made.classes, y)])


def predict(model: Any, task: str | None, X: Floats, keys: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    """The predictions of rows, and what else is wanted, as plain data."""
    if isinstance(model, ModelBank):
        if set(wanted) - {"proba", "interval", "set"}:
            raise _checks.wrong("request", sorted(set(wanted))[0], "left out for a model per key", True)
        made = model.predict(keys, X, unknown="default")
        made = made == -1 if task == "novelty" else made
        answer = {"predictions": [None if value != value else value for value in made.tolist()]}
        if "proba" in wanted:
            answer["proba"] = _rows(model.predict_proba(keys, X, unknown="default"))
            answer["classes"] = model.classes_.tolist()
        if "interval" in wanted:
            ends = model.predict_interval(keys, X, wanted["interval"], unknown="default")
            answer["interval"] = _rows(np.where(np.isfinite(ends), ends, np.nan))
        if "set" in wanted:
            sets = model.predict_set(keys, X, wanted["set"], unknown="default")
            answer["set"] = [np.asarray(model.classes_)[row].tolist() for row in sets]
        return answer
    try:
        steps, last = ([], model) if not isinstance(model, OnlinePipeline) else (model.steps[:-1], model.steps[-1][1])
        for _, step in steps:
            X = step.transform(X)
        for name in wanted:
            if not hasattr(last, WANTED[name]) or (
                name == "std" and not hasattr(last, "_std_parts") and not _has_std(last)
            ):
                raise _checks.wrong("request", name, f"left out: {type(last).__name__} has none", wanted[name])
        if task == "classification":
            predictions = last._predictions(X)
            answer = {"predictions": predictions.labels().tolist()}
            if "scores" in wanted:
                answer["scores"] = predictions.decision().tolist()
        elif task == "novelty":
            scores = last.decision_function(X)
            answer = {"predictions": (scores < 0).tolist(), "scores": scores.tolist()}
        elif "std" in wanted:
            values, deviations = last.predict(X, return_std=True)
            answer = {"predictions": values.tolist(), "std": deviations.tolist()}
        else:
            answer = {"predictions": last.predict(X).tolist()}
        if "proba" in wanted:
            answer["proba"] = last.predict_proba(X).tolist()
        if "interval" in wanted:
            ends = np.asarray(last.predict_interval(X, coverage=wanted["interval"]))
            answer["interval"] = _rows(np.where(np.isfinite(ends), ends, np.nan))
        if "set" in wanted:
            found = np.asarray(last.predict_set(X, coverage=wanted["set"]))
            answer["set"] = [last.classes_[row].tolist() for row in found]
        if "proba" in wanted or ("scores" in wanted and task == "classification"):
            answer["classes"] = last.classes_.tolist()
        return answer
    except NotFittedError:
        raise ConflictError("The model has not learned anything yet.") from None


def _has_std(last: Any) -> bool:
    import inspect

    return "return_std" in inspect.signature(last.predict).parameters


def plain(predicted: Array, known: Bools, task: str | None) -> list[Any]:
    """Predictions as plain data, None where there was none."""
    values: list[Any] = predicted.tolist()
    if task != "classification" or bool(np.all(known)):
        return values
    return [value if there else None for value, there in zip(values, known.tolist(), strict=True)]


def _rows(table: Floats) -> list[Any]:
    return [None if row[0] != row[0] else row for row in table.tolist()]


# ------------------------------------------------------------------------------------------------------------ storage


def to_bytes(model: Any) -> bytes:
    """A model as bytes: a .gsm file, or one for each key."""
    if model is None:
        return b""
    if isinstance(model, ModelBank):
        return msgspec.msgpack.encode([[key, model.dump(key)] for key in sorted(model.keys(), key=_by_kind)])
    return bytes(store.dumps(model))


def encoder_from_bytes(data: bytes) -> RowEncoder:
    """The encoder of a stored state."""
    found = store.loads(data)
    if not isinstance(found, RowEncoder) or not found.__sklearn_is_fitted__():
        raise _checks.wrong("model", "encoder", "one that knows its columns", type(found).__name__)
    return check_encoder(found)


def from_bytes(data: bytes, recipe: Recipe, facts: Any) -> Any:
    """The model of `to_bytes`."""
    if not data:
        return None
    if recipe.key is None:
        return check_loaded(store.loads(data))
    bank = make_model(recipe, facts.task, len(facts.columns), facts.encoder)
    for key, one in msgspec.msgpack.decode(data):
        bank.put(key, one)
    return bank


def _by_kind(key: Any) -> tuple[str, Any]:
    return type(key).__name__, key
