"""All models of a data folder, and the one thread that writes: validate, journal, sync, learn, answer."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from gossamer import _checks
from gossamer.serve import changes
from gossamer.serve.changes import Shadow, Work
from gossamer.serve.journal import DamagedError, Entry, Journal, Stored
from gossamer.serve.limits import Limits
from gossamer.serve.problems import BusyError, ConflictError, NotFoundError, Problem, ReadOnlyError
from gossamer.serve.recovery import choose_due, recover
from gossamer.serve.rows import digest
from gossamer.serve.served import Served

#: The most entries and rows of one transaction.
GROUP_ENTRIES, GROUP_ROWS = 2000, 20_000
#: Seconds after which a full disk is tried again, and answers that nothing else carries are written.
AGAIN, IDLE = 2.0, 1.0

Result = dict[str, Any] | Exception
Deliver = Callable[[list[tuple[Work, Result]]], None]


class Hub:
    """The models of a folder. `submit` queues a change; the writer thread journals, learns and answers it.

    An answer means that the change is on the disk and in the model. ``state`` is "starting", "ready", "read-only"
    (``reason`` says why: a full disk, a failed write, a damaged entry) or "stopped".
    """

    def __init__(self, folder: str, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.journal = Journal(folder)
        self.models: dict[str, Served] = {}
        self.by_number: dict[int, Served] = {}
        self.next_number = 1
        self.state, self.reason = "starting", "the journal is replayed"
        self.replayed = 0
        self.recovery_seconds = 0.0
        self.counts = {"groups": 0, "entries": 0, "rows": 0, "refused": 0, "snapshots": 0, "trimmed": 0, "failed": 0}
        self.deliver: Deliver = _deliver_directly
        self._rows_in = self._rows_out = 0  # each is changed by one side only
        self._bytes_in = self._bytes_out = 0
        self._entrance = threading.Lock()
        self._queue: deque[Work] = deque()
        self._wake = threading.Event()
        self._stop = False
        self._full_until = 0.0
        self._broken = False
        self._answers: list[tuple[bytes, int, str]] = []
        self._recent: dict[tuple[int, str], tuple[int, Result]] = {}
        self._dirty: dict[int, float] = {}  # when a model was first changed since it was stored
        self._thread = threading.Thread(target=self._run, name="gossamer-writer", daemon=True)

    # --------------------------------------------------------------------------------------------- from other threads

    def start(self, wait: bool = True) -> Hub:
        """Start the writer, which replays the journal first."""
        self._thread.start()
        while wait and self.state == "starting":
            time.sleep(0.001)
        return self

    def submit(self, works: Sequence[Work]) -> None:
        """Queue changes, which stay together; BusyError if too many wait, ReadOnlyError if nothing can be learned."""
        if self.state != "ready" and not (self.state == "read-only" and self._may_try()):
            raise ReadOnlyError(f"The server is {self.state}: {self.reason}.")
        rows, size = sum(work.rows for work in works), sum(work.size() for work in works)
        with self._entrance:
            if self.queued_rows + rows > self.limits.queue or len(self._queue) >= self.limits.queue:
                self.counts["refused"] += 1
                raise BusyError(f"{self.queued_rows} rows wait to be learned; the limit is {self.limits.queue}.")
            if self.queued_bytes + size > self.limits.queue_bytes:
                self.counts["refused"] += 1
                raise BusyError(
                    f"{self.queued_bytes} bytes wait to be learned; the limit is {self.limits.queue_bytes}."
                )
            self._rows_in += rows
            self._bytes_in += size
            self._queue.extend(works)
        self._wake.set()

    @property
    def queued_rows(self) -> int:
        """The rows that wait to be learned."""
        return self._rows_in - self._rows_out

    @property
    def queued_bytes(self) -> int:
        """The bytes of the changes that wait."""
        return self._bytes_in - self._bytes_out

    def call(self, *works: Work) -> dict[str, Any]:
        """Submit changes and wait for the answer to the last: for tests and programs without an event loop."""
        for work in works:
            work.done = threading.Event()
        self.submit(works)
        for work in works:
            work.done.wait()
        for work in works:
            if isinstance(work.result, Exception):
                raise work.result
        assert isinstance(works[-1].result, dict)
        return works[-1].result

    def find(self, name: str) -> Served:
        """The model of a name."""
        found = self.models.get(name)
        if found is None and self.state == "starting":
            raise ReadOnlyError(f"The server is starting: {self.reason}.")
        if found is None:
            raise NotFoundError(f"There is no model {name!r:.100}.")
        return found

    def stop(self) -> None:
        """Learn what is queued, store all models, and close the journal."""
        self._stop = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def _may_try(self) -> bool:
        return not self._broken and time.monotonic() >= self._full_until

    # ------------------------------------------------------------------------------------------------------ the writer

    def _run(self) -> None:
        try:
            begun = time.perf_counter()
            recover(self)
            self.recovery_seconds = time.perf_counter() - begun
            if self.state == "starting":
                self.state, self.reason = "ready", ""
        except Exception as error:
            self.state, self.reason, self._broken = "read-only", f"recovery failed: {error}", True
        while not self._stop or self._queue:
            self._wake.wait(IDLE)
            self._wake.clear()
            while self._queue:
                self._serve_group()
                self._keep_ready()
            self._keep_ready()
        if self.state == "ready":
            self._guard(lambda: self.snapshot(list(self._dirty)))
        self.state, self.reason = "stopped", "the server has stopped"
        with contextlib.suppress(sqlite3.Error):
            self.journal.close()

    def _serve_group(self) -> None:
        """Take what waits, and answer it: one transaction, then the models learn in its order."""
        group: list[Work] = []
        rows = 0
        while self._queue and len(group) < GROUP_ENTRIES and rows < GROUP_ROWS:
            alone = self._queue[0].kind in changes.ALONE
            if alone and group:
                break
            group.append(self._queue.popleft())
            rows += group[-1].rows
            if alone:
                break
        results: list[tuple[Work, Result]] = []
        try:
            todo, followers = self._admit(group, results)
            if todo:
                self._commit(todo)
                self._apply(todo, results)
                found = {id(work): result for work, result in results}
                results += [(work, _repeated(found[id(first)])) for work, first in followers]
        except Exception as error:
            failed = error if isinstance(error, Problem) else self._fail(error)
            answered = {id(work) for work, _ in results}
            results += [(work, failed) for work in group if id(work) not in answered]
        self._rows_out += rows
        self._bytes_out += sum(work.size() for work in group)
        self.deliver(results)

    def _admit(
        self, group: Sequence[Work], results: list[tuple[Work, Result]]
    ) -> tuple[list[tuple[Work, Entry]], list[tuple[Work, Work]]]:
        """Validate each change against the models and the changes before it; an invalid one is answered at once.

        Returns the changes with their entries, and those that repeat another of the group with that one.
        """
        shadow = Shadow(self)
        todo: list[tuple[Work, Entry]] = []
        asked: dict[tuple[str, str], Work] = {}
        followers = []
        now = max(time.time(), self.journal.last_time)  # a clock that is set back does not turn the journal around
        for work in group:
            try:
                first = None if work.request is None else asked.get((work.model, work.request))
                if first is not None:  # tried again before the first was answered
                    same = first.kind == work.kind and first.digest() == work.digest()
                    followers += [(work, first)] if same else []
                    results += [] if same else [(work, _used(work))]
                    continue
                if work.request is not None and (known := self._known(work)) is not None:
                    results.append((work, known))
                    continue
                number, payload = changes.admit(work, shadow)
                entry = Entry(self.journal.seq + len(todo) + 1, now, number, work.kind, work.request, payload)
                todo.append((work, entry))
                if work.request is not None:
                    asked[work.model, work.request] = work
            except (ValueError, Problem) as error:
                results.append((work, error))
        return todo, followers

    def _known(self, work: Work) -> Result | None:
        """The answer to a request id that was used before; a ConflictError if it was for another body."""
        assert work.request is not None
        served = self.models.get(work.model)
        if served is None:
            return None
        recent = self._recent.get((served.number, work.request))
        if recent is not None:
            return _repeated(recent[1]) if recent[0] == work.digest() else _used(work)
        found = self.journal.request(served.number, work.request)
        if found is None:
            return None
        if found[1] != work.digest():
            return _used(work)
        return _repeated({"seq": found[0]} if found[2] is None else msgspec.json.decode(found[2]))

    def _commit(self, todo: Sequence[tuple[Work, Entry]]) -> None:
        answers, self._answers = self._answers, []
        try:
            self.journal.append([entry for _, entry in todo], answers)
        except BaseException:
            self._answers = answers
            raise
        if self.state == "read-only":
            self.state, self.reason = "ready", ""
        self.counts["groups"] += 1
        self.counts["entries"] += len(todo)

    def _apply(self, todo: Sequence[tuple[Work, Entry]], results: list[tuple[Work, Result]]) -> None:
        for works, answered in changes.apply_all(self, [entry for _, entry in todo]):
            for place, answer in zip(works, answered, strict=True):
                work, entry = todo[place]
                results.append((work, answer))
                self.note(entry, answer)
        self.counts["rows"] += sum(work.rows for work, _ in todo)

    def note(self, entry: Entry, answer: Result) -> None:
        """Remember that a model has changed, and the answer to a request with an id."""
        if entry.model in self.by_number:
            self._dirty.setdefault(entry.model, time.monotonic())
        if entry.request is not None and not isinstance(answer, Exception):
            self._answers.append((msgspec.json.encode(answer), entry.model, entry.request))
            self._recent[entry.model, entry.request] = (digest(entry.kind, entry.payload), answer)
            if len(self._recent) > 20_000:
                for key in list(self._recent)[:10_000]:
                    del self._recent[key]

    # ------------------------------------------------------------------------------------------- snapshots and failures

    def _keep_ready(self) -> None:
        if self.state == "ready":
            self._guard(self._keep)

    def _keep(self) -> None:
        """Store the models that are due; write answers that nothing else carried."""
        changed = [(served, since) for n, since in self._dirty.items() if (served := self.by_number.get(n)) is not None]
        due = choose_due(changed, self.limits, time.monotonic())
        if due:
            self.snapshot(due)
        elif len(self._answers) > 1000:
            self.flush()

    def flush(self) -> None:
        """Write the answers of requests that no transaction has carried yet."""
        if self._answers:
            self.journal.store([], self._answers)
            self._answers = []

    def snapshot(self, numbers: Sequence[int], label: str | None = None) -> None:
        """Store models as they are now, and trim the journal. On the writer thread only."""
        models = [self.by_number[number] for number in numbers if number in self.by_number]
        now = max(time.time(), self.journal.last_time)
        states = []
        for served in models:
            begun = time.thread_time()
            states.append(Stored(served.number, served.seq, self.journal.seq, now, label, served.dump()))
            served.storing_seconds = time.thread_time() - begun
        self.journal.store(states, self._answers)
        self._answers = []
        self.counts["snapshots"] += len(states)
        for served in models:
            served.stored_rows, served.learning_seconds = served.rows, 0.0
        clean = [number for number in self.by_number if number not in self._dirty or number in numbers]
        limits = self.limits
        self.counts["trimmed"] += self.journal.trim(clean, limits.snapshots, limits.keep_entries, limits.requests)
        for number in numbers:
            self._dirty.pop(number, None)

    def store_version(self, served: Served, label: str) -> None:
        """Store a model as it is after its last entry, under a label; in a replay the version may be there."""
        now = max(time.time(), self.journal.last_time)
        self.journal.store([Stored(served.number, served.seq, served.seq, now, label, served.dump())])

    def damaged(self, error: DamagedError) -> None:
        """Serve what is known up to a damaged entry, and learn nothing more."""
        self.state, self.reason, self._broken = "read-only", f"{error}; restore a backup", True

    def _guard(self, work: Callable[[], None]) -> None:
        try:
            work()
        except (sqlite3.Error, OSError, DamagedError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> Problem:
        """Become read-only. A full disk is tried again; any other failure of a write needs a restart, since nobody
        knows what has reached the disk: the journal, read again, is what counts."""
        self.counts["failed"] += 1
        full = isinstance(error, sqlite3.OperationalError) and "full" in str(error)
        self.state = "read-only"
        if full:
            self._full_until = time.monotonic() + AGAIN
            self.reason = "the disk is full"
        else:
            self._broken = True
            self.reason = f"a write failed ({type(error).__name__}: {error}); restart the server"
        return ReadOnlyError(f"The server is read-only: {self.reason}.")

    def check_room(self) -> None:
        """Raise if there may be no further model."""
        if len(self.models) >= self.limits.models:
            raise _checks.wrong("server", "models", f"at most {self.limits.models}", len(self.models) + 1)


def _repeated(answer: Result) -> Result:
    return answer if isinstance(answer, Exception) else {**answer, "repeated": True}


def _used(work: Work) -> ConflictError:
    return ConflictError(f"The request id {work.request!r} was used for another request.")


def _deliver_directly(results: list[tuple[Work, Result]]) -> None:
    for work, result in results:
        work.result = result
        if work.done is not None:
            work.done.set()
