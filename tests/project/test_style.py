"""The rules the code keeps: documented parameters, and none that changes nothing (`make test` runs ruff and mypy)."""

import itertools

import numpy as np
import pytest
from parts import KINDS, agree, classes, fields, fitted, label, settings, stream

from gossamer import Learner
from gossamer.budgets import Forgetron, Fourier, Merge, Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import EpsilonInsensitive, Hinge, Multiclass, Novelty, Squared
from gossamer.rules import Gradient, Implicit, Perceptron

PARTS = [part for kind in KINDS for part in classes(kind)]


def test_discovery():
    """The parts of the issue are found, and each has an example."""
    names = {part.__name__ for part in PARTS}
    assert names >= {"Linear", "Polynomial", "Gaussian", "Laplace", "Matern", "Sum", "Product", "Scaled", "Custom"}
    assert names >= {"Hinge", "SquaredHinge", "Logistic", "Squared", "EpsilonInsensitive", "Huber", "Pinball"}
    assert names >= {"Novelty", "Gradient", "Implicit", "Unlimited", "Oldest", "Smallest"}
    assert all(settings(part) for part in PARTS)


@pytest.mark.parametrize("part", PARTS, ids=label)
def test_every_part_is_documented(part):
    """A part has a docstring of its own that names every parameter."""
    text = part.__dict__.get("__doc__") or ""
    assert len(text) > 20
    assert not text.startswith(f"{part.__name__}(")  # a dataclass without one gets its signature
    for name in fields(part):
        assert name in text, f"{part.__name__} does not say what {name} is"


@pytest.mark.parametrize("part", PARTS, ids=label)
def test_parts_are_values(part):
    """Equal settings make equal, hashable parts that cannot be changed, and repr tells them apart."""
    made = [part(**setting) for setting in settings(part)]
    assert made == [part(**setting) for setting in settings(part)]
    assert len(set(made)) == len(made)
    assert len({repr(one) for one in made}) == len(made)
    for name in fields(part):
        with pytest.raises(AttributeError):
            setattr(made[0], name, 1.0)


def behaviour(kind, part):
    """What a part does to some learners: their scores, points and levels, or None where it does not go with them."""
    losses = [Hinge(), Hinge(nu=0.3), Squared(), EpsilonInsensitive(nu=0.3), Novelty(nu=0.3), Multiclass()]
    losses = [part] if kind == "loss" else losses
    rules = [Gradient(0.4, 0.1), Implicit(C=0.5)] if kind != "rule" else [part]
    budget = part if kind == "budget" else Smallest(6)
    kernel = part if kind == "kernel" else Gaussian(0.5) * (lambda A, B: 1 + A @ B.T)
    if isinstance(budget, (Fourier, Merge)):
        kernel = Gaussian(0.5)
    if isinstance(budget, Forgetron):
        rules = [Perceptron()]
    seen = []
    for loss, rule in itertools.product(losses, rules):
        if agree(loss, rule, budget):
            X, y = stream(loss, 40, seed=1)
            learner = Learner(kernel, loss, rule, budget)
            scores, levels = learner.learn(fitted(kernel, X), y, with_levels=True)
            seen.append((scores.tolist(), levels.tolist(), learner.coefs.tolist(), type(learner.points).__name__))
        else:
            seen.append(None)
    return seen


#: Parameters that cannot show here: one with a single example, one that saves time and changes no number, and two whose
#: values depend on the number of features (test_kernels has their formula).
HIDDEN = ("function", "diagonal", "weights", "differences")
PARAMETERS = [
    (kind, part, name) for kind in KINDS for part in classes(kind) for name in fields(part) if name not in HIDDEN
]


@pytest.mark.parametrize(("kind", "part", "name"), PARAMETERS, ids=lambda case: getattr(case, "__name__", case))
def test_every_parameter_changes_something(kind, part, name):
    """For every parameter two settings that differ in it alone learn different things."""
    made = settings(part)
    for setting in made:
        for value in {repr(other[name]): other[name] for other in made}.values():
            if repr(value) == repr(setting[name]):
                continue
            try:
                one, other = part(**setting), part(**{**setting, name: value})
            except ValueError:
                continue
            if behaviour(kind, one) != behaviour(kind, other):
                return
    pytest.fail(f"no value of {name} changes what {part.__name__} does")


def test_learner_parameters_change_something():
    """average, track_norm and backend do what they say."""
    X, y = stream(Hinge(), 30, seed=2)
    parts = (Gaussian(0.5), Hinge(), Gradient(), Smallest(5))
    states = []
    for options in ({}, {"average": True}, {"average": "sparse"}, {"track_norm": True}, {"backend": "numpy"}):
        learner = Learner(*parts, **options)
        learner.learn(X, y)
        state = learner.state()
        states.append((learner.backend, state.dropped.shape[1], state.rounds_scale > 0, state.norm2))
    assert len(set(states)) == 5


def test_numbers_are_reproducible():
    """The same stream twice, in one process, gives the same bits: nothing random is global."""
    X, y = stream(Squared(), 100, seed=3)
    scores = [Learner(Gaussian(0.5), Squared(), Implicit(), Smallest(10)).learn(X, y) for _ in range(2)]
    assert np.array_equal(*scores)
