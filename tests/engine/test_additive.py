"""Laws of the trees: an expansion that stands in search trees is the expansion, whatever has been done to it."""

import itertools
import math

import numpy as np
import pytest
from parts import (
    SPLITTING,
    agree,
    assert_close,
    compiled,
    examples,
    facts,
    from_zero,
    label,
    settled,
    size_of,
    stream,
)
from test_input import fails

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Additive, Brownian, Exponential, Linear, Matern, Spline
from gossamer.losses import EpsilonInsensitive, Hinge, Multiclass, Softmax, Squared
from gossamer.rules import ROMMA, SVMD, Adatron, Gradient, Implicit, Perceptron

#: Every kernel that stands in a tree for rows of one number, and some with two features.
FOUND = [kernel for kernel in map(settled, examples("kernel")) if kernel.coordinates(1) is not None]
ORDERS = [Spline(z) for z in (0, 2, 4, 11)] + [Matern(p + 0.5, 0.8) for p in (3, 4, 9, 16)]
TWO = [kernel for kernel in SPLITTING if "Additive" in repr(kernel)]
ONE = [*dict.fromkeys([*FOUND, *ORDERS, *(kernel for kernel in SPLITTING if kernel not in TWO)])]
ADDITIVE = Additive((Spline(1), Exponential(0.5), Matern(2.5), Brownian()), (0.2, 0.3, 0.3, 0.5), ((0, 1),))


def of(kernel, *words):
    return any(word in repr(kernel) for word in words)


def largest_key(kernel):
    """Up to where k(x, x) is far from overflow, and so are its sums."""
    coordinates = kernel.coordinates(2) or kernel.coordinates(1)
    degrees = [2 * term.order + 1 for c in coordinates for term in c.terms if term.kind != "decay"]
    return 10.0 ** (250 / max(degrees, default=1) / len(coordinates))


def some_keys(name, kernel, rng, n):
    """Numbers of a kind, not negative where the kernel asks for it."""
    high = math.log10(largest_key(kernel))
    keys = {
        "normal": lambda: rng.normal(size=n),
        "wide": lambda: rng.uniform(-1000, 1000, n) if high > 4 else rng.uniform(0, 10**high, n),
        "equal": lambda: np.full(n, 0.7),
        "few": lambda: rng.choice([0.0, 0.25, 0.5, 1.0, 3.0], n),
        "sorted": lambda: np.sort(rng.normal(size=n)),
        "reversed": lambda: np.sort(rng.normal(size=n))[::-1],
        "huge": lambda: 10.0 ** rng.uniform(-300, high, n) * rng.choice([-1, 1], n),
        "clusters": lambda: rng.integers(0, 3, n) + 1e-13 * rng.integers(0, 50, n),
    }[name]()
    return np.abs(keys) if from_zero(kernel) else keys


KINDS = ("normal", "wide", "equal", "few", "sorted", "reversed", "huge", "clusters")


def around(keys, rng):
    """Numbers to ask at: keys, the numbers next to them, between and beyond them, none negative if no key is."""
    some = rng.choice(keys, 80)
    asked = np.concatenate([some, np.nextafter(some, np.inf), np.nextafter(some, -np.inf), (some + some[::-1]) / 2])
    asked = np.concatenate([asked, [0.0, keys.min(), keys.max(), 1.5 * keys.max()]])
    return asked if keys.min() < 0 else np.abs(asked)


def grown(kernel, X, seed=0, budget=None, reg=0.0, **more):
    """A learner in trees with coefficients of both signs and many sizes, one for every row."""
    rng = np.random.default_rng(seed)
    learner = Learner(kernel, EpsilonInsensitive(0.0), Gradient(0.5, reg), budget, backend="trees", **more)
    y, weights = 1e290 * rng.choice([-1.0, 1.0], len(X)), np.exp(rng.normal(size=len(X)))
    learner.learn(X, y, weights)
    return learner


def assert_dense(learner, X, rtol=1e-9):
    """The scores are those of the kernel values of all points, up to rounding of the sum of all that was added."""
    points, kernel, coefs = learner.points, learner.kernel, np.atleast_2d(learner.coefs)
    values = kernel(X, points)
    sizes = np.abs(values)
    if of(kernel, "Linear"):  # a value may be the small difference of large ones
        sizes = np.maximum(sizes, np.outer(*(np.sqrt(kernel.diag(rows)) for rows in (X, points))))
    score = learner.score(X).reshape(len(X), -1)
    error = np.abs(score - values @ coefs.T - learner.offset)
    assert (error <= rtol * (sizes @ np.abs(coefs).T) + 1e-280).all(), float(np.nanmax(error))


# ------------------------------------------------------------------------------------------------ equal to the sum


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", ONE, ids=label)
def test_equals_the_sum(kernel, kind):
    """f in a tree is sum_i coef_i k(x_i, x) to 1e-9, wherever the keys are, in whatever order they came."""
    rng = np.random.default_rng(1)
    keys = some_keys(kind, kernel, rng, 900)
    learner = grown(kernel, keys[:, None])
    assert learner.backend == "native trees"
    assert len(learner.coefs) >= (40 if kind == "huge" else 400)  # a step that is lost in rounding makes no term
    asked = around(keys, rng)
    assert_dense(learner, asked[:, None])
    assert np.array_equal(learner.score(asked[:, None]), [learner.score_one(x) for x in asked[:, None]])


def test_the_highest_order():
    """Of the splines."""
    keys = np.random.default_rng(1).uniform(0, 2, 200)[:, None]
    assert_dense(grown(Spline(32), keys), 1.2 * keys[:50])


@pytest.mark.parametrize("kernel", TWO, ids=label)
@pytest.mark.parametrize("kind", ["normal", "few", "sorted", "clusters"])
def test_equals_the_sum_over_coordinates(kernel, kind):
    """So is a sum over coordinates, with a base and a weight for each, products and differences."""
    rng = np.random.default_rng(2)
    X = np.column_stack([some_keys(kind, kernel, rng, 400), rng.permutation(some_keys(kind, kernel, rng, 400))])
    learner = grown(kernel, X)
    assert_dense(learner, np.column_stack([around(X[:, 0], rng), around(X[:, 1], rng)]))
    single = grown(kernel, X.astype(np.float32))
    np.testing.assert_allclose(single.score(X), learner.score(X), rtol=1e-3, atol=1e-3 * size_of(learner.score(X)))


def test_the_ends_of_the_doubles():
    """Keys at +-1e308, whose distance overflows, and at the smallest numbers there are."""
    keys = np.array([1e308, -1e308, 0.0, 5e-324, -5e-324, 1.7e308, -1.7e308, 1e-300, 1.0, -1.0] * 20)[:, None]
    for kernel in (Exponential(1.0), Exponential(1e305), Exponential(1e-300), Matern(2.5, 1e300)):
        learner = grown(kernel, keys)
        with np.errstate(over="ignore", invalid="ignore"):
            values = Exponential.__call__(kernel, keys, keys) if isinstance(kernel, Exponential) else None
        assert np.isfinite(learner.score(keys)).all()
        if values is not None:
            np.testing.assert_allclose(learner.score(keys), values @ learner.coefs, rtol=1e-9, atol=1e-9)
    assert_dense(grown(Brownian(), np.abs(keys) / 1e3), np.abs(keys) / 1e4)


# ------------------------------------------------------------------------------------------------ a long life


@pytest.mark.parametrize(
    ("kernel", "budget", "order"),
    [(Exponential(0.05), Oldest(3000), "random"), (Spline(1), Smallest(2000), "random"),
     (Matern(2.5, 0.1), Oldest(1500), "sorted")],
    ids=str,
)  # fmt: skip
def test_a_million_changes(kernel, budget, order):
    """Half a million rows each, learned, decayed and removed (so a million changes): no drift, then or in between."""
    rng = np.random.default_rng(3)
    keys = rng.uniform(0, 2, 500_000) if order == "random" else np.cumsum(rng.exponential(1e-4, 500_000))
    y = np.sin(5 * keys) + 0.3 * rng.normal(size=len(keys))
    learner = Learner(kernel, EpsilonInsensitive(0.01), Gradient(0.05, 0.02), budget, backend="trees")
    asked = around(keys[-5000:], rng)[:, None]
    for part in np.split(np.arange(len(keys)), 4):
        learner.learn(keys[part, None], y[part])
        assert len(learner.coefs) == budget.limit
        assert_dense(learner, asked)
    assert learner.updates > 450_000
    # the sums are those of a tree that was never changed: nothing that has left is left
    fresh, state = Learner(kernel, learner.loss, learner.rule, budget, backend="trees"), learner.state()
    fresh.restore(state)
    assert np.array_equal(fresh.score(asked), learner.score(asked))


@pytest.mark.parametrize("rule", [Gradient(0.3, 0.01), ROMMA(), SVMD(0.3, 0.01, 0.1, 0.9)], ids=label)
@pytest.mark.parametrize("budget", [Oldest(40), Smallest(300)], ids=label)
def test_tracked_norm(rule, budget):
    """The norm, tracked through removals, and SVMD's <f, v>, are those of the kernel values."""
    X, y = stream(Hinge(), 3000, seed=4)
    kernel = Additive(Exponential(0.5), weights=(1.0, 0.5, 2.0))
    learner = Learner(kernel, Hinge(), rule, budget, track_norm=True, backend="trees")
    for part in (slice(0, 50), slice(50, 700), slice(700, 3000)):
        learner.learn(X[part], y[part])
        gram, coefs, state = kernel(learner.points, learner.points), learner.coefs, learner.state()
        assert learner.norm**2 == pytest.approx(coefs @ gram @ coefs, rel=1e-9)
        if rule.needs_trace:
            trace = state.trace_scale * state.trace[0] + state.mix * coefs
            assert state.inner == pytest.approx(coefs @ gram @ trace, rel=1e-8, abs=1e-9 * learner.norm**2)
    untracked = Learner(kernel, Hinge(), Gradient(0.3, 0.01), budget, backend="trees")
    untracked.learn(X, y)
    coefs, points = untracked.coefs, untracked.points
    assert untracked.norm**2 == pytest.approx(coefs @ kernel(points, points) @ coefs, rel=1e-9)


# ------------------------------------------------------------------------------------------------ every rule


@pytest.mark.parametrize("rule", [rule for rule in filter(compiled, examples("rule")) if rule.keeps_norm], ids=label)
def test_every_rule(rule):
    """Every rule with every loss learns in trees what it learns from kernel values, to 1e-9: two classes, many, also
    such that come later, a label kernel, regression, novelty; budgets and averages in turn."""
    budgets = itertools.cycle([None, Oldest(20), Smallest(25), Oldest(age=30)])
    averages = itertools.cycle([True, False, "sparse"])
    for i, loss in enumerate(loss for loss in filter(compiled, examples("loss")) if agree(loss, rule)):
        X, y = stream(loss, 50, seed=i)
        X, budget, average = np.abs(X) / 2, next(budgets), next(averages)
        if not agree(loss, rule, budget):
            budget = None
        trees, dense = (Learner(ADDITIVE, loss, rule, budget, average=average, backend=b) for b in ("trees", "native"))
        ids = np.arange(50) % 30 if rule.needs_ids else None
        if ids is not None:
            X, y = X[ids], y[ids]
        scores, expected = trees.learn(X, y, ids=ids), dense.learn(X, y, ids=ids)
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9 * size_of(expected), err_msg=str(trees))
        assert_close(facts(trees), facts(dense))
        mine, its = trees.state(), dense.state()
        for name in ("trace", "mix", "rate", "summed", "dropped"):
            assert_close({name: getattr(mine, name)}, {name: getattr(its, name)})
        if average:
            one, other = trees.score(X, average=True), dense.score(X, average=True)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * size_of(other))


def test_examples_that_return():
    """Adatron's examples change their coefficients in place, many times, and leave when these are 0."""
    rng = np.random.default_rng(5)
    X, ids = rng.normal(size=(400, 2)), rng.integers(0, 400, 12_000)
    y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    trees, dense = (
        Learner(Additive(Exponential(0.3)), Hinge(), Adatron(0.9, 0.8), Smallest(350), track_norm=True, backend=backend)
        for backend in ("trees", "native")
    )
    assert_all_close(trees.learn(X[ids], y[ids], ids=ids), dense.learn(X[ids], y[ids], ids=ids))
    assert_close(facts(trees), facts(dense))
    assert_dense(trees, X)
    assert len(np.unique(trees.state().ids)) == len(trees.coefs) > 100


def assert_all_close(one, other):
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * size_of(other))


def test_many_classes_that_come_late():
    """New classes make every tree wider, with terms in it, and with SVMD's trace."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(900, 2))
    y = np.digitize(np.sin(2 * X[:, 0]), np.linspace(-1, 1, 12)[1:-1]) % (1 + np.arange(900) // 80)
    for rule in (Gradient(0.3, 0.01), Implicit(C=0.5), SVMD(0.2, 0.01, 0.1, 0.9), Perceptron()):
        loss = Softmax() if isinstance(rule, SVMD) else Multiclass(margin=0.0 if isinstance(rule, Perceptron) else 1.0)
        trees, dense = (
            Learner(Additive(Matern(1.5)), loss, rule, Smallest(300), backend=b) for b in ("trees", "native")
        )
        for part in (slice(0, 333), slice(333, 334), slice(334, 900)):
            assert_all_close(trees.learn(X[part], y[part]), dense.learn(X[part], y[part]))
        assert trees.coefs.shape[0] == 11
        assert_dense(trees, X[:200])


# ------------------------------------------------------------------------------------------------ budgets and effects


def survivors(budget, sizes, roots, rate, reg):
    """The births of the terms, slot by slot, of a budget that scans all of them for every newcomer."""
    births, raw, root, scale = [], [], [], 1.0
    for t in range(len(sizes)):
        scale *= 1 - rate * reg
        slot, newcomer = len(births), rate * sizes[t] / scale
        if slot == budget.limit:
            weights = np.array(raw) * (root if getattr(budget, "by", "") == "norm" else 1.0)
            if isinstance(budget, Oldest):
                slot = int(np.argmin(births))
            else:
                if newcomer * (roots[t] if budget.by == "norm" else 1.0) < weights.min():
                    continue
                slot = min(np.flatnonzero(weights == weights.min()), key=births.__getitem__)
        births[slot : slot + 1], raw[slot : slot + 1], root[slot : slot + 1] = [t + 1], [newcomer], [roots[t]]
    return births


@pytest.mark.parametrize("budget", [Smallest(3000), Smallest(3000, by="coefficient"), Oldest(3000)], ids=label)
@pytest.mark.parametrize("reg", [0.0, 0.001])
def test_large_budgets(budget, reg):
    """Above a thousand slots the first in line is found by a tournament, not by a scan: the same one, also among
    equals."""
    rng = np.random.default_rng(12)
    X = rng.uniform(0, 1, size=(6000, 1)).round(3)
    y, weights = 1e9 * rng.normal(size=6000), rng.choice([0.25, 0.5, 1.0], 6000)  # many of the same size
    expected = survivors(budget, weights, np.sqrt(Spline(0).diag(X)), 0.5, reg)
    for backend in ("trees", "native"):
        learner = Learner(Spline(0), EpsilonInsensitive(0.0), Gradient(0.5, reg), budget, backend=backend)
        learner.learn(X, y, weights)
        assert learner.births.tolist() == expected


def test_a_window_that_shrinks_and_grows():
    """Removals by age from a large expansion: the oldest leave, by the tournament and below it by the scan."""
    rng = np.random.default_rng(13)
    weights = np.where(np.arange(9000) % 4500 < 2500, 1.0, rng.choice([0.0, 1.0], 9000, p=[0.9, 0.1]))
    X, y = rng.normal(size=(9000, 1)), rng.normal(size=9000)
    parts = (Exponential(0.1), EpsilonInsensitive(0.0), Gradient(0.1, 0.001), Oldest(age=2000))
    learner = Learner(*parts, backend="trees")
    sizes = []
    for part in np.split(np.arange(9000), 30):
        learner.learn(X[part], y[part], weights[part])
        births = 1 + np.flatnonzero(weights[: part[-1] + 1] > 0)
        assert np.array_equal(np.sort(learner.births), births[births > learner.steps - 2000])
        sizes.append(len(births[births > learner.steps - 2000]))
    assert min(sizes[10:]) < 1024 < max(sizes)
    assert_dense(learner, X[:300])


LABELS = ((2.0, 1.0, 0.0, 0.0), (1.0, 2.0, 0.0, 0.0), (0.0, 0.0, 1.5, 1.0), (0.0, 0.0, 1.0, 1.5))


@pytest.mark.parametrize("loss", [Squared(), Hinge(), Multiclass(label_kernel=LABELS)], ids=label)
def test_effects_sum_to_the_score(loss):
    """What each coordinate adds is its own kernel's sum, and all together are the score without its offset."""
    X, y = stream(loss, 500, seed=14)
    X = np.abs(X) / 2
    rule = Gradient(0.05, 0.01, fit_intercept=loss.target != "label")
    learner = Learner(ADDITIVE, loss, rule, Smallest(300), backend="trees")
    learner.learn(X, y)
    effects, columns = learner.effects(X), ADDITIVE.columns(X)
    assert effects.shape == (500, 4) + (() if loss.target != "label" else (4,))
    assert_all_close(effects.sum(axis=1) + learner.offset, learner.score(X))
    labels = np.eye(1) if loss.target != "label" else np.array(loss.label_kernel)
    for i, base in enumerate(ADDITIVE.bases(3)):
        values = base(columns[:, [i]], ADDITIVE.columns(learner.points)[:, [i]])
        assert_all_close(effects[:, i].reshape(500, -1), values @ np.atleast_2d(learner.coefs).T @ labels)
    dense = Learner(ADDITIVE, loss, rule, Smallest(300), backend="native")
    dense.learn(X, y)
    fails("backend", lambda: dense.effects(X), dense)


def test_trees_are_chosen_where_they_win():
    """By the kernel, the features and the budget, visibly; a kernel that does not split never."""
    X, y = stream(Hinge(), 20, seed=15)
    for kernel, budget, features, backend in (
        (Additive(Exponential()), None, 3, "native trees"), (Additive(Exponential()), Smallest(10), 3, "native"),
        (Additive(Exponential()), Smallest(10**6), 3, "native trees"), (Matern(1.5), None, 1, "native trees"),
        (Matern(1.5), None, 2, "native"), (Exponential() * Exponential(), None, 1, "native"),
        (Exponential() + 2 * Linear(), Oldest(5000), 1, "native trees"),
    ):  # fmt: skip
        learner = Learner(kernel, Hinge(), Implicit(), budget)
        learner.learn(X[:, :features], y)
        assert learner.backend == backend
    for track in ({"track_norm": True}, {"rule": ROMMA()}):  # trees need no kernel values for the norm
        parts = {"kernel": Additive(Exponential()), "loss": Hinge(), "rule": Gradient(), "budget": Smallest(10**5)}
        parts = {**parts, **track}
        learner = Learner(**parts)
        learner.learn(X, y)
        assert learner.norm > 0
        product = Exponential() * Exponential()
        fails("budget", lambda: Learner(**{**parts, "kernel": product}))  # noqa: B023


def test_sums_of_many_kernels():
    """A weighted sum may have any number of parts."""
    X, y = stream(Squared(), 60, seed=16)
    kernel = sum((0.1 * k * Exponential(k / 3) for k in range(2, 12)), 0.1 * Exponential(1 / 3))
    for budget in (None, Smallest(20)):
        fast, slow = (Learner(kernel, Squared(), Implicit(), budget, backend=b) for b in ("auto", "numpy"))
        assert_all_close(fast.learn(X[:, :1], y), slow.learn(X[:, :1], y))
