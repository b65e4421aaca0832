"""Laws of packed and foreign files: damage is an error or changes nothing; what is no table is called by its name."""

import bz2
import gzip
import io
import lzma
import os
import struct
import threading
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_streams import Pipe

from gossamer.cli import main
from gossamer.streams import open_stream

M64 = (1 << 64) - 1
PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def xxh64(data):
    """The checksum of zstd frames (XXH64, seed 0)."""
    p1, p2, p3, p4, p5 = PRIMES
    turn = lambda x, r: ((x << r) | (x >> (64 - r))) & M64  # noqa: E731
    step = lambda lane, value: turn((lane + value * p2) & M64, 31) * p1 & M64  # noqa: E731
    length, place = len(data), 0
    h = p5
    if length >= 32:
        lanes = [(p1 + p2) & M64, p2, 0, -p1 & M64]
        while place + 32 <= length:
            lanes = [step(x, v) for x, v in zip(lanes, struct.unpack_from("<4Q", data, place), strict=True)]
            place += 32
        h = sum(turn(x, r) for x, r in zip(lanes, (1, 7, 12, 18), strict=True)) & M64
        for x in lanes:
            h = ((h ^ step(0, x)) * p1 + p4) & M64
    h = (h + length) & M64
    while place + 8 <= length:
        h = (turn(h ^ step(0, struct.unpack_from("<Q", data, place)[0]), 27) * p1 + p4) & M64
        place += 8
    if place + 4 <= length:
        h = (turn(h ^ struct.unpack_from("<I", data, place)[0] * p1 & M64, 23) * p2 + p3) & M64
        place += 4
    for byte in data[place:]:
        h = turn(h ^ byte * p5 & M64, 11) * p1 & M64
    h = (h ^ h >> 33) * p2 & M64
    h = (h ^ h >> 29) * p3 & M64
    return h ^ h >> 32


def zstd(data):
    """A zstd frame with a checksum, as the zstd program writes it; pyarrow writes none."""
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(data)
    frame = bytearray(out.getvalue().to_pybytes())
    frame[4] |= 4
    return bytes(frame) + struct.pack("<I", xxh64(data) & 0xFFFFFFFF)


def several(pack):
    """An archive of three members."""
    return lambda data: b"".join(pack(data[i * len(data) // 3 : (i + 1) * len(data) // 3]) for i in range(3))


def named_gzip(data):
    out = io.BytesIO()
    with gzip.GzipFile("table.csv", "wb", fileobj=out, mtime=1) as file:
        file.write(data)
    return out.getvalue()


ONE = {"gzip": named_gzip, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": zstd}
PACKS = {**ONE, **{f"{name}, members": several(pack) for name, pack in ONE.items()}}
TEXTS = {
    "csv": b"a,b,y\n" + b"".join(b"%d,%d,%s\n" % (i, i * i % 7, [b"spam", b"good"][i % 2]) for i in range(40)),
    "jsonl": b"".join(b'{"a": %d, "y": "%s"}\n' % (i, [b"spam", b"good"][i % 2]) for i in range(30)),
    "libsvm": b"".join(b"%d 1:%d 3:%d\n" % (i % 2, i + 1, i * i) for i in range(40)),
}
SIZES = (1, 7, 8192)


def rows_of(source, form, size=8192, **options):
    """All rows of a source, as plain values; a ValueError must have a sentence with the name of the data."""
    target = None if form == "libsvm" else "y"
    try:
        with open_stream(source, format=form, target=target, chunk_rows=size, **options) as stream:
            pairs = [zip(chunk.X.tolist(), chunk.y.tolist(), strict=True) for chunk in stream]
            return [(*row, label) for pair in pairs for row, label in pair], stream.names
    except ValueError as problem:
        error = str(problem)
    assert "the data" in error or "open_stream" in error
    return None


@pytest.mark.parametrize("form", TEXTS)
@pytest.mark.parametrize("kind", PACKS)
def test_damage_is_never_read_in_silence(kind, form):
    """Every truncation and every flipped byte of an archive is an error, or gives the same rows."""
    packed = PACKS[kind](TEXTS[form])
    whole = rows_of(packed, form)
    assert len(whole[0]) == TEXTS[form].count(b"\n") - (form == "csv")
    # cut between two members, an archive is whole
    pack, text = ONE[kind.split(",")[0]], TEXTS[form]
    first, second = (len(pack(text[i * len(text) // 3 : (i + 1) * len(text) // 3])) for i in range(2))
    ends = [first, first + second] if "members" in kind else []
    for end in range(len(packed)):
        if end not in ends:
            assert rows_of(packed[:end], form) in (None, whole), f"cut after {end} of {len(packed)} bytes"
    for place in range(len(packed)):
        for bit in (0, 3, 7):
            damaged = bytearray(packed)
            damaged[place] ^= 1 << bit
            assert rows_of(bytes(damaged), form) in (None, whole), f"bit {bit} of byte {place} of {len(packed)}"


LONG = b"a,y\n" + b"".join(b"%d,%s\n" % (i * 7919 % 10007, [b"spam", b"good"][i % 2]) for i in range(60_000))


@pytest.mark.parametrize("kind", ONE)
def test_damage_in_a_long_archive(kind):
    """The rows before it come first, the same for all chunks; then one error. A part of a row is never a row."""
    packed = ONE[kind](LONG)
    rng = np.random.default_rng(0)
    cuts = [*rng.integers(1, len(packed), 6), len(packed) - 8, len(packed) - 1]
    flipped = []
    for place in rng.integers(len(packed) // 2, len(packed), 4):
        flipped.append(bytearray(packed))
        flipped[-1][place] ^= 0x10
    for damaged in [packed[:cut] for cut in cuts] + [bytes(each) for each in flipped]:
        found = []
        for size in (100, 8192, 10**6):
            rows, error = [], None
            try:
                for chunk in open_stream(damaged, target="y", chunk_rows=size):
                    rows += zip(chunk.X[:, 0].tolist(), chunk.y.tolist(), strict=True)
            except ValueError as problem:
                error = str(problem)
            found.append((rows, error))
        assert found[0] == found[1] == found[2]
        assert found[0][1] is not None
        if len(damaged) == len(packed):
            continue  # what was flipped is found by the checksum, after the rows that it has changed
        assert "damaged or truncated" in found[0][1]
        assert {label for _, label in found[0][0]} <= {"spam", "good"}
        assert [x for x, _ in found[0][0]] == [i * 7919 % 10007 for i in range(len(found[0][0]))]


@pytest.mark.parametrize("kind", ONE)
def test_damage_by_every_way_in(kind, tmp_path):
    """A path, a file object, a pipe of Python's and one of the system's, bytes: the same rows, the same error."""
    packed = ONE[kind](LONG)

    def system_pipe(data):
        read, write = os.pipe()

        def feed():
            with suppress(BrokenPipeError), os.fdopen(write, "wb") as file:
                file.write(data)

        threading.Thread(target=feed, daemon=True).start()
        return os.fdopen(read, "rb")

    for data in (packed, packed[:-1], packed[: len(packed) // 2]):
        path = tmp_path / "table"
        path.write_bytes(data)
        counts = []
        for way in (path, path.open("rb"), Pipe(data), system_pipe(data), data):
            count = 0
            try:
                for chunk in open_stream(way, format="csv", target="y"):
                    count += len(chunk)
                counts.append((count, ""))
            except ValueError as error:
                counts.append((count, str(error).split(" must")[1]))
            finally:
                if hasattr(way, "close"):
                    way.close()
        assert set(counts) == {counts[0]}
        assert (counts[0][1] == "") == (data == packed)
        assert counts[0][0] == 60_000 or data != packed


@pytest.mark.parametrize("kind", ONE)
def test_the_command_line_refuses_half_an_archive(kind, tmp_path, capsys):
    packed = ONE[kind](LONG[:200_000].rsplit(b"\n", 1)[0] + b"\n")
    path = tmp_path / "table.csv.packed"
    path.write_bytes(packed)
    options = ["--target", "y", "--format", "csv", "--quiet", "--budget", "5"]
    assert main(["run", str(path), *options]) == 0
    for cut in range(len(packed) // 2, len(packed), len(packed) // 18):
        path.write_bytes(packed[:cut])
        assert main(["run", str(path), *options]) == 1, cut
        assert "table.csv.packed" in capsys.readouterr().err


def test_padding_and_what_follows():
    """Zeros after an archive are padding; anything else is damage."""
    for kind, pack in ONE.items():
        if kind != "zstd":
            assert rows_of(pack(TEXTS["csv"]) + bytes(512), "csv") == rows_of(TEXTS["csv"], "csv")
        assert rows_of(pack(TEXTS["csv"]) + b"tail", "csv") is None


# ------------------------------------------------------------------------------------------------------------ Parquet


def parquet(**options):
    table = pa.table({"a": list(range(300)), "y": ["spam", "good"] * 150})
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=100, **options)
    return out.getvalue()


def parquet_rows(data):
    try:
        rows = [(*chunk.X[:, 0].tolist(), *chunk.y.tolist()) for chunk in open_stream(io.BytesIO(data), target="y")]
    except ValueError as problem:
        rows, error = None, str(problem)
        assert_sentence(error)
    return rows


def assert_sentence(error):
    assert " must " in error
    assert len(error) < 600


def test_damaged_parquet_is_an_error():
    """Every truncation; and with checksums, every flipped byte of the pages' data. (The footer of a Parquet file has
    no checksum: what is flipped there is an error of one sentence, or rows.)
    """
    data = parquet(write_page_checksum=True, compression="none", use_dictionary=False)
    whole = parquet_rows(data)
    assert len(whole) == 1
    for end in range(0, len(data), 3):
        assert parquet_rows(data[:end]) is None
    start, end = data.index(struct.pack("<q", 10)), data.index(struct.pack("<q", 99)) + 8
    for place in range(start, end, 5):
        damaged = bytearray(data)
        damaged[place] ^= 4
        assert parquet_rows(bytes(damaged)) is None, place
    for place in range(0, len(data), 7):
        damaged = bytearray(data)
        damaged[place] ^= 0x21
        parquet_rows(bytes(damaged))
