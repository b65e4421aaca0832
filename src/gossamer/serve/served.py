"""A model that is served: its estimator, what its rows are, how well it does, and the rows that wait for labels.

Everything here follows from the entries of the journal, in order, and from nothing else; `dump` and `load` store it.
"""

from __future__ import annotations

import copy
import time as _time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from gossamer import _checks, store
from gossamer._typing import Array, Floats
from gossamer.bank import ModelBank
from gossamer.serve import answers, mixed
from gossamer.serve.answers import Made
from gossamer.serve.certainty import Certainty, Rows
from gossamer.serve.experts import Experts, find_mixture, weigh
from gossamer.serve.facts import Facts, first_facts
from gossamer.serve.fair_lock import FairLock
from gossamer.serve.meters import EVENTS, LATEST, Meter
from gossamer.serve.mixed import Key, Label
from gossamer.serve.problems import ConflictError, TornError
from gossamer.serve.recipes import Recipe, join as join_steps, make_model, split
from gossamer.serve.rows import AnyBlock, decode_block, join

#: A piece of a batch takes between these times, in seconds of the processor, and has so many rows at least: predictions
#: wait for one piece at most. The first is for a model that was asked for predictions within `ASKED` seconds.
PIECES = (0.0006, 0.002, 8), (0.005, 0.015, 128)
ASKED = 1.0
#: The most rows of a piece, and of a model's first piece, which may decide its kernel. All sizes are powers of 2.
MOST, FIRST = 4096, 256


class Served:
    """A model under its name. The writer thread changes it; the lock keeps a piece of learning and a prediction apart.

    Parameters
    ----------
    number : of the model in the journal, where a name may be given again after a model was deleted.
    name : of the model.
    recipe : what it is made of.
    model : an estimator or a pipeline that has learned before; None: made from the recipe when the columns are known.
    """

    def __init__(self, number: int, name: str, recipe: Recipe, model: Any = None, created: float = 0.0) -> None:
        self.number, self.name, self.recipe, self.created = number, name, recipe, created
        self.lock = FairLock()
        self.encoder, self.model = split(model)
        self.facts = first_facts(recipe, model)
        self.rows = 0  # rows learned
        self.seq = 0  # the last entry of this model
        self.stored_rows = 0  # rows when it was last stored
        self.learning_seconds = 0.0  # of the processor, for all entries since it was last stored
        self.storing_seconds = 0.0  # of the processor, the last time
        self.meter = Meter(self.facts.task or "")
        self.certainty, self.experts = Certainty(), Experts()
        self.pending: dict[Key, tuple[bytes, Any, bool]] = {}  # id -> row, the prediction shown, whether there was one
        self.latest: deque[list[Any]] = deque(maxlen=LATEST)
        self.events: deque[list[Any]] = deque(maxlen=EVENTS)
        self.piece = FIRST  # rows of a piece; the cut changes no number
        self.asked = 0.0  # when predictions were last asked for

    # ------------------------------------------------------------------------------------------------------- learning

    def learn(self, blocks: Sequence[AnyBlock], times: Sequence[float], whole: bool = False) -> list[list[Any]]:
        """Learn blocks one after the other; the predictions made before each row was learned, where a block
        shows them.

        In pieces, or with ``whole`` all of them or none. Else, if a later piece fails, TornError.
        """
        before = self.facts, self.encoder, self.model, self.meter, self.rows
        count = blocks[0].count
        kept = self.dump() if whole and self._piece(count, count, whole) < count else None
        try:
            return self._learn(blocks, times, whole)
        except ValueError as error:
            if kept is not None:
                self._restore(kept)
                raise
            if self.rows > before[-1]:
                raise TornError(str(error)) from error
            self.facts, self.encoder, self.model, self.meter, _ = before
            raise

    def _learn(self, blocks: Sequence[AnyBlock], times: Sequence[float], at_once: bool) -> list[list[Any]]:
        for block in blocks:
            self._start(block)
        when = np.repeat(times, [block.count for block in blocks])
        shown: list[Any] = []
        wanted = any(block.shown for block in blocks)
        for whole in join(blocks):
            X, first = whole.rows(self.facts.columns), 0
            while first < whole.count:
                piece = slice(first, first + self._piece(blocks[0].count, whole.count - first, at_once))
                made = self._learn_piece(whole, X[piece], piece, when[piece])
                shown += answers.plain(made.predicted, made.known, self.facts.task) if wanted else []
                first = piece.stop
            when = when[whole.count :]
        ends = np.cumsum([block.count for block in blocks]).tolist()
        return [shown[e - block.count : e] if block.shown else [] for block, e in zip(blocks, ends, strict=True)]

    def _piece(self, first_block: int, left: int, at_once: bool, done: int = 0) -> int:
        """The rows that are learned next, of those that are left, after some that are not counted yet."""
        if self.rows + done == 0:  # does not depend on what else was learned with it
            return min(first_block, FIRST)
        whole = self.piece - (self.rows + done) % self.piece  # a mixture works in blocks of its rows: pieces end there
        size = left if at_once else min(left, whole)
        return size if find_mixture(self.model) is None else min(size, self.experts.room(self.rows + done))

    def _restore(self, kept: bytes) -> None:
        """Become again what `dump` has stored."""
        before = Served.load(self.number, kept)
        self.become(before)
        self.events = before.events

    def _adapt(self, rows: int, seconds: float) -> None:
        """Make pieces larger while a full one is quick, and smaller when one takes long."""
        shortest, longest, fewest = PIECES[_time.monotonic() - self.asked > ASKED]
        if seconds > longest:
            self.piece = max(fewest, self.piece // 2)
        elif seconds < shortest and rows == self.piece:
            self.piece = min(MOST, self.piece * 2)

    def _start(self, block: AnyBlock) -> None:
        """Decide columns, task and model with the first rows; the facts follow every block."""
        self.facts = self.facts.follow(block, self.recipe)
        if self.model is None:
            assert self.facts.columns is not None
            assert self.facts.task is not None
            self.encoder = copy.deepcopy(self.facts.encoder)
            self.model = make_model(self.recipe, self.facts.task, len(self.facts.columns), self.encoder)
        if not self.meter.task:
            self.meter = Meter(str(self.facts.task))

    def _learn_piece(self, block: AnyBlock, X: Any, piece: slice, when: Floats) -> Made:
        y = None if block.y is None else self.targets(block.y[piece])
        keys = None if block.keys is None else block.keys[piece]
        weights = None if block.weights is None else np.array(block.weights[piece])
        with self.lock:
            begun = _time.thread_time()
            made = self._predict_learn(X, y, keys, weights)
            self.rows += len(X)
            self._watch(self.rows, y, made)
            seconds = _time.thread_time() - begun
        self._adapt(len(X), seconds)
        self._count(X, y, made.predicted, made.known, when, made.inside)
        return made

    def _predict_learn(self, X: Any, y: Array | None, keys: Any, weights: Any) -> Made:
        """Predict rows, then learn them: the encoder and the model, or none of them."""
        if self.encoder is None:
            return answers.predict_learn(self.model, self.facts.task, X, y, keys, weights)
        before = self.encoder.__dict__  # what it learns is published in another dict
        try:
            Z = answers.encode(self.encoder, X, learn=True)
            return answers.predict_learn(self.model, self.facts.task, Z, y, keys, weights)
        except BaseException:
            self.encoder.__dict__ = before
            raise

    def _watch(self, rows: int, y: Array | None, made: Made) -> None:
        """Keep how sure the model was of rows that it has learned now, and the weights of its experts."""
        if y is not None and (made.inside is not None or made.made is not None):
            predicted = None if made.reach is None else made.predicted
            self.certainty.add(Rows(y, made.made, made.inside, predicted, made.reach))
        mixture = find_mixture(self.model)
        if mixture is not None:
            self.experts.look(mixture, rows)

    def _count(
        self, X: Any, y: Array | None, predicted: Array, known: Any, when: Floats, inside: Array | None = None
    ) -> None:
        """Keep the error of predictions that were made before the label was known; the rows are learned."""
        before = self.rows - len(X)
        if self.facts.task == "classification":
            assert y is not None
            errors = np.where(known & (predicted == y), 0.0, 1.0)
        elif self.facts.task == "regression":
            errors = np.abs(predicted - y)
        else:
            errors = predicted.astype(np.float64)
        counted = self.meter.rows  # of an imported model: since then
        told = [(alarm.row - counted, words) for alarm, words in self.meter.add(y, errors, when, inside)]
        for i in range(len(str(before)), len(str(self.rows))):
            if i >= 3:  # 1,000 rows, 10,000, ...
                told.append((10**i - before, f"has learned {10**i:,} rows"))
        for place, words in sorted(told):
            self.tell(float(when[place - 1]), 0, words)
        plain = answers.plain(predicted[-LATEST:], known[-LATEST:], self.facts.task)
        labels = [None] * LATEST if y is None else y[-LATEST:].tolist()
        last = X[-LATEST:]
        rows = last.tolist() if isinstance(last, np.ndarray) else mixed.plain_rows(last)
        for x, guess, label, moment in zip(rows, plain, labels[-len(plain) :], when[-LATEST:], strict=False):
            self.latest.append([float(moment), x, guess, label])

    def targets(self, y: Sequence[Label]) -> Array:
        """Labels as an array: of floats for a regression, else of their kind."""
        if self.facts.task == "regression":
            return np.array(y, dtype=np.float64)
        return np.array(y, dtype=np.int64 if self.facts.kind is int else None)

    # ---------------------------------------------------------------------------------------------------- late labels

    def ask(self, blocks: Sequence[AnyBlock]) -> list[list[Any]]:
        """Predict rows and keep them until their labels come; the predictions, block by block."""
        made = [self.predict(block, {})["predictions"] for block in blocks]
        for block, predictions in zip(blocks, made, strict=True):
            assert block.ids is not None
            for i, (one, shown) in enumerate(zip(block.ids, predictions, strict=True)):
                self.pending[one] = (block.row(i), shown, shown is not None)
        return made

    def learn_labels(self, ids: Sequence[Key], y: Sequence[Label], time: float, whole: bool = False) -> dict[str, Any]:
        """Learn the rows that waited for these labels, in the order of the labels; ids that wait no more are told."""
        first_of = {one: i for i, one in reversed(list(enumerate(ids))) if one in self.pending}
        there = sorted(first_of.values())
        rows = [self.pending[ids[i]] for i in there]
        unknown = [one for i, one in enumerate(ids) if first_of.get(one) != i]
        facts = self.facts.follow_labels(y)
        if rows:
            parts = self._waiting_rows([row for row, _, _ in rows])
            before, self.facts = self.facts, facts
            labels = self.targets([y[i] for i in there])
            inside = self._learn_parts(parts, labels, whole, before)
            for i in there:
                del self.pending[ids[i]]
            known = np.array([told for _, _, told in rows])
            shown = [guess for _, guess, _ in rows]
            numbers = self.facts.task == "regression"
            predicted = np.array(shown, dtype=np.float64) if numbers else _objects(shown)
            done = 0
            for X in parts:
                part = slice(done, done + len(X))
                self.rows += len(X)
                found = None if inside is None else inside[part]
                self._count(X, labels[part], predicted[part], known[part], np.full(len(X), time), found)
                done = part.stop
        return {"rows": len(rows), "unknown": unknown, "predictions": [guess for _, guess, _ in rows]}

    def _learn_parts(self, parts: list[Any], labels: Array, whole: bool, before: Facts) -> Array | None:
        """Learn rows that waited; whether their targets lay in the intervals or sets made right before that."""
        count, done = len(labels), 0
        inside: list[Any] = []
        alone = len(parts) == 1 and self._piece(count, count, whole) == count
        kept = self.dump() if whole and not alone else None
        for X in parts:
            first = 0
            while first < len(X):
                size = self._piece(count, len(X) - first, whole, done)
                part, y = X[first : first + size], labels[done : done + size]
                try:
                    with self.lock:
                        made = self._predict_learn(part, y, None, None)
                        self._watch(self.rows + done + len(part), y, made)
                except ValueError as error:
                    if kept is not None:
                        self._restore(kept)
                    self.facts = before
                    if kept is None and done:
                        raise TornError(str(error)) from error
                    raise
                inside.append(made.inside)
                first, done = first + size, done + size
        return None if any(part is None for part in inside) else np.concatenate(inside)

    def _waiting_rows(self, rows: list[bytes]) -> list[Any]:
        """Rows that waited, in their order: matrices or tables."""
        if self.encoder is None:
            return [np.frombuffer(b"".join(rows)).reshape(len(rows), -1)]
        return [block.rows(self.facts.columns) for block in join([decode_block(row) for row in rows])]

    # ----------------------------------------------------------------------------------------------------- predicting

    def predict(self, block: AnyBlock, wanted: dict[str, Any]) -> dict[str, Any]:
        """The predictions for a block by the model as it is: of one moment, with the number of rows learned then."""
        if self.model is None or not self.rows:
            raise ConflictError(f"The model {self.name!r} has not learned anything yet.")
        X: Any = block.rows(self.facts.columns)
        self.asked = _time.monotonic()
        with self.lock:
            Z = X if self.encoder is None else answers.encode(self.encoder, X)
            made = answers.predict(self.model, self.facts.task, Z, block.keys, wanted)
            return {**made, "learned": self.rows}

    def fits(self, block: AnyBlock) -> None:
        """Raise for rows of other columns than those learned."""
        width = len(self.facts.columns or ())
        if self.facts.columns is not None and block.width != width:
            raise _checks.wrong("request", "rows", f"of {width} columns", block.width)
        if self.rows:
            self.facts.read(block, self.recipe, self.facts.columns or ())

    # ------------------------------------------------------------------------------------------------- what it is like

    def summary(self) -> dict[str, Any]:
        """How well it does, in a few numbers."""
        found, calibration = self.meter.summary(), self.certainty.calibration()
        if found["window"] is not None:
            found["window"]["coverage"] = self.certainty.coverage()
        told = None if calibration is None else {name: calibration[name] for name in ("rows", "error")}
        return {**found, "calibration": told}

    def pictures(self) -> dict[str, Any]:
        """What there is to draw: errors over time, drift alarms, calibration, intervals, and the weights of experts.

        It waits for a piece of learning, and is not for the event loop.
        """
        with self.lock:
            mixture = find_mixture(self.model)
            now = None if mixture is None else (self.rows, weigh(mixture))
            labels = sorted(self.facts.labels)
            calibration = self.certainty.calibration()
            if calibration is not None:
                calibration["event"] = None if self.certainty.many or len(labels) != 2 else labels[1]
            return {
                "line": self.meter.line(), "drift": self.meter.marks, "calibration": calibration,
                "intervals": self.certainty.band(), "experts": self.experts.line(now),
            }  # fmt: skip

    # --------------------------------------------------------------------------------------------------------- states

    def tell(self, time: float, seq: int, words: str) -> None:
        """Add to the story of the model."""
        self.events.append([time, seq, words])

    def export(self) -> bytes:
        """The model as the bytes of a .gsm file."""
        if self.model is None or isinstance(self.model, ModelBank):
            raise ConflictError("Only a model that has learned, without keys, can be exported as one file.")
        with self.lock:
            return store.dumps(join_steps(self.encoder, self.model))

    def dump(self) -> bytes:
        """The whole state, as bytes; equal states give equal bytes."""
        with self.lock:
            facts = self.facts
            kind = None if facts.kind is None else facts.kind.__name__
            plain = {
                "name": self.name, "created": self.created, "recipe": msgspec.to_builtins(self.recipe),
                "columns": None if facts.columns is None else list(facts.columns), "task": facts.task, "kind": kind,
                "labels": sorted(facts.labels), "many": facts.many, "fixed": facts.fixed, "rows": self.rows,
                "seq": self.seq, "meter": self.meter.state(), "latest": list(self.latest), "events": list(self.events),
                "pending": [[one, *row] for one, row in self.pending.items()],
                "certainty": self.certainty.state(), "experts": self.experts.state(),
            }  # fmt: skip
            parts = [plain, answers.to_bytes(self.model)]
            return msgspec.msgpack.encode(parts if self.encoder is None else [*parts, store.dumps(self.encoder)])

    @classmethod
    def load(cls, number: int, data: bytes) -> Served:
        """A model from the bytes of `dump`."""
        plain, model, *more = msgspec.msgpack.decode(data)
        recipe = msgspec.convert(plain["recipe"], Recipe)
        made = cls(number, plain["name"], recipe, None, plain["created"])
        columns = None if plain["columns"] is None else tuple(plain["columns"])
        kind = {"str": str, "int": int, "bool": bool, None: None}[plain["kind"]]
        encoder = answers.encoder_from_bytes(more[0]) if more else None
        encoded = encoder is not None if model else recipe.encoded
        made.facts = Facts(columns, plain["task"], kind, frozenset(plain["labels"]), plain["many"], plain["fixed"],
                           encoded, encoder)  # fmt: skip
        made.encoder = copy.deepcopy(encoder)
        made.model = answers.from_bytes(model, recipe, made.facts)
        made.rows = made.stored_rows = plain["rows"]
        made.seq = plain["seq"]
        made.meter = Meter(plain["task"] or "", plain["meter"])
        made.certainty, made.experts = Certainty(plain.get("certainty")), Experts(plain.get("experts"))
        made.latest.extend(plain["latest"])
        made.events.extend(plain["events"])
        made.pending = {one: (row, shown, told) for one, row, shown, told in plain["pending"]}
        return made

    def become(self, other: Served) -> None:
        """Take the learned state of another, for a rollback; name, number and story stay."""
        with self.lock:
            for name in (
                "recipe",
                "encoder",
                "model",
                "facts",
                "rows",
                "meter",
                "certainty",
                "experts",
                "pending",
                "latest",
            ):
                setattr(self, name, getattr(other, name))


def _objects(shown: list[Any]) -> Array:
    """Predictions that were shown, as an array that compares with labels."""
    made = np.empty(len(shown), dtype=object)
    made[:] = shown
    return made
