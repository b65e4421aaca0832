"""``gossamer predict``: a saved model on new rows; it learns nothing."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from gossamer import _checks
from gossamer.cli import saved
from gossamer.cli.options import open_data
from gossamer.cli.output import FORMULAS, Output
from gossamer.cli.run import left_out
from gossamer.evaluate.adapters import Face


def work(options: argparse.Namespace) -> None:
    """Predict."""
    _checks.one_of("predict", "formulas", options.formulas, FORMULAS)
    encoder, model, task, schema = saved.read(options.model)
    face = Face(model, task)
    wrong = rows = 0.0
    with open_data(options, chunk_rows=8192, task=task, schema=schema) as stream:
        told = face.tells and bool(getattr(face.model[-1]._loss(), "log_odds", False))
        out = Output(
            options.out, task, stream.target is not None, options.out_format, alarms=options.alarms,
            probabilities=told, formulas=options.formulas,
        )  # fmt: skip
        try:
            for chunk in stream:
                X = chunk.X if encoder is None else encoder.transform(chunk.X)
                made = face.predict(X, chunk.y if task == "regression" else None)
                out.write(chunk.rows, chunk.y, made)
                rows += len(chunk)
                if chunk.y is not None and task != "novelty":
                    off = np.abs(chunk.y - made.labels) if task == "regression" else chunk.y != made.labels
                    wrong += float(np.sum(off))
        finally:
            out.close()
    for line in left_out(stream):
        print(line, file=sys.stderr)
    if stream.target is not None and task != "novelty":
        name = "mean absolute error" if task == "regression" else "error"
        print(f"{stream.name}: {name} {wrong / rows:.4f} over {rows:,.0f} rows", file=sys.stderr)
