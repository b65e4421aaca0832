"""Helpers of the tests of the server: streams, hubs, crashes."""

import contextlib
import shutil
import time

import numpy as np

from gossamer.serve.changes import Work
from gossamer.serve.hub import Hub
from gossamer.serve.limits import Limits
from gossamer.serve.recipes import learners
from gossamer.serve.rows import Block

LEARNERS = sorted(learners())
COLUMNS = ["a", "b", "c"]


def stream(task, rows=400, seed=0):
    """Rows, and labels for a task: of different lengths, the last class coming late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, len(COLUMNS)))
    if task == "novelty":
        return X, None
    if task == "regression":
        return X, (np.sin(2 * X[:, 0]) + X[:, 1] + 10).tolist()
    return X, np.where(X[:, 0] * X[:, 1] > 0, "b", "longer").tolist()


def jumping(rows=2600, jump=1700):
    """Targets whose noise grows at a row."""
    X, y = stream("regression", rows)
    noise = np.random.default_rng(3).normal(size=rows)
    return X, [value + (5.0 if i >= jump else 0.1) * float(noise[i]) for i, value in enumerate(y)]


def block(X, y, first=0, last=None, **more):
    """Some rows of a stream; the first ones name the columns."""
    part = slice(first, last)
    columns = COLUMNS if first == 0 else None
    count = len(X[part])
    return Block(count, X[part].tobytes(), None if y is None else y[part], columns=columns, **more)


def learn(hub, name, X, y, cuts, **more):
    """Learn a stream, cut at these places, in one go: what is queued together is journalled together."""
    ends = [*cuts, len(X)]
    works = [Work("learn", name, block(X, y, a, b), rows=b - a, **more) for a, b in zip([0, *cuts], ends, strict=True)]
    return hub.call(*works)


@contextlib.contextmanager
def running(folder, **limits):
    """A hub on a folder, stopped at the end."""
    hub = Hub(str(folder), Limits(**limits)).start()
    try:
        yield hub
    finally:
        hub.stop()


def settle(hub, done):
    """Wait until the writer has done something in its own time."""
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end, "the writer has not done it"
        time.sleep(0.002)


def crash(hub, to):
    """What a killed server leaves behind: its files as they are now, in another folder."""
    shutil.copytree(hub.journal.folder, to, ignore=shutil.ignore_patterns("lock", "*-shm"))
    return to
