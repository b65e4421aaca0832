"""THE LOOP over a block of rows whose kernel values are known: the specification of its C++ twin.

It deals with numbers in slots; which point sits in a slot is the caller's business, told by events. That is what lets
one loop serve arrays, strings and graphs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer._engine.expansion import NUMBERS, PER_OUTPUT, PER_SLOT, Expansion
from gossamer._engine.gram_inverse import LEAST_PIVOT
from gossamer._typing import Floats, Ints
from gossamer.budgets import REFUSE, Budget, Forgetron, Merge, Smallest
from gossamer.budgets.project import _Projecting
from gossamer.losses import Loss
from gossamer.rules import Example, Rule, Step

#: What happened to the slots, in order: (PLACE, row, slot); (REMOVE, slot, last): the last point moves to slot; (BLEND,
#: slot * 2^32 + other, the bits of h): the point of a slot becomes h of itself and 1 - h of another.
Event = tuple[int, int, int]
PLACE, REMOVE, BLEND = 0, 1, 2


class Newcomer(NamedTuple):
    """A row that is about to become a support point: which, its coefficients, f and v there."""

    t: int
    move: Floats
    kappa: float
    name: int
    f: Floats
    trace_move: Floats | None
    v: Floats | None


def _keep(slot: int, weights: Floats, outside: float) -> bool:
    """No point is left out of the inverse."""
    return False


class Loop:
    """THE LOOP, over one block of rows whose kernel values are all known."""

    def __init__(
        self, loss: Loss, rule: Rule, budget: Budget, average: str | None, gram: bool, epsilon: float
    ) -> None:
        self.loss, self.rule, self.budget = loss, rule, budget
        self.epsilon = epsilon
        kernel = getattr(loss, "label_kernel", None)
        self.expansion = Expansion(average, gram, None if kernel is None else np.array(kernel), rule.needs_trace)
        self.expansion.rate = rule.rate
        self.level = loss.level
        self.known = 0  # classes
        self.steps = self.updates = self.mistakes = 0
        if loss.target == "label":
            self._know(getattr(loss, "classes", None) or 0)

    def run(
        self, block: Floats, cross: Floats, kappas: Floats, y: Floats | None, weights: Floats | None, rates: Floats,
        ids: Ints | None, scores: Floats, levels: Floats,
    ) -> list[Event]:  # fmt: skip
        """Learn the rows of a block, write the scores and level each met, and say what happened to the slots.

        block : (size + rows, rows), its first ``size`` rows k(points, X), the others free
        cross : (rows, rows) k(X, X)
        scores : (rows, outputs), -inf for a class not yet seen
        """
        e, events = self.expansion, []
        for t, kappa in enumerate(kappas.tolist()):
            self.steps += 1
            e.begin_round()
            target = 0.0 if y is None else float(y[t])
            row = block[: e.size, t].copy()
            self._emit(e.joint(e.coefs) @ row, target, scores[t])
            levels[t] = self.level
            f = e.joint(e.coefs) @ row  # once more: the target may have brought a class
            v = e.trace_coefs @ row if len(e.trace) else None
            own = self._own(None if ids is None else int(ids[t]))

            many = self.loss.target == "label"
            example = Example(
                f if many else float(f[0]), e.offset, target, kappa, float(rates[t]),
                1.0 if weights is None else float(weights[t]), e.norm2, self.updates,
                0.0 if own is None else float(e.coefs[0, own]),
                v if many or v is None else float(v[0]), e.inner, e.rate,
            )  # fmt: skip
            step = self.rule.step(self.loss.at(self.level), example)
            if own is None and self._inside(step, row, kappa):  # the step is taken there
                step = self.rule.step(self.loss.at(self.level), example._replace(kappa=e.inverse.inside))
            e.offset, self.level = step.offset, step.level
            largest = float(np.abs(f).max()) + abs(e.offset)
            if step.keep == 0.0:  # everything is forgotten
                e.inverse.clear()
                events += self._forget(block)
                e.scale, e.norm2 = 1.0, 0.0
            else:
                e.shrink(step.keep, step.trace)
                e.fold()
            trace_move = None
            if v is not None and step.trace is not None:
                v = (step.trace.keep * v if step.trace.keep else 0.0) - step.trace.drift * f
                trace_move = np.atleast_1d(step.trace.coefficient)
            f = step.keep * f
            move = np.atleast_1d(np.asarray(step.coefficient, dtype=np.float64))
            # a step no larger than the rounding of the score it was made from is none
            # (SVMD's trace may move where an implicit step leaves f alone)
            counts = float(np.abs(move).max()) * kappa > self.epsilon * largest
            if v is not None and trace_move is not None and getattr(self.rule, "meta", 1.0) > 0:
                counts |= float(np.abs(trace_move).max()) * kappa > self.epsilon * float(np.abs(v).max())
            if kappa > 0 and counts:
                self.updates += 1
                if own is not None:
                    e.change(own, float(move[0]), float(f[0]))
                    if e.raw[0, own] == 0.0:
                        events.append(self._remove(own, block))
                else:
                    name = -self.steps if ids is None else int(ids[t])
                    new = Newcomer(t, move, kappa, name, f, trace_move, v)
                    self._admit(new, block, cross, events)
            while (gone := self.budget.expired(e, self.steps + 1)) is not None:
                e.throw_away(gone)
                events.append(self._remove(gone, block))
            e.refresh()
        return events

    def _inside(self, step: Step, row: Floats, kappa: float) -> bool:
        """Whether a row that moves the model lies in the span of the points, for a budget that projects."""
        inverse = self.expansion.inverse
        moves = np.any(step.coefficient) or (step.trace is not None and np.any(step.trace.coefficient))
        if not inverse.active or kappa <= 0 or not moves:
            return False
        inverse.solve(row, kappa)
        return inverse.residual <= getattr(self.budget, "tolerance", 0.0) * kappa

    def _admit(self, new: Newcomer, block: Floats, cross: Floats, events: list[Event]) -> None:
        """The budget finds the newcomer a slot, or not."""
        e = self.expansion
        if isinstance(self.budget, _Projecting):
            self._project(self.budget, new, block, cross, events)
            return
        # a subclass may have its own way to choose
        if isinstance(self.budget, Merge | Forgetron) and type(self.budget).choose is Budget.choose:
            if e.size < self.budget.size:
                slot = e.size
            elif isinstance(self.budget, Merge):
                slot = self._merge(self.budget, new.t, block, events)
                new = self._see(new, block)
            else:
                slot, new = self._forgetron(self.budget, new, block)
            self._place(slot, new, block, cross, events)
            return
        slot = self.budget.choose(e, float(np.sqrt(new.move @ new.move)), new.kappa)
        if slot == REFUSE:
            e.discarded += math.sqrt(e.square(new.move) * new.kappa)
        else:
            self._place(slot, new, block, cross, events)

    def _place(self, slot: int, new: Newcomer, block: Floats, cross: Floats, events: list[Event]) -> None:
        e, t = self.expansion, new.t
        row = block[: e.size, t].copy()
        e.place(slot, new.move, new.kappa, self.steps, new.name, new.f, row, new.trace_move, new.v)
        block[slot, t + 1 : len(cross)] = cross[t, t + 1 :]
        events.append((PLACE, t, slot))

    def _forgetron(self, budget: Forgetron, new: Newcomer, block: Floats) -> tuple[int, Newcomer]:
        """Everything shrinks, so that the oldest may leave."""
        e = self.expansion
        slot = int(np.argmin(e.births))
        a = float(e.coefs[0, slot])
        value = float(e.coefs[0] @ self._gram()[slot]) + float(new.move[0]) * float(block[slot, new.t])
        left = 15.0 / 32.0 * self.updates - e.spent
        phi, spent = budget.factor(abs(a), float(e.kappas[slot]), math.copysign(value, a * value), left)
        e.spent += spent
        e.shrink(phi)
        return slot, new._replace(f=phi * new.f, move=phi * new.move)

    def _merge(self, budget: Merge, t: int, block: Floats, events: list[Event]) -> int:
        """The lightest point and the one that takes it best become one; the slot that is free now."""
        e = self.expansion
        slot = Smallest(budget.size).choose(e, math.inf, 1.0)
        products, weights2, gram = self._products(slot), e.weights2, self._gram()
        a2, k = float(weights2[slot]), gram[slot]

        def lost(i: int, halvings: int) -> tuple[float, float, float, float]:
            b2, ab = float(weights2[i]), float(products[i])
            h, u, w, kept = budget.blend(a2, b2, ab, math.log(k[i]), halvings)
            return a2 + b2 + 2 * ab * float(k[i]) - kept, h, u, w

        others = [i for i in range(e.size) if i != slot and products[i] > 0 and k[i] >= 1e-12]
        if not others:
            return slot
        other = min(others, key=lambda i: lost(i, 12)[0])
        lost2, h, u, w = lost(other, 50)
        far = float(k[other]) ** (-h * (1 - h))
        column = gram[slot] ** h * gram[other] ** (1 - h) * far
        block[slot, t:] = block[slot, t:] ** h * block[other, t:] ** (1 - h) * far
        e.blend(slot, other, u, w, column, lost2)
        events.append((BLEND, (slot << 32) + other, int(np.float64(h).view(np.int64))))
        return other

    def _see(self, new: Newcomer, block: Floats) -> Newcomer:
        """f and v at the newcomer once more, after the coefficients have changed."""
        e, row = self.expansion, block[: self.expansion.size, new.t]
        return new._replace(f=e.joint(e.coefs) @ row, v=None if new.v is None else e.trace_coefs @ row)

    def _products(self, slot: int) -> Floats:
        e = self.expansion
        return np.asarray(e.raw[:, slot] @ e.joint(e.raw))

    def _project(
        self, budget: _Projecting, new: Newcomer, block: Floats, cross: Floats, events: list[Event]
    ) -> None:
        """What leaves is projected on what stays."""
        e, inverse, room = self.expansion, self.expansion.inverse, budget.room(self.expansion)
        if not inverse.active and e.size < room:
            self._place(e.size, new, block, cross, events)
            if budget.at_once:
                inverse.make(self._gram(), 0.0, _keep)
            return
        tolerance = max(budget.tolerance, LEAST_PIVOT)
        if not inverse.active:  # full for the first time
            self._first_inverse(tolerance, block, events)
            inverse.solve(block[: e.size, new.t].copy(), new.kappa)
            new = self._see(new, block)
        known = inverse.residual <= tolerance * new.kappa
        slot = e.size
        if not known and e.size >= room:
            slot = budget.choose(e, math.sqrt(e.square(new.move)), new.kappa)
        if known or slot == REFUSE:
            e.absorb(new.move, new.f, new.trace_move, new.v)
            if not known:
                budget.grow(e, math.sqrt(inverse.residual * e.square(new.move)))
            return
        if slot == e.size:
            inverse.append()
            self._place(slot, new, block, cross, events)
        else:
            outside = e.scale**2 * float(e.weights2[slot] / inverse.diagonal[slot])
            norm2 = e.norm2 + 2 * float(new.move @ new.f) + new.kappa * e.square(new.move) - outside
            inner = e.inner
            if new.v is not None and new.trace_move is not None:
                inner += float(new.trace_move @ new.f + new.move @ new.v + new.kappa * (new.move @ new.trace_move))
                inner -= float(e.coefs[:, slot] @ e.trace_coefs[:, slot] / inverse.diagonal[slot])
            lost, trace_lost = e.spread(slot, inverse.replace(slot))
            if new.trace_move is not None and trace_lost is not None:
                new = new._replace(trace_move=new.trace_move - trace_lost)
            self._place(slot, new._replace(move=new.move - lost), block, cross, events)
            e.norm2, e.inner = max(0.0, norm2), inner
            e.discarded += math.sqrt(max(0.0, outside))
            budget.grow(e, math.sqrt(max(0.0, outside)))
        gram = self._gram()
        if inverse.worn(slot, gram):
            inverse.make(gram, 0.0, _keep)

    def _first_inverse(self, tolerance: float, block: Floats, events: list[Event]) -> None:
        """The inverse of the points' kernel values; those that the others know already leave."""
        e, gone = self.expansion, [REFUSE]

        def dependent(slot: int, weights: Floats, outside: float) -> bool:
            e.hand_over(slot, weights, outside)
            gone.append(slot)
            return True

        while gone:
            gone.clear()
            e.inverse.make(self._gram(), tolerance, dependent)
            if gone:
                e.inverse.clear()
            for slot in reversed(gone):
                events.append(self._remove(slot, block))

    def _gram(self) -> Floats:
        assert self.expansion.gram is not None
        return self.expansion.gram

    def _emit(self, f: Floats, target: float, out: Floats) -> None:
        """The scores before the target is used, and whether they were wrong."""
        if self.loss.target != "label":
            out[0] = f[0] + self.expansion.offset
            self.mistakes += int(self.loss.target == "binary" and target * out[0] <= 0)
            return
        label = int(target)
        out[: self.known], out[self.known :] = f[: self.known], -np.inf
        others = np.delete(f[: self.known], label) if label < self.known else f
        self.mistakes += int(label >= self.known or bool((others >= f[label]).any()))
        if label >= self.known:
            self._know(label + 1)

    def _know(self, classes: int) -> None:
        self.known = classes
        self.expansion.grow(max(classes, 1))

    def _own(self, name: int | None) -> int | None:
        """The slot of an example that came before under this id."""
        if name is None or not self.rule.needs_ids:
            return None
        found = np.flatnonzero(self.expansion.ids == name)
        return int(found[0]) if len(found) else None

    def _forget(self, block: Floats) -> list[Event]:
        return [self._remove(slot, block) for slot in reversed(range(self.expansion.size))]

    def _remove(self, slot: int, block: Floats) -> Event:
        last = self.expansion.size - 1
        self.expansion.remove(slot)
        block[slot] = block[last]
        return (REMOVE, slot, last)

    def copy(self) -> Loop:
        """The same loop with the same state."""
        e, gram = self.expansion, self.expansion.gram
        twin = type(self)(self.loss, self.rule, self.budget, e.average, gram is not None, self.epsilon)
        twin.restore(self.state(), gram)
        return twin

    def state(self) -> dict[str, Any]:
        """Everything but the parameters and the points, as arrays and numbers."""
        e = self.expansion
        counts = {name: getattr(self, name) for name in ("level", "known", "steps", "updates", "mistakes")}
        arrays = {name: getattr(e, name).copy() for name in (*PER_OUTPUT, *PER_SLOT)}
        numbers = {**{name: getattr(e, name) for name in NUMBERS}, "inverse_age": e.inverse.age}
        inverse = {"inverse": e.inverse.matrix[np.tril_indices(e.size)]} if e.inverse.active else {}
        return {**arrays, **counts, **numbers, **inverse}

    def gram(self) -> Floats | None:
        """The kernel values of the slots, if they are kept."""
        return None if self.expansion.gram is None else self.expansion.gram.copy()

    def restore(self, state: dict[str, Any], gram: Floats | None) -> None:
        """Go back to a state; ``gram`` holds the kernel values of its points if norms are tracked."""
        e = self.expansion
        for name in (*PER_OUTPUT, *PER_SLOT):
            setattr(e, name, np.array(state[name]))
        if not len(e.trace):  # the core has no columns where there are no rows
            e.trace = np.zeros((0, e.size))
        for name in NUMBERS:
            setattr(e, name, state[name])
        for name in ("level", "known", "steps", "updates", "mistakes"):
            setattr(self, name, state[name])
        e.inverse.clear()
        if "inverse" in state:
            matrix = np.zeros((e.size, e.size))
            matrix[np.tril_indices(e.size)] = state["inverse"]
            e.inverse.matrix, e.inverse.active = matrix + np.tril(matrix, -1).T, True
        e.inverse.age = state["inverse_age"]
        if e.gram is not None and gram is not None:
            e.gram = np.array(gram, dtype=np.float64)
