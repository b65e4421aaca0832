"""Laws of the budgets: what leaves, what stays, and how far the result is from keeping everything."""

import itertools
import math

import numpy as np
import pytest
from parts import agree, assert_same, cut, examples, facts, label, rule_for, stream

from gossamer import Learner
from gossamer.budgets import REFUSE, Budget, Forgetron, Fourier, Oldest, Project, Smallest
from gossamer.kernels import Gaussian, Linear, Polynomial
from gossamer.losses import EpsilonInsensitive, Hinge, Logistic, Squared
from gossamer.rules import Example, Gradient, Implicit

BUDGETS = examples("budget")
BACKENDS = pytest.mark.parametrize("backend", ["auto", "numpy"])


def eager(kernel, loss, rule, X, y, choose, expired=lambda births, t: []):
    """Learn with explicit coefficients and Gram matrix; `choose` names the index among terms + newcomer that leaves."""
    gram, diag = kernel(X, X), kernel.diag(X)
    terms, scores = {}, []  # row -> coefficient, oldest first
    for t in range(len(X)):
        for row in [row for row in terms if row in expired(terms, t)]:
            del terms[row]
        value = sum(a * gram[row, t] for row, a in terms.items())
        scores.append(value)
        step = rule.step(loss, Example(value, 0.0, y[t], diag[t], rule.rates(t + 1, 1)[0]))
        terms = {row: step.keep * a for row, a in terms.items()}
        if step.coefficient:
            terms[t] = step.coefficient
            gone = choose(list(terms), np.array(list(terms.values())), diag[list(terms)])
            if gone is not None:
                del terms[gone]
    return np.array(scores), terms


def smallest(size, by):
    def choose(rows, coefs, diag):
        weights = np.abs(coefs) * (np.sqrt(diag) if by == "norm" else 1)
        return rows[int(np.argmin(weights))] if len(rows) > size else None

    return choose


def check(learner, X, y, scores, terms):
    np.testing.assert_allclose(learner.learn(X, y), scores, rtol=1e-9, atol=1e-9)
    order = np.argsort(learner.births)
    assert (learner.births[order] - 1).tolist() == list(terms)
    np.testing.assert_allclose(learner.coefs[order], list(terms.values()), rtol=1e-9)
    assert np.array_equal(learner.points[order], X[list(terms)])


@BACKENDS
@pytest.mark.parametrize("by", ["norm", "coefficient"])
@pytest.mark.parametrize("size", [1, 2, 7, 20, 33])
def test_smallest(size, by, backend):
    """Smallest drops the least |coefficient| (times the root of k(x, x)), the newcomer included."""
    X, y = stream(Squared(), 150, seed=size)
    for kernel in (Gaussian(0.5), Polynomial(2, 0.5)):
        rule = Implicit(C=0.8, reg=0.02)
        learner = Learner(kernel, Squared(), rule, Smallest(size, by), backend=backend)
        check(learner, X, y, *eager(kernel, Squared(), rule, X, y, smallest(size, by)))


@BACKENDS
@pytest.mark.parametrize("size", [1, 2, 7, 20, 33])
def test_oldest_by_count(size, backend):
    """Oldest(size) keeps the youngest terms."""
    X, y = stream(Hinge(), 150, seed=size)
    rule = Gradient(0.4, 0.05)
    learner = Learner(Gaussian(0.5), Hinge(), rule, Oldest(size), backend=backend)
    drop = lambda rows, coefs, diag: rows[0] if len(rows) > size else None  # noqa: E731
    check(learner, X, y, *eager(Gaussian(0.5), Hinge(), rule, X, y, drop))


@BACKENDS
@pytest.mark.parametrize("age", [1, 2, 7, 33])
def test_oldest_by_age(age, backend):
    """Oldest(age=tau): round t sees only terms of the rounds t - tau ... t - 1, however many rounds stored nothing."""
    X, y = stream(Hinge(), 150, seed=age)
    rule = Gradient(0.4, 0.05)
    learner = Learner(Gaussian(0.5), Hinge(), rule, Oldest(age=age), backend=backend)
    old = lambda rows, t: [row for row in rows if row < t - age]  # noqa: E731
    scores, terms = eager(Gaussian(0.5), Hinge(), rule, X, y, lambda *_: None, old)
    np.testing.assert_allclose(learner.learn(X, y), scores, rtol=1e-9, atol=1e-9)
    assert set(terms) >= set((learner.births - 1).tolist()) >= {row for row in terms if row >= 150 - age}


@pytest.mark.parametrize("budget", BUDGETS, ids=label)
def test_never_more_than_the_limit(budget):
    """At most `limit` terms take part in a round."""
    loss = Hinge() if isinstance(budget, Forgetron) else Squared()
    X, y = stream(loss, 60, seed=1)
    learner = Learner(Gaussian(0.5), loss, rule_for(budget, Gradient(0.3, 0.01), loss), budget)
    for t in range(60):
        learner.learn_one(X[t], y[t])
        age = getattr(budget, "age", None) or math.inf
        taking_part = (learner.births >= t + 2 - age).sum()
        assert taking_part <= (budget.limit or math.inf)
        assert taking_part <= t + 1 or isinstance(budget, Fourier)  # its coordinates are there from the start
    assert budget.limit is None or learner.budget.limit < 60 or isinstance(budget, Project)


@pytest.mark.parametrize("loss", examples("loss"), ids=label)
def test_a_budget_never_reached(loss):
    """A budget that is never full learns as no budget, bit for bit."""
    for rule in examples("rule"):
        if not agree(loss, rule):
            continue
        X, y = stream(loss, 40, seed=2)
        free = Learner(Gaussian(0.5), loss, rule)
        scores, known = free.learn(X, y), facts(free)
        for budget in (Smallest(40), Smallest(41, by="coefficient"), Oldest(40), Oldest(age=40), Oldest(50, 60)):
            learner = Learner(Gaussian(0.5), loss, rule, budget)
            assert np.array_equal(learner.learn(X, y), scores)
            found = facts(learner)
            assert found.pop("norm") == pytest.approx(known["norm"], abs=1e-7)
            assert_same(found, {name: fact for name, fact in known.items() if name != "norm"})


@BACKENDS
def test_ties_drop_the_oldest(backend):
    """With equal weights and no decay the smallest is the oldest."""
    X, y = stream(Hinge(), 100, seed=3)
    rule = Gradient(0.5, 0.0)
    scores = Learner(Gaussian(5.0), Hinge(), rule, Oldest(9), backend=backend).learn(X, y)
    for by in ("norm", "coefficient"):
        learner = Learner(Gaussian(5.0), Hinge(), rule, Smallest(9, by), backend=backend)
        assert np.array_equal(learner.learn(X, y), scores)
        assert learner.updates > 20


@BACKENDS
def test_the_newcomer_may_be_refused(backend):
    """A newcomer lighter than every term is kept out; the others only decay, and it counts as an update."""
    X = np.eye(4)
    learner = Learner(Linear(), Squared(), Implicit(C=1.0, reg=0.5), Smallest(3), backend=backend)
    learner.learn(X[:3], [4.0, 5.0, 6.0])
    before = learner.coefs
    learner.learn(X[3:], [0.01])
    np.testing.assert_allclose(learner.coefs, before / 1.5, rtol=1e-12)
    assert learner.births.tolist() == [1, 2, 3]
    assert (learner.updates, learner.steps) == (4, 4)
    learner.learn(X[3:], [100.0])
    assert learner.births.tolist() == [5, 2, 3]


@BACKENDS
@pytest.mark.parametrize("by", ["norm", "coefficient"])
def test_what_leaves_weighs_least(by, backend):
    """After each round every term that stayed weighs at least as much as the one that left."""
    X, y = stream(Logistic(), 80, seed=4)
    kernel, rule = Polynomial(2), Implicit(C=1.0, reg=0.05)
    learner = Learner(kernel, Logistic(), rule, Smallest(6, by), backend=backend)
    weights, left = {}, 0
    for t in range(80):
        score = learner.learn_one(X[t], y[t])
        kappa = float(kernel.diag(X[t : t + 1])[0])
        known = {birth: weight / 1.05 for birth, weight in weights.items()}
        step = rule.step(Logistic(), Example(score, 0.0, y[t], kappa))
        known[t + 1] = abs(step.coefficient) * (math.sqrt(kappa) if by == "norm" else 1.0)
        weights = {birth: known.pop(birth) for birth in learner.births.tolist()}
        assert len(known) <= 1
        for weight in known.values():
            left += 1
            assert weight <= min(weights.values()) * (1 + 1e-9)
    assert left > 40


@pytest.mark.parametrize("loss", [Hinge(), EpsilonInsensitive(0.1), Logistic()], ids=label)
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Polynomial(2, 0.2)], ids=label)
def test_tracking_bound(loss, kernel):
    """||ILK - SILK|| <= (C X / reg) (1 - tau)^omega always, and |a_i| <= c (1 - tau)^age (ALGORITHMS 3.3, 3.4)."""
    X, y = stream(loss, 200, seed=5)
    rule = Implicit(C=0.5, reg=0.1)
    radius = math.sqrt(kernel.diag(X).max())
    for size, kind in itertools.product((5, 20), (Smallest, Oldest)):
        whole, small = Learner(kernel, loss, rule), Learner(kernel, loss, rule, kind(size))
        for t in range(200):
            for learner in (whole, small):
                learner.learn(X[t : t + 1], cut(y, slice(t, t + 1)))
            points = np.concatenate([whole.points, small.points])
            coefs = np.concatenate([whole.coefs, -small.coefs])
            gap = math.sqrt(max(0.0, coefs @ kernel(points, points) @ coefs))
            assert gap <= 0.5 * radius / 0.1 * 1.1**-size * (1 + 1e-9)
            assert (np.abs(small.coefs) <= 0.5 * 1.1 ** -(t + 2.0 - small.births) * (1 + 1e-9)).all()


def test_user_budget():
    """A budget written in Python runs in the NumPy loop, sees the expansion and may refuse."""

    class FirstCome(Budget):
        def choose(self, expansion, coefficient, kappa):
            return expansion.size if expansion.size < 5 else REFUSE

    X, y = stream(Squared(), 30, seed=6)
    learner = Learner(Gaussian(0.5), Squared(), Implicit(), FirstCome())
    learner.learn(X, y)
    assert learner.births.tolist() == [1, 2, 3, 4, 5]
    assert learner.backend == "numpy"
