"""Laws of the expansion: lazy scaling, the tracked norm, the averaged hypothesis, sample weights."""

import dataclasses
import math

import numpy as np
import pytest
from parts import agree, assert_close, cut, decay, examples, facts, label, label_kernel, rule_for, stream

from gossamer import Learner
from gossamer.budgets import Fourier, Merge, Oldest, Smallest
from gossamer.kernels import Custom, Gaussian, Laplace, Polynomial
from gossamer.losses import EpsilonInsensitive, Hinge, Squared, SquaredHinge
from gossamer.rules import ROMMA, SVMD, Adatron, Example, Gradient, Implicit, PassiveAggressive, Perceptron

RULES = examples("rule")
#: Those whose f is a sum over points, and one of each kind.
BUDGETS = [budget for budget in examples("budget") if not isinstance(budget, Fourier)]
FIRST = examples("budget", one_each=True)
#: One setting of each loss, the plain hinge that some rules insist on, and all losses with several classes.
LABEL = [loss for loss in examples("loss") if loss.target == "label"]
SOME = [*dict.fromkeys([*examples("loss", True), Hinge(), *LABEL])]
BACKENDS = pytest.mark.parametrize("backend", ["auto", "numpy"])


def losses_of(rule):
    """Some losses that go with a rule. (test_batches has all of them, compiled against NumPy.)"""
    return [loss for loss in SOME if agree(loss, rule)]


class Eager:
    """The algorithm as on paper: a matrix of coefficients (classes, rows), all of them multiplied in every round, every
    norm and product from the Gram matrix, no budget. ``ids`` say which rows are the same example."""

    def __init__(self, kernel, loss, rule, X, y, weights=None, ids=None):
        n, self.many = len(X), loss.target == "label"
        known = (loss.classes or 0) if self.many else 1
        outputs = max(known, int(y.max()) + 1) if self.many else 1
        gram, diag, rates, self.labels = kernel(X, X), kernel.diag(X), rule.rates(1, n), label_kernel(loss, outputs)
        f, v = np.zeros((outputs, n)), np.zeros((outputs, n))
        self.offset, self.level, self.updates, rate, slots = 0.0, loss.level, 0, rule.rate, {}
        self.scores, self.history, self.offsets = np.full((n, outputs), -np.inf), [], []

        def product(one, other):
            return float(np.sum((one @ gram) * (self.labels @ other)))

        for t in range(n):
            self.history.append(f.copy())
            self.offsets.append(self.offset)
            at_x, trace = self.labels @ f @ gram[t], v @ gram[t]
            self.scores[t, :known] = at_x[:known] + self.offset
            target, weight = 0.0 if y is None else y[t], 1.0 if weights is None else weights[t]
            known = max(known, int(target) + 1) if self.many else 1
            slot = slots.get(t if ids is None else int(ids[t]), t)
            slot = slot if f[:, slot].any() else t
            step = rule.step(
                loss.at(self.level),
                Example(
                    at_x[:known] if self.many else at_x[0], self.offset, target, diag[t], rates[t], weight,
                    product(f, f) if rule.needs_norm else math.nan, self.updates, f[0, slot],
                    trace[:known] if self.many else trace[0], product(f, v) if rule.needs_trace else math.nan, rate,
                ),
            )  # fmt: skip
            if step.trace is not None:
                v, rate = step.trace.keep * v - step.trace.drift * f, step.trace.rate
                v[:known, t] = step.trace.coefficient
            f *= step.keep
            f[:known, slot] += step.coefficient
            slots[t if ids is None else int(ids[t])] = slot
            self.offset, self.level = step.offset, step.level
            # SVMD's trace may move where an implicit step leaves f alone
            moved = step.trace is not None and rule.meta > 0 and np.any(step.trace.coefficient)
            self.updates += int(moved or np.any(step.coefficient))
        self.coefs, self.norm = f, math.sqrt(max(0.0, product(f, f)))

    def mean_score(self, kernel, X, Z):
        scores = kernel(Z, X) @ (self.labels @ np.mean(self.history, axis=0)).T + np.mean(self.offsets)
        return scores if self.many else scores[:, 0]

    def flat_scores(self):
        return self.scores if self.many else self.scores[:, 0]


def examples_that_return(rule, loss, rows, seed):
    """A stream; for a rule whose examples may come back, one in which they do, with their ids."""
    X, y = stream(loss, rows, seed)
    if not rule.needs_ids:
        return X, y, None
    ids = np.random.default_rng(seed).integers(0, rows // 3, rows)
    return X[ids], cut(y, ids), ids


@BACKENDS
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.keeps_norm], ids=label)
def test_lazy_is_eager(rule, backend):
    """Lazily scaled coefficients give the scores, coefficients, offset, level and norm of the eager algorithm, and with
    average=True the explicit mean of all hypotheses f_1 ... f_t, also of the offset."""
    for loss in losses_of(rule):
        X, y, ids = examples_that_return(rule, loss, 45, seed=1)
        learner = Learner(Gaussian(0.5), loss, rule, average=True, backend=backend)
        scores, eager = learner.learn(X, y, ids=ids), Eager(Gaussian(0.5), loss, rule, X, y, ids=ids)
        np.testing.assert_allclose(scores, eager.flat_scores(), rtol=1e-9, atol=1e-9)
        coefs = np.zeros_like(eager.coefs)
        coefs[:, learner.births - 1] = learner.coefs
        np.testing.assert_allclose(coefs, eager.coefs, rtol=1e-9, atol=1e-12)
        assert learner.offset == pytest.approx(eager.offset, rel=1e-9, abs=1e-12)
        assert learner.norm == pytest.approx(eager.norm, rel=1e-7, abs=1e-7)
        assert learner.updates == eager.updates
        mean = eager.mean_score(Gaussian(0.5), X, X[:9])
        np.testing.assert_allclose(learner.score(X[:9], average=True), mean, rtol=1e-8, atol=1e-9)
        if loss.adapts:
            assert learner.level == pytest.approx(eager.level, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rule", [Gradient(0.5, 1.0), Gradient(0.1, 0.01), Implicit(C=1.0, reg=1.0)], ids=label)
def test_a_million_steps(rule, dtype):
    """After a million steps of strong decay the model is that of its last steps, computed eagerly."""
    X, y = stream(Squared(), 1_000_000, seed=2, features=1, dtype=dtype)
    keep = 1 - rule.rate * rule.reg if isinstance(rule, Gradient) else 1 / (1 + rule.rate * rule.reg)
    tail = math.ceil(math.log(1e-14) / math.log(keep))
    size = 64 if keep < 0.9 else 256
    learner = Learner(Gaussian(1.0), Squared(), rule, Oldest(size))
    scores = learner.learn(X, y)
    assert np.isfinite(scores).all()
    assert learner.steps == 1_000_000
    gram = Gaussian(1.0)(X[-2 * size :].astype(float), X[-2 * size :].astype(float))
    coefs = np.zeros(2 * size)
    coefs[learner.births - 1_000_000 + 2 * size - 1] = learner.coefs
    for t in range(2 * size - min(tail, size // 2), 2 * size):  # each coefficient from the score it was made from
        step = rule.step(Squared(), Example(scores[t - 2 * size], 0.0, float(y[t - 2 * size]), 1.0, rule.rate))
        assert coefs[t] == pytest.approx(step.coefficient * keep ** (2 * size - 1 - t), rel=1e-9)
        assert step.keep == pytest.approx(keep)
    rtol = 1e-5 if dtype == np.float32 else 1e-9
    np.testing.assert_allclose(learner.score(X[-5:]), gram[-5:] @ coefs, rtol, rtol)


def test_a_million_decays_in_closed_form():
    """A term's coefficient after n rounds without another update is c * keep^n, folded back on the way."""
    X, y = np.zeros((1_000_000, 1)), np.zeros(1_000_000)
    y[0] = 1.0
    learner = Learner(Gaussian(1.0), EpsilonInsensitive(0.5), Gradient(1e-3, 0.5), average=True)
    scores = learner.learn(X, y)
    assert learner.updates == 1
    expected = 1e-3 * (1 - 5e-4) ** np.arange(999_999)
    np.testing.assert_allclose(scores[1:], expected, rtol=1e-8, atol=1e-300)
    assert learner.score(X[:1], average=True)[0] == pytest.approx(expected.sum() / 1e6, rel=1e-9)


@pytest.mark.parametrize(
    ("budget", "backend"),
    [*((budget, "auto") for budget in BUDGETS), *((budget, "numpy") for budget in BUDGETS if budget in FIRST)],
    ids=label,
)
def test_tracked_norm(budget, backend):
    """The norm kept through every step and removal equals the recomputed one, with the label kernel between classes."""
    tracks = budget.limit is not None or not budget.drops
    if not tracks:
        with pytest.raises(ValueError, match="at most 4096 points where track_norm is set"):
            Learner(Gaussian(0.5), Hinge(), Gradient(), budget, track_norm=True)
    pairs = [(loss, rule) for loss in SOME for rule in examples("rule", one_each=True) if agree(loss, rule, budget)]
    for i, (loss, rule) in enumerate(pairs):
        X, y = stream(loss, 70, seed=i)
        X[20:25] = X[10:15]
        kernel = Gaussian(0.5) if isinstance(budget, Merge) else Polynomial(2) if i % 2 else Laplace(0.5)
        for track_norm in {tracks, False} if backend == "auto" else {tracks}:
            learner = Learner(kernel, loss, rule, budget, track_norm=track_norm, backend=backend)
            for part in (slice(0, 30), slice(30, 31), slice(31, 70)):
                learner.learn(X[part], cut(y, part))
                coefs, gram = np.atleast_2d(learner.coefs), kernel(learner.points, learner.points)
                labels = label_kernel(loss, len(coefs))
                norm2 = np.sum((coefs @ gram) * (labels @ coefs))
                slack = 1e-9 * (1 + float(np.sum((np.abs(coefs) @ np.abs(gram)) * (np.abs(labels) @ np.abs(coefs)))))
                assert learner.norm**2 == pytest.approx(norm2, rel=1e-9, abs=slack)


@pytest.mark.parametrize(
    ("loss", "rule", "budget", "rows"),
    [
        (Squared(), Gradient(0.3, 1e-3), Smallest(50), 25_000),
        (Hinge(), ROMMA(), Oldest(5), 3000),  # grows f by a factor in every step, and with it the error of its norm
        (Hinge(), ROMMA(aggressive=True), Oldest(1), 3000),
        (Hinge(), SVMD(), Oldest(20), 3000),
        (SquaredHinge(), Perceptron(), Oldest(age=4), 300),  # a norm of 1e7 that leaves nothing behind
    ],
    ids=label,
)
def test_tracked_norm_over_many_updates(loss, rule, budget, rows):
    """Rounding does not add up: through the refresh of the norm after 10,000 updates, and where terms cancel."""
    X, y = stream(loss, rows, seed=3)
    for kernel in (Gaussian(0.5), Polynomial(2)):
        if isinstance(loss, Squared) and isinstance(kernel, Polynomial):
            continue  # diverges
        learner = Learner(kernel, loss, rule, budget, track_norm=True)
        for start in range(0, rows, rows // 50):
            part = slice(start, start + rows // 50)
            learner.learn(X[part], y[part])
            coefs, gram = learner.coefs, kernel(learner.points, learner.points)
            slack = 1e-10 * float(np.abs(coefs) @ np.abs(gram) @ np.abs(coefs))
            assert learner.norm**2 == pytest.approx(coefs @ gram @ coefs, rel=1e-9, abs=slack)


@pytest.mark.parametrize("kernel", [Gaussian(0.5), Custom(lambda A, B: Gaussian(0.5)(A, B))], ids=["native", "python"])
@pytest.mark.parametrize("budget", BUDGETS, ids=label)
def test_average_with_a_budget(budget, kernel):
    """The mean counts what the budget dropped; "sparse" leaves out exactly that."""
    X, y = stream(Hinge(), 60, seed=5)
    Z, rule = stream(Hinge(), 7, seed=6)[0], rule_for(budget, Gradient(0.5, 0.3, fit_intercept=True), Hinge())
    kernel = Gaussian(0.5) if isinstance(budget, Merge) else kernel
    plain, full, sparse = (Learner(kernel, Hinge(), rule, budget, average=a) for a in (False, True, "sparse"))
    total, sums, offsets = np.zeros(7), {}, 0.0
    for t in range(60):
        total += kernel(Z, plain.points) @ plain.coefs + plain.offset if t else 0.0
        offsets += plain.offset
        for birth, coef in zip(plain.births.tolist(), plain.coefs, strict=True):
            sums[birth] = sums.get(birth, 0.0) + coef
        for learner in (plain, full, sparse):
            learner.learn(X[t : t + 1], y[t : t + 1])
    np.testing.assert_allclose(full.score(Z, average=True), total / 60, rtol=1e-9, atol=1e-12)
    if isinstance(budget, Merge):  # a point that was merged begins anew, and has the birth of the younger
        return
    kept = [sums.get(birth, 0.0) for birth in sparse.births.tolist()]
    expected = (kernel(Z, sparse.points) @ kept + offsets) / 60
    np.testing.assert_allclose(sparse.score(Z, average=True), expected, rtol=1e-9, atol=1e-12)
    assert np.array_equal(full.score(Z), plain.score(Z))


def test_average_must_be_asked_for():
    """The mean cannot be scored by a learner that did not keep it."""
    learner = Learner(Gaussian(0.5), Hinge(), Implicit())
    learner.learn(np.zeros((1, 1)), [1.0])
    with pytest.raises(ValueError, match="The 'average' parameter of Learner must be True or 'sparse'"):
        learner.score(np.zeros((1, 1)), average=True)


@BACKENDS
@pytest.mark.parametrize("rule", RULES, ids=label)
def test_weight_zero_is_decay(rule, backend):
    """An example of weight 0 is scored, its class is known from now on, f decays, and nothing else moves."""
    for loss in losses_of(rule):
        X, y = stream(loss, 12, seed=7)
        learner = Learner(Gaussian(0.5), loss, rule, backend=backend)
        learner.learn(X[:10], cut(y, slice(0, 10)))
        before, expected = facts(learner), learner.score(X[10:11])
        scores = learner.learn(X[10:11], cut(y, slice(10, 11)), [0.0])
        assert np.ravel(scores)[: expected.size] == pytest.approx(np.ravel(expected), rel=1e-12)
        assert (np.ravel(scores)[expected.size :] == -np.inf).all()
        after, coefs = facts(learner), np.zeros_like(learner.coefs)
        coefs[: len(before["coefs"])] = decay(learner) * before["coefs"]  # and zeros for a class that came
        np.testing.assert_allclose(after["coefs"], coefs, rtol=1e-12)
        for name in ("coefs", "norm", "steps", "mistakes"):
            before.pop(name), after.pop(name)
        assert_close(after, before, rtol=1e-15)


@BACKENDS
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.keeps_norm], ids=label)
def test_weight_is_a_factor_of_the_loss(rule, backend):
    """Weight w learns as w times the loss: against the eager algorithm, and where C weighs the loss as C times w."""
    rng = np.random.default_rng(8)
    weights = rng.choice([0.3, 1.0, 2.5], 30)
    weighs = isinstance(rule, (Implicit, PassiveAggressive, Adatron)) or (isinstance(rule, SVMD) and rule.C is not None)
    for loss in losses_of(rule):
        X, y, ids = examples_that_return(rule, loss, 30, seed=9)
        learner = Learner(Gaussian(0.5), loss, rule, backend=backend)
        eager = Eager(Gaussian(0.5), loss, rule, X, y, weights, ids)
        np.testing.assert_allclose(learner.learn(X, y, weights, ids=ids), eager.flat_scores(), rtol=1e-9, atol=1e-9)
        if weighs:
            one = Learner(Gaussian(0.5), loss, rule, backend=backend)
            other = Learner(Gaussian(0.5), loss, dataclasses.replace(rule, C=2.5 * rule.C), backend=backend)
            scores = one.learn(X, y, np.full(30, 2.5), ids=ids)
            np.testing.assert_allclose(scores, other.learn(X, y, ids=ids), rtol=1e-9, atol=1e-9)
