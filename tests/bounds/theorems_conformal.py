"""Cases of the theorem on the coverage of intervals: real, drifting and adversarial sequences."""

import math

import numpy as np
from theorems import broken, case

from gossamer import _core, bounds
from gossamer.certainty.conformal import MISSED, STEP


def residuals(seed, rounds, radius):
    """Residuals of a kind that the seed chooses; of an adversary, who sees the radius, the answer to it."""
    rng = np.random.default_rng([seed, 20])
    kinds = {
        "noise": lambda t, r: rng.normal(),
        "growing": lambda t, r: rng.normal() * math.exp(10 * t / rounds),
        "jumps": lambda t, r: rng.standard_cauchy() * 10.0 ** (t // (rounds // 5) % 2 * 3),
        "adversary": lambda t, r: 1.001 * r if 0 <= r < math.inf else 1.0,
        "lurking": lambda t, r: (1.01 * r if t > rounds // 2 else 0.1) if 0 <= r < math.inf else 1.0,
        "silent": lambda t, r: 0.0,
    }
    made = kinds[list(kinds)[seed % len(kinds)]]
    for t in range(rounds):
        yield made(t, radius())


def measured(seed, missed, follow):
    rounds = 400 + 300 * (seed % 7)
    sure, count = _core.Certainty("regression"), 0
    for residual in residuals(seed, rounds, lambda: sure.threshold(missed)):
        count += abs(residual) > sure.threshold(missed)
        sure.learn_one(0.0, residual, 1.0)
        if not follow:  # alpha stays where it was
            state = sure.state()
            state[: len(MISSED)] = MISSED
            sure.restore(state)
    return abs(count / rounds - missed), bounds.conformal_coverage(missed=missed, step=STEP * missed, rounds=rounds)


@case(bounds.conformal_coverage)
def coverage(seed):
    for missed in MISSED:
        yield measured(seed, missed, follow=True)


@broken(bounds.conformal_coverage)
def without_following(seed):
    yield measured(seed, 0.5, follow=False)
