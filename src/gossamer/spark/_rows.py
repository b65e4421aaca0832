"""Rows of many keys on their way through Spark: as arrays to learn from, and serialized in packets for the shuffle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from gossamer import store
from gossamer._typing import Array
from gossamer.bank import ModelBank

#: Rows packed together, and handed to Spark at once.
CHUNK = 50_000


@dataclass(frozen=True)
class Task:
    """The configuration of a worker, all of it plain data."""

    model: bytes  # as gossamer.store writes it
    kind: str  # "classification", "regression" or "novelty"
    labels: tuple[Any, ...]  # sorted; empty unless kind is "classification"
    features: int
    single: bool  # whether rows are float32
    late: str
    buckets: int

    def bank(self) -> ModelBank:
        """A bank without models; each worker has one processor."""
        return ModelBank(store.loads(self.model), threads=1, errors="report", classes=list(self.labels) or None)


class Rows:
    """Rows of a table as arrays."""

    def __init__(self, task: Task, table: Any) -> None:
        self.table = table
        self.codes, self.names = _coded(table["key"])
        self.order = table["order"].to_numpy()
        self.X = np.empty((len(table), task.features), np.float32 if task.single else np.float64)
        for place in range(task.features):
            self.X[:, place] = table[f"x{place}"].to_numpy()  # missing values are NaN
        self.y = _targets(task, table["target"]) if "target" in table.column_names else None
        told = table["bad"]
        self.errors: dict[int, str] = {}  # by place
        if told.null_count < len(told):
            self.errors = {int(i): told[int(i)].as_py() for i in np.flatnonzero(told.is_valid().to_numpy())}

    def fine(self) -> Any:
        """Whether each row has no error so far."""
        fine = np.ones(len(self.codes), dtype=bool)
        fine[list(self.errors)] = False
        return fine

    def keys(self, places: Array) -> list[Any]:
        """The keys of some rows."""
        return [self.names[code] for code in self.codes[places].tolist()]

    def good(self) -> Array:
        """The indices of rows without error so far, those of a key by their order; equal orders by their values.

        So neither the order in which Spark delivers them nor a repeated batch can change what is learned.
        """
        places = np.flatnonzero(self.fine())
        keys, order = self.codes[places], self.order[places]
        by_order = np.lexsort((order, keys))
        if ((np.diff(keys[by_order]) == 0) & (np.diff(order[by_order]) == 0)).any():
            inside = [] if self.y is None else [np.unique(self.y[places], return_inverse=True)[1]]
            by_order = np.lexsort((*inside, *self.X[places].T[::-1], order, keys))
        return np.asarray(places[by_order])


def _coded(column: Any) -> tuple[Array, list[Any]]:
    """A column as codes, and the value of each code."""
    found = column.combine_chunks().dictionary_encode()
    return found.indices.to_numpy(), found.dictionary.to_pylist()


def _targets(task: Task, column: Any) -> Array:
    if task.kind == "regression":
        return np.asarray(column.to_numpy())
    codes, names = _coded(column)
    return np.array(names)[codes]  # texts as texts, not as objects


def text_of(table: Any) -> Any:
    """The type of texts in a table: Spark's settings can make them large."""
    return table.schema.field("bad").type


def binary_of(table: Any) -> Any:
    """The type of bytes beside such texts."""
    import pyarrow as pa

    return pa.large_binary() if pa.types.is_large_string(text_of(table)) else pa.binary()


def packed(batches: Iterable[Any]) -> Iterator[Any]:
    """Serialize batches with a bucket in each row into packets: (bucket, rows in bytes).

    Spark hands rows to a stateful processor one after the other, as tuples of Python, which takes longer than to learn
    them. The bytes of a packet cost nothing.
    """
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= CHUNK:
            yield _packets(held)
            held = []
    if any(part.num_rows for part in held):
        yield _packets(held)


def _packets(batches: list[Any]) -> Any:
    import pyarrow as pa

    table = pa.Table.from_batches(batches).combine_chunks()
    buckets = table["bucket"].to_numpy()
    by_bucket = np.argsort(buckets, kind="stable")
    buckets, table = buckets[by_bucket], table.drop_columns("bucket").take(by_bucket)
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    parcels = []
    for start, end in zip(starts, [*starts[1:], len(table)], strict=True):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table.slice(start, end - start))
        parcels.append(sink.getvalue().to_pybytes())
    return pa.record_batch({"bucket": pa.array(buckets[starts]), "rows": pa.array(parcels, binary_of(table))})


def unpacked(parcels: Iterable[bytes]) -> Any:
    """Deserialize the packets of a bucket into a table."""
    import pyarrow as pa

    return pa.concat_tables([pa.ipc.open_stream(parcel).read_all() for parcel in parcels])
