"""Values at the edges of what a column may hold."""

import random
import warnings

import numpy as np
import pytest

from gossamer import RowEncoder
from gossamer.rows.parse import parse_time, parse_times


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
