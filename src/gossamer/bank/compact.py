"""The compiled engine of a `ModelBank`: a state is compact bytes, which the core deserializes, updates, serializes.

The file is long because the bytes are read and written here, field by field, and both must agree.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from typing import Any

import numpy as np

from gossamer import _checks, _core, store
from gossamer._engine.native import Native, compiled_parts, rounding
from gossamer._engine.select import make_machine
from gossamer._registry import overrides, own_rates
from gossamer._typing import Floats
from gossamer.bank.keyed import LABELS, Groups, Rows
from gossamer.bank.objects import Estimators, description, primed, task_of
from gossamer.estimators import (
    OnlineClassifier,
    OnlineDetector,
    OnlinePipeline,
    OnlineRegressor,
    OnlineScaler,
    certain,
    labels as _labels,
)
from gossamer.estimators.pipelines import last_step
from gossamer.kernels import Gaussian, Kernel, Laplace
from gossamer.learner import Learner
from gossamer.store.files import MAGIC as MAGIC_OF_STORE

#: The entries of a budget's state that the bytes have; budgets with others learn in estimators.
OWN = frozenset({"spent", "inverse_age", "inverse"})
#: Those of a rule's state: the length of the first, and the second, stand with the numbers.
METRIC = frozenset({"metric", "factor"})
#: The methods that make the parts of an estimator: the core gets the parts.
MAKING = frozenset({"_loss", "_loss_many", "_rule", "_budget"})
#: Magic and version, checksum of the rest, bytes of a number, features, model, length of the labels.
HEAD = struct.Struct("<4sIB3xI8sI")
MAGIC = b"GSB\x01"
#: Version, bytes of a number, flags; features, points, outputs, labels.
SIZES = struct.Struct("<BBBxIIII")
MANY, WIDE, ONE_KAPPA, INVERSE, SURE = 1, 2, 4, 8, 16
#: What the core, and the fingerprint of a file, call a task.
KINDS = {"classification": "label", "regression": "real", "novelty": "none"}
#: The numbers behind them, in order.
NUMBERS = ("scale", "offset", "norm2", "level", "discarded")
COUNTS = ("refresh_in", "steps", "updates", "mistakes")
TRACED = ("trace_scale", "mix", "inner", "rate")


def compact(model: Any, features: int, dtype: Any, classes: list[Any] | None, threads: int) -> Compact | None:
    """The compiled engine for a model and its rows; None if the core lacks a part of it."""
    scaler, last = _parts(model)
    if last is None or last._average() or getattr(last, "skip", None) is not None:
        return None
    if last.half_life is not None or (scaler is not None and scaler.half_life is not None):
        return None  # the bytes of a state have no clock
    if getattr(last, "class_weight", None) is not None:
        return None  # and no counts of classes
    if scaler is not None and not scaler.is_linear:
        return None
    learner = last._start()
    kernel = learner.kernel
    own = isinstance(kernel, (Gaussian, Laplace)) and isinstance(kernel.gamma, str)
    like = np.zeros((1, features), dtype=dtype)
    if not own and kernel.resolve(like) != kernel:
        return None
    learner.kernel = kernel.resolve(like)
    if learner.loss.target == "label":  # with a score per class from the first row on
        return None
    if own_rates(learner.rule) or learner.budget.space or learner.rule.initial_state().keys() not in (set(), METRIC):
        return None
    if not learner.budget.initial_state().keys() <= OWN:
        return None
    try:
        learner.kernel.check_domain(learner, like + 0.5)
    except ValueError:
        return None  # the estimators then raise an error that says why
    if type(make_machine(learner, like, "auto")) is not Native:
        return None
    engine = Compact(model, scaler, last, learner, kernel, own, features, np.dtype(dtype), classes, threads)
    return None if engine.several and engine.many is None else engine


def _parts(model: Any) -> tuple[OnlineScaler | None, Any]:
    """The scaler, if there is one, and the estimator, if its class does not change how it learns."""
    steps = [step for _, step in model.steps] if type(model) is OnlinePipeline else [model]
    scaler = steps[0] if len(steps) == 2 and type(steps[0]) is OnlineScaler else None
    last = steps[-1]
    plain = len(steps) == (1 if scaler is None else 2)
    for base in (OnlineClassifier, OnlineRegressor, OnlineDetector):
        if isinstance(last, base):
            methods = ("predict_learn", "_predict_learn", "_learn", "_start", "_scores", "_predictions", "_keep")
            own = [getattr(type(last), name, None) is not getattr(base, name, None) for name in methods]
            own.append(bool(overrides(type(last)) - MAKING))  # a subclass of a user may change anything
            return scaler, last if plain and not any(own) else None
    return scaler, None


class Compact:
    """States are bytes; docs/bank.md has their layout."""

    backend = "native"

    def __init__(
        self, model: Any, scaler: OnlineScaler | None, last: Any, learner: Learner, kernel: Kernel, own: bool,
        features: int, dtype: Any, classes: list[Any] | None, threads: int,
    ) -> None:  # fmt: skip
        self.model, self.features, self.dtype, self.threads = model, features, dtype, threads
        self.classes, self.task, self.own_width = classes, task_of(model), own
        self.kernel, self.scaler = kernel, scaler  # the kernel as given, not yet resolved
        parts = compiled_parts(learner)
        assert parts is not None
        self.log_odds = learner.loss.log_odds
        self.traced, self.reshapes = learner.rule.needs_trace, learner.budget.needs_gram
        self.metric = bool(learner.rule.initial_state())
        self.several = classes is not None and (len(classes) > 2 or last._structure() is not None)
        many = self._many(last)
        self.parts, self.many = parts, many
        scaling = None
        if scaler is not None:
            forget = _checks.number(scaler, "forget", scaler.forget, 0.0, 1.0, "left")
            for name in ("with_mean", "with_std"):
                _checks.one_of(scaler, name, getattr(scaler, name), [False, True])
            scaling = (1.0 - forget, bool(scaler.with_mean), bool(scaler.with_std))
        settings = {
            "kernel": learner.kernel.program(features), **parts, "many": many, "gram": learner.track_norm,
            "epsilon": rounding(np.zeros(0, dtype)), "features": features, "own_width": own, "scaler": scaling,
            "kind": KINDS[self.task], "given": -1 if classes is None else len(classes),
        }  # fmt: skip
        self.targets = self.task == "regression" and last._moments() is not None
        if self.targets:  # without them, the fingerprint is that of older versions
            settings["targets"] = True
        self.core: Any = (_core.Bank32 if dtype == np.float32 else _core.Bank64)(**settings)
        self.fingerprint = hashlib.sha256(json.dumps(settings, sort_keys=True, default=float).encode()).digest()[:8]

    def _many(self, last: Any) -> Any:
        """The loss for more than two classes, if there can be any; None also if a part does not support it."""
        if self.task != "classification" or not (self.several or (self.classes is None and last._structure() is None)):
            return None
        last = last_step(primed(self.model, self.classes))
        try:
            return last._start(last._loss_many(None if self.classes is None else len(self.classes))).loss.compiled()
        except ValueError:
            return None

    # ------------------------------------------------------------------------------------------------------- learning

    def learn(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats
    ) -> tuple[list[Any], dict[int, str]]:
        """New states after the rows of each key, the scores in ``out``; the states given stay as they are."""
        if rows.time is not None:
            raise _checks.wrong("ModelBank", "time", "None for a model without half_life", "times")
        refused = np.zeros(len(out), dtype=np.uint8)
        gammas = self._gammas(states, groups, rows) if self.own_width else None
        room = out if out.ndim == 2 else out[:, None]
        after = self.core.learn(
            states, rows.X, rows.y, rows.weights, groups.rows, groups.starts, _ranks(labels), gammas, room, refused,
            out.ndim == 2, self.threads,
        )  # fmt: skip
        return after, self._reasons(refused, rows, labels)

    def score(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats, winners: Any
    ) -> dict[int, str]:
        """The decision function of the rows in ``out``, and for classifiers the number of the winning label."""
        refused = np.zeros(len(out), dtype=np.uint8)
        room = out if out.ndim == 2 else out[:, None]
        self.core.score(
            states, rows.X, groups.rows, groups.starts, _ranks(labels), room, refused, winners, out.ndim == 2,
            self.threads,
        )  # fmt: skip
        return self._reasons(refused, rows, labels)

    def proba(self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], out: Floats) -> dict[int, str]:
        """The probabilities of all labels, by their ranks; 0 for those that a model has not seen."""
        scores, ranks = np.full(out.shape, np.nan), _ranks(labels)
        bad = self.score(states, groups, rows, labels, scores, np.full(len(out), -1, dtype=np.int64))
        good = np.ones(len(out), dtype=bool)
        good[list(bad)] = False
        for group, state in enumerate(states):
            _, _, flags, _, _, _, count = SIZES.unpack_from(state)
            at = groups.of(group)
            at = at[good[at]]
            own = np.sort(ranks[np.frombuffer(state, "<u4", count, SIZES.size)])
            # two classes have -f / 2 and f / 2
            found = scores[np.ix_(at, own)] if flags & MANY else 2.0 * scores[at, own[-1]]
            out[at] = 0.0
            if not len(at):
                continue
            if count == 1:
                out[at, own[0]] = 1.0
                continue
            order = np.argsort(np.argsort(ranks[np.frombuffer(state, "<u4", count, SIZES.size)]))  # codes to columns
            scored = found[:, order] if flags & MANY else found if order[1] else -found
            sure = self._sure(state, flags)
            given = _labels.probabilities(scored, count) if sure is None else certain.chances(sure, scored)
            out[np.ix_(at, own[order])] = given
        return bad

    def intervals(
        self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], *where: Any
    ) -> dict[int, str]:
        """The ends of the intervals of rows, by the estimator of each key."""
        return self._as_estimators(states, labels).intervals(states, groups, rows, labels, *where)

    def sets(self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], *where: Any) -> dict[int, str]:
        """The sets of classes of rows."""
        return self._as_estimators(states, labels).sets(states, groups, rows, labels, *where)

    def pvalues(self, states: list[Any], groups: Groups, rows: Rows, labels: list[Any], *where: Any) -> dict[int, str]:
        """The p-values of rows."""
        return self._as_estimators(states, labels).pvalues(states, groups, rows, labels, *where)

    def _as_estimators(self, states: list[Any], labels: list[Any]) -> Estimators:
        """The general engine; ``states`` become estimators in place."""
        states[:] = [self.to_model(state, labels) for state in states]
        return Estimators(self.model, self.features, self.dtype, self.classes, 1)

    def _sure(self, state: bytes, flags: int) -> Any:
        """The certainty at the end of a state; None for a state of an older version with a loss of log-odds."""
        sure = _core.Certainty(self.task)
        if not flags & SURE:
            return None if self.log_odds else sure
        values, end = sure.state(), len(state) - 16
        bits = np.unpackbits(np.frombuffer(state, np.uint8, 16, end), bitorder="little")[: len(values)].astype(bool)
        count = int(bits.sum())
        values[bits] = np.frombuffer(state, "<f8", count, end - 8 * count)
        sure.restore(values)
        return sure

    def _changes(self, sure: Any) -> bytes:
        """The numbers of a certainty that differ from those of a new one, and a bit for each."""
        fresh, values = _core.Certainty(self.task).state(), sure.state()
        bits = values != fresh
        if not bits.any():
            return b""
        return _f8(values[bits]) + np.packbits(np.pad(bits, (0, 128 - len(bits))), bitorder="little").tobytes()

    def _reasons(self, refused: Any, rows: Rows, labels: list[Any]) -> dict[int, str]:
        """The errors of the rows that the core has refused."""
        bad: dict[int, str] = {}
        for position in np.flatnonzero(refused).tolist():
            if refused[position] == 2:
                assert rows.y is not None
                error = _checks.wrong(last_step(self.model), "y", "of two classes", labels[int(rows.y[position])])
            elif refused[position] == 3:
                assert rows.y is not None
                rule = "small enough for its variance to be finite"
                error = _checks.wrong(last_step(self.model), "y", rule, float(rows.y[position]))
            else:
                error = _checks.wrong("ModelBank", "X", "rows that the kernel and the scaler take", rows.X[position])
            bad[position] = str(error)
        return bad

    def _gammas(self, states: list[Any], groups: Groups, rows: Rows) -> Floats:
        """The width that the kernel of each new model settles on: from its first rows, as they reach the kernel."""
        gammas = np.full(len(states), np.nan)
        for group in (i for i, state in enumerate(states) if state is None):
            X = rows.X[groups.of(group)]
            if self.scaler is not None and len(X) >= 10:
                fresh: Floats = np.zeros((2, X.shape[1]))
                keep, scaler = 1.0 - self.scaler.forget, self.scaler
                _core.scale_rows(
                    X, X_scaled := np.empty_like(X), fresh[0], fresh[1], 0.0, keep, scaler.with_mean, scaler.with_std
                )
                X = X_scaled
            settled: Any = self.kernel.resolve(X)
            gammas[group] = settled.gamma
        return gammas

    # --------------------------------------------------------------------------------------------------------- states

    def size(self, state: Any) -> int:
        """The bytes of memory of a state."""
        return len(state)

    def pack(self, state: bytes, labels: list[Any]) -> bytes:
        """Serialize a state with its labels, a checksum and the fingerprint of its configuration."""
        count = SIZES.unpack_from(state)[-1]
        names = b""
        if count:
            codes = np.frombuffer(state, "<u4", count, SIZES.size)
            names = json.dumps([labels[code] for code in codes]).encode()
            plain = np.arange(count, dtype="<u4").tobytes()
            state = state[: SIZES.size] + plain + state[SIZES.size + 4 * count :]
        body = HEAD.pack(MAGIC, 0, self.dtype.itemsize, self.features, self.fingerprint, len(names))[8:] + names + state
        return b"".join([MAGIC, zlib.crc32(body).to_bytes(4, "little"), body])

    def unpack(self, data: bytes, labels: list[Any]) -> tuple[bytes, list[Any]]:
        """Deserialize the bytes of `pack`, or a saved estimator; also returns the labels, extended by the state's."""
        if data.startswith(MAGIC_OF_STORE):
            state, labels = self._from_model(store.loads(data), labels)
            self.core.check(state)
            return state, labels
        head(data)
        _, _, _, _, fingerprint, length = HEAD.unpack_from(data)
        if fingerprint != self.fingerprint:
            raise _checks.wrong("ModelBank", "data", f"a model of a bank of {self.model}", "one of another")
        state = data[HEAD.size + length :]
        codes, labels = _codes(_order(data[HEAD.size : HEAD.size + length]), labels)
        if len(state) < SIZES.size or 4 * SIZES.unpack_from(state)[-1] != len(codes):
            raise _checks.wrong("ModelBank", "data", "whole", "another number of labels")
        state = state[: SIZES.size] + codes + state[SIZES.size + len(codes) :]
        self.core.check(state)
        return state, labels

    def _from_model(self, model: Any, labels: list[Any]) -> tuple[bytes, list[Any]]:
        """The state of an estimator with the parameters of the bank's model."""
        last = last_step(model)
        learner: Learner | None = getattr(last, "learner_", None)
        if description(model) != description(self.model) or learner is None:
            raise _checks.wrong("ModelBank", "data", f"those of a {self.model} that has learned", model)
        state, many = learner.state(), learner.loss.target == "label"
        assert state is not None
        parts, points = compiled_parts(learner), state.points
        expected = {**self.parts, "loss": self.many if many else self.parts["loss"]}
        program = self.kernel.program(self.features) if not self.own_width else learner.kernel.program(self.features)
        fits = parts == expected and learner.kernel.program(self.features) == program and points.dtype == self.dtype
        named = learner.rule.needs_ids and not np.array_equal(state.ids, -state.births)
        if not fits or named or points.shape[1] != self.features:
            rule = f"a model of {self.features} features in {self.dtype}, as the bank's, whose rows had no ids"
            raise _checks.wrong("ModelBank", "data", rule, model)
        codes, labels = _codes(last._order if self.task == "classification" else [], labels)
        same = len(points) > 0 and bool((state.kappas == state.kappas[0]).all())
        wide = state.steps >= 2**32
        inverse: Floats = state.budget.get("inverse", np.zeros(0))
        sure = self._changes(last._sure())
        flags = MANY * many | WIDE * wide | ONE_KAPPA * same | INVERSE * (len(inverse) > 0) | SURE * (len(sure) > 0)
        sizes = SIZES.pack(1, self.dtype.itemsize, flags, self.features, *state.raw.shape[::-1], len(codes) // 4)
        numbers = [getattr(state, name) for name in NUMBERS]
        counts = [getattr(state, name) for name in COUNTS]
        traced = [getattr(state, name) for name in TRACED] if self.traced else []
        spent, age = (state.budget.get(name, 0) for name in ("spent", "inverse_age"))
        reshaped = [_f8(spent), np.int64(age).tobytes()] if self.reshapes else []
        metric: Floats = state.rule.get("metric", np.zeros(0))
        second = [np.int64(len(metric)).tobytes(), _f8(state.rule["factor"])] if self.metric else []
        gamma: list[float] = [learner.kernel.gamma] if self.own_width else []  # type: ignore[attr-defined]
        scaler: list[bytes] = []
        if self.scaler is not None:
            step = model.steps[0][1]
            scaler = [_f8(step.weight_), np.int64(step.n_seen_).tobytes(), _f8(step.mean_), _f8(step.squares_)]
        if self.targets:
            scaler.append(_f8(last._target_moments))
        made = b"".join([
            sizes, codes, _f8(numbers), np.array(counts, "<i8").tobytes(), _f8(traced), *reshaped, *second, _f8(gamma),
            *scaler, _f8(state.raw), _f8(state.trace), _f8(state.kappas[:1] if same else state.kappas),
            state.births.astype("<i8" if wide else "<u4").tobytes(), points.tobytes(), _f8(inverse), _f8(metric), sure,
        ])  # fmt: skip
        return made, labels

    def to_model(self, state: bytes, labels: list[Any]) -> Any:
        """An estimator with the state of a model."""
        found, at = SIZES.unpack_from(state), SIZES.size
        _, itemsize, flags, features, m, outputs, count = found

        def take(dtype: Any, *shape: int) -> Any:
            nonlocal at
            values = np.frombuffer(state, dtype, int(np.prod(shape)), at).reshape(shape).copy()
            at += values.nbytes
            return values

        order = [labels[code] for code in take("<u4", count)]
        numbers = dict(zip(NUMBERS, take("<f8", 5).tolist(), strict=True))
        counts = dict(zip(COUNTS, take("<i8", 4).tolist(), strict=True))
        if self.traced:
            numbers |= dict(zip(TRACED, take("<f8", 4).tolist(), strict=True))
        own: dict[str, Any] = {}
        if self.reshapes:
            own["spent"], own["inverse_age"] = float(take("<f8", 1)[0]), int(take("<i8", 1)[0])
        entries, factor = (int(take("<i8", 1)[0]), float(take("<f8", 1)[0])) if self.metric else (0, 1.0)
        gamma = float(take("<f8", 1)[0]) if self.own_width else None
        model = primed(self.model, self.classes)
        if self.scaler is not None:
            scaler = model.steps[0][1]
            scaler.weight_, scaler.n_seen_ = float(take("<f8", 1)[0]), int(take("<i8", 1)[0])
            scaler.mean_, scaler.squares_ = take("<f8", features), take("<f8", features)
            scaler.n_features_in_ = features
        if self.targets:
            last_step(model)._target_moments = tuple(take("<f8", 4).tolist())
        raw = take("<f8", outputs, m)
        trace = take("<f8", outputs, m) if self.traced else np.zeros((0, 0))
        kappas = np.repeat(take("<f8", 1), m) if flags & ONE_KAPPA else take("<f8", m)
        births = take("<i8" if flags & WIDE else "<u4", m).astype(np.int64)
        points = take(f"<f{itemsize}", m, features)
        if flags & INVERSE:
            own["inverse"] = take("<f8", m * (m + 1) // 2)
        rule = {"metric": take("<f8", entries), "factor": factor} if self.metric else {}

        last = last_step(model)
        many = bool(flags & MANY)
        learner = last._start(last._loss_many(None if self.classes is None else count) if many else None)
        kernel: Any = learner.kernel
        learner.kernel = type(kernel)(gamma) if gamma is not None else kernel.resolve(points)
        plain = make_machine(learner, points, "auto").state(points=False)
        budget = {name: own.get(name, value) for name, value in plain.budget.items()}
        known = count if many else 0
        zeros = {"summed": np.zeros_like(raw), "dropped": np.zeros((outputs, 0)), "entered": np.zeros(m)}
        arrays = {"raw": raw, "trace": trace, "kappas": kappas, "births": births, "ids": -births, **zeros}
        places = {"kernel": learner.kernel, "points": points, "dropped_points": points[:0], "budget": budget}
        places["rule"] = rule
        learner.restore(plain.replace(**numbers, **counts, **arrays, **places, known=known))
        last.learner_, last.n_features_in_ = learner, features
        sure = self._sure(state, flags)
        if sure is not None:
            last._certainty = sure
        if self.task == "classification":
            last._order, last.classes_ = order, np.unique(np.array(order))
            last._given = self.classes is not None
        return model


def _order(told: bytes) -> list[Any]:
    """The labels of a packed state."""
    try:
        order = json.loads(told) if told else []
        if type(order) is list and all(type(label) in LABELS for label in order) and len(set(order)) == len(order):
            return order
    except (ValueError, RecursionError):
        pass
    raise _checks.wrong("ModelBank", "data", "of labels that differ", told[:60])


def _codes(order: list[Any], labels: list[Any]) -> tuple[bytes, list[Any]]:
    """The numbers of the labels of a model, as bytes, and all labels with new ones added."""
    known = list(dict.fromkeys([*labels, *order]))
    return np.array([known.index(label) for label in order], "<u4").tobytes(), known


def head(data: bytes) -> tuple[int, Any]:
    """The number of features and the type of the rows of a packed state, which must be whole and undamaged."""
    if len(data) < HEAD.size or data[:4] != MAGIC:
        raise _checks.wrong("ModelBank", "data", "a model that a ModelBank has dumped", data[:8])
    _, checksum, itemsize, features, _, length = HEAD.unpack_from(data)
    if zlib.crc32(data[8:]) != checksum or HEAD.size + length > len(data) or itemsize not in (4, 8):
        raise _checks.wrong("ModelBank", "data", "undamaged", f"{len(data)} bytes that do not match their checksum")
    return int(features), np.dtype(f"f{itemsize}")


def _f8(values: Any) -> bytes:
    return np.asarray(values, "<f8").tobytes()


def _ranks(labels: list[Any]) -> Any:
    """The column of each label: its rank among the sorted labels."""
    ranks = np.empty(len(labels), dtype=np.int32)
    ranks[np.argsort(np.array(labels), kind="stable") if labels else []] = np.arange(len(labels))
    return ranks
