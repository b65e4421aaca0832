"""Predictions as lines of CSV or JSON, into a file that can be cut back to a checkpoint, or to standard output."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer.evaluate import Predictions

COLUMNS = {
    "classification": ("row", "target", "prediction", "score"),
    "regression": ("row", "target", "prediction"),
    "novelty": ("row", "target", "alarm", "score"),
}
#: The ways to write a text that looks like a formula.
FORMULAS = ("quote", "error", "keep")
NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class Output:
    """The writer of a run's predictions.

    Parameters
    ----------
    path : a file, or "-".
    task : says what the columns are.
    target : whether there is a column for the target.
    form : "csv" or "jsonl"; by the ending of the name unless given.
    length : truncate the file to this many bytes and append.
    alarms : write only rows that raise an alarm.
    probabilities : whether there is a column for the probability of the prediction; JSON lines have those of all
        classes too.
    interval : whether there are columns for the low and the high end; empty where they are infinite.
    formulas : what to do with a text that a spreadsheet takes for a formula (it begins with = + - @, a tab or a
        carriage return and is no number): "quote" puts an apostrophe before it, "error" refuses it, "keep" writes it.
        In CSV only.
    """

    def __init__(
        self, path: str, task: str, target: bool, form: str | None = None, length: int | None = None,
        alarms: bool = False, probabilities: bool = False, formulas: str = "quote", interval: bool = False,
    ) -> None:  # fmt: skip
        ending = os.path.splitext(path)[1].lower()
        self.form = form or ("jsonl" if ending in (".jsonl", ".ndjson", ".json") else "csv")
        _checks.one_of("run", "out_format", self.form, ["csv", "jsonl"])
        _checks.one_of("run", "formulas", formulas, FORMULAS)
        self.columns = [name for name in COLUMNS[task] if target or name != "target"]
        if probabilities:
            self.columns += ["probability"] if self.form == "csv" else ["probability", "probabilities"]
        if interval:
            self.columns += ["low", "high"]
        self.task, self.alarms, self.path, self.formulas = task, alarms, path, formulas
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
        data = text.encode(errors="backslashreplace")
        with named(self.path):
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
            values["score"] = made.single().tolist()
        if "probability" in self.columns:
            told = made.probabilities()
            values["probability"] = np.fmax.reduce(told, axis=1, initial=0.0).tolist()
            if self.form == "jsonl":
                values["probabilities"] = _by_class(made, told)
        if "low" in self.columns:
            radii = made.radii[:, 0]
            finite = np.isfinite(radii).tolist()
            for name, ends in (("low", made.labels - radii), ("high", made.labels + radii)):
                values[name] = [value if told else None for value, told in zip(ends.tolist(), finite, strict=True)]
        if not made.known.all():
            unknown = np.flatnonzero(~made.known).tolist()
            for name in values.keys() & {"prediction", "score", "probability", "probabilities"}:
                for i in unknown:
                    values[name][i] = None
        if self.alarms:
            kept = np.flatnonzero(made.labels).tolist()
            values = {name: [column[i] for i in kept] for name, column in values.items()}
        columns = [values[name] for name in self.columns]
        if self.form == "csv":
            lines = list(map(",".join, zip(*map(self._fields, columns), strict=True)))
        else:
            lines = [json.dumps(dict(zip(self.columns, row, strict=True))) for row in zip(*columns, strict=True)]
        if lines:
            self._put("\n".join(lines) + "\n")

    def flush(self) -> None:
        """Flush all lines to the operating system."""
        with named(self.path):
            self._file.flush()

    def sync(self) -> int:
        """Synchronise all lines to the disk; returns their number of bytes."""
        with named(self.path):
            self._file.flush()
            if self._own:
                os.fsync(self._file.fileno())
        return self.length

    def close(self) -> None:
        """Write the rest and close the file."""
        with named(self.path):
            if self._own:
                self._file.close()  # writes the rest, and closes even if that fails
            else:
                self._file.flush()

    def _fields(self, column: list[Any]) -> list[str]:
        """A column in CSV; fractions have nine digits."""
        if column and type(column[0]) is int and len(distinct := set(column)) <= 64:
            texts = {value: self._field(value) for value in distinct}
            return [texts[value] for value in column]
        kinds = set(map(type, column))
        if kinds <= {int}:
            return list(map(repr, column))
        if kinds <= {float}:
            return [f"{value:.9g}" for value in column]
        if str in kinds:  # few texts, many rows
            known = {value: self._field(value) for value in dict.fromkeys(column)}
            return [known[value] for value in column]
        return list(map(self._field, column))

    def _field(self, value: Any) -> str:
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, float):
            return f"{value:.9g}"
        if not isinstance(value, str):
            return repr(value)
        return self._text(value)

    def _text(self, value: str) -> str:
        if self.formulas != "keep" and is_formula(value):
            if self.formulas == "error":
                rule = "free of texts that a spreadsheet takes for a formula (--formulas quote or keep allows them)"
                raise _checks.wrong("run", "out", rule, value)
            value = f"'{value}"
        special = any(c in value for c in ',"\r\n') or value != value.strip() or not value
        return '"' + value.replace('"', '""') + '"' if special else value


@contextlib.contextmanager
def named(path: str) -> Iterator[None]:
    """Add the name of the file to errors of the system, such as "No space left on device"."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise OSError(error.errno, error.strerror, path) from None


def is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a text for a formula: it begins like one, and is no number.

    >>> [is_formula(text) for text in ("=1+1", "-1.5", "+49", "-x", "@sum", "plain", "\\tx")]
    [True, False, False, True, True, False, True]
    """
    return text.startswith(("=", "+", "-", "@", "\t", "\r")) and not NUMBER.fullmatch(text)


def _by_class(made: Predictions, told: Any) -> list[dict[str, float]]:
    """The probabilities of the classes known, by name, for each row."""
    names, rows = [str(name) for name in made.classes], []
    for values, scored in zip(told.tolist(), np.isfinite(made.by_class()).tolist(), strict=True):
        rows.append({name: p for name, p, known in zip(names, values, scored, strict=True) if known})
    return rows
