"""The budget on the page of CONTRIBUTING, exactly as it stands there, outside the package: with every rule and loss."""

import copy
import itertools
import math
import pickle
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from parts import agree, assert_same, cut, examples, label, label_kernel, stream, widened

from gossamer import Learner, store
from gossamer.kernels import Gaussian, Linear
from gossamer.losses import Hinge

PAGE = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()
#: The module that the page would be.
OUTSIDE = types.ModuleType("contributing_page")
sys.modules[OUTSIDE.__name__] = OUTSIDE
for code in re.findall(r"```python\n(.*?)```", PAGE.split("### All four in a learner")[0], re.DOTALL):
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(OUTSIDE))

BUDGET = OUTSIDE.Expressible(7)
RULES = examples("rule", one_each=True)
SOME = [*dict.fromkeys([*examples("loss", True), Hinge()])]
LOSSES = {rule: [loss for loss in SOME if agree(loss, rule)] for rule in RULES}


def made(loss, rule, kernel=Gaussian(0.5), **options):  # noqa: B008
    return Learner(kernel, loss, rule, BUDGET, **options)


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_norm_and_limit(rule):
    """With every rule and loss: never more points than its size, and the norm is that of the kernel values."""
    assert LOSSES[rule]
    for loss in LOSSES[rule]:
        X, y = stream(loss, 60, seed=1)
        learner = made(loss, rule)
        scores = learner.learn(X, y)
        assert learner.backend == "numpy"
        assert np.isfinite(scores[np.isfinite(scores)]).all()
        assert 0 < len(learner.points) <= 7
        coefs, gram = np.atleast_2d(learner.coefs), Gaussian(0.5)(learner.points, learner.points)
        joint = label_kernel(loss, len(coefs)) @ coefs
        exact = math.sqrt(max(0.0, float(np.sum((coefs @ gram) * joint))))
        assert learner.norm == pytest.approx(exact, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_batches_and_copies(rule):
    """In any split into batches the same; restored, copied and pickled learners go on as if they had never stopped."""
    for loss in LOSSES[rule]:
        X, y = stream(loss, 60, seed=2)
        whole = made(loss, rule, average=True)
        scores = whole.learn(X, y)
        learner, got = made(loss, rule, average=True), []
        for start, end in itertools.pairwise((0, 1, 2, 17, 40, 41, 60)):
            got.append(learner.learn(X[start:end], cut(y, slice(start, end))))
            fresh = made(loss, rule, average=True)
            fresh.restore(learner.state())
            before = learner.state()
            learner = [fresh, copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))][start % 3]
            assert_same(learner.state(), before)
        np.testing.assert_allclose(widened(got), scores, rtol=1e-6, atol=1e-8)
        assert np.array_equal(learner.births, whole.births)
        mean = whole.score(X, average=True)
        np.testing.assert_allclose(learner.score(X, average=True), mean, rtol=1e-6, atol=1e-8)


def test_steps_in_the_span_lose_nothing():
    """A linear model of two features needs two points: with them, the budget is as good as none."""
    X, y = stream(Hinge(), 80, seed=3, features=2)
    rule = next(rule for rule in RULES if label(rule).startswith("Implicit"))
    free = Learner(Linear(), Hinge(), rule)
    bound = made(Hinge(), rule, Linear())
    np.testing.assert_allclose(bound.learn(X, y), free.learn(X, y), rtol=1e-6, atol=1e-8)
    assert len(bound.points) == 2
    assert bound.discarded == pytest.approx(0.0, abs=1e-6)


def test_files_have_no_classes_of_others():
    """A file names classes of the package only."""
    X, y = stream(Hinge(), 20, seed=4)
    rule = next(rule for rule in RULES if label(rule).startswith("Implicit"))
    learner = made(Hinge(), rule)
    learner.learn(X, y)
    with pytest.raises(ValueError, match="budget"):
        store.dumps(learner)
