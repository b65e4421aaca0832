"""From the docstrings of the package to reStructuredText, for autodoc.

A docstring here is plain text: formulas with stars, bars and names that end in an underscore, code in backticks, lists
of the form ``name : meaning`` under a heading, and examples. Only code, lists and examples are mark-up.
"""

from __future__ import annotations

import re
from typing import Any

#: `name : meaning` at the head of an entry; several names may share a meaning.
ENTRY = re.compile(r"(\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*) ?: (.*)")
CODE = re.compile(r"(``.*?``|`[^`]+`)")


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Rewrite the lines of one docstring in place."""
    lines[:] = rewritten(lines)


def skip(app: Any, what: str, name: str, thing: Any, skipped: bool, options: Any) -> bool | None:
    """Inherited members are shown if a class of this package says what they are; None leaves it to autodoc."""
    said = (getattr(thing, "__doc__", None) or "").strip()
    module = getattr(getattr(thing, "fget", None) or thing, "__module__", None) or ""
    return None if said and module.startswith("gossamer") else True


def rewritten(lines: list[str]) -> list[str]:
    """The docstring as reStructuredText."""
    made: list[str] = []
    section, example = "", False
    for i, line in enumerate(lines):
        following = lines[i + 1] if i + 1 < len(lines) else ""
        if line and not line.startswith(" ") and re.fullmatch(r"-{3,}", following):
            section = line
            made += ["", f"**{line}**", ""]
        elif re.fullmatch(r"-{3,}", line) and section:
            continue
        elif line.lstrip().startswith(">>>") or (example and line.strip()):
            if not example and made and made[-1].strip():
                made.append("")
            example = True
            made.append(line)
        else:
            example = False
            made += _text(line, section)
    return [*made, ""]


def _text(line: str, section: str) -> list[str]:
    entry = ENTRY.fullmatch(line) if section in ("Parameters", "Attributes") else None
    if entry:
        names = ", ".join(f"``{name}``" for name in entry[1].split(", "))
        return [names, f"    {escaped(entry[2])}"]
    return [escaped(line)]


def escaped(line: str) -> str:
    """The line with nothing but code as mark-up."""
    parts = CODE.split(line)
    return "".join(part if i % 2 else re.sub(r"([*|]|(?<=\w)_(?!\w))", r"\\\1", part) for i, part in enumerate(parts))
