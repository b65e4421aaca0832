"""Several threads at once: a model is scored by many while others learn."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from parts import stream, user_kernel

from gossamer import Learner
from gossamer.budgets import Smallest
from gossamer.kernels import Custom, Gaussian, Laplace, Linear
from gossamer.losses import Hinge, Multiclass
from gossamer.rules import Gradient, Implicit
from gossamer.semiseparable import Additive, Exponential

KERNELS = [
    Gaussian(0.5), 0.5 * Gaussian(0.2) + Linear() * Laplace(1.0), Custom(user_kernel),
    Additive(Exponential() + Linear()),
]  # fmt: skip
NAMES = ["leaf", "program", "python", "trees"]


def model(kernel, seed, dtype=np.float64):
    backend = "trees" if isinstance(kernel, Additive) else "auto"
    learner = Learner(kernel, Hinge(), Implicit(C=0.5, reg=0.01), Smallest(50), average=True, backend=backend)
    return learner, stream(Hinge(), 2000, seed, features=5, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_many_score_one_model(kernel, dtype):
    """Threads that score one model at once, whole or row by row, get what one thread gets, bit for bit."""
    learner, (X, y) = model(kernel, 1, dtype)
    learner.learn(X[:500], y[:500])
    scores, mean = learner.score(X), learner.score(X, average=True)
    singles = np.array([learner.score_one(x) for x in X[:100]])

    def work(i):
        if i % 3 == 0:
            return np.array_equal(learner.score(X), scores)
        if i % 3 == 1:
            return np.array_equal(learner.score(X, average=True), mean)
        return np.array_equal([learner.score_one(x) for x in X[:100]], singles)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(60)))


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_score_while_another_learns(kernel):
    """Models that learn in other threads change neither the scores of a model at rest nor each other."""
    still, (X, y) = model(kernel, 2)
    still.learn(X[:500], y[:500])
    scores = still.score(X)
    alone = []
    for seed in range(3, 6):
        learner, data = model(kernel, seed)
        alone.append(learner.learn(*data))

    def learn(seed):
        learner, data = model(kernel, seed)
        return np.array_equal(learner.learn(*data), alone[seed - 3])

    with ThreadPoolExecutor(6) as pool:
        learned = [pool.submit(learn, seed) for seed in (3, 4, 5)]
        scored = [pool.submit(lambda: np.array_equal(still.score(X), scores)) for _ in range(20)]
        assert all(task.result() for task in learned + scored)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[3]], ids=["dense", "trees"])
def test_score_a_model_that_learns(kernel):
    """Scoring a compiled model while it learns is safe: every score is finite, and learning is not disturbed."""
    learner, (X, y) = model(kernel, 7)
    twin, _ = model(kernel, 7)
    learner.learn(X[:10], y[:10])
    twin.learn(X[:10], y[:10])
    expected = twin.learn(np.tile(X, (20, 1)), np.tile(y, 20))

    def score(_):
        finite = np.isfinite(learner.score(X[:200])).all() and np.isfinite(learner.score_one(X[0]))
        return finite and len(learner.coefs) <= 50

    with ThreadPoolExecutor(4) as pool:
        learning = pool.submit(learner.learn, np.tile(X, (20, 1)), np.tile(y, 20))
        assert all(pool.map(score, range(100)))
        assert np.array_equal(learning.result(), expected)


def test_learning_in_turns():
    """Threads that learn single rows on one model take turns: every row is learned once."""
    X, y = stream(Hinge(), 2000, seed=8)
    learner = Learner(Gaussian(0.5), Hinge(), Gradient(0.1, 0.01), Smallest(20))
    learner.learn(X[:1], y[:1])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda t: learner.learn_one(X[t], y[t]), range(1, 2000)))
    assert learner.steps == 2000
    assert np.isfinite(learner.score(X)).all()


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[3]], ids=["dense", "trees"])
def test_score_a_model_that_meets_new_classes(kernel):
    """Classes that come while others score do no harm: a score has those that were known when it was asked for."""
    X = np.random.default_rng(9).normal(size=(3000, 5))
    y = np.arange(3000) // 50
    learner = Learner(kernel, Multiclass(), Gradient(0.1, 0.01), Smallest(300))
    learner.learn(X[:10], y[:10])

    def score(_):
        scores = learner.score(X[:50])
        return scores.shape[0] == 50 and np.isfinite(scores).all()

    with ThreadPoolExecutor(4) as pool:
        learning = pool.submit(learner.learn, X[10:], y[10:])
        assert all(pool.map(score, range(100)))
        learning.result()
    assert learner.score(X[:5]).shape == (5, 60)
