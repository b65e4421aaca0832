"""A saved model goes on as if it had never stopped."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import agree, assert_same, backends, cut, examples, fitted, label, settled, stream, user_kernel

from gossamer import Learner
from gossamer._engine.state import State
from gossamer.budgets import Smallest
from gossamer.kernels import Custom, Gaussian
from gossamer.losses import Hinge, Squared
from gossamer.rules import Gradient, Implicit

KERNELS = [settled(kernel) for kernel in examples("kernel")]
COMPILED = [(kernel, backend) for kernel in KERNELS for backend in backends(kernel) or ["auto"]]


def restored(learner, backend="auto"):
    """A new learner of the same parts, put into the state of another."""
    average = {"all": True, "sparse": "sparse", None: False}[learner.average]
    other = Learner(
        learner.kernel, learner.loss, learner.rule, learner.budget, average=average, track_norm=learner.track_norm,
        backend=backend,
    )  # fmt: skip
    other.restore(learner.state())
    return other


COPIES = {
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
    "pickle": lambda learner: pickle.loads(pickle.dumps(learner)),
    "restore": restored,
}


@settings(max_examples=80)
@given(st.data())
@pytest.mark.parametrize("machine", ["compiled", "numpy"])
def test_goes_on_exactly(machine, data):
    """Copied, pickled or restored at any place, by any parts: same scores and same state, bit for bit, ever after."""
    loss = data.draw(st.sampled_from(examples("loss")))
    rule = data.draw(st.sampled_from([rule for rule in examples("rule") if agree(loss, rule)]))
    machines = COMPILED if machine == "compiled" else [(kernel, "numpy") for kernel in KERNELS]
    machines = [machine for machine in machines if rule.keeps_norm or machine[1] != "trees"]
    kernel, backend = data.draw(st.sampled_from(machines))
    together = [budget for budget in examples("budget") if agree(loss, rule, budget, kernel, backend)]
    budget = data.draw(st.sampled_from(together))
    average = data.draw(st.sampled_from([False, True, "sparse"]))
    track_norm = budget.limit is not None and data.draw(st.booleans())
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    at = data.draw(st.integers(0, 60))
    X, y = stream(loss, 60, data.draw(st.integers(0, 1000)), dtype=dtype)
    X = fitted(kernel, X)
    learner = Learner(kernel, loss, rule, budget, average=average, track_norm=track_norm, backend=backend)
    if at:
        learner.learn(X[:at], cut(y, slice(0, at)))
    others = [COPIES[name](learner) for name in ("deepcopy", "copy", "pickle")] + [restored(learner, backend)]
    before = learner.state()
    for other in others:
        assert_same(other.state(), before)
        assert other.backend == learner.backend
    if at == 60:
        return
    rest = X[at:], cut(y, slice(at, 60))
    scores = learner.learn(*rest)
    for other in others:
        assert np.array_equal(other.learn(*rest), scores)
        mine, its = learner.state(), other.state()
        assert_same(its, mine)
        assert np.array_equal(other.score(X), learner.score(X))
        if average:
            assert np.array_equal(other.score(X, average=True), learner.score(X, average=True))


@pytest.mark.parametrize("name", COPIES)
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Custom(user_kernel), Gaussian("scale")], ids=label)
def test_copies_are_independent(name, kernel):
    """What a copy learns, the original does not."""
    X, y = stream(Hinge(), 80, seed=1)
    learner = Learner(kernel, Hinge(), Gradient(0.5, 0.1), Smallest(10), average=True, track_norm=True)
    learner.learn(X[:40], y[:40])
    other, before = COPIES[name](learner), learner.state()
    other.learn(X[40:], y[40:])
    assert_same(learner.state(), before)
    assert other.steps == 80
    assert other.kernel == learner.kernel


def test_a_state_is_a_snapshot():
    """Learning does not change a state taken before, and a state can be used twice."""
    X, y = stream(Hinge(), 60, seed=2)
    for kernel in (Gaussian(0.5), Custom(user_kernel)):
        learner = Learner(kernel, Hinge(), Implicit(reg=0.1), Smallest(5))
        learner.learn(X[:30], y[:30])
        state, saved = learner.state(), copy.deepcopy(learner.state())
        first = learner.learn(X[30:], y[30:])
        assert_same(state, saved)
        learner.restore(state)
        assert np.array_equal(learner.learn(X[30:], y[30:]), first)
        assert_same(state, saved)
        learner.restore(None)
        assert (learner.steps, learner.backend) == (0, "not chosen yet")


@pytest.mark.parametrize("name", COPIES)
def test_objects(name):
    """A model over words is copied with its words."""
    rng = np.random.default_rng(3)
    words = ["".join(rng.choice(list("abcdef"), 6)) for _ in range(60)]
    y = np.where([word.count("a") > 1 for word in words], 1.0, -1.0)
    learner = Learner(shared_letters, Hinge(), Implicit(C=0.5, reg=0.1), Smallest(7), average=True, track_norm=True)
    learner.learn(words[:33], y[:33])
    other = COPIES[name](learner)
    assert other.points == learner.points
    assert np.array_equal(other.learn(words[33:], y[33:]), learner.learn(words[33:], y[33:]))
    assert_same(other.state(), learner.state())


def shared_letters(A, B):
    counts = [np.array([[word.count(letter) for letter in "abcdef"] for word in side], float) for side in (A, B)]
    return counts[0] @ counts[1].T


def test_broken_states_are_refused():
    """A state whose parts do not fit each other is refused, and the learner stays what it was."""
    X, y = stream(Hinge(), 20, seed=4)
    learner = Learner(Gaussian(0.5), Hinge(), Implicit())
    learner.learn(X, y)
    good = learner.state()
    for name in ("raw", "kappas", "births", "points"):
        with pytest.raises(ValueError, match=r"must be|differ in length"):
            learner.restore(good.replace(**{name: getattr(good, name)[:-1]}))
        assert_same(learner.state(), good)


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("budget", examples("budget"), ids=label)
def test_parts_carry_their_own_state(budget, backend):
    """Every budget, and every rule that goes with it, has the entries that it begins with, of the same types, compiled
    or not; a state goes through a file's entries and back; missing, strange and surplus entries are refused."""
    for rule in examples("rule", one_each=True):
        loss = next(loss for loss in (Hinge(), Hinge(0.0), Squared()) if agree(loss, rule))
        try:
            learner = Learner(Gaussian(0.5), loss, rule, budget, backend=backend)
        except ValueError:  # they do not go together
            continue
        learner.learn(*stream(loss, 40, seed=6))
        state = learner.state()
        again = State.from_stored(state.to_stored(), state.kernel, learner.budget, rule)
        assert_same(again, state)
        for name, part in (("budget", learner.budget), ("rule", rule)):
            first, own = part.initial_state(), getattr(state, name)
            assert {key: type(value) for key, value in own.items()} == {key: type(first[key]) for key in first}
            wrong = [{**own, "another": 0.0}, None, *({**own, key: "text"} for key in own)]
            wrong += [{other: own[other] for other in own if other != key} for key in own]
            for entries in wrong:
                with pytest.raises(ValueError, match=rf"'state.{name}.*must be"):
                    learner.restore(state.replace(**{name: entries}))
        assert_same(learner.state(), state)


def test_a_part_may_have_entries_of_any_name():
    """Entries of a state that 0.1.0 did not know stand in the file in a dict of their own, whatever their names."""
    X, y = stream(Hinge(), 20, seed=7)
    learner = Learner(Gaussian(0.5), Hinge(), Implicit())
    learner.learn(X, y)
    own = {"raw": np.arange(3.0), "count": 2}
    part = type("Counting", (), {"initial_state": lambda self: {"raw": np.zeros(0), "count": 0}})()
    state = learner.state().replace(budget=own, rule=own)
    assert_same(State.from_stored(state.to_stored(), state.kernel, part, part), state)
