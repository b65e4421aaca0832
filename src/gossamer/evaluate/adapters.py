"""Adapters that evaluate estimators, pipelines and Learners alike: predict rows, then learn them, in blocks."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.exceptions import NotFittedError

from gossamer import _checks
from gossamer._registry import overrides
from gossamer._typing import Floats
from gossamer.estimators import OnlineClassifier, OnlinePipeline, inputs
from gossamer.estimators.base import Online
from gossamer.estimators.labels import Predictions as Scores
from gossamer.estimators.pipelines import last_step
from gossamer.evaluate import late
from gossamer.evaluate.predictions import Predictions
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss, Softmax

#: What whole blocks are learned by; a class of a user that changes it is asked row by row.
LEARNING = frozenset({"predict_learn", "_predict_learn", "_learn"})


def learner_of(model: Any) -> Learner | None:
    """The Learner inside a model, if there is one by now."""
    last = last_step(model)
    found = last if isinstance(last, Learner) else getattr(last, "learner_", None)
    return found if isinstance(found, Learner) else None


def task_of(model: Any) -> str:
    """The task of a model."""
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
    """A model that predicts rows and then learns them. ``classes`` are given to scikit-learn's own classifiers. With
    ``chances`` there are probabilities even where a model must be asked for them row by row."""

    def __init__(
        self, model: Any, task: str, classes: Any = None, chances: bool = False, missed: tuple[float, ...] = ()
    ) -> None:
        self.model, self.task, self.classes, self.missed = model, task, classes, missed
        self._asks = chances or bool(missed)
        last = last_step(model)
        learner = getattr(last, "learner_", None)
        asked = getattr(last, "average", False) in (True, "sparse")
        # predict_learn scores with the last hypothesis, predict with the mean: with averaging, go row by row
        averaged = asked if learner is None else learner.average is not None
        own = isinstance(last, Online) and isinstance(model, (Online, OnlinePipeline))
        own = own and not LEARNING & (overrides(type(model)) | overrides(type(last)))
        self.blocks = isinstance(model, Learner) or (own and not averaged)
        #: Whether the model gives probabilities.
        self.tells = task == "classification" and (
            isinstance(model.loss, (Logistic, Softmax)) if isinstance(model, Learner)
            else hasattr(last_step(model), "predict_proba")
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------------- whole blocks

    def predict_learn(self, X: Any, y: Any, time: Any = None) -> Predictions:
        """Predict each row, then learn it."""
        if not self.blocks:
            return self.predict_learn_late(X, y, X, y, time)
        if isinstance(self.model, Learner):
            return self._judge(self._scored(*self.model.learn(X, y, with_levels=True, time=time)), y)
        return self._judge(self.model._predict_learn(X, y, missed=self.missed, **_when(time)), y)

    def predict(self, X: Any, y: Any) -> Predictions:
        """Predict rows with the model as it is; ``y`` is only for the loss."""
        try:
            if isinstance(self.model, Learner):
                made = self._scored(self.model.score(X), self.model.level)
                made = made if self.model.steps or made.scores.ndim == 1 else made._replace(known=0)
            elif self.task == "regression":
                made = Scores(np.asarray(self.model.predict(X), dtype=np.float64))
                if self.missed and hasattr(self.model, "predict_interval"):
                    ends = self.model.predict_interval(X, [1.0 - share for share in self.missed])
                    made = made._replace(thresholds=0.5 * (ends[:, :, 1] - ends[:, :, 0]))
            elif not self.blocks:
                return self._plain(X, y)
            elif self.task == "novelty":
                made = Scores(self.model.decision_function(X))
            else:
                made = self.model._chances(X)
        except NotFittedError:
            made = Scores(np.zeros(inputs.count(X)))
        return self._judge(made, y)

    def predict_learn_late(self, X: Any, y: Any, due: Any, due_y: Any, time: Any = None) -> Predictions:
        """Predict row i of X, then learn row i of ``due``, for each i; ``time``: of the rows learned."""
        parts, start, rows = [], 0, inputs.count(X)
        plain = (
            self.blocks
            and time is None
            and not self._asks
            and all(isinstance(part, np.ndarray) and part.ndim == 2 and part.dtype == np.float64 for part in (X, due))
        )
        if plain and not (np.isfinite(X).all() and np.isfinite(due).all() and X.shape[1] == due.shape[1]):
            plain = False  # the general path raises the error of the bad row
        while start < rows:
            steps = late.find_steps(self.model) if plain else None
            stop = start if steps is None else min(rows, late.known_rows(steps, due_y, start))
            part = slice(start, max(stop, start + 1))
            labels, learned = (None if values is None else values[part] for values in (y, due_y))
            if steps is not None and stop > start:
                parts.append(self._judge(self._scored(*late.predict_learn(steps, X[part], due[part], learned)), labels))
            else:
                parts.append(self.predict(X[part], labels))
                self.learn(due[part], learned, None if time is None else time[part])
            start = part.stop
        return Predictions.join(parts)

    def _scored(self, scores: Floats, levels: Any) -> Scores:
        """The scores of a learner with the classes that the model knows: by itself it has -1 and 1, or 0, 1, ..."""
        if self.task != "classification":
            return Scores(scores, levels=levels if self.task == "novelty" else None)
        last = last_step(self.model)
        if isinstance(last, OnlineClassifier):
            return Scores(scores, last._order, last.classes_, len(last._order))
        if scores.ndim == 1:
            return Scores(scores, (-1, 1), np.array([-1, 1]), 2)
        count = scores.shape[1]
        return Scores(scores, range(count), np.arange(count), np.isfinite(scores).sum(axis=1))

    def _plain(self, X: Any, y: Any) -> Predictions:
        """The predictions of a classifier or detector that is asked row by row."""
        labels = np.asarray(self.model.predict(X))
        known, nothing = np.ones(len(labels), dtype=np.bool_), np.full(len(labels), np.nan)
        if self.task == "novelty":
            return Predictions(labels == -1, known, nothing, nothing, (), known.astype(int), nothing)
        classes, chances, scores = np.asarray(getattr(self.model, "classes_", ())).tolist(), nothing, nothing
        if hasattr(self.model, "decision_function"):
            scores = np.asarray(self.model.decision_function(X), dtype=np.float64)
        if self.tells and y is not None:
            probabilities = np.asarray(self.model.predict_proba(X), dtype=np.float64)
            places = [classes.index(label) if label in classes else -1 for label in np.asarray(y).tolist()]
            chances = np.where(np.array(places) < 0, np.nan, probabilities[np.arange(len(probabilities)), places])
        counts = np.full(len(labels), len(classes))
        return Predictions(labels, known, scores, nothing, tuple(classes), counts, chances)

    def learn(self, X: Any, y: Any, time: Any = None) -> None:
        """Learn rows."""
        if isinstance(self.model, Learner):
            self.model.learn(X, y, time=time)
        elif self.task == "novelty":
            self.model.partial_fit(X, **_when(time))
        elif self.classes is not None and "classes" in inspect.signature(self.model.partial_fit).parameters:
            self.model.partial_fit(X, y, classes=self.classes, **_when(time))
        else:
            self.model.partial_fit(X, y, **_when(time))

    # ----------------------------------------------------------------------------------------- scores to predictions

    def _judge(self, made: Scores, y: Any) -> Predictions:
        """Predictions from scores, with the losses of the targets."""
        scores = made.decision()
        always, nothing = np.ones(len(scores), dtype=np.bool_), np.full(len(scores), np.nan)
        if self.task == "regression":
            losses, radii = self._losses(scores, y), np.zeros((len(scores), 0))
            if self.missed:
                radii = np.full((len(scores), len(self.missed)), np.inf) if made.thresholds is None else made.thresholds
            return Predictions(scores, always, scores, losses, (), always.astype(int), nothing, radii=radii)
        if self.task == "novelty":
            losses = np.maximum(0.0, -scores)
            return Predictions(scores < 0, always, scores, losses, (), always.astype(int), nothing)
        labels = None if y is None else np.asarray(y)
        losses = nothing if labels is None else self._losses_of_classes(made, labels)
        counts = np.full(len(scores), made.known)
        if made.classes is None:
            empty = np.zeros(len(scores), dtype=np.int64 if labels is None else labels.dtype)
            return Predictions(empty, ~always, scores, losses, (), counts, nothing)
        classes = tuple(made.classes.tolist())
        shares = np.zeros((len(scores), 0)) if made.chances is None else made.probabilities()
        predicted = Predictions(made.labels(), counts > 0, scores, losses, classes, counts, nothing, shares)
        if not self.tells or labels is None or not classes:
            return predicted
        # the probability of the true class, where it was known
        places = {label: i for i, label in enumerate(classes)}
        codes = np.array([places.get(label, -1) for label in labels.tolist()], dtype=np.int64)
        rows = np.arange(len(predicted))
        chances, scored = predicted.probabilities()[rows, codes], np.isfinite(predicted.by_class()[rows, codes])
        if predicted.tells:
            scored = chances > 0
        return replace(predicted, chances=np.where((codes < 0) | (chances == 0.0) & ~scored, np.nan, chances))

    def _losses_of_classes(self, made: Scores, labels: Any) -> Floats:
        """The losses of a classifier: of one score, or of one for each class; a class that is new joins with 0."""
        numbered = isinstance(self.model, Learner) and made.scores.ndim == 2
        codes = labels.astype(np.int64) if numbered else made.codes(labels)
        single = made.scores if made.scores.ndim == 1 else made.pairs
        count = len(single)
        losses = np.full(len(codes), np.nan)
        if count:
            losses[:count] = self._losses(single, np.where(codes[:count] > 0, 1.0, -1.0))
        several = np.flatnonzero((codes > 1) & np.greater(made.known, 1) | (np.arange(len(codes)) >= count))
        if len(several):
            losses[several] = _class_losses(self._loss_of_many(), made.by_code()[several], codes[several])
        return losses

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


def _when(time: Any) -> dict[str, Any]:
    """The argument ``time``, which models of other packages do not have."""
    return {} if time is None else {"time": time}


def _class_losses(loss: Loss | None, Z: Floats, codes: Any) -> Floats:
    """The losses of scores per class. A class without a score joins with 0, as do those with lower codes."""
    if loss is None or loss.adapts or not Z.shape[1]:
        return np.full(len(Z), np.nan)
    Z = np.pad(Z, ((0, 0), (0, max(0, int(codes.max()) + 1 - Z.shape[1]))), constant_values=-np.inf)
    fresh = ~np.isfinite(Z[np.arange(len(Z)), codes])
    Z[fresh[:, None] & (np.arange(Z.shape[1]) <= codes[:, None]) & ~np.isfinite(Z)] = 0.0
    return np.asarray(loss.values(Z, codes), dtype=np.float64)
