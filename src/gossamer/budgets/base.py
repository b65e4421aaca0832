"""What a budget is: how many support points are kept, and what becomes of those that are not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from gossamer import _checks
from gossamer._registry import twin_of

if TYPE_CHECKING:
    from gossamer._engine.expansion import Expansion
    from gossamer.kernels import Kernel
    from gossamer.losses import Loss
    from gossamer.rules import Rule

#: The answer of a budget that keeps the newcomer out.
REFUSE = -1
#: The most support points whose kernel values with each other are kept.
LARGEST_GRAM = 4096


class Budget:
    """How many support points are kept, and which one leaves."""

    twin: ClassVar[str | None] = None

    def choose(self, expansion: Expansion, size: float, kappa: float) -> int:
        """The slot for a newcomer whose coefficients have the norm ``size``: one to overwrite, ``expansion.size`` to
        append, or `REFUSE`."""
        return expansion.size

    def expired(self, expansion: Expansion, time: int) -> int | None:
        """A slot whose term has no part in round ``time``, or None; asked at the end of each round for the next."""
        return None

    @property
    def needs_gram(self) -> bool:
        """Whether the kernel values of all points with each other are kept for it."""
        return False

    def check(self, kernel: Kernel, loss: Loss, rule: Rule, backend: str) -> None:
        """Raise for parts of a learner that do not go with this budget."""
        if self.needs_gram and backend == "trees":
            what = f"'auto', 'native' or 'numpy' with {type(self).__name__}"
            raise _checks.wrong("Learner", "backend", what, backend)

    def resolve(self, X: Any) -> Budget:
        """The budget with everything that depends on the data settled, by the first rows learned."""
        return self

    @property
    def limit(self) -> int | None:
        """The largest number of support points, None if there is none."""
        return None

    @property
    def drops(self) -> bool:
        """Whether a support point may ever leave."""
        return True

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        """The C++ twin's name and numbers; None for a budget without one."""
        name = twin_of(self)
        return None if name is None else (name, self.numbers())

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes."""
        return ()
