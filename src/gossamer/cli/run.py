"""``gossamer run``: predict each row, then learn it, over a file or a pipe."""

from __future__ import annotations

import argparse
import copy
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from types import FrameType
from typing import Any

import numpy as np

from gossamer import _checks, store
from gossamer.cli import saved
from gossamer.cli.ahead import ahead
from gossamer.cli.checkpoint import Checkpoint, remove_leftovers
from gossamer.cli.evaluation import Evaluation
from gossamer.cli.options import (
    MODEL,
    ToldError,
    build,
    default_learner,
    encode,
    evaluation_options,
    half_life,
    make_encoder,
    open_data,
)
from gossamer.cli.output import FORMULAS, Output, named
from gossamer.cli.parts import refused, unknown_label
from gossamer.cli.progress import Bar, Table
from gossamer.drift import DriftAlarm
from gossamer.estimators import pipeline
from gossamer.streams import Chunk, Stream

CHUNK = 8192
#: What may happen at a bad row.
ON_ERROR = ("save", "stop", "skip")
#: Options that a resumed run must have in common with the first part, as the output and the model depend on them.
SAME = ("target", "columns", "ignore", "kinds", "categories", "format", "missing", "delimiter", "header", "n_features",
        "decimal", "encoding", "na_values", "max_features", "task", "learner", "kernel", *MODEL, "scale", "forget",
        "window", "delay", "anomaly", "out_format", "alarms", "model", "metrics", "positive", "formulas", "on_error",
        "new_classes", "time", "late", "proba", "interval", "alarms_drift")  # fmt: skip


def work(options: argparse.Namespace) -> None:
    """Run it."""
    if options.labels:
        from gossamer.cli import labels

        for name in ("time", "half_life"):
            if getattr(options, name) is not None:
                raise _checks.wrong("run", name, "left out with --labels", getattr(options, name))
        return labels.work(options)
    _check(options)
    with Interrupts() as interrupts, ExitStack() as opened:
        _Run(options, interrupts, opened).go()


def _check(options: argparse.Namespace) -> None:
    """What can be told before any work."""
    options.learner = options.learner or default_learner(options)
    for name in ("every", "window"):
        if getattr(options, name) is not None:
            _checks.whole("run", name, getattr(options, name), 1)
    _checks.whole("run", "delay", options.delay, 0)
    if not options.model:
        half_life(options)
    _checks.one_of("run", "on_error", options.on_error, ON_ERROR)
    _checks.one_of("run", "formulas", options.formulas, FORMULAS)
    if options.new_classes and not options.model:
        raise _checks.wrong("run", "new_classes", "together with --model", True)
    for name in ("every", "resume"):
        if getattr(options, name) and not options.checkpoint:
            raise _checks.wrong("run", name, "together with --checkpoint", getattr(options, name))
    if options.checkpoint and options.out == "-":
        raise _checks.wrong("run", "out", "a file where there is a --checkpoint: what is printed stays printed", "-")
    files = {}
    for name in ("out", "plot", "trace", "save", "checkpoint"):
        path = getattr(options, name)
        if not path or path == "-":
            continue
        place = os.path.realpath(path)
        if not os.path.isdir(os.path.dirname(place)) or os.path.isdir(place):
            raise _checks.wrong("run", name, "a file in a folder that exists", path)
        if place == os.path.realpath(options.data) or place in files:
            raise _checks.wrong("run", name, "a file of its own", path)
        files[place] = name
    if options.plot:
        from gossamer import plots

        plots.new_figure(1, 1)  # whether there is something to draw with
        if os.path.splitext(options.plot)[1].lower() not in (".png", ".pdf", ".svg"):
            raise _checks.wrong("run", "plot", "a .png, .pdf or .svg file", options.plot)


class Interrupts:
    """Ctrl-C and SIGTERM: at once while a run waits for data, and after the chunk while it learns one."""

    def __init__(self) -> None:
        self.learning, self.wanted = False, False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._come) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def _come(self, number: int, frame: FrameType | None) -> None:
        again, self.wanted = self.wanted, True
        if not self.learning or again:
            raise KeyboardInterrupt


class _Run:
    def __init__(self, options: argparse.Namespace, interrupts: Interrupts, opened: ExitStack) -> None:
        self.task: Any = None
        #: The classes that may come; None for any.
        self.classes: list[Any] | None = None
        self.options, self.interrupts, self.opened = options, interrupts, opened
        for path in (options.checkpoint, options.save):
            remove_leftovers(path)
        self.checkpoint = Checkpoint(options.checkpoint, options.every)
        before = self.checkpoint.read(options.resume)
        if options.resume and before is None and not options.quiet:
            print(f"gossamer: there is no {options.checkpoint} yet: beginning at the first row", file=sys.stderr)
        self.drift = DriftAlarm(every=options.alarms_drift) if options.alarms_drift else None
        self.drifted: list[int] = []
        self.bar = Bar(options.data, on=not options.quiet)
        self.table = Table(self.bar, sys.stderr if options.out == "-" else sys.stdout, options.quiet)
        self.stream = self._begin() if before is None else self._resume(before)

    # ------------------------------------------------------------------------------------------------- setting up

    def _begin(self) -> Stream:
        options, rows = self.options, min(CHUNK, self.options.every or CHUNK)
        if options.model:
            self.encoder, self.model, self.task, schema = saved.read(options.model)
            stream = self._opened(rows, schema=schema)
            if schema.target is not None and stream.target is None:
                raise ValueError(f"{stream.name} must have the target {schema.target.name!r}. Got other columns.")
            if self.task == "classification" and not options.new_classes:
                self.classes = self.model.classes_.tolist()
        else:
            self.task = options.task
            stream = self._opened(rows)
            self.task = stream.task
            encoder = make_encoder(options, stream, options.learner)
            self.encoder, self.model = encoder, pipeline(build(options.learner, options, stream, encoder))
        self._evaluate(stream)
        self.out = self._output(stream, None)
        self.position = stream.position
        return stream

    def _opened(self, rows: int, **where: Any) -> Stream:
        stream = open_data(self.options, chunk_rows=rows, task=self.task, **where)
        self.opened.callback(stream.close)
        return stream

    def _resume(self, before: dict[str, Any]) -> Stream:
        options = self.options
        for name, value in _same(options).items():
            if name in before["options"] and before["options"][name] != value:
                rule = f"as in the checkpoint ({before['options'].get(name)})"
                raise _checks.wrong("run", name, rule, value)
        if (before["out"] is None) != (options.out is None):
            rule = "left out, as in the checkpoint" if before["out"] is None else "given, as in the checkpoint"
            raise _checks.wrong("run", "out", rule, options.out)
        self.model, self.task, self.position = before["model"], before["task"], before["position"]
        self.encoder = before["encoder"]
        self.classes = before.get("classes")
        if before.get("drift") is not None:
            self.drift, self.drifted = before["drift"], list(before["drifted"])
        if options.data == "-":
            skipped = f"row {before['row']:,}: standard input is read again from its start, and skipped up to there"
            print(f"gossamer: going on after {skipped}", file=sys.stderr)
        rows = min(CHUNK, options.every or CHUNK)
        stream = self._opened(rows, position=self.position)
        self._evaluate(stream)
        self.evaluation.restore(before["evaluation"])
        self.table.resumed(self.evaluation.trace)
        self.out = self._output(stream, before["out"])
        return stream

    def _evaluate(self, stream: Stream) -> None:
        measured = evaluation_options(self.options, stream, self.task)
        self.evaluation = Evaluation(self.model, delay=self.options.delay, progress=self.table.add, **measured)

    def _output(self, stream: Stream, length: int | None) -> Any:
        options = self.options
        if options.alarms and self.task != "novelty":
            raise _checks.wrong("run", "alarms", "left out where the task is not novelty detection", self.task)
        if not options.out:
            return None
        out = Output(
            options.out, self.task, stream.target is not None, options.out_format, length, options.alarms,
            self.evaluation.tells and (options.proba or self._log_odds()), options.formulas, bool(options.interval),
        )  # fmt: skip
        self.opened.callback(out.close)
        return out

    def _log_odds(self) -> bool:
        """Whether scores are log-odds: then probabilities are written without being asked for."""
        loss = self.model[-1]._loss() if self.task == "classification" else None
        return bool(getattr(loss, "log_odds", False))

    def _watch(self, chunk: Chunk, made: Any) -> None:
        """Print drift alarms over the losses of the predictions."""
        if self.drift is None:
            return
        for alarm in self.drift.update(strangeness(self.task, chunk.y, made)):
            self.drifted.append(alarm.row)
            self.bar.clear()
            words = f"drift at row {alarm.row:,}, since about row {alarm.since:,} (evidence {alarm.strength:,.0f} to 1)"
            print(f"{self.stream.name}: {words}", file=sys.stderr)

    # -------------------------------------------------------------------------------------------------- the work

    def go(self) -> None:
        """Learn the stream to its end, or to a signal."""
        if not self.options.quiet:
            for line in [*self.stream.notes, *self.stream.describe()]:
                print(line, file=sys.stderr)
        self.bar.begin(self.evaluation.row)
        start, first = time.perf_counter(), self.evaluation.row
        try:
            # rows of a pipe are learned as they come, and a wait for them can be ended
            for chunk in self.stream if self.options.data == "-" else ahead(self.stream):
                self.interrupts.learning = True
                self._learn(chunk)
                self.interrupts.learning = False
                if self.interrupts.wanted:
                    raise KeyboardInterrupt
                if self.checkpoint.due(self.evaluation.row):
                    self._mark(done=False)
        except KeyboardInterrupt:
            self._stop()
        except ValueError as error:
            raise self._stop_at(error) from None
        finally:
            self.bar.clear()
        self._finish(time.perf_counter() - start, self.evaluation.row - first)

    def _learn(self, chunk: Chunk) -> None:
        if self.classes is not None and (problem := unknown_label(self.classes, chunk, self.stream)) is not None:
            raise problem
        encoder = copy.deepcopy(self.encoder)
        try:
            made = self.evaluation.update(encode(encoder, chunk), chunk.y, chunk.time)
        except ValueError as error:
            raise refused(error, self.model, chunk, self.stream.name, self.stream.target) from None
        self.encoder = encoder  # what it has learned from rows that the model has learned too
        self._watch(chunk, made)
        if self.out is not None:
            self.out.write(chunk.rows, chunk.y, made)
            if self.options.data == "-":  # somebody may wait for these lines
                self.out.flush()
        self.position = chunk.position
        self.bar.update(int(chunk.rows[-1]), chunk.position)

    def _mark(self, done: bool) -> None:
        """Write the checkpoint, after the output that it counts."""
        length = None if self.out is None else self.out.sync()
        self.checkpoint.write(self.evaluation.row, {
            "done": done, "task": self.task, "position": self.position, "out": length, "classes": self.classes,
            "options": _same(self.options), "evaluation": self.evaluation.state(), "model": self.model,
            "encoder": self.encoder, "drift": self.drift, "drifted": self.drifted,
        })  # fmt: skip

    def _save(self) -> None:
        if self.options.save:
            kept = saved.content(self.encoder, self.model, self.task, self.stream.schema)
            with named(self.options.save):
                store.save(kept, self.options.save)

    def _stop(self) -> None:
        """After Ctrl-C: keep what there is, say where, and leave."""
        self.interrupts.wanted = False
        self._mark(done=False)
        self._save()
        kept = [path for path in (self.options.checkpoint, self.options.save) if path]
        words = f"saved in {' and '.join(kept)}" if kept else "nothing is saved (--save or --checkpoint would)"
        self.bar.clear()
        raise KeyboardInterrupt(f"after row {self.evaluation.row:,}; {words}")

    def _stop_at(self, error: ValueError) -> ValueError:
        """Bad data: the rows before were learned, and are saved; the checkpoint is where a run can go on."""
        notes = []
        if self.options.on_error != "stop" and self.evaluation.row:
            self._mark(done=False)
            self._save()
            if self.options.save:
                notes.append(f"{self.options.save} has the model after {self.evaluation.row:,} rows")
        if self.checkpoint.path is not None and self.checkpoint.row:
            notes.append(f"{self.checkpoint.path} is at row {self.checkpoint.row:,}; --resume goes on there")
        return ToldError("", error, f" ({'; '.join(notes)})" if notes else "")

    def _finish(self, seconds: float, rows: int) -> None:
        self._mark(done=True)
        self._save()
        trace = self.evaluation.finish()
        self.table.finish(trace)
        if self.options.trace:
            with named(self.options.trace):
                trace.to_csv(self.options.trace)
        if self.options.plot:
            from gossamer import plots

            with named(self.options.plot):
                plots.trace(
                    trace, self.options.plot, title=f"{self.stream.name}: {self.options.learner}", alarms=self.drifted
                )
        if not self.options.quiet:
            for line in [*notes(self.stream, self.encoder), *left_out(self.stream)]:
                print(line, file=sys.stderr)
            words = f"{rows:,} rows in {seconds:.1f} s ({rows / max(seconds, 1e-9):,.0f} rows/s)"
            print(f"{self.stream.name}: {self.task}, {words}", file=sys.stderr)


def strangeness(task: str, y: Any, made: Any) -> Any:
    """How badly each row was predicted, for drift alarms: errors of classes, distances, or low scores of a detector."""
    if task == "classification":
        told = np.where(np.isnan(made.chances), 0.0, made.chances)
        return 1.0 - told if made.tells else (~made.known | (made.labels != y)).astype(np.float64)
    return np.abs(np.asarray(y, dtype=np.float64) - made.labels) if task == "regression" else -made.scores


def left_out(stream: Stream) -> list[str]:
    """How many rows were passed over, and why."""
    missing, bad = stream.left_out
    what = "without a target" if stream._options.missing == "fill" else "with missing values"
    lines = [f"{stream.name}: {missing:,} rows {what} were left out"] if missing else []
    if bad:
        lines.append(f"{stream.name}: {bad:,} bad rows were left out; the first: {stream.first_bad}")
    return lines


def notes(stream: Stream, encoder: Any) -> list[str]:
    """What came after the start and was coped with: values of another kind, gaps, columns that are new."""
    strays = {name: [f"{count:,} values that are no numbers, such as {first!r}, taken for missing"]
              for name, (count, first) in stream.strays.items()}  # fmt: skip
    for name, (gaps, odd) in getattr(encoder, "coped_", {}).items():
        gaps -= stream.strays.get(name, (0, ""))[0]
        strays.setdefault(name, [])
        strays[name] += [f"{odd:,} values of another kind, taken for missing"] if odd else []
        strays[name] += [f"{gaps:,} missing, filled"] if gaps else []
    return [f"{name}: {', '.join(words)}" for name, words in strays.items() if words]


def _same(options: argparse.Namespace) -> dict[str, Any]:
    """Options as a checkpoint keeps them."""
    values = {name: getattr(options, name) for name in SAME}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
