"""The theorems on second-order steps: ridge regression online, and AROW. What is learned there is `rules.Newton`."""

from __future__ import annotations

import math

from gossamer.bounds.theorem import bound

RIDGE = "the rule is Newton without forgetting or settling, the loss Squared, there is no budget"


@bound("Zhdanov, Kalnishkan 2010, the identity", RIDGE)
def newton_identity(*, noise: float, norm: float, squared_loss: float) -> float:
    """sum_t (y_t - f_t(x_t))^2 / (1 + s_t^2(x_t) / noise) <= sum_t (y_t - u(x_t))^2 + noise ||u||^2 for every u, with
    equality for the best one: the u of ridge regression on all rows, for which the right side is
    noise y' (K + noise I)^-1 y. s_t^2 is the variance left before round t (`Learner.variance`).

    norm is ||u||; squared_loss is the sum of (y - u(x))^2.

    >>> newton_identity(noise=0.5, norm=2.0, squared_loss=3.0)
    5.0
    """
    return squared_loss + noise * norm**2


@bound("Zhdanov, Kalnishkan 2010, corollary for clipped scores", RIDGE, "|y| <= largest, and scores are clipped to it")
def newton_regret(*, noise: float, norm: float, largest: float, log_det: float) -> float:
    """sum_t (y_t - clip(f_t(x_t)))^2 - sum_t (y_t - u(x_t))^2 <= noise ||u||^2 + 4 Y^2 ln det(I + K / noise) for every
    u, where clip maps to [-Y, Y].

    norm is ||u||; largest is Y, at least the largest |y|; log_det is ln det(I + K / noise) of all rows (`log_det`).

    >>> newton_regret(noise=0.5, norm=2.0, largest=1.0, log_det=3.0)
    14.0
    """
    return noise * norm**2 + 4.0 * largest**2 * log_det


@bound(
    "Crammer, Kulesza, Dredze 2009, the mistake bound",
    "the rule is Newton without forgetting or settling, the loss SquaredHinge with margin 1, there is no budget",
    "S are the rounds with a step, y f(x) < 1; those with y f(x) > 0 of them are no mistakes",
)
def arow_mistakes(
    *, noise: float, norm: float, squared_scores: float, deficit: float, log_det: float, margin_errors: int
) -> float:
    """#{t: y_t f_t(x_t) <= 0} <= sqrt(r ||u||^2 + sum_S u(x_t)^2) sqrt(ln det(I + K_S / r) + U)
    + sum_S max(0, 1 - y_t u(x_t)) - U for every u, where S are the rounds with a step and U of them no mistakes.

    noise is r; norm is ||u||; squared_scores is the sum of u(x)^2, deficit that of max(0, 1 - y u(x)), and log_det
    ln det(I + K_S / r), all over S alone; margin_errors is U.

    >>> arow_mistakes(noise=1.0, norm=3.0, squared_scores=16.0, deficit=2.0, log_det=3.0, margin_errors=1)
    11.0
    """
    effort = noise * norm**2 + squared_scores
    return math.sqrt(effort) * math.sqrt(log_det + margin_errors) + deficit - margin_errors
