"""Trees live on: in batches of any size, in copies and states, through bad input and through anything else."""

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import assert_same, cut, label, learn_rows, learn_split, stream
from test_additive import ADDITIVE, assert_all_close, assert_dense
from test_input import fails

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Additive, Brownian, Exponential, Matern, Spline
from gossamer.losses import Hinge, Multiclass, Novelty, Squared
from gossamer.rules import SVMD, Adatron, Gradient, Implicit, Perceptron

# ------------------------------------------------------------------------------------------------ batches and states


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("budget", [None, Oldest(500), Smallest(700), Oldest(age=600)], ids=label)
def test_batches_of_a_large_model(budget, dtype):
    """Whole, split, row by row: the same bits, the same trees."""
    X, y = stream(Squared(), 2500, seed=7, dtype=dtype)
    X = np.abs(X) / 2
    parts = (ADDITIVE, Squared(), Implicit(C=0.3, reg=0.001), budget)
    one, other, third = (Learner(*parts, average=True, backend="trees") for _ in range(3))
    scores = one.learn(X, y)
    assert np.array_equal(scores, learn_rows(other, X, y))
    assert np.array_equal(scores, learn_split(third, X, y, cuts=range(0, 2500, 77)))
    assert_same(one.state(), other.state())
    assert_same(one.state(), third.state())
    assert np.array_equal(one.score(X), third.score(X))
    assert np.array_equal(one.score(X[:300], average=True), third.score(X[:300], average=True))


@pytest.mark.parametrize("loss", [Squared(), Multiclass(), Novelty(nu=0.3)], ids=label)
def test_a_large_model_goes_on(loss):
    """Copied, pickled or restored after many removals: the same bits ever after, as the shape of the trees is kept."""
    X, y = stream(loss, 4000, seed=8)
    X = np.abs(X) / 2
    rule, at = Gradient(0.2, 0.001), slice(0, 3000)
    make = lambda: Learner(ADDITIVE, loss, rule, Smallest(600), average=True, track_norm=True, backend="trees")  # noqa: E731
    learner = make()
    learner.learn(X[at], cut(y, at))
    restored = make()
    restored.restore(learner.state())
    others = [copy.deepcopy(learner), pickle.loads(pickle.dumps(learner)), restored]
    rest = X[3000:], cut(y, slice(3000, 4000))
    scores = learner.learn(*rest)
    for other in others:
        assert np.array_equal(other.learn(*rest), scores)
        assert_same(other.state(), learner.state())
        assert np.array_equal(other.score(X), learner.score(X))
        assert np.array_equal(other.score(X[:100], average=True), learner.score(X[:100], average=True))


def test_a_state_moves_between_machines():
    """A learner with kernel values goes on in trees, and back."""
    X, y = stream(Squared(), 1000, seed=9)
    X = np.abs(X) / 2
    parts = (ADDITIVE, Squared(), Implicit(C=0.3), Smallest(100))
    expected, state = Learner(*parts, backend="native").learn(X, y), None
    for i, backend in enumerate(("native", "trees", "numpy", "trees", "native")):
        learner, part = Learner(*parts, backend=backend), slice(200 * i, 200 * i + 200)
        learner.restore(state)
        assert_all_close(learner.learn(X[part], y[part]), expected[part])
        state = learner.state()


def broken(state):
    """What may be wrong with a state, one thing at a time."""
    shape = state.shape
    for i, change in itertools.product(range(0, len(shape), max(1, len(shape) // 40)), (-1, 1, 1000, 2**62, -(2**62))):
        changed = shape.copy()
        changed[i] = int(changed[i]) + change if abs(change) < 2**60 else change
        yield {"shape": changed}
    yield {"shape": shape[:-1]}
    yield {"shape": shape[:0]}
    yield {"shape": np.append(shape, 1)[1:]}
    for name, (row, value) in itertools.product(("points", "dropped_points"), ((0, np.nan), (-1, np.inf), (3, -1.0))):
        points = getattr(state, name).copy()
        points[row, 0] = value
        yield {name: points}
    for name in ("points", "dropped_points", "raw", "kappas", "births", "ids", "summed", "entered"):
        values = getattr(state, name)
        yield {name: values[..., :-1] if values.ndim == 1 else values[:-1]}
    yield {"points": state.points[:, :1]}
    yield {"points": state.points[:, 0]}
    yield {"raw": state.raw[:, :-1]}
    yield {"raw": np.repeat(state.raw, 2, axis=0)}
    yield {"known": 7}
    yield {"births": state.births + 300}
    yield {"births": np.minimum(state.births, 300)}


@pytest.mark.parametrize("loss", [Squared(), Multiclass()], ids=label)
def test_broken_states(loss):
    """A state that does not fit itself raises a ValueError and changes nothing."""
    X, y = stream(loss, 400, seed=10)
    X = np.abs(X) / 2
    learner = Learner(ADDITIVE, loss, Gradient(0.2, 0.01), Oldest(150), average=True, backend="trees")
    learner.learn(X, y)
    state = learner.state()
    for change in broken(state):
        if "known" in change and loss.target != "label":
            continue
        try:
            learner.restore(state.replace(**change))
        except ValueError:
            assert_same(learner.state(), state)
            continue
        raise AssertionError(f"accepted a broken state: {change}")
    assert np.isfinite(learner.score(X)).all()


# ------------------------------------------------------------------------------------------------ input


BAD_ROWS = {
    "nan": [[0.1, np.nan, 0.1]],
    "inf": [[0.1, 0.1, -np.inf]],
    "negative": [[-1e-300, 0.1, 0.1]],
    "overflow": [[1e200, 0.1, 0.1]],
    "product overflows": [[1e100, 1e250, 0.1]],
    "narrow": [[0.1, 0.1]],
    "wide": [[0.1, 0.1, 0.1, 0.1]],
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bad_rows(name, dtype):
    """Outside of a kernel's domain, not finite, k(x, x) not finite, or of another width: an error, and no change."""
    X, y = stream(Hinge(), 200, seed=11, dtype=dtype)
    X = np.abs(X) / 2
    parts = (ADDITIVE, Hinge(), Gradient(0.2, 0.01), Oldest(50))
    learner = Learner(*parts, average=True, track_norm=True, backend="trees")
    learner.learn(X, y)
    with np.errstate(over="ignore"):
        bad = np.array(BAD_ROWS[name]).astype(dtype)
    bad[0, 0] = min(bad[0, 0], dtype(-1e-30)) if name == "negative" else bad[0, 0]
    batch = np.concatenate([X[:20, : bad.shape[1]], bad]) if bad.shape[1] < 4 else np.repeat(bad, 21, axis=0)
    fails("X", lambda: learner.learn(batch, np.ones(21)), learner)
    fails("X", lambda: learner.learn_one(bad[0], 1.0), learner)
    fails("X", lambda: learner.score(batch), learner)
    fails("X", lambda: learner.score_one(bad[0]), learner)
    fails("X", lambda: learner.effects(bad), learner)
    fresh = Learner(Additive(Spline()), Hinge(), Implicit(), backend="trees")
    if name in ("negative", "nan", "overflow"):
        fails("X", lambda: fresh.learn(bad, [1.0]), fresh)
        assert fresh.backend == "not chosen yet"


def test_single_and_double_refuse_the_same():
    """A row whose k(x, x) overflows single precision is refused by every path of a float32 learner."""
    learner = Learner(Spline(1), Squared(), Implicit(), backend="trees")
    learner.learn(np.ones((1, 1), dtype=np.float32), [1.0])
    x = np.full(1, 1e15, dtype=np.float32)
    fails("X", lambda: learner.learn(x[None], [1.0]), learner)
    fails("X", lambda: learner.learn_one(x, 1.0), learner)
    fails("X", lambda: learner.score_one(x), learner)


# ------------------------------------------------------------------------------------------------ anything goes


@st.composite
def operations(draw):
    """What is done to a learner: rows learned from a few or many keys, in order or not; a copy; a score."""
    pool = draw(st.sampled_from(["few", "grid", "any", "rising", "falling"]))
    return draw(st.sampled_from(["learn", "learn", "learn", "rows", "copy"])), pool, draw(st.integers(1, 300))


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    kernel=st.sampled_from([Exponential(0.2), Spline(1), Brownian() + Matern(2.5), Additive(products=((0, 0),))]),
    rule=st.sampled_from([Gradient(0.3, 0.05), Gradient(0.3), Adatron(0.5), SVMD(0.3, 0.05, 0.1, 0.9), Perceptron()]),
    size=st.one_of(st.integers(1, 80), st.sampled_from([200, 500, None])),
    smallest=st.booleans(),
    todo=st.lists(operations(), min_size=1, max_size=8),
)
def test_anything(seed, kernel, rule, size, smallest, todo):
    """After any sequence of operations the trees hold the expansion, and nothing else."""
    rng = np.random.default_rng(seed)
    budget = None if size is None else Smallest(size) if smallest else Oldest(size)
    loss = Hinge(0.0) if isinstance(rule, Perceptron) else Hinge()
    learner = Learner(kernel, loss, rule, budget, average=True, track_norm=budget is not None, backend="trees")
    last = 0.0
    for what, pool, n in todo:
        keys = {
            "few": lambda n: rng.choice([0.0, 0.1, 0.7], n), "grid": lambda n: rng.integers(0, 100, n) / 100,
            "any": lambda n: rng.uniform(0, 1, n), "rising": lambda n: np.sort(rng.uniform(0, 1, n)),
            "falling": lambda n: np.sort(rng.uniform(0, 1, n))[::-1],
        }[pool](n)  # fmt: skip
        y = np.where(np.sin(9 * keys) + rng.normal(size=n) > 0, 1.0, -1.0)
        if what == "copy":
            learner = pickle.loads(pickle.dumps(learner))
        elif what == "rows" and not rule.needs_ids:
            learn_rows(learner, keys[:, None], y)
        else:
            ids = rng.permutation(400)[:n] if rule.needs_ids else None
            if ids is not None:  # the same id is the same example
                keys, y = ids / 400, np.where(ids % 3 > 0, 1.0, -1.0)
            learner.learn(keys[:, None], y, ids=ids)
        if learner.steps == 0:
            continue
        asked = np.append(rng.uniform(0, 1.2, 20), keys[:20])[:, None]
        assert_dense(learner, asked)
        gram = kernel(learner.points, learner.points)
        assert learner.norm**2 == pytest.approx(learner.coefs @ gram @ learner.coefs, rel=1e-7, abs=1e-7)
        last = learner.norm
    assert math.isfinite(last)


def test_a_tracked_norm_of_many_points_is_stored():
    """Trees recompute the norm of many points more rarely; such a state is taken back too."""
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(14_000, 1))
    y = np.sin(9 * X[:, 0]) + 0.1 * rng.normal(size=14_000)
    parts = Exponential(0.1), Squared(), Implicit(C=1.0, reg=0.01), Oldest(2000)
    learner, other = Learner(*parts, track_norm=True), Learner(*parts, track_norm=True)
    learner.learn(X, y)
    assert learner.state().refresh_in > 10_000
    other.restore(learner.state())
    assert np.array_equal(other.learn(X[:50], y[:50]), learner.learn(X[:50], y[:50]))
