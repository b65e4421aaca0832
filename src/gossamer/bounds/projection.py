"""The theorems on learners that project: Herbster's algorithms, passive-aggressive ones, perceptron, ROMMA and ALMA."""

from __future__ import annotations

import math

from gossamer import _checks
from gossamer.bounds.theorem import KAPPA, RANGES, bound

HERBSTER = "Herbster 2001"
CRAMMER = "Crammer et al. 2006"
SEPARATED = "y u(x) >= 1 in every round"
IN_TUBE = "|u(x) - y| <= epsilon in every round"
PROJECTS = "the learner projects onto the functions that are right by 1, or within epsilon, on the example"
STAYS_SMALL = "after each projection f is scaled back to the norm radius, if it is larger"

# ---------------------------------------------------------------------------------------------------------- Herbster


@bound(f"{HERBSTER}, Lemma 1", PROJECTS, f"{SEPARATED}, or {IN_TUBE}")
def projection_steps(*, distance: float) -> float:
    """sum_t ||w_(t+1) - w_t||^2 <= ||u - w_1||^2 for every u in all the sets that are projected onto.

    distance is ||u - w_1||, the norm of u for a learner that starts at 0.

    >>> projection_steps(distance=3.0)
    9.0
    """
    return distance**2


@bound(f"{HERBSTER}, Theorem 2", PROJECTS, SEPARATED, KAPPA)
def projection_mistakes(*, kappa: float, distance: float) -> float:
    """#{t: y_t w_t(x_t) <= 0} <= R^2 ||u - w_1||^2 for every u with y_t u(x_t) >= 1 in all rounds.

    kappa is R^2, the largest k(x, x); distance is ||u - w_1||.

    >>> projection_mistakes(kappa=2.0, distance=3.0)
    18.0
    """
    return kappa * distance**2


@bound(f"{HERBSTER}, Theorems 3 and 6, which prints R = max K(x, x) for max sqrt(K(x, x))", PROJECTS, IN_TUBE, KAPPA)
def projection_loss(*, kappa: float, distance: float) -> float:
    """sum_t max(0, |y_t - w_t(x_t)| - epsilon)^2 <= R^2 ||u - w_1||^2 for every u within epsilon of y_t in all rounds.

    kappa is R^2, the largest k(x, x); distance is ||u - w_1||.

    >>> projection_loss(kappa=2.0, distance=3.0)
    18.0
    """
    return kappa * distance**2


@bound(f"{HERBSTER}, Lemma 4", PROJECTS, STAYS_SMALL, "u is in the sets of rounds s ... s' and its norm at most radius")
def projection_local_steps(*, radius: float, norm: float) -> float:
    """sum_t ||w'_t - w_t||^2 <= (gamma + ||u||)^2 over any rounds s ... s', where w'_t is w_t after the projection and
    before it is scaled back. What came before round s may have been anything.

    radius is gamma; norm is ||u||, at most radius.

    >>> projection_local_steps(radius=2.0, norm=1.0)
    9.0
    """
    return _reach("projection_local_steps", radius, norm) ** 2


@bound(f"{HERBSTER}, Theorem 4", PROJECTS, STAYS_SMALL, "y u(x) >= 1 and k(x, x) <= kappa in rounds s ... s'")
def projection_local_mistakes(*, kappa: float, radius: float, norm: float) -> float:
    """#{t in s ... s': y_t w_t(x_t) <= 0} <= R^2 (gamma + ||u||)^2 for any s, s' and every u with y_t u(x_t) >= 1
    there.

    kappa is R^2, the largest k(x, x) in those rounds; radius is gamma; norm is ||u||, at most radius.

    >>> projection_local_mistakes(kappa=1.0, radius=2.0, norm=1.0)
    9.0
    """
    return kappa * _reach("projection_local_mistakes", radius, norm) ** 2


@bound(f"{HERBSTER}, Theorem 5", PROJECTS, STAYS_SMALL, "|u(x) - y| <= epsilon and k(x, x) <= kappa in rounds s ... s'")
def projection_local_loss(*, kappa: float, radius: float, norm: float) -> float:
    """sum over t in s ... s' of max(0, |y_t - w_t(x_t)| - epsilon)^2 <= R^2 (gamma + ||u||)^2 for any s, s' and every u
    within epsilon of y_t there.

    kappa is R^2, the largest k(x, x) in those rounds; radius is gamma; norm is ||u||, at most radius.

    >>> projection_local_loss(kappa=1.0, radius=2.0, norm=1.0)
    9.0
    """
    return kappa * _reach("projection_local_loss", radius, norm) ** 2


def _reach(owner: str, radius: float, norm: float) -> float:
    return radius + _checks.number(owner, "norm", norm, 0.0, radius, "both")


# ------------------------------------------------------------------------------------------------- passive-aggressive


@bound(f"{CRAMMER}, Theorem 2 (ALGORITHMS 7)", "the rule is PA, without C", f"{SEPARATED}, or {IN_TUBE}", KAPPA)
def pa_loss(*, kappa: float, norm: float) -> float:
    """sum_t loss_t^2 <= R^2 ||u||^2, where loss_t = max(0, 1 - y f_t(x_t)), or max(0, |y - f_t(x_t)| - epsilon), for
    every u that has none.

    kappa is R^2, the largest k(x, x); norm is ||u||.

    >>> pa_loss(kappa=2.0, norm=3.0)
    18.0
    """
    return kappa * norm**2


@bound(f"{CRAMMER}, Theorem 4 (ALGORITHMS 7)", "the rule is PA-I: Implicit without reg, the loss Hinge", KAPPA)
def pa1_mistakes(*, kappa: float, norm: float, C: float, loss: float) -> float:
    """#{t: y_t f_t(x_t) <= 0} <= max(R^2, 1 / C) (||u||^2 + 2 C sum_t loss_t(u)) for every u, with the hinge loss.

    kappa is R^2, the largest k(x, x); norm is ||u||; loss is the sum of max(0, 1 - y u(x)).

    >>> pa1_mistakes(kappa=1.0, norm=3.0, C=0.5, loss=2.0)
    22.0
    """
    return max(kappa, 1.0 / C) * (norm**2 + 2.0 * C * loss)


@bound(f"{CRAMMER}, Theorem 5 (ALGORITHMS 7)", "the rule is PA-II: loss_t / (k(x, x) + 1 / (2 C)) is the step", KAPPA)
def pa2_loss(*, kappa: float, norm: float, C: float, squared_loss: float) -> float:
    """sum_t loss_t^2 <= (R^2 + 1 / (2 C)) (||u||^2 + 2 C sum_t loss_t(u)^2) for every u, with the losses of `pa_loss`.

    kappa is R^2, the largest k(x, x); norm is ||u||; squared_loss is the sum of the squared losses of u.

    >>> pa2_loss(kappa=1.0, norm=3.0, C=0.5, squared_loss=2.0)
    22.0
    """
    return (kappa + 1.0 / (2.0 * C)) * (norm**2 + 2.0 * C * squared_loss)


# ------------------------------------------------------------------------------------------ perceptron, ROMMA and ALMA


@bound(
    "Novikoff 1962 (ALGORITHMS 6)", "the rule is the perceptron", "y u(x) >= margin in every round", KAPPA,
    margin=RANGES["kappa"],
)  # fmt: skip
def perceptron_mistakes(*, kappa: float, norm: float, margin: float) -> float:
    """#{t: y_t f_t(x_t) <= 0} <= X^2 ||u||^2 / mu^2 for every u with y_t u(x_t) >= mu in all rounds.

    kappa is X^2, the largest k(x, x); norm is ||u||; margin is mu.

    >>> perceptron_mistakes(kappa=1.0, norm=2.0, margin=0.5)
    16.0
    """
    return kappa * (norm / margin) ** 2


@bound("Li, Long 2002 (ALGORITHMS 8)", "the rule is ROMMA or aggressive ROMMA", SEPARATED, KAPPA)
def romma_mistakes(*, kappa: float, norm: float) -> float:
    """#{t: y_t w_t(x_t) <= 0} <= R^2 ||u||^2 for every u with y_t u(x_t) >= 1 in all rounds.

    kappa is R^2, the largest k(x, x); norm is ||u||.

    >>> romma_mistakes(kappa=2.0, norm=3.0)
    18.0
    """
    return kappa * norm**2


@bound("Li, Long 2002 (ALGORITHMS 8)", "the rule is ROMMA or aggressive ROMMA", SEPARATED)
def romma_norm(*, norm: float) -> float:
    """||w_t|| <= ||u|| in every round, and it never falls, for every u with y_t u(x_t) >= 1 in all rounds.

    norm is ||u||.

    >>> romma_norm(norm=3.0)
    3.0
    """
    return norm


@bound(
    "Gentile 2001 (ALGORITHMS 5, recalled)", "the rule is ALMA, with p = 2 and the parameters of alma_parameters",
    "y u(x) / (||u|| sqrt(k(x, x))) >= margin in every round", margin=RANGES["alpha"],
)  # fmt: skip
def alma_corrections(*, margin: float, alpha: float) -> float:
    """The number of rounds in which f moves is at most 2 / gamma^2 (2 / alpha - 1)^2 + 8 / alpha - 4.

    margin is gamma, the normalised margin of the best separation, in (0, 1]; alpha, in (0, 1], is how far from it f may
    stay: ALMA reaches (1 - alpha) gamma.

    >>> alma_corrections(margin=0.5, alpha=1.0)
    12.0
    """
    return 2.0 * ((2.0 / alpha - 1.0) / margin) ** 2 + 8.0 / alpha - 4.0


def alma_parameters(alpha: float) -> tuple[float, float]:
    """The B = sqrt(8) / alpha and C = sqrt(2) for which Gentile's bound holds.

    >>> alma_parameters(0.5)[0] == 2 * 8**0.5
    True
    """
    return math.sqrt(8.0) / _checks.number("alma_parameters", "alpha", alpha, 0.0, 1.0, "right"), math.sqrt(2.0)
