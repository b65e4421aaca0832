"""Errors of estimators: they name what the user called, a frame's column by its name, and are never long."""

import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from parts import compiled_kernel
from sklearn.utils import get_tags
from test_estimators import DETECTORS, FOUND, MANY, REGRESSORS, name_of

from gossamer import ParameterError, SILKClassifier, _checks
from gossamer.kernels import Gaussian, Linear, Polynomial

ROWS = 300
NAMES = ["width", "height", "depth"]
FORMATS = {
    "array": lambda table: np.array(table, dtype=object if any(isinstance(v, str) for v in table[-1]) else None),
    "pandas": lambda table: pd.DataFrame(table, columns=NAMES[: len(table[0])]),
    "polars": lambda table: pl.DataFrame(table, schema=NAMES[: len(table[0])], orient="row", strict=False),
    "list": lambda table: table,
}
LONGEST = 700


def targets(part):
    rng = np.random.default_rng(0)
    if part in DETECTORS:
        return None
    return rng.normal(size=ROWS) if part in REGRESSORS else np.arange(ROWS) % 2


def table(bad=0.0, width=3):
    """Rows of numbers as lists; the last has something bad in its second column."""
    rows = np.random.default_rng(1).normal(size=(ROWS, width)).tolist()
    rows[-1][1] = bad
    return rows


def fails(part, parameter, call, *words, longest=LONGEST):
    with pytest.raises(ValueError, match="must be") as caught:
        call()
    text = str(caught.value)
    assert text.startswith(f"The '{parameter}' parameter of {part.__name__} must be "), text
    assert text.endswith(" instead."), text
    assert len(text) < longest, text
    for word in words:
        assert word in text, text


def calls(part, X, y, fitted):
    """Every verb with this X."""
    fresh = part(compiled_kernel(part))
    yield lambda: fresh.fit(X, y)
    yield lambda: fresh.partial_fit(X, y)
    yield lambda: fresh.predict_learn(X, y)
    yield lambda: fitted.partial_fit(X, y)
    for verb in ("predict", "decision_function", "score_samples", "predict_proba", "feature_effects", "coordinates"):
        if hasattr(fitted, verb):
            yield lambda verb=verb: getattr(fitted, verb)(X)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_bad_rows(part, form):
    """NaN, infinity, text, a wrong width: the estimator, the parameter, the place, by name where there are names."""
    make, y = FORMATS[form], targets(part)
    good = make(table())
    fitted = part(compiled_kernel(part)).fit(good, y)
    place = "column 'height'" if form in ("pandas", "polars") else "column 1"
    for value, shown in ((np.nan, "nan"), (np.inf, "inf"), ("tall", "tall")):
        if form == "polars" and isinstance(value, str):
            X = good.with_columns(pl.Series("height", [*map(str, range(ROWS - 1)), value]))
            shown, row = "'0'", "row 0"  # a column of text is text from its first row on
        elif form == "list" and isinstance(value, str):
            X, shown, row = make(table(value)), "", "row 0"  # NumPy makes text of all
        else:
            X, row = make(table(value)), f"row {ROWS - 1}"
        words = (place, row, shown) if not (form == "list" and isinstance(value, str)) else (row,)
        for call in calls(part, X, y, fitted):
            fails(part, "X", call, *words)
    if form in ("array", "list"):
        narrow = make(table(width=2))
        for call in list(calls(part, narrow, y, fitted))[3:]:
            fails(part, "X", call, "3 features")
    for strange in (good[:0], ROWS * "x", None, 3.0, {"a": 1.0}):
        for call in list(calls(part, strange, None if y is None else y[:0], fitted))[:3]:
            with pytest.raises((ValueError, TypeError)) as caught:
                call()
            assert len(str(caught.value)) < LONGEST
            assert "Learner" not in str(caught.value)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("part", [part for part in FOUND if part not in DETECTORS], ids=name_of)
def test_bad_targets(part, form):
    """Targets and weights that are too few, too many, not finite, of several kinds or matrices."""
    X, y = FORMATS[form](table()), targets(part)
    nan = y.astype(float)
    nan[-1] = np.nan
    mixed = np.array([*y[:-1], "x"], dtype=object)
    matrix = np.ones((ROWS, 2, 2) if get_tags(part()).target_tags.multi_output else (ROWS, 2))
    for bad in (y[1:], np.append(y, y), nan, mixed, matrix, [[1.0], [1.0, 2.0]], None):
        model = part(compiled_kernel(part))
        for call in (model.fit, model.partial_fit, model.predict_learn):
            fails(part, "y", lambda call=call, bad=bad: call(X, bad))
    for weights in (np.ones(ROWS - 1), np.full(ROWS, -1.0), ["x"] * ROWS, np.full(ROWS, np.nan)):
        for call in (model.fit, model.partial_fit):
            fails(part, "sample_weight", lambda call=call, weights=weights: call(X, y, sample_weight=weights))


@pytest.mark.parametrize("part", MANY, ids=name_of)
def test_many_labels_are_not_listed(part):
    """Hundreds of labels, or one of a megabyte, are shown in short."""
    X = np.array(table())
    y = np.array([f"label {i}" for i in range(ROWS)])
    model = part(compiled_kernel(part)).partial_fit(X[:9], y[:9], classes=y)
    fails(part, "y", lambda: model.partial_fit(X[:1], ["x" * 10**6]), longest=2000)


def test_parameters_are_the_estimators():
    """A parameter that a part inside refuses is one of the estimator that the user made."""
    X, y = np.array(table()), np.arange(ROWS) % 2
    for bad in ({"kernel": "gauss"}, {"kernel": 3}, {"C": -1.0}, {"reg": -1.0}, {"margin": -1.0}, {"average": 2}):
        for verb in ("fit", "partial_fit", "predict_learn"):
            model = SILKClassifier(**bad)
            fails(SILKClassifier, next(iter(bad)), lambda model=model, verb=verb: getattr(model, verb)(X, y))


def test_what_messages_show():
    """Frames and arrays by their shape; small things as they are."""
    frame = pd.DataFrame(np.zeros((100_000, 50)))
    for got, shown in (
        (frame, "DataFrame of shape (100000, 50)"), (np.zeros((5, 5)), "ndarray of shape (5, 5)"), (0, "0"),
        (np.array([1.5, 2.0]), "array([1.5, 2. ])"), ("nan in row 0", "'nan in row 0'"), (np.float64(0.5), "0.5"),
        (frame[0], "Series of shape (100000,)"),
    ):  # fmt: skip
        assert shown in str(_checks.wrong("Part", "value", "good", got))
    for got in (list(range(10**6)), "x" * 10**6, dict.fromkeys(range(100), frame), [frame] * 20, b"x" * 10**6):
        assert len(str(_checks.wrong("Part", "value", "good", got))) < LONGEST


# ------------------------------------------------------------------------------------------ the kernel's parameters


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_parameters_of_the_kernel(part):
    """kernel__gamma of a name and of an object, deep in sums; what is not there is refused, and nothing has changed."""
    model = part("rbf")
    assert model.get_params()["kernel__gamma"] == "scale"
    assert "kernel__gamma" not in model.get_params(deep=False)
    assert model.set_params(kernel__gamma=0.5, budget=9).kernel == Gaussian(0.5)
    assert model.budget == 9
    assert model.set_params(kernel="poly", kernel__degree=2, kernel__coef0=0.5).kernel == Polynomial(2, 1.0, 0.5)
    model.set_params(kernel=Gaussian(1.0) + 0.5 * Linear(), kernel__left__gamma=2.0, kernel__right__factor=0.25)
    assert model.kernel == Gaussian(2.0) + 0.25 * Linear()
    assert model.get_params()["kernel__right__base"] == Linear()
    before = model.get_params()
    for wrong in ({"kernel__gama": 1.0}, {"kernel__left": 3}, {"kernel__left__gamma": -1.0}, {"kernel__left__x__y": 1}):
        with pytest.raises(ValueError, match="must be"):
            model.set_params(**wrong)
        assert model.get_params() == before
    for kernel in (np.dot, [Gaussian()], None, "what"):
        assert not [name for name in part(kernel).get_params() if name.startswith("kernel__")]


def test_grids_over_the_kernel():
    """In GridSearchCV, alone and in pipelines, the best width is found and used."""
    from sklearn.model_selection import GridSearchCV

    from gossamer import OnlineScaler, pipeline

    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = X[:, 0] * X[:, 1] > 0
    for model, name in ((SILKClassifier(), ""), (pipeline(OnlineScaler(), SILKClassifier("rbf")), "silkclassifier__")):
        search = GridSearchCV(model, {f"{name}kernel__gamma": [1e-6, 1.0]}, cv=3).fit(X, y)
        assert search.best_params_ == {f"{name}kernel__gamma": 1.0}
        assert search.best_score_ > 0.9


@pytest.mark.parametrize("got", [0, None, "x", [1, 2], Gaussian, lambda x: x, np.zeros(50), {"a": 1.5}])
def test_an_error_keeps_its_fields_in_copies_and_other_processes(got):
    """Also where the value itself cannot be pickled; the sentence is the same."""
    for error in (_checks.wrong("Learner", "budget", "an int", got), _checks.wrong("L", "X", "dense", got, TypeError)):
        assert str(error) == f"The '{error.parameter}' parameter of {error.owner} must be {error.rule}. " \
                             f"Got {_checks.SHORT.repr(got)} instead."  # fmt: skip
        assert error.got is got
        for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(other) is type(error)
            assert isinstance(other, ParameterError)
            assert str(other) == str(error)
            assert (other.owner, other.parameter, other.rule) == (error.owner, error.parameter, error.rule)
