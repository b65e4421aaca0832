"""Thousands of cases in processes of their own: a crash, a hang or too much memory is found, named and survived.

A case is a function of a number. Each process has its cases one after another and says before each which one it is; if
the process dies, the case is the finding, and another process goes on behind it.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import signal
import struct
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable

#: Cases of one process, and the seconds of its own work that one may take.
BATCH, SECONDS = 250, 2.0

Case = Callable[[int], str]


def sanitized() -> bool:
    """Whether the core runs under a sanitizer, whose shadow memory no limit fits."""
    return any(name in os.environ for name in ("ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"))


def address_space() -> int:
    """The bytes of this process's memory, mapped or not."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class Limited:
    """No more than so many bytes are to be had inside: beyond, a MemoryError."""

    def __init__(self, room: int) -> None:
        self.room = room

    def __enter__(self) -> None:
        self.before = resource.getrlimit(resource.RLIMIT_AS)
        if not sanitized():
            resource.setrlimit(resource.RLIMIT_AS, (address_space() + self.room, self.before[1]))

    def __exit__(self, *_: object) -> None:
        resource.setrlimit(resource.RLIMIT_AS, self.before)


def run_batch(case: Case, first: int, last: int, board: mmap.mmap, out: int) -> None:
    """The cases first ... last - 1, in a child; what comes of each goes to a pipe."""
    with os.fdopen(out, "w", buffering=1) as told:  # what was found before a crash is kept
        for number in range(first, last):
            board[:8] = struct.pack("<q", number)
            signal.setitimer(signal.ITIMER_PROF, SECONDS * (10 if sanitized() else 1))  # ends the process
            try:
                result = case(number)
            except BaseException as error:
                frames = traceback.extract_tb(error.__traceback__)
                inside = [frame for frame in frames if "gossamer" in frame.filename] or frames
                place = f"{os.path.basename(inside[-1].filename)}:{inside[-1].lineno}"
                result = f"! {type(error).__name__} at {place}: {error}"
            signal.setitimer(signal.ITIMER_PROF, 0)
            told.write(f"{number} {' '.join(result.split())[:400]}\n")
        board[:8] = struct.pack("<q", last)


def campaign(
    case: Case, count: int, seconds: float, first: int = 0, quiet: bool = False
) -> tuple[Counter[str], dict[int, str]]:
    """Case after case, until there were so many or so much time has gone; what came of them, and the findings."""
    board = mmap.mmap(-1, 8)
    results: Counter[str] = Counter()
    findings: dict[int, str] = {}
    started = shown = time.monotonic()
    at, end = first, first + count
    while at < end and time.monotonic() - started < seconds:
        last, known = min(end, at + BATCH), len(findings)
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                run_batch(case, at, last, board, writing)
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            for line in told:
                number, _, result = line.rstrip("\n").partition(" ")
                if result.startswith("!"):
                    findings[int(number)] = result[2:]
                results["found" if result.startswith("!") else result] += 1
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        at = struct.unpack("<q", board[:8])[0]
        if code:
            died = "took too long" if code == -signal.SIGPROF else f"the process ended with {code}"
            findings[at] = died
            results["found"] += 1
            at += 1
        if not quiet:
            for number, what in list(findings.items())[known:]:
                print(f"case {number}: {what}", flush=True)
        if not quiet and time.monotonic() - shown > 10:
            shown = time.monotonic()
            print(f"{at - first:,} of {count:,}: {dict(results)}", flush=True)
    return results, findings


def main(title: str, case: Case, show: Callable[[int], str]) -> int:
    """The command line of a campaign; 1 if something was found."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--count", type=int, default=200_000, help="how many cases")
    parser.add_argument("--seconds", type=float, default=1e9, help="or for how long")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other cases")
    parser.add_argument("--only", type=int, help="this case alone, here, with its traceback")
    options = parser.parse_args()
    first = options.seed * 10**9
    if options.only is not None:
        print(show(options.only))
        print(case(options.only))
        return 0
    started = time.monotonic()
    results, findings = campaign(case, options.count, options.seconds, first)
    took, total = time.monotonic() - started, sum(results.values())
    for number, what in sorted(findings.items())[:50]:
        print(f"case {number} ({show(number)}): {what}")
    print(f"{title}: {total:,} cases in {took:.0f} s ({total / took:.0f}/s), seed {options.seed}: {dict(results)}; "
          f"{len(findings)} findings")  # fmt: skip
    return 1 if findings else 0
