"""How sure a model was: reliability diagrams, and series with the band of their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer.plots.style import COLOURS, INK, MEDIUM, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
    tidy(axes)
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
    tidy(axes)
    if path is not None:
        figure.savefig(path)
    return figure
