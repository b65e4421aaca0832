"""Laws of every kernel, of those that users write, and of the compiled values."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from parts import backends, examples, fitted, is_native, label, learn_rows, stream, user_diagonal, user_kernel, width
from scipy.special import gamma, kv

from gossamer import Learner
from gossamer.budgets import Smallest
from gossamer.kernels import (
    Additive,
    Brownian,
    Custom,
    Exponential,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matern,
    Polynomial,
    Spline,
    as_kernel,
    check_kernel,
)
from gossamer.losses import Hinge, Squared
from gossamer.rules import Gradient, Implicit

KERNELS = examples("kernel")
NATIVE = [kernel for kernel in KERNELS if "scale" not in repr(kernel) and is_native(kernel)]
every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=label)


def compiled(kernel, A, S, backend="native"):
    """k(A, S) by the compiled code: a learner that holds one point of S with coefficient 1 scores the rows of A."""
    columns = []
    for s in S:
        learner = Learner(kernel, Squared(), Gradient(1.0, 0.0, shorten=False), backend=backend)
        learner.learn(s[None, :], [1.0])
        assert learner.coefs.tolist() in ([1.0], [])  # nothing is stored where k(s, s) = 0
        columns.append(learner.score(A))
    return np.array(columns).T


@every_kernel
@given(seed=st.integers(0, 10**6), rows=st.integers(1, 20), features=st.integers(1, 6), power=st.floats(-2, 2))
def test_symmetric_and_positive(kernel, seed, rows, features, power):
    """k(A, B) = k(B, A)', k(A, A) has no negative eigenvalue, and diag is its diagonal."""
    rng = np.random.default_rng(seed)
    A, B = (10**power * fitted(kernel, rng.normal(size=(n, features))) for n in (rows, 7))
    A[rng.random(rows) < 0.2] = 0.0
    kernel = kernel.resolve(A)
    gram = kernel(A, A)
    scale = np.abs(gram).max() + 1e-300
    np.testing.assert_allclose(kernel(A, B), kernel(B, A).T, rtol=1e-9, atol=1e-12 * np.abs(kernel(A, B)).max())
    np.testing.assert_allclose(kernel.diag(A), gram.diagonal(), rtol=1e-9, atol=1e-12 * scale)
    assert np.linalg.eigvalsh(gram).min() >= -1e-9 * scale * rows
    check_kernel(kernel, A)


@every_kernel
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_type_is_kept(kernel, dtype):
    """Values and diagonal have the type of the rows and the shape (n, m), also for no rows."""
    A, B = (fitted(kernel, np.random.default_rng(1).normal(size=(n, 3)).astype(dtype)) for n in (5, 4))
    kernel = kernel.resolve(A)
    assert kernel(A, B).dtype == dtype
    assert kernel(A, B).shape == (5, 4)
    assert kernel(A[:0], B).shape == (0, 4)
    assert kernel.diag(A).shape == (5,)
    if is_native(kernel):
        assert kernel.diag(A).dtype == dtype


def test_formulas():
    """Each kernel is its formula, written out for one pair."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 1, 4))
    dot, d1, d2 = float((a * b).sum()), float(np.abs(a - b).sum()), float(np.linalg.norm(a - b))
    r = [math.sqrt(2 * nu) * d2 / 0.7 for nu in (0.5, 1.5, 2.5)]
    for kernel, value in (
        (Linear(), dot),
        (Polynomial(3, 0.5, 2.0), (0.5 * dot + 2.0) ** 3),
        (Gaussian(0.7), math.exp(-0.7 * d2**2)),
        (Laplace(0.7), math.exp(-0.7 * d1)),
        (Matern(0.5, 0.7), math.exp(-r[0])),
        (Matern(1.5, 0.7), math.exp(-r[1]) * (1 + r[1])),
        (Matern(2.5, 0.7), math.exp(-r[2]) * (1 + r[2] + r[2] ** 2 / 3)),
    ):
        assert kernel(a, b)[0, 0] == pytest.approx(value, rel=1e-12)
        assert compiled(kernel, a, b)[0, 0] == pytest.approx(value, rel=1e-12)


def integral(p, q, z):
    """Of (p - t)^z (q - t)^z over [0, min(p, q)], exactly: a polynomial of degree 2z by Gauss's rule."""
    nodes, weights = np.polynomial.legendre.leggauss(z + 1)
    a = min(p, q)
    t = a * (nodes + 1) / 2
    return float(weights @ ((p - t) ** z * (q - t) ** z)) * a / 2


def test_formulas_of_one_number():
    """So are those of one number, by every machine; the splines by the integral that defines them."""
    for p, q in ((0.7, 1.9), (1.9, 0.7), (0.4, 0.4), (0.0, 1.1), (2.5, 0.01)):
        spline = {z: sum((p * q) ** r for r in range(z + 1)) + integral(p, q, z) for z in range(9)}
        assert spline[1] == pytest.approx(1 + p * q + min(p, q) ** 2 * max(p, q) / 2 - min(p, q) ** 3 / 6, rel=1e-12)
        for kernel, value in (
            (Exponential(0.7), math.exp(-abs(p - q) / 0.7)),
            (Brownian(), min(p, q)),
            *((Spline(z), value) for z, value in spline.items()),
        ):
            a, b = np.array([[p]]), np.array([[q]])
            assert kernel(a, b)[0, 0] == pytest.approx(value, rel=1e-12)
            for backend in ("native", "trees"):
                stored = kernel.diag(b)[0] > 0
                assert compiled(kernel, a, b, backend)[0, 0] == pytest.approx(value if stored else 0.0, rel=1e-12)
    x, s = np.array([[0.5, 1.2]]), np.array([[1.5, 0.3]])
    kernel = Additive((Brownian(), Exponential(), Spline(0), Linear()), (1.0, 2.0, 3.0, 4.0), ((0, 1),), ((1, 0),))
    value = 0.5 + 2 * math.exp(-0.9) + 3 * (1 + 0.45) + 4 * 0.7 * -1.2
    for values in (kernel(x, s), compiled(kernel, x, s), compiled(kernel, x, s, "trees")):
        assert values[0, 0] == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("p", range(17))
def test_matern_of_every_order(p):
    """Matern p + 1/2 is 2^(1 - nu) / Gamma(nu) r^nu K_nu(r)."""
    r, nu = np.array([1e-6, 0.1, 0.7, 2.0, 5.0, 30.0]), p + 0.5
    value = 2 ** (1 - nu) / gamma(nu) * r**nu * kv(nu, r)
    S, A = np.zeros((1, 1)), 2.0 * r[:, None] / math.sqrt(2 * nu)
    kernel = Matern(nu, 2.0)
    np.testing.assert_allclose(kernel(A, S)[:, 0], value, rtol=1e-12)
    for backend in ("native", "trees"):
        np.testing.assert_allclose(compiled(kernel, A, S, backend)[:, 0], value, rtol=1e-12)


def test_algebra():
    """Kernels add, multiply and scale pointwise, on either side, with functions too."""
    A, B = np.random.default_rng(3).normal(size=(2, 6, 3))
    g, p = Gaussian(0.5), Polynomial(2)
    for kernel, value in (
        (g + p, g(A, B) + p(A, B)),
        (g * p, g(A, B) * p(A, B)),
        (2 * g, 2 * g(A, B)),
        (g * 0.25 + 3.0 * (p * g), 0.25 * g(A, B) + 3 * p(A, B) * g(A, B)),
        (g + user_kernel, g(A, B) + user_kernel(A, B)),
    ):
        np.testing.assert_allclose(kernel(A, B), value, rtol=1e-12)
        np.testing.assert_allclose(kernel.diag(A), kernel(A, A).diagonal(), rtol=1e-12)
    assert (g + p).program(3) is not None
    assert (g + user_kernel).program(3) is None
    for factor in (0, -1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="The 'factor' parameter of Scaled must be a number in"):
            factor * g


@pytest.mark.parametrize("kernel", [Gaussian(), Laplace(), 2 * Gaussian() + Linear(), Gaussian() * Laplace()], ids=str)
def test_scale(kernel):
    """gamma="scale" divides by features and variance (Laplace: deviation) of ten rows or more, also inside sums."""
    X = 3 * np.random.default_rng(4).normal(size=(50, 4))
    fixed = {Gaussian(): Gaussian(1 / (4 * X.var())), Laplace(): Laplace(1 / (4 * X.std()))}
    settled = kernel.resolve(X)
    assert "scale" in repr(kernel)
    assert "scale" not in repr(settled)
    assert settled.resolve(X[:20]) == settled
    if kernel in fixed:
        assert settled == fixed[kernel]
        assert kernel.resolve(X[:9]).gamma == 0.25
        assert kernel.resolve(np.ones((20, 4))).gamma == 0.25


# ----------------------------------------------------------------------------------------------------- compiled values


@pytest.mark.parametrize("kernel", NATIVE, ids=label)
@pytest.mark.parametrize("features", [1, 2, 3, 4, 5, 8, 17, 129, 300])
def test_compiled_values(kernel, features):
    """Compiled kernel values are the NumPy ones, at every width, in both float types, also at 0 and at equal points."""
    if width(kernel, features) < features:
        return  # a kernel of one number, seen with features = 1
    rng = np.random.default_rng(features)
    A, S = (fitted(kernel, rng.normal(size=(n, features))) / math.sqrt(features) for n in (29, 3))
    A[3], A[4], S[2] = S[0], 0.0, 0.0
    kernel = kernel.resolve(A)
    values = kernel(A, S)
    scale = np.abs(values).max()
    stored = kernel.diag(S) > 0
    for backend in backends(kernel, features):
        double = compiled(kernel, A, S, backend)
        np.testing.assert_allclose(double[:, stored], values[:, stored], rtol=1e-11, atol=1e-13 * scale)
        single = compiled(kernel, A.astype(np.float32), S.astype(np.float32), backend)
        np.testing.assert_allclose(single[:, stored], values[:, stored], rtol=1e-4, atol=1e-5 * scale)


def exact(kernel, A, S):
    """Kernel values from differences in long double, where products would lose digits."""
    difference = A[:, None, :].astype(np.longdouble) - S[None, :, :].astype(np.longdouble)
    d2, d1 = (difference**2).sum(axis=2), np.abs(difference).sum(axis=2)
    if isinstance(kernel, Gaussian):
        return np.exp(-kernel.gamma * d2).astype(float)
    if isinstance(kernel, Laplace):
        return np.exp(-kernel.gamma * d1).astype(float)
    r = math.sqrt(3) / kernel.length * np.sqrt(d2)
    return (np.exp(-r) * (1 + r)).astype(float)


@pytest.mark.parametrize("make", [Gaussian, Laplace, lambda gamma: Matern(1.5, 1 / gamma)], ids=["G", "L", "M"])
@pytest.mark.parametrize("mean", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("gamma", [1e-12, 1e-6, 1e-3, 0.1, 10.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_far_from_zero(make, mean, gamma, dtype):
    """Rows of mean 1e6 and spread 1, tiny and huge gamma: native and NumPy lose no digits that the rows have."""
    rng = np.random.default_rng(5)
    A, S = ((mean + rng.normal(size=(n, 3))).astype(dtype) for n in (40, 5))
    A[7] = S[1]
    kernel, values = make(gamma), exact(make(gamma), A, S)
    atol = 3e-5 if dtype == np.float32 else 1e-10  # the rows themselves are rounded, that is not counted here
    native = compiled(kernel, A, S)
    assert native[7, 1] == pytest.approx(1.0, abs=atol)
    np.testing.assert_allclose(native, values, rtol=0, atol=atol)
    # NumPy makes squared distances of products about the mean: they have the rounding of the spread, times gamma
    np.testing.assert_allclose(kernel(A, S), values, rtol=0, atol=atol + 50 * gamma * np.finfo(dtype).eps)


def test_never_above_one_nor_below_zero():
    """Values of kernels of a distance lie in [0, 1], at any distance, without a warning."""
    A = np.concatenate([np.random.default_rng(6).normal(size=(30, 2)) * 10.0**k for k in range(-8, 9, 2)])
    for kernel in (Gaussian(0.5), Gaussian(1e6), Laplace(2.0), Matern(0.5), Matern(2.5)):
        for values in (kernel(A, A[::40]), compiled(kernel, A, A[::40])):
            assert values.min() >= 0
            assert values.max() <= 1 + 1e-15


# -------------------------------------------------------------------------------------------------------- user kernels


def shared_letters(A, B):
    counts = [np.array([[word.count(letter) for letter in "abcdef"] for word in side], float) for side in (A, B)]
    return counts[0] @ counts[1].T


def test_kernels_of_words():
    """A function over strings learns, in one call and word by word, as the same kernel over count vectors."""
    rng = np.random.default_rng(7)
    words = ["".join(rng.choice(list("abcdef"), 8)) for _ in range(90)]
    y = np.where([word.count("a") > word.count("b") for word in words], 1.0, -1.0)
    counts = np.array([[word.count(letter) for letter in "abcdef"] for word in words], float)
    make = lambda kernel: Learner(kernel, Hinge(), Implicit(C=0.1), Smallest(20))  # noqa: E731
    whole, single, vectors = make(shared_letters), make(shared_letters), make(Linear())
    scores = whole.learn(words, y)
    np.testing.assert_allclose(scores, learn_rows(single, words, y), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scores, vectors.learn(counts, y), rtol=1e-9, atol=1e-12)
    assert set(whole.points) <= set(words)
    assert whole.points == single.points
    assert whole.backend == "native loop, numpy kernel"
    np.testing.assert_allclose(whole.score(words), vectors.score(counts), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.score_one(words[0]), vectors.score_one(counts[0]), rtol=1e-9, atol=1e-12)


def test_kernels_of_objects():
    """Points may be anything: sets, or rows of numbers that are to be taken as objects."""
    sets = [frozenset(np.flatnonzero(row).tolist()) for row in np.random.default_rng(8).random((40, 9)) < 0.4]
    y = np.where([3 in s for s in sets], 1.0, -1.0)
    learner = Learner(lambda A, B: np.array([[1.0 + len(a & b) for b in B] for a in A]), Hinge(), Implicit(C=0.5))
    learner.learn(sets, y)
    assert (np.sign(learner.score(sets)) == y).mean() > 0.8
    rows = [(1.0, 2.0), (3.0, 4.0)]
    kernel = Custom(lambda A, B: np.array([[float(a == b) for b in B] for a in A]), objects=True)
    taken = Learner(kernel, Hinge(), Implicit())
    taken.learn(rows, [1, -1])
    assert taken.points == rows


@pytest.mark.parametrize("kernel", [user_kernel, Custom(user_kernel, user_diagonal)], ids=["function", "Custom"])
def test_kernels_in_numpy(kernel):
    """A function over rows learns what the same built-in kernel does."""
    X, y = stream(Hinge(), 300, seed=9)
    others = (Hinge(), Implicit(C=0.3, reg=0.01), Smallest(30))
    user, built_in = Learner(kernel, *others), Learner(Polynomial(2, 0.25), *others)
    np.testing.assert_allclose(user.learn(X, y), built_in.learn(X, y), rtol=1e-8, atol=1e-9)
    assert np.array_equal(user.points, built_in.points)


BAD = {
    "not symmetric": (lambda A, B: np.exp(A @ B.T + A[:, :1]), "is not symmetric"),
    "not positive": (lambda A, B: A @ B.T - 5.0, "is not positive semidefinite|< 0"),
    "indefinite": (lambda A, B: 1 - (A[:, :1] - B[:, :1].T) ** 2, "is not positive semidefinite"),
    "transposed": (lambda A, B: np.ones((len(B), len(A) + 1)), "must return shape"),
    "vector": (lambda A, B: np.ones(len(A)), "must return shape"),
    "number": (lambda A, B: 1.0, "must return shape"),
    "nan": (lambda A, B: np.where(A[:, :1] > 1, np.nan, A @ B.T), "must return finite numbers"),
    "words": (lambda A, B: np.full((len(A), len(B)), "k"), "must return an array of numbers"),
    "none": (lambda A, B: None, "must return"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_kernels_are_named(name):
    """check_kernel, one call, and row by row: each finds the fault and names the kernel; nothing is learned from it."""
    function, message = BAD[name]
    X, y = stream(Squared(), 60, seed=10)
    message = f"The kernel Custom .*({message})"
    with pytest.raises(ValueError, match=message):
        check_kernel(Custom(function), X)
    with pytest.raises(ValueError, match=message):
        Learner(function, Squared(), Implicit()).learn(X, y)
    learner = Learner(function, Squared(), Implicit())
    with pytest.raises(ValueError, match=message):
        learn_rows(learner, X, y)
    assert len(learner.coefs) == learner.steps < 40


def test_bad_diagonal_is_named():
    """A diagonal that is not k(x, x) is found, and so is one of the wrong shape."""
    X = np.random.default_rng(11).normal(size=(5, 2))
    with pytest.raises(ValueError, match=r"has diag .* but k\(x, x\) ="):
        check_kernel(Custom(user_kernel, lambda A: 2 * user_diagonal(A)), X)
    with pytest.raises(ValueError, match="must return shape"):
        check_kernel(Custom(user_kernel, lambda A: np.ones((len(A), 1))), X)


def test_names_and_functions():
    """A kernel is given as itself, by name, or as a function."""
    assert as_kernel("matern") == Matern()
    assert as_kernel(Gaussian(2.0)) == Gaussian(2.0)
    assert as_kernel(user_kernel) == Custom(user_kernel)
    assert isinstance(as_kernel("gaussian"), Kernel)
