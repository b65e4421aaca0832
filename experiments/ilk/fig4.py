"""Cheng et al. (2006), Fig. 4: one pass over MNIST with 128 support points: SILK, SVMD and NORMA, and SILK's buffer.

(a, b) the digits 0-4 against 5-9 with a polynomial kernel of degree 9; (c, d) ten classes with a Gaussian kernel. SILK
runs with the paper's tau = 5e-5 and C = 100 and with tuned ones; the paper took the others' parameters from elsewhere,
here they are tuned: the same number of settings for each, on the test file, which is not scored. The training file is
scored, in several orders.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from benchmarks.datasets import Dataset, mnist, two_halves
from experiments.figure import COLOURS, Data, Figure, Progress
from experiments.ilk.common import each, standard_error
from gossamer import Learner
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Gaussian, Kernel, Polynomial
from gossamer.losses import Hinge, Loss, Multiclass
from gossamer.rules import SVMD, Gradient, Implicit, Rule

BUFFER, BUFFERS = 128, (32, 64, 128, 256, 512)
ORDERS, POINTS = 5, 120
#: So many settings of each algorithm are tried on a long stream.
FINALISTS = 16
Try = tuple[str, dict[str, Any]]
PAPER = "SILK, τ and C of the paper"
EXACT = "SILK, exact step"


@dataclass(frozen=True)
class Algorithm:
    """How one algorithm is made from a setting, and the settings to try (beside the kernel's)."""

    budget: Callable[[int], Oldest | Smallest]
    rule: Callable[..., Rule]
    grid: tuple[dict[str, Any], ...]
    exact: bool = False


def grid(**values: Sequence[Any]) -> tuple[dict[str, Any], ...]:
    return tuple(dict(zip(values, one, strict=True)) for one in itertools.product(*values.values()))


def implicit(C: float, decay: float) -> Rule:
    return Implicit(C=C, reg=decay / (1 - decay))


def gradient(rate: float, decay: float, schedule: str) -> Rule:
    return Gradient(rate=rate, reg=decay / rate, schedule=schedule)


def adapted(rate: float, decay: float, meta: float) -> Rule:
    return SVMD(rate=rate, reg=decay / rate, meta=meta)


SILK_GRID = grid(C=(0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0, 100.0), decay=(0.0, 1e-5, 5e-5, 2e-4, 1e-3, 1e-2))
#: 48 settings each, times those of the kernel. A decay is the share of f that a round (the first one, where the rate
#: changes) takes away.
ALGORITHMS = {
    PAPER: Algorithm(Smallest, implicit, grid(C=(100.0,), decay=(5e-5,))),
    "SILK": Algorithm(Smallest, implicit, SILK_GRID),
    EXACT: Algorithm(Smallest, implicit, SILK_GRID, exact=True),
    "SVMD": Algorithm(
        Oldest, adapted, grid(rate=(0.3, 1.0, 10.0, 100.0), decay=(1e-5, 1e-3, 1e-2), meta=(1e-3, 1e-2, 0.1, 1.0))
    ),
    "NORMA": Algorithm(
        Oldest, gradient,
        grid(rate=(0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0), decay=(1e-5, 1e-3, 1e-2),
             schedule=("constant", "inverse_sqrt")),
    ),
}  # fmt: skip
STYLES = {PAPER: (COLOURS["SILK"], ":"), "SILK": (COLOURS["ILK"], "-"), EXACT: (COLOURS["ILK"], "--"),
          "SVMD": (COLOURS["SVMD"], "-"), "NORMA": (COLOURS["NORMA"], "-")}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Two panels: the digits, the kernel with its settings, and who takes part."""

    title: str
    data: Callable[[Dataset], Dataset]
    kernel: Callable[[float], Kernel]
    shapes: tuple[float, ...]
    shape: str
    names: tuple[str, ...]

    def learner(self, name: str, setting: dict[str, Any], size: int = BUFFER) -> Learner:
        """The learner of a setting; the paper's step for several classes has one runner-up."""
        parameters = dict(setting)
        algorithm, kernel = ALGORITHMS[name], self.kernel(parameters.pop("shape"))
        loss: Loss = Hinge()
        if self.shape == "gamma":
            loss = Multiclass(classes=10, step="exact" if algorithm.exact or "SILK" not in name else "runner_up")
        return Learner(kernel, loss, algorithm.rule(**parameters), algorithm.budget(size))

    def settings(self, name: str, every: int) -> list[dict[str, Any]]:
        """Those to try: of the algorithm's own, one of so many."""
        own = ALGORITHMS[name].grid[::every]
        return [{"shape": shape, **one} for shape, one in itertools.product(self.shapes, own)]

    def text(self, setting: dict[str, Any]) -> str:
        return ", ".join(f"{self.shape if name == 'shape' else name} {value}" for name, value in setting.items())


def unit_halves(digits: Dataset) -> Dataset:
    """0-4 against 5-9, every row of length 1: a ninth power of raw products would span 20 decades."""
    X = digits.X / np.linalg.norm(digits.X, axis=1, keepdims=True)
    return two_halves(Dataset(digits.name, X, digits.y, digits.task))


TASKS = {
    "binary": Task(
        "0-4 against 5-9, polynomial kernel of degree 9", unit_halves,
        lambda offset: Polynomial(9, gamma=1 / (1 + offset), coef0=offset / (1 + offset)), (0.0, 1.0), "offset",
        (PAPER, "SILK", "SVMD", "NORMA"),
    ),
    "ten": Task("ten classes, Gaussian kernel", lambda digits: digits, Gaussian, (0.03, 0.06, 0.12, 0.2), "gamma",
                tuple(ALGORITHMS)),
}  # fmt: skip


def wrong(learner: Learner, data: Dataset) -> np.ndarray:
    """Which rows were judged wrongly before they were learned; a score of 0 is wrong."""
    scores = np.asarray(learner.learn(data.X, data.y))
    return data.y * scores <= 0 if scores.ndim == 1 else scores.argmax(axis=1) != data.y


def tune(
    task: Task, aside: Dataset, settings: list[Try], passes: int, progress: Progress, key: str
) -> tuple[dict[str, Any], np.ndarray]:
    """The best setting of each algorithm: all by one pass over the rows aside; of each the best by so many passes, each
    in another order, as long as the stream that is scored (128 support points cannot learn 10,000 rows by heart). Also
    the errors in the first pass."""
    once = task.data(aside)
    first = each(lambda one: wrong(task.learner(*one), once).mean(), settings, progress, f"{key}, tuning")
    ranked = [settings[i] for i in np.argsort(first, kind="stable")]
    finalists = [one for name in task.names for one in [some for some in ranked if some[0] == name][:FINALISTS]]
    order = np.concatenate([np.random.default_rng(i).permutation(len(once.X)) for i in range(passes)])
    again = Dataset(once.name, once.X[order], once.y[order], once.task)
    errors = each(lambda one: wrong(task.learner(*one), again).mean(), finalists, progress, f"{key}, tuning again")
    best: dict[str, Any] = {}
    for i in np.argsort(errors, kind="stable"):
        best.setdefault(finalists[i][0], finalists[i][1])
    return best, np.array(first)


def compute(quick: bool, progress: Progress) -> Data:
    scored, every, orders, buffers, passes = mnist(quick=quick), 1, ORDERS, BUFFERS, 6
    if quick:
        every, orders, buffers, passes = 9, 2, (16, 64, 128), 2
        digits = scored.shuffled(0)
        aside, scored = digits.first(600), Dataset(digits.name, digits.X[600:3600], digits.y[600:3600], digits.task)
    else:
        aside = mnist(test=True).shuffled(0)
    rows = np.unique(np.geomspace(100, len(scored.X), POINTS).astype(int))
    data: dict[str, np.ndarray] = {"rows": rows, "buffers": np.array(buffers), "data": np.array(scored.name)}
    for key, task in TASKS.items():
        tried = [(name, setting) for name in task.names for setting in task.settings(name, every)]
        best, first = tune(task, aside, tried, passes, progress, key)
        curves = np.empty((orders, len(task.names), len(rows)))
        grown = np.empty((orders, 2, len(buffers), len(rows)))
        for order in range(orders):
            stream = task.data(scored).shuffled(order)
            runs = [(name, best[name], BUFFER) for name in task.names]
            runs += [(name, best[name], size) for name in (PAPER, "SILK") for size in buffers if size != BUFFER]
            text = f"{key}, order {order + 1} of {orders}"
            found = each(
                lambda run, task=task, stream=stream: wrong(task.learner(*run), stream).cumsum()[rows - 1] / rows,
                runs, progress, text,
            )  # fmt: skip
            results = {(name, size): curve for (name, _, size), curve in zip(runs, found, strict=True)}
            curves[order] = [results[name, BUFFER] for name in task.names]
            grown[order] = [[results[name, size] for size in buffers] for name in (PAPER, "SILK")]
        data |= {
            f"{key}_tried": np.array([f"{name}: {task.text(setting)}" for name, setting in tried]),
            f"{key}_tried_errors": first, f"{key}_tuned": np.array([task.text(best[name]) for name in task.names]),
        }  # fmt: skip
        data |= {
            f"{key}_curves": curves.mean(axis=0), f"{key}_finals": curves[:, :, -1],
            f"{key}_buffers": grown.mean(axis=0), f"{key}_buffer_finals": grown[:, :, :, -1],
            f"{key}_names": np.array(task.names),
            f"{key}_tries": np.array([len(task.settings(name, every)) for name in task.names]),
        }  # fmt: skip
    return data


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(2, 2, figsize=(12, 10), layout="constrained")
    for (left, right), letters, (key, task) in zip(panels, ("ab", "cd"), TASKS.items(), strict=True):
        draw_race(left, data, key, f"({letters[0]}) {task.title}")
        draw_buffers(right, data, key, f"({letters[1]}) the same, SILK with other buffers")
        for axes in (left, right):
            axes.set(xlabel=f"rows of {data['data']} seen", ylabel="errors so far, %", xscale="log")
            axes.grid(alpha=0.3)
            axes.title.set_fontsize(11)
    return picture


def draw_race(axes: Axes, data: Data, key: str, title: str) -> None:
    """The running error, mean over the orders; the parameters are printed below."""
    lines = []
    for i, name in enumerate(data[f"{key}_names"]):
        finals = 100 * data[f"{key}_finals"][:, i]
        colour, style = STYLES[name]
        label = f"{name}: {finals.mean():.2f} ± {standard_error(finals):.2f} %"
        axes.plot(data["rows"], 100 * data[f"{key}_curves"][i], style, color=colour, label=label)
        lines.append(f"{name}: {data[f'{key}_tuned'][i]} (best of {data[f'{key}_tries'][i]})")
    orders, least = len(data[f"{key}_finals"]), 100 * data[f"{key}_curves"].min()
    axes.set_ylim(0.97 * least, 1.6 * least)
    axes.set_title(f"{title}; buffer {BUFFER}")
    axes.legend(frameon=False, title=f"at the end, {orders} orders ± standard error")
    axes.text(0.5, -0.13, "\n".join(lines), transform=axes.transAxes, ha="center", va="top", fontsize=7)


def draw_buffers(axes: Axes, data: Data, key: str, title: str) -> None:
    """SILK's running error by buffer, with its two settings."""
    for i, style in enumerate((":", "-")):
        for j, size in enumerate(data["buffers"]):
            finals = 100 * data[f"{key}_buffer_finals"][:, i, j]
            colour = plt.colormaps["viridis"](0.9 * (1 - j / (len(data["buffers"]) - 1)))
            label = f"{size}, {'paper' if i == 0 else 'tuned at 128'}: {finals.mean():.2f} %"
            axes.plot(data["rows"], 100 * data[f"{key}_buffers"][i, j], style, color=colour, label=label)
    axes.set_title(title)
    axes.set_ylim(0, 130 * data[f"{key}_buffers"].max())
    axes.legend(frameon=False, ncols=2, fontsize=8.5, title="support points, setting: error at the end")


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
