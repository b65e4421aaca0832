"""The parameters of the parts as parameters of the estimator, ``kernel__gamma``, ``rule__rate``, ``loss__delta``,
``budget__size``: scikit-learn's grid search uses them."""

from __future__ import annotations

import dataclasses
from typing import Any

from gossamer import _checks, _registry
from gossamer.budgets import Budget
from gossamer.kernels import Kernel
from gossamer.losses import Loss
from gossamer.rules import Rule

BASES: dict[str, type] = {"kernel": Kernel, "loss": Loss, "rule": Rule, "budget": Budget}


class PartParameters:
    """A mixin. Parts are immutable: setting a parameter replaces the part, also if it was given by name.

    Where an estimator has the parameters of its losses itself, those of a loss by name are not listed a second time.

    >>> from gossamer import OnlineClassifier, SILKClassifier
    >>> model = SILKClassifier("rbf").set_params(kernel__gamma=0.5, budget__size=64)
    >>> model.kernel, model.budget, model.get_params()["kernel__gamma"]
    (Gaussian(gamma=0.5), Project(size=64, tolerance=0.001), 0.5)
    >>> OnlineClassifier(rule="gradient").set_params(rule__rate=0.1).rule.rate
    0.1
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; if ``deep``, with those of the parts, ``kernel__...``, and of kernels in a kernel."""
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        for name in BASES if deep else ():
            if name in found:
                found.update(_inside(f"{name}__", _part(name, found[name], found)))
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the parts too; a new part of the same call is taken first."""
        inner = {name: value for name, value in params.items() if name.partition("__")[0] in BASES and "__" in name}
        rest = {name: value for name, value in params.items() if name not in inner}
        before: dict[str, Any] = super().get_params(deep=False)  # type: ignore[misc]
        parts = {name: _part(name, value, before) for name, value in {**before, **rest}.items() if name in BASES}
        for name, value in sorted(inner.items(), key=lambda item: item[0].count("__")):
            part, *path = name.split("__")
            known = _inside(f"{part}__", parts.get(part))
            if name not in known:
                rule = f"one of {', '.join(known) or 'none'}, the parameters of its {part}"
                raise _checks.wrong(type(self).__name__, name, rule, value)
            parts[part] = _replaced(parts[part], path, value)
        super().set_params(**rest)  # type: ignore[misc]
        for part in {name.partition("__")[0] for name in inner}:
            setattr(self, part, parts[part])
        return self


def _part(name: str, value: Any, params: dict[str, Any]) -> Any:
    """The part of a parameter, also by name; None for a function or anything else without parameters."""
    if not isinstance(value, str) or (name == "loss" and "rule" not in params and ":" not in value):
        return value
    try:
        return _registry.make(BASES[name], value, "Learner", name)
    except ValueError:
        return None


def _inside(prefix: str, part: Any) -> dict[str, Any]:
    """The parameters of a part, and of parts that are parameters of it."""
    if not isinstance(part, tuple(BASES.values())) or not dataclasses.is_dataclass(part):
        return {}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        found[prefix + field.name] = value
        found.update(_inside(f"{prefix}{field.name}__", value))
    return found


def _replaced(part: Any, path: list[str], value: Any) -> Any:
    inner = value if len(path) == 1 else _replaced(getattr(part, path[0]), path[1:], value)
    return dataclasses.replace(part, **{path[0]: inner})
