"""Write and read the file: magic bytes, a JSON header, raw arrays, a checksum (docs/store.md has the format)."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import stat
import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array
from gossamer._version import __version__
from gossamer.exceptions import Words
from gossamer.store.nodes import Decoder, Encoder, check_shape, describe, extent, itemsize

#: The magic bytes; not text, so that a transfer that changes line ends is noticed.
MAGIC = b"\x89GSM\r\n\x1a\n"
#: The version of the format that is written; all versions up to it are read.
VERSION = 1
#: Magic, version, length of the header, length of the whole.
PREFIX = struct.Struct("<8sIIQ")
DIGEST = hashlib.sha256().digest_size
#: Limits of the header's size and of the extents of empty arrays, which cost a file nothing and a model much.
LARGEST_HEADER, LARGEST_EMPTY = 2**22, 2**22

Path = str | os.PathLike[str]
#: A function that makes the error from a rule and the value found instead.
ErrorMaker = Callable[[str, object], ValueError]


def dumps(value: Any) -> bytes:
    """Serialize a model, a `Learner`, a part, or plain data that contain them.

    >>> from gossamer.kernels import Gaussian
    >>> loads(dumps({"kernel": Gaussian(0.5), "position": 120}))
    {'kernel': Gaussian(gamma=0.5), 'position': 120}
    """
    return b"".join(_pieces(value))


def loads(data: bytes) -> Any:
    """Deserialize the bytes of `dumps`. Runs no code from the data; anything wrong with them is a ValueError.

    >>> try:
    ...     loads(b"no")
    ... except ValueError as error:
    ...     print(error)
    The 'data' parameter of loads must be what Gossamer has saved. Got bytes that start with b'no' instead.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise _checks.wrong("loads", "data", "bytes", type(data).__name__)
    return _read(memoryview(data).cast("B"), lambda rule, got: _checks.wrong("loads", "data", rule, Words(got)))


def save(value: Any, path: Path) -> None:
    """Write the bytes of `dumps` to a file, which is replaced atomically: old or new, never half of it."""
    pieces = _pieces(value)  # an error for a value that cannot be stored comes before a file is touched
    path = os.path.realpath(path)
    folder, name = os.path.split(path)
    old = os.stat(path).st_mode if os.path.exists(path) else None
    if old is not None and not stat.S_ISREG(old):
        raise _checks.wrong("save", "path", "the name of a file", path)
    beside = os.path.join(folder, f".{name}.{secrets.token_hex(4)}.tmp")
    try:
        with open(beside, "xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if old is not None:
            os.chmod(beside, stat.S_IMODE(old))
        os.replace(beside, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        if isinstance(error, OSError) and error.errno is not None:
            raise type(error)(error.errno, error.strerror, path) from None  # of a full disk, which names no file
        raise
    if os.name == "posix":  # the new name is durable once the folder is synchronised
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def load(path: Path) -> Any:
    """A model from the file that its ``save`` wrote: it goes on as if it had never stopped.

    Runs no code from the file; whatever is wrong with it is a ValueError.
    """
    size, wrong = _file_size(path, "load"), _error_maker(path, "load")
    with open(path, "rb") as file:
        _read_prefix(file.read(PREFIX.size), size, wrong)  # before the rest of something else is read
        file.seek(0)
        data = file.read(size)
    return _read(memoryview(data), wrong)


def inspect(path: Path) -> dict[str, Any]:
    """Describe a file without making the model or reading its arrays.

    ``version`` of the format, ``gossamer`` that wrote it, ``bytes``, ``arrays`` (name, dtype, shape), and ``class``,
    ``parameters`` and ``learned`` of the model, with arrays as texts; ``value`` for other data.
    """
    size, wrong = _file_size(path, "inspect"), _error_maker(path, "inspect")
    with open(path, "rb") as file:
        prefix = file.read(PREFIX.size)
        version, length = _read_prefix(prefix, size, wrong)
        header, _ = _header(memoryview(prefix + file.read(length + DIGEST)), size, wrong)
    facts = {"version": version, "gossamer": header["gossamer"], "bytes": size, "arrays": header["arrays"]}
    try:
        value = describe(header["value"], header["arrays"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise wrong("what Gossamer has saved", f"a header that makes no sense ({error})") from None
    model = isinstance(value, dict) and {"class", "parameters", "learned"} == value.keys()
    return {**facts, **(value if model else {"value": value})}


# ---------------------------------------------------------------------------------------------------------- writing


def _pieces(value: Any) -> list[Any]:
    """The bytes of a file, in parts."""
    encoder = Encoder()
    node = encoder.node(value, "dumps", ())
    arrays = encoder.arrays
    table = [{"name": name, "dtype": array.dtype.str, "shape": list(array.shape)} for name, array in arrays]
    content = {"gossamer": __version__, "value": node, "arrays": table}
    header = json.dumps(content, separators=(",", ":"), allow_nan=False).encode()
    if len(header) > LARGEST_HEADER:
        raise _checks.wrong("dumps", "value", f"described in {LARGEST_HEADER} bytes", Words(f"{len(header)} bytes"))
    total = PREFIX.size + len(header) + DIGEST + sum(array.nbytes for _, array in arrays) + DIGEST
    if sum(extent(array.shape) for _, array in arrays if not array.size) > LARGEST_EMPTY + total:
        raise _checks.wrong("dumps", "value", f"of empty arrays that extend up to {LARGEST_EMPTY}", Words("more"))
    pieces: list[Any] = [PREFIX.pack(MAGIC, VERSION, len(header), total), header]
    digest = hashlib.sha256(b"".join(pieces))
    pieces.append(digest.digest())
    digest.update(pieces[-1])
    for _, array in arrays:
        if array.size:
            pieces.append(array.reshape(-1).view(np.uint8).data)
            digest.update(pieces[-1])
    return [*pieces, digest.digest()]


# ---------------------------------------------------------------------------------------------------------- reading


def _error_maker(path: Path, owner: str) -> ErrorMaker:
    name = repr(os.fspath(path))
    return lambda rule, got: _checks.wrong(owner, "path", f"a file that is {rule}", Words(f"{name}: {got}"))


def _file_size(path: Path, owner: str) -> int:
    """The size of a file; not of a pipe or a device, which might never end."""
    facts = os.stat(path)
    if not stat.S_ISREG(facts.st_mode):
        raise _checks.wrong(owner, "path", "the name of a file", os.fspath(path))
    return facts.st_size


def _read(view: memoryview, wrong: ErrorMaker) -> Any:
    """The value of a whole file."""
    header, start = _header(view, len(view), wrong)
    if hashlib.sha256(view[:-DIGEST]).digest() != view[-DIGEST:]:
        raise wrong("undamaged", "arrays that do not match their checksum")
    arrays = []
    for entry in header["arrays"]:
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        end = start + check_shape(shape, dtype.itemsize)
        array = np.frombuffer(view[start:end], dtype).reshape(shape) if end > start else np.empty(shape, dtype)
        if not _is_valid(array):
            raise wrong("what Gossamer has saved", f"entries that are no {entry['dtype']} in {entry['name']}")
        arrays.append(array)
        start = end
    return Decoder(arrays).value(header["value"])


def _read_prefix(prefix: Any, size: int, wrong: ErrorMaker) -> tuple[int, int]:
    """The version and the length of the header, after a check that the whole file is there and can be read."""
    start = bytes(prefix[: len(MAGIC)])
    if not start or start != MAGIC[: len(start)]:
        raise wrong("what Gossamer has saved", f"bytes that start with {start!r}")
    if len(prefix) < PREFIX.size:
        raise wrong("whole", f"{size} bytes")
    _, version, length, total = PREFIX.unpack(prefix)
    if not 1 <= version <= VERSION:
        raise wrong(f"of a format version up to {VERSION} (a later Gossamer reads later ones)", f"version {version}")
    if total != size:
        raise wrong(f"whole ({total} bytes)", f"{size} bytes")
    if length > min(LARGEST_HEADER, total - PREFIX.size - 2 * DIGEST):
        raise wrong("undamaged", f"a header of {length} bytes in {total}")
    return version, length


def _header(view: memoryview, size: int, wrong: ErrorMaker) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays start. ``view``: the file, or as much of it as comes before the arrays."""
    _, length = _read_prefix(view[: PREFIX.size], size, wrong)
    end = PREFIX.size + length
    if hashlib.sha256(view[:end]).digest() != view[end : end + DIGEST]:
        raise wrong("undamaged", "a header that does not match its checksum")
    try:
        header = json.loads(str(view[PREFIX.size : end], "utf-8"), parse_int=_integer, parse_constant=_no_constant)
        if not (isinstance(header["gossamer"], str) and isinstance(header["arrays"], list) and "value" in header):
            raise TypeError("an entry of another type")
        filled = empty = 0
        for entry in header["arrays"]:
            shape = _shape(entry["shape"])
            filled += (found := check_shape(shape, itemsize(entry["dtype"])))
            empty += 0 if found else extent(shape)
            if not isinstance(entry["name"], str):
                raise TypeError("a name that is no text")
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise wrong("what Gossamer has saved", f"a header that makes no sense ({error})") from None
    if end + DIGEST + filled + DIGEST != size or empty > LARGEST_EMPTY + size:
        raise wrong("what Gossamer has saved", f"arrays of {filled} bytes in {size - end - 2 * DIGEST}")
    return header, end + DIGEST


def _shape(node: Any) -> tuple[int, ...]:
    if type(node) is not list or any(type(side) is not int for side in node):
        raise TypeError("a shape that is none")
    return tuple(node)


def _integer(digits: str) -> int:
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**64:
        raise ValueError("an integer of more than 64 bits")
    return int(digits)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _is_valid(array: Array) -> bool:
    """Validate the bytes of an array: booleans are 0 or 1, text is Unicode; any bytes are numbers."""
    if array.dtype.kind == "b" and array.size:
        return int(array.view(np.uint8).max()) <= 1
    if array.dtype.kind == "U" and array.size:
        return int(np.frombuffer(array.tobytes(), "<u4").max()) <= 0x10FFFF
    return True
