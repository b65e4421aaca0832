"""Stored values of every kind, forged: changed in their structure with the checksums made right, and then used.

The law: a forged file is a ValueError, or what it loads works: it predicts, learns and can be saved again. It never
crashes, hangs, or takes more memory than 100 MB and 20 times its size.

The file is long because what is forged and how its use is tried must know the same kinds of values.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import hashlib
import json
import math
import os
import random
import re
import struct
import tempfile
import warnings
from typing import Any

import numpy as np
import streaming
from parts import agree, cut, examples, fitted, stream, width
from scipy.sparse import csr_array, csr_matrix, issparse
from sklearn.base import clone
from test_estimators import FOUND, MANY, data, made

from gossamer import (
    AutoClassifier,
    AutoRegressor,
    Learner,
    Mixture,
    NewtonClassifier,
    NewtonRegressor,
    OnlineScaler,
    PerTarget,
    RowEncoder,
    SILKClassifier,
    SILKRegressor,
    pipeline,
    store,
)
from gossamer.budgets import Auto, Fourier, Merge, Nystrom, Oldest, Project, Smallest
from gossamer.drift import DriftAlarm
from gossamer.kernels import Additive, Exponential, Gaussian, Kernel
from gossamer.losses import Hinge, Multiclass, Several, Softmax, Squared
from gossamer.mixture import MixedLearner
from gossamer.rows.pending import Pending
from gossamer.rules import SVMD, Gradient, Implicit, Perceptron
from gossamer.store import files
from gossamer.video import BackgroundSubtractor

#: What an error about rows, rather than about the model, begins with.
OF_ROWS = re.compile(
    r"The '(X|y|frame|classes|time|ids)' parameter of |"
    r"The '(base|weights|products|differences)' parameter of Additive must be "
    r"(given for each of|pairs of) the \d+ (coordinates|features)|"
    r"The 'columns' parameter of RowEncoder must be among the columns "
)
#: What loading may take: as much as this, and so many times the file.
ROOM, FACTOR = 100 * 2**20, 20


# ------------------------------------------------------------------------------------------------------- stored values


def taught(learner: Learner, rows: int = 12) -> Learner:
    X, y = stream(learner.loss, rows, seed=2)
    X = fitted(learner.kernel, X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        learner.learn(X, cut(y, slice(None)))
    return learner


def learners() -> dict[str, Learner]:
    """One with each kernel, loss, rule and budget, compiled and in NumPy; copies, to be changed."""
    return copy.deepcopy(_learners())


@functools.cache
def _learners() -> dict[str, Learner]:
    found = {}
    budget = Smallest(5)
    for backend in ("auto", "numpy"):
        for kernel in examples("kernel", one_each=True):
            found[f"{kernel}, {backend}"] = (kernel, Squared(), Implicit(C=0.5), budget)
        for loss in examples("loss", one_each=True):
            if agree(loss, Gradient(0.3, 0.1), budget):
                found[f"{loss}, {backend}"] = (Gaussian(0.5), loss, Gradient(0.3, 0.1), budget)
        for rule in examples("rule", one_each=True):
            loss = next(loss for loss in (Hinge(), Squared()) if agree(loss, rule))
            found[f"{rule}, {backend}"] = (Gaussian(0.5), loss, rule, budget)
        for budget_ in examples("budget", one_each=True):
            rule = Implicit(C=0.5) if agree(Hinge(), Implicit(C=0.5), budget_) else Perceptron()
            found[f"{budget_}, {backend}"] = (Gaussian(0.5), Hinge(), rule, budget_)
        for several in (Softmax(4), Multiclass()):
            found[f"{several}, Project, {backend}"] = (Gaussian(0.5), several, Gradient(0.3, 0.1), Project(4))
            found[f"{several}, implicit, {backend}"] = (Gaussian(0.5), several, Implicit(C=0.5), budget)
        found[f"SVMD, Merge, {backend}"] = (Gaussian(0.5), Hinge(), SVMD(), Merge(4))
        found[f"full Nystrom, {backend}"] = (Gaussian(0.5), Hinge(nu=0.3), Gradient(0.3, 0.1), Nystrom(3))
        found[f"Fourier, {backend}"] = (Gaussian(0.5), Hinge(), SVMD(), Fourier(6))
        found[f"Auto, {backend}"] = (Gaussian(0.5), Squared(), Implicit(C=0.5), Auto(3000.0, 4))
    made = {}
    for name, parts in found.items():
        options: dict[str, Any] = {"backend": name.rsplit(", ", 1)[1]}
        made[name] = taught(Learner(*parts, **options))
    trees = Additive(Exponential(0.5), products=((0, 1),))
    made["trees"] = taught(Learner(trees, Squared(), Implicit(C=0.5), None, backend="trees"))
    mean = {"average": True, "track_norm": True}
    made["mean"] = taught(Learner(Gaussian(0.5), Hinge(), Implicit(C=0.5), Smallest(4), **mean))
    made["mean, numpy"] = taught(Learner(Gaussian(0.5), Hinge(), Implicit(C=0.5), Oldest(4), **mean, backend="numpy"))
    made["not taught"] = Learner(Gaussian(0.5), Hinge(), Implicit(C=0.5), Project(4))
    return made


def mixtures() -> dict[str, Any]:
    """Mixtures of each kind: with their first experts, about to start all settings, and with a few of all settings."""
    found: dict[str, Any] = {}
    X, numbers = data(SILKRegressor, count=66)
    for kind, counts in {"two": (12, 63, 66), "three": (12,), "mean": (12, 63), "quantile": (12,)}.items():
        model: Any = AutoRegressor(budget=3, quantile=0.8 if kind == "quantile" else None)
        y = numbers
        if kind in ("two", "three"):
            model, y = AutoClassifier(budget=3), np.digitize(numbers, [0.0, 1.0][: 2 if kind == "three" else 1])
        for count in counts:
            model = clone(model).partial_fit(X[:count], y[:count])
            if count == 66:
                keep_experts(model.learner_, 3)
            found[f"{type(model).__name__}, {kind}, {count} rows"] = model
    X_moving = np.random.default_rng(0).uniform(0, 10, (512, 2))
    guessing = AutoClassifier(budget=3).partial_fit(X_moving, X_moving.sum(axis=1) > 8)
    keep_experts(guessing.learner_, 2, guesses=2)
    found["AutoClassifier, guesses"] = guessing
    found["AutoClassifier, kernel and limits"] = AutoClassifier(Gaussian(0.5), budget=3, memory=1e5, time=100.0)
    found["AutoRegressor, behind a scaler"] = pipeline(OnlineScaler(), AutoRegressor(budget=3)).partial_fit(
        X[:12], X[:12, 0]
    )
    classifiers = [SILKClassifier(Gaussian(0.5), budget=3), pipeline(OnlineScaler(), NewtonClassifier(budget=3))]
    found["Mixture, not taught"] = Mixture(classifiers)
    found["Mixture, classes"] = Mixture(classifiers).partial_fit(X[:12], np.arange(12) % 3)
    regressors = [SILKRegressor(Gaussian(0.5), budget=3), NewtonRegressor(Gaussian(0.5), budget=3)]
    found["Mixture, numbers"] = Mixture(regressors).partial_fit(X[:12], X[:12, 0])
    found["PerTarget, numbers"] = PerTarget(regressors[0]).partial_fit(X[:12], X[:12, :2])
    found["PerTarget, labels"] = PerTarget(classifiers[1]).partial_fit(X[:12], (X[:12, :2] > 0).astype(int))
    waiting = clone(regressors[0]).partial_fit(X[:12], X[:12, 0])
    waiting.predict(csr_array(np.where(X[:4] > 0, X[:4], 0.0)), ids=[1, 2, "c", "d"])
    found["sparse rows wait"] = waiting
    return found


def keep_experts(learner: MixedLearner, count: int, guesses: int = 0) -> None:
    """Leave the heaviest experts only, and some that guess: a file of all of them is large."""
    state = learner.state()
    order, guess = np.argsort(-state.weights), np.array(state.guesses)
    best = [*order[~guess[order]][:count], *np.flatnonzero(guess)[:guesses]]
    assert len(best) == count + guesses
    lists = {
        name: [getattr(state, name)[i] for i in best] for name in ("settings", "trials", "asleep", "guesses", "experts")
    }
    arrays = {name: getattr(state, name)[best] for name in ("opinions", "sleeping", "credits", "shifts")}
    learner.restore(state.replace(**lists, **arrays, weights=state.weights[best] / state.weights[best].sum()))


@functools.cache
def subjects() -> dict[str, bytes]:
    """Stored values by name: small, so that thousands can be forged in a second."""
    values: dict[str, Any] = dict(learners())
    for part in FOUND:
        X, y = data(part, classes=3 if part in MANY else 2, count=12)
        values[part.__name__] = made(part, budget=4).partial_fit(X, y)
        values[f"{part.__name__}, behind a scaler"] = pipeline(OnlineScaler(), made(part, budget=4)).partial_fit(X, y)
        values[f"{part.__name__}, not taught"] = made(part, budget=4)
    X, y = data(SILKRegressor, count=12)
    values |= mixtures() | streaming.streaming_values()
    values["scaler"] = OnlineScaler(forget=0.1).partial_fit(X)
    values["two classes"] = SILKClassifier(Gaussian(0.5), budget=4, average=True).partial_fit(X, y > 0)
    logistic = SILKClassifier(Gaussian(0.5), loss="logistic")
    values["probabilities"] = logistic.partial_fit(X, y > 0, classes=[False, True])
    frames = np.random.default_rng(0).integers(0, 256, (3, 6, 5, 3)).astype(np.uint8)
    for name, options in {"video": {}, "video, NORMA": {"rule": "norma", "nu": 0.1, "features": "bgr"}}.items():
        video = BackgroundSubtractor(budget=2, threads=1, every=2, **options)
        for frame in frames:
            video.apply(frame)
        values[name] = video
    values["video, nothing seen"] = BackgroundSubtractor(budget=2, threads=1)
    schema = {"features": [{"name": "a", "kind": "number"}], "target": None}
    model = values["SILKClassifier, behind a scaler"]
    counts = {"row": 12, "metrics": {"errors": 3, "loss": 0.5}}
    values["checkpoint"] = {"kind": "gossamer checkpoint", "version": 1, "schema": schema, "model": model, **counts}
    return {name: store.dumps(value) for name, value in values.items() if storable(value)}


def storable(value: Any) -> bool:
    try:
        store.dumps(value)
    except ValueError:
        return False  # a function of a user
    return True


# ------------------------------------------------------------------------------------------------------------- forging


def split(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the arrays of a file."""
    length = struct.unpack("<I", raw[12:16])[0]
    return json.loads(raw[24 : 24 + length]), raw[24 + length + 32 : -32]


def sealed(header: Any, arrays: bytes = b"") -> bytes:
    """A file with any header and arrays, and good checksums."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    start = files.MAGIC + struct.pack("<IIQ", 1, len(text), 24 + len(text) + 32 + len(arrays) + 32) + text
    start += hashlib.sha256(start).digest() + arrays
    return start + hashlib.sha256(start).digest()


def places(node: Any) -> list[tuple[Any, Any]]:
    """Every place in a header, as a container and a key."""
    keys = node.keys() if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in [(node, key), *places(node[key])]]


NUMBERS = [
    0, 1, -1, 2, 3, 5, 7, 64, 100, 255, 1000, 65535, 65536, 10**6, 2**31 - 1, 2**31, -(2**31), 2**32, 10**9, 10**12,
    2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.0, 0.5, -0.5, 1.0, 1.5, 1e-300, 5e-324, 1e-9, 1e9,
    1e150, 1e300, 1.7976931348623157e308, -1e300,
]  # fmt: skip
WORDS = [
    "", "?", "scale", "auto", "sparse", "native", "numpy", "trees", "constant", "inverse_sqrt", "hinge", "logistic",
    "squared_hinge", "squared", "huber", "pinball", "epsilon_insensitive", "gaussian", "linear", "project", "project:3",
    "silk", "norma", "luma", "bgr", "<f4", "<f8", "<i8", "|b1", "<U3", "array", "dict", "object", "inf", "nan", "-inf",
]  # fmt: skip


@functools.cache
def class_names() -> list[str]:
    found: set[str] = set()
    for raw in subjects().values():
        for node, key in places(split(raw)[0]):
            if key == "class":
                found.add(node[key])
    return sorted(found)


@functools.cache
def learned_names() -> list[str]:
    found: set[str] = set()
    for raw in subjects().values():
        for node, key in places(split(raw)[0]):
            if key in ("learned", "parameters") and isinstance(node[key], dict):
                found.update(node[key])
    return sorted(found)


def odd(rng: random.Random, count: int) -> Any:
    """Something that may stand anywhere."""
    kind = rng.randrange(12)
    if kind < 4:
        return rng.choice(NUMBERS)
    if kind == 4:
        return rng.choice([None, True, False, {}, []])
    if kind == 5:
        return rng.choice(WORDS)
    if kind == 6:
        return {"type": "float", "value": rng.choice(["nan", "inf", "-inf"])}
    if kind == 7:
        return {"type": "array", "index": rng.randrange(max(1, count))}
    if kind == 8:
        return {"type": "object", "class": rng.choice(class_names()), "parameters": {}}
    if kind == 9:
        return [rng.choice(NUMBERS) for _ in range(rng.randrange(4))]
    if kind == 10:
        return {"type": "scalar", "dtype": rng.choice(["<f8", "<i8", "<f4", "|b1"]), "value": rng.choice(NUMBERS)}
    return {"type": "tuple", "items": [rng.choice(NUMBERS) for _ in range(rng.randrange(4))]}


def nearby(rng: random.Random, value: Any) -> Any:
    """A value of the same kind as one that stands there: these get furthest."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, -value, 2 * value, value * 1000, *NUMBERS])
    if isinstance(value, float):
        floats = [number for number in NUMBERS if type(number) is float]
        return rng.choice([value * 2, -value, value * 1e9, value * 1e-9, *floats])
    return rng.choice(WORDS) if isinstance(value, str) else value


def change_header(rng: random.Random, header: dict[str, Any]) -> None:
    """One change of the structure."""
    found = places(header)
    node, key = rng.choice(found)
    how, table = rng.randrange(10), header.get("arrays")
    count = len(table) if isinstance(table, list) else 0
    if how < 4:
        value = nearby(rng, node[key])
        node[key] = value if value is not node[key] else odd(rng, count)
    elif how < 6:
        node[key] = odd(rng, count)
    elif how == 6:
        del node[key]
    elif how == 7:
        other, place = rng.choice(found)
        with contextlib.suppress(LookupError, TypeError):  # one may lie inside the other
            node[key], other[place] = copy.deepcopy(other[place]), copy.deepcopy(node[key])
    elif how == 8 and isinstance(node, list):
        node.insert(rng.randrange(len(node) + 1), copy.deepcopy(rng.choice(node)))
    else:
        named = [(at, name) for at, name in found if name in ("learned", "parameters") and isinstance(at[name], dict)]
        if named:
            node, key = rng.choice(named)
            node[key][rng.choice(learned_names())] = odd(rng, count)
    for node, key in found:
        if key == "class" and isinstance(node, dict) and rng.random() < 0.02:
            node[key] = rng.choice(class_names())


VALUES = {
    "f": [0.0, -1.0, 1.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 1e-300, 5e-324, 1e9, 0.5],
    "i": [0, 1, -1, 2, 3, 100, 2**31, 2**62, -(2**62)],
    "u": [0, 1, 2, 255],
    "b": [0, 1],
}


def change_array(rng: random.Random, header: dict[str, Any], arrays: bytes) -> bytes:
    """One change of an array: entries, shape, type, or places with another."""
    table, pieces, start = header["arrays"], [], 0
    for entry in table:
        size = np.dtype(entry["dtype"]).itemsize * math.prod(entry["shape"])
        pieces.append(np.frombuffer(arrays[start : start + size], entry["dtype"]).reshape(entry["shape"]).copy())
        start += size
    if not pieces:
        return arrays
    i = rng.randrange(len(pieces))
    array, how = pieces[i], rng.randrange(12)
    kind = array.dtype.kind
    if how < 5 and array.size and kind in VALUES:
        value = rng.choice(VALUES[kind])
        if kind in "iu":
            value = max(np.iinfo(array.dtype).min, min(np.iinfo(array.dtype).max, value))
        if rng.random() < 0.8:
            array.flat[rng.randrange(array.size)] = value
        else:
            array[...] = value
    elif how == 5 and array.size:
        pieces[i] = array * array.dtype.type(rng.choice([2, 1000, 0])) if kind in "fiu" else array
    elif how == 6 and array.ndim:
        side = rng.randrange(array.ndim)
        pieces[i] = np.delete(array, slice(-1, None), axis=side)
    elif how == 7 and array.ndim and array.size:
        side = rng.randrange(array.ndim)
        pieces[i] = np.concatenate([array, np.take(array, [0], axis=side)], axis=side)
    elif how == 8:
        pieces[i] = array.reshape(rng.choice([(-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1]]))
    elif how == 9 and kind in "fiub":
        pieces[i] = array.astype(rng.choice(["<f4", "<f8", "<i8", "|b1", "|u1", "<u2"]))
    elif how == 10:
        j = rng.randrange(len(pieces))
        pieces[i], pieces[j] = pieces[j], pieces[i]
    elif array.ndim:
        pieces[i] = array[rng.choice([slice(0, 0), slice(None, None, -1)])].copy()
    for entry, piece in zip(table, pieces, strict=True):
        entry["dtype"], entry["shape"] = piece.dtype.str, list(piece.shape)
    return b"".join(np.ascontiguousarray(piece).tobytes() for piece in pieces)


@np.errstate(all="ignore")
def forge(rng: random.Random, raw: bytes) -> bytes:
    """A stored value with one to three changes; most have good checksums."""
    how = rng.randrange(20)
    if how == 0:  # bytes, anywhere
        changed = bytearray(raw)
        for _ in range(rng.randrange(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return bytes(changed[: rng.choice([len(raw), len(raw), rng.randrange(len(raw))])])
    header, arrays = split(raw)
    if how == 1:  # bytes of the header
        text = bytearray(json.dumps(header).encode())
        for _ in range(rng.randrange(1, 4)):
            text[rng.randrange(len(text))] = rng.choice(b'0123456789.-e,:"{}[]tfn ')
        return sealed(bytes(text), arrays)
    if how == 2 and arrays:  # bytes of the arrays
        changed = bytearray(arrays)
        for _ in range(rng.randrange(1, 9)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        return sealed(header, bytes(changed))
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        if not places(header):
            break
        if rng.random() < 0.4:
            with contextlib.suppress(ValueError, TypeError, LookupError, AttributeError, OverflowError):
                arrays = change_array(rng, header, arrays)  # unless an earlier change has left no table of arrays
        else:
            change_header(rng, header)
    return sealed(header, arrays)


# --------------------------------------------------------------------------------------------------------------- using


class UnusableError(Exception):
    """What was loaded did not work."""


def use(value: Any) -> None:
    """Predict, learn, predict and save with everything that was loaded; only rows may be refused."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            store.loads(store.dumps(value))
        except ValueError as error:  # the limit may have no room for the threads of a second model
            if "could not start" not in str(error):
                raise
        for found in models(value):
            work(found)
        store.dumps(value)


def models(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [model for item in value.values() for model in models(item)]
    if isinstance(value, (list, tuple)):
        return [model for item in value for model in models(item)]
    return [value]


def work(model: Any) -> None:
    if isinstance(model, Learner):
        X, y = rows_of(model)
        when = {} if model.half_life is None else {"time": (model._time or 0.0) + np.arange(X.shape[0])}
        allowed(lambda: model.score(X))
        allowed(lambda: model.score(X, average=model.average is not None))
        allowed(lambda: model.learn(X, y, **when))
        one = X[[0]].toarray()[0] if issparse(X) else X[0]
        then = {} if model.half_life is None else {"time": model._time or 0.0}
        allowed(lambda: [model.learn_one(one, None if y is None else y[0], **then), model.score_one(one)])
        allowed(lambda: [model.points, model.coefs, model.norm, model.level, model.discarded, repr(model)])
        if isinstance(model, MixedLearner):
            allowed(lambda: [model.describe(setting) for setting, _, _ in model.experts()])
            if model.kind == "value":
                allowed(lambda: model.variance(X))
    elif isinstance(model, OnlineScaler):
        X = np.ones((3, model.__dict__.get("n_features_in_", 2)))
        when = streaming.clock(model, 3)
        allowed(lambda: [model.partial_fit(X, **when), model.transform(X), model.var_])
        when = streaming.clock(model, 3)
        allowed(
            lambda: [model.learn_transform(csr_matrix(X) if not (model.with_mean or when) else X, **when), model.var_]
        )
    elif isinstance(model, BackgroundSubtractor):
        shape = tuple(model.state()["shape"]) or (6, 5, 3)
        frame = np.arange(math.prod(shape), dtype=np.uint8).reshape(shape)
        allowed(lambda: [model.score(frame), model.apply(frame), model.getBackgroundImage(), model.compensate(frame)])
        allowed(lambda: [model.apply(frame, 0.01), model.apply(frame, 0), model.state(), repr(model)])
    elif isinstance(model, Mixture):
        work_mixture(model)
    elif isinstance(model, DriftAlarm):
        streaming.work_alarm(model, allowed)
    elif isinstance(model, RowEncoder):
        streaming.work_encoder(model, allowed)
    elif isinstance(model, Pending):
        streaming.work_pending(model, allowed)
    elif isinstance(model, PerTarget):
        X = np.ones((4, model.__dict__.get("n_features_in_", 2))) * np.linspace(0.1, 0.9, 4)[:, None]
        y = np.tile([[0], [1], [1], [0]], (1, len(model.__dict__.get("models_", [0]))))
        allowed(lambda: [model.predict_learn(X, y), model.partial_fit(X, y), model.predict(X), repr(model)])
    elif hasattr(model, "predict_learn"):
        work_estimator(model)
    elif isinstance(model, Kernel):
        X = np.full((3, width(model)), 0.5)
        allowed(lambda: [model(X, X), model.diag(X)])


def work_estimator(model: Any) -> None:
    steps = [step for _, step in getattr(model, "steps", [("", model)])]
    last, encoders = steps[-1], [step for step in steps if isinstance(step, RowEncoder)]
    learner = last.__dict__.get("learner_")
    X, _ = rows_of(learner or last._start())
    X = np.ones((4, last.__dict__.get("n_features_in_", X.shape[1]))) * np.linspace(0.1, 0.9, 4)[:, None]
    if encoders:
        X = streaming.mixed_rows(encoders[0])[:4]
    y: Any = np.array([0.5, 1.0, 0.0, 0.25])
    if "classes_" in last.__dict__:
        y = last.classes_[np.arange(4) % len(last.classes_)]
    elif hasattr(last, "fit_predict"):
        y = None
    elif hasattr(last, "decision_function"):
        y = np.array(["a", "b", "a", "b"])
    if learner is not None and isinstance(learner.loss, Several):
        y = np.tile(y[:, None], learner.loss.targets)
    if learner is not None:
        allowed(lambda: [model.predict(X), repr(model)])
    allowed(lambda: model.predict_learn(X, y, **streaming.clock(model, 4)))
    allowed(lambda: model.partial_fit(X, y, **streaming.clock(model, 4)))
    if "learner_" in last.__dict__:
        allowed(lambda: [model.predict(X), last.support_vectors_, last.dual_coef_, last.norm_, last.n_seen_])
        for name in ("decision_function", "score_samples", "predict_proba"):
            if hasattr(model, name):
                allowed(lambda name=name: getattr(model, name)(X))
        if y is None or np.ndim(y) == 1:
            streaming.work_certain(model, X, y, allowed)
    if "_late" in last.__dict__:
        streaming.work_late(model, last, X, y, allowed)


def work_mixture(model: Mixture) -> None:
    count = model.__dict__.get("n_features_in_", 2)
    X = np.ones((4, count)) * np.linspace(0.1, 0.9, 4)[:, None]
    y: Any = np.array([0.5, 1.0, 0.0, 0.25])
    if "classes_" in model.__dict__:
        y = model.classes_[np.arange(4) % len(model.classes_)]
    elif model._estimator_type == "classifier":
        y = np.array(["a", "b", "a", "b"])
    if "models_" in model.__dict__:
        allowed(lambda: [model.predict(X), model.weights_, repr(model)])
    allowed(lambda: model.predict_learn(X, y, **streaming.clock(model, 4)))
    allowed(lambda: model.partial_fit(X, y, **streaming.clock(model, 4)))
    if "models_" in model.__dict__:
        allowed(lambda: [model.predict(X), model.weights_, hasattr(model, "predict_proba") and model.predict_proba(X)])


def rows_of(learner: Learner) -> tuple[Any, Any]:
    """Rows and targets that a learner takes: its own points, if it has some."""
    points = learner.points
    X = points[:3] if hasattr(points, "shape") and points.shape[0] and points.shape[1] else None
    if X is None:
        X = fitted(learner.kernel, np.linspace(0.1, 0.9, 9).reshape(3, 3))
    count, target = X.shape[0], learner.loss.target
    if target == "none":
        return X, None
    if isinstance(learner.loss, Several):
        return X, np.ones((count, learner.loss.targets))
    known = max(1, getattr(learner.loss, "classes", None) or learner.known or 2)
    y = {"label": np.arange(count) % min(known, 5), "binary": (-1.0) ** np.arange(count), "real": np.arange(count)}
    return X, y[target].astype(np.float64)


def allowed(act: Any) -> None:
    """Do it; an error about the rows is one of these rows, every other one is what the law forbids."""
    try:
        act()
    except ValueError as error:
        if not OF_ROWS.match(str(error)):
            raise UnusableError(f"{type(error).__name__}: {error}") from error


def attempt(raw: bytes) -> str:
    """Load and use forged bytes: "refused" or "works"; everything else is raised."""
    with tempfile.TemporaryDirectory() as empty, contextlib.chdir(empty):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                value = store.loads(raw)
        except ValueError:
            return "refused"
        finally:
            if os.listdir(empty):
                raise UnusableError(f"loading has made the files {os.listdir(empty)}")
        use(value)
    return "works"
