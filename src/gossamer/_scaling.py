"""Features with large values, drawn in."""

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
