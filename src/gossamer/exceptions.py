"""The warnings of Gossamer. Bad input is a ValueError."""

from __future__ import annotations

__all__ = ["CollapseWarning", "DivergenceWarning"]


class DivergenceWarning(RuntimeWarning):
    """The scores of a model are not finite any more, or out of all proportion to the targets."""


class CollapseWarning(RuntimeWarning):
    """A model gives all rows the same score, though their targets differ."""
