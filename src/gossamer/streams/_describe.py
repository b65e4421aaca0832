"""`Stream.describe`: a line of text per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from gossamer.rows import Coded
from gossamer.rows.plan import LEFT_OUT
from gossamer.streams._find import kind_of
from gossamer.streams._schema import Sampled, Schema

#: More columns than this share lines.
LINES = 40


@dataclass(frozen=True, slots=True)
class Seen:
    """The summary of a column's first rows."""

    kind: str
    missing: int
    example: str | None


def look(sample: Mapping[str, Sampled]) -> dict[str, Seen]:
    """A summary of each column of a sample; columns that share their values share it."""
    made: dict[int, Seen] = {}
    for found in sample.values():
        made[id(found)] = made.get(id(found)) or _summarize(found)
    return {name: made[id(found)] for name, found in sample.items()}


def _summarize(found: Sampled) -> Seen:
    values = found.values
    if isinstance(values, Coded):
        missing = int(np.count_nonzero(values.codes < 0))
        return Seen(kind_of(found), missing, values.values[0][:40] if values.values else None)
    there = values[~np.isnan(values)]
    return Seen(kind_of(found), len(values) - len(there), f"{there[0]:g}" if len(there) else None)


def describe(schema: Schema, seen: Mapping[str, Seen]) -> list[str]:
    """The lines: a column's use and kind, what was missing in the first rows, an example, what it becomes, and why."""
    lines: dict[str, tuple[str, str]] = {}
    for feature in schema.plan:
        out = feature.kind in LEFT_OUT
        words = "; ".join(part for part in ("" if out else feature.show(), feature.why) if part)
        lines[feature.name] = f"{' (left out)' if out else ''}: {feature.kind}", words
    if schema.target is not None:
        lines[schema.target.name] = f" (target): {schema.target.kind}", ""
    for name, found in seen.items():
        lines.setdefault(name, (f" (ignored): {found.kind}", ""))
    names = list(dict.fromkeys([*seen, *lines]))
    if len(names) <= LINES:
        return [_line([name], *lines[name], seen.get(name)) for name in names]
    groups = [list(group) for _, group in groupby(names, key=lambda name: lines[name])]
    return [_line(group, *lines[group[0]], seen.get(group[0])) for group in groups]


def _line(names: list[str], kind: str, words: str, found: Seen | None) -> str:
    line = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names):,} columns)"
    line += kind
    if found is not None:
        line += f", {found.missing:,} missing" if found.missing and len(names) == 1 else ""
        line += "" if found.example is None else f", such as {found.example!r}"
    return line + (f": {words}" if words else "")
