"""A forged file is refused or works, and loading costs no more than a constant times the file, whatever it says.

The long version of the first law is tests/long/fuzz_store.py.
"""

import contextlib
import copy
import pickle
import time

import cases
import forge
import fuzz_store
import joblib
import numpy as np
import pytest
from forge import FACTOR, ROOM, places, sealed, split, subjects

from gossamer import AdditiveRegressor, Learner, store
from gossamer._engine import check_state as _state
from gossamer.budgets import Nystrom, Smallest
from gossamer.kernels import Additive, Exponential, Gaussian, Matern
from gossamer.losses import Hinge, Squared
from gossamer.rules import ROMMA, Gradient, Implicit
from gossamer.store import files, nodes

#: What a parameter that is a number may be made: what would be too much of anything.
LARGE = (10**4, 10**6 + 1, 2**31 - 1, 10**9, 2**62, 1e12)


def test_every_subject_works():
    """What was saved can be loaded, and used."""
    assert {name: forge.attempt(raw) for name, raw in subjects().items()} == dict.fromkeys(subjects(), "works")


def test_every_subject_is_copied():
    """Copies, and what comes back from a pickle, have the bytes of the value."""
    for name, raw in subjects().items():
        value = store.loads(raw)
        for copied in (copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert store.dumps(copied) == raw, name


def test_every_subject_is_mapped(tmp_path):
    """What joblib loads with its arrays mapped, read-only, has the bytes of the value and works as it does."""
    for name, raw in subjects().items():
        joblib.dump(store.loads(raw), tmp_path / "value.joblib")
        found = []
        for value in (store.loads(raw), joblib.load(tmp_path / "value.joblib", mmap_mode="r")):
            assert store.dumps(value) == raw, name
            with np.errstate(all="ignore"):
                forge.use(value)
            found.append(store.dumps(value))
        assert found[0] == found[1], name


def test_every_class_is_forged():
    """Every class that a file may name is in one of the files that are forged."""
    functions = {"Custom"}  # has a function of the user and is never stored
    assert set(nodes.known_classes(everything=True)) - set(forge.class_names()) == functions


@pytest.mark.parametrize("part", range(4))
def test_forged_files(part):
    """Refused with a ValueError, or what was loaded predicts, learns and can be saved; nothing else."""
    results, findings = cases.campaign(fuzz_store.case, 400, 60.0, first=7 * 10**9 + 400 * part, quiet=True)
    assert not findings
    assert results["refused"] > 100 < results["works"] + 100


DIVERGED = [(name, value) for name in sorted(forge.learners()) for value in (np.inf, -np.inf, np.nan, 1e308, -1e300)]


def diverged(number):
    """A learner of each kind whose coefficients have left all bounds, in part or all of them: it goes on, and ends."""
    name, value = DIVERGED[number]
    learner = copy.deepcopy(forge._learners()[name])
    state = learner.state()
    for rows in (slice(None), slice(0, 1)) if state is not None else ():
        state.raw[rows] = value
        learner.restore(state)
        with np.errstate(all="ignore"):
            forge.work(learner)
    return "works"


def test_diverged_models_end():
    """Whatever the numbers are, a row is learned in finite time."""
    results, findings = cases.campaign(diverged, len(DIVERGED), 90.0, quiet=True)
    assert not findings
    assert results["works"] == len(DIVERGED)


def parameters():
    """Every parameter of every class that can be stored, in a file that has it: name, header, arrays, place."""
    found = {}
    for raw in subjects().values():
        header, arrays = split(raw)
        for node, key in places(header):
            if key != "parameters" or not isinstance(node[key], dict):
                continue
            for name in node[key]:
                found.setdefault((node["class"], name), (header, arrays, node[key]))
        for node, key in places(header):
            if key == "learned" and isinstance(node[key], dict):
                for name, value in node[key].items():
                    if isinstance(value, (int, float)) or name == "shape":
                        found.setdefault((node["class"], name), (header, arrays, node[key]))
    return found


PARAMETERS = parameters()


@pytest.mark.parametrize("owner", sorted({owner for owner, _ in PARAMETERS}))
def test_what_a_parameter_costs(owner):
    """Every parameter of every class, and every number that was learned, made large: loading stays cheap."""
    tried = 0
    for (found, name), (header, arrays, node) in PARAMETERS.items():
        if found != owner:
            continue
        before = copy.deepcopy(node[name])
        for value in LARGE:
            made = [value] * len(before) if isinstance(before, list) and before else value
            node[name] = made
            raw = sealed(header, arrays)
            node[name] = before
            started = time.process_time()
            with cases.Limited(ROOM + FACTOR * len(raw)), contextlib.suppress(ValueError):
                store.loads(raw)
            assert time.process_time() - started < 1.0, (name, value)
            tried += 1
    assert tried or not any(found == owner for found, _ in PARAMETERS)


def large():
    """Honest models that need much more memory to work than they take in a file."""
    X = np.linspace(0.0, 1.0, 3000)[:, None]
    yield "norms", Learner(Gaussian(1e9), Hinge(), ROMMA(), Smallest(3000)), X, np.where(np.arange(3000) % 2, 1.0, -1.0)
    yield "dictionary", Learner(Gaussian(1e9), Squared(), Gradient(0.3), Nystrom(1300)), X[:1400], X[:1400, 0]
    wide = np.random.default_rng(0).uniform(size=(1500, 30))
    pairs = tuple((i, j) for i in range(30) for j in range(i))
    yield "trees", Learner(Additive(Exponential(), products=pairs), Squared(), Implicit()), wide, wide[:, 0]
    nothing = Learner(Additive(Matern(1.5)), Hinge(), Implicit(C=1e-9), backend="trees")
    yield "features", nothing, np.full((1, 2_000), 0.5), np.array([1.0])


@pytest.mark.parametrize("name", ["norms", "dictionary", "trees", "features"])
def test_large_models_wait(name, monkeypatch):
    """A model that needs more than its file is made when it is first used; until then it is as good as its bytes."""
    learner, X, y = next(found[1:] for found in large() if found[0] == name)
    learner.learn(X, y)
    raw = learner.to_bytes()
    if name == "features":  # or it would take long to make
        monkeypatch.setattr("gossamer.learner.AT_ONCE", 2**20)
    with cases.Limited(ROOM + FACTOR * len(raw)):
        again = store.loads(raw)
        assert again._waiting is not None
        assert (again.steps, again.features) == (learner.steps, X.shape[1])
        assert again.to_bytes() == raw
        assert again._waiting is not None
    assert np.array_equal(again.learn(X[:3], y[:3]), learner.learn(X[:3], y[:3]))
    assert again._waiting is None
    assert again.to_bytes() == learner.to_bytes()


def test_all_models_that_wait(monkeypatch):
    """Everything that can be saved, loaded as large models are: it goes on to the same bytes."""
    monkeypatch.setattr(_state, "AT_ONCE", -1)
    monkeypatch.setattr("gossamer.learner.AT_ONCE", -1)
    monkeypatch.setattr(_state, "work_bytes", lambda *_: 0)
    waited = 0
    for name, raw in subjects().items():
        value = store.loads(raw)
        learners = [model for model in forge.models(value) if isinstance(model, Learner) and model.steps]
        learners += [model.learner_ for model in forge.models(value) if hasattr(model, "learner_")]
        waited += sum(learner._waiting is not None for learner in learners)
        assert store.dumps(value) == raw, name
        assert forge.attempt(raw) == "works", name
    assert waited > 80


def test_a_waiting_model_in_threads():
    """Two threads that ask a waiting model at once make it once."""
    import threading

    learner, X, y = next(found[1:] for found in large() if found[0] == "norms")
    learner.learn(X, y)
    again = store.loads(learner.to_bytes())
    machines = []
    threads = [threading.Thread(target=lambda: machines.append(id(again._machine))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(machines)) == 1
    assert np.array_equal(again.score(X[:5]), learner.score(X[:5]))


def test_headers_of_many_nodes():
    """The largest headers there may be, full of the smallest nodes."""
    for item in (b"[]", b'["a",1]'):
        items = b",".join([item] * ((files.LARGEST_HEADER - 100) // (len(item) + 1)))
        raw = sealed(b'{"gossamer":"0","arrays":[],"value":[' + items + b"]}")
        with cases.Limited(ROOM + FACTOR * len(raw)), contextlib.suppress(ValueError):
            store.loads(raw)


def test_estimators_that_wait():
    """An additive model with many interactions."""
    X = np.random.default_rng(0).uniform(size=(800, 40))
    pairs = [(i, j) for i in range(40) for j in range(i)]
    model = AdditiveRegressor(products=pairs).partial_fit(X, X[:, 0])
    raw = model.to_bytes()
    with cases.Limited(ROOM + FACTOR * len(raw)):
        again = store.loads(raw)
    assert again.learner_._waiting is not None
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.predict_learn(X[:9], X[:9, 1]), model.predict_learn(X[:9], X[:9, 1]))
    assert again.to_bytes() == model.to_bytes()


def test_nodes_of_any_shape():
    """Whatever stands in the entries of a node: a value, or a sentence that says what it must be."""
    rng = np.random.default_rng(0)
    junk = [None, True, 0, -1, 2**70, 0.5, "", "inf", "<f8", "<U3", "Gaussian", [], [[]], [1], [1, 2, 3], [[1, 2]], {}]
    junk += [
        [["a", 1], ["a", 2]],
        [["a"]],
        [["a", 1, 2]],
        [[[], 1]],
        {"type": "dict"},
        {"type": "float", "value": "nan"},
    ]
    refused: list[str] = []
    entries = ("items", "value", "dtype", "index", "shape", "class", "parameters", "learned")
    for _ in range(20_000):
        node = {name: junk[rng.integers(len(junk))] for name in entries if rng.random() < 0.7}
        decoder = nodes.Decoder([np.zeros(2), np.zeros(())])
        try:
            decoder.value({"type": nodes.KINDS[rng.integers(len(nodes.KINDS))], **node})
        except ValueError as error:
            refused.append(str(error))
    assert 10_000 < len(refused) < 20_000
    assert [error for error in refused if " must be " not in error] == []
