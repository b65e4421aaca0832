"""What a step moves: first order beside second order, after the same rows.

python docs/draw_second_order.py        # writes docs/second_order.png; needs matplotlib
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from gossamer import Learner
from gossamer.kernels import Gaussian
from gossamer.losses import Squared
from gossamer.rules import Implicit, Newton

KERNEL, NOISE = Gaussian(2.0), 0.05
FIRST, SECOND, ROWS = "#D55E00", "#0072B2", "#555555"


def main() -> None:
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.uniform(-3, 0.2, 40), [1.6]])[:, None]
    y = np.sin(2 * X[:, 0]) + np.sqrt(NOISE) * rng.normal(size=len(X))
    grid = np.linspace(-3.2, 3.2, 400)[:, None]
    learners = {"first order (Implicit)": Learner(KERNEL, Squared(), Implicit(1 / NOISE)),
                "second order (Newton)": Learner(KERNEL, Squared(), Newton(NOISE))}  # fmt: skip
    figure, axes = plt.subplots(2, 2, figsize=(9.5, 5.2), sharex=True, layout="constrained")
    for (name, learner), color, column in zip(learners.items(), (FIRST, SECOND), axes.T, strict=True):
        learner.learn(X, y)
        before = learner.score(grid)
        column[0].set_title(name)
        column[0].plot(grid, np.sin(2 * grid[:, 0]), color="black", lw=0.8, label="the function behind the rows")
        column[0].plot(X, y, ".", color=ROWS, ms=4, label="rows")
        column[0].plot(grid, before, color=color, label="f")
        if isinstance(learner.rule, Newton):
            spread = 2 * np.sqrt(learner.variance(grid))
            column[0].fill_between(grid[:, 0], before - spread, before + spread, color=color, alpha=0.15, lw=0,
                                   label="f, two deviations")  # fmt: skip
        column[0].set_ylim(-2.6, 2.6)
        column[0].legend(fontsize=8, loc="lower right")
        for x, style in ((-1.0, "-"), (1.0, "--")):
            moved = Learner(learner.kernel, learner.loss, learner.rule)
            moved.restore(learner.state())
            moved.learn(np.array([[x]]), [float(learner.score(np.array([[x]]))[0]) + 1.0])
            about = f"a row at x = {x:g}, 1 above f"
            column[1].plot(grid, moved.score(grid) - before, color=color, ls=style, label=about)
        column[1].set_ylim(-0.35, 1.05)
        column[1].set_xlabel("x")
        column[1].legend(fontsize=8)
    axes[0, 0].set_ylabel("after 41 rows")
    axes[1, 0].set_ylabel("what the next row moves")
    path = Path(__file__).with_suffix("").parent / "second_order.png"
    figure.savefig(path, dpi=110)
    print(path.name)


if __name__ == "__main__":
    main()
