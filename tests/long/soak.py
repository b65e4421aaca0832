"""Many rows: 10^8 in all, through every budget and the bank. What must stay as it was at the start, or exact:

memory   the process does not grow after the first tenth of the rows
norm     the tracked RKHS norm is the recomputed one
inverse  K Q = 1 for the budgets that keep the inverse of the kernel matrix
metric   0 <= A <= K^-1 for rules that learn a metric
accuracy the error of the last tenth is not above that of the second tenth (the stream turns, so no model is ever done)

    python tests/long/soak.py --rows 100000000
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gossamer import (
    AdditiveRegressor,
    AutoClassifier,
    KernelPerceptron,
    Learner,
    NewtonClassifier,
    NORMADetector,
    SILKClassifier,
    SILKRegressor,
)
from gossamer.bank import ModelBank
from gossamer.budgets import Forgetron, Fourier, Merge, Nystrom, Oldest, Project, Random, Smallest
from gossamer.kernels import Gaussian
from gossamer.mixture.learner import MixedLearner
from gossamer.rules.newton import square

CHUNK = 50_000
#: Rows in which the stream turns once: a tenth of the fewest rows of a model, so that tenths are alike.
TURN = 100_000
GROWTH = 30e6  # bytes: what fragments of freed memory may add


def turning(rows: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Two features that are checked like a board, which turns; three of noise. 5 % of the labels are wrong.

    The two are normal, so that every angle is as hard as any other.
    """
    rng, start = np.random.default_rng(seed), 0
    while start < rows:
        count = min(CHUNK, rows - start)
        X = rng.normal(size=(count, 5)) * (0.5, 0.5, 0.3, 0.3, 0.3)
        angle = 2 * math.pi * (start + np.arange(count)) / TURN
        a = X[:, 0] * np.cos(angle) - X[:, 1] * np.sin(angle)
        b = X[:, 0] * np.sin(angle) + X[:, 1] * np.cos(angle)
        y = np.where((a * b > 0) != (rng.uniform(size=count) < 0.05), 1, -1)
        yield X, y
        start += count


def board(budget: Any, **options: Any) -> Any:
    return SILKClassifier(Gaussian(4.0), C=0.3, reg=1e-3, budget=budget, **options)


def second(budget: Any, forgetting: float) -> Any:
    return NewtonClassifier(Gaussian(4.0), noise=1.0, forgetting=forgetting, budget=budget)


class Banked:
    """A thousand models by key, of which a third fits into memory."""

    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        model = SILKClassifier(Gaussian(4.0), C=0.3, reg=1e-3, budget=32)
        self.bank = ModelBank(model, memory=1_000_000, path=Path(self.folder.name) / "bank.db")
        self.rng = np.random.default_rng(1)

    def predict_learn(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.asarray(self.bank.learn(self.rng.integers(0, 1000, size=len(X)), X, y))


#: name -> a model, its target from the stream's labels, its share of the rows (slow models get fewer)
MODELS: dict[str, tuple[Callable[[], Any], str, float]] = {
    "SILK, Project": (lambda: board(Project(64)), "label", 2.0),
    "SILK, Smallest": (lambda: board(Smallest(64)), "label", 3.0),
    "SILK, Merge": (lambda: board(Merge(64)), "label", 0.3),
    "SILK, Random, logistic": (lambda: board(Random(64), loss="logistic"), "label", 1.0),
    "SILK, Nystrom": (lambda: board(Nystrom(64)), "label", 0.3),
    "SILK, Fourier": (lambda: board(Fourier(64)), "label", 0.3),
    "SILK, Oldest, averaged": (lambda: board(Oldest(64), average="sparse"), "label", 1.0),
    "perceptron, Forgetron": (lambda: KernelPerceptron(Gaussian(4.0), budget=Forgetron(64)), "label", 1.0),
    "Newton, Project": (lambda: second(Project(64), 1.0), "label", 0.3),
    "Newton, Project, forgetting": (lambda: second(Project(64), 0.9999), "label", 0.3),
    "Newton, Merge, forgetting": (lambda: second(Merge(64), 0.9999), "label", 0.05),
    "Auto": (lambda: AutoClassifier(budget=16), "label", 0.01),
    "SILK, regression": (lambda: SILKRegressor(Gaussian(4.0), C=0.3, reg=1e-3, budget=Project(64)), "number", 0.5),
    "additive, trees": (lambda: AdditiveRegressor(reg=1e-3, products=[(0, 1)], budget=200), "number", 0.05),
    "NORMA novelty": (lambda: NORMADetector(Gaussian(4.0), nu=0.05, budget=64), "none", 1.0),
    "bank of 1,000 models": (Banked, "label", 0.5),
}


def resident() -> float:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def lost(model: Any, target: str, X: np.ndarray, y: np.ndarray) -> float:
    """The mean loss of a chunk, each row predicted before it is learned."""
    if target == "none":
        return float(abs(np.mean(model.predict_learn(X) < 0) - 0.05))
    scores = model.predict_learn(X, y)
    if not np.isfinite(scores).all():
        raise AssertionError("a score is not finite")
    return float(np.mean((scores >= 0) != (y > 0)) if target == "label" else np.mean((scores - y) ** 2))


def faults(model: Any) -> Iterator[str]:
    """What is no longer exact in the state of an estimator; of a mixture, of all its experts."""
    learner = getattr(model, "learner_", None)
    if isinstance(learner, MixedLearner):
        for _, _, expert in learner.experts():
            yield from inexact(expert)
    elif learner is not None and learner.backend != "native trees":
        yield from inexact(learner)


def inexact(learner: Learner) -> Iterator[str]:
    """What is no longer exact in the state of a learner."""
    state = learner.state()
    if state is None:
        return
    points, packed = state.points, state.budget.get("inverse")
    kernel = state.kernel
    if not isinstance(points, np.ndarray) or points.ndim != 2:
        return
    if packed is not None and len(packed):
        size = len(points)
        inverse = np.zeros((size, size))
        inverse[np.tril_indices(size)] = packed
        inverse += np.tril(inverse, -1).T
        gap = float(np.abs(kernel(points, points) @ inverse - np.eye(size)).max())
        if not gap < 1e-6:
            yield f"K Q differs from 1 by {gap:.1e}"
    if len(state.rule.get("metric", ())):
        metric, root = state.rule["factor"] * square(state.rule["metric"]), np.linalg.cholesky(kernel(points, points))
        values = np.linalg.eigvalsh(root.T @ metric @ root)
        if not (values[0] > -1e-6 and values[-1] < 1 + 1e-6):
            yield f"the metric lies in [{values[0]:.1e}, 1 + {values[-1] - 1:.1e}]"
    if learner.track_norm and learner.rule.keeps_norm:
        coefs = np.atleast_2d(learner.coefs)
        true = math.sqrt(max(0.0, float(np.einsum("oi,ij,oj->", coefs, kernel(points, points), coefs))))
        if not math.isclose(true, learner.norm, rel_tol=1e-6, abs_tol=1e-9):
            yield f"the norm is {true}, the tracked one {learner.norm}"


def soak(name: str, rows: int, seed: int) -> list[str]:
    """Feed one model; returns what went wrong."""
    make, target, _ = MODELS[name]
    model, losses, found = make(), [], []
    rows = max(rows, 20 * CHUNK)
    base, start = math.inf, time.perf_counter()
    for i, (X, y) in enumerate(turning(rows, seed)):
        losses.append(lost(model, target, X, y.astype(np.float64) if target == "number" else y))
        if (i + 1) * CHUNK >= rows // 10 and base == math.inf:
            base = resident()
    seconds, grown, tenth = time.perf_counter() - start, resident() - base, max(len(losses) // 10, 1)
    early, late = float(np.mean(losses[tenth : 2 * tenth])), float(np.mean(losses[-tenth:]))
    if grown > GROWTH:
        found.append(f"memory grew by {grown / 1e6:.0f} MB")
    if late > 1.1 * early + 0.005:
        found.append(f"the loss was {early:.4f} and is {late:.4f}")
    found += faults(model)
    print(f"  {name:24s} {rows:>12,} rows {rows / seconds:>10,.0f}/s  memory {grown / 1e6:+6.1f} MB", end="")
    print(f"  loss {early:.4f} -> {late:.4f}", *found, flush=True)
    return [f"{name}: {fault}" for fault in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000_000, help="rows in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    whole = sum(share for _, _, share in MODELS.values())
    found = [f for name in MODELS for f in soak(name, int(options.rows * MODELS[name][2] / whole), options.seed)]
    print(f"soak: {options.rows:,} rows through {len(MODELS)} models, {len(found)} findings")
    for fault in found:
        print(f"  {fault}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
