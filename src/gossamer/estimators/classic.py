"""The estimators of Herbster's projection algorithms and of the algorithms that the papers compare with."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from gossamer._typing import Floats
from gossamer.budgets import Oldest
from gossamer.estimators.fitting import Part
from gossamer.estimators.generic import OnlineClassifier, OnlineRegressor
from gossamer.losses import EpsilonInsensitive, Hinge, Loss
from gossamer.rules import ALMA, ROMMA, Adatron, PassiveAggressive, Perceptron, Projection, Rule


class _Classic:
    """A budget by number drops the oldest."""

    _by_number: ClassVar[Any] = Oldest

    def _loss(self: Any) -> Loss:
        return Hinge()


class KernelPerceptron(_Classic, OnlineClassifier):
    """The kernel perceptron, for two or more classes (ALGORITHMS 6).

    Parameters
    ----------
    kernel : a Kernel, a name or a function of two batches.
    budget : the number of support points, the oldest leaving first; a Budget; or None to keep all.
    average, n_passes, shuffle, random_state, half_life, class_weight : as in `OnlineClassifier`.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.KernelPerceptron(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        kernel: Any = "gaussian",
        *,
        budget: Any = 256,
        average: bool | str = "fit",
        n_passes: int = 1,
        shuffle: bool = True,
        random_state: Any = 0,
        half_life: Any = None,
        class_weight: Any = None,
    ) -> None:
        self.kernel, self.budget, self.average, self.n_passes = kernel, budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight

    def _loss(self) -> Loss:
        return Hinge(0.0)

    def _rule(self) -> Rule:
        return Perceptron()


class ProjectionClassifier(_Classic, OnlineClassifier):
    """Herbster (2001), Figs. 2 and 3: projection onto the functions that are right by 1, and onto a norm ball.

    Parameters
    ----------
    kernel, budget, average, n_passes, shuffle, random_state, half_life : as in `KernelPerceptron`.
    radius : gamma, the largest norm; it is what lets the model forget. None does not constrain it.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.ProjectionClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, radius: float | None = None, budget: Any = 256,
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.radius, self.budget, self.average, self.n_passes = kernel, radius, budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _rule(self) -> Rule:
        return Projection(self.radius)


class ProjectionRegressor(_Classic, OnlineRegressor):
    """Herbster (2001), Figs. 2 and 4: projection onto the functions within epsilon of the target, and a norm ball.

    Parameters
    ----------
    kernel, radius, average, n_passes, shuffle, random_state, half_life : as in `ProjectionClassifier`.
    budget : "project" (256 points, or "project:N"): steps to zero loss diverge where terms are simply dropped; a
        number drops the oldest; a Budget; None keeps all.
    epsilon : errors up to this are none.
    scale_target : as in `NORMARegressor`; epsilon and radius are for targets so scaled.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.ProjectionRegressor(gossamer.kernels.Gaussian(1.0), epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[1.5], [4.7]])]
    [1.0, -1.0]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, epsilon: float = 0.1, radius: float | None = None, budget: Any = "project",
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.scale_target = scale_target
        self.kernel, self.epsilon, self.radius = kernel, epsilon, radius
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.epsilon)

    def _rule(self) -> Rule:
        return Projection(self.radius)


class _PassiveAggressive(_Classic):
    C: float
    variant: str

    def _rule(self) -> Rule:
        return PassiveAggressive(math.inf if self.variant == "PA" else self.C, self.variant)


class PAClassifier(_PassiveAggressive, OnlineClassifier):
    """Passive-aggressive classification (Crammer et al. 2006; ALGORITHMS 7).

    Parameters
    ----------
    kernel, budget, average, n_passes, shuffle, random_state, half_life, class_weight : as in `KernelPerceptron`.
    C : how far noise may pull; not used by the variant "PA".
    variant : "PA", "PA-I" or "PA-II".

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.PAClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, C: float = 1.0, variant: str = "PA-I", budget: Any = 256,
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.C, self.variant = kernel, C, variant
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight


class PARegressor(_PassiveAggressive, OnlineRegressor):
    """Passive-aggressive regression (Crammer et al. 2006; ALGORITHMS 7).

    Parameters
    ----------
    kernel, C, variant, average, n_passes, shuffle, random_state, half_life : as in `PAClassifier`.
    budget : as in `ProjectionRegressor`.
    epsilon : errors up to this are none.
    scale_target : as in `NORMARegressor`; epsilon and C are for targets so scaled.

    >>> import gossamer
    >>> X = np.random.default_rng(0).uniform(0, 6, size=(2000, 1))
    >>> model = gossamer.PARegressor(gossamer.kernels.Gaussian(1.0), epsilon=0.01).fit(X, np.sin(X[:, 0]))
    >>> [round(float(value), 1) for value in model.predict([[1.5], [4.7]])]
    [1.0, -1.0]
    """

    def __init__(
        self, kernel: Any = "gaussian", *, C: float = 1.0, variant: str = "PA-I", epsilon: float = 0.1,
        budget: Any = "project", average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True,
        random_state: Any = 0, scale_target: bool = True, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.scale_target = scale_target
        self.kernel, self.C, self.variant, self.epsilon = kernel, C, variant, epsilon
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _loss(self) -> Loss:
        return EpsilonInsensitive(self.epsilon)


class ALMAClassifier(_Classic, OnlineClassifier):
    """ALMA_2, the approximate large margin algorithm (Gentile 2001; ALGORITHMS 5).

    Parameters
    ----------
    kernel, budget, average, n_passes, shuffle, random_state, half_life : as in `KernelPerceptron`.
    alpha : in (0, 1]: small comes near to the largest margin, 1 corrects mistakes only (ALMA_0).
    B, C : the sizes of margin and step; None for B is sqrt(8) / alpha.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.ALMAClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, alpha: float = 0.9, B: float | None = None, C: float = math.sqrt(2),
        budget: Any = 256, average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.alpha, self.B, self.C = kernel, alpha, B, C
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _rule(self) -> Rule:
        return ALMA(self.alpha, self.B, self.C)


class ROMMAClassifier(_Classic, OnlineClassifier):
    """ROMMA, the relaxed online maximum margin algorithm (Li, Long 2002; ALGORITHMS 8).

    Parameters
    ----------
    kernel, budget, average, n_passes, shuffle, random_state, half_life : as in `KernelPerceptron`.
    aggressive : also learn from examples that are right by less than 1.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.ROMMAClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, aggressive: bool = False, budget: Any = 256, average: bool | str = "fit",
        n_passes: int = 1, shuffle: bool = True, random_state: Any = 0, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.aggressive = kernel, aggressive
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life

    def _rule(self) -> Rule:
        return ROMMA(self.aggressive)


class AdatronClassifier(_Classic, OnlineClassifier):
    """Kernel-Adatron (Friess, Cristianini, Campbell 1998; ALGORITHMS 9). In ``fit``, a row that comes back in a later
    pass changes its own coefficient, so that the passes converge to the support vector machine without offset.

    Parameters
    ----------
    kernel, budget, average, n_passes, shuffle, random_state, half_life, class_weight : as in `KernelPerceptron`; no
        budget by default: the dual needs every point.
    rate : eta; passes converge for rate < 2 / max k(x, x).
    C : the largest coefficient; inf for a hard margin.

    >>> import gossamer
    >>> X, y = np.array([[0.0], [1.0], [0.1], [0.9]]), np.array(["no", "yes", "no", "yes"])
    >>> gossamer.AdatronClassifier(gossamer.kernels.Gaussian(2.0)).fit(X, y).predict([[0.2], [0.8]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self, kernel: Any = "gaussian", *, rate: float = 1.0, C: float = 1.0, budget: Any = None,
        average: bool | str = "fit", n_passes: int = 1, shuffle: bool = True, random_state: Any = 0,
        half_life: Any = None, class_weight: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.rate, self.C = kernel, rate, C
        self.budget, self.average, self.n_passes = budget, average, n_passes
        self.shuffle, self.random_state = shuffle, random_state
        self.half_life = half_life
        self.class_weight = class_weight

    def _rule(self) -> Rule:
        return Adatron(self.rate, self.C)

    def _pass(self, part: Part) -> Floats | None:
        self._learn(part.X, part.y, part.weights, np.unique(np.asarray(part.whole_y)), part.ids, part.time)
        return None
