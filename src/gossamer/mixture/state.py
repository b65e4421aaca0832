"""The state of a mixed learner: a snapshot of everything it has learned, enough to resume exactly."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._engine.state import State
from gossamer._sparse import TABLES, SparseRows
from gossamer._typing import Floats
from gossamer.clock import check_time
from gossamer.learner import Learner
from gossamer.losses import OneVsRest
from gossamer.mixture import roster
from gossamer.mixture.settings import Setting
from gossamer.mixture.stacking import is_sound, new_stack, widen_stack
from gossamer.mixture.views import CLIP, VIEWS
from gossamer.mixture.weights import Weights, opinion_numbers

#: The most experts that a state may have.
MOST_EXPERTS = 1000
#: The entries of a mixture that forgets by the clock.
TIMED = {"time", "memory_times"}
#: The largest number of rows that can be counted.
MOST_ROWS = 2**62


@dataclass(eq=False)
class MixedState:
    """The learned state of a `MixedLearner`. The experts are their settings, their own states, and the rows at which
    their trials end."""

    rows: int
    known: int  # classes
    births: int  # explorers so far
    units: tuple[float, ...]  # the median squared distance of rows in each view
    mean: Floats  # (2, features): of the features, and of their roots
    squares: Floats
    count: float
    moments: tuple[float, float, float, float]  # of the targets
    memory_rows: Any  # an array, or sparse rows
    memory_targets: Floats
    memory_weights: Floats
    settings: list[Setting]
    trials: list[int]
    asleep: list[int]  # the rows at which experts fell asleep; 0: awake
    guesses: list[bool]  # sleepers that share a learner, which is that of the first; they see rows shifted
    shifts: Floats  # (experts, features): what is added to their rows; (experts, 0) if nothing is to any
    experts: list[State | None]
    kind: str
    opinions: Floats
    sleeping: Floats  # the opinions with which sleepers fell asleep
    weights: Floats
    credits: Floats
    stack: Floats  # the numbers of the stack, none for regression
    time: float | None = None  # of the last row, where experts forget by the clock
    memory_times: Floats | None = None

    @property
    def points(self) -> Any:
        """Some rows of the kind that is learned."""
        return self.memory_rows

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(value.nbytes for _, value in self.items() if isinstance(value, np.ndarray))

    def items(self) -> Iterator[tuple[str, Any]]:
        """The entries by name, those of the experts as ``experts.0.name``."""
        for field in fields(self):
            if field.name != "experts":
                yield field.name, getattr(self, field.name)
        for place, state in enumerate(self.experts):
            if state is not None:
                yield from ((f"experts.{place}.{name}", value) for name, value in state.items() if name != "kernel")

    def replace(self, **entries: Any) -> MixedState:
        """The state with other entries."""
        return dataclasses.replace(self, **entries)

    def copy(self) -> MixedState:
        """A state that shares no array with this one."""
        made = {f.name: getattr(self, f.name) for f in fields(self)}
        made = {name: value.copy() if isinstance(value, np.ndarray) else value for name, value in made.items()}
        return MixedState(**{**made, "experts": [None if state is None else state.copy() for state in self.experts]})

    def widened(self, share: float) -> MixedState:
        """The state of a score for two classes as a state of a score for each: every expert takes each class against
        the rest from now on."""
        opinions, sleeping = (_widened_opinions(own) for own in (self.opinions, self.sleeping))
        experts = [None if state is None else state.widened(OneVsRest.widening) for state in self.experts]
        memory = (self.memory_targets + 1.0) / 2.0
        settings = [dataclasses.replace(setting, smooth=False) for setting in self.settings]
        return self.replace(
            experts=experts, settings=settings, opinions=opinions, sleeping=sleeping, kind="class", known=2,
            memory_targets=memory, stack=widen_stack(self.stack),
        )  # fmt: skip

    def padded(self, width: int) -> MixedState:
        """The state for rows with columns of zeros at their end, up to this width."""
        experts = [None if state is None else state.padded(width) for state in self.experts]
        if isinstance(self.memory_rows, SparseRows):
            return self.replace(memory_rows=self.memory_rows.padded(width), experts=experts)
        more = ((0, 0), (0, width - self.mean.shape[1]))
        names = ("mean", "squares", "memory_rows", *(["shifts"] if self.shifts.size else []))
        tables = {name: np.pad(getattr(self, name), more) for name in names}
        return self.replace(**tables, experts=experts)

    def to_stored(self, learners: list[Learner]) -> dict[str, Any]:
        """The entries of a file; an expert is stored as the Learner that it is."""
        found = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("settings", "experts", "kind")}
        found = {name: value for name, value in found.items() if name not in TIMED or value is not None}
        settings = [setting.entries for setting in self.settings]
        rows = self.memory_rows
        found["memory_rows"] = rows.to_stored() if isinstance(rows, SparseRows) else rows
        return {**found, "settings": settings, "learners": learners}


def check_stored(owner: Any, stored: dict[str, Any]) -> None:
    """Validate the entries of a file, so that whatever loads works."""
    names = {f.name for f in fields(MixedState)} - {"experts", "kind"} | {"learners"}
    names -= set() if owner.half_life is not None else TIMED
    if set(stored) != names:
        raise _checks.wrong(owner, "state", f"the entries {sorted(names)}", sorted(stored))
    for name, most in (("rows", MOST_ROWS), ("known", 2**20), ("births", MOST_ROWS)):
        if _checks.whole(owner, name, stored[name], 0) > most:
            raise _checks.wrong(owner, name, f"an int up to {most}", stored[name])
    learners, settings = stored["learners"], stored["settings"]
    listed = isinstance(learners, list) and 0 < len(learners) <= MOST_EXPERTS
    if not listed or not all(type(learner) is Learner for learner in learners):
        raise _checks.wrong(owner, "learners", "a list of Learners", learners)
    many = len(learners)
    if not (isinstance(settings, list) and len(settings) == many and all(_is_setting(owner, s) for s in settings)):
        raise _checks.wrong(owner, "settings", f"{many} settings", settings)
    for name in ("trials", "asleep"):
        found = stored[name]
        if not (isinstance(found, list) and len(found) == many and all(type(t) is int and t >= 0 for t in found)):
            raise _checks.wrong(owner, name, f"{many} ints, none negative", found)
    guesses = stored["guesses"]
    flags = isinstance(guesses, list) and len(guesses) == many and all(type(guess) is bool for guess in guesses)
    if not flags or any(guess and not asleep for guess, asleep in zip(guesses, stored["asleep"], strict=True)):
        raise _checks.wrong(owner, "guesses", f"{many} flags, set for sleepers only", guesses)
    memory = stored["memory_rows"]
    if not (isinstance(memory, TABLES) and memory.ndim == 2 and memory.dtype in (np.float32, np.float64)):
        raise _checks.wrong(owner, "memory_rows", "rows of floats", memory)
    rows, width = memory.shape
    if rows != min(stored["rows"], roster.MEMORY) or not width:
        raise _checks.wrong(owner, "memory_rows", f"the last rows, at most {roster.MEMORY}", memory.shape)
    if isinstance(memory, SparseRows) and owner.scale:
        raise _checks.wrong(owner, "memory_rows", "rows of floats where they are scaled", memory.shape)
    values, moments = (memory.values, 0) if isinstance(memory, SparseRows) else (memory, width)
    shapes: dict[str, tuple[int, ...]] = {
        "mean": (2, moments), "squares": (2, moments), "memory_targets": (rows,), "memory_weights": (rows,),
        "weights": (many,), "credits": (many,), "stack": new_stack(owner.kind).shape,
        "memory_rows": values.shape, "shifts": (many, width if np.size(stored["shifts"]) and owner.scale else 0),
        **{name: (many, opinion_numbers(owner.kind)) for name in ("opinions", "sleeping")},
    }  # fmt: skip
    if owner.half_life is not None:
        shapes["memory_times"] = (rows,)
        check_time(owner, "time", owner.half_life, stored["time"])
    for name, shape in shapes.items():
        _check_array(owner, name, values if name == "memory_rows" else stored[name], shape)
    weights = stored["weights"]
    opinions_are_sound = all(sound(owner.kind, stored[name]) for name in ("opinions", "sleeping"))
    if not ((weights > 0).all() and abs(float(weights.sum()) - 1.0) < 1e-6) or not opinions_are_sound:
        raise _checks.wrong(owner, "weights", "positive with the sum 1, and opinions as they are learned", weights)
    if not is_sound(owner.kind, stored["stack"]):
        raise _checks.wrong(owner, "stack", "a weight and a curvature that is positive definite", stored["stack"])
    if np.abs(stored["shifts"]).max(initial=0.0) > (CLIP if owner.scale else 0.0):
        raise _checks.wrong(owner, "shifts", f"at most {CLIP:g} in size, of rows that are scaled", stored["shifts"])
    if (stored["squares"] < 0).any() or (stored["memory_weights"] < 0).any():
        raise _checks.wrong(owner, "squares", "not negative", stored["squares"])
    _check_numbers(owner, "units", stored["units"], len(VIEWS), positive=True)
    _check_numbers(owner, "moments", stored["moments"], 4)
    _check_numbers(owner, "count", (stored["count"],), 1)
    if owner.scale and not stored["count"] > 0:
        raise _checks.wrong(owner, "count", "positive", stored["count"])
    if owner.task == "regression" and not (stored["moments"][0] > 0 and stored["moments"][3] >= 0):
        raise _checks.wrong(owner, "moments", "those of targets", stored["moments"])
    shared = [place for place, guess in enumerate(guesses) if guess]
    if any(settings[place] != settings[shared[0]] or learners[place].steps for place in shared[1:]):
        raise _checks.wrong(owner, "guesses", "of one learner, stored with the first", guesses)
    for learner, entries in zip(learners, settings, strict=True):
        setting = Setting(*entries)
        fits = learner.features in (None, width) and learner.loss == setting.loss(owner.expert_loss)
        budget = setting.budget(owner.budget.size, owner._fixed)
        if not fits or learner.budget != budget or (learner.steps and learner.known > stored["known"]):
            raise _checks.wrong(owner, "learners", f"experts for {width} features", learner)


def _is_setting(owner: Any, found: Any) -> bool:
    if not (isinstance(found, tuple) and len(found) in (4, 5, 6) and found[3] in VIEWS):
        return False
    if not all(type(value) is bool for value in found[4:]) or (found[5:] == (True,) and owner.kind != "sign"):
        return False
    numbers = all(type(value) is float and math.isfinite(value) for value in found[:3])
    return numbers and found[0] >= 0 and 0 < found[1] <= 1 and found[2] > 0


def _widened_opinions(of_two: Floats) -> Floats:
    """Links of a score for two classes as links of a score for each."""
    opinions = np.tile(Weights("class", 1).new_opinion(), (len(of_two), 1))
    # p = sigmoid(2 slope f / scale) of the two scores f and -f
    opinions[:, 1] = of_two[:, 1] / 2
    opinions[:, 2] = of_two[:, 3] * 4
    opinions[:, 3:5] = of_two[:, 6:8]
    return opinions


def sound(kind: str, opinions: Floats) -> bool:
    """Whether opinions are as they are learned: curvatures and sums positive, a forgetting factor in (0, 1]."""
    if kind in ("sign", "class"):
        first = bool(((opinions[:, 0] > 0) & (opinions[:, 0] <= 1) & (opinions[:, 1] > 0)).all())
        if kind == "class":
            return first and bool((opinions[:, 2] > 0).all() and (opinions[:, 3:] >= 0).all())
        determinant = opinions[:, 3] * opinions[:, 5] - opinions[:, 4] ** 2
        return first and bool((opinions[:, 3] > 0).all() and (determinant > 0).all() and (opinions[:, 6:] >= 0).all())
    level = kind == "value" or bool(((opinions[:, 2] > 0) & (opinions[:, 2] < 1)).all())
    return level and bool((opinions[:, 0] > 0).all() and (opinions[:, 1] > 0).all())


def _check_array(owner: Any, name: str, found: Any, shape: tuple[int, ...]) -> None:
    kinds = (np.float32, np.float64) if name == "memory_rows" else (np.float64,)
    fits = isinstance(found, np.ndarray) and found.dtype in kinds and found.shape == shape
    if not fits or not np.isfinite(found).all():
        raise _checks.wrong(owner, name, f"finite numbers of shape {shape}", found)


def _check_numbers(owner: Any, name: str, found: Any, count: int, positive: bool = False) -> None:
    fits = isinstance(found, tuple) and len(found) == count and all(type(value) is float for value in found)
    if not fits or not all(math.isfinite(value) and (value > 0 or not positive) for value in found):
        raise _checks.wrong(owner, name, f"{count} finite numbers" + (", positive" if positive else ""), found)
