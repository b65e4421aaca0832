"""LIBSVM rows that stay sparse: the numbers of dense ones, in any chunks, resumed, through the shell."""

import numpy as np
import pytest
import scipy.sparse as sp
from parts import random_rows

from gossamer import SILKClassifier, cli, evaluate
from gossamer.kernels import Linear
from gossamer.streams import open_stream
from gossamer.streams._indices import IndexSchema, Names, read_schema


def lines(rows=400, features=5000, seed=0, base=1):
    """A LIBSVM text, and the rows in it."""
    rng = np.random.default_rng(seed)
    X = random_rows(rows, features, 20 / features, rng)
    X.data = np.round(X.data, 3)
    y = np.where(X @ np.sin(np.arange(features)) > 0, 1, -1)
    text = [
        f"{label} "
        + " ".join(f"{j + base}:{v!r}" for j, v in zip(row.indices.tolist(), row.data.tolist(), strict=True))
        for label, row in zip(y.tolist(), (X[[i]] for i in range(rows)), strict=True)
    ]
    return "\n".join(text).encode() + b"\n", X, y


def joined(chunks):
    return sp.vstack([sp.csr_array(chunk.X) for chunk in chunks]).toarray()


def test_dense_and_sparse():
    """The same numbers and targets; sparse where that is smaller, or as asked."""
    data, X, y = lines()
    for sparse, expected in ((None, True), (True, True), (False, False)):
        stream = open_stream(data, n_features=5000, sparse=sparse, chunk_rows=150)
        chunks = list(stream)
        assert stream.sparse == expected == all(sp.issparse(chunk.X) for chunk in chunks)
        assert np.array_equal(joined(chunks), X.toarray())
        assert np.array_equal(np.concatenate([chunk.y for chunk in chunks]), y)
        assert np.concatenate([chunk.rows for chunk in chunks]).tolist() == list(range(1, 401))
        assert (len(stream.names), stream.names[0], stream.names[4999]) == (5000, "1", "5000")
        assert stream.task == "classification"
    assert not open_stream(b"1 1:1 3:1\n-1 2:1\n").sparse
    assert open_stream(b"1 1:1 3:1\n-1 2:1\n", sparse=True).sparse
    assert not open_stream(data, columns=["1", "2"]).sparse
    with pytest.raises(ValueError, match="'sparse' parameter of open_stream must be False where columns are chosen"):
        open_stream(data, columns=["1", "2"], sparse=True)


def test_positions():
    """A stream goes on at the position of any chunk, which does not grow with the features."""
    data, X, _ = lines(features=300_000)
    first = next(open_stream(data, chunk_rows=130))
    assert first.X.shape[1] == 2**20
    assert len(str(first.position)) < 500
    rest = list(open_stream(data, position=first.position, chunk_rows=100))
    found = sp.vstack([first.X, *(chunk.X for chunk in rest)]).tocsr()[:, :300_000]
    assert (found != X).nnz == 0
    for bad in ({"indices": [1, 0], "target": None}, {"indices": [7, 5], "target": None}, {"indices": 3}):
        with pytest.raises(ValueError, match="'position' parameter"):
            open_stream(data, position={**first.position, "schema": bad})


def test_width():
    """Beyond 65,536 features there is room for more than the first rows have, unless limits are given."""
    stream = open_stream(b"1 3:0.5 1000000:2\n-1 7:1\n" * 600 + b"1 2000000:1\n")
    assert next(stream).X.shape == (1201, 2**21)
    assert next(open_stream(b"1 100000:2\n", n_features=10**9)).X.shape == (1, 10**9)
    assert next(open_stream(b"1 0:1 100000:2\n")).X[0, 0] == 1.0
    with pytest.raises(ValueError, match=r"row 1001.*among the indices 1 to 262144 \(n_features= allows more\)"):
        list(open_stream(b"1 100000:1\n" * 1000 + b"1 900000:1\n"))
    for options in ({"max_features": 1000}, {"sparse": False}):
        with pytest.raises(ValueError, match="indices do not ascend from 0 to at most"):
            open_stream(b"1 100000:1\n", **options)


@pytest.mark.parametrize(("row", "words"), [
    (b"1 5000000000:1", "at most 2147483647"), (b"1 7:1 7:2", "do not ascend"), (b"1 9:1 7:2", "do not ascend"),
    (b"1 -3:1", "do not ascend"), (b"1 7:inf", "not finite"), (b"1 7:nan", r"missing='skip'"), (b"x 7:1", "label"),
])  # fmt: skip
def test_bad_rows(row, words):
    """The rows before are handed out, then the error names the row; or the row is left out."""
    data = b"1 3:0.5 100000:2\n-1 7:1\n" * 5 + row + b"\n" + b"1 2:1\n" * 5
    stream = open_stream(data, format="libsvm")
    assert len(next(stream)) == 10
    with pytest.raises(ValueError, match=f"row 11.*{words}"):
        next(stream)
    kept = list(open_stream(data, format="libsvm", bad_rows="skip", missing="skip"))
    assert sum(map(len, kept)) == 15


def test_missing_values():
    """NaN and the values that stand for it: the row is left out where that is asked."""
    data = b"1 3:0.5 100000:2\n-1 7:-999\n1 2:1\n"
    chunk = next(open_stream(data, missing="skip", na_values=[-999]))
    assert chunk.rows.tolist() == [1, 3]
    assert chunk.X.nnz == 3
    with pytest.raises(ValueError, match=r"row 2.*column '7'.*a missing value"):
        list(open_stream(data, na_values=[-999]))


def test_schemas():
    """Names are made when they are asked for."""
    names = Names(1, 2**31 - 1)
    assert (len(names), names[5], names[-1], names[2:4]) == (2**31 - 1, "6", "2147483647", ["3", "4"])
    assert "17" in names
    assert "0" not in names
    assert 17 not in names
    schema = IndexSchema(0, 10**9, None)
    assert read_schema(schema.to_dict()).names == schema.names
    assert schema.features[3].name == "3"
    assert [column.name for column in schema.features[:2]] == ["0", "1"]


def test_evaluation():
    """Progressive evaluation of sparse chunks, also with late labels, goes on from its state."""
    data, _, _ = lines(rows=300, features=100_000)
    for delay in (0, 7):
        traces = []
        for stops in (False, True):
            model = SILKClassifier(Linear(), budget=32)
            run = evaluate.Prequential(model, every=100, delay=delay)
            for chunk in open_stream(data, chunk_rows=90):
                run.update(chunk.X, chunk.y)
                if stops:
                    state, run = run.state(), evaluate.Prequential(model, every=100, delay=delay)
                    run.restore(state)
            traces.append([record.total["error"] for record in run.finish().records])
        assert traces[0] == traces[1]


def test_the_shell(tmp_path, capsys):
    """run, --save, --resume and predict on rows of 300,000 features: Auto and a named learner."""
    data, _, _ = lines(rows=300, features=300_000)
    (tmp_path / "wide.libsvm").write_bytes(data)
    path, model, check = (str(tmp_path / name) for name in ("wide.libsvm", "model.gsm", "run.gsm"))
    options = ["--save", model, "--checkpoint", check, "--every", "100"]
    for learner in ("auto", "silk"):
        assert cli.main(["run", path, "--learner", learner, *options]) == 0
        assert "1 ... 1048576 (1,048,576 columns)" in capsys.readouterr().err
        assert cli.main(["run", path, "--learner", learner, *options, "--resume"]) == 0
        assert cli.main(["predict", model, path, "--out", str(tmp_path / "out.csv")]) == 0
        assert len((tmp_path / "out.csv").read_text().splitlines()) == 301
        capsys.readouterr()
        (tmp_path / "run.gsm").unlink()
