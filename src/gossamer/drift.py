"""Has the world changed? Alarms over the scores of any model, with a bound on false ones that assumes nothing else."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from gossamer import _checks, _core
from gossamer._locks import Snapshot, exclusive, run_shared
from gossamer._stored import Stored
from gossamer._typing import Floats
from gossamer.certainty.martingale import STAKES

__all__ = ["Alarm", "DriftAlarm", "forget"]

#: The largest number of rows that can be counted.
MOST_ROWS = 2**62


class Alarm(NamedTuple):
    """An alarm: the row that raised it, how strong the evidence is, and about where the change began.

    Attributes
    ----------
    row : the number of the row, the first watched being 1.
    strength : the capital that was won by betting on a change, at least 1 / level (or ``every``).
    since : the row after which the capital only grew: about where the change began.
    """

    row: int
    strength: float
    since: int


class DriftAlarm(Stored, Snapshot):
    """Watch scores of any kind, one a row, and raise an alarm when they stop looking alike.

    Scores may be losses or residuals of any model (of scikit-learn or river too), p-values, or a feature of the rows.
    As long as the world stands still (scores are exchangeable, whatever their distribution), the chance of ever raising
    an alarm is at most ``level`` (Ville's inequality for a conformal test martingale: `gossamer.certainty.martingale`).

    Parameters
    ----------
    level : the largest chance of a false alarm, ever. After an alarm nothing more is said until `restart`.
    every : instead of a level: the mean number of rows between false alarms is at least this, and watching begins anew
        after each alarm.
    memory : how many scores are kept; then the comparison begins anew, while the evidence goes on.
    seed : of the random numbers that break ties.

    >>> rng = np.random.default_rng(0)
    >>> alarm = DriftAlarm(level=0.01)
    >>> alarm.update(rng.normal(size=3000))
    []
    >>> found, = alarm.update(rng.normal(1.0, 1.0, size=1000))
    >>> found.row, found.since, found.strength >= 100
    (3046, 3005, True)
    """

    def __init__(self, level: float = 0.01, *, every: int | None = None, memory: int = 10_000, seed: int = 0) -> None:
        self.level, self.every, self.memory, self.seed = level, every, memory, seed
        _checks.number(self, "level", level, 0.0, 1.0)
        if every is not None:
            _checks.whole(self, "every", every, 2)
        _checks.whole(self, "memory", memory, 2, 2**31 - 1)
        _checks.whole(self, "seed", seed, 0)
        self._row, self._first, self._raised = 0, 0, False
        self._least, self._since = math.inf, 0
        self._martingale: Any = _core.Martingale(every is not None)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor."""
        return {"level": self.level, "every": self.every, "memory": self.memory, "seed": self.seed}

    @property
    def limit(self) -> float:
        """The capital at which an alarm is raised."""
        return 1.0 / self.level if self.every is None else float(self.every)

    @property
    def raised(self) -> bool:
        """Whether an alarm stands: with ``every`` never, as watching begins anew."""
        return self._raised

    @property
    def row(self) -> int:
        """How many scores were watched."""
        return self._row

    @property
    def strength(self) -> float:
        """The capital now: the evidence against a world that stands still."""
        return math.fsum(self._martingale.state()[:STAKES])

    @exclusive
    def update(self, scores: Any) -> list[Alarm]:
        """Watch one score or several in order; returns the alarms that they raise. Any split gives the same."""
        values = np.atleast_1d(np.asarray(scores, dtype=np.float64))
        if values.ndim != 1 or not np.isfinite(values).all():
            raise _checks.wrong(self, "scores", "a vector of finite numbers", scores)
        alarms = []
        while len(values):
            if self._raised:
                self._row += len(values)
                break
            p, wealth = np.empty((2, len(values)))
            # SplitMix64 wants seeds that are far from each other
            seed = (self.seed * 0x9E3779B9 + self._first) % 2**64
            taken = self._martingale.update(values, seed, self.memory, p, wealth, self.limit)
            self._follow(wealth[:taken])
            self._row, values = self._row + taken, values[taken:]
            if wealth[taken - 1] >= self.limit:
                alarms.append(Alarm(self._row, float(wealth[taken - 1]), self._since + 1))
                self._begin(raised=self.every is None)
        return alarms

    def _follow(self, wealth: Floats) -> None:
        """The row after which the capital was least; of fed capital, in units of what came in."""
        level = wealth
        if self.every is not None:
            level = wealth / np.arange(self._row - self._first + 1, self._row - self._first + 1 + len(wealth))
        least = int(np.argmin(level[::-1]))
        if level[::-1][least] <= self._least:
            self._least, self._since = float(level[::-1][least]), self._row + len(wealth) - least

    @exclusive
    def restart(self) -> None:
        """Watch from here on as if nothing had come before; rows go on counting."""
        self._begin(raised=False)

    def _begin(self, raised: bool) -> None:
        self._martingale = _core.Martingale(self.every is not None)
        self._first, self._raised = self._row, raised
        self._least, self._since = math.inf, self._row

    def _learned(self) -> dict[str, Any]:
        numbers = {"row": self._row, "first": self._first, "raised": self._raised, "since": self._since}
        least = None if math.isinf(self._least) else self._least
        return {**numbers, "least": least, "martingale": np.array(self._martingale.state())}

    def _relearn(self, learned: dict[str, Any]) -> None:
        state: Any = learned.get("martingale")
        counts: list[Any] = [learned.get(name) for name in ("row", "first", "since")]
        least, raised = learned.get("least"), learned.get("raised")
        fits = all(type(count) is int and 0 <= count <= counts[0] < MOST_ROWS for count in counts)
        fits = fits and type(raised) is bool
        fits = fits and (least is None or (type(least) is float and least >= 0))
        fits = fits and isinstance(state, np.ndarray) and state.dtype == np.float64 and state.ndim == 1
        if not fits or len(state) < STAKES + 1 or not np.isfinite(state).all() or state[: STAKES + 1].min() < 0:
            raise _checks.wrong(self, "state", "one of a DriftAlarm", learned)
        if (np.diff(state[STAKES + 1 :]) < 0).any() or len(state) - STAKES - 1 > self.memory:
            raise _checks.wrong(self, "state", "sorted scores, as many as the memory holds", state)
        self._row, self._first, self._since = counts
        self._raised, self._least = bool(raised), math.inf if least is None else float(least)
        self._martingale.restore(state.tolist())

    def __getstate__(self) -> dict[str, Any]:
        return run_shared(self, lambda: {"parameters": self.get_params(), "learned": self._learned()})

    def __deepcopy__(self, memo: dict[int, Any]) -> DriftAlarm:
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__setstate__(self.__getstate__())
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state["parameters"])  # type: ignore[misc]
        self._relearn(state["learned"])


def forget(model: Any, keep: float = 0.0, rows: tuple[Any, ...] = ()) -> None:
    """What a model may do after an alarm: forget. With ``keep=0`` it begins anew; else its coefficients shrink by the
    factor ``keep``, what second-order steps know by its square, and its certainty begins anew.

    Parameters
    ----------
    model : an estimator, or a pipeline, whose scaler goes on.
    keep : in [0, 1); 0 for a mixture, which shrinks by itself.
    rows : (X, y), or (X,) for a detector: recent rows, which are learned at once, so that the model is warm.

    >>> from gossamer import SILKRegressor
    >>> model = SILKRegressor().partial_fit([[0.0], [1.0]], [0.0, 8.0])
    >>> before = float(model.norm_)
    >>> forget(model, keep=0.5)
    >>> round(float(model.norm_) / before, 3)
    0.5
    >>> forget(model, rows=([[0.0], [1.0]], [0.0, 8.0]))
    >>> model.n_seen_
    2
    """
    from gossamer._locks import publish
    from gossamer.estimators.loaded import LEARNED
    from gossamer.estimators.pipelines import last_step
    from gossamer.mixture import MixedLearner

    _checks.number("forget", "keep", keep, 0.0, 1.0, "left")
    last = last_step(model)
    learner = getattr(last, "learner_", None)
    if keep and isinstance(learner, MixedLearner):
        raise _checks.wrong("forget", "keep", "0 for a mixture, which shrinks by itself", keep)
    if learner is not None and keep == 0.0:
        publish(last, {}, instead_of=LEARNED)
    elif learner is not None:
        state = learner.state()
        rule = {name: value * keep**2 if name == "metric" else value for name, value in state.rule.items()}
        shrunk = {"scale": state.scale * keep, "offset": state.offset * keep, "norm2": state.norm2 * keep**2}
        learner.restore(state.replace(**shrunk, rule=rule))
        publish(last, {"_certainty": last._new_certainty()})
    if rows:
        model.partial_fit(*rows)
