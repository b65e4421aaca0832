"""What the columns are: found in the first rows, then fixed. A `rows.Plan` says what they become."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Bools, Floats
from gossamer.rows import Coded, Column as Feature, Plan, Table
from gossamer.rows.parse import NUMBER, parse_number, parse_time
from gossamer.rows.table import MISSING, Values

#: Rows in the sample from which the schema is inferred, for any size of chunks.
SAMPLE = 1000
#: The default for the largest number of categories of a column that have a feature each at a time.
CATEGORIES = 64
KINDS = ("number", "integer", "boolean", "date", "text")
TASKS = ("classification", "regression", "novelty")
#: The largest size of the sample, rows times columns.
SAMPLE_CELLS = 400_000
#: The default for the largest number of features: each costs some hundred bytes before the first row is read.
FEATURES = 1 << 16
#: Kinds that may be read as texts, and are checked where nothing is coped with.
STRICT = ("number", "cyclic", "timestamp")
#: The most characters of a class: NumPy gives each label of a chunk the room of the longest.
LONGEST_LABEL = 1024
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?Z?", re.ASCII)
TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Setting:
    """An option of `open_stream` that an error suggests: its text there, its name, its value on the command line."""

    text: str
    name: str
    value: str = ""

    def __str__(self) -> str:
        return self.text


#: The rule that a value has broken: a text, or pieces of text with settings between them.
Rule = str | tuple[str | Setting, ...]
RULES: dict[str, Rule] = {
    "number": "a number",
    "integer": (
        "a whole number, as in the rows before (",
        Setting("kinds={...: 'number'}", "kinds", "COLUMN=number"),
        " allows others)",
    ),
    "boolean": "true or false, as in the rows before",
    "date": "a date YYYY-MM-DD or YYYY-MM-DDTHH:MM:SS, as in the rows before",
    "text": "text",
}


@dataclass(frozen=True)
class Misfit(Exception):  # noqa: N818
    """A value that its column cannot hold."""

    row: int
    column: str
    rule: Rule
    got: object


@dataclass(frozen=True, slots=True)
class Column:
    """A column and how it is read: as numbers, or as texts that may be booleans or dates."""

    name: str
    kind: str


def read_as(feature: Feature) -> str:
    """How the column of a feature is read.

    >>> read_as(Feature("x", "cyclic")), read_as(Feature("x", "number", disguised=True))
    ('number', 'text')
    """
    if feature.kind in ("number", "cyclic"):
        return "text" if feature.disguised else "number"
    if feature.kind == "timestamp":
        return "number" if feature.format in ("s", "ms") else "text" if feature.format else "date"
    return "boolean" if feature.kind == "boolean" else "text"


@dataclass
class Schema:
    """What the columns become (`gossamer.rows.Plan`), and the target.

    >>> from gossamer.rows import Column as Feature
    >>> schema = Schema(Plan([Feature("size", "number"), Feature("shop", "category", places=2, hashed=1)]), None)
    >>> schema.names
    ['size', 'shop:1', 'shop:2', 'shop:other1']
    """

    plan: Plan
    target: Column | None
    features: list[Column] = field(init=False)
    names: list[str] = field(init=False)
    _stored: dict[str, Any] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        self.features = [Column(feature.name, read_as(feature)) for feature in self.plan.used]
        self.names = self.plan.names

    @property
    def task(self) -> str:
        """The task that the target implies."""
        if self.target is None:
            return "novelty"
        return "regression" if self.target.kind in ("number", "date") else "classification"

    def table(self, rows: int, values: Mapping[str, Values], strict: bool) -> tuple[Table, list[Misfit]]:
        """The columns of the features; if ``strict``, with the first value of each that does not fit."""
        misfits: list[Misfit] = []
        columns = {column.name: values[column.name] for column in self.features}
        for column, feature in zip(self.features, self.plan.used, strict=True) if strict else ():
            if column.kind != "text":
                columns[column.name] = _finite(column, columns[column.name], misfits)
            elif feature.kind in STRICT:
                _check_texts(feature, columns[column.name], misfits)
        stamps = [column.name for column in self.features if column.kind == "date"]
        return Table(rows, columns, dict.fromkeys(stamps, "timestamp")), misfits

    def targets(self, values: Mapping[str, Values]) -> tuple[Values | None, Bools | None, list[Misfit]]:
        """The target's values, where they are missing, and what does not fit."""
        misfits: list[Misfit] = []
        if self.target is None:
            return None, None, misfits
        given = values[self.target.name]
        if self.target.kind == "text":
            assert isinstance(given, Coded)
            for i, value in enumerate(given.values):
                if len(value) > LONGEST_LABEL and (given.codes == i).any():  # else only a row that was cut off has it
                    rule = f"at most {LONGEST_LABEL} characters long, for it is a class"
                    misfits.append(Misfit(int(np.argmax(given.codes == i)), self.target.name, rule, value[:100]))
            return given, given.codes < 0, misfits
        numbers = _finite(self.target, given, misfits)
        if self.target.kind == "integer":
            whole = np.isnan(numbers) | (np.abs(numbers) < 2.0**53) & (numbers == np.floor(numbers))
            if not whole.all():
                row = int(np.argmin(whole))
                misfits.append(Misfit(row, self.target.name, RULES["integer"], float(numbers[row])))
        return numbers, np.isnan(numbers), misfits

    def labels(self, target: Values, keep: Any) -> Array:
        """The targets of a chunk: str, int64, bool or float64."""
        if isinstance(target, Coded):
            values = [value if len(value) <= LONGEST_LABEL else "" for value in target.values]
            return np.asarray(np.array([*values, ""])[target.codes[keep]])
        assert self.target is not None
        kinds: dict[str, Any] = {"integer": np.int64, "boolean": np.bool_}
        return np.asarray(target[keep].astype(kinds.get(self.target.kind, np.float64)))

    def to_dict(self) -> dict[str, Any]:
        """The schema as JSON data; the same object on each call, as every chunk has it in its position."""
        if self._stored is None:
            plain = all(feature == Feature(feature.name, "number") for feature in self.plan)
            plan: Any = [feature.name for feature in self.plan] if plain else self.plan.to_dicts()
            target = None if self.target is None else [self.target.name, self.target.kind]
            self._stored = {"plan": plan, "target": target}
        return self._stored

    @classmethod
    def from_dict(cls, given: Any) -> Schema:
        """From `to_dict`."""
        try:
            plain = all(isinstance(name, str) for name in given["plan"])
            plan = Plan(Feature(name, "number") for name in given["plan"]) if plain else Plan.of(given["plan"])
            goal = given["target"]
            target = None if goal is None else Column(str(goal[0]), _checks.one_of("Schema", "kind", goal[1], KINDS))
        except (TypeError, KeyError, ValueError):
            raise _checks.wrong("open_stream", "position", "one that a stream of this version gave", given) from None
        return cls(plan, target)


def as_number(value: str, kind: str) -> float:
    """A boolean or a date as a number; inf for what is neither."""
    if kind == "boolean":
        return TRUTH.get(value.lower(), np.inf)
    if DATE.fullmatch(value):
        try:
            return float(np.datetime64(value.rstrip("Z"), "us").astype(np.int64)) / 1e6
        except ValueError:  # the 31st of February
            pass
    return float("inf")


def _check_texts(feature: Feature, given: Values, misfits: list[Misfit]) -> None:
    """Find the first text that is not what its column should hold."""
    if not isinstance(given, Coded):
        return
    for code, value in enumerate(given.values):
        time = feature.kind == "timestamp"
        found = parse_time(value, feature.format) if time else parse_number(value, feature.decimal)
        if found != found and value not in MISSING and (given.codes == code).any():
            rule = RULES["date" if time else "number"]
            misfits.append(Misfit(int(np.argmax(given.codes == code)), feature.name, rule, value[:100]))


def _finite(column: Column, given: Values, misfits: list[Misfit]) -> Floats:
    numbers = (
        given.map([as_number(value, column.kind) for value in given.values]) if isinstance(given, Coded) else given
    )
    wrong = np.isinf(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        got = given.values[given.codes[row]] if isinstance(given, Coded) else float(numbers[row])
        rule = RULES[column.kind] if isinstance(given, Coded) else "finite"
        misfits.append(Misfit(row, column.name, rule, got))
    return numbers


@dataclass(frozen=True, slots=True)
class Sampled:
    """The first values of a column; ``kind`` where the format knows it."""

    values: Values
    kind: str | None = None
    decimal: str = "."

    def for_plan(self) -> tuple[Values, str]:
        """The values as `find_plan` takes them, and the hint at their type."""
        hint = {"boolean": "boolean", "date": "timestamp"}.get(self.kind or "", "")
        if not isinstance(self.values, Coded):
            return self.values, hint
        if self.decimal != "." and self.values.values:  # numbers that the parser will read
            texts = [text.replace(self.decimal, ".") if "." not in text else "x" for text in self.values.values]
            if all(NUMBER.fullmatch(text) for text in texts):
                return self.values.map([float(text) for text in texts]), ""
        return self.values, ""
