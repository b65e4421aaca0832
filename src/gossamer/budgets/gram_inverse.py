"""Q = K^-1, the inverse Gram matrix of the support points, kept by rank-one updates, for budgets that project."""

from __future__ import annotations

import math

import numpy as np

from gossamer._typing import Floats
from gossamer.budgets.base import LEAST_PIVOT, Departure, project_row

#: Changes between two checks of the error of Q ...
CHECK_EVERY = 64
#: ... and the error of K Q - I from which Q is rebuilt.
MOST_ERROR = 1e-8


class Inverse:
    """Q, and the part of a newcomer inside the span of the points.

    With the newcomer's kernel values k: d = Q k are its ``weights`` on the points, k.d = ``inside`` is the squared
    norm of its part in their span, r = k(x, x) - k.d the ``residual``, that of its part outside. Q with the
    newcomer is [[Q + dd'/r, -d/r], [-d'/r, 1/r]], and the part of point i outside the span of the others has the
    squared norm 1 / Q_ii.
    """

    def __init__(self) -> None:
        self.matrix: Floats = np.zeros((0, 0))
        self.active = False  # Q is built when the budget is full for the first time
        self.age = 0  # changes since the error of Q was last checked
        self.due = False  # whether Q is being built, though points have been removed meanwhile
        self.weights: Floats = np.zeros(0)
        self.inside = self.residual = 0.0

    def clear(self) -> None:
        """No points."""
        self.matrix, self.active, self.age = np.zeros((0, 0)), False, 0

    @property
    def triangle(self) -> Floats:
        """The lower triangle, row by row; nothing where there is no Q."""
        return np.asarray(self.matrix[np.tril_indices(len(self.matrix))])

    @classmethod
    def from_triangle(cls, triangle: Floats, size: int, age: int) -> Inverse:
        """Q of ``size`` points from its lower triangle."""
        made = cls()
        made.age = age
        if len(triangle):
            lower = np.zeros((size, size))
            lower[np.tril_indices(size)] = triangle
            made.matrix, made.active = lower + np.tril(lower, -1).T, True
        return made

    def solve(self, row: Floats, kappa: float) -> None:
        """The part of a newcomer inside the span; row: its kernel values."""
        self.weights = self.matrix @ row
        self.inside, self.residual = project_row(row, self.weights, kappa)

    @property
    def diagonal(self) -> Floats:
        """Q_ii after the newcomer has joined."""
        return np.asarray(np.diag(self.matrix) + self.weights**2 / self.residual)

    def append(self) -> None:
        """Append the newcomer."""
        self.matrix = np.pad(self.matrix, (0, 1))
        self._update(np.append(self.weights, -1.0) / math.sqrt(self.residual), None)

    def replace(self, slot: int) -> Floats:
        """The newcomer takes the place of a slot, whose function is projected on the others and the newcomer; returns
        their shares in it, the newcomer's at ``slot``."""
        first, own = self.weights.copy(), self.weights[slot] / self.residual
        second = self.matrix[slot] + self.weights * own
        pivot = float(second[slot])
        first[slot], second[slot] = -1.0, -own
        self.matrix[slot], self.matrix[:, slot] = 0.0, 0.0
        self._update(first / math.sqrt(self.residual), second / math.sqrt(pivot))
        return np.asarray(-second / pivot)

    def remove(self, slot: int) -> None:
        """Remove a point; the last point takes its slot."""
        second, last = self.matrix[slot].copy(), len(self.matrix) - 1
        self._update(None, second / math.sqrt(second[slot]))
        self.matrix[slot], self.matrix[:, slot] = self.matrix[last], self.matrix[:, last]
        self.matrix[slot, slot] = self.matrix[last, last]
        self.matrix = self.matrix[:last, :last].copy()
        if not last:
            self.clear()

    def _update(self, first: Floats | None, second: Floats | None) -> None:
        self.age += 1
        if second is not None:
            self.matrix -= np.outer(second, second)
        if first is not None:
            self.matrix += np.outer(first, first)

    def worn(self, slot: int, gram: Floats) -> bool:
        """Whether Q has lost its accuracy and must be rebuilt: a diagonal entry is not positive, or the error of a row,
        which is checked from time to time, is too large."""
        own = np.diag(self.matrix)
        if not ((own > 0) & (own < math.inf)).all():
            return True
        if self.age < CHECK_EVERY:
            return False
        self.age = 0
        error = gram @ self.matrix[slot]
        error[slot] -= 1.0
        return not float(np.abs(error).max()) <= MOST_ERROR

    def make(self, gram: Floats, tolerance: float = -math.inf) -> list[Departure]:
        """Build Q from the kernel values of the points, by a Cholesky factor.

        Points whose part outside the span of those before them is at most ``tolerance`` of k(x, x) are returned: they
        must be removed, and Q built again without them.
        """
        departures: list[Departure] = []
        m, kept = len(gram), np.zeros(0, dtype=np.int64)
        solved: Floats = np.zeros((0, 0))  # L^-1 of the kept
        for point in range(m):
            kappa = float(gram[point, point])
            lower = solved @ gram[point, kept]
            weights, pivot = solved.T @ lower, kappa - float(lower @ lower)
            if pivot <= tolerance * kappa:
                shares = np.zeros(m)
                shares[kept] = weights
                departures.append(Departure(point, shares, pivot if pivot > LEAST_PIVOT * kappa else 0.0))
                continue
            root = math.sqrt(max(pivot, LEAST_PIVOT * kappa))
            solved = np.pad(solved, (0, 1))
            solved[-1, :-1], solved[-1, -1] = -weights / root, 1.0 / root
            kept = np.append(kept, point)
        if departures:
            self.clear()
            for place, gone in enumerate(departures):
                nearest = np.zeros(m)
                nearest[kept] = solved.T @ (solved @ gram[gone.slot, kept])
                departures[place] = gone._replace(nearest=nearest)
        else:
            self.matrix, self.active, self.age = solved.T @ solved, True, 0
        return departures
