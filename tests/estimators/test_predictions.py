"""Predictions: the scores of a batch, with what was known when each row was scored, are those of its rows alone."""

import numpy as np
import pytest
from test_estimators import CLASSIFIERS, DETECTORS, LABELS, MANY, REGRESSORS, cut, data, made, name_of

from gossamer import OnlineScaler, pipeline
from gossamer.estimators.labels import Predictions


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("part", REGRESSORS + DETECTORS, ids=name_of)
def test_regressors_and_detectors(part, scaled):
    """Public verbs return the decision; it is that of the model as it was before each row."""
    X, y = data(part)
    batch, single = (pipeline(OnlineScaler(), made(part)) if scaled else made(part) for _ in range(2))
    told = batch._predict_learn(X, y)
    assert told.classes is None
    assert (told.levels is not None) == (part in DETECTORS)
    alone = [single.predict_learn(X[i : i + 1], cut(y, slice(i, i + 1))) for i in range(len(X))]
    assert np.array_equal(told.decision(), np.concatenate(alone))


@pytest.mark.parametrize("names", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
def test_classifiers(part, scaled, names):
    """Classes known, decisions, labels and scores of each class: those of the model as it was before each row."""
    X, y = data(part, len(names) if part in MANY else 2, names)
    for start in (0, 1, 20, 50):  # with no class known before the batch, with one, two, and all
        batch, single = (pipeline(OnlineScaler(), made(part)) if scaled else made(part) for _ in range(2))
        if start:
            batch.partial_fit(X[:start], y[:start])
            single.partial_fit(X[:start], y[:start])
        told = batch._predict_learn(X[start:], y[start:])
        classes = list(told.classes)
        alone = [single._predict_learn(X[i : i + 1], y[i : i + 1]) for i in range(start, len(X))]
        known = [len(set(y[:i].tolist())) for i in range(start, len(X))]
        assert np.full(len(known), told.known).tolist() == known
        assert np.array_equal(told.by_class(classes), np.concatenate([row.by_class(classes) for row in alone]))
        some = np.array(known) > 0
        assert np.array_equal(told.labels()[some], np.concatenate([row.labels() for row in alone])[some])
        assert np.array_equal(told.codes(y[start:]), [told.order.index(label) for label in y[start:].tolist()])
        assert np.array_equal(told.decision().shape[1:], [] if len(classes) < 3 else [len(classes)])


def test_a_score_of_zero():
    """It goes to the second of two classes, in sorted order, also in a batch that brings a third."""
    two = Predictions(np.zeros(3), ["b", "a"], np.array(["a", "b"]), np.array([1, 2, 2]))
    assert two.labels().tolist() == ["b", "b", "b"]
    scores = np.array([[0.0, 0.0, -np.inf], [0.0, 0.0, 0.0]])
    three = Predictions(scores, ["c", "a", "b"], np.array(["a", "b", "c"]), np.array([2, 3]), pairs=np.zeros(1))
    assert three.labels().tolist() == ["c", "a"]
