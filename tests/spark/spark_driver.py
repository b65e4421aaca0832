"""A Spark driver to be killed: learns the files of a folder, one a micro-batch, and goes on from its checkpoint."""

import sys
from pathlib import Path

from gossamer import SILKRegressor, spark
from gossamer.kernels import Gaussian

MODEL = SILKRegressor(Gaussian(0.5), budget=20)
COLUMNS = {"key": "sensor", "features": ["a", "b"], "target": "y", "order": "time"}
SETTINGS = {
    "spark_ui_enabled": "false", "spark_sql_shuffle_partitions": 2, "spark_driver_memory": "512m",
    "spark_sql_session_timeZone": "UTC", "spark_ui_showConsoleProgress": "false", "spark_log_level": "ERROR",
    "spark_driver_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # starts in half the time
}  # fmt: skip


def learn(session, folder, name="run", model=MODEL, buckets=4, wait=True, **parameters):
    """Run a query over folder/in, its results in folder/name, to the end."""
    source = session.read.parquet(str(folder / "in"))
    stream = session.readStream.schema(source.schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    parameters = {**COLUMNS, **parameters}
    learned = parameters.pop("learn", spark.learn_stream)(stream, model=model, buckets=buckets, **parameters)
    query = learned.writeStream.format("parquet").outputMode("append").trigger(availableNow=True)
    query = query.option("checkpointLocation", str(folder / name / "checkpoint")).start(str(folder / name / "out"))
    query.awaitTermination()
    return session.read.parquet(str(folder / name / "out"))


if __name__ == "__main__":
    session = spark.session("local[2]", **SETTINGS)
    learn(session, Path(sys.argv[1]), name="killed")
