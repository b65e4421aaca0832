"""The ASGI application: limits, who may do what, routes, errors as JSON, security headers.

It is written on ASGI itself: with a fixed set of routes there is nothing that a framework would save, every limit is in
one place, and a small request costs half as much.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from gossamer._version import __version__
from gossamer.exceptions import ParameterError
from gossamer.serve.changes import Work
from gossamer.serve.counters import Counters
from gossamer.serve.hub import Hub
from gossamer.serve.logs import Log
from gossamer.serve.predictor import Ask, Predictor
from gossamer.serve.problems import Problem
from gossamer.serve.tokens import Tokens

JSON, TEXT, NDJSON = "application/json", "text/plain; charset=utf-8", "application/x-ndjson"
#: Nothing of another site is loaded, and no other site may show this one or read from it.
SECURITY = [
    (b"content-security-policy", b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
     b"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
    (b"cache-control", b"no-store"),
]  # fmt: skip
LOCAL = ("localhost", "127.0.0.1", "[::1]")

Handler = Callable[["Call"], Awaitable["Reply"]]


class Refused(Problem):
    """A request that is refused for its form: too large, too slow, of another type, without a token."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Reply:
    """An answer: a status, a body and its type. ``stream`` sends the body in pieces."""

    __slots__ = ("body", "headers", "kind", "status", "stream")

    def __init__(self, body: bytes = b"", status: int = 200, kind: str = JSON, stream: Any = None) -> None:
        self.body, self.status, self.kind, self.stream = body, status, kind, stream
        self.headers: list[tuple[bytes, bytes]] = []


class Call:
    """A request: its path, query and headers, who sent it, and its body."""

    __slots__ = ("app", "headers", "method", "name", "query", "receive", "rest", "rows", "scopes")

    def __init__(self, app: App, scope: Any, receive: Any) -> None:
        self.app, self.receive = app, receive
        self.method: str = scope["method"]
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        raw = scope["query_string"]
        self.query: dict[str, str] = dict(parse_qsl(raw.decode("latin-1"), max_num_fields=20)) if raw else {}
        self.scopes: frozenset[str] = frozenset()
        self.name, self.rest, self.rows = "", "", 0

    def header(self, name: str) -> str:
        """A header, or an empty text."""
        return self.headers.get(name.encode(), b"").decode("latin-1")

    def need(self, *scopes: str) -> None:
        """Refuse a bearer that lacks a scope."""
        for scope in scopes:
            if scope not in self.scopes:
                known = self.scopes or self.header("authorization")
                raise Refused(403 if known else 401, f"This needs a token with the scope {scope!r}.")

    async def body(self, most: int | None = None) -> bytes:
        """The whole body, within the limits of size and time."""
        pieces = [piece async for piece in self.pieces(most)]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def pieces(self, most: int | None = None) -> Any:
        """The body as it comes."""
        limits = self.app.limits
        most = limits.body if most is None else most
        if self.headers.get(b"content-encoding", b"identity") != b"identity":
            raise Refused(415, "The body must not be compressed.")
        told = self.headers.get(b"content-length", b"0")
        if len(told) > 15 or not told.isdigit() or int(told) > most:
            raise Refused(413, f"The body must be at most {most} bytes.")
        size, end = 0, self.app.loop.time() + limits.body_seconds
        while True:
            try:
                async with asyncio.timeout_at(end):
                    message = await self.receive()
            except TimeoutError:
                raise Refused(408, f"The body did not come within {limits.body_seconds} s.") from None
            if message["type"] == "http.disconnect":
                raise Refused(400, "The connection was closed.")
            piece = message.get("body", b"")
            size += len(piece)
            if size > most:
                raise Refused(413, f"The body must be at most {most} bytes.")
            if piece:
                yield piece
            if not message.get("more_body", False):
                return


class App:
    """The application on a hub."""

    def __init__(self, hub: Hub, tokens: Tokens, log: Log, hosts: tuple[str, ...] = ()) -> None:
        from gossamer.serve import api, pages

        self.hub, self.tokens, self.log = hub, tokens, log
        self.limits = hub.limits
        self.hosts = hosts  # names that this server may be called by besides those of this machine
        self.counters = Counters()
        self.predictor = Predictor(self.limits.queue, self._deliver_from_thread, self.limits.queue_bytes)
        self.started = time.time()
        self.loop: asyncio.AbstractEventLoop
        self.turn = asyncio.Lock()  # of who reads many rows: one of them in a round of the event loop
        self.connections: Callable[[], int] = lambda: 0
        self.ends: Callable[[], bool] = lambda: False  # whether the server waits for the last answers
        self.stopping = False
        self.importing = False  # whether files of models are still to be imported
        self.open_pages = 0
        self.files = pages.load_files()
        self.routes: dict[tuple[str, str], tuple[str, Handler]] = api.ROUTES

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        begun = time.perf_counter()
        route, call = "other", Call.__new__(Call)
        try:
            call = Call(self, scope, receive)
            route, handler = self._route(call, scope["path"])
            self._check_origin(call)
            call.scopes = self.tokens.scopes(call.header("authorization") or None)
            reply = await handler(call)
        except Exception as error:
            reply = self._failure(error, route)
        await self._send(reply, send)
        seconds = time.perf_counter() - begun
        self.counters.add(route, reply.status, seconds)
        if self.log.requests:
            self.log.write("request", route=route, method=scope["method"], status=reply.status,
                           ms=round(1000 * seconds, 3), rows=getattr(call, "rows", 0))  # fmt: skip

    async def _live(self, receive: Any, send: Any) -> None:
        await receive()
        self.loop = asyncio.get_running_loop()
        self.hub.deliver = self._deliver_from_thread
        self.hub.start(wait=False)
        self.predictor.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.stopping = True
        await self.loop.run_in_executor(None, self.hub.stop)
        self.predictor.stop()
        await send({"type": "lifespan.shutdown.complete"})

    def state(self) -> tuple[str, str]:
        """Which state the server is in, and why; ready only once the files that it was started with are imported."""
        if self.stopping:
            return "stopping", self.hub.reason
        if self.importing and self.hub.state == "ready":
            return "starting", "files of models are imported"
        return self.hub.state, self.hub.reason

    def _route(self, call: Call, path: str) -> tuple[str, Handler]:
        """The name and the handler of a path: /v1/models/NAME/VERB, or a fixed path."""
        parts = path.split("/", 5)
        pattern = path
        if path.startswith("/v1/models/") and len(parts) in (4, 5) and parts[3]:
            call.name = parts[3]
            pattern = "/v1/models/*" + (f"/{parts[4]}" if len(parts) == 5 else "")
        found = self.routes.get((call.method, pattern))
        if found is None and call.method == "GET" and path in self.files:
            call.rest = path
            found = self.routes["GET", "/file"]
        if found is None:
            known = any(route == pattern for _, route in self.routes)
            raise Refused(405 if known else 404, "There is nothing at this path, or not with this method.")
        return found

    def _check_origin(self, call: Call) -> None:
        """Refuse what a page of another site sends from a user's browser, under whatever name it calls this server."""
        host = call.header("host").lower()
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        if not len(self.tokens) and name not in LOCAL and name not in self.hosts:
            raise Refused(403, "Without tokens this server answers to localhost only.")
        origin = call.headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower().partition("://")[2] != host:
            raise Refused(403, "This comes from a page of another site.")

    def _failure(self, error: Exception, route: str) -> Reply:
        """The answer for an error; one that nobody expected is logged, and its text is kept from the client."""
        content: dict[str, Any] = {"message": str(error)[:2000]}
        headers = []
        if isinstance(error, Problem):
            status = error.status
            if error.retry is not None:
                headers.append((b"retry-after", str(error.retry).encode()))
            if status == 401:
                headers.append((b"www-authenticate", b"Bearer"))
        elif isinstance(error, (msgspec.MsgspecError, UnicodeDecodeError)):
            status = 400
        elif isinstance(error, ValueError):
            status = 422
            if isinstance(error, ParameterError):
                content["parameter"] = error.parameter
        elif isinstance(error, ImportError):
            status = 501
        else:
            status, content = 500, {"message": "Something went wrong here; the log says what."}
            self.log.error(route, error)
        reply = Reply(msgspec.json.encode({"error": {"status": status, **content}}), status)
        reply.headers = headers
        return reply

    async def _send(self, reply: Reply, send: Any) -> None:
        headers = [(b"content-type", reply.kind.encode()), *SECURITY, *reply.headers]
        if reply.stream is None:
            headers.append((b"content-length", str(len(reply.body)).encode()))
            await send({"type": "http.response.start", "status": reply.status, "headers": headers})
            await send({"type": "http.response.body", "body": reply.body})
            return
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        try:
            async for piece in reply.stream:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except Exception as error:
            failure = self._failure(error, "stream")
            await send({"type": "http.response.body", "body": failure.body + b"\n", "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    # ----------------------------------------------------------------------------------------- to and from the threads

    async def change(self, *works: Work) -> dict[str, Any]:
        """Submit changes; the answer to the last of them."""
        for work in works:
            work.done = self.loop.create_future()
        self.hub.submit(works)
        answers = await asyncio.gather(*(work.done for work in works), return_exceptions=True)
        if isinstance(answers[-1], BaseException):
            raise next(answer for answer in answers if isinstance(answer, BaseException))
        answer: dict[str, Any] = answers[-1]
        return answer

    async def ask(self, ask: Ask) -> dict[str, Any]:
        """Wait for predictions."""
        ask.done = self.loop.create_future()
        self.predictor.submit(ask)
        answer: dict[str, Any] = await ask.done
        return answer

    def _deliver_from_thread(self, results: list[tuple[Any, Any]]) -> None:
        self.loop.call_soon_threadsafe(_deliver, results)


def _deliver(results: list[tuple[Any, Any]]) -> None:
    for asked, result in results:
        if not asked.done.done():
            if isinstance(result, Exception):
                asked.done.set_exception(result)
            else:
                asked.done.set_result(result)


def json_reply(content: Any, status: int = 200) -> Reply:
    """Plain data as JSON."""
    return Reply(msgspec.json.encode(content), status)


VERSION = __version__
