"""Prefetch chunks in a second thread while the first learns: parsing and learning both release the GIL."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gossamer.streams import Chunk


def ahead(stream: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks of a stream in order, prefetched; then its error, if there is one.

    >>> list(ahead(["one", "two"]))
    ['one', 'two']
    """
    box: queue.Queue[Chunk | BaseException | None] = queue.Queue(maxsize=1)
    over = threading.Event()

    def put(item: Chunk | BaseException | None) -> None:
        while not over.is_set():
            try:
                return box.put(item, timeout=0.1)
            except queue.Full:
                pass

    def read() -> None:
        try:
            for chunk in stream:
                put(chunk)
                if over.is_set():
                    return
            put(None)
        except BaseException as error:
            put(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        while (item := box.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        over.set()
        reader.join()
