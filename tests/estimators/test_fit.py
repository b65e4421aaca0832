"""fit, the batch verb: rows in any order, the mean that it hands out, and what goes on after it."""

import numpy as np
import pytest
from parts import assert_same
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import KFold, cross_val_score
from test_estimators import ADDITIVE, CLASSIFIERS, DETECTORS, FOUND, MANY, REGRESSORS, cut, data, made, name_of

import gossamer
from gossamer import OnlineScaler, pipeline, taxonomy
from gossamer.budgets import Fourier, Nystrom
from gossamer.estimators import averaging
from gossamer.kernels import Custom, Gaussian, Linear

every_part = pytest.mark.parametrize("part", FOUND, ids=name_of)


def said(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def inside(model, X):
    """What a model says; a regressor in the units in which it learns, which move with the targets."""
    return model.learner_.score(X) if type(model) in REGRESSORS else said(model, X)


def classes_of(part):
    return 3 if part in MANY else 2


def hypotheses(part, X, y, places, **parameters):
    """What the model says at some places before each row and after the last, rows as they come."""
    model, found = made(part, **parameters), []
    told = {"classes": np.unique(y)} if part in CLASSIFIERS else {}
    for t in range(len(X)):
        model.partial_fit(X[t : t + 1], cut(y, slice(t, t + 1)), **told)
        told = {}
        found.append(inside(model, places))
    return np.array(found)


# -------------------------------------------------------------------------------------------------------------- mean


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@every_part
def test_the_mean_of_the_second_half(part, dtype):
    """Without a budget, fit says the mean of what the hypotheses after the rows of the second half said, rho of a
    detector too; its norm is that of the mean."""
    X, y = data(part, classes_of(part))
    X = X.astype(dtype)
    model = made(part, budget=None, shuffle=False, average="fit").fit(X, y)
    every = hypotheses(part, X, y, X, budget=None)
    first = averaging.first_averaged(len(X), X.shape[1])
    tolerance = 1e-9 if dtype == np.float64 else 1e-4
    np.testing.assert_allclose(inside(model, X), every[first - 1 :].mean(axis=0), rtol=tolerance, atol=tolerance)
    assert len(every[first - 1 :]) == len(X) // 2
    learner = model.learner_
    gram = learner.kernel(learner.points, learner.points)
    squared = float(np.sum((np.atleast_2d(learner.coefs) @ gram) * np.atleast_2d(learner.coefs)))
    np.testing.assert_allclose(learner.norm**2, squared, rtol=1e-4, atol=1e-9)


@every_part
def test_a_budget_keeps_its_size(part):
    """The mean stands on the points that the budget leaves: at them it says what the mean of all says."""
    X, y = data(part, classes_of(part))
    model = made(part, budget=8, shuffle=False, average="fit").fit(X, y)
    points = model.support_vectors_
    assert len(points) <= 8
    assert len(model.learner_.state().dropped_points) == 0
    first = averaging.first_averaged(len(X), X.shape[1])
    expected = hypotheses(part, X, y, points, budget=8)[first - 1 :].mean(axis=0)
    np.testing.assert_allclose(inside(model, points), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("average", ["fit", False, True, "sparse"])
@every_part
def test_what_is_shown_predicts(part, average):
    """sum_i dual_coef_i k(support_vectors_i, x) + intercept_ is the score, for all classes, whatever is averaged."""
    X, y = data(part, classes_of(part))
    offset = {"fit_intercept": True} if "fit_intercept" in part().get_params() and part not in MANY else {}
    for learn in ("fit", "partial_fit"):
        for budget in (8, None, *((Nystrom(6), Fourier(10)) if part not in ADDITIVE else ())):
            model = made(part, budget=budget, average=average, **offset)
            if part is gossamer.AdatronClassifier and isinstance(budget, (Nystrom, Fourier)):
                continue  # it needs a coefficient for each example
            getattr(model, learn)(X, y)
            points, coefs = model.support_vectors_, model.dual_coef_
            if isinstance(budget, Fourier):
                waves = X @ points[: len(points) // 2].T
                values = np.column_stack([np.cos(waves), np.sin(waves)])
            else:
                values = model.learner_.kernel(X, points)
            scores = values @ coefs.T + model.intercept_ - (model.offset_ if part in DETECTORS else 0.0)
            scores = scores if scores.shape[1] > 1 else scores[:, 0]
            np.testing.assert_allclose(said(model, X), scores, rtol=1e-9, atol=1e-9)


def test_costs_are_shown():
    """With a taxonomy, the coefficients are those of the scores, not those before the label kernel."""
    X, y = data(gossamer.SILKClassifier, 3)
    tree = taxonomy({"letters": {"b": None, "aa": None}, "c": None})
    model = gossamer.SILKClassifier(Gaussian(0.5), cost=tree, budget=10).fit(X, y)
    scores = model.learner_.kernel(X, model.support_vectors_) @ model.dual_coef_.T
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-9, atol=1e-9)


def test_wide_rows_are_averaged_over_fewer():
    """The points that are kept for the mean take a bounded memory."""
    assert averaging.first_averaged(100, 5) == 51
    assert averaging.first_averaged(1, 5) == 1
    rows = 10**6
    assert (rows - averaging.first_averaged(rows, 10**5)) * 10**5 <= averaging.MOST_VALUES
    assert rows - averaging.first_averaged(rows, 10**9) == 64


# ------------------------------------------------------------------------------------------------------------- order


@every_part
def test_the_order_is_drawn(part):
    """A seed gives one model, another seed another; rows as they come need none; NumPy's own generators work."""
    X, y = data(part, classes_of(part))
    model = made(part, budget=10)
    state = lambda m: {k: v for k, v in m.learner_.state().items() if k not in ("kernel", "gram")}  # noqa: E731
    one = clone(model).fit(X, y)
    assert_same(state(one), state(clone(model).set_params(random_state=0).fit(X, y)))
    assert_same(state(one), state(clone(model).set_params(random_state=np.random.RandomState(0)).fit(X, y)))
    other = clone(model).set_params(random_state=1).fit(X, y)
    assert not np.array_equal(said(one, X), said(other, X))
    still = clone(model).set_params(shuffle=False)
    assert_same(state(still.fit(X, y)), state(clone(still).set_params(random_state=1).fit(X, y)))


def test_weights_and_ids_go_with_their_rows():
    """A row of weight 0 is as if it were not there, wherever it comes."""
    X, y = data(gossamer.SILKClassifier)
    wrong, weights = y.copy(), np.ones(len(X))
    wrong[::5], weights[::5] = np.where(y[::5] == "b", "aa", "b"), 0.0
    one = made(gossamer.SILKClassifier).fit(X, y, sample_weight=weights)
    other = made(gossamer.SILKClassifier).fit(X, wrong, sample_weight=weights)
    assert np.array_equal(one.decision_function(X), other.decision_function(X))
    adatron = gossamer.AdatronClassifier(Gaussian(0.5), n_passes=5).fit(X, y)
    assert len(np.unique(adatron.support_vectors_, axis=0)) == len(adatron.support_vectors_)


@pytest.mark.parametrize("part", MANY, ids=name_of)
def test_sorted_labels(part):
    """Rows sorted by class, as tables come: as good as shuffled ones."""
    X, y = load_iris(return_X_y=True)
    model = pipeline(OnlineScaler(), part())
    scores = cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
    assert scores.mean() > 0.85
    order = np.argsort(y, kind="stable")
    halves = order[::2], order[1::2]
    assert clone(model).fit(X[halves[0]], y[halves[0]]).score(X[halves[1]], y[halves[1]]) > 0.85


def test_sorted_digits():
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")
    learned, held = order[::2], order[1::2]
    assert gossamer.SILKClassifier().fit(X[learned], y[learned]).score(X[held], y[held]) > 0.95


@pytest.mark.parametrize("part", REGRESSORS, ids=name_of)
def test_sorted_targets(part):
    """A target that grows along the table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=600)
    order = np.argsort(y)
    model = part().fit(X[order], y[order])
    assert model.score(X, y) > 0.8


# ------------------------------------------------------------------------------------------------------------- after


@every_part
def test_online_verbs_go_on_from_the_mean(part):
    """After fit, predict_learn first says what predict says, any split gives the same, and a stored model goes on."""
    X, y = data(part, classes_of(part))
    one, other = (made(part, budget=10).fit(X[:40], cut(y, slice(40))) for _ in range(2))
    first = one.predict_learn(X[40:41], cut(y, slice(40, 41)))
    np.testing.assert_allclose(first[0], said(other, X[40:41])[0], rtol=1e-9, atol=1e-12)
    stored = part.from_bytes(other.to_bytes())
    one.partial_fit(X[41:], cut(y, slice(41, None)))
    stored.partial_fit(X[40:50], cut(y, slice(40, 50))).partial_fit(X[50:], cut(y, slice(50, None)))
    assert np.array_equal(said(one, X), said(stored, X))
    assert one.n_seen_ == len(X)
    assert one.learner_.average is None


def test_objects():
    """Rows that are no numbers are shuffled and averaged too."""
    kernel = Custom(lambda A, B: np.array([[float(len(set(a) & set(b))) for b in B] for a in A]))
    words = ["spam", "ham", "eggs", "spa", "hams", "egg"] * 5
    model = gossamer.SILKClassifier(kernel, budget=4).fit(words, ["s", "h", "e", "s", "h", "e"] * 5)
    assert model.predict(["spam", "ham", "eggs"]).tolist() == ["s", "h", "e"]
    assert len(model.support_vectors_) <= 4


# ---------------------------------------------------------------------------------------------------- linear kernels


@pytest.mark.parametrize("average", ["fit", False, True])
@pytest.mark.parametrize("part", [part for part in FOUND if part not in ADDITIVE], ids=name_of)
def test_coef(part, average):
    """<coef_, x> + intercept_ is the score for linear kernels, with scikit-learn's shapes; others have no coef_."""
    for count in {2, classes_of(part)}:
        X, y = data(part, count)
        for kernel in ("linear", 0.5 * Linear() + Linear()):
            model = part(kernel, average=average)
            assert not hasattr(model, "coef_")
            model.fit(X, y)
            shape = (2,) if part in REGRESSORS else (1 if count == 2 else 3, 2)
            assert model.coef_.shape == shape
            scores = X @ np.atleast_2d(model.coef_).T + model.intercept_ - (model.offset_ if part in DETECTORS else 0.0)
            scores = scores if count == 3 else scores[:, 0]
            large = np.abs(model.dual_coef_).max()  # ROMMA's reach 1e15 here, and cancel
            np.testing.assert_allclose(said(model, X), scores, rtol=1e-9, atol=1e-9 * max(1.0, large))
    model = made(part).fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match=f"^{part.__name__} has coef_ with a linear kernel only"):
        _ = model.coef_
