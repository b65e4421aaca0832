"""The state of a learner: a snapshot of everything it has learned, in numbers and arrays.

`State` is all that the store, the bank, merging, averaging and the widening to a third class handle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gossamer._sparse import TABLES, SparseRows, sparse_from_stored, stack
from gossamer._typing import Array, Floats, Ints
from gossamer.budgets import Budget
from gossamer.kernels import Kernel
from gossamer.rules import Rule

#: The version of `State`; that of 0.1.0 was a flat dict.
VERSION = 2
#: What a file has of the budget beside the other entries, as 0.1.0 wrote it; its numbers are there for every budget.
FLAT: dict[str, Any] = {"spent": 0.0, "room": 0.0, "window": 0, "window_lost": 0.0, "inverse_age": 0}
#: The entries of a file in order.
STORED = (
    "raw", "trace", "summed", "dropped", "kappas", "entered", "births", "ids", "inverse", "level", "scale",
    "trace_scale", "offset", "norm2", "mix", "inner", "rate", "rounds_scale", "offset_sum", "refresh_in", "discarded",
    *FLAT, "known", "steps", "updates", "mistakes", "shape", "points", "dropped_points", "gram", "moments", "budget",
    "rule", "time",
)  # fmt: skip
#: The entries that change when a score for two classes becomes a score per class: f = g_1 - g_0, g_1 = -g_0.
HALVED = ("raw", "trace", "summed", "dropped")
#: Entries that a file has only if they are not empty.
OPTIONAL = ("inverse", "shape", "moments", "budget", "rule")


@dataclass(eq=False)
class State:
    """The learned state of a `Learner`: enough to resume exactly. See ``Learner.state`` and ``Learner.restore``.

    The hypothesis is f_c(x) = scale * sum_i raw[c, i] k(points[i], x) + offset, a row c for each output.

    >>> from gossamer import Learner
    >>> from gossamer.rules import Perceptron
    >>> learner = Learner("linear", "hinge", Perceptron())
    >>> scores = learner.learn([[1.0], [2.0], [-3.0]], [1, 1, -1])
    >>> state = learner.state()
    >>> state.steps, state.coefs.tolist(), state.budget
    (3, [[1.0]], {})
    """

    kernel: Kernel  # as settled
    points: Any  # (m, features), or a list of objects; None in a state without points
    raw: Floats  # (outputs, m), as are trace and summed
    trace: Floats  # SVMD's v = trace_scale * trace + mix * f; no rows without one
    summed: Floats  # the sum of each coefficient over the rounds before it was last settled
    dropped: Floats  # (outputs, dropped points): the same of terms that left, where the mean keeps them
    kappas: Floats  # k(x, x)
    entered: Floats  # rounds_scale when the coefficient was last settled
    births: Ints  # the round in which each point came
    ids: Ints
    level: float  # the margin, epsilon or delta
    scale: float
    trace_scale: float
    offset: float
    norm2: float
    mix: float
    inner: float  # <f, v>
    rate: float
    rounds_scale: float  # the sum of the scale over the rounds
    offset_sum: float
    refresh_in: int
    discarded: float
    known: int  # classes
    steps: int
    updates: int
    mistakes: int
    dropped_points: Any = None
    gram: Floats | None = None  # kernel values that a kernel in Python would not give again to the bit
    shape: Array | None = None  # of search trees
    moments: Floats | None = None  # of the coordinates of a learner that rescales its rows
    budget: dict[str, Any] = field(default_factory=dict)  # numbers and arrays that the budget alone understands
    rule: dict[str, Any] = field(default_factory=dict)  # the same for the rule
    time: float | None = None  # of the last row, in seconds, where there is a half-life
    version: int = VERSION

    @property
    def coefs(self) -> Floats:
        """The effective coefficients of the points, a row for each output."""
        return np.asarray(self.scale * self.raw)

    @property
    def trace_coefs(self) -> Floats:
        """The effective coefficients of SVMD's trace."""
        return np.asarray(self.trace_scale * self.trace + self.mix * self.scale * self.raw)

    @property
    def sums(self) -> Floats:
        """The sum of each coefficient over the rounds that were averaged."""
        return np.asarray(self.summed + self.raw * (self.rounds_scale - self.entered))

    def mean(self) -> tuple[Any, Floats, float]:
        """The points, coefficients and offset of the mean of all hypotheses, with the points that were dropped."""
        rounds, coefs = max(int(self.steps), 1), np.column_stack([self.sums, self.dropped])
        return stack([self.points, self.dropped_points]), coefs / rounds, float(self.offset_sum) / rounds

    def replace(self, **entries: Any) -> State:
        """The state with other entries."""
        return dataclasses.replace(self, **entries)

    def copy(self) -> State:
        """A state that shares no array with this one."""
        return State(**{name: _copy(value) for name, value in vars(self).items()})

    def widened(self, share: float) -> State:
        """The state of a score for two classes as a state of a score for each: g_1 = -g_0 = share * f."""
        rows = {name: getattr(self, name) for name in HALVED}
        halves = {name: np.vstack([-share * values, share * values]) for name, values in rows.items() if len(values)}
        return self.replace(**halves, norm2=2 * share**2 * self.norm2, inner=2 * share**2 * self.inner, known=2)

    def faded(self, factor: float, rule: Rule, time: float) -> State:
        """The state after time has passed until ``time``, which leaves this factor (`gossamer.clock`)."""
        if factor == 1.0:
            return self.replace(time=time)
        memory = rule.unpack(self.rule, self.raw.shape[1])
        keep = rule.fade(factor, memory)
        return self.replace(
            raw=keep * self.coefs, scale=1.0, summed=self.sums, entered=np.zeros_like(self.entered), rounds_scale=0.0,
            trace=keep * self.trace_coefs if len(self.trace) else self.trace, trace_scale=1.0, mix=0.0,
            norm2=keep**2 * self.norm2, inner=keep**2 * self.inner, rule=rule.pack(memory), time=time,
        )  # fmt: skip

    def negated(self) -> State:
        """The state of the score -f."""
        signs = {name: -getattr(self, name) for name in HALVED}
        return self.replace(**signs, offset=-self.offset, offset_sum=-self.offset_sum)

    def padded(self, width: int) -> State:
        """The state with columns of zeros at the end of its points, up to this width."""
        if isinstance(self.points, SparseRows):
            return self.replace(points=self.points.padded(width), dropped_points=self.dropped_points.padded(width))
        more = ((0, 0), (0, width - self.points.shape[1]))
        return self.replace(points=np.pad(self.points, more), dropped_points=np.pad(self.dropped_points, more))

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(value.nbytes for _, value in self.items() if isinstance(value, TABLES))

    def items(self) -> Iterator[tuple[str, Any]]:
        """The entries by name, those of the parts as ``budget.name`` and ``rule.name``."""
        for name, value in vars(self).items():
            if isinstance(value, dict):
                yield from ((f"{name}.{key}", entry) for key, entry in value.items())
            else:
                yield name, value

    def for_loop(self) -> dict[str, Any]:
        """The entries that a loop restores: all but the kernel and the points."""
        hidden = ("kernel", "points", "dropped_points", "gram", "moments", "time", "version")
        return {name: value for name, value in vars(self).items() if name not in hidden and value is not None}

    def to_stored(self) -> dict[str, Any]:
        """The entries of a file, without the kernel, which is a parameter. Those that 0.1.0 had stand where they stood,
        so that it reads files of learners that it knows."""
        flat = {name: value for name, value in self.budget.items() if name in (*FLAT, "inverse")}
        own = {name: value for name, value in self.budget.items() if name not in flat}
        entries = {**FLAT, **vars(self), **flat, "budget": own}
        found: dict[str, Any] = {name: _plain(entries.get(name)) for name in STORED}
        empty = [name for name in OPTIONAL if found[name] is None or not len(found[name])]
        empty += ["time"] if self.time is None else []
        return {name: value for name, value in found.items() if name not in empty}

    @classmethod
    def from_stored(cls, stored: dict[str, Any], kernel: Kernel, budget: Budget, rule: Rule) -> State:
        """The state of a file's entries, also of 0.1.0. Missing entries are None, which `check_state` refuses."""
        entries: dict[str, Any] = {"discarded": 0.0, **stored, "kernel": kernel, "version": VERSION}
        for name in ("points", "dropped_points"):
            entries[name] = _unplain(name, entries.get(name))
        for name, part in (("budget", budget), ("rule", rule)):
            nested = entries.get(name, {})
            given = {**entries, **nested} if isinstance(nested, dict) else {}
            entries[name] = {key: given.get(key, value) for key, value in part.initial_state().items()}
        known: dict[str, Any] = {f.name: entries.get(f.name) for f in dataclasses.fields(cls)}
        return cls(**known)


def _plain(value: Any) -> Any:
    """Sparse rows as a dict of arrays, which the store knows."""
    return value.to_stored() if isinstance(value, SparseRows) else value


def _unplain(name: str, value: Any) -> Any:
    """Sparse rows again, validated; any other value as it is."""
    return sparse_from_stored(f"state.{name}", value) if isinstance(value, dict) else value


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy(entry) for name, entry in value.items()}
    return np.array(value) if isinstance(value, np.ndarray) else value
