"""Bad input: one sentence says what is wrong, and the model is bit for bit what it was."""

import math
import re

import numpy as np
import pytest
from parts import assert_same, stream

from gossamer import Learner
from gossamer.budgets import Smallest
from gossamer.kernels import Additive, Custom, Exponential, Gaussian
from gossamer.losses import Hinge, Huber, Logistic, Multiclass, Novelty, Pinball, Softmax, Squared, SquaredHinge
from gossamer.rules import Adatron, Gradient, Implicit

SENTENCE = re.compile(r"The '\w+' parameter of \w+ must be .+\. Got .+ instead\.", re.DOTALL)


def in_python(A, B):
    return Gaussian(0.5)(A, B)


KERNELS = {
    "native": lambda: (Gaussian(0.5), "auto"),
    "trees": lambda: (Additive(Exponential(), products=((0, 1),)), "trees"),
    "python kernel": lambda: (Custom(in_python), "auto"),
    "numpy": lambda: (Gaussian(0.5), "numpy"),
}
MACHINES = pytest.mark.parametrize("machine", KERNELS)


def trained(machine, loss=None, rule=None, rows=30):
    """A learner that has seen some rows, with everything that a failed call could harm."""
    loss = loss or Hinge()
    kernel, backend = KERNELS[machine]()
    learner = Learner(
        kernel, loss, rule or Gradient(0.5, 0.1, fit_intercept=loss.target != "none"), Smallest(8),
        average=True, track_norm=True, backend=backend,
    )  # fmt: skip
    if rows:
        learner.learn(*stream(loss, rows, seed=1))
    return learner


def fails(parameter, call, learner=None, owner="Learner"):
    """The call raises the one sentence about this parameter and changes nothing."""
    before = learner.state() if learner else None
    with pytest.raises(ValueError, match=SENTENCE) as caught:
        call()
    text = str(caught.value)
    assert SENTENCE.fullmatch(text), text
    assert text.startswith(f"The '{parameter}' parameter of {owner} "), text
    if learner:
        assert_same(before, learner.state())


# ------------------------------------------------------------------------------------------------------- rows of X


def bad_last(value, dtype=np.float64):
    X = stream(Hinge(), 50, seed=2)[0].astype(dtype)
    X[-1, -1] = value
    return X


BAD_X = {
    "nan last": lambda: bad_last(np.nan),
    "inf last": lambda: bad_last(np.inf),
    "-inf last": lambda: bad_last(-np.inf),
    "nan float32": lambda: bad_last(np.nan, np.float32),
    "too wide": lambda: np.zeros((50, 4)),
    "too narrow": lambda: np.zeros((50, 2)),
    "empty": lambda: np.zeros((0, 3)),
}
BAD_FOR_VECTORS = {
    "words": lambda: ["one", "two"],
    "array of words": lambda: np.array([["a", "b", "c"]] * 50),
    "objects": lambda: np.array([[None, {}, 1.0]] * 50, dtype=object),
    "ragged": lambda: [[1.0, 2.0, 3.0], [1.0]],
    "empty list": lambda: [],
    "none": lambda: None,
    "dict": lambda: {"a": 1.0},
    "number": lambda: 3.0,
    "one row as a vector": lambda: np.zeros(3),
    "cube": lambda: np.zeros((50, 3, 1)),
    "complex": lambda: np.zeros((50, 3), dtype=complex),
    "dates": lambda: np.zeros((50, 3), dtype="M8[s]"),
}


@MACHINES
@pytest.mark.parametrize("name", BAD_X)
def test_bad_rows(name, machine):
    """Rows that are not finite, not numbers or of another shape, when learning and when scoring."""
    learner, X = trained(machine), BAD_X[name]()
    fails("X", lambda: learner.learn(X, np.ones(len(X))), learner)
    fails("X", lambda: learner.score(X), learner)


@pytest.mark.parametrize("machine", ["native", "trees", "numpy"])
@pytest.mark.parametrize("name", BAD_FOR_VECTORS)
@pytest.mark.parametrize("rows", [0, 30])
def test_not_a_matrix(name, machine, rows):
    """Things that are no matrix, for kernels over vectors, in a fresh and in a trained learner."""
    learner, X = trained(machine, rows=rows), BAD_FOR_VECTORS[name]()
    fails("X", lambda: learner.learn(X, np.ones(50)), learner)
    fails("X", lambda: learner.score(X), learner)
    assert learner.steps == rows


@MACHINES
@pytest.mark.parametrize("x", [[np.nan, 0, 0], [0, 0, np.inf], [0, 0], [0, 0, 0, 0], []], ids=str)
def test_bad_single_row(machine, x):
    """The path for single rows is as strict."""
    for convert in (np.array, np.float32, list):
        learner = trained(machine)
        fails("X", lambda: learner.learn_one(convert(x), 1.0), learner)  # noqa: B023
        fails("X", lambda: learner.score_one(convert(x)), learner)  # noqa: B023


def test_objects_and_rows_do_not_mix():
    """A learner of words takes no matrix, a learner of rows no words."""

    def shared(A, B):
        return np.array([[float(len(set(a) & set(b))) for b in B] for a in A])

    words = Learner(shared, Hinge(), Implicit())
    words.learn(["spam", "ham", "eggs"], [1, -1, -1])
    fails("X", lambda: words.learn(np.zeros((2, 3)), [1, 1]), words)
    fails("X", lambda: words.learn([], []), words)
    rows = trained("python kernel")
    fails("X", lambda: rows.learn(["spam", "ham"], [1, -1]), rows)


# ----------------------------------------------------------------------------------------------- targets and weights

BAD_Y = {
    "0/1": [0.0, 1.0] * 25,
    "last is 0": [1.0] * 49 + [0.0],
    "last is 2": [1.0] * 49 + [2.0],
    "last is nan": [1.0] * 49 + [np.nan],
    "booleans": [True, False] * 25,
    "classes": ["spam", "ham"] * 25,
    "short": [1.0] * 49,
    "long": [1.0] * 51,
    "two columns": np.ones((50, 2)),
    "number": 1.0,
    "none": None,
    "nones": [None] * 50,
}


@MACHINES
@pytest.mark.parametrize("loss", [Hinge(), SquaredHinge(), Logistic()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("name", BAD_Y)
def test_bad_labels(name, loss, machine):
    """Binary targets are -1 and +1 and nothing else."""
    learner, X = trained(machine, loss), stream(loss, 50, seed=3)[0]
    fails("y", lambda: learner.learn(X, BAD_Y[name]), learner)


@MACHINES
@pytest.mark.parametrize("loss", [Multiclass(classes=4), Softmax()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("last", [-1.0, 0.5, math.nan, math.inf, 1e300, "spam", None])
def test_bad_classes(last, loss, machine):
    """A class is an index 0, 1, ..., below their number where that is given; ids are for rules that ask for them."""
    learner, X = trained(machine, loss, Gradient()), stream(loss, 50, seed=3)[0]
    fails("y", lambda: learner.learn(X, [0.0] * 49 + [last]), learner)
    fails("y", lambda: learner.learn_one(X[0], last), learner)
    fails("ids", lambda: learner.learn(X, [0.0] * 50, ids=range(50)), learner)
    if loss.classes:
        fails("y", lambda: learner.learn(X, [0.0] * 49 + [4.0]), learner)


@MACHINES
@pytest.mark.parametrize("ids", [[-1, 0], [0.0, 1.0], [0], ["a", "b"], [[0], [1]]], ids=str)
def test_bad_ids(ids, machine):
    """Ids are integers, one per row, none negative."""
    learner = trained(machine, rule=Adatron())
    fails("ids", lambda: learner.learn(np.zeros((2, 3)), [1.0, -1.0], ids=ids), learner)


@MACHINES
@pytest.mark.parametrize("loss", [Squared(), Pinball(), Huber()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("name", ["last is nan", "classes", "short", "long", "two columns", "number", "none", "nones"])
def test_bad_targets(name, loss, machine):
    """Real targets are finite numbers, one per row."""
    learner, X = trained(machine, loss), stream(loss, 50, seed=3)[0]
    fails("y", lambda: learner.learn(X, BAD_Y[name]), learner)


@MACHINES
@pytest.mark.parametrize(
    ("loss", "y"),
    [(Hinge(), 0.0), (Hinge(), 2.0), (Hinge(), math.nan), (Hinge(), None), (Hinge(), "spam"), (Squared(), math.inf),
     (Squared(), "spam"), (Squared(), [1.0, 2.0])],
    ids=str,
)  # fmt: skip
def test_bad_single_target(loss, y, machine):
    """The path for single rows is as strict about targets."""
    learner = trained(machine, loss)
    fails("y", lambda: learner.learn_one(np.zeros(3), y), learner)


@MACHINES
@pytest.mark.parametrize("last", [-1.0, -1e-300, math.nan, math.inf])
def test_bad_weights(last, machine):
    """Weights are finite and not negative, one per row."""
    for loss in (Hinge(), Novelty()):
        learner = trained(machine, loss)
        X, y = stream(loss, 50, seed=3)
        fails("sample_weight", lambda: learner.learn(X, y, [1.0] * 49 + [last]), learner)  # noqa: B023
        fails("sample_weight", lambda: learner.learn(X, y, [1.0] * 49), learner)  # noqa: B023
        fails("sample_weight", lambda: learner.learn_one(X[0], 1.0, last), learner)  # noqa: B023


@MACHINES
def test_a_fresh_learner_stays_fresh(machine):
    """A first call that fails leaves nothing: not the width, not the float type, not gamma."""
    learner = trained(machine, rows=0)
    fails("y", lambda: learner.learn(np.zeros((3, 7), dtype=np.float32), [1, 0, 1]), learner)
    fails("X", lambda: learner.learn([[np.nan]], [1.0]), learner)
    assert (learner.backend, learner.steps) == ("not chosen yet", 0)
    X, y = stream(Hinge(), 40, seed=4)
    twin = trained(machine, rows=0)
    assert np.array_equal(learner.learn(X, y), twin.learn(X, y))
    assert_same(learner.state(), twin.state())
    scaled = Learner(Gaussian("scale"), Hinge(), Implicit())
    fails("y", lambda: scaled.learn(X, 0 * y), scaled)
    assert scaled.kernel == Gaussian("scale")


# ---------------------------------------------------------------------------------------------------------- schedules


@MACHINES
@pytest.mark.parametrize("factor", [0.0, -1.0, math.nan, math.inf, 20.0])
def test_bad_schedule(factor, machine):
    """A step size that is not positive, or with rate * reg >= 1, is found before the batch it comes in is learned."""
    learner = trained(machine, rule=Gradient(0.5, 0.1, lambda t: factor if t == 40 else 1.0))
    X, y = stream(Hinge(), 50, seed=5)
    fails("schedule", lambda: learner.learn(X, y), learner, owner="Gradient")
    learner.learn(X[:9], y[:9])
    fails("schedule", lambda: learner.learn_one(X[0], 1.0), learner, owner="Gradient")
    assert learner.steps == 39


def test_rate_times_reg():
    """rate * reg < 1 for Gradient, also at t = 1 of a falling schedule; a function may make it 1 at t = 1 only."""
    for schedule in ("constant", "inverse_sqrt"):
        for rate, reg in ((1.0, 1.0), (2.0, 0.5), (100.0, 1.0)):
            fails("rate", lambda: Gradient(rate, reg, schedule), owner="Gradient")  # noqa: B023
    Implicit(rate=100.0, reg=100.0)
    learner = Learner(Gaussian(0.5), Hinge(), Gradient(2.0, 0.5, lambda t: 1.0))
    fails("schedule", lambda: learner.learn(np.zeros((2, 1)), [1, 1]), learner, owner="Gradient")
    learner.learn(np.zeros((1, 1)), [1])
    fails("schedule", lambda: learner.learn_one(np.zeros(1), 1), learner, owner="Gradient")


# ---------------------------------------------------------------------------------------- user code that fails midway


@pytest.mark.parametrize("error", [RuntimeError, ValueError, KeyboardInterrupt])
def test_a_kernel_that_fails_in_a_later_block(error):
    """A user's kernel that raises after several blocks leaves the model as it was before the call."""
    left = [math.inf]

    def kernel(A, B):
        left[0] -= 1
        if left[0] < 0:
            raise error("no more")
        return Gaussian(0.5)(A, B)

    X, y = stream(Hinge(), 400, seed=6)
    parts = (kernel, Hinge(), Gradient(0.3, 0.05), Smallest(20))
    learner, twin = (Learner(*parts, average=True) for _ in range(2))
    for calls in (0, 1, 5, 11):
        learner.learn(X[:50], y[:50])
        before, left[0] = learner.state(), calls
        with pytest.raises(error):
            learner.learn(X[50:], y[50:])
        left[0] = math.inf
        assert_same(before, learner.state())
    for _ in range(4):
        twin.learn(X[:50], y[:50])
    np.testing.assert_allclose(learner.learn(X, y), twin.learn(X, y), rtol=1e-12, atol=1e-12)
