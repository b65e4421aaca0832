"""Prefetch chunks in a second thread while the first learns: parsing and learning both release the GIL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.streams import Chunk


def ahead(stream: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks of a stream in order, prefetched; then its error, if there is one.

    >>> list(ahead(["one", "two"]))
    ['one', 'two']
    """
    chunks = iter(stream)
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = reader.submit(next, chunks, None)
            yield chunk
