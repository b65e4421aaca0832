"""A model that is served: its estimator, what its rows are, how well it does, and the rows that wait for labels.

Everything here follows from the entries of the journal, in order, and from nothing else; `dump` and `load` store it.
"""

from __future__ import annotations

import time as _time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from gossamer import _checks, store
from gossamer._typing import Array, Bools, Floats
from gossamer.bank import ModelBank
from gossamer.estimators.pipelines import last_step
from gossamer.evaluate.adapters import task_of
from gossamer.serve import answers
from gossamer.serve.fair_lock import FairLock
from gossamer.serve.limits import LONGEST_TEXT, MOST_CLASSES
from gossamer.serve.meters import EVENTS, LATEST, Meter
from gossamer.serve.problems import ConflictError, TornError
from gossamer.serve.recipes import Recipe, make_model, takes_many_classes
from gossamer.serve.rows import Block, Key, Label, join, short

#: A piece of a batch takes between these times, in seconds of the processor: predictions wait for one piece at most.
SHORTEST, LONGEST = 0.001, 0.003
#: The fewest and the most rows of a piece, and the most of a model's first piece, which may decide its kernel.
FEWEST, MOST, FIRST = 32, 4096, 256


class Facts(NamedTuple):
    """What the rows of a model are, as decided by the entries so far. `follow` is the validation that needs them."""

    columns: tuple[str, ...] | None
    task: str | None
    kind: type | None  # of the labels of a classifier
    labels: frozenset[Label]
    many: bool  # whether more than two classes may come
    fixed: bool  # whether the classes were given

    def follow(self, block: Block, recipe: Recipe) -> Facts:
        """The facts after a block is learned; a ValueError if it does not fit."""
        facts = self
        if facts.columns is None:
            facts = facts._replace(columns=tuple(recipe.columns or block.columns or ()))
        elif block.columns is not None and tuple(block.columns) != facts.columns:
            raise _checks.wrong("request", "rows", f"of the columns {list(facts.columns[:20])}", block.columns[:20])
        columns = facts.columns or ()
        if len(block.data) != 8 * block.count * len(columns):
            got = len(block.data) // (8 * block.count)
            raise _checks.wrong("request", "rows", f"of {len(columns)} columns", got)
        if facts.task is None:
            facts = facts._replace(task=find_task(block.y))
            if recipe.key is not None and facts.task == "classification" and recipe.classes is None:
                raise _checks.wrong("model", "classes", "given for a classifier per key", None)
            model = make_model(recipe, str(facts.task), len(columns))  # raises for a wrong parameter
            facts = facts._replace(many=facts.task == "classification" and takes_many_classes(model))
        return facts.follow_labels(block.y)

    def follow_labels(self, y: Sequence[Label] | None) -> Facts:
        """The facts after these labels."""
        if self.task == "novelty":
            if y is not None:
                raise _checks.wrong("request", "y", "left out for a detector", y[:3])
            return self
        if y is None:
            raise _checks.wrong("request", "y", "given, one for each row", None)
        kinds = set(map(type, y))
        if self.task == "regression":
            if not kinds <= {int, float} or not all(abs(value) <= 1e100 for value in y):  # type: ignore[arg-type]
                raise _checks.wrong("request", "y", "numbers up to 1e100", next(iter(y)))
            return self
        kind = self.kind or next(iter(kinds))
        if kinds != {kind} or kind is float:
            names = {str: "texts", bool: "true or false", int: "whole numbers"}.get(kind, "texts or whole numbers")
            raise _checks.wrong("request", "y", f"labels that are all {names}", sorted(map(str, y))[:3])
        new = frozenset(y) - self.labels
        if not new:
            return self
        if not all(map(short, new)):
            raise _checks.wrong("request", "y", f"texts of at most {LONGEST_TEXT} characters, or below 2^53", "more")
        most = len(self.labels) if self.fixed else MOST_CLASSES if self.many else 2
        if len(self.labels) + len(new) > most:
            known = sorted(self.labels)[:20]
            rule = f"one of the classes {known}" if self.fixed or not self.many else f"at most {MOST_CLASSES} classes"
            raise _checks.wrong("request", "y", rule, sorted(new)[:5])
        return self._replace(kind=kind, labels=self.labels | new)


def find_task(y: Sequence[Label] | None) -> str:
    """The task that the first labels imply: fractions are regressed, other labels are classes, none is novelty.

    >>> find_task(["yes", "no"]), find_task([1, 2.5]), find_task([1, 2]), find_task(None)
    ('classification', 'regression', 'classification', 'novelty')
    """
    if y is None:
        return "novelty"
    return "regression" if any(type(label) is float for label in y) else "classification"


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
        self.model = model
        self.facts = _first_facts(recipe, model)
        self.rows = 0  # rows learned
        self.seq = 0  # the last entry of this model
        self.stored_rows = 0  # rows when it was last stored
        self.meter = Meter(self.facts.task or "")
        self.pending: dict[Key, tuple[bytes, Any, bool]] = {}  # id -> row, the prediction shown, whether there was one
        self.latest: deque[list[Any]] = deque(maxlen=LATEST)
        self.events: deque[list[Any]] = deque(maxlen=EVENTS)
        self.piece = FIRST  # rows of a piece; the cut changes no number

    # ------------------------------------------------------------------------------------------------------- learning

    def learn(self, blocks: Sequence[Block], times: Sequence[float], whole: bool = False) -> list[list[Any]]:
        """Learn blocks one after the other; the predictions made before each row was learned, where a block
        shows them.

        In pieces, or with ``whole`` in one call, which changes nothing if it fails. If a later piece fails, TornError.
        """
        before = self.facts, self.model, self.meter, self.rows
        try:
            return self._learn(blocks, times, whole)
        except ValueError as error:
            if self.rows > before[3]:
                raise TornError(str(error)) from error
            self.facts, self.model, self.meter, _ = before
            raise

    def _learn(self, blocks: Sequence[Block], times: Sequence[float], at_once: bool) -> list[list[Any]]:
        for block in blocks:
            self._start(block)
        whole = join(blocks)
        when = np.repeat(times, [block.count for block in blocks])
        shown: list[Any] = []
        wanted = any(block.shown for block in blocks)
        first = 0
        while first < whole.count:
            piece = slice(first, first + (whole.count if at_once else self._piece(blocks[0].count, first)))
            with self.lock:
                begun = _time.thread_time()
                made = self._learn_piece(whole, piece, when[piece])
                shown += made if wanted else []
                self._adapt(min(piece.stop, whole.count) - first, _time.thread_time() - begun)
            first = piece.stop
        ends = np.cumsum([block.count for block in blocks]).tolist()
        return [shown[e - block.count : e] if block.shown else [] for block, e in zip(blocks, ends, strict=True)]

    def _piece(self, first_block: int, first: int) -> int:
        if self.rows == 0 and first == 0:  # does not depend on what else was learned with it
            return min(first_block, FIRST)
        return self.piece

    def _adapt(self, rows: int, seconds: float) -> None:
        """Make pieces larger while a full one is quick, and smaller when one takes long."""
        if seconds > LONGEST:
            self.piece = max(FEWEST, min(self.piece, rows) // 2)
        elif seconds < SHORTEST and rows >= self.piece:
            self.piece = min(MOST, self.piece * 2)

    def _start(self, block: Block) -> None:
        """Decide columns, task and model with the first rows; the facts follow every block."""
        self.facts = self.facts.follow(block, self.recipe)
        if self.model is None:
            assert self.facts.columns is not None
            assert self.facts.task is not None
            self.model = make_model(self.recipe, self.facts.task, len(self.facts.columns))
        if not self.meter.task:
            self.meter = Meter(str(self.facts.task))

    def _learn_piece(self, block: Block, piece: slice, when: Floats) -> list[Any]:
        X = block.X[piece]
        y = None if block.y is None else self.targets(block.y[piece])
        keys = None if block.keys is None else block.keys[piece]
        weights = None if block.weights is None else np.array(block.weights[piece])
        predicted, known, inside = answers.predict_learn(self.model, self.facts.task, X, y, keys, weights)
        self._count(X, y, predicted, known, when, inside)
        return answers.plain(predicted, known, self.facts.task)

    def _count(
        self, X: Floats, y: Array | None, predicted: Array, known: Any, when: Floats, inside: Bools | None = None
    ) -> None:
        """Keep the error of predictions that were made before the label was known."""
        if self.facts.task == "classification":
            assert y is not None
            errors = np.where(known & (predicted == y), 0.0, 1.0)
        elif self.facts.task == "regression":
            errors = np.abs(predicted - y)
        else:
            errors = predicted.astype(np.float64)
        for alarm in self.meter.add(y, errors, when, inside):
            moment = float(when[min(alarm.row, self.meter.rows) - self.rows - 1])
            self.tell(moment, 0, f"errs otherwise since about row {alarm.since:,} (drift alarm at row {alarm.row:,})")
        for i in range(len(str(self.rows)), len(str(self.rows + len(X)))):
            if i >= 3:  # 1,000 rows, 10,000, ...
                self.tell(float(when[10**i - self.rows - 1]), 0, f"has learned {10**i:,} rows")
        self.rows += len(X)
        plain = answers.plain(predicted[-LATEST:], known[-LATEST:], self.facts.task)
        labels = [None] * LATEST if y is None else y[-LATEST:].tolist()
        for x, guess, label, moment in zip(
            X[-LATEST:].tolist(), plain, labels[-len(plain) :], when[-LATEST:], strict=False
        ):
            self.latest.append([float(moment), x, guess, label])

    def targets(self, y: Sequence[Label]) -> Array:
        """Labels as an array: of floats for a regression, else of their kind."""
        if self.facts.task == "regression":
            return np.array(y, dtype=np.float64)
        return np.array(y, dtype=np.int64 if self.facts.kind is int else None)

    # ---------------------------------------------------------------------------------------------------- late labels

    def ask(self, blocks: Sequence[Block]) -> list[list[Any]]:
        """Predict rows and keep them until their labels come; the predictions, block by block."""
        made = [self.predict(block, {})["predictions"] for block in blocks]
        for block, predictions in zip(blocks, made, strict=True):
            assert block.ids is not None
            for i, (one, shown) in enumerate(zip(block.ids, predictions, strict=True)):
                data = np.ascontiguousarray(block.X[i]).tobytes()
                self.pending[one] = (data, shown, shown is not None)
        return made

    def learn_labels(self, ids: Sequence[Key], y: Sequence[Label], time: float, whole: bool = False) -> dict[str, Any]:
        """Learn the rows that waited for these labels, in the order of the labels; ids that wait no more are told."""
        first_of = {one: i for i, one in reversed(list(enumerate(ids))) if one in self.pending}
        there = sorted(first_of.values())
        rows = [self.pending[ids[i]] for i in there]
        unknown = [one for i, one in enumerate(ids) if first_of.get(one) != i]
        facts = self.facts.follow_labels(y)
        if rows:
            X = np.frombuffer(b"".join(row for row, _, _ in rows)).reshape(len(rows), -1)
            self.facts = facts
            labels = self.targets([y[i] for i in there])
            size = len(rows) if whole else self.piece
            for first in range(0, len(rows), size):
                piece = slice(first, first + size)
                try:
                    with self.lock:
                        answers.predict_learn(self.model, facts.task, X[piece], labels[piece], None, None)
                except ValueError as error:
                    if first:
                        raise TornError(str(error)) from error
                    raise
            for i in there:
                del self.pending[ids[i]]
            known = np.array([told for _, _, told in rows])
            shown = [guess for _, guess, _ in rows]
            numbers = self.facts.task == "regression"
            predicted = np.array(shown, dtype=np.float64) if numbers else _objects(shown)
            self._count(X, labels, predicted, known, np.full(len(rows), time))
        return {"rows": len(rows), "unknown": unknown, "predictions": [guess for _, guess, _ in rows]}

    # ----------------------------------------------------------------------------------------------------- predicting

    def predict(self, block: Block, wanted: dict[str, Any]) -> dict[str, Any]:
        """The predictions for a block by the model as it is: of one moment, with the number of rows learned then."""
        if self.model is None or not self.rows:
            raise ConflictError(f"The model {self.name!r} has not learned anything yet.")
        with self.lock:
            made = answers.predict(self.model, self.facts.task, block.X, block.keys, wanted)
            return {**made, "learned": self.rows}

    def fits(self, block: Block) -> None:
        """Raise for rows of other columns than those learned."""
        width = len(self.facts.columns or ())
        if self.facts.columns is not None and len(block.data) != 8 * block.count * width:
            raise _checks.wrong("request", "rows", f"of {width} columns", len(block.data) // (8 * block.count))

    # --------------------------------------------------------------------------------------------------------- states

    def tell(self, time: float, seq: int, words: str) -> None:
        """Add to the story of the model."""
        self.events.append([time, seq, words])

    def export(self) -> bytes:
        """The model as the bytes of a .gsm file."""
        if self.model is None or isinstance(self.model, ModelBank):
            raise ConflictError("Only a model that has learned, without keys, can be exported as one file.")
        with self.lock:
            return store.dumps(self.model)

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
            }  # fmt: skip
            return msgspec.msgpack.encode([plain, answers.to_bytes(self.model)])

    @classmethod
    def load(cls, number: int, data: bytes) -> Served:
        """A model from the bytes of `dump`."""
        plain, model = msgspec.msgpack.decode(data)
        recipe = msgspec.convert(plain["recipe"], Recipe)
        made = cls(number, plain["name"], recipe, None, plain["created"])
        columns = None if plain["columns"] is None else tuple(plain["columns"])
        kind = {"str": str, "int": int, "bool": bool, None: None}[plain["kind"]]
        made.facts = Facts(columns, plain["task"], kind, frozenset(plain["labels"]), plain["many"], plain["fixed"])
        made.model = answers.from_bytes(model, recipe, made.facts)
        made.rows = made.stored_rows = plain["rows"]
        made.seq = plain["seq"]
        made.meter = Meter(plain["task"] or "", plain["meter"])
        made.latest.extend(plain["latest"])
        made.events.extend(plain["events"])
        made.pending = {one: (row, shown, told) for one, row, shown, told in plain["pending"]}
        return made

    def become(self, other: Served) -> None:
        """Take the learned state of another, for a rollback; name, number and story stay."""
        with self.lock:
            for name in ("recipe", "model", "facts", "rows", "meter", "pending", "latest"):
                setattr(self, name, getattr(other, name))


def _first_facts(recipe: Recipe, model: Any) -> Facts:
    """The facts before the first entry."""
    columns = None if recipe.columns is None else tuple(recipe.columns)
    classes = [] if recipe.classes is None else recipe.classes
    task, many = recipe.task, False
    if model is not None:
        task = task_of(model)
        known = getattr(last_step(model), "classes_", None)
        classes = classes if known is None else known.tolist()
    if task == "classification":
        made = model if model is not None else make_model(recipe, task, len(columns or "x"))
        many = takes_many_classes(made)
    kind = type(classes[0]) if classes else None
    return Facts(columns, task, kind, frozenset(classes), many, recipe.classes is not None)


def _objects(shown: list[Any]) -> Array:
    """Predictions that were shown, as an array that compares with labels."""
    made = np.empty(len(shown), dtype=object)
    made[:] = shown
    return made
