"""Values at the edges of what a column may hold."""

import numpy as np
import pytest

from gossamer import RowEncoder
from gossamer.rows.parse import parse_time


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
