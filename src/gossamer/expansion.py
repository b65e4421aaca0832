"""The kernel expansion f = scale * sum_i raw_i k(x_i, .), without its points, and the loop over a block of rows.

Everything here is about numbers in slots; which point sits in a slot is the caller's business, told by events. That is
what lets one loop serve arrays, strings and graphs. `Expansion` and `Loop` are the specification of their C++ twins.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gossamer.budgets import REFUSE, Budget
from gossamer.losses import Loss
from gossamer.rules import Rule

Floats = NDArray[np.float64]

#: The scale is folded into the coefficients before it leaves [1 / FOLD, FOLD].
FOLD = 1e6
#: A tracked norm is recomputed after this many updates, so that rounding cannot add up.
REFRESH = 10_000

#: What happened to the slots, in order: ("place", row, slot) or ("remove", slot, last): the last point moves to slot.
Event = tuple[int, int, int]
PLACE, REMOVE = 0, 1


class Expansion:
    """Coefficients in slots, scaled lazily: shrinking all of them is O(1).

    ``average`` keeps what is needed for the mean of all hypotheses so far, also O(1) a round: "all" remembers dropped
    terms, "sparse" forgets them. ``gram`` keeps the kernel values of the slots, so that dropping knows its own norm.
    """

    def __init__(self, average: str | None = None, gram: bool = False) -> None:
        self.raw: Floats = np.zeros(0)
        self.kappas: Floats = np.zeros(0)
        self.births: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self.scale = 1.0
        self.offset = 0.0
        self.norm2 = 0.0
        self.gram: Floats | None = np.zeros((0, 0)) if gram else None
        self.refresh_in = REFRESH
        self.average = average
        self.rounds_scale = 0.0  # S: the sum of the scale over the rounds since the last fold
        self.summed: Floats = np.zeros(0)  # A_i: the sum of coefficient i over the rounds before the last fold
        self.entered: Floats = np.zeros(0)  # P_i: S when i came
        self.dropped: list[float] = []  # A_r of the terms that left, if average == "all"
        self.offset_sum = 0.0

    @property
    def size(self) -> int:
        """The number of support points."""
        return len(self.raw)

    @property
    def coefs(self) -> Floats:
        """The effective coefficients."""
        return self.scale * self.raw

    def value(self, row: Floats) -> float:
        """f(x) from the kernel values of x against the slots."""
        return self.scale * float(self.raw @ row)

    def begin_round(self) -> None:
        """f_t enters the mean."""
        if self.average:
            self.rounds_scale += self.scale
            self.offset_sum += self.offset

    def shrink(self, keep: float) -> None:
        """All coefficients times ``keep``, in O(1)."""
        self.scale *= keep
        self.norm2 *= keep * keep

    def fold(self) -> None:
        """Move the scale into the coefficients before it under- or overflows."""
        self.summed += self.raw * (self.rounds_scale - self.entered)
        self.entered[:] = 0.0
        self.rounds_scale = 0.0
        self.raw *= self.scale
        self.scale = 1.0

    def place(self, slot: int, coefficient: float, kappa: float, birth: int, value: float, row: Floats) -> None:
        """Append a term or overwrite one. ``value`` is f(x) now, ``row`` the kernel values of x against the slots."""
        if slot < self.size:
            value -= float(self.coefs[slot] * row[slot])
            self._leave(slot)
        else:
            self.raw, self.kappas, self.summed, self.entered = (
                np.append(a, 0.0) for a in (self.raw, self.kappas, self.summed, self.entered)
            )
            self.births = np.append(self.births, 0)
            if self.gram is not None:
                self.gram = np.pad(self.gram, (0, 1))
        self.raw[slot], self.kappas[slot], self.births[slot] = coefficient / self.scale, kappa, birth
        self.summed[slot], self.entered[slot] = 0.0, self.rounds_scale
        self.norm2 = max(0.0, self.norm2 + 2 * coefficient * value + coefficient * coefficient * kappa)
        if self.gram is not None:
            self.gram[slot, : len(row)] = row
            self.gram[: len(row), slot] = row
            self.gram[slot, slot] = kappa
            self.refresh_in -= 1
            if self.refresh_in <= 0:
                self.norm2 = max(0.0, float(self.coefs @ self.gram @ self.coefs))
                self.refresh_in = REFRESH

    def remove(self, slot: int) -> None:
        """Drop a term; the last one moves to its slot."""
        self._leave(slot)
        last = self.size - 1
        for array in (self.raw, self.kappas, self.births, self.summed, self.entered):
            array[slot] = array[last]
        self.raw, self.kappas, self.births = self.raw[:last], self.kappas[:last], self.births[:last]
        self.summed, self.entered = self.summed[:last], self.entered[:last]
        if self.gram is not None:
            self.gram[slot, :], self.gram[:, slot] = self.gram[last, :], self.gram[:, last]
            self.gram[slot, slot] = self.gram[last, last]
            self.gram = self.gram[:last, :last]

    def _leave(self, slot: int) -> None:
        if self.gram is not None:
            a = self.coefs[slot]
            self.norm2 += -2 * a * self.value(self.gram[slot]) + a * a * self.kappas[slot]
        if self.average == "all":
            self.dropped.append(
                float(self.summed[slot] + self.raw[slot] * (self.rounds_scale - self.entered[slot]))
            )

    def mean_coefs(self, rounds: int) -> tuple[Floats, Floats, float]:
        """Coefficients of the averaged hypothesis: of the slots, of the dropped terms, and its offset."""
        n = max(rounds, 1)
        now = (self.summed + self.raw * (self.rounds_scale - self.entered)) / n
        return now, np.array(self.dropped) / n, self.offset_sum / n


class Loop:
    """THE LOOP, over one block of rows whose kernel values are all known."""

    backend = "numpy"

    def __init__(
        self, loss: Loss, rule: Rule, budget: Budget, average: str | None, gram: bool, epsilon: float
    ) -> None:
        self.loss, self.rule, self.budget = loss, rule, budget
        self.epsilon = epsilon
        self.expansion = Expansion(average, gram)
        self.level = loss.level
        self.steps = self.updates = self.mistakes = 0

    def run(
        self, block: Floats, cross: Floats, kappas: Floats, y: Floats, weights: Floats, rates: Floats,
        scores: Floats, levels: Floats,
    ) -> list[Event]:  # fmt: skip
        """Learn the rows of a block, write the score and level each met, and say what happened to the slots.

        block : (size + rows, rows), its first ``size`` rows k(points, X), the others free
        cross : (rows, rows) k(X, X)
        """
        e, events = self.expansion, []
        for t in range(len(kappas)):
            self.steps += 1
            while (gone := self.budget.expired(e, self.steps)) is not None:
                events.append(self._remove(gone, block))
            e.begin_round()
            loss = self.loss.at(self.level)
            value = e.value(block[: e.size, t])
            scores[t], levels[t] = value + e.offset, self.level
            if loss.target == "binary" and y[t] * scores[t] <= 0:
                self.mistakes += 1

            step = self.rule.step(
                loss, value, e.offset, float(y[t]), float(kappas[t]), float(rates[t]), float(weights[t])
            )
            e.offset, self.level = step.offset, step.level
            if step.keep == 0.0:  # everything is forgotten
                while e.size:
                    events.append(self._remove(e.size - 1, block))
                e.scale, e.norm2, value = 1.0, 0.0, 0.0
            else:
                e.shrink(step.keep)
                if not 1 / FOLD < e.scale < FOLD:
                    e.fold()
            if not self._counts(step.coefficient, value, e.offset, float(kappas[t])):
                continue
            self.updates += 1
            slot = self.budget.choose(e, step.coefficient, float(kappas[t]))
            if slot != REFUSE:
                row = block[: e.size, t].copy()
                e.place(slot, step.coefficient, float(kappas[t]), self.steps, step.keep * value, row)
                block[slot, t + 1 : len(kappas)] = cross[t, t + 1 :]
                events.append((PLACE, t, slot))
        return events

    def _counts(self, coefficient: float, value: float, offset: float, kappa: float) -> bool:
        """Whether a step is more than the rounding of the score it was made from."""
        return abs(coefficient) * kappa > self.epsilon * abs(value + offset)

    def _remove(self, slot: int, block: Floats) -> Event:
        last = self.expansion.size - 1
        self.expansion.remove(slot)
        block[slot] = block[last]
        return (REMOVE, slot, last)

    def state(self) -> dict[str, Any]:
        """Everything but the parameters and the points, as arrays and numbers."""
        e = self.expansion
        return {
            "raw": e.raw.copy(), "kappas": e.kappas.copy(), "births": e.births.copy(), "summed": e.summed.copy(),
            "entered": e.entered.copy(), "dropped": np.array(e.dropped), "scale": e.scale, "offset": e.offset,
            "norm2": e.norm2, "rounds_scale": e.rounds_scale, "offset_sum": e.offset_sum,
            "refresh_in": e.refresh_in, "level": self.level, "steps": self.steps, "updates": self.updates,
            "mistakes": self.mistakes,
        }  # fmt: skip

    def restore(self, state: dict[str, Any], gram: Floats | None) -> None:
        """Go back to a state; ``gram`` holds the kernel values of its points if norms are tracked."""
        e = self.expansion
        for name in ("raw", "kappas", "births", "summed", "entered"):
            setattr(e, name, np.array(state[name]))
        e.dropped = [float(a) for a in state["dropped"]]
        for name in ("scale", "offset", "norm2", "rounds_scale", "offset_sum", "refresh_in"):
            setattr(e, name, state[name])
        self.level = state["level"]
        self.steps, self.updates, self.mistakes = state["steps"], state["updates"], state["mistakes"]
        if e.gram is not None and gram is not None:
            e.gram = np.array(gram, dtype=np.float64)


def norm_of(coefs: Floats, gram: Floats) -> float:
    """sqrt(a' K a), never the root of a negative rounding."""
    return math.sqrt(max(0.0, float(coefs @ gram @ coefs)))
