"""A run that is killed, at any moment and as often as one likes, loses nothing and repeats nothing."""

import gzip
import json
import random
import time

import numpy as np
import pytest
from fork_server import Commands

#: Kills of each case; there are five cases.
KILLS = 14


@pytest.fixture(scope="module")
def command():
    commands = Commands()
    yield commands
    commands.close()


def numbers(rows, classes=2, seed=0):
    """Two features, one of them far from 0, and a class that depends on both; the last class comes late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2)) * [1.0, 50.0] + [0.0, 1000.0]
    codes = (X[:, 0] * (X[:, 1] - 1000) > 0).astype(int)
    codes[rows // 2 :: 3] = classes - 1
    return X, codes


def two_classes(folder, rows=1500):
    X, y = numbers(rows)
    lines = [f"{a!r},{b!r},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "data.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    return ["data.csv", "--target", "y", "--out", "out.csv", "--budget", "40"]


def late_class_in_gzip(folder):
    X, y = numbers(1200, classes=3)
    colours = ["red", "green,blue", "grey"]
    lines = [f"{a!r};{b!r};{colours[c]}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "data.csv.gz").write_bytes(gzip.compress(("a;b;y\n" + "\n".join(lines) + "\n").encode()))
    return ["data.csv.gz", "--target", "y", "--out", "out.jsonl", "--budget", "40", "--window", "7"]


def regression_with_holes(folder):
    X, _ = numbers(1200)
    rows = [{"a": a, "b": b, "shop": "abc"[i % 3], "y": a * 3 + 100} for i, (a, b) in enumerate(X.tolist())]
    for row in rows[::7]:
        row["b"] = None
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["data.jsonl", "--target", "y", "--missing", "mean", "--out", "out.csv", "--learner", "norma"]


def novelty_from_a_pipe(folder):
    X, _ = numbers(1500)
    (folder / "data.csv").write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in X.tolist()))
    return ["-", "--out", "out.csv", "--alarms", "--nu", "0.1", "--kernel", "laplace"]


def late_labels(folder):
    return [*two_classes(folder), "--delay", "9", "--learner", "svmd", "--forget", "0.01"]


CASES = [two_classes, late_class_in_gzip, regression_with_holes, novelty_from_a_pipe, late_labels]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_killed_runs_go_on_to_the_same_bytes(case, command, tmp_path):
    """After kills at random moments, output, model and metrics are those of a run that was never stopped."""
    arguments = [tmp_path / name if (tmp_path / name).exists() else name for name in case(tmp_path)]
    pipe = {"stdin": str(tmp_path / "data.csv")} if arguments[0] == "-" else {}
    name = next(argument for argument in arguments if str(argument).startswith("out."))

    def options(folder):
        given = [folder / a if a == name else a for a in arguments]
        results = ["--save", folder / "model.gsm", "--trace", folder / "trace.csv", "--checkpoint", folder / "c.gsm"]
        return ["run", *given, *results, "--every", 60, "--quiet"]

    whole, torn = tmp_path / "whole", tmp_path / "torn"
    whole.mkdir()
    torn.mkdir()
    start = time.monotonic()
    assert command(*options(whole), **pipe) == 0
    seconds = min(time.monotonic() - start, 0.6)  # a disk may be slow just then

    moments = random.Random(7)
    kills = 0
    while kills < KILLS:
        # mostly early, so that a run is torn many times; a run that gets to its end begins anew
        ended = command.killed(moments.uniform(0.0, 0.5) * seconds, *options(torn), "--resume", **pipe)
        assert ended in (0, -9)
        if ended == -9:
            kills += 1
            continue
        compare(whole, torn, name)
        for file in torn.iterdir():
            file.unlink()
    assert command(*options(torn), "--resume", **pipe) == 0
    compare(whole, torn, name)
    assert command(*options(torn), "--resume", **pipe) == 0  # nothing is left to do, and nothing changes
    compare(whole, torn, name)


def compare(whole, torn, name):
    """Every byte of the output and the model, and every metric; only the seconds may differ."""
    assert (torn / name).read_bytes() == (whole / name).read_bytes()
    assert (torn / "model.gsm").read_bytes() == (whole / "model.gsm").read_bytes()
    traces = [[line.rsplit(",", 1)[0] for line in (folder / "trace.csv").read_text().splitlines()]
              for folder in (whole, torn)]  # fmt: skip
    assert traces[0] == traces[1]
    assert len(traces[0]) > 2


def test_checkpoints_do_not_change_the_result(command, tmp_path):
    """With and without checkpoints, however often: the same bytes."""
    data = [tmp_path / "data.csv", *two_classes(tmp_path)[1:3], "--quiet"]
    results = []
    for i, extra in enumerate(([], ["--every", 37], ["--every", 10_000], ["--window", 3])):
        save, out = tmp_path / f"{i}.gsm", tmp_path / f"{i}.csv"
        marks = ["--checkpoint", tmp_path / f"c{i}.gsm"] if "--every" in extra else []
        assert command("run", *data, "--save", save, "--out", out, *marks, *extra) == 0
        results.append((save.read_bytes(), out.read_bytes()))
    assert all(result == results[0] for result in results)


@pytest.mark.parametrize("number", [2, 15])
def test_an_interrupt_saves_and_says_where(number, command, tmp_path):
    """Ctrl-C while a pipe is waited for: checkpoint and model are written, and the run can go on."""
    arguments = two_classes(tmp_path, rows=40_000)
    arguments = ["run", "-", *arguments[1:3], "--out", tmp_path / "out.csv", "--save", tmp_path / "model.gsm"]
    arguments += ["--checkpoint", tmp_path / "c.gsm", "--every", 5000, "--quiet"]
    said = tmp_path / "said.txt"
    pipe = {"stdin": str(tmp_path / "data.csv"), "stderr": str(said)}
    # the pipe has all rows but does not end: the run waits for more
    assert command(*arguments, **pipe, open=6, signal=number, after=2.0) == 130
    assert said.read_text().count("\n") == 2
    assert f"saved in {tmp_path / 'c.gsm'} and {tmp_path / 'model.gsm'}" in said.read_text()
    assert command("predict", tmp_path / "model.gsm", tmp_path / "data.csv", "--out", tmp_path / "now.csv") == 0
    assert command(*arguments, **pipe) == 1  # a run that stopped is not overwritten
    assert "--resume goes on" in said.read_text()
    assert command(*arguments, "--resume", **pipe) == 0
    assert command("run", tmp_path / "data.csv", "--target", "y", "--save", tmp_path / "whole.gsm") == 0
    assert (tmp_path / "model.gsm").read_bytes() == (tmp_path / "whole.gsm").read_bytes()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_a_slow_pipe_is_learned_as_it_comes(ending, command, tmp_path):
    """Rows of a pipe that stays open are predicted and written, but for the first 1,000, without waiting for more."""
    two_classes(tmp_path, rows=1100)
    if ending == "jsonl":
        rows = [line.split(",") for line in (tmp_path / "data.csv").read_text().splitlines()[1:]]
        lines = [json.dumps({"a": float(a), "b": float(b), "y": int(c)}) + "\n" for a, b, c in rows]
        (tmp_path / "data.csv").write_text("".join(lines))
    out = tmp_path / "out.csv"
    arguments = ["run", "-", "--target", "y", "--out", out, "--quiet"]
    assert command.killed(2.0, *arguments, stdin=str(tmp_path / "data.csv"), open=4) == -9
    assert len(out.read_text().splitlines()) == 1101


def test_an_interrupt_while_it_learns(command, tmp_path):
    """Ctrl-C at random moments of the work: what is saved goes on to the same model."""
    two_classes(tmp_path)
    data = ["run", tmp_path / "data.csv", "--target", "y", "--quiet"]
    assert command(*data, "--save", tmp_path / "whole.gsm") == 0
    marks = ["--save", tmp_path / "model.gsm", "--checkpoint", tmp_path / "c.gsm", "--every", 50]
    ended = []
    for moment in (0.02, 0.05, 0.1, 0.2):
        ended.append(command(*data, *marks, "--resume", signal=2, after=moment))
    assert set(ended) <= {0, 130, -2}
    assert command(*data, *marks, "--resume") == 0
    assert (tmp_path / "model.gsm").read_bytes() == (tmp_path / "whole.gsm").read_bytes()
