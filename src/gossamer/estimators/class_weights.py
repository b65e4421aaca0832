"""Class weights: what a row of each class counts for, given, or by the rows of each class so far.

"balanced" gives the classes equal weight on the whole, online. With the rows n_c of class c up to and with this one
(their weights added up), n of all classes, and K classes seen so far, a row of class c counts

    min(n / (K n_c), 1 + n_c).

The first is scikit-learn's weight for the rows so far. The second bounds it for the first rows of a class that comes
late: one row should not count for thousands.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats
from gossamer.rules import Rule

BALANCED = "balanced"


def check(owner: object, class_weight: Any, rule: Rule | None = None) -> Any:
    """Validate the parameter: None, "balanced", or a dict of labels and weights; None for a rule without weights."""
    if class_weight is not None and rule is not None and not rule.weighs:
        what = f"None with {type(rule).__name__}, whose steps do not depend on the weight of a row"
        raise _checks.wrong(owner, "class_weight", what, class_weight)
    if class_weight is None or (isinstance(class_weight, str) and class_weight == BALANCED):
        return class_weight
    told = "None, 'balanced' or a dict of labels and weights, none negative"
    if not isinstance(class_weight, Mapping) or not class_weight:
        raise _checks.wrong(owner, "class_weight", told, class_weight)
    for weight in class_weight.values():
        plain = isinstance(weight, numbers.Real) and not isinstance(weight, (bool, np.bool_))
        if not plain or not 0 <= float(weight) < np.inf:
            raise _checks.wrong(owner, "class_weight", told, class_weight)
    return class_weight


def weigh(
    owner: object, class_weight: Any, order: list[Any], codes: Floats, sample_weight: Any, fades: Floats | None,
    counts: Floats | None,
) -> tuple[Any, dict[str, Any]]:  # fmt: skip
    """The weights of rows whose classes are ``order[code]``, and what is learned of the counts of classes.

    >>> weigh("model", {"no": 2}, ["no", "yes"], np.array([0.0, 1.0]), [3.0, 4.0], None, None)[0].tolist()
    [6.0, 4.0]
    """
    if check(owner, class_weight) is None:
        return sample_weight, {}
    weights = _checks.weights(owner, sample_weight, len(codes))
    if not isinstance(class_weight, str):
        each = np.array([float(class_weight.get(label, 1.0)) for label in order])[codes.astype(np.int64)]
        return (each if weights is None else each * weights), {}
    after = np.zeros(len(order))
    after[: 0 if counts is None else len(counts)] = 0.0 if counts is None else counts
    out = np.empty(len(codes))
    _core.balance(codes, weights, fades, after, out)
    return out, {"_class_counts": after}


def balance(codes: Floats, weights: Floats | None, fades: Floats | None, counts: Floats) -> Floats:
    """The weights that balance classes, row by row: the specification of the core's function. ``counts`` go on.

    >>> counts = np.zeros(2)
    >>> balance(np.array([0.0, 0.0, 0.0, 1.0, 0.0]), None, None, counts).round(3).tolist(), counts.tolist()
    ([1.0, 1.0, 1.0, 2.0, 0.625], [4.0, 1.0])
    """
    out = np.zeros(len(codes))
    for t, code in enumerate(codes.astype(int).tolist()):
        counts *= 1.0 if fades is None else fades[t]
        weight = 1.0 if weights is None else float(weights[t])
        counts[code] += weight
        if counts[code] > 0:
            known = np.count_nonzero(counts)
            out[t] = weight * min(counts.sum() / (known * counts[code]), 1.0 + counts[code])
    return out


def check_counts(model: Any, learned: dict[str, Any]) -> None:
    """Validate the counts of classes in a file: there if and only if classes are balanced."""
    counts: Any = learned.get("_class_counts")
    order = learned.get("_order", [])
    balanced = isinstance(model.class_weight, str)
    fits = isinstance(counts, np.ndarray) and counts.dtype == np.float64 and counts.shape == (len(order),)
    if (counts is not None) if not balanced else not (fits and np.isfinite(counts).all() and counts.min() >= 0):
        raise _checks.wrong(model, "_class_counts", "a count of each class, if class_weight is 'balanced'", counts)
