"""A loaded model goes on as if it had never stopped."""

import copy
import hashlib
import itertools
import json
import math
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from parts import KINDS, agree, assert_same, classes, cut, examples, fitted, rule_for, stream, user_kernel
from test_estimators import FOUND, LABELS, MANY, data, made, name_of, snapshot

import gossamer
from gossamer import Learner, SILKClassifier, store, taxonomy
from gossamer.budgets import Smallest
from gossamer.kernels import Custom, Gaussian, Kernel, Linear
from gossamer.losses import Hinge, Multiclass, Squared
from gossamer.rules import Gradient, Implicit
from gossamer.store.nodes import known_classes

HERE = Path(__file__).parents[1] / "data"


def storable(part):
    try:
        store.dumps(part)
    except ValueError:
        return False
    return True


#: Every part that holds no function of a user.
GOOD = {kind: [part for part in examples(kind) if storable(part)] for kind in KINDS}


def again(model):
    return store.loads(store.dumps(model))


# ---------------------------------------------------------------------------------------------------------- laws


def test_every_part_is_known():
    """A file may name every public part and estimator, each by a name of its own, and nothing else."""
    known = known_classes(everything=True)
    wanted = {part for kind in KINDS for part in classes(kind)} | {*FOUND, Learner, gossamer.Taxonomy}
    assert wanted <= set(known.values())
    assert all(part.__module__.startswith("gossamer.") for part in known.values())
    assert {name for name in known if "." not in name} >= {part.__name__ for part in wanted}


@pytest.mark.parametrize("kind", KINDS)
def test_parts(kind):
    """A part comes back equal, also with NumPy numbers in it; only those with functions of a user cannot be stored."""
    for part in GOOD[kind]:
        assert again(part) == part
        assert type(again(part)) is type(part)
        assert repr(again(part)) == repr(part)
    left = [part for part in examples(kind) if part not in GOOD[kind]]
    assert all("user_" in repr(part) for part in left)


def assert_goes_on(learner, other, X, y):
    """Two learners that must be the same, now and after more rows, to the bit."""
    assert other.backend == learner.backend
    assert_same(other.state(), learner.state())
    assert np.array_equal(other.learn(X, y), learner.learn(X, y), equal_nan=True)
    assert np.array_equal(other.score(X), learner.score(X), equal_nan=True)
    if learner.average:
        assert np.array_equal(other.score(X, average=True), learner.score(X, average=True))
    assert other.to_bytes() == learner.to_bytes()


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_part_goes_on(kind, backend):
    """Stored in mid-stream, with every setting of every part: same scores and same bytes ever after."""
    for part in GOOD[kind]:
        parts = {"kernel": Gaussian(0.4), "loss": Hinge(), "rule": Implicit(C=0.7, reg=0.1), "budget": Smallest(5)}
        parts[kind] = part
        for loss in (parts["loss"], Squared(), Multiclass(), Multiclass(classes=4)):
            if kind == "loss" or agree(loss, parts["rule"], parts["budget"]):
                parts["loss"] = loss if kind != "loss" else part
                break
        if not agree(parts["loss"], parts["rule"]):
            parts["rule"] = Gradient(0.2, 0.1)
        parts["rule"] = rule_for(parts["budget"], parts["rule"], parts["loss"])
        X, y = stream(parts["loss"], 60, seed=1)
        X = fitted(parts["kernel"], X)
        learner = Learner(**parts, backend=backend)
        learner.learn(X[:30], cut(y, slice(30)))
        assert_goes_on(learner, again(learner), X[30:], cut(y, slice(30, None)))


@settings(max_examples=80)
@given(st.data())
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_learners_go_on(backend, data):
    """Any parts together, stored at any place, also before the first row."""
    loss = data.draw(st.sampled_from(GOOD["loss"]))
    rule = data.draw(st.sampled_from([rule for rule in GOOD["rule"] if agree(loss, rule)]))
    kernel = data.draw(st.sampled_from(GOOD["kernel"]))
    budget = data.draw(st.sampled_from([budget for budget in GOOD["budget"] if agree(loss, rule, budget, kernel)]))
    average = data.draw(st.sampled_from([False, True, "sparse"]))
    track_norm = budget.limit is not None and data.draw(st.booleans())
    X, y = stream(loss, 60, data.draw(st.integers(0, 1000)), dtype=data.draw(st.sampled_from([np.float32, np.float64])))
    X, at = fitted(kernel, X), data.draw(st.integers(0, 59))
    learner = Learner(kernel, loss, rule, budget, average=average, track_norm=track_norm, backend=backend)
    if at:
        learner.learn(X[:at], cut(y, slice(at)))
    assert_goes_on(learner, again(learner), X[at:], cut(y, slice(at, 60)))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_estimators_go_on(part, classes, tmp_path):
    """Every estimator, from a file, from bytes, by pickle and by copy, before, between and after its rows."""
    if classes == 3 and part not in MANY:
        return
    X, y = data(part, classes)
    model = made(part)
    for rows in (slice(0, 25), slice(25, 40), slice(40, 60)):
        model.save(tmp_path / "model.gsm")
        others = [gossamer.load(tmp_path / "model.gsm"), part.from_bytes(model.to_bytes())]
        others += [pickle.loads(pickle.dumps(model)), copy.copy(model), copy.deepcopy(model)]
        shared = others.pop(-2)  # a copy shares what was learned, as those of scikit-learn do
        assert shared.get_params() == model.get_params()
        scores = model.predict_learn(X[rows], cut(y, rows))
        for other in others:
            assert type(other) is part
            assert repr(other) == repr(model)
            assert np.array_equal(other.predict_learn(X[rows], cut(y, rows)), scores)
            assert_same(snapshot(other, X), snapshot(model, X))
            assert other.to_bytes() == model.to_bytes()
    assert np.array_equal(gossamer.from_bytes(model.to_bytes()).predict(X), model.predict(X))


@pytest.mark.parametrize("names", [
    *LABELS.values(), np.array([3, 1, 2], np.int8), np.array([3, 1, 2], np.uint16), np.array([0.5, 2, 1], np.float32),
    np.array(["aé", "\U0001f600", ""]), [np.int32(5), np.int32(2), np.int32(9)], np.array(["b", "a", "c"], object),
], ids=repr)  # fmt: skip
def test_labels(names):
    """Labels come back with their type, and so do predictions."""
    X, y = data(SILKClassifier, len(names), names)
    y = np.array([names[0], names[1]] * 30) if len(names) == 2 else y.astype(np.asarray(names).dtype)
    model = made(SILKClassifier).partial_fit(X, y)
    other = again(model)
    assert other.classes_.dtype == model.classes_.dtype
    assert np.array_equal(other.classes_, model.classes_)
    assert [type(name) for name in other._order] == [type(name) for name in model._order]
    assert np.array_equal(other.predict(X), model.predict(X))
    assert other.predict(X).dtype == model.predict(X).dtype


def test_costs_and_taxonomies():
    """Structured costs are stored, also large ones."""
    X, y = data(SILKClassifier, 3)
    tree = taxonomy({"letters": ["c", "aa"], "b": None})
    for cost in (tree, np.array(tree.cost), tree.cost):
        model = made(SILKClassifier, cost=cost).fit(X, y)
        assert np.array_equal(again(model).decision_function(X), model.decision_function(X))
    wide = Multiclass(np.ones((60, 60)) - np.eye(60))
    assert again(wide) == wide
    assert len(store.dumps(wide)) < 60 * 60 * 8 + 10_000


scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(),
    st.sampled_from([np.float32(0.1), np.float64("inf"), np.float16(-0.0), np.int8(-3), np.uint64(2**64 - 1),
                     np.bool_(True), np.str_("x"), np.str_(""), Gaussian(0.5)]),
)  # fmt: skip
ARRAYS = [
    np.arange(6.0).reshape(2, 3), np.zeros((0, 3)), np.array(2.0), np.array([True, False]), np.array(["a", "bcd"]),
    np.arange(4, dtype=">i2"), np.array(["x", None, 2], object), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.array([np.nan, np.inf, -0.0], np.float32), np.zeros((2, 0, 3), np.uint8), np.arange(5)[::-2],
]  # fmt: skip
values = st.recursive(
    scalars | st.sampled_from(ARRAYS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=20), st.lists(inner, max_size=3).map(tuple), st.dictionaries(st.text(), inner),
        st.dictionaries(st.integers(-5, 5), inner, max_size=3),
    ),
    max_leaves=12,
)  # fmt: skip


def assert_equal(one, other):
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype.newbyteorder("<") == other.dtype.newbyteorder("<")
        assert one.shape == other.shape
        assert one.tolist() == other.tolist() or one.tobytes() == other.tobytes()
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_equal(a, b)
    elif isinstance(one, dict):
        assert_equal(list(one), list(other))
        assert_equal(list(one.values()), list(other.values()))
    elif isinstance(one, (float, np.floating)):
        assert np.array_equal(one, other, equal_nan=True)
        assert np.signbit(one) == np.signbit(other) or math.isnan(one)
    else:
        assert one == other


@given(values)
def test_values(value):
    """Plain data come back equal, of the same types, in the same bytes."""
    assert_equal(again(value), value)
    assert store.dumps(again(value)) == store.dumps(value)


@given(st.lists(st.floats(), min_size=16) | st.lists(st.integers(-(2**63), 2**63 - 1), min_size=16))
def test_long_lists(value):
    """Many numbers are stored as an array, and come back as what they were."""
    assert_equal(again(value), value)
    assert_equal(again(tuple(value)), tuple(value))


def test_models_in_a_dict():
    """A model and a position in one file: a checkpoint."""
    X, y = data(SILKClassifier)
    model = made(SILKClassifier).fit(X, y)
    found = again({"model": model, "position": 17, "more": [model.learner_, None]})
    assert found["position"] == 17
    assert found["model"].to_bytes() == model.to_bytes()
    assert found["more"][0].to_bytes() == model.learner_.to_bytes()


def test_a_diverged_model():
    """Infinite coefficients are stored too: loading is no place to judge a model."""
    learner = Learner(Linear(), Squared(), Gradient(1e9, 0.0, shorten=False))
    X, y = stream(Squared(), 80, seed=1)
    with np.errstate(all="ignore"):
        learner.learn(100 * X, y)
        assert not np.isfinite(learner.coefs).all()
        assert_same({"raw": again(learner).coefs.tobytes()}, {"raw": learner.coefs.tobytes()})


@pytest.mark.parametrize("path", sorted(HERE.glob("store-v*.gsm")), ids=lambda path: path.name)
def test_files_of_every_version_load(path):
    """A file once written loads for ever, says what it said then, and goes on."""
    facts = json.loads(path.with_suffix(".json").read_text())
    found = gossamer.load(path)
    rows = np.array(facts["rows"])
    assert found.pop("position") == 60
    for name, model in found.items():
        if name == "learner":
            said, more = model.score(rows), model.learn(rows, np.ones(5))
        else:
            said = model.predict(rows) if name == "regressor" else model.decision_function(rows)
            labels = {"classifier": ["low", "high", "new", "new", "low"], "detector": None}.get(name, np.ones(5))
            more = model.predict_learn(rows, labels)
        np.testing.assert_allclose(said, facts["said"][name], rtol=1e-5 if name == "regressor" else 1e-9)
        assert np.isfinite(np.asarray(more)[:2]).all() or name == "classifier"
    assert found["classifier"].classes_.tolist() == ["high", "low", "middle", "new"]
    assert store.inspect(path)["version"] == int(path.stem.removeprefix("store-v"))


def test_every_version_has_a_file():
    found = [path.stem for path in sorted(HERE.glob("store-v*.gsm"))]
    assert found == [f"store-v{version + 1}" for version in range(store.VERSION)]


def test_files_of_every_release_load():
    """All models of a released version load; what they say is hashed by tests/golden.py."""
    for path in HERE.glob("store-[0-9]*.gsm"):
        assert store.dumps(store.load(path))
    assert (HERE / "store-0.1.0.gsm").exists()


def test_the_format_is_as_documented():
    """A reader written from docs/store.md alone finds every number."""
    X, y = data(SILKClassifier, 3)
    model = made(SILKClassifier).fit(X, y)
    raw = model.to_bytes()
    assert raw[:8] == b"\x89GSM\r\n\x1a\n"
    version, length, total = struct.unpack("<IIQ", raw[8:24])
    assert (version, total) == (1, len(raw))
    assert raw[24 + length :][:32] == hashlib.sha256(raw[: 24 + length]).digest()
    assert raw[-32:] == hashlib.sha256(raw[:-32]).digest()
    header, at = json.loads(raw[24 : 24 + length].decode("utf-8")), 24 + length + 32
    arrays = {}
    for entry in header["arrays"]:
        count = math.prod(entry["shape"])
        arrays[entry["name"]] = np.frombuffer(raw, entry["dtype"], count, at).reshape(entry["shape"])
        at += arrays[entry["name"]].nbytes
    assert at == len(raw) - 32
    state = model.learner_.state()
    for name in ("raw", "points", "births", "kappas"):
        assert np.array_equal(arrays[f"learner_.{name}"], getattr(state, name))
    learned = header["value"]["learned"]["learner_"]["learned"]
    assert {name: learned[name] for name in ("scale", "steps")} == {"scale": state.scale, "steps": state.steps}


def test_inspect(tmp_path):
    """What a file says about itself, without its model."""
    X, y = data(SILKClassifier)
    model = SILKClassifier(0.5 * Gaussian(np.float32(0.5)), C=math.inf, budget=20).fit(X, y)
    model.save(tmp_path / "m.gsm")
    facts = store.inspect(tmp_path / "m.gsm")
    assert (facts["version"], facts["gossamer"], facts["class"]) == (1, gossamer.__version__, "SILKClassifier")
    assert facts["bytes"] == (tmp_path / "m.gsm").stat().st_size
    assert facts["parameters"]["C"] == math.inf
    assert facts["parameters"]["kernel"] == "Scaled(base=Gaussian(gamma=0.5), factor=0.5)"
    assert facts["learned"]["learner_"]["learned"]["steps"] == 60
    assert {"name": "learner_.points", "dtype": "<f8", "shape": [20, 2]} in facts["arrays"]
    store.save({"model": model, "position": (3, 4.5)}, tmp_path / "m.gsm")
    facts = store.inspect(tmp_path / "m.gsm")["value"]
    assert facts["position"] == [3, 4.5]
    assert facts["model"]["class"] == "SILKClassifier"


# ------------------------------------------------------------------------------------------------ what cannot be stored


class Mine(Kernel):
    """A kernel of a user."""


@pytest.mark.parametrize(("model", "where"), [
    (SILKClassifier(user_kernel), "'kernel' parameter of SILKClassifier"),
    (SILKClassifier(Linear() + Custom(user_kernel)), "'function' parameter of Custom"),
    (SILKClassifier(Mine()), "'kernel' parameter of SILKClassifier"),
    (gossamer.NORMARegressor(schedule=lambda t: 1 / t), "'schedule' parameter of NORMARegressor"),
    (Learner(user_kernel, Hinge(), Gradient()), "'function' parameter of Custom"),
    (Learner(Linear(), Hinge(), Gradient(schedule=lambda t: 1.0)), "'schedule' parameter of Gradient"),
    (object(), "'value' parameter of dumps"),
    ({"x": [1, {2}]}, "parameter of dumps"),
    ({"x": 2**64}, "'x' parameter of dumps"),
    (np.array([1j]), "'value' parameter of dumps"),
    (np.array(["2026-01-01"], "M8[D]"), "'value' parameter of dumps"),
    (np.longdouble(1), "'value' parameter of dumps"),
    (type("Sub", (dict,), {})(), "'value' parameter of dumps"),
    (SILKClassifier, "'value' parameter of dumps"),
], ids=lambda case: case if isinstance(case, str) else type(case).__name__)  # fmt: skip
def test_what_cannot_be_stored_says_so(model, where, tmp_path):
    """The error names the part and the way out, and no file is made or changed."""
    (tmp_path / "m.gsm").write_bytes(b"old")
    with pytest.raises(ValueError, match=f"{where} must be plain data or a part of Gossamer.*pickle"):
        store.save(model, tmp_path / "m.gsm")
    assert [path.name for path in tmp_path.iterdir()] == ["m.gsm"]
    assert (tmp_path / "m.gsm").read_bytes() == b"old"


def test_circles_and_depth():
    """A value inside itself is refused; one that is deep but finite is not."""
    circle = []
    circle.append(circle)
    with pytest.raises(ValueError, match="100 deep"):
        store.dumps(circle)
    kernel = Linear()
    for _ in range(60):
        kernel = kernel + Gaussian(0.5)
    assert again(kernel) == kernel


def test_what_is_stored_can_be_loaded():
    """The limits of writing are those of reading, to the last level."""
    leaves = [1, math.nan, np.float64("nan"), np.str_(""), np.zeros(0), [0] * 16, (0.5,) * 16, np.array(["a"], object)]
    for value, wrap in itertools.product(leaves, (lambda v: [v], lambda v: (v,), lambda v: {"a": v})):
        for _ in range(105):
            value = wrap(value)
            try:
                raw = store.dumps(value)
            except ValueError:
                break
            store.loads(raw)
        else:
            pytest.fail("no limit")
