"""Laws of every loss: its slope, its implicit step, and losses that users write."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from parts import agree, examples, label, stream

from gossamer import Learner
from gossamer.budgets import Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss, Novelty, Pinball, Squared, check_loss
from gossamer.rules import Implicit

LOSSES = examples("loss")
FIXED = [loss for loss in LOSSES if not loss.adapts]
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=label)

scores = st.floats(-20, 20)
targets = st.floats(-3, 3)
sizes = st.floats(-6, 6).map(lambda power: 10.0**power)


def target(loss, y):
    """A number made a target of the loss."""
    return float(np.copysign(1, y)) if loss.target == "binary" else y


def kinks(loss, y):
    """Scores at which a loss may have one."""
    level = loss.level or getattr(loss, "margin", 0.0)
    return [y, 0.0, level, -level, y * level, y - level, y + level]


def objective(loss, a, p, y, kappa, weight):
    return kappa * a * a / 2 + weight * float(loss.value(p + a * kappa, y))


@every_loss
@given(z=scores, y=targets)
def test_slope_is_a_subgradient(loss, z, y):
    """The slope lies between the rises of the value on both sides, on a kink too, and equals them where they agree."""
    y = target(loss, y)
    for at in (z, *kinks(loss, y)):
        h = 1e-6 * (1 + abs(at))
        here, slope = float(loss.value(at, y)), float(loss.slope(at, y))
        left = (here - float(loss.value(at - h, y))) / h
        right = (float(loss.value(at + h, y)) - here) / h
        assert left - 1e-4 <= slope <= right + 1e-4
        for other in (at - 1.3, at + 0.7, z):
            assert float(loss.value(other, y)) >= here + slope * (other - at) - 1e-9 * (1 + abs(here) + abs(slope))


def test_slopes_on_the_kink():
    """The choice on a kink is the papers': margin errors include it, alarms and tubes do not."""
    assert Hinge(0.5).slope(0.5, 1.0) == -1.0
    assert Hinge(0.0).slope(0.0, -1.0) == 1.0
    assert Novelty(0.5).slope(0.5, 0.0) == 0.0
    assert EpsilonInsensitive(0.5).slope(0.5, 1.0) == 0.0
    assert Pinball(0.3).slope(1.0, 1.0) == 0.0


@every_loss
def test_arrays_as_numbers(loss):
    """value and slope of an array are those of its entries."""
    z = np.linspace(-3, 3, 13)
    for y in (-1.0, 1.0):
        for function in (loss.value, loss.slope):
            assert np.array_equal(function(z, np.full(13, y)), [float(function(float(s), y)) for s in z])


@every_loss
@given(z=scores, y=targets)
def test_lipschitz(loss, z, y):
    """No slope is larger than the loss says."""
    assert abs(float(loss.slope(z, target(loss, y)))) <= loss.lipschitz


@every_loss
@given(p=scores, y=targets, kappa=sizes, weight=sizes)
def test_closed_form_is_the_root(loss, p, y, kappa, weight):
    """The implicit step of a loss equals the one found by root search."""
    y = target(loss, y)
    closed, root = loss.implicit(p, y, kappa, weight), Loss.implicit(loss, p, y, kappa, weight)
    size = abs(p) + abs(y) + abs(loss.level) + 1  # the score's rounding, in units of the step
    np.testing.assert_allclose(closed, root, rtol=1e-9, atol=1e-12 * size / kappa)


@every_loss
@given(p=scores, y=targets, kappa=sizes, weight=sizes)
def test_implicit_step_is_optimal(loss, p, y, kappa, weight):
    """No other step has a lower objective, and the loss never grows."""
    y = target(loss, y)
    a = loss.implicit(p, y, kappa, weight)
    least = objective(loss, a, p, y, kappa, weight)
    slack = 1e-9 * (abs(least) + kappa * a * a + weight * 1e-6)
    for move in (1e-4, 1e-2, 0.5, 3.0):
        for sign in (-1, 1):
            other = a + sign * move * max(abs(a), min(weight, 1 / kappa))
            assert objective(loss, other, p, y, kappa, weight) >= least - slack
    before, after = float(loss.value(p, y)), float(loss.value(p + a * kappa, y))
    assert after <= before + 1e-9 * (1 + abs(before) + abs(p))


@every_loss
@given(z=scores, y=targets, step=sizes)
def test_prox_is_the_implicit_step(loss, z, y, step):
    """prox(z) minimises (u - z)^2 / 2 + step * value(u)."""
    y = target(loss, y)
    u = loss.prox(z, y, step)
    least = (u - z) ** 2 / 2 + step * float(loss.value(u, y))
    for other in (u - 1e-3, u + 1e-3, z, y, u + 1.0, u - 1.0):
        assert (other - z) ** 2 / 2 + step * float(loss.value(other, y)) >= least - 1e-9 * (1 + step + abs(least))


@every_loss
def test_extremes_stay_finite(loss):
    """Huge and tiny k(x, x), weights and scores give finite steps, without a warning."""
    for kappa in (1e-290, 1e-9, 1.0, 1e9, 1e290):
        for weight in (1e-290, 1e-9, 1.0, 1e9, 1e290):
            for p in (-1e6, -800.0, 0.0, 800.0, 1e6):
                a = loss.implicit(p, 1.0, kappa, weight)
                assert math.isfinite(a)
                explicit = -weight * float(loss.slope(p, 1.0))
                assert abs(a) <= abs(explicit) * (1 + 1e-12)
                assert a * explicit >= 0


@pytest.mark.parametrize("m", [-1e4, -750.0, -701.0, 701.0, 750.0, 1e4])
def test_logistic_far_out(m):
    """Beyond |score| = 700 the logistic loss saturates: value, slope and step stay right."""
    loss = Logistic()
    assert loss.value(m, 1.0) == pytest.approx(max(0.0, -m), abs=1e-300)
    assert loss.slope(m, 1.0) == pytest.approx(-1.0 if m < 0 else 0.0, abs=1e-300)
    assert loss.implicit(m, 1.0, 1.0, 2.0) == pytest.approx(2.0 if m < 0 else 0.0, abs=1e-300)
    learner = Learner(Gaussian(1.0), loss, Implicit(C=1e4))
    assert np.isfinite(learner.learn(np.zeros((50, 1)), np.tile([1.0, -1.0], 25))).all()


@every_loss
def test_check_loss_accepts(loss):
    """Every loss of the package qualifies."""
    report = check_loss(loss)
    assert report, report.problems
    assert report.convex
    assert report.consistent


@pytest.mark.parametrize(
    ("value", "slope", "problem"),
    [
        (lambda z, y: math.sin(z), lambda z, y: math.cos(z), "not convex"),
        (lambda z, y: -((z - y) ** 2), lambda z, y: -2 * (z - y), "not convex"),
        (lambda z, y: min(abs(z - y), 1.0), lambda z, y: float(np.sign(z - y)) * (abs(z - y) < 1), "not convex"),
        (lambda z, y: (z - y) ** 2, lambda z, y: 3 * (z - y), "no subgradient"),
        (lambda z, y: abs(z - y), lambda z, y: float(np.sign(y - z)), "no subgradient"),
        (lambda z, y: math.nan, lambda z, y: 0.0, "not finite"),
    ],
    ids=["sine", "concave", "capped", "steep", "opposite", "nan"],
)
def test_check_loss_rejects(value, slope, problem):
    """A loss that is not convex, not finite, or whose slope is another's is found, and how."""
    part = type("Faulty", (Loss,), {"value": lambda _, z, y: value(z, y), "slope": lambda _, z, y: slope(z, y)})
    report = check_loss(part())
    assert not report
    assert any(problem in text for text in report.problems)
    assert report.convex == (problem != "not convex")
    if report.convex:
        assert report.consistent == (problem != "no subgradient")


def bare(loss):
    """The same loss as a user would write it: value and slope alone."""
    body = {"target": loss.target, "value": lambda _, z, y: loss.value(z, y), "slope": lambda _, z, y: loss.slope(z, y)}
    return type("Bare", (Loss,), body)()


@pytest.mark.parametrize("loss", FIXED, ids=label)
@pytest.mark.parametrize("rule", examples("rule"), ids=label)
def test_user_loss_learns_as_the_closed_form(loss, rule):
    """A loss given by value and slope learns what the built-in one does, under every rule."""
    if not agree(loss, rule) or not agree(bare(loss), rule):
        assert getattr(rule, "C", 0) == math.inf or loss.level == 0 or rule.fit_intercept or rule.joint
        return
    X, y = stream(loss, 60, seed=4)
    user, built_in = (Learner(Gaussian(0.5), part, rule, Smallest(12)) for part in (bare(loss), loss))
    np.testing.assert_allclose(user.learn(X, y), built_in.learn(X, y), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(user.coefs, built_in.coefs, rtol=1e-8, atol=1e-9)
    assert (user.backend, built_in.backend) == ("numpy", "native")


def test_user_loss_without_bound():
    """The root search takes steep losses, such as |r|^5, to their optimum."""

    class Fifth(Loss):
        def value(self, z, y):
            return abs(z - y) ** 5

        def slope(self, z, y):
            return 5 * (z - y) ** 4 * float(np.sign(z - y))

    assert check_loss(Fifth())
    a = Fifth().implicit(10.0, 0.0, 2.0, 3.0)
    assert a + 3.0 * Fifth().slope(10.0 + 2.0 * a, 0.0) == pytest.approx(0.0, abs=1e-6)
    X, y = stream(Squared(), 200, seed=1, features=1)
    scores = Learner(Gaussian(1.0), Fifth(), Implicit(C=5.0)).learn(X, y)
    assert np.abs(scores - y)[100:].mean() < np.abs(y)[100:].mean() / 1.5


def test_levels():
    """`at` moves the level of an adaptive loss and nothing else."""
    for loss in LOSSES:
        moved = loss.at(0.33)
        if loss.adapts:
            assert moved == dataclasses.replace(loss, **{loss.adaptive: 0.33})
            assert moved.level == 0.33
        else:
            assert moved == loss


def test_huber_forms():
    """The standard form is delta times the paper's."""
    paper, standard = Huber(0.4), Huber(0.4, standard=True)
    for z in np.linspace(-2, 2, 9):
        assert standard.value(z, 0.3) == pytest.approx(0.4 * paper.value(z, 0.3))
        assert standard.slope(z, 0.3) == pytest.approx(0.4 * paper.slope(z, 0.3))
        assert standard.implicit(z, 0.3, 2.0, 1.5) == pytest.approx(paper.implicit(z, 0.3, 2.0, 0.6))
