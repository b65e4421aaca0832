"""What a mixture promises of the experts awake, held against whole runs of the learner that starts and retires its
experts itself."""

import numpy as np
import pytest
from theorems_mixture import Mixed, Roster

from gossamer import bounds
from gossamer.mixture import MixedLearner
from gossamer.mixture.opinions import likelihoods
from gossamer.mixture.roster import ENTRY, EVERY, START
from gossamer.mixture.weights import SHARE, Weights
from gossamer.synthetic import rotating_xor

OPTIONS = {
    "sign": {}, "moving": {}, "class": {"many": True}, "value": {"task": "regression"},
    "quantile": {"task": "regression", "quantile": 0.8},
}  # fmt: skip
ROWS = 2112


class Recorder(Weights):
    """Weights that record the loss of the mixture and of each expert, and when experts start."""

    def __init__(self, kind, experts, share, quantile):
        super().__init__(kind, experts, share, quantile)
        self.run, self.names, self.starts, self.wakes = Mixed(kind, share), list(range(experts)), [], 0

    def learn(self, scores, variances, y, importance=None, fades=None, settled=None):
        found = likelihoods(self.kind, scores, variances, y, importance, self.opinions.copy())
        out = np.empty(scores.shape[1:])
        for t in range(len(y)):
            part = slice(t, t + 1)
            self.run.own.append(float(-np.log(self.weights @ found[:, t])))
            self.run.losses.append(dict(zip(self.names, (-np.log(found[:, t])).tolist(), strict=True)))
            rows = [np.ascontiguousarray(a[:, part]) if a is not None else None for a in (scores, variances)]
            weight = None if importance is None else importance[part]
            out[part] = super().learn(*rows, y[part], weight, settled=settled)
        return out

    def keep(self, which):
        super().keep(which)
        self.names = [self.names[place] for place in which]

    def _starts(self, named=True):
        self.starts.append((len(self.run.own), 1000 + len(self.starts) if named else None))
        return self.starts[-1][1]

    def add(self, weight, opinion):
        super().add(weight, opinion)
        assert weight == ENTRY
        self.names.append(self._starts())

    def split(self, place):
        """The sleeper and its copy go on as two experts that start."""
        super().split(place)
        assert self.weights[place] >= ENTRY
        self.names[place] = self._starts()
        self.names.append(self._starts())
        self.wakes += 1

    def lift(self, places, least):
        """All together take no more than two experts that start."""
        before = self.weights.copy()
        super().lift(places, least)
        assert (self.weights >= (1 - ENTRY) ** 2 * before).all()
        for _ in range(2 * (self.weights != before).any()):
            self._starts(named=False)


def stream(kind):
    """A world that stands still, then turns fast, and comes back; or a threshold that moves twice."""
    if kind == "moving":
        rng = np.random.default_rng(4)
        X = rng.uniform(0, 10, (ROWS, 3))
        thresholds = np.array([8.0, 10.5, 7.0])[np.arange(ROWS) // 900]
        return X, np.where((X[:, 0] + X[:, 1] <= thresholds) ^ (rng.uniform(size=ROWS) < 0.05), 1.0, -1.0)
    parts = [rotating_xor(1100, 0, turns=0), rotating_xor(500, 1, turns=3), rotating_xor(ROWS - 1600, 2, turns=0)]
    X, y = np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])
    if kind == "class":
        return X, np.where((y > 0) & (X[:, 0] > 0), 2.0, (y > 0) * 1.0)
    return X, y if kind == "sign" else 50 + 10 * y * X[:, 0] + np.random.default_rng(3).normal(size=ROWS)


@pytest.mark.parametrize("kind", OPTIONS)
def test_no_expert_is_ahead_by_more_than_the_bound(kind):
    X, y = stream(kind)
    learner, plain = (MixedLearner(budget=24, **OPTIONS[kind]) for _ in range(2))
    learner._new_weights = lambda experts: Recorder(learner.kind, experts, SHARE, learner.quantile or 0.5)
    np.testing.assert_allclose(learner.learn(X, y), plain.learn(X, y), rtol=1e-12)  # recording changes nothing
    recorded = learner._weights
    assert len(recorded.run.own) == ROWS  # all experts, with the first rows learned anew
    roster = Roster(recorded.run, ENTRY, recorded.starts)
    found = list(roster.regrets())
    assert len(found) > 10_000
    assert all(regret <= bounds.roster_regret(**p) for regret, p in found)
    young = [regret for regret, p in found if p["weight"] == ENTRY]
    assert young
    assert max(young) > 0  # newcomers do get ahead
    for every in (EVERY, START):
        regret, p = roster.chosen(every)
        assert p["switches"] > 0
        assert regret <= bounds.roster_regret(**p)
    assert max(map(len, recorded.run.losses)) > 50 > len(recorded.run.losses[-1])
    assert recorded.wakes or kind not in ("sign", "moving")
    shifted = any(expert.shift is not None and not expert.guess for expert in learner._experts)
    assert shifted == (kind == "moving")  # a guess woke
