"""A saved model with what prediction needs besides: the task and the columns."""

from __future__ import annotations

from typing import Any

from gossamer import store
from gossamer.streams import Schema

KIND = "gossamer model"


def content(model: Any, task: str, schema: Schema) -> dict[str, Any]:
    """What is saved. `gossamer.load` gives it back as a dict; ``["model"]`` is the pipeline of scaler and learner."""
    return {"kind": KIND, "version": 1, "task": task, "schema": schema.to_dict(), "model": model}


def read(path: str) -> tuple[Any, str, Schema]:
    """Model, task and columns."""
    found = store.load(path)
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} must be a model that 'gossamer run --save' wrote. Got another file of Gossamer.")
    return found["model"], str(found["task"]), Schema.from_dict(found["schema"])
