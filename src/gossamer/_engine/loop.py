"""THE LOOP over a block of rows whose kernel values are known: the specification of its C++ twin.

It deals with numbers in slots; the caller keeps the point of each slot and is told of changes by events. So one loop
serves arrays, strings and graphs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer._engine.expansion import NUMBERS, PER_OUTPUT, PER_SLOT, Expansion
from gossamer._typing import Floats, Ints
from gossamer.budgets.base import AGAIN, REFUSE, Admission, Blend, Budget, Newcomer
from gossamer.losses import Loss
from gossamer.rules import Example, Rule, Step
from gossamer.rules.base import Trace

#: What happened to the slots, in order: (PLACE, row, slot); (REMOVE, slot, last): the last point moves to slot; (BLEND,
#: slot * 2^32 + other, the bits of h): the point of a slot becomes h of itself and 1 - h of another.
Event = tuple[int, int, int]
PLACE, REMOVE, BLEND = 0, 1, 2


class Loop:
    """THE LOOP, over one block of rows whose kernel values are all known."""

    def __init__(self, loss: Loss, rule: Rule, budget: Budget, average: str | None, gram: bool, epsilon: float) -> None:
        self.loss, self.rule, self.budget = loss, rule, budget
        self.epsilon = epsilon
        kernel = getattr(loss, "label_kernel", None)
        self.expansion = self._expansion(average, gram, None if kernel is None else np.array(kernel))
        self.expansion.rate = rule.rate
        self.level = loss.level
        self.known = 0  # classes
        self.steps = self.updates = self.mistakes = 0
        #: Rule and budget, each with its own state.
        self.memory = {name: part.unpack(part.initial_state(), 0) for name, part in self._parts()}
        if loss.many:
            self._know(getattr(loss, "classes", None) or 0)

    def run(
        self, block: Floats, cross: Floats, kappas: Floats, y: Floats | None, weights: Floats | None, rates: Floats,
        ids: Ints | None, scores: Floats, levels: Floats, variances: Floats | None = None, fades: Floats | None = None,
    ) -> list[Event]:  # fmt: skip
        """Learn the rows of a block, write the score and the level of each, its variance if asked for, and return the
        events of the slots.

        block : (size + rows, rows), its first ``size`` rows k(points, X), the others free
        cross : (rows, rows) k(X, X)
        scores : (rows, outputs), -inf for a class not yet seen
        fades : what the time since the row before leaves of the model (`gossamer.clock`); None: all of it
        """
        e, events = self.expansion, []
        for t, kappa in enumerate(kappas.tolist()):
            self.steps += 1
            e.begin_round()
            target: Any = 0.0 if y is None else y[t] if y.ndim == 2 else float(y[t])
            row = block[: e.size, t].copy()
            self._emit(e.joint(e.coefs) @ row, target, scores[t])
            levels[t] = self.level
            if variances is not None:
                variances[t] = self._variance(row, kappa)
            if fades is not None:  # after the prediction: time passes when a row is learned
                events += self._pass_time(float(fades[t]), block)
                row = row[: e.size]
            f = e.joint(e.coefs) @ row  # once more: the target may have brought a class
            v = e.trace_coefs @ row if len(e.trace) else None
            own = self._own(None if ids is None else int(ids[t]))

            many = self.loss.many
            example = Example(
                f if many else float(f[0]), e.offset, target, kappa, float(rates[t]),
                1.0 if weights is None else float(weights[t]), e.norm2, self.updates,
                0.0 if own is None else float(e.coefs[0, own]),
                v if many or v is None else float(v[0]), e.inner, e.rate, row, self.memory["rule"],
            )  # fmt: skip
            step = self.rule.step(self.loss.at(self.level), example)
            if own is None and kappa > 0 and _moves(step):
                inside = self.budget.inside(row, kappa, self.memory["budget"])
                if inside is not None:  # the step is taken in the span of the points
                    step = self.rule.step(self.loss.at(self.level), example._replace(kappa=inside))
            e.offset, self.level = step.offset, step.level
            largest = float(np.abs(f).max()) + abs(e.offset)
            if step.keep == 0.0:  # everything is forgotten
                events += self._forget_all(block)
            else:
                e.shrink(step.keep, step.trace)
                e.fold()
            trace_move = None
            if v is not None and step.trace is not None:
                v = (step.trace.keep * v if step.trace.keep else 0.0) - step.trace.drift * f
                trace_move = np.atleast_1d(step.trace.coefficient)
            f = step.keep * f
            move = np.atleast_1d(np.asarray(step.coefficient, dtype=np.float64))
            # a step no larger than the rounding of its score is not counted
            # (SVMD's trace may move where an implicit step leaves f alone)
            reach, direction = float(np.abs(move).max()), step.direction
            if direction is not None:
                direction = np.atleast_2d(direction)
                reach = reach or float(np.abs(direction).max(initial=0.0))
            counts = reach * kappa > self.epsilon * largest
            if v is not None and trace_move is not None and self.rule.meta > 0:
                counts |= float(np.abs(trace_move).max()) * kappa > self.epsilon * float(np.abs(v).max())
            if kappa > 0 and counts:
                self.updates += 1
                if direction is not None and e.size:
                    e.turn(direction)
                    f = f + e.joint(direction) @ row
                if own is not None:
                    e.change(own, float(move[0]), float(f[0]))
                    if e.raw[0, own] == 0.0:
                        events.append(self._remove(own, block))
                elif direction is None or np.any(move):
                    new = Newcomer(block[: e.size, t].copy(), kappa, move, f, self.updates, trace_move, v)
                    kept = self._admit(new, t, -self.steps if ids is None else int(ids[t]), block, cross, events)
                    if not kept and direction is not None and e.size:
                        e.turn(-direction)  # refused: the rest of its step goes with it
            self.rule.ended(self.memory["rule"])
            while (gone := self.budget.expired(e, self.steps + 1)) is not None:
                drop = self.rule.drop(gone, self.memory["rule"])
                if drop is None:
                    e.throw_away(gone)
                else:
                    e.discarded += math.sqrt(max(0.0, e.square(e.coefs[:, gone])) / drop[1])
                    self._hand_over(gone, drop[0])
                    e.hand_over(gone, drop[0])
                events.append(self._remove(gone, block))
            e.refresh()
        return events

    def _expansion(self, average: str | None, gram: bool, labels: Floats | None) -> Expansion:
        return Expansion(average, gram, labels, self.rule.needs_trace, self.rule.keeps_norm)

    def _parts(self) -> tuple[tuple[str, Rule | Budget], ...]:
        return (("rule", self.rule), ("budget", self.budget))

    def _admit(self, new: Newcomer, t: int, name: int, block: Floats, cross: Floats, events: list[Event]) -> bool:
        """Ask the budget about the newcomer and apply its answer; returns whether any of its step is kept."""
        e, memory = self.expansion, self.memory["budget"]
        answer = self.budget.admit(new, e, memory)
        while answer.slot == AGAIN:
            for gone in answer.departures:
                e.discarded += math.sqrt(gone.outside * e.square(e.coefs[:, gone.slot]))
                self._hand_over(gone.slot, gone.shares if gone.nearest is None else gone.nearest)
                e.hand_over(gone.slot, gone.shares)
                e.refresh_in = 0
            events += [self._remove(gone.slot, block) for gone in reversed(answer.departures)]
            new = self._renew(new, block[: e.size, t])
            if answer.departures:
                self.rule.renewed(new.row, new.kappa, self.memory["rule"])
            answer = self.budget.admit(new, e, memory)
        new = self._reshape(new, answer, t, block, events)
        slot, shares, pivot, lost = answer.slot, answer.shares, answer.pivot, 0.0
        if shares is None and 0 <= slot < e.size and (drop := self.rule.drop(slot, self.memory["rule"])) is not None:
            shares, pivot = drop
        if slot == REFUSE:
            if shares is None:
                lost = math.sqrt(e.square(new.move) * new.kappa)
                e.discarded += lost
            else:
                lost = e.absorb(new, shares)
                for part, one in self._parts():
                    one.absorbed(shares, self.memory[part])
        elif shares is None:
            e.place(slot, new, self.steps, name)
        else:
            self._hand_over(slot, shares)
            lost = e.replace(slot, new, shares, pivot, self.steps, name)
        if slot != REFUSE:
            block[slot, t + 1 : len(cross)] = cross[t, t + 1 :]
            events.append((PLACE, t, slot))
            self._placed(slot)
        if answer.merge is not None:
            self._merge(answer.merge, t, block, events)
        if slot == REFUSE or shares is not None:
            self.budget.lost(lost, e, memory)
        return slot != REFUSE or shares is not None

    def _placed(self, slot: int) -> None:
        for name, part in self._parts():
            part.placed(slot, self.expansion, self.memory[name])

    def _reshape(self, new: Newcomer, answer: Admission, t: int, block: Floats, events: list[Event]) -> Newcomer:
        """Apply the changes of an admission to the other points, before the newcomer is placed."""
        e, two, keep = self.expansion, answer.blend, answer.keep
        if two is not None:
            block[two.slot, t:] = two.values(block[two.slot, t:], block[two.other, t:])
            e.blend(two)
            events.append((BLEND, (two.slot << 32) + two.other, int(np.float64(two.h).view(np.int64))))
        if answer.renew:
            new = self._renew(new, block[: e.size, t])
        if keep != 1.0:
            e.shrink(keep, Trace(1.0, 0.0, None, e.rate) if len(e.trace) else None)
            new = new._replace(f=keep * new.f, move=keep * new.move)
        return new

    def _merge(self, two: Blend, t: int, block: Floats, events: list[Event]) -> None:
        """Two observations become one at a point between them; the slot of the other is removed."""
        e = self.expansion
        assert e.gram is not None
        kernel = two.values(e.gram[two.slot], e.gram[two.other])
        coefs = self.rule.merged(two.slot, two.other, kernel, e.coefs, self.memory["rule"])
        block[two.slot, t + 1 :] = two.values(block[two.slot, t + 1 :], block[two.other, t + 1 :])
        e.blend(two)
        e.raw[:] = coefs / e.scale
        events.append((BLEND, (two.slot << 32) + two.other, int(np.float64(two.h).view(np.int64))))
        events.append(self._remove(two.other, block))

    def _renew(self, new: Newcomer, row: Floats) -> Newcomer:
        """The newcomer with its scores computed again, after the coefficients have changed."""
        e = self.expansion
        return new._replace(row=row.copy(), f=e.joint(e.coefs) @ row, v=None if new.v is None else e.trace_coefs @ row)

    def _hand_over(self, slot: int, shares: Floats) -> None:
        for name, part in self._parts():
            part.handed_over(slot, shares, self.memory[name])

    def _variance(self, row: Floats, kappa: float) -> float:
        return float(self.rule.variance(row[:, None], np.array([kappa]), self.memory["rule"])[0])

    def _emit(self, f: Floats, target: Any, out: Floats) -> None:
        """The scores before the target is used, and whether they were wrong."""
        if self.loss.target == "several":
            out[:] = f
            self.mistakes += int(self.loss.base.target == "binary" and bool((target * f <= 0).any()))  # type: ignore[attr-defined]
            return
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

    def _pass_time(self, fade: float, block: Floats) -> list[Event]:
        """Time has passed before a row is learned: f and what is known of it fade; with 0 nothing is left."""
        e = self.expansion
        if fade == 0.0:
            return self._forget_all(block)
        if fade != 1.0:
            keep = self.rule.fade(fade, self.memory["rule"])
            e.shrink(keep, Trace(keep, 0.0, None, e.rate) if len(e.trace) else None)
            e.fold()
        return []

    def _forget_all(self, block: Floats) -> list[Event]:
        for name, part in self._parts():
            part.forgotten(self.memory[name])
        events = self._forget(block)
        e = self.expansion
        e.scale, e.trace_scale, e.norm2, e.mix, e.inner = 1.0, 1.0, 0.0, 0.0, 0.0
        return events

    def _forget(self, block: Floats) -> list[Event]:
        return [self._remove(slot, block) for slot in reversed(range(self.expansion.size))]

    def _remove(self, slot: int, block: Floats) -> Event:
        last = self.expansion.size - 1
        self.expansion.remove(slot)
        for name, part in self._parts():
            part.removed(slot, self.expansion, self.memory[name])
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
        numbers = {name: getattr(e, name) for name in NUMBERS}
        return {**arrays, **counts, **numbers, **{name: part.pack(self.memory[name]) for name, part in self._parts()}}

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
        self.memory = {name: part.unpack(state[name], e.size) for name, part in self._parts()}
        if e.gram is not None and gram is not None:
            e.gram = np.array(gram, dtype=np.float64)


def _moves(step: Step) -> bool:
    """Whether a step moves the model, or SVMD's trace, along k(x, .)."""
    moved = bool(np.any(step.coefficient))
    return moved or (step.trace is not None and bool(np.any(step.trace.coefficient)))
