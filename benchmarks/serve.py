"""What a server reaches: requests a second, latency, recovery, memory, with the load generator on the same machine.

    python benchmarks/serve.py                  # some minutes; writes benchmarks/results/serve.json
    python benchmarks/serve.py --soak 3600      # at 70 % of what was measured, for an hour

The load generator takes part of the same processors. Each figure stands with the machine's load when it was measured.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "serve"))

import load  # noqa: E402

from gossamer.serve import Client  # noqa: E402
from gossamer.serve.changes import Work  # noqa: E402
from gossamer.serve.hub import Hub  # noqa: E402
from gossamer.serve.limits import Limits  # noqa: E402
from gossamer.serve.recipes import Recipe  # noqa: E402
from gossamer.serve.rows import Block, Request, read_rows  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "serve.json"
COLUMNS = list("abcdefgh")
#: The default model first: what a server makes of rows without a word about it.
LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Auto": ("auto", {}),
    "SILK": ("SILKClassifier", {"budget": 128}),
    "Newton": ("NewtonClassifier", {"budget": 128}),
    "SILK, mixed rows": ("SILKClassifier", {"budget": 128}),
}


#: Rows of the journal that is replayed from its beginning, where it is not a million.
REPLAYED = {"Auto": 200_000}


def stream(rows: int) -> tuple[np.ndarray, list[str]]:
    """Rows of eight columns and two classes."""
    X = np.random.default_rng(0).normal(size=(rows, len(COLUMNS))).round(4)
    return X, np.where(X[:, 0] * X[:, 1] > 0, "up", "down").tolist()


def named_rows(rows: int, mixed: bool) -> list[dict[str, Any]]:
    """The rows by name; mixed, two of eight columns are categories, one is a date, and one number in ten is null."""
    X, _ = stream(rows)
    named: list[dict[str, Any]] = [dict(zip(COLUMNS, row, strict=True)) for row in X.tolist()]
    if mixed:
        rng = np.random.default_rng(1)
        for i, (row, shop, gap) in enumerate(zip(named, rng.integers(20, size=rows), rng.random(rows), strict=True)):
            moment = np.datetime64("2024-01-01T00:00:00") + np.timedelta64(17 * i, "m")
            row.update(f=f"shop {shop}", g="abc"[i % 3], h=str(moment))
            if gap < 0.1:
                row["c"] = None
    return named


class Requests:
    """Requests of some rows each, in turn, made before they are sent."""

    def __init__(self, verb: str, rows: int, model: str = "m", mixed: bool = False) -> None:
        _, y = stream(20_000)
        named = named_rows(20_000, mixed)
        self.made, self.next = [], 0
        for i in range(300):
            part = slice(i * rows % 19_000, i * rows % 19_000 + rows)
            body = {"rows": named[part], **({} if verb == "predict" else {"y": y[part]})}
            self.made.append(load.request("POST", f"/v1/models/{model}/{verb}", json.dumps(body).encode()))

    def __call__(self) -> bytes:
        self.next += 1
        return self.made[self.next % len(self.made)]


def measure(
    port: int, choose: Callable[[], bytes], connections: int, rows: int, seconds: float, pid: int
) -> dict[str, Any]:
    """Drive a server; the rates and latencies, and the processor time of the server for each request."""
    count, before = load.Count(), cpu(pid)
    asyncio.run(load.drive(port, connections, choose, count, seconds))
    found = count.told(seconds)
    used = cpu(pid) - before
    rate = round(len(count.times) / used, 1)
    return {**found, "rows_per_second": round(found["requests_per_second"] * rows, 1), "per_cpu_second": rate,
            "rows_per_cpu_second": round(rate * rows, 1), "cores_used": round(used / seconds, 2),
            "load": os.getloadavg()[0]}  # fmt: skip


def cpu(pid: int) -> float:
    """The processor seconds that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def best(runs: int, key: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The best of some runs: the machine has other work too."""
    return max((work() for _ in range(runs)), key=lambda found: found[key])


def throughput(name: str, seconds: float, runs: int) -> dict[str, Any]:
    """Predictions and durable learning, single rows and batches."""
    learner, params = LEARNERS[name]
    mixed = "mixed" in name
    X, y = stream(5000)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        port = load.free_port()
        process = load.start(folder, port)
        try:
            with Client(f"http://127.0.0.1:{port}") as client:
                client.create("m", learner=learner, params=params, columns=COLUMNS)
                client.learn("m", named_rows(5000, mixed) if mixed else X, y)
            plan = {
                "predict, 1 row, 32 connections": ("predict", 1, 32),
                "predict, 100 rows, 8 connections": ("predict", 100, 8),
                "learn, 1 row, 64 connections": ("learn", 1, 64),
                "learn, 100 rows, 16 connections": ("learn", 100, 16),
            }
            for label, (verb, rows, connections) in plan.items():
                requests = Requests(verb, rows, mixed=mixed)
                found[label] = best(
                    runs, "requests_per_second",
                    lambda r=requests, c=connections, n=rows: measure(port, r, c, n, seconds, process.pid),  # type: ignore[misc]
                )  # fmt: skip
                print(f"{name}: {label}: {found[label]}", flush=True)
            if not mixed:
                told = found["predict p99 while learning / idle"] = interference(port, seconds, runs)
                print(f"{name}: predict p99 while learning / idle: {told}", flush=True)
        finally:
            load.stop(process)
    return found


def interference(port: int, seconds: float, runs: int) -> dict[str, Any]:
    """The p99 of predictions at a fixed rate, alone and while a learner is saturated, in turns."""
    idle, busy, rates = [], [], []
    for _ in range(runs):
        idle.append(asyncio.run(paced(port, 100, seconds))["p99_ms"])

        command = [sys.executable, __file__, "--drive", str(port), "--seconds", str(seconds + 2)]
        learner = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # its work does not delay the asking
        assert learner.stdout is not None
        learner.stdout.readline()
        time.sleep(1.0)
        busy.append(asyncio.run(paced(port, 100, seconds))["p99_ms"])
        rates.append(float(learner.communicate()[0]))
    ratio = float(np.median(np.array(busy) / np.array(idle)))
    return {"ratio": round(ratio, 2), "idle_p99_ms": idle, "busy_p99_ms": busy, "learned_rows_per_second": rates,
            "load": os.getloadavg()[0]}  # fmt: skip


async def paced(port: int, rate: float, seconds: float) -> dict[str, Any]:
    """Predictions of one row at a fixed rate over kept connections."""
    requests, count, idle = Requests("predict", 1), load.Count(), []
    due = time.perf_counter()
    end, running = due + seconds, set()

    async def one(began: float) -> None:
        reader, writer = idle.pop() if idle else await asyncio.open_connection("127.0.0.1", port)
        writer.write(requests())
        head = await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r")[0]))
        count(int(head[9:12]), time.perf_counter() - began, b"")
        idle.append((reader, writer))

    while due < end:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        task = asyncio.create_task(one(time.perf_counter()))
        running.add(task)
        task.add_done_callback(running.discard)
        due += 1 / rate
    await asyncio.gather(*running)
    for _, writer in idle:
        writer.close()
    return count.told(seconds)


def recovery(name: str, rows: int, per_entry: int, stored: bool) -> dict[str, Any]:
    """The time until a server that was killed is ready again: with the states that it stores by itself, killed just
    before it stores the next; or from the journal alone."""
    learner, params = LEARNERS[name]
    X, y = stream(10_000)
    with tempfile.TemporaryDirectory() as folder:
        never = {"snapshot_rows": 10**12, "snapshot_seconds": 10**9, "replay_seconds": 10**9}
        limits = Limits(queue=10**7, **({} if stored else never))
        hub = Hub(folder, limits).start()
        hub.call(Work("create", "m", Recipe(learner=learner, params=params, columns=COLUMNS)))
        blocks: list[Any] = []
        named = named_rows(10_000, True) if "mixed" in name else []
        for first in range(0, 10_000, per_entry):
            part = slice(first, first + per_entry)
            if named:
                blocks.append(read_rows(Request(rows=named[part], y=y[part]), COLUMNS, None, None, 10**6, encoded=True))
            else:
                blocks.append(Block(per_entry, X[part].tobytes(), y[part]))
        if named:  # the first rows decide what the columns are
            whole = read_rows(Request(rows=named, y=y), COLUMNS, None, None, 10**6, encoded=True)
            hub.call(Work("learn", "m", whole, rows=10_000))
        served = hub.models["m"]

        def is_late() -> bool:
            """Whether the next state will be stored soon."""
            learned = served.rows - served.stored_rows
            late = served.learning_seconds >= 0.7 * limits.replay_seconds or learned >= 0.9 * limits.snapshot_rows
            return not stored or late

        while served.rows < rows or not is_late():
            hub.call(*[Work("learn", "m", block, rows=per_entry) for block in blocks])
        state, size, after = served.dump(), hub.journal.size(), served.rows - served.stored_rows
        learned = served.rows
        killed = f"{folder}/killed"
        shutil.copytree(folder, killed, ignore=shutil.ignore_patterns("lock", "killed"))  # before it stops, and stores
        hub.stop()
        processor = time.process_time()
        again = Hub(killed, limits).start()
        seconds, processor = again.recovery_seconds, time.process_time() - processor
        same = again.models["m"].dump() == state
        again.stop()
    found = {"rows": learned, "replayed": after, "rows_per_entry": per_entry, "seconds": round(seconds, 2),
             "cpu_seconds": round(processor, 2), "same_bytes": same, "bytes": size,
             "bytes_per_row": round(size / learned, 1), "load": os.getloadavg()[0]}  # fmt: skip
    print(f"{name}: recovery: {found}", flush=True)
    return found


def soak(name: str, seconds: float, rate: float) -> dict[str, Any]:
    """Predict and learn single rows at a fixed rate each; memory, errors and p99 over time."""
    learner, params = LEARNERS[name]
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        port = load.free_port()
        process = load.start(folder, port, "--limit", "snapshot_rows=50000")
        try:
            with Client(f"http://127.0.0.1:{port}") as client:
                client.create("m", learner=learner, params=params, columns=COLUMNS)
                client.learn("m", *stream(5000))
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                learn, slice_seconds = Requests("learn", 1), min(30.0, end - time.monotonic())

                async def part(learn: Requests = learn, length: float = slice_seconds) -> tuple[Any, Any]:
                    count = load.Count()
                    asked, _ = await asyncio.gather(paced(port, rate, length), driven(port, learn, count, rate, length))
                    return asked, count.told(length)

                asked, learned = asyncio.run(part())
                memory = Path(f"/proc/{process.pid}/status").read_text().split("VmRSS:")[1].split()[0]
                disk = sum(path.stat().st_size for path in Path(folder).iterdir())
                records.append({"rss_kb": int(memory), "disk_bytes": disk, "predict": asked, "learn": learned,
                                "load": os.getloadavg()[0]})  # fmt: skip
                print(f"soak: {records[-1]}", flush=True)
        finally:
            with contextlib.suppress(ProcessLookupError):
                load.stop(process)
    rss = [record["rss_kb"] for record in records]
    third = max(1, len(records) // 3)
    p99 = [record["predict"]["p99_ms"] for record in records]
    failed = sum(
        n for r in records for part in ("predict", "learn") for s, n in r[part]["statuses"].items() if s != 200
    )
    requests = sum(n for r in records for part in ("predict", "learn") for n in r[part]["statuses"].values())
    return {
        "learner": name, "seconds": seconds, "requests_per_second_each": round(rate, 1), "requests": requests,
        "failed": failed,
        "rss_kb_after_a_third": rss[third - 1], "rss_kb_at_the_end": rss[-1], "rss_kb_most": max(rss),
        "p99_ms_first_third": float(np.median(p99[:third])), "p99_ms_last_third": float(np.median(p99[-third:])),
        "load": [record["load"] for record in records],
    }  # fmt: skip


async def driven(port: int, choose: Callable[[], bytes], count: load.Count, rate: float, seconds: float) -> None:
    """Single rows to learn, at a fixed rate over some connections, each of which waits for its answers."""
    end, connections = time.perf_counter() + seconds, 24

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (began := time.perf_counter()) < end:
            writer.write(choose())
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.split(b"content-length: ")[1].split(b"\r")[0]))
            count(int(head[9:12]), time.perf_counter() - began, b"")
            await asyncio.sleep(max(0.0, connections / rate - (time.perf_counter() - began)))
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))


#: work -> what is shown of it, what it must reach and should
BARS = {
    "predict, 1 row, 32 connections": ("requests_per_second", "per_cpu_second", "1,500/s, p99 < 100 ms", "5,000/s"),
    "predict, 100 rows, 8 connections": ("rows_per_second", "rows_per_cpu_second", "50,000 rows/s", "150,000"),
    "learn, 1 row, 64 connections": ("requests_per_second", "per_cpu_second", "2,000/s", "5,000/s"),
    "learn, 100 rows, 16 connections": ("rows_per_second", "rows_per_cpu_second", "15,000 rows/s", "60,000"),
}


def table(kept: dict[str, Any]) -> str:
    """The results as the table of docs/operations.md."""
    lines = [
        "| | measured | p50, p99 | per second of the server's processor | must | aim | load |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in LEARNERS:
        found = kept.get(name, {})
        for work, (rate, per_cpu, must, aim) in BARS.items():
            if work in found:
                one = found[work]
                lines.append(
                    f"| {name}: {work} | {one[rate]:,.0f} | {one['p50_ms']:.1f}, {one['p99_ms']:.1f} ms | "
                    f"{one[per_cpu]:,.0f} | {must} | {aim} | {one['load']:.0f} |"
                )
        ratio = found.get("predict p99 while learning / idle")
        if ratio:
            busy, idle = np.median(ratio["busy_p99_ms"]), np.median(ratio["idle_p99_ms"])
            shown = f"{ratio['ratio']:.1f} times | {busy:.0f} / {idle:.0f} ms | | 5 | 2 | {ratio['load']:.0f} |"
            lines.append(f"| {name}: predict p99 while a learner is saturated / idle | {shown}")
        for one in found.get("recovery", []):
            what = "in batches of 100" if one["rows_per_entry"] == 100 else "one by one"
            again = one.get("replayed", one["rows"])
            replayed = "without stored states" if again == one["rows"] else f"{again:,} replayed"
            size = f"{one['bytes_per_row']:.0f} bytes a row" if again == one["rows"] else f"{one['bytes'] / 1e6:.0f} MB"
            shown = f"{one['seconds']:.1f} s | {size} | {one['cpu_seconds']:.1f} s in all"
            what = f"recovery of {one['rows']:,} rows, journalled {what}, {replayed}"
            must, aim = ("30 s", "10 s") if one["rows"] >= 1_000_000 else ("", "")
            lines.append(f"| {name}: {what} | {shown} | {must} | {aim} | {one['load']:.0f} |")
    if "soak" in kept:
        one = kept["soak"]
        first, last = one["rss_kb_after_a_third"] / 1024, one["rss_kb_at_the_end"] / 1024
        p99 = f"p99 {one['p99_ms_first_third']:.0f}, then {one['p99_ms_last_third']:.0f} ms"
        each = f"{one['requests_per_second_each']:.0f} predictions and up to as many rows learned a second"
        what = f"{one['learner']}: soak of {one['seconds'] / 60:.0f} minutes, {each}, {one['requests']:,} requests"
        shown = f"{one['failed']} failed | {p99} | {first:.0f} MB after a third, {last:.0f} MB at the end"
        lines.append(f"| {what} | {shown} | flat | | {np.median(one['load']):.0f} |")
    return "\n".join(lines)


def show(kept: dict[str, Any]) -> None:
    """Put the table into the page, and beside the results."""
    RESULTS.with_suffix(".md").write_text(f"{table(kept)}\n")
    page = ROOT / "docs" / "operations.md"
    before, _, rest = page.read_text().partition("<!-- serve:begin -->\n")
    after = rest.partition("<!-- serve:end -->")[2]
    page.write_text(f"{before}<!-- serve:begin -->\n{table(kept)}\n<!-- serve:end -->{after}")


def main() -> None:
    """Measure, print, and keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each measurement")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the journal that is replayed")
    parser.add_argument("--soak", type=float, help="only the soak, of so many seconds")
    parser.add_argument("--rate", type=float, help="of the soak, rows a second to predict and as many to learn")
    parser.add_argument("--drive", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--only", choices=["throughput", "recovery"])
    parser.add_argument("--learner", choices=list(LEARNERS), help="only this one (of the soak: Auto unless given)")
    options = parser.parse_args()
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    if options.drive:
        requests, count = Requests("learn", 100), load.Count()
        print("go", flush=True)
        asyncio.run(load.drive(options.drive, 16, requests, count, options.seconds))
        print(100 * count.told(options.seconds)["requests_per_second"])
        return
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    kept["machine"] = {"processors": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
    if options.soak:
        name = options.learner or "Auto"
        measured = kept.get(name, {}).get("learn, 1 row, 64 connections", {}).get("requests_per_second", 1000.0)
        kept["soak"] = soak(name, options.soak, options.rate or 0.35 * measured)  # half of 70 %, twice
        print(kept["soak"])
    else:
        for name in [options.learner] if options.learner else list(LEARNERS):
            if options.only != "recovery":
                kept[name] = {**kept.get(name, {}), **throughput(name, options.seconds, options.runs)}
            if options.only != "throughput":
                journal = min(options.rows, REPLAYED.get(name, options.rows))
                rows = {True: options.rows, False: journal}
                found = [recovery(name, rows[stored], size, stored) for stored in (True, False) for size in (100, 1)]
                kept.setdefault(name, {})["recovery"] = found
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")
    show(kept)


if __name__ == "__main__":
    main()
