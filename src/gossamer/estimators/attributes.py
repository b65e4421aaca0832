"""The learned attributes of an estimator, whose names end in an underscore."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import RegressorMixin

from gossamer._locks import shared
from gossamer._sparse import to_scipy
from gossamer._typing import Array, Floats
from gossamer.estimators import averaging
from gossamer.estimators.rescale import Rescaled
from gossamer.kernels import Kernel, Linear, Scaled, Sum
from gossamer.learner import Learner


def linear_factor(kernel: Kernel) -> float | None:
    """c of a kernel that is c <x, s>; None of any other.

    >>> linear_factor(0.5 * Linear() + Linear())
    1.5
    """
    if type(kernel) is Linear:
        return 1.0
    if type(kernel) is Scaled:
        base = linear_factor(kernel.base)
        return None if base is None else float(kernel.factor) * base
    if type(kernel) is Sum:
        left, right = linear_factor(kernel.left), linear_factor(kernel.right)
        return None if left is None or right is None else left + right
    return None


class Shown:
    """f(x) = sum_i dual_coef_i k(support_vectors_i, x) + intercept_, and the counters of the learner.

    What is made of several attributes is of one moment: it waits for a thread that learns.
    """

    def _fitted(self) -> Learner:
        raise NotImplementedError

    def _outward(self, values: Floats) -> Floats:
        """Inner scores, or a part of them, with a row for each output, in the order and units of the outside."""
        return values

    def _hypothesis(self) -> tuple[Any, Floats, float]:
        """Points, coefficients as they count in the scores (a row for each output) and offset of what predicts."""
        learner = self._fitted()
        points, coefs, offset = averaging.hypothesis(learner)
        labels = getattr(learner.loss, "label_kernel", None)
        return points, coefs if labels is None else np.array(labels) @ coefs, offset

    @property
    def support_vectors_(self) -> Any:
        """The support points; of sparse rows a CSR array."""
        return to_scipy(self._hypothesis()[0])

    @property
    @shared
    def dual_coef_(self) -> Array:
        """The effective coefficients of the support points: a row for the score, or one for each of ``classes_``."""
        return self._outward(self._hypothesis()[1])

    @property
    @shared
    def intercept_(self) -> float:
        """The learned offset b."""
        learner, offset = self._fitted(), self._hypothesis()[2]
        return offset if learner.loss.many else float(self._outward(np.array([[offset]]))[0, 0])

    @property
    @shared
    def coef_(self) -> Array:
        """The weights of the features for a linear kernel, f(x) = <coef_, x> + intercept_: a row for the score, or one
        for each of ``classes_``; of a regressor, a vector. With other kernels there is no such attribute."""
        learner = self._fitted()
        factor = None if isinstance(learner, Rescaled) else linear_factor(learner.kernel)
        if factor is None or learner.budget.fixed:
            kernel = type(learner.kernel).__name__
            raise AttributeError(f"{type(self).__name__} has coef_ with a linear kernel only, not with {kernel}.")
        points, coefs, _ = self._hypothesis()
        rows = to_scipy(points)
        weights = self._outward(factor * coefs @ (rows if issparse(rows) else np.asarray(rows, dtype=np.float64)))
        return weights[0] if isinstance(self, RegressorMixin) and not learner.loss.many else weights

    @property
    def n_seen_(self) -> int:
        """Examples learned so far."""
        return self._fitted().steps

    @property
    def n_updates_(self) -> int:
        """Examples with a step, whether or not the budget admitted them."""
        return self._fitted().updates

    @property
    def discarded_(self) -> float:
        """The sum of the RKHS norms of the terms that the budget discarded: see `Learner.discarded`."""
        return self._fitted().discarded

    @property
    def norm_(self) -> float:
        """The RKHS norm of the hypothesis."""
        return self._fitted().norm
