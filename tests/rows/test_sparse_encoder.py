"""Wide texts come out sparse: with the bits of dense rows, through models and late labels."""

import tempfile

import numpy as np
import pytest
from scipy.sparse import issparse, vstack
from tables import make_frame

from gossamer import AutoRegressor, RowEncoder, SILKRegressor, pipeline
from gossamer.rows import Plan

FRAME = make_frame()
FOUND = RowEncoder().fit(FRAME).plan_


@pytest.mark.parametrize("width", [128, 4096])
def test_sparse_features_are_the_dense_ones(width):
    """CSR has the bits of the array, in any split; of itself it comes where texts are wide."""
    plan = Plan.of(FOUND)
    plan["text"].width = width
    dense = RowEncoder(plan, sparse=False)
    expected = np.vstack([dense.learn_transform(FRAME[:250]), dense.learn_transform(FRAME[250:])])
    sparse = RowEncoder(plan, sparse=True)
    found = vstack([sparse.learn_transform(FRAME[a:b]) for a, b in ((0, 1), (1, 300), (300, 400))])
    assert issparse(found)
    assert np.array_equal(found.toarray(), expected)
    assert np.array_equal(sparse.transform(FRAME).toarray(), dense.transform(FRAME))
    again = RowEncoder.from_bytes(sparse.to_bytes()).transform(FRAME)
    assert again.has_canonical_format
    assert np.array_equal(again.toarray(), dense.transform(FRAME))
    auto = RowEncoder(plan).learn_transform(FRAME)
    assert issparse(auto) == (width == 4096)
    if width == 4096:
        assert auto.data.nbytes + auto.indices.nbytes < 0.5 * expected.nbytes


@pytest.mark.parametrize("kernel", ["linear", "polynomial:degree=2", "gaussian:gamma=0.2"])
def test_models_of_wide_texts_are_sparse(kernel):
    """Pipelines, and their late labels in memory and in a file: the answers of dense rows, from sparse points."""
    y = FRAME["number"].to_numpy()

    def learn(sparse, spill=None):
        model = pipeline(RowEncoder({"text": "text:4096"}, sparse=sparse), SILKRegressor(kernel, C=0.1, budget=30))
        made = [model.predict_learn(FRAME[:200], y[:200])]
        model.keep_pending(spill=spill)
        made.append(model.predict(FRAME[200:], ids=np.arange(200, 400)))
        if spill is None:
            assert type(model).from_bytes(model.to_bytes()).to_bytes() == model.to_bytes()
            model = type(model).from_bytes(model.to_bytes())
        order = np.random.default_rng(0).permutation(np.arange(200, 400))
        made += [model.learn_labels(part, y[part]) for part in np.split(order, 5)]
        return model, np.concatenate([*made, model.predict(FRAME)])

    _, expected = learn(False)
    with tempfile.TemporaryDirectory() as folder:
        for model, found in (learn("auto"), learn("auto", f"{folder}/rows.sqlite")):
            assert issparse(model[-1].support_vectors_)
            assert len(model.pending_) == 0
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_a_learner_that_scales_makes_them_dense():
    for scale in (True, False):
        made = []
        for sparse in (False, "auto"):
            rows = RowEncoder({"text": "text:4096"}, sparse=sparse).learn_transform(FRAME[:60])
            made.append(AutoRegressor(budget=16, scale=scale).predict_learn(rows, FRAME["number"][:60]))
        np.testing.assert_allclose(made[1], made[0], rtol=1e-9, atol=1e-9)
