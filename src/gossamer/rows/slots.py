"""Slots for rows that wait, used again and again: one array of dense rows, or the non-zeros of sparse ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer._sparse import SparseRows, sparse_from_stored
from gossamer._typing import Array


class DenseSlots:
    """Rows of an array.

    >>> slots = DenseSlots(2, np.float64)
    >>> slots.grow(3)
    >>> slots.put([2, 0], np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> slots.take([0, 2]).tolist()
    [[3.0, 4.0], [1.0, 2.0]]
    """

    def __init__(self, width: int, dtype: Any) -> None:
        self.width = width
        self._rows: Array = np.zeros((0, width), dtype=dtype)

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, count: int) -> None:
        """Add slots."""
        self._rows = np.concatenate([self._rows, np.zeros((count, self.width), dtype=self._rows.dtype)])

    def put(self, places: list[int], X: Array) -> None:
        """Fill slots with rows."""
        self._rows[places] = X

    def take(self, places: list[int]) -> Array:
        """The rows of some slots."""
        return np.asarray(self._rows[places])

    def to_stored(self, places: list[int]) -> Any:
        """The rows of some slots, as a file has them."""
        return self.take(places)


class SparseSlots:
    """Columns and values of each row, in arrays of their own: memory goes with the non-zeros.

    >>> from scipy.sparse import csr_array
    >>> slots = SparseSlots(9, np.float64)
    >>> slots.grow(2)
    >>> slots.put([1], SparseRows.of(csr_array(([5.0], ([0], [7])), shape=(1, 9))))
    >>> slots.take([1]).indices.tolist(), slots.take([1]).data.tolist()
    ([7], [5.0])
    """

    def __init__(self, width: int, dtype: Any) -> None:
        self.width, self._dtype = width, dtype
        self._rows: list[tuple[Array, Array] | None] = []

    def __len__(self) -> int:
        return len(self._rows)

    def grow(self, count: int) -> None:
        """Add slots."""
        self._rows += [None] * count

    def put(self, places: list[int], X: SparseRows) -> None:
        """Fill slots with rows."""
        rows = X.astype(self._dtype)
        for place, row in zip(places, rows, strict=True):
            self._rows[place] = row.columns.copy(), row.values.copy()  # not views, which keep all rows of a call

    def take(self, places: list[int]) -> Any:
        """The rows of some slots, as a CSR array."""
        return self._gather(places).tocsr()

    def to_stored(self, places: list[int]) -> Any:
        """The rows of some slots, as a file has them."""
        return self._gather(places).to_stored()

    def _gather(self, places: list[int]) -> SparseRows:
        found = [self._rows[place] for place in places]
        return join_rows([row for row in found if row is not None], self.width, self._dtype)


#: Either of them.
Slots = DenseSlots | SparseSlots


def join_rows(rows: list[tuple[Array, Array]], width: int, dtype: Any = np.float64) -> SparseRows:
    """Sparse rows from the columns and values of each."""
    starts = np.cumsum([0, *(len(columns) for columns, _ in rows)], dtype=np.int64)
    columns = np.concatenate([np.zeros(0, dtype=np.int32), *(columns for columns, _ in rows)]).astype(np.int32)
    values = np.concatenate([np.zeros(0, dtype=dtype), *(values for _, values in rows)]).astype(dtype)
    return SparseRows(starts, columns, values, width)


def make_slots(X: Any) -> Slots:
    """Empty slots for rows such as these."""
    kind = SparseSlots if isinstance(X, SparseRows) else DenseSlots
    return kind(int(X.shape[1]), X.dtype)


def from_stored(found: Any) -> Slots:
    """Slots filled with the rows of a file, which may be forged; raises a ValueError for what are none."""
    rows: Any = sparse_from_stored("held.rows", found) if isinstance(found, dict) else found
    fits = isinstance(rows, (np.ndarray, SparseRows)) and rows.ndim == 2 and rows.dtype.kind == "f"
    if not fits or not np.isfinite(rows.values if isinstance(rows, SparseRows) else rows).all():
        raise ValueError("held.rows")
    made = make_slots(rows)
    made.grow(len(rows))
    if len(rows):
        made.put(list(range(len(rows))), rows)
    return made
