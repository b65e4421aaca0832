"""The estimators of second-order steps."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Floats
from gossamer.budgets import Project
from gossamer.estimators import inputs
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.estimators.late import remembers
from gossamer.rules import Newton, Rule


class _Newton:
    """Second-order steps; a budget by number projects."""

    _by_number: ClassVar[Any] = Project

    def _rule(self: Any) -> Rule:
        # step t of targets that are scaled as they come has units with an error of variance 1 / t
        return Newton(self.noise, self.forgetting, float(getattr(self, "scale_target", False)))

    @inputs.speaks
    def variance(self: Any, X: Any) -> Floats:
        """The variance s^2 that is left at each row: k(x, x) far from all that was learned, towards 0 near it. For a
        regressor in units of the scaled targets."""
        learner = self._fitted()
        inputs.names(self, X, fitted=True)
        return inputs.variance(learner, X)


class NewtonClassifier(_Newton, OnlineClassifier):
    """Second-order steps for two or more classes: AROW with the squared hinge, the online Newton step with the logistic
    loss (`gossamer.rules.Newton`).

    Parameters
    ----------
    kernel : a Kernel, a name or a function of two batches.
    loss : "squared_hinge", "logistic" or "hinge"; or a Loss with its own parameters. With more than two classes the
        squared hinge takes each class against the rest.
    noise : the smaller, the more a row counts; 1 / noise is the weight of the loss.
    forgetting : what is known shrinks by this factor after each row; 1 forgets nothing, .999 about a thousand rows.
    budget : the number of support points, the best replaceable leaving first, whose part the others take over; a
        Budget or a name; None keeps all.
    margin : the score from which a row of the right class loses nothing.
    n_passes : passes made by ``fit``; each counts all rows as new ones.
    average : whether predictions use the mean of all hypotheses (True, or "sparse" to bound its memory).
    shuffle, random_state : whether ``fit`` makes each pass in a new random order, and the seed of the orders.
    half_life, class_weight : as in `OnlineClassifier`.

    >>> import gossamer, numpy as np
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> model = gossamer.NewtonClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y)
    >>> model.predict([[0.2], [0.8]]).tolist(), model.predict_proba([[0.0], [9.0]]).round(1).tolist()
    (['no', 'yes'], [[0.9, 0.1], [0.5, 0.5]])
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "squared_hinge", noise: float = 0.1, forgetting: float = 1.0,
        budget: Any = 256, margin: float = 1.0, average: bool | str = False, n_passes: int = 1, shuffle: bool = True,
        random_state: Any = 0, half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.noise, self.forgetting, self.budget = kernel, loss, noise, forgetting, budget
        self.margin, self.average, self.n_passes = margin, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight


class NewtonRegressor(_Newton, OnlineRegressor):
    """Second-order steps for regression: kernel recursive least squares, and the mean and the deviation of a Gaussian
    process, learned online; with other losses, robust or of a quantile (`gossamer.rules.Newton`).

    Parameters
    ----------
    kernel, forgetting, budget, average, n_passes, shuffle, random_state, half_life : as in `NewtonClassifier`.
    loss : "squared", "huber", "epsilon_insensitive" or "pinball"; or a Loss with its own parameters.
    noise : the variance of the targets' noise, for targets scaled to the deviation 1.
    epsilon, delta, quantile : the parameter of the loss that has it.
    nu : epsilon or delta adapts so that a fraction nu of the residuals is larger.
    scale_target : whether the targets are centred and scaled as they come, so that their units do not matter; noise,
        epsilon and delta are then for targets so scaled.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(500, 1))
    >>> model = gossamer.NewtonRegressor(gossamer.kernels.Gaussian(1.0), noise=1e-3).fit(X, np.sin(X[:, 0]))
    >>> mean, deviation = model.predict([[1.5], [4.7], [20.0]], return_std=True)
    >>> mean[:2].round(2).tolist(), deviation.round(2).tolist()
    ([1.01, -0.96], [0.02, 0.02, 0.71])
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "squared", noise: float = 0.1, forgetting: float = 1.0,
        budget: Any = 256, epsilon: float = 0.1, delta: float = 1.0, quantile: float = 0.5, nu: float | None = None,
        average: bool | str = False, n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.noise, self.forgetting, self.budget = kernel, loss, noise, forgetting, budget
        self.epsilon, self.delta, self.quantile, self.nu = epsilon, delta, quantile, nu
        self.average, self.n_passes, self.shuffle, self.random_state = average, n_passes, shuffle, random_state
        self.scale_target = scale_target
        self.half_life = half_life

    @remembers
    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The prediction for each row; with ``return_std`` also its deviation, sqrt(s^2 + noise) in the units of the
        targets: of a new target there, not of the function alone."""
        _checks.one_of(self, "return_std", return_std, [False, True])
        mean: Array = super().predict(X)  # without ids: the rows are remembered once
        if not return_std:
            return mean
        deviation = np.sqrt(self.variance(X) + self.noise)
        return mean, (deviation if mean.ndim == 1 else deviation[:, None]) * self._units()[1]
