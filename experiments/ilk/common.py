"""What the figures of Cheng et al. (2006) share: work on all cores, and what to say about paired results."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from scipy.stats import wilcoxon

from experiments.figure import Progress

Item = TypeVar("Item")
Result = TypeVar("Result")


def each(work: Callable[[Item], Result], items: Sequence[Item], progress: Progress, text: str) -> list[Result]:
    """The result of every item, in their order; compiled learners let other threads run meanwhile."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [future.result() for future in progress([pool.submit(work, item) for item in items], text)]


def standard_error(values: np.ndarray) -> float:
    """Of the mean; NaN for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def verdict(one: np.ndarray, other: np.ndarray) -> str:
    """How often the one is smaller, larger, equal, and the two-sided p of Wilcoxon's signed rank test on the pairs."""
    difference = one - other
    p = float(wilcoxon(one, other).pvalue) if difference.any() else 1.0
    less, more = int((difference < 0).sum()), int((difference > 0).sum())
    return f"fewer in {less}, more in {more}, equal in {len(one) - less - more}, p = {p:.2g}"
