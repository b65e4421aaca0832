"""The contract of a budget: how many support points are kept, and what becomes of the function of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from gossamer import _checks
from gossamer._registry import twin_of
from gossamer._stateful import Stateful
from gossamer._typing import Floats

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion
    from gossamer.kernels import Kernel
    from gossamer.losses import Loss
    from gossamer.rules import Rule

#: The slot of a newcomer that is not stored.
REFUSE = -1
#: The slot of an admission that changes the others first; `admit` is then called again.
AGAIN = -2
#: The most support points whose kernel values with each other are kept.
LARGEST_GRAM = 4096
#: Of k(x, x): below, the part of a point outside the span of the others is rounding.
LEAST_PIVOT = 1e-9


class Newcomer(NamedTuple):
    """A row that makes a step and may become a support point: f <- f + sum_c move_c k((x, c), .).

    >>> Newcomer(row=np.array([0.5]), kappa=1.0, move=np.array([0.2]), f=np.array([0.4])).updates
    1
    """

    row: Floats  # k(points, x)
    kappa: float  # k(x, x)
    move: Floats  # its coefficients, one per output
    f: Floats  # f(x), one value per output
    updates: int = 1  # steps so far, with this one
    trace_move: Floats | None = None  # the same of SVMD's trace v
    v: Floats | None = None


class Blend(NamedTuple):
    """Two points become one, h of the first and 1 - h of the other, in the slot of the first.

    >>> Blend(0, 1, 0.5, (0.9, 0.9), 0.01, lambda first, second: np.sqrt(first * second)).other
    1
    """

    slot: int
    other: int
    h: float
    factors: tuple[float, float]  # weights of the two coefficients in the new one
    lost2: float  # the squared norm that is lost, with unscaled coefficients
    values: Callable[[Floats, Floats], Floats]  # kernel values of the new point from those of the two


class Departure(NamedTuple):
    """A point is evicted; the others take over its function but for a part of squared norm ``outside``. A metric over
    the points takes ``nearest``, the shares of its orthogonal projection on all that stay; None: the same.

    >>> Departure(1, np.array([0.5, 0.0, 0.4]), 0.1).slot
    1
    """

    slot: int
    shares: Floats
    outside: float
    nearest: Floats | None = None


class Admission(NamedTuple):
    """A budget's decision about a newcomer. Applied in the order of the fields below ``slot``, then the newcomer is
    placed. The loop keeps the norm, the mean of all hypotheses and SVMD's trace right.

    slot : ``expansion.size`` appends it, another is overwritten, `REFUSE` makes it no point; `AGAIN`: ask once more.
    shares : over the points, for a projection. The term that leaves (that of the slot, or the refused newcomer) goes to
        the others as sum_j shares_j k(x_j, .); in the place of the slot stands the share of the newcomer.
    pivot : with shares and a slot: 1 / the squared norm of the part of k(x_slot, .) that the shares do not express.
    departures : points that leave before, as they are in the order of the slots.
    blend : two points that become one before.
    renew : f at the newcomer is computed again.
    keep : all coefficients, also the newcomer's, shrink by this factor.
    merge : two points that become one after the newcomer has been placed, with a rule that learns a metric.

    >>> Admission(3).keep, Admission(REFUSE, shares=np.array([0.7, 0.1])).slot
    (1.0, -1)
    """

    slot: int
    shares: Floats | None = None
    pivot: float = np.inf
    departures: Sequence[Departure] = ()
    blend: Blend | None = None
    renew: bool = False
    keep: float = 1.0
    merge: Blend | None = None


class Budget(Stateful):
    """How many support points are kept, and what becomes of the others. A subclass has `admit`, or only `choose`."""

    twin: ClassVar[str | None] = None
    #: Whether the slots are coordinates of a space of finite dimension (`gossamer.budgets.features`) instead of points.
    space: ClassVar[bool] = False
    #: Whether all of these are there from the first row, and the points are their frequencies.
    fixed: ClassVar[bool] = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # a class that says only which slot goes gets that, whatever its base class does instead (but for projecting)
        above: Any = cls.__mro__[1]
        alone = above.choose is Budget.choose and above.inside is Budget.inside
        if alone and "choose" in vars(cls) and "admit" not in vars(cls):
            cls.admit = Budget.admit  # type: ignore[method-assign]

    def admit(self, newcomer: Newcomer, expansion: Expansion, state: dict[str, Any]) -> Admission:
        """Decide about a newcomer; ``state`` is the budget's own (see `initial_state`)."""
        size = float(np.sqrt(newcomer.move @ newcomer.move))
        return Admission(self.choose(expansion, size, newcomer.kappa))

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
        """The slot for a newcomer whose coefficients have the norm ``size``: one to overwrite, ``expansion.size`` to
        append, or `REFUSE`."""
        return expansion.size

    def inside(self, row: Floats, kappa: float, state: dict[str, Any]) -> float | None:
        """For a row that lies in the span of the points: the squared norm of its part there, with which the step is
        made instead of k(x, x). Asked before `admit` for every row that moves the model."""
        return None

    def lost(self, norm: float, expansion: Expansion, state: dict[str, Any]) -> None:
        """Called after an admission that has lost a part of this norm."""

    def expired(self, expansion: Expansion, time: int) -> int | None:
        """A slot whose term has no part in round ``time``, or None; asked at the end of each round for the next."""
        return None

    @property
    def needs_gram(self) -> bool:
        """Whether the kernel values of all points with each other are kept for it, as ``expansion.gram``."""
        return False

    def values(self, kernel: Kernel, points: Any, X: Any) -> Floats:
        """What the slots have to do with rows, a column for each: k(points, X), or the features."""
        return np.asarray(kernel(points, X), dtype=np.float64)

    def check(self, kernel: Kernel, loss: Loss, rule: Rule, backend: str) -> None:
        """Raise for parts of a learner that do not go with this budget."""
        if not rule.keeps_norm and (self.limit or 0) > LARGEST_GRAM:
            what = f"None or at most {LARGEST_GRAM} points with {type(rule).__name__}, which keeps a matrix of them"
            raise _checks.wrong("Learner", "budget", what, self)
        if backend == "trees" and (self.needs_gram or not rule.keeps_norm):
            what = f"'auto', 'native' or 'numpy' with {type(self if self.needs_gram else rule).__name__}"
            raise _checks.wrong("Learner", "backend", what, backend)

    def resolve(self, X: Any) -> Budget:
        """The budget with everything that depends on the data settled, by the first rows learned."""
        return self

    @property
    def limit(self) -> int | None:
        """The largest number of support points; None if it is unlimited."""
        return None

    @property
    def drops(self) -> bool:
        """Whether support points may be evicted."""
        return True

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        """The C++ twin's name and numbers; None for a budget without one."""
        name = twin_of(self)
        return None if name is None else (name, self.numbers())

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes."""
        return ()


class _Sized(Budget):
    """A fixed number of points, whose kernel values with each other are kept."""

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


def project_row(row: Floats, shares: Floats, kappa: float) -> tuple[float, float]:
    """The squared norms of a row's parts inside and outside of the span, K shares = row; rounding counts as nothing."""
    inside = min(kappa, max(0.0, float(row @ shares)))
    return inside, kappa - inside if kappa - inside > LEAST_PIVOT * kappa else 0.0
