"""The scikit-learn face: every algorithm of the papers as an estimator.

All have ``fit`` (start anew, ``n_passes`` passes), ``partial_fit`` (go on), ``predict_learn`` (predict each row, then
learn it: the scores that an online evaluation counts) and ``predict``. A learned attribute ends in an underscore:
``support_vectors_``, ``dual_coef_``, ``intercept_``, ``n_seen_``, ``n_updates_``, ``norm_``, ``n_features_in_``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gossamer import _checks
from gossamer._checks import Array
from gossamer.budgets import Budget, Oldest, Smallest
from gossamer.expansion import Floats
from gossamer.learner import Learner
from gossamer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Loss, Novelty, Pinball, Squared, SquaredHinge
from gossamer.rules import Gradient, Implicit, Rule


class _Online(BaseEstimator):  # type: ignore[misc]
    """What all estimators share: a Learner made of the parameters, and the ways to feed it."""

    kernel: Any
    budget: Any
    average: bool | str
    n_passes: int

    def _loss(self) -> Loss:
        raise NotImplementedError

    def _rule(self) -> Rule:
        raise NotImplementedError

    def _budget(self) -> Budget | None:
        raise NotImplementedError

    def _start(self) -> Learner:
        """A learner from the parameters, all of them checked."""
        _checks.whole(self, "n_passes", self.n_passes, 1)
        return Learner(self.kernel, self._loss(), self._rule(), self._budget(), average=self.average)

    def _learner(self) -> Learner:
        learner = self.__dict__.get("learner_")
        return self._start() if learner is None else learner

    def _fitted(self) -> Learner:
        check_is_fitted(self, "learner_")
        learner: Learner = self.learner_
        return learner

    @property
    def support_vectors_(self) -> Any:
        """The support points."""
        return self._fitted().points

    @property
    def dual_coef_(self) -> Array:
        """The effective coefficients, one row per output."""
        return self._fitted().coefs[None, :]

    @property
    def intercept_(self) -> float:
        """The learned offset b."""
        return self._fitted().offset

    @property
    def n_seen_(self) -> int:
        """Examples learned so far."""
        return self._fitted().steps

    @property
    def n_updates_(self) -> int:
        """Examples that moved the hypothesis."""
        return self._fitted().updates

    @property
    def norm_(self) -> float:
        """The RKHS norm of the hypothesis."""
        return self._fitted().norm

    def _scores(self, X: Any) -> Floats:
        return self._fitted().score(X, average=bool(self.average))

    def _keep(self, learner: Learner, X: Any) -> None:
        """The first batch went well: from now on there is a learner."""
        if "learner_" not in self.__dict__:
            self.learner_ = learner
        width = np.shape(X)[1:]
        if len(width) == 1:
            self.n_features_in_ = int(width[0])


class _OnlineClassifier(ClassifierMixin, _Online):  # type: ignore[misc]
    """Labels of any type to -1 and +1. The first label seen is one side; positive scores mean ``classes_[1]``."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Start anew and make ``n_passes`` passes over the rows, in order."""
        classes = np.unique(np.asarray(y))
        fresh = clone(self)
        fresh._start()
        for _ in range(self.n_passes):
            fresh._learn(X, y, sample_weight, classes)
        self.__dict__.update({name: value for name, value in fresh.__dict__.items() if name not in self.get_params()})
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        """Go on with more rows. ``classes`` may be given with the first: then no other label may come."""
        self._learn(X, y, sample_weight, classes)
        return self

    def predict_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Predict each row and then learn it; returns the scores, positive for ``classes_[1]``.

        While only one class has been seen, positive scores mean that class.
        """
        return self._learn(X, y, sample_weight, None)

    def _learn(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Floats:
        learner = self._learner()
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = y[:, 0]
        if y.ndim != 1:
            raise _checks.wrong(self, "y", "a vector of labels", y.shape)
        known, first, given = self._classes(y, classes)
        signs = np.where(y == first, -1.0, 1.0) if len(y) else np.zeros(0)
        scores = learner.learn(X, signs, sample_weight)
        assert isinstance(scores, np.ndarray)
        # until the second class has come, a score speaks for the only one; after that, for classes_[1]
        before = self.__dict__.get("classes_", known[:0])
        alone = 0 if len(before) == 2 or given else int(np.argmax(signs > 0)) + 1 if (signs > 0).any() else len(y)
        turned = -1.0 if len(known) == 2 and known[1] == first else 1.0
        scores[:alone] *= -1.0
        scores[alone:] *= turned
        self._keep(learner, X)
        self.classes_, self._first, self._given = known, first, given
        return scores

    def _classes(self, y: Array, classes: Any) -> tuple[Array, Any, bool]:
        """The classes after this batch, the one that is -1 inside, and whether they were all given."""
        known = self.__dict__.get("classes_")
        given = self.__dict__.get("_given", False)
        if known is None and classes is not None:
            known, given = np.unique(np.asarray(classes)), True
        seen = np.unique(y)
        if given and known is not None:
            strange = seen[~np.isin(seen, known)]
            if len(strange):
                raise _checks.wrong(self, "y", f"one of the classes {known.tolist()}", strange[0])
        both = seen if known is None else np.union1d(known, seen)
        if len(both) > 2:
            raise _checks.wrong(self, "y", "of two classes", both.tolist())
        first = both[0] if given or not len(y) else y[0]
        return both, self.__dict__.get("_first", first), given

    def decision_function(self, X: Any) -> Floats:
        """The score of each row, positive for ``classes_[1]``."""
        scores = self._scores(X)
        return -scores if len(self.classes_) == 1 or self.classes_[1] == self._first else scores

    def predict(self, X: Any) -> Array:
        """The class of each row; a score of 0 goes to ``classes_[1]``."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.full(len(scores), self.classes_[0])
        return np.asarray(self.classes_[(scores >= 0).astype(int)])

    @available_if(lambda self: self.loss == "logistic")  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, for the logistic loss."""
        scores = self.decision_function(X)
        if len(self.classes_) == 1:
            return np.ones((len(scores), 1))
        return np.column_stack([expit(-scores), expit(scores)])


class _OnlineRegressor(RegressorMixin, _Online):  # type: ignore[misc]
    """Real targets."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Start anew and make ``n_passes`` passes over the rows, in order."""
        learner = self._start()
        for _ in range(self.n_passes):
            learner.learn(X, y, sample_weight)
        self.__dict__.pop("learner_", None)
        self._keep(learner, X)
        return self

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Go on with more rows."""
        self.predict_learn(X, y, sample_weight)
        return self

    def predict_learn(self, X: Any, y: Any, sample_weight: Any = None) -> Floats:
        """Predict each row and then learn it; returns the predictions."""
        learner = self._learner()
        scores = learner.learn(X, y, sample_weight)
        assert isinstance(scores, np.ndarray)
        self._keep(learner, X)
        return scores

    def predict(self, X: Any) -> Floats:
        """The prediction for each row."""
        return self._scores(X)


class _OnlineDetector(OutlierMixin, _Online):  # type: ignore[misc]
    """No targets: a row whose score is below ``offset_`` (rho) is an alarm."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Start anew and make ``n_passes`` passes over the rows, in order."""
        learner = self._start()
        for _ in range(self.n_passes):
            learner.learn(X, None, sample_weight)
        self.__dict__.pop("learner_", None)
        self._keep(learner, X)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Go on with more rows."""
        self.predict_learn(X, y, sample_weight)
        return self

    def predict_learn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Floats:
        """Score each row and then learn it; returns f(x) - rho as it was then, negative for an alarm."""
        learner = self._learner()
        scores, levels = learner.learn(X, None, sample_weight, with_levels=True)
        self._keep(learner, X)
        return np.asarray(scores - levels)

    @property
    def offset_(self) -> float:
        """rho: scores below it are alarms."""
        return self._fitted().level

    def score_samples(self, X: Any) -> Floats:
        """f(x) for every row: the larger, the more usual."""
        return self._scores(X)

    def decision_function(self, X: Any) -> Floats:
        """f(x) - rho: negative for an alarm."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> Array:
        """1 for a usual row, -1 for an alarm."""
        return np.where(self.decision_function(X) < 0, -1, 1)


def _budget(estimator: Any, policy: type[Oldest] | type[Smallest]) -> Budget | None:
    """A budget from a number (the paper's policy), a Budget or None."""
    size = estimator.budget
    if size is None or isinstance(size, Budget):
        return size
    return policy(_checks.whole(estimator, "budget", size, 1))


def _classification_loss(estimator: Any, nu: float | None = None) -> Loss:
    """The named loss with the estimator's parameters."""
    loss = _checks.one_of(estimator, "loss", estimator.loss, ["hinge", "squared_hinge", "logistic"])
    if nu is not None and loss != "hinge":
        raise _checks.wrong(estimator, "nu", f"None for the loss {loss!r}", nu)
    if loss == "hinge":
        return Hinge(estimator.margin, nu=nu)
    return SquaredHinge(estimator.margin) if loss == "squared_hinge" else Logistic()


def _regression_loss(estimator: Any, nu: float | None) -> Loss:
    """The named loss with the estimator's parameters."""
    loss = _checks.one_of(
        estimator, "loss", estimator.loss, ["squared", "epsilon_insensitive", "huber", "pinball"]
    )
    if nu is not None and loss not in ("epsilon_insensitive", "huber"):
        raise _checks.wrong(estimator, "nu", f"None for the loss {loss!r}", nu)
    if loss == "squared":
        return Squared()
    if loss == "pinball":
        return Pinball(estimator.quantile)
    if loss == "huber":
        return Huber(estimator.delta, nu=nu)
    return EpsilonInsensitive(estimator.epsilon, nu=nu)


class _Norma:
    """Gradient steps; a budget by number drops the oldest."""

    def _rule(self: Any) -> Rule:
        return Gradient(self.rate, self.reg, self.schedule, getattr(self, "fit_intercept", False))

    def _budget(self: Any) -> Budget | None:
        return _budget(self, Oldest)


class _Silk:
    """Implicit steps; a budget by number drops what weighs least."""

    def _rule(self: Any) -> Rule:
        return Implicit(self.C, self.rate, self.reg, self.schedule, getattr(self, "fit_intercept", False))

    def _budget(self: Any) -> Budget | None:
        return _budget(self, Smallest)


class NORMAClassifier(_Norma, _OnlineClassifier):
    """NORMA for two classes (Kivinen, Smola, Williamson 2004, equations (9)-(18)).

    Parameters
    ----------
    kernel : a Kernel, a name or a function of two batches.
    loss : "hinge", "squared_hinge" or "logistic".
    rate, schedule : eta and how it changes: "constant", "inverse_sqrt" or a function of t.
    reg : lambda, the weight of the norm; the model forgets by 1 - rate * reg per round.
    margin : rho. With ``nu`` it adapts so that a fraction nu of the rows are margin errors.
    fit_intercept : whether an offset is learned.
    budget : the number of support points, the oldest leaving first; a Budget; or None to keep all.
    average : whether predictions use the mean of all hypotheses (True, or "sparse" to bound its memory).
    n_passes : passes made by ``fit``.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.NORMAClassifier("gaussian").fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: str = "hinge", rate: float = 0.5, schedule: Any = "constant",
        reg: float = 0.01, margin: float = 1.0, nu: float | None = None, fit_intercept: bool = False,
        budget: Any = 256, average: bool | str = False, n_passes: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rate, self.schedule, self.reg = kernel, loss, rate, schedule, reg
        self.margin, self.nu, self.fit_intercept = margin, nu, fit_intercept
        self.budget, self.average, self.n_passes = budget, average, n_passes

    def _loss(self) -> Loss:
        return _classification_loss(self, self.nu)


class NORMARegressor(_Norma, _OnlineRegressor):
    """NORMA for regression (Kivinen, Smola, Williamson 2004, section IV).

    Parameters
    ----------
    kernel, rate, schedule, reg, fit_intercept, budget, average, n_passes : as in `NORMAClassifier`.
    loss : "squared", "epsilon_insensitive", "huber" or "pinball".
    epsilon, delta, quantile : the parameter of the loss that has it.
    nu : epsilon or delta adapts so that a fraction nu of the residuals is larger.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.NORMARegressor(gossamer.kernels.Gaussian(1.0), reg=1e-4).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[0.0], [1.5], [3.1], [4.7]])]
    [0.0, 1.0, 0.0, -1.0]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: str = "squared", rate: float = 0.5, schedule: Any = "constant",
        reg: float = 0.01, epsilon: float = 0.1, delta: float = 1.0, quantile: float = 0.5, nu: float | None = None,
        fit_intercept: bool = False, budget: Any = 256, average: bool | str = False, n_passes: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.rate, self.schedule, self.reg = kernel, loss, rate, schedule, reg
        self.epsilon, self.delta, self.quantile, self.nu = epsilon, delta, quantile, nu
        self.fit_intercept, self.budget, self.average, self.n_passes = fit_intercept, budget, average, n_passes

    def _loss(self) -> Loss:
        return _regression_loss(self, self.nu)


class NORMADetector(_Norma, _OnlineDetector):
    """NORMA for novelty detection (Kivinen, Smola, Williamson 2004, equation (20), its sign corrected).

    Parameters
    ----------
    kernel, rate, schedule, reg, budget, average, n_passes : as in `NORMAClassifier`.
    nu : the fraction of rows that raise an alarm.

    >>> import gossamer
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = gossamer.NORMADetector(gossamer.kernels.Gaussian(0.5), nu=0.1)
    >>> round(float((model.predict_learn(X) < 0).mean()), 2)
    0.1
    """

    def __init__(
        self, kernel: Any = "gaussian", *, nu: float = 0.05, rate: float = 0.1, schedule: Any = "constant",
        reg: float = 0.01, budget: Any = 256, average: bool | str = False, n_passes: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.nu, self.rate, self.schedule, self.reg = kernel, nu, rate, schedule, reg
        self.budget, self.average, self.n_passes = budget, average, n_passes

    def _loss(self) -> Loss:
        if self.nu is None:
            raise _checks.wrong(self, "nu", "a number in (0, 1]", None)
        return Novelty(0.0, nu=self.nu)


class SILKClassifier(_Silk, _OnlineClassifier):
    """SILK for two classes: implicit updates and a bounded buffer (Cheng et al. 2006); ``budget=None`` is ILK.

    Parameters
    ----------
    kernel, schedule, margin, fit_intercept, average, n_passes : as in `NORMAClassifier`.
    loss : "hinge", "squared_hinge" or "logistic".
    C : weight of the loss: the largest coefficient a row can get (about).
    rate : eta; the steps are safe for any value.
    reg : lambda; the model forgets by 1 / (1 + rate * reg) per round.
    budget : the number of support points, the lightest leaving first; a Budget; or None to keep all.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array([False, True, False, True])
    >>> gossamer.SILKClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    [False, True]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: str = "hinge", C: float = 1.0, rate: float = 1.0,
        schedule: Any = "constant", reg: float = 1e-4, margin: float = 1.0, fit_intercept: bool = False,
        budget: Any = 256, average: bool | str = False, n_passes: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.C, self.rate, self.schedule, self.reg = kernel, loss, C, rate, schedule, reg
        self.margin, self.fit_intercept = margin, fit_intercept
        self.budget, self.average, self.n_passes = budget, average, n_passes

    def _loss(self) -> Loss:
        return _classification_loss(self)


class SILKRegressor(_Silk, _OnlineRegressor):
    """SILK for regression (Cheng et al. 2006); ``budget=None`` is ILK.

    Parameters
    ----------
    kernel, C, rate, schedule, reg, fit_intercept, budget, average, n_passes : as in `SILKClassifier`.
    loss : "squared", "epsilon_insensitive", "huber" or "pinball".
    epsilon, delta, quantile : the parameter of the loss that has it.
    nu : epsilon or delta adapts so that a fraction nu of the residuals is larger.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.SILKRegressor(gossamer.kernels.Gaussian(1.0), C=10).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[0.0], [1.5], [3.1], [4.7]])]
    [0.0, 1.0, 0.0, -1.0]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, loss: str = "squared", C: float = 1.0, rate: float = 1.0,
        schedule: Any = "constant", reg: float = 1e-4, epsilon: float = 0.1, delta: float = 1.0,
        quantile: float = 0.5, nu: float | None = None, fit_intercept: bool = False, budget: Any = 256,
        average: bool | str = False, n_passes: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.loss, self.C, self.rate, self.schedule, self.reg = kernel, loss, C, rate, schedule, reg
        self.epsilon, self.delta, self.quantile, self.nu = epsilon, delta, quantile, nu
        self.fit_intercept, self.budget, self.average, self.n_passes = fit_intercept, budget, average, n_passes

    def _loss(self) -> Loss:
        return _regression_loss(self, self.nu)


class SILKDetector(_Silk, _OnlineDetector):
    """SILK for novelty detection (Cheng et al. 2006).

    Parameters
    ----------
    kernel, rate, schedule, reg, budget, average, n_passes : as in `SILKClassifier`.
    C : weight of the loss.
    margin : rho, fixed (the paper uses 1). Not together with ``nu``.
    nu : rho adapts so that a fraction nu of the rows raises an alarm; 0.05 if neither is given.

    >>> import gossamer
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = gossamer.SILKDetector(gossamer.kernels.Gaussian(0.5), nu=0.1)
    >>> round(float((model.predict_learn(X) < 0).mean()), 2)
    0.1
    """

    def __init__(
        self, kernel: Any = "gaussian", *, C: float = 0.1, rate: float = 1.0, schedule: Any = "constant",
        reg: float = 1e-3, margin: float | None = None, nu: float | None = None, budget: Any = 256,
        average: bool | str = False, n_passes: int = 1,
    ) -> None:  # fmt: skip
        self.kernel, self.C, self.rate, self.schedule, self.reg = kernel, C, rate, schedule, reg
        self.margin, self.nu = margin, nu
        self.budget, self.average, self.n_passes = budget, average, n_passes

    def _loss(self) -> Loss:
        if self.margin is not None and self.nu is not None:
            raise _checks.wrong(self, "nu", "None where margin is given", self.nu)
        if self.margin is not None:
            return Novelty(self.margin)
        return Novelty(0.0, nu=0.05 if self.nu is None else self.nu)
