"""A lock that is handed over in the order of the waiting threads."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class FairLock:
    """A mutex that serves waiting threads first come, first served.

    threading.Lock may be taken again by the thread that releases it: a writer that learns piece after piece would keep
    a reader waiting for the last one. Here a reader waits for one piece at most, and a writer for one reader.

    >>> lock = FairLock()
    >>> with lock:
    ...     lock.held
    True
    >>> lock.held
    False
    """

    __slots__ = ("_mutex", "_waiting", "held")

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self.held = False

    def __enter__(self) -> None:
        with self._mutex:
            if not self.held:
                self.held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self.held = False
