"""The state of a learner that comes from outside: checked before a number of it reaches a loop that trusts it."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer.expansion import NUMBERS
from gossamer.kernels import Kernel

if TYPE_CHECKING:
    from gossamer.learner import Learner

#: Rounds, and classes, that can be counted.
MOST_ROUNDS, MOST_CLASSES = 2**62, 2**20


def check_state(learner: Learner, state: dict[str, Any]) -> None:
    """Raise unless the entries of a state fit each other and the parts of the learner.

    Coefficients may be anything: a learner that has diverged is saved and restored too.
    """
    if not isinstance(state.get("kernel"), Kernel):
        raise _wrong("kernel", "a Kernel", state.get("kernel"))
    points, dropped = (_points(state, name) for name in ("points", "dropped_points"))
    counts = {name: _count(state, name, MOST_ROUNDS) for name in ("steps", "updates", "mistakes")}
    known = _count(state, "known", MOST_CLASSES)
    outputs, m, gone = _outputs(learner, known), len(points), len(dropped)
    for name in (*NUMBERS, "level"):
        if not isinstance(state.get(name), numbers.Real):
            raise _wrong(name, "a number", state.get(name))
    # trees of many points recompute their norm more rarely than after REFRESH updates
    if isinstance(state["refresh_in"], (float, np.floating)) or not -(2**32) <= state["refresh_in"] <= 2**32:
        raise _wrong("refresh_in", "an int up to 2**32", state["refresh_in"])

    _array(state, "raw", np.float64, (outputs, m))
    _array(state, "summed", np.float64, (outputs, m))
    _array(state, "dropped", np.float64, (outputs, gone))
    # the core has no columns where there are no rows, NumPy has
    empty = (0, (getattr(state.get("trace"), "shape", None) or (0,))[-1])
    _array(state, "trace", np.float64, (outputs, m) if learner.rule.needs_trace else empty)
    for name, dtype in (("kappas", np.float64), ("entered", np.float64), ("births", np.int64), ("ids", np.int64)):
        _array(state, name, dtype, (m,))
    if m and not (np.isfinite(state["kappas"]).all() and state["kappas"].min() >= 0):
        raise _wrong("kappas", "finite and not negative", float(state["kappas"].min()))
    births = state["births"]
    if m and not (births.min() >= 1 and births.max() <= counts["steps"]):
        raise _wrong("births", f"rounds from 1 to {counts['steps']}", f"{births.min()} to {births.max()}")
    if learner.rule.needs_ids and len(np.unique(state["ids"])) < m:
        raise _wrong("ids", "all different", f"{len(np.unique(state['ids']))} of {m}")
    if gone and learner.average != "all":
        raise _wrong("dropped_points", "empty where the mean does not keep them", gone)
    if learner.track_norm and m > (learner.budget.limit or 0):  # their kernel values would be kept too
        raise _wrong("points", f"at most {learner.budget.limit} with {learner.budget}", m)
    if state.get("gram") is not None:
        _array(state, "gram", np.float64, (m, m))
    for name in ("inverse_age", "window"):
        _count(state, name, MOST_ROUNDS)
    if "inverse" in state:
        if not learner.budget.needs_gram:
            raise _wrong("inverse", f"none with {learner.budget}", "one")
        _array(state, "inverse", np.float64, (m * (m + 1) // 2,))


def _outputs(learner: Learner, known: int) -> int:
    """The number of scores of a learner that knows so many classes."""
    if learner.loss.target != "label":
        if known:
            raise _wrong("known", f"0 for {type(learner.loss).__name__}", known)
        return 1
    classes = getattr(learner.loss, "classes", None)
    if classes is not None and known != classes:
        raise _wrong("known", f"{classes} for {type(learner.loss).__name__} with so many classes", known)
    return max(known, 1)


def _points(state: dict[str, Any], name: str) -> Any:
    """Points are rows of finite floats, or a list of what else a kernel takes."""
    points = state.get(name)
    if isinstance(points, list) and type(state.get("points")) is list:
        return points
    like = state.get("points")
    if (
        not isinstance(points, np.ndarray)
        or not isinstance(like, np.ndarray)
        or points.dtype not in (np.float32, np.float64)
        or points.dtype != like.dtype
        or points.ndim != 2
        or points.shape[1:] != like.shape[1:]
        or points.shape[1] < 1
    ):
        raise _wrong(name, "a matrix of floats, one row for each point", getattr(points, "shape", points))
    if not np.isfinite(points).all():
        raise _wrong(name, "finite", float(points[~np.isfinite(points)][0]))
    return points


def _count(state: dict[str, Any], name: str, most: int) -> int:
    value = state.get(name)
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral) or not 0 <= int(value) <= most:
        raise _wrong(name, f"an int in [0, {most}]", value)
    return int(value)


def _array(state: dict[str, Any], name: str, dtype: Any, shape: tuple[int, ...]) -> None:
    value = state.get(name)
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.shape != shape:
        got = f"{value.dtype} of shape {value.shape}" if isinstance(value, np.ndarray) else value
        raise _wrong(name, f"{np.dtype(dtype)} of shape {shape}", got)


def _wrong(name: str, rule: str, got: Any) -> ValueError:
    return _checks.wrong("Learner", f"state[{name!r}]", rule, got)
