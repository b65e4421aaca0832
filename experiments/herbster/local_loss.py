"""Herbster's local loss bounds: what a shifting stream costs in each of its segments (Herbster 2001, Theorems 4 and 5).

The target changes from segment to segment, and one segment is nonsense. If some u with ||u|| <= gamma is right in a
segment (by a margin of 1, or within epsilon), then the constrained projection algorithm loses at most R² (gamma +
||u||)² there, in mistakes or in squared loss beyond epsilon, whatever came before. Without the constraint there is no
such promise. The paper has no experiment; this one draws its theorems over measured losses.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from experiments.figure import Data, Figure, Picture, Progress, neat
from gossamer import Learner, bounds
from gossamer.bounds.comparators import Comparator
from gossamer.kernels import Gaussian
from gossamer.losses import EpsilonInsensitive, Hinge
from gossamer.rules import Projection

KERNEL = Gaussian(4.0)
PLACES = np.stack(np.meshgrid(np.arange(6.0), np.arange(6.0)), axis=-1).reshape(-1, 2)  # rows come from near these
SPREAD = 0.1
SEGMENTS, NONSENSE = 6, 2  # the targets of the third segment are by chance, and numbers three times as large
EPSILON = 0.1
TASKS = {"classification": "mistakes", "regression": "squared loss beyond epsilon"}
LEARNERS = {"constrained": "#0072B2", "free": "#888888"}


def segment(task: str, length: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows, targets, and the norm of a function u without loss on them: a bump for each place."""
    X = PLACES[rng.integers(len(PLACES), size=length)] + rng.uniform(-SPREAD, SPREAD, (length, 2))
    heights = rng.choice([-1.0, 1.0], len(PLACES)) if task == "classification" else rng.standard_normal(len(PLACES))
    u = Comparator(PLACES, heights, KERNEL)
    values = u.values(X)
    if task == "regression":
        return X, values + EPSILON * rng.uniform(-1, 1, length), u.norm
    return X, np.sign(values), u.norm / np.abs(values).min()  # scaled so that y u(x) >= 1


def losses(task: str, radius: float | None, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The loss of each trial, judged before it is learned."""
    loss = Hinge() if task == "classification" else EpsilonInsensitive(EPSILON)
    scores = Learner(KERNEL, loss, Projection(radius)).learn(X, y)
    if task == "classification":
        return (y * scores <= 0).astype(float)
    return np.maximum(0.0, np.abs(y - scores) - EPSILON) ** 2


def compute(quick: bool, progress: Progress) -> Data:
    length, seeds, every = (200, 3, 20) if quick else (1000, 20, 20)
    data: dict[str, np.ndarray] = {"length": np.array(length), "every": np.array(every)}
    for task in TASKS:
        bound = bounds.projection_local_mistakes if task == "classification" else bounds.projection_local_loss
        found: dict[str, list[np.ndarray]] = {name: [] for name in LEARNERS}
        limits, radii = [], []
        for seed in progress(range(seeds), task):
            rng = np.random.default_rng([seed, len(task)])
            parts = [segment(task, length, rng) for _ in range(SEGMENTS)]
            X, y = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
            nonsense = slice(NONSENSE * length, (NONSENSE + 1) * length)
            y[nonsense] = rng.permutation(y[nonsense]) * (1 if task == "classification" else 3)
            radius = max(part[2] for part in parts)
            radii.append(radius)
            limits.append([bound(kappa=1.0, radius=radius, norm=part[2]) for part in parts])
            for name, gamma in zip(LEARNERS, (radius, None), strict=True):
                sums = np.cumsum(losses(task, gamma, X, y).reshape(SEGMENTS, length), axis=1)
                found[name].append(sums[:, every - 1 :: every])
        data[f"{task}:bound"], data[f"{task}:radius"] = np.array(limits), np.array(radii)
        for name, runs in found.items():
            data[f"{task}:{name}"] = np.array(runs, dtype=np.float32)  # seed, segment, trial within it
    return data


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(2, 1, figsize=(10, 8.2), sharex=True)
    length = int(data["length"])
    trials = np.arange(int(data["every"]), length + 1, int(data["every"]))
    for axes, (task, unit) in zip(panels, TASKS.items(), strict=True):
        limits = data[f"{task}:bound"]
        for part in range(SEGMENTS):
            start = part * length
            if part == NONSENSE:
                axes.axvspan(start, start + length, color="#F0F0F0", linewidth=0)
                middle, across = start + length / 2, axes.get_xaxis_transform()
                axes.text(middle, 0.4, "targets\nby chance:\nno bound", transform=across, ha="center", color="#777777")
                continue
            axes.plot([start, start + length], [limits[:, part].min()] * 2, color="#D55E00", linewidth=2.2)
            for name, colour in LEARNERS.items():
                runs, style = data[f"{task}:{name}"][:, part], "-" if name == "constrained" else (0, (3, 2))
                axes.plot(start + trials, runs.mean(axis=0), color=colour, linewidth=1.8, linestyle=style)
                low, high = runs.min(axis=0), runs.max(axis=0)
                axes.fill_between(start + trials, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set_xlim(0, SEGMENTS * length)
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"{unit}\nsince the segment began")
        radii = data[f"{task}:radius"]
        good = [part for part in range(SEGMENTS) if part != NONSENSE]
        ratio = data[f"{task}:constrained"][:, good, -1] / limits[:, good]
        title = f"{task}: at most {ratio.max():.0%} of the bound was lost, gamma {radii.min():.1f} to {radii.max():.1f}"
        axes.set_title(title, loc="left", fontweight="bold", fontsize=11.5)
        neat(axes)
    panels[-1].set_xlabel(f"trials (means and ranges of {len(radii)} streams)")
    names = {
        "bound R² (gamma + ||u||)², the least of all streams": ("#D55E00", "-"),
        "projection, norm at most gamma": (LEARNERS["constrained"], "-"),
        "projection without that constraint": (LEARNERS["free"], "--"),
    }
    handles = [plt.Line2D([], [], color=colour, linestyle=style, linewidth=2) for colour, style in names.values()]
    picture.legend(handles, names, loc="lower center", ncols=3, frameon=False, bbox_to_anchor=(0.5, -0.03))
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
