"""The mixture of models that a user brings: batches, state, bad input, and that it follows the best."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor

import gossamer
from gossamer import Mixture, NewtonRegressor, OnlineScaler, SILKClassifier, SILKRegressor, pipeline, store
from gossamer.kernels import Gaussian, Linear

CLASSES = [
    SILKClassifier(Gaussian(1.0), budget=20),
    pipeline(OnlineScaler(), gossamer.NewtonClassifier(Linear(), budget=9)),
]
NUMBERS = [SILKRegressor(Gaussian(1.0), budget=20), NewtonRegressor(Linear(), budget=9)]


def stream(kind, rows=200):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 2))
    smooth = X[:, 0] - X[:, 1] + 0.2 * rng.normal(size=rows)
    if kind is NUMBERS:
        return X, 50 + 9 * smooth
    codes = np.digitize(smooth, [0.0, 1.0])
    codes[:60] = np.minimum(codes[:60], 1)
    codes[:2] = [1, 0]
    return X, np.array(["no", "yes", "very"])[codes]


@pytest.mark.parametrize("kind", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_any_split_and_any_file(kind):
    """Any split gives the same predictions; a stored mixture goes on to the same bytes; fit is one pass."""
    X, y = stream(kind)
    whole, split = Mixture(kind), Mixture(kind)
    expected = whole.predict_learn(X, y)
    for piece in (slice(0, 1), slice(1, 2), slice(2, 90), slice(90, 91), slice(91, 200)):
        got = split.predict_learn(X[piece], y[piece])
        if got.shape[1:] == expected.shape[1:]:
            np.testing.assert_array_equal(got, expected[piece])
    assert split.to_bytes() == whole.to_bytes()
    half = Mixture(kind).partial_fit(X[:100], y[:100])
    other = store.loads(half.to_bytes())
    np.testing.assert_array_equal(half.predict_learn(X[100:], y[100:]), other.predict_learn(X[100:], y[100:]))
    assert half.to_bytes() == other.to_bytes()
    np.testing.assert_array_equal(clone(whole).fit(X, y).predict(X), whole.predict(X))
    assert is_classifier(whole) == (kind is CLASSES)
    assert is_regressor(whole) == (kind is NUMBERS)


@pytest.mark.parametrize("kind", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_bad_input_changes_nothing(kind):
    X, y = stream(kind)
    model = Mixture(kind).partial_fit(X, y)
    before = model.to_bytes()
    for wrong in (np.full((2, 2), np.nan), np.zeros((2, 3))):
        with pytest.raises(ValueError, match="must be"):
            model.partial_fit(wrong, y[:2])
        assert model.to_bytes() == before
    with pytest.raises(ValueError, match="sample_weight"):
        model.partial_fit(X[:2], y[:2], sample_weight=[-1.0, 1.0])
    if kind is CLASSES:
        two = Mixture([gossamer.PAClassifier(), SILKClassifier()]).partial_fit(X[:50], y[:50])
        before = two.to_bytes()
        with pytest.raises(ValueError, match="of two classes"):
            two.partial_fit(X, y)  # PA learns two classes only
        assert two.to_bytes() == before
    for wrong in ([], [SILKClassifier(), SILKRegressor()], [3], "silk"):
        with pytest.raises(ValueError, match="The 'experts' parameter of Mixture must be"):
            Mixture(wrong).partial_fit(X, y)
    with pytest.raises(ValueError, match="The 'share' parameter of Mixture must be"):
        Mixture(kind, share=0.0).partial_fit(X, y)


def test_follows_the_best():
    """The weight goes to the model that is right, and back within some rows of a change."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1200, 2))
    straight, bent = X[:, 0] > 0, X[:, 0] * X[:, 1] > 0
    y = np.where(np.arange(1200) < 600, straight, bent)
    model = Mixture([gossamer.NewtonClassifier(Linear()), gossamer.NewtonClassifier(Gaussian(1.0), forgetting=0.98)])
    model.partial_fit(X[:600], y[:600])
    assert model.weights_[0] > 0.9
    shares = model.predict_learn(X[600:], y[600:])
    assert model.weights_[1] > 0.9
    assert "NewtonClassifier" in model.explain()
    assert model.best() is model.models_[1]
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.mean((shares[200:, 1] > 0.5) != y[800:]) < 0.15
    assert model.score(X[800:], y[800:]) > 0.85
    assert np.array_equal(model.decision_function(X) > 0, model.predict(X))


def test_numbers_of_any_units():
    """Predictions of regressors go with the units of the targets."""
    X, y = stream(NUMBERS)
    one, other = Mixture(NUMBERS).predict_learn(X, y), Mixture(NUMBERS).predict_learn(X, 1024 * y)
    np.testing.assert_allclose(other, 1024 * one, rtol=1e-9)
