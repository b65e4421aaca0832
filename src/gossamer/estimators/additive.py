"""Generalized additive models, learned online: f(x) = sum_i f_i(x_i) + intercept, and the curves f_i to look at.

The expansion stands in search trees (ALGORITHMS 11), one per coordinate: a row is learned in O(log m) whatever the
number m of terms, so that nothing needs to be dropped.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Floats
from gossamer.budgets import Budget, Oldest, Smallest
from gossamer.clock import as_half_life
from gossamer.estimators import fitting, inputs, labels
from gossamer.estimators.choose import choose_budget, choose_loss
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.estimators.rescale import Rescaled, marked
from gossamer.kernels import Additive, Matern, as_kernel
from gossamer.learner import Learner
from gossamer.losses import EpsilonInsensitive, Loss, Squared
from gossamer.rules import Implicit, Projection, Rule

METHODS = ("silk", "projection")
#: On data in (0, 1): smooth over a tenth of their range. Tried with other kernels and lengths on one made and two real
#: streams: Exponential(0.1) did as well, with rougher curves; Spline(1) made 1.1, 1.7 and 5.6 times its errors.
SMOOTH = Matern(1.5, 0.1)
#: Kernel values computed at once where there is no tree.
MOST_VALUES = 2**22


class _Additive:
    """A mixin: an additive kernel in trees, and the effect of each of its coordinates."""

    takes_new_features = False
    takes_several = False

    def _kernel(self: Any) -> Additive:
        several = isinstance(self.kernel, (list, tuple))
        base = tuple(map(as_kernel, self.kernel)) if several else as_kernel(self.kernel)
        kernel = Additive(base, self.weights, self.products, self.differences)
        for name in ("products", "differences"):
            pairs = getattr(kernel, name)
            if len(set(pairs)) < len(pairs):
                raise _checks.wrong(self, name, "pairs that differ", pairs)
        return kernel

    def _start(self: Any, loss: Loss | None = None) -> Learner:
        """A learner from the parameters, all validated."""
        fitting.check_parameters(self)
        _checks.one_of(self, "scale_target", getattr(self, "scale_target", False), [False, True])
        kernel = self._kernel()
        kind = Rescaled if _checks.one_of(self, "rescale", self.rescale, [False, True]) else Learner
        parts = (self._loss() if loss is None else loss, self._rule(), self._budget())
        options: dict[str, Any] = {"average": self._average(), "half_life": as_half_life(self, self.half_life)}
        return kind(kernel, *parts, backend="trees" if kernel.splits else "auto", **options)

    def _projects(self: Any) -> bool:
        return bool(_checks.one_of(self, "method", self.method, METHODS) == "projection")

    def _rule(self: Any) -> Rule:
        if self._projects():
            if _checks.one_of(self, "fit_intercept", self.fit_intercept, [False, True]):
                raise _checks.wrong(self, "fit_intercept", "False for the method 'projection'", True)
            return Projection(self.radius)
        if self.radius is not None:
            raise _checks.wrong(self, "radius", "None for the method 'silk'", self.radius)
        return Implicit(self.C, reg=self.reg, schedule=self.schedule, fit_intercept=self.fit_intercept)

    def _budget(self: Any) -> Budget | None:
        return choose_budget(self, Oldest if self._projects() else Smallest)

    @property
    def intercept_(self: Any) -> float:
        """The part of the score that is not an effect of a feature."""
        return float(self._shift() + self._turned(np.array(_hypothesis(self._fitted(), bool(self._average()))[2])))

    @property
    def coordinate_names_(self: Any) -> list[str]:
        """The names of the coordinates: of the features, then of the products and differences of pairs."""
        self._fitted()
        count = self.n_features_in_
        names = [str(name) for name in getattr(self, "feature_names_in_", [f"x{i}" for i in range(count)])]
        kernel = self._kernel()
        products = [f"{names[a]}*{names[b]}" for a, b in kernel.products]
        return [*names, *products, *(f"{names[a]}-{names[b]}" for a, b in kernel.differences)]

    @inputs.speaks
    def coordinates(self: Any, X: Any) -> Array:
        """The numbers whose functions are summed, one column per coordinate: features, products, differences."""
        return np.asarray(self._kernel().columns(self._fitted().check_rows(X)))

    @inputs.speaks
    def feature_effects(self: Any, X: Any) -> Floats:
        """f_i(x_i) for every row and coordinate: (rows, coordinates), and with more than two classes (..., classes).

        The sum over the coordinates and ``intercept_`` is the prediction of a regressor, and the `decision_function` of
        a classifier. Read from the trees, or summed over all support points if there are no trees: with ``average``,
        or a kernel that is not semiseparable.
        """
        learner = self._fitted()
        if learner.backend == "native trees" and not self._average():
            return np.asarray(self._turned(learner.effects(X)))
        rows = learner.as_scored(X) if isinstance(learner, Rescaled) else learner.check_rows(X)
        P = learner.kernel.columns(np.asarray(rows))
        points, coefs, _ = _hypothesis(learner, bool(self._average()))
        bases = learner.kernel.bases(rows.shape[1])
        effects = [_summed(base, P[:, [i]], points[:, [i]], coefs) for i, base in enumerate(bases)]
        return np.asarray(self._turned(_flat(learner, np.stack(effects, axis=1))))

    def curve(self: Any, coordinate: int | str, grid: Any) -> Floats:
        """f_i at the places of ``grid``, in the units of the data: a value per place, or per place and class.

        ``coordinate`` is a number or one of ``coordinate_names_``.
        """
        learner, names = self._fitted(), self.coordinate_names_
        known = names if isinstance(coordinate, str) else list(range(len(names)))
        i = known.index(_checks.one_of(self, "coordinate", coordinate, known))
        width = learner.width if isinstance(learner, Rescaled) else self.n_features_in_
        places = _checks.vector(self, "grid", grid, len(grid))[:, None]
        if isinstance(learner, Rescaled):
            places = learner.mapped_column(i, places)
        if learner.backend == "native trees" and not self._average() and not learner.kernel.differences:
            rows = np.full((len(places), width), 0.5)  # a row in every domain, for its i-th effect only
            rows[:, i : i + 1] = places
            if i < width:
                return np.asarray(self._turned(Learner.effects(learner, marked(rows))[:, i]))
        points, coefs, _ = _hypothesis(learner, bool(self._average()))
        base = learner.kernel.bases(width)[i]
        base.check_domain(self, places)
        return np.asarray(self._turned(_flat(learner, _summed(base, places, points[:, [i]], coefs))))

    def _turned(self, values: Floats) -> Floats:
        """Inner scores, or parts of them, in the units of the targets, without `_shift`."""
        return values

    def _shift(self) -> float:
        """The outer score for an inner score of 0."""
        return 0.0


def _hypothesis(learner: Learner, mean: bool) -> tuple[Array, Floats, float]:
    """The coordinates of the terms, their coefficients (a row per output), the offset; of the mean of all if asked."""
    state = learner.state()
    assert state is not None
    points, coefs, offset = state.mean() if mean else (state.points, state.coefs, float(state.offset))
    kernel = learner.kernel
    assert isinstance(kernel, Additive)
    return kernel.columns(points), coefs, offset


def _summed(base: Any, places: Array, points: Array, coefs: Floats) -> Floats:
    """sum_j coefs_j base(place, point_j) for every place, a column per output."""
    out, step = np.zeros((len(places), len(coefs))), max(1, MOST_VALUES // max(len(places), 1))
    for start in range(0, len(points), step):
        part = slice(start, start + step)
        out += base(places.astype(points.dtype), points[part]) @ coefs[:, part].T
    return out


def _flat(learner: Learner, values: Floats) -> Floats:
    return values if learner.loss.target == "label" else values[..., 0]


class AdditiveRegressor(_Additive, OnlineRegressor):
    """A generalized additive model for regression, learned online: f(x) = sum_i f_i(x_i).

    Parameters
    ----------
    kernel : the kernel of one number in whose space each f_i lies, or a list, one per coordinate. `Exponential`,
        `Matern`, `Brownian`, `Spline`, `Linear` and their sums learn in O(log m). The default suits (0, 1), where
        ``rescale`` puts the data; splines ("spline") are stiff there and take many more rows to bend.
    method : "silk" for implicit steps, which bear noise; "projection" for Herbster's projection onto the functions
        within ``epsilon`` of the target, and onto those with a norm of at most ``radius`` (2001, Figs. 2 and 4).
    loss : "squared", "epsilon_insensitive", "huber" or "pinball" with "silk"; "auto" is "squared" there, and
        "epsilon_insensitive", the only one, with "projection".
    C, reg, schedule, fit_intercept : as in `SILKRegressor`, for "silk".
    epsilon, delta, quantile : the parameter of the loss that has it.
    radius : gamma, the largest norm, for "projection"; None does not constrain it.
    weights : a positive factor for the kernel of each coordinate.
    products, differences : pairs of features whose product or difference is a further coordinate.
    rescale : map each coordinate into (0, 1) by its running mean and deviation (`rescale`), as splines need;
        if False, rows are taken as they are, and one outside of the kernel's domain is an error.
    budget : the number of support points ("silk" gives up the lightest, "projection" the oldest); a Budget; or None.
    average, n_passes, shuffle, random_state, half_life : as in `OnlineClassifier`.
    scale_target : as in `NORMARegressor`.

    Attributes
    ----------
    intercept_, coordinate_names_ : the score is the sum of `feature_effects`, a column per name, and the intercept.

    >>> import gossamer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 2))
    >>> y = np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + 0.1 * rng.normal(size=5000)
    >>> model = gossamer.AdditiveRegressor().fit(X, y)
    >>> bool(np.allclose(model.feature_effects(X).sum(axis=1) + model.intercept_, model.predict(X)))
    True
    >>> low, high = model.curve("x0", [-0.8, 0.8])
    >>> round(float(high - low), 1)
    2.0
    """

    def __init__(
        self, kernel: Any = SMOOTH, *, method: str = "silk", loss: Any = "auto", C: float = 0.1, reg: float = 1e-4,
        schedule: Any = "constant", epsilon: float = 0.1, delta: float = 1.0, quantile: float = 0.5,
        radius: float | None = None, fit_intercept: bool = False, weights: Any = None, products: Any = (),
        differences: Any = (), rescale: bool = True, budget: Any = None, average: bool | str = "fit", n_passes: int = 1,
        shuffle: bool = True, random_state: Any = 0, scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.scale_target = scale_target
        self.kernel, self.method, self.loss, self.C, self.reg, self.schedule = kernel, method, loss, C, reg, schedule
        self.epsilon, self.delta, self.quantile, self.radius = epsilon, delta, quantile, radius
        self.fit_intercept, self.weights = fit_intercept, weights
        self.products, self.differences, self.rescale = products, differences, rescale
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _loss(self) -> Loss:
        if self.loss == "auto":
            return EpsilonInsensitive(self.epsilon) if self._projects() else Squared()
        return choose_loss(self, "auto")

    def _turned(self, values: Floats) -> Floats:
        return self._outward(values)

    def _shift(self) -> float:
        return float(self._units()[0])


class AdditiveClassifier(_Additive, OnlineClassifier):
    """A generalized additive model for two or more classes, learned online: a score f(x) = sum_i f_i(x_i).

    Parameters
    ----------
    kernel, C, reg, schedule, fit_intercept, weights, products, differences, rescale, budget, average, n_passes,
        shuffle, random_state, half_life, class_weight : as in `AdditiveRegressor`.
    method : "silk" for implicit steps; "projection" for Herbster's projection onto the functions that are right by
        ``margin``, and onto those with a norm of at most ``radius`` (2001, Figs. 2 and 3), for two classes.
    loss : "hinge", "squared_hinge" or "logistic"; "hinge" with "projection".
    margin : rho, of the hinges.
    radius : gamma, the largest norm, for "projection"; None does not constrain it.

    Attributes
    ----------
    intercept_, coordinate_names_ : the score is the sum of `feature_effects`, a column per name, and the intercept.

    >>> import gossamer
    >>> X = np.random.default_rng(0).normal(size=(4000, 2))
    >>> y = np.where(X[:, 0] ** 2 + X[:, 1] ** 2 < 1.4, "in", "out")
    >>> model = gossamer.AdditiveClassifier().fit(X, y)
    >>> model.predict([[0.0, 0.5], [0.0, 2.0], [-1.8, 0.3]]).tolist()
    ['in', 'out', 'out']
    >>> bool(np.allclose(model.feature_effects(X).sum(axis=1) + model.intercept_, model.decision_function(X)))
    True
    """

    def __init__(
        self, kernel: Any = SMOOTH, *, method: str = "silk", loss: Any = "hinge", C: float = 0.1, reg: float = 1e-4,
        schedule: Any = "constant", margin: float = 1.0, radius: float | None = None, fit_intercept: bool = False,
        weights: Any = None, products: Any = (), differences: Any = (), rescale: bool = True, budget: Any = None,
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.method, self.loss, self.C, self.reg, self.schedule = kernel, method, loss, C, reg, schedule
        self.margin, self.radius, self.fit_intercept, self.weights = margin, radius, fit_intercept, weights
        self.products, self.differences, self.rescale = products, differences, rescale
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight

    def _loss_many(self, classes: int | None) -> Loss:
        if self._projects():
            raise _checks.wrong(self, "y", "of two classes for the method 'projection'", "more")
        return super()._loss_many(classes)

    def _turned(self, values: Floats) -> Floats:
        if self._fitted().loss.target == "label":
            return values[..., self._columns()] if values.ndim else values
        return -values if labels.is_turned(self._order, self.classes_) else values
