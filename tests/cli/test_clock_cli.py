"""Clock time and class weights in streams and in the shell: the numbers are those of the estimators."""

import csv

import numpy as np
import pytest
from test_cli import run, told

import gossamer
from gossamer import HalfLife, cli, store
from gossamer.evaluate import prequential
from gossamer.kernels import Gaussian
from gossamer.streams import open_stream

ROWS = 600


def table(tmp_path, form):
    """A CSV of numbers with a time, as dates or as seconds, with equal times and a gap of years."""
    rng = np.random.default_rng(0)
    seconds = 1.7e9 + np.cumsum(rng.choice([0, 60, 3600, 86400], size=ROWS)) + (np.arange(ROWS) >= 400) * 10 * 31557600
    X = rng.normal(size=(ROWS, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0.5, "rare", "usual")
    when = seconds.astype("int64").astype("M8[s]").astype(str) if form == "dates" else seconds.astype("int64")
    path = tmp_path / "rows.csv"
    lines = [f"{t},{a:.5f},{b:.5f},{label}" for t, (a, b), label in zip(when, X.tolist(), y, strict=True)]
    path.write_text("\n".join(["when,a,b,kind", *lines]) + "\n")
    return path, seconds, X.round(5), y


def read(path, **options):
    with open_stream(path, **options) as stream:
        return list(stream)


@pytest.mark.parametrize("form", ["dates", "seconds"])
def test_streams_tell_the_time(tmp_path, form):
    path, seconds, _, _ = table(tmp_path, form)
    chunks = read(path, target="kind", time="when", chunk_rows=101)
    assert np.array_equal(np.concatenate([chunk.time for chunk in chunks]), seconds)
    later = read(path, position=chunks[1].position, time="when")
    assert np.array_equal(later[0].time, seconds[202:])
    assert read(path, target="kind")[0].time is None
    model = gossamer.SILKClassifier(Gaussian(0.1), half_life=HalfLife("1 day"))
    with open_stream(path, target="kind", time="when") as stream:
        assert len(prequential(model, stream))
    assert model.learner_.state().time == seconds[-1]
    for bad in ("kind", "shop", 3):
        with pytest.raises(ValueError, match="The 'time' parameter of open_stream must be"):
            open_stream(path, target="kind", time=bad)
    broken = tmp_path / "broken.csv"
    broken.write_text(path.read_text() + ",1.0,1.0,rare\n")
    with pytest.raises(
        ValueError, match=f"row {ROWS + 1}.*column 'when': must be there, for it is the time of the row"
    ):
        read(broken, target="kind", time="when")


@pytest.mark.parametrize("learner", [(), ("--learner", "silk"), ("--learner", "newton:budget=30")])
def test_the_shell_forgets_by_the_clock(tmp_path, capsys, learner):
    """With checkpoints the same output; the model goes on from a file; another half-life is another model."""
    path, _, _, _ = table(tmp_path, "dates")
    common = ["run", path, "--target", "kind", "--time", "when", "--half-life", "2 days", "--quiet", *learner]
    outs = []
    for name, more in (("one", []), ("two", ["--every", 150])):
        out = tmp_path / f"{name}.csv"
        code, _, err = run(capsys, *common, "--out", out, "--save", tmp_path / f"{name}.gsm", *more,
                           *(["--checkpoint", tmp_path / "mark"] if more else []))  # fmt: skip
        assert (code, err) == (0, "")
        outs.append(out.read_text())
    assert outs[0] == outs[1]
    other = tmp_path / "other.csv"
    assert run(capsys, *[*common[:6], "--half-life", "20 years", *common[8:]], "--out", other)[0] == 0
    assert other.read_text() != outs[0]
    model = store.load(tmp_path / "one.gsm")["model"]
    assert model[-1].half_life == HalfLife("2 days")
    later = tmp_path / "later.csv"
    later.write_text("when,a,b,kind\n2099-01-01T00:00:00,1.0,1.0,rare\n2099-01-02T00:00:00,1.0,-1.0,usual\n")
    resumed = ["run", later, "--model", tmp_path / "one.gsm", "--quiet"]
    assert run(capsys, *resumed, "--time", "when")[0] == 0
    assert "time" in told(capsys, *resumed)[1]


def test_what_goes_together(tmp_path, capsys):
    path, _, _, _ = table(tmp_path, "seconds")
    for options, words in (
        (["--time", "when"], "half"),
        (["--half-life", "7d"], "time"),
        (["--half-life", "soon", "--time", "when"], "seconds"),
        (["--half-life", "7d", "--time", "kind"], "time"),
        (["--half-life", "7d", "--time", "when", "--late", "never"], "late"),
    ):
        code, err = told(capsys, "run", path, "--target", "kind", *options)
        assert code == 2 or words in err
        assert words in err
    shuffled = tmp_path / "shuffled.csv"
    head, *lines = path.read_text().splitlines()
    shuffled.write_text("\n".join([head, *lines[::-1]]) + "\n")
    options = ["run", shuffled, "--target", "kind", "--half-life", "7d", "--time", "when", "--quiet"]
    assert "in order" in told(capsys, *options)[1]
    assert run(capsys, *options, "--late", "clamp")[0] == 0


def test_compare_takes_the_time(tmp_path, capsys):
    path, _, _, _ = table(tmp_path, "dates")
    options = ["compare", path, "--target", "kind", "--learners", "silk,norma,newton", "--time", "when"]
    code, out, err = run(capsys, *options, "--half-life", "2 days", "--quiet")
    assert (code, err) == (0, "")
    assert out.count("\n") == 4


@pytest.mark.parametrize("weights", ["balanced", "rare=4,usual=0.5"])
def test_class_weights_in_the_shell(tmp_path, capsys, weights):
    path, _, _, y = table(tmp_path, "dates")
    found = []
    for more in ([], ["--class-weight", weights]):
        out = tmp_path / "out.csv"
        assert run(capsys, "run", path, "--target", "kind", "--learner", "silk", "--out", out, "--quiet", *more)[0] == 0
        with open(out) as file:
            labels = np.array([row["prediction"] for row in csv.DictReader(file)])
        found.append((labels == "rare")[200:][y[200:] == "rare"].mean())
    assert found[1] > found[0]
    _, err = told(capsys, "run", path, "--target", "kind", "--class-weight", "rare=-1")
    assert "class" in err
    assert cli.main(["run", str(path), "--target", "kind", "--class-weight", weights, "--quiet"]) == 0  # auto
