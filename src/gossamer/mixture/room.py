"""What a limit of memory has room for: the bytes of the experts there are, and of one more."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gossamer.mixture import roster
from gossamer.mixture.costs import SLEEPERS, expert_bytes
from gossamer.mixture.roster import EVERY, Expert


@dataclass(frozen=True)
class Room:
    """A limit of bytes, for experts of at most so many points and features; None: no limit.

    >>> room = Room(5e6, 127, 20)
    >>> room.most_at_start, room.fits([], 0, 127), Room(None, 127, 20).left([], 0)
    (20, True, inf)
    """

    memory: float | None
    points: int
    features: int

    def bytes_of(self, points: int) -> int:
        """The bytes of an expert with so many points, or as many as it may have."""
        return expert_bytes(min(points, self.points), self.features)

    @property
    def most_at_start(self) -> int:
        """How many experts may start when all settings were tried."""
        assert self.memory is not None
        return max(1, int(self.memory // self.bytes_of(roster.START + EVERY)))

    def used(self, experts: list[Expert]) -> tuple[int, int]:
        """The bytes of all learners awake, when the roster changes again, and of those asleep."""
        found = {id(expert.learner): expert for expert in experts}.values()
        awake = sum(self.bytes_of(count_points(expert) + EVERY) for expert in found if not expert.asleep)
        return awake, sum(self.bytes_of(count_points(expert)) for expert in found if expert.asleep)

    def left(self, experts: list[Expert], row: int) -> float:
        """The bytes that those awake leave at a row. From the row on at which the best falls asleep, sleepers have
        theirs."""
        if self.memory is None:
            return math.inf
        awake, asleep = self.used(experts)
        kept = SLEEPERS * self.bytes_of(self.points) if row >= roster.FIRST_EXPLORERS else 0
        return self.memory - awake - max(asleep, kept)

    def fits(self, experts: list[Expert], row: int, points: int = 0, asleep: bool = False) -> bool:
        """Whether there is room for one more with so many points."""
        if self.memory is None:
            return True
        if asleep:
            return sum(self.used(experts)) + self.bytes_of(points) <= self.memory
        return self.bytes_of(points + EVERY) <= self.left(experts, row)

    def is_exceeded(self, experts: list[Expert]) -> bool:
        """Whether all together take more."""
        return self.memory is not None and sum(self.used(experts)) > self.memory


def count_points(expert: Expert) -> int:
    """The support points that an expert has."""
    return int(expert.learner.coefs.shape[-1])
