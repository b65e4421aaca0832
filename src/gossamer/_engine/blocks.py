"""The NumPy engine: kernel values by blocks of rows, then the loop over each block."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from gossamer import _core
from gossamer._engine.loop import BLEND, PLACE, REMOVE, Loop
from gossamer._engine.native import Batch, Settings, as_state, chunks, compiled_parts, own_states, rounding
from gossamer._engine.state import State
from gossamer._sparse import TABLES, SparseRows, stack
from gossamer._typing import Floats
from gossamer.kernels import check_kernel

#: The number of support points from which trees beat kernel values (measured by benchmarks/additive.py).
CROSSOVER = 256

#: The number of points on which a kernel written in Python is validated.
TESTED = 32


class Pool:
    """The points of `Blocks`: rows of one growing array, or a list of objects."""

    def __init__(self, like: Any) -> None:
        self.numeric = isinstance(like, np.ndarray)
        self.values: Any = np.empty((0, *like.shape[1:]), dtype=like.dtype) if self.numeric else []
        self.size = 0

    def view(self) -> Any:
        """The points, one per slot."""
        return self.values[: self.size]

    def with_rows(self, X: Any) -> Any:
        """The points and the rows of X behind them."""
        if not self.numeric:
            return [*self.view(), *X]
        self._room(self.size + len(X))
        self.values[self.size : self.size + len(X)] = X
        return self.values[: self.size + len(X)]

    def put(self, slot: int, x: Any) -> None:
        """Append x, or overwrite a slot."""
        if slot == self.size:
            self.size += 1
            if self.numeric:
                self._room(self.size)
            else:
                self.values.append(None)
        self.values[slot] = x

    def move_last(self, slot: int) -> None:
        """Move the last point to the slot of a removed point."""
        self.size -= 1
        self.values[slot] = self.values[self.size]
        if not self.numeric:
            self.values.pop()

    def blend(self, slot: int, other: int, h: float) -> None:
        """The point of a slot becomes h of itself and 1 - h of another."""
        self.values[slot] = h * self.values[slot] + (1 - h) * self.values[other]

    def set(self, points: Any) -> None:
        """Replace all points."""
        self.values, self.size = (points.copy() if self.numeric else list(points)), len(points)

    def copy(self) -> Any:
        """A copy of the points."""
        return self.view().copy() if self.numeric else list(self.view())

    def _room(self, rows: int) -> None:
        if rows > len(self.values):
            grown = np.empty((max(rows, 2 * len(self.values)), *self.values.shape[1:]), dtype=self.values.dtype)
            grown[: len(self.values)] = self.values
            self.values = grown


class SparsePool(Pool):
    """The points of sparse rows, each kept by itself."""

    def __init__(self, like: SparseRows) -> None:
        super().__init__([])
        self._none = like[:0]

    def view(self) -> Any:
        return stack([self._none, *self.values])

    def with_rows(self, X: Any) -> Any:
        return stack([self._none, *self.values, X])

    def blend(self, slot: int, other: int, h: float) -> None:
        made = h * self.values[slot].tocsr() + (1 - h) * self.values[other].tocsr()
        self.values[slot] = SparseRows.of(made.astype(self._none.dtype, copy=False))

    def copy(self) -> Any:
        return self.view()


def make_pool(like: Any) -> Pool:
    """A pool without points, for rows like these."""
    return SparsePool(like) if isinstance(like, SparseRows) else Pool(like)


class Blocks:
    """A kernel called in Python on blocks; points are rows of numbers or any objects. For one thread at a time: the
    Learner has the lock."""

    def __init__(self, settings: Settings, X: Any, compiled: bool) -> None:
        self.kernel, self._own = settings.kernel, own_states(settings)
        self.average = settings.average
        self.dtype = X.dtype if isinstance(X, TABLES) else None
        self.sparse = isinstance(X, SparseRows)
        self._points, self._dropped, self._seen = make_pool(X), make_pool(X), make_pool(X)
        known = isinstance(X, TABLES) and settings.kernel.program(X.shape[1]) is not None
        self._tested = TESTED if known else 0
        self._tracks = settings.track_norm
        labels = getattr(settings.loss, "label_kernel", None)
        self._labels = None if labels is None else np.array(labels)
        parts = compiled_parts(settings) if compiled else None
        self.loop: Any
        if parts is not None:
            self.backend = "native loop, numpy kernel"
            self.loop = _core.Loop(average=settings.average or "none", gram=self._tracks, epsilon=rounding(X), **parts)
        else:
            self.backend = "numpy"
            three = (settings.loss, settings.rule, settings.budget)
            self.loop = Loop(*three, average=settings.average, gram=self._tracks, epsilon=rounding(X))

    @property
    def steps(self) -> int:
        return int(self.loop.steps)

    @property
    def known(self) -> int:
        return int(self.loop.known)

    def learn(self, X: Any, batch: Batch) -> None:
        start, before = 0, (self.loop.copy(), self._points.copy(), self._dropped.copy())
        try:
            while start < len(X):
                part = slice(start, start + min(max(self._points.size // 2, 16), 128))
                self._learn_block(X[part], batch.cut(part))
                start = part.stop
        except BaseException:  # a user's kernel or loss has failed: restore the state before the call
            self.loop = before[0]
            self._points.set(before[1])
            self._dropped.set(before[2])
            raise

    def copy(self) -> Blocks:
        """A machine that goes on from here by itself; the kernel is not called."""
        made = copy.copy(self)
        made.loop = self.loop.copy()
        for name in ("_points", "_dropped", "_seen"):
            pool = copy.copy(getattr(self, name))
            pool.set(pool.copy())
            setattr(made, name, pool)
        return made

    def _learn_block(self, X: Any, batch: list[Any]) -> None:
        points = self._points
        self._test(X)
        size, rows = points.size, len(X)
        block = np.zeros((size + rows, -(-rows // 16) * 16))
        block[:, :rows] = self.kernel(points.with_rows(X), X)  # against the points and against each other, at once
        cross = block[size:, :rows].copy()
        events = self.loop.run(block, cross, self._kappas(X, cross), *batch)
        for kind, first, second in np.asarray(events, dtype=np.int64).reshape(-1, 3).tolist():
            slot = {PLACE: second, REMOVE: first, BLEND: first >> 32}[kind]
            if self.average == "all" and slot < points.size:
                self._dropped.put(self._dropped.size, points.values[slot])
            if kind == PLACE:
                points.put(slot, X[first])
            elif kind == REMOVE:
                points.move_last(slot)
            else:
                h, other = float(np.int64(second).view(np.float64)), first & 0xFFFFFFFF
                points.blend(slot, other, h)

    def _kappas(self, X: Any, cross: Floats) -> Floats:
        """k(x, x) of the rows, tiny values rounded to zero."""
        # diag is the same in every block, so that equal weights stay equal
        kappas = cross.diagonal() if self.kernel.slow_diag else np.asarray(self.kernel.diag(X), dtype=np.float64)
        if kappas.min() < -1e-9 * np.abs(cross).max():
            raise ValueError(f"The kernel {type(self.kernel).__name__} has k(x, x) = {kappas.min():g} < 0.")
        return np.where(kappas > 1e-300, kappas, 0.0)

    def _test(self, X: Any) -> None:
        """Check that the kernel matrix of the first rows is symmetric and positive semidefinite: each time their number
        has doubled, up to `TESTED`."""
        if self._tested >= TESTED:
            return
        for x in X[: TESTED - self._seen.size]:
            self._seen.put(self._seen.size, x)
        if self._seen.size >= 2 * self._tested:
            check_kernel(self.kernel, self._seen.view())
            self._tested = self._seen.size

    def score(self, X: Any, mean: bool, levels: Floats | None = None) -> Floats:
        """The scores, a column for each output, and in ``levels`` the level."""
        state = self.state(points=False)
        if levels is not None:
            levels[:] = state.level
        state.points, state.dropped_points = self._points.view(), self._dropped.view()
        points, coefs, offset = state.mean() if mean else (state.points, state.coefs, state.offset)
        if self._labels is not None:
            coefs = self._labels @ coefs
        if not len(points):
            return np.full((len(X), len(coefs)), float(offset))
        scores = [self.kernel(X[part], points) @ coefs.T for part in chunks(len(X), 1024)]
        return np.asarray(np.concatenate(scores) + offset)

    def points(self) -> Any:
        return self._points.copy()

    def coefs(self) -> Floats:
        """The effective coefficients of the points, a row for each output."""
        return self.state(points=False).coefs

    def number(self, name: str) -> float:
        """One number of the state."""
        return getattr(self.state(points=False), name)  # type: ignore[no-any-return]

    def gram(self) -> Floats:
        points = self._points.view()
        if not len(points):
            return np.zeros((0, 0))
        return np.ascontiguousarray(self.kernel(points, points), dtype=np.float64)

    def squared_norm(self, coefs: Floats, joint: Floats) -> float:
        return float(np.sum((coefs @ self.gram()) * joint))

    def state(self, points: bool = True) -> State:
        """A snapshot of the state."""
        state = as_state(self.loop.state(), self.kernel, self._own)
        if points:
            state.points, state.dropped_points = self._points.copy(), self._dropped.copy()
            state.gram = self.tracked()
        return state

    def tracked(self) -> Floats | None:
        """The kernel values of a tracked norm; stored, as a kernel in Python rounds by the shape of its call."""
        gram: Floats | None = self.loop.gram()
        return gram

    def restore(self, state: State) -> None:
        self._points.set(state.points)
        self._dropped.set(state.dropped_points)
        gram = state.gram if self._tracks else None
        self.loop.restore(state.for_loop(), self.gram() if self._tracks and gram is None else gram)
