"""Every algorithm of two classes, of regression and of novelty equals its naive twin, written from the equations."""

import itertools
import math

import naive
import numpy as np
import pytest
from naive import Run
from scipy.optimize import minimize_scalar

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest, Sublinear
from gossamer.kernels import Gaussian, Polynomial
from gossamer.losses import EpsilonInsensitive, Hinge, Huber, Logistic, Novelty, Pinball, Squared, SquaredHinge
from gossamer.rules import ALMA, ROMMA, SVMD, Adatron, Gradient, Implicit, PassiveAggressive, Perceptron, Projection

ROWS = 50
BACKENDS = ("auto", "numpy")

#: A loss of the package, its name in `naive`, and its level.
FIXED = [
    (Hinge(0.7), "hinge", 0.7), (SquaredHinge(0.7), "squared_hinge", 0.7), (Logistic(), "logistic", 0.0),
    (Squared(), "squared", 0.0), (EpsilonInsensitive(0.2), "epsilon", 0.2), (Pinball(0.3), "pinball", 0.3),
    (Huber(0.4), "huber", 0.4), (Huber(0.4, standard=True), "huber_standard", 0.4), (Novelty(0.8), "novelty", 0.8),
]  # fmt: skip
ADAPTIVE = [
    (Hinge(0.5, nu=0.3), "hinge", 0.5), (EpsilonInsensitive(0.1, nu=0.3), "epsilon", 0.1),
    (Huber(0.4, nu=0.3), "huber", 0.4), (Huber(0.4, nu=0.3, adapts_by="gradient"), "huber_gradient", 0.4),
    (Novelty(0.0, nu=0.3), "novelty", 0.0),
]  # fmt: skip


def cases():
    """(name, loss, rule, naive step, first level)."""
    for loss, name, level in FIXED + ADAPTIVE:
        nu = getattr(loss, "nu", None)
        tag = f"{name}{'' if nu is None else '-nu'}"
        one = {"rate": 0.15, "reg": 0.2}
        yield f"norma-{tag}", loss, Gradient(**one), naive.norma(name, **one, nu=nu), level
        yield (
            f"ilk-{tag}", loss, Implicit(0.6, 1.5, 0.04, "inverse_sqrt"),
            naive.ilk(name, 0.6, 1.5, 0.04, True, nu), level,
        )  # fmt: skip
        if loss.target != "none":
            falling = Gradient(0.3, 0.1, "inverse_sqrt", fit_intercept=True)
            yield f"norma-offset-{tag}", loss, falling, naive.norma(name, 0.3, 0.1, True, nu, offset=True), level
            yield (
                f"ilk-offset-{tag}", loss, Implicit(0.6, 0.8, 0.05, fit_intercept=True),
                naive.ilk(name, 0.6, 0.8, 0.05, nu=nu, offset=True), level,
            )  # fmt: skip
        if nu is not None and name in ("epsilon", "novelty"):
            yield f"joint-{tag}", loss, Implicit(0.5, joint=True), naive.ilk(name, 0.5, nu=nu, joint=True), level
        meta = {"rate": 0.1, "reg": 0.05, "meta": 0.3, "memory": 0.9}
        if name != "huber_gradient":
            yield f"svmd-{tag}", loss, SVMD(**meta), naive.svmd(name, **meta, nu=nu), level
            yield f"svmd-ilk-{tag}", loss, SVMD(**meta, C=0.7), naive.svmd(name, **meta, C=0.7, nu=nu), level
    yield "perceptron", Hinge(0.0), Perceptron(), naive.perceptron(), 0.0
    for radius in (None, 0.8):
        bound = math.inf if radius is None else radius
        yield f"projection-{radius}", Hinge(), Projection(radius), naive.projection(None, bound), 0.0
        tube = EpsilonInsensitive(0.1)
        yield f"projection-tube-{radius}", tube, Projection(radius), naive.projection(0.1, bound), 0.0
    for variant, C in (("PA", math.inf), ("PA-I", 0.3), ("PA-II", 0.3)):
        rule = PassiveAggressive(C, variant)
        yield variant, Hinge(), rule, naive.passive_aggressive(variant, C), 0.0
        yield f"{variant}-tube", EpsilonInsensitive(0.1), rule, naive.passive_aggressive(variant, C, 0.1), 0.0
    yield "alma", Hinge(), ALMA(0.7), naive.alma(0.7, math.sqrt(8) / 0.7, math.sqrt(2)), 0.0
    yield "alma-0", Hinge(), ALMA(1.0, B=2.0, C=0.5), naive.alma(1.0, 2.0, 0.5), 0.0
    for aggressive in (False, True):
        yield f"romma-{aggressive}", Hinge(), ROMMA(aggressive), naive.romma(aggressive), 0.0


CASES = {name: parts for name, *parts in cases()}
BUDGETS = {
    "stationary": [(None, None), (Smallest(7), naive.silk(7))],
    "drifting": [(Oldest(7), naive.youngest(7)), (Oldest(age=11), naive.window(lambda t: 11))],
    "repeated": [(None, None), (Smallest(7, "coefficient"), naive.silk(7, by_norm=False))],
}
KERNELS = {
    "gaussian": (Gaussian(0.7), lambda A, B: naive.gaussian(A, B, 0.7)),
    "polynomial": (Polynomial(2, 0.5, 0.6), lambda A, B: naive.polynomial(A, B, 2, 0.5, 0.6)),
}


def stream(kind, seed, rows=ROWS):
    """Rows, and a real target: stationary, with a turning truth, or of few points that come back with other targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2))
    if kind == "repeated":  # never at once: an implicit step ends on the kink, and there rounding decides
        X = X[np.cumsum(rng.integers(1, 9, size=rows)) % 9]
    angle = 3 * np.arange(rows) / rows if kind == "drifting" else np.zeros(rows)
    return X, np.sin(2 * (X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle))) + 0.3 * rng.normal(size=rows)


def target(loss, smooth):
    return {"binary": np.where(smooth > 0, 1.0, -1.0), "real": smooth, "none": None}[loss.target]


def near(actual, desired, what, scale=None):
    """Equal to 1e-9 of the largest."""
    finite = np.where(np.isfinite(desired), np.abs(desired), 0.0)
    size = max(float(np.max(finite, initial=0.0)), 1e-3) if scale is None else scale
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-9 * size, err_msg=str(what))


def compare(learner, X, y, run, what):
    """One pass of the learner against a naive run: scores, levels, coefficients, norm, offset, counts, SVMD's trace.

    A step of aggressive ROMMA ends on a margin of 1. If the point comes again, rounding decides whether it takes one
    more step, of size 0: such rows may be points or not.
    """
    scores, levels = learner.learn(X, y, with_levels=True)
    near(scores.reshape(len(X), -1), run.scores, ("scores", *what))
    if learner.loss.adapts:
        near(levels, run.levels, ("levels", *what))
        near(learner.level, run.level, ("level", *what), 1.0)
    coefs = np.zeros_like(run.alpha)
    coefs[:, learner.births - 1] = learner.coefs
    near(coefs, run.alpha, ("coefs", *what))
    tied = set()
    if learner.rule == ROMMA(True):
        tied = set(np.flatnonzero(np.abs(y * run.scores[:, 0] - 1) < 1e-12).tolist())
    assert set((learner.births - 1).tolist()) - tied == set(run.alive) - tied, what
    assert np.array_equal(X[learner.births - 1], learner.points), what
    near(learner.norm**2, run.norm2, ("norm", *what), max(1.0, run.norm2))
    near(learner.offset, run.offset, ("offset", *what), 1.0)
    assert abs(learner.updates - run.updates) <= len(tied), what
    if learner.rule.needs_trace:
        state, trace = learner.state(), np.zeros_like(run.beta)
        near(state.rate, run.rate, ("rate", *what), run.rate)
        trace[:, state.births - 1] = state.trace_scale * state.trace + state.mix * learner.coefs
        near(trace, run.beta, ("trace", *what), max(1.0, np.abs(run.beta).max()))
        inner = run.inner(run.alpha, run.beta)
        near(state.inner, inner, ("inner", *what), max(1.0, abs(inner)))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_naive_one(name, kernel):
    """Scores, coefficients, norm, levels and trace, on three kinds of stream, with every budget and backend."""
    loss, rule, step, level = CASES[name]
    for seed, (kind, budgets) in enumerate(BUDGETS.items()):
        X, smooth = stream(kind, seed)
        y, gram = target(loss, smooth), KERNELS[kernel][1](X, X)
        for ours, theirs in budgets:
            run = Run(gram, y, step, theirs, level=level)
            for backend in BACKENDS:
                learner = Learner(KERNELS[kernel][0], loss, rule, ours, track_norm=True, backend=backend)
                compare(learner, X, y, run, (kind, ours, backend))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "name", ["norma-hinge", "ilk-offset-squared", "alma", "romma-True", "projection-0.8", "svmd-logistic"]
)
def test_average(name, backend):
    """1.9: the mean of f_1 ... f_m, offset included, with what the budget dropped; "sparse" without it."""
    loss, rule, step, level = CASES[name]
    X, smooth = stream("drifting", 3)
    y, (kernel, k) = target(loss, smooth), KERNELS["polynomial"]
    for ours, theirs in BUDGETS["stationary"] + BUDGETS["drifting"]:
        run = Run(k(X, X), y, step, theirs, level=level)
        for average in (True, "sparse"):
            learner = Learner(kernel, loss, rule, ours, average=average, backend=backend)
            learner.learn(X, y)
            mean = run.mean[0] if average is True else run.mean[0] * np.isin(np.arange(len(X)), run.alive)
            near(learner.score(X + 0.1, average=True), k(X + 0.1, X) @ mean + run.mean_offset, (name, ours, average))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("rate", "exponent"), [(0.9, 0.4), (0.5, 0.4)])
def test_sublinear(rate, exponent, backend):
    """1.8: the schedule of Theorem 6, with the falling rate it is for."""
    X, smooth = stream("drifting", 4, rows=200)
    y, (kernel, k) = np.where(smooth > 0, 1.0, -1.0), KERNELS["gaussian"]
    budget = Sublinear(rate, 1.0, exponent)
    run = Run(k(X, X), y, naive.norma("hinge", rate, 1.0, True), naive.sublinear(rate, 1.0, exponent, 2000), level=1.0)
    learner = Learner(kernel, Hinge(), Gradient(rate, 1.0, "inverse_sqrt"), budget, backend=backend)
    compare(learner, X, y, run, (rate, exponent, backend))
    assert len(run.alive) < run.updates


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("C", [0.4, math.inf])
def test_adatron(C, kernel, backend):
    """9: visits in any order, by id; a coefficient back at 0 leaves, and may come again."""
    X, smooth = stream("stationary", 5, rows=25)
    y, gram = np.where(smooth > 0, 1.0, -1.0), KERNELS[kernel][1](X, X)
    rate = 0.9 / gram.diagonal().max()
    visits = np.random.default_rng(6).integers(0, len(X), size=400)
    scores, coefs, _ = naive.adatron(gram, y, visits, rate, C)
    learner = Learner(KERNELS[kernel][0], Hinge(), Adatron(rate, C), backend=backend)
    near(learner.learn(X[visits], y[visits], ids=visits), scores, "scores")
    place = {x.tobytes(): i for i, x in enumerate(X)}
    found = np.zeros(len(X))
    found[[place[x.tobytes()] for x in learner.points]] = learner.coefs
    near(found, coefs, "coefs")
    assert len(learner.coefs) == np.count_nonzero(coefs) < len(X)
    near(learner.norm**2, coefs @ gram @ coefs, "norm")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("memory", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(("meta", "reg"), [(0.0, 0.3), (0.5, 0.0), (30.0, 1.5)])
def test_svmd_extremes(meta, reg, memory, backend):
    """4, where the rate halves in many rounds or meets its bounds, and where v has no or all of its past."""
    for (loss, name, level), C in itertools.product((FIXED[0], FIXED[2]), (None, 2.0)):
        # an implicit step ends on the kink: on a point that comes again, rounding would decide the slope
        X, smooth = stream("repeated" if C is None else "drifting", 7)
        y, values = target(loss, smooth), {"rate": 0.2, "reg": reg, "meta": meta, "memory": memory}
        run = Run(KERNELS["gaussian"][1](X, X), y, naive.svmd(name, **values, C=C), level=level)
        compare(Learner(Gaussian(0.7), loss, SVMD(**values, C=C), backend=backend), X, y, run, (name, C))


@pytest.mark.parametrize("loss", [Logistic(), Squared()], ids=str)
def test_svmd_trace_is_a_derivative(loss):
    """4: with full memory, v is the derivative of f by the log of the common step size."""
    X, smooth = stream("drifting", 8)
    y, h = target(loss, smooth), 1e-5
    learner = Learner(Gaussian(0.7), loss, SVMD(0.2, 0.1, meta=0.0, memory=1.0))
    learner.learn(X, y)
    state = learner.state()
    trace = state.trace_scale * state.trace[0] + state.mix * learner.coefs
    ends = [Learner(Gaussian(0.7), loss, Gradient(0.2 * math.exp(s), 0.1)) for s in (-h, h)]
    low, high = (end.learn(X, y) is not None and end.coefs[np.argsort(end.births)] for end in ends)
    np.testing.assert_allclose(trace[np.argsort(learner.births)], (high - low) / (2 * h), atol=1e-8)


VALUES = {
    "hinge": lambda z, y, q: max(0.0, q - y * z), "squared_hinge": lambda z, y, q: max(0.0, q - y * z) ** 2 / 2,
    "logistic": lambda z, y, q: math.log1p(math.exp(-y * z)), "squared": lambda z, y, q: (y - z) ** 2 / 2,
    "epsilon": lambda z, y, q: max(0.0, abs(y - z) - q), "pinball": lambda z, y, q: max(q * (y - z), (q - 1) * (y - z)),
    "huber": lambda z, y, q: abs(y - z) - q / 2 if abs(y - z) > q else (y - z) ** 2 / (2 * q),
    "huber_standard": lambda z, y, q: q * abs(y - z) - q * q / 2 if abs(y - z) > q else (y - z) ** 2 / 2,
    "novelty": lambda z, y, q: max(0.0, q - z),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_naive_steps_are_minimal(name):
    """The naive implicit step minimises its objective: neither a fine grid nor a bounded search finds less."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        p, y, kappa, c, level = rng.normal(), rng.choice([-1.0, 1.0]), rng.exponential(), rng.exponential(), 0.4

        def objective(a, p=p, y=y, kappa=kappa, c=c, level=level):
            return kappa * a * a / 2 + c * VALUES[name](p + a * kappa, y, level)

        a = naive.implicit(name, p, y, kappa, c, level)
        found = minimize_scalar(objective, bounds=(a - 1.0, a + 1.0), method="bounded", options={"xatol": 1e-12})
        assert objective(a) <= min(found.fun, *map(objective, np.linspace(a - 5, a + 5, 501))) + 1e-12
