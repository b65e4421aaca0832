"""Where a row goes in a server, in one picture.

python docs/draw_serve.py        # writes docs/serve.svg; needs matplotlib
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

plt.rcParams |= {"svg.hashsalt": "gossamer", "svg.fonttype": "none"}  # the same file in every run, with words as text
INK, FAINT = "#222222", "#666666"
#: Name, what it does, left, bottom, width, height, colour.
BOXES = [
    ("clients", "curl, Client, AsyncClient,\na browser, Prometheus", 0.0, 2.1, 2.2, 1.4, "#f4f4f4"),
    ("event loop", "limits, tokens, JSON or Arrow\nto rows, validation", 3.1, 2.1, 2.6, 1.4, "#cfe4f5"),
    ("writer", "one thread: group, sync,\nlearn in pieces, answer", 6.8, 3.2, 2.6, 1.4, "#fbe3c0"),
    ("predictor", "one thread: all that waits\nfor a model in one call", 6.8, 0.9, 2.6, 1.4, "#fbe3c0"),
    ("journal", "SQLite, WAL, synced:\nentries, states, request ids", 10.5, 3.2, 2.6, 1.4, "#d5ecd4"),
    ("models", "scaler and learner together,\nerrors, rows that wait for labels", 10.5, 0.9, 2.9, 1.4, "#d5ecd4"),
]
#: From, to, words, and where they stand.
ARROWS = [
    ((2.25, 2.8), (3.05, 2.8), "", (0, 0)),
    ((5.75, 3.1), (6.75, 3.9), "learn", (5.75, 3.65)),
    ((5.75, 2.5), (6.75, 1.6), "predict", (5.7, 1.8)),
    ((9.45, 3.9), (10.45, 3.9), "1 sync", (9.5, 4.05)),
    ((9.2, 3.15), (10.9, 2.35), "2 learn", (10.0, 2.85)),
    ((9.45, 1.6), (10.45, 1.6), "read", (9.7, 1.75)),
    ((11.8, 3.15), (11.8, 2.35), "replay after a stop", (11.9, 2.7)),
]


def draw(path: Path) -> None:
    """Draw the picture."""
    figure, axes = plt.subplots(figsize=(11, 3.9))
    for name, words, x, y, width, height, colour in BOXES:
        shape = "round,pad=0.02,rounding_size=0.08"
        axes.add_patch(FancyBboxPatch((x, y), width, height, shape, facecolor=colour, edgecolor=INK))
        axes.text(x + width / 2, y + height - 0.32, name, ha="center", weight="bold", color=INK)
        axes.text(x + width / 2, y + 0.22, words, ha="center", va="bottom", fontsize=7.4, color=INK)
    for start, end, words, place in ARROWS:
        axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=14, color=INK, linewidth=1.3))
        if words:
            axes.text(*place, words, fontsize=8.5, color=FAINT)
    axes.text(0.0, 0.2, "An answer to learn means: on the disk (1), then in the model (2).", color=INK)
    axes.set_xlim(-0.1, 13.6)
    axes.set_ylim(0, 4.8)
    axes.axis("off")
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})


if __name__ == "__main__":
    draw(Path(__file__).with_suffix("").with_name("serve.svg"))
