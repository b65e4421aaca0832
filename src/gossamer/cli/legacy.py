"""Models of version 0.1 of ``gossamer run --save``: fixed categories, dates as seconds, means beside the model."""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer.estimators import OnlinePipeline, OnlineScaler
from gossamer.rows import Column, Plan, RowEncoder
from gossamer.streams import Schema
from gossamer.streams._schema import Column as Target


def convert(found: dict[str, Any]) -> dict[str, Any]:
    """The content of such a file as this version writes it: the same features, made by a `RowEncoder`."""
    columns = found["schema"]["features"]
    plan = Plan.of([_column(str(name), str(kind), len(categories)) for name, kind, categories in columns])
    goal = found["schema"]["target"]
    schema = Schema(plan, None if goal is None else Target(str(goal[0]), str(goal[1])))
    encoder = RowEncoder(plan, scale=False).settle()
    state = encoder._layout.state()
    for name, kind, categories in columns:
        if kind == "text":
            part = state["categories"][str(name)]
            part["texts"] = [*map(str, categories), *part["texts"][len(categories) :]]
            part["counts"][0, : len(categories)] = 1.0
    state["numbers"][:2] = _means(found, encoder)
    encoder._layout.restore(state, encoder.memory)
    model = OnlinePipeline([("rowencoder", encoder), *found["model"].steps])
    return {**found, "schema": schema.to_dict(), "model": model}


def _column(name: str, kind: str, categories: int) -> Column:
    if kind == "text":
        return Column(name, "category", places=max(1, categories), hashed=1, why="as in version 0.1")
    return Column(name, "timestamp", parts=("since",)) if kind == "date" else Column(name, kind)


def _means(found: dict[str, Any], encoder: RowEncoder) -> Any:
    """The weight and the mean of each number: those of --missing mean, or of the scaler."""
    layout = encoder._layout
    means = found.get("means")
    if means is not None and "sums" in means:
        sums, counts = np.array(means["sums"], dtype=np.float64).reshape(2, layout.width)[:, layout.places]
        return np.stack([counts, np.where(counts > 0, sums / np.maximum(counts, 1.0), 0.0)])
    for _, step in found["model"].steps:
        if isinstance(step, OnlineScaler) and "mean_" in step.__dict__:
            return np.stack([np.full(len(layout.places), float(step.n_seen_)), step.mean_[layout.places]])
    return np.zeros((2, len(layout.places)))
