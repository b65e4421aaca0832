"""Validate and convert X: frames with named columns; sparse matrices, which stay so where the learner keeps their
non-zeros, and are made dense a part at a time where it does not."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

import numpy as np
from scipy.sparse import issparse

from gossamer import _checks
from gossamer._sparse import SparseRows, sparse_rows
from gossamer._typing import Array, Floats
from gossamer.clock import read_times
from gossamer.learner import Learner

Method = TypeVar("Method", bound=Callable[..., Any])
#: The data arguments of an estimator's methods.
GIVEN = ("X", "y", "sample_weight", "classes", "ids", "grid", "time")
#: A part of a sparse matrix that is made dense at once has at most this many rows, and values (32 MB of float64).
MOST_ROWS, MOST_VALUES = 4096, 2**22


def count(X: Any) -> int:
    """The number of rows, also of sparse ones."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def names(estimator: Any, X: Any, fitted: bool) -> Array | None:
    """The column names of a frame, None for anything else; later frames must have those of the first."""
    first: Array | None = estimator.__dict__.get("feature_names_in_")
    if isinstance(X, np.ndarray) and first is None:
        return None
    found = _columns(estimator, X)
    if fitted and (first is None) != (found is None):
        owner = type(estimator).__name__
        text = f"X has feature names, but {owner} was fitted without feature names"
        if found is None:
            text = f"X does not have valid feature names, but {owner} was fitted with feature names"
        warnings.warn(text, UserWarning, stacklevel=3)
    elif fitted and first is not None and found is not None and not np.array_equal(first, found):
        rule = f"a frame with the columns of the first. {_difference(first, found)}The first had {list(first)}"
        raise _checks.wrong(estimator, "X", rule, list(found))
    return found


def _columns(owner: object, X: Any) -> Array | None:
    """The names of a frame's columns if they are strings, as scikit-learn reads them."""
    if isinstance(X, np.ndarray):
        return None
    attribute = "column_names" if hasattr(type(X), "column_names") else "columns"  # those of an Arrow table are values
    found = list(getattr(X, attribute, ()))
    types = sorted({type(name).__qualname__ for name in found})
    if "str" in types and len(types) > 1:
        told = f"but your input has {types} as feature name / column name types"
        rule = f"a frame with columns of one kind. Feature names are only supported if all are strings, {told}"
        raise _checks.wrong(owner, "X", rule, "others", TypeError)
    return np.array(found, dtype=object) if types == ["str"] else None


def _difference(first: Array, found: Array) -> str:
    """What is different about the names, in scikit-learn's words."""
    text = "The feature names should match those that were passed during fit.\n"
    told = "Feature names must be in the same order as they were in fit.\n"
    missing = ("seen at fit time, yet now missing", set(first) - set(found))
    for title, others in (("unseen at fit time", set(found) - set(first)), missing):
        if others:
            told = ""
            shown = [f"- {name}\n" for name in sorted(others)]
            text += f"Feature names {title}:\n" + "".join(shown[:5]) + "- ...\n" * (len(shown) > 5)
    return text + told


def speaks(method: Method) -> Method:
    """Decorate a method of an estimator that takes X first: its errors name the estimator, not its parts."""

    @functools.wraps(method)
    def wrapped(self: Any, X: Any, *rest: Any, **options: Any) -> Any:
        try:
            return method(self, X, *rest, **options)
        except ValueError as error:
            parameters = {*GIVEN, *self.get_params(deep=False)}
            columns = list(getattr(X, "columns", ()))
            raise _checks.in_the_name_of(type(self).__name__, parameters, error, columns) from error.__cause__

    return cast(Method, wrapped)


def learn(
    learner: Learner, X: Any, y: Any, sample_weight: Any, *, ids: Any = None, owner: object = None, time: Any = None
) -> tuple[Floats, Floats]:
    """`Learner.learn` with levels, for sparse rows too; they are learned all or none."""
    if not _by_parts(learner, X):
        return learner.learn(X, y, sample_weight, ids=ids, with_levels=True, time=time)  # type: ignore[return-value]
    X = check(learner, X)
    rows = int(X.shape[0])
    y = y if y is None or np.ndim(y) == 2 else _checks.vector(owner, "y", y, rows)
    weights = _checks.weights(owner, sample_weight, rows)
    learner.elapse(time, rows)
    times = None if time is None else read_times(owner, time, rows)
    before = learner.state() if learner.steps and rows > _height(X) else None
    scores, levels = [], []
    try:
        for part, dense in _parts(X):
            given = [None if values is None else values[part] for values in (y, weights, ids, times)]
            found = learner.learn(dense, *given[:2], ids=given[2], with_levels=True, time=given[3])
            scores.append(found[0])
            levels.append(found[1])
    except BaseException:  # a user's kernel has failed: undo the first parts as well
        if before is not None:
            learner.restore(before)
        raise
    return _stacked(scores), np.concatenate(levels)


def score(learner: Learner, X: Any, average: bool) -> tuple[Floats, Floats]:
    """`Learner.score_levels`, for sparse rows too."""
    if not _by_parts(learner, X):
        return learner.score_levels(X, average)
    found = [learner.score_levels(dense, average) for _, dense in _parts(_csr(learner, X))]
    return _stacked([scores for scores, _ in found]), np.concatenate([levels for _, levels in found])


def variance(learner: Learner, X: Any) -> Floats:
    """`Learner.variance`, for sparse rows too."""
    if not _by_parts(learner, X):
        return learner.variance(X)
    return np.concatenate([learner.variance(dense) for _, dense in _parts(_csr(learner, X))])


def check(learner: Learner, X: Any) -> Any:
    """`Learner.check_rows`, for sparse rows too."""
    if not _by_parts(learner, X):
        return learner.check_rows(X)
    X = _csr(learner, X)
    for _, dense in _parts(X):
        learner.check_rows(dense)
    return X


def settle(learner: Learner, X: Any) -> None:
    """`Learner.settle`, for checked sparse rows too: on the first part, which is what `learn` would settle it on."""
    learner.settle(next(_parts(X))[1] if _by_parts(learner, X) else X)


def _by_parts(learner: Learner, X: Any) -> bool:
    """Whether rows are sparse, but the learner keeps all features."""
    sparse = issparse(X) or isinstance(X, SparseRows)
    return sparse and not learner.takes_sparse and not getattr(learner.kernel, "objects", False)


def _csr(learner: Learner, X: Any) -> Any:
    rows = sparse_rows(learner, X) if issparse(X) else X
    if rows.width > learner.widest:
        rule = f"of at most {learner.widest} features where rows cannot stay sparse ({learner.why_dense})"
        raise _checks.wrong(learner, "X", rule, rows.width)
    return rows


def _height(X: Any) -> int:
    """The rows of a part."""
    return max(1, min(MOST_ROWS, MOST_VALUES // max(1, int(X.shape[1]))))


def _parts(X: Any) -> Iterator[tuple[slice, Array]]:
    """The parts of a CSR matrix, each made dense when its turn comes; of an empty one, its one empty part."""
    height = _height(X)
    for start in range(0, max(1, int(X.shape[0])), height):
        part = slice(start, start + height)
        yield part, X[part].toarray()


def _stacked(scores: list[Floats]) -> Floats:
    """Scores of several parts as one; a class that a part did not know yet has -inf there."""
    if scores[0].ndim == 1:
        return np.concatenate(scores)
    width = max(part.shape[1] for part in scores)
    pads = [((0, 0), (0, width - part.shape[1])) for part in scores]
    return np.vstack([np.pad(part, pad, constant_values=-np.inf) for part, pad in zip(scores, pads, strict=True)])
