"""Who is awake: experts that stay negligible are retired, and others are started. Everything goes by the count of rows.

- The first rows have a few experts; at row `START`, when the distances between rows are known, all settings start and
  learn these rows anew.
- From then on the worst are retired (`LIMITS`), down to a few that carry the weight.
- Every `EVERY` rows a young expert starts with the settings of the best and nothing learned, for a world that has just
  changed. It is retired soon, unless it has weight.
- Every `EXPLORE` rows neighbours of the best start, with what it knows or, with another kernel, with the last rows.
- Then, too, a copy of the best falls asleep: it is asked for every row, and learns none. If its world comes back, it
  has weight within tens of rows, and a copy of it wakes; it sleeps on, for the next time. With two classes another copy
  says the opposite, for classes that are exchanged.
- With two classes, every `GUESS` rows other sleepers guess that the world moves: they know what the best knows, and see
  rows shifted, forth and back, in the direction in which its scores grow. A threshold that moves, a sensor that is
  gauged anew: the sleeper that saw it coming has weight within tens of rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gossamer._typing import Floats
from gossamer.learner import Learner
from gossamer.mixture.settings import Setting

#: Rows between two changes of the roster.
EVERY = 32
#: The row at which all settings start, and the rows that a mixture remembers for those that start later.
START, MEMORY = 64, 256
#: The most experts that are awake from a row on.
LIMITS = ((128, 78), (256, 50), (512, 30), (1024, 16), (2048, 6))
#: Experts that stay whatever their weight.
FEWEST = 3
#: An expert whose credit is this much below the best is negligible. (In the first rows of a quantile none is: a
#: flexible expert that needs more rows than a linear one falls far behind in its narrow density before it leads.)
NEGLIGIBLE = 7.0
#: Rows between two starts of neighbours, how many start, and the rows that each is given.
EXPLORE, EXPLORERS, TRIAL = 1024, 2, 768
#: The rows from which young experts and explorers start.
FIRST_YOUNG, FIRST_EXPLORERS = 256, 1024
#: The rows that a young expert is given; one in `ELDER` has more of them.
YOUTH, ELDER, ELDER_YOUTH = 64, 8, 256
#: The weight that an expert gets when it starts, and that it must have at the end of its trial.
ENTRY, PROMOTION = 0.005, 0.02
#: The worlds that are remembered by sleepers, and the rows that an expert must have learned before a copy is kept.
WORLDS, PROVEN = 3, 512
#: Rows between two guesses of how the world moves, and how far, in deviations of the rows, forth and back.
GUESS, MOVES = 256, (0.25, 0.6)
#: The least squared correlation of scores with rows in one direction for a guess.
STRAIGHT = 0.3
#: The least weight of a sleeper at each change of the roster, so that all together take no more than two newcomers; and
#: the rows until another copy of the same sleeper may wake.
NOTICE, REST = (1 - (1 - ENTRY) ** 2) / (2 * WORLDS + 2 * len(MOVES)), 1024


@dataclass
class Expert:
    """An expert: its settings, its learner, and the row until which it stays whatever its weight."""

    setting: Setting
    learner: Learner
    trial: int = 0  # the row at which its trial ends; of a sleeper, its rest; 0: it has none
    asleep: int = 0  # the row at which it fell asleep; 0: it is awake
    opinion: Floats | None = None  # of a sleeper: its opinion when it fell asleep
    shift: Floats | None = None  # what is added to the scaled rows that it sees
    guess: bool = False  # a sleeper that guesses how the world moves; all that do share a learner


def limit_at(row: int, most: int) -> int | None:
    """How many experts may be awake at a row; None while all may."""
    found = None
    for start, limit in LIMITS:
        if row >= start:
            found = max(limit, most) if start < LIMITS[-1][0] else most
    return found


def survivors(
    experts: list[Expert], weights: Floats, credits: Floats, row: int, most: int, patient: bool = False
) -> list[int]:
    """The places of the experts that go on after a row: sleepers, those on trial unless they are hopeless long before
    its end, and of the others the heavy and the best; if ``patient``, none is negligible in the first rows."""
    kept: list[int] = []
    settled: list[int] = []
    for place, expert in enumerate(experts):
        hopeless = expert.trial > row + ELDER_YOUTH and credits[place] < -NEGLIGIBLE
        if expert.asleep or (expert.trial > row and not hopeless):
            kept.append(place)
        elif not expert.trial or weights[place] >= PROMOTION:
            settled.append(place)
    limit = limit_at(row, most)
    if limit is not None and settled:
        best = credits[settled].max()
        least = -np.inf if patient and row < LIMITS[-1][0] else best - NEGLIGIBLE
        settled.sort(key=lambda p: -credits[p])
        # the heavy and the best of each view (but roots) first, then those with credit, then the rest
        leaders = {experts[p].setting.view: p for p in reversed(settled)}
        leaders.pop("rooted", None)
        rank = {p: 1 if credits[p] >= least else 2 for p in settled}
        rank.update({p: 0 for p in settled if weights[p] >= PROMOTION or p in leaders.values()})
        settled.sort(key=lambda p: rank[p])
        awake = sum(value < 2 for value in rank.values())
        settled = settled[: max(min(awake, limit), FEWEST)]
    return sorted([*kept, *settled]) if settled else list(range(len(experts)))


def same_world(experts: list[Expert], credits: Floats, best: float) -> set[int]:
    """The sleepers, by the rows at which they fell asleep, that give way to one like the best: those that know nothing
    else, and the oldest if there are too many."""
    asleep = sorted({expert.asleep for expert in experts if expert.asleep and not expert.guess})
    places = [place for place, expert in enumerate(experts) if expert.asleep and not expert.guess]
    known = {experts[place].asleep for place in places if credits[place] >= best - NEGLIGIBLE}
    others = [row for row in asleep if row not in known]
    return known | set(others[: max(0, len(others) - WORLDS + 1)])


def young_trial(row: int, like_the_best: bool) -> int:
    """The end of the trial of a young expert that starts at a row."""
    return row + (ELDER_YOUTH if like_the_best and row % (ELDER * EVERY) == 0 else YOUTH)
