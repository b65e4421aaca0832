"""What all pictures share: colours, sizes, a new figure, names at the ends of curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from gossamer import _checks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that people with any colour vision tell apart (Okabe and Ito), in the order in which curves take them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#6B6B6B", "#E69F00")
POSITIVE, NEGATIVE, INK, FAINT = "#C9622B", "#3B6FB6", "#222222", "#8A8A8A"
SMALL, MEDIUM, LARGE = 12, 13.5, 16


def new_figure(width: float, height: float) -> Figure:
    """A new, empty Figure; if matplotlib is missing, an error that names the extra to install."""
    made: Figure = _checks.extra("matplotlib.figure", "Drawing", "plot").Figure(
        figsize=(width, height), dpi=100, facecolor="white"
    )
    return made


def tidy(axes: Axes) -> None:
    axes.tick_params(labelsize=SMALL, colors=INK)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def label_ends(axes: Axes, ends: Mapping[str, tuple[float, float, str]]) -> None:
    """Names beside the right ends of the curves, moved apart where the curves end too close together."""
    low, high = axes.get_ylim()
    names = sorted(ends, key=lambda name: ends[name][1])
    heights = spread([ends[name][1] for name in names], 0.052 * (high - low), low, high)
    for name, height in zip(names, heights, strict=True):
        row, value, colour = ends[name]
        axes.annotate(
            name, (row, value), (1.045, (height - low) / (high - low)), textcoords="axes fraction", color=colour,
            fontsize=MEDIUM, fontweight="bold", va="center", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.9, "shrinkA": 2, "shrinkB": 0},
        )  # fmt: skip


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending heights, moved as little as needed to lie at least ``gap`` apart and, if they fit, inside [low, high].

    >>> spread([1.0, 1.0, 5.0], 1.0, 0.0, 10.0)
    [0.5, 1.5, 5.0]
    """
    # pools of touching labels, each centred on its members: the pool-adjacent-violators algorithm for least squares
    pools: list[list[float]] = []  # [sum of (height - place in the pool * gap), members]
    for height in heights:
        pools.append([height, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] + pools[-2][1] * gap > pools[-1][0] / pools[-1][1]:
            total, members = pools.pop()
            before = pools[-1]
            before[0] += total - members * before[1] * gap
            before[1] += members
    placed = [total / members + i * gap for total, members in pools for i in range(int(members))]
    for i in range(len(placed)):
        placed[i] = max(placed[i], low + i * gap)
    for i in reversed(range(len(placed))):
        placed[i] = min(placed[i], high - (len(placed) - 1 - i) * gap)
    return placed
