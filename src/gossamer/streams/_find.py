"""Infer the schema of a stream from its first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.exceptions import ParameterError
from gossamer.rows import Coded, Column as Feature, Plan, Table
from gossamer.rows.find import Limits, find_plan
from gossamer.rows.parse import NUMBER
from gossamer.rows.plan import parse_kind
from gossamer.rows.table import Values
from gossamer.streams._schema import KINDS, Column, Sampled, Schema, as_number

#: The largest number of distinct integers in a target that are taken for classes.
CLASSES = 20


def find_schema(
    sample: Mapping[str, Sampled], target: str | int | None, columns: Sequence[str | int] | None,
    ignore: Sequence[str | int], kinds: Mapping[str, str], task: str | None, categories: int,
    max_features: int | None = None, plain: bool = False, encode: bool = False,
) -> Schema:  # fmt: skip
    """The schema of a stream, from its first rows and the user's options.

    A stream that encodes rows itself, ``encode``, keeps all its columns where all are numbers: a counter may be meant.
    """
    names = Names(sample)
    goal = None if target is None else _named("target", target, names)
    chosen = None if columns is None else [_named("columns", each, names) for each in _check_list("columns", columns)]
    wanted = names.all if chosen is None else chosen
    without = {goal, *(_named("ignore", column, names) for column in _check_list("ignore", ignore))}
    for name, kind in kinds.items():
        _named("kinds", name, names)
        if name == goal:
            _checks.one_of("open_stream", "kinds", kind, KINDS)
        else:
            try:
                parse_kind(name, kind, Feature(name, "number"))
            except ParameterError as error:
                raise _checks.wrong("open_stream", "kinds", error.rule, kind) from None
    chosen = [name for name in wanted if name not in without]
    if not chosen:
        raise _checks.wrong("open_stream", "columns", "such that a feature remains", names.shown())
    if len(set(chosen)) < len(chosen):
        raise _checks.wrong("open_stream", "columns", "different", list(columns or ()))
    check_width(len(chosen), max_features)
    said = {name: kind for name, kind in kinds.items() if name in chosen}
    if plain and not said:
        return Schema(Plan(Feature(name, "number") for name in chosen), _target(sample, goal, kinds, task))
    limits = Limits(places=categories, hashed=min(16, categories), open=False)
    table = sample_table(sample, chosen)
    plan = find_plan(table, said, limits)
    if encode and all(c.kind == "number" or (c.kind == "id" and _is_numeric(table[c.name])) for c in plan):
        plan = find_plan(table, said, replace(limits, all=True))
    if not plan.names:
        kinds_found = ", ".join(f"{column.name} ({column.kind})" for column in plan[:5])
        raise _checks.wrong("open_stream", "columns", "such that a feature remains", kinds_found)
    check_width(len(plan.names), max_features)
    return Schema(plan, _target(sample, goal, kinds, task))


def _is_numeric(values: Values) -> bool:
    return not isinstance(values, Coded) or all(NUMBER.fullmatch(text) for text in values.values)


def _target(
    sample: Mapping[str, Sampled], goal: str | None, kinds: Mapping[str, str], task: str | None
) -> Column | None:
    return None if goal is None else Column(goal, _target_kind(sample[goal], kinds.get(goal), task))


def sample_table(sample: Mapping[str, Sampled], names: Sequence[str]) -> Table:
    """The first rows of some columns."""
    values, hints = dict[str, Values](), dict[str, str]()
    for name in names:
        values[name], hint = sample[name].for_plan()
        if hint:
            hints[name] = hint
    rows = max((len(part) for part in values.values()), default=0)
    return Table(rows, values, hints)


def check_width(features: int, most: int | None) -> None:
    """Refuse wide data before they take much memory."""
    if most is not None and features > most:
        rule = f"at least {features}, the number of features, which all rows then have (columns= can choose fewer)"
        raise _checks.wrong("open_stream", "max_features", rule, most)


class Names:
    """The names of the columns: in order, and by name."""

    def __init__(self, names: Iterable[str]) -> None:
        self.all = list(names)
        self.known = set(self.all)

    def shown(self) -> str:
        """The first of them, for an error."""
        return ", ".join(repr(name[:40]) for name in self.all[:20]) + (", ..." if len(self.all) > 20 else "")


def repeated(names: Sequence[str]) -> str | None:
    """The first name in sorted order that comes more than once.

    >>> repeated(["b", "a", "b"])
    'b'
    """
    return min((name for name, count in Counter(names).items() if count > 1), default=None)


def kind_of(sampled: Sampled) -> str:
    """The kind of a column. A column that is empty so far is taken for numbers."""
    if sampled.kind is not None:
        return sampled.kind
    if not isinstance(sampled.values, Coded):
        return "number"
    values = sampled.values.values
    if all(is_number(value, sampled.decimal) for value in values):
        return "number"
    for kind in ("boolean", "date"):
        if all(as_number(value, kind) < np.inf for value in values):
            return kind
    return "text"


def is_number(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number, with this decimal sign.

    >>> is_number("-1.5e3"), is_number("1,5"), is_number("1,5", ",")
    (True, False, True)
    """
    return NUMBER.fullmatch(text if decimal == "." else _use_point(text, decimal)) is not None


def _use_point(text: str, decimal: str) -> str:
    return "no number" if "." in text else text.replace(decimal, ".")


def infer_task(y: Any) -> str:
    """The task of a target: "novelty" without a target, "classification" for text, booleans and few integers.

    Few: at most 2, or at most 20 of which each comes 5 times on average. Everything else is "regression".

    >>> infer_task(None), infer_task(["a", "b"]), infer_task([1, 0, 1]), infer_task([0.5, 1.0])
    ('novelty', 'classification', 'classification', 'regression')
    """
    if y is None:
        return "novelty"
    labels = np.asarray(y)
    if labels.dtype.kind in "iuf":
        labels = labels[np.isfinite(labels)]
        return "classification" if _few_whole(labels.astype(np.float64)) else "regression"
    return "classification"


def _few_whole(numbers: Floats) -> bool:
    if not np.all(numbers == np.floor(numbers)):
        return False
    return len(np.unique(numbers)) <= max(2, min(CLASSES, len(numbers) // 5))


def _target_kind(sampled: Sampled, kind: str | None, task: str | None) -> str:
    found = kind or kind_of(sampled)
    if task == "regression":
        if found in ("boolean", "text"):
            raise _checks.wrong("open_stream", "task", f"'classification' for a target of kind {found!r}", task)
        return "number" if found == "integer" else found
    if kind is not None or found != "number":
        return found
    values = sampled.values
    if isinstance(values, Coded):
        texts = values.values
        if sampled.decimal != ".":
            texts = [_use_point(text, sampled.decimal) for text in texts]
        values = values.map([float(text) for text in texts])
    known = values[np.isfinite(values)]
    whole = bool(np.all(known == np.floor(known)))
    if task == "classification":
        return "integer" if whole else "text"
    return "integer" if whole and _few_whole(known) else "number"


def _named(parameter: str, wanted: str | int, names: Names) -> str:
    if isinstance(wanted, str) and wanted in names.known:
        return wanted
    if isinstance(wanted, str) and re.fullmatch(r"-?\d{1,9}", wanted, re.ASCII):  # as a command line has it
        wanted = int(wanted)
    if isinstance(wanted, int) and not isinstance(wanted, bool) and -len(names.all) <= wanted < len(names.all):
        return names.all[wanted]
    raise _checks.wrong("open_stream", parameter, f"among the columns {names.shown()}", wanted)


def _check_list(parameter: str, given: Any) -> list[Any]:
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise _checks.wrong("open_stream", parameter, "a list of names or positions", given)
    return list(given)
