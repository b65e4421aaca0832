"""Pictures of learners on streams: error curves, decision boundaries, evaluations, the curves of additive models.

The file is long because every picture of the package is here. matplotlib is imported when a picture is drawn, not
before. No function touches pyplot or any other global state: each draws on the axes it is given, or returns a new
Figure that the caller saves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from gossamer.evaluate import Trace

__all__ = ["Moment", "draw_boundary", "draw_errors", "drift_figure", "effects", "intervals", "new_figure",
           "reliability", "trace", "windowed"]  # fmt: skip

#: A function of rows of numbers, positive where the class is +1.
Score = Callable[[Floats], Floats]

#: Colours that people with any colour vision tell apart (Okabe and Ito), in the order in which curves take them.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#6B6B6B")
POSITIVE, NEGATIVE, INK, FAINT = "#C9622B", "#3B6FB6", "#222222", "#8A8A8A"
SMALL, MEDIUM, LARGE = 12, 13.5, 16
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


def new_figure(width: float, height: float) -> Figure:
    """A new, empty Figure; if matplotlib is missing, an error that names the extra to install."""
    made: Figure = _checks.extra("matplotlib.figure", "Drawing", "plot").Figure(
        figsize=(width, height), dpi=100, facecolor="white"
    )
    return made


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
    _tidy(axes)
    _label_ends(axes, ends)


def _label_ends(axes: Axes, ends: Mapping[str, tuple[float, float, str]]) -> None:
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
    dashed: Sequence[str] = (), best_error: float | None = None,
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
    """
    figure = new_figure(16, 7)
    columns = figure.add_gridspec(1, 2, width_ratios=[0.385, 0.615])
    left, right = figure.add_subfigure(columns[0]), figure.add_subfigure(columns[1])
    _draw_moments(left, moments, learner)
    axes = right.add_axes((0.09, 0.115, 0.715, 0.765))
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


# ---------------------------------------------------------------------------------------------------------- traces

#: The axis label of a metric, and the factor that scales it.
AXIS = {
    "error": ("errors, %", 100.0), "accuracy": ("right, %", 100.0), "alarms": ("alarms, %", 100.0),
    "mae": ("mean absolute error", 1.0), "rmse": ("root mean squared error", 1.0), "auc": ("AUC", 1.0),
}  # fmt: skip


def trace(
    traces: Trace | Mapping[str, Trace], path: str | PathLike[str] | None = None, *, metric: str | None = None,
    title: str | None = None, alarms: Sequence[int] = (),
) -> Figure:  # fmt: skip
    """One or several evaluations: a metric in each window and over all rows, and the number of support points.

    Parameters
    ----------
    traces : a Trace, or Traces by name.
    path : where to save the picture (.png, .pdf or .svg), if anywhere.
    metric : the metric to draw; by default the first of the traces.
    title : a heading.
    alarms : rows of drift alarms, drawn as lines.

    >>> from gossamer.evaluate import Record, Trace
    >>> records = [Record(100 * i, 100, {"error": 0.3}, {"error": 0.2}, 10 * i) for i in (1, 2, 3)]
    >>> figure = trace(Trace("classification", ["error"], records))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['errors, %', 'support points']
    """
    named = dict(traces) if isinstance(traces, Mapping) else {"": traces}
    if not named or not all(len(one) for one in named.values()):
        raise _checks.wrong("trace", "traces", "at least one Trace with records", list(named))
    shown = metric or next(iter(named.values())).metrics[0]
    with_support = any(np.isfinite(one.support).any() for one in named.values())
    figure = new_figure(11, 6.2 if with_support else 4.6)
    grid = figure.add_gridspec(
        2 if with_support else 1, 1, height_ratios=[2.6, 1] if with_support else [1], left=0.085,
        right=0.97 if "" in named else 0.80, bottom=0.1, top=0.86, hspace=0.16,
    )  # fmt: skip
    top = figure.add_subplot(grid[0])
    _draw_metric(top, named, shown)
    bottom = top
    if with_support:
        bottom = figure.add_subplot(grid[1], sharex=top)
        for colour, one in zip(cycle(COLOURS), named.values(), strict=False):
            bottom.plot(one.row, one.support, color=colour, linewidth=1.6)
        bottom.set_ylim(0, None)
        bottom.set_ylabel("support points", fontsize=MEDIUM, color=INK)
        top.tick_params(labelbottom=False)
        _tidy(bottom)
        figure.align_ylabels([top, bottom])
    for axes in {top, bottom}:
        for row in alarms:
            axes.axvline(row, color=INK, linewidth=1.0, linestyle=":")
    bottom.set_xlabel("rows seen", fontsize=MEDIUM, color=INK)
    bottom.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    windows = {one.records[0].rows for one in named.values()}
    solid = f"solid: each {min(windows):,} rows; " if len(windows) == 1 else ""
    if title:
        figure.text(0.085, 0.95, title, fontsize=LARGE, fontweight="bold", color=INK, va="center")
    figure.text(0.085, 0.895, solid + "dashed: all rows so far", fontsize=SMALL, color="#666666", va="center")
    if path is not None:
        figure.savefig(path)
    return figure


def _draw_metric(axes: Axes, named: Mapping[str, Trace], metric: str) -> None:
    label, factor = AXIS.get(metric, (metric, 1.0))
    ends = {}
    for colour, (name, one) in zip(cycle(COLOURS), named.items(), strict=False):
        window, total = factor * one.window(metric), factor * one.total(metric)
        axes.plot(one.row, window, color=colour, linewidth=1.4, alpha=0.85, marker="o" if len(one) == 1 else None)
        axes.plot(one.row, total, color=colour, linewidth=1.8, linestyle=(0, (4, 1.5)))
        ends[name] = (float(one.row[-1]), float(total[-1]), colour)
    axes.set_xlim(0, max(row for row, _, _ in ends.values()))
    if metric != "auc" and axes.get_ylim()[0] >= 0:
        axes.set_ylim(0, None)
    axes.set_ylabel(label, fontsize=MEDIUM, color=INK)
    _tidy(axes)
    if "" not in ends:
        _label_ends(axes, {name: end for name, end in ends.items() if np.isfinite(end[1])})


def _tidy(axes: Axes) -> None:
    axes.tick_params(labelsize=SMALL, colors=INK)
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def effects(
    model: Any, X: Any, path: str | PathLike[str] | None = None, *, names: Sequence[str] | None = None,
    columns: int = 4,
) -> Figure:  # fmt: skip
    """The curves of an additive model (`AdditiveRegressor`, `AdditiveClassifier`), a panel per coordinate.

    A panel per coordinate has the curve f_i over the middle 99 % of its values in X, minus its mean over X, on one
    scale for all; below it the density of those values. With several classes there is a curve for each.

    Parameters
    ----------
    model : a fitted model.
    X : rows, to know where the data lie.
    path : where to save the picture (.png, .pdf or .svg), if anywhere.
    names : of the coordinates, in place of ``model.coordinate_names_``.
    columns : the most panels side by side.

    >>> from gossamer import AdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> figure = effects(AdditiveRegressor().fit(X, X[:, 0] ** 2), X)
    >>> [axes.get_title(loc="left") for axes in figure.axes]
    ['x0', 'x1']
    """
    _checks.whole("effects", "columns", columns, 1)
    coordinates = model.coordinates(X)
    titles = list(model.coordinate_names_ if names is None else names)
    if len(titles) != coordinates.shape[1]:
        raise _checks.wrong("effects", "names", f"one for each of the {coordinates.shape[1]} coordinates", titles)
    means = model.feature_effects(X).mean(axis=0)
    down = -(-len(titles) // columns)
    across = -(-len(titles) // down)
    figure = new_figure(3.4 * across + 0.8, 2.9 * down + 0.5)
    panels = figure.subplots(down, across, sharey=True, squeeze=False)
    classes = [str(name) for name in getattr(model, "classes_", [])]
    for i, axes in enumerate(panels.flat):
        if i >= len(titles):
            axes.remove()
            continue
        low, high = np.quantile(coordinates[:, i], [0.005, 0.995])
        grid = np.linspace(low, high, 200)
        curves = (model.curve(i, grid) - means[i]).reshape(len(grid), -1)
        for k, colour in zip(range(curves.shape[1]), cycle(COLOURS), strict=False):
            label = classes[k] if curves.shape[1] > 1 else None
            axes.plot(grid, curves[:, k], color=colour, linewidth=1.8, label=label, zorder=3)
        _draw_density(axes, coordinates[:, i], low, high)
        axes.axhline(0, color=FAINT, linewidth=0.8, zorder=1)
        axes.set_title(titles[i], fontsize=MEDIUM, color=INK, loc="left", pad=5)
        _tidy(axes)
    low, high = panels[0, 0].get_ylim()
    panels[0, 0].set_ylim(low - 0.2 * (high - low), high)  # room for the densities
    if len(classes) > 2:
        lines = panels[0, 0].get_legend_handles_labels()
        figure.legend(*lines, fontsize=SMALL, frameon=False, loc="upper right", ncols=8)
    figure.supylabel("effect", fontsize=MEDIUM, color=INK)
    figure.tight_layout()
    if path is not None:
        figure.savefig(path)
    return figure


def _draw_density(axes: Axes, values: Floats, low: float, high: float) -> None:
    """Where the data lie: a grey histogram in the lowest sixth of the panel."""
    counts, edges = np.histogram(values, bins=24, range=(low, high) if high > low else None)
    heights = 0.16 * counts / max(int(counts.max()), 1)
    axes.stairs(heights, edges, fill=True, color="#DDDDDD", zorder=0, transform=axes.get_xaxis_transform())


def reliability(
    probabilities: Any, hits: Any, path: str | PathLike[str] | None = None, *, title: str | None = None
) -> Figure:
    """A reliability diagram: how often an event came, for rows that gave it about the same probability.

    Parameters
    ----------
    probabilities : the probability of the event for each row, made before.
    hits : whether the event came.
    path : where to save the picture, if anywhere.
    title : a heading.

    >>> p = np.linspace(0, 1, 1000)
    >>> figure = reliability(p, np.random.default_rng(0).random(1000) < p)
    >>> figure.axes[0].get_xlabel()
    'probability given'
    """
    from gossamer.evaluate.metrics import Reliability

    p, came = np.asarray(probabilities, dtype=np.float64), np.asarray(hits)
    if p.ndim != 1 or p.shape != came.shape or not ((p >= 0) & (p <= 1)).all():
        raise _checks.wrong("reliability", "probabilities", "one in [0, 1] for each of the hits", p.shape)
    bins = Reliability()
    bins.count(p, came)
    rows, chances, hit = bins.table[:, bins.table[0] > 0]
    figure = new_figure(6.4, 6.4)
    axes = figure.add_axes((0.13, 0.11, 0.83, 0.77))
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1.0, linestyle=":")
    spread = 1.96 * np.sqrt(np.maximum(hit / rows * (1 - hit / rows), 1e-9) / rows)
    axes.errorbar(chances / rows, hit / rows, yerr=spread, color=COLOURS[0], marker="o", linewidth=1.6, capsize=3)
    axes.bar(chances / rows, rows / rows.sum(), width=0.02, color=COLOURS[0], alpha=0.25)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_xlabel("probability given", fontsize=MEDIUM, color=INK)
    axes.set_ylabel("share that came (bars: share of rows)", fontsize=MEDIUM, color=INK)
    axes.set_title(title or f"{len(p):,} rows, calibration error {bins.error():.3f}", fontsize=MEDIUM, color=INK)
    _tidy(axes)
    if path is not None:
        figure.savefig(path)
    return figure


def intervals(
    y: Any, ends: Any, path: str | PathLike[str] | None = None, *, alarms: Sequence[int] = (), title: str | None = None
) -> Figure:
    """A series with the band of its intervals; targets outside of it are marked.

    Parameters
    ----------
    y : the targets in order.
    ends : the low and the high end for each, (rows, 2), as ``predict_learn(..., method="interval")`` returns.
    path : where to save the picture, if anywhere.
    alarms : rows of drift alarms, drawn as lines.
    title : a heading.

    >>> y = np.sin(np.arange(100) / 10)
    >>> intervals(y, np.column_stack([y - 0.1, y + 0.1])).axes[0].get_title()
    '100 rows, 100.0 % inside'
    """
    y, ends = np.asarray(y, dtype=np.float64), np.asarray(ends, dtype=np.float64)
    if y.ndim != 1 or ends.shape != (len(y), 2):
        raise _checks.wrong("intervals", "ends", f"of shape ({len(y)}, 2)", ends.shape)
    rows, inside = np.arange(1, len(y) + 1), (ends[:, 0] <= y) & (y <= ends[:, 1])
    reach = np.ptp(y) or 1.0
    low, high = np.clip(ends, y.min() - 0.3 * reach, y.max() + 0.3 * reach).T
    figure = new_figure(11, 4.6)
    axes = figure.add_axes((0.075, 0.13, 0.905, 0.76))
    axes.fill_between(rows, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
    axes.plot(rows, y, color=INK, linewidth=0.8)
    axes.plot(rows[~inside], y[~inside], ".", color=COLOURS[1], markersize=4)
    for row in alarms:
        axes.axvline(row, color=INK, linewidth=1.2, linestyle=":")
    axes.set_xlabel("rows seen", fontsize=MEDIUM, color=INK)
    axes.set_title(title or f"{len(y):,} rows, {100 * inside.mean():.1f} % inside", fontsize=MEDIUM, color=INK)
    _tidy(axes)
    if path is not None:
        figure.savefig(path)
    return figure
