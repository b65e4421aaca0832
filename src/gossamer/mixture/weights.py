"""Experts mixed by Bayes weights with a fixed share (Herbster and Warmuth 1998).

Each expert e gives the target a probability or a density p_e(y), its opinion (`gossamer.mixture.opinions`). The mixture
predicts with sum_e w_e p_e, and after each row

    w_e <- (1 - share) w_e p_e(y) / sum_e w_e p_e(y)  +  share / experts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _core
from gossamer._typing import Floats

#: The share of the weight that all experts share after each row.
SHARE = 1e-4
#: The factor of the credits before each row: they tell of about the last thousand rows.
KEEP = 0.999
#: The opinions: of two classes, of more, of a number, of a quantile.
KINDS = ("sign", "class", "value", "quantile")


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

    def new_opinion(self) -> Floats:
        """The opinion of an expert that has seen nothing."""
        found = np.array(_core.new_opinion(self.kind))
        if self.kind == "quantile":
            found[-1] = self.quantile
        return found

    def learn(self, scores: Floats, variances: Floats | None, y: Floats, importance: Floats | None = None) -> Floats:
        """The scores of the mixture for rows, each before it was learned; ``scores`` of the experts: (experts, rows,
        outputs)."""
        return self._mix(scores, variances, y, importance)

    def predict(self, scores: Floats, variances: Floats | None) -> Floats:
        """The scores of the mixture for rows that teach it nothing."""
        return self._mix(scores, variances, None, None)

    def _mix(self, scores: Floats, variances: Floats | None, y: Floats | None, importance: Floats | None) -> Floats:
        out, own = np.empty(scores.shape[1:]), self.opinions
        given = (scores, variances, y, importance)
        _core.mix(self.kind, *given, own, self.weights, self.credits, self.share, KEEP, out)
        return out

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands out arrays that cannot be written
        self.__dict__.update({k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})

    def keep(self, which: list[int]) -> None:
        """Go on with these experts only; they take over the weight of the others."""
        self.opinions, self.credits = self.opinions[which].copy(), self.credits[which].copy()
        weights = self.weights[which]
        self.weights = weights / weights.sum()

    def add(self, weight: float, opinion: Floats, credit: float = 0.0) -> None:
        """One more expert, to which the others give this weight."""
        self.opinions = np.vstack([self.opinions, opinion[None]])
        self.weights = np.append((1.0 - weight) * self.weights, weight)
        self.credits = np.append(self.credits, credit)
