"""The estimators of second-order steps: probabilities and deviations that know where nothing was learned."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from gossamer import NewtonClassifier, NewtonRegressor, OnlineScaler, SILKClassifier, pipeline, store
from gossamer.bank import ModelBank
from gossamer.budgets import Fourier, Nystrom, Oldest
from gossamer.evaluate import Prequential
from gossamer.kernels import Gaussian, Linear

KERNEL = Gaussian(0.5)
LOSSES = ["squared_hinge", "logistic", "hinge"]


def rows(count=300, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, smooth, np.digitize(smooth, np.linspace(-1, 1, classes + 1)[1:-1])


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("budget", [None, 25, Oldest(25), Nystrom(25), Fourier(26)])
def test_probabilities(loss, classes, budget):
    """They sum to 1, agree with the prediction, and say the same everywhere far away."""
    X, _, y = rows(classes=classes)
    model = NewtonClassifier(KERNEL, loss=loss, budget=budget).fit(X, y)
    found = model.predict_proba(X)
    assert ((found >= 0) & (found <= 1)).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    assert np.array_equal(model.classes_[found.argmax(axis=1)], model.predict(X))
    assert model.score(X, y) > 0.6
    if not isinstance(budget, Fourier):  # whose functions do not end
        far = model.predict_proba(X + 100)
        np.testing.assert_allclose(far, np.broadcast_to(far[0], far.shape))
        np.testing.assert_allclose(model.variance(X + 100), 1.0)
    assert np.array_equal(model.predict_proba(sparse.csr_matrix(X)), found)


@pytest.mark.parametrize("loss", LOSSES)
def test_probabilities_are_those_of_the_class(loss):
    """In the mean, and not worse than those of a first-order model."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1500, 2))
    y = rng.random(1500) < 1 / (1 + np.exp(-3 * np.sin(2 * X[:, 0])))
    model = NewtonClassifier(KERNEL, loss=loss, noise=1.0).fit(X[:1000], y[:1000])
    right = model.predict_proba(X[1000:])[np.arange(500), y[1000:].astype(int)]
    first = SILKClassifier(KERNEL, loss="logistic", C=1.0, budget=256).fit(X[:1000], y[:1000])
    plain = first.predict_proba(X[1000:])[np.arange(500), y[1000:].astype(int)]
    assert -np.log(right).mean() < min(np.log(2), -np.log(plain).mean() + 0.02)


@pytest.mark.parametrize(("factor", "shift"), [(1e-6, 0.0), (1.0, 1e4), (1e5, -3e7), (-2.0, 1.0)])
@pytest.mark.parametrize("budget", [None, 20])
def test_units_of_the_targets(factor, shift, budget):
    """y -> a y + b: predictions do the same, deviations are multiplied by |a|, and variances stay."""
    X, smooth, _ = rows()
    new = rows(50, seed=1)[0]
    one = NewtonRegressor(KERNEL, budget=budget).fit(X, smooth)
    other = NewtonRegressor(KERNEL, budget=budget).fit(X, factor * smooth + shift)
    mean, deviation = one.predict(new, return_std=True)
    moved, spread = other.predict(new, return_std=True)
    size = abs(factor) * np.abs(mean).max() + 1e-6 * abs(shift)
    np.testing.assert_allclose(moved, factor * mean + shift, rtol=1e-5, atol=1e-5 * size)
    np.testing.assert_allclose(spread, abs(factor) * deviation, rtol=1e-5)
    np.testing.assert_allclose(other.variance(new), one.variance(new), rtol=1e-6, atol=1e-8)


def test_deviations():
    """Those of a target with noise: most residuals are within two, far away more; only True and False are taken."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, size=(2000, 1))
    y = 7 + 3 * np.sin(2 * X[:, 0]) + 0.6 * rng.normal(size=2000)
    model = NewtonRegressor(Gaussian(1.0), noise=0.6**2 / y.var()).fit(X[:1500], y[:1500])
    mean, deviation = model.predict(X[1500:], return_std=True)
    assert 0.92 < (np.abs(y[1500:] - mean) < 2 * deviation).mean() < 0.98
    np.testing.assert_allclose(deviation, 0.6, rtol=0.1)
    far = model.predict([[50.0]], return_std=True)
    np.testing.assert_allclose(far, [[y[:1500].mean()], [np.sqrt(1 + model.noise) * y[:1500].std()]], rtol=0.02)
    with pytest.raises(ValueError, match="'return_std' parameter of NewtonRegressor must be one of False, True"):
        model.predict(X, return_std="yes")


@pytest.mark.parametrize("model", [
    NewtonClassifier(KERNEL, budget=12), NewtonClassifier(KERNEL, budget=None, forgetting=0.99),
    NewtonClassifier(KERNEL, loss="logistic", budget=Oldest(9)), pipeline(OnlineScaler(), NewtonClassifier(budget=12)),
    NewtonRegressor(KERNEL, budget=12), NewtonRegressor(KERNEL, loss="huber", budget=12, scale_target=False),
])  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("classes", [2, 4])
def test_banks(model, dtype, classes):
    """In compiled code, with the probabilities of the estimators, to the bit; models come out and go in."""
    X, smooth, labels = rows(400, classes=classes)
    X, keys = X.astype(dtype), np.random.default_rng(3).integers(0, 3, size=400)
    y = smooth if isinstance(model, NewtonRegressor) else np.array(list("dacb"))[labels]
    bank = ModelBank(model)
    for part in (slice(0, 150), slice(150, 400)):
        bank.learn(keys[part], X[part], y[part])
    assert bank.backend == "native"
    again = ModelBank(model)
    for key in range(3):
        alone = clone(model)
        for part in (slice(0, 150), slice(150, 400)):
            alone.partial_fit(X[part][keys[part] == key], y[part][keys[part] == key])
        assert np.array_equal(bank.predict([key] * 400, X), alone.predict(X))
        if not isinstance(model, NewtonRegressor):
            found = bank.predict_proba([key] * 400, X)
            assert np.array_equal(found, alone.predict_proba(X))
        again.put(key, bank.dump(key))
        again.put(key + 3, store.dumps(alone))
        assert again.dump(key) == again.dump(key + 3)
        if not hasattr(model, "steps"):
            assert np.array_equal(bank.model(key).variance(X), alone.variance(X))
    bank.learn(keys, X, y)
    again.learn(keys, X, y)
    assert np.array_equal(again.score(keys, X), bank.score(keys, X))


@pytest.mark.parametrize("loss", LOSSES)
def test_river(loss):
    """Probabilities of single rows and of frames are the estimator's."""
    pytest.importorskip("river")
    from gossamer import river

    for classes in (2, 3):
        X, _, y = rows(120, classes=classes)
        y = np.array(["x", "y", "z"])[y]
        model = river.NewtonClassifier(KERNEL, loss=loss, budget=20)
        plain = NewtonClassifier(KERNEL, loss=loss, budget=20).partial_fit(X, y)
        table = [dict(zip("abc", x, strict=True)) for x in X.tolist()]
        for x, label in zip(table, y.tolist(), strict=True):
            model.learn_one(x, label)
        for x, wanted in zip(table[:40], plain.predict_proba(X[:40]), strict=True):
            found = model.predict_proba_one(x)
            np.testing.assert_allclose([found[label] for label in plain.classes_], wanted, rtol=1e-9, atol=1e-12)
        far = model.predict_proba_one({"a": 99.0, "b": 99.0, "c": 99.0})
        assert abs(sum(far.values()) - 1) < 1e-12
        assert abs(sum(model.predict_proba_one({"a": 0.1, "new": 5.0}).values()) - 1) < 1e-12


def test_log_loss():
    """Measured before each row is learned, with the probabilities that `predict_proba` gives then."""
    X, _, y = rows(80, classes=3)
    run = Prequential(NewtonClassifier(KERNEL, budget=15), metrics=["log_loss", "error"], every=80)
    run.update(X, y)
    model, losses, errors = NewtonClassifier(KERNEL, budget=15), [], []
    for t in range(80):
        known = model.classes_.tolist() if t else []
        if y[t] in known:
            losses.append(-np.log(model.predict_proba(X[t : t + 1])[0, known.index(y[t])]))
        errors.append(not t or model.predict(X[t : t + 1])[0] != y[t])
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    trace = run.finish()
    assert trace.total("log_loss")[-1] == pytest.approx(np.mean(losses))
    assert trace.total("error")[-1] == pytest.approx(np.mean(errors))
    assert Prequential(NewtonClassifier(KERNEL)).tells


def test_a_third_class_comes():
    """The metric goes on when a third class comes: it is as certain as it was."""
    X, _, y = rows(200, classes=3)
    early = y[:100].copy()
    early[early == 2] = 1
    model = NewtonClassifier(KERNEL, budget=None).partial_fit(X[:100], early)
    before = model.variance(X)
    model.partial_fit(X[100:101], [2])
    assert (model.variance(X) <= before + 1e-9).all()
    model.partial_fit(X[100:], y[100:])
    assert set(model.predict(X)) == {0, 1, 2}


def test_linear_kernels():
    """A kernel whose k(x, x) grows without bound: far away, nothing is certain."""
    X, smooth, y = rows()
    model = NewtonClassifier(Linear(), budget=None, noise=1.0).fit(X, y)
    assert model.score(X, y) > 0.7
    regressor = NewtonRegressor(Linear(), budget=None).fit(X, smooth)
    near, far = regressor.predict(X[:1], return_std=True)[1], regressor.predict(1000 * X[:1], return_std=True)[1]
    assert far > near
