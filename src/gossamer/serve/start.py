"""Start a server: in the foreground for the command line, or on a thread for notebooks and tests."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import os
import socket
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gossamer import _checks
from gossamer.serve.limits import Limits

if TYPE_CHECKING:
    from gossamer.serve.client import Client


def is_local(host: str) -> bool:
    """Whether an address is one that only this machine reaches.

    >>> is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def make_server(
    data: str | os.PathLike[str], host: str = "127.0.0.1", port: int = 8765, limits: Limits | None = None,
    log_requests: bool = False, quiet: bool = False, certificate: str | None = None, key: str | None = None,
) -> Any:  # fmt: skip
    """A uvicorn server with the application; ``server.app`` is the latter."""
    uvicorn = _checks.extra("uvicorn", "gossamer serve", "serve")
    _checks.extra("httptools", "gossamer serve", "serve")
    _checks.extra("msgspec", "gossamer serve", "serve")
    from gossamer.serve.app import App
    from gossamer.serve.hub import Hub
    from gossamer.serve.logs import Log
    from gossamer.serve.protocol import guarded
    from gossamer.serve.tokens import Tokens

    limits = limits or Limits()
    tokens = Tokens(data)
    if not is_local(host) and not len(tokens):
        rule = "an address of this machine only (127.0.0.1) until there is a token: gossamer serve token"
        raise _checks.wrong("serve", "host", rule, host)
    app = App(Hub(os.fspath(data), limits), tokens, Log(log_requests, quiet), (host.lower(),))
    config = uvicorn.Config(
        app, host=host, port=port, http=guarded(limits.connections, limits.header_seconds), ws="none", lifespan="on",
        log_config=None, log_level="error", access_log=False,
        server_header=False, date_header=False, proxy_headers=False,
        timeout_keep_alive=30, timeout_graceful_shutdown=5, backlog=4096, ssl_certfile=certificate, ssl_keyfile=key,
    )  # fmt: skip
    server = uvicorn.Server(config)
    server.app = app
    app.connections = lambda: len(server.server_state.connections)
    app.ends = lambda: bool(server.should_exit)
    return server


def run(server: Any, models: tuple[str, ...] = ()) -> None:
    """Serve until a signal comes. ``models`` are files that are imported once, under their names."""
    app, config = server.app, server.config
    scheme = "https" if config.is_ssl else "http"
    address = f"{scheme}://{config.host}:{config.port}"

    failed: list[str] = []

    def watch() -> None:
        while app.hub.state == "starting" and not server.should_exit:
            time.sleep(0.02)
        for path in models if app.hub.state == "ready" else ():
            try:
                _import(app, path)
            except Exception as error:
                failed.append(f"{path} cannot be imported: {error}")
                server.should_exit = True
                return
        app.importing = False
        if app.hub.state == "ready":
            print(f"gossamer serves {len(app.hub.models)} models of {app.hub.journal.folder} at {address}", flush=True)
        else:
            print(f"gossamer is {app.hub.state} at {address}: {app.hub.reason}", file=sys.stderr, flush=True)

    app.importing = bool(models)
    gc.collect()
    gc.freeze()  # what was imported stays, and need not be looked at again
    sys.setswitchinterval(0.0002)  # the event loop waits for the other threads' Python code no longer than that
    threading.Thread(target=watch, daemon=True).start()
    server.run()
    if failed:
        raise ValueError(failed[0])


def _import(app: Any, path: str) -> None:
    """Import the model of a file under the file's name, unless there is one."""
    import asyncio

    from gossamer.serve.changes import Work
    from gossamer.serve.files import read_model

    name = Path(path).stem
    if name not in app.hub.models:
        recipe, data = read_model(Path(path).read_bytes())
        works = Work("create", name, recipe), Work("import", name, (recipe, data))
        asyncio.run_coroutine_threadsafe(app.change(*works), app.loop).result()


class Background:
    """A server on a thread of this process, for notebooks and tests; it stops at the end of the ``with`` block.

    Parameters
    ----------
    data : the folder of the journal.
    port : where it listens, on 127.0.0.1; 0 takes a free one.
    limits : see `Limits`.

    >>> import tempfile
    >>> with Background(tempfile.mkdtemp()) as server:
    ...     client = server.client()
    ...     client.learn("shop", [{"size": 1.0}, {"size": 2.0}], [1.5, 2.5])["learned"]
    2
    """

    def __init__(self, data: str | os.PathLike[str], port: int = 0, limits: Limits | None = None) -> None:
        self.server = make_server(data, "127.0.0.1", port, limits, quiet=True)
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.port: int = self.socket.getsockname()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.thread = threading.Thread(target=self.server.run, args=([self.socket],), daemon=True)

    def client(self, **options: Any) -> Client:
        """A client of this server."""
        from gossamer.serve.client import Client

        return Client(self.address, **options)

    def __enter__(self) -> Background:
        self.thread.start()
        while not self.server.started or self.server.app.hub.state == "starting":
            if not self.thread.is_alive():
                raise RuntimeError("the server has not started")
            time.sleep(0.005)
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join()
        with contextlib.suppress(OSError):
            self.socket.close()
