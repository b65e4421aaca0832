"""Sparse rows: the bits of dense ones, for every part that takes them; memory in proportion to the non-zeros."""

import itertools
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from parts import agree, assert_same, compiled, cut, examples, facts, label, rounding, size_of, stream, widened

from gossamer import Learner, _checks
from gossamer._sparse import SparseRows, shared_columns, sparse_rows, stack
from gossamer.budgets import Merge, Nystrom, Project, Smallest
from gossamer.kernels import Additive, Gaussian, Kernel, Laplace, Linear, Matern, Polynomial
from gossamer.losses import Hinge, Squared
from gossamer.rules import Gradient, Implicit, Newton

SINGLE = [kernel for kernel in examples("kernel") if kernel.takes_sparse() and kernel.resolve(np.eye(3)) == kernel]
KERNELS = [*SINGLE, 0.5 * Gaussian(0.4) + Polynomial(2), Gaussian(0.7) * Linear(), Gaussian(1e7)]
OTHERS = [kernel for kernel in examples("kernel") if not kernel.takes_sparse()]


def sparse_stream(loss, rows, seed, features=12, dtype=np.float64):
    """Rows that are mostly zeros, one of them wholly, and targets."""
    X, y = stream(loss, rows, seed, features, dtype)
    X[np.random.default_rng(seed).uniform(size=X.shape) < 0.7] = 0.0
    X[7] = 0.0
    return X, y


def dense(state):
    """A state with its points as arrays."""
    made = {name: getattr(state, name) for name in ("points", "dropped_points")}
    return state.replace(**{name: rows.toarray() if hasattr(rows, "toarray") else rows for name, rows in made.items()})


def as_arrays(found):
    return {name: value.toarray() if sp.issparse(value) else value for name, value in found.items()}


def learn_csr(learner, X, y, cuts):
    """The scores of a stream learned in batches of sparse rows, of several formats."""
    ends, formats = [0, *cuts, len(X)], itertools.cycle([sp.csr_array, sp.coo_matrix, sp.csc_array, sp.csr_matrix])
    batches = [slice(a, b) for a, b in itertools.pairwise(ends)]
    return widened([learner.learn(form(X[part]), cut(y, part)) for part, form in zip(batches, formats, strict=False)])


def test_which_kernels_take_sparse_rows():
    """Those of products and differences, and what is made of them; not a subclass that computes something else."""
    assert {type(kernel) for kernel in SINGLE} >= {Linear, Polynomial, Gaussian, Laplace, Matern}

    class Shifted(Gaussian):
        def __call__(self, A, B):
            return super().__call__(A, B) + A[:, :1] @ B[:, :1].T

    for kernel in [Shifted(1.0), Gaussian(1.0) + Shifted(1.0), 2.0 * Shifted(1.0), Additive(Matern()), *OTHERS]:
        assert not kernel.takes_sparse()
    assert not Learner(Gaussian(1.0), Hinge(), Implicit(), Nystrom(4)).takes_sparse


@pytest.mark.parametrize("kernel", KERNELS, ids=label)
def test_kernels(kernel: Kernel):
    """A kernel of sparse rows is that of the same rows as arrays, whatever the distances."""
    X, _ = sparse_stream(Hinge(), 90, 0)
    for factor, tolerance in ((1.0, 1e-10), (1e4, 1e-6)):
        A, B = (SparseRows.of(sp.csr_array(factor * rows)) for rows in (X[:70], X[60:]))
        expected = kernel(A.toarray(), B.toarray())
        np.testing.assert_allclose(kernel(A, B), expected, tolerance, tolerance * np.abs(expected).max())
        np.testing.assert_allclose(kernel.diag(A), kernel.diag(A.toarray()), 1e-12)


@pytest.mark.parametrize("number", range(len(KERNELS)), ids=lambda number: label(KERNELS[number]))
def test_every_combination(number):
    """Sparse rows in any split give the bits of dense ones, with every loss, rule and budget in turn; NumPy agrees."""
    kernel = KERNELS[number]
    together = itertools.product(*(examples(kind, one_each=True) for kind in ("loss", "rule", "budget")))
    together = [parts for parts in together if agree(*parts, kernel) and not parts[2].space]
    for i, parts in enumerate(together[number % 20 :: 20]):
        loss, budget = parts[0], parts[2]
        X, y = sparse_stream(loss, 41, seed=i, dtype=np.float32 if i % 5 == 4 else np.float64)
        plain, whole, split, rows = (Learner(kernel, *parts, average=i % 3 == 2) for _ in range(4))
        if not compiled(*parts):
            continue
        plain = Learner(kernel, *parts, average=i % 3 == 2, backend="native")
        expected = plain.learn(X, y)
        for learner, cuts in ((whole, ()), (split, (1, 14, 15, 29)), (rows, range(1, 41))):
            assert np.array_equal(learn_csr(learner, X, y, cuts), expected)
            assert learner.backend == "native"
            assert sp.issparse(learner.points)
            assert_same(dense(learner.state()), dense(plain.state()))
            assert_same(as_arrays(facts(learner)), facts(plain))
        for average in (False, True)[: 1 + (i % 3 == 2)]:
            assert np.array_equal(whole.score(sp.csr_array(X), average), plain.score(X, average))
        slow = Learner(kernel, *parts, backend="numpy")
        near = max(1e-7, rounding(budget)) if X.dtype == np.float64 else 1e-2
        if X.dtype == np.float64:
            scores = learn_csr(slow, X, y, (14, 29))
            np.testing.assert_allclose(scores, expected, rtol=near, atol=near * size_of(expected), err_msg=str(slow))
            assert slow.backend == "numpy"


@pytest.mark.parametrize("kernel", [Gaussian(0.3), Linear(), Matern(1.5)], ids=label)
def test_variance(kernel):
    """The variance of a second-order rule, before each row and of rows that come."""
    X, y = sparse_stream(Squared(), 80, 3)
    plain, sparse = (Learner(kernel, "squared", Newton(noise=0.1), Project(12)) for _ in range(2))
    assert all(map(np.array_equal, sparse.learn_with_variance(sp.csr_array(X), y), plain.learn_with_variance(X, y)))
    for part in (slice(None), slice(5), slice(3, 4)):
        assert np.array_equal(sparse.variance(sp.csr_array(X[part])), plain.variance(X[part]))
    slow = Learner(kernel, "squared", Newton(noise=0.1), Project(12), backend="numpy")
    slow.learn(sp.csr_array(X), y)
    np.testing.assert_allclose(slow.variance(sp.csr_array(X)), plain.variance(X), atol=1e-7)


def test_merged_points():
    """`Merge` makes points between two: they have the columns of both, compiled and in NumPy."""
    X, y = sparse_stream(Hinge(), 120, 4)
    parts = Gaussian(0.3), Hinge(), Gradient(rate=0.5, reg=0.01), Merge(6)
    plain, sparse, slow = Learner(*parts), Learner(*parts), Learner(*parts, backend="numpy")
    expected = plain.learn(X, y)
    assert np.array_equal(learn_csr(sparse, X, y, (1, 50, 51)), expected)
    assert np.array_equal(sparse.points.toarray(), plain.points)
    np.testing.assert_allclose(slow.learn(sp.csr_array(X), y), expected, atol=1e-9)
    np.testing.assert_allclose(slow.points.toarray(), plain.points, atol=1e-9)


def test_dense_rows_and_sparse_rows_meet():
    """A learner that began with sparse rows takes dense ones, one row too, and gives the same."""
    X, y = sparse_stream(Hinge(), 60, 5)
    plain, sparse = (Learner(Gaussian(0.3), Hinge(), Implicit(), Smallest(10)) for _ in range(2))
    expected = plain.learn(X, y)
    found = [sparse.learn(sp.csr_array(X[:20]), y[:20]), sparse.learn(X[20:40], y[20:40])]
    found.append([sparse.learn_one(sp.csr_array(X[t : t + 1]) if t % 2 else X[t], y[t]) for t in range(40, 60)])
    assert np.array_equal(np.concatenate(found), expected)
    assert sparse.score_one(X[3]) == sparse.score_one(sp.csr_array(X[3:4])) == plain.score_one(X[3])
    with pytest.raises(TypeError, match="The 'X' parameter of Learner must be dense here, not sparse"):
        plain.learn(sp.csr_array(X), y)


def test_states():
    """A state goes on to the bit, pickled and restored, and so does one whose points are wider."""
    X, y = sparse_stream(Hinge(), 90, 6)
    learner = Learner(Gaussian(0.3), Hinge(), Implicit(), Project(12), average=True)
    learner.learn(sp.csr_array(X[:60]), y[:60])
    other = pickle.loads(pickle.dumps(learner))
    wide = Learner(Gaussian(0.3), Hinge(), Implicit(), Project(12), average=True)
    wide.restore(learner.state().padded(10**9))
    rest = sp.csr_array(X[60:])
    expected = learner.learn(rest, y[60:])
    assert np.array_equal(other.learn(rest, y[60:]), expected)
    assert_same(dense(other.state()), dense(learner.state()))
    padded = sp.csr_array((rest.data, rest.indices, rest.indptr), shape=(30, 10**9))
    assert np.array_equal(wide.learn(padded, y[60:]), expected)


def test_memory():
    """Points take room for their non-zeros, also when most of them have been replaced, and columns may be far apart."""
    rng = np.random.default_rng(7)
    learner = Learner(Gaussian(0.5), Hinge(), Implicit(), Smallest(16))
    for start in range(0, 4000, 500):
        columns = rng.integers(0, 2**31 - 1, size=(500, 5))
        rows = sp.csr_array((rng.normal(size=2500), columns.ravel(), np.arange(0, 2501, 5)), shape=(500, 2**31 - 1))
        learner.learn(rows, np.where(np.arange(start, start + 500) % 2, 1.0, -1.0))
    assert learner.state().nbytes < 16 * 200
    assert learner.points.nnz <= 16 * 5


# ------------------------------------------------------------------------------------------------------- bad rows


def raw_csr(starts, columns, values, shape):
    """A CSR matrix as it is, without SciPy's checks."""
    rows = sp.csr_matrix(shape)
    rows.indptr, rows.indices, rows.data = (np.asarray(part) for part in (starts, columns, values))
    return rows


BAD = {
    "nan": (raw_csr([0, 1, 2], [0, 3], [1.0, np.nan], (2, 12)), r"finite.*nan in row 1, column 3"),
    "infinite": (raw_csr([0, 1, 2], [0, 3], [1.0, np.inf], (2, 12)), "finite.*inf in row 1"),
    "huge": (raw_csr([0, 1], [0], [1e200], (1, 12)), r"small enough for k\(x, x\)"),
    "negative": (raw_csr([0, 1, 2], [0, -1], [1.0, 1.0], (2, 12)), "columns from 0 to 11.*-1 in row 1"),
    "beyond": (raw_csr([0, 1, 2], [0, 12], [1.0, 1.0], (2, 12)), "columns from 0 to 11.*12 in row 1"),
    "falling": (raw_csr([0, 2, 1], [0, 1], [1.0, 1.0], (2, 12)), "row starts that rise"),
    "past the end": (raw_csr([0, 1, 9], [0, 1], [1.0, 1.0], (2, 12)), "row starts that rise"),
    "narrow": (sp.csr_array((2, 11)), "12 features, as in the rows before"),
    "wide": (sp.csr_array((2, 2**31)), "12 features, as in the rows before"),
    "empty": (sp.csr_array((0, 12)), "at least one row"),
    "complex": (sp.csr_array((2, 12), dtype=complex), "real numbers"),
}
if sp.coo_array(np.ones(12)).ndim == 1:  # of older versions of SciPy it has two dimensions
    BAD["flat"] = sp.coo_array(np.ones(12)), "of shape"


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_change_nothing(name):
    """Whatever is wrong with sparse rows is an error that says so, and the learner stays as it was."""
    X, y = sparse_stream(Hinge(), 30, 8)
    learner = Learner(Polynomial(2), Hinge(), Implicit(), Smallest(10))
    learner.learn(sp.csr_array(X), y)
    before, (rows, words) = dense(learner.state()), BAD[name]
    for call in (lambda: learner.learn(rows, np.ones(rows.shape[0])), lambda: learner.score(rows)):
        with pytest.raises(ValueError, match=f"(?s)^The 'X' parameter of Learner must be .*{words}"):
            call()
    assert_same(dense(learner.state()), before)


def test_the_first_rows_may_be_too_wide():
    with pytest.raises(ValueError, match="at most 2147483647 features"):
        Learner(Linear(), Hinge(), Implicit()).learn(sp.csr_array((1, 2**31)), [1.0])


def test_any_order_of_columns():
    """Columns in any order, twice the same and explicit zeros mean what they mean to SciPy; X stays as it was."""
    X = raw_csr([0, 4, 6], [5, 2, 5, 7, 1, 0], [1.0, 3.0, 1.0, 0.0, 2.0, 1.0], (2, 12))
    before = [part.copy() for part in (X.indptr, X.indices, X.data)]
    first, second = (Learner(Gaussian(0.3), Hinge(), Implicit()) for _ in range(2))
    scores = first.learn(X, [1.0, -1.0])
    assert all(map(np.array_equal, (X.indptr, X.indices, X.data), before))
    assert np.array_equal(scores, second.learn(sp.csr_array(X.toarray()), [1.0, -1.0]))
    assert_same(dense(first.state()), dense(second.state()))
    assert (first.points.data != 0).all()


# --------------------------------------------------------------------------------------------------------- the rows


def test_sparse_rows():
    """Slices, places and stacks of `SparseRows` are those of arrays."""
    X, _ = sparse_stream(Hinge(), 20, 9)
    rows = sparse_rows("test", sp.csr_array(X))
    for place in (slice(3, 9), slice(15, 99), slice(9, 3), slice(None), slice(0, 20, 3), np.array([4, 4, 0]), 7):
        expected = X[place].reshape(-1, X.shape[1])
        assert np.array_equal(rows[place].toarray(), expected)
        assert rows[place].shape == expected.shape
    assert np.array_equal(stack([rows[:5], rows[5:5], rows[5:]]).toarray(), X)
    assert [len(row) for row in rows] == [1] * 20
    np.testing.assert_allclose(rows.variance(), X.var())
    nothing = rows[7:8]
    assert shared_columns(nothing, nothing)[0].toarray().tolist() == [[0.0]]


def test_other_kernels_refuse():
    """A learner that keeps all features says so."""
    with pytest.raises(_checks.ParameterError, match="sparse"):
        Learner(Additive(Matern()), Hinge(), Implicit()).learn(sp.csr_array(np.eye(3)), np.ones(3))
