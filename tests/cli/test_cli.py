"""The command line: what it finds out by itself, what it writes, and how it tells what is wrong.

The file is long because all commands are tried on the same small tables, by the same two functions.
"""

import csv
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from parts import KINDS, by_name, classes, label

import gossamer
from gossamer import RowEncoder, _registry, cli, pipeline, store
from gossamer.budgets import Forgetron, Sublinear
from gossamer.cli import evaluation, parts
from gossamer.evaluate import Prequential
from gossamer.kernels import Additive, Brownian, Custom, Gaussian, Spline
from gossamer.streams import open_stream

ROOT = Path(__file__).parents[2]


def run(capsys, *arguments):
    """Exit code, standard output and standard error of a command."""
    try:
        code = cli.main([str(argument) for argument in arguments])
    except SystemExit as leaving:  # argparse leaves by itself
        code = leaving.code
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def told(capsys, *arguments):
    """The one line of an error, and the exit code."""
    code, _, err = run(capsys, *arguments)
    assert err.count("\n") == 1, err
    assert err.startswith("gossamer"), err
    return code, err


@pytest.fixture
def shops(tmp_path):
    """Numbers, text, a boolean, a date, and three targets."""
    rng = np.random.default_rng(0)
    path = tmp_path / "shops.csv"
    with open(path, "w") as file:
        file.write("size,shop,open,day,price,kind,sold\n")
        for i in range(1500):
            size, shop = rng.normal(), ["Rome", "Oslo", "Bonn"][rng.integers(3)]
            price = 100 + 5 * size + {"Rome": 10, "Oslo": -10, "Bonn": 0}[shop] + 0.1 * rng.normal()
            kind = ["small", "middle", "large"][int(np.digitize(size, [-0.5, 0.5]))]
            day = f"2024-01-{i % 28 + 1:02}"
            file.write(f"{size:.6f},{shop},{i % 2 == 0},{day},{price:.6f},{kind},{int(price > 100)}\n".lower())
    return path


# --------------------------------------------------------------------------------------------------- what it finds out


@pytest.mark.parametrize(
    ("target", "ignore", "task", "best"),
    [
        ("price", "kind,sold", "regression", 3.0),  # the mean is off by 8.0
        ("kind", "price,sold", "classification", 0.3),  # the largest class misses 0.62
        ("sold", "price,kind", "classification", 0.15),  # 0.5
        (None, "price,kind,sold", "novelty", 0.12),  # alarms
    ],
)
def test_the_target_is_enough(target, ignore, task, best, shops, capsys):
    """Types, task, scaling and settings are found; the result is much better than a constant."""
    given_target = [] if target is None else ["--target", target]
    code, out, err = run(capsys, "run", shops, *given_target, "--ignore", ignore)
    assert code == 0
    assert f"shops.csv: {task}, 1,500 rows" in err
    head, *lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["100", "200", "400", "800", "1,500"]
    assert head.split()[1] == {"regression": "mae", "classification": "error", "novelty": "alarms"}[task]
    assert float(lines[-1].split()[1]) < best


def test_the_result_is_that_of_the_library(shops, tmp_path, capsys):
    """The command is a pipeline of encoder and learner on a stream, and its numbers are theirs."""
    options = ["--target", "sold", "--ignore", "price,kind", "--C", 2, "--budget", 50, "--gamma", 0.3]
    saved, out = tmp_path / "m.gsm", tmp_path / "p.csv"
    code, _, _ = run(capsys, "run", shops, *options, "--save", saved, "--out", out, "--window", 500)
    assert code == 0
    rows = open_stream(shops, "sold", ignore=["price", "kind"], encode=False)
    encoder = RowEncoder(rows.schema.plan)
    model = pipeline(encoder, gossamer.SILKClassifier(Gaussian(0.3), C=2.0, budget=50))
    evaluated = Prequential(model, every=500)
    made = [evaluated.update(chunk.X, chunk.y) for chunk in rows]
    written = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [int(row["prediction"] or -1) for row in written[1:]] == made[0].labels.tolist()[1:]
    assert written[0]["prediction"] == ""  # no class had been seen
    assert np.allclose([float(row["score"]) for row in written[1:]], made[0].scores[1:], rtol=1e-8)
    loaded = gossamer.load(saved)
    assert loaded["model"].to_bytes() == model.to_bytes()
    assert loaded["task"] == "classification"


def test_every_learner_and_kernel_has_a_name(shops, capsys):
    """All estimators are found by a short name, and every one runs; so does every kernel."""
    estimators = [name for name in gossamer.__all__ if re.search(r"(Classifier|Regressor|Detector|Perceptron)$", name)]
    named = [part.__name__ for task in parts.FACES for part in parts.learners(task).values()]
    generic = [part.__name__ for part in parts.FACES.values()]  # --rule makes them: test_any_four_parts
    assert sorted(named + generic) == sorted(estimators)
    for target, ignore in (("price", "kind,sold"), ("kind", "price,sold"), ("sold", "price,kind")):
        options = ["--target", target, "--ignore", ignore, "--learners", "all"]
        code, out, err = run(capsys, "compare", shops, *options)
        assert code == 0
        task = "regression" if target == "price" else "classification"
        without = set(re.findall(r"without (\w+): shops.csv, row \d+, column 'kind': must be one of two classes", err))
        assert {line.split()[0] for line in out.splitlines()[1:]} == set(parts.learners(task)) - without
        assert bool(without) == (target == "kind")
    kernels = set(by_name("kernel"))
    assert kernels >= {"gaussian", "laplace", "matern", "linear", "polynomial"}
    for kernel in kernels - {"additive", "sum", "product", "scaled"}:  # test_every_part_is_an_option has those
        own = ["--learner", "additive"] if kernel in ("spline", "brownian") else []  # of numbers from 0 on
        options = ["--target", "sold", "--ignore", "price,kind", "--kernel", kernel]
        code, out, _ = run(capsys, "run", shops, *options, *own)
        assert code == 0
        assert float(out.splitlines()[-1].split()[1]) < 0.4, kernel
        if own:
            code, _, err = run(capsys, "run", shops, *options)
            assert code == 2
            assert "--learner additive" in err


TARGETS = {"classification": ("sold", "price,kind"), "regression": ("price", "kind,sold"), "novelty": (None, "kind")}


def text_of(part):
    """A part as an option."""
    settings = {"sum": "left=gaussian,right=linear", "product": "left=gaussian,right=linear", "additive": "exponential",
                "scaled": "gaussian,factor=2", "sublinear": "rate=0.9,reg=1"}  # fmt: skip
    name = _registry.name_of(part)
    needed = [key for key, p in _registry.parameters(part).items() if p.default is p.empty or key == "size"]
    return f"{name}:{settings.get(name) or ','.join(f'{key}=20' for key in needed)}".rstrip(":")


@pytest.mark.parametrize(("kind", "part"), [(kind, part) for kind in KINDS for part in classes(kind)], ids=label)
def test_every_part_is_an_option(kind, part, shops, capsys, tmp_path):
    """Every kernel, loss, rule and budget runs by its name, for a task that it is made for, and is in the model."""
    if part is Custom:
        return
    target = getattr(part, "target", "binary")
    task = {"real": "regression", "none": "novelty"}.get(target, "classification")
    column, ignored = TARGETS[task]
    others = {"rule": "perceptron", "loss": "hinge:margin=0"} if part is Forgetron else {"rule": "implicit:C=0.5"}
    others = {"rule": "gradient:schedule=inverse_sqrt"} if part is Sublinear else others
    others = {"kernel": "gaussian:gamma=0.2"} | others if kind != "kernel" else others
    chosen = {**others, kind: text_of(part)}
    options = [word for name, text in chosen.items() for word in (f"--{name}", text)]
    where = ["--ignore", ignored, *(["--target", column] if column else []), "--missing", "fill"]
    scale = ["--no-scale"] if part in (Brownian, Spline) else []
    code, _, err = run(capsys, "run", shops, *where, *options, *scale, "--save", tmp_path / "m.gsm", "--quiet")
    if code and part in (Brownian, Spline):
        assert "not negative" in err
        return
    assert code == 0, err
    _, model = store.load(tmp_path / "m.gsm")["model"].steps[-1]
    found = getattr(model.learner_, kind)
    assert type(found) is part or (kind == "kernel" and isinstance(found, Additive))


def test_any_four_parts(shops, capsys):
    """--rule takes the parameters of its rule and its loss from their options too, and no others."""
    where = ["--target", "price", "--ignore", "kind,sold", "--quiet"]
    one = run(capsys, "run", shops, *where, "--rule", "gradient:rate=0.2", "--loss", "huber:delta=0.5", "--out", "-")
    two = run(capsys, "run", shops, *where, "--rule", "gradient", "--rate", 0.2, "--loss", "huber", "--delta", 0.5,
              "--out", "-")  # fmt: skip
    assert one[0] == two[0] == 0
    assert one[1] == two[1]
    three = run(capsys, "run", shops, *where, "--loss", "huber:delta=0.5", "--out", "-")  # of a learner
    assert three[:2] == run(capsys, "run", shops, *where, "--loss", "huber", "--delta", 0.5, "--out", "-")[:2]
    for wrong, words in (
        (["--rule", "gradient", "--quantile", 0.5], "--quantile must be left out for these parts, which takes"),
        (["--rule", "gradent"], "--rule must be one of"),
        (["--loss", "huber:width=3"], "'width' must be left out: Huber"),
        (["--rule", "gradient", "--learner", "silk"], "--rule must be left out for the learner 'silk'"),
        (["--loss", "huber:delta=0.5", "--delta", "0.3"], "--delta must be left to the loss"),
        (["--rule", "passive_aggressive", "--loss", "huber"], "--loss must be"), (["--parts", "no_such"], "no_such"),
    ):  # fmt: skip
        code, err = told(capsys, "run", shops, "--target", "price", *wrong)
        assert code == 2
        assert words in err
    code, out, _ = run(capsys, "compare", shops, *where, "--rule", "svmd", "--learners",
                       "online:budget=(random:size=9,seed=2),silk,online:loss=(huber:delta=0.3)")  # fmt: skip
    assert code == 0
    assert "online:budget=(random:size=9,seed=2)" in out


def test_parts_are_listed(capsys, tmp_path, monkeypatch):
    """`gossamer parts` has every part with its parameters, `run --help` every name; --parts brings more."""
    code, out, _ = run(capsys, "parts")
    assert code == 0
    _, page, _ = run(capsys, "run", "--help")
    for kind in KINDS:
        for name, part in by_name(kind).items():
            assert name in out
            assert all(key in out for key in _registry.parameters(part))
            if name == _registry.name_of(part):
                assert re.search(rf"\b{name}\b", page.split("parts (")[1]), (kind, name)
    (tmp_path / "my_own_losses.py").write_text(
        "from dataclasses import dataclass\nfrom gossamer.losses import Hinge\n\n\n"
        '@dataclass(frozen=True)\nclass VeryOwn(Hinge):\n    """Mine: margin, nu."""\n'
    )
    monkeypatch.chdir(tmp_path)
    code, out, _ = run(capsys, "parts", "--parts", "my_own_losses", "losses")
    assert code == 0
    assert "very_own: margin=1.0, nu=None" in out


# ------------------------------------------------------------------------------------------------------ what it writes


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(("target", "ignore"), [("price", "kind,sold"), ("kind", "price,sold"), (None, "kind,sold")])
def test_saved_models_predict_and_go_on(target, ignore, ending, shops, tmp_path, capsys):
    """A model learned in two halves is that of one run; predict says what the model says, without learning."""
    lines = shops.read_text().splitlines()
    halves = [tmp_path / "first.csv", tmp_path / "second.csv"]
    halves[0].write_text("\n".join(lines[:1101]) + "\n")
    halves[1].write_text("\n".join([lines[0], *lines[1101:]]) + "\n")
    names = ["--ignore", ignore, *([] if target is None else ["--target", target])]
    one, two, out = tmp_path / "one.gsm", tmp_path / "two.gsm", tmp_path / f"p.{ending}"
    assert run(capsys, "run", shops, *names, "--save", one, "--quiet")[0] == 0
    assert run(capsys, "run", halves[0], *names, "--save", two, "--quiet")[0] == 0
    assert run(capsys, "run", halves[1], "--model", two, "--save", two, "--quiet")[0] == 0
    assert two.read_bytes() == one.read_bytes()
    code, _, err = run(capsys, "predict", one, halves[1], "--out", out)
    assert code == 0
    assert one.read_bytes() == two.read_bytes()
    text = out.read_text()
    rows = list(csv.DictReader(io.StringIO(text)) if ending == "csv" else map(json.loads, text.splitlines()))
    assert [int(row["row"]) for row in rows] == list(range(1, 401))
    loaded = gossamer.load(one)
    stream = open_stream(halves[1], target, ignore=ignore.split(","), encode=False)
    said = np.concatenate([loaded["model"].predict(chunk.X) for chunk in stream])
    if target == "kind":
        assert [row["prediction"] for row in rows] == said.tolist()
        assert float(err.split("error ")[1].split()[0]) < 0.3
    elif target is None:
        assert [int(row["alarm"]) for row in rows] == (said == -1).astype(int).tolist()
        assert "target" not in rows[0]
    else:
        assert np.allclose([float(row["prediction"]) for row in rows], said, rtol=1e-8)
        assert "mean absolute error" in err


def test_predict_needs_the_columns_and_not_the_target(shops, tmp_path, capsys):
    """The order of the columns and further ones do not matter; one that is not there is named."""
    model = tmp_path / "m.gsm"
    options = ("--ignore", "sold,price,day", "--learner", "silk", "--save", model)
    assert run(capsys, "run", shops, "--target", "kind", *options)[0] == 0
    few = tmp_path / "few.csv"
    few.write_text("shop,extra,size,open\nrome,7,0.1,true\nnowhere,8,-3,false\n")
    code, out, _ = run(capsys, "predict", model, few)
    assert code == 0
    assert out.splitlines()[0] == "row,prediction,score"
    assert out.splitlines()[2].startswith("2,small,")
    few.write_text("shop,open\nrome,true\n")
    code, err = told(capsys, "predict", model, few)
    assert code == 1
    assert "few.csv must have the column 'size'" in err
    few.write_text("shop,size,open\nrome,1,true\nrome,big,true\n")
    code, _, err = run(capsys, "predict", model, few, "--missing", "error")
    assert code == 1
    assert "row 2 (line 3), column 'size'" in err
    assert run(capsys, "predict", model, few)[0] == 0


def test_inspect_tells_what_is_there(shops, tmp_path, capsys):
    """Task, columns and parameters, as text and as JSON."""
    model = tmp_path / "m.gsm"
    told_of = {"silk": ("C: 0.5", "SILKClassifier"), "auto": ("AutoClassifier", "settings:", "weights:")}
    for learner, more in told_of.items():
        options = ("--ignore", "price,sold", "--learner", learner, "--save", model)
        assert run(capsys, "run", shops, "--target", "kind", *options)[0] == 0
        code, out, _ = run(capsys, "inspect", model)
        assert code == 0
        for words in ("task: classification", "size: number", "RowEncoder", *more):
            assert words in out
    code, out, _ = run(capsys, "inspect", model, "--json")
    assert json.loads(out)["value"]["task"] == "classification"
    (tmp_path / "half.gsm").write_bytes(model.read_bytes()[:500])
    assert told(capsys, "inspect", tmp_path / "half.gsm")[0] == 1


def test_pictures_and_traces_are_written(shops, tmp_path, capsys):
    """--plot and --trace of run, --plot of compare."""
    options = [shops, "--target", "sold", "--ignore", "price,kind"]
    picture, trace = tmp_path / "a.png", tmp_path / "a.csv"
    assert run(capsys, "run", *options, "--plot", picture, "--trace", trace)[0] == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert len(trace.read_text().splitlines()) == 16
    both = tmp_path / "both.svg"
    code, out, _ = run(capsys, "compare", *options, "--learners", "silk:C=0.1,silk:C=10,pa", "--plot", both)
    assert code == 0
    assert both.read_text().count("silk:C=10") == 1
    errors = [float(line.split()[1]) for line in out.splitlines()[1:]]
    assert errors == sorted(errors)


def test_predictions_to_standard_output(shops, capsysbinary):
    """With --out - the table goes to standard error."""
    assert cli.main(["run", str(shops), "--target", "price", "--out", "-"]) == 0
    printed = capsysbinary.readouterr()
    assert printed.out.startswith(b"row,target,prediction\n1,")
    assert printed.out.count(b"\n") == 1501
    assert b"in window" in printed.err


def test_alarms_only(shops, tmp_path, capsys):
    """--alarms leaves out the rows without; with a target, the area under the curve is measured."""
    options = ["run", shops, "--target", "sold", "--task", "novelty", "--ignore", "price,kind", "--nu", 0.2]
    assert run(capsys, *options, "--out", tmp_path / "all.csv")[0] == 0
    code, out, _ = run(capsys, *options, "--out", tmp_path / "few.csv", "--alarms")
    assert code == 0
    assert "auc" in out
    every = (tmp_path / "all.csv").read_text().splitlines()
    assert (tmp_path / "few.csv").read_text().splitlines()[1:] == [line for line in every if line.split(",")[2] == "1"]


@pytest.mark.parametrize("split", [1, 3, 1000])
def test_scores_do_not_show_the_chunks(split):
    """A third class in the middle of a chunk leaves the scores of the rows before it as they were."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), np.array(["a", "b", "c"])[np.r_[0, np.arange(59) % 2 + (np.arange(59) > 30)]]
    run = Prequential(gossamer.SILKClassifier(Gaussian(0.5)), every=7)  # windows end inside the chunks
    scores = [run.update(X[i : i + split], y[i : i + split]).single() for i in range(0, 60, split)]
    alone = Prequential(gossamer.SILKClassifier(Gaussian(0.5)), every=10**6)
    assert np.array_equal(np.concatenate(scores), np.concatenate(
        [alone.update(X[i : i + 1], y[i : i + 1]).single() for i in range(60)]))  # fmt: skip


@pytest.mark.parametrize("metric", ["mae", "rmse"])
def test_wide_records_are_those_of_wide_windows(metric):
    """What an evaluation keeps of a long stream is what one with that window measures."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(5000, 2))
    y = X[:, 0] + rng.normal(size=5000)
    long = evaluation.Evaluation(gossamer.SILKRegressor(Gaussian(0.5), budget=20), every=2, metrics=[metric])
    long.update(X, y)
    trace = long.finish()
    assert len(trace) <= evaluation.MOST
    width = trace.records[0].rows
    plain = Prequential(gossamer.SILKRegressor(Gaussian(0.5), budget=20), every=width, metrics=[metric])
    plain.update(X, y)
    expected = plain.finish()
    assert trace.row.tolist() == expected.row.tolist()
    assert np.allclose(trace.window(metric), expected.window(metric))
    assert np.allclose(trace.total(metric), expected.total(metric))


# ------------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--target", "prise"], "--target must be among the columns 'size', 'shop'"),
        (["--target", "price", "--budget", "0"], "--budget must be an int in [1, inf). Got 0"),
        (["--target", "price", "--learner", "silck"], "--learner must be one of"),
        (["--target", "price", "--learner", "alma"], "--learner must be one of"),
        (["--target", "price", "--kernel", "gauss"], "--kernel must be one of"),
        (["--target", "price", "--learner", "svmd:meta=-1"], "'meta'"),
        (["--target", "price", "--learner", "silk:colour=red"], "'colour'"),
        (["--target", "price", "--learner", "silk:C"], "--learner must be like silk:C=10"),
        (["--target", "price", "--gamma", "-1"], "--gamma must be"),
        (["--target", "price", "--kernel", "linear", "--gamma", "2"], "--gamma must be left out for the kernel"),
        (["--target", "price", "--learner", "pa", "--rate", "2"], "--rate must be left out for the learner 'pa'"),
        (["--target", "shop", "--task", "regression"], "--task must be"),
        (["--task", "regression"], "--target must be given"),
        (["--target", "price", "--task", "dance"], "--task must be one of"),
        (["--target", "price", "--missing", "zero"], "--missing must be one of"),
        (["--target", "price", "--resume"], "--resume must be together with --checkpoint"),
        (["--target", "price", "--every", "9"], "--every must be together with --checkpoint"),
        (["--target", "price", "--out", "no/such/place.csv"], "--out must be a file in a folder that exists"),
        (["--target", "price", "--plot", "a.txt"], "--plot must be a .png"),
        (["--target", "price", "--alarms"], "--alarms must be left out"),
        (["--target", "price", "--kinds", "size"], "--kinds"),
        (["--target", "price", "--C", "much"], "--C"),
        (["--target", "price", "--colour", "red"], "--colour"),
        (["--target", "price", "--window", "0"], "--"),
    ],
)
def test_bad_usage_is_told_in_one_line(arguments, words, shops, capsys):
    """Exit code 2, and the option is named as the shell knows it."""
    code, err = told(capsys, "run", shops, *arguments)
    assert code == 2, err
    assert words in err


LINES = ["a,b,y", *(f"{i % 7},{i % 3},{'yes' if i % 7 > 3 else 'no'}" for i in range(1200))]


@pytest.mark.parametrize(
    ("row", "line", "words"),
    [
        (1100, "1,2,3,4,5", "row 1100 (line 1101): must be of 3 fields, as the columns. Got '5 fields'"),
        (1100, "1", "row 1100 (line 1101), column 'b': must be there"),
        (1100, "1,x,yes", "row 1100 (line 1101), column 'b': must be a number, as in the rows before. Got 'x'"),
        (1100, "1,,yes", "row 1100 (line 1101), column 'b': must be there (--missing skip"),
        (1100, "1,2,", "row 1100 (line 1101), column 'y': must be there"),
        (1100, "1,inf,no", "row 1100 (line 1101), column 'b': must be finite"),
        (1100, '1,"2,no', "row 1100 (line 1101), column 'b': must be closed"),
        (1, "1,2,3,4,5", "row 1 (line 2)"),
    ],
)
def test_bad_rows_are_named(row, line, words, tmp_path, capsys):
    """Exit code 1, the row and the column; a checkpoint from before is where one can go on."""
    lines = list(LINES)
    lines[row] = line
    path = tmp_path / "bad.csv"
    path.write_text("\n".join(lines) + "\n")
    marks = ["--checkpoint", tmp_path / "c.gsm", "--every", 300, "--save", tmp_path / "m.gsm", "--quiet"]
    marks += ["--missing", "error"]
    out = ["--out", tmp_path / "o.csv"]
    code, err = told(capsys, "run", path, "--target", "y", *marks, *out)
    assert code == 1
    assert words in err
    if row > 1:
        assert "--resume goes on there" in err
        path.write_text("\n".join(LINES) + "\n")
        assert run(capsys, "run", path, "--target", "y", *marks, *out, "--resume")[0] == 0
        whole = ["--save", tmp_path / "w.gsm", "--out", tmp_path / "w.csv", "--quiet"]
        assert run(capsys, "run", path, "--target", "y", *whole)[0] == 0
        assert (tmp_path / "w.gsm").read_bytes() == (tmp_path / "m.gsm").read_bytes()
        assert (tmp_path / "w.csv").read_bytes() == (tmp_path / "o.csv").read_bytes()


def test_a_label_never_seen_is_learned_and_a_column_that_goes_is_named(tmp_path, capsys):
    """A class may come late; a column of JSON lines that disappears is an error with its row and name."""
    rows = [{"a": i % 5, "b": i % 3, "y": "late" if i > 1100 else "ab"[i % 2]} for i in range(1300)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(capsys, "run", path, "--target", "y", "--save", tmp_path / "m.gsm")[0] == 0
    assert gossamer.load(tmp_path / "m.gsm")["model"].classes_.tolist() == ["a", "b", "late"]
    del rows[1204]["b"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert run(capsys, "run", path, "--target", "y", "--quiet")[0] == 0
    code, err = told(capsys, "run", path, "--target", "y", "--quiet", "--missing", "error")
    assert code == 1
    assert "row 1205, column 'b'" in re.sub(r" \(line \d+\)", "", err)


def test_files_that_are_not_there_or_not_ours(shops, tmp_path, capsys):
    """Exit code 1 and one line; nothing of somebody else is overwritten."""
    assert told(capsys, "run", tmp_path / "no.csv", "--target", "y")[0] == 1
    assert told(capsys, "run", tmp_path, "--target", "y")[0] == 1
    assert told(capsys, "predict", tmp_path / "no.gsm", shops)[0] == 1
    assert told(capsys, "predict", shops, shops)[0] == 1
    plain = tmp_path / "plain.gsm"
    store.save({"mine": 1}, plain)
    before = plain.read_bytes()
    assert told(capsys, "predict", plain, shops)[0] == 1
    code, err = told(capsys, "run", shops, "--target", "price", "--checkpoint", plain)
    assert code == 1
    assert "it stays as it is" in err
    assert plain.read_bytes() == before
    assert told(capsys, "run", shops, "--target", "price", "--save", shops)[0] == 2
    assert told(capsys, "run", tmp_path / "empty.csv", "--target", "y")[0] == 1
    (tmp_path / "empty.csv").write_text("a,y\n")
    assert told(capsys, "run", tmp_path / "empty.csv", "--target", "y")[0] == 1


def test_a_resumed_run_has_the_same_options(shops, tmp_path, capsys):
    """What the result depends on must be as it was; the error names the option."""
    options = ["run", shops, "--target", "price", "--C", 0.3, "--checkpoint", tmp_path / "c.gsm", "--quiet"]
    assert run(capsys, *options)[0] == 0
    for other in (["--gamma", 2], ["--learner", "norma"], ["--missing", "skip"], ["--out", tmp_path / "o.csv"]):
        code, err = told(capsys, *options, "--resume", *other)
        assert code == 2
        assert f"{other[0]} must be" in err
    assert run(capsys, *options, "--resume")[0] == 0
    assert run(capsys, *options)[0] == 0  # that run is done: a new one may begin


def test_help_has_examples(capsys):
    """Every command says how it is used."""
    for command in ("run", "predict", "inspect", "compare"):
        code, out, _ = run(capsys, command, "--help")
        assert code == 0
        assert f"  gossamer {command} " in out


def test_every_option_is_documented():
    """docs/cli.md names every option of every command, docs/video.md and docs/serve.md those of their own."""
    commands = next(action for action in cli.make_parser()._actions if action.dest == "command").choices
    for name, parser in commands.items():
        page = (ROOT / "docs" / f"{name if name in ('video', 'serve') else 'cli'}.md").read_text()
        for action in parser._actions if name != "demo" else []:
            for option in action.option_strings:
                assert option in ("-h", "--help") or f"`{option}" in page, f"{name} {option}"


@pytest.mark.skipif(not os.environ.get("GOSSAMER_DATA"), reason="GOSSAMER_DATA is not set")
@pytest.mark.parametrize("page", ["README.md", "docs/cli.md"])
def test_the_pages_show_what_the_command_prints(page, capsys):
    """The table of the README and of docs/cli.md is that of the command."""
    shown = (ROOT / page).read_text().split("$ gossamer run elec.csv.gz --target class\n")[1].split("```")[0]
    data = Path(os.environ["GOSSAMER_DATA"]) / "elec2" / "elec.csv.gz"
    code, out, _ = run(capsys, "run", data, "--target", "class")
    assert code == 0
    assert out == shown


FIELDS = st.text(alphabet='ab01.,-e"\n\r;\t\x00é', max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=12), good=st.integers(0, 3),
       cut=st.integers(0, 40))  # fmt: skip
def test_fuzzed_csv_never_crashes(rows, good, cut, tmp_path, capsys):
    """Any bytes: done, or one line that names the row or the header, or says that there is none."""
    text = "a,b,y\n" + "1,2,0\n3,4,1\n" * good + "\n".join(",".join(row) for row in rows)
    check_fuzzed(text.encode()[: len(text) - cut] if cut < len(text) else b"", "csv", tmp_path, capsys)


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("aby"), inner, max_size=2),
    max_leaves=4,
)  # fmt: skip


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.dictionaries(st.sampled_from(["a", "b", "y", "é"]), VALUES, max_size=4) | VALUES, max_size=8),
       cut=st.integers(0, 30))  # fmt: skip
def test_fuzzed_json_lines_never_crash(rows, cut, tmp_path, capsys):
    """The same for JSON lines."""
    lines = ['{"a": 1, "b": 2, "y": 0}', '{"a": 2, "b": 1, "y": 1}', *map(json.dumps, rows)]
    data = "\n".join(lines).encode()
    check_fuzzed(data[: max(0, len(data) - cut)], "jsonl", tmp_path, capsys)


def check_fuzzed(data, ending, folder, capsys):
    path = folder / f"fuzz.{ending}"
    path.write_bytes(data)
    code, _, err = run(capsys, "run", path, "--target", "y", "--missing", "skip", "--quiet")
    assert code in (0, 1, 2), err
    if code:
        assert err.count("\n") == 1, err
        assert "Traceback" not in err
        named = re.search(r"row \d|rows \d|header|at least one row|None? of|Got none|must be CSV", err)
        assert named or code == 2, err
        assert code == 1 or re.search(r"--(target|columns)", err), err


@pytest.mark.skipif(sys.platform == "win32", reason="ptys are of POSIX")
def test_the_bar_is_for_terminals(shops, tmp_path):
    """On a terminal, standard error has a bar; it leaves nothing behind."""
    import pty
    import subprocess

    master, slave = pty.openpty()
    big = tmp_path / "big.csv"
    lines = shops.read_text().splitlines()
    big.write_text("\n".join([lines[0], *(lines[1:] * 60)]) + "\n")
    command = [sys.executable, "-m", "gossamer", "run", str(big), "--target", "price"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, check=True, cwd=tmp_path)
    os.close(slave)
    seen = os.read(master, 1 << 16).decode()
    os.close(master)
    assert re.search(r"\[#+ *\] +\d+%   [\d,]+ rows   [\d,]+ rows/s   mae \d", seen)
    assert done.stdout.decode().splitlines()[-1].split()[0] == "90,000"
