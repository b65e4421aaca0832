"""Laws of prequential evaluation: it counts what a loop that predicts and learns row by row would count.

The file is long because every law compares with the same naive loop.
"""

import csv
import json
import math
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from parts import scaler_options
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import balanced_accuracy_score, log_loss, precision_recall_fscore_support, roc_auc_score

from gossamer import (
    CollapseWarning,
    KernelPerceptron,
    Learner,
    NORMAClassifier,
    NORMADetector,
    NORMARegressor,
    OnlineScaler,
    PARegressor,
    SILKClassifier,
    SILKDetector,
    SILKRegressor,
    SVMDClassifier,
    pipeline,
    plots,
    taxonomy,
)
from gossamer.budgets import Smallest
from gossamer.evaluate import METRICS, Predictions, Prequential, Trace, prequential
from gossamer.evaluate.adapters import Face
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Multiclass, Novelty, Softmax, Squared
from gossamer.rules import Implicit
from gossamer.streams import open_stream
from gossamer.synthetic import rotating_xor

ROWS = 300


def data(classes, seed=0, dtype=float):
    """Rows on a grid (so that some scores are exactly 0), and classes that come one after the other."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-3, 4, size=(ROWS, 2)).astype(float)
    late = np.minimum(np.arange(ROWS) // 20 + 1, classes)
    labels = (np.abs(X).sum(axis=1).astype(int) + rng.integers(0, 2, ROWS)) % late
    names = np.array(["m", "c", "z", "a", "k"])[:classes]
    return X, names[labels]


def numbers(seed=0):
    X, _ = data(2, seed)
    return X, np.sin(X[:, 0]) + 0.1 * X[:, 1]


CLASSIFIERS = [
    SILKClassifier(Gaussian(0.5), budget=20),
    SILKClassifier(Gaussian(0.5), loss="logistic", budget=None),
    NORMAClassifier(Gaussian(0.5), rate=0.3, reg=0.01, budget=20),
]
BINARY = [
    KernelPerceptron(Gaussian(0.5)),
    NORMAClassifier(Gaussian(0.5), nu=0.3),
    SILKClassifier(Gaussian(0.5), average=True),
]
REGRESSORS = [
    SILKRegressor(Gaussian(0.5), budget=20), NORMARegressor(Gaussian(0.5), loss="huber", nu=0.3, budget=20),
    PARegressor(Gaussian(0.5)), SILKRegressor(Gaussian(0.5), loss="pinball", quantile=0.9, budget=20),
]  # fmt: skip
DETECTORS = [NORMADetector(Gaussian(0.5), nu=0.2, budget=20), SILKDetector(Gaussian(0.5), budget=20)]

CASES = (
    [(model, data(classes)) for model in CLASSIFIERS for classes in (1, 2, 3, 5)]
    + [(model, data(2)) for model in BINARY]
    + [(model, numbers()) for model in REGRESSORS]
    + [(model, (numbers()[0], numbers()[1] > 0.5)) for model in DETECTORS]
)


def naive(model, X, y, delay=0):
    """Predict a row with ``predict``; then learn what is due. None where nothing has been learned."""
    said, sizes = [], []
    for t in range(len(X)):
        if hasattr(model, "learner_"):
            said.append(model.predict(X[t : t + 1])[0])
        else:
            said.append(0.0 if hasattr(model, "epsilon") or hasattr(model, "quantile") else None)
        due = t - delay
        if due >= 0:
            model.partial_fit(X[due : due + 1], y[due : due + 1])
        sizes.append(len(model.learner_.points) if hasattr(model, "learner_") else None)
    return said, sizes


@pytest.mark.parametrize("delay", [0, 1, 7])
@pytest.mark.parametrize(("model", "rows"), CASES, ids=lambda case: type(case).__name__)
def test_prequential_is_the_naive_loop(model, rows, delay):
    """Predictions, errors, sizes, confusion: those of a loop over single rows; with late labels too."""
    X, y = rows
    said, sizes = naive(clone(model), X, y, delay)
    run = Prequential(clone(model), every=50, delay=delay)
    made = run.update(X[:130], y[:130]), run.update(X[130:], y[130:])
    trace = run.finish()
    predicted = [p for part in made for p in np.where(part.known, part.labels.astype(object), None)]
    if trace.task == "novelty":
        # nothing learned: f = 0, and the threshold is where it starts
        assert [(p == -1) if p is not None else q for p, q in zip(said, predicted, strict=True)] == predicted
    else:
        assert predicted == said
    assert trace.row.tolist() == list(range(50, ROWS + 1, 50))
    assert [record.support for record in trace.records] == sizes[49::50]
    if trace.task == "classification":
        wrong = np.array([p != q for p, q in zip(said, y.tolist(), strict=True)])
        assert trace.total("error").tolist() == pytest.approx((np.cumsum(wrong) / np.arange(1, ROWS + 1))[49::50])
        assert trace.window("error").tolist() == pytest.approx(wrong.reshape(-1, 50).mean(axis=1))
        known = [(q, p) for p, q in zip(said, y.tolist(), strict=True) if p is not None]
        assert trace.confusion == {pair: known.count(pair) for pair in set(known)}
        assert trace.unpredicted == ROWS - len(known)
        labels, counts = trace.confusion_matrix()
        assert labels == sorted(set(np.array(known).ravel().tolist()))
        assert counts.sum() == len(known)
    if trace.task == "regression":
        gaps = np.abs(np.array(said) - y)
        assert trace.total("mae")[-1] == pytest.approx(gaps.mean())
        assert trace.window("rmse").tolist() == pytest.approx(np.sqrt((gaps**2).reshape(-1, 50).mean(axis=1)))


@pytest.mark.parametrize(("model", "rows"), CASES, ids=lambda case: type(case).__name__)
def test_chunks_change_nothing(model, rows):
    """One chunk, a stream in chunks of any size, chunks of one row: equal traces, to the last bit."""
    whole = prequential(clone(model), rows, every=70)
    assert whole.row.tolist() == [70, 140, 210, 280, 300]
    for size in (1, 33, 128):
        stream = open_stream(rows, chunk_rows=size)
        assert prequential(clone(model), stream, every=70) == whole
    assert prequential(clone(model), rows, every=60) != whole


def parts(loss):
    return Learner(Gaussian(0.5), loss, Implicit(C=0.5, reg=0.01), Smallest(20))


@pytest.mark.parametrize("options", scaler_options(), ids=str)
def test_every_scaler_with_late_labels(options):
    """Whatever a scaler does to rows, it does where labels come later."""
    X, y = data(2)
    model, alone = (pipeline(OnlineScaler(**options), SILKClassifier(Gaussian(0.5), budget=20)) for _ in range(2))
    run, said = Prequential(model, delay=5), []
    part = run.update(X, y)
    for t in range(len(X)):
        said.append(alone.predict(X[t : t + 1])[0] if t > 5 else None)
        if t >= 5:
            alone.partial_fit(X[t - 5 : t - 4], y[t - 5 : t - 4])
    assert np.where(part.known, part.labels.astype(object), None).tolist() == said
    assert np.array_equal(model[-1].learner_.points, alone[-1].learner_.points)
    assert np.array_equal(model.decision_function(X), alone.decision_function(X))


@pytest.mark.parametrize("delay", [0, 4])
def test_learners(delay):
    """A Learner by itself, for each kind of target, against its own scores."""
    X, y = numbers()
    signs, labels = np.where(y > 0, 1.0, -1.0), np.searchsorted([-0.5, 0.3], y)
    for loss, targets in ((Hinge(), signs), (Multiclass(), labels), (Squared(), y), (Novelty(nu=0.1), None)):
        learner, said = parts(loss), []
        for t in range(ROWS):
            score = learner.score(X[t : t + 1])
            if loss.target == "label":
                said.append(int(score[0].argmax()) if learner.steps else None)
            elif loss.target == "none":
                said.append(bool(score[0] < learner.level))
            else:
                said.append(float(score[0]) if loss.target == "real" else 1 if score[0] >= 0 else -1)
            if t >= delay:
                due = slice(t - delay, t - delay + 1)
                learner.learn(X[due], None if targets is None else targets[due])
        run = Prequential(parts(loss), every=100, delay=delay)
        made = run.update(X, targets)
        assert np.where(made.known, made.labels.astype(object), None).tolist() == said
        assert [record.support for record in run.finish().records][-1] == len(learner.coefs.T)


def test_the_loss_is_the_models():
    """Its mean is that of the scores that predict_learn returns, also while classes come."""
    X, y = data(2)
    model = SILKClassifier(Gaussian(0.5), margin=0.7, budget=20)
    scores = clone(model).predict_learn(X, y)
    first = int(np.argmax(y != y[0]))
    alone = np.arange(ROWS) <= first
    signs = np.where(np.where(alone, y == y[0], y == max(y)), 1, -1)
    trace = prequential(model, (X, y), every=ROWS)
    assert trace.total("loss")[0] == pytest.approx(np.maximum(0, 0.7 - signs * scores).mean())
    X, y = numbers()
    model = SILKRegressor(Gaussian(0.5), budget=20)
    gaps = clone(model).predict_learn(X, y) - y
    trace = prequential(model, (X, y), every=ROWS, metrics=["loss", "rmse"])
    assert trace.total("loss")[0] == pytest.approx(Squared().value(gaps, 0.0).mean())
    assert math.isnan(prequential(NORMAClassifier(Gaussian(0.5), nu=0.3), data(2), metrics=["loss"]).total("loss")[0])


def test_given_classes():
    """Classes that are known beforehand, by a cost or by a first call."""
    X, y = data(3)
    model = SILKClassifier(Gaussian(0.5), budget=20).partial_fit(X[:10], y[:10], classes=["c", "m", "z"])
    said, _ = naive(clone(model).partial_fit(X[:10], y[:10], classes=["c", "m", "z"]), X[10:], y[10:])
    assert Prequential(model).update(X[10:], y[10:]).labels.tolist() == said
    known = taxonomy({"both": ["m", "c"], "z": None})
    model = SILKClassifier(Gaussian(0.5), cost=known, budget=20)
    made = Prequential(clone(model)).update(X, y)
    assert made.known.all()
    model.predict_learn(X[:1], y[:1])
    assert made.labels[1:].tolist() == naive(model, X[1:], y[1:])[0]


@pytest.mark.parametrize("delay", [0, 5])
def test_scikit_learns_own(delay):
    """Models without predict_learn are taken row by row."""
    X, y = data(2)[0][:100], data(2)[1][:100]
    said, model = [], SGDClassifier(random_state=0)
    for t in range(100):
        said.append(model.predict(X[t : t + 1])[0] if hasattr(model, "coef_") else None)
        if t >= delay:
            model.partial_fit(X[t - delay : t - delay + 1], y[t - delay : t - delay + 1], classes=["c", "m"])
    run = Prequential(SGDClassifier(random_state=0), classes=["c", "m"], delay=delay, metrics=["error", "accuracy"])
    made = run.update(X, y)
    assert np.where(made.known, made.labels.astype(object), None).tolist() == said
    trace = run.finish()
    assert trace.support.tolist() != trace.support.tolist()  # NaN: there is none
    assert trace.total("error")[0] == pytest.approx(1 - trace.total("accuracy")[0])
    assert len(prequential(SGDRegressor(random_state=0), (X, X[:, 0]), delay=delay)) == 1


def test_detectors_with_labels():
    """The rate of alarms, and in each window the AUC."""
    X, y = numbers()
    odd = np.where(y > 0.9, "odd", "fine")
    model = NORMADetector(Gaussian(0.5), nu=0.2, budget=20)
    scores = clone(model).predict_learn(X)
    trace = prequential(model, (X, odd), metrics=["alarms", "auc", "error"], every=100, anomaly="odd")
    expected = [roc_auc_score((odd == "odd")[i : i + 100], -scores[i : i + 100]) for i in (0, 100, 200)]
    assert trace.window("auc").tolist() == pytest.approx(expected)
    assert trace.total("auc")[-1] == pytest.approx(np.mean(expected))
    assert trace.total("alarms")[-1] == pytest.approx((scores < 0).mean())
    assert trace.total("error")[-1] == pytest.approx(((scores < 0) != (odd == "odd")).mean())
    assert prequential(clone(model), (X, None)).metrics == ["alarms"]


def test_any_rows():
    """Lists, frames, and things that are no numbers at all."""
    X, y = numbers()
    model = SILKRegressor(Gaussian(0.5), budget=20)
    whole = prequential(clone(model), (X, y), every=100)
    assert prequential(clone(model), (X.tolist(), y.tolist()), every=100) == whole
    assert prequential(clone(model), (pd.DataFrame(X), pd.Series(y)), every=100) == whole
    words = ["ab", "abc", "b", "xy", "x", "zy"] * 20
    same_letters = KernelPerceptron(lambda A, B: np.array([[len(set(a) & set(b)) for b in B] for a in A], dtype=float))
    trace = prequential(same_letters, (words, [word > "m" for word in words]), every=40)
    assert trace.window("error")[-1] < trace.window("error")[0]


def test_functions_as_metrics():
    X, y = data(2)
    trace = prequential(SILKClassifier(Gaussian(0.5)), (X, y), metrics=["error", balanced_accuracy_score], every=150)
    scores = trace.window("balanced_accuracy_score")
    assert ((scores > 0.4) & (scores < 1)).all()


def test_norm_only_where_it_is_tracked():
    rows = rotating_xor(200, seed=0)
    assert np.isnan(prequential(SILKClassifier(Gaussian(2.0), budget=10), rows).norm).all()
    model = SILKClassifier(Gaussian(2.0), budget=None)
    assert prequential(model, rows, every=200).norm.tolist() == [model.norm_]


@pytest.mark.parametrize("delay", [0, 9])
def test_an_evaluation_goes_on(delay):
    """Stopped at any row and restored, through JSON, it ends as if it had not stopped."""
    rows = data(3)
    whole = prequential(SILKClassifier(Gaussian(0.5), budget=20), rows, every=50, delay=delay)
    for stop in (7, 50, 180):
        model = SILKClassifier(Gaussian(0.5), budget=20)
        run = Prequential(model, every=50, delay=delay)
        run.update(rows[0][:stop], rows[1][:stop])
        state = json.loads(json.dumps(run.state()))
        later = Prequential(model, every=50, delay=delay)
        later.restore(state)
        later.update(rows[0][stop:], rows[1][stop:])
        assert later.finish() == whole
    with pytest.raises(ValueError, match="'state'"):
        Prequential(model, metrics=["accuracy"]).restore(state)


def test_a_trace_can_be_kept(tmp_path):
    """As a dict, as CSV, as a table, and told while it runs."""
    seen = []
    trace = prequential(SILKClassifier(Gaussian(0.5), budget=20), data(3), every=10, progress=seen.append)
    assert seen == trace.records
    assert Trace.from_dict(json.loads(json.dumps(trace.to_dict()))) == trace
    trace.to_csv(tmp_path / "trace.csv")
    lines = list(csv.DictReader((tmp_path / "trace.csv").read_text().splitlines()))
    assert [int(line["row"]) for line in lines] == trace.row.tolist()
    assert [float(line["error_window"]) for line in lines] == trace.window("error").tolist()
    table = trace.table().splitlines()
    assert [int(line.split()[0]) for line in table[1:]] == [10, 20, 40, 80, 160, 300]
    assert (np.diff(trace.seconds) > 0).all()
    with pytest.raises(ValueError, match="'metric'"):
        trace.total("mae")


@pytest.mark.parametrize(("options", "parameter"), [
    ({"every": 0}, "every"), ({"delay": -1}, "delay"), ({"metrics": ["mae"]}, "metrics"),
    ({"metrics": "error"}, "metrics"),
])  # fmt: skip
def test_wrong_parameters(options, parameter):
    with pytest.raises(ValueError, match=f"'{parameter}' parameter of Prequential"):
        prequential(SILKClassifier(), data(2), **options)


def test_wrong_input():
    X, y = data(2)
    with pytest.raises(ValueError, match="'y' parameter"):
        prequential(SILKClassifier(), (X, None))
    with pytest.raises(ValueError, match="'y' parameter"):
        prequential(SILKClassifier(), (X, y[1:]))
    with pytest.raises(ValueError, match="'model' parameter"):
        prequential(object(), (X, y))
    with pytest.raises(ValueError, match="'metrics' parameter"):
        prequential(SILKDetector(), (X, None), metrics=["auc"])


def test_pictures(tmp_path):
    """One trace, or several by name; each curve is there."""
    traces = {name: prequential(SILKClassifier(Gaussian(0.5), budget=size), data(2), every=20)
              for name, size in (("small", 5), ("large", 50))}  # fmt: skip
    figure = plots.trace(traces, tmp_path / "two.png", title="two sizes")
    top, bottom = figure.axes
    assert (tmp_path / "two.png").stat().st_size > 5000
    assert [len(axes.lines) for axes in figure.axes] == [4, 2]
    assert {text.get_text() for text in top.texts} == {"small", "large"}
    assert bottom.lines[0].get_ydata().tolist() == traces["small"].support.tolist()
    one = plots.trace(traces["small"], metric="loss")
    assert one.axes[0].lines[1].get_ydata().tolist() == traces["small"].total("loss").tolist()
    X, y = (part[:20] for part in numbers())
    assert len(plots.trace(prequential(SGDRegressor(random_state=0), (X, y))).axes) == 1
    with pytest.raises(ValueError, match="'traces'"):
        plots.trace({})


MANY = [
    *CLASSIFIERS,
    NORMAClassifier(Gaussian(0.5), loss="logistic", rate=0.3),
    SILKClassifier(Gaussian(0.5), margin=0.4, budget=20),
    SVMDClassifier(Gaussian(0.5), rate=0.2),
    SILKClassifier(Gaussian(0.5), cost=taxonomy({"both": ["m", "c"], "rest": ["z", "a", "k"]}), budget=20),
    SILKClassifier(Gaussian(0.5), cost=1.0 * np.abs(np.subtract.outer(np.arange(5), np.arange(5)))),
]


def naive_losses(model, X, y, delay=0):
    """The loss of each row by its definition: of the score, or of those of the classes known (0 for a new one)."""
    found = []
    for t in range(len(X)):
        order = list(getattr(model, "_order", []))
        score = np.zeros(1) if not order else model._scores(X[t : t + 1])[0]
        if np.ndim(score) == 0 or not order:  # one score: the first class is -1, the second 1
            code = (order if y[t] in order else [*order, y[t]]).index(y[t])
            value = float(score) if order else 0.0
            if code < 2:
                found.append(float(model._loss().value(value, 2.0 * code - 1.0)))
            else:
                found.append(model._loss_many(None).value(np.array([-value / 2, value / 2, 0.0]), 2))
        else:
            z = list(score) if y[t] in order else [*score, 0.0]
            code = order.index(y[t]) if y[t] in order else len(order)
            found.append(model.learner_.loss.value(np.array(z), code))
        if t >= delay:
            model.partial_fit(X[t - delay : t - delay + 1], y[t - delay : t - delay + 1])
    return np.array(found)


@pytest.mark.parametrize("delay", [0, 3])
@pytest.mark.parametrize("model", MANY, ids=lambda model: f"{type(model).__name__}-{model.loss}-{model.cost is None}")
def test_the_loss_of_many_classes_is_measured(model, delay):
    """For every loss, from two classes to five that come one after the other: its value, never NaN."""
    X, y = data(5)
    given = {} if model.cost is None else {"classes": sorted(set(y.tolist()))}
    first = clone(model).partial_fit(X[:1], y[:1], **given)
    other = clone(model).partial_fit(X[:1], y[:1], **given)
    expected = naive_losses(other, X[1:], y[1:], delay)
    made = Prequential(first, every=64, delay=delay).update(X[1:], y[1:])
    assert np.isfinite(made.losses).all()
    assert made.losses == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", [Multiclass(), Softmax(), Multiclass(cost=[[0, 1, 2], [1, 0, 1], [2, 1, 0]])],
                         ids=["hinge", "softmax", "cost"])  # fmt: skip
def test_the_loss_of_a_learner_with_many_classes(loss):
    """A Learner by itself: classes are numbers, and one brings all those below it."""
    X = numbers()[0]
    y = np.r_[0, 2, np.random.default_rng(0).integers(0, 3, ROWS - 2)]
    learner, expected = parts(loss), []
    known = loss.classes or 0
    for t in range(ROWS):
        z = np.zeros(max(known, y[t] + 1))
        if learner.steps:
            z[:known] = learner.score(X[t : t + 1])[0][:known]
        expected.append(loss.value(z, int(y[t])))
        known = len(z)
        learner.learn(X[t : t + 1], y[t : t + 1])
    assert Prequential(parts(loss), every=50).update(X, y).losses == pytest.approx(expected)


@pytest.mark.parametrize("every", [ROWS, 60])
@pytest.mark.parametrize("classes", [2, 4])
def test_ratios_and_areas_are_those_of_scikit_learn(classes, every):
    """Precision, recall, F1 over all rows; AUC and log loss in each window: what scikit-learn says of the same rows."""
    X, y = data(classes)
    model = SILKClassifier(Gaussian(0.5), loss="logistic").partial_fit(X[:90], y[:90])
    scores = clone(model).fit(X[:90], y[:90])  # another of the same, row by row
    scores = SILKClassifier(Gaussian(0.5), loss="logistic").partial_fit(X[:90], y[:90])
    told, said, f = [], [], []
    for t in range(90, ROWS):
        told.append(scores.predict_proba(X[t : t + 1])[0])
        said.append(scores.predict(X[t : t + 1])[0])
        f.append(scores.decision_function(X[t : t + 1])[0])
        scores.partial_fit(X[t : t + 1], y[t : t + 1])
    names = ["precision", "recall", "f1", "auc", "log_loss"]
    trace = prequential(model, (X[90:], y[90:]), metrics=names, every=every)
    average = {"average": "macro", "zero_division": 0.0}
    if classes == 2:
        average = {"average": "binary", "pos_label": max(y), "zero_division": 0.0}
    for end, record in zip(trace.row, trace.records, strict=True):
        for start, found in ((0, record.total), (end - record.rows, record.window)):
            part = slice(start, end)
            three = precision_recall_fscore_support(y[90:][part], said[part], **average)[:3]
            assert [found[name] for name in names[:3]] == pytest.approx(three)
        part = slice(end - record.rows, end)
        truth, values = y[90:][part], np.array(f[part])
        if classes == 2:
            area = roc_auc_score(truth == max(y), values)
        else:
            area = np.mean([roc_auc_score(truth == c, values[:, i]) for i, c in enumerate(model.classes_)])
        assert record.window["auc"] == pytest.approx(area)
        assert record.window["log_loss"] == pytest.approx(log_loss(truth, np.array(told[part]), labels=model.classes_))
    weights = [record.rows for record in trace.records]
    assert trace.total("auc")[-1] == pytest.approx(np.average(trace.window("auc"), weights=weights))
    assert trace.total("log_loss")[-1] == pytest.approx(log_loss(y[90:], np.array(told), labels=model.classes_))


def test_metrics_of_one_class():
    """``positive`` says whose precision, recall, F1 and AUC are meant, of two classes or more."""
    for classes, goal in ((2, "c"), (4, "z")):
        X, y = data(classes)
        made = Prequential(SILKClassifier(Gaussian(0.5)), every=ROWS).update(X, y)
        trace = prequential(SILKClassifier(Gaussian(0.5)), (X, y), every=ROWS, positive=goal,
                            metrics=["precision", "recall", "auc"])  # fmt: skip
        hits = ((made.labels == goal) & (y == goal) & made.known).sum()
        assert trace.total("precision")[0] == pytest.approx(hits / ((made.labels == goal) & made.known).sum())
        assert trace.total("recall")[0] == pytest.approx(hits / (y == goal).sum())
        assert 0.4 < trace.total("auc")[0] < 1
    with pytest.raises(ValueError, match="'log_loss' for a model without probabilities"):
        Prequential(SGDClassifier(), metrics=["log_loss"])
    trace = prequential(SGDClassifier(loss="log_loss", random_state=0), (X, y), classes=sorted(set(y.tolist())),
                        metrics=["log_loss", "f1", "auc"])  # fmt: skip
    assert np.isfinite([trace.total(name)[0] for name in trace.metrics]).all()


@pytest.mark.parametrize(("model", "rows"), CASES, ids=lambda case: type(case).__name__)
def test_new_metrics_do_not_show_the_chunks(model, rows):
    """Every metric of a task, with late labels or not, interrupted or not: equal, to the last bit."""
    task = prequential(clone(model), rows).task
    metrics = list(METRICS[task])
    for delay in (0, 5):
        whole = prequential(clone(model), rows, every=70, metrics=metrics, delay=delay)
        for size in (1, 33):
            stream = open_stream(rows, chunk_rows=size)
            assert prequential(clone(model), stream, every=70, metrics=metrics, delay=delay) == whole
        X, y = rows
        learning = clone(model)
        first = Prequential(learning, every=70, metrics=metrics, delay=delay)
        first.update(X[:115], y[:115])
        second = Prequential(learning, every=70, metrics=metrics, delay=delay)
        second.restore(json.loads(json.dumps(first.state())))
        second.update(X[115:], y[115:])
        assert second.finish() == whole


@pytest.mark.parametrize("pipe", [False, True])
@pytest.mark.parametrize(("model", "rows"), CASES, ids=lambda case: type(case).__name__)
def test_late_labels_are_those_of_single_rows(model, rows, pipe):
    """With late labels, scores and the model are to the bit those of predict and partial_fit, one row at a time."""
    X, y = rows
    one, other = (pipeline(OnlineScaler(forget=0.01), clone(model)) if pipe else clone(model) for _ in range(2))
    made = Prequential(one, every=64, delay=6).update(X, y)
    face = Face(other, Prequential(other).task)
    expected = []
    for t in range(ROWS):
        expected.append(face.predict(X[t : t + 1], y[t : t + 1]))
        if t >= 6:
            face.learn(X[t - 6 : t - 5], y[t - 6 : t - 5])
    assert one.to_bytes() == other.to_bytes()
    expected = Predictions.join(expected)
    assert np.array_equal(made.single(), expected.single(), equal_nan=True)
    assert np.array_equal(made.losses, expected.losses, equal_nan=True)
    assert np.array_equal(made.labels[made.known], expected.labels[expected.known])


def test_late_labels_cost_a_few_times_a_row_without():
    """The cost of a row with a late label is a few times that of one without, not a hundred times."""
    X, y = np.random.default_rng(0).normal(size=(4000, 8)), np.arange(4000) % 2
    seconds = []
    for delay in (0, 7):
        run = Prequential(pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.1))), every=1000, delay=delay)
        run.update(X[:500], y[:500])
        start = time.perf_counter()
        run.update(X[500:], y[500:])
        seconds.append(time.perf_counter() - start)
    assert seconds[1] < 12 * seconds[0]


class Growing(RegressorMixin, BaseEstimator):
    """A model whose predictions grow by a factor with each row."""

    def __init__(self, factor=10.0):
        self.factor = factor

    def partial_fit(self, X, y):
        self.n_ = getattr(self, "n_", 0) + len(X)
        return self

    def predict(self, X):
        with np.errstate(over="ignore"):
            return np.full(len(X), np.float64(self.factor) ** getattr(self, "n_", 0))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Growing(), ["The predictions are not finite in the rows up to 400"]),
        (Growing(1.1), ["The scores have grown to"]),
        (SILKClassifier(Gaussian(1e9)), ["The predictions are all the same in the 99 rows up to 100"]),
        (SILKRegressor(Gaussian(1e9), loss="huber", scale_target=False), ["The predictions are all the same"]),
    ],
    ids=["infinite", "large", "constant classes", "constant numbers"],
)
def test_predictions_that_mean_nothing_are_told_once(model, words):
    """Scores that diverge, and predictions that are all the same: one RuntimeWarning of each kind, with a reason."""
    X = np.random.default_rng(0).normal(size=(600, 4))
    y = X[:, 0] > 0 if "Classifier" in type(model).__name__ else X[:, 0]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        prequential(model, (X, y), every=100)
    mine = [str(one.message) for one in told if " rows up to " in str(one.message)]
    assert len({text[:30] for text in mine}) == len(mine)  # each kind once
    for word in words:
        assert any(text.startswith(word) for text in mine), mine
        assert all("smaller" in text for text in mine)


def test_a_regressor_that_gives_the_running_mean_alone_is_told():
    """With targets scaled as they come, predictions of a collapsed model follow their mean: it says so itself."""
    X = np.random.default_rng(0).normal(size=(900, 4))
    with pytest.warns(CollapseWarning, match="the same score"):
        prequential(SILKRegressor(Gaussian(1e9)), (X, X[:, 0]), every=300)


@pytest.mark.parametrize(("model", "rows"), CASES, ids=lambda case: type(case).__name__)
def test_healthy_models_are_not_warned_about(model, rows):
    """Warnings are errors in these tests: sane models on sane rows give none, in windows of any size."""
    for every in (50, 100, 300):
        prequential(clone(model), rows, every=every)
