"""Cases of the theorems on projections, passive-aggressive learners, the perceptron, ROMMA and ALMA.

The file is long because each theorem stands with the broken twins that must fail it.
"""

import math
from dataclasses import replace

import numpy as np
from sequences import (
    KINDS,
    SEPARABLE,
    alma,
    classification,
    contrary,
    engine,
    misled,
    norma,
    pa,
    perceptron,
    plain,
    projection,
    regression,
    ridge,
    romma,
    separator,
)
from theorems import broken, case, one_point, worst_within

from gossamer import bounds
from gossamer.bounds.comparators import Comparator
from gossamer.kernels import Linear
from gossamer.losses import EpsilonInsensitive, Hinge
from gossamer.rules import ALMA, ROMMA, Gradient, Implicit, PassiveAggressive, Perceptron, Projection

EPSILON = 0.2

# The versions of each algorithm; every case takes them in turn. A rule of the package is one more line.
PROJECTIONS = [plain(projection), engine(Hinge(), Implicit(C=math.inf)), engine(Hinge(), Projection())]
TUBES = [
    plain(projection, epsilon=EPSILON),
    engine(EpsilonInsensitive(EPSILON), Implicit(C=math.inf)),
    engine(EpsilonInsensitive(EPSILON), Projection()),
]
PERCEPTRONS = [
    plain(perceptron),
    plain(norma, rate=3.0, reg=0.0, margin=0.0),
    engine(Hinge(margin=0.0), Gradient(1.0, 0.0)),
    engine(Hinge(margin=0.0), Perceptron()),
]
ROMMAS = [
    plain(romma, aggressive=False),
    plain(romma, aggressive=True),
    engine(Hinge(), ROMMA()),
    engine(Hinge(), ROMMA(aggressive=True)),
]


def small_projections(radius):
    return [plain(projection, radius=radius), engine(Hinge(), Projection(radius))]


def small_tubes(radius):
    return [plain(projection, radius=radius, epsilon=EPSILON), engine(EpsilonInsensitive(EPSILON), Projection(radius))]


def pa1s(C):
    return [plain(pa, C=C, squared=False), engine(Hinge(), Implicit(C=C)), engine(Hinge(), PassiveAggressive(C))]


def pa2s(C, epsilon=None):
    loss = Hinge() if epsilon is None else EpsilonInsensitive(epsilon)
    return [plain(pa, C=C, squared=True, epsilon=epsilon), engine(loss, PassiveAggressive(C, "PA-II"))]


def almas(alpha):
    B, C = bounds.alma_parameters(alpha)
    return [plain(alma, alpha=alpha, B=B, C=C), engine(Hinge(), ALMA(alpha, B, C))]


def in_turn(versions, seed):
    return versions[seed // 7 % len(versions)]  # the seed itself picks among the seven kinds of stream


def short(run, epsilon=None):
    """The hinge loss, or by how much the score is outside the tube, in each round."""
    return np.maximum(0.0, 1.0 - run.margins if epsilon is None else np.abs(run.y - run.scores) - epsilon)


def spliced(s, seed, after=0, spread=1.0):
    """The stream with nonsense before and after it, and the range of its own rounds."""
    rng = np.random.default_rng([seed, 14])
    before = int(rng.integers(0, 20))
    rows = rng.integers(0, len(s.X), size=before + after)
    nonsense = rng.choice([-1.0, 1.0], size=before + after) * spread
    X = np.concatenate([s.X[rows[:before]], s.X, s.X[rows[before:]]])
    y = np.concatenate([nonsense[:before], s.y, nonsense[before:]])
    return X, y, before, before + len(s.X)


# ------------------------------------------------------------------------------------------------------------- Herbster


def classified(seed, version):
    """A run on nonsense and then on a separable stream, where that begins, and how far a separator is from there."""
    s = classification(seed, SEPARABLE)
    X, y, start, _ = spliced(s, seed)
    run = version(s.kernel, X, y)
    distance = separator(s).distance(Comparator(X, run.coefs[start], s.kernel))
    return run, start, distance, s.kappa


def regressed(seed, version, kernel_factor=1.0):
    s = regression(seed, EPSILON)
    X, y, start, _ = spliced(s, seed, spread=3.0)
    kernel, truth = s.kernel, s.truth
    if kernel_factor != 1.0:
        kernel = kernel_factor * kernel
        truth = Comparator(truth.points, truth.coefs / kernel_factor, kernel)
    if seed % 5 == 0:
        y = np.concatenate([y[:start], s.truth.values(s.X)])
        worst = worst_within(y, EPSILON)
        run = version(kernel, X, lambda t, score: worst(t, score) if t >= start else y[t])
    else:
        run = version(kernel, X, y)
    distance = truth.distance(Comparator(X, run.coefs[start], kernel))
    return run, start, distance, kernel.diag(s.X).max()


def step_sums(seed, classifier, regressor):
    for made in (classified(seed, classifier), regressed(seed, regressor)):
        run, start, distance, _ = made
        moved = run.length(np.diff(run.coefs[start:], axis=0))
        yield (moved**2).sum(), bounds.projection_steps(distance=distance)


@case(bounds.projection_steps)
def projection_steps(seed):
    return step_sums(seed, in_turn(PROJECTIONS, seed), in_turn(TUBES, seed))


@broken(bounds.projection_steps)
def projection_steps_twice_as_long(seed):
    return step_sums(seed, plain(projection, relax=2.0), plain(projection, epsilon=EPSILON, relax=2.0))


@case(bounds.projection_mistakes)
def projection_mistakes(seed):
    run, start, distance, kappa = classified(seed, in_turn(PROJECTIONS, seed))
    yield (run.margins[start:] <= 0).sum(), bounds.projection_mistakes(kappa=kappa, distance=distance)


@broken(bounds.projection_mistakes)
def projection_mistakes_with_the_wrong_sign(seed):
    run, start, distance, kappa = classified(seed, misled(plain(projection)))
    yield (run.margins[start:] <= 0).sum(), bounds.projection_mistakes(kappa=kappa, distance=distance)


def tube_losses(seed, version, power=1, **more):
    run, start, distance, kappa = regressed(seed, version, **more)
    yield (short(run, EPSILON)[start:] ** 2).sum(), bounds.projection_loss(kappa=kappa**power, distance=distance)


@case(bounds.projection_loss)
def projection_loss(seed):
    return tube_losses(seed, in_turn(TUBES, seed))


@broken(bounds.projection_loss)
def projection_loss_as_printed(seed):  # R = max K(x, x), so that R^2 is its square: Theorem 6 of the paper
    return tube_losses(seed, plain(projection, epsilon=EPSILON), power=2, kernel_factor=0.02)


@broken(bounds.projection_loss)
def projection_loss_of_steps_twice_as_long(seed):
    return tube_losses(seed, plain(projection, epsilon=EPSILON, relax=2.0))


def local_runs(seed, epsilon=None):
    """A run of a constrained projection with nonsense on both sides, and parts of the stream between, with their u."""
    rng = np.random.default_rng([seed, 15])
    s = classification(seed, SEPARABLE) if epsilon is None else regression(seed, epsilon)
    u = separator(s) if epsilon is None else s.truth
    radius = u.norm * float(rng.uniform(1.0, 2.0))
    X, y, start, end = spliced(s, seed, after=10, spread=1.0 if epsilon is None else 3.0)
    version = in_turn(small_projections(radius) if epsilon is None else small_tubes(radius), seed)
    run = version(s.kernel, X, y)
    assert run.norms.max() <= radius * (1 + 1e-9)
    for first, last in [(start, end), *np.sort(rng.integers(start, end, size=(2, 2)), axis=1).tolist()]:
        if first < last:
            part = slice(first, last)
            yield run, part, {"radius": radius, "norm": u.norm}, run.kappas[part].max()


@case(bounds.projection_local_steps)
def projection_local_steps(seed):
    for epsilon in (None, EPSILON):
        for run, part, p, _ in local_runs(seed, epsilon):
            yield (short(run, epsilon)[part] ** 2 / run.kappas[part]).sum(), bounds.projection_local_steps(**p)


@case(bounds.projection_local_mistakes)
def projection_local_mistakes(seed):
    for run, part, p, kappa in local_runs(seed):
        yield (run.margins[part] <= 0).sum(), bounds.projection_local_mistakes(kappa=kappa, **p)


@case(bounds.projection_local_loss)
def projection_local_loss(seed):
    for run, part, p, kappa in local_runs(seed, EPSILON):
        yield (short(run, EPSILON)[part] ** 2).sum(), bounds.projection_local_loss(kappa=kappa, **p)


def long_memory():
    """Without the constraint one tiny example makes f long, and many later ones, nearly orthogonal, must undo that."""
    X = np.zeros((60, 60))
    X[0, 0] = 1e-4
    X[1:, 0] = 0.5
    X[np.arange(1, 60), np.arange(1, 60)] = math.sqrt(0.75)
    y = np.r_[1.0, -np.ones(59)]
    u = Comparator(np.eye(60)[:1], [-2.0], Linear())  # y u(x) = 1 from the second round on
    return plain(projection)(Linear(), X, y), {"radius": u.norm, "norm": u.norm}


@broken(bounds.projection_local_steps)
def local_steps_without_the_constraint(seed):
    run, p = long_memory()
    yield (short(run)[1:] ** 2 / run.kappas[1:]).sum(), bounds.projection_local_steps(**p)


@broken(bounds.projection_local_mistakes)
def local_mistakes_without_the_constraint(seed):
    run, p = long_memory()
    yield (run.margins[1:] <= 0).sum(), bounds.projection_local_mistakes(kappa=1.0, **p)


@broken(bounds.projection_local_loss)
def local_loss_without_the_constraint(seed):
    kernel, X, _ = one_point(2)
    run = plain(projection, epsilon=0.0)(kernel, X, np.array([100.0, 0.0]))
    yield short(run, 0.0)[1:] @ short(run, 0.0)[1:], bounds.projection_local_loss(kappa=1.0, radius=2.0, norm=0.0)


# --------------------------------------------------------------------------------------------------- passive-aggressive


@case(bounds.pa_loss)
def pa_loss(seed):
    s = classification(seed, SEPARABLE)
    run = in_turn(PROJECTIONS, seed)(s.kernel, s.X, s.y)
    yield (short(run) ** 2).sum(), bounds.pa_loss(kappa=s.kappa, norm=separator(s).norm)
    s = regression(seed, EPSILON)
    y = s.y if seed % 5 else worst_within(s.truth.values(s.X), EPSILON)
    run = in_turn(TUBES, seed)(s.kernel, s.X, y)
    yield (short(run, EPSILON) ** 2).sum(), bounds.pa_loss(kappa=s.kappa, norm=s.truth.norm)


@broken(bounds.pa_loss)
def pa_loss_a_little_less(seed):  # the bound is attained
    for loss, limit in pa_loss(seed):
        yield loss, 0.99 * limit


@broken(bounds.pa_loss)
def pa_loss_with_the_wrong_sign(seed):
    s = classification(seed, SEPARABLE)
    run = misled(plain(projection))(s.kernel, s.X, s.y)
    yield (short(run) ** 2).sum(), bounds.pa_loss(kappa=s.kappa, norm=separator(s).norm)


def anything(seed):
    """A stream of any kind, or one against the learner, and functions to compare with once its labels are known."""
    s = classification(seed, tuple(kind for kind in KINDS if "drift" not in kind and kind != "switching"))

    def functions(run):
        yield 0.0 * s.truth
        fitted = ridge(s.kernel, s.X, run.y, 0.3 * s.kappa)
        yield from (fitted, 2.0 * fitted, s.truth * (1.0 / max(1e-6, np.abs(s.truth.values(s.X)).mean())))
        if s.kind in SEPARABLE and np.array_equal(run.y, s.y):
            yield separator(s)

    return s, contrary if seed % 5 == 0 else s.y, functions


def pa1_counts(seed, change=lambda algorithm: algorithm):
    s, y, functions = anything(seed)
    C = float(10.0 ** np.random.default_rng([seed, 16]).uniform(-2, 2)) / s.kappa
    run = change(in_turn(pa1s(C), seed))(s.kernel, s.X, y)
    for u in functions(run):
        loss = float(np.maximum(0.0, 1.0 - run.y * u.values(s.X)).sum())
        yield run.mistakes, {"kappa": s.kappa, "norm": u.norm, "C": C, "loss": loss}


@case(bounds.pa1_mistakes)
def pa1_mistakes(seed):
    for count, p in pa1_counts(seed):
        yield count, bounds.pa1_mistakes(**p)


@broken(bounds.pa1_mistakes)
def pa1_mistakes_with_the_smaller_factor(seed):
    for count, p in pa1_counts(seed):
        yield count, bounds.pa1_mistakes(**p) * min(p["kappa"], 1 / p["C"]) / max(p["kappa"], 1 / p["C"])


def pa2_losses(seed):
    rng = np.random.default_rng([seed, 17])
    s, y, functions = anything(seed)
    C = float(10.0 ** rng.uniform(-2, 2)) / s.kappa
    run = in_turn(pa2s(C), seed)(s.kernel, s.X, y)
    for u in functions(run):
        squared = float((np.maximum(0.0, 1.0 - run.y * u.values(s.X)) ** 2).sum())
        yield (short(run) ** 2).sum(), {"kappa": s.kappa, "norm": u.norm, "C": C, "squared_loss": squared}
    s = replace(regression(seed, 0.5), kind="regression")
    C = float(10.0 ** rng.uniform(-2, 2)) / s.kappa
    run = in_turn(pa2s(C, EPSILON), seed)(s.kernel, s.X, s.y)
    for u in (s.truth, ridge(s.kernel, s.X, s.y, 0.5 / C), 0.0 * s.truth):
        squared = float((np.maximum(0.0, np.abs(s.y - u.values(s.X)) - EPSILON) ** 2).sum())
        yield (short(run, EPSILON) ** 2).sum(), {"kappa": s.kappa, "norm": u.norm, "C": C, "squared_loss": squared}


@case(bounds.pa2_loss)
def pa2_loss(seed):
    for loss, p in pa2_losses(seed):
        yield loss, bounds.pa2_loss(**p)


@broken(bounds.pa2_loss)
def pa2_loss_without_its_second_term(seed):
    for loss, p in pa2_losses(seed):
        yield loss, bounds.pa2_loss(**p) * p["kappa"] / (p["kappa"] + 0.5 / p["C"])


# --------------------------------------------------------------------------------------------- perceptron, ROMMA, ALMA


def perceptron_counts(seed, version):
    s = classification(seed, SEPARABLE)
    u = separator(s)
    margin = 0.1 + seed % 3  # the bound depends on ||u|| / margin alone
    yield version(s.kernel, s.X, s.y).mistakes, {"kappa": s.kappa, "norm": margin * u.norm, "margin": margin}


@case(bounds.perceptron_mistakes)
def perceptron_mistakes(seed):
    for count, p in perceptron_counts(seed, in_turn(PERCEPTRONS, seed)):
        yield count, bounds.perceptron_mistakes(**p)


@broken(bounds.perceptron_mistakes)
def perceptron_mistakes_a_little_fewer(seed):  # the bound is attained
    for count, p in perceptron_counts(seed, plain(perceptron)):
        yield count, 0.99 * bounds.perceptron_mistakes(**p)


@broken(bounds.perceptron_mistakes)
def perceptron_mistakes_with_the_wrong_sign(seed):
    for count, p in perceptron_counts(seed, misled(plain(perceptron))):
        yield count, bounds.perceptron_mistakes(**p)


def romma_runs(seed, version):
    s = classification(seed, SEPARABLE)
    return version(s.kernel, s.X, s.y), s.kappa, separator(s).norm


@case(bounds.romma_mistakes)
def romma_mistakes(seed):
    run, kappa, norm = romma_runs(seed, in_turn(ROMMAS, seed))
    yield run.mistakes, bounds.romma_mistakes(kappa=kappa, norm=norm)


@broken(bounds.romma_mistakes)
def romma_mistakes_a_little_fewer(seed):  # the bound is attained
    for count, limit in romma_mistakes(seed):
        yield count, 0.99 * limit


@broken(bounds.romma_mistakes)
def romma_mistakes_with_the_wrong_sign(seed):
    run, kappa, norm = romma_runs(seed, misled(ROMMAS[0]))
    yield run.mistakes, bounds.romma_mistakes(kappa=kappa, norm=norm)


@case(bounds.romma_norm)
def romma_norms(seed):
    run, _, norm = romma_runs(seed, in_turn(ROMMAS, seed))
    assert (np.diff(run.norms) >= -1e-6 * run.norms[1:]).all()
    # the recursion loses digits where the example is nearly parallel to w
    yield run.norms.max(), bounds.romma_norm(norm=norm) * (1 + 1e-6)


@broken(bounds.romma_norm)
def romma_norms_with_a_wrong_factor(seed):
    run, _, norm = romma_runs(seed, plain(romma, aggressive=True, wrong=True))
    yield run.norms.max(), bounds.romma_norm(norm=norm) * (1 + 1e-6)


@case(bounds.alma_corrections)
def alma_corrections(seed):
    s = classification(seed, SEPARABLE)
    u = separator(s)
    margin = min(1.0, float((s.y * u.values(s.X) / np.sqrt(s.kernel.diag(s.X))).min() / u.norm))
    for alpha in (1.0, 0.9, 0.5, 0.1):
        run = in_turn(almas(alpha), seed)(s.kernel, s.X, s.y)
        corrections = (run.length(np.diff(run.coefs, axis=0)) > 0).sum()
        yield corrections, bounds.alma_corrections(margin=margin, alpha=alpha)


@broken(bounds.alma_corrections)
def alma_corrections_with_the_wrong_sign(seed):
    run = misled(almas(1.0)[0])(*one_point(30))
    yield run.mistakes, bounds.alma_corrections(margin=1.0, alpha=1.0)
