"""The compiled engine for additive kernels: sums over points in O(log m), in trees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from gossamer import _core
from gossamer._engine.native import Native, Settings, chunks
from gossamer._typing import Array, Floats
from gossamer.kernels.base import flat


class Trees(Native):
    """A semiseparable additive kernel: a search tree per coordinate, in compiled code."""

    backend = "native trees"

    def _make(self, settings: Settings, X: Array) -> Callable[..., Any]:
        coordinates = settings.kernel.coordinates(X.shape[1])
        assert coordinates is not None
        core = _core.Additive32 if X.dtype == np.float32 else _core.Additive64
        return partial(core, coordinates=flat(coordinates))

    def squared_norm(self, coefs: Floats, joint: Floats) -> float:
        points = self.points()
        return float(np.sum(coefs.T * (self.score(points, mean=False) - self.number("offset"))))

    def effects(self, X: Array) -> Floats:
        """The contribution of each coordinate to each score: (rows, coordinates, outputs)."""
        out = np.empty((len(X), self.core.coordinates, self.core.outputs))
        for part in chunks(len(X)):
            self.core.effects(X[part], out[part])
        return out
