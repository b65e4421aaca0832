"""The opinion of an expert: a distribution of the target, made of its score by a few learned numbers.

- Two classes: p = least + (1 - 2 least) p_link, by a calibrated `Link`.
- Many classes: p_k = least / known + (1 - least) p_link,k, by a `SoftmaxLink`; a class that the expert does not know
  has the probability ``least``.
- A number: Student's t with 6 degrees of freedom around the score, whose squared scale is the expert's variance times
  a factor, the robust mean of (y - f)^2 / variance so far.
- A quantile: the asymmetric Laplace density exp(-pinball(y - f) / width) / width, whose width is the mean pinball loss
  so far.

A score that is not finite, as that of an expert that diverged, is no opinion.

Densities are up to a factor that is the same for all experts. Opinions are values: `learn` returns another one. This is
the specification; the compiled twins (core/mixture/opinions.hpp) change in place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer._typing import Floats
from gossamer.certainty.links import Link, SoftmaxLink

#: Rows before weigh less by this factor at each row: about two thousand rows.
FORGETTING = 0.9995
#: The probability of what an expert holds for impossible: it never loses more than 9.3 in a row.
LEAST = 1e-4
#: The degrees of freedom of Student's t, and the rows that the prior of a density counts for.
FREEDOM, PRIOR = 6.0, 4.0


class SignOpinion(NamedTuple):
    """Two classes, -1 and +1: the probability of the second one."""

    link: Link = Link(FORGETTING)

    @classmethod
    def of(cls, numbers: Any) -> SignOpinion:
        """The opinion with these numbers."""
        return cls(Link(*numbers))

    @property
    def numbers(self) -> tuple[float, ...]:
        """Everything learned."""
        return tuple(self.link)

    @staticmethod
    def holds(f: Floats, variance: float) -> bool:
        """Whether the score is an opinion."""
        return math.isfinite(f[0])

    @staticmethod
    def nothing(outputs: int) -> float:
        """What is predicted if no expert has an opinion."""
        return 0.5

    def predict(self, f: Floats) -> Floats:
        """What is averaged over the experts."""
        return np.array([LEAST + (1.0 - 2.0 * LEAST) * self.link.probability(f[0])])

    def say(self, f: Floats) -> Floats:
        """The opinion in the units of the mixture's score."""
        return self.finish(self.predict(f))

    def likelihood(self, f: Floats, variance: float, y: float) -> float:
        """The probability of the target."""
        p = float(self.predict(f)[0])
        return p if y > 0 else 1.0 - p

    def learn(self, f: Floats, variance: float, y: float, weight: float) -> SignOpinion:
        """The opinion after a target."""
        return SignOpinion(self.link.learn(f[0], y > 0, weight))

    def fade(self, factor: float) -> SignOpinion:
        """The opinion after time has passed; from then on it forgets by the clock, not by rows."""
        return SignOpinion(self.link._replace(forgetting=1.0).fade(factor))

    @staticmethod
    def finish(average: Floats) -> Floats:
        """The score of the mixture: log-odds."""
        return np.log(average) - np.log1p(-average)


class ClassOpinion(NamedTuple):
    """Many classes, 0, 1, ...: their probabilities. A score of -inf is that of a class that the expert does not
    know."""

    link: SoftmaxLink = SoftmaxLink(FORGETTING)

    @classmethod
    def of(cls, numbers: Any) -> ClassOpinion:
        """The opinion with these numbers."""
        return cls(SoftmaxLink(*numbers))

    @property
    def numbers(self) -> tuple[float, ...]:
        """Everything learned."""
        return tuple(self.link)

    @staticmethod
    def holds(f: Floats, variance: float) -> bool:
        """Whether the score is an opinion."""
        return bool((f < math.inf).all())

    @staticmethod
    def nothing(outputs: int) -> float:
        """What is predicted if no expert has an opinion."""
        return 1.0 / outputs

    def predict(self, f: Floats) -> Floats:
        """What is averaged over the experts."""
        known = np.isfinite(f)
        share = LEAST / max(int(known.sum()), 1)
        return np.where(known, share + (1.0 - LEAST) * self.link.probability(f), 0.0)

    def say(self, f: Floats) -> Floats:
        """The opinion in the units of the mixture's score."""
        return self.finish(np.where(np.isfinite(f), self.predict(f), LEAST))

    def likelihood(self, f: Floats, variance: float, y: float) -> float:
        """The probability of the target."""
        label = int(y)
        return float(self.predict(f)[label]) if label < len(f) and math.isfinite(f[label]) else LEAST

    def learn(self, f: Floats, variance: float, y: float, weight: float) -> ClassOpinion:
        """The opinion after a target."""
        return ClassOpinion(self.link.learn(f, int(y), weight))

    def fade(self, factor: float) -> ClassOpinion:
        """The opinion after time has passed; from then on it forgets by the clock, not by rows."""
        return ClassOpinion(self.link._replace(forgetting=1.0).fade(factor))

    @staticmethod
    def finish(average: Floats) -> Floats:
        """The scores of the mixture: logarithms of probabilities."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(average))


class ValueOpinion(NamedTuple):
    """A number: Student's t, whose squared scale is squares / total times the expert's variance."""

    total: float = PRIOR
    squares: float = PRIOR
    forgetting: float = FORGETTING  # by rows; 1 where it is by the clock

    @classmethod
    def of(cls, numbers: Any) -> ValueOpinion:
        """The opinion with these numbers."""
        return cls(*numbers)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Everything learned."""
        return tuple(self[:-1])

    @staticmethod
    def holds(f: Floats, variance: float) -> bool:
        """Whether the score is an opinion."""
        return math.isfinite(f[0]) and 0.0 < variance < math.inf

    @staticmethod
    def nothing(outputs: int) -> float:
        """What is predicted if no expert has an opinion."""
        return 0.0

    def predict(self, f: Floats) -> Floats:
        """What is averaged over the experts."""
        return f

    def say(self, f: Floats) -> Floats:
        """The opinion in the units of the mixture's score."""
        return f

    def likelihood(self, f: Floats, variance: float, y: float) -> float:
        """The density of the target."""
        unit = max(1e-12, self.squares / self.total * variance)
        return math.exp(-0.5 * (1.0 + FREEDOM) * math.log1p((y - f[0]) ** 2 / (FREEDOM * unit))) / math.sqrt(unit)

    def learn(self, f: Floats, variance: float, y: float, weight: float) -> ValueOpinion:
        """The opinion after a target; an outlier counts less, by the weight that it has in the likelihood of t."""
        ratio = float(y - f[0]) ** 2 / variance
        robust = (1.0 + FREEDOM) / (FREEDOM + ratio * self.total / self.squares) * ratio
        keep, prior = self.forgetting, (1.0 - self.forgetting) * PRIOR
        return ValueOpinion(keep * self.total + prior + weight, keep * self.squares + prior + weight * robust, keep)

    def fade(self, factor: float) -> ValueOpinion:
        """The opinion after time has passed; from then on it forgets by the clock, not by rows."""
        prior = (1.0 - factor) * PRIOR
        return ValueOpinion(factor * self.total + prior, factor * self.squares + prior, 1.0)

    @staticmethod
    def finish(average: Floats) -> Floats:
        """The score of the mixture: the mean."""
        return average


class QuantileOpinion(NamedTuple):
    """A quantile: the asymmetric Laplace density of width losses / total."""

    total: float = PRIOR
    losses: float = 0.25 * PRIOR
    level: float = 0.5
    forgetting: float = FORGETTING

    @classmethod
    def of(cls, numbers: Any) -> QuantileOpinion:
        """The opinion with these numbers."""
        return cls(*numbers)

    @property
    def numbers(self) -> tuple[float, ...]:
        """Everything learned."""
        return tuple(self[:-1])

    @staticmethod
    def holds(f: Floats, variance: float) -> bool:
        """Whether the score is an opinion."""
        return math.isfinite(f[0])

    @staticmethod
    def nothing(outputs: int) -> float:
        """What is predicted if no expert has an opinion."""
        return 0.0

    def predict(self, f: Floats) -> Floats:
        """What is averaged over the experts."""
        return f

    def say(self, f: Floats) -> Floats:
        """The opinion in the units of the mixture's score."""
        return f

    def _loss(self, f: Floats, y: float) -> float:
        away = float(y - f[0])
        return self.level * away if away > 0 else (self.level - 1.0) * away

    def likelihood(self, f: Floats, variance: float, y: float) -> float:
        """The density of the target."""
        width = max(1e-12, self.losses / self.total)
        return math.exp(-self._loss(f, y) / width) / width

    def learn(self, f: Floats, variance: float, y: float, weight: float) -> QuantileOpinion:
        """The opinion after a target; an outlier counts as twenty times the width at most."""
        loss = min(20.0 * self.losses / self.total, self._loss(f, y))
        keep, prior = self.forgetting, (1.0 - self.forgetting) * PRIOR
        losses = keep * self.losses + 0.25 * prior + weight * loss
        return QuantileOpinion(keep * self.total + prior + weight, losses, self.level, keep)

    def fade(self, factor: float) -> QuantileOpinion:
        """The opinion after time has passed; from then on it forgets by the clock, not by rows."""
        prior = (1.0 - factor) * PRIOR
        return QuantileOpinion(factor * self.total + prior, factor * self.losses + 0.25 * prior, self.level, 1.0)

    @staticmethod
    def finish(average: Floats) -> Floats:
        """The score of the mixture: the mean."""
        return average


Opinion = SignOpinion | ClassOpinion | ValueOpinion | QuantileOpinion
#: The opinions by their names.
OPINIONS: dict[str, type[Opinion]] = {
    "sign": SignOpinion, "class": ClassOpinion, "value": ValueOpinion, "quantile": QuantileOpinion,
}  # fmt: skip


def likelihoods(
    kind: str, scores: Floats, variances: Floats | None, y: Floats, importance: Floats | None, opinions: Floats,
    fades: Floats | None = None,
) -> Floats:  # fmt: skip
    """The likelihood that each expert gives each target before it learns it, (experts, rows); the opinions, (experts,
    numbers), go on. ``fades``: what the time before each row leaves of them; None: they forget by rows.

    >>> scores = np.array([[[0.0], [0.0]], [[1.0], [1.0]]])
    >>> opinions = np.tile(ValueOpinion().numbers, (2, 1))
    >>> likelihoods("value", scores, np.ones((2, 2)), np.array([1.0, 1.0]), None, opinions).round(2).tolist()
    [[0.58, 0.58], [1.0, 1.12]]
    """
    found = np.empty(scores.shape[:2])
    for e, t in np.ndindex(*found.shape):
        opinion = OPINIONS[kind].of(opinions[e].tolist())
        f, variance = scores[e, t], 1.0 if variances is None else float(variances[e, t])
        if not opinion.holds(f, variance):
            found[e, t] = 0.0
            continue
        found[e, t] = opinion.likelihood(f, variance, float(y[t]))
        if fades is not None:
            opinion = opinion.fade(float(fades[t]))
            opinions[e] = opinion.numbers
        weight = 1.0 if importance is None else float(importance[t])
        if weight > 0:
            opinions[e] = opinion.learn(f, variance, float(y[t]), weight).numbers
    return found
