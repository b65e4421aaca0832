"""gzip, bzip2, xz and zstd, unpacked in small pieces, and text of other encodings. Damaged data are always an error.

The pieces do not depend on how they are requested, so that the rows before a damaged byte do not depend on the chunks.
"""

from __future__ import annotations

import bz2
import codecs
import lzma
import zlib
from collections.abc import Callable, Iterator
from operator import ne
from types import SimpleNamespace
from typing import Any

from gossamer import _checks

#: Packed bytes fed to a decompressor at once, and the largest size of a piece.
STEP, PIECE = 1 << 14, 1 << 16
#: The most memory that an xz archive may ask for; `xz -9` asks for 65 MiB.
XZ_MEMORY = 80 << 20
#: The magic bytes of each archive. bzip2 has its level (1 to 9) in the fourth byte; an empty bzip2 file differs.
MAGIC = [
    ("gzip", b"\x1f\x8b\x08"), ("zstd", b"\x28\xb5\x2f\xfd"), ("xz", b"\xfd7zXZ\x00"),
    ("bzip2", b"BZh91AY&SY"), ("bzip2", b"BZh9\x17rE8P\x90"),
]  # fmt: skip
#: Codecs of Python that are not encodings of text, or that take more than linear time.
NO_TEXT = {"idna", "punycode", "undefined", "unicode_escape", "raw_unicode_escape", "mbcs", "oem"}


class DamagedError(Exception):
    """Data that cannot be unpacked or decoded; the reason."""


def archive_of(start: bytes) -> str | None:
    """The kind of archive that begins like this, also if a magic byte is wrong or the data end inside of them.

    An archive with damaged magic bytes must not be read as text.

    >>> archive_of(b"BZh91AY&SY..."), archive_of(b"Bzh91AY&SY..."), archive_of(b"BZh"), archive_of(b"a,b")
    ('bzip2', 'bzip2', 'bzip2', None)
    """
    if start.startswith(b"\x1f\x8b"):
        return "gzip"
    if start[1:4] == b"\x2a\x4d\x18" and 0x50 <= start[0] < 0x60:  # a frame of zstd that is skipped
        return "zstd"
    if start[3:4] in b"12345678":
        start = start[:3] + b"9" + start[4:10] if start[3:] else start
    for kind, mark in MAGIC:
        head = start[: len(mark)]
        if len(head) < len(mark):
            if head and mark.startswith(head):
                return kind
        elif (head[0] == mark[0] or head[1] == mark[1]) and sum(map(ne, head, mark)) <= 1:
            return kind
    return None


def unpack(kind: str, read: Callable[[int], bytes]) -> Iterator[bytes]:
    """The pieces of an archive, which may have several members; `DamagedError` where it is cut or damaged.

    ``read(n)`` gives n bytes, fewer only at the end.
    """
    if kind == "zstd":
        yield from _unpack_zstd(read)
        return
    data = read(STEP)
    while data:
        member = MEMBERS[kind]()
        while not member.eof:
            if member.needs_input and not data:
                data = read(STEP)
                if not data:
                    raise DamagedError(f"the {kind} archive ends too early")
            try:
                piece = member.decompress(data, PIECE)
            except (OSError, zlib.error, lzma.LZMAError, EOFError, ValueError) as error:
                raise DamagedError(f"{kind}: {error}") from None
            data = b""
            if piece:
                yield piece
        # archives are padded with zeros on tapes and in xz; other bytes must be the next member
        data = member.unused_data.lstrip(b"\0")
        while not data and (more := read(STEP)):
            data = more.lstrip(b"\0")


class _GzipMember:
    """A member of a gzip file, with the methods of Python's other decompressors."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inflate.eof

    @property
    def unused_data(self) -> bytes:
        return self._inflate.unused_data

    def decompress(self, data: bytes, most: int) -> bytes:
        piece = self._inflate.decompress(self._inflate.unconsumed_tail + data, most)
        self.needs_input = not self._inflate.unconsumed_tail and len(piece) < most
        return piece


MEMBERS: dict[str, Callable[[], Any]] = {
    "gzip": _GzipMember,
    "bzip2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, XZ_MEMORY),
}


def _unpack_zstd(read: Callable[[int], bytes]) -> Iterator[bytes]:
    pyarrow = _checks.extra("pyarrow", "zstd", "io")
    packed = SimpleNamespace(read=read, closed=False, close=lambda: None)
    stream = pyarrow.CompressedInputStream(pyarrow.PythonFile(packed, mode="r"), "zstd")
    while True:
        try:
            piece = stream.read(PIECE)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:  # a disk that fails
                raise
            raise DamagedError(f"zstd: {error}") from None
        if not piece:
            return
        yield piece


def check_encoding(encoding: Any) -> str | None:
    """The name of an encoding of text; None for UTF-8, which needs no decoding.

    >>> check_encoding("latin1"), check_encoding("UTF8")
    ('iso8859-1', None)
    """
    if encoding is None:
        return None
    rule = "the name of a text encoding that Python knows, such as 'utf-8', 'latin-1', 'cp1252' or 'utf-16'"
    try:
        name = codecs.lookup(encoding).name
        bytes(4).decode(name, "ignore")  # LookupError if it is no encoding of text
        if name.replace("-", "_") in NO_TEXT:
            raise LookupError
        codecs.getincrementaldecoder(name)
    except (LookupError, TypeError, ValueError):
        raise _checks.wrong("open_stream", "encoding", rule, encoding) from None
    return None if name in ("utf-8", "utf-8-sig") else name


def decode(pieces: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Pieces of text as UTF-8; `DamagedError` after the text before the first bytes that cannot be decoded."""
    decoder = codecs.getincrementaldecoder(encoding)()
    count = 0
    for piece in pieces:
        state = decoder.getstate()
        try:
            text = decoder.decode(piece).encode()
        except UnicodeError:
            decoder.setstate(state)
            yield from _decode_until_error(decoder, piece)
            raise DamagedError(f"it is not {encoding}, after {count} bytes or a few more") from None
        count += len(piece)
        if text:
            yield text
    try:
        text = decoder.decode(b"", final=True).encode()
    except UnicodeError:
        raise DamagedError(f"it is not {encoding}: it ends inside a character") from None
    if text:
        yield text


def _decode_until_error(decoder: codecs.IncrementalDecoder, piece: bytes) -> Iterator[bytes]:
    good = []
    for i in range(len(piece)):
        try:
            good.append(decoder.decode(piece[i : i + 1]).encode())
        except UnicodeError:
            break
    if any(good):
        yield b"".join(good)
