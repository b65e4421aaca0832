"""Every estimator of the package, found by itself: batches, labels, state, bad input, and parameters that matter."""

import inspect
import itertools
import math
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

import gossamer
from gossamer import taxonomy
from gossamer.estimators.base import Online
from gossamer.kernels import Gaussian, Matern

FOUND = [getattr(gossamer, name) for name in gossamer.__all__]
FOUND = [part for part in FOUND if isinstance(part, type) and issubclass(part, Online)]
# the estimators that mix learners have laws of their own, in tests/mixture
MIXTURES = [part for part in FOUND if "average" not in inspect.signature(part).parameters]
FOUND = [part for part in FOUND if part not in MIXTURES]
CLASSIFIERS = [part for part in FOUND if is_classifier(part())]
REGRESSORS = [part for part in FOUND if is_regressor(part())]
DETECTORS = [part for part in FOUND if part not in CLASSIFIERS + REGRESSORS]
MANY = [part for part in CLASSIFIERS if get_tags(part()).classifier_tags.multi_class]
ADDITIVE = [gossamer.AdditiveClassifier, gossamer.AdditiveRegressor]
LABELS = {"strings": ["b", "aa", "c"], "integers": [7, -2, 3], "booleans": [True, False], "floats": [0.5, 2.0, 1.0]}


def name_of(case):
    return getattr(case, "__name__", None)


def rows(count=60, seed=0):
    """Rows and a real target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 2))
    return X, np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=count)


def data(part, classes=2, names=("b", "aa", "c"), seed=0, count=60):
    """A stream for an estimator; classes come in the order of their names, the third only in the second half."""
    X, smooth = rows(count, seed)
    if part in DETECTORS:
        return X, None
    if part in REGRESSORS:
        return X, smooth
    codes = np.digitize(smooth, [0.0, 0.5][: classes - 1])
    codes[: count // 2] = np.minimum(codes[: count // 2], 1)
    codes[:4] = [0, 0, 1, 0]
    return X, np.array(names)[codes]


def cut(y, part):
    return None if y is None else y[part]


def made(part, **parameters):
    if part in ADDITIVE:  # a kernel that splits is compiled, so that batches do not matter to the bit
        return part(Matern(1.5, 1.0), **{"budget": 20, "rescale": False, **parameters})
    return part(Gaussian(0.5), **{"budget": 20, **parameters})


def snapshot(model, X):
    """All that a model knows and says."""
    if not hasattr(model, "learner_"):
        return sorted(vars(model))
    state = model.learner_.state()
    said = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    hidden = {*model.get_params(), "learner_"}
    learned = {name: value for name, value in vars(model).items() if name not in hidden}
    return {"said": said, **learned, **{name: value for name, value in state.items() if name != "kernel"}}


# ---------------------------------------------------------------------------------------------------------- batches


def table(model, scores, seen, columns):
    """Scores of one batch as a column for each class; ``seen``: the labels before each row."""
    out = np.full((len(scores), len(columns)), -np.inf)
    for t, known in enumerate(seen):
        if scores.ndim == 2:
            for label, value in zip(model.classes_.tolist(), scores[t], strict=True):
                out[t, columns.index(label)] = value
        elif len(known) == 1:
            out[t, columns.index(known[0])] = 0.5 * scores[t]
        elif len(known) == 2:
            for label, sign in zip(sorted(known), (-0.5, 0.5), strict=True):
                out[t, columns.index(label)] = sign * scores[t]
    return out


@pytest.mark.parametrize("cuts", [[1], [2, 3], [30], [29, 31, 45], range(1, 60)], ids=str)
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_any_split(part, cuts):
    """One call, any split and row by row give the same scores and the same model."""
    names = next(iter(LABELS.values()))
    for classes in (2, 3) if part in MANY else (2,):
        X, y = data(part, classes, names)
        whole, split = made(part), made(part)
        expected = whole.predict_learn(X, y)
        columns = None if part not in CLASSIFIERS else whole.classes_.tolist()
        got, order = [], []
        for piece in itertools.starmap(slice, itertools.pairwise([0, *cuts, len(X)])):
            scores = split.predict_learn(X[piece], cut(y, piece))
            if classes == 3:
                seen = []
                for label in y[piece].tolist():
                    seen.append(list(order))
                    order += [label] if label not in order else []
                scores = table(split, scores, seen, columns)
            got.append(scores)
        assert np.array_equal(np.concatenate(got), expected)
        np.testing.assert_equal(snapshot(split, X), snapshot(whole, X))


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
def test_labels_of_any_type(part, kind):
    """classes_ is sorted; the names of the classes change nothing but the columns; predictions are labels."""
    names = LABELS[kind]
    classes = 3 if part in MANY and len(names) == 3 else 2
    plain, model = made(part), made(part)
    X, codes = data(part, classes, [0, 1, 2])
    y = np.array(names)[codes]
    first, scores = plain.predict_learn(X, codes), model.predict_learn(X, y)
    assert model.classes_.tolist() == sorted(names[:classes])
    assert set(model.predict(X).tolist()) <= set(names[:classes])
    if classes == 2:
        alone = int(np.argmax(codes == 1)) + 1  # until the second class has come, for the only one
        flip = np.where(np.arange(len(X)) < alone, 1.0, 1.0 if names[0] < names[1] else -1.0)
        assert np.array_equal(scores, flip * first)
    else:
        order = np.argsort(np.array(names))
        assert np.array_equal(scores, first[:, order])
        late = np.flatnonzero(codes == 2)[0]
        column = sorted(names).index(names[2])
        assert np.isneginf(scores[: late + 1, column]).all()
        assert np.isfinite(scores[late + 1 :]).all()
        assert np.isneginf(scores[0]).all()
    assert np.array_equal(np.array(names)[plain.predict(X)], model.predict(X))


@pytest.mark.parametrize("average", [False, True, "sparse"])
@pytest.mark.parametrize("part", MANY, ids=name_of)
def test_a_third_class(part, average):
    """When a third class comes, the difference of the scores of the first two goes on, and the norm is that of f."""
    X, y = data(part)
    for loss in ("hinge", "logistic") if "loss" in inspect.signature(part).parameters else (None,):
        model = made(part, budget=None, average=average, **({"loss": loss} if loss else {}))
        model.predict_learn(X, y)
        sign = 1.0 if model.decision_function(X[:1])[0] == model.learner_.score(X[:1], bool(average))[0] else -1.0
        before, current = model.decision_function(X), sign * model.learner_.score(X)
        scores = clone_of(model).predict_learn(X[:1], ["c"])
        np.testing.assert_allclose(scores[0, 1] - scores[0, 0], current[0], rtol=1e-13)
        assert np.isneginf(scores[0, 2])
        model.partial_fit(X[:1] + 50.0, ["c"])  # far away: it says nothing about the other rows
        assert model.classes_.tolist() == ["aa", "b", "c"]
        difference = model.decision_function(X) @ [-1.0, 1.0, 0.0]
        if average:
            np.testing.assert_allclose(difference, (len(X) * before + current) / (len(X) + 1), rtol=1e-9, atol=1e-12)
        else:
            np.testing.assert_allclose(difference / before, (difference / before)[0], rtol=1e-9)  # the decay
            assert 0.99 < difference[0] / before[0] <= 1.0
        learner = model.learner_
        gram = learner.kernel(learner.points, learner.points)
        np.testing.assert_allclose(learner.norm**2, np.trace(learner.coefs @ gram @ learner.coefs.T), rtol=1e-9)


def clone_of(model):
    return pickle.loads(pickle.dumps(model))


@pytest.mark.parametrize("part", [part for part in CLASSIFIERS if part not in MANY], ids=name_of)
def test_two_classes_only(part):
    """A third class is refused in one sentence by those that have no form for it, and nothing has changed."""
    X, y = data(part)
    model = made(part)
    model.predict_learn(X, y)
    before = snapshot(model, X)
    with pytest.raises(ValueError, match=f"The 'y' parameter of {part.__name__} must be of two classes"):
        model.partial_fit(X, data(part, 3)[1])
    np.testing.assert_equal(snapshot(model, X), before)


# ------------------------------------------------------------------------------------------------------------ state


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_clone_and_repr(part):
    """__init__ stores what it gets; clone gives an unfitted twin; repr shows changes; unfitted models say so."""
    names = list(inspect.signature(part).parameters)
    markers = {name: object() for name in names}
    assert part(**markers).get_params(deep=False) == markers
    model = made(part, n_passes=3)
    assert clone(model).get_params() == model.get_params()
    assert part.__name__ in repr(model)
    assert "n_passes=3" in repr(model)
    assert "average" not in repr(model)
    X, y = data(part)
    assert not hasattr(clone(model.fit(X, y)), "learner_")
    for method in ("predict", "decision_function", "score_samples"):
        if hasattr(part, method):
            with pytest.raises(NotFittedError):
                getattr(clone(model), method)(X)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_pickle(part, average):
    """A pickled model goes on as if it had never stopped, also after a third class."""
    X, y = data(part, 3 if part in MANY else 2)
    model = made(part, average=average)
    for piece in (slice(0, 25), slice(25, 50), slice(50, 60)):
        twin = clone_of(model)
        scores = [one.predict_learn(X[piece], cut(y, piece)) for one in (model, twin)]
        assert np.array_equal(*scores)
        np.testing.assert_equal(snapshot(model, X), snapshot(twin, X))


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_fit_starts_anew(part):
    """fit forgets, makes n_passes passes, and partial_fit goes on from there."""
    X, y = data(part, 3 if part in MANY else 2)
    other, targets = data(part, seed=1)
    model = made(part).fit(other, targets)
    np.testing.assert_equal(snapshot(model.fit(X, y), X), snapshot(made(part).fit(X, y), X))
    assert model.n_seen_ == len(X)
    assert model.n_features_in_ == 2
    plain = {"shuffle": False, "average": False}
    model = made(part, **plain).fit(X, y)
    twice = made(part, n_passes=2, **plain).fit(X, y)
    assert twice.n_seen_ == 2 * len(X)
    if part is not gossamer.AdatronClassifier:  # whose rows come back under their ids
        before, now = snapshot(model.partial_fit(X, y), X), snapshot(twice, X)
        # the second pass has met its rows before: their scores say nothing about how sure the model is
        assert before.pop("_certainty") != now.pop("_certainty")
        np.testing.assert_equal(before, now)
    if part in DETECTORS + REGRESSORS:
        np.testing.assert_equal(snapshot(made(part).partial_fit(X, y), X), snapshot(made(part, **plain).fit(X, y), X))
    elif part is not gossamer.AdatronClassifier:
        given = made(part).partial_fit(X, y, classes=np.unique(y))
        np.testing.assert_equal(snapshot(given, X), snapshot(made(part, **plain).fit(X, y), X))


def test_adatron_passes_converge():
    """Passes of AdatronClassifier are visits by id: they reach the box or the margin, as the dual asks."""
    X, y = data(gossamer.AdatronClassifier, names=[-1, 1])
    model = gossamer.AdatronClassifier(Gaussian(0.5), C=2.0, n_passes=3000).fit(X, y)
    assert len(model.support_vectors_) <= len(X)
    margin, size = y * model.decision_function(X), np.zeros(len(X))
    place = {x.tobytes(): i for i, x in enumerate(X)}
    size[[place[x.tobytes()] for x in model.support_vectors_]] = np.abs(model.dual_coef_[0])
    assert (margin[size == 0] >= 1 - 1e-2).all()
    assert (margin[size >= 2.0 - 1e-9] <= 1 + 1e-2).all()
    assert (np.abs(margin[(size > 1e-6) & (size < 2.0 - 1e-6)] - 1) < 1e-2).all()


# -------------------------------------------------------------------------------------------------------- bad input


def bad_calls(part):
    """Calls that must fail, each a function of the model."""
    X, y = data(part)
    nan = X.copy()
    nan[-1, 0] = np.nan
    yield "nan", lambda m: m.partial_fit(nan, y)
    yield "nan in fit", lambda m: m.fit(nan, y)
    yield "nan in predict", lambda m: m.predict(nan)
    yield "width", lambda m: m.partial_fit(X[:, :1], y)
    yield "width in predict", lambda m: m.predict(X[:, :1])
    yield "empty", lambda m: m.partial_fit(X[:0], cut(y, slice(0)))
    yield "weights", lambda m: m.partial_fit(X, y, sample_weight=np.full(len(X), -1.0))
    yield "too few weights", lambda m: m.predict_learn(X, y, sample_weight=[1.0])
    if y is not None:
        yield "length", lambda m: m.partial_fit(X, y[1:])
    if part in REGRESSORS:
        yield "target", lambda m: m.partial_fit(X, np.append(y[1:], np.inf))
    if part in MANY:
        late = y.copy()
        late[-5:] = "c"
        yield "third class and nan", lambda m: m.partial_fit(nan, late)
        yield "third class and weight", lambda m: m.partial_fit(X, late, sample_weight=[*[1.0] * (len(X) - 1), np.nan])
    if "fit_intercept" in inspect.signature(part).parameters and part in CLASSIFIERS:
        yield "third class and offset", lambda m: m.set_params(fit_intercept=True).partial_fit(X, late)


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_bad_input_changes_nothing(part):
    """Bad rows, labels, targets or weights raise the one sentence, and the model is as it was, fresh or trained."""
    X, y = data(part)
    for name, call in bad_calls(part):
        for trained in (True, False):
            model = made(part)
            if trained:
                model.partial_fit(X, y)
            elif "predict" in name or name == "width":
                continue
            before = snapshot(model, X)
            with pytest.raises(ValueError, match=r"^The '\w+' parameter of \w+ must be .* Got .* instead\.$"):
                call(model)
            np.testing.assert_equal(snapshot(model, X), before, err_msg=name)


@pytest.mark.parametrize("part", [part for part in MANY if part not in ADDITIVE], ids=name_of)
def test_a_failure_after_the_third_class(part):
    """A kernel that fails on a row behind the first of a third class: the rows before it have not been learned."""

    def kernel(A, B):
        if np.abs(B).max() > 100:
            raise ZeroDivisionError
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    X, y = data(part, 3)
    model = part(kernel, budget=20)
    model.predict_learn(X[:20], y[:20])
    before = snapshot(model, X)
    with pytest.raises(ZeroDivisionError):
        model.predict_learn(np.vstack([X[20:], [[200.0, 0.0]]]), [*y[20:], "b"])
    np.testing.assert_equal(snapshot(model, X), before)


@pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
def test_unknown_label(part):
    """Where the classes were given, another label is refused, and nothing has changed."""
    X, y = data(part)
    for start in (lambda m: m.partial_fit(X, y, classes=["aa", "b"]), lambda m: m.fit(X, y)):
        model = start(made(part))
        before = snapshot(model, X)
        with pytest.raises(ValueError, match=f"The 'y' parameter of {part.__name__} must be one of the classes"):
            model.partial_fit(X, np.append(y[1:], "c"))
        np.testing.assert_equal(snapshot(model, X), before)


BAD = {
    "budget": [0, -1, 2.5, True, "all"], "n_passes": [0, 1.5],
    "shuffle": [1, "yes", None], "random_state": [-1, "x", 0.5], "average": ["all", 1, None],
    "loss": ["what", None, "huber:colour=3"], "rule": ["what", None, 3, "implicit:C=0", "implicit:colour=3"],
    "rate": [0.0, -1.0, math.nan, "fast"], "reg": [-0.1, math.inf], "margin": [-1.0], "nu": [0.0, 1.5],
    "C": [0.0, -1.0], "schedule": ["falling"], "fit_intercept": [1, "yes"], "scale_target": [2, "yes"],
    "cost": [np.ones((2, 3)), [[0, -1], [1, 0]], [[1, 0], [0, 1]]],
    "multiclass": ["fast", None], "epsilon": [-0.1], "delta": [0.0], "quantile": [0.0, 1.0], "radius": [0.0, -1.0],
    "variant": ["PA-III"], "alpha": [0.0, 1.1], "B": [0.0], "aggressive": [1], "meta": [-1.0], "memory": [-0.1, 1.1],
    "noise": [0.0, -1.0, math.inf], "forgetting": [0.0, 1.1], "skip": [0.0, 1.0, "often"],
    "half_life": [0, -1.0, "soon"], "class_weight": ["equal", {}, {"b": -1.0}, 3],
    "kernel": ["gauss", 3], "method": ["fast", None], "rescale": [1, "yes", None], "weights": [[1.0], [1.0, -1.0], 2.0],
    "products": [[(0, 1, 1)], [(0, 2)], [(0, 1), (0, 1)], 3], "differences": [[(0, 2)], [0, 1], [(0, 1), (0, 1)]],
}  # fmt: skip
NEEDS = {"epsilon": "epsilon_insensitive", "delta": "huber", "quantile": "pinball"}


@pytest.mark.parametrize("part", FOUND, ids=name_of)
def test_bad_parameters(part):
    """Every parameter out of its range raises the one sentence when rows come, and the model stays unfitted."""
    X, y = data(part)
    names = list(inspect.signature(part).parameters)
    assert set(names) <= set(BAD), "give tests/estimators/test_estimators.py a bad value for each new parameter"
    for name in names:
        base = {"loss": NEEDS[name]} if name in NEEDS and "loss" in names else {}
        for value in BAD[name]:
            model = part(**{"kernel": Gaussian(0.5), **base, name: value})
            for call in (model.fit, model.predict_learn) if name != "cost" else (model.fit,):
                with pytest.raises(ValueError, match=r"The '(\w+)' parameter of \w+ must be .* Got .* instead\."):
                    call(X, y)
                assert not hasattr(model, "learner_"), (name, value)


@pytest.mark.parametrize("part", [part for part in MANY if "cost" in inspect.signature(part).parameters], ids=name_of)
def test_bad_costs(part):
    """A cost of the wrong size, one without the classes, or one with a loss that has none."""
    X, y = data(part, 3)
    cost = np.ones((3, 3)) - np.eye(3)
    for wrong, call in (
        (made(part, cost=np.ones((2, 2)) - np.eye(2)), lambda m: m.fit(X, y)),
        (made(part, cost=cost), lambda m: m.partial_fit(X, y)),
        (made(part, cost=cost), lambda m: m.predict_learn(X, y)),
        (made(part, cost=cost, loss="logistic"), lambda m: m.fit(X, y)),
        (made(part, cost=cost, loss="squared_hinge"), lambda m: m.fit(X, y)),
        (made(part, cost=taxonomy({"x": None, "y": None, "z": None})), lambda m: m.fit(X, y)),
    ):
        with pytest.raises(ValueError, match=r"^The '(cost|classes|y)' parameter of \w+ must be .* Got"):
            call(wrong)
        assert not hasattr(wrong, "learner_")
