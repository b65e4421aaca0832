"""Rows as they come: the encoder's speed, late labels, categories that come and go, ten messy files: ``bench-rows``."""

from __future__ import annotations

import argparse
import csv
import io
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness import RESULTS, Row, add, machine, progress, report, table
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder

sys.path.append(str(Path(__file__).parents[1] / "tests" / "rows"))
from messy import MESSY

from gossamer import RowEncoder, SILKRegressor
from gossamer.cli import main as shell
from gossamer.rows import Coded, Plan
from gossamer.rows.layout import Layout
from gossamer.streams import open_stream

PAGE = RESULTS.parents[1] / "docs" / "rows.md"
#: Rows between two trainings of the opponent.
EVERY = 2000


def spend(job: Callable[[], object], repeats: int) -> float:
    """The least time of a processor that a job takes."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return min(times)


def resident() -> float:
    """The memory that the process has now, in MB (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def make_frame(rows: int) -> pd.DataFrame:
    """8 numbers with some gaps, 4 categories, 1 timestamp."""
    rng = np.random.default_rng(0)
    numbers = {f"n{i}": np.where(rng.random(rows) < 0.02, np.nan, rng.normal(size=rows)) for i in range(8)}
    names = [np.array([f"name {j}" for j in range(5 * (i + 1))], dtype=object) for i in range(4)]
    categories = {f"c{i}": rng.choice(names[i], rows) for i in range(4)}
    times = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.exponential(10.0, rows).cumsum(), unit="s")
    return pd.DataFrame({**numbers, **categories, "t": times})


def measure_encoder(results: list[Row], quick: bool) -> str:
    rows = 50_000 if quick else 1_000_000
    frame = make_frame(rows)
    encoder = RowEncoder().fit(frame[:5000])
    seconds = spend(lambda: encoder.learn_transform(frame), 1 if quick else 3)
    chunks = spend(lambda: [encoder.learn_transform(frame[i : i + 8192]) for i in range(0, rows, 8192)], 1)
    work = f"`learn_transform`, {rows:,} rows of 8 numbers, 4 categories, 1 timestamp, from a frame, thousand rows/s"
    add(results, work, rows / seconds / 1e3, 500, 1000, faster=True, unit="")
    return f"In chunks of 8,192 rows: {rows / chunks:,.0f} rows/s; {encoder.n_features_out_} features."


def measure_labels(results: list[Row], quick: bool) -> str:
    rows = 20_000 if quick else 1_000_000
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 8))
    y, ids = np.sin(X[:, 0]) + X[:, 1], rng.permutation(rows)
    model = SILKRegressor("gaussian:gamma=0.1", budget=64).partial_fit(X[:100], y[:100])
    before = resident()
    start = time.process_time()
    for i in range(0, rows, 50_000):
        model.predict(X[i : i + 50_000], ids=np.arange(i, min(i + 50_000, rows)))
    shown = time.process_time() - start
    grown = resident() - before
    count = rows // 4
    start = time.process_time()
    for i in range(0, count, 10_000):
        part = ids[i : i + 10_000]
        model.learn_labels(part, y[part])
    seconds = time.process_time() - start
    work = f"late labels: {rows:,} rows of 8 numbers wait; join and learn, budget 64, thousand labels/s"
    add(results, work, count / seconds / 1e3, 100, 200, faster=True, unit="")
    wait = f"those that wait take {grown:,.0f} MB, {1e6 * grown / rows:,.0f} bytes each"
    return f"Late labels: rows are shown at {rows / shown:,.0f} rows/s; {wait}."


def measure_turnover(results: list[Row], quick: bool) -> str:
    """One category in ten drops out and a new one comes every 5,000 rows: the state, and the error, at the end."""
    rows, step = (20_000, 5000) if quick else (1_000_000, 5000)
    rng = np.random.default_rng(0)
    which = np.arange(rows)[:, None] // step + np.arange(10)
    which = which[np.arange(rows), rng.integers(0, 10, rows)]
    effect = rng.normal(0.0, 2.0, which.max() + 1)
    y = effect[which] + 0.3 * rng.normal(size=rows)
    names = np.array([f"article {i}" for i in range(which.max() + 1)], dtype=object)
    make = lambda: (RowEncoder(), SILKRegressor("gaussian:gamma=0.5", C=1.0, reg=1e-3, budget=64, fit_intercept=True))  # noqa: E731
    encoder, model = make()
    sizes, errors, memory = [], [], []
    for i in range(0, rows, step):
        part = slice(i, i + step)
        X = encoder.learn_transform(pd.DataFrame({"article": names[which[part]], "one": rng.normal(size=step)}))
        errors.append(float(np.abs(model.predict_learn(X, y[part]) - y[part]).mean()))
        sizes.append(len(encoder.to_bytes()))
        memory.append(resident())
    late = slice(rows - 4 * step, rows)
    other, fresh = make()
    X = other.learn_transform(pd.DataFrame({"article": names[which[late]], "one": rng.normal(size=4 * step)}))
    scores = np.abs(fresh.predict_learn(X, y[late]) - y[late])
    ratio = float(np.mean(errors[-3:]) / scores[step:].mean())
    add(
        results,
        f"a category in ten replaced every {step:,} of {rows:,} rows: error / after a fresh start",
        ratio,
        1.05,
        1.0,
    )
    half = len(sizes) // 2
    return (
        f"Turnover: the stored encoder takes {sizes[half]:,} bytes after half of the rows, {sizes[-1]:,} at the end, "
        f"the process {memory[half]:.1f} MB and {memory[-1]:.1f} MB."
    )


# --------------------------------------------------------------------------------------------------------- messy files


def opponent_frame(data: bytes, target: str) -> tuple[pd.DataFrame, np.ndarray, Plan]:
    """The columns as Gossamer reads them, parsed and with gaps as NaN, so that the opponent gets clean ones."""
    stream = open_stream(data, target=target, encode=False)
    layout, columns, y = Layout(stream.schema.plan, 0.0, np.inf), {}, []
    for chunk in stream:
        y.append(chunk.y)
        for column in layout.columns:
            values = layout._present(column, chunk.X[column.name])
            parts = columns.setdefault(column.name, [])
            if column.kind in ("category", "text") or (column.kind == "mixed" and isinstance(values, Coded)):
                texts = np.array([*values.values, None], dtype=object)[values.codes]
                parts.append(pd.DataFrame({column.name: texts}))
                if column.kind == "mixed":
                    parts[-1][f"{column.name}#"] = layout._numbers(column, values, "")
            elif column.kind == "timestamp":
                stamps = pd.to_datetime(pd.Series(layout._seconds(column, values)), unit="s")
                day = stamps.dt.hour + stamps.dt.minute / 60
                facts = {
                    "": layout._seconds(column, values),
                    "hour": day,
                    "dow": stamps.dt.day_of_week,
                    "doy": stamps.dt.day_of_year,
                }
                parts.append(pd.DataFrame({f"{column.name}{name}": part for name, part in facts.items()}))
            else:
                parts.append(pd.DataFrame({column.name: layout._numbers(column, values, "")}))
    frame = pd.concat([pd.concat(parts, ignore_index=True) for parts in columns.values()], axis=1)
    return frame, np.concatenate(y), stream.schema.plan


def make_opponent(frame: pd.DataFrame, plan: Plan, regression: bool) -> Any:
    """Histogram gradient boosting behind scikit-learn's ColumnTransformer."""
    texts = [column.name for column in plan if column.kind == "text"]
    names = [name for name in frame if not pd.api.types.is_numeric_dtype(frame[name]) and name not in texts]
    numbers = [name for name in frame if name not in [*texts, *names] and frame[name].notna().any()]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=250)
    steps = [("category", encoder, names), ("number", "passthrough", numbers)]
    for name in texts:
        hashed = make_pipeline(
            TfidfVectorizer(max_features=300), FunctionTransformer(lambda X: X.toarray(), accept_sparse=True)
        )
        steps.append((name, hashed, name))
    boosting = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
    return make_pipeline(
        ColumnTransformer(steps), boosting(categorical_features=list(range(len(names))), random_state=0)
    )


def boost(data: bytes, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Predictions of the opponent from row EVERY on, trained anew on all rows before each part; and the targets."""
    frame, y, plan = opponent_frame(data, target)
    made = []
    for start in range(EVERY, len(y), EVERY):
        model = make_opponent(frame[:start], plan, y.dtype.kind == "f").fit(frame[:start], y[:start])
        made.append(model.predict(frame[start : start + EVERY]))
    return np.concatenate(made), y[EVERY:]


def run_shell(data: bytes, target: str, *options: str) -> list[str]:
    """The predictions of ``gossamer run`` from row EVERY on."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "data.csv", Path(folder) / "out.csv"
        path.write_bytes(data)
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            code = shell(["run", str(path), "--target", target, "--out", str(out), "--quiet", *options])
        if code:
            raise SystemExit(f"gossamer run failed with code {code}")
        return [row["prediction"] for row in csv.DictReader(out.open())][EVERY:]


def error_of(made: Any, y: np.ndarray) -> float:
    if y.dtype.kind == "f":
        return float(np.abs(np.array([float(value) for value in made]) - y).mean())
    texts = [str(label).lower() if y.dtype.kind == "b" else str(label) for label in y.tolist()]
    return float(np.mean([str(a).lower() != b.lower() for a, b in zip(made, texts, strict=True)]))


def measure_messy(results: list[Row], quick: bool, only: list[str], seeds: list[int]) -> str:
    rows, names = 4000 if quick else 10_000, only or list(MESSY)
    errors = {name: list[tuple[float, float]]() for name in names}
    for seed in seeds:
        for name in names:
            data, target = MESSY[name](rows, seed)
            boosted, y = boost(data, target)
            errors[name].append((error_of(run_shell(data, target), y), error_of(boosted.tolist(), y)))
            progress(f"seed {seed}: {name} {errors[name][-1][0]:.4f} {errors[name][-1][1]:.4f}")
        wins = sum(own[-1][0] <= own[-1][1] for own in errors.values())
        work = f"`gossamer run` with no options on {len(names)} messy files of {rows:,} rows (seed {seed}): "
        add(results, work + "error not above boosting's", wins, 8, 10, faster=True, unit=f" of {len(names)}")
    head = ["file", *(f"{who}, seed {seed}" for seed in seeds for who in ("gossamer run", "boosting"))]
    lines = [[name, *(f"{error:.4f}" for pair in own for error in pair)] for name, own in errors.items()]
    made = [f"| {' | '.join(line)} |" for line in [head, ["---"] * len(head), *lines]]
    return "\n\n" + "\n".join(made) + "\n\n"


def measure_csv(results: list[Row], quick: bool) -> str:
    """A file of 8 numbers, 4 categories and 1 timestamp, one of as many numbers as these become features, one of 13."""
    ratios, counts = {}, {}
    for learner, rows in (("auto", 20_000), ("silk", 100_000)):
        rows = counts[learner] = 3000 if quick else rows
        frame = make_frame(rows)
        width = RowEncoder().fit(frame[:1000]).n_features_out_
        rng = np.random.default_rng(0)
        plain = pd.DataFrame(rng.normal(size=(rows, width)), columns=[f"x{i}" for i in range(width)])
        y = np.where(frame["n0"].fillna(0) + frame["n1"].fillna(0) * plain["x0"] > 0, "up", "down")
        texts = [data.assign(y=y).to_csv(index=False).encode() for data in (frame, plain, plain.iloc[:, :13])]
        options = ("--learner", learner) if learner != "auto" else ()
        spent = [spend(lambda t=text, o=options: run_shell(t, "y", *o), 1 if quick else 2) for text in texts]
        ratios[learner] = spent[0] / spent[1], spent[0] / spent[2]
    for learner, rows in counts.items():
        work = f"the same kinds of columns, {rows:,} rows, through `gossamer run` from CSV / a file of {width} numbers"
        add(results, f"{work}, {learner}", ratios[learner][0], 1.5, 1.0)
    less = ", ".join(f"{ratios[learner][1]:.2f} ({learner})" for learner in ratios)
    return f"From CSV, against a file of 13 numbers, as many as the columns but an eighth of the features: {less}."


JOBS = {"encoder": measure_encoder, "csv": measure_csv, "labels": measure_labels, "turnover": measure_turnover}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    parser.add_argument(
        "--only", nargs="*", default=[], help="some of encoder, csv, labels, turnover, messy, or names of files"
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2], help="of the messy files")
    options = parser.parse_args()
    results: list[Row] = []
    files = [name for name in options.only if name in MESSY and name not in JOBS]
    notes = [job(results, options.quick) for name, job in JOBS.items() if not options.only or name in options.only]
    if not options.only or "messy" in options.only or files:
        notes.append(measure_messy(results, options.quick, files, options.seeds))
    note = f"Time of a processor, best of 3 (from CSV: of 2). {' '.join(notes)}"
    note += (
        "Errors (mean absolute error, or share of wrong classes) are those from row 2,000 on; boosting is "
        "HistGradientBoosting behind a ColumnTransformer, on columns that Gossamer has parsed, trained on all rows "
        f"before every 2,000th. {machine()}."
    )
    if options.quick or options.only:
        print(table(results), note, sep="\n\n")
    else:
        report("rows", results, note, page=PAGE)


if __name__ == "__main__":
    main()
