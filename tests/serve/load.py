"""Servers and load for the tests, the campaigns and the benchmark: keep-alive connections on one event loop.

Run as a program, this file starts servers at once: as forks of a process that has imported everything.
"""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]


def free_port():
    """A port that nobody uses."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def serve_command(folder, port, *options):
    """The arguments of `gossamer serve`."""
    return ["serve", "--data", str(folder), "--port", str(port), *map(str, options)]


def start(folder, port, *options, wait=True, under=()):
    """`gossamer serve` in a process of its own; returned once it is ready."""
    command = [*under, sys.executable, "-m", "gossamer", *serve_command(folder, port, *options)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    errors = tempfile.TemporaryFile()  # noqa: SIM115  # not a pipe, which would fill up and stop the server
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment,
                               start_new_session=bool(under))  # fmt: skip
    process.stderr = errors
    if wait:
        wait_ready(process, port)
    return process


class Forks:
    """Starts servers as forks of a process that has imported everything."""

    def __init__(self):
        command = [sys.executable, str(Path(__file__))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def _ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def start(self, folder, port, *options):
        """A server, once it is ready: its process id."""
        return wait_ready(Fork(self, self._ask(start=serve_command(folder, port, *options))), port)

    def close(self):
        """End the process; servers must have been stopped."""
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Fork:
    """A server that was forked, with the methods of a process that are used here."""

    stderr = open(os.devnull, "rb")  # noqa: SIM115

    def __init__(self, forks, pid):
        self.forks, self.pid, self.code = forks, pid, None

    def poll(self):
        """The exit code, None while it runs."""
        if self.code is None and not Path(f"/proc/{self.pid}").exists():
            self.wait()
        return self.code

    def send_signal(self, number):
        """Send a signal: nobody has waited for the process yet, so it is there."""
        os.kill(self.pid, number)

    def wait(self, timeout=None):
        """Wait until it has ended."""
        if self.code is None:
            self.code = self.forks._ask(wait=self.pid)
        return self.code


def wait_ready(process, port, seconds=120):
    """Wait until a server can learn."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            process.stderr.seek(0)
            raise RuntimeError(process.stderr.read().decode()[-2000:])
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1) as peer:
            peer.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
            if b" 200 " in peer.recv(1000)[:20]:
                return process
        time.sleep(0.01)
    raise RuntimeError("the server is not ready")


def stop(process, how=signal.SIGTERM):
    """End a server, and wait for it."""
    if process.poll() is None and getattr(process, "args", [""])[0] == "strace":
        os.killpg(process.pid, how)  # the tracer and the server: without its tracer a server would go on
    elif process.poll() is None:
        process.send_signal(how)
    process.wait(60)
    if not isinstance(process, Fork):
        process.stderr.close()


def request(method, path, body=b"", headers=""):
    """The bytes of a request."""
    head = f"{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
    return head.encode() + body


class Peer(asyncio.Protocol):
    """A connection that sends a request, waits for its answer, and sends the next."""

    def __init__(self, choose, seen, until):
        self.choose, self.seen, self.until = choose, seen, until
        self.buffer, self.done = b"", asyncio.get_running_loop().create_future()

    def connection_made(self, transport):
        self.transport = transport
        self.next()

    def next(self):
        if time.perf_counter() >= self.until:
            self.transport.close()
            return
        self.began = time.perf_counter()
        self.transport.write(self.choose())

    def data_received(self, data):
        self.buffer += data
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        place = self.buffer.find(b"content-length: ") + 16
        size = int(self.buffer[place : self.buffer.index(b"\r", place)])
        if len(self.buffer) < end + 4 + size:
            return
        status, body = int(self.buffer[9:12]), self.buffer[end + 4 : end + 4 + size]
        self.buffer = b""
        self.seen(status, time.perf_counter() - self.began, body)
        self.next()

    def connection_lost(self, error):
        if not self.done.done():
            self.done.set_result(None)


async def drive(port, connections, choose, seen, seconds):
    """Send requests over some connections for some seconds."""
    loop, until, peers = asyncio.get_running_loop(), time.perf_counter() + seconds, []
    for _ in range(connections):
        _, peer = await loop.create_connection(lambda: Peer(choose, seen, until), "127.0.0.1", port)
        peers.append(peer.done)
    await asyncio.gather(*peers)


class Count:
    """The answers of a run: statuses and times."""

    def __init__(self):
        self.times, self.statuses = [], {}

    def __call__(self, status, seconds, body):
        self.times.append(seconds)
        self.statuses[status] = self.statuses.get(status, 0) + 1

    def told(self, seconds):
        """Requests a second, and quantiles in milliseconds."""
        ms = 1000 * np.array(self.times or [0.0])
        p50, p99 = np.quantile(ms, [0.5, 0.99]).round(2).tolist()
        rate = round(len(self.times) / seconds, 1)
        return {"requests_per_second": rate, "p50_ms": p50, "p99_ms": p99, "statuses": self.statuses}


def serve_forks():
    """Fork a server for each line that asks for one, and wait for those that lines name."""
    import uvicorn.protocols.http.httptools_impl

    import gossamer.cli.serve
    import gossamer.serve.api
    from gossamer.cli import main

    assert uvicorn
    assert gossamer
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            print(os.waitstatus_to_exitcode(os.waitpid(request["wait"], 0)[1]), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            try:
                quiet = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(quiet, stream)
                os._exit(main(request["start"]))
            finally:
                os._exit(99)
        print(pid, flush=True)


if __name__ == "__main__":
    serve_forks()
