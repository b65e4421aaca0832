"""Budgets by name."""

from __future__ import annotations

from typing import Any

from gossamer._registry import as_part
from gossamer.budgets.base import Budget
from gossamer.budgets.drop import Unlimited


def as_budget(budget: Any) -> Budget:
    """A Budget from a Budget, a name ("auto", "project" of 256 points, "project:64", "random:size=64,seed=3", ...), or
    None, which keeps all points.

    >>> as_budget("project:64"), as_budget(None)
    (Project(size=64, tolerance=0.001), Unlimited())
    """
    rule = "a Budget, such as Project(128), a name, such as 'project:128' or 'auto', or None"
    return Unlimited() if budget is None else as_part(Budget, budget, "budget", rule)
