"""When compiled code may stand for a part: never where a class of a user has changed what the part does."""

from __future__ import annotations

import dataclasses
from typing import Any
from weakref import WeakKeyDictionary

#: What a class may override and still be run by its twin: Python calls these, or hands their results to the core.
CALLED = frozenset({"twin", "numbers", "compiled", "program", "rates", "check_rates", "check"})


def is_ours(kind: type) -> bool:
    """Whether a class is one of the package."""
    return kind.__module__.split(".")[0] == __name__.split(".")[0]


#: What `overrides` has found, as long as the class lives.
_FOUND: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def overrides(kind: type) -> frozenset[str]:
    """The attributes of the package's classes that a class outside of the package has changed in ``kind``.

    Fields do not count, for a twin gets their values; nor do names with two underscores, but for ``__call__``, nor the
    ``set_..._request`` that scikit-learn gives every estimator.
    """
    found = _FOUND.get(kind)
    if found is not None:
        return found
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    first: dict[str, bool] = {}  # whether the class that comes first, so that it is called, is ours
    common: set[str] = set()
    for base in kind.__mro__[:-1]:
        for name in vars(base):
            if not first.setdefault(name, is_ours(base)) and is_ours(base):
                common.add(name)
    common -= fields
    found = frozenset(name for name in common if name == "__call__" or not name.startswith(("__", "set_", "_abc")))
    _FOUND[kind] = found
    return found


def twin_of(part: Any) -> str | None:
    """The name of the C++ twin that may stand for a part; None if its class names none, or has changed what it does.

    >>> from gossamer.losses import Hinge
    >>> class Softer(Hinge):
    ...     __module__, twin = "mine", "hinge"
    ...     def slope(self, z, y): return 0.5 * super().slope(z, y)
    >>> twin_of(Hinge()), twin_of(Softer())
    ('hinge', None)
    """
    kind = type(part)
    name: str | None = kind.__dict__.get("twin")
    return None if name is None or overrides(kind) - CALLED else name


def own_rates(rule: Any) -> bool:
    """Whether the step sizes of a rule come from Python: a function as schedule, or a class with its own ``rates``."""
    return callable(rule.schedule) or bool(overrides(type(rule)) & {"rates", "check_rates"})
