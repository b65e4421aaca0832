"""Models that have gone astray say so: once, with the reason and what to do."""

from __future__ import annotations

import math
import os
import sys
import warnings
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from gossamer import _core
from gossamer._typing import Floats
from gossamer.exceptions import CollapseWarning, DivergenceWarning

#: A score of a regressor beyond so many deviations of the targets has nothing to do with them.
LARGEST = 1e9
#: Rows whose scores are all the same, after at least as many, are no accident.
ENOUGH = 64
#: What each model has been warned about; not one of its attributes, which are copied, compared and stored.
_told: WeakKeyDictionary[Any, set[type[RuntimeWarning]]] = WeakKeyDictionary()
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def first_time(model: Any, kind: type[RuntimeWarning]) -> bool:
    """Whether nobody has warned of this yet, the model or whoever evaluates it; from now on somebody has."""
    told = _told.setdefault(model, set())
    new = kind not in told
    told.add(kind)
    return new


def hush(model: Any) -> None:
    """This model says nothing: whoever holds it looks at its scores."""
    _told[model] = {DivergenceWarning, CollapseWarning}


def inherit(source: Any, model: Any) -> None:
    """What one model has said, another that takes its place need not say again."""
    _told[model] = set(_told.get(source, ()))


def watch(model: Any, scores: Floats, scaled: bool = False) -> None:
    """Warn once if a score is not finite (-inf stands for a class not yet seen), or if it is that of a regressor in
    units of its targets, ``scaled``, and absurd.

    >>> class Model: pass
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always")
    ...     watch(Model(), np.array([0.0, math.inf]))
    >>> str(told[0].message)[:36]
    'Model has diverged: a score is inf. '
    """
    limit = LARGEST if scaled else math.inf
    low, high = _core.extent(scores)
    if high < limit and (low > -limit or scores.ndim == 2):
        return
    worst = high if not high < limit else low
    reason = "The steps are too long for features of this size, or the targets grow without end."
    advice = "Scale the features (OnlineScaler), take a smaller rate or C, or a bounded kernel (Gaussian); fit anew."
    _tell(model, DivergenceWarning, f"has diverged: a score is {worst:g}. {reason} {advice}")


def watch_rows(model: Any, scores: Floats, targets: Any, before: int, scaled: bool = False) -> None:
    """`watch`, and warn if the model tells no rows apart; ``before``: the rows that it had learned before these."""
    watch(model, scores, scaled)
    if scores.ndim > 1 or len(scores) < ENOUGH or before < ENOUGH or targets is None or scores[0] != scores[-1]:
        return
    if np.ptp(scores) == 0 and np.ptp(np.asarray(targets, dtype=np.float64)) > 0:
        advice = "The kernel may be too narrow for these features (a smaller gamma), or the model forgets too fast."
        _tell(model, CollapseWarning, f"gives {len(scores)} rows the same score, {scores[0]:g}. {advice}")


def _tell(model: Any, kind: type[RuntimeWarning], text: str) -> None:
    if not first_time(model, kind):
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):  # the caller's line, not one of ours
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{type(model).__name__} {text}", kind, stacklevel=level)
