"""Stored values of streams, to be forged: clocks, sparse rows, several targets, class weights, late labels, alarms."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from test_estimators import CLASSIFIERS, FOUND, data, made

from gossamer import (
    AdditiveRegressor,
    AutoClassifier,
    HalfLife,
    Learner,
    Mixture,
    NewtonClassifier,
    NewtonRegressor,
    NORMADetector,
    OnlineScaler,
    PerTarget,
    RowEncoder,
    SILKClassifier,
    SILKRegressor,
    pipeline,
)
from gossamer.budgets import Project, Smallest
from gossamer.drift import DriftAlarm
from gossamer.estimators.rescale import Rescaled
from gossamer.kernels import Additive, Gaussian, Linear, Matern
from gossamer.losses import Several, Squared, SquaredHinge, taxonomy
from gossamer.rows.pending import Pending
from gossamer.rules import Gradient, Implicit, Newton

#: Rows of every kind of column.
MIXED = [
    {"size": [1.5, None, 3.0, 1e6][i % 4], "shop": ["Rome", "Oslo", None, "Bonn"][i % 4], "open": i % 3 == 0,
     "note": f"late again {i}", "when": f"2026-03-{1 + i:02}T0{i % 9}:30:00", "hour": float(i % 24), "row": f"r{i}"}
    for i in range(12)
]  # fmt: skip
KINDS = {
    "hour": "cyclic:24",
    "note": "text:8",
    "shop": "category:places=2,hashed=2",
    "row": "ignored",
    "size": "number",
}


def streaming_values() -> dict[str, Any]:
    """By name; small."""
    X, numbers = data(SILKRegressor, count=12)
    two, times = numbers > 0, np.arange(12.0)
    found: dict[str, Any] = {}
    for part in FOUND:
        if "half_life" in inspect.signature(part).parameters:
            _, y = data(part, count=12)
            found[f"{part.__name__}, half-life"] = made(part, budget=4, half_life=5.0).partial_fit(X, y, time=times)
    clamped = {"budget": 4, "half_life": HalfLife("10s", late="clamp")}
    found["a clock that clamps"] = SILKRegressor(Gaussian(0.5), **clamped).partial_fit(X, numbers, time=times)
    scaler = OnlineScaler(half_life=7.0)
    found["a scaler with a clock"] = scaler.partial_fit(X, time=times)
    timed = pipeline(OnlineScaler(half_life=7.0), NewtonClassifier(Gaussian(0.5), budget=4, half_life=5.0))
    found["a pipeline with clocks"] = timed.partial_fit(X, two, time=times)
    experts = [SILKRegressor(Gaussian(0.5), budget=3, half_life=5.0), NewtonRegressor(budget=3, half_life=9.0)]
    found["a mixture with clocks"] = Mixture(experts).partial_fit(X, numbers, time=times)
    for part in CLASSIFIERS:
        if "class_weight" in inspect.signature(part).parameters and part.__name__.startswith(("SILK", "Newton")):
            for name, weight in {"balanced": "balanced", "by label": {True: 3.0, False: 0.5}}.items():
                model = made(part, budget=4, class_weight=weight)
                found[f"{part.__name__}, {name}"] = model.partial_fit(X, two)
    found["balanced, half-life"] = SILKClassifier(
        Gaussian(0.5), budget=4, class_weight="balanced", half_life=5.0
    ).partial_fit(X, two, time=times)
    found |= sparse_values(X, numbers) | several_values(X, numbers) | late_values(X, numbers)
    found["a wary detector"] = NORMADetector(Gaussian(0.5), budget=4, skip=0.05).partial_fit(X)
    rng = np.random.default_rng(0)
    found["an alarm"], found["an alarm that begins anew"] = DriftAlarm(memory=30), DriftAlarm(every=50, seed=3)
    found["a raised alarm"] = DriftAlarm(level=0.5)
    for name in ("an alarm", "an alarm that begins anew", "a raised alarm"):
        found[name].update(np.r_[rng.normal(size=20), rng.normal(4.0, size=40)])
    found["an alarm, nothing watched"] = DriftAlarm()
    found["an encoder"] = RowEncoder(KINDS, places=3, hashed=2, text_width=8).fit(MIXED)
    found["an encoder that found out"] = RowEncoder(start=12, places=3, hashed=2, text_width=8).fit(MIXED)
    found["an encoder, sparse"] = RowEncoder(KINDS, sparse=True, scale=False).fit(MIXED)
    found["an encoder, not taught"] = RowEncoder(KINDS)
    encoded = pipeline(RowEncoder(KINDS, places=2, hashed=2), SILKClassifier(Gaussian(0.5), budget=4))
    found["an encoder and a model"] = encoded.partial_fit(MIXED, two)
    found["a taxonomy"] = taxonomy({"animal": ["cat", "dog"], "plant": ["oak"]})
    rescaled = Rescaled(Additive(Matern(1.5, 0.2), products=((0, 1),)), Squared(), Implicit(C=0.5), None)
    rescaled.learn(X, numbers)
    found["rescaled"] = rescaled
    found["an additive model that rescales"] = AdditiveRegressor(budget=4, rescale=True).partial_fit(X, numbers)
    return found


def sparse_values(X: Any, numbers: Any) -> dict[str, Any]:
    wide = csr_matrix(np.where(np.abs(np.hstack([X, X[:, ::-1] ** 2])) > 0.6, np.hstack([X, X]), 0.0))
    found: dict[str, Any] = {}
    for kernel in (Linear(), Gaussian(0.5)):
        for rule, budget in ((Implicit(C=0.5), Smallest(5)), (Newton(), Project(4)), (Gradient(0.3, 0.1), None)):
            learner = Learner(kernel, Squared(), rule, budget, average=budget is None)
            learner.learn(wide, numbers)
            found[f"sparse, {kernel}, {type(rule).__name__}"] = learner
    found["sparse rows, classes"] = SILKClassifier(Gaussian(0.5), budget=4).partial_fit(wide, numbers > 0)
    found["sparse rows, numbers"] = NewtonRegressor(Gaussian(0.5), budget=4).partial_fit(wide, numbers)
    found["sparse rows, a detector"] = NORMADetector(Gaussian(0.5), budget=4).partial_fit(wide)
    found["sparse rows, a scaler"] = OnlineScaler(forget=0.1, with_mean=False).partial_fit(wide)
    model = pipeline(OnlineScaler(with_mean=False), SILKClassifier(Linear(), budget=4))
    found["sparse rows, a pipeline"] = model.partial_fit(wide, numbers > 0)
    return found


def several_values(X: Any, numbers: Any) -> dict[str, Any]:
    both = np.column_stack([numbers, 3.0 - numbers])
    found: dict[str, Any] = {}
    for base, rule in ((Squared(), Implicit(C=0.5)), (SquaredHinge(), Gradient(0.3, 0.1)), (Squared(), Newton())):
        for backend in ("auto", "numpy"):
            learner = Learner(Gaussian(0.5), Several(base, 2), rule, Smallest(4), backend=backend)
            learner.learn(X, both if base == Squared() else np.sign(both))
            found[f"several, {base}, {type(rule).__name__}, {backend}"] = learner
    found["several numbers"] = SILKRegressor(Gaussian(0.5), budget=4).partial_fit(X, both)
    found["several numbers, second order"] = NewtonRegressor(Gaussian(0.5), budget=4).partial_fit(X, both)
    found["several labels"] = SILKClassifier(Gaussian(0.5), budget=4).partial_fit(X, (both > 1).astype(int))
    return found


def late_values(X: Any, numbers: Any) -> dict[str, Any]:
    pending = Pending(limit=9, ttl="1h")
    pending.add([1, "b", 3], X[:3], [0.5, "c", None], time=0.0)
    pending.join([1], [0.0], lambda rows, y: None, time=1.0)
    found: dict[str, Any] = {"rows that wait": pending, "no rows that wait": Pending()}
    for name, model, y in (
        ("numbers", SILKRegressor(Gaussian(0.5), budget=4), numbers),
        ("classes", NewtonClassifier(Gaussian(0.5), budget=4), np.where(numbers > 0, "a", "b")),
        ("a clock", SILKRegressor(Gaussian(0.5), budget=4, half_life=5.0), numbers),
        ("a pipeline", pipeline(OnlineScaler(), SILKClassifier(Gaussian(0.5), budget=4)), numbers > 0),
        ("a choice", AutoClassifier(budget=3), numbers > 0),
    ):
        when = {"time": 1.0} if name == "a clock" else {}
        model.keep_pending(limit=20)
        model.predict(X, ids=np.arange(12), **when)
        model.learn_labels([3, 4, 5, 0], y[[3, 4, 5, 0]], **when)
        found[f"late labels, {name}"] = model
    return found


# --------------------------------------------------------------------------------------------------------------- using


def work_alarm(model: DriftAlarm, allowed: Callable[..., None]) -> None:
    allowed(lambda: [model.update([0.5, 0.5, 3.0]), model.strength, model.row, model.raised])
    allowed(lambda: [model.restart(), model.update(np.arange(20.0))])


def mixed_rows(model: RowEncoder) -> list[dict[str, Any]]:
    """Rows that have all columns that an encoder knows, with values of every kind."""
    names = [str(name) for name in np.ravel(model.__dict__.get("feature_names_in_", list(MIXED[0])))]
    values = [1.5, "Rome", None, True, "2026-03-01T05:00:00"]
    return [{name: values[(i + j) % 5] for j, name in enumerate(names)} for i in range(5)]


def work_encoder(model: RowEncoder, allowed: Callable[..., None]) -> None:
    rows = mixed_rows(model)
    if "plan_" in model.__dict__:
        allowed(lambda: [model.transform(rows), str(model.describe()), model.get_feature_names_out()])
    allowed(lambda: [model.learn_transform(rows), model.partial_fit(rows), model.transform(rows[:1])])


def work_pending(model: Pending, allowed: Callable[..., None], width: int = 2) -> None:
    now = max(model.now, 0.0)
    allowed(lambda: [len(model), model.knows(1), dict(model.counts)])
    allowed(lambda: model.add(["new", 10**6], np.ones((2, width)), [1.0, "a"], time=now))
    allowed(lambda: model.join(["new", "b", 3], [1.0, 0.0, 1.0], lambda rows, y, keys=None: None, time=now))


def work_late(model: Any, last: Any, X: Any, y: Any, allowed: Callable[..., None]) -> None:
    """Show rows, and give them and older ones their labels."""
    if y is None or isinstance(X, list):
        return
    names = np.array([f"n{i}" for i in range(len(X))])
    now = max([last.pending_.now, 0.0, *(float(times[-1]) for times in clock(model, 1).values())])
    allowed(lambda: model.predict(X, ids=names, time=now))
    allowed(lambda: [model.learn_labels(names, y, time=now), len(last.pending_)])
    allowed(lambda: model.learn_labels([1, 2], y[:2], time=now))


def work_certain(model: Any, X: Any, y: Any, allowed: Callable[..., None]) -> None:
    """Ask how sure it is, and learn while it says so."""
    methods = {"predict_set": "set", "predict_interval": "interval", "score_pvalue": "pvalue"}
    for name, method in methods.items():
        if hasattr(model, name):
            allowed(lambda name=name: getattr(model, name)(X))
            allowed(lambda method=method: model.predict_learn(X, y, method=method, **clock(model, 4)))


def clock(model: Any, rows: int) -> dict[str, Any]:
    """The ``time`` of rows for a model that forgets by the clock: that of the last row that it has seen, and later."""
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    steps += [step for expert in getattr(model, "experts", ()) for _, step in getattr(expert, "steps", [("", expert)])]
    if all(getattr(step, "half_life", None) is None for step in steps):
        return {}
    last = [0.0]
    for step in [*steps, *(vars(model).get("models_", ()) if isinstance(model, PerTarget) else ())]:
        for inside in [step, *(inner for _, inner in getattr(step, "steps", ()))]:
            known = [vars(inside).get(name) for name in ("_time", "time_")]
            known.append(getattr(vars(inside).get("learner_"), "_time", None))
            last += [float(value) for value in known if value is not None]
    return {"time": max(last) + np.arange(rows)}
