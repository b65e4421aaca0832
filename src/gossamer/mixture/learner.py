"""The learner that tunes itself: second-order experts over a range of settings, mixed with a bound on what that costs.

The file is long because the class has the whole face of a `Learner`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._engine.native import Batch
from gossamer._locks import as_worker, run_shared, shared
from gossamer._typing import Array, Floats, Ints
from gossamer.budgets import Project
from gossamer.kernels import Gaussian, Kernel, as_kernel
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss, OneVsRest, Pinball, Softmax, Squared, SquaredHinge
from gossamer.mixture import roster
from gossamer.mixture.costs import check_limits, fit_limits
from gossamer.mixture.opinions import FREEDOM
from gossamer.mixture.roster import EVERY, START, Expert
from gossamer.mixture.settings import (
    Setting,
    all_settings,
    first_settings,
    median_distance,
    neighbours,
    young_settings,
)
from gossamer.mixture.state import MixedState, check_stored
from gossamer.mixture.weights import SHARE, Weights
from gossamer.rules import Newton

#: Scaled features are clipped to this many deviations: a feature that rested for long jumps far when it moves.
CLIP = 10.0
#: The largest feature whose squares can be summed, in float64 and float32.
LARGEST = {"d": 1e100, "f": 1e15}


class MixedLearner(Learner):
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
        rows of numbers and categories often have steps; a Kernel to fix it.
    scale : whether features are scaled online to mean 0 and deviation 1.
    share : of the weight that all experts share after each row.
    quantile : the level, for regression of a quantile.
    awake : how many experts stay awake once the stream is known; young ones and those on trial come on top.
    memory, time : limits in bytes and in microseconds a row; fewer experts stay awake, with fewer points.
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
    (0.21, 0.02)
    >>> learner.experts()[0][0].width
    3.0
    """

    def __init__(
        self, task: str = "classification", *, budget: int = 256, kernel: Any = None, scale: bool = True,
        share: float = SHARE, quantile: float | None = None, awake: int = 6, memory: float | None = None,
        time: float | None = None, classes: int | None = None, many: bool = False, n_jobs: int = 1,
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
        self.classes, self.many = classes, _checks.one_of(self, "many", many, [False, True])
        self.kernel: Kernel = Gaussian(1.0)
        self.rule = Newton()
        self.average, self.track_norm, self._wish, self._own_rates = None, False, "auto", False
        self.expert_loss: Loss
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
        self._awake = self.awake
        self._use(None)
        self._rows, self._births, self._known = 0, 0, self.classes or 0
        self._units = (1.0, 1.0)
        self._experts: list[Expert] = []
        self._weights = self._new_weights(0)
        self._mean, self._squares, self._count = np.zeros(0), np.zeros(0), 0.0
        self._moments = (0.0, 0.0, 0.0, 0.0)
        self._memory_rows: Array = np.zeros((0, 0))
        self._memory_targets, self._memory_weights = np.zeros(0), np.zeros(0)

    def _new_weights(self, experts: int) -> Weights:
        return Weights(self.kind, experts, self.share, 0.5 if self.quantile is None else self.quantile)

    # -------------------------------------------------------------------------------------------------- learning

    def _needs_lock(self) -> bool:
        return True

    def check_rows(self, X: Any) -> Any:
        """X as it is learned and scored; nothing bad gets past here."""
        X = _checks.matrix(self, X, self._width, finite=False)
        if not len(X):
            raise _checks.wrong(self, "X", "at least one row", X.shape)
        if self._dtype is not None and X.dtype != self._dtype:
            with np.errstate(over="ignore"):
                X = X.astype(self._dtype)
        if not _core.all_finite(X):
            raise _checks.not_finite(self, X)
        largest, limit = float(np.abs(X).max()), LARGEST[X.dtype.char]
        if largest > limit:
            raise _checks.wrong(self, "X", f"at most {limit:g} in size", largest)
        return X

    def settle(self, X: Any) -> None:
        """Nothing: what depends on the data is found by the count of rows."""

    def _learn(self, X: Any, y: Any, sample_weight: Any, ids: Any, with_variances: bool) -> Batch:
        X = self.check_rows(X)
        targets = self._targets(y, len(X))
        assert targets is not None
        weights = _checks.weights(self, sample_weight, len(X))
        self._ids(ids, len(X))
        largest = float(np.abs(targets).max())
        if self.task == "regression" and largest > LARGEST["d"]:
            raise _checks.wrong(self, "y", "small enough for its variance to be finite", largest)
        outputs = max(int(targets.max()) + 1, self._known) if self.many else 1
        out = np.full((len(X), outputs), -np.inf)
        before = self._snapshot() if self._may_fail(X) else None
        try:
            for part in self._parts(len(X)):
                found = self._learn_part(X[part], targets[part], None if weights is None else weights[part])
                out[part, : found.shape[1]] = found
        except BaseException:
            if self._may_fail(X):
                self._restore(before)
            raise
        return Batch(targets, weights, None, None, out, np.full(len(X), self.loss.level))

    def _may_fail(self, X: Array) -> bool:
        """Whether a kernel in Python could raise in the middle of a batch."""
        return isinstance(self._fixed, Kernel) and self._fixed.program(X.shape[1]) is None

    def _parts(self, rows: int) -> Iterator[slice]:
        """Slices of the rows of a call, cut where the roster may change."""
        start = 0
        while start < rows:
            stop = min(rows, start + EVERY - self._rows % EVERY)
            yield slice(start, stop)
            start = stop

    def _learn_part(self, X: Array, y: Floats, weights: Floats | None) -> Floats:
        if not self._rows:
            self._open(X)
        Z = self._scaled(X, learn=True)
        targets, means, deviations = self._scaled_targets(y, weights)
        scores, variances = self._ask(self._experts, Z, X, targets, weights)
        out = self._weights.learn(scores, variances, targets, weights)
        if self.task == "regression":
            out = out * deviations[:, None] + means[:, None]
        self._remember(X, y, weights)
        self._rows += len(X)
        if self.many:
            self._known = max(self._known, int(y.max()) + 1)
        if self._rows == START:
            self._start_all()
        elif self._rows > START and self._rows % EVERY == 0:
            self._change_roster()
        return out

    def _open(self, X: Array) -> None:
        """The first experts, with the distances that scaled rows usually have."""
        width = X.shape[1]
        self._fit_rows(width, X.dtype)
        self._mean, self._squares = np.zeros(width), np.zeros(width)
        self._memory_rows = X[:0].copy()
        norm = float(np.dot(X[0].astype(np.float64), X[0].astype(np.float64))) or 1.0
        self._units = (2.0 * width if self.scale else norm, norm)
        self._experts = [self._new(setting) for setting in first_settings(self.task)]
        self._weights = self._new_weights(len(self._experts))

    def _fit_rows(self, width: int, dtype: Any) -> None:
        self._width, self._dtype = width, dtype
        size, self._awake = fit_limits(self.size, self.awake, width, self.memory, self.time)
        self.budget = Project(size)

    def _new(self, setting: Setting, trial: int = 0) -> Expert:
        unit = self._units[1 if setting.plain else 0]
        return Expert(setting, setting.learner(unit, self.expert_loss, self.budget, self._fixed), trial)

    def _scaled(self, X: Array, learn: bool) -> Array:
        """The rows as experts see them; ``learn``: each with the statistics up to and with itself."""
        if not self.scale:
            return X
        if learn:
            out = np.empty_like(X)
            self._count = _core.scale_rows(X, out, self._mean, self._squares, self._count, 1.0, True, True)
        else:
            deviation = np.sqrt(self._squares / self._count)
            out = ((X.astype(np.float64) - self._mean) / np.where(deviation > 0.0, deviation, np.inf)).astype(X.dtype)
        return np.clip(out, -CLIP, CLIP, out=out)

    def _scaled_targets(self, y: Floats, weights: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Targets in units of their own, and the mean and the deviation known before each."""
        if self.task != "regression":
            return y, y, y
        out = np.empty((3, len(y)))
        self._moments = _core.follow_targets(self._moments, y, weights, out)
        return out[0], out[1], out[2]

    def _target_units(self) -> tuple[float, float]:
        total, first, sums, squares = self._moments
        return (first + sums / total, math.sqrt(squares / total)) if total > 0 else (0.0, 0.0)

    def _ask(
        self, experts: list[Expert], Z: Array, X: Array, y: Floats, weights: Floats | None
    ) -> tuple[Floats, Floats | None]:
        """The scores of experts before each row, which they learn: (experts, rows, outputs); and their variances."""
        outputs = max(int(y.max()) + 1, self._known) if self.many else 1
        scores = np.full((len(experts), len(Z), outputs), -np.inf)
        variances = np.empty((len(experts), len(Z))) if self.kind == "value" else None

        def learn(place: int) -> None:
            expert = experts[place]
            rows = X if expert.setting.plain else Z
            if variances is None:
                found: Any = expert.learner.learn(rows, y, weights)
            else:
                found, variance = expert.learner.learn_with_variance(rows, y, weights)
                variances[place] = variance + expert.setting.noise
            scores[place, :, : found.shape[1] if self.many else 1] = found if self.many else found[:, None]

        _run(learn, len(experts), self.n_jobs)
        return scores, variances

    def _remember(self, X: Array, y: Floats, weights: Floats | None) -> None:
        own = np.ones(len(y)) if weights is None else weights
        most = roster.MEMORY
        self._memory_rows = np.concatenate([self._memory_rows, X])[-most:]
        self._memory_targets = np.concatenate([self._memory_targets, y])[-most:]
        self._memory_weights = np.concatenate([self._memory_weights, own])[-most:]

    # ---------------------------------------------------------------------------------------------------- roster

    def _recall(self) -> tuple[Array, Array, Floats, Floats]:
        """The rows remembered, scaled and as they came, their targets and weights, all in the present units."""
        y = self._memory_targets
        if self.task == "regression":
            mean, deviation = self._target_units()
            y = (y - mean) / deviation if deviation > 0 else np.zeros(len(y))
        return self._scaled(self._memory_rows, learn=False), self._memory_rows, y, self._memory_weights

    def _start_all(self) -> None:
        """All settings start: the distances between rows are known now, and the rows so far are learned anew."""
        Z, X, y, weights = self._recall()
        plain = median_distance(X)
        self._units = (median_distance(Z) if self.scale else plain, plain)
        found = all_settings(self.task, X.shape[1], self.scale, self._is_fixed, self._mixed)
        self._experts = [self._new(setting) for setting in found]
        self._weights = self._new_weights(len(found))
        scores, variances = self._ask(self._experts, Z, X, y, weights)
        self._weights.learn(scores, variances, y, weights)

    @property
    def _is_fixed(self) -> bool:
        return isinstance(self._fixed, Kernel)

    def _change_roster(self) -> None:
        """Retire experts and start others."""
        row, mixed = self._rows, self._weights
        kept = roster.survivors(self._experts, mixed.weights, mixed.credits, row, self._awake)
        if len(kept) < len(self._experts):
            self._experts = [self._experts[place] for place in kept]
            mixed.keep(kept)
        for expert in self._experts:
            if expert.trial <= row:
                expert.trial = 0
        if row < roster.FIRST_YOUNG:
            return
        place = int(np.argmax(mixed.weights))
        best, opinion = self._experts[place], mixed.opinions[place].copy()
        if row % roster.EXPLORE == 0 and row >= roster.FIRST_EXPLORERS:
            self._explore(best, opinion)
        simple = row % (2 * EVERY) == 0 and not self._is_fixed
        for setting in young_settings(best.setting, self.task, simple, row // (2 * EVERY)):
            trial = roster.young_trial(row, setting.width == best.setting.width)
            self._experts.append(self._new(setting, trial))
            mixed.add(roster.ENTRY, opinion)

    def _explore(self, best: Expert, opinion: Floats) -> None:
        """Start neighbours of the best that are not awake, in turn."""
        awake = {expert.setting for expert in self._experts if not expert.trial}
        found = [s for s in neighbours(best.setting, self.task, self._is_fixed) if s not in awake]
        for _ in range(min(roster.EXPLORERS, len(found))):
            setting = found.pop(self._births % len(found))
            self._births += 1
            expert = self._new(setting, self._rows + roster.TRIAL)
            if expert.learner.kernel == best.learner.kernel:
                expert.learner.restore(best.learner.state())
            else:
                Z, X, y, weights = self._recall()
                self._ask([expert], Z, X, y, weights)
            self._experts.append(expert)
            self._weights.add(roster.ENTRY, opinion)

    # --------------------------------------------------------------------------------------------------- scoring

    @shared
    def score_levels(self, X: Any, average: bool = False) -> tuple[Floats, Floats]:
        """The score of the mixture for every row, and the level of the loss."""
        X = self.check_rows(X)
        levels = np.full(len(X), self.loss.level)
        if not self._rows:
            return self._flat(np.zeros((len(X), max(self._known, 1)))), levels
        scores, variances = self._look(X)
        out = self._weights.predict(scores, variances)
        if self.task == "regression":
            mean, deviation = self._target_units()
            out = out * deviation + mean
        return self._flat(out), levels

    def _look(self, X: Array) -> tuple[Floats, Floats | None]:
        """The scores of all experts, (experts, rows, outputs), and their variances."""
        Z = self._scaled(X, learn=False)
        scores = np.full((len(self._experts), len(X), self._known if self.many else 1), -np.inf)
        variances = np.empty((len(self._experts), len(X))) if self.kind == "value" else None

        def look(place: int) -> None:
            expert = self._experts[place]
            rows = X if expert.setting.plain else Z
            found = expert.learner.score(rows)
            if self.many:
                if expert.learner.steps:
                    scores[place, :, : found.shape[1]] = found
            else:
                scores[place, :, 0] = found
            if variances is not None:
                variances[place] = expert.learner.variance(rows) + expert.setting.noise

        _run(look, len(self._experts), self.n_jobs)
        return scores, variances

    @shared
    def variance(self, X: Any) -> Floats:
        """The variance of a new target at each row, in the squared units of the targets: that within the experts and
        that between them. For regression of the mean."""
        if self.kind != "value":
            raise _checks.wrong(self, "task", "'regression' without a quantile for a variance", self.task)
        X = self.check_rows(X)
        if not self._rows:
            return np.ones(len(X))
        scores, variances = self._look(X)
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
        order: Ints = np.argsort(-self._weights.weights, kind="stable")
        found = [(self._experts[i], float(self._weights.weights[i])) for i in order.tolist()]
        return [(expert.setting, weight, expert.learner) for expert, weight in found]

    def describe(self, setting: Setting) -> str:
        """A setting of an expert in words."""
        name = "Gaussian" if self._fixed is None else getattr(self._fixed, "__name__", repr(self._fixed))
        return setting.describe(name, self._is_fixed)

    def scaler_state(self) -> dict[str, Any]:
        """The learned attributes of an `OnlineScaler` that has seen the same rows."""
        counts = {"weight_": self._count, "n_seen_": self._rows, "n_features_in_": self._width}
        return {"mean_": self._mean.copy(), "squares_": self._squares.copy(), **counts}

    @property
    def moments(self) -> tuple[float, float, float, float]:
        """The moments of the targets."""
        return self._moments

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
        mixed = self._weights
        return MixedState(
            self._rows, self._known, self._births, self._units, self._mean.copy(), self._squares.copy(), self._count,
            self._moments, self._memory_rows.copy(), self._memory_targets.copy(), self._memory_weights.copy(),
            [expert.setting for expert in self._experts], [expert.trial for expert in self._experts],
            [expert.learner.state() for expert in self._experts], self.kind, mixed.opinions.copy(),
            mixed.weights.copy(), mixed.credits.copy(),
        )  # fmt: skip

    def _restore(self, state: Any) -> None:
        if state is None:
            self._forget()
            return
        if not isinstance(state, MixedState) or state.kind != self.kind:
            raise _checks.wrong(self, "state", f"that of a mixture of the kind {self.kind!r}", state)
        state = state.copy()
        units, self._units = self._units, state.units
        self._fit_rows(state.memory_rows.shape[1], state.memory_rows.dtype)
        try:
            made = [self._new(setting, trial) for setting, trial in zip(state.settings, state.trials, strict=True)]
            for expert, own in zip(made, state.experts, strict=True):
                expert.learner.restore(own)
        except BaseException:
            self._units = units
            raise
        self._take(state, made)

    def _take(self, state: MixedState, experts: list[Expert]) -> None:
        self._rows, self._known, self._births, self._units = state.rows, state.known, state.births, state.units
        self._mean, self._squares, self._count = state.mean, state.squares, state.count
        self._moments, self._memory_rows = state.moments, state.memory_rows
        self._memory_targets, self._memory_weights = state.memory_targets, state.memory_weights
        self._experts, self._weights = experts, self._new_weights(len(experts))
        self._weights.opinions, self._weights.weights = state.opinions, state.weights
        self._weights.credits = state.credits
        self._fit_rows(state.memory_rows.shape[1], state.memory_rows.dtype)

    def retire(self) -> None:
        """Nothing: there is no fast path for single rows."""

    def _parameters(self) -> dict[str, Any]:
        names = ("task", "scale", "share", "quantile", "awake", "memory", "time", "classes", "many", "n_jobs")
        return {**{name: getattr(self, name) for name in names}, "budget": self.size, "kernel": self.family}

    def _learned(self) -> dict[str, Any]:
        state = self._snapshot()
        return {} if state is None else state.to_stored([expert.learner for expert in self._experts])

    def _relearn(self, learned: dict[str, Any]) -> None:
        if not learned:
            return
        if isinstance(learned.get("memory_rows"), np.ndarray) and learned["memory_rows"].ndim == 2:
            self._fit_rows(learned["memory_rows"].shape[1], learned["memory_rows"].dtype)
        check_stored(self, learned)
        learners = learned.pop("learners")
        settings = [Setting(*entries) for entries in learned.pop("settings")]
        experts = [Expert(*made) for made in zip(settings, learners, learned["trials"], strict=True)]
        self._take(MixedState(**learned, settings=settings, experts=[], kind=self.kind), experts)

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_made", "_waiting", "_longest", "learn_fast", "score_fast")
        return run_shared(self, lambda: {k: v for k, v in self.__dict__.items() if k not in hidden})

    def __setstate__(self, state: dict[str, Any]) -> None:
        # joblib hands out arrays that cannot be written
        self.__dict__.update({k: np.array(v) if isinstance(v, np.ndarray) else v for k, v in state.items()})
        self._use(None)

    def __repr__(self) -> str:
        return f"MixedLearner({self.task!r}, budget={self.size})"


#: The variance of Student's t with the degrees of freedom of an opinion.
STUDENT = FREEDOM / (FREEDOM - 2.0)


def _run(work: Any, count: int, jobs: int) -> None:
    """Call ``work(place)`` for each place, in threads if that is wanted: the core releases the GIL."""
    if jobs == 1 or count == 1:
        for place in range(count):
            work(place)
        return
    with ThreadPoolExecutor(min(jobs, count)) as pool:
        list(pool.map(as_worker(threading.get_ident(), work), range(count)))
