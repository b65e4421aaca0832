"""``gossamer compare``: several learners and settings on one stream, side by side."""

from __future__ import annotations

import argparse
import math
import sys
import time
from typing import Any

from gossamer import _checks
from gossamer._registry import split
from gossamer.cli import told
from gossamer.cli.evaluation import Evaluation
from gossamer.cli.options import build, encode, evaluation_options, make_encoder, open_data, tunes_itself
from gossamer.cli.parts import learners, refused
from gossamer.cli.progress import Bar

#: Metrics for which higher is better.
LARGE = {"accuracy", "precision", "recall", "f1", "auc"}


def work(options: argparse.Namespace) -> None:
    """Run all learners, print the table, draw the curves."""
    bar = Bar(options.data, on=not options.quiet)
    with open_data(options, chunk_rows=8192, task=options.task) as stream:
        specs = sorted(learners(stream.task)) if options.learners == "all" else split(options.learners)
        scaling = {spec: tunes_itself(spec, stream.task) for spec in specs if spec}
        encoders = {own: make_encoder(options, stream, spec) for spec, own in scaling.items()}  # two at most
        models = {spec: build(spec, options, stream, encoders[own], strict=False) for spec, own in scaling.items()}
        measured = evaluation_options(options, stream, stream.task)
        runs = {spec: (model, Evaluation(model, **measured)) for spec, model in models.items()}
        if not runs:
            raise _checks.wrong("compare", "learners", "at least one name", options.learners)
        seconds = dict.fromkeys(runs, 0.0)
        try:
            for chunk in stream:
                rows = {own: encode(e, chunk) for own, e in encoders.items()}
                for name, (model, run) in list(runs.items()):
                    start = time.perf_counter()
                    try:
                        run.update(rows[scaling[name]], chunk.y, chunk.time)
                    except ValueError as error:
                        problem = refused(error, model, chunk, stream.name, stream.target)
                        if len(runs) == 1:
                            raise problem from None
                        del runs[name]  # the others go on
                        bar.clear()
                        words, _ = told(problem, set(vars(options)))
                        print(f"gossamer: without {name}:", *words.split(), file=sys.stderr)
                    seconds[name] += time.perf_counter() - start
                bar.update(int(chunk.rows[-1]), chunk.position)
        finally:
            bar.clear()
    traces = {name: run.finish() for name, (_, run) in runs.items()}
    for line in table(traces, seconds):
        print(line)
    if options.plot:
        from gossamer import plots

        plots.trace(traces, options.plot, title=f"{stream.name}: {len(traces)} learners")


def table(traces: dict[str, Any], seconds: dict[str, float]) -> list[str]:
    """A line per learner, the best first."""
    metrics = next(iter(traces.values())).metrics
    wide = max(len(name) for name in [*traces, "learner"])
    lines = [f"{'learner':<{wide}}" + "".join(f"{name:>12}" for name in metrics) + f"{'support':>9}{'seconds':>9}"]
    for name, trace in sorted(traces.items(), key=lambda item: _rank(item[1], metrics)):
        last = trace.records[-1]
        totals = [last.total[metric] for metric in metrics]
        values = "".join(f"{total:>12.4f}" if abs(total) < 1e6 else f"{total:>12.3g}" for total in totals)
        lines.append(f"{name:<{wide}}{values}{last.support or 0:>9}{seconds[name]:>9.2f}")
    return lines


def _rank(trace: Any, metrics: list[str]) -> float:
    """By the first metric, or the area under the curve of a detector; a rate of alarms is neither good nor bad."""
    total = trace.records[-1].total
    chosen = "auc" if metrics[0] == "alarms" and "auc" in metrics else metrics[0]
    if chosen == "alarms":
        return 0.0
    value = float(total[chosen])
    return math.inf if math.isnan(value) else -value if chosen in LARGE else value
