"""The two ways a learner keeps its points and makes its kernel values.

`Native` leaves everything to the core. `Blocks` calls the kernel in Python, a block of rows at a time, keeps the points
itself, and hands the numbers to a loop: the core's, or `gossamer.expansion.Loop` where a part has no C++ twin.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

from gossamer import _checks, _core
from gossamer._checks import Array
from gossamer.budgets import Budget
from gossamer.expansion import PLACE, Floats, Loop
from gossamer.kernels import Kernel, check_kernel
from gossamer.losses import Loss
from gossamer.rules import Rule

#: Rows learned between two chances for Ctrl-C.
CHUNK = 8192
#: The number of points on which a kernel written in Python is tested.
TESTED = 32


class Settings(Protocol):
    """What a machine is built from; a Learner is one."""

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

    def __init__(self, settings: Settings, X: Array) -> None:
        parts = compiled_parts(settings)
        assert parts is not None
        self.dtype = X.dtype
        core = _core.Learner32 if X.dtype == np.float32 else _core.Learner64
        self.core: Any = core(
            kernel=settings.kernel.program(),
            average=settings.average or "none",
            gram=settings.track_norm,
            epsilon=rounding(X),
            features=X.shape[1],
            **parts,
        )
        self.learn_one = self.core.learn_one
        self.score_one = self.core.score_one

    def learn(
        self, X: Array, y: Floats | None, weights: Floats | None, rates: Floats | None, scores: Floats, levels: Floats
    ) -> None:
        for part in chunks(len(X)):
            self.core.learn(X[part], _cut(y, part), _cut(weights, part), _cut(rates, part), scores[part], levels[part])

    def score(self, X: Array, mean: bool) -> Floats:
        scores = np.empty(len(X))
        for part in chunks(len(X)):
            self.core.score(X[part], scores[part], mean)
        return scores

    def points(self) -> Array:
        return np.asarray(self.core.points())

    def dropped_points(self) -> Array:
        return np.asarray(self.core.dropped_points())

    def gram(self) -> Floats:
        return np.asarray(self.core.gram())

    def state(self) -> dict[str, Any]:
        return dict(self.core.state())

    def restore(self, state: dict[str, Any], points: Array, dropped: Array) -> None:
        self.core.restore(state, points, dropped)


class Blocks:
    """A kernel called in Python on blocks; points are rows of numbers or any objects."""

    def __init__(self, settings: Settings, X: Any) -> None:
        self.kernel = settings.kernel
        self.average = settings.average
        self._points: list[Any] = []
        self._dropped: list[Any] = []
        self._like = X[:0]
        self.dtype = X.dtype if isinstance(X, np.ndarray) else None
        self._tested = 0 if settings.kernel.program() is None else TESTED
        parts = compiled_parts(settings)
        options = (settings.average or "none", settings.track_norm, rounding(X))
        self.loop: Any
        if parts is None:
            self.backend = "numpy"
            self.loop = Loop(settings.loss, settings.rule, settings.budget, settings.average, *options[1:])
        else:
            self.backend = "native loop, numpy kernel"
            self.loop = _core.Loop(parts["loss"], parts["rule"], parts["budget"], *options)
        self._tracks = settings.track_norm

    def learn(
        self, X: Any, y: Floats | None, weights: Floats | None, rates: Floats, scores: Floats, levels: Floats
    ) -> None:
        y = np.zeros(len(X)) if y is None else y
        weights = np.ones(len(X)) if weights is None else weights
        before = None
        try:
            start = 0
            while start < len(X):
                part = slice(start, start + self._rows_at_once())
                if before is None and part.stop < len(X):  # the kernel may yet fail, in a later block
                    before = (self.state(), list(self._points), list(self._dropped))
                self._learn_block(X[part], y[part], weights[part], rates[part], scores[part], levels[part])
                start = part.stop
        except BaseException:
            if before is not None:
                self._points, self._dropped = before[1], before[2]
                self.loop.restore(before[0], self.gram() if self._tracks else None)
            raise

    def _rows_at_once(self) -> int:
        return int(min(max(len(self._points) // 2, 16), 128))

    def _learn_block(
        self, X: Any, y: Floats, weights: Floats, rates: Floats, scores: Floats, levels: Floats
    ) -> None:
        self._test(X)
        size, rows = len(self._points), len(X)
        block = np.zeros((size + rows, -(-rows // 16) * 16))
        if size:
            block[:size, :rows] = self.kernel(self.points(), X)
        cross = np.ascontiguousarray(self.kernel(X, X), dtype=np.float64)
        kappas = np.asarray(self.kernel.diag(X), dtype=np.float64)
        if kappas.min() < -1e-9 * max(1.0, np.abs(kappas).max()):
            raise ValueError(f"The kernel {type(self.kernel).__name__} has k(x, x) = {kappas.min():g} < 0.")
        kappas = np.where(kappas > 1e-300, kappas, 0.0)
        events = self.loop.run(block, cross, kappas, y, weights, rates, scores, levels)
        for kind, first, second in np.asarray(events, dtype=np.int64).reshape(-1, 3).tolist():
            if kind == PLACE:
                self._place(X[first], second)
            else:
                self._leave(first)
                self._points[first] = self._points[second]
                self._points.pop()

    def _place(self, x: Any, slot: int) -> None:
        if isinstance(x, np.ndarray):
            x = x.copy()
        if slot == len(self._points):
            self._points.append(x)
        else:
            self._leave(slot)
            self._points[slot] = x

    def _leave(self, slot: int) -> None:
        if self.average == "all":
            self._dropped.append(self._points[slot])

    def _test(self, X: Any) -> None:
        """Is the kernel one? Asked on the points seen, each time their number has doubled, up to `TESTED`."""
        seen = min(len(self._points) + len(X), TESTED)
        if self._tested >= TESTED or seen < 2 * self._tested:
            return
        check_kernel(self.kernel, self._rows([*self._points, *X][:seen]))
        self._tested = seen

    def _rows(self, points: list[Any]) -> Any:
        if not isinstance(self._like, np.ndarray):
            return points
        return np.array(points, dtype=self.dtype).reshape(len(points), *self._like.shape[1:])

    def learn_one(self, x: Any, y: float, weight: float, rate: float) -> float:
        score, level = np.empty(1), np.empty(1)
        row = x[None, :] if isinstance(x, np.ndarray) else [x]
        self._learn_block(row, np.array([y]), np.array([weight]), np.array([rate]), score, level)
        return float(score[0])

    def score_one(self, x: Any) -> float:
        return float(self.score(x[None, :] if isinstance(x, np.ndarray) else [x], False)[0])

    def score(self, X: Any, mean: bool) -> Floats:
        state = self.state()
        points, coefs, offset = self._points, state["scale"] * state["raw"], state["offset"]
        if mean:
            rounds = max(int(state["steps"]), 1)
            sums = state["summed"] + state["raw"] * (state["rounds_scale"] - state["entered"])
            points = points + self._dropped
            coefs, offset = np.append(sums, state["dropped"]) / rounds, state["offset_sum"] / rounds
        if not points:
            return np.full(len(X), float(offset))
        scores = [self.kernel(X[part], self._rows(points)) @ coefs for part in chunks(len(X), 1024)]
        return np.concatenate([np.zeros(0), *scores]) + offset

    def points(self) -> Any:
        return self._rows(self._points)

    def dropped_points(self) -> Any:
        return self._rows(self._dropped)

    def gram(self) -> Floats:
        if not self._points:
            return np.zeros((0, 0))
        return np.ascontiguousarray(self.kernel(self.points(), self.points()), dtype=np.float64)

    def state(self) -> dict[str, Any]:
        return dict(self.loop.state())

    def restore(self, state: dict[str, Any], points: Any, dropped: Any) -> None:
        self._points, self._dropped = list(points), list(dropped)
        self.loop.restore(state, self.gram() if self._tracks else None)


Machine = Native | Blocks


def make_machine(settings: Settings, X: Any, backend: str) -> Machine:
    """The fastest machine that runs these parts, or the one asked for."""
    native = settings.kernel.program() is not None and compiled_parts(settings) is not None
    if backend == "numpy":
        machine = Blocks(settings, X)
        machine.backend, average = "numpy", settings.average
        machine.loop = Loop(
            settings.loss, settings.rule, settings.budget, average, settings.track_norm, rounding(X)
        )
        return machine
    if backend == "native" and not (native and isinstance(X, np.ndarray)):
        parts = (settings.kernel, settings.loss, settings.rule, settings.budget)
        raise _checks.wrong(
            "Learner", "backend", "'auto' or 'numpy' for parts without compiled twins", [type(p).__name__ for p in parts]
        )
    return Native(settings, X) if native and isinstance(X, np.ndarray) else Blocks(settings, X)


def rounding(X: Any) -> float:
    """A step that moves the score by less than this share of it is lost in the rounding of the kernel values."""
    dtype = X.dtype if isinstance(X, np.ndarray) else np.float64
    return 4 * float(np.finfo(dtype).eps)


def chunks(rows: int, size: int = CHUNK) -> Iterator[slice]:
    """Slices that cover the rows in order."""
    return (slice(start, start + size) for start in range(0, rows, size))


def _cut(values: Floats | None, part: slice) -> Floats | None:
    return None if values is None else values[part]
