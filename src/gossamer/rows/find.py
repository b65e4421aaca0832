"""Find out what the columns are, from the first rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.rows.parse import COMMA, NUMBER, find_format, map_texts, parse_number, parse_time, parse_truth
from gossamer.rows.plan import LEFT_OUT, Column, Plan, parse_kind
from gossamer.rows.table import MISSING, Coded, Table, coded_numbers

#: Fewer first rows than this say little: a column is then no id, and has room for what may come.
FEW = 50
#: The numbers that often stand for a missing value.
SENTINELS = tuple(sign * (10.0**digits - 1.0) for digits in range(2, 10) for sign in (-1, 1))
#: The upper half of a skewed column is this many times as wide as the lower half.
LONG = 4.0
#: The names of numbers that name something, and of cyclic ones with their first value and their period.
NAMING = re.compile(r"(^|[_\W])(id|ids|uuid|guid|key|code|zip|zipcode|postcode|plz)$", re.IGNORECASE)
CYCLES = (
    (re.compile(r"(^|[_\W])(hour|hours|hr|hour_?of_?day)$", re.IGNORECASE), 0, 24),
    (re.compile(r"(^|[_\W])(minute|minutes)$", re.IGNORECASE), 0, 60),
    (re.compile(r"(^|[_\W])(weekday|dow|day_?of_?week)$", re.IGNORECASE), 0, 7),
    (re.compile(r"(^|[_\W])(month)$", re.IGNORECASE), 1, 12),
    (re.compile(r"(^|[_\W])(doy|day_?of_?year)$", re.IGNORECASE), 1, 366),
)
WHEN = re.compile(r"time|date|stamp|(^|_)ts$", re.IGNORECASE)


@dataclass(frozen=True)
class Limits:
    """The sizes that a plan may use."""

    places: int = 64
    hashed: int = 16
    width: int = 128
    #: Whether few first rows mean that anything may come.
    open: bool = True
    #: Whether ids are features too, because nothing else is there.
    all: bool = False


def find_plan(table: Table, said: Mapping[str, str] | None = None, limits: Limits | None = None) -> Plan:
    """The plan for a table of first rows; ``said`` has the kinds of some columns.

    >>> from gossamer.rows import as_table
    >>> rows = [{"size": i % 7 + 0.5, "shop": "ABC"[i % 3], "row": i} for i in range(100)]
    >>> [column.kind for column in find_plan(as_table(rows))]
    ['number', 'category', 'id']
    """
    limits, said = limits or Limits(), said or {}
    for name in said:
        if name not in table.columns:
            raise _checks.wrong("RowEncoder", "columns", f"among the columns {list(table.columns)[:20]}", name)
    plan = Plan(_find(table, name, said.get(name), limits) for name in table.columns)
    if not plan.used and not limits.all and not all(name in said for name in table.columns):
        return find_plan(table, said, replace(limits, all=True))
    for column in plan:
        column.check()
    return plan


def _find(table: Table, name: str, said: str | None, limits: Limits) -> Column:
    if said is None and not limits.open and _is_plain(name, table.columns[name]):
        return Column(name, "number")
    column = Finder(name, table.columns[name], table.hints.get(name, ""), limits).find()
    if said is None:
        return column
    finder = Finder(name, table.columns[name], table.hints.get(name, ""), limits)
    return parse_kind(name, said, finder.sized(replace(column, kind=str(said).partition(":")[0])))


def _is_plain(name: str, values: Any) -> bool:
    """Whether these are a few numbers without gaps, and the name says nothing: tables may have many such columns."""
    if len(values) >= FEW or any(cycle.search(name) for cycle, _, _ in CYCLES) or WHEN.search(name):
        return False
    if isinstance(values, Coded):
        return bool((values.codes >= 0).all()) and all(NUMBER.fullmatch(text) for text in values.values)
    return False


class Finder:
    """The first values of a column, and what they look like."""

    def __init__(self, name: str, values: Any, hint: str, limits: Limits) -> None:
        self.name, self.hint, self.limits = name, hint, limits
        self.values = without_missing(values)
        codes = self.values.codes if isinstance(self.values, Coded) else None
        self.rows = len(self.values)
        self.gaps = int((codes < 0).sum() if codes is not None else np.isnan(self.values).sum())
        self.few = self.rows < FEW

    def column(self, kind: str, why: str = "", **more: Any) -> Column:
        """A column of this name."""
        return self.sized(Column(self.name, kind, why=why, **more))

    def sized(self, column: Column) -> Column:
        """With as much room as the first rows ask for."""
        unsure = self.few and self.limits.open
        column.indicator = column.kind in ("number", "boolean", "mixed") and (self.gaps > 0 or unsure)
        if column.kind == "text":
            column.width = self.limits.width
        if column.kind in ("category", "mixed"):
            different = self.different()
            column.places = min(self.limits.places, different + 2 + different // 4)
            column.hashed = self.limits.hashed if different > self.limits.places else min(self.limits.hashed, 2)
            if unsure:
                column.places, column.hashed = self.limits.places, self.limits.hashed
        if column.kind == "mixed":
            column.places, column.hashed = min(column.places, 8), min(column.hashed, 4)
        return column

    def different(self) -> int:
        """How many different values there are."""
        if isinstance(self.values, Coded):
            return len(np.unique(self.values.codes[self.values.codes >= 0]))
        return len(np.unique(self.values[~np.isnan(self.values)]))

    def find(self) -> Column:
        """What the column is; one that has the same value in all first rows may have others later."""
        column = self._find()
        if self.few or self.gaps or self.different() != 1:
            return column
        value = self.values.values[int(self.values.codes[0])] if isinstance(self.values, Coded) else self.values[0]
        shown = value if isinstance(value, str) else f"{float(value):g}"
        why = f"always {shown[:20]} in the first {self.rows:,} rows: room for what may come"
        return replace(column, dormant=True, why=why)

    def _find(self) -> Column:
        if self.hint in ("boolean", "timestamp", "category"):
            kind = self.column(self.hint, "by its type")
            return replace(kind, parts=self._parts(self.values)) if kind.kind == "timestamp" else kind
        if not isinstance(self.values, Coded):
            return self._number(self.values, "")
        texts = [self.values.values[i] for i in np.unique(self.values.codes[self.values.codes >= 0])]
        if not texts:
            return self.column("mixed", f"empty in the first {self.rows:,} rows: room for numbers and texts")
        return self._texts(texts)

    def _texts(self, texts: list[str]) -> Column:
        assert isinstance(self.values, Coded)
        decimal = "," if _decimal_comma(texts) else "."
        parsed = map_texts(self.values, lambda text: parse_number(text, decimal))
        count, present = int(np.sum(~np.isnan(parsed))), self.rows - self.gaps
        if count == present:
            disguised = [text for text in texts if np.isnan(parse_plain(text))]
            why = f"numbers written like {disguised[0][:20]!r}" if disguised else ""
            return replace(self._number(parsed, why), decimal=decimal, disguised=bool(disguised))
        if all(parse_truth(text) == parse_truth(text) for text in texts):
            return self.column("boolean", f"{' and '.join(sorted(texts)[:2])}")
        form = find_format(texts)
        if form is not None:
            times = map_texts(self.values, lambda text: parse_time(text, form))
            why = "" if not form else f"written as {form}"
            return replace(self.column("timestamp", why), format=form, parts=self._parts(times))
        if count > 0.5 * present:
            strange = [text for text in texts if np.isnan(parse_number(text, decimal))]
            why = f"numbers, and texts such as {strange[0][:20]!r} ({present - count:,} of {present:,})"
            marks = self._sentinel(parsed)
            return replace(self.column("mixed", why), decimal=decimal, missing=marks)
        return self._words(texts, present)

    def _words(self, texts: list[str], present: int) -> Column:
        words = float(np.mean([len(text.split()) for text in texts]))
        long = float(np.mean([len(text) for text in texts]))
        if (words >= 4 or long > 40) and len(texts) > 0.5 * present and words > 1.5:
            return self.column("text", f"{words:.0f} words each")
        if not self.few and len(texts) >= 0.95 * present and present >= FEW and not self.limits.all:
            return self.column("id", f"{len(texts):,} different in {present:,} rows")
        return self.column("category", f"{len(texts):,} different in {present:,} rows")

    def _number(self, numbers: Floats, why: str) -> Column:
        marks = self._sentinel(numbers)
        if marks:
            count = int(np.sum(np.isin(numbers, marks)))
            self.gaps += count
            numbers = np.where(np.isin(numbers, marks), np.nan, numbers)
            why = f"{why}; " * bool(why) + f"{marks[0]:g} is taken for missing ({count:,} of {self.rows:,})"
        known = numbers[np.isfinite(numbers)]
        column = replace(self.column("number", why), missing=marks, log=_log_unit(known))
        if not len(known):
            return replace(column, why=f"empty in the first {self.rows:,} rows")
        return self._whole(known, column) or column

    def _whole(self, known: Floats, column: Column) -> Column | None:
        """A column of whole numbers that are no quantity."""
        if not np.all(known == np.floor(known)):
            return None
        low, high, different = known.min(), known.max(), self.different()
        for name, first, period in CYCLES:
            if name.search(self.name) and low >= min(first, 0) and high <= first + period and not column.missing:
                return replace(
                    self.column("cyclic", f"its name, and whole numbers up to {high:g}"), period=float(period)
                )
        for form, bottom, top in (("s", 1e8, 4e9), ("ms", 1e11, 4e12)):
            if WHEN.search(self.name) and bottom <= low and high <= top:
                times = known if form == "s" else known / 1e3
                why = f"its name, and {'seconds' if form == 's' else 'milliseconds'} since 1970"
                return replace(self.column("timestamp", why), format=form, parts=self._parts(times))
        if len(known) < FEW or self.limits.all:
            return None
        steps = np.diff(known)
        if different == len(known) and (NAMING.search(self.name) or bool(np.all(steps == steps[0]))):
            return self.column("id", f"{different:,} different whole numbers in {self.rows:,} rows")
        if NAMING.search(self.name):
            return self.column("category", f"its name, and {different:,} different whole numbers")
        return None

    def _sentinel(self, numbers: Floats) -> tuple[float, ...]:
        """A number far from the others that comes again and again."""
        known = numbers[np.isfinite(numbers)]
        for mark in SENTINELS:
            others = known[known != mark]
            if len(known) - len(others) < 2 or len(others) < 2:
                continue
            low, high = float(others.min()), float(others.max())
            away = max(low - mark, mark - high)
            if away > max(3.0 * (high - low), 10.0) or (mark < 0.0 <= low and away > 0.1 * (high - low)):
                return (mark,)
        return ()

    def _parts(self, seconds: Any) -> tuple[str, ...]:
        """The parts of a timestamp that the first rows have: dates have no hour."""
        known = seconds[~np.isnan(seconds)]
        timed = bool(np.any(known % 86400.0)) or (self.few and self.limits.open)
        return ("gap", "day", "week", "year") if timed else ("gap", "week", "year")


def without_missing(values: Any) -> Any:
    """Texts that stand for a missing value become missing."""
    return drop_texts(values, MISSING) if isinstance(values, Coded) else values


def drop_texts(coded: Coded, marks: Any) -> Coded:
    """The code -1 for all of these texts."""
    wanted = set(marks)
    if wanted.isdisjoint(coded.values):
        return coded
    keep = np.array([-1 if value in wanted else i for i, value in enumerate(coded.values)] + [-1], dtype=np.int32)
    return Coded(keep[coded.codes], coded.values)


def _log_unit(known: Floats) -> float:
    """The unit of a logarithmic scale for positive numbers with a long tail; 0 for others.

    Of an exponential distribution the upper half is about six times as wide as the lower one; of a normal one, once.
    """
    if len(known) < FEW or known.min() <= 0.0:
        return 0.0
    least, middle, most = np.quantile(known, [0.01, 0.5, 0.99])
    return float(np.quantile(known, 0.05)) if most - middle > LONG * (middle - least) else 0.0


def parse_plain(text: str) -> float:
    """A number without any disguise."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _decimal_comma(texts: list[str]) -> bool:
    some = texts[:200]
    if not any("," in text for text in some):
        return False
    bare = [text.strip("$€£¥% ") for text in some]
    fits = [text for text in bare if not np.isnan(parse_number(text, ","))]
    commas = sum(bool(COMMA.fullmatch(text)) for text in bare)
    dots = sum(np.isnan(parse_number(text, ".")) for text in bare)
    return commas > 0 and dots > 0 and len(fits) > 0.9 * len(some)


def used_names(plan: Plan) -> list[str]:
    """The columns that an encoder reads."""
    return [column.name for column in plan if column.kind not in LEFT_OUT]


def as_codes(values: Any, hint: str) -> Coded:
    """Values of any type as texts."""
    return values if isinstance(values, Coded) else coded_numbers(values, hint == "boolean")
