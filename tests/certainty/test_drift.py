"""Laws of drift alarms: compiled equals NumPy, batches do not matter, false alarms keep their bound, jumps are
found."""

import pickle

import numpy as np
import pytest

import gossamer
from gossamer import _core
from gossamer.certainty.martingale import Martingale
from gossamer.drift import DriftAlarm, forget


@pytest.mark.parametrize("fed", [False, True])
def test_compiled_equals_numpy(fed):
    scores = np.random.default_rng(0).normal(size=400).round(1)
    core, spec = _core.Martingale(fed), Martingale(fed)
    p, wealth = np.empty((2, 400))
    assert core.update(scores, 7, 150, p, wealth, 1e300) == 400
    for t, score in enumerate(scores.tolist()):
        assert spec.p_value(score, 7, 150) == p[t]
        spec.bet(p[t])
        assert spec.wealth() == pytest.approx(wealth[t], rel=1e-12)


@pytest.mark.parametrize("kind", ["normal", "ties", "heavy"])
def test_false_alarms_keep_their_bound(kind):
    """Ville's inequality over streams that stand still: the share of alarms is below the level, with its spread."""
    rng, streams, level = np.random.default_rng(0), 400, 0.1
    draw = {"normal": rng.normal, "ties": lambda size: rng.integers(0, 2, size), "heavy": rng.standard_cauchy}[kind]
    raised = sum(bool(DriftAlarm(level, seed=seed).update(draw(size=1500))) for seed in range(streams))
    assert raised / streams <= level + 2.6 * np.sqrt(level * (1 - level) / streams)


def test_a_martingale_without_the_reference_breaks_the_bound():
    """The broken twin: p-values that are not ranks among the scores before."""
    rng, raised = np.random.default_rng(0), 0
    for _ in range(20):
        martingale, p = Martingale(), rng.beta(0.8, 1.0, size=800)
        for value in p:
            martingale.bet(float(value))
            if martingale.wealth() >= 10:
                raised += 1
                break
    assert raised / 20 > 0.2


def test_mean_time_between_false_alarms():
    rng, every = np.random.default_rng(0), 500
    alarm = DriftAlarm(every=every)
    assert len(alarm.update(rng.normal(size=100 * every))) <= 100 + 2.6 * 10


@pytest.mark.parametrize("change", [lambda x: x + 1.5, lambda x: 3 * x, np.abs])
@pytest.mark.parametrize("options", [{"level": 0.01}, {"every": 10_000}])
def test_jumps_are_found_and_dated(change, options):
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(size=1000), change(rng.normal(size=600))])
    found = DriftAlarm(**options).update(scores)
    assert 1000 < found[0].row < 1200
    assert 950 < found[0].since <= found[0].row
    assert found[0].strength >= (100 if "level" in options else 10_000)


@pytest.mark.parametrize("options", [{"level": 0.05, "memory": 300}, {"every": 300}])
def test_batches_do_not_matter_and_alarms_resume_to_the_bit(options):
    rng = np.random.default_rng(2)
    scores = np.concatenate([rng.normal(size=700), 2 + rng.normal(size=200), rng.normal(size=300)])
    whole, parts = DriftAlarm(**options), DriftAlarm(**options)
    expected, found = whole.update(scores), []
    for start in range(0, len(scores), 37):
        found += parts.update(scores[start : start + 37])
        parts = pickle.loads(pickle.dumps(parts)) if start % 2 else DriftAlarm.from_bytes(parts.to_bytes())
    assert found == expected
    assert expected
    assert parts.strength == whole.strength
    assert parts.raised == whole.raised == ("level" in options)


@pytest.mark.parametrize("bad", [[np.nan], [[1.0]], [np.inf]])
def test_bad_scores_are_refused(bad):
    alarm = DriftAlarm()
    with pytest.raises(ValueError, match="'scores' parameter"):
        alarm.update(bad)
    assert alarm.row == 0


def test_an_alarm_can_make_a_model_forget():
    X = np.random.default_rng(0).normal(size=(200, 2))
    for model in (gossamer.SILKClassifier(), gossamer.pipeline(gossamer.OnlineScaler(), gossamer.SILKClassifier())):
        model.partial_fit(X, X[:, 0] > 0)
        before = model.decision_function(X)
        forget(model, keep=0.5)
        np.testing.assert_allclose(model.decision_function(X), 0.5 * before, rtol=1e-9)
        forget(model)
        model.partial_fit(X, X[:, 1] > 0)
        assert (model[-1] if hasattr(model, "steps") else model).n_seen_ == 200
