"""Random kills of ``gossamer run``: then ``--resume`` goes on to the bytes of a run that was never stopped.

    python tests/long/kill_run.py --count 300

Each case is a file, or a pipe, with its options: plain and packed, many learners, late labels, gaps, bad rows. A run is
killed (SIGKILL) at a random moment and resumed, until it gets to its end; then output, model and metrics are compared,
nothing may be left behind, and it begins anew.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
import folders  # noqa: F401
from fork_server import Commands


def numbers(rows: int, classes: int = 2, seed: int = 0) -> tuple[Any, Any]:
    """Two features, one of them far from 0, and a class that depends on both; the last class comes late."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 2)) * [1.0, 50.0] + [0.0, 1000.0]
    codes = (X[:, 0] * (X[:, 1] - 1000) > 0).astype(int)
    codes[rows // 2 :: 3] = classes - 1
    return X, codes


def two_classes(folder: Path, rows: int = 1500) -> list[str]:
    X, y = numbers(rows)
    lines = [f"{a!r},{b!r},{c}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "data.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    return ["data.csv", "--target", "y", "--out", "out.csv", "--budget", "40"]


def late_class_in_gzip(folder: Path) -> list[str]:
    X, y = numbers(1200, classes=3)
    colours = ["red", "green,blue", "grey"]
    lines = [f"{a!r};{b!r};{colours[c]}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    (folder / "data.csv.gz").write_bytes(gzip.compress(("a;b;y\n" + "\n".join(lines) + "\n").encode()))
    return ["data.csv.gz", "--target", "y", "--out", "out.jsonl", "--budget", "40", "--window", "7"]


def regression_with_holes(folder: Path) -> list[str]:
    X, _ = numbers(1200)
    rows = [{"a": a, "b": b, "shop": "abc"[i % 3], "y": a * 3 + 100} for i, (a, b) in enumerate(X.tolist())]
    for row in rows[::7]:
        row["b"] = None
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["data.jsonl", "--target", "y", "--missing", "fill", "--out", "out.csv", "--learner", "norma"]


def novelty_from_a_pipe(folder: Path) -> list[str]:
    X, _ = numbers(1500)
    (folder / "data.csv").write_text("a,b\n" + "".join(f"{a!r},{b!r}\n" for a, b in X.tolist()))
    return ["-", "--out", "out.csv", "--alarms", "--nu", "0.1", "--kernel", "laplace"]


def late_labels(folder: Path) -> list[str]:
    return [*two_classes(folder), "--delay", "9", "--learner", "svmd", "--forget", "0.01"]


def bad_rows_and_late_labels(folder: Path) -> list[str]:
    """Rows that are left out, probabilities, ratios and areas, in an archive, with labels that come late."""
    X, y = numbers(1300, classes=3)
    lines = [f"{a!r},{b!r},{'xyz'[c]}" for (a, b), c in zip(X.tolist(), y.tolist(), strict=True)]
    for i in range(50, 1300, 97):
        lines[i] = ["1,2,3,4", "broken", "1e999,2,x", '"a"b,1,x', "5,,x"][i % 5]
    (folder / "data.csv.gz").write_bytes(gzip.compress(("a,b,y\n" + "\n".join(lines) + "\n").encode()))
    options = ["--loss", "logistic", "--metrics", "error,loss,precision,f1,auc,log_loss", "--on-error", "skip"]
    return ["data.csv.gz", "--target", "y", "--out", "out.csv", "--delay", "30", "--learner", "silk", *options]


def gaps_left_out(folder: Path) -> list[str]:
    X, y = numbers(1200)
    lines = [f"{'' if i % 11 == 3 else a},{b!r},{'' if i % 13 == 5 else c}"
             for i, ((a, b), c) in enumerate(zip(X.tolist(), y.tolist(), strict=True))]  # fmt: skip
    (folder / "data.csv").write_text("a,b,y\n" + "\n".join(lines) + "\n")
    return ["data.csv", "--target", "y", "--missing", "skip", "--out", "out.csv", "--learner", "pa"]


def labels_in_a_file(folder: Path) -> list[str]:
    """Rows of mixed columns in one file, their labels in another: late, early, repeated, unknown; some never come."""
    X, y = numbers(1800)
    order = random.Random(0)
    lines = [f"r{i},{a!r},{b!r},{'xyz'[i % 3]}" for i, (a, b) in enumerate(X.tolist())]
    (folder / "data.csv").write_text("id,a,b,shop\n" + "\n".join(lines) + "\n")
    came = sorted(range(0, len(y)), key=lambda i: i + order.uniform(-30.0, 200.0))[: len(y) - 100]
    told = [f"r{i},{y[i]}" for i in came]
    for at in range(0, len(told), 40):
        told[at] = [told[at // 2], f"nobody{at},1"][at // 40 % 2]
    (folder / "labels.csv").write_text("id,y\n" + "\n".join(told) + "\n")
    joined = ["--labels", "labels.csv", "--id", "id", "--target", "y", "--pending", "400"]
    return ["data.csv", *joined, "--out", "out.csv", "--learner", "silk", "--budget", "40"]


CASES: list[Callable[[Path], list[str]]] = [
    two_classes, late_class_in_gzip, regression_with_holes, novelty_from_a_pipe, late_labels,
    bad_rows_and_late_labels, gaps_left_out, labels_in_a_file,
]  # fmt: skip


class Count(NamedTuple):
    """Kills, those of them that came after the run had written a new checkpoint, and runs that came to their end."""

    kills: int
    torn: int
    ends: int


def kill_run(
    command: Commands, case: Callable[[Path], list[str]], folder: Path, kills: int, seed: int, torn_kills: int = 0
) -> Count:
    """Kill runs of a case so many times, and until ``torn_kills`` came after a new checkpoint. An AssertionError is a
    finding."""
    folder.mkdir(exist_ok=True)
    arguments = [str(folder / name) if (folder / name).exists() else name for name in case(folder)]
    pipe = {"stdin": str(folder / "data.csv")} if arguments[0] == "-" else {}
    name = next(argument for argument in arguments if argument.startswith("out."))

    def options(place: Path) -> list[object]:
        given = [place / a if a == name else a for a in arguments]
        traced = [] if "--labels" in arguments else ["--trace", place / "trace.csv"]
        results = ["--save", place / "model.gsm", *traced, "--checkpoint", place / "c.gsm"]
        return ["run", *given, *results, "--every", 60, "--quiet"]

    whole, torn = folder / "whole", folder / "torn"
    whole.mkdir()
    torn.mkdir()
    start = time.monotonic()
    assert command(*options(whole), **pipe) == 0
    seconds = time.monotonic() - start

    moments = random.Random(seed)
    killed = progress = ends = 0
    before, reach = None, 0.6
    while killed < kills or progress < torn_kills:
        assert killed < 20 * kills, "hardly any kill comes in the middle of the work"
        # at any moment of a whole run: before the first checkpoint, between two, while one is written, near the end
        ended = command.killed(moments.uniform(0.0, reach) * seconds, *options(torn), "--resume", **pipe)
        assert ended in (0, -9), ended
        if ended == -9:
            mark = torn / "c.gsm"
            now = mark.read_bytes() if mark.exists() else None
            # kills that come before anything was done are made later, runs that come to their end are killed earlier
            reach = min(2.0, 1.2 * reach) if now == before else reach
            killed, progress, before = killed + 1, progress + (now != before), now
            continue
        ends, before, reach = ends + 1, None, max(0.3, 0.8 * reach)
        compare(whole, torn, name)
        for file in torn.iterdir():
            file.unlink()
    for _ in range(2):  # the second has nothing left to do, and changes nothing
        assert command(*options(torn), "--resume", **pipe) == 0
        compare(whole, torn, name)
    return Count(killed, progress, ends + 1)


def compare(whole: Path, torn: Path, name: str) -> None:
    """Every byte of the output and the model, and every metric; only the seconds may differ. Nothing else is there."""
    assert (torn / name).read_bytes() == (whole / name).read_bytes()
    assert (torn / "model.gsm").read_bytes() == (whole / "model.gsm").read_bytes()
    files = {name, "model.gsm", "c.gsm"}
    if (whole / "trace.csv").exists():
        traces = [[line.rsplit(",", 1)[0] for line in (folder / "trace.csv").read_text().splitlines()]
                  for folder in (whole, torn)]  # fmt: skip
        assert traces[0] == traces[1]
        assert len(traces[0]) > 2
        files.add("trace.csv")
    assert {file.name for file in torn.iterdir()} == files


def main() -> int:
    """Kill for a count or a time; exit code 1 after a finding."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="kills in all")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so many seconds")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", choices=[case.__name__ for case in CASES], nargs="*", help="some of the cases")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.only or case.__name__ in options.only]
    start, total, found = time.monotonic(), Count(0, 0, 0), list[str]()
    command = Commands()
    with tempfile.TemporaryDirectory() as folder:
        turn = 0
        while total.kills < options.count and time.monotonic() - start < options.seconds:
            case = cases[turn % len(cases)]
            batch = min(-(-options.count // len(cases)), 20, options.count - total.kills)
            try:
                more = kill_run(command, case, Path(folder) / f"{turn}", batch, options.seed + turn)
            except AssertionError as error:
                found.append(f"{case.__name__}, seed {options.seed + turn}: {error}")
                more = Count(batch, 0, 0)
            total, turn = Count(*map(sum, zip(total, more, strict=True))), turn + 1
            print(f"{total.kills} kills, {total.ends} runs to their end, {len(found)} findings", flush=True)
    command.close()
    took = time.monotonic() - start
    print(f"kill_run: {total.kills} kills of gossamer run in {min(turn, len(cases))} cases, {total.torn} after a "
          f"new checkpoint, {total.ends} runs to their end, {took:.0f} s: {len(found)} findings")  # fmt: skip
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
