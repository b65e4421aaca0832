"""The durable core: what was acknowledged is there after a crash, once, and the model has the same bytes."""

import itertools
import shutil
import sqlite3

import numpy as np
import pytest
from hubs import COLUMNS, LEARNERS, block, crash, learn, running, settle, stream

from gossamer import store
from gossamer.serve.changes import Labels, Work
from gossamer.serve.hub import Hub
from gossamer.serve.problems import BusyError, ConflictError, NotFoundError, ReadOnlyError
from gossamer.serve.recipes import Recipe, learners
from gossamer.serve.rows import Block


def dumped(hub, name="m"):
    """The bytes of a model, without the times of its entries, which differ from run to run."""
    served = hub.models[name]
    return store.dumps(served.model), {**served.meter.state(), "points": [p[2:] for p in served.meter.points]}


@pytest.mark.parametrize("name", LEARNERS)
def test_recovery_gives_the_same_bytes(name, tmp_path):
    """However the rows are cut, and wherever the server is killed and starts again, the model has the same bytes."""
    task = learners()[name].task
    X, y = stream(task, 240)
    rng = np.random.default_rng(LEARNERS.index(name))
    with running(tmp_path / "whole") as hub:
        hub.call(Work("create", "m", Recipe(learner=name, columns=COLUMNS)))
        learn(hub, "m", X, y, [])
        wanted = dumped(hub)
    folder = tmp_path / "0"
    cuts = sorted(rng.choice(np.arange(1, len(X)), size=12, replace=False).tolist())
    parts = [0, *sorted(rng.choice(cuts, size=3, replace=False).tolist()), len(X)]
    for number, (first, last) in enumerate(itertools.pairwise(parts)):
        with running(folder, snapshot_rows=100) as hub:
            if number == 0:
                hub.call(Work("create", "m", Recipe(learner=name)))
            inside = [cut for cut in cuts if first < cut < last]
            ends = [*inside, last]
            hub.call(*[Work("learn", "m", block(X, y, a, b), rows=b - a)
                       for a, b in zip([first, *inside], ends, strict=True)])  # fmt: skip
            state = hub.models["m"].dump()
            folder = crash(hub, tmp_path / str(number + 1))
    with running(folder) as hub:
        assert hub.state == "ready"
        assert hub.models["m"].dump() == state
        assert dumped(hub) == wanted


def test_a_model_per_key_recovers(tmp_path):
    """A bank has the same models after a crash, from a snapshot and from the journal."""
    X, _ = stream("regression")
    y = (X[:, 0] * 3).tolist()
    keys = [f"k{i % 7}" for i in range(len(X))]
    with running(tmp_path / "a", snapshot_rows=100) as hub:
        hub.call(Work("create", "m", Recipe(task="regression", key="sensor", columns=COLUMNS)))
        for first in range(0, 400, 40):
            part = slice(first, first + 40)
            hub.call(Work("learn", "m", block(X, y, first, first + 40, keys=keys[part]), rows=40))
        state = hub.models["m"].dump()
        assert hub.counts["snapshots"] >= 2
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state
        one = Block(1, X[:1].tobytes(), keys=["k3"])
        assert len(hub.models["m"].model) == 7
        assert np.isfinite(hub.models["m"].predict(one, {})["predictions"][0])


def test_a_request_is_learned_once(tmp_path):
    """The same request id gives the same answer: at once, after a crash, and after the journal was trimmed."""
    X, y = stream("classification")
    first = Work("learn", "m", block(X, y, 0, 50, shown=True), "r1", 50)

    def again(request="r1", rows=50):
        return Work("learn", "m", Block(rows, X[:rows].tobytes(), y[:rows], shown=True), request, rows)

    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        answer = hub.call(first)
        assert len(answer["predictions"]) == 50
        assert hub.call(again()) == {**answer, "repeated": True}
        assert hub.call(again("r2"), again("r2"))["repeated"]  # in one group
        with pytest.raises(ConflictError):
            hub.call(again(rows=40))
        assert hub.models["m"].rows == 100
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b", snapshots=1) as hub:
        assert hub.call(again()) == {**answer, "repeated": True}
        hub.call(Work("learn", "m", block(X, y, 50), rows=350))
    with running(tmp_path / "b") as hub:  # stopped in order: stored and trimmed
        assert hub.replayed == 0
        assert hub.journal.trimmed > answer["seq"]
        assert hub.call(again()) == {**answer, "repeated": True}
        assert hub.models["m"].rows == 450


def test_versions_and_rollback_are_replayed(tmp_path):
    """A rollback brings back the bytes of a version, also in a replay; the rows after it are learned on top."""
    X, y = stream("classification")
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))
        version = hub.call(Work("version", "m", "good"))["version"]
        model = hub.models["m"].export()
        hub.call(Work("learn", "m", block(X, y, 100, 300), rows=200))
        with pytest.raises(NotFoundError):
            hub.call(Work("rollback", "m", 12345))
        assert hub.call(Work("rollback", "m", version))["learned"] == 100
        assert hub.models["m"].export() == model
        hub.call(Work("learn", "m", block(X, y, 300, 350), rows=50))
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state
        assert [words for _, _, words in hub.models["m"].events][-1].startswith("rolled back")
        hub.call(Work("delete", "m"))
        hub.call(Work("create", "m", Recipe(task="regression")))
        crash(hub, tmp_path / "c")
    with running(tmp_path / "c") as hub:
        assert hub.models["m"].rows == 0
        assert hub.models["m"].facts.task == "regression"


def test_late_labels_survive(tmp_path):
    """A row that waits for its label waits through a crash; the model is that of the rows in the order of labels."""
    X, y = stream("regression")
    with running(tmp_path / "a", pending=60) as hub:
        hub.call(Work("create", "m", Recipe()))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))
        ids = [f"id{i}" for i in range(50)]
        asked = hub.call(Work("ask", "m", Block(50, X[100:150].tobytes(), ids=ids), rows=50))
        shown = hub.models["m"].predict(Block(50, X[100:150].tobytes()), {})["predictions"]
        assert asked["predictions"] == shown
        with pytest.raises(ValueError, match="waiting for a label already"):
            hub.call(Work("ask", "m", Block(1, X[:1].tobytes(), ids=["id3"]), rows=1))
        with pytest.raises(ConflictError):
            hub.call(Work("ask", "m", Block(20, X[:20].tobytes(), ids=list(range(20))), rows=20))
        crash(hub, tmp_path / "b")
    order = np.random.default_rng(0).permutation(50)
    with running(tmp_path / "b") as hub:
        labels = Labels([ids[i] for i in order] + ["nobody", ids[order[0]]], [y[100 + i] for i in order] + [1.0, 2.0])
        answer = hub.call(Work("labels", "m", labels))
        assert answer["unknown"] == ["nobody", ids[order[0]]]
        assert answer["predictions"] == [shown[i] for i in order]
        late = hub.models["m"].export()
        assert not hub.models["m"].pending
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "c")
    with running(tmp_path / "c") as hub:
        assert hub.models["m"].dump() == state
    with running(tmp_path / "d") as hub:
        hub.call(Work("create", "m", Recipe()))
        together = np.concatenate([X[:100], X[100:150][order]])
        learn(hub, "m", together, y[:100] + [y[100 + i] for i in order], [])
        assert hub.models["m"].export() == late


BAD = {
    "another width": lambda X, y: Block(1, X[0, :2].tobytes(), ["b"]),
    "other columns": lambda X, y: Block(1, X[:1].tobytes(), ["b"], columns=["x", "y", "z"]),
    "no label": lambda X, y: Block(1, X[:1].tobytes()),
    "another kind": lambda X, y: Block(1, X[:1].tobytes(), [1]),
    "two kinds": lambda X, y: Block(2, X[:2].tobytes(), ["b", True]),
    "a fraction": lambda X, y: Block(1, X[:1].tobytes(), [1.5]),
    "a long label": lambda X, y: Block(1, X[:1].tobytes(), ["x" * 300]),
    "too many classes": lambda X, y: Block(400, X.tobytes(), [f"class {i}" for i in range(400)]),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_rows_change_nothing(case, tmp_path):
    """A request that does not fit is refused before it is journalled, alone or among good ones."""
    X, y = stream("classification")
    recipe = Recipe(classes=["b", "longer"], task="classification") if "many" in case else Recipe()
    with running(tmp_path) as hub:
        hub.call(Work("create", "m", recipe))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))
        before, seq = hub.models["m"].dump(), hub.journal.seq
        with pytest.raises(ValueError, match="must be"):
            hub.call(Work("learn", "m", BAD[case](X, y), rows=1))
        assert hub.models["m"].dump() == before
        assert hub.journal.seq == seq
        with pytest.raises(ValueError, match="must be"):
            hub.call(Work("learn", "m", block(X, y, 100, 150), rows=50), Work("learn", "m", BAD[case](X, y), rows=1))
        assert hub.models["m"].rows == 150


def test_what_validation_misses_is_whole_or_not(tmp_path):
    """Numbers that overflow in a kernel: the entry is answered with an error, and is not half learned, now or later."""
    X, y = stream("regression", 2000)
    X[1700] = 1e99
    recipe = Recipe(learner="SILKRegressor", params={"kernel": "polynomial:degree=5", "budget": 16}, scale=False)
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", recipe))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))
        works = [Work("learn", "m", block(X, y, a, b), rows=b - a) for a, b in ((100, 600), (600, 1800), (1800, 2000))]
        with pytest.raises(ValueError, match="must be"):
            hub.call(*works)
        assert [isinstance(work.result, dict) for work in works] == [True, False, True]
        assert hub.models["m"].rows == 800
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state
    with running(tmp_path / "c") as hub:
        hub.call(Work("create", "m", recipe))
        good = np.r_[0:600, 1800:2000]
        learn(hub, "m", X[good], [y[i] for i in good], [])
        assert hub.models["m"].export() == store.dumps(hub.models["m"].model)
        with running(tmp_path / "b") as other:
            assert other.models["m"].export() == hub.models["m"].export()


def test_a_full_disk_is_read_only_and_ends(tmp_path, monkeypatch):
    """With no room nothing is acknowledged, predictions go on, and learning goes on once there is room."""
    monkeypatch.setattr("gossamer.serve.hub.AGAIN", 0.0)
    X, y = stream("classification")
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))
        pages = hub.journal.connection.execute("PRAGMA page_count").fetchone()[0]
        hub.journal.connection.execute(f"PRAGMA max_page_count={pages}")
        before = hub.models["m"].dump()
        for _ in range(3):
            with pytest.raises(ReadOnlyError, match="full"):
                hub.call(Work("learn", "m", block(X, y, 100), rows=300))
        assert (hub.state, hub.reason) == ("read-only", "the disk is full")
        assert hub.models["m"].dump() == before
        assert len(hub.models["m"].predict(block(X, y), {})["predictions"]) == 400
        hub.journal.connection.execute("PRAGMA max_page_count=100000")
        assert hub.call(Work("learn", "m", block(X, y, 100), rows=300))["learned"] == 400
        assert hub.state == "ready"
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state


def test_a_failed_write_stops_learning(tmp_path, monkeypatch):
    """After a failed sync nobody knows what is on the disk: nothing is learned until the journal is read again."""
    X, y = stream("classification")
    with running(tmp_path) as hub:
        hub.call(Work("create", "m", Recipe()))
        hub.call(Work("learn", "m", block(X, y, 0, 100), rows=100))

        def fail(*_):
            raise sqlite3.OperationalError("disk I/O error")

        monkeypatch.setattr(hub.journal, "append", fail)
        for _ in range(2):
            with pytest.raises(ReadOnlyError, match="restart"):
                hub.call(Work("learn", "m", block(X, y, 100), rows=300))
        assert hub.models["m"].rows == 100
        assert hub.models["m"].predict(block(X, y), {})["learned"] == 100


def damage(folder, query):
    with sqlite3.connect(folder / "gossamer.db") as connection:
        assert connection.execute(query).rowcount
    connection.close()


@pytest.mark.parametrize("what", ["payload = x'00'", "time = time + 1", "kind = 'ask'", "seq = 1000"])
def test_a_damaged_entry_is_found(what, tmp_path):
    """The models are served as they were before it, read-only, and the reason says where it is."""
    X, y = stream("classification")
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        for first in range(0, 400, 100):
            hub.call(Work("learn", "m", block(X, y, first, first + 100), rows=100))
        crash(hub, tmp_path / "b")
    damage(tmp_path / "b", f"UPDATE journal SET {what} WHERE seq = 4")
    with running(tmp_path / "b") as hub:
        assert hub.state == "read-only"
        assert "entry 4" in hub.reason
        assert hub.models["m"].rows == 200
        with pytest.raises(ReadOnlyError):
            hub.call(Work("learn", "m", block(X, y, 200, 300), rows=100))


def test_a_damaged_state_is_passed_over(tmp_path):
    """An older state and more of the journal give the same model; without a good one the server says so."""
    X, y = stream("classification")
    with running(tmp_path / "a", snapshot_rows=1) as hub:
        hub.call(Work("create", "m", Recipe()))
        for first in range(0, 400, 50):
            hub.call(Work("learn", "m", block(X, y, first, first + 50), rows=50))
            settle(hub, lambda: not hub._dirty)
        assert len(hub.journal.states(1)) == 3
        assert hub.journal.trimmed > 3
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
    newest = "(SELECT max(seq) FROM states WHERE length(data) > 1)"
    for left in (2, 1):
        damage(tmp_path / "b", f"UPDATE states SET data = x'00' WHERE seq = {newest}")
        with running(crash_of(tmp_path / "b", tmp_path / f"left {left}")) as hub:
            assert hub.state == "ready"
            assert hub.models["m"].dump() == state
    damage(tmp_path / "b", f"UPDATE states SET data = x'00' WHERE seq = {newest}")
    with running(tmp_path / "b") as hub:
        assert hub.state == "read-only"
        assert "no good state of the models ['m']" in hub.reason


def crash_of(folder, to):
    shutil.copytree(folder, to)
    return to


def test_a_clock_that_is_set_back(tmp_path, monkeypatch):
    """The journal's order is its numbers; its times never go back, and a jump changes no model."""
    X, y = stream("classification")
    now = [2e9]
    monkeypatch.setattr("gossamer.serve.hub.time.time", lambda: now[0])
    with running(tmp_path / "a") as hub:
        hub.call(Work("create", "m", Recipe()))
        for first, clock in zip(range(0, 400, 100), (2e9, 1e9, 3e9, 5.0), strict=True):
            now[0] = clock
            hub.call(Work("learn", "m", block(X, y, first, first + 100), rows=100))
        times = [entry.time for entry in hub.journal.entries(0)]
        assert times == sorted(times)
        state = hub.models["m"].dump()
        crash(hub, tmp_path / "b")
    with running(tmp_path / "b") as hub:
        assert hub.models["m"].dump() == state


def test_a_long_queue_is_refused(tmp_path):
    """Rows beyond the limit are refused at once; what was accepted is learned."""
    X, y = stream("classification")
    with running(tmp_path, queue=500) as hub:
        hub.call(Work("create", "m", Recipe()))
        works = [Work("learn", "m", block(X, y, 0, 400), rows=400) for _ in range(2)]
        with pytest.raises(BusyError):
            hub.submit(works)
        assert hub.call(works[0])["learned"] == 400


def test_one_server_per_folder(tmp_path):
    """A second server on the same folder is refused, and the first goes on."""
    with running(tmp_path) as hub:
        with pytest.raises(ReadOnlyError, match="another server"):
            Hub(str(tmp_path))
        hub.call(Work("create", "m", Recipe()))
    with running(tmp_path) as hub:
        assert list(hub.models) == ["m"]


def test_the_journal_is_trimmed(tmp_path):
    """The journal and the states stay bounded, and a model that nobody uses does not hold them."""
    X, y = stream("classification")
    with running(tmp_path, snapshot_rows=50, snapshots=2) as hub:
        hub.call(Work("create", "idle", Recipe()))
        hub.call(Work("create", "m", Recipe()))
        for _ in range(20):
            hub.call(Work("learn", "m", block(X, y, 0, 50), rows=50))
            settle(hub, lambda: 2 not in hub._dirty)
        assert len(hub.journal.states(2)) == 2
    with running(tmp_path, snapshots=2) as hub:
        kept = hub.journal.connection.execute("SELECT count(*) FROM journal").fetchone()[0]
        assert kept <= 4
        assert hub.models["m"].rows == 1000
