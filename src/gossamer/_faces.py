"""Estimators, pipelines and Learners behind one face: predict rows, then learn them, in whole blocks where possible."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError

from gossamer import _checks
from gossamer._checks import Array
from gossamer._online import Online
from gossamer.expansion import Floats
from gossamer.learner import Learner


@dataclass(frozen=True)
class Predictions:
    """What was predicted for some rows, each before it was learned.

    Attributes
    ----------
    labels : the predicted classes, values, or True for an alarm; where ``known`` is False, of no meaning.
    known : whether there was a prediction: a classifier that has not seen a class has none.
    scores : f(x), for a detector minus its threshold; with several classes, a column for each of ``classes``. NaN for
        models that do not tell.
    losses : the model's loss for each row; NaN where it is not measured (several classes, an adaptive level).
    """

    labels: Array
    known: NDArray[np.bool_]
    scores: Floats
    losses: Floats

    def __len__(self) -> int:
        return len(self.labels)

    @staticmethod
    def join(parts: list[Predictions]) -> Predictions:
        """One after the other."""
        if len(parts) == 1:
            return parts[0]
        width = max(part.scores.shape[1] if part.scores.ndim == 2 else 1 for part in parts)
        # the columns of a score per class came one by one: rows before that stay as they were, in single scores
        scores = [_wide(part.scores, width) for part in parts]
        return Predictions(
            np.concatenate([part.labels for part in parts]), np.concatenate([part.known for part in parts]),
            np.concatenate(scores), np.concatenate([part.losses for part in parts]),
        )  # fmt: skip


def _wide(scores: Floats, width: int) -> Floats:
    if width == 1 or (scores.ndim == 2 and scores.shape[1] == width):
        return scores
    out = np.full((len(scores), width), np.nan)
    out[:, : scores.shape[1] if scores.ndim == 2 else 1] = scores.reshape(len(scores), -1)
    return out


def last_step(model: Any) -> Any:
    """The estimator at the end of a pipeline; the model itself if it is none."""
    steps = getattr(model, "steps", None)
    if not isinstance(steps, (list, tuple)) or not steps:
        return model
    return steps[-1][-1] if isinstance(steps[-1], tuple) else steps[-1]


def learner_of(model: Any) -> Learner | None:
    """The Learner inside a model, if there is one by now."""
    last = last_step(model)
    found = last if isinstance(last, Learner) else getattr(last, "learner_", None)
    return found if isinstance(found, Learner) else None


def task_of(model: Any) -> str:
    """What a model is for."""
    if isinstance(model, Learner):
        tasks = {"binary": "classification", "label": "classification", "none": "novelty"}
        return tasks.get(model.loss.target, "regression")
    tests = {"classification": is_classifier, "regression": is_regressor, "novelty": is_outlier_detector}
    for task, test in tests.items():
        try:
            if test(model):
                return task
        except (AttributeError, TypeError):  # no estimator at all
            break
    raise _checks.wrong("prequential", "model", "a classifier, a regressor, a detector or a Learner", model)


class Face:
    """A model that predicts rows and then learns them. ``classes`` are given to scikit-learn's own classifiers."""

    def __init__(self, model: Any, task: str, classes: Any = None) -> None:
        self.model, self.task, self.classes = model, task, classes
        # predict_learn tells what the last hypothesis said, predict what their mean says: then row by row
        averaged = bool(getattr(last_step(model), "average", False)) and not isinstance(model, Learner)
        self.blocks = isinstance(model, Learner) or (hasattr(model, "predict_learn") and not averaged)

    # ---------------------------------------------------------------------------------------------- whole blocks

    def predict_learn(self, X: Any, y: Any) -> Predictions:
        """Predict each row, then learn it."""
        if not self.blocks:
            parts = []
            for i in range(int(X.shape[0]) if hasattr(X, "shape") else len(X)):
                part = slice(i, i + 1)
                parts.append(self.predict(X[part], None if y is None else y[part]))
                self.learn(X[part], None if y is None else y[part])
            return Predictions.join(parts)
        before = self._seen()
        if isinstance(self.model, Learner):
            scores, levels = self.model.learn(X, y, with_levels=True)
            scores = scores - levels if self.task == "novelty" else scores
        else:
            scores = self.model.predict_learn(X, y)
        return self._decided(np.asarray(scores), y, before, self._seen())

    def predict(self, X: Any, y: Any) -> Predictions:
        """Predict rows with the model as it is; ``y`` is only for the loss."""
        seen = self._seen()
        try:
            if isinstance(self.model, Learner):
                scores = self.model.score(X)
                scores = scores - self.model.level if self.task == "novelty" else scores
            elif self.task == "regression":
                scores = self.model.predict(X)
            elif hasattr(self.model, "decision_function") and self.blocks:
                scores = self.model.decision_function(X)
            else:
                return self._plain(X, y)
        except NotFittedError:
            scores = np.zeros(len(X))
        return self._decided(np.asarray(scores, dtype=np.float64), y, seen, seen, grows=False)

    def _plain(self, X: Any, y: Any) -> Predictions:
        """The predictions of a model of which no more is known."""
        labels = np.asarray(self.model.predict(X))
        known, nothing = np.ones(len(labels), dtype=np.bool_), np.full(len(labels), np.nan)
        if self.task == "novelty":
            return Predictions(labels == -1, known, nothing, nothing)
        return Predictions(labels, known, nothing, nothing)

    def learn(self, X: Any, y: Any) -> None:
        """Learn rows."""
        if isinstance(self.model, Learner):
            self.model.learn(X, y)
        elif self.task == "novelty":
            self.model.partial_fit(X)
        elif self.classes is not None and "classes" in inspect.signature(self.model.partial_fit).parameters:
            self.model.partial_fit(X, y, classes=self.classes)
        else:
            self.model.partial_fit(X, y)

    def _seen(self) -> list[Any]:
        """The classes that the model knows, in its order."""
        if self.task != "classification" or isinstance(self.model, Learner):
            return []
        try:
            return list(np.asarray(self.model.classes_).tolist())
        except (AttributeError, NotFittedError):
            return []

    # ----------------------------------------------------------------------------------------- scores to predictions

    def _decided(self, scores: Floats, y: Any, before: list[Any], after: list[Any], grows: bool = True) -> Predictions:
        """Predictions from scores; ``before`` and ``after`` are the classes known before and after the block."""
        always = np.ones(len(scores), dtype=np.bool_)
        if self.task == "regression":
            return Predictions(scores, always, scores, self._losses(scores, y))
        if self.task == "novelty":
            return Predictions(scores < 0, always, scores, np.maximum(0.0, -scores))
        if isinstance(self.model, Learner):
            if scores.ndim == 1:
                return Predictions(np.where(scores >= 0, 1, -1), always, scores, self._losses(scores, y))
            known = np.isfinite(scores).any(axis=1) & (always if self.model.steps or grows else ~always)
            return Predictions(scores.argmax(axis=1), known, scores, np.full(len(scores), np.nan))
        if scores.ndim == 2:
            return self._many(scores, y, after)
        return self._two(scores, y, before, after, grows)

    def _two(self, scores: Floats, y: Any, before: list[Any], after: list[Any], grows: bool) -> Predictions:
        """One score a row: for the only class as long as there is one, then for the second of two."""
        labels = np.asarray(y) if y is not None else np.zeros(0)
        known = np.full(len(scores), len(before))
        if grows:
            # how many classes there were when each row was predicted
            fresh = [int(np.argmax(labels == label)) for label in after if label not in before]
            known += (np.arange(len(scores))[:, None] > np.array(fresh, dtype=np.int64)).sum(axis=1)
        if not after:
            empty = np.zeros(len(scores), dtype=labels.dtype)
            return Predictions(empty, known > 0, scores, self._losses(scores, np.ones(len(scores))))
        classes = np.array(after)
        only = np.array(before)[0] if before else labels[0]
        second = classes[-1]
        predicted = np.where(known < 2, only, classes[(scores >= 0).astype(int) * (len(classes) - 1)])
        if y is None:
            return Predictions(predicted, known > 0, scores, np.full(len(scores), np.nan))
        signs = np.where(np.where(known < 2, labels == only, labels == second), 1.0, -1.0)
        losses = self._losses(scores, signs)
        losses[~np.isin(labels, classes) & (known > 1)] = np.nan  # a third class: there is no loss for it yet
        return Predictions(predicted, known > 0, scores, losses)

    def _many(self, scores: Floats, y: Any, after: list[Any]) -> Predictions:
        """A score for each class, -inf for those that had not come."""
        finite = np.isfinite(scores)
        count, classes = finite.sum(axis=1), np.array(after)
        best = scores.argmax(axis=1)
        losses = np.full(len(scores), np.nan)
        early = count <= 2
        if scores.shape[1] > 2 and early.any():  # then there was one score, and its 0 went to the second class
            rows = np.flatnonzero(early)
            first = finite.argmax(axis=1)[rows]
            last = scores.shape[1] - 1 - finite[:, ::-1].argmax(axis=1)[rows]
            pair = count[rows] == 2
            low, high = (np.where(count[rows] > 0, scores[rows, place], 0.0) for place in (first, last))
            best[rows[pair & (low == high)]] = last[pair & (low == high)]
            single = np.where(pair, high - low, 2.0 * high)
            if y is not None:
                places = np.searchsorted(classes, np.asarray(y)[rows])
                lost = self._losses(single, np.where((places == last) | (count[rows] == 0), 1.0, -1.0))
                losses[rows] = np.where(pair & (places != first) & (places != last), np.nan, lost)
        return Predictions(classes[best], count > 0, scores, losses)

    def _losses(self, scores: Floats, y: Any) -> Floats:
        """The model's loss of a single score; NaN for one that adapts, and for models that have none."""
        last = last_step(self.model)
        loss = last.loss if isinstance(last, Learner) else last._loss() if isinstance(last, Online) else None
        if loss is None or y is None or loss.adapts or loss.target == "label":
            return np.full(len(scores), np.nan)
        return np.asarray(loss.value(scores, np.asarray(y, dtype=np.float64)), dtype=np.float64)
