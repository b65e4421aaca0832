"""What each update rule costs on the same stream with the same number of support points: part of ``make bench``."""

from __future__ import annotations

import argparse

import numpy as np
from harness import DOCS, Row, add, best_of, centres_stream, machine, mnist, progress, report, table

from gossamer import Learner
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Loss, Multiclass, Softmax
from gossamer.rules import (
    ALMA,
    ROMMA,
    SVMD,
    Adatron,
    Gradient,
    Implicit,
    PassiveAggressive,
    Perceptron,
    Projection,
    Rule,
)

RULES: dict[str, tuple[Rule, Loss]] = {
    "NORMA": (Gradient(0.5, 0.01), Hinge()),
    "ILK / SILK": (Implicit(1.0, reg=0.01), Hinge()),
    "kernel perceptron": (Perceptron(), Hinge(0.0)),
    "Herbster's projection": (Projection(), Hinge()),
    "the same in a norm ball": (Projection(radius=10.0), Hinge()),
    "PA-I": (PassiveAggressive(1.0), Hinge()),
    "PA-II": (PassiveAggressive(1.0, "PA-II"), Hinge()),
    "ALMA": (ALMA(0.9), Hinge()),
    "ROMMA": (ROMMA(), Hinge()),
    "aggressive ROMMA": (ROMMA(aggressive=True), Hinge()),
    "Kernel-Adatron": (Adatron(0.5, C=1.0), Hinge()),
    "SVMD": (SVMD(0.5, 0.01), Hinge()),
    "SVMD, implicit steps": (SVMD(0.5, 0.01, C=1.0), Hinge()),
}


def many_classes(rows: list[Row], quick: bool) -> str:
    """Ten classes, one support set."""
    X, digits, source = mnist()
    if quick:
        X, digits = X[:3000], digits[:3000]
    progress(f"{source}: two and ten classes")
    signs, rule = np.where(digits < 5, 1.0, -1.0), Implicit(10.0, reg=5e-5)

    def run(loss: Loss, y: np.ndarray) -> None:
        Learner(Gaussian(0.02), loss, rule, Smallest(128)).learn(X, y)

    binary, exact, runner_up, softmax = best_of(
        1 if quick else 3,
        lambda: run(Hinge(), signs),
        lambda: run(Multiclass(), digits),
        lambda: run(Multiclass(step="runner_up"), digits),
        lambda: run(Softmax(), digits),
    )
    shape = f"{len(X):,} x 784 float32, Gaussian, budget 128"
    add(rows, f"{shape}: SILK with 10 classes (exact steps) / two classes", exact / binary, 1.5, 1.3)
    add(rows, "the same, exact steps / the paper's runner-up steps", exact / runner_up, 1.3, 1.1)
    print(f"softmax, 10 classes / two classes: {softmax / binary:.2f} (every row moves every class)")
    norma, svmd = best_of(
        1 if quick else 3,
        lambda: Learner(Gaussian(0.02), Hinge(), Gradient(0.5, 0.001), Oldest(128)).learn(X, signs),
        lambda: Learner(Gaussian(0.02), Hinge(), SVMD(0.5, 0.001), Oldest(128)).learn(X, signs),
    )
    add(rows, f"{shape}: SVMD / NORMA", svmd / norma, 1.5, 1.2)
    return source


def each_rule(rows: list[Row], quick: bool) -> str:
    """All rules on one narrow stream, where the rule's own work shows most; returns their table."""
    X, y = centres_stream(20_000 if quick else 200_000, 16, seed=1)
    progress(f"{len(X):,} x 16: every rule")

    def run(rule: Rule, loss: Loss) -> Learner:
        learner = Learner(Gaussian(0.05), loss, rule, Oldest(128))
        learner.learn(X, y)
        return learner

    times = best_of(1 if quick else 5, *(lambda rule=rule, loss=loss: run(rule, loss) for rule, loss in RULES.values()))
    lines = ["| rule | us per row | / NORMA | rows that update |", "|---|---|---|---|"]
    for (name, parts), seconds in zip(RULES.items(), times, strict=True):
        share = run(*parts).updates / len(X)
        lines.append(f"| {name} | {1e6 * seconds / len(X):.2f} | {seconds / times[0]:.2f} | {share:.0%} |")
    slowest = max(range(len(times)), key=times.__getitem__)
    work = f"{len(X):,} x 16, Gaussian, 128 points: the slowest rule ({list(RULES)[slowest]}) / NORMA"
    add(rows, work, times[slowest] / times[0], 2.0, 1.5)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows: list[Row] = []
    source = many_classes(rows, quick)
    rules = each_rule(rows, quick)
    note = (
        f"{rules}\n\nOne thread, best of 3 (images) and 5 (rules) taken in turns within one run; images: {source}. "
        f"{machine()}."
    )
    if quick:
        print(table(rows), note, sep="\n\n")
    else:
        report("rules", rows, note, page=DOCS / "performance.md")


if __name__ == "__main__":
    main()
