"""gamma="scale": the width follows the data, the same by every verb and face, and whatever the unit of the features."""

import dataclasses
import functools

import numpy as np
import pytest
from parts import classes, of_one_number
from test_estimators import ADDITIVE, DETECTORS, FOUND, MANY, REGRESSORS

import gossamer
from gossamer import OnlineScaler, pipeline
from gossamer.bank import ModelBank
from gossamer.kernels import Kernel, Laplace

FACTORS = [1e-3, 2.0**-10, 1.0, 2.0**10, 1e3]


def scaling_kernels() -> list[Kernel]:
    """The kernels of which a parameter may be "scale"."""
    found = []
    for part in classes("kernel"):
        for field in dataclasses.fields(part):
            try:
                found.append(part(**{field.name: "scale"}))
            except (ValueError, TypeError):
                continue
    return [kernel for kernel in found if not of_one_number(kernel.resolve(np.zeros((1, 3))))]


KERNELS = scaling_kernels()


@functools.cache
def data(part, count, rows=120):
    """Rows off the origin, and targets for this estimator; all ``count`` classes come early, one after the other."""
    rng = np.random.default_rng(count)
    X = rng.normal([0.5, 0.0, -0.5], size=(rows, 3))
    smooth = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=rows)
    if part in DETECTORS:
        return X, None
    if part in REGRESSORS:
        return X, smooth
    codes = np.digitize(smooth, np.quantile(smooth, np.arange(1, count) / count))
    codes[: 2 * count] = np.repeat(np.arange(count), 2)
    return X, np.array(["d", "a", "c", "b", "e"])[codes]


CASES = [(part, count) for part in FOUND for count in ((2, 3, 5) if part in MANY else (2,))]
every_case = pytest.mark.parametrize(("part", "count"), CASES, ids=[f"{p.__name__}-{c}" for p, c in CASES])


def made(part, kernel):
    return part(kernel, budget=20, **({"rescale": False} if part in ADDITIVE else {}))


def fitted(model, X, y):
    """One pass over the rows as they come, and the last hypothesis."""
    last_of(model).set_params(shuffle=False, average=False)
    return model.fit(X, y)


def said(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def last_of(model):
    return model[-1] if hasattr(model, "steps") else model


def test_kernels_are_found():
    assert {type(kernel).__name__ for kernel in KERNELS} >= {"Gaussian", "Laplace"}


@every_case
def test_one_batch_is_one_fit(part, count):
    """fit and partial_fit of the same batch settle on the same width and are the same model, at every scale, alone and
    behind a scaler; where partial_fit is not told the classes, it is as if the width had been given."""
    X, y = data(part, count)
    told = {} if y is None or part in REGRESSORS else {"classes": np.unique(y)}
    if part is gossamer.AdatronClassifier:
        told = None  # in fit, its rows have ids
    for kernel in KERNELS:
        for wrap in (lambda model: model, lambda model: pipeline(OnlineScaler(with_std=False), model)):
            for factor in FACTORS:
                whole = fitted(wrap(made(part, kernel)), factor * X, y)
                rows = whole[0].transform(factor * X) if hasattr(whole, "steps") else factor * X
                settled = last_of(whole).learner_.kernel
                if not hasattr(whole, "steps"):
                    if told is not None:
                        one = made(part, kernel).partial_fit(rows, y, **told)
                        assert np.array_equal(said(one, rows), said(whole, rows))
                    number = list(settled.base) if part in ADDITIVE else settled
                    one, given = made(part, kernel), made(part, number)
                    assert np.array_equal(one.predict_learn(rows, y), given.predict_learn(rows, y))
                else:
                    one, given = wrap(made(part, kernel)), wrap(made(part, kernel))
                    one.partial_fit(factor * X, y)
                    given.predict_learn(factor * X, y)
                    settled = last_of(given).learner_.kernel
                assert last_of(one).learner_.kernel == settled
                if not hasattr(whole, "steps"):
                    assert np.array_equal(said(one, rows), said(given, rows))


@every_case
def test_the_unit_does_not_matter(part, count):
    """Features times a constant: the same predictions, with every kernel that may be "scale"."""
    X, y = data(part, count)
    for kernel in KERNELS:
        for learn in (lambda model, X: fitted(model, X, y), lambda model, X: model.partial_fit(X, y)):
            expected = said(learn(made(part, kernel), X), X)
            for factor in FACTORS:
                got = said(learn(made(part, kernel), factor * X), factor * X)
                if np.log2(factor) % 1:
                    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)
                else:
                    assert np.array_equal(got, expected)


@pytest.mark.parametrize(("part", "count"), [case for case in CASES if case[1] != 3], ids=str)
def test_banks_settle_like_estimators(part, count):
    """Compiled and general, alone and behind a scaler: the width and the scores of one estimator per key."""
    X, y = data(part, count)
    for kernel in KERNELS:
        for model in (made(part, kernel), pipeline(OnlineScaler(), made(part, kernel))):
            for factor in (1e-3, 1e3):
                alone, bank = gossamer_clone(model), ModelBank(model, threads=1)
                expected = alone.predict_learn(factor * X, y)
                got = bank.learn(["k"] * len(X), factor * X, y)
                assert np.array_equal(np.squeeze(got), np.squeeze(expected))
                assert last_of(bank.model("k")).learner_.kernel == last_of(alone).learner_.kernel


def gossamer_clone(model):
    from sklearn.base import clone

    return clone(model)


def test_digits():
    """The example that showed it: digits times 100, by all ways to learn them."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X = 100 * X
    model = gossamer.SILKClassifier
    scores = [
        model().fit(X, y).score(X, y), model().partial_fit(X, y).score(X, y),
        model().partial_fit(X, y, classes=np.unique(y)).score(X, y), model(Laplace()).partial_fit(X, y).score(X, y),
    ]  # fmt: skip
    bank = ModelBank(model(), threads=1)
    bank.learn(np.zeros(len(X), dtype=int), X, y)
    scores.append(float(np.mean(bank.predict(np.zeros(len(X), dtype=int), X) == y)))
    assert min(scores) > 0.9, scores
