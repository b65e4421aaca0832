"""Models by key on Spark: history first, then live, every row once, and models that survive crashes.

The rows of a stream are grouped by ``pmod(hash(key), buckets)``. A bucket keeps the models of its keys in Spark's state
store; a micro-batch loads those it touches into a `gossamer.bank.ModelBank`, learns, and writes them back. State and
offsets are committed together by Spark, so that a killed query goes on to the same bits. docs/spark.md has the whole
story, docs/capacity.md what it costs.

Needs ``pip install 'gossamer[spark]'`` and Java 17 or later.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.bank import ModelBank
from gossamer.spark import _rows, _worker
from gossamer.spark._plan import Plan, plan

__all__ = ["learn_history", "learn_stream", "migrate", "models", "score", "session", "unpack"]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
#: Settings that make the state store fast: a commit writes only the changes, and no model is read to be counted.
QUICK = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
}


def session(master: str = "local[*]", **settings: Any) -> Any:
    """A SparkSession with the state store that `learn_stream` needs; on this machine only, unless ``master`` says more.

    ``settings`` are Spark's, with "_" for ".": ``session(spark_sql_shuffle_partitions=8)``. A session that exists
    already is returned as it is, with these settings as far as they can still change.
    """
    pyspark_sql = _pyspark()
    _check_java()
    chosen = {PROVIDER: ROCKSDB, **QUICK}
    if master.startswith("local"):
        chosen |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
        chosen["spark.sql.shuffle.partitions"] = "8"  # each is a state store; Spark's 200 are for clusters
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark would take the first python3 on the PATH
    chosen |= {name.replace("_", "."): str(value) for name, value in settings.items()}
    builder = pyspark_sql.SparkSession.builder.master(master).appName("gossamer")
    for name, value in chosen.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def learn_history(
    df: Any, *, key: str, features: Sequence[str], target: str | None = None, order: str, model: Any,
    buckets: int, classes: Any = None, shards: int | None = None,
) -> Any:  # fmt: skip
    """Learn a model for every key from all its rows, by their order.

    Parameters
    ----------
    df : a DataFrame that is no stream, of any size: no key needs to fit into memory.
    key, order : columns by name. The rows of a key are learned by their ``order`` (a number, a date or a timestamp).
    features, target : columns by name; no target for a detector. All features float: models keep float32 points.
    model : any estimator of Gossamer, or a pipeline; a clone for each key.
    buckets : the number of partitions.
    classes : all labels, for a classifier.
    shards : the number of models per key, learned in parallel on parts of its rows and merged by `gossamer.merge`: for
        keys that are too big for one processor. docs/capacity.md says what it costs in accuracy.

    Returns
    -------
    A DataFrame (key, model, last, errors): the model in bytes (`unpack`), the order of the last row learned, and an
    array of (order, error) for the rows that could not be learned. Each action computes it anew: write it to a table.
    """
    found = plan(
        "learn_history", df, key=key, features=features, target=target, order=order, model=model, classes=classes,
        buckets=buckets,
    )  # fmt: skip
    _check_stream(df, "learn_history", False)
    rows, task = found.rows(df), found.task
    if shards is None:
        by_key = rows.repartition(buckets, "key").sortWithinPartitions("key", "order")  # Spark's sort, which spills
        return by_key.mapInArrow(lambda batches: _worker.history(task, batches), found.model_schema)
    from pyspark.sql import functions as sql

    count = _checks.whole("learn_history", "shards", shards, 1)
    rows = rows.withColumn("shard", sql.expr(f"cast(pmod(hash(`key`, `order`), {count}) as int)"))
    schema = found.model_schema + ", shard int"
    parts = (
        rows.repartition(buckets, "key", "shard")
        .sortWithinPartitions("key", "shard", "order")
        .mapInArrow(lambda batches: _worker.shards(task, batches), schema)
    )
    gathered = parts.repartition(buckets, "key").sortWithinPartitions("key", "shard")
    return gathered.mapInArrow(lambda batches: _worker.merged(task, batches), found.model_schema)


def learn_stream(
    df: Any, *, key: str, features: Sequence[str], target: str | None = None, order: str, model: Any,
    buckets: int, classes: Any = None, initial: Any = None, late: str = "learn",
) -> Any:  # fmt: skip
    """Predict and then learn every row of a stream with the model of its key, exactly once.

    Parameters
    ----------
    df : a streaming DataFrame.
    key, features, target, order, model, classes : as in `learn_history`.
    buckets : groups of keys, the unit of parallel work: a few times the number of processors. Fixed for the life of a
        checkpoint; `migrate` changes it.
    initial : models to begin with, from `learn_history` or `models`; read when the query runs for the first time.
    late : what happens to a row whose order is not after that of the last row that its key has learned in an earlier
        batch: "learn" (as it comes), "skip" (nothing) or "error" (an error). Within a batch rows are sorted.

    Returns
    -------
    A streaming DataFrame (key, order, prediction, score, error), for ``writeStream`` with a checkpoint of its own, in
    the output mode "append". The prediction was made before the row was learned: a label, a number, or whether it is an
    alarm. The score is that of ``predict_learn``; with more than two classes, that of the predicted one. A row that
    cannot be learned (NaN, a wrong type, an unknown label) has an ``error`` and nothing else, and changes nothing.
    """
    from pyspark.sql import functions as sql

    found = plan(
        "learn_stream", df, key=key, features=features, target=target, order=order, model=model, classes=classes,
        buckets=buckets, late=late,
    )  # fmt: skip
    _check_stream(df, "learn_stream", True)
    provider = df.sparkSession.conf.get(PROVIDER)
    if provider != ROCKSDB:
        rule = f"of a session with {PROVIDER} = {ROCKSDB} (gossamer.spark.session)"
        raise _checks.wrong("learn_stream", "df", rule, provider)
    bucket = sql.expr(f"cast(pmod(hash(`key`), {buckets}) as int)").alias("bucket")
    start = None
    if initial is not None:
        start = _as_models(found, "learn_stream", "initial", initial).select(bucket, "key", "model", "last")
        start = start.groupBy("bucket")
    processor = _worker.Processor(found.task, found.key_type, found.order_type)
    learned = (
        found.rows(df)
        .select(bucket, "*")
        .mapInArrow(_rows.packed, "bucket int, rows binary")
        .groupBy("bucket")
        .transformWithStateInPandas(processor, found.result_schema, "append", "none", start)
    )
    return found.results(learned)


def models(spark: Any, checkpoint: str | os.PathLike[str]) -> Any:
    """The models that a query has written to its checkpoint by now: a DataFrame (key, model, last).

    ``last`` is the order of the last row learned, a date in days and a timestamp in microseconds.
    """
    from pyspark.sql import functions as sql

    state = spark.read.format("statestore").option("stateVarName", "models").load(os.fspath(checkpoint))
    return state.select(
        sql.col("user_map_key.key").alias("key"), sql.col("user_map_value.model").alias("model"),
        sql.col("user_map_value.last").alias("last"),
    )  # fmt: skip


def migrate(df: Any, checkpoint: str | os.PathLike[str], *, buckets: int, late: str = "skip", **parameters: Any) -> Any:
    """`learn_stream` that goes on from the models of a stopped query, with another number of ``buckets``.

    The number is fixed for the life of a checkpoint, so this is a new query with a new checkpoint, whose initial state
    are the models of the old one. A new query reads its source from the beginning, or from where its options say: rows
    that the old one has learned are recognised by their order and skipped (``late="skip"``).
    """
    return learn_stream(df, buckets=buckets, late=late, initial=models(df.sparkSession, checkpoint), **parameters)


def score(
    df: Any, models: Any, *, key: str, features: Sequence[str], order: str, model: Any, buckets: int,
    classes: Any = None,
) -> Any:  # fmt: skip
    """The predictions of models for the rows of a DataFrame that is no stream (of a stream, in ``foreachBatch``).

    ``models`` is what `learn_history` or `models` returned, the other parameters are those they were learned with.
    Returns (key, order, prediction, score, error); a key without a model is an error.
    """
    from pyspark.sql import functions as sql

    found = plan(
        "score", df, key=key, features=features, target=None, order=order, model=model, classes=classes,
        buckets=buckets, learns=False,
    )  # fmt: skip
    _check_stream(df, "score", False)
    rows = found.rows(df)
    known = _as_models(found, "score", "models", models).select("key", "model")
    both = rows.withColumn("is_row", sql.lit(True)).unionByName(
        known.withColumn("is_row", sql.lit(False)), allowMissingColumns=True
    )
    task = found.task
    gathered = both.repartition(buckets, "key").sortWithinPartitions("key", "is_row")
    return found.results(gathered.mapInArrow(lambda batches: _worker.scored(task, batches), found.result_schema))


def unpack(data: bytes, model: Any, classes: Any = None) -> Any:
    """The estimator in the bytes of a model; ``model`` and ``classes`` are those it was learned with.

    It goes on learning by itself, and its ``save`` writes a file for `gossamer.load`.
    """
    labels = None if classes is None else np.unique(np.asarray(classes)).tolist()
    bank = ModelBank(model, threads=1, classes=labels)
    bank.put(0, bytes(data))
    return bank.model(0)


# ----------------------------------------------------------------------------------------------------------- checks


def _pyspark() -> Any:
    """The module pyspark.sql, or an error that names the extra."""
    _checks.extra("google.protobuf", "Spark", "spark")
    _checks.extra("pandas", "Spark", "spark")
    _checks.extra("pyarrow", "Spark", "spark")
    return _checks.extra("pyspark.sql", "Spark", "spark")


def _check_java(least: int = 17) -> None:
    """Spark 4 runs on Java 17 or later, which pip does not install."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    advice = f"Spark needs Java {least} or later: install a JDK {least} and let JAVA_HOME name its folder."
    if java is None or not os.path.exists(java):
        raise RuntimeError(f"{advice} There is {'no java on the PATH' if home is None else f'none in {home}'}.")
    told = subprocess.run([java, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', told)
    if version is None or int(version[1]) < least:
        raise RuntimeError(f"{advice} {java} is {told.splitlines()[0] if told else 'of no known version'}.")


def _check_stream(df: Any, owner: str, wanted: bool) -> None:
    if df.isStreaming != wanted:
        raise _checks.wrong(owner, "df", f"a DataFrame that is {'' if wanted else 'not '}a stream", df)


def _as_models(found: Plan, owner: str, parameter: str, df: Any) -> Any:
    """Models with a key and a last order of the plan's types."""
    from pyspark.sql import functions as sql

    types = dict(df.dtypes)
    if types.get("model") != "binary" or types.get("key") != found.key_type:
        rule = f"a DataFrame with key ({found.key_type}) and model (binary)"
        raise _checks.wrong(owner, parameter, rule, df)
    if types.get("last", found.order_type) != found.order_type:
        raise _checks.wrong(owner, parameter, f"models whose last order is {found.order_type}", types["last"])
    last = sql.col("last") if "last" in types else sql.lit(None).cast(found.order_type).alias("last")
    return df.where(sql.col("model").isNotNull() & sql.col("key").isNotNull()).select("key", "model", last)
