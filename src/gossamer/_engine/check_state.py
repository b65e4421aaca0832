"""Checks of a state that comes from outside, before a number of it reaches a loop that trusts it."""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer._engine.expansion import NUMBERS
from gossamer._engine.state import State
from gossamer._sparse import TABLES, SparseRows
from gossamer.clock import check_time
from gossamer.kernels import Kernel

if TYPE_CHECKING:
    from gossamer.learner import Learner

#: The engine of a loaded model that needs more memory than this beyond its file is built at its first use.
AT_ONCE = 2**25
#: Rounds, and classes, that can be counted.
MOST_ROUNDS, MOST_CLASSES = 2**62, 2**20


def check_state(learner: Learner, state: State, most: int = MOST_ROUNDS) -> None:
    """Raise unless the entries of a state fit each other and the parts of the learner; ``most``: of any count.

    Coefficients may be anything: a learner that has diverged is saved and restored too.
    """
    if not isinstance(state, State):
        raise _checks.wrong("Learner", "state", "a State", state)
    if not isinstance(state.kernel, Kernel):
        raise _wrong("kernel", "a Kernel", state.kernel)
    points, dropped = (_points(state, name) for name in ("points", "dropped_points"))
    counts = {name: _count(state, name, most) for name in ("steps", "updates", "mistakes")}
    known = _count(state, "known", MOST_CLASSES)
    outputs, m, gone = _outputs(learner, known), len(points), len(dropped)
    _check_numbers(state)
    _array(state, "raw", np.float64, (outputs, m))
    _array(state, "summed", np.float64, (outputs, m))
    _array(state, "dropped", np.float64, (outputs, gone))
    # the core has no columns where there are no rows, NumPy has
    empty = (0, (getattr(state.trace, "shape", None) or (0,))[-1])
    _array(state, "trace", np.float64, (outputs, m) if learner.rule.needs_trace else empty)
    for name, dtype in (("kappas", np.float64), ("entered", np.float64), ("births", np.int64), ("ids", np.int64)):
        _array(state, name, dtype, (m,))
    if m and not (np.isfinite(state.kappas).all() and state.kappas.min() >= 0):
        raise _wrong("kappas", "finite and not negative", float(state.kappas.min()))
    births = state.births
    if not counts["steps"]:
        raise _wrong("steps", "at least one", 0)
    if m and not (births.min() >= 1 and births.max() <= counts["steps"]):
        raise _wrong("births", f"rounds from 1 to {counts['steps']}", f"{births.min()} to {births.max()}")
    if learner.rule.needs_ids and len(np.unique(state.ids)) < m:
        raise _wrong("ids", "all different", f"{len(np.unique(state.ids))} of {m}")
    if m and learner.rule.needs_ids and state.ids.min() < -counts["steps"]:  # an id that a later round will get
        raise _wrong("ids", f"at least {-counts['steps']}", int(state.ids.min()))
    if gone and learner.average != "all":
        raise _wrong("dropped_points", "empty where the mean does not keep them", gone)
    _check_kernel(learner, state.kernel, points, dropped)
    if learner.track_norm and m and isinstance(points, TABLES):  # the kernel values are computed from the points
        own = np.asarray(state.kernel.diag(points), dtype=np.float64)
        if (np.abs(own - state.kappas) > 1e-3 * own + 1e-30).any():
            raise _wrong("kappas", "k(x, x) of the points", "others")
    _check_budget(learner, state, m)
    check_time("Learner", "state.time", learner.half_life, state.time)


def _check_numbers(state: State) -> None:
    for name in (*NUMBERS, "level"):
        value = getattr(state, name, None)
        if not _is_number(value):
            raise _wrong(name, "a number", value)
    # trees of many points recompute their norm more rarely than after REFRESH updates
    if isinstance(state.refresh_in, (float, np.floating)) or not -(2**32) <= state.refresh_in <= 2**32:
        raise _wrong("refresh_in", "an int up to 2**32", state.refresh_in)
    for name in ("scale", "trace_scale"):
        if not 0 < getattr(state, name) < math.inf:
            raise _wrong(name, "a number in (0, inf)", getattr(state, name))
    for name in ("norm2", "discarded"):
        if getattr(state, name) < 0:  # NaN is that of a learner that has diverged
            raise _wrong(name, "not negative", getattr(state, name))


def _check_kernel(learner: Learner, kernel: Kernel, points: Any, dropped: Any) -> None:
    """Raise unless the kernel is resolved and the points lie in its domain."""
    if isinstance(points, SparseRows) and (learner.budget.space or not kernel.takes_sparse()):
        raise _wrong("points", f"a matrix for {kernel} and {learner.budget}", "sparse rows")
    if isinstance(points, list):
        if not kernel.takes_any():
            raise _wrong("points", f"rows of numbers for {kernel}", "a list")
        return
    if not learner.budget.fixed:  # of a fixed one the points are frequencies
        for rows in (points, dropped):
            if len(rows):
                kernel.check_domain("Learner", rows)
                with np.errstate(over="ignore", invalid="ignore"):
                    if not (kernel.takes_any() or np.isfinite(kernel.diag(rows)).all()):
                        raise _wrong("points", "such that k(x, x) is finite", "another")
    few = points[:1]
    if kernel.resolve(few) != kernel:
        raise _wrong("kernel", "one that is settled", kernel)


def _check_budget(learner: Learner, state: State, m: int) -> None:
    """Raise unless the budget keeps this number of points, and its own entries and those of the rule are valid."""
    budget, limit = learner.budget, learner.budget.limit
    bounded = limit is not None or not learner.rule.needs_gram
    if learner.track_norm and bounded and m > (limit or 0):  # their kernel values would be kept too
        raise _wrong("points", f"at most {limit} with {budget}", m)
    space = budget.space
    if space and limit is not None and (m > limit or (m < limit and budget.fixed)):
        raise _wrong("points", f"as many as {budget} keeps", m)
    gram = state.gram
    if gram is not None:
        _array(state, "gram", np.float64, (m, m))
        if not space and m:
            _check_gram(gram, state.kappas)
    for name, part in (("budget", budget), ("rule", learner.rule)):
        own = getattr(state, name)
        _check_own(name, part, own, m)
        if not space and not part.covers(own, m):  # points that leave would take a share that is not there
            raise _wrong(name, f"a state of all {m} points", "one of fewer")


def _check_own(name: str, part: Any, own: Any, m: int) -> None:
    """Raise unless a part's entries have the names and types of its initial state; the part validates the rest."""
    first = part.initial_state()
    if not isinstance(own, dict) or own.keys() != first.keys():
        raise _wrong(name, f"a dict of {sorted(first)}", own)
    for key, value in first.items():
        here, given = f"{name}[{key!r}]", own[key]
        if isinstance(value, np.ndarray):
            if not isinstance(given, np.ndarray) or (given.dtype, given.ndim) != (value.dtype, value.ndim):
                raise _wrong(here, f"an array of {value.dtype} with {value.ndim} extents", given)
        elif not _is_number(given) or (isinstance(value, int) and not isinstance(given, numbers.Integral)):
            raise _wrong(here, f"a number of type {type(value).__name__}", given)
    part.check_state(own, m)


def _check_gram(gram: Any, kappas: Any) -> None:
    """Validate kernel values: finite, symmetric, k(x, x) on the diagonal, none above the root of k(x, x) k(s, s)."""
    most = np.sqrt(kappas)[:, None] * np.sqrt(kappas)[None, :]
    near = 1e-6 * most + 1e-300
    good = np.isfinite(gram).all() and (np.abs(gram) <= most + near).all()
    if not good or (np.abs(gram - gram.T) > near).any() or (np.abs(gram.diagonal() - kappas) > near.diagonal()).any():
        raise _wrong("gram", "the kernel values of the points", "another")


def work_bytes(learner: Learner, points: Any) -> int:
    """An estimate of the memory that the engine of these points needs beyond that of the file."""
    if not isinstance(points, TABLES):
        return 0
    m, features = points.shape
    squared = m if learner.track_norm or (learner.budget.space and not learner.budget.fixed) else 0
    if isinstance(points, SparseRows):
        return int(24 * m * squared + 16 * points.nbytes)
    coordinates = features + _pairs(learner.kernel) if learner.kernel.splits else 0
    return int(24 * m * squared + 256 * m * coordinates + 1024 * coordinates + 8 * points.itemsize * features)


def _pairs(kernel: Any) -> int:
    """The products and differences of features in a kernel, and in the kernels that it is made of."""
    own = len(getattr(kernel, "products", ())) + len(getattr(kernel, "differences", ()))
    return own + sum(_pairs(part) for part in vars(kernel).values() if isinstance(part, Kernel))


def _outputs(learner: Learner, known: int) -> int:
    """The number of scores of a learner that knows this many classes."""
    if not learner.loss.many:
        if known:
            raise _wrong("known", f"0 for {type(learner.loss).__name__}", known)
        return 1
    classes = getattr(learner.loss, "classes", None)
    if classes is not None and known != classes:
        raise _wrong("known", f"{classes} for {type(learner.loss).__name__} with so many classes", known)
    return max(known, 1)


def _points(state: State, name: str) -> Any:
    """Validate points: rows of finite floats, or a list of other objects that the kernel takes."""
    points = getattr(state, name, None)
    if isinstance(points, list) and type(state.points) is list:
        return points
    like = state.points
    if (
        not isinstance(points, TABLES)
        or type(points) is not type(like)
        or points.dtype not in (np.float32, np.float64)
        or points.dtype != like.dtype
        or points.ndim != 2
        or points.shape[1:] != like.shape[1:]
        or points.shape[1] < 1
    ):
        raise _wrong(name, "a matrix of floats, one row for each point", getattr(points, "shape", points))
    values = points.values if isinstance(points, SparseRows) else points
    if not np.isfinite(values).all():
        raise _wrong(name, "finite", float(values[~np.isfinite(values)][0]))
    return points


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _count(state: State, name: str, most: int) -> int:
    value = getattr(state, name, None)
    if not _is_number(value) or not isinstance(value, numbers.Integral) or not 0 <= int(value) <= most:
        raise _wrong(name, f"an int in [0, {most}]", value)
    return int(value)


def _array(state: State, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    value = getattr(state, name, None)
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.shape != shape:
        got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else value
        raise _wrong(name, f"{np.dtype(dtype)} of shape {shape}", got)


def _wrong(name: str, rule: str, got: Any) -> ValueError:
    return _checks.wrong("Learner", f"state.{name}", rule, got)
