"""Stacking: what experts say together, beside their weighted mean.

A mean of probabilities is never surer than the surest expert, even where many are sure for different reasons. Their
log-odds can be added up instead (Wolpert 1992). With z the log-odds of the mixture and m the mean of those of its
settled experts, whatever their weights,

    u = z + theta . x,  x = (z, m, 1)

are the log-odds of the stack; of many classes, with logarithms of probabilities z_k and m_k, u_k = z_k + theta . x_k
and x_k = (z_k, m_k). theta is 0 at first and learned by one Newton step a row, as in `gossamer.certainty.links`:

    H <- keep H + (1 - keep) PRECISION,  theta <- theta - (H + H_safe)^-1 gradient,  H <- H + curvature

where H_safe is that of a parabola above the loss: no step overshoots. The prediction is again a mixture with fixed
share, of the mixture and the stack: its log loss is at most `gossamer.bounds.fixed_share` of two above the mixture's.
This is the specification; the compiled twin is core/mixture/stacking.hpp.
"""

from __future__ import annotations

import math

import numpy as np

from gossamer._typing import Floats
from gossamer.certainty.links import safe_curvature, sigmoid
from gossamer.mixture.opinions import LEAST

#: Rows before weigh less by this factor at each row, where forgetting is not by the clock.
KEEP = 0.9999
#: How firmly theta stays near 0, in rows.
PRECISION = 30.0
#: The features of a stack, by its kind; a kind that is not here has none.
FEATURES = {"sign": 3, "class": 2}


def new_stack(kind: str) -> Floats:
    """The numbers of a stack that has seen nothing: its weight beside the mixture, theta, and H row by row.

    >>> new_stack("class").tolist()
    [0.5, 0.0, 0.0, 30.0, 0.0, 0.0, 30.0]
    """
    features = FEATURES.get(kind, 0)
    if not features:
        return np.zeros(0)
    return np.concatenate([[0.5], np.zeros(features), PRECISION * np.eye(features).ravel()])


def widen_stack(of_two: Floats) -> Floats:
    """The stack of two classes as one of many: differences of logarithms are log-odds."""
    found, theta, curvature = new_stack("class"), of_two[1:4], of_two[4:].reshape(3, 3)
    found[0], found[1:3], found[3:] = of_two[0], theta[:2], curvature[:2, :2].ravel()
    return found


def is_sound(kind: str, numbers: Floats) -> bool:
    """Whether the numbers of a stack are as they are learned: a weight, and a curvature that is positive definite."""
    features = FEATURES.get(kind, 0)
    if not features:
        return True
    curvature = numbers[1 + features :].reshape(features, features)
    definite = (curvature == curvature.T).all() and float(np.linalg.eigvalsh(curvature)[0]) > 0
    return bool(0 < numbers[0] < 1 and definite)


def stack(
    kind: str, out: Floats, together: Floats, y: Floats | None, importance: Floats | None, numbers: Floats,
    share: float, fades: Floats | None = None,
) -> None:  # fmt: skip
    """Replace the scores ``out`` of a mixture, (rows, outputs), by those of the mixture and the stack, each before its
    row is learned; ``together``: the means m. With ``y`` the numbers of the stack go on.

    >>> numbers, out = new_stack("sign"), np.tile([[1.0], [-1.0]], (500, 1))
    >>> stack("sign", out, 2 * out, np.sign(out[:, 0]), None, numbers, 1e-4)
    >>> out[[0, -2]].round(1).ravel().tolist()
    [1.0, 3.5]
    """
    features = FEATURES[kind]
    theta, curvature = numbers[1 : 1 + features], numbers[1 + features :].reshape(features, features)
    for t in range(len(out)):
        known = np.isfinite(out[t])
        z, m = out[t][known], together[t][known]
        x = np.column_stack([z, m, np.ones(1)] if kind == "sign" else [z, m])
        u = z + x @ theta
        if kind == "sign":
            second = sigmoid(float(u[0]))
            own = np.array([LEAST + (1.0 - 2.0 * LEAST) * second])
            mixed = np.array([sigmoid(float(z[0]))])
            both = numbers[0] * own + (1.0 - numbers[0]) * mixed
            out[t] = np.log(both) - np.log1p(-both)
        else:
            soft = np.exp(u - u.max(initial=-math.inf))
            soft /= soft.sum()
            own, mixed = LEAST / max(len(z), 1) + (1.0 - LEAST) * soft, np.exp(z)
            out[t, known] = np.log(numbers[0] * own + (1.0 - numbers[0]) * mixed)
        c = 1.0 if importance is None else float(importance[t])
        if y is None:
            continue
        keep = KEEP if fades is None else float(fades[t])
        label = int(y[t]) if kind == "class" else 0
        if not c > 0 or not known[label]:
            if fades is not None:
                _fade(theta, curvature, keep)
            continue
        place = int(known[:label].sum())
        if kind == "sign":
            right = y[t] > 0
            likely = (own[0], mixed[0]) if right else (1.0 - own[0], 1.0 - mixed[0])
            error = np.array([second - right])
            safe = safe_curvature(float(u[0]), second) * np.outer(x[0], x[0])
            bend = second * (1.0 - second) * np.outer(x[0], x[0])
        else:
            likely = (own[place], mixed[place])
            error = soft - (np.arange(len(z)) == place)
            around, root = x - x.mean(axis=0), np.sqrt(soft)[:, None] * (x - soft @ x)
            safe, bend = 0.5 * around.T @ around, root.T @ root
        ratio = math.exp(min(700.0, max(-700.0, c * (math.log(likely[0]) - math.log(likely[1])))))
        gained = numbers[0] * ratio
        numbers[0] = (1.0 - share) * (gained / (gained + 1.0 - numbers[0])) + share / 2.0
        gradient = c * (error @ x) + (1.0 - keep) * PRECISION * theta
        curvature[:] = keep * curvature + (1.0 - keep) * PRECISION * np.eye(features)
        theta -= np.linalg.solve(curvature + c * safe, gradient)
        curvature += c * bend


def _fade(theta: Floats, curvature: Floats, factor: float) -> None:
    """Time passes: theta goes back towards 0."""
    if factor < 1.0:
        curvature[:] = factor * curvature + (1.0 - factor) * PRECISION * np.eye(len(theta))
        theta -= np.linalg.solve(curvature, (1.0 - factor) * PRECISION * theta)
