"""Estimators, pipelines and Learners behind one face: predict rows, then learn them, in whole blocks where possible."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.estimators import OnlineClassifier
from gossamer.estimators.base import Online
from gossamer.evaluate import late
from gossamer.evaluate.predictions import Predictions
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss, Softmax


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
        last = last_step(model)
        learner = getattr(last, "learner_", None)
        asked = getattr(last, "average", False) in (True, "sparse")
        averaged = asked if learner is None else learner.average is not None
        self.blocks = isinstance(model, Learner) or (hasattr(model, "predict_learn") and not averaged)
        #: Whether the scores tell probabilities.
        self.tells = task == "classification" and (
            isinstance(model.loss, (Logistic, Softmax)) if isinstance(model, Learner)
            else hasattr(last_step(model), "predict_proba")
        )  # fmt: skip

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

    def predict_learn_late(self, X: Any, y: Any, due: Any, due_y: Any) -> Predictions:
        """Predict row i of X, then learn row i of ``due``, for each i."""
        parts, start = [], 0
        plain = self.blocks and all(
            isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype == np.float64 for rows in (X, due)
        )
        if plain and not (np.isfinite(X).all() and np.isfinite(due).all() and X.shape[1] == due.shape[1]):
            plain = False  # the long way says what is wrong with which row
        while start < len(X):
            steps = late.find_steps(self.model) if plain else None
            stop = start if steps is None else min(len(X), late.known_rows(steps, due_y, start))
            if steps is not None and stop > start:
                part = slice(start, stop)
                seen = self._seen()
                labels = None if due_y is None else due_y[part]
                scores = late.predict_learn(steps, X[part], due[part], labels, self.task)
                parts.append(self._decided(scores, None if y is None else y[part], seen, seen, grows=False))
                start = stop
            else:
                part = slice(start, start + 1)
                parts.append(self.predict(X[part], None if y is None else y[part]))
                self.learn(due[part], None if due_y is None else due_y[part])
                start += 1
        return Predictions.join(parts)

    def _plain(self, X: Any, y: Any) -> Predictions:
        """The predictions of a model of which no more is known."""
        labels = np.asarray(self.model.predict(X))
        known, nothing = np.ones(len(labels), dtype=np.bool_), np.full(len(labels), np.nan)
        if self.task == "novelty":
            return Predictions(labels == -1, known, nothing, nothing, (), known.astype(int), nothing)
        if self.task == "regression":
            return Predictions(labels, known, nothing, nothing, (), known.astype(int), nothing)
        classes, chances = self._seen(), nothing
        scores = nothing
        if hasattr(self.model, "decision_function"):
            scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        if self.tells and y is not None:
            told = np.asarray(self.model.predict_proba(X), dtype=np.float64)
            places = [classes.index(label) if label in classes else -1 for label in np.asarray(y).tolist()]
            chances = np.where(np.array(places) < 0, np.nan, told[np.arange(len(told)), places])
        counts = np.full(len(labels), len(classes))
        return Predictions(labels, known, scores, nothing, tuple(classes), counts, chances)

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
        always, nothing = np.ones(len(scores), dtype=np.bool_), np.full(len(scores), np.nan)
        if self.task == "regression":
            return Predictions(scores, always, scores, self._losses(scores, y), (), always.astype(int), nothing)
        if self.task == "novelty":
            losses = np.maximum(0.0, -scores)
            return Predictions(scores < 0, always, scores, losses, (), always.astype(int), nothing)
        labels = None if y is None else np.asarray(y)
        if isinstance(self.model, Learner):
            made = self._of_learner(scores, labels, grows)
        elif scores.ndim == 2:
            made = self._many(scores, labels, after)
        else:
            made = self._two(scores, labels, before, after, grows)
        if not self.tells or labels is None or not made.classes:
            return made
        # the probability of the class that came, where it was known
        places = {label: i for i, label in enumerate(made.classes)}
        codes = np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.int64)
        told = made.probabilities()
        chances = told[np.arange(len(told)), codes]
        made.chances[:] = np.where((codes < 0) | (chances == 0.0) & ~self._scored(made, codes), np.nan, chances)
        return made

    @staticmethod
    def _scored(made: Predictions, codes: Any) -> Any:
        """Whether a row had a score for its class."""
        return np.isfinite(made.by_class()[np.arange(len(made)), codes])

    def _of_learner(self, scores: Floats, labels: Any, grows: bool) -> Predictions:
        """A Learner by itself: -1 and 1, or the classes 0, 1, ..."""
        always, nothing = np.ones(len(scores), dtype=np.bool_), np.full(len(scores), np.nan)
        if scores.ndim == 1:
            losses = self._losses(scores, labels)
            said = np.where(scores >= 0, 1, -1)
            return Predictions(said, always, scores, losses, (-1, 1), np.full(len(scores), 2), nothing)
        finite = np.isfinite(scores)
        known = finite.any(axis=1) & (always if self.model.steps or grows else ~always)
        losses = nothing.copy()
        if labels is not None and scores.shape[1]:
            codes = labels.astype(np.int64)
            more = max(0, int(codes.max()) + 1 - scores.shape[1])
            scored = np.pad(scores, ((0, 0), (0, more)), constant_values=-np.inf)
            losses = _class_losses(self.model.loss, scored, codes, joins=True)
        counts = np.where(known, finite.sum(axis=1), 0)
        classes = tuple(range(scores.shape[1]))
        return Predictions(scores.argmax(axis=1), known, scores, losses, classes, counts, nothing)

    def _two(self, scores: Floats, labels: Any, before: list[Any], after: list[Any], grows: bool) -> Predictions:
        """One score a row: for the only class as long as there is one, then for the second of two."""
        nothing = np.full(len(scores), np.nan)
        counts = np.full(len(scores), len(before))
        if grows:
            # how many classes there were when each row was predicted
            fresh = [int(np.argmax(labels == label)) for label in after if label not in before]
            counts += (np.arange(len(scores))[:, None] > np.array(fresh, dtype=np.int64)).sum(axis=1)
        if not after:
            empty = np.zeros(len(scores), dtype=np.int64 if labels is None else labels.dtype)
            losses = nothing.copy() if labels is None else self._losses(scores, np.ones(len(scores)))
            return Predictions(empty, counts > 0, scores, losses, (), counts, nothing)
        classes = np.array(after)
        only = np.array(before)[0] if before else labels[0]
        second = classes[-1]
        predicted = np.where(counts < 2, only, classes[(scores >= 0).astype(int) * (len(classes) - 1)])
        losses = nothing.copy()
        if labels is not None:
            signs = np.where(np.where(counts < 2, labels == only, labels == second), 1.0, -1.0)
            losses = self._losses(scores, signs)
            third = ~np.isin(labels, classes) & (counts > 1)
            if third.any():  # it joins with a score of 0
                pair = 0.5 * scores[third]
                joined = np.column_stack([-pair, pair, np.zeros(len(pair))])
                losses[third] = _class_losses(self._loss_of_many(), joined, np.full(len(pair), 2))
        return Predictions(predicted, counts > 0, scores, losses, tuple(after), counts, nothing)

    def _many(self, scores: Floats, labels: Any, after: list[Any]) -> Predictions:
        """A score for each class, -inf for those that had not come."""
        finite = np.isfinite(scores)
        counts, classes = finite.sum(axis=1), np.array(after)
        best = scores.argmax(axis=1)
        losses = nothing = np.full(len(scores), np.nan)
        if labels is not None:
            losses = self._losses_of_many(scores, labels, after)
        early = counts <= 2
        if scores.shape[1] > 2 and early.any():  # then there was one score, and its 0 went to the second class
            rows = np.flatnonzero(early)
            first = finite.argmax(axis=1)[rows]
            last = scores.shape[1] - 1 - finite[:, ::-1].argmax(axis=1)[rows]
            pair = counts[rows] == 2
            low, high = (np.where(counts[rows] > 0, scores[rows, place], 0.0) for place in (first, last))
            best[rows[pair & (low == high)]] = last[pair & (low == high)]
            single = np.where(pair, high - low, 2.0 * high)
            if labels is not None:
                places = np.searchsorted(classes, labels[rows])
                lost = self._losses(single, np.where((places == last) | (counts[rows] == 0), 1.0, -1.0))
                third = pair & (places != first) & (places != last)
                losses[rows] = np.where(third, losses[rows], lost)
        return Predictions(classes[best], counts > 0, scores, losses, tuple(after), counts, nothing.copy())

    def _losses_of_many(self, scores: Floats, labels: Any, after: list[Any]) -> Floats:
        """The loss of a score per class; a class that is new joins with a score of 0, as in the learner."""
        loss, order = self._loss_of_many(), last_step(self.model)._order
        inner = np.array([order.index(label) for label in after])
        Z = np.full((len(scores), len(after) + 1), -np.inf)
        Z[:, inner] = scores  # costs are in the order of the inner numbers
        places = {label: inner[i] for i, label in enumerate(after)}
        codes = np.array([places.get(label, len(after)) for label in labels.tolist()], dtype=np.int64)
        return _class_losses(loss, Z if (codes == len(after)).any() else Z[:, :-1], codes)

    def _loss_of_many(self) -> Loss | None:
        """The loss with a score per class; None for a model that has none."""
        last, learner = last_step(self.model), learner_of(self.model)
        if learner is not None and learner.loss.target == "label":
            return learner.loss
        try:
            return last._loss_many(None) if isinstance(last, OnlineClassifier) else None
        except ValueError:  # of two classes only
            return None

    def _losses(self, scores: Floats, y: Any) -> Floats:
        """The model's loss of a single score; NaN for one that adapts, and for models that have none."""
        last = last_step(self.model)
        loss = last.loss if isinstance(last, Learner) else last._loss() if isinstance(last, Online) else None
        if loss is None or y is None or loss.adapts or loss.target == "label":
            return np.full(len(scores), np.nan)
        return np.asarray(loss.value(scores, np.asarray(y, dtype=np.float64)), dtype=np.float64)


def _class_losses(loss: Loss | None, Z: Floats, codes: Any, joins: bool = False) -> Floats:
    """The losses of scores per class. A class without a score joins with 0; ``joins``: with all numbers below its."""
    if loss is None or loss.adapts:
        return np.full(len(Z), np.nan)
    rows = np.arange(len(Z))
    fresh = ~np.isfinite(Z[rows, codes])
    if fresh.any():
        Z = Z.copy()
        if joins:
            new = fresh[:, None] & (np.arange(Z.shape[1]) <= codes[:, None]) & ~np.isfinite(Z)
            Z[new] = 0.0
        else:
            Z[rows[fresh], codes[fresh]] = 0.0
    return np.asarray(loss.values(Z, codes), dtype=np.float64)
