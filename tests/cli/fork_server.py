"""Runs the command line in processes that start at once: forks of one that has imported everything.

A request is a line of JSON: ``arguments``, ``stdin`` (a file that is piped in), ``stderr`` (a file), and ``signal``
with ``after``, the seconds until it is sent, and if that is not enough the ``lines`` that a ``file`` must have. The
answer is a line: the exit code, or minus the signal that ended it.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


def _wait_for_lines(path: str | None, lines: int) -> None:
    """Until a file has so many, at most a minute: a machine may have other work."""
    for _ in range(600):
        if path is None or (Path(path).exists() and len(Path(path).read_text().splitlines()) >= lines):
            return
        time.sleep(0.1)


if __name__ == "__main__":
    from gossamer.cli import compare, main, predict, run  # noqa: F401 (so that forks have them)

    def child(request: dict) -> None:
        sys.stderr = open(request.get("stderr", os.devnull), "w")  # noqa: SIM115
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        if "stdin" in request:
            # the pipe stays open, as one does that waits for more
            feed = f"cat {request['stdin']!r}; exec sleep {request.get('open', 0)}"
            pipe = subprocess.Popen(["sh", "-c", feed], stdout=subprocess.PIPE)
            sys.stdin = open(pipe.stdout.fileno())  # noqa: SIM115
        code = main(request["arguments"])
        sys.stderr.flush()
        os._exit(code)

    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                child(request)
            except KeyboardInterrupt:  # before the command has begun
                os._exit(130)
            finally:
                os._exit(99)
        if "signal" in request:
            time.sleep(request["after"])
            _wait_for_lines(request.get("file"), request.get("lines", 0))
            os.kill(pid, request["signal"])  # not waited for yet, so it is there
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)


class Commands:
    """The server, from the side of a test."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, str(Path(__file__))], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __call__(self, *arguments: object, **request: object) -> int:
        request["arguments"] = [str(argument) for argument in arguments]
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return int(self._server.stdout.readline())

    def killed(self, after: float, *arguments: object, **request: object) -> int:
        return self(*arguments, signal=int(signal.SIGKILL), after=after, **request)

    def close(self) -> None:
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()
