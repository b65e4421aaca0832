"""Laws of the rules: optimal steps, known special cases, norm bounds, adaptive levels, schedules."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from parts import agree, assert_close, cut, decay, examples, facts, label, label_kernel, learn_rows, size_of, stream

from gossamer import Learner
from gossamer.kernels import Gaussian, Linear, Polynomial
from gossamer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Novelty, Squared
from gossamer.rules import Example, Gradient, Implicit, Perceptron

LOSSES = examples("loss")
FIXED = [loss for loss in LOSSES if not loss.adapts]
KERNELS = [Gaussian(0.5), Polynomial(2, 0.5), Linear()]
sizes = st.floats(-3, 3).map(lambda power: 10.0**power)


def exact(loss):
    """Whether the implicit step is the minimiser: not where the paper's runner-up stands for all other classes."""
    return getattr(loss, "step", "exact") == "exact"


def norm2_of(loss, coefs, gram):
    """||f||^2 from a matrix of coefficients, a row per output."""
    return float(np.sum((coefs @ gram) * (label_kernel(loss, len(coefs)) @ coefs)))


def distance(kernel, one, other):
    """||f - g|| of two learners, from their points and coefficients."""
    points = np.concatenate([one.points, other.points])
    coefs = np.concatenate([np.atleast_2d(one.coefs), -np.atleast_2d(other.coefs)], axis=1)
    return math.sqrt(max(0.0, norm2_of(one.loss, coefs, kernel(points, points))))


# ------------------------------------------------------------------------------------------------- implicit steps


@pytest.mark.parametrize("loss", [loss for loss in FIXED if exact(loss)], ids=label)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("kernel", KERNELS, ids=label)
def test_implicit_steps_are_optimal(loss, fit_intercept, kernel):
    """No move in the span nor of the offset lowers ||f - f_t||^2 / 2 + rate (reg / 2 ||f||^2 + C loss)."""
    rule = Implicit(C=1.5, rate=0.8, reg=0.1, fit_intercept=fit_intercept)
    if not agree(loss, rule):
        assert (fit_intercept and loss.target in ("none", "label")) or loss.margin == 0
        return
    many = loss.target == "label"
    rng = np.random.default_rng(0)
    X, y = stream(loss, 25, seed=11)
    learner = Learner(kernel, loss, rule)
    gram = kernel(X, X)
    for t in range(len(X)):
        before, b, births = np.atleast_2d(learner.coefs), learner.offset, learner.births
        learner.learn(X[t : t + 1], cut(y, slice(t, t + 1)))
        g, c = np.zeros((len(np.atleast_2d(learner.coefs)), len(X))), learner.offset  # the classes known by now
        f = np.zeros_like(g)
        f[: len(before), births - 1] = before
        g[:, learner.births - 1] = learner.coefs

        def objective(g, c, f=f, b=b, t=t):
            norm2 = norm2_of(loss, g - f, gram) + rule.rate * rule.reg * norm2_of(loss, g, gram) + (c - b) ** 2
            scores = label_kernel(loss, len(g)) @ g @ gram[t]
            target = 0.0 if y is None else y[t]
            loss_value = loss.value(scores, int(target)) if many else loss.value(scores[0] + c, target)
            return norm2 / 2 + rule.rate * rule.C * float(loss_value)

        least = objective(g, c)
        for i, size in itertools.product([t, *rng.integers(0, t + 1, 3)], (-1.0, -0.05, 1e-3, 0.3)):
            moved = g.copy()
            moved[:, i] += size * (rng.normal(size=len(g)) if many else 1.0)
            assert objective(moved, c) >= least - 1e-12 * (1 + least)
        if fit_intercept:
            for size in (-0.5, -1e-3, 1e-3, 0.5):
                assert objective(g, c + size) >= least - 1e-12 * (1 + least)


@given(value=st.floats(-3, 3), level=st.floats(0, 2), y=st.floats(-3, 3), kappa=sizes, rate=sizes, C=sizes)
@pytest.mark.parametrize("loss", [Novelty(nu=0.3), EpsilonInsensitive(nu=0.3)], ids=label)
def test_joint_steps_are_optimal(loss, value, level, y, kappa, rate, C):
    """The joint step minimises over the coefficient and the level together (ALGORITHMS 2.3a)."""
    rule, sign = Implicit(C=C, reg=0.2, joint=True), 1 if isinstance(loss, Novelty) else -1
    step = rule.step(loss.at(level), Example(value, 0.0, y, kappa, rate))
    grow = 1 + rate * rule.reg
    assert step.keep == pytest.approx(1 / grow)

    def objective(a, rho):
        value_there = loss.at(rho).value(value / grow + a * kappa, y) - sign * loss.nu * rho
        return grow / 2 * kappa * a * a + rate * C * value_there + (rho - level) ** 2 / 2

    least = objective(step.coefficient, step.level)
    for size, other in itertools.product((0.0, 1e-3, 0.1, 2.0), repeat=2):
        for s, t in itertools.product((-1, 1), repeat=2):
            a = step.coefficient + s * size * max(abs(step.coefficient), 1e-3 / kappa)
            rho = step.level + t * other
            if sign > 0 or rho >= 0:
                assert objective(a, rho) >= least - 1e-9 * (1 + abs(least) + kappa * a * a + rate * C)


def test_joint_identity():
    """The mean of beta = a / c is nu - (margin moved) / (rate C T), and 0 <= a <= c."""
    X, _ = stream(Novelty(), 400, seed=1)
    learner = Learner(Gaussian(1.0), Novelty(0.0, nu=0.2), Implicit(C=0.5, rate=0.4, joint=True))
    learner.learn(X)
    beta = learner.coefs / (0.4 * 0.5)
    assert beta.min() >= 0
    assert beta.max() <= 1 + 1e-12
    assert beta.sum() / 400 == pytest.approx(0.2 - learner.level / (0.4 * 0.5 * 400), rel=1e-9)


def test_passive_aggressive():
    """PA-I is the implicit rule with reg = 0, rate = 1."""
    X, y = stream(Hinge(), 150, seed=2)
    learner = Learner(Polynomial(2), Hinge(), Implicit(C=0.05))
    gram, coefs, scores = Polynomial(2)(X, X), np.zeros(150), np.zeros(150)
    for t in range(150):
        scores[t] = gram[t] @ coefs
        coefs[t] = y[t] * min(0.05, max(0.0, 1 - y[t] * scores[t]) / gram[t, t])
    np.testing.assert_allclose(learner.learn(X, y), scores, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(learner.coefs, coefs[coefs != 0], rtol=1e-9)


def test_perceptron():
    """The perceptron is Gradient(rate=1, reg=0) with Hinge(0); another rate scales it and changes no sign."""
    X, y = stream(Hinge(), 150, seed=3)
    learner, scaled = (Learner(Gaussian(0.5), Hinge(0.0), Gradient(rate, 0.0)) for rate in (1.0, 0.25))
    gram, coefs, scores = Gaussian(0.5)(X, X), np.zeros(150), np.zeros(150)
    for t in range(150):
        scores[t] = gram[t] @ coefs
        coefs[t] = y[t] * (y[t] * scores[t] <= 0)
    np.testing.assert_allclose(learner.learn(X, y), scores, atol=1e-12)
    assert learner.updates == learner.mistakes == np.count_nonzero(coefs) == len(learner.coefs)
    np.testing.assert_allclose(scaled.learn(X, y), scores / 4, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=label)
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("joint", [False, True])
def test_only_products_with_the_rate_matter(loss, fit_intercept, joint):
    """(rate, reg, C) learns as (1, rate reg, rate C)."""
    one = Implicit(C=1.2, rate=0.3, reg=0.2, fit_intercept=fit_intercept, joint=joint)
    other = Implicit(C=0.36, rate=1.0, reg=0.06, fit_intercept=fit_intercept, joint=joint)
    if not agree(loss, one):
        assert not agree(loss, other)
        return
    X, y = stream(loss, 80, seed=5)
    first, second = Learner(Gaussian(0.5), loss, one), Learner(Gaussian(0.5), loss, other)
    np.testing.assert_allclose(first.learn(X, y), second.learn(X, y), rtol=1e-9, atol=1e-10)
    assert_close(facts(first), facts(second))


@pytest.mark.parametrize("loss", [loss for loss in FIXED if exact(loss)], ids=label)
@pytest.mark.parametrize("kernel", KERNELS, ids=label)
def test_contraction(loss, kernel):
    """Two models fed the same example come nearer by 1 / (1 + rate reg) at least: an exact implicit step is a prox."""
    rule = Implicit(C=0.7, rate=0.5, reg=0.1)
    if not agree(loss, rule):
        assert loss.margin == 0
        return
    X, y = stream(loss, 80, seed=6)
    one, other = Learner(kernel, loss, rule), Learner(kernel, loss, rule)
    one.learn(X[:30], cut(y, slice(0, 30)))
    other.learn(X[30:50], cut(y, slice(30, 50)))
    if loss.target == "label":  # both know the same classes
        assert len(one.coefs) == len(other.coefs) == 4
    for t in range(50, 80):
        before = distance(kernel, one, other)
        for learner in (one, other):
            learner.learn(X[t : t + 1], cut(y, slice(t, t + 1)))
        assert distance(kernel, one, other) <= before / 1.05 * (1 + 1e-7) + 1e-9


@pytest.mark.parametrize("loss", [loss for loss in FIXED if math.isfinite(loss.lipschitz)], ids=label)
@pytest.mark.parametrize("rule", [Gradient(0.4, 0.3), Implicit(C=1.0, rate=0.4, reg=0.3)], ids=label)
def test_norm_bounds(loss, rule):
    """||f|| <= lipschitz C X / reg, |f(x)| <= X ||f||, and each coefficient is at most the step size when it comes.

    With several classes a step moves along differences k(x, y) - k(x, y'), as long as the label kernel says.
    """
    if not agree(loss, rule):
        assert loss.margin == 0
        return
    X, y = stream(loss, 200, seed=7)
    kernel = Polynomial(2, 0.3)
    learner = Learner(kernel, loss, rule)
    labels = label_kernel(loss, 4) if loss.target == "label" else np.ones((1, 1))
    apart = math.sqrt(max(labels[a, a] + labels[b, b] - 2 * labels[a, b] for a, b in np.ndindex(labels.shape)))
    radius, apart, widest = math.sqrt(kernel.diag(X).max()), apart or 1.0, math.sqrt(labels.max())
    most = rule.rate if isinstance(rule, Gradient) else rule.rate / (1 + rule.rate * rule.reg)
    for t in range(200):
        scores = learner.learn(X[t : t + 1], cut(y, slice(t, t + 1)))
        assert size_of(scores) <= loss.lipschitz * apart * widest * radius**2 / rule.reg
        assert learner.norm <= loss.lipschitz * apart * radius / rule.reg
        if len(learner.births) and learner.births[-1] == t + 1:
            last = np.atleast_2d(learner.coefs)[:, -1]
            assert np.abs(last).max() <= most * loss.lipschitz * (1 + 1e-12)
            if loss.target == "binary":
                assert last[0] * y[t] > 0
            if loss.target == "label":
                assert (np.sign(last) == np.where(np.arange(len(last)) == y[t], 1, -np.sign(np.abs(last)))).all()
                assert abs(last.sum()) <= 1e-12 * np.abs(last).max()


# ------------------------------------------------------------------------------------------------- adaptive levels


@pytest.mark.parametrize("rule", examples("rule"), ids=label)
@pytest.mark.parametrize("loss", [Novelty(0.0, nu=0.3), Hinge(0.5, nu=0.3)], ids=label)
def test_alarm_identity(loss, rule):
    """sum of rate_t ([alarm] - nu) = margin before - margin after, exactly; the step is rate_t C where there is a C.

    That is the explicit rule for the level; joint steps have their own identity, below. SVMD's rates are its own.
    """
    if not agree(loss, rule) or getattr(rule, "joint", False):
        return
    X, y = stream(loss, 300, seed=8)
    learner = Learner(Gaussian(1.0), loss, rule)
    rows, rates = [], []
    for t in range(300):
        rows.append(learner.learn(X[t : t + 1], cut(y, slice(t, t + 1)), with_levels=True))
        rates.append(learner.state().rate)
    scores, margins = np.concatenate(rows, axis=1)
    alarms = scores < margins if y is None else y * scores <= margins
    steps = (np.array(rates) if rule.needs_trace else rule.rates(1, 300)) * (getattr(rule, "C", None) or 1.0)
    assert 0 < alarms.sum() < 300
    assert (steps * (alarms - loss.nu)).sum() == pytest.approx(loss.level - learner.level, abs=1e-9)
    if isinstance(rule, (Gradient, Perceptron)):
        assert learner.updates == alarms.sum()


def test_alarm_fraction():
    """|alarm fraction - nu| <= (X^2 / reg + rate) / (rate T)."""
    X, _ = stream(Novelty(), 5000, seed=9)
    for nu in (0.05, 0.3):
        scores, margins = Learner(Gaussian(1.0), Novelty(0.0, nu=nu), Gradient(0.1, 0.1)).learn(X, with_levels=True)
        assert abs((scores < margins).mean() - nu) <= (1 / 0.1 + 0.1) / (0.1 * 5000)


@pytest.mark.parametrize("rule", [Gradient(0.05, 0.01), Implicit(C=0.5, rate=0.1, reg=0.01)], ids=label)
@pytest.mark.parametrize("loss", [EpsilonInsensitive(5.0, nu=0.3), Huber(5.0, nu=0.3)], ids=label)
def test_tube_identity(loss, rule):
    """The fraction outside the tube is nu + (width moved) / (rate T), where the width met no bound."""
    X, y = stream(loss, 2000, seed=10)
    learner = Learner(Gaussian(1.0), loss, rule)
    scores, widths = learner.learn(X, y, with_levels=True)
    outside = np.abs(y - scores) > widths
    assert widths.min() > 0.01
    rate = rule.rate * getattr(rule, "C", 1.0)
    assert outside.mean() == pytest.approx(0.3 + (learner.level - loss.level) / (rate * 2000), abs=1e-9)
    assert abs(outside[-500:].mean() - 0.3) < 0.1


def test_levels_stay_in_range():
    """epsilon never falls below 0 nor delta below its smallest value."""
    X, y = stream(Squared(), 300, seed=12)
    for rule in (Gradient(0.5, 0.01), Implicit(C=5.0)):
        _, tubes = Learner(Gaussian(0.1), EpsilonInsensitive(0.1, nu=0.9), rule).learn(X, y, with_levels=True)
        _, widths = Learner(Gaussian(0.1), Huber(0.1, nu=0.9), rule).learn(X, 0 * y, with_levels=True)
        assert tubes.min() == 0
        assert widths.min() == Huber.smallest


def test_huber_by_gradient():
    """delta moves by rate / 2 (min(1, (r / delta)^2) - nu)."""
    X, y = stream(Squared(), 50, seed=13)
    learner = Learner(Gaussian(1.0), Huber(1.0, nu=0.4, adapts_by="gradient"), Gradient(0.2, 0.1))
    scores, widths = learner.learn(X, y, with_levels=True)
    expected = widths + 0.1 * (np.minimum(1, ((y - scores) / widths) ** 2) - 0.4)
    np.testing.assert_allclose([*widths[1:], learner.level], expected, rtol=1e-12)


# ------------------------------------------------------------------------------------------ schedules and the rest


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("make", [lambda s: Gradient(0.5, 0.1, s), lambda s: Implicit(2.0, 0.5, 0.1, s)])
def test_named_schedules_are_functions(make, backend):
    """A function of t = 1, 2, ... does what the named schedule does, across batches and single rows."""
    X, y = stream(Logistic(), 60, seed=14)
    seen = []
    functions = {"constant": lambda t: 1.0, "inverse_sqrt": lambda t: seen.append(t) or 1 / math.sqrt(t)}
    for name, function in functions.items():
        one, other = (Learner(Gaussian(0.5), Logistic(), make(s), backend=backend) for s in (name, function))
        scores = np.concatenate([other.learn(X[:25], y[:25]), learn_rows(other, X[25:], y[25:])])
        np.testing.assert_allclose(one.learn(X, y), scores, rtol=1e-12)
    assert seen == list(range(1, 61))
    np.testing.assert_array_equal(make("inverse_sqrt").rates(4, 2), [0.25, 0.5 / math.sqrt(5)])


@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_inverse_linear_rate(backend):
    """rate = 1 / (reg t) is allowed although rate * reg = 1 at t = 1; f is then the mean of the slopes over reg."""
    X, y = stream(Hinge(), 40, seed=15)
    learner = Learner(Gaussian(0.5), Hinge(), Gradient(1 / 0.5, 0.5, lambda t: 1 / t), backend=backend)
    scores = learner.learn(X, y)
    gram, errors = Gaussian(0.5)(X, X), np.zeros(40)
    for t in range(40):
        score = gram[t] @ (errors * y) / (0.5 * max(t, 1))
        assert scores[t] == pytest.approx(score, rel=1e-9, abs=1e-9)
        errors[t] = y[t] * score <= 1
    assert learner.steps == 40


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("rule", examples("rule"), ids=label)
def test_zero_diagonal(rule, backend):
    """Where k(x, x) = 0 nothing is stored, but f decays and offset and level move."""
    for loss in LOSSES:
        if not agree(loss, rule):
            continue
        at = 12 if loss.target == "label" else 3  # by then there are several classes
        X, y = stream(loss, at + 1, seed=16)
        X[at] = 0.0
        learner = Learner(Linear(), loss, rule, backend=backend)
        learner.learn(X[:at], cut(y, slice(0, at)))
        before, level, offset, updates = learner.coefs, learner.level, learner.offset, learner.updates
        learner.learn(X[at:], cut(y, slice(at, at + 1)))
        assert learner.updates == updates
        coefs = np.zeros_like(learner.coefs)
        coefs[: len(before)] = decay(learner) * before
        np.testing.assert_allclose(learner.coefs, coefs, rtol=1e-12)
        if rule.fit_intercept and isinstance(loss, (Squared, Logistic)):
            assert learner.offset != offset
        if loss.adapts and type(loss) is not Huber and loss.level:
            assert learner.level != level


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_repeated_points(dtype, backend):
    """The same example again moves nothing once its loss is 0; with the other label both are stored."""
    x, rule = np.array([[0.3, -1.7, 2.2]], dtype=dtype), Implicit(C=10.0)
    for kernel in (Gaussian(0.5), Polynomial(3), Linear()):
        learner = Learner(kernel, Hinge(), rule, backend=backend)
        scores = learner.learn(np.repeat(x, 5, axis=0), np.ones(5))
        np.testing.assert_allclose(scores, [0, 1, 1, 1, 1], rtol=1e-5)
        assert (learner.updates, len(learner.coefs)) == (1, 1)
        learner.learn(x, [-1.0])
        assert len(learner.coefs) == 2
        assert learner.score(x)[0] == pytest.approx(-1.0, rel=1e-5)


def test_infinite_weight_projects():
    """C = inf, reg = 0 interpolates: the loss of the example just learned is 0."""
    X, y = stream(Squared(), 20, seed=17)
    for loss in (Squared(), EpsilonInsensitive(0.1), Huber(0.5)):
        learner = Learner(Gaussian(1.0), loss, Implicit(C=math.inf))
        for t in range(20):
            learner.learn_one(X[t], y[t])
            assert loss.value(learner.score_one(X[t]), y[t]) == pytest.approx(0, abs=1e-9)


def test_truncation_proposition():
    """||f - its last tau terms|| <= (1 - rate reg)^tau X / reg (Kivinen et al. 2004, proposition 1)."""
    X, y = stream(Hinge(), 300, seed=18)
    learner, kernel = Learner(Gaussian(0.5), Hinge(), Gradient(0.5, 0.1)), Gaussian(0.5)
    learner.learn(X, y)
    for tau in (1, 5, 20, 80):
        old = learner.births < 301 - tau
        points, coefs = learner.points[old], learner.coefs[old]
        assert math.sqrt(max(0.0, coefs @ kernel(points, points) @ coefs)) <= 0.95**tau / 0.1
