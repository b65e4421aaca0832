"""One entry on one piece of work, in a process of its own: predictions, seconds and memory."""

from __future__ import annotations

import resource
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from entries import Entry, Setting, Setup
from works import Series, Work, measured

CALL = 500  # rows handed over at once


@dataclass(frozen=True)
class Played:
    """What came out: the predictions of each stream, and what they cost."""

    predictions: list[np.ndarray]
    seconds: float
    rows: int
    megabytes: float
    size: int | None


def play(entry: Entry, setting: Setting, work: Work, streams: list[Series]) -> Played:
    """A new model for every stream; each call's rows are predicted, then learned."""
    before = _peak(reset=True)
    predictions, seconds, size = [], 0.0, None
    for stream in (one.unscaled() for one in streams) if entry.raw else streams:
        setup = Setup(work.task, stream.sample, stream.scale, np.array(work.classes), work.level, work.batch)
        guess = np.empty(len(stream.y))
        start = time.process_time()
        model = entry.make(setup, **setting)
        seconds += time.process_time() - start
        for first in range(0, len(guess), CALL):
            part = slice(first, first + CALL)
            rows = model.rows(stream.X[part], stream.y[part])
            start = time.process_time()
            guess[part] = model.step(rows)
            seconds += time.process_time() - start
        predictions.append(guess)
        size = model.size()
    rows_learned = sum(len(stream.y) for stream in streams)
    return Played(predictions, seconds, rows_learned, max(0.0, _peak() - before), size)


def tried(entry: Entry, setting: Setting, work: Work, limit: int | None) -> float:
    """The loss of a setting on the streams it is chosen on, lower being better; infinite where it fell apart."""
    if limit is None:
        streams = work.tuning
    elif work.task == "novelty":  # anomalies come late: fewer streams, not their first rows
        streams = work.tuning[:2]
    else:
        streams = [stream.first(limit) for stream in work.tuning]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # large steps overflow: that is what is found out here
        try:
            played = play(entry, setting, work, streams)
        except (ValueError, ArithmeticError):  # scikit-learn and river give up on numbers that are not finite
            return np.inf
        pairs = zip(streams, played.predictions, strict=True)
        score = measured(work, [(stream.y, guess) for stream, guess in pairs])
    if not np.isfinite(score):
        return np.inf
    return -score if work.higher else score


def scored(entry: Entry, setting: Setting, work: Work, limit: int | None) -> Played:
    """The streams that count."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return play(entry, setting, work, [stream.first(limit or len(stream.y)) for stream in work.scored])


def _peak(reset: bool = False) -> float:
    """The most memory that this process has held at once, in MB; from now on, if ``reset`` and the system can."""
    status = Path("/proc/self/status")
    if status.exists():
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
