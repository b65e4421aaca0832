"""scikit-learn's own checks on every public estimator, and what its users do: frames, sparse rows, grids, clones."""

import functools
import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from parts import as_they_come, compiled_kernel
from sklearn.base import BaseEstimator, clone, is_classifier, is_outlier_detector, is_regressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import gossamer
from gossamer import OnlinePipeline, OnlineScaler, SILKClassifier, pipeline
from gossamer.budgets import Nystrom
from gossamer.estimators import inputs
from gossamer.estimators.base import Online
from gossamer.kernels import Custom, Gaussian, Linear, Polynomial

PUBLIC = [getattr(gossamer, name) for name in gossamer.__all__]
PUBLIC = [part for part in PUBLIC if isinstance(part, type) and issubclass(part, BaseEstimator)]
MODELS = [part for part in PUBLIC if issubclass(part, Online)]
#: Those of four parts, with their parameters.
RECIPES = [part for part in MODELS if "average" in inspect.signature(part).parameters]
#: A pipeline is made of steps: one for each kind of model.
PIPELINES = [
    pipeline(OnlineScaler(), gossamer.SILKClassifier()),
    pipeline(OnlineScaler(forget=0.01), gossamer.PARegressor()),
    pipeline(OnlineScaler(), gossamer.SILKDetector()),
    gossamer.Mixture([gossamer.NewtonClassifier(budget=40)]),
    gossamer.Mixture([gossamer.NewtonRegressor(budget=40)]),
    gossamer.PerTarget(gossamer.NewtonRegressor(budget=40)),
]
#: Those that need others to be made of.
MADE_OF = (OnlinePipeline, gossamer.Mixture, gossamer.PerTarget)
INSTANCES = [part() for part in PUBLIC if part not in MADE_OF] + PIPELINES


def expected_failures(estimator):
    """The checks that cannot pass, and why."""
    if isinstance(estimator, OnlinePipeline):
        return {"check_estimators_overwrite_params": "as scikit-learn's own Pipeline, it holds its fitted steps itself"}
    if not isinstance(estimator, (Online, gossamer.Mixture, gossamer.PerTarget)):
        return {}
    why = "a weight scales the step of one example, which is not the same as learning that example several times"
    found = {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@parametrize_with_checks(INSTANCES, expected_failed_checks=expected_failures)
def test_checks_of_sklearn(estimator, check):
    """What scikit-learn asks of an estimator."""
    check(estimator)


def name_of(case):
    return getattr(case, "__name__", None)


every_model = pytest.mark.parametrize("part", MODELS, ids=name_of)
every_recipe = pytest.mark.parametrize("part", RECIPES, ids=name_of)


@functools.cache
def data(part, rows=80, seed=0):
    """Rows with zeros among them, and targets for this estimator."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)) * (rng.random((rows, 5)) < 0.4)
    smooth = np.sin(2 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=rows)
    if is_regressor(part()):
        return X, smooth
    return X, np.where(smooth > 0, "up", "down") if is_classifier(part()) else None


def said(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


# ------------------------------------------------------------------------------------------------------------ frames


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
@pytest.mark.parametrize("part", [*MODELS, OnlineScaler], ids=name_of)
def test_frames(part, frame):
    """A frame is learned as its numbers; its columns are remembered, and others are refused by name."""
    X, y = data(part) if part in MODELS else data(gossamer.PARegressor)
    named = frame(dict(zip("abcde", X.T, strict=True)))
    plain, model = part().fit(X, y), part().fit(named, y)
    assert model.feature_names_in_.tolist() == list("abcde")
    assert not hasattr(plain, "feature_names_in_")
    use = (lambda m: m.transform) if part is OnlineScaler else (lambda m: functools.partial(said, m))
    assert np.array_equal(use(model)(named), use(plain)(X))
    before = pickle.dumps(model)
    renamed, turned = frame(dict(zip("abcdz", X.T, strict=True))), frame(dict(zip("edcba", X.T, strict=True)))
    for wrong, words in ((renamed, r"unseen at fit time:\n- z\n.*missing:\n- e\n"), (turned, "same order")):
        for call in (use(model), lambda X: model.partial_fit(X, y)):
            with pytest.raises(ValueError, match=rf"(?s)^The 'X' parameter of {part.__name__} must be .*{words}.* Got"):
                call(wrong)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        use(model)(X)
    assert pickle.dumps(model) == before
    model.fit(X, y)
    assert not hasattr(model, "feature_names_in_")


def test_a_column_that_is_no_number():
    """It is refused, whatever frame it comes in, and a missing number too."""
    for frame in (pd.DataFrame, pl.DataFrame):
        for column in (["x", "y", "z"], [1.0, None, 2.0]):
            words = r"^The 'X' parameter of SILKClassifier must be (a matrix|finite).*column 'b'"
            with pytest.raises(ValueError, match=words):
                SILKClassifier().fit(frame({"a": [1.0, 2.0, 3.0], "b": column}), [0, 1, 0])


# ------------------------------------------------------------------------------------------------------------ sparse


@pytest.fixture
def small_parts(monkeypatch):
    """Sparse rows become dense at most 7 at a time."""
    monkeypatch.setattr(inputs, "MOST_ROWS", 7)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_model
def test_sparse_equals_dense(part, dtype):
    """Learned and scored part by part, sparse rows give the same bits as dense ones, also with a third class."""
    X, y = data(part)
    X = X.astype(dtype)
    targets = [y]
    if is_classifier(part()) and part().__sklearn_tags__().classifier_tags.multi_class:
        late = y.astype(object)
        late[45::3] = "sideways"
        targets.append(late)
    for y in targets:
        dense, sparse = (part(compiled_kernel(part), budget=20) for _ in range(2))
        weights = np.linspace(0.5, 1.5, len(X))
        for rows in (slice(3), slice(3, None)):
            cut = None if y is None else y[rows]
            expected = dense.predict_learn(X[rows], cut, sample_weight=weights[rows])
            got = sparse.predict_learn(sp.csr_array(X[rows]), cut, sample_weight=weights[rows])
            assert np.array_equal(got, expected)
        assert np.array_equal(said(sparse, sp.coo_matrix(X)), said(dense, X))
        assert sparse.support_vectors_.dtype == dtype


@pytest.mark.usefixtures("small_parts")
@every_recipe
def test_bad_sparse_rows_change_nothing(part):
    """A NaN, a wrong width, a target too few or a kernel that fails in a late part: as if nothing had been learned."""

    def fragile(A, B):
        if np.abs(B).max() > 100:
            raise ZeroDivisionError
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(axis=2))

    X, y = data(part)
    model = part(Custom(fragile), budget=20, **as_they_come(part)).fit(sp.csr_matrix(X), y)
    before = pickle.dumps((model.learner_.state().raw, model.n_seen_, sorted(vars(model))))
    late, far = X.copy(), X.copy()
    late[-1, -1], far[-1, 0] = np.nan, 200.0
    short = None if y is None else y[:-1]
    calls = [(late, y, ValueError), (X[:, :3], y, ValueError), (far, y, ZeroDivisionError)]
    for bad, targets, error in [*calls, (X, short, ValueError)][: len(calls) + (y is not None)]:
        with pytest.raises(error):
            model.partial_fit(sp.csr_matrix(bad), targets)
        assert pickle.dumps((model.learner_.state().raw, model.n_seen_, sorted(vars(model)))) == before


def test_sparse_memory_is_bounded():
    """Where rows must be dense, as for the features of `Nystrom`, they become so in parts of at most 32 MB."""
    assert inputs.MOST_VALUES * 8 <= 2**25
    X = sp.random(120, 100_000, density=1e-5, format="csr", random_state=0)
    seen = []

    class Watching(SILKClassifier):
        def _start(self, loss=None):
            learner = super()._start(loss)
            whole = learner.learn
            learner.learn = lambda X, *rest, **more: seen.append(X.nbytes) or whole(X, *rest, **more)
            return learner

    model = Watching(Linear(), budget=Nystrom(4)).partial_fit(X, np.arange(120) % 2)
    assert len(seen) == 3
    assert max(seen) <= 2**25
    assert model.predict(X).shape == (120,)


def test_sparse_objects():
    """A kernel on objects gets the rows as they are."""
    kernel = Custom(lambda A, B: np.array([[float((a * b).sum()) for b in B] for a in A]), objects=True)
    X = sp.csr_array(np.eye(3))
    model = SILKClassifier(kernel).fit(X, [0, 1, 0])
    assert sp.issparse(model.support_vectors_[0])
    assert model.predict(X).tolist() == [0, 1, 0]
    assert not hasattr(model, "n_features_in_")


def test_words():
    """Kernels on words: sequences, series and arrays of them, and a third class that comes late."""
    model = SILKClassifier(lambda A, B: np.array([[float(len(set(a) & set(b))) for b in B] for a in A]))
    model.partial_fit(["spam", "ham", "eggs"], [1, 0, 0]).partial_fit(pd.Series(["xyz", "spam"]), [2, 1])
    model.partial_fit(np.array(["zyx"]), [2])
    assert model.predict(["zx", "spa"]).tolist() == [2, 1]
    assert not hasattr(model, "n_features_in_")


# ------------------------------------------------------------------------------------------------- the rest of its life


@every_recipe
def test_grid_search_and_pipelines(part):
    """Cross-validation, a grid over kernels and one over steps; what is best is a working model."""
    X, y = data(part)
    scoring = None if hasattr(part(), "score") else lambda model, X, y=None: float(np.mean(model.predict(X)))
    grid = GridSearchCV(part(budget=10), {"kernel": [Gaussian(0.3), Polynomial(2, 0.3)]}, cv=2, scoring=scoring)
    grid.fit(X, y)
    assert grid.best_params_["kernel"] in (Gaussian(0.3), Polynomial(2, 0.3))
    steps = make_pipeline(StandardScaler(), part(budget=10))
    assert np.isfinite(cross_val_score(steps, X, y, cv=2, scoring=scoring)).all()
    step = steps.steps[-1][0]
    best = GridSearchCV(steps, {f"{step}__budget": [5, None]}, cv=2, scoring=scoring).fit(X, y).best_estimator_
    assert len(best.predict(X)) == len(X)


@every_recipe
def test_fit_passes_and_partial_fit_goes_on(part):
    """fit starts anew and makes n_passes passes; partial_fit makes one more."""
    X, y = data(part)
    model = part(Gaussian(0.3), n_passes=3).fit(X, y)
    assert model.n_seen_ == 3 * len(X)
    assert model.partial_fit(X, y).n_seen_ == 4 * len(X)
    assert model.fit(X, y).n_seen_ == 3 * len(X)
    for method in (part.fit, part.partial_fit):
        assert ("anew" in method.__doc__) == (method is part.fit)


@every_model
def test_reprs(part):
    """An estimator shows what was changed, kernels as they are written; fitting changes nothing about it."""
    X, y = data(part)
    model = part(Gaussian(0.3) + 0.5 * Linear(), budget=7)
    budget = "" if inspect.signature(part).parameters["budget"].default == 7 else "budget=7, "
    text = "".join(repr(model).split())
    kernel = "Sum(left=Gaussian(gamma=0.3),right=Scaled(base=Linear(),factor=0.5))"
    assert text == f"{part.__name__}({budget.strip(' ')}kernel={kernel})"
    assert repr(model.fit(X, y)) == repr(model) == repr(clone(model))
    assert part.__name__ in model._repr_html_()


@every_model
def test_all_weights_zero(part):
    """fit refuses weights that are all zero; a later batch of them just ages the model."""
    X, y = data(part)
    zero = np.zeros(len(X))
    with pytest.raises(ValueError, match=r"The 'sample_weight' parameter of \w+ must be above zero for some row"):
        part().fit(X, y, sample_weight=zero)
    model = part(Gaussian(0.3)).fit(X, y)
    points = len(model.support_vectors_)
    assert len(model.partial_fit(X, y, sample_weight=zero).support_vectors_) == points


def test_continuous_labels():
    """fit refuses targets of a regression; fractions that come back are labels like others."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match="The 'y' parameter of SILKClassifier must be labels, not continuous numbers"):
        SILKClassifier().fit(X, X[:, 0])
    assert SILKClassifier().fit(X, np.where(X[:, 0] > 0, 0.5, 1.5)).classes_.tolist() == [0.5, 1.5]


def test_known_labels_are_matched_exactly():
    """The short way for known labels gives the numbers of the long one, and leaves to it what it does not know."""
    from gossamer.estimators.labels import encode

    rng = np.random.default_rng(0)
    for order in ([3, 1], [0.5, -1.0, 2.0], ["b", "aa", "c"], [True, False]):
        codes = rng.integers(0, len(order), 50)
        labels = np.array(order)[codes]
        assert np.array_equal(encode(labels, order), codes)
        assert encode(labels, order[:1]) is None
    assert encode(np.array(["a", "b"], dtype=object), ["a", "b"]) is None


@pytest.mark.parametrize("part", [part for part in MODELS if is_outlier_detector(part())], ids=name_of)
def test_detectors_find_what_is_strange(part):
    """Rows far from all others are alarms, -1, and the usual ones 1; all of scikit-learn's names agree."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 2))
    model = part(Gaussian(0.5)).fit(X)
    far = rng.normal(size=(50, 2)) + 20.0
    assert (model.predict(far) == -1).all()
    assert (model.predict(X) == 1).mean() > 0.8
    assert np.array_equal(model.decision_function(X), model.score_samples(X) - model.offset_)
    assert np.array_equal(clone(model).fit_predict(X), model.predict(X))
