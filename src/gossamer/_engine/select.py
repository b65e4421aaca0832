"""Which engine runs a learner: the only place that chooses compiled code."""

from __future__ import annotations

from typing import Any

from gossamer import _checks
from gossamer._engine.blocks import CROSSOVER, Blocks
from gossamer._engine.native import Native, Settings, SparseNative, compiled_parts
from gossamer._engine.trees import Trees
from gossamer._sparse import TABLES, SparseRows
from gossamer.budgets import LARGEST_GRAM

Machine = Native | Blocks


def make_machine(settings: Settings, X: Any, backend: str) -> Machine:
    """The fastest machine that runs these parts, or the one asked for."""
    compiled, sparse = isinstance(X, TABLES) and compiled_parts(settings) is not None, isinstance(X, SparseRows)
    native = compiled and settings.kernel.program(X.shape[1]) is not None
    whole = settings.budget.needs_gram or settings.rule.needs_gram or not settings.rule.keeps_norm
    splits = compiled and not (sparse or whole) and settings.kernel.coordinates(X.shape[1]) is not None
    if splits and backend in ("auto", "trees"):
        limit = settings.budget.limit
        if backend == "trees" or limit is None or limit >= CROSSOVER:
            return Trees(settings, X)
    if backend == "trees":
        rule = "'auto' where the kernel is no sum of kernels that split, or budget or rule needs their values"
        raise _checks.wrong("Learner", "backend", rule, backend)
    if settings.track_norm:
        check_tracked(settings)
    if backend == "native" and not native:
        names = [type(part).__name__ for part in (settings.kernel, settings.loss, settings.rule, settings.budget)]
        raise _checks.wrong("Learner", "backend", f"'auto' or 'numpy' for the parts {names}", backend)
    if native and backend != "numpy":
        return SparseNative(settings, X) if sparse else Native(settings, X)
    return Blocks(settings, X, compiled=backend != "numpy")


def check_tracked(settings: Settings) -> None:
    """To track the norm through removals takes the kernel values of all points, unless they are in trees."""
    limit, rule = settings.budget.limit, settings.rule
    if limit is None and rule.needs_gram:
        return
    if limit is None or limit > LARGEST_GRAM:
        why = f"{type(rule).__name__} needs the norm" if rule.needs_norm else "track_norm is set"
        why = f"{type(settings.budget).__name__} needs their kernel values" if settings.budget.needs_gram else why
        what = f"None or at most {LARGEST_GRAM} points where {why}"
        raise _checks.wrong("Learner", "budget", what, settings.budget)
