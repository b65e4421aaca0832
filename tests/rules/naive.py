"""Every algorithm once more, written from the equations of ALGORITHMS and from nothing of the package.

All coefficients are multiplied in every round, values come from an explicit Gram matrix, implicit steps from a
bisection or from trying every face of the simplex. A step is a function (model, t, y) -> (keep, new coefficients); it
may move the offset, the level and SVMD's numbers of the model itself.

The file is long because it has every algorithm in one place, to be read beside ALGORITHMS.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import root

Step = Callable[["Model", int, Any], tuple[float, Any]]


def gaussian(A: Any, B: Any, gamma: float) -> np.ndarray:
    return np.array([[math.exp(-gamma * float(np.sum((a - b) ** 2))) for b in B] for a in A])


def polynomial(A: Any, B: Any, degree: int, gamma: float, shift: float) -> np.ndarray:
    return np.array([[(gamma * float(np.sum(a * b)) + shift) ** degree for b in B] for a in A])


class Model:
    """f = sum_t alpha_t k(x_t, .) over all rounds, a row per class; scores are labels @ alpha @ gram."""

    def __init__(self, gram: Any, outputs: int = 1, labels: Any = None, level: float = 0.0) -> None:
        self.gram, self.labels = gram, np.eye(outputs) if labels is None else np.array(labels)
        self.alpha, self.beta = np.zeros((2, outputs, len(gram)))  # of f, and of SVMD's v
        self.alive: list[int] = []
        self.known, self.offset, self.level, self.rate, self.updates = outputs, 0.0, level, 0.0, 0

    def value(self, t: int) -> np.ndarray:
        return np.array(self.labels @ self.alpha @ self.gram[:, t])

    def inner(self, one: Any, other: Any) -> float:
        """<f, g> from their coefficients."""
        return float(np.trace(one @ self.gram @ other.T @ self.labels))

    @property
    def norm2(self) -> float:
        return self.inner(self.alpha, self.alpha)

    def drop(self, term: int) -> None:
        self.alive.remove(term)
        self.alpha[:, term] = self.beta[:, term] = 0.0


class Run(Model):
    """What one pass over a stream did: the scores and levels met, and the mean hypothesis in ``mean``."""

    def __init__(
        self, gram: Any, y: Any, step: Step, budget: Callable[[Model, int], list[int]] | None = None, outputs: int = 1,
        labels: Any = None, arriving: bool = False, level: float = 0.0,
    ) -> None:  # fmt: skip
        super().__init__(gram, outputs, labels, level)
        rounds = len(gram)
        self.scores, self.levels = np.full((rounds, outputs), -np.inf), np.zeros(rounds)
        total, offsets, self.known = np.zeros((outputs, rounds)), 0.0, 0 if arriving else outputs
        for t in range(rounds):
            total += self.alpha
            offsets += self.offset
            target = 0.0 if y is None else y[t]
            f = self.value(t)
            self.scores[t, : self.known] = f[: self.known] + self.offset
            self.levels[t] = self.level
            self.known = max(self.known, int(target) + 1) if arriving else self.known
            keep, new = step(self, t, target)
            self.alpha *= keep
            self.alive = self.alive if keep else []
            # zero coefficients are not stored; what rounding leaves of a zero is one
            # (a term of SVMD's v alone is a term too)
            moved = max(np.abs(new).max() * gram[t, t], 1e-3 * np.abs(self.beta[:, t]).max() * gram[t, t])
            if moved > 1e-13 * max(1.0, float(np.abs(f).max())):
                self.updates += 1
                self.alive.append(t)
                self.alpha[: np.size(new), t] = new
            for term in [] if budget is None else budget(self, t + 2):  # rounds count from 1: what the next one sees
                self.drop(term)
        self.mean, self.mean_offset = total / rounds, offsets / rounds


# -------------------------------------------------------------------------------------------------------------- budgets


def youngest(size: int) -> Any:
    """1.7, by count: the youngest terms stay."""
    return lambda m, t: sorted(m.alive)[:-size] if len(m.alive) > size else []


def window(age: Callable[[int], int]) -> Any:
    """1.7, by age: round t sees the terms born in rounds >= t - age(t) (a birth is an index + 1)."""
    return lambda m, t: [i for i in m.alive if i + 1 < t - age(t)]


def silk(size: int, by_norm: bool = True) -> Any:
    """3.1: the term of the smallest coefficient, or norm (3.2), leaves, the oldest of equals first."""

    def weight(m: Model, i: int) -> float:
        return float(np.linalg.norm(m.alpha[:, i])) * (math.sqrt(m.gram[i, i]) if by_norm else 1.0)

    return lambda m, t: [min(m.alive, key=lambda i: (weight(m, i), i))] if len(m.alive) > size else []


def sublinear(rate: float, reg: float, exponent: float, horizon: int = 100_000) -> Any:
    """1.8: s_t = min(t, max(t0, ceil(t^(1/2 + eps))))."""
    p, t0 = rate * reg, 1
    for t in range(1, horizon):
        far = math.exp(-p * t**exponent) > p / math.sqrt(t) or math.ceil(t ** (0.5 + exponent)) > 3 * t / 4
        t0 = t + 1 if far or p / math.sqrt(t) > 1 else t0
    return window(lambda t: min(t, max(t0, math.ceil(t ** (0.5 + exponent)))))


# --------------------------------------------------------------------------------------------------------------- losses


def slope(name: str, z: float, y: float, level: float) -> float:
    """l'(z, y): minus the table of 1.1. ``level`` is rho, epsilon, sigma or the quantile, whichever the loss has."""
    return -float(DESCENTS[name](z, y, y - z, level))


DESCENTS: dict[str, Callable[..., float]] = {
    "hinge": lambda z, y, r, level: y * (y * z <= level),
    "squared_hinge": lambda z, y, r, level: y * max(0.0, level - y * z),
    "logistic": lambda z, y, r, level: y / (1 + math.exp(y * z)),
    "squared": lambda z, y, r, level: r,
    "epsilon": lambda z, y, r, level: math.copysign(1, r) * (abs(r) > level),
    "pinball": lambda z, y, r, level: level if r > 0 else level - 1 if r < 0 else 0.0,
    "huber": lambda z, y, r, level: max(-1.0, min(1.0, r / level)),
    "huber_standard": lambda z, y, r, level: max(-level, min(level, r)),
    "novelty": lambda z, y, r, level: float(z < level),
}


def curvature(name: str, z: float, y: float, level: float) -> float:
    """l'' of 4."""
    inside = abs(y - z) < level
    p = 1 / (1 + math.exp(-z))
    second = {"squared_hinge": y * z < level, "logistic": p * (1 - p), "squared": 1, "huber_standard": inside}
    return float(second.get(name, inside / level if name == "huber" else 0.0))


def adapted(name: str, z: float, y: float, level: float, rate: float, nu: float | None) -> float:
    """The level after an example: 1.3 to 1.6, with the signs put right there."""
    if nu is None:
        return level
    r = abs(y - z)
    if name in ("hinge", "novelty"):
        return level + rate * (nu - (y * z <= level if name == "hinge" else z < level))
    if name == "epsilon":
        return max(0.0, level + (rate * (1 - nu) if r > level else -rate * nu))
    quantile = (1 - nu) if r > level else -nu
    return max(1e-6, level + rate * ((min(1.0, (r / level) ** 2) - nu) / 2 if name == "huber_gradient" else quantile))


def threat(m: Model, f: Any, y: int, cost: Any) -> int | None:
    """1.10: argmax over the other known classes of cost + score, the lowest of equals."""
    others = [j for j in range(m.known) if j != y]
    return max(others, key=lambda j: (round(float(cost[y][j] + f[j]), 11), -j)) if others else None  # rounding aside


def slopes(m: Model, loss: Any, f: Any, y: Any) -> np.ndarray:
    """The gradient of the loss in the scores, for one score or one per class."""
    if isinstance(loss, str) and loss != "softmax":
        return np.array([slope(loss.replace("_gradient", ""), f[0] + m.offset, y, m.level)])
    xi, y = np.zeros(len(f)), int(y)
    if isinstance(loss, str):
        e = np.exp(f[: m.known] - f[: m.known].max())
        xi[: m.known] = e / e.sum()
        xi[y] -= 1
        return xi
    rival = threat(m, f, y, loss)
    if rival is not None and loss[y][rival] + f[rival] - f[y] >= 0:
        xi[y], xi[rival] = -1, 1
    return xi


def bends(m: Model, loss: Any, f: Any, y: Any, v: Any) -> np.ndarray:
    """The second derivative of the loss, times v."""
    if not isinstance(loss, str):
        return np.zeros(len(f))
    if loss != "softmax":
        return np.array([curvature(loss.replace("_gradient", ""), f[0] + m.offset, y, m.level)]) * v
    p = slopes(m, loss, f, y)
    p[int(y)] += 1
    return np.array((np.diag(p) - np.outer(p, p)) @ v)


# ------------------------------------------------------------------------------------------------------- implicit steps


def bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function changes its sign, to the last bit."""
    while low < (middle := (low + high) / 2) < high and high - low > 1e-17:
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return middle


def implicit(name: str, p: float, y: float, kappa: float, c: float, level: float) -> float:
    """2.1: the root of a + c l'(p + a kappa), between 0 and the explicit step."""
    explicit = -c * slope(name, p, y, level)
    return bisect(lambda a: a + c * slope(name, p + a * kappa, y, level), min(0.0, explicit), max(0.0, explicit))


def simplex(p: Any, y: int, K: Any, c: float, cost: Any) -> np.ndarray:
    """2.6, exact: the best of the stationary points of the dual on all faces of the simplex; c (e_y - pi)."""
    n, e = len(p), np.eye(len(p))[y]
    threats = np.array(cost[y])[:n] + p
    best, answer = -np.inf, np.zeros(n)
    for size in range(1, n + 1):
        for face in map(list, itertools.combinations(range(n), size)):
            system = np.block([[c * K[np.ix_(face, face)], np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
            solved = np.linalg.lstsq(system, np.append((threats + c * K @ e)[face], 1.0), rcond=None)[0]
            pi = np.zeros(n)
            pi[face] = solved[:-1]
            dual = pi @ threats - c / 2 * (e - pi) @ K @ (e - pi)
            if pi.min() > -1e-13 and dual > best:
                best, answer = dual, c * (e - pi)
    return answer


def softmax_step(p: Any, y: int, kappa: float, c: float) -> np.ndarray:
    """2.7: the root of a - c (e_y - softmax(p + kappa a))."""

    def shares(a: Any) -> Any:
        e = np.exp(p + kappa * a - (p + kappa * a).max())
        return e / e.sum()

    def jacobian(a: Any) -> Any:
        return np.eye(len(p)) + c * kappa * (np.diag(shares(a)) - np.outer(shares(a), shares(a)))

    e = np.eye(len(p))[y]
    return np.array(root(lambda a: a - c * (e - shares(a)), np.zeros(len(p)), jac=jacobian, tol=1e-15).x)


def implicit_many(m: Model, loss: Any, f: Any, y: int, kappa: float, c: float, keep: float, exact: bool) -> Any:
    """The step of several classes; ``loss``: a cost matrix, or "softmax"."""
    n, new = m.known, np.zeros(len(f))
    p = keep * f[:n]
    if n < 2:
        return new
    if isinstance(loss, str):
        new[:n] = softmax_step(p, y, kappa, c)
    elif exact:
        new[:n] = simplex(p, y, kappa * m.labels[:n, :n], c, loss)
    else:
        rival = threat(m, f, y, loss)  # at the undecayed scores
        d = kappa * (m.labels[y, y] + m.labels[rival, rival] - 2 * m.labels[y, rival])
        a = min(max((loss[y][rival] + p[rival] - p[y]) / d, 0.0), c) if d > 0 else 0.0
        new[y], new[rival] = a, -a
    return new


# ----------------------------------------------------------------------------------------------------------- algorithms


def shortened(m: Model, loss: Any, f: Any, y: Any, eta: float, reach: float) -> float:
    """A step that would go further goes to the minimum of the parabola along its slope."""
    g = slopes(m, loss, f, y)
    bend = g @ bends(m, loss, f, y, g) / (g @ g) if g.any() else 0.0
    size = eta if eta * bend * reach <= 1 else 1 / (bend * reach)
    flat = isinstance(loss, str) and loss.split("_")[0] in ("squared", "epsilon", "huber", "pinball")
    if flat and loss != "squared_hinge" and size * reach >= 2 and g[0]:
        tube = m.level if loss.startswith("epsilon") else 0.0
        size = min(size, max(0.0, abs(y - f[0] - m.offset) - tube) / reach / abs(g[0]))
    return size


def norma(loss: Any, rate: float, reg: float, falling: bool = False, nu: Any = None, offset: bool = False) -> Step:
    """1.1 to 1.6, and 1.10 where the loss is a cost matrix or "softmax"."""

    def step(m: Model, t: int, y: Any) -> tuple[float, Any]:
        eta, f = rate / math.sqrt(t + 1) if falling else rate, m.value(t)
        g, size = slopes(m, loss, f, y), shortened(m, loss, f, y, eta, m.gram[t, t] + offset)
        if isinstance(loss, str) and loss != "softmax":
            m.level = adapted(loss, f[0] + m.offset, y, m.level, eta, nu)
        m.offset -= size * g[0] if offset else 0.0
        return 1 - eta * reg, -size * g

    return step


def ilk(
    loss: Any, C: float, rate: float = 1.0, reg: float = 0.0, falling: bool = False, nu: float | None = None,
    offset: bool = False, joint: bool = False, exact: bool = True,
) -> Step:  # fmt: skip
    """2.1 to 2.7, with the offset of 2.5 (theta = 1) and the level by 2.3 (a, if joint) or (b)."""

    def step(m: Model, t: int, y: Any) -> tuple[float, Any]:
        eta, f, kappa = rate / math.sqrt(t + 1) if falling else rate, m.value(t), m.gram[t, t]
        keep, T = 1 / (1 + eta * reg), eta * C
        if not isinstance(loss, str) or loss == "softmax":
            return keep, implicit_many(m, loss, f, int(y), kappa, keep * T, keep, exact)
        p, reach, level = keep * f[0] + m.offset, kappa + (1 / keep if offset else 0.0), m.level
        if joint and nu is not None:
            c = keep * T
            if loss == "novelty":
                beta = bisect(lambda b: p + c * b * reach - level - T * (nu - b), 0.0, 1.0)
                m.level, a = level + T * (nu - beta), c * beta
            else:
                beta = bisect(lambda b: max(0.0, level + T * (b - nu)) - abs(y - p) + c * b * reach, 0.0, 1.0)
                m.level, a = max(0.0, level + T * (beta - nu)), math.copysign(c * beta, y - p)
        else:
            m.level = adapted(loss, f[0] + m.offset, y, level, T, nu)
            a = implicit(loss.replace("_gradient", ""), p, y, reach, keep * T, level)
        m.offset += a / keep if offset else 0.0
        return keep, np.array([a])

    return step


def svmd(
    loss: Any, rate: float, reg: float, meta: float, memory: float, C: float | None = None, nu: float | None = None,
    exact: bool = True,
) -> Step:  # fmt: skip
    """4, with v in full; from the first step on the rate is the model's."""

    def step(m: Model, t: int, y: Any) -> tuple[float, Any]:
        f, v, size = m.value(t), m.beta @ m.gram[:, t], 1.0 if C is None else C
        m.rate = m.rate or rate
        xi = size * slopes(m, loss, f, y)
        pi = reg * m.inner(m.alpha, m.beta) + xi @ v
        m.rate = max(1e-12, m.rate * max(0.5, 1 - meta * pi))
        m.rate = eta = min(m.rate, 1e6 * rate, 0.999 / reg if reg > 0 else math.inf)
        tilde = xi + memory * size * bends(m, loss, f, y, v)
        m.beta = memory * (1 - eta * reg) * m.beta - eta * reg * m.alpha
        short = shortened(m, loss, f, y, eta * size, m.gram[t, t]) / size
        m.beta[:, t] -= short * tilde
        keep, new = (1 - eta * reg, -short * xi) if C is None else ilk(loss, C, eta, reg, exact=exact)(m, t, y)
        if isinstance(loss, str) and loss != "softmax":
            m.level = adapted(loss, f[0], y, m.level, eta * size, nu)
        return keep, new

    return step


def perceptron(cost: Any = None) -> Step:
    """6; with a matrix of zeros, of several classes."""

    def step(m: Model, t: int, y: Any) -> tuple[float, Any]:
        f = m.value(t)
        return 1.0, np.array([y * (y * f[0] <= 0)]) if cost is None else -slopes(m, cost, f, y)

    return step


def projection(epsilon: float | None = None, radius: float = math.inf) -> Step:
    """10."""

    def step(m: Model, t: int, y: float) -> tuple[float, Any]:
        f, kappa = m.value(t)[0], m.gram[t, t]
        if y * f >= 1 if epsilon is None else abs(f - y) <= epsilon:
            return 1.0, 0.0
        a = (y - f if epsilon is None else y + math.copysign(epsilon, f - y) - f) / kappa
        norm = math.sqrt(m.norm2 + 2 * a * f + a * a * kappa)
        return (1.0, a) if norm <= radius else (radius / norm, a * radius / norm)

    return step


def passive_aggressive(variant: str, C: float = math.inf, epsilon: float | None = None) -> Step:
    """7."""

    def step(m: Model, t: int, y: float) -> tuple[float, Any]:
        f, kappa = m.value(t)[0], m.gram[t, t]
        loss, sign = (max(0.0, 1 - y * f), y) if epsilon is None else (max(0.0, abs(y - f) - epsilon), np.sign(y - f))
        size = {"PA": loss / kappa, "PA-I": min(C, loss / kappa), "PA-II": loss / (kappa + 1 / (2 * C))}
        return 1.0, sign * size[variant]

    return step


def alma(alpha: float, B: float, C: float) -> Step:
    """5."""

    def step(m: Model, t: int, y: float) -> tuple[float, Any]:
        k, root_kappa = m.updates + 1, math.sqrt(m.gram[t, t])
        margin = y * m.value(t)[0] / root_kappa
        if margin > (1 - alpha) * B / math.sqrt(k):
            return 1.0, 0.0
        e = C / math.sqrt(k)
        shrink = max(1.0, math.sqrt(max(0.0, m.norm2 + 2 * e * margin + e * e)))
        return 1 / shrink, e * y / root_kappa / shrink

    return step


def romma(aggressive: bool) -> Step:
    """8."""

    def step(m: Model, t: int, y: float) -> tuple[float, Any]:
        f, kappa, N = m.value(t)[0], m.gram[t, t], m.norm2
        if y * f >= 1 if aggressive else y * f > 0:
            return 1.0, 0.0
        den = kappa * N - f * f
        if N == 0 or y * f >= kappa * N or den <= 1e-12 * kappa * N:
            return 0.0, y / kappa
        return (kappa * N - y * f) / den, N * (y - f) / den

    return step


def adatron(gram: Any, y: Any, visits: Any, rate: float, C: float = math.inf) -> tuple[Any, Any, list[float]]:
    """9: the scores met at each visit, the coefficients of the points, and the dual objective after each visit."""
    a, scores, duals = np.zeros(len(gram)), [], []
    for i in visits:
        scores.append(float(gram[i] @ (a * y)))
        a[i] = min(max(a[i] + rate * (1 - y[i] * scores[-1]), 0.0), C)
        duals.append(float(a.sum() - (a * y) @ gram @ (a * y) / 2))
    return np.array(scores), a * y, duals
