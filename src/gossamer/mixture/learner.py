"""The learner that tunes itself: second-order experts over a range of settings, mixed with a bound on what that costs.

The file is long because the class has the whole face of a `Learner`.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._engine.native import Batch
from gossamer._locks import run_shared, shared
from gossamer._sparse import TABLES, SparseRows, from_array, longest_row, sparse_from_stored
from gossamer._typing import Array, Floats, Ints
from gossamer.budgets import Project
from gossamer.clock import as_half_life, order_times, read_times, to_plain
from gossamer.kernels import Gaussian, Kernel, as_kernel
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss, OneVsRest, Pinball, Softmax, Squared, SquaredHinge
from gossamer.mixture.costs import check_limits
from gossamer.mixture.opinions import FREEDOM
from gossamer.mixture.panel import WIDEST, Panel, for_scaled
from gossamer.mixture.roster import EVERY, START, Expert
from gossamer.mixture.settings import Setting
from gossamer.mixture.state import MixedState, check_stored
from gossamer.mixture.views import VIEWS, Scaling, Views
from gossamer.mixture.weights import SHARE
from gossamer.rules import Newton

#: The largest feature whose squares can be summed, in float64 and float32.
LARGEST = {"d": 1e100, "f": 1e15}


class MixedLearner(Panel):
    """A Learner over learners. Second-order experts (`gossamer.rules.Newton`), each with settings of its own, learn
    every row; their predictions are mixed by Bayes weights with a fixed share.

    What is not chosen by hand: the width of the kernel, forgetting, noise, whether a linear model is enough, the scale
    of the features. Experts that stay negligible are retired, and others are started (`gossamer.mixture.roster`), all
    by the count of rows, so that any split into batches gives the same model.

    Parameters
    ----------
    task : "classification" or "regression".
    budget : the most support points of each expert.
    kernel : None for Gaussians of all widths beside linear parts; "laplace" for that family; "mixed" for both, as
        rows of numbers and categories often have steps; a Kernel to fix it, whose "scale" is that of features with
        variance 1.
    scale : whether features are scaled online to mean 0 and deviation 1.
    share : of the weight that all experts share after each row.
    quantile : the level, for regression of a quantile.
    awake : how many experts stay awake once the stream is known; young ones and those on trial come on top.
    memory, time : limits in bytes and in microseconds a row; fewer experts stay awake, with fewer points.
    half_life : experts forget by the clock: never, and in 10, 1, 1/10 and 1/50 times this time (see
        `gossamer.HalfLife`), instead of by rows. Their links to probabilities forget in twice the time.
    many : whether there is a score for each class; ``classes``: their number if it is known.
    n_jobs : threads over experts.

    Scores are the log-odds of the second class; with many classes the logarithms of their probabilities; for regression
    the mean of the experts, in the units of the targets.

    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] > 0, 1.0, -1.0)
    >>> learner = MixedLearner(budget=64)
    >>> wrong = (learner.learn(X, y) >= 0) != (y > 0)
    >>> round(float(wrong[:100].mean()), 2), round(float(wrong[-100:].mean()), 2)
    (0.18, 0.01)
    >>> learner.experts()[0][0].width
    3.0
    """

    def __init__(
        self, task: str = "classification", *, budget: int = 256, kernel: Any = None, scale: bool = True,
        share: float = SHARE, quantile: float | None = None, awake: int = 6, memory: float | None = None,
        time: float | None = None, classes: int | None = None, many: bool = False, n_jobs: int = 1,
        half_life: Any = None,
    ) -> None:  # fmt: skip
        self.task = _checks.one_of(self, "task", task, ["classification", "regression"])
        self.size = _checks.whole(self, "budget", budget, 1)
        self.budget = Project(self.size)
        self.family, self.scale = kernel, _checks.one_of(self, "scale", scale, [False, True])
        self.share = _checks.number(self, "share", share, 0.0, 1.0)
        self.quantile = None if quantile is None else _checks.number(self, "quantile", quantile, 0.0, 1.0)
        self.awake, self.n_jobs = _checks.whole(self, "awake", awake, 1), _checks.whole(self, "n_jobs", n_jobs, 1)
        check_limits(self, memory, time)
        self.memory, self.time = memory, time
        self.half_life = as_half_life(self, half_life)
        self.classes = classes
        self.many = _checks.one_of(self, "many", many, [False, True] if task == "classification" else [False])
        self.kernel: Kernel = Gaussian(1.0)
        self.rule = Newton()
        self.average, self.track_norm, self._wish, self._own_rates = None, False, "auto", False
        if self.task == "classification":
            self.kind = "class" if many else "sign"
            self.loss: Loss = Softmax(classes=classes) if many else Logistic()
            self.expert_loss = OneVsRest(classes=classes) if many else SquaredHinge()
        else:
            self.kind = "value" if self.quantile is None else "quantile"
            self.loss = self.expert_loss = Squared() if self.quantile is None else Pinball(self.quantile)
        self._fixed: Any = None
        self._mixed = isinstance(kernel, str) and kernel == "mixed"
        if kernel is not None and not self._mixed:
            found = as_kernel(kernel)
            self._fixed = type(found) if kernel in ("gaussian", "rbf", "laplace", "laplacian") else found
        self._forget()

    def _forget(self) -> None:
        self._width: int | None = None
        self._dtype: Any = None
        self._points, self._awake = self.size, self.awake
        self._use(None)
        self._rows, self._births, self._known = 0, 0, self.classes or 0
        self._units = (1.0,) * len(VIEWS)
        self._blank = {}
        self._experts = []
        self._weights = self._new_weights(0)
        self._scaling = Scaling.of_width(0)
        self._moments = (0.0, 0.0, 0.0, 0.0)
        self._memory_rows = np.zeros((0, 0))
        self._memory_targets, self._memory_weights = np.zeros(0), np.zeros(0)
        self._memory_times, self._time = np.zeros(0), None

    # -------------------------------------------------------------------------------------------------- learning

    def _needs_lock(self) -> bool:
        return True

    def check_rows(self, X: Any) -> Any:
        """X as it is learned and scored; nothing bad gets past here."""
        X = self._as_table(X)
        if not len(X):
            raise _checks.wrong(self, "X", "at least one row", X.shape)
        if self._dtype is not None and X.dtype != self._dtype:
            with np.errstate(over="ignore"):
                X = X.astype(self._dtype)
        longest_row(self, X)
        if isinstance(self._memory_rows, SparseRows) and not isinstance(X, SparseRows):
            X = from_array(X)
        values = X.values if isinstance(X, SparseRows) else X
        largest, limit = float(np.abs(values).max(initial=0.0)), LARGEST[X.dtype.char]
        if largest > limit:
            raise _checks.wrong(self, "X", f"at most {limit:g} in size", largest)
        return X

    @property
    def takes_sparse(self) -> bool:
        """Whether sparse rows stay so: those that are scaled have no zeros."""
        if self._rows:
            return isinstance(self._memory_rows, SparseRows)
        return not self.scale and (not self._is_fixed or self._fixed.takes_sparse())

    @property
    def widest(self) -> int:
        """The most features of rows that are made dense: every expert keeps points of its own."""
        return WIDEST

    @property
    def why_dense(self) -> str:
        """Why sparse rows are made dense, where they are."""
        if self.scale:
            return "scale=False does not scale them, and keeps them sparse"
        return "the rows before were dense" if self._rows else f"{type(self._fixed).__name__} needs all features"

    def settle(self, X: Any) -> None:
        """Nothing: what depends on the data is found by the count of rows."""

    def _learn(self, X: Any, y: Any, sample_weight: Any, ids: Any, with_variances: bool, time: Any = None) -> Batch:
        X = self.check_rows(X)
        targets = self._targets(y, len(X))
        assert targets is not None
        weights = _checks.weights(self, sample_weight, len(X))
        self._ids(ids, len(X))
        times = self._ordered(time, len(X))
        largest = float(np.abs(targets).max())
        if self.task == "regression" and largest > LARGEST["d"]:
            raise _checks.wrong(self, "y", "small enough for its variance to be finite", largest)
        outputs = max(int(targets.max()) + 1, self._known) if self.many else 1
        out = np.full((len(X), outputs), -np.inf)
        before = self._saved() if self._may_fail(X) else {}
        try:
            for part in self._parts(len(X)):
                given = (None if values is None else values[part] for values in (weights, times))
                found = self._learn_part(X[part], targets[part], *given)
                out[part, : found.shape[1]] = found
        except BaseException:
            self.__dict__.update(before)
            raise
        return Batch(targets, weights, None, None, out, np.full(len(X), self.loss.level))

    def _ordered(self, time: Any, rows: int) -> Floats | None:
        """The times of rows, in order; None without a half-life."""
        self.elapse(time, rows)
        if self.half_life is None:
            return None
        return order_times(self, self.half_life, self._time, read_times(self, time, rows))

    def _may_fail(self, X: Array) -> bool:
        """Whether a kernel in Python could raise in the middle of a batch."""
        return isinstance(self._fixed, Kernel) and for_scaled(self._fixed, X.shape[1]).program(X.shape[1]) is None

    def _saved(self) -> dict[str, Any]:
        """All attributes, with copies of what learning changes in place."""
        forks = {id(expert.learner): expert.learner.fork() for expert in self._experts}
        experts = [replace(expert, learner=forks[id(expert.learner)]) for expert in self._experts]
        changed = {"_experts": experts, "_weights": deepcopy(self._weights), "_scaling": self._scaling.copy()}
        return {**self.__dict__, **changed}

    def _parts(self, rows: int) -> Iterator[slice]:
        """Slices of the rows of a call, cut where the roster may change."""
        start = 0
        while start < rows:
            stop = min(rows, start + EVERY - self._rows % EVERY)
            yield slice(start, stop)
            start = stop

    def _learn_part(self, X: Array, y: Floats, weights: Floats | None, times: Floats | None) -> Floats:
        if not self._rows:
            self._open(X)
        views = self._scaling.learn(X) if self.scale else Views(X)
        targets, means, deviations = self._scaled_targets(y, weights)
        scores, variances = self._ask(self._experts, views, targets, weights, times)
        fades = self._link_fades(times, self._time)
        out = self._weights.learn(scores, variances, targets, weights, fades, self._settled())
        if self.task == "regression":
            out = out * deviations[:, None] + means[:, None]
        self._remember(X, y, weights, times)
        self._rows += len(X)
        if self.many:
            self._known = max(self._known, int(y.max()) + 1)
        if self._rows == START:
            self._start_all()
        elif self._rows > START and self._rows % EVERY == 0:
            self._change_roster()
        return out

    # --------------------------------------------------------------------------------------------------- scoring

    @shared
    def score_levels(self, X: Any, average: bool = False) -> tuple[Floats, Floats]:
        """The score of the mixture for every row, and the level of the loss."""
        X = self.check_rows(X)
        levels = np.full(len(X), self.loss.level)
        if not self._rows:
            return self._flat(np.zeros((len(X), max(self._known, 1)))), levels
        scores, variances = self._ask(self._experts, self._look(X), None)
        out = self._weights.predict(scores, variances, self._settled())
        if self.task == "regression":
            mean, deviation = self._target_units()
            out = out * deviation + mean
        return self._flat(out), levels

    @shared
    def variance(self, X: Any) -> Floats:
        """The variance of a new target at each row, in the squared units of the targets: that within the experts and
        that between them. For regression of the mean."""
        if self.kind != "value":
            raise _checks.wrong(self, "task", "'regression' without a quantile for a variance", self.task)
        X = self.check_rows(X)
        if not self._rows:
            return np.ones(len(X))
        scores, variances = self._ask(self._experts, self._look(X), None)
        assert variances is not None
        spread = self._weights.opinions[:, 1] / self._weights.opinions[:, 0]
        weights, means = self._weights.weights, scores[:, :, 0]
        mean = weights @ means
        within = (weights * spread * STUDENT) @ variances
        deviation = self._target_units()[1]
        return np.asarray(deviation**2 * (within + weights @ (means - mean) ** 2))

    # ---------------------------------------------------------------------------------------------------- looking

    @shared
    def experts(self) -> list[tuple[Setting, float, Learner]]:
        """The settings, the weight and the learner of every expert, the heaviest first."""
        weights = sorted(self._weights.weights.tolist(), reverse=True)
        found = zip(self._ordered_experts(), weights, strict=True)
        return [(expert.setting, weight, expert.learner) for expert, weight in found]

    def _ordered_experts(self) -> list[Expert]:
        order: Ints = np.argsort(-self._weights.weights, kind="stable")
        return [self._experts[place] for place in order.tolist()]

    def describe(self, setting: Setting) -> str:
        """A setting of an expert in words."""
        name = "Gaussian" if self._fixed is None else getattr(self._fixed, "__name__", repr(self._fixed))
        return setting.describe(name, self._is_fixed, None if self.half_life is None else self.half_life.seconds)

    @shared
    def explain(self) -> list[tuple[str, float]]:
        """Every expert in words, and its weight, the heaviest first."""
        found = [(self.describe(expert.setting), expert.shift is not None) for expert in self._ordered_experts()]
        words = [f"{words}, rows moved" if moved else words for words, moved in found]
        return list(zip(words, sorted(self._weights.weights.tolist(), reverse=True), strict=True))

    @shared
    def heaviest(self) -> tuple[Setting, Learner, dict[str, Any], tuple[float, float, float, float]]:
        """The heaviest expert: its settings and a copy of its learner; and, of the same moment, the learned attributes
        of an `OnlineScaler` for its rows and the moments of the targets."""
        best = self._ordered_experts()[0]
        own = self._new(best.setting).learner
        own.restore(best.learner.state())
        return best.setting, own, self._scaler_of(best), self._moments

    def _scaler_of(self, best: Expert) -> dict[str, Any]:
        """The learned attributes of a scaler that has seen the rows of an expert. If that one sees rows moved, the
        means have moved instead."""
        own = self._scaling.copy()
        k = 1 if best.setting.view == "rooted" else 0
        counts = {"weight_": own.count, "n_seen_": self._rows, "n_features_in_": self._width}
        if best.shift is not None:
            own.mean[k] -= best.shift * np.sqrt(own.squares[k] / own.count)
        return {"mean_": own.mean[k], "squares_": own.squares[k], **counts}

    def _best(self) -> Learner | None:
        return self.experts()[0][2] if self._experts else None

    @property
    def backend(self) -> str:
        best = self._best()
        return "not chosen yet" if best is None else f"mixture of {best.backend}"

    @property
    def points(self) -> Any:
        """The support points of the heaviest expert, as it sees rows: scaled."""
        best = self._best()
        return np.zeros((0, 0)) if best is None else best.points

    @property
    def coefs(self) -> Floats:
        """The coefficients of the heaviest expert."""
        best = self._best()
        nothing = np.zeros((self._known, 0)) if self.many else np.zeros(0)
        return nothing if best is None else best.coefs

    @property
    def births(self) -> Array:
        """The rounds, of its own, in which the points of the heaviest expert came."""
        best = self._best()
        return np.zeros(0, dtype=np.int64) if best is None else best.births

    @property
    def offset(self) -> float:
        return 0.0

    @property
    def level(self) -> float:
        return self.loss.level

    @property
    def steps(self) -> int:
        return self._rows

    @property
    def known(self) -> int:
        return self._known

    @property
    def updates(self) -> int:
        """The steps of the heaviest expert."""
        best = self._best()
        return 0 if best is None else best.updates

    @property
    def mistakes(self) -> int:
        """The mistakes of the heaviest expert."""
        best = self._best()
        return 0 if best is None else best.mistakes

    @property
    def norm(self) -> float:
        """The RKHS norm of the heaviest expert."""
        best = self._best()
        return 0.0 if best is None else best.norm

    @property
    def discarded(self) -> float:
        best = self._best()
        return 0.0 if best is None else best.discarded

    # ------------------------------------------------------------------------------------------------------ state

    def state(self) -> Any:
        """A snapshot of everything learned; None before the first row."""
        return run_shared(self, self._snapshot)

    def _snapshot(self) -> MixedState | None:
        if not self._rows:
            return None
        mixed, scaling = self._weights, self._scaling.copy()
        return MixedState(
            self._rows, self._known, self._births, self._units, scaling.mean, scaling.squares, scaling.count,
            self._moments, self._memory_rows.copy(), self._memory_targets.copy(), self._memory_weights.copy(),
            [expert.setting for expert in self._experts], [expert.trial for expert in self._experts],
            [expert.asleep for expert in self._experts], [expert.guess for expert in self._experts], self._shifts(),
            [learner.state() for learner in self._learners()], self.kind, mixed.opinions.copy(),
            self._sleeping_opinions(), mixed.weights.copy(), mixed.credits.copy(), mixed.stack.copy(), self._time,
            None if self.half_life is None else self._memory_times.copy(),
        )  # fmt: skip

    def _learners(self) -> list[Learner]:
        """The learners of the experts; of guesses, which share one, the first has it, and the others empty ones."""
        found: list[Learner] = []
        for expert in self._experts:
            again = expert.guess and any(expert.learner is learner for learner in found)
            found.append(self._new(expert.setting).learner if again else expert.learner)
        return found

    def _shifts(self) -> Floats:
        shifted = any(expert.shift is not None for expert in self._experts)
        nothing = np.zeros(self._width if shifted and self._width is not None else 0)
        return np.array([nothing if expert.shift is None else expert.shift for expert in self._experts])

    def _sleeping_opinions(self) -> Floats:
        """The opinions with which sleepers fell asleep, of the others those of now."""
        now = zip(self._experts, self._weights.opinions, strict=True)
        return np.array([own if expert.opinion is None else expert.opinion for expert, own in now])

    def _restore(self, state: Any) -> None:
        if state is None:
            self._forget()
            return
        timed = isinstance(state, MixedState) and (state.time is None) == (self.half_life is None)
        if not timed or state.kind != self.kind:
            raise _checks.wrong(self, "state", f"that of a mixture of the kind {self.kind!r}", state)
        state = state.copy()
        units, self._units = self._units, state.units
        self._fit_rows(state.memory_rows.shape[1], state.memory_rows.dtype)
        try:
            made = [self._new(setting) for setting in state.settings]
            for expert, own in zip(made, state.experts, strict=True):
                expert.learner.restore(own)
        except BaseException:
            self._units = units
            raise
        self._take(state, made)

    def _take(self, state: MixedState, experts: list[Expert]) -> None:
        self._rows, self._known, self._births, self._units = state.rows, state.known, state.births, state.units
        self._scaling = Scaling(state.mean, state.squares, state.count)
        self._moments, self._memory_rows = state.moments, state.memory_rows
        self._memory_targets, self._memory_weights = state.memory_targets, state.memory_weights
        self._time, self._memory_times = state.time, np.zeros(0) if state.memory_times is None else state.memory_times
        self._experts, self._weights = experts, self._new_weights(len(experts))
        for place, (expert, asleep) in enumerate(zip(experts, state.asleep, strict=True)):
            expert.trial, expert.asleep, expert.guess = state.trials[place], asleep, state.guesses[place]
            expert.opinion = state.sleeping[place].copy() if asleep else None
            expert.shift = state.shifts[place].copy() if state.shifts[place].any() else None
        guesses = [expert for expert in experts if expert.guess]
        for expert in guesses:
            expert.learner = guesses[0].learner
        self._weights.opinions, self._weights.weights = state.opinions, state.weights
        self._weights.credits, self._weights.stack = state.credits, state.stack
        self._fit_rows(state.memory_rows.shape[1], state.memory_rows.dtype)

    def retire(self) -> None:
        """Nothing: there is no fast path for single rows."""

    def _parameters(self) -> dict[str, Any]:
        names = ("task", "scale", "share", "quantile", "awake", "memory", "time", "classes", "many", "n_jobs")
        half_life = {} if self.half_life is None else {"half_life": to_plain(self.half_life)}
        given = {name: getattr(self, name) for name in names}
        return {**given, "budget": self.size, "kernel": self.family, **half_life}

    def _learned(self) -> dict[str, Any]:
        state = self._snapshot()
        return {} if state is None else state.to_stored(self._learners())

    def _relearn(self, learned: dict[str, Any]) -> None:
        if not learned:
            return
        if isinstance(learned.get("memory_rows"), dict):
            learned["memory_rows"] = sparse_from_stored("state.memory_rows", learned["memory_rows"])
        if isinstance(learned.get("memory_rows"), TABLES) and learned["memory_rows"].ndim == 2:
            self._fit_rows(learned["memory_rows"].shape[1], learned["memory_rows"].dtype)
        check_stored(self, learned)
        learners = learned.pop("learners")
        settings = [Setting(*entries) for entries in learned.pop("settings")]
        experts = [Expert(*made) for made in zip(settings, learners, strict=True)]
        self._take(MixedState(**learned, settings=settings, experts=[], kind=self.kind), experts)

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_made", "_waiting", "_longest", "learn_fast", "score_fast", "_blank")
        return run_shared(self, lambda: {k: v for k, v in self.__dict__.items() if k not in hidden})

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands out arrays that cannot be written
        self.__dict__.update({k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})
        self._blank = {}
        self._use(None)

    def __repr__(self) -> str:
        return f"MixedLearner({self.task!r}, budget={self.size})"


#: The variance of Student's t with the degrees of freedom of an opinion.
STUDENT = FREEDOM / (FREEDOM - 2.0)
