"""Learners on a stream that drifts: error curves and decision boundaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.plots.experts import Look, draw_weights
from gossamer.plots.style import (
    COLOURS,
    FAINT,
    INK,
    LARGE,
    MEDIUM,
    NEGATIVE,
    POSITIVE,
    SMALL,
    label_ends,
    new_figure,
    tidy,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

#: A function of rows of numbers, positive where the class is +1.
Score = Callable[[Floats], Floats]
LETTERS = "ABCDEFGH"


@dataclass(frozen=True)
class Moment:
    """A learner at one moment of a stream: its score function, and the rows that it saw last.

    ``truth``, if given, is the score of the best possible rule at that moment.
    """

    row: int
    X: Floats
    y: Floats
    score: Score
    truth: Score | None = None


def windowed(mistakes: Floats, window: int) -> Floats:
    """The mean of the last ``window`` entries, for each entry with a full window, along the last axis.

    >>> windowed(np.array([1.0, 0.0, 0.0, 1.0]), 2).tolist()
    [0.5, 0.0, 0.5]
    """
    _checks.whole("windowed", "window", window, 1)
    sums = np.cumsum(mistakes, axis=-1, dtype=np.float64)
    sums = np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)
    return np.asarray((sums[..., window:] - sums[..., :-window]) / window)


def draw_errors(axes: Axes, errors: Mapping[str, Floats], window: int, dashed: Sequence[str] = ()) -> None:
    """Curves of `windowed` error rates against rows seen, each with its name at its right end.

    >>> axes = new_figure(8, 4).add_subplot()
    >>> draw_errors(axes, {"always wrong": np.ones(90), "a coin": np.full(90, 0.5)}, window=10)
    >>> [text.get_text() for text in axes.texts]
    ['a coin', 'always wrong']
    """
    ends = {}
    for colour, (name, values) in zip(cycle(COLOURS), errors.items(), strict=False):
        rows = np.arange(window, window + len(values))
        # subsample, keeping the last point: wiggles finer than a few pixels only blur the line
        stride = max(1, len(values) // 300)
        shown = slice((len(values) - 1) % stride, None, stride)
        style: Any = (0, (4, 1.5)) if name in dashed else "-"
        axes.plot(rows[shown], 100 * values[shown], color=colour, linewidth=1.8, linestyle=style)
        ends[name] = (float(rows[-1]), 100 * float(values[-1]), colour)
    axes.set_xlim(0, max(row for row, _, _ in ends.values()))
    axes.set_ylim(0, 1.12 * 100 * max(float(values.max()) for values in errors.values()))
    axes.set_xlabel("rows seen", fontsize=MEDIUM, color=INK)
    axes.set_ylabel(f"errors in the last {window} rows, %", fontsize=MEDIUM, color=INK)
    axes.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    tidy(axes)
    label_ends(axes, ends)


def draw_boundary(axes: Axes, moment: Moment, half_width: float) -> None:
    """The sign and the zero line of a score function over a square of the plane, with the last rows on it.

    Older rows are paler; the dashed line is the boundary of the best possible rule.
    """
    side = np.linspace(-half_width, half_width, 121)
    plane = np.column_stack([part.ravel() for part in np.meshgrid(side, side)])
    shape = (len(side), len(side))
    scores = moment.score(plane).reshape(shape)
    if np.ptp(scores) > 0:
        axes.contourf(side, side, scores, levels=[-np.inf, 0, np.inf], colors=["#DCE7F5", "#FAE5D8"])
        axes.contour(side, side, scores, levels=[0], colors=[INK], linewidths=2.2)
    if moment.truth is not None:
        axes.contour(
            side, side, moment.truth(plane).reshape(shape), levels=[0], colors=[FAINT], linewidths=1.4,
            linestyles=[(0, (4, 3))],
        )  # fmt: skip
    age = np.linspace(0.25, 1.0, len(moment.X))
    for sign, colour, marker in ((1, POSITIVE, "o"), (-1, NEGATIVE, "s")):
        chosen = moment.y == sign
        axes.scatter(
            moment.X[chosen, 0], moment.X[chosen, 1], s=26, c=colour, marker=marker, alpha=age[chosen],
            edgecolors="white", linewidths=0.5, zorder=3,
        )  # fmt: skip
    axes.set_xlim(-half_width, half_width)
    axes.set_ylim(-half_width, half_width)
    axes.set_aspect("equal", anchor="NW")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color("#BBBBBB")


def drift_figure(
    moments: Sequence[Moment], errors: Mapping[str, Floats], window: int, *, learner: str, title: str,
    dashed: Sequence[str] = (), best_error: float | None = None, history: Sequence[Look] = (),
) -> Figure:  # fmt: skip
    """One picture of a race on a drifting stream: left, a learner at some moments; right, the errors of all.

    Parameters
    ----------
    moments : the learner at (usually four) moments.
    errors : for each name, the `windowed` error rates.
    window : the number of rows in the window.
    learner, title : the name of the learner on the left; the heading on the right.
    dashed : names whose curves are dashed.
    best_error : the error rate of the best possible rule, drawn as a line.
    history : looks at the weights of a mixture (`weights`), drawn below the errors by their forgetting.
    """
    figure = new_figure(16, 7)
    columns = figure.add_gridspec(1, 2, width_ratios=[0.385, 0.615])
    left, right = figure.add_subfigure(columns[0]), figure.add_subfigure(columns[1])
    _draw_moments(left, moments, learner)
    axes = right.add_axes((0.09, 0.395, 0.715, 0.485) if history else (0.09, 0.115, 0.715, 0.765))
    right.text(0.09, 0.94, title, fontsize=LARGE, fontweight="bold", color=INK, va="center")
    draw_errors(axes, errors, window, dashed)
    if best_error is not None:
        axes.axhline(100 * best_error, color=FAINT, linewidth=1.4, linestyle=(0, (4, 3)), zorder=1)
        axes.annotate(
            f"best possible rule: {100 * best_error:.1f} %", (0.012, 100 * best_error), (0, -5), fontsize=SMALL,
            xycoords=("axes fraction", "data"), textcoords="offset points", color="#666666", va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        )  # fmt: skip
    for letter, moment in zip(LETTERS, moments, strict=False):
        axes.axvline(moment.row, color="#D2D2D2", linewidth=1.0, zorder=0)
        axes.annotate(
            letter, (moment.row, 1.0), xycoords=("data", "axes fraction"), fontsize=SMALL, fontweight="bold",
            color="#666666", ha="center", va="bottom",
        )  # fmt: skip
    if history:
        below = right.add_axes((0.09, 0.095, 0.715, 0.2))
        draw_weights(below, history, "forgetting")
        below.set_title(f"the experts of {learner} by their forgetting", fontsize=MEDIUM, color=INK, loc="left", pad=5)
        below.set_xlim(axes.get_xlim())
        below.set_xlabel("rows seen", fontsize=MEDIUM, color=INK)
        axes.set_xlabel("")
    return figure


def _draw_moments(figure: SubFigure, moments: Sequence[Moment], learner: str) -> None:
    half_width = 1.02 * max(float(np.abs(moment.X).max()) for moment in moments)
    columns = (len(moments) + 1) // 2
    grid = figure.add_gridspec(2, columns, left=0.035, right=0.975, bottom=0.09, top=0.88, wspace=0.05, hspace=0.14)
    heading = f"{learner} while the stream turns"
    figure.text(0.035, 0.94, heading, fontsize=LARGE, fontweight="bold", color=INK, va="center")
    for place, (letter, moment) in enumerate(zip(LETTERS, moments, strict=False)):
        axes = figure.add_subplot(grid[divmod(place, columns)])
        draw_boundary(axes, moment, half_width)
        axes.set_title(f"{letter}   row {moment.row:,}", fontsize=MEDIUM, color=INK, loc="left", pad=5)
    figure.text(
        0.035, 0.04, f"points: the last {max(len(moment.X) for moment in moments)} rows, older ones paler\n"
        f"solid: the boundary of {learner}; dashed: of the best possible rule",
        fontsize=SMALL, color=INK, va="center", linespacing=1.4,
    )  # fmt: skip
