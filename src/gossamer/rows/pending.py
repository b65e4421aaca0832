"""Rows that were shown and wait for their labels: joined by id, bounded in number and age."""

from __future__ import annotations

import math
import time as clocks
from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._locks import Snapshot, exclusive, shared
from gossamer._stored import Stored
from gossamer.clock import length_in_seconds
from gossamer.rows.held import OLD, HeldInMemory, HeldInSQLite

#: What may become of a row: a label came; it was too old; there were too many.
FATES = ("joined", "expired", "dropped")
COUNTS = ("shown", "shown_again", *FATES, "unknown", "repeated")


class Pending(Stored, Snapshot):
    """Rows by id, each with the prediction that was made for it, until their labels come.

    Parameters
    ----------
    limit : the most rows that wait; the oldest goes first.
    ttl : how long a row waits: "7 days", a number of seconds; None for ever. The clock is the ``time`` of calls,
        or that of the computer.
    spill : a file of SQLite for the rows, instead of memory. What a killed process had not saved with its model is
        undone there when the model is loaded.

    Attributes
    ----------
    counts : how many rows were shown, shown again, joined, expired and dropped, and how many labels had an id that is
        unknown or had its label already.

    >>> pending = Pending(limit=2)
    >>> pending.add([7, 8, 9], np.eye(3), ["a", "b", "c"], time=0.0)
    >>> pending.join([9, 7, 9], [1.0, 0.0, 1.0], lambda rows, y: print(rows.tolist(), y.tolist()), time=1.0)
    [[0.0, 0.0, 1.0]] [1.0]
    ['c', None, None]
    >>> pending.counts["dropped"], pending.counts["repeated"], len(pending)
    (1, 1, 1)
    """

    def __init__(self, limit: int = 1_000_000, ttl: Any = None, spill: str | None = None) -> None:
        self.limit = _checks.whole(self, "limit", limit, 1)
        self.ttl = None if ttl is None else length_in_seconds(self, "ttl", ttl)
        if spill is not None and not isinstance(spill, str):
            raise _checks.wrong(self, "spill", "the path of a file, or None", spill)
        self.spill = spill
        self.counts = dict.fromkeys(COUNTS, 0)
        self.event = 0  # calls so far: a file of SQLite is taken back to it
        self.now = -math.inf
        self._held: Any = HeldInMemory() if spill is None else HeldInSQLite(spill)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor."""
        return {"limit": self.limit, "ttl": self.ttl, "spill": self.spill}

    @shared
    def __len__(self) -> int:
        return len(self._held)

    @exclusive
    def add(self, ids: Any, X: Any, predictions: list[Any], time: Any = None, keys: Any = None) -> None:
        """Remember rows that are shown now, their predictions, and the keys of their models if there are several."""
        names = read_ids(self, ids, len(X))
        extras = [None] * len(names) if keys is None else list(keys)
        now = self._tick(time)
        self._held.check(X)
        self.event += 1
        again = self._held.put(names, now, X, predictions, extras, self.event)
        self.counts["shown"] += len(names)
        self.counts["shown_again"] += again
        self.counts["expired"] += self._expire(now)
        self.counts["dropped"] += self._held.drop(self.limit, FATES.index("dropped"), self.event)
        self._held.forget(self.limit)

    @exclusive
    def join(self, ids: Any, y: Any, learn: Callable[..., None], time: Any = None) -> list[Any]:
        """Learn the labels that have come, in their order; returns the prediction made for each, None without a row.

        ``learn(rows, y)`` is called once, with ``keys`` where there are some. If it fails, nothing has changed.
        """
        labels = np.asarray(y)
        names = read_ids(self, ids, len(labels))
        now = self._tick(time)
        expired = self._expire(now, dry=True)
        found = self._held.find(names, -math.inf if self.ttl is None else now - self.ttl)
        picked: list[int] = []
        taken, fates = set[Any](), dict.fromkeys(("unknown", "repeated"), 0)
        for i, name in enumerate(names):
            here = found[i]
            if here is not None and here is not OLD and name not in taken:
                picked.append(i)
                taken.add(name)
            elif name in taken or self._held.fate(name, self.limit) == FATES.index("joined"):
                fates["repeated"] += 1
            elif here is None and self._held.fate(name, self.limit) is None:
                fates["unknown"] += 1
        rows = [found[i] for i in picked]
        predictions, keys = self._held.tell(rows)
        if rows:
            more = {} if keys[0] is None else {"keys": keys}
            learn(self._held.gather(rows), labels[picked], **more)
        self.event += 1
        if expired:
            self._expire(now)
        self._held.remove([names[i] for i in picked], FATES.index("joined"), self.event)
        self._held.forget(self.limit)
        for name, count in {**fates, "joined": len(rows), "expired": expired}.items():
            self.counts[name] += count
        made: list[Any] = [None] * len(names)
        for i, prediction in zip(picked, predictions, strict=True):
            made[i] = prediction
        return made

    @property
    def keyed(self) -> bool | None:
        """Whether the rows in memory have the keys of their models; None if there are none."""
        return self._held.keyed if isinstance(self._held, HeldInMemory) and len(self._held) else None

    @shared
    def knows(self, name: Any) -> bool:
        """Whether a row of this id waits, or has waited lately."""
        return self._held.find([name], -math.inf)[0] is not None or self._held.fate(name, self.limit) is not None

    def _tick(self, time: Any) -> float:
        """The time of a call, which never goes back."""
        if time is None:
            time = clocks.time() if self.ttl is not None else 0.0
        now = _checks.number(self, "time", time, -math.inf, math.inf)
        self.now = max(self.now, now)
        return self.now

    def _expire(self, now: float, dry: bool = False) -> int:
        if self.ttl is None:
            return 0
        return int(self._held.expire(now - self.ttl, FATES.index("expired"), self.event, dry))

    # --------------------------------------------------------------------------------------------------- the store

    def _learned(self) -> dict[str, Any]:
        now = self.now if math.isfinite(self.now) else None
        return {"counts": dict(self.counts), "event": self.event, "now": now, "held": self._held.state(self.event)}

    def _relearn(self, learned: dict[str, Any]) -> None:
        try:
            counts = {name: _checks.whole(self, name, learned["counts"][name], 0) for name in COUNTS}
            event = _checks.whole(self, "event", learned["event"], 0)
            now = -math.inf if learned["now"] is None else float(learned["now"])
            self._held.restore(learned["held"], event)
            good = not math.isnan(now) and (self.spill is not None or len(self._held) <= self.limit)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError):
            good = False
        if not good:
            raise _checks.wrong(self, "learned", "rows that wait for labels", sorted(learned))
        self.counts, self.event, self.now = counts, event, now


def read_ids(owner: object, ids: Any, count: int) -> list[Any]:
    """Ids as ints and strings, one for each row."""
    names = np.asarray(ids).tolist() if not isinstance(ids, list) else ids
    if not isinstance(names, list) or len(names) != count:
        raise _checks.wrong(owner, "ids", f"one for each row ({count})", np.shape(ids))
    names = [name.item() if isinstance(name, np.generic) else name for name in names]
    if set(map(type, names)) == {str}:
        return names
    for name in names:
        if type(name) not in (int, str) or (type(name) is int and not -(2**63) <= name < 2**63):
            raise _checks.wrong(owner, "ids", "ints or texts", name)
    return names
