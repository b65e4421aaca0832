"""Laws of what estimators say about how sure they are: compiled equals NumPy, batches do not matter, nothing else of a
model changes, it is stored and resumed to the bit, coverages hold, and every face says the same."""

import copy
import pickle

import numpy as np
import pytest

import gossamer
from gossamer import _core, bounds
from gossamer.certainty.conformal import MISSED, STEP, Certainty

WIDTH = "gaussian:0.5"
CLASSIFIERS = [
    gossamer.SILKClassifier(WIDTH, budget=20),
    gossamer.NORMAClassifier(WIDTH, loss="logistic", budget=20),
    gossamer.PAClassifier(WIDTH),
    gossamer.NewtonClassifier(WIDTH, budget=20),
    gossamer.pipeline(gossamer.OnlineScaler(), gossamer.SILKClassifier(WIDTH, budget=20)),
    gossamer.AutoClassifier(budget=10),
    gossamer.Mixture([gossamer.SILKClassifier(WIDTH, budget=20), gossamer.NewtonClassifier(WIDTH, budget=10)]),
]
REGRESSORS = [
    gossamer.SILKRegressor(WIDTH, budget=20),
    gossamer.SILKRegressor(WIDTH, budget=20, scale_target=False),
    gossamer.NewtonRegressor(WIDTH, budget=20),
    gossamer.pipeline(gossamer.OnlineScaler(), gossamer.NORMARegressor(WIDTH, budget=20)),
    gossamer.AutoRegressor(budget=10),
    gossamer.Mixture([gossamer.SILKRegressor(WIDTH, budget=20), gossamer.NewtonRegressor(WIDTH, budget=10)]),
]
DETECTORS = [gossamer.SILKDetector(WIDTH, budget=20), gossamer.NORMADetector(WIDTH, budget=20)]


def last(model):
    return model[-1] if hasattr(model, "steps") else model


def rows(count=300, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=count) > 0).astype(int)
    if classes > 2:
        y[60:] += (X[60:, 1] > 0.5) * 2
    return X, y


def values(task, seed=0, count=800):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=count)
    if task in ("classification", "log_odds"):
        return "learn_two", (f, (rng.random(count) < 1 / (1 + np.exp(-3 * f))).astype(float))
    spread = np.exp(np.linspace(-20, 20, count))[:: 1 - 2 * (seed % 2)]
    return ("learn_real", (f * spread,)) if task == "regression" else ("learn_novelty", (np.abs(f) * spread,))


@pytest.mark.parametrize("task", ["classification", "log_odds", "regression", "novelty"])
@pytest.mark.parametrize("seed", [0, 1])
def test_compiled_equals_numpy(task, seed):
    name, columns = values(task, seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.5, 1.0, 2.0], len(columns[0]))
    core, spec = _core.Certainty(task), Certainty(task)
    getattr(core, name)(*columns, weights, [], None)
    for t in range(len(weights)):
        getattr(spec, name)(*(column[t].item() for column in columns), weights[t].item())
    np.testing.assert_allclose(core.state(), spec.state(), rtol=1e-9, atol=1e-11)
    assert core.sound()
    assert spec.conformal.sketch.total == pytest.approx(sum(spec.conformal.sketch.weights))
    if task == "novelty":
        p = np.empty(9)
        core.p_values(scores := np.geomspace(1e-12, 1e12, 9), p)
        np.testing.assert_allclose(p, [spec.p_value(f) for f in scores.tolist()], rtol=1e-9)
    for missed in (0.6, 0.5, 0.3, 0.1, 0.07, 0.01, 0.001):
        assert core.threshold(missed) == pytest.approx(spec.threshold(missed))


@pytest.mark.parametrize("task", ["classification", "log_odds", "regression", "novelty"])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_batch_equals_its_rows_to_the_bit(task, seed):
    name, columns = values(task, seed)
    rng = np.random.default_rng(seed)
    columns[0][rng.choice(800, 30)] = [0.0, np.nan, np.inf, -1e300, 5e-324, 1e-30] * 5  # bins move, rows are left out
    whole, parts, rowwise = (_core.Certainty(task) for _ in range(3))
    getattr(whole, name)(*columns, None, [], None)
    for start in range(0, 800, 7):
        getattr(parts, name)(*(column[start : start + 7] for column in columns), None, [], None)
    for row in zip(*columns, strict=True):
        rowwise.learn_one(*((row[0], 0.0) if task == "novelty" else row if len(row) > 1 else (0.0, row[0])), 1.0)
    assert np.array_equal(whole.state(), parts.state())
    assert np.array_equal(whole.state(), rowwise.state())
    assert whole.sound()


@pytest.mark.parametrize("task", ["classification", "log_odds"])
def test_compiled_equals_numpy_for_many_classes(task):
    rng = np.random.default_rng(0)
    f = rng.normal(size=(400, 4))
    y = (f + rng.gumbel(size=f.shape)).argmax(axis=1).astype(float)
    f[:100, 3] = -np.inf
    if task == "classification":
        f[0] = -np.inf
    core, spec = _core.Certainty(task), Certainty(task)
    out = np.empty((400, 5))
    core.learn_many(f, y, None, [0.1], out)
    for t in range(400):
        np.testing.assert_allclose(out[t, :4], spec.probability_many(f[t]), rtol=1e-9)
        assert out[t, 4] == pytest.approx(spec.threshold(0.1))
        spec.learn_many(f[t].tolist(), int(y[t]))
    np.testing.assert_allclose(core.state(), spec.state(), rtol=1e-9)


@pytest.mark.parametrize("model", CLASSIFIERS)
@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_those_before_learning_whatever_the_batches(model, classes):
    X, y = rows(150, 2 if isinstance(model, gossamer.PAClassifier) else classes)
    whole, plain = copy.deepcopy(model), copy.deepcopy(model)
    p = whole.predict_learn(X, y, method="proba")
    scores = plain.predict_learn(X, y)
    parts, steps = copy.deepcopy(model), []
    for start in range(0, len(X), 11):
        part = parts.predict_learn(X[start : start + 11], y[start : start + 11], method="proba")
        steps.append(np.pad(part, ((0, 0), (0, p.shape[1] - part.shape[1]))))
    assert p.shape == (len(X), len(last(whole).classes_))
    assert np.array_equal(last(whole)._certainty.state(), last(parts)._certainty.state())
    assert np.array_equal(p[33:], np.vstack(steps)[33:]) or classes > 2  # classes come in another order of columns
    assert np.allclose(p[3:].sum(axis=1), 1)
    assert np.array_equal(last(plain)._certainty.state(), last(whole)._certainty.state())
    assert np.array_equal(plain.decision_function(X), whole.decision_function(X))
    after = whole.predict_proba(X)
    if classes == 2:
        assert np.array_equal(np.argmax(after, axis=1), (whole.decision_function(X) >= 0).astype(int))
        assert scores.ndim == 1 or isinstance(model, gossamer.Mixture)
    if hasattr(whole, "predict_log_proba"):
        np.testing.assert_allclose(whole.predict_log_proba(X), np.log(after))


@pytest.mark.parametrize("model", [*CLASSIFIERS, *REGRESSORS, *DETECTORS])
def test_stored_copied_and_resumed_to_the_bit(model):
    X, y = rows()
    model = copy.deepcopy(model)
    model.partial_fit(X[:200], y[:200])
    stored = type(model).from_bytes(model.to_bytes())
    twins = [stored, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.partial_fit(X[200:], y[200:])
    for twin in twins:
        assert not np.array_equal(last(twin)._certainty.state(), last(model)._certainty.state())
        twin.partial_fit(X[200:], y[200:])
        assert np.array_equal(last(twin)._certainty.state(), last(model)._certainty.state())


@pytest.mark.parametrize("model", REGRESSORS)
def test_intervals_hold_their_coverage(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(3000, 1))
    y = 100 * np.sin(X[:, 0]) + np.exp(np.linspace(0, 3, 3000)) * rng.normal(size=3000)
    model = copy.deepcopy(model)
    ends = model.predict_learn(X, y, method="interval", coverage=[0.5, 0.8, 0.9, 0.95])
    assert ends.shape == (3000, 4, 2)
    assert (np.diff(ends, axis=2) >= 0).all()
    inside = ((ends[:, :, 0] <= y[:, None]) & (y[:, None] <= ends[:, :, 1])).mean(axis=0)
    for share, missed in zip(inside, MISSED, strict=False):
        assert abs(1 - share - missed) <= bounds.conformal_coverage(missed=missed, step=STEP * missed, rounds=3000)
        assert abs(1 - share - missed) < 0.02
    now = model.predict_interval(X[:5], coverage=0.9)
    assert now.shape == (5, 2)
    assert np.allclose(now.mean(axis=1), model.predict(X[:5]))


def test_sets_hold_their_coverage():
    X, y = rows(3000, 4)
    model = gossamer.SILKClassifier("gaussian:0.5", budget=50)
    sets = model.predict_learn(X, y, method="set", coverage=0.9)
    codes = np.searchsorted(model.classes_, y)
    assert abs(sets[np.arange(3000), codes].mean() - 0.9) < 0.02
    assert model.predict_set(X[:7], coverage=[0.8, 0.95]).shape == (7, 4, 2)


@pytest.mark.parametrize("kind", ["farther and farther", "now and then", "noise"])
def test_alarms_keep_their_theorem_whatever_the_scores(kind):
    """The share below each threshold, and of p-values below the least share; rows beyond all are no exception."""
    rng, count = np.random.default_rng(0), 6000
    scores = {
        "farther and farther": -np.exp(np.arange(count) / 200),
        "now and then": rng.normal(size=count) - 1e6 * (np.arange(count) % 7 == 0) * np.arange(count),
        "noise": rng.standard_cauchy(count),
    }[kind]
    sure, out = _core.Certainty("novelty"), np.empty((count, 1 + len(MISSED)))
    sure.learn_novelty(scores, None, list(MISSED), out)
    for k, missed in enumerate(MISSED, start=1):
        bound = bounds.conformal_coverage(missed=missed, step=0.3 * missed, rounds=count)
        assert abs((scores < out[:, k]).mean() - missed) <= bound + 3 / count  # the first rows have no threshold
    assert (out[:, 0] < MISSED[-1]).mean() <= MISSED[-1] + 5 / count


@pytest.mark.parametrize("model", DETECTORS)
def test_p_values_are_uniform_where_the_world_stands_still(model):
    X = np.random.default_rng(0).normal(size=(6000, 2))
    p = copy.deepcopy(model).predict_learn(X, method="pvalue")[1000:]
    for share in (0.05, 0.1, 0.5):
        assert abs((p <= share).mean() - share) < 0.25 * share + 0.005


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, "0.9", None, [], [0.5, 2.0], np.nan])
def test_bad_coverages_are_refused(bad):
    model = gossamer.SILKRegressor().partial_fit([[0.0], [1.0]], [0.0, 1.0])
    before = model.to_bytes()
    for call in (model.predict_interval, lambda X, c: model.predict_learn(X, [0.0], method="interval", coverage=c)):
        with pytest.raises(ValueError, match="'coverage' parameter"):
            call([[0.0]], bad)
    assert model.to_bytes() == before


def test_runs_of_alarms_are_not_learned():
    """An anomaly that lasts stays one with ``skip``, also behind a scaler; any batches give the same."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 2))
    X[600:800] += 6.0
    for make in (
        lambda **more: gossamer.SILKDetector("gaussian:0.5", **more),
        lambda **more: gossamer.pipeline(gossamer.OnlineScaler(), gossamer.SILKDetector("gaussian:0.5", **more)),
    ):
        wary = make(skip=0.05)
        scores = wary.predict_learn(X)
        assert (scores[603:800] < 0).mean() > 0.95
        assert (scores[200:600] < 0).mean() < 0.1
        assert last(wary).n_seen_ < 720
        parts, found = make(skip=0.05), []
        for start in range(0, 900, 130):
            found.append(parts.predict_learn(X[start : start + 130]))
            parts = type(parts).from_bytes(parts.to_bytes())
        assert np.array_equal(np.concatenate(found), scores)
    with pytest.raises(ValueError, match="'skip' parameter"):
        gossamer.SILKDetector(skip=1.5).fit(X)
