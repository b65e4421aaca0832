"""Infer the schema of a stream from its first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.streams._schema import KINDS, Coded, Column, Sampled, Schema, Values, as_number, coded_numbers

#: The largest number of distinct integers in a target that are taken for classes.
CLASSES = 20
# possessive quantifiers: no backtracking, so that matching takes linear time
NUMBER = re.compile(
    r"[+-]?+(?:(?:\d++(?:\.\d*+)?+|\.\d++)(?:[eE][+-]?+\d++)?+|inf(?:inity)?+|nan)", re.ASCII | re.IGNORECASE
)


def find_schema(
    sample: Mapping[str, Sampled], target: str | int | None, columns: Sequence[str | int] | None,
    ignore: Sequence[str | int], kinds: Mapping[str, str], task: str | None, categories: int,
    max_features: int | None = None,
) -> Schema:  # fmt: skip
    """The schema of a stream, from its first rows and the user's options."""
    names = Names(sample)
    goal = None if target is None else _named("target", target, names)
    chosen = None if columns is None else [_named("columns", each, names) for each in _check_list("columns", columns)]
    wanted = names.all if chosen is None else chosen
    without = {goal, *(_named("ignore", column, names) for column in _check_list("ignore", ignore))}
    for name, kind in kinds.items():
        _named("kinds", name, names)
        _checks.one_of("open_stream", "kinds", kind, KINDS)
    features = []
    for name in wanted:
        if name in without:
            continue
        kind = kinds.get(name) or kind_of(sample[name])
        kind = "number" if kind == "integer" else kind
        features.append(Column(name, kind, _categories(sample[name].values, categories) if kind == "text" else ()))
    if not features:
        raise _checks.wrong("open_stream", "columns", "such that a feature remains", names.shown())
    if len({column.name for column in features}) < len(features):
        raise _checks.wrong("open_stream", "columns", "different", list(columns or ()))
    check_width(sum(len(column.categories) + 1 for column in features), max_features)
    return Schema(features, None if goal is None else Column(goal, _target_kind(sample[goal], kinds.get(goal), task)))


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


def _categories(values: Values, most: int) -> tuple[str, ...]:
    """The most frequent categories of the sample (of equals the earlier), in order of appearance."""
    if not isinstance(values, Coded):
        values = coded_numbers(values)
    counts = np.bincount(values.codes[values.codes >= 0], minlength=len(values.values))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:most])
    return tuple(values.values[i] for i in chosen if counts[i])


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
