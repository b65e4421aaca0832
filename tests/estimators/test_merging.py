"""Several models as one: exact where nothing must go, the best approximation where something must."""

import inspect

import numpy as np
import pytest
from parts import compiled_kernel, user_kernel

import gossamer
from gossamer import (
    Learner,
    NewtonClassifier,
    OnlineScaler,
    SILKClassifier,
    SILKDetector,
    SILKRegressor,
    merge,
    pipeline,
    store,
)
from gossamer.budgets import Auto, Fourier, Merge, Nystrom, Project, Random, Smallest
from gossamer.estimators import OnlineClassifier, OnlineDetector
from gossamer.estimators.base import Online
from gossamer.estimators.combine import pooled
from gossamer.estimators.projection import choose_points
from gossamer.kernels import Custom, Gaussian, Linear
from gossamer.losses import Multiclass, Squared
from gossamer.rules import Implicit, Newton
from gossamer.rules.newton import square
from gossamer.synthetic import rotating_xor

ESTIMATORS = [
    value for name in gossamer.__all__
    if inspect.isclass(value := getattr(gossamer, name)) and issubclass(value, Online)
    and "average" in inspect.signature(value).parameters  # not those that mix learners
]  # fmt: skip


def rows(count=400, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    smooth = np.sin(2 * X[:, 0]) + X[:, 1]
    return X, smooth, np.digitize(smooth, np.linspace(-1, 1, classes - 1))


def made(estimator, **arguments):
    more = {"rescale": False} if estimator.__name__.startswith("Additive") else {}
    return estimator(compiled_kernel(estimator), **more, **arguments)


def learned(model, X, smooth, labels):
    y = labels if isinstance(model, OnlineClassifier) else smooth
    return model.partial_fit(X) if isinstance(model, OnlineDetector) else model.partial_fit(X, y)


def scores(model, X):
    return model.predict(X) if not hasattr(model, "decision_function") else model.decision_function(X)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_without_a_budget_it_is_the_weighted_sum(estimator):
    """Every estimator: the scores of the merged model are the weighted sum of the scores, and it goes on learning."""
    X, smooth, labels = rows()
    models = [learned(made(estimator, budget=None), X[i::3], smooth[i::3], labels[i::3]) for i in range(3)]
    model, error, norm = merge(models, [0.5, 0.2, 0.3])
    wanted = sum(w * scores(part, X) for w, part in zip([0.5, 0.2, 0.3], models, strict=True))
    np.testing.assert_allclose(scores(model, X), wanted, rtol=1e-9, atol=1e-9)
    assert error == 0.0
    assert model.norm_ == pytest.approx(norm, rel=1e-6)
    assert model.n_seen_ == 400
    again = store.loads(store.dumps(model))
    learned(model, X, smooth, labels)
    learned(again, X, smooth, labels)
    assert store.dumps(again) == store.dumps(model)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: estimator.__name__)
def test_with_a_budget_the_error_is_the_distance(estimator):
    """Every estimator: as many points as allowed, and ||f - g||^2 = ||f||^2 - ||g||^2, g being a projection of f."""
    X, smooth, labels = rows()
    models = [learned(made(estimator, budget=60), X[i::2], smooth[i::2], labels[i::2]) for i in range(2)]
    whole = merge([learned(made(estimator, budget=None), X[i::2], smooth[i::2], labels[i::2]) for i in range(2)])
    model, error, norm = merge(models, budget=25)
    assert whole.error == 0.0
    assert len(model.support_vectors_) <= 25
    assert 0 <= error <= norm
    assert model.norm_**2 == pytest.approx(norm**2 - error**2, rel=1e-6, abs=1e-9)
    learned(model, X, smooth, labels)
    assert len(model.support_vectors_) <= 60


def test_the_projection_is_the_best_on_its_points():
    """No coefficients on the points that stay come closer, for one output and for several."""
    rng = np.random.default_rng(1)
    points = rng.normal(size=(30, 2))
    gram = Gaussian(0.5)(points, points)
    for outputs in (1, 3):
        coefs = rng.normal(size=(outputs, 30))
        kept = choose_points(gram, coefs, np.eye(outputs), 12)
        best = np.linalg.lstsq(np.linalg.cholesky(gram).T[:, kept], np.linalg.cholesky(gram).T @ coefs.T, rcond=None)[0]
        away = coefs.copy()
        away[:, kept] -= best.T
        assert len(kept) == 12
        lost = np.sqrt(np.sum((away @ gram) * away))
        # a greedy choice need not be the best of all, but far better than chance
        chance = []
        for _ in range(20):
            random = rng.choice(30, 12, replace=False)
            rest = np.linalg.solve(gram[np.ix_(random, random)] + 1e-12 * np.eye(12), gram[random] @ coefs.T).T
            other = coefs.copy()
            other[:, random] -= rest
            chance.append(np.sqrt(max(0.0, np.sum((other @ gram) * other))))
        assert lost < min(chance)


def test_each_step_removes_what_loses_least():
    """The first point to leave is the one without which the rest come closest, tried one by one."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(15, 2))
    gram, coefs = Gaussian(0.3)(points, points), rng.normal(size=(2, 15))
    lost = []
    for out in range(15):
        rest = np.delete(np.arange(15), out)
        away = coefs.copy()
        away[:, rest] -= np.linalg.solve(gram[np.ix_(rest, rest)], gram[rest] @ coefs.T).T
        lost.append(np.sum((away @ gram) * away))
    assert set(range(15)) - set(choose_points(gram, coefs, np.eye(2), 14).tolist()) == {int(np.argmin(lost))}


def test_equal_models_merge_into_themselves():
    """The mean of a model and itself has its points and its scores."""
    X, smooth, _ = rows()
    model = SILKRegressor(Gaussian(0.5), budget=50).fit(X, smooth)
    merged, error, norm = merge([model, model, model])
    assert error == 0.0
    assert norm == pytest.approx(model.norm_)
    assert np.array_equal(merged.support_vectors_, model.support_vectors_)
    np.testing.assert_allclose(merged.predict(X), model.predict(X), rtol=1e-12)


def test_nearly_equal_points_do_no_harm():
    """A Gram matrix that is singular but for rounding: finite coefficients, and the error it says."""
    X, smooth, _ = rows()
    models = [SILKRegressor(Gaussian(0.5), budget=80).fit(X + shift, smooth) for shift in (0.0, 1e-9)]
    model, error, norm = merge(models)
    wanted = 0.5 * (models[0].predict(X) + models[1].predict(X))
    assert len(model.support_vectors_) == 80
    assert np.isfinite(model.dual_coef_).all()
    assert np.abs(model.predict(X) - wanted).max() <= error + 1e-5 * norm  # |f(x)| <= ||f|| where k(x, x) = 1
    assert error < 1e-3 * norm


def test_classes_that_only_some_have_seen():
    """Shards with other labels, in another order, with one or three: the result knows all, and is their sum."""
    X, _, labels = rows(classes=4)
    names = np.array(["d", "a", "c", "b"])[labels]
    alone = SILKClassifier(Gaussian(0.5), budget=None).partial_fit(X[labels == 3], names[labels == 3])
    two = SILKClassifier(Gaussian(0.5), budget=None).partial_fit(X[labels > 1], names[labels > 1])
    three = SILKClassifier(Gaussian(0.5), budget=None).partial_fit(X[labels < 3], names[labels < 3])
    model = merge([alone, two, three], [1.0, 2.0, 3.0]).model
    wanted = np.zeros((400, 4))  # of a score for two classes, each has half
    wanted[:, 1] = 0.5 * alone.decision_function(X)
    wanted[:, [1, 2]] += np.outer(two.decision_function(X), [-1.0, 1.0])
    wanted[:, [0, 2, 3]] += 3 * three.decision_function(X)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_allclose(model.decision_function(X), wanted, rtol=1e-9, atol=1e-9)
    assert (model.partial_fit(X, names).predict(X) == names).mean() > 0.75

    yes = names > "b"
    by_class = np.argsort(yes)  # the class that comes first has the inner -1
    first = SILKClassifier(Gaussian(0.5), budget=None).partial_fit(X[by_class], yes[by_class])
    turned = SILKClassifier(Gaussian(0.5), budget=None).partial_fit(X[by_class[::-1]], yes[by_class[::-1]])
    both = merge([first, turned], [1.0, 2.0]).model
    np.testing.assert_allclose(
        both.decision_function(X), first.decision_function(X) + 2 * turned.decision_function(X), rtol=1e-9, atol=1e-9
    )


def test_a_detector_keeps_its_share_of_alarms():
    """rho is the mean of the thresholds, so the alarms stay about as rare."""
    X = np.random.default_rng(0).normal(size=(8000, 2))
    models = [SILKDetector(Gaussian(0.5), nu=0.1).partial_fit(X[i::4]) for i in range(4)]
    model = merge(models).model
    assert model.offset_ == pytest.approx(np.mean([part.offset_ for part in models]))
    assert abs((model.predict(X) < 0).mean() - 0.1) < 0.05


def test_pipelines_pool_their_scalers():
    """The statistics are those of all rows."""
    X, smooth, _ = rows()
    X = X * [1.0, 1e3, 1e-3] + 5
    whole = OnlineScaler().partial_fit(X)
    parts = [OnlineScaler().partial_fit(X[i::3]) for i in range(3)]
    for name in ("mean_", "var_", "n_seen_"):
        np.testing.assert_allclose(getattr(pooled(parts), name), getattr(whole, name), rtol=1e-10)
    models = []
    for i in range(3):
        model = pipeline(OnlineScaler(), SILKRegressor(Gaussian(0.5), budget=64))
        models.append(model.partial_fit(X[i::3], smooth[i::3]))
    merged = merge(models).model
    assert np.abs(merged.predict(X) - smooth).mean() < 1.2 * np.abs(models[0].predict(X) - smooth).mean()
    merged.partial_fit(X, smooth)


@pytest.mark.parametrize("average", [True, "sparse"])
def test_means_are_merged_too(average):
    """Where the mean of all hypotheses is kept, the merged mean is the mean of the means."""
    X, smooth, _ = rows()
    models = [SILKRegressor(Gaussian(0.5), budget=None, average=average).fit(X[i::2], smooth[i::2]) for i in range(2)]
    wanted = 0.25 * models[0].predict(X) + 0.75 * models[1].predict(X)
    np.testing.assert_allclose(merge(models, [0.25, 0.75]).model.predict(X), wanted, rtol=1e-9, atol=1e-9)


def test_learners_and_kernels_in_python():
    """Learners merge as they are, with kernels of any function and points of any kind."""
    X, smooth, labels = rows(classes=3)
    for kernel in (Custom(user_kernel), Gaussian(0.5) + Linear()):
        parts = []
        for i in range(2):
            learner = Learner(kernel, Squared(), Implicit(C=1.0), None)
            learner.learn(X[i::2], smooth[i::2])
            parts.append(learner)
        merged = merge(parts).model
        np.testing.assert_allclose(merged.score(X), 0.5 * (parts[0].score(X) + parts[1].score(X)), atol=1e-6)
    words = ["kernel", "colonel", "line", "lane", "land"]
    letters = Custom(lambda A, B: np.array([[float(len(set(a) & set(b))) for b in B] for a in A]))
    parts = [Learner(letters, Multiclass(classes=3), Implicit(C=1.0), Smallest(4)) for _ in range(2)]
    for part in parts:
        part.learn(words, labels[:5])
    assert len(merge(parts, budget=3).model.points) == 3


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda a, b: merge([]), "at least one model"),
        (lambda a, b: merge([SILKRegressor()]), "that has learned"),
        (lambda a, b: merge([a, "no"]), "of Gossamer"),
        (lambda a, b: merge([a, SILKClassifier().fit([[0.0], [1.0]], [0, 1])]), "of one kind"),
        (lambda a, b: merge([a, b], [1.0]), "one entry per row"),
        (lambda a, b: merge([a, b], [1.0, np.nan]), "finite"),
        (lambda a, b: merge([a, b], budget=0), "an int in"),
        (lambda a, b: merge([a, b], budget=51), "up to that of the models"),
        (lambda a, b: merge([a, SILKRegressor(Gaussian(0.1), budget=50).fit([[0.0]], [1.0])]), "equal kernel"),
        (lambda a, b: merge([a, SILKRegressor(Gaussian(0.5), C=2.0, budget=50).fit([[0.0]], [1.0])]), "equal rule"),
        (lambda a, b: merge([gossamer.AdditiveRegressor().fit([[0.0], [1.0]], [0.0, 1.0])]), "rescale=False"),
    ],
)
def test_what_does_not_fit_is_told(wrong, text):
    """Models that have no sum, and parameters out of range."""
    X, smooth, _ = rows(100)
    a, b = (SILKRegressor(Gaussian(0.5), budget=50).fit(X[i::2], smooth[i::2]) for i in range(2))
    before = store.dumps(a)
    with pytest.raises(ValueError, match=text):
        wrong(a, b)
    assert store.dumps(a) == before


@pytest.mark.parametrize("budget", [Project(30), Merge(30), Random(30), Auto(start=8), Smallest(30)], ids=repr)
def test_budgets_of_every_kind_merge(budget):
    """Models whose budget drops, projects or merges make one that goes on; a space of weights is no sum over points."""
    X, y = rotating_xor(900, seed=3, turns=0)
    models = [SILKClassifier(Gaussian(1.0), C=0.3, budget=budget).fit(X[i::3], y[i::3]) for i in range(3)]
    merged, error, norm = gossamer.merge(models, budget=20)
    assert len(merged.support_vectors_) <= 20
    assert error < 0.5 * norm
    assert merged.discarded_ >= error
    assert merged.partial_fit(X, y).score(X, y) > 0.85  # 30 points that are dropped do no better


@pytest.mark.parametrize("budget", [Nystrom(30), Fourier(30)], ids=repr)
def test_weights_of_a_space_do_not_merge(budget):
    """They are not coefficients of points."""
    X, y = rotating_xor(200, seed=3, turns=0)
    model = SILKClassifier(Gaussian(1.0), budget=budget).fit(X, y)
    with pytest.raises(ValueError, match="'models' parameter of merge must be sums over support points"):
        gossamer.merge([model, model])


# ---------------------------------------------------------------------------------------------------- second order


@pytest.mark.parametrize("noise", [0.01, 1.0])
def test_models_of_halves_are_the_model_of_the_whole(noise):
    """Second order, no budget, squared loss: the same scores and variances, also of parts that share rows."""
    X, smooth, _ = rows(150)
    cuts = [slice(0, 40), slice(40, 90), slice(90, 150)]

    def learn(part):
        learner = Learner(Gaussian(0.5), Squared(), Newton(noise))
        learner.learn(X[part], smooth[part])
        return learner

    whole, new = learn(slice(0, 150)), rows(50, seed=1)[0]
    for models in ([learn(part) for part in cuts], [learn(cuts[0]), learn(slice(40, 150))]):
        model, error, norm = merge(models)
        np.testing.assert_allclose(model.score(new), whole.score(new), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(model.variance(new), whole.variance(new), rtol=1e-6, atol=1e-6)
        assert error == 0.0
        assert norm == pytest.approx(whole.norm, rel=1e-6)
        model.learn(X[:30], smooth[:30])
        again = learn(slice(0, 150))
        again.learn(X[:30], smooth[:30])
        np.testing.assert_allclose(model.score(new), again.score(new), rtol=1e-5, atol=1e-5)
    twice = merge([learn(slice(0, 60)), learn(slice(0, 60))]).model  # rows that both have seen count twice
    again = Learner(Gaussian(0.5), Squared(), Newton(noise / 2))
    again.learn(X[:60], smooth[:60])
    np.testing.assert_allclose(twice.score(new), again.score(new), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(twice.variance(new), again.variance(new), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("budget", [30, Smallest(30), None])
@pytest.mark.parametrize("classes", [2, 3])
def test_merged_certainty(classes, budget):
    """Classifiers with second-order steps: what is joined is more certain than each, and better than the worse."""
    X, _, labels = rows(240 if budget is None else 1200, classes=classes)
    new, _, right = rows(300, seed=1, classes=classes)
    models = [NewtonClassifier(Gaussian(0.5), budget=budget).fit(X[i::2], labels[i::2]) for i in range(2)]
    model = merge(models).model
    left = [part.variance(new) for part in models]
    if budget is None:
        assert (model.variance(new) <= np.minimum(*left) + 1e-7).all()
    assert model.variance(new).mean() < 0.9  # it has not begun anew
    assert (model.variance(new) >= 0).all()
    assert model.score(new, right) >= min(part.score(new, right) for part in models) - 0.02
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1.0)
    gram = model.learner_.kernel(model.support_vectors_, model.support_vectors_)
    metric = square(model.learner_.state().rule["metric"])
    assert np.linalg.eigvalsh(gram - gram @ metric @ gram).min() > -1e-6
    again = store.loads(store.dumps(model))
    model.partial_fit(X, labels)
    again.partial_fit(X, labels)
    assert store.dumps(again) == store.dumps(model)


def test_two_classes_of_three():
    """A model that has seen two classes joins as it would have gone on: each class against the rest."""
    X, _, labels = rows(300, classes=3)
    two = NewtonClassifier(Gaussian(0.5), budget=None).partial_fit(X[labels > 0], labels[labels > 0])
    three = NewtonClassifier(Gaussian(0.5), budget=None).partial_fit(X, labels)
    model = merge([two, three], [1.0, 1.0]).model
    wanted = three.decision_function(X) + np.outer(two.decision_function(X), [0.0, -1.0, 1.0])
    np.testing.assert_allclose(model.decision_function(X), wanted, rtol=1e-9, atol=1e-9)
