"""Map rows into (0, 1) online, for kernels that are defined only there, such as splines.

Each coordinate x has a running mean and deviation, of all rows up to and with the present one, and becomes

    u = (1 + z / sqrt(z^2 + 2)) / 2,    z = (x - mean) / deviation,

the distribution function of Student's t with 2 degrees of freedom: outliers stay apart, and only operations that every
machine rounds alike are used. A row is known before its label, so nothing looks ahead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._engine.state import State
from gossamer._locks import shared
from gossamer._typing import Array, Floats
from gossamer.kernels import Additive
from gossamer.learner import Learner


class _Mapped(np.ndarray[Any, Any]):
    """Marks rows that are mapped already."""


def marked(rows: Array) -> Array:
    """Rows that a `Rescaled` learner is not to map again."""
    return rows.view(_Mapped)


#: Rows per part, so that its temporary arrays stay in the processor's cache.
PART = 1024
#: Standardised values are clipped to this, so that their squares stay finite.
FAR = 1e9


def squash(z: Floats) -> Floats:
    """u of standardised values.

    >>> squash(np.array([-np.sqrt(2.0), 0.0, np.inf])).round(4).tolist()
    [0.1464, 0.5, 1.0]
    """
    z = np.clip(z, -FAR, FAR)
    return np.asarray(0.5 + 0.5 * (z / np.sqrt(z * z + 2.0)))


def no_moments(columns: int) -> Floats:
    """Before the first row: for each column the count, the first value, the sum of the distances from it, and the sum
    of the squared distances from the mean."""
    return np.zeros((4, columns))


def mapped(moments: Floats, P: Array) -> Array:
    """Rows as they are scored, with what is known now; 1/2 where nothing ever changed."""
    count, first, sums, squares = moments
    rounds = np.maximum(count, 1.0)
    deviation = np.sqrt(squares / rounds)
    with np.errstate(over="ignore"):
        away = P.astype(np.float64) - first
    return squash((away - sums / rounds) / np.where(deviation > 0.0, deviation, np.inf)).astype(P.dtype)


def learned(moments: Floats, P: Array, fades: Floats | None = None) -> tuple[Array, Floats]:
    """Rows as they are learned, each with what is known when it comes, and the moments after them.

    The recurrence is that of `targets.follow`, for each column.
    """
    out, moments = np.empty(P.shape, dtype=P.dtype), moments.copy()
    for start in range(0, len(P), PART):
        z = P[start : start + PART].T.astype(np.float64, order="C")
        _core.follow_columns(moments, z, None if fades is None else fades[start : start + PART])
        out[start : start + PART] = squash(z).T
    return out, moments


class Rescaled(Learner):
    """A Learner whose rows are first made the coordinates of ``kernel`` (features, products, differences), each mapped
    into (0, 1) by its own running mean and deviation; points are kept as mapped.

    ``learn`` maps each row with the rows up to and with itself, so that batches do not matter; ``score`` maps with what
    is known then, and changes nothing.

    >>> from gossamer.kernels import Matern
    >>> from gossamer.rules import Implicit
    >>> X = np.random.default_rng(0).normal(100.0, 30.0, size=(500, 2))
    >>> learner = Rescaled(Additive(Matern(1.5, 0.2)), "squared", Implicit())
    >>> y = X[:, 0] / 30.0
    >>> errors = np.abs(learner.learn(X, y) - y)
    >>> round(float(errors[:50].mean()), 2), round(float(errors[-50:].mean()), 2)
    (0.57, 0.08)
    """

    def __init__(self, kernel: Additive, *parts: Any, **options: Any) -> None:
        self.made = kernel
        super().__init__(Additive(kernel.base, kernel.weights), *parts, **options)
        self._moments: Floats | None = None

    @property
    def _extra(self) -> int:
        return len(self.made.products) + len(self.made.differences)

    def check_rows(self, X: Any) -> Any:
        """Validate rows before they are mapped: their coordinates are finite. Mapped rows are valid, as the kernel is
        defined on all of (0, 1)."""
        if isinstance(X, _Mapped):
            rows = np.asarray(X)
            machine = self._machine
            return super().check_rows(rows) if machine is None else rows.astype(machine.dtype, copy=False)
        width = None if self._moments is None else self._moments.shape[1] - self._extra
        X = _checks.matrix(self, X, width)
        if not len(X):
            raise _checks.wrong(self, "X", "at least one row", X.shape)
        machine = self._machine
        if machine is not None:
            with np.errstate(over="ignore"):
                X = X.astype(machine.dtype, copy=False)
        self.coordinates_of(X)
        return X

    @property
    def width(self) -> int:
        """The number of coordinates."""
        return 0 if self._moments is None else int(self._moments.shape[1])

    def coordinates_of(self, X: Array) -> Array:
        """The numbers that are mapped, one column per coordinate."""
        with np.errstate(over="ignore"):
            P = self.made.columns(X)
        if not np.isfinite(P).all():
            raise _checks.not_finite(self, P)
        return P

    def _needs_lock(self) -> bool:
        return True

    def _learn(self, X: Any, y: Any, sample_weight: Any, ids: Any, with_variances: bool, time: Any = None) -> Any:
        P = self.coordinates_of(self.check_rows(X))
        fades = self.elapse(time, len(P))[0]
        rows, moments = learned(no_moments(P.shape[1]) if self._moments is None else self._moments, P, fades)
        if not np.isfinite(moments).all():
            largest = float(np.abs(P).max())
            raise _checks.wrong(self, "X", "small enough for its variance to be finite", largest)
        result = super()._learn(marked(rows), y, sample_weight, ids, with_variances, time)
        self._moments = moments
        return result

    def settle(self, X: Any) -> None:
        """As `Learner.settle`, on the rows as they are learned."""
        if self._machine is None:
            P = self.coordinates_of(self.check_rows(X))
            self.kernel = self.kernel.resolve(learned(no_moments(P.shape[1]), P)[0])

    @shared
    def score_levels(self, X: Any, average: bool = False) -> tuple[Floats, Floats]:
        """As `Learner.score_levels`."""
        return super().score_levels(self.as_scored(X), average)

    @shared
    def effects(self, X: Any) -> Floats:
        """As `Learner.effects`."""
        return super().effects(self.as_scored(X))

    def as_scored(self, X: Any) -> Array:
        """Rows mapped with the present statistics."""
        P = self.coordinates_of(self.check_rows(X))
        return marked(mapped(no_moments(P.shape[1]) if self._moments is None else self._moments, P))

    def mapped_column(self, i: int, places: Array) -> Array:
        """Values of the i-th coordinate, mapped with the present statistics."""
        return places if self._moments is None else mapped(self._moments[:, [i]], places)

    def _use(self, machine: Any) -> None:
        super()._use(None)  # no fast path for single rows: they are to be mapped
        self._made = machine

    @property
    def points(self) -> Any:
        """The support points, as mapped; without the products and differences."""
        points = super().points
        return points[:, : points.shape[1] - self._extra] if points.shape[1] else points

    @property
    def moments(self) -> Floats | None:
        """Count, first value, sum and squares of each coordinate (see `no_moments`); None before the first row."""
        return self._moments

    @shared
    def state(self) -> State | None:
        """As `Learner.state`."""
        state = super().state()
        return None if state is None else state.replace(moments=self._moments)

    def _restore(self, state: State | None) -> None:
        if state is not None:
            self._check_moments(state.moments, state.points)
        super()._restore(state)
        self._moments = None if state is None else state.moments

    def _parameters(self) -> dict[str, Any]:
        kernel = self.kernel
        assert isinstance(kernel, Additive)
        made = Additive(kernel.base, kernel.weights, self.made.products, self.made.differences)
        return {**super()._parameters(), "kernel": made}

    def _relearn(self, learned: dict[str, Any]) -> None:
        moments = learned.get("moments")
        if learned:
            self._check_moments(moments, learned.get("points"))
        super()._relearn(learned)
        self._moments = moments

    def _check_moments(self, moments: Any, points: Any) -> None:
        """Four rows of finite numbers, a column for each coordinate of the points, which lie in (0, 1)."""
        wide = points.shape[1] if isinstance(points, np.ndarray) and points.ndim == 2 else 0
        pairs = [i for pair in (*self.made.products, *self.made.differences) for i in pair]
        fits = isinstance(moments, np.ndarray) and moments.dtype == np.float64 and moments.shape == (4, wide)
        fits = fits and wide > self._extra and max(pairs, default=0) < wide - self._extra
        if not fits or not (np.isfinite(moments).all() and moments[0].min() >= 1 and moments[3].min() >= 0):
            raise _checks.wrong("Learner", "state.moments", f"4 x {wide} numbers of the coordinates", moments)
        if (moments[0] != moments[0, 0]).any() or moments[0, 0] > 2**62:
            raise _checks.wrong("Learner", "state.moments", "of one count", moments[0])

    @property
    def features(self) -> int | None:
        """The features of a row as it comes."""
        return None if self._moments is None else self.width - self._extra
