"""Several targets at once: y of shape (rows, targets), over one set of points (`gossamer.losses.Several`).

A regressor then has a prediction for each target, each scaled in units of its own; a classifier has a score for each
label of an indicator matrix of 0 and 1 (multi-label). What is learned with a vector goes on with vectors, and what is
learned with a matrix with matrices of as many columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array, Floats
from gossamer.certainty.calibration import BARELY
from gossamer.certainty.links import LARGEST_SCORE, Link, check_link
from gossamer.estimators import divergence, inputs, targets as _targets
from gossamer.learner import Learner
from gossamer.losses import Several

#: The labels of an indicator matrix.
LABELS = np.array([0, 1])


def is_several(model: Any) -> bool:
    """Whether a model has learned several targets."""
    learner = model.__dict__.get("learner_")
    return learner is not None and isinstance(learner.loss, Several)


def are_several(y: Any) -> bool:
    """Whether these are several targets of each row: a matrix of more than one column."""
    shape = np.shape(y) if isinstance(y, np.ndarray) or hasattr(y, "shape") else _shape(y)
    return len(shape) == 2 and shape[1] != 1


def _shape(y: Any) -> tuple[int, ...]:
    try:
        first = y[0]
        return (len(y), len(first)) if isinstance(first, (list, tuple, np.ndarray)) and np.ndim(first) == 1 else ()
    except (TypeError, KeyError, IndexError, ValueError):
        return ()


def takes(model: Any) -> bool:
    """Whether the parameters of an estimator make a learner of several targets."""
    try:
        _loss(model, 2)
    except ValueError:
        return False
    return True


def check(model: Any, y: Any) -> Array:
    """y as a vector, or as a matrix of several targets."""
    if not are_several(y):
        if is_several(model):
            rule = f"a matrix with {model.learner_.loss.targets} columns, as in the rows before"
            raise _checks.wrong(model, "y", rule, np.shape(y))
        return _checks.column(model, y)
    learner = model.__dict__.get("learner_")
    if learner is not None and not isinstance(learner.loss, Several):
        raise _checks.wrong(model, "y", "a vector with one entry per row, as in the rows before", np.shape(y))
    array = np.asarray(y)
    return _checks.targets(model, array, len(array), None if learner is None else learner.loss.targets)


def _learner(model: Any, count: int) -> Learner:
    """The learner of a model for this many targets."""
    learner = model.__dict__.get("learner_")
    if learner is not None:
        found: Learner = learner
        return found
    begun: Learner = model._begin(_loss(model, count))
    return begun


def _loss(model: Any, count: int) -> Several:
    """The loss of a model for this many targets, if its rule takes it."""
    if not model.takes_several:
        what = f"a vector: {type(model).__name__} learns one target (`PerTarget` has a model for each)"
        raise _checks.wrong(model, "y", what, f"{count} targets")
    loss = model._loss()
    if loss.target not in ("real", "binary") or loss.adapts:
        raise _checks.wrong(model, "y", f"a vector for {type(loss).__name__}, which several targets cannot have", count)
    made = Several(loss, count)
    try:
        model._rule().check(made)
    except ValueError:
        what = f"a vector for {type(model._rule()).__name__}, which learns one target"
        raise _checks.wrong(model, "y", what, f"{count} targets") from None
    return made


def learn_numbers(model: Any, X: Any, y: Floats, sample_weight: Any, time: Any) -> Floats:
    """Learn rows with several real targets; returns the predictions made before each."""
    names, learner = model._names(X), _learner(model, y.shape[1])
    y, weights, fades = _validate(model, learner, X, y, sample_weight, time)
    if not getattr(model, "scale_target", False):
        scores, _ = inputs.learn(learner, X, y, weights, owner=model, time=time)
        model._keep(learner, names)
        divergence.watch_rows(model, scores, y, learner.steps - len(scores))
        return scores
    before = model.__dict__.get("_target_moments") or (_targets.NOTHING,) * y.shape[1]
    found = [_targets.follow_all(m, np.ascontiguousarray(y[:, j]), weights, fades) for j, m in enumerate(before)]
    moments = tuple(after for _, after in found)
    for own in moments:
        _targets.check_finite(model, own, y)
    scaled, means, deviations = (np.column_stack([rows[i] for rows, _ in found]) for i in range(3))
    scores, _ = inputs.learn(learner, X, np.ascontiguousarray(scaled), weights, owner=model, time=time)
    model._keep(learner, names, _target_moments=moments)
    divergence.watch_rows(model, scores, scaled, learner.steps - len(scores))
    return np.asarray(scores * deviations + means)


def _check_parameters(model: Any) -> None:
    """Raise for parameters that several labels do not take."""
    for name in ("cost", "class_weight"):
        if getattr(model, name, None) is not None:
            rule = "None for several labels (`PerTarget` has a model for each)"
            raise _checks.wrong(model, name, rule, getattr(model, name))


def learn_labels(model: Any, X: Any, y: Floats, sample_weight: Any, classes: Any, time: Any) -> Floats:
    """Learn rows with an indicator matrix of labels; returns the scores made before each."""
    _check_parameters(model)
    if not np.isin(y, LABELS).all():
        raise _checks.wrong(model, "y", "an indicator matrix of 0 and 1 for several labels", y[~np.isin(y, LABELS)][0])
    if classes is not None and not np.isin(np.asarray(classes), LABELS).all():
        raise _checks.wrong(model, "classes", "None or [0, 1] for an indicator matrix", classes)
    names, learner = model._names(X), _learner(model, y.shape[1])
    signs, weights, fades = _validate(model, learner, X, 2.0 * y - 1.0, sample_weight, time)
    scores, _ = inputs.learn(learner, X, signs, weights, owner=model, time=time)
    links = _follow(model, scores, signs, weights, fades)
    fresh = {} if "_order" in model.__dict__ else {"_order": LABELS.tolist(), "classes_": LABELS.copy(), "_given": True}
    model._keep(learner, names, **fresh, **links)
    divergence.watch_rows(model, scores, y, learner.steps - len(scores))
    return scores


def _validate(model: Any, learner: Learner, X: Any, y: Floats, sample_weight: Any, time: Any) -> tuple[Any, Any, Any]:
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    loss: Any = learner.loss
    try:
        y = _checks.targets(model, y, rows, loss.targets)
        return y, _checks.weights(model, sample_weight, rows), learner.elapse(time, rows)[0]
    except ValueError:
        inputs.check(learner, X)  # errors of X come first
        raise


def units(moments: Any) -> tuple[Floats, Floats]:
    """The means and deviations of several targets."""
    means, deviations = zip(*(_targets.units(own) for own in moments), strict=True)
    return np.array(means), np.array(deviations)


def refuse_certainty(model: Any, missed: Any) -> None:
    """Raise for intervals, sets and calibrated probabilities of several targets, which there are not."""
    if missed is not None and ("learner_" not in model.__dict__ or is_several(model)):
        raise _checks.wrong(model, "coverage", "left out: several targets have no intervals and sets", missed)


def _follow(model: Any, scores: Floats, signs: Floats, weights: Any, fades: Any) -> dict[str, Any]:
    """A calibrated link for each label, after scores made before their rows were learned; none in later passes of
    ``fit``, whose scores are too good."""
    if "_rehearses" in model.__dict__:
        return {}
    before = model.__dict__.get("_links", np.tile(Link(), (scores.shape[1], 1)))
    if not np.isfinite(scores).all():  # a model that has diverged teaches nothing
        return {"_links": before}
    columns = zip(before.tolist(), scores.T, signs.T, strict=True)
    after = [Link(*own).learn_all(column, second > 0, weights, fades)[1] for own, column, second in columns]
    return {"_links": np.array(after)}


def probabilities(model: Any, scores: Floats) -> Floats:
    """The probability of each label, by the links; in the order of the scores, and above 1/2 where the label is
    predicted, if only by a little. NaN where a model that diverged has no score."""
    lost = np.isnan(scores)
    scores = np.clip(np.where(lost, 0.0, scores), -LARGEST_SCORE, LARGEST_SCORE)
    links = model.__dict__.get("_links", np.tile(Link(), (scores.shape[1], 1)))
    p = np.column_stack(
        [Link(*own).probabilities(column) for own, column in zip(links.tolist(), scores.T, strict=True)]
    )
    side = 0.5 + BARELY * scores / (1.0 + np.abs(scores))
    return np.where(lost, np.nan, np.where(scores > 0, np.maximum(p, side), np.minimum(p, side)))


def check_links(model: Any, learned: dict[str, Any], learner: Any) -> None:
    """Validate the links of labels in a file, and the parameters of a model that has learned several."""
    if isinstance(learner.loss, Several):
        _check_parameters(model)
    links = learned.get("_links")
    if links is None:
        return
    shape = (getattr(learner.loss, "targets", 0), len(Link._fields))
    fits = isinstance(links, np.ndarray) and links.dtype == np.float64 and links.shape == shape
    if not fits or not isinstance(learner.loss, Several):
        raise _checks.wrong(model, "_links", f"numbers of shape {shape}, of several labels", links)
    for own in links.tolist():
        check_link(model, "_links", Link(*own))


def check_moments(owner: object, learner: Any, found: Any) -> None:
    """Validate the moments of the targets in a file."""
    if not isinstance(getattr(learner, "loss", None), Several):
        _targets.check_moments(owner, found)
        return
    if not isinstance(found, tuple) or len(found) != learner.loss.targets:
        raise _checks.wrong(owner, "_target_moments", f"the moments of {learner.loss.targets} targets", found)
    for own in found:
        _targets.check_moments(owner, own)
