"""Losses of a raw score z against a target y: value, slope, and the implicit step that follows from them.

A new loss needs ``value`` and ``slope`` only; its implicit step is then found by a bracketed root search (the
"general recipe" of Cheng et al. 2006). The losses here override it by their closed forms (ALGORITHMS 2.2).
"""

from gossamer import _registry
from gossamer.losses.base import Loss, LossReport, check_loss
from gossamer.losses.multiclass import Multiclass, OneVsRest, Softmax
from gossamer.losses.scalar import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Novelty,
    Pinball,
    Squared,
    SquaredHinge,
    as_loss,
)
from gossamer.losses.several import Several
from gossamer.losses.taxonomies import Taxonomy, taxonomy

__all__ = [
    "EpsilonInsensitive",
    "Hinge",
    "Huber",
    "Logistic",
    "Loss",
    "LossReport",
    "Multiclass",
    "Novelty",
    "OneVsRest",
    "Pinball",
    "Several",
    "Softmax",
    "Squared",
    "SquaredHinge",
    "Taxonomy",
    "as_loss",
    "check_loss",
    "taxonomy",
]

#: The files of this folder may have more parts than those named above: each is exported, whoever adds it.
BASE = Loss
__all__ += _registry.discover(__name__)
