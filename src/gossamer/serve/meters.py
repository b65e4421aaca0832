"""How well a model does, row by row, against the simplest baselines; the same numbers for any cut of the rows.

Everything here is part of a model's state: it is stored and replayed with it, to the bit.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import Any

import numpy as np

from gossamer._typing import Array, Floats
from gossamer.drift import Alarm, DriftAlarm

#: Points of the line over all rows, at most; it has half as many after neighbours were merged.
POINTS = 240
#: Rows of the window.
WINDOW = 1000
#: Rows between false drift alarms, in the mean at least; and errors that are kept to compare with.
EVERY, MEMORY = 100_000, 2000
#: Rows before errors are watched for drift, and drift alarms that are kept.
WARM, MARKS = 1000, 30
#: The factor by which the mean error has changed at a drift alarm that is told. The errors of a model whose points come
#: and go are never quite alike; fewer alarms keep the bound on false ones.
CHANGED = 1.5
#: The fewest errors on either side of a change.
FEWEST = 10
#: What stands for an error that is no number.
HUGE = 1e300
#: Rows that are shown, and events of the story.
LATEST, EVENTS = 12, 60


class Meter:
    """The progressive error of a model, and of two baselines that know nothing but the labels.

    A classifier's error is the share of wrong predictions, against the most frequent class so far and the last label.
    A regressor's is the mean absolute error, against the mean so far and the last value. Of a detector, the share of
    alarms.

    >>> meter = Meter("classification")
    >>> alarms = meter.add(np.array(["a", "a", "b"]), np.array([0.0, 0.0, 1.0]), np.full(3, 5.0))
    >>> meter.summary()["error"], meter.summary()["baselines"]
    (0.3333333333333333, {'most frequent': 0.6666666666666666, 'last label': 0.6666666666666666})
    """

    def __init__(self, task: str, state: dict[str, Any] | None = None) -> None:
        self.task = task
        self.names = {
            "classification": ["most frequent", "last label"],
            "regression": ["mean so far", "last value"],
        }.get(task, [])
        width = 1 + len(self.names)
        state = state or {}
        self.rows: int = state.get("rows", 0)
        self.totals: Floats = np.array(state.get("totals", [0.0] * width))
        self.every: int = state.get("every", 1)  # rows of a point
        self.points: list[list[float]] = state.get("points", [])  # rows so far, time, and a mean for each line
        self.partial: Floats = np.array(state.get("partial", [0.0] * width))
        self.window: deque[list[float]] = deque(state.get("window", []), WINDOW)
        self.counts: dict[Any, int] = dict(state.get("counts", []))
        self.sum: float = state.get("sum", 0.0)
        self.last: Any = state.get("last")
        self.inside: list[int] = list(state.get("inside", [0, 0]))  # of intervals or sets, and rows that had them
        self.alarms: list[int] = list(state.get("alarms", [0, 0]))  # drift alarms, and the row of the last
        self.marks: list[list[float]] = list(state.get("marks", []))  # of drift alarms: row, since, time
        self.drift = DriftAlarm(every=EVERY, memory=MEMORY)
        if "drift" in state:
            learned = dict(state["drift"])
            self.drift._relearn({**learned, "martingale": np.array(learned["martingale"])})

    def state(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "rows": self.rows, "totals": self.totals.tolist(), "every": self.every, "points": self.points,
            "partial": self.partial.tolist(), "window": list(self.window),
            "counts": [[label, count] for label, count in self.counts.items()], "sum": self.sum, "last": self.last,
            "inside": self.inside, "alarms": self.alarms, "marks": self.marks,
            "drift": {name: getattr(value, "tolist", lambda value=value: value)()
                      for name, value in self.drift._learned().items()},
        }  # fmt: skip

    def add(
        self, y: Array | None, errors: Floats, times: Floats, inside: Array | None = None
    ) -> list[tuple[Alarm, str]]:
        """Count rows: their labels, the error of the prediction made before each was learned, when each came, and
        whether its target lay in the interval or set made before. Returns drift alarms over the errors, with words."""
        lines = [errors]
        if self.task == "classification":
            assert y is not None
            lines += self._frequent(y.tolist())
        elif self.task == "regression":
            assert y is not None
            lines += self._means(np.asarray(y, dtype=np.float64))
        table = np.column_stack(lines)
        counted = self.rows
        self.totals = _sum_in_order(self.totals, table)
        start, count = 0, len(table)
        while start < count:
            stop = min(count, start + self.every - self.rows % self.every)
            self.partial = _sum_in_order(self.partial, table[start:stop])
            self.rows += stop - start
            start = stop
            if self.rows % self.every == 0:
                self.points.append([self.rows, float(times[stop - 1]), *(self.partial / self.every).tolist()])
                self.partial = np.zeros(len(self.totals))
                if len(self.points) >= POINTS:
                    self._merge()
        if inside is not None:
            self.inside = [self.inside[0] + int(inside.sum()), self.inside[1] + len(inside)]
        found = self._watch(errors, counted, times)
        self.window.extend(table[-WINDOW:].tolist())
        return found

    def _watch(self, errors: Floats, counted: int, times: Floats) -> list[tuple[Alarm, str]]:
        """Watch errors for drift, after so many rows."""
        late = errors[max(0, WARM - counted) :]  # a model that begins errs less and less
        if not len(late):
            return []
        found, shift = [], max(counted, WARM) - self.drift.row
        begun = self.drift._first + shift  # where watching began anew
        late = late if np.isfinite(late).all() else np.nan_to_num(late, nan=HUGE, posinf=HUGE)
        for alarm in self.drift.update(late):
            alarm = alarm._replace(row=alarm.row + shift)
            watched = min(WINDOW, max(alarm.row - begun, 4 * FEWEST))
            begun, fresh = alarm.row, errors[max(0, alarm.row - counted - watched) : alarm.row - counted]
            older = islice(reversed(self.window), watched - len(fresh))
            recent = np.concatenate([np.array([row[0] for row in older])[::-1], fresh])
            since, old, new = find_change(recent, alarm.row)
            if old / CHANGED < new < CHANGED * old:
                continue
            found.append((alarm._replace(since=since), self._words(alarm.row, since, old, new)))
            self.alarms = [self.alarms[0] + 1, alarm.row]
            self.marks = [*self.marks, [alarm.row, since, float(times[alarm.row - counted - 1])]][-MARKS:]
        return found

    def _words(self, row: int, since: int, old: float, new: float) -> str:
        """What a drift alarm says."""
        unit, size = (1.0, "") if self.task == "regression" else (100.0, " %")
        verb, more = "raises alarms" if self.task == "novelty" else "errs", "more" if new > old else "less"
        shown = f"{unit * old:.3g}{size}, then {unit * new:.3g}{size}"
        return f"{verb} {more} since about row {since:,} ({shown}): drift alarm at row {row:,}"

    def _merge(self) -> None:
        """Halve the line: two neighbours become one point."""
        pairs = zip(self.points[::2], self.points[1::2], strict=True)
        self.points = [[*b[:2], *((p + q) / 2 for p, q in zip(a[2:], b[2:], strict=True))] for a, b in pairs]
        self.every *= 2

    def _frequent(self, labels: list[Any]) -> list[Floats]:
        """The errors of the most frequent class so far, the first of equals, and of the last label."""
        names = list(dict.fromkeys([*self.counts, *labels]))
        places = {label: place for place, label in enumerate(names)}
        codes = np.array([places[label] for label in labels])
        counts = np.zeros((len(labels) + 1, len(names)), dtype=np.int64)
        counts[0, : len(self.counts)] = list(self.counts.values())
        counts[np.arange(1, len(labels) + 1), codes] = 1
        counts = np.add.accumulate(counts, axis=0)
        frequent = counts[:-1].argmax(axis=1) != codes
        previous = np.concatenate([[places.get(self.last, -1)], codes[:-1]])
        if not self.counts:  # before the first label there is nothing to say
            frequent[0] = True
        self.counts = dict(zip(names, counts[-1].tolist(), strict=True))
        self.last = labels[-1]
        return [frequent.astype(np.float64), (previous != codes).astype(np.float64)]

    def _means(self, y: Floats) -> list[Floats]:
        """The absolute errors of the mean so far and of the last value, 0 before there is one."""
        sums = np.add.accumulate(np.concatenate([[self.sum], y]))
        seen = self.rows + np.arange(len(y))
        means = np.where(seen > 0, sums[:-1] / np.maximum(seen, 1), 0.0)
        previous = np.concatenate([[0.0 if self.last is None else self.last], y[:-1]])
        self.sum, self.last = float(sums[-1]), float(y[-1])
        return [np.abs(y - means), np.abs(y - previous)]

    def summary(self) -> dict[str, Any]:
        """The error over all rows and over the last ones, and those of the baselines."""
        if not self.rows:
            return {"rows": 0, "error": None, "baselines": {}, "window": None, "coverage": None, "drift": None}
        means = (self.totals / self.rows).tolist()
        recent = np.mean(list(self.window), axis=0).tolist()
        return {
            "rows": self.rows,
            "error": means[0],
            "baselines": dict(zip(self.names, means[1:], strict=True)),
            "coverage": self.inside[0] / self.inside[1] if self.inside[1] else None,
            "drift": {"alarms": self.alarms[0], "last": self.alarms[1] or None},
            "window": {
                "rows": len(self.window),
                "error": recent[0],
                "baselines": dict(zip(self.names, recent[1:], strict=True)),
            },
        }

    def line(self) -> dict[str, Any]:
        """The errors over time: a list of [rows so far, time, error, baseline, ...]."""
        return {"every": self.every, "names": ["error", *self.names], "points": self.points}


def _sum_in_order(before: Floats, table: Floats) -> Floats:
    """A sum that goes on with rows, one after the other: it does not depend on how the rows are cut."""
    rows = table.copy()
    rows[0] += before
    return np.asarray(np.add.accumulate(rows, axis=0)[-1])


def find_change(errors: Floats, row: int) -> tuple[int, float, float]:
    """Where errors up to a row changed most: the first row after that, and the means before and after (the split with
    the largest difference of means in units of its deviation, as cumulative sums find it).

    >>> find_change(np.repeat([1.0, 3.0], [900, 100]), 5000)
    (4901, 1.0, 3.0)
    """
    sums = np.add.accumulate(errors if np.isfinite(errors).all() else np.nan_to_num(errors, nan=HUGE, posinf=HUGE))
    before = np.arange(FEWEST, len(sums) - FEWEST + 1)
    after = len(sums) - before
    old, new = sums[before - 1] / before, (sums[-1] - sums[before - 1]) / after
    best = int(np.argmax(np.abs(new - old) * np.sqrt(before * after)))
    return row - int(after[best]) + 1, float(old[best]), float(new[best])
