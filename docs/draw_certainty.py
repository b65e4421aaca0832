"""The pictures of docs/certainty.md, each from the lines that stand there.

python docs/draw_certainty.py        # writes docs/certainty_*.png; needs matplotlib
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gossamer
from gossamer import plots
from gossamer.drift import DriftAlarm

DOCS = Path(__file__).parent


def draw_reliability(rng: np.random.Generator) -> None:
    """Probabilities before learning against what came."""
    X = rng.normal(size=(4000, 2))
    y = rng.random(4000) < 1 / (1 + np.exp(-4 * X[:, 0] * X[:, 1]))
    p = gossamer.SILKClassifier("gaussian:0.5").predict_learn(X, y, method="proba")[1000:, 1]
    plots.reliability(p, y[1000:], DOCS / "certainty_reliability.png")


def draw_intervals(rng: np.random.Generator) -> None:
    """A series whose noise grows at once, with its band."""
    t = np.arange(3000)
    X = np.column_stack([np.sin(t / 20), np.cos(t / 20)])
    y = X[:, 0] + (0.05 + 0.3 * (t > 1500)) * rng.normal(size=3000)
    ends = gossamer.SILKRegressor("gaussian:1").predict_learn(X, y, method="interval", coverage=0.9)
    plots.intervals(y[1000:2200], ends[1000:2200], DOCS / "certainty_intervals.png")


def draw_alarm(rng: np.random.Generator) -> None:
    """A series whose mean jumps, and the alarm."""
    scores = np.concatenate([rng.normal(size=2000), rng.normal(1.0, 1.0, size=1000)])
    (found,) = DriftAlarm(level=0.01).update(scores)
    title = f"a jump after row 2,000: alarm at row {found.row:,}, since about row {found.since:,}"
    band = np.column_stack([scores - 1, scores + 1])
    plots.intervals(scores, band, DOCS / "certainty_alarm.png", alarms=[found.row], title=title)


if __name__ == "__main__":
    generator = np.random.default_rng(0)
    draw_reliability(generator)
    draw_intervals(generator)
    draw_alarm(generator)
