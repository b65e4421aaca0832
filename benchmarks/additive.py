"""Additive kernels in search trees against the compiled dense loop: part of ``make bench``."""

from __future__ import annotations

import argparse
import gc
import io
import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
from harness import DOCS, Row, add, best_of, machine, progress, report, table

from gossamer import Learner, plots
from gossamer.budgets import Budget, Oldest
from gossamer.kernels import Additive, Exponential, Kernel, Matern, Spline
from gossamer.losses import EpsilonInsensitive, Squared
from gossamer.plots import style
from gossamer.rules import Implicit, Projection

PICTURE = Path(__file__).parent.parent / "docs" / "additive.png"
FEATURES = 8
KERNELS: dict[str, Kernel] = {
    "Exponential": Exponential(0.3), "Matern 3/2": Matern(1.5, 0.3), "Spline(1)": Spline(1)
}  # fmt: skip


def stream(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A sum of functions of 8 features in (0, 1), with noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rows, FEATURES))
    return X, np.sin(6 * X).sum(axis=1) + 0.5 * rng.normal(size=rows)


def storing(kernel: Kernel, backend: str, budget: Budget | None = None) -> Learner:
    """A learner that makes a term of every row."""
    return Learner(Additive(kernel), Squared(), Implicit(C=0.01, reg=1e-6), budget, backend=backend)


def pass_and_memory(rows: list[Row], quick: bool) -> None:
    """One pass of constrained projection, nothing dropped; first, while nothing else has used memory."""
    count = 20_000 if quick else 1_000_000
    progress(f"one pass over {count:,} x {FEATURES}")
    X, y = stream(count, seed=1)
    rule = Projection(radius=100.0)
    Learner(Additive(Spline(1)), EpsilonInsensitive(0.01), rule).learn(X[:1000], y[:1000])  # warm
    gc.collect()
    process = psutil.Process()
    before, seconds = process.memory_info().rss, 0.0
    learner = Learner(Additive(Spline(1)), EpsilonInsensitive(0.01), rule, backend="trees")
    for start in range(0, count, 10_000):
        part = slice(start, start + 10_000)
        begin = time.perf_counter()
        learner.learn(X[part], y[part])
        seconds += time.perf_counter() - begin
    gc.collect()
    used = process.memory_info().rss - before
    terms = len(learner.births)
    work = f"one pass over {count:,} x {FEATURES}, constrained projection, Spline(1), {terms:,} terms kept"
    add(rows, work, seconds, 60, 15, unit=" s")
    add(rows, "resident memory per term and coordinate after it, all included", used / terms / FEATURES, 100, 64,
        unit=" bytes")  # fmt: skip


def per_row(learner: Learner, X: np.ndarray, y: np.ndarray, block: int) -> float:
    """The best time of learning a row, over blocks of rows."""
    times = []
    for start in range(0, len(X) - block + 1, block):
        begin = time.perf_counter()
        learner.learn(X[start : start + block], y[start : start + block])
        times.append((time.perf_counter() - begin) / block)
    return min(times)


def growth(rows: list[Row], quick: bool) -> dict[str, list[tuple[int, float]]]:
    """Cost per trial against the number of terms, of both backends with the same terms."""
    largest, dense_largest = (10_000, 3_000) if quick else (1_000_000, 100_000)
    X, y = stream(largest + 20_000, seed=2)
    sizes = [round(10 ** (k / 2)) for k in range(4, 13) if round(10 ** (k / 2)) <= largest]
    block = 200  # the small trees grow by as much: each time is that of their mean size
    found: dict[str, list[tuple[int, float]]] = {"trees": [], "dense": []}
    trees = storing(Spline(1), "trees")
    for size in sizes:
        progress(f"{size:,} terms")
        trees.learn(X[trees.steps : size], y[trees.steps : size])
        state, blocks = trees.state(), 1 if size <= 1000 else 10

        def cost(backend: str, repeats: int, state: dict[str, object] = state, blocks: int = blocks) -> float:
            times = []
            for _ in range(repeats):
                learner = storing(Spline(1), backend)
                learner.restore(state)
                rest = slice(learner.steps, learner.steps + blocks * block)
                times.append(per_row(learner, X[rest], y[rest], block))
            return min(times)

        repeats = 30 if size <= 1000 else 3
        found["trees"].append((size + block // 2, cost("trees", repeats)))
        if size <= dense_largest:
            found["dense"].append((size + block // 2, cost("native", repeats)))
    trees_cost = {m - block // 2: cost for m, cost in found["trees"]}
    ratio = trees_cost[largest] / trees_cost[1000]
    add(rows, f"one predict + update at m = {largest:,} terms / the same at m = 1,000", ratio, 8, 4)
    return found


def against_dense(rows: list[Row], quick: bool) -> None:
    """The same terms in trees and in the dense loop, which learns a block of rows at once; in turns, the best block."""
    size, block = (3_000, 200) if quick else (100_000, 200)
    X, y = stream(size + 100 * block, seed=4)
    for name, kernel in KERNELS.items():
        progress(f"against the dense loop, {name}")
        trees, dense = storing(kernel, "trees"), storing(kernel, "native")
        trees.learn(X[:size], y[:size])
        dense.restore(trees.state())
        best = [math.inf, math.inf]
        for _ in range(5):
            for i, (learner, blocks) in enumerate(((trees, 10), (dense, 3))):  # trees have to find their caches again
                part = slice(learner.steps, learner.steps + blocks * block)
                best[i] = min(best[i], per_row(learner, X[part], y[part], block))
        work = f"{name}, {FEATURES} coordinates, m = {size:,}: against the compiled dense evaluation"
        add(rows, work, best[1] / best[0], 100, 300, faster=True)


def crossover(rows: list[Row], quick: bool) -> str:
    """The number of terms from which trees win, at a budget that is full: each row comes and another goes."""
    sizes = [32, 64, 128, 256, 512, 1024] if quick else [32, 64, 128, 256, 512, 1024, 2048, 4096]
    X, y = stream(20_000, seed=3)
    lines = ["| terms kept | " + " | ".join(f"{name}: trees, dense" for name in KERNELS) + " |"]
    lines.append("|---" * (len(KERNELS) + 1) + "|")
    costs: dict[str, list[tuple[float, float]]] = {name: [] for name in KERNELS}
    for size in sizes:
        progress(f"crossover, {size:,} terms")
        block = 1000 if quick else 4000

        def job(kernel: Kernel, backend: str, size: int = size, block: int = block) -> Callable[[], object]:
            learner = storing(kernel, backend, Oldest(size))
            learner.learn(X[:size], y[:size])
            return lambda: learner.learn(X[-block:], y[-block:])

        cells = []
        for name, kernel in KERNELS.items():
            pair = best_of(1 if quick else 3, job(kernel, "trees"), job(kernel, "native"))
            costs[name].append((pair[0] / block, pair[1] / block))
            cells.append(" us, ".join(f"{1e6 * seconds / block:.1f}" for seconds in pair) + " us")
        lines.append(f"| {size:,} | " + " | ".join(cells) + " |")
    found = {name: _meeting(sizes, pairs) for name, pairs in costs.items()}
    text = ", ".join(f"{name} {size:,.0f}" for name, size in found.items())
    largest = max(found.values())
    rows.append(Row("crossover: terms from which trees beat the dense loop", text, "", "", largest, True))
    return "\n".join(lines)


def _meeting(sizes: list[int], pairs: list[tuple[float, float]]) -> float:
    """Where the line of the trees goes below the other for good; straight between sizes, in logarithms."""
    gaps = [math.log(trees / dense) for trees, dense in pairs]
    behind = [i for i, gap in enumerate(gaps) if gap > 0]
    if not behind:
        return float(sizes[0])
    i = behind[-1]
    if i + 1 == len(sizes):
        return float("inf")
    share = gaps[i] / (gaps[i] - gaps[i + 1])
    return float(sizes[i] * (sizes[i + 1] / sizes[i]) ** share)


def draw(found: dict[str, list[tuple[int, float]]], target: Path | io.BytesIO) -> None:
    """Cost per trial against the number of terms, log-log: the paper's claim."""
    figure = plots.new_figure(8, 4.6)
    axes = figure.add_axes((0.1, 0.14, 0.66, 0.8))
    names = {"trees": "search trees", "dense": "dense loop"}
    for (name, points), colour in zip(found.items(), style.COLOURS, strict=False):
        sizes, seconds = np.array(points).T
        axes.loglog(sizes, 1e6 * seconds, "o-", color=colour, linewidth=1.8, markersize=4)
        axes.annotate(names[name], (sizes[-1], 1e6 * seconds[-1]), (8, 0), textcoords="offset points", color=colour,
                      fontsize=style.MEDIUM, fontweight="bold", va="center", annotation_clip=False)  # fmt: skip
    axes.set_xlabel("terms of the expansion, m", fontsize=style.MEDIUM, color=style.INK)
    axes.set_ylabel("one predict + update, us", fontsize=style.MEDIUM, color=style.INK)
    axes.tick_params(labelsize=style.SMALL, colors=style.INK)
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, format="png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    first: list[Row] = []
    rows: list[Row] = []
    pass_and_memory(first, quick)
    found = growth(rows, quick)
    against_dense(rows, quick)
    rows += reversed(first)
    text = crossover(rows, quick)
    note = f"{text}\n\nOne thread, best of several within one run, {FEATURES} features, float64. {machine()}."
    if quick:
        print(table(rows), note, sep="\n\n")
        draw(found, io.BytesIO())
    else:
        draw(found, PICTURE)
        report("additive", rows, note, page=DOCS / "additive.md")


if __name__ == "__main__":
    main()
