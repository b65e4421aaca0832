"""No model goes astray in silence: adversarial streams through every estimator and kernel."""

import inspect
import itertools
import math
import warnings

import numpy as np
import pytest
from parts import label

import gossamer
from gossamer import CollapseWarning, DivergenceWarning, Learner, river
from gossamer.bank import ModelBank
from gossamer.budgets import Oldest
from gossamer.estimators import OnlineClassifier, OnlineDetector
from gossamer.estimators.base import Online
from gossamer.kernels import Gaussian, Laplace, Linear, Polynomial
from gossamer.losses import Loss, Squared
from gossamer.rules import ROMMA, SVMD, Gradient
from gossamer.rules.descent import stable

PUBLIC = [getattr(gossamer, name) for name in gossamer.__all__]
ESTIMATORS = [part for part in PUBLIC if isinstance(part, type) and issubclass(part, Online)]
KERNELS = [Linear(), Polynomial(2), Polynomial(3, 1.0, 1.0), Gaussian(0.5), Laplace(0.5)]
ROWS = 240
TIMES = np.arange(ROWS)
NOISE = np.random.default_rng(0).normal(size=(ROWS, 3))
STREAMS = {
    "unit": NOISE,
    "far": NOISE + 500,
    "far and narrow": 0.1 * NOISE + 500,
    "large": 500 * NOISE,
    "tiny": 1e-4 * NOISE,
    "alternating": np.where(TIMES % 2, 1, -1)[:, None] * (50 + NOISE),
    "growing": NOISE * np.exp(TIMES / 30)[:, None],
    "outliers": np.where(TIMES[:, None] % 97 == 5, 1e4 * NOISE, NOISE),
    "equal": np.ones((ROWS, 3)),
}
HUGE = {"huge": 1e80 * NOISE, "huge at the end": np.where(TIMES[:, None] < 200, NOISE, 1e140), "tiny": 1e-170 * NOISE}
LOSSES = {OnlineClassifier: ("hinge", "squared_hinge", "logistic"), OnlineDetector: (None,)}


def targets(part):
    """Noisy ones, which no function separates."""
    rng = np.random.default_rng(1)
    y = np.sin(2 * NOISE[:, 0]) + 0.3 * rng.normal(size=ROWS)
    if issubclass(part, OnlineDetector):
        return None
    return (y > 0).astype(int) if issubclass(part, OnlineClassifier) else y


def settings(part):
    """Its losses, and what else may make its steps longer."""
    names = inspect.signature(part).parameters
    losses = next((found for kind, found in LOSSES.items() if issubclass(part, kind)), ("squared", "huber", "pinball"))
    yield from ({"loss": loss} for loss in losses if loss is not None and "loss" in names)
    yield {}
    yield from ({name: True} for name in ("aggressive", "fit_intercept") if name in names)
    yield from ({"rate": rate} for rate in (1.9, 50.0) if "rate" in names)


def made(part, kernel, setting):
    """An estimator with a small budget that drops; None where its parameters do not go together."""
    if part.__name__.startswith("Additive"):
        return None if kernel is not KERNELS[0] else part(**setting)
    budget = {} if part.__name__ in ("PARegressor", "ProjectionRegressor") else {"budget": 32}
    model = part(kernel, **setting, **budget)
    try:
        model._start()
    except ValueError:
        return None
    return model


@pytest.mark.parametrize("part", ESTIMATORS, ids=label)
def test_scores_stay_finite_and_bounded(part):
    """Whatever the features (far from 0, growing, alternating, ...) and the rate: no divergence, no warning."""
    y = targets(part)
    for (name, X), kernel, setting in itertools.product(STREAMS.items(), KERNELS, settings(part)):
        model = made(part, kernel, setting)
        if model is None:
            continue
        with warnings.catch_warnings():  # a polynomial may well say absurd things beyond all rows seen
            warnings.simplefilter("ignore" if name in ("growing", "outliers") else "error", DivergenceWarning)
            scores = model.predict_learn(X, y)
            after = model.predict(X)
        # every loss that moves by straight lines adds at most rate * k(x, x) a row
        limit = 1e6 * max(1.0, float(kernel.diag(X).max())) * ROWS * max(1.0, setting.get("rate", 1.0))
        assert np.isfinite(scores).all(), (name, kernel, setting)
        assert np.abs(scores).max() <= limit, (name, kernel, setting)
        assert np.isfinite(after).all(), (name, kernel, setting)


@pytest.mark.parametrize("part", ESTIMATORS, ids=label)
def test_finite_or_told(part):
    """Features beyond all measure: refused, finite, or told of once."""
    y = targets(part)
    for (name, X), kernel in itertools.product(HUGE.items(), KERNELS):
        model = made(part, kernel, {})
        if model is None:
            continue
        with warnings.catch_warnings(record=True) as told, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            try:
                scores = np.append(model.predict_learn(X, y), model.predict_learn(X, y))
                scores = np.append(scores, model.predict(X).astype(float) if y is None else model._scores(X))
            except ValueError as error:
                told, scores = [], np.zeros(1) if "parameter of" in str(error) else np.array([math.nan])
        found = divergences(told)
        assert len(found) <= 1
        assert np.isfinite(scores).all() or len(found) == 1, (name, kernel)


class Steep(Loss):
    """A user's loss that tells neither its curvature nor its minimum, so that no step is shortened."""

    def value(self, z, y):
        return 0.5 * (y - z) ** 2

    def slope(self, z, y):
        return z - y


def divergences(told):
    return [each for each in told if issubclass(each.category, DivergenceWarning)]


def astray(**more):
    """A regressor that diverges."""
    steep = {"_loss": lambda self: Steep(), **more}
    return type("Astray", (gossamer.NORMARegressor,), steep)(Linear(), rate=1.0, reg=0.0, scale_target=False)


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_told_once_with_the_reason():
    """By the model, in fit and after it; by a bank for all its models; the caller's line is named."""
    X, y = STREAMS["large"], targets(gossamer.SILKRegressor)
    with pytest.warns(DivergenceWarning, match=r"Astray has diverged: a score is .* Scale the features") as told:
        model = astray().partial_fit(X, y)
    told = divergences(told)
    assert len(told) == 1
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", DivergenceWarning)
        assert not np.isfinite(model.predict(X)).all()
    with pytest.warns(DivergenceWarning) as told:
        astray().fit(X, y).predict(X)
    assert len(divergences(told)) == 1
    bank = ModelBank(astray(), threads=1)
    with pytest.warns(DivergenceWarning, match="ModelBank has diverged") as told:
        [bank.learn(TIMES % 3, X, y) for _ in range(2)]
    assert len(divergences(told)) == 1


def test_absurd_predictions_of_regressors_are_told():
    """1e9 deviations of the targets are no prediction, though they are finite."""
    model = gossamer.SILKRegressor(Linear()).fit(NOISE, targets(gossamer.SILKRegressor))
    with pytest.warns(DivergenceWarning, match="has diverged"):
        model.predict(1e15 * NOISE)


def test_river_tells():
    """Row by row as well."""
    model = river.SILKRegressor(Linear())
    for x, y in zip(NOISE.tolist(), targets(gossamer.SILKRegressor).tolist(), strict=True):
        model.learn_one(dict(zip("abc", x, strict=True)), y)
    state = model.learner.state()
    model.learner.restore(state.replace(raw=np.full_like(state.raw, math.inf)))
    with pytest.warns(DivergenceWarning, match="SILKRegressor has diverged"), np.errstate(all="ignore"):
        model.predict_one({"a": 1.0, "b": 0.5, "c": 0.0})


def test_collapse_is_told():
    """A kernel so narrow that no two rows are alike: all scores are the same."""
    X = np.random.default_rng(0).normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(int)
    model = gossamer.SILKClassifier(Gaussian(1e9)).partial_fit(X[:300], y[:300])
    with pytest.warns(CollapseWarning, match="gives 300 rows the same score") as told:
        model.predict_learn(X[300:], y[300:])
    assert told[0].filename == __file__


@pytest.mark.parametrize("rule", [Gradient(1.5, 0.0), Gradient(1e6, 0.0, fit_intercept=True), SVMD(1e3, 0.0, 0.0)])
def test_no_step_goes_past_the_minimum(rule):
    """After a step of the squared loss, the error has its old sign, or is 0; native as in NumPy."""
    rng = np.random.default_rng(3)
    X, y = 10 * rng.normal(size=(50, 2)), rng.normal(size=50)
    for backend in ("native", "numpy"):
        learner = Learner(Polynomial(2), Squared(), rule, Oldest(8), backend=backend)
        for t in range(50):
            before = y[t] - learner.learn_one(X[t], y[t])
            last = Learner(Polynomial(2), Squared(), rule, backend=backend)  # one row, no terms to drop
            last.learn_one(X[t], y[t])
            assert abs(last.score_one(X[t]) - y[t]) <= 1e-9 * (1 + abs(y[t]))
            assert math.isfinite(before)
    assert stable(1.0, 1.0, 1.0) == 1.0
    assert stable(0.5, 1.0, 1.9) == 0.5
    assert stable(3.0, 0.0, 1e9) == 3.0


def test_romma_claims_no_absurd_margin():
    """On noise the norm stays below 1e4 / sqrt(k(x, x)), and the predictions are those of the rule without a limit."""
    rng = np.random.default_rng(4)
    X, y = 1e-3 * rng.normal(size=(400, 2)), rng.choice([-1.0, 1.0], size=400)
    for backend in ("native", "numpy"):
        learner = Learner(Gaussian(0.5), "hinge", ROMMA(), backend=backend)
        for t in range(400):
            learner.learn_one(X[t], y[t])
            assert learner.norm <= 1.0001e4
