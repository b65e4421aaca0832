"""Sparse rows through every estimator: as dense ones, in any split, stored and resumed; some become dense."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from parts import as_they_come, random_rows
from sklearn.base import BaseEstimator, is_classifier, is_regressor
from sklearn.feature_extraction.text import HashingVectorizer

import gossamer
from gossamer import Learner, OnlineClassifier, OnlineScaler, SILKClassifier, merge, pipeline, store
from gossamer.bank import ModelBank
from gossamer.budgets import Fourier, Merge, Nystrom, Project
from gossamer.estimators.base import Online
from gossamer.kernels import Custom, Gaussian, Linear, Matern, Polynomial

MODELS = [value for name in gossamer.__all__ if inspect.isclass(value := getattr(gossamer, name))]
MODELS = [part for part in MODELS if issubclass(part, BaseEstimator) and issubclass(part, Online)]
#: Those with a kernel of rows, whose points are sparse.
RECIPES = [
    part for part in MODELS
    if "average" in inspect.signature(part).parameters and not part.__name__.startswith("Additive")
]  # fmt: skip
OTHERS = [part for part in MODELS if part not in RECIPES]
KERNELS = [Linear(), Polynomial(2), Gaussian(0.3), "gaussian"]
WORDS = ("decision_function", "predict", "predict_proba", "score_samples")

every_recipe = pytest.mark.parametrize("part", RECIPES, ids=lambda part: part.__name__)


def data(part, rows=60, features=30, seed=0):
    """Rows that are mostly zeros, as a matrix and as CSR, and targets."""
    X = random_rows(rows, features, 0.2, np.random.default_rng(seed))
    scores = X @ np.sin(np.arange(features))
    if is_classifier(part()):
        return X.toarray(), X, np.where(scores > 0, "up", "down")
    return X.toarray(), X, scores if is_regressor(part()) else None


def answers(model, X):
    """Everything that a model says about rows."""
    return {name: getattr(model, name)(X) for name in WORDS if hasattr(model, name)}


def assert_near(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        if values.dtype.kind in "fc":
            np.testing.assert_allclose(found[name], values, rtol=1e-9, atol=1e-9 * (1 + np.abs(values).max()))
        else:
            assert np.array_equal(found[name], values)


@every_recipe
def test_sparse_is_dense(part):
    """Every verb and kernel: the same answers to 1e-9 (to the bit unless something is settled on the rows), and points
    that are sparse."""
    X, S, y = data(part)
    for kernel in KERNELS:
        for budget in (12, Project(12)):
            dense, sparse = part(kernel, budget=budget), part(kernel, budget=budget)
            assert_near({"": sparse.predict_learn(S, y)}, {"": dense.predict_learn(X, y)})
            sparse.partial_fit(S.tocoo(), y)
            dense.partial_fit(X, y)
            assert_near(answers(sparse, S), answers(dense, X))
            assert_near(answers(sparse, X), answers(dense, X))
            assert_near(answers(part(kernel, budget=budget).fit(S, y), S), answers(dense.fit(X, y), X))
            assert sp.issparse(sparse.support_vectors_)
            assert sparse.n_features_in_ == X.shape[1]


@every_recipe
def test_batches_and_files(part):
    """Any split of sparse rows gives the same bits, and so does a model that was stored or pickled in between."""
    _, S, y = data(part)
    whole, split, stored, pickled = (part(Gaussian(0.3), budget=12) for _ in range(4))
    expected = whole.predict_learn(S, y)
    found = []
    for rows in (slice(1), slice(1, 2), slice(2, 33), slice(33, None)):
        cut = None if y is None else y[rows]
        found.append([model.predict_learn(S[rows], cut) for model in (split, stored, pickled)])
        stored, pickled = store.loads(store.dumps(stored)), pickle.loads(pickle.dumps(pickled))
        assert sp.issparse(stored.support_vectors_)
    if np.ndim(expected) == 1:
        for made in zip(*found, strict=True):
            assert np.array_equal(np.concatenate(made), expected)
    for model in (split, stored, pickled):
        for name, values in answers(whole, S).items():
            assert np.array_equal(getattr(model, name)(S), values)
        assert store.dumps(model) == store.dumps(whole)


def test_what_else_they_do():
    """Probabilities, sets, intervals, p-values, clocks, class weights and several targets: as of dense rows."""
    X, S, y = data(SILKClassifier)
    goals = np.column_stack([X @ np.sin(np.arange(30)), X @ np.cos(np.arange(30))])
    days = np.arange(len(X)) * 86400.0

    def found(R):
        classifier = SILKClassifier(Gaussian(0.3), budget=12, class_weight="balanced", half_life="7 days")
        classifier.partial_fit(R, y, time=days)
        regressor = gossamer.SILKRegressor(Gaussian(0.3), budget=12).partial_fit(R, goals[:, 0])
        several = gossamer.NewtonRegressor(Gaussian(0.3), budget=12).partial_fit(R, goals)
        detector = gossamer.SILKDetector(Gaussian(0.3), budget=12).partial_fit(R)
        return [
            classifier.predict_proba(R), np.asarray(classifier.predict_set(R)), several.predict(R),
            np.asarray(regressor.predict_interval(R)), detector.score_pvalue(R),
        ]  # fmt: skip

    for sparse, dense in zip(found(S), found(X), strict=True):
        np.testing.assert_allclose(sparse, dense, rtol=1e-9, atol=1e-12)


def test_a_third_class():
    """It comes late: one score becomes three, sparse as dense."""
    X, S, y = data(SILKClassifier)
    y = y.astype(object)
    y[40::3] = "sideways"
    dense, sparse = SILKClassifier(Gaussian(0.3), budget=12), SILKClassifier(Gaussian(0.3), budget=12)
    assert np.array_equal(sparse.predict_learn(S, y), dense.predict_learn(X, y))
    assert np.array_equal(sparse.decision_function(S), dense.decision_function(X))


def test_weights_of_a_linear_model():
    """``coef_`` of sparse points: an array, and right."""
    X, S, y = data(gossamer.PARegressor)
    dense, sparse = gossamer.PARegressor(Linear()).fit(X, y), gossamer.PARegressor(Linear()).fit(S, y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(S @ sparse.coef_ + sparse.intercept_, sparse.predict(S))


def test_merged_models():
    """Models of shards of sparse rows become one, as of dense rows; equal points are joined."""
    X, S, y = data(SILKClassifier)
    for kernel in (Gaussian(0.3), Linear()):
        dense = merge([SILKClassifier(kernel, budget=20).fit(X[i::2], y[i::2]) for i in (0, 1, 1)], budget=10)
        sparse = merge([SILKClassifier(kernel, budget=20).fit(S[i::2], y[i::2]) for i in (0, 1, 1)], budget=10)
        np.testing.assert_allclose(sparse.model.decision_function(S), dense.model.decision_function(X), atol=1e-7)
        assert sp.issparse(sparse.model.support_vectors_)
        np.testing.assert_allclose([sparse.error, sparse.norm], [dense.error, dense.norm], atol=1e-7)


def test_budgets_that_make_points():
    """`Merge` blends points, which stay sparse; with the features of `Nystrom` and `Fourier` rows become dense."""
    X, S, y = data(OnlineClassifier)
    for budget, stays in ((Merge(8), True), (Nystrom(8), False), (Fourier(8), False)):
        models = [OnlineClassifier(Gaussian(0.3), budget=budget) for _ in range(2)]
        assert np.array_equal(models[0].predict_learn(S, y), models[1].predict_learn(X, y))
        assert sp.issparse(models[0].support_vectors_) == stays


@pytest.mark.parametrize("part", OTHERS, ids=lambda part: part.__name__)
def test_other_estimators_make_rows_dense(part):
    """Mixtures, additive models and functions of a user see all features: as dense rows, to the bit."""
    X, S, y = data(part)
    dense, sparse = part(), part()
    assert np.array_equal(sparse.predict_learn(S, y), dense.predict_learn(X, y))
    for name, values in answers(dense, X).items():
        assert np.array_equal(getattr(sparse, name)(S), values)


def test_kernels_that_see_all_features():
    """A user's function gets arrays, whatever came."""
    X, S, y = data(SILKClassifier)
    kernel = Custom(lambda A, B: (1 + np.asarray(A) @ np.asarray(B).T) ** 2)
    dense, sparse = SILKClassifier(kernel, budget=12), SILKClassifier(kernel, budget=12)
    np.testing.assert_allclose(sparse.predict_learn(S, y), dense.predict_learn(X, y), rtol=1e-9)
    assert isinstance(sparse.support_vectors_, np.ndarray)


@every_recipe
def test_bad_rows_change_nothing(part):
    """NaN, a wrong width, a column beyond it, a target too few: an error in the estimator's name; nothing changes."""
    _, S, y = data(part)
    model = part(Polynomial(2), budget=12, **as_they_come(part)).partial_fit(S, y)
    before = store.dumps(model)
    nan, far = S.copy(), sp.csr_matrix(S)
    nan.data[-1] = np.nan
    far.indices = np.where(np.arange(len(far.indices)) == 7, 30, far.indices)
    bad = [(nan, "finite"), (S[:, :9], "30 features"), (far, "columns from 0 to 29"), (S[:0], "at least one row")]
    for rows, words in bad:
        targets = None if y is None else y[: rows.shape[0]]
        for name, given in (("partial_fit", (rows, targets)), ("predict", (rows,))):
            with pytest.raises(ValueError, match=f"^The 'X' parameter of {part.__name__} must be .*{words}"):
                getattr(model, name)(*given)
    if y is not None:
        with pytest.raises(ValueError, match="The 'y' parameter"):
            model.partial_fit(S, y[:-1])
    assert store.dumps(model) == before


def test_forged_points():
    """Sparse points of a file are validated before the core sees them."""
    _, S, y = data(SILKClassifier)
    learner = SILKClassifier(Gaussian(0.3), budget=5).fit(S, y).learner_
    learned = learner._learned()
    assert set(learned["points"]) == {"starts", "columns", "values", "width"}

    def forged(**changes):
        return {**learned, "points": {**learned["points"], **changes}}

    points = learned["points"]
    starts, columns, values = (points[name] for name in ("starts", "columns", "values"))
    bad = [
        {"starts": starts[:-1]}, {"starts": starts[::-1].copy()}, {"starts": starts + 1}, {"starts": starts[:0]},
        {"columns": columns[:-1]}, {"columns": columns - 30}, {"columns": columns + 30}, {"columns": 29 - columns},
        {"columns": columns.astype(np.int64)}, {"values": values * np.nan},
        {"values": values[:-1]}, {"values": values.astype(int)}, {"values": None}, {"width": 0}, {"width": 2**31},
        {"width": "30"}, {"width": 3},
    ]  # fmt: skip
    for change in bad:
        with pytest.raises(ValueError, match=r"state\.points"):
            Learner(**learner._parameters())._relearn(forged(**change))
    with pytest.raises(ValueError, match=r"state\.points"):
        Learner(**{**learner._parameters(), "budget": Nystrom(5)})._relearn(learned)
    with pytest.raises(ValueError, match=r"state\.(points|kernel)"):
        Learner(**{**learner._parameters(), "kernel": gossamer.kernels.Additive(Matern())})._relearn(learned)


def test_fit_of_wide_rows():
    """Passes and their mean over rows of 10^9 features: memory goes by the non-zeros."""
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 40, size=(3000, 4)) * 25_000_000
    X = sp.csr_array((np.ones(12000), columns.ravel(), np.arange(0, 12001, 4)), shape=(3000, 10**9))
    y = (columns < 5 * 10**8).sum(axis=1) > 2
    model = SILKClassifier(Linear(), budget=64, n_passes=2).fit(X, y)
    assert model.score(X, y) > 0.9
    assert model.learner_.state().nbytes < 2**16


# ------------------------------------------------------------------------------------------- scalers and pipelines


@pytest.mark.parametrize("forget", [0.0, 0.03])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scaler(forget, dtype):
    """Sparse rows are scaled as dense ones without centring; any split, and a file in between, gives the same bits."""
    S = data(SILKClassifier, rows=200)[1].astype(dtype)
    S.data[3] = 0.0  # a zero that is written down is a zero
    for options in ({}, {"with_std": False}, {"squash": True}, {"root": True}):
        dense, whole, split = (OnlineScaler(forget, with_mean=False, **options) for _ in range(3))
        expected, found = dense.learn_transform(S.toarray()), whole.learn_transform(S)
        tolerance = 1e-9 if dtype == np.float64 else 1e-5
        np.testing.assert_allclose(found.toarray(), expected, rtol=tolerance, atol=tolerance)
        assert found.dtype == dtype
        parts = []
        for rows in (slice(1), slice(1, 2), slice(2, 90), slice(90, None)):
            parts.append(split.learn_transform(S[rows]))
            split = store.loads(store.dumps(split))
        assert np.array_equal(sp.vstack(parts).toarray(), found.toarray())
        assert store.dumps(split) == store.dumps(whole)
        for name in ("mean_", "var_", "weight_", "n_seen_", "n_features_in_"):
            np.testing.assert_allclose(getattr(whole, name), getattr(dense, name), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whole.transform(S).toarray(), dense.transform(S.toarray()), rtol=tolerance)


def test_scaler_of_both_kinds():
    """Dense rows between sparse ones, another ``forget``, and pooled statistics go on as they should."""
    X, S, _ = data(SILKClassifier, rows=90)
    dense, mixed = OnlineScaler(0.02, with_mean=False), OnlineScaler(0.02, with_mean=False)
    for rows, form in ((slice(30), S), (slice(30, 60), X), (slice(60, None), S)):
        expected, found = dense.learn_transform(X[rows]), mixed.learn_transform(form[rows])
        np.testing.assert_allclose(found.toarray() if sp.issparse(found) else found, expected, rtol=1e-9)
    for scaler, form in ((dense, X), (mixed, S)):
        scaler.forget = 0.5
        scaler.partial_fit(form[:20])
    np.testing.assert_allclose(mixed.var_, dense.var_, rtol=1e-9)
    assert isinstance(mixed.learn_transform(sp.csr_matrix(S)), sp.csr_matrix)


def test_scalers_refuse():
    """Centring would fill sparse rows; bad rows and forged files change nothing."""
    _, S, _ = data(SILKClassifier)
    with pytest.raises(ValueError, match=r"'with_mean' parameter of OnlineScaler must be False for sparse.*center"):
        OnlineScaler().fit(S)
    scaler = OnlineScaler(with_mean=False).fit(S)
    before = store.dumps(scaler)
    nan, huge = S.copy(), S.copy()
    nan.data[0], huge.data[0] = np.nan, 1e200
    for rows in (nan, huge, S[:, :3], S[:0]):
        with pytest.raises(ValueError, match="'X' parameter of OnlineScaler"):
            scaler.partial_fit(rows)
    assert store.dumps(scaler) == before
    resting = scaler.resting_.to_stored()
    changes = [
        {"touched": resting["touched"] + 99}, {"mean": resting["mean"][:3]}, {"squares": -resting["squares"]},
        {"origin": -1.0}, {"keep": 2.0}, {"round": -1}, {"mean": None},
    ]  # fmt: skip
    for change in changes:
        learned = {**scaler._learned(), "resting_": {**resting, **change}}
        with pytest.raises(ValueError, match="resting_"):
            OnlineScaler(with_mean=False)._relearn(learned)


def test_pipelines():
    """Text becomes sparse rows of 2^20 features, is scaled and learned, and the pipeline is stored."""
    texts = ["great fun", "dull and long", "fun, very good", "long, awful"] * 10
    y = np.array([1, 0, 1, 0] * 10)
    model = pipeline(HashingVectorizer(n_features=2**20), OnlineScaler(with_mean=False), SILKClassifier(Linear()))
    model.partial_fit(texts, y)
    assert model.predict(["good fun", "dull"]).tolist() == [1, 0]
    assert model[-1].support_vectors_.shape[1] == 2**20


# ---------------------------------------------------------------------------------------------------------- mixtures


@pytest.mark.parametrize("part", [gossamer.AutoClassifier, gossamer.AutoRegressor], ids=lambda part: part.__name__)
def test_auto_without_scaling(part):
    """Rows that are not scaled stay sparse through all experts: as dense ones, in any split, from a file."""
    X, S, y = data(part, rows=300)
    dense, whole, split = (part(scale=False, budget=16) for _ in range(3))
    expected = whole.predict_learn(S, y)
    np.testing.assert_allclose(expected, dense.predict_learn(X, y), atol=1e-7)
    parts = []
    for rows in (slice(2), slice(2, 130), slice(130, None)):
        parts.append(split.predict_learn(S[rows], y[rows]))
        split = store.loads(store.dumps(split))
    assert np.array_equal(np.concatenate(parts), expected)
    assert all(sp.issparse(learner.points) for _, _, learner in whole.learner_.experts() if learner.steps)
    assert np.array_equal(split.predict(X), whole.predict(S))


def test_auto_of_wide_rows():
    """Scaled rows are dense: of many features they are refused, with the way out; unscaled, they are learned."""
    X = random_rows(120, 10**6, 1e-5, np.random.default_rng(0))
    y = np.arange(120) % 2
    with pytest.raises(ValueError, match=r"X.*AutoClassifier must be of at most 65536 features.*scale=False"):
        gossamer.AutoClassifier().partial_fit(X, y)
    assert gossamer.AutoClassifier(scale=False, budget=16).partial_fit(X, y).predict(X).shape == (120,)
    with pytest.raises(ValueError, match=r"at most 4194304 features where rows cannot stay sparse .Nystrom needs"):
        OnlineClassifier(budget=Nystrom(4)).partial_fit(sp.csr_array((2, 5 * 10**6)), [0, 1])


def test_banks_refuse_wide_rows():
    """A bank keeps dense rows, and says so before it takes the memory."""
    with pytest.raises(ValueError, match="as a bank keeps all features"):
        ModelBank(SILKClassifier(Linear())).learn(["a"] * 200, sp.csr_array((200, 10**6)), [0, 1] * 100)
