"""Laws of the calibrated links: the compiled twin agrees, batches do not matter, units do not matter, nothing diverges,
bad values are refused, and probabilities of a made world come out."""

import math

import numpy as np
import pytest

from gossamer.certainty import Link, SoftmaxLink
from gossamer.certainty.links import LARGEST_SLOPE, check_link

RNG = np.random.default_rng(0)


def binary(rows=600, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=rows)
    return scores, rng.random(rows) < 1 / (1 + np.exp(1 - 3 * scores))


def many(rows=400, classes=5, seed=0):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(rows, classes))
    p = np.exp(2 * scores)
    y = (p.cumsum(axis=1) < rng.random(rows)[:, None] * p.sum(axis=1)[:, None]).sum(axis=1)
    scores[: rows // 4, 3:] = -np.inf  # two classes come later
    scores[:3, 1:] = -np.inf
    scores[0] = -np.inf
    return scores, y


CASES = [(Link, binary), (SoftmaxLink, many)]


@pytest.mark.parametrize(("kind", "make"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_equals_numpy(kind, make, weighted):
    scores, y = make()
    weights = RNG.choice([0.0, 0.5, 1.0, 3.0], len(y)) if weighted else None
    got, after = kind().learn_all(scores, y, weights)
    link, expected = kind(), []
    for t in range(len(y)):
        expected.append(link.probability(scores[t]))
        link = link.learn(scores[t], y[t], 1.0 if weights is None else weights[t])
    np.testing.assert_allclose(got, np.array(expected), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(after, link, rtol=1e-10)
    np.testing.assert_allclose(after.probabilities(scores), [link.probability(f) for f in scores], rtol=1e-10)


@pytest.mark.parametrize(("kind", "make"), CASES)
def test_a_batch_equals_its_rows(kind, make):
    scores, y = make()
    whole, after = kind().learn_all(scores, y)
    link, parts = kind(), []
    for start in range(0, len(y), 7):
        p, link = link.learn_all(scores[start : start + 7], y[start : start + 7])
        parts.append(p)
    assert np.array_equal(whole, np.concatenate(parts))
    assert after == link


@pytest.mark.parametrize(("kind", "make"), CASES)
@pytest.mark.parametrize("unit", [2.0**-300, 2.0**40, 2.0**300])
def test_units_of_the_scores_do_not_matter(kind, make, unit):
    scores, y = make()
    assert np.array_equal(kind().learn_all(scores, y)[0], kind().learn_all(unit * scores, y)[0])


def test_many_classes_of_two_are_two_classes_without_an_offset():
    scores, y = binary()
    wide = np.column_stack([-scores / 2, scores / 2])
    link = Link()._replace(offsets=1e30)
    after = link.learn_all(scores, y)[1]
    assert after.widened().probabilities(wide)[:, 1] == pytest.approx(after._replace(offset=0.0).probabilities(scores))
    first = link.widened()
    p, _ = first._replace(slopes=4.0).learn_all(wide[:1], y[:1])
    assert p[0, 1] == pytest.approx(link.probability(scores[0]))


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("forgetting", [0.9, 0.9995, 1.0])
def test_nothing_diverges(separable, forgetting):
    scores = np.linspace(-1, 1, 20001) if separable else np.where(np.arange(20001) % 50 == 0, 1e200, 1e-200)
    y = scores > 0 if separable else np.arange(20001) % 3 == 0
    p, link = Link(forgetting).learn_all(RNG.permutation(scores) if separable else scores, y)
    assert np.isfinite(link).all()
    assert 0 < link.slope <= LARGEST_SLOPE
    assert abs(link.offset) < 20
    assert ((p > 0) & (p < 1)).all()
    wide = np.column_stack([-scores, scores, 0 * scores])
    p, link = SoftmaxLink(forgetting).learn_all(wide, y)
    assert np.isfinite(link).all()
    assert np.allclose(p.sum(axis=1), 1)


def test_a_step_never_overshoots():
    """One row's loss does not grow by learning it again, from any link and for any score."""
    rng = np.random.default_rng(1)
    for _ in range(300):
        scores, y = rng.standard_cauchy(20), rng.random(20) < rng.random()
        link = Link(1.0).learn_all(scores, y)[1]
        f, second = float(rng.standard_cauchy() * 10), bool(rng.random() < 0.5)
        after = link.learn(f, second)._replace(total=link.total, squares=link.squares)
        worse = math.log(after.probability(f) / link.probability(f)) if second else None
        if worse is None:
            worse = math.log((1 - after.probability(f)) / max(1 - link.probability(f), 1e-300))
        assert worse >= -1e-12


def test_probabilities_of_a_made_world():
    scores, y = binary(20_000)
    p, _ = Link().learn_all(scores, y)
    truth = 1 / (1 + np.exp(1 - 3 * scores))
    loss = -np.log(np.where(y, p, 1 - p))
    least = -np.log(np.where(y, truth, 1 - truth))
    assert (loss - least)[:500].mean() < 0.02
    assert (loss - least).mean() < 0.002
    scores, y = many(8000)
    known = np.isfinite(scores[np.arange(len(y)), y])
    p, _ = SoftmaxLink().learn_all(scores, y)
    truth = np.exp(2 * scores[known]) / np.exp(2 * scores[known]).sum(axis=1, keepdims=True)
    rows = np.arange(known.sum())
    assert np.mean(np.log(truth[rows, y[known]]) - np.log(p[known][rows, y[known]])) < 0.003


def test_unknown_classes_have_no_probability_and_teach_nothing():
    link = SoftmaxLink().learn([1.0, 0.0, -math.inf], 0)
    assert link.learn([1.0, 0.0, -math.inf], 2) == link
    assert link.learn([1.0, -math.inf, -math.inf], 0) == link
    assert link.probability([1.0, -math.inf, 0.5])[1] == 0
    assert link.probability([-math.inf] * 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, "1", None])
def test_bad_scores_are_refused(bad):
    with pytest.raises(ValueError, match="'f' parameter"):
        Link().learn(bad, True)
    with pytest.raises(ValueError, match="'f' parameter"):
        SoftmaxLink().probability([0.0, bad])
    if isinstance(bad, float):
        for call in (lambda: Link().learn_all([0.0, bad], [0, 1]), lambda: Link().probabilities(np.array([bad]))):
            with pytest.raises(ValueError, match="'f' parameter"):
                call()
        with pytest.raises(ValueError, match="'f' parameter"):
            SoftmaxLink().learn_all([[0.0, bad]], [0])


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_bad_weights_are_refused(weight):
    for learn in (lambda: Link().learn(1.0, True, weight), lambda: Link().learn_all([1.0], [1], [weight])):
        with pytest.raises(ValueError, match="'weight' parameter"):
            learn()


@pytest.mark.parametrize("field", Link._fields)
@pytest.mark.parametrize("bad", [math.nan, -1.0, 1e9, 1, None])
def test_links_of_files_are_checked(field, bad):
    check_link(None, "link", Link())
    if (field, bad) in [("offset", -1.0), ("total", 1e9), ("squares", 1e9), ("slopes", 1e9), ("offsets", 1e9)]:
        return
    if (field, bad) == ("offset", 1e9):
        return
    with pytest.raises(ValueError, match="'link' parameter"):
        check_link(None, "link", Link()._replace(**{field: bad}))
