"""The law of batches: one call == row by row == any split. And its sister: compiled == NumPy, for every part."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import (
    agree,
    assert_close,
    assert_same,
    backends,
    classes,
    compiled,
    cut,
    examples,
    facts,
    fitted,
    is_native,
    label,
    learn_rows,
    learn_split,
    python_backend,
    rounding,
    settled,
    size_of,
    stream,
)

from gossamer import Learner
from gossamer.budgets import Oldest, Project, Smallest
from gossamer.kernels import Gaussian, Linear, Polynomial
from gossamer.losses import EpsilonInsensitive, Hinge, Squared
from gossamer.rules import Gradient, Implicit

KERNELS = [settled(kernel) for kernel in examples("kernel")]
NATIVE = [(kernel, backend) for kernel in KERNELS for backend in backends(kernel)]
NAMES = {"native": "native", "trees": "native trees"}
LOSSES, RULES, BUDGETS = (examples(kind) for kind in ("loss", "rule", "budget"))
COUNTS = (1, 2, 11, 12, 13, 23, 24, 25, 47, 48, 49, 95, 96, 97, 200)


def compare(make, X, y, weights, cuts, exact, near=1e-9):
    """Whole, split and row by row: the same scores and the same model."""
    whole, split, rows = make(), make(), make()
    scores, levels = whole.learn(X, y, weights, with_levels=True)
    others = (split, learn_split(split, X, y, weights, cuts)), (rows, learn_rows(rows, X, y, weights))
    for other, its_scores in others:
        if exact:
            assert whole.backend in NAMES.values()
            assert np.array_equal(scores, its_scores)
            assert_same(whole.state(), other.state())
            assert_same(facts(whole), facts(other))
        else:
            scale = size_of(scores)
            np.testing.assert_allclose(its_scores, scores, rtol=near, atol=near * scale)
            assert_close(*comparable(scores, facts(whole), facts(other)), rtol=near)
    assert np.isfinite(levels).all()
    return whole, scores


def comparable(scores, *found):
    """Without the mistakes where a score that would be 0 (or that of another class) has the sign of a rounding."""
    known = np.where(np.isneginf(scores), -1e18, scores)  # a class not yet seen
    gaps = np.abs(known) if known.ndim == 1 else np.diff(np.sort(known, axis=1)[:, -2:], axis=1)
    if np.min(gaps, initial=1.0) < 1e-9 * size_of(scores):
        return [{name: fact for name, fact in facts.items() if name != "mistakes"} for facts in found]
    return found


@pytest.mark.parametrize("rule", RULES, ids=label)
@pytest.mark.parametrize("loss_class", classes("loss"), ids=label)
def test_every_combination(loss_class, rule):
    """Every loss x rule in every setting, kernels and budgets in turn: native in any split, and NumPy, agree."""
    losses = [loss for loss in LOSSES if type(loss) is loss_class and agree(loss, rule)]
    turn, budgets = itertools.cycle(NATIVE), itertools.cycle(b for b in BUDGETS if losses and agree(losses[0], rule, b))
    for i, loss in enumerate(losses * 3):
        (kernel, backend), budget = next(turn), next(budgets)
        exact = compiled(loss, rule, budget)
        if not agree(loss, rule, budget, kernel, backend):
            continue
        X, y = stream(loss, 40, seed=i)
        X[7] = 0.0  # k(x, x) = 0 for a linear kernel
        X, parts = fitted(kernel, X), (kernel, loss, rule, budget)
        chosen = backend if exact else "auto"
        whole, scores = compare(lambda: Learner(*parts, backend=chosen), X, y, None, (1, 14, 15, 29), exact)  # noqa: B023
        slow = Learner(kernel, loss, rule, budget, backend="numpy")
        slow_scores = slow.learn(X, y)
        scale = size_of(scores)
        near = rounding(budget)
        np.testing.assert_allclose(slow_scores, scores, rtol=near, atol=near * scale, err_msg=str(slow))
        assert_close(*comparable(scores, facts(slow), facts(whole)), rtol=near)


@pytest.mark.parametrize("number", range(len(KERNELS)), ids=lambda number: label(KERNELS[number]))
def test_every_kernel(number):
    """Every kernel in every setting, with one setting of each loss, rule and budget: every fourth combination of them
    (with kernels in Python, which are slow, every eighth), and its machines in turn."""
    kernel = KERNELS[number]
    native, machines = is_native(kernel), itertools.cycle(backends(kernel) or ["auto"])
    others = itertools.product(*(examples(kind, one_each=True) for kind in ("loss", "rule", "budget")))
    together = [parts for parts in others if agree(*parts)]
    share = 4 if native else 8
    for i, (loss, rule, budget) in enumerate(together[number % share :: share]):
        X, y = stream(loss, 37, seed=300 + i)
        X, twins, parts = fitted(kernel, X), compiled(loss, rule, budget), (kernel, loss, rule, budget)
        backend = next(machines) if twins else "auto"
        if not agree(loss, rule, budget, kernel, backend):
            continue
        near = max(1e-8, rounding(budget))
        fast, scores = compare(lambda: Learner(*parts, backend=backend), X, y, None, (5, 18), native and twins, near)  # noqa: B023
        slow = Learner(*parts, backend="numpy")
        np.testing.assert_allclose(slow.learn(X, y), scores, rtol=near, atol=near * size_of(scores))
        python = python_backend(budget) if twins else "numpy"
        assert (slow.backend, fast.backend) == ("numpy", NAMES.get(backend, python))
        assert_close(*comparable(scores, facts(slow), facts(fast)), rtol=near)


@st.composite
def learners(draw, kernels):
    """Parts that go together, with parameters of the learner itself. Kernels come with a backend."""
    loss = draw(st.sampled_from([*filter(compiled, LOSSES)]))
    rule = draw(st.sampled_from([rule for rule in filter(compiled, RULES) if agree(loss, rule)]))
    size = draw(st.integers(1, 40))
    kernel, backend = draw(st.sampled_from([pair for pair in kernels if rule.keeps_norm or pair[1] != "trees"]))
    sized = [Smallest(size), Smallest(size, by="coefficient"), Oldest(size), Project(size)]
    budgets = [*filter(compiled, BUDGETS), *sized]
    budget = draw(st.sampled_from([budget for budget in budgets if agree(loss, rule, budget, kernel, backend)]))
    average = draw(st.sampled_from([False, True, "sparse"]))
    track_norm = budget.limit is not None and draw(st.booleans())
    more = {"average": average, "track_norm": track_norm, "backend": backend}
    return loss, kernel, functools.partial(Learner, kernel, loss, rule, budget, **more)


@st.composite
def streams(draw, loss, kernel, dtype=None, repeats=True):
    """Rows, targets, weights and cuts; rows may repeat and be zero."""
    rows = draw(st.one_of(st.sampled_from(COUNTS[:-1]), st.integers(1, 130)))
    features = draw(st.sampled_from([1, 2, 3, 4, 5, 7, 16, 17, 130]))
    seed = draw(st.integers(0, 2**32 - 1))
    X, y = stream(loss, rows, seed, features, dtype or draw(st.sampled_from([np.float32, np.float64])))
    rng = np.random.default_rng(seed)
    if repeats and draw(st.booleans()):
        X = X[rng.integers(0, max(1, rows // 2), rows)]
        X[rng.random(rows) < 0.1] = 0
    X /= np.sqrt(features).astype(X.dtype)
    weights = rng.choice([0.0, 0.5, 1.0, 3.0], rows) if draw(st.booleans()) else None
    return fitted(kernel, X), y, weights, draw(st.lists(st.integers(0, rows), max_size=6))


@settings(max_examples=600)
@given(st.data())
def test_native_law(data):
    """Bit for bit, for any parts, stream, split, width and float type."""
    loss, kernel, make = data.draw(learners(NATIVE))
    X, y, weights, cuts = data.draw(streams(loss, kernel))
    whole, _ = compare(make, X, y, weights, cuts, exact=True)
    again = make()
    learn_split(again, X, y, weights, cuts)
    assert np.array_equal(whole.score(X), again.score(X))
    assert np.array_equal(whole.score(X), np.array([whole.score_one(x) for x in X]))


@settings(max_examples=100)
@given(st.data())
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_python_law(backend, data):
    """To 1e-9 relative, for kernels or loops in Python, whose values differ in the last bits with the rows beside them;
    to what `rounding` says for budgets that project, which multiply that by the condition of the Gram matrix."""
    kernels = [kernel for kernel in KERNELS if backend == "numpy" or not is_native(kernel)]
    loss, kernel, make = data.draw(learners([(kernel, backend) for kernel in kernels]))
    X, y, weights, cuts = data.draw(streams(loss, kernel, np.float64, repeats=False))
    compare(make, X, y, weights, cuts, exact=False, near=rounding(make.args[3]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rows", COUNTS)
def test_row_counts(rows, dtype):
    """Batches of any number of rows, before and after any other."""
    X, y = stream(Hinge(), 2 * rows + 60, seed=rows, features=5, dtype=dtype)
    for kernel in (Gaussian(0.5), Polynomial(3), 0.5 * Gaussian(2.0) + Linear()):
        for budget in (Smallest(20), Oldest(age=30), None):
            one, other = (Learner(kernel, Hinge(), Implicit(C=2.0, reg=0.01), budget) for _ in range(2))
            scores = learn_split(one, X, y, cuts=(60, 60 + rows))
            assert np.array_equal(scores, learn_rows(other, X, y))
            assert_same(one.state(), other.state())
            assert np.array_equal(one.score(X[:rows]), one.score(X)[:rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_stream(dtype):
    """Thousands of rows, blocks of every size the learner chooses, a budget of several strips."""
    X, y = stream(Squared(), 3000, seed=5, features=4, dtype=dtype)
    for loss, rule in ((Squared(), Implicit(C=0.3)), (EpsilonInsensitive(0.3), Gradient(0.3, 0.001))):
        for budget in (Smallest(300), None):
            one, other, third = (Learner(Gaussian(0.5), loss, rule, budget) for _ in range(3))
            scores = one.learn(X, y)
            assert np.array_equal(scores, learn_rows(other, X, y))
            assert np.array_equal(scores, learn_split(third, X, y, cuts=range(0, 3000, 77)))
            assert_same(one.state(), other.state())
            assert_same(one.state(), third.state())


def test_score_is_what_learning_emits():
    """score before a row is learned is the score that learning it returns, for every part."""
    for i, (loss, budget, rule) in enumerate(itertools.product(LOSSES, BUDGETS, examples("rule", one_each=True))):
        if not compiled(loss, rule, budget):
            continue
        (kernel, backend), (X, y) = NATIVE[i % len(NATIVE)], stream(loss, 30, seed=i)
        if not agree(loss, rule, budget, kernel, backend):
            continue
        X, learner = fitted(kernel, X), Learner(kernel, loss, rule, budget, backend=backend)
        learner.learn(X[:20], cut(y, slice(0, 20)))
        for t in range(20, 30):
            before, again = learner.score_one(X[t]), learner.score(X[t : t + 1])[0]
            emitted = learner.learn_one(X[t], None if y is None else y[t])
            assert np.array_equal(before, again)
            assert np.array_equal(np.atleast_1d(before), np.atleast_1d(emitted)[: np.size(before)])


def test_scale_is_settled_by_the_first_batch():
    """gamma="scale" is one number from the first batch on; later splits change nothing."""
    X, y = stream(Hinge(), 90, seed=3)
    make = lambda: Learner(Gaussian("scale"), Hinge(), Implicit())  # noqa: E731
    one, other, fixed = make(), make(), Learner(Gaussian(1 / (3 * X[:30].var())), Hinge(), Implicit())
    scores = learn_split(one, X, y, cuts=(30,))
    assert np.array_equal(scores, learn_split(other, X, y, cuts=(30, 31, 60, 61)))
    assert np.array_equal(scores, fixed.learn(X, y))
    assert one.kernel == fixed.kernel
