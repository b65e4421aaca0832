"""Gossamer beside what people use today, on the same rows in the same run: part of ``make bench``.

Every entry tries the same number of settings on rows that are not scored; the best then learns the scored rows in a
process of its own, from nothing, each row predicted before it is learned. One thread. The standings go to
``results/contest.json``, the README and ``docs/benchmarks.md``; the picture to ``docs/pareto.png``.

    python benchmarks/contest.py                # everything: the first 15,000 rows of each set
    python benchmarks/contest.py --only elec2   # one data set, printed
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
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

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
    best: list[tuple[float, Setting | None]] = [(np.inf, None)] * len(takes_part)
    for turn, count in enumerate(effort.settings):
        tries = [
            entry.settings(count, setting, 0.5**turn) for entry, (_, setting) in zip(takes_part, best, strict=True)
        ]
        jobs = [
            [workers.submit(tried, entry, setting, bare, entry.limit(effort, work.wide)) for setting in some]
            for entry, some in zip(takes_part, tries, strict=True)
        ]
        for index, (some, losses) in enumerate(zip(tries, jobs, strict=True)):
            found = [(job.result(), setting) for setting, job in zip(some, losses, strict=True)]
            best[index] = min([best[index], *found], key=lambda one: one[0])  # the first, if all are infinite: None
    for entry, (_, setting) in zip(takes_part, best, strict=True):
        if setting is None:
            raise RuntimeError(f"{entry.library}, {entry.name}: every setting fell apart on {work.name}")
    return [setting for _, setting in best if setting is not None]


def result(work: Work, entry: Entry, setting: Setting, played: Played, marks: set[int]) -> Result:
    """The line of one entry; its score on the first rows of each stream at every mark it has reached."""
    rows = max(len(one) for one in played.predictions)
    scores = {mark: work.measured(played.predictions, mark) for mark in sorted(marks) if mark <= rows}
    return Result(
        work.name, entry.name, entry.library, setting, scores, rows, rows < work.longest, played.rows / played.seconds,
        played.megabytes, played.size, entry.made_of,
    )  # fmt: skip


def compete(names: list[str], works: dict[str, Callable[[], Work]], effort: Effort) -> Contest:
    """Everybody on every piece of work."""
    subjects, results = [], []
    everybody = entries()
    with processes(2, fresh=False) as tuners, processes(1, fresh=True) as players:
        for name in names:
            work = works[name]().first(effort.rows)
            takes_part = [entry for entry in everybody if work.task in entry.tasks]
            limits = [entry.limit(effort, work.wide) for entry in takes_part]
            marks = {min(limit or work.longest, work.longest) for limit in limits}
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
    return Contest(subjects, results, machine(), missing(), sum(effort.settings))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="made-up data and few settings, to try the script")
    parser.add_argument("--only", metavar="NAME", action="append", help="this data set; the tables are printed only")
    parser.add_argument("--short", action="store_true", help="a tenth of the work: fewer rows and settings")
    parser.add_argument("--again", action="store_true", help="write tables and picture from the last results")
    arguments = parser.parse_args()
    works = QUICK if arguments.quick else WORKS
    names = arguments.only or list(works)
    unknown = [name for name in names if name not in works]
    if unknown:
        sys.exit(f"There is no {unknown[0]!r}; there are {', '.join(works)}.")
    if arguments.again:
        contest = Contest.read(RESULTS / "contest.json")
    else:
        contest = compete(names, works, TRIAL if arguments.quick else SHORT if arguments.short else FULL)
    print(every(contest), front(contest), sep="\n\n")
    if not arguments.quick and not arguments.only:
        contest.write(RESULTS / "contest.json")
        publish("contest", front(contest))
        publish("contest_all", every(contest), RESULTS.parents[1] / "docs" / "benchmarks.md")
        from pareto import draw  # here, for the processes that play need no matplotlib

        draw(contest, RESULTS.parents[1] / "docs" / "pareto.png")


if __name__ == "__main__":
    main()
