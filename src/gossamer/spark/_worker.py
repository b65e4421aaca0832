"""What runs on the workers: rows of many keys, learned in a `ModelBank`. Nothing here needs Spark to be imported."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from gossamer import _checks, store
from gossamer._typing import Array
from gossamer.bank import ModelBank
from gossamer.estimators import merge
from gossamer.spark._rows import CHUNK, Rows, Task, binary_of, text_of, unpacked

#: The number of states of a map that Spark sends in one message.
AT_ONCE = 500


def learn(task: Task, bank: ModelBank, rows: Rows, last: dict[Any, Any]) -> tuple[Any, list[Any]]:
    """Learn rows with the models in a bank; returns the predictions made before, and the keys that have learned.

    ``last``: the greatest order that each key has learned, brought up to date.
    """
    if task.late != "learn" and last:
        before = [last.get(name) for name in rows.names]
        known = np.array([order is not None for order in before])
        least = np.array([0 if order is None else order for order in before])[rows.codes]
        for place in np.flatnonzero(known[rows.codes] & (rows.order <= least) & rows.fine()).tolist():
            rows.errors[place] = f"Late: {rows.order[place]} is not after {least[place]}."
    places, learned = rows.good(), []
    scores: Array = np.full((len(rows.codes), 1), np.nan)
    if len(places):
        y = None if rows.y is None else rows.y[places]
        scores = _scatter(rows, places, bank, bank.learn(rows.keys(places), rows.X[places], y))
        places = places[rows.fine()[places]]
        ends = np.flatnonzero(np.diff(rows.codes[places], append=-1))  # the greatest order of a key comes last
        learned = rows.keys(places[ends])
        for key, order in zip(learned, rows.order[places[ends]].tolist(), strict=True):
            last[key] = max(order, last.get(key, order))
    return _results(task, rows, scores), learned


def score(task: Task, bank: ModelBank, rows: Rows) -> Any:
    """The predictions of the models in a bank, without learning."""
    unknown = np.array([name not in bank for name in rows.names], dtype=bool)[rows.codes]
    for place in np.flatnonzero(unknown & rows.fine()).tolist():
        rows.errors[place] = "There is no model for this key."
    places = np.flatnonzero(rows.fine())
    scores: Array = np.full((len(rows.codes), 1), np.nan)
    if len(places):
        scores = _scatter(rows, places, bank, bank.score(rows.keys(places), rows.X[places]))
    return _results(task, rows, scores)


def _scatter(rows: Rows, places: Array, bank: ModelBank, found: Array) -> Array:
    """Scatter the scores of some rows into those of all; rows that the bank has refused join the errors."""
    found = found.reshape(len(places), -1)
    scores = np.full((len(rows.codes), found.shape[1]), np.nan)
    scores[places] = found
    for error in bank.errors:
        rows.errors[int(places[error.position])] = error.message
    return scores


def _results(task: Task, rows: Rows, scores: Array) -> Any:
    """A table with key, order, prediction, score and error."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fine, single = rows.fine(), scores[:, 0]
    if scores.shape[1] > 1:
        winners, single = scores.argmax(axis=1), scores.max(axis=1)
    elif task.kind == "classification":
        winners = (single >= 0).astype(int)
    nothing = None if fine.all() else ~fine
    value = pa.array(single, mask=nothing)
    if task.kind == "classification":
        kind = text_of(rows.table) if isinstance(task.labels[0], str) else None
        prediction = pa.array(list(task.labels), kind).take(pa.array(winners, mask=nothing))
    else:
        prediction = value if task.kind == "regression" else pa.array(single < 0, mask=nothing)
    errors = pa.nulls(len(fine), text_of(rows.table))
    if nothing is not None:
        errors = pa.array([rows.errors.get(place) for place in range(len(fine))], text_of(rows.table))
    nameless, key = rows.table["nameless"], rows.table["key"]
    if pc.any(nameless).as_py():
        key = pc.if_else(nameless, pa.scalar(None, key.type), key)
    columns = {"key": key, "order": rows.table["order"], "prediction": prediction, "score": value, "error": errors}
    return pa.table(columns)


class Processor:
    """The stateful processor of a bucket: a map of key -> (model, last order), of which a batch touches some."""

    def __init__(self, task: Task, key_type: str, order_type: str) -> None:
        self.task, self.schemas = task, (f"`key` {key_type}", f"model binary, last {order_type}")

    def init(self, handle: Any) -> None:
        """Called by Spark before anything else."""
        self.models = handle.getMapState("models", *self.schemas)
        self.facts = handle.getValueState("facts", "buckets int, models bigint")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802 (Spark's name)
        """The models that the query starts with."""
        count = self._count()
        last = initialState["last"].astype(object).where(initialState["last"].notna(), None)
        for name, model, order in zip(initialState["key"].tolist(), initialState["model"], last, strict=True):
            self.models.updateValue((name,), (bytes(model), order))
        self.facts.update((self.task.buckets, count + len(last)))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """The rows of a bucket in one batch: load the models they touch, learn, write back."""
        count = self._count()
        found = Rows(self.task, unpacked(parcel for frame in rows for parcel in frame["rows"]))
        bank, last = self.task.bank(), {}
        for name, (model, order) in self._load(found.names, count):
            bank.put(name, bytes(model))
            last[name] = order
        before = len(last)
        results, learned = learn(self.task, bank, found, last)
        for name in learned:
            self.models.updateValue((name,), (bank.dump(name), last[name]))
        self.facts.update((self.task.buckets, count + len(last) - before))
        if self.task.late == "skip":
            late = [place for place, text in found.errors.items() if text.startswith("Late: ")]
            results = results.take(np.delete(np.arange(len(results)), late))
        for start in range(0, len(results), CHUNK):
            # a single chunk, as Spark cannot send several; and integers stay integers
            yield results.slice(start, CHUNK).combine_chunks().to_pandas(integer_object_nulls=True)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802
        """There are no timers."""
        return iter(())

    def close(self) -> None:
        """Nothing is open."""

    def _load(self, names: list[Any], count: int) -> Iterator[tuple[Any, Any]]:
        """The states of those of the given keys that have a state.

        A lookup of a key is a message and an answer; a scan of the bucket is one message, if its keys fit into it,
        so a scan is used if a good part of the keys is needed.
        """
        if count <= AT_ONCE and 3 * len(names) >= count:
            wanted = set(names)
            yield from ((name, state) for (name,), state in self.models.iterator() if name in wanted)
        else:
            found = ((name, self.models.getValue((name,))) for name in names)
            yield from ((name, state) for name, state in found if state is not None)

    def _count(self) -> int:
        """An upper bound on the number of models in the bucket.

        With another number of buckets, keys would be looked for where they are not, and start anew without an error.
        """
        if not self.facts.exists():
            return 0
        buckets, count = self.facts.get()
        if buckets != self.task.buckets:
            rule = f"{buckets}, as when this checkpoint began (gossamer.spark.migrate changes it)"
            raise _checks.wrong("learn_stream", "buckets", rule, self.task.buckets)
        return int(count)


def history(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
    """Models from batches sorted by key and order: the model of a key is written as soon as the next key comes."""
    bank = task.bank()
    last: dict[Any, Any] = {}
    errors: dict[Any, list[tuple[Any, str]]] = {}
    nameless: list[tuple[Any, str]] = []
    key, schema = None, None
    for rows in _tables(task, batches):
        schema = schema or _model_schema(rows.table)
        learn(task, bank, rows, last)
        for place, text in sorted(rows.errors.items()):
            told = (rows.order[place].item(), text)
            missing = rows.table["nameless"][place].as_py()
            (nameless if missing else errors.setdefault(rows.names[rows.codes[place]], [])).append(told)
        key = rows.names[rows.codes[-1]]
        done = [name for name in {*last, *errors} if name != key]
        if done:
            yield _models(bank, done, last, errors, schema)
    if key in last or key in errors:
        yield _models(bank, [key], last, errors, schema)
    if nameless:
        yield _batch(schema, [None], [None], [None], [_told(nameless)])


def _tables(task: Task, batches: Iterable[Any]) -> Iterator[Rows]:
    """Batches as rows, small ones together."""
    import pyarrow as pa

    held: list[Any] = []
    for batch in itertools.chain(batches, [None]):
        if batch is not None and batch.num_rows:
            held.append(batch)
        if held and (batch is None or sum(part.num_rows for part in held) >= CHUNK):
            yield Rows(task, pa.Table.from_batches(held))
            held = []


def shards(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
    """Models from batches that are sorted by key, shard and order: one for each shard of a key."""
    import pyarrow as pa

    for (_, shard), part in _runs(batches, ["key", "shard"]):
        for batch in history(task, part):
            yield batch.append_column("shard", pa.array([shard] * len(batch), pa.int32()))


def merged(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
    """The models of the shards of a key as one, from batches that are sorted by key."""
    import pyarrow as pa

    for (key,), parts in _runs(batches, ["key"]):
        table = pa.Table.from_batches(list(parts)).drop_columns("shard")
        bank = task.bank()
        found = []
        for data in table["model"].drop_null().to_pylist():
            bank.put(0, data)
            found.append(bank.model(0))
        model = None
        if found:
            bank.put(0, store.dumps(merge(found).model if len(found) > 1 else found[0]))
            model = bank.dump(0)
        told = [error for errors in table["errors"].to_pylist() for error in errors]
        last = max((order for order in table["last"].to_pylist() if order is not None), default=None)
        yield _batch(table.schema, [key], [model], [last], [told])


def _runs(batches: Iterable[Any], names: list[str]) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Batches sorted by some columns, cut where these change: their values, and the parts that have them."""

    def parts() -> Iterator[tuple[Any, Any]]:
        for batch in batches:
            codes = [batch[name].dictionary_encode("encode").indices.to_numpy() for name in names]
            starts = np.flatnonzero(np.any([np.diff(code, prepend=-1) != 0 for code in codes], axis=0)).tolist()
            for start, end in itertools.pairwise([*starts, batch.num_rows]):
                yield tuple(batch[name][start].as_py() for name in names), batch.slice(start, end - start)

    for values, group in itertools.groupby(parts(), key=lambda item: item[0]):
        yield values, (part for _, part in group)


def _models(bank: ModelBank, keys: list[Any], last: dict[Any, Any], errors: dict[Any, Any], schema: Any) -> Any:
    """The models of keys whose rows are all learned, which leave the bank."""
    told = [_told(errors.pop(name, [])) for name in keys]
    models, orders = [], []
    for name in keys:
        known = name in last  # else all its rows were bad
        models.append(bank.dump(name) if known else None)
        orders.append(last.pop(name, None))
        if known:
            bank.drop(name)
    return _batch(schema, keys, models, orders, told)


def _model_schema(table: Any) -> Any:
    """The columns of models learned from the rows of a table."""
    import pyarrow as pa

    key, order = (table.schema.field(name).type for name in ("key", "order"))
    errors = pa.list_(pa.struct({"order": order, "error": text_of(table)}))
    return pa.schema({"key": key, "model": binary_of(table), "last": order, "errors": errors})


def _batch(schema: Any, *columns: list[Any]) -> Any:
    import pyarrow as pa

    made = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.record_batch(made, schema=schema)


def _told(errors: list[tuple[Any, str]]) -> list[dict[str, Any]]:
    return [{"order": order, "error": text} for order, text in errors]


def scored(task: Task, batches: Iterable[Any]) -> Iterator[Any]:
    """Predictions from batches that are sorted by key, the model of a key before its rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    bank = task.bank()
    for batch in (batch for batch in batches if batch.num_rows):
        table = pa.Table.from_batches([batch])
        models = table.filter(pc.invert(table["is_row"]))
        for name, model in zip(models["key"].to_pylist(), models["model"].to_pylist(), strict=True):
            bank.put(name, model)
        rows = table.filter(table["is_row"])
        if len(rows):
            yield from score(task, bank, Rows(task, rows)).combine_chunks().to_batches()
        newest = batch["key"][-1].as_py()
        for name in [name for name in bank.keys() if name != newest]:  # noqa: SIM118 (a bank is no dict)
            bank.drop(name)
