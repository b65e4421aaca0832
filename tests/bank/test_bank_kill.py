"""A bank whose process is killed, at any moment and as often as one likes, learns every row once.

Run as a program, this file is a server that forks: each line it reads is the work of a child that starts at once.
"""

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from killing import kill_and_go_on, read_log, serve, server

from gossamer import NORMADetector, OnlineScaler, SILKClassifier, pipeline
from gossamer.bank import ModelBank
from gossamer.budgets import Project
from gossamer.kernels import Gaussian

BATCH, KILLS = 50, 12

#: A model, the rows it learns, and how the bank is kept.
CASES = {
    "in memory": (pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.3), budget=8)), 6000, {}),
    "spilled": (pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.3), budget=Project(8))), 6000, {"memory": 20_000}),
    "estimators": (NORMADetector(Gaussian(0.3), budget=8, average="sparse"), 600, {"memory": 20_000}),
}


def stream(case):
    """Rows of 200 keys, some often and some once; the third class comes late."""
    model, rows, _ = CASES[case]
    rng = np.random.default_rng(0)
    keys, X = rng.zipf(1.3, rows) % 200, rng.normal(size=(rows, 3))
    y = np.array(["x", "y", "z"])[rng.integers(0, np.where(np.arange(rows) < rows // 3, 2, 3))]
    return keys, X, None if isinstance(model, NORMADetector) else y


def work(case, path, log):
    """Learn the stream from where the file says; the scores of a batch are written before it is committed."""
    model, count, options = CASES[case]
    keys, X, y = stream(case)
    with ModelBank(model, path=path, threads=2, **options) as bank, open(log, "a") as out:
        for start in range(bank.offset or 0, count, BATCH):
            rows = slice(start, start + BATCH)
            scores = bank.learn(keys[rows], X[rows], None if y is None else y[rows], offset=start + BATCH)
            out.write(json.dumps([start, scores.tobytes().hex()]) + "\n")
            out.flush()
            bank.commit()


if __name__ == "__main__":
    serve(work)


def check_same(case, killed, lines, whole, log):
    """Every batch is committed once, with the scores, and in the end the models, of a run that was never stopped."""
    expected = dict(map(json.loads, log.read_text().splitlines()))
    found = read_log(lines)
    assert all(scores == expected[start] for start, scores in found)  # also of those that were learned anew
    assert {start for start, _ in found} == set(expected)
    model, rows, _ = CASES[case]
    with ModelBank(model, path=whole) as one, ModelBank(model, path=killed) as other:
        assert one.offset == other.offset == rows
        assert set(one) == set(other)
        assert len(one) > 50
        assert all(one.dump(key) == other.dump(key) for key in one)
        last = [one.model(key) for key in one]
        assert sum((model[-1] if hasattr(model, "steps") else model).n_seen_ for model in last) == rows


@pytest.fixture(scope="module")
def in_a_child():
    with server(__file__) as run:
        yield run


@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_moments(case, in_a_child, tmp_path):
    """Killed a dozen times, then to the end; tests/long/kill_bank.py goes on for hundreds."""
    whole = tmp_path / "whole", tmp_path / "log"
    assert in_a_child(case, *whole)
    assert kill_and_go_on(in_a_child, case, tmp_path, whole, random.Random(0), KILLS) >= 4
    check_same(case, tmp_path / "killed", tmp_path / "lines", *whole)
