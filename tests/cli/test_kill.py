"""A run that is killed, at any moment and as often as one likes, loses nothing and repeats nothing."""

import json

import pytest
from fork_server import Commands
from kill_run import CASES, kill_run, two_classes

#: Kills of each case; there are eight cases. tests/long/kill_run.py makes more.
KILLS = 8
#: Of these, kills that must come in the middle of the work, after a new checkpoint.
TORN = 2


@pytest.fixture(scope="module")
def command():
    commands = Commands()
    yield commands
    commands.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_killed_runs_go_on_to_the_same_bytes(case, command, tmp_path):
    """After kills at random moments, output, model and metrics are those of a run that was never stopped."""
    kill_run(command, case, tmp_path, KILLS, seed=7, torn_kills=TORN)


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
    # the pipe stays open for longer than anybody waits
    waited = {"file": str(out), "lines": 1101}
    assert command.killed(0.1, *arguments, stdin=str(tmp_path / "data.csv"), open=70, **waited) == -9
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
