"""A saved model with what prediction needs besides: the task, the columns, and the means that fill gaps."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gossamer import store
from gossamer.estimators import OnlineScaler
from gossamer.streams import Schema

KIND = "gossamer model"


class Saved(NamedTuple):
    """The content of a file of ``gossamer run --save``."""

    model: Any
    task: str
    schema: Schema
    means: dict[str, Any] | None


def content(model: Any, task: str, schema: Schema, means: Any = None) -> dict[str, Any]:
    """What is saved. `gossamer.load` gives it back as a dict; ``["model"]`` is the pipeline of scaler and learner."""
    kept = {} if means is None else {"means": means}
    return {"kind": KIND, "version": 1, "task": task, "schema": schema.to_dict(), **kept, "model": model}


def read(path: str) -> Saved:
    """Model, task, columns and means."""
    found = store.load(path)
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} must be a model that 'gossamer run --save' wrote. Got another file of Gossamer.")
    schema, means = Schema.from_dict(found["schema"]), found.get("means")
    return Saved(found["model"], str(found["task"]), schema, means or _scaler_means(found["model"]))


def _scaler_means(model: Any) -> dict[str, Any] | None:
    """The means that the scaler of a model has learned: a run without --missing mean had no gaps."""
    for _, step in getattr(model, "steps", []):
        if isinstance(step, OnlineScaler) and "mean_" in step.__dict__:
            weight = float(step.n_seen_)
            return {"sums": [(weight * step.mean_).tolist(), np.full(len(step.mean_), weight).tolist()]}
    return None
