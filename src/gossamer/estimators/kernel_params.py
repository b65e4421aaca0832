"""Kernel parameters as parameters of the estimator, ``kernel__gamma``, for scikit-learn's grid search."""

from __future__ import annotations

import dataclasses
from typing import Any

from gossamer import _checks
from gossamer.kernels import Kernel, as_kernel

PREFIX = "kernel__"


class KernelParameters:
    """A mixin. Kernels are immutable: setting a parameter replaces the kernel, by name if it was given by name.

    >>> from gossamer import SILKClassifier
    >>> model = SILKClassifier("rbf").set_params(kernel__gamma=0.5)
    >>> model.kernel, model.get_params()["kernel__gamma"]
    (Gaussian(gamma=0.5), 0.5)
    """

    kernel: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; if ``deep``, with those of the kernel, ``kernel__...``, and of kernels in it."""
        found: dict[str, Any] = super().get_params(deep=deep)  # type: ignore[misc]
        if deep and "kernel" in found:
            found.update(_inside(PREFIX, _named(found["kernel"])))
        return found

    def set_params(self, **params: Any) -> Any:
        """Set parameters, those of the kernel too; a new ``kernel`` of the same call is taken first."""
        inner = {name: value for name, value in params.items() if name.startswith(PREFIX)}
        rest = {name: value for name, value in params.items() if name not in inner}
        known = _inside(PREFIX, _named(rest.get("kernel", self.kernel)))
        for name, value in inner.items():
            if name not in known:
                rule = f"one of {', '.join(known) or 'none'}, the parameters of its kernel"
                raise _checks.wrong(type(self).__name__, name, rule, value)
        super().set_params(**rest)  # type: ignore[misc]
        kernel = _named(self.kernel)
        for name, value in sorted(inner.items(), key=lambda item: item[0].count("__")):
            kernel = _replaced(kernel, name.removeprefix(PREFIX).split("__"), value)
        if inner:
            self.kernel = kernel
        return self


def _named(kernel: Any) -> Kernel | None:
    """The kernel of a name; None for a function or anything else without parameters."""
    if isinstance(kernel, Kernel):
        return kernel
    try:
        return as_kernel(kernel) if isinstance(kernel, str) else None
    except ValueError:
        return None


def _inside(prefix: str, kernel: Any) -> dict[str, Any]:
    """The parameters of a kernel, and of kernels that are parameters of it."""
    if not isinstance(kernel, Kernel) or not dataclasses.is_dataclass(kernel):
        return {}
    found: dict[str, Any] = {}
    for field in dataclasses.fields(kernel):
        value = getattr(kernel, field.name)
        found[prefix + field.name] = value
        found.update(_inside(f"{prefix}{field.name}__", value))
    return found


def _replaced(kernel: Any, path: list[str], value: Any) -> Any:
    inner = value if len(path) == 1 else _replaced(getattr(kernel, path[0]), path[1:], value)
    return dataclasses.replace(kernel, **{path[0]: inner})
