"""From dict rows to rows of numbers: each feature gets a column when it is first learned."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.estimators import targets
from gossamer.learner import Learner

Name = Hashable
Label = Hashable
Row = Mapping[Any, Any]
#: The exceptions of struct for a value that is no number, and for an int beyond all floats.
NOT_A_NUMBER = (struct.error, OverflowError)
NUMBERS = "a dict of numbers (strings are one-hot encoded before)"


class Columns:
    """Which feature stands in which column. A feature that a row does not have is 0; spare columns are 0 too. It is
    immutable, since other threads may read it: `added` makes a new object.

    >>> columns = Columns("Example")
    >>> columns = columns.added(columns.new({"b": 1.0, "a": 2.0}), width=4)
    >>> columns.row({"a": 2, "b": True}).tolist(), columns.row({"b": 1.5}).tolist(), columns.row({"c": 1.0})
    ([2.0, 1.0, 0.0, 0.0], [0.0, 1.5, 0.0, 0.0], None)
    """

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.places: dict[Name, int] = {}
        self.width = 0
        self._whole: tuple[Callable[[Any], tuple[Any, ...]], Callable[..., bytes]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_whole": None}  # made again when needed: a Struct cannot be pickled

    def new(self, names: Iterable[Name]) -> dict[Name, int]:
        """Columns for the features that have none, whatever the order in which they are named."""
        unknown: list[Any] = [name for name in names if name not in self.places]
        try:
            unknown.sort()
        except TypeError:
            unknown.sort(key=lambda name: (type(name).__name__, repr(name)))
        return {name: len(self.places) + i for i, name in enumerate(unknown)}

    def room(self, new: Mapping[Name, int]) -> int:
        """The width that fits new features too: it doubles when a feature does not fit."""
        needed = max(len(self.places) + len(new), 1)
        return needed if not self.width else self.width if needed <= self.width else max(needed, 2 * self.width)

    def added(self, new: Mapping[Name, int], width: int) -> Columns:
        """A copy with columns for these features, of this width."""
        made = Columns(self.owner)
        made.places, made.width = {**self.places, **new}, width
        return made

    def row(self, x: Any) -> Floats | None:
        """The numbers of one row, not yet known to be finite; None if it has a feature without a column."""
        places = self.places
        try:
            if len(x) == len(places):
                get, pack = self._whole or self._prepare()
                return np.frombuffer(pack(*get(x)))
        except KeyError:
            pass
        except (*NOT_A_NUMBER, TypeError):
            raise self.fault(x) from None
        try:
            used = [places[name] for name in x]
            row = np.zeros(self.width)
            row[used] = np.frombuffer(struct.pack(f"{len(used)}d", *x.values()))
        except KeyError:
            return None
        except (*NOT_A_NUMBER, TypeError, AttributeError):
            raise self.fault(x) from None
        return row

    def _prepare(self) -> tuple[Callable[[Any], tuple[Any, ...]], Callable[..., bytes]]:
        """How to read a row that has all features: a good deal faster than looking for each."""
        names = tuple(self.places)
        get = itemgetter(*names) if len(names) > 1 else lambda x: tuple(x[name] for name in names)
        self._whole = get, struct.Struct(f"{len(names)}d{8 * (self.width - len(names))}x").pack
        return self._whole

    def table(self, X: Any, new: Mapping[Name, int], width: int) -> Floats:
        """The numbers of one row or of a frame (as narwhals wraps it), new features in their columns; all finite."""
        if isinstance(X, Mapping):
            names = list(X)
            try:
                values = np.frombuffer(struct.pack(f"{len(names)}d", *X.values()))[None]
            except NOT_A_NUMBER:
                raise self.fault(X) from None
        else:
            names, values = list(X.columns), np.empty(X.shape)
            for i, name in enumerate(names):
                values[:, i] = X[name].to_numpy() if X[name].dtype.is_numeric() else self._numbers(name, list(X[name]))
        if not np.isfinite(values).all():
            row, i = np.argwhere(~np.isfinite(values))[0].tolist()
            raise self._wrong(names[i], float(values[row, i]), "finite", row, len(values))
        table = np.zeros((len(values), width))
        table[:, [new[name] if name in new else self.places[name] for name in names]] = values
        return table

    def _numbers(self, name: Name, values: list[Any]) -> Floats:
        try:
            return np.frombuffer(struct.pack(f"{len(values)}d", *values))
        except NOT_A_NUMBER:
            row = next(row for row, value in enumerate(values) if not _is_number(value))
            raise self._wrong(name, values[row], NUMBERS, row, len(values)) from None

    def fault(self, x: Any) -> ValueError:
        """The error for a row that is not one of numbers."""
        if not isinstance(x, Mapping):
            return _checks.wrong(self.owner, "x", "a dict of features", x)
        name, value = next((name, value) for name, value in x.items() if not _is_number(value))
        return self._wrong(name, value, NUMBERS, 0, 1)

    def _wrong(self, name: Name, value: Any, rule: str, row: int, rows: int) -> ValueError:
        shown = value if isinstance(value, float) else repr(value)
        where = f" in row {row}" if rows > 1 else ""
        return _checks.wrong(self.owner, "x", rule, f"{shown} for the feature {name!r}{where}")


def _is_number(value: Any) -> bool:
    try:
        struct.pack("d", value)
    except NOT_A_NUMBER:
        return False
    return True


class Learned:
    """The learned state of a model: an estimator, the columns of its features, and its labels."""

    learner: Learner  # the estimator's, once it has learned

    def __init__(self, estimator: Any, columns: Columns, labels: list[Label]) -> None:
        self.estimator, self.columns, self.labels = estimator, columns, labels
        self.given = bool(labels)
        self.averaged = bool(estimator._average())
        self.targets: dict[Label, float] = {}  # the learner's code of each label
        self.name: Any = None  # of the targets in the last frame
        self._last: Any = 0.0  # the score of the last row learned by itself

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "learner"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "learner_" in self.estimator.__dict__:
            self.learner = self.estimator.learner_  # the same one, not a copy of its own

    def target(self, label: Any) -> float | None:
        """The learner's code of a label; None if it was not seen before."""
        try:
            return self.targets.get(label)
        except TypeError:  # not hashable
            return None

    def learn_fast(self, x: Row, target: Any, w: float) -> bool:
        """The fast path: learn one row in compiled code; False if the row needs the general path. For any thread."""
        row = self.columns.row(x)
        try:
            score = None if row is None or target is True else self.learner.learn_fast(row, target, w)
        except TypeError:
            return False
        if score is None:
            return False
        self._follow(score, target, w)
        return True

    def learn_one(self, x: Row, target: Any, w: float) -> bool:
        """Learn one row; False if it has a feature that was not learned before. For one thread at a time."""
        row = self.columns.row(x)
        if row is None:
            return False
        try:
            score = self.learner.learn_one(row, target, w)
        except ValueError:
            self.columns.table(x, {}, self.columns.width)  # names the feature, if it was one
            raise
        if not self.scales:
            self._follow(score, target, w)
        self._last = score
        return True

    def _follow(self, score: Any, target: Any, w: float) -> None:
        """Learn how sure the model was of a row: the score before, and the learner's target."""
        sure = self.estimator._sure()
        if isinstance(score, float):
            sure.learn_one(score, 0.0 if target is None else target, w)
        else:
            scores = np.ascontiguousarray(score, dtype=np.float64)[None]
            sure.learn_many(scores, np.array([target], dtype=np.float64), np.array([w], dtype=np.float64), [], None)

    def score_fast(self, x: Row) -> float | None:
        """The fast path: the score from compiled code; None if the row needs the general path. For any thread."""
        row = None if self.averaged else self.columns.row(x)
        return None if row is None else self.learner.score_fast(row)

    @property
    def scales(self) -> bool:
        """Whether targets are learned in units of their own."""
        return self.estimator.task == "regression" and self.estimator._moments() is not None

    def learn_target(self, x: Row, y: Any, w: Any) -> bool:
        """The fast path for a scaled target; False also for a bad target, whose error the general path raises."""
        moments = self.estimator._moments()
        if moments is None:
            return self.learn_one(x, y, w)
        plain = isinstance(y, (float, int)) and not isinstance(y, bool) and isinstance(w, (float, int))
        if not plain or not 0 <= w < math.inf:
            return False
        scaled, after = targets.follow(moments, float(y), float(w))
        if not math.isfinite(after[3]) or not self.learn_one(x, scaled, w):
            return False
        mean, deviation = targets.units(moments)
        self._follow(self._last * deviation + mean, float(y), w)
        self.estimator._target_moments = after
        return True

    def outward(self, scores: Any) -> Any:
        """Scores of a regressor in the units of the targets."""
        if self.estimator._moments() is None:
            return scores
        mean, deviation = self.estimator._units()
        return scores * deviation + mean

    def score_one(self, x: Row) -> Any:
        """The score, or a score per class. For one thread at a time: a new feature may need more columns."""
        row = self.columns.row(x)
        if row is None:
            row = self.table(x)[0]
        try:
            return self.learner.score(row[None], average=True)[0] if self.averaged else self.learner.score_one(row)
        except ValueError:
            self.columns.table(x, {}, self.columns.width)
            raise

    def table(self, X: Any) -> Floats:
        """Rows to score. A feature never learned stands in a spare column, where all points are 0."""
        new = self.columns.new(X if isinstance(X, Mapping) else X.columns)
        table = self.columns.table(X, new, self.columns.room(new))
        self.widen(table.shape[1])
        return table

    def widen(self, width: int) -> None:
        """Pad all points with columns of zeros to this width: no product and no distance changes."""
        more = ((0, 0), (0, width - self.columns.width))
        if width == self.columns.width:
            return
        self.learner.retire()
        state, kernel = self.learner.state(), self.learner.kernel
        assert state is not None
        some = np.vstack([state.points[:4], np.ones((1, self.columns.width))])
        narrow, wide = kernel(some, some), kernel(np.pad(some, more), np.pad(some, more))
        if not np.abs(wide - narrow).max() <= 1e-9 * np.abs(narrow).max():
            self.learner.restore(state)
            rule = "the same with columns of zeros, where features come later"
            raise _checks.wrong(self.columns.owner, "kernel", rule, kernel)
        self.learner.restore(state.padded(width))
        self.estimator.n_features_in_ = width
        self.columns = self.columns.added({}, width)  # last: a row of it fits the learner
