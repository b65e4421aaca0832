"""Models by key on Spark: every row once, whatever is killed; the same bits as one estimator per key by hand.

The file is long because one Spark session, which takes seconds to start, serves all of it.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import gossamer
from gossamer import NORMADetector, OnlineScaler, PAClassifier, SILKClassifier, SILKRegressor, pipeline, spark, store
from gossamer.kernels import Gaussian
from gossamer.spark import _rows, _worker
from gossamer.spark._plan import plan

pandas = pytest.importorskip("pandas", reason="gossamer[spark] is not installed: no pandas")
pyarrow = pytest.importorskip("pyarrow", reason="gossamer[spark] is not installed: no pyarrow")
pytestmark = pytest.mark.filterwarnings(
    "ignore:PySpark does not yet fully support", "ignore:The copy keyword is deprecated", "ignore::ResourceWarning"
)
MODEL = SILKRegressor(Gaussian(0.5), budget=20)
REASON = None
try:
    spark._pyspark()
    spark._check_java()
except (ImportError, RuntimeError) as problem:
    REASON = str(problem)


def with_spark(test):
    """A test that needs a session: all in one process, so that there is one session."""
    skip = pytest.mark.skipif(REASON is not None, reason=f"Spark is not tested: {REASON}")
    return pytest.mark.xdist_group("spark")(skip(test))


def frame(rows, keys=12, seed=0, start=0):
    """Rows of sensors that come by turns, some often and some once."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    names = np.minimum(rng.geometric(0.2, rows) - 1, keys - 1)
    return pandas.DataFrame({
        "sensor": [f"s{i}" for i in names], "time": np.arange(start, start + rows), "a": a, "b": b,
        "y": np.sin(2 * a) + b * (1 + names / 10),
    })  # fmt: skip


def by_hand(table, model=MODEL, target="y", features=("a", "b"), key="sensor"):
    """One estimator per key, each with its rows by their time: its scores by time, and the models."""
    scores, models = {}, {}
    for name, rows in table.sort_values("time").groupby(key):
        models[name] = gossamer.from_bytes(store.dumps(model))
        y = None if target is None else rows[target].to_numpy()
        found = models[name].predict_learn(rows[list(features)].to_numpy(), y)
        scores.update(zip(rows["time"].tolist(), found.tolist(), strict=True))
    return scores, models


def assert_models(found, wanted, model=MODEL, classes=None):
    """Bit for bit those models and no others."""
    assert {row["key"] for row in found} == set(wanted)
    for row in found:
        data = store.dumps(spark.unpack(row["model"], model, classes))
        assert data == store.dumps(wanted[row["key"]]), row["key"]


# ------------------------------------------------------------------------------------------------- without a session


class State(dict):
    """Spark's state in memory, of one variable."""

    def getValue(self, key):  # noqa: N802
        return super().get(key)

    def updateValue(self, key, value):  # noqa: N802
        self[key] = value

    def iterator(self):
        return iter(self.items())

    def exists(self):
        return None in self

    def get(self):
        return self[None]

    def update(self, value):
        self[None] = value


class Handle(dict):
    def getMapState(self, name, *schemas):  # noqa: N802
        return self.setdefault(name, State())

    getValueState = getMapState  # noqa: N815


class Columns:
    """What a plan asks of a DataFrame."""

    def __init__(self, **types):
        self.dtypes = list(types.items())


TYPES = {"sensor": "string", "time": "bigint", "a": "double", "b": "double", "y": "double", "label": "string"}


def task(model, target="y", late="learn", classes=None, buckets=1):
    columns = {"key": "sensor", "features": ["a", "b"], "target": target, "order": "time"}
    return plan("test", Columns(**TYPES), **columns, model=model, classes=classes, buckets=buckets, late=late).task


def prepared(table, target="y"):
    """A table as Spark hands it to a worker."""
    names = {"key": "sensor", "order": "time", "x0": "a", "x1": "b"} | ({} if target is None else {"target": target})
    columns = {name: pyarrow.array(table[column].tolist()) for name, column in names.items()}
    columns |= {"bad": pyarrow.nulls(len(table), "string"), "nameless": pyarrow.array(np.zeros(len(table), bool))}
    return pyarrow.record_batch(columns)


def processor(work, handle=None):
    made = _worker.Processor(work, "string", "bigint")
    made.init(Handle() if handle is None else handle)
    return made


def fed(made, table, target="y"):
    """What a processor returns for one batch."""
    rows = prepared(table, target)
    rows = rows.append_column("bucket", pyarrow.array(np.zeros(len(table), np.int32)))
    parcels = [batch.to_pandas() for part in (rows[:50], rows[50:]) for batch in _rows.packed([part])]
    returned = list(made.handleInputRows((0,), iter(parcels), None))
    for column in (table[name] for table in returned for name in table):
        assert isinstance(pyarrow.Array.from_pandas(column), pyarrow.Array)  # in one piece, or Spark cannot send it
    return pandas.concat(returned)


def labelled(table):
    return table.assign(label=np.array(["low", "middle", "high"])[np.digitize(table["y"], [-0.5, 0.5])])


CASES = {
    "regressor": (MODEL, "y", None),
    "pipeline": (pipeline(OnlineScaler(), SILKRegressor(Gaussian(0.5), budget=20)), "y", None),
    "detector": (NORMADetector(Gaussian(0.5), nu=0.2, budget=20), None, None),
    "classifier": (SILKClassifier(Gaussian(0.5), budget=20), "label", ["low", "middle", "high"]),
    "mean": (SILKRegressor(Gaussian(0.5), budget=20, average="sparse"), "y", None),
    "second order": (gossamer.NewtonRegressor(Gaussian(0.5), budget=20), "y", None),
    "trees": (gossamer.AdditiveRegressor(budget=30), "y", None),
}


@pytest.mark.parametrize("case", CASES)
def test_any_model_in_batches_of_any_order(case):
    """Kinds of models: batches in which rows arrive shuffled, or one batch, or history first: the same bits."""
    model, target, classes = CASES[case]
    table = labelled(frame(400))
    work = task(model, target, classes=classes)
    whole, parts, after = Handle(), Handle(), Handle()
    one = fed(processor(work, whole), table, target)
    pieces = []
    for start in range(0, 400, 90):
        piece = table[start : start + 90].sample(frac=1, random_state=start)
        pieces.append(fed(processor(work, parts), piece, target))
    several = pandas.concat(pieces)
    assert parts == whole
    by_time = [frame.set_index("order").sort_index() for frame in (one, several)]
    pandas.testing.assert_frame_equal(*by_time)

    first = prepared(table[:250].sort_values(["sensor", "time"]), target)
    batches = _worker.history(work, (first[start : start + 60] for start in range(0, 250, 60)))
    models = pandas.concat([batch.to_pandas() for batch in batches])
    live = processor(work, after)
    live.handleInitialState((0,), models, None)
    rest = fed(live, table[250:], target).set_index("order").sort_index()
    assert after == whole
    pandas.testing.assert_frame_equal(rest, by_time[0].loc[250:])
    if classes is None:
        scores, wanted = by_hand(table, model, target)
        assert by_time[0]["score"].tolist() == [scores[time] for time in by_time[0].index]
        assert_models([{"key": key[0], "model": value[0]} for key, value in whole["models"].items()], wanted, model)


def test_a_batch_of_few_keys_asks_for_them_alone():
    """Whether a bucket is read as a whole or key by key, the same is learned."""
    table = frame(320)
    whole, parts = Handle(), Handle()
    fed(processor(task(MODEL), whole), table)
    made = processor(task(MODEL), parts)
    fed(made, table[:300])
    parts["models"].iterator = None  # not to be called
    for start in range(300, 320, 2):
        fed(made, table[start : start + 2])
    assert parts == whole


def test_rows_of_equal_order_are_sorted_by_what_is_in_them():
    """Rows that come at the same time: their arrival changes nothing."""
    table = frame(200).assign(time=np.arange(200) // 10)
    states = []
    for seed in range(3):
        states.append(Handle())
        fed(processor(task(MODEL), states[-1]), table.sample(frac=1, random_state=seed))
    assert states[0] == states[1] == states[2]


def test_late_rows():
    """A row from before what its key has learned is learned, skipped or told, and not confused with other keys."""
    table = frame(200)
    table.loc[50, "sensor"] = "fresh"  # not seen before, so not late
    late, rest = table[50:60], table.drop(table.index[50:60])
    wanted, _ = by_hand(rest)
    for mode in ("learn", "skip", "error"):
        made = processor(task(MODEL, late=mode))
        fed(made, rest[:120])
        second = fed(made, pandas.concat([late, rest[120:]])).set_index("order")
        told = second["error"].dropna()
        assert len(told) == {"learn": 0, "skip": 0, "error": 9}[mode]
        assert all(text.startswith("Late: ") for text in told)
        assert second.loc[rest["time"][120:], "error"].isna().all()
        assert len(second) == {"learn": 80, "skip": 71, "error": 80}[mode]
        same = [second.loc[time, "score"] == wanted[time] for time in rest["time"][120:]]
        assert all(same) == (mode != "learn")


def test_another_number_of_buckets_is_refused():
    """Keys would start anew in silence."""
    handle = Handle()
    fed(processor(task(MODEL, buckets=4), handle), frame(50))
    with pytest.raises(ValueError, match=r"must be 4, as when this checkpoint began"):
        fed(processor(task(MODEL, buckets=5), handle), frame(50))


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"key": "host"}, "'key' parameter of learn_history must be a column of"),
        ({"order": "label"}, "'order'.*timestamp.*Got 'string'"),
        ({"features": "a"}, "a list of names"),
        ({"features": ["a", "when"]}, "columns of numbers"),
        ({"target": None}, "given for SILKRegressor"),
        ({"model": NORMADetector(Gaussian(0.5))}, "None for a detector"),
        ({"model": SILKRegressor()}, "depend on how rows fall into batches"),
        ({"model": "silk"}, "an estimator of Gossamer"),
        ({"model": SILKClassifier(Gaussian(0.5)), "target": "label"}, "all labels, for a classifier"),
        ({"classes": ["a", "b"]}, "None for SILKRegressor"),
        ({"buckets": 0}, "'buckets'.*an int in"),
        ({"late": "drop"}, "'learn', 'skip', 'error'"),
        ({"model": SILKRegressor(gossamer.kernels.Custom(lambda A, B: A @ B.T))}, "to be stored"),
    ],
)
def test_what_does_not_fit_is_told_before_anything_runs(changed, text):
    """Every parameter, in the one sentence of all errors."""
    given = {"key": "sensor", "features": ["a"], "target": "y", "order": "time", "model": MODEL, "classes": None}
    with pytest.raises(ValueError, match=text):
        plan("learn_history", Columns(**TYPES, when="timestamp"), **{**given, "buckets": 2, **changed})


def test_without_java_or_spark_it_is_said_what_to_install(monkeypatch, tmp_path):
    """Java that is absent or too old, pyspark that is not installed."""
    monkeypatch.setattr(spark, "_pyspark", lambda: None)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"Spark needs Java 17 or later.*no java on the PATH"):
        spark.session()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", os.defpath)
    with pytest.raises(RuntimeError, match=r"Java 17.*11\.0\.2"):
        spark.session()
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"gossamer\[spark\]"):
        spark.session()


# ---------------------------------------------------------------------------------------------------- with a session


@pytest.fixture(scope="module")
def session():
    from spark_driver import SETTINGS

    made = spark.session("local[2]", **SETTINGS)
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four files of rows in no order, for all queries that learn the usual rows."""
    place = tmp_path_factory.mktemp("spark")
    (place / "in").mkdir()
    table = frame(900)
    for i in range(4):
        write(place, i, table[225 * i : 225 * i + 225].sample(frac=1, random_state=i))
    return place


def write(folder, number, table):
    """A file that is there at once or not at all, later than those before."""
    path = folder / "in" / f"{number}.parquet"
    table.to_parquet(folder / "part", index=False, coerce_timestamps="us")  # pandas 2 has nanoseconds, Spark none
    os.utime(folder / "part", (1e9 + number, 1e9 + number))
    (folder / "part").rename(path)


@pytest.fixture(scope="module")
def live(session, folder):
    """An uninterrupted run: its results."""
    from spark_driver import learn

    return learn(session, folder, name="live")


def assert_scores(results, wanted):
    """Every row once, with that score."""
    rows = results.collect()
    assert len(rows) == len(wanted)
    assert {row["time"]: row["score"] for row in rows} == wanted
    assert all(row["error"] is None for row in rows)


@with_spark
def test_a_stream_is_learned_as_by_hand(session, folder, live):
    """Micro-batches of shuffled rows give the predictions and models of one estimator per key; models are read out of
    the checkpoint, and score rows."""
    scores, models = by_hand(frame(900))
    assert_scores(live, scores)
    assert live.columns == ["sensor", "time", "prediction", "score", "error"]
    found = spark.models(session, folder / "live" / "checkpoint")
    assert_models(found.collect(), models)

    fresh = frame(40, seed=5, start=900)
    fresh.loc[3, "sensor"] = "unknown"
    columns = {"key": "sensor", "features": ["a", "b"], "order": "time", "model": MODEL, "buckets": 3}
    rows = {row["time"]: row for row in spark.score(session.createDataFrame(fresh), found, **columns).collect()}
    assert len(rows) == 40
    for row in fresh.itertuples():
        if row.sensor == "unknown":
            assert rows[row.time]["error"] == "There is no model for this key."
        else:
            assert rows[row.time]["score"] == models[row.sensor].predict([[row.a, row.b]])[0]


@with_spark
def test_history_then_live_and_shards(session, folder, live):
    """Half of the rows as history, in one go, the others live: the models and predictions of one live run.

    Merged shards are another model, nearly as good."""
    from spark_driver import COLUMNS, learn

    half = folder / "half"
    (half / "in").mkdir(parents=True)
    for i in range(2, 4):
        shutil.copy2(folder / "in" / f"{i}.parquet", half / "in")
    past = session.read.parquet(str(folder / "in")).where("time < 450")
    poison = [("s0", 1000, 1.0, float("nan"), 1.0), ("nothing", 1001, None, 1.0, 1.0)]
    bad = session.createDataFrame(poison, past.schema)
    history = spark.learn_history(past.union(bad), **COLUMNS, model=MODEL, buckets=3)
    kept = session.createDataFrame(history.collect(), history.schema)
    errors = {row["key"]: [told["order"] for told in row["errors"]] for row in kept.collect()}
    assert errors.pop("nothing") == [1001]
    assert errors.pop("s0") == [1000]
    assert not any(errors.values())
    results = learn(session, half, name="live", initial=kept.drop("errors"))
    scores, models = by_hand(frame(900))
    assert_scores(results, {time: score for time, score in scores.items() if time >= 450})
    assert_models(spark.models(session, half / "live" / "checkpoint").collect(), models)

    merged = spark.learn_history(past, **COLUMNS, model=MODEL, buckets=2, shards=2).collect()
    assert {row["key"] for row in merged} == set(models)
    common = frame(900).query("sensor == 's0'")
    data = next(row["model"] for row in merged if row["key"] == "s0")
    model, rows = spark.unpack(data, MODEL), common[["a", "b"]].to_numpy()
    alone = by_hand(frame(450))[1]["s0"]
    assert model.n_seen_ == alone.n_seen_
    assert len(model.support_vectors_) == 20
    away = [np.abs(part.predict(rows) - common["y"]).mean() for part in (model, alone)]
    assert away[0] < 1.5 * away[1]


@with_spark
def test_poisonous_rows_go_to_the_errors(session, folder):
    """NaN, a wrong type, a label never seen, no key, no order: told with key and order, and nothing else stops."""
    from spark_driver import learn

    place = folder / "poison"
    (place / "in").mkdir(parents=True)
    table = frame(300, keys=4)
    table["sensor"] = table["sensor"].str[1:].astype("int64") + 2**60  # more than a float can tell apart
    table["label"] = np.where(table["y"] > 0, "yes", "no")
    table["b"] = table["b"].map(repr)
    table["time"] = pandas.to_datetime(table["time"], unit="s", utc=True)
    poison = table.sample(6, random_state=1).index
    good = table.drop(poison)
    table["sensor"], table["label"] = table["sensor"].astype("Int64"), table["label"].astype(object)
    table.loc[poison[0], "a"], table.loc[poison[1], "b"], table.loc[poison[2], "label"] = np.nan, "wet", "perhaps"
    table.loc[poison[3], "sensor"], table.loc[poison[4], "time"] = None, None
    table.loc[poison[5], "label"] = None
    for i in range(2):
        write(place, i, table[150 * i : 150 * i + 150])
    model = pipeline(OnlineScaler(), PAClassifier(Gaussian(0.5), budget=20))
    results = learn(session, place, name="live", model=model, target="label", classes=["yes", "no"]).collect()
    told = [row for row in results if row["error"] is not None]
    assert len(results) == 300
    assert len(told) == 6
    assert {row["sensor"] for row in told} <= {*good["sensor"], None}
    texts = " ".join(row["error"] for row in told)
    for text in ("without NaN", "wet is no number", "'perhaps'", "key is missing", "order is missing", "target is"):
        assert text in texts
    assert all(row["prediction"] is None and row["score"] is None for row in told)
    keys = {row["key"]: row["model"] for row in spark.models(session, place / "live" / "checkpoint").collect()}
    assert set(keys) == set(good["sensor"])
    predicted = {row["time"].timestamp(): row["prediction"] for row in results if row["error"] is None}
    for name, rows in good.assign(b=good["b"].astype(float)).groupby("sensor"):
        fresh = gossamer.from_bytes(store.dumps(model))
        fresh.partial_fit(rows[["a", "b"]].to_numpy(), rows["label"].to_numpy().astype(str), classes=["no", "yes"])
        assert store.dumps(spark.unpack(keys[name], model, ["yes", "no"])) == store.dumps(fresh)
        right = [predicted[time.timestamp()] == label for time, label in zip(rows["time"], rows["label"], strict=True)]
        assert np.mean(right) > 0.5


@with_spark
def test_another_number_of_buckets(session, folder, live):
    """The models of a checkpoint begin a new query with other buckets; what they have learned already is skipped."""
    from spark_driver import learn

    place = folder / "moved"
    shutil.copytree(folder / "in", place / "in")
    write(place, 7, frame(100, seed=3, start=900))
    old = folder / "live" / "checkpoint"
    results = learn(session, place, buckets=7, learn=lambda df, **parameters: spark.migrate(df, old, **parameters))
    scores, models = by_hand(pandas.concat([frame(900), frame(100, seed=3, start=900)]))
    assert_scores(results, {time: score for time, score in scores.items() if time >= 900})
    assert_models(spark.models(session, place / "run" / "checkpoint").collect(), models)


@with_spark
def test_a_killed_driver_goes_on_to_the_same_bits(session, folder, live):
    """kill -9 in the middle of a micro-batch, twice, then to the end: every row once, predictions and models equal."""
    checkpoint = folder / "killed" / "checkpoint"
    command = [sys.executable, str(Path(__file__).parent / "spark_driver.py"), str(folder)]
    for batch in (1, 3):
        driver = subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + 300
            while not (checkpoint / "offsets" / str(batch)).exists():
                assert driver.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.005)
            time.sleep(0.1 * batch)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        assert not (checkpoint / "commits" / str(batch)).exists()
    from spark_driver import learn

    results = learn(session, folder, name="killed")
    assert sorted(results.collect()) == sorted(live.collect())
    assert_scores(results, by_hand(frame(900))[0])
    states = [spark.models(session, folder / name / "checkpoint").collect() for name in ("live", "killed")]
    assert sorted(states[0]) == sorted(states[1])
