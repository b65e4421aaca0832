"""Laws of prequential evaluation: it counts what a loop that predicts and learns row by row would count."""

import csv
import json
import math

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from gossamer import (
    KernelPerceptron,
    Learner,
    NORMAClassifier,
    NORMADetector,
    NORMARegressor,
    PARegressor,
    SILKClassifier,
    SILKDetector,
    SILKRegressor,
    plots,
    taxonomy,
)
from gossamer.budgets import Smallest
from gossamer.evaluate import Prequential, Trace, prequential
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Multiclass, Novelty, Squared
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
        sizes.append(len(model.support_vectors_) if hasattr(model, "learner_") else None)
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
    # a third class ends it, from its window on
    losses = prequential(SILKClassifier(Gaussian(0.5)), data(3), every=20).window("loss")
    assert np.isfinite(losses[:2]).all()
    assert np.isnan(losses[2:]).any()


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
