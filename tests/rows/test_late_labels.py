"""Laws of late labels: a join learns rows in the order of their labels; nothing is lost, and nothing joined twice.

The file is long because every place where rows wait has the same laws.
"""

import contextlib
import copy
import inspect
import pickle
import random
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from forge import places, sealed, split
from scipy.sparse import coo_matrix, csr_array
from tables import make_frame

import gossamer
from gossamer import Mixture, NewtonRegressor, OnlineScaler, RowEncoder, SILKClassifier, SILKRegressor, pipeline
from gossamer.bank import ModelBank
from gossamer.estimators.base import Online
from gossamer.rows.pending import COUNTS, Pending

MODELS = [getattr(gossamer, name) for name in gossamer.__all__]
MODELS = [part for part in MODELS if inspect.isclass(part) and issubclass(part, Online) and part.task != "novelty"]
MODELS = [part for part in MODELS if not part.__name__.startswith("Online")]


def mix_classifiers(kernel):
    return Mixture([SILKClassifier(kernel), SILKClassifier(kernel, C=5.0)])


def mix_regressors(kernel):
    return Mixture([SILKRegressor(kernel), NewtonRegressor(kernel)])


def make_rows(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.1, 0.9, size=(rows, 3))
    return X, np.sin(5 * X[:, 0]) + X[:, 1], rng.permutation(rows)


def labels_of(model, y):
    return y if getattr(model, "task", "regression") == "regression" else np.where(y > 1.0, "high", "low")


@pytest.mark.parametrize("part", [*MODELS, mix_classifiers, mix_regressors], ids=lambda part: part.__name__)
def test_a_join_learns_the_rows_in_the_order_of_their_labels(part):
    """Shown in any batches, labels in any batches: the model that has learned the rows in the order of the labels."""
    X, y, order = make_rows()
    own = (
        {} if "Additive" in part.__name__ else {"kernel": "gaussian:gamma=2"}
    )  # the width is not that of the first rows
    late, plain = part(**own), part(**own)
    y = labels_of(late, y)
    for start in range(0, len(X), 50):
        late.predict(X[start : start + 50], ids=np.arange(start, min(start + 50, len(X))))
    for start in range(0, len(order), 17):
        late.learn_labels(order[start : start + 17], y[order[start : start + 17]])
    plain.partial_fit(X[order], y[order])
    assert np.array_equal(late.predict(X), plain.predict(X))
    assert len(late.pending_) == 0
    assert late.pending_.counts["joined"] == len(X)
    assert type(late).from_bytes(late.to_bytes()).pending_.counts == late.pending_.counts


def test_the_predictions_are_those_that_were_made():
    X, y, _ = make_rows()
    model = SILKRegressor().partial_fit(X[:50], y[:50])
    made = model.predict(X[50:], ids=[f"r{i}" for i in range(70)])
    model.partial_fit(X[:50], y[:50])  # the model has changed since
    told = model.learn_labels(["r3", "r1", "none"], [0.0, 1.0, 2.0])
    assert np.array_equal(told[:2], made[[3, 1]])
    assert np.isnan(told[2])
    classifier = SILKClassifier()
    assert classifier.predict(X[:2], ids=[0, 1]).tolist() == [None, None]
    assert classifier.learn_labels([0, 1], ["a", "b"]).tolist() == [None, None]
    assert classifier.predict(X[:2], ids=[0, 1]).tolist() == classifier.learn_labels([0, 1], ["a", "b"]).tolist()
    newton = NewtonRegressor().partial_fit(X[:50], y[:50])
    mean, _ = newton.predict(X[50:], return_std=True, ids=np.arange(70))
    assert np.array_equal(newton.learn_labels(np.arange(70), y[50:]), mean)
    assert newton.pending_.counts["shown"] == 70


def test_what_becomes_of_ids():
    """Unknown, repeated, expired and dropped ids are counted, and change nothing; an id may come again."""
    X, _, _ = make_rows()
    model = SILKRegressor().keep_pending(limit=10, ttl="1 min")
    model.predict(X[:12], ids=np.arange(12), time=0.0)  # 0 and 1 are dropped
    model.learn_labels([5, 5, 5, 99, 0], [1.0] * 5, time=1.0)
    model.predict(X[20:21], ids=[7], time=30.0)  # shown again: it waits from now on
    model.learn_labels([6, 7], [1.0, 2.0], time=61.0)  # 6 is too old by now, and so are seven others
    assert model.pending_.counts == {"shown": 13, "shown_again": 1, "joined": 2, "expired": 8, "dropped": 2,
                                     "unknown": 1, "repeated": 2}  # fmt: skip
    assert set(COUNTS) == set(model.pending_.counts)
    assert model.n_seen_ == 2
    model.predict(X[30:31], ids=[5], time=62.0)
    model.learn_labels([5], [1.0], time=63.0)
    assert model.n_seen_ == 3


def test_bad_labels_change_nothing():
    X, y, _ = make_rows()
    model = SILKRegressor().partial_fit(X, y)
    model.predict(X, ids=np.arange(len(X)))
    before = model.to_bytes()
    for ids, labels in (([1, 2], [1.0, np.nan]), ([1], [1.0, 2.0]), ([1.5], [1.0]), ([None], [1.0])):
        with pytest.raises(ValueError, match=r"y|ids"):
            model.learn_labels(ids, labels)
        assert model.to_bytes() == before
    for X_bad, ids in ((X[:2], [1]), (X[:1, :2], [1]), (np.full((1, 3), np.nan), [1])):
        with pytest.raises(ValueError, match=r"X|ids"):
            model.predict(X_bad, ids=ids)
        assert model.to_bytes() == before
    with pytest.raises(ValueError, match="time"):
        model.predict(X, time=3.0)


def test_pipelines_learn_to_scale_when_rows_are_shown():
    """The transformers of a pipeline learn each row once, when it is shown; the model learns it as it was shown."""
    frame = make_frame(120)
    y = frame.pop("number").to_numpy()
    order = np.random.default_rng(1).permutation(120)
    late = pipeline(RowEncoder(), OnlineScaler(), SILKRegressor("gaussian:gamma=2", budget=32))
    for start in range(0, 120, 60):
        late.predict(frame[start : start + 60], ids=np.arange(start, start + 60))
    late.learn_labels(order, y[order])
    encoder, scaler, model = RowEncoder(), OnlineScaler(), SILKRegressor("gaussian:gamma=2", budget=32)
    rows = np.vstack([scaler.learn_transform(encoder.learn_transform(frame[a : a + 60])) for a in (0, 60)])
    model.partial_fit(rows[order], y[order])
    assert np.array_equal(late.predict(frame), model.predict(scaler.transform(encoder.transform(frame))))
    with pytest.raises(ValueError, match="ids"):
        late.predict(frame, ids=[1])
    assert late[0].n_seen_ == 120  # the failed call has taught it nothing


class Stream:
    """Rows and labels in a random order, with repeated and unknown ids, as a list of calls."""

    def __init__(self, seed):
        rng = random.Random(seed)
        self.X, self.y, _ = make_rows(400, seed)
        self.calls, waiting, shown = [], [], 0
        while shown < len(self.X) or waiting:
            if shown < len(self.X) and (rng.random() < 0.5 or not waiting):
                size = rng.randint(1, 9)
                ids = list(range(shown, min(shown + size, len(self.X))))
                self.calls.append(("show", ids))
                waiting += ids
                shown += len(ids)
            else:
                rng.shuffle(waiting)
                ids, waiting = waiting[: rng.randint(1, 12)], waiting[rng.randint(1, 12) :]
                self.calls.append(("label", [*ids, *rng.choices(range(500), k=rng.randint(0, 2))]))

    def do(self, model, call):
        what, ids = call
        if what == "show":
            model.predict(self.X[ids], ids=ids, time=float(ids[0]))
        else:
            model.learn_labels(ids, [self.y[i] if i < len(self.y) else 0.0 for i in ids], time=model.pending_.now)


@pytest.mark.parametrize("spill", [False, True], ids=["memory", "sqlite"])
def test_killed_and_resumed(spill, tmp_path):
    """30 kills at random calls, between saves at others: the bytes of a run that was never killed."""
    stream = Stream(0)

    def start(name):
        path = str(tmp_path / f"{name}.sqlite") if spill else None
        return SILKRegressor("gaussian:gamma=2", budget=20).keep_pending(limit=25, ttl=30.0, spill=path)

    whole = start("whole")
    for call in stream.calls:
        stream.do(whole, call)
    rng = random.Random(1)
    model, at, file = start("killed"), 0, tmp_path / "model.gsm"
    model.save(file)
    saved, kills = 0, 0
    while at < len(stream.calls):
        stream.do(model, stream.calls[at])
        at += 1
        if rng.random() < 0.2:
            model.save(file)
            saved = at
        if kills < 30 and rng.random() < 0.3:  # the process is gone, and with it all that was not saved
            kills += 1
            model, at = gossamer.load(file), saved
    assert kills == 30
    assert model.pending_.counts == whole.pending_.counts
    assert model.pending_.counts["dropped"] > 0
    assert model.pending_.counts["expired"] > 0
    assert model.pending_.counts["repeated"] > 0
    assert np.array_equal(model.predict(stream.X), whole.predict(stream.X))
    assert model.learner_.steps == whole.learner_.steps == model.pending_.counts["joined"]


def test_a_process_that_saved_nothing_leaves_no_rows(tmp_path):
    """Rows in a file whose model was never saved are not those of the next model; a copy of a model has its rows."""
    X, _, _ = make_rows()
    path = str(tmp_path / "pending.sqlite")
    first = SILKRegressor().keep_pending(spill=path)
    first.predict(X[:5], ids=np.arange(5))
    model = SILKRegressor().keep_pending(spill=path)
    model.predict(X[:3], ids=np.arange(3))
    assert model.pending_.counts["shown_again"] == 0
    assert (
        len(model.pending_)
        == len(copy.deepcopy(model).pending_)
        == len(pickle.loads(pickle.dumps(model)).pending_)
        == 3
    )
    assert len(gossamer.from_bytes(model.to_bytes()).pending_) == 3


def test_bytes_that_nobody_saved(tmp_path):
    """A model may be made into bytes a few times since it was saved: its rows are still in the file."""
    stream = Stream(2)
    models = [SILKRegressor("gaussian:gamma=2", budget=20).keep_pending(limit=5, spill=str(tmp_path / f"{i}.sqlite"))
              for i in range(2)]  # fmt: skip
    for call in stream.calls:
        stream.do(models[0], call)
    for at, call in enumerate(stream.calls):
        stream.do(models[1], call)
        if at == 40:
            models[1].save(tmp_path / "model.gsm")
        elif at > 40 and at % 20 == 0 and at < 160:
            models[1].to_bytes()
    again = gossamer.load(tmp_path / "model.gsm")
    for call in stream.calls[41:]:
        stream.do(again, call)
    assert again.pending_.counts == models[0].pending_.counts
    assert np.array_equal(again.predict(stream.X), models[0].predict(stream.X))


def test_memory_and_sqlite_are_the_same(tmp_path):
    """Every count and every prediction; and copies of a model are snapshots."""
    stream, made = Stream(3), []
    for path in (None, str(tmp_path / "pending.sqlite")):
        model = SILKRegressor("gaussian:gamma=2", budget=20).keep_pending(limit=25, ttl=30.0, spill=path)
        for call in stream.calls[:80]:
            stream.do(model, call)
        made.append((model.pending_.counts, len(model.pending_), model.predict(stream.X).tolist()))
        if path is None:
            again = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), gossamer.from_bytes(model.to_bytes())]
            for other in again:
                for call in stream.calls[80:]:
                    stream.do(other, call)
            assert len({other.to_bytes() for other in again}) == 1
    assert made[0] == made[1]


@pytest.mark.parametrize("spill", [False, True], ids=["memory", "sqlite"])
def test_labels_come_while_a_model_is_saved(spill, tmp_path):
    """No call is refused because another thread has the model or its waiting rows: all take the locks in one order."""
    path = str(tmp_path / "waiting.sqlite") if spill else None
    model = SILKRegressor("gaussian:gamma=2", budget=20).keep_pending(limit=1000, spill=path)
    done = threading.Event()

    def label():
        try:
            for i in range(150):
                model.predict([[0.1 * i]], ids=[i])
                model.learn_labels([i], [1.0])
        finally:
            done.set()

    def look():
        while not done.is_set():
            model.to_bytes()
            len(model.pending_)
            if not spill:
                copy.deepcopy(model), pickle.dumps(model)

    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(work) for work in (label, look, look)]:
            future.result(timeout=60)
    assert model.n_seen_ == model.pending_.counts["joined"] == 150


def test_loading_changes_no_file(tmp_path):
    """The file of waiting rows is opened when it is used; if it is gone, or something else, it is refused and stays."""
    X, y, _ = make_rows()
    path = tmp_path / "waiting.sqlite"
    model = SILKRegressor("gaussian:gamma=2", budget=20).keep_pending(spill=str(path))
    model.predict(X[:5], ids=np.arange(5))
    saved = model.to_bytes()
    model.learn_labels([0], y[:1])  # what comes after the save is undone, but not by loading alone
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    again = gossamer.from_bytes(saved)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before
    assert (len(model.pending_), len(again.pending_)) == (4, 5)

    other = tmp_path / "other.sqlite"
    with contextlib.closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE pending (shown INTEGER)")
        file.execute("INSERT INTO pending VALUES (1000)")
        file.commit()
    (tmp_path / "text").write_text("no database at all, but a text that somebody needs")
    for name in ("other.sqlite", "text", "gone", "no/folder"):
        bytes_of = {file: file.read_bytes() for file in tmp_path.iterdir()}
        fresh = Pending(spill=str(tmp_path / name))
        for pending in [fresh, forged_spill(saved, str(tmp_path / name))]:
            if pending is fresh and name == "gone":
                continue  # a new file is made
            with pytest.raises(ValueError, match="The 'spill' parameter of Pending must be a file of waiting rows"):
                len(pending)
        assert {file: file.read_bytes() for file in tmp_path.iterdir()} == bytes_of


def forged_spill(saved, path):
    """What waits in a stored model that names another file."""
    header, arrays = split(saved)
    for node, key in places(header):
        if key == "spill":
            node[key] = path
    return gossamer.from_bytes(sealed(header, arrays)).pending_


def test_a_bank_joins_labels_to_the_models_of_their_keys(tmp_path):
    """As the rows learned by key in the order of the labels; killed after a commit, it goes on from there."""
    X, y, order = make_rows()
    keys = np.array(["a", "b", "c"])[np.arange(len(X)) % 3]
    with ModelBank(SILKRegressor("gaussian:gamma=2", budget=20), path=tmp_path / "bank") as bank:
        assert np.isnan(bank.predict(keys[:60], X[:60], ids=np.arange(60))).all()
        bank.learn_labels(order[order < 60][:20], y[order[order < 60][:20]])
        bank.commit()
        bank.learn_labels([0], [100.0])  # and then it is killed
        bank._lasting = False
    with ModelBank(SILKRegressor("gaussian:gamma=2", budget=20), path=tmp_path / "bank") as bank:
        bank.predict(keys[60:], X[60:], ids=np.arange(60, len(X)))
        rest = [i for i in order.tolist() if i not in order[order < 60][:20]]
        told = bank.learn_labels(rest, y[rest])
        assert len(told) == len(rest)
        assert bank.pending.counts["joined"] == len(X)
        plain = ModelBank(SILKRegressor("gaussian:gamma=2", budget=20))
        learned = [*order[order < 60][:20].tolist(), *rest]
        plain.learn(keys[learned], X[learned], y[learned])
        assert np.array_equal(bank.predict(keys, X), plain.predict(keys, X))


@pytest.mark.parametrize("spill", [False, True], ids=["memory", "sqlite"])
def test_a_snapshot_of_a_bank_has_the_rows_that_wait(spill, tmp_path):
    """Unless they are in a file of their own, which stays with the bank as it is."""
    X, y, _ = make_rows()
    keys = np.array(["a", "b"])[np.arange(len(X)) % 2]
    bank = ModelBank(SILKRegressor("gaussian:gamma=2", budget=20))
    bank.keep_pending(spill=str(tmp_path / "waiting.sqlite") if spill else None)
    bank.predict(keys, X, ids=np.arange(len(X)))
    bank.learn_labels(np.arange(40), y[:40])
    bank.snapshot(tmp_path / "snapshot")
    bank.learn_labels(np.arange(40, 60), y[40:60])
    again = ModelBank.restore(tmp_path / "snapshot")
    assert len(again.pending) == (0 if spill else 80)
    assert len(bank.pending) == 60
    if not spill:
        again.learn_labels(np.arange(40, 60), y[40:60])
        assert np.array_equal(again.predict(keys, X), bank.predict(keys, X))
        assert again.pending.counts == bank.pending.counts


def test_forged_rows_are_refused():
    X, _, _ = make_rows()
    pending = Pending(limit=5)
    pending.add([1, 2, "c"], X[:3], [1.0, 2.0, 3.0], time=0.0)
    learned = pending._learned()
    held = learned["held"]
    for change in ({"ids": [1, 1, 2]}, {"ids": [1]}, {"rows": X[:2]}, {"rows": X[:3] * np.nan}, {"times": [2, 1, 0]},
                   {"ids": [[], 1, 2]}, {"fates": [[1], [], []]}, {"rows": "no"}, {"rows": {"starts": 1}}):  # fmt: skip
        with pytest.raises(ValueError, match="Pending"):
            Pending(limit=5)._relearn({**learned, "held": {**held, **change}})
    with pytest.raises(ValueError, match="Pending"):
        Pending(limit=2)._relearn(learned)
    for name, value in (("limit", 0), ("ttl", "soon"), ("spill", 3)):
        with pytest.raises(ValueError, match=name):
            Pending(**{name: value})
    model = SILKRegressor().partial_fit(X, X[:, 0]).keep_pending()
    model.__dict__["_late"] = None
    with pytest.raises(ValueError, match="'_late' parameter of SILKRegressor"):
        gossamer.from_bytes(model.to_bytes())


@pytest.mark.parametrize("spill", [False, True], ids=["memory", "sqlite"])
def test_sparse_rows_wait_as_dense_ones(spill, tmp_path):
    """The same bits; slots are used again; a row of another kind is refused while some wait."""
    X, y, _ = make_rows()
    X = np.where(X > 0.5, X, 0.0)
    made = []
    for kind in (np.asarray, csr_array, coo_matrix):
        path = str(tmp_path / f"{kind.__name__}.sqlite") if spill else None
        model = SILKRegressor("gaussian:gamma=2", budget=20).keep_pending(limit=30, spill=path)
        for start in range(0, 120, 20):
            model.predict(kind(X[start : start + 20]), ids=np.arange(start, start + 20))
            model.learn_labels([start + 3, start - 5, start + 1], y[[start + 3, start - 5, start + 1]])
        made.append((model.predict(X).tolist(), model.pending_.counts))
        if not spill:
            assert gossamer.from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
            other = X[:1] if kind is not np.asarray else csr_array(X[:1])
            before = model.to_bytes()
            for bad in (other, kind(X[:1, :2]), csr_array([[np.nan, 1.0, 1.0]])):
                with pytest.raises(ValueError, match="X"):
                    model.predict(bad, ids=[1000])
                assert model.to_bytes() == before
    assert made[0] == made[1] == made[2]


def test_frames_of_dates_wait_too():
    """A row of a frame is remembered as its features, of any length of time."""
    frame = pd.DataFrame({"t": pd.date_range("2024-01-01", periods=80, freq="h"), "c": list("abcd") * 20})
    model = pipeline(RowEncoder(), SILKClassifier())
    model.keep_pending(ttl="7 days")
    model.predict(frame, ids=frame.index, time=0.0)
    model.learn_labels(frame.index[:40], frame["c"][:40] == "a", time=3600.0)
    assert len(model.pending_) == 40
