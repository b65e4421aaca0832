"""Clock time: what was learned fades by the time between rows, the same in any split, compiled and in NumPy."""

import datetime
import itertools
import math

import numpy as np
import pytest
from parts import (
    agree,
    assert_close,
    assert_same,
    backends,
    classes,
    compiled,
    cut,
    examples,
    facts,
    fitted,
    label,
    rounding,
    settled,
    size_of,
    stream,
    widened,
)
from test_batches import comparable

import gossamer
from gossamer import HalfLife, Learner, clock
from gossamer.budgets import Project, Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge, Squared
from gossamer.rules import Gradient, Implicit, Newton

KERNELS = [settled(kernel) for kernel in examples("kernel")]
NATIVE = [(kernel, backend) for kernel in KERNELS for backend in backends(kernel)]
LOSSES, RULES, BUDGETS = (examples(kind) for kind in ("loss", "rule", "budget"))
YEAR = 365.25 * 86400


def times_of(rows, seed=0):
    """Times with equal neighbours, short and long gaps, and two of years, after which nothing is left."""
    rng = np.random.default_rng(seed)
    gaps = rng.choice([0.0, 0.0, 0.1, 3.0, 40.0, 900.0], size=rows)
    gaps[[rows // 3, rows // 2]] = 3 * YEAR
    return 1.7e9 + np.cumsum(gaps)


def learn_split(learner, X, y, weights, times, cuts):
    ends = [0, *cuts, len(X)]
    parts = [slice(a, b) for a, b in itertools.pairwise(ends) if a < b]
    return widened([learner.learn(X[p], cut(y, p), cut(weights, p), time=times[p]) for p in parts])


def learn_rows(learner, X, y, weights, times):
    scores = [
        learner.learn_one(X[t], None if y is None else float(y[t]), float(weights[t]), time=times[t])
        for t in range(len(X))
    ]
    return widened([part[None] for part in scores]) if np.ndim(scores[0]) else np.array(scores)


@pytest.mark.parametrize("rule", RULES, ids=label)
@pytest.mark.parametrize("loss_class", classes("loss"), ids=label)
def test_every_combination(loss_class, rule):
    """The law of batches to the bit, and NumPy beside the core, for every loss x rule; kernels and budgets in turn."""
    losses = [loss for loss in LOSSES if type(loss) is loss_class and agree(loss, rule)]
    turn, budgets = itertools.cycle(NATIVE), itertools.cycle(b for b in BUDGETS if losses and agree(losses[0], rule, b))
    for i, loss in enumerate(losses):
        (kernel, backend), budget = next(turn), next(budgets)
        if not agree(loss, rule, budget, kernel, backend):
            continue
        X, y = stream(loss, 40, seed=i)
        X, times, weights = fitted(kernel, X), times_of(40, i), np.ones(40)
        weights[5] = 0.0
        exact = compiled(loss, rule, budget)
        options = {
            "backend": backend if exact else "auto",
            "half_life": 60.0,
            "average": (False, True, "sparse")[i % 3],
        }
        whole, split, rows = (Learner(kernel, loss, rule, budget, **options) for _ in range(3))
        scores = whole.learn(X, y, weights, time=times)
        others = learn_split(split, X, y, weights, times, (1, 14, 15, 29)), learn_rows(rows, X, y, weights, times)
        near = rounding(budget)
        for other, found in zip((split, rows), others, strict=True):
            if exact:
                assert np.array_equal(scores, found)
                assert_same(whole.state(), other.state())
            else:
                np.testing.assert_allclose(found, scores, rtol=near, atol=near * size_of(scores))
        slow = Learner(kernel, loss, rule, budget, **{**options, "backend": "numpy"})
        found = slow.learn(X, y, weights, time=times)
        np.testing.assert_allclose(found, scores, rtol=near, atol=near * size_of(scores), err_msg=str(slow))
        assert_close(*comparable(scores, facts(slow), facts(whole)), rtol=near)


TOGETHER = [
    (next(loss for loss in LOSSES if agree(loss, rule)), rule, budget)
    for rule, budget in itertools.product(*(examples(kind, one_each=True) for kind in ("rule", "budget")))
]


@pytest.mark.parametrize(("loss", "rule", "budget"), [parts for parts in TOGETHER if agree(*parts)], ids=label)
def test_rows_of_one_time_forget_nothing(loss, rule, budget):
    """All rows at one time: to the bit the learner without a clock."""
    X, y = stream(loss, 60, seed=3)
    plain, timed = Learner(Gaussian(0.5), loss, rule, budget), Learner(Gaussian(0.5), loss, rule, budget, half_life=1)
    assert np.array_equal(plain.learn(X, y), timed.learn(X, y, time=np.full(60, 17.5)))
    assert_same(plain.state(), timed.state().replace(time=None))


def fixed_loss(rule):
    """A loss that the rule takes and that has no adaptive level, if there is one."""
    return next((loss for loss in LOSSES if agree(loss, rule) and not loss.adapts), None)


@pytest.mark.parametrize("rule", [rule for rule in RULES if not rule.needs_trace and fixed_loss(rule)], ids=label)
def test_a_row_of_weight_zero_only_lets_time_pass(rule):
    """After two half-lives f is a quarter of what it was; with a metric, half, and its evidence a quarter."""
    loss = fixed_loss(rule)
    X, y = stream(loss, 40, seed=4)
    for backend in ("auto", "numpy"):
        learner = Learner(Gaussian(0.5), loss, rule, Smallest(16), half_life=10.0, backend=backend)
        learner.learn(X, y, time=np.arange(40.0))
        before, offset, row = learner.score(X), learner.offset, None if y is None else y[:1]
        reg = Learner(Gaussian(0.5), loss, rule, Smallest(16), backend=backend)
        reg.restore(learner.state().replace(time=None))
        reg.learn(X[:1], row, [0.0])
        plain = reg.score(X)  # what the rule itself forgets in a round
        learner.learn(X[:1], row, [0.0], time=[59.0])
        factor = 0.5 if isinstance(rule, Newton) else 0.25
        np.testing.assert_allclose(learner.score(X) - offset, factor * (plain - offset), atol=1e-12)
        assert np.abs(before).max() > 0
        if isinstance(rule, Newton):
            kappas, forgetting = 1.0, rule.forgetting
            other = Learner(Gaussian(0.5), loss, rule, Smallest(16), half_life=10.0, backend=backend)
            other.learn(X, y, time=np.arange(40.0))
            left = kappas - 0.25 * forgetting * (kappas - other.variance(X))
            np.testing.assert_allclose(learner.variance(X), left, atol=1e-9)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_unit_of_time_is_a_row_of_forgetting(backend):
    """KRLS-T by rows and by the clock are one thing: the clock fades before a row is learned, not after."""
    X, y = stream(Squared(), 80, seed=5)
    by_rows = Learner(Gaussian(0.5), Squared(), Newton(0.1, 0.9), Project(12), backend=backend)
    half_life = -math.log(2) / math.log(0.9)
    by_clock = Learner(Gaussian(0.5), Squared(), Newton(0.1), Project(12), backend=backend, half_life=half_life)
    scores = by_clock.learn(X, y, time=np.arange(80.0))
    np.testing.assert_allclose(by_rows.learn(X, y)[1:], math.sqrt(0.9) * scores[1:], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("backend", ["native", "numpy"])
def test_a_unit_of_time_is_a_row_of_shrinking(backend):
    """SILK shrinks by 1 / (1 + reg) a row: so does the clock, with the loss weighed as the shrunken step weighs it."""
    X, y = stream(Hinge(), 80, seed=6)
    keep = 1 / 1.1
    by_rows = Learner(Gaussian(0.5), Hinge(), Implicit(C=0.7, reg=0.1), Smallest(12), backend=backend)
    half_life = -math.log(2) / math.log(keep)
    by_clock = Learner(
        Gaussian(0.5), Hinge(), Implicit(C=0.7 * keep), Smallest(12), backend=backend, half_life=half_life
    )
    np.testing.assert_allclose(by_clock.learn(X, y, time=np.arange(80.0)), by_rows.learn(X, y), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("rule", [Gradient(), Implicit(C=2.0), Newton(0.1)], ids=label)
def test_after_years_a_model_begins_anew(rule):
    X, y = stream(Squared(), 100, seed=7)
    old, new = (Learner(Gaussian(0.5), Squared(), rule, Smallest(16), half_life="1 day") for _ in range(2))
    times = np.arange(100.0) + np.where(np.arange(100) < 50, 0.0, 2 * YEAR)
    scores = old.learn(X, y, time=times)
    assert scores[50] != 0.0  # predicted before it was learned
    assert np.array_equal(scores[51:], new.learn(X[50:], y[50:], time=times[50:])[1:])
    assert_same(*({**facts(learner), "births": 0, "steps": 0, "updates": 0} for learner in (old, new)))


def test_rows_out_of_order():
    """An error that changes nothing, or the time of the row before."""
    X, y = stream(Squared(), 30, seed=8)
    times = times_of(30)
    times[20] -= 5.0 * YEAR
    strict, clamped, sorted_ = (
        Learner(Gaussian(0.5), Squared(), Implicit(), Smallest(16), half_life=HalfLife("90 s", late=late))
        for late in ("error", "clamp", "error")
    )
    strict.learn(X[:10], y[:10], time=times[:10])
    before = strict.state()
    for bad in (times[10:], times[10:20] - 10 * YEAR):
        with pytest.raises(
            ValueError, match=r"The 'time' parameter of Learner must be in order .* before the row before it"
        ):
            strict.learn(X[10 : 10 + len(bad)], y[10 : 10 + len(bad)], time=bad)
        assert_same(strict.state(), before)
    scores = sorted_.learn(X, y, time=np.maximum.accumulate(times))
    assert np.array_equal(clamped.learn(X, y, time=times), scores)
    again = Learner(Gaussian(0.5), Squared(), Implicit(), Smallest(16), half_life=HalfLife("90 s", late="clamp"))
    assert np.array_equal(learn_split(again, X, y, None, times, (3, 20, 21)), scores)


@pytest.mark.parametrize("backend", ["native", "trees", "numpy"])
def test_a_stored_learner_goes_on(backend):
    kernel = gossamer.kernels.Matern(1.5, 0.5) if backend == "trees" else Gaussian(0.5)
    X, y = stream(Squared(), 60, seed=9, features=1)
    times = times_of(60)
    learner = Learner(kernel, Squared(), Implicit(), Smallest(16), half_life="2 min", backend=backend)
    learner.learn(X[:37], y[:37], time=times[:37])
    other = gossamer.from_bytes(learner.to_bytes())
    assert other.half_life == HalfLife("2 min")
    expected = learner.learn(X[37:], y[37:], time=times[37:])
    assert np.array_equal(other.learn(X[37:], y[37:], time=times[37:]), expected)
    assert learner.to_bytes() == other.to_bytes()


def test_models_merge_at_the_time_of_the_latest():
    X, y = stream(Squared(), 60, seed=10)
    for rule in (Implicit(), Newton(0.1)):
        early, late, waited = (Learner(Gaussian(0.5), Squared(), rule, Smallest(64), half_life=20.0) for _ in range(3))
        early.learn(X[:30], y[:30], time=np.arange(30.0))
        waited.learn(X[:30], y[:30], time=np.arange(30.0))
        waited.learn(X[:1], y[:1], [0.0], time=[60.0])
        late.learn(X[30:], y[30:], time=np.arange(31.0, 61.0))
        weights = None if isinstance(rule, Newton) else [0.5, 0.5]
        merged, other = (gossamer.merge([part, late], weights).model for part in (early, waited))
        np.testing.assert_allclose(merged.score(X), other.score(X), rtol=1e-9, atol=1e-9)
        merged.learn(X, y, time=np.full(60, 60.0))
        with pytest.raises(ValueError, match="in order"):
            merged.learn(X, y, time=np.full(60, 59.0))


def test_time_and_half_life_belong_together():
    X, y = stream(Squared(), 5, seed=0)
    timed, plain = (Learner(Gaussian(1.0), Squared(), Implicit(), half_life=life) for life in (1.0, None))
    with pytest.raises(ValueError, match="The 'time' parameter of Learner must be given for each row"):
        timed.learn(X, y)
    with pytest.raises(ValueError, match="The 'time' parameter of Learner must be None without half_life"):
        plain.learn(X, y, time=np.arange(5))
    for bad in (
        np.arange(4),
        [1, 2, 3, math.nan, 5],
        ["soon"] * 5,
        [[0]] * 5,
        [True] * 5,
        np.array(["NaT"] * 5, "M8[s]"),
    ):
        with pytest.raises(ValueError, match="The 'time' parameter of Learner must be"):
            timed.learn(X, y, time=bad)
    assert timed.steps == 0


@pytest.mark.parametrize(
    "bad", ["", "7", "days", "7 moons", 0, -1.0, math.inf, math.nan, True, [7], datetime.timedelta(0)]
)
def test_bad_half_lives(bad):
    with pytest.raises(ValueError, match="The 'half_life' parameter of Learner must be a number of seconds"):
        Learner(Gaussian(1.0), Squared(), Implicit(), half_life=bad)
    with pytest.raises(ValueError, match="The 'length' parameter of HalfLife"):
        HalfLife(bad)
    with pytest.raises(ValueError, match="The 'late' parameter of HalfLife must be one of 'error', 'clamp'"):
        HalfLife(1, late="never")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("7 days", 604800), ("7d", 604800), ("1h 30min", 5400), ("1.5 hours", 5400), ("90m", 5400), ("2 Weeks", 1209600),
     (".5s", 0.5), ("250 ms", 0.25), ("1 year", 365.25 * 86400), ("1 day 1 h 1 min 1 s", 90061)],
)  # fmt: skip
def test_lengths_of_time(text, seconds):
    assert HalfLife(text).seconds == pytest.approx(seconds, rel=1e-15)
    assert HalfLife(datetime.timedelta(seconds=seconds)).seconds == seconds
    assert HalfLife(np.timedelta64(int(seconds * 1000), "ms")).seconds == pytest.approx(seconds, rel=1e-12)


def test_times_are_seconds_since_1970_however_they_are_given():
    seconds = np.array([0.0, 1.5, 86400.0, 1.7e9, -3600.0])
    utc = [datetime.datetime.fromtimestamp(value, datetime.UTC) for value in seconds]
    berlin = datetime.timezone(datetime.timedelta(hours=2))
    forms = [
        seconds, seconds.tolist(), utc, [value.replace(tzinfo=None) for value in utc],
        [value.astimezone(berlin) for value in utc], [value.isoformat() for value in utc],
        np.array([value.replace(tzinfo=None).isoformat() for value in utc]),
        *((seconds * 1000).astype("int64").astype("M8[ms]").astype(f"M8[{unit}]") for unit in ("ms", "us", "ns")),
    ]  # fmt: skip
    for form in forms:
        assert clock.read_times("Learner", form, 5).tolist() == seconds.tolist()
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(pandas.to_datetime(seconds, unit="s"))
    for form in (series, series.dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"), pandas.DatetimeIndex(series)):
        assert clock.read_times("Learner", form, 5).tolist() == seconds.tolist()
    assert clock.read_times("Learner", [datetime.date(1970, 1, 2)], 1).tolist() == [86400.0]


def test_fades_are_those_of_python():
    """The specification of the core's function."""
    times = times_of(200)
    fades, last = clock.elapse("Learner", HalfLife(60.0), None, times)
    expected = [1.0, *(2.0 ** -(float(gap) / 60.0) for gap in np.diff(times))]
    expected = [0.0 if fade < 2.0**-128 else fade for fade in expected]
    np.testing.assert_allclose(fades, expected, rtol=1e-15)
    assert last == times[-1]
    assert 0.0 in fades
    assert 1.0 in fades
    halves = clock.elapse("Learner", HalfLife(10), None, np.array([0.0, 10, 30, 30]))[0]
    assert halves.tolist() == [1.0, 0.5, 0.25, 1.0]  # exactly
