"""Spark on a cluster of two executors on this machine, of which one is killed now and then: the results and models of a
run that nothing disturbed.

    python tests/long/kill_spark.py --count 10

Needs gossamer[spark] and Java. The stream and the query are those of spark_driver.py; ``local-cluster[2,1,1024]``
has two executors in processes of their own, which Spark starts again when they die.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import folders  # noqa: F401
import numpy as np
import pandas
import spark_driver
from kills import Kills

from gossamer import spark

MASTER = "local-cluster[2,1,1024]"
FILES, ROWS = 6, 150
SETTINGS = {
    **spark_driver.SETTINGS, "spark_executor_memory": "1g", "spark_task_maxFailures": 1000,
    "spark_deploy_maxExecutorRetries": -1, "spark_stage_maxConsecutiveAttempts": 1000,
    "spark_executor_extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}  # fmt: skip


def write(folder: Path) -> None:
    """The files of a stream, one for each micro-batch."""
    (folder / "in").mkdir()
    rng = np.random.default_rng(0)
    for i in range(FILES):
        a, b = rng.normal(size=(2, ROWS))
        names = np.minimum(rng.geometric(0.2, ROWS) - 1, 11)
        table = pandas.DataFrame({
            "sensor": [f"s{name}" for name in names], "time": np.arange(ROWS * i, ROWS * (i + 1)), "a": a, "b": b,
            "y": np.sin(2 * a) + b * (1 + names / 10),
        })  # fmt: skip
        table.to_parquet(folder / "in" / f"{i}.parquet")


def executors() -> list[int]:
    """The executors that this process's Spark has started, by their place below it."""
    parents, found = {}, []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            parents[int(entry)] = int(Path(f"/proc/{entry}/stat").read_text().rsplit(")", 1)[1].split()[1])
            if b"CoarseGrainedExecutorBackend" in Path(f"/proc/{entry}/cmdline").read_bytes():
                found.append(int(entry))
        except (OSError, IndexError):
            continue  # it has ended meanwhile

    def ours(process: int) -> bool:
        while process > 1 and process != os.getpid():
            process = parents.get(process, 0)
        return process == os.getpid()

    return [process for process in found if ours(process)]


def disturbed(moments: random.Random, most: int, act: Any) -> tuple[Any, int]:
    """Do something while executors are killed at random moments; its result, and how often."""
    done, kills = threading.Event(), [0]

    def disturb() -> None:
        while kills[0] < most and not done.wait(moments.uniform(0.5, 4.0)):
            running = executors()
            if running:
                os.kill(moments.choice(running), signal.SIGKILL)
                kills[0] += 1

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        return act(), kills[0]
    finally:
        done.set()
        thread.join()


def main() -> int:
    campaign = Kills(__doc__, 10)
    session = spark.session(MASTER, **SETTINGS)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder)
        expected = sorted(spark_driver.learn(session, folder, name="whole").collect())
        models = sorted(spark.models(session, folder / "whole" / "checkpoint").collect())
        assert len(expected) == FILES * ROWS
        history = {**spark_driver.COLUMNS, "model": spark_driver.MODEL, "buckets": 4}
        batch = sorted(spark.learn_history(session.read.parquet(str(folder / "in")), **history).collect())
        while campaign.go_on():
            name = f"killed-{campaign.rounds}"

            def act(name: str = name) -> tuple[Any, Any, Any]:
                found = sorted(spark_driver.learn(session, folder, name=name).collect())
                states = sorted(spark.models(session, folder / name / "checkpoint").collect())
                table = session.read.parquet(str(folder / "in"))
                return found, states, sorted(spark.learn_history(table, **history).collect())

            (found, states, again), killed = disturbed(campaign.moments, campaign.left, act)
            campaign.kills, campaign.rounds = campaign.kills + killed, campaign.rounds + 1
            pairs = {"results": (found, expected), "states": (states, models), "history": (again, batch)}
            for what, (one, other) in pairs.items():
                if one != other:
                    campaign.findings.append(f"round {campaign.rounds}, after {killed} kills: other {what}")
        session.stop()
    return campaign.finish(f"killed executors of {MASTER}")


if __name__ == "__main__":
    sys.exit(main())
