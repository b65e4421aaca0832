"""Writes store-v<N>.gsm, a file of the present format, and beside it, as JSON, what its models must say for ever.

Run once for a new version of the format: a file that exists is never written again.
"""

import json
from pathlib import Path

import numpy as np

from gossamer import Learner, NORMARegressor, SILKClassifier, SVMDDetector, store
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Gaussian, Laplace, Linear, Matern
from gossamer.losses import Huber
from gossamer.rules import Implicit


def say(model, X):
    """What a model says about rows."""
    said = getattr(model, "decision_function", None) or getattr(model, "score", None)
    return (model.predict if isinstance(model, NORMARegressor) else said)(X).tolist()


def main():
    here = Path(__file__).parent / f"store-v{store.VERSION}"
    if here.with_suffix(".gsm").exists():
        raise SystemExit(f"{here}.gsm exists, and must stay as it is")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0])
    names = np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]
    learner = Learner(
        Matern(2.5) * Linear(), Huber(0.5, nu=0.3), Implicit(C=2.0, reg=0.01), Oldest(5), average=True,
        track_norm=True, backend="numpy",
    )  # fmt: skip
    learner.learn(X, y)
    models = {
        "classifier": SILKClassifier(0.5 * Gaussian(0.5) + Linear(), budget=Smallest(6)).partial_fit(X, names),
        "regressor": NORMARegressor(Laplace("scale"), budget=6).partial_fit(X.astype(np.float32), y),
        "detector": SVMDDetector(Gaussian(np.float32(0.5)), nu=0.2, budget=6).partial_fit(X),
        "learner": learner,
    }
    store.save({**models, "position": 60}, here.with_suffix(".gsm"))
    rows = X[:5] + 0.1
    facts = {"rows": rows.tolist(), "said": {name: say(model, rows) for name, model in models.items()}}
    here.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
