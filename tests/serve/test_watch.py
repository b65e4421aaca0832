"""What is kept about how a model does: calibration, coverage, drift alarms and weights of experts follow from the rows
alone, in any cut, after a crash and a rollback, and from states that were stored before they were kept.
"""

import copy
import http.client
import itertools
import json
import threading
import time

import load
import msgspec
import numpy as np
import pytest
from hubs import COLUMNS, LEARNERS, block, crash, jumping, learn, running, stream

from gossamer import SILKClassifier
from gossamer.cli import main
from gossamer.estimators.pipelines import last_step
from gossamer.evaluate.metrics import Reliability
from gossamer.serve import Background, Limits, ServerError, start
from gossamer.serve.answers import COVERAGE
from gossamer.serve.changes import Labels, Work
from gossamer.serve.experts import EVERY, Experts, find_mixture
from gossamer.serve.predictor import Ask, Predictor
from gossamer.serve.problems import BusyError
from gossamer.serve.recipes import Recipe, learners, make_model, takes_many_classes
from gossamer.serve.rows import Block
from gossamer.serve.served import Served


def labelled(name, rows=600):
    """A stream for a learner; one of classes has a third from the middle on, where the learner takes it."""
    X, y = stream(learners()[name].task, rows)
    if learners()[name].task == "classification" and takes_many_classes(learners()[name]()):
        y[rows // 2 :: 5] = ["a third"] * len(y[rows // 2 :: 5])
    return X, y


def fed(name, X, y, cuts, whole=False, **more):
    """A served model of a learner that has learned a stream, cut at these places."""
    served = Served(1, "m", Recipe(learner=name, columns=COLUMNS, **more))
    for a, b in itertools.pairwise([0, *cuts, len(X)]):
        served.learn([block(X, y, a, b)], [5.0], whole)
    return served


@pytest.mark.parametrize("name", LEARNERS)
def test_any_cut_gives_the_same(name):
    """Row by row for a while, in blocks, at once, whole or in pieces: the stored bytes are the same."""
    X, y = labelled(name)
    first = 40 + LEARNERS.index(name)  # may decide what a model is: it is the same in a replay
    cuts = np.random.default_rng(LEARNERS.index(name)).choice(np.arange(first + 1, len(X)), 9, replace=False)
    wanted = fed(name, X, y, [first]).dump()
    assert fed(name, X, y, [first, *sorted(cuts.tolist())]).dump() == wanted
    assert fed(name, X, y, [*range(first, first + 20), 280, 290], whole=True).dump() == wanted


@pytest.mark.parametrize("name", LEARNERS)
def test_pictures_follow_the_model(name):
    """The diagram is that of the estimator's own probabilities, coverage that of its intervals or sets."""
    X, y = labelled(name)
    served = fed(name, X, y, [100])
    made, told = served.pictures(), served.summary()
    task = learners()[name].task
    assert (made["calibration"] is not None) == (task == "classification") == (told["calibration"] is not None)
    assert (len(made["intervals"]) > 0) == (task == "regression")
    assert (told["window"]["coverage"] is not None) == (task != "novelty")
    assert (made["experts"] is not None) == name.startswith("Auto")
    if task == "classification":
        model = make_model(Recipe(learner=name), task, len(COLUMNS))
        order, many = sorted(set(y)), served.certainty.many
        p = np.vstack([_by_name(model, X[i : i + 1], y[i : i + 1], order) for i in range(len(X))])
        known = [len(set(y[:i])) for i in range(len(y))]
        bins, counted = Reliability(), [i for i in range(len(y)) if known[i] > (2 if many else 1)]
        best = [int(p[i].argmax()) if many else 1 for i in counted]
        hits = [order[k] == y[i] for i, k in zip(counted, best, strict=True)]
        bins.count(np.array([p[i, k] for i, k in zip(counted, best, strict=True)]), np.array(hits))
        assert made["calibration"]["rows"] == len(counted)
        assert made["calibration"]["error"] == pytest.approx(bins.error(), abs=1e-4)
        assert made["calibration"]["event"] == (None if many else order[1])
    elif task == "regression":
        target, guess, reach = np.array(made["intervals"], dtype=float).T
        assert np.array_equal(target, y[-len(target) :])
        assert np.array_equal(np.abs(target - guess) <= reach, served.certainty.covered[-len(target) :])
        assert abs(told["coverage"] - COVERAGE) < 0.05


def _by_name(model, X, y, names):
    """The probabilities of all classes, in the order of their names, before a row is learned."""
    made = model.predict_learn(X, np.array(y), method="proba")
    out = np.zeros((1, len(names)))
    for column, label in enumerate(last_step(model).classes_.tolist()):
        out[0, names.index(label)] = made[0, column]
    return out


@pytest.mark.parametrize("name", ["AutoClassifier", "AutoRegressor"])
def test_weights_of_experts_are_looked_at_by_rows(name, tmp_path, monkeypatch):
    """A look every so many rows, thinned out where there are many; the same after crashes, and back with a rollback."""
    monkeypatch.setattr("gossamer.serve.experts.LOOKS", 4)
    X, y = stream(learners()[name].task, 7 * EVERY)
    with running(tmp_path / "a", snapshot_rows=300) as hub:
        hub.call(Work("create", "m", Recipe(learner=name, params={"budget": 16})))
        learn(hub, "m", X[: 2 * EVERY + 9], y[: 2 * EVERY + 9], [30, 250, 400])
        before = copy.deepcopy(hub.models["m"].experts.state())
        assert [look[0] for look in before["looks"]] == [EVERY, 2 * EVERY]
        version = hub.call(Work("version", "m", "early"))["version"]
        rest = slice(2 * EVERY + 9, None)
        hub.call(Work("learn", "m", Block(len(X[rest]), X[rest].tobytes(), y[rest]), rows=len(X[rest])))
        assert [look[0] for look in hub.models["m"].experts.looks] == [2 * EVERY, 4 * EVERY, 6 * EVERY]
        shown = hub.models["m"].pictures()["experts"]
        assert [point[0] for point in shown["points"]] == [2 * EVERY, 4 * EVERY, 6 * EVERY, 7 * EVERY]
        weights = [weight for point in shown["points"] for weight in point[1:]]
        assert all(0 <= weight <= 1 for weight in weights)
        assert max(weights) > 0.2
        mixture = find_mixture(hub.models["m"].model)
        best = mixture.describe(mixture.experts()[0][0])
        assert best in shown["names"]
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
        hub.call(Work("rollback", "m", version))
        assert hub.models["m"].experts.state() == before
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state


def test_a_drift_alarm_is_told_where_it_was():
    """One mark, one sentence with the row where it began, in the order of rows, in any cut; of imported models too."""
    X, y = jumping()
    wanted = fed("NewtonRegressor", X, y, [100])
    ((row, since, _),) = wanted.pictures()["drift"]
    assert 1650 < since < row < 1800
    assert wanted.events[0][2] == "has learned 1,000 rows"
    assert f"errs more since about row {since:,} (" in wanted.events[1][2]
    assert wanted.summary()["drift"] == {"alarms": 1, "last": row}
    for cuts in ([100, 900, row - 1, row], [100, *range(101, 2600, 333)]):
        assert fed("NewtonRegressor", X, y, cuts).dump() == wanted.dump()
    assert fed("NewtonRegressor", X, y, [100], whole=True).dump() == wanted.dump()  # in one piece
    learned = fed("NewtonRegressor", X[:500], y[:500], [])
    imported = Served(2, "m", learned.recipe, learned.model)
    imported.rows = 5000
    imported.learn([block(X, y, 0, 1000)], [5.0])
    imported.learn([block(X, y, 1000)], [6.0])
    assert [moment for moment, _, words in imported.events if "drift alarm" in words] == [6.0]


def test_errors_that_hardly_change_are_no_alarm():
    """An alarm is told where the mean error has changed by a half at least, once, and about where that began."""
    from gossamer.serve.meters import CHANGED, Meter

    rng = np.random.default_rng(0)
    for factor in (1.0, 1.1, 3.0):
        meter = Meter("regression")
        errors = np.abs(rng.normal(size=6000)) * np.repeat([1.0, factor], [2500, 3500])
        found = meter.add(np.zeros(6000), errors, np.zeros(6000))
        assert [abs(alarm.since - 2501) < 20 for alarm, _ in found] == ([True] if factor > CHANGED else [])
        assert [mark[:2] for mark in meter.marks] == [[alarm.row, alarm.since] for alarm, _ in found]


@pytest.mark.parametrize("name", LEARNERS)
def test_older_states_load(name):
    """A state from before all this was kept loads, and goes on with what comes."""
    X, y = labelled(name)
    served = fed(name, X[:300], None if y is None else y[:300], [])
    plain, *rest = msgspec.msgpack.decode(served.dump())
    for part in ("certainty", "experts"):
        del plain[part]
    del plain["meter"]["marks"]
    older = Served.load(1, msgspec.msgpack.encode([plain, *rest]))
    assert older.pictures()["drift"] == []
    assert older.summary()["calibration"] is None
    for one in (served, older):
        one.learn([block(X, y, 300)], [6.0])
    assert older.export() == served.export()
    task = learners()[name].task
    older.certainty.state()
    kept = older.certainty.codes if task == "classification" else older.certainty.covered
    assert len(kept) == (
        0 if task == "novelty" else 300 - older.certainty.many
    )  # the first of a third class is not asked for


@pytest.mark.parametrize("late", [False, True])
def test_what_fails_after_a_look_changes_nothing(late, monkeypatch):
    """An entry that is learned whole is cut where experts are looked at: if a later part fails, all is undone."""
    X, y = stream("regression")
    served = fed("AutoRegressor", X[:250], y[:250], [], params={"budget": 16})
    ids = list(range(100))
    served.ask([Block(100, X[250:350].tobytes(), ids=ids)])
    before, done = served.dump(), served._predict_learn

    def fail(rows, *more):
        if (rows == X[300]).all(axis=1).any():
            raise ValueError("this row")
        return done(rows, *more)

    monkeypatch.setattr(served, "_predict_learn", fail)
    given = (ids, y[250:350], 6.0) if late else ([block(X, y, 250, 350)], [6.0])
    with pytest.raises(ValueError, match="this row"):
        (served.learn_labels if late else served.learn)(*given, whole=True)
    assert served.dump() == before
    monkeypatch.undo()
    served.learn_labels(ids, y[250:350], 6.0)
    assert [look[0] for look in served.experts.looks] == [EVERY]
    assert len(served.certainty.state()["covered"]) == 350


def test_models_per_key_have_errors_and_alarms_only():
    """A bank tells no probabilities or intervals of rows that it learns: these pictures are left out."""
    X, y = stream("regression")
    served = Served(1, "m", Recipe(learner="NewtonRegressor", key="sensor", task="regression", columns=COLUMNS))
    served.learn([block(X, y, 0, 400, keys=[str(i % 3) for i in range(400)])], [5.0])
    made = served.pictures()
    assert made["line"]["points"]
    assert (made["calibration"], made["intervals"], made["experts"]) == (None, [], None)
    assert Served.load(1, served.dump()).dump() == served.dump()


# --------------------------------------------------------------------------------------------- the queue, and readiness


@pytest.mark.parametrize("kind", ["learn", "labels", "import", "ask"])
def test_a_queue_of_too_many_bytes_is_refused(kind, tmp_path):
    """Whatever waits counts with its bytes, and what was accepted is learned."""
    X, y = stream("classification")
    with running(tmp_path, queue_bytes=20_000) as hub:
        hub.call(Work("create", "m", Recipe()))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))
        content = {
            "learn": Block(400, X.tobytes() * 2, y), "labels": Labels([f"{i:>200}" for i in range(200)], ["b"] * 200),
            "import": (Recipe(), b"x" * 30_000), "ask": Block(400, X.tobytes() * 2, ids=list(range(400))),
        }  # fmt: skip
        with pytest.raises(BusyError, match="bytes wait"):
            hub.submit([Work(kind, "m", content[kind])])
        assert hub.queued_bytes == 0
        assert hub.counts["refused"] == 1
        assert hub.call(Work("learn", "m", block(X, y, 100, 200), rows=100))["learned"] == 200
        assert hub.queued_bytes == 0


def test_predictions_that_wait_are_limited_in_bytes():
    """The predictor refuses what is too much, and frees what it has answered."""
    X, y = stream("regression")
    served = fed("SILKRegressor", X, y, [])
    answered = threading.Event()
    predictor = Predictor(10, lambda _: answered.set(), most_bytes=2 * X.nbytes)
    predictor.submit(Ask(served, Block(400, X.tobytes()), {}))
    with pytest.raises(BusyError, match="bytes wait"):
        predictor.submit(Ask(served, Block(800, X.tobytes() * 2), {}))
    predictor.start()
    assert answered.wait(20)
    predictor.submit(Ask(served, Block(800, X.tobytes() * 2), {}))
    predictor.stop()


def test_too_many_bytes_are_429(tmp_path):
    """The same over HTTP, with the time to come back."""
    X, y = stream("classification")
    limits = Limits(queue_bytes=5000)
    with Background(tmp_path, limits=limits) as server, server.client(retries=0) as client:
        client.create("m", columns=COLUMNS, task="classification")
        for ask in (lambda: client.learn("m", X, y), lambda: client.predict("m", X)):
            with pytest.raises(ServerError, match="bytes wait") as refused:
                ask()
            assert refused.value.status == 429
            client.learn("m", X[:50], y[:50])
        assert "gossamer_queue_bytes 0" in client.metrics().decode()


@pytest.fixture
def quiet_start(monkeypatch):
    """`run` leaves this process's collector and switching as they are."""
    monkeypatch.setattr(start.gc, "freeze", lambda: None)
    monkeypatch.setattr(start.sys, "setswitchinterval", lambda _: None)


def _ready(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/readyz")
    answer = connection.getresponse()
    told = json.loads(answer.read())
    connection.close()
    return answer.status, told["status"]


def test_ready_means_that_files_are_imported(tmp_path, monkeypatch, quiet_start):
    """A server that is started with a file is starting until the model is there."""
    SILKClassifier(budget=16).partial_fit([[0.0, 1.0], [1.0, 0.0]], ["a", "b"]).save(tmp_path / "first.gsm")
    go, really = threading.Event(), start._import

    def wait(*given):
        assert go.wait(20)
        really(*given)

    monkeypatch.setattr(start, "_import", wait)
    port = load.free_port()
    server = start.make_server(tmp_path / "data", port=port, quiet=True)
    thread = threading.Thread(target=start.run, args=(server, (str(tmp_path / "first.gsm"),)), daemon=True)
    thread.start()
    while server.app.hub.state == "starting" or not server.started:
        time.sleep(0.005)
    assert _ready(port) == (503, "starting")
    go.set()
    while _ready(port) != (200, "ready"):
        time.sleep(0.005)
    assert server.app.hub.models["first"].rows == 2
    server.should_exit = True
    thread.join()


def test_a_file_that_is_no_model_ends_the_server(tmp_path, capsys, quiet_start):
    """One line says which."""
    (tmp_path / "bad.gsm").write_bytes(b"nothing")
    data = ["--data", str(tmp_path / "data"), "--port", str(load.free_port())]
    assert main(["serve", str(tmp_path / "bad.gsm"), *data]) in (1, 2)
    (line,) = capsys.readouterr().err.splitlines()
    assert "bad.gsm" in line


def test_the_first_look_comes_with_the_first_whole_block():
    """The first piece of a model ends at the first look at the latest: no cut changes what the first rows decide."""
    from gossamer.serve.served import FIRST

    assert FIRST <= EVERY == Experts().room(0)
