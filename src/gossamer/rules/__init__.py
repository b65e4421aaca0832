"""Update rules: what one example does to the model, as pure functions of numbers.

A rule sees the score of the example, never the expansion: that is why each costs O(1) after the prediction.
"""

from gossamer import _registry
from gossamer.rules.base import Example, Rule, Step, as_rule
from gossamer.rules.descent import SVMD, Gradient, Implicit
from gossamer.rules.margin import ALMA, ROMMA, Adatron, PassiveAggressive, Perceptron, Projection
from gossamer.rules.newton import Newton

__all__ = [
    "ALMA",
    "ROMMA",
    "SVMD",
    "Adatron",
    "Example",
    "Gradient",
    "Implicit",
    "Newton",
    "PassiveAggressive",
    "Perceptron",
    "Projection",
    "Rule",
    "Step",
    "as_rule",
]

#: The files of this folder may have more parts than those named above: each is exported, whoever adds it.
BASE = Rule
__all__ += _registry.discover(__name__)
