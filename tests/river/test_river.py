"""The river face: river's own checks on every model, the same bits as the estimators, features that come and go."""

import contextlib
import importlib.util
import inspect
import io
import random
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from test_estimators import CLASSIFIERS, DETECTORS, FOUND as ESTIMATORS, MANY, MIXTURES, REGRESSORS, data, name_of

import gossamer
from gossamer.kernels import Gaussian, Polynomial
from gossamer.synthetic import rotating_xor

pytest.importorskip("river", reason="river is not installed")
pd = pytest.importorskip("pandas")

from river import (  # noqa: E402
    checks,
    compose,
    datasets,
    drift,
    ensemble,
    evaluate,
    metrics,
    model_selection,
    multiclass,
    preprocessing,
    utils,
)
from river.datasets.base import RemoteDataset  # noqa: E402

import gossamer.river as faces  # noqa: E402

FOUND, CLASSIFIERS, REGRESSORS = (
    [part for part in parts if part.takes_new_features] for parts in (ESTIMATORS, CLASSIFIERS, REGRESSORS)
)
OTHERS = {"MultiLabel", "MultiTarget", "RowEncoder"}
MODELS = [getattr(faces, name) for name in faces.__all__ if name not in OTHERS]
BY_NAME = {part.__name__: part for part in [*FOUND, *MIXTURES]}
LOGISTIC = [part for part in CLASSIFIERS if "loss" in inspect.signature(part).parameters]
NAMES = ["a", "b", "c"]
ROOT = Path(__file__).parents[2]


def face(part, kernel=None, **parameters):
    """The river model of an estimator."""
    return getattr(faces, part.__name__)(kernel or Gaussian(0.5), **{"budget": 20, **parameters})


def rows_of(X, names=("u", "v")):
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def targets(part, y, count):
    """Arguments of learn_one after x."""
    return [()] * count if part in DETECTORS else [(label,) for label in y.tolist()]


def say(model, x):
    """The most telling answer of a model."""
    if hasattr(model, "score_one"):
        return model.score_one(x)
    return model.predict_proba_one(x) if hasattr(model, "predict_proba_one") else model.predict_one(x)


def run(model, rows, arguments):
    """Predict each row, then learn it."""
    said = []
    for x, arguments_of_x in zip(rows, arguments, strict=True):
        said.append(say(model, x))
        model.learn_one(x, *arguments_of_x)
    return said


def learned(model):
    """All that a model knows, without spare columns."""
    if model.learner is None:
        return None
    state, used = dict(model.learner.state().items()), len(model.features)
    for name in ("points", "dropped_points"):
        assert not state[name][:, used:].any()
        state[name] = state[name][:, :used]
    return {**state, "kernel": str(state["kernel"]), "features": model.features}


def state_of(estimator):
    """The same of an estimator with the features of `rows_of`."""
    state = dict(estimator.learner_.state().items())
    return {**state, "kernel": str(state["kernel"]), "features": ("u", "v")}


def stream_of(part, classes=2, count=60, seed=0):
    X, y = data(part, classes, NAMES, seed, count)
    return X, y, rows_of(X), targets(part, y, count)


# ------------------------------------------------------------------------------------------------------- river's checks


class Scaled(datasets.Shuttle):
    """Bundled anomalies with standardised features, as those of the data they stand in for are."""

    def __iter__(self):
        scaler = preprocessing.StandardScaler()
        for x, y in super().__iter__():
            scaler.learn_one(x)
            yield scaler.transform_one(x), y


@pytest.fixture
def offline(monkeypatch):
    """The one data set of the checks that river would download is replaced by a bundled one."""
    monkeypatch.setattr(datasets, "CreditCard", Scaled)
    monkeypatch.setattr(RemoteDataset, "download", lambda *_, **__: pytest.fail("a check downloads data"))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_checks_of_river(model):
    """river.checks.check_estimator, whole, for every model, with probabilities too."""
    random.seed(0)  # the checks shuffle features with it
    assert not model()._unit_test_skips()
    checks.check_estimator(model())
    if model._estimator in LOGISTIC:
        checks.check_estimator(model("laplace", loss="logistic", budget=10))


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("model", [faces.SILKClassifier, faces.PARegressor, faces.NORMADetector], ids=name_of)
def test_checks_of_river_in_a_pipeline(model):
    """The same behind a scaler, but for the check that its batches are its rows: a scaler sees a batch before it."""
    random.seed(0)
    pipeline = preprocessing.StandardScaler() | model()
    for check in checks.yield_checks(pipeline):
        if check.__name__ != "check_learn_many_matches_learn_one":
            check(pipeline.clone())


# ---------------------------------------------------------------------------------------------------------- the classes


def test_every_estimator_has_a_face():
    """A new estimator of the package is a river model too."""
    assert set(faces.__all__) == {*BY_NAME, *OTHERS}
    assert [model._multiclass for model in (face(part) for part in CLASSIFIERS)] == [p in MANY for p in CLASSIFIERS]


@pytest.mark.parametrize("model", MODELS, ids=name_of)
def test_parameters(model):
    """The parameters of the estimator but for those of fit, documented, with an example; unknown ones are refused."""
    wanted = dict(inspect.signature(BY_NAME[model.__name__]).parameters)
    for name in ("n_passes", "shuffle", "random_state"):
        wanted.pop(name, None)
    if "average" in wanted:
        wanted["average"] = wanted["average"].replace(default=False)
    assert inspect.signature(model).parameters == wanted
    assert "n_passes" not in model.__doc__
    assert all(name in model.__doc__ for name in wanted)
    assert f"river.{model.__name__}()" in model.__doc__
    assert (model.__module__, model.__qualname__) == ("gossamer.river", model.__name__)
    made = model("linear", budget=7)
    assert (made.kernel, made.budget) == ("linear", 7)
    assert made.clone({"budget": 8}).budget == 8
    assert "budget=7" in repr(made)
    for wrong in ({"n_passes": 2}, {"unknown": 1}):
        with pytest.raises(TypeError):
            model(**wrong)


def test_missing_river(monkeypatch):
    """Without river the import says what to install."""
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "gossamer.river.models")
    spec = importlib.util.spec_from_file_location("without_river", faces.__file__)
    with pytest.raises(ImportError, match=r"gossamer\[river\]"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


# ------------------------------------------------------------------------------------------- the same as scikit-learn's


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_equals_the_estimator(part):
    """Predictions before each row and the model after the last are those of the estimator, to the bit."""
    for kernel in ("gaussian", Gaussian(0.5), Polynomial(2, 0.3)):
        for classes in (2, 3) if part in MANY else (2,):
            X, y, rows, arguments = stream_of(part, classes)
            model, estimator = face(part, kernel), part(kernel, budget=20)
            for t, (x, rest) in enumerate(zip(rows, arguments, strict=True)):
                got = model.score_one(x) if part in DETECTORS else model.predict_one(x)
                if t:
                    ask = estimator.decision_function if part in DETECTORS else estimator.predict
                    assert got == (-ask(X[t : t + 1]) if part in DETECTORS else ask(X[t : t + 1]))[0]
                else:
                    assert got == (None if part in CLASSIFIERS else 0.0)
                model.learn_one(x, *rest)
                estimator.partial_fit(X[t : t + 1], *([] if y is None else [y[t : t + 1]]))
            np.testing.assert_equal(learned(model), state_of(estimator))


@pytest.mark.parametrize("part", LOGISTIC, ids=name_of)
def test_probabilities(part):
    """They are the estimator's."""
    for classes in (2, 3):
        X, y, rows, arguments = stream_of(part, classes)
        model, estimator = face(part, loss="logistic"), part(Gaussian(0.5), loss="logistic", budget=20)
        assert model.predict_proba_one(rows[0]) == {}
        run(model, rows, arguments)
        shares = estimator.partial_fit(X, y).predict_proba(X)
        for x, share in zip(rows, shares, strict=True):
            got = model.predict_proba_one(x)
            assert list(got) == NAMES[:classes]
            np.testing.assert_allclose(list(got.values()), share, rtol=1e-14)
        frame = model.predict_proba_many(pd.DataFrame(rows))
        assert list(frame.columns) == NAMES[:classes]
        np.testing.assert_allclose(frame.to_numpy(), shares, rtol=1e-14)


@pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
def test_probabilities_before_two_labels_are_known(part):
    """A model for two classes speaks of True and False at once; the only label that is known has all."""
    _, _, rows, _ = stream_of(part, 2)
    model, empty = face(part), {} if part in MANY else {False: 0.5, True: 0.5}
    assert model.predict_proba_one(rows[0]) == empty
    assert model.predict_proba_many(pd.DataFrame(rows[:2])).to_dict("records") == ([empty] * 2 if empty else [])
    model.learn_one(rows[0], True)
    assert model.predict_proba_one(rows[0]) == ({True: 1.0} if part in MANY else {True: 1.0, False: 0.0})


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_weights(part):
    """w weighs a row as sample_weight does, one by one and in a frame."""
    X, y, rows, arguments = stream_of(part)
    w = np.random.default_rng(1).uniform(0, 2, len(rows))
    one, many = face(part), face(part)
    for x, rest, weight in zip(rows, arguments, w.tolist(), strict=True):
        one.learn_one(x, *rest, w=weight)
    many.learn_many(pd.DataFrame(rows), *([] if y is None else [pd.Series(y)]), w=w)
    estimator = part(Gaussian(0.5), budget=20).partial_fit(X, y, sample_weight=w)
    for model in (one, many):
        np.testing.assert_equal(learned(model), state_of(estimator))


# ----------------------------------------------------------------------------------------------------- labels and costs


def test_labels():
    """Labels of any hashable type, mixed too; a new one may come at any time."""
    model = faces.SILKClassifier(Gaussian(1.0))
    labels = [("tuple", 1), True, "text", 3.5, frozenset({1})]
    for _ in range(3):
        for place, label in enumerate(labels):
            model.learn_one({"x": 3.0 * place}, label)
    assert [model.predict_one({"x": 3.0 * place}) for place in range(len(labels))] == labels


@pytest.mark.parametrize("part", [part for part in MANY if "cost" in inspect.signature(part).parameters], ids=name_of)
def test_costs(part):
    """A matrix over the labels 0, 1, ... and a taxonomy mean what they mean to the estimator."""
    X, y, rows, _ = stream_of(part, 3)
    cost = np.array([[0.0, 2.0, 0.5], [1.0, 0.0, 1.5], [0.3, 0.7, 0.0]])
    numbers = np.searchsorted(NAMES, y)
    model = face(part, cost=cost)
    run(model, rows, [(label,) for label in numbers.tolist()])
    estimator = part(Gaussian(0.5), cost=cost, budget=20).partial_fit(X, numbers, classes=[0, 1, 2])
    assert np.array_equal(model.learner.coefs, estimator.learner_.coefs)
    with pytest.raises(ValueError, match=r"'y' parameter of \w+ must be one of the classes \[0, 1, 2\]"):
        model.learn_one(rows[0], 3)
    with pytest.raises(ValueError, match="'cost' parameter"):
        face(part, cost="high").learn_one(rows[0], 0)
    if part is gossamer.SVMDClassifier:
        return  # has no step for labels that share
    tree = gossamer.taxonomy({"letters": ["c", "a"], "b": None})
    model = face(part, cost=tree)
    run(model, rows, [(label,) for label in y.tolist()])
    estimator = part(Gaussian(0.5), cost=tree, budget=20).partial_fit(X, y)
    scores = estimator.decision_function(X)
    assert [model.predict_one(x) for x in rows] == [estimator.classes_[i] for i in scores.argmax(axis=1)]


# ------------------------------------------------------------------------------------------------------- among the rest


def accuracy(model, dataset, metric=None):
    return evaluate.progressive_val_score(dataset, model, metric or metrics.Accuracy()).get()


def test_progressive_validation():
    """Pipelines and metrics of labels, probabilities and numbers; equal to predicting and learning by hand."""
    model = preprocessing.StandardScaler() | faces.SILKClassifier(Gaussian(0.3), loss="logistic", budget=512)
    by_hand, metric = model.clone(), metrics.Accuracy()
    for x, y in datasets.Phishing():
        if (said := by_hand.predict_one(x)) is not None:
            metric.update(y, said)
        by_hand.learn_one(x, y)
    assert accuracy(model.clone(), datasets.Phishing()) == metric.get() > 0.88
    assert accuracy(model.clone(), datasets.Phishing(), metrics.ROCAUC()) > 0.93
    regressor = preprocessing.TargetStandardScaler(faces.SILKRegressor(C=10.0))
    assert accuracy(preprocessing.StandardScaler() | regressor, datasets.TrumpApproval(), metrics.MAE()) < 1.0
    segments = preprocessing.StandardScaler() | faces.KernelPerceptron()
    assert accuracy(segments, datasets.ImageSegments()) > 0.8
    alarms = preprocessing.StandardScaler() | faces.NORMADetector(nu=0.1)
    assert accuracy(alarms, datasets.Shuttle().take(3000), metrics.RollingROCAUC(window_size=3000)) > 0.6


def test_in_batches():
    """A pipeline learns and predicts frames."""
    model = preprocessing.StandardScaler() | faces.SILKClassifier()
    right = []
    for batch in pd.read_csv(datasets.Phishing().path, chunksize=100):
        X, y = batch.drop(columns="is_phishing"), batch["is_phishing"]
        right += [] if model["SILKClassifier"].learner is None else (model.predict_many(X) == y).tolist()
        model.learn_many(X, y)
    assert np.mean(right) > 0.84


def test_with_drift_detectors():
    """A detector that sees the classes swapped starts the model anew, which is better than going on."""
    X, y = rotating_xor(2000, seed=0, turns=0)
    labels = np.where(np.arange(len(y)) < 1000, y > 0, y < 0)
    rows = list(zip(rows_of(X), labels.tolist(), strict=True))
    model = faces.SILKClassifier(Gaussian(2.0), C=0.05, budget=None)  # slow to forget
    restarting = drift.DriftRetrainingClassifier(model.clone(), drift.binary.DDM(), train_in_background=False)
    assert accuracy(restarting, rows) > accuracy(model, rows) + 0.05


def test_inside_other_models():
    """Ensembles, one against the rest, model selection, parts of the features, grids of parameters."""
    scaled = preprocessing.StandardScaler() | faces.SILKClassifier(loss="logistic", budget=64)
    phishing = list(datasets.Phishing().take(600))
    assert accuracy(ensemble.BaggingClassifier(scaled, n_models=3, seed=0), phishing) > 0.8
    segments = list(datasets.ImageSegments().take(600))
    one_against_rest = multiclass.OneVsRestClassifier(faces.NORMAClassifier(loss="logistic"))
    assert accuracy(preprocessing.StandardScaler() | one_against_rest, segments) > 0.6
    values = {"C": [0.01, 1.0], "kernel": [Gaussian(0.1), Gaussian(10.0)]}
    grid = utils.expand_param_grid(faces.SILKClassifier(), values)
    assert {(model.C, model.kernel.gamma) for model in grid} == {(0.01, 0.1), (0.01, 10.0), (1.0, 0.1), (1.0, 10.0)}
    chosen = model_selection.SuccessiveHalvingClassifier(grid, metrics.Accuracy(), budget=600, seed=0)
    assert accuracy(preprocessing.StandardScaler() | chosen, phishing) > 0.75
    part = compose.Select("age_of_domain", "https") | preprocessing.StandardScaler() | faces.SILKClassifier()
    accuracy(part, phishing)
    assert part["SILKClassifier"].features == ("age_of_domain", "https")


def test_cannot_mutate_parameters():
    """The learner is made of the parameters once: river refuses to change them under it."""
    model = faces.SILKClassifier()
    with pytest.raises(ValueError, match="not a mutable attribute"):
        model.mutate({"C": 2.0})


# --------------------------------------------------------------------------------------------------------- the page


def test_page():
    """Every block of Python on the page runs and prints what its comments promise; its table is the benchmark's."""
    page = (ROOT / "docs" / "river.md").read_text()
    space, code = {}, re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(code) >= 7
    for block in code:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, "river.md", "exec"), space)
        for promise in re.findall(r"print\(.*\)\s+# (.+)", block):
            assert promise in printed.getvalue()
        if "except ValueError" in block:
            assert f"    {printed.getvalue().strip()}\n" in page
    shown = page.split("<!-- river_face:begin -->")[1].split("<!-- river_face:end -->")[0].strip()
    assert shown == (ROOT / "benchmarks" / "results" / "river_face.md").read_text().strip()
    assert [name for name in faces.__all__ if f"`{name}`" not in page] == []
