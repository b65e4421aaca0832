"""Weights, probabilities, keys without a model: as one estimator per key, to the bit."""

import numpy as np
import pytest
from sklearn.base import clone
from test_bank import KEYS, keyed, last_of, same_models
from test_estimators import ADDITIVE, CLASSIFIERS, DETECTORS, FOUND, MANY, data, made, name_of

from gossamer import OnlineScaler, SILKRegressor, pipeline
from gossamer.bank import ModelBank, UnknownKeyError
from gossamer.kernels import Gaussian


def learned(model, X, y, weights=None, classes=None, cuts=(60, 61, 110)):
    """A bank and one estimator per key, taught the same rows in the same calls."""
    keys, bank, models = keyed(len(X)), ModelBank(model, threads=2, classes=classes), {}
    for rows in np.split(np.arange(len(X)), cuts):
        given = None if weights is None else weights[rows]
        bank.learn(keys[rows], X[rows], None if y is None else y[rows], sample_weight=given)
        for key in KEYS:
            at = rows[keys[rows] == key]
            if not len(at):
                continue
            model_of = models.setdefault(key, clone(model))
            told = {} if weights is None else {"sample_weight": weights[at]}
            if classes is not None:
                told["classes"] = classes
            model_of.partial_fit(X[at], None if y is None else y[at], **told)
    return bank, models


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_weights(part, scaled):
    """sample_weight in the bank is sample_weight in the estimator of each key, compiled or not."""
    X, y = data(part, classes=3 if part in MANY else 2, count=160)
    weights = np.random.default_rng(1).choice([0.0, 0.3, 1.0, 2.5], size=160)
    model = pipeline(OnlineScaler(forget=0.01), made(part)) if scaled else made(part)
    bank, models = learned(model, X, y, weights)
    assert bank.backend == ("estimators" if part in ADDITIVE else "native")
    same_models(bank, models, X)
    unweighted, _ = learned(model, X, y)
    assert any(bank.dump(key) != unweighted.dump(key) for key in KEYS)
    same, _ = learned(model, X, y, np.ones(160))
    assert all(same.dump(key) == unweighted.dump(key) for key in KEYS)


def test_bad_weights():
    """A weight that is none is an error of its row; of another length, one of the call. Nothing changes."""
    X, y = data(SILKRegressor, count=20)
    bank = ModelBank(SILKRegressor(Gaussian(0.5)))
    bank.learn(keyed(20), X, y)
    before = {key: bank.dump(key) for key in bank}
    for bad in (-1.0, np.nan, np.inf, "x", None):
        with pytest.raises(ValueError, match=r"sample_weight.*row 3, of key"):
            bank.learn(keyed(20), X, y, sample_weight=[1.0] * 3 + [bad] + [1.0] * 16)
    for wrong in ([1.0] * 19, 1.0, np.ones((20, 2))):
        with pytest.raises(ValueError, match="sample_weight"):
            bank.learn(keyed(20), X, y, sample_weight=wrong)
    assert {key: bank.dump(key) for key in bank} == before
    report = ModelBank(SILKRegressor(Gaussian(0.5)), errors="report")
    weights = np.ones(20)
    weights[7] = -2.0
    report.learn(keyed(20), X, y, sample_weight=weights)
    assert [error.position for error in report.errors] == [7]


def logistic(part):
    try:
        model = part(Gaussian(0.5), loss="logistic", budget=9)
        model._start()
        return model
    except (TypeError, ValueError):
        return None


PROBABLE = [
    (part, classes)
    for part in CLASSIFIERS
    if part not in ADDITIVE and logistic(part) is not None
    for classes in (1, 2, 3, 12)
    if classes < 3 or part in MANY
]


@pytest.mark.parametrize("given", [False, True], ids=["as they come", "given"])
@pytest.mark.parametrize(("part", "classes"), PROBABLE, ids=lambda value: getattr(value, "__name__", value))
def test_probabilities(part, classes, given):
    """predict_proba in the bank is that of each key's estimator; 0 for classes that it has not seen."""
    X, y = data(part, classes=2, count=160)
    y = np.array([f"label {i}" for i in (np.argsort(np.argsort(X[:, 0])) * classes) // 160])
    for average in (False, "sparse"):
        model = clone(logistic(part)).set_params(average=average)
        labels = sorted(set(y)) if given and classes > 1 else None
        bank, models = learned(model, X, y, classes=labels)
        assert bank.backend == ("estimators" if average else "native")
        keys, found = keyed(160, seed=5), bank.predict_proba(keyed(160, seed=5), X)
        assert found.shape == (160, len(bank.classes_))
        for key, alone in models.items():
            expected = np.zeros((160, len(bank.classes_)))
            expected[:, np.searchsorted(bank.classes_, alone.classes_)] = alone.predict_proba(X)
            assert np.array_equal(found[keys == key], expected[keys == key])
            assert np.array_equal(bank.predict_proba([key] * 160, X), expected)
        np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_how_sure_a_model_is(part):
    """Intervals, sets and p-values are those of the estimator of each key; verbs of other tasks are refused."""
    X, y = data(part, classes=3 if part in MANY else 2, count=60)
    bank, keys = ModelBank(made(part)), keyed(60)
    bank.learn(keys, X, y)
    verbs = {"classification": "predict_set", "regression": "predict_interval", "novelty": "score_pvalue"}
    own = verbs.pop(bank.template.task)
    asked = {} if own == "score_pvalue" else {"coverage": [0.5, 0.9]}
    found = getattr(bank, own)(keys, X, **asked)
    for key in KEYS:
        at, model = keys == key, bank.model(key)
        columns = np.isin(bank.classes_, model.classes_) if own == "predict_set" else slice(None)
        assert np.array_equal(
            found[at][:, columns] if own == "predict_set" else found[at], getattr(model, own)(X[at], **asked)
        )
        assert own != "predict_set" or not found[at][:, ~columns].any()
    for verb in verbs.values():
        with pytest.raises(ValueError, match=verb):
            getattr(bank, verb)(keys, X)
    nobody = getattr(bank, own)(["nobody"], X[:1], unknown="default")
    assert not nobody.any() if own == "predict_set" else np.isnan(nobody).all()


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_unknown_keys(part):
    """One key without a model does not take the answers of the others with it, if that is asked for."""
    X, y = data(part, classes=2, count=60)
    model = pipeline(OnlineScaler(), made(part))
    bank = ModelBank(model)
    bank.learn(keyed(60), X, y)
    keys = keyed(60).astype(object)
    keys[[4, 30]] = "nobody", 17
    fine = np.ones(60, dtype=bool)
    fine[[4, 30]] = False
    methods = [bank.predict, bank.score]
    for method in methods:
        with pytest.raises(UnknownKeyError, match=r"'keys'.*'nobody'.*row 4"):
            method(keys, X)
        with pytest.raises(KeyError):
            method(keys, X)
        said = method(keys, X, unknown="default")
        assert np.array_equal(said[fine], np.asarray(method(keyed(60), X)[fine], dtype=said.dtype))
        assert not bank.errors
    nothing = bank.predict(keys, X, unknown="default")[~fine].tolist()
    expected = [None] if part in CLASSIFIERS else [0] if part in DETECTORS else [np.nan]
    np.testing.assert_equal(nothing, expected * 2)
    assert np.isnan(bank.score(keys, X, unknown="default")[~fine]).all()
    with pytest.raises(ValueError, match="unknown"):
        bank.predict(keys, X, unknown="ignore")
    for method in (bank.model, bank.dump, bank.drop):
        with pytest.raises(KeyError, match="that of a model"):
            method("nobody")
    assert last_of(bank.model("a")).n_seen_ == 30
