"""The tables of docs/cli.md and the one of the README, as the command prints them: ``python benchmarks/cli_page.py``.

``--C 0.25,0.5,1,2`` prints, instead, what each C makes of every set: how the default was chosen.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import tempfile
from pathlib import Path

import datasets
import numpy as np
from datasets import Dataset
from harness import DOCS, README, progress, publish

from gossamer import cli

#: Each set as its page has it: what is said about it, and whether its rows come in a random order.
SETS = {
    "Electricity": (datasets.elec2, "two classes, drift", False),
    "SEA": (datasets.sea, "two classes, drift, 10 % noise", False),
    "ijcnn1": (datasets.ijcnn1, "two classes", False),
    "a9a": (datasets.a9a, "two classes", False),
    "spambase, shuffled": (datasets.spambase, "two classes", True),
    "svmguide3, shuffled": (datasets.svmguide3, "two classes", True),
    "german": (datasets.german, "two classes", False),
    "USPS": (datasets.usps, "ten classes", False),
    "abalone": (datasets.abalone, "regression", False),
    "Mackey-Glass, shuffled": (datasets.mackey_glass, "regression", True),
}
ELEC = "gossamer run elec.csv.gz --target class"
COMPARE = "gossamer compare elec.csv.gz --target class --learners silk,norma,pa,silk:C=1:budget=1000"


def write_csv(path: Path, data: Dataset) -> None:
    """All features and the target ``y``, every digit of them."""
    X = np.asarray(data.X.todense()) if hasattr(data.X, "todense") else np.asarray(data.X)
    whole = data.task != "regression"
    with open(path, "w") as file:
        file.write(",".join([*(f"x{i}" for i in range(X.shape[1])), "y"]) + "\n")
        for row, target in zip(X.tolist(), np.asarray(data.y).tolist(), strict=True):
            file.write(",".join(map(repr, [*row, int(target) if whole else target])) + "\n")


def command(*arguments: object) -> str:
    """What the command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        code = cli.main([str(argument) for argument in arguments])
    if code:
        raise SystemExit(f"{arguments}: exit code {code}")
    return out.getvalue()


def score(path: Path, *options: object) -> float:
    """The error, or the mean absolute error, at the end of a run."""
    return float(command("run", path, "--target", "y", *options).splitlines()[-1].split()[1])


def constant(data: Dataset) -> float:
    """What saying the largest class, or the median, comes to."""
    y = np.asarray(data.y, dtype=np.float64)
    if data.task == "regression":
        return float(np.abs(y - np.median(y)).mean())
    return 1.0 - float(np.unique(y, return_counts=True)[1].max()) / len(y)


def make_table(folder: Path) -> str:
    """`gossamer run` on each set, with nothing said but the target."""
    lines = ["| data | rows x features | task | `gossamer run FILE --target ...` | the largest class, the median |",
             "|---|---|---|---|---|"]  # fmt: skip
    for name, (load, words, shuffle) in SETS.items():
        progress(name)
        data = load().shuffled(0) if shuffle else load()
        write_csv(folder / "data.csv", data)
        found, shape = score(folder / "data.csv"), f"{data.X.shape[0]:,} x {data.X.shape[1]}"
        shown = f"absolute error {found:.3g}" if data.task == "regression" else f"error {found:.3f}"
        lines.append(f"| {name} | {shape} | {words} | {shown} | {constant(data):.3g} |")
    return "\n".join(lines)


def compare_settings(folder: Path, values: list[str]) -> None:
    """A line per set, a column per C."""
    print(f"{'set':<26}" + "".join(f"{'C=' + value:>10}" for value in values))
    for name, (load, _, shuffle) in SETS.items():
        write_csv(folder / "data.csv", load().shuffled(0) if shuffle else load())
        found = [score(folder / "data.csv", "--C", value) for value in values]
        print(f"{name:<26}" + "".join(f"{value:>10.4f}" for value in found), flush=True)


def shell(line: str) -> str:
    """A command and what it prints, as a block of Markdown; times differ, so that a column of them is not shown."""
    words = [str(datasets.folder()) + "/elec2/elec.csv.gz" if word == "elec.csv.gz" else word for word in line.split()]
    printed = re.sub(r" +(seconds|[\d.]+)$", "", command(*words[1:]), flags=re.M) if "compare" in line else None
    return f"```\n$ {line}\n{printed or command(*words[1:])}```"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--C", help="compare these instead")
    parser.add_argument("--quick", action="store_true", help="two sets, and no page is written")
    options = parser.parse_args()
    values = options.C
    if datasets.folder() is None:
        print("The tables of docs/cli.md stay as they are: GOSSAMER_DATA does not name the folder with the data sets.")
        return
    if options.quick:
        for name in set(SETS) - {"german", "abalone"}:
            del SETS[name]
    with tempfile.TemporaryDirectory() as name:
        if values:
            compare_settings(Path(name), values.split(","))
            return
        if options.quick:
            print(make_table(Path(name)))
            return
        progress("Electricity: run, compare")
        for table, page in (("cli_readme", README), ("cli_elec", DOCS / "cli.md")):
            publish(table, shell(ELEC), page)
        publish("cli_compare", shell(COMPARE), DOCS / "cli.md")
        publish("cli_sets", make_table(Path(name)), DOCS / "cli.md")


if __name__ == "__main__":
    main()
