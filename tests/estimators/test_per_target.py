"""`PerTarget`: as one model for each column, in any split, stored; bad rows change nothing."""

import copy
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from test_estimators import CLASSIFIERS, MIXTURES, REGRESSORS, made, name_of

import gossamer
from gossamer import OnlineScaler, PerTarget, SILKClassifier, SILKRegressor, pipeline

ROWS = 60
PARTS = [slice(0, 1), slice(1, 17), slice(17, ROWS)]
MODELS = [*CLASSIFIERS, *REGRESSORS, *MIXTURES]


def rows(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 0.9, size=(ROWS, 2))
    Y = np.column_stack([np.sin(5 * X[:, 0]), 100 * X[:, 1] - 50.0])
    return X, Y if model.task == "regression" else (Y > 0.5).astype(int)


def make(part):
    return part(budget=16) if part in MIXTURES else made(part)


@pytest.mark.parametrize("part", MODELS, ids=name_of)
def test_each_column_has_its_model(part):
    """Online, in any split, stored and resumed: the bits of a model for each column."""
    model = PerTarget(make(part))
    X, Y = rows(model)
    whole, split, apart = clone(model), clone(model), [make(part), make(part)]
    scores = whole.predict_learn(X, Y)
    assert scores.shape == (ROWS, 2)
    found = []
    for p in PARTS:
        found.append(split.predict_learn(X[p], Y[p]))
        split = PerTarget.from_bytes(split.to_bytes())
    assert np.array_equal(scores, np.concatenate(found))
    for own, y in zip(apart, Y.T, strict=True):
        if model.task == "classification":
            own.partial_fit(X[:1], y[:1], classes=[0, 1])
            own.partial_fit(X[1:], y[1:])
        else:
            own.partial_fit(X, y)
    expected = np.column_stack([own.predict(X) for own in apart])
    assert np.array_equal(whole.predict(X), expected)
    assert np.array_equal(split.predict(X), expected)
    assert split.to_bytes() == whole.to_bytes() == pickle.loads(pickle.dumps(whole)).to_bytes()
    if model.task == "classification":
        assert whole.predict_proba(X).shape == whole.decision_function(X).shape == (ROWS, 2)
    else:
        assert whole.predict_interval(X[:3]).shape == (3, 2, 2)
    fitted = clone(model).fit(X, Y)
    assert fitted.predict(X).shape == (ROWS, 2)
    assert np.isfinite(fitted.score(X, Y))


def test_pipelines_clocks_weights_and_sparse_rows():
    X, Y = rows(SILKRegressor())
    times, weights = np.arange(ROWS) * 3600.0, np.linspace(0.5, 2.0, ROWS)
    model = PerTarget(pipeline(OnlineScaler(), SILKRegressor("gaussian:gamma=1", half_life="1 day")))
    whole, split = clone(model), clone(model)
    scores = whole.predict_learn(X, Y, sample_weight=weights, time=times)
    parts = [split.predict_learn(X[p], Y[p], sample_weight=weights[p], time=times[p]) for p in PARTS]
    assert np.array_equal(scores, np.concatenate(parts))
    sparse = PerTarget(SILKRegressor("gaussian:gamma=1")).predict_learn(csr_array(X), Y)
    np.testing.assert_allclose(sparse, PerTarget(SILKRegressor("gaussian:gamma=1")).predict_learn(X, Y), rtol=1e-9)
    mean, deviation = PerTarget(gossamer.NewtonRegressor()).partial_fit(X, Y).predict(X, return_std=True)
    assert mean.shape == deviation.shape == (ROWS, 2)


@pytest.mark.parametrize(
    "model", [PerTarget(SILKRegressor()), gossamer.NewtonRegressor(budget=20), PerTarget(SILKClassifier())], ids=repr
)
def test_late_labels_of_several_targets(model):
    X, Y = rows(model)
    late, plain = clone(model), clone(model)
    late.predict(X, ids=np.arange(ROWS))
    order = np.random.default_rng(1).permutation(ROWS)
    told = late.learn_labels([*order[:30], 1000], np.vstack([Y[order[:30]], Y[:1]]))
    assert len(told) == 31
    late.predict(X[order[30:]], ids=order[30:])
    again = late.learn_labels([*order[30:], 1000], np.vstack([Y[order[30:]], Y[:1]]))
    if model.task == "regression":
        assert again.shape == (31, 2)
        assert np.isnan(again[-1]).all()
    plain.partial_fit(X[order[:30]], Y[order[:30]])
    plain.partial_fit(X[order[30:]], Y[order[30:]])
    assert np.array_equal(late.predict(X), plain.predict(X))


def test_what_is_refused_changes_nothing():
    model = PerTarget(SILKRegressor())
    X, Y = rows(model)
    model.partial_fit(X, Y)
    before = model.to_bytes()
    bad = X.copy()
    bad[-1, 0] = np.nan
    for rows_, y in ((X, Y[:, 0]), (X, Y[:, :1]), (X[:5], Y), (bad, Y), (X, Y * np.nan), (X[:, :1], Y)):
        with pytest.raises(ValueError, match="PerTarget"):
            model.partial_fit(rows_, y)
        assert model.to_bytes() == before
    copied = copy.deepcopy(model)
    copied.partial_fit(X, Y)
    assert model.to_bytes() == before
    with pytest.raises(ValueError, match="'model' parameter of PerTarget"):
        PerTarget(gossamer.SILKDetector()).partial_fit(X, Y)
    with pytest.raises(ValueError, match="indicator matrix"):
        PerTarget(SILKClassifier()).partial_fit(X, (Y > 0) * 2)
    forged = PerTarget(SILKRegressor())
    with pytest.raises(ValueError, match="models_"):
        forged._relearn({"models_": [SILKRegressor()], "n_features_in_": 2})
