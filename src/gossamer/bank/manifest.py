"""The metadata in the file of a `ModelBank`: the model's parameters, the rows, the labels, the offset."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer import _checks, store
from gossamer.bank.keyed import LABELS

#: The most features of the rows of a bank: a model takes memory for each before it has seen a row.
MOST_FEATURES = 2**20
#: The entries that are stored as JSON.
ENTRIES = ("features", "dtype", "names", "labels", "classes", "offset")


@dataclass
class Manifest:
    """The metadata of a bank: serialized into its file, and validated when read."""

    model: Any
    features: int | None
    dtype: Any
    names: list[str] | None
    labels: list[Any]
    classes: list[Any] | None
    offset: Any
    targets: int = 1

    def facts(self) -> dict[str, Any]:
        """The metadata in serialized form."""
        dtype = None if self.dtype is None else np.dtype(self.dtype).str
        values = (self.features, dtype, self.names, self.labels, self.classes, self.offset)
        told = dict(zip(ENTRIES, values, strict=True))
        if self.targets > 1:
            told["targets"] = self.targets
        return {"model": store.dumps(self.model), "bank": json.dumps(told)}

    @classmethod
    def read(cls, path: object, facts: dict[str, Any]) -> Manifest:
        """Deserialize and validate the metadata; any error is a ValueError that names the file."""
        try:
            if type(facts.get("bank")) is not str or type(facts.get("model")) is not bytes:
                raise TypeError("an entry is missing or of another type")
            told = json.loads(facts["bank"])
            model = store.loads(facts["model"])
            if type(told) is not dict or not told.keys() >= set(ENTRIES):
                raise TypeError("an entry is missing")
            if not hasattr(model, "predict_learn") or not hasattr(model, "get_params"):
                raise TypeError("the model is none")
            found = cls(model, *(told[name] for name in ENTRIES))
            found.targets = told.get("targets", 1)
            found._check()
        except (ValueError, TypeError, RecursionError, AttributeError) as error:
            raise _checks.wrong("ModelBank", "path", f"a file that a ModelBank has made ({error})", path) from None
        return found

    def _check(self) -> None:
        if (self.features is None) != (self.dtype is None) or self.dtype not in (None, "<f4", "<f8"):
            raise TypeError(f"the rows are of type {self.dtype!r}")
        if self.features is not None and (type(self.features) is not int or not 1 <= self.features <= MOST_FEATURES):
            raise TypeError(f"the rows have {self.features!r} features")
        if type(self.targets) is not int or self.targets < 1:
            raise TypeError(f"there are {self.targets!r} targets")
        if self.names is not None:
            named = type(self.names) is list and all(type(name) is str for name in self.names)
            if not named or len(self.names) != self.features:
                raise TypeError("the names are not those of the features")
        for labels in (self.labels, [] if self.classes is None else self.classes):
            _check_labels(labels)
        if self.classes is not None and self.labels != self.classes:
            raise TypeError("the labels are not the classes given")
        self.dtype = None if self.dtype is None else np.dtype(self.dtype)


def _check_labels(labels: Any) -> None:
    """Validate labels: distinct texts, numbers or bools that can be sorted together."""
    if type(labels) is not list or not all(type(label) in LABELS for label in labels):
        raise TypeError("the labels are no list of texts and numbers")
    if len(set(labels)) != len(labels) or len({isinstance(label, str) for label in labels}) > 1:
        raise TypeError("the labels are not different ones of a kind")
    if any(isinstance(label, float) and not math.isfinite(label) for label in labels):
        raise TypeError("a label is not finite")


def to_json(owner: object, parameter: str, value: Any) -> str:
    """Serialize a user's value as JSON."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise _checks.wrong(owner, parameter, f"plain data that JSON can hold ({error})", value) from None
