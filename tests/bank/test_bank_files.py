"""What a bank keeps outside itself: bytes of models, snapshots, files; damaged ones are refused."""

import contextlib
import json
import sqlite3
import zlib

import numpy as np
import pandas
import pytest
from scipy import sparse
from sklearn.base import clone
from test_bank import KEYS, keyed
from test_estimators import ADDITIVE, FOUND, MANY, data, made, name_of

from gossamer import NewtonRegressor, OnlineScaler, SILKClassifier, SILKDetector, SILKRegressor, _core, pipeline
from gossamer.bank import ModelBank
from gossamer.bank.compact import HEAD, INVERSE, MAGIC
from gossamer.budgets import Oldest, Project
from gossamer.kernels import Gaussian


@pytest.mark.parametrize(("backend", "budget"), [("native", 5), ("native", Project(5)), ("estimators", 5)])
def test_dump_and_put(backend, budget):
    """A model goes from bank to bank; damaged bytes and those of another model are refused."""
    model = SILKClassifier(Gaussian(0.5), budget=budget, average=backend != "native")
    X, y = data(SILKClassifier, classes=3, count=60)
    bank, other = ModelBank(model), ModelBank(model)
    bank.learn(keyed(60), X, y)
    other.learn(["z"], X[:1], ["c"]) if backend == "native" else None
    for key in KEYS:
        other.put(key, bank.dump(key))
    assert other.backend == bank.backend == backend
    assert np.array_equal(other.predict(keyed(60), X), bank.predict(keyed(60), X))
    assert np.array_equal(other.learn(keyed(60), X, y), bank.learn(keyed(60), X, y))
    good = bank.dump("a")
    for place in range(0, len(good), 7):
        bad = bytearray(good)
        bad[place] ^= 4
        with pytest.raises(ValueError, match="must be"):
            other.put("a", bytes(bad))
    for wrong in (b"", good[:-1], good + b"\0", good[: len(good) // 2]):
        with pytest.raises(ValueError, match="must be"):
            other.put("a", wrong)
    assert other.dump("a") == good
    with pytest.raises(ValueError, match="must be"):
        ModelBank(SILKClassifier(Gaussian(0.6), budget=budget, average=backend != "native")).put("a", good)
    with pytest.raises(ValueError, match="key"):
        other.dump("nobody")


def sealed(body):
    """The bytes of a model with the checksum that fits them."""
    return MAGIC + zlib.crc32(body).to_bytes(4, "little") + body


def tail(state):
    """The bytes of the certainty, at the end: the numbers that were changed, and a bit for each."""
    return 16 + 8 * int.from_bytes(state[-16:], "little").bit_count()


@pytest.mark.filterwarnings("ignore::gossamer.DivergenceWarning")
def test_an_inverse_from_outside():
    """A Q that no model can have is refused, with the right checksum too; one that is only wrong may spoil the model,
    which then says so, and nothing else."""
    X, y = data(SILKRegressor, count=200)
    bank = ModelBank(SILKRegressor(Gaussian(0.5), budget=Project(6)))
    bank.learn(["a"] * 200, X, y)
    good = bank.dump("a")
    state, numbers = good[8:], 6 * 7 // 2
    state, sure = state[: -tail(state)], state[-tail(state) :]
    inverse = np.frombuffer(state[-8 * numbers :]).copy()
    learner = bank.model("a").learner_
    triangle = np.linalg.inv(learner.kernel(learner.points, learner.points))[np.tril_indices(6)]
    np.testing.assert_allclose(inverse, triangle, rtol=1e-6)

    def with_inverse(place, value):
        changed = inverse.copy()
        changed[place] = value
        return state[: -8 * numbers] + changed.tobytes() + sure

    flags = HEAD.size - 8 + 2  # behind the version and the bytes of a number
    without = bytearray(state)
    without[flags] ^= INVERSE
    wrong = [with_inverse(place, value) for place in (1, numbers - 1) for value in (np.nan, np.inf)]
    wrong += [with_inverse(place, value) for place in (0, 2, numbers - 1) for value in (0.0, -1.0)]
    wrong += [part + sure for part in (state[:-8], state[:-1], state[: -8 * numbers], state + bytes(8), bytes(without))]
    wrong += [state + part for part in (sure[8:], sure[:-1], sure[:-16], sure + bytes(8), b"")]
    wrong += [state + np.array(value).tobytes() + sure[8:] for value in (np.nan, 7.0)]  # a share of misses
    for body in wrong:
        with pytest.raises(ValueError, match="must be"):
            bank.put("a", sealed(body))
    assert bank.dump("a") == good
    plain = ModelBank(SILKRegressor(Gaussian(0.5), budget=6))
    plain.learn(["a"] * 200, X, y)
    own = plain.dump("a")[8:]
    claimed = bytearray(own[: -tail(own)] + inverse.tobytes() + own[-tail(own) :])
    claimed[flags] |= INVERSE
    with pytest.raises(ValueError, match="must be"):
        plain.put("a", sealed(bytes(claimed)))
    for place, value in [(1, 1e300), (0, 1e-300), (2, 1e308), (numbers - 1, 5e-324)]:
        bank.put("a", sealed(with_inverse(place, value)))
        bank.learn(["a"] * 200, X, y)
        bank.put("a", bank.dump("a"))


def test_a_metric_from_outside():
    """The metric of second-order steps has a row for each point: one of fewer rows is refused, whatever its length."""
    X, y = data(SILKRegressor, count=60)
    bank = ModelBank(NewtonRegressor(Gaussian(0.5), budget=Oldest(6)))
    bank.learn(["a"] * 60, X, y)
    assert bank.backend == "native"
    good = bank.dump("a")
    state, length = good[8:], (6 * 7 // 2).to_bytes(8, "little")
    state, sure = state[: -tail(state)], state[-tail(state) :]
    metric = bank.model("a").learner_.state().rule["metric"].tobytes()
    assert state.count(length) == 1
    assert state.endswith(metric)
    bank.put("a", sealed(state + sure))
    for rows in range(6):
        numbers = rows * (rows + 1) // 2
        fewer = state[: -len(metric)] + metric[: 8 * numbers]
        with pytest.raises(ValueError, match="must be"):
            bank.put("a", sealed(fewer.replace(length, numbers.to_bytes(8, "little")) + sure))
    assert bank.dump("a") == good


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_saved_estimators_can_be_put(part):
    """An estimator that has learned elsewhere, as it is saved, goes on in the bank; one of another model does not."""
    X, y = data(part, classes=3 if part in MANY else 2, count=60)
    models = [made(part), pipeline(OnlineScaler(), made(part))]
    for model in models if part in ADDITIVE else [*models, made(part, budget=Project(5))]:
        bank, other = ModelBank(model), ModelBank(model)
        bank.learn(keyed(60), X, y)
        for key in KEYS:
            other.put(key, bank.model(key).to_bytes())
            assert other.dump(key) == bank.dump(key)
        assert np.array_equal(other.learn(keyed(60), X, y), bank.learn(keyed(60), X, y))
        with pytest.raises(ValueError, match="data"):
            bank.put("a", made(part, budget=19).partial_fit(X, y).to_bytes())
        with pytest.raises(ValueError, match="data"):
            bank.put("a", clone(model).to_bytes())


def test_states_are_small():
    """A model of 100 points with 20 features in float32: what its numbers take, at most 200 bytes besides, and as many
    numbers as say how sure it is."""
    X = np.random.default_rng(0).normal(size=(300, 20)).astype(np.float32)
    for budget, inverse in ((100, 0), (Project(100), 8 * 100 * 101 // 2)):
        bank = ModelBank(SILKRegressor(Gaussian(0.05), budget=budget))
        bank.learn(["a"] * 300, X, X[:, 0])
        assert len(bank.model("a").support_vectors_) == 100
        sure = tail(bank.dump("a"))
        assert sure <= 16 + 8 * len(_core.Certainty("regression").state())
        assert len(bank.dump("a")) <= 100 * (20 * 4 + 8 + 4) + inverse + 200 + sure


@pytest.mark.parametrize("memory", [None, 3000])
def test_snapshot_and_restore(memory, tmp_path):
    """A snapshot is a bank of its own; the one it was taken from is not disturbed."""
    model = pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.5), budget=5))
    X, y = data(SILKClassifier, classes=3, count=60)
    bank = ModelBank(model, memory=memory)
    bank.learn(keyed(60), X, y, offset={"partition": 3, "at": 17})
    bank.snapshot(tmp_path / "snapshot")
    after = bank.learn(keyed(60), X, y)
    for options in ({}, {"memory": 1}, {"into": tmp_path / "bank"}):
        again = ModelBank.restore(tmp_path / "snapshot", **options)
        assert again.offset == {"partition": 3, "at": 17}
        assert len(again) == 4
        assert np.array_equal(again.learn(keyed(60), X, y), after)
        again.close()
    with ModelBank(model, path=tmp_path / "bank") as again:
        assert np.array_equal(again.learn(keyed(60), X, y), after)
    with pytest.raises(ValueError, match="exist"):
        bank.snapshot(tmp_path / "snapshot")
    (tmp_path / "other").write_bytes(b"something else" * 100)
    for wrong in (tmp_path / "none", tmp_path / "other"):
        with pytest.raises(ValueError, match="path"):
            ModelBank.restore(wrong)


def test_a_file_belongs_to_one_bank(tmp_path):
    """Of its own model, its own classes, and one process at a time; what is not committed is not there."""
    path, model = tmp_path / "bank", SILKRegressor(Gaussian(0.5), budget=9)
    X, y = data(SILKRegressor, count=60)
    bank = ModelBank(model, path=path, memory=1)
    bank.learn(keyed(60), X, y, offset=60)
    with pytest.raises(ValueError, match="only this bank has open"):
        ModelBank(model, path=path)
    bank.commit()
    bank.learn(keyed(60), X, y, offset=120)
    bank.close()
    with pytest.raises(ValueError, match="model"):
        ModelBank(SILKRegressor(Gaussian(0.5), budget=8), path=path)
    with ModelBank(model, path=path) as bank:
        assert bank.offset == 60
        assert bank.model("a").n_seen_ == 30
        bank.commit("elsewhere")
    with ModelBank(model, path=path) as bank:
        assert bank.offset == "elsewhere"
    (tmp_path / "text").write_text("not a bank" * 1000)
    with pytest.raises(ValueError, match="path"):
        ModelBank(model, path=tmp_path / "text")
    with pytest.raises(ValueError, match="path"):
        ModelBank(model).commit()
    with pytest.raises(ValueError, match="offset"):
        ModelBank(model).learn(["a"], X[:1], y[:1], offset={1, 2})
    with pytest.raises(ValueError, match="stored"):
        ModelBank(SILKRegressor(lambda A, B: A @ B.T), path=tmp_path / "b")


def test_a_failure_among_spilled_models(tmp_path):
    """Raised in the last of several rounds through memory, after thousands of models have left it: nothing changed."""
    model = pipeline(OnlineScaler(), SILKRegressor(Gaussian(0.5), budget=3))
    rng = np.random.default_rng(0)
    keys, X = np.arange(5000), rng.normal(size=(5000, 1))
    bank = ModelBank(model, path=tmp_path / "bank", memory=100_000)
    bank.learn(keys, X, X[:, 0], offset=1)
    before = bank.dump(0), bank.dump(4999)
    X[4990] = 1e200  # finite: only the scaler notices
    with pytest.raises(ValueError, match="row 4990"):
        bank.learn(keys, np.where(np.arange(5000)[:, None] == 4990, 1e200, X), X[:, 0] * 0, offset=2)
    assert (bank.dump(0), bank.dump(4999)) == before
    assert bank.offset == 1
    assert len(bank) == 5000
    bank.commit()
    bank.close()
    with ModelBank(model, path=tmp_path / "bank") as bank:
        assert (bank.dump(0), bank.dump(4999)) == before


def test_frames_and_nothing():
    """Frames keep the names of their columns; a call without rows is none."""
    X, y = data(SILKRegressor, count=20)
    frame = pandas.DataFrame(X, columns=["left", "right"])
    bank = ModelBank(pipeline(OnlineScaler(), SILKRegressor(Gaussian(0.5))))
    assert bank.learn([], np.zeros((0, 2)), []).shape == (0,)
    scores = bank.learn(pandas.Series(keyed(20)), frame, pandas.Series(y), order=pandas.Series(np.arange(20)))
    assert np.array_equal(scores, ModelBank(bank.template).learn(keyed(20), sparse.csr_array(X), y))
    assert bank.model("a")[0].feature_names_in_.tolist() == ["left", "right"]
    assert bank.learn([], frame[:0], []).shape == (0,)
    with pytest.raises(ValueError, match="columns"):
        bank.learn(keyed(20), frame.rename(columns={"left": "right", "right": "left"}), y)


def test_parameters():
    model = SILKRegressor()
    for name, value in [("memory", 0), ("memory", 1.5), ("threads", 0), ("errors", "ignore"), ("classes", ["a"])]:
        with pytest.raises(ValueError, match=name):
            ModelBank(model, **{name: value})
    with pytest.raises(ValueError, match="model"):
        ModelBank(OnlineScaler())
    bank = ModelBank(model)
    with pytest.raises(ValueError, match="order"):
        bank.learn(["a", "b"], [[1.0], [2.0]], [1.0, 2.0], order=[1])
    with pytest.raises(ValueError, match="keys"):
        bank.learn(["a", "b"], [[1.0]], [1.0, 2.0])
    with pytest.raises(ValueError, match="'y'"):
        bank.learn(["a"], [[1.0]])
    assert len(bank) == 0
    assert bank.backend == "not chosen yet"
    bank.learn(["a"], [[1.0]], [1.0])
    with pytest.raises(ValueError, match="features"):
        bank.learn(["a"], [[1.0, 2.0]], [1.0])


@pytest.mark.parametrize("model", [SILKRegressor(Gaussian(0.5), budget=9), SILKDetector(Gaussian(0.5), budget=9)])
def test_labels_are_of_classifiers(model, tmp_path):
    """A file of other models that has labels is none that a bank has made."""
    path = tmp_path / "bank"
    with ModelBank(model, path=path) as bank:
        bank.learn(keyed(60), *data(type(model), count=60))
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        (text,) = file.execute("SELECT value FROM facts WHERE name = 'bank'").fetchone()
        told = {**json.loads(text), "labels": [1, 2, 3]}
        file.execute("UPDATE facts SET value = ? WHERE name = 'bank'", (json.dumps(told),))
    for read in (ModelBank.restore, lambda path: ModelBank(model, path=path)):
        with pytest.raises(ValueError, match="without labels"):
            read(path)
