"""The engines of `gossamer.budgets.features`: a loop over features whose slots are the coordinates of a space."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._engine.blocks import Blocks
from gossamer._engine.expansion import Expansion
from gossamer._engine.loop import Event, Loop
from gossamer._engine.native import Native, Settings, chunks, compiled_parts, rounding
from gossamer._engine.select import Machine, make_machine
from gossamer._engine.state import State
from gossamer._typing import Array, Floats
from gossamer.budgets.base import Newcomer
from gossamer.budgets.features import Whitening, waves


class FiniteNative(Native):
    """Features, weights and loop in compiled code."""

    def _make(self, settings: Settings, X: Array) -> Callable[..., Any]:
        budget: Any = settings.budget
        self.waves = budget.fixed
        core = _core.Finite32 if X.dtype == np.float32 else _core.Finite64
        return partial(core, **budget.core_options(settings.kernel, X))

    def points(self) -> Array:
        return self._doubled(super().points())

    def state(self, points: bool = True) -> State:
        state = super().state(points)
        return state.replace(points=self._doubled(state.points)) if points else state

    def _doubled(self, points: Array) -> Array:
        """A frequency has a cosine and a sine."""
        return np.concatenate([points, points]) if self.waves else points

    def coefs(self) -> Floats:
        return np.asarray(self.core.coefs())


class Weights(Expansion):
    """The weights of a space of features, a slot per coordinate, a row per output; the counterpart of `Expansion`."""

    #: The features of the current row: one more than there are weights if the row joins the dictionary.
    z: Floats

    def turn(self, direction: Floats) -> None:
        self._settle_sums()
        self.raw += direction / self.scale

    def place(self, slot: int, new: Newcomer, birth: int, name: int) -> None:
        """f <- f + move <z, .>: all weights move."""
        while self.size < len(self.z):
            super().place(self.size, new._replace(move=np.zeros_like(new.move), v=None), birth, name)
        self._settle_sums()
        self.raw += np.outer(new.move / self.scale, self.z)
        if new.trace_move is not None:
            self.trace += np.outer((new.trace_move - self.mix * new.move) / self.trace_scale, self.z)
            self.inner = float(np.sum(self.coefs * self.trace_coefs))
        self.norm2 = max(0.0, float(np.sum(self.coefs * self.joint(self.coefs))))  # exact: the space is Euclidean


class WeightsLoop(Loop):
    """THE LOOP with `Weights`."""

    expansion: Weights
    prior = 1.0  # k(x, x) of the current row, with its part outside of the space

    def _variance(self, row: Floats, kappa: float) -> float:
        return super()._variance(row, self.prior)

    def _expansion(self, average: str | None, gram: bool, labels: Floats | None) -> Weights:
        return Weights(average, gram, labels, self.rule.needs_trace)

    def _placed(self, slot: int) -> None:
        self.rule.absorbed(self.expansion.z, self.memory["rule"])  # a row is a sum of the coordinates

    def _forget(self, block: Floats) -> list[Event]:
        e = self.expansion
        e._settle_sums()
        e.raw[:], e.trace[:], e.inner = 0.0, 0.0, 0.0
        return []


class FiniteBlocks(Blocks):
    """The kernel is called in Python on blocks, its values become features, and the loop runs in NumPy."""

    loop: WeightsLoop

    def __init__(self, settings: Settings, X: Any) -> None:
        super().__init__(settings, X, compiled=False)
        parts = (settings.loss, settings.rule, settings.budget)
        self.loop = WeightsLoop(*parts, average=settings.average, gram=False, epsilon=rounding(X))
        budget: Any = settings.budget
        self.budget, self.whitening = budget, Whitening()
        if budget.fixed:
            frequencies = budget.frequencies(settings.kernel, X)
            self._points.set(np.concatenate([frequencies, frequencies]))
            self.loop.expansion.z = np.zeros(budget.size)
            nothing = np.zeros(self.loop.expansion.outputs)
            self.loop.expansion.place(0, Newcomer(np.zeros(0), 1.0, nothing, nothing), 1, -1)

    def learn(self, X: Any, batch: Any) -> None:
        size = len(self.whitening)
        try:
            super().learn(X, batch)
        except BaseException:
            self.whitening.cut(size)
            raise

    def _learn_block(self, X: Any, batch: list[Any]) -> None:
        if self.budget.fixed:
            z = waves(self._points.view()[: self.budget.size // 2], X)
            for t in range(len(X)):
                self._learn_row(t, z[:, t], 1.0, batch)
            return
        self._test(X)
        size, rows, least = self._points.size, len(X), self.budget.least(self.dtype)
        values = np.asarray(self.kernel(self._points.with_rows(X), X), dtype=np.float64)
        cross, kappas = values[size:], self._kappas(X, values[size:])
        z = np.concatenate([self.whitening.features(values[:size]), np.zeros((rows, rows))])
        for t in range(rows):
            m = self._points.size
            inside = float(z[:m, t] @ z[:m, t])
            rest = kappas[t] - inside
            joins = m < self.budget.size and rest > least * kappas[t]
            if joins:
                z[m, t] = np.sqrt(rest)
            kappa = kappas[t] if joins else inside if inside > max(1e-300, least * kappas[t]) else 0.0
            self.loop.prior = float(kappas[t])
            self._learn_row(t, z[: m + joins, t], kappa, batch)
            if self.loop.expansion.size > m:
                self.whitening.append(z[:m, t], z[m, t])
                self._points.put(m, X[t])
                z[m, t + 1 :] = (cross[t, t + 1 :] - z[:m, t] @ z[:m, t + 1 :]) / z[m, t]

    def _learn_row(self, t: int, z: Floats, kappa: float, batch: list[Any]) -> None:
        part = slice(t, t + 1)
        self.loop.expansion.z = z
        block = np.append(z[: self.loop.expansion.size], 0.0)[:, None]
        one: list[Any] = [None if value is None else value[part] for value in batch]
        self.loop.run(block, np.zeros((1, 1)), np.array([kappa]), *one)

    def _features(self, X: Any) -> Floats:
        points = self._points.view()
        if self.budget.fixed:
            return waves(points[: self.budget.size // 2], X)
        if not len(points):
            return np.zeros((0, len(X)))
        return self.whitening.features(np.asarray(self.kernel(points, X), dtype=np.float64))

    def score(self, X: Any, mean: bool, levels: Floats | None = None) -> Floats:
        e = self.loop.expansion
        if levels is not None:
            levels[:] = self.number("level")
        rounds = max(self.loop.steps, 1)
        weights, offset = (e.total / rounds, e.offset_sum / rounds) if mean else (e.coefs, e.offset)
        scores = [self._features(X[part]).T @ e.joint(weights).T for part in chunks(len(X), 1024)]
        return np.asarray(np.concatenate(scores) + offset)

    def coefs(self) -> Floats:
        weights = self.loop.expansion.coefs
        if self.budget.fixed:
            return np.asarray(weights / np.sqrt(self.budget.size // 2))
        return self.whitening.coefs(weights)

    def tracked(self) -> Floats | None:
        """L, which is stored, as a kernel in Python rounds by the shape of its call."""
        return None if self.budget.fixed else self.whitening.factor.copy()

    def restore(self, state: State) -> None:
        m, size = len(state.points), self.budget.size
        if m > size or (m < size and self.budget.fixed):
            raise _checks.wrong("Learner", "state.points", f"as many as {self.budget} keeps", m)
        self._points.set(state.points)
        self.loop.restore(state.for_loop(), None)
        if self.budget.fixed:
            return
        factor = state.gram
        self.whitening = Whitening()
        if factor is not None:
            if np.triu(factor, 1).any() or not (np.isfinite(factor).all() and (factor.diagonal() > 0).all()):
                raise _checks.wrong("Learner", "state.gram", "a Cholesky factor", factor)
            self.whitening.factor = np.array(factor)
        elif m:
            try:
                self.whitening.factor = np.asarray(np.linalg.cholesky(self.gram()), dtype=np.float64)
            except np.linalg.LinAlgError:
                raise _checks.wrong("Learner", "state.points", "linearly independent", m) from None


def make_learning_machine(settings: Settings, X: Any, backend: str) -> Machine:
    """The engine for a budget of features."""
    budget: Any = settings.budget
    if not budget.space:
        return make_machine(settings, X, backend)
    compiled = isinstance(X, np.ndarray) and compiled_parts(settings) is not None
    native = compiled and (budget.fixed or settings.kernel.program(X.shape[1]) is not None)
    if backend == "native" and not native:
        names = [type(part).__name__ for part in (settings.kernel, settings.loss, settings.rule, budget)]
        raise _checks.wrong("Learner", "backend", f"'auto' or 'numpy' for the parts {names}", backend)
    return FiniteNative(settings, X) if native and backend != "numpy" else FiniteBlocks(settings, X)
