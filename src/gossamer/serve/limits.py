"""The settings of a server, with their defaults: what a request may be, and how the journal is kept."""

from __future__ import annotations

from dataclasses import dataclass, fields

from gossamer import _checks

#: The largest number in a row: its square, summed over any stream, stays finite in the statistics of a scaler.
LARGEST_NUMBER = 1e100
#: The largest weight of a row.
LARGEST_WEIGHT = 1e6
#: The most characters of a label, a key, an id or a request id.
LONGEST_TEXT = 256
#: The most classes of a model.
MOST_CLASSES = 1024
#: The most versions of a model that are kept.
MOST_VERSIONS = 1000
#: The most columns of a row, and the most features that an encoder makes of it.
MOST_COLUMNS, MOST_FEATURES = 4096, 8192
#: The most characters of a text in a row: as many as an encoder looks at.
LONGEST_CELL = 10_000
#: The largest number of points that a model may keep.
LARGEST_BUDGET = 16384


@dataclass(frozen=True)
class Limits:
    """What a server accepts, and how it keeps its journal.

    Parameters
    ----------
    body : the most bytes of a request's body.
    rows : the most rows of a request (of a block, in NDJSON).
    queue : the most rows that wait to be learned, and the most requests; beyond it the answer is 429.
    queue_bytes : the most bytes of what waits to be learned, and of what waits to be predicted; beyond it 429.
    models : the most models.
    keys : the most keys of a model per key.
    pending : the most rows of a model that wait for their labels.
    connections : the most open connections.
    header_seconds, body_seconds : the longest time until a request's headers, and its body, are complete.
    snapshot_rows, snapshot_seconds : a model that has learned so many rows, or has changed so long ago, is stored.
    replay_seconds : of learning that a recovery may have to do again, over all models; beyond it models are stored.
    snapshots : stored states kept for each model; the journal is kept from the oldest of them on.
    keep_entries : journal entries kept in any case.
    requests : request ids remembered, over all models.

    >>> Limits(rows=10).rows
    10
    """

    body: int = 16 * 2**20
    rows: int = 20_000
    queue: int = 100_000
    queue_bytes: int = 256 * 2**20
    models: int = 1000
    keys: int = 100_000
    pending: int = 100_000
    connections: int = 2000
    header_seconds: int = 10
    body_seconds: int = 60
    snapshot_rows: int = 200_000
    snapshot_seconds: int = 300
    replay_seconds: int = 5
    snapshots: int = 3
    keep_entries: int = 0
    requests: int = 1_000_000

    def __post_init__(self) -> None:
        for field in fields(self):
            _checks.whole(self, field.name, getattr(self, field.name), 0 if field.name == "keep_entries" else 1)
