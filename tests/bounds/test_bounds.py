"""Theorems as tests: on hundreds of streams no learner exceeds its bound, and for every bound something broken does."""

import inspect
import itertools
import math

import numpy as np
import pytest
import theorems_conformal
import theorems_ilk
import theorems_mixture
import theorems_newton
import theorems_norma
import theorems_projection
from theorems import BROKEN, CASES, CHANCE

from gossamer import bounds
from gossamer.bounds.comparators import Comparator, Rivals, largest_kappa, margin_deficit, path_lengths, values
from gossamer.bounds.theorem import best_errors, best_half_step
from gossamer.budgets import Sublinear
from gossamer.kernels import Gaussian, Linear, Polynomial

SEEDS = 208  # sixteen of each kind of stream
EXAMPLES = {
    "rivals": Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100), "kept": 3, "rounds": 50, "size": 4,
    "confidence": 0.9, "margin": 0.5, "rate": 0.5, "reg": 0.5, "radius": 2.0, "nu": 0.1, "alpha": 0.5,
    "margin_errors": 2, "share": 0.01, "entry": 0.1, "weight": 0.5, "experts": 4, "switches": 2, "newcomers": 3,
    "arrivals": 1, "missed": 0.1, "step": 0.01,
}  # fmt: skip


def test_every_bound_has_a_case_and_a_broken_twin():
    assert set(CASES) == set(BROKEN) == set(bounds.ALL)
    modules = (theorems_conformal, theorems_ilk, theorems_mixture, theorems_newton, theorems_norma, theorems_projection)
    found = {function.__module__ for every in CASES.values() for function in every}
    assert found == {module.__name__ for module in modules}


@pytest.mark.parametrize("name", bounds.ALL)
def test_bound_holds(name):
    for generator in CASES[name]:
        checked = [(m, limit, seed) for seed in range(SEEDS) for m, limit in generator(seed)]
        exceeded = [one for one in checked if one[0] > one[1] + 1e-9 * (1 + abs(one[1]))]
        allowed = CHANCE * len(checked) if name == "norma_risk" else 0
        assert len(checked) >= 100, f"{generator.__name__} checked only {len(checked)} times"
        assert len(exceeded) <= allowed, (generator.__name__, exceeded[:5])


@pytest.mark.parametrize("name", bounds.ALL)
def test_something_broken_exceeds_the_bound(name):
    for generator in BROKEN[name]:
        exceeds = (m > limit + 1e-6 * (1 + abs(limit)) for seed in range(26) for m, limit in generator(seed))
        assert any(exceeds), f"{generator.__name__} never exceeds the bound"


# -------------------------------------------------------------------------------------------------- bounds as functions


@pytest.mark.parametrize("name", bounds.ALL)
def test_bound_checks_its_numbers(name):
    function, source, assumptions = bounds.ALL[name]
    assert source
    assert assumptions
    assert getattr(bounds, name) is function
    assert ">>>" in function.__doc__
    given = {parameter: EXAMPLES.get(parameter, 1.0) for parameter in inspect.signature(function).parameters}
    assert math.isfinite(function(**given))
    for parameter in set(given) - {"rivals"}:
        for wrong in (math.nan, math.inf, "1", True, None) + (() if "level" in parameter else (-1,)):
            sentence = rf"^The '{parameter}' parameter of {name} must be .* Got .* instead\.$"
            with pytest.raises(ValueError, match=sentence):
                function(**{**given, parameter: wrong})


@pytest.mark.parametrize("name", ["norma_truncation", "norma_regret", "norma_truncated_regret", "norma_risk"])
def test_explicit_steps_that_flip_the_sign_are_refused(name):
    function = bounds.ALL[name].function
    given = {parameter: EXAMPLES.get(parameter, 1.0) for parameter in inspect.signature(function).parameters}
    with pytest.raises(ValueError, match="rate \\* reg < 1"):
        function(**{**given, "rate": 4.0, "reg": 0.25})


def test_what_lies_outside_the_theorem_is_refused():
    rivals = EXAMPLES["rivals"]
    with pytest.raises(ValueError, match=r"'margin' parameter of norma_margin_errors must be a number in \[0, 1\)"):
        bounds.norma_margin_errors(rivals, margin=1.0)
    with pytest.raises(ValueError, match=r"'norm' parameter of projection_local_steps must be a number in \[0, 2\]"):
        bounds.projection_local_steps(radius=2.0, norm=2.1)
    with pytest.raises(ValueError, match="'squared_path' parameter of Rivals must be positive where path is"):
        Rivals(margin=1.0, norm=2.0, kappa=1.0, rounds=100, path=1.0)
    with pytest.raises(ValueError, match=r"'switches' parameter of fixed_share must be an int in \[0, 9\]. Got 10"):
        bounds.fixed_share(experts=2, rounds=10, share=0.1, switches=10)
    for name in ("margin", "norm", "kappa", "rounds", "deficit", "path", "squared_path"):
        with pytest.raises(ValueError, match=f"'{name}' parameter of Rivals"):
            Rivals(**{"margin": 1.0, "norm": 1.0, "kappa": 1.0, "rounds": 1, name: -1})


def test_tuning_minimises_the_bound():
    rng = np.random.default_rng(0)
    for _ in range(200):
        x, deficit, norm = 10.0 ** rng.uniform(-2, 2, size=3)
        rivals = Rivals(margin=x, norm=norm, kappa=1.0, rounds=10, deficit=deficit * rng.integers(0, 2))
        z = np.linspace(0, x, 10_001)[1:-1]
        least = (rivals.deficit / (x - z) + rivals.difficulty / (z * (x - z))).min()
        half = best_half_step(rivals, x)
        attained = rivals.deficit / (x - half) + rivals.difficulty / (half * (x - half))
        assert attained == pytest.approx(best_errors(rivals, x), rel=1e-12)
        assert attained <= least * (1 + 1e-12)
        tuned = bounds.ilk_mistakes_parameters(rivals)
        assert tuned.rate * rivals.kappa <= tuned.margin * (1 + 1e-12)  # the theorem needs a margin above the step


@pytest.mark.parametrize(
    ("product", "epsilon", "start"),
    [(0.9, 0.4, 26), (0.5, 0.4, 80), (0.5, 0.25, 14_457), (0.1, 0.4, 52_682), (0.1, 0.25, None), (0.9, 0.1, None)],
)
def test_truncation_start(product, epsilon, start):
    """The schedule of Theorem 6: its start, and one term dropped in a round at most."""
    budget = Sublinear(rate=2.0, reg=product / 2.0, exponent=epsilon)
    assert budget.start == start
    sizes = [budget.rounds(t) for t in range(1, 20_000)]
    assert set(np.diff(sizes)) <= {0, 1}
    assert sizes[0] == 1


# ------------------------------------------------------------------------------------------------------------ measuring


def test_best_sequences_are_the_best_of_all_sequences():
    losses = np.random.default_rng(5).exponential(size=(3, 6))
    every = np.array(list(itertools.product(range(3), repeat=6)))
    totals, switches = losses[every, np.arange(6)].sum(axis=1), (np.diff(every, axis=1) != 0).sum(axis=1)
    expected = [totals[switches <= most].min() for most in range(7)]
    np.testing.assert_allclose(bounds.best_sequences(losses, 6), expected, rtol=1e-12)


def test_measures_agree_with_explicit_features():
    """With the linear kernel a function is a vector."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 3)), rng.choice([-1.0, 1.0], size=20)
    points = rng.normal(size=(4, 3))
    functions = [Comparator(points, c, Linear()) for c in rng.normal(size=(10, 4)) for _ in range(2)]
    w = np.array([points.T @ g.coefs for g in functions])
    rivals = Rivals.measured(functions, X, y, margin=0.7)
    steps = np.linalg.norm(np.diff(w, axis=0), axis=1)
    assert rivals.norm == pytest.approx(np.linalg.norm(w, axis=1).max())
    assert rivals.kappa == pytest.approx((X**2).sum(axis=1).max())
    assert rivals.path == pytest.approx(steps.sum())
    assert rivals.squared_path == pytest.approx((steps**2).sum())
    assert rivals.deficit == pytest.approx(np.maximum(0, 0.7 - y * (X * w).sum(axis=1)).sum())
    other = Comparator(X[:2], [1.0, -2.0], Linear())
    assert functions[0].distance(other) == pytest.approx(np.linalg.norm(w[0] - X[0] + 2 * X[1]))


def test_one_comparator_is_a_sequence_that_stands_still():
    rng = np.random.default_rng(2)
    X, y, kernel = rng.normal(size=(9, 2)), rng.choice([-1.0, 1.0], size=9), Polynomial(2)
    g = Comparator(rng.normal(size=(3, 2)), rng.normal(size=3), kernel)
    assert path_lengths(g) == path_lengths([g] * 9) == (0.0, 0.0)
    np.testing.assert_allclose(values(g, X), values([g] * 9, X))
    assert margin_deficit(g, X, y, 1.0) == pytest.approx(margin_deficit([g] * 9, X, y, 1.0))
    assert largest_kappa(kernel, X) == pytest.approx(np.diag(kernel(X, X)).max())
    with pytest.raises(ValueError, match="'comparators' parameter of values must be one, or one for each of 9 rows"):
        values([g] * 8, X)
    with pytest.raises(ValueError, match="'other' parameter of Comparator must be a Comparator with the kernel"):
        g.distance(Comparator(X, np.ones(9), Gaussian(1.0)))
