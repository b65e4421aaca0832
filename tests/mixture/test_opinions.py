"""Laws of opinions and of their mixture: the compiled twin agrees with the specification, batches do not matter, rows
without importance teach nothing, and likelihoods are those of distributions."""

import numpy as np
import pytest
from scipy.integrate import quad

from gossamer import _core
from gossamer.mixture.opinions import OPINIONS, likelihoods
from gossamer.mixture.weights import KEEP, KINDS, Weights, mix

EXPERTS = 7


def made(kind, rows=150, seed=0):
    """Random scores of experts that are more or less right, variances and targets."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    outputs = 4 if kind == "class" else 1
    quality = rng.uniform(0.0, 2.0, size=(EXPERTS, 1, 1))
    if kind == "class":
        y = rng.integers(0, outputs, rows).astype(float)
        y[:20] = np.minimum(y[:20], 2.0)  # a class that comes later, and that no expert knows at first
        truth = np.eye(outputs)[y.astype(int)]
    else:
        y = rng.normal(size=rows) if kind in ("value", "quantile") else rng.choice([-1.0, 1.0], rows)
        truth = y[:, None]
    scores = quality * truth + rng.normal(size=(EXPERTS, rows, outputs))
    if kind == "class":
        scores[:, :30, 3] = -np.inf
        scores[0] = -np.inf
    y[rows // 2] *= 1.0 if kind == "class" else 30.0  # an outlier
    return scores, rng.uniform(0.3, 3.0, size=(EXPERTS, rows)), y


def diverge(scores, variances):
    """Scores of which some are no numbers: of one expert from some row on, in one row of all."""
    scores, variances = scores.copy(), variances.copy()
    scores[1, 60:, 0] = np.nan
    scores[2, ::7, -1] = np.inf
    scores[:, 80, :] = np.nan
    return scores, variances


def start(kind, seed=1):
    """Opinions, weights and credits, and an array for the scores of a mixture."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(EXPERTS))
    mixture = Weights(kind, EXPERTS, quantile=0.8)
    return mixture.opinions, weights, np.zeros(EXPERTS)


def run(function, kind, data, state, importance=None, share=1e-2):
    scores, variances, y = data
    out = np.empty(scores.shape[1:])
    function(kind, scores, variances, y, importance, *state, share, KEEP, out)
    return out


@pytest.mark.parametrize("kind", KINDS)
def test_new_opinions_are_the_same(kind):
    assert OPINIONS[kind]().numbers == tuple(_core.new_opinion(kind))
    assert OPINIONS[kind].of(OPINIONS[kind]().numbers) == OPINIONS[kind]()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("with_variances", [False, True])
@pytest.mark.parametrize("diverged", [False, True])
def test_compiled_equals_numpy(kind, weighted, with_variances, diverged):
    scores, variances, y = made(kind)
    if diverged:
        scores, variances = diverge(scores, variances)
    data = (scores, variances if with_variances else None, y)
    importance = np.random.default_rng(2).choice([0.0, 0.3, 1.0, 2.5], len(y)) if weighted else None
    native, spec = start(kind), start(kind)
    got, expected = run(_core.mix, kind, data, native, importance), run(mix, kind, data, spec, importance)
    np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-12)
    for mine, theirs in zip(native, spec, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
    assert spec[1].sum() == pytest.approx(1.0, rel=1e-12)
    # and with nothing to learn
    before = [part.copy() for part in spec]
    unlabelled = (scores, data[1], None)
    got, expected = run(_core.mix, kind, unlabelled, native), run(mix, kind, unlabelled, spec)
    np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12)
    assert all(np.array_equal(a, b) for a, b in zip(before, spec, strict=True))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_an_expert_that_diverged_is_not_heard(kind, bad):
    """The mixture is that of the others, the opinion stays as it was, and the weight is lost."""
    scores, variances, y = made(kind)
    state, others = start(kind), start(kind)
    scores[1] = bad
    out = run(_core.mix, kind, (scores, variances, None), state)
    rest = [e for e in range(EXPERTS) if e != 1]
    opinions, weights, credits = (part[rest].copy() for part in others)
    alone = run(_core.mix, kind, (scores[rest], variances[rest], None), (opinions, weights / weights.sum(), credits))
    np.testing.assert_allclose(out, alone, rtol=1e-9, atol=1e-12)
    learned = run(_core.mix, kind, (scores, variances, y), state)
    assert not np.isnan(learned).any()
    assert np.isfinite(learned.max(axis=1)).all()
    assert np.array_equal(state[0][1], others[0][1])
    assert state[1][1] <= 1e-2 / EXPERTS * (1 + 1e-12)


@pytest.mark.parametrize("function", [_core.mix, mix], ids=["compiled", "numpy"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_equals_its_rows(kind, function):
    scores, variances, y = made(kind, rows=60)
    whole, parts = start(kind), start(kind)
    out = run(function, kind, (scores, variances, y), whole)
    pieces = []
    for at in range(0, len(y), 7):
        part = slice(at, at + 7)
        data = (np.ascontiguousarray(scores[:, part]), np.ascontiguousarray(variances[:, part]), y[part])
        pieces.append(run(function, kind, data, parts))
    assert np.array_equal(out, np.concatenate(pieces))
    assert all(np.array_equal(a, b) for a, b in zip(whole, parts, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_are_the_ones_that_move_the_weights(kind):
    """Without a share and with equal weights, the weights are the products of the likelihoods."""
    scores, variances, y = made(kind, rows=40)
    opinions, weights, credits = start(kind)
    weights[:] = 1.0 / EXPERTS
    product = likelihoods(kind, scores, variances, y, None, opinions.copy()).prod(axis=1)
    run(_core.mix, kind, (scores, variances, y), (opinions, weights, credits), share=0.0)
    np.testing.assert_allclose(weights, product / product.sum(), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_are_of_one_measure(kind):
    """The probabilities of all classes sum to 1, and densities to one constant, whatever was learned."""
    scores, variances, y = made(kind)
    numbers = start(kind)[0]
    likelihoods(kind, scores, variances, y, None, numbers)
    sums = []
    for opinion, f in zip([OPINIONS[kind].of(n) for n in numbers], scores[:, -1], strict=True):
        if kind in ("sign", "class"):
            labels = (-1.0, 1.0) if kind == "sign" else np.flatnonzero(np.isfinite(f)).tolist()
            sums.append(sum(opinion.likelihood(f, 1.0, label) for label in labels))
        else:
            sides = [(-np.inf, f[0]), (f[0], np.inf)]
            sums.append(sum(quad(lambda y: opinion.likelihood(f, 0.7, y), *side)[0] for side in sides))  # noqa: B023
    if kind == "class":
        assert sums.pop(0) == 0  # it knows no class
    np.testing.assert_allclose(sums, 1.0 if kind in ("sign", "class") else sums[0], rtol=1e-6)
