"""The contract of an update rule: a pure function from the score of an example to a step."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from gossamer import _checks
from gossamer._registry import as_part, twin_of
from gossamer._stateful import Stateful
from gossamer._typing import Floats
from gossamer.losses import Loss

#: How the step size changes with the round t = 1, 2, ...: rate * schedule(t).
Schedule = str | Callable[[int], float]

SCHEDULES = ("constant", "inverse_sqrt")

#: k(x, x) up to here counts as zero.
TINY = 1e-300


class Trace(NamedTuple):
    """How SVMD's trace moves: v <- keep v - drift f + coefficient k(x, .), and the step size from now on."""

    keep: float
    drift: float
    coefficient: Any
    rate: float


class Step(NamedTuple):
    """A rule's decision: the factor ``keep`` of all coefficients, the newcomer's coefficient (or one per class), the
    offset and the level. A step that moves other points too has a ``direction``: f <- keep f + sum_j direction_j
    k(x_j, .) + coefficient k(x, .), an entry for each point (with several classes, a row for each class)."""

    keep: float
    coefficient: Any
    offset: float
    level: float
    trace: Trace | None = None
    direction: Floats | None = None


class Example(NamedTuple):
    """The input of a rule: the score of an example, and a few numbers about the model."""

    value: Any  # f(x), without the offset; with several classes a vector
    offset: float
    y: Any  # a number; with several targets a vector
    kappa: float  # k(x, x)
    rate: float = 1.0
    weight: float = 1.0
    norm2: float = 0.0  # ||f||^2
    updates: int = 0  # so far
    own: float = 0.0  # the coefficient the example already has, if it came before
    trace: Any = None  # v(x)
    inner: float = 0.0  # <f, v>
    last_rate: float = 0.0  # the step size before, of a rule that adapts it
    row: Any = None  # k(points, x)
    state: Any = None  # the rule's own (see `Rule.initial_state`), to be changed where the loop tells of an event

    @property
    def aim(self) -> Any:
        """The class as an index, or several targets, for a loss of several scores."""
        return self.y if isinstance(self.y, np.ndarray) else int(self.y)


class Rule(Stateful):
    """One update of the model. A subclass defines `step`, and in `check` the losses that it supports."""

    twin: ClassVar[str | None] = None
    needs_trace: ClassVar[bool] = False
    #: Whether an example may come back under its id and change its own coefficient.
    needs_ids: ClassVar[bool] = False
    #: Whether a step grows with the weight of its row; otherwise only whether the weight is 0 matters.
    weighs: ClassVar[bool] = True
    #: Whether its steps have a direction and need the norm: then the kernel values of all points are kept.
    needs_gram: ClassVar[bool] = False
    #: Whether the norm of f is kept up to date; otherwise, as steps move all points, it is computed when asked for.
    keeps_norm: ClassVar[bool] = True
    rate: float = 1.0
    schedule: Schedule = "constant"
    #: How fast the step size adapts, for a rule with a trace; with 0 the trace counts for nothing.
    meta: float = 1.0
    fit_intercept: bool = False

    @property
    def needs_norm(self) -> bool:
        """Whether the step looks at the norm of f."""
        return False

    def step(self, loss: Loss, e: Example) -> Step:
        """The update for one example."""
        raise NotImplementedError

    def drop(self, slot: int, state: dict[str, Any]) -> tuple[Floats, float] | None:
        """How the others take over the function of a point that the budget drops: their shares in it, as in
        `gossamer.budgets.Admission`, and the pivot. None: not at all, it is lost."""
        return None

    def variance(self, values: Floats, kappas: Floats, state: dict[str, Any]) -> Floats:
        """The variance left at rows with these kernel values, a column for each, of a rule that learns it; ``state`` is
        unpacked."""
        raise NotImplementedError

    def merged(self, slot: int, other: int, kernel: Floats, coefs: Floats, state: dict[str, Any]) -> Floats:
        """Two observations become one at a point between theirs, of which ``kernel`` are the kernel values with all
        points, for a rule with a metric; returns the coefficients, with the new point in the slot of the first."""
        raise NotImplementedError

    def pool(
        self, gram: Floats, coefs: list[Floats], states: list[dict[str, Any]], places: list[Any]
    ) -> tuple[Floats, Floats] | None:
        """Coefficients and metric of all that several models have learned, over points with this Gram matrix, for a
        rule with a metric; ``coefs`` have a row for each output and a column for each of these points, ``places`` are
        the indices of each model's own points, ``states`` are packed. None: models merge as a weighted sum."""
        return None

    def renewed(self, row: Floats, kappa: float, state: dict[str, Any]) -> None:
        """Points have left between the step and the admission of the newcomer, which now has these kernel values."""

    def fade(self, factor: float, state: dict[str, Any]) -> float:
        """Time has passed, and all that is known counts by this factor less (`gossamer.clock`); returns that of f."""
        return factor

    def ended(self, state: dict[str, Any]) -> None:
        """A round has ended, with or without a step."""

    def check(self, loss: Loss) -> None:
        """Raise if the rule does not support the loss."""
        if self.fit_intercept and loss.target in ("none", "label", "several"):
            raise _checks.wrong(self, "fit_intercept", f"False for {type(loss).__name__}", True)

    def check_rates(self, rates: Floats, first: int) -> None:
        """Raise if a step size of the rounds first, first + 1, ... is out of range."""
        bad = ~((rates > 0) & np.isfinite(rates))
        if bad.any():
            t = first + int(np.argmax(bad))
            raise _checks.wrong(self, "schedule", "positive and finite", f"{rates[t - first]:g} at t = {t}")

    def rates(self, first: int, count: int) -> Floats:
        """The step sizes of the rounds first ... first + count - 1."""
        times = np.arange(first, first + count)
        if callable(self.schedule):
            factors = np.array([float(self.schedule(int(t))) for t in times], dtype=np.float64)
        else:
            factors = np.ones(count) if self.schedule == "constant" else 1.0 / np.sqrt(times)
        return np.asarray(self.rate * factors)

    def compiled(self) -> tuple[str, tuple[float, ...]] | None:
        """The C++ twin's name and numbers; None for a rule without one."""
        name = twin_of(self)
        return None if name is None else (name, self.numbers())

    def numbers(self) -> tuple[float, ...]:
        """The parameters that the C++ twin takes: rate, 1 if it falls with 1 / sqrt(t), intercept, then its own."""
        return (float(self.rate), float(self.schedule == "inverse_sqrt"), float(self.fit_intercept))

    def _check_common(self) -> None:
        _checks.number(self, "rate", self.rate, 0.0, math.inf)
        if not callable(self.schedule) or hasattr(self.schedule, "diag"):  # a kernel is callable too
            _checks.one_of(self, "schedule", self.schedule, SCHEDULES)
        _checks.one_of(self, "fit_intercept", self.fit_intercept, [False, True])


def as_rule(rule: Any) -> Rule:
    """A Rule from a Rule or a name.

    >>> as_rule("projection:radius=2")
    Projection(radius=2.0)
    """
    return as_part(Rule, rule, "rule", "a Rule, such as Implicit(C=1.0), or a name")


def goes_with(rule: Rule, loss: Loss, *known: type[Loss]) -> None:
    """Raise unless the loss is of a known type, and fixed."""
    if type(loss) not in known or loss.adapts:
        names = " or ".join(part.__name__ for part in known)
        raise _checks.wrong("Learner", "loss", f"{names}, without nu, with {type(rule).__name__}", loss)
