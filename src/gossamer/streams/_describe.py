"""`Stream.describe`: a line of text per column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from gossamer.streams._find import kind_of
from gossamer.streams._schema import Coded, Sampled, Schema

#: More columns than this share lines.
LINES = 40
#: A text that could be meant as a number, and what is put around numbers.
DISGUISED = re.compile(r"[+-]?[$€£¥]?[ \u00a0]?[+-]?\d[\d.,'\u2019 \u00a0]{0,30}[ \u00a0]?[%$€£¥]?", re.ASCII)
COMMA = re.compile(r"[+-]?\d*,\d+", re.ASCII)
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})*", re.ASCII)
CURRENCY = "$€£¥"


@dataclass(frozen=True, slots=True)
class Seen:
    """The summary of a column's first rows."""

    kind: str
    missing: int
    different: int | None
    example: str | None
    hint: str = ""


def look(sample: Mapping[str, Sampled]) -> dict[str, Seen]:
    """A summary of each column of a sample; columns that share their values share it."""
    made: dict[int, Seen] = {}
    for found in sample.values():
        made[id(found)] = made.get(id(found)) or _summarize(found)
    return {name: made[id(found)] for name, found in sample.items()}


def _summarize(found: Sampled) -> Seen:
    kind, values = kind_of(found), found.values
    if isinstance(values, Coded):
        missing = int(np.count_nonzero(values.codes < 0))
        example = values.values[0][:40] if values.values else None
        if kind != "text":
            return Seen(kind, missing, None, example)
        return Seen(kind, missing, len(values.values), example, _guess(values.values, found.decimal))
    there = values[~np.isnan(values)]
    return Seen(kind, len(values) - len(there), None, f"{there[0]:g}" if len(there) else None)


def _guess(texts: list[str], decimal: str) -> str:
    """A guess at the intended kind of a text column."""
    some = texts[:50]
    if not some or not all(len(text) <= 40 and DISGUISED.fullmatch(text) for text in some):
        return ""
    thousands = all(THOUSANDS.fullmatch(text) for text in some)
    commas = all(COMMA.fullmatch(text) or text.lstrip("+-").isdecimal() for text in some)
    if commas and not thousands and decimal != ",":
        return "numbers with a decimal comma? Then decimal=',' reads them"
    signs = "".join(some)
    what = [words for words, found in (
        ("a percent sign", "%" in signs),
        ("a currency sign", any(sign in signs for sign in CURRENCY)),
        ("separators", any(sign in signs for sign in ",.'\u2019 \u00a0")),
    ) if found]  # fmt: skip
    return f"numbers with {' and '.join(what)}? They are taken for text" if what else ""


def describe(schema: Schema, seen: Mapping[str, Seen]) -> list[str]:
    """The lines."""
    used = {column.name: column.kind for column in schema.features}
    roles = dict.fromkeys(used, "")
    target = schema.target
    if target is not None:
        used[target.name], roles[target.name] = target.kind, " (target)"
    for name, found in seen.items():
        if name not in used:
            used[name], roles[name] = found.kind, " (ignored)"
    names = list(dict.fromkeys([*seen, *used]))
    if len(names) <= LINES:
        return [_line([name], roles[name], used[name], seen.get(name)) for name in names]
    groups = groupby(names, key=lambda name: (roles[name], used[name]))
    return [line for (role, kind), group in groups for line in _share(list(group), role, kind, seen)]


def _share(names: list[str], role: str, kind: str, seen: Mapping[str, Seen]) -> Iterable[str]:
    if len(names) == 1 or any((found := seen.get(name)) and found.hint for name in names):
        return [_line([name], role, kind, seen.get(name)) for name in names]
    return [_line(names, role, kind, seen.get(names[0]))]


def _line(names: list[str], role: str, kind: str, found: Seen | None) -> str:
    words = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names):,} columns)"
    line = f"{words}{role}: {kind}"
    if found is None:
        return line
    if len(names) == 1:
        line += "" if not found.different or found.different <= 2 else f", {found.different:,} different"
        line += f", {found.missing:,} missing" if found.missing else ""
    line += "" if found.example is None else f", such as {found.example!r}"
    hint = found.hint if kind == "text" else ""
    return line + (f": {hint}" if hint else "")
