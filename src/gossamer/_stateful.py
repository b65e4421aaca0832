"""Parts with a state of their own, which the rest of the package stores and copies without interpreting it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer._typing import Floats

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion


class Stateful:
    """The base of rules and budgets: a state of named numbers and arrays, empty by default.

    The loop keeps the state of a part in a dict and hands it to the part's methods, which change it. It is a part of
    the learner's `State`, so it is stored, copied and resumed.
    """

    def initial_state(self) -> dict[str, Any]:
        """The entries before the first row."""
        return {}

    def check_state(self, state: dict[str, Any], size: int) -> None:
        """Validate entries from outside, of the names and types of `initial_state`, for ``size`` points."""

    def covers(self, state: dict[str, Any], size: int) -> bool:
        """Whether valid entries have a share for each of ``size`` points; in spaces of features they may grow later."""
        return True

    def merge_states(self, states: list[dict[str, Any]], size: int) -> dict[str, Any]:
        """The entries for a model of ``size`` points merged of several: numbers of the first; arrays begin anew."""
        first = self.initial_state()
        return {name: value if isinstance(value, np.ndarray) else states[0][name] for name, value in first.items()}

    def unpack(self, state: dict[str, Any], size: int) -> dict[str, Any]:
        """The entries as the methods of the part use them, with ``size`` points: a copy."""
        return {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in state.items()}

    def pack(self, state: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `unpack`: a copy as numbers and arrays."""
        return self.unpack(state, 0)

    # the events of the loop: points change by these alone

    def placed(self, slot: int, expansion: Expansion, state: dict[str, Any]) -> None:
        """The newcomer stands in a slot: in a new one at the end, or in that of a point that has left."""

    def handed_over(self, slot: int, shares: Floats, state: dict[str, Any]) -> None:
        """The function of a point that is about to leave goes to the others: sum_j shares_j k(x_j, .)."""

    def absorbed(self, shares: Floats, state: dict[str, Any]) -> None:
        """The newcomer becomes no point: its step was taken along sum_j shares_j k(x_j, .)."""

    def removed(self, slot: int, expansion: Expansion, state: dict[str, Any]) -> None:
        """A point has left, and the last one has taken its slot."""

    def forgotten(self, state: dict[str, Any]) -> None:
        """All points are about to leave."""
