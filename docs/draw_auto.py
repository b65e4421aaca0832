"""Draw docs/auto.png: what a stream whose drift speeds up teaches a mixture. `python docs/draw_auto.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gossamer import AutoClassifier, plots
from gossamer.plots.style import COLOURS, FAINT, INK, MEDIUM, SMALL, tidy
from gossamer.synthetic import rotating_xor_error, speeding_xor

ROWS, WINDOW, LOOK = 8000, 200, 40


def main() -> None:
    X, y = speeding_xor(ROWS, seed=0)
    model, history, scores = AutoClassifier(budget=100), [], []
    for row in range(0, ROWS, LOOK):
        part = slice(row, row + LOOK)
        scores.append(model.predict_learn(X[part], y[part]))
        history.append((row + LOOK, model.experts_, model.weights_))
    errors = plots.windowed((np.concatenate(scores) >= 0) != (y > 0), WINDOW)
    figure = plots.new_figure(11, 7.5)
    top, *below = figure.subplots(3, 1, sharex=True, height_ratios=[1.2, 1, 1])
    top.plot(np.arange(WINDOW, ROWS + 1), 100 * errors, color=COLOURS[0], linewidth=1.8)
    top.axhline(100 * rotating_xor_error(), color=FAINT, linewidth=1.4, linestyle=(0, (4, 3)))
    top.annotate("best possible rule", (0.99, 100 * rotating_xor_error()), (0, -5), color=FAINT, fontsize=SMALL,
                 ha="right", va="top", xycoords=("axes fraction", "data"), textcoords="offset points")  # fmt: skip
    top.set_ylim(0, None)
    top.set_ylabel("errors, %", fontsize=MEDIUM, color=INK)
    tidy(top)
    for axes, name in zip(below, ("forgetting", "width"), strict=True):
        plots.draw_weights(axes, history, name)
    below[-1].set_xlabel("rows seen", fontsize=MEDIUM, color=INK)
    for part in range(1, 4):
        for axes in (top, *below):
            axes.axvline(part * ROWS / 4, color="#777777", linewidth=0.8)
    figure.align_ylabels()
    figure.tight_layout()
    figure.savefig(Path(__file__).parent / "auto.png")


if __name__ == "__main__":
    main()
