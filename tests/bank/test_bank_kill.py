"""A bank whose process is killed, at any moment and as often as one likes, learns every row once.

Run as a program, this file is a server that forks: each line it reads is the work of a child that starts at once.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

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
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                work(*request["work"])
                os._exit(0)
            finally:
                os._exit(99)
        log, ended = request["work"][2], 0
        written = os.path.getsize(log) if os.path.exists(log) else 0
        while request["grown"] is not None and not ended:
            ended, status = os.waitpid(child, os.WNOHANG)
            if not ended and (os.path.getsize(log) if os.path.exists(log) else 0) >= written + request["grown"]:
                time.sleep(request["after"])
                os.kill(child, signal.SIGKILL)  # not waited for yet, so it is there
                break
            time.sleep(0.001)
        print(os.waitstatus_to_exitcode(status if ended else os.waitpid(child, 0)[1]), flush=True)


@contextlib.contextmanager
def server():
    """Does the work in new processes, killed some moments after their log has grown by so much; tells whether one ended
    by itself."""
    process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(case, path, log, grown=None, after=0.0):
        request = {"work": [case, str(path), str(log)], "grown": grown, "after": after}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code == 0

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def kill_and_go_on(run, case, folder, whole, moments, most):
    """Learn a stream to its end in ``folder``, killed at random moments; how often."""
    length, kills, done = whole[1].stat().st_size, 0, False
    while not done and kills < most:
        grown = moments.choice([0, moments.randrange(length // 6)])  # often before it has done anything
        done = run(case, folder / "killed", folder / "lines", grown, after=moments.uniform(0.0, 0.02))
        kills += not done
    assert done or run(case, folder / "killed", folder / "lines")
    return kills


def check_same(case, killed, lines, whole, log):
    """Every batch is committed once, with the scores, and in the end the models, of a run that was never stopped."""
    expected = dict(map(json.loads, log.read_text().splitlines()))
    found = [json.loads(line) for line in lines.read_text().splitlines() if line.endswith("]")]
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
    with server() as run:
        yield run


@pytest.mark.parametrize("case", CASES)
def test_killed_at_random_moments(case, in_a_child, tmp_path):
    """Killed a dozen times, then to the end; tests/long/kill_bank.py goes on for hundreds."""
    whole = tmp_path / "whole", tmp_path / "log"
    assert in_a_child(case, *whole)
    assert kill_and_go_on(in_a_child, case, tmp_path, whole, random.Random(0), KILLS) >= 4
    check_same(case, tmp_path / "killed", tmp_path / "lines", *whole)
