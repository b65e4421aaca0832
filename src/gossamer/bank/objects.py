"""The general engine of a `ModelBank`: an estimator object for each key, for any model with ``predict_learn``."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from gossamer import _checks, store
from gossamer._locks import spread
from gossamer._typing import Array, Floats, Ints
from gossamer.bank.keyed import Groups, Rows
from gossamer.estimators.divergence import hush
from gossamer.estimators.pipelines import last_step
from gossamer.store.nodes import Encoder

#: About the bytes of an estimator without its arrays.
BASE = 16_000


def task_of(model: Any) -> str:
    """The task of a model's last step: "classification", "regression" or "novelty"."""
    task: str = getattr(last_step(model), "task", "regression")
    return task


def primed(model: Any, labels: list[Any] | None) -> Any:
    """A clone of the model before it learns, with the classes if they are given."""
    fresh = clone(model)
    if labels is not None:
        last = last_step(fresh)
        last._order, last._given, last.classes_ = list(labels), True, np.unique(np.array(labels))
    return fresh


def description(model: Any) -> bytes:
    """The parameters of a model as bytes: equal for equal parameters, without what was learned."""
    encoder = Encoder()
    node = json.dumps(encoder.node(clone(model), "ModelBank", ()), sort_keys=True).encode()
    return b"\0".join([node, *(array.tobytes() for _, array in encoder.arrays)])


def shape_of(data: bytes) -> tuple[int, Any]:
    """The number of features and the type of the rows of a state in bytes."""
    learner = getattr(last_step(store.loads(data)), "learner_", None)
    points = getattr(learner, "points", None)
    if not isinstance(points, np.ndarray):
        raise _checks.wrong("ModelBank", "data", "a model that has learned rows of numbers", data[:8])
    return int(points.shape[1]), points.dtype


class Estimators:
    """States are estimators; `pack` and `unpack` make bytes of them and back."""

    backend = "estimators"

    def __init__(
        self, model: Any, features: int, dtype: Any, classes: list[Any] | None, threads: int, targets: int = 1
    ) -> None:
        self.model, self.features, self.dtype = model, features, dtype
        self.classes, self.threads, self.targets = classes, threads, targets
        self.task = task_of(model)

    def learn(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats
    ) -> tuple[list[Any], dict[int, str]]:
        """New states after the rows of each key, the scores in ``out``; the states given stay as they are."""
        ranks = _ranks(labels)

        def learn_key(group: int) -> tuple[Any, dict[int, str]]:
            state, at = states[group], groups.of(group)
            model = primed(self.model, self.classes) if state is None else copy.deepcopy(state)
            hush(last_step(model))  # the bank itself watches the scores of all models
            targets = self._targets(rows.y, at, labels)
            try:
                self._learn(model, rows, targets, at, ranks, out)
                return model, {}
            except ValueError:
                bad: dict[int, str] = {}
            for i, position in enumerate(at):  # a bad row changes nothing, so that the others can go on
                row = at[i : i + 1]
                try:
                    self._learn(model, rows, None if targets is None else targets[i : i + 1], row, ranks, out)
                except ValueError as error:
                    bad[int(position)] = str(error)
                    out[row] = np.nan
            return (state if len(bad) == len(at) else model), bad

        found = self._each(learn_key, len(groups.keys))
        return [state for state, _ in found], _together(bad for _, bad in found)

    def score(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats, winners: Any
    ) -> dict[int, str]:
        """The decision function of the rows in ``out``, and for classifiers the number of the winning label."""
        classes, numbers = list(_ranks(labels)), {label: number for number, label in enumerate(labels)}

        def answer(model: Any, at: Ints) -> None:
            X = rows.X[at]
            if out.ndim == 2 and self.targets == 1:
                out[at] = model._predictions(X).by_class(classes)
            else:
                out[at] = model.predict(X) if self.task == "regression" else model.decision_function(X)
            if self.task == "classification":
                winners[at] = [numbers[label] for label in model.predict(X).tolist()]

        return self._answer(states, groups, answer)

    def proba(self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats) -> dict[int, str]:
        """The probabilities of all labels, by their ranks; 0 for those that a model has not seen."""
        ranks = _ranks(labels)

        def answer(model: Any, at: Ints) -> None:
            spread = np.zeros((len(at), out.shape[1]))
            columns = [ranks[label] for label in last_step(model).classes_.tolist()]
            spread[:, columns] = model.predict_proba(rows.X[at])
            out[at] = spread

        return self._answer(states, groups, answer)

    def intervals(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], coverages: list[float], out: Floats
    ) -> dict[int, str]:
        """The ends of the intervals of rows."""

        def answer(model: Any, at: Ints) -> None:
            out[at] = model.predict_interval(rows.X[at], coverages)

        return self._answer(states, groups, answer)

    def sets(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], coverages: list[float], out: Array
    ) -> dict[int, str]:
        """The sets of classes of rows, by the ranks of the labels."""
        ranks = _ranks(labels)

        def answer(model: Any, at: Ints) -> None:
            columns = [ranks[label] for label in last_step(model).classes_.tolist()]
            out[at[:, None], columns] = model.predict_set(rows.X[at], coverages)

        return self._answer(states, groups, answer)

    def pvalues(self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats) -> dict[int, str]:
        """The p-values of rows."""

        def answer(model: Any, at: Ints) -> None:
            out[at] = model.score_pvalue(rows.X[at])

        return self._answer(states, groups, answer)

    def _answer(self, states: list[Any], groups: Groups, answer: Callable[[Any, Ints], None]) -> dict[int, str]:
        """Let the model of each key answer for its rows; the errors of rows without an answer."""

        def ask_key(group: int) -> dict[int, str]:
            at = groups.of(group)
            try:
                answer(states[group], at)
            except ValueError as error:
                return {int(position): str(error) for position in at}
            return {}

        return _together(self._each(ask_key, len(groups.keys)))

    def _each(self, work: Callable[[int], Any], count: int) -> list[Any]:
        return spread(work, count, self.threads)

    def _learn(self, model: Any, rows: Rows, targets: Any, at: Any, ranks: dict[Any, int], out: Floats) -> None:
        given = {} if rows.weights is None else {"sample_weight": rows.weights[at]}
        if rows.time is not None:
            given["time"] = rows.time[at]
        if out.ndim == 2 and self.targets == 1:
            out[at] = model._predict_learn(rows.X[at], targets, **given).by_class(list(ranks))
        else:
            out[at] = model.predict_learn(rows.X[at], targets, **given)

    def _targets(self, y: Floats | None, at: Any, labels: list[Any]) -> Any:
        if y is None:
            return None
        return np.array(labels)[y[at].astype(np.int64)] if self.task == "classification" else y[at]

    # ------------------------------------------------------------------------------------------------------- states

    def size(self, state: Any) -> int:
        """About the bytes of memory of a state."""
        return BASE + int(last_step(state)._fitted().state().nbytes)

    def pack(self, state: Any, labels: list[Any]) -> bytes:
        return bytes(store.dumps(state))

    def unpack(self, data: bytes, labels: list[Any]) -> tuple[Any, list[Any]]:
        """A state from bytes, and the labels with those of the state added; checked against the bank's model."""
        state = store.loads(data)
        learner = last_step(state).__dict__.get("learner_")
        fits = learner is not None and getattr(getattr(learner, "loss", None), "targets", 1) == self.targets
        if description(state) != description(self.model) or not fits:
            raise _checks.wrong("ModelBank", "data", f"the state of a {self.model}", state)
        order = last_step(state).__dict__.get("_order", [])
        return state, [*labels, *(label for label in order if label not in labels)]

    def to_model(self, state: Any, labels: list[Any]) -> Any:
        """A copy of a state, an estimator."""
        return copy.deepcopy(state)


def _together(parts: Iterable[dict[int, str]]) -> dict[int, str]:
    """The errors of all keys."""
    return {position: error for part in parts for position, error in part.items()}


def _ranks(labels: list[Any]) -> dict[Any, int]:
    """The column of each label: they are sorted."""
    return {label: rank for rank, label in enumerate(np.unique(np.array(labels)).tolist())} if labels else {}
