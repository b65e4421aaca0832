"""A bank of regressors with several targets: the bits of one estimator per key, stored, spilled, with late labels."""

import numpy as np
import pytest
from sklearn.base import clone

import gossamer
from gossamer import NewtonRegressor, OnlineScaler, SILKRegressor, pipeline
from gossamer.bank import ModelBank

MODELS = [
    SILKRegressor("gaussian:gamma=1", budget=10),
    pipeline(OnlineScaler(), NewtonRegressor("gaussian:gamma=1", budget=10)),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


def stream(rows=120):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    keys = np.array(["a", "b", "c", "d"])[rng.integers(0, 4, rows)]
    return keys, X, np.column_stack([np.sin(X[:, 0]), 100 * X[:, 1] + 3, X[:, 0] * X[:, 1]])


@every_model
def test_models_are_those_of_the_keys(model, tmp_path):
    """Scores, models and predictions, through commits, a small memory and dumps."""
    keys, X, Y = stream()
    with ModelBank(model, path=tmp_path / "bank", memory=4000, targets=3) as bank:
        first = bank.learn(keys[:70], X[:70], Y[:70])
    with ModelBank(model, path=tmp_path / "bank", memory=4000, targets=3) as bank:
        scores = np.vstack([first, bank.learn(keys[70:], X[70:], Y[70:])])
        assert bank.backend == "estimators"
        for key in "abcd":
            own = clone(model)
            mine = keys == key
            assert np.array_equal(scores[mine], own.predict_learn(X[mine], Y[mine]))
            assert np.array_equal(bank.predict(keys[mine], X[mine]), own.predict(X[mine]))
            assert bank.dump(key) == own.to_bytes()
        bank.snapshot(tmp_path / "snapshot")
        again = ModelBank.restore(tmp_path / "snapshot")
        assert np.array_equal(again.predict(keys, X), bank.predict(keys, X))
        bank.put("e", bank.dump("a"))
        assert np.array_equal(bank.predict(["e"], X[:1]), bank.predict(["a"], X[:1]))
        with pytest.raises(ValueError, match="data"):
            bank.put("f", clone(model).partial_fit(X, Y[:, 0]).to_bytes())
    for count in (1, 2):
        with pytest.raises(ValueError, match="'targets' parameter of ModelBank must be those of the file, 3"):
            ModelBank(model, path=tmp_path / "bank", targets=count)


def test_late_labels_and_bad_rows():
    keys, X, Y = stream()
    bank, plain = (ModelBank(MODELS[0], targets=3, errors="report") for _ in range(2))
    shown = bank.predict(keys, X, ids=np.arange(len(X)))
    assert shown.shape == Y.shape
    assert np.isnan(shown).all()
    order = np.random.default_rng(1).permutation(len(X))
    bank.learn_labels(order, Y[order])
    plain.learn(keys[order], X[order], Y[order])
    assert np.array_equal(bank.predict(keys, X), plain.predict(keys, X))
    before = bank.dump("a")
    bad = Y[:2].copy()
    bad[1, 2] = np.nan
    made = bank.learn(["a", "a"], X[:2], bad)
    assert np.isfinite(made[0]).all()
    assert np.isnan(made[1]).all()
    assert [error.position for error in bank.errors] == [1]
    assert bank.dump("a") != before
    for y in (Y[:2, 0], Y[:2, :2], [["a"] * 3] * 2):
        with pytest.raises(ValueError, match="'y' parameter of ModelBank"):
            bank.learn(["a", "a"], X[:2], y)
    for model in (gossamer.SILKClassifier(), gossamer.PARegressor(), gossamer.AutoRegressor()):
        with pytest.raises(ValueError, match="'targets' parameter of ModelBank"):
            ModelBank(model, targets=2)
