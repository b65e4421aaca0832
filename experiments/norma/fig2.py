"""NORMA, Fig. 2: mistakes on a drifting and on a switching stream (Kivinen, Smola, Williamson 2004, section VI-A).

Two classes in the plane, each a mixture of two Gaussians; what the Bayes rule gets wrong, or nearly so, is left out. In
the drifting stream the centres move a little after every ten trials, in the switching stream they are drawn anew after
every thousand. The paper gives neither its Gaussians nor its parameters; ours are below (ALGORITHMS 13.4).

Each algorithm is tried with equally many settings, spread evenly over the logarithms of its own ranges, on streams
that are not counted; the best one is run on the streams that are.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt
from scipy.stats import qmc

from experiments.figure import COLOURS, Data, Figure, Picture, Progress, neat, write_ends
from gossamer import Learner
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge
from gossamer.rules import ALMA, Gradient, Perceptron

STD, HALF_WIDTH, GAP = 0.6, 3.0, 1.5
KINDS = {"drifting": (10, 0.12), "fast drifting": (10, 0.6), "switching": (1000, None)}  # trials between changes, step

#: The ranges that each algorithm is tuned in, and how a setting becomes a learner. NORMA's margin is 1 and NORMA_0's
#: rate is 1: only rate / margin matters. ``decay`` is rate * reg, what is forgotten per trial.
ALGORITHMS: dict[str, tuple[dict[str, tuple[float, float]], Callable[..., tuple[Hinge, object]]]] = {
    "perceptron": ({"gamma": (0.05, 10)}, lambda: (Hinge(0.0), Perceptron())),
    "ALMA_0": ({"gamma": (0.05, 10), "C": (0.05, 100)}, lambda C: (Hinge(), ALMA(1.0, 1.0, C))),
    "NORMA_0": ({"gamma": (0.05, 10), "decay": (1e-4, 0.3)}, lambda decay: (Hinge(0.0), Gradient(1.0, decay))),
    "ALMA": (
        {"gamma": (0.05, 10), "C": (0.05, 100), "B": (0.1, 3000)},
        lambda C, B: (Hinge(), ALMA(0.5, 2 * B, C)),  # the margin is (1 - alpha) B / sqrt(k): B here is their product
    ),
    "NORMA": (
        {"gamma": (0.05, 10), "decay": (1e-4, 0.3), "rate": (0.005, 5)},
        lambda decay, rate: (Hinge(), Gradient(rate, decay / rate)),
    ),
}


def stream(kind: str, trials: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels of one stream."""
    period, step = KINDS[kind]
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    rows, labels = [], []
    centres = rng.uniform(-HALF_WIDTH, HALF_WIDTH, (2, 2, 2))  # class, component, coordinate
    while len(rows) * period < trials:
        X, y = clear_rows(centres, period, rng)
        if len(X) == period:  # else the classes lie on top of each other: they move on at once
            rows.append(X)
            labels.append(y)
        if step is None:
            centres = rng.uniform(-HALF_WIDTH, HALF_WIDTH, centres.shape)
        else:
            moved = centres + step * rng.standard_normal(centres.shape)
            centres = np.where(np.abs(moved) > HALF_WIDTH, 2 * HALF_WIDTH * np.sign(moved) - moved, moved)  # reflected
    return np.concatenate(rows)[:trials].astype(np.float32), np.concatenate(labels)[:trials]


def clear_rows(centres: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """So many rows on their own class's side of the Bayes rule with log-odds of at least ``GAP``; fewer, if fewer than
    one in five drawn are."""
    label, component = rng.integers(2, size=(2, 5 * count))
    x = centres[label, component] + STD * rng.standard_normal((5 * count, 2))
    squared = ((x[:, None, None] - centres) ** 2).sum(axis=3)
    evidence = np.logaddexp.reduce(-squared / (2 * STD**2), axis=2)
    y = 2.0 * label - 1.0
    clear = y * (evidence[:, 1] - evidence[:, 0]) >= GAP
    return x[clear][:count], y[clear][:count]


def mistakes(name: str, setting: dict[str, float], X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Whether each trial was a mistake; a score of 0 is one."""
    rest = {key: value for key, value in setting.items() if key != "gamma"}
    loss, rule = ALGORITHMS[name][1](**rest)
    return y * Learner(Gaussian(setting["gamma"]), loss, rule).learn(X, y) <= 0


def settings(name: str, count: int) -> list[dict[str, float]]:
    """Points that fill the logarithms of the ranges evenly."""
    ranges = ALGORITHMS[name][0]
    low, high = np.log(np.array(list(ranges.values()))).T
    points = np.exp(low + (high - low) * qmc.Halton(len(ranges), seed=0).random(count))
    return [dict(zip(ranges, point.tolist(), strict=True)) for point in points]


def short(value: float) -> str:
    """Two digits, without an exponent."""
    return f"{float(f'{value:.2g}'):g}"


def compute(quick: bool, progress: Progress) -> Data:
    trials, tried, seeds, every = (2000, 6, 3, 20) if quick else (10_000, 80, 20, 50)
    tuning = range(1000, 1001 if quick else 1004)
    data: dict[str, np.ndarray] = {"trials": np.arange(every, trials + 1, every), "tried": np.array(tried)}
    data["tuning_streams"] = np.array(len(tuning))
    for kind in KINDS:
        practice = [stream(kind, trials, seed) for seed in tuning]
        counted = [stream(kind, trials, seed) for seed in range(seeds)]
        for name in ALGORITHMS:
            costs = []
            for setting in progress(settings(name, tried), f"{kind}, tuning {name}"):
                costs.append(np.mean([mistakes(name, setting, X, y).sum() for X, y in practice]))
            best = settings(name, tried)[int(np.argmin(costs))]
            runs = [np.cumsum(mistakes(name, best, X, y))[every - 1 :: every] for X, y in counted]
            data[f"{kind}:{name}"] = np.array(runs, dtype=np.int16)
            data[f"{kind}:{name}:tuned"] = np.array(", ".join(f"{key} {short(value)}" for key, value in best.items()))
    return data


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(len(KINDS), 1, figsize=(8.4, 4 * len(KINDS)))
    for axes, kind in zip(panels, KINDS, strict=True):
        ends = {}
        for name in ALGORITHMS:
            runs = data[f"{kind}:{name}"].astype(float)
            mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
            axes.plot(data["trials"], mean, color=COLOURS[name], linewidth=1.8)
            axes.fill_between(data["trials"], mean - error, mean + error, color=COLOURS[name], alpha=0.25, linewidth=0)
            text = f"{name}  {mean[-1]:.0f} ± {error[-1]:.0f}\n{data[f'{kind}:{name}:tuned']}"
            ends[text] = (mean[-1], COLOURS[name])
        axes.set_title(f"{kind} stream", loc="left", fontweight="bold")
        axes.set(xlabel="trials", ylabel="mistakes so far", xlim=(0, data["trials"][-1]))
        axes.set_ylim(bottom=0)
        neat(axes)
        write_ends(axes, ends, lines=2)
    runs, trials = len(data[f"{kind}:NORMA"]), data["trials"][-1]
    note = (
        f"Means of {runs} streams of {trials:,} trials, with standard errors. Each algorithm: the best of "
        f"{data['tried']} settings\n"
        f"by mistakes on {data['tuning_streams']} other streams. Gaussian kernel exp(-gamma |x - x'|²)."
    )
    picture.text(0.02, -0.01, note, fontsize=9, color="#555555", va="top")
    picture.tight_layout(h_pad=2.0)
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw, dpi=95).main()
