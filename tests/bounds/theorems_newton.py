"""Cases of the theorems on second-order steps."""

import functools
from dataclasses import dataclass

import numpy as np
from sequences import KINDS, SEPARABLE, Run, answer, classification, contrary, regression, ridge, separator
from theorems import broken, case, one_point

from gossamer import Learner, bounds
from gossamer.losses import Squared, SquaredHinge
from gossamer.rules import Newton

STILL = tuple(kind for kind in KINDS if "drift" not in kind and kind != "switching")


@dataclass
class SecondOrder(Run):
    """A run with the variance before each round, and whether there was a step."""

    variances: np.ndarray
    moved: np.ndarray


def by_hand(noise, hinge, wrong=1.0):
    """f_t is ridge regression on the rounds with a step, solved anew in each; ``wrong``: a factor of it.

    AROW's mean is ridge regression on the labels of its steps: S_t^-1 mu_t = sum of y x / r over them.
    """

    def run(kernel, X, y):
        gram, rounds = kernel(X, X), len(X)
        coefs, scores, targets = np.zeros((rounds + 1, rounds)), np.zeros(rounds), np.zeros(rounds)
        variances, moved = np.zeros(rounds), np.zeros(rounds, dtype=bool)
        for t in range(rounds):
            known = np.flatnonzero(moved)
            inverse = np.linalg.inv(gram[np.ix_(known, known)] + noise * np.eye(len(known)))
            coefs[t, known] = wrong * inverse @ targets[known]
            scores[t] = gram[t] @ coefs[t]
            variances[t] = gram[t, t] - gram[t, known] @ inverse @ gram[known, t]
            targets[t] = answer(y, t, scores[t])
            moved[t] = not hinge or targets[t] * scores[t] < 1
        return SecondOrder(X, targets, gram, scores, coefs, variances, moved)

    return run


def by_engine(noise, hinge, **more):
    """The package's learner."""

    def run(kernel, X, y):
        learner = Learner(kernel, SquaredHinge() if hinge else Squared(), Newton(noise, **more))
        scores, variances, targets, moved = [], [], [], []
        for t, x in enumerate(X):
            score = learner.score_one(x) if t else 0.0
            variances.append(np.nan if hinge else float(learner.variance(x[None])[0]))
            targets.append(answer(y, t, score))
            scores.append(learner.learn_one(x, targets[-1]))
            moved.append(learner.updates > sum(moved))
        y, scores, variances, moved = map(np.array, (targets, scores, variances, moved))
        return SecondOrder(X, y, kernel(X, X), scores, np.zeros((0, len(X))), variances, moved)

    return run


def version(seed, noise, hinge):
    return (by_engine if seed // 13 % 2 == 0 else by_hand)(noise, hinge)


def noise_of(s, seed):
    return float(10.0 ** np.random.default_rng([seed, 18]).uniform(-2, 1.5)) * s.kappa


# ----------------------------------------------------------------------------------------------------- ridge regression


def far_target(largest):
    """The target within a bound that is farthest from the score."""
    return lambda t, score: -largest if score > 0 else largest


@functools.cache
def regressed(seed, make=version):
    """A run, the largest target, and functions, the best one first, by the numbers that the theorems take."""
    s = regression(seed, 0.3)
    noise, largest = noise_of(s, seed), float(np.abs(s.y).max())
    run = make(seed, noise, hinge=False)(s.kernel, s.X, far_target(largest) if seed % 5 == 0 else s.y)
    best = ridge(s.kernel, s.X, run.y, noise)
    numbers = [
        ({"norm": u.norm, "noise": noise}, float(np.sum((run.y - u.values(s.X)) ** 2)))
        for u in (best, 0.9 * best, s.truth, 0.0 * s.truth)
    ]
    return s, run, largest, numbers


def weighted(run, noise):
    return float(np.sum((run.y - run.scores) ** 2 / (1 + run.variances / noise)))


@case(bounds.newton_identity)
def newton_identity(seed):
    _, run, _, functions = regressed(seed)
    limits = [bounds.newton_identity(squared_loss=loss, **p) for p, loss in functions]
    measured = weighted(run, functions[0][0]["noise"])
    yield from ((measured, limit) for limit in limits)
    yield limits[0], measured  # the first is attained


def identity_of(seed, make, weigh=weighted):
    _, run, _, functions = regressed(seed, make)
    for p, loss in functions:
        yield weigh(run, p["noise"]), bounds.newton_identity(squared_loss=loss, **p)


@broken(bounds.newton_identity)
def identity_without_the_variance(seed):
    return identity_of(seed, version, lambda run, noise: float(np.sum((run.y - run.scores) ** 2)))


@broken(bounds.newton_identity)
def identity_of_steps_too_short(seed):
    return identity_of(seed, lambda seed, noise, hinge: by_hand(noise, hinge, wrong=0.9))


@broken(bounds.newton_identity)
def identity_with_forgetting(seed):
    return identity_of(seed, lambda seed, noise, hinge: by_engine(noise, hinge, forgetting=0.98))


def clipped_regrets(seed, make=version):
    s, run, largest, functions = regressed(seed, make)
    learned = float(np.sum((run.y - np.clip(run.scores, -largest, largest)) ** 2))
    complexity = bounds.log_det(s.kernel, s.X, functions[0][0]["noise"])
    for p, loss in functions:
        yield learned - loss, {**p, "largest": largest, "log_det": complexity}


@case(bounds.newton_regret)
def newton_regret(seed):
    for regret, p in clipped_regrets(seed):
        yield regret, bounds.newton_regret(**p)


@broken(bounds.newton_regret)
def regret_without_the_determinant(seed):
    for regret, p in clipped_regrets(seed):
        yield regret, bounds.newton_regret(**{**p, "log_det": 0.0})


@broken(bounds.newton_regret)
def regret_with_the_wrong_sign(seed):
    kernel, X, y = one_point(60)
    run = by_hand(1.0, hinge=False, wrong=-1.0)(kernel, X, y)
    complexity = bounds.log_det(kernel, X, 1.0)
    learned = float(np.sum((y - np.clip(run.scores, -1, 1)) ** 2))
    yield learned, bounds.newton_regret(noise=1.0, norm=1.0, largest=1.0, log_det=complexity)


# ----------------------------------------------------------------------------------------------------------------- AROW


def arow_counts(seed, make=version):
    s = classification(seed, STILL)
    noise = noise_of(s, seed)
    run = make(seed, noise, hinge=True)(s.kernel, s.X, contrary if seed % 5 == 0 else s.y)
    S, fitted = run.moved, ridge(s.kernel, s.X, run.y, noise)
    functions = [0.0 * s.truth, fitted, 2.0 * fitted, s.truth * (1.0 / max(1e-6, np.abs(s.truth.values(s.X)).mean()))]
    if s.kind in SEPARABLE and np.array_equal(run.y, s.y):
        functions.append(separator(s))
    free = int((S & (run.margins > 0)).sum())
    assert run.mistakes + free == S.sum()
    for u in functions:
        values = u.values(s.X)[S]
        yield run.mistakes, {
            "noise": noise, "norm": u.norm, "squared_scores": float(values @ values), "margin_errors": free,
            "deficit": float(np.maximum(0.0, 1.0 - run.y[S] * values).sum()),
            "log_det": bounds.log_det(s.kernel, s.X[S], noise),
        }  # fmt: skip


@case(bounds.arow_mistakes)
def arow_mistakes(seed):
    for count, p in arow_counts(seed):
        yield count, bounds.arow_mistakes(**p)


@broken(bounds.arow_mistakes)
def arow_mistakes_without_the_scores(seed):  # as if u were judged by its norm alone
    for count, p in arow_counts(seed):
        yield count, bounds.arow_mistakes(**{**p, "squared_scores": 0.0})


@broken(bounds.arow_mistakes)
def arow_mistakes_without_the_determinant(seed):
    for count, p in arow_counts(seed):
        yield count, bounds.arow_mistakes(**{**p, "log_det": 0.0})


@broken(bounds.arow_mistakes)
def arow_mistakes_with_the_wrong_sign(seed):
    return ((count, bounds.arow_mistakes(**p)) for count, p in arow_counts(
        seed, lambda seed, noise, hinge: by_hand(noise, hinge, wrong=-1.0)
    ))  # fmt: skip
