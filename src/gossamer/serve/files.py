"""Models from the bytes of .gsm files: never a pickle, and nothing in a file is run."""

from __future__ import annotations

from typing import Any

from gossamer import _checks, store
from gossamer.estimators.pipelines import last_step
from gossamer.serve.recipes import Recipe, check_loaded, split


def read_model(data: bytes) -> tuple[Recipe, bytes]:
    """The recipe and the bytes of the model in a file: of ``save``, or of ``gossamer run --save``."""
    found, columns, target = store.loads(data), None, None
    if isinstance(found, dict) and found.get("kind") == "gossamer model":
        try:
            encoded = split(found["model"])[0] is not None
            columns, target = _columns_of(found["schema"], encoded)
            found = found["model"]
        except (AttributeError, LookupError, TypeError):
            raise _checks.wrong("model", "file", "as 'gossamer run --save' writes it", "another") from None
    model = check_loaded(found)
    encoder, _ = split(model)
    if encoder is not None and encoder.__sklearn_is_fitted__():
        columns = [column.name for column in encoder.plan_]
    first = model.steps[0][1] if hasattr(model, "steps") else model
    width = getattr(first, "n_features_in_", None)
    if width is None:
        raise _checks.wrong("model", "file", "a model that has learned rows of numbers", type(model).__name__)
    if columns is None:
        names = getattr(first, "feature_names_in_", None)
        columns = [f"x{i}" for i in range(width)] if names is None else [str(name) for name in names]
    recipe = Recipe(task=last_step(model).task, learner="auto", columns=columns, target=target, scale=False)
    return recipe, store.dumps(model)


def _columns_of(schema: dict[str, Any], encoded: bool) -> tuple[list[str] | None, str | None]:
    """The columns and the target of a file of ``gossamer run --save``; one of 0.1.0 has numbers only."""
    target = schema["target"] and schema["target"][0]
    if encoded:
        return None, target
    if "features" in schema:  # of 0.1.0
        plain = all(kind in ("number", "integer", "boolean") for _, kind, _ in schema["features"])
        names = [name for name, *_ in schema["features"]]
    else:
        plain, names = all(isinstance(name, str) for name in schema["plan"]), list(schema["plan"])
    if not plain:
        raise _checks.wrong("model", "file", "one whose columns are numbers", "texts, dates or gaps among them")
    return names, target
