"""After a loss of power, with everything unsynced lost or torn, the journal has every row that was acknowledged."""

import asyncio
import json
import re
import signal

import load
import numpy as np
import power
import pytest
from hubs import running

from gossamer.serve import AsyncClient


@pytest.mark.skipif(not power.can_trace(), reason="needs strace, and the right to trace")
def test_power_loss(tmp_path):
    """At moments all over a run: what the disk holds then gives the model of all acknowledged rows, or of more."""
    folder, record, port = tmp_path / "data", tmp_path / "record", load.free_port()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] > 0, "up", "down").tolist()

    async def work():
        async with AsyncClient(f"http://127.0.0.1:{port}") as client:
            await client.create("m", learner="SILKClassifier", params={"budget": 8}, columns=["a", "b", "c"])

            async def send(first):
                for i in range(first, len(X), 4):
                    await client.learn("m", X[i : i + 1], y[i : i + 1])

            await asyncio.gather(*(send(first) for first in range(4)))

    options = ["--limit", "snapshot_rows=60", "--limit", "snapshots=2"]
    process = load.start(folder, port, *options, under=[*power.STRACE, "-o", str(record)])
    try:
        asyncio.run(work())
    finally:
        load.stop(process, signal.SIGKILL)
    found = list(enumerate_moments(record, folder))
    assert found[-1][1] >= 296  # answers were recorded; the kill may cut the record of the last of each sender
    tried = 0
    chosen = rng.choice(len(found), size=24, replace=False)
    for place in sorted(chosen.tolist()):
        files, acknowledged = found[place]
        to = tmp_path / f"loss {place}"
        to.mkdir()
        for name, data in files.items():
            (to / name).write_bytes(data)
        with running(to) as hub:
            assert hub.state == "ready", hub.reason
            learned = hub.models["m"].rows if "m" in hub.models else 0
            assert learned >= acknowledged, f"{acknowledged} rows were acknowledged, {learned} are there"
            tried += learned > 0
    assert tried > 12


def enumerate_moments(record, folder):
    """The files after a loss at each moment, and the number of rows acknowledged before it."""
    rng = np.random.default_rng(1)
    for number, (disk, sent) in enumerate(power.moments(record, folder)):
        answers = re.findall(rb'\{"seq":\d+,"rows":\d+,"learned":\d+\}', sent)
        yield disk.after_loss(rng, (0.0, 0.5, 1.0)[number % 3]), sum(json.loads(answer)["rows"] for answer in answers)


def test_a_record_may_end_anywhere(tmp_path):
    """A tracer that is killed leaves half a line: every beginning of a record is read, of calls that ended."""
    database, wal, answer = tmp_path / "gossamer.db", tmp_path / "gossamer.db-wal", b'{"seq":1,"rows":1,"learned":1}'
    lines = [
        rf'7 pwrite64(3<{wal}>, "\x61\x62", 2, 0) = 2',
        rf'8 pwrite64(4<{database}>, "\x63", 1, 4096 <unfinished ...>',
        rf"7 fdatasync(3<{wal}>) = 0",
        "8 <... pwrite64 resumed>) = 1",
        rf"8 ftruncate(4<{database}>, 8) = 0",
        rf'7 sendto(5<TCP:[127.0.0.1:1->127.0.0.1:2]>, "{hexadecimal(answer)}", 30, 0, NULL, 0) = -1 EAGAIN (later)',
        rf'7 sendto(5<TCP:[127.0.0.1:1->127.0.0.1:2]>, "{hexadecimal(answer)}", 30, 0, NULL, 0) = 30',
        rf'7 pwrite64(3<{wal}>, "\x64", 1, 2) = ?',
        rf"8 fsync(4<{database}>) = 0",
    ]
    whole = "\n".join(lines) + "\n"
    record, seen = tmp_path / "record", []
    for size in range(len(whole) + 1):
        record.write_text(whole[:size])
        seen.append([acknowledged for _, acknowledged in enumerate_moments(record, tmp_path)])
    assert seen[-1] == [0, 0, 1, 1, 1]
    assert all(seen[-1][: len(found)] == found for found in seen)


def hexadecimal(data):
    return "".join(rf"\x{byte:02x}" for byte in data)
