"""Tables with a column of every kind, for the laws of the encoder."""

import numpy as np
import pandas as pd

WORDS = ["red", "blue", "car", "house", "big", "small", "tree", "sky", "Öl", "数据"]


def make_frame(rows=400, seed=0):
    """A frame with gaps, and a column of every kind that the encoder finds."""
    rng = np.random.default_rng(seed)

    def gaps(values, share=0.1):
        return [None if gap else value for value, gap in zip(values, rng.random(rows) < share, strict=True)]

    seconds = rng.exponential(9e3, rows).cumsum().round()
    drift = (np.arange(rows) // 40)[:, None] + np.arange(4)
    return pd.DataFrame({
        "number": rng.normal(5.0, 3.0, rows),
        "holes": np.where(rng.random(rows) < 0.1, np.nan, rng.exponential(2.0, rows)),
        "sentinel": np.where(rng.random(rows) < 0.1, -999.0, rng.normal(20.0, 5.0, rows)),
        "boolean": rng.random(rows) < 0.4,
        "answer": gaps(rng.choice(["yes", "no"], rows)),
        "category": gaps(rng.choice(list("abcdef"), rows)),
        "drifting": [f"shop {rng.choice(row)}" for row in drift],
        "mixed": [str(x) if i % 5 else "n.d." for i, x in enumerate(rng.integers(0, 50, rows))],
        "text": gaps([" ".join(rng.choice(WORDS, 6)) for _ in range(rows)]),
        "timestamp": pd.Timestamp("2023-12-30") + pd.to_timedelta(seconds, unit="s"),
        "hour": rng.integers(0, 24, rows),
        "price": [f"$1,{x:03d}.50" for x in rng.integers(0, 999, rows)],
        "id": np.arange(rows),
        "constant": "x",
    })  # fmt: skip
