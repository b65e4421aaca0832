"""The demo, the command line, and the laws of the synthetic streams."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer import cli, demo, plots
from gossamer.synthetic import rotating_xor, rotating_xor_error, speeding_xor, speeding_xor_turns, wandering_box

STREAMS = [rotating_xor, speeding_xor, wandering_box]


# ------------------------------------------------------------------------------------------------------ the streams


@pytest.mark.parametrize("stream", STREAMS)
def test_a_stream_is_a_function_of_its_seed(stream):
    X, y = stream(500, 3)
    again, labels = stream(500, 3)
    other, _ = stream(500, 4)
    assert np.array_equal(X, again)
    assert np.array_equal(y, labels)
    assert not np.array_equal(X, other)
    assert np.array_equal(stream(500, np.random.default_rng(3))[0], X)


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("n", [1, 7, 4000])
def test_a_stream_has_rows_of_two_numbers_and_balanced_labels(stream, n):
    X, y = stream(n, 0)
    assert X.shape == (n, 2)
    assert y.shape == (n,)
    assert X.dtype == y.dtype == np.float64
    assert np.isfinite(X).all()
    assert set(y) <= {-1.0, 1.0}
    if n == 4000:
        assert abs(y.mean()) < 5 / np.sqrt(n)


@pytest.mark.parametrize(("radius", "std"), [(1.0, 0.35), (2.0, 0.5), (1.0, 1.0)])
def test_the_rule_that_knows_the_angle_has_the_computed_error(radius, std):
    n, turns, start = 40_000, 3.0, 0.7
    X, y = rotating_xor(n, 1, turns, radius, std, start)
    angle = start + 2 * np.pi * turns * np.arange(n) / n
    turned = np.cos(2 * (np.arctan2(X[:, 1], X[:, 0]) - angle))
    expected = rotating_xor_error(radius, std)
    assert abs(np.mean(turned * y <= 0) - expected) < 5 * np.sqrt(expected / n)


def test_a_stream_speeds_up_and_the_best_rule_follows():
    n = 40_000
    X, y = speeding_xor(n, 3)
    turned = speeding_xor_turns(n)
    assert turned[[0, 10_000, 20_000, 30_000]].round(9).tolist() == [0.0, 0.0, 5.0, 15.0]
    wrong = np.cos(2 * (np.arctan2(X[:, 1], X[:, 0]) - 2 * np.pi * turned)) * y <= 0
    for part in np.array_split(wrong, 4):
        assert abs(part.mean() - rotating_xor_error()) < 5 * np.sqrt(rotating_xor_error() / len(part))
    right = [demo.best_rule(row + 1, n)(X[row : row + 1])[0] * y[row] > 0 for row in range(29_000, 29_200)]
    assert right == (~wrong[29_000:29_200]).tolist()
    with pytest.raises(ValueError, match="'speeds' parameter of speeding_xor must be at least one number"):
        speeding_xor(10, speeds=[])


def test_a_wandering_box_keeps_its_centres_inside():
    X, _ = wandering_box(5000, 2, speed=0.05, half_width=1.5, std=1e-9)
    assert np.abs(X).max() <= 1.5 + 1e-6
    assert np.abs(X).max() > 1.4
    # four centres of constant speed: standing still, there are only four places
    still, _ = wandering_box(500, 2, speed=0.0, std=1e-9)
    assert len(np.unique(still.round(5), axis=0)) == 4


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("wrong", [{"n": 0}, {"n": 2.5}, {"seed": -1}, {"std": 0.0}, {"std": float("nan")}])
def test_a_stream_names_a_bad_parameter(stream, wrong):
    name = next(iter(wrong))
    with pytest.raises(ValueError, match=rf"The '{name}' parameter of {stream.__name__} must be"):
        stream(**{"n": 10, **wrong})


# ------------------------------------------------------------------------------------------------- the command line


def test_the_demo_writes_tables_and_a_picture(tmp_path, capsys):
    picture = tmp_path / "demo.png"
    assert cli.main(["demo", "--rows", "300", "--trials", "1", "--out", str(picture)]) == 0
    printed = capsys.readouterr()
    for contestant in demo.CONTESTANTS:
        assert contestant.name in printed.out
    assert "makes the fewest mistakes" in printed.out
    assert printed.out.rstrip().endswith(str(picture))
    assert printed.err == ""
    image = pytest.importorskip("matplotlib.image").imread(picture)
    assert image.shape[:2] == (700, 1600)
    left, right = np.array_split(image[..., :3], 2, axis=1)
    assert all(len(np.unique(half.reshape(-1, 3), axis=0)) > 50 for half in (left, right))


def test_the_demo_is_a_function_of_its_seed_and_of_nothing_else(tmp_path):
    first = demo.run(300, 2, 5, tmp_path / "a.png", to=io.StringIO())
    second = demo.run(300, 2, 5, tmp_path / "b.svg", to=io.StringIO())
    assert np.array_equal(first.wrong, second.wrong)
    # the first trial is cut into pieces by the table and the picture, the second is not; neither sees the other
    X, y = speeding_xor(300, 6)
    for i, contestant in enumerate(demo.CONTESTANTS):
        assert np.array_equal(first.wrong[1, i], y * contestant.learner().learn(X, y) <= 0)
    alone = demo.run(300, 1, 6, tmp_path / "c.png", to=io.StringIO())
    assert np.array_equal(alone.wrong[0], first.wrong[1])


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["dance"],
        ["demo", "--rows", "many"],
        ["demo", "--rows", "3"],
        ["demo", "--trials", "0"],
        ["demo", "--seed", "-1"],
        ["demo", "--out", "picture.txt"],
        ["demo", "--out", "no/such/folder/demo.png"],
        ["demo", "--colour", "red"],
    ],
)
def test_bad_arguments_are_told_in_one_line(arguments, capsys):
    try:
        code = cli.main(arguments)
    except SystemExit as leaving:  # argparse leaves by itself
        code = leaving.code
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert printed.err.startswith("gossamer")
    assert printed.err.count("\n") == 1


def test_an_interrupt_is_no_traceback(monkeypatch, capsys):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "run", interrupted)
    assert cli.main(["demo"]) == 130
    assert "Traceback" not in capsys.readouterr().err


def test_without_matplotlib_the_demo_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["demo"]) == 2
    assert "pip install 'gossamer[plot]'" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "text"), [("--version", gossamer.__version__), ("--help", "gossamer demo --rows")])
def test_the_module_is_the_command(option, text, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "gossamer", option], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0
    assert text in done.stdout


# -------------------------------------------------------------------------------------------------------- the pieces


@pytest.mark.parametrize("rows", [20, 300, 2000, 4000, 100_000])
def test_table_and_picture_rows_lie_in_the_stream(rows):
    for chosen in (demo.checkpoints(rows), demo.picture_rows(rows)):
        assert chosen == sorted(set(chosen))
        assert chosen[0] >= 1
        assert chosen[-1] <= rows
    assert demo.checkpoints(rows)[-1] == rows


def test_spread_labels_keep_order_and_distance():
    rng = np.random.default_rng(0)
    for _ in range(200):
        heights = np.sort(rng.uniform(0, 10, size=rng.integers(1, 8)))
        placed = np.array(plots.spread(list(heights), 1.0, 0.0, 10.0))
        assert (np.diff(placed) >= 1 - 1e-9).all()
        assert placed.min() >= -1e-9
        assert placed.max() <= 10 + 1e-9
    assert plots.spread([1.0, 4.0], 1.0, 0.0, 10.0) == [1.0, 4.0]


def test_drawing_leaves_pyplot_alone(tmp_path: Path):
    code = (
        "import sys; from gossamer import demo, plots; assert 'matplotlib' not in sys.modules;"
        f"demo.run(200, 1, 0, {str(tmp_path / 'x.png')!r}); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, cwd=tmp_path)
