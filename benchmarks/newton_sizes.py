"""Second order at the sizes and on the sets of ``budgets.py``, beside everything in its table: ``make bench-newton``.

The same rows and number of settings as there; the results of the others are those that are stored in
``results/budgets_runs.json``. `Merge` up to 500 points, for time. The table goes to ``docs/second_order.md``.

    python benchmarks/newton_sizes.py                  # everything
    python benchmarks/newton_sizes.py --only elec2     # some sets
    python benchmarks/newton_sizes.py --orders 1       # of five, where the order means nothing
    python benchmarks/newton_sizes.py --resume         # what is not yet in out/newton_sizes.jsonl
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import budgets
import numpy as np
from budgets import SIZES, WIDTHS, Setting, sets
from datasets import Dataset
from harness import DOCS, RESULTS, machine, progress, publish

from gossamer import Learner
from gossamer.budgets import Merge, Project
from gossamer.kernels import Gaussian
from gossamer.losses import OneVsRest, Squared, SquaredHinge
from gossamer.rules import Newton

#: Noise and forgetting, with every width: 12 settings, as everybody has.
SETTINGS = tuple((width, *two) for width, two in itertools.product(WIDTHS, ((0.1, 1), (1, 1), (1, 0.999), (0.1, 0.95))))
OUT = Path(__file__).parent.parent / "out" / "newton_sizes.jsonl"


class SecondOrder:
    """`Newton` with a budget, one loss for each task."""

    settings = SETTINGS

    def __init__(self, budget: Callable[[int], Any]) -> None:
        self.budget = budget

    def scores(self, data: Dataset, gamma: float, setting: Setting, size: int, known: np.ndarray) -> np.ndarray:
        _, noise, forgetting = setting
        loss = {"binary": SquaredHinge(), "multiclass": OneVsRest(), "regression": Squared()}[data.task]
        return Learner(Gaussian(gamma), loss, Newton(noise, forgetting), self.budget(size)).learn(data.X, data.y)


OURS: dict[str, Any] = {"Newton, Project": SecondOrder(Project), "Newton, Merge": SecondOrder(Merge)}


def job(name: str, method: str, sizes: tuple[int, ...], orders: int) -> list[dict[str, Any]]:
    """One budget on one set."""
    budgets.METHODS.update(OURS)
    budgets.ORDERS, budgets.ORDERS_OF_2000 = min(orders, budgets.ORDERS), min(orders, budgets.ORDERS_OF_2000)
    return budgets.job(name, method, sizes)


def compare(ours: list[dict[str, Any]], others: list[dict[str, Any]]) -> str:
    """A row for each set and size: both of ours, the best of the others, and whether ours is not behind."""
    lines = ["| set | size | Newton, `Project` | Newton, `Merge` | best of the others | |", "|---|---|---|---|---|---|"]
    level = count = 0
    for name, size in itertools.product(sets(), SIZES):
        own = {r["method"]: r for r in ours if (r["set"], r["size"]) == (name, size)}
        if not own:
            continue
        mine = min(own.values(), key=lambda r: r["error"])
        best = min((r for r in others if (r["set"], r["size"]) == (name, size)), key=lambda r: r["error"])
        ahead = mine["error"] <= best["error"]
        near = mine["error"] <= best["error"] + max(mine["spread"], best["spread"])
        count, level = count + 1, level + near
        cells = [_cell(own.get(method), mine) for method in OURS]
        verdict = "lowest" if ahead else "within one standard error" if near else "behind"
        lines.append(f"| {name} | {size} | {' | '.join(cells)} | {_cell(best, None)} ({best['method']}) | {verdict} |")
    most = max(r["orders"] for r in ours)
    orders = f"the mean of {most} of the 5 orders where the order means nothing (the others: of all)"
    what = "Errors in percent (a regression: of the variance); each method chose among 12 settings on rows not scored"
    note = f"**Lowest or within one standard error in {level} of {count}** (must 40, aim 48). {what}; {orders}."
    return "\n".join([*lines, "", f"{note} {machine()}."])


def _cell(record: dict[str, Any] | None, best: dict[str, Any] | None) -> str:
    if record is None:
        return ""
    text = f"{100 * record['error']:.2f}" + (f" ± {100 * record['spread']:.2f}" if record["spread"] else "")
    return f"**{text}**" if record is best else text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", action="append", choices=sets(), help="this set; printed only")
    parser.add_argument("--orders", type=int, default=budgets.ORDERS, help="how many orders are scored")
    parser.add_argument("--resume", action="store_true", help="only what is not in out/newton_sizes.jsonl")
    arguments = parser.parse_args()
    OUT.parent.mkdir(exist_ok=True)
    if not arguments.resume:
        OUT.unlink(missing_ok=True)
    ours = [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []
    done = {(r["set"], r["method"], r["size"]) for r in ours}
    # settings of 2,000 points are those of 500, so the two are one job
    small, large = [(size,) for size in SIZES[:-2]], [SIZES[-2:]]
    wanted = [
        (name, method, sizes if method != "Newton, Merge" else sizes[:1])
        for sizes in (*small, *large) for name, method in itertools.product(arguments.only or sets(), OURS)
    ]  # fmt: skip
    wanted = [one for one in wanted if not all((one[0], one[1], size) in done for size in one[2])]
    start = time.monotonic()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as workers, OUT.open("a") as out:
        running = [workers.submit(job, *one, arguments.orders) for one in wanted]
        for count, future in enumerate(as_completed(running), 1):
            for record in future.result():
                ours.append(record)
                out.write(json.dumps(record) + "\n")
            out.flush()
            last = future.result()[-1]
            where = f"{last['set']}, {last['method']}, {last['size']}"
            progress(f"{count}/{len(running)} {where}: {last['error']:.4f} ({time.monotonic() - start:.0f} s)")
    others = json.loads((RESULTS / "budgets_runs.json").read_text())["runs"]
    text = compare(ours, others)
    print(text)
    if arguments.only:
        return
    (RESULTS / "newton_sizes.json").write_text(json.dumps({"machine": machine(), "runs": ours}, indent=1) + "\n")
    publish("newton_sizes", text, DOCS / "second_order.md")


if __name__ == "__main__":
    main()
