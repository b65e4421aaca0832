"""Laws of reading: linear time, bounded memory, the same rows for every dialect of a table, options that work.

The file is long because its laws go over all formats and dialects, each of which is written here.
"""

import bz2
import gc
import gzip
import io
import itertools
import json
import lzma
import os
import pickle
import string
import threading
import time
import zipfile

import fuzz_readers
import h5py
import numpy as np
import pandas as pd
import pytest
import scipy.io

from gossamer import _core, streams
from gossamer.cli import main


def open_stream(source, *args, missing="error", **options):
    """Strict unless said: most tests are about what is refused."""
    return streams.open_stream(source, *args, missing=missing, **options)


def outcome(data, size=8192, **options):
    """Rows and labels, then the error."""
    rows, error = [], None
    try:
        for chunk in open_stream(data, chunk_rows=size, **options):
            labels = [None] * len(chunk) if chunk.y is None else chunk.y.tolist()
            rows += zip(map(tuple, chunk.X.tolist()), labels, strict=True)
    except ValueError as problem:
        error = str(problem)
    return rows, error


# --------------------------------------------------------------------------------------------------------- delimiters


def test_every_delimiter_is_refused_or_gives_the_same_rows_for_all_cuts():
    """The parser, on the same fields with every ASCII delimiter, cut at every byte."""
    fields = [[b"1", b"u", b"-2.5e3"], [b"nan", b"inf", b"7"], [b"nan(1)", b"x y", b"3"], [b"1e5", b'"q""r"', b"0"]]
    allowed = []
    for delimiter in map(chr, range(256)):
        record = delimiter.encode("latin-1").join
        text = b"\n".join(map(record, fields)) + b"\r\n" + record([b"+1", b"", b"1."]) + b"\n"
        try:
            open_stream(text, format="csv", delimiter=delimiter, header=False)
        except ValueError as error:
            if "'delimiter' parameter" in str(error):
                continue
        allowed.append(delimiter)
        check_cuts(text, delimiter)
    taken = set(allowed)
    assert set(",;\t| :#~^_!(") <= taken
    assert not taken & set(string.ascii_letters + string.digits + '"\r\n.+-\0')
    assert all(delimiter < "\x80" for delimiter in allowed)


def check_cuts(text, delimiter, slots=(0, _core.CSV_TEXT, 1)):
    def parse(part, final):
        return _core.parse_csv(part, 0, final, delimiter, list(slots), 2, 1, ["", "NA"], 1000)

    def rows(parsed):
        codes, values = parsed["texts"][0]
        texts = [None if code < 0 else values[code] for code in codes]
        return [(row.tobytes(), value) for row, value in zip(parsed["X"], texts, strict=True)]

    whole = parse(text, True)
    for cut in range(len(text) + 1):
        first = parse(text[:cut], False)
        made, error = rows(first), first["error"]
        if not error:
            second = parse(text[int(first["starts"][-1]) :], True)
            made, error = made + rows(second), second["error"]
        assert (made, error) == (rows(whole), whole["error"]), (delimiter, cut)


@pytest.mark.parametrize("delimiter", ["", "ab", "é", 1, b",", None])
def test_what_is_no_character_is_no_delimiter(delimiter):
    if delimiter is None:
        assert open_stream(b"a,b\n1,2\n", delimiter=None).names == ["a", "b"]
        return
    with pytest.raises(ValueError, match="'delimiter' parameter"):
        open_stream(b"a,b\n1,2\n", delimiter=delimiter)


# --------------------------------------------------------------------------------------------------------- linear time

GROWING = {
    "digits and a letter": lambda n: b"a,b\n" + b"1" * n + b"x,2\n",
    "digits and a point": lambda n: b"a,b\n" + b"1" * n + b"." + b"1" * n + b"x,2\n",
    "an exponent": lambda n: b"a,b\n1e" + b"1" * n + b"x,2\n",
    "a number": lambda n: b"a,b\n0." + b"1" * n + b",2\n",
    "a date": lambda n: b"a,b\n2024-01-01T00:00:00." + b"1" * n + b",2\n",
    "columns": lambda n: b",".join(b"c%d" % i for i in range(n // 40)) + b"\n" + b"1," * (n // 40 - 1) + b"1\n",
    "the same column": lambda n: b",".join([b"c"] * (n // 40)) + b"\n1\n",
    "quotes": lambda n: b'a,b\n"' + b'""' * n + b'",2\n',
    "an open quote": lambda n: b'a,b\n"' + b"\n1,2" * n,
    "blank lines": lambda n: b"a,b\n" + b"\r\n\n" * n + b"1,2\n",
    "blanks": lambda n: b"a,b\n" + b" " * n + b"1" + b" \t" * n + b",2\n",
    "delimiters": lambda n: b"a,b\n1,2\n" + b"," * n,
    "unlike texts": lambda n: b"a,b\n" + b"".join(b"%d,x%d\n" % (i, i) for i in range(n // 100)),
    "objects": lambda n: b"".join(b'{"a%d": 1}\n' % i for i in range(n // 20)),
    "keys": lambda n: json.dumps({f"a{i}": i for i in range(n // 100)}).encode(),
    "the same key": lambda n: b"{" + b", ".join([b'"a": 1'] * (n // 20)) + b"}",
    "a deep object": lambda n: b'{"a": ' + b"[" * n,
    "a long number": lambda n: b'{"a": ' + b"1" * n + b"}",
    "indices": lambda n: b"1 " + b" ".join(b"%d:1" % (i + 1) for i in range(n // 100)) + b"\n",
    "a wide index": lambda n: b"1 1:" + b"1" * n + b"\n",
    "bad rows of CSV": lambda n: b"a,b\n" + b"1,2\n" * 1000 + b"1,x\n" * (n // 4),
    "bad rows of JSON": lambda n: b'{"a": 1}\n' * 1000 + b'{"a": "x"}\n' * (n // 10),
    "bad rows of LIBSVM": lambda n: b"1 1:1\n" * 1000 + b"1 1:x\n" * (n // 6),
    "no index": lambda n: b"1" * n + b":" + b"\n",
    "labels": lambda n: b"1 1:1" + b" 1" * n + b"\n",
}


@pytest.mark.parametrize("shape", GROWING)
def test_time_is_linear(shape):
    """An input four times as long takes about four times as long (sixteen would be quadratic), or next to nothing."""
    ratios = []
    gc.collect()
    gc.disable()  # it looks at all objects of all tests
    try:
        for _ in range(3):
            spent = []
            for size in (1 << 15, 1 << 17):
                data = GROWING[shape](size)
                start = time.process_time()
                form = "jsonl" if data[:1] == b"{" else None
                outcome(data, format=form, missing="fill", **({"bad_rows": "skip"} if "bad" in shape else {}))
                spent.append(time.process_time() - start)
                assert spent[-1] < 2, f"{spent[-1]:.1f} s for {len(data)} bytes"
            ratios.append(spent[1] / max(spent[0], 0.01))
            if ratios[-1] < 8:
                return
    finally:
        gc.enable()
    pytest.fail(f"four times the data took {ratios} times as long")


def test_a_pipe_of_crumbs_takes_linear_time():
    """A long record that comes in small pieces is not parsed again with each of them."""

    def spend(size):
        read, write = os.pipe()
        record = b'1,"' + b"x\n" * (size // 2) + b'"\n'

        def feed():
            with os.fdopen(write, "wb", buffering=0) as file:
                file.write(b"a,b\n1,2\n")
                for i in range(0, len(record), 512):
                    file.write(record[i : i + 512])

        writer = threading.Thread(target=feed, daemon=True)
        writer.start()
        with os.fdopen(read, "rb") as file:
            start = time.process_time()
            rows, error = outcome(file, kinds={"b": "text"})
            spent = time.process_time() - start
        writer.join()
        assert (len(rows), error) == (2, None)
        return spent

    assert min(spend(1 << 21) / max(spend(1 << 19), 0.02) for _ in range(3)) < 10


# ------------------------------------------------------------------------------------------------------------- memory


def wide(rows, columns, field=lambda row, column: b"%d" % ((row * 37 + column) % 10)):
    lines = (b",".join(field(row, column) for column in range(columns)) for row in range(rows))
    return b",".join(b"c%d" % i for i in range(columns)) + b"\n" + b"\n".join(lines) + b"\n"


HEAVY = {
    "a wide LIBSVM row": lambda: (b"1 65536:1\n", {}),
    "wide LIBSVM rows": lambda: (b"1 65536:1\n" + b"1 1:1\n" * 200, {}),
    "a LIBSVM row beyond": lambda: (b"1 1048576:1\n", {}),
    "a LIBSVM row of pairs": lambda: (b"1" + b"".join(b" %d:1" % i for i in range(1, 60_000)) + b"\n", {}),
    "a LIBSVM row of crumbs": lambda: (b"1 1:1" + b" 1" * 1_000_000 + b"\n", {}),
    "a wide CSV": lambda: (wide(2, 60_000), {}),
    "a CSV beyond": lambda: (wide(2, 200_000), {}),
    "a square CSV": lambda: (wide(1000, 1000), {}),
    "texts": lambda: (wide(1000, 400, lambda row, column: b"%x" % (row * 7 % 1000)), {}),
    "texts in an archive": lambda: (bz2.compress(wide(500, 1000, lambda row, column: b"%x" % (row * 7 % 1000))), {}),
    "texts with many features": lambda: (wide(200, 1900, lambda row, column: b"x%d" % (row % 32)), {}),
    "a long class": lambda: (b"a,y\n" + b"1,u\n" * 8000 + b"1," + b"v" * 100_000 + b"\n", {"target": "y"}),
    "columns of few objects": lambda: (b"".join(b'{"a%d": 1, "b%d": 2}\n' % (i, i) for i in range(5000)),
                                       {"missing": "fill"}),
    "an object of many keys": lambda: (json.dumps({f"{i}": 1 for i in range(300_000)}).encode(), {}),
    "an object of many lists": lambda: (b'{"a": [' + b"[]," * 1_000_000 + b"0]}", {}),
    "a bomb of keys": lambda: (gzip.compress(b"{" + b",".join(b'"%x":1' % i for i in range(1_500_000)) + b"}", 1), {}),
    "a bomb of lists": lambda: (gzip.compress(b'{"a": [' + b"[]," * 5_000_000 + b"0]}", 1), {}),
    "a long text in JSON": lambda: (json.dumps({"a": 1, "b": "[,\\\"" * 1_000_000}).encode(), {}),
    "a bomb": lambda: (gzip.compress(b"a,b\n" + b"1,2\n" * 2_000_000), {}),
    "a bomb of one line": lambda: (bz2.compress(b"a,b\n1," + b"2" * (1 << 25)), {}),
    "a bomb of columns": lambda: (lzma.compress(b"a," * (1 << 23)), {}),
}  # fmt: skip


@pytest.fixture(scope="module")
def measure():
    with fuzz_readers.Measuring() as measuring:
        yield measuring.measure


@pytest.mark.parametrize("case", HEAVY)
def test_memory_is_bounded_by_the_input(case, measure):
    """At most 100 MB and 20 times the size, as the process sees it; and a ValueError or all rows."""
    data, options = HEAVY[case]()
    grown, seconds = measure(data, options)
    assert grown < 100e6 + 20 * len(data), f"{grown / 1e6:.0f} MB for {len(data) / 1e6:.3f} MB"
    assert seconds < 2 + 4e-6 * len(data) or "bomb" in case, f"{seconds:.1f} s"


def test_the_limit_of_features_can_be_raised():
    with pytest.raises(ValueError, match="max_features"):
        list(open_stream(b"1 70000:1\n", sparse=False))
    assert next(open_stream(b"1 70000:1\n", max_features=70_000)).X.shape == (1, 70_000)
    assert next(open_stream(b"1 7:1\n", n_features=70_000)).X.shape == (1, 70_000)
    data = wide(3, 30)
    assert next(open_stream(data, max_features=30)).X.shape == (3, 30)
    for refused in (data, wide(3, 10, lambda row, column: b"xyz"[row : row + 1])):
        with pytest.raises(ValueError, match="'max_features' parameter"):
            open_stream(refused, max_features=29)
    with pytest.raises(ValueError, match="'max_features' parameter"):
        open_stream(json.dumps({f"a{i}": i for i in range(30)}).encode(), max_features=20)
    assert next(open_stream(np.zeros((2, 70_000)))).X.shape == (2, 70_000)  # it is in memory anyway


def test_wide_rows_come_in_small_chunks():
    for data in (wide(300, 5000), b"1 5000:1\n" * 300):
        chunks = list(open_stream(data, sparse=False))
        assert len(chunks) > 1
        assert max(chunk.X.size for chunk in chunks) <= 1 << 19
        assert sum(map(len, chunks)) == 300


# ------------------------------------------------------------------------------------------------------ foreign files


def foreign(tmp_path):
    """Files of other programs, and a word of what each is."""
    frame = pd.DataFrame({"a": [1, 2], "b": [3, 4]})
    out = {}

    def save(name, word, write):
        path = tmp_path / name
        write(path)
        out[name] = (path.read_bytes(), word)

    def hdf5(path):
        with h5py.File(path, "w") as file:
            file["a"] = np.zeros(3)

    def workbook(path, name="xl/workbook.xml"):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("[Content_Types].xml", "<Types/>")
            file.writestr(name, "<x/>")

    def table_in_zip(path):
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("a.csv", "1,2\n")

    save("parquet", "Parquet", lambda path: frame.to_parquet(path))
    save("matlab", "MATLAB", lambda path: scipy.io.savemat(path, {"a": np.zeros((3, 2))}))
    save("hdf5", "HDF5", hdf5)
    save("xlsx", "Excel", workbook)
    save("docx", "Word", lambda path: workbook(path, "word/document.xml"))
    save("zip", "zip archive", table_in_zip)
    save("a.npy", "NumPy", lambda path: np.save(path, np.zeros(3)))
    save("a.npz", "NumPy", lambda path: np.savez(path, a=np.zeros(3)))
    save("feather", "Feather", lambda path: frame.to_feather(path))
    save("model", "Gossamer", lambda path: path.write_bytes(b"\x89GSM\r\n\x1a\n" + bytes(20)))
    for protocol in (2, 3, 4, 5):
        content = pickle.dumps({"a": [1.0]}, protocol)
        save(f"pickle {protocol}", "pickle", lambda path, content=content: path.write_bytes(content))
    save("frame.pkl", "pickle", lambda path: frame.to_pickle(path))
    save("utf-16", "UTF-16", lambda path: path.write_text("a,b\n1,2\n", encoding="utf-16"))
    save("utf-16-le", "16 bits", lambda path: path.write_text("a,b\n1,2\n" * 3, encoding="utf-16-le"))
    save("pdf", "PDF", lambda path: path.write_bytes(b"%PDF-1.7\n..."))
    save("xml", "XML", lambda path: path.write_bytes(b'<?xml version="1.0"?>\n<a/>'))
    save("html", "HTML", lambda path: path.write_bytes(b"<!DOCTYPE html>\n<html>"))
    return out


def test_what_is_no_table_is_called_by_its_name(tmp_path, capsys):
    """Whatever its name says, in every text format, packed or not; also on the command line."""
    for (name, (data, word)), form in itertools.product(foreign(tmp_path).items(), ("csv", "jsonl", "libsvm")):
        path = tmp_path / f"table.{form}"
        for content in (data, gzip.compress(data)):
            path.write_bytes(content)
            with pytest.raises(ValueError, match=rf"table\.{form} must be .*{word}"):
                open_stream(path)
        if form == "csv":
            path.write_bytes(data)
            assert main(["run", str(path), "--target", "0"]) == 1, name
            assert word in capsys.readouterr().err


# -------------------------------------------------------------------------------------------- encodings, commas, marks

TABLE = "größe;ort;y\n1,5;Köln;ja\n-999;Ærø;nein\n2,25;unbekannt;ja\n3;Köln;nein\n"
CODES = ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp850"]


@pytest.mark.parametrize("encoding", CODES)
def test_every_encoding_gives_the_same_rows(encoding, tmp_path):
    """And every chunk size, archive and way in; and a stream that goes on."""
    options = {"target": "y", "decimal": ",", "na_values": [-999, "unbekannt"], "missing": "fill"}
    expected = outcome(TABLE.encode(), **options)
    assert [row[0] for row, _ in expected[0]] == [1.5, 1.5, 2.25, 3.0]
    data = TABLE.encode(encoding)
    for size, pack in itertools.product((1, 2, 100), (bytes, gzip.compress, bz2.compress, lzma.compress)):
        assert outcome(pack(data), size, encoding=encoding, **options) == expected
    path = tmp_path / "t.csv"
    path.write_bytes(data)
    with open_stream(path, chunk_rows=1, encoding=encoding, **options) as stream:
        first = next(stream)
    rest = open_stream(path, position=first.position, encoding=encoding, **{**options, "target": None})
    assert [tuple(row) for chunk in rest for row in chunk.X.tolist()] == [row for row, _ in expected[0][1:]]
    for cut in range(1, len(data)):
        assert outcome(data[:cut], 1, encoding=encoding, **options) == outcome(data[:cut], encoding=encoding, **options)


def test_bytes_that_are_none_of_the_encoding():
    """The rows before come first; then one error that names the data and the encoding."""
    data = b"a,y\n" + b"1,u\n" * 20_000 + b"2,\x81\n"
    for size in (1000, 8192):
        rows, error = outcome(data, size, target="y", encoding="cp1252")
        assert len(rows) == 20_000
        assert "the data must be whole" in error
        assert "cp1252" in error
    for wrong in ("rot13", "zlib", "punycode", "klingon", 7, "", "unicode_escape", "undefined"):
        with pytest.raises(ValueError, match="'encoding' parameter"):
            open_stream(b"a\n1\n", encoding=wrong)
    with pytest.raises(ValueError, match="'encoding' parameter"):
        open_stream(io.StringIO("a\n1\n"), encoding="latin-1")


def test_decimal_commas():
    plain = "a;b\n1.5;x\n-0.25e3;y\n.5;z\n7;x\n"
    assert outcome(plain.replace(".", ",").encode(), decimal=",") == outcome(plain.encode())
    assert outcome(b'a;b\n"1,5";2\n', decimal=",") == outcome(b'a;b\n"1.5";2\n')
    for text in (b"1.5", b"1,5,5", b",", b"1,5x"):
        rows, error = outcome(b"a;b\n1,5;2\n" + text + b";3\n", decimal=",", kinds={"a": "number"})
        assert len(rows) == 1
        assert "column 'a'" in error
    assert open_stream(b"1,5;2\n", decimal=",").names == ["c1", "c2"]  # a number: no header
    assert next(open_stream(b"a;y\n1;1,5\n2;2,5\n", decimal=",", target="y")).y.tolist() == [1.5, 2.5]
    with pytest.raises(ValueError, match="'decimal' parameter"):
        open_stream(b"a\n1\n", decimal="x")
    with pytest.raises(ValueError, match="'decimal' parameter"):
        open_stream(b'{"a": 1}\n', decimal=",")
    with pytest.raises(ValueError, match="'delimiter' parameter"):
        open_stream(b"a,b\n1,2\n", decimal=",", delimiter=",")


def test_marks_of_missing_values_in_every_format(tmp_path):
    """Texts and numbers, in columns of either kind, with every kind of source."""
    frame = pd.DataFrame({"a": [1.0, -999.0, 3.0, 4.0], "b": ["u", "v", "unknown", "u"], "y": [0, 1, 0, 1]})
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    lines = "".join(json.dumps(row) + "\n" for row in frame.to_dict("records")).encode()
    sources = [frame, frame.to_csv(index=False).encode(), lines, path]
    for source in sources:
        stream = open_stream(source, target="y", na_values=[-999, "unknown"], missing="skip")
        assert stream.names == ["a", "a:missing", *(f"b:{i}" for i in (1, 2, 3, 4)), "b:other1", "b:other2"]
        assert [row for chunk in stream for row in chunk.rows] == [1, 4]
        stream = open_stream(source, target="y", na_values=["-999", "unknown"], missing="fill")
        assert next(stream).X[:, 0].tolist() == [1.0, 1.0, 3.0, 4.0]
    mixed = b'{"a": 1}\n{"a": "unknown"}\n{"a": 3}\n'
    assert outcome(mixed, na_values=["unknown"], missing="skip")[0] == [((1.0, 0.0), None), ((3.0, 0.0), None)]
    assert outcome(b"1 1:5 2:-9\n0 1:6 2:7\n", na_values=[-9], missing="skip")[0] == [((6.0, 7.0), 0)]
    for wrong in ("NA", [None], [float("nan")], [True], 7):
        with pytest.raises(ValueError, match="'na_values' parameter"):
            open_stream(b"a\n1\n", na_values=wrong)


def test_the_command_line_reads_as_open_stream_does(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)).round(3)
    names = np.where(X[:, 0] > 0, "größer", "kleiner")
    plain, other = tmp_path / "plain.csv", tmp_path / "other.csv.bz2"
    lines = [f"{a},{b},{name}\n" for (a, b), name in zip(X.tolist(), names, strict=True)]
    lines[150] = f",0.5,{names[150]}\n"
    plain.write_text("a,b,y\n" + "".join(lines))
    text = "a;b;y\n" + "".join(lines).replace(",", ";").replace(".", ",").replace("\n;0", "\n-999;0")
    other.write_bytes(bz2.compress(text.encode("cp1252")))
    how = ["--decimal", ",", "--encoding", "cp1252", "--na-values=-999,unknown"]
    outputs = []
    for path, options in ((plain, []), (other, how)):
        model, out = tmp_path / "m.gsm", tmp_path / "out.csv"
        common = ["--missing", "skip", *options]
        results = ["--quiet", "--out", str(out), "--save", str(model)]
        assert main(["run", str(path), "--target", "y", *results, *common]) == 0
        outputs.append(out.read_text())
        assert main(["predict", str(model), str(path), *common]) == 0
        outputs[-1] += capsys.readouterr().out
        assert main(["compare", str(path), "--target", "y", "--learners", "pa", "--quiet", *common]) == 0
        outputs[-1] += capsys.readouterr().out.split("\n")[1].rsplit(None, 1)[0]
    assert outputs[0] == outputs[1]
    assert main(["run", str(plain), "--target", "y", "--max-features", "1"]) != 0
    assert "--max-features" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------------ describe


def test_each_column_is_described(tmp_path):
    data = ("id;size;price;cost;rate;day;open;y\n" + "".join(
        f"{i};{i},5;$1,{i:03d}.50;{i * 1000:,};{i}%;2024-01-{i:02d};true;{'uv'[i % 2]}\n" for i in range(1, 10)
    )).encode()  # fmt: skip
    lines = open_stream(data, target="y", ignore=["id"]).describe()
    assert [line.split(":")[0] for line in lines] == [
        "id (ignored)", "size", "price", "cost", "rate", "day", "open", "y (target)",
    ]  # fmt: skip
    words = ["number", "'1,5'", "'$1,001.50'", "'1,000'", "'1%'", "gap, week, year", "boolean", "text"]
    assert all(word in line for word, line in zip(words, lines, strict=True)), lines
    assert "written" not in "".join(open_stream(data, target="y", decimal=",").describe()[:2])
    assert "2 missing" in open_stream(b"a,b\n1,2\n,3\n,4\n", missing="fill").describe()[0]
    assert len(open_stream(b"1 500:1\n").describe()) == 2
    assert open_stream(b"1 500:1\n").describe()[1].startswith("1 ... 500 (500 columns): number")
    frame = pd.DataFrame({"a": [1.0], "b": ["$5"]})
    assert "written like '$5'" in open_stream(frame).describe()[1]
    stream = open_stream(data, target="y")
    kinds = [line.split(",")[0].split(": ")[1] for line in stream.describe()]
    again = open_stream(data, position=stream.position).describe()
    assert [line.split(": ")[1] for line in again] == kinds


# ------------------------------------------------------------------------------------------------------------- fuzzing


def test_a_short_campaign():
    found = fuzz_readers.campaign(seconds=8.0, count=None, seed=0, report=lambda line: None)
    assert found.problems == []
    assert found.count > 1000
