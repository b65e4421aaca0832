"""The loop of a learner, in one picture.

python docs/draw_loop.py        # writes docs/loop.svg; needs matplotlib
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

plt.rcParams["svg.hashsalt"] = "gossamer"  # the same file in every run
INK, PLAIN = "#222222", "#f4f4f4"
KERNEL, LOSS, RULE, BUDGET = "#cfe4f5", "#fbe3c0", "#d5ecd4", "#eedcf0"


def box(axes: Axes, x: float, y: float, title: str, text: str, colour: str = PLAIN, width: float = 2.5) -> None:
    """A box around (x, y): what happens, and its formula."""
    shape = FancyBboxPatch(
        (x - width / 2, y - 0.42), width, 0.84, "round,pad=0.02,rounding_size=0.12", facecolor=colour, edgecolor=INK
    )
    axes.add_patch(shape)
    axes.text(x, y + 0.16, title, ha="center", va="center", fontsize=11, weight="bold", color=INK)
    axes.text(x, y - 0.17, text, ha="center", va="center", fontsize=10, color=INK)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str = "", bend: float = 0.0) -> None:
    """An arrow, with a word beside its middle."""
    style = FancyArrowPatch(
        start, end, arrowstyle="-|>", mutation_scale=14, color=INK, linewidth=1.3, connectionstyle=f"arc3,rad={bend}"
    )
    axes.add_patch(style)
    if text:
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        axes.text(x + 0.1, y, text, fontsize=9.5, style="italic", color=INK, va="center")


def draw(path: Path) -> None:
    """The whole picture."""
    figure, axes = plt.subplots(figsize=(10.4, 4.5))
    box(axes, 1.4, 3.6, "the stream", "a row x; later its y")
    box(axes, 5.0, 3.6, "kernel", r"$k(x, s_i)$ for every point $s_i$", KERNEL, 3.0)
    box(axes, 8.9, 3.6, "prediction", r"$f(x) = \sum_i a_i\, k(x, s_i) + b$", width=3.0)
    box(axes, 8.9, 0.3, "loss", "how bad is f(x), given y", LOSS, 3.0)
    box(axes, 5.0, 0.3, "rule", "how much to forget; the new $a$", RULE, 3.0)
    box(axes, 1.4, 0.3, "budget", "which point is evicted", BUDGET)
    box(axes, 3.6, 1.95, "the model", r"points $s_i$, coefficients $a_i$, offset $b$", width=3.6)
    arrow(axes, (2.7, 3.6), (3.45, 3.6))
    arrow(axes, (6.55, 3.6), (7.35, 3.6))
    arrow(axes, (8.9, 3.15), (8.9, 0.76), "f(x) is given out,\nthen y is revealed")
    arrow(axes, (7.35, 0.3), (6.55, 0.3))
    arrow(axes, (3.45, 0.3), (2.7, 0.3))
    arrow(axes, (1.7, 0.76), (2.6, 1.48), "  the new model")
    arrow(axes, (4.2, 2.42), (4.7, 3.14), "  and the next row")
    axes.set(xlim=(0, 10.7), ylim=(-0.25, 4.15), aspect="equal")
    axes.axis("off")
    undated = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata=undated)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "loop.svg")
