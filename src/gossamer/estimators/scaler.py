"""A scaler that learns from a stream: the mean and the deviation of every feature, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array, csr_matrix, issparse, sparray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gossamer import _checks, _core
from gossamer._locks import Snapshot, exclusive, publish
from gossamer._scaling import root, squash
from gossamer._sparse import SparseRows, longest_row, sparse_rows
from gossamer._stored import Stored
from gossamer._typing import Array, Floats
from gossamer.clock import as_half_life, check_time, elapse_rows, to_plain
from gossamer.estimators import inputs
from gossamer.estimators.loaded import check_names
from gossamer.estimators.sparse_scaling import Resting, from_stored

#: The largest number of rows that can be counted.
MOST_ROWS = 2**62
#: The learned attributes of the scaler: numbers and arrays.
LEARNED = ("mean_", "squares_", "weight_", "n_seen_", "n_features_in_", "feature_names_in_", "time_", "resting_")


class OnlineScaler(Stored, Snapshot, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Scale every feature to mean 0 and deviation 1, as known so far.

    With keep = 1 - forget, and for row x in round t (West 1979; Welford 1962 for forget = 0):

        weight <- keep * weight + 1
        away = x - mean;  mean <- mean + away / weight
        squares <- keep * squares + away^2 * (1 - 1 / weight);  variance = squares / weight

    `learn_transform` scales each row with the statistics of the rows up to and with itself: x is known before its
    label, so nothing looks ahead. Any split into batches gives the same bits. A feature that never changed gives 0, and
    so does the first row. Rows may be float32 or float64 and stay so; the statistics are float64.

    Parameters
    ----------
    forget : in [0, 1): the share of its weight that the past loses with each row; about the last 1 / forget rows count.
    half_life : the past loses half of its weight in this time (see `gossamer.HalfLife`): keep is 1 - forget times
        2^-(time since the row before / half_life), and the verbs that learn take the ``time`` of each row.
    with_mean : subtract the mean. Sparse rows cannot be centred: they need False, stay sparse, and are divided only.
    with_std : divide by the deviation.
    squash : draw large values in, z / (1 + z^2)^(1/4), which is the square root of z far from 0: for long tails.
    root : take the square root of the size of every feature first, with its sign: for counts, amounts and shares, which
        pile up near 0.

    Attributes
    ----------
    mean_, var_, scale_ : the mean, variance and deviation of each feature now.
    squares_, weight_, n_seen_ : the weighted sum of squared deviations, the sum of weights, the rows seen.
    time_ : the time of the last row in seconds, where there is a half_life.
    n_features_in_, feature_names_in_ : how many features there are, and their names if they came in a frame.

    Examples
    --------
    >>> scaler = OnlineScaler()
    >>> scaler.learn_transform([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    >>> scaler.mean_.tolist(), round(float(scaler.var_[0]), 3)
    ([2.0, 5.0], 0.667)
    """

    mean_: Floats
    squares_: Floats
    resting_: Resting
    weight_: float
    n_seen_: int
    n_features_in_: int

    def __init__(
        self, forget: float = 0.0, *, with_mean: bool = True, with_std: bool = True, squash: bool = False,
        root: bool = False, half_life: Any = None,
    ) -> None:  # fmt: skip
        self.forget, self.with_mean, self.with_std, self.squash, self.root = forget, with_mean, with_std, squash, root
        self.half_life = half_life

    def fit(self, X: Any, y: Any = None, time: Any = None) -> Any:
        """Forget everything and learn these rows."""
        self._learn(X, time, fresh=True, scale=False)
        return self

    def partial_fit(self, X: Any, y: Any = None, time: Any = None) -> Any:
        """Go on with more rows."""
        self._learn(X, time, fresh=False, scale=False)
        return self

    def learn_transform(self, X: Any, time: Any = None) -> Any:
        """Learn each row and scale it with the statistics up to it; equal to row by row, to the bit."""
        return self._learn(X, time, fresh=False, scale=True)

    def transform(self, X: Any) -> Any:
        """Scale the rows with the statistics of all rows learned, which stay as they are."""
        known = self._known()
        inputs.names(self, X, fitted=True)
        if issparse(X):
            rows = self._sparse(X, known["n_features_in_"])
            deviation = np.sqrt(known["squares_"][rows.columns] * (1.0 / known["weight_"]))
            divisor = np.where(deviation > 0.0, deviation, np.inf) if self.with_std else 1.0
            return _like(X, rows, self._drawn_in((rows.values / divisor).astype(rows.dtype, copy=False)))
        X = self._matrix(X, known["n_features_in_"])
        _checks.all_finite(self, X)
        variance = known["squares_"] * (1.0 / known["weight_"])
        return self._drawn_in(scaled(X, known["mean_"], variance, self.with_mean, self.with_std))

    @property
    def is_linear(self) -> bool:
        """Whether rows are shifted and divided only, which compiled code does too."""
        return not (self.squash or self.root)

    def _drawn_in(self, rows: Array) -> Array:
        return squash(rows) if self.squash else rows

    def _known(self) -> dict[str, Any]:
        """A snapshot of the learned attributes, all of one moment, whatever other threads learn."""
        known: dict[str, Any] = self.__dict__
        if "mean_" not in known:
            check_is_fitted(self)
        return known

    @exclusive
    def _learn(self, X: Any, time: Any, *, fresh: bool, scale: bool) -> Any:
        """Learn the rows and commit at the end: a failure changes nothing. The rows, scaled if that is wanted."""
        forget = self._check_parameters()
        fresh = fresh or "mean_" not in self.__dict__
        if issparse(X):
            if self.half_life is not None or time is not None:
                raise _checks.wrong(self, "half_life", "None for sparse rows, without times", self.half_life)
            return self._learn_sparse(X, fresh, 1.0 - forget)
        names = inputs.names(self, X, fitted=not fresh)
        X = self._matrix(X, None if fresh else self.n_features_in_)
        mean, squares = (np.zeros((2, X.shape[1]))) if fresh else (self.mean_.copy(), self.squares_.copy())
        out: Array | None = np.empty_like(X) if scale else None
        weight, seen = (0.0, 0) if fresh else (self.weight_, self.n_seen_)
        fades, last = elapse_rows(self, self.half_life, None if fresh else self.__dict__.get("time_"), time, len(X))
        weight = _core.scale_rows(X, out, mean, squares, weight, 1.0 - forget, self.with_mean, self.with_std, fades)
        if not np.isfinite(squares).all():  # NaN and infinity stay in a sum, so a test of the sum finds them
            _checks.all_finite(self, X)
            raise _checks.wrong(self, "X", "small enough for its variance to be finite", float(np.abs(X).max()))
        now = {"mean_": mean, "squares_": squares, "weight_": weight, "n_seen_": seen + len(X)}
        if last is not None:
            now["time_"] = last
        if fresh:
            now["n_features_in_"] = int(X.shape[1])
            if names is not None:
                now["feature_names_in_"] = names
        publish(self, now, instead_of=LEARNED if fresh else ("resting_",))
        return np.asarray(X if out is None else self._drawn_in(out))

    def _learn_sparse(self, X: Any, fresh: bool, keep: float) -> Any:
        """The same for sparse rows, which stay so."""
        rows = self._sparse(X, None if fresh else self.n_features_in_)
        zeros = np.zeros(rows.width) if fresh else None
        weight, seen = (0.0, 0) if fresh else (self.weight_, self.n_seen_)
        resting: Resting | None = None if fresh else self.__dict__.get("resting_")
        if resting is None or resting.keep != keep:
            before = (zeros, zeros) if zeros is not None else (self.mean_, self.squares_)
            resting = Resting.begin(*before, weight, keep)
        resting, values = resting.learn(rows, self.with_std)
        mean, squares = resting.settle()
        if not np.isfinite(squares).all():
            largest = float(np.abs(rows.values).max())
            raise _checks.wrong(self, "X", "small enough for its variance to be finite", largest)
        for _ in range(len(rows)):
            weight = keep * weight + 1.0
        now: dict[str, Any] = {"mean_": mean, "squares_": squares, "weight_": weight, "n_seen_": seen + len(rows)}
        now["resting_"] = resting
        if fresh:
            now["n_features_in_"] = rows.width
        publish(self, now, instead_of=LEARNED if fresh else ())
        return _like(X, rows, self._drawn_in(values))

    def _sparse(self, X: Any, width: int | None) -> SparseRows:
        if self.with_mean:
            rule = "False for sparse rows, which centring would fill (cannot center sparse matrices)"
            raise _checks.wrong(self, "with_mean", rule, True)
        rows = sparse_rows(self, X, width)
        if not len(rows):
            raise _checks.wrong(self, "X", "at least one row", rows.shape)
        longest_row(self, rows)
        return SparseRows(rows.starts, rows.columns, root(rows.values), rows.width) if self.root else rows

    def _learned(self) -> dict[str, Any]:
        learned = super()._learned()
        if "resting_" in learned:
            learned["resting_"] = learned["resting_"].to_stored()
        return learned

    def _check_parameters(self) -> float:
        forget = _checks.number(self, "forget", self.forget, 0.0, 1.0, "left")
        for name in ("with_mean", "with_std", "squash", "root"):
            _checks.one_of(self, name, getattr(self, name), [False, True])
        as_half_life(self, self.half_life)
        return forget

    def _matrix(self, X: Any, width: int | None) -> Array:
        rows = _checks.matrix(self, X, width, finite=False)
        if not len(rows):
            raise _checks.wrong(self, "X", "at least one row", rows.shape)
        return root(rows) if self.root else rows

    def _parameters(self) -> dict[str, Any]:
        given = super()._parameters()
        half_life = to_plain(given.pop("half_life"))
        return given if half_life is None else {**given, "half_life": half_life}

    def _relearn(self, learned: dict[str, Any]) -> None:
        """Validate learned attributes from a file before the core sees them."""
        resting = learned.pop("resting_", None)
        super()._relearn(learned)
        self._check_parameters()
        if not learned:
            return
        width = _checks.whole(self, "n_features_in_", learned.get("n_features_in_"), 1)
        if _checks.whole(self, "n_seen_", learned.get("n_seen_"), 1) > MOST_ROWS:
            raise _checks.wrong(self, "n_seen_", f"an int up to {MOST_ROWS}", learned["n_seen_"])
        _checks.number(self, "weight_", learned.get("weight_"), 0.0, np.inf)
        for name in ("mean_", "squares_"):
            found: Any = learned.get(name)
            fits = isinstance(found, np.ndarray) and found.dtype == np.float64 and found.shape == (width,)
            if not fits or not np.isfinite(found).all() or (name == "squares_" and bool((found < 0).any())):
                raise _checks.wrong(self, name, f"{width} finite numbers", found)
        check_names(self, learned.get("feature_names_in_"), width)
        check_time(self, "time_", self.half_life, learned.get("time_"))
        if resting is not None:
            self.resting_ = from_stored(self, resting, width)

    @property
    def var_(self) -> Floats:
        """The variance of each feature."""
        known = self._known()
        return np.asarray(known["squares_"] / known["weight_"])

    @property
    def scale_(self) -> Floats:
        """The deviation of each feature."""
        return np.asarray(np.sqrt(self.var_))

    def __sklearn_is_fitted__(self) -> bool:
        return "mean_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = not self.with_mean
        return tags


def _like(X: Any, rows: SparseRows, values: Array) -> Any:
    """Rows with other values, as a CSR array or matrix, whichever X is."""
    form = csr_array if isinstance(X, sparray) else csr_matrix
    return form((values, rows.columns, rows.starts), shape=rows.shape)


def scaled(X: Array, mean: Floats, variance: Floats, centre: bool, divide: bool) -> Array:
    """X scaled by these statistics, in its own type; 0 where the variance is 0."""
    values = X.astype(np.float64) - mean if centre else X.astype(np.float64)
    if divide:
        deviation = np.sqrt(variance)
        values = values / np.where(deviation > 0.0, deviation, np.inf)
    return np.asarray(values, dtype=X.dtype)


def scale_rows(
    X: Array, mean: Floats, squares: Floats, weight: float, share: float, centre: bool, divide: bool,
    fades: Floats | None = None,
) -> tuple[Array, Floats, Floats, float]:  # fmt: skip
    """The recurrences of `OnlineScaler` row by row: the specification of the core's function of this name."""
    rows = np.empty_like(X)
    for t, x in enumerate(X):
        keep = share if fades is None else share * float(fades[t])
        weight = keep * weight + 1.0
        gain = 1.0 / weight
        away = x.astype(np.float64) - mean
        mean = mean + away * gain
        squares = keep * squares + away * away * (1.0 - gain)
        rows[t] = scaled(x, mean, squares * gain, centre, divide)
    return rows, mean, squares, weight
