"""``gossamer predict``: a saved model on new rows; it learns nothing."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

from gossamer.commands.options import add_data, open_data


def add(commands: Any) -> None:
    """Its parser."""
    parser = commands.add_parser(
        "predict",
        help="predictions of a saved model for new rows",
        description="Predict the rows of a file or a pipe with a model that 'gossamer run --save' wrote. The model "
        "stays as it is. If the data have the target too, its error is told at the end.",
        epilog="examples:\n  gossamer predict model.gsm new.csv --out predictions.csv\n"
        "  cat new.jsonl | gossamer predict model.gsm - --out-format jsonl | head",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", metavar="MODEL", help="the file of the model")
    add_data(parser, target=False)
    parser.add_argument("--out", default="-", metavar="FILE", help="CSV or, if it ends in .jsonl, JSON lines "
                        "(default: standard output)")  # fmt: skip
    parser.add_argument("--out-format", metavar="FORMAT", help="csv or jsonl, whatever the name")
    parser.add_argument("--alarms", action="store_true", help="novelty: write only the rows that raise an alarm")
    parser.set_defaults(work=work)


def work(options: argparse.Namespace) -> None:
    """Predict."""
    from gossamer._faces import Face
    from gossamer.commands import saved
    from gossamer.commands.output import Output

    model, task, schema = saved.read(options.model)
    face = Face(model, task)
    wrong = rows = 0.0
    with open_data(options, chunk_rows=8192, task=task, schema=schema) as stream:
        out = Output(options.out, task, stream.target is not None, options.out_format, alarms=options.alarms)
        try:
            for chunk in stream:
                made = face.predict(chunk.X, chunk.y if task == "regression" else None)
                out.write(chunk.rows, chunk.y, made)
                rows += len(chunk)
                if chunk.y is not None and task != "novelty":
                    off = np.abs(chunk.y - made.labels) if task == "regression" else chunk.y != made.labels
                    wrong += float(np.sum(off))
        finally:
            out.close()
    if stream.target is not None and task != "novelty":
        name = "mean absolute error" if task == "regression" else "error"
        print(f"{stream.name}: {name} {wrong / rows:.4f} over {rows:,.0f} rows", file=sys.stderr)
