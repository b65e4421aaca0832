"""Bad input: one sentence says what is wrong, and the model is bit for bit what it was."""

import math
import re

import numpy as np
import pytest
from parts import assert_same, stream

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest, Sublinear
from gossamer.kernels import Custom, Gaussian, Laplace, Linear, Matern, Polynomial
from gossamer.losses import (
    EpsilonInsensitive, Hinge, Huber, Logistic, Loss, Multiclass, Novelty, Pinball, Softmax, Squared, SquaredHinge,
)  # fmt: skip
from gossamer.rules import ALMA, ROMMA, SVMD, Adatron, Gradient, Implicit, PassiveAggressive, Projection

SENTENCE = re.compile(r"The '\w+' parameter of \w+ must be .+\. Got .+ instead\.", re.DOTALL)


def in_python(A, B):
    return Gaussian(0.5)(A, B)


KERNELS = {
    "native": lambda: (Gaussian(0.5), "auto"),
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
    before = learner.state() if learner else {}
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


@pytest.mark.parametrize("machine", ["native", "numpy"])
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


# ---------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("part", "parameter", "values"),
    [
        (Polynomial, "degree", (0, -1, 2.5, "3", None, True)),
        (Polynomial, "gamma", (0, -1.0, math.nan, math.inf, "scale", None)),
        (Polynomial, "coef0", (-1e-9, math.nan, None)),
        (Gaussian, "gamma", (0, -1.0, math.nan, math.inf, "auto", None, True)),
        (Laplace, "gamma", (0, -1.0, math.nan, math.inf, "auto", None)),
        (Matern, "nu", (0.0, 1.0, 3)),
        (Matern, "length", (0, -1.0, math.nan, math.inf, None)),
        (Custom, "function", (None, 3, "gaussian")),
        (Hinge, "margin", (-0.1, math.nan, math.inf, None, "1")),
        (Hinge, "nu", (0.0, -0.1, 1.1, math.nan, "0.1")),
        (SquaredHinge, "margin", (-0.1, math.nan)),
        (EpsilonInsensitive, "epsilon", (-0.1, math.nan, math.inf)),
        (EpsilonInsensitive, "nu", (0.0, 1.0, math.nan)),
        (Huber, "delta", (0.0, -1.0, math.nan)),
        (Huber, "nu", (0.0, 1.0)),
        (Huber, "standard", (1, None, "yes")),
        (Huber, "adapts_by", ("median", None, 1)),
        (Pinball, "quantile", (0.0, 1.0, -0.5, math.nan)),
        (Novelty, "margin", (-0.1, math.nan)),
        (Novelty, "nu", (0.0, 1.1)),
        (Gradient, "rate", (0.0, -1.0, math.nan, math.inf, None)),
        (Gradient, "reg", (-0.1, math.nan, math.inf, None)),
        (Gradient, "schedule", ("linear", None, 3)),
        (Gradient, "fit_intercept", (1, 0, None, "yes")),
        (Implicit, "C", (0.0, -1.0, math.nan, None)),
        (Implicit, "rate", (0.0, math.inf)),
        (Implicit, "reg", (-0.1, math.inf)),
        (Implicit, "schedule", ("linear", None)),
        (Implicit, "fit_intercept", (1, None)),
        (Implicit, "joint", (1, None)),
        (Multiclass, "cost", (3.0, "high", [[0.0, 1.0]], [[0, 1], [1, 1]], [[0, -1], [1, 0]], [[0, math.nan], [1, 0]])),
        (Multiclass, "label_kernel", ([[1.0, 2.0]], [[1, 2], [2, 1]], [[1, 0.5], [0, 1]], "tree")),
        (Multiclass, "classes", (0, -1, 2.5, "3", True)),
        (Multiclass, "step", ("fast", None)),
        (Multiclass, "margin", (-0.1, math.nan, math.inf)),
        (Softmax, "classes", (0, 2.5, "3")),
        (Projection, "radius", (0.0, -1.0, math.nan, math.inf)),
        (PassiveAggressive, "C", (0.0, -1.0, math.nan, None)),
        (PassiveAggressive, "variant", ("PA-III", None, 1)),
        (ALMA, "alpha", (0.0, 1.1, math.nan, None)),
        (ALMA, "B", (0.0, -1.0, math.inf)),
        (ALMA, "C", (0.0, math.inf, None)),
        (ROMMA, "aggressive", (1, None)),
        (Adatron, "rate", (0.0, math.inf)),
        (Adatron, "C", (0.0, math.nan)),
        (SVMD, "rate", (0.0, 100.0, math.inf)),
        (SVMD, "reg", (-0.1, math.inf)),
        (SVMD, "meta", (-0.1, math.inf)),
        (SVMD, "memory", (-0.1, 1.1)),
        (SVMD, "C", (0.0, math.inf)),
        (Sublinear, "rate", (0.0, 1.0, math.inf)),
        (Sublinear, "reg", (0.0, math.nan)),
        (Sublinear, "exponent", (0.0, 0.5)),
        (Oldest, "size", (0, -3, 2.0, "4", True)),
        (Oldest, "age", (0, -3, 2.0, math.inf)),
        (Smallest, "size", (0, -3, 2.0, None, "4")),
        (Smallest, "by", ("age", None, 0)),
    ],
)
def test_bad_parameters(part, parameter, values):
    """Every parameter out of its range is refused when the part is made."""
    needed = {Smallest: {"size": 4}, Sublinear: {"rate": 0.9, "reg": 1.0}}.get(part, {})
    for value in values:
        fails(parameter, lambda: part(**{**needed, parameter: value}), owner=part.__name__)  # noqa: B023
    if part is Oldest:
        fails("size", Oldest, owner="Oldest")


@pytest.mark.parametrize(
    ("parameter", "changed", "owner"),
    [
        ("kernel", {"kernel": "gauss"}, "Learner"),
        ("kernel", {"kernel": 3}, "Learner"),
        ("kernel", {"kernel": Gaussian}, "Learner"),
        ("loss", {"loss": "hing"}, "Learner"),
        ("loss", {"loss": Hinge}, "Learner"),
        ("loss", {"loss": lambda z, y: z}, "Learner"),
        ("rule", {"rule": "implicit"}, "Learner"),
        ("rule", {"rule": None}, "Learner"),
        ("budget", {"budget": 0}, "Learner"),
        ("budget", {"budget": Smallest}, "Learner"),
        ("average", {"average": "all"}, "Learner"),
        ("average", {"average": None}, "Learner"),
        ("track_norm", {"track_norm": 1}, "Learner"),
        ("budget", {"track_norm": True, "budget": Smallest(10**6)}, "Learner"),
        ("budget", {"track_norm": True, "budget": Sublinear(0.9, 1.0)}, "Learner"),
        ("budget", {"rule": ROMMA(), "budget": Smallest(10**6)}, "Learner"),
        ("backend", {"backend": "cuda"}, "Learner"),
        ("margin", {"loss": Hinge(0.0)}, "Hinge"),
        ("joint", {"rule": Implicit(joint=True)}, "Implicit"),
        ("joint", {"rule": Implicit(joint=True), "loss": Huber(nu=0.2)}, "Implicit"),
        ("fit_intercept", {"rule": Implicit(fit_intercept=True), "loss": Novelty()}, "Implicit"),
        ("C", {"rule": Implicit(C=math.inf), "loss": Logistic()}, "Implicit"),
        ("C", {"rule": Implicit(C=math.inf), "loss": Novelty(nu=0.2)}, "Implicit"),
        ("C", {"rule": Implicit(C=math.inf), "loss": type("Mine", (Loss,), {})()}, "Implicit"),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value)),
)
def test_bad_learners(parameter, changed, owner):
    """Parts that are none, unknown names, and parts that do not go together are refused when the learner is made."""
    good = {"kernel": Gaussian(0.5), "loss": Hinge(), "rule": Implicit(), "budget": Smallest(4)}
    fails(parameter, lambda: Learner(**{**good, **changed}), owner=owner)


def test_unknown_names_list_the_known():
    """The error for an unknown name lists every known one, and each of these works."""
    for parameter, argument in (("kernel", 0), ("loss", 1)):
        parts = [Linear(), Squared(), Implicit()]
        parts[argument] = "unknown"
        with pytest.raises(ValueError, match="must be one of") as caught:
            Learner(*parts)
        names = re.findall(r"'(\w+)'", str(caught.value).split("must be one of")[1].split("Got")[0])
        assert len(names) >= 5
        for name in names:
            parts[argument] = name
            assert type(getattr(Learner(*parts), parameter)).twin == name


def test_forced_backend():
    """backend="native" is refused where a part has no twin, before anything is learned."""
    learner = Learner(Custom(lambda A, B: A @ B.T), Hinge(), Implicit(), backend="native")
    fails("backend", lambda: learner.learn(np.ones((2, 2)), [1, -1]), learner)
    assert learner.steps == 0


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
