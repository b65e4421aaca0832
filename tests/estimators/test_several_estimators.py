"""Several targets in every estimator that takes them: shapes, batches, units, stores, merging; others refuse them."""

import warnings

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.base import clone, is_regressor
from sklearn.metrics import r2_score
from sklearn.utils import get_tags
from test_estimators import CLASSIFIERS, FOUND, MIXTURES, REGRESSORS, made, name_of

import gossamer
from gossamer import OnlineScaler, pipeline
from gossamer.bank import ModelBank
from gossamer.kernels import Gaussian
from gossamer.losses import Several

ROWS = 60
PARTS = [slice(0, 1), slice(1, 17), slice(17, 18), slice(18, ROWS)]
TAKING = [part for part in CLASSIFIERS + REGRESSORS if get_tags(part()).target_tags.multi_output]
REFUSING = [part for part in [*CLASSIFIERS, *REGRESSORS, *MIXTURES] if part not in TAKING]
every_taking = pytest.mark.parametrize("part", TAKING, ids=name_of)


def rows(part, count=ROWS, seed=0):
    """Rows, and three targets: of very different units, or labels 0 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    smooth = np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1], np.cos(X[:, 1])]) + 0.1 * rng.normal(
        size=(count, 3)
    )
    return X, smooth * [1.0, 100.0, 1e-3] + [5.0, 0.0, 1.0] if part in REGRESSORS else (smooth > 0.2).astype(int)


def say(model, X):
    return model.predict(X) if is_regressor(model) else model.decision_function(X)


@pytest.mark.parametrize("part", CLASSIFIERS + REGRESSORS, ids=name_of)
def test_tags_do_not_depend_on_what_was_learned(part):
    X, Y = rows(part)
    fitted = made(part).fit(X, Y[:, 0])
    assert get_tags(fitted).target_tags.multi_output == (part in TAKING)


def test_who_takes_several_targets():
    names = {part.__name__ for part in TAKING}
    assert {"SILKRegressor", "NORMARegressor", "NewtonRegressor", "OnlineRegressor", "SVMDRegressor"} <= names
    assert {"SILKClassifier", "NORMAClassifier", "NewtonClassifier", "OnlineClassifier", "SVMDClassifier"} <= names
    assert all(get_tags(part()).classifier_tags.multi_label for part in TAKING if part in CLASSIFIERS)


@every_taking
def test_batches(part):
    """Shapes as in scikit-learn; any split gives the same bits, a stored model goes on; a row is predicted first."""
    X, Y = rows(part)
    whole, split = made(part, average=False), made(part, average=False)
    scores = whole.predict_learn(X, Y)
    assert scores.shape == (ROWS, 3)
    found = []
    for p in PARTS:
        if p.start:
            assert np.array_equal(say(split, X[p][:1]), split_before := say(split, X[p])[:1])
        found.append(split.predict_learn(X[p], Y[p]))
        if p.start:
            assert np.array_equal(found[-1][:1], split_before)
        split = gossamer.from_bytes(split.to_bytes())
    assert np.array_equal(scores, np.concatenate(found))
    assert whole.to_bytes() == split.to_bytes()
    assert whole.predict(X).shape == (ROWS, 3)
    assert whole.dual_coef_.shape == (3, len(whole.support_vectors_))
    assert isinstance(whole.learner_.loss, Several)


@pytest.mark.parametrize("part", [part for part in TAKING if part in REGRESSORS], ids=name_of)
def test_each_target_has_units_of_its_own(part):
    """Other units of one target change that prediction, and no other."""
    X, Y = rows(part)
    one, other = made(part).partial_fit(X, Y), made(part).partial_fit(X, Y * [1.0, 7.0, 1.0] + [0.0, -3.0, 0.0])
    np.testing.assert_allclose(
        one.predict(X) * [1.0, 7.0, 1.0] + [0.0, -3.0, 0.0], other.predict(X), rtol=1e-6, atol=1e-7
    )
    if getattr(one, "scale_target", False):
        np.testing.assert_allclose(one.target_mean_, Y.mean(axis=0))
        np.testing.assert_allclose(one.target_scale_, Y.std(axis=0))
    fitted = part(Gaussian(0.5), budget=100, n_passes=3).fit(*rows(part, 400))
    X, Y = rows(part, 200, seed=1)
    assert fitted.score(X, Y) == pytest.approx(r2_score(Y, fitted.predict(X)))
    assert fitted.score(X, Y) > 0.3


def test_second_order_deviations():
    X, Y = rows(gossamer.NewtonRegressor)
    mean, deviation = made(gossamer.NewtonRegressor).fit(X, Y).predict(X, return_std=True)
    assert mean.shape == deviation.shape == (ROWS, 3)
    np.testing.assert_allclose(deviation[:, 0] / deviation[:, 1], deviation[0, 0] / deviation[0, 1])


@pytest.mark.parametrize("part", [part for part in TAKING if part in CLASSIFIERS], ids=name_of)
def test_labels(part):
    X, Y = rows(part, 400)
    model = made(part, budget=100).fit(X, Y)
    found = model.predict(X)
    assert found.dtype.kind == "i"
    assert np.array_equal(found, (model.decision_function(X) > 0).astype(int))
    assert (found == Y).mean() > 0.75
    assert model.classes_.tolist() == [0, 1]
    assert np.array_equal(made(part, budget=100).fit(X, Y.astype(bool)).predict(X), found)
    with pytest.raises(
        ValueError, match=f"The 'y' parameter of {part.__name__} must be an indicator matrix of 0 and 1"
    ):
        made(part).fit(X, Y + 1)
    with pytest.raises(ValueError, match="None for several labels"):
        made(part, class_weight="balanced").fit(X, Y)


@pytest.mark.parametrize("part", [part for part in TAKING if part in CLASSIFIERS], ids=name_of)
def test_probabilities_of_labels(part):
    """Calibrated on the scores that rows had before they were learned, the same in any split, and stored."""
    X, Y = rows(part, 600)
    whole, split = made(part, budget=100), made(part, budget=100)
    whole.partial_fit(X, Y)
    for p in (slice(0, 1), slice(1, 333), slice(333, 600)):
        split = gossamer.from_bytes(split.partial_fit(X[p], Y[p]).to_bytes())
    p = whole.predict_proba(X)
    assert p.shape == Y.shape
    assert np.array_equal(p, split.predict_proba(X))
    assert np.array_equal(p > 0.5, whole.predict(X) == 1)
    for j in range(3):  # the order of the scores, without ties
        assert np.array_equal(rankdata(p[:, j]), rankdata(whole.decision_function(X)[:, j]))
    Z, truth = rows(part, 600, seed=3)
    assert np.mean((whole.predict_proba(Z) - truth) ** 2) < 0.2
    with pytest.raises(ValueError, match="several targets have no intervals and sets"):
        whole.predict_set(X)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308])
def test_labels_of_a_model_that_diverged(value):
    """Every verb answers: a probability is NaN where there is no score, and one of 0 to 1 elsewhere."""
    X, Y = rows(gossamer.SILKClassifier, 60)
    model = made(gossamer.SILKClassifier, budget=10).partial_fit(X, Y)
    state = model.learner_.state()
    state.raw[0] = value
    model.learner_.restore(state)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", gossamer.exceptions.DivergenceWarning)
        p, scores = model.predict_proba(X), model.decision_function(X)
        model.predict(X)
    assert np.array_equal(np.isnan(p), np.isnan(scores))
    assert ((p >= 0) & (p <= 1))[~np.isnan(p)].all()
    assert not np.isnan(p[:, 1:]).any()


@every_taking
def test_vectors_and_matrices_do_not_mix(part):
    X, Y = rows(part)
    matrix, vector = made(part).partial_fit(X, Y), made(part).partial_fit(X, Y[:, 0])
    before = matrix.to_bytes(), vector.to_bytes()
    for bad in (Y[:, 0], Y[:, :2], Y[:-1], np.where(np.arange(ROWS)[:, None] == 7, np.nan, Y)):
        with pytest.raises(ValueError, match=f"The 'y' parameter of {part.__name__} must be"):
            matrix.partial_fit(X, bad)
    with pytest.raises(ValueError, match=f"The 'y' parameter of {part.__name__} must be a vector"):
        vector.partial_fit(X, Y)
    assert (matrix.to_bytes(), vector.to_bytes()) == before
    assert np.array_equal(say(matrix.fit(X, Y[:, 0]), X), say(made(part).fit(X, Y[:, 0]), X))  # fit starts anew


@every_taking
def test_in_pipelines_weighed_timed_and_merged(part):
    X, Y = rows(part)
    weights, times = np.random.default_rng(0).uniform(0.5, 2.0, size=ROWS), np.arange(ROWS) * 3600.0
    model = pipeline(OnlineScaler(), made(part, half_life="1 day", budget=200))
    whole, split = clone(model), clone(model)
    scores = whole.predict_learn(X, Y, sample_weight=weights, time=times)
    found = [split.predict_learn(X[p], Y[p], sample_weight=weights[p], time=times[p]) for p in PARTS]
    assert np.array_equal(scores, np.concatenate(found))
    halves = [made(part, budget=200).partial_fit(X[p], Y[p]) for p in (slice(30), slice(30, None))]
    merged = gossamer.merge(halves, [0.5, 0.5]).model
    if part in CLASSIFIERS:
        mean = 0.5 * (halves[0].decision_function(X) + halves[1].decision_function(X))
        np.testing.assert_allclose(merged.decision_function(X), mean, rtol=1e-6, atol=1e-8)
    else:
        mean = 0.5 * (halves[0].predict(X) + halves[1].predict(X))
        np.testing.assert_allclose(merged.predict(X), mean, rtol=1e-6, atol=1e-6)
    merged.partial_fit(X, Y)
    with pytest.raises(ValueError, match="equally many targets"):
        gossamer.merge([halves[0], made(part).partial_fit(X, Y[:, :2])])


@pytest.mark.parametrize("part", REFUSING, ids=name_of)
def test_the_others_refuse(part):
    """Rules and estimators that learn one target say so."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 2)), rng.integers(0, 2, size=(20, 3))
    model = part() if part in MIXTURES else made(part)
    for verb in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match=f"The 'y' parameter of {part.__name__} must be a vector"):
            verb(X, Y)


def test_mixtures_refuse():
    X, Y = rows(gossamer.SILKRegressor)
    with pytest.raises(ValueError, match="'y' parameter"):
        ModelBank(gossamer.SILKRegressor()).learn(np.zeros(ROWS, dtype=int), X, Y)
    with pytest.raises(ValueError, match="The 'y' parameter of Mixture must be a vector"):
        gossamer.Mixture([gossamer.SILKRegressor()]).partial_fit(X, Y)
    assert len(FOUND) > len(TAKING)
