"""Connections: how many there may be, and how long one may take to say what it wants."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: The most bytes of a request before its body.
LARGEST_HEAD = 32 * 1024


class Guarded(HttpToolsProtocol):
    """uvicorn's HTTP protocol with limits that it does not have: connections, the size of headers, and slow clients."""

    most: ClassVar[int] = 2000
    seconds: ClassVar[float] = 10.0

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self.head = 0  # bytes since the last complete head; -1 while a request is being answered
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or end it at once if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            transport.write(b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n"
                            b"content-length: 0\r\n\r\n")  # fmt: skip
            transport.close()
            return
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._unwatch()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, unless the head of a request is too long."""
        if self.head >= 0:
            self.head += len(data)
            if self.timer is None:
                self._watch()
        super().data_received(data)
        if self.head > LARGEST_HEAD and not self.transport.is_closing():
            self.send_400_response("The headers are too long.")

    def on_headers_complete(self) -> None:
        """The head is there: the body has limits of its own."""
        self.head = -1
        self._unwatch()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        """The next request may begin; an idle connection ends by the time that keep-alive has."""
        self.head = 0
        super().on_response_complete()

    def _watch(self) -> None:
        self.timer = self.loop.call_later(self.seconds, self.transport.close)

    def _unwatch(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def guarded(connections: int, seconds: float) -> type[Guarded]:
    """The protocol with these limits."""
    return type("Limited", (Guarded,), {"most": connections, "seconds": float(seconds)})
