"""Second-order steps: accuracy by the protocol of the contest, and time beside the first order: ``make bench-newton``.

The settings of every entry are chosen on rows that are not scored, as in ``contest.py``; the tables go to
``docs/second_order.md``.

    python benchmarks/newton.py                  # everything: some minutes
    python benchmarks/newton.py --only ijcnn1    # some sets, printed
"""

from __future__ import annotations

import argparse

import numpy as np
from contest import processes, tuned
from entries import FULL, Entry, implicit, second_order
from harness import DOCS, Row, add, best_of, machine, progress, publish, report
from play import scored
from standings import number
from works import WORKS, Work

from gossamer import Learner
from gossamer.budgets import Project
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, SquaredHinge
from gossamer.rules import Implicit, Newton

SETS = ("ijcnn1", "abalone", "Mackey-Glass", "MNIST 0-4 / 5-9", "MNIST", "elec2", "SEA", "rotating XOR", "a9a")
SIZES = (100, 256, 500)


def accuracy(names: list[str]) -> str:
    """The scores of Newton and of SILK with the same points, a line for each set."""
    everybody: list[Entry] = [second_order(f"Newton, {size} points", Project(size)) for size in SIZES]
    everybody += [implicit(f"SILK, {size} points", Project(size))[0] for size in (100, 500)]
    lines = [f"| set | {' | '.join(entry.name for entry in everybody)} |", f"|---|{'---|' * len(everybody)}"]
    with processes(2, fresh=False) as tuners, processes(1, fresh=True) as players:
        for name in names:
            work: Work = WORKS[name]().first(FULL.rows)
            settings = tuned(tuners, work, everybody, FULL)
            found = []
            for entry, setting in zip(everybody, settings, strict=True):
                played = players.submit(scored, entry, setting, work, None).result()
                found.append(number(work.measured(played.predictions, work.longest)))
                progress(f"{name}, {entry.name}: {found[-1]} with {setting}, {played.seconds:.2f} s")
            lines.append(f"| {name}, {work.metric} | {' | '.join(found)} |")
    return "\n".join(lines)


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

        pass_, bare = best_of(7, second, products)
        about = f"a row with a step, {size} points, whole pass / one matrix-vector product"
        add(rows, about, pass_ / bare, 6.0, 3.0, unit="x")

    def first_100() -> None:
        Learner(Gaussian(stream.scale), Hinge(), Implicit(1.0), Project(100)).learn(stream.X, y)

    def second_100() -> None:
        Learner(Gaussian(stream.scale), SquaredHinge(), Newton(), Project(100)).learn(stream.X, y)

    first, second_ = best_of(9, first_100, second_100)
    add(rows, "a pass over ijcnn1, 100 points / first order", second_ / first, 3.0, 1.5, unit="x")
    idle = []
    for rule, loss in ((Newton(), SquaredHinge()), (Implicit(1.0), Hinge())):
        learner = Learner(Gaussian(stream.scale), loss, rule, Project(100))
        learner.learn(stream.X[:5000], y[:5000])
        sure = learner.score(stream.X)
        idle.append((learner, np.where(sure >= 0, 1.0, -1.0), np.abs(sure) > 1.001))
    rested = [lambda one=one: one[0].learn(stream.X[one[2]], one[1][one[2]]) for one in idle]
    before = [one[0].updates for one in idle]
    times_ = best_of(9, *rested)
    assert [one[0].updates for one in idle] == before, "a row has made a step"
    counts = [int(one[2].sum()) for one in idle]
    add(rows, "rows without a step / first order", times_[0] / counts[0] / (times_[1] / counts[1]), 1.05, 1.0, unit="x")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", action="append", choices=SETS, help="this set; printed only")
    parser.add_argument("--times", action="store_true", help="only the times")
    arguments = parser.parse_args()
    page = DOCS / "second_order.md"
    if not arguments.only:
        report("newton_times", times(), f"Best of several, in turns. {machine()}.", page)
    if arguments.times:
        return
    text = accuracy(arguments.only or list(SETS))
    print(text)
    if not arguments.only:
        publish("newton", f"{text}\n\nOne thread. {machine()}.", page)


if __name__ == "__main__":
    main()
