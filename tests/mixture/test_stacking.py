"""Laws of the stack: the compiled twin agrees with the specification, batches do not matter, rows without importance
teach nothing, and it costs no more than the bound says."""

import numpy as np
import pytest
from test_opinions import diverge, made, start

from gossamer import _core, bounds
from gossamer.mixture.stacking import FEATURES, is_sound, new_stack, stack, widen_stack
from gossamer.mixture.weights import KEEP, Weights, mix

SHARE = 1e-2


def scores_of(kind, rows=150, seed=0):
    """The scores of a mixture, what its experts say together, and the targets."""
    scores, variances, y = made(kind, rows, seed)
    out, together = np.empty(scores.shape[1:]), np.empty(scores.shape[1:])
    settled = np.array([1.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    _core.mix(kind, scores, variances, y, None, *start(kind), SHARE, KEEP, out, None, settled, together)
    return out, together, y


def log_losses(kind, out, y):
    """The log loss of each row."""
    return np.logaddexp(0.0, -np.sign(y) * out[:, 0]) if kind == "sign" else -out[np.arange(len(y)), y.astype(int)]


@pytest.mark.parametrize("diverged", [False, True])
@pytest.mark.parametrize("voices", ["some", "none"])
@pytest.mark.parametrize("kind", ["sign", "class", "value", "quantile"])
def test_what_experts_say_together(kind, voices, diverged):
    scores, variances, y = made(kind)
    if diverged:
        scores, variances = diverge(scores, variances)
    settled = np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0, 1.0]) * (voices == "some")
    found = []
    for function in (_core.mix, mix):
        out, together = np.empty(scores.shape[1:]), np.empty(scores.shape[1:])
        function(kind, scores, variances, y, None, *start(kind), SHARE, KEEP, out, None, settled, together)
        known = np.isfinite(out)
        found.append(np.where(known, together, 0.0))
        assert voices == "some" or np.array_equal(together[known], out[known])
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", FEATURES)
def test_compiled_equals_numpy(kind, weighted, timed):
    out, together, y = scores_of(kind)
    rng = np.random.default_rng(3)
    importance = rng.choice([0.0, 0.3, 1.0, 2.5], len(y)) if weighted else None
    fades = rng.choice([1.0, 0.999, 0.5, 0.0], len(y), p=[0.5, 0.4, 0.08, 0.02]) if timed else None
    found = []
    for function in (_core.stack, stack):
        mine, numbers = out.copy(), new_stack(kind)
        function(kind, mine, together, y, importance, numbers, SHARE, fades)
        assert is_sound(kind, numbers)
        later = out.copy()
        function(kind, later, together, None, None, numbers, SHARE)
        found.append((mine, numbers, later))
    for got, expected in zip(*found, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", FEATURES)
def test_batches_do_not_matter_and_rows_without_importance_teach_nothing(kind):
    out, together, y = scores_of(kind)
    whole, numbers = out.copy(), new_stack(kind)
    _core.stack(kind, whole, together, y, None, numbers, SHARE)
    parts, again = out.copy(), new_stack(kind)
    for start_, stop in ((0, 1), (1, 40), (40, len(y))):
        _core.stack(kind, parts[start_:stop], together[start_:stop], y[start_:stop], None, again, SHARE)
    assert np.array_equal(whole, parts)
    assert np.array_equal(numbers, again)
    _core.stack(kind, out, together, y, np.zeros(len(y)), again, SHARE)
    assert np.array_equal(numbers, again)


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", FEATURES)
def test_it_costs_at_most_the_bound_of_two_experts(kind, seed, alone):
    """For every sequence of labels and every stack: here one that is sure of the opposite, and labels against it. Alone
    it costs more."""
    out, together, _ = (part[100:] for part in scores_of(kind, 1100, seed))
    labels = [-1.0, 1.0] if kind == "sign" else [0.0, 1.0, 2.0, 3.0]
    numbers, lost = new_stack(kind), 0.0
    numbers[1], numbers[1 + FEATURES[kind] :] = -3.0, 1e6 * np.eye(FEATURES[kind]).ravel()
    for t in range(len(out)):
        z, m = out[t : t + 1], together[t : t + 1]
        numbers[0] = 1.0 - 1e-9 if alone else numbers[0]
        found = z.copy()
        _core.stack(kind, found, m, None, None, numbers, SHARE)
        costs = [log_losses(kind, found, y)[0] - log_losses(kind, z, y)[0] for y in np.array(labels)[:, None]]
        lost += max(costs)
        _core.stack(kind, z.copy(), m, np.array([labels[int(np.argmax(costs))]]), None, numbers, SHARE)
    most = bounds.fixed_share(experts=2, rounds=len(out), share=SHARE)
    assert lost > most if alone else lost <= most


def test_experts_that_are_sure_for_different_reasons_are_surer_together():
    """Each expert knows one of four independent reasons: the log-odds add up, the mean of probabilities stays low."""
    rng = np.random.default_rng(5)
    y = rng.choice([-1.0, 1.0], 4000)
    scores = (y + 1.2 * rng.normal(size=(4, 4000)))[:, :, None]
    mean, both = Weights("sign", 4), Weights("sign", 4)
    plain = log_losses("sign", mean.learn(scores, None, y), y)[1000:].mean()
    stacked = log_losses("sign", both.learn(scores, None, y, settled=np.ones(4)), y)[1000:].mean()
    assert stacked < 0.5 * plain


def test_a_stack_of_two_classes_goes_on_as_one_of_many():
    out, together, y = scores_of("sign")
    numbers = new_stack("sign")
    _core.stack("sign", out, together, y, None, numbers, SHARE)
    numbers[3] = 0.0  # the constant has no place with many classes
    z, m = np.array([[0.7]]), np.array([[1.9]])
    of_two, of_many = z.copy(), np.log([[1 - 1 / (1 + np.exp(-0.7)), 1 / (1 + np.exp(-0.7))]])
    said = np.log([[1 - 1 / (1 + np.exp(-1.9)), 1 / (1 + np.exp(-1.9))]])
    _core.stack("sign", of_two, m, None, None, numbers, SHARE)
    wide = widen_stack(numbers)
    assert is_sound("class", wide)
    _core.stack("class", of_many, said, None, None, wide, SHARE)
    assert of_many[0, 1] - of_many[0, 0] == pytest.approx(of_two[0, 0], abs=1e-3)


@pytest.mark.parametrize(("place", "value"), [(0, 1.5), (0, 0.0), (4, -1.0), (5, 7.0)])
def test_numbers_that_cannot_be_learned_are_found(place, value):
    numbers = new_stack("sign")
    assert is_sound("sign", numbers)
    numbers[place] = value
    assert not is_sound("sign", numbers)
