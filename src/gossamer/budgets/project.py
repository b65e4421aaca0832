"""Budgets that project: the function of an evicted point is expressed by the remaining points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.budgets.base import AGAIN, LARGEST_GRAM, LEAST_PIVOT, REFUSE, Admission, Budget, Newcomer
from gossamer.budgets.gram_inverse import Inverse

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion


class _Projecting(Budget):
    """The base of `Project` and `Auto`. Its state has Q, the inverse Gram matrix of the points, once it is needed."""

    size: int | None
    tolerance: float

    def admit(self, newcomer: Newcomer, expansion: Expansion, state: dict[str, Any]) -> Admission:
        e, inverse, room = expansion, state["inverse"], self.room(state)
        tolerance = max(self.tolerance, LEAST_PIVOT)
        if not inverse.active:
            if e.size < room and not inverse.due:
                return Admission(e.size)
            inverse.due = True  # full for the first time: evict all points that lie in the span of the others
            return Admission(AGAIN, departures=inverse.make(e.gram, tolerance))
        if inverse.due:
            inverse.due = False
            inverse.solve(newcomer.row, newcomer.kappa)
        state["known"] = inverse.residual <= tolerance * newcomer.kappa
        slot = REFUSE if state["known"] else e.size if e.size < room else self.least(newcomer, e, inverse)
        if slot == REFUSE:
            return Admission(REFUSE, inverse.weights)
        if slot == e.size:
            inverse.append()
            return Admission(slot)
        pivot = float(inverse.diagonal[slot])
        return Admission(slot, inverse.replace(slot), pivot)

    def least(self, newcomer: Newcomer, expansion: Expansion, inverse: Inverse) -> int:
        """The slot whose removal loses least once the newcomer is there; `REFUSE` if that is the newcomer itself."""
        losses = expansion.weights2 / inverse.diagonal
        least, size = float(losses.min()), math.sqrt(expansion.square(newcomer.move))
        if (size / expansion.scale) ** 2 * inverse.residual < least:
            return REFUSE
        slots = np.flatnonzero(losses == least)
        return int(slots[np.argmin(expansion.births[slots])])

    def inside(self, row: Floats, kappa: float, state: dict[str, Any]) -> float | None:
        inverse: Inverse = state["inverse"]
        if not inverse.active:
            return None
        inverse.solve(row, kappa)
        return inverse.inside if inverse.residual <= self.tolerance * kappa else None

    def placed(self, slot: int, expansion: Expansion, state: dict[str, Any]) -> None:
        inverse = state["inverse"]
        if inverse.worn(slot, expansion.gram) if inverse.active else self.at_once:
            inverse.make(expansion.gram)

    def removed(self, slot: int, expansion: Expansion, state: dict[str, Any]) -> None:
        if state["inverse"].active:
            state["inverse"].remove(slot)

    def forgotten(self, state: dict[str, Any]) -> None:
        state["inverse"].clear()

    def pack(self, state: dict[str, Any]) -> dict[str, Any]:
        inverse: Inverse = state["inverse"]
        numbers = {name: state[name] for name in self.initial_state()}
        return {**numbers, "inverse": inverse.triangle, "inverse_age": inverse.age}

    def unpack(self, state: dict[str, Any], size: int) -> dict[str, Any]:
        return {**state, "inverse": Inverse.from_triangle(state["inverse"], size, state["inverse_age"])}

    def initial_state(self) -> dict[str, Any]:
        return {"inverse": np.zeros(0), "inverse_age": 0}

    def check_state(self, state: dict[str, Any], size: int) -> None:
        inverse = state["inverse"]
        if not 0 <= state["inverse_age"] <= 2**62:
            raise _wrong("inverse_age", "an int in [0, 2**62]", state["inverse_age"])
        if not len(inverse):
            return
        if len(inverse) != size * (size + 1) // 2:
            raise _wrong("inverse", f"the lower triangle of a matrix of {size} rows", f"{len(inverse)} numbers")
        diagonal = inverse[np.cumsum(np.arange(1, size + 1)) - 1]
        if not (np.isfinite(inverse).all() and (diagonal > 0).all()):
            raise _wrong("inverse", "finite, and positive on its diagonal", "another")

    def room(self, state: dict[str, Any]) -> int:
        """The number of support points kept now."""
        return self.limit

    @property
    def limit(self) -> int:
        return LARGEST_GRAM if self.size is None else self.size

    @property
    def needs_gram(self) -> bool:
        return True

    @property
    def at_once(self) -> bool:
        """Whether newcomers are projected before the budget is full."""
        return False


@dataclass(frozen=True)
class Project(_Projecting):
    """Give up the point that the others can replace best, and let them: its function is projected on their span.

    With Q the inverse Gram matrix of the points, the newcomer included, the part of term i that the others cannot
    express has the squared norm a_i^2 / Q_ii. The term with the least goes, a_j <- a_j - a_i Q_ji / Q_ii, and that part
    alone is lost. An update costs O(size^2), a row without one nothing more; 16 size^2 bytes are kept. A newcomer in
    the span of the points is not stored: it is learned inside the span.

    Until it is full for the first time this is no budget at all, to the bit. With a perceptron's steps it is the
    Projectron (Orabona, Keshet, Caputo 2008); ``size=None`` is the original, whose size the tolerance bounds.

    Parameters
    ----------
    size : the number of support points kept, at most 4,096; None: 4,096, and newcomers are projected from the start.
    tolerance : a newcomer is in the span if the squared norm of its part outside is at most this share of k(x, x).

    >>> Project(100)
    Project(size=100, tolerance=0.001)
    """

    twin: ClassVar[str] = "project"
    size: int | None = 256
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        if self.size is not None:
            _checks.whole(self, "size", self.size, 1)
        _checks.number(self, "tolerance", self.tolerance, 0.0, 1.0, closed="left")

    @property
    def at_once(self) -> bool:
        return self.size is None

    def numbers(self) -> tuple[float, ...]:
        return (float(self.limit), self.tolerance, float(self.at_once), 0.0, 0.0)


@dataclass(frozen=True)
class Auto(_Projecting):
    """`Project` with an adaptive size: it doubles while the losses matter, up to a limit of memory.

    A window is as many losses as there are points. If the norms of what was lost in it add up to more than ``share``
    of the norm of f, there is twice the room from then on (``learner.discarded`` counts all of it).

    Parameters
    ----------
    memory : the most bytes for the points and the two matrices of `Project`.
    start : the number of support points to begin with.
    share : the share of the norm of f that a window may lose.
    size : the largest number of points, from ``memory`` and the first rows.

    >>> Auto(memory=1_000_000).resolve(np.zeros((1, 20))).size
    243
    """

    twin: ClassVar[str] = "auto"
    tolerance: ClassVar[float] = 1e-3  # type: ignore[misc]
    memory: float = 8e6
    start: int = 64
    share: float = 0.1
    size: int | None = None

    def __post_init__(self) -> None:
        _checks.number(self, "memory", self.memory, 0.0, math.inf, closed="right")
        _checks.whole(self, "start", self.start, 1)
        _checks.number(self, "share", self.share, 0.0, math.inf)
        if self.size is not None:
            _checks.whole(self, "size", self.size, 1)

    def initial_state(self) -> dict[str, Any]:
        return {**super().initial_state(), "room": 0.0, "window": 0, "window_lost": 0.0}

    def check_state(self, state: dict[str, Any], size: int) -> None:
        super().check_state(state, size)
        for name, most in (("room", 2**31), ("window", 2**62)):
            if not 0 <= state[name] <= most:
                raise _wrong(name, f"a number in [0, {most}]", state[name])

    def resolve(self, X: Any) -> Budget:
        if self.size is not None:
            return self
        row = X.shape[1] * X.dtype.itemsize if isinstance(X, np.ndarray) else 0  # of sparse rows, no two have as many
        half = (row + 64) / 2  # bytes of a point and its numbers: 16 m^2 + 2 half m <= memory
        most = (math.sqrt(half * half + 16 * min(self.memory, 1e12)) - half) / 16
        return replace(self, size=min(LARGEST_GRAM, max(self.start, int(most))))

    def room(self, state: dict[str, Any]) -> int:
        return min(self.limit, max(int(state["room"]), self.start))

    def lost(self, norm: float, expansion: Expansion, state: dict[str, Any]) -> None:
        if state["known"]:  # a newcomer in the span becomes no point, however large the budget is
            return
        state["window_lost"] += norm
        state["window"] += 1
        if state["window"] < self.room(state):
            return
        if state["window_lost"] > self.share * math.sqrt(expansion.squared_norm):
            state["room"] = float(min(self.limit, 2 * self.room(state)))
        state["window"], state["window_lost"] = 0, 0.0

    def numbers(self) -> tuple[float, ...]:
        return (float(self.limit), self.tolerance, float(min(self.start, self.limit)), self.share)


def _wrong(name: str, rule: str, got: Any) -> ValueError:
    return _checks.wrong("Learner", f"state.budget[{name!r}]", rule, got)
