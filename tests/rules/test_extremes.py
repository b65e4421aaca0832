"""Laws at the ends of the range of numbers: nothing but a ValueError ends a step, and small weights do little."""

import dataclasses
import warnings

import numpy as np
import pytest
from parts import agree, compiled, examples, label, stream

from gossamer import Learner
from gossamer.budgets import Oldest
from gossamer.kernels import Gaussian

ENDS = (1e-320, 1e-200, 1e200)
RULES = examples("rule")


def losses_for(rule):
    """The first example of every loss that goes with the rule."""
    return {type(loss): loss for loss in reversed(examples("loss")) if agree(loss, rule, Oldest(8))}.values()


def at_the_ends(part):
    """The part with each of its numbers in turn as small and as large as it may be."""
    for name in (field.name for field in dataclasses.fields(part) if "float" in str(field.type)):
        for value in ENDS:
            try:
                yield dataclasses.replace(part, **{name: value})
            except ValueError:
                continue


def learn(loss, rule, weights=None, backend="numpy"):
    """The scores of a learner that drops points; None if the parts or their numbers are refused."""
    X, y = stream(loss, 24, 3)
    ids = np.arange(24) % 12 if rule.needs_ids else None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # numbers of 1e200 may overflow: that is told elsewhere
        try:
            learner = Learner(Gaussian(0.4), loss, rule, Oldest(8), backend=backend)
            return learner.learn(X, y, weights, ids=ids)
        except ValueError:
            return None


@pytest.mark.parametrize("rule", examples("rule", one_each=True), ids=label)
def test_numbers_at_the_ends(rule):
    """Every number of a rule, and of every loss with it, may be tiny or huge: no step divides by 0 or overflows."""
    for loss in losses_for(rule):
        for parts in [(loss, one) for one in at_the_ends(rule)] + [(other, rule) for other in at_the_ends(loss)]:
            learn(*parts)
            if compiled(*parts):
                learn(*parts, backend="native")


@pytest.mark.parametrize("rule", RULES, ids=label)
def test_weights_near_zero(rule):
    """Rows of a weight that underflows on its way are learned by both backends alike, and leave the scores finite."""
    weights = np.where(np.arange(24) % 3, 1.0, 5e-324)
    for loss in losses_for(rule):
        scores = learn(loss, rule, weights)
        assert scores is not None
        assert not np.isnan(scores).any()
        if compiled(loss, rule):
            np.testing.assert_allclose(learn(loss, rule, weights, "native"), scores, rtol=1e-9, atol=1e-9)
