"""Warn about models that diverge or collapse: once, with the reason and a remedy."""

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

#: A score of a regressor beyond this many deviations of the targets is absurd.
LARGEST = 1e9
#: This many rows with equal scores, after at least as many learned, count as a collapse.
ENOUGH = 64
#: The warnings of each model so far; not an attribute of the model, as attributes are copied, compared and stored.
_told: WeakKeyDictionary[Any, set[type[RuntimeWarning]]] = WeakKeyDictionary()
_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def first_time(model: Any, kind: type[RuntimeWarning]) -> bool:
    """Whether this warning is the first of its kind for a model; records it."""
    told = _told.setdefault(model, set())
    new = kind not in told
    told.add(kind)
    return new


def hush(model: Any) -> None:
    """Silence a model: its owner watches the scores."""
    _told[model] = {DivergenceWarning, CollapseWarning}


def inherit(source: Any, model: Any) -> None:
    """Copy the record of warnings to the model that replaces another."""
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
    """`watch`, and warn if all rows get the same score; ``before``: the number of rows learned before these."""
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
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):  # the caller outside the package
        frame, level = frame.f_back, level + 1
    warnings.warn(f"{type(model).__name__} {text}", kind, stacklevel=level)
