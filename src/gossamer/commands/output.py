"""Predictions as lines of CSV or JSON, into a file that can be cut back to a checkpoint, or to standard output."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._faces import Predictions
from gossamer.expansion import Floats

COLUMNS = {
    "classification": ("row", "target", "prediction", "score"),
    "regression": ("row", "target", "prediction"),
    "novelty": ("row", "target", "alarm", "score"),
}


class Output:
    """The lines of a run.

    Parameters
    ----------
    path : a file, or "-".
    task : says what the columns are.
    target : whether there is a column for what was to be predicted.
    form : "csv" or "jsonl"; by the ending of the name unless given.
    length : go on after so many bytes, and cut off what follows.
    alarms : write only rows that raise an alarm.
    """

    def __init__(
        self, path: str, task: str, target: bool, form: str | None = None, length: int | None = None,
        alarms: bool = False,
    ) -> None:  # fmt: skip
        ending = os.path.splitext(path)[1].lower()
        self.form = form or ("jsonl" if ending in (".jsonl", ".ndjson", ".json") else "csv")
        _checks.one_of("run", "out_format", self.form, ["csv", "jsonl"])
        self.columns = [name for name in COLUMNS[task] if target or name != "target"]
        self.task, self.alarms = task, alarms
        # closed by `close`: it is open as long as the run
        if path == "-":
            self._file: Any = sys.stdout.buffer
        else:
            self._file = open(path, "wb" if length is None else "r+b")  # noqa: SIM115
        if length is not None:
            if self._file.seek(0, os.SEEK_END) < length:
                self._file.close()
                raise ValueError(f"{path} must have the {length} bytes that the checkpoint knows of. Got fewer.")
            self._file.truncate(self._file.seek(length))
        self._own = path != "-"
        self.length = length or 0
        if self.length == 0 and self.form == "csv":
            self._put(",".join(self.columns) + "\n")

    def _put(self, text: str) -> None:
        data = text.encode()
        self._file.write(data)
        self.length += len(data)

    def write(self, rows: Any, y: Any, made: Predictions) -> None:
        """A line for each row."""
        values: dict[str, list[Any]] = {"row": rows.tolist()}
        if "target" in self.columns:
            values["target"] = y.tolist()
        if self.task == "novelty":
            values["alarm"] = made.labels.astype(int).tolist()
        else:
            values["prediction"] = made.labels.tolist()
        if "score" in self.columns:
            values["score"] = single(made.scores).tolist()
        if not made.known.all():
            unknown = np.flatnonzero(~made.known).tolist()
            for name in values.keys() & {"prediction", "score"}:
                for i in unknown:
                    values[name][i] = None
        if self.alarms:
            kept = np.flatnonzero(made.labels).tolist()
            values = {name: [column[i] for i in kept] for name, column in values.items()}
        columns = [values[name] for name in self.columns]
        if self.form == "csv":
            lines = list(map(",".join, zip(*map(_fields, columns), strict=True)))
        else:
            lines = [json.dumps(dict(zip(self.columns, row, strict=True))) for row in zip(*columns, strict=True)]
        if lines:
            self._put("\n".join(lines) + "\n")

    def flush(self) -> None:
        """All lines where others can read them."""
        self._file.flush()

    def sync(self) -> int:
        """All lines on the disk; how many bytes they are."""
        self._file.flush()
        if self._own:
            os.fsync(self._file.fileno())
        return self.length

    def close(self) -> None:
        """The end."""
        self._file.flush()
        if self._own:
            self._file.close()


def single(scores: Floats) -> Floats:
    """One score a row: f(x) for up to two classes (positive is the second), else that of the best class.

    Rows from before a third class came have a score per class here if it came in the same chunk, -inf for the classes
    to come; they get back the f(x) that they had, so that the chunks do not show.
    """
    if scores.ndim == 1:
        return scores
    finite = np.isfinite(scores)
    count = finite.sum(axis=1)
    best = np.where(finite, scores, -np.inf).max(axis=1)
    if scores.shape[1] == 1 or (count > 2).all():
        return np.asarray(best)
    places = np.arange(len(scores))
    low = scores[places, finite.argmax(axis=1)]
    high = scores[places, scores.shape[1] - 1 - finite[:, ::-1].argmax(axis=1)]
    with np.errstate(invalid="ignore"):
        early = np.where(count == 2, high - low, np.where(count == 1, 2.0 * high, 0.0))
    return np.asarray(np.where(count > 2, best, early))


def _fields(column: list[Any]) -> list[str]:
    """A column in CSV; numbers that are not whole have nine digits."""
    if column and type(column[0]) is int and len(distinct := set(column)) <= 64:
        texts = {value: _field(value) for value in distinct}
        return [texts[value] for value in column]
    kinds = set(map(type, column))
    if kinds <= {int}:
        return list(map(repr, column))
    return [f"{value:.9g}" for value in column] if kinds <= {float} else list(map(_field, column))


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.9g}"
    if not isinstance(value, str):
        return repr(value)
    special = any(c in value for c in ',"\r\n') or value != value.strip() or not value
    return '"' + value.replace('"', '""') + '"' if special else value
