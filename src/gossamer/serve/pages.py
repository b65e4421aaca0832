"""The dashboard: its files, and the events that keep it up to date."""

from __future__ import annotations

import asyncio
from importlib import resources
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from gossamer.serve.app import App, Call

KINDS = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
         ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}  # fmt: skip
#: Seconds between two events.
PERIOD = 1.0
#: The most pages that are kept up to date at a time.
MOST_PAGES = 100


def load_files() -> dict[str, tuple[bytes, str]]:
    """The files of the dashboard, by path: read once, so that no path of a request reaches the file system."""
    found = {}
    for file in resources.files("gossamer.serve").joinpath("page").iterdir():
        kind = KINDS.get(file.name[file.name.rfind(".") :])
        if kind is not None:
            found[f"/page/{file.name}"] = (file.read_bytes(), kind)
    found["/"] = found["/page/index.html"]
    return found


async def events(app: App, call: Call) -> Any:
    """Server-sent events: the state of the server, all models, and the story of the chosen one, every second."""
    chosen = call.query.get("model")
    gone = asyncio.create_task(_wait_for_end(call))
    app.open_pages += 1
    try:
        async for told in _news(app, chosen, gone):
            yield b"data: " + msgspec.json.encode(told) + b"\n\n"
    finally:
        app.open_pages -= 1
        gone.cancel()


async def _wait_for_end(call: Call) -> None:
    """Wait until the browser has closed the connection: a stream that nobody reads has to end."""
    while (await call.receive())["type"] != "http.disconnect":
        pass


async def _news(app: App, chosen: str | None, gone: asyncio.Task[None]) -> Any:
    from gossamer.serve.api import facts_of

    before: Any = None
    rate_rows, rate_time = app.hub.counts["rows"], app.loop.time()
    while not (app.stopping or app.ends() or gone.done()):
        hub, (state, reason) = app.hub, app.state()
        now = app.loop.time()
        rate = (hub.counts["rows"] - rate_rows) / max(now - rate_time, 1e-3) if now > rate_time else 0.0
        rate_rows, rate_time = hub.counts["rows"], now
        told: dict[str, Any] = {
            "server": {
                "state": state, "reason": reason, "queue": hub.queued_rows, "seq": hub.journal.seq,
                "journal_bytes": hub.journal.size(), "rows_per_second": round(rate, 1), "started": app.started,
                "predicted": app.predictor.rows, "p50": app.counters.quantile("predict", 0.5),
                "p99": app.counters.quantile("predict", 0.99), "requests": app.counters.total,
            },
            "models": [facts_of(served) for served in list(hub.models.values())[:200]],
        }  # fmt: skip
        served = hub.models.get(chosen or "") or next(iter(hub.models.values()), None)
        if served is not None and (served.number, served.seq) != before:
            before = (served.number, served.seq)
            drawn = await app.loop.run_in_executor(None, served.pictures)
            told["story"] = {
                **drawn, "name": served.name, "latest": list(served.latest),
                "events": list(served.events), "columns": served.facts.columns,
            }  # fmt: skip
        yield told
        await asyncio.wait([gone], timeout=PERIOD)
