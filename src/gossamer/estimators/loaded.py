"""Validate the state of a loaded estimator, so that whatever loads works.

A learner validates its own state (`gossamer._engine.state`); here are the attributes around it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks
from gossamer.estimators import class_weights, several
from gossamer.estimators.late import check_pending
from gossamer.learner import Learner
from gossamer.losses import Several

if TYPE_CHECKING:
    from gossamer.estimators.base import Online

#: The learned attributes of an estimator.
LEARNED = ("learner_", "n_features_in_", "feature_names_in_", "classes_", "_order", "_given", "_target_moments",
           "_class_counts", "_certainty", "_calm", "_late", "_links")  # fmt: skip
#: Those that only the estimators of one task have.
OF_TASKS = {
    "classification": ("classes_", "_order", "_given", "_class_counts", "_links"),
    "regression": ("_target_moments",),
    "novelty": ("_calm",),
}


def check_estimator(model: Online, learned: dict[str, Any]) -> None:
    """Raise unless the parameters make a learner, and the learned attributes fit each other."""
    fresh = model._start()
    others = {name for task, names in OF_TASKS.items() if task != model.task for name in names}
    if unknown := sorted(learned.keys() - (set(LEARNED) - others)):
        raise _checks.wrong(model, unknown[0], "left out: nothing of this name is learned", learned[unknown[0]])
    learner = learned.get("learner_")
    check_pending(model, learned)
    if learner is None:
        if learned.keys() - {"_late"}:
            raise _checks.wrong(model, sorted(learned)[0], "nothing where there is no learner_", learned)
        return
    if not isinstance(learner, Learner) or type(learner) is not type(fresh) or not learner.steps:
        raise _checks.wrong(model, "learner_", f"a {type(fresh).__name__} that has learned", learner)
    if isinstance(learner.loss, Several) and not model.takes_several:
        raise _checks.wrong(model, "learner_", "one of a single target", learner)
    if learner.loss.target not in model.targets or type(learner.rule) is not type(fresh.rule):
        raise _checks.wrong(model, "learner_", f"one that learns as {fresh}", learner)
    if fresh.average is not None and learner.average is None:
        raise _checks.wrong(model, "learner_", f"one with the mean, as average={model.average!r}", learner)
    if "_calm" in learned and (type(learned["_calm"]) is not int or not 0 <= learned["_calm"] <= 3):
        raise _checks.wrong(model, "_calm", "an int in [0, 3]", learned["_calm"])
    _check_features(model, learned, learner.features)
    if "label" in model.targets:
        _check_labels(model, learned, learner)
        class_weights.check_counts(model, learned)
        several.check_links(model, learned, learner)


def _check_features(model: Any, learned: dict[str, Any], features: int | None) -> None:
    """Check the number of features against the points, and their names."""
    found = learned.get("n_features_in_")
    if features is not None and (type(found) is not int or found != features):
        raise _checks.wrong(model, "n_features_in_", f"{features}, as the points have", found)
    check_names(model, learned.get("feature_names_in_"), features)


def check_names(model: Any, names: Any, features: int | None) -> None:
    """The names of the features: as many texts, or none."""
    if names is None:
        return
    named = isinstance(names, np.ndarray) and names.ndim == 1 and all(type(name) is str for name in names.tolist())
    if not named or len(names) != features:
        raise _checks.wrong(model, "feature_names_in_", f"the names of {features} features", names)


def _check_labels(model: Any, learned: dict[str, Any], learner: Learner) -> None:
    """The labels in the order of their inner numbers, sorted, and whether they were given."""
    order: Any = learned.get("_order")
    classes: Any = learned.get("classes_")
    given = learned.get("_given")
    if type(given) is not bool:
        raise _checks.wrong(model, "_given", "a bool", given)
    try:
        listed = isinstance(order, list) and len(order) > 0 and isinstance(classes, np.ndarray)
        expected = np.unique(np.array(order if listed else [0]))
        same = listed and np.array_equal(expected, classes) and expected.dtype == classes.dtype
        same = same and len(classes) == len(order) and all(label in order for label in classes.tolist())
        same = same and (classes.dtype.kind != "f" or bool(np.isfinite(classes).all()))
    except (TypeError, ValueError):
        same = False
    if not same:
        raise _checks.wrong(model, "classes_", f"the labels {order}, sorted", classes)
    many = learner.loss.target == "label"
    if learner.known != len(order) if many else len(order) > 2:
        raise _checks.wrong(model, "_order", f"the {learner.known if many else 2} labels of the learner", order)
