"""The encoder in river: the features of the library, row by row; and a model behind it."""

import numpy as np
import pytest
from tables import make_frame

pytest.importorskip("river")

from gossamer import RowEncoder
from gossamer.river import RowEncoder as Face, SILKClassifier

FRAME = make_frame(80)
ROWS = FRAME.astype(object).where(FRAME.notna(), None).to_dict("records")


def test_features_are_those_of_the_library():
    plan = RowEncoder().fit(FRAME).plan_
    face, found = Face(plan), []
    for row in ROWS:
        found.append(list(face.transform_one(row).values()))
        face.learn_one(row)
    assert np.array_equal(found, RowEncoder(plan).learn_transform(FRAME))
    assert face.clone().encoder is None
    assert face.encoder.n_seen_ == 80


def test_a_model_learns_behind_it():
    """Strings, gaps and dates, which a model alone refuses; the first row decides."""
    model, wrong = Face() | SILKClassifier("gaussian:gamma=0.3", budget=64), 0
    for i in range(600):
        row = {"holes": ROWS[i % 80]["holes"], "timestamp": ROWS[i % 80]["timestamp"], "category": "abc"[i % 3]}
        wrong += (model.predict_one(row) != (i % 3 == 0)) * (i >= 300)
        model.learn_one(row, i % 3 == 0)
    assert wrong < 30
