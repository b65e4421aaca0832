"""Several targets in river: as one estimator over all of them, or one model for each; what is refused leaves it."""

import copy
import pickle

import numpy as np
import pytest
from river import base, metrics
from test_river import MODELS

from gossamer import river
from gossamer.estimators import several

REGRESSORS = [part for part in MODELS if issubclass(part, base.Regressor)]
CLASSIFIERS = [part for part in MODELS if issubclass(part, base.Classifier)]
every_regressor = pytest.mark.parametrize("part", REGRESSORS, ids=lambda part: part.__name__)
every_classifier = pytest.mark.parametrize("part", CLASSIFIERS, ids=lambda part: part.__name__)


def rows(count=60):
    """Dicts, the third feature of which comes late, and two targets."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, 3))
    Y = np.column_stack([np.sin(X[:, 0]), 100 * X[:, 1] * X[:, 0] + 5])
    dicts = [dict(zip("abc"[: 2 + (t > 20)], row, strict=False)) for t, row in enumerate(X.tolist())]
    return dicts, X * np.where(np.arange(count)[:, None] > 20, 1.0, [1.0, 1.0, 0.0]), Y


@every_regressor
def test_targets(part):
    """The predictions of the estimator with a matrix, where it takes one; else those of a model for each target."""
    dicts, _, Y = rows()
    model, apart = river.MultiTarget(part()), [part(), part()]
    together = several.takes(part()._made())
    assert model.predict_one(dicts[0]) == {}
    for x, y in zip(dicts, Y.tolist(), strict=True):
        model.learn_one(x, dict(zip("uv", y, strict=True)))
        for own, target in zip(apart, y, strict=True):
            own.learn_one(x, target)
    assert len(model.models) == (1 if together else 2)
    found = model.predict_one(dicts[3])
    assert list(found) == ["u", "v"] == list(model.targets)
    if together:
        estimator = model.models[0]._learned.estimator
        row = np.zeros((1, estimator.n_features_in_))
        for name, value in dicts[3].items():
            row[0, model.models[0]._learned.columns.places[name]] = value
        assert np.allclose(list(found.values()), estimator.predict(row)[0], rtol=1e-9)
    else:
        assert list(found.values()) == [own.predict_one(dicts[3]) for own in apart]
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.learn_one(dicts[0], {"v": 1.0, "u": 2.0})
        assert set(other.predict_one(dicts[3])) == {"u", "v"}
    assert model.predict_one(dicts[3]) == found
    assert isinstance(model, base.MultiTargetRegressor)
    assert model.clone().predict_one(dicts[0]) == {}


@every_classifier
def test_labels(part):
    dicts, _, Y = rows()
    model = river.MultiLabel(part())
    assert model.predict_one(dicts[0]) == {}
    marks = [{"high": bool(a > 0), "far": bool(b > 5)} for a, b in Y]
    for _ in range(5):
        for x, y in zip(dicts, marks, strict=True):
            model.learn_one(x, y)
    shares = model.predict_proba_one(dicts[3])
    assert all(abs(sum(own.values()) - 1.0) < 1e-9 for own in shares.values())
    made = [model.predict_one(x) for x in dicts]
    right = np.mean([own == y for own, y in zip(made, marks, strict=True)])
    assert right > 0.5
    assert len(model.models) == (1 if several.takes(part()._made()) else 2)


def test_labels_are_weighed_each_by_itself():
    dicts, _, Y = rows()
    model, plain = (river.MultiLabel(river.SILKClassifier(class_weight=weight)) for weight in ("balanced", None))
    for x, (a, b) in zip(dicts, Y, strict=True):
        for own in (model, plain):
            own.learn_one(x, {"high": bool(a > 0.8), "far": bool(b > 5)})
    assert (len(model.models), len(plain.models)) == (2, 1)
    assert sum(model.predict_one(x)["high"] for x in dicts) > sum(plain.predict_one(x)["high"] for x in dicts)


def test_what_is_refused_changes_nothing():
    dicts, _, _ = rows()
    for model in (river.MultiTarget(river.SILKRegressor()), river.MultiTarget(river.PARegressor())):
        model.learn_one(dicts[0], {"u": 1.0, "v": 2.0})
        before = model.predict_one(dicts[1])
        for x, y in (
            (dicts[1], {"u": 1.0}), (dicts[1], 3.0), (dicts[1], {"u": 1.0, "v": float("nan")}),
            (dicts[1], {"u": "no", "v": 1.0}), ({"a": "text"}, {"u": 1.0, "v": 1.0}),
            ({"new": float("inf")}, {"u": 1.0, "v": 1.0}),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"'(y|x)' parameter"):
                model.learn_one(x, y)
            assert model.predict_one(dicts[1]) == before
    labels = river.MultiLabel(river.SILKClassifier())
    with pytest.raises(ValueError, match="'y' parameter of MultiLabel"):
        labels.learn_one(dicts[0], {"a": 2})
    with pytest.raises(ValueError, match="'model' parameter of MultiTarget must be a regressor"):
        river.MultiTarget(river.SILKClassifier()).learn_one(dicts[0], {"a": 1.0})


def test_as_river_evaluates_it():
    """river's metric of several targets over a stream, with weights and times."""
    dicts, _, Y = rows(200)
    model = river.MultiTarget(river.NewtonRegressor(half_life="1 day"))
    metric = metrics.multioutput.MicroAverage(metrics.MAE())
    for t, (x, (a, b)) in enumerate(zip(dicts, Y.tolist(), strict=True)):
        y = {"u": a, "v": b / 100}
        if t:
            metric.update(y, model.predict_one(x))
        model.learn_one(x, y, w=1.0 + t % 2, t=60.0 * t)
    assert metric.get() < 0.4
