"""A bank of models is one estimator per key, to the bit, however rows are cut, ordered, threaded or spilled.

The file is long because every law compares with the same estimators, one per key.
"""

import datetime
import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import examples, fitted, label, scaler_options, user_kernel
from sklearn.base import clone
from test_estimators import ADDITIVE, CLASSIFIERS, DETECTORS, FOUND, MANY, data, made, name_of, snapshot, table

from gossamer import (
    KernelPerceptron,
    NORMADetector,
    OnlineScaler,
    SILKClassifier,
    SILKRegressor,
    SVMDClassifier,
    pipeline,
    taxonomy,
)
from gossamer.bank import ModelBank
from gossamer.budgets import Auto, Forgetron, Fourier, Merge, Nystrom, Project
from gossamer.kernels import Gaussian, Polynomial

KEYS = ["a", "b", "long", "d"]


def keyed(count, seed=0, names=KEYS):
    """Keys of which the first has half of the rows."""
    chosen = np.random.default_rng(seed + 100).integers(0, len(names) - 1, size=count) + 1
    chosen[::2] = 0
    return np.array(names)[chosen]


class Alone:
    """The specification: one estimator for each key, in a loop."""

    def __init__(self, model, classes=None):
        self.model, self.models, self.seen, self.classes, self.labels = model, {}, {}, classes, set(classes or ())

    def learn(self, keys, X, y):
        self.labels.update([] if y is None or y.dtype.kind == "f" else y.tolist())
        columns = sorted(self.labels)
        many = len(columns) > 2
        out = np.full((len(X), len(columns)) if many else len(X), np.nan)
        for key in dict.fromkeys(keys.tolist()):
            at = keys == key
            model = self.models.setdefault(key, clone(self.model))
            scores = model.predict_learn(X[at], None if y is None else y[at])
            seen = self.seen.setdefault(key, [])
            before = []
            for value in [] if y is None else y[at].tolist():
                before.append(list(seen))
                if many and value not in seen:
                    seen.append(value)
            last = model[-1] if hasattr(model, "steps") else model
            out[at] = table(last, scores, before, columns) if many else scores
        return out


def last_of(model):
    return model[-1] if hasattr(model, "steps") else model


def same_models(bank, models, X):
    for key, model in models.items():
        one, other = bank.model(key), model
        if hasattr(model, "steps"):
            for name in ("mean_", "squares_", "weight_", "n_seen_"):
                assert np.array_equal(getattr(one[0], name), getattr(other[0], name)), name
        one, other = snapshot(last_of(one), X), snapshot(last_of(other), X)
        assert one.keys() == other.keys()
        for name in one:
            assert np.array_equal(np.asarray(one[name]), np.asarray(other[name])), (key, name)


def check_against_alone(model, keys, X, y, cuts, backend=None, **options):
    """Scores of every call, then models, predictions and decision functions."""
    bank, alone = ModelBank(model, **options), Alone(model)
    for rows in np.split(np.arange(len(X)), cuts):
        targets = None if y is None else y[rows]
        assert np.array_equal(bank.learn(keys[rows], X[rows], targets), alone.learn(keys[rows], X[rows], targets))
    assert backend is None or bank.backend == backend
    assert sorted(bank.keys()) == sorted(alone.models)
    assert len(bank) == len(alone.models)
    same_models(bank, alone.models, X)
    for key, model in alone.models.items():
        said = model.predict(X)
        assert np.array_equal(bank.predict([key] * len(X), X), said)
        if hasattr(model, "decision_function") and np.ndim(found := bank.score([key] * len(X), X)) == 1:
            assert np.array_equal(found, model.decision_function(X))
    return bank


@pytest.mark.parametrize("scaled", [False, True], ids=["plain", "scaled"])
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_every_estimator(part, scaled):
    """Every estimator of the package, alone and behind a scaler, with classes that appear one by one."""
    X, y = data(part, classes=3 if part in MANY else 2, count=160)
    model = made(part)
    if scaled:
        X, model = X * [1.0, 50.0] + [0.0, 1000.0], pipeline(OnlineScaler(forget=0.01), model)
    backend = "estimators" if part in ADDITIVE else "native"
    check_against_alone(model, keyed(160), X, y, [3, 60, 61, 140], backend, threads=2)


@pytest.mark.parametrize("part", [part for part in FOUND if part not in ADDITIVE], ids=name_of)
def test_a_width_for_each_key(part):
    """gamma="scale" settles on the first rows of each key, and float32 rows stay float32."""
    X, y = data(part, classes=3 if part in MANY else 2, count=160)
    model = pipeline(OnlineScaler(), part("gaussian", budget=10)) if part in DETECTORS else part("laplace", budget=10)
    keys = keyed(160)
    bank = check_against_alone(model, keys, X.astype(np.float32), y, [120], "native")
    gammas = {last_of(bank.model(key)).learner_.kernel.gamma for key in KEYS}
    assert len(gammas) > 1
    assert last_of(bank.model("a")).support_vectors_.dtype == np.float32


@pytest.mark.parametrize("budget", examples("budget"), ids=label)
def test_every_budget(budget):
    """Numbers, classes that come one by one and detection, as far as a budget takes them: none is wrong."""

    def takes(model, loss=None):
        try:
            model._start(loss)
        except ValueError:
            return False
        return True

    backend = "estimators" if isinstance(budget, (Auto, Fourier, Nystrom)) else "native"
    learned = 0
    for part in (SILKRegressor, NORMADetector, SVMDClassifier, KernelPerceptron):
        model = part(Gaussian(0.5), budget=budget)
        if takes(model):
            several = part in MANY and takes(model, model._loss_many(None))
            X, y = data(part, classes=3 if several else 2, count=120)
            check_against_alone(model, keyed(120), X, y, [50], backend)
            learned += 1
    assert learned


def test_what_is_taken_by_default():
    """The estimators as they are, but for the width of their kernels, are compiled."""
    for part in FOUND:
        X, y = data(part, classes=3 if part in MANY else 2, count=20)
        bank = ModelBank(part())
        bank.learn(keyed(20), X, y)
        assert bank.backend == ("estimators" if part in ADDITIVE else "native"), part


@pytest.mark.parametrize("options", scaler_options(), ids=str)
def test_every_scaler(options):
    """Whatever a scaler does to rows, it does in a bank."""
    X, y = data(SILKRegressor, count=120)
    model = pipeline(OnlineScaler(**options), SILKRegressor(Gaussian(0.5), budget=9))
    check_against_alone(model, keyed(120), X * [1.0, 50.0], y, [50])


@pytest.mark.parametrize("kernel", examples("kernel", one_each=True), ids=label)
def test_every_kernel(kernel):
    X, y = data(SILKRegressor, count=120)
    X = fitted(kernel, X)
    check_against_alone(SILKRegressor(kernel, budget=9), keyed(120), X, y, [50])


@pytest.mark.parametrize(
    "model",
    [
        SILKRegressor(Gaussian(0.5), budget=9, average=True),
        SILKRegressor(Gaussian(0.5), budget=9, schedule=lambda t: t**-0.6),
        SILKRegressor(user_kernel, budget=9),
        pipeline(OnlineScaler(), OnlineScaler(), SILKRegressor(Gaussian(0.5), budget=9)),
    ],
    ids=["average", "schedule", "kernel", "two scalers"],
)
def test_what_the_core_does_not_have(model):
    """Anything else learns in estimators, and says so."""
    X, y = data(SILKRegressor, count=120)
    check_against_alone(model, keyed(120), X, y, [50], "estimators", threads=2)


# ------------------------------------------------------------------------------------------------------- how rows come


@settings(max_examples=25)
@given(st.data())
def test_any_way_to_the_same_bytes(folder, data):
    """Cuts into calls, threads, a memory limit, a file, a restart: the models are the same bytes."""
    rng = np.random.default_rng(data.draw(st.integers(0, 5)))
    rows = 400
    keys, X = rng.zipf(1.3, rows) % 50, rng.normal(size=(rows, 3)).astype(np.float32)
    y = np.array(["x", "y", "z"])[rng.integers(0, 3, rows)]
    budget = data.draw(st.sampled_from([5, Project(5), Merge(5)]))
    model = pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.3), budget=budget))
    whole = ModelBank(model, threads=1)
    scores = whole.learn(keys, X, y)
    expected = {key: whole.dump(key) for key in whole}

    cuts = sorted(data.draw(st.lists(st.integers(1, rows - 1), max_size=6, unique=True)))
    path = os.path.join(folder, f"{os.urandom(8).hex()}.sqlite")
    options = {"threads": data.draw(st.integers(1, 3)), "memory": data.draw(st.sampled_from([None, 1, 9000, 10**7]))}
    bank = ModelBank(model, path=path, **options)
    for part in np.split(np.arange(rows), cuts):
        found = bank.learn(keys[part], X[part], y[part], offset=int(part[-1]) + 1)
        if found.ndim == 2:
            assert np.array_equal(found, scores[part])
        if data.draw(st.booleans()):
            bank.commit()
            if data.draw(st.booleans()):
                bank.close()
                bank = ModelBank(model, path=path, **options)
                assert bank.offset == int(part[-1]) + 1
    assert {key: bank.dump(key) for key in bank} == expected
    if options["memory"] is not None:
        assert bank._shelf.held <= options["memory"]
    bank.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("banks")


def test_order():
    """Rows that arrive in any order within a call are learned by ``order``; equal ones as they came."""
    X, y = data(SILKRegressor, count=200)
    keys, when = keyed(200), np.arange(200) // 2
    bank, shuffled = (ModelBank(SILKRegressor(Gaussian(0.5), budget=9)) for _ in range(2))
    scores = bank.learn(keys, X, y)
    mixed = np.random.default_rng(0).permutation(100)
    rows = np.column_stack([2 * mixed, 2 * mixed + 1]).ravel()
    days = np.array([datetime.date(2020, 1, 1) + datetime.timedelta(days=int(day)) for day in when])
    for times in (when, when.astype("datetime64[s]"), np.char.zfill(when.astype(str), 4), days):
        shuffled = ModelBank(SILKRegressor(Gaussian(0.5), budget=9))
        assert np.array_equal(shuffled.learn(keys[rows], X[rows], y[rows], order=times[rows]), scores[rows])
        assert all(bank.dump(key) == shuffled.dump(key) for key in bank)
    for wrong, place in (([1.0, np.nan], 1), ([None, 3], 0), (np.array(["2020", "NaT"], "M8[D]"), 1)):
        bank = ModelBank(SILKRegressor(Gaussian(0.5)), errors="report")
        bank.learn(["a", "b"], X[:2], y[:2], order=wrong)
        assert [error.position for error in bank.errors] == [place]
    with pytest.raises(ValueError, match="order"):
        bank.learn(["a", "b"], X[:2], y[:2], order=["x", datetime.date(2020, 1, 1)])


def test_a_heavy_key_beside_many_light_ones():
    """One key with 20,000 rows beside 3,000 with one row each."""
    rng = np.random.default_rng(0)
    keys = np.where(rng.random(23000) < 20 / 23, -1, np.arange(23000))
    X = rng.normal(size=(23000, 2))
    y = np.sin(X[:, 0])
    model = SILKRegressor(Gaussian(0.5), budget=8)
    bank = ModelBank(model, threads=2)
    scores = bank.learn(keys, X, y)
    alone = clone(model)
    heavy = keys == -1
    assert np.array_equal(scores[heavy], alone.predict_learn(X[heavy], y[heavy]))
    same_models(bank, {-1: alone}, X[:10])
    assert len(bank) == (~heavy).sum() + 1
    assert not scores[~heavy].any()


@pytest.mark.parametrize("names", [
    np.array([-3, 5, 7, -100], dtype=np.int8), np.array([2**64 - 1, 0, 7], dtype=np.uint64),
    np.array([-(2**63), 2**63 - 1, 0]), np.arange(70_000) * 3,
], ids=["int8", "uint64", "int64", "many"])  # fmt: skip
def test_numbers_as_keys(names):
    """Arrays of numbers are gathered as the same numbers in a list are, also with bad rows between and an order."""
    rng = np.random.default_rng(0)
    keys = rng.permutation(np.concatenate([names, names[::2]]))
    X = rng.normal(size=(len(keys), 2))
    X[3] = np.nan
    order = rng.integers(0, 5, len(keys))
    banks = [ModelBank(SILKRegressor(Gaussian(0.5), budget=5), errors="report") for _ in range(2)]
    scores = [bank.learn(some, X, X[:, 0], order) for bank, some in zip(banks, (keys, keys.tolist()), strict=True)]
    assert np.array_equal(*scores, equal_nan=True)
    assert sorted(banks[0]) == sorted(banks[1])
    assert banks[0].errors == banks[1].errors
    assert [(type(error.key), error.position) for error in banks[0].errors] == [(int, 3)]
    assert all(banks[0].dump(key) == banks[1].dump(key) for key in list(banks[0])[:50])


def test_kinds_of_keys(tmp_path):
    """Ints, texts and bytes are keys, and 1, "1" and b"1" are three, also in a file."""
    keys = [1, "1", b"1", -(2**63), "", "ü", 1]
    X = np.arange(7.0)[:, None]
    with ModelBank(NORMADetector(Gaussian(0.5)), memory=1, path=tmp_path / "b") as bank:
        bank.learn(keys, X)
        assert len(bank) == 6
        assert 1 in bank
        assert "1" in bank
        assert 2 not in bank
        assert None not in bank
        assert [] not in bank
        assert bank.model(1).n_seen_ == 2
        assert bank.model("1").n_seen_ == 1
        bank.commit()
    with ModelBank(NORMADetector(Gaussian(0.5)), path=tmp_path / "b") as bank:
        assert set(bank.keys()) == set(keys)
        bank.drop("1")
        assert "1" not in bank
        assert len(bank) == 5
        bank.learn(np.array([1, 2], dtype=np.uint8), X[:2])
        bank.learn([np.int32(1), np.str_("t")], X[:2])
        assert bank.model(1).n_seen_ == 4
        assert len(bank) == 7
    for wrong in ([1.5, 2], [None, 2], [(1, 2), 2], "ab", [[1], [2]], [1]):
        with pytest.raises(ValueError, match="keys"):
            ModelBank(NORMADetector()).learn(wrong, X[:2])


# ------------------------------------------------------------------------------------------------------------ bad rows

BAD = {
    "nan": ([np.nan, 0.0], 0.5), "infinite": ([0.0, np.inf], 0.5), "text": (["no", 0.0], 0.5), "short": ([0.0], 0.5),
    "target": ([0.0, 1.0], np.nan), "target text": ([0.0, 1.0], "high"), "too large to scale": ([1e200, 0.0], 0.5),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row(case):
    """Raised, it changes nothing at all; reported, it is as if it had not come."""
    X, y = data(SILKRegressor, count=60)
    model = pipeline(OnlineScaler(), SILKRegressor(Gaussian(0.5), budget=9))
    keys, (x, target) = [*keyed(60).tolist(), "bad", "a"], BAD[case]
    rows = [*X.tolist(), x, x]
    targets = [*y.tolist(), target, target]
    strict, lenient, without = ModelBank(model), ModelBank(model, errors="report"), ModelBank(model)
    for bank in (strict, lenient, without):
        bank.learn(keys[:30], X[:30], y[:30], offset=1)
    before = {key: strict.dump(key) for key in strict}
    with pytest.raises(ValueError, match="row 60, of key 'bad'"):
        strict.learn(keys, rows, targets, offset=2)
    assert {key: strict.dump(key) for key in strict} == before
    assert strict.offset == 1
    found = lenient.learn(keys[30:], rows[30:], targets[30:], offset=2)
    assert np.isnan(found[-2:]).all()
    assert lenient.offset == 2
    assert [(error.key, error.position) for error in lenient.errors] == [("bad", 30), ("a", 31)]
    assert all("must be" in error.message for error in lenient.errors)
    assert np.array_equal(found[:30], without.learn(keys[30:60], X[30:], y[30:]))
    assert {key: lenient.dump(key) for key in lenient} == {key: without.dump(key) for key in without}
    lenient.learn(keys[:3], X[:3], y[:3])
    assert lenient.errors == []


def test_a_row_too_large_for_the_kernel():
    """k(x, x) must be finite."""
    X, y = data(SILKRegressor, count=20)
    X[7] = 1e20
    bank = ModelBank(SILKRegressor(Polynomial(9), budget=9), errors="report")
    scores = bank.learn(np.arange(20) % 2, X, y)
    assert [error.position for error in bank.errors] == [7]
    assert np.flatnonzero(np.isnan(scores)).tolist() == [7]
    assert bank.model(1).n_seen_ == 9
    assert bank.backend == "native"


def test_labels_that_may_not_come():
    """With classes given, others are bad rows; so is a third class for who knows two, or a label of another kind."""
    X, _ = data(SILKClassifier, count=6)
    keys = [1, 1, 1, 2, 2, 2]
    bank = ModelBank(SILKClassifier(Gaussian(0.5)), errors="report", classes=["a", "b", "c"])
    scores = bank.learn(keys, X, np.array(["a", "d", "b", "c", "a", "b"]))
    assert bank.errors[0][:2] == (1, 1)
    assert "one of the classes ['a', 'b', 'c']" in bank.errors[0].message
    assert np.isnan(scores[1]).all()
    assert np.isfinite(scores[[0, 2, 3, 4, 5]]).all()
    two = next(part for part in CLASSIFIERS if part not in MANY)
    for model in (two(Gaussian(0.5)), KernelPerceptron(Gaussian(0.5), budget=Forgetron(2))):
        bank = ModelBank(model, errors="report")
        scores = bank.learn(keys, X, np.array(["a", "b", "c", "c", "a", "c"]))
        assert bank.backend == "native"
        assert [error[:2] for error in bank.errors] == [(1, 2)]
        assert "two classes" in bank.errors[0].message
        bank = ModelBank(model, errors="report", classes=["a", "b", "c"])
        bank.learn(keys, X, np.array(["a", "b", "c", "c", "a", "c"]))
        assert len(bank.errors) == 6
    bank = ModelBank(SILKClassifier(Gaussian(0.5)), errors="report")
    bank.learn(keys, X, ["a", None, "b", 3, np.nan, "a"])
    assert [error.position for error in bank.errors] == [1, 3, 4]
    assert bank.classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
def test_classes_given(part):
    """As partial_fit with classes: the scores of the estimators that know them from the start."""
    classes = ["aa", "b", "c"] if part in MANY else ["aa", "b"]
    X, y = data(part, classes=len(classes), count=60)
    bank, keys = ModelBank(made(part), classes=classes), keyed(60)
    bank.learn(keys, X, y)
    for key in KEYS:
        model, rows = made(part), keys == key
        model.partial_fit(X[rows], y[rows], classes=classes)
        assert np.array_equal(bank.score([key] * 60, X), model.decision_function(X))
        assert np.array_equal(bank.predict([key] * 60, X), model.predict(X))
        assert bank.model(key).classes_.tolist() == classes


def test_costs():
    """A cost matrix needs the classes; a taxonomy brings them."""
    cost = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 1.5], [0.3, 0.7, 0.0]])
    X, y = data(SILKClassifier, classes=3)
    model = SILKClassifier(Gaussian(0.5), cost=cost, budget=9)
    with pytest.raises(ValueError, match="classes"):
        ModelBank(model).learn(keyed(60), X, y)
    bank = ModelBank(model, classes=["aa", "b", "c"])
    bank.learn(keyed(60), X, y)
    tree = clone(model).set_params(cost=taxonomy({"ab": ["aa", "b"], "rest": ["c"]}))
    trees = ModelBank(tree)
    trees.learn(keyed(60), X, y)
    rows = keyed(60) == "a"
    for found, alone in ((bank, clone(model)), (trees, clone(tree))):
        alone.partial_fit(X[rows], y[rows], classes=["aa", "b", "c"])
        assert found.backend == "native"
        assert np.array_equal(found.score(["a"] * 60, X), alone.decision_function(X))


def test_rows_of_unknown_keys():
    """A prediction needs a model: raised or reported."""
    X, y = data(SILKClassifier, count=60)
    for model, targets, nothing in [
        (SILKClassifier(Gaussian(0.5)), y, None), (SILKRegressor(Gaussian(0.5)), np.arange(60.0), np.nan),
        (NORMADetector(Gaussian(0.5)), None, 0),
    ]:  # fmt: skip
        strict, lenient = ModelBank(model), ModelBank(model, errors="report")
        for bank in (strict, lenient):
            bank.learn(keyed(60), X, targets)
        with pytest.raises(ValueError, match="'nobody'"):
            strict.predict(["a", "nobody"], X[:2])
        found = lenient.predict(["a", "nobody"], X[:2])
        assert [error[:2] for error in lenient.errors] == [("nobody", 1)]
        assert found[0] == strict.predict(["a"], X[:1])[0]
        assert found[1] is nothing or found[1] == nothing or np.isnan(found[1])
        assert np.isnan(lenient.score(["a", "nobody"], X[:2])[1])
