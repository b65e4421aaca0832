"""Who is awake: experts that stay negligible are retired, and others are started. Everything goes by the count of rows.

- The first rows have a few experts; at row `START`, when the distances between rows are known, all settings start and
  learn these rows anew.
- From then on the worst are retired (`LIMITS`), down to a few that carry the weight.
- Every `EVERY` rows a young expert starts with the settings of the best and nothing learned, for a world that has just
  changed. It is retired soon, unless it has weight.
- Every `EXPLORE` rows neighbours of the best start, with what it knows or, with another kernel, with the last rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gossamer._typing import Floats, Ints
from gossamer.learner import Learner
from gossamer.mixture.settings import Setting

#: Rows between two changes of the roster.
EVERY = 32
#: The row at which all settings start, and the rows that a mixture remembers for those that start later.
START, MEMORY = 64, 256
#: The most experts that are awake from a row on.
LIMITS = ((128, 56), (256, 36), (512, 22), (1024, 12), (2048, 6))
#: Experts that stay whatever their weight.
FEWEST = 3
#: An expert whose credit is this much below the best is negligible.
NEGLIGIBLE = 7.0
#: Rows between two starts of neighbours, how many start, and the rows that each is given.
EXPLORE, EXPLORERS, TRIAL = 1024, 2, 768
#: The rows from which young experts and explorers start.
FIRST_YOUNG, FIRST_EXPLORERS = 256, 1024
#: The rows that a young expert is given; one in `ELDER` has more of them.
YOUTH, ELDER, ELDER_YOUTH = 64, 8, 256
#: The weight that an expert gets when it starts, and that it must have at the end of its trial.
ENTRY, PROMOTION = 0.005, 0.02


@dataclass
class Expert:
    """An expert: its settings, its learner, and the row until which it stays whatever its weight."""

    setting: Setting
    learner: Learner
    trial: int = 0  # the row at which its trial ends; 0: it has none


def limit_at(row: int, most: int) -> int | None:
    """How many experts may be awake at a row; None while all may."""
    found = None
    for start, limit in LIMITS:
        if row >= start:
            found = max(limit, most) if start < LIMITS[-1][0] else most
    return found


def survivors(experts: list[Expert], weights: Floats, credits: Floats, row: int, most: int) -> list[int]:
    """The places of the experts that go on after a row."""
    kept: list[int] = []
    settled: list[int] = []
    for place, expert in enumerate(experts):
        if expert.trial > row:
            kept.append(place)
        elif not expert.trial or weights[place] >= PROMOTION:
            settled.append(place)
    limit = limit_at(row, most)
    order: Ints = np.argsort(-credits[settled], kind="stable")
    ranked = [settled[place] for place in order.tolist()]
    if limit is not None and ranked:
        best = credits[ranked[0]]
        awake = [p for p in ranked if credits[p] >= best - NEGLIGIBLE or weights[p] >= PROMOTION]
        ranked = ranked[: max(min(len(awake), limit), min(FEWEST, len(ranked)))]
    return sorted([*kept, *ranked]) if ranked or kept else list(range(len(experts)))


def young_trial(row: int, like_the_best: bool) -> int:
    """The end of the trial of a young expert that starts at a row."""
    return row + (ELDER_YOUTH if like_the_best and row % (ELDER * EVERY) == 0 else YOUTH)
