"""Rows of numbers of which most are 0: only the non-zeros are kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from gossamer import _checks, _core
from gossamer._typing import Array

#: The most features of a sparse row: its columns are 32-bit integers.
MOST_FEATURES = 2**31 - 1


class SparseRows:
    """Rows in compressed form (CSR): row i has the places ``starts[i]`` to ``starts[i + 1]`` of ``columns``, which
    rise and differ, and ``values``. They are immutable.

    >>> rows = SparseRows.of(csr_array([[0.0, 2.0], [0.0, 0.0], [3.0, 1.0]]))
    >>> len(rows), rows.shape, rows[2:].toarray().tolist()
    (3, (3, 2), [[3.0, 1.0]])
    """

    __slots__ = ("columns", "starts", "values", "width")
    ndim = 2

    def __init__(self, starts: Array, columns: Array, values: Array, width: int) -> None:
        self.starts, self.columns, self.values, self.width = starts, columns, values, width

    @classmethod
    def of(cls, X: Any) -> SparseRows:
        """The rows of a sound CSR matrix of float32 or float64."""
        starts, columns = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
        return cls(starts, columns, X.data, int(X.shape[1]))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self), self.width

    @property
    def dtype(self) -> Any:
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        return int(self.starts.nbytes + self.columns.nbytes + self.values.nbytes)

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """As the core takes them."""
        return self.starts, self.columns, self.values

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __iter__(self) -> Iterator[SparseRows]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, place: Any) -> SparseRows:
        """Some of the rows: a slice, an array of places, or one row."""
        if isinstance(place, (int, np.integer)):
            place = slice(place, place + 1)
        if not isinstance(place, slice) or place.step not in (None, 1):
            return SparseRows.of(self.tocsr()[place])
        first, last, _ = place.indices(len(self))
        starts = self.starts[first : max(last, first) + 1]
        part = slice(int(starts[0]), int(starts[-1]))
        return SparseRows(starts - starts[0], self.columns[part], self.values[part], self.width)

    def astype(self, dtype: Any) -> SparseRows:
        return SparseRows(self.starts, self.columns, self.values.astype(dtype, copy=False), self.width)

    def padded(self, width: int) -> SparseRows:
        """The rows with columns of zeros at the end, up to this width."""
        return SparseRows(*self.arrays, width)

    def tocsr(self) -> Any:
        """As SciPy has them."""
        return csr_array((self.values, self.columns, self.starts), shape=self.shape)

    def toarray(self) -> Array:
        return np.asarray(self.tocsr().toarray())

    def squared_norms(self) -> Array:
        """<x, x> of each row."""
        out = np.empty(len(self), dtype=self.dtype)
        _core.squared_norms(self.starts, self.values, out)
        return out

    def variance(self) -> float:
        """The variance of all numbers, with the zeros."""
        count = max(len(self) * self.width, 1)
        values = self.values.astype(np.float64)
        mean = float(values.sum()) / count
        return (float(np.square(values - mean).sum()) + (count - len(values)) * mean * mean) / count

    def copy(self) -> SparseRows:
        """The rows themselves, as they are immutable."""
        return self

    def to_stored(self) -> dict[str, Any]:
        """As a file has them."""
        return {"starts": self.starts, "columns": self.columns, "values": self.values, "width": self.width}

    def __reduce__(self) -> Any:
        return SparseRows, (*self.arrays, self.width)


#: What an engine keeps as rows of numbers; everything else is a list of objects.
TABLES = (np.ndarray, SparseRows)


def stack(parts: Iterable[Any]) -> Any:
    """Rows after rows: of arrays, of sparse rows, or of lists."""
    parts = list(parts)
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    if not isinstance(parts[0], SparseRows):
        return [x for part in parts for x in part]
    offsets = np.cumsum([0, *(part.starts[-1] for part in parts[:-1])])
    starts = [part.starts[1:] + offset for part, offset in zip(parts, offsets, strict=True)]
    columns, values = (np.concatenate([getattr(part, name) for part in parts]) for name in ("columns", "values"))
    return SparseRows(np.concatenate([[np.int64(0)], *starts]), columns, values, parts[0].width)


def shared_columns(A: SparseRows, B: SparseRows) -> tuple[Any, Any]:
    """Two sets of rows as CSR arrays of the columns that either has: for products and differences, since the others add
    nothing, and a column number may be as large as 2**31.

    >>> A, B = (SparseRows.of(csr_array(([1.0], ([0], [column])), shape=(1, 10**9))) for column in (5, 7 * 10**8))
    >>> [rows.toarray().tolist() for rows in shared_columns(A, B)]
    [[[1.0, 0.0]], [[0.0, 1.0]]]
    """
    used = np.unique(np.concatenate([A.columns, B.columns]))

    def narrow(rows: SparseRows) -> Any:
        places = np.searchsorted(used, rows.columns)
        return csr_array((rows.values, places, rows.starts), shape=(len(rows), max(len(used), 1)))

    return narrow(A), narrow(B)


def squared_norms(A: Any) -> Array:
    """<a, a> of every row, sparse or not."""
    return A.squared_norms() if isinstance(A, SparseRows) else np.asarray(np.einsum("ij,ij->i", A, A))


def to_scipy(points: Any) -> Any:
    """Points as a user sees them: sparse ones as a CSR array of SciPy."""
    return points.tocsr() if isinstance(points, SparseRows) else points


def sparse_rows(owner: object, X: Any, width: int | None = None) -> SparseRows:
    """Validate a sparse matrix of any format: rows with rising columns, as float32 or float64. Entries of one place are
    added up, as SciPy does. Whether the values are finite is another question."""
    if X.ndim != 2:
        raise _checks.wrong(owner, "X", "of shape (rows, features)", X.shape)
    if X.dtype.kind == "c":
        raise _checks.wrong(owner, "X", "a matrix of real numbers. Complex data not supported", X.dtype)
    if X.dtype.kind not in "fiub":
        raise _checks.wrong(owner, "X", "a matrix of numbers", X.dtype)
    _checks.check_width(owner, X.shape, width)
    if X.shape[1] > MOST_FEATURES:
        raise _checks.wrong(owner, "X", f"a matrix with at most {MOST_FEATURES} features", X.shape[1])
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    if X.format == "csr":
        check_structure(owner, "X", X.indptr, X.indices, X.data, X.shape)
    with np.errstate(over="ignore"):
        rows = X.tocsr().astype(dtype, copy=False)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return SparseRows.of(rows)


def longest_row(owner: object, X: Any) -> tuple[int, float]:
    """The row of the largest squared norm and that norm, in one pass; raises for NaN or infinity."""
    if isinstance(X, SparseRows):
        norms = X.squared_norms()
        row = int(np.argmax(norms))
        if not np.isfinite(norms[row]) and not np.isfinite(X.values).all():
            place = int(np.argmin(np.isfinite(X.values)))
            where = int(np.searchsorted(X.starts, place, side="right")) - 1
            entry = _checks.Entry(str(X.values[place]), where, int(X.columns[place]))
            raise _checks.wrong(owner, "X", "finite, without NaN or infinity", entry)
        return row, float(norms[row])
    row, norm = _core.longest_row(X)
    if not np.isfinite(norm) and not _core.all_finite(X):
        raise _checks.not_finite(owner, X)
    return row, norm


def from_array(X: Array) -> SparseRows:
    """The rows of a valid array."""
    return SparseRows.of(csr_array(X))


def sparse_from_stored(name: str, found: dict[str, Any]) -> SparseRows:
    """Sparse rows from a file, validated: anything may stand there."""
    kinds = {"starts": (np.int64,), "columns": (np.int32,), "values": (np.float32, np.float64)}
    arrays: list[Any] = [found.get(key) for key in kinds]
    for (key, dtypes), array in zip(kinds.items(), arrays, strict=True):
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype not in dtypes:
            raise _checks.wrong("Learner", f"{name}.{key}", f"a vector of {np.dtype(dtypes[-1])}", array)
    starts, columns, values = arrays
    features = _checks.whole("Learner", f"{name}.width", found.get("width"), 1, MOST_FEATURES)
    if not len(starts) or starts[-1] != len(columns) or len(columns) != len(values):
        raise _checks.wrong("Learner", name, "rows of as many columns as values", len(columns))
    check_structure("Learner", name, starts, columns, values, (len(starts) - 1, features))
    inside = np.full(len(columns), True)
    inside[starts[:-1][starts[:-1] < len(columns)]] = False  # the first of each row
    if (np.diff(columns.astype(np.int64), prepend=-1)[inside] <= 0).any():
        raise _checks.wrong("Learner", name, "rows whose columns rise", "others")
    return SparseRows(starts, columns, values, features)


def check_structure(owner: object, parameter: str, starts: Any, columns: Any, values: Any, shape: Any) -> None:
    """Raise unless the arrays are those of CSR rows; SciPy itself does not look."""
    rows, width = shape
    fits = len(starts) == rows + 1 and starts[0] == 0 and starts[-1] <= min(len(columns), len(values))
    if not fits or (np.diff(starts) < 0).any():
        raise _checks.wrong(owner, parameter, f"CSR with {rows + 1} row starts that rise from 0", starts)
    used = columns[: starts[-1]]
    if len(used) and not (int(used.min()) >= 0 and int(used.max()) < width):
        bad = int(np.argmax((used < 0) | (used >= width)))
        row = int(np.searchsorted(starts, bad, side="right")) - 1
        raise _checks.wrong(owner, parameter, f"CSR with columns from 0 to {width - 1}", f"{used[bad]} in row {row}")
