"""Second-order steps: accuracy by the protocol of the contest, and time beside the first order: ``make bench-newton``.

The settings of every entry are chosen on rows that are not scored, as in ``contest.py``; the tables go to
``docs/second_order.md``.

    python benchmarks/newton.py                  # everything: some minutes
    python benchmarks/newton.py --only ijcnn1    # some sets, printed
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Callable

import numpy as np
from contest import processes, tuned
from entries import FULL, Entry, second_order
from harness import DOCS, RESULTS, Row, add, machine, progress, publish, report
from play import scored
from standings import number
from works import WORKS, Work

from gossamer import Learner
from gossamer.budgets import Merge, Project
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, SquaredHinge
from gossamer.rules import Implicit, Newton

#: Each set, the sizes that are run on it, and what they must reach.
SETS: dict[str, dict[int, float | None]] = {
    "ijcnn1": {100: 0.042, 256: 0.034, 500: 0.032},
    "abalone": {100: 2.16},
    "Mackey-Glass": {100: 0.143},
    "MNIST 0-4 / 5-9": {500: 0.046},
    "MNIST": {500: 0.060},
    "elec2": {100: None},
    "SEA": {100: None},
    "rotating XOR": {100: None},
    "a9a": {100: None},
}


def accuracy(names: list[str]) -> str:
    """Each set and size: Newton, what it must reach (without a number: SILK of that size), and who was there before."""
    lines = list(HEAD)
    with processes(2, fresh=False) as tuners, processes(1, fresh=True) as players:
        for name in names:
            work: Work = WORKS[name]().first(FULL.rows)
            entries = [entry for size in SETS[name] for entry in both(size)]
            settings = tuned(tuners, work, entries, FULL)
            found = []
            for entry, setting in zip(entries, settings, strict=True):
                played = players.submit(scored, entry, setting, work, None).result()
                found.append((work.measured(played.predictions, work.longest), setting))
                progress(f"{name}, {entry.name}: {found[-1]}, {played.seconds:.2f} s")
            sizes = zip(SETS[name].items(), found[::2], found[1::2], strict=True)
            lines += [line(name, size, must, project, merge) for (size, must), project, merge in sizes]
    return "\n".join(lines)


HEAD = (
    "| set | points | Newton, `Project` | Newton, `Merge` | must | SILK of that size | best of the contest |",
    "|" + "---|" * 7,
)


def both(size: int) -> list[Entry]:
    """Second order with the two budgets."""
    kinds = (Project(size), Merge(size))
    return [second_order(f"Newton, {type(budget).__name__}({size})", budget) for budget in kinds]


def line(name: str, size: int, must: float | None, *found: tuple[float, dict[str, object]]) -> str:
    """One line of the table; the numbers of the others are stored."""
    stored = [
        (result["scores"][max(result["scores"], key=int)], result["entry"])
        for result in json.loads((RESULTS / "contest.json").read_text())["results"]
        if result["work"] == name and not result["limited"] and not result["entry"].startswith("Newton")
    ]
    silk = min(one for one in stored if one[1].startswith("SILK") and (f"({size})" in one[1] or size == 256))
    bar = silk[0] if must is None else must
    best = min(score for score, _ in found)
    cells = []
    for score, setting in found:
        how = ", ".join(f"{key} {value}" for key, value in setting.items())
        cells.append((f"**{number(score)}**" if score == best else number(score)) + f" ({how})")
    missed = "" if best <= bar else " **(not reached)**"
    others = " | ".join(f"{number(score)} ({who})" for score, who in (silk, min(stored)))
    return f"| {name} | {size} | {' | '.join(cells)} | {number(bar)}{missed} | {others} |"


def best_of(repeats: int, *works: Callable[[], object]) -> list[float]:
    """The least processor time of each, in turns: other work on the machine does not count."""
    found = [np.inf] * len(works)
    for _, (i, work) in itertools.product(range(repeats), enumerate(works)):
        start = time.thread_time()
        work()
        found[i] = min(found[i], time.thread_time() - start)
    return found


def times() -> list[Row]:
    """A pass over ijcnn1: beside one product of a matrix of that size and a vector per step, and beside first order."""
    rows: list[Row] = []
    work = WORKS["ijcnn1"]().first(FULL.rows)
    stream = work.scored[0]
    y = np.where(stream.y == max(work.classes), 1.0, -1.0)
    for size in (256, 512):
        learner = Learner(Gaussian(stream.scale), SquaredHinge(), Newton(), Project(size))
        learner.learn(stream.X, y)
        steps, matrix, vector = learner.updates, np.random.default_rng(0).random((size, size)), np.ones(size)

        def second(size: int = size) -> None:
            Learner(Gaussian(stream.scale), SquaredHinge(), Newton(), Project(size)).learn(stream.X, y)

        def products(matrix: np.ndarray = matrix, vector: np.ndarray = vector, steps: int = steps) -> None:
            for _ in range(steps):
                matrix @ vector

        pass_, bare = best_of(4, second, products)
        about = f"a row with a step, {size} points, whole pass / one matrix-vector product"
        add(rows, about, pass_ / bare, 6.0, 3.0, unit="x")

    def first_100() -> None:
        Learner(Gaussian(stream.scale), Hinge(), Implicit(1.0), Project(100)).learn(stream.X, y)

    def second_100() -> None:
        Learner(Gaussian(stream.scale), SquaredHinge(), Newton(), Project(100)).learn(stream.X, y)

    first, second_ = best_of(6, first_100, second_100)
    add(rows, "a pass over ijcnn1, 100 points / first order", second_ / first, 3.0, 1.5, unit="x")
    idle = []
    for rule, loss in ((Newton(), SquaredHinge()), (Implicit(1.0), Hinge())):
        learner = Learner(Gaussian(stream.scale), loss, rule, Project(100))
        learner.learn(stream.X[:5000], y[:5000])
        sure = learner.score(stream.X)
        idle.append((learner, np.where(sure >= 0, 1.0, -1.0), np.abs(sure) > 1.001))
    rested = [lambda one=one: one[0].learn(stream.X[one[2]], one[1][one[2]]) for one in idle]
    before = [one[0].updates for one in idle]
    times_ = best_of(6, *rested)
    assert [one[0].updates for one in idle] == before, "a row has made a step"
    counts = [int(one[2].sum()) for one in idle]
    add(rows, "rows without a step / first order", times_[0] / counts[0] / (times_[1] / counts[1]), 1.05, 1.0, unit="x")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", action="append", choices=SETS, help="this set; printed only")
    parser.add_argument("--times", action="store_true", help="only the times")
    parser.add_argument("--accuracy", action="store_true", help="without the times")
    arguments = parser.parse_args()
    page = DOCS / "second_order.md"
    if not arguments.only and not arguments.accuracy:
        report("newton_times", times(), f"Processor time, best of several, in turns. {machine()}.", page)
    if arguments.times:
        return
    text = accuracy(arguments.only or list(SETS))
    print(text)
    if not arguments.only:
        what = "Errors, RMSE for abalone and Mackey-Glass; the numbers of the others are those of the last contest"
        publish("newton", f"{text}\n\n{what}. One thread. {machine()}.", page)


if __name__ == "__main__":
    main()
