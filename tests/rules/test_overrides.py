"""What a user's subclass of a part or of an estimator overrides is never ignored: compiled code calls it, or is not
used. Everything that can be overridden is found, and each method tells when it is called."""

import warnings

import numpy as np
import pytest
from parts import KINDS, agree, classes, fitted, label, settings, stream
from sklearn.base import clone

import gossamer
from gossamer import Learner
from gossamer._registry import is_ours, own_rates, twin_of
from gossamer.bank import ModelBank
from gossamer.budgets import Forgetron, Merge, Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Loss, Squared
from gossamer.rules import Gradient, Implicit, Perceptron, Rule

TWINS = [part for kind in KINDS for part in classes(kind) if part.__dict__.get("twin")]
ESTIMATORS = [getattr(gossamer, name) for name in ("SILKRegressor", "NORMAClassifier", "SVMDDetector", "PARegressor")]


def overridable(part):
    """The names of the methods and properties that a subclass may override."""
    names = {name: value for base in reversed(part.__mro__) if is_ours(base) for name, value in vars(base).items()}
    return [
        name for name, value in sorted(names.items())
        if (callable(value) or isinstance(value, property)) and not isinstance(value, type)
        and (name == "__call__" or not name.startswith(("__", "set_", "_abc", "_estimator")))
    ]  # fmt: skip


def telling(part, name, called, **more):
    """A subclass whose method of this name works as before, and tells that it was called."""
    value = next(vars(base)[name] for base in part.__mro__ if name in vars(base))

    def method(self, *args, **options):
        called.add(name)
        return value.__get__(self, type(self))(*args, **options)

    def read(self):
        called.add(name)
        return value.__get__(self, type(self))

    return type("Mine", (part,), {name: property(read) if isinstance(value, property) else method, **more})


def companions(user, example):
    """Parts that a part goes with, and itself."""
    chosen = {"kernel": Gaussian(0.5), "loss": Squared(), "rule": Implicit(), "budget": Smallest(4)}
    kind = next(kind for kind, base in KINDS.items() if isinstance(user, base))
    if kind == "rule":
        chosen["loss"] = next(loss for loss in (Squared(), Hinge()) if agree(loss, example))
    if kind == "loss" and not agree(example, Implicit()):
        chosen["rule"] = Gradient()
    if isinstance(user, Forgetron):
        chosen["loss"], chosen["rule"] = Hinge(), Perceptron()
    return {**chosen, kind: user}


def calls(part, name, backend):
    """Which ways to learn and to score call a method that a subclass with its parent's twin has overridden."""
    called: set[str] = set()
    example = part(**settings(part)[0])
    user = telling(part, name, called, twin=part.twin)(**settings(part)[0])
    try:
        learner = Learner(**companions(user, example), backend=backend)
    except ValueError:  # the loss must be one that the rule knows
        return None
    X, y = stream(learner.loss, 30, seed=2)
    X = fitted(learner.kernel, X)
    ways = {
        "start": lambda: learner.learn(X[:12], None if y is None else y[:12]),
        "batch": lambda: learner.learn(X[12:25], None if y is None else y[12:25]),
        "row": lambda: [learner.learn_one(X[t], None if y is None else y[t]) for t in range(25, 30)],
        "score": lambda: learner.score(X),
        "score row": lambda: learner.score_one(X[0]),
    }
    found = set()
    for way, act in ways.items():
        called.clear()
        act()
        found |= {way} & ({way} if called else set())
    return found


@pytest.mark.parametrize("part", TWINS, ids=label)
def test_no_override_is_ignored(part):
    """Where the NumPy body calls a method that a subclass has overridden, so does whatever learns by default."""
    for name in overridable(part):
        if name in ("compiled", "program", "numbers"):  # these make the twin
            continue
        expected = calls(part, name, "numpy")
        if expected:
            missed = expected - (calls(part, name, "auto") or set())
            assert not missed, f"{part.__name__}.{name} was overridden, and ignored in {missed}"


class Vanishing(Gradient):
    """Its steps are next to nothing, whatever its twin's would be."""

    twin = "gradient"

    def rates(self, first, count):
        return np.full(count, 1e-9)


def test_rates_of_a_subclass_take_effect():
    """In batches, row by row, in the bank and in river's single rows: the largest coefficient is 1e-9 everywhere."""
    X, y = stream(Hinge(), 40, seed=0)
    rule = Vanishing(rate=0.5, reg=0.0)
    assert twin_of(rule) == "gradient"
    assert own_rates(rule)
    for backend in ("native", "numpy"):
        learner = Learner(Gaussian(0.5), Hinge(), rule, backend=backend)
        learner.learn(X[:20], y[:20])
        for t in range(20, 40):
            learner.learn_one(X[t], y[t])
        assert learner.backend == backend
        assert np.abs(learner.coefs).max() == 1e-9
    bank = ModelBank(_vanishing())
    bank.learn(np.zeros(40, dtype=int), X, y)
    assert bank.backend == "estimators"
    assert np.abs(bank.model(0).dual_coef_).max() == 1e-9


def _vanishing():
    rule = {"_rule": lambda self: Vanishing(rate=0.5, reg=0.0)}
    return type("Mine", (gossamer.NORMAClassifier,), rule)(Gaussian(0.5))


class Loose(Smallest):
    """A user's budget that only replaces the first slot."""

    def choose(self, expansion, size, kappa):
        return min(expansion.size, self.size - 1)


@pytest.mark.parametrize("budget", [Merge, Forgetron])
def test_a_budget_that_reshapes_may_choose(budget):
    """A subclass of a budget that merges or shrinks, with its own choice, gets it."""
    mine = type("Mine", (budget,), {"choose": Loose.choose})(4)
    X, y = stream(Hinge(), 60, seed=1)
    scores = [Learner(Gaussian(0.5), Hinge(0.0), Perceptron(), b).learn(X, y) for b in (mine, Loose(4))]
    np.testing.assert_allclose(*scores, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=label)
def test_a_bank_ignores_no_override_of_an_estimator(estimator):
    """Where an estimator on its own calls a method that a subclass has overridden, so does the bank."""
    X, y = stream(Hinge(), 40, seed=3)
    for name in overridable(estimator):
        if name in ("_loss", "_loss_many", "_rule", "_budget"):  # what they make takes effect in compiled code too
            continue
        called: set[str] = set()
        model = telling(estimator, name, called)(Gaussian(0.5))
        alone = clone(model)
        called.clear()
        alone.predict_learn(X, y)
        alone.predict(X)
        if called:
            called.clear()
            bank = ModelBank(model, threads=1)
            called.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                bank.learn(np.zeros(40, dtype=int), X, y)
                bank.predict(np.zeros(40, dtype=int), X)
            assert bank.backend == "estimators", name


def test_what_the_package_defines_is_compiled():
    """Every part of the package that names a twin has it, and a subclass that changes only numbers keeps it."""
    for part in TWINS:
        assert twin_of(part(**settings(part)[0])) == part.twin

    class Half(Gradient):
        twin = "gradient"

        def numbers(self):
            return (0.5 * self.rate, *super().numbers()[1:])

    assert twin_of(Half()) == "gradient"
    assert not own_rates(Half())
    assert issubclass(Half, Rule)
    assert issubclass(Hinge, Loss)
