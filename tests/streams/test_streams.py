"""Laws of streams: any chunk size gives the same rows, a resumed stream goes on, every error names its place.

The file is long because all formats pass the same laws, with the one table and the writers that are made here.
"""

import csv
import gzip
import io
import json
import re
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from gossamer import RowEncoder, _core, streams
from gossamer.streams import _csv, _lines, infer_task

ROWS = 2500


def open_stream(source, *args, missing="error", **options):
    """Strict unless said: most tests are about what is refused."""
    return streams.open_stream(source, *args, missing=missing, **options)


def make_frame(rows=ROWS, missing=False):
    """Numbers, a boolean, a date, a text whose categories go on growing, and a label."""
    rng = np.random.default_rng(0)
    shops = np.array(["Rome", "Oslo", 'the "x", y', "Łódź\nline"])
    frame = pd.DataFrame({
        "size": rng.normal(size=rows) * 10.0 ** rng.integers(-9, 9, rows),
        "count": rng.integers(-5, 5, rows),
        "open": rng.random(rows) < 0.5,
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 10**6, rows), unit="s"),
        "shop": shops[rng.integers(0, 2 + 2 * (np.arange(rows) > 1500), rows)],
        "label": rng.choice(["yes", "no", "maybe"], rows),
    })  # fmt: skip
    if missing:
        frame["size"] = frame["size"].mask(rng.random(rows) < 0.1)
        frame["shop"] = frame["shop"].mask(rng.random(rows) < 0.1, None)
    return frame


def as_json(frame):
    frame = frame.assign(day=frame["day"].dt.strftime("%Y-%m-%dT%H:%M:%S"))
    return "".join(json.dumps(row, allow_nan=True) + "\n" for row in frame.to_dict("records")).encode()


def zstd(data):
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(data)
    return out.getvalue().to_pybytes()


class Pipe(io.RawIOBase):
    """Gives a few bytes at a time, and cannot jump."""

    def __init__(self, data):
        self.data, self.place = data, 0

    def read(self, count=-1):
        part = self.data[self.place : self.place + min(count, 1000)]
        self.place += len(part)
        return part


def libsvm(frame):
    lines = [f"{label == 'yes':d} 1:{size!r} 3:{count}\n"
             for label, size, count in zip(frame["label"], frame["size"], frame["count"], strict=True)]  # fmt: skip
    return "".join(lines).encode()


def other_dialect(frame):
    return frame.to_csv(index=False, sep=";", lineterminator="\r\n", quoting=csv.QUOTE_ALL).encode()


def parquet(frame, tmp_path):
    path = tmp_path / "table.parquet"
    frame.to_parquet(path, row_group_size=700, coerce_timestamps="us")
    return path


SOURCES = {
    "pandas": lambda frame, _: frame,
    "polars": lambda frame, _: pl.from_pandas(frame),
    "arrays": lambda frame, _: (frame[["size", "count"]].to_numpy(), frame["label"].to_numpy()),
    "csv": lambda frame, _: frame.to_csv(index=False).encode(),
    "csv, other dialect": lambda frame, _: other_dialect(frame),
    "csv, gzip": lambda frame, _: gzip.compress(frame.to_csv(index=False).encode()),
    "csv, zstd": lambda frame, _: zstd(frame.to_csv(index=False).encode()),
    "csv, text file": lambda frame, _: io.StringIO(frame.to_csv(index=False)),
    "csv, pipe": lambda frame, _: Pipe(frame.to_csv(index=False).encode()),
    "json lines": lambda frame, _: as_json(frame),
    "json lines, gzip": lambda frame, _: gzip.compress(as_json(frame)),
    "libsvm": lambda frame, _: libsvm(frame),
    "parquet": parquet,
}


def opened(name, frame, tmp_path, **options):
    target = None if name in ("libsvm", "arrays") else "label"
    return open_stream(SOURCES[name](frame, tmp_path), target=target, **options)


def collect(stream):
    chunks = list(stream)
    X, y, rows = (np.concatenate([getattr(chunk, part) for chunk in chunks]) for part in ("X", "y", "rows"))
    return X, y, rows


def same(one, other):
    return all(np.array_equal(a, b) and a.dtype.kind == b.dtype.kind for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", SOURCES)
def test_any_chunk_size_gives_the_same_rows(name, tmp_path):
    frame = make_frame()
    whole = collect(opened(name, frame, tmp_path, chunk_rows=10**6))
    assert len(whole[0]) == ROWS
    assert whole[0].flags.c_contiguous
    assert whole[2].tolist() == list(range(1, ROWS + 1))
    for size in (1, 333, 1000):
        stream = opened(name, frame, tmp_path, chunk_rows=size)
        first = next(stream)
        assert 1 <= len(first) <= size
        assert same(collect([first, *stream]), whole)


def test_every_format_gives_the_same_rows(tmp_path):
    """The same table in every format that can hold it is the same rows, and the ones that a naive reading gives."""
    frame = make_frame()
    expected = RowEncoder(scale=False).learn_transform(frame.drop(columns="label"))
    assert np.array_equal(expected[:, :3], frame[["size", "count", "open"]].astype(float))
    for name in SOURCES:
        X, y, _ = collect(opened(name, frame, tmp_path))
        if name == "libsvm":
            assert np.array_equal(X, np.column_stack([frame["size"], np.zeros(ROWS), frame["count"]]))
            assert np.array_equal(y, (frame["label"] == "yes").astype(int))
            continue
        assert y.tolist() == frame["label"].tolist()
        assert np.array_equal(X, expected[:, :2] if name == "arrays" else expected), name


@pytest.mark.parametrize("missing", ["error", "skip", "fill"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_resumed_stream_goes_on(name, missing, tmp_path):
    """From the position after any chunk, through JSON: the rest, byte for byte."""
    frame = make_frame(missing=missing != "error" and name != "libsvm")
    options = {"missing": missing, "chunk_rows": 700}
    chunks = list(opened(name, frame, tmp_path, **options))
    assert len(chunks) >= 3
    for i in (0, 1, len(chunks) - 1):
        position = json.loads(json.dumps(chunks[i].position))
        rest = list(opened(name, frame, tmp_path, **options, position=position))
        if i == len(chunks) - 1:
            assert rest == []
        else:
            assert same(collect(rest), collect(chunks[i + 1 :]))
            assert rest[-1].position == chunks[-1].position
            assert rest[0].names == chunks[0].names


def test_a_stream_can_be_resumed_before_it_begins():
    data = b"a,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(50))
    stream = open_stream(data, target="y")
    assert same(collect(open_stream(data, position=stream.position)), collect(stream))


def test_a_position_belongs_to_its_data():
    position = next(open_stream(b"a,b\n1,2\n3,4\n", chunk_rows=1)).position
    with pytest.raises(ValueError, match="begins differently"):
        open_stream(b"a,c\n1,2\n3,4\n", position=position)
    with pytest.raises(ValueError, match="position"):
        open_stream(b'{"a": 1}\n', format="jsonl", position=position)
    for broken in ({"at": {}}, {"at": 3}, {"schema": {}}, {"row": -1}, {"version": 9}):
        with pytest.raises(ValueError, match="position"):
            open_stream(b"a,b\n1,2\n3,4\n", position={**position, **broken})


@pytest.mark.parametrize("name", ["pandas", "csv", "json lines", "parquet"])
def test_missing_values(name, tmp_path):
    """skip leaves rows out and keeps their numbers; mean is that of the rows before; error names the place."""
    frame = make_frame(missing=True)
    gone = frame["size"].isna() | frame["shop"].isna()
    X, _, rows = collect(opened(name, frame, tmp_path, missing="skip"))
    assert rows.tolist() == (np.flatnonzero(~gone) + 1).tolist()
    filled, _, rows = collect(opened(name, frame, tmp_path, missing="fill", chunk_rows=100))
    assert len(rows) == ROWS
    assert np.array_equal(filled[~gone][:, [0, 2]], X[:, [0, 2]])  # size and count; between them the indicator
    assert np.array_equal(filled[:, 1] == 1.0, frame["size"].isna())
    total, count = 0.0, 0
    for i, size in enumerate(frame["size"].tolist()):
        if size != size:
            assert filled[i, 0] == pytest.approx(total / count if count else 0.0, rel=1e-9)
        else:
            total, count = total + size, count + 1
    row = int(np.argmax(gone)) + 1
    column = "size" if frame["size"].isna()[row - 1] else "shop"
    with pytest.raises(ValueError, match=rf"row {row}\b.*column '{column}'.*missing"):
        collect(opened(name, frame, tmp_path))


def test_a_missing_target_is_never_made_up():
    data = b"a,y\n1,u\n2,\n3,v\n"
    for missing in ("skip", "fill"):
        stream = open_stream(data, target="y", missing=missing)
        assert collect(stream)[2].tolist() == [1, 3]
        assert stream.left_out == (1, 0)
    with pytest.raises(ValueError, match=r"row 2.*column 'y'"):
        collect(open_stream(data, target="y"))


# ------------------------------------------------------------------------------------------------------------- errors

WRONG = [
    (b"", "at least one row"),
    (b"\n\n", "at least one row"),
    (b"a,b\n", "at least one row"),
    (b"a,b\n1,2\n3\n", r"row 2 \(line 3\), column 'b'.*2 fields.*1 fields"),
    (b"a,b\n1,2\n\n3,4,5\n", r"row 2 \(line 4\).*2 fields.*3 fields"),
    (b"a,b\n1,2\n1,inf\n", "row 2.*column 'b'.*finite"),
    (b"a,b\n1,2\n1,1e999\n", "row 2.*column 'b'.*finite.*1e999"),
    (b"a,b\n1,2\n,3\n", "row 2.*column 'a'.*missing"),
    (b"a,b\n1,2\n1,nan\n", "row 2.*column 'b'.*missing"),
    (b'a,b\n1,"2\n', r"row 1.*column 'b'.*quote is open"),
    (b'a,b\n1,"2"3\n', "row 1.*column 'b'.*closing quote"),
    (b'a,b\n1,x\n2,"\xff"\n', r"row 2 \(line 3\), column 'b'.*UTF-8"),
    (b"\xff,b\n1,2\n", "header.*UTF-8"),
    (b'{"a": 1}\n{"a": "x"}\n', r"row 2.*column 'a'.*number"),
    (b'{"a": 1}\n\n{"a": 1\n', r"row 2 \(line 3\)"),
    (b'{"a": 1, "a": 2}\n', "row 1.*'a' comes more than once"),
    (b'{"a": 1, "b": 2}\n{"a": 1}\n', "row 2.*column 'b'.*missing"),
    (b'{"a": Infinity}\n', "row 1.*column 'a'.*finite"),
    (b'{"a": [1]}\n', "row 1.*column 'a'"),
    (b'{"a": ' + b"1" * 400 + b"}\n", "row 1.*column 'a'.*finite"),
    (b"1 1:2 2:3\n1 2:3 1:2\n", "row 2.*ascend"),
    (b"1 1:2 2:3\n1 x\n", "row 2"),
    (b"1 1:2 2:3\n1 1:inf\n", "row 2.*finite"),
    (b"1 1:2 2:3\nu 1:1\n", "row 2"),
    (b"1 1:2 2:3\n1 99999999999:1\n", "row 2"),
]


@pytest.mark.parametrize(("data", "message"), WRONG)
def test_errors_name_row_and_column(data, message):
    with pytest.raises(ValueError, match=message):
        collect(open_stream(data))


def many(first, last, rows=1500):
    return first * rows + last


LATE = [
    (b"a,b\n" + many(b"1,2\n", b"1,x\n"), r"row 1501 \(line 1502\), column 'b'.*number.*'x'"),
    (b"a,b\n" + many(b"1,true\n", b"1,2\n"), "row 1501.*column 'b'.*true or false"),
    (b"a,b\n" + many(b"1,2024-01-01\n", b"1,2024-02-31\n"), "row 1501.*column 'b'.*date"),
    (many(b'{"a": 1, "b": 1}\n', b'{"a": 1, "b": 1, "c": 2}\n'), "row 1501.*column 'c'.*new"),
    (many(b'{"a": 1, "b": 1}\n', b'{"a": 1}\n'), "row 1501.*column 'b'.*missing"),
    (many(b"1 1:2 2:3\n", b"1 3:3\n"), "row 1501.*column '3'.*n_features"),
]


@pytest.mark.parametrize(("data", "message"), LATE)
def test_what_does_not_fit_later_is_an_error(data, message):
    """The types of the first rows are kept; the rows before the bad one are handed out."""
    for size in (1, 400, 10000):
        stream = open_stream(data, chunk_rows=size)
        assert sum(len(chunk) for chunk in until_error(stream)) == 1500
        for _ in range(2):
            with pytest.raises(ValueError, match=message):
                next(stream)


def until_error(stream):
    try:
        yield from stream
    except ValueError:
        return


def test_an_integer_target_stays_one():
    data = b"a,y\n" + many(b"1,0\n1,1\n", b"1,0.5\n")
    with pytest.raises(ValueError, match=r"row 3001.*column 'y'.*whole"):
        collect(open_stream(data, target="y"))
    assert collect(open_stream(data, target="y", task="regression"))[1].tolist() == [0.0, 1.0] * 1500 + [0.5]


@pytest.mark.parametrize(("options", "parameter"), [
    ({"target": "c"}, "target"), ({"target": 2}, "target"), ({"columns": ["a", "c"]}, "columns"),
    ({"columns": []}, "columns"), ({"ignore": "a"}, "ignore"), ({"kinds": {"a": "colour"}}, "kinds"),
    ({"missing": "guess"}, "missing"), ({"chunk_rows": 0}, "chunk_rows"), ({"delimiter": "ab"}, "delimiter"),
    ({"format": "xml"}, "format"), ({"task": "sorting"}, "task"), ({"header": "yes"}, "header"),
    ({"categories": 0}, "categories"), ({"columns": ["a", "a"]}, "columns"),
])  # fmt: skip
def test_wrong_parameters(options, parameter):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter"):
        open_stream(b"a,b\n1,2\n", **options)


def test_a_source_of_no_kind():
    with pytest.raises(ValueError, match="'source' parameter"):
        open_stream(17)


@pytest.mark.parametrize("pack", [gzip.compress, zstd], ids=["gzip", "zstd"])
def test_damaged_files(pack):
    """What was unpacked comes first, then one error."""
    rng = np.random.default_rng(0)
    data = pack(b"a,b\n" + b"".join(b"%.17g,%.17g\n" % tuple(pair) for pair in rng.normal(size=(20000, 2))))
    stream = open_stream(data[: len(data) // 2])
    assert sum(len(chunk) for chunk in until_error(stream)) > 1000
    with pytest.raises(ValueError, match="damaged or truncated"):
        next(stream)


def test_damaged_parquet(tmp_path):
    path = parquet(make_frame(), tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="whole Parquet"):
        open_stream(path)


class Endless(io.RawIOBase):
    """Never a line end."""

    def __init__(self, start, more):
        self.start, self.more, self.given = start, more, 0

    def read(self, count=-1):
        data, self.start = (self.start or self.more * (1 + count // len(self.more)))[:count], b""
        self.given += len(data)
        return data


@pytest.mark.parametrize(("start", "more"), [
    (b"a,b\n", b"1"), (b'a,b\n1,"', b"x\n"), (b'a,b\n"', b'""'), (b"", b"a"), (b'{"a": 1}\n{"a": "', b"x"),
    (b"1 1:1\n1 1:", b"1"),
])  # fmt: skip
def test_a_line_without_end_ends(start, more, monkeypatch):
    """A row longer than the limit is an error, and no more than a few times the limit is ever read."""
    for module in (_csv, _lines):
        monkeypatch.setattr(module, "LONGEST", 1 << 18)
    source = Endless(start, more)
    with pytest.raises(ValueError, match=r"row \d+.*shorter than"):
        list(open_stream(source))
    assert source.given < 1 << 22


# ---------------------------------------------------------------------------------------------- against the csv module

FIELD = st.text(alphabet='ab ,;"\n\r\t1.é', max_size=6)


@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=12), st.sampled_from([",", ";", "\t"]), st.booleans())
def test_csv_reads_what_the_csv_module_writes(rows, delimiter, quote_all):
    """Any texts. Blanks around a field without quotes are not part of it, and the writer does not quote a bare \\r:
    where there are such, all fields are quoted.
    """
    rows = [[field if field.strip() else "x" for field in row] for row in rows]
    plain = all(field == field.strip() and "\r" not in field for row in rows for field in row)
    out = io.StringIO()
    quoting = csv.QUOTE_ALL if quote_all or not plain else csv.QUOTE_MINIMAL
    csv.writer(out, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows([["u", "v"], *rows])
    data = out.getvalue().encode()
    kinds = {"u": "text", "v": "text"}
    for column, name in enumerate(kinds):
        _, y, _ = collect(open_stream(data, target=name, delimiter=delimiter, header=True, kinds=kinds, chunk_rows=5))
        assert y.tolist() == [row[column] for row in rows]


FINITE = st.floats(allow_nan=False, allow_infinity=False, max_value=1e308, min_value=-1e308)


@given(st.lists(FINITE, min_size=1, max_size=20), st.sampled_from(["r", ".17g", ".3e", "f"]))
def test_numbers_are_read_exactly(values, style):
    texts = [repr(value) if style == "r" else format(value, style) for value in values]
    X, _, _ = collect(open_stream(("a,y\n" + "".join(f"{text}, +1\n" for text in texts)).encode(), target="y"))
    assert X[:, 0].tolist() == [float(text) for text in texts]


# ----------------------------------------------------------------------------------------------------------- fuzzing

PIECES = [b",", b"\n", b"\r", b'"', b"1", b"2.5", b"-3e2", b" ", b"x", b"\xff", b"\x00", b"nan", b"inf", b"true"]
SOUP = st.lists(st.sampled_from([*PIECES, b"a,b\n", b"1,2\n", b"3,4\n"]), max_size=60).map(b"".join)


def outcome(data, size, **options):
    """The rows, and the error after them."""
    rows = []
    try:
        for chunk in open_stream(data, chunk_rows=size, **options):
            rows += [row.tobytes() for row in chunk.X]
    except ValueError as error:
        return rows, str(error)
    return rows, None


def placed(error):
    return error is None or any(word in error for word in ("row ", "header", "at least one row", "must be CSV"))


@given(SOUP, st.booleans())
def test_csv_soup(soup, started):
    """Anything is rows or one error that says where, and the same with all chunk sizes."""
    data = b"a,b\n1,2\n" + soup if started else soup
    rows, error = outcome(data, 1000, format="csv")
    assert placed(error)
    assert rows or error
    for size in (1, 3):
        assert outcome(data, size, format="csv") == (rows, error)


@given(SOUP, st.data())
def test_csv_in_two_parts(soup, data):
    """The parser stops before a record that may go on, wherever the bytes end."""
    slots = [0, _core.CSV_TEXT, 1]

    def parse(text, final):
        return _core.parse_csv(text, 0, final, ",", slots, 2, 1, ["", "NA"], 1000)

    def rows(parsed):
        codes, values = parsed["texts"][0]
        texts = [None if code < 0 else values[code] for code in codes]
        return [(row.tobytes(), text) for row, text in zip(parsed["X"], texts, strict=True)]

    text = soup.replace(b"a,b\n", b"1,u,2\n").replace(b"1,2\n", b"2,v,3\n")
    cut = data.draw(st.integers(0, len(text)))
    whole, first = parse(text, True), parse(text[:cut], False)
    used = int(first["starts"][-1])
    if first["error"]:
        assert (rows(first), first["error"], first["column"]) == (rows(whole), whole["error"], whole["column"])
        return
    second = parse(text[used:], True)
    assert rows(first) + rows(second) == rows(whole)
    assert (second["error"], second["column"], second["text"]) == (whole["error"], whole["column"], whole["text"])
    assert first["missing"] + second["missing"] == whole["missing"]
    assert [*first["lines"][:-1], *(second["lines"] + first["lines"][-1])][-1] == whole["lines"][-1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(JSON.map(json.dumps) | st.text(max_size=6), max_size=8), st.booleans())
def test_json_soup(lines, started):
    data = ("\n".join((['{"a": 1, "b": "x"}'] if started else []) + lines)).encode("utf-8", "surrogatepass")
    rows, error = outcome(data, 1000, format="jsonl")
    assert placed(error)
    assert rows or error
    for size in (1, 3):
        assert outcome(data, size, format="jsonl") == (rows, error)


@given(st.lists(st.text(alphabet="0123:. #-e", max_size=12), max_size=8))
def test_libsvm_soup(lines):
    data = "\n".join(["1 1:2 3:4", *lines]).encode()
    rows, error = outcome(data, 1000, format="libsvm")
    assert placed(error)
    assert rows or error
    assert outcome(data, 2, format="libsvm") == (rows, error)


def test_deep_json_is_an_error():
    with pytest.raises(ValueError, match="row 1"):
        collect(open_stream(b'{"a": ' + b"[" * 100_000 + b"\n"))


# ------------------------------------------------------------------------------------------------------------ the rest


def test_standard_input(monkeypatch):
    data = b"a,y\n1,u\n2,v\n"
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=io.BytesIO(data)))
    assert collect(open_stream("-", target="y"))[1].tolist() == ["u", "v"]


def test_formats_are_found(tmp_path):
    """By the ending of the name, and by the first bytes where there is none."""
    frame = make_frame(50)
    contents = {"csv": frame.to_csv(index=False).encode(), "jsonl": as_json(frame), "libsvm": libsvm(frame)}
    for form, data in contents.items():
        for name in (f"x.{form}", f"x.{form}.gz", "x.data", "x.txt.gz"):
            path = tmp_path / name
            path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
            with open_stream(path) as stream:
                assert stream.format == form
                assert len(collect([types.SimpleNamespace(X=c.X, y=c.rows, rows=c.rows) for c in stream])[0]) == 50
    with open(parquet(frame, tmp_path), "rb") as file:
        assert open_stream(file).format == "parquet"


def test_columns_of_a_stream_of_numbers_are_all_kept():
    """A counter and a constant are features where all columns are numbers; encoders leave counters out, and say it."""
    rows = [f"{i},{i % 7 / 2},4" for i in range(200)]
    data = "\n".join(["row,x,four", *rows]).encode()
    stream = open_stream(data)
    assert stream.names == ["row", "x", "four"]
    assert np.vstack([chunk.X for chunk in stream])[-1].tolist() == [199.0, 199 % 7 / 2, 4.0]
    decided = open_stream(data, encode=False)
    assert decided.names == ["x", "four"]
    assert decided.describe()[0] == "row (left out): id, such as '0': 200 different whole numbers in 200 rows"
    words = "\n".join(["row,x,word", *(f"{i},{i % 7 / 2},{'ab'[i % 2]}" for i in range(200))]).encode()
    assert "row" not in open_stream(words).names


def test_columns_can_be_chosen():
    data = b"id;a;b;y\n7;1;2;0\n8;3;4;1\n"
    assert open_stream(data, target="y", ignore=["id"]).names == ["a", "b"]
    assert open_stream(data, target=-1, columns=["b", 1]).names == ["b", "a"]
    stream = open_stream(data, target="y", kinds={"id": "category"}, categories=1)
    assert stream.names == ["id:1", "id:other1", "a", "b"]
    assert next(stream).X.tolist() == [[0, 1, 1, 2], [0, 1, 3, 4]]
    repeated = open_stream(b"a,,a\n1,2,3\n4,5,6\n")
    assert repeated.names == ["a", "c2", "a.2"]
    assert "'a.2' for 'a'" in repeated.notes[0]
    assert open_stream(b"1,2\n3,4\n").names == ["c1", "c2"]
    assert open_stream(b"1,2\n3,4\n", header=True).names == ["1", "2"]
    assert open_stream(b"\xef\xbb\xbfa,b\n3,4\n").names == ["a", "b"]
    assert open_stream(b"1 1:2\n", n_features=3).names == ["1", "2", "3"]
    assert open_stream(b"1 0:2 2:1\n").names == ["0", "1", "2"]


def test_tasks_are_inferred():
    """From targets, and from the column of a stream, alike."""
    cases = {
        "classification": [["u", "v"], [True, False], [0, 1, 1], [-1.0, 1.0], [1, 2, 3] * 10],
        "regression": [[0.5, 1.0], list(range(100)), [1, 2, 3, 4]],
    }
    for task, targets in cases.items():
        for target in targets:
            assert infer_task(target) == task
            data = "a,y\n" + "".join(f"1,{value}\n" for value in target)
            assert open_stream(data.encode(), target="y").task == task
            assert open_stream((np.ones((len(target), 1)), target)).task == task
    assert infer_task(None) == open_stream(b"a\n1\n").task == "novelty"
    with pytest.raises(ValueError, match="'task' parameter"):
        open_stream(b"a,y\n1,u\n", target="y", task="regression")


def test_labels_keep_their_type():
    for text, kind in (("u", "U"), ("true", "b"), ("3", "i"), ("0.5", "f"), ("2024-01-01", "f")):
        assert collect(open_stream(f"a,y\n1,{text}\n".encode(), target="y"))[1].dtype.kind == kind


def test_memory_is_bounded(tmp_path):
    """A long file is read in little memory."""
    import tracemalloc

    path = tmp_path / "long.csv"
    path.write_bytes(b"a,b,y\n" + b"0.123456789,text,1\n" * 300_000)
    with open_stream(path, target="y", chunk_rows=1000) as stream:
        next(stream)
        tracemalloc.start()
        rows = sum(len(chunk) for chunk in stream)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert rows == 299_000
    assert peak < 2_000_000


def test_the_page_tells_the_truth(tmp_path, monkeypatch, capsys):
    """The code of docs/streams.md runs, one block after the other, and prints what it says."""
    page = (Path(__file__).parents[2] / "docs" / "streams.md").read_text()
    monkeypatch.chdir(tmp_path)
    space = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(code, "streams.md", "exec"), space)
        printed = capsys.readouterr().out
        for promise in re.findall(r"print\(.*\)\s+# (.+)", code):
            assert promise in printed
        if "table()" in code:
            table = re.search(r"( +row +error.*?)\n\n", page, re.DOTALL).group(1)
            assert [line.strip() for line in table.splitlines()] == [line.strip() for line in printed.splitlines()[1:]]
    assert (tmp_path / "drift.png").exists()
