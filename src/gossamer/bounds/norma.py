"""The theorems on NORMA: rule Gradient, without an offset."""

from __future__ import annotations

import math

from gossamer import _checks
from gossamer.bounds.comparators import Rivals
from gossamer.bounds.theorem import (
    COMPARED,
    FALLING,
    KAPPA,
    LIPSCHITZ,
    RANGES,
    SOFT_MARGIN,
    Tuning,
    best_errors,
    best_half_step,
    best_step,
    bound,
    radius_of,
    regret,
    shrinkage,
)


@bound("Kivinen et al. 2004, section V-B (ALGORITHMS 1.11)", LIPSCHITZ, KAPPA, "the rule is Gradient, with any rates")
def norma_norm(*, kappa: float, reg: float, slope: float = 1.0) -> float:
    """||f_t|| <= c X / lambda =: U for every t, with any budget that only drops terms; the minimiser of the regularised
    risk obeys it too. (With truncation the proof of Theorem 6 has 3 c X / lambda; the terms that are left sum to this.)

    kappa is X^2, the largest k(x, x); reg is lambda; slope is c, the largest |slope| of the loss.

    >>> norma_norm(kappa=4.0, reg=0.1)
    20.0
    """
    return radius_of(kappa, reg, slope)


@bound(
    "Kivinen et al. 2004, section V-C (ALGORITHMS 1.11)", "the rule is Gradient, the loss Hinge", KAPPA,
    margin=RANGES["norm"],
)  # fmt: skip
def norma_largest_risk(*, kappa: float, reg: float, margin: float) -> float:
    """loss(f_t(x_t), y_t) + lambda / 2 ||f_t||^2 <= rho + X^2 / lambda + X^2 / (2 lambda): the L of Corollary 5. It is
    at most the paper's 5 X^2 / (2 lambda) where rho <= X^2 / lambda, as the paper assumes.

    kappa is X^2, the largest k(x, x); reg is lambda; margin is rho.

    >>> norma_largest_risk(kappa=1.0, reg=0.5, margin=1.0)
    4.0
    """
    return margin + 1.5 * kappa / reg


@bound("Kivinen et al. 2004, Proposition 1", LIPSCHITZ, KAPPA, "the rule is Gradient, the rate constant")
def norma_truncation(*, kappa: float, reg: float, rate: float, kept: int, slope: float = 1.0) -> float:
    """||f - f_truncated|| <= (1 - eta lambda)^tau c X / lambda, where f_truncated has the terms of the last tau rounds.

    It compares f with its own truncation, not with a learner that runs truncated (ALGORITHMS 1.7; see `silk_tracking`).
    kept is tau, in rounds; kappa is X^2, the largest k(x, x); reg is lambda, rate eta and slope c.

    >>> round(norma_truncation(kappa=1.0, reg=0.1, rate=0.5, kept=100), 4)
    0.0592
    """
    return float((1.0 - shrinkage("norma_truncation", rate, reg)) ** kept * radius_of(kappa, reg, slope))


@bound("Kivinen et al. 2004, Theorem 2", SOFT_MARGIN, COMPARED, "tuned by norma_margin_errors_parameters")
def norma_margin_errors(rivals: Rivals, margin: float) -> float:
    """#{t: y_t f_t(x_t) <= rho} <= K/d + 2 C/d^2 + 2 sqrt(C/d^2) sqrt(K/d + C/d^2), with d = mu - rho and
    C = X^2 / 4 (B^2 + B (sqrt(m D_2) + D_1)).

    margin is rho, less than the comparators' mu; `Rivals` has the rest.

    >>> norma_margin_errors(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100), margin=0.5)
    16.0
    """
    return best_errors(rivals, rivals.margin - _below("norma_margin_errors", rivals, margin))


def norma_margin_errors_parameters(rivals: Rivals, margin: float) -> Tuning:
    """The rate and reg of Theorem 2 of Kivinen et al. 2004, equations (30)-(32), for a margin (rho) of one's choice.

    >>> norma_margin_errors_parameters(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100), margin=0.5)
    Tuning(rate=0.5, reg=0.0, margin=0.5, C=1.0)
    """
    step, reg = best_step(rivals, rivals.margin - _below("norma_margin_errors_parameters", rivals, margin))
    return Tuning(step / (1.0 + step * reg), reg, margin)


@bound("Kivinen et al. 2004, Theorem 3", SOFT_MARGIN, COMPARED, "tuned by norma_mistakes_parameters")
def norma_mistakes(rivals: Rivals) -> float:
    """#{t: y_t f_t(x_t) <= 0} <= K/mu + 2 C/mu^2 + 2 sqrt(C/mu^2) sqrt(K/mu + C/mu^2), which is (X B / mu)^2 if one
    comparator has the margin everywhere. (Lemma 7 calls this minimum over the step size a maximum.)

    `Rivals` documents its letters.

    >>> norma_mistakes(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100))
    4.0
    >>> norma_mistakes(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100, deficit=3.0))
    9.0
    """
    return best_errors(rivals, rivals.margin)


def norma_mistakes_parameters(rivals: Rivals, zero_margin: bool = False) -> Tuning:
    """The rate, reg and margin of Theorem 3 of Kivinen et al. 2004; the theorem allows the margin 0 as well.

    >>> norma_mistakes_parameters(Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100))
    Tuning(rate=1.0, reg=0.0, margin=0.5, C=1.0)
    """
    step, reg = best_step(rivals, rivals.margin)
    margin = 0.0 if zero_margin else rivals.margin - best_half_step(rivals, rivals.margin)
    return Tuning(step / (1.0 + step * reg), reg, margin)


@bound("Kivinen et al. 2004, Theorem 4", LIPSCHITZ, KAPPA, FALLING, "the rule is Gradient")
def norma_regret(*, kappa: float, reg: float, rate: float, rounds: int, slope: float = 1.0) -> float:
    """sum_t R_t(f_t) - sum_t R_t(g) <= a sqrt(m) + b for every g, with R_t(f) = loss(f(x_t), y_t) + lambda / 2 ||f||^2,
    a = 4 eta c^2 X^2 + 2 U^2 / eta, b = U^2 / (2 eta) and U = c X / lambda.

    rate is eta, with eta lambda < 1; rounds is m; kappa is X^2, the largest k(x, x); reg is lambda and slope c.

    >>> norma_regret(kappa=1.0, reg=0.5, rate=1.0, rounds=100)
    122.0
    """
    shrinkage("norma_regret", rate, reg)
    return regret(kappa, reg, rate, rounds, slope, 4.0)


@bound(
    "Kivinen et al. 2004, Theorem 6, with the schedule bridged (ALGORITHMS 1.8)",
    LIPSCHITZ, KAPPA, FALLING, "the rule is Gradient",
    "f_t has the terms of the last Sublinear(...).rounds(t) rounds",
)  # fmt: skip
def norma_truncated_regret(*, kappa: float, reg: float, rate: float, rounds: int, slope: float = 1.0) -> float:
    """`norma_regret` for a truncated learner: the same with a = 20 eta c^2 X^2 + 2 U^2 / eta.

    The printed proof takes ||f_t|| <= 3 U in one place and <= U in others; as the terms that are left sum to at most U,
    the statement holds (and would with 12 in place of 20).
    rate is eta, with eta lambda < 1; rounds is m; kappa is X^2, the largest k(x, x); reg is lambda and slope c.

    >>> norma_truncated_regret(kappa=1.0, reg=0.5, rate=1.0, rounds=100)
    282.0
    """
    shrinkage("norma_truncated_regret", rate, reg)
    return regret(kappa, reg, rate, rounds, slope, 20.0)


@bound(
    "Kivinen et al. 2004, Corollary 5, for the mean of f_1 ... f_m (the paper's sum ends at m - 1)",
    LIPSCHITZ, KAPPA, FALLING, "the rule is Gradient", "the examples are independent and from one distribution",
    "no risk of f_1 ... f_m or of the comparator exceeds largest_risk",
)  # fmt: skip
def norma_risk(
    *, kappa: float, reg: float, rate: float, rounds: int, largest_risk: float, confidence: float, slope: float = 1.0
) -> float:
    """With probability 1 - delta, the expected regularised risk of the mean hypothesis exceeds the mean risk of any g
    on the stream by at most (a + L sqrt(2 ln(1 / delta))) / sqrt(m) + b / m, with a and b of `norma_regret`.

    confidence is 1 - delta; largest_risk is L, for the soft margin `norma_largest_risk`; rounds is m; kappa is X^2, the
    largest k(x, x); reg is lambda, rate eta and slope c.

    >>> round(norma_risk(kappa=1.0, reg=0.5, rate=1.0, rounds=10_000, largest_risk=4.0, confidence=0.95), 4)
    0.2181
    """
    shrinkage("norma_risk", rate, reg)
    chance = largest_risk * math.sqrt(-2.0 * math.log(1.0 - confidence))
    return regret(kappa, reg, rate, rounds, slope, 4.0) / rounds + chance / math.sqrt(rounds)


@bound("Kivinen et al. 2004, (20) with its sign corrected (ALGORITHMS 1.3-1.5)", "the loss has nu, the rate is fixed")
def alarm_fraction(*, nu: float, first_level: float, last_level: float, rate: float, rounds: int) -> float:
    """The fraction of alarms f_t(x_t) < rho_t of Novelty, or of margin errors of Hinge, exactly: nu - (rho_(T+1) -
    rho_1) / (eta T). For EpsilonInsensitive, as long as epsilon has not been stopped at 0, exchange first and last.

    first_level and last_level are rho_1 and rho_(T+1); rate is eta (for Implicit: rate * C); rounds is T.

    >>> alarm_fraction(nu=0.1, first_level=0.0, last_level=0.5, rate=0.1, rounds=1000)
    0.095
    """
    return nu - (last_level - first_level) / (rate * rounds)


@bound(
    "ALGORITHMS 1.4, from the identity of alarm_fraction",
    "the rule is Gradient, the rate constant, the loss Novelty with nu, from margin 0", "0 <= k <= kappa everywhere",
)  # fmt: skip
def alarm_deviation(*, kappa: float, reg: float, rate: float, rounds: int) -> float:
    """|fraction of alarms - nu| <= (X^2 / lambda + eta) / (eta T), because -eta <= rho_t <= X^2 / lambda + eta nu.

    kappa is X^2; reg is lambda, rate eta and rounds T.

    >>> round(alarm_deviation(kappa=1.0, reg=0.1, rate=0.5, rounds=1000), 6)
    0.021
    """
    return (kappa / reg + rate) / (rate * rounds)


def _below(owner: str, rivals: Rivals, margin: float) -> float:
    return _checks.number(owner, "margin", margin, 0.0, rivals.margin, "left")
