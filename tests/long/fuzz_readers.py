"""Fuzz the readers of text: CSV, JSON lines, LIBSVM, plain and in archives, with all options and chunk sizes.

    python tests/long/fuzz_readers.py --count 5000000 --processes 2
    python tests/long/fuzz_readers.py --seconds 60 --seed 7

Inputs are small tables of random kinds and dialects, then mutated. For each of them: rows, or a ValueError of one
sentence that names the data; the same rows and the same error for other chunks and cuts; less than 2 s; less than
100 MB and 20 times the input; an archive that is damaged gives an error or the same rows. Everything runs in this
process, so that a core built with sanitizers is tested too. Exit code 1 if something was found.

The file is long because it is one script: it makes, mutates and checks the inputs of all formats.
"""

from __future__ import annotations

import argparse
import base64
import bz2
import faulthandler
import gzip
import json
import lzma
import math
import multiprocessing
import os
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from gossamer import _core
from gossamer.streams import _libsvm, _lines, open_stream

#: Seconds that no input may take, and what it may add to the memory: a fixed part and a factor of its size.
SLOW, FIXED, FACTOR = 2.0, 100e6, 20
MISSING = ["", "NA", "nan", "?"]
NUMBERS = ["0", "1", "-2.5", "3e4", "+.5", "7.", "1e-320", "1e999", "-0", "12345678901234567890", "0x10", "1_0", "--1",
           "1e", "."]  # fmt: skip
WORDS = ["u", "v", "Rome", "Oslo", 'the "x", y', "Łódź", "a\nb", "nan", "NaN", "inf", "-Infinity", "nan(1)", "true",
         "False", "2024-01-31", "2024-02-31", "2024-01-31T12:00:00Z", "1,5", "$1,234.50", "50%", "", "NA", "null", "?",
         " ", "x" * 50, "\u2028"]  # fmt: skip
TOKENS = [b",", b";", b"\t", b"|", b'"', b'""', b"\n", b"\r", b"\r\n", b" ", b"\x00", b"\xff", b"\xef\xbb\xbf", b"1",
          b"-", b"e", b".", b"nan", b"inf", b"true", b"{", b"}", b"[", b"]", b":", b"\\", b"\\u00e9", b"\\ud800",
          b"null", b"#", b"1:1", b"65536:1", b"0:0", b"99999999999:1", b"1e308", b"9" * 40, b"\x1f\x8b", b"BZh9",
          b"PK\x03\x04", b"PAR1", b"\xed\xa0\x80"]  # fmt: skip
PACKS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


# ------------------------------------------------------------------------------------------------------------- inputs


def field_of(rng: random.Random, kind: str) -> str:
    """A value of a column; now and then of another kind."""
    if rng.random() < 0.03:
        kind = rng.choice(["number", "text", "boolean", "date", "missing"])
    if kind == "number":
        return rng.choice(NUMBERS) if rng.random() < 0.1 else repr(round(rng.uniform(-100, 100), rng.randrange(4)))
    if kind == "boolean":
        return rng.choice(["true", "false", "True"])
    if kind == "date":
        return f"20{rng.randrange(10, 40)}-0{rng.randrange(1, 10)}-1{rng.randrange(10)}"
    return rng.choice(WORDS) if kind == "text" else rng.choice(MISSING)


def make_csv(rng: random.Random) -> tuple[bytes, dict]:
    """A table in some dialect, and the options that go with it."""
    columns = rng.randrange(1, 5)
    kinds = [rng.choice(["number", "number", "text", "boolean", "date"]) for _ in range(columns)]
    delimiter = rng.choice([",", ",", ";", "\t", "|", " ", ":", "_", "("])
    end = rng.choice(["\n", "\n", "\r\n", "\r", "\n\n"])
    decimal = "," if delimiter != "," and rng.random() < 0.2 else "."
    quote = rng.random() < 0.2

    def written(text: str) -> str:
        if quote or delimiter in text or '"' in text or "\n" in text:
            return '"' + text.replace('"', '""') + '"'
        return text.replace(".", decimal) if decimal != "." else text

    lines = [delimiter.join(f"c{i}" for i in range(columns))] if rng.random() < 0.8 else []
    lines += [delimiter.join(written(field_of(rng, kind)) for kind in kinds) for _ in range(rng.randrange(1, 12))]
    options: dict = {"format": "csv"}
    if rng.random() < 0.7 or delimiter in " :_(":
        options["delimiter"] = delimiter
    if decimal != ".":
        options["decimal"] = decimal
    if rng.random() < 0.3:
        options["header"] = rng.random() < 0.5
    if rng.random() < 0.5:
        options["target"] = rng.randrange(-columns, columns)
    if rng.random() < 0.2:
        options["kinds"] = {f"c{rng.randrange(columns)}": rng.choice(["number", "text", "boolean", "date"])}
    return (end.join(lines) + (end if rng.random() < 0.8 else "")).encode(), options


def make_json(rng: random.Random) -> tuple[bytes, dict]:
    """Objects, a line each."""
    names = [f"c{i}" for i in range(rng.randrange(1, 5))]
    kinds = {name: rng.choice(["number", "text", "boolean", "date"]) for name in names}

    def value(kind: str) -> object:
        if rng.random() < 0.05:
            return rng.choice([None, [], [1], {}, 1e400, float("nan"), 10**400, -1, "", "x", True, {"a": {"b": []}}])
        text = field_of(rng, kind)
        if kind == "number":
            return round(rng.uniform(-9, 9), 2)
        return text == "true" if kind == "boolean" else text

    def row() -> str:
        return json.dumps({name: value(kinds[name]) for name in names if rng.random() < 0.97})

    lines = [row() for _ in range(rng.randrange(1, 10))]
    options: dict = {"format": "jsonl"}
    if rng.random() < 0.5:
        options["target"] = rng.choice(names)
    return "\n".join(lines).encode(), options


def make_libsvm(rng: random.Random) -> tuple[bytes, dict]:
    """Labels and pairs."""
    lines = []
    for _ in range(rng.randrange(1, 10)):
        indices = sorted(rng.sample(range(0 if rng.random() < 0.05 else 1, 30), rng.randrange(5)))
        pairs = " ".join(f"{i}:{field_of(rng, 'number')}" for i in indices)
        lines.append(f"{rng.choice(['1', '-1', '0.5', '2'])} {pairs}" + (" # x" if rng.random() < 0.05 else ""))
    options: dict = {"format": "libsvm"}
    if rng.random() < 0.2:
        options["n_features"] = rng.randrange(1, 40)
    return "\n".join(lines).encode(), options


def more_options(rng: random.Random, options: dict) -> dict:
    """Options that all formats have."""
    options["missing"] = rng.choice(["error", "fill", "skip", "fill"])
    if rng.random() < 0.1:
        options["na_values"] = rng.sample(["u", "-2.5", 1, "Rome", 0.5, "NA"], 2)
    if rng.random() < 0.1:
        options["categories"] = rng.randrange(1, 4)
    if rng.random() < 0.05:
        options["max_features"] = rng.randrange(1, 20)
    if rng.random() < 0.1:
        options["encoding"] = rng.choice(["latin-1", "cp1252", "utf-16", "utf-8", "ascii", "utf-7", "shift_jis"])
    if rng.random() < 0.2:
        options["bad_rows"] = "skip"
    if rng.random() < 0.05:
        options["task"] = rng.choice(["classification", "regression", "novelty"])
    return options


def mutate(rng: random.Random, data: bytes) -> bytes:
    """One to four small changes of bytes and tokens."""
    out = bytearray(data)
    for _ in range(rng.choice([0, 1, 1, 1, 2, 4])):
        place = rng.randrange(len(out) + 1)
        turn = rng.random()
        if turn < 0.4:
            out[place:place] = rng.choice(TOKENS)
        elif turn < 0.6:
            del out[place : place + rng.randrange(1, 6)]
        elif turn < 0.8 and place < len(out):
            out[place] ^= 1 << rng.randrange(8)
        elif turn < 0.9:
            other = rng.randrange(len(out) + 1)
            out[place:place] = out[other : other + rng.randrange(1, 30)]
        elif turn < 0.97:
            del out[place:]
        else:
            out[place:place] = rng.choice(TOKENS) * rng.choice([100, 3000])
    return bytes(out)


MAKERS = [make_csv, make_csv, make_json, make_libsvm]


# --------------------------------------------------------------------------------------------------------------- laws


@dataclass
class Found:
    """How many inputs were tried, by what was done with them, and what was wrong."""

    counts: Counter = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    slowest: float = 0.0
    grown: float = 0.0

    @property
    def count(self) -> int:
        return sum(self.counts.values())


def outcome(data: bytes, size: int, options: dict) -> tuple[list, str | None, Any]:
    """Rows as bytes with their labels, the error, and how many rows were left out; all other exceptions are
    findings."""
    rows: list = []
    stream = None
    try:
        stream = open_stream(data, chunk_rows=size, **options)
        for chunk in stream:
            labels = [None] * len(chunk) if chunk.y is None else chunk.y.tolist()
            rows += zip(row_bytes(chunk.X), map(str, labels), chunk.rows.tolist(), strict=True)
        stream.describe()
    except ValueError as error:
        return rows, str(error), stream and stream.left_out
    return rows, None, stream.left_out


def row_bytes(X: Any) -> list[bytes]:
    """The rows as bytes; of sparse ones those of the features that are not 0, and their values."""
    if isinstance(X, np.ndarray):
        return [row.tobytes() for row in X]
    X.eliminate_zeros()
    parts = [slice(*ends) for ends in pairwise(X.indptr.tolist())]
    return [X.indices[part].astype(np.int64).tobytes() + X.data[part].tobytes() for part in parts]


def check_sentence(error: str | None) -> None:
    if error is not None:
        assert " must " in error, f"no rule in {error!r}"
        assert error.endswith((".", ")")) or "Got " in error, f"no sentence: {error!r}"
        assert "the data" in error or "open_stream" in error, f"no name in {error!r}"
        assert len(error) < 1500, "a very long error"


def check_stream(rng: random.Random, data: bytes, options: dict) -> None:
    """Rows or a sentence, and the same for another chunk size."""
    first = outcome(data, 8192, options)
    check_sentence(first[1])
    assert first[0] or first[1] or any(first[2]), "neither rows, nor an error, nor rows that were left out"
    size = rng.choice([1, 2, 3, 7])
    again = outcome(data, size, options)
    told = f"{again[1]!r} after {len(again[0])} rows, not {first[1]!r} after {len(first[0])}"
    assert again == first, f"chunks of {size}: {told}"


def check_parser(rng: random.Random, data: bytes, options: dict) -> None:
    """The compiled parser: two parts of the data, cut anywhere, are the rows of the whole."""
    delimiter, decimal = options.get("delimiter", ","), options.get("decimal", ".")
    slots = rng.choice([[0, _core.CSV_TEXT, 1], [0], [_core.CSV_TEXT, _core.CSV_TARGET], [_core.CSV_IGNORED, 1, 0, -3]])

    def parse(part: bytes, start: int, final: bool, rows: int = 1000) -> dict:
        return _core.parse_csv(part, start, final, delimiter, slots, 2, 1, MISSING, rows, decimal, [0.5])

    def plain(parsed: dict) -> list:
        codes, values = parsed["texts"][0]
        texts = [None if code < 0 else values[code] for code in codes]
        return list(zip(map(bytes, parsed["X"]), map(bytes, parsed["y"][:, None]), texts, strict=True))

    whole, cut = parse(data, 0, True), rng.randrange(len(data) + 1)
    first = parse(data[:cut], 0, False)
    rows, error = plain(first), first["error"]
    if not error:
        used = int(first["starts"][-1])
        second = parse(data, used, True)
        rows, error = rows + plain(second), second["error"]
        lines = int(first["lines"][-1]) + int(second["lines"][-1])
        assert lines == int(whole["lines"][-1]), f"lines differ at cut {cut}"
    assert (len(rows), error) == (len(whole["y"]), whole["error"]), f"cut {cut}: {error}, not {whole['error']}"
    assert rows == plain(whole), f"rows differ at cut {cut}"
    one = parse(data, 0, True, 1)
    assert plain(one) == plain(whole)[:1], "the first row differs"


def check_lines(rng: random.Random, data: bytes, options: dict) -> None:
    """The readers of single lines: what they promise, or a ValueError."""
    for text in data.split(b"\n"):
        try:
            if options["format"] == "jsonl":
                row = _lines._object(text, 1 << 16)
                assert row, "no columns"
                assert all(type(name) is str for name in row), "names that are no text"
            else:
                label, indices, values = _libsvm.parse_line(text, 1 << 16)
                assert len(indices) == len(values), "indices without values"
                assert sorted(set(indices)) == indices, "indices that do not ascend"
                assert not indices or 0 <= indices[0] <= indices[-1] <= 1 << 16, "an index beyond"
                assert not any(map(math.isinf, [label, *values])), "inf"
        except ValueError:
            pass


def check_archive(rng: random.Random, data: bytes, options: dict) -> None:
    """Packed, it gives the same; cut or flipped, an error or the same; with fixed checksums, rows or a sentence."""
    kind = rng.choice(list(PACKS))
    packed = PACKS[kind](data)
    whole = outcome(data, 8192, options)
    if data[:2] not in (b"\x1f\x8b", b"BZ", b"\xfd7"):  # an archive in an archive stays one
        assert strip(outcome(packed, 8192, options)) == strip(whole), f"{kind} changes it"
    damaged = bytearray(packed)
    if rng.random() < 0.5:
        damaged = damaged[: rng.randrange(len(packed))]
    else:
        damaged[rng.randrange(len(packed))] ^= 1 << rng.randrange(8)
    rows, error, _ = outcome(bytes(damaged), 8192, options)
    check_sentence(error)
    assert error is not None or rows == whole[0], f"damaged {kind} read in silence: {bytes(damaged)!r}"
    if kind == "gzip":
        fixed = fix_checksum(bytes(damaged))
        if fixed is not None:
            check_stream(rng, fixed, options)


def strip(found: tuple[list, str | None]) -> tuple[list, bool]:
    return found[0], found[1] is None


def fix_checksum(packed: bytes) -> bytes | None:
    """A gzip file whose damaged content has a valid checksum; None if it cannot be unpacked at all."""
    inflate = zlib.decompressobj(-15)
    try:
        content = inflate.decompress(packed[10:], 1 << 20)
    except zlib.error:
        return None
    if not inflate.eof:
        return None
    body = packed[10 : len(packed) - len(inflate.unused_data)]
    return gzip.compress(b"")[:10] + body + struct.pack("<II", zlib.crc32(content), len(content))


# ----------------------------------------------------------------------------------------------------------- campaign


def memory() -> float:
    """The most bytes that the process has had at any time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def campaign(seconds: float | None, count: int | None, seed: int, report=print) -> Found:
    """Try inputs until time or count are over; ten per table."""
    rng, found = random.Random(seed), Found()
    start = last = time.monotonic()
    for maker in MAKERS:  # what is imported and cached once is no input's
        for _ in range(20):
            data, options = maker(rng)
            outcome(data, 3, more_options(rng, options))
    base = memory()
    while (count is None or found.count < count) and (seconds is None or time.monotonic() - start < seconds):
        if len(found.problems) >= 20:
            break
        if not found.count % 10_000:
            faulthandler.dump_traceback_later(600, exit=True)  # an endless loop shows where it is
        known = len(found.problems)
        maker = rng.choice(MAKERS)
        table, options = maker(rng)
        options = more_options(rng, options)
        if "encoding" in options and rng.random() < 0.7:
            table = table.decode().encode(options["encoding"], "replace")
        for _ in range(10):
            data = mutate(rng, table)
            turn = rng.random()
            inner = ("parser", check_parser) if maker is make_csv else ("lines", check_lines)
            outer = ("archive", check_archive) if turn < 0.02 else ("stream", check_stream)
            name, law = outer if turn < 0.25 else inner
            begun = time.process_time()
            try:
                law(rng, data, options)
            except Exception as error:
                what = f"{type(error).__name__}: {error}"[:600]
                found.problems.append(f"{name}: {what}\n    data={show(data)}\n    options={options}")
            spent, grown = time.process_time() - begun, memory() - base
            found.counts[name] += 1
            found.slowest, found.grown = max(found.slowest, spent), max(found.grown, grown)
            if spent > SLOW:
                found.problems.append(f"{name}: {spent:.1f} s\n    data={show(data)}\n    options={options}")
            if grown > FIXED + FACTOR * len(data):
                found.problems.append(f"{name}: {grown / 1e6:.0f} MB\n    data={show(data)}\n    options={options}")
                base = memory()
        for problem in found.problems[known:]:
            report(problem)
        if time.monotonic() - last > 10:
            last = time.monotonic()
            speed = found.count / (last - start)
            report(f"{found.count:>12,} inputs, {speed:,.0f} per second, {len(found.problems)} problems")
    faulthandler.cancel_dump_traceback_later()
    return found


def show(data: bytes) -> str:
    packed = base64.b64encode(zlib.compress(data)).decode()
    return repr(data) if len(data) <= 400 else f"zlib.decompress(base64.b64decode({packed!r}))"


def _apart(arguments: tuple) -> Found:
    seconds, count, seed = arguments
    return campaign(seconds, count, seed, lambda line: print(f"seed {seed}: {line}", flush=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--count", type=int, help="how many inputs")
    parser.add_argument("--seconds", type=float, help="how long (default: 60, without --count)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    seconds = 60.0 if options.seconds is None and options.count is None else options.seconds
    share = None if options.count is None else -(-options.count // options.processes)
    start = time.monotonic()
    works = [(seconds, share, options.seed + i) for i in range(options.processes)]
    if options.processes == 1:
        parts = [_apart(works[0])]
    else:
        with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
            parts = pool.map(_apart, works, chunksize=1)
    counts = sum((part.counts for part in parts), Counter())
    problems = [problem for part in parts for problem in part.problems]
    for problem in problems:
        print(problem)
    spent = time.monotonic() - start
    kinds = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    slowest, grown = max(part.slowest for part in parts), max(part.grown for part in parts)
    print(f"readers: {counts.total():,} inputs ({kinds}) in {spent:.0f} s, {len(problems)} problems; "
          f"slowest {slowest:.2f} s, memory {grown / 1e6:.0f} MB")  # fmt: skip
    return 1 if problems else 0


# -------------------------------------------------------------------------------------------- one large input, apart


class Measuring:
    """A process with nothing but the readers, which makes a copy of itself for each input."""

    def __enter__(self) -> Measuring:
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--measure"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def measure(self, data: bytes, options: dict) -> tuple[float, float]:
        """Bytes that reading a file adds to the memory of a process, and the seconds of its processor."""
        with tempfile.NamedTemporaryFile(suffix=".data") as file:
            file.write(data)
            file.flush()
            self._process.stdin.write(json.dumps([file.name, options]) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        assert answer, "the process that measures has ended"
        return tuple(json.loads(answer))


def _serve() -> None:
    for text in (b"a,b\n1,2\n", b'{"a": 1}\n', b"1 1:1\n"):
        for pack in PACKS.values():
            outcome(pack(text), 10, {})
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _measure(*json.loads(line))
            os._exit(0)
        os.waitpid(child, 0)


def _measure(path: str, options: dict) -> None:
    base, begun = memory(), time.process_time()
    try:
        with open_stream(path, **options) as stream:
            for _ in stream:
                pass
    except ValueError as error:
        if len(str(error)) > 1500:
            raise
    print(json.dumps([memory() - base, time.process_time() - begun]), flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["--measure"]:
        _serve()
    else:
        sys.exit(main())
