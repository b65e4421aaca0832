"""The errors of a server that are not about a parameter. `status` is the HTTP status that each becomes."""

from __future__ import annotations


class Problem(Exception):  # noqa: N818
    """A request that cannot be served; ``retry`` is the number of seconds after which it may be."""

    status = 500
    retry: int | None = None


class NotFoundError(Problem):
    """No such model, version or path."""

    status = 404


class ConflictError(Problem):
    """The model is not in a state for this: it exists already, has learned nothing, or the request id was used."""

    status = 409


class BusyError(Problem):
    """The queue is full."""

    status = 429
    retry = 1


class TornError(Problem):
    """Rows failed after others of the same request were learned: the model is made again from the journal."""


class ReadOnlyError(Problem):
    """Nothing can be learned now: the disk is full or failed, an entry is damaged, or the server starts or stops."""

    status = 503
    retry = 5
