"""The weights of the experts of an Auto model over time, in words: a look every so many rows, by their count alone, so
that a replay finds the same.
"""

from __future__ import annotations

from typing import Any

from gossamer.bank import ModelBank
from gossamer.estimators.pipelines import last_step
from gossamer.mixture import MixedLearner

#: Looks that are kept, at most; every other goes when there are more. The rows between the first of them.
LOOKS, EVERY = 96, 256
#: The heaviest settings of a look that are kept, and those of all looks that are shown.
HEAVIEST, SHOWN = 5, 6
#: The weight that is worth a mention.
LEAST = 0.01


def find_mixture(model: Any) -> MixedLearner | None:
    """The learner of an Auto model; None for another, for one that has learned nothing, and for a model per key."""
    if model is None or isinstance(model, ModelBank):
        return None
    learner = getattr(last_step(model), "learner_", None)
    return learner if isinstance(learner, MixedLearner) else None


class Experts:
    """Looks at a mixture: the row, and the places of its heaviest settings among `names` with their weights.

    >>> from gossamer import AutoRegressor
    >>> model = AutoRegressor(budget=8).partial_fit([[0.1 * i] for i in range(80)], [0.2 * i for i in range(80)])
    >>> experts = Experts()
    >>> experts.look(find_mixture(model), 256)
    >>> row, place, weight, *_ = experts.looks[0]
    >>> row, experts.names[place]
    (256, 'linear, forgetting 1, noise 0.01')
    """

    def __init__(self, state: dict[str, Any] | None = None) -> None:
        state = state or {}
        self.every: int = state.get("every", EVERY)
        self.names: list[str] = list(state.get("names", []))
        self.looks: list[list[float]] = list(state.get("looks", []))

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {"every": self.every, "names": self.names, "looks": self.looks}

    def room(self, row: int) -> int:
        """How many rows may be learned after a row until the next look."""
        return self.every - row % self.every

    def look(self, mixture: MixedLearner, row: int) -> None:
        """Keep the heaviest settings after a row, if it is the row for it."""
        if row % self.every:
            return
        found: list[float] = [row]
        for name, weight in weigh(mixture):
            if name not in self.names:
                self.names.append(name)
            found += [self.names.index(name), weight]
        self.looks.append(found)
        if len(self.looks) > LOOKS:
            self._thin()

    def _thin(self) -> None:
        """Keep every other look, and the names that these have."""
        self.every *= 2
        self.looks = [look for look in self.looks if look[0] % self.every == 0]
        used = sorted({int(place) for look in self.looks for place in look[1::2]})
        self.names = [self.names[place] for place in used]
        for look in self.looks:
            look[1::2] = [used.index(int(place)) for place in look[1::2]]

    def line(self, now: tuple[int, list[tuple[str, float]]] | None) -> dict[str, Any] | None:
        """The settings that carried most weight, the heaviest first, and their weights after each look and now."""
        looks = [(int(look[0]), {self.names[int(p)]: w for p, w in zip(look[1::2], look[2::2], strict=True)})
                 for look in self.looks]  # fmt: skip
        if now is not None and (not looks or now[0] > looks[-1][0]):
            looks.append((now[0], dict(now[1])))
        if not looks:
            return None
        totals: dict[str, float] = {}
        for _, weights in looks:
            for name, weight in weights.items():
                totals[name] = totals.get(name, 0.0) + weight
        names = sorted(totals, key=lambda name: -totals[name])
        # what is heaviest now is never missing
        first = max(looks[-1][1], key=lambda name: looks[-1][1][name], default=None)
        names = names[:SHOWN] if first is None or first in names[:SHOWN] else [*names[: SHOWN - 1], first]
        return {
            "names": names,
            "points": [[row, *(weights.get(name, 0.0) for name in names)] for row, weights in looks],
        }


def weigh(mixture: MixedLearner) -> list[tuple[str, float]]:
    """The heaviest settings of a mixture in words; experts that have the same are one."""
    totals: dict[str, float] = {}
    for words, weight in mixture.explain():
        totals[words] = totals.get(words, 0.0) + weight
    heaviest = sorted(totals, key=lambda words: -totals[words])[:HEAVIEST]
    return [(words, round(totals[words], 4)) for words in heaviest if totals[words] >= LEAST]
