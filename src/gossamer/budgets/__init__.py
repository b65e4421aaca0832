"""Budgets: how many support points are kept, and what becomes of the function of an evicted point.

A budget sees the newcomer's kernel row and coefficients and the expansion, and answers with an `Admission`.
"""

from gossamer import _registry
from gossamer.budgets.base import AGAIN, LARGEST_GRAM, REFUSE, Admission, Blend, Budget, Departure, Newcomer
from gossamer.budgets.drop import Oldest, Random, Smallest, Sublinear, Unlimited
from gossamer.budgets.features import Fourier, Nystrom
from gossamer.budgets.forgetron import Forgetron
from gossamer.budgets.merge import Merge
from gossamer.budgets.names import as_budget
from gossamer.budgets.project import Auto, Project

__all__ = [
    "AGAIN",
    "LARGEST_GRAM",
    "REFUSE",
    "Admission",
    "Auto",
    "Blend",
    "Budget",
    "Departure",
    "Forgetron",
    "Fourier",
    "Merge",
    "Newcomer",
    "Nystrom",
    "Oldest",
    "Project",
    "Random",
    "Smallest",
    "Sublinear",
    "Unlimited",
    "as_budget",
]

#: The files of this folder may have more parts than those named above: each is exported, whoever adds it.
BASE = Budget
__all__ += _registry.discover(__name__)
