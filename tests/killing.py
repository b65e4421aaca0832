"""Work that is killed at random moments and begun again: a server that forks, so that every process starts at once.

A script calls `serve` when it runs as a program; a test opens a `server` of that script.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any


def serve(work: Callable[[str, str, str], None]) -> None:
    """Do the work of each line of the input in a child, and kill it some moments after its log has grown by so much."""
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                work(*request["work"])
                os._exit(0)
            finally:
                os._exit(99)
        log, ended, status = request["work"][2], 0, 0
        written = os.path.getsize(log) if os.path.exists(log) else 0
        while request["grown"] is not None and not ended:
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and (os.path.getsize(log) if os.path.exists(log) else 0) >= written + request["grown"]:
                time.sleep(request["after"])
                os.kill(child, signal.SIGKILL)  # not waited for yet, so it is there
                break
            time.sleep(0.001)
        print(os.waitstatus_to_exitcode(status if ended else os.waitpid(child, 0)[1]), flush=True)


@contextlib.contextmanager
def server(script: str) -> Iterator[Callable[..., bool]]:
    """Does the work of a script in new processes, killed or not; tells whether one ended by itself."""
    process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(case: str, path: Path, log: Path, grown: int | None = None, after: float = 0.0) -> bool:
        request = {"work": [case, str(path), str(log)], "grown": grown, "after": after}
        process.stdin.write(json.dumps(request) + "\n")  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
        code = int(process.stdout.readline())  # type: ignore[union-attr]
        assert code in (0, -signal.SIGKILL)
        return code == 0

    try:
        yield run
    finally:
        process.stdin.close()  # type: ignore[union-attr]
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def kill_and_go_on(
    run: Callable[..., bool], case: str, folder: Path, whole: tuple[Path, Path], moments: random.Random, most: int
) -> int:
    """Do the work to its end in ``folder``, killed at random moments; how often. ``whole`` has a whole run's log."""
    length, kills, done = whole[1].stat().st_size, 0, False
    while not done and kills < most:
        grown = moments.choice([0, moments.randrange(length // 6)])  # often before it has done anything
        done = run(case, folder / "killed", folder / "lines", grown, after=moments.uniform(0.0, 0.02))
        kills += not done
    assert done or run(case, folder / "killed", folder / "lines")
    return kills


def read_log(log: Path) -> list[Any]:
    """The lines of a log that were written whole."""
    return [json.loads(line) for line in log.read_text().splitlines() if line.endswith("]")]
