"""The errors and warnings of Gossamer. Bad input is a `ParameterError`, which is a ValueError."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np

__all__ = ["CollapseWarning", "DivergenceWarning", "ParameterError"]


class ParameterError(ValueError):
    """A parameter, or an argument of a method, that breaks a rule.

    Attributes
    ----------
    owner : the name of the class or function that was given it.
    parameter : its name.
    rule : what it must be.
    got : the value. A copy of the error, or one that comes from another process, keeps plain values as they are, and
        of others what the message shows of them.

    >>> from gossamer.budgets import Smallest
    >>> try:
    ...     Smallest(0)
    ... except ParameterError as error:
    ...     print(error.owner, error.parameter, error.got)
    Smallest size 0
    """

    def __init__(self, owner: str, parameter: str, rule: str, got: object) -> None:
        super().__init__(owner, parameter, rule, got)
        self.owner, self.parameter, self.rule, self.got = owner, parameter, rule, got
        self._shown = str(got) if isinstance(got, Shown) else SHORT.repr(got)

    def __str__(self) -> str:
        return self.told(f"The '{self.parameter}' parameter of {self.owner}")

    def told(self, subject: str) -> str:
        """The sentence with another subject."""
        return f"{subject} must be {self.rule}. Got {self._shown} instead."

    def __reduce__(self) -> tuple[Any, ...]:
        plain = self.got is None or isinstance(self.got, (bool, int, float, str, bytes))
        got = self.got if plain else Shown(self._shown)
        return type(self), (self.owner, self.parameter, self.rule, got)


class DivergenceWarning(RuntimeWarning):
    """The scores of a model are not finite any more, or out of all proportion to the targets."""


class CollapseWarning(RuntimeWarning):
    """A model gives all rows the same score, though their targets differ."""


class Words(str):
    """A text that stands for itself: without quotation marks where it is shown."""

    def __repr__(self) -> str:
        return str(self)


class Shown(Words):
    """What a message shows of a value that is not at hand any more."""


class Short(reprlib.Repr):
    """What a message shows of a value: never a whole frame or a long array."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring, self.maxother, self.maxlong, self.maxlevel = 400, 300, 60, 4
        self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdict = self.maxdeque = 12

    def repr_instance(self, x: Any, level: int) -> str:
        if not isinstance(x, type) and isinstance(getattr(x, "shape", None), tuple):
            if hasattr(x, "dtype") and np.ndim(x) == 0:
                return super().repr_instance(x, level)
            if not isinstance(x, np.ndarray) or x.size > 12:
                return f"{type(x).__name__} of shape {x.shape}"
        return super().repr_instance(x, level)


SHORT = Short()
