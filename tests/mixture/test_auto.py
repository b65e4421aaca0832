"""The laws of estimators that mix learners: batches, state, classes, units, bad input, limits, and what they show."""

import copy
import itertools
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from test_estimators import MIXTURES, name_of

import gossamer
from gossamer import AutoClassifier, AutoRegressor, store
from gossamer.bank import ModelBank
from gossamer.kernels import Gaussian, Linear, Matern
from gossamer.mixture import roster
from gossamer.mixture.costs import SLEEPERS, VISITORS, expert_bytes, fit_limits

#: Rows enough for every change of the roster, in a mixture whose constants are small.
ROWS = 400
#: Bytes for a few experts.
MEMORY = 14 * expert_bytes(12, 3)
CASES = {
    "two": (AutoClassifier, {}, 2),
    "three": (AutoClassifier, {}, 3),
    "limited": (AutoClassifier, {"memory": MEMORY}, 2),
    "plain": (AutoClassifier, {"scale": False, "n_jobs": 2}, 3),
    "scale": (AutoClassifier, {"kernel": Gaussian() + Linear()}, 2),
    "matern": (AutoClassifier, {"kernel": Matern(1.5, 1.0)}, 2),
    "laplace": (AutoRegressor, {"kernel": "laplace"}, 0),
    "mixed": (AutoRegressor, {"kernel": "mixed", "scale": False}, 0),
    "mean": (AutoRegressor, {}, 0),
    "quantile": (AutoRegressor, {"quantile": 0.8}, 0),
}
every_case = pytest.mark.parametrize("case", CASES)
pytestmark = pytest.mark.usefixtures("small_roster")


def make(case, **more):
    part, parameters, _ = CASES[case]
    return part(**{"budget": 12, **parameters, **more})


def stream(case, rows=ROWS, seed=0):
    """Rows of very different units, and a target; a third class comes late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 1000.0, 0.01] + [0.0, 5000.0, 1.0]
    smooth = np.sin(2 * X[:, 0]) + (X[:, 1] - 5000) / 1000 * X[:, 0] + 0.2 * rng.normal(size=rows)
    classes = CASES[case][2]
    if not classes:
        return X, smooth
    codes = np.digitize(smooth, [0.0, 1.0][: classes - 1])
    codes[: rows // 3] = np.minimum(codes[: rows // 3], 1)
    codes[:3] = [1, 0, 1]
    return X, np.array(["no", "perhaps", "yes"])[codes]


def said(model, X):
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


def test_every_mixture_is_here():
    assert {part for part, *_ in CASES.values()} == set(MIXTURES)


@every_case
def test_any_split(case):
    """One call and any split give the same scores and the same bytes."""
    X, y = stream(case)
    whole = make(case)
    expected = whole.predict_learn(X, y)
    for cuts in ([1, 2, 63, 64, 65, 200], range(7, ROWS, 7)):
        split = make(case)
        for piece in itertools.starmap(slice, itertools.pairwise([0, *cuts, ROWS])):
            scores = split.predict_learn(X[piece], y[piece])
            if scores.shape[1:] == expected.shape[1:]:
                assert np.array_equal(scores, expected[piece])
        assert split.to_bytes() == whole.to_bytes()


@every_case
def test_goes_on_from_a_file(case):
    """A stored, pickled or copied model goes on to the same bytes, wherever it is cut."""
    X, y = stream(case)
    for cut in (1, 40, 150, 331):
        model = make(case).partial_fit(X[:cut], y[:cut])
        others = [store.loads(model.to_bytes()), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
        assert all(np.array_equal(said(other, X), said(model, X)) for other in others)
        expected = model.predict_learn(X[cut:], y[cut:])
        for other in others:
            assert np.array_equal(other.predict_learn(X[cut:], y[cut:]), expected)
            assert other.to_bytes() == model.to_bytes()


@every_case
def test_bad_input_changes_nothing(case):
    X, y = stream(case)
    model = make(case).partial_fit(X[:150], y[:150])
    before = model.to_bytes()
    spoiled = X[150:200].copy()
    spoiled[-1, 1] = np.nan
    for wrong in (spoiled, X[:, :2], np.full((3, 3), 1e200), np.zeros((0, 3))):
        with pytest.raises(ValueError, match=r"The '\w+' parameter of Auto\w+ must be .* Got .* instead\."):
            model.partial_fit(wrong, y[: len(wrong)])
        assert model.to_bytes() == before
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X[:3], y[:3], sample_weight=[1.0, -1.0, 1.0])
    assert model.to_bytes() == before


@every_case
def test_units_of_features_and_targets_do_not_matter(case):
    """Powers of two, so that nothing rounds in another way: scaled rows are the same, and predictions follow y."""
    X, y = stream(case)
    if not CASES[case][1].get("scale", True):
        return
    one = make(case).predict_learn(X, y)
    other = make(case).predict_learn(X * [2.0**10, 2.0**-12, 4.0], y)
    assert np.array_equal(one, other)
    if CASES[case][2] == 0:
        np.testing.assert_allclose(make(case).predict_learn(X, 2.0**20 * y), 2.0**20 * one, rtol=1e-12)


@every_case
def test_fit_starts_anew(case):
    """fit forgets, draws an order, and is one pass over the rows, told all classes."""
    X, y = stream(case)
    once = make(case).fit(X, y)
    twice = make(case).partial_fit(X[::-1], y[::-1]).fit(X, y)
    assert np.array_equal(said(once, X), said(twice, X))
    assert not np.array_equal(said(make(case, random_state=1).fit(X, y), X), said(once, X))
    ordered, told = make(case, shuffle=False).fit(X, y), {"classes": np.unique(y)} if CASES[case][2] else {}
    assert np.array_equal(said(ordered, X), said(make(case).partial_fit(X, y, **told), X))


def test_probabilities():
    """They sum to 1, agree with predict, and mean what they say."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 2))
    y = rng.uniform(size=3000) < 1 / (1 + np.exp(-2 * X[:, 0]))
    scores = AutoClassifier(budget=30).predict_learn(X, y)[1000:]
    chance = 1 / (1 + np.exp(-scores))
    for low, high in ((0.0, 0.3), (0.3, 0.7), (0.7, 1.0)):
        inside = (chance >= low) & (chance < high)
        assert abs(y[1000:][inside].mean() - chance[inside].mean()) < 0.05
    for case in ("two", "three"):
        X, y = stream(case)
        model = make(case).partial_fit(X, y)
        shares = model.predict_proba(X)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
        assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))


def test_deviation_covers():
    """About two thirds of new targets lie within one deviation, also where the noise is not that of any expert."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-2, 2, size=(2500, 1))
    y = 100 * np.sin(2 * X[:, 0]) + 25 * rng.normal(size=2500)
    model = AutoRegressor(budget=40).partial_fit(X[:2000], y[:2000])
    mean, deviation = model.predict(X[2000:], return_std=True)
    assert 0.6 < np.mean(np.abs(y[2000:] - mean) < deviation) < 0.8
    with pytest.raises(ValueError, match="return_std"):
        AutoRegressor(quantile=0.9).partial_fit(X, y).predict(X, return_std=True)


def test_a_quantile_is_one():
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, size=(3000, 1))
    y = X[:, 0] + (1 + np.abs(X[:, 0])) * rng.normal(size=3000)
    for level in (0.1, 0.9):
        found = AutoRegressor(quantile=level, budget=30).predict_learn(X, y)[1000:]
        assert abs(np.mean(y[1000:] < found) - level) < 0.04


@every_case
def test_what_it_shows(case):
    """Weights of the experts, the settings in words, and the best one as a model of its own that goes on."""
    X, y = stream(case)
    model = make(case).partial_fit(X, y)
    assert len(model.experts_) == len(model.weights_)
    assert model.weights_.sum() == pytest.approx(1.0)
    assert (np.diff(model.weights_) <= 0).all()
    assert model.learner_.describe(model.experts_[0]) in model.explain()
    best = model.best()
    assert best.steps[-1][1].noise == model.experts_[0].noise
    assert np.mean(best.predict(X) == model.predict(X)) > 0.8 if is_classifier(model) else True
    best.partial_fit(X, y)


def test_limits():
    """Limits of memory and time take experts first, then points, and a model obeys them."""
    assert fit_limits(256, 6, 10, None, None) == (256, 6)
    for memory in (1e5, 1e6, 1e7):
        points, awake = fit_limits(256, 6, 10, memory, None)
        assert (awake + VISITORS + SLEEPERS) * expert_bytes(points, 10) <= memory
    assert fit_limits(256, 6, 10, None, 20.0) < fit_limits(256, 6, 10, None, 100.0)
    X, y = stream("two")
    model = AutoClassifier(memory=6e4).partial_fit(X, y)
    assert len(model.support_vectors_) < 40
    assert store.loads(model.to_bytes()).to_bytes() == model.to_bytes()
    with pytest.raises(ValueError, match="The 'time' parameter of AutoClassifier"):
        AutoClassifier(time=-1.0).partial_fit(X, y)


@every_case
def test_memory_is_limited_from_the_first_row_on(case):
    """The bytes of all learners, as counted, are never above the limit; young experts start all the same."""
    X, y = stream(case)
    model, young = make(case, memory=MEMORY), 0
    for start in range(0, ROWS, 32):
        model.partial_fit(X[start : start + 32], y[start : start + 32])
        experts = model.learner_._experts
        learners = {id(expert.learner): expert.learner for expert in experts}.values()
        assert sum(expert_bytes(learner.coefs.shape[-1], X.shape[1]) for learner in learners) <= MEMORY
        assert any(not expert.asleep for expert in experts)
        young += any(expert.trial and not expert.asleep for expert in experts)
    assert young > 5


def test_limited_memory_has_room_for_sleepers():
    X = np.random.default_rng(0).normal(size=(700, 3))
    model = AutoClassifier(budget=12, memory=MEMORY).partial_fit(X, X[:, 0] * X[:, 1] > 0)
    experts = model.learner_._experts
    assert any(expert.asleep for expert in experts)
    assert any(expert.trial and not expert.asleep for expert in experts)


def test_follows_a_change():
    """In a world that nobody has seen, a mixture with young experts is right within a few hundred rows. Worlds of
    before, and those with the classes exchanged, sleepers know within tens of rows, as often as they come back."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9400, 2))
    crossed, wedged = X[:, 0] * X[:, 1] > 0, X[:, 0] ** 2 > X[:, 1] ** 2
    y = np.concatenate([crossed[:1100], wedged[1100:3200]])
    changes = range(3200, 9400, 1000)
    for start, world in zip(changes, [~crossed, wedged, crossed, ~wedged, ~crossed, wedged, crossed], strict=True):
        y = np.concatenate([y, world[start : start + 1000]])
    wrong = (AutoClassifier(budget=50).predict_learn(X, y) >= 0) != y
    assert wrong[1000:1100].mean() < 0.1
    assert wrong[1100:1130].mean() > 0.2  # it cannot know at once
    assert wrong[1400:1600].mean() < 0.2
    assert np.mean([wrong[start : start + 5].mean() for start in changes]) > 0.2
    assert max(wrong[start + 40 : start + 140].mean() for start in changes) < 0.15


@pytest.mark.parametrize("case", ["two", "three", "mean", "quantile"])
def test_sleepers(case):
    """A world is remembered once, at most `WORLDS` of them; sleepers learn nothing, and go to a file as they are."""
    X, y = stream(case, 900)
    turned = X[:, [1, 0, 2]]
    known = {"classes": np.unique(y)} if CASES[case][2] else {}
    model, asleep = make(case), []
    for start in range(0, 900, 60):
        rows = X if start // 180 % 2 else turned
        model.partial_fit(rows[start : start + 60], y[start : start + 60], **known)
        sleepers = [expert for expert in model.learner_._experts if expert.asleep and not expert.guess]
        asleep.append({expert.asleep for expert in sleepers})
        assert len(sleepers) <= (2 if case == "two" else 1) * len(asleep[-1])
        assert all(expert.learner.steps <= expert.asleep for expert in sleepers)
        assert store.loads(model.to_bytes()).to_bytes() == model.to_bytes()
    assert 1 <= max(map(len, asleep)) <= roster.WORLDS


@pytest.mark.parametrize("part", MIXTURES, ids=name_of)
def test_parameters_are_checked_when_rows_come(part):
    X, y = stream("two" if part is AutoClassifier else "mean", 20)
    bad = {"budget": [0, 2.5], "kernel": ["gauss", 3], "scale": [1, "yes"], "memory": [0.0, -1], "time": [0.0, "x"],
           "n_jobs": [0, 1.5], "shuffle": ["no"], "random_state": [-1], "quantile": [0.0, 1.0],
           "half_life": [0, "soon"], "class_weight": ["equal", {"no": -1}]}  # fmt: skip
    names = set(part().get_params(deep=False))
    assert names <= set(bad)
    for name in sorted(names):
        for value in bad[name]:
            model = clone(part(**{name: value}))
            with pytest.raises(ValueError, match=r"The '(\w+)' parameter of \w+ must be .* Got .* instead\."):
                model.partial_fit(X, y)
            assert not hasattr(model, "learner_")


@pytest.mark.parametrize("case", ["two", "three", "mean"])
def test_river_is_the_same(case):
    """Rows of dicts through river's face, features that come late included."""
    river = pytest.importorskip("gossamer.river")
    X, y = stream(case, 200)
    face = getattr(river, CASES[case][0].__name__)(budget=12)
    model, guesses = make(case), []
    for x, target in zip(X, y, strict=True):
        row = dict(zip("abc", x, strict=True))
        guesses.append(face.predict_one(row))
        face.learn_one(row, target)
    expected = model.predict_learn(X, y)
    if case == "mean":
        np.testing.assert_allclose(guesses[1:], expected[1:], rtol=0.2, atol=0.5)  # predict_one scales without the row
    assert face.predict_one(dict(zip("abc", X[0], strict=True))) == pytest.approx(model.predict(X[:1])[0])
    face.predict_one({"a": 1.0, "new": 2.0})
    face.learn_one({"a": 1.0, "new": 2.0}, y[0])
    assert face._raw_memory_usage > 10_000


@pytest.mark.parametrize("memory", [None, 50_000])
def test_in_a_bank(memory, tmp_path):
    """A mixture for each key, the same as alone, also where only one fits into memory."""
    X, y = stream("two", 120)
    keys = np.array(["p", "q"])[np.arange(120) % 2]
    bank = ModelBank(AutoClassifier(budget=8), memory=memory, path=None if memory is None else tmp_path / "bank")
    bank.learn(keys[:60], X[:60], y[:60])
    bank.learn(keys[60:], X[60:], y[60:])
    alone = AutoClassifier(budget=8).partial_fit(X[::2], y[::2])
    assert np.array_equal(bank.predict(keys[::2], X[::2]), alone.predict(X[::2]))


def test_forged_states_are_refused():
    """Entries that do not fit each other raise when they are loaded."""
    X, y = stream("two", 150)
    learner = make("two").partial_fit(X, y).learner_
    good = learner._learned()
    for name, value in {
        "weights": good["weights"] * 2, "opinions": -good["opinions"], "mean": good["mean"][:1],
        "trials": good["trials"][:1], "rows": -1, "units": (0.0, 1.0), "learners": good["learners"][:-1],
        "memory_rows": good["memory_rows"][:, :2], "guesses": [True] * len(good["guesses"]),
        "shifts": np.full((len(good["guesses"]), 3), 20.0),
        "settings": [(0.0, 2.0, 1.0, False)] * len(good["settings"]),
    }.items():  # fmt: skip
        fresh = gossamer.mixture.MixedLearner(budget=12)
        with pytest.raises(ValueError, match="must be"):
            fresh._relearn({**good, name: value})


def test_numbers_have_one_score():
    """A score for each class is for classes: a file that asks for it with numbers is refused."""
    with pytest.raises(ValueError, match="The 'many' parameter of MixedLearner must be one of False"):
        gossamer.mixture.MixedLearner("regression", many=True)


def test_learns_on_from_mapped_arrays(tmp_path):
    """joblib can map the arrays of a pickle, read-only: what is loaded so learns on, to the same bytes."""
    X, y = stream("two")
    model = make("two").partial_fit(X[:200], y[:200])
    joblib.dump(model, tmp_path / "model.joblib")
    mapped = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    for one in (model, mapped):
        one.partial_fit(X[200:], y[200:])
    assert mapped.to_bytes() == model.to_bytes()
