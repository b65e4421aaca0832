"""``gossamer inspect``: describe a saved model or a checkpoint on a page, without making the model."""

from __future__ import annotations

import argparse
import json
from typing import Any

from gossamer import store
from gossamer.cli.checkpoint import KIND

#: The entries of a learner's state that are shown.
LEARNER = ("points", "offset", "level", "steps", "updates", "mistakes")
#: The same for a mixture: its experts are settings, and their weights.
SHOWN = {"Learner": LEARNER, "MixedLearner": ("rows", "known", "settings", "weights")}
#: The most entries of a list that are shown, and the most letters of a line.
MOST, WIDEST = 12, 160


def work(options: argparse.Namespace) -> None:
    """Print the facts."""
    facts = store.inspect(options.model)
    if options.json:
        print(json.dumps(facts, indent=1, default=str))
        return
    del facts["arrays"]  # they are shown where they belong
    value = facts["value"]
    if isinstance(value, dict) and value.get("kind") == KIND:
        facts["value"] = summarize_checkpoint(value)
    elif isinstance(value, dict) and "schema" in value:
        facts["value"] = {**value, "schema": _columns(value["schema"])}
    for line in lines(facts):
        print(line if len(line) <= WIDEST else line[: WIDEST - 4] + " ...")


def summarize_checkpoint(value: dict[str, Any]) -> dict[str, Any]:
    """Describe a checkpoint: position, options, metrics, model."""
    if "evaluation" not in value:  # of --labels
        return {name: part for name, part in value.items() if name not in ("lines", "early", "rows", "labels")}
    evaluation, position = value["evaluation"], value["position"]
    given = {name: one for name, one in value["options"].items() if one not in (None, False, [], "")}
    records = evaluation["trace"]["records"]
    last = records[-1] if records else {"total": {}, "window": {}}
    metrics = {
        name: f"{_number(total)} over all rows, {_number(last['window'][name])} in the last window"
        for name, total in last["total"].items()
    }
    named = ("kind", "version", "row", "done", "task")
    return {
        **{name: value[name] for name in named if name in value},
        "input": f"{position['format']}, after row {position['row']}",
        "output": "none" if value["out"] is None else f"{value['out']} bytes",
        "options": ", ".join(f"{name} {one}" for name, one in given.items()),
        "records": len(records),
        "metrics": metrics,
        "late rows": sum(len(rows) for rows, *_ in evaluation.get("late") or []),
        "schema": _columns(position["schema"]),
        "encoder": value.get("encoder"),
        "model": value["model"],
    }


def _columns(schema: Any) -> Any:
    """The columns of a schema by name and kind, where they are told one by one."""
    plan = schema.get("plan") if isinstance(schema, dict) else None
    if not isinstance(plan, list) or not all(isinstance(column, dict) for column in plan):
        return schema
    return {**schema, "plan": [[str(column.get("name")), str(column.get("kind"))] for column in plan]}


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def lines(value: Any, name: str = "", depth: int = 0) -> list[str]:
    """Nested facts, one a line, indented; lists of plain things stay in their line, and long lists are cut.

    >>> lines({"task": "regression", "model": {"class": "SILKRegressor", "parameters": {"C": 1.0}}})
    ['task: regression', 'model: SILKRegressor', '  C: 1.0']
    >>> lines({"classes": list(range(100))})
    ['classes: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... (100 in all)']
    """
    space = "  " * depth
    if isinstance(value, dict) and {"class", "parameters"} <= set(value):
        learned = value.get("learned", {})
        chosen = SHOWN.get(value["class"], [name for name in learned if name[0] != "_"])
        inside = {**value["parameters"], **{name: learned[name] for name in chosen if name in learned}}
        if value["class"] == "RowEncoder":  # its columns are those of the schema
            inside = {name: inside[name] for name in ("scale", "forget", "n_seen_") if name in inside}
        return [f"{space}{name}: {value['class']}", *lines(inside, "", depth + 1)]
    if isinstance(value, dict) and (not name or value):
        head = [f"{space}{name}:"] if name else []
        deeper = depth + 1 if name else depth
        return head + [line for key, one in value.items() for line in lines(one, str(key), deeper)]
    if isinstance(value, list) and any(isinstance(one, (dict, list)) for one in value):
        shown = value[:MOST]
        more = [f"{space}  ... ({len(value)} in all)"] if len(value) > MOST else []
        if all(isinstance(one, list) and one and isinstance(one[0], str) for one in value):
            return [f"{space}{name}:", *(line for one in shown for line in _entry(one, depth + 1)), *more]
        inner = (line for i, one in enumerate(shown) for line in lines(one, str(i), depth + 1))
        return [f"{space}{name}:", *inner, *more]
    return [f"{space}{name}: {_joined(value) if isinstance(value, list) else value}"]


def _entry(entry: list[Any], depth: int) -> list[str]:
    """A named entry of a list: a step of a pipeline, or a column with its kind and categories."""
    name, *rest = entry
    if len(rest) == 2 and isinstance(rest[1], list):
        rest = [f"{rest[0]} ({_joined(rest[1])})" if rest[1] else rest[0]]
    return lines(rest[0] if len(rest) == 1 else rest, name, depth)


def _joined(values: list[Any]) -> str:
    cut = f", ... ({len(values)} in all)" if len(values) > MOST else ""
    return ", ".join(map(str, values[:MOST])) + cut
