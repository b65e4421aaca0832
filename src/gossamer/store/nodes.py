"""Encode values as JSON and raw arrays, and decode them: the content of the file that `gossamer.store` writes.

None, booleans, integers, finite floats, strings and lists are themselves; everything else is a JSON object with a
``type`` (docs/store.md has the list). Decoding makes data, and objects of Gossamer's own classes, and nothing else.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import math
import pkgutil
import re
import sys
from dataclasses import fields
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._locks import run_snapshot
from gossamer._stored import Stored
from gossamer._typing import Array
from gossamer.budgets import Budget
from gossamer.clock import HalfLife
from gossamer.exceptions import Words
from gossamer.kernels import Kernel
from gossamer.losses import Loss, Taxonomy
from gossamer.rules import Rule

#: The numbers that may be stored, by NumPy's names, and text of a fixed width.
DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
TEXT = re.compile(r"<U([1-9][0-9]{0,6})")

#: The deepest nesting of values.
DEEPEST = 100
#: Lists and tuples of at least this many numbers are stored as an array.
LONG = 16

PLAIN = "plain data or a part of Gossamer to be stored (pickle stores anything that can be imported)"


def known_classes(everything: bool = False) -> dict[str, type]:
    """The classes that a file may name: public classes with a constructor of their own that are a part or can be saved.

    They are found as subclasses, as far as their modules are imported; ``everything`` imports the others first.
    """
    if everything:
        for module in pkgutil.iter_modules(sys.modules["gossamer"].__path__):
            if not module.name.startswith("_"):
                with contextlib.suppress(ImportError):  # a face whose extra is not installed
                    importlib.import_module(f"gossamer.{module.name}")
    todo: list[type] = [Kernel, Loss, Rule, Budget, Stored]
    found: set[type] = {Taxonomy, HalfLife}
    while todo:
        below: list[type] = todo.pop().__subclasses__()
        todo += below
        found.update(below)
    ours = (part for part in found if part.__module__.startswith("gossamer.") and part.__name__[0] != "_")
    return {name_of(part): part for part in ours if "__init__" in vars(part)}


#: The classes found so far, a cache.
KNOWN: dict[str, type] = {}


def find_class(name: str, everything: bool = False) -> type | None:
    """The class of a name, if a file may name it."""
    if name not in KNOWN:
        KNOWN.update(known_classes(everything))
    return KNOWN.get(name)


def name_of(part: Any) -> str:
    """The name of a class in a file: its own, with its folder before it if the package exports another by that name."""
    return _name_of(part)


@functools.lru_cache(1024)
def _name_of(part: Any) -> str:
    exported = getattr(sys.modules["gossamer"], part.__name__, part)
    return part.__name__ if exported is part else f"{part.__module__.split('.')[1]}.{part.__name__}"


def check_shape(shape: tuple[int, ...], itemsize: int) -> int:
    """Validate the description of an array; returns its number of bytes."""
    if len(shape) > 8 or min(shape, default=0) < 0 or extent(shape) * itemsize >= 2**62:
        raise _checks.wrong("store", "shape", "up to 8 extents that memory can hold", shape)
    return math.prod(shape) * itemsize


def extent(shape: tuple[int, ...]) -> int:
    """The number of entries with every extent of 0 counted as 1."""
    return math.prod(max(side, 1) for side in shape)


def itemsize(dtype: object) -> int:
    """The number of bytes of an entry; an error for a dtype that is not stored."""
    text = TEXT.fullmatch(dtype) if isinstance(dtype, str) else None
    if text is None and dtype not in DTYPES:
        raise _checks.wrong("store", "dtype", f"one of {', '.join(DTYPES)} or text like <U8", dtype)
    return 4 * int(text[1]) if text else int(str(dtype)[2:])


# --------------------------------------------------------------------------------------------------------- encoding


class Encoder:
    """Collects the arrays of a value, by name, while it turns the value into nodes."""

    def __init__(self) -> None:
        self.arrays: list[tuple[str, Array]] = []

    def node(self, value: Any, owner: str, path: tuple[str, ...]) -> Any:
        """The JSON of a value. ``owner`` and the end of ``path`` say in an error where it stands."""
        if len(path) > DEEPEST:
            raise _checks.wrong(owner, path[-1], f"not more than {DEEPEST} deep to be stored", "more")
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int and -(2**63) <= value < 2**64:
            return value
        if kind is float:
            return value if math.isfinite(value) else {"type": "float", "value": repr(value)}
        if kind in (list, tuple):
            return self._sequence(value, owner, path)
        if kind is dict:
            items = [[self.node(part, owner, (*path, str(key))) for part in (key, value[key])] for key in value]
            return {"type": "dict", "items": items}
        if kind in (np.ndarray, np.memmap):
            return self._array(value, owner, path)
        if kind is np.str_:
            return {"type": "scalar", "dtype": "<U1", "value": str(value)}
        if isinstance(value, np.generic) and _stored_dtype(value.dtype):
            return {"type": "scalar", "dtype": value.dtype.str, "value": self.node(value.item(), owner, path)}
        if find_class(name_of(kind)) is kind:
            return self._object(value, path)
        raise _checks.wrong(owner, path[-1] if path else "value", PLAIN, value)

    def _object(self, value: Any, path: tuple[str, ...]) -> Any:
        if isinstance(value, Stored):  # a snapshot of one moment
            return run_snapshot(value, lambda: self._encode_object(value, path))
        return self._encode_object(value, path)

    def _encode_object(self, value: Any, path: tuple[str, ...]) -> Any:
        name, stored = name_of(type(value)), isinstance(value, Stored)
        given = value._parameters() if stored else {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        node = {"type": "object", "class": name, "parameters": self._named(given, name, path)}
        return {**node, "learned": self._named(value._learned(), name, path)} if stored else node

    def _named(self, values: dict[str, Any], owner: str, path: tuple[str, ...]) -> Any:
        return {name: self.node(value, owner, (*path, name)) for name, value in values.items()}

    def _sequence(self, value: Any, owner: str, path: tuple[str, ...]) -> Any:
        kinds = {type(item) for item in value} if len(value) >= LONG else set()
        small = kinds == {float} or (kinds == {int} and all(-(2**63) <= item < 2**63 for item in value))
        items: Any
        if small:
            items = self._array(np.array(value), owner, path)
        else:
            items = [self.node(item, owner, (*path, str(i))) for i, item in enumerate(value)]
        if type(value) is list:
            return {"type": "list", "items": items} if small else items
        return {"type": "tuple", "items": items}

    def _array(self, value: Array, owner: str, path: tuple[str, ...]) -> Any:
        if value.dtype == object:
            check_shape(value.shape, 1)
            items = [self.node(item, owner, (*path, str(i))) for i, item in enumerate(value.ravel().tolist())]
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if not _stored_dtype(value.dtype):
            raise _checks.wrong(owner, path[-1] if path else "value", PLAIN, value.dtype)
        little = np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False).reshape(value.shape)
        check_shape(little.shape, little.itemsize)
        self.arrays.append((".".join(path), little))
        return {"type": "array", "index": len(self.arrays) - 1}


def _stored_dtype(dtype: np.dtype[Any]) -> bool:
    name = dtype.newbyteorder("<").str
    return name in DTYPES or TEXT.fullmatch(name) is not None


# --------------------------------------------------------------------------------------------------------- decoding


class Decoder:
    """Turns nodes back into values. Whatever is wrong with them is a ValueError."""

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays: list[Array | None] = [*arrays]

    def value(self, node: Any, depth: int = 0) -> Any:
        """The value of a node."""
        if depth > DEEPEST + 1:  # a NumPy number takes two nodes
            raise _bad(f"nodes not more than {DEEPEST} deep", "more")
        if node is None or type(node) in (bool, int, float, str):
            return node
        if type(node) is list:
            return [self.value(item, depth + 1) for item in node]
        kind = node.get("type")
        decode = getattr(self, f"_{kind}", None) if kind in KINDS else None
        if decode is None:
            raise _bad("of type " + ", ".join(KINDS), kind)
        try:
            return decode(node, depth + 1)
        except ValueError:
            raise
        except RecursionError:
            raise _bad("less deep", kind) from None
        except Exception as error:  # an entry is missing or of another type: by hand or by malice
            raise _bad(f"a whole {kind}", f"{type(error).__name__}: {error}") from None

    def _float(self, node: Any, depth: int) -> float:
        return {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}[node["value"]]

    def _tuple(self, node: Any, depth: int) -> tuple[Any, ...]:
        return tuple(self._list(node, depth))

    def _list(self, node: Any, depth: int) -> list[Any]:
        if type(node["items"]) is list:
            return [self.value(item, depth) for item in node["items"]]
        return list(_expect(_expect(self.value(node["items"], depth), np.ndarray).tolist(), list))

    def _dict(self, node: Any, depth: int) -> dict[Any, Any]:
        pairs = [_expect(pair, list) for pair in _expect(node["items"], list)]
        if any(len(pair) != 2 for pair in pairs):
            raise _bad("a dict of keys and values", "others")
        items = [(self.value(key, depth), self.value(value, depth)) for key, value in pairs]
        found = dict(items)
        if len(found) != len(items):
            raise _bad("a dict whose keys differ", f"{len(items)} of {len(found)} different keys")
        return found

    def _scalar(self, node: Any, depth: int) -> Any:
        itemsize(node["dtype"])
        value, dtype = self.value(node["value"], depth), np.dtype(node["dtype"])
        if dtype.kind == "U":
            return np.str_(_expect(value, str))
        wanted = {"b": bool, "f": float}.get(dtype.kind, int)
        if dtype.kind in "iu" and not np.iinfo(dtype).min <= _expect(value, int) <= np.iinfo(dtype).max:
            raise _bad(f"within {dtype}", value)
        return dtype.type(_expect(value, wanted))

    def _array(self, node: Any, depth: int) -> Array:
        index: int = _expect(node["index"], int)
        array = self.arrays[index] if 0 <= index < len(self.arrays) else None
        if array is None:
            raise _bad(f"an array of {len(self.arrays)} that no other node has", index)
        self.arrays[index] = None  # each array once: a short file could name an array a million times
        return array.copy()

    def _objects(self, node: Any, depth: int) -> Array:
        shape = tuple(_expect(extent, int) for extent in _expect(node["shape"], list))
        items = [self.value(item, depth) for item in _expect(node["items"], list)]
        if check_shape(shape, 1) != len(items):
            raise _bad(f"an array of shape {shape}", f"{len(items)} entries")
        array: Array = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # at once, NumPy would look inside them
            array[i] = item
        shaped: Array = array.reshape(shape)
        return shaped

    def _object(self, node: Any, depth: int) -> Any:
        name = _expect(node["class"], str)
        found = find_class(name) or find_class(name, everything=True)
        if found is None:
            raise _bad("of the class " + ", ".join(sorted(KNOWN)), name)
        parameters, learned = (
            {name: self.value(value, depth) for name, value in _expect(node.get(key, {}), dict).items()}
            for key in ("parameters", "learned")
        )
        made = found(**{**getattr(found, "_of_old", {}), **parameters})
        if isinstance(made, Stored):
            made._relearn(learned)
        elif learned:
            raise _bad(f"a {name} that has learned nothing", sorted(learned))
        return made


#: The values of a node's ``type``.
KINDS = ("float", "tuple", "list", "dict", "scalar", "array", "objects", "object")


def _expect(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _bad(f"a {kind.__name__} there", type(value).__name__)
    return value


def _bad(rule: str, got: Any) -> ValueError:
    return _checks.wrong("load", "node", rule, got)


def describe(node: Any, arrays: list[Any]) -> Any:
    """A node for display: arrays and the parts of a model become texts."""
    if isinstance(node, list):
        return [describe(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    if kind == "array":
        entry = arrays[node["index"]]
        return Words(f"{entry['dtype']} array of shape {tuple(entry['shape'])}")
    if kind == "float":
        return float(node["value"])
    if kind == "dict":
        return {str(describe(key, arrays)): describe(value, arrays) for key, value in node["items"]}
    if kind == "object":
        given = {name: describe(value, arrays) for name, value in node["parameters"].items()}
        if "learned" not in node:
            return Words(f"{node['class']}({', '.join(f'{name}={value!r}' for name, value in given.items())})")
        learned = {name: describe(value, arrays) for name, value in node["learned"].items()}
        return {"class": node["class"], "parameters": given, "learned": learned}
    return describe(node["value"] if kind == "scalar" else node["items"], arrays)
