"""Second-order steps: the implicit step in a metric that is learned (docs/second_order.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gossamer import _checks
from gossamer._typing import Floats
from gossamer.losses import Loss
from gossamer.losses.base import over
from gossamer.rules.base import Example, Rule, Step

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion

#: Of k(x, x): where the variance that is left is smaller, there is nothing to learn but rounding.
LEAST_VARIANCE = 1e-9
#: Of k(x, x), for the variance and the noise together: A grows as 1 / this, the rounding of s^2 as A.
LEAST_SPREAD = 1e-6
#: A point whose pivot is a smaller share of its column in the metric has no observation to delete.
LEAST_PIVOT = 1e-15
#: The largest change of a metric, which only a forged one reaches: it then begins anew. The largest number in a state.
LARGEST_CHANGE, LARGEST = 1e100, 1e150
#: Of the largest: smaller eigenvalues of a Gram matrix are rounding.
LEAST_AXIS = 1e-12
#: The factor of the metric is folded into it before it falls below.
SMALLEST_FACTOR = 1e-6


@dataclass(frozen=True)
class Newton(Rule):
    """The implicit step in the metric of what is already known: recursive least squares, the online Newton step, AROW.

    The state is a matrix A over the points. With k = k(points, x), v = A k and s^2 = k(x, x) - k.v, the variance left
    at x, f moves along the covariance with x, which is u = k(x, .) - sum_j v_j k(x_j, .):

    f <- f + g u,   g = argmin s^2 g^2 / 2 + loss(f(x) + g s^2) / noise,   A <- A + w u u',   w = h / (1 + h s^2)

    with h the curvature of the loss over the noise where the step ends (`Loss.stiffness`). Directions that the data has
    settled become stiff, others stay soft. A row without a step costs no more than with `Implicit`, one with a step
    O(points^2).

    The squared loss gives kernel recursive least squares (Engel, Mannor, Meir 2004) and, without a budget, exactly the
    mean of Gaussian process regression; with forgetting KRLS-T (Van Vaerenbergh, Lazaro-Gredilla, Santamaria 2012); the
    squared hinge AROW (Crammer, Kulesza, Dredze 2009). A budget that projects projects A too. Where a budget drops a
    point, the observation is deleted: with `Oldest` this is sliding-window KRLS (Van Vaerenbergh, Via, Santamaria
    2006).

    Parameters
    ----------
    noise : the variance of the targets' noise; 1 / noise is the weight of the loss.
    forgetting : the factor of recursive least squares, in (0, 1]: A <- forgetting A, f <- sqrt(forgetting) f after each
        row. 1 forgets nothing.
    settling : the noise of step t is noise + settling / t: for targets whose units are learned on the way, so that the
        first ones, in units that were not yet known well, do not count for ever.

    >>> from gossamer.losses import Squared
    >>> rule = Newton(noise=1.0)
    >>> start = rule.unpack(rule.initial_state(), 0)
    >>> rule.step(Squared(), Example(0.0, 0.0, 2.0, 1.0, row=np.zeros(0), state=start))[:2]
    (1.0, 1.0)
    """

    twin: ClassVar[str] = "newton"
    keeps_norm: ClassVar[bool] = False
    rate: ClassVar[float] = 0.05  # type: ignore[misc] # of the level of a loss with nu
    noise: float = 0.1
    forgetting: float = 1.0
    settling: float = 0.0

    def __post_init__(self) -> None:
        _checks.number(self, "noise", self.noise, 0.0, math.inf)
        _checks.number(self, "forgetting", self.forgetting, 0.0, 1.0, "right")
        _checks.number(self, "settling", self.settling, 0.0, math.inf, "left")

    def check(self, loss: Loss) -> None:
        super().check(loss)
        base = getattr(loss, "base", loss)  # of several targets
        if getattr(base, "margin", None) == 0 and not loss.adapts:
            raise _checks.wrong(base, "margin", "positive with Newton (f = 0 would never be left)", 0)
        if getattr(loss, "label_kernel", None) is not None:
            raise _checks.wrong("Learner", "loss", "without a label kernel with Newton", loss)
        if loss.many and type(loss).implicit_many is Loss.implicit_many:
            raise _checks.wrong("Learner", "loss", "one that defines implicit_many with Newton", loss)

    def step(self, loss: Loss, e: Example) -> Step:
        keep, many = math.sqrt(self.forgetting), loss.many
        z: Any = e.value + e.offset
        y: Any = e.aim if many else e.y
        level = loss.level
        if loss.adapts and not many and e.weight > 0:
            level = loss.adapt(z, y, e.rate * e.weight)
        rest = Step(keep, 0.0 * z, e.offset, level)
        e.state.update(v=None, shrink=1.0)
        if not (e.kappa > 0 and e.weight > 0 and np.any(loss.slope(z, y))):
            return rest
        v, variance, shrink = self._look(e.row, e.kappa, e.state)
        weight = e.weight / (self.noise + self.settling / (e.updates + 1))
        if variance <= LEAST_VARIANCE * e.kappa or variance + over(1.0, weight) <= LEAST_SPREAD * e.kappa:
            e.state["shrink"] = shrink
            return rest
        g = loss.implicit_many(z, y, variance, weight, z) if many else loss.implicit(z, y, variance, weight)
        if not np.any(g):
            return rest
        h = weight * loss.stiffness(z + variance * g, y, -g / weight)
        e.state.update(v=v, h=h, w=h / (1.0 + h * variance))
        return Step(keep, keep * g, e.offset, level, None, -keep * np.multiply.outer(g, v))

    @staticmethod
    def _look(row: Floats, kappa: float, state: dict[str, Any]) -> tuple[Floats, float, float]:
        """v = A k, the variance at x, and the factor by which A shrinks: A is at most K^-1, so k A k at most k(x, x).
        Every row that asks for a step checks it; where rounding has made it larger, all of A shrinks to that."""
        known = len(state["metric"])
        v = np.zeros(len(row))
        v[:known] = state["factor"] * (state["metric"] @ row[:known])
        covered = float(row @ v)
        shrink = kappa / covered if covered > kappa else 1.0
        return v, kappa - min(max(0.0, covered), kappa), shrink

    def variance(self, values: Floats, kappas: Floats, state: dict[str, Any]) -> Floats:
        known = values[: len(state["metric"])]
        covered = state["factor"] * np.sum(known * (state["metric"] @ known), axis=0)
        return np.asarray(np.clip(kappas - covered, 0.0, kappas))

    def pool(
        self, gram: Floats, coefs: list[Floats], states: list[dict[str, Any]], places: list[Any]
    ) -> tuple[Floats, Floats]:
        """All models have one prior, and each its own evidence: with B = A (I - K A)^-1 and h = (I + B K) a of each,
        A <- B (I + K B)^-1 and a <- (I + B K)^-1 h of their sums; here in coordinates in which K is the identity."""
        values, vectors = np.linalg.eigh(gram)
        held = values > LEAST_AXIS * values[-1]
        roots, axes = np.sqrt(values[held]), vectors[:, held]
        evidence = np.zeros((len(roots), len(roots)))
        target = np.zeros((len(coefs[0]), len(roots)))
        for a, state, place in zip(coefs, states, places, strict=True):
            metric = state["factor"] * square(state["metric"])
            known = (roots * axes[place[: len(metric)]]).T
            shares, turn = np.linalg.eigh(known @ metric @ known.T)
            shares = np.clip(shares, 0.0, 1.0 - LEAST_VARIANCE)
            own = (turn * (shares / (1.0 - shares))) @ turn.T
            weights = a @ (axes * roots)
            evidence += own
            target += weights + weights @ own
        total = np.linalg.inv(np.eye(len(roots)) + evidence)
        back = axes / roots
        return target @ total @ back.T, back @ (np.eye(len(roots)) - total) @ back.T

    # the metric as the points change: a change of the points is a linear map P of the coefficients, A <- P A P'

    def placed(self, slot: int, expansion: Expansion, state: dict[str, Any]) -> None:
        u = -state["v"]
        u = np.append(u, 0.0) if slot == len(u) else u
        u[slot] += 1.0
        self._learn(u, state)

    def absorbed(self, shares: Floats, state: dict[str, Any]) -> None:
        u = shares.copy()
        u[: len(state["v"])] -= state["v"]
        self._learn(u, state)

    def _learn(self, u: Floats, state: dict[str, Any]) -> None:
        known = len(state["metric"])
        state["metric"] = np.pad(state["metric"], (0, len(u) - known))
        u = math.sqrt(state["w"] / state["factor"]) * u
        self._change(np.multiply.outer(u, u), state)  # symmetric to the bit
        state["v"] = None

    @staticmethod
    def _change(change: Floats, state: dict[str, Any]) -> None:
        state["metric"] += change
        if not np.abs(change).max(initial=0.0) <= LARGEST_CHANGE:
            state["metric"][:] = 0.0

    def handed_over(self, slot: int, shares: Floats, state: dict[str, Any]) -> None:
        change = shares.copy()
        change[slot] -= 1.0
        column = state["metric"][slot].copy()
        cross = np.multiply.outer(change, column + 0.5 * column[slot] * change)
        self._change(cross + cross.T, state)
        if state["v"] is not None:
            state["v"] = state["v"] + state["v"][slot] * change

    def renewed(self, row: Floats, kappa: float, state: dict[str, Any]) -> None:
        state["v"], variance, _ = self._look(row, kappa, state)
        state["w"] = state["h"] / (1.0 + state["h"] * variance)

    def drop(self, slot: int, state: dict[str, Any]) -> tuple[Floats, float] | None:
        """The observation of a slot is deleted: A becomes its Schur complement, a_j falls by a_i A_ji / A_ii."""
        column = state["factor"] * state["metric"][slot]
        newcomer = 0.0
        if state["v"] is not None:  # with the newcomer, which will take the slot
            column = column + state["w"] * state["v"][slot] * state["v"]
            newcomer = -state["w"] * state["v"][slot]
        pivot = float(column[slot])
        if not pivot > LEAST_PIVOT * np.abs(column).max():
            return np.zeros(len(column)), math.inf
        shares = -column / pivot
        shares[slot] = -newcomer / pivot
        return shares, pivot

    def merged(self, slot: int, other: int, kernel: Floats, coefs: Floats, state: dict[str, Any]) -> Floats:
        """Both observations are deleted, and one is learned at the new point that brings mean and variance there back
        to what they were: so A never leaves [0, K^-1]."""
        metric, factor, coefs = state["metric"], state["factor"], coefs.copy()
        kappa = 1.0  # of a Gaussian
        before = min(max(0.0, factor * float(kernel @ metric @ kernel)), kappa)
        mean = coefs @ kernel
        for gone in (slot, other):
            column = metric[gone].copy()
            pivot = float(column[gone])
            if pivot > LEAST_PIVOT * np.abs(column).max():
                coefs -= np.multiply.outer(coefs[:, gone], column / pivot)
                root = column / math.sqrt(pivot)
                metric -= np.multiply.outer(root, root)
            coefs[:, gone] = metric[gone] = metric[:, gone] = 0.0
        kernel = kernel.copy()
        kernel[[slot, other]] = 0.0
        v, variance, _ = self._look(kernel, kappa, state)
        if variance > LEAST_SPREAD * kappa:  # else the others say what is there
            share = max(0.0, before - (kappa - variance)) / variance  # of the variance, which the observation takes
            g = (mean - coefs @ kernel) / variance
            u = -v
            u[slot] = 1.0
            coefs += np.multiply.outer(g, u)
            state["w"] = share / variance
            self._learn(u, state)
        return coefs

    def removed(self, slot: int, expansion: Expansion, state: dict[str, Any]) -> None:
        metric, last = state["metric"], len(state["metric"]) - 1
        if last < 0:  # everything is being forgotten
            return
        metric[slot], metric[:, slot] = metric[last], metric[:, last]
        metric[slot, slot] = metric[last, last]
        state["metric"] = metric[:last, :last].copy()
        if state["v"] is not None:
            state["v"][slot] = state["v"][last]
            state["v"] = state["v"][:last]

    def ended(self, state: dict[str, Any]) -> None:
        state["v"] = None
        self._shrink(self.forgetting * state["shrink"], state)
        state["shrink"] = 1.0

    def fade(self, factor: float, state: dict[str, Any]) -> float:
        self._shrink(factor, state)
        return math.sqrt(factor)

    @staticmethod
    def _shrink(factor: float, state: dict[str, Any]) -> None:
        state["factor"] *= factor
        if state["factor"] < SMALLEST_FACTOR:
            state["metric"] *= state["factor"]
            state["factor"] = 1.0

    def forgotten(self, state: dict[str, Any]) -> None:
        state.update(self.unpack(self.initial_state(), 0))

    def initial_state(self) -> dict[str, Any]:
        return {"metric": np.zeros(0), "factor": 1.0}

    def unpack(self, state: dict[str, Any], size: int) -> dict[str, Any]:
        return {"metric": square(state["metric"]), "factor": state["factor"], "v": None, "w": 0.0, "shrink": 1.0}

    def pack(self, state: dict[str, Any]) -> dict[str, Any]:
        metric = state["metric"]
        return {"metric": metric[np.tril_indices(len(metric))], "factor": state["factor"]}

    def check_state(self, state: dict[str, Any], size: int) -> None:
        metric, factor = state["metric"], state["factor"]
        if not SMALLEST_FACTOR <= factor <= 1:
            raise _wrong("factor", f"a number in [{SMALLEST_FACTOR:g}, 1]", factor)
        rows = _rows(metric)
        if rows * (rows + 1) // 2 != len(metric) or rows > size:
            raise _wrong("metric", f"the lower triangle of a matrix of {size} rows", f"{len(metric)} numbers")
        largest = float(np.abs(metric).max(initial=0.0))
        if not largest <= LARGEST:
            raise _wrong("metric", f"finite, and at most {LARGEST:g}", largest)

    def covers(self, state: dict[str, Any], size: int) -> bool:
        return _rows(state["metric"]) == size

    def numbers(self) -> tuple[float, ...]:
        return (*super().numbers(), float(self.noise), float(self.forgetting), float(self.settling))


def square(triangle: Floats) -> Floats:
    """The symmetric matrix of a lower triangle.

    >>> square(np.array([1.0, 2.0, 3.0])).tolist()
    [[1.0, 2.0], [2.0, 3.0]]
    """
    rows = _rows(triangle)
    matrix = np.zeros((rows, rows))
    matrix[np.tril_indices(rows)] = triangle
    return matrix + np.tril(matrix, -1).T


def _rows(triangle: Floats) -> int:
    """The rows of a lower triangle, rounded down."""
    return (math.isqrt(8 * len(triangle) + 1) - 1) // 2


def _wrong(name: str, rule: str, got: Any) -> ValueError:
    return _checks.wrong("Learner", f"state.rule[{name!r}]", rule, got)
