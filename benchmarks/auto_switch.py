"""How soon Auto is back after a switch of concept: made streams whose rule changes every 2,000 rows, part of auto.py.

Errors after a switch are averaged over switches and seeds; back is the end of the first 50 rows whose error is at most
1.2 times that of the last 500 rows before. Beside it, models that start from nothing at the switch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gossamer import AutoClassifier

EVERY, CONCEPTS, NOISE, WINDOW, BACK = 2000, 6, 0.1, 50, 1.2
STEP = 25  # rows in a place of the curve that is shown


def _turned(X: np.ndarray, angle: np.ndarray) -> np.ndarray:
    return np.column_stack(
        [X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle), X[:, 1] * np.cos(angle) - X[:, 0] * np.sin(angle)]
    )


def thresholds(rng: np.random.Generator, concept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As SEA: the sum of two of three features is below a threshold that moves."""
    X = rng.uniform(0, 10, (len(concept), 3))
    return X, X[:, 0] + X[:, 1] <= np.array([8, 9, 7, 9.5, 6.5, 9])[concept]


def half_planes(rng: np.random.Generator, concept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One side of a line, which turns by 120 degrees."""
    X = rng.normal(size=(len(concept), 2))
    return X, _turned(X, concept * 2.1)[:, 0] > 0


def circle(rng: np.random.Generator, concept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inside or outside of a circle, each time the other way round."""
    X = rng.normal(size=(len(concept), 2))
    return X, ((X**2).sum(axis=1) < 1.4) ^ (concept % 2 == 1)


def squares(rng: np.random.Generator, concept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """XOR, turned by 45 degrees: half of all labels change."""
    X = rng.normal(size=(len(concept), 2))
    return X, _turned(X, concept * np.pi / 4).prod(axis=1) > 0


KINDS: dict[str, Callable[[np.random.Generator, np.ndarray], tuple[np.ndarray, np.ndarray]]] = {
    "a threshold moves (SEA)": thresholds,
    "a half-plane turns by 120°": half_planes,
    "a circle is flipped": circle,
    "XOR turns by 45°": squares,
}


def stream(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows and labels, a tenth of them wrong."""
    rng = np.random.default_rng(seed)
    X, first = KINDS[kind](rng, np.repeat(np.arange(CONCEPTS), EVERY))
    return X, first ^ (rng.uniform(size=len(X)) < NOISE)


def wrong(X: np.ndarray, y: np.ndarray, **options: Any) -> np.ndarray:
    """Which rows a new model has wrong."""
    model = AutoClassifier(**options).partial_fit(X[:1], y[:1], classes=[False, True])
    return np.append(1.0, (model.predict_learn(X[1:], y[1:]) >= 0) != y[1:])


def back(errors: np.ndarray, before: float) -> int | None:
    """The rows after which the error of the last 50 is at most 1.2 times that before; None if it never is."""
    means = np.convolve(errors, np.ones(WINDOW) / WINDOW, "valid")
    found = np.flatnonzero(means <= BACK * before)
    return int(found[0]) + WINDOW if len(found) else None


def measure(kind: str, seeds: int, **options: Any) -> dict[str, Any]:
    """The error before switches, the curve after them and that of new models, and the rows until each is back."""
    before, after, fresh = [], [], []
    for seed in range(seeds):
        X, y = stream(kind, seed)
        errors = wrong(X, y, **options).reshape(CONCEPTS, EVERY)
        before.append(errors[:-1, -500:].mean())
        after.append(errors[1:].mean(axis=0))
        for concept in (1, 2):
            part = slice(concept * EVERY, concept * EVERY + EVERY // 2)
            fresh.append(wrong(X[part], y[part], **options))
    level, mean, new = float(np.mean(before)), np.mean(after, axis=0), np.mean(fresh, axis=0)
    return {
        "before": level,
        "after": mean[:1000].reshape(-1, STEP).mean(axis=1).round(4).tolist(),
        "fresh": new.reshape(-1, STEP).mean(axis=1).round(4).tolist(),
        "back": back(mean, level),
        "fresh_back": back(new, level),
        "seeds": seeds,
    }


def table(found: dict[str, dict[str, Any]]) -> str:
    """A line for each kind of switch: rows until it is back, and the error in some windows."""
    places = (0, 1, 2, 3, 5, 7, 11)
    heads = [f"rows {place * STEP + 1}-{(place + 1) * STEP}" for place in places]
    lines = [f"| switch | before | {' | '.join(heads)} | back after | a new model |", "|---" * (len(heads) + 4) + "|"]
    for kind, one in found.items():
        cells = [f"{one['after'][place]:.2f} ({one['fresh'][place]:.2f})" for place in places]
        both = f"**{one['back']} rows** | {one['fresh_back']} rows"
        lines.append(f"| {kind} | {one['before']:.3f} | {' | '.join(cells)} | {both} |")
    return "\n".join(lines)
