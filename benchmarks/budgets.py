"""What a budget costs in accuracy and in time: every budget of Gossamer and scikit-learn's approximations, by size.

Each method tries the same number of settings on rows that are not scored (a part of another order; of a stream in time,
its first rows), and the best learns the scored rows, each predicted before it is learned: 15,000 of a stream in time,
8,000 in each of five orders where the order means nothing (mean and standard error). 2,000 points take the settings of
500, and three orders. The table goes to ``docs/budgets.md``, the picture to ``docs/budgets.png``.

    python benchmarks/budgets.py                  # everything: about half an hour
    python benchmarks/budgets.py --only elec2     # some sets
    python benchmarks/budgets.py --resume         # what is not yet in out/budgets.jsonl
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets import Dataset
from harness import RESULTS, add, best_of, machine, progress, report
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import SGDClassifier, SGDRegressor

from gossamer import Learner, OnlineScaler
from gossamer.budgets import Fourier, Merge, Nystrom, Oldest, Project, Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Multiclass, Squared
from gossamer.rules import Gradient, Implicit

PAGE = Path(__file__).parent.parent / "docs" / "budgets.md"
SIZES = (50, 100, 200, 500, 2000)
ORDERS, ORDERS_OF_2000 = 5, 3
TUNING_ROWS, MOST_ROWS, MOST_IN_TIME = 2000, 8_000, 15_000

Setting = tuple[float, float, float]

#: The kernel's width, as multiples of 1 / the median squared distance; and two more numbers for each kind of learner.
WIDTHS = (1.0, 3.0, 9.0)
IMPLICIT = tuple(itertools.product(WIDTHS, (0.3, 3.0), (0.0, 1e-4)))  # C, reg
GRADIENT = tuple(itertools.product(WIDTHS, (0.1, 0.7), (0.0, 1e-3)))  # rate, reg
DESCENT = tuple(itertools.product(WIDTHS, (0.1, 2.0), (1e-6, 1e-4)))  # eta0, alpha


class Online:
    """A learner of Gossamer."""

    def __init__(self, rule: Any, budget: Callable[[int], Any], settings: tuple[Setting, ...]) -> None:
        self.rule, self.budget, self.settings = rule, budget, settings

    def scores(self, data: Dataset, gamma: float, setting: Setting, size: int, known: np.ndarray) -> np.ndarray:
        _, strength, decay = setting
        loss = {"binary": Hinge(), "multiclass": Multiclass(), "regression": Squared()}[data.task]
        return Learner(Gaussian(gamma), loss, self.rule(strength, reg=decay), self.budget(size)).learn(data.X, data.y)


class Descent:
    """Features of scikit-learn, made from the rows that settings are tried on, and its SGD: a row, two, four, ... up to
    a hundredth of the stream at a time, at most 500."""

    settings = DESCENT

    def __init__(self, features: Any) -> None:
        self.features = features

    def scores(self, data: Dataset, gamma: float, setting: Setting, size: int, known: np.ndarray) -> np.ndarray:
        _, eta0, alpha = setting
        features = self.features(gamma=gamma, n_components=min(size, len(known)), random_state=0).fit(known)
        common = {"learning_rate": "constant", "eta0": eta0, "alpha": alpha, "random_state": 0}
        classes = None if data.task == "regression" else np.unique(data.y)
        model = SGDRegressor(**common) if classes is None else SGDClassifier("hinge", **common)
        more = {} if classes is None else {"classes": classes}
        outputs = (10,) if data.task == "multiclass" else ()
        found = np.zeros((len(data.X), *outputs))
        start, rows = 0, 1
        while start < len(data.X):
            part = slice(start, start + rows)
            Z = features.transform(data.X[part])
            if start:
                found[part] = model.predict(Z) if classes is None else model.decision_function(Z)
            model.partial_fit(Z, data.y[part], **more)
            start, rows = part.stop, min(2 * rows, 500, max(20, len(data.X) // 100))
        return found


METHODS: dict[str, Any] = {
    "Project": Online(Implicit, Project, IMPLICIT),
    "Project, gradient steps": Online(Gradient, Project, GRADIENT),
    "Merge": Online(Implicit, Merge, IMPLICIT),
    "Nystrom": Online(Implicit, Nystrom, IMPLICIT),
    "Fourier": Online(Implicit, Fourier, IMPLICIT),
    "SILK (smallest)": Online(Implicit, Smallest, IMPLICIT),
    "NORMA (oldest)": Online(Gradient, Oldest, GRADIENT),
    "scikit-learn Nystroem": Descent(Nystroem),
    "scikit-learn RBFSampler": Descent(RBFSampler),
}
OURS = ("Project", "Project, gradient steps", "Merge", "Nystrom", "Fourier")
TO_BEAT = ("SILK (smallest)", "NORMA (oldest)", "scikit-learn Nystroem", "scikit-learn RBFSampler")


def scaled(data: Dataset, always: bool = False) -> Dataset:
    """Columns in an online scaler, which knows the rows before; targets of a regression by mean and deviation."""
    X, y = data.X, data.y
    if always or np.abs(X).max() > 1.5:
        order = np.arange(len(X)) if data.in_time else np.random.default_rng(7).permutation(len(X))
        X[order] = np.clip(OnlineScaler().learn_transform(X[order]), -5.0, 5.0)
    if data.task == "regression":
        y = (y - y.mean()) / y.std()
    return replace(data, X=np.ascontiguousarray(X), y=y)


def unit(data: Dataset) -> Dataset:
    """Rows of length 1."""
    return replace(data, X=data.X / np.linalg.norm(data.X, axis=1, keepdims=True))


def sets() -> dict[str, Callable[[], Dataset]]:
    """Every set by its name; the wide ones in the precision they come in."""
    return {
        "ijcnn1": datasets.ijcnn1,
        "a9a": datasets.a9a,
        "elec2": lambda: scaled(datasets.elec2(), always=True),
        "SEA": lambda: scaled(datasets.sea()),
        "MNIST, 2 classes": lambda: datasets.two_halves(unit(datasets.mnist())),
        "MNIST, 10 classes": lambda: unit(datasets.mnist()),
        "spambase": lambda: scaled(datasets.spambase()),
        "svmguide3": lambda: scaled(datasets.svmguide3()),
        "abalone": lambda: scaled(datasets.abalone()),
        "Mackey-Glass": lambda: scaled(datasets.mackey_glass()),
    }


def error(data: Dataset, scores: np.ndarray) -> float:
    """The share of wrong labels; for a regression the mean squared error, as a share of the variance."""
    if data.task == "binary":
        return float(np.mean(scores * data.y <= 0))
    if data.task == "multiclass":
        return float(np.mean(scores.argmax(axis=1) != data.y))
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.nan_to_num(np.mean((scores - data.y) ** 2), nan=math.inf))


def parts(data: Dataset) -> tuple[Dataset, list[Dataset]]:
    """The rows that settings are tried on, and the streams that are scored."""
    rows = len(data.X)
    tuning = min(TUNING_ROWS, rows // 4)
    if data.in_time:
        scored = slice(tuning, tuning + MOST_IN_TIME)
        return data.first(tuning), [replace(data, X=data.X[scored], y=data.y[scored])]
    tried = data.shuffled(1000).first(tuning)
    return tried, [data.shuffled(seed).first(MOST_ROWS) for seed in range(ORDERS)]


def median_gamma(X: np.ndarray) -> float:
    """1 / the median squared distance of pairs of rows."""
    rng = np.random.default_rng(0)
    A, B = X[rng.integers(0, len(X), 2000)], X[rng.integers(0, len(X), 2000)]
    return float(1.0 / np.median(((A - B).astype(np.float64) ** 2).sum(axis=1)))


def job(name: str, method: str, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    """One method on one set: tuned and scored at every size."""
    data = sets()[name]()
    tried, streams = parts(data)
    gamma, player, found, best = median_gamma(tried.X), METHODS[method], [], None
    for size in sizes:
        if size <= 500 or best is None:
            losses = []
            for setting in player.settings:
                scores = player.scores(tried, gamma * setting[0], setting, size, tried.X)
                losses.append(error(tried, scores))
            best = player.settings[int(np.argmin(losses))]
        errors, start = [], time.perf_counter()
        streams = streams[:ORDERS_OF_2000] if size == 2000 else streams
        for stream in streams:
            errors.append(error(stream, player.scores(stream, gamma * best[0], best, size, tried.X)))
        seconds = (time.perf_counter() - start) / sum(len(stream.X) for stream in streams)
        spread = float(np.std(errors, ddof=1) / math.sqrt(len(errors))) if len(errors) > 1 else 0.0
        record = {"set": name, "method": method, "size": size, "error": float(np.mean(errors)), "spread": spread}
        how = {"setting": best, "gamma": gamma * best[0], "orders": len(errors), "microseconds": 1e6 * seconds}
        found.append({**record, **how})
    return found


#: Six rows to compare with a first trial: set, size, the share it had right, and the grid of widths, C and decay.
WHOLE = (
    ("ijcnn1", 100, 0.960, (0.5, 1.0, 2.0), (0.5, 1.0, 2.0), (0.0, 1e-5)),
    ("elec2", 100, 0.892, (0.05, 0.1, 0.2), (3.0, 10.0, 30.0), (0.0, 1e-4)),
    ("SEA", 100, 0.883, (0.3, 1.0, 3.0), (0.05, 0.1, 0.2), (0.0, 1e-5)),
    ("a9a", 100, 0.835, (0.01, 0.03, 0.1), (0.05, 0.1, 0.2), (0.0, 1e-5)),
    ("MNIST, 2 classes", 128, 0.938, (2.0, 3.0, 4.0), (1.0, 3.0), (0.0,)),
    ("MNIST, 2 classes", 512, 0.967, (2.0, 3.0, 4.0), (1.0, 3.0), (0.0,)),
)


def hindsight(row: tuple[Any, ...], budget: str) -> dict[str, Any]:
    """One pass over all rows in the order of the file, the best of a small grid, as a first trial had it."""
    name, size, must, widths, strengths, decays = row
    data = sets()[name]()
    found = []
    for setting in itertools.product(widths, strengths, decays):
        player = METHODS[budget]
        scores = player.scores(data, setting[0], setting, size, data.X)
        found.append((1.0 - error(data, scores), setting))
    right, setting = max(found)
    return {"set": name, "size": size, "budget": budget, "right": right, "setting": setting, "must": must}


def speed() -> list[Any]:
    """What projecting costs beside dropping, one thread."""
    rows: list[Any] = []
    for name, size, gamma, must, aim in (("MNIST, 2 classes", 128, 3.0, 4.0, 2.0), ("ijcnn1", 100, 1.0, 3.0, 2.0)):
        data = sets()[name]()

        def run(budget: Any, data: Any = data, gamma: float = gamma) -> Callable[[], object]:
            return lambda: Learner(Gaussian(gamma), Hinge(), Implicit(C=1.0), budget).learn(data.X, data.y)

        project, smallest = best_of(5, run(Project(size)), run(Smallest(size)))
        add(rows, f"{name}, whole pass: `Project({size})` / `Smallest({size})`", project / smallest, must, aim)
    return rows


def by_size(records: list[dict[str, Any]]) -> str:
    """The long table in Markdown: a row for each set and size, the best in bold."""
    lines = [f"| set | size | {' | '.join(METHODS)} |", f"|---|---|{'---|' * len(METHODS)}"]
    cells = {(r["set"], r["size"], r["method"]): r for r in records}
    for name, size in itertools.product(sets(), SIZES):
        row = [cells.get((name, size, method)) for method in METHODS]
        errors = [cell["error"] for cell in row if cell is not None]
        if not errors:
            continue
        shown = []
        for cell in row:
            if cell is None:
                shown.append("")
                continue
            text = f"{100 * cell['error']:.2f}" if cell["error"] < 10 else "fell apart"
            text += f" ± {100 * cell['spread']:.2f}" if cell["spread"] else ""
            shown.append(f"**{text}**" if cell["error"] == min(errors) else text)
        lines.append(f"| {name} | {size} | {' | '.join(shown)} |")
    return "\n".join(lines)


def beaten(records: list[dict[str, Any]]) -> tuple[list[str], int]:
    """Where the best of ours is behind one that it should not be behind, and how many comparisons there are."""
    cells = {(r["set"], r["size"], r["method"]): r["error"] for r in records}
    lost, count = [], 0
    for name, size in itertools.product(sets(), SIZES):
        ours = {method: cells[name, size, method] for method in OURS if (name, size, method) in cells}
        theirs = {method: cells[name, size, method] for method in TO_BEAT if (name, size, method) in cells}
        if not ours or not theirs:
            continue
        count += 1
        best, other = min(ours, key=ours.__getitem__), min(theirs, key=theirs.__getitem__)
        if theirs[other] < ours[best]:
            gap = f"{100 * theirs[other]:.2f} against {100 * ours[best]:.2f} ({best})"
            lost.append(f"{name}, {size}: {other} {gap}")
    return lost, count


def jobs(names: list[str]) -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """The largest first, so that two processes end together."""
    for sizes in ((2000,), SIZES[:-1]):
        for name, method in itertools.product(names, METHODS):
            yield name, method, (500, *sizes) if sizes == (2000,) else sizes[:-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="SET", help="this set; nothing is published")
    parser.add_argument("--resume", action="store_true", help="go on with what is in out/budgets.jsonl")
    parser.add_argument("--speed", action="store_true", help="the times alone, printed")
    arguments = parser.parse_args()
    if datasets.folder() is None:
        sys.exit("GOSSAMER_DATA does not name a folder with the data sets")
    if arguments.speed:
        for row in speed():
            print(row.work, row.measured, row.must)
        return
    names = arguments.only or list(sets())
    path = Path("out") / "budgets.jsonl"
    path.parent.mkdir(exist_ok=True)
    if not arguments.resume:
        path.unlink(missing_ok=True)
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(line["set"], line["method"], line["size"]) for line in lines}
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    start = time.monotonic()
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as workers, path.open("a") as out:
        wanted = [one for one in jobs(names) if not all((one[0], one[1], size) in done for size in one[2])]
        running = [workers.submit(job, *one) for one in wanted]
        whole = [] if arguments.only else [workers.submit(hindsight, row, "Project") for row in WHOLE]
        for count, future in enumerate(as_completed(running), 1):
            for record in future.result():
                lines.append(record)
                out.write(json.dumps(record) + "\n")
            out.flush()
            last = future.result()[-1]
            spent = time.monotonic() - start
            progress(f"{count}/{len(running)} {last['set']}, {last['method']}: {last['error']:.4f} ({spent:.0f} s)")
        trial = [future.result() for future in whole]
    lost, count = beaten(lines)
    print(by_size(lines), *lost, f"behind in {len(lost)} of {count}", sep="\n")
    if arguments.only:
        return
    rows = speed()
    for one in trial:
        what = f"{one['set']}, {one['size']} points, all rows in file order, the best of the grid: right"
        add(rows, what, 100 * one["right"], 100 * one["must"], 100 * one["must"], faster=True, unit=" %")
        rows[-1].measured = f"{100 * one['right']:.2f} %"
    add(rows, "sets and sizes where another is ahead of the best of Gossamer's budgets", float(len(lost)), 0.0, 0.0)
    rows[-1].measured = f"{len(lost)} of {count}"
    names_lost = "; ".join(lost) if lost else "none"
    record = {"machine": machine(), "runs": lines, "trial": trial}
    (RESULTS / "budgets_runs.json").write_text(json.dumps(record, indent=1) + "\n")
    what = "Errors in percent (a regression: of the variance); each method chose among 12 settings on rows not scored."
    note = f"{what} Another is ahead: {names_lost}.\n\n{machine()}."
    report("budgets", rows, f"{by_size(lines)}\n\n{note}", PAGE)
    from draw_budgets import draw

    draw(lines, PAGE.parent / "budgets.png")


if __name__ == "__main__":
    main()
