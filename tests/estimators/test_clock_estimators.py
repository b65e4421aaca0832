"""Clock time in every estimator and face: batches, prediction before learning, stores, banks, river, mixtures."""

import numpy as np
import pytest
from sklearn.base import clone
from test_estimators import CLASSIFIERS, FOUND, MANY, cut, data, made, name_of

import gossamer
from gossamer import HalfLife, OnlineScaler, pipeline
from gossamer.bank import ModelBank
from gossamer.estimators import targets
from gossamer.estimators.scaler import scale_rows
from gossamer.kernels import Gaussian

ROWS = 60
PARTS = [slice(0, 1), slice(1, 17), slice(17, 18), slice(18, 41), slice(41, ROWS)]
every_estimator = pytest.mark.parametrize("part", FOUND, ids=name_of)


def times_of(rows=ROWS, seed=0):
    """Equal times, hours, days, and a gap of years."""
    gaps = np.random.default_rng(seed).choice([0.0, 60.0, 3600.0, 86400.0], size=rows)
    gaps[rows // 2] = 10 * 365.25 * 86400
    return 1.7e9 + np.cumsum(gaps)


def say(model, X):
    return model.predict(X) if hasattr(model, "target_mean_") else model.decision_function(X)


@every_estimator
def test_batches_with_time(part):
    """One call, any batches, and the same model: to the bit."""
    classes = 3 if part in MANY else 2
    (X, y), times = data(part, classes), times_of()
    whole, split = (made(part, half_life="1 day") for _ in range(2))
    order = {} if part not in CLASSIFIERS else {"classes": np.unique(y)}
    whole.partial_fit(X[:1], cut(y, slice(1)), **order, time=times[:1])
    split.partial_fit(X[:1], cut(y, slice(1)), **order, time=times[:1])
    scores = whole.predict_learn(X[1:], cut(y, slice(1, None)), time=times[1:])
    found = [split.predict_learn(X[p], cut(y, p), time=times[p]) for p in PARTS[1:]]
    assert np.array_equal(scores, np.concatenate(found))
    assert whole.to_bytes() == split.to_bytes()


@every_estimator
def test_a_row_is_predicted_and_then_time_passes(part):
    """What `predict_learn` says of a row is what the model would have said before; and `fit` is one pass in order."""
    (X, y), times = data(part), times_of()
    whole, rows = (made(part, half_life="6 hours", **({"average": False})) for _ in range(2))
    scores = whole.partial_fit(X[:4], cut(y, slice(4)), time=times[:4]).predict_learn(
        X[4:], cut(y, slice(4, None)), time=times[4:]
    )
    rows.partial_fit(X[:4], cut(y, slice(4)), time=times[:4])
    for t in range(4, 34):
        assert say(rows, X[t : t + 1])[0] == scores[t - 4]
        rows.partial_fit(X[t : t + 1], cut(y, slice(t, t + 1)), time=times[t : t + 1])
    fitted = made(part, half_life="6 hours").fit(X, y, time=times)
    order = {} if part not in CLASSIFIERS else {"classes": np.unique(y)}
    online = made(part, half_life="6 hours").partial_fit(X, y, **order, time=times)
    assert np.array_equal(say(fitted, X), say(online, X))
    with pytest.raises(ValueError, match=r"The 'n_passes' parameter of .* must be 1 with half_life"):
        made(part, half_life="6 hours", n_passes=2).fit(X, y, time=times)


@every_estimator
def test_forgetting_matters_and_bad_times_do_not(part):
    (X, y), times = data(part), times_of()
    plain, timed = made(part), made(part, half_life="1 hour")
    first, second = plain.predict_learn(X, y), timed.predict_learn(X, y, time=times)
    assert not np.array_equal(first, second)
    before = timed.to_bytes()
    with pytest.raises(ValueError, match=f"The 'time' parameter of {part.__name__} must be in order"):
        timed.partial_fit(X, y, time=times)
    with pytest.raises(ValueError, match=f"The 'time' parameter of {part.__name__} must be given"):
        timed.partial_fit(X, y)
    with pytest.raises(ValueError, match=f"The 'time' parameter of {part.__name__} must be None without half_life"):
        plain.partial_fit(X, y, time=times)
    assert timed.to_bytes() == before
    late = made(part, half_life=HalfLife("1 hour", late="clamp")).partial_fit(X, y, time=times)
    late.partial_fit(X, y, time=times)
    with pytest.raises(ValueError, match=f"The 'half_life' parameter of {part.__name__} must be a number of seconds"):
        made(part, half_life="soon").partial_fit(X, y, time=times)


@every_estimator
def test_stored_models_go_on(part):
    classes = 3 if part in MANY else 2
    (X, y), times = data(part, classes), times_of()
    model = made(part, half_life=HalfLife("1 day", late="clamp"))
    model.partial_fit(X[:41], cut(y, slice(41)), time=times[:41])
    other = gossamer.from_bytes(model.to_bytes())
    assert clone(other).half_life == model.half_life
    rest = slice(41, None)
    assert np.array_equal(
        model.predict_learn(X[rest], cut(y, rest), time=times[rest]),
        other.predict_learn(X[rest], cut(y, rest), time=times[rest]),
    )
    assert model.to_bytes() == other.to_bytes()


@every_estimator
def test_a_bank_has_a_clock_for_each_key(part):
    (X, y), times = data(part), times_of()
    keys = np.arange(ROWS) % 3
    model = pipeline(OnlineScaler(half_life="2 days"), made(part, half_life="1 day"))
    given = {} if part not in CLASSIFIERS else {"classes": np.unique(y)}
    bank = ModelBank(model, threads=1, **given)
    scores = np.concatenate([bank.learn(keys[p], X[p], cut(y, p), time=times[p]) for p in PARTS])
    for key in range(3):
        own = clone(model)
        mine = keys == key
        if given:
            own[-1]._order, own[-1]._given, own[-1].classes_ = np.unique(y).tolist(), True, np.unique(y)
        assert np.array_equal(own.predict_learn(X[mine], cut(y, mine), time=times[mine]), scores[mine])
    with pytest.raises(ValueError, match="'time' parameter"):
        bank.learn(keys, X, y, time=times - 1e9)
    reports = ModelBank(model, threads=1, errors="report", **given)
    odd = times.copy()
    odd[[10, 20]] = np.nan, 0.0
    reports.learn(keys, X, y, time=odd)
    assert [error.position for error in reports.errors] == [10, 20]


@pytest.mark.parametrize("part", [part for part in FOUND if part.takes_new_features], ids=name_of)
def test_river_rows_have_a_time(part):
    river = pytest.importorskip("gossamer.river")
    (X, y), times = data(part), times_of()
    model = getattr(river, part.__name__)(Gaussian(0.5), budget=20, half_life="1 day")
    own = made(part, half_life="1 day", average=False)
    order = {} if part not in CLASSIFIERS else {"classes": None}
    codes = None if y is None else y if part not in CLASSIFIERS else np.array([["b", "aa"].index(label) for label in y])
    own.partial_fit(X, codes, **order, time=times)
    for t, x in enumerate(X):
        row = {"a": x[0], "b": x[1]}
        model.learn_one(row, t=times[t]) if y is None else model.learn_one(row, y[t], t=times[t])
    inner = model.learner.score(X)
    assert np.array_equal(inner, own.learner_.score(X))
    with pytest.raises(ValueError, match="must be given for each row"):
        model.learn_one(row) if y is None else model.learn_one(row, y[0])


def test_a_scaler_forgets_by_the_clock():
    """Any split is the same, the specification agrees, equal times forget nothing, after years it begins anew."""
    X, times = np.random.default_rng(0).normal(size=(ROWS, 3)) * [1, 10, 100], times_of()
    whole, split = OnlineScaler(0.01, half_life="1 day"), OnlineScaler(0.01, half_life="1 day")
    out = whole.learn_transform(X, time=times)
    assert np.array_equal(out, np.concatenate([split.learn_transform(X[p], time=times[p]) for p in PARTS]))
    assert whole.to_bytes() == split.to_bytes() == gossamer.from_bytes(whole.to_bytes()).to_bytes()
    fades = gossamer.clock.elapse("OnlineScaler", HalfLife("1 day"), None, times)[0]
    found = scale_rows(X, np.zeros(3), np.zeros(3), 0.0, 0.99, True, True, fades)
    np.testing.assert_allclose(found[0], out, rtol=1e-12, atol=1e-12)
    plain, still = OnlineScaler(), OnlineScaler(half_life=1.0)
    assert np.array_equal(plain.learn_transform(X), still.learn_transform(X, time=np.zeros(ROWS)))
    fresh = OnlineScaler(half_life="1 day").fit(X[ROWS // 2 :], time=times[ROWS // 2 :])
    old = OnlineScaler(half_life="1 day").fit(X, time=times)
    np.testing.assert_allclose(fresh.var_, old.var_, rtol=1e-12)
    np.testing.assert_allclose(fresh.mean_, old.mean_, rtol=1e-12)
    with pytest.raises(ValueError, match="The 'time' parameter of OnlineScaler must be given"):
        whole.partial_fit(X)
    merged = gossamer.merge([
        pipeline(OnlineScaler(half_life=7.0), gossamer.SILKRegressor(Gaussian(1.0), half_life=7.0)).partial_fit(
            X[p], X[p, 0], time=np.arange(ROWS)[p]
        )
        for p in (slice(30), slice(30, None))
    ]).model  # fmt: skip
    both = OnlineScaler(half_life=7.0).fit(X, time=np.arange(ROWS))
    np.testing.assert_allclose(merged[0].mean_, both.mean_, rtol=1e-9)
    np.testing.assert_allclose(merged[0].var_, both.var_, rtol=1e-9)


def test_targets_fade_as_the_specification_says():
    rng = np.random.default_rng(1)
    y, fades = 1000 + rng.normal(size=50), rng.choice([1.0, 0.5, 0.9, 0.0], size=50)
    moments, expected = targets.NOTHING, []
    for value, fade in zip(y, fades, strict=True):
        z, moments = targets.follow(moments, float(value), 1.0, float(fade))
        expected.append(z)
    found, after = targets.follow_all(targets.NOTHING, y, None, fades)
    assert found[0].tolist() == expected
    assert after == moments


def test_pipelines_hand_the_time_to_all_clocks():
    (X, y), times = data(gossamer.SILKClassifier), times_of()
    both = pipeline(OnlineScaler(half_life="1 day"), gossamer.SILKClassifier(Gaussian(0.5), half_life="1 day"))
    scaler = pipeline(OnlineScaler(half_life="1 day"), gossamer.SILKClassifier(Gaussian(0.5)))
    model = pipeline(OnlineScaler(), gossamer.SILKClassifier(Gaussian(0.5), half_life="1 day"))
    for made_of in (both, scaler, model):
        whole, split = clone(made_of), clone(made_of)
        scores = whole.predict_learn(X, y, time=times)
        split.partial_fit(X[:4], y[:4], time=times[:4])
        rest = [slice(4, 17), slice(17, ROWS)]
        assert np.array_equal(
            scores[4:], np.concatenate([split.predict_learn(X[p], y[p], time=times[p]) for p in rest])
        )
        assert whole.to_bytes() == split.to_bytes()
        clone(made_of).fit(X, y, time=times)
        with pytest.raises(ValueError, match="'time' parameter"):
            whole.partial_fit(X, y)
    with pytest.raises(ValueError, match="must be None without half_life"):
        pipeline(OnlineScaler(), gossamer.SILKClassifier()).partial_fit(X, y, time=times)
