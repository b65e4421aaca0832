"""Models by key on Spark, two processors of this machine: ``python benchmarks/scale_spark.py``.

Every key has a model from history to begin with, so that the state is as large as it gets. Rows lie in Parquet files,
one for each micro-batch; the sink throws the results away, so that what is measured is reading, shuffling, learning and
keeping the state. The first batch loads the models and warms up the Java machine, and is not counted.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as parquet
from harness import Row, add, machine, progress, report, table

from gossamer import SILKClassifier, spark
from gossamer.kernels import Gaussian

FEATURES, BUDGET, BUCKETS = 20, 100, 32
MODEL = SILKClassifier(Gaussian(0.05), C=1.0, reg=1e-4, budget=BUDGET)
NAMES = [f"x{i}" for i in range(FEATURES)]
COLUMNS = {
    "key": "key", "features": NAMES, "target": "y", "order": "time", "model": MODEL, "classes": [-1, 1],
    "buckets": BUCKETS,
}  # fmt: skip


def write(folder: Path, keys: int, rows: int, batches: int, zipf: float | None = None, start: int = 0) -> None:
    """Files of so many rows with keys drawn alike, or by Zipf's law."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng([keys, start])
    weights = np.ones(keys) if zipf is None else np.arange(1, keys + 1) ** -zipf
    centres = np.random.default_rng(0).normal(size=(64, FEATURES))
    for batch in range(batches):
        names = rng.choice(keys, rows, p=weights / weights.sum())
        which = rng.integers(0, 64, rows)
        X = centres[which] + rng.normal(size=(rows, FEATURES))
        columns: dict[str, Any] = {"key": names, "time": np.arange(rows) + batch * rows + start}
        columns["y"] = np.where(which % 2, 1, -1)
        columns |= {name: X[:, i] for i, name in enumerate(NAMES)}
        parquet.write_table(pa.table(columns), folder / f"{batch}.parquet")


def live(session: Any, folder: Path, models: Path) -> tuple[float, float]:
    """Rows per second and seconds per micro-batch of a query over the files, without the first."""
    source = session.read.parquet(str(folder))
    stream = session.readStream.schema(source.schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    learned = spark.learn_stream(stream, **COLUMNS, initial=session.read.parquet(str(models)))
    query = learned.writeStream.format("noop").trigger(availableNow=True)
    with tempfile.TemporaryDirectory() as checkpoint:
        running = query.option("checkpointLocation", checkpoint).start()
        running.awaitTermination()
        batches = [batch for batch in running.recentProgress if batch["numInputRows"]][1:]
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in batches) / 1000
    return sum(batch["numInputRows"] for batch in batches) / seconds, seconds / len(batches)


def history(session: Any, folder: Path, models: Path) -> tuple[float, float]:
    """Rows per second of a back-fill, best of two, and the bytes of a model."""
    df = session.read.parquet(str(folder))
    count, best = df.count(), np.inf
    for _ in range(2):
        start = time.perf_counter()
        spark.learn_history(df, **COLUMNS).write.mode("overwrite").parquet(str(models))
        best = min(best, time.perf_counter() - start)
    found = session.read.parquet(str(models)).selectExpr("avg(octet_length(model)) as size").collect()
    return count / best, found[0]["size"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data, to try the script")
    quick = parser.parse_args().quick
    rows, batches = (10_000, 2) if quick else (100_000, 5)
    many, few = (1000, 50) if quick else (10_000, 200)
    session = spark.session(
        "local[2]", spark_ui_enabled="false", spark_sql_shuffle_partitions=2, spark_driver_memory="3g",
        spark_ui_showConsoleProgress="false", spark_log_level="ERROR",
    )  # fmt: skip
    results: list[Row] = []
    rates: dict[str, float] = {}
    sizes, lives, seconds = rates.copy(), rates.copy(), rates.copy()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name, keys in (("few", few), ("many", many)):
            progress(f"{keys:,} keys, history")
            write(folder / name / "past", keys, many * 120 // 10, 10)
            write(folder / name / "live", keys, rows, batches, start=many * 120)
            rates[name], sizes[name] = history(session, folder / name / "past", folder / name / "models")
            progress(f"{keys:,} keys, live")
            lives[name], seconds[name] = live(session, folder / name / "live", folder / name / "models")
        progress("keys by Zipf's law, live")
        write(folder / "zipf", many, rows, batches, zipf=1.1, start=many * 120)
        rate_zipf, _ = live(session, folder / "zipf", folder / "many" / "models")
    what = f"{rows:,} rows in each micro-batch, {FEATURES} features, budget {BUDGET}"

    def rows_per_second(work: str, value: float, must: float, aim: float) -> None:
        add(results, work, value / 1000, must, aim, faster=True, unit="k rows/s")

    rows_per_second(f"{few:,} keys, {what}", lives["few"], 15, 27)
    rows_per_second(f"{many:,} keys, the same", lives["many"], 10, 13.6)
    touched = 1000 * (seconds["many"] - seconds["few"]) / (many - few)
    add(results, "each key touched in a micro-batch, two processors at work", touched, 1.0, 0.5, unit=" ms")
    work = f"{many:,} keys by Zipf's law (1.1): time / that of equally frequent keys"
    add(results, work, lives["many"] / rate_zipf, 2.0, 1.0)
    rows_per_second(f"history, {few:,} keys", rates["few"], 61, 77)
    rows_per_second(f"history, {many:,} keys", rates["many"], 61, 77)
    note = (
        f"Spark {session.version}, local[2], {BUCKETS} buckets, RocksDB, {batches - 1} micro-batches of "
        f"{seconds['few']:.1f} s ({few:,} keys) and {seconds['many']:.1f} s ({many:,}) after one to warm up, "
        f"{sizes['many']:,.0f} bytes in a model. A key touched is {2 * touched:.2f} ms of one processor, learning its "
        f"rows and all of Spark included. {machine()}."
    )
    session.stop()
    page = Path(__file__).parent.parent / "docs" / "capacity.md"
    if quick:
        print(table(results), note, sep="\n\n")
    else:
        report("scale_spark", results, note, page)


if __name__ == "__main__":
    main()
