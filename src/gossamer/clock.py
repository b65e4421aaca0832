"""Clock time: how fast a model forgets by the hours that pass, not by the rows that come.

A row at time t is predicted by the model as it is. Before it is learned, everything learned so far fades by
2^-((t - last) / half_life), ``last`` being the time of the row before: f <- fade f for first-order rules; A <- fade A,
f <- sqrt(fade) f for second-order ones, as `gossamer.rules.Newton` forgets. Equal times leave the model as it is, to
the bit, and after 128 half-lives nothing is left: the model begins anew.
"""

from __future__ import annotations

import contextlib
import datetime
import math
import numbers
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats

__all__ = ["HalfLife", "as_half_life", "elapse", "read_times"]

#: The seconds of a unit of time; a year is 365.25 days.
UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
         "y": 31557600.0}  # fmt: skip
#: Other names of them, without the s of a plural.
NAMES = {"sec": "s", "second": "s", "m": "min", "minute": "min", "hour": "h", "hr": "h", "day": "d", "week": "w",
         "year": "y", "yr": "y", "millisecond": "ms", "microsecond": "us", "nanosecond": "ns"}  # fmt: skip
LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-z]+)\s*", re.ASCII)
RULE = "a number of seconds, a timedelta or a text such as '7 days', '12h' or '1h 30min', above 0"
#: What may happen to a row that is earlier than the row before.
LATE = ("error", "clamp")


@dataclass(frozen=True)
class HalfLife:
    """The time in which what was learned loses half of its weight, and what becomes of rows out of order.

    Parameters
    ----------
    length : seconds, a timedelta, or a text: "7 days", "12h", "1h 30min"; units from ns to years.
    late : a row that is earlier than the row before is an "error", or its time is taken for that of the row before
        ("clamp").

    >>> HalfLife("1h 30min").seconds, HalfLife("7d", late="clamp")
    (5400.0, HalfLife(length='7d', late='clamp'))
    """

    length: Any
    late: str = "error"

    def __post_init__(self) -> None:
        length_in_seconds(self, "length", self.length)
        _checks.one_of(self, "late", self.late, LATE)

    @property
    def seconds(self) -> float:
        """The half-life in seconds."""
        return length_in_seconds(self, "length", self.length)


def length_in_seconds(owner: object, parameter: str, length: Any) -> float:
    """A length of time in seconds.

    >>> length_in_seconds("run", "half_life", "2 weeks"), length_in_seconds("run", "half_life", np.timedelta64(1, "D"))
    (1209600.0, 86400.0)
    """
    if isinstance(length, str):
        found = _length_of_text(length)
    elif isinstance(length, datetime.timedelta):
        found = length.total_seconds()
    elif isinstance(length, np.timedelta64):
        found = float(length / np.timedelta64(1, "ns")) * 1e-9
    elif isinstance(length, numbers.Real) and not isinstance(length, (bool, np.bool_)):
        found = float(length)
    else:
        found = math.nan
    if not 0 < found < math.inf:
        raise _checks.wrong(owner, parameter, RULE, length)
    return found


def _length_of_text(text: str) -> float:
    """The seconds of a text; NaN if it is no length of time."""
    total, at = 0.0, 0
    while at < len(text):
        match = LENGTH.match(text.lower(), at)
        if match is None:
            return math.nan
        unit = match[2] if match[2] in UNITS else match[2].removesuffix("s")
        unit = NAMES.get(unit, unit)
        if unit not in UNITS:
            return math.nan
        total += float(match[1]) * UNITS[unit]
        at = match.end()
    return total


def in_words(seconds: float) -> str:
    """A length of time in its largest unit.

    >>> in_words(604800.0), in_words(5400.0), in_words(0.25)
    ('7 days', '1.5 hours', '0.25 seconds')
    """
    for name, unit in (("years", "y"), ("days", "d"), ("hours", "h"), ("minutes", "min")):
        if seconds >= UNITS[unit]:
            return f"{seconds / UNITS[unit]:.3g} {name}"
    return f"{seconds:.3g} seconds"


def as_half_life(owner: object, half_life: Any) -> HalfLife | None:
    """A HalfLife of a parameter ``half_life``; None stays None.

    >>> as_half_life("Learner", "7 days").seconds
    604800.0
    """
    if half_life is None or isinstance(half_life, HalfLife):
        return half_life
    length_in_seconds(owner, "half_life", half_life)
    return HalfLife(half_life)


def to_plain(half_life: Any) -> Any:
    """The parameter as plain data that a file can hold: a timedelta as its seconds."""
    if isinstance(half_life, (datetime.timedelta, np.timedelta64)):
        return length_in_seconds("HalfLife", "half_life", half_life)
    if isinstance(half_life, HalfLife):
        return HalfLife(to_plain(half_life.length), half_life.late)
    return half_life


def read_times(owner: object, time: Any, rows: int) -> Floats:
    """The times of rows in seconds; dates are counted from 1970, and are UTC unless they say otherwise.

    >>> read_times("Learner", ["1970-01-02", "1970-01-02T00:01:00+00:00"], 2).tolist()
    [86400.0, 86460.0]
    >>> read_times("Learner", np.array(["1970-01-01T00:00:01.5"], dtype="datetime64[ms]"), 1).tolist()
    [1.5]
    """
    try:
        values = np.asarray(time)
    except ValueError:
        raise _checks.wrong(owner, "time", "a time for each row", time) from None
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            raise _checks.wrong(
                owner, "time", "a time for each row, without NaT", f"NaT in row {_first(np.isnat(values))}"
            )
        found = _since_1970(values)
    elif values.dtype.kind in "OUT":
        found = np.array([_moment(owner, value, row) for row, value in enumerate(values.ravel().tolist())])
        found = found.reshape(values.shape).astype(np.float64)
    elif values.dtype.kind in "fiu":
        found = values.astype(np.float64)
    else:
        raise _checks.wrong(owner, "time", "numbers of seconds or dates", values.dtype)
    if found.shape != (rows,):
        raise _checks.wrong(owner, "time", f"a vector with one entry per row ({rows})", found.shape)
    if not np.isfinite(found).all():
        row = _first(~np.isfinite(found))
        raise _checks.wrong(owner, "time", "finite", f"{found[row]} in row {row}")
    return np.ascontiguousarray(found)


def _since_1970(values: Any) -> Floats:
    """Seconds since 1970; the whole days are counted apart, so that no unit overflows."""
    days = values.astype("datetime64[D]")
    rest = (values - days) / np.timedelta64(1, "s")
    return np.asarray(days.astype(np.int64) * 86400.0 + rest, dtype=np.float64)


def _moment(owner: object, value: Any, row: int) -> float:
    if isinstance(value, np.datetime64):
        value = value.item()
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = datetime.datetime.fromisoformat(value)
    if isinstance(value, datetime.datetime):
        aware = value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)
        return aware.timestamp()
    if isinstance(value, datetime.date):
        return (value - datetime.date(1970, 1, 1)).days * 86400.0
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    raise _checks.wrong(owner, "time", "numbers of seconds or dates", f"{value!r} in row {row}")


def _first(bad: Any) -> int:
    return int(np.argmax(bad))


def order_times(owner: object, half_life: HalfLife, last: float | None, times: Floats) -> Floats:
    """Times of rows that do not go back: earlier ones are an error, or are those of the row before."""
    if not len(times):
        return times
    early = np.diff(times, prepend=times[0] if last is None else last) < 0
    if not early.any():
        return times
    if half_life.late == "error":
        row = _first(early)
        gap = float((times[row - 1] if row or last is None else last) - times[row])
        rule = "in order (HalfLife(..., late='clamp') takes an earlier row for one of the same time)"
        raise _checks.wrong(owner, "time", rule, f"row {row}, {gap:g} s before the row before it")
    return np.asarray(np.maximum.accumulate(times if last is None else np.maximum(times, last)))


def elapse(owner: object, half_life: HalfLife, last: float | None, times: Floats) -> tuple[Floats, float]:
    """What the time since the row before leaves of a model, for each row, and the time of the last row. ``last``: the
    time of the row before the first of these; None if there was none.

    >>> fades, last = elapse("Learner", HalfLife(10), None, np.array([5.0, 5.0, 15.0, 5000.0]))
    >>> fades.tolist(), last
    ([1.0, 1.0, 0.5, 0.0], 5000.0)
    """
    before = math.nan if last is None else last
    times, fades = order_times(owner, half_life, last, times), np.empty(len(times))
    _core.fade_rows(times, before, half_life.seconds, fades)
    return fades, float(times[-1]) if len(times) else before


def elapse_rows(
    owner: object, half_life: Any, last: float | None, time: Any, rows: int
) -> tuple[Floats | None, float | None]:
    """`elapse` for the arguments of a verb that learns; None and None where there is no half-life."""
    found = as_half_life(owner, half_life)
    if found is None:
        if time is not None:
            raise _checks.wrong(owner, "time", "None without half_life: nothing fades by the clock", time)
        return None, None
    if time is None:
        raise _checks.wrong(owner, "time", "given for each row, as there is a half_life", None)
    return elapse(owner, found, last, read_times(owner, time, rows))


def check_time(owner: object, name: str, half_life: Any, time: Any) -> None:
    """Validate the time of the last row in a file: there if and only if there is a half-life."""
    timed = type(time) is float and math.isfinite(time)
    if half_life is None and time is not None:
        raise _checks.wrong(owner, name, "None without half_life", time)
    if half_life is not None and not timed:
        raise _checks.wrong(owner, name, "the seconds of the last row", time)
