"""Sleepers that guess how the world moves: they see rows shifted, share a learner, and wake when they were right."""

import numpy as np
import pytest

from gossamer import AutoClassifier, AutoRegressor, store
from gossamer.kernels import Gaussian
from gossamer.mixture import MixedLearner, roster

#: The rows after which the threshold moves.
STILL = 1200


def moving(rows, seed=0, features=3, noise=0.05):
    """Two classes, parted by a threshold that moves twice; some labels are wrong."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (rows, features))
    threshold = np.array([8.0, 10.5, 7.0])[np.arange(rows) // STILL]
    return X, (X[:, 0] + X[:, 1] <= threshold) ^ (rng.uniform(size=rows) < noise)


def guesses_of(model):
    return [expert for expert in model.learner_._experts if expert.guess]


def test_a_world_that_moves_is_found_sooner(monkeypatch):
    """Fewer errors, of the true labels, in the rows after a move than without guesses, on the mean of seeds."""
    found = []
    for moves in (roster.MOVES, ()):
        monkeypatch.setattr(roster, "MOVES", moves)
        after = []
        for seed in range(6):
            X, y = moving(3 * STILL, seed)
            wrong = (AutoClassifier(budget=40).predict_learn(X, y) >= 0) != moving(3 * STILL, seed, noise=0.0)[1]
            after.append(wrong.reshape(3, STILL)[1:, 20:320].mean())
        found.append(np.mean(after))
    assert found[0] < 0.85 * found[1]


def test_guesses_share_a_learner_that_rests():
    X, y = moving(800)
    model = AutoClassifier(budget=16).partial_fit(X[:512], y[:512])
    guesses = guesses_of(model)
    assert len(guesses) == 2 * len(roster.MOVES)
    shared = guesses[0].learner
    assert all(expert.learner is shared and expert.asleep == 512 for expert in guesses)
    shifts = np.array([expert.shift for expert in guesses])
    way = shifts[0] / roster.MOVES[0]
    expected = [sign * move * way for move in roster.MOVES for sign in (1, -1)]
    np.testing.assert_allclose(shifts, expected, rtol=1e-12)
    assert abs(way[:2].mean()) > 5 * abs(way[2])  # the third feature says nothing
    before = shared.score(np.zeros((1, 3)))
    model.partial_fit(X[512:760], y[512:760])
    assert guesses_of(model)[0].learner is shared
    assert shared.score(np.zeros((1, 3))) == before
    model.partial_fit(X[760:768], y[760:768])  # row 768: others instead
    assert guesses_of(model)[0].learner is not shared


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_split_any_stop(dtype):
    """One call, a split, and files in between give the same scores and the same bytes, also of guesses that woke."""
    X, y = moving(1560)
    X = X.astype(dtype)
    whole = AutoClassifier(budget=40)
    expected = whole.predict_learn(X, y)
    assert any(expert.shift is not None and not expert.guess for expert in whole.learner_._experts)  # one woke
    model, scores = AutoClassifier(budget=40), []
    for start in range(0, 1560, 130):
        scores.append(model.predict_learn(X[start : start + 130], y[start : start + 130]))
        data = model.to_bytes()
        model = store.loads(data)
        assert model.to_bytes() == data
        assert len({id(expert.learner) for expert in guesses_of(model)}) <= 1
    assert np.array_equal(np.concatenate(scores), expected)
    assert model.to_bytes() == whole.to_bytes()
    twin = AutoClassifier(budget=40).partial_fit(X[:600], y[:600])
    twin.learner_.restore(whole.learner_.state())
    assert np.array_equal(twin.decision_function(X), whole.decision_function(X))


def test_files_that_tear_guesses_apart():
    """Guesses of several learners, or rows shifted where none are scaled, are refused."""
    X, y = moving(600)
    learned = AutoClassifier(budget=16).partial_fit(X, y).learner_._learned()
    places = [place for place, guess in enumerate(learned["guesses"]) if guess]
    other = {**learned, "settings": list(learned["settings"])}
    width, forgetting, noise, *rest = other["settings"][places[1]]
    other["settings"][places[1]] = (width, forgetting, 2.0 * noise, *rest)
    taught = {**learned, "learners": list(learned["learners"])}
    taught["learners"][places[1]] = taught["learners"][places[0]]
    for forged in (other, taught):
        with pytest.raises(ValueError, match="The 'guesses' parameter of MixedLearner must be of one learner"):
            MixedLearner(budget=16)._relearn(forged)
    with pytest.raises(ValueError, match="The 'shifts' parameter of MixedLearner"):
        MixedLearner(budget=16, scale=False)._relearn(dict(learned))
    MixedLearner(budget=16)._relearn(dict(learned))


def test_a_shared_learner_is_stored_once():
    """Files grow by one learner, not by one for each guess."""
    X, y = moving(512)
    model = AutoClassifier(budget=64).partial_fit(X, y)
    with_all = len(model.to_bytes())
    largest = max(len(expert.learner.to_bytes()) for expert in guesses_of(model))
    model.learner_._keep([p for p, expert in enumerate(model.learner_._experts) if not expert.guess])
    assert with_all - len(model.to_bytes()) < 2 * largest


@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (AutoRegressor(budget=16), lambda X: X[:, 0] + X[:, 1]),
        (AutoRegressor(budget=16, quantile=0.9), lambda X: X[:, 0] + X[:, 1]),
        (AutoClassifier(budget=16), lambda X: np.digitize(X[:, 0], [3, 6])),
        (AutoClassifier(budget=16, scale=False), lambda X: X[:, 0] > 5),
        (AutoClassifier(budget=16), lambda X: ((X - 5) ** 2).sum(axis=1) > 25),  # grows in no direction
    ],
    ids=["number", "quantile", "many", "unscaled", "round"],
)  # fmt: skip
def test_where_nothing_is_guessed(model, targets):
    X, _ = moving(600)
    model.partial_fit(X, targets(X))
    assert not guesses_of(model)


def test_wide_rows_and_rows_that_are_all_the_same():
    X, y = moving(600, features=60)
    assert not guesses_of(AutoClassifier(budget=8).partial_fit(X, y))
    X, y = np.ones((600, 3)), moving(600)[1]
    model = AutoClassifier(budget=8).partial_fit(X, y)
    assert not guesses_of(model)
    assert np.isfinite(model.decision_function(X)).all()


def test_a_kernel_that_is_given():
    X, y = moving(600)
    model = AutoClassifier(Gaussian(0.2), budget=16).partial_fit(X, y)
    assert guesses_of(model)
    assert store.loads(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_clock():
    X, y = moving(1300)
    model = AutoClassifier(budget=16, half_life="1h")
    model.partial_fit(X, y, time=np.arange(1300.0))
    assert guesses_of(model)
    assert store.loads(model.to_bytes()).to_bytes() == model.to_bytes()


def test_a_third_class():
    """Guesses are about two classes: with a third they go, and those that woke go on."""
    X, y = moving(1300)
    y = y.astype(int)
    model = AutoClassifier(budget=16).partial_fit(X[:1000], y[:1000])
    assert guesses_of(model)
    y[1000:] = np.digitize(X[1000:, 2], [3, 6])
    model.partial_fit(X[1000:], y[1000:])
    assert not guesses_of(model)
    assert store.loads(model.to_bytes()).to_bytes() == model.to_bytes()


def test_the_best_alone_sees_rows_moved():
    """`best` is a pipeline that says what the heaviest expert says, also if that one sees rows moved."""
    X, y = moving(2 * STILL)
    model = AutoClassifier(budget=40)
    for start in range(0, len(X), 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20], classes=[False, True])
        mixed = model.learner_
        heaviest = mixed._experts[int(np.argmax(mixed._weights.weights))]
        if heaviest.shift is not None:
            break
    else:
        pytest.fail("no expert that sees rows moved was ever the heaviest")
    assert model.explain().splitlines()[0].endswith("rows moved")
    rows = mixed._look(X).of(heaviest.setting.view, heaviest.shift)
    np.testing.assert_allclose(model.best().decision_function(X), heaviest.learner.score(rows), rtol=1e-9, atol=1e-9)
