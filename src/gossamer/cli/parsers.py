"""The options of each command. Nothing that learns or reads is imported here, so that --help is quick."""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path
from typing import Any

from gossamer.cli.options import add_data, add_model, add_modules

RUN_EXAMPLES = """\
examples:
  gossamer run data.csv --target price
  gossamer run data.csv --target y --learner norma:rate=0.2 --kernel laplace --budget 512 --plot errors.png
  gossamer run data.csv --target y --loss huber:delta=0.5 --rule gradient:rate=0.2 --budget random:size=200
  gossamer run data.csv --target y --out predictions.csv --save model.gsm
  zcat sensors.csv.gz | gossamer run - --ignore time --nu 0.01 --out alarms.csv --alarms
  gossamer run big.csv --target y --out p.csv --save m.gsm --checkpoint c.gsm            # kill -9 ...
  gossamer run big.csv --target y --out p.csv --save m.gsm --checkpoint c.gsm --resume   # ... goes on
"""
COMPARE_EXAMPLES = """\
examples:
  gossamer compare data.csv --target y --learners silk,norma,pa
  gossamer compare data.csv --target y --learners silk:C=0.1,silk:C=1,silk:C=10 --budget 128 --plot C.png
"""


#: The folders of the parts, and the classes that their files derive parts from.
FOLDERS = {"kernels": "Kernel", "losses": "Loss", "rules": "Rule", "budgets": "Budget"}


#: The name, the first base and the fields of a class.
CLASS = re.compile(r"^class (\w+)\((\w+).*\):((?:\n(?! {4}def |\S).*)*)", re.MULTILINE)


def list_names() -> str:
    """The names of the parts of the package, read in its files: to import these would take a second."""
    lines = ["parts (gossamer parts lists their parameters):"]
    for folder, base in FOLDERS.items():
        files = sorted((Path(__file__).parents[1] / folder).glob("*.py"))
        found = [match for file in files for match in CLASS.findall(file.read_text())]
        below = {base}
        for _ in found:  # until nothing more is derived from what is known
            below |= {name for name, parent, _ in found if parent in below}
        shown = [name for name, _, body in found if name in below and name[0] != "_" and ": Callable" not in body]
        names = ", ".join(sorted(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower() for name in shown))
        lines += textwrap.wrap(names, 100, initial_indent=f"  {folder + ':':<9}", subsequent_indent=" " * 11)
    return "\n".join(lines)


def _add(commands: Any, name: str, words: str, description: str, epilog: str | None = None) -> Any:
    """The parser of a command, which `gossamer.cli.NAME` runs."""
    shown = argparse.ArgumentDefaultsHelpFormatter if epilog is None else argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(name, help=words, description=description, epilog=epilog, formatter_class=shown)
    parser.set_defaults(module=name)
    return parser


def _add_results(parser: Any, out: str | None, words: str) -> None:
    """Where predictions go, and how they are written."""
    parser.add_argument("--out", default=out, metavar="FILE", help=words)
    parser.add_argument("--out-format", metavar="FORMAT", help="csv or jsonl, whatever the name")
    parser.add_argument("--formulas", default="quote", help="texts in CSV that a spreadsheet would run (=, +, -, @, "
                        "tab or carriage return first): quote them with ' (the default), error, or keep")  # fmt: skip
    parser.add_argument("--alarms", action="store_true", help="novelty: write only the rows that raise an alarm")


def _add_certainty(parser: Any) -> None:
    """How sure the model is, and drift alarms over how badly rows are predicted."""
    parser.add_argument("--proba", action="store_true", help="classes: write and measure calibrated probabilities")
    parser.add_argument("--interval", type=float, metavar="COVERAGE",
                        help="numbers: write and measure intervals that hold this share of the targets")  # fmt: skip
    parser.add_argument("--alarms-drift", type=int, nargs="?", const=100_000, metavar="ROWS",
                        help="print drift alarms; in the mean at most one in ROWS (100,000) is false")  # fmt: skip


def _add_plot(parser: Any, quiet: str) -> None:
    parser.add_argument("--plot", metavar="FILE", help="a picture of the errors: .png, .pdf or .svg")
    parser.add_argument("--quiet", action="store_true", help=quiet)


def add_run(commands: Any) -> None:
    """``gossamer run``."""
    parser = _add(
        commands, "run", "predict each row of a file or a pipe, then learn it",
        "Predict each row, then learn it, and show how well that goes. Columns and the task are found in "
        "the first 1,000 rows; numbers are scaled on the way; text becomes one feature per category.",
        RUN_EXAMPLES,
    )  # fmt: skip
    add_data(parser)
    add_model(parser)
    parser.add_argument("--learner", metavar="NAME[:SETTING=VALUE...]", help="auto (the default, without settings), "
                        "silk, norma, pa, projection, svmd, ...; left out where there is a --rule")  # fmt: skip
    parser.add_argument("--model", metavar="FILE", help="go on with a model that --save wrote")
    parser.add_argument("--new-classes", action="store_true", help="with --model: labels that it does not know join it "
                        "(default: an error that names them)")  # fmt: skip
    parser.add_argument("--delay", type=int, default=0, metavar="N", help="labels come N rows late")
    parser.add_argument("--labels", metavar="FILE", help="labels that come later, with the --target and the --id of "
                        "each row: after each row of DATA, which has no target, the next label is read")  # fmt: skip
    parser.add_argument("--id", metavar="COLUMN", help="with --labels: the column that joins them to their rows")
    parser.add_argument("--pending", type=int, default=1_000_000, metavar="N", help="with --labels: the most rows that "
                        "wait for a label (default: 1,000,000)")  # fmt: skip
    parser.add_argument("--on-error", default="save", help="what to do at a bad row: save what was learned before it "
                        "and stop (the default), stop without saving, or skip the row and count it")  # fmt: skip
    group = parser.add_argument_group("results")
    _add_results(group, None, "predictions, as CSV or, if it ends in .jsonl, JSON lines; - is standard output")
    _add_plot(group, "no columns, no table and no bar")
    _add_certainty(group)
    group.add_argument("--trace", metavar="FILE", help="the errors over time, as CSV")
    group.add_argument("--save", metavar="FILE", help="the model, for predict and --model; also after Ctrl-C "
                       "and, unless --on-error stop, at a bad row")  # fmt: skip
    group = parser.add_argument_group("checkpoints")
    group.add_argument("--checkpoint", metavar="FILE", help="write model, position and metrics there, every 5 s")
    group.add_argument("--every", type=int, metavar="N", help="every N rows instead")
    group.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one. Output and "
                       "model will be those of a run that was never stopped. A pipe is given again from its start; the "
                       "rows already learned are skipped")  # fmt: skip


def add_predict(commands: Any) -> None:
    """``gossamer predict``."""
    parser = _add(
        commands, "predict", "predictions of a saved model for new rows",
        "Predict the rows of a file or a pipe with a model that 'gossamer run --save' wrote. The model "
        "stays as it is. If the data have the target too, its error is told at the end.",
        "examples:\n  gossamer predict model.gsm new.csv --out predictions.csv\n"
        "  cat new.jsonl | gossamer predict model.gsm - --out-format jsonl | head",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="the file of the model")
    add_data(parser, target=False)
    _add_results(parser, "-", "CSV or, if it ends in .jsonl, JSON lines (default: standard output)")


def add_inspect(commands: Any) -> None:
    """``gossamer inspect``."""
    parser = _add(
        commands, "inspect", "what is in a saved model or a checkpoint",
        "Tell what a file of Gossamer holds: versions, classes, parameters, columns, arrays. The file is "
        "checked, the model is not made, and no code of it runs (there is none).",
        "example:\n  gossamer inspect model.gsm\n  gossamer inspect model.gsm --json | jq .value.task",
    )  # fmt: skip
    parser.add_argument("model", metavar="MODEL", help="the file")
    parser.add_argument("--json", action="store_true", help="all of it, as JSON")


def add_compare(commands: Any) -> None:
    """``gossamer compare``."""
    parser = _add(
        commands, "compare", "several learners and settings on one stream: a table and a picture",
        "Predict each row, then learn it, with several learners that see the same rows, scaled alike. "
        "Options of the model go to all learners that take them; settings behind a learner's name are its own.",
        COMPARE_EXAMPLES,
    )  # fmt: skip
    add_data(parser)
    add_model(parser)
    parser.add_argument("--learners", default="auto,silk,norma,pa", metavar="NAME[:SETTING=VALUE...],...",
                        help="which (default: silk,norma,pa; all is all there are for the task; online is the parts "
                        "of --loss, --rule and --budget)")  # fmt: skip
    _add_plot(parser, "no bar")


def add_parts(commands: Any) -> None:
    """``gossamer parts``."""
    parser = _add(
        commands, "parts", "the kernels, losses, rules and budgets by name, with their parameters",
        "List what --kernel, --loss, --rule and --budget take: each part by its name (and other names), its "
        "parameters with their defaults, and what it is. Settings follow a name: huber:delta=0.5,nu=0.1.",
        "examples:\n  gossamer parts\n  gossamer parts losses\n  gossamer parts --parts mylosses losses",
    )  # fmt: skip
    parser.add_argument("kind", nargs="?", choices=list(FOLDERS), help="only these")
    add_modules(parser)


def add_video(commands: Any) -> None:
    """``gossamer video``."""
    parser = _add(
        commands, "video", "background subtraction: what moves in a video",
        "One kernel novelty learner per pixel. INPUT is a video file, a folder or zip file of images "
        "(CDnet's layout included), or the number of a camera.",
    )  # fmt: skip
    parser.add_argument("input", help="video file, image folder, zip file, or number of a camera")
    parser.add_argument("--out", help="write the masks to this video (.mp4, .avi), or as images to this folder")
    parser.add_argument("--overlay", help="write the frames with the foreground marked, likewise")
    parser.add_argument("--stats", help="write a CSV file: frame, foreground, shadow (shares), milliseconds")
    parser.add_argument("--preview", help="write a contact sheet of frames and masks to this image")
    parser.add_argument("--evaluate", metavar="GROUNDTRUTH", help="masks in CDnet's layout, a folder or zip file")
    parser.add_argument("--patience", type=float, default=250.0, help="frames that a still object stays foreground")
    parser.add_argument("--alarms", type=float, help="share of alarms that every pixel holds, such as 0.01")
    parser.add_argument("--rule", choices=["silk", "norma"], default="silk", help="the learner")
    parser.add_argument("--budget", type=int, default=20, help="support points of a pixel")
    parser.add_argument("--threads", type=int, help="one per processor if not given")
    parser.add_argument("--median", type=int, default=5, help="side of the median filter over the mask; 1 for none")
    parser.add_argument("--first", type=int, default=1, help="the frame to start with, counted from 1")
    parser.add_argument("--last", type=int, help="the frame to end with")
    parser.add_argument("--fps", type=float, default=25.0, help="of the videos that are written")
    parser.add_argument("--load", help="go on with a subtractor that was saved")
    parser.add_argument("--save", help="save the subtractor at the end")


def add_demo(commands: Any) -> None:
    """``gossamer demo``."""
    parser = _add(
        commands, "demo", "seven learners side by side on a stream whose drift speeds up",
        "Auto, which has no settings, beside ILK, SILK, NORMA, truncated NORMA, and ILK and NORMA without forgetting, "
        "on a stream whose two classes rotate ever faster: a table while they learn, a summary, and a picture.",
    )  # fmt: skip
    parser.add_argument("--rows", type=int, default=4000, help="length of each stream")
    parser.add_argument("--trials", type=int, default=10, help="number of streams")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first stream; the next ones count on")
    parser.add_argument("--out", default="demo.png", help="the picture: .png, .pdf or .svg")


def add_serve(commands: Any) -> None:
    """``gossamer serve``."""
    parser = _add(
        commands, "serve", "predict and learn over HTTP",
        "Serve models over HTTP from one folder. What is acknowledged is on the disk and in the model; a server that "
        "is killed goes on where it was. The page at the address shows how well the models do.",
        "examples:\n  gossamer serve --data models\n  gossamer serve model.gsm --data models\n"
        "  gossamer serve token sensors --scopes predict,learn --data models    # prints a token, once\n"
        "  gossamer serve token --data models                                   # lists them\n"
        "  gossamer serve check --data models                                   # reads the whole journal\n"
        "  gossamer serve backup copy.db --data models                          # also while it is served",
    )  # fmt: skip
    parser.add_argument("what", nargs="*", metavar="MODEL|token|check|backup", help="files of models to import, or "
                        "token [NAME], check, backup FILE")  # fmt: skip
    parser.add_argument("--data", default="gossamer-data", metavar="DIR", help="the folder of the journal")
    parser.add_argument("--host", default="127.0.0.1", help="the address; others than this machine's need a token")
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--scopes", default="predict,learn", help="of a new token: predict, learn, admin")
    parser.add_argument("--revoke", action="store_true", help="forget a token")
    parser.add_argument("--certificate", metavar="FILE", help="for HTTPS, with --key")
    parser.add_argument("--key", metavar="FILE", help="for HTTPS")
    parser.add_argument("--limit", action="append", default=[], metavar="NAME=N", help="body, rows, queue, models, "
                        "keys, pending, connections, snapshot_rows, snapshot_seconds, snapshots, ...")  # fmt: skip
    parser.add_argument("--log-requests", action="store_true", help="a line for each request; never what is in a row")


COMMANDS = (add_run, add_predict, add_inspect, add_compare, add_parts, add_video, add_serve, add_demo)
