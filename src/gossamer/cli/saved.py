"""A saved model with what prediction needs besides: the task, and what the columns are."""

from __future__ import annotations

from typing import Any, NamedTuple

from gossamer import store
from gossamer.cli.legacy import convert
from gossamer.estimators import OnlinePipeline, OnlineScaler
from gossamer.rows import RowEncoder
from gossamer.streams import Schema
from gossamer.streams._indices import read_schema

KIND = "gossamer model"


class Saved(NamedTuple):
    """The content of a file of ``gossamer run --save``: what encodes rows, what learns them, the task, the columns."""

    encoder: RowEncoder | OnlineScaler | None
    model: OnlinePipeline
    task: str
    schema: Schema


def content(encoder: Any, model: OnlinePipeline, task: str, schema: Schema) -> dict[str, Any]:
    """What is saved. `gossamer.load` gives it back as a dict; ``["model"]`` is the pipeline of encoder and learner."""
    whole = model if encoder is None else join(encoder, model)
    return {"kind": KIND, "version": 2, "task": task, "schema": schema.to_dict(), "model": whole}


def join(encoder: Any, model: OnlinePipeline) -> OnlinePipeline:
    """The pipeline of an encoder and a model: what users of the library load."""
    return OnlinePipeline([(type(encoder).__name__.lower(), encoder), *model.steps])


def read(path: str) -> Saved:
    """The content of a file, also of version 1."""
    found = store.load(path)
    if not isinstance(found, dict) or found.get("kind") != KIND:
        raise ValueError(f"{path} must be a model that 'gossamer run --save' wrote. Got another file of Gossamer.")
    if found.get("version") == 1:
        found = convert(found)
    model = found["model"]
    first = model.steps[0][1]
    schema = read_schema(found["schema"])
    if len(model.steps) > 1 and isinstance(first, (RowEncoder, OnlineScaler)):
        return Saved(first, OnlinePipeline(model.steps[1:]), str(found["task"]), schema)
    return Saved(None, model, str(found["task"]), schema)
