"""Streams of mixed rows for the tests and the campaigns: numbers with gaps, categories, booleans, dates."""

import datetime
import json

import numpy as np

from gossamer import store
from gossamer.serve.recipes import Recipe, join, make_encoder, make_model

COLUMNS = ["size", "shop", "open", "when", "note", "code"]
NOTES = ["new", "old, but kept well", "ünïcode 東京", ""]


def mixed_stream(task, rows=300, seed=0):
    """Rows as JSON has them, and labels for a task; a type changes now and then, and some names are left out."""
    rng = np.random.default_rng(seed)
    made, y = [], []
    begin = datetime.datetime(2024, 2, 28, 22, 15)
    for i in range(rows):
        shop = f"shop {int(rng.integers(12) + i // 100)}"
        size = float(rng.normal())
        when = begin + datetime.timedelta(minutes=17 * i)
        row = {
            "size": size if rng.random() > 0.1 else None,
            "shop": shop if rng.random() > 0.05 else None,
            "open": bool(rng.random() > 0.5) if rng.random() > 0.1 else None,
            "when": when.isoformat() if i % 40 else when.isoformat() + "+02:00",
            "note": None if rng.random() < 0.2 else NOTES[int(rng.integers(4))],
            "code": int(rng.integers(5)) if rng.random() > 0.03 else "n/a",
        }
        if i and rng.random() < 0.1:
            del row[COLUMNS[int(rng.integers(1, 6))]]
        good = (size > 0) == (len(shop) + int(shop[-1]) > 9)
        made.append(row)
        y.append(10 * size + 3 * good if task == "regression" else "up" if good else "down")
    return made, (None if task == "novelty" else y)


def learn_here(recipe, task, calls):
    """What a server learns from calls of (rows, labels), learned in this process: the bytes of its model."""
    encoder = make_encoder(Recipe(**recipe))
    model = None
    for rows, y in calls:
        if model is None:
            encoder.settle(rows)
            model = make_model(Recipe(**recipe), task, 0, encoder)
        Z = encoder.learn_transform(rows)
        model.predict_learn(Z) if y is None else model.predict_learn(Z, np.array(y))
    return store.dumps(join(encoder, model))


def body(rows, y=None, **more):
    """The body of a request."""
    return json.dumps({"rows": rows, **({} if y is None else {"y": y}), **more}).encode()
