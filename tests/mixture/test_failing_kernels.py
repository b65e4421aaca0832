"""A mixture whose kernel, a function in Python, raises in the middle of a batch."""

import math

import numpy as np
import pytest

from gossamer import AutoClassifier

pytestmark = pytest.mark.usefixtures("small_roster")


def test_a_kernel_that_fails():
    """A kernel in Python that raises in the middle of a batch: the rows before have not been learned."""

    def kernel(A, B):
        if np.abs(A).max() > 9 or np.abs(B).max() > 9:
            raise ZeroDivisionError
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    X = np.random.default_rng(0).normal(size=(100, 2))
    y = X[:, 0] > 0
    model = AutoClassifier(kernel, budget=8, scale=False).partial_fit(X[:40], y[:40])
    before = model.decision_function(X)
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(np.vstack([X[40:], [[50.0, 0.0]]]), [*y[40:], True])
    assert np.array_equal(model.decision_function(X), before)
    assert model.n_seen_ == 40


@pytest.mark.parametrize("learned", [0, 40, 300])
@pytest.mark.parametrize("calls", [0, 1, 20, 300])
def test_a_kernel_that_keeps_failing(learned, calls):
    """A kernel in Python that fails after some calls, and from then on: the model is as before, and goes on when the
    kernel does."""
    left = math.inf

    def kernel(A, B):
        nonlocal left
        left -= 1
        if left < 0:
            raise ZeroDivisionError
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    X = np.random.default_rng(0).normal(size=(400, 2))
    y = X[:, 0] * X[:, 1] > 0
    steady, model = (AutoClassifier(kernel, budget=8) for _ in range(2))
    if learned:
        for one in (steady, model):
            one.partial_fit(X[:learned], y[:learned])
    left = calls
    with pytest.raises(ZeroDivisionError):
        model.partial_fit(X[learned:], y[learned:])
    left = math.inf
    if learned:
        assert np.array_equal(model.decision_function(X), steady.decision_function(X))
    for one in (steady, model):
        one.partial_fit(X[learned:], y[learned:])
    assert np.array_equal(model.decision_function(X), steady.decision_function(X))
    assert np.array_equal(model.weights_, steady.weights_)
