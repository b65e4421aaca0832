"""The plan of an encoder: a line per column, which says what it is and how many features it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from gossamer import _checks

#: What a column may be; those of the last three give no features.
KINDS = ("number", "boolean", "category", "mixed", "text", "timestamp", "cyclic", "id", "constant", "ignored")
LEFT_OUT = ("id", "constant", "ignored")
#: The features of a timestamp: the time since the row before, three circles, and the seconds since 1970.
CLOCK = ("gap", "day", "week", "year", "since")
#: The most features of a column.
WIDEST = 1 << 20


@dataclass
class Column:
    """A column: what it is, and what it becomes.

    Parameters
    ----------
    name, kind : its name, and one of ``KINDS``. "mixed" holds numbers and texts: it is a number and a category.
    indicator : of numbers, booleans and mixed columns: whether a feature says where the value is missing.
    places, hashed : of categories: how many have a feature of their own, and how many features the rest share.
    log : of skewed numbers: the unit from which on they are scaled as logarithms, as asinh(x / log); 0 for none.
    width : of text: the number of hashed features.
    period : of cyclic numbers: 24 for hours.
    parts : of timestamps: some of "gap" (the time since the row before), "day", "week" and "year" (points on circles)
        and "since" (the seconds since 1970).
    missing : what stands for a missing value besides the usual texts: -999.
    decimal, disguised : the decimal sign of numbers in texts; whether they have currencies, percent signs, separators.
    format : of timestamps: "" for ISO 8601, "s" or "ms" for numbers since 1970, or a format of ``strptime``.
    dormant : the same value in all first rows: its features are there for what may come, and the width of a kernel
        does not count them before.
    why : the reason, in words.

    >>> Column("shop", "category", places=2, hashed=1).features
    ['shop:1', 'shop:2', 'shop:other1']
    """

    name: str
    kind: str
    indicator: bool = False
    places: int = 16
    hashed: int = 4
    log: float = 0.0
    width: int = 128
    period: float = 24.0
    parts: tuple[str, ...] = CLOCK[:4]
    missing: tuple[str | float, ...] = ()
    decimal: str = "."
    disguised: bool = False
    format: str = ""
    dormant: bool = False
    why: str = ""

    def check(self) -> Column:
        """Raise unless all of it makes sense."""
        if type(self.name) is str and self == Column(self.name, "number"):  # as most of many
            return self
        if not isinstance(self.name, str):
            raise _checks.wrong(self, "name", "a text", self.name)
        _checks.one_of(self, "kind", self.kind, KINDS)
        for name in ("indicator", "disguised", "dormant"):
            _checks.one_of(self, name, getattr(self, name), [False, True])
        for name in ("places", "hashed", "width"):
            _checks.whole(self, name, getattr(self, name), 1, WIDEST)
        _checks.number(self, "period", self.period, 0.0, float("inf"))
        _checks.number(self, "log", self.log, 0.0, float("inf"), "left")
        _checks.one_of(self, "decimal", self.decimal, [".", ","])
        self.parts, self.missing = tuple(self.parts), tuple(self.missing)
        if len(set(self.parts)) < len(self.parts) or not set(self.parts) <= set(CLOCK):
            raise _checks.wrong(self, "parts", f"some of {', '.join(CLOCK)}", self.parts)
        if not all(type(mark) in (str, int, float) for mark in self.missing):
            raise _checks.wrong(self, "missing", "texts and numbers", self.missing)
        for name in ("format", "why"):
            if not isinstance(getattr(self, name), str):
                raise _checks.wrong(self, name, "a text", getattr(self, name))
        return self

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        name, marks = self.name, [f"{self.name}:missing"] if self.indicator else []
        if self.kind in ("number", "boolean"):
            return [name, *marks]
        places = [f"{name}:{i + 1}" for i in range(self.places)]
        rest = [f"{name}:other{i + 1}" for i in range(self.hashed)]
        if self.kind == "category":
            return [*places, *rest]
        if self.kind == "mixed":
            return [name, *marks, *places, *rest]
        if self.kind == "text":
            return [f"{name}:hash{i + 1}" for i in range(self.width)]
        if self.kind == "cyclic":
            return [f"{name}:sin", f"{name}:cos"]
        if self.kind == "timestamp":
            numbers = [f"{name}:{part}" for part in ("gap", "since") if part in self.parts]
            return numbers + [f"{name}:{part}:{way}" for part in self.circles for way in ("sin", "cos")]
        return []

    @property
    def circles(self) -> list[str]:
        """The circles of a timestamp."""
        return [part for part in self.parts if part not in ("gap", "since")]

    def show(self) -> str:
        """What it becomes, in words."""
        words = {
            "category": f"{self.places} places, {self.hashed} shared",
            "mixed": f"number, {self.places} places, {self.hashed} shared",
            "text": f"{self.width} hashed",
            "cyclic": f"circle of {self.period:g}",
            "timestamp": ", ".join(self.parts),
            "number": "logarithmic" if self.log else "",
        }.get(self.kind, "left out" if self.kind in LEFT_OUT else "")
        return ", ".join(part for part in (words, "indicator" if self.indicator else "") if part)


class Plan(list[Column]):
    """The columns of an encoder, in order; ``print`` shows a table. Edit it and pass it to another `RowEncoder`.

    >>> plan = Plan([Column("hour", "number"), Column("shop", "category", places=2, hashed=1)])
    >>> plan["hour"].kind = "cyclic"
    >>> print(plan)
    column  kind      features                      why
    hour    cyclic           2  circle of 24
    shop    category         3  2 places, 1 shared
    """

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for column in self:
            if column.name == key:
                return column
        raise KeyError(key)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, notes: Mapping[str, str] | None = None) -> list[str]:
        """The table, a line per column."""
        rows = [["column", "kind", "features", "", "why"]]
        for column in self:
            why = "; ".join(part for part in (column.why, (notes or {}).get(column.name, "")) if part)
            rows.append([column.name[:40], column.kind, str(len(column.features)), column.show(), why])
        wide = [max(len(row[i]) for row in rows) for i in range(4)]
        return [
            f"{row[0]:<{wide[0]}}  {row[1]:<{wide[1]}}  {row[2]:>{wide[2]}}  {row[3]:<{wide[3]}}  {row[4]}".rstrip()
            for row in rows
        ]

    @property
    def names(self) -> list[str]:
        """The names of all features."""
        return [name for column in self for name in column.features]

    @property
    def used(self) -> list[Column]:
        """The columns that become features."""
        return [column for column in self if column.kind not in LEFT_OUT]

    def to_dicts(self) -> list[dict[str, Any]]:
        """As plain data."""
        return [{**asdict(c), "parts": list(c.parts), "missing": list(c.missing)} for c in self]

    @classmethod
    def of(cls, columns: Any) -> Plan:
        """From columns, or from the dicts of `to_dicts`."""
        known = {field.name for field in fields(Column)}
        made = cls()
        for given in columns:
            if isinstance(given, Mapping):
                if not {"name", "kind"} <= set(given) <= known:
                    raise _checks.wrong("RowEncoder", "columns", f"dicts of {', '.join(sorted(known))}", dict(given))
                given = Column(**given)
            if not isinstance(given, Column):
                raise _checks.wrong("RowEncoder", "columns", "a dict of kinds, or a list of columns", given)
            made.append(Column(**{field: getattr(given, field) for field in known}).check())
        names = [column.name for column in made]
        if len(set(names)) < len(names):
            raise _checks.wrong("RowEncoder", "columns", "of different names", names)
        if len(made.names) > WIDEST:
            raise _checks.wrong("RowEncoder", "columns", f"of at most {WIDEST} features together", len(made.names))
        return made


def parse_kind(name: str, text: str, default: Column) -> Column:
    """A column of the kind that a user said: "category", "category:places=8,hashed=2", "cyclic:24", "text:64".

    >>> parse_kind("hour", "cyclic:24", Column("hour", "number")).period
    24.0
    """
    kind, _, settings = str(text).partition(":")
    kind = {"date": "timestamp", "integer": "number"}.get(kind, kind)
    _checks.one_of("RowEncoder", "columns", kind, KINDS)
    column = Column(**{**asdict(default), "name": name, "kind": kind, "why": "as said"})
    for setting in filter(None, settings.split(",")):
        key, equals, value = setting.partition("=")
        if not equals:
            key, value = {"cyclic": "period", "text": "width", "category": "places"}.get(kind, ""), key
        kinds = {"places": int, "hashed": int, "width": int, "period": float, "log": float}
        try:
            setattr(column, key, kinds[key](value))
        except (KeyError, ValueError):
            rule = "like 'category:places=8,hashed=2', 'cyclic:24' or 'text:64'"
            raise _checks.wrong("RowEncoder", "columns", rule, text) from None
    return column.check()


def shown(names: Iterable[str]) -> str:
    """Some names, for a sentence."""
    some = list(names)
    return ", ".join(repr(name[:40]) for name in some[:5]) + (", ..." if len(some) > 5 else "")
