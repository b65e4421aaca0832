"""Timestamps: seconds since 1970 from texts and numbers, the local time of a zone, the time since the row before."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats
from gossamer.rows.parse import parse_time, parse_times
from gossamer.rows.plan import Column
from gossamer.rows.table import Coded

#: Zones change their offset at quarters of an hour.
QUARTER = 900.0


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
        texts, form = values.values, column.format
        found = zip(texts, parse_times(texts, form), strict=True)
        return values.map([parse_time(text) if form and seconds != seconds else seconds for text, seconds in found])
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
