"""Columns that have one value in the first rows and others later: a place is kept for them."""

import numpy as np
import pandas as pd
import pytest

from gossamer import RowEncoder

STARTS = {
    "zero": (0.0, 3.5), "word": ("off", "on"), "truth": (False, True), "answer": ("no", "yes"), "hour": (0, 6),
    "time": (pd.Timestamp("2024-01-01"), pd.Timestamp("2024-05-05 08:00")), "price": ("$1,000", "$2,000"),
}  # fmt: skip


@pytest.mark.parametrize("name", STARTS)
def test_a_column_that_starts_late_joins(name):
    """One value in all first rows, and then another: a feature shows it, in a width that stays."""
    first, then = STARTS[name]
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=1400), name: pd.Series([first] * 1200 + [first, then] * 100)})
    encoder = RowEncoder()
    before, after = encoder.learn_transform(frame[:1200]), encoder.learn_transform(frame[1200:])
    column = encoder.describe()[name]
    assert column.dormant
    assert "in the first 1,000 rows" in column.why
    assert before.shape[1] == after.shape[1] == 1 + len(column.features)
    assert np.ptp(before[-200:, 1:], axis=0).max() == 0.0
    later = after[100:, 1:]
    assert np.abs(later[::2] - later[1::2]).max(axis=1).min() > 0.1
    assert encoder.effective_width_ == 1
    assert RowEncoder.from_bytes(encoder.to_bytes()).describe()[name].dormant
