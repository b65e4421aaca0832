"""The theorems on ILK and SILK: rule Implicit, without an offset, with or without a budget."""

from __future__ import annotations

from gossamer.bounds.comparators import Rivals
from gossamer.bounds.theorem import (
    COMPARED,
    FALLING,
    KAPPA,
    LIPSCHITZ,
    RANGES,
    Tuning,
    best_errors,
    best_step,
    bound,
    radius_of,
    regret,
)


@bound("ALGORITHMS 2.8", LIPSCHITZ, KAPPA, "the rule is Implicit, with any rates")
def ilk_norm(*, kappa: float, reg: float, C: float = 1.0, slope: float = 1.0) -> float:
    """||f_t|| <= C c X / lambda for every t, whatever the step sizes, and with any budget that only drops terms.

    kappa is X^2, the largest k(x, x); reg is lambda; slope is c, the largest |slope| of the loss.

    >>> ilk_norm(kappa=4.0, reg=0.1, C=3.0)
    60.0
    """
    return C * radius_of(kappa, reg, slope)


@bound(
    "ALGORITHMS 2.8", "the rule is Implicit, the loss convex and its step exact", "both saw the same example",
    reg=RANGES["norm"],
)  # fmt: skip
def ilk_contraction(*, distance: float, rate: float, reg: float) -> float:
    """||f_(t+1) - h_(t+1)|| <= ||f_t - h_t|| / (1 + eta lambda): two copies that see one example come closer.

    distance is ||f_t - h_t||; rate is eta, reg lambda.

    >>> ilk_contraction(distance=3.0, rate=1.0, reg=0.5)
    2.0
    """
    return distance / (1.0 + rate * reg)


@bound(
    "Cheng et al. 2006, Theorem 2 (20)-(21), repaired (ALGORITHMS 12: its margin is 0 as printed, its step unnamed)",
    "the rule is Implicit, the loss Hinge, the rate constant", COMPARED, "tuned by ilk_mistakes_parameters",
)  # fmt: skip
def ilk_mistakes(rivals: Rivals) -> float:
    """#{t: y_t f_t(x_t) <= 0} <= K/mu + 2 S/mu^2 + 2 sqrt(S/mu^2) sqrt(K/mu + S/mu^2), with the S that NORMA calls C.

    `Rivals` documents its letters. It holds for many classes too, with the paper's runner-up step and one cost for all
    labels, if kappa is the largest ||k(x, y) - k(x, y')||^2 and the margin is that over the runner-up.

    >>> ilk_mistakes(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100))
    4.0
    """
    return best_errors(rivals, rivals.margin)


def ilk_mistakes_parameters(rivals: Rivals) -> Tuning:
    """The rate, reg and margin, with C = 1, of the repaired Theorem 2 of Cheng et al. 2006: eta C = 2 h / X^2,
    eta lambda = sqrt(D_2 / T) / B, and the margin mu / (1 + eta lambda).

    >>> ilk_mistakes_parameters(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100))
    Tuning(rate=1.0, reg=0.0, margin=1.0, C=1.0)
    """
    step, reg = best_step(rivals, rivals.margin)
    return Tuning(step, reg, rivals.margin / (1.0 + step * reg))


@bound("Cheng et al. 2006, Theorem 3", LIPSCHITZ, KAPPA, FALLING, "the rule is Implicit and its step exact")
def ilk_regret(*, kappa: float, reg: float, rate: float, rounds: int, C: float = 1.0, slope: float = 1.0) -> float:
    """sum_t R_t(f_t) - sum_t R_t(g) <= a sqrt(T) + b for every g, R_t(f) = C loss(f(x_t), y_t) + lambda / 2 ||f||^2,
    a = 4 eta C^2 X^2 + 2 U^2 / eta, b = U^2 / (2 eta) and U = C X / lambda. Any eta > 0 will do.

    rate is eta; rounds is T; kappa is X^2, the largest k(x, x) (mistyped in the paper); reg is lambda; slope,
    1 in the paper, is the largest |slope| of the loss.

    >>> ilk_regret(kappa=1.0, reg=0.5, rate=4.0, rounds=100)
    180.5
    """
    return regret(kappa, reg, rate, rounds, slope, 4.0, C)


@bound(
    "Cheng et al. 2006, remark on Theorem 3", LIPSCHITZ, KAPPA, FALLING, "the rule is Implicit and its step exact",
    "what leaves in round t has a norm of at most 2 (rate / sqrt(t))^2 C slope sqrt(kappa); no fixed budget ensures it",
)  # fmt: skip
def silk_regret(*, kappa: float, reg: float, rate: float, rounds: int, C: float = 1.0, slope: float = 1.0) -> float:
    """`ilk_regret` for a learner that drops terms, with a = 4 eta (1 + 2 / lambda) C^2 X^2 + 2 U^2 / eta.

    rate is eta; rounds is T; kappa is X^2, the largest k(x, x); reg is lambda; slope is as in `ilk_regret`.

    >>> silk_regret(kappa=1.0, reg=0.5, rate=4.0, rounds=100)
    820.5
    """
    return regret(kappa, reg, rate, rounds, slope, 4.0 * (1.0 + 2.0 / reg), C)


@bound(
    "ours, from the proof of Theorem 3 of Cheng et al. 2006", LIPSCHITZ, KAPPA, FALLING,
    "the rule is Implicit and its step exact", "the budget only drops terms",
)  # fmt: skip
def silk_measured_regret(
    *, kappa: float, reg: float, rate: float, rounds: int, dropped: float, C: float = 1.0, slope: float = 1.0
) -> float:
    """`ilk_regret` plus (2 U / eta) sum_t sqrt(t) ||d_t||, where d_t = a k(x, .) is what the budget dropped in round t:
    the form of `silk_regret` that needs no condition on what is dropped. U = C slope X / lambda.

    dropped is the sum; rate is eta; rounds is T; kappa is X^2, the largest k(x, x); reg is lambda.

    >>> silk_measured_regret(kappa=1.0, reg=0.5, rate=4.0, rounds=100, dropped=3.0)
    183.5
    """
    least = regret(kappa, reg, rate, rounds, slope, 4.0, C)
    return least + 2.0 * C * radius_of(kappa, reg, slope) / rate * dropped


@bound("ALGORITHMS 3.4", LIPSCHITZ, KAPPA, "the rule is Implicit and its step exact, the rate constant",
       "the budget is Smallest or Oldest, by size")  # fmt: skip
def silk_tracking(*, kappa: float, reg: float, rate: float, size: int, C: float = 1.0, slope: float = 1.0) -> float:
    """||f_t of ILK - f_t of SILK|| <= (C c X / lambda) (1 + eta lambda)^-omega for every t: what a budget can cost.

    size is omega, the number of terms kept; kappa is X^2, the largest k(x, x); reg is lambda, rate eta; slope is c.

    >>> round(silk_tracking(kappa=1.0, reg=0.1, rate=1.0, size=64), 4)
    0.0224
    """
    return float(C * radius_of(kappa, reg, slope) * (1.0 + rate * reg) ** -size)
