"""Laws of the budgets that project, merge or pay: what they keep is the best that can be kept; the rest is counted."""

import math

import numpy as np
import pytest
from parts import agree, assert_same, cut, examples, facts, label, learn_split, stream

import gossamer
from gossamer import Learner, SILKClassifier
from gossamer.budgets import Auto, Forgetron, Merge, Oldest, Project, Random, Smallest
from gossamer.budgets.gram_inverse import Inverse
from gossamer.kernels import Gaussian, Laplace, Polynomial
from gossamer.losses import Hinge, Multiclass, Novelty, Squared
from gossamer.rules import Adatron, Example, Gradient, Implicit, Perceptron

BACKENDS = pytest.mark.parametrize("backend", ["auto", "numpy"])
LOSSES = [Hinge(), Squared(), Novelty(0.5), Multiclass()]


def norm2(coefs, kernel, points):
    """||f||^2 of coefficients, a row for each output."""
    return float(np.sum((coefs @ kernel(points, points)) * coefs))


def steps(learner, loss, rule, X, y):
    """Learn row by row; for every round: the terms before it, decayed, the newcomer's coefficients, the terms after."""
    for t in range(len(X)):
        points, coefs = learner.points, np.atleast_2d(learner.coefs)
        score = learner.learn(X[t : t + 1], cut(y, slice(t, t + 1)))[0]
        target = 0.0 if y is None else float(y[t])
        kappa = float(learner.kernel.diag(X[t : t + 1])[0])
        after = np.atleast_2d(learner.coefs)
        value = np.zeros(len(after))
        if len(points):
            value[: len(coefs)] = coefs @ learner.kernel(points, X[t : t + 1])[:, 0]
        step = rule.step(loss, Example(value if loss.target == "label" else float(score), 0.0, target, kappa))
        move = np.atleast_1d(step.coefficient).astype(float)
        grown = np.vstack([coefs, np.zeros((len(after) - len(coefs), coefs.shape[1]))]) if len(points) else None
        before = (np.zeros((0, X.shape[1])), np.zeros((len(after), 0))) if grown is None else (points, grown)
        yield t, before[0], step.keep * before[1], move, learner.points, after


@BACKENDS
@pytest.mark.parametrize("loss", LOSSES, ids=label)
@pytest.mark.parametrize("kernel", [Gaussian(0.5), Laplace(0.3)], ids=label)
def test_the_best_projection_and_the_least_loss(kernel, loss, backend):
    """What stays is the best that its points can express (by least squares), no other point would have been missed less
    (by trying them all), and `discarded` grows by exactly the norm that is lost."""
    rule = Implicit(C=0.8, reg=0.02)
    X, y = stream(loss, 70, seed=1)
    learner = Learner(kernel, loss, rule, Project(8, tolerance=1e-9), backend=backend)
    discarded, lossy = 0.0, 0
    for t, points, coefs, move, kept, after in steps(learner, loss, rule, X, y):
        lost, discarded = learner.discarded - discarded, learner.discarded
        if not move.any() or len(points) < 8:
            assert lost == 0
            continue
        candidates, target = np.vstack([points, X[t]]), np.column_stack([coefs, move])
        gram = kernel(candidates, candidates)

        def left(stays, gram=gram, target=target):
            """The squared norm that the points which stay cannot express."""
            best = np.linalg.lstsq(gram[np.ix_(stays, stays)], gram[stays] @ target.T, rcond=None)[0]
            inside = np.sum(best * (gram[stays] @ target.T))
            return float(np.sum((target @ gram) * target) - inside)

        losses = [left([i for i in range(9) if i != gone]) for gone in range(9)]
        difference = np.column_stack([target, -after])
        error2 = norm2(difference, kernel, np.vstack([candidates, kept]))
        assert error2 <= min(losses) * (1 + 1e-5) + 1e-9
        assert lost == pytest.approx(math.sqrt(max(0.0, error2)), rel=1e-4, abs=1e-6)
        lossy += lost > 1e-3
    assert lossy > 10


@pytest.mark.parametrize("loss", examples("loss"), ids=label)
def test_a_projection_never_needed(loss):
    """A budget that is never full is none, bit for bit."""
    for rule in examples("rule"):
        X, y = stream(loss, 40, seed=2)
        for budget in (Project(40), Merge(40), Random(40), Forgetron(40), Auto(start=40)):
            if not agree(loss, rule, budget):
                continue
            free, learner = Learner(Gaussian(0.5), loss, rule), Learner(Gaussian(0.5), loss, rule, budget)
            assert np.array_equal(free.learn(X, y), learner.learn(X, y))
            known, found = facts(free), facts(learner)
            assert found.pop("norm") == pytest.approx(known.pop("norm"), abs=1e-7)
            assert_same(found, known)
            assert learner.discarded == 0


@BACKENDS
@pytest.mark.parametrize(
    "budget", [Project(6), Project(None, 0.3), Merge(6), Random(6), Smallest(6), Oldest(6), Oldest(age=9)], ids=label
)
def test_the_norm_is_the_norm(budget, backend):
    """The norm tracked through projections and merges is that of the coefficients."""
    for loss in LOSSES:
        X, y = stream(loss, 120, seed=3)
        kernel = Gaussian(0.7)
        learner = Learner(kernel, loss, Implicit(C=0.9, reg=0.01), budget, track_norm=True, backend=backend)
        learner.learn(X, y)
        exact = math.sqrt(norm2(np.atleast_2d(learner.coefs), kernel, learner.points))
        assert learner.norm == pytest.approx(exact, rel=1e-7)
        assert learner.discarded > 0


def test_dropping_counts_what_it_drops():
    """`discarded` of budgets that drop is the sum of |coefficient| sqrt(k(x, x)) of what left, the refused included."""
    kernel, rule = Polynomial(2, 0.5), Implicit(C=0.8, reg=0.02)
    for budget in (Smallest(5), Oldest(5), Oldest(age=7), Random(5)):
        X, y = stream(Squared(), 80, seed=4)
        learner, total, known = Learner(kernel, Squared(), rule, budget), 0.0, {}
        for t, _, _, move, _, after in steps(learner, Squared(), rule, X, y):
            known = {birth: value / 1.02 for birth, value in known.items()}
            known[t + 1] = float(move[0])
            stays = set(learner.births.tolist())
            for birth in [birth for birth in known if birth not in stays]:
                total += abs(known.pop(birth)) * math.sqrt(float(kernel.diag(X[birth - 1 : birth])[0]))
            order = np.argsort(learner.births)
            np.testing.assert_allclose(after[0][order], [known[birth] for birth in sorted(known)], rtol=1e-9)
            assert learner.discarded == pytest.approx(total, rel=1e-9)
        assert total > 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("gamma", [1e-3, 1.0, 1e3])
def test_many_steps_stay_right(gamma, dtype):
    """A million rows with repeated points and near-duplicates, from kernels that see one point to kernels that see none
    alike: finite, and Q is still the inverse."""
    rng = np.random.default_rng(5)
    rows = 1_000_000 if dtype == np.float64 else 100_000
    X = rng.normal(size=(rows, 3))
    X[1::3] = X[rng.integers(0, 50, len(X[1::3]))]
    X[2::3] = X[1::3][: len(X[2::3])] + 1e-6 * rng.normal(size=X[2::3].shape)
    y = np.where(np.sin(3 * X[:, 0]) + 0.3 * rng.normal(size=rows) > 0, 1.0, -1.0)
    kernel = Gaussian(gamma)
    learner = Learner(kernel, Hinge(), Implicit(C=1.0, reg=1e-4), Project(20))
    scores = learner.learn(X.astype(dtype), y)
    assert np.isfinite(scores).all()
    assert learner.updates > rows / 6
    state, size = learner.state(), len(learner.births)
    inverse = np.zeros((size, size))
    inverse[np.tril_indices(size)] = state.budget["inverse"]
    inverse += np.tril(inverse, -1).T
    points = learner.points
    rounding = 1e-6 if dtype == np.float64 else 1e-2
    assert np.abs(inverse @ kernel(points, points) - np.eye(size)).max() < rounding
    exact = math.sqrt(norm2(np.atleast_2d(learner.coefs), kernel, points.astype(np.float64)))
    assert learner.norm == pytest.approx(exact, rel=1e-6 if dtype == np.float64 else 1e-2)


@BACKENDS
def test_a_worn_inverse_is_made_anew(backend):
    """An inverse that has gone wrong is noticed and made again from the kernel values."""
    X, y = stream(Hinge(), 600, seed=6)
    kernel = Gaussian(2.0)
    learner = Learner(kernel, Hinge(), Gradient(0.5, 0.01), Project(15), backend=backend)
    learner.learn(X[:300], y[:300])
    state = learner.state()
    state.budget["inverse"] = state.budget["inverse"] + 1e-4
    learner.restore(state)
    learner.learn(X[300:], y[300:])
    size = len(learner.births)
    inverse = np.zeros((size, size))
    inverse[np.tril_indices(size)] = learner.state().budget["inverse"]
    inverse += np.tril(inverse, -1).T
    assert np.abs(inverse @ kernel(learner.points, learner.points) - np.eye(size)).max() < 1e-7


@BACKENDS
def test_steps_inside_the_span(backend):
    """A row in the span of the points is learned there: the score after an implicit step is as for a point of its own,
    and nothing is stored."""
    X = np.array([[0.0], [1.0], [2.0], [3.0], [1.0]])
    learner = Learner(Gaussian(0.5), Squared(), Implicit(C=1.0), Project(3), backend=backend)
    learner.learn(X[:4], [1.0, -1.0, 2.0, 0.5])
    before = learner.discarded
    score = learner.learn(X[4:], [0.3])[0]
    assert learner.score(X[4:])[0] == pytest.approx((score + 0.3) / 2, rel=1e-6)
    assert len(learner.births) == 3
    assert 5 not in learner.births
    assert learner.discarded == pytest.approx(before, abs=1e-6)


def test_projectron():
    """Perceptron steps with Project(None, tolerance): the tolerance bounds the size, and most mistakes are learned
    without a point of their own."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-2, 2, (4000, 2))
    y = np.where(np.sin(2 * X[:, 0]) * np.cos(2 * X[:, 1]) > 0, 1.0, -1.0)
    sizes = []
    for tolerance in (0.5, 0.1, 0.01):
        learner = Learner(Gaussian(1.0), Hinge(), Perceptron(), Project(None, tolerance))
        scores = learner.learn(X, y)
        sizes.append(len(learner.births))
        assert (scores[2000:] * y[2000:] <= 0).mean() < 0.2
    assert sizes == sorted(sizes)
    assert sizes[-1] < 120


def test_forgetron_keeps_its_bound():
    """The damage stays below 15/32 of the mistakes, and only perceptron steps are taken."""
    X, y = stream(Hinge(), 500, seed=8)
    learner = Learner(Gaussian(0.5), Hinge(), Perceptron(), Forgetron(12))
    for t in range(500):
        learner.learn_one(X[t], y[t])
        state = learner.state()
        assert state.budget["spent"] <= 15 / 32 * learner.updates * (1 + 1e-12)
    assert state.budget["spent"] > 0
    assert float(np.abs(learner.coefs).max()) <= 1
    with pytest.raises(ValueError, match="'rule' parameter of Learner must be Perceptron"):
        Learner(Gaussian(), Hinge(), Implicit(), Forgetron(5))


def test_merging_two_points():
    """The new point is the best of a fine grid between the two, with the coefficient that loses least."""
    kernel = Gaussian(0.8)
    X = np.array([[0.0], [0.7], [5.0]])
    learner = Learner(kernel, Squared(), Gradient(1.0, 0.0), Merge(2))
    learner.learn(X, [1.0, 2.0 + kernel(X[:1], X[1:2])[0, 0] / 2, 3.0])
    before = Learner(kernel, Squared(), Gradient(1.0, 0.0))
    before.learn(X[:2], [1.0, 2.0 + kernel(X[:1], X[1:2])[0, 0] / 2])
    grid = np.linspace(0, 0.7, 20001)[:, None]
    values = kernel(grid, before.points) @ before.coefs
    best = int(np.argmax(np.abs(values)))
    assert learner.points[0, 0] == pytest.approx(grid[best, 0], abs=1e-4)
    assert learner.coefs[0] == pytest.approx(values[best], rel=1e-7)
    whole = norm2(before.coefs[None], kernel, before.points)
    assert learner.discarded == pytest.approx(math.sqrt(whole - values[best] ** 2), rel=1e-6)


def test_merge_takes_gaussians():
    """Points of another kernel have nothing between them."""
    with pytest.raises(ValueError, match="'kernel' parameter of Learner must be a Gaussian with a Merge budget"):
        Learner(Laplace(), Hinge(), Implicit(), Merge(5))
    with pytest.raises(ValueError, match="another one where examples come back"):
        Learner(Gaussian(), Hinge(), Adatron(), Merge(5))


def test_random_draws_from_all():
    """Every slot leaves, by the seed, whatever the batches."""
    X, y = stream(Squared(), 400, seed=9)
    one, two = (Learner(Gaussian(0.5), Squared(), Gradient(0.5, 0.0), Random(8, seed)) for seed in (0, 1))
    one.learn(X, y), two.learn(X, y)
    assert not np.array_equal(one.births, two.births)
    lives, last = [], {}
    again = Learner(Gaussian(0.5), Squared(), Gradient(0.5, 0.0), Random(8))
    for t in range(400):
        again.learn_one(X[t], y[t])
        now = dict(enumerate(again.births.tolist()))
        lives += [slot for slot in now if now[slot] != last.get(slot)]
        last = now
    assert np.bincount(lives, minlength=8).min() > 25
    assert_same(facts(one), facts(again))


def test_auto_keeps_its_limit():
    """The size that memory allows is there after a file, and when a third class comes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    model = SILKClassifier(Gaussian(1.0), budget=Auto(memory=20_000, start=4)).partial_fit(X, y)
    size = model.learner_.budget.size
    assert size == 32
    assert gossamer.from_bytes(model.to_bytes()).learner_.budget.size == size
    model.partial_fit(X[:5], [2] * 5)
    assert model.learner_.budget.size == size


@BACKENDS
def test_auto_grows_while_it_matters(backend):
    """More room where what is lost matters, none where the points suffice, never more than the memory allows."""
    rng = np.random.default_rng(10)
    X = rng.uniform(-3, 3, (1500, 2))
    easy, hard = np.tanh(X[:, 0]), np.sin(4 * X[:, 0]) * np.sin(4 * X[:, 1])
    sizes = {}
    for name, y, gamma in (("easy", easy, 0.05), ("hard", hard, 4.0)):
        learner = Learner(Gaussian(gamma), Squared(), Implicit(C=1.0), Auto(start=16, memory=300_000), backend=backend)
        learner.learn(X, y)
        sizes[name] = len(learner.births)
        assert learner.budget.size == 134
    assert sizes["easy"] <= 32
    assert 64 < sizes["hard"] <= 134
    assert SILKClassifier(budget="auto").fit(X, easy > 0).support_vectors_.shape[0] <= 702


def test_discarded_survives_a_restart():
    """Saved, loaded, resumed: exact, for every budget that reshapes."""
    X, y = stream(Hinge(), 200, seed=11)
    rules = {Forgetron: Perceptron()}
    for budget in (Project(9), Project(None, 0.2), Merge(9), Random(9), Forgetron(9), Auto(start=5, memory=9_000)):
        parts = Gaussian(0.5), Hinge(), rules.get(type(budget), Implicit(C=0.7, reg=0.01)), budget
        whole, half = Learner(*parts), Learner(*parts)
        scores = whole.learn(X, y)
        half.learn(X[:111], y[:111])
        other = Learner.from_bytes(half.to_bytes())
        assert np.array_equal(other.learn(X[111:], y[111:]), scores[111:])
        assert_same(facts(other), facts(whole))
        assert other.discarded == whole.discarded > 0


def test_trees_do_not_project():
    """Budgets that need kernel values keep their learner out of trees, and say so."""
    from gossamer.kernels import Exponential

    X, y = stream(Squared(), 50, seed=12)
    learner = Learner(Exponential(), Squared(), Implicit(), Project(300))
    learn_split(learner, X[:, :1], y)
    assert learner.backend == "native"
    with pytest.raises(ValueError, match="must be 'auto', 'native' or 'numpy' with Project"):
        Learner(Exponential(), Squared(), Implicit(), Project(300), backend="trees")
    with pytest.raises(ValueError, match="at most 4096"):
        Learner(Gaussian(), Squared(), Implicit(), Project(5000))


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, -1.0])
def test_an_inverse_that_cannot_be(value):
    """It is made anew at once, however young: its diagonal is finite and positive."""
    inverse = Inverse()
    inverse.matrix = np.eye(3)
    assert not inverse.worn(0, np.eye(3))
    inverse.matrix[1, 1] = value
    assert inverse.worn(0, np.eye(3))
