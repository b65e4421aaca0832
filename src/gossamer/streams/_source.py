"""Bytes from a path, standard input, a file object or bytes; unpacked and decoded where needed; resumable by offset."""

from __future__ import annotations

import io
import os
import select
import sys
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from gossamer import _checks
from gossamer.exceptions import ParameterError
from gossamer.streams._archives import STEP, DamagedError, archive_of, check_encoding, decode, unpack

#: The number of first bytes in a position's checksum, so that a position is only resumed in the same data.
HEAD = 4096
#: Skipped at once, and read at once.
PIECE, LARGEST = 1 << 20, 1 << 26
#: Bytes of a record that are worth a pause (in seconds) before they are parsed again.
MUCH, PAUSE = 1 << 16, 0.05


class ChangedDataError(ParameterError):
    """A position does not belong to these data: how they differ, and what was found."""

    def __init__(self, changed: str, got: object) -> None:
        super().__init__("open_stream", "position", f"one in the same data; {changed}", got)
        self.changed = changed

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.changed, super().__reduce__()[1][3])


class Source:
    """The bytes of a source, in order. ``offset`` counts those (unpacked, as UTF-8) that were read.

    >>> source = Source(b"abc")
    >>> source.read(2), source.offset, source.read(2), source.read(2)
    (b'ab', 2, b'c', b'')
    """

    def __init__(self, source: Any, encoding: str | None = None) -> None:
        encoding = check_encoding(encoding)
        self.name, raw, self._ours = _opened(source)
        if encoding is not None and isinstance(raw, io.TextIOBase):
            raise _checks.wrong("open_stream", "encoding", "left out where the file object gives text", encoding)
        start = _read(raw, HEAD)
        packed = archive_of(start)
        self._file: Any = _Prefixed(start, raw)
        self._pieces: Iterator[bytes] | None = None
        if packed is not None:
            self._pieces = unpack(packed, partial(_read, self._file))
        if encoding is not None:
            self._pieces = decode(self._pieces or _pieces_of(self._file), encoding)
        # where a plain file can jump to; None where it must be read through
        self._origin = None if self._pieces is not None else _origin(raw, len(start))
        self._raw = raw
        #: Whether it is a pipe, which gives its bytes when they come: see `piece`.
        self.live = self._pieces is None and self._origin is None and hasattr(raw, "read1") and _has_number(raw)
        self._failed: str | None = None
        self._ended = False
        self._ready, self._head, self.offset = b"", b"", 0
        # the checksum of the bytes up to `_summed`, and those after them that were read
        self._sum, self._summed, self._unsummed = 0, 0, list[bytes | memoryview]()

    def peek(self, count: int = HEAD) -> bytes:
        """The next bytes, without consuming them."""
        self._fill(count)
        return self._ready[:count]

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer only at the end or before damaged data."""
        self._fill(count)
        return self._consume(count)

    def piece(self, count: int, held: int = 0) -> tuple[bytes, bool]:
        """At most ``count`` bytes and whether they are the last; from a pipe the bytes that have arrived, at least one.

        ``held`` bytes of the current record have been read already, and will be parsed again.
        """
        if not self.live:
            data = self.read(count)
            return data, self._ended and not self._ready
        if not self._ready:
            self._ready = self._file.piece(count, held)
        data = self._consume(count)
        return data, not data

    def _consume(self, count: int) -> bytes:
        data, self._ready = self._ready[:count], self._ready[count:]
        if self.offset < HEAD:
            self._head += data[: HEAD - self.offset]
        self._unsummed.append(data)
        self.offset += len(data)
        return data

    def _fill(self, count: int) -> None:
        """Buffer ``count`` bytes. Bytes before damaged data are handed out first, then the error is raised."""
        pieces, size = [self._ready], len(self._ready)
        while size < count and self._failed is None and not self._ended:
            try:
                data = self._next(count - size)
            except DamagedError as error:
                self._failed = str(error)
                break
            self._ended = not data
            pieces.append(data)
            size += len(data)
        self._ready = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        if self._failed is not None and not self._ready:
            raise self.damaged(self._failed)

    def _next(self, count: int) -> bytes:
        if self._pieces is not None:
            return next(self._pieces, b"")
        return _bytes(self._file.read(min(count, LARGEST)))

    def damaged(self, why: str) -> ValueError:
        """The error for data that cannot be unpacked."""
        return ValueError(f"{self.name} must be whole. Got damaged or truncated data after {self.offset} bytes: {why}")

    def mark(self, offset: int) -> dict[str, int]:
        """The data that `skip` needs to resume at an offset that has been read."""
        check = zlib.crc32(self._head[: min(offset, HEAD)])
        return {"offset": offset, "check": check, "sum": self._checksum(offset)}

    def _checksum(self, offset: int) -> int:
        """The checksum of all bytes up to an offset; offsets only grow."""
        while self._unsummed and self._summed < offset:
            data = memoryview(self._unsummed.pop(0))  # a view: what remains of a piece is not copied for each row
            part = data[: offset - self._summed] if self._summed + len(data) > offset else data
            self._sum = zlib.crc32(part, self._sum)
            self._summed += len(part)
            if len(part) < len(data):
                self._unsummed.insert(0, data[len(part) :])
        return self._sum

    def skip(self, mark: dict[str, int]) -> None:
        """Go to a `mark`, from the beginning."""
        offset = _checks.whole("position", "offset", mark.get("offset"), 0)
        head = self.read(min(offset, HEAD))
        if len(head) < min(offset, HEAD) or zlib.crc32(head) != mark.get("check"):
            raise ChangedDataError(f"{self.name} begins differently", mark)
        known = mark.get("sum")
        if self._origin is not None and known is None:  # a mark of an earlier version: its beginning must do
            self._jump(offset)
        while self.offset < offset:
            if not self.read(min(PIECE, offset - self.offset)):
                raise ChangedDataError(f"{self.name} has become shorter", f"{self.offset} of {offset} bytes")
            self._checksum(self.offset)
        if known is not None and self._checksum(offset) != known:
            raise ChangedDataError(f"{self.name} has changed in its first {offset} bytes", mark)

    def _jump(self, offset: int) -> None:
        assert self._origin is not None
        if self._raw.seek(0, os.SEEK_END) < self._origin + offset:
            size = self._raw.tell() - self._origin
            raise _checks.wrong("open_stream", "position", f"inside the data ({size} bytes)", offset)
        self._raw.seek(self._origin + offset)
        self._file, self._ready, self.offset, self._ended = self._raw, b"", offset, False
        self._unsummed, self._summed = [], offset

    def rewound(self) -> Any:
        """The file itself, at its beginning, for a format that jumps."""
        if self._origin != 0:
            raise _checks.wrong("open_stream", "source", "a file that can be read in any order, for Parquet", self.name)
        self._raw.seek(0)
        return self._raw

    def close(self) -> None:
        """Close what was opened here; a file object that was given stays open."""
        if self._ours:
            self._raw.close()


class _Prefixed:
    """A file with some bytes pushed back before it."""

    def __init__(self, prefix: bytes, raw: Any) -> None:
        self._prefix, self._raw = prefix, raw

    def read(self, count: int) -> bytes:
        """At most ``count`` bytes."""
        if not self._prefix:
            return _bytes(self._raw.read(count))
        data, self._prefix = self._prefix[:count], self._prefix[count:]
        return data

    def piece(self, count: int, held: int) -> bytes:
        """The bytes that have arrived, after waiting for the first; empty at the end.

        A long record that comes in many small pieces is parsed again each time. So that this does not take more than
        linear time, wait a moment for as much again as is ``held``, if that is much.
        """
        data = self.read(min(count, len(self._prefix))) or self._raw.read1(count)
        pieces, size = [data], len(data)
        while data and size < count:
            pause = PAUSE if size < held and held > MUCH else 0.0
            if not select.select([self._raw], [], [], pause)[0]:
                break
            data = self._raw.read1(count - size)
            pieces.append(data)
            size += len(data)
        return b"".join(pieces)


def _has_number(raw: Any) -> bool:
    """Whether the system knows the file, so that it can say when there is more."""
    try:
        return os.name == "posix" and raw.fileno() >= 0
    except (AttributeError, OSError):
        return False


def _opened(source: Any) -> tuple[str, Any, bool]:
    """The name of a source, its file, and whether it is ours to close."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return "the data", io.BytesIO(bytes(source)), True
    if isinstance(source, str) and source == "-":
        return "standard input", sys.stdin.buffer, False
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        return os.path.basename(os.fsdecode(path)), open(path, "rb"), True
    if callable(getattr(source, "read", None)):
        name = getattr(source, "name", None)
        named = os.path.basename(name) if isinstance(name, str) else "the stream"
        return named, getattr(source, "buffer", source), False
    raise _checks.wrong("open_stream", "source", "a path, '-', a file object, bytes, arrays or a frame", source)


def _origin(raw: Any, ahead: int) -> int | None:
    """Where the data begins in a file that can jump; ``ahead`` bytes were read already."""
    try:
        if raw.seekable() and not isinstance(raw, io.TextIOBase):
            return int(raw.tell()) - ahead
    except (AttributeError, OSError, ValueError):
        pass
    return None


def _read(file: Any, count: int) -> bytes:
    """``count`` bytes, fewer only at the end: pipes give what they have."""
    pieces = []
    while count > 0:
        data = _bytes(file.read(count))
        if not data:
            break
        pieces.append(data)
        count -= len(data)
    return b"".join(pieces)


def _bytes(data: Any) -> bytes:
    if isinstance(data, str):
        return data.encode()
    return b"" if data is None else bytes(data)


def _pieces_of(file: Any) -> Iterator[bytes]:
    while data := _read(file, STEP):
        yield data
