"""The cost of a trial against the number of terms: search trees and the dense loop (Herbster 2001, section 1).

The paper claims O(log m) for a trial with an additive kernel whose halves separate, where it is O(m) otherwise, and has
no experiment. Here both predict and learn the same rows with the same terms, in eight coordinates, every row becoming a
term. The dense loop is the compiled one that takes rows in blocks. One thread; a point is the best of several blocks,
in processor time.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt
from threadpoolctl import threadpool_limits

from experiments.figure import Data, Figure, Picture, Progress, neat
from gossamer import Learner
from gossamer.kernels import Additive, Exponential, Kernel, Spline
from gossamer.losses import Squared
from gossamer.rules import Implicit

FEATURES, BLOCK = 8, 200
DENSE_LARGEST = 100_000  # a million would take minutes
FITTED_FROM = 1000  # terms from which the slopes are fitted: below, what does not depend on m counts too
KERNELS: dict[str, Kernel] = {"Spline(1)": Spline(1), "Exponential(0.3)": Exponential(0.3)}
BACKENDS = {"dense": ("native", "dense loop", "#D55E00"), "trees": ("trees", "search trees", "#0072B2")}


def learner(kernel: Kernel, backend: str) -> Learner:
    return Learner(Additive(kernel), Squared(), Implicit(C=0.01, reg=1e-6), backend=backend)


def seconds_per_row(model: Learner, X: np.ndarray, y: np.ndarray, blocks: int) -> float:
    """The best time of a trial, over blocks of rows that come after those learned."""
    best = np.inf
    for _ in range(blocks):
        part = slice(model.steps, model.steps + BLOCK)
        begin = time.process_time()  # what others do on the machine counts less
        model.learn(X[part], y[part])
        best = min(best, (time.process_time() - begin) / BLOCK)
    return best


def compute(quick: bool, progress: Progress) -> Data:
    powers = range(4, 8 if quick else 13)  # 100 to 3,162 terms, or to a million
    sizes = [round(10 ** (power / 2)) for power in powers]
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(sizes[-1] + 50 * BLOCK, FEATURES))
    y = np.sin(6 * X).sum(axis=1) + 0.5 * rng.normal(size=len(X))
    data: dict[str, np.ndarray] = {}
    with threadpool_limits(limits=1):
        for name, kernel in KERNELS.items():
            found: dict[str, list[tuple[float, float]]] = {key: [] for key in BACKENDS}
            grown = learner(kernel, "trees")
            for size in progress(sizes, name):
                grown.learn(X[grown.steps : size], y[grown.steps : size])
                state = grown.state()
                for key, (backend, _, _) in BACKENDS.items():
                    if key == "trees" or size <= DENSE_LARGEST:
                        # a small model grows by much while it is timed: it gets few blocks, many times
                        blocks = max(1, min(size // 400, 50 if key == "trees" else 4))
                        tries = 20 if size <= 1000 and not quick else 2
                        best = np.inf
                        for _ in range(tries):
                            model = learner(kernel, backend)
                            model.restore(state)
                            best = min(best, seconds_per_row(model, X, y, blocks))
                        found[key].append((size + blocks * BLOCK / 2, best))
            for key, points in found.items():
                data[f"{name}:{key}"] = np.array(points)
    return data


def slope(points: np.ndarray) -> tuple[float, float]:
    """Exponent and factor of the power of m that fits best."""
    large = points[points[:, 0] >= FITTED_FROM]
    exponent, logarithm = np.polyfit(np.log(large[:, 0]), np.log(large[:, 1]), 1)
    return float(exponent), float(np.exp(logarithm))


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(1, len(KERNELS), figsize=(11.5, 4.8), sharey=True)
    for axes, name in zip(panels, KERNELS, strict=True):
        for key, (_, title, colour) in BACKENDS.items():
            points = data[f"{name}:{key}"]
            exponent, factor = slope(points)
            axes.loglog(points[:, 0], 1e6 * points[:, 1], "o", color=colour, markersize=5)
            reach = np.array([FITTED_FROM, points[-1, 0]])
            axes.loglog(reach, 1e6 * factor * reach**exponent, color=colour, linewidth=1.8)
            end = points[-1, 0], 1e6 * points[-1, 1]
            place, side = ((0, 10), "right") if key == "trees" else ((-10, 0), "right")
            axes.annotate(f"{title}, m^{exponent:.2f}", end, place, textcoords="offset points", color=colour, ha=side,
                          fontsize=11, fontweight="bold")  # fmt: skip
        axes.set_title(f"{name}, {FEATURES} coordinates", loc="left", fontweight="bold")
        axes.set_xlabel("terms, m")
        neat(axes)
    panels[0].set_ylabel("one prediction and update, microseconds")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
