"""Rows that name their features, as rows of numbers: a feature has its own column from the first time it is learned."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.expansion import Floats

Name = Hashable


class Columns:
    """Which feature stands in which column. A feature that a row does not have is 0; spare columns are 0 too.

    >>> columns = Columns("Example")
    >>> columns.add(columns.new({"b": 1.0, "a": 2.0}), width=4)
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
        """The width that fits new features as well: when one does not fit, twice as many columns."""
        needed = max(len(self.places) + len(new), 1)
        return needed if not self.width else self.width if needed <= self.width else max(needed, 2 * self.width)

    def add(self, new: Mapping[Name, int], width: int) -> None:
        """From now on these features have their columns, of so many."""
        self.places.update(new)
        self.width, self._whole = width, None

    def row(self, x: Any) -> Floats | None:
        """The numbers of one row; None if it has a feature without a column."""
        try:
            if len(x) == len(self.places):
                get, pack = self._whole or self._prepare()
                return np.frombuffer(pack(*get(x)))
        except KeyError:
            pass
        except (struct.error, OverflowError, TypeError):
            raise self.fault(x) from None
        if not isinstance(x, Mapping):
            raise self.fault(x)
        return self.table(x, {}, self.width)[0] if x.keys() <= self.places.keys() else None

    def _prepare(self) -> tuple[Callable[[Any], tuple[Any, ...]], Callable[..., bytes]]:
        """How to read a row that has all features: a good deal faster than looking for each."""
        names = tuple(self.places)
        get = itemgetter(*names) if len(names) > 1 else lambda x: tuple(x[name] for name in names)
        self._whole = get, struct.Struct(f"{len(names)}d{8 * (self.width - len(names))}x").pack
        return self._whole

    def table(self, X: Any, new: Mapping[Name, int], width: int) -> Floats:
        """The numbers of one row or of a frame (as narwhals wraps it), new features in their columns; all finite."""
        if isinstance(X, Mapping):
            values = self._numbers(X.values(), lambda: self.fault(X))[None]
            names: list[Name] = list(X)
        else:
            names = list(X.columns)
            values = np.empty((len(X), len(names)))
            for i, name in enumerate(names):
                values[:, i] = self._column(name, X[name])
        if not np.isfinite(values).all():
            row, i = np.argwhere(~np.isfinite(values))[0]
            where = f" in row {row}" if len(values) > 1 else ""
            raise _checks.wrong(self.owner, "x", "finite", f"{values[row, i]} for the feature {names[i]!r}{where}")
        table = np.zeros((len(values), width))
        table[:, [new[name] if name in new else self.places[name] for name in names]] = values
        return table

    def _column(self, name: Name, series: Any) -> Any:
        if series.dtype.is_numeric():
            return series.to_numpy()
        values = series.to_list()
        return self._numbers(values, lambda: self.fault({(name, row): value for row, value in enumerate(values)}))

    def _numbers(self, values: Iterable[Any], fault: Callable[[], ValueError]) -> Floats:
        packed = list(values)
        try:
            return np.frombuffer(struct.pack(f"{len(packed)}d", *packed))
        except (struct.error, OverflowError, TypeError):
            raise fault() from None

    def fault(self, x: Any) -> ValueError:
        """What is wrong with a row, whose features are names or, for a column, names with their rows."""
        if not isinstance(x, Mapping):
            return _checks.wrong(self.owner, "x", "a dict of features", x)
        for name, value in x.items():
            try:
                number = struct.unpack("d", struct.pack("d", value))[0]
            except (struct.error, OverflowError, TypeError):
                rule = "a dict of numbers (strings are one-hot encoded before)"
                return _checks.wrong(self.owner, "x", rule, f"{value!r} for the feature {name!r}")
            if not math.isfinite(number):
                return _checks.wrong(self.owner, "x", "finite", f"{value} for the feature {name!r}")
        return _checks.wrong(self.owner, "x", "a dict of numbers", x)
