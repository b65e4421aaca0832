"""Cheng et al. (2006), Fig. 1: mistakes of ILK, SILK, NORMA and truncated NORMA, and of ILK and NORMA without
forgetting, on streams that drift.

Two streams of 2,000 rows, each two classes of two moving Gaussians (the paper does not say how they move, nor which
kernel it used): four on a turning circle with a Gaussian kernel, and four that wander in a box with a polynomial kernel
of degree 5. For every algorithm 160 settings are tried on the same ten streams; the chosen one is run on 100 others.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from experiments.figure import COLOURS, Data, Figure, Progress
from experiments.ilk.common import each, standard_error, verdict
from gossamer import Learner, demo
from gossamer.budgets import Smallest
from gossamer.demo import TUNED as CONTESTANTS, Contestant
from gossamer.kernels import Gaussian, Kernel, Polynomial
from gossamer.losses import Hinge
from gossamer.synthetic import rotating_xor, wandering_box

ROWS, TRIALS, FIRST_SEED = 2000, 100, 5000
#: Every so many rows, a point of the curves.
THIN = 20
#: What a stream looks like from these rows on, for so many rows, is drawn beside it.
MOMENTS, SHOWN = (0, 400), 200
#: The paper's "lowest coefficient" to the letter; SILK weighs by the norm of what is lost, the same where k(x, x) = 1.
LITERAL = replace(CONTESTANTS[1], name="SILK by |a|", budget=Smallest(demo.BUDGET, by="coefficient"))
ALL = [*(replace(one, name=one.name.replace("NORMA trunc", "truncated NORMA")) for one in CONTESTANTS), LITERAL]
COLOUR = {**COLOURS, LITERAL.name: COLOURS["SILK"]}


@dataclass(frozen=True)
class Task:
    """A stream, the kernel that learns it, and the settings to try; a width scales the rows, x / width."""

    title: str
    stream: Callable[[int, int], tuple[np.ndarray, np.ndarray]]
    kernel: Callable[[float], Kernel]
    widths: Sequence[float]
    decays: Sequence[float]

    def settings(self, contestant: Contestant) -> list[Contestant]:
        """As many for those that do not forget: instead of a decay they choose among finer steps."""
        steps, decays = demo.STEPS, self.decays
        if not contestant.decay:
            steps, decays = np.geomspace(steps[0], steps[-1], len(steps) * len(decays)).tolist(), [0.0]
        grid = itertools.product(self.widths, steps, decays)
        return [replace(contestant, width=width, step=step, decay=decay) for width, step, decay in grid]

    def run(self, contestant: Contestant, seed: int) -> tuple[np.ndarray, int]:
        """Which rows of a stream were scored on the wrong side, or 0, before they were learned; and the steps taken."""
        X, y = self.stream(ROWS, seed)
        learner = Learner(self.kernel(contestant.width), Hinge(), contestant.learner().rule, contestant.budget)
        return np.asarray(y * learner.learn(X, y) <= 0), learner.updates

    def tried(self, contestant: Contestant, seeds: Sequence[int]) -> tuple[np.ndarray, int]:
        """The mistakes on each of the tuning streams, and the steps taken on all of them."""
        results = [self.run(contestant, seed) for seed in seeds]
        return np.array([wrong.sum() for wrong, _ in results]), sum(updates for _, updates in results)


TASKS = {
    "rotating": Task(
        "four Gaussians on a circle that turns once, Gaussian kernel", rotating_xor,
        lambda width: Gaussian(0.5 / width**2), demo.WIDTHS, demo.DECAYS,
    ),
    "box": Task(
        "four Gaussians that wander in a box, polynomial kernel (1 + <x, s> / width²)⁵", wandering_box,
        lambda width: Polynomial(5, gamma=1 / width**2), (0.7, 1.0, 1.5, 2.0), (0.0003, *demo.DECAYS[:-1]),
    ),
}  # fmt: skip


def choices(settings: list[Contestant], tried: list[tuple[np.ndarray, int]]) -> list[Contestant]:
    """Two ways to choose: the fewest mistakes; and of those within a standard error of that, the fewest steps, as the
    demo does, because steps may be best so small that all algorithms become the same Parzen window."""
    fewest = min(range(len(settings)), key=lambda i: tried[i][0].mean())
    gaps = [mistakes - tried[fewest][0] for mistakes, _ in tried]
    as_good = [i for i, gap in enumerate(gaps) if i == fewest or gap.mean() <= standard_error(gap)]
    return [settings[fewest], settings[min(as_good, key=lambda i: tried[i][1])]]


def compute(quick: bool, progress: Progress) -> Data:
    data: dict[str, np.ndarray] = {"names": np.array([contestant.name for contestant in ALL])}
    tuning, trials, every = (demo.TUNING_SEEDS[:2], 8, 7) if quick else (demo.TUNING_SEEDS, TRIALS, 1)
    seeds = range(FIRST_SEED, FIRST_SEED + trials)
    for name, task in TASKS.items():
        settings = [task.settings(contestant)[::every] for contestant in ALL]
        flat = list(itertools.chain(*settings))
        found = iter(each(lambda one, task=task: task.tried(one, tuning), flat, progress, f"{name}, tuning"))
        tried = [list(itertools.islice(found, len(some))) for some in settings]
        chosen = [choices(*pair) for pair in zip(settings, tried, strict=True)]
        runs = list(itertools.product(itertools.chain(*chosen), seeds))
        results = each(lambda run, task=task: task.run(*run)[0], runs, progress, f"{name}, trials")
        mistakes = np.array(results).reshape(len(ALL), 2, trials, ROWS).cumsum(axis=3)
        X, y = task.stream(ROWS, FIRST_SEED)
        data |= {
            f"{name}_mistakes": mistakes[:, :, :, -1],
            f"{name}_curves": mistakes[:, 0, :, THIN - 1 :: THIN].mean(axis=1),
            f"{name}_tuned": np.array([[[one.width, one.step, one.decay] for one in both] for both in chosen]),
            f"{name}_rows": np.stack([np.column_stack([X, y])[row : row + SHOWN] for row in MOMENTS]),
            f"{name}_tried": np.array([[mistakes.mean() for mistakes, _ in some] for some in tried]),
        }
    return data


def draw(data: Data, quick: bool) -> Picture:
    picture = plt.figure(figsize=(12, 9.4), layout="constrained")
    for part, (name, task) in zip(picture.subfigures(2, 1, hspace=0.03), TASKS.items(), strict=True):
        part.suptitle(task.title, fontweight="bold")
        grid = part.add_gridspec(3, 3, width_ratios=(0.55, 1.3, 1.3), height_ratios=(1, 1, 0.24))
        for i, (row, points) in enumerate(zip(MOMENTS, data[f"{name}_rows"], strict=True)):
            draw_rows(part.add_subplot(grid[i, 0]), row, points)
        draw_curves(part.add_subplot(grid[:2, 1]), data, name)
        draw_pairs(part.add_subplot(grid[:2, 2]), data, name)
        note = part.add_subplot(grid[2, :])
        note.axis("off")
        note.text(0.5, 1.0, words(data, name), transform=note.transAxes, ha="center", va="top", fontsize=7.5)
    return picture


def draw_rows(axes: Axes, row: int, points: np.ndarray) -> None:
    for label, mark, colour in ((1, "o", "0.15"), (-1, "x", "0.6")):
        X = points[points[:, 2] == label]
        axes.plot(X[:, 0], X[:, 1], mark, color=colour, markersize=2.5)
    axes.set(aspect="equal", adjustable="datalim", xticks=[], yticks=[])
    axes.set_title(f"rows {row + 1}-{row + len(points)}", fontsize=9)


def draw_curves(axes: Axes, data: Data, name: str) -> None:
    """The mean over the trials."""
    mistakes = data[f"{name}_mistakes"][:, 0]
    for i, one in enumerate(data["names"]):
        curve = data[f"{name}_curves"][i]
        label = f"{one}: {mistakes[i].mean():.1f} ± {standard_error(mistakes[i]):.1f}"
        style = "--" if "(0)" in one else ":" if "|a|" in one else "-"
        axes.plot(THIN * np.arange(1, len(curve) + 1), curve, style, color=COLOUR[one], label=label)
    axes.set(xlabel="rows", ylabel="mistakes so far", xlim=(0, ROWS), ylim=(0, None))
    axes.set_title(f"mistakes: mean of {mistakes.shape[1]} streams ± standard error", fontsize=10)
    axes.legend(frameon=False, loc="upper left", fontsize=8)
    axes.grid(alpha=0.3)


def pairs(data: Data, name: str) -> Iterator[tuple[str, str, int, np.ndarray, np.ndarray]]:
    """The mistakes of an implicit rule and of its explicit one, for both ways to choose."""
    names = list(data["names"])
    for (one, other), way in itertools.product((("ILK", "NORMA"), ("SILK", "truncated NORMA")), (0, 1)):
        yield one, other, way, *(data[f"{name}_mistakes"][names.index(which), way] for which in (one, other))


def draw_pairs(axes: Axes, data: Data, name: str) -> None:
    """A point for each stream: ILK against NORMA, SILK against truncated NORMA."""
    for one, other, way, mine, theirs in pairs(data, name):
        face = COLOURS[one] if way == 0 else "none"
        label = f"{one} against {other}, {('fewest mistakes', 'fewest steps')[way]}"
        axes.plot(theirs, mine, "o", markeredgecolor=COLOURS[one], markerfacecolor=face, markersize=4, label=label)
    low, high = min(axes.get_xlim()[0], axes.get_ylim()[0]), axes.get_xlim()[1]
    axes.axline((low, low), slope=1, color="0.5", linewidth=1)
    axes.set(xlabel="mistakes of NORMA, truncated NORMA", ylabel="mistakes of ILK, SILK")
    axes.set(xlim=(low, high), ylim=(low, low + 1.35 * (high - low)))
    axes.set_title("each stream: below the line the implicit step wins", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="upper left", title="settings chosen by", title_fontsize=8)
    axes.grid(alpha=0.3)


def words(data: Data, name: str) -> str:
    """The parameters, and who wins how often."""
    lines = []
    for way, title in enumerate(("fewest mistakes", "fewest steps within a standard error")):
        settings = []
        for one, (width, step, decay) in zip(data["names"], data[f"{name}_tuned"][:, way], strict=True):
            settings.append(f"{one} {width:g} / {step:.3g} / {decay:g}")
        lines.append(f"{title}: " + ", ".join(settings))
    won = [f"{one} than {other}: {verdict(mine, theirs)}" for one, other, _, mine, theirs in pairs(data, name)]
    tries = data[f"{name}_tried"].shape[1]
    return "\n".join([
        f"width / C or rate / decay, the best of {tries} on other streams (every row takes the share decay from f)",
        *lines, "by fewest mistakes: " + "; ".join(won[::2]), "by fewest steps: " + "; ".join(won[1::2]),
    ])  # fmt: skip


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
