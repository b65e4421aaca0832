"""The contest as a picture: score against time, one panel for each piece of work."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from standings import Contest, Result, Subject

#: A colour and a marker for each library (Okabe and Ito).
STYLE = {
    "Gossamer": ("#D55E00", "o"),
    "scikit-learn": ("#0072B2", "s"),
    "river": ("#009E73", "^"),
    "Vowpal Wabbit": ("#CC79A7", "D"),
    "batch": ("#000000", "*"),
    "baseline": ("#888888", ""),
}


def draw(contest: Contest, path: Path) -> None:
    """Microseconds per row to the right, score upwards (AUC turned, so that the lower left corner is always best)."""
    columns = min(4, len(contest.subjects))
    lines = math.ceil(len(contest.subjects) / columns)
    picture, panels = plt.subplots(lines, columns, figsize=(3.3 * columns, 2.7 * lines + 0.6), squeeze=False)
    for panel in panels.flat[len(contest.subjects) :]:
        panel.axis("off")
    for panel, subject in zip(panels.flat, contest.subjects, strict=False):
        _panel(panel, contest, subject)
    picture.supxlabel("microseconds per row", fontsize=10)
    handles = [
        plt.Line2D([], [], color=colour, marker=marker, linestyle="--" if library == "baseline" else "", label=library)
        for library, (colour, marker) in STYLE.items()
    ]
    hollow = {"color": "#777777", "marker": "o", "fillstyle": "none", "linestyle": ""}
    handles.append(plt.Line2D([], [], label="first rows only", **hollow))
    picture.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=9)
    picture.tight_layout(rect=(0, 0, 1, 1 - 0.35 / picture.get_figheight()))
    picture.savefig(path, dpi=100)
    plt.close(picture)


def _panel(panel: plt.Axes, contest: Contest, subject: Subject) -> None:
    drawn = [one for one in contest.of(subject) if math.isfinite(one.score)]
    without = [_height(subject, one) for one in drawn if one.library == "baseline"]
    top = 1.15 * max(without)  # what is worse than no learning is drawn here, lest one that fell apart hides the rest
    for height in without:
        panel.axhline(height, color=STYLE["baseline"][0], linestyle="--", linewidth=0.8, zorder=1)
    for one in drawn:
        if one.library == "baseline":
            continue
        colour, marker = STYLE[one.library]
        face = "none" if one.limited else colour
        place = (_time(one), min(top, _height(subject, one)))
        panel.scatter(*place, s=30, marker=marker, facecolor=face, edgecolor=colour, linewidth=1.1, zorder=3)
    front = _front(subject, [one for one in drawn if not one.limited and one.library != "baseline"])
    panel.step(
        [_time(one) for one in front], [_height(subject, one) for one in front],
        where="post", color="#bbbbbb", linewidth=4, solid_capstyle="round", zorder=0,
    )  # fmt: skip
    panel.set_xscale("log")
    if not subject.higher:
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5, 7)))
        panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        panel.yaxis.set_minor_formatter(NullFormatter())
    panel.set_title(f"{subject.name}: {'1 - AUC' if subject.higher else subject.metric}", fontsize=9)
    panel.tick_params(labelsize=8)
    panel.grid(alpha=0.25, linewidth=0.5)


def _time(one: Result) -> float:
    return 1e6 / one.rows_per_second


def _height(subject: Subject, one: Result) -> float:
    return 1 - one.score if subject.higher else one.score


def _front(subject: Subject, results: list[Result]) -> list[Result]:
    """Those that nobody beats in time and score at once, by time."""
    front: list[Result] = []
    for one in sorted(results, key=lambda one: (_time(one), _height(subject, one))):
        if not front or _height(subject, one) < _height(subject, front[-1]):
            front.append(one)
    return front
