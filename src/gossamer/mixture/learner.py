"""The learner that tunes itself: second-order experts over a range of settings, mixed with a bound on what that costs.

The file is long because the class has the whole face of a `Learner`.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._locks import shared
from gossamer._typing import Array, Floats
from gossamer.budgets import Project
from gossamer.kernels import Gaussian, Kernel, Laplace, as_kernel
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss, OneVsRest, Pinball, Softmax, Squared, SquaredHinge
from gossamer.mixture import roster
from gossamer.mixture.roster import EVERY, START, Expert
from gossamer.mixture.settings import Setting, all_settings, first_settings, median_distance, neighbours, young_settings
from gossamer.mixture.weights import SHARE, Weights
from gossamer.rules import Newton

#: Scaled features are clipped to this many deviations: one that rested for long jumps far when it moves.
CLIP = 10.0
#: The largest feature whose squares can be summed.
LARGEST = 1e100


class MixedLearner(Learner):
    def __init__(
        self, task: str = "classification", *, budget: int = 256, kernel: Any = None, scale: bool = True,
        share: float = SHARE, quantile: float | None = None, awake: int = 6, classes: int | None = None,
        many: bool = False, n_jobs: int = 1,
    ) -> None:  # fmt: skip
        self.task, self.size, self.family, self.scale = task, budget, kernel, scale
        self.share, self.quantile, self.awake, self.classes, self.many = share, quantile, awake, classes, many
        self.n_jobs = n_jobs
        self.kernel: Kernel = Gaussian(1.0)
        self.rule, self.budget = Newton(), Project(budget)
        self.average, self.track_norm, self._wish = None, False, "auto"
        if task == "classification":
            self.kind = "class" if many else "sign"
            self.loss: Loss = Softmax(classes=classes) if many else Logistic()
            self._expert_loss: Loss = OneVsRest(classes=classes) if many else SquaredHinge()
        else:
            self.kind = "value" if quantile is None else "quantile"
            self.loss = Squared() if quantile is None else Pinball(quantile)
            self._expert_loss = self.loss
        self._fixed = None
        if kernel is not None:
            found = as_kernel(kernel)
            self._fixed = type(found) if type(found) in (Gaussian, Laplace) and isinstance(kernel, str) else found
        self._own_rates = False
        self._forget()

    def _forget(self) -> None:
        self._width: int | None = None
        self._use(None)
        self._dtype: Any = None
        self._rows, self._known = 0, self.classes or 0
        self._experts: list[Expert] = []
        self._weights = Weights(self.kind, 0, self.share, self.quantile or 0.5)
        self._units = (1.0, 1.0)
        self._births = 0

    # -------------------------------------------------------------------------------------------------- learning

    def _needs_lock(self) -> bool:
        return True

    def check_rows(self, X: Any) -> Any:
        X = _checks.matrix(self, X, self._width, finite=False)
        if not len(X):
            raise _checks.wrong(self, "X", "at least one row", X.shape)
        if self._dtype is not None and X.dtype != self._dtype:
            with np.errstate(over="ignore"):
                X = X.astype(self._dtype)
        if not _core.all_finite(X):
            raise _checks.not_finite(self, X)
        largest = float(np.abs(X).max(initial=0.0))
        if largest > (LARGEST if X.dtype == np.float64 else 1e18):
            raise _checks.wrong(self, "X", f"at most {LARGEST:g} in size", largest)
        return X

    def settle(self, X: Any) -> None:
        """Nothing: distances are found on the way."""

    def _learn(self, X: Any, y: Any, sample_weight: Any, ids: Any, with_levels: bool) -> Any:
        X = self.check_rows(X)
        targets = self._targets(y, len(X))
        assert targets is not None
        weights = _checks.weights(self, sample_weight, len(X))
        outputs = max(int(targets.max()) + 1, self._known) if self.many else 1
        out = np.full((len(X), outputs), -np.inf)
        for part in self._parts(len(X)):
            found = self._learn_part(X[part], targets[part], None if weights is None else weights[part])
            out[part, : found.shape[1]] = found
        scores = self._flat(out)
        return (scores, np.zeros(len(X))) if with_levels else scores

    def _parts(self, rows: int) -> Iterator[slice]:
        """Slices of the rows of a call, cut where the roster may change."""
        start = 0
        while start < rows:
            stop = min(rows, start + EVERY - (self._rows % EVERY))
            yield slice(start, stop)
            start = stop

    def _learn_part(self, X: Array, y: Floats, weights: Floats | None) -> Floats:
        if not self._rows:
            self._open(X)
        Z = self._scaled(X, learn=True)
        target, means, deviations = self._scaled_targets(y, weights)
        scores, variances = self._ask(Z, X, target, weights)
        out = self._weights.learn(scores, variances, target, weights)
        if self.task == "regression":
            out = out * deviations[:, None] + means[:, None]
        self._remember(X, y, weights)
        self._rows += len(X)
        if self.many:
            self._known = max(self._known, int(y.max()) + 1)
        if self._rows == START:
            self._start_all()
        elif self._rows % EVERY == 0 and self._rows > START:
            self._change_roster()
        return out

    def _open(self, X: Array) -> None:
        """Prepare for rows of this kind: the first experts, with distances as they are in scaled rows."""
        width = X.shape[1]
        self._width, self._dtype = width, X.dtype
        self._mean, self._squares, self._count = np.zeros(width), np.zeros(width), 0.0
        self._moments = (0.0, 0.0, 0.0, 0.0)
        self._memory_X = X[:0].copy()
        self._memory_y, self._memory_weights = np.zeros(0), np.zeros(0)
        norm = float(np.dot(X[0].astype(np.float64), X[0].astype(np.float64)))
        self._units = (2.0 * width if self.scale else norm or 1.0, norm or 1.0)
        self._experts = [self._new(setting) for setting in first_settings(self.task)]
        self._weights = Weights(self.kind, len(self._experts), self.share, self.quantile or 0.5)

    def _new(self, setting: Setting, trial: int = 0) -> Expert:
        unit = self._units[1 if setting.plain else 0]
        return Expert(setting, setting.learner(unit, self._expert_loss, self.budget, self._fixed), trial)

    def _scaled(self, X: Array, learn: bool) -> Array:
        """The rows as experts see them; ``learn``: each with the statistics up to and with itself."""
        if not self.scale:
            return X
        if learn:
            out = np.empty_like(X)
            self._count = _core.scale_rows(X, out, self._mean, self._squares, self._count, 1.0, True, True)
        else:
            deviation = np.sqrt(self._squares / self._count)
            scaled = (X.astype(np.float64) - self._mean) / np.where(deviation > 0.0, deviation, np.inf)
            out = scaled.astype(X.dtype)
        return np.clip(out, -CLIP, CLIP, out=out)

    def _scaled_targets(self, y: Floats, weights: Floats | None) -> tuple[Floats, Floats, Floats]:
        if self.task != "regression":
            return np.ascontiguousarray(y), y, y
        z, means, deviations = np.empty((3, len(y)))
        self._moments = _core.follow_targets(self._moments, np.ascontiguousarray(y), weights, z, means, deviations)
        return z, means, deviations

    def _target_units(self) -> tuple[float, float]:
        total, first, sums, squares = self._moments
        return first + sums / total, float(np.sqrt(squares / total))

    def _ask(self, Z: Array, X: Array, y: Floats, weights: Floats | None) -> tuple[Floats, Floats | None]:
        """The scores of all experts before each row, which they learn; and their variances."""
        return self._collect([expert for expert in self._experts], Z, X, y, weights)

    def _collect(
        self, experts: list[Expert], Z: Array, X: Array, y: Floats, weights: Floats | None
    ) -> tuple[Floats, Floats | None]:
        outputs = max(int(y.max()) + 1, self._known) if self.many else 1
        scores = np.full((len(experts), len(Z), outputs), -np.inf)
        variances = np.empty((len(experts), len(Z))) if self.kind == "value" else None

        def learn(place: int) -> None:
            expert = experts[place]
            rows = X if expert.setting.plain else Z
            if variances is not None:
                found, variance = expert.learner.learn_with_variance(rows, y, weights)
                variances[place] = variance + expert.setting.noise
            else:
                found = expert.learner.learn(rows, y, weights)
            if self.many:
                scores[place, :, : found.shape[1]] = found
            else:
                scores[place, :, 0] = found

        if self.n_jobs == 1 or len(experts) == 1:
            for place in range(len(experts)):
                learn(place)
        else:
            with ThreadPoolExecutor(self.n_jobs) as pool:
                list(pool.map(learn, range(len(experts))))
        return scores, variances

    def _remember(self, X: Array, y: Floats, weights: Floats | None) -> None:
        own = np.ones(len(y)) if weights is None else weights
        most = roster.MEMORY
        self._memory_X = np.concatenate([self._memory_X, X])[-most:]
        self._memory_y = np.concatenate([self._memory_y, y])[-most:]
        self._memory_weights = np.concatenate([self._memory_weights, own])[-most:]

    # ---------------------------------------------------------------------------------------------------- roster

    def _recall(self) -> tuple[Array, Array, Floats, Floats]:
        """The remembered rows, scaled and as they came, targets and weights, all in the present units."""
        y = self._memory_y
        if self.task == "regression":
            mean, deviation = self._target_units()
            y = (y - mean) / deviation if deviation > 0 else 0.0 * y
        return self._scaled(self._memory_X, learn=False), self._memory_X, y, self._memory_weights

    def _start_all(self) -> None:
        """All settings start: distances are known now, and the rows so far are learned anew."""
        Z, X, y, weights = self._recall()
        plain = median_distance(X)
        self._units = (median_distance(Z) if self.scale else plain, plain)
        found = all_settings(self.task, X.shape[1], self.scale, isinstance(self._fixed, Kernel))
        self._experts = [self._new(setting) for setting in found]
        self._weights = Weights(self.kind, len(found), self.share, self.quantile or 0.5)
        scores, variances = self._ask(Z, X, y, weights)
        self._weights.learn(scores, variances, y, weights)

    def _change_roster(self) -> None:
        """Retire experts and start others, by the count of rows."""
        row, mixed = self._rows, self._weights
        kept = roster.survivors(self._experts, mixed.weights, mixed.credits, row, self.awake)
        if len(kept) < len(self._experts):
            self._experts = [self._experts[place] for place in kept]
            mixed.keep(kept)
        for expert in self._experts:
            if expert.trial <= row:
                expert.trial = 0
        if row < roster.LIMITS[1][0]:
            return
        best = self._experts[int(np.argmax(mixed.weights))]
        opinion = mixed.opinions[int(np.argmax(mixed.weights))].copy()
        if row % roster.EXPLORE == 0 and row >= roster.LIMITS[-2][0]:
            self._explore(best, opinion)
        for setting in young_settings(best.setting, self.task, row):
            self._experts.append(self._new(setting, roster.young_trial(row) if setting.width == best.setting.width else row + roster.YOUTH))
            mixed.add(roster.ENTRY, opinion)

    def _explore(self, best: Expert, opinion: Floats) -> None:
        """Start neighbours of the best that are not awake, in turn."""
        awake = {expert.setting for expert in self._experts if not expert.trial}
        found = neighbours(best.setting, self.task, isinstance(self._fixed, Kernel))
        found = [setting for setting in found if setting not in awake]
        for _ in range(min(roster.EXPLORERS, len(found))):
            setting = found.pop(self._births % len(found))
            self._births += 1
            expert = self._new(setting, self._rows + roster.TRIAL)
            if (setting.width, setting.plain) == (best.setting.width, best.setting.plain):
                expert.learner.restore(best.learner.state())
            else:
                Z, X, y, weights = self._recall()
                self._collect([expert], Z, X, y, weights)
            self._experts.append(expert)
            self._weights.add(roster.ENTRY, opinion)

    # --------------------------------------------------------------------------------------------------- scoring

    @shared
    def score_levels(self, X: Any, average: bool = False) -> tuple[Floats, Floats]:
        X = self.check_rows(X)
        levels = np.zeros(len(X))
        if not self._rows:
            return self._flat(np.zeros((len(X), max(self._known, 1)))), levels
        scores, variances = self._scores(X)
        out = self._weights.predict(scores, variances)
        if self.task == "regression":
            mean, deviation = self._target_units()
            out = out * deviation + mean
        return self._flat(out), levels

    def _scores(self, X: Array) -> tuple[Floats, Floats | None]:
        Z = self._scaled(X, learn=False)
        outputs = self._known if self.many else 1
        scores = np.full((len(self._experts), len(X), outputs), -np.inf)
        variances = np.empty((len(self._experts), len(X))) if self.kind == "value" else None
        for place, expert in enumerate(self._experts):
            rows = X if expert.setting.plain else Z
            found = expert.learner.score(rows)
            scores[place, :, : found.shape[1] if self.many else 1] = found if self.many else found[:, None]
            if variances is not None:
                variances[place] = expert.learner.variance(rows) + expert.setting.noise
        return scores, variances

    @property
    def steps(self) -> int:
        return self._rows

    @property
    def known(self) -> int:
        return self._known
