"""OnlineScaler: the compiled recurrences are the NumPy ones, any split gives the same bits, nothing looks ahead."""

import itertools
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, strategies as st
from parts import scaler_options
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from gossamer import OnlineScaler
from gossamer.estimators.scaler import LEARNED, scale_rows

SETTINGS = [
    {"forget": forget, "with_mean": centre, "with_std": divide}
    for forget, centre, divide in itertools.product([0.0, 0.01, 0.9], [True, False], [True, False])
]
SHAPED = [{"forget": forget, **options} for forget in (0.0, 0.01) for options in scaler_options()]
settings = pytest.mark.parametrize("setting", SETTINGS, ids=str)
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def rows(count=200, dtype=np.float64, seed=0):
    """Features of different sizes, one far from 0 and one that never changes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 5)) * [1.0, 1e-3, 1e4, 1.0, 0.0] + [0.0, 5.0, 0.0, 1e3, 7.0]
    return X.astype(dtype)


def facts(scaler):
    return {name: np.asarray(vars(scaler)[name]).tolist() for name in LEARNED if name in vars(scaler)}


@settings
@dtypes
def test_core_equals_numpy(setting, dtype):
    """The C++ loop makes the same bits as its specification."""
    X, scaler = rows(dtype=dtype), OnlineScaler(**setting)
    got = scaler.learn_transform(X)
    zeros = np.zeros(X.shape[1])
    expected, mean, squares, weight = scale_rows(
        X, zeros, zeros, 0.0, 1.0 - setting["forget"], setting["with_mean"], setting["with_std"]
    )
    assert got.dtype == dtype
    assert np.array_equal(got, expected)
    assert np.array_equal(scaler.mean_, mean)
    assert np.array_equal(scaler.squares_, squares)
    assert scaler.weight_ == weight
    assert scaler.n_seen_ == len(X)


@settings
def test_statistics_are_weighted_means(setting):
    """Mean and variance are those of the rows weighted by (1 - forget)^age; without forgetting, StandardScaler's."""
    X, scaler = rows(), OnlineScaler(**setting).fit(rows())
    weights = (1.0 - setting["forget"]) ** np.arange(len(X))[::-1]
    mean = np.average(X, axis=0, weights=weights)
    np.testing.assert_allclose(scaler.mean_, mean, rtol=1e-11, atol=1e-9)
    variance = np.average((X - mean) ** 2, axis=0, weights=weights)
    np.testing.assert_allclose(scaler.var_, variance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(scaler.scale_**2, scaler.var_, rtol=1e-14)
    if setting == SETTINGS[0]:
        np.testing.assert_allclose(scaler.transform(X), StandardScaler().fit_transform(X), rtol=1e-7, atol=1e-7)


@given(st.lists(st.integers(1, 79), max_size=6), st.sampled_from(SETTINGS + SHAPED), st.booleans())
def test_any_split(cuts, setting, single):
    """learn_transform in any batches, down to single rows, and partial_fit: the same bits."""
    X = rows(80, np.float32 if single else np.float64)
    whole, split, silent = (OnlineScaler(**setting) for _ in range(3))
    expected = whole.learn_transform(X)
    ends = sorted({0, *cuts, 80})
    got = [split.learn_transform(X[a:b]) for a, b in itertools.pairwise(ends)]
    for a, b in itertools.pairwise(ends):
        silent.partial_fit(X[a:b])
    assert np.array_equal(np.concatenate(got), expected)
    assert facts(whole) == facts(split) == facts(silent)
    assert facts(OnlineScaler(**setting).fit(X[:3]).fit(X)) == facts(whole)


@pytest.mark.parametrize("setting", SHAPED, ids=str)
@dtypes
def test_shapes(setting, dtype):
    """Roots are taken before rows are scaled, and squashing comes after."""
    X, plain = rows(dtype=dtype), {**setting, "squash": False, "root": False}
    before = np.copysign(np.sqrt(np.abs(X)), X) if setting["root"] else X
    expected = OnlineScaler(**plain).learn_transform(before)
    if setting["squash"]:
        expected = expected / (1 + expected**2) ** 0.25
    got = OnlineScaler(**setting).learn_transform(X)
    assert got.dtype == dtype
    np.testing.assert_allclose(got, expected, rtol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("setting", SETTINGS + SHAPED, ids=str)
@dtypes
def test_no_look_ahead(setting, dtype):
    """A row is scaled as transform does right after it: later rows have no part in it."""
    X, scaler = rows(30, dtype), OnlineScaler(**setting)
    learned = OnlineScaler(**setting).learn_transform(X)
    for t in range(len(X)):
        scaler.partial_fit(X[t : t + 1])
        assert np.array_equal(scaler.transform(X[t : t + 1])[0], learned[t])


def test_constants_and_the_first_row():
    """What never changed is 0, and so is the first row; when it changes, it counts."""
    scaler = OnlineScaler()
    assert scaler.learn_transform([[3.0, -8.0]]).tolist() == [[0.0, 0.0]]
    assert not scaler.learn_transform(np.full((50, 2), [3.0, -8.0])).any()
    assert scaler.transform([[4.0, -9.0]]).tolist() == [[0.0, 0.0]]
    assert scaler.learn_transform([[4.0, -8.0]])[0, 0] > 5


def test_far_from_zero():
    """A small spread around a large mean keeps its digits."""
    X = 1e9 + np.random.default_rng(0).normal(size=(10_000, 1))
    assert abs(OnlineScaler().fit(X).scale_[0] - X.std()) < 1e-6


def test_follows_a_jump():
    """With forgetting, the statistics are soon those after a jump."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(1000, 1)), 50 + 10 * rng.normal(size=(1000, 1))])
    scaler = OnlineScaler(forget=0.01).fit(X)
    assert abs(scaler.mean_[0] - 50) < 3
    assert 8 < scaler.scale_[0] < 12
    assert abs(OnlineScaler().fit(X).mean_[0] - 25) < 1


BAD = {
    "nan": np.array([[1.0, 2.0], [3.0, np.nan]]),
    "infinity": np.array([[1.0, np.inf], [3.0, 1.0]]),
    "too large": np.array([[1.0, 2.0], [3.0, 1e200]]),
    "width": np.zeros((3, 3)),
    "empty": np.zeros((0, 2)),
    "vector": np.zeros(2),
    "words": [["a", "b"]],
}


@pytest.mark.parametrize("name", BAD)
def test_bad_rows_change_nothing(name):
    """One sentence about X, and the scaler is as it was, fresh or not."""
    used = OnlineScaler().fit(rows()[:, :2])
    before = facts(used)
    for scaler in (used, OnlineScaler()):
        calls = [scaler.partial_fit, scaler.learn_transform, scaler.fit]
        for call in [*calls, scaler.transform] if scaler is used else calls:
            if (name == "width" and (scaler is not used or call == scaler.fit)) or (
                name == "too large" and call == scaler.transform
            ):
                continue
            with pytest.raises(ValueError, match=r"^The 'X' parameter of OnlineScaler must be .* Got .+ instead\.$"):
                call(BAD[name])
    assert facts(used) == before
    assert facts(scaler) == {}


@pytest.mark.parametrize("setting", [{"forget": 1.0}, {"forget": -0.1}, {"with_mean": 1}, {"with_std": None}], ids=str)
def test_bad_parameters(setting):
    """Each raises the one sentence when rows come."""
    with pytest.raises(ValueError, match=rf"The '{next(iter(setting))}' parameter of OnlineScaler must be"):
        OnlineScaler(**setting).fit(rows())


def test_copies_go_on():
    """pickle and clone: a copy goes on to the bit; a clone knows nothing; unfitted scalers say so."""
    X, scaler = rows(), OnlineScaler(0.05).fit(rows(seed=1))
    other = pickle.loads(pickle.dumps(scaler))
    assert np.array_equal(other.learn_transform(X), scaler.learn_transform(X))
    assert facts(other) == facts(scaler)
    assert facts(clone(scaler)) == {}
    for use in (lambda s: s.transform(X), lambda s: s.var_):
        with pytest.raises(NotFittedError):
            use(OnlineScaler())
    assert scaler.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3", "x4"]


def test_threads():
    """Two scalers learn at the same time; the GIL is free meanwhile."""
    X, results = rows(20_000), [None] * 4
    expected = OnlineScaler().learn_transform(X)

    def work(i):
        results[i] = OnlineScaler().learn_transform(X)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, expected) for result in results)
