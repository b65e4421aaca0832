"""Projection of an expansion on fewer points, all at once: for `merge`, and for the mean that ``fit`` ends with.

The coefficients on points with the Gram matrix K that come nearest to a function f are K^-1 f(points). A budget that
projects while rows come keeps K^-1 itself instead, by rank-one updates (`gossamer.budgets.gram_inverse`).
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, lapack, solve
from threadpoolctl import ThreadpoolController

from gossamer import _checks
from gossamer._sparse import TABLES
from gossamer._typing import Array, Floats

#: The largest number of points of all models together if points must be removed: their Gram matrix is inverted.
MOST_POINTS = 8192
#: The jitter on the diagonal of a Gram matrix, as a share of its mean: its first value, and its growth on failure.
JITTER, MORE_JITTER = 1e-12, 100.0
#: Points removed between two inversions, which restore the accuracy lost by rank-one updates.
BETWEEN = 256
#: A share of the largest k(x, x), added to the diagonal before the projection: points may nearly coincide.
MEAN_JITTER = 1e-8


def project(kernel: Any, points: Any, others: Any, coefs: Floats) -> Floats:
    """The coefficients on the points that come nearest to sum_j coefs_j k(others_j, .) in the kernel's space."""
    values = np.zeros((len(points), len(coefs)))
    step = max(1, 2**22 // len(points))
    for start in range(0, len(others), step):
        part = slice(start, start + step)
        values += np.asarray(kernel(points, others[part]), dtype=np.float64) @ coefs[:, part].T
    gram: Array = np.asarray(kernel(points, points), dtype=np.float64)
    gram[np.diag_indices_from(gram)] += MEAN_JITTER * float(gram.diagonal().max())
    with one_thread():
        try:
            return np.asarray(solve(gram, values, assume_a="pos").T)
        except LinAlgError:  # the kernel of float32 rows may be off by more than the jitter
            return np.asarray(np.linalg.lstsq(gram, values, rcond=1e-6)[0].T)


def one_thread() -> Any:
    """A context in which BLAS has one thread: several would wait for each other on busy processors."""
    return _blas().limit(limits=1, user_api="blas")


@functools.cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def gram_matrix(kernel: Any, points: Any, others: Any = None) -> Floats:
    """Kernel values in double precision."""
    if isinstance(points, TABLES):
        points, others = (None if x is None else x.astype(np.float64) for x in (points, others))
    return np.asarray(kernel(points, points if others is None else others), dtype=np.float64)


def reduce(
    kernel: Any, points: Any, kinds: list[Floats], metric: Floats, limit: int | None
) -> tuple[Array, list[Floats], float, float]:
    """The remaining points, the coefficients of each kind on them, the loss of the first kind, and its norm."""
    count = len(points)
    if limit is not None and count > limit and count > MOST_POINTS:
        raise _checks.wrong("merge", "models", f"of at most {MOST_POINTS} points together", count)
    if limit is None or count <= limit:
        square = inner_product(kernel, points, kinds[0], metric @ kinds[0])
        return np.arange(count), kinds, 0.0, math.sqrt(max(0.0, square))
    gram = gram_matrix(kernel, points)
    kept = choose_points(gram, kinds[0], metric, limit)
    factor = _factor(gram[np.ix_(kept, kept)])
    reduced = [cho_solve(factor, gram[kept] @ coefs.T).T for coefs in kinds]
    lost = kinds[0].copy()
    lost[:, kept] -= reduced[0]
    return kept, reduced, _norm(gram, lost, metric), _norm(gram, kinds[0], metric)


def project_metric(gram: Floats, metric: Floats, kept: Array) -> Floats:
    """P A P' for the projection P on the points that remain."""
    if len(kept) == len(gram):
        return metric
    share = cho_solve(_factor(gram[np.ix_(kept, kept)]), gram[kept])
    return np.asarray(share @ metric @ share.T)


def choose_points(gram: Floats, coefs: Floats, metric: Floats, limit: int) -> Array:
    """The points that remain after the point whose projection on the rest loses least is removed, repeatedly."""
    alive, coefs = np.arange(len(gram)), coefs.copy()
    while len(alive) > limit:
        inverse = _invert(gram[np.ix_(alive, alive)])
        left = np.ones(len(alive), dtype=bool)
        for _ in range(min(BETWEEN, len(alive) - limit)):
            loss = np.sum(coefs * (metric @ coefs), axis=0) / np.maximum(inverse.diagonal(), 1e-300)
            out = int(np.argmin(np.where(left, loss, math.inf)))
            row = inverse[out].copy()
            coefs -= np.outer(coefs[:, out], row / row[out])
            inverse = blas.dger(-1.0 / row[out], row, row, a=inverse, overwrite_a=True)  # in place, Fortran's order
            coefs[:, out], inverse[out], inverse[:, out], inverse[out, out] = 0.0, 0.0, 0.0, 1.0
            left[out] = False
        alive, coefs = alive[left], coefs[:, left]
    return alive


def _factor(gram: Floats) -> tuple[Floats, bool]:
    """A Cholesky factor of a Gram matrix, with the smallest jitter on its diagonal that succeeds."""
    jitter = JITTER * float(np.mean(gram.diagonal()))
    while True:
        try:
            factor: tuple[Floats, bool] = cho_factor(gram + jitter * np.eye(len(gram)), lower=True)
            return factor
        except np.linalg.LinAlgError:
            jitter = max(jitter * MORE_JITTER, 1e-300)


def _invert(gram: Floats) -> Floats:
    factor, lower = _factor(gram)
    inverse, problem = lapack.dpotri(factor, lower=lower)
    assert problem == 0
    triangle = np.tril(inverse)
    return np.asfortranarray(triangle + np.tril(triangle, -1).T)


def _norm(gram: Floats, coefs: Floats, metric: Floats) -> float:
    """||f||, never the root of a negative rounding."""
    return math.sqrt(max(0.0, float(np.sum((coefs @ gram) * (metric @ coefs)))))


def inner_product(kernel: Any, points: Any, coefs: Floats, others: Floats, rows: int = 1024) -> float:
    """<f, g> of two expansions on the same points, in parts, for any number of them."""
    total = 0.0
    for start in range(0, len(points), rows):
        part = slice(start, start + rows)
        total += float(np.sum((coefs @ gram_matrix(kernel, points, points[part])) * others[:, part]))
    return total
