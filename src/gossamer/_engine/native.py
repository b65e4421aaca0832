"""The compiled engine, and what all engines share: rows of a call, the twins of the parts.

An engine keeps the points of a learner and computes kernel values. `Native` leaves everything to the core. `Trees`
does too, for additive kernels: a search tree for each coordinate takes the place of kernel values. `Blocks` calls the
kernel in Python, a block of rows at a time, keeps the points itself, and hands the numbers to a loop: the core's, or
`gossamer._engine.loop.Loop` where a part has no C++ twin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from gossamer import _core
from gossamer._engine.state import State
from gossamer._sparse import TABLES, SparseRows
from gossamer._typing import Floats, Ints
from gossamer.budgets import Budget
from gossamer.kernels import Kernel
from gossamer.losses import Loss
from gossamer.rules import Rule

#: Rows learned between two checks for Ctrl-C.
CHUNK = 8192


@dataclass
class Batch:
    """The data of the rows of X besides X itself, and the arrays for what is found about them."""

    y: Floats | None
    weights: Floats | None
    rates: Floats | None  # None: the rule's own schedule
    ids: Ints | None  # None: every row is a new example
    scores: Floats  # (rows, outputs)
    levels: Floats
    variances: Floats | None = None  # s^2 of each row before it is learned, of a rule that has it
    fades: Floats | None = None  # what the time since the row before leaves of the model; None: all

    def cut(self, part: slice) -> list[Any]:
        """The data of some of the rows."""
        given = (self.y, self.weights, self.rates, self.ids)
        values = (*given, self.scores, self.levels, self.variances, self.fades)
        return [None if value is None else value[part] for value in values]


class Settings(Protocol):
    """The parts and options that an engine is built from; a Learner satisfies it."""

    kernel: Kernel
    loss: Loss
    rule: Rule
    budget: Budget
    average: str | None
    track_norm: bool


def compiled_parts(s: Settings) -> dict[str, Any] | None:
    """Loss, rule and budget for the core, or None if one of them has no C++ twin."""
    parts = {"loss": s.loss.compiled(), "rule": s.rule.compiled(), "budget": s.budget.compiled()}
    return None if None in parts.values() else parts


class Native:
    """Kernel, points and loop in compiled code."""

    backend = "native"
    #: Whether only the non-zeros of rows and points are kept.
    sparse = False

    def __init__(self, settings: Settings, X: Any) -> None:
        parts = compiled_parts(settings)
        assert parts is not None
        self.dtype = X.dtype
        self.kernel, self._own = settings.kernel, own_states(settings)
        self.core: Any = self._make(settings, X)(
            average=settings.average or "none",
            gram=settings.track_norm,
            epsilon=rounding(X),
            features=X.shape[1],
            **parts,
        )

    def _make(self, settings: Settings, X: Any) -> Callable[..., Any]:
        program = settings.kernel.program(X.shape[1])
        assert program is not None
        core = _core.Learner32 if X.dtype == np.float32 else _core.Learner64
        return partial(core, kernel=program)

    def _into(self, X: Any) -> Any:
        """Rows as the core takes them."""
        return X

    def _out_of(self, points: Any) -> Any:
        """Points as the core gives them."""
        return points

    @property
    def steps(self) -> int:
        return int(self.core.steps)

    @property
    def known(self) -> int:
        return int(self.core.known)

    def learn(self, X: Any, batch: Batch) -> None:
        for part in chunks(len(X)):
            self.core.learn(self._into(X[part]), *batch.cut(part))

    def score(self, X: Any, mean: bool, levels: Floats | None = None) -> Floats:
        """The scores, a column for each output; in ``levels`` the level when each row was scored."""
        scores = np.empty((len(X), self.core.outputs))
        for part in chunks(len(X)):
            level = self.core.score(self._into(X[part]), scores[part], mean)
            if levels is not None:
                levels[part] = level
        return scores

    def variance(self, X: Any) -> Floats:
        """The variance that is left at each row, of a rule that learns it."""
        found = np.empty(len(X))
        for part in chunks(len(X)):
            self.core.variance(self._into(X[part]), found[part])
        return found

    def points(self) -> Any:
        return self._out_of(self.core.points())

    def coefs(self) -> Floats:
        """The effective coefficients of the points, a row for each output."""
        return self.state(points=False).coefs

    def number(self, name: str) -> float:
        """One number of the state."""
        return self.core.number(name)  # type: ignore[no-any-return]

    def squared_norm(self, coefs: Floats, joint: Floats) -> float:
        """||f||^2 for coefficients of the present points, and as the label kernel joins them."""
        return float(np.sum((coefs @ np.asarray(self.core.gram())) * joint))

    def state(self, points: bool = True) -> State:
        """A snapshot of the state, without the kernel values of a tracked norm: the core recomputes them to the bit."""
        state = as_state(self.core.state(points=points), self.kernel, self._own)
        if points:
            state.points, state.dropped_points = self._out_of(state.points), self._out_of(state.dropped_points)
        return state

    def restore(self, state: State) -> None:
        self.core.restore(state.for_loop(), self._into(state.points), self._into(state.dropped_points))


class SparseNative(Native):
    """The same for sparse rows: memory in proportion to the non-zeros of the points, the bits of dense rows."""

    sparse = True

    def _make(self, settings: Settings, X: SparseRows) -> Callable[..., Any]:
        self._width = X.width
        core = _core.Sparse32 if X.dtype == np.float32 else _core.Sparse64
        program = settings.kernel.program(X.width)
        assert program is not None
        return partial(core, kernel=program)

    def _into(self, X: SparseRows) -> Any:
        return X.arrays

    def _out_of(self, points: Any) -> SparseRows:
        starts, columns, values = points
        return SparseRows(starts, columns, values, self._width)


def own_states(settings: Settings) -> dict[str, dict[str, Any]]:
    """The initial states of the parts."""
    return {"budget": settings.budget.initial_state(), "rule": settings.rule.initial_state()}


def as_state(found: dict[str, Any], kernel: Kernel, own: dict[str, dict[str, Any]]) -> State:
    """Make a `State` from the entries of a loop; the core leaves out empty entries of the parts."""
    parts = {name: {**first, **found[name]} for name, first in own.items()}
    return State(kernel=kernel, **{"points": None, **found, **parts})


def rounding(X: Any) -> float:
    """The share of the score below which a step is lost in the rounding of the kernel values."""
    dtype = X.dtype if isinstance(X, TABLES) else np.float64
    return 4 * float(np.finfo(dtype).eps)


def chunks(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices that cover the rows in order."""
    return (slice(start, start + size) for start in range(0, rows, size))
