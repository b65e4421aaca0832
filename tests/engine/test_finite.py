"""Laws of the spaces of finite dimension: what their features are, and that every rule learns in them as it should."""

import itertools

import numpy as np
import pytest
from parts import (
    agree,
    assert_same,
    classes,
    cut,
    examples,
    facts,
    fitted,
    label,
    label_kernel,
    learn_rows,
    learn_split,
    settled,
    size_of,
    stream,
    user_kernel,
)
from sklearn.kernel_approximation import Nystroem

from gossamer import (
    AdatronClassifier,
    AdditiveRegressor,
    Learner,
    NORMAClassifier,
    NORMADetector,
    PARegressor,
    SILKClassifier,
    from_bytes,
)
from gossamer.budgets import Fourier, Nystrom
from gossamer.budgets.features import waves
from gossamer.kernels import Custom, Gaussian, Laplace, Linear, Matern, Polynomial
from gossamer.losses import Hinge, Multiclass, Squared
from gossamer.rules import ROMMA, SVMD, Adatron, Gradient, Implicit

KERNELS = [settled(kernel) for kernel in examples("kernel")]
SPECTRAL = [kernel for kernel in KERNELS if "spectrum" in vars(type(kernel))]
BACKENDS = pytest.mark.parametrize("backend", ["auto", "numpy"])
SPACES = pytest.mark.parametrize("budget", [Nystrom(70), Fourier(70)], ids=label)


def rules(loss, budget, one_each=False):
    return [rule for rule in examples("rule", one_each) if agree(loss, rule, budget)]


def sampled(learner, X):
    """Fourier features from what a learner shows: a row for each row of X."""
    frequencies = learner.points[: len(learner.points) // 2]
    return np.hstack([np.cos(X @ frequencies.T), np.sin(X @ frequencies.T)]) / np.sqrt(len(frequencies))


# ------------------------------------------------------------------------------------------------------- learning


@pytest.mark.parametrize("loss", examples("loss", one_each=True), ids=label)
def test_learns_as_a_linear_learner_on_its_features(loss):
    """f = <w, z>: the same scores, norm and level as a linear kernel on features made by others, for every rule."""
    for i, rule in enumerate(rules(loss, Fourier(2))):
        X, y = stream(loss, 40, seed=i)
        for budget in (Nystrom(9, tolerance=0.0), Fourier(8, seed=i)):
            learner = Learner(Gaussian(0.4), loss, rule, budget, average=True)
            scores = learner.learn(X, y)
            if isinstance(budget, Nystrom):
                points = learner.points
                Z = Nystroem(gamma=0.4, n_components=len(points)).fit(points).transform(X) if len(points) else 0 * X
            else:
                Z = sampled(learner, X)
            other = Learner(Linear(), loss, rule, average=True, backend="native")
            slack = 1e-8 * size_of(scores)
            np.testing.assert_allclose(other.learn(Z, y), scores, rtol=1e-8, atol=slack, err_msg=str(learner))
            np.testing.assert_allclose(other.score(Z), learner.score(X), rtol=1e-8, atol=slack)
            np.testing.assert_allclose(other.score(Z, True), learner.score(X, True), rtol=1e-8, atol=slack)
            assert other.norm == pytest.approx(learner.norm, rel=1e-7, abs=1e-7)
            assert (other.level, other.offset) == pytest.approx((learner.level, learner.offset), rel=1e-8, abs=slack)


@pytest.mark.parametrize("loss", examples("loss"), ids=label)
def test_a_dictionary_with_room_is_no_budget(loss):
    """With room for every row and tolerance 0 Nystrom learns as without a budget, also from rows that come again."""
    for i, rule in enumerate(rules(loss, Nystrom(1), one_each=True)):
        X, y = stream(loss, 40, seed=i)
        X[20:25] = X[10:15]
        kernel = (Gaussian(0.5), Custom(user_kernel), Laplace(0.3), Polynomial(2))[i % 4]
        free, learner = Learner(kernel, loss, rule), Learner(kernel, loss, rule, Nystrom(80, 0.0))
        scores = free.learn(X, y)
        slack = 1e-9 * size_of(scores)
        np.testing.assert_allclose(learner.learn(X, y), scores, rtol=1e-9, atol=slack, err_msg=str(learner))
        np.testing.assert_allclose(learner.score(X + 0.1), free.score(X + 0.1), rtol=1e-9, atol=slack)
        assert learner.norm == pytest.approx(free.norm, rel=1e-7, abs=1e-7)
        counts = ("steps", "updates", "mistakes")
        assert [getattr(learner, name) for name in counts] == [getattr(free, name) for name in counts]


@BACKENDS
def test_everything_may_be_forgotten(backend):
    """A step that keeps nothing of f, as ROMMA has one where its constraint is that of one row, keeps the space."""
    X = np.repeat(np.random.default_rng(1).normal(size=(10, 2)), 2, axis=0)
    y = np.tile([1.0, -1.0], 10)  # each row with one label, then the other
    for budget, average in itertools.product((Nystrom(30, 0.0), Fourier(6)), (True, "sparse")):
        learner = Learner(Gaussian(0.5), Hinge(), ROMMA(), budget, average=average, backend=backend)
        scores, total = [], np.zeros(20)
        for t in range(20):
            total += learner.score(X)
            scores.append(learner.learn_one(X[t], y[t]))
        np.testing.assert_allclose(learner.score(X, average=True), total / 20, rtol=1e-9, atol=1e-12)
        if isinstance(budget, Nystrom):
            np.testing.assert_allclose(scores, Learner(Gaussian(0.5), "hinge", ROMMA()).learn(X, y), atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@SPACES
def test_long_stream(budget, dtype):
    """The law of batches to the bit, while a dictionary grows through several strips and long after, with classes that
    come; and the compiled code is the NumPy one."""
    for loss, rule in ((Multiclass(), Implicit(C=0.5, reg=1e-3)), (Squared(), Gradient(0.3, 1e-3)), (Hinge(), SVMD())):
        X, y = stream(loss, 900, seed=5, features=4, dtype=dtype)
        makers = [(Gaussian(0.4), "auto")] * 3 + [(Gaussian(0.4), "numpy")]
        one, other, third, slow = (Learner(k, loss, rule, budget, average=True, backend=b) for k, b in makers)
        scores = one.learn(X, y)
        assert one.backend == "native"
        assert np.array_equal(scores, learn_rows(other, X, y))
        assert np.array_equal(scores, learn_split(third, X, y, cuts=range(0, 900, 77)))
        for same in (other, third):
            assert_same(one.state(), same.state())
            assert_same(facts(one), facts(same))
        assert np.array_equal(one.score(X), np.array([one.score_one(x) for x in X]))
        rtol = 1e-9 if dtype == np.float64 else 2e-3
        np.testing.assert_allclose(slow.learn(X, y), scores, rtol=rtol, atol=rtol * size_of(scores))
        assert np.array_equal(slow.points, one.points)


# ------------------------------------------------------------------------------------------------------- the spaces


@pytest.mark.parametrize("number", range(len(KERNELS)), ids=lambda number: label(KERNELS[number]))
def test_coefs_are_those_of_the_points(number):
    """f(x) = sum_i coefs_i k(points_i, x) for Nystrom, with every kernel and several outputs; ||f|| is that of f."""
    kernel = KERNELS[number]
    for loss in (Squared(), Multiclass(label_kernel=((2.0, 1.0), (1.0, 2.0)), classes=2)):
        X, y = stream(loss, 60, seed=number)
        X, y = fitted(kernel, X), np.minimum(y, 1)
        for backend in ("auto", "numpy"):
            learner = Learner(kernel, loss, Implicit(C=0.2, reg=0.01), Nystrom(7, 0.02), backend=backend)
            learner.learn(X, y)
            coefs = np.atleast_2d(learner.coefs)
            joint = label_kernel(loss, len(coefs)) @ coefs
            expected = (kernel(X, learner.points) @ joint.T).reshape(learner.score(X).shape)
            np.testing.assert_allclose(learner.score(X), expected, rtol=1e-7, atol=1e-9 * size_of(expected))
            gram = kernel(learner.points, learner.points)
            assert learner.norm**2 == pytest.approx(float(np.sum((coefs @ gram) * joint)), rel=1e-7, abs=1e-9)
            assert np.array_equal(learner.points, X[learner.births - 1])


@BACKENDS
@pytest.mark.parametrize("tolerance", [0.0, 0.05, 0.5])
def test_who_joins(tolerance, backend):
    """The rows outside the span of those before them by more than the tolerance, and no others; copies never."""
    X, y = stream(Squared(), 80, seed=2, features=2)
    X[40:60] = X[20:40] + 1e-9
    learner = Learner(Gaussian(0.3), Squared(), Implicit(), Nystrom(25, tolerance), backend=backend)
    learner.learn(X, y)
    gram, chosen = Gaussian(0.3)(X, X), []
    for t in range(80):
        shares = np.linalg.lstsq(gram[np.ix_(chosen, chosen)], gram[chosen, t], rcond=None)[0] if chosen else []
        inside = gram[t, chosen] @ shares if chosen else 0.0
        if 1 - inside > max(tolerance, 1e-9) and len(chosen) < 25:
            chosen.append(t)
    found = (learner.births - 1).tolist()
    assert found == chosen or tolerance == 0.0  # what is rounding and what is not, is for the learner to say
    assert not set(found) & set(range(40, 60))
    assert len(found) <= 25


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-6, 1e-3, 1.0, 1e6])
def test_any_width_stays_right(gamma, dtype):
    """Near-copies and any width: the span never breaks down, and what it learns is what the kernel says."""
    X, y = stream(Hinge(), 2000, seed=3, dtype=dtype)
    X = X[np.random.default_rng(0).integers(0, 300, 2000)] + (1e-4 * X).astype(dtype)
    learner = Learner(Gaussian(gamma), Hinge(), Implicit(C=1.0, reg=1e-3), Nystrom(120, 0.0))
    scores = learner.learn(X, y)
    assert np.isfinite(scores).all()
    free = Learner(Gaussian(gamma), Hinge(), Implicit(C=1.0, reg=1e-3)).learn(X, y)
    if gamma < 1e-2:  # then 120 points are enough for all
        np.testing.assert_allclose(scores, free, atol=1e-5 if dtype == np.float64 else 0.1)


@pytest.mark.parametrize("kernel", SPECTRAL, ids=label)
def test_spectrum(kernel):
    """<z(x), z(s)> is k(x, s) up to 1 / sqrt(size), in the mean exactly, and k(x, x) = 1."""
    X = np.random.default_rng(0).normal(size=(40, 3))
    errors = {}
    for size in (100, 1600):
        found = []
        for seed in range(10):
            z = waves(Fourier(size, seed).frequencies(kernel, X), X)
            np.testing.assert_allclose((z * z).sum(axis=0), 1.0, rtol=1e-12)
            found.append(z.T @ z - kernel(X, X))
        errors[size] = np.sqrt(np.mean(np.square(found)))
        assert errors[size] < 1 / np.sqrt(size)
        assert np.abs(np.mean(found, axis=0)).max() < 6 / np.sqrt(10 * size)
    assert 2.5 < errors[100] / errors[1600] < 6.5


def test_spectra_are_discovered():
    """Kernels with a spectrum are at least those that the error names; a subclass is taken at its word."""
    assert {type(kernel) for kernel in SPECTRAL} >= {Gaussian, Laplace, Matern}
    for kernel in classes("kernel"):
        mine = type("Mine", (kernel,), {})
        assert "spectrum" not in vars(mine)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_phases(dtype):
    """Cosines and sines of the core are NumPy's as far as a phase means something, and never more than 1 beyond."""
    X = np.zeros((400, 2), dtype=dtype)
    X[:, 0] = np.geomspace(1e-3, 1e4, 400)
    X[::2] *= -1
    y = np.sign(np.sin(np.arange(400.0))) + 0.0
    fast, slow = (Learner(Gaussian(0.5), Squared(), Implicit(), Fourier(30), backend=b) for b in ("native", "numpy"))
    scores = fast.learn(X, y)
    # the phase itself has a rounding of eps * 1e4
    np.testing.assert_allclose(scores, slow.learn(X, y), atol=1e-9 if dtype == np.float64 else 5e-2)
    far = np.array([[1e30, -1e30], [1e38, 1e38]], dtype=dtype)
    assert (np.abs(fast.score(far)) <= np.linalg.norm(fast.coefs) * np.sqrt(15) + 1e-6).all()
    assert np.isfinite(fast.learn(far, [1.0, -1.0])).all()


# --------------------------------------------------------------------------------------------------- state and errors


@pytest.mark.parametrize("kernel", [Gaussian(0.4), Custom(user_kernel), "objects"], ids=label)
@SPACES
def test_goes_on_exactly(budget, kernel):
    """Stored while the dictionary grows and when it is full: the same bytes ever after, also over objects."""
    if isinstance(budget, Fourier) and kernel != Gaussian(0.4):
        return
    X, y = stream(Multiclass(), 400, seed=7, features=6)
    if kernel == "objects":
        kernel = Custom(lambda A, B: np.array([[1 + (a[0] == b[0]) + (a == b) for b in B] for a in A]), objects=True)
        X = [f"{int(9 * abs(x))}{int(4 * abs(z))}" for x, z in X[:, :2]]
    learner = Learner(kernel, Multiclass(), Implicit(C=0.5, reg=1e-3), budget, average=True)
    for part in (slice(0, 50), slice(50, 300), slice(300, 400)):
        copy = Learner(kernel, Multiclass(), Implicit(C=0.5, reg=1e-3), budget, average=True)
        copy.restore(learner.state())
        others = [copy] if callable(getattr(kernel, "function", None)) else [copy, from_bytes(learner.to_bytes())]
        scores = learner.learn(X[part], cut(y, part))
        for other in others:
            assert np.array_equal(other.learn(X[part], cut(y, part)), scores)
            assert_same(other.state(), learner.state())
            assert np.array_equal(other.score(X, average=True), learner.score(X, average=True))


@SPACES
def test_from_one_machine_to_another(budget):
    """The state of compiled code goes on in NumPy, and back."""
    X, y = stream(Hinge(), 300, seed=8)
    learner = Learner(Gaussian(0.4), Hinge(), Implicit(), budget)
    learner.learn(X[:150], y[:150])
    slow = Learner(Gaussian(0.4), Hinge(), Implicit(), budget, backend="numpy")
    slow.restore(learner.state())
    np.testing.assert_allclose(slow.learn(X[150:], y[150:]), learner.learn(X[150:], y[150:]), rtol=1e-8, atol=1e-8)
    learner.restore(slow.state())
    np.testing.assert_allclose(slow.score(X), learner.score(X), rtol=1e-8, atol=1e-8)


@BACKENDS
@SPACES
def test_a_state_that_is_none(budget, backend):
    """Points that are not independent, too many or too few, are refused, and the learner stays as it was."""
    X, y = stream(Hinge(), 100, seed=9)
    learner = Learner(Gaussian(0.4), Hinge(), Implicit(), budget, backend=backend)
    learner.learn(X, y)
    state, before = learner.state(), facts(learner)
    m = len(state.points)
    columns = ("raw", "summed", "kappas", "entered")
    longer = {name: np.concatenate([getattr(state, name)] * 2, axis=-1) for name in columns}
    longer |= {name: np.concatenate([getattr(state, name)] * 2) for name in ("births", "ids", "points")}
    bad = [{**longer, "gram": None}]
    if isinstance(budget, Nystrom):
        bad.append({"points": np.repeat(state.points[:1], m, axis=0), "gram": None})
        bad += [{"gram": np.ones((m, m))}] * (backend == "numpy")
    for entries in bad:
        with pytest.raises(ValueError, match=r"points|gram"):
            learner.restore(state.replace(**entries))
        assert_same(facts(learner), before)


@BACKENDS
@SPACES
def test_bad_rows_change_nothing(budget, backend):
    """NaN and infinity are refused, also in the last row."""
    X, y = stream(Hinge(), 100, seed=10)
    learner = Learner(Gaussian(0.4), Hinge(), Implicit(), budget, backend=backend)
    learner.learn(X, y)
    before = learner.state()
    for wrong in (np.nan, np.inf):
        X[-1, 1] = wrong
        with pytest.raises(ValueError, match="X"):
            learner.learn(X, y)
        with pytest.raises(ValueError, match="X"):
            learner.learn_one(X[-1], 1.0)
        assert_same(learner.state(), before)


def test_a_kernel_that_fails():
    """Somebody's kernel raises in the middle of a batch: as if nothing had been learned."""
    failing = []

    def kernel(A, B):
        if failing and (failing[0] == B).all(axis=1).any():
            raise ZeroDivisionError
        return Gaussian(0.4)(A, B)

    X, y = stream(Hinge(), 200, seed=11)
    learner, other = (Learner(k, Hinge(), Implicit(), Nystrom(50)) for k in (kernel, Gaussian(0.4)))
    learner.learn(X[:40], y[:40])
    failing.append(X[150])
    with pytest.raises(ZeroDivisionError):
        learner.learn(X, y)
    failing.clear()
    other.learn(X[:40], y[:40])
    np.testing.assert_allclose(learner.learn(X[40:], y[40:]), other.learn(X[40:], y[40:]), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Nystrom(0), "The 'size' parameter of Nystrom must be"),
        (lambda: Nystrom(5, tolerance=1.0), "The 'tolerance' parameter of Nystrom must be"),
        (lambda: Fourier(5), "The 'size' parameter of Fourier must be even"),
        (lambda: Fourier(4, seed=-1), "The 'seed' parameter of Fourier must be"),
        (lambda: Learner(Linear(), Hinge(), Implicit(), Fourier(4)), "'kernel' .* must be Gaussian, Laplace or Matern"),
        (lambda: Learner(Gaussian(), Hinge(), Adatron(), Nystrom(4)), "The 'rule' parameter of Learner must be"),
        (lambda: Learner(Linear(), Hinge(), Implicit(), Nystrom(4), backend="trees"), "The 'budget' parameter"),
        (lambda: AdatronClassifier(Gaussian(1.0), budget=Fourier(4)).fit(np.eye(2), [0, 1]), "The 'rule' parameter"),
        (lambda: AdditiveRegressor(budget=Nystrom(4)).fit(np.eye(2), [0, 1]), "The 'budget' parameter"),
    ],
)
def test_errors(make, match):
    with pytest.raises(ValueError, match=match):
        make()


def test_insists():
    """backend="native" raises where the kernel is in Python."""
    X, y = stream(Hinge(), 5, seed=1)
    with pytest.raises(ValueError, match="'backend' parameter of Learner must be 'auto' or 'numpy'"):
        Learner(user_kernel, Hinge(), Implicit(), Nystrom(4), backend="native").learn(X, y)
    assert Learner(Gaussian(0.4), Hinge(), Implicit(), Fourier(4), backend="native").learn(X, y).shape == (5,)


# ------------------------------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize("budget", [Nystrom(20), Fourier(40)], ids=label)
def test_estimators(budget):
    """``budget=`` of an estimator; its support vectors and dual coefficients are those of the learner."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    labels = np.array(["a", "b", "c"])[(X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5)]
    for model, y, wrong in (
        (SILKClassifier(Gaussian(1.0), C=1.0, budget=budget), labels, 0.15),
        (NORMAClassifier(Gaussian(1.0), rate=0.5, reg=1e-4, budget=budget), X[:, 0] * X[:, 1] > 0, 0.15),
        (PARegressor(Gaussian(1.0), budget=budget), np.sin(X[:, 0]), None),
        (NORMADetector(Gaussian(1.0), budget=budget), None, None),
    ):
        model.fit(X, y) if y is not None else model.fit(X)
        assert len(model.support_vectors_) == model.dual_coef_.shape[-1] <= budget.size
        if wrong is not None:
            assert (model.predict(X) != y).mean() < wrong
        if isinstance(budget, Nystrom) and isinstance(model, PARegressor):
            expected = Gaussian(1.0)(X, model.support_vectors_) @ np.ravel(model.dual_coef_) + model.intercept_
            np.testing.assert_allclose(model.predict(X), expected, rtol=1e-8, atol=1e-8)
