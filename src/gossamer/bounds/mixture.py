"""The theorems on mixtures: how far behind the best sequence of experts the weights of `gossamer.mixture` can fall.

The loss of a round is -ln of the probability, or of the density, that was given to the target: that of the mixture is
-ln sum_e w_e p_e(y), that of an expert -ln p_e(y). Nothing is assumed of the stream or the experts, which may learn.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.bounds.theorem import bound

WEIGHED = "weights start equal and go on by Bayes' rule with a fixed share (mixture.weights.Weights)"
ONCE = "every row has the importance 1, or less"


def best_sequences(losses: Floats, switches: int) -> Floats:
    """The least total loss of any sequence of experts, with 0, 1, ... ``switches`` switches at most.

    losses : of each expert in each round, (experts, rounds). By dynamic programming, O(experts rounds switches).

    >>> best_sequences(np.array([[0.0, 0.0, 5.0, 5.0], [5.0, 5.0, 0.0, 1.0]]), 2).tolist()
    [10.0, 1.0, 1.0]
    """
    switches = _checks.whole("best_sequences", "switches", switches, 0)
    least = np.zeros((switches + 1, len(losses)))  # by switches so far and the expert of the round
    for row in np.asarray(losses, dtype=np.float64).T:
        least[1:] = np.minimum(least[1:], least[:-1].min(axis=1, keepdims=True))
        least += row
    return np.asarray(least.min(axis=1))


@bound("Herbster, Warmuth 1998, Theorem 1 with a Bayesian mixture in log loss", WEIGHED, ONCE)
def fixed_share(*, experts: int, rounds: int, share: float, switches: int = 0) -> float:
    """sum_t -ln sum_e w_e p_e(y_t) - sum_t -ln p_(e_t)(y_t) <= ln E + S ln(E / alpha) - (T - 1 - S) ln(1 - alpha +
    alpha / E) for every sequence of experts e_1, ..., e_T with S switches.

    experts is E; rounds is T; share is alpha, of the weight that all experts share; switches is S. (The share of an
    expert goes to itself as well, so that the paper's alpha is alpha (E - 1) / E.)

    >>> round(fixed_share(experts=100, rounds=10_000, share=1e-4), 2)
    5.6
    >>> round(fixed_share(experts=100, rounds=10_000, share=1e-4, switches=3), 2)
    47.04
    """
    return _follow("fixed_share", 1.0 / experts, experts, rounds, share, switches)


@bound("a consequence of Herbster, Warmuth 1998: a mistake costs ln 2 at least", WEIGHED, ONCE)
def fixed_share_mistakes(*, experts: int, rounds: int, share: float, loss: float, switches: int = 0) -> float:
    """#{t: sum_e w_e p_e(y_t) <= 1/2} <= (sum_t -ln p_(e_t)(y_t) + regret) / ln 2, with the regret of `fixed_share`,
    for every sequence of experts: mistakes in classes.

    loss is the log loss of the sequence; the others are those of `fixed_share`.

    >>> round(fixed_share_mistakes(experts=100, rounds=10_000, share=1e-4, loss=500.0), 1)
    729.4
    """
    return (loss + _follow("fixed_share_mistakes", 1.0 / experts, experts, rounds, share, switches)) / math.log(2.0)


@bound(
    "Herbster, Warmuth 1998, with experts that start and are retired",
    "as fixed_share, but experts start with the weight entry, which all others give, and the weight of those retired "
    "goes to the others (mixture.learner.MixedLearner)", ONCE,
)  # fmt: skip
def roster_regret(
    *, weight: float, experts: int, rounds: int, share: float, entry: float, newcomers: int = 0, switches: int = 0,
    arrivals: int = 0,
) -> float:  # fmt: skip
    """The loss of the mixture over any stretch of rounds less that of a sequence of experts that are awake is at most
    ln(1 / w) + S ln(E / alpha) + A ln(1 / entry) - N ln(1 - entry) - (T - 1 - S - A) ln(1 - alpha + alpha / E).

    weight is w, that of the first expert of the sequence before the stretch: entry if it has just started. experts is
    E, the most that are awake; rounds is T; share is alpha. switches is S, those to an expert that is awake, and
    arrivals is A, those to an expert that has just started. newcomers is N, the experts that start within the stretch,
    or at its start but after the first one, without those of A.

    >>> round(roster_regret(weight=0.005, experts=12, rounds=1000, share=1e-4, entry=0.005, newcomers=40), 2)
    5.59
    """
    follow = _follow("roster_regret", weight, experts, rounds, share, switches, arrivals)
    return follow - arrivals * math.log(entry) - newcomers * math.log1p(-entry)


def _follow(
    owner: str, weight: float, experts: int, rounds: int, share: float, switches: int, arrivals: int = 0
) -> float:
    """-ln of what is left at the end of a sequence of experts of the weight that its first one had."""
    still = rounds - 1 - switches - arrivals
    if still < 0:
        raise _checks.wrong(owner, "switches", f"an int in [0, {rounds - 1 - arrivals}]", switches)
    switch, stay = math.log(experts / share), math.log1p(-share * (1.0 - 1.0 / experts))
    return -math.log(weight) + switches * switch - still * stay
