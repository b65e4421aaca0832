"""Pictures of learners on streams: error curves, decision boundaries, evaluations, the curves of additive models, the
weights of a mixture, reliability and intervals.

matplotlib is imported when a picture is drawn, not before. No function touches pyplot or any other global state:
each draws on the axes it is given, or returns a new Figure that the caller saves.
"""

from gossamer.plots.certainty import intervals, reliability
from gossamer.plots.curves import effects
from gossamer.plots.drift import Moment, Score, draw_boundary, draw_errors, drift_figure, windowed
from gossamer.plots.experts import draw_weights, weights
from gossamer.plots.style import new_figure, spread
from gossamer.plots.traces import trace

__all__ = [
    "Moment",
    "Score",
    "draw_boundary",
    "draw_errors",
    "draw_weights",
    "drift_figure",
    "effects",
    "intervals",
    "new_figure",
    "reliability",
    "spread",
    "trace",
    "weights",
    "windowed",
]
