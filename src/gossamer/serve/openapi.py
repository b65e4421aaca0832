"""The OpenAPI document, made of the types that the requests are decoded with."""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer.serve.recipes import Recipe
from gossamer.serve.rows import Request


class Prediction(msgspec.Struct):
    """Predictions, one for each row: labels, numbers, or true for an alarm."""

    predictions: list[str | int | float | bool | None]
    learned: int
    scores: list[Any] | None = None
    proba: list[list[float]] | None = None
    classes: list[str | int | bool] | None = None
    std: list[float] | None = None


class Learned(msgspec.Struct):
    """The rows are synced and learned: ``seq`` is their entry in the journal."""

    seq: int
    rows: int
    learned: int
    predictions: list[str | int | float | bool | None] | None = None
    repeated: bool | None = None


class Failure(msgspec.Struct):
    """What was wrong."""

    status: int
    message: str
    parameter: str | None = None


#: verb, path, what it does, the scopes, the type of the body, the type of the answer
PATHS: list[tuple[str, str, str, str, Any, Any]] = [
    ("get", "/v1/models", "List all models.", "predict", None, None),
    ("put", "/v1/models/{name}", "Create a model.", "admin", Recipe, None),
    ("get", "/v1/models/{name}", "Describe a model.", "predict", None, None),
    ("delete", "/v1/models/{name}", "Delete a model.", "admin", None, None),
    (
        "post",
        "/v1/models/{name}/predict",
        "Predict rows; with ids, they wait for labels.",
        "predict",
        Request,
        Prediction,
    ),
    ("post", "/v1/models/{name}/learn", "Learn rows with labels.", "learn", Request, Learned),
    ("post", "/v1/models/{name}/predict_learn", "Predict rows, then learn them.", "learn", Request, Learned),
    ("post", "/v1/models/{name}/labels", "Labels of rows that were predicted with ids.", "learn", Request, Learned),
    ("get", "/v1/models/{name}/story", "Errors over time, latest rows, events.", "predict", None, None),
    ("get", "/v1/models/{name}/versions", "List the stored states.", "predict", None, None),
    ("post", "/v1/models/{name}/versions", "Store the model under a label.", "admin", None, None),
    ("post", "/v1/models/{name}/rollback", "Go back to a version.", "admin", None, None),
    ("get", "/v1/models/{name}/file", "Export as a .gsm file.", "admin", None, None),
    ("put", "/v1/models/{name}/file", "Import a .gsm file.", "admin", None, None),
    ("get", "/v1/events", "Server-sent events for the dashboard.", "predict", None, None),
    ("get", "/healthz", "Whether the process lives.", "", None, None),
    ("get", "/readyz", "Whether rows can be learned.", "", None, None),
    ("get", "/metrics", "Numbers for Prometheus.", "predict", None, None),
    ("get", "/openapi.json", "This document.", "", None, None),
]


def document(version: str) -> dict[str, Any]:
    """The document.

    >>> sorted(document("1")["paths"])[0]
    '/healthz'
    """
    kinds = [Request, Recipe, Prediction, Learned, Failure]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    named = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for verb, path, words, scope, body, answer in PATHS:
        content = {} if answer is None else {"content": {"application/json": {"schema": named[answer]}}}
        failure = {"description": "refused", "content": {"application/json": {"schema": named[Failure]}}}
        operation: dict[str, Any] = {"summary": words, "responses": {"200": {"description": "done", **content}}}
        operation["responses"]["default"] = failure
        if scope:
            operation["security"] = [{"token": [scope]}]
        if body is not None:
            operation["requestBody"] = {"content": {"application/json": {"schema": named[body]}}}
        if "{name}" in path:
            place = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
            operation["parameters"] = [place]
        paths.setdefault(path, {})[verb] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "gossamer serve", "version": version},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
