"""The Learner: a kernel, a loss, a rule and a budget. They meet in the loop of `gossamer._engine`, which runs them.

The file is long because the class is the public face of the engine: its methods validate, and ask the engine.
"""

from __future__ import annotations

import copy
import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from gossamer import _checks
from gossamer._engine.blocks import Blocks
from gossamer._engine.check_state import AT_ONCE, MOST_ROUNDS, check_state, work_bytes
from gossamer._engine.features import make_learning_machine
from gossamer._engine.native import Batch, Native, chunks
from gossamer._engine.select import Machine, check_tracked
from gossamer._engine.state import State
from gossamer._engine.trees import Trees
from gossamer._locks import exclusive, run_shared
from gossamer._registry import own_rates
from gossamer._sparse import TABLES, SparseRows, from_array, longest_row, sparse_rows, to_scipy
from gossamer._stored import Stored
from gossamer._typing import Array, Floats
from gossamer.budgets import as_budget
from gossamer.clock import as_half_life, elapse_rows, to_plain
from gossamer.kernels import as_kernel
from gossamer.losses import Several, as_loss
from gossamer.rules import Rule, as_rule

__all__ = ["Learner"]

#: The most features of sparse rows that are made dense: one has 32 MB then.
WIDEST = 2**22
#: Held while the engine of a loaded state is built.
BUILDING = threading.RLock()


class Learner(Stored):
    """Learns online with kernels: predicts each example, then learns it.

    Parameters
    ----------
    kernel : a Kernel, a name, or a function of two batches ``k(A, B) -> (len(A), len(B))``.
    loss : a Loss or a name.
    rule : a Rule, such as ``Implicit(C=1.0, reg=1e-4)`` or ``Gradient(rate=0.1, reg=0.01)``.
    budget : a Budget, such as ``Project(256)``; "auto" for one that grows while it matters; None to keep every point.
    average : False; True to keep the mean of all hypotheses too (with what the budget dropped, so its memory
        grows); or "sparse" to keep it for the present support points only.
    half_life : what was learned loses half of its weight in this time: seconds, a timedelta, "7 days" or a
        `gossamer.HalfLife`; then `learn` takes the ``time`` of each row. None: time does not matter.
    track_norm : keep ``norm`` up to date through removals, at O(size) per update and size^2 memory. Without a
        budget it is always up to date; otherwise it is computed when asked for.
    backend : "auto", or one of "native", "trees" and "numpy" to require it.

    Attributes
    ----------
    points, coefs, offset : the hypothesis f(x) = sum_i coefs_i k(points_i, x) + offset.
    level : the margin, epsilon or delta now, for a loss with ``nu``.
    births : the round in which each point came.
    steps, updates, mistakes : rounds so far, those with a step (also if the budget refused it), those with y f(x) <= 0.
    backend : "native", "native trees" (additive kernels), "native loop, numpy kernel" or "numpy".

    Examples
    --------
    >>> from gossamer.budgets import Smallest
    >>> from gossamer.kernels import Gaussian
    >>> from gossamer.losses import Huber
    >>> from gossamer.rules import Implicit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(2000, 1))
    >>> y = np.sin(X[:, 0])
    >>> learner = Learner(Gaussian(0.5), Huber(delta=1.0), Implicit(C=1.0, reg=1e-4), Smallest(64))
    >>> scores = learner.learn(X, y)
    >>> round(float(np.abs(scores - y)[:100].mean()), 2), round(float(np.abs(scores - y)[-100:].mean()), 2)
    (0.08, 0.04)
    >>> len(learner.coefs), learner.steps, learner.backend
    (64, 2000, 'native')
    """

    def __init__(
        self, kernel: Any, loss: Any, rule: Any, budget: Any = None, *, average: bool | str = False,
        track_norm: bool = False, backend: str = "auto", half_life: Any = None,
    ) -> None:  # fmt: skip
        self.kernel, self.loss = as_kernel(kernel), as_loss(loss)
        self.rule, self.budget = as_rule(rule), as_budget(budget)
        self.rule.check(self.loss)
        _checks.one_of(self, "average", average, [False, True, "sparse"])
        _checks.one_of(self, "track_norm", track_norm, [False, True])
        self.half_life = as_half_life(self, half_life)
        self._wish = _checks.one_of(self, "backend", backend, ["auto", "native", "trees", "numpy"])
        self.budget.check(self.kernel, self.loss, self.rule, backend)
        self.average: str | None = "all" if average is True else average or None
        # an eviction changes the norm by an amount that needs the kernel values of all points
        tracks = (track_norm or self.rule.needs_norm or self.budget.needs_gram) and self.budget.drops
        self.track_norm = tracks or self.rule.needs_gram
        if self.track_norm and not self.kernel.splits:
            check_tracked(self)
        self._width: int | None = None
        self._time: float | None = None  # of the last row, in seconds
        self._own_rates = own_rates(self.rule)
        self._use(None)

    def twin(self) -> Learner:
        """Another learner of the same parts and options, of one that has learned nothing: nothing is checked again."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def fork(self) -> Learner:
        """Another learner that goes on from here by itself, of one whose kernel is called in Python. It is not called
        here: it may have failed."""
        made = self.twin()
        if isinstance(self._made, Blocks):
            made._made = self._made.copy()
        return made

    @property
    def _machine(self) -> Machine | None:
        """The engine, None before the first row. For a large model from a file, it is built at its first use."""
        if self._waiting is not None:
            with BUILDING:
                if self._waiting is not None:
                    self._build(self._waiting)
        return self._made

    def _use(self, machine: Machine | None) -> None:
        """Set the engine; single rows go straight to compiled code if it has a fast path."""
        self._made = machine
        self._waiting: State | None = None
        self._longest = -1.0  # the largest ||x||^2 whose k(x, x) is known to be finite
        self.learn_fast: Callable[..., float | None] = _no_fast_path
        self.score_fast: Callable[..., float | None] = _no_fast_path
        if isinstance(machine, Native) and not machine.sparse and not self.loss.many:
            self.score_fast = machine.core.score_one
            if not self._own_rates and self.half_life is None:
                self.learn_fast = machine.core.learn_one

    # ------------------------------------------------------------------------------------------------ learning

    def learn(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, ids: Any = None, with_levels: bool = False,
        time: Any = None,
    ) -> Floats | tuple[Floats, Floats]:  # fmt: skip
        """Predict and then learn each row in order; returns the scores made before each was learned.

        One call, row by row, any split into batches: the result is the same. With several classes the scores have a
        column each, -inf where a class had not yet been seen. ``ids`` name the examples for a rule that lets them come
        back (`Adatron`). ``time``, with ``half_life``: when each row came, in seconds or as dates; once a row is
        predicted, what was learned before fades by the time since the row before. ``with_levels`` also
        returns the margin, epsilon or delta that each row met. Bad input raises before anything has changed.
        """
        learn = self._learn_locked if self._needs_lock() else self._learn
        batch = learn(X, y, sample_weight, ids, False, time)
        scores = self._flat(batch.scores)
        return (scores, batch.levels) if with_levels else scores

    def learn_with_variance(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, time: Any = None
    ) -> tuple[Floats, Floats]:
        """`learn`, with s^2(x), the variance that was left at each row before it was learned, for a rule that learns
        one (`gossamer.rules.Newton`): the mean and the variance of a prediction, in one pass.

        >>> from gossamer.budgets import Project
        >>> from gossamer.rules import Newton
        >>> X = np.linspace(0, 1, 50)[:, None]
        >>> learner = Learner("gaussian", "squared", Newton(noise=0.1), Project(8))
        >>> scores, variances = learner.learn_with_variance(X, np.cos(X[:, 0]))
        >>> variances[[0, 1, -1]].round(3).tolist()
        [1.0, 0.1, 0.05]
        """
        self._check_variance()
        learn = self._learn_locked if self._needs_lock() else self._learn
        batch = learn(X, y, sample_weight, None, True, time)
        assert batch.variances is not None
        return self._flat(batch.scores), batch.variances

    def _needs_lock(self) -> bool:
        """Whether the lock of the object must be held while it learns; the core has a lock of its own."""
        return self._own_rates or self.half_life is not None or not isinstance(self._machine, Native)

    @exclusive
    def _learn_locked(self, *options: Any) -> Batch:
        return self._learn(*options)

    def _learn(self, X: Any, y: Any, sample_weight: Any, ids: Any, with_variances: bool, time: Any = None) -> Batch:
        X = self.check_rows(X)
        targets = self._targets(y, len(X))
        weights = _checks.weights(self, sample_weight, len(X))
        names = self._ids(ids, len(X))
        fades, last = self.elapse(time, len(X))
        batch = self.learn_validated(X, targets, weights, names, with_variances, fades)
        self._time = last
        return batch

    def learn_validated(
        self,
        X: Any,
        targets: Floats | None,
        weights: Floats | None,
        names: Any,
        with_variances: bool,
        fades: Any = None,
    ) -> Batch:
        """`learn` for a caller that has validated everything, and holds a lock where one is needed."""
        machine = self._machine
        if machine is None:
            kernel, budget = self.kernel, self.budget
            self.kernel, self.budget = kernel.resolve(X), budget.resolve(X)
            try:
                machine = make_learning_machine(self, X, self._wish)
            finally:
                self.kernel, self.budget = kernel, budget
        first = machine.steps + 1
        rates = None
        if self._own_rates or not isinstance(machine, Native):
            rates = self.rule.rates(first, len(X))
            self.rule.check_rates(rates, first)
        outputs = 1
        if self.loss.target == "label" and targets is not None:
            outputs = max(int(targets.max()) + 1, machine.known)
        elif self.loss.many:
            outputs = machine.known
        variances = np.empty(len(X)) if with_variances else None
        scores, levels = np.empty((len(X), outputs)), np.empty(len(X))
        batch = Batch(targets, weights, rates, names, scores, levels, variances, fades)
        machine.learn(X, batch)
        if not self.loss.adapts:
            batch.levels[:] = self.loss.level
        if self._machine is None:
            self.kernel, self.budget = self.kernel.resolve(X), self.budget.resolve(X)
            self._width = X.shape[1] if isinstance(X, TABLES) else None
            self._use(machine)  # last: a thread that sees the machine sees the rest too
        return batch

    def elapse(self, time: Any, rows: int) -> tuple[Floats | None, float | None]:
        """What the time since the row before leaves of the model, for each of these rows (`gossamer.clock.elapse`), and
        the time of the last of them. Nothing changes. Both are None without ``half_life``."""
        return elapse_rows(self, self.half_life, self._time, time, rows)

    def settle(self, X: Any) -> None:
        """Resolve the kernel's parameters that depend on the data, such as ``gamma="scale"``, by these rows, as `learn`
        does with its first batch. Nothing happens once rows have been learned."""
        if self._machine is None:
            self.kernel = self.kernel.resolve(self.check_rows(X))

    def _flat(self, scores: Floats) -> Floats:
        """One score per row as a vector; one per class as a matrix."""
        return scores if self.loss.many else scores[:, 0]

    def learn_one(self, x: Any, y: float | None = None, weight: float = 1.0, time: Any = None) -> Any:
        """Predict and then learn one example; returns its score (or scores). The fast path for single rows."""
        try:
            score = None if y is True or y is False or time is not None else self.learn_fast(x, y, weight)
        except TypeError:
            score = None
        if score is not None:
            return score
        # the first row, a list, objects, or a bad row: the general path learns it or raises
        given = None if time is None else [time]
        scores = self.learn(_as_batch(x), None if y is None else [y], None if weight == 1.0 else [weight], time=given)
        assert isinstance(scores, np.ndarray)
        return scores[0] if scores.ndim == 2 else float(scores[0])

    # -------------------------------------------------------------------------------------------------- scoring

    def score(self, X: Any, average: bool = False) -> Floats:
        """f(x) for every row; of the mean of all hypotheses so far if ``average``."""
        return self.score_levels(X, average)[0]

    def score_levels(self, X: Any, average: bool = False) -> tuple[Floats, Floats]:
        """f(x) for every row, and the margin, epsilon or delta at the moment in which the row was scored."""
        if average and self.average is None:
            raise _checks.wrong("Learner", "average", "True or 'sparse' to score the mean", False)
        X = self.check_rows(X)
        levels = np.full(len(X), self.loss.level)
        room = levels if self.loss.adapts else None
        nothing = np.zeros((0, getattr(self.loss, "classes", None) or 1))
        scores = self._query(lambda machine: machine.score(X, average, room), nothing)
        return self._flat(scores if len(scores) else np.zeros((len(X), scores.shape[1]))), levels

    def score_validated(self, X: Any) -> Floats:
        """`score` for a caller that has validated the rows, and holds a lock where one is needed."""
        machine = self._machine
        return self.score(X) if machine is None else self._flat(machine.score(X, False))

    def score_one(self, x: Any) -> Any:
        """f(x) for one example."""
        try:
            score = self.score_fast(x)
        except TypeError:
            score = None
        if score is not None:
            return score
        scores = self.score(_as_batch(x))
        return scores[0] if scores.ndim == 2 else float(scores[0])

    def variance(self, X: Any) -> Floats:
        """s^2(x), the variance that is left at each row, for a rule that learns one (`gossamer.rules.Newton`): k(x, x)
        before anything is learned there."""
        self._check_variance()
        X, machine = self.check_rows(X), self._machine
        if isinstance(machine, Native):
            return machine.variance(X)
        state = self.state()
        kernel = self.kernel.resolve(X) if state is None else state.kernel
        learned = None if state is None or not len(state.points) else self.rule.unpack(state.rule, len(state.points))
        found = []
        # row by row, so that the rounding of a row does not depend on the others
        for part in chunks(len(X), 1024 if self.budget.space else 1):
            rows = X[part].astype(np.float64) if isinstance(X, TABLES) else X[part]
            kappas = np.asarray(kernel.diag(rows), dtype=np.float64)
            if state is not None and learned is not None:
                kappas = self.rule.variance(self.budget.values(kernel, state.points, rows), kappas, learned)
            found.append(kappas)
        return np.concatenate(found)

    def _check_variance(self) -> None:
        if type(self.rule).variance is Rule.variance:
            raise _checks.wrong(self, "rule", "one with a variance, such as Newton", self.rule)

    def effects(self, X: Any) -> Floats:
        """What each coordinate of an additive kernel adds to f(x): (rows, coordinates), with several classes also
        (..., classes). They sum to the score without its offset. The learner must be in trees."""
        X, machine = self.check_rows(X), self._machine
        if not isinstance(machine, Trees):
            raise _checks.wrong(self, "backend", "'native trees' for effects", self.backend)
        effects = machine.effects(X)
        return effects if self.loss.many else effects[:, :, 0]

    # ------------------------------------------------------------------------------------------------- checking

    def check_rows(self, X: Any) -> Any:
        """X as it is learned and scored: an array of floats, sparse rows, or a list of objects; nothing bad gets past
        here."""
        objects = getattr(self.kernel, "objects", False)
        if self.kernel.takes_any() and (objects or not _checks.is_table(X)) and not isinstance(X, SparseRows):
            X = list(X)
            if not X:
                raise _checks.wrong(self, "X", "at least one row", 0)
            if self._width is not None:
                raise _checks.wrong(self, "X", f"a matrix with {self._width} features, as before", X[0])
            return X
        X = self._as_table(X)
        if not len(X):
            raise _checks.wrong(self, "X", "at least one row", X.shape)
        machine = self._machine
        if machine is not None:
            if machine.dtype is None:
                raise _checks.wrong(self, "X", "a sequence of objects, as before", X.shape)
            if X.dtype != machine.dtype:
                with np.errstate(over="ignore"):
                    X = X.astype(machine.dtype)
        row, norm = longest_row(self, X)
        if machine is not None and machine.sparse and not isinstance(X, SparseRows):
            X = from_array(X)
        if not self.kernel.takes_any():
            self.kernel.check_domain(self, X)
            by_norm = self.kernel.by_norm
            if not by_norm or not norm <= self._longest:
                self._check_peaks(X[row : row + 1] if by_norm else X, row if by_norm else 0)
                self._longest = norm
        return X

    @property
    def takes_sparse(self) -> bool:
        """Whether the non-zeros of sparse rows are learned as they are: the kernel is made of products and differences
        of rows, the budget keeps points, and the rows before, if there are any, were sparse too."""
        machine = self._machine
        if machine is not None:
            return machine.sparse
        return self.kernel.takes_sparse() and not self.budget.space and self._wish != "trees"

    @property
    def widest(self) -> int:
        """The most features of sparse rows that are made dense."""
        return WIDEST

    @property
    def why_dense(self) -> str:
        """Why sparse rows are made dense, where they are."""
        part: Any = self.budget if self.budget.space else self.kernel
        sparse = self.kernel.takes_sparse() and not self.budget.space
        return "the rows before were dense" if sparse else f"{type(part).__name__} needs all features"

    def _as_table(self, X: Any) -> Any:
        """Validate rows of numbers: a matrix, or sparse rows where they are kept."""
        if not self.takes_sparse or not (issparse(X) or isinstance(X, SparseRows)):
            return _checks.matrix(self, X, self._width, finite=False)
        if isinstance(X, SparseRows):
            _checks.check_width(self, X.shape, self._width)
            return X
        return sparse_rows(self, X, self._width)

    def _check_peaks(self, X: Array, first: int) -> None:
        """Raise for a row whose k(x, x) is not finite; ``first``: the number of the first of these rows."""
        with np.errstate(over="ignore", invalid="ignore"):
            peaks = self.kernel.diag(X)
        if not np.isfinite(peaks).all():
            bad = int(np.argmin(np.isfinite(peaks)))
            got = f"{peaks[bad]} in row {first + bad}"
            raise _checks.wrong(self, "X", "small enough for k(x, x) to be finite", got)

    def _targets(self, y: Any, rows: int) -> Floats | None:
        if self.loss.target == "none":
            return None
        if y is None:
            raise _checks.wrong(self, "y", f"given for {type(self.loss).__name__}", None)
        if isinstance(self.loss, Several):
            return _checks.targets(self, y, rows, self.loss.targets, self.loss.base.target == "binary")
        targets = _checks.vector(self, "y", y, rows)
        if self.loss.target == "binary":
            _checks.signs(self, targets)
        if self.loss.target == "label":
            _checks.indices(self, targets, getattr(self.loss, "classes", None))
        return targets

    def _ids(self, ids: Any, rows: int) -> Any:
        if ids is None:
            return None
        if not self.rule.needs_ids:
            raise _checks.wrong(self, "ids", f"None with {type(self.rule).__name__}, whose examples do not return", ids)
        names = np.asarray(ids)
        if names.shape != (rows,) or names.dtype.kind not in "iu" or (names.size and names.min() < 0):
            raise _checks.wrong(self, "ids", f"{rows} integers, none negative", names)
        return np.ascontiguousarray(names, dtype=np.int64)

    # ---------------------------------------------------------------------------------------------------- state

    @property
    def backend(self) -> str:
        """Which code learns: decided with the first rows."""
        machine = self._machine
        return "not chosen yet" if machine is None else machine.backend

    def _query(self, ask: Callable[[Any], Any], default: Any) -> Any:
        """The result of a query to the engine; ``default`` before there is an engine."""
        machine = self._machine
        if machine is None:
            return default
        alone = isinstance(machine, Native) and self.half_life is None
        return ask(machine) if alone else run_shared(self, lambda: ask(machine))

    def _number(self, name: str, default: float) -> Any:
        return self._query(lambda machine: machine.number(name), default)

    @property
    def points(self) -> Any:
        """The support points, one per slot; of sparse rows a CSR array."""
        return to_scipy(self._query(lambda machine: machine.points(), np.zeros((0, 0))))

    @property
    def coefs(self) -> Floats:
        """The effective coefficients, one per support point; with several classes, a row for each class."""
        nothing = np.zeros((getattr(self.loss, "classes", None) or 1, 0))
        coefs: Floats = self._query(lambda machine: machine.coefs(), nothing)
        return coefs if self.loss.many else coefs[0]

    @property
    def births(self) -> Array:
        return np.asarray(self._query(lambda machine: machine.state(points=False).births, np.zeros(0, dtype=np.int64)))

    @property
    def offset(self) -> float:
        return float(self._number("offset", 0.0))

    @property
    def level(self) -> float:
        return float(self._number("level", self.loss.level)) if self.loss.adapts else self.loss.level

    @property
    def steps(self) -> int:
        waiting = self._waiting
        return int(self._query(lambda machine: machine.steps, 0) if waiting is None else waiting.steps)

    @property
    def known(self) -> int:
        """The classes that a loss of several classes has met."""
        if self._waiting is not None:
            return int(self._waiting.known)
        return 0 if self._machine is None else self._machine.known

    @property
    def features(self) -> int | None:
        """The features of a row; None before the first, and where rows are other things than numbers."""
        return self._width

    @property
    def updates(self) -> int:
        return int(self._number("updates", 0))

    @property
    def mistakes(self) -> int:
        return int(self._number("mistakes", 0))

    @property
    def norm(self) -> float:
        """The RKHS norm of f (without the offset)."""
        if self.budget.space or (self.rule.keeps_norm and (self.track_norm or not self.budget.drops)):
            return math.sqrt(max(0.0, float(self._number("norm2", 0.0))))
        snapshot = copy.copy(self)  # of one moment, while other threads learn
        machine, labels = snapshot._machine, getattr(self.loss, "label_kernel", None)
        if machine is None:
            return 0.0
        coefs = np.atleast_2d(snapshot.coefs)
        joint = coefs if labels is None else np.array(labels) @ coefs
        return math.sqrt(max(0.0, machine.squared_norm(coefs, joint)))

    @property
    def discarded(self) -> float:
        """The sum of the RKHS norms of the terms that the budget has discarded: large beside ``norm``, it says that the
        budget is too small. A budget that projects discards only what the other points cannot express."""
        return float(self._number("discarded", 0.0))

    def state(self) -> State | None:
        """A snapshot of everything learned, with the kernel as resolved: enough to resume exactly with `restore`. None
        before the first row."""
        waiting = self._waiting
        if waiting is not None:
            return waiting.copy()
        found: State | None = self._query(lambda machine: machine.state().replace(time=self._time), None)
        return found

    def retire(self) -> None:
        """Close the fast path for single rows: another learner takes over the state."""
        machine = self._machine
        if isinstance(machine, Native):
            machine.core.retire()

    @exclusive
    def restore(self, state: State | None) -> None:
        """Go on from a `state` of a learner with the same parts; None: from the beginning."""
        self._restore(state)

    def _restore(self, state: State | None) -> None:
        if state is None:
            self._width = self._time = None
            self._use(None)
            return
        check_state(self, state)
        self._build(state)

    def _build(self, state: State) -> None:
        """Build the engine of a validated state."""
        points, kernel, budget = state.points, self.kernel, self.budget
        self.kernel, self.budget = state.kernel, budget.resolve(points)
        try:
            machine = make_learning_machine(self, points, self._wish)
            machine.restore(state)
        except BaseException:
            self.kernel, self.budget = kernel, budget
            raise
        self._width = points.shape[1] if isinstance(points, TABLES) else None
        self._time = state.time
        self._use(machine)

    def _parameters(self) -> dict[str, Any]:
        average = {"all": True, "sparse": "sparse", None: False}[self.average]
        four = {"kernel": self.kernel, "loss": self.loss, "rule": self.rule, "budget": self.budget}
        half_life = {} if self.half_life is None else {"half_life": to_plain(self.half_life)}
        return {**four, "average": average, "track_norm": self.track_norm, "backend": self._wish, **half_life}

    def _learned(self) -> dict[str, Any]:
        state = self.state()
        return {} if state is None else state.to_stored()

    def _relearn(self, learned: dict[str, Any]) -> None:
        if not learned:
            return
        state = State.from_stored(learned, self.kernel, self.budget, self.rule)
        check_state(self, state, MOST_ROUNDS // 2)  # leave room for more rounds
        if work_bytes(self, state.points) <= AT_ONCE:
            self._build(state)
        else:  # loading must not cost more than the file: build the engine at its first use
            self._use(None)
            self._waiting = state
            self._width, self._time = state.points.shape[1], state.time

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_made", "_waiting", "_width", "_time", "_longest", "learn_fast", "score_fast")
        return {"state": self.state(), **{name: value for name, value in self.__dict__.items() if name not in hidden}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        learned = state.pop("state")
        self.__dict__.update(state)
        self.restore(learned)

    def __repr__(self) -> str:
        return f"Learner({self.kernel}, {self.loss}, {self.rule}, {self.budget})"


def _as_batch(x: Any) -> Any:
    """One example as rows; a sparse matrix of one row is that already."""
    return x if issparse(x) and x.ndim == 2 else [x]


def _no_fast_path(*_: Any) -> None:
    return None
