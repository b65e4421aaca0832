"""Bytes from a path, standard input, a file object or bytes; unpacked if they are gzip or zstd; resumable by offset."""

from __future__ import annotations

import gzip
import io
import os
import select
import sys
import zlib
from typing import Any

from gossamer import _checks

GZIP, ZSTD, PARQUET = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1"
#: How many of the first bytes are remembered, so that a position is only taken up in the same data.
HEAD = 4096
#: Skipped at once, and read at once.
PIECE, LARGEST = 1 << 20, 1 << 26


class Source:
    """The bytes of a source, in order. ``offset`` counts those (unpacked) that were read.

    >>> source = Source(b"abc")
    >>> source.read(2), source.offset, source.read(2), source.read(2)
    (b'ab', 2, b'c', b'')
    """

    def __init__(self, source: Any) -> None:
        self.name, raw, self._ours = _opened(source)
        start = _read(raw, HEAD)
        packed = start.startswith((GZIP, ZSTD))
        self._file: Any = _Prefixed(start, raw)
        if start.startswith(GZIP):
            self._file = gzip.GzipFile(fileobj=self._file)
        elif start.startswith(ZSTD):
            self._file = _unzstd(self._file)
        # where a plain file can jump to; None where it must be read through
        self._origin = None if packed else _origin(raw, len(start))
        self._raw = raw
        # unpacked in small steps: damage costs the step that it is in
        self._step = 1 << 14 if packed else LARGEST
        #: Whether it is a pipe, which gives its bytes when they come: see `piece`.
        self.live = not packed and self._origin is None and hasattr(raw, "read1") and _has_number(raw)
        self._failed: str | None = None
        self._ready, self._head, self.offset = b"", b"", 0

    def peek(self, count: int = HEAD) -> bytes:
        """The next bytes, which stay where they are."""
        if len(self._ready) < count:
            self._ready += self._more(count - len(self._ready))
        return self._ready[:count]

    def read(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer only at the end."""
        if len(self._ready) < count:
            self._ready += self._more(count - len(self._ready))
        return self._taken(count)

    def piece(self, count: int) -> tuple[bytes, bool]:
        """At most ``count`` bytes and whether they are the last: of a pipe those that are there, at least one."""
        if not self.live:
            data = self.read(count)
            return data, len(data) < count
        if not self._ready:
            self._ready = self._file.piece(count)
        data = self._taken(count)
        return data, not data

    def _taken(self, count: int) -> bytes:
        data, self._ready = self._ready[:count], self._ready[count:]
        if self.offset < HEAD:
            self._head += data[: HEAD - self.offset]
        self.offset += len(data)
        return data

    def _more(self, count: int) -> bytes:
        """What comes before damaged data is handed out first, then the error."""
        pieces = []
        while count > 0 and self._failed is None:
            try:
                data = _bytes(self._file.read(min(count, self._step)))
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                self._failed = str(error)
            except OSError as error:  # what pyarrow says about zstd; a disk that fails has an errno
                if error.errno is not None:
                    raise
                self._failed = str(error)
            else:
                if not data:
                    break
                pieces.append(data)
                count -= len(data)
        if self._failed is not None and not pieces:
            raise self.damaged(self._failed)
        return b"".join(pieces)

    def damaged(self, why: str) -> ValueError:
        """The error for data that cannot be unpacked."""
        return ValueError(f"{self.name} must be whole. Got damaged or truncated data after {self.offset} bytes: {why}")

    def mark(self, offset: int) -> dict[str, int]:
        """What `skip` needs to go on at an offset that has been read."""
        return {"offset": offset, "check": zlib.crc32(self._head[: min(offset, HEAD)])}

    def skip(self, mark: dict[str, int]) -> None:
        """Go to a `mark`, from the beginning."""
        offset = _checks.whole("position", "offset", mark.get("offset"), 0)
        head = self.read(min(offset, HEAD))
        if len(head) < min(offset, HEAD) or zlib.crc32(head) != mark.get("check"):
            rule = f"one in the same data; {self.name} begins differently"
            raise _checks.wrong("open_stream", "position", rule, mark)
        if self._origin is not None:
            self._raw.seek(self._origin + offset)
            self._file, self._ready, self.offset = self._raw, b"", offset
        while self.offset < offset:
            if not self.read(min(PIECE, offset - self.offset)):
                raise _checks.wrong("open_stream", "position", f"inside the data ({self.offset} bytes)", offset)

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


class _Prefixed(io.RawIOBase):
    """A file with some bytes put back before it."""

    def __init__(self, prefix: bytes, raw: Any) -> None:
        self._prefix, self._raw = prefix, raw

    def readable(self) -> bool:
        return True

    def read(self, count: int = -1) -> bytes:
        """At most ``count`` bytes."""
        if count < 0:
            data, self._prefix = self._prefix, b""
            return data + _bytes(self._raw.read())
        if not self._prefix:
            return _bytes(self._raw.read(count))
        data, self._prefix = self._prefix[:count], self._prefix[count:]
        return data

    def piece(self, count: int) -> bytes:
        """What is there now, after waiting for the first byte; nothing at the end."""
        data = self.read(min(count, len(self._prefix))) or self._raw.read1(count)
        while data and len(data) < count and select.select([self._raw], [], [], 0)[0]:
            more = self._raw.read1(count - len(data))
            if not more:
                break
            data += more
        return bytes(data)


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


def _unzstd(file: Any) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError('zstd needs pyarrow: pip install "gossamer[io]"') from error
    return pyarrow.CompressedInputStream(pyarrow.PythonFile(file, mode="r"), "zstd")
