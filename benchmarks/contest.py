"""Gossamer beside what people use today, on the same rows in the same run: part of ``make bench``.

Every entry tries the same number of settings on rows that are not scored; the best then learns the scored rows in a
process of its own, from nothing, each row predicted before it is learned. One thread. The standings go to
``results/contest.json``, the README and ``docs/benchmarks.md``; the picture to ``docs/pareto.png``.

    python benchmarks/contest.py                # everything: the first 15,000 rows of each set
    python benchmarks/contest.py --only elec2   # one data set, printed
    python benchmarks/contest.py --entries Auto # those with this in their name, their lines put beside the stored ones
    python benchmarks/contest.py --quick        # seconds, on made-up data, printed
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from entries import BASELINES, FULL, GOSSAMER, SHORT, TRIAL, Effort, Entry, Setting
from harness import RESULTS, machine, progress, publish
from play import Played, scored, tried
from standings import Contest, Result, Subject, every, front, number
from works import QUICK, WORKS, Work

#: Each library, the file and the list of its entries.
OPPONENTS = {
    "sklearn": ("opponents_sklearn", "SKLEARN"),
    "river": ("opponents_river", "RIVER"),
    "vowpalwabbit": ("opponents_vw", "VOWPAL"),
}


def missing() -> list[str]:
    """Libraries that are not installed, and so do not take part."""
    return [library for library in OPPONENTS if importlib.util.find_spec(library) is None]


def entries() -> list[Entry]:
    """Everybody who can take part."""
    found = [*GOSSAMER, *BASELINES]
    for library, (file, name) in OPPONENTS.items():
        if library not in missing():
            found += getattr(importlib.import_module(file), name)
    return found


def processes(count: int, fresh: bool) -> ProcessPoolExecutor:
    """Processes with one thread each that have everything imported; with ``fresh``, one for every job."""
    context = multiprocessing.get_context("forkserver")
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # or the server could not import these
    context.set_forkserver_preload(["__main__", "play", *(file for file, _ in OPPONENTS.values())])
    return ProcessPoolExecutor(count, mp_context=context, max_tasks_per_child=1 if fresh else None)


def tuned(workers: ProcessPoolExecutor, work: Work, takes_part: list[Entry], effort: Effort) -> list[Setting]:
    """The best setting of each entry on the streams that are not scored: wide at first, then around the best so far."""
    bare = replace(work, scored=[])
    names = {entry.name for entry in takes_part}
    alone = [entry for entry in takes_part if entry.like not in names]
    best: dict[str, tuple[float, Setting | None]] = {_key(entry): (np.inf, None) for entry in alone}
    for turn, count in enumerate(effort.settings):
        jobs = []
        for entry in alone:
            some = entry.settings(count, best[_key(entry)][1], 0.5**turn)
            limit = entry.tuning_limit(effort, work.wide)
            jobs += [(entry, setting, workers.submit(tried, entry, setting, bare, limit)) for setting in some]
        for entry, setting, job in jobs:
            if job.result() < best[_key(entry)][0]:  # the first, if all are infinite: None
                best[_key(entry)] = job.result(), setting
    found = {name: setting for name, (_, setting) in best.items() if setting is not None}
    for entry in alone:
        if _key(entry) not in found:
            raise RuntimeError(f"{entry.library}, {entry.name}: every setting fell apart on {work.name}")
    return [found[_key(entry, entry.like if entry.like in names else "")] for entry in takes_part]


def _key(entry: Entry, name: str = "") -> str:
    return f"{entry.library}, {name or entry.name}"


def result(work: Work, entry: Entry, setting: Setting, played: Played, marks: set[int]) -> Result:
    """The line of one entry; its score on the first rows of each stream at every mark it has reached."""
    rows = max(len(one) for one in played.predictions)
    scores = {mark: work.measured(played.predictions, mark) for mark in sorted(marks) if mark <= rows}
    return Result(
        work.name, entry.name, entry.library, setting, scores, rows, rows < work.longest, played.rows / played.seconds,
        played.megabytes, played.size, entry.made_of,
    )  # fmt: skip


def compete(
    names: list[str], works: dict[str, Callable[[], Work]], effort: Effort, some: Sequence[str] = ("",)
) -> Contest:
    """Everybody, or those whose name has one of ``some`` in it, on every piece of work."""
    subjects, results = [], []
    everybody = entries()
    with processes(2, fresh=False) as tuners, processes(1, fresh=True) as players:
        for name in names:
            work = works[name]().first(effort.rows)
            there = [entry for entry in everybody if work.task in entry.tasks]
            marks = {min(entry.limit(effort, work.wide) or work.longest, work.longest) for entry in there}
            takes_part = [entry for entry in there if any(part in entry.name for part in some)]
            if not takes_part:
                continue
            limits = [entry.limit(effort, work.wide) for entry in takes_part]
            start = time.monotonic()
            settings = tuned(tuners, work, takes_part, effort)
            middle = time.monotonic()
            for entry, setting, limit in zip(takes_part, settings, limits, strict=True):
                played = players.submit(scored, entry, setting, work, limit).result()
                results.append(result(work, entry, setting, played, marks))
                score, used = number(results[-1].score), played.seconds
                progress(f"{name}, {entry.library}, {entry.name}: {score}, {played.rows:,} rows in {used:.2f} s")
            subjects.append(Subject(name, work.metric, work.higher, work.about))
            end = time.monotonic()
            progress(f"{name}: settings took {middle - start:.0f} s, the scored rows {end - middle:.0f} s")
    return Contest(subjects, results, machine(), missing(), sum(effort.settings), today())


def today() -> str:
    """The date."""
    return datetime.now(UTC).date().isoformat()


def renew(path: Path, names: list[str], some: Sequence[str]) -> Contest:
    """Some entries on some pieces of work, their lines in place of the stored ones; those of entries that are no more
    leave. It is written after each piece of work."""
    contest = Contest.read(path)
    for name in names:
        fresh = compete([name], WORKS, FULL, some)
        present = {(entry.library, entry.name) for entry in entries()}
        libraries = {library for library, _ in present}  # lines of those that are not installed here stay
        gone = {(one.library, one.entry) for one in contest.results if one.library in libraries} - present
        contest = contest.renewed(fresh, gone)
        contest.write(path)
    return contest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="made-up data and few settings, to try the script")
    parser.add_argument("--only", metavar="NAME", action="append", help="this data set; the tables are printed only")
    parser.add_argument("--short", action="store_true", help="a tenth of the work: fewer rows and settings")
    parser.add_argument(
        "--entries", metavar="PART", nargs="+", help="only entries with this in their name; with stored ones, the rest"
    )
    parser.add_argument("--again", action="store_true", help="write tables and picture from the last results")
    arguments = parser.parse_args()
    works = QUICK if arguments.quick else WORKS
    names = arguments.only or list(works)
    unknown = [name for name in names if name not in works]
    if unknown:
        sys.exit(f"There is no {unknown[0]!r}; there are {', '.join(works)}.")
    if arguments.again:
        contest = Contest.read(RESULTS / "contest.json")
    elif arguments.entries and not arguments.quick and not arguments.short:
        contest = renew(RESULTS / "contest.json", names, arguments.entries)
    else:
        effort = TRIAL if arguments.quick else SHORT if arguments.short else FULL
        contest = compete(names, works, effort, arguments.entries or ("",))
    print(every(contest), front(contest), sep="\n\n")
    kept = arguments.again or arguments.entries or not arguments.only
    if kept and not arguments.quick and not arguments.short:
        contest.write(RESULTS / "contest.json")
        publish("contest", front(contest))
        publish("contest_all", every(contest), RESULTS.parents[1] / "docs" / "benchmarks.md")
        from pareto import draw  # here, for the processes that play need no matplotlib

        draw(contest, RESULTS.parents[1] / "docs" / "pareto.png")


if __name__ == "__main__":
    main()
