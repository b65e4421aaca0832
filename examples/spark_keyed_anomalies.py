"""One detector for each of 92 series, on Spark and in a `ModelBank`: the same alarms, bit for bit.

The series are those of NAB (58 of one value) and SKAB (34 of 8 sensors on a pump), each a key of a stream. A detector
sees a row once, says whether it is an alarm, and learns it; no label is used. Both ways end with one picture.

    GOSSAMER_DATA=... python examples/spark_keyed_anomalies.py             # needs gossamer[spark,plot] and Java 17
    GOSSAMER_DATA=... python examples/spark_keyed_anomalies.py --bank      # the bank only, without Spark
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas

from gossamer import OnlineScaler, SILKDetector, pipeline
from gossamer.bank import ModelBank
from gossamer.kernels import Gaussian

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import datasets

#: Series in the picture: those where the alarms are easy to judge by eye.
SHOWN = [
    "NAB realKnownCause/ambient_temperature_system_failure", "NAB realKnownCause/machine_temperature_system_failure",
    "NAB artificialWithAnomaly/art_daily_jumpsup", "NAB realKnownCause/ec2_request_latency_system_failure",
    "SKAB valve1/0", "SKAB other/12",
]  # fmt: skip
#: An alarm is a score f(x) - 1 below this: half of what a row that is nothing new has.
THRESHOLD = -0.5
#: Rows at the beginning of a series whose alarms are not counted: a detector that has seen nothing knows nothing.
WARM_UP = 0.15


def detector(features: int) -> Any:
    """f(x) is near 1 where rows have been, and near 0 where none was; the scaler forgets in about 2,000 rows."""
    model = SILKDetector(Gaussian(0.5 / features), C=1.0, reg=1e-4, margin=1.0, budget=128)
    return pipeline(OnlineScaler(forget=5e-4), model)


def series(quick: bool) -> dict[str, pandas.DataFrame]:
    """All rows of NAB and of SKAB: key, time, what is anomalous, features. A value of NAB comes with its last step."""
    tables = {}
    for name, found in (("nab", datasets.nab()), ("skab", datasets.skab())):
        parts = []
        for data in list(found)[:: 6 if quick else 1]:
            X = data.X if name == "skab" else np.column_stack([data.X, np.diff(data.X, axis=0, prepend=data.X[:1])])
            columns = {f"x{i}": X[:, i] for i in range(X.shape[1])}
            facts = {"key": data.name, "time": np.arange(len(X)), "anomalous": data.y}
            parts.append(pandas.DataFrame({**facts, **columns}))
        tables[name] = pandas.concat(parts, ignore_index=True)
    return tables


def in_bank(table: pandas.DataFrame) -> np.ndarray:
    """The scores of all rows by a bank."""
    names = [name for name in table if name.startswith("x")]
    bank = ModelBank(detector(len(names)))
    start = time.perf_counter()
    scores = bank.learn(table["key"].tolist(), table[names].to_numpy(), order=table["time"].to_numpy())
    seconds = time.perf_counter() - start
    print(f"  bank: {len(bank)} detectors, {len(table):,} rows, {len(table) / seconds:,.0f} rows per second")
    return scores


def on_spark(session: Any, table: pandas.DataFrame) -> np.ndarray:
    """The same by a query that reads the rows as a stream of four files."""
    from gossamer import spark

    names = [name for name in table if name.startswith("x")]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "in").mkdir()
        quarter = table["time"] * 4 // (table["time"].max() + 1)
        for part in range(4):
            table[quarter == part].to_parquet(folder / "in" / f"{part}.parquet", index=False)
        source = session.read.parquet(str(folder / "in"))
        stream = session.readStream.schema(source.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        learned = spark.learn_stream(
            stream, key="key", features=names, order="time", model=detector(len(names)), buckets=8
        )
        start = time.perf_counter()
        query = learned.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        query.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
        seconds = time.perf_counter() - start
        results = session.read.parquet(str(folder / "out")).toPandas()
    print(f"  Spark: {len(results):,} rows, {len(results) / seconds:,.0f} rows per second, start of the query included")
    together = table[["key", "time"]].merge(results, on=["key", "time"], how="left", validate="one_to_one")
    return together["score"].to_numpy()


def told(table: pandas.DataFrame, alarms: np.ndarray) -> None:
    """How many of the marked stretches have an alarm, what chance would give, and where alarms are more frequent."""
    warm = (table["time"] >= WARM_UP * table.groupby("key")["time"].transform("max")).to_numpy()
    marked = table["anomalous"] > 0
    stretches = (marked & ~marked.groupby(table["key"]).shift(fill_value=False)).cumsum()
    inside = marked.to_numpy() & warm
    by_stretch = pandas.Series(alarms[inside]).groupby(stretches[inside].to_numpy())
    chance = (1 - (1 - alarms[warm].mean()) ** by_stretch.size()).mean()
    found, elsewhere = by_stretch.any(), alarms[~inside & warm].mean()
    print(f"  {found.sum()} of {len(found)} marked stretches have an alarm (by chance {chance * len(found):.0f})")
    times = alarms[inside].mean() / elsewhere
    print(f"  {elsewhere:.2%} of the other rows are alarms, and {times:.1f} times as many of these")


def draw(tables: dict[str, pandas.DataFrame], alarms: dict[str, np.ndarray], path: Path) -> None:
    """Six series, the stretches that are marked, and the alarms."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    everything = pandas.concat([table.assign(alarm=alarms[name]) for name, table in tables.items()])
    shown = [name for name in SHOWN if (everything["key"] == name).any()]
    shown = shown or everything["key"].unique()[:6].tolist()
    picture, axes = plt.subplots(-(-len(shown) // 2), 2, figsize=(13, 2.4 * -(-len(shown) // 2)), squeeze=False)
    for axis, name in zip(axes.ravel(), shown, strict=False):
        rows = everything[everything["key"] == name]
        sensors = [column for column in rows if column.startswith("x") and rows[column].notna().all()]
        lines = sensors[:1] if name.startswith("NAB") else sensors
        for column in lines:
            values = rows[column] if len(lines) == 1 else (rows[column] - rows[column].mean()) / rows[column].std()
            axis.plot(rows["time"], values, color="#555555", lw=0.6, alpha=0.9 if len(lines) == 1 else 0.35)
        axis.fill_between(
            rows["time"], 0, 1, where=rows["anomalous"] > 0, transform=axis.get_xaxis_transform(), color="#E69F00",
            alpha=0.35, lw=0, label="marked as anomalous",
        )  # fmt: skip
        times = rows["time"][rows["alarm"]]
        axis.plot(times, np.full(len(times), 0.04), "|", color="#D55E00", ms=9, mew=1.4,
                  transform=axis.get_xaxis_transform(), label="alarm")  # fmt: skip
        axis.axvspan(0, WARM_UP * rows["time"].max(), color="#EEEEEE", lw=0, zorder=0, label="not counted")
        axis.set_title(name.split(" ", 1)[0] + ": " + name.split(" ", 1)[1].replace("_", " "), fontsize=9)
        axis.margins(x=0)
        axis.tick_params(labelsize=7)
    for axis in axes.ravel()[len(shown) :]:
        axis.axis("off")
    axes[0, 0].legend(fontsize=7, loc="upper left", framealpha=0.9)
    for axis in axes[-1]:
        axis.set_xlabel("row", fontsize=8)
    picture.suptitle("One detector for each series: rows are judged, then learned; no label is used", fontsize=11)
    picture.tight_layout()
    picture.savefig(path, dpi=110)
    print(f"picture: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bank", action="store_true", help="without Spark")
    parser.add_argument("--quick", action="store_true", help="every sixth series, to try the script")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("spark_keyed_anomalies.png"))
    options = parser.parse_args()
    if datasets.folder() is None:
        sys.exit("GOSSAMER_DATA must name a folder with nab and skab")
    session = None
    if not options.bank:
        from gossamer import spark

        session = spark.session(
            "local[2]", spark_sql_shuffle_partitions=2, spark_ui_enabled="false", spark_log_level="ERROR",
            spark_ui_showConsoleProgress="false",
        )  # fmt: skip
    tables = series(options.quick)
    alarms = {}
    for name, table in tables.items():
        print(name.upper())
        scores = in_bank(table)
        if session is not None:
            again = on_spark(session, table)
            assert np.array_equal(again, scores), "Spark and the bank differ"
            print("  the same scores, bit for bit")
        alarms[name] = scores < THRESHOLD
        told(table, alarms[name])
    if session is not None:
        session.stop()
    draw(tables, alarms, options.out)


if __name__ == "__main__":
    main()
