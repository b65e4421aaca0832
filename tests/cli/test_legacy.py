"""Models that version 0.1 saved predict as they did, and go on learning."""

import csv
import io

import numpy as np
import pytest

from gossamer import OnlineScaler, SILKRegressor, pipeline, store
from gossamer.cli import main


@pytest.mark.parametrize("means", [False, True])
def test_models_of_version_01_predict_as_they_did(means, tmp_path, capsys):
    """The features of their schema: numbers, booleans, seconds, a feature per category and one for the others."""
    rng = np.random.default_rng(0)
    size, is_open = rng.normal(size=300), rng.random(300) < 0.5
    days = np.datetime64("2024-01-01") + rng.integers(0, 300, 300)
    shop = rng.choice(["Rome", "Oslo", "Bonn"], 300)
    seconds = days.astype("datetime64[s]").astype(float)
    X = np.column_stack([size, is_open, seconds, shop == "Rome", shop == "Oslo", shop == "Bonn"]).astype(float)
    y = size + (shop == "Rome")
    model = pipeline(OnlineScaler(), SILKRegressor("gaussian:gamma=0.2", budget=50)).partial_fit(X, y)
    features = [
        ["size", "number", []],
        ["open", "boolean", []],
        ["day", "date", []],
        ["shop", "text", ["Rome", "Oslo"]],
    ]
    old = {"kind": "gossamer model", "version": 1, "task": "regression", "model": model,
           "schema": {"features": features, "target": ["y", "number"]}}  # fmt: skip
    if means:
        old["means"] = {"sums": [X.sum(axis=0).tolist(), [300.0] * 6], "start": [0.0] * 6}
    store.save(old, tmp_path / "old.gsm")
    lines = [f"{a!r},{str(b).lower()},{d},{s},{v!r}" for a, b, d, s, v in
             zip(size.tolist(), is_open.tolist(), days, shop, y.tolist(), strict=True)]  # fmt: skip
    data = tmp_path / "d.csv"
    data.write_text("size,open,day,shop,y\n" + "\n".join([*lines, ",true,2024-02-01,Rome,1.0"]) + "\n")
    assert main(["predict", str(tmp_path / "old.gsm"), str(data)]) == 0
    made = [float(row["prediction"]) for row in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    gap = np.array(
        [[size.mean(), 1.0, np.datetime64("2024-02-01").astype("datetime64[s]").astype(float), 1.0, 0.0, 0.0]]
    )
    assert np.allclose(made, model.predict(np.vstack([X, gap])), rtol=1e-6)
    assert (
        main(["run", str(data), "--model", str(tmp_path / "old.gsm"), "--save", str(tmp_path / "new.gsm"), "--quiet"])
        == 0
    )
    assert store.load(tmp_path / "new.gsm")["version"] == 2
