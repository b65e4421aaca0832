"""What the columns are: found in the first rows, then fixed. A column becomes one or more features, or the target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Bools, Codes, Floats

#: Rows in the sample from which the schema is inferred, for any size of chunks.
SAMPLE = 1000
#: The default for the largest number of categories of a text column that get a feature each.
CATEGORIES = 32
KINDS = ("number", "integer", "boolean", "date", "text")
TASKS = ("classification", "regression", "novelty")
#: The largest size of the sample, rows times columns.
SAMPLE_CELLS = 400_000
#: The default for the largest number of features: each costs some hundred bytes before the first row is read.
FEATURES = 1 << 16
#: The most characters of a class: NumPy gives each label of a chunk the room of the longest.
LONGEST_LABEL = 1024
#: The texts of a missing value in CSV.
MISSING = ("", "NA", "N/A", "NaN", "nan", "NULL", "null", "None", "?")

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


@dataclass(slots=True)
class Coded:
    """Texts as codes into a list: ``values[codes]``; the code -1 is a missing text."""

    codes: Codes
    values: list[str]

    @classmethod
    def of(cls, texts: Sequence[str | None]) -> Coded:
        """Number texts in the order of their first coming.

        >>> Coded.of(["b", None, "a", "b"]).codes.tolist()
        [0, -1, 1, 0]
        """
        places: dict[str, int] = {}
        codes = [-1 if text is None else places.setdefault(text, len(places)) for text in texts]
        return cls(np.array(codes, dtype=np.int32), list(places))

    def map(self, numbers: Sequence[float]) -> Floats:
        """A number for each value; NaN for the missing."""
        return np.append(np.asarray(numbers, dtype=np.float64), np.nan)[self.codes]

    def numbers(self, kind: str) -> Floats:
        """Booleans and dates as numbers; NaN for the missing, inf for what is neither."""
        return self.map([as_number(value, kind) for value in self.values])


#: The values of a column as a format gives them: numbers, NaN where missing, or coded texts.
Values = Floats | Coded


@dataclass(frozen=True)
class Misfit(Exception):  # noqa: N818
    """A value that its column cannot hold."""

    row: int
    column: str
    rule: Rule
    got: object


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its kind, and for a text column the categories with a feature of their own."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """The names of its features."""
        if self.kind != "text":
            return [self.name]
        return [f"{self.name}={category}" for category in (*self.categories, "(other)")]


@dataclass
class Schema:
    """The columns that are features, in order, and the target.

    A number is itself; a boolean is 0 or 1; a date is its seconds since 1970; a text is one feature per category,
    1 where it is that one, and a last one for all others.

    >>> schema = Schema([Column("size", "number"), Column("shop", "text", ("Rome", "Oslo"))], None)
    >>> schema.names
    ['size', 'shop=Rome', 'shop=Oslo', 'shop=(other)']
    """

    features: Sequence[Column]
    target: Column | None
    names: Any = field(init=False)  # a list of texts, or a sequence that makes them
    slots: dict[str, int] = field(init=False)
    _stored: dict[str, Any] | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        self.names, self.slots = [], {}
        for column in self.features:
            self.slots[column.name] = len(self.names)
            self.names += column.features

    def owner(self, slot: int) -> str:
        """The column that a feature comes from."""
        return max((start, name) for name, start in self.slots.items() if start <= slot)[1]

    @property
    def task(self) -> str:
        """The task that the target implies."""
        if self.target is None:
            return "novelty"
        return "regression" if self.target.kind in ("number", "date") else "classification"

    def encode(self, rows: int, values: Mapping[str, Values], X: Floats | None) -> tuple[Floats, list[Misfit]]:
        """Features of ``rows`` rows, NaN where missing; ``X`` holds those that are not in ``values`` already.

        With the values that do not fit, one per column at most, the first.
        """
        misfits: list[Misfit] = []
        X = np.empty((rows, len(self.names))) if X is None else X
        for column in self.features:
            given = values.get(column.name)
            if given is None:
                continue
            slot = self.slots[column.name]
            if column.kind == "text":
                assert isinstance(given, Coded)
                _one_hot(X[:, slot : slot + len(column.features)], given, column.categories)
            else:
                X[:, slot] = _finite(column, given, misfits)
        return X, misfits

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
            features = [[c.name, c.kind, list(c.categories)] for c in self.features]
            target = None if self.target is None else [self.target.name, self.target.kind]
            self._stored = {"features": features, "target": target}
        return self._stored

    @classmethod
    def from_dict(cls, given: Any) -> Schema:
        """From `to_dict`."""
        try:
            features = [Column(str(name), _checks.one_of("Schema", "kind", kind, KINDS), tuple(map(str, categories)))
                        for name, kind, categories in given["features"]]  # fmt: skip
            goal = given["target"]
            target = None if goal is None else Column(str(goal[0]), _checks.one_of("Schema", "kind", goal[1], KINDS))
        except (TypeError, KeyError, ValueError):
            raise _checks.wrong("open_stream", "position", "one that a stream gave", given) from None
        return cls(features, target)


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


def _finite(column: Column, given: Values, misfits: list[Misfit]) -> Floats:
    numbers = given.numbers(column.kind) if isinstance(given, Coded) else given
    wrong = np.isinf(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        got = given.values[given.codes[row]] if isinstance(given, Coded) else float(numbers[row])
        rule = RULES[column.kind] if isinstance(given, Coded) else "finite"
        misfits.append(Misfit(row, column.name, rule, got))
    return numbers


def _one_hot(out: Floats, given: Coded, categories: Sequence[str]) -> None:
    places = {category: i for i, category in enumerate(categories)}
    which = np.array([places.get(value, len(categories)) for value in given.values] + [0])[given.codes]
    out[:] = 0.0
    out[np.arange(len(out)), which] = 1.0
    out[given.codes < 0] = np.nan


@dataclass(frozen=True, slots=True)
class Sampled:
    """The first values of a column; ``kind`` where the format knows it."""

    values: Values
    kind: str | None = None
    decimal: str = "."


def coded_numbers(numbers: Floats) -> Coded:
    """Numbers as texts, whole ones without a point.

    >>> coded_numbers(np.array([1.0, 0.5])).values
    ['1', '0.5']
    """
    texts = [None if x != x else str(int(x)) if x.is_integer() else repr(x) for x in numbers.tolist()]
    return Coded.of(texts)
