"""The parts by name; and whether the compiled twin may run a part: never if a user's class has changed its behaviour.

Nothing is registered. A part is a public subclass of Kernel, Loss, Rule or Budget, in the package or outside; its name
is that of its class in snake_case, and it may declare more in its ``aliases``. A text names a part and its parameters:
``huber``, ``huber:delta=0.5,nu=0.1``, ``project:64`` (the first parameter), ``scaled:base=(matern:nu=2.5),factor=2``.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from typing import Any, TypeVar, cast
from weakref import WeakKeyDictionary

from gossamer import _checks

Part = TypeVar("Part")
#: The boundary of two words in a class's name, before a capital: HuberLoss, SVMDRule.
WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def name_of(kind: type) -> str:
    """The name of a part's class in snake_case.

    >>> from gossamer import losses, rules
    >>> name_of(losses.EpsilonInsensitive), name_of(rules.SVMD)
    ('epsilon_insensitive', 'svmd')
    """
    return WORDS.sub("_", kind.__name__).lower()


def subclasses(base: type) -> Iterator[type]:
    """The public subclasses of a class, inside and outside the package; of two definitions of a class the later."""
    found: dict[tuple[str, str], type] = {}
    todo = [base]
    while todo:
        below: list[type] = todo.pop().__subclasses__()
        todo += below
        found.update({(part.__module__, part.__qualname__): part for part in below if part.__name__[0] != "_"})
    return iter(found.values())


def named(base: type) -> dict[str, list[Any]]:
    """The parts of a kind by name, as far as a text can make them: one class per name, unless outside classes clash.

    >>> from gossamer.kernels import Kernel
    >>> [name for name, parts in named(Kernel).items() if parts[0].__name__ == "Gaussian"]
    ['gaussian', 'rbf']
    """
    found: dict[str, list[Any]] = {}
    for part in subclasses(base):
        for name in _names(part):
            found.setdefault(name, []).append(part)
    return dict(sorted(found.items()))


#: The names and the parameters of classes, as long as these live.
_NAMES: WeakKeyDictionary[type, tuple[str, ...]] = WeakKeyDictionary()
_PARAMETERS: WeakKeyDictionary[type, dict[str, inspect.Parameter]] = WeakKeyDictionary()


def _names(part: type) -> tuple[str, ...]:
    """The name of a part and its aliases; none if it needs a function."""
    found = _NAMES.get(part)
    if found is None:
        needs_function = any(_needed(p) and "Callable" in str(p.annotation) for p in parameters(part).values())
        found = _NAMES[part] = () if needs_function else (name_of(part), *vars(part).get("aliases", ()))
    return found


def parameters(kind: type) -> dict[str, inspect.Parameter]:
    """The parameters of a class."""
    if kind not in _PARAMETERS:
        _PARAMETERS[kind] = dict(inspect.signature(kind).parameters)
    return _PARAMETERS[kind]


def signature(kind: type) -> str:
    """The parameters of a part's class with their defaults, as errors and the command line list them.

    >>> from gossamer.losses import Huber, Squared
    >>> signature(Huber), signature(Squared)
    ("delta=1.0, standard=False, nu=None, adapts_by='quantile'", 'nothing')
    """
    shown = (name if _needed(p) else f"{name}={p.default!r}" for name, p in parameters(kind).items())
    return ", ".join(shown) or "nothing"


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty and parameter.kind in (
        inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    )  # fmt: skip


def parse(text: str) -> tuple[str, list[str]]:
    """Split a text into a name and its settings; parentheses are kept together.

    >>> parse("scaled:base=(matern:nu=2.5,length=3),factor=2")
    ('scaled', ['base=(matern:nu=2.5,length=3)', 'factor=2'])
    """
    name, *settings = split(text, ":,")
    return name.lower(), [setting for setting in settings if setting]


def split(text: str, separators: str = ",") -> list[str]:
    """The pieces of a text between separators that stand outside of parentheses."""
    pieces, depth = [""], 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if sign in separators and depth == 0:
            pieces.append("")
        else:
            pieces[-1] += sign
    return [piece.strip() for piece in pieces]


def find(base: type, name: str, owner: object, parameter: str) -> Any:
    """The class of a name; the error lists the known names, or the classes with the same name."""
    known = named(base)
    if name not in known:
        raise _checks.wrong(owner, parameter, "one of " + ", ".join(map(repr, known)), name)
    if len(known[name]) > 1:
        clash = " and ".join(f"{part.__module__}.{part.__qualname__}" for part in known[name])
        raise _checks.wrong(owner, parameter, f"the name of one class, not of {clash}", name)
    return known[name][0]


def read(kind: type, settings: list[str], base: type) -> dict[str, Any]:
    """Convert the settings of a text to the types of the class's parameters; the error lists these."""
    known, found = parameters(kind), {}
    for i, setting in enumerate(settings):
        key, equals, text = setting.partition("=")
        if not equals and i == 0 and known:  # project:64
            key, text = next(iter(known)), setting
        key = key.strip()
        if key not in known or key in found:
            raise _checks.wrong(kind.__name__, key, f"left out: {kind.__name__} takes {signature(kind)}", text)
        found[key] = _value(text.strip(), str(known[key].annotation), base)
    return found


def _value(text: str, annotation: str, base: type) -> Any:
    """Convert a text to a type; unchanged if that fails, for the part to refuse it."""
    words = re.findall(r"\w+", annotation)
    if {"None", "Any"} & set(words) and text.lower() == "none":
        return None
    if "bool" in words and text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        if kind.__name__ in words:
            try:
                return kind(text)
            except ValueError:
                pass
    inner = text[1:-1] if text[:1] == "(" else text
    if {base.__name__, "Any"} & set(words) and parse(inner)[0] in named(base):
        return make(base, inner, base.__name__, "name")
    if "str" not in words:
        try:
            return ast.literal_eval(text)
        except (ValueError, SyntaxError):
            pass
    return text


def make(base: type, text: str, owner: object, parameter: str) -> Any:
    """The part that a text names.

    >>> from gossamer.budgets import Budget
    >>> make(Budget, "smallest:size=20,by=coefficient", "Learner", "budget")
    Smallest(size=20, by='coefficient')
    """
    name, settings = parse(text)
    kind = find(base, name, owner, parameter)
    return construct(kind, read(kind, settings, base))


def construct(kind: Any, given: dict[str, Any]) -> Any:
    """A part of a class; the error for a parameter that is missing lists all."""
    for key, parameter in parameters(kind).items():
        if _needed(parameter) and key not in given:
            raise _checks.wrong(kind.__name__, key, f"given: {kind.__name__} takes {signature(kind)}", None)
    return kind(**given)


def as_part(base: type[Part], value: Any, parameter: str, rule: str, owner: object = "Learner") -> Part:
    """A part from a part or a text; ``rule`` is the error's."""
    if isinstance(value, base):
        return value
    if isinstance(value, str):
        return cast(Part, make(base, value, owner, parameter))
    raise _checks.wrong(owner, parameter, rule, value)


def discover(package: str) -> list[str]:
    """Import the modules of a package of parts, put the public parts of those that it does not import by name into its
    namespace, and return their names, for its ``__all__``."""
    home = sys.modules[package]
    added = []
    for found in pkgutil.iter_modules(home.__path__):
        module = importlib.import_module(f"{package}.{found.name}")
        for name, part in vars(module).items():
            ours = isinstance(part, type) and part.__module__ == module.__name__ and issubclass(part, home.BASE)
            if ours and name[0] != "_" and name not in home.__all__:
                setattr(home, name, part)
                added.append(name)
    return added


#: Attributes that a class may override and still be run by its twin: Python calls them, or passes their results on.
CALLED = frozenset(
    ("aliases", "check", "check_rates", "compiled", "for_classes", "log_odds", "numbers", "program", "rates", "twin")
)


def is_ours(kind: type) -> bool:
    """Whether a class belongs to the package."""
    return kind.__module__.split(".")[0] == __name__.split(".")[0]


#: The cache of `overrides`, as long as the class lives.
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
    first: dict[str, bool] = {}  # whether the first definition in the MRO, which is called, is the package's
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
    """The name of the C++ twin of a part; None if its class names none, or has changed its behaviour.

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
