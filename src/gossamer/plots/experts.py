"""The weights of the experts of a mixture over time: what a stream has taught it."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.plots.style import INK, LARGE, MEDIUM, SMALL, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: A look at a mixture: the row, the experts, and their weights.
Look = tuple[int, Sequence[Any], Any]

#: Light to dark, for values in their order.
SHADES = ("#F3E9A8", "#BFDD8C", "#74C49A", "#3B9FA6", "#2C6F9E", "#3B3F86", "#3A1D5C")
#: What the settings of `AutoClassifier` and `AutoRegressor` mean.
TITLES = {
    "width": "width of the Gaussian; 0: linear", "forgetting": "forgetting; 1: the world stands still",
    "noise": "noise", "view": "how rows are seen", "rough": "a Laplace kernel", "smooth": "the logistic loss",
}  # fmt: skip


def weights(
    history: Sequence[Look], path: str | PathLike[str] | None = None, *, by: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:  # fmt: skip
    """The weights of the experts of a mixture over time, a panel for each setting: what the stream taught about it.

    Parameters
    ----------
    history : looks at a model while it learns, ``(row, model.experts_, model.weights_)``.
    path : where to save the picture (.png, .pdf or .svg), if anywhere.
    by : the settings to draw; by default all that differ. Experts without settings have one panel.
    title : a heading.

    >>> from gossamer import AutoClassifier
    >>> from gossamer.synthetic import rotating_xor
    >>> X, y = rotating_xor(300, turns=2)
    >>> model, history = AutoClassifier(budget=16), []
    >>> for row in range(0, 300, 100):
    ...     model = model.partial_fit(X[row : row + 100], y[row : row + 100])
    ...     history.append((row + 100, model.experts_, model.weights_))
    >>> [axes.get_title(loc="left").partition(";")[0] for axes in weights(history).axes]
    ['width of the Gaussian', 'forgetting', 'noise', 'how rows are seen', 'the logistic loss']
    """
    looks = _check(history)
    everybody = [expert for _, experts, _ in looks for expert in experts]
    known = [f.name for f in dataclasses.fields(everybody[0])] if dataclasses.is_dataclass(everybody[0]) else []
    names: list[str | None] = [name for name in known if len({getattr(one, name) for one in everybody}) > 1]
    if by is not None:
        for name in by:
            _checks.one_of("weights", "by", name, known)
        names = list(by)
    names = names or [None]
    figure = new_figure(11, 1.1 + 2.3 * len(names))
    panels = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
    for axes, setting in zip(panels, names, strict=True):
        draw_weights(axes, looks, setting)
    panels[-1].set_xlabel("rows seen", fontsize=MEDIUM, color=INK)
    if title:
        figure.suptitle(title, fontsize=LARGE, fontweight="bold", color=INK, x=0.01, ha="left")
    figure.tight_layout()
    if path is not None:
        figure.savefig(path)
    return figure


def draw_weights(axes: Axes, history: Sequence[Look], by: str | None = None) -> None:
    """The weights of experts over time, stacked, together for each value of a setting; of each expert without one."""
    looks = _check(history)
    found = [[expert if by is None else getattr(expert, by) for expert in experts] for _, experts, _ in looks]
    values = list(dict.fromkeys(value for row in found for value in row))
    values = sorted(values) if by is not None else values
    totals = np.zeros((len(values), len(looks)))
    for t, (row, (_, _, given)) in enumerate(zip(found, looks, strict=True)):
        np.add.at(totals[:, t], [values.index(value) for value in row], given)
    shades = [SHADES[round(i * (len(SHADES) - 1) / max(1, len(values) - 1))] for i in range(len(values))]
    words = {False: "no", True: "yes"}
    named = [f"{v:g}" if isinstance(v, float) else words[v] if isinstance(v, bool) else str(v) for v in values]
    bands = axes.stackplot([row for row, _, _ in looks], 100 * totals, colors=shades, linewidth=0)
    axes.set_ylim(0, 100)
    axes.set_xlim(looks[0][0], max(looks[-1][0], looks[0][0] + 1))
    axes.set_ylabel("weight, %", fontsize=MEDIUM, color=INK)
    axes.set_title(TITLES.get(by or "", by or "experts"), fontsize=MEDIUM, color=INK, loc="left", pad=5)
    axes.xaxis.set_major_formatter(lambda row, _: f"{row:,.0f}")
    axes.legend(bands[::-1], named[::-1], loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=SMALL, frameon=False)
    tidy(axes)


def _check(history: Sequence[Look]) -> list[tuple[int, Sequence[Any], Floats]]:
    """Validate looks: rows that ascend, and a weight for each expert."""
    if not len(history):
        raise _checks.wrong("weights", "history", "at least one look (row, experts, weights)", history)
    looks = [(int(row), experts, np.asarray(given, dtype=np.float64)) for row, experts, given in history]
    if any(given.shape != (len(experts),) or not len(experts) for _, experts, given in looks):
        raise _checks.wrong(
            "weights", "history", "looks (row, experts, weights) with a weight for each expert", history
        )
    if any(a[0] >= b[0] for a, b in itertools.pairwise(looks)):
        raise _checks.wrong("weights", "history", "looks at rows that ascend", [row for row, _, _ in looks])
    return looks
