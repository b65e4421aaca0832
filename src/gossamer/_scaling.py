"""Features with large values, drawn in; features that pile up near 0, spread out."""

from __future__ import annotations

import numpy as np

from gossamer._typing import Array

#: Scaled features are clipped to this before they are drawn in, so that their squares are finite.
FAR = 1e6


def squash(rows: Array) -> Array:
    """z / (1 + z^2)^(1/4) for every entry: z where it is small, the square root of its size where it is large.

    Only operations whose rounding is the same on any machine.

    >>> squash(np.array([0.1, 1.0, 100.0])).round(3).tolist()
    [0.1, 0.841, 10.0]
    """
    near = np.clip(rows, -FAR, FAR)
    return np.asarray(near / np.sqrt(np.sqrt(1 + near * near)))


def root(rows: Array) -> Array:
    """The square root of the size of every entry, with its sign: it spreads small values and draws large ones in.

    >>> root(np.array([-4.0, 0.0, 0.01])).round(3).tolist()
    [-2.0, 0.0, 0.1]
    """
    return np.asarray(np.copysign(np.sqrt(np.abs(rows)), rows))
