"""``gossamer run --labels``: rows come in one file or pipe, their labels in another, joined by an id.

After each row, the next label is read. Its row is learned as it was shown, if it was; a label that comes before its row
waits for it. Nothing depends on how the files are cut into chunks.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np

from gossamer import _checks, store
from gossamer.cli import saved
from gossamer.cli.checkpoint import Checkpoint, remove_leftovers
from gossamer.cli.options import READING, build, default_learner, make_encoder
from gossamer.cli.output import named
from gossamer.estimators import pipeline
from gossamer.streams import Schema, Stream, open_stream

#: Rows of a chunk; checkpoints are written between chunks.
CHUNK = 256
#: Options that a resumed run must have in common with the first part.
SAME = ("target", "labels", "id", "columns", "ignore", "kinds", "categories", "missing", "task", "learner", "pending")


def work(options: argparse.Namespace) -> None:
    """Join, predict and learn."""
    for name, given in (("target", options.target), ("id", options.id)):
        if given is None:
            raise _checks.wrong("run", name, "given together with --labels", None)
    for name in ("delay", "model", "plot", "trace"):
        if getattr(options, name):
            raise _checks.wrong("run", name, "left out together with --labels", getattr(options, name))
    _checks.whole("run", "pending", options.pending, 1)
    with ExitStack() as opened:
        Join(options, opened).go()


class Join:
    """Two streams, and what was learned from them so far."""

    def __init__(self, options: argparse.Namespace, opened: ExitStack) -> None:
        self.options = options
        for path in (options.checkpoint, options.save):
            remove_leftovers(path)
        self.checkpoint = Checkpoint(options.checkpoint, options.every)
        before = self.checkpoint.read(options.resume) or {}
        for name, value in self._same().items():
            if before and before["options"][name] != value:
                raise _checks.wrong("run", name, f"as in the checkpoint ({before['options'][name]})", value)
        self.rows = self._open(
            options.data, before.get("rows"), options.id, {**(options.kinds or {}), options.id: "text"}
        )
        self.labels = self._open_labels(before.get("labels"))
        opened.callback(self.rows.close)
        opened.callback(self.labels.close)
        if self.rows.plain:
            raise _checks.wrong("run", "labels", "left out for LIBSVM, whose rows have no ids", options.labels)
        learner = options.learner or default_learner(options)
        self.encoder = before.get("encoder") or make_encoder(options, self.rows, learner)
        self.model = before.get("model") or build(learner, options, self.labels, self.encoder)
        if not before:
            self.model.keep_pending(options.pending)
        self.lines: list[list[Any]] = before.get("lines", [])  # labels read and not used yet, the last first
        self.early: dict[str, Any] = dict(before.get("early", []))
        self.sums: list[float] = before.get("sums", [0.0, 0.0])  # of errors, and of labels that had a prediction
        self.shown = int(before.get("shown", 0))
        self.next = int(before.get("next", 100))
        self.place = before["rows"] if before else self.rows.position
        self.out = self._output(before.get("out"), opened)

    def _same(self) -> dict[str, Any]:
        values = {name: getattr(self.options, name) for name in SAME}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    def _open(self, data: str, position: Any, target: str, kinds: Any, **more: Any) -> Stream:
        options = self.options
        reading = {name: getattr(options, name) for name in READING if getattr(options, name) is not None}
        own = {} if position is not None else {
            "target": target, "columns": options.columns, "ignore": options.ignore, "kinds": kinds,
            "categories": options.categories,
        }  # fmt: skip
        return open_stream(
            data,
            missing=options.missing,
            chunk_rows=CHUNK,
            position=position,
            encode=False,
            **{**own, **reading, **more},
        )

    def _open_labels(self, position: Any) -> Stream:
        own = {} if position is not None else {"columns": [self.options.id], "ignore": ()}
        name = self.options.id
        return self._open(
            self.options.labels, position, self.options.target, {name: "category"}, task=self.options.task, **own
        )

    def _output(self, length: int | None, opened: ExitStack) -> Any:
        if not self.options.out:
            return None
        mode = "w" if length is None else "r+"
        file = open(self.options.out, mode, encoding="utf-8", errors="backslashreplace", newline="")  # noqa: SIM115
        opened.callback(file.close)
        if length is None:
            file.write("id,prediction\n")
        else:
            file.truncate(file.seek(length))
        return file

    # -------------------------------------------------------------------------------------------------- the work

    def go(self) -> None:
        """Learn to the end of both streams."""
        if not self.options.quiet:
            for line in [*self.rows.notes, *self.rows.describe()]:
                print(line, file=sys.stderr)
        for chunk in self.rows:
            features = self.encoder.learn_transform(chunk.X)
            for row, name in enumerate(np.asarray(chunk.y).tolist()):
                self._show(name, features[row : row + 1])
            self.place = chunk.position
            if self.checkpoint.due(self.shown):
                self._mark(done=False)
        for name, label in self._rest():
            self._learn(name, label)
        for name, label in self.early.items():
            self._learn(name, label)  # no row of this id has come: it is counted
        self.early = {}
        self._mark(done=True)
        self._finish()

    def _show(self, name: str, x: Any) -> None:
        """Predict a row, and learn what its coming allows: a label that waited for it, and the next label."""
        made = self.model.predict(x, ids=[name])
        self.shown += 1
        if self.out is not None:
            value = made[0]
            empty = value is None or (isinstance(value, float) and math.isnan(value))
            self.out.write(f"{_field(name)},{'' if empty else _field(value)}\n")
        if name in self.early:
            self._learn(name, self.early.pop(name))
        following = next(self._rest(), None)
        if following is None:
            return
        if self.model.pending_.knows(following[0]):
            self._learn(*following)
        else:
            self.early[following[0]] = following[1]
            if len(self.early) > self.options.pending:
                del self.early[next(iter(self.early))]

    def _rest(self) -> Iterator[tuple[str, Any]]:
        """The labels that are left."""
        while True:
            if not self.lines:
                chunk = next(self.labels, None)
                if chunk is None:
                    return
                ids = chunk.X[self.options.id]
                names = [ids.values[code] if code >= 0 else "" for code in ids.codes.tolist()]
                self.lines = [list(pair) for pair in zip(names, np.asarray(chunk.y).tolist(), strict=True)][::-1]
            name, label = self.lines.pop()
            yield name, label

    def _learn(self, name: str, label: Any) -> None:
        joined = self.model.pending_.counts["joined"]
        (made,) = self.model.learn_labels([name], [label]).tolist()
        if self.model.pending_.counts["joined"] == joined:
            return
        if self.model.task == "regression":
            self.sums[0] += 0.0 if math.isnan(made) else abs(made - label)
            self.sums[1] += not math.isnan(made)
        else:
            self.sums[0] += made != label
            self.sums[1] += 1
        if joined + 1 >= self.next:
            self.next = 2 * (joined + 1)
            self._print()

    def _print(self) -> None:
        if not self.options.quiet:
            what = "mae" if self.model.task == "regression" else "error"
            error = self.sums[0] / max(self.sums[1], 1.0)
            joined = self.model.pending_.counts["joined"]
            print(f"{self.shown:>12,} rows {joined:>12,} labels   {what} {error:.4f}", flush=True)

    def _mark(self, done: bool) -> None:
        length = None
        if self.out is not None:
            self.out.flush()
            length = self.out.tell()
        self.checkpoint.write(self.shown, {
            "done": done, "rows": self.place, "labels": self.labels.position, "encoder": self.encoder, "out": length,
            "model": self.model, "lines": self.lines, "early": [list(pair) for pair in self.early.items()],
            "sums": self.sums, "shown": self.shown, "next": self.next, "options": self._same(),
        })  # fmt: skip

    def _finish(self) -> None:
        self._print()
        if self.options.save:
            schema = Schema(self.rows.schema.plan, self.labels.schema.target)
            kept = saved.content(self.encoder, pipeline(self.model), self.labels.task, schema)
            with named(self.options.save):
                store.save(kept, self.options.save)
        if not self.options.quiet:
            counts = self.model.pending_.counts
            words = ", ".join(f"{counts[name]:,} {name.replace('_', ' ')}" for name in counts if counts[name])
            print(f"{self.rows.name}: {words}, {len(self.model.pending_):,} still wait", file=sys.stderr)


def _field(value: Any) -> str:
    text = f"{value:.9g}" if isinstance(value, (float, np.floating)) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text
