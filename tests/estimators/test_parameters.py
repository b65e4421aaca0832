"""Bad parameters: parts and learners refuse them when they are made, in the one sentence of test_input."""

import math
import re

import numpy as np
import pytest
from parts import by_name
from test_input import fails

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest, Sublinear
from gossamer.kernels import (
    Additive,
    Brownian,
    Custom,
    Exponential,
    Gaussian,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Spline,
)
from gossamer.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Multiclass,
    Novelty,
    Pinball,
    Softmax,
    Squared,
    SquaredHinge,
)
from gossamer.rules import ALMA, ROMMA, SVMD, Adatron, Gradient, Implicit, PassiveAggressive, Projection


@pytest.mark.parametrize(
    ("part", "parameter", "values"),
    [
        (Polynomial, "degree", (0, -1, 2.5, "3", None, True)),
        (Polynomial, "gamma", (0, -1.0, math.nan, math.inf, "scale", None)),
        (Polynomial, "coef0", (-1e-9, math.nan, None)),
        (Gaussian, "gamma", (0, -1.0, math.nan, math.inf, "auto", None, True)),
        (Laplace, "gamma", (0, -1.0, math.nan, math.inf, "auto", None)),
        (Matern, "nu", (0.0, 1.0, 3, 17.5, None)),
        (Matern, "length", (0, -1.0, math.nan, math.inf, None)),
        (Exponential, "length", (0, -1.0, math.nan, math.inf, None)),
        (Spline, "order", (-1, 1.0, "1", None, True, 33)),
        (Additive, "base", (None, "spline", 3, (Spline(), 3))),
        (Additive, "weights", (1.0, (1.0, 0.0), (math.inf,), (-1.0,), "one", (None,))),
        (Additive, "products", (None, 3, (0, 1), ((0,),), ((0, 1, 2),), ((0, -1),), ((0, 1.0),), ((0, True),), "01")),
        (Additive, "differences", (None, 3, (0, 1), ((0,),), ((0, 1, 2),), ((0, -1),), ((0, 1.0),), ((0, True),))),
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
        ("rule", {"rule": "explicit"}, "Learner"),
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
        ("loss", {"rule": Implicit(), "loss": type("Mine", (Loss,), {"target": "label"})()}, "Learner"),
        ("loss", {"rule": ROMMA(), "loss": Squared()}, "Learner"),
        ("loss", {"rule": Projection(), "loss": Hinge(nu=0.2)}, "Learner"),
        ("loss", {"rule": SVMD(), "loss": Multiclass(label_kernel=[[1.0, 0.0], [0.0, 1.0]])}, "Learner"),
        ("margin", {"rule": ALMA(), "loss": Hinge(0.5)}, "Hinge"),
        ("fit_intercept", {"rule": Gradient(fit_intercept=True), "loss": Softmax()}, "Gradient"),
    ],
    ids=lambda value: re.sub(r" at 0x\w+", "", str(value)),
)
def test_bad_learners(parameter, changed, owner):
    """Parts that are none, unknown names, and parts that do not go together are refused when the learner is made."""
    good = {"kernel": Gaussian(0.5), "loss": Hinge(), "rule": Implicit(), "budget": Smallest(4)}
    fails(parameter, lambda: Learner(**{**good, **changed}), owner=owner)


def test_unknown_names_list_the_known():
    """The error for an unknown name lists every known one, and each of these works."""
    for parameter, argument in (("kernel", 0), ("loss", 1), ("rule", 2)):
        parts = [Linear(), Squared(), Implicit()]
        parts[argument] = "unknown"
        with pytest.raises(ValueError, match="must be one of") as caught:
            Learner(*parts)
        names = re.findall(r"'(\w+)'", str(caught.value).split("must be one of")[1].split("Got")[0])
        assert len(names) >= 5
        for name in names:
            parts[argument] = name + {"sum": ":left=linear,right=spline", "product": ":left=linear,right=spline",
                                      "scaled": ":base=linear,factor=2"}.get(name, "")  # fmt: skip
            parts[1] = "hinge" if parameter == "rule" else parts[1]
            if name in by_name(parameter):  # other tests have parts too
                assert type(getattr(Learner(*parts), parameter)) is by_name(parameter)[name]


def test_forced_backend():
    """backend="native" is refused where a part has no twin, and "trees" where the kernel does not split, before
    anything is learned."""
    for kernel, backend in (
        (Custom(lambda A, B: A @ B.T), "native"), (Gaussian(0.5), "trees"), (Matern(1.5), "trees"),
        (Additive(Gaussian(0.5)), "trees"), (Additive(Brownian()) * Additive(Brownian()), "trees"),
    ):  # fmt: skip
        learner = Learner(kernel, Hinge(), Implicit(), backend=backend)
        fails("backend", lambda: learner.learn(np.ones((2, 2)), [1, -1]), learner)  # noqa: B023
        assert learner.steps == 0


@pytest.mark.parametrize(
    ("kernel", "parameter"),
    [
        (Additive((Spline(), Brownian())), "base"), (Additive(Spline(), weights=(1.0, 2.0)), "weights"),
        (Additive((Spline(),) * 3, products=((0, 1),)), "base"), (Additive(products=((0, 3),)), "products"),
        (Additive(Exponential(), differences=((3, 0),)), "differences"), (Spline(), "X"), (Exponential(), "X"),
        (2.0 * Brownian() + Linear(), "X"),
    ],
    ids=str,
)  # fmt: skip
def test_kernels_that_do_not_fit_the_rows(kernel, parameter):
    """One base and weight per coordinate, pairs of features that are there, one feature for a kernel of one number."""
    for backend in ("auto", "numpy"):
        learner = Learner(kernel, Hinge(), Implicit(), backend=backend)
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of "):
            learner.learn(np.ones((2, 3)), [1, -1])
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of "):
            learner.score(np.ones((2, 3)))
        assert (learner.steps, learner.backend) == (0, "not chosen yet")
