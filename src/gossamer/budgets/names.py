"""Budgets by name."""

from __future__ import annotations

from typing import Any

from gossamer import _checks
from gossamer.budgets.base import Budget
from gossamer.budgets.drop import Unlimited
from gossamer.budgets.project import Auto, Project


def as_budget(budget: Any) -> Budget:
    """A Budget from a Budget, None (unlimited), "auto", "project" (256 points) or "project:N".

    >>> as_budget("project:64")
    Project(size=64, tolerance=0.001)
    """
    if budget is None:
        return Unlimited()
    if isinstance(budget, Budget):
        return budget
    name, _, size = budget.partition(":") if isinstance(budget, str) else ("", "", "")
    if budget == "auto":
        return Auto()
    if name == "project" and (not size or size.isdecimal()):
        return Project(int(size) if size else 256)
    rule = "a Budget, such as Project(128), 'project', 'project:128', 'auto' or None"
    raise _checks.wrong("Learner", "budget", rule, budget)
