"""What the budgets of a fixed size share that keep the kernel values of their points."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gossamer import _checks
from gossamer.budgets.base import Budget

if TYPE_CHECKING:
    pass


class _Sized(Budget):
    """A number of points, whose kernel values with each other are kept."""

    size: int

    def __post_init__(self) -> None:
        _checks.whole(self, "size", self.size, 1)

    @property
    def limit(self) -> int | None:
        return self.size

    @property
    def needs_gram(self) -> bool:
        return True

    def numbers(self) -> tuple[float, ...]:
        return (float(self.size),)
