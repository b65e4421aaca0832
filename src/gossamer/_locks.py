"""Taking turns: how a Python object is used by several threads.

One thread at a time changes an object (a method under ``@changes``); many may look at it together (``@looks``), but not
while it is changed. Python code runs meanwhile: the kernel of a user, or the ``__del__`` of something that is
collected. If that changes the same object, or waits for a thread that waits for this one, the call raises RuntimeError.
So nothing is changed halfway through a change, and nothing waits for ever.
"""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Given = ParamSpec("Given")
Result = TypeVar("Result")
Method = Callable[Concatenate[Owner, Given], Result]

#: The turn of each object that has been used: not one of its attributes, which are copied, compared and stored.
_turns: WeakKeyDictionary[Any, Turn] = WeakKeyDictionary()
#: Which turn each thread is about to wait for.
_waiting: dict[int, Turn] = {}
#: The thread that waits for a worker to end, for each worker.
_callers: dict[int, int] = {}


class Turn:
    """Who uses an object: one thread that changes it, or some that look at it."""

    __slots__ = ("changer", "empty", "lock", "lookers", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.lock = threading.RLock()  # its own context manager loses no lock to a Ctrl-C, as one written in Python may
        self.changer = 0
        self.lookers: dict[int, int] = {}
        self.empty: threading.Event | None = None  # for a changer that waits until nobody looks any more

    def wait_until_empty(self, me: int) -> None:
        """Those who look leave; nobody else comes in, since this thread has the lock."""
        before, event = self.empty, threading.Event()  # before: this thread waits already, and this is a callback
        try:
            self.empty = event
            while self.lookers:
                self.refuse_ring(me)
                event.wait(0.05)  # a callback may hold up the one who would tell
                event.clear()
        finally:
            self.empty = before
            if before is not None:
                before.set()

    def is_within(self, me: int) -> bool:
        """Whether this thread, or the caller whose worker it is, uses the object already."""
        caller = _callers.get(me, me)
        return self.changer in (me, caller) or me in self.lookers or caller in self.lookers

    def refuse_ring(self, me: int) -> None:
        """Raise if one of those whom this thread would wait for waits for it. Whoever closes a ring sees it."""
        found, todo = {0}, [self]
        while todo:
            turn = todo.pop()
            users = {turn.changer, *list(turn.lookers)}
            users |= {worker for worker, caller in list(_callers.items()) if caller in users}
            for thread in users - found:
                if thread in (me, _callers.get(me)):
                    why = f"{self.name} is used by a thread that waits for this one, and would wait for ever."
                    raise RuntimeError(f"{why} A callback (a __del__, ...) uses one model within a call to another.")
                found.add(thread)
                if thread in _waiting:
                    todo.append(_waiting[thread])

    def within(self) -> RuntimeError:
        """The error for a change within a call to the same object."""
        what = f"{self.name} must not be changed within a call to it."
        return RuntimeError(f"{what} A callback tried to: a kernel, a schedule, a __del__, ...")


def turn_of(owner: Any) -> Turn:
    """The turn of an object, made when it is first asked for."""
    turn = _turns.get(owner)
    return _turns.setdefault(owner, Turn(type(owner).__name__)) if turn is None else turn


def publish(owner: Any, attributes: dict[str, Any], instead_of: tuple[str, ...] = ()) -> None:
    """Set several attributes in one step: who reads ``owner.__dict__`` once sees all of them or none. Those of
    ``instead_of`` that are not among them are gone."""
    kept = {name: value for name, value in owner.__dict__.items() if name not in instead_of}
    owner.__dict__ = {**kept, **attributes}


def changes(method: Method[Owner, Given, Result]) -> Method[Owner, Given, Result]:
    """A method that one thread runs while no other changes the object or looks at it."""

    @functools.wraps(method)
    def alone(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        turn, me = turn_of(self), get_ident()
        if turn.is_within(me):
            raise turn.within()
        before = _waiting.get(me)  # in a callback, the thread may be about to wait already
        try:
            _waiting[me] = turn  # told before it is looked for, so that of two who close a ring one sees it
            if turn.changer:
                turn.refuse_ring(me)
            with turn.lock:
                if turn.lookers:
                    turn.wait_until_empty(me)
                try:
                    turn.changer = me
                    _stop_waiting(me, before)
                    return method(self, *args, **kwargs)
                finally:
                    turn.changer = 0
        finally:
            _stop_waiting(me, before)

    return alone


def _stop_waiting(me: int, before: Turn | None) -> None:
    if before is None:
        _waiting.pop(me, None)
    else:
        _waiting[me] = before


def looks(method: Method[Owner, Given, Result]) -> Method[Owner, Given, Result]:
    """A method that several threads may run at once, but not while one changes the object."""

    @functools.wraps(method)
    def together(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        return look(self, lambda: method(self, *args, **kwargs))

    return together


def look(owner: Any, work: Callable[[], Result]) -> Result:
    """Do something during which nobody changes the object."""
    turn, me = turn_of(owner), get_ident()
    if turn.is_within(me):  # within a call: as things are now
        return work()
    before = _waiting.get(me)
    try:
        _waiting[me] = turn
        if turn.changer:
            turn.refuse_ring(me)
        with turn.lock:
            turn.lookers[me] = 1
        _stop_waiting(me, before)
        return work()
    finally:
        _stop_waiting(me, before)
        turn.lookers.pop(me, None)
        empty = turn.empty
        if empty is not None and not turn.lookers:
            empty.set()


def as_worker(caller: int, work: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Work for a thread of a pool, whose ``caller`` waits for it: its callbacks are within the caller's calls."""

    def run(item: Any) -> Result:
        me = get_ident()
        _callers[me] = caller
        try:
            return work(item)
        finally:
            _callers.pop(me, None)

    return run


class Copied:
    """Copies and pickles of an object are of one moment."""

    def __getstate__(self) -> Any:
        before = super().__getstate__
        return look(self, lambda: copy.deepcopy(before()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        look(self, lambda: made.__dict__.update(copy.deepcopy(self.__dict__, memo)))
        return made

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made
