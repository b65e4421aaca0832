"""How much the step size matters: implicit against explicit updates.

Cheng et al. 2006 (section 1) prefer the implicit update (2) to the explicit (3), which takes the gradient where it is
rather than where the step leads, and have no figure of what a badly chosen step costs. Here are ILK (its C) and NORMA
(its rate) on two drifting streams of labels -1 and +1 with two kernels and two losses. A polynomial's k(x, x) varies by
orders of magnitude from row to row, a Gaussian's is 1; the slope of the squared loss is not bounded, that of the hinge
is. For each step size, each algorithm takes the forgetting, of five, that makes the fewest mistakes on streams that are
not counted.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from experiments.figure import COLOURS, Data, Figure, Picture, Progress, neat
from gossamer import Learner
from gossamer.kernels import Gaussian, Kernel, Polynomial
from gossamer.losses import Hinge, Loss, Squared
from gossamer.rules import Gradient, Implicit, Rule
from gossamer.synthetic import rotating_xor, wandering_box

LOSSES: dict[str, Loss] = {"hinge": Hinge(), "squared loss": Squared()}
STREAMS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {"rotating": rotating_xor, "box": wandering_box}
KERNELS: dict[str, Kernel] = {"Gaussian": Gaussian(2.0), "polynomial": Polynomial(5, 1.0)}
CASES = list(itertools.product(LOSSES, STREAMS, KERNELS))
DECAYS = (0.001, 0.003, 0.01, 0.03, 0.1)  # the share of every coefficient that is forgotten in a round
DECADES = (0.01, 10.0)  # in which the worst step is sought


def rule(name: str, step: float, decay: float) -> Rule:
    """With the hinge, a step adds at most ``step`` times k(x, .); 1 - ``decay`` of the rest is kept."""
    if name == "ILK":
        return Implicit(C=step / (1 - decay), reg=decay / (1 - decay))
    return Gradient(rate=step, reg=decay / step, shorten=False)


def mistakes(loss: Loss, kernel: Kernel, rule: Rule, X: np.ndarray, y: np.ndarray) -> int:
    """What is not right: explicit steps may have overflowed to something that is no number."""
    return int((~(y * Learner(kernel, loss, rule).learn(X, y) > 0)).sum())


def compute(quick: bool, progress: Progress) -> Data:
    rows, seeds, tuning = (200, 2, 1) if quick else (2000, 30, 4)
    steps = 10.0 ** np.arange(-3, 2.01, 1.0 if quick else 0.5)
    data: dict[str, np.ndarray] = {"steps": steps, "rows": np.array(rows), "tuning_streams": np.array(tuning)}
    practice = {stream: [make(rows, seed=1000 + seed) for seed in range(tuning)] for stream, make in STREAMS.items()}
    counted = {stream: [make(rows, seed=seed) for seed in range(seeds)] for stream, make in STREAMS.items()}
    for loss, stream, kernel in CASES:
        parts = LOSSES[loss], KERNELS[kernel]
        for name in ("ILK", "NORMA"):
            found, chosen = np.zeros((seeds, len(steps)), dtype=int), np.zeros(len(steps))
            for place, step in enumerate(progress(steps.tolist(), f"{loss}, {stream}, {kernel}, {name}")):
                rules = {decay: rule(name, step, decay) for decay in DECAYS}
                tried = {d: sum(mistakes(*parts, rules[d], *rows) for rows in practice[stream]) for d in DECAYS}
                chosen[place] = min(DECAYS, key=tried.__getitem__)
                found[:, place] = [mistakes(*parts, rules[chosen[place]], *rows) for rows in counted[stream]]
            key = f"{loss}:{stream}:{kernel}:{name}"
            data[key], data[f"{key}:decay"] = found, chosen
    return data


def price(data: Data, case: str, name: str) -> float:
    """The most mistakes over three decades of steps as a multiple of the fewest of both algorithms with any step."""
    within = (data["steps"] >= 0.999 * DECADES[0]) & (data["steps"] <= 1.001 * DECADES[1])
    fewest = min(data[f"{case}:{one}"].mean(axis=0).min() for one in ("ILK", "NORMA"))
    return float(data[f"{case}:{name}"].mean(axis=0)[within].max() / fewest)


def fewer(data: Data, case: str) -> str:
    """In how many streams ILK makes fewer mistakes than NORMA, and in how many more, each with its best step."""
    ilk, norma = (runs[:, runs.mean(axis=0).argmin()] for runs in (data[f"{case}:ILK"], data[f"{case}:NORMA"]))
    return f"at the best steps ILK fewer in {(ilk < norma).sum()}, more in {(ilk > norma).sum()} of {len(ilk)}"


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(4, 2, figsize=(9.8, 12.6), sharex=True)
    steps, rows = data["steps"], int(data["rows"])
    for axes, (loss, stream, kernel) in zip(panels.flat, CASES, strict=True):
        case = f"{loss}:{stream}:{kernel}"
        axes.axvspan(*DECADES, color="#F4F4F4", linewidth=0)
        for name in ("ILK", "NORMA"):
            runs = data[f"{case}:{name}"]
            mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            label = f"{name}: at worst {price(data, case, name):.2f} times the fewest"
            axes.errorbar(steps, mean, error, fmt="o-", color=COLOURS[name], markersize=4, capsize=2, label=label)
        axes.set_xscale("log")
        axes.set_title(f"{loss}, {stream} stream, {kernel} kernel", loc="left", fontweight="bold", fontsize=10.5)
        low = loss == "hinge"
        axes.legend(frameon=False, loc="lower center" if low else "upper left", title=fewer(data, case), fontsize=9,
                    title_fontsize=9)  # fmt: skip
        axes.set_ylim(0, None if low else 1.35 * axes.get_ylim()[1])  # room for the legend
        neat(axes)
    for axes in panels[:, 0]:
        axes.set_ylabel(f"mistakes in {rows:,} trials")
    for axes in panels[-1]:
        axes.set_xlabel("step size: C of ILK, rate of NORMA")
    note = (
        f"Means of {len(runs)} streams with standard errors; the forgetting is chosen for each step on "
        f"{data['tuning_streams']} others. Grey: the three decades in which\n"
        "the worst step is sought; the fewest mistakes are those of either algorithm with any step.\n"
        "Gaussian kernel exp(-2 |x - x'|²), polynomial kernel (1 + <x, x'>)⁵."
    )
    picture.text(0.02, -0.005, note, fontsize=9, color="#555555", va="top")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw, dpi=85).main()
