"""One algorithm as another: the equivalences and limits of ALGORITHMS, and solutions found by other means."""

import math

import naive
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.svm import SVC
from test_algorithms import ADAPTIVE, BACKENDS, FIXED, KERNELS, near, stream, target
from test_multiclass import COST, labelled

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Gaussian, Linear, Polynomial
from gossamer.losses import EpsilonInsensitive, Hinge, Logistic, Multiclass, Novelty, Softmax, Squared, SquaredHinge
from gossamer.rules import ALMA, ROMMA, SVMD, Adatron, Gradient, Implicit, PassiveAggressive, Perceptron, Projection

KINDS = ("stationary", "drifting", "repeated")
BUDGETS = (None, Oldest(9), Smallest(9))
QUADRATIC = Polynomial(2, 0.5)


def data(loss, kind, seed=0, rows=60):
    """Rows and targets for a loss."""
    if loss.target == "label":
        return labelled(kind, seed, rows)
    X, smooth = stream(kind, seed, rows)
    return X, target(loss, smooth)


def same(one, other, kind="stationary", exact=False, kernel=QUADRATIC, backend="auto"):
    """(loss, rule) twice: the same scores, coefficients and births, with every budget; ``exact``: to the bit."""
    X, y = data(one[0], kind)
    for budget in BUDGETS:
        learners = [Learner(kernel, *parts, budget, backend=backend) for parts in (one, other)]
        scores = [learner.learn(X, y) for learner in learners]
        if exact:
            assert np.array_equal(*scores)
            assert np.array_equal(learners[0].coefs, learners[1].coefs)
        near(scores[0], scores[1], (one, other))
        near(learners[0].coefs, learners[1].coefs, (one, other))
        assert np.array_equal(learners[0].births, learners[1].births)


# ------------------------------------------------------------------------------------------------------ special cases


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", [Hinge(0.0), Multiclass(margin=0.0)], ids=["two", "many"])
def test_norma_is_the_perceptron(loss, kind, backend):
    """lambda = rho = 0 and rate 1 is the perceptron, to the bit; another rate scales all scores."""
    same((loss, Gradient(1.0, 0.0)), (loss, Perceptron()), kind, exact=True, backend=backend)
    X, y = data(loss, kind)
    scores = [Learner(Gaussian(0.7), loss, Gradient(rate, 0.0), backend=backend).learn(X, y) for rate in (1.0, 0.25)]
    np.testing.assert_array_equal(0.25 * scores[0], scores[1])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_passive_aggressive_is_implicit(kind, backend):
    """PA-I is ILK at reg 0; PA-II is ILK with the squared hinge and twice the weight; PA is PA-I without bound."""
    for loss in (Hinge(), EpsilonInsensitive(0.1), Novelty(0.8)):
        for C in (0.2, 5.0):
            same((loss, PassiveAggressive(C)), (loss, Implicit(C)), kind, backend=backend)
        same((loss, PassiveAggressive(math.inf, "PA")), (loss, PassiveAggressive(math.inf)), kind, backend=backend)
    for C in (0.2, 5.0):
        same((Hinge(), PassiveAggressive(C, "PA-II")), (SquaredHinge(), Implicit(2 * C)), kind, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_projection_is_the_limit(kind, backend):
    """Herbster is PA, is ILK with C = inf, and what large C, and a large ball, come to."""
    for loss in (Hinge(), EpsilonInsensitive(0.1), Novelty(0.8)):
        same((loss, Projection()), (loss, PassiveAggressive(math.inf, "PA")), kind, backend=backend)
        same((loss, Projection()), (loss, Implicit(math.inf)), kind, backend=backend)
        same((loss, Projection()), (loss, Implicit(1e9)), kind, backend=backend)
        same((loss, Projection()), (loss, Projection(radius=1e9)), kind, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("radius", [0.3, 1.0])
def test_projection_lands_where_it_should(radius, backend):
    """After an update the example has its margin 1, or lies on the edge of the tube, unless the ball is too small."""
    for loss, gap in ((Hinge(), lambda z, y: y * z - 1), (EpsilonInsensitive(0.1), lambda z, y: abs(y - z) - 0.1)):
        X, y = data(loss, "drifting")
        free, ball = (Learner(Gaussian(0.7), loss, Projection(r), backend=backend) for r in (None, radius))
        for x, t in zip(X, y, strict=True):
            before = free.updates
            free.learn_one(x, float(t))
            if free.updates > before:
                assert abs(gap(free.score_one(x), t)) < 1e-12
            ball.learn_one(x, float(t))
            assert ball.norm <= radius * (1 + 1e-12)
        assert ball.norm > 0.9 * radius or free.norm < radius


def test_infinite_weight_interpolates():
    """C -> inf with the squared loss: f_(t+1)(x_t) = y_t."""
    X, y = data(Squared(), "stationary")
    learner = Learner(Polynomial(2), Squared(), Implicit(math.inf))
    for x, t in zip(X, y, strict=True):
        learner.learn_one(x, float(t))
        assert abs(learner.score_one(x) - t) < 1e-9


@pytest.mark.parametrize("rate", [0.5, 2.0])
def test_alma_zero_corrects_mistakes_only(rate):
    """ALMA with alpha = 1 has threshold 0 whatever B: it updates exactly on mistakes, and its norm stays at most 1."""
    X, y = data(Hinge(), "drifting")
    one, other = (Learner(Gaussian(0.7), Hinge(), ALMA(1.0, B, rate)) for B in (0.1, 9.0))
    assert np.array_equal(one.learn(X, y), other.learn(X, y))
    assert one.updates == one.mistakes
    assert one.norm <= 1 + 1e-12


# ------------------------------------------------------------------------------------------------------ two labels


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_two_labels_are_binary_with_doubled_kernel(kind, backend):
    """The difference of two class scores is a binary score with the kernel 2 k: NORMA, ILK, SVMD, softmax."""
    X, y = data(Hinge(), kind)
    kernel = QUADRATIC
    rules = [Gradient(0.2, 0.1), Implicit(0.4, 0.7, 0.1), Implicit(0.4, 0.7, 0.1, "inverse_sqrt"), SVMD(0.1, 0.05, 0.2)]
    hinges = [(Multiclass(classes=2, step=step), Hinge()) for step in ("exact", "runner_up")]
    for many, two in [*hinges, (Softmax(2), Logistic())]:
        for rule in [*rules, SVMD(0.1, 0.05, 0.2, C=0.7)]:
            one, other = Learner(kernel, many, rule, backend=backend), Learner(2.0 * kernel, two, rule, backend=backend)
            scores, expected = one.learn(X, (y > 0).astype(int)), other.learn(X, y)
            near(scores[:, 1] - scores[:, 0], expected, (many, rule))
            near(one.norm, other.norm, (many, rule), 1.0)
        rule, twice = Gradient(0.2, 0.1), Gradient(0.4, 0.05)  # 1.10: the same without doubling
        scores = Learner(kernel, many, rule, backend=backend).learn(X, (y > 0).astype(int))
        near(scores[:, 1] - scores[:, 0], Learner(kernel, two, twice, backend=backend).learn(X, y), "1.10")


# ------------------------------------------------------------------------------------------------------ SVMD


LOSSES = [loss for loss, _, _ in FIXED + ADAPTIVE] + [Multiclass(), Multiclass(COST), Softmax()]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: str(loss)[:40])
def test_svmd_without_meta_is_norma(loss, backend):
    """mu = 0 is NORMA, and with implicit steps ILK, to the bit."""
    for kind in KINDS:
        same((loss, SVMD(0.1, 0.3, 0.0)), (loss, Gradient(0.1, 0.3)), kind, exact=True, backend=backend)
        same((loss, SVMD(0.1, 0.3, 0.0, C=0.7)), (loss, Implicit(0.7, 0.1, 0.3)), kind, exact=True, backend=backend)


# ------------------------------------------------------------------------------------------------------ other solvers


@pytest.mark.parametrize("aggressive", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_romma_solves_its_program(kernel, aggressive):
    """Each update is the smallest w with y <w, x> >= 1 and <w, w_t> >= ||w_t||^2, as SLSQP finds it."""
    X, smooth = stream("stationary", 1, rows=14)
    y = np.where(smooth > 0, 1.0, -1.0)
    gram = KERNELS[kernel][1](X, X)
    values, vectors = np.linalg.eigh(gram)
    phi = vectors * np.sqrt(np.maximum(values, 0.0))  # phi @ phi.T is the Gram matrix: explicit features
    learner, w, solved = Learner(KERNELS[kernel][0], Hinge(), ROMMA(aggressive)), np.zeros(len(X)), 0
    for t in range(len(X)):
        before = learner.updates
        learner.learn_one(X[t], float(y[t]))
        coefs = np.zeros(len(X))
        coefs[learner.births - 1] = learner.coefs
        new = phi.T @ coefs
        if learner.updates > before:
            constraints = [
                {"type": "ineq", "fun": lambda u, t=t: y[t] * (u @ phi[t]) - 1, "jac": lambda u, t=t: y[t] * phi[t]},
                {"type": "ineq", "fun": lambda u, w=w: u @ w - w @ w, "jac": lambda u, w=w: w},
            ]
            best = minimize(
                lambda u: u @ u / 2, new + 0.1, jac=lambda u: u, constraints=constraints[: 2 if w.any() else 1],
                method="SLSQP", options={"ftol": 1e-15, "maxiter": 500},
            ).x  # fmt: skip
            np.testing.assert_allclose(new, best, atol=1e-5 * max(1.0, np.abs(best).max()))
            solved += 1
        w = new
    assert solved > 3


def dual(a, y, gram):
    return a.sum() - (a * y) @ gram @ (a * y) / 2


@pytest.mark.parametrize("C", [0.5, 5.0])
@pytest.mark.parametrize("kernel", KERNELS)
def test_adatron_reaches_the_dual(kernel, C):
    """Passes over the rows converge to the maximum of the dual without offset, as a bounded quasi-Newton finds it."""
    X, smooth = stream("stationary", 2, rows=30)
    y, gram = np.where(smooth > 0, 1.0, -1.0), KERNELS[kernel][1](X, X)
    learner = Learner(KERNELS[kernel][0], Hinge(), Adatron(1.5 / gram.diagonal().max(), C))
    passes = 3000
    learner.learn(np.tile(X, (passes, 1)), np.tile(y, passes), ids=np.tile(np.arange(len(X)), passes))
    best = minimize(
        lambda a: -dual(a, y, gram), np.zeros(len(X)), jac=lambda a: y * (gram @ (a * y)) - 1,
        bounds=[(0.0, C)] * len(X), method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 20000},
    )  # fmt: skip
    place = {x.tobytes(): i for i, x in enumerate(X)}
    a = np.zeros(len(X))
    a[[place[x.tobytes()] for x in learner.points]] = np.abs(learner.coefs)
    assert dual(a, y, gram) >= -best.fun - 1e-6 * abs(best.fun)
    np.testing.assert_allclose(learner.score(X), gram @ (best.x * y), atol=2e-3)


def test_adatron_is_the_support_vector_machine():
    """On mirrored data the offset of SVC is 0: Adatron makes its decisions, up to its tolerance."""
    X, smooth = stream("stationary", 3, rows=40)
    X, y = np.vstack([X, -X]), np.concatenate([np.where(smooth > 0, 1.0, -1.0), -np.where(smooth > 0, 1.0, -1.0)])
    machine = SVC(kernel="linear", C=0.3, tol=1e-8).fit(X, y)
    assert abs(machine.intercept_[0]) < 1e-6
    learner = Learner(Linear(), Hinge(), Adatron(1.0 / (X * X).sum(axis=1).max(), 0.3))
    learner.learn(np.tile(X, (2000, 1)), np.tile(y, 2000), ids=np.tile(np.arange(len(X)), 2000))
    np.testing.assert_allclose(learner.score(X), machine.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("factor", [0.5, 1.0, 1.9, 2.0])
def test_adatron_never_descends(factor):
    """The dual objective never decreases for rate <= 2 / k(x, x)."""
    for seed, kernel in enumerate(KERNELS):
        X, smooth = stream("repeated", seed, rows=20)
        y, gram = np.where(smooth > 0, 1.0, -1.0), KERNELS[kernel][1](X, X)
        rate = factor / gram.diagonal().max()
        visits = np.random.default_rng(seed).integers(0, len(X), size=150)
        learner, objective = Learner(KERNELS[kernel][0], Hinge(), Adatron(rate, 2.0)), []
        for i in visits:
            learner.learn(X[i : i + 1], y[i : i + 1], ids=[i])
            objective.append(np.abs(learner.coefs).sum() - learner.norm**2 / 2)
        assert np.diff(objective).min() >= -1e-9
        near(objective, naive.adatron(gram, y, visits, rate, 2.0)[2], "objective", max(1.0, max(objective)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_adatron_once_is_passive_aggressive(kind, backend):
    """With rate 1 / k(x, x) and no visit twice, Adatron is PA-I."""
    same((Hinge(), Adatron(1.0, 0.6)), (Hinge(), PassiveAggressive(0.6)), kind, kernel=Gaussian(0.7), backend=backend)
