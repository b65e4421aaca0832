"""The schema of rows whose columns are numbered, such as those of LIBSVM, in constant memory for any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from gossamer import _checks
from gossamer._sparse import MOST_FEATURES
from gossamer.rows import Plan
from gossamer.streams._schema import KINDS, Column, Schema


class Names(Sequence[str]):
    """The numbers from ``base`` on, ``count`` of them, as names.

    >>> names = Names(1, 10**9)
    >>> len(names), names[0], names[-1], "77" in names
    (1000000000, '1', '1000000000', True)
    """

    def __init__(self, base: int, count: int) -> None:
        self._numbers = range(base, base + count)

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: Any) -> Any:
        found = self._numbers[place]
        return [str(number) for number in found] if isinstance(found, range) else str(found)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.isdecimal() and int(name) in self._numbers

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Names) and self._numbers == other._numbers

    __hash__ = None  # type: ignore[assignment]


class Numbered(Sequence[Column]):
    """Columns of numbers with such names."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, place: int) -> Column: ...
    @overload
    def __getitem__(self, place: slice) -> list[Column]: ...
    def __getitem__(self, place: Any) -> Any:
        found = self._names[place]
        return [Column(name, "number") for name in found] if isinstance(found, list) else Column(found, "number")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbered) and self._names == other._names

    __hash__ = None  # type: ignore[assignment]


class IndexSchema(Schema):
    """The schema of sparse rows with numbered columns.

    >>> schema = IndexSchema(1, 10**6, Column("label", "integer"))
    >>> schema.to_dict(), schema.names[41]
    ({'indices': [1, 1000000], 'target': ['label', 'integer']}, '42')
    """

    def __init__(self, base: int, count: int, target: Column | None) -> None:
        self.plan, self.target, self.base = Plan([]), target, base
        self.names: Any = Names(base, count)
        self.features: Any = Numbered(self.names)

    def to_dict(self) -> dict[str, Any]:
        target = None if self.target is None else [self.target.name, self.target.kind]
        return {"indices": [self.base, len(self.names)], "target": target}

    @classmethod
    def from_dict(cls, given: Any) -> IndexSchema:
        """From `to_dict`."""
        base, count = given["indices"]
        _checks.whole("Schema", "base", base, 0, 1)
        _checks.whole("Schema", "count", count, 1, MOST_FEATURES)
        goal = given["target"]
        kind = "number" if goal is None else _checks.one_of("Schema", "kind", goal[1], KINDS)
        return cls(base, count, None if goal is None else Column(str(goal[0]), kind))


def read_schema(given: Any) -> Schema:
    """A schema from its ``to_dict``, of either kind."""
    if not isinstance(given, dict) or "indices" not in given:
        return Schema.from_dict(given)
    try:
        return IndexSchema.from_dict(given)
    except (TypeError, KeyError, ValueError):
        raise _checks.wrong("open_stream", "position", "one that a stream of this version gave", given) from None
