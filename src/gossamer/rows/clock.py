"""Timestamps: seconds since 1970 from texts and numbers, the local time of a zone, the time since the row before."""

from __future__ import annotations

import datetime
import math
import re
import zoneinfo
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats
from gossamer.rows.parse import parse_times
from gossamer.rows.plan import Column
from gossamer.rows.table import Coded

#: Zones change their offset at quarters of an hour.
QUARTER = 900.0
UNITS = {
    "s": 1.0, "sec": 1.0, "second": 1.0, "m": 60.0, "min": 60.0, "minute": 60.0, "h": 3600.0, "hour": 3600.0,
    "d": 86400.0, "day": 86400.0, "w": 604800.0, "week": 604800.0, "month": 2629746.0, "y": 31556952.0,
    "year": 31556952.0,
}  # fmt: skip
DURATION = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)?\s*([a-z]+)\s*", re.ASCII | re.IGNORECASE)


def parse_duration(owner: object, parameter: str, given: Any) -> float:
    """Seconds of a duration: "7 days", "36h", a timedelta, a number of seconds.

    >>> parse_duration("Example", "half_life", "7 days"), parse_duration("Example", "half_life", "1.5h")
    (604800.0, 5400.0)
    """
    rule = "a duration such as '7 days', '36h', a timedelta or a positive number of seconds"
    if isinstance(given, datetime.timedelta):
        seconds = given.total_seconds()
    elif isinstance(given, np.timedelta64):
        seconds = float(given / np.timedelta64(1, "us")) / 1e6
    elif isinstance(given, str):
        match = DURATION.fullmatch(given)
        unit = "" if match is None else match[2].lower()
        if match is None or (unit.removesuffix("s") not in UNITS and unit not in UNITS):
            raise _checks.wrong(owner, parameter, rule, given)
        seconds = float(match[1] or 1.0) * UNITS[unit if unit in UNITS else unit.removesuffix("s")]
    else:
        try:
            seconds = _checks.number(owner, parameter, given, 0.0, math.inf)
        except ValueError:
            raise _checks.wrong(owner, parameter, rule, given) from None
    if not 0.0 < seconds < math.inf:
        raise _checks.wrong(owner, parameter, rule, given)
    return seconds


def read_zone(owner: object, name: Any) -> zoneinfo.ZoneInfo | None:
    """The zone of a name; None for UTC."""
    if name == "UTC":
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, TypeError, OSError):
        raise _checks.wrong(owner, "timezone", "the name of a time zone, such as 'Europe/Rome'", name) from None


def read_seconds(column: Column, values: Any) -> Floats:
    """Seconds since 1970 of the values of a column; NaN where there are none."""
    if isinstance(values, Coded):
        return values.map(parse_times(values.values, column.format))
    return np.asarray(values / 1e3 if column.format == "ms" else values, dtype=np.float64)


def to_local(seconds: Floats, zone: zoneinfo.ZoneInfo | None) -> Floats:
    """The seconds that a clock in the zone shows."""
    if zone is None:
        return seconds
    quarters = np.floor(seconds / QUARTER)
    good = np.abs(quarters) < 6e7  # years that datetime has; NaN is not
    offsets = np.zeros(len(seconds))
    different, where = np.unique(quarters[good], return_inverse=True)
    utc = datetime.UTC
    found = [
        (datetime.datetime.fromtimestamp(0, utc) + datetime.timedelta(seconds=quarter * QUARTER)).astimezone(zone)
        for quarter in different.tolist()
    ]
    offsets[good] = np.array([(moment.utcoffset() or datetime.timedelta(0)).total_seconds() for moment in found])[where]
    return np.asarray(seconds + offsets)


def since_before(seconds: Floats, last: float, together: bool) -> tuple[Floats, float]:
    """log(1 + the seconds since the row before) of each row, NaN where unknown; and the time of the last row.

    ``together``: each row comes after ``last``, not after the one before it in the batch.
    """
    gaps = np.empty(len(seconds))
    return gaps, _core.encode_gaps(np.ascontiguousarray(seconds), gaps, last, together)
