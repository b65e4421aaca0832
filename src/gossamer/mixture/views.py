"""The ways in which experts see the rows of a stream.

- "scaled": every feature with mean 0 and deviation 1, as known so far, clipped;
- "squashed": the same with large values drawn in instead of clipped, for features with long tails;
- "rooted": the square roots of the features, scaled, for counts, amounts and shares, which pile up near 0;
- "plain": as they come.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer import _core
from gossamer._scaling import root, squash
from gossamer._typing import Array, Floats

VIEWS = ("scaled", "squashed", "plain", "rooted")
#: Scaled features are clipped to this many deviations: a feature that rested for long jumps far when it moves.
CLIP = 10.0


class Views:
    """A batch of rows, and with ``scaled`` the rows and their roots, scaled; each view is made once, when it is asked
    for."""

    def __init__(self, plain: Array, scaled: Array | None = None) -> None:
        self.plain, self._scaled = plain, scaled
        self._made: dict[str, Array] = {}

    def __len__(self) -> int:
        return len(self.plain)

    def of(self, view: str, shift: Floats | None = None) -> Array:
        """The rows in one of the `VIEWS`; where nothing is scaled, as they come. ``shift`` is added to scaled rows."""
        if self._scaled is None or view == "plain":
            return self.plain
        if shift is not None:
            return _bounded(self.scaled(view) + shift.astype(self.plain.dtype), view)
        if view not in self._made:
            self._made[view] = _bounded(self.scaled(view), view)
        return self._made[view]

    def scaled(self, view: str) -> Array:
        """The scaled rows of a view, before large values are drawn in."""
        assert self._scaled is not None
        own: Array = self._scaled[1 if view == "rooted" else 0]
        return own


def _bounded(rows: Array, view: str) -> Array:
    return squash(rows) if view == "squashed" else np.clip(rows, -CLIP, CLIP)


@dataclass
class Scaling:
    """The mean and the squared deviations of every feature so far and of its root, (2, features), as
    `gossamer.OnlineScaler` learns them.

    >>> scaling = Scaling.of_width(1)
    >>> scaling.learn(np.array([[1.0], [9.0]])).of("scaled").tolist(), scaling.mean.tolist()
    ([[0.0], [1.0]], [[5.0], [2.0]])
    """

    mean: Floats
    squares: Floats
    count: float = 0.0

    @classmethod
    def of_width(cls, width: int) -> Scaling:
        """A scaling that has seen nothing."""
        return cls(np.zeros((2, width)), np.zeros((2, width)))

    def learn(self, rows: Array) -> Views:
        """The views of rows, each row with the statistics up to and with itself."""
        out, before = np.empty((2, *rows.shape), dtype=rows.dtype), self.count
        for k, own in enumerate((rows, root(rows))):
            self.count = _core.scale_rows(own, out[k], self.mean[k], self.squares[k], before, 1.0, True, True)
        return Views(rows, out)

    def look(self, rows: Array) -> Views:
        """The views of rows with the statistics as they are."""
        deviation = np.sqrt(self.squares / self.count)[:, None]
        away = np.stack([rows, root(rows)]).astype(np.float64) - self.mean[:, None]
        return Views(rows, (away / np.where(deviation > 0.0, deviation, np.inf)).astype(rows.dtype))

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands out arrays that cannot be written
        self.__dict__.update({k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})

    def copy(self) -> Scaling:
        """A scaling that shares no array with this one."""
        return Scaling(self.mean.copy(), self.squares.copy(), self.count)
