"""Recovery: the newest good state of each model, then the journal after it, to the same bytes as without a stop; and
when a model is stored, so that this does not take long."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gossamer.serve import changes
from gossamer.serve.journal import DamagedError, Entry
from gossamer.serve.limits import Limits
from gossamer.serve.served import Served

if TYPE_CHECKING:
    from gossamer.serve.hub import Hub

#: Entries, and bytes of them, that are read and applied together.
BATCH, BATCH_BYTES = 20_000, 64 * 2**20
#: A model is stored to shorten a replay only after it has learned for so many times the time that storing it takes.
LEARNING_PER_STORING = 20.0


def choose_due(changed: Sequence[tuple[Served, float]], limits: Limits, now: float) -> list[int]:
    """The numbers of the models to store, of those that have changed since some time.

    Those that have learned many rows, or have changed long ago. And if a replay of all would take longer than it may,
    those that would take most of it, until half of that is left; storing costs a small share of learning.
    """
    due = []
    for served, since in changed:
        many = abs(served.rows - served.stored_rows) >= limits.snapshot_rows
        due += [served.number] if many or now - since >= limits.snapshot_seconds else []
    rest = sum(served.learning_seconds for served, _ in changed)
    if rest < limits.replay_seconds:
        return due
    for served in sorted((served for served, _ in changed), key=lambda served: -served.learning_seconds):
        if rest <= limits.replay_seconds / 2:
            break
        if served.learning_seconds >= LEARNING_PER_STORING * served.storing_seconds:
            rest -= served.learning_seconds
            due += [] if served.number in due else [served.number]
    return due


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
