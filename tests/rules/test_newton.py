"""Laws of second-order steps: what they are equal to, and what stays true however long they go on.

The file is long because every law is held against an oracle of its own, and the oracles share the streams and
checks here.
"""

import dataclasses
import math

import numpy as np
import pytest
from parts import agree, assert_same, examples, label, learn_rows, learn_split, stream
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from gossamer import Learner, NewtonRegressor, store
from gossamer.budgets import Fourier, Merge, Nystrom, Oldest, Project, Random, Smallest
from gossamer.budgets.features import waves
from gossamer.exceptions import ParameterError
from gossamer.kernels import Custom, Gaussian, Linear
from gossamer.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Multiclass,
    Novelty,
    OneVsRest,
    Pinball,
    Softmax,
    Squared,
    SquaredHinge,
)
from gossamer.rules import Implicit, Newton
from gossamer.rules.newton import square

KERNEL = Gaussian(0.5)
SCALAR = [
    Squared(), SquaredHinge(), Logistic(), Hinge(), Huber(0.4), EpsilonInsensitive(0.2), Pinball(0.7), Novelty(0.8),
]  # fmt: skip
MANY = [OneVsRest(4), Softmax(4), Multiclass(classes=4), Multiclass(classes=4, step="runner_up")]
both = pytest.mark.parametrize("backend", ["native", "numpy"])


def metric_of(learner):
    """A, over all points."""
    state = learner.state()
    metric = state.rule["factor"] * square(state.rule["metric"])
    return np.pad(metric, (0, len(state.points) - len(metric)))


def gram_of(learner):
    points = np.asarray(learner.points, dtype=np.float64)
    return learner.kernel(points, points)


def check_order(learner, near=1e-8):
    """A and K - K A K, the covariance that is left at the points, are positive semidefinite: 0 <= A <= K^-1."""
    A, K = metric_of(learner), gram_of(learner)
    scale = float(K.diagonal().max())
    root = np.linalg.cholesky(K + 1e-10 * scale * np.eye(len(K)))
    values = np.linalg.eigvalsh(root.T @ A @ root)  # in units of what there is to know
    assert values.min() >= -near, values.min()
    assert values.max() <= 1 + near, values.max() - 1
    assert np.linalg.eigvalsh(A).min() >= -near * max(1.0, np.abs(A).max())


def ridge(K, k, y, noise):
    """The mean and the variance of Gaussian process regression; ``noise`` may be a vector."""
    inverse = np.linalg.inv(K + np.diag(np.broadcast_to(noise, len(K))))
    return k @ inverse @ y, 1 - np.sum((k @ inverse) * k, axis=-1)


# ---------------------------------------------------------------------------------------------- what it is equal to


@both
@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_kernel_ridge_regression_in_every_round(noise, backend):
    """Without a budget the score of each row is ridge regression on the rows before, with a weight for each."""
    X, y = stream(Squared(), 60, 0)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, size=60)
    learner = Learner(KERNEL, Squared(), Newton(noise), backend=backend)
    K = KERNEL(X, X)
    variances = []
    scores = [learner.learn_one(X[0], y[0], weights[0])]
    for t in range(1, 60):
        variances.append(learner.variance(X[t : t + 1])[0])
        scores.append(learner.learn_one(X[t], y[t], weights[t]))
    wanted = [ridge(K[:t, :t], K[t, :t], y[:t], noise / weights[:t]) for t in range(1, 60)]
    np.testing.assert_allclose(scores, [0.0, *(mean for mean, _ in wanted)], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(variances, [variance for _, variance in wanted], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(metric_of(learner), np.linalg.inv(K + np.diag(noise / weights)), rtol=1e-7, atol=1e-7)


def test_gaussian_process_regression_of_scikit_learn():
    """Mean and deviation, in any units of the targets that are not learned."""
    X, y = stream(Squared(), 120, 2)
    new = stream(Squared(), 30, 3)[0]
    oracle = GaussianProcessRegressor(RBF(1.0), alpha=0.2, optimizer=None).fit(X, y)
    mean, deviation = oracle.predict(new, return_std=True)
    model = NewtonRegressor(KERNEL, noise=0.2, budget=None, scale_target=False).fit(X, y)
    found, spread = model.predict(new, return_std=True)
    np.testing.assert_allclose(found, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(np.sqrt(model.variance(new)), deviation, rtol=1e-8)
    np.testing.assert_allclose(spread, np.sqrt(deviation**2 + 0.2), rtol=1e-8)
    np.testing.assert_array_equal(model.predict(new), found)


def krls_t(kernel, X, y, noise, forgetting):
    """KRLS-T as its paper has it: the mean and covariance at the points, back to the prior before each row."""
    scores, m, V = [], np.zeros(0), np.zeros((0, 0))
    for t in range(len(X)):
        K, k = kernel(X[:t], X[:t]), kernel(X[:t], X[t : t + 1])[:, 0]
        V, m = forgetting * V + (1 - forgetting) * K, math.sqrt(forgetting) * m
        q = np.linalg.inv(K) @ k
        h = V @ q
        left = float(kernel.diag(X[t : t + 1])[0] - k @ q + q @ h)
        p, scores = np.append(h, left), [*scores, float(q @ m)]
        V = np.block([[V, h[:, None]], [h, left]]) - np.outer(p, p) / (left + noise)
        m = np.append(m, scores[-1]) + (y[t] - scores[-1]) / (left + noise) * p
    return np.array(scores), math.sqrt(forgetting) * m, forgetting * V + (1 - forgetting) * kernel(X, X)


@both
@pytest.mark.parametrize("forgetting", [1.0, 0.99, 0.6, 1e-3])
def test_krls_t(forgetting, backend):
    """Step by step, and the covariance at all points."""
    X, y = stream(Squared(), 40, 4)
    kernel = Gaussian(2.0)
    learner = Learner(kernel, Squared(), Newton(0.1, forgetting), backend=backend)
    wanted, mean, covariance = krls_t(kernel, X, y, 0.1, forgetting)
    np.testing.assert_allclose(learner.learn(X, y), wanted, rtol=1e-7, atol=1e-7)
    K = kernel(X, X)
    np.testing.assert_allclose(learner.score(X), mean, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(K - K @ metric_of(learner) @ K, covariance, rtol=1e-7, atol=1e-7)


@both
def test_a_factor_that_is_folded(backend):
    """Thousands of rows with forgetting: the lazy factor is folded into the metric, and nothing is lost."""
    X, y = stream(Squared(), 3000, 5)
    learner = Learner(KERNEL, Squared(), Newton(0.1, 0.9), Oldest(12), backend=backend)
    learner.learn(X, y)
    metric = metric_of(learner)
    assert learner.state().rule["factor"] >= 1e-7
    check_order(learner)
    assert np.abs(metric).max() > 0.1


@both
@pytest.mark.parametrize("size", [1, 2, 15])
def test_sliding_windows(size, backend):
    """`Oldest` deletes an observation: in each round ridge regression on the last rows alone."""
    X, y = stream(Squared(), 80, 6)
    weights = np.random.default_rng(7).uniform(0.2, 3.0, size=80)
    learner = Learner(KERNEL, Squared(), Newton(0.1), Oldest(size), backend=backend)
    scores = learner.learn(X, y, weights)
    K = KERNEL(X, X)
    windows = [slice(max(0, t - size), t) for t in range(1, 81)]
    solved = [ridge(K[w, w], K[:, w], y[w], 0.1 / weights[w]) for w in windows]
    wanted = [0.0, *(solved[t - 1][0][t] for t in range(1, 80))]
    np.testing.assert_allclose(scores, wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(learner.score(X), solved[-1][0], rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(learner.variance(X), solved[-1][1], rtol=1e-8, atol=1e-8)


@both
def test_windows_by_age(backend):
    """Rows that expire are deleted too."""
    X, y = stream(Squared(), 50, 8)
    learner = Learner(KERNEL, Squared(), Newton(0.1), Oldest(age=9), backend=backend)
    learner.learn(X, y)
    born = learner.births - 1
    mean, variance = ridge(KERNEL(X[born], X[born]), KERNEL(X, X[born]), y[born], 0.1)
    assert len(born) < 12
    np.testing.assert_allclose(learner.score(X), mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(learner.variance(X), variance, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("loss", [*SCALAR, *MANY], ids=label)
def test_without_curvature_it_is_implicit(loss):
    """A = 0 for ever: ILK with C = 1 / noise and no decay."""
    kind = type("Flat", (type(loss),), {"stiffness": lambda self, z, y, slope: 0.0})
    flat = kind(**{field.name: getattr(loss, field.name) for field in dataclasses.fields(loss)})
    X, y = stream(loss, 80, 9)
    second = Learner(KERNEL, flat, Newton(0.4), Smallest(30), backend="numpy")
    first = Learner(KERNEL, loss, Implicit(1 / 0.4), Smallest(30), backend="numpy")
    np.testing.assert_allclose(second.learn(X, y), first.learn(X, y), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(second.coefs, first.coefs, rtol=1e-9, atol=1e-9)
    assert not metric_of(second).any()


@both
def test_arow(backend):
    """The closed form of the paper, with its mean and covariance of the weights."""
    X, y = stream(SquaredHinge(), 200, 10)
    learner = Learner(Linear(), SquaredHinge(), Newton(0.7), backend=backend)
    mean, covariance, scores, steps = np.zeros(3), np.eye(3), [], 0
    for x, label_ in zip(X, y, strict=True):
        scores.append(mean @ x)
        if label_ * scores[-1] < 1:
            beta = 1 / (x @ covariance @ x + 0.7)
            alpha = max(0.0, 1 - label_ * scores[-1]) * beta
            mean = mean + alpha * label_ * covariance @ x
            covariance = covariance - beta * np.outer(covariance @ x, covariance @ x)
            steps += 1
    np.testing.assert_allclose(learner.learn(X, y), scores, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(learner.variance(X), np.sum((X @ covariance) * X, axis=1), rtol=1e-8, atol=1e-9)
    assert learner.updates == steps


def explicit(loss, rule, Z, y, weights):
    """The rule in a space of coordinates, with all matrices; scores before each row, weights and covariance at last."""
    many = loss.target == "label"
    W, S, scores = np.zeros((4 if many else 1, Z.shape[1])), np.eye(Z.shape[1]), []
    steps, level = 0, loss
    for t, z in enumerate(Z):
        p, kappa = W @ z, float(z @ S @ z)
        scores.append(p)
        target = 0.0 if y is None else int(y[t]) if many else float(y[t])
        c = weights[t] / (rule.noise + rule.settling / (steps + 1))
        p = p if many else float(p[0])
        if np.any(level.slope(p, target)) and kappa > 0:
            g = level.implicit_many(p, target, kappa, c, p) if many else level.implicit(p, target, kappa, c)
            if np.any(g):
                h = c * level.stiffness(p + kappa * g, target, -g / c)
                W = W + np.multiply.outer(np.atleast_1d(g), S @ z)
                S = S - h / (1 + h * kappa) * np.outer(S @ z, S @ z)
                steps += 1
        W, S = math.sqrt(rule.forgetting) * W, rule.forgetting * S + (1 - rule.forgetting) * np.eye(len(S))
    return np.array(scores), W, S


@both
@pytest.mark.parametrize("loss", [*SCALAR, *MANY], ids=label)
@pytest.mark.parametrize("rule", [Newton(0.3), Newton(1.0, 0.97, 2.0)], ids=label)
def test_explicit_features(loss, rule, backend):
    """Every loss: weights, and one covariance for all classes, by coordinates of a linear kernel; by features of
    `Fourier` and `Nystrom`, which are the same there."""
    X, y = stream(loss, 70, 11)
    weights = np.random.default_rng(12).uniform(0.5, 2.0, size=70)
    fourier, nystrom = Fourier(10, seed=1), Nystrom(6)
    for kernel, budget in ((Linear(), None), (KERNEL, fourier), (KERNEL, nystrom)):
        learner = Learner(kernel, loss, rule, budget, backend=backend)
        if budget is None:
            scores, Z = learner.learn(X, y, weights), X
        elif budget is fourier:
            scores, Z = learner.learn(X, y, weights), waves(budget.frequencies(kernel, X), X).T
        else:  # a row has the coordinates of the points that were there, and its own if it joins
            rows = [
                (learner.learn_one(X[t], None if y is None else float(y[t]), float(weights[t])), len(learner.points))
                for t in range(70)
            ]
            scores, sizes = (np.array(column) for column in zip(*rows, strict=True))
            points = np.asarray(learner.points)
            Z = np.linalg.solve(np.linalg.cholesky(kernel(points, points)), kernel(points, X)).T
            Z[np.arange(Z.shape[1]) >= sizes[:, None]] = 0.0
        wanted, W, S = explicit(loss, rule, Z, y, weights)
        scores = scores if scores.ndim == 2 else scores[:, None]
        np.testing.assert_allclose(scores, wanted, rtol=1e-6, atol=1e-7)
        end = learner.score(X) if budget is not nystrom else learner.score(X[-5:])
        last = (X if budget is None else Z)[-len(end) :]
        if budget is None or budget is fourier:
            np.testing.assert_allclose(end.reshape(len(end), -1), last @ W.T, rtol=1e-6, atol=1e-7)
            np.testing.assert_allclose(learner.variance(X), np.sum((last @ S) * last, axis=1), rtol=1e-6, atol=1e-7)


class Projected:
    """Second-order steps with `Project` from the formulas, with every inverse made anew."""

    def __init__(self, kernel, loss, rule, size, tolerance):
        self.kernel, self.loss, self.rule, self.size, self.tolerance = kernel, loss, rule, size, tolerance
        self.full, self.A, self.insides, self.refusals, self.moves = False, np.zeros((0, 0)), 0, 0, 0

    def learn(self, X, y):
        loss, rule, many = self.loss, self.rule, self.loss.target == "label"
        S, a, A, scores = [], np.zeros((4 if many else 1, 0)), np.zeros((0, 0)), []
        for t in range(len(X)):
            K = self.kernel(X[[*S, t]], X[[*S, t]])
            k, kappa = K[:-1, -1], float(K[-1, -1])
            f = a @ k
            scores.append(f)
            target, p = (int(y[t]), f) if many else (float(y[t]), float(f[0]))
            v = A @ k
            if self.full:
                d = np.linalg.inv(K[:-1, :-1]) @ k
                inside = kappa - k @ d <= self.tolerance * kappa
                kappa = float(k @ d) if inside else kappa
            s2 = kappa - float(k @ v)
            c = 1 / rule.noise
            g = loss.implicit_many(p, target, s2, c, p) if many else loss.implicit(p, target, s2, c)
            if np.any(loss.slope(p, target)) and np.any(g):
                h = c * loss.stiffness(p + s2 * g, target, -g / c)
                w, g = h / (1 + h * s2), np.atleast_1d(g)
                if self.full and inside:
                    self.insides += 1
                    a, A = a + np.outer(g, d - v), A + w * np.outer(d - v, d - v)
                else:
                    u = np.append(-v, 1.0)
                    a = np.pad(a, ((0, 0), (0, 1))) + np.outer(g, u)
                    A = np.pad(A, (0, 1)) + w * np.outer(u, u)
                    S = [*S, t]
                    if len(S) > self.size:
                        self.full = True
                        a, A, S = self.leave(a, A, S, np.linalg.inv(K))
            a, A = math.sqrt(rule.forgetting) * a, rule.forgetting * A
        self.S, self.a, self.A = S, a, A
        return np.array(scores)

    def leave(self, a, A, S, Q):
        i = int(np.argmin(np.sum(a**2, axis=0) / Q.diagonal()))
        self.refusals += i == len(S) - 1
        self.moves += i < len(S) - 1
        j = np.delete(np.arange(len(S)), i)
        c = -Q[j, i] / Q[i, i]
        cross = np.outer(c, A[i, j])
        A = A[np.ix_(j, j)] + cross + cross.T + A[i, i] * np.outer(c, c)
        return a[:, j] + np.outer(a[:, i], c), A, [S[n] for n in j]


@both
@pytest.mark.parametrize("forgetting", [1.0, 0.95])
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), Logistic(), OneVsRest(4), Softmax(4)], ids=label)
def test_project(loss, forgetting, backend):
    """Points that leave are projected out of f and of A; rows in the span are learned there; refused ones as well."""
    rng = np.random.default_rng(13)
    X = np.concatenate([rng.uniform(-2, 2, size=(25, 2)), rng.normal(size=(150, 2))])
    y = stream(loss, 175, 14)[1]
    kernel, rule = Gaussian(1.0), Newton(0.2, forgetting)
    naive = Projected(kernel, loss, rule, 9, 0.02)
    learner = Learner(kernel, loss, rule, Project(9, 0.02), backend=backend)
    wanted, scores = naive.learn(X, y), learner.learn(X, y)
    np.testing.assert_allclose(scores.reshape(175, -1), wanted, rtol=1e-6, atol=1e-6)
    assert min(naive.insides, naive.refusals, naive.moves) > 0
    order = np.argsort(learner.births)
    np.testing.assert_allclose(np.asarray(learner.points)[order], X[naive.S])
    np.testing.assert_allclose(metric_of(learner)[np.ix_(order, order)], naive.A, rtol=1e-5, atol=1e-6)
    check_order(learner)


# ------------------------------------------------------------------------------------------------- what stays true


def hard_rows(loss, rows, seed):
    """Duplicates, points on a line, and points that nearly coincide, between others."""
    X, y = stream(loss, rows, seed)
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, size=rows)
    X[kind == 1] = X[rng.integers(0, 5, size=int((kind == 1).sum()))]
    X[kind == 2] = np.outer(rng.normal(size=int((kind == 2).sum())), X[0])
    X[kind == 3] = X[0] + 1e-7 * X[kind == 3]
    return X, y


def second_order(budget, loss):
    return agree(loss, Newton(), budget, KERNEL)


@both
@pytest.mark.parametrize("budget", examples("budget"), ids=label)
def test_the_metric_stays_between_zero_and_the_inverse(budget, backend):
    """Every budget, on hard rows: 0 <= A <= K^-1, and 0 <= s^2 <= k(x, x)."""
    for number, loss in enumerate((Squared(), SquaredHinge(), OneVsRest())):
        if not second_order(budget, loss):
            continue
        X, y = hard_rows(loss, 200 if backend == "native" else 60, number)
        for rule in (Newton(1e-4), Newton(0.3, 0.98)):
            learner = Learner(KERNEL, loss, rule, budget, backend=backend)
            learner.learn(X, y)
            variance, kappas = learner.variance(X), KERNEL.diag(X)
            assert (variance >= 0).all()
            assert (variance <= kappas).all()
            assert np.isfinite(learner.score(X)).all()
            if not budget.space:
                check_order(learner, near=1e-5)


@both
@pytest.mark.parametrize("loss", [*SCALAR, *MANY], ids=label)
@pytest.mark.parametrize("budget", [None, Fourier(8), Nystrom(8)], ids=label)
def test_the_variance_never_grows(loss, budget, backend):
    """No row makes any point less certain, without forgetting; and with it, each point goes back to k(x, x)."""
    X, y = hard_rows(loss, 40, 20)
    grid = np.random.default_rng(21).normal(size=(40, 3))
    learner = Learner(KERNEL, loss, Newton(0.1), budget, backend=backend)
    before = KERNEL.diag(grid)
    for t in range(40):
        learner.learn(X[t : t + 1], None if y is None else y[t : t + 1])
        after = learner.variance(grid)
        if t or budget is None:  # before the first row, there are no features
            assert (after <= before + 1e-9).all()
        before = after
    forgets = Learner(KERNEL, loss, Newton(0.1, 0.5), budget, backend=backend)
    forgets.learn(X, y)
    left = forgets.variance(grid)
    weights = np.zeros(200)  # rows of weight 0 teach nothing, but time goes on
    forgets.learn(np.tile(X[:1], (200, 1)), None if y is None else np.tile(y[:1], 200), weights)
    assert (forgets.variance(grid) >= left - 1e-9).all()
    if budget is None:
        np.testing.assert_allclose(forgets.variance(grid), 1.0)


@both
@pytest.mark.parametrize("noise", [1e-12, 1e-6, 1e6, 1e12])
def test_any_noise(noise, backend):
    """Nearly none, where points are met to rounding, or far too much: finite, and no rounding takes over."""
    X = hard_rows(Squared(), 200, 22)[0]
    learner = Learner(KERNEL, Squared(), Newton(noise), backend=backend)
    learner.learn(X, np.sin(2 * X[:, 0]))
    if noise < 1:  # a smooth function, met at points that nearly coincide
        np.testing.assert_allclose(learner.score(X), np.sin(2 * X[:, 0]), atol=1e-3)
    for loss in (Squared(), SquaredHinge(), Logistic(), OneVsRest()):
        X, y = hard_rows(loss, 200 if backend == "native" else 60, 22)
        for budget in (None, Project(20), Merge(20), Oldest(20), Smallest(20), Nystrom(12), Fourier(12)):
            learner = Learner(KERNEL, loss, Newton(noise), budget, backend=backend)
            scores, variance = learner.learn(X, y), learner.variance(X)
            assert np.isfinite(learner.score(X)).all()
            assert np.abs(scores[np.isfinite(scores)]).max() < 1e6  # targets contradict each other at near points
            assert ((variance >= 0) & (variance <= 1)).all()
            if noise > 1:  # nearly nothing is learned
                assert np.abs(learner.score(X)).max() <= 1000 / noise
                assert (variance >= 1 - 1000 / noise).all()
            elif budget is None and loss == Squared():
                assert (variance < 1e-3).all()


@both
def test_targets_and_kernels_of_any_size(backend):
    """Units: a kernel times b and a noise times b change nothing; f is linear in the targets."""
    X, y = stream(Squared(), 100, 23)
    for budget in (None, Project(15)):
        plain = Learner(KERNEL, Squared(), Newton(0.1), budget, backend=backend)
        scores = plain.learn(X, y)
        for factor in (1e-8, 1e8):
            other = Learner(factor * KERNEL, Squared(), Newton(0.1 * factor), budget, backend=backend)
            np.testing.assert_allclose(other.learn(X, y), scores, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(other.variance(X) / factor, plain.variance(X), rtol=1e-5, atol=1e-6)
            scaled = Learner(KERNEL, Squared(), Newton(0.1), budget, backend=backend)
            np.testing.assert_allclose(scaled.learn(X, factor * y) / factor, scores, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("budget", "forgetting"), [(Project(12), 1.0), (Merge(12), 0.999), (Oldest(12), 1.0), (Random(12), 0.999)]
)
def test_a_million_steps(budget, forgetting):
    """Small models for a long time: what is kept incrementally is still right."""
    rng = np.random.default_rng(24)
    learner = Learner(KERNEL, Squared(), Newton(0.1, forgetting), budget)
    for _ in range(10):
        X = rng.normal(size=(100_000, 2))
        learner.learn(X, np.sin(X[:, 0]))
    assert learner.updates > 990_000
    check_order(learner, near=1e-6)
    if isinstance(budget, Oldest):
        born = X[-12:]
        mean, variance = ridge(KERNEL(born, born), KERNEL(X[:50], born), np.sin(born[:, 0]), 0.1)
        np.testing.assert_allclose(learner.score(X[:50]), mean, atol=1e-6)
        np.testing.assert_allclose(learner.variance(X[:50]), variance, atol=1e-6)
    elif forgetting < 1:
        assert np.abs(learner.score(X[-1000:]) - np.sin(X[-1000:, 0])).mean() < 0.3


@both
@pytest.mark.parametrize("budget", [None, Project(20)], ids=label)
def test_a_metric_that_is_too_large_shrinks(budget, backend):
    """A beyond K^-1, as only rounding or a forged file makes it: rows find it, and bring it back."""
    X, y = stream(Squared(), 20, 40)
    learner = Learner(KERNEL, Squared(), Newton(0.1), budget, backend=backend)
    learner.learn(X, y)
    state, inverse = learner.state(), np.linalg.inv(KERNEL(X, X))
    learner.restore(state.replace(rule={"metric": 1.03 * inverse[np.tril_indices(20)], "factor": 1.0}))
    learner.learn(np.tile(X, (3, 1)), np.tile(y + 0.1, 3))
    check_order(learner, near=1e-7)
    assert learner.updates == 20  # nothing was left to learn
    assert 1 / 1.031 < learner.state().rule["factor"] < 1 / 1.029


# ---------------------------------------------------------------------------------------------------------- merging


def test_equal_rows_merge_without_loss():
    """Two observations of one row become one: the Gaussian process of both."""
    X, y = stream(Squared(), 12, 37)
    X[7] = X[4]
    learner = Learner(KERNEL, Squared(), Newton(0.2), backend="numpy")
    learner.learn(X, y)
    rule, state = learner.rule, learner.rule.unpack(learner.state().rule, 12)
    coefs = rule.merged(4, 7, KERNEL(X, X[4:5])[:, 0], learner.coefs[None], state)[0]
    assert coefs[7] == 0
    assert not state["metric"][7].any()
    mean, variance = ridge(KERNEL(X, X), KERNEL(X, X), y, 0.2)
    K = KERNEL(X, X)
    np.testing.assert_allclose(K @ coefs, mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(rule.variance(K, np.ones(12), state), variance, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("h", [0.2, 0.5, 0.9])
def test_a_merge_keeps_mean_and_variance_there(h):
    """At the new point nothing changes, elsewhere the variance never falls below what all rows together leave."""
    X, y = stream(Squared(), 25, 38)
    learner = Learner(KERNEL, Squared(), Newton(0.1, 0.98), backend="numpy")
    learner.learn(X, y)
    rule, state, new = learner.rule, learner.rule.unpack(learner.state().rule, 25), h * X[3] + (1 - h) * X[9]
    before = learner.score(new[None])[0], learner.variance(new[None])[0]
    coefs = rule.merged(3, 9, KERNEL(X, new[None])[:, 0], learner.coefs[None], state)[0]
    points = X.copy()
    points[3] = new
    row = KERNEL(points, new[None])
    row[9] = 0.0
    assert coefs @ row[:, 0] == pytest.approx(before[0], abs=1e-10)
    assert rule.variance(row, np.ones(1), state)[0] == pytest.approx(before[1], abs=1e-10)


@both
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), Softmax(4)], ids=label)
@pytest.mark.parametrize("rule", [Newton(0.01), Newton(1.0, 0.95)], ids=label)
def test_merging_stays_between_nothing_and_everything(loss, rule, backend):
    """0 <= A <= K^-1 and the budget is kept, however many points merge, also beside equal rows."""
    X, y = stream(loss, 300, 39)
    X[100:150] = X[50:100]
    learner = Learner(Gaussian(0.3), loss, rule, Merge(11), backend=backend)
    for part in np.array_split(np.arange(300), 6):
        learner.learn(X[part], y[part])
        assert len(learner.points) <= 11
        check_order(learner, near=1e-6)
    assert learner.discarded > 0
    variance = learner.variance(X)
    assert (variance >= 0).all()
    assert (variance <= 1).all()


# ----------------------------------------------------------------------------------------------- the engine's laws


@both
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), Huber(0.3), EpsilonInsensitive(0.1)], ids=label)
def test_a_weight_is_less_noise(loss, backend):
    """Weight w and noise / w are the same, and a weight of 0 is no row but for forgetting."""
    X, y = stream(loss, 90, 25)
    for budget in (None, Project(10), Oldest(10)):
        one, other, skipping = (
            Learner(KERNEL, loss, Newton(noise), budget, backend=backend) for noise in (0.3, 0.1, 0.3)
        )
        scores = one.learn(X, y, np.full(90, 3.0))
        np.testing.assert_allclose(other.learn(X, y), scores, rtol=1e-7, atol=1e-7)
        rows, weights = np.repeat(X, 2, axis=0), np.tile([3.0, 0.0], 90)
        np.testing.assert_allclose(skipping.learn(rows, np.repeat(y, 2), weights)[::2], scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "budget", [None, Project(40), Merge(40), Oldest(40), Smallest(40), Nystrom(30), Fourier(30)], ids=label
)
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), OneVsRest(), Softmax()], ids=label)
def test_batches_and_files_to_the_bit(loss, budget, dtype):
    """One call, row by row, any split, stored and loaded between: the same scores and the same state."""
    X, y = stream(loss, 260, 26, dtype=dtype)
    rule = Newton(0.1, 0.999)
    whole, split, rows, before = (Learner(KERNEL, loss, rule, budget) for _ in range(4))
    scores = whole.learn(X, y)
    assert whole.backend.startswith("native")
    assert np.array_equal(learn_split(split, X, y, None, (1, 17, 90, 201)), scores)
    assert np.array_equal(learn_rows(rows, X, y), scores)
    before.learn(X[:130], y[:130])
    after = store.loads(store.dumps(before))
    assert np.array_equal(after.variance(X), before.variance(X))
    assert np.array_equal(after.learn(X[130:], y[130:]), scores[130:])
    for other in (split, rows, after):
        assert_same(other.state(), whole.state())


@both
@pytest.mark.parametrize("budget", [None, Project(12), Merge(12), Oldest(12), Nystrom(9), Fourier(8)], ids=label)
@pytest.mark.parametrize("loss", [Squared(), SquaredHinge(), OneVsRest()], ids=label)
def test_variances_while_learning(loss, budget, backend):
    """What `variance` says before each row is learned, also for rows without a step; nothing else changes."""
    X, y = stream(loss, 60, 35)
    weights = np.where(np.arange(60) % 7 == 3, 0.0, 1.0)
    one, plain, rows = (Learner(KERNEL, loss, Newton(0.3, 0.99), budget, backend=backend) for _ in range(3))
    scores, found = one.learn_with_variance(X, y, weights)
    assert np.array_equal(scores, plain.learn(X, y, weights))
    assert_same(one.state(), plain.state())
    wanted = []
    for t in range(60):
        wanted.append(rows.variance(X[t : t + 1])[0])
        rows.learn(X[t : t + 1], y[t : t + 1], weights[t : t + 1])
    np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-10)
    assert one.updates < 60


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("budget", [None, Project(40), Nystrom(30), Fourier(30)], ids=label)
def test_variances_to_the_bit(budget, dtype):
    """A row has the same variance alone and in any batch, while it is learned and after."""
    X, y = stream(OneVsRest(), 230, 36, dtype=dtype)
    whole, split = (Learner(KERNEL, OneVsRest(), Newton(0.1, 0.999), budget) for _ in range(2))
    found = whole.learn_with_variance(X, y)[1]
    parts = [split.learn_with_variance(X[a:b], y[a:b])[1] for a, b in ((0, 1), (1, 18), (18, 130), (130, 230))]
    assert np.array_equal(np.concatenate(parts), found)
    left = whole.variance(X)
    assert np.array_equal(np.concatenate([whole.variance(X[t : t + 1]) for t in range(230)]), left)
    assert np.array_equal(np.concatenate([whole.variance(X[a : a + 31]) for a in range(0, 230, 31)]), left)
    assert (left >= 0).all()
    assert (left <= 1).all()


@pytest.mark.parametrize("budget", [None, Project(15), Merge(15), Oldest(15), Nystrom(12), Fourier(12)], ids=label)
def test_one_backend_goes_on_where_another_stopped(budget):
    """Compiled, NumPy and a kernel in Python: the same to rounding, also the state of one for another."""
    X, y = stream(SquaredHinge(), 160, 27)
    python = Custom(lambda A, B: KERNEL(A, B), lambda A: KERNEL.diag(A))
    native, numpy, switched = (
        Learner(KERNEL, SquaredHinge(), Newton(0.2, 0.99), budget, backend=b) for b in ("native", "numpy", "numpy")
    )
    scores = native.learn(X, y)
    np.testing.assert_allclose(numpy.learn(X, y), scores, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(numpy.variance(X), native.variance(X), rtol=1e-6, atol=1e-6)
    half = Learner(KERNEL, SquaredHinge(), Newton(0.2, 0.99), budget, backend="native")
    half.learn(X[:80], y[:80])
    switched.restore(half.state())
    np.testing.assert_allclose(switched.learn(X[80:], y[80:]), scores[80:], rtol=1e-6, atol=1e-6)
    if not isinstance(budget, (Fourier, Merge)):
        own = Learner(python, SquaredHinge(), Newton(0.2, 0.99), budget)
        np.testing.assert_allclose(own.learn(X, y), scores, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(own.variance(X), native.variance(X), rtol=1e-6, atol=1e-6)


def test_rows_of_single_precision():
    """The state is in double precision whatever the rows are."""
    X, y = stream(Squared(), 300, 28, dtype=np.float32)
    narrow = Learner(KERNEL, Squared(), Newton(0.01), Project(30))
    wide = Learner(KERNEL, Squared(), Newton(0.01), Project(30))
    np.testing.assert_allclose(narrow.learn(X, y), wide.learn(X.astype(np.float64), y), atol=1e-2)
    assert narrow.state().rule["metric"].dtype == np.float64


def test_rows_without_a_step():
    """Beyond the margin nothing is learned, and the metric stays as it is."""
    X = stream(SquaredHinge(), 50, 29)[0]
    learner = Learner(Linear(), SquaredHinge(), Newton(1e-3))
    for _ in range(3):
        learner.learn(X, np.sign(X[:, 0]))
    calm = learner.score(X) * np.sign(X[:, 0]) >= 1
    assert calm.any()
    before = learner.state()
    learner.learn(X[calm], np.sign(X[calm, 0]))
    assert_same(before.rule, learner.state().rule)
    assert learner.updates == before.updates


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("arguments", [
    {"noise": 0.0}, {"noise": -1.0}, {"noise": math.nan}, {"noise": math.inf}, {"noise": "1"}, {"noise": True},
    {"forgetting": 0.0}, {"forgetting": 1.1}, {"forgetting": None}, {"settling": -1.0}, {"settling": math.inf},
])  # fmt: skip
def test_parameters(arguments):
    name = next(iter(arguments))
    with pytest.raises(ParameterError, match=rf"^The '{name}' parameter of Newton must be .* Got .* instead\.$"):
        Newton(**arguments)


@pytest.mark.parametrize(("make", "match"), [
    (lambda: Learner(KERNEL, Hinge(margin=0.0), Newton()), "'margin' parameter of Hinge must be positive with Newton"),
    (lambda: Learner(KERNEL, Squared(), Newton(), Smallest(5000)), "at most 4096 points with Newton"),
    (lambda: Learner("exponential", Squared(), Newton(), backend="trees"), "'backend' parameter of Learner must be"),
    (lambda: Learner(KERNEL, Squared(), Implicit()).variance([[1.0]]), "'rule' parameter of Learner must be one with"),
    (lambda: Learner(KERNEL, Multiclass(label_kernel=((1.0, 0.0), (0.0, 1.0))), Newton()), "without a label kernel"),
])  # fmt: skip
def test_parts_that_do_not_go_together(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@both
def test_bad_rows_change_nothing(backend):
    X, y = stream(Squared(), 30, 30)
    learner = Learner(KERNEL, Squared(), Newton(0.1), Project(10), backend=backend)
    learner.learn(X, y)
    before = learner.state()
    for rows, targets in ((X * math.nan, y), (X, y * math.inf), (X[:, :2], y), (X, y[:-1])):
        with pytest.raises(ValueError, match="must be"):
            learner.learn(rows, targets)
    with pytest.raises(ValueError, match="must be"):
        learner.variance(X * math.nan)
    with pytest.raises(ValueError, match="must be"):
        learner.variance(X[:, :2])
    with pytest.raises(ValueError, match="must be"):
        learner.learn_with_variance(X, y * math.nan)
    assert_same(learner.state(), before)


@both
@pytest.mark.parametrize("wrong", [
    {"metric": np.zeros(2)}, {"metric": np.full(55, math.nan)}, {"metric": np.full(55, 1e151)},
    {"metric": np.zeros(66)}, {"metric": np.zeros(0)}, {"metric": np.zeros(45)}, {"factor": 0.0}, {"factor": 2.0},
    {"factor": math.nan},
], ids=str)  # fmt: skip
def test_states_that_cannot_be(wrong, backend):
    X, y = stream(Squared(), 30, 31)
    learner = Learner(KERNEL, Squared(), Newton(0.1), Oldest(10), backend=backend)
    learner.learn(X, y)
    state = learner.state()
    with pytest.raises(ValueError, match=r"state\.rule"):
        learner.restore(state.replace(rule={**state.rule, **wrong}))


def test_before_the_first_row():
    """All variance is left."""
    learner = Learner(KERNEL, Squared(), Newton())
    np.testing.assert_array_equal(learner.variance(np.zeros((3, 2))), 1.0)
    assert learner.state() is None
