"""Late labels: a model remembers the rows that it was shown by id, and learns them when their labels come."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError

from gossamer import _checks
from gossamer._sparse import longest_row, sparse_rows
from gossamer._typing import Array
from gossamer.rows.pending import Pending

Method = TypeVar("Method", bound=Callable[..., Any])


class LateLabels:
    """The methods of a model whose labels come later.

    >>> from gossamer import SILKRegressor
    >>> model = SILKRegressor("linear", C=10.0)
    >>> model.predict([[1.0], [2.0]], ids=["a", "b"]).tolist()  # nothing is learned yet
    [nan, nan]
    >>> model.learn_labels(["b"], [2.0]).tolist(), model.n_seen_, len(model.pending_)
    ([nan], 1, 1)
    """

    def keep_pending(self, limit: int = 1_000_000, ttl: Any = None, spill: str | None = None) -> Any:
        """How rows wait for their labels: the most of them, how long ("7 days"), a file of SQLite instead of memory.

        Rows that wait already are forgotten. Without this, a million rows wait in memory, for ever.
        """
        self.__dict__["_late"] = Pending(limit, ttl, spill)
        return self

    @property
    def pending_(self) -> Pending:
        """The rows that wait, with ``counts`` of what became of the others."""
        found: Pending = self.__dict__.setdefault("_late", Pending())
        return found

    @property
    def _locked_first(self) -> Any:
        """`learn_labels` takes the lock of the waiting rows, and within that the lock of the model."""
        return self.__dict__.get("_late")

    def learn_labels(self, ids: Any, y: Any, *, time: Any = None) -> Array:
        """Learn labels of rows that were shown by ``predict(X, ids=...)``, in the order in which they come.

        Returns the prediction that was made for each; NaN or None where the id is unknown, had its label already, or
        waited too long: ``pending_.counts`` has the numbers of these.
        """

        def learn(rows: Array, labels: Array) -> None:
            count = rows.shape[0]
            when = {} if not self._timed() else {"time": None if time is None else np.full(count, float(time))}
            self.partial_fit(rows, labels, **when)  # type: ignore[attr-defined]

        return as_answers(self, self.pending_.join(ids, y, learn, time))

    def _timed(self) -> bool:
        """Whether the model forgets by the clock: then ``time`` is when the labels came."""
        return getattr(self, "half_life", None) is not None

    def _remember(self, ids: Any, X: Any, made: Array, time: Any) -> None:
        self.pending_.add(ids, X, np.asarray(made).tolist(), time)


def check_pending(model: Any, learned: dict[str, Any]) -> None:
    """Raise unless what waits for labels in a file is that."""
    late = learned.get("_late")
    if "_late" in learned and (not isinstance(late, Pending) or late.keyed):
        raise _checks.wrong(model, "_late", "rows that wait for labels", late)


def as_answers(model: Any, made: list[Any]) -> Array:
    """Predictions, with NaN or None where there is none."""
    if getattr(model, "task", "") == "classification":
        known = all(label is not None for label in made)
        return np.array(made) if known and made else np.array(made, dtype=object)
    width = max((len(value) for value in made if isinstance(value, list)), default=0)  # of several targets
    nothing = [np.nan] * width if width else np.nan
    return np.array([nothing if value is None else value for value in made], dtype=np.float64)


def _read_rows(model: Any, X: Any) -> Any:
    """Rows to be remembered: an array of finite numbers, or sparse rows."""
    if not issparse(X):
        return _checks.matrix(model, X)
    rows = sparse_rows(model, X)
    if len(rows):
        longest_row(model, rows)  # raises for NaN and infinity
    return rows


def remembers(method: Method) -> Method:
    """Give ``predict`` of an estimator the parameters ``ids`` and ``time``."""

    @functools.wraps(method)
    def predict(self: Any, X: Any, *args: Any, ids: Any = None, time: Any = None, **options: Any) -> Any:
        if ids is None:
            if time is not None:
                raise _checks.wrong(self, "time", "left out without ids", time)
            return method(self, X, *args, **options)
        rows = _read_rows(self, X)
        try:
            made = method(self, X, *args, **options)
        except NotFittedError:  # the first label is still to come
            made = as_answers(self, [None] * len(rows))
        self._remember(ids, rows, made[0] if isinstance(made, tuple) else made, time)
        return made

    return cast(Method, predict)
