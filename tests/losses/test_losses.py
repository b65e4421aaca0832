"""Laws of every loss: its slope, its implicit step, and losses that users write."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from parts import agree, compiled, examples, label, label_kernel, stream

from gossamer import Learner
from gossamer.kernels import Gaussian
from gossamer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss, Novelty, Pinball, Squared, check_loss
from gossamer.rules import ALMA, ROMMA, SVMD, Adatron, Gradient, Implicit, PassiveAggressive, Projection

LOSSES = [loss for loss in examples("loss") if loss.target != "label"]  # of one score
LABEL = [loss for loss in examples("loss") if loss.target == "label"]  # of one per class
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=label)
every_label_loss = pytest.mark.parametrize("loss", LABEL, ids=label)

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


def test_logistic_steps_do_not_go_to_and_fro():
    """Far on the wrong side, with a large k(x, x) and weight, Newton from a bad start jumps over the root for ever."""
    loss = Logistic()
    for p in np.linspace(-3.2, -2.6, 30).tolist():
        for kappa in np.linspace(5.0, 16.0, 15).tolist():
            for weight in np.linspace(2.0, 7.0, 15).tolist():
                a = loss.implicit(p, 1.0, kappa, weight)
                assert a == pytest.approx(-weight * float(loss.slope(p + a * kappa, 1.0)), rel=1e-12)


@every_loss
def test_check_loss_accepts(loss):
    """Every loss of the package qualifies."""
    report = check_loss(loss)
    assert report, report.problems
    assert report.convex
    assert report.consistent


@every_label_loss
def test_check_loss_takes_single_scores(loss):
    """A loss of many scores is refused in a sentence; its laws are tested below."""
    with pytest.raises(ValueError, match="The 'loss' parameter of check_loss must be a loss of a single score"):
        check_loss(loss)


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
    """The same loss as a user would write it: value and slope, and the second derivative that explicit steps need."""
    body = {"target": loss.target, "bend": lambda _, z, y, v: loss.bend(z, y, v)}
    body |= {"curvature": lambda _, z, y: loss.curvature(z, y)}
    body |= {"value": lambda _, z, y: loss.value(z, y), "slope": lambda _, z, y: loss.slope(z, y)}
    return type("Bare", (Loss,), body)()


@pytest.mark.parametrize(
    "rule",
    [*examples("rule", True), Implicit(0.7, 0.5, 0.1, "inverse_sqrt", True), Gradient(fit_intercept=True), SVMD(C=0.7)],
    ids=label,
)
def test_user_loss_learns_as_the_closed_form(rule):
    """A loss given by value and slope learns what the built-in one does, under every rule that takes any loss. With
    several classes that is every rule without an implicit step, and classes come as they do."""
    tried = 0
    for loss in [loss for loss in (*LOSSES, *LABEL) if not loss.adapts]:
        if getattr(loss, "classes", None) is not None or not agree(loss, rule) or not agree(bare(loss), rule):
            continue
        X, y = stream(loss, 60, seed=4)
        user, built_in = (Learner(Gaussian(0.5), part, rule) for part in (bare(loss), loss))
        np.testing.assert_allclose(user.learn(X, y), built_in.learn(X, y), rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(user.coefs, built_in.coefs, rtol=1e-8, atol=1e-9)
        assert (user.backend, built_in.backend) == ("numpy", "native" if compiled(loss, rule) else "numpy")
        tried += 1
    own = (Projection, PassiveAggressive, ALMA, ROMMA, Adatron)  # these know their losses by name
    assert (tried == 0) == isinstance(rule, own)


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
    for loss in (*LOSSES, *LABEL):
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


# ----------------------------------------------------------------------------------------------- a score per class


@st.composite
def many_scores(draw):
    """Scores of four classes, often with ties and on a kink, and the right class."""
    z = draw(st.lists(st.one_of(st.sampled_from([-1.0, 0.0, 0.3, 0.7, 1.0]), scores), min_size=4, max_size=4))
    return np.array(z), draw(st.integers(0, 3))


def of_differences(loss):
    """Whether a number added to all scores changes nothing."""
    z = np.array([0.2, -0.4, 0.1, 0.3])
    return abs(loss.value(z + 0.1, 0) - loss.value(z, 0)) < 1e-12


def many_objective(loss, a, p, y, kappa, weight):
    K = kappa * label_kernel(loss, len(p))
    return a @ K @ a / 2 + weight * loss.value(p + K @ a, y)


@every_label_loss
@given(at=many_scores(), seed=st.integers(0, 99))
def test_slope_of_classes_is_a_subgradient(loss, at, seed):
    """value(u) >= value(z) + <slope(z), u - z> for any u; the slope pulls only the right class up, and sums to 0 if
    differences of scores alone count."""
    (z, y), rng = at, np.random.default_rng(seed)
    here, slope = loss.value(z, y), loss.slope(z, y)
    assert abs(slope.sum()) <= 1e-12 or not of_differences(loss)
    assert slope[y] <= 0
    assert (np.delete(slope, y) >= 0).all()
    assert np.abs(slope).max() <= loss.lipschitz
    for size in (1e-3, 0.1, 1.0, 10.0):
        for step in (*np.eye(4), *-np.eye(4), *rng.normal(size=(4, 4))):
            rise = loss.value(z + size * step, y) - here
            assert rise >= size * slope @ step - 1e-9 * (1 + abs(here))


@every_label_loss
@given(at=many_scores(), seed=st.integers(0, 99))
def test_bend_of_classes_is_a_second_derivative(loss, at, seed):
    """bend(z, v) is how the slope changes along v, where it is smooth."""
    (z, y), v = at, np.random.default_rng(seed).normal(size=4)
    h, bend = 1e-5, loss.bend(z, y, v)
    change = (loss.slope(z + h * v, y) - loss.slope(z - h * v, y)) / (2 * h)
    bends = [loss.bend(z + s * h * v, y, v) for s in (-2.0, 2.0)]
    smooth = np.array_equal(loss.slope(z + h * v, y), loss.slope(z - h * v, y)) or loss.twin == "softmax"
    if smooth or (loss.twin == "one_vs_rest" and np.array_equal(*bends)):
        np.testing.assert_allclose(bend, change, atol=1e-5)


@every_label_loss
@given(at=many_scores(), kappa=sizes, weight=sizes, seed=st.integers(0, 99))
def test_implicit_step_of_classes_is_optimal(loss, at, kappa, weight, seed):
    """No other coefficients have a lower objective; they sum to 0 if differences of scores alone count, and lift only
    the right class, by ``weight`` times the steepest slope at most.
    The paper's runner-up step only promises the latter."""
    (p, y), rng = at, np.random.default_rng(seed)
    a = loss.implicit_many(p, y, kappa, weight, p)
    least = many_objective(loss, a, p, y, kappa, weight)
    size = max(np.abs(a).max(), min(weight, 1 / kappa))
    assert abs(a.sum()) <= 1e-9 * size or not of_differences(loss)
    assert (np.delete(a, y) <= 0).all()
    assert -1e-12 * size <= a[y] <= weight * loss.lipschitz * (1 + 1e-12)
    slack = 1e-9 * (abs(least) + kappa * size * size) + 1e-12 * weight * (1 + np.abs(p).max())
    if getattr(loss, "step", "exact") != "exact":
        return
    for move in (1e-4, 1e-2, 0.5, 3.0):
        for step in (*np.eye(4), *-np.eye(4), *rng.normal(size=(4, 4))):
            assert many_objective(loss, a + move * size * step, p, y, kappa, weight) >= least - slack
    if hasattr(loss, "gap"):
        assert abs(loss.gap(p, y, kappa, weight, a)) <= slack


@every_label_loss
def test_extremes_of_classes_stay_finite(loss):
    """Huge and tiny k(x, x), weights and scores give finite steps, without a warning."""
    for kappa, weight in itertools.product((1e-140, 1e-9, 1.0, 1e9, 1e140), repeat=2):
        for p in [s * np.array(p) for s in (1.0, 800.0, 1e6) for p in ([1, 0, 0, -1], [0, 1, -1, 0], [0, 0, 0, 0])]:
            a = loss.implicit_many(p, 0, kappa, weight, p)
            assert np.isfinite(a).all()
            assert np.abs(a).max() <= weight * loss.lipschitz * (1 + 1e-12)
