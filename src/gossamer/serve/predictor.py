"""The thread that predicts: what waits for the same model is answered together, in one call."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from gossamer.serve.problems import BusyError, Problem
from gossamer.serve.rows import AnyBlock, join
from gossamer.serve.served import Served

#: The most rows of one call.
ROWS = 8192
#: The parts of an answer that have an entry for each row.
BY_ROW = ("predictions", "scores", "proba", "std", "interval", "set")


class Ask:
    """A request for predictions."""

    __slots__ = ("block", "done", "result", "served", "size", "wanted")

    def __init__(self, served: Served, block: AnyBlock, wanted: dict[str, Any], done: Any = None) -> None:
        self.served, self.block, self.wanted, self.done = served, block, wanted, done
        self.result: Any = None
        self.size = block.size()


class Predictor:
    """Predicts on a thread of its own, so that neither the event loop nor the writer waits for it."""

    def __init__(self, most: int, deliver: Callable[[list[tuple[Ask, Any]]], None], most_bytes: int = 2**62) -> None:
        self.most, self.most_bytes, self.deliver = most, most_bytes, deliver
        self._bytes_in = self._bytes_out = 0  # each is changed by one thread only
        self.calls = self.rows = 0
        self._queue: deque[Ask] = deque()
        self._wake = threading.Event()
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="gossamer-predictor", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Answer what waits, and end the thread."""
        self._stop = True
        self._wake.set()
        self._thread.join()

    def submit(self, ask: Ask) -> None:
        """Queue a request; BusyError if too many wait."""
        if len(self._queue) >= self.most:
            raise BusyError(f"{len(self._queue)} predictions wait.")
        if self._bytes_in - self._bytes_out + ask.size > self.most_bytes:
            raise BusyError(f"{self._bytes_in - self._bytes_out} bytes wait to be predicted.")
        self._bytes_in += ask.size
        self._queue.append(ask)
        self._wake.set()

    def _run(self) -> None:
        while not self._stop or self._queue:
            self._wake.wait()
            self._wake.clear()
            while self._queue:
                self._answer()

    def _answer(self) -> None:
        """Take the first request and all that wait for the same."""
        first = self._queue.popleft()
        group, rest, rows = [first], [], first.block.count
        while self._queue and rows < ROWS:
            ask = self._queue.popleft()
            if ask.served is first.served and ask.wanted == first.wanted:
                group.append(ask)
                rows += ask.block.count
            else:
                rest.append(ask)
        self._queue.extendleft(reversed(rest))
        self.calls += 1
        self.rows += rows
        answers = self._predict(group)
        self._bytes_out += sum(ask.size for ask in group)
        self.deliver(list(zip(group, answers, strict=True)))

    def _predict(self, group: list[Ask]) -> list[Any]:
        try:
            for ask in group:
                ask.served.fits(ask.block)
            blocks = join([ask.block for ask in group])
            if len(blocks) > 1:
                return [answer for ask in group for answer in self._predict([ask])]
            made = group[0].served.predict(blocks[0], group[0].wanted)
        except (ValueError, Problem) as error:
            if len(group) == 1:
                return [error]
            return [answer for ask in group for answer in self._predict([ask])]
        except Exception as error:  # a bug must not end the thread that all others wait for
            return [error] * len(group)
        if len(group) == 1:
            return [made]
        answers, first = [], 0
        for ask in group:
            part = slice(first, first + ask.block.count)
            answers.append({name: value[part] if name in BY_ROW else value for name, value in made.items()})
            first = part.stop
        return answers
