"""The cases in which the theorems of `gossamer.bounds` are tested, and the settings that they share.

A case of a bound is a generator of (measured, limit) for a seed; so is its broken twin, an algorithm with a mistake in
it, or the bound with a wrong constant, which must exceed a limit. The cases are in theorems_norma.py and its like.
"""

import functools
import math

import numpy as np
from sequences import SEPARABLE, batch_minimiser, classification, contrary, regression, ridge, separator

from gossamer.bounds.comparators import Comparator, Rivals, cumulative_risk, values
from gossamer.kernels import Linear
from gossamer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Novelty, Pinball

CASES, BROKEN = {}, {}
CHANCE = 0.1  # how often a bound that holds with some probability may fail in its test


def case(function):
    """Enter a generator of (measured, limit) for a seed as a case of a bound."""
    return lambda generator: CASES.setdefault(function.__name__, []).append(generator) or generator


def broken(function):
    """Enter one in which at least one of the first 26 seeds must exceed the limit."""
    return lambda generator: BROKEN.setdefault(function.__name__, []).append(generator) or generator


@functools.cache
def rivals_of(s, seed):
    """The truth and, where it does not drift, other functions, with a margin that some of the rounds miss."""
    found = []
    rng = np.random.default_rng([seed, 3])
    functions = [s.truth]
    if isinstance(s.truth, Comparator):
        functions.append(ridge(s.kernel, s.X, s.y, 0.5 * s.kappa))
        if s.kind in SEPARABLE:
            functions.append(separator(s))
    for g in functions:
        reached = s.y * values(g, s.X)
        for margin in {float(np.quantile(reached, q)) for q in (0.0, rng.uniform(0.1, 0.9))}:
            if margin > 1e-6:
                found.append(Rivals.measured(g, s.X, s.y, margin))
    return found


LOSSES = [
    (Hinge(margin=0.7), 1.0), (Hinge(margin=0.0), 1.0), (Logistic(), 1.0), (EpsilonInsensitive(0.1), 1.0),
    (Huber(0.5), 1.0), (Huber(0.5, standard=True), 0.5), (Pinball(0.8), 0.8), (Novelty(0.9), 1.0),
]  # fmt: skip


def risk_setting(seed, losses=LOSSES):
    """A stream, a loss with its largest slope, parameters, and functions to compare the risk with."""
    rng = np.random.default_rng([seed, 4])
    loss, slope = losses[seed % len(losses)]
    s = regression(seed // 2, noise=0.3) if loss.target == "real" else classification(seed // 2)
    reg = float(10.0 ** rng.uniform(-2, 0))
    rate = float(rng.uniform(0.05, 0.99)) / reg
    truth = [s.truth] if isinstance(s.truth, Comparator) else [s.truth[0], s.truth[-1]]
    return s, loss, slope, {"kappa": s.kappa, "reg": reg, "rate": rate, "slope": slope}, [*truth, 0.0 * truth[0]]


def regrets(run, loss, reg, functions, C=1.0):
    """How much more risk the learner had than each function, and than the best one for the hinge."""
    y = None if loss.target == "none" else run.y
    learned = cumulative_risk(loss, run.scores, y, run.norms[:-1], reg, C)
    kernel = functions[0].kernel
    if isinstance(loss, Hinge) and loss.margin > 0:
        functions = [*functions, batch_minimiser(kernel, run.X, run.y, reg * len(run.y) / C, loss.margin)]
    for g in functions:
        yield learned - cumulative_risk(loss, g.values(run.X), y, g.norm, reg, C)


def target(s, loss, seed):
    """The labels of the stream or, now and then, of an adversary who answers the learner."""
    if loss.target == "none":
        return None
    if seed % 5 > 0:
        return s.y
    return contrary if loss.target == "binary" else worst_within(s.truth.values(s.X), 0.3)


def worst_within(centre, epsilon):
    """The target within epsilon of the centre that is farthest from the score."""
    return lambda t, score: centre[t] + math.copysign(epsilon, centre[t] - score)


def one_point(rounds):
    """The kernel, rows and labels of a stream that repeats one example: what makes most bounds tight."""
    return Linear(), np.ones((rounds, 1)), np.ones(rounds)
