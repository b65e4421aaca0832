"""Products and distances of all pairs of rows, of arrays and of sparse rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from gossamer._sparse import SparseRows, shared_columns
from gossamer._typing import Array

#: Sparse rows of either side that are compared at once, as arrays of the columns in use.
AT_ONCE = 64


def products(A: Any, B: Any) -> Array:
    """<a, b> for all pairs."""
    if isinstance(A, SparseRows):
        a, b = shared_columns(A, B)
        return np.asarray((a @ b.T).toarray())
    return np.asarray(A @ B.T)


def distances(A: Any, B: Any, metric: str) -> Array:
    """Distances of all pairs by differences, in the metric of SciPy's ``cdist``, in double precision."""
    if not isinstance(A, SparseRows):
        return np.asarray(cdist(A, B, metric))
    out = np.empty((len(A), len(B)))
    for i in range(0, len(A), AT_ONCE):
        for j in range(0, len(B), AT_ONCE):
            a, b = shared_columns(A[i : i + AT_ONCE], B[j : j + AT_ONCE])
            out[i : i + AT_ONCE, j : j + AT_ONCE] = cdist(a.toarray(), b.toarray(), metric)
    return out


def squared_distances(A: Any, B: Any, gamma: float = 1.0) -> Array:
    """||a - b||^2 for all pairs, accurate enough for exp(-gamma ||a - b||^2).

    A matrix product, of arrays centred at the mean of B, where its rounding is harmless; differences where it is not.
    """
    a, b = (A, B) if isinstance(A, SparseRows) else _centred(A, B)
    with np.errstate(over="ignore", invalid="ignore"):
        lengths = _lengths(a), _lengths(b)
        reach = gamma * (lengths[0].max(initial=0.0) + lengths[1].max(initial=0.0))
    if not reach <= (64.0 if A.dtype == np.float32 else 65536.0):
        return distances(A, B, "sqeuclidean").astype(A.dtype, copy=False)
    squares = lengths[0][:, None] + lengths[1][None, :] - 2 * products(a, b)
    return np.asarray(np.maximum(squares, 0, out=squares))


def _centred(A: Array, B: Array) -> tuple[Array, Array]:
    center = B.mean(axis=0) if len(B) else np.zeros(A.shape[1], dtype=A.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return A - center, B - center


def _lengths(rows: Any) -> Array:
    return rows.squared_norms() if isinstance(rows, SparseRows) else np.asarray((rows * rows).sum(axis=1))
