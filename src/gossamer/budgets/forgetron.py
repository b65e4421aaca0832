"""The Forgetron: everything shrinks just enough before the oldest point leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer.budgets.base import Admission, Newcomer, _Sized
from gossamer.rules import Perceptron

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion
    from gossamer.kernels import Kernel
    from gossamer.losses import Loss
    from gossamer.rules import Rule


@dataclass(frozen=True)
class Forgetron(_Sized):
    """The self-tuned Forgetron (Dekel, Shalev-Shwartz, Singer 2008), with `Perceptron` steps: before the oldest term
    leaves, all coefficients shrink by the largest factor phi <= 1 for which the damage of all removals so far,

    sum of sigma^2 k(x, x) + 2 sigma (1 - y f(x)),   sigma = phi |coefficient|, f after the shrinking,

    stays below 15/32 of the mistakes (ALGORITHMS 3.5), as its mistake bound requires.

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
        if type(rule) is not Perceptron or loss.target != "binary":
            got = f"{type(rule).__name__} with {type(loss).__name__}"
            raise _checks.wrong("Learner", "rule", "Perceptron, for two classes, with a Forgetron budget", got)

    def initial_state(self) -> dict[str, Any]:
        return {"spent": 0.0}

    def admit(self, newcomer: Newcomer, expansion: Expansion, state: dict[str, Any]) -> Admission:
        e, gram = expansion, expansion.gram
        if e.size < self.size:
            return Admission(e.size)
        assert gram is not None
        slot = int(np.argmin(e.births))
        a = float(e.coefs[0, slot])
        value = float(e.coefs[0] @ gram[slot]) + float(newcomer.move[0]) * float(newcomer.row[slot])
        left = 15.0 / 32.0 * newcomer.updates - state["spent"]
        phi, spent = self.factor(abs(a), float(e.kappas[slot]), math.copysign(value, a * value), left)
        state["spent"] += spent
        return Admission(slot, keep=phi)

    def factor(self, sigma: float, kappa: float, value: float, left: float) -> tuple[float, float]:
        """phi for a term of weight sigma at whose point y f(x) is ``value``, and its damage; ``left``: the limit."""
        a, b = sigma * sigma * kappa - 2 * sigma * value, 2 * sigma
        phi = 1.0 if a + b <= left else 2 * left / (b + math.sqrt(max(0.0, b * b + 4 * a * left)))
        return phi, (a * phi + b) * phi
