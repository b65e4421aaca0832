"""Additive models: effects that sum to the score, curves in the units of the data, rows mapped without look-ahead."""

import itertools
import os
import pickle
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

import gossamer
from gossamer import AdditiveClassifier, AdditiveRegressor, Learner, plots
from gossamer.estimators.rescale import Rescaled, learned, mapped, no_moments, squash
from gossamer.kernels import Additive, Exponential, Gaussian, Matern, Spline
from gossamer.losses import Squared
from gossamer.rules import Implicit

ROOT = Path(__file__).parents[2]
#: Kernels in trees and one that is not, made coordinates, and every way to keep the mean.
WAYS = {
    "default": {},
    "spline": {"kernel": "spline"},
    "list": {"kernel": [Exponential(0.2), Spline(0), "matern"], "weights": (1.0, 0.5, 2.0)},
    "made": {"products": [(0, 1), (2, 2)], "differences": [(0, 2)]},
    "python kernel": {"kernel": Gaussian(3.0), "products": [(0, 1)]},
    "mean": {"average": True, "budget": 30},
    "sparse mean": {"average": "sparse", "differences": [(1, 0)]},
    "intercept": {"fit_intercept": True, "budget": 40},
    "mean and intercept": {"fit_intercept": True, "average": True},
    "projection": {"method": "projection", "radius": 3.0},
}


def rows(count=300, seed=0, features=3):
    """Features of very different units, and a target that is a sum of functions of them, with noise."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(count, features))
    y = np.sin(2 * Z[:, 0]) + 0.5 * Z[:, 1] ** 2 + 0.2 * rng.normal(size=count)
    return Z * [30.0, 0.01, 1.0][:features] + [1000.0, 0.0, -3.0][:features], y


def labels(y, classes):
    return np.array(["b", "c", "a"])[np.digitize(y, [0.3, 1.2][: classes - 1])]


# ---------------------------------------------------------------------------------------------------------- effects


@pytest.mark.parametrize("rescale", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_effects_sum_to_the_score(way, rescale):
    """The effects of the coordinates and the intercept are the score: regression, two and three classes."""
    X, y = rows()
    if not rescale:
        X = np.abs((X - X.mean(axis=0)) / X.std(axis=0))
    parameters = WAYS[way]
    models = [AdditiveRegressor(rescale=rescale, **parameters).fit(X, y)]
    offset = parameters.get("fit_intercept", False)
    for classes in (2,) if offset or "method" in parameters else (1, 2, 3):
        models.append(AdditiveClassifier(rescale=rescale, **parameters).partial_fit(X, labels(y, classes)))
    for model in models:
        effects = model.feature_effects(X[:50])
        said = model.predict(X[:50]) if isinstance(model, AdditiveRegressor) else model.decision_function(X[:50])
        assert effects.shape[1] == len(model.coordinate_names_)
        np.testing.assert_allclose(effects.sum(axis=1) + model.intercept_, said, rtol=1e-9, atol=1e-9)
        assert np.abs(effects).max() > 0.01
        scaled = getattr(model, "scale_target", False)
        assert bool(offset or scaled) == (model.intercept_ != 0)
        assert offset or not scaled or model.intercept_ == model.target_mean_
        coordinates = model.coordinates(X[:50])
        for i, name in enumerate(model.coordinate_names_):
            np.testing.assert_allclose(model.curve(name, coordinates[:, i]), effects[:, i], rtol=1e-9, atol=1e-9)
            assert np.array_equal(model.curve(i, coordinates[:5, i]), model.curve(name, coordinates[:5, i]))


def test_names():
    """Of features by number or by the columns of a frame, and of the coordinates made of them."""
    X, y = rows()
    model = AdditiveRegressor(products=[(0, 2)], differences=[(1, 0)]).fit(X, y)
    assert model.coordinate_names_ == ["x0", "x1", "x2", "x0*x2", "x1-x0"]
    assert np.array_equal(model.coordinates(X), np.column_stack([X, X[:, 0] * X[:, 2], X[:, 1] - X[:, 0]]))
    model.feature_names_in_ = np.array(["age", "height", "rate"])
    assert model.coordinate_names_ == ["age", "height", "rate", "age*rate", "height-age"]
    for wrong in (5, -1, "weight", None):
        with pytest.raises(ValueError, match="The 'coordinate' parameter of AdditiveRegressor must be one of"):
            model.curve(wrong, [0.0])
    with pytest.raises(ValueError, match="The 'grid' parameter of AdditiveRegressor must be finite"):
        model.curve(0, [0.0, np.nan])


def test_in_trees_whatever_the_budget():
    """Small budgets are in trees too, so that effects are read from them."""
    X, y = rows()
    assert AdditiveRegressor(budget=5).fit(X, y).learner_.backend == "native trees"
    assert AdditiveClassifier("spline", budget=5).fit(X, labels(y, 3)).learner_.backend == "native trees"
    assert AdditiveRegressor(Gaussian(1.0)).fit(X, y).learner_.backend == "native loop, numpy kernel"


# ---------------------------------------------------------------------------------------------------------- quality


@pytest.mark.parametrize(
    "parameters", [{}, {"method": "projection", "epsilon": 0.3, "radius": 20.0}, {"average": True}], ids=str
)
def test_learns_additive_functions(parameters):
    """The curves come near the true ones, and the error near the noise (0.2), far below that of a linear model."""
    X, y = rows(6000)
    model = AdditiveRegressor(**parameters)
    scores = model.predict_learn(X, y)
    linear = np.abs(LinearRegression().fit(X, y).predict(X) - y).mean()
    assert np.abs(scores - y)[3000:].mean() < 0.25 < 0.4 * linear
    grid = np.linspace(-1.5, 1.5, 50)
    for i, place, truth in ((0, 1000 + 30 * grid, np.sin(2 * grid)), (1, 0.01 * grid, 0.5 * grid**2), (2, grid - 3, 0)):
        curve = model.curve(i, place)
        away = curve - curve.mean() - (truth - np.mean(truth))
        assert np.sqrt((away**2).mean()) < 0.15, i


def test_learns_additive_classes():
    """Two and three classes whose borders are additive and not linear."""
    X, y = rows(6000)
    for classes, limit in ((2, 0.1), (3, 0.17)):
        names = labels(y, classes)
        model = AdditiveClassifier().partial_fit(X[:3000], names[:3000], classes=np.unique(names))
        assert (model.predict(X[3000:]) != names[3000:]).mean() < limit


def test_an_interaction_needs_its_product():
    """x0 x1 is no sum of functions of x0 and of x1; with the product as a coordinate it is learned."""
    X = np.random.default_rng(1).normal(size=(4000, 2))
    y = X[:, 0] * X[:, 1]
    errors = [
        np.abs(AdditiveRegressor(products=pairs).fit(X[:3000], y[:3000]).predict(X[3000:]) - y[3000:]).mean()
        for pairs in ([(0, 1)], [])
    ]
    assert errors[0] < 0.1 < 0.4 < errors[1]


def test_rescaling_costs_little():
    """Rows mapped while they come do nearly as well as rows mapped with what is known at the end."""
    X, y = rows(3000)
    _, moments = learned(no_moments(3), X)
    known = AdditiveRegressor(rescale=False).predict_learn(mapped(moments, X), y)
    online = AdditiveRegressor().predict_learn(X, y)
    assert np.abs(online - y)[1000:].mean() < 1.05 * np.abs(known - y)[1000:].mean()


# ------------------------------------------------------------------------------------------------------- rescaling


def naive(X):
    """Each row mapped with the mean and deviation of all rows up to and with itself, from their definition."""
    out = np.empty_like(X)
    for t in range(len(X)):
        mean, deviation = X[: t + 1].mean(axis=0), X[: t + 1].std(axis=0)
        z = np.divide(X[t] - mean, deviation, out=np.zeros(X.shape[1]), where=deviation > 0)
        out[t] = (1 + z / np.sqrt(z * z + 2)) / 2
    return out


def test_mapping_is_its_definition():
    """Also far from 0, where sums of squares would have lost all digits; a constant column is 1/2."""
    X = np.random.default_rng(0).normal(size=(400, 3)) * [1.0, 1e-3, 0.0] + [0.0, 1e6, 7.0]
    out, moments = learned(no_moments(3), X)
    np.testing.assert_allclose(out, naive(X), rtol=0, atol=1e-6)
    np.testing.assert_allclose(out[:, 0], naive(X[:, :1])[:, 0], rtol=0, atol=1e-14)
    assert (out[:, 2] == 0.5).all()
    assert ((out > 0) & (out < 1)).all()
    assert np.array_equal(mapped(moments, X[-1:]), out[-1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_mapping_and_batches(dtype):
    """Any batches give the same bits, across the parts in which they are worked on."""
    X = (np.random.default_rng(0).normal(size=(2500, 2)) * 5 + 100).astype(dtype)
    whole, last = learned(no_moments(2), X)
    for cuts in ([1], [1023, 1025], [700, 701, 2048], range(1, 2500)):
        moments, parts = no_moments(2), []
        for piece in itertools.starmap(slice, itertools.pairwise([0, *cuts, len(X)])):
            out, moments = learned(moments, X[piece])
            parts.append(out)
        assert np.array_equal(np.concatenate(parts), whole)
        assert np.array_equal(moments, last)
    assert whole.dtype == dtype


def test_far_away_rows():
    """What lies beyond all numbers met is mapped to the ends, not beyond."""
    ends = squash(np.array([-1e300, 1e300]))
    assert ends[0] >= 0
    assert ends[1] <= 1
    assert np.diff(ends)[0] > 0.999


@pytest.mark.parametrize("part", [AdditiveRegressor, AdditiveClassifier])
def test_models_and_batches(part):
    """predict_learn in any batches gives the same bits, predict changes nothing, and a pickled twin goes on."""
    X, y = rows(200)
    y = y if part is AdditiveRegressor else labels(y, 2)
    parameters = {"products": [(0, 1)], "differences": [(2, 1)], "budget": 60}
    whole, split = part(**parameters), part(**parameters)
    expected, got = whole.predict_learn(X, y), []
    for piece in itertools.starmap(slice, itertools.pairwise([0, 1, 2, 77, 150, 200])):
        got.append(split.predict_learn(X[piece], y[piece]))
        if piece.start:
            split.predict(X[:40] * 2)
            split.feature_effects(X[:10])
            split = pickle.loads(pickle.dumps(split))
    assert np.array_equal(np.concatenate(got)[2:], expected[2:])
    np.testing.assert_equal(dict(split.learner_.state().items()), dict(whole.learner_.state().items()))
    assert np.array_equal(split.predict(X), whole.predict(X))
    assert not hasattr(clone(whole), "learner_")
    assert whole.n_features_in_ == whole.support_vectors_.shape[1] == 3


def test_single_rows():
    """learn_one and score_one of a learner that maps are learn and score of one row."""
    X, y = rows(60)
    one, all_ = (Rescaled(Additive(Matern(1.5, 0.1)), Squared(), Implicit()) for _ in range(2))
    scores = all_.learn(X, y)
    assert np.array_equal([one.learn_one(x, target) for x, target in zip(X, y, strict=True)], scores)
    assert one.score_one(X[3]) == all_.score(X)[3]


@pytest.mark.parametrize("part", [AdditiveRegressor, AdditiveClassifier])
def test_bad_rows_change_nothing(part):
    """Neither the model nor the means and deviations; fresh or trained."""
    X, y = rows(40)
    y = y if part is AdditiveRegressor else labels(y, 2)
    for bad in (np.nan, np.inf, 1e200):  # 1e200 has no finite variance
        worse = X.copy()
        worse[-1, 1] = bad
        for trained in (True, False):
            model = part(products=[(0, 1)])
            if trained:
                model.partial_fit(X, y)
            before = pickle.dumps(model)
            with pytest.raises(ValueError, match="The 'X' parameter of "):
                model.partial_fit(worse, y)
            assert pickle.dumps(model) == before
    model = part().partial_fit(X, y)
    before = model.learner_.moments.copy()
    with pytest.raises(ValueError, match="The 'sample_weight' parameter of "):
        model.partial_fit(X, y, sample_weight=np.full(len(X), -1.0))
    assert np.array_equal(model.learner_.moments, before)


def test_outside_the_domain():
    """Without the mapping, splines refuse negative numbers in one sentence, and nothing has changed."""
    X, y = rows(40)
    model = AdditiveRegressor("spline", rescale=False)
    with pytest.raises(ValueError, match=r"not negative for the kernel Spline\. Got '-.* in row \d+, column 1"):
        model.fit(X, y)
    model.fit(np.abs(X) / 1000, y)
    before = pickle.dumps(model)
    for call in (lambda: model.partial_fit(X, y), lambda: model.predict(X), lambda: model.feature_effects(X),
                 lambda: model.curve(0, [-1.0])):  # fmt: skip
        with pytest.raises(ValueError, match="not negative for the kernel Spline"):
            call()
    assert pickle.dumps(model) == before
    assert AdditiveRegressor("spline").fit(X, y).predict(X).shape == (40,)


def test_methods_and_what_they_do_not_take():
    """Projection has no intercept and no other loss and two classes; SILK has no radius."""
    X, y = rows(40)
    projection = {"method": "projection"}
    for model, targets, parameter in (
        (AdditiveRegressor(radius=1.0), y, "radius"),
        (AdditiveRegressor(fit_intercept=True, **projection), y, "fit_intercept"),
        (AdditiveRegressor(loss="squared", **projection), y, "loss"),
        (AdditiveClassifier(loss="logistic", **projection), labels(y, 2), "loss"),
        (AdditiveClassifier(**projection), labels(y, 3), "y"),
        (AdditiveRegressor(weights=(1.0, 1.0)), y, "weights"),
        (AdditiveRegressor([Spline()]), y, "base"),
    ):
        with pytest.raises(ValueError, match=f"The '{parameter}' parameter of \\w+ must be"):
            model.fit(X, targets)
    assert AdditiveRegressor(radius=0.7, **projection).fit(X, y).norm_ <= 0.7 + 1e-9


def test_equals_a_learner_on_mapped_rows():
    """Mapping and then learning is what the model does, products and differences mapped by their own statistics."""
    X, y = rows(100)
    model = AdditiveRegressor("spline", C=0.3, products=[(0, 1)], differences=[(2, 0)], scale_target=False)
    U, _ = learned(no_moments(5), np.column_stack([X, X[:, 0] * X[:, 1], X[:, 2] - X[:, 0]]))
    learner = Learner(Additive(Spline()), Squared(), Implicit(0.3, reg=1e-4))
    assert np.array_equal(model.predict_learn(X, y), learner.learn(U, y))
    assert np.array_equal(model.dual_coef_[0], learner.coefs)


# --------------------------------------------------------------------------------------------------------- pictures


def test_picture(tmp_path):
    """A panel per coordinate on one scale; centred curves; a curve per class; the given names."""
    X, y = rows()
    model = AdditiveRegressor(differences=[(0, 1)]).fit(X, y)
    figure = plots.effects(model, X, path=str(tmp_path / "effects.png"))
    assert (tmp_path / "effects.png").stat().st_size > 5000
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["x0", "x1", "x2", "x0-x1"]
    assert len({axes.get_ylim() for axes in figure.axes}) == 1
    grid, curve = figure.axes[1].lines[0].get_data()
    expected = model.curve(1, grid) - model.feature_effects(X)[:, 1].mean()
    np.testing.assert_allclose(curve, expected, rtol=1e-9, atol=1e-12)
    three = plots.effects(AdditiveClassifier().fit(X, labels(y, 3)), X, names=["p", "q", "r"], columns=2)
    assert [axes.get_title(loc="left") for axes in three.axes] == ["p", "q", "r"]
    assert [text.get_text() for text in three.legends[0].get_texts()] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="The 'names' parameter of effects must be one for each of the 4 coordinates"):
        plots.effects(model, X, names=["p"])


def test_example_runs(tmp_path, monkeypatch, capsys):
    """The example runs, on the electricity data where they are, and writes its picture."""
    out = tmp_path / "additive.png"
    monkeypatch.setattr(sys, "argv", ["additive.py", "--quick", "--out", str(out)])
    runpy.run_path(str(ROOT / "examples" / "additive.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert ("GOSSAMER_DATA is not set" in printed) == (not os.environ.get("GOSSAMER_DATA"))
    errors = {name.strip(): float(error) for name, error in re.findall(r"^(\S.{35}) +(\d\.\d+)", printed, re.MULTILINE)}
    assert {"AdditiveRegressor", "SplineTransformer + SGDRegressor"} < set(errors)
    others = [error for name, error in errors.items() if "Regressor" not in name]
    assert errors["AdditiveRegressor"] < min(others)
    assert out.stat().st_size > 5000


def test_exported():
    assert {"AdditiveClassifier", "AdditiveRegressor"} <= set(gossamer.__all__)
