"""The kinds of changes: how each is validated, written as an entry, and applied to the models, now or in a replay."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gossamer import _checks, store
from gossamer.estimators.pipelines import last_step
from gossamer.serve.facts import Facts
from gossamer.serve.journal import DamagedError, Entry, created_name
from gossamer.serve.limits import MOST_VERSIONS
from gossamer.serve.mixed import Key, Label, Mixed, weigh
from gossamer.serve.problems import ConflictError, NotFoundError, TornError
from gossamer.serve.recipes import Recipe, check_loaded, check_recipe
from gossamer.serve.rows import AnyBlock, Block, decode_block, digest, encode_block, short
from gossamer.serve.served import Served

if TYPE_CHECKING:
    from gossamer.serve.hub import Hub

Result = TypeVar("Result")
#: The name of a model: it stands in paths of the API.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
#: Changes that look at stored states, or replace what the rows are: each is a group of its own.
ALONE = ("version", "rollback", "import")


class Labels(msgspec.Struct, array_like=True):
    """The payload of late labels."""

    ids: list[Key]
    y: list[Label]


@dataclass(eq=False)
class Work:
    """A change that a request asks for. ``content``: a block, a `Recipe`, `Labels`, a label, a seq, or bytes."""

    kind: str
    model: str
    content: Any = None
    request: str | None = None
    rows: int = 0
    done: Any = None
    result: Any = None
    _body: bytes | None = None
    _size: int | None = None

    def size(self) -> int:
        """About how many bytes it keeps while it waits."""
        if self._size is None:
            content = self.content
            if isinstance(content, Labels):
                self._size = 64 + weigh(content.ids) + weigh(content.y)
            elif self.kind == "import":
                self._size = len(content[1])
            else:
                self._size = 64 + (content.size() if isinstance(content, (Block, Mixed)) else 0)
        return self._size

    def body(self) -> bytes:
        """The payload of the entry."""
        if self._body is None:
            if self.kind == "create":
                self._body = self.model.encode() + b"\n" + msgspec.json.encode(self.content)
            elif self.kind == "import":
                recipe, data = self.content
                self._body = msgspec.msgpack.encode([msgspec.to_builtins(recipe), data])
            elif isinstance(self.content, (Block, Mixed)):
                self._body = encode_block(self.content)
            else:
                self._body = msgspec.msgpack.encode(self.content)
        return self._body

    def digest(self) -> int:
        """What a repeated request has in common with the first."""
        return digest(self.kind, self.body())


@dataclass
class Shadow:
    """The models as they will be after the changes of a group that are admitted already."""

    hub: Hub
    facts: dict[int, Facts] = field(default_factory=dict)
    created: dict[str, tuple[int, Recipe]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    asked: dict[int, set[Key]] = field(default_factory=dict)
    labelled: dict[int, set[Key]] = field(default_factory=dict)

    def find(self, name: str) -> tuple[int, Recipe, Served | None]:
        """The number, the recipe and, if it exists by now, the model of a name."""
        if name in self.created:
            return (*self.created[name], None)
        if name in self.gone:
            raise NotFoundError(f"There is no model {name!r:.100}.")
        served = self.hub.find(name)
        return served.number, served.recipe, served

    def facts_of(self, number: int, recipe: Recipe, served: Served | None) -> Facts:
        """What the rows of a model will be."""
        found = self.facts.get(number)
        if found is None:
            found = Served(0, "", recipe).facts if served is None else served.facts
        return found


def admit(work: Work, shadow: Shadow) -> tuple[int, bytes]:
    """Validate a change; the number of its model and the payload of its entry."""
    if work.kind == "create":
        return _admit_create(work, shadow), work.body()
    number, recipe, served = shadow.find(work.model)
    if work.kind in ("learn", "ask"):
        block: AnyBlock = work.content
        facts = shadow.facts_of(number, recipe, served)
        if work.kind == "learn":
            shadow.facts[number] = facts.follow(block, recipe)
        else:
            _admit_ids(block, number, served, shadow)
        if recipe.key is not None and served is not None and served.model is not None:
            _check_keys(block, served, shadow.hub.limits.keys)
    elif work.kind == "labels":
        given: Labels = work.content
        shadow.facts[number] = shadow.facts_of(number, recipe, served).follow_labels(given.y)
        shadow.labelled.setdefault(number, set()).update(given.ids)
    elif work.kind == "delete":
        shadow.gone.add(work.model)
        shadow.created.pop(work.model, None)
    elif work.kind == "rollback":
        seqs = [seq for seq, *_ in shadow.hub.journal.states(number)]
        if work.content not in seqs:
            raise NotFoundError(f"There is no version {work.content} of {work.model!r}; there are {seqs[:20]}.")
    elif work.kind == "version":
        kept = sum(label is not None for _, _, _, label, _ in shadow.hub.journal.states(number))
        if kept >= MOST_VERSIONS:
            raise ConflictError(f"The model has {kept} versions; there may be {MOST_VERSIONS}.")
    elif work.kind == "import":
        check_loaded(store.loads(work.content[1]))
    return number, work.body()


def _admit_create(work: Work, shadow: Shadow) -> int:
    hub = shadow.hub
    if NAME.fullmatch(work.model) is None:
        raise _checks.wrong("server", "name", "letters, digits, '_', '-' and '.', at most 64", work.model[:80])
    if work.model in shadow.created or (work.model in hub.models and work.model not in shadow.gone):
        raise ConflictError(f"There is a model {work.model!r} already.")
    hub.check_room()
    check_recipe(work.content)
    number = hub.next_number
    hub.next_number += 1
    shadow.created[work.model] = (number, work.content)
    return number


def _admit_ids(block: AnyBlock, number: int, served: Served | None, shadow: Shadow) -> None:
    """Validate rows that will wait for their labels."""
    if served is None or not served.rows:
        raise ConflictError("The model has not learned anything yet.")
    if served.recipe.key is not None or served.facts.task == "novelty":
        raise _checks.wrong("request", "ids", "left out for a detector and for a model per key", "ids")
    served.fits(block)
    ids = block.ids or []
    asked, labelled = shadow.asked.setdefault(number, set()), shadow.labelled.get(number, set())
    twice = next((one for one in ids if one in asked or (one in served.pending and one not in labelled)), None)
    if len(set(ids)) < len(ids) or not all(map(short, ids)) or twice is not None:
        raise _checks.wrong("request", "ids", "short, different, and not waiting for a label already", twice)
    if len(served.pending) + len(asked) + len(ids) > shadow.hub.limits.pending:
        raise ConflictError(
            f"{len(served.pending)} rows wait for their labels; the limit is {shadow.hub.limits.pending}."
        )
    asked.update(ids)


def _check_keys(block: AnyBlock, served: Served, most: int) -> None:
    if len(served.model) + block.count > most:
        new = sum(key not in served.model for key in set(block.keys or ()))
        if len(served.model) + new > most:
            raise ConflictError(f"The model {served.name!r} has {len(served.model)} keys; the limit is {most}.")


# ------------------------------------------------------------------------------------------------------------ applying


def apply_all(hub: Hub, entries: Sequence[Entry]) -> Iterator[tuple[list[int], list[Any]]]:
    """Apply entries in order; yields places and their answers. Entries that only learn are joined, model by model.

    Models do not depend on each other: entries of different models may be joined across each other.
    """
    waiting: dict[int, list[int]] = {}
    for place, entry in enumerate(entries):
        if entry.kind == "learn":
            waiting.setdefault(entry.model, []).append(place)
            continue
        if entry.model in waiting:
            yield _timed(hub, entry, _learn, waiting.pop(entry.model), entries)
        yield [place], [_timed(hub, entry, _apply, entry)]
    for places in waiting.values():
        yield _timed(hub, entries[places[0]], _learn, places, entries)


def _timed(hub: Hub, entry: Entry, apply: Callable[..., Result], *given: Any) -> Result:
    """Apply entries of one model; how long that takes is what a replay of them will take."""
    begun = time.thread_time()
    made = apply(hub, *given)
    if (served := hub.by_number.get(entry.model)) is not None:
        served.learning_seconds += time.thread_time() - begun
    return made


def _learn(hub: Hub, places: list[int], entries: Sequence[Entry]) -> tuple[list[int], list[Any]]:
    """Learn the blocks of some entries of one model."""
    served = hub.by_number[entries[places[0]].model]
    blocks = [_block(entries[place]) for place in places]
    times = [entries[place].time for place in places]
    before = served.rows
    try:
        made = served.learn(blocks, times)
    except (ValueError, TornError):
        # Validation has missed something, in this run and in every replay. An entry is learned whole or not at all.
        made_again = rebuild(hub, served, [entries[place] for place in places])
        return places, [made_again[entries[place].seq] for place in places]
    answers, rows = [], before
    for place, block, shown in zip(places, blocks, made, strict=True):
        rows += block.count
        answers.append(_learned(entries[place], block, shown, rows))
    served.seq = entries[places[-1]].seq
    return places, answers


def _block(entry: Entry) -> AnyBlock:
    """The block of an entry; DamagedError if it is none."""
    try:
        return decode_block(entry.payload)
    except ValueError as error:
        raise DamagedError(entry.seq, f"an entry of the journal has no rows: {error}") from error


def _learned(entry: Entry, block: AnyBlock, shown: list[Any], rows: int) -> dict[str, Any]:
    answer: dict[str, Any] = {"seq": entry.seq, "rows": block.count, "learned": rows}
    return {**answer, "predictions": shown} if block.shown else answer


def rebuild(hub: Hub, served: Served, entries: Sequence[Entry]) -> dict[int, Any]:
    """Make a model again from its newest state and the journal, entry by entry; the answers to the entries given.

    An entry that fails leaves the model as it was, and is answered with its error.
    """
    after = 0
    fresh = None
    for seq, upto, *_ in hub.journal.states(served.number):
        if seq <= served.seq:
            fresh, after = Served.load(served.number, hub.journal.state(served.number, seq)), upto
            break
    asked, answers = {entry.seq for entry in entries}, {}
    last = max(asked)
    quiet = Replayed(hub, fresh)
    for entry in hub.journal.entries(max(after, hub.journal.trimmed)):
        if entry.seq > last:
            break
        if entry.model == served.number:
            answer = quiet.apply(entry)
            if entry.seq in asked:
                answers[entry.seq] = answer
    assert quiet.served is not None
    served.become(quiet.served)
    served.events, served.seq = quiet.served.events, quiet.served.seq
    return answers


class Replayed:
    """A model that is made again beside the one that is served."""

    def __init__(self, hub: Hub, served: Served | None) -> None:
        self.journal, self.served = hub.journal, served
        self.models: dict[str, Served] = {}
        self.by_number = {} if served is None else {served.number: served}
        self.next_number = 0

    def store_version(self, served: Served, label: str) -> None:
        """The version is stored already."""

    def apply(self, entry: Entry) -> Any:
        """Apply one entry, whole or not at all."""
        hub: Any = self
        if entry.kind != "learn":
            answer = _apply(hub, entry, whole=True)
        else:
            served, block = self.by_number[entry.model], _block(entry)
            try:
                (shown,) = served.learn([block], [entry.time], whole=True)
                answer = _learned(entry, block, shown, served.rows)
            except ValueError as error:
                answer = error
            served.seq = entry.seq
        self.served = self.by_number.get(entry.model, self.served)
        return answer


def _apply(hub: Hub, entry: Entry, whole: bool = False) -> Any:
    """Apply an entry that does more than learn; ``whole`` learns late labels in one call."""
    try:
        answer: Any = {"seq": entry.seq, **APPLY[entry.kind](hub, entry, whole)}
    except TornError:
        return rebuild(hub, hub.by_number[entry.model], [entry])[entry.seq]
    except (ValueError, ConflictError) as error:
        answer = error
    served = hub.by_number.get(entry.model)
    if served is not None:
        served.seq = entry.seq
    return answer


def _create(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    recipe = msgspec.json.decode(entry.payload.partition(b"\n")[2], type=Recipe)
    served = Served(entry.model, created_name(entry), recipe, None, entry.time)
    served.tell(entry.time, entry.seq, "created")
    hub.models[served.name] = hub.by_number[entry.model] = served
    hub.next_number = max(hub.next_number, entry.model + 1)
    return {"name": served.name}


def _delete(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    served = hub.by_number.pop(entry.model)
    del hub.models[served.name]
    return {"name": served.name}


def _import(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    plain, data = msgspec.msgpack.decode(entry.payload)
    served = hub.by_number[entry.model]
    model = check_loaded(store.loads(data))
    fresh = Served(entry.model, served.name, msgspec.convert(plain, Recipe), model, served.created)
    fresh.rows = int(getattr(last_step(model), "n_seen_", 0))
    served.become(fresh)
    served.tell(entry.time, entry.seq, f"imported a model that has learned {fresh.rows} rows")
    return {"learned": served.rows}


def _version(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    served = hub.by_number[entry.model]
    label = msgspec.msgpack.decode(entry.payload)
    served.seq = entry.seq
    served.tell(entry.time, entry.seq, f"version {entry.seq}: {label}")
    hub.store_version(served, label)
    return {"version": entry.seq, "label": label}


def _rollback(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    served = hub.by_number[entry.model]
    seq = msgspec.msgpack.decode(entry.payload)
    served.become(Served.load(entry.model, hub.journal.state(entry.model, seq)))
    served.tell(entry.time, entry.seq, f"rolled back to version {seq}, {served.rows} rows")
    hub.journal.pin(entry.model, seq)
    return {"version": seq, "learned": served.rows}


def _ask(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    served, block = hub.by_number[entry.model], _block(entry)
    return {"predictions": served.ask([block])[0], "rows": block.count, "learned": served.rows}


def _labels(hub: Hub, entry: Entry, whole: bool) -> dict[str, Any]:
    served, given = hub.by_number[entry.model], msgspec.msgpack.decode(entry.payload, type=Labels)
    answer = served.learn_labels(given.ids, given.y, entry.time, whole)
    return {**answer, "learned": served.rows}


APPLY: dict[str, Callable[[Hub, Entry, bool], dict[str, Any]]] = {
    "create": _create, "delete": _delete, "import": _import, "version": _version, "rollback": _rollback, "ask": _ask,
    "labels": _labels,
}  # fmt: skip
