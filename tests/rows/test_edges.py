"""Values at the edges of what a column may hold."""

import dataclasses
import datetime
import decimal
import random
import warnings

import numpy as np
import pytest

from gossamer import RowEncoder
from gossamer.rows.parse import parse_time, parse_times
from gossamer.rows.plan import Plan

#: Columns of timestamps, by their format.
TIMES = {"timestamp": "", "seconds": "s", "milliseconds": "ms", "days": "%d.%m.%Y"}


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_times_beyond_the_calendar_are_strays(text):
    """A time that is before the first or after the last in UTC is a value of another kind, not a crash."""
    assert np.isnan(parse_time(text))
    encoder = RowEncoder({"when": "timestamp"}).fit([{"when": "2024-01-01T00:00:00Z"}, {"when": text}])
    assert encoder.coped_["when"] == (0, 1)


def test_nothing_but_none_leaves_room_for_anything():
    """A column that is empty in the first rows may become numbers or texts: as in a file, so in dicts."""
    encoder = RowEncoder().fit([{"a": 1.0, "b": None}])
    assert encoder.plan_["b"].kind == "mixed"


def test_a_time_is_read_alone_as_among_others():
    """Texts near the commonest form of a timestamp: together they are what each is alone, without a warning."""
    rng = random.Random(0)
    plain, strange = "2024-02-29T06:07:08", 0
    for _ in range(3000):
        text = plain + rng.choice(["", ".5", ".125", ".000001"])
        for _ in range(rng.randrange(3)):
            at = rng.randrange(len(text) + 1)
            text = text[:at] + rng.choice("0139-:.TZz +a\u0663") + text[at + rng.randrange(2) :]
        alone = parse_time(text)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            np.testing.assert_equal(parse_times([text] * 2), [alone] * 2, text)
        strange += np.isnan(alone)
    assert 300 < strange < 2700


@pytest.mark.parametrize("kind", ["number", "boolean", "category", "mixed", "text:16", "cyclic:7", *TIMES])
def test_values_of_all_kinds_in_a_column(kind):
    """Whatever stands in a cell, a row has the same features alone as among others, learned or only seen."""
    rng = random.Random(1)
    odd = [1, 2.5, True, False, np.bool_(True), "true", "False", "1", "1.0", "yes", "x", None, float("nan"), -0.0,
           "2024-02-29", datetime.date(2024, 2, 29), datetime.datetime(2024, 2, 29, 6), np.datetime64("2024-02-29T06"),
           10**20, decimal.Decimal("2.5"), np.float32(0.1), np.int64(3), "", "\ud800 \udfff",
           "a\udc00"]  # fmt: skip
    rows = [{"a": rng.choice(odd), "b": float(i)} for i in range(300)]
    found = RowEncoder({"a": "timestamp" if kind in TIMES else kind, "b": "number"}).fit(rows).plan_
    plan = Plan([dataclasses.replace(column, format=TIMES.get(kind, "")) for column in found])
    whole = RowEncoder(plan)
    expected = whole.learn_transform(rows)
    for size in (1, 2, 7):
        encoder = RowEncoder(plan)
        parts = [encoder.learn_transform(rows[i : i + size]) for i in range(0, len(rows), size)]
        np.testing.assert_array_equal(np.vstack(parts), expected)
        assert encoder.to_bytes() == whole.to_bytes()
    seen = whole.transform(rows)
    np.testing.assert_array_equal(np.vstack([whole.transform([row]) for row in rows]), seen)
