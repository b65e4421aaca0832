"""Clients of a server: `Client` for plain programs and `AsyncClient` for asyncio. Neither needs an extra."""

from __future__ import annotations

import asyncio
import datetime
import decimal
import http.client
import json
import ssl
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import numpy as np

from gossamer import _checks

#: Answers after which a request is sent again: its id makes sure that it is learned once.
AGAIN = (429, 503)


class ServerError(Exception):
    """An answer that is an error: ``status`` and ``message`` are those of the server.

    >>> ServerError(404, "There is no model 'shop'.").status
    404
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status, self.message = status, message


class _Calls:
    """The calls of the API. A subclass sends them; its ``_call`` returns the answer, or awaits it."""

    def __init__(
        self, address: str = "http://127.0.0.1:8765", token: str | None = None, timeout: float = 30.0, retries: int = 8
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _checks.wrong(self, "address", "like http://127.0.0.1:8765", address)
        self.secure, self.host = parts.scheme == "https", parts.hostname
        self.port = parts.port or (443 if self.secure else 80)
        self.timeout, self.retries = timeout, retries
        self.headers = {"content-type": "application/json"}
        if token is not None:
            self.headers["authorization"] = f"Bearer {token}"

    def _call(self, method: str, path: str, body: Any = None, plain: bool = False) -> Any:
        raise NotImplementedError

    def _rows(self, verb: str, name: str, content: dict[str, Any], query: Mapping[str, Any] | None = None) -> Any:
        found = {key: value for key, value in (query or {}).items() if value not in (None, False)}
        tail = "?" + urlencode({key: 1 if value is True else value for key, value in found.items()}) if found else ""
        kept = {key: _plain(value) for key, value in content.items() if value is not None}
        return self._call("POST", f"/v1/models/{quote(name, safe='')}/{verb}{tail}", _encode(kept))

    def models(self) -> Any:
        """All models."""
        return self._call("GET", "/v1/models")

    def create(self, name: str, **recipe: Any) -> Any:
        """Create a model: ``task``, ``learner``, ``params``, ``columns``, ``kinds``, ``target``, ``key``, ..."""
        return self._call("PUT", f"/v1/models/{quote(name, safe='')}", json.dumps(recipe).encode())

    def describe(self, name: str) -> Any:
        """What there is to know about a model."""
        return self._call("GET", f"/v1/models/{quote(name, safe='')}")

    def story(self, name: str) -> Any:
        """The errors of a model over time, its latest rows, and what has happened to it."""
        return self._call("GET", f"/v1/models/{quote(name, safe='')}/story")

    def delete(self, name: str) -> Any:
        """Delete a model."""
        return self._call("DELETE", f"/v1/models/{quote(name, safe='')}")

    def predict(self, name: str, rows: Any, *, keys: Any = None, ids: Any = None, **wanted: Any) -> Any:
        """Predict rows. ``proba``, ``scores``, ``std``: True for these too; ``interval``, ``set``: a coverage, for
        intervals and sets that hold it. With ``ids`` the rows wait for labels."""
        request = None if ids is None else uuid.uuid4().hex
        return self._rows("predict", name, {"rows": _table(rows), "keys": keys, "ids": ids, "request": request}, wanted)

    def learn(
        self, name: str, rows: Any, y: Any = None, *, keys: Any = None, weights: Any = None, **recipe: Any
    ) -> Any:
        """Learn rows. A model that does not exist is made of them: ``task``, ``target``, ``key``, ``learner``."""
        content = {"rows": _table(rows), "y": y, "keys": keys, "weights": weights, "request": uuid.uuid4().hex}
        return self._rows("learn", name, content, recipe)

    def predict_learn(self, name: str, rows: Any, y: Any = None, *, keys: Any = None, weights: Any = None) -> Any:
        """Predict each row, then learn it."""
        content = {"rows": _table(rows), "y": y, "keys": keys, "weights": weights, "request": uuid.uuid4().hex}
        return self._rows("predict_learn", name, content)

    def labels(self, name: str, ids: Any, y: Any) -> Any:
        """Learn the rows that were predicted with these ids."""
        return self._rows("labels", name, {"ids": ids, "y": y, "request": uuid.uuid4().hex})

    def versions(self, name: str) -> Any:
        """The stored states of a model."""
        return self._call("GET", f"/v1/models/{quote(name, safe='')}/versions")

    def keep(self, name: str, label: str = "") -> Any:
        """Store the model as a version that is kept."""
        return self._call("POST", f"/v1/models/{quote(name, safe='')}/versions", json.dumps({"label": label}).encode())

    def rollback(self, name: str, version: int) -> Any:
        """Go back to a version."""
        body = json.dumps({"version": version}).encode()
        return self._call("POST", f"/v1/models/{quote(name, safe='')}/rollback", body)

    def export(self, name: str) -> Any:
        """The model as the bytes of a .gsm file, for `gossamer.from_bytes`."""
        return self._call("GET", f"/v1/models/{quote(name, safe='')}/file", plain=True)

    def upload(self, name: str, data: bytes) -> Any:
        """Import a model from the bytes of a .gsm file (``model.to_bytes()``)."""
        return self._call("PUT", f"/v1/models/{quote(name, safe='')}/file", data)

    def ready(self) -> Any:
        """The state of the server; ServerError with 503 if nothing can be learned."""
        return self._call("GET", "/readyz")

    def metrics(self) -> Any:
        """The numbers for Prometheus."""
        return self._call("GET", "/metrics", plain=True)


class Client(_Calls):
    """A client for plain programs. Each thread has its own connection.

    Every change carries a request id: where an answer is lost, the request is sent again, and is learned once.

    Parameters
    ----------
    address : of the server.
    token : a bearer token.
    timeout : seconds until an answer is given up.
    retries : how often a request is sent again after a lost connection, 429 or 503.

    >>> Client("http://127.0.0.1:9").port
    9
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8765", token: str | None = None, timeout: float = 30.0, retries: int = 8
    ) -> None:
        super().__init__(address, token, timeout, retries)
        self._local = threading.local()
        self._all: list[http.client.HTTPConnection] = []

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if found is None:
            kind = http.client.HTTPSConnection if self.secure else http.client.HTTPConnection
            found = self._local.connection = kind(self.host, self.port, timeout=self.timeout)
            self._all.append(found)
        return found

    def close(self) -> None:
        """Close all connections; a later call opens another."""
        for connection in getattr(self, "_all", ()):  # none if the address was refused
            connection.close()

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _call(self, method: str, path: str, body: Any = None, plain: bool = False) -> Any:
        for tried in range(self.retries + 1):
            last = tried == self.retries
            connection = self._connection()
            try:
                connection.request(method, path, body, self.headers)
                response = connection.getresponse()
                data = response.read()
            except (OSError, http.client.HTTPException):
                connection.close()  # the next request opens it again
                if last:
                    raise
                time.sleep(_pause(tried))
                continue
            if response.status in AGAIN and not last and path != "/readyz":
                time.sleep(float(response.headers.get("retry-after") or _pause(tried)))
                continue
            return _read(response.status, data, plain)
        raise AssertionError


class AsyncClient(_Calls):
    """The same calls for asyncio: each is awaited. Connections are kept and used again.

    >>> AsyncClient("http://127.0.0.1:9").host
    '127.0.0.1'
    """

    def __init__(
        self, address: str = "http://127.0.0.1:8765", token: str | None = None, timeout: float = 30.0, retries: int = 8
    ) -> None:
        super().__init__(address, token, timeout, retries)
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        while self._idle:
            self._idle.pop()[1].close()

    async def _call(self, method: str, path: str, body: Any = None, plain: bool = False) -> Any:
        for tried in range(self.retries + 1):
            last = tried == self.retries
            try:
                status, headers, data = await asyncio.wait_for(self._exchange(method, path, body or b""), self.timeout)
            except (OSError, EOFError, TimeoutError):
                if last:
                    raise
                await asyncio.sleep(_pause(tried))
                continue
            if status in AGAIN and not last and path != "/readyz":
                await asyncio.sleep(float(headers.get("retry-after") or _pause(tried)))
                continue
            return _read(status, data, plain)
        raise AssertionError

    async def _exchange(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        secure = ssl.create_default_context() if self.secure else None
        reader, writer = (
            self._idle.pop() if self._idle else await asyncio.open_connection(self.host, self.port, ssl=secure)
        )
        try:
            head = {**self.headers, "host": f"{self.host}:{self.port}", "content-length": str(len(body))}
            lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
            writer.write(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
            answer = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            status = int(answer[0].split(" ")[1])
            pairs = (line.partition(":") for line in answer[1:] if line)
            headers = {name.lower(): value.strip() for name, _, value in pairs}
            data = await reader.readexactly(int(headers["content-length"]))
        except BaseException:
            writer.close()
            raise
        if headers.get("connection") == "close":
            writer.close()
        else:
            self._idle.append((reader, writer))
        return status, headers, data


def _pause(tried: int) -> float:
    """Seconds before a request is sent again."""
    return float(min(2.0, 0.05 * 2**tried))


def _read(status: int, data: bytes, plain: bool) -> Any:
    if status >= 400:
        try:
            message = json.loads(data)["error"]["message"]
        except (ValueError, LookupError, TypeError):
            message = data[:200].decode("latin-1")
        raise ServerError(status, message)
    return data if plain else json.loads(data)


def _encode(content: Any) -> bytes:
    """As JSON: dates as ISO 8601, numbers of NumPy as numbers, and null for NaN, None, NaT and the like."""
    try:
        return json.dumps(content, allow_nan=False, default=_cell).encode()
    except ValueError:  # NaN
        return json.dumps(_without_nan(content), allow_nan=False, default=_cell).encode()


def _cell(value: Any) -> Any:
    """A value that JSON does not have.

    >>> _cell(datetime.date(2024, 5, 1)), _cell(np.float32(0.5)), _cell(np.datetime64("NaT"))
    ('2024-05-01', 0.5, None)
    """
    if type(value).__name__ in ("NAType", "NaTType") or value != value:
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, np.datetime64):
        return str(value.astype("datetime64[us]"))
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, decimal.Decimal):
        return float(value)
    raise _checks.wrong("Client", "rows", "numbers, texts, booleans, dates or None", type(value).__name__, TypeError)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(one) for one in value]
    return None if isinstance(value, float) and value != value else value


def _table(rows: Any) -> Any:
    """Rows as JSON can hold them: lists and dicts, arrays, frames."""
    if hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        return rows.to_dicts() if hasattr(rows, "to_dicts") else rows.to_dict("records")
    if isinstance(rows, np.ndarray):
        return rows.tolist()
    if isinstance(rows, Mapping):
        return [rows]
    if isinstance(rows, Sequence) and not isinstance(rows, str):
        return list(rows)
    raise _checks.wrong("Client", "rows", "a list of rows, an array or a frame", type(rows).__name__)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
