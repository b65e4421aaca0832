"""Learners and kernels by name: ``silk``, ``norma:rate=0.1``, ``matern:nu=2.5``. They are found, not listed."""

from __future__ import annotations

import argparse
import inspect
import math
import re
import textwrap
from collections.abc import Mapping
from typing import Any

from sklearn.utils import get_tags

import gossamer
from gossamer import _checks, _registry, kernels
from gossamer.budgets import Budget
from gossamer.cli.options import ToldError, as_value
from gossamer.estimators import OnlineClassifier, OnlineDetector, OnlineRegressor
from gossamer.estimators.base import Online
from gossamer.estimators.pipelines import last_step
from gossamer.losses import Loss
from gossamer.rules import Rule

FACES: dict[str, type[Online]] = {part.task: part for part in (OnlineClassifier, OnlineRegressor, OnlineDetector)}
KINDS = {"kernels": kernels.Kernel, "losses": Loss, "rules": Rule, "budgets": Budget}
#: Options that go to the kernel.
OF_KERNEL = ("gamma", "degree", "coef0", "length")
#: Parameters that are not for the shell: matrices, and passes over a stream that comes once.
HIDDEN = ("self", "kernel", "n_passes", "cost")


def learners(task: str) -> dict[str, type[Online]]:
    """The estimators for a task, by their short names.

    >>> sorted(learners("novelty"))
    ['norma', 'silk', 'svmd']
    """
    found = {}
    for name in gossamer.__all__:
        part = getattr(gossamer, name)
        if inspect.isclass(part) and issubclass(part, FACES[task]) and part is not FACES[task]:
            found[re.sub(r"^Kernel|(Classifier|Regressor|Detector)$", "", name).lower()] = part
    return found


def parsed(spec: str) -> tuple[str, dict[str, Any]]:
    """A learner's name and its settings; a value with settings of its own stands in parentheses.

    >>> parsed("silk:C=10:budget=(random:size=64,seed=3)")
    ('silk', {'C': 10, 'budget': 'random:size=64,seed=3'})
    """
    name, settings = _registry.parse(spec)
    found = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise _checks.wrong("parsed", "learner", "like silk:C=10:budget=64", spec)
        inner = value.strip()
        found[key.strip()] = as_value(inner[1:-1] if inner[:1] == "(" else inner)
    return name, found


def make_kernel(
    spec: str | None, options: Mapping[str, Any], features: int, scaled: bool, learner: str
) -> kernels.Kernel:
    """A kernel by name. ``options`` are those of the command line that were given.

    The features are scaled to variance 1, so that two rows lie at a squared distance of about 2 * features. A width
    that was not given follows from that: gamma = 1 / features, length = sqrt(features). A kernel of one number is
    summed over the features. The learner `additive` does that itself, with features that it maps into (0, 1).
    """
    by_feature = parsed(learner)[0] == "additive"
    name, settings = _registry.parse(spec or ("matern" if by_feature else "gaussian"))
    kind = _registry.find(kernels.Kernel, name, "run", "kernel")
    taken = list(_registry.parameters(kind))
    given = {key: options[key] for key in OF_KERNEL if key in options}
    given.update(_registry.read(kind, settings, kernels.Kernel))
    for key, value in given.items():
        if key not in taken:
            raise _left_out(key, f"the kernel {name!r}", taken, value)
    if given.get("gamma", "scale") == "scale" and "gamma" in taken:
        given["gamma"] = 50.0 if by_feature else 1.0 / features if scaled or kind is kernels.Polynomial else "scale"
    one_number = issubclass(kind, (kernels.Exponential, kernels.Brownian, kernels.Spline))
    if "length" in taken:
        given.setdefault("length", 0.1 if by_feature else 1.0 if one_number else math.sqrt(features))
    made: kernels.Kernel = _registry.construct(kind, given)
    if by_feature or not one_number:
        return made
    if scaled and kind is not kernels.Exponential:
        rule = "one that takes negative numbers, as scaled features are (or --learner additive, or --no-scale)"
        raise _checks.wrong("run", "kernel", rule, name)
    return kernels.Additive(made)


def make_learner(
    spec: str, task: str, kernel: kernels.Kernel | None, options: Mapping[str, Any], strict: bool = True
) -> Online:
    """An estimator by name for a task. ``strict`` refuses options that it does not take; else they are left out."""
    name, settings = parsed(spec)
    if name == "auto" and task == "novelty":  # without labels there is nothing to weigh experts by
        name = "silk"
    shared = {key: value for key, value in options.items() if key not in OF_KERNEL}
    if name == "online":
        return _make_of_parts(task, kernel, shared, settings, strict)
    known = learners(task)
    _checks.one_of("run", "learner", name, sorted(known))
    defaults = inspect.signature(known[name].__init__).parameters
    taken = [parameter for parameter in defaults if parameter not in HIDDEN]
    if not strict:
        shared = {key: value for key, value in shared.items() if key in taken}
    given = {**usual(name, task, defaults), **shared, **settings}
    for key, value in given.items():
        if key not in taken:
            raise _left_out(key, f"the learner {name!r} for {task}", taken, value)
    made = known[name](kernel, **given)
    made._start()  # checks all parameters, before anything is read or written
    return made


def _make_of_parts(
    task: str, kernel: kernels.Kernel | None, shared: dict[str, Any], settings: dict[str, Any], strict: bool
) -> Online:
    """An estimator of any parts; the other settings are parameters of its rule or its loss."""
    own = [name for name in _registry.parameters(FACES[task]) if name not in HIDDEN]
    given = {**shared, **settings}
    made = FACES[task](kernel, **{key: given.pop(key) for key in own if key in given})
    inner = {key.partition("__")[2]: key for key in made.get_params() if key.startswith(("loss__", "rule__"))}
    for key, value in given.items():
        if key in inner:
            made.set_params(**{inner[key]: value})
        elif strict or key in settings:
            raise _left_out(key, "these parts", [*own, *inner], value)
    made._start()
    return made


def _left_out(key: str, where: str, taken: list[str], value: Any) -> ValueError:
    return _checks.wrong("run", key, f"left out for {where}, which takes {', '.join(taken) or 'nothing'}", value)


def work(options: argparse.Namespace) -> None:
    """List the parts."""
    for folder, base in KINDS.items():
        if options.kind in (None, folder):
            print(f"{folder}:")
            parts = dict.fromkeys(part for found in _registry.named(base).values() for part in found)
            for part in sorted(parts, key=_registry.name_of):
                names = ", ".join([_registry.name_of(part), *vars(part).get("aliases", ())])
                taken = _registry.signature(part)
                print(f"  {names}" + (f": {taken}" if taken != "nothing" else ""))
                print("     ", textwrap.shorten((inspect.getdoc(part) or "").split("\n\n")[0], 110, placeholder=" ..."))


def refused(error: ValueError, model: Any, chunk: Any, name: str, target: str | None) -> ValueError:
    """The error for rows that a learner has refused, by row: mostly a third class where it learns two."""
    last, where = last_step(model), f"{name}, rows {chunk.rows[0]} to {chunk.rows[-1]}: "
    known: list[Any] = list(getattr(last, "classes_", []))
    if not isinstance(last, OnlineClassifier) or get_tags(type(last)()).classifier_tags.multi_class or len(known) > 2:
        return ToldError(where, error)
    for row, label in zip(chunk.rows.tolist(), chunk.y.tolist(), strict=True):
        if label not in known and len(known) == 2:
            more = [short for short, part in learners("classification").items()
                    if get_tags(part()).classifier_tags.multi_class]  # fmt: skip
            rule = f"one of two classes for {type(last).__name__} (more are for {', '.join(sorted(more))})"
            return ValueError(f"{name}, row {row}, column {target!r}: must be {rule}. Got {label!r} instead.")
        known += [label] if label not in known else []
    return ToldError(where, error)


def unknown_label(classes: list[Any], chunk: Any, stream: Any) -> ValueError | None:
    """The error for the first label that a saved model does not know, with all that the chunk has of them."""
    labels = chunk.y.tolist()
    new = [label for label in dict.fromkeys(labels) if label not in classes]
    if not new:
        return None
    row = int(chunk.rows[labels.index(new[0])])
    known = ", ".join(map(repr, classes[:20])) + (", ..." if len(classes) > 20 else "")
    got = ", ".join(map(repr, new[:5])) + (", ..." if len(new) > 5 else "")
    rule = f"one of the classes of --model: {known} (--new-classes lets others join)"
    return ValueError(f"{stream.name}, row {row}, column {stream.target!r}: must be {rule}. Got {got} instead.")


def usual(name: str, task: str, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults of the command line, where they differ from those of the library.

    Detectors do not learn runs of alarms. A stream has no end, so that every learner has a budget. Targets of a
    regression are as they come, often far from 0: an offset follows them there.
    """
    given: dict[str, Any] = {}
    if "budget" in defaults and defaults["budget"].default is None:
        given["budget"] = 100_000 if name == "additive" else 256  # trees are as fast with many
    if task == "regression" and "fit_intercept" in defaults:
        given["fit_intercept"] = True
    if task == "novelty" and "skip" in defaults:
        given["skip"] = 0.05  # an anomaly that lasts is not learned away
    return given
