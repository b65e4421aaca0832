"""Writes the files that must load for ever. Each is made once: a file that exists is never written again.

    python tests/data/make_store.py format     # store-v<N>.gsm: for a new version of the file format
    python tests/data/make_store.py release    # store-<version>.gsm: for a released version, one model of every kind

The first has a few models and beside it, as JSON, what they must say. The second has every estimator with several
budgets, learners with every budget, pipelines, scalers, models of banks as bytes, and background subtractors;
`tests/golden.py` hashes what they say and how they go on. (Models of the river face are pickled, not stored.)
"""

import argparse
import itertools
import json
from pathlib import Path

import numpy as np

import gossamer
from gossamer import Learner, NORMARegressor, OnlineScaler, SILKClassifier, SVMDDetector, budgets, pipeline, store
from gossamer.bank import ModelBank
from gossamer.budgets import Oldest, Smallest
from gossamer.kernels import Additive, Gaussian, Laplace, Linear, Matern, Spline
from gossamer.losses import Hinge, Huber, Multiclass, Squared
from gossamer.rules import Gradient, Implicit, Perceptron
from gossamer.video import BackgroundSubtractor

HERE = Path(__file__).parent


def fresh(name):
    """A path at which there is nothing yet."""
    path = HERE / name
    if path.exists():
        raise SystemExit(f"{path} exists, and must stay as it is")
    return path


def rows():
    """Rows of two features, numbers and three labels."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.sin(2 * X[:, 0])
    return X, y, np.array(["low", "middle", "high"])[np.digitize(y, [-0.5, 0.5])]


# ---------------------------------------------------------------------------------------------------------- the format


def say(model, X):
    """What a model says about rows."""
    said = getattr(model, "decision_function", None) or getattr(model, "score", None)
    return (model.predict if isinstance(model, NORMARegressor) else said)(X).tolist()


def write_format():
    here = fresh(f"store-v{store.VERSION}.gsm")
    X, y, names = rows()
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
    store.save({**models, "position": 60}, here)
    asked = X[:5] + 0.1
    facts = {"rows": asked.tolist(), "said": {name: say(model, asked) for name, model in models.items()}}
    here.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


# --------------------------------------------------------------------------------------------------------- the release

#: Budgets by name: small, so that all of them have had to give something up.
BUDGETS = {
    "Auto": budgets.Auto(memory=3000.0, start=4), "Forgetron": budgets.Forgetron(6), "Fourier": budgets.Fourier(4),
    "Merge": budgets.Merge(6), "Nystrom": budgets.Nystrom(6), "Oldest": Oldest(6), "Oldest by age": Oldest(age=9),
    "Project": budgets.Project(6), "Project by tolerance": budgets.Project(None, 0.3),
    "Random": budgets.Random(6, seed=3), "Smallest": Smallest(6), "Sublinear": budgets.Sublinear(0.9, 1.0, 0.35),
    "Unlimited": budgets.Unlimited(),
}  # fmt: skip


def accepted(call, *values, **named):
    """What a call gives, or None if it is refused."""
    try:
        return call(*values, **named)
    except (TypeError, ValueError):
        return None


def targets(name, y, labels):
    """What an estimator of this name learns, as arguments."""
    if name.endswith("Detector"):
        return ()
    return (y,) if name.endswith("Regressor") else (labels,)


def estimators():
    """The estimators of the package and their names."""
    for name in gossamer.__all__:
        part = getattr(gossamer, name)
        if isinstance(part, type) and hasattr(part, "predict_learn") and part is not gossamer.OnlinePipeline:
            yield name, part


def of_estimators(X, y, names):
    """Every estimator, with three classes where it can; the budget in turn a number, a name and none; then float32 rows
    and the mean of all hypotheses. SILKClassifier with every budget."""
    two = np.where(y > 0, "b", "aa")
    turns = itertools.cycle([6, "project:6", None])
    for (name, part), budget in zip(estimators(), turns, strict=False):
        model = part(budget=budget)
        if accepted(model.partial_fit, X, *targets(name, y, names)) is None:
            model = part(budget=budget).partial_fit(X, *targets(name, y, two))
        yield f"{name}, budget {budget}", model
        yield f"{name}, mean", part(budget=6, average=True).partial_fit(X.astype(np.float32), *targets(name, y, two))
    for budget, value in BUDGETS.items():
        model = SILKClassifier(Gaussian(0.5), budget=value)
        if accepted(model.partial_fit, X, two) is not None:
            yield f"SILKClassifier, {budget}", model


def of_learners(X, y):
    """A Learner with every budget, for one score and for several; a tracked norm, means, NumPy, trees."""
    signs, codes = np.where(y > 0, 1.0, -1.0), np.digitize(y, [-0.5, 0.5]).astype(float)
    own = {"Forgetron": Perceptron(), "Sublinear": Gradient(0.9, 1.0, "inverse_sqrt")}
    for name, budget in BUDGETS.items():
        for loss, values in ((Hinge(), signs), (Multiclass(), codes)):
            rule = own.get(name, Implicit(0.7, reg=0.02))
            learner = accepted(Learner, Gaussian(0.5), loss, rule, budget)
            if learner is not None and accepted(learner.learn, X, values) is not None:
                yield f"Learner, {type(loss).__name__}, {name}", learner
    options = {"mean": {"average": True}, "sparse mean": {"average": "sparse"}, "norm": {"track_norm": True}}
    for name, option in {**options, "NumPy": {"backend": "numpy"}}.items():
        learner = Learner(Laplace(0.5), Hinge(nu=0.3), Gradient(0.4, 0.05, fit_intercept=True), Oldest(6), **option)
        learner.learn(X, signs)
        yield f"Learner, {name}", learner
    for base in (Spline(), Matern(1.5, 0.5)):
        learner = Learner(Additive(base), Squared(), Implicit(0.7))
        learner.learn(np.abs(X), y)
        yield f"Learner, trees, {type(base).__name__}", learner


def of_banks(X, y, names):
    """Models of banks as bytes, with the model that they are copies of."""
    keys = np.array(["one", "two"])[np.arange(len(X)) % 2]
    models = {
        "classifier": SILKClassifier(Gaussian(0.5), budget="project:6"),
        "scaled classifier": pipeline(OnlineScaler(), gossamer.NORMAClassifier(Gaussian("scale"), budget=6)),
        "regressor": gossamer.SVMDRegressor(Gaussian(0.5), budget=6),
        "detector": gossamer.SILKDetector(Gaussian(0.5), nu=0.2, budget=6),
        "Forgetron": gossamer.KernelPerceptron(Gaussian(0.5), budget=budgets.Forgetron(4)),
        "in Python": gossamer.SILKRegressor(Gaussian(0.5), budget=budgets.Auto(memory=3000.0, start=4)),
    }
    for name, model in models.items():
        last = model[-1] if hasattr(model, "steps") else model
        labels = np.where(y > 0, "b", "aa") if name == "Forgetron" else names
        bank = ModelBank(model, threads=1)
        bank.learn(keys, X, *targets(type(last).__name__, y, labels))
        dumps = {key: np.frombuffer(bank.dump(key), dtype=np.uint8) for key in ("one", "two")}
        yield f"bank, {name}", {"model": model, "dumps": dumps}


def others(X, y, names):
    """Pipelines, scalers, and a subtractor that has seen some frames."""
    X = X * [1.0, 50.0] + [0.0, 1000.0]
    yield "pipeline", pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.5), budget="project:6")).partial_fit(X, names)
    yield "pipeline, numbers", pipeline(OnlineScaler(forget=0.02), NORMARegressor(budget=6)).partial_fit(X, y)
    yield "pipeline, detector", pipeline(OnlineScaler(), gossamer.NORMADetector(Gaussian(0.5), budget=6)).partial_fit(X)
    yield "scaler", OnlineScaler().partial_fit(X)
    yield "scaler, forgetting", OnlineScaler(forget=0.05).partial_fit(X)
    for rule in ("silk", "norma"):
        rng = np.random.default_rng(6)
        scene = rng.integers(60, 140, (9, 13, 3))
        subtractor = BackgroundSubtractor(rule, budget=4, threads=1)
        for _ in range(12):
            subtractor.apply(np.clip(scene + rng.normal(0, 3, scene.shape), 0, 255).astype(np.uint8))
        yield f"video, {rule}", subtractor


def write_release():
    here = fresh(f"store-{gossamer.__version__}.gsm")
    X, y, names = rows()
    X, y, names = X[:36], y[:36], names[:36]
    models = dict(of_estimators(X, y, names))
    models.update(of_learners(X, y))
    models.update(of_banks(X, y, names))
    models.update(others(X, y, names))
    store.save(models, here)
    print(f"{here.name}: {len(models)} models, {here.stat().st_size:,} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["format", "release"])
    {"format": write_format, "release": write_release}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
