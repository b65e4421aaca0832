"""Experts mixed by Bayes weights with a fixed share (Herbster and Warmuth 1998).

Each expert e gives the target a probability or a density p_e(y), its opinion (`gossamer.mixture.opinions`). The mixture
predicts with sum_e w_e p_e, and after each row

    w_e <- (1 - share) w_e p_e(y) / sum_e w_e p_e(y)  +  share / experts.

The loss -ln sum_e w_e p_e(y) then follows that of the best sequence of experts (`gossamer.bounds.fixed_share`). A row
with another importance c counts by p_e(y)^c. An expert that holds no opinion of a row, because it diverged, is left out
of the mean, and loses weight like one that held the target for impossible. `mix` is the specification of the compiled
mixture.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _core
from gossamer._typing import Floats
from gossamer.mixture.opinions import OPINIONS, likelihoods
from gossamer.mixture.stacking import FEATURES, new_stack

#: The share of the weight that all experts share after each row.
SHARE = 1e-4
#: The factor of the credits before each row: they tell of about the last thousand rows.
KEEP = 0.999
#: The opinions: of two classes, of more, of a number, of a quantile.
KINDS = tuple(OPINIONS)


def opinion_numbers(kind: str) -> int:
    """The numbers of an opinion."""
    return len(_core.new_opinion(kind))


class Weights:
    """The weights of experts, their opinions and their credits (log-likelihoods less that of the mixture).

    Parameters
    ----------
    kind : "sign" for two classes, "class" for more, "value" for numbers, "quantile".
    experts : how many there are.
    share : of the weight that all experts share after each row.
    quantile : the level, for that kind.

    >>> mixture = Weights("value", 2)
    >>> scores = np.zeros((2, 50, 1))
    >>> scores[1] = 1.0
    >>> out = mixture.learn(scores, np.ones((2, 50)), np.ones(50))
    >>> round(float(out[0, 0]), 2), round(float(out[-1, 0]), 2), mixture.weights.round(2).tolist()
    (0.5, 1.0, [0.0, 1.0])
    """

    def __init__(self, kind: str, experts: int, share: float = SHARE, quantile: float = 0.5) -> None:
        self.kind, self.share, self.quantile = kind, share, quantile
        self.opinions: Floats = np.tile(self.new_opinion(), (experts, 1))
        self.weights: Floats = np.full(experts, 1.0 / max(experts, 1))
        self.credits: Floats = np.zeros(experts)
        self.stack: Floats = new_stack(kind)

    def new_opinion(self) -> Floats:
        """The opinion of an expert that has seen nothing."""
        found = np.array(_core.new_opinion(self.kind))
        if self.kind == "quantile":
            found[-1] = self.quantile
        return found

    def learn(
        self, scores: Floats, variances: Floats | None, y: Floats, importance: Floats | None = None,
        fades: Floats | None = None, settled: Floats | None = None,
    ) -> Floats:  # fmt: skip
        """The scores of the mixture for rows, each before it was learned; ``scores`` of the experts: (experts, rows,
        outputs). ``fades``: what the time before each row leaves of the opinions; None: they forget by rows.
        ``settled``: 1 for experts that are stacked (`gossamer.mixture.stacking`), 0 for others; None: none are."""
        return self._mix(scores, variances, y, importance, fades, settled)

    def predict(self, scores: Floats, variances: Floats | None, settled: Floats | None = None) -> Floats:
        """The scores of the mixture for rows that teach it nothing."""
        return self._mix(scores, variances, None, None, None, settled)

    def _mix(self, scores: Floats, variances: Any, y: Any, importance: Any, fades: Any, settled: Any) -> Floats:
        out, own = np.empty(scores.shape[1:]), self.opinions
        together = np.empty(out.shape) if settled is not None and self.kind in FEATURES else None
        given = (scores, variances, y, importance)
        _core.mix(self.kind, *given, own, self.weights, self.credits, self.share, KEEP, out, fades, settled, together)
        if together is not None:
            _core.stack(self.kind, out, together, y, importance, self.stack, self.share, fades)
        return out

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands out arrays that cannot be written
        self.__dict__.update({k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})

    def keep(self, which: list[int]) -> None:
        """Go on with these experts only; they take over the weight of the others."""
        self.opinions, self.credits = self.opinions[which].copy(), self.credits[which].copy()
        weights = self.weights[which]
        self.weights = weights / weights.sum()

    def add(self, weight: float, opinion: Floats) -> None:
        """One more expert, to which the others give this weight."""
        self.opinions = np.vstack([self.opinions, opinion[None]])
        self.weights = np.append((1.0 - weight) * self.weights, weight)
        self.credits = np.append(self.credits, 0.0)

    def split(self, place: int) -> None:
        """One more expert, with the opinion and half of the weight of another; the credits of both begin anew."""
        self.weights[place] *= 0.5
        self.credits[place] = 0.0
        self.opinions = np.vstack([self.opinions, self.opinions[place][None]])
        self.weights, self.credits = np.append(self.weights, self.weights[place]), np.append(self.credits, 0.0)

    def lift(self, places: list[int], least: float) -> None:
        """Give some experts at least this weight; the others give it, in proportion to their own.

        >>> mixture = Weights("value", 4)
        >>> mixture.weights[:] = 0.001, 0.199, 0.3, 0.5
        >>> mixture.lift([0, 1], 0.01)
        >>> mixture.weights.round(3).tolist()
        [0.01, 0.197, 0.297, 0.495]
        """
        low = np.zeros(len(self.weights), dtype=bool)
        low[places] = self.weights[places] < least
        if low.any():
            self.weights[~low] *= (1.0 - least * low.sum()) / self.weights[~low].sum()
            self.weights[low] = least


def mix(
    kind: str, scores: Floats, variances: Floats | None, y: Floats | None, importance: Floats | None, opinions: Floats,
    weights: Floats, credits: Floats, share: float, keep: float, out: Floats, fades: Floats | None = None,
    settled: Floats | None = None, together: Floats | None = None,
) -> None:  # fmt: skip
    """The scores of the mixture before each row, written to ``out``, (rows, outputs); with ``y`` the opinions, weights
    and credits go on. The mean of what the ``settled`` say, each in the units of the score, is written to ``together``.

    >>> scores, out = np.array([[[-1.0]], [[1.0]]]), np.empty((1, 1))
    >>> opinions, weights, credits = np.tile(OPINIONS["sign"]().numbers, (2, 1)), np.full(2, 0.5), np.zeros(2)
    >>> mix("sign", scores, None, np.array([1.0]), None, opinions, weights, credits, SHARE, KEEP, out)
    >>> round(abs(out.item()), 9), weights.round(3).tolist()
    (0.0, [0.119, 0.881])
    """
    spread = np.ones(scores.shape[:2]) if variances is None else variances
    for t in range(scores.shape[1]):
        own = [OPINIONS[kind].of(numbers) for numbers in opinions.tolist()]
        heard = [opinion.holds(f, v) for opinion, f, v in zip(own, scores[:, t], spread[:, t].tolist(), strict=True)]
        held = [(w, own[e], scores[e, t]) for e, w in enumerate(weights.tolist()) if heard[e]]
        average = np.asarray(sum((w * opinion.predict(f) for w, opinion, f in held), np.zeros(scores.shape[2])))
        total = sum(w for w, _, _ in held)
        if len(held) < len(own):
            average = average / total if total > 0 else np.full(scores.shape[2], own[0].nothing(scores.shape[2]))
        out[t] = OPINIONS[kind].finish(average)
        if settled is not None and together is not None:
            said = [own[e].say(scores[e, t]) for e in range(len(own)) if heard[e] and settled[e]]
            together[t] = np.mean(said, axis=0) if said else out[t]
        c = 1.0 if importance is None else importance[t]
        if y is None:
            continue
        if not c > 0:
            if fades is not None:
                opinions[:] = [opinion.fade(float(fades[t])).numbers for opinion in own]
            continue
        row = slice(t, t + 1)
        likelihood = likelihoods(
            kind, scores[:, row], None if variances is None else variances[:, row], y[row],
            None if importance is None else importance[row], opinions, None if fades is None else fades[row],
        )[:, 0]  # fmt: skip
        mixed = weights @ likelihood
        if not mixed > 0:
            continue
        with np.errstate(divide="ignore"):
            gains = np.maximum(-700.0, c * np.log(likelihood / mixed))
        credits[:] = keep * credits + gains
        weights *= np.exp(np.minimum(700.0, gains))
        weights[:] = (1.0 - share) * (weights / weights.sum()) + share / len(weights)
