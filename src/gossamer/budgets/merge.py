"""Merge: the lightest point and another become the best single point between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.budgets.base import Admission, Blend, Newcomer, _Sized
from gossamer.budgets.drop import Smallest
from gossamer.kernels import Gaussian

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion
    from gossamer.kernels import Kernel
    from gossamer.losses import Loss
    from gossamer.rules import Rule


@dataclass(frozen=True)
class Merge(_Sized):
    """Two points become the best single point between them; for Gaussian kernels (Wang, Crammer, Vucetic 2012).

    The lightest term m is merged with the term n of equal sign for which the least is lost: z = h m + (1 - h) n with

    coefficient a_m k^((1-h)^2) + a_n k^(h^2),   k = k(m, n),

    h where that is largest. What is lost has the squared norm a_m^2 + a_n^2 + 2 a_m a_n k minus its square (ALGORITHMS
    3.5). Without a term of equal sign the lightest is dropped. Several classes: norms and products of the coefficients.
    With a rule that learns a metric (`Newton`), the newcomer is learned first, and then the two observations become one
    at z, with the mean and the variance that f had there.

    Parameters
    ----------
    size : the number of support points kept, at most 4,096.

    >>> Merge(64)
    Merge(size=64)
    """

    twin: ClassVar[str] = "merge"
    size: int

    def check(self, kernel: Kernel, loss: Loss, rule: Rule, backend: str) -> None:
        super().check(kernel, loss, rule, backend)
        if type(kernel) is not Gaussian:
            raise _checks.wrong("Learner", "kernel", "a Gaussian with a Merge budget", kernel)
        if rule.needs_ids:
            raise _checks.wrong("Learner", "budget", f"another one where examples come back ({rule})", self)

    def admit(self, newcomer: Newcomer, expansion: Expansion, state: dict[str, Any]) -> Admission:
        e, gram = expansion, expansion.gram
        if e.size < self.size:
            return Admission(e.size)
        assert gram is not None
        slot = Smallest(self.size).choose(e, math.inf, 1.0)
        products, weights2 = np.asarray(e.raw[:, slot] @ e.joint(e.raw)), e.weights2
        a2, k = float(weights2[slot]), gram[slot]

        def lost(i: int, halvings: int) -> tuple[float, float, float, float]:
            b2, ab = float(weights2[i]), float(products[i])
            h, u, w, kept = self.blend(a2, b2, ab, math.log(k[i]), halvings)
            return a2 + b2 + 2 * ab * float(k[i]) - kept, h, u, w

        others = [i for i in range(e.size) if i != slot and products[i] > 0 and k[i] >= 1e-12]
        if not others:
            return Admission(slot, renew=e.keeps_norm)
        other = min(others, key=lambda i: lost(i, 12)[0])
        lost2, h, u, w = lost(other, 50)
        far = float(k[other]) ** (-h * (1 - h))

        def values(first: Floats, second: Floats) -> Floats:
            return np.asarray(first**h * second ** (1 - h) * far)

        two = Blend(slot, other, h, (u, w), lost2, values)
        return Admission(other, blend=two, renew=True) if e.keeps_norm else Admission(e.size, merge=two)

    def blend(self, a2: float, b2: float, ab: float, log_k: float, halvings: int) -> tuple[float, float, float, float]:
        """h by bisection of the slope, the factors of both coefficients, and the squared norm of the new term; a2, b2,
        ab: the squared weights of the two and their product."""
        low, high, h, u, w = 0.0, 1.0, 0.0, 0.0, 0.0
        for _ in range(halvings):
            h = 0.5 * (low + high)
            u, w = math.exp(log_k * (1 - h) * (1 - h)), math.exp(log_k * h * h)
            slope = a2 * u * u * (1 - h) - b2 * w * w * h + ab * u * w * (1 - 2 * h)
            low, high = (h, high) if slope > 0 else (low, h)
        return h, u, w, a2 * u * u + b2 * w * w + 2 * ab * u * w
