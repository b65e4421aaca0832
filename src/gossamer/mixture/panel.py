"""The experts of a mixture: how they are asked, and how some start while others are retired.

`gossamer.mixture.roster` has the rules and the numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gossamer import _core
from gossamer._locks import spread
from gossamer._sparse import SparseRows, squared_norms, stack
from gossamer._typing import Array, Floats
from gossamer.budgets import Project
from gossamer.clock import HalfLife, elapse
from gossamer.kernels import Kernel
from gossamer.learner import Learner
from gossamer.losses import Loss
from gossamer.mixture import roster
from gossamer.mixture.costs import fit_limits
from gossamer.mixture.room import Room, count_points
from gossamer.mixture.roster import EVERY, Expert
from gossamer.mixture.settings import (
    QUICK,
    SCALED_VIEWS,
    WIDE,
    Setting,
    all_settings,
    first_settings,
    median_distance,
    neighbours,
    young_settings,
)
from gossamer.mixture.views import CLIP, VIEWS, Scaling, Views
from gossamer.mixture.weights import Weights

#: The most features of rows of which all features are kept.
WIDEST = 2**16


class Panel(Learner):
    """A learner that is made of experts: those of now, their weights, and the last rows, which newcomers learn."""

    task: str
    kind: str  # of the opinions: "sign", "class", "value" or "quantile"
    size: int
    awake: int
    scale: bool
    share: float
    quantile: float | None
    memory: float | None
    time: float | None
    many: bool
    n_jobs: int
    expert_loss: Loss
    _fixed: Any  # the family of kernels, or the kernel
    _mixed: bool
    _room: Room
    _rows: int
    _births: int
    _known: int
    _units: tuple[float, ...]
    _experts: list[Expert]
    _weights: Weights
    _blank: dict[tuple[Setting, float], Learner]  # experts that have learned nothing: others are their twins
    _scaling: Scaling
    _moments: tuple[float, float, float, float]
    _memory_rows: Any
    _memory_targets: Floats
    _memory_weights: Floats
    _memory_times: Floats

    def _new_weights(self, experts: int) -> Weights:
        return Weights(self.kind, experts, self.share, 0.5 if self.quantile is None else self.quantile)

    def _settled(self) -> Floats:
        """Which experts are stacked: those that are neither on trial nor asleep."""
        return np.array([float(not expert.trial and not expert.asleep) for expert in self._experts])

    def _link_fades(self, times: Floats | None, last: float | None) -> Floats | None:
        """What time leaves of the links before each row: by rows they forget half as fast as the middle expert."""
        if times is None or self.half_life is None:
            return None
        return elapse(self, HalfLife(2.0 * self.half_life.seconds), last, times)[0]

    def _open(self, X: Array) -> None:
        """The first experts, with the distances that scaled rows usually have."""
        width = X.shape[1]
        self._fit_rows(width, X.dtype)
        self._scaling = Scaling.of_width(0 if isinstance(X, SparseRows) else width)
        self._memory_rows = X[:0].copy()
        norm = float(squared_norms(X[:1].astype(np.float64))[0]) or 1.0
        self._units = tuple(2.0 * width if self.scale and view != "plain" else norm for view in VIEWS)
        self._experts = [self._new(setting) for setting in first_settings(self.task)]
        self._weights = self._new_weights(len(self._experts))

    def _fit_rows(self, width: int, dtype: Any) -> None:
        self._width, self._dtype = width, dtype
        self._points, self._awake = fit_limits(self.size, self.awake, min(width, WIDEST), self.memory, self.time)
        self._room = Room(self.memory, self._points, min(width, WIDEST))
        self.budget = Project(self._points)
        self._blank = {}

    def _new(self, setting: Setting, trial: int = 0) -> Expert:
        unit, family = self._units[VIEWS.index(setting.view)], self._fixed
        made = self._blank.get((setting, unit))
        if made is None:
            if isinstance(family, Kernel) and self._width is not None:
                family = for_scaled(family, self._width)
            half_life = None if self.half_life is None else self.half_life.seconds
            made = setting.learner(unit, self.expert_loss, self._points, family, half_life)
            self._blank[setting, unit] = made
        return Expert(setting, made.twin(), trial)

    def _look(self, X: Array) -> Views:
        """Rows as experts see them now."""
        return self._scaling.look(X) if self.scale else Views(X)

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
        self,
        experts: list[Expert],
        views: Views,
        y: Floats | None,
        weights: Floats | None = None,
        times: Floats | None = None,
    ) -> tuple[Floats, Floats | None]:
        """The scores of experts for each row, (experts, rows, outputs), and their variances. With ``y`` those who are
        awake learn each row after they were asked."""
        outputs = (self._known if y is None else max(int(y.max()) + 1, self._known)) if self.many else 1
        scores = np.full((len(experts), len(views), outputs), -np.inf)
        variances = np.empty((len(experts), len(views))) if self.kind == "value" else None
        for view in {expert.setting.view for expert in experts}:
            views.of(view)  # made here: threads only read

        def ask(place: int) -> None:
            expert = experts[place]
            rows = views.of(expert.setting.view, expert.shift)
            found, variance = self._ask_one(expert, rows, y, weights, times)
            if variances is not None:
                variances[place] = variance + expert.setting.noise
            if not self.many:
                scores[place, :, 0] = found
            elif expert.learner.steps:
                scores[place, :, : found.shape[1]] = found

        spread(ask, len(experts), self.n_jobs)  # the core releases the GIL
        return scores, variances

    def _ask_one(
        self, expert: Expert, rows: Any, y: Floats | None, weights: Floats | None, times: Floats | None
    ) -> tuple[Any, Any]:
        """The scores of one expert, and its variances if they are for numbers."""
        learner, valued = expert.learner, self.kind == "value"
        validates = self._is_fixed or self.half_life is not None  # a kernel or a clock of its own
        if y is None or expert.asleep:
            scores = learner.score(rows) if validates else learner.score_validated(rows)
            return scores, learner.variance(rows) if valued else None
        if validates:
            time = None if learner.half_life is None else times
            if valued:
                return learner.learn_with_variance(rows, y, weights, time=time)
            return learner.learn(rows, y, weights, time=time), None
        batch = learner.learn_validated(rows, y, weights, None, valued)
        return batch.scores if self.many else batch.scores[:, 0], batch.variances

    def _remember(self, X: Array, y: Floats, weights: Floats | None, times: Floats | None) -> None:
        own = np.ones(len(y)) if weights is None else weights
        most = roster.MEMORY
        self._memory_rows = stack([self._memory_rows, X])[-most:]
        self._memory_targets = np.concatenate([self._memory_targets, y])[-most:]
        self._memory_weights = np.concatenate([self._memory_weights, own])[-most:]
        if times is not None:
            self._memory_times = np.concatenate([self._memory_times, times])[-most:]
            self._time = float(times[-1])

    def _recall(self) -> tuple[Views, Floats, Floats, Floats | None]:
        """The rows remembered, their targets and weights, all in the present units; and their times."""
        y = self._memory_targets
        if self.task == "regression":
            mean, deviation = self._target_units()
            y = (y - mean) / deviation if deviation > 0 else np.zeros(len(y))
        times = None if self.half_life is None else self._memory_times
        return self._look(self._memory_rows), y, self._memory_weights, times

    def _start_all(self) -> None:
        """All settings start: the distances between rows are known now, and the rows so far are learned anew."""
        views, y, weights, times = self._recall()
        self._units = tuple(median_distance(views.of(view)) for view in VIEWS)
        two = self.kind == "sign"
        found = all_settings(self.task, views.plain.shape[1], self._views, self._is_fixed, self._mixed, two)
        self._experts = [self._new(setting) for setting in found]
        before, self._weights = self._weights, self._new_weights(len(found))
        self._weights.stack = before.stack
        if self.memory is None:
            scores, variances = self._ask(self._experts, views, y, weights, times)
        else:  # one after another, and none is kept
            heard = [self._ask([self._new(setting)], views, y, weights, times) for setting in found]
            scores = np.concatenate([own for own, _ in heard])
            variances = np.concatenate([own for _, own in heard]) if self.kind == "value" else None
        self._weights.learn(scores, variances, y, weights, self._link_fades(times, None))
        if self.memory is not None:
            order = np.argsort(-self._weights.credits, kind="stable")
            self._keep(sorted(order[: self._room.most_at_start].tolist()))
            self._ask(self._experts, views, y, weights, times)

    @property
    def _views(self) -> tuple[str, ...]:
        """The views among which experts choose: where roots are as far apart as rows, as of zeros and ones, without."""
        apart = dict(zip(VIEWS, self._units, strict=True))
        found = [view for view in SCALED_VIEWS if view != "rooted" or apart[view] != apart["scaled"]]
        return tuple(found) if self.scale else ("scaled",)

    @property
    def _is_fixed(self) -> bool:
        return isinstance(self._fixed, Kernel)

    def _change_roster(self) -> None:
        """Retire experts and start others."""
        row, mixed = self._rows, self._weights
        self._wake()
        patient = self.kind == "quantile"
        self._keep(roster.survivors(self._experts, mixed.weights, mixed.credits, row, self._awake, patient))
        for expert in self._experts:
            if expert.trial <= row:
                expert.trial = 0
        self._shrink()
        if row < roster.FIRST_YOUNG:
            return
        place = int(np.argmax(mixed.weights))
        best, opinion = self._experts[place], mixed.opinions[place].copy()
        if row % roster.EXPLORE == 0 and row >= roster.FIRST_EXPLORERS:
            self._explore(best, opinion)
            if not best.asleep and best.learner.steps >= roster.PROVEN and best.setting.forgetting > QUICK:
                self._fall_asleep(best, opinion, float(mixed.credits[place]))
        if row % roster.GUESS == 0:
            self._guess()
        simple = row % (2 * EVERY) == 0 and not self._is_fixed
        for setting in young_settings(best.setting, self.task, simple, row // (2 * EVERY)):
            if not self._has_room():
                break
            trial = roster.young_trial(row, setting.width == best.setting.width)
            self._experts.append(self._new(setting, trial))
            mixed.add(roster.ENTRY, opinion)

    def _has_room(self, like: Expert | None = None, asleep: bool = False) -> bool:
        """Whether memory has room for one more, with nothing learned or with what another knows."""
        if self.memory is None:
            return True
        points = 0 if like is None else count_points(like)
        return self._room.fits(self._experts, self._rows, points, asleep)

    def _shrink(self) -> None:
        """Retire experts until memory has room for the others: the worst that are awake, but the heaviest; then those
        that have slept longest."""
        while self._room.left(self._experts, self._rows) < 0:
            awake = [place for place, expert in enumerate(self._experts) if not expert.asleep]
            awake.remove(max(awake, key=lambda place: float(self._weights.weights[place])))
            if not awake:
                break
            worst = min(awake, key=lambda place: float(self._weights.credits[place]))
            self._keep([place for place in range(len(self._experts)) if place != worst])
        while self._room.is_exceeded(self._experts):
            oldest = min((expert.asleep for expert in self._experts if expert.asleep), default=0)
            if not oldest:
                break
            self._keep([place for place, expert in enumerate(self._experts) if expert.asleep != oldest])

    def _explore(self, best: Expert, opinion: Floats) -> None:
        """Start neighbours of the best that are not awake, in turn."""
        awake = {expert.setting for expert in self._experts if not expert.trial}
        found = [s for s in neighbours(best.setting, self.task, self._views, self._is_fixed) if s not in awake]
        for _ in range(min(roster.EXPLORERS, len(found))):
            setting = found.pop(self._births % len(found))
            self._births += 1
            if not self._has_room(best):
                return
            expert = self._new(setting, self._rows + roster.TRIAL)
            if expert.learner.kernel == best.learner.kernel:
                self._hand_over(best, expert)
            else:
                self._ask([expert], *self._recall())
            self._experts.append(expert)
            self._weights.add(roster.ENTRY, opinion)

    def _hand_over(self, one: Expert, other: Expert) -> None:
        """Let another expert of the same kernel go on with what one knows; no time has passed in its sleep."""
        state = one.learner.state()
        if state is not None:
            time = None if other.learner.half_life is None else self._time
            other.learner.restore(state.replace(time=time))
        other.shift = one.shift

    def _keep(self, places: list[int]) -> None:
        """Go on with the experts of these places only."""
        if len(places) < len(self._experts):
            self._experts = [self._experts[place] for place in places]
            self._weights.keep(places)

    def _wake(self) -> None:
        """Of a sleeper that has weight a copy wakes; all sleepers keep the opinion with which they fell asleep, and
        weight enough to be noticed soon."""
        mixed, row = self._weights, self._rows
        for place, sleeper in enumerate(list(self._experts)):
            if not sleeper.asleep:
                continue
            wakes = mixed.weights[place] >= roster.PROMOTION and sleeper.trial <= row
            if wakes and self._has_room(sleeper):
                sleeper.trial = row + roster.REST
                woken = self._new(sleeper.setting, row + roster.ELDER_YOUTH)
                self._hand_over(sleeper, woken)
                self._experts.append(woken)
                mixed.split(place)
            mixed.opinions[place] = sleeper.opinion
        mixed.lift([place for place, expert in enumerate(self._experts) if expert.asleep], roster.NOTICE)

    def _fall_asleep(self, best: Expert, opinion: Floats, credit: float) -> None:
        """Keep a copy of the best; and, of two classes, one of the opposite."""
        gone = roster.same_world(self._experts, self._weights.credits, credit)
        self._keep([place for place, expert in enumerate(self._experts) if expert.guess or expert.asleep not in gone])
        state = best.learner.state()
        assert state is not None
        for own in (state, state.negated()) if self.kind == "sign" else (state,):
            if not self._has_room(best, asleep=True):
                return
            expert = self._new(best.setting)
            expert.learner.restore(own)
            expert.asleep, expert.opinion, expert.shift = self._rows, opinion.copy(), best.shift
            self._experts.append(expert)
            self._weights.add(roster.ENTRY, opinion)

    def _guess(self) -> None:
        """Start sleepers that know what the best knows now and see rows shifted, instead of those before."""
        self._keep([place for place, expert in enumerate(self._experts) if not expert.guess])
        awake = [place for place, expert in enumerate(self._experts) if not expert.asleep]
        if not awake or not self.scale or self.kind != "sign":
            return
        place = max(awake, key=lambda place: float(self._weights.weights[place]))
        best, opinion = self._experts[place], self._weights.opinions[place].copy()
        way = self._way(best) if best.learner.steps >= roster.PROVEN else None
        if way is None or not self._has_room(best, asleep=True):
            return
        own = self._new(best.setting)
        self._hand_over(best, own)
        before = 0.0 if best.shift is None else best.shift
        for move in (sign * move for move in roster.MOVES for sign in (1.0, -1.0)):
            shift = before + move * way
            if np.abs(shift).max() <= CLIP:
                guess = Expert(best.setting, own.learner, 0, self._rows, opinion.copy(), shift, guess=True)
                self._experts.append(guess)
                self._weights.add(roster.ENTRY, opinion)

    def _way(self, best: Expert) -> Floats | None:
        """The direction in which the scores of an expert grow, as long as rows deviate in it: that of the covariances.
        None if the scores are no matter of one direction, and for rows of many features, which seldom move as one."""
        views, view = self._recall()[0], best.setting.view
        if view == "plain" or views.plain.shape[1] >= WIDE:
            return None
        scores = best.learner.score(views.of(view, best.shift))
        # sums over rows only, in their order: the same bits on every machine
        table = np.column_stack([views.scaled(view).astype(np.float64), scores])
        table = table - table.sum(axis=0) / len(table)
        shared = (table * table[:, -1:]).sum(axis=0)
        length = math.sqrt(math.fsum(shared[:-1] ** 2))
        if not length > 0:
            return None
        way: Floats = shared[:-1] / length
        along = math.fsum(math.fsum(row) ** 2 for row in (table[:, :-1] * way).tolist())
        if not length**2 >= roster.STRAIGHT * along * float(shared[-1]):
            return None
        return math.sqrt(along / len(table)) * way


def for_scaled(kernel: Kernel, width: int) -> Kernel:
    """The kernel settled on features of variance 1: by no rows, so that any split into batches gives the same."""
    return kernel.resolve(np.array([[-1.0], [1.0]]) * np.ones(width))
