"""Recovery: the newest good state of each model, then the journal after it, to the same bytes as without a stop."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from gossamer.serve import changes
from gossamer.serve.journal import DamagedError, Entry
from gossamer.serve.served import Served

if TYPE_CHECKING:
    from gossamer.serve.hub import Hub

#: Entries, and bytes of them, that are read and applied together.
BATCH, BATCH_BYTES = 20_000, 64 * 2**20


def recover(hub: Hub) -> None:
    """Load the states and replay the entries after them. At a damaged entry it stops, and the hub is read-only."""
    collects = gc.isenabled()
    gc.disable()  # many small objects come and go, none of them in a cycle
    try:
        _recover(hub)
    finally:
        if collects:
            gc.enable()


def _recover(hub: Hub) -> None:
    journal = hub.journal
    alive = journal.models()
    start: dict[int, int] = {}
    after = journal.seq
    for number, name in alive.items():
        served = None
        for seq, upto, *_ in journal.states(number):
            try:
                served, start[number] = Served.load(number, journal.state(number, seq)), upto
                break
            except (DamagedError, ValueError) as error:  # an older state and more of the journal give the same model
                hub.reason = f"a stored state of {name!r} is damaged: {error}"
        if served is not None:
            hub.models[name] = hub.by_number[number] = served
        after = min(after, start.get(number, journal.trimmed))
    hub.next_number = max(alive, default=0) + 1
    batch: list[Entry] = []
    size = 0
    try:
        for entry in journal.entries(max(after, journal.trimmed)):
            hub.next_number = max(hub.next_number, entry.model + 1)
            if entry.model not in alive or entry.seq <= start.get(entry.model, 0):
                continue  # a model that was deleted since, or an entry that its stored state holds
            batch.append(entry)
            size += len(entry.payload)
            if len(batch) >= BATCH or size >= BATCH_BYTES:
                last, batch, size = batch, [], 0
                _replay(hub, last)
        last, batch = batch, []
        _replay(hub, last)
    except DamagedError as error:
        _replay(hub, batch)
        hub.damaged(error)
    lost = [name for number, name in alive.items() if number not in hub.by_number]
    if lost:
        hub.damaged(DamagedError(journal.trimmed, f"no good state of the models {lost[:5]}"))


def _replay(hub: Hub, batch: list[Entry]) -> None:
    """Apply entries as they were applied before; those of a model without a beginning are passed over."""
    there = {entry.model for entry in batch if entry.kind == "create"} | set(hub.by_number)
    todo = [entry for entry in batch if entry.model in there]
    done: set[int] = set()
    try:
        for places, answers in changes.apply_all(hub, todo):
            done.update(places)
            for place, answer in zip(places, answers, strict=True):
                hub.note(todo[place], answer)
    except DamagedError as error:  # what came before that entry is applied; other models may be ahead of this one
        _replay(hub, [entry for i, entry in enumerate(todo) if i not in done and entry.seq < error.seq])
        raise
    hub.replayed += len(batch)
