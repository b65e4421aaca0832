"""Rows of the river face: features that come and go, frames, bad input, and models that go on."""

import copy
import itertools
import math
import pickle
import random

import numpy as np
import pytest
from test_estimators import DETECTORS, MANY, data, name_of
from test_river import (
    CLASSIFIERS,
    FOUND,
    NAMES,
    REGRESSORS,
    face,
    faces,
    learned,
    pd,
    rows_of,
    run,
    say,
    stream_of,
    targets,
)  # fmt: skip

import gossamer
from gossamer.kernels import Gaussian, Laplace, Linear, Matern, Polynomial

# ------------------------------------------------------------------------------------------------------------- features


def sparse_rows(count, seed=0, features=11):
    """Rows whose features come one after another, and are often missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, features)) * (rng.uniform(size=(count, features)) < 0.6)
    X *= np.arange(features) < 2 + np.arange(count)[:, None] // 4
    return X, [{f"f{j:02}": value for j, value in enumerate(row) if value} for row in X.tolist()]


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Laplace(0.3), Linear(), Polynomial(2, 0.3), Matern(1.5),
                                    Gaussian(0.3) * Linear() + 0.5 * Laplace(0.2)], ids=str)  # fmt: skip
@pytest.mark.parametrize("part", [gossamer.SILKClassifier, gossamer.NORMARegressor, gossamer.NORMADetector,
                                  gossamer.ROMMAClassifier], ids=name_of)  # fmt: skip
def test_features_come_and_go(part, kernel):
    """A model that meets features one by one says what one that had them all from the start says, at 0."""
    X, rows = sparse_rows(60)
    _, y = data(part, 2, NAMES)
    arguments = targets(part, y, len(rows))
    names = [f"f{j:02}" for j in range(X.shape[1])]
    for average in (False, True):
        growing, whole = face(part, kernel, average=average), face(part, kernel, average=average)
        for t, (x, full, rest) in enumerate(zip(rows, rows_of(X, names), arguments, strict=True)):
            assert say(growing, x) == pytest.approx(say(whole, full), rel=1e-9, abs=1e-12) or t == 0
            growing.learn_one(x, *rest)
            whole.learn_one(full, *rest)
        assert sorted(growing.features) == sorted(whole.features) == names
        order = [growing.features.index(name) for name in names]
        np.testing.assert_allclose(growing.learner.points[:, order], whole.learner.points, rtol=0, atol=0)
        np.testing.assert_allclose(growing.learner.coefs, whole.learner.coefs, rtol=1e-9, atol=1e-12)


def test_unknown_features_count_in_predictions():
    """A feature never learned moves x away from all points, and predicting does not learn it."""
    model = faces.SILKRegressor(Gaussian(0.5), C=10.0, scale_target=False)
    model.learn_one({"a": 1.0}, 2.0)
    near = model.predict_one({"a": 1.0})
    for value in (1.0, 2.0):
        x = {"a": 1.0, "b": value}
        assert model.predict_one(x) == pytest.approx(near * math.exp(-0.5 * value**2), rel=1e-12)
        assert model.predict_many(pd.DataFrame([x])).tolist() == pytest.approx([model.predict_one(x)], rel=1e-14)
    assert model.features == ("a",)
    assert model.predict_one({"a": 1.0}) == near


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_order_of_keys(part):
    """The order of the keys changes no bit."""
    _, rows = sparse_rows(60)
    _, y = data(part, 2, NAMES)
    arguments, rng = targets(part, y, len(rows)), random.Random(0)
    shuffled = [dict(rng.sample(list(x.items()), len(x))) for x in rows]
    one, other = face(part), face(part)
    assert run(one, rows, arguments) == run(other, shuffled, arguments)
    np.testing.assert_equal(learned(one), learned(other))


def test_kinds_of_values_and_names():
    """Booleans, integers and NumPy numbers are numbers; names are any hashables; a row may be empty."""
    rows = [{}, {1: True, "b": 2}, {1: np.int64(1), "b": np.float32(2)}, {("x", 1): 1.5, None: np.bool_(True)}, {}]
    model, plain = faces.SILKRegressor(Gaussian(0.5)), faces.SILKRegressor(Gaussian(0.5))
    for t, x in enumerate(rows):
        assert model.predict_one(x) == pytest.approx(plain.predict_one({str(name): float(v) for name, v in x.items()}))
        model.learn_one(x, float(t))
        plain.learn_one({str(name): float(value) for name, value in x.items()}, float(t))
    assert set(model.features) == {1, "b", ("x", 1), None}


def test_kernels_that_count_columns():
    """A kernel that columns of zeros would change does not take new features: the model could not stay the same."""
    model = faces.SILKRegressor(lambda A, B: 1.0 + A @ B.T / A.shape[1])
    model.learn_one({"a": 1.0, "b": 2.0}, 1.0)
    before = learned(model)
    for call in (lambda x: model.learn_one(x, 1.0), model.predict_one):
        with pytest.raises(ValueError, match="The 'kernel' parameter of SILKRegressor must be the same with"):
            call({"c": 1.0})
        np.testing.assert_equal(learned(model), before)
    model.learn_one({"b": 1.0}, 1.0)


def test_many_features():
    """Columns double: a feature more costs little, and the points stay as they are."""
    model = faces.NORMAClassifier(Linear(), budget=8)
    widths = set()
    for t in range(300):
        model.learn_one({f"word{t}": 1.0, "bias": 1.0}, t % 2)
        widths.add(model.learner.points.shape[1])
    assert len(model.features) == 301
    assert len(widths) <= 10


# -------------------------------------------------------------------------------------------------------------- batches


@pytest.mark.parametrize("kernel", [Gaussian(0.5), "gaussian"], ids=str)
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_learn_many(part, kernel):
    """Frames, also with new columns and a third class in the middle, are their rows; so are their predictions."""
    classes = 3 if part in MANY else 2
    _, y, rows, arguments = stream_of(part, classes)
    rows = [{**x, "w": 0.1 * t} if t >= 30 else x for t, x in enumerate(rows)]
    one, many = face(part, kernel), face(part, kernel)
    run(one, rows, arguments)
    for cut in (slice(0, 12), slice(12, 13), slice(13, 30), slice(30, 60)):
        frame = pd.DataFrame(rows[cut], index=range(100, 100 + cut.stop - cut.start))
        many.learn_many(frame, *([] if y is None else [pd.Series(y[cut], name="label")]))
        said = (many.score_many if part in DETECTORS else many.predict_many)(frame)
        ask = many.score_one if part in DETECTORS else many.predict_one
        assert said.index.equals(frame.index)
        assert said.name == (None if part in DETECTORS else "label")
        assert said.tolist() == [ask(x) for x in rows[cut]]
    np.testing.assert_equal(learned(many), learned(one))


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_frames_before_learning(part):
    """A model that knows nothing answers None, 0."""
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    model = face(part)
    said = model.score_many(frame) if part in DETECTORS else model.predict_many(frame)
    assert said.tolist() == [None if part in CLASSIFIERS else 0.0] * 2


def test_frames_of_objects():
    """Columns of booleans, integers and objects are numbers where their values are."""
    frame = pd.DataFrame({"a": [True, False], "b": [1, 2], "c": pd.Series([1.5, True], dtype=object)})
    one, many = faces.SILKRegressor(Gaussian(0.5)), faces.SILKRegressor(Gaussian(0.5))
    many.learn_many(frame, pd.Series([1, 2]))
    for x, y in zip(frame.to_dict("records"), [1, 2], strict=True):
        one.learn_one(x, y)
    np.testing.assert_equal(learned(many), learned(one))


# ------------------------------------------------------------------------------------------------------------ bad input


BAD_ROWS = [
    ({"u": "red", "v": 1.0}, "'red' for the feature 'u'"),
    ({"u": 1.0, "v": "1.0"}, "'1.0' for the feature 'v'"),
    ({"u": 1.0, "v": math.nan}, "nan for the feature 'v'"),
    ({"u": math.inf}, "inf for the feature 'u'"),
    ({"u": 1.0, "v": None}, "None for the feature 'v'"),
    ({"v": 1.0, "u": 10**400}, "0 for the feature 'u'"),
    ({"u": 1.0, "v": 1.0, "new": "x"}, "'x' for the feature 'new'"),
    ({"u": 1.0, "v": 1.0, "new": math.nan}, "nan for the feature 'new'"),
    ([1.0, 2.0], "a dict of features"),
    (["u", "v"], "a dict of features"),
    ("uv", "a dict of features"),
    (None, "a dict of features"),
    (pd.DataFrame({"u": [1.0], "v": [1.0]}), "a dict of features"),
]


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_bad_rows(part):
    """A bad value is named with its feature, and the model stays as it was, also one that has learned nothing yet."""
    _, _, rows, arguments = stream_of(part)
    old = face(part)
    run(old, rows, arguments)
    for model, (x, words) in itertools.product((face(part), old), BAD_ROWS):
        before = copy.deepcopy(learned(model))
        calls = [lambda model=model, x=x: model.learn_one(x, *arguments[0])]
        if model is old:
            calls.append(lambda x=x: say(old, x))
        for call in calls:
            with pytest.raises(ValueError, match=f"The 'x' parameter of {part.__name__} must be") as caught:
                call()
            assert words in str(caught.value)
            np.testing.assert_equal(learned(model), before)


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_bad_frames(part):
    """In a frame the row is named too; a batch whose last row is bad is not learned at all."""
    _, y, rows, arguments = stream_of(part)
    old = face(part)
    run(old, rows, arguments)
    bad = {
        "'red' for the feature 'u' in row 2": {"u": [1.0, 2.0, "red"], "v": [1.0, 2.0, 3.0]},
        "nan for the feature 'v' in row 2": {"u": [1, 2, 3], "v": [1.0, 2.0, math.nan]},
        "None for the feature 'new' in row 1": {"u": [1, 2, 3], "new": [True, None, False]},
    }
    for model, (words, columns) in itertools.product((face(part), old), bad.items()):
        frame, before = pd.DataFrame(columns), copy.deepcopy(learned(model))
        with pytest.raises(ValueError, match=f"The 'x' parameter of {part.__name__} must be") as caught:
            model.learn_many(frame, *([] if y is None else [pd.Series(y[:3])]))
        assert words in str(caught.value)
        np.testing.assert_equal(learned(model), before)
    with pytest.raises(ValueError, match=f"The 'X' parameter of {part.__name__} must be a frame"):
        old.learn_many([[1.0, 2.0]], *([] if y is None else [pd.Series(y[:1])]))
    if part not in DETECTORS:
        with pytest.raises(ValueError, match=f"The 'y' parameter of {part.__name__} must be a series"):
            old.learn_many(pd.DataFrame(rows[:2]), y[:2].tolist())
        with pytest.raises(ValueError, match="The 'y' parameter of"):
            old.learn_many(pd.DataFrame(rows[:2]), pd.Series(y[:3]))


@pytest.mark.parametrize("part", CLASSIFIERS + REGRESSORS, ids=name_of)
def test_bad_targets(part):
    """Wrong targets and weights are refused, and neither a feature nor a label is left behind."""
    _, _, rows, arguments = stream_of(part)
    old = face(part)
    run(old, rows, arguments)
    wrong = [None, math.nan] + (["text"] if part in REGRESSORS else [[1], ([1],)] if part in MANY else [[1], "third"])
    for model, y in ((model, y) for model in (face(part), old) for y in wrong):
        if y == "third" and model is not old:
            continue
        before = copy.deepcopy(learned(model))
        for x in (rows[0], {"new": 1.0}):
            with pytest.raises(ValueError, match="'y' parameter of"):
                model.learn_one(x, y)
        with pytest.raises(ValueError, match="'y' parameter of"):
            model.learn_many(pd.DataFrame(rows[:2]), pd.Series([arguments[0][0], y], dtype=object))
        np.testing.assert_equal(learned(model), before)
        with pytest.raises(ValueError, match="'sample_weight' parameter"):
            model.learn_one(rows[0], *arguments[0], w=-1.0)
        np.testing.assert_equal(learned(model), before)


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_bad_parameters(part):
    """They are refused with the first row, in the words of the estimator."""
    _, _, rows, arguments = stream_of(part)
    for parameters in ({"budget": 0}, {"average": "some"}, {"kernel": "unknown"}):
        model = getattr(faces, part.__name__)(**parameters)
        with pytest.raises(ValueError, match=f"The '{next(iter(parameters))}' parameter of"):
            model.learn_one(rows[0], *arguments[0])
        assert model.learner is None


# ---------------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_goes_on(part):
    """Pickled, copied, or cloned with its attributes in the middle of a stream, a model goes on as if never stopped."""
    _, _, rows, arguments = stream_of(part, 3 if part in MANY else 2)
    rows = [{**x, "w": 0.1 * t} if t >= 20 else x for t, x in enumerate(rows)]
    model = face(part)
    run(model, rows[:30], arguments[:30])
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model), model.clone(include_attributes=True)]
    expected = run(model, rows[30:], arguments[30:])
    for other in copies:
        assert run(other, rows[30:], arguments[30:]) == expected
        np.testing.assert_equal(learned(other), learned(model))
    fresh = model.clone()
    assert fresh.learner is None
    assert fresh.features == ()
    assert model._raw_memory_usage > fresh._raw_memory_usage + model.learner.points.nbytes


def test_backends():
    """A kernel written in Python learns dict rows too, with features that come later."""
    X, rows = sparse_rows(40)
    y = np.sin(X.sum(axis=1))
    kernels = (lambda A, B: 1.0 + A @ B.T, Polynomial(1))
    custom, built_in = (faces.SILKRegressor(kernel, budget=10) for kernel in kernels)
    for x, target in zip(rows, y.tolist(), strict=True):
        assert custom.predict_one(x) == pytest.approx(built_in.predict_one(x), rel=1e-6, abs=1e-9)
        custom.learn_one(x, target)
        built_in.learn_one(x, target)
    assert custom.learner.backend == "native loop, numpy kernel"
