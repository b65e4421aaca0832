"""The logarithmic scale of skewed numbers."""

import numpy as np
import pandas as pd
import pytest

from gossamer import RowEncoder


def test_long_tails_are_scaled_as_logarithms():
    """Positive numbers with a long tail; a column of another shape, or one with a zero, is not. Any split, any sign."""
    rng = np.random.default_rng(0)
    tail, flat, zero = rng.lognormal(3.0, 1.0, 400), rng.normal(50.0, 5.0, 400), rng.exponential(1.0, 400)
    zero[7] = 0.0
    frame = pd.DataFrame({"tail": tail, "flat": flat, "zero": zero})
    encoder = RowEncoder().settle(frame)
    assert [column.log > 0.0 for column in encoder.plan_] == [True, False, False]
    frame.loc[399, "tail"] = -5.0
    found = encoder.learn_transform(frame)
    logs = np.arcsinh(frame["tail"].to_numpy() / encoder.plan_["tail"].log)
    expected = (logs[399] - logs[:399].mean()) / logs[:399].std()
    assert found[399, 0] == pytest.approx(max(expected, -5.0))
    other = RowEncoder(encoder.plan_).settle()
    assert np.array_equal(np.concatenate([other.learn_transform(frame[i : i + 7]) for i in range(0, 400, 7)]), found)
    assert np.array_equal(RowEncoder(encoder.plan_, scale=False).learn_transform(frame)[:, 0], frame["tail"])
    said = RowEncoder({"flat": "number:log=2.5"}).settle(frame)
    assert said.plan_["flat"].log == 2.5
    assert "logarithmic" in str(said.describe())
