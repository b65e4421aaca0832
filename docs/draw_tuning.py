"""What the parameters of a learner do: prequential error against each, on streams that stand still, turn and turn fast.

python docs/draw_tuning.py        # writes docs/tuning.png; needs matplotlib
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from gossamer import NORMAClassifier, SILKClassifier
from gossamer.kernels import Gaussian
from gossamer.synthetic import rotating_xor, rotating_xor_error

SILK = {"C": 0.3, "reg": 0.01, "budget": 100}
SWEEPS: dict[str, tuple[list[float], Callable[[Any], Any]]] = {
    "gamma of the Gaussian; large is narrow": (
        [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100], lambda v: SILKClassifier(Gaussian(v), **SILK)
    ),
    "budget, the support points kept": (
        [5, 10, 20, 35, 50, 70, 100, 200, 400, 800], lambda v: SILKClassifier(Gaussian(1.0), **SILK | {"budget": v})
    ),
    "reg, the forgetting": (
        [1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1], lambda v: SILKClassifier(Gaussian(1.0), **SILK | {"reg": v})
    ),
    "C of SILK (solid), rate of NORMA (dashed)": (
        [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30], lambda v: SILKClassifier(Gaussian(1.0), **SILK | {"C": v})
    ),
}  # fmt: skip
SPEEDS = {0: ("#0072B2", "stands still"), 2: ("#D55E00", "2 turns"), 8: ("#009E73", "8 turns")}


def norma(rate: float) -> NORMAClassifier:
    return NORMAClassifier(Gaussian(1.0), rate=rate, reg=0.01, budget=100)


def error(make: Callable[[Any], Any], value: Any, turns: int) -> float:
    """The share of rows that were predicted wrongly before they were learned, over five streams of 4,000 rows."""
    errors = []
    for seed in range(5):
        X, y = rotating_xor(4000, seed=seed, turns=turns)
        errors.append(np.mean((make(value).predict_learn(X, y) >= 0) != (y > 0)))
    return float(np.mean(errors))


def draw(path: Path) -> None:
    """A panel for each parameter, a line for each speed."""
    figure, panels = plt.subplots(2, 2, figsize=(10, 6.4), sharey=True, layout="constrained")
    for axes, (name, (values, make)) in zip(panels.flat, SWEEPS.items(), strict=True):
        for turns, (colour, label) in SPEEDS.items():
            axes.plot(values, [error(make, v, turns) for v in values], "o-", color=colour, markersize=3.5, label=label)
            if name.startswith("C"):
                axes.plot(values, [error(norma, v, turns) for v in values], "o--", color=colour, markersize=3.5)
        axes.axhline(rotating_xor_error(), color="#888888", linewidth=1, linestyle=":", label="the best possible")
        axes.set(xscale="log", xlabel=name, ylim=(0, 0.52))
        axes.grid(alpha=0.3)
    for axes in panels[:, 0]:
        axes.set_ylabel("prequential error")
    panels[0, 1].legend(loc="upper right")
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "tuning.png")
