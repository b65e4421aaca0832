"""The golden file: a hash of every number that the package computes, to prove that a change of the code changes none.

    python tests/golden.py make golden.json        # before the change
    python tests/golden.py compare golden.json     # after it: exit code 1 if a case differs or is missing
    python tests/golden.py show engine/native/float32/Gaussian/Hinge/Implicit/Project    # the hashes inside a case

A case is a text such as ``engine/native/float32/Gaussian/Hinge/Implicit/Project`` and the SHA-256 of the exact bytes of
its results, cut to 16 hex digits. Parts and estimators are found by the ``__all__`` of the public packages; the values
of their parameters stand here. A combination that the package refuses is no case. Hashes hold for one machine: BLAS,
NumPy and the compiler have a say in the last bit.

Only documented names are imported, and only public attributes are read, so that the script outlives any move of the
code. The file is long because it is one script that must run with any commit: it imports nothing else of the tests.
"""

from __future__ import annotations

import os

os.environ.setdefault("GOSSAMER_ISA", "avx2")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import contextlib
import functools
import hashlib
import importlib.util
import inspect
import io
import itertools
import json
import pickle
import re
import runpy
import signal
import struct
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.base import is_classifier, is_regressor

import gossamer
from gossamer import Learner, OnlineScaler, budgets, kernels, losses, merge, pipeline, rules, store, taxonomy
from gossamer.bank import ModelBank
from gossamer.evaluate import prequential
from gossamer.video import PLAIN, BackgroundSubtractor

#: What a case computes: names and values.
Items = Iterable[tuple[str, Any]]
#: A case: its name, and the function that computes it; None if the package refuses the combination.
Case = tuple[str, Callable[[], Items | None]]

DATA = Path(__file__).resolve().parent / "data"
#: How the engine's rows are cut into batches, and which of them have weights. The last are learned one by one.
CUTS = {0: (0, 1, 38, 50, 80, 96, 104), 1: (0, 7, 26, 50, 51, 66, 80, 81, 96, 104)}
WEIGHED, RESUMED = range(50, 80), 24
#: The same for NumPy, which takes ten times as long.
SHORT_CUTS, SHORT_WEIGHED, SHORT_RESUMED = (0, 1, 15, 22, 33, 39, 42), range(22, 33), 14


# -------------------------------------------------------------------------------------------------------------- hashes


def encode(value: Any) -> bytes:
    """The exact bytes of a value, with its type and shape. NumPy numbers count as numbers of Python."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        kind = value.dtype.newbyteorder("<")
        return f"array {kind.str} {value.shape} ".encode() + np.ascontiguousarray(value, kind).tobytes()
    if isinstance(value, np.ndarray):
        return f"objects {value.shape} ".encode() + encode(value.tolist())
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return b"float " + struct.pack("<d", value)
    if value is None or isinstance(value, (bool, int, str, bytes)):
        return f"{type(value).__name__} {value!r} ".encode()
    if isinstance(value, dict):
        return b"dict " + b"".join(encode(item) for pair in value.items() for item in pair) + b"end "
    if isinstance(value, (list, tuple)):
        return b"list " + b"".join(map(encode, value)) + b"end "
    raise TypeError(f"no bytes for {type(value).__name__}: {value!r}")


def digest(value: Any) -> str:
    return hashlib.sha256(encode(value)).hexdigest()[:16]


def compute(case: Callable[[], Items | None]) -> list[tuple[str, Any]] | None:
    """The items of a case, without warnings: diverging models are cases too."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        items = case()
        return None if items is None else list(items)


# --------------------------------------------------------------------------------------------------------------- parts


def user_kernel(A: Any, B: Any) -> Any:
    """A kernel as a user writes it."""
    A, B = np.asarray(A), np.asarray(B)
    return (1 + (A[:, None, :] * B[None, :, :]).sum(axis=2) / 4) ** 2


def user_schedule(t: Any) -> Any:
    """A schedule as a user writes it."""
    return (1 + t / 10) ** -0.75


COST = ((0.0, 1.0, 2.0, 2.0), (1.0, 0.0, 2.0, 2.0), (2.0, 2.0, 0.0, 0.5), (2.0, 2.0, 0.5, 0.0))
LABELS = ((2.0, 1.0, 0.0, 0.0), (1.0, 2.0, 0.0, 0.0), (0.0, 0.0, 1.5, 1.0), (0.0, 0.0, 1.0, 1.5))

#: Settings of the parts: the first goes into every combination, the others into those with the Gaussian kernel (a
#: kernel's into those with a few losses and rules). A part that is not here is made without arguments, or with a size.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "Additive": [
        {"base": kernels.Spline()}, {"base": kernels.Exponential(0.7)}, {"base": kernels.Gaussian(0.4)},
        {"base": kernels.Matern(1.5, 0.5), "products": ((0, 1), (1, 1)), "differences": ((0, 1),)},
        {"base": (kernels.Linear(), kernels.Spline(0), kernels.Matern(3.5)), "weights": (1.0, 0.5, 2.0)},
    ],
    "Custom": [{"function": user_kernel}],
    "Exponential": [{"length": 0.7}],
    "Gaussian": [{"gamma": 0.4}, {"gamma": "scale"}],
    "Laplace": [{"gamma": 0.4}, {"gamma": "scale"}],
    "Matern": [{"nu": 1.5, "length": 0.7}, {"nu": 0.5}, {"nu": 2.5}, {"nu": 4.5}],
    "Polynomial": [{"degree": 2, "gamma": 0.3}, {"degree": 3, "gamma": 0.2, "coef0": 0.0}],
    "Product": [{"left": kernels.Gaussian(0.4), "right": kernels.Linear()}],
    "Scaled": [{"base": kernels.Gaussian(0.4), "factor": 0.7}],
    "Spline": [{"order": 1}, {"order": 0}, {"order": 3}],
    "Sum": [{"left": kernels.Gaussian(0.4), "right": kernels.Linear()}],
    "EpsilonInsensitive": [{}, {"epsilon": 0.2, "nu": 0.3}],
    "Hinge": [{}, {"margin": 0.0}, {"nu": 0.3}],
    "Huber": [{"delta": 0.5}, {"delta": 0.5, "standard": True}, {"nu": 0.3}, {"nu": 0.3, "adapts_by": "gradient"}],
    "Multiclass": [
        {}, {"step": "runner_up"}, {"margin": 0.5}, {"classes": 4}, {"cost": COST},
        {"cost": COST, "label_kernel": LABELS},
    ],
    "Novelty": [{}, {"nu": 0.3}],
    "Pinball": [{"quantile": 0.7}],
    "Softmax": [{}, {"classes": 4}],
    "SquaredHinge": [{}, {"margin": 0.5}],
    "ALMA": [{}, {"alpha": 0.5, "B": 2.0, "C": 0.7}],
    "ROMMA": [{}, {"aggressive": True}],
    "SVMD": [{"rate": 0.3}, {"rate": 0.3, "C": 0.5, "meta": 0.05, "memory": 0.8}],
    "Adatron": [{"C": 0.8}, {"rate": 0.5}],
    "Gradient": [
        {"rate": 0.4, "reg": 0.05}, {"rate": 0.4, "schedule": "inverse_sqrt", "fit_intercept": True},
        {"rate": 0.4, "reg": 0.0, "shorten": False}, {"rate": 0.4, "schedule": user_schedule},
    ],
    "Implicit": [
        {"C": 0.7, "reg": 0.02}, {"C": 2.0, "fit_intercept": True}, {"C": 2.0, "fit_intercept": True, "joint": True},
        {"rate": 0.5, "reg": 0.05, "schedule": "inverse_sqrt"},
    ],
    "PassiveAggressive": [{"C": 0.7}, {"C": 0.7, "variant": "PA-II"}, {"variant": "PA"}],
    "Projection": [{}, {"radius": 1.5}],
    "Auto": [
        {"memory": 100000.0, "start": 4, "share": 0.3}, {"memory": 3000.0, "start": 4},
        {"memory": 30000.0, "start": 6, "size": 20}, {"memory": 30000.0, "start": 4, "share": 0.02},
    ],
    "Forgetron": [{"size": 9}, {"size": 4}],
    "Fourier": [{"size": 6}, {"size": 4, "seed": 3}],
    "Merge": [{"size": 9}, {"size": 4}],
    "Nystrom": [{"size": 9}, {"size": 6, "tolerance": 0.05}],
    "Oldest": [{"size": 9}, {"age": 20}, {"size": 9, "age": 12}],
    "Project": [{"size": 9}, {"size": 9, "tolerance": 0.2}, {"size": None, "tolerance": 0.2}],
    "Random": [{"size": 9}, {"size": 5, "seed": 7}],
    "Smallest": [{"size": 9}, {"size": 9, "by": "coefficient"}],
    "Sublinear": [{"rate": 0.9, "reg": 1.0, "exponent": 0.35}, {"rate": 0.6, "reg": 1.0}],
}  # fmt: skip


def accepted(make: Callable[..., Any], *values: Any, **named: Any) -> Any:
    """What a call gives, or None if it is refused."""
    try:
        return make(*values, **named)
    except ValueError:
        return None


@functools.cache
def parts_of(package: Any, base: type) -> dict[str, list[Any]]:
    """The parts that a public package lists, each with its settings as instances."""
    found: dict[str, list[Any]] = {}
    for name in sorted(package.__all__):
        part = getattr(package, name)
        if not isinstance(part, type) or not issubclass(part, base) or part is base:
            continue
        made = [accepted(part, **setting) for setting in SETTINGS.get(name, [])]
        for setting in [] if made else [{}, {"size": 9}]:
            with contextlib.suppress(TypeError):
                made.append(accepted(part, **setting))
        found[name] = [one for one in made if one is not None]
        if not found[name]:
            print(f"no setting for {name}: give it one in SETTINGS", file=sys.stderr)
            del found[name]
    return found


KINDS = [(kernels, kernels.Kernel), (losses, losses.Loss), (rules, rules.Rule), (budgets, budgets.Budget)]


def named(kind: int, first: bool) -> list[tuple[str, Any]]:
    """The parts of a kind with their names in a case: their first setting, or the others."""
    every = parts_of(*KINDS[kind])
    if first:
        return [(name, made[0]) for name, made in every.items()]
    return [(f"{name} {i}", part) for name, made in every.items() for i, part in enumerate(made[1:], start=2)]


# -------------------------------------------------------------------------------------------------------------- engine


@functools.cache
def stream(target: str, rows: int = 128, seed: int = 1) -> tuple[Any, Any]:
    """Random rows, and targets for a kind of loss. Classes come one by one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    smooth = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=rows)
    labels = np.digitize(smooth, [-0.6, 0.0, 0.6]) % (1 + np.arange(rows) // 4).clip(max=4)
    y = {"binary": np.where(smooth > 0, 1.0, -1.0), "real": smooth, "none": None, "label": labels.astype(float)}
    return X, y[target]


@functools.cache
def rows_for(kernel: Any, dtype: str) -> Any:
    """The rows as the kernel takes them: of one feature, or none negative, if it must be."""
    X = stream("real")[0]
    low = np.abs(X) / (1 + np.abs(X))
    for rows in (X, low, X[:, :1], low[:, :1]):
        if accepted(Learner(kernel, losses.Squared(), rules.Gradient(0.1)).learn, rows, rows[:, 0]) is not None:
            return np.ascontiguousarray(rows.astype(dtype))
    return None


def piece(values: Any, start: int, end: int) -> Any:
    return None if values is None else values[start:end]


FACTS = ("points", "coefs", "births", "offset", "level", "norm", "discarded", "updates", "mistakes", "steps", "known")


def facts(learner: Any, when: str = "") -> Iterator[tuple[str, Any]]:
    """What a learner has learned, as users see it."""
    for name in FACTS:
        yield f"{when}{name}", getattr(learner, name)


def again(model: Any) -> Any:
    """The model, stored and loaded; pickled if it holds a function of a user, which cannot be stored."""
    data = accepted(store.dumps, model)
    return pickle.loads(pickle.dumps(model)) if data is None else store.loads(data)


def engine_case(
    four: tuple[Any, ...], dtype: str, backend: str, split: int, returning: bool = False, **options: Any
) -> Items | None:
    """A learner on the stream: batches, weights, single rows, then stored, loaded and gone on with."""
    learner = accepted(Learner, *four, backend=backend, **options)
    X, y = rows_for(four[0], dtype), stream(four[1].target)[1]
    if learner is None or X is None:
        return None
    short = backend == "numpy"
    cuts, weighed = (SHORT_CUTS, SHORT_WEIGHED) if short else (CUTS[split], WEIGHED)
    rows = cuts[-1] + (SHORT_RESUMED if short else RESUMED)
    weights = np.random.default_rng(2).uniform(0.3, 2.0, rows)
    ids = np.arange(rows) % (rows // 3) if returning else None
    X, y = (X[:rows], piece(y, 0, rows)) if ids is None else (X[ids], None if y is None else y[ids])
    scores: list[Any] = []
    for start, end in itertools.pairwise(cuts[:-1]):
        weight = weights[start:end] if start in weighed else None
        call = functools.partial(learner.learn, X[start:end], piece(y, start, end), weight, ids=piece(ids, start, end))
        made = call() if start else accepted(call)
        if made is None:
            return None
        scores.extend(made)
    for t in range(*cuts[-2:]):
        scores.append(learner.learn_one(X[t], None if y is None else float(y[t])))
    return engine_items(learner, X[cuts[-1] :], piece(y, cuts[-1], rows), scores, bool(options.get("average")))


def engine_items(learner: Any, X: Any, y: Any, scores: list[Any], average: bool) -> Items:
    """What a learner knows and says; then stored, loaded and gone on with."""
    yield "backend", learner.backend
    yield "scores", scores if np.ndim(scores[0]) else np.array(scores)
    yield from facts(learner)
    yield "predicted", learner.score(X)
    if average:
        yield "mean predicted", learner.score(X, average=True)
    loaded = again(learner)
    yield "scores after loading", loaded.learn(X, y)
    yield from facts(loaded, "after loading ")
    if average:
        yield "mean after loading", loaded.score(X, average=True)


def engine(split: int) -> Iterator[Case]:
    """Every kernel, loss, rule and budget together; then the other settings of each; then the options of a Learner."""
    one = [named(kind, True) for kind in range(4)]
    for names in itertools.product(*one):
        yield from engine_cases("engine", names, split)
    gaussian, few = one[0][[name for name, _ in one[0]].index("Gaussian")], ("Hinge", "Squared", "Multiclass")
    for kind in range(4):
        rest = [[gaussian], *one[1:]]
        if kind == 0:
            rest[1] = [part for part in one[1] if part[0] in few]
            rest[2] = [part for part in one[2] if part[0] in ("Gradient", "Implicit")]
        rest[kind] = named(kind, False)
        for names in itertools.product(*rest):
            yield from engine_cases("engine, settings", names, split)
    few_rules = [part for part in one[2] if part[0] in ("Gradient", "Implicit", "Perceptron", "SVMD")]
    few_losses = [part for part in one[1] if part[0] in (*few, "Novelty")]
    for names in itertools.product([gaussian], few_losses, few_rules, one[3]):
        yield from engine_cases("engine, average", names, split, average=True)
        yield from engine_cases("engine, sparse average", names, split, average="sparse")
        yield from engine_cases("engine, tracked norm", names, split, track_norm=True)
    for names in itertools.product(one[0], one[1], one[2], one[3]):
        if names[2][0] == "Adatron":
            yield from engine_cases("engine, returning examples", names, split, returning=True)
    for (loss, _), (rule, _), (budget, _) in itertools.product(few_losses, few_rules, one[3]):
        yield from long_cases(loss, rule, budget)


def long_cases(loss: str, rule: str, budget: str) -> Iterator[Case]:
    """Streams after which norms and inverses are made anew: that this happens in the right round is stored too.

    A wide kernel makes the Gram matrix ill-conditioned. Only losses of one score are long enough in NumPy.
    """
    four = (
        kernels.Gaussian(0.02), *(parts_of(*KINDS[kind])[name][0] for kind, name in enumerate((loss, rule, budget), 1)),
    )  # fmt: skip
    four = (*four[:3], budgets.Project(24, 1e-8)) if budget == "Project" else four
    if not agree(*four[1:]):
        return
    rows = {"float32": 3000, "float64": 3000 if budget in ("Unlimited", "Sublinear") else 10_080}
    for dtype in ("float32", "float64"):
        yield (
            f"engine, long streams/native/{dtype}/{loss}/{rule}/{budget}",
            functools.partial(long_case, four, dtype, "native", rows[dtype]),
        )
    if (loss, rule) in (("Squared", "Implicit"), ("Hinge", "Perceptron")):
        yield (
            f"engine, long streams/numpy/float64/{loss}/{rule}/{budget}",
            functools.partial(long_case, four, "float64", "numpy", 700),
        )


def long_case(four: tuple[Any, ...], dtype: str, backend: str, rows: int) -> Items | None:
    X, y = stream(four[1].target, rows, 8)
    X, cut = X.astype(dtype), rows - 200
    learner = accepted(Learner, *four, backend=backend, track_norm=True)
    scores = None if learner is None else accepted(learner.learn, X[:cut], piece(y, 0, cut))
    return None if scores is None else engine_items(learner, X[cut:], piece(y, cut, rows), list(scores), False)


@functools.cache
def agree(loss: Any, rule: Any, budget: Any) -> bool:
    return accepted(Learner, kernels.Gaussian(0.4), loss, rule, budget) is not None


def engine_cases(group: str, names: tuple[Any, ...], split: int, **options: Any) -> Iterator[Case]:
    """A combination on every backend that takes it, with rows of both types."""
    four = tuple(part for _, part in names)
    if not agree(*four[1:]):
        return
    for dtype, backend in itertools.product(("float32", "float64"), backends_of(four[0], four[3])):
        if group == "engine" or (dtype, backend) != ("float32", "numpy"):
            path = [group, backend, dtype, *(name for name, _ in names)]
            yield "/".join(path), functools.partial(engine_case, four, dtype, backend, split, **options)


@functools.cache
def backends_of(kernel: Any, budget: Any) -> list[str]:
    """The backends that take a kernel and a budget; "auto" where no compiled one does."""
    X, y = rows_for(kernel, "float64"), stream("binary")[1]
    found: list[str] = []
    for backend in ("native", "trees", "auto", "numpy"):
        if backend == "auto" and found:
            continue
        for rule in (rules.Gradient(), rules.Perceptron(), *(made for _, made in named(2, True))):
            learner = accepted(Learner, kernel, losses.Hinge(), rule, budget, backend=backend)
            if learner is not None and accepted(learner.learn, X[:5], y[:5]) is not None:
                found.append(backend)
                break
    return found


# ---------------------------------------------------------------------------------------------------------- estimators

#: Values of the estimators' parameters, each tried alone.
VALUES: dict[str, list[Any]] = {
    "kernel": [
        "laplace", "linear", "polynomial", "matern", "exponential", "spline", kernels.Gaussian(0.5), user_kernel,
    ],
    "loss": ["hinge", "squared_hinge", "logistic", "squared", "epsilon_insensitive", "huber", "pinball"],
    "nu": [0.2],
    "budget": [12, "project", "project:10", "auto", None],
    "average": [True, "sparse", False],
    "n_passes": [3],
    "shuffle": [False],
    "random_state": [5],
    "fit_intercept": [True],
    "schedule": ["inverse_sqrt", user_schedule],
    "scale_target": [False],
    "C": [0.2, 2.0],
    "rate": [0.1],
    "reg": [0.0, 0.05],
    "margin": [0.5],
    "epsilon": [0.3],
    "delta": [0.3],
    "quantile": [0.8],
    "meta": [0.05],
    "memory": [0.8],
    "alpha": [0.5],
    "B": [2.0],
    "variant": ["PA", "PA-II"],
    "aggressive": [True],
    "radius": [1.5],
    "method": ["norma", "projection", "pa"],
    "multiclass": ["runner_up"],
    "cost": [((0.0, 1.0, 3.0), (1.0, 0.0, 0.5), (3.0, 0.5, 0.0)), taxonomy({"low": ["aa"], "high": ["b", "c"]})],
    "rescale": [False],
    "weights": [(1.0, 0.5, 2.0)],
    "products": [((0, 1), (2, 2))],
    "differences": [((0, 2),)],
}  # fmt: skip
#: The learned attributes, where there are some.
LEARNED = (
    "classes_", "coef_", "coordinate_names_", "discarded_", "dual_coef_", "feature_names_in_", "intercept_",
    "n_features_in_", "n_seen_", "n_updates_", "norm_", "offset_", "support_vectors_", "target_mean_", "target_scale_",
    "mean_", "var_", "scale_",
)  # fmt: skip
NAMES = {"two": ["b", "aa"], "three": ["b", "aa", "c"], "numbers": [7, -2]}


@functools.cache
def estimators() -> dict[str, Any]:
    """The estimators that the package lists, as far as they can be made without arguments."""
    found = {}
    for name in sorted(gossamer.__all__):
        part = getattr(gossamer, name)
        if isinstance(part, type) and hasattr(part, "predict_learn") and part is not gossamer.OnlinePipeline:
            try:
                part()
            except TypeError:
                print(f"{name} cannot be made without arguments: left out", file=sys.stderr)
            else:
                found[name] = part
    return found


def text(value: Any) -> str:
    """A value in the name of a case: the same in every run."""
    return getattr(value, "__name__", None) or re.sub(r"\s+", "", f"{value}")[:60]


def settings_of(part: Any) -> dict[str, dict[str, Any]]:
    """The defaults, then one parameter at a time, then every budget."""
    found: dict[str, dict[str, Any]] = {"default": {}}
    known = inspect.signature(part).parameters
    for name, values in VALUES.items():
        found.update({f"{name}={text(value)}": {name: value} for value in values if name in known})
    if "budget" in known:
        found.update({f"budget={name}": {"budget": budget} for name, budget in named(3, True)})
    if "nu" in known and "loss" in known:
        for loss in VALUES["loss"]:
            found[f"loss={loss},nu=0.2"] = {"loss": loss, "nu": 0.2}
    return found


def task_data(model: Any, kind: str, rows: int = 150, seed: int = 3) -> tuple[Any, Any]:
    """Rows and targets of an estimator; a third class comes after a third of the rows."""
    X, smooth = stream("real", rows, seed)
    X = X * [1.0, 2.0, 0.5] + [0.5, 0.0, 0.0]
    if is_regressor(model):
        return X, 10 + 3 * smooth
    if not is_classifier(model):
        return X, None
    codes = np.digitize(smooth, [0.0, 0.6] if kind == "three" else [0.0])
    codes[: rows // 3] = np.minimum(codes[: rows // 3], 1)
    codes[:4] = [0, 0, 1, 0]
    return X, np.array(NAMES[kind])[codes]


def kinds_of(model: Any) -> list[str]:
    if is_classifier(model):
        return list(NAMES)
    return ["numbers"] if is_regressor(model) else ["none"]


def learned(model: Any, when: str = "") -> Iterator[tuple[str, Any]]:
    """What a model has learned, as users see it."""
    for name in LEARNED:
        with contextlib.suppress(AttributeError):
            yield when + name, getattr(model, name)


def said(model: Any, X: Any, when: str = "") -> Iterator[tuple[str, Any]]:
    """What a model says about rows."""
    for name in ("predict", "decision_function", "predict_proba", "score_samples", "transform", "feature_effects"):
        if hasattr(model, name):
            yield when + name, getattr(model, name)(X)


def with_targets(y: Any, start: int, end: int) -> tuple[Any, ...]:
    return () if y is None else (y[start:end],)


def estimator_case(model: Any, kind: str, dtype: str = "float64") -> Items | None:
    """fit, ask, go on, predict and learn, then stored, loaded and gone on with. And a copy that only goes on."""
    X, y = task_data(model, kind)
    X = X.astype(dtype)
    if accepted(model.fit, X[:60], *with_targets(y, 0, 60)) is None:
        return None
    return estimator_items(model, X, y)


def estimator_items(model: Any, X: Any, y: Any) -> Items:
    yield from learned(model)
    yield from said(model, X[60:80])
    weights = np.random.default_rng(4).uniform(0.3, 2.0, 40)
    weigh = {} if isinstance(model, gossamer.OnlinePipeline) else {"sample_weight": weights}
    model.partial_fit(X[60:100], *with_targets(y, 60, 100), **weigh)
    yield "predict_learn", model.predict_learn(X[100:125], *with_targets(y, 100, 125))
    yield from learned(model, "then ")
    yield from said(model, X[60:80], "then ")
    loaded = again(model)
    yield "scores after loading", loaded.predict_learn(X[125:], *with_targets(y, 125, 150))
    yield from learned(loaded, "after loading ")
    yield from said(loaded, X[60:80], "after loading ")


def going_on_case(make: Callable[[], Any], kind: str) -> Items | None:
    """A model that has never seen ``fit``: batches of which the first has one row."""
    model = make()
    X, y = task_data(model, kind)
    if accepted(model.predict_learn, X[:1], *with_targets(y, 0, 1)) is None:
        return None
    made = []
    for start, end in itertools.pairwise((1, 31, 75, 120)):
        scores = accepted(model.predict_learn, X[start:end], *with_targets(y, start, end))
        if scores is None:
            return None
        made.append(scores)
    return [("scores", made), *learned(model), *said(model, X[120:])]


def cases_of(part: Any, name: str) -> Iterator[Case]:
    """An estimator with every setting, for every kind of targets."""
    for setting, parameters in settings_of(part).items():
        for kind in kinds_of(part()):

            def case(parameters: dict[str, Any] = parameters, kind: str = kind) -> Items | None:
                return estimator_case(part(**parameters), kind)

            yield f"estimators/{name}/{kind}/{setting}", case
    for kind in kinds_of(part()):
        yield f"estimators/{name}/{kind}/float32", functools.partial(estimator_case, part(), kind, "float32")
        yield f"estimators, predict_learn/{name}/{kind}", functools.partial(going_on_case, part, kind)
        for forget in (0.0, 0.02):

            def scaled(kind: str = kind, forget: float = forget) -> Items | None:
                return estimator_case(pipeline(OnlineScaler(forget=forget), part()), kind)

            yield f"estimators, pipeline/{name}/{kind}/forget={forget}", scaled
        yield f"estimators, merge/{name}/{kind}", functools.partial(merge_case, part, kind)
        yield f"estimators, merge/{name}/{kind}/12 points", functools.partial(merge_case, part, kind, 12)
        yield f"estimators, evaluate/{name}/{kind}", functools.partial(evaluate_case, part, kind)


def estimator_cases() -> Iterator[Case]:
    """Every estimator: settings, pipelines, merges, evaluations; then scalers and additive models."""
    for name, part in estimators().items():
        yield from cases_of(part, name)
    for name, budget in named(3, True):
        yield f"estimators, merge/Learner/{name}", functools.partial(merge_learners, budget)
    for options in ({}, {"forget": 0.05}, {"with_mean": False}, {"with_std": False}):
        yield f"estimators, scaler/{options}", functools.partial(scaler_case, options)
    for name, part in estimators().items():
        if hasattr(part, "feature_effects"):
            for way in ADDITIVE:
                yield f"estimators, additive/{name}/{way}", functools.partial(additive_case, part, way)


def merge_case(part: Any, kind: str, size: int | None = None) -> Items | None:
    """Two models of two halves of the rows as one, and how it goes on."""
    X, y = task_data(part(), kind)
    kernel = {} if hasattr(part, "feature_effects") else {"kernel": kernels.Gaussian(0.5)}
    models = [part(**kernel) for _ in range(2)]
    for model, start in zip(models, (0, 60), strict=True):
        if accepted(model.partial_fit, X[start : start + 60], *with_targets(y, start, start + 60)) is None:
            return None
    joined = accepted(merge, models, budget=size)
    weighted = accepted(merge, models, [0.3, 0.7], size)
    if joined is None or weighted is None:
        return None
    items = [("error", joined.error), ("norm", joined.norm), ("weighted", [weighted.error, weighted.norm])]
    items += [*learned(joined.model), *said(weighted.model, X[120:])]
    items.append(("then", joined.model.predict_learn(X[120:], *with_targets(y, 120, 150))))
    return items


def merge_learners(budget: Any) -> Items | None:
    rule = next((rule for _, rule in named(2, True) if agree(losses.Hinge(), rule, budget)), None)
    X, y = stream("binary")
    models = [Learner(kernels.Gaussian(0.4), losses.Hinge(), rule, budget) for _ in range(2)]
    for model, start in zip(models, (0, 60), strict=True):
        model.learn(X[start : start + 60], y[start : start + 60])
    joined = accepted(merge, models)
    if joined is None:
        return None
    items = [("error", joined.error), ("norm", joined.norm), *facts(joined.model)]
    return [*items, ("then", joined.model.learn(X[100:], y[100:])), *facts(joined.model, "then ")]


def evaluate_case(part: Any, kind: str) -> Items | None:
    """A prequential evaluation, with labels in time and late."""
    X, y = task_data(part(), kind)
    items = []
    for delay in (0, 7):
        trace = accepted(prequential, part(), (X, y), every=40, delay=delay)
        if trace is None:
            return None
        windows = {name: [trace.total(name), trace.window(name)] for name in trace.metrics}
        confusion = [[list(pair), count] for pair, count in trace.confusion.items()]
        found = [trace.row, trace.support, windows, confusion, trace.unpredicted, trace.table()]
        items.append((f"delay {delay}", found))
    return items


def scaler_case(options: dict[str, Any]) -> Items:
    X = stream("real", 150, 3)[0] * [1.0, 20.0, 0.5] + [0.5, 100.0, 0.0]
    scaler = OnlineScaler(**options)
    yield "fit_transform", scaler.fit_transform(X[:40])
    yield "learn_transform", scaler.learn_transform(X[40:90])
    yield from learned(scaler.partial_fit(X[90:120]))
    loaded = again(scaler)
    yield "after loading", loaded.learn_transform(X[120:])
    yield from said(loaded, X[:10])


ADDITIVE: dict[str, dict[str, Any]] = {
    "default": {},
    "spline": {"kernel": "spline"},
    "list": {"kernel": [kernels.Exponential(0.2), kernels.Spline(0), "matern"], "weights": (1.0, 0.5, 2.0)},
    "made": {"products": [(0, 1), (2, 2)], "differences": [(0, 2)]},
    "python kernel": {"kernel": kernels.Gaussian(3.0), "products": [(0, 1)]},
    "mean": {"average": True, "budget": 30},
    "sparse mean": {"average": "sparse", "differences": [(1, 0)]},
    "intercept": {"fit_intercept": True, "budget": 40},
    "projection": {"method": "projection", "radius": 3.0},
}


def additive_case(part: Any, way: str) -> Items | None:
    """Effects, coordinates and curves."""
    model = part(**ADDITIVE[way])
    X, y = task_data(model, "two")
    if accepted(model.fit, X[:100], y[:100]) is None:
        return None
    items = [("coordinates", model.coordinates(X[100:])), *learned(model), *said(model, X[100:])]
    return items + [(f"curve {i}", model.curve(i, np.linspace(-1, 1, 9))) for i in range(len(model.coordinate_names_))]


# --------------------------------------------------------------------------------------------------------------- river


def river_cases() -> Iterator[Case]:
    """Every model of the river face, with every setting."""
    if importlib.util.find_spec("river") is None:
        print("without river: its models are left out", file=sys.stderr)
        return
    from gossamer import river

    for name in sorted(river.__all__):
        part = getattr(river, name)
        task = getattr(gossamer, name, None)
        if task is None or name == "RowEncoder":
            continue
        for setting, parameters in settings_of(part).items():
            for kind in kinds_of(task()):

                def case(part: Any = part, parameters: Any = parameters, kind: str = kind, task: Any = task) -> Any:
                    return river_case(part(**parameters), task(), kind)

                yield f"river/{name}/{kind}/{setting}", case


def river_case(model: Any, like: Any, kind: str) -> Items | None:
    """Rows as dicts, of which the third feature comes late, and then as frames where pandas is there."""
    X, y = task_data(like, kind, 90)
    rows = [dict(zip("uvw"[: 2 + (t > 20)], row, strict=False)) for t, row in enumerate(X.tolist())]
    asked = [name for name in ("predict_one", "predict_proba_one", "score_one") if hasattr(model, name)]
    if not asked or not accepted(lambda: [model.learn_one(rows[0], *with_first(y, 0))]):
        return None
    answers = []
    for t in range(1, 60):
        try:
            answers.append([getattr(model, name)(rows[t]) for name in asked])
            model.learn_one(rows[t], *with_first(y, t))
        except (ValueError, NotImplementedError):
            return None
    items: list[tuple[str, Any]] = [("answers", answers), ("features", list(model.features)), *facts(model.learner)]
    if importlib.util.find_spec("pandas") is not None:
        import pandas

        frame = pandas.DataFrame(X[60:], columns=list("uvw"))
        targets = () if y is None else (pandas.Series(y[60:]),)
        model.learn_many(frame, *targets)
        items.extend(facts(model.learner, "then "))
    loaded = pickle.loads(pickle.dumps(model))
    return [*items, ("loaded", [getattr(loaded, name)(rows[t]) for t in range(60, 90) for name in asked])]


def with_first(y: Any, t: int) -> tuple[Any, ...]:
    return () if y is None else (y[t].item(),)


# ------------------------------------------------------------------------------------------------------ banks and video


def bank_cases() -> Iterator[Case]:
    """A bank of every estimator: alone, behind a scaler, with the mean (not compiled), with every budget."""
    for name, part in estimators().items():
        for kind in kinds_of(part()):
            ways: dict[str, dict[str, Any]] = {
                "default": {}, "budget=10": {"budget": 10}, "average=True": {"average": True},
                "loss=logistic": {"loss": "logistic"},
            }  # fmt: skip
            if name in ("SILKClassifier", "KernelPerceptron", "SILKRegressor", "NORMADetector", "SVMDClassifier"):
                for budget, made in named(3, True) + named(3, False):
                    ways[f"budget={budget}"] = {"budget": made, "kernel": kernels.Gaussian(0.5)}
            for way, options in ways.items():
                if options.keys() <= inspect.signature(part).parameters.keys():
                    yield f"banks/{name}/{kind}/{way}", functools.partial(bank_case, part, options, kind, False)
            yield f"banks/{name}/{kind}/scaled", functools.partial(bank_case, part, {}, kind, True)


def bank_case(part: Any, options: dict[str, Any], kind: str, scaled: bool) -> Items | None:
    """Rows of three keys in calls of two lengths; a model is carried to another bank and goes on there."""
    model = accepted(part, **options)
    X, y = task_data(model, kind, 150)
    keys = np.array(["a", "b", "long"])[np.random.default_rng(5).integers(0, 3, len(X))]
    model = pipeline(OnlineScaler(forget=0.01), model) if scaled else model
    bank = accepted(ModelBank, model, threads=1)
    if bank is None or accepted(bank.learn, keys[:45], X[:45], piece(y, 0, 45)) is None:
        return None
    weights = np.random.default_rng(4).uniform(0.3, 2.0, 55)
    weighed = accepted(bank.learn, keys[45:100], X[45:100], piece(y, 45, 100), sample_weight=weights)
    if weighed is None:
        return None
    items = [("backend", bank.backend), ("weighed", weighed)]
    items.append(("scores", bank.learn(keys[100:120], X[100:120], piece(y, 100, 120))))
    other = ModelBank(model, threads=1)
    for key in bank:
        other.put(key, bank.dump(key))
    for where, each in (("here", bank), ("carried", other)):
        items.append((where, each.learn(keys[120:], X[120:], piece(y, 120, 150))))
        items.append((f"{where} said", each.predict(keys, X)))
        for name in ("score", "predict_proba"):
            found = accepted(getattr(each, name), keys, X)
            items += [] if found is None else [(f"{where} {name}", found)]
    last = bank.model("a")
    return [*items, *learned(last), *said(last, X[:10])]


VIDEO: dict[str, dict[str, Any]] = {
    "default": {}, "plain": PLAIN, "norma": {"rule": "norma"}, "nu": {"nu": 0.1}, "bgr": {"features": "bgr"},
    "no merge": {"merge": None}, "no light": {"light": False, "guard": None},
    "no shadows": {"shadows": False, "evidence": 0},
    "every frame": {"every": 1, "budget": 5, "patience": 20.0}, "cold": {"warm": False}, "C": {"C": 0.3, "reg": 0.02},
}  # fmt: skip


def video_cases() -> Iterator[Case]:
    for name, options in VIDEO.items():
        for colour in ("colour", "grey"):
            yield f"video/{name}/{colour}", functools.partial(video_case, options, colour == "grey")


@functools.cache
def clip(frames: int = 40, height: int = 37, width: int = 41) -> Any:
    """A still scene with noise, over which a bright square moves; the light changes once."""
    rng = np.random.default_rng(6)
    scene = rng.integers(60, 140, (height, width, 3))
    made = np.clip(scene + rng.normal(0, 3, (frames, *scene.shape)), 0, 255)
    made[25:] *= 1.1
    for t in range(15, frames):
        made[t, 10:22, t - 12 : t] = (30, 60, 230)
    return np.clip(made, 0, 255).astype(np.uint8)


def video_case(options: dict[str, Any], grey: bool) -> Items | None:
    frames = clip()[..., 1] if grey else clip()
    subtractor = accepted(BackgroundSubtractor, **options, threads=1)
    if subtractor is None or accepted(subtractor.apply, frames[0]) is None:
        return None
    items = [("masks", [subtractor.apply(frame) for frame in frames[1:30]]), ("score", subtractor.score(frames[30]))]
    items += [("background", subtractor.getBackgroundImage()), ("compensated", subtractor.compensate(frames[30]))]
    loaded = again(subtractor)
    items.append(("after loading", [loaded.apply(frame) for frame in frames[30:]]))
    return [*items, ("last score", loaded.score(frames[0]))]


# --------------------------------------------------------------------------------------------------------------- files


def file_cases() -> Iterator[Case]:
    """Every model of every file that an older version has saved: loads, predicts, goes on."""
    for path in sorted(DATA.glob("store-*.gsm")):
        for name in store.load(path):
            yield f"files/{path.stem}/{name}", functools.partial(file_case, path, name)


def file_case(path: Path, name: str) -> Items | None:
    value = store.load(path)[name]
    if isinstance(value, dict):  # a bank: what its models are made of, and the bytes of each
        return bank_of_file(value["model"], {key: data.tobytes() for key, data in value["dumps"].items()})
    if isinstance(value, Learner):
        return learner_of_file(value)
    if isinstance(value, BackgroundSubtractor):
        frames = clip()[30:, :9, :13]
        return [("masks", [value.apply(frame) for frame in frames]), ("score", value.score(frames[0]))]
    if isinstance(value, OnlineScaler):
        X = stream("real")[0][:, : len(value.mean_)]
        return [*learned(value), ("transformed", value.learn_transform(X)), *said(value, X), *learned(value, "then ")]
    return estimator_of_file(value) if hasattr(value, "predict") else [("value", value)]


def targets_of_file(model: Any, rows: int) -> tuple[Any, ...]:
    """Targets that a loaded model takes: its classes, or numbers."""
    smooth = stream("real")[1][:rows]
    if is_classifier(model):
        return (np.asarray(model.classes_)[np.digitize(smooth, [0.0, 0.6][: len(model.classes_) - 1])],)
    return (smooth,) if is_regressor(model) else ()


def estimator_of_file(model: Any) -> Items:
    X = np.abs(stream("real")[0][:40, : model.n_features_in_])
    yield from learned(model)
    yield from said(model, X)
    yield "scores", model.predict_learn(X, *targets_of_file(model, 40))
    yield from learned(model, "then ")
    yield from said(model, X, "then ")


def learner_of_file(learner: Any) -> Items:
    X, y = stream(learner.loss.target)
    X = np.abs(X[:, : learner.points.shape[1]])
    yield from facts(learner)
    yield "said", learner.score(X)
    yield "scores", learner.learn(X, y)
    yield from facts(learner, "then ")


def bank_of_file(model: Any, dumps: dict[str, bytes]) -> Items:
    bank = ModelBank(model, threads=1)
    for key, data in dumps.items():
        bank.put(key, data)
    first = bank.model(next(iter(dumps)))
    X = np.abs(stream("real")[0][:40, : first.n_features_in_])
    keys = np.array(list(dumps))[np.arange(40) % len(dumps)]
    yield "said", bank.predict(keys, X)
    yield "scores", bank.learn(keys, X, *targets_of_file(first, 40))
    yield "then said", bank.predict(keys, X)
    for key in dumps:
        yield from learned(bank.model(key), f"{key} ")


# -------------------------------------------------------------------------------------------------------- command line

SHOPS = "run shops.csv --target sold --ignore price,kind --missing fill"
PRICE = "run shops.csv --target price --ignore kind,sold --missing skip"
KIND = "run shops.csv --target kind --ignore price,sold --missing fill"
PLANT = "run plant.libsvm"
NOVEL = "run shops.csv --ignore price,kind,sold --missing fill"
#: Commands that run one after the other in a folder with the two files; what they print and write is hashed.
COMMANDS: dict[str, list[str]] = {
    "run": [SHOPS, PRICE, KIND, PLANT, NOVEL],
    "run, refused": ["run shops.csv --target sold", "run no.csv", "run shops.csv --target nothing"],
    "run, refused options": [f"{SHOPS} --gamma no", f"{SHOPS} --learner nobody", f"{SHOPS} --learner pa --rate 1"],
    "run, quiet": [f"{SHOPS} --quiet --out p.csv", f"{PLANT} --quiet --out p.jsonl",
                   f"{NOVEL} --quiet --out a.csv --alarms"],
    "run, output": [f"{SHOPS} --out -", f"{KIND} --out - --out-format jsonl", f"{SHOPS} --loss logistic --out p.jsonl"],
    "run, window": [f"{SHOPS} --window 40 --trace timed1.csv", f"{PRICE} --window 25 --trace timed2.csv"],
    "run, delay": [f"{SHOPS} --delay 10 --out p.csv", f"{PLANT} --delay 3"],
    "run, no scale": [f"{SHOPS} --no-scale", f"{PLANT} --forget 0.01"],
    "run, columns": ["run shops.csv --target sold --columns size,shop --missing fill --categories 2"],
    "run, kinds": ["run shops.csv --target sold --ignore price,kind --missing fill --kinds day=category"],
    "run, novelty": [f"{NOVEL} --nu 0.1 --learner norma", f"{SHOPS} --task novelty --anomaly yes",
                     f"{NOVEL} --learner svmd"],
    "run, metrics": [f"{SHOPS} --loss logistic --metrics error,f1,auc,log_loss,precision,recall --positive no",
                     f"{PRICE} --metrics mae,rmse,pinball --loss pinball --quantile 0.8"],
    "save and predict": [f"{SHOPS} --save m.gsm", "predict m.gsm shops.csv --missing fill",
                         "predict m.gsm shops.csv --missing fill --out q.jsonl", f"{SHOPS} --model m.gsm"],
    "save and predict, three classes": [f"{KIND} --save m.gsm --budget 20", "predict m.gsm shops.csv --missing skip"],
    "save and predict, numbers": [f"{PLANT} --save m.gsm --budget project:12", "predict m.gsm plant.libsvm"],
    "save and predict, novelty": [f"{NOVEL} --save m.gsm", "predict m.gsm shops.csv --missing fill --alarms"],
    "checkpoint": [f"{SHOPS} --checkpoint c.gsm --every 60 --out p.csv",
                   f"{SHOPS} --checkpoint c.gsm --resume --out p.csv"],
    "inspect": ["inspect store-v1.gsm", "inspect store-v1.gsm --json"],
    "inspect 0.1.0": ["inspect store-0.1.0.gsm", "inspect store-0.1.0.gsm --json"],
    "inspect a new file": [f"{SHOPS} --save m.gsm", "inspect m.gsm"],
    "compare": [f"{command.replace('run', 'compare', 1)}{more}" for command in (SHOPS, PRICE, KIND, PLANT, NOVEL)
                for more in ("", " --learners all")],
    "compare, settings": [SHOPS.replace("run", "compare", 1) + " --learners silk:C=0.1,silk:budget=20,norma:rate=0.2"],
    "demo": ["demo --rows 300 --trials 2 --out d.png"],
    **{f"run, {kernel}": [f"{SHOPS} --kernel {kernel}", f"{PLANT} --kernel {kernel}"] for kernel in
       ("gaussian:gamma=0.3", "laplace", "matern:nu=2.5", "linear", "polynomial:degree=2", "exponential")},
    **{f"run, {learner}": [f"{SHOPS} --learner {learner}"] for learner in
       ("silk:C=2", "norma:rate=0.2", "pa", "projection", "perceptron", "alma", "romma", "adatron", "svmd:meta=0.05",
        "additive")},
    **{f"run, {learner}, numbers": [f"{PLANT} --learner {learner}"] for learner in
       ("silk:C=2", "norma:rate=0.2", "pa", "projection", "svmd:meta=0.05", "additive", "additive --kernel spline")},
    **{f"run, {budget} points": [f"{SHOPS} --budget {budget}", f"{PRICE} --budget {budget}"] for budget in
       ("20", "project:15", "auto", "none")},
    **{f"run, {loss}": [f"{SHOPS} --loss {loss}"] for loss in ("squared_hinge", "logistic")},
    **{f"run, {loss}": [f"{PLANT} --loss {loss}"] for loss in ("epsilon_insensitive --epsilon 0.3", "huber --delta 0.5",
       "huber --nu 0.2 --learner norma", "squared --schedule inverse_sqrt --no-intercept")},
}  # fmt: skip
FILMS = [
    "video film --out masks --stats timed.csv --threads 1 --evaluate film --save v.gsm",
    "video film --out more --load v.gsm --threads 1 --first 20 --rule norma",
    "video film --out norma --rule norma --budget 8 --patience 50 --median 3 --threads 1",
]
#: Times and rates; nothing else is taken out of what a command prints.
CHANGING = [
    (r"\d[\d.,]*k? (rows|frames)/s", r"RATE \1/s"),
    (r"\d[\d.,]* (ms|s|seconds|min)\b", r"TIME \1"),
    (r"(?m)(?<=\d) +\d+\.\d\d$", " TIME"),  # the last column of compare
    (r"(?m)(±.*\d) +[\d,]+$", r"\1 RATE"),  # the last column of demo
    (r"learns\s+\S+\s+times", "learns RATIO times"),  # of demo
    (r"\d+ with what is around it", "RATE with what is around it"),  # of video
]


def command_cases() -> Iterator[Case]:
    for name, commands in COMMANDS.items():
        yield f"commands/{name}", functools.partial(command_case, commands)
    if importlib.util.find_spec("cv2") is None:
        print("without OpenCV: the command video is left out", file=sys.stderr)
    else:
        yield "commands/video", functools.partial(command_case, FILMS)


def command_case(commands: list[str]) -> Items:
    """Exit code and text of each command, then the bytes of the files that they wrote."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        write_files(film=commands is FILMS)
        before = set(Path().rglob("*"))
        items: list[tuple[str, Any]] = []
        for command in commands:
            code, printed = run_command(command.split())
            items.append((command, [code, printed]))
        for path in sorted({path for path in Path().rglob("*") if path.is_file()} - before):
            if path.suffix in (".csv", ".jsonl") or "masks" in path.parts:
                data = path.read_bytes()
                items.append((f"file {path}", without_column(data) if "timed" in path.name else data))
    return items


def without_column(data: bytes) -> bytes:
    """A table without its last column, the time."""
    return b"\n".join(line.rpartition(b",")[0] for line in data.splitlines())


def run_command(arguments: list[str]) -> tuple[Any, str]:
    """``python -m gossamer ...`` in this process: its exit code and all that it prints."""
    raw = [io.BytesIO(), io.BytesIO()]
    out, err = (io.TextIOWrapper(each, "utf-8", write_through=True) for each in raw)
    handler, code = signal.getsignal(signal.SIGINT), None
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(sys, "argv", ["gossamer", *arguments]))
        stack.enter_context(mock.patch.dict(os.environ, {"COLUMNS": "100"}))
        stack.enter_context(contextlib.redirect_stdout(out))
        stack.enter_context(contextlib.redirect_stderr(err))
        try:
            runpy.run_module("gossamer", run_name="__main__", alter_sys=True)
        except SystemExit as leaving:
            code = leaving.code
    signal.signal(signal.SIGINT, handler)
    printed = "\n--- stderr\n".join(each.getvalue().decode() for each in raw)
    for pattern, instead in CHANGING:
        printed = re.sub(pattern, instead, printed)
    return code, printed


def write_files(film: bool) -> None:
    """shops.csv: numbers, text, booleans, dates, gaps and three targets. plant.libsvm: a regression."""
    rng = np.random.default_rng(7)
    lines = ["size,shop,open,day,price,kind,sold"]
    for i in range(260):
        size, shop = rng.normal(), ["Rome", "Oslo", "Bonn"][rng.integers(3)]
        price = 100 + 5 * size + {"Rome": 10, "Oslo": -10, "Bonn": 0}[shop] + 0.1 * rng.normal()
        kind = ["small", "middle", "large"][int(np.digitize(size, [-0.5, 0.5]))]
        told, sold = "" if i % 31 == 17 else f"{size:.6f}", "yes" if price > 100 else "no"
        opened = "" if i % 47 == 20 else str(i % 2 == 0).lower()
        lines.append(f"{told},{shop},{opened},2024-01-{i % 28 + 1:02},{price:.6f},{kind},{sold}")
    Path("shops.csv").write_text("\n".join(lines) + "\n")
    rows = rng.normal(size=(200, 5))
    values = np.sin(2 * rows[:, 0]) + rows[:, 1] + 0.1 * rng.normal(size=200)
    texts = [" ".join(f"{j + 1}:{x:.5f}" for j, x in enumerate(row) if x > -0.8) for row in rows]
    Path("plant.libsvm").write_text("".join(f"{y:.5f} {row}\n" for y, row in zip(values, texts, strict=True)))
    for path in DATA.glob("store-*.gsm"):
        Path(path.name).write_bytes(path.read_bytes())
    if film:
        import cv2

        for folder in ("film/input", "film/groundtruth"):
            Path(folder).mkdir(parents=True)
        for t, frame in enumerate(clip(), start=1):
            truth = (np.abs(frame.astype(int) - (30, 60, 230)).sum(axis=2) == 0).astype(np.uint8) * 255
            cv2.imwrite(f"film/input/in{t:06d}.png", frame)
            cv2.imwrite(f"film/groundtruth/gt{t:06d}.png", truth)


# ---------------------------------------------------------------------------------------------------------------- main


#: The groups of cases.
GROUPS: dict[str, Callable[[], Iterator[Case]]] = {
    "files": file_cases, "commands": command_cases, "estimators": estimator_cases, "river": river_cases,
    "banks": bank_cases, "video": video_cases,
}  # fmt: skip


def group(name: str) -> str:
    """The group of a case: the first word of its name."""
    return re.split("[/,]", name)[0]


def all_cases(groups: list[str], split: int = 0) -> Iterator[Case]:
    """The cases of these groups, or of all."""
    cases: dict[str, Callable[[], Iterator[Case]]] = {**GROUPS, "engine": functools.partial(engine, split)}
    return itertools.chain.from_iterable(cases[name]() for name in groups or cases)


#: In place of the hash of a case that raised an error.
FAILED = "failed"


def make(cases: Iterable[Case], only: str = "") -> dict[str, str]:
    """The hash of every case whose name has the pattern ``only`` in it."""
    wanted, start, told = re.compile(only), time.monotonic(), 0.0
    hashes: dict[str, str] = {}
    for name, case in cases:
        if wanted.search(name) is None:
            continue
        assert name not in hashes, f"two cases are named {name}"
        try:
            items = compute(case)
            if items is not None:
                hashes[name] = digest([list(item) for item in items])
        except Exception as error:
            hashes[name] = FAILED
            print(f"failed: {name}: {type(error).__name__}: {error}", file=sys.stderr)
        now = time.monotonic()
        if now - told > 0.5 and sys.stderr.isatty():
            print(f"\r\033[K{len(hashes):,} cases, {now - start:.0f} s: {name}", end="", file=sys.stderr, flush=True)
            told = now
    end = "\r\033[K" if sys.stderr.isatty() else ""
    print(f"{end}{len(hashes):,} cases in {time.monotonic() - start:.0f} s", file=sys.stderr)
    return hashes


def compare(golden: dict[str, str], found: dict[str, str]) -> int:
    """Print what differs, is missing or is new; the exit code."""
    groups = {
        "differs": [name for name in golden if name in found and golden[name] != found[name]],
        "missing": [name for name in golden if name not in found],
        "new": [name for name in found if name not in golden],
    }
    for word, names in groups.items():
        for name in names:
            print(f"{word}: {name}")
    counts = ", ".join(f"{len(names):,} {word}" for word, names in groups.items())
    same = sum(found.get(name) == value for name, value in golden.items())
    print(f"{same:,} equal, {counts}")
    return int(bool(groups["differs"] or groups["missing"]))


def show(cases: Iterable[Case], only: str) -> None:
    """The items of the cases, each with its hash and the beginning of its value."""
    wanted = re.compile(only)
    for name, case in cases:
        if wanted.search(name) is not None:
            print(name)
            for item, value in compute(case) or [("refused", None)]:
                print(f"  {digest(value)} {item}: {' '.join(repr(value).split())[:160]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["make", "compare", "show"])
    parser.add_argument("file", help="the golden file; for show: a pattern of cases")
    parser.add_argument("--only", default="", metavar="PATTERN", help="only cases whose name has this pattern in it")
    parser.add_argument("--split", type=int, default=0, choices=sorted(CUTS), help="how the engine's rows are cut")
    parser.add_argument("--groups", nargs="+", default=[], choices=[*GROUPS, "engine"], help="only these groups")
    options = parser.parse_args()
    cases = all_cases(options.groups, options.split)
    if options.command == "show":
        show(cases, options.file)
        return 0
    if options.command == "make":
        made = make(cases, options.only)
        Path(options.file).write_text(json.dumps(made, indent=0) + "\n")
        return int(FAILED in made.values())
    golden = json.loads(Path(options.file).read_text())
    found = make(cases, options.only)
    groups = options.groups or [*GROUPS, "engine"]
    golden = {name: value for name, value in golden.items() if re.search(options.only, name) and group(name) in groups}
    return compare(golden, found)


if __name__ == "__main__":
    sys.exit(main())
