"""Cases of the theorems on mixtures: the package's weights on streams whose best expert changes."""

import math
from dataclasses import dataclass, field

import numpy as np
from theorems import broken, case

from gossamer import bounds
from gossamer.mixture.opinions import likelihoods
from gossamer.mixture.weights import KINDS, Weights

WORLDS = ("still", "switching", "drifting", "noise", "contrary")


@dataclass
class Mixed:
    """A run: the losses of the mixture in each round, and those of the experts, by round and name."""

    kind: str
    share: float
    own: list = field(default_factory=list)
    losses: list = field(default_factory=list)

    @property
    def matrix(self):
        """The losses of a roster that stays the same, (experts, rounds)."""
        return np.array([list(row.values()) for row in self.losses]).T


def score(rng, kind, world, rounds, experts):
    """Scores of experts that are right in turn, variances, and targets."""
    good = {"still": np.zeros(rounds), "noise": np.full(rounds, -1)}.get(world)
    if good is None:
        good = np.arange(rounds) // max(1, rounds // 4) % experts
    outputs = 3 if kind == "class" else 1
    if kind == "class":
        y = rng.integers(0, outputs, rounds).astype(float)
        truth = 2 * np.eye(outputs)[y.astype(int)] - 1
    else:
        y = rng.normal(size=rounds) if kind in ("value", "quantile") else rng.choice([-1.0, 1.0], rounds)
        truth = y[:, None]
    scores = rng.normal(size=(experts, rounds, outputs))
    right = np.arange(experts)[:, None] == good
    if world == "drifting":
        right = rng.random((experts, rounds)) < 0.5 + 0.5 * right
    scores = np.where(right[:, :, None], truth + 0.1 * scores, scores - (0.5 * truth if world == "switching" else 0))
    return scores, rng.uniform(0.5, 2.0, size=(experts, rounds)), y


def learn(weights, run, names, scores, variances, y, importance=None):
    """One row: the scores of experts (experts, outputs), their variances (experts,) and the target."""
    scores, variances, y = scores[:, None], variances[:, None], np.array([y])
    found = likelihoods(run.kind, scores, variances, y, None, weights.opinions.copy())[:, 0]
    before = weights.weights.copy()
    out = weights.learn(scores, variances, y, importance)
    if run.kind == "sign":
        mixed = 1.0 / (1.0 + math.exp(-float(y[0]) * out.item()))
    elif run.kind == "class":
        mixed = math.exp(out[0, int(y[0])])
    else:
        mixed = float(before @ found)
    run.own.append(-math.log(mixed))
    run.losses.append(dict(zip(names, (-np.log(found)).tolist(), strict=True)))


def mixed_run(seed, share=None, importance=None, world=None):
    """The package's weights; ``share`` and ``importance`` other than those of the theorem break them."""
    rng = np.random.default_rng([seed, 31])
    kind, world = KINDS[seed % 4], world or WORLDS[seed % 5]
    experts, rounds = int(rng.integers(2, 9)), int(rng.integers(16, 40))
    run = Mixed(kind, float(10.0 ** rng.uniform(-4, -0.5)))
    weights = Weights(kind, experts, run.share if share is None else share, quantile=0.7)
    scores, variances, y = score(rng, kind, world, rounds, experts)
    for t in range(rounds):
        target = y[t]
        if world == "contrary" and kind in ("sign", "class"):  # what the mixture holds for least likely
            out = weights.predict(scores[:, t : t + 1], variances[:, t : t + 1])[0]
            target = float(np.argmin(out)) if kind == "class" else (-1.0 if out[0] > 0 else 1.0)
        learn(weights, run, range(experts), scores[:, t], variances[:, t], target, importance)
    return run


def sequence_regrets(run, most=5):
    best = bounds.best_sequences(run.matrix, most)
    given = {"experts": len(run.matrix), "rounds": len(run.own), "share": run.share}
    for switches, least in enumerate(best.tolist()):
        yield sum(run.own) - least, least, {**given, "switches": switches}


@case(bounds.fixed_share)
def fixed_share(seed):
    for regret, _, p in sequence_regrets(mixed_run(seed)):
        yield regret, bounds.fixed_share(**p)


@case(bounds.fixed_share)
def fixed_share_by_parts_of_rows(seed):  # an importance below 1 counts by as much
    run = mixed_run(seed, importance=np.array([0.4]))
    for regret, _, p in sequence_regrets(run):
        yield 0.4 * regret, bounds.fixed_share(**p)


@broken(bounds.fixed_share)
def without_the_share(seed):
    for regret, _, p in sequence_regrets(mixed_run(seed, share=0.0, world="switching")):
        yield regret, bounds.fixed_share(**p)


@broken(bounds.fixed_share)
def with_squares_of_the_likelihoods(seed):
    for regret, _, p in sequence_regrets(mixed_run(seed, importance=np.array([2.0]))):
        yield regret, bounds.fixed_share(**p)


@broken(bounds.fixed_share)
def with_free_switches(seed):
    for regret, _, p in sequence_regrets(mixed_run(seed)):
        yield regret, bounds.fixed_share(**{**p, "switches": 0})


def mistakes(seed, **wrong):
    run = mixed_run(seed // 2 * 4 + seed % 2, **wrong)  # classes only
    count = sum(loss >= math.log(2.0) for loss in run.own)
    for _, loss, p in sequence_regrets(run):
        yield count, {**p, "loss": loss}


@case(bounds.fixed_share_mistakes)
def fixed_share_mistakes(seed):
    for count, p in mistakes(seed):
        yield count, bounds.fixed_share_mistakes(**p)


@broken(bounds.fixed_share_mistakes)
def mistakes_of_weights_that_stay_equal(seed):
    for count, p in mistakes(seed, share=1.0, world="still"):
        yield count, bounds.fixed_share_mistakes(**p)


@broken(bounds.fixed_share_mistakes)
def mistakes_without_the_loss(seed):
    for count, p in mistakes(seed):
        yield count, bounds.fixed_share_mistakes(**{**p, "loss": 0.0})


# --------------------------------------------------------------------------------------------------------------- roster


@dataclass
class Roster:
    """What a run with experts that come and go has, beside the losses: the starts of the experts as (row, name), in
    their order, those before the first row aside."""

    run: Mixed
    entry: float
    starts: list

    def regrets(self):
        """Against every expert, from its start to every row of its life."""
        losses, most = self.run.losses, max(map(len, self.run.losses))
        born = {name: place for place, (_, name) in enumerate(self.starts)}
        for name in dict.fromkeys(name for row in losses for name in row):
            begin = self.starts[born[name]][0] if name in born else 0
            weight = self.entry if name in born else 1.0 / len(losses[0])
            regret, later = 0.0, self.starts[born[name] + 1 if name in born else 0 :]
            for t in range(begin, len(losses)):
                if name not in losses[t]:
                    break
                regret += self.run.own[t] - losses[t][name]
                newcomers = sum(row <= t for row, _ in later)
                yield regret, {
                    "weight": weight, "experts": most, "rounds": t - begin + 1, "share": self.run.share,
                    "entry": self.entry, "newcomers": newcomers,
                }  # fmt: skip

    def chosen(self, every):
        """Against the sequence of the best expert awake in each ``every`` rows, known afterwards."""
        losses, starts = self.run.losses, {name: row for row, name in self.starts}
        regret, now, switches, arrivals = 0.0, None, 0, 0
        for begin in range(0, len(losses), every):
            part = range(begin, min(begin + every, len(losses)))
            total = {name: sum(losses[t].get(name, math.inf) for t in part) for name in losses[begin]}
            best = min(total, key=lambda name: (total[name], name != now))
            if now is not None and best != now:
                fresh = starts.get(best) == begin
                arrivals, switches = arrivals + fresh, switches + (not fresh)
            now = best
            regret += sum(self.run.own[t] for t in part) - total[best]
        given = {"weight": 1.0 / len(losses[0]), "experts": max(map(len, losses)), "rounds": len(losses)}
        newcomers = len(self.starts) - arrivals
        return regret, {
            **given, "share": self.run.share, "entry": self.entry, "switches": switches, "arrivals": arrivals,
            "newcomers": newcomers,
        }  # fmt: skip


def roster_run(seed, entry=None):
    """Weights whose experts are retired and started at random every few rows; ``entry``: what they really get."""
    rng = np.random.default_rng([seed, 32])
    kind, world, every, pool = KINDS[seed % 4], WORLDS[seed % 4], 8, 8
    run, said = Mixed(kind, float(10.0 ** rng.uniform(-4, -1))), float(10.0 ** rng.uniform(-3, -1))
    scores, variances, y = score(rng, kind, world, 48, pool)
    weights, names, starts = Weights(kind, 3, run.share, quantile=0.3), [0, 1, 2], []
    for t in range(len(y)):
        if t and t % every == 0:
            order = np.argsort(-weights.weights).tolist()
            kept = sorted(order[: rng.integers(1, len(order) + 1)])
            weights.keep(kept)
            names = [names[place] for place in kept]
            for _ in range(int(rng.integers(0, 3))):
                names.append(3 + len(starts))
                starts.append((t, names[-1]))
                weights.add(said if entry is None else entry, weights.new_opinion())
        place = np.array(names) % pool
        learn(weights, run, names, scores[place, t], variances[place, t], y[t])
    return Roster(run, said, starts), every


@case(bounds.roster_regret)
def roster_regret(seed):
    roster, every = roster_run(seed)
    found = list(roster.regrets())
    worst = sorted(found, key=lambda one: one[0] - bounds.roster_regret(**one[1]))[-20:]
    for regret, p in [*worst, roster.chosen(every)]:
        yield regret, bounds.roster_regret(**p)


@broken(bounds.roster_regret)
def newcomers_without_weight(seed):
    for regret, p in roster_run(seed, entry=1e-12)[0].regrets():
        yield regret, bounds.roster_regret(**p)


@broken(bounds.roster_regret)
def newcomers_that_cost_nothing(seed):
    for regret, p in roster_run(seed, entry=0.5)[0].regrets():
        yield regret, bounds.roster_regret(**{**p, "newcomers": 0})


@broken(bounds.roster_regret)
def switches_that_cost_nothing(seed):
    roster, every = roster_run(seed)
    regret, p = roster.chosen(every)
    yield regret, bounds.roster_regret(**{**p, "switches": 0, "arrivals": 0})
