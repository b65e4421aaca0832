"""Prequential evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np

from gossamer import _checks
from gossamer.plots.style import COLOURS, INK, LARGE, MEDIUM, SMALL, label_ends, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gossamer.evaluate import Trace

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
        tidy(bottom)
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
    tidy(axes)
    if "" not in ends:
        label_ends(axes, {name: end for name, end in ends.items() if np.isfinite(end[1])})
