"""The layers of the package, in one picture: what may import what, and where a row goes.

python docs/draw_layers.py        # writes docs/layers.svg; needs matplotlib
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

plt.rcParams |= {"svg.hashsalt": "gossamer", "svg.fonttype": "none"}  # the same file in every run, with words as text
INK, FAINT = "#222222", "#666666"
FACES, MODEL, PARTS, SHARED, CORE = "#f4f4f4", "#cfe4f5", "#d5ecd4", "#eeeeee", "#fbe3c0"

#: What a layer does and its colour, by the first module of the layer in pyproject.toml.
LAYERS = {
    "cli": ("the command line", FACES),
    "spark": ("clusters, the demonstration, the server", FACES),
    "river": ("other faces: dict rows, a model per key, pixels, pictures, theorems", FACES),
    "store": ("State and bytes; predict, then learn, and count; files and pipes", FACES),
    "estimators": ("scikit-learn: validates rows, encodes labels, names four parts", MODEL),
    "rows": ("what a row is: kinds, gaps, categories, clocks", MODEL),
    "mixture": ("experts over all settings, mixed by weights", MODEL),
    "certainty": ("scores become probabilities, intervals and alarms", MODEL),
    "learner": ("Learner: a kernel, a loss, a rule, a budget", MODEL),
    "_engine": ("THE LOOP: here the four parts meet, in NumPy or compiled", MODEL),
    "budgets": ("which point leaves, and what becomes of its share", PARTS),
    "rules": ("from a score and a label to a step", PARTS),
    "kernels": ("k(A, B); the value and the slope of a score", PARTS),
    "_registry": ("shared by all; below them _checks (validation, errors) and _typing (arrays)", SHARED),
}
CORE_LINES = ("core/ (C++)", "python: bindings", "bank, video, io", "trees, features", "engine: loop", "parts, simd")
#: Layers that are not drawn by themselves: the start of the command line, and what stands with _registry.
HIDDEN = ("__main__", "_checks", "_typing")


def read_layers() -> list[list[str]]:
    """The layers that import-linter enforces, top first."""
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [layer.replace(" ", "").split("|") for layer in contract["layers"]]


def box(axes: Axes, x: float, y: float, width: float, height: float, colour: str) -> None:
    """A rounded box with its lower left corner at (x, y)."""
    shape = FancyBboxPatch((x, y), width, height, "round,pad=0.02,rounding_size=0.08", facecolor=colour, edgecolor=INK)
    axes.add_patch(shape)


def arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    """An arrow between two places."""
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=16, color=INK, linewidth=1.5))


def draw(path: Path) -> None:
    """The whole picture."""
    layers = [names for names in read_layers() if names[0] not in HIDDEN]
    figure, axes = plt.subplots(figsize=(11.5, 6.6))
    top = len(layers)
    height = {names[0]: top - i for i, names in enumerate(layers)}
    for names in layers:
        text, colour = LAYERS[names[0]]
        y = height[names[0]]
        box(axes, 0, y - 0.38, 9.0, 0.76, colour)
        axes.text(0.15, y + 0.14, "   ".join(names), va="center", fontsize=11, weight="bold", color=INK)
        axes.text(0.15, y - 0.19, text, va="center", fontsize=9.5, color=FAINT)
    engine = height["_engine"]
    box(axes, 9.5, engine - 2.4, 2.6, 2.8, CORE)
    for i, line in enumerate(CORE_LINES):
        weight = "bold" if i == 0 else "normal"
        axes.text(9.65, engine + 0.1 - 0.45 * i, line, va="center", fontsize=11 - (i > 0), weight=weight, color=INK)
    arrow(axes, (9.05, engine), (9.45, engine))
    arrow(axes, (-0.75, top + 0.3), (-0.75, engine - 0.1))
    arrow(axes, (-0.3, engine - 0.1), (-0.3, top + 0.3))
    for x, text in ((-0.87, "a row goes down"), (-0.42, "its score comes back")):
        axes.text(x, (top + engine) / 2 + 0.2, text, rotation=90, ha="right", va="center", fontsize=10)
    arrow(axes, (10.8, top + 0.3), (10.8, engine + 1.2))
    axes.text(10.95, (top + engine) / 2 + 0.8, "imports\npoint down", va="center", fontsize=10.5, color=INK)
    axes.set(xlim=(-1.4, 12.4), ylim=(0.4, top + 0.6))
    axes.axis("off")
    undated = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, bbox_inches="tight", facecolor="white", metadata=undated)
    plt.close(figure)


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "layers.svg")
