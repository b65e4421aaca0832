"""What each path of the API does."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import msgspec

from gossamer import _checks
from gossamer.estimators.pipelines import last_step
from gossamer.serve import arrow, counters, openapi, pages
from gossamer.serve.app import NDJSON, VERSION, Call, Handler, Refused, Reply, json_reply
from gossamer.serve.changes import Labels, Work
from gossamer.serve.files import read_model
from gossamer.serve.limits import LONGEST_TEXT
from gossamer.serve.predictor import Ask
from gossamer.serve.problems import BusyError, NotFoundError
from gossamer.serve.recipes import Recipe
from gossamer.serve.rows import AnyBlock, Cell, Request, read_rows, short
from gossamer.serve.served import Served

decode_request = msgspec.json.Decoder(Request).decode
decode_recipe = msgspec.json.Decoder(Recipe).decode
decode_lines = msgspec.json.Decoder(dict[str, Cell]).decode_lines
#: Lines of NDJSON that are learned together, and the longest line.
LINES, LONGEST_LINE = 1000, 2**20
#: The bytes of a body that takes a while to be read.
LARGE = 4096
#: The media type of .gsm files.
GSM = "application/octet-stream"


# ------------------------------------------------------------------------------------------------------------- models


def facts_of(served: Served) -> dict[str, Any]:
    """What there is to know about a model."""
    facts, model = served.facts, served.model
    last = None if model is None else last_step(getattr(model, "template", model))
    learner = served.recipe.learner if last is None else type(last).__name__
    return {
        "name": served.name, "task": facts.task, "learner": learner, "recipe": msgspec.to_builtins(served.recipe),
        "columns": facts.columns,
        "kinds": None if facts.encoder is None else {column.name: column.kind for column in facts.encoder.plan_},
        "classes": sorted(facts.labels) if facts.labels else None,
        "proba": hasattr(last, "predict_proba"), "learned": served.rows, "seq": served.seq, "created": served.created,
        "pending": len(served.pending),
        "keys": len(model) if served.recipe.key is not None and model is not None else None, **served.summary(),
    }  # fmt: skip


async def list_models(call: Call) -> Reply:
    call.need("predict")
    return json_reply({"models": [facts_of(served) for served in call.app.hub.models.values()]})


async def show_model(call: Call) -> Reply:
    call.need("predict")
    served = call.app.hub.find(call.name)
    return json_reply({**facts_of(served), "encoding": _encoding(served)})


def _encoding(served: Served) -> list[dict[str, Any]] | None:
    """What an encoder makes of each column, and how often it had to cope."""
    if served.encoder is None:
        return None
    plan, coped = served.encoder.describe(), served.encoder.coped_
    told = []
    for column in plan:
        gaps, strays = coped.get(column.name, (0, 0))
        told.append({"column": column.name, "kind": column.kind, "features": len(column.features),
                     "becomes": column.show(), "why": column.why, "missing": gaps, "strays": strays})  # fmt: skip
    return told


async def create_model(call: Call) -> Reply:
    call.need("admin")
    recipe = decode_recipe(await call.body() or b"{}")
    answer = await call.app.change(Work("create", call.name, recipe))
    call.app.log.write("created", model=call.name)
    return json_reply(answer, 201)


async def delete_model(call: Call) -> Reply:
    call.need("admin")
    answer = await call.app.change(Work("delete", call.name))
    call.app.log.write("deleted", model=call.name)
    return json_reply(answer)


async def story(call: Call) -> Reply:
    """Errors over time, the latest rows, what has happened to a model, and what else is drawn of it."""
    call.need("predict")
    served = call.app.hub.find(call.name)
    drawn = await call.app.loop.run_in_executor(None, served.pictures)
    latest = [dict(zip(("time", "row", "prediction", "y"), row, strict=True)) for row in served.latest]
    events = [dict(zip(("time", "seq", "event"), event, strict=True)) for event in served.events]
    return json_reply(
        {**facts_of(served), "latest": latest, "events": events, "pictures": drawn, "line": drawn["line"]}
    )


# --------------------------------------------------------------------------------------------------------------- rows


async def predict(call: Call) -> Reply:
    call.need("predict")
    served = call.app.hub.find(call.name)
    block, request = await _read(call, served, served.recipe)
    if block.ids is not None:
        block.columns = None
        work = Work("ask", call.name, block, request, block.count)
        return json_reply(await call.app.change(work))
    answer = await call.app.ask(Ask(served, block, _wanted(call)))
    if call.header("accept") == arrow.TYPE:
        return Reply(arrow.write_arrow(answer), kind=arrow.TYPE)
    return json_reply(answer)


async def learn(call: Call) -> Reply:
    call.need("learn")
    return await _learn(call, shown=False)


async def predict_learn(call: Call) -> Reply:
    call.need("learn", "predict")
    return await _learn(call, shown=True)


async def _learn(call: Call, shown: bool) -> Reply:
    served = call.app.hub.models.get(call.name)
    recipe, first = _recipe(call, served)
    if call.header("content-type").partition(";")[0] == NDJSON:
        return Reply(kind=NDJSON, stream=_learn_lines(call, recipe, shown))
    block, request = await _read_in_turn(call, served, recipe)
    if block.ids is not None:
        raise _checks.wrong("request", "ids", "left out where the labels are known", block.ids[:3])
    block.shown = shown
    return json_reply(await call.app.change(*first, Work("learn", call.name, block, request, block.count)))


async def labels(call: Call) -> Reply:
    """Late labels, by the ids that their rows were predicted with."""
    call.need("learn")
    call.app.hub.find(call.name)
    request = decode_request(await call.body())
    ids, y = request.ids, request.labels()
    if ids is None or y is None or len(ids) != len(y) or not 1 <= len(ids) <= call.app.limits.rows:
        raise _checks.wrong("request", "ids", "given with 'y', one for each, within the limit of rows", len(ids or ()))
    if not all(map(short, ids)):
        raise _checks.wrong("request", "ids", f"of at most {LONGEST_TEXT} characters", "longer ones")
    call.rows = len(ids)
    work = Work("labels", call.name, Labels(ids, y), _request_id(call, request), len(ids))
    return json_reply(await call.app.change(work))


def _recipe(call: Call, served: Served | None) -> tuple[Recipe, list[Work]]:
    """The recipe of a model; one that does not exist is made of its first rows, if the bearer may make models."""
    if served is not None:
        return served.recipe, []
    if "admin" not in call.scopes:
        raise NotFoundError(f"There is no model {call.name!r:.100}, and this token may not make one.")
    get = call.query.get
    recipe = Recipe(task=get("task"), learner=get("learner", "auto"), target=get("target"), key=get("key"))
    return recipe, [Work("create", call.name, recipe)]


async def _read_in_turn(call: Call, served: Served | None, recipe: Recipe) -> tuple[AnyBlock, str | None]:
    """The same for many rows: a single row that is asked about does not wait for all who came together."""
    if int(call.header("content-length") or 0) < LARGE:
        return await _read(call, served, recipe)
    body = await call.body()
    async with call.app.turn:
        return _parse(call, served, recipe, body)


async def _read(call: Call, served: Served | None, recipe: Recipe) -> tuple[AnyBlock, str | None]:
    """The rows of a request, and its id."""
    return _parse(call, served, recipe, await call.body())


def _parse(call: Call, served: Served | None, recipe: Recipe, body: bytes) -> tuple[AnyBlock, str | None]:
    (columns, encoded), most = _shape(served, recipe), call.app.limits.rows
    if call.header("content-type") == arrow.TYPE:
        request = _request_id(call, None)
        block = arrow.read_arrow(body, columns, recipe.target, recipe.key, most, encoded)
    else:
        given = decode_request(body)
        block, request = read_rows(given, columns, recipe.target, recipe.key, most, encoded), _request_id(call, given)
    call.rows = block.count
    return block, request


def _shape(served: Served | None, recipe: Recipe) -> tuple[Any, bool | None]:
    """The columns of a model, and whether an encoder reads its rows; None where the first rows decide it."""
    if served is None:
        return recipe.columns, recipe.encoded
    return served.facts.columns or recipe.columns, served.facts.encoded


def _request_id(call: Call, request: Request | None) -> str | None:
    found = call.header("idempotency-key") or (None if request is None else request.request)
    if found is not None and not 0 < len(found) <= LONGEST_TEXT:
        raise _checks.wrong("request", "request", f"an id of at most {LONGEST_TEXT} characters", found[:80])
    return found


def _wanted(call: Call) -> dict[str, Any]:
    """What a prediction should come with."""
    wanted: dict[str, Any] = {}
    for name in ("scores", "proba", "std"):
        if name in call.query:
            wanted[name] = True
    for name in ("interval", "set"):
        if name in call.query:
            try:
                share = float(call.query[name])
            except ValueError:
                share = math.nan
            wanted[name] = _checks.number("request", name, share, 0.0, 1.0)
    return wanted


async def _learn_lines(call: Call, recipe: Recipe, shown: bool) -> Any:
    """Learn NDJSON as it comes, block by block; a line of answer for each block, once it is synced and learned."""
    rest, first = b"", 1
    async for piece in call.pieces(most=2**62):
        rest += piece
        while (end := _end_of_lines(rest)) > 0:
            answer, count = await _learn_block(call, recipe, rest[:end], first, shown)
            yield answer
            rest, first = rest[end:], first + count
        if len(rest) > LONGEST_LINE * LINES or (len(rest) > LONGEST_LINE and b"\n" not in rest):
            raise Refused(413, f"A line must be at most {LONGEST_LINE} bytes.")
    if rest.strip():
        yield (await _learn_block(call, recipe, rest, first, shown))[0]


def _end_of_lines(data: bytes) -> int:
    """Where the first block of lines ends; 0 if it is not there yet."""
    if data.count(b"\n") < LINES:
        return 0
    place = 0
    for _ in range(LINES):
        place = data.index(b"\n", place) + 1
    return place


async def _learn_block(call: Call, recipe: Recipe, data: bytes, first: int, shown: bool) -> tuple[bytes, int]:
    app = call.app
    served = app.hub.models.get(call.name)
    try:
        rows: list[Any] = decode_lines(data)
        columns, encoded = _shape(served, recipe)
        block = read_rows(Request(rows=rows), columns, recipe.target, recipe.key, app.limits.rows, encoded)
        block.shown = shown
    except (ValueError, msgspec.MsgspecError) as error:
        raise ValueError(f"Lines {first} to {first + data.count(10)}: {error}") from None
    call.rows += block.count
    while True:
        try:
            works = [Work("create", call.name, recipe)] if served is None else []
            answer = await app.change(*works, Work("learn", call.name, block, None, block.count))
            return msgspec.json.encode(answer) + b"\n", block.count
        except BusyError:  # the sender waits, since nothing more is read from it
            await asyncio.sleep(0.05)


# ----------------------------------------------------------------------------------------------------- versions, files


async def list_versions(call: Call) -> Reply:
    call.need("predict")
    served = call.app.hub.find(call.name)
    found = await call.app.loop.run_in_executor(None, call.app.hub.journal.versions, served.number)
    names = ("version", "upto", "time", "label", "bytes")
    return json_reply({"versions": [dict(zip(names, one, strict=True)) for one in found]})


class _Version(msgspec.Struct, forbid_unknown_fields=True):
    label: str = ""
    version: int | None = None


async def make_version(call: Call) -> Reply:
    call.need("admin")
    given = msgspec.json.decode(await call.body() or b"{}", type=_Version)
    if len(given.label) > LONGEST_TEXT:
        raise _checks.wrong("request", "label", f"at most {LONGEST_TEXT} characters", len(given.label))
    return json_reply(await call.app.change(Work("version", call.name, given.label)), 201)


async def rollback(call: Call) -> Reply:
    call.need("admin")
    given = msgspec.json.decode(await call.body(), type=_Version)
    answer = await call.app.change(Work("rollback", call.name, given.version))
    call.app.log.write("rolled back", model=call.name, version=given.version)
    return json_reply(answer)


async def export_model(call: Call) -> Reply:
    call.need("admin")
    served = call.app.hub.find(call.name)
    return Reply(await call.app.loop.run_in_executor(None, served.export), kind=GSM)


async def import_model(call: Call) -> Reply:
    """A model from the bytes of a .gsm file; one that exists is replaced. Nothing in the file is run."""
    call.need("admin")
    data = await call.body()
    recipe, plain = await call.app.loop.run_in_executor(None, read_model, data)
    works = [] if call.name in call.app.hub.models else [Work("create", call.name, recipe)]
    answer = await call.app.change(*works, Work("import", call.name, (recipe, plain)))
    call.app.log.write("imported", model=call.name)
    return json_reply(answer, 201)


# ----------------------------------------------------------------------------------------------------------- the server


async def health(call: Call) -> Reply:
    return json_reply({"status": "alive", "version": VERSION})


async def ready(call: Call) -> Reply:
    state, reason = call.app.state()
    told = {"status": state, "reason": reason or None, "replayed": call.app.hub.replayed}
    return json_reply(told, 200 if state == "ready" else 503)


async def metrics(call: Call) -> Reply:
    call.need("predict")
    return Reply(counters.page(call.app).encode(), kind="text/plain; version=0.0.4; charset=utf-8")


async def schema(call: Call) -> Reply:
    return json_reply(openapi.document(VERSION))


async def file(call: Call) -> Reply:
    body, kind = call.app.files[call.rest]
    return Reply(body, kind=kind)


async def events(call: Call) -> Reply:
    call.need("predict")
    if call.app.open_pages >= pages.MOST_PAGES:
        raise BusyError(f"{call.app.open_pages} pages are kept up to date already.")
    return Reply(kind="text/event-stream", stream=pages.events(call.app, call))


ROUTES: dict[tuple[str, str], tuple[str, Handler]] = {
    ("GET", "/healthz"): ("healthz", health),
    ("GET", "/readyz"): ("readyz", ready),
    ("GET", "/metrics"): ("metrics", metrics),
    ("GET", "/openapi.json"): ("openapi", schema),
    ("GET", "/file"): ("file", file),
    ("GET", "/v1/events"): ("events", events),
    ("GET", "/v1/models"): ("models", list_models),
    ("GET", "/v1/models/*"): ("model", show_model),
    ("PUT", "/v1/models/*"): ("create", create_model),
    ("DELETE", "/v1/models/*"): ("delete", delete_model),
    ("POST", "/v1/models/*/predict"): ("predict", predict),
    ("POST", "/v1/models/*/learn"): ("learn", learn),
    ("POST", "/v1/models/*/predict_learn"): ("predict_learn", predict_learn),
    ("POST", "/v1/models/*/labels"): ("labels", labels),
    ("GET", "/v1/models/*/story"): ("story", story),
    ("GET", "/v1/models/*/versions"): ("versions", list_versions),
    ("POST", "/v1/models/*/versions"): ("version", make_version),
    ("POST", "/v1/models/*/rollback"): ("rollback", rollback),
    ("GET", "/v1/models/*/file"): ("export", export_model),
    ("PUT", "/v1/models/*/file"): ("import", import_model),
}
