"""A model whose labels come later, in a process that is killed at any moment: no label is lost, and none joined twice.

Run as a program, this file does the work of a child of `killing.server`.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from killing import kill_and_go_on, read_log, serve, server

from gossamer import NewtonRegressor, RowEncoder, SILKClassifier, SILKRegressor, pipeline, store
from gossamer.bank import ModelBank

ROWS, KILLS = 900, 6
#: Calls between two saves.
EVERY = 5
#: A model, and whether its rows wait in a file of SQLite.
CASES = {
    "memory": (SILKRegressor("gaussian:gamma=2", budget=20), False),
    "sqlite": (NewtonRegressor("gaussian:gamma=2", budget=20), True),
    "frames": (pipeline(RowEncoder(), SILKClassifier("gaussian:gamma=0.5", budget=20)), True),
    "bank": (SILKRegressor("gaussian:gamma=2", budget=10), True),
}


def make_calls(seed=0):
    """Rows shown and labels that come, in a random order: a few late, repeated, unknown, and many never."""
    rng, calls, waiting, shown = random.Random(seed), [], [], 0
    while shown < ROWS:
        size = rng.randint(1, 9) if rng.random() < 0.9 else 45
        ids = list(range(shown, min(shown + size, ROWS)))
        calls.append(("show", ids))
        waiting, shown = waiting + ids, shown + len(ids)
        rng.shuffle(waiting)
        came, waiting = waiting[: rng.randint(0, 8)], waiting[rng.randint(0, 8) :]
        calls.append(("label", [*came, *rng.choices(range(2 * ROWS), k=rng.randint(0, 2))]))
    return calls


def make_rows(case):
    rng = np.random.default_rng(0)
    X = rng.uniform(0.1, 0.9, size=(2 * ROWS, 3))
    y = np.sin(5 * X[:, 0]) + X[:, 1]
    if case != "frames":
        return X, y
    frame = pd.DataFrame({"x": X[:, 0], "shop": np.array(["Rome", "Oslo", "Bonn"])[rng.integers(0, 3, 2 * ROWS)]})
    return frame, np.where(y > 1.0, "high", "low")


def work(case, path, log):
    """Make all calls from where the last save was; what each returns is written before the next is made."""
    spill, bank = f"{path}.sqlite", None
    kept = {"limit": 60, "ttl": 20.0, "spill": spill if CASES[case][1] else None}
    model, X, y, keys = CASES[case][0], *make_rows(case), np.array(["a", "b", "c"])
    if case == "bank":
        bank = model = ModelBank(CASES[case][0], path=path)
        waits = bank.pending
    else:
        model = store.load(path) if Path(path).exists() else model
        waits = model.pending_
    if not waits.event:
        model.keep_pending(**kept)
        waits = model.pending_ if bank is None else bank.pending
    with open(log, "a") as out:
        calls = list(enumerate(make_calls()))
        for at, (what, ids) in calls[waits.event :]:
            if what == "show":
                rows = X.iloc[ids] if case == "frames" else X[ids]
                where = () if bank is None else (keys[np.array(ids) % 3],)
                made = model.predict(*where, rows, ids=ids, time=float(at))
            else:
                made = model.learn_labels(ids, y[ids], time=float(at))
            out.write(json.dumps([at, [str(value) for value in made]]) + "\n")
            out.flush()
            if at % EVERY == EVERY - 1 or at == len(calls) - 1:
                model.save(path) if bank is None else bank.commit()
    if bank is not None:
        bank.close()


if __name__ == "__main__":
    serve(work)


def check_same(case, killed, lines, whole, log):
    """Every call has given what it gave in a run that was never stopped, and the model and the counts are the same."""
    expected, found = dict(read_log(log)), read_log(lines)
    assert all(made == expected[at] for at, made in found)  # also of calls that were made again
    assert {at for at, _ in found} == set(expected)
    if case == "bank":
        with ModelBank(CASES[case][0], path=whole) as one, ModelBank(CASES[case][0], path=killed) as other:
            assert all(one.dump(key) == other.dump(key) for key in one)
            waits, again = one.pending, other.pending
            learned = sum(one.model(key).n_seen_ for key in one)
            assert waits.counts == again.counts
            assert len(waits) == len(again)
    else:
        one, other = store.load(whole), store.load(killed)
        waits, again = one.pending_, other.pending_
        learned = (one[-1] if hasattr(one, "steps") else one).n_seen_
        assert waits.counts == again.counts
        assert len(waits) == len(again)
        for model in (one, other):
            model.keep_pending()  # the names of their files differ
        assert one.to_bytes() == other.to_bytes()
    assert learned == waits.counts["joined"] > 100
    assert min(waits.counts[name] for name in ("expired", "dropped", "unknown", "repeated")) > 0


@pytest.fixture(scope="module")
def in_a_child():
    with server(__file__) as run:
        yield run


@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_moments(case, in_a_child, tmp_path):
    """Killed a few times, then to the end; tests/long/kill_labels.py goes on."""
    whole = tmp_path / "whole", tmp_path / "log"
    assert in_a_child(case, *whole)
    assert kill_and_go_on(in_a_child, case, tmp_path, whole, random.Random(0), KILLS) >= 2
    check_same(case, tmp_path / "killed", tmp_path / "lines", *whole)
