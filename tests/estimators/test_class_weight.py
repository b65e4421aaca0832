"""Class weights in every classifier and face: batches, balance, what a dict means, stores, banks, river, bad input."""

import numpy as np
import pytest
from parts import agree, examples, label, stream
from sklearn.base import clone
from sklearn.utils.class_weight import compute_class_weight
from test_estimators import CLASSIFIERS as ALL, MANY, MIXTURES, data, made, name_of

import gossamer
from gossamer import Learner, Mixture, OnlineScaler, _core, pipeline
from gossamer.bank import ModelBank
from gossamer.estimators.class_weights import balance
from gossamer.evaluate import prequential
from gossamer.kernels import Gaussian

CLASSIFIERS = [part for part in ALL if "class_weight" in part().get_params()]
PARTS = [slice(0, 3), slice(3, 17), slice(17, 18), slice(18, 60)]
DICT = {"b": 3.0, "c": 0.25}
every_classifier = pytest.mark.parametrize("part", CLASSIFIERS, ids=name_of)
every_weight = pytest.mark.parametrize("class_weight", ["balanced", DICT], ids=["balanced", "dict"])


def rows_of(part):
    return data(part, 3 if part in MANY else 2)


@every_weight
@every_classifier
def test_batches(part, class_weight):
    """Any split gives the same bits, also where a third class comes; a stored model goes on."""
    X, y = rows_of(part)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=60)
    whole, split = (made(part, class_weight=class_weight) for _ in range(2))
    whole.predict_learn(X, y, weights)
    for p in PARTS:
        split.predict_learn(X[p], y[p], weights[p])
        split = gossamer.from_bytes(split.to_bytes())
    assert whole.to_bytes() == split.to_bytes()
    assert not np.array_equal(
        whole.decision_function(X), made(part).partial_fit(X, y, sample_weight=weights).decision_function(X)
    )


@every_classifier
def test_a_dict_is_a_sample_weight(part):
    X, y = rows_of(part)
    each = np.array([DICT.get(label, 1.0) for label in y])
    one = made(part, class_weight=DICT).predict_learn(X, y)
    assert np.array_equal(one, made(part).predict_learn(X, y, each))
    fitted, other = made(part, class_weight=DICT).fit(X, y), made(part).fit(X, y, each)
    assert np.array_equal(fitted.decision_function(X), other.decision_function(X))


@every_classifier
def test_balanced_is_a_sample_weight(part):
    X, y = rows_of(part)
    order = list(dict.fromkeys(y.tolist()))
    each = balance(np.array([float(order.index(label)) for label in y]), None, None, np.zeros(len(order)))
    assert np.array_equal(made(part, class_weight="balanced").predict_learn(X, y), made(part).predict_learn(X, y, each))


def test_the_core_balances_as_the_specification():
    """With weights and fading; in any split; and in the long run as scikit-learn, all classes counting alike."""
    rng = np.random.default_rng(1)
    codes = rng.choice(3, p=[0.9, 0.08, 0.02], size=2000).astype(float)
    weights, fades = rng.uniform(0, 2, size=2000), rng.choice([1.0, 0.999, 0.0], p=[0.8, 0.199, 0.001], size=2000)
    weights[5:9] = 0.0
    for given in (None, weights):
        for fading in (None, fades):
            counts, other, out = np.zeros(3), np.zeros(3), np.empty(2000)
            _core.balance(codes, given, fading, counts, out)
            np.testing.assert_allclose(out, balance(codes, given, fading, other), rtol=1e-12)
            np.testing.assert_allclose(counts, other, rtol=1e-12)
            assert np.isfinite(out).all()
    counts, out = np.zeros(3), np.empty(2000)
    _core.balance(codes, None, None, counts, out)
    expected = compute_class_weight("balanced", classes=np.arange(3), y=codes)
    for code in range(3):
        assert out[codes == code][-1] == pytest.approx(expected[code], rel=0.1)
    shares = np.bincount(codes.astype(int), out) / out.sum()
    np.testing.assert_allclose(shares, 1 / 3, atol=0.1)


def test_a_rare_class_is_found_more_often():
    """One row in twenty-five is of a class that overlaps: balanced, nearly every classifier finds more of them. (Where
    the weight only bounds a step, as in PA, that is not so.)"""
    rng = np.random.default_rng(2)
    y = (rng.random(1500) < 0.04).astype(int)
    X = rng.normal(size=(1500, 2)) + 1.5 * y[:, None]
    gains = []
    for part in [*CLASSIFIERS, gossamer.AutoClassifier]:
        found = []
        for class_weight in (None, "balanced"):
            parameters = {"class_weight": class_weight, "budget": 60}
            model = part(Gaussian(0.5), **parameters) if part not in MIXTURES else part(**parameters)
            model.partial_fit(X[:1000], y[:1000], classes=[0, 1])
            found.append(model.predict(X[1000:])[y[1000:] == 1].mean())
        gains.append(found[1] - found[0])
    assert np.mean(np.array(gains) > 0) >= 0.8
    assert np.mean(gains) > 0.3


@pytest.mark.parametrize("rule", [rule for rule in examples("rule", one_each=True) if not rule.weighs], ids=label)
def test_rules_without_weights_refuse(rule):
    """And they are those whose steps are the same for every weight but 0."""
    X, y = data(gossamer.SILKClassifier)
    plain, weighed = (gossamer.OnlineClassifier(Gaussian(0.5), loss_for(rule), rule, 20) for _ in range(2))
    assert np.array_equal(plain.predict_learn(X, y), weighed.predict_learn(X, y, np.full(60, 7.0)))
    with pytest.raises(ValueError, match="The 'class_weight' parameter of OnlineClassifier must be None with"):
        gossamer.OnlineClassifier(Gaussian(0.5), loss_for(rule), rule, 20, class_weight="balanced").partial_fit(X, y)


@pytest.mark.parametrize("rule", [rule for rule in examples("rule", one_each=True) if rule.weighs], ids=label)
def test_rules_with_weights(rule):
    loss = loss_for(rule)
    X, y = stream(loss, 60, seed=0)
    plain, weighed = (Learner(Gaussian(0.5), loss, rule) for _ in range(2))
    assert not np.array_equal(plain.learn(X, y), weighed.learn(X, y, np.full(60, 0.03)))


def loss_for(rule):
    return next(loss for loss in examples("loss") if loss.target == "binary" and agree(loss, rule))


@every_weight
@every_classifier
def test_banks_and_evaluation(part, class_weight):
    X, y = rows_of(part)
    keys, model = np.arange(60) % 2, pipeline(OnlineScaler(), made(part, class_weight=class_weight))
    bank = ModelBank(model, threads=1, classes=np.unique(y).tolist() if part in MANY else None)
    for p in PARTS:
        bank.learn(keys[p], X[p], y[p])
    for key in range(2):
        own, mine = clone(model), keys == key
        if part in MANY:
            own[-1]._order, own[-1]._given, own[-1].classes_ = np.unique(y).tolist(), True, np.unique(y)
        own.predict_learn(X[mine], y[mine])
        assert np.array_equal(bank.model(key).decision_function(X), own.decision_function(X))
    late, plain = clone(model), clone(model)
    prequential(late, (X, y), delay=5)
    for t in range(55):
        plain.partial_fit(X[t : t + 1], y[t : t + 1])
    assert np.array_equal(late.decision_function(X), plain.decision_function(X))


@every_weight
@pytest.mark.parametrize("part", [part for part in CLASSIFIERS if part.takes_new_features], ids=name_of)
def test_river(part, class_weight):
    river = pytest.importorskip("gossamer.river")
    X, y = rows_of(part)
    model = getattr(river, part.__name__)(Gaussian(0.5), budget=20, class_weight=class_weight)
    own = made(part, class_weight=class_weight, average=False).partial_fit(X, y)
    for x, name in zip(X, y.tolist(), strict=True):
        model.learn_one({"a": x[0], "b": x[1]}, name)
    assert np.array_equal(model.learner.score(X), own.learner_.score(X))


def test_merged_counts_are_added():
    X, y = rows_of(gossamer.SILKClassifier)
    models = [
        made(gossamer.SILKClassifier, class_weight="balanced").partial_fit(X[p], y[p])
        for p in (slice(25), slice(25, 60))
    ]
    merged = gossamer.merge(models).model
    whole = made(gossamer.SILKClassifier, class_weight="balanced").partial_fit(X, y)
    assert dict(zip(merged._order, merged._class_counts, strict=True)) == dict(
        zip(whole._order, whole._class_counts, strict=True)
    )


@pytest.mark.parametrize("bad", ["equal", {}, {"b": -1.0}, {"b": np.nan}, {"b": "two"}, {"b": True}, 3, [1.0, 2.0]])
def test_bad_weights(bad):
    X, y = rows_of(gossamer.SILKClassifier)
    with pytest.raises(
        ValueError, match="The 'class_weight' parameter of SILKClassifier must be None, 'balanced' or a dict"
    ):
        gossamer.SILKClassifier(class_weight=bad).partial_fit(X, y)


def test_a_mixture_of_weighted_experts():
    X, y = rows_of(gossamer.SILKClassifier)
    experts = [made(gossamer.SILKClassifier, class_weight="balanced"), made(gossamer.NewtonClassifier)]
    whole, split = Mixture(experts).partial_fit(X, y), Mixture(experts)
    for p in PARTS:
        split.partial_fit(X[p], y[p])
    assert whole.to_bytes() == split.to_bytes()
