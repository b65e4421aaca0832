"""The Forgetron: everything shrinks just enough before the oldest point leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gossamer import _checks

if TYPE_CHECKING:
    from gossamer.kernels import Kernel
    from gossamer.losses import Loss
    from gossamer.rules import Rule
from gossamer.budgets.sized import _Sized


@dataclass(frozen=True)
class Forgetron(_Sized):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2008), with `Perceptron` steps: before the oldest term
    leaves, all coefficients shrink by the largest factor phi <= 1 for which the damage of all removals so far,

    sum of sigma^2 k(x, x) + 2 sigma (1 - y f(x)),   sigma = phi |coefficient|, f after the shrinking,

    stays below 15/32 of the mistakes (ALGORITHMS 3.5), which is what its mistake bound asks for.

    Parameters
    ----------
    size : the number of support points kept.

    >>> Forgetron(64)
    Forgetron(size=64)
    """

    twin: ClassVar[str] = "forgetron"
    size: int

    def check(self, kernel: Kernel, loss: Loss, rule: Rule, backend: str) -> None:
        super().check(kernel, loss, rule, backend)
        if type(rule).__name__ != "Perceptron" or loss.target != "binary":
            got = f"{type(rule).__name__} with {type(loss).__name__}"
            raise _checks.wrong("Learner", "rule", "Perceptron, for two classes, with a Forgetron budget", got)

    def factor(self, sigma: float, kappa: float, value: float, left: float) -> tuple[float, float]:
        """phi for a term of weight sigma at whose point y f(x) is ``value``, and its damage; ``left``: what may be."""
        a, b = sigma * sigma * kappa - 2 * sigma * value, 2 * sigma
        phi = 1.0 if a + b <= left else 2 * left / (b + math.sqrt(max(0.0, b * b + 4 * a * left)))
        return phi, (a * phi + b) * phi
