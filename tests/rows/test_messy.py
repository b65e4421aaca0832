"""Messy files need no option: `gossamer run` finishes, says what it decided, and learns something."""

import itertools

import numpy as np
import pandas as pd
import pytest
from messy import MESSY

import gossamer
from gossamer.cli import main
from gossamer.streams import open_stream

ROWS = 1200
#: What the command says about a file.
SAID = {
    "sensors": ["-999 is taken for missing", "damp: 301 missing, filled"],
    "shops": ["shop: category"],
    "users": ["user_id: category", "64 places, 16 shared", "missing, filled"],
    "survey": ["'c2' for ''", "'score.2' for 'score'", "score: mixed", "c2: boolean"],
    "money": ["row (left out): id", "numbers written like '$"],
    "german": ["decimal commas", "written as %d.%m.%Y"],
    "turnover": ["article: category"],
    "mail": ["message (left out): id", "server: category", "always mx1 in the first 1,000 rows", "text: text"],
    "clicks": ["seconds since 1970", "hour: cyclic", "mobile: boolean"],
    "drift": ["b: mixed", "texts such as 'error'"],
}


def last_error(out):
    """The error over all rows, in the last line of the table."""
    return float(out.strip().splitlines()[-1].split()[1])


@pytest.mark.parametrize("name", MESSY)
def test_messy_files_need_no_option(name, tmp_path, capsys):
    """With the target alone: better than always predicting the same."""
    data, target = MESSY[name](ROWS, 0)
    path, model = tmp_path / f"{name}.csv", tmp_path / "model.gsm"
    path.write_bytes(data)
    assert main(["run", str(path), "--target", target, "--save", str(model)]) == 0
    out, said = capsys.readouterr()
    assert [words for words in SAID[name] if words not in said] == []
    y = np.concatenate([chunk.y for chunk in open_stream(data, target=target, encode=False)])
    if y.dtype.kind == "f":
        assert last_error(out) < 0.9 * np.abs(y - np.median(y)).mean()
    else:
        assert last_error(out) < 0.9 * (1 - max(np.mean(y == label) for label in np.unique(y)))
    assert main(["predict", str(model), str(path)]) == 0
    shell = [line.split(",")[2] for line in capsys.readouterr().out.splitlines()[1:]]
    loaded = gossamer.load(model)["model"]  # the same model takes frames and dicts
    if name in ("shops", "turnover", "clicks"):
        frame = pd.read_csv(path, dtype={"kind": str}).drop(columns=target)
        made = loaded.predict(frame[:50])
        if y.dtype.kind == "f":
            assert np.allclose(made, [float(text) for text in shell[:50]])
        else:
            assert made.tolist() == shell[:50]
        rows = frame[:50].astype(object).where(frame[:50].notna(), None).to_dict("records")
        assert np.array_equal(loaded.predict(rows), made)


@pytest.mark.parametrize("name", ["sensors", "users", "survey", "german"])
def test_tables_of_messy_files_do_not_depend_on_chunks(name):
    """Encoded or not, any size of chunks, and resumed after any: the same features."""
    data, target = MESSY[name](1500, 1)
    whole = np.concatenate([chunk.X for chunk in open_stream(data, target=target)])
    for size in (97, 1100):
        chunks = list(open_stream(data, target=target, chunk_rows=size))
        assert np.array_equal(np.concatenate([chunk.X for chunk in chunks]), whole)
        rest = open_stream(data, position=chunks[0].position, chunk_rows=333)
        assert np.array_equal(np.concatenate([chunk.X for chunk in rest]), whole[len(chunks[0]) :])
    stream = open_stream(data, target=target, encode=False)
    encoder = gossamer.RowEncoder(stream.schema.plan, scale=False)
    assert np.array_equal(np.concatenate([encoder.learn_transform(chunk.X) for chunk in stream]), whole)


def test_values_of_another_kind_later(tmp_path, capsys):
    """A word among numbers after the start is a gap that is told; with --missing error it is an error."""
    lines = [f"{i % 7}.5,{'xy'[i % 2]},{i % 3}" for i in range(1500)]
    lines[1200] = "much,x,1"
    lines[1300] = "inf,x,"
    path = tmp_path / "late.csv"
    path.write_text("a,b,y\n" + "\n".join(lines) + "\n")
    assert main(["run", str(path), "--target", "y"]) == 0
    said = capsys.readouterr().err
    assert "a: 2 values that are no numbers, such as 'much', taken for missing" in said
    assert "1 rows without a target were left out" in said
    assert main(["run", str(path), "--target", "y", "--missing", "error"]) == 1
    assert "row 1201 (line 1202), column 'a': must be a number" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ late labels


def write_join(folder, rows=400, seed=0):
    """Rows without labels, and their labels in another order: some early, repeated and unknown."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    ids = [f"r{i:04d}" for i in range(rows)]
    order = np.argsort(np.arange(rows) + rng.integers(-5, 40, rows), kind="stable").tolist()
    shop = rng.choice(["a", "b"], rows)
    labels = [(ids[i], f"{x[i] + (shop[i] == 'a'):.3f}") for i in order]
    labels[50:50] = [labels[3], ("nobody", "1.5")]
    (folder / "rows.csv").write_text(
        "id,x,shop\n" + "".join(f"{n},{v:.4f},{s}\n" for n, v, s in zip(ids, x, shop, strict=True))
    )
    (folder / "labels.csv").write_text("id,y\n" + "".join(f"{n},{v}\n" for n, v in labels))
    return ["run", str(folder / "rows.csv"), "--labels", str(folder / "labels.csv"), "--id", "id", "--target", "y"]


def test_two_streams_are_joined(tmp_path, capsys):
    """Every label is learned once, in the order of their file; what is wrong is counted and told."""
    command = write_join(tmp_path)
    model, out = tmp_path / "m.gsm", tmp_path / "out.csv"
    assert main([*command, "--save", str(model), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert "400 shown, 400 joined, 1 unknown, 1 repeated, 0 still wait" in said.err
    assert "400 labels   mae" in said.out
    assert len(out.read_text().splitlines()) == 401
    loaded = gossamer.load(model)["model"]
    assert loaded[-1].n_seen_ == 400
    assert loaded.predict([{"x": 0.0, "shop": "a"}])[0] > loaded.predict([{"x": 0.0, "shop": "b"}])[0]
    for bad in (["--target"], ["--id"]):
        cut = command.index(bad[0])
        assert main(command[:cut] + command[cut + 2 :]) == 2
    assert main([*command, "--delay", "3"]) == 2
    capsys.readouterr()


def test_a_killed_join_goes_on(tmp_path, monkeypatch):
    """Stopped after any chunk and resumed: the model and the output of a run that was never stopped."""
    from gossamer.cli import labels

    monkeypatch.setattr(labels, "CHUNK", 64)
    command = write_join(tmp_path)
    results = ["--save", str(tmp_path / "m.gsm"), "--out", str(tmp_path / "out.csv"), "--quiet"]
    assert main([*command, *results]) == 0
    whole = (tmp_path / "m.gsm").read_bytes(), (tmp_path / "out.csv").read_bytes()
    for after in (1, 3):
        (tmp_path / "c.gsm").unlink(missing_ok=True)
        again = [*command, *results, "--checkpoint", str(tmp_path / "c.gsm"), "--every", "1"]
        count = itertools.count(1)
        show = labels.Join._show

        def killed(self, *given, after=after, count=count, show=show):
            if next(count) == 64 * after + 30:
                raise RuntimeError("killed")
            show(self, *given)

        monkeypatch.setattr(labels.Join, "_show", killed)
        with pytest.raises(RuntimeError, match="killed"):
            main(again)
        monkeypatch.setattr(labels.Join, "_show", show)
        assert main([*again, "--resume"]) == 0
        assert ((tmp_path / "m.gsm").read_bytes(), (tmp_path / "out.csv").read_bytes()) == whole
