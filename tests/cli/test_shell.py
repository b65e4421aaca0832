"""Laws of the command line: gaps, labels, changed input, bad rows, formulas, full disks, words.

The file is long because each law of the command line runs whole commands on tables that it writes itself.
"""

import csv
import gzip
import inspect
import io
import json
import os
import re
import sys

import numpy as np
import pytest
from test_cli import run, told

import gossamer
from gossamer import cli, plots, store
from gossamer.cli import output, parts
from gossamer.streams import open_stream

ROWS = 1300


def write(path, rows, header=("a", "b", "y")):
    """Rows as a file of the format that the ending says."""
    text = "".join(",".join(map(str, row)) + "\n" for row in [header, *rows])
    if path.suffix == ".jsonl":
        text = "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows)
    elif path.suffix == ".libsvm":
        text = "".join(f"{row[-1]} " + " ".join(f"{i + 1}:{x}" for i, x in enumerate(row[:-1])) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
    elif path.suffix == ".parquet":
        import pyarrow
        from pyarrow import parquet

        columns = dict(zip(header, map(list, zip(*rows, strict=True)), strict=True))
        parquet.write_table(pyarrow.table(columns), path)
    else:
        path.write_text(text)
    return path


def some_rows(count=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(loc=[0, 7], size=(count, 2)).round(4)
    return [[a, b, int(a * (b - 7) > 0)] for a, b in X.tolist()]


# ------------------------------------------------------------------------------------------------------------- gaps


def gappy(seed=0):
    """Rows with gaps; the first 30 rows have no b at all."""
    rng = np.random.default_rng(seed)
    rows = some_rows()
    for i, row in enumerate(rows):
        if i < 30 or rng.random() < 0.2:
            row[1] = ""
        if rng.random() < 0.1:
            row[0] = ""
    return rows


@pytest.mark.parametrize("size", [1, 37, 5000])
def test_gaps_get_the_mean_so_far_and_an_indicator(size, tmp_path):
    """By definition, in any chunks, and after going on at any position."""
    rows = gappy()
    path = write(tmp_path / "d.csv", rows)
    expected = np.array([[np.nan if x == "" else x for x in row[:2]] for row in rows], dtype=float)
    gaps = np.isnan(expected)
    for t in range(ROWS):
        for j in range(2):
            if np.isnan(expected[t, j]):
                before = [row[j] for row in rows[:t] if row[j] != ""]
                expected[t, j] = np.mean(before) if before else 0.0
    chunks = list(open_stream(path, "y", missing="fill", chunk_rows=size))
    found = np.concatenate([chunk.X for chunk in chunks])
    assert np.allclose(found[:, ::2], expected, rtol=1e-12)
    assert np.array_equal(found[:, 1::2] == 1.0, gaps)
    whole = np.concatenate([chunk.X for chunk in open_stream(path, "y", missing="fill")])
    assert np.array_equal(np.concatenate([chunk.X for chunk in chunks]), whole)
    for at in (0, len(chunks) // 2):
        position = json.loads(json.dumps(chunks[at].position))
        rest = np.concatenate([c.X for c in open_stream(path, missing="fill", position=position)] or [np.zeros((0, 4))])
        assert np.array_equal(rest, whole[chunks[at].rows[-1] :])


@pytest.mark.parametrize("learned_with", ["fill", "error"])
def test_predict_fills_gaps_with_the_means_that_were_learned(learned_with, tmp_path, capsys):
    """Whatever else is in the new file: a row with a gap is predicted as one with the learned mean in its place."""
    rows = gappy() if learned_with == "fill" else some_rows()
    data = write(tmp_path / "d.csv", rows)
    save = tmp_path / "m.gsm"
    command = ["run", data, "--target", "y", "--missing", learned_with, "--learner", "silk", "--save", save, "--quiet"]
    assert run(capsys, *command)[0] == 0
    new = [["", 7.5], [0.3, ""], [100.0, 5000.0], ["", ""], [0.3, ""]]
    write(tmp_path / "gaps.csv", new, ("a", "b"))
    assert run(capsys, "predict", save, tmp_path / "gaps.csv", "--out", tmp_path / "p.csv")[0] == 0
    said = [float(row["score"]) for row in csv.DictReader(io.StringIO((tmp_path / "p.csv").read_text()))]
    assert said[1] == said[4]  # the rows between them change nothing
    encoder, model = gossamer.load(save)["model"]["rowencoder"], gossamer.load(save)["model"]
    features = encoder.transform([{"a": 0.3}])
    assert features[0, 1 + (learned_with == "fill")] == 0.0  # the mean, scaled
    assert said[1] == pytest.approx(float(model.decision_function([{"a": 0.3}])[0]), rel=1e-6)
    for i in range(len(new)):
        write(tmp_path / "one.csv", [new[i]], ("a", "b"))
        if new[i] != ["", ""]:
            command = ["predict", save, tmp_path / "one.csv", "--missing", "fill", "--out", tmp_path / "p"]
            assert run(capsys, *command)[0] == 0
            assert float((tmp_path / "p").read_text().split(",")[-1]) == said[i]


def test_means_go_on_with_the_model(tmp_path, capsys):
    """A model learned in two halves with gaps is that of one run."""
    rows = gappy()
    header = ["run", "--target", "y", "--missing", "fill", "--quiet"]
    one, two = tmp_path / "one.gsm", tmp_path / "two.gsm"
    assert run(capsys, *header, write(tmp_path / "all.csv", rows), "--save", one)[0] == 0
    assert run(capsys, *header, write(tmp_path / "half.csv", rows[:1100]), "--save", two)[0] == 0
    rest = write(tmp_path / "rest.csv", rows[1100:])
    assert run(capsys, "run", rest, "--missing", "fill", "--model", two, "--save", two, "--quiet")[0] == 0
    assert two.read_bytes() == one.read_bytes()


def test_rows_left_out_are_counted(tmp_path, capsys):
    """--missing skip says how many rows; also after a part was resumed."""
    rows = gappy()
    gone = sum("" in row for row in rows)
    data = write(tmp_path / "d.csv", rows)
    assert f"d.csv: {gone} rows with missing values were left out" in run(
        capsys, "run", data, "--target", "y", "--missing", "skip", "--save", tmp_path / "m.gsm")[2]  # fmt: skip
    assert f"{gone} rows with missing" in run(capsys, "predict", tmp_path / "m.gsm", data, "--missing", "skip",
                                              "--out", tmp_path / "p.csv")[2]  # fmt: skip
    marks = ["--target", "y", "--missing", "skip", "--checkpoint", tmp_path / "c.gsm"]
    write(data, rows[:1050])
    assert run(capsys, "run", data, *marks)[0] == 0
    write(data, rows)
    assert f"{gone} rows with missing" in run(capsys, "run", data, *marks, "--resume")[2]


# ------------------------------------------------------------------------------------------------- labels and columns


@pytest.mark.parametrize(("old", "new", "more"), [(["a", "b"], ["b", "c"], ["d"]), ([0, 1], [1, 2], [7])])
def test_a_saved_model_refuses_labels_that_it_does_not_know(old, new, more, tmp_path, capsys):
    """The error names them and the option that lets them join; the saved file stays as it is."""
    save = tmp_path / "m.gsm"
    rows = [[*row[:2], old[row[2]]] for row in some_rows()]
    assert run(capsys, "run", write(tmp_path / "d.csv", rows), "--target", "y", "--save", save, "--quiet")[0] == 0
    before = save.read_bytes()
    later = [[*row[:2], new[row[2]]] for row in some_rows(200)] + [[1, 2, more[0]]]
    other = write(tmp_path / "e.csv", later)
    code, err = told(capsys, "run", other, "--model", save, "--save", save, "--quiet", "--on-error", "stop")
    assert code == 1
    assert "column 'y': must be one of the classes of --model: " in err
    assert all(repr(label) in err for label in [*old, new[1], more[0], "--new-classes"] if label != "--new-classes")
    assert "--new-classes" in err
    assert save.read_bytes() == before
    assert run(capsys, "run", other, "--model", save, "--save", save, "--new-classes", "--quiet")[0] == 0
    assert gossamer.load(save)["model"].classes_.tolist() == sorted({*old, *new, *more})
    assert told(capsys, "run", other, "--target", "y", "--new-classes")[0] == 2


def test_columns_are_told(tmp_path, capsys):
    """A line per column on standard error, what it was taken for; --quiet hides it."""
    path = tmp_path / "d.csv"
    path.write_text("size,price,id,y\n" + "".join(f'{i},"1,{i % 9}",{i},{i % 2}\n' for i in range(50)))
    code, _, err = run(capsys, "run", path, "--target", "y", "--ignore", "id")
    assert code == 0
    for words in ("size (left out): id", "price: number", "written like '1,0'", "id (ignored)", "y (target)"):
        assert words in err
    assert run(capsys, "run", path, "--target", "y", "--quiet")[2] == ""


# ------------------------------------------------------------------------------------------------------ changed input


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "jsonl", "libsvm", "parquet"])
def test_resume_needs_the_same_input(ending, tmp_path, capsys):
    """Shorter, or with any row before the checkpoint changed: exit code 1 and why. Rows appended are learned."""
    data, rows = tmp_path / f"d.{ending}", some_rows(1500)
    target = [] if ending == "libsvm" else ["--target", "y"]
    command = ["run", data, *target, "--checkpoint", tmp_path / "c.gsm", "--save", tmp_path / "m.gsm", "--quiet"]
    write(data, rows)
    assert run(capsys, *command)[0] == 0
    kept = (tmp_path / "c.gsm").read_bytes()
    for row in (0, 3, 500, 1100, 1498):
        changed = [list(one) for one in rows]
        changed[row][0] = round(changed[row][0] + 0.0013, 4)
        write(data, changed)
        code, err = told(capsys, *command, "--resume")
        assert code == 1
        assert "--resume needs the data that the checkpoint was made of: d." in err
        assert (tmp_path / "c.gsm").read_bytes() == kept
    for count in (1499, 1001, 5):
        write(data, rows[:count])
        code, err = told(capsys, *command, "--resume")
        assert code == 1
        assert "--resume needs the data" in err
    if ending != "parquet":
        write(data, [*rows, *some_rows(100, seed=5)])
        assert run(capsys, *command, "--resume")[0] == 0
        assert gossamer.load(tmp_path / "m.gsm")["model"][-1].n_seen_ == 1600


def test_positions_know_the_bytes_before_them():
    """Every flipped byte before a position is found; those behind it do not matter."""
    data = b"a,y\n" + b"".join(b"%d,%d\n" % (i % 10, i % 2) for i in range(3000))
    chunks = list(open_stream(data, "y", chunk_rows=700))
    position = json.loads(json.dumps(chunks[1].position))
    end = position["at"]["offset"]
    for place in (0, 5000, end - 2, end, len(data) - 2):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        if place < end:
            with pytest.raises(ValueError, match="in the same data"):
                open_stream(flipped, position=position)
        else:
            assert next(open_stream(flipped, position=position)).rows[0] == 1401  # bytes: nothing to close


# ----------------------------------------------------------------------------------------------------------- bad rows

BAD = {
    "csv": ["1,2,3,4,5", "1", "1,x,1", "1,,1", "1,2,", "1,inf,0", '"1"x,2,1', "1,2,1.5", "\xff,1,1", '"a\nb",3,1'],
    "jsonl": ["{", "[]", '{"a": 1}', '{"a": "x", "b": 2, "y": 1}', '{"a": 1, "b": 2, "y": 1, "z": 3}', "nonsense"],
    "libsvm": ["1 1:x", "x 1:1", "1 9:1", "1 2:1 1:1", "1 1:inf"],
}  # fmt: skip


@pytest.mark.parametrize("ending", sorted(BAD))
def test_bad_rows_can_be_left_out(ending, tmp_path, capsys):
    """--on-error skip: the model is that of the file without them, however they are bad; they are counted."""
    good = write(tmp_path / f"good.{ending}", some_rows())
    target = [] if ending == "libsvm" else ["--target", "y"]
    strict = ["--missing", "error"]
    assert run(capsys, "run", good, *target, "--save", tmp_path / "good.gsm", "--quiet")[0] == 0
    lines = good.read_text().splitlines()
    bad = BAD[ending]
    places = [3, 4, 500, 999, 1003, 1004, 1200, len(lines), *(1000 + 20 * i for i in range(len(bad)))]
    places.sort(reverse=True)
    for i, place in enumerate(places):
        lines.insert(place, bad[i % len(bad)] if place > 1000 else bad[0])  # the first rows tell what the columns are
    mixed = tmp_path / f"mixed.{ending}"
    mixed.write_bytes("\n".join([*lines, ""]).encode("latin-1"))
    command = ["run", mixed, *target, "--on-error", "skip", "--save", tmp_path / "m.gsm", *strict]
    for extra in ([], ["--checkpoint", tmp_path / "c.gsm", "--every", 50]):
        code, _, err = run(capsys, *command, *extra)
        assert code == 0, err
        assert f"{len(places)} bad rows were left out; the first: mixed.{ending}, row " in err
        assert (tmp_path / "m.gsm").read_bytes() == (tmp_path / "good.gsm").read_bytes()
    for size in (1, 50):
        stream = open_stream(mixed, *target[1:], missing="error", bad_rows="skip", chunk_rows=size)
        rows = np.concatenate([chunk.rows for chunk in stream])
        assert len(rows) == ROWS
        assert stream.left_out == (0, len(places))
        assert len(set(rows.tolist())) == ROWS
        assert rows[-1] == ROWS + len(places) - 1


def test_what_was_learned_before_a_bad_row_is_saved(tmp_path, capsys):
    """--on-error save, the default: model and checkpoint are those of the rows before; stop writes no model."""
    rows = some_rows()
    good = write(tmp_path / "good.csv", rows[:1100])
    assert run(capsys, "run", good, "--target", "y", "--save", tmp_path / "good.gsm", "--quiet")[0] == 0
    path = write(tmp_path / "bad.csv", [*rows[:1100], ["x", 1, 1], *rows[1100:]])
    save = ["--target", "y", "--save", tmp_path / "m.gsm", "--quiet", "--missing", "error"]
    assert told(capsys, "run", path, *save, "--on-error", "stop")[0] == 1
    assert not (tmp_path / "m.gsm").exists()
    code, err = told(capsys, "run", path, *save)
    assert code == 1
    assert "row 1101" in err
    assert "m.gsm has the model after 1,100 rows" in err
    assert (tmp_path / "m.gsm").read_bytes() == (tmp_path / "good.gsm").read_bytes()
    assert told(capsys, "run", path, *save, "--on-error", "dance")[0] == 2


# ------------------------------------------------------------------------------------------------------------- output


def test_formulas_in_texts_do_not_run(tmp_path, capsys):
    """A text that a spreadsheet would run is quoted, refused or kept; numbers stay numbers."""
    labels = ["=1+1", "+cmd", "-2+3", "@sum", "plain", "-1.5", "\tx", "+49", "-1e5", "\rx"]
    path = write(tmp_path / "d.jsonl", [[i % 10, labels[i % 10]] for i in range(100)], ("a", "y"))
    command = ["run", path, "--target", "y", "--kinds", "y=text", "--quiet", "--out", tmp_path / "o.csv"]
    found = {}
    for choice in ("quote", "keep"):
        assert run(capsys, *command, "--formulas", choice)[0] == 0
        with open(tmp_path / "o.csv", newline="") as file:
            found[choice] = [row["target"] for row in csv.DictReader(file)]
    assert set(found["keep"]) == set(labels)
    for text in found["quote"]:
        assert not text.startswith(("=", "@", "\t", "\r"))
        assert not text.startswith(("+", "-")) or float(text)
    assert {text for text in labels if text in found["quote"]} == {"plain", "-1.5", "+49", "-1e5"}
    code, err = told(capsys, *command, "--formulas", "error")
    assert code in (1, 2)
    assert "'=1+1'" in err
    assert told(capsys, *command, "--formulas", "run")[0] == 2
    numbers = output.Output(str(tmp_path / "n.csv"), "regression", True)
    assert numbers._fields([-1.5, -2.0]) == ["-1.5", "-2"]
    numbers.close()


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_texts_that_are_no_unicode(ending, tmp_path, capsys):
    """Half of a surrogate pair, which JSON may have, in features and labels: learned, stored, predicted and written."""
    labels, texts = ["no\ud800", "yes"], ["\udfff", "ok fine", "a longer text \udc00 of words"]
    rows = [[i % 7, texts[i % 3], f"free text number {i} \ud800", labels[i % 7 > 3]] for i in range(200)]
    path, out = write(tmp_path / "d.jsonl", rows, ("a", "c", "t", "y")), tmp_path / f"o.{ending}"
    assert run(capsys, "run", path, "--target", "y", "--save", tmp_path / "m.gsm", "--out", out)[0] == 0
    learned = out.read_text(encoding="utf-8")
    assert run(capsys, "predict", tmp_path / "m.gsm", path, "--out", out)[0] == 0
    for written in (learned, out.read_text(encoding="utf-8")):
        lines = written.splitlines()
        found = list(csv.DictReader(lines)) if ending == "csv" else list(map(json.loads, lines))
        told_ = {row["prediction"] for row in found[100:]}
        assert told_ == ({"no\\ud800", "yes"} if ending == "csv" else set(labels))
    assert run(capsys, "inspect", tmp_path / "m.gsm")[0] == 0
    assert run(capsys, "compare", path, "--target", "y")[0] == 0


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is of Linux")
@pytest.mark.parametrize("option", ["--out", "--trace"])
def test_a_full_disk_names_the_file(option, tmp_path, capsys):
    """ENOSPC of any result says which one."""
    data = write(tmp_path / "d.csv", some_rows())
    link = tmp_path / "result.csv"
    link.symlink_to("/dev/full")
    code, err = told(capsys, "run", data, "--target", "y", "--quiet", option, link)
    assert code == 1
    assert "No space left on device" in err
    assert "result.csv" in err


def test_a_full_disk_names_the_stored_file(tmp_path, capsys, monkeypatch):
    """The same for files that are replaced in one step."""
    data = write(tmp_path / "d.csv", some_rows())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "save", full)
    for option in ("--save", "--checkpoint"):
        code, err = told(capsys, "run", data, "--target", "y", "--quiet", option, tmp_path / "kept.gsm")
        assert code == 1
        assert "kept.gsm" in err


def test_leftovers_of_a_kill_are_removed(tmp_path, capsys):
    """Also of one before the first checkpoint, with or without --resume; files of others stay."""
    data = write(tmp_path / "d.csv", some_rows())
    names = [".c.gsm.abcdefgh.tmp", ".m.gsm.12345678.tmp"]
    for resume in ([], ["--resume"]):
        for name in [*names, ".d.gsm.abcdefgh.tmp"]:
            (tmp_path / name).write_text("half")
        command = ["run", data, "--target", "y", "--checkpoint", tmp_path / "c.gsm", "--save", tmp_path / "m.gsm"]
        assert run(capsys, *command, "--quiet", *resume)[0] == 0
        assert sorted(tmp_path.glob(".*.tmp")) == [tmp_path / ".d.gsm.abcdefgh.tmp"]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_probabilities_are_written(ending, tmp_path, capsys):
    """With the logistic loss: those that the model tells, also while classes come; predict writes them too."""
    rows = [[*row[:2], "abc"[row[2] + (i > 700 and i % 5 == 0)]] for i, row in enumerate(some_rows())]
    data, save, out = write(tmp_path / "d.csv", rows), tmp_path / "m.gsm", tmp_path / f"p.{ending}"
    command = ["run", data, "--target", "y", "--loss", "logistic", "--quiet", "--save", save]
    assert run(capsys, *command, "--out", out)[0] == 0
    with open_stream(data, "y") as stream:
        chunk = next(stream)
    for said in ("run", "predict"):
        if said == "predict":
            assert run(capsys, "predict", save, data, "--out", out)[0] == 0
        lines = out.read_text().splitlines()
        found = list(csv.DictReader(lines)) if ending == "csv" else list(map(json.loads, lines))
        told_ = [float(row["probability"]) for row in found[1:]]
        assert all(0.0 < p <= 1.0 for p in told_)
        if ending == "jsonl":
            for row in found[1:]:
                assert sum(row["probabilities"].values()) == pytest.approx(1.0)
                assert row["probabilities"][row["prediction"]] == pytest.approx(row["probability"])
    expected = gossamer.load(save)["model"].predict_proba(chunk.X).max(axis=1)
    assert told_ == pytest.approx(expected[1:].tolist(), rel=1e-6)
    assert run(capsys, "run", data, "--target", "y", "--learner", "silk", "--quiet", "--out", out)[0] == 0
    assert "probability" not in out.read_text().splitlines()[0]


# -------------------------------------------------------------------------------------------------- what people read


def test_metrics_by_name(tmp_path, capsys):
    """run and compare measure what --metrics says; the best learner by its first comes first."""
    data = write(tmp_path / "d.csv", some_rows())
    names = ["f1", "precision", "recall", "auc", "log_loss", "loss", "error"]
    options = [data, "--target", "y", "--loss", "logistic", "--metrics", ",".join(names)]
    code, out, _ = run(capsys, "run", *options)
    assert code == 0
    assert out.splitlines()[0].split()[1:-2:3] == names
    assert 0.5 < float(out.splitlines()[-1].split()[1]) < 1.0
    code, out, _ = run(capsys, "compare", *options, "--learners", "silk,norma,silk:C=0.001", "--positive", 0)
    assert code == 0
    first = [float(line.split()[1]) for line in out.splitlines()[1:]]
    assert first == sorted(first, reverse=True)
    assert told(capsys, "run", data, "--target", "y", "--metrics", "fame")[0] == 2
    assert told(capsys, "run", data, "--target", "y", "--metrics", "coverage")[0] == 2
    assert told(capsys, "run", data, "--target", "a", "--positive", "1")[0] == 2


@pytest.mark.parametrize("delay", [0, 25])
@pytest.mark.parametrize("wide", [2, 300])
def test_a_checkpoint_is_told_on_a_page(wide, delay, tmp_path, capsys):
    """However many columns, records and late rows it holds."""
    rng = np.random.default_rng(0)
    header = [*(f"x{i}" for i in range(wide)), "y"]
    X = rng.normal(size=(700, wide)).round(2).tolist()
    rows = [[*row, "abcdefghijklmnopqrst"[i % 20]] for i, row in enumerate(X)]
    data, mark = write(tmp_path / "d.csv", rows, header), tmp_path / "c.gsm"
    command = ["run", data, "--target", "y", "--checkpoint", mark, "--delay", delay, "--window", 3, "--quiet"]
    assert run(capsys, *command)[0] == 0
    code, out, _ = run(capsys, "inspect", mark)
    assert code == 0
    assert out.count("\n") <= 85
    assert max(map(len, out.splitlines())) <= 160
    for words in ("row: 700", "error: ", "target y", f"late rows: {delay}", "AutoClassifier"):
        assert words in out
    assert json.loads(run(capsys, "inspect", mark, "--json")[1])["value"]["row"] == 700


def test_predictions_that_collapse_are_told_once(tmp_path, capsys):
    """In one line of the shell, on standard error."""
    data = write(tmp_path / "d.csv", some_rows())
    code, _, err = run(capsys, "run", data, "--target", "y", "--gamma", "1e12", "--quiet")
    assert code == 0
    assert re.match("gossamer: warning: (The predictions are all the same|SILKClassifier gives .* the same score)", err)
    assert err.count("\n") == 1


def test_errors_speak_of_what_was_typed(tmp_path, capsys):
    """Never of parameters of inner classes: an option, a setting, the features, the data."""
    data = write(tmp_path / "d.csv", some_rows())
    huge = write(tmp_path / "huge.csv", [[1e99 * (-1) ** i, 1, i % 2] for i in range(50)])
    text = write(tmp_path / "t.csv", [["x", "y", i % 3] for i in range(50)])
    for command in (
        [data, "--target", "y", "--learner", "svmd:meta=-1"], [data, "--target", "y", "--learner", "silk:C=-1"],
        [data, "--target", "y", "--kernel", "polynomial:degree=0"], [data, "--target", "y", "--nu", "7"],
        [data, "--target", "y", "--forget", "3"], [huge, "--target", "y", "--no-scale", "--kernel", "polynomial"],
        [text, "--target", "y", "--task", "dance"], [data, "--target", "y", "--window", "-1"],
        [text, "--target", "y", "--learner", "romma"], [data, "--target", "y", "--budget", "project:x"],
        [data, "--target", "y", "--loss", "squared"], [data, "--target", "y", "--delay", "-1"],
        [data, "--target", "y", "--schedule", "never"],
    ):  # fmt: skip
        for name in ("run", "compare"):
            given = [re.sub("^--learner$", "--learners", str(a)) if name == "compare" else a for a in command]
            if name == "compare" and "--delay" in given:
                continue
            code, out, err = run(capsys, name, *given, "--quiet")
            assert code in (1, 2), (given, out)
            assert err.startswith("gossamer"), err
            assert not re.search(r"parameter of|Traceback|open_stream", err), err


def test_the_shell_and_the_library_have_the_same_defaults():
    """What `usual` changes is what a stream needs, a budget, an offset, and detectors that do not learn anomalies that
    last; C and the rest are the estimators'."""
    for task in parts.FACES:
        for name, part in parts.learners(task).items():
            defaults = inspect.signature(part.__init__).parameters
            assert set(parts.usual(name, task, defaults)) <= {"budget", "fit_intercept", "skip"}


def test_pictures_take_their_path_in_its_place_and_by_name(tmp_path):
    """Every function of `plots` that saves a picture: ``path`` comes after the data, and works as a keyword."""
    found = {
        name: inspect.signature(part).parameters for name, part in vars(plots).items()
        if inspect.isfunction(part) and part.__module__.startswith(plots.__name__) and not name.startswith("_")
        and "path" in inspect.signature(part).parameters
    }  # fmt: skip
    assert set(found) >= {"trace", "effects", "weights", "reliability", "intervals"}
    for parameters in found.values():
        assert parameters["path"].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        assert parameters["path"].default is None
        names = list(parameters)
        after = [parameters[name].kind for name in names[names.index("path") + 1 :]]
        assert all(kind is inspect.Parameter.KEYWORD_ONLY for kind in after)
    X = np.random.default_rng(0).normal(size=(100, 2))
    model = gossamer.AdditiveRegressor().fit(X, X[:, 0])
    plots.effects(model, X, tmp_path / "a.png")
    plots.effects(model, X, path=tmp_path / "b.png")
    assert (tmp_path / "a.png").exists()
    assert (tmp_path / "b.png").exists()


def test_interrupts_and_pipes_have_their_codes():
    """The numbers that the shell sees, as the page says."""
    page = (cli.__file__, sys.modules["test_cli"].ROOT / "docs" / "cli.md")[1].read_text()
    for code in (cli.BAD_DATA, cli.BAD_USAGE, cli.INTERRUPTED, cli.BROKEN_PIPE):
        assert str(code) in page.split("## Errors")[1]
