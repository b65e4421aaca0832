"""What the estimators are made of: the parts their docstrings name, probabilities, alarms, and no idle parameter."""

import inspect
import itertools
import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from test_estimators import ADDITIVE, CLASSIFIERS, DETECTORS, FOUND, MANY, REGRESSORS, data, made, name_of

import gossamer
from gossamer import Learner, OnlineClassifier, OnlineDetector, OnlineRegressor, taxonomy
from gossamer.budgets import Oldest, Project, Random, Smallest
from gossamer.kernels import Additive, Gaussian, Polynomial
from gossamer.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Multiclass,
    Novelty,
    OneVsRest,
    Pinball,
    Softmax,
    Squared,
    SquaredHinge,
)
from gossamer.rules import (
    ALMA,
    ROMMA,
    SVMD,
    Adatron,
    Gradient,
    Implicit,
    Newton,
    PassiveAggressive,
    Perceptron,
    Projection,
)

COST = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 1.5], [0.3, 0.7, 0.0]])
FALLING = "inverse_sqrt"
GENERIC = (OnlineClassifier, OnlineDetector, OnlineRegressor)
LOSSES = ("hinge", "squared_hinge", "logistic")

#: Parameters of an estimator, and the loss, rule and budget that its docstring says they mean.
TWO = {
    "NORMAClassifier": [
        ({}, Hinge(), Gradient(0.5, 0.01), Oldest(256)),
        ({"rate": 0.3, "reg": 0.2, "margin": 0.4, "budget": 7}, Hinge(0.4), Gradient(0.3, 0.2), Oldest(7)),
        ({"loss": "logistic", "schedule": FALLING, "budget": None}, Logistic(), Gradient(0.5, 0.01, FALLING), None),
        ({"nu": 0.2, "fit_intercept": True}, Hinge(nu=0.2), Gradient(0.5, 0.01, fit_intercept=True), Oldest(256)),
        ({"loss": "squared_hinge", "margin": 2.0, "rate": 0.1}, SquaredHinge(2.0), Gradient(0.1, 0.01), Oldest(256)),
    ],
    "NORMARegressor": [
        ({}, Squared(), Gradient(0.5, 0.01), Oldest(256)),
        ({"loss": "epsilon_insensitive", "epsilon": 0.3}, EpsilonInsensitive(0.3), Gradient(0.5, 0.01), Oldest(256)),
        ({"loss": "huber", "delta": 0.3, "nu": 0.2}, Huber(0.3, nu=0.2), Gradient(0.5, 0.01), Oldest(256)),
        ({"loss": "pinball", "quantile": 0.8, "rate": 0.1}, Pinball(0.8), Gradient(0.1, 0.01), Oldest(256)),
    ],
    "NORMADetector": [({"nu": 0.2, "budget": 9}, Novelty(0.0, nu=0.2), Gradient(0.1, 0.01), Oldest(9))],
    "SILKClassifier": [
        ({}, Hinge(), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"C": 0.3, "rate": 0.5, "reg": 0.1, "budget": 9}, Hinge(), Implicit(0.3, 0.5, 0.1), Smallest(9)),
        ({"loss": "logistic", "fit_intercept": True, "budget": Oldest(9)}, Logistic(),
         Implicit(0.5, 1.0, 1e-4, fit_intercept=True), Oldest(9)),
    ],
    "SILKRegressor": [
        ({"loss": Huber(0.3, standard=True)}, Huber(0.3, standard=True), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"loss": "pinball:quantile=0.9", "quantile": 0.5}, Pinball(0.9), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"C": 3.0, "budget": 9}, Squared(), Implicit(3.0, 1.0, 1e-4), Smallest(9)),
        ({"loss": "epsilon_insensitive", "nu": 0.3}, EpsilonInsensitive(nu=0.3), Implicit(0.5, 1.0, 1e-4),
         Project(256)),
    ],
    "SILKDetector": [
        ({"nu": 0.2, "budget": 9}, Novelty(1.0, nu=0.2), Implicit(0.02, 1.0, 1e-4), Smallest(9)),
        ({}, Novelty(1.0, nu=0.05), Implicit(0.02, 1.0, 1e-4), Smallest(256)),
        ({"margin": 1.0}, Novelty(1.0), Implicit(0.02, 1.0, 1e-4), Smallest(256)),
    ],
    "SVMDClassifier": [
        ({"meta": 0.3, "memory": 0.8, "budget": 9}, Hinge(), SVMD(0.5, 0.01, 0.3, 0.8), Oldest(9)),
        ({"C": 0.6, "loss": "logistic"}, Logistic(), SVMD(0.5, 0.01, C=0.6), Oldest(256)),
    ],
    "SVMDRegressor": [({"loss": "huber", "delta": 0.3}, Huber(0.3), SVMD(0.2, 0.01, 0.01), Oldest(256))],
    "SVMDDetector": [({"nu": 0.2, "budget": 9}, Novelty(0.0, nu=0.2), SVMD(0.1, 0.01, 0.01), Oldest(9))],
    "NewtonClassifier": [
        ({}, SquaredHinge(), Newton(0.1), Project(256)),
        ({"loss": "logistic", "noise": 0.5, "forgetting": 0.9, "budget": 9}, Logistic(), Newton(0.5, 0.9), Project(9)),
        ({"loss": "hinge", "budget": Oldest(9)}, Hinge(), Newton(0.1), Oldest(9)),
    ],
    "NewtonRegressor": [
        ({}, Squared(), Newton(0.1), Project(256)),
        ({"loss": "huber", "delta": 0.3, "noise": 0.5, "budget": None}, Huber(0.3), Newton(0.5), None),
    ],
    "KernelPerceptron": [({"budget": 9}, Hinge(0.0), Perceptron(), Oldest(9))],
    "ProjectionClassifier": [({"radius": 0.8, "budget": 9}, Hinge(), Projection(0.8), Oldest(9))],
    "ProjectionRegressor": [({"epsilon": 0.3}, EpsilonInsensitive(0.3), Projection(), Project(256))],
    "PAClassifier": [
        ({"C": 0.3}, Hinge(), PassiveAggressive(0.3), Oldest(256)),
        ({"C": 0.3, "variant": "PA"}, Hinge(), PassiveAggressive(math.inf, "PA"), Oldest(256)),
    ],
    "PARegressor": [({"variant": "PA-II"}, EpsilonInsensitive(0.1), PassiveAggressive(1.0, "PA-II"), Project(256))],
    "ALMAClassifier": [({"alpha": 0.5, "B": 2.0, "C": 1.0}, Hinge(), ALMA(0.5, 2.0, 1.0), Oldest(256))],
    "ROMMAClassifier": [({"aggressive": True}, Hinge(), ROMMA(True), Oldest(256))],
    "AdatronClassifier": [({"rate": 0.4, "C": 0.7}, Hinge(), Adatron(0.4, 0.7), None)],
    "AdditiveRegressor": [
        ({"rescale": False}, Squared(), Implicit(0.1, reg=1e-4), None),
        ({"rescale": False, "loss": "huber", "delta": 0.3, "C": 0.7, "reg": 0.1, "fit_intercept": True, "budget": 9},
         Huber(0.3), Implicit(0.7, reg=0.1, fit_intercept=True), Smallest(9)),
        ({"rescale": False, "method": "projection", "epsilon": 0.3, "radius": 0.9, "budget": 9},
         EpsilonInsensitive(0.3), Projection(0.9), Oldest(9)),
    ],
    "AdditiveClassifier": [
        ({"rescale": False, "margin": 0.4}, Hinge(0.4), Implicit(0.1, reg=1e-4), None),
        ({"rescale": False, "loss": "logistic", "budget": 9}, Logistic(), Implicit(0.1, reg=1e-4), Smallest(9)),
        ({"rescale": False, "method": "projection", "radius": 0.9, "budget": 9}, Hinge(), Projection(0.9), Oldest(9)),
    ],
    "OnlineClassifier": [
        ({}, Hinge(), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"loss": "logistic", "rule": "gradient:rate=0.3", "budget": "random:size=9,seed=2"}, Logistic(), Gradient(0.3),
         Random(9, 2)),
        ({"loss": Hinge(0.0), "rule": Perceptron(), "budget": 9}, Hinge(0.0), Perceptron(), Smallest(9)),
    ],
    "OnlineRegressor": [
        ({}, Squared(), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"loss": Huber(0.3, standard=True), "rule": SVMD(0.2), "budget": None}, Huber(0.3, standard=True), SVMD(0.2),
         None),
    ],
    "OnlineDetector": [
        ({}, Novelty(1.0, nu=0.05), Implicit(0.02, 1.0, 1e-4), Smallest(256)),
        ({"loss": "novelty:margin=0.5", "rule": "norma", "budget": "oldest:9"}, Novelty(0.5), Gradient(), Oldest(9)),
    ],
}  # fmt: skip
TREE = taxonomy({"letters": ["c", "aa"], "b": None})
ORDER = np.ix_([1, 2, 0], [1, 2, 0])  # the labels of the tree, sorted
THREE = {
    "NORMAClassifier": [({"cost": COST}, Multiclass(COST), Gradient(0.5, 0.01), Oldest(256))],
    "SILKClassifier": [
        ({"margin": 0.5}, Multiclass(classes=3, margin=0.5), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"cost": COST, "multiclass": "runner_up"}, Multiclass(COST, step="runner_up"), Implicit(0.5, 1.0, 1e-4), None),
        ({"loss": "logistic"}, Softmax(3), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"cost": TREE}, Multiclass(np.array(TREE.cost)[ORDER], np.array(TREE.label_kernel)[ORDER]),
         Implicit(0.5, 1.0, 1e-4), Project(256)),
    ],
    "SVMDClassifier": [({"C": 0.5}, Multiclass(classes=3), SVMD(0.5, 0.01, C=0.5), Oldest(256))],
    "NewtonClassifier": [
        ({}, OneVsRest(3), Newton(0.1), Project(256)),
        ({"loss": "logistic", "noise": 0.5}, Softmax(3), Newton(0.5), Project(256)),
        ({"loss": "hinge", "margin": 0.5}, Multiclass(classes=3, margin=0.5), Newton(0.1), Project(256)),
    ],
    "KernelPerceptron": [({}, Multiclass(classes=3, margin=0.0), Perceptron(), Oldest(256))],
    "OnlineClassifier": [
        ({}, Multiclass(classes=3), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"loss": "hinge:margin=0.5"}, Multiclass(classes=3, margin=0.5), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"loss": "logistic", "rule": Gradient(0.3)}, Softmax(3), Gradient(0.3), Project(256)),
        ({"loss": Multiclass(step="runner_up")}, Multiclass(classes=3, step="runner_up"), Implicit(0.5, 1.0, 1e-4),
         Project(256)),
        ({"loss": "softmax"}, Softmax(3), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"loss": Multiclass(COST)}, Multiclass(COST), Implicit(0.5, 1.0, 1e-4), Project(256)),
        ({"cost": COST, "rule": "svmd"}, Multiclass(COST), SVMD(), Project(256)),
    ],
    "AdditiveClassifier": [
        ({"rescale": False, "margin": 0.5}, Multiclass(classes=3, margin=0.5), Implicit(0.1, reg=1e-4), None),
        ({"rescale": False, "loss": "logistic"}, Softmax(3), Implicit(0.1, reg=1e-4), None),
    ],
}  # fmt: skip


def test_every_estimator_is_in_the_tables():
    """A new estimator says here what it is made of."""
    assert {part.__name__ for part in FOUND} == set(TWO)
    assert {part.__name__ for part in MANY} == set(THREE)


def kernel_of(part, kernel):
    """The kernel that an estimator makes of its parameter."""
    return Additive(kernel) if part in ADDITIVE else kernel


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_equals_its_parts(part):
    """An estimator's scores are those of the Learner with the parts its docstring names."""
    X, y = data(part, names=[-1, 1])
    for kernel, (parameters, *parts) in itertools.product((Gaussian(0.5), Polynomial(2, 0.3)), TWO[part.__name__]):
        model, learner = part(kernel, **parameters), Learner(kernel_of(part, kernel), *parts)
        if part in REGRESSORS:
            model.set_params(scale_target=False)  # test_targets.py has the law of what it adds
        if part in CLASSIFIERS:
            model.partial_fit(X[:1], y[:1], classes=[-1, 1])
            learner.learn(X[:1], y[:1])
        scores, levels = learner.learn(X, y, with_levels=True)
        assert np.array_equal(model.predict_learn(X, y), scores - levels if part in DETECTORS else scores)
        assert np.array_equal(model.dual_coef_[0], learner.coefs)
        assert np.array_equal(model.support_vectors_, learner.points)
        assert (model.norm_, model.intercept_, model.n_updates_) == (learner.norm, learner.offset, learner.updates)


@pytest.mark.parametrize("part", MANY, ids=name_of)
def test_equals_its_parts_with_three_classes(part):
    """Costs are in the order of the sorted classes, or in that of the taxonomy's labels."""
    X, y = data(part, 3)
    for parameters, *parts in THREE[part.__name__]:
        model = part(Gaussian(0.5), shuffle=False, average=False, **parameters).fit(X, y)
        learner = Learner(kernel_of(part, Gaussian(0.5)), *parts)
        learner.learn(X, np.searchsorted(["aa", "b", "c"], y))
        assert np.array_equal(model.decision_function(X), learner.score(X))


# ---------------------------------------------------------------------------------------------------------- outputs


@pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
def test_probabilities(part):
    """With every loss, probabilities of one, two and three classes sum to 1 and agree with predict."""
    losses = [{"loss": loss} for loss in LOSSES] if "loss" in inspect.signature(part).parameters else [{}]
    for classes, loss in itertools.product((1, 2, 3) if part in MANY else (1, 2), losses):
        X, y = data(part, max(classes, 2))
        y = np.full(len(X), "b") if classes == 1 else y
        model = made(part, **loss).fit(X, y)
        shares = model.predict_proba(X)
        assert shares.shape == (len(X), classes)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-14)
        assert (shares >= 0).all()
        assert np.array_equal(model.classes_[shares.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize("part", DETECTORS, ids=name_of)
def test_alarms(part):
    """decision_function = score_samples - offset_; predict is 1 or -1 by its sign; predict_learn has the old offset."""
    X, _ = data(part)
    often = {"nu": 0.3} if "nu" in inspect.signature(part).parameters else {"loss": "novelty:nu=0.3"}
    model = made(part, **often).fit(X)
    assert np.array_equal(model.decision_function(X), model.score_samples(X) - model.offset_)
    assert np.array_equal(model.predict(X), np.where(model.decision_function(X) < 0, -1, 1))
    assert set(model.predict(X).tolist()) == {1, -1}
    now = model.decision_function(X[:1])[0]
    assert math.isclose(model.predict_learn(X[:1])[0], now, rel_tol=1e-12, abs_tol=1e-15)
    assert np.array_equal(made(part, **often).fit_predict(X), made(part, **often).fit(X).predict(X))


def test_margin_and_nu_exclude_each_other():
    """SILKDetector takes one of them."""
    with pytest.raises(ValueError, match="The 'nu' parameter of SILKDetector must be None where margin is given"):
        gossamer.SILKDetector(margin=1.0, nu=0.1).fit(np.zeros((2, 1)))


def base_of(part):
    return next(generic for generic in GENERIC if issubclass(part, generic))


@pytest.mark.parametrize("part", [part for part in FOUND if "loss" in inspect.signature(part).parameters], ids=name_of)
def test_a_loss_brings_its_parameters(part):
    """As a Loss, or by name with parameters, it leaves none to the estimator; one for other targets is refused."""
    X, y = data(part)
    taken = inspect.signature(part).parameters
    chosen, text = {OnlineClassifier: (Hinge(0.4), "hinge:margin=0.4"), OnlineDetector: (Novelty(0.4), "novelty:0.4"),
                    OnlineRegressor: (Huber(0.4), "huber:delta=0.4")}[base_of(part)]  # fmt: skip
    said = [made(part, loss=loss).predict_learn(X, y) for loss in (chosen, text)]
    assert np.array_equal(*said)
    for name in {"margin", "nu", "epsilon", "delta", "quantile"} & set(taken):
        with pytest.raises(ValueError, match=f"The '{name}' parameter of {part.__name__} must be left to the loss"):
            made(part, loss=chosen, **{name: 0.3}).fit(X, y)
    for other in [loss for loss in (Hinge(), Huber(), Novelty()) if type(loss) is not type(chosen)]:
        with pytest.raises(ValueError, match=f"The 'loss' parameter of {part.__name__} must be a Loss, or one of"):
            made(part, loss=other).fit(X, y)


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_parameters_of_parts(part):
    """kernel__gamma, budget__size, ...: each can be set alone; its old value changes nothing; others are refused."""
    options = {key: value for key, value in {"loss": "logistic", "rule": "gradient", "budget": "project:9"}.items()
               if key in inspect.signature(part).parameters and (key != "loss" or part in CLASSIFIERS)}  # fmt: skip
    model = made(part, **options)
    inner = {name: value for name, value in model.get_params().items() if "__" in name}
    assert {"kernel__gamma", "budget__size"} <= set(inner) or part in ADDITIVE
    assert ("rule__rate" in inner) == (part in GENERIC)
    for name, value in inner.items():
        again = clone(model).set_params(**{name: value}).get_params()
        kind = name.partition("__")[0]
        assert {**again, kind: None} == {**model.get_params(), kind: None}
    changed = clone(model).set_params(budget__size=5)
    assert changed.get_params()["budget__size"] == changed.budget.size == 5
    assert clone(changed).budget == changed.budget
    with pytest.raises(ValueError, match="the parameters of its budget"):
        clone(model).set_params(budget__colour=3)


def test_a_grid_over_all_four_parts():
    """scikit-learn's search finds the parameters of every part."""
    X, y = data(OnlineRegressor, count=120)
    grid = {"kernel__gamma": [0.01, 0.5], "loss__delta": [0.1, 1.0], "rule__C": [0.01, 1.0], "budget__size": [2, 30]}
    search = GridSearchCV(OnlineRegressor(loss="huber"), grid, cv=2).fit(X, y)
    assert search.best_params_["budget__size"] == search.best_estimator_.learner_.budget.size
    assert search.best_params_["rule__C"] == search.best_estimator_.rule.C


@pytest.mark.parametrize(("part", "loss"), [
    (gossamer.NORMAClassifier, "logistic"), (gossamer.NORMAClassifier, "squared_hinge"),
    (gossamer.NORMARegressor, "squared"), (gossamer.SILKRegressor, "pinball"), (gossamer.SVMDRegressor, "squared"),
], ids=str)  # fmt: skip
def test_nu_needs_a_level(part, loss):
    """nu is refused by a loss that has nothing to adapt."""
    X, y = data(part)
    with pytest.raises(ValueError, match=f"The 'nu' parameter of {part.__name__} must be None for the loss '{loss}'"):
        part(Gaussian(0.5), loss=loss, nu=0.2).fit(X, y)


# ------------------------------------------------------------------------------------------------------- parameters

#: Two values of each parameter, at least one of which shows.
VALUES = {
    "half_life": (None, "1 hour", "9 hours"), "class_weight": (None, "balanced", {"b": 5.0}),
    "kernel": (Gaussian(0.5), Polynomial(2, 0.3)), "rate": (0.3, 0.1), "reg": (0.1, 0.01), "margin": (1.0, 0.4),
    "nu": (0.1, 0.4), "schedule": ("constant", FALLING), "fit_intercept": (False, True), "budget": (4, 2),
    "average": ("fit", False, True, "sparse"), "n_passes": (1, 2), "shuffle": (True, False), "random_state": (0, 1),
    "cost": (None, COST), "multiclass": ("exact", "runner_up"),
    "C": (1.0, 0.2), "epsilon": (0.1, 0.4), "delta": (1.0, 0.1), "quantile": (0.5, 0.9), "meta": (0.01, 0.5),
    "noise": (0.1, 1.0), "forgetting": (1.0, 0.9),
    "memory": (0.95, 0.2), "radius": (None, 0.5), "variant": ("PA-I", "PA", "PA-II"), "alpha": (0.9, 0.4),
    "B": (None, 0.1), "aggressive": (False, True), "method": ("silk", "projection"), "rescale": (False, True),
    "scale_target": (True, False), "skip": (None, 0.3), "rule": ("implicit:C=0.5", "gradient:rate=0.3", "svmd"),
    "weights": (None, (1.0, 0.3)), "products": ((), [(0, 1)], [(1, 1)]), "differences": ((), [(0, 1)]),
}  # fmt: skip


def losses(part):
    if part in DETECTORS:
        return ("novelty:nu=0.4", "novelty:margin=0.4")
    return ("squared", "epsilon_insensitive", "huber", "pinball") if part in REGRESSORS else LOSSES


def behaviour(part, parameters, classes):
    """What a model says after fit, or None where the parameters do not go together."""
    X, y = data(part, classes, seed=3)
    try:
        when = {} if parameters.get("half_life") is None else {"time": 600.0 * np.arange(len(X))}
        model = part(**{"kernel": Gaussian(0.5), **parameters}).fit(X, y, **when)
    except ValueError:
        return None
    said = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return said.tolist()


def differ(part, name, one, other):
    """Whether two values of a parameter say different things, with some loss, budget and number of classes."""
    taken = inspect.signature(part).parameters
    alarms = part in DETECTORS and "nu" in taken and name != "margin"
    base = {"delta": 0.3} if "delta" in taken else {"nu": 0.4} if alarms else {}
    tried = [{}] if "loss" not in taken or name == "loss" else [{"loss": loss} for loss in losses(part)]
    ways = [{"method": "projection"}, {}] if name in ("radius", "epsilon") and "method" in taken else [{}]
    for loss, classes, budget, way in itertools.product(tried, (2, 3) if part in MANY else (2,), (4, 20), ways):
        rest = {"budget": budget, **base, **loss, **way}
        found = [behaviour(part, {**rest, name: value}, classes) for value in (one, other)]
        if None not in found and found[0] != found[1]:
            return True
    return False


PARAMETERS = [(part, name) for part in FOUND for name in inspect.signature(part).parameters]


@pytest.mark.parametrize(("part", "name"), PARAMETERS, ids=lambda case: getattr(case, "__name__", case))
def test_every_parameter_changes_something(part, name):
    """Every two values of every parameter make a difference, and every parameter is documented."""
    for one, other in itertools.combinations(losses(part) if name == "loss" else VALUES[name], 2):
        assert differ(part, name, one, other), f"{part.__name__}({name}={one!r}) is as with {other!r}"
    assert name in part.__doc__
