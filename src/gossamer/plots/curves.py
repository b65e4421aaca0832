"""The curves of additive models."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.plots.style import COLOURS, FAINT, INK, MEDIUM, SMALL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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
        tidy(axes)
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
