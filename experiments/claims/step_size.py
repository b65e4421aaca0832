"""How much the step size matters: implicit against explicit updates (Cheng et al. 2006, sections 1 and 3).

The paper says that implicit updates do not need the step size chosen well, as gradient steps do, and has no figure of
it. Here are ILK (its C) and NORMA (its rate) with the hinge on two drifting streams with two kernels; a polynomial's
k(x, x) varies by orders of magnitude from row to row, a Gaussian's is 1. For each step size, each algorithm takes the
forgetting, of five, that makes the fewest mistakes on streams that are not counted.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from experiments.figure import COLOURS, Data, Figure, Picture, Progress, neat
from gossamer import Learner
from gossamer.kernels import Gaussian, Kernel, Polynomial
from gossamer.losses import Hinge
from gossamer.rules import Gradient, Implicit, Rule
from gossamer.synthetic import rotating_xor, wandering_box

STREAMS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {"rotating": rotating_xor, "box": wandering_box}
KERNELS: dict[str, Kernel] = {"Gaussian": Gaussian(2.0), "polynomial": Polynomial(5, 1.0)}
DECAYS = (0.001, 0.003, 0.01, 0.03, 0.1)  # the share of every coefficient that is forgotten in a round
DECADES = (0.01, 10.0)  # over which worst and best are compared


def rule(name: str, step: float, decay: float) -> Rule:
    """A step that adds at most ``step`` times k(x, .) and keeps 1 - ``decay`` of the rest."""
    if name == "ILK":
        return Implicit(C=step / (1 - decay), reg=decay / (1 - decay))
    return Gradient(rate=step, reg=decay / step)


def mistakes(kernel: Kernel, rule: Rule, X: np.ndarray, y: np.ndarray) -> int:
    return int((y * Learner(kernel, Hinge(), rule).learn(X, y) <= 0).sum())


def compute(quick: bool, progress: Progress) -> Data:
    rows, seeds, tuning = (200, 2, 1) if quick else (2000, 20, 3)
    steps = 10.0 ** np.arange(-3, 2.01, 1.0 if quick else 0.5)
    data: dict[str, np.ndarray] = {"steps": steps, "rows": np.array(rows), "tuning_streams": np.array(tuning)}
    for stream, make in STREAMS.items():
        practice = [make(rows, seed=1000 + seed) for seed in range(tuning)]
        counted = [make(rows, seed=seed) for seed in range(seeds)]
        for kind, kernel in KERNELS.items():
            for name in ("ILK", "NORMA"):
                found, chosen = np.zeros((seeds, len(steps)), dtype=int), np.zeros(len(steps))
                for place, step in enumerate(progress(steps.tolist(), f"{stream}, {kind}, {name}")):
                    tried = {d: sum(mistakes(kernel, rule(name, step, d), *part) for part in practice) for d in DECAYS}
                    chosen[place] = min(DECAYS, key=tried.__getitem__)
                    best = rule(name, step, chosen[place])
                    found[:, place] = [mistakes(kernel, best, X, y) for X, y in counted]
                data[f"{stream}:{kind}:{name}"], data[f"{stream}:{kind}:{name}:decay"] = found, chosen
    return data


def spread(data: Data, key: str) -> float:
    """The most mistakes over three decades of steps as a multiple of the fewest, both means over streams."""
    within = (data["steps"] >= 0.999 * DECADES[0]) & (data["steps"] <= 1.001 * DECADES[1])
    mean = data[key].mean(axis=0)[within]
    return float(mean.max() / mean.min())


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(2, 2, figsize=(11.5, 8.4), sharex=True, sharey="row")
    steps = data["steps"]
    for row, stream in zip(panels, STREAMS, strict=True):
        for axes, kind in zip(row, KERNELS, strict=True):
            axes.axvspan(*DECADES, color="#F4F4F4", linewidth=0)
            for name in ("ILK", "NORMA"):
                runs = data[f"{stream}:{kind}:{name}"]
                mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
                label = f"{name}: worst / best {spread(data, f'{stream}:{kind}:{name}'):.2f}"
                axes.errorbar(steps, mean, error, fmt="o-", color=COLOURS[name], markersize=4, capsize=2, label=label)
            axes.set_xscale("log")
            axes.set_title(f"{stream} stream, {kind} kernel", loc="left", fontweight="bold")
            axes.legend(frameon=False, loc="lower center")
            neat(axes)
        row[0].set_ylabel(f"mistakes in {int(data['rows']):,} trials")
        row[0].set_ylim(bottom=0)  # of the whole row, when all is drawn
    for axes in panels[1]:
        axes.set_xlabel("step size: C of ILK, rate of NORMA")
    note = (
        f"Means of {len(runs)} streams with standard errors; the forgetting is chosen for each step on "
        f"{data['tuning_streams']} others. Grey: the three decades over which worst and best are compared.\n"
        "Gaussian kernel exp(-2 |x - x'|²); polynomial kernel (1 + <x, x'>)⁵."
    )  # fmt: skip
    picture.text(0.02, -0.005, note, fontsize=9, color="#555555", va="top")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
