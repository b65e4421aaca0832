"""Targets in units of their own: a regressor that learns a y + b predicts a times what it predicts for y, plus b,
whatever way it is fed; and everything that is told of it is in the units of the targets."""

import inspect
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from parts import compiled_kernel, label
from sklearn.base import clone

import gossamer
from gossamer import Learner, river, store
from gossamer.bank import ModelBank
from gossamer.estimators import OnlineRegressor
from gossamer.estimators.targets import NOTHING, check_moments, follow, follow_all, pool, units
from gossamer.kernels import Gaussian

PUBLIC = [getattr(gossamer, name) for name in gossamer.__all__]
REGRESSORS = [part for part in PUBLIC if isinstance(part, type) and issubclass(part, OnlineRegressor)]
MIXTURES = [part for part in REGRESSORS if "scale_target" not in inspect.signature(part).parameters]
RECIPES = [part for part in REGRESSORS if part not in MIXTURES]
#: a and b of a y + b.
UNITS = [(1e-3, 0.0), (1e-3, 1e3), (1.0, -1e6), (0.25, 0.0), (1e6, 1e12), (1e6, -3.0)]
ROWS = 150


def made(part, **parameters):
    """An estimator of compiled code with a budget that is full soon, and does not look at which term is lightest."""
    if part in MIXTURES:
        return part(budget=20, **parameters)
    return part(compiled_kernel(part), budget=gossamer.budgets.Oldest(40), **parameters)


def stream(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 0.9, size=(rows, 2))
    return X, np.sin(5 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)


def by_fit(model, X, y):
    return model.fit(X, y).predict(X)


def by_parts(model, X, y):
    for part in (slice(0, 1), slice(1, 30), slice(30, 31), slice(31, None)):
        model.partial_fit(X[part], y[part])
    return model.predict(X)


def by_weights(model, X, y):
    return model.fit(X, y, sample_weight=np.arange(len(y)) % 3 / 2).predict(X)


def by_stream(model, X, y):
    return model.predict_learn(X, y)[1:]  # before the first target nothing is known of the units


def by_pipeline(model, X, y):
    return gossamer.pipeline(gossamer.OnlineScaler(), model).predict_learn(X, y)[1:]


def by_bank(model, X, y):
    bank, keys = ModelBank(model, threads=2), np.arange(len(y)) % 2
    scores = bank.learn(keys, X, y)[2:]
    return np.append(scores, bank.predict(keys, X))


def by_file(model, X, y):
    model.partial_fit(X[:70], y[:70])
    return store.loads(store.dumps(model)).predict_learn(X[70:], y[70:])


WAYS = [by_fit, by_parts, by_weights, by_stream, by_pipeline, by_bank, by_file]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__[3:])
@pytest.mark.parametrize("part", REGRESSORS, ids=label)
def test_equivariant(part, way):
    """y -> a y + b takes predictions along."""
    X, y = stream()
    expected = way(made(part), X, y)
    for a, b in UNITS:
        found = (way(made(part), X, a * y + b) - b) / a
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6, err_msg=f"{a}, {b}")


@pytest.mark.parametrize("name", [name for name in river.__all__ if name.endswith("Regressor")])
def test_equivariant_in_river(name):
    """Row by row, and in frames."""
    X, y = stream(rows=80)
    rows = [dict(zip("ab", x, strict=True)) for x in X.tolist()]

    def predictions(a, b):
        model, found = getattr(river, name)(Gaussian(0.5)), []
        for x, target in zip(rows, (a * y + b).tolist(), strict=True):
            found.append(model.predict_one(x))
            model.learn_one(x, target)
        return (np.array(found[1:]) - b) / a

    expected = predictions(1.0, 0.0)
    for a, b in UNITS:
        np.testing.assert_allclose(predictions(a, b), expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("part", REGRESSORS, ids=label)
def test_far_from_zero(part):
    """Every regressor with its defaults, on y = 1000 + 10 x."""
    X = np.random.default_rng(0).uniform(-3, 3, size=(1000, 1))
    y = 1000 + 10 * X[:, 0]
    assert part().fit(X, y).score(X, y) > 0.9
    assert part().fit(X, 100 * X[:, 0]).score(X, 100 * X[:, 0]) > 0.9


@pytest.mark.parametrize("part", RECIPES, ids=label)
def test_as_the_papers_have_it(part):
    """``scale_target=False`` learns the targets as they are: a Learner, to the bit."""
    X, y = stream()
    model = made(part, scale_target=False)
    learner = clone(model)._start()
    assert isinstance(learner, Learner)
    assert np.array_equal(model.predict_learn(X, y), learner.learn(X, y))
    assert np.array_equal(model.predict(X), learner.score(X))
    assert (model.target_mean_, model.target_scale_) == (0.0, 1.0)


@pytest.mark.parametrize("part", RECIPES, ids=label)
def test_told_in_the_units_of_the_targets(part):
    """Coefficients, intercept and norm make up the predictions; the moments are those of the targets."""
    options = {"rescale": False} if part.__name__.startswith("Additive") else {}
    X, y = stream()
    model = made(part, **options).fit(X, 50 + 7 * y)
    kernel = model.learner_.kernel
    K = kernel(X, model.support_vectors_)
    np.testing.assert_allclose(K @ model.dual_coef_[0] + model.intercept_, model.predict(X), rtol=1e-9)
    gram = kernel(model.support_vectors_, model.support_vectors_)
    assert math.isclose(model.norm_**2, model.dual_coef_[0] @ gram @ model.dual_coef_[0], rel_tol=1e-6)
    assert math.isclose(model.target_mean_, (50 + 7 * y).mean())
    assert math.isclose(model.target_scale_, (7 * y).std())


def test_any_batches_give_the_same_bits():
    """One target at a time, in batches, with weights, zeros among them: one result. Rows of weight 0 do not count."""
    rng = np.random.default_rng(1)
    y, weights = 1e3 + rng.normal(size=200), rng.integers(0, 3, size=200) / 2
    for w in (None, weights):
        whole, moments, rows = follow_all(NOTHING, y, w), NOTHING, []
        for t in range(len(y)):
            before = units(moments)
            z, moments = follow(moments, float(y[t]), 1.0 if w is None else float(w[t]))
            rows.append((z, *before))
        assert np.array_equal(np.array(rows).T, whole[0])
        assert moments == whole[1]
        cut, parts = NOTHING, []
        for a, b in itertools.pairwise([0, 1, 7, 120, 200]):
            found, cut = follow_all(cut, y[a:b], None if w is None else w[a:b])
            parts.append(found)
        assert np.array_equal(np.concatenate(parts, axis=1), whole[0])
        assert cut == whole[1]
    counted = weights > 0
    assert follow_all(NOTHING, y, weights)[1] == follow_all(NOTHING, y[counted], weights[counted])[1]
    mean, deviation = units(follow_all(NOTHING, y, weights)[1])
    assert math.isclose(mean, np.average(y, weights=weights), rel_tol=1e-14)
    assert math.isclose(deviation, math.sqrt(np.cov(y, aweights=weights, ddof=0)), rel_tol=1e-10)


@pytest.mark.parametrize("part", REGRESSORS, ids=label)
def test_targets_that_are_all_equal(part):
    """Then they are the prediction; and the first row's is 0."""
    X, _ = stream(rows=20)
    model = made(part)
    assert model.predict_learn(X, np.full(20, 7.5)).tolist() == [0.0] + [7.5] * 19
    assert model.predict(X).tolist() == [7.5] * 20


@pytest.mark.parametrize("part", REGRESSORS, ids=label)
def test_too_large_targets_change_nothing(part):
    """A variance that is not finite is refused, and the model is as it was."""
    X, y = stream()
    model = made(part).fit(X, y)
    before = store.dumps(model)
    with pytest.raises(ValueError, match=r"'y' parameter of .* must be small enough for its variance to be finite"):
        model.partial_fit(X, y * 1e200)
    assert store.dumps(model) == before
    bank = ModelBank(made(part), errors="report")
    scores = bank.learn(np.zeros(4, dtype=int), X[:4], [1.0, 1e200, 2.0, 3.0])
    assert [error.position for error in bank.errors] == [1]
    assert np.isnan(scores[1])


@pytest.mark.parametrize("part", [part for part in RECIPES if not part.__name__.startswith("Additive")], ids=label)
def test_merged_shards(part):
    """Models of shards with other means and deviations: their weighted sum, and it goes on."""
    X, y = stream(rows=300)
    shards = [part(Gaussian(0.5), budget=None) for _ in range(2)]
    shards[0].fit(X[:100], y[:100])
    shards[1].fit(X[100:], 40 + 9 * y[100:])
    model = gossamer.merge(shards).model
    expected = shards[0].predict(X) / 3 + 2 * shards[1].predict(X) / 3
    if part is not gossamer.NewtonRegressor:  # weighs by certainty: test_newton_estimators.py
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-9)
    assert math.isclose(model.target_scale_, np.append(y[:100], 40 + 9 * y[100:]).std(), rel_tol=1e-9)
    assert np.isfinite(model.predict_learn(X, y)).all()


def test_pooled_moments():
    """Those of all rows, whoever saw them."""
    y = np.random.default_rng(2).normal(5, 3, size=90)
    parts = [follow_all(NOTHING, piece, None)[1] for piece in (y[:10], y[10:40], y[40:])]
    mean, deviation = units(pool(parts, np.array([10, 30, 50]) / 90))
    assert math.isclose(mean, y.mean())
    assert math.isclose(deviation, y.std())


def test_files():
    """A model without the parameter, from an older version, takes targets as they are; forged moments are refused."""
    X, y = stream()
    model = made(gossamer.SILKRegressor).fit(X, y)
    loaded = store.loads(store.dumps(model))
    assert loaded.scale_target is True
    assert np.array_equal(loaded.predict(X), model.predict(X))
    old = store.load(Path(__file__).parents[1] / "data" / "store-v1.gsm")
    found = [model for model in old.values() if isinstance(model, OnlineRegressor)]
    assert found
    assert not any(model.scale_target or model._moments() for model in found)
    for wrong in ((1.0, 2.0, 3.0), (math.inf, 0.0, 0.0, 0.0), (-1.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0, -1.0), "no"):
        with pytest.raises(ValueError, match="four finite numbers"):
            check_moments(model, wrong)
