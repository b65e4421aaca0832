"""The estimators of NORMA, SILK and SVMD."""

from __future__ import annotations

from typing import Any, ClassVar

from gossamer import _checks
from gossamer.budgets import Oldest
from gossamer.estimators.generic import OnlineClassifier, OnlineDetector, OnlineRegressor
from gossamer.losses import Loss, Novelty
from gossamer.rules import SVMD, Gradient, Implicit, Rule


class _Norma:
    """Gradient steps; a budget by number drops the oldest."""

    _by_number: ClassVar[Any] = Oldest

    def _rule(self: Any) -> Rule:
        return Gradient(self.rate, self.reg, self.schedule, getattr(self, "fit_intercept", False))


class _Silk:
    """Implicit steps; a budget by number drops what weighs least."""

    def _rule(self: Any) -> Rule:
        return Implicit(self.C, self.rate, self.reg, self.schedule, getattr(self, "fit_intercept", False))


class _Svmd:
    """Steps whose size descends too; a budget by number drops the oldest."""

    _by_number: ClassVar[Any] = Oldest

    def _rule(self: Any) -> Rule:
        return SVMD(self.rate, self.reg, self.meta, self.memory, self.C)


class NORMAClassifier(_Norma, OnlineClassifier):
    """NORMA for two or more classes (Kivinen, Smola, Williamson 2004, equations (9)-(18); ALGORITHMS 1.10).

    Parameters
    ----------
    kernel : a Kernel, a name or a function of two batches.
    loss : "hinge", "squared_hinge" or "logistic"; or a Loss with its own parameters.
    rate, schedule : eta and how it changes: "constant", "inverse_sqrt" or a function of t.
    reg : lambda, the weight of the norm; the model forgets by 1 - rate * reg per round.
    margin : rho. With ``nu`` it adapts so that a fraction nu of the rows are margin errors.
    fit_intercept : whether an offset is learned (two classes).
    budget : the number of support points, the oldest leaving first; a Budget; or None to keep all.
    average, n_passes, shuffle, random_state, cost, half_life, class_weight : as in `OnlineClassifier`.

    >>> import gossamer, numpy as np
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.NORMAClassifier("gaussian").fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "hinge", rate: float = 0.5, schedule: Any = "constant",
        reg: float = 0.01, margin: float = 1.0, nu: float | None = None, fit_intercept: bool = False,
        budget: Any = 256, average: bool | str = "fit", n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, cost: Any = None, half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rate, self.schedule, self.reg = kernel, loss, rate, schedule, reg
        self.margin, self.nu, self.fit_intercept = margin, nu, fit_intercept
        self.budget, self.average, self.n_passes, self.cost = budget, average, n_passes, cost
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight


class NORMARegressor(_Norma, OnlineRegressor):
    """NORMA for regression (Kivinen, Smola, Williamson 2004, section IV).

    Parameters
    ----------
    kernel, rate, schedule, reg, fit_intercept, budget, average, n_passes, shuffle, random_state, half_life : as in
        `NORMAClassifier`.
    loss : "squared", "epsilon_insensitive", "huber" or "pinball"; or a Loss with its own parameters.
    epsilon, delta, quantile : the parameter of the loss that has it.
    nu : epsilon or delta adapts so that a fraction nu of the residuals is larger.
    scale_target : whether the targets are centred and scaled as they come, so that their units do not matter; epsilon
        and delta are then shares of their deviation. False takes them as they are, as the paper does.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.NORMARegressor(gossamer.kernels.Gaussian(1.0), reg=1e-4).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[1.5], [4.7]])]
    [1.0, -1.0]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "squared", rate: float = 0.5, schedule: Any = "constant",
        reg: float = 0.01, epsilon: float = 0.1, delta: float = 1.0, quantile: float = 0.5, nu: float | None = None,
        fit_intercept: bool = False, budget: Any = 256, average: bool | str = "fit", n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.scale_target = scale_target
        self.kernel, self.loss, self.rate, self.schedule, self.reg = kernel, loss, rate, schedule, reg
        self.epsilon, self.delta, self.quantile, self.nu = epsilon, delta, quantile, nu
        self.fit_intercept, self.budget, self.average, self.n_passes = fit_intercept, budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life


class NORMADetector(_Norma, OnlineDetector):
    """NORMA for novelty detection (Kivinen, Smola, Williamson 2004, equation (20), its sign corrected).

    Parameters
    ----------
    kernel, rate, schedule, reg, budget, n_passes, shuffle, random_state, half_life : as in `NORMAClassifier`.
    average : as there, but no mean by default: rho belongs to one hypothesis, and their mean has other alarms.
    nu : the fraction of rows that raise an alarm.
    skip : alarms are rows with a p-value below this (`score_pvalue`), and where they come in runs they are not learned,
        so that an anomaly that lasts is not learned away. None: alarms are scores below rho, and all rows are learned.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = gossamer.NORMADetector(gossamer.kernels.Gaussian(0.5), nu=0.1)
    >>> round(float((model.predict_learn(X) < 0).mean()), 2)
    0.1
    """

    def __init__(
        self, kernel: Any = "gaussian", *, nu: float = 0.05, rate: float = 0.1, schedule: Any = "constant",
        reg: float = 0.01, budget: Any = 256, average: bool | str = False, n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, skip: float | None = None, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.nu, self.rate, self.schedule, self.reg = kernel, nu, rate, schedule, reg
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state, self.skip = shuffle, random_state, skip
        self.half_life = half_life

    def _loss(self) -> Loss:
        if self.nu is None:
            raise _checks.wrong(self, "nu", "a number in (0, 1]", None)
        return Novelty(0.0, nu=self.nu)


class SILKClassifier(_Silk, OnlineClassifier):
    """SILK: implicit updates and a bounded buffer (Cheng et al. 2006), for two or more classes; ``budget=None`` is ILK.

    Parameters
    ----------
    kernel, schedule, margin, fit_intercept, average, n_passes, shuffle, random_state, half_life, class_weight : as in
        `NORMAClassifier`.
    loss : "hinge", "squared_hinge" or "logistic"; or a Loss with its own parameters.
    C : weight of the loss: the largest coefficient a row can get (about).
    rate : eta; the steps are safe for any value.
    reg : lambda; the model forgets by 1 / (1 + rate * reg) per round.
    budget : "project" gives up the best replaceable of 256 points, whose part the others take over ("project:N" of N);
        "auto" grows while it matters; a number drops the lightest, as the paper does; a Budget; None keeps all.
    cost : what each mistake costs (Delta), a matrix over the sorted classes, or a `Taxonomy` of them.
    multiclass : "exact" solves the step for more than two classes; "runner_up" is the paper's.

    >>> import gossamer, numpy as np
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array([False, True, False, True])
    >>> gossamer.SILKClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    [False, True]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "hinge", C: float = 0.5, rate: float = 1.0,
        schedule: Any = "constant", reg: float = 1e-4, margin: float = 1.0, fit_intercept: bool = False,
        budget: Any = "project", average: bool | str = "fit", n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, cost: Any = None,
        multiclass: str = "exact", half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.C, self.rate, self.schedule, self.reg = kernel, loss, C, rate, schedule, reg
        self.margin, self.fit_intercept = margin, fit_intercept
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.cost, self.multiclass = cost, multiclass
        self.half_life = half_life
        self.class_weight = class_weight

    def _loss(self) -> Loss:
        _checks.one_of(self, "multiclass", self.multiclass, ["exact", "runner_up"])
        return super()._loss()


class SILKRegressor(_Silk, OnlineRegressor):
    """SILK for regression (Cheng et al. 2006); ``budget=None`` is ILK.

    Parameters
    ----------
    kernel, C, rate, schedule, reg, fit_intercept, budget, average, n_passes, shuffle, random_state, half_life : as in
        `SILKClassifier`.
    loss : "squared", "epsilon_insensitive", "huber" or "pinball"; or a Loss with its own parameters.
    epsilon, delta, quantile : the parameter of the loss that has it.
    nu : epsilon or delta adapts so that a fraction nu of the residuals is larger.
    scale_target : as in `NORMARegressor`; C weighs the loss of targets so scaled.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.SILKRegressor(gossamer.kernels.Gaussian(1.0), C=10).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[1.5], [4.7]])]
    [1.0, -1.0]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "squared", C: float = 0.5, rate: float = 1.0,
        schedule: Any = "constant", reg: float = 1e-4, epsilon: float = 0.1, delta: float = 1.0,
        quantile: float = 0.5, nu: float | None = None, fit_intercept: bool = False, budget: Any = "project",
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.scale_target = scale_target
        self.kernel, self.loss, self.C, self.rate, self.schedule, self.reg = kernel, loss, C, rate, schedule, reg
        self.epsilon, self.delta, self.quantile, self.nu = epsilon, delta, quantile, nu
        self.fit_intercept, self.budget, self.average, self.n_passes = fit_intercept, budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life


class SILKDetector(_Silk, OnlineDetector):
    """SILK for novelty detection (Cheng et al. 2006).

    Parameters
    ----------
    kernel, rate, schedule, reg, budget, n_passes, shuffle, random_state, half_life : as in `SILKClassifier`; the
        default budget is the paper's.
    average : as there, but no mean by default: rho belongs to one hypothesis, and their mean has other alarms.
    C : weight of the loss. With ``nu``, rho falls by about C with each alarm: small against the scores, it is steady.
    margin : rho, fixed (the paper uses 1). Not together with ``nu``.
    nu : rho adapts, from the paper's 1, so that a fraction nu of the rows raises an alarm; 0.05 if neither is given.
    skip : alarms are rows with a p-value below this (`score_pvalue`), and where they come in runs they are not learned,
        so that an anomaly that lasts is not learned away. None: alarms are scores below rho, and all rows are learned.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = gossamer.SILKDetector(gossamer.kernels.Gaussian(0.5), nu=0.1)
    >>> round(float((model.predict_learn(X) < 0).mean()), 2)
    0.1
    """

    def __init__(
        self, kernel: Any = "gaussian", *, C: float = 0.02, rate: float = 1.0, schedule: Any = "constant",
        reg: float = 1e-4, margin: float | None = None, nu: float | None = None, budget: Any = 256,
        average: bool | str = False, n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        skip: float | None = None, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.C, self.rate, self.schedule, self.reg = kernel, C, rate, schedule, reg
        self.margin, self.nu = margin, nu
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state, self.skip = shuffle, random_state, skip
        self.half_life = half_life

    def _loss(self) -> Loss:
        if self.margin is not None and self.nu is not None:
            raise _checks.wrong(self, "nu", "None where margin is given", self.nu)
        if self.margin is not None:
            return Novelty(self.margin)
        # from 0, rho would stay below the size of its own steps for long, and alarms would come like clockwork
        return Novelty(1.0, nu=0.05 if self.nu is None else self.nu)


class SVMDClassifier(_Svmd, OnlineClassifier):
    """SVMD for two or more classes: NORMA whose step size descends too (Vishwanathan, Schraudolph, Smola 2006).

    Parameters
    ----------
    kernel, loss, margin, budget, average, n_passes, shuffle, random_state, cost, half_life, class_weight : as in
        `NORMAClassifier`.
    rate, reg : eta_0, the first step size, and c, the weight of the norm.
    meta, memory : mu, how fast the step size adapts, and lambda, how long the past counts.
    C : None for gradient steps; a number takes implicit steps with this weight of the loss.

    >>> import gossamer, numpy as np
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.SVMDClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "hinge", rate: float = 0.5, reg: float = 0.01, meta: float = 0.1,
        memory: float = 0.95, C: float | None = None, margin: float = 1.0, budget: Any = 256,
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0, cost: Any = None,
        half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rate, self.reg, self.meta, self.memory = kernel, loss, rate, reg, meta, memory
        self.C, self.margin, self.budget, self.average = C, margin, budget, average
        self.n_passes, self.cost, self.shuffle, self.random_state = n_passes, cost, shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight


class SVMDRegressor(_Svmd, OnlineRegressor):
    """SVMD for regression (Vishwanathan, Schraudolph, Smola 2006).

    Parameters
    ----------
    kernel, rate, reg, meta, memory, C, budget, average, n_passes, shuffle, random_state, half_life : as in
        `SVMDClassifier`.
    loss, epsilon, delta, quantile, nu, scale_target : as in `NORMARegressor`.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.SVMDRegressor(gossamer.kernels.Gaussian(1.0), reg=1e-4).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[1.5], [4.7]])]
    [0.9, -0.9]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: Any = "squared", rate: float = 0.2, reg: float = 0.01,
        meta: float = 0.01, memory: float = 0.95, C: float | None = None, epsilon: float = 0.1, delta: float = 1.0,
        quantile: float = 0.5, nu: float | None = None, budget: Any = 256, average: bool | str = "fit",
        n_passes: int = 1, shuffle: bool = True, random_state: Any = 0, scale_target: bool = True,
        half_life: Any = None,
    ) -> None:  # fmt: skip
        self.scale_target = scale_target
        self.kernel, self.loss, self.rate, self.reg, self.meta, self.memory = kernel, loss, rate, reg, meta, memory
        self.C, self.epsilon, self.delta, self.quantile, self.nu = C, epsilon, delta, quantile, nu
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life


class SVMDDetector(_Svmd, OnlineDetector):
    """SVMD for novelty detection.

    Parameters
    ----------
    kernel, rate, reg, meta, memory, C, budget, n_passes, shuffle, random_state, half_life : as in `SVMDClassifier`.
    average : as there, but no mean by default: rho belongs to one hypothesis, and their mean has other alarms.
    nu : the fraction of rows that raise an alarm.
    skip : alarms are rows with a p-value below this (`score_pvalue`), and where they come in runs they are not learned,
        so that an anomaly that lasts is not learned away. None: alarms are scores below rho, and all rows are learned.

    >>> import gossamer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = gossamer.SVMDDetector(gossamer.kernels.Gaussian(0.5), nu=0.1)
    >>> round(float((model.predict_learn(X) < 0).mean()), 1)
    0.1
    """

    def __init__(
        self, kernel: Any = "gaussian", *, nu: float = 0.05, rate: float = 0.1, reg: float = 0.01, meta: float = 0.01,
        memory: float = 0.95, C: float | None = None, budget: Any = 256, average: bool | str = False, n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, skip: float | None = None, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.nu, self.rate, self.reg, self.meta, self.memory = kernel, nu, rate, reg, meta, memory
        self.C, self.budget, self.average, self.n_passes = C, budget, average, n_passes
        self.shuffle, self.random_state, self.skip = shuffle, random_state, skip
        self.half_life = half_life

    def _loss(self) -> Loss:
        if self.nu is None:
            raise _checks.wrong(self, "nu", "a number in (0, 1]", None)
        return Novelty(0.0, nu=self.nu)
