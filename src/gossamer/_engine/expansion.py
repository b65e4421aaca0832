"""The kernel expansion f = scale * sum_i raw_i k(x_i, .), without its points: the specification of its C++ twin.

It holds numbers in slots; the caller keeps the point of each slot.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer._typing import Floats, Ints
from gossamer.budgets.base import Blend, Newcomer, project_row
from gossamer.rules.base import Trace

#: The scale is folded into the coefficients before it leaves [1 / FOLD, FOLD].
FOLD = 1e6
#: A norm tracked through removals is recomputed after this many updates, so that rounding cannot add up...
REFRESH = 10_000
#: ... where each digit (to base e) that cancels in it counts as this many.
PER_DIGIT = 1_000

#: The numbers and arrays that make up a state.
NUMBERS = (
    "scale", "trace_scale", "offset", "norm2", "mix", "inner", "rate", "rounds_scale", "offset_sum", "refresh_in",
    "discarded",
)  # fmt: skip
PER_OUTPUT = ("raw", "trace", "summed", "dropped")
PER_SLOT = ("kappas", "entered", "births", "ids")


def norm_of(coefs: Floats, gram: Floats) -> float:
    """sqrt(a' K a), never the root of a negative rounding."""
    return math.sqrt(max(0.0, float(coefs @ gram @ coefs)))


class Expansion:
    """Coefficients in slots, a row per output, scaled lazily: shrinking all of them is O(1).

    ``average`` keeps what is needed for the mean of all hypotheses so far, also O(1) a round: "all" remembers dropped
    terms, "sparse" forgets them. ``gram`` keeps the kernel values of the slots, so that dropping knows its own norm.
    ``labels`` is the label kernel, where classes are not kept apart. ``trace`` holds w of SVMD's v = w + mix f.
    """

    def __init__(
        self, average: str | None = None, gram: bool = False, labels: Floats | None = None, trace: bool = False,
        keeps_norm: bool = True,
    ) -> None:  # fmt: skip
        self.raw: Floats = np.zeros((1, 0))
        self.kappas: Floats = np.zeros(0)
        self.births: Ints = np.zeros(0, dtype=np.int64)
        self.ids: Ints = np.zeros(0, dtype=np.int64)
        self.scale, self.offset, self.norm2 = 1.0, 0.0, 0.0
        self.labels, self.keeps_norm = labels, keeps_norm
        self.gram: Floats | None = np.zeros((0, 0)) if gram else None
        self.refresh_in = REFRESH
        self.trace: Floats = np.zeros((int(trace), 0))
        self.trace_scale, self.mix, self.inner, self.rate = 1.0, 0.0, 0.0, 0.0  # inner = <f, v>, rate: SVMD's
        self.average = average
        self.rounds_scale = 0.0  # S: the sum of the scale over the rounds since the last fold
        self.summed: Floats = np.zeros((1, 0))  # A_i: the sum of coefficient i over the rounds before the last fold
        self.entered: Floats = np.zeros(0)  # P_i: S when i came
        self.dropped: Floats = np.zeros((1, 0))  # A_r of the terms that left, if average == "all"
        self.offset_sum = 0.0
        self.discarded = 0.0  # the norms of what was thrown away, added up

    @property
    def size(self) -> int:
        """The number of support points."""
        return len(self.births)

    @property
    def outputs(self) -> int:
        """The number of scores: 1, or one per class."""
        return len(self.raw)

    def grow(self, outputs: int) -> None:
        """Classes not known before: rows of zeros."""
        for name in PER_OUTPUT:
            rows = getattr(self, name)
            if len(rows) and len(rows) < outputs:
                setattr(self, name, np.vstack([rows, np.zeros((outputs - len(rows), rows.shape[1]))]))

    def joint(self, coefs: Floats) -> Floats:
        """Coefficients or sums per class as they count in the scores: times the label kernel."""
        return coefs if self.labels is None else np.asarray(self.labels @ coefs)

    @property
    def coefs(self) -> Floats:
        """The effective coefficients."""
        return self.scale * self.raw

    @property
    def trace_coefs(self) -> Floats:
        """The effective coefficients of v."""
        return self.trace_scale * self.trace + self.mix * self.coefs

    def begin_round(self) -> None:
        """f_t enters the mean."""
        if self.average:
            self.rounds_scale += self.scale
            self.offset_sum += self.offset

    def shrink(self, keep: float, trace: Trace | None = None) -> None:
        """f <- keep f, in O(1); and v <- trace.keep v - trace.drift f (ALGORITHMS 4)."""
        if trace is not None:
            if trace.keep == 0.0:  # also how a trace that has overflowed starts again
                self.trace[:], self.trace_scale, self.inner, self.mix = 0.0, 1.0, 0.0, 0.0
            else:
                self.trace_scale *= trace.keep
            self.inner = keep * (trace.keep * self.inner - trace.drift * self.norm2)
            self.mix = (trace.keep * self.mix - trace.drift) / keep
            self.rate = trace.rate
        self.scale *= keep
        self.norm2 *= keep * keep

    def fold(self) -> None:
        """Move the scales into the coefficients before they under- or overflow."""
        if not 1 / FOLD < self.scale < FOLD:
            self.summed += self.raw * (self.rounds_scale - self.entered)
            self.entered[:], self.rounds_scale = 0.0, 0.0
            self.raw *= self.scale
            self.scale = 1.0
        if not 1 / FOLD < self.trace_scale < FOLD:
            self.trace *= self.trace_scale
            self.trace_scale = 1.0

    def place(self, slot: int, new: Newcomer, birth: int, name: int) -> None:
        """Append a term or overwrite one."""
        row, kappa, move, f, v = new.row, new.kappa, new.move, new.f, new.v
        if slot < self.size:
            f = f - self.joint(self.coefs[:, slot]) * row[slot]
            v = None if v is None else v - self.trace_coefs[:, slot] * row[slot]
            self.throw_away(slot)
            self._leave(slot)
        else:
            for part in ("raw", "summed", "trace"):
                setattr(self, part, np.pad(getattr(self, part), ((0, 0), (0, 1))))
            for part in PER_SLOT:
                setattr(self, part, np.append(getattr(self, part), getattr(self, part).dtype.type(0)))
            self.gram = None if self.gram is None else np.pad(self.gram, (0, 1))
        self.raw[:, slot], self.kappas[slot], self.births[slot], self.ids[slot] = move / self.scale, kappa, birth, name
        self.summed[:, slot], self.entered[slot] = 0.0, self.rounds_scale
        self._add(2 * float(move @ f), kappa * float(move @ self.joint(move)))
        if v is not None and new.trace_move is not None:
            self.trace[:, slot] = (new.trace_move - self.mix * move) / self.trace_scale
            self.inner += float(new.trace_move @ f + move @ v + kappa * (move @ new.trace_move))
        if self.gram is not None:
            self.gram[slot, : len(row)] = row
            self.gram[: len(row), slot] = row
            self.gram[slot, slot] = kappa

    def change(self, slot: int, delta: float, value: float) -> None:
        """The coefficient of a slot grows by delta; value: f at its point."""
        self.summed[:, slot] += self.raw[:, slot] * (self.rounds_scale - self.entered[slot])
        self.entered[slot] = self.rounds_scale
        self.raw[0, slot] += delta / self.scale
        self._add(2 * delta * value, delta * delta * float(self.kappas[slot]))

    def turn(self, direction: Floats) -> None:
        """f <- f + sum_j direction_j k(x_j, .), a row for each output; v stays as it is."""
        self._settle_sums()
        if not self.keeps_norm:
            self.raw += direction / self.scale
            return
        assert self.gram is not None
        values = direction @ self.gram  # of the direction, at the points
        cross, square = np.sum(values * self.joint(self.coefs)), np.sum(values * self.joint(direction))
        if len(self.trace):
            self.inner += float(np.sum(values * self.trace_coefs))
            self.trace -= self.mix / self.trace_scale * direction
        self.raw += direction / self.scale
        self._add(2 * float(cross), float(square))

    def square(self, move: Floats) -> float:
        """||sum_c move_c k((x, c), .)||^2 / k(x, x)."""
        return float(move @ self.joint(move))

    @property
    def weights2(self) -> Floats:
        """The same of every slot's coefficients, unscaled."""
        return np.asarray((self.raw * self.joint(self.raw)).sum(axis=0))

    def throw_away(self, slot: int) -> None:
        """Add the norm of an evicted term to the discarded norms."""
        self.discarded += math.sqrt(max(0.0, self.square(self.coefs[:, slot])) * self.kappas[slot])

    def absorb(self, new: Newcomer, shares: Floats) -> float:
        """Add sum_c move_c P k((x, c), .), with P k(x, .) = sum_j shares_j k(x_j, .) the projection on the span of the
        points; returns the norm of the part outside, which is lost."""
        inside, outside = project_row(new.row, shares, new.kappa)
        move, square = new.move, self.square(new.move)
        if new.v is not None and new.trace_move is not None:
            self.inner += float(new.trace_move @ new.f + move @ new.v + inside * (move @ new.trace_move))
            self.trace += np.outer((new.trace_move - self.mix * move) / self.trace_scale, shares)
        self._settle_sums()
        self.raw += np.outer(move / self.scale, shares)
        self._add(2 * float(move @ new.f), inside * square)
        lost = math.sqrt(outside * square)
        self.discarded += lost
        return lost

    def hand_over(self, slot: int, shares: Floats) -> None:
        """The function of a slot goes to the others by their shares in it; the caller updates the norms."""
        self._settle_sums()
        for rows in (self.raw, self.trace):
            rows += np.outer(rows[:, slot], shares)
            rows[:, slot] = 0.0

    def replace(self, slot: int, new: Newcomer, shares: Floats, pivot: float, birth: int, name: int) -> float:
        """The newcomer takes the slot of a point whose function is projected on the others and the newcomer; returns
        the norm of what that loses. 1 / pivot: the squared norm of the point's part outside of their span."""
        outside = self.scale**2 * float(self.weights2[slot] / pivot)
        norm2 = self.norm2 + 2 * float(new.move @ new.f) + new.kappa * self.square(new.move) - outside
        inner, gained = self.inner, new._replace(move=new.move + self.coefs[:, slot] * shares[slot])
        if new.v is not None and new.trace_move is not None:
            inner += float(new.trace_move @ new.f + new.move @ new.v + new.kappa * (new.move @ new.trace_move))
            inner -= float(self.coefs[:, slot] @ self.trace_coefs[:, slot] / pivot)
            gained = gained._replace(trace_move=new.trace_move + self.trace_coefs[:, slot] * shares[slot])
        self.hand_over(slot, shares)
        self.place(slot, gained, birth, name)
        self.norm2, self.inner = max(0.0, norm2) if self.keeps_norm else 0.0, inner
        lost = math.sqrt(max(0.0, outside))
        self.discarded += lost
        return lost

    def blend(self, two: Blend) -> None:
        """Two terms become one, in the slot of the first, the other left without weight."""
        slot, other, (u, w) = two.slot, two.other, two.factors
        self._settle_sums()
        if self.average == "all":
            self.dropped = np.column_stack([self.dropped, self.summed[:, slot]])
        # f - g + new, with g the two terms
        assert self.gram is not None
        kernel = two.values(self.gram[slot], self.gram[other])
        g = np.zeros_like(self.raw)
        g[:, [slot, other]] = self.coefs[:, [slot, other]]
        made, rest = u * g[:, slot] + w * g[:, other], self.coefs - g
        self.norm2 += float(np.sum((g @ self.gram) * g) - 2 * np.sum((g @ self.gram) * self.coefs))
        self.norm2 = max(0.0, self.norm2 + float(2 * made @ (rest @ kernel) + made @ made * self.kappas[slot]))
        self.norm2 = self.norm2 if self.keeps_norm else 0.0
        for rows in (self.raw, self.trace):
            rows[:, slot] = u * rows[:, slot] + w * rows[:, other]
            rows[:, other] = 0.0
        self.summed[:, slot] = 0.0
        younger = slot if self.births[slot] >= self.births[other] else other
        self.births[slot], self.ids[slot] = self.births[younger], self.ids[younger]
        self.gram[slot], self.gram[:, slot] = kernel, kernel
        self.gram[slot, slot] = self.kappas[slot]
        self.discarded += self.scale * math.sqrt(max(0.0, two.lost2))
        if len(self.trace) or self.labels is not None:
            self.refresh_in = 0

    def _settle_sums(self) -> None:
        """Before coefficients change: add their sum so far to the mean."""
        if not self.average:
            return
        self.summed += self.raw * (self.rounds_scale - self.entered)
        self.entered[:] = self.rounds_scale

    def remove(self, slot: int) -> None:
        """Drop a term; the last one moves to its slot."""
        self._leave(slot)
        last = self.size - 1
        for part in ("raw", "summed", "trace", *PER_SLOT):
            values = getattr(self, part)
            values[..., slot] = values[..., last]
            setattr(self, part, values[..., :last])
        if self.gram is not None:
            self.gram[slot, :], self.gram[:, slot] = self.gram[last, :], self.gram[:, last]
            self.gram[slot, slot] = self.gram[last, last]
            self.gram = self.gram[:last, :last]

    def _leave(self, slot: int) -> None:
        if self.gram is not None and self.keeps_norm:
            a, row, kappa = self.coefs[:, slot], self.gram[slot], self.kappas[slot]
            f = self.joint(self.coefs) @ row
            self._add(-2 * float(a @ f), kappa * float(a @ self.joint(a)))
            if len(self.trace):
                b, v = self.trace_coefs[:, slot], self.trace_coefs @ row
                self.inner += float(-a @ v - b @ f + kappa * (a @ b))
        if self.average == "all":
            self.dropped = np.column_stack([self.dropped, self.total[:, slot]])

    def _add(self, cross: float, square: float) -> None:
        """Update ||f||^2 after a step, and count the digits that have cancelled in it."""
        if not self.keeps_norm:
            return
        gross = self.norm2 + abs(cross) + square
        self.norm2 = max(0.0, self.norm2 + cross + square)
        if self.gram is None or gross == 0:
            return
        lost = PER_DIGIT * math.log(gross / self.norm2) if self.norm2 > 0 else math.inf
        self.refresh_in -= 1 + (int(lost) if lost < REFRESH else REFRESH)  # also where it is not a number

    def refresh(self) -> None:
        """Recompute the norm, and SVMD's product, from the kernel values when too many digits have cancelled."""
        if self.gram is None or self.refresh_in > 0 or not self.keeps_norm:
            return
        self.norm2, self.refresh_in = self.norm_of(self.gram) ** 2, REFRESH
        if len(self.trace):
            self.inner = float(np.sum((self.coefs @ self.gram) * self.trace_coefs))

    @property
    def total(self) -> Floats:
        """The sum over all rounds so far of each coefficient."""
        return np.asarray(self.summed + self.raw * (self.rounds_scale - self.entered))

    @property
    def squared_norm(self) -> float:
        """||f||^2, kept or computed."""
        return self.norm2 if self.keeps_norm or self.gram is None else self.norm_of(self.gram) ** 2

    def norm_of(self, gram: Floats) -> float:
        """||f|| from the kernel values of its points; never the root of a negative rounding."""
        return math.sqrt(max(0.0, float(np.sum((self.coefs @ gram) * self.joint(self.coefs)))))
