"""Pipelines that go on learning: every split, every failure, and scikit-learn's ways with them."""

import copy
import inspect
import itertools
import pickle

import numpy as np
import pytest
from parts import as_they_come, compiled_kernel
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

import gossamer
from gossamer import OnlinePipeline, OnlineScaler, SILKClassifier, SILKRegressor, pipeline
from gossamer.estimators.base import Online
from gossamer.kernels import Custom, Gaussian, Linear

MODELS = [getattr(gossamer, name) for name in gossamer.__all__]
MODELS = [part for part in MODELS if isinstance(part, type) and issubclass(part, Online)]
MODELS = [part for part in MODELS if "n_passes" in inspect.signature(part).parameters]  # mixtures: tests/mixture
every_model = pytest.mark.parametrize("part", MODELS, ids=lambda part: part.__name__)


def data(part, rows=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3)) * [1.0, 1e4, 1e-3] + [0.0, -1e4, 5.0]
    smooth = np.sin(X[:, 0]) + X[:, 1] / 1e4 + 1
    kind = part.__name__
    return X, None if "Detector" in kind else smooth if "Regressor" in kind else np.where(smooth > 0, "up", "down")


def made(part, forget=0.02):
    return pipeline(OnlineScaler(forget), part(compiled_kernel(part), budget=20))


def cut(y, part):
    return None if y is None else y[part]


def facts(model):
    """All that a pipeline knows."""
    found = {name: np.asarray(value).tolist() for name, value in vars(model[0]).items()}
    learned = vars(model[-1])
    if "learner_" in learned:
        state = model[-1].learner_.state()
        found |= {f"state {name}": np.asarray(value).tolist() for name, value in state.items() if name != "kernel"}
    names = {*learned} - {*model[-1].get_params(), "learner_"}
    return found | {f"model {name}": np.asarray(learned[name]).tolist() for name in names}


@every_model
def test_equals_its_steps(part):
    """predict_learn is learn_transform and then the model's predict_learn; partial_fit learns the same."""
    X, y = data(part)
    model, scaler, inner = made(part), OnlineScaler(0.02), part(compiled_kernel(part), budget=20)
    expected = inner.predict_learn(scaler.learn_transform(X), y)
    assert np.array_equal(model.predict_learn(X, y), expected)
    assert facts(model) == facts(made(part).partial_fit(X, y))
    for method in ("predict", "decision_function", "score_samples"):
        assert hasattr(model, method) == hasattr(inner, method)
        if hasattr(inner, method):
            assert np.array_equal(getattr(model, method)(X), getattr(inner, method)(scaler.transform(X)))


@pytest.mark.parametrize("cuts", [[1], [30, 31], range(1, 90)], ids=str)
@every_model
def test_any_split(part, cuts):
    """One call, any split and row by row give the same pipeline."""
    X, y = data(part)
    whole, split = made(part).partial_fit(X, y), made(part)
    for piece in itertools.starmap(slice, itertools.pairwise([0, *cuts, len(X)])):
        split.partial_fit(X[piece], cut(y, piece))
    assert facts(split) == facts(whole)


@every_model
def test_fit_is_sklearns(part):
    """fit starts anew: the scaler learns all rows first, then the model makes its passes."""
    X, y = data(part)
    model = made(part).partial_fit(X, y).fit(X, y)
    scaler = OnlineScaler(0.02).fit(X)
    inner = part(compiled_kernel(part), budget=20).fit(scaler.transform(X), y)
    assert np.array_equal(model.predict(X), inner.predict(scaler.transform(X)))
    assert model[0].n_seen_ == model[-1].n_seen_ == len(X)
    assert made(part).set_params(**{f"{model.steps[-1][0]}__n_passes": 3}).fit(X, y)[-1].n_seen_ == 3 * len(X)


def fragile(A, B):
    if np.abs(B).max() > 50:
        raise ZeroDivisionError
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))


@every_model
def test_bad_batches_change_nothing(part):
    """Bad rows fail in the scaler, bad targets, weights or a kernel in the model: both steps stay as they were."""
    X, y = data(part)
    late = X.copy()
    late[-1, 0] = np.nan
    jump = np.vstack([np.tile(X, (100, 1)), 1e9 + X[:1]])
    long = None if y is None else np.append(np.tile(y, 100), y[:1])
    calls = [
        (ValueError, lambda m: m.partial_fit(late, y)),
        (ValueError, lambda m: m.fit(late, y)),
        (ValueError, lambda m: m.predict_learn(X[:, :2], y)),
        (ValueError, lambda m: m.partial_fit(X, y, sample_weight=np.full(len(X), -1.0))),
        (ValueError, lambda m: m.fit(X, y, sample_weight=np.full(len(X), -1.0))),
        (ZeroDivisionError, lambda m: m.partial_fit(jump, long)),
        (ZeroDivisionError, lambda m: m.set_params(onlinescaler__with_std=False).fit(X, y)),
    ]
    if y is not None:
        calls += [(ValueError, lambda m: m.partial_fit(X, y[1:])), (ValueError, lambda m: m.fit(X, y[1:]))]
    for (error, call), fresh in itertools.product(calls, (False, True)):
        model = pipeline(OnlineScaler(), part(Custom(fragile), budget=20, **as_they_come(part)))
        if not fresh:
            model.partial_fit(X, y)
        elif error is ValueError and call is calls[2][1]:
            continue
        before = {**facts(model), "with_std": None}
        with pytest.raises(error):
            call(model)
        assert {**facts(model), "with_std": None} == before


def test_third_class_and_classes():
    """Labels may come late; classes and sample_weight are handed to the model."""
    X, y = data(SILKClassifier)
    y = y.astype(object)
    y[60:] = "left"
    assert made(SILKClassifier).partial_fit(X, y).classes_.tolist() == ["down", "left", "up"]
    model = made(SILKClassifier).partial_fit(X[:10], y[:10], classes=["down", "up"], sample_weight=np.ones(10))
    with pytest.raises(ValueError, match="must be one of the classes"):
        model.partial_fit(X, y)
    assert model.score(X[:60], y[:60]) > 0.5


def test_probabilities():
    """predict_proba, predict_set and predict_interval are there where the model has them, and are the model's."""
    X, y = data(SILKClassifier)
    model = pipeline(OnlineScaler(), SILKClassifier()).partial_fit(X, y)
    Z = model[0].transform(X)
    for verb in ("predict_proba", "predict_set"):
        assert np.array_equal(getattr(model, verb)(X), getattr(model[-1], verb)(Z))
        assert not hasattr(made(SILKRegressor), verb)
    numbers = made(SILKRegressor).partial_fit(*data(SILKRegressor))
    assert numbers.predict_interval(X, coverage=[0.8, 0.9]).shape == (len(X), 2, 2)
    assert not hasattr(model, "predict_interval")


@every_model
def test_copies(part):
    """pickle, deepcopy and clone; a copy goes on by itself."""
    X, y = data(part)
    model = made(part).partial_fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        expected = facts(copy.deepcopy(model).partial_fit(X, y))
        assert facts(other.partial_fit(X, y)) == expected
    assert model[0].n_seen_ == len(X)
    assert "mean_" not in vars(clone(model)[0])


def test_parameters_and_steps():
    """Names, parameters, slices and grids are those of scikit-learn's Pipeline."""
    scaler = OnlineScaler()
    model = pipeline(scaler, SILKRegressor("gaussian"))
    assert list(model.named_steps) == ["onlinescaler", "silkregressor"]
    assert model["silkregressor"] is model[-1]
    assert list(model.get_params(deep=False)) == ["steps"]
    X, y = data(SILKRegressor)
    kernel = Gaussian(0.5)
    assert pipeline(OnlineScaler(), SILKRegressor(kernel)).fit(X, y)[-1].kernel is kernel
    model.partial_fit(X, y)
    assert scaler.n_seen_ == len(X)  # the step is the object that was given
    assert type(model[:1]) is Pipeline
    assert np.array_equal(model[:1].transform(X), scaler.transform(X))
    grid = GridSearchCV(model, {"onlinescaler__forget": [0.0, 0.1], "silkregressor__C": [0.1, 10.0]}, cv=2).fit(X, y)
    assert grid.best_params_["silkregressor__C"] == 10.0
    assert grid.best_estimator_.partial_fit(X, y)[0].n_seen_ == 2 * len(X)
    assert "OnlineScaler()" in repr(model)
    assert "SILKRegressor" in model._repr_html_()


def test_other_transformers():
    """Transformers that need no fitting may come before; text becomes sparse rows and is learned."""
    X, y = data(SILKClassifier)
    assert pipeline(OnlineScaler(), Normalizer(), SILKClassifier()).partial_fit(X, y)[-1].n_seen_ == len(X)
    words = ["good great", "bad awful", "great fun", "awful dull"] * 5
    text = pipeline(HashingVectorizer(n_features=256), SILKClassifier(Linear()))
    text.partial_fit(words, [1, 0, 1, 0] * 5)
    assert text.predict(["fun good", "dull"]).tolist() == [1, 0]


@pytest.mark.parametrize("steps", [(OnlineScaler(), SGDClassifier()), (PCA(), SILKClassifier()), (OnlineScaler(),)],
                         ids=str)  # fmt: skip
def test_bad_steps(steps):
    """A model that cannot go on, or a transformer that must see everything first, is refused by name."""
    X, y = data(SILKClassifier)
    for call in ("fit", "partial_fit", "predict_learn"):
        with pytest.raises(ValueError, match="The 'steps' parameter of OnlinePipeline must be"):
            getattr(pipeline(*steps), call)(X, y)
    with pytest.raises(ValueError, match="The 'steps' parameter of OnlinePipeline must be at least a model"):
        OnlinePipeline([]).partial_fit(X, y)
