"""Clock time around the estimators: mixtures, links, certainty, evaluation, late labels, detectors that skip rows."""

import itertools

import numpy as np
import pytest
from sklearn.base import clone
from test_clock_estimators import PARTS, ROWS, times_of
from test_estimators import MIXTURES, data, made, name_of

import gossamer
from gossamer import Mixture, OnlineScaler, _core, pipeline
from gossamer.certainty.conformal import Certainty
from gossamer.certainty.links import Link, SoftmaxLink
from gossamer.evaluate import Prequential, prequential
from gossamer.kernels import Gaussian
from gossamer.mixture import roster
from gossamer.mixture.weights import KEEP, KINDS, Weights, mix


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
