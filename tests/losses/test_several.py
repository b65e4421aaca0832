"""Several targets: as one learner for each where that is exact; batches, NumPy beside the core, stores, errors."""

import itertools

import numpy as np
import pytest
from parts import (
    agree,
    assert_close,
    assert_same,
    backends,
    classes,
    compiled,
    examples,
    facts,
    fitted,
    label,
    rounding,
    settled,
)

import gossamer
from gossamer import Learner
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Gaussian, Matern
from gossamer.losses import Hinge, Logistic, Several, Squared
from gossamer.rules import Gradient, Implicit, Newton

TARGETS, ROWS = 3, 40
SCALAR = [loss for loss in examples("loss") if loss.target in ("real", "binary") and not loss.adapts]
KERNELS = [settled(kernel) for kernel in examples("kernel")]
NATIVE = [(kernel, backend) for kernel in KERNELS for backend in backends(kernel)]
RULES, BUDGETS = examples("rule"), examples("budget")
#: The bases and rules that go together; and the rules that take no matrix of targets.
PAIRS = [(base, rule) for base in SCALAR for rule in RULES if agree(Several(base, TARGETS), rule)]
REFUSING = [rule for rule in examples("rule", one_each=True) if not any(agree(Several(b, 2), rule) for b in SCALAR)]


def stream(base, rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    Y = np.column_stack([np.sin(2 * X[:, j]) + 0.3 * rng.normal(size=rows) for j in range(TARGETS)])
    return X, np.where(Y > 0, 1.0, -1.0) if base.target == "binary" else Y


def learn_split(learner, X, Y, cuts, weights=None):
    parts = [slice(a, b) for a, b in itertools.pairwise([0, *cuts, len(X)]) if a < b]
    return np.concatenate([learner.learn(X[p], Y[p], None if weights is None else weights[p]) for p in parts])


def test_most_rules_take_several_targets():
    assert {type(rule).__name__ for _, rule in PAIRS} == {"Gradient", "Implicit", "Newton", "SVMD"}
    assert {type(base) for base, _ in PAIRS} == {type(base) for base in SCALAR}


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_every_combination(rule):
    """Whole, split and row by row to the bit; NumPy close to the core. Bases, kernels and budgets in turn."""
    turn = itertools.cycle(pair for pair in NATIVE if rule.keeps_norm or pair[1] != "trees")
    for i, base in enumerate(base for base, other in PAIRS if other == rule):
        loss, (kernel, backend) = Several(base, TARGETS), next(turn)
        budget = next((b for b in BUDGETS[i % len(BUDGETS) :] if agree(loss, rule, b, kernel, backend)), None)
        if not agree(loss, rule, budget, kernel, backend):
            continue
        exact = compiled(loss, rule) and (budget is None or compiled(budget))
        X, Y = stream(base, seed=i)
        X, weights = fitted(kernel, X), np.random.default_rng(i).uniform(0.5, 1.5, size=ROWS)
        chosen = backend if exact else "auto"
        whole, split, rows = (Learner(kernel, loss, rule, budget, backend=chosen) for _ in range(3))
        scores = whole.learn(X, Y, weights)
        assert scores.shape == (ROWS, TARGETS)
        found = learn_split(split, X, Y, (1, 14, 15, 29), weights), learn_split(rows, X, Y, range(1, ROWS), weights)
        near = 1e-9 if budget is None else rounding(budget)
        for other, its in zip((split, rows), found, strict=True):
            if exact:
                assert np.array_equal(scores, its)
                assert_same(whole.state(), other.state())
            else:
                np.testing.assert_allclose(its, scores, rtol=near, atol=near)
        slow = Learner(kernel, loss, rule, budget, backend="numpy")
        np.testing.assert_allclose(slow.learn(X, Y, weights), scores, rtol=near, atol=near, err_msg=str(slow))
        assert_close({**facts(slow), "mistakes": 0}, {**facts(whole), "mistakes": 0}, rtol=near)


@pytest.mark.parametrize("base", [base for base in SCALAR if agree(base, Implicit(C=0.7))], ids=label)
@pytest.mark.parametrize("rule", [Gradient(0.3, 0.05), Implicit(C=0.7, reg=0.05)], ids=label)
def test_first_order_steps_are_those_of_a_learner_for_each(base, rule):
    """Without a budget that drops, several targets are several learners."""
    if not agree(base, rule):
        return
    X, Y = stream(base, seed=1)
    together = Learner(Gaussian(0.5), Several(base, TARGETS), rule).learn(X, Y)
    alone = [Learner(Gaussian(0.5), base, rule).learn(X, Y[:, j]) for j in range(TARGETS)]
    np.testing.assert_allclose(together, np.column_stack(alone), rtol=1e-9, atol=1e-12)


def test_one_matrix_serves_all():
    """Second order with the squared loss: its metric does not depend on the targets, so it is that of each alone."""
    X, Y = stream(Squared(), seed=2)
    together = Learner(Gaussian(0.5), Several(Squared(), TARGETS), Newton(0.1, 0.99))
    scores, variances = together.learn_with_variance(X, Y)
    for j in range(TARGETS):
        alone = Learner(Gaussian(0.5), Squared(), Newton(0.1, 0.99))
        own, its = alone.learn_with_variance(X, Y[:, j])
        np.testing.assert_allclose(scores[:, j], own, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(variances, its, rtol=1e-8, atol=1e-10)
    metric = together.state().rule["metric"]
    assert len(metric) == ROWS * (ROWS + 1) // 2


@pytest.mark.parametrize("base", SCALAR, ids=label)
def test_one_target_of_several_is_that_target(base):
    """A matrix of one column learns as a vector."""
    X, Y = stream(base, seed=3)
    for rule in (Implicit(C=0.7, reg=0.01), Newton(0.2)):
        if agree(base, rule):
            one = Learner(Gaussian(0.5), Several(base, 1), rule, Smallest(9)).learn(X, Y[:, :1])
            np.testing.assert_allclose(
                one[:, 0], Learner(Gaussian(0.5), base, rule, Smallest(9)).learn(X, Y[:, 0]), atol=1e-9
            )


@pytest.mark.parametrize("base", [Squared(), Hinge(), Logistic()], ids=label)
def test_the_loss_is_a_sum(base):
    rng = np.random.default_rng(4)
    loss, z = Several(base, TARGETS), rng.normal(size=TARGETS)
    y = rng.choice([-1.0, 1.0], TARGETS)
    assert loss.value(z, y) == pytest.approx(sum(float(base.value(a, b)) for a, b in zip(z, y, strict=True)))
    assert loss.values(z[None], y[None])[0] == pytest.approx(loss.value(z, y))
    v, step = rng.normal(size=TARGETS), 1e-6
    slopes = [(loss.value(z + step * e, y) - loss.value(z - step * e, y)) / (2 * step) for e in np.eye(TARGETS)]
    np.testing.assert_allclose(loss.slope(z, y), slopes, atol=1e-6)
    np.testing.assert_allclose(
        loss.bend(z, y, v), [base.curvature(*pair) * w for *pair, w in zip(z, y, v, strict=True)]
    )
    a = loss.implicit_many(z, y, 0.7, 1.3)
    np.testing.assert_allclose(a, [base.implicit(*pair, 0.7, 1.3) for pair in zip(z, y, strict=True)])


@pytest.mark.parametrize("backend", ["native", "trees", "numpy"])
def test_a_stored_learner_goes_on(backend):
    X, Y = stream(Squared(), seed=5)
    kernel = Matern(1.5, 0.5) if backend == "trees" else Gaussian(0.5)
    X = X[:, :1] if backend == "trees" else X
    loss = Several(Squared(), TARGETS)
    learner = Learner(kernel, loss, Implicit(), Oldest(12), backend=backend, half_life=50.0)
    learner.learn(X[:25], Y[:25], time=np.arange(25))
    other = gossamer.from_bytes(learner.to_bytes())
    rest = slice(25, None), np.arange(25, ROWS)
    scores = learner.learn(X[rest[0]], Y[rest[0]], time=rest[1])
    assert np.array_equal(other.learn(X[rest[0]], Y[rest[0]], time=rest[1]), scores)
    assert learner.to_bytes() == other.to_bytes()


@pytest.mark.parametrize("rule", REFUSING, ids=label)
def test_other_rules_refuse(rule):
    assert type(rule) in classes("rule")
    with pytest.raises(ValueError, match="must be"):
        Learner(Gaussian(1.0), Several(Squared(), 2), rule)


def test_bad_targets():
    X, Y = stream(Squared())
    learner = Learner(Gaussian(1.0), Several(Squared(), TARGETS), Implicit())
    for bad in (
        Y[:, 0],
        Y[:, :2],
        Y[:-1],
        np.where(np.arange(ROWS)[:, None] == 7, np.nan, Y),
        [["a"] * 3] * ROWS,
        None,
    ):
        with pytest.raises(ValueError, match="The 'y' parameter of Learner must be"):
            learner.learn(X, bad)
    assert learner.steps == 0
    with pytest.raises(ValueError, match="The 'y' parameter of Learner must be -1 or"):
        Learner(Gaussian(1.0), Several(Hinge(), TARGETS), Implicit()).learn(X, Y)
    for bad in (Several(), gossamer.losses.Novelty(), Hinge(nu=0.2), "squared", None):
        with pytest.raises(
            ValueError, match="The 'base' parameter of Several must be a loss of real or binary targets"
        ):
            Several(bad, 2)
    for bad in (0, -1, 2.5, None, True):
        with pytest.raises(ValueError, match="The 'targets' parameter of Several"):
            Several(Squared(), bad)
