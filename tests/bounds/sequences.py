"""Streams for the theorems, each with what it is compared with, and learners that keep every hypothesis they made.

A learner here is a function (kernel, X, y) -> Run. `plain` makes one from a step written down from its equation, with
explicit Gram matrices; `engine` makes one from the parts of the package. A target may be a function of the round and
the score, for an adversary that answers the learner.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from gossamer import Learner
from gossamer.bounds.comparators import Comparator, values
from gossamer.kernels import Gaussian, Kernel, Laplace, Linear, Polynomial

# ------------------------------------------------------------------------------------------------------------- learners


@dataclass
class Run:
    """Row t of ``coefs`` is f_(t+1) in terms of all the examples; the last row is f after the whole stream."""

    X: Any
    y: np.ndarray
    gram: np.ndarray
    scores: np.ndarray
    coefs: np.ndarray

    @property
    def kappas(self) -> np.ndarray:
        return np.diag(self.gram)

    @property
    def norms(self) -> np.ndarray:
        """||f_1|| ... ||f_(T+1)||."""
        return self.length(self.coefs)

    @property
    def margins(self) -> np.ndarray:
        return self.y * self.scores

    @property
    def mistakes(self) -> int:
        return int((self.margins <= 0).sum())

    def length(self, coefs: np.ndarray) -> np.ndarray:
        return np.sqrt(np.maximum(0.0, np.einsum("ti,ti->t", coefs @ self.gram, coefs)))


Algorithm = Callable[[Kernel, Any, Any], Run]


def answer(y: Any, t: int, score: float) -> float:
    return float(y(t, score) if callable(y) else y[t])


def plain(make_step: Callable[..., Any], **parameters: Any) -> Algorithm:
    """A learner from step(f, y, kappa, norm2, t) -> (keep, coefficient), with f = f_t(x_t) and norm2() = ||f_t||^2."""

    def run(kernel: Kernel, X: Any, y: Any) -> Run:
        step, gram, rounds = make_step(**parameters), kernel(X, X), len(X)
        coefs, scores, targets = np.zeros((rounds + 1, rounds)), np.zeros(rounds), np.zeros(rounds)
        for t in range(rounds):
            f = coefs[t]
            scores[t] = gram[t, :t] @ f[:t]
            targets[t] = answer(y, t, scores[t])
            keep, new = step(scores[t], targets[t], gram[t, t], lambda f=f: f @ gram @ f, t + 1)
            coefs[t + 1] = keep * f
            coefs[t + 1, t] = new
        return Run(X, targets, gram, scores, coefs)

    return run


def engine(loss: Any, rule: Any, budget: Any = None) -> Algorithm:
    """The package's learner. One line adds its version of an algorithm to a list of implementations."""

    def run(kernel: Kernel, X: Any, y: Any) -> Run:
        learner, rounds = Learner(kernel, loss, rule, budget), len(X)
        coefs, scores, targets = np.zeros((rounds + 1, rounds)), np.zeros(rounds), np.zeros(rounds)
        for t in range(rounds):
            if y is not None:
                targets[t] = answer(y, t, learner.score_one(X[t]) if callable(y) else 0.0)
            scores[t] = learner.learn_one(X[t], None if y is None else targets[t])
            coefs[t + 1, learner.births - 1] = learner.coefs
        return Run(X, targets, kernel(X, X), scores, coefs)

    return run


def misled(algorithm: Algorithm) -> Algorithm:
    """The wrong sign: a learner that is told the opposite label, judged by the true one."""

    def run(kernel: Kernel, X: Any, y: Any) -> Run:
        return replace(algorithm(kernel, X, -np.asarray(y)), y=np.asarray(y))

    return run


# ------------------------------------------------------------------------------------------------------------ sequences


@dataclass(frozen=True, eq=False)
class Sequence:
    """A stream, and a function, or one for each round, that explains it more or less."""

    kind: str
    kernel: Kernel
    X: np.ndarray
    y: np.ndarray
    truth: Any

    @property
    def kappa(self) -> float:
        return float(self.kernel.diag(self.X).max())


def contrary(t: int, score: float) -> float:
    """The label that the learner gets wrong."""
    return -1.0 if score > 0 else 1.0


def random_function(rng: np.random.Generator, kernel: Kernel, features: int, terms: int = 6) -> Comparator:
    g = Comparator(rng.normal(size=(terms, features)), rng.normal(size=terms), kernel)
    return g * (1.0 / max(g.norm, 1e-9))


def away_from_zero(rng: np.random.Generator, g: Comparator, X: np.ndarray, fraction: float) -> np.ndarray:
    """Replace the rows where |g| is small by rows where it is not."""
    good = np.abs(g.values(X)) > fraction * np.abs(g.values(X)).max()
    return np.where(good[:, None], X, X[rng.choice(np.flatnonzero(good), size=len(X))])


def signs(scores: np.ndarray) -> np.ndarray:
    return np.where(scores > 0, 1.0, -1.0)


SEPARABLE = ("stationary", "repeated", "scaled", "orthogonal", "stretched", "hardest", "constant")
KINDS = (*SEPARABLE, "drifting", "switching", "noisy", "contradictory", "answered", "orthogonal drift")


@functools.cache
def classification(seed: int, kinds: tuple[str, ...] = KINDS) -> Sequence:
    """A stream with labels -1 and +1 of the kind that the seed picks."""
    kind = kinds[seed % len(kinds)]
    rng = np.random.default_rng([seed, 1])
    rounds, features = int(rng.integers(30, 90)), int(rng.integers(1, 4))
    kernel = [Gaussian(0.7), Laplace(0.5), Polynomial(2, 0.5), Gaussian(2.0)][int(rng.integers(4))]
    X = rng.normal(size=(rounds, features))
    if kind.startswith("orthogonal"):
        X, kernel = np.eye(rounds), Linear()
        y = signs(rng.normal(size=rounds))
        if kind == "orthogonal":
            return Sequence(kind, kernel, X, y, Comparator(X, y, kernel))
        # every comparator knows only what is near it in time
        near = np.exp(-0.1 * np.abs(np.subtract.outer(np.arange(rounds), np.arange(rounds))))
        return Sequence(kind, kernel, X, y, [Comparator(X, y * row, kernel) for row in near])
    if kind in ("scaled", "stretched"):
        kernel = Linear() if kind == "scaled" else Polynomial(3, 1.0)
        X = X * 10.0 ** rng.uniform(-1.5, 1.0, size=(rounds, 1)) if kind == "scaled" else X
    if kind == "constant":
        X = np.repeat(X[:1], rounds, axis=0)
    if kind in ("repeated", "contradictory"):
        X = X[rng.integers(0, 2 + seed % 3, size=rounds)] if seed % 2 else X[np.arange(rounds) % 2]
    g = random_function(rng, kernel, features)
    if kind in ("drifting", "switching"):
        h = Comparator(g.points, rng.normal(size=len(g.coefs)), kernel)
        h = h * (1.0 / max(h.norm, 1e-9))
        mix = np.linspace(0, 1, rounds) if kind == "drifting" else np.floor(np.linspace(0, 3.99, rounds)) % 2
        made = {m: Comparator(g.points, (1 - m) * g.coefs + m * h.coefs, kernel) for m in mix.tolist()}
        truth = [made[m] for m in mix.tolist()]
        return Sequence(kind, kernel, X, signs(values(truth, X)), truth)
    if kind in ("stationary", "hardest", "noisy"):
        X = away_from_zero(rng, g, X, 0.2)
    if kind == "hardest":  # from a pool, always the example that a perceptron now gets most wrong
        pool, labels = X, signs(g.values(X))
        gram, coefs, order = kernel(pool, pool), np.zeros(rounds), []
        for _ in range(rounds):
            worst = int(np.argmin(labels * (gram @ coefs) / np.sqrt(np.diag(gram))))
            order.append(worst)
            coefs[worst] += labels[worst] * (labels[worst] * (gram @ coefs)[worst] <= 0)
        X = pool[order]
    y = signs(g.values(X))
    if kind == "noisy":
        y = np.where(rng.random(rounds) < 0.15, -y, y)
    if kind == "contradictory":
        y = signs(rng.normal(size=rounds)) if seed % 2 else (-1.0) ** (np.arange(rounds) // 2)
    if kind == "answered":  # the labels that a perceptron gets wrong
        gram, coefs = kernel(X, X), np.zeros(rounds)
        for t in range(rounds):
            y[t] = contrary(t, gram[t] @ coefs)
            coefs[t] = y[t]
    return Sequence(kind, kernel, X, y, g)


def regression(seed: int, noise: float = 0.0) -> Sequence:
    """A stream with real targets, within ``noise`` of the truth; the kinds as above."""
    s = classification(seed, SEPARABLE)
    rng = np.random.default_rng([seed, 2])
    return replace(s, y=s.truth.values(s.X) + noise * rng.uniform(-1, 1, size=len(s.X)))


# ---------------------------------------------------------------------------------------------------------- comparators


@functools.cache
def separator(s: Sequence) -> Comparator:
    """The u of (nearly) least norm with y u(x) >= 1 in every round, by the dual as non-negative least squares."""
    best = s.truth * (1.0 / (s.y * s.truth.values(s.X)).min())
    q = s.y[:, None] * s.kernel(s.X, s.X) * s.y
    scale = np.sqrt(np.diag(q))
    q = q / scale[:, None] / scale
    lower = cholesky(q + 1e-9 * np.eye(len(q)), lower=True)
    dual = nnls(lower.T, solve_triangular(lower, 1.0 / scale, lower=True))[0] / scale
    u = Comparator(s.X, dual * s.y, s.kernel)
    least = (s.y * u.values(s.X)).min()
    return min([best] + ([u * (1.0 / least)] if least > 0 else []), key=lambda one: one.norm)


def batch_minimiser(kernel: Kernel, X: Any, y: np.ndarray, weight: float, margin: float, epochs: int = 6) -> Comparator:
    """Near the minimiser of sum_t hinge(g(x_t), y_t) + weight / 2 ||g||^2, by coordinate ascent in the dual."""
    gram = kernel(X, X)
    dual, f, kappas = np.zeros(len(X)), np.zeros(len(X)), np.maximum(np.diag(gram), 1e-12)
    for _, i in itertools.product(range(epochs), range(len(X))):
        new = min(1.0, max(0.0, dual[i] + (margin - y[i] * f[i]) * weight / kappas[i]))
        if new != dual[i]:
            f += (new - dual[i]) * y[i] / weight * gram[i]
            dual[i] = new
    return Comparator(X, dual * y / weight, kernel)


def ridge(kernel: Kernel, X: Any, y: np.ndarray, weight: float) -> Comparator:
    """The minimiser of sum_t (y_t - g(x_t))^2 + weight ||g||^2."""
    return Comparator(X, np.linalg.solve(kernel(X, X) + weight * np.eye(len(X)), y), kernel)


# ----------------------------------------------------------------------------------------- steps, from the equations


def perceptron() -> Any:
    return lambda f, y, kappa, norm2, t: (1.0, y * (y * f <= 0))


def norma(rate: float, reg: float, margin: float, falling: bool = False) -> Any:
    def step(f: float, y: float, kappa: float, norm2: Any, t: int) -> tuple[float, float]:
        eta = rate / math.sqrt(t) if falling else rate
        return 1.0 - eta * reg, eta * y * (y * f <= margin)

    return step


def ilk(rate: float, reg: float, margin: float, C: float = 1.0, falling: bool = False) -> Any:
    def step(f: float, y: float, kappa: float, norm2: Any, t: int) -> tuple[float, float]:
        eta = rate / math.sqrt(t) if falling else rate
        keep = 1.0 / (1.0 + eta * reg)
        return keep, y * min(keep * eta * C, max(0.0, margin - y * keep * f) / kappa)

    return step


def projection(radius: float = math.inf, epsilon: float | None = None, relax: float = 1.0) -> Any:
    """Herbster's, for classification or (with epsilon) regression; PA without C is the one without a radius."""

    def step(f: float, y: float, kappa: float, norm2: Any, t: int) -> tuple[float, float]:
        short = max(0.0, 1.0 - y * f) if epsilon is None else max(0.0, abs(y - f) - epsilon)
        new = relax * short / kappa * (y if epsilon is None else np.sign(y - f))
        size2 = norm2() + 2 * new * f + new * new * kappa if math.isfinite(radius) else 0.0
        keep = radius / math.sqrt(size2) if size2 > radius**2 else 1.0
        return keep, keep * new

    return step


def pa(C: float, squared: bool, epsilon: float | None = None) -> Any:
    """PA-I, or with ``squared`` PA-II."""

    def step(f: float, y: float, kappa: float, norm2: Any, t: int) -> tuple[float, float]:
        short = max(0.0, 1.0 - y * f) if epsilon is None else max(0.0, abs(y - f) - epsilon)
        size = short / (kappa + 0.5 / C) if squared else min(C, short / kappa)
        return 1.0, size * (y if epsilon is None else np.sign(y - f))

    return step


def romma(aggressive: bool, wrong: bool = False) -> Any:
    def step(f: float, y: float, kappa: float, norm2: Any, t: int) -> tuple[float, float]:
        if not (y * f < 1 if aggressive else y * f <= 0):
            return 1.0, 0.0
        size2 = norm2()
        den = kappa * size2 - f * f
        if y * f >= kappa * size2 or den <= 1e-12 * kappa * size2:
            return 0.0, y / kappa
        return (kappa * size2 - y * f) / den * (2.0 if wrong else 1.0), size2 * (y - f) / den

    return step


def alma(alpha: float, B: float, C: float) -> Any:
    k = 1

    def step(f: float, y: float, kappa: float, norm2: Any, t: int) -> tuple[float, float]:
        nonlocal k
        if y * f / math.sqrt(kappa) > (1 - alpha) * B / math.sqrt(k):
            return 1.0, 0.0
        e = C / math.sqrt(k)
        k += 1
        size = max(1.0, math.sqrt(norm2() + 2 * e * y * f / math.sqrt(kappa) + e * e))
        return 1.0 / size, e * y / math.sqrt(kappa) / size

    return step
