"""Make the loss and the budget from the parameters of an estimator."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from gossamer import _checks, _registry
from gossamer.budgets import Budget, Oldest, Project, Smallest, as_budget
from gossamer.exceptions import ParameterError
from gossamer.losses import Loss, Multiclass, Taxonomy


def choose_budget(estimator: Any, policy: type[Oldest] | type[Smallest] | type[Project]) -> Budget | None:
    """A budget from a number (the paper's policy), a Budget, a name ("project", "project:64", "auto", ...) or None."""
    size = estimator.budget
    if size is None or isinstance(size, Budget):
        return size
    if isinstance(size, str):
        return as_budget(size)
    return policy(_checks.whole(estimator, "budget", size, 1))


def choose_loss(estimator: Any, *more: str) -> Loss:
    """A loss from a Loss, or from a name: with the parameters behind it, or else those that the estimator has for it.

    A loss that brings its parameters leaves none to the estimator. ``more``: what else the error lists.

    >>> from gossamer import SILKRegressor
    >>> choose_loss(SILKRegressor(loss="huber", delta=0.5)) == choose_loss(SILKRegressor(loss="huber:delta=0.5"))
    True
    """
    loss, given = estimator.loss, _registry.parameters(type(estimator))
    named = isinstance(loss, str)
    name, settings = _registry.parse(loss) if named else ("", [])
    known = _registry.named(Loss)
    part = known[name][0] if name in known else loss
    if not ((named and name in known) or isinstance(loss, Loss)) or part.target not in estimator.targets:
        names = (*more, *(name for name, (part, *_) in known.items() if part.target in estimator.targets))
        raise _checks.wrong(estimator, "loss", f"a Loss, or one of {', '.join(map(repr, names))}", loss)
    if named and not settings:
        taken = [key for key in _registry.parameters(part) if key in given and key != "cost"]
        if "nu" in given and estimator.nu is not None and "nu" not in taken:
            raise _checks.wrong(estimator, "nu", f"None for the loss {loss!r}", estimator.nu)
        part = _registry.find(Loss, name, estimator, "loss")
        return cast(Loss, part(**{key: getattr(estimator, key) for key in taken}))
    for key in ("margin", "nu", "epsilon", "delta", "quantile"):
        if key in given and getattr(estimator, key) != given[key].default:
            rule = f"left to the loss, which has its own parameters: {loss}"
            raise _checks.wrong(estimator, key, rule, getattr(estimator, key))
    return _registry.as_part(Loss, loss, "loss", "a Loss", estimator)


def choose_loss_many(estimator: Any, classes: int | None) -> Loss:
    """The loss of a score per class that belongs to the estimator's loss, with its costs; an error if there is none."""
    loss, cost = estimator._loss(), getattr(estimator, "cost", None)
    name = _registry.name_of(type(loss))
    found: Loss | None = loss.for_classes(classes)
    own = getattr(found, "classes", None)
    if classes is not None and own not in (None, classes):
        raise _checks.wrong(estimator, "classes", f"{own} labels, as the loss has", f"{classes} labels")
    if found is None:
        raise _checks.wrong(estimator, "y", f"of two classes for the loss {name!r} or with nu", "more")
    if cost is not None and not isinstance(found, Multiclass):
        raise _checks.wrong(estimator, "cost", f"None for the loss {name!r}", cost)
    step = getattr(estimator, "multiclass", None)  # of SILK
    if isinstance(found, Multiclass) and (cost is not None or step is not None):
        label_kernel = found.label_kernel
        step = found.step if step is None else step
        if isinstance(cost, Taxonomy):
            place = np.argsort(np.array(cost.labels))  # the costs in the order of the codes
            cost, label_kernel = (np.array(m)[np.ix_(place, place)] for m in (cost.cost, cost.label_kernel))
            return Multiclass(cost, label_kernel, step=step)
        if cost is not None:
            return Multiclass(cost, label_kernel, classes=classes, step=step)
        found = Multiclass(found.cost, label_kernel, found.classes, step, found.margin)
    try:
        estimator._rule().check(found)
    except ParameterError as error:
        if error.parameter != "loss":
            raise
        binary = "Only binary classification is supported. The type of the target is multiclass."
        raise _checks.wrong(estimator, "y", "of two classes", f"a third. {binary}") from None
    return found
