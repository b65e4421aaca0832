"""What runs on the workers: rows of many keys, learned in a `ModelBank`. Nothing here needs Spark to be imported."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer import _checks, store
from gossamer._checks import Array
from gossamer.bank import ModelBank
from gossamer.merging import merge

#: Rows handed to Spark at once.
CHUNK = 50_000


@dataclass(frozen=True)
class Task:
    """What a worker must know, all of it plain data."""

    model: bytes  # as gossamer.store writes it
    kind: str  # "label", "real" or "none"
    labels: tuple[Any, ...]  # sorted; empty unless kind is "label"
    features: int
    single: bool  # whether rows are float32
    late: str
    buckets: int

    def bank(self) -> ModelBank:
        """A bank without models; each worker has one processor."""
        return ModelBank(store.loads(self.model), threads=1, errors="report", classes=list(self.labels) or None)


class Rows:
    """Rows of a frame as arrays."""

    def __init__(self, task: Task, frame: Any) -> None:
        self.keys: list[Any] = frame["key"].tolist()
        self.order = frame["order"].to_numpy()
        dtype = np.float32 if task.single else np.float64
        names = [f"x{i}" for i in range(task.features)]
        self.X = np.ascontiguousarray(frame[names].to_numpy(dtype=dtype, na_value=np.nan))
        self.y = np.array(frame["target"].tolist()) if "target" in frame else None  # texts as texts, not as objects
        self.errors = np.array([None] * len(frame), dtype=object)
        told = frame["bad"].notna().to_numpy()
        self.errors[told] = frame["bad"][told].tolist()
        self.nameless = frame["nameless"].to_numpy(dtype=bool)

    def good(self) -> Array:
        """The places of rows with nothing wrong so far, those of a key by their order; of equals, by what is in them.

        So neither the order in which Spark delivers them nor a repeated batch can change what is learned.
        """
        import pandas

        places = np.flatnonzero(self.errors == None)  # noqa: E711 (element by element)
        keys, order = pandas.factorize(pandas.Series(self.keys)[places])[0], self.order[places]
        by_order = np.lexsort((order, keys))
        if ((np.diff(keys[by_order]) == 0) & (np.diff(order[by_order]) == 0)).any():
            inside = [] if self.y is None else [np.unique(self.y[places], return_inverse=True)[1]]
            by_order = np.lexsort((*inside, *self.X[places].T[::-1], order, keys))
        return np.asarray(places[by_order])


def learn(task: Task, bank: ModelBank, rows: Rows, last: dict[Any, Any]) -> tuple[Any, Array]:
    """Learn rows with the models in a bank; returns what was predicted before, and the places of the rows learned.

    ``last``: the greatest order that each key has learned, brought up to date.
    """
    if task.late != "learn":
        for place in np.flatnonzero(rows.errors == None):  # noqa: E711
            before = last.get(rows.keys[place])
            if before is not None and rows.order[place] <= before:
                rows.errors[place] = f"Late: {rows.order[place]} is not after {before}."
    places = rows.good()
    scores: Array = np.full((len(rows.keys), 1), np.nan)
    if len(places):
        y = None if rows.y is None else rows.y[places]
        scores = _spread(rows, places, bank, bank.learn([rows.keys[i] for i in places], rows.X[places], y))
        places = places[rows.errors[places] == None]  # noqa: E711
        newest = dict(zip((rows.keys[i] for i in places.tolist()), rows.order[places].tolist(), strict=True))
        for key, order in newest.items():  # in ascending order, so that the greatest is left
            before = last.get(key)
            last[key] = order if before is None else max(before, order)
    return _results(task, rows, scores), places


def score(task: Task, bank: ModelBank, rows: Rows) -> Any:
    """What the models in a bank predict, without learning."""
    places = np.flatnonzero(rows.errors == None)  # noqa: E711
    unknown = [i for i in places.tolist() if rows.keys[i] not in bank]
    for place in unknown:
        rows.errors[place] = "There is no model for this key."
    places = np.setdiff1d(places, unknown)
    scores: Array = np.full((len(rows.keys), 1), np.nan)
    if len(places):
        scores = _spread(rows, places, bank, bank.score([rows.keys[i] for i in places], rows.X[places]))
    return _results(task, rows, scores)


def _spread(rows: Rows, places: Array, bank: ModelBank, found: Array) -> Array:
    """The scores of some rows among all, a row each; what the bank has refused joins the errors."""
    found = found.reshape(len(places), -1)
    scores = np.full((len(rows.keys), found.shape[1]), np.nan)
    scores[places] = found
    for error in bank.errors:
        rows.errors[places[error.position]] = error.message
    return scores


def _results(task: Task, rows: Rows, scores: Array) -> Any:
    """A frame with key, order, prediction, score and error."""
    import pandas

    fine = rows.errors == None  # noqa: E711
    predictions = np.array([None] * len(fine), dtype=object)
    if scores.shape[1] > 1:
        winners = scores[fine].argmax(axis=1)
        predictions[fine] = np.array(task.labels, dtype=object)[winners]
        single = np.full(len(fine), np.nan)
        single[fine] = scores[fine].max(axis=1)
    else:
        single = scores[:, 0]
        if task.kind == "label":
            predictions[fine] = np.array(task.labels, dtype=object)[(single[fine] >= 0).astype(int)]
        elif task.kind == "none":
            predictions[fine] = (single[fine] < 0).tolist()
    keys = rows.keys
    if rows.nameless.any():
        keys = [None if nameless else key for key, nameless in zip(keys, rows.nameless, strict=True)]
        keys = pandas.array(keys, dtype="Int64") if isinstance(rows.keys[0], int) else keys
    found = single if task.kind == "real" else pandas.Series(predictions, dtype=object)
    frame = pandas.DataFrame({"key": keys, "order": rows.order, "prediction": found, "score": single})
    frame["error"] = pandas.Series(rows.errors, dtype=object)
    return frame


class Processor:
    """The stateful processor of a bucket: a map of key -> (model, last order), of which a batch touches some."""

    def __init__(self, task: Task, key_type: str, order_type: str) -> None:
        self.task, self.schemas = task, (f"`key` {key_type}", f"model binary, last {order_type}")

    def init(self, handle: Any) -> None:
        """Called by Spark before anything else."""
        self.models = handle.getMapState("models", *self.schemas)
        self.count = handle.getValueState("buckets", "buckets int")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: Any) -> None:  # noqa: N802 (Spark's name)
        """The models that the query starts with."""
        self._check_count(key)
        last = initialState["last"].astype(object).where(initialState["last"].notna(), None)
        for name, model, order in zip(initialState["key"].tolist(), initialState["model"], last, strict=True):
            self.models.updateValue((name,), (bytes(model), order))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802
        """The rows of a bucket in one batch: load the models they touch, learn, write back."""
        import pandas

        self._check_count(key)
        found = Rows(self.task, pandas.concat(list(rows), ignore_index=True))
        bank, last = self.task.bank(), {}
        for name in dict.fromkeys(found.keys):
            state = self.models.getValue((name,))
            if state is not None:
                bank.put(name, bytes(state[0]))
                last[name] = state[1]
        results, learned = learn(self.task, bank, found, last)
        for name in dict.fromkeys(found.keys[i] for i in learned.tolist()):
            self.models.updateValue((name,), (bank.dump(name), last[name]))
        if self.task.late == "skip":
            results = results[~results["error"].str.startswith("Late: ", na=False).to_numpy(dtype=bool)]
        for start in range(0, len(results), CHUNK):
            yield results[start : start + CHUNK]

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Any]:  # noqa: N802
        """There are no timers."""
        return iter(())

    def close(self) -> None:
        """Nothing is open."""

    def _check_count(self, key: Any) -> None:
        """With another number of buckets, keys would be looked for where they are not, and start anew in silence."""
        before = self.count.get() if self.count.exists() else None
        if before is None:
            self.count.update((self.task.buckets,))
        elif before[0] != self.task.buckets:
            rule = f"{before[0]}, as when this checkpoint began (gossamer.spark.migrate changes it)"
            raise _checks.wrong("learn_stream", "buckets", rule, self.task.buckets)


def history(task: Task, frames: Iterable[Any]) -> Iterator[Any]:
    """Models from frames that are sorted by key and order: each key's is written as soon as the next key comes."""
    bank = task.bank()
    last: dict[Any, Any] = {}
    errors: dict[Any, list[tuple[Any, str]]] = {}
    nameless: list[tuple[Any, str]] = []
    key = None
    for frame in frames:
        if not len(frame):
            continue
        rows = Rows(task, frame)
        learn(task, bank, rows, last)
        for place in np.flatnonzero(rows.errors != None).tolist():  # noqa: E711
            told = (rows.order[place].item(), rows.errors[place])
            (nameless if rows.nameless[place] else errors.setdefault(rows.keys[place], [])).append(told)
        key = rows.keys[-1]
        done = [name for name in {*last, *errors} if name != key]
        if done:
            yield _models(bank, done, last, errors)
    rest = [key] if key in last or key in errors else []
    if rest:
        yield _models(bank, rest, last, errors)
    if nameless:
        import pandas

        yield pandas.DataFrame({"key": [None], "model": [None], "last": [None], "errors": [_told(nameless)]})


def shards(task: Task, frames: Iterable[Any]) -> Iterator[Any]:
    """Models from frames that are sorted by key, shard and order: one for each shard of a key."""
    for (_, shard), part in _runs(frames, ["key", "shard"]):
        for frame in history(task, part):
            yield frame.assign(shard=np.int32(shard))


def merged(task: Task, frames: Iterable[Any]) -> Iterator[Any]:
    """The models of the shards of a key as one, from frames that are sorted by key."""
    import pandas

    for (key,), parts in _runs(frames, ["key"]):
        frame = pandas.concat(list(parts), ignore_index=True)
        bank = task.bank()
        found = []
        for data in frame["model"].dropna():
            bank.put(0, bytes(data))
            found.append(bank.model(0))
        model = None
        if found:
            bank.put(0, store.dumps(merge(found).model if len(found) > 1 else found[0]))
            model = bank.dump(0)
        told = [dict(error) for errors in frame["errors"] for error in errors]
        last = frame["last"].max() if found else None
        name = None if pandas.isna(key) else key
        yield pandas.DataFrame({"key": [name], "model": [model], "last": [last], "errors": [told]})


def _runs(frames: Iterable[Any], names: list[str]) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Frames sorted by some columns, cut where these change: their values, and the parts that have them."""
    parts = ((values, part) for frame in frames for values, part in frame.groupby(names, dropna=False, sort=False))
    for values, group in itertools.groupby(parts, key=lambda item: item[0]):
        yield values, (part for _, part in group)


def _models(bank: ModelBank, keys: list[Any], last: dict[Any, Any], errors: dict[Any, Any]) -> Any:
    """The models of keys whose rows are all learned, which leave the bank."""
    import pandas

    told = [_told(errors.pop(name, [])) for name in keys]
    models, orders = [], []
    for name in keys:
        known = name in last  # else all its rows were bad
        models.append(bank.dump(name) if known else None)
        orders.append(last.pop(name, None))
        if known:
            bank.drop(name)
    frame = {"key": keys, "model": models, "last": pandas.Series(orders, dtype=object), "errors": told}
    return pandas.DataFrame(frame)


def _told(errors: list[tuple[Any, str]]) -> list[dict[str, Any]]:
    return [{"order": order, "error": text} for order, text in errors]


def scored(task: Task, frames: Iterable[Any]) -> Iterator[Any]:
    """Predictions from frames that are sorted by key, the model of a key before its rows."""
    bank = task.bank()
    for frame in frames:
        names = frame["key"].tolist()
        is_row = frame["is_row"].to_numpy(dtype=bool)
        for name, model in zip(frame["key"][~is_row].tolist(), frame["model"][~is_row], strict=True):
            bank.put(name, bytes(model))
        if is_row.any():
            yield score(task, bank, Rows(task, frame[is_row].reset_index(drop=True)))
        for name in [name for name in bank.keys() if name != names[-1]]:  # noqa: SIM118 (a bank is no dict)
            bank.drop(name)
