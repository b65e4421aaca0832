"""Clock time in every estimator and face: batches, prediction before learning, stores, banks, river, mixtures."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from test_estimators import CLASSIFIERS, FOUND, MANY, MIXTURES, cut, data, made, name_of

import gossamer
from gossamer import HalfLife, Mixture, OnlineScaler, _core, pipeline
from gossamer.bank import ModelBank
from gossamer.certainty.conformal import Certainty
from gossamer.certainty.links import Link, SoftmaxLink
from gossamer.estimators import targets
from gossamer.estimators.scaler import scale_rows
from gossamer.evaluate import Prequential, prequential
from gossamer.kernels import Gaussian
from gossamer.mixture import roster
from gossamer.mixture.weights import KEEP, KINDS, Weights, mix

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


# ------------------------------------------------------------------------------------------------------- mixtures


@pytest.fixture
def small(monkeypatch):
    """The roster changes early, and explores from the start."""
    monkeypatch.setattr(roster, "LIMITS", ((96, 12), (128, 8), (160, 6), (192, 4)))
    for name, value in (("FIRST_YOUNG", 128), ("FIRST_EXPLORERS", 160), ("EXPLORE", 64), ("TRIAL", 96), ("MEMORY", 96)):
        monkeypatch.setattr(roster, name, value)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("part", MIXTURES, ids=name_of)
def test_experts_forget_by_the_clock(part):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(320, 3))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 0]
    y = smooth if part is gossamer.AutoRegressor else np.where(smooth > 0, "yes", "no")
    times = times_of(320)
    whole, split = (part(budget=12, half_life="1 day") for _ in range(2))
    whole.partial_fit(X[:3], y[:3], time=times[:3])
    split.partial_fit(X[:3], y[:3], time=times[:3])
    scores = whole.predict_learn(X[3:], y[3:], time=times[3:])
    ends = [3, 4, 31, 100, 201, 320]
    found = []
    for a, b in itertools.pairwise(ends):
        split = gossamer.from_bytes(split.to_bytes())
        found.append(split.predict_learn(X[a:b], y[a:b], time=times[a:b]))
    assert np.array_equal(scores, np.concatenate(found))
    assert whole.to_bytes() == split.to_bytes()
    assert "half-life" in whole.explain(0.0)
    best = whole.best()
    best.partial_fit(X[:5], y[:5], **({"time": times[-1:].repeat(5)} if best[-1].half_life else {}))
    lives = {s.half_life(86400.0) for s in whole.experts_}
    assert lives - {None}
    with pytest.raises(ValueError, match="in order"):
        whole.partial_fit(X, y, time=times)
    with pytest.raises(ValueError, match="must be given"):
        whole.partial_fit(X, y)


def test_a_mixture_hands_the_time_to_experts():
    (X, y), times = data(gossamer.SILKClassifier), times_of()
    experts = [
        gossamer.SILKClassifier(Gaussian(0.5), half_life="1 day"),
        gossamer.NewtonClassifier(Gaussian(0.5), half_life="1 hour", budget=20),
        gossamer.NORMAClassifier(Gaussian(0.5)),
    ]
    whole, split = Mixture(experts), Mixture(experts)
    out = whole.predict_learn(X, y, time=times)
    split.partial_fit(X[:9], y[:9], time=times[:9])
    split = gossamer.from_bytes(split.to_bytes())
    assert np.array_equal(out[9:], split.predict_learn(X[9:], y[9:], time=times[9:]))
    assert whole.to_bytes() == split.to_bytes()
    with pytest.raises(ValueError, match="in order"):
        whole.partial_fit(X, y, time=times)
    with pytest.raises(ValueError, match="must be None without half_life"):
        Mixture([gossamer.SILKClassifier()]).partial_fit(X, y, time=times)


@pytest.mark.parametrize("kind", KINDS)
def test_opinions_fade_as_the_specification_says(kind):
    rng = np.random.default_rng(2)
    outputs, rows = (3 if kind == "class" else 1), 80
    scores, y = rng.normal(size=(4, rows, outputs)), rng.normal(size=rows)
    y = np.sign(y) if kind == "sign" else rng.integers(0, 3, rows).astype(float) if kind == "class" else y
    fades = rng.choice([1.0, 0.9, 0.3, 0.0], size=rows)
    importance = rng.choice([1.0, 0.0, 2.0], size=rows)
    variances, found = np.ones((4, rows)), []
    for function in (None, mix):
        mixed, out = Weights(kind, 4), np.empty((rows, outputs))
        if function is None:
            out = mixed.learn(scores, variances, y, importance, fades)
        else:
            state = (mixed.opinions, mixed.weights, mixed.credits)
            function(kind, scores, variances, y, importance, *state, mixed.share, KEEP, out, fades)
        found.append((out, mixed.opinions, mixed.weights))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    split, whole = Weights(kind, 4), Weights(kind, 4)
    parts = [
        split.learn(scores[:, p], variances[:, p], y[p], importance[p], fades[p]) for p in (slice(33), slice(33, None))
    ]
    given = [np.ascontiguousarray(values) for values in (scores, variances)]
    assert np.array_equal(np.concatenate(parts), whole.learn(*given, y, importance, fades))


def test_links_go_back_to_the_prior():
    """In any split the same; after a long time nothing is left; the probability is that before the time passed."""
    rng = np.random.default_rng(3)
    f, y, fades = (
        rng.normal(size=200),
        rng.random(200) < 0.3,
        rng.choice([1.0, 0.99, 0.5, 0.0], p=[0.3, 0.6, 0.09, 0.01], size=200),
    )
    p, link = Link().learn_all(f, y, None, fades)
    slow, expected = Link(), []
    for score, second, fade in zip(f, y, fades, strict=True):
        expected.append(slow.probability(float(score)))
        slow = slow.fade(float(fade)).learn(float(score), bool(second))
    np.testing.assert_allclose(p, expected, rtol=1e-9)
    np.testing.assert_allclose(link, slow, rtol=1e-9)
    np.testing.assert_allclose(link.fade(0.0), Link(), rtol=1e-12)
    scores, labels = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    p, many = SoftmaxLink().learn_all(scores, labels, None, fades)
    first, half = SoftmaxLink().learn_all(scores[:77], labels[:77], None, fades[:77])
    second, half = half.learn_all(scores[77:], labels[77:], None, fades[77:])
    assert np.array_equal(p, np.concatenate([first, second]))
    assert many == half
    slow = SoftmaxLink()
    for row, label, fade in zip(scores, labels, fades, strict=True):
        slow = slow.fade(float(fade)).learn(row, int(label))
    np.testing.assert_allclose(many, slow, rtol=1e-9)
    np.testing.assert_allclose(many.fade(0.0), SoftmaxLink(), rtol=1e-12)


@pytest.mark.parametrize("delay", [0, 7])
def test_evaluation_hands_the_time_on(delay):
    (X, y), times = data(gossamer.SILKClassifier), times_of()
    model = gossamer.SILKClassifier(Gaussian(0.5), half_life="1 day")
    run, one = Prequential(clone(model), every=13, delay=delay), clone(model)
    whole = prequential(one, (X, y, times), every=13, delay=delay)
    for p in PARTS:
        run.update(X[p], y[p], times[p])
    assert run.finish().window("error").tolist() == whole.window("error").tolist()
    expected = clone(model).partial_fit(X[: ROWS - delay], y[: ROWS - delay], time=times[: ROWS - delay])
    assert one.to_bytes() == expected.to_bytes()


# ------------------------------------------------------------------------------------------ certainty and late labels


@pytest.mark.parametrize("task", ["classification", "log_odds", "regression", "novelty"])
def test_certainty_fades_as_the_specification_says(task):
    rng = np.random.default_rng(4)
    scores, y, weights = rng.normal(size=300), rng.random(300) < 0.4, rng.uniform(0.5, 2.0, size=300)
    fades = rng.choice([1.0, 0.99, 0.5, 1e-30, 0.0], p=[0.3, 0.6, 0.08, 0.01, 0.01], size=300)
    whole, split, slow = _core.Certainty(task), _core.Certainty(task), Certainty(task)
    values = np.abs(scores) if task == "novelty" else scores

    def learn(sure, part):
        given = (weights[part], [], None, fades[part])
        if task in ("classification", "log_odds"):
            sure.learn_two(values[part], y[part].astype(float), *given)
        else:
            (sure.learn_real if task == "regression" else sure.learn_novelty)(values[part], *given)

    learn(whole, slice(None))
    for p in (slice(0, 1), slice(1, 133), slice(133, 300)):
        learn(split, p)
    assert whole == split
    for value, second, weight, fade in zip(values, y, weights, fades, strict=True):
        slow.fade(float(fade))
        if task in ("classification", "log_odds"):
            slow.learn_two(float(value), bool(second), float(weight))
        else:
            (slow.learn_real if task == "regression" else slow.learn_novelty)(float(value), float(weight))
    np.testing.assert_allclose(whole.state(), slow.state(), rtol=1e-7, atol=1e-9)


def test_probabilities_and_intervals_with_time():
    """What a model says of how sure it is, in any split; after years it knows nothing."""
    (X, y), times = data(gossamer.SILKClassifier), times_of()
    whole, split = (made(gossamer.SILKClassifier, half_life="1 day") for _ in range(2))
    p = whole.partial_fit(X[:5], y[:5], time=times[:5]).predict_learn(X[5:], y[5:], time=times[5:], method="proba")
    split.partial_fit(X[:5], y[:5], time=times[:5])
    found = [split.predict_learn(X[q], y[q], time=times[q], method="proba") for q in (slice(5, 9), slice(9, ROWS))]
    assert np.array_equal(p, np.concatenate(found))
    (X, y), times = data(gossamer.SILKRegressor, count=600), np.arange(600) * 600.0
    model = made(gossamer.SILKRegressor, half_life="1 day").partial_fit(X, y, time=times)
    assert np.isfinite(model.predict_interval(X)).all()
    model.partial_fit(X[:1], y[:1], [0.0], time=[times[-1] + 3e9])
    assert np.isinf(model.predict_interval(X)).all()


def test_late_labels_have_the_time_of_their_coming():
    (X, y), times = data(gossamer.SILKClassifier), times_of()
    made_of = pipeline(OnlineScaler(half_life="2 days"), made(gossamer.SILKClassifier, half_life="1 day"))
    model = clone(made_of)
    model.predict(X[:30], ids=list(range(30)), time=float(times[0]))
    model.learn_labels(list(range(20)), y[:20], time=float(times[5]))
    model.learn_labels(list(range(20, 30)), y[20:30], time=float(times[9]))
    other = clone(made_of)
    Z = other[0].learn_transform(X[:30], time=np.full(30, times[0]))
    other[-1].partial_fit(Z[:20], y[:20], time=np.full(20, times[5]))
    other[-1].partial_fit(Z[20:], y[20:30], time=np.full(10, times[9]))
    assert np.array_equal(model.decision_function(X), other.decision_function(X))
    model.predict(X[:1], ids=["x"], time=float(times[9]))
    with pytest.raises(ValueError, match="must be given for each row"):
        model.learn_labels(["x"], y[:1])


def test_wary_detectors_have_a_clock():
    rng = np.random.default_rng(5)
    X, times = rng.normal(size=(400, 2)), np.arange(400) * 600.0
    X[300:330] += 9.0
    model = pipeline(
        OnlineScaler(half_life="1 day"), gossamer.SILKDetector(Gaussian(0.5), skip=0.02, half_life="1 day")
    )
    whole, split = clone(model), clone(model)
    scores = whole.predict_learn(X, time=times)
    found = [split.predict_learn(X[p], time=times[p]) for p in (slice(0, 50), slice(50, 311), slice(311, 400))]
    assert np.array_equal(scores, np.concatenate(found))
    assert whole.to_bytes() == split.to_bytes()
