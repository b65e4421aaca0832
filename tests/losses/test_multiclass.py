"""Several classes: every algorithm equals its naive twin, every exact step is optimal, and the laws of labels hold."""

import itertools

import naive
import numpy as np
import pytest
from naive import Run
from test_algorithms import BACKENDS, BUDGETS, KERNELS, compare, near, stream

from gossamer import Learner, taxonomy
from gossamer.kernels import Gaussian, Linear, Polynomial
from gossamer.losses import Multiclass, Softmax
from gossamer.rules import SVMD, Gradient, Implicit, Perceptron

N = 4
PLAIN = 1.0 - np.eye(N)
COST = np.array([[0.0, 0.5, 2.0, 1.0], [0.7, 0.0, 1.5, 0.3], [2.0, 1.0, 0.0, 0.6], [1.2, 0.4, 0.9, 0.0]])
TREE = taxonomy({"a": ["p", "q"], "b": {"c": ["r"], "s": None}})
FACTOR = np.random.default_rng(0).normal(size=(N, N))
LABELS = FACTOR @ FACTOR.T / N + 0.1 * np.eye(N)


def cases():
    """(name, loss, rule, naive step, label kernel)."""
    losses = {
        "plain": (Multiclass(), PLAIN, None),
        "margin": (Multiclass(margin=0.4), 0.4 * PLAIN, None),
        "cost": (Multiclass(COST), COST, None),
        "labels": (Multiclass(COST, LABELS), COST, LABELS),
        "tree": (Multiclass(TREE.cost, TREE.label_kernel), np.array(TREE.cost), TREE.label_kernel),
        "given": (Multiclass(classes=N), PLAIN, None),
        "softmax": (Softmax(), "softmax", None),
        "softmax-given": (Softmax(N), "softmax", None),
    }
    meta = {"rate": 0.1, "reg": 0.05, "meta": 0.3, "memory": 0.9}
    for name, (loss, cost, labels) in losses.items():
        yield f"norma-{name}", loss, Gradient(0.2, 0.1), naive.norma(cost, 0.2, 0.1), labels
        rule = Implicit(0.6, 1.5, 0.04, "inverse_sqrt")
        yield f"ilk-{name}", loss, rule, naive.ilk(cost, 0.6, 1.5, 0.04, True), labels
        if isinstance(loss, Multiclass):
            literal = Multiclass(loss.cost, loss.label_kernel, loss.classes, "runner_up", loss.margin)
            paper = naive.ilk(cost, 0.5, 1.0, 0.2, exact=False)
            yield f"runner_up-{name}", literal, Implicit(0.5, reg=0.2), paper, labels
        if labels is None:
            yield f"svmd-{name}", loss, SVMD(**meta), naive.svmd(cost, **meta), None
        if name in ("cost", "softmax"):  # an exact step makes equal rivals of classes with equal costs
            yield f"svmd-ilk-{name}", loss, SVMD(**meta, C=0.7), naive.svmd(cost, **meta, C=0.7), None
    yield "perceptron", Multiclass(margin=0.0), Perceptron(), naive.perceptron(0 * PLAIN), None


CASES = {name: parts for name, *parts in cases()}


def labelled(kind, seed, rows=40):
    """A stream of four classes that come one by one."""
    X, smooth = stream(kind, seed, rows)
    return X, np.digitize(smooth, [-0.6, 0.0, 0.6]) % (1 + np.arange(rows) // 3).clip(max=N)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", CASES)
def test_equals_the_naive_one(name, kernel):
    """Scores, coefficients of each class, norm and trace, on three kinds of stream, with budgets, in both backends."""
    loss, rule, step, labels = CASES[name]
    arriving = loss.classes is None
    for seed, (kind, budgets) in enumerate(BUDGETS.items()):
        X, y = labelled(kind, seed)
        gram = KERNELS[kernel][1](X, X)
        for ours, theirs in budgets:
            run = Run(gram, y, step, theirs, N, labels, arriving)
            for backend in BACKENDS:
                learner = Learner(KERNELS[kernel][0], loss, rule, ours, track_norm=True, backend=backend)
                compare(learner, X, y, run, (kind, ours, backend))
                near(learner.coefs.sum(axis=0), np.zeros(len(learner.births)), "sum over classes", 1.0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_pairs(backend):
    """A label kernel is the joint kernel k(x, x') k_Y(y, y') on pairs (x, y): scores from an explicit Gram of pairs."""
    X, y = labelled("stationary", 3)
    learner = Learner(Gaussian(0.7), Multiclass(COST, LABELS), Implicit(0.6), backend=backend)
    learner.learn(X, y)
    pairs = list(itertools.product(range(len(learner.births)), range(N)))
    points, new = learner.points, X[:5] + 0.3
    k = naive.gaussian(new, points, 0.7)
    joint = [[k[r, i] * LABELS[j, c] for i, j in pairs] for r in range(5) for c in range(N)]
    weights = np.array([learner.coefs[j, i] for i, j in pairs])
    near(learner.score(new), (np.array(joint) @ weights).reshape(5, N), "scores")
    k = naive.gaussian(points, points, 0.7)
    between = [[k[i, m] * LABELS[j, c] for m, c in pairs] for i, j in pairs]
    near(learner.norm**2, weights @ np.array(between) @ weights, "norm")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["ilk-plain", "ilk-labels", "ilk-softmax", "norma-tree"])
def test_average(name, backend):
    """The mean of all hypotheses, with classes that come."""
    loss, rule, step, labels = CASES[name]
    X, y = labelled("drifting", 4)
    kernel, gram = KERNELS["polynomial"][0], KERNELS["polynomial"][1](X, X)
    for ours, theirs in BUDGETS["stationary"] + BUDGETS["drifting"]:
        run = Run(gram, y, step, theirs, N, labels, loss.classes is None)
        learner = Learner(kernel, loss, rule, ours, average=True, backend=backend)
        learner.learn(X, y)
        near(learner.score(X, average=True), gram @ (run.labels @ run.mean).T, ours)


# --------------------------------------------------------------------------------------------------------- single steps


def draws(count, seed):
    """Scores, a class, and a kernel value and a weight of any size."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n = int(rng.integers(2, 9))
        kappa, weight = 10.0 ** rng.uniform(-6, 6, size=2)
        yield rng, rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2), int(rng.integers(n)), float(kappa), float(weight)


def structure(rng, n, kind):
    """A cost matrix and a label kernel: none, positive definite, or of low rank."""
    cost = rng.uniform(0, 3, size=(n, n)) * (1 - np.eye(n)) if rng.random() < 0.7 else None
    half = rng.normal(size=(n, {"none": 0, "full": n, "low": max(1, n // 2)}[kind]))
    return Multiclass(cost, half @ half.T if kind != "none" else None, n)


@pytest.mark.parametrize("kind", ["none", "full", "low"])
def test_exact_steps_have_no_gap(kind):
    """Primal and dual objective meet, for huge and tiny k(x, x) and weight; the coefficients sum to 0."""
    for rng, p, y, kappa, weight in draws(400, 5):
        loss = structure(rng, len(p), kind)
        # with a singular label kernel the ascent is slow where the step is far from small
        weight = min(weight, 10 / kappa) if kind == "low" else weight
        a = loss.implicit_many(p, y, kappa, weight)
        size = weight * max(1.0, np.abs(p).max() + 3.0)
        assert -1e-12 * size <= loss.gap(p, y, kappa, weight, a) <= 1e-10 * size, (p, y, kappa, weight, loss)
        assert abs(a.sum()) <= 1e-12 * np.abs(a).max()
        assert 0 <= a[y] <= weight * (1 + 1e-12)
        assert np.delete(a, y).max() <= 0


@pytest.mark.parametrize("kind", ["none", "full"])
def test_exact_steps_are_the_naive_ones(kind):
    """The projection and the pairwise ascent find what trying every face of the simplex finds."""
    for rng, p, y, _, _ in draws(150, 6):
        if len(p) > 5:
            continue
        kappa, weight = (float(v) for v in 10.0 ** rng.uniform(-1.5, 1.5, size=2))
        loss = structure(rng, len(p), kind)
        cost = [loss.costs(i, len(p)) for i in range(len(p))]
        a = naive.simplex(p, y, kappa * loss.labels(len(p)), weight, cost)
        near(loss.implicit_many(p, y, kappa, weight), a, (p, y, kappa, weight), weight * max(1.0, 1 / kappa))


def test_softmax_steps():
    """a = weight (e_y - softmax(p + kappa a)), to rounding, for any size of kappa and weight."""
    for _, p, y, kappa, weight in draws(400, 7):
        a = Softmax().implicit_many(p, y, kappa, weight)
        z = p + kappa * a
        shares = np.exp(z - z.max()) / np.exp(z - z.max()).sum()
        slack = 1e-12 * weight * max(1.0, np.abs(p).max())
        # the shares move by kappa times the rounding of a
        slack += weight * 1e-14 * kappa * np.abs(a).max()
        np.testing.assert_allclose(a, weight * (np.eye(len(p))[y] - shares), rtol=0, atol=slack)
        assert abs(a.sum()) <= 1e-12 * np.abs(a).max()


@pytest.mark.parametrize("backend", BACKENDS)
def test_softmax_far_from_right(backend):
    """A model that is sure and wrong moves by the weight and no more, however sure it is."""
    for x in (1.0, 5.0, 50.0, 1000.0):
        learner = Learner(Linear(), Softmax(2), Implicit(1.0), backend=backend)
        learner.learn([[1.0]], [0], [100.0])
        learner.learn([[x]], [1], [1e-4])
        moved = learner.coefs[1, 1]
        behind = float(np.ptp(learner.score([[x]])))
        near(moved, 1e-4 / (1 + np.exp(-behind)), x, 1e-4)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["ilk-cost", "ilk-labels", "ilk-softmax", "runner_up-cost"])
def test_any_scale(name, backend):
    """Rows of sizes from 0.01 to 100 in one stream: k(x, x) over eight orders of magnitude."""
    loss, rule, step, labels = CASES[name]
    X, y = labelled("drifting", 14)
    X *= 10.0 ** np.random.default_rng(15).uniform(-2, 2, size=(len(X), 1))
    run = Run(naive.polynomial(X, X, 1, 1.0, 0.0), y, step, None, N, labels, loss.classes is None)
    learner = Learner(Linear(), loss, rule, backend=backend)
    scores = learner.learn(X, y)
    near(scores, run.scores, "scores")
    near(learner.norm**2, run.norm2, "norm", max(1.0, run.norm2))


def test_two_classes_need_no_choice():
    """With two classes the paper's step is the exact one."""
    for rng, p, y, kappa, weight in draws(300, 8):
        cost = rng.uniform(0, 3, size=(2, 2)) * (1 - np.eye(2))
        half = rng.normal(size=(2, 2))
        for labels in (None, half @ half.T):
            one, other = (Multiclass(cost, labels, step=step) for step in ("exact", "runner_up"))
            steps = [loss.implicit_many(p[:2], y % 2, kappa, weight) for loss in (one, other)]
            near(*steps, (p[:2], y % 2, kappa, weight), max(np.abs(steps[1]).max(), 1e-12 * np.abs(p).max() / kappa))


# --------------------------------------------------------------------------------------------------------------- labels

RULES = [Gradient(0.3, 0.1), Implicit(0.6, reg=0.1), Perceptron(), SVMD(0.2, 0.05, 0.2)]


@pytest.mark.parametrize("rule", [Gradient(0.3, 0.1), Implicit(0.6, reg=0.1)], ids=lambda rule: type(rule).__name__)
@pytest.mark.parametrize("step", ["exact", "runner_up"])
def test_constant_in_the_label_kernel(step, rule):
    """Adding a constant to all entries of the label kernel changes nothing: coefficients sum to 0 over the classes."""
    X, y = labelled("stationary", 9)
    learners = [Learner(Polynomial(2), Multiclass(COST, LABELS + c, step=step), rule) for c in (0.0, 3.0)]
    scores = [learner.learn(X, y) for learner in learners]
    near(scores[1], scores[0], "scores")
    near(learners[1].coefs, learners[0].coefs, "coefs")
    near(learners[1].norm, learners[0].norm, "norm", 1.0)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: type(rule).__name__)
def test_relabelling(rule):
    """Classes by other numbers: the same scores in the other order, where no tie is broken by the number."""
    X, y = labelled("drifting", 10)
    order = np.array([2, 0, 3, 1])
    noise = np.random.default_rng(11).uniform(0, 0.5, size=(N, N)) * (1 - np.eye(N))
    kernels = (None,) if isinstance(rule, SVMD) else (None, LABELS)
    for cost, labels in itertools.product((PLAIN + noise, COST + noise), kernels):
        place = np.ix_(np.argsort(order), np.argsort(order))
        one = Learner(Gaussian(0.7), Multiclass(cost, labels), rule)
        other = Learner(Gaussian(0.7), Multiclass(cost[place], None if labels is None else labels[place]), rule)
        near(other.learn(X, order[y])[:, order], one.learn(X, y), "scores")
        near(other.coefs[order], one.coefs, "coefs")


@pytest.mark.parametrize("loss", [Multiclass, Softmax], ids=lambda loss: loss.__name__)
def test_one_class_is_no_problem(loss):
    """While one class is known nothing is learned; with the classes given the first example already is."""
    X = np.random.default_rng(12).normal(size=(6, 2))
    for rule in (Gradient(0.3, 0.1), Implicit(0.6), SVMD(0.3, 0.1)):
        for backend in BACKENDS:
            alone, given = (Learner(Gaussian(1.0), loss(classes=c), rule, backend=backend) for c in (None, 3))
            assert not alone.learn(X, np.zeros(6))[1:].any()
            assert alone.updates == 0 == len(alone.births)
            assert np.isneginf(Learner(Gaussian(1.0), loss(), rule).learn(X, [0, 0, 1, 0, 2, 1])[:5, 2]).all()
            assert given.learn(X, np.zeros(6)).shape == (6, 3)
            assert given.updates > 0


def test_given_and_arriving_classes_differ_by_definition():
    """A class given up front may be the rival before it was seen; from its first example on the same step is taken."""
    X, y = labelled("stationary", 13)
    arriving, given = (Learner(Gaussian(0.7), Multiclass(classes=c), Implicit(0.6)) for c in (None, N))
    first, second = arriving.learn(X, y), given.learn(X, y)
    late = np.flatnonzero(y == N - 1)[0]
    assert np.isneginf(first[: late + 1, N - 1]).all()
    assert np.isfinite(second).all()
    assert (second[: late + 1, N - 1] < 0).any()
    # one more example of a state in which all classes are known moves both in the same way
    again = Learner(Gaussian(0.7), Multiclass(classes=N), Implicit(0.6))
    again.restore(arriving.state())
    near(again.learn(X[:9], y[:9]), arriving.learn(X[:9], y[:9]), "scores")


# ---------------------------------------------------------------------------------------------------------------- trees


def test_tree_and_graph():
    """A nested dict and a networkx graph of the same tree give the same matrices, and weights count."""
    networkx = pytest.importorskip("networkx")
    tree = {"animal": {"bird": ["owl", "tit"], "cat": None}, "plant": {"oak": (), "elm": {}}}
    graph = networkx.DiGraph()

    def grow(name, below):
        for child in below or ():
            graph.add_edge(name, child)
            grow(child, below[child] if isinstance(below, dict) else None)

    grow("root", tree)
    one, other = taxonomy(tree), taxonomy(graph)
    assert one == other
    assert one.labels == ("owl", "tit", "cat", "oak", "elm")
    cost, kernel = np.array(one.cost), np.array(one.label_kernel)
    assert np.array_equal(cost, np.add.outer(kernel.diagonal(), kernel.diagonal()) - 2 * kernel)
    length = dict(networkx.all_pairs_shortest_path_length(graph.to_undirected()))
    assert all(cost[i, j] == length[a][b] for i, a in enumerate(one.labels) for j, b in enumerate(one.labels))
    assert np.linalg.eigvalsh(kernel).min() > -1e-12
    graph.edges["root", "animal"]["weight"] = 2.5
    weighted = np.array(taxonomy(graph).cost) - cost
    assert np.array_equal(weighted[0], [0.0, 0.0, 0.0, 1.5, 1.5])


@pytest.mark.parametrize(
    "tree", [{}, {"a": None}, {"a": ["x"], "b": ["x"]}, "abc", 3, {"a": 1}, {"a": "xy", "b": None}], ids=str
)
def test_bad_trees(tree):
    """No leaves, one leaf, the same leaf twice, or no tree: one sentence."""
    with pytest.raises(ValueError, match="The 'tree' parameter of taxonomy must be"):
        taxonomy(tree)


@pytest.mark.parametrize(
    "edges",
    [[], [(0, 1)], [(0, 1), (2, 1), (0, 3)], [(0, 1), (2, 3)], [(0, 1), (1, 0)], [(0, 1), (0, 2), (3, 4), (4, 3)]],
    ids=str,
)
def test_bad_graphs(edges):
    """Two parents, two roots, a cycle, a cycle beside the tree, or a single leaf: one sentence."""
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="The 'tree' parameter of taxonomy must be"):
        taxonomy(networkx.DiGraph(edges))
