"""``gossamer inspect``: what a saved model is, told by its file alone."""

from __future__ import annotations

import argparse
import json
from typing import Any

#: What of a learner's state says something to people.
LEARNER = ("points", "offset", "level", "steps", "updates", "mistakes")


def add(commands: Any) -> None:
    """Its parser."""
    parser = commands.add_parser(
        "inspect",
        help="what is in a saved model or a checkpoint",
        description="Tell what a file of Gossamer holds: versions, classes, parameters, columns, arrays. The file is "
        "checked, the model is not made, and no code of it runs (there is none).",
        epilog="example:\n  gossamer inspect model.gsm\n  gossamer inspect model.gsm --json | jq .value.task",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="the file")
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")
    parser.set_defaults(work=work)


def work(options: argparse.Namespace) -> None:
    """Print the facts."""
    from gossamer import store

    facts = store.inspect(options.model)
    if options.json:
        print(json.dumps(facts, indent=1, default=str))
        return
    del facts["arrays"]  # they stand where they belong
    for line in lines(facts):
        print(line)


def lines(value: Any, name: str = "", depth: int = 0) -> list[str]:
    """Nested facts, one a line, indented; lists of plain things stay in their line.

    >>> lines({"task": "regression", "model": {"class": "SILKRegressor", "parameters": {"C": 1.0}}})
    ['task: regression', 'model: SILKRegressor', '  C: 1.0']
    """
    space = "  " * depth
    if isinstance(value, dict) and {"class", "parameters"} <= set(value):
        learned = value.get("learned", {})
        chosen = LEARNER if value["class"] == "Learner" else [name for name in learned if name[0] != "_"]
        inside = {**value["parameters"], **{name: learned[name] for name in chosen if name in learned}}
        return [f"{space}{name}: {value['class']}", *lines(inside, "", depth + 1)]
    if isinstance(value, dict) and (not name or value):
        head = [f"{space}{name}:"] if name else []
        deeper = depth + 1 if name else depth
        return head + [line for key, one in value.items() for line in lines(one, str(key), deeper)]
    if isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        if all(isinstance(one, list) and one and isinstance(one[0], str) for one in value):
            return [f"{space}{name}:", *(line for one in value for line in _pair(one, depth + 1))]
        return [f"{space}{name}:", *(line for i, one in enumerate(value) for line in lines(one, str(i), depth + 1))]
    shown = ", ".join(map(str, value)) if isinstance(value, list) else value
    return [f"{space}{name}: {shown}"]


def _pair(entry: list[Any], depth: int) -> list[str]:
    """A named entry of a list: a step of a pipeline, a column."""
    name, *rest = entry
    rest = [one for one in rest if one != []]
    return lines(rest[0] if len(rest) == 1 else rest, name, depth)
