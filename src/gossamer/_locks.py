"""A readers-writer lock for every Python object that several threads may use.

One thread at a time writes an object (a method under ``@exclusive``); many may read it together (``@shared``), but not
while it is written. Callbacks run meanwhile: the kernel of a user, or the ``__del__`` of an object that is collected.
If a callback writes the same object, or waits for a thread that waits for this one, the call raises RuntimeError. So no
write happens in the middle of another call, and no deadlock is possible.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import threading
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable
from threading import get_ident
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

Owner = TypeVar("Owner")
Given = ParamSpec("Given")
Result = TypeVar("Result")
Method = Callable[Concatenate[Owner, Given], Result]

#: The lock of each object that has been used: not one of its attributes, which are copied, compared and stored.
_locks: WeakKeyDictionary[Any, SharedLock] = WeakKeyDictionary()
#: The lock that each thread is about to wait for.
_waiting: dict[int, SharedLock] = {}
#: The thread that waits for a worker to end, for each worker.
_callers: dict[int, int] = {}


class SharedLock:
    """The lock of one object: one thread that writes it, or several that read it."""

    __slots__ = ("mutex", "name", "no_readers", "readers", "writer")

    def __init__(self, name: str) -> None:
        self.name = name
        self.mutex = threading.RLock()  # its own context manager survives a Ctrl-C; one written in Python may not
        self.writer = 0
        self.readers: dict[int, int] = {}
        self.no_readers: threading.Lock | None = None  # released for a writer that waits, when the last reader leaves

    def wait_for_readers(self, me: int) -> None:
        """Wait until the readers leave; no other thread comes in, since this one has the mutex.

        A bare lock and no `threading.Event`, which has a lock inside: a callback in the middle of its wait could not
        set it, and would wait for ever.
        """
        before, gate = self.no_readers, threading.Lock()  # before: this thread waits already, and this is a callback
        gate.acquire()
        try:
            self.no_readers = gate
            while self.readers:
                self.refuse_deadlock(me)
                gate.acquire(timeout=0.05)  # a callback may delay the reader that would release it
        finally:
            self.no_readers = before
            _release(before)

    def is_within(self, me: int) -> bool:
        """Whether this thread, or the caller that waits for it as a worker, uses the object already."""
        caller = _callers.get(me, me)
        return self.writer in (me, caller) or me in self.readers or caller in self.readers

    def refuse_deadlock(self, me: int) -> None:
        """Raise if a thread that this one would wait for waits for it. The thread that closes the cycle sees it."""
        found, todo = {0}, [self]
        while todo:
            lock = todo.pop()
            users = {lock.writer, *list(lock.readers)}
            users |= {worker for worker, caller in list(_callers.items()) if caller in users}
            for thread in users - found:
                if thread in (me, _callers.get(me)):
                    why = f"{self.name} is used by a thread that waits for this one, and would wait for ever."
                    raise RuntimeError(f"{why} A callback (a __del__, ...) uses one model within a call to another.")
                found.add(thread)
                if thread in _waiting:
                    todo.append(_waiting[thread])

    def within(self) -> RuntimeError:
        """The error for a write within a call to the same object."""
        what = f"{self.name} must not be changed within a call to it."
        return RuntimeError(f"{what} A callback tried to: a kernel, a schedule, a __del__, ...")


def lock_of(owner: Any) -> SharedLock:
    """The lock of an object, made at its first use."""
    lock = _locks.get(owner)
    return _locks.setdefault(owner, SharedLock(type(owner).__name__)) if lock is None else lock


def publish(owner: Any, attributes: dict[str, Any], instead_of: tuple[str, ...] = ()) -> None:
    """Set several attributes in one step: who reads ``owner.__dict__`` once sees all of them or none. Those of
    ``instead_of`` that are not among them are gone."""
    kept = {name: value for name, value in owner.__dict__.items() if name not in instead_of}
    owner.__dict__ = {**kept, **attributes}


def exclusive(method: Method[Owner, Given, Result]) -> Method[Owner, Given, Result]:
    """Let one thread run the method while no other writes or reads the object."""

    @functools.wraps(method)
    def alone(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        lock, me = lock_of(self), get_ident()
        if lock.is_within(me):
            raise lock.within()
        before = _waiting.get(me)  # in a callback, the thread may be about to wait already
        try:
            _waiting[me] = lock  # set before the search, so that of two threads that close a cycle one sees it
            if lock.writer:
                lock.refuse_deadlock(me)
            with lock.mutex:
                if lock.readers:
                    lock.wait_for_readers(me)
                try:
                    lock.writer = me
                    _stop_waiting(me, before)
                    return method(self, *args, **kwargs)
                finally:
                    lock.writer = 0
        finally:
            _stop_waiting(me, before)

    return alone


def _stop_waiting(me: int, before: SharedLock | None) -> None:
    if before is None:
        _waiting.pop(me, None)
    else:
        _waiting[me] = before


def shared(method: Method[Owner, Given, Result]) -> Method[Owner, Given, Result]:
    """Let several threads run the method at once, but not while one writes the object."""

    @functools.wraps(method)
    def together(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Result:
        return run_shared(self, lambda: method(self, *args, **kwargs))

    return together


def run_shared(owner: Any, work: Callable[[], Result]) -> Result:
    """Run ``work`` while no thread writes the object."""
    lock, me = lock_of(owner), get_ident()
    if lock.is_within(me):  # within a call: read the state as it is now
        return work()
    before = _waiting.get(me)
    try:
        _waiting[me] = lock
        if lock.writer:
            lock.refuse_deadlock(me)
        with lock.mutex:
            lock.readers[me] = 1
        _stop_waiting(me, before)
        return work()
    finally:
        _stop_waiting(me, before)
        lock.readers.pop(me, None)
        no_readers = lock.no_readers
        if not lock.readers:
            _release(no_readers)


def _release(gate: threading.Lock | None) -> None:
    """Let a thread go on that waits for the gate, if one does."""
    with contextlib.suppress(RuntimeError):  # it is open already
        if gate is not None:
            gate.release()


def run_snapshot(owner: Any, work: Callable[[], Result]) -> Result:
    """Run ``work``, which reads all of an object, while no thread writes it. If calls take the lock of a part of the
    object before that of the object itself (``_locked_first``), so does this: the order is the same everywhere."""
    first = getattr(owner, "_locked_first", None)
    return run_shared(owner, work) if first is None else run_shared(first, lambda: run_shared(owner, work))


class CallLock:
    """A lock that a thread may take again while it holds it, and so may the workers that it waits for (`as_worker`): a
    callback in a worker, such as a ``__del__``, is within the call of the thread that holds the lock."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._holder, self._depth = 0, 0
        self._within: dict[int, int] = {}  # workers of the holder, and how often each has passed

    def __enter__(self) -> None:
        me = get_ident()
        caller = _callers.get(me)
        if caller is not None and caller == self._holder:
            self._within[me] = self._within.get(me, 0) + 1
            return
        self._mutex.acquire()
        self._holder, self._depth = me, self._depth + 1

    def __exit__(self, *_: object) -> None:
        me = get_ident()
        if self._within.get(me):
            self._within[me] -= 1
            return
        self._depth -= 1
        self._holder = me if self._depth else 0
        self._mutex.release()


def as_worker(caller: int, work: Callable[[Any], Result]) -> Callable[[Any], Result]:
    """Wrap work for a thread of a pool that ``caller`` waits for: its callbacks are within the caller's calls."""

    def run(item: Any) -> Result:
        me = get_ident()
        _callers[me] = caller
        try:
            return work(item)
        finally:
            _callers.pop(me, None)

    return run


def spread(work: Callable[[int], Result], count: int, threads: int) -> list[Result]:
    """The results of ``work`` for 0, 1, ..., count - 1, shared among this thread and others; the error of one of them
    ends all.

    Bare threads, each with a lock of its own: a pool of `concurrent.futures`, and `threading.Thread` too, hold a lock
    of the whole process while a thread starts, and a callback there that started another would wait for ever.

    >>> spread(lambda place: place * place, 4, threads=2)
    [0, 1, 4, 9]
    """
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    places = iter(range(count))  # of which each thread takes the next

    def run(_: Any) -> None:
        for place in places:
            if errors:
                return
            try:
                results[place] = work(place)
            except BaseException as error:
                errors.append(error)

    worker, started = as_worker(get_ident(), run), []

    def help_out(ended: Any) -> None:
        try:
            worker(None)
        finally:
            ended.release()

    try:
        for _ in range(min(threads, count) - 1):
            ended = allocate_lock()
            ended.acquire()
            start_new_thread(help_out, (ended,))
            started.append(ended)
        run(None)
    except BaseException as error:  # no thread could be started, or Ctrl-C
        errors.append(error)
        raise
    finally:
        for ended in started:
            ended.acquire()
    if errors:
        raise errors[0]
    return [results[place] for place in range(count)]


class Snapshot:
    """A class whose copies and pickles are snapshots: everything in them is of one moment."""

    def __getstate__(self) -> Any:
        before = super().__getstate__
        return run_snapshot(self, lambda: copy.deepcopy(before()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        run_snapshot(self, lambda: made.__dict__.update(copy.deepcopy(self.__dict__, memo)))
        return made

    def __copy__(self) -> Any:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made
