"""Steps that move more than the newcomer: a rule may answer with a direction over all points, and has its own state."""

import copy
import itertools
import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from parts import assert_same, stream

from gossamer import Learner
from gossamer._engine.expansion import Expansion
from gossamer.budgets import Fourier, Nystrom, Project
from gossamer.budgets.base import Newcomer
from gossamer.kernels import Gaussian
from gossamer.losses import Squared
from gossamer.rules import Rule, Step


@dataclass(frozen=True)
class _LeastSquares(Rule):
    """Kernel recursive least squares: with A in its state, f moves along k(x, .) - sum_j (A k)_j k(x_j, .)."""

    needs_gram = True
    noise: float = 0.3

    def initial_state(self):
        return {"A": np.zeros((0, 0)), "v": np.zeros(0), "w": 0.0}

    def check_state(self, state, size):
        if state["A"].shape != (size, size):
            raise ValueError("A must be square.")

    def step(self, loss, e):
        v = e.state["A"] @ e.row
        w = 1.0 / (max(e.kappa - e.row @ v, 0.0) + self.noise)
        e.state["v"], e.state["w"] = v, w
        g = w * (e.y - e.value)
        return Step(1.0, g, e.offset, loss.level, direction=-g * v)

    def placed(self, slot, expansion, state):
        assert slot == len(state["A"])
        state["A"] = np.pad(state["A"], (0, 1))
        self._turn(np.append(-state["v"], 1.0), state)

    def absorbed(self, shares, state):
        self._turn(shares - state["v"], state)

    def _turn(self, u, state):
        state["A"] = state["A"] + state["w"] * np.outer(u, u)


def naive(kernel, noise, tolerance, X, y):
    """The same as on paper, every inverse made anew; the coefficients of every hypothesis, by row."""
    scores, history, S = [], [np.zeros(len(X))], []
    a, A = np.zeros(0), np.zeros((0, 0))
    for t in range(len(X)):
        k, kappa = kernel(X[S], X[t : t + 1])[:, 0], float(kernel.diag(X[t : t + 1])[0])
        scores.append(float(a @ k))
        d = np.linalg.solve(kernel(X[S], X[S]), k) if S else np.zeros(0)
        known = kappa - k @ d <= tolerance * kappa
        v = A @ k
        w = 1.0 / ((k @ d if known else kappa) - k @ v + noise)
        g = w * (y[t] - scores[-1])
        if not known:
            S.append(t)
            a, A, d, v = np.append(a, 0.0), np.pad(A, (0, 1)), np.append(0.0 * d, 1.0), np.append(v, 0.0)
        a, A = a + g * (d - v), A + w * np.outer(d - v, d - v)
        history.append(np.zeros(len(X)))
        history[-1][S] = a
    return np.array(scores), np.array(history), S


@pytest.mark.parametrize("budget", [None, Project(None, 0.03)], ids=str)
def test_least_squares(budget):
    """Scores, coefficients, norm and mean are those of the naive algorithm; without a budget, of ridge regression."""
    X, y = stream(Squared(), 60, seed=3)
    kernel = Gaussian(0.1)
    learner = Learner(kernel, Squared(), _LeastSquares(), budget, average=True)
    scores = learner.learn(X, y)
    expected, history, S = naive(kernel, 0.3, 0.03 if budget else -1.0, X, y)
    assert learner.backend == "numpy"
    assert (learner.births - 1).tolist() == S
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(learner.coefs, history[-1][S], rtol=1e-6, atol=1e-8)
    norm = np.sqrt(history[-1] @ kernel(X, X) @ history[-1])
    assert learner.norm == pytest.approx(norm, rel=1e-7)
    mean = kernel(X, X) @ history[:-1].mean(axis=0)
    np.testing.assert_allclose(learner.score(X, average=True), mean, rtol=1e-7, atol=1e-9)
    if budget is None:
        for t in (1, 20, 59):
            ridge = np.linalg.solve(kernel(X[:t], X[:t]) + 0.3 * np.eye(t), y[:t])
            assert scores[t] == pytest.approx(float(kernel(X[t : t + 1], X[:t])[0] @ ridge), abs=1e-9)
    else:
        assert len(S) < 40


@pytest.mark.parametrize("budget", [None, Project(None, 0.03)], ids=str)
def test_batches_and_copies(budget):
    """In any split into batches the same; a copied, pickled or restored learner goes on as if it had never stopped."""
    X, y = stream(Squared(), 80, seed=4)
    whole = Learner(Gaussian(0.1), Squared(), _LeastSquares(), budget)
    scores = whole.learn(X, y)
    for cuts in ((0, 80), (0, 1, 2, 40, 80), (*range(0, 80, 7), 80)):
        learner, got = Learner(Gaussian(0.1), Squared(), _LeastSquares(), budget), []
        for start, end in itertools.pairwise(cuts):
            got.append(learner.learn(X[start:end], y[start:end]))
            fresh = Learner(Gaussian(0.1), Squared(), _LeastSquares(), budget)
            fresh.restore(learner.state())
            learner = [fresh, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))][start % 3]
        np.testing.assert_allclose(np.concatenate(got), scores, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(learner.coefs, whole.coefs, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(learner.state().rule["A"], whole.state().rule["A"], rtol=1e-8, atol=1e-10)
        assert_same({"births": learner.births}, {"births": whole.births})


@pytest.mark.parametrize("budget", [Nystrom(8), Fourier(8)], ids=str)
def test_a_direction_needs_points(budget):
    """A direction is one over points, not over the coordinates of a space."""
    with pytest.raises(ValueError, match="or a direction, with"):
        Learner(Gaussian(0.1), Squared(), _LeastSquares(), budget)


def test_states_of_rules_are_checked():
    """A state whose rule's part has other entries, or does not fit the points, is refused."""
    X, y = stream(Squared(), 20, seed=5)
    learner = Learner(Gaussian(0.1), Squared(), _LeastSquares())
    learner.learn(X, y)
    good = learner.state()
    for bad in ({}, {**good.rule, "A": np.zeros((3, 3))}, {**good.rule, "w": None}, {**good.rule, "more": 1.0}):
        with pytest.raises(ValueError, match="must be"):
            learner.restore(good.replace(rule=bad))
    assert_same(learner.state(), good)


@pytest.mark.parametrize("labels", [None, np.array([[2.0, 0.5], [0.5, 1.0]])], ids=["apart", "label kernel"])
def test_a_turn_keeps_norm_trace_and_sums(labels):
    """After a direction: the norm and <f, v> are those of the kernel values, v is what it was, the sums are settled."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(6, 2))
    gram = Gaussian(0.5)(X, X)
    e = Expansion("all", True, labels, trace=True)
    e.grow(2)
    for i in range(6):
        move, trace = rng.normal(size=(2, 2))
        f, v = e.joint(e.coefs) @ gram[:i, i], e.trace_coefs @ gram[:i, i]
        e.place(i, Newcomer(gram[:i, i], 1.0, move, f, 1, trace, v), i + 1, -i)
        e.begin_round()
        e.mix, e.inner = 0.3, float(np.sum(((e.coefs) @ e.gram) * (e.trace_scale * e.trace + 0.3 * e.coefs)))
    total, trace, coefs, direction = e.total, e.trace_coefs, e.coefs, rng.normal(size=(2, 6))
    e.turn(direction)
    np.testing.assert_allclose(e.coefs, coefs + direction, rtol=1e-12)
    np.testing.assert_allclose(e.trace_coefs, trace, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(e.total, total, rtol=1e-12)
    assert e.norm2 == pytest.approx(e.norm_of(gram) ** 2, rel=1e-9)
    assert e.inner == pytest.approx(float(np.sum((e.coefs @ gram) * e.trace_coefs)), rel=1e-9)
