"""Cases of the theorems on NORMA."""

import math

import numpy as np
from sequences import Run, batch_minimiser, classification, contrary, engine, misled, norma, plain, regression
from theorems import CHANCE, broken, case, one_point, regrets, risk_setting, rivals_of, target

from gossamer import Learner, bounds
from gossamer.bounds.comparators import Comparator, cumulative_risk, largest_kappa
from gossamer.budgets import Oldest, Smallest, Sublinear
from gossamer.kernels import Gaussian
from gossamer.losses import EpsilonInsensitive, Hinge, Novelty
from gossamer.rules import Gradient, Implicit


def norma_versions(tuned):
    return [
        engine(Hinge(margin=tuned.margin), Gradient(rate=tuned.rate, reg=tuned.reg)),
        plain(norma, rate=tuned.rate, reg=tuned.reg, margin=tuned.margin),
    ]


def norma_margin_error_counts(seed, change=lambda algorithm: algorithm):
    s = classification(seed)
    for rivals in rivals_of(s, seed):
        for part in (0.0, 0.4):
            margin = part * rivals.margin
            tuned = bounds.norma_margin_errors_parameters(rivals, margin)
            run = change(norma_versions(tuned)[seed % 3 == 0])(s.kernel, s.X, s.y)
            yield (run.margins <= margin).sum(), rivals, margin


@case(bounds.norma_margin_errors)
def margin_errors(seed):
    for count, rivals, margin in norma_margin_error_counts(seed):
        yield count, bounds.norma_margin_errors(rivals, margin)


@broken(bounds.norma_margin_errors)
def margin_errors_with_the_wrong_sign(seed):
    for count, rivals, margin in norma_margin_error_counts(seed, misled):
        yield count, bounds.norma_margin_errors(rivals, margin)


@broken(bounds.norma_margin_errors)
def margin_errors_a_little_fewer(seed):  # the bound is attained
    for count, rivals, margin in norma_margin_error_counts(seed):
        yield count, 0.99 * bounds.norma_margin_errors(rivals, margin)


def norma_mistake_counts(seed, change=lambda algorithm: algorithm):
    s = classification(seed)
    for rivals in rivals_of(s, seed):
        for zero_margin in (False, True):
            tuned = bounds.norma_mistakes_parameters(rivals, zero_margin)
            yield change(norma_versions(tuned)[seed % 3 == 0])(s.kernel, s.X, s.y).mistakes, rivals


@case(bounds.norma_mistakes)
def norma_mistakes(seed):
    for count, rivals in norma_mistake_counts(seed):
        yield count, bounds.norma_mistakes(rivals)


@broken(bounds.norma_mistakes)
def norma_mistakes_with_the_wrong_sign(seed):
    for count, rivals in norma_mistake_counts(seed, misled):
        yield count, bounds.norma_mistakes(rivals)


@broken(bounds.norma_mistakes)
def norma_mistakes_a_little_fewer(seed):  # the bound is attained
    for count, rivals in norma_mistake_counts(seed):
        yield count, 0.99 * bounds.norma_mistakes(rivals)


@case(bounds.norma_norm)
def norma_norms(seed):
    s, loss, slope, p, _ = risk_setting(seed)
    schedule = ("constant", "inverse_sqrt")[seed % 2]
    budget = (None, Oldest(7), Smallest(7))[seed % 3]
    run = engine(loss, Gradient(p["rate"], p["reg"], schedule), budget)(s.kernel, s.X, target(s, loss, seed))
    yield run.norms.max(), bounds.norma_norm(kappa=s.kappa, reg=p["reg"], slope=slope)


@broken(bounds.norma_norm)
def norma_norms_without_decay(seed):
    s, loss, slope, p, _ = risk_setting(seed, [(Novelty(99.0), 1.0)])
    run = engine(loss, Gradient(p["rate"], 0.0))(s.kernel, s.X, None)
    yield run.norms.max(), bounds.norma_norm(kappa=s.kappa, reg=p["reg"], slope=slope)


def norma_risks(seed, reg):
    s, loss, _, p, _ = risk_setting(seed, [(Hinge(margin=0.7), 1.0), (Hinge(margin=2.0), 1.0)])
    run = engine(loss, Gradient(p["rate"], reg * p["reg"]))(s.kernel, s.X, target(s, loss, seed))
    largest = bounds.norma_largest_risk(kappa=s.kappa, reg=p["reg"], margin=loss.margin)
    yield (loss.value(run.scores, run.y) + 0.5 * p["reg"] * run.norms[:-1] ** 2).max(), largest


@case(bounds.norma_largest_risk)
def norma_largest_risk(seed):
    return norma_risks(seed, 1.0)


@broken(bounds.norma_largest_risk)
def norma_largest_risk_without_decay(seed):
    return norma_risks(seed, 0.0)


def truncation_errors(run, reg, rate, slope, miscount=0):
    for kept in (0, 1, 3, 10):  # f_t keeps births >= t - kept: of the rows counted from 0, the last ones
        lost = np.where(np.arange(len(run.y)) < len(run.y) - kept, run.coefs[-1], 0.0)
        yield (
            run.length(lost[None])[0],
            bounds.norma_truncation(kappa=run.kappas.max(), reg=reg, rate=rate, kept=kept + miscount, slope=slope),
        )


@case(bounds.norma_truncation)
def norma_truncation(seed):
    s, loss, slope, p, _ = risk_setting(seed)
    run = engine(loss, Gradient(0.3 * p["rate"], p["reg"]))(s.kernel, s.X, target(s, loss, seed))
    return truncation_errors(run, p["reg"], 0.3 * p["rate"], slope)


@broken(bounds.norma_truncation)
def norma_truncation_that_counts_one_too_many(seed):
    kernel, X, _ = one_point(60)
    return truncation_errors(engine(Novelty(99.0), Gradient(0.5, 0.4))(kernel, X, None), 0.4, 0.5, 1.0, miscount=1)


@case(bounds.norma_regret)
def norma_regret(seed):
    s, loss, _, p, functions = risk_setting(seed)
    rule = Gradient(p["rate"], p["reg"], "inverse_sqrt")
    run = engine(loss, rule)(s.kernel, s.X, target(s, loss, seed))
    for regret in regrets(run, loss, p["reg"], functions):
        yield regret, bounds.norma_regret(rounds=len(s.X), **p)


@broken(bounds.norma_regret)
def norma_regret_with_the_wrong_sign(seed):
    kernel, X, y = one_point(300)
    loss, p = Hinge(margin=0.5), {"rate": 0.7, "reg": 1.0}
    run = misled(engine(loss, Gradient(**p, schedule="inverse_sqrt")))(kernel, X, y)
    for regret in regrets(run, loss, 1.0, [Comparator(X[:1], [0.5], kernel)]):
        yield regret, bounds.norma_regret(rounds=len(y), kappa=1.0, **p)


def truncated_norma(rate, reg, margin, start, epsilon):
    """Theorem 6 by hand: the step of NORMA, then the terms older than the schedule allows are gone."""

    def run(kernel, X, y):
        gram, rounds = kernel(X, X), len(X)
        coefs, scores, dropped = np.zeros((rounds + 1, rounds)), np.zeros(rounds), np.zeros(rounds)
        targets = np.zeros(rounds)
        for t in range(1, rounds + 1):
            eta = rate / math.sqrt(t)
            scores[t - 1] = gram[t - 1] @ coefs[t - 1]
            targets[t - 1] = y(t, scores[t - 1]) if callable(y) else y[t - 1]
            coefs[t] = (1 - eta * reg) * coefs[t - 1]
            coefs[t, t - 1] = eta * targets[t - 1] * (targets[t - 1] * scores[t - 1] <= margin)
            kept = t + 1 if start is None else min(t + 1, max(start, math.ceil((t + 1) ** (0.5 + epsilon))))
            first = t + 1 - kept  # f_(t+1) has births >= first
            gone = coefs[t, : max(0, first - 1)]
            dropped[t - 1] = np.abs(gone) @ np.sqrt(np.diag(gram)[: len(gone)])
            coefs[t, : len(gone)] = 0.0
        return Run(X, targets, gram, scores, coefs), dropped

    return run


@case(bounds.norma_truncated_regret)
def norma_truncated_regret(seed):
    s, loss, _, p, functions = risk_setting(seed, [(Hinge(margin=0.3), 1.0)])
    p["rate"] = float(np.random.default_rng([seed, 5]).uniform(0.7, 0.97)) / p["reg"]
    budget = Sublinear(p["rate"], p["reg"], 0.42)
    times = 1 if s.kind.startswith("orthogonal") else 3
    X, y = np.concatenate([s.X] * times), np.concatenate([s.y] * times)
    learner = truncated_norma(p["rate"], p["reg"], loss.margin, budget.start, 0.42)
    run, dropped = learner(s.kernel, X, contrary if seed % 5 == 0 else y)
    rule = Gradient(p["rate"], p["reg"], schedule="inverse_sqrt")
    scores = Learner(s.kernel, loss, rule, budget).learn(X, run.y)
    np.testing.assert_allclose(scores, run.scores, rtol=1e-9, atol=1e-9 * np.abs(run.scores).max())
    # the two steps of its proof
    rates = p["rate"] / np.sqrt(np.arange(1, len(dropped) + 1))
    assert (dropped <= 2 * p["reg"] * rates**2 * math.sqrt(p["kappa"]) * (1 + 1e-9)).all()
    assert run.norms.max() <= bounds.norma_norm(kappa=p["kappa"], reg=p["reg"]) * (1 + 1e-9)
    for regret in regrets(run, loss, p["reg"], functions):
        yield regret, bounds.norma_truncated_regret(rounds=len(run.y), **p)


@broken(bounds.norma_truncated_regret)
def norma_truncated_regret_with_the_wrong_sign(seed):
    kernel, X, y = one_point(500)
    loss, p = Hinge(margin=0.5), {"rate": 0.7, "reg": 1.0}
    run = misled(lambda *stream: truncated_norma(0.7, 1.0, 0.5, 40, 0.42)(*stream)[0])(kernel, X, y)
    for regret in regrets(run, loss, 1.0, [Comparator(X[:1], [0.5], kernel)]):
        yield regret, bounds.norma_truncated_regret(rounds=len(y), kappa=1.0, **p)


ROUNDS = 250


def excess_risk(seed, change=lambda algorithm: algorithm):
    """A distribution on few points, its exact risk of the mean hypothesis, and the least mean risk on the stream."""
    rng = np.random.default_rng([seed, 6])
    kernel, places = Gaussian((1.0, 0.02)[seed % 2]), rng.normal(size=(8, 2))
    positive = rng.choice([0.02, 0.98], size=8) if seed % 2 == 0 else np.full(8, 0.98)  # P(y = 1) at each place
    loss, p = Hinge(margin=0.5), {"reg": 1.0, "rate": 0.7}
    drawn = rng.integers(0, 8, size=ROUNDS)
    y = np.where(rng.random(ROUNDS) < positive[drawn], 1.0, -1.0)
    run = change(engine(loss, Gradient(**p, schedule="inverse_sqrt")))(kernel, places[drawn], y)
    coefs = run.coefs[:-1].mean(axis=0)
    scores = kernel(places, places[drawn]) @ coefs
    expected = np.mean(positive * loss.value(scores, 1.0) + (1 - positive) * loss.value(scores, -1.0))
    best = batch_minimiser(kernel, places[drawn], y, p["reg"] * len(y), loss.margin)
    least = cumulative_risk(loss, best.values(places[drawn]), y, best.norm, p["reg"]) / len(y)
    largest = bounds.norma_largest_risk(kappa=1.0, reg=1.0, margin=loss.margin)
    limit = bounds.norma_risk(kappa=1.0, rounds=len(y), largest_risk=largest, confidence=1 - CHANCE, **p)
    yield expected + 0.5 * p["reg"] * run.length(coefs[None])[0] ** 2 - least, limit


@case(bounds.norma_risk)
def norma_risk(seed):
    return excess_risk(seed)


@broken(bounds.norma_risk)
def norma_risk_with_the_wrong_sign(seed):
    return excess_risk(seed, misled)


def alarms(seed, loss, rule):
    """The fraction of alarms (or margin errors, or examples outside the tube), the first and last level."""
    s = regression(seed, 0.5) if loss.target == "real" else classification(seed)
    learner = Learner(s.kernel, loss, rule)
    scores, levels = learner.learn(s.X, None if loss.target == "none" else s.y, with_levels=True)
    made = {"none": scores < levels, "binary": s.y * scores <= levels, "real": np.abs(s.y - scores) > levels}
    return made[loss.target].mean(), [*levels, learner.level], len(s.X)


@case(bounds.alarm_fraction)
def alarm_fraction(seed):
    rng = np.random.default_rng([seed, 7])
    nu, rate = rng.uniform(0.05, 0.9), rng.uniform(0.05, 0.9)
    implicit = Implicit(C=3.0, rate=rate / 3.0, reg=0.1)
    for loss in (Novelty(0.0, nu=nu), Hinge(0.0, nu=nu), EpsilonInsensitive(2.0, nu=nu)):
        for rule in (Gradient(rate=rate, reg=0.1), implicit):
            fraction, levels, rounds = alarms(seed, loss, rule)
            first, last = (levels[-1], levels[0]) if loss.target == "real" else (levels[0], levels[-1])
            if loss.target != "real" or min(levels) > 0:
                exact = bounds.alarm_fraction(nu=nu, first_level=first, last_level=last, rate=rate, rounds=rounds)
                yield abs(fraction - exact), 0.0


def printed_alarms(rounds, nu, rate, reg):
    """Equation (20) as printed: the margin rises on an alarm. The fraction of alarms and the margin after all."""
    f = level = 0.0
    count = 0
    for _ in range(rounds):
        alarm = f < level
        count += alarm
        f = (1 - rate * reg) * f + rate * alarm
        level += rate * (alarm - nu)
    return count / rounds, level


@broken(bounds.alarm_fraction)
def alarm_fraction_as_printed(seed):
    fraction, last = printed_alarms(100, 0.1, 0.5, 0.1)
    exact = bounds.alarm_fraction(nu=0.1, first_level=0.0, last_level=last, rate=0.5, rounds=100)
    yield abs(fraction - exact), 0.0


@case(bounds.alarm_deviation)
def alarm_deviation(seed):
    rng = np.random.default_rng([seed, 8])
    nu, rate, reg = rng.uniform(0.02, 1.0), rng.uniform(0.01, 0.9), rng.uniform(0.01, 1.0)
    rounds = int(rng.integers(1, 300))
    X = rng.normal(size=(rounds, 2)) + np.linspace(0, seed % 4, rounds)[:, None]
    kernel = (Gaussian(1.0), 0.2 * Gaussian(0.3), 3.0 * Gaussian(9.0))[seed % 3]
    scores, levels = Learner(kernel, Novelty(0.0, nu=nu), Gradient(rate=rate, reg=reg)).learn(X, with_levels=True)
    deviation = bounds.alarm_deviation(kappa=largest_kappa(kernel, X), reg=reg, rate=rate, rounds=rounds)
    yield abs((scores < levels).mean() - nu), deviation


@broken(bounds.alarm_deviation)
def alarm_deviation_as_printed(seed):
    fraction, _ = printed_alarms(2000, 0.1, 0.5, 0.1)
    yield abs(fraction - 0.1), bounds.alarm_deviation(kappa=1.0, reg=0.1, rate=0.5, rounds=2000)
