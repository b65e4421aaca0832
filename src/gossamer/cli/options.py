"""Options that several commands share: how data are read, and the learner."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.estimators.base import Online
    from gossamer.streams import Schema, Stream


class ToldError(ValueError):
    """An error, with words before and after it that say where it came from; ``usage``: whether options are to blame."""

    def __init__(self, before: str, cause: ValueError, after: str = "", usage: bool = False) -> None:
        super().__init__(f"{before}{cause}{after}")
        self.before, self.cause, self.after, self.usage = before, cause, after, usage


#: Options of the learner and the kernel that are passed on if they were given.
MODEL = ("loss", "C", "rate", "schedule", "reg", "margin", "nu", "epsilon", "delta", "quantile", "radius", "budget",
         "rule", "fit_intercept", "skip", "half_life", "class_weight", "gamma", "degree", "coef0",
         "length")  # fmt: skip

#: How a part is given.
PART = "NAME[:PARAMETER=VALUE,...]"

#: Options of reading that are passed on if they were given.
READING = ("decimal", "encoding", "na_values", "max_features")


def add_data(parser: argparse.ArgumentParser, target: bool = True) -> None:
    """Add the options of the data and how they are read."""
    parser.add_argument("data", metavar="DATA", help="CSV, JSON lines, LIBSVM or Parquet, also .gz, .bz2, .xz and "
                        ".zst; - is standard input")  # fmt: skip
    group = parser.add_argument_group("data")
    if target:
        group.add_argument("--target", metavar="COLUMN", help="what to predict: a name, or a position (0 is the first, "
                           "-1 the last). Without: novelty detection")  # fmt: skip
        group.add_argument("--columns", type=_names, metavar="A,B,...", help="the features (default: all others)")
        group.add_argument("--time", metavar="COLUMN", help="when each row came: a date, or seconds; with --half-life")
        group.add_argument("--late", default="error", help="what becomes of a row earlier than the row before: error "
                           "(the default), or clamp, which takes the time of the row before")  # fmt: skip
        group.add_argument("--ignore", type=_names, default=(), metavar="A,B,...", help="columns that are no features")
        group.add_argument("--kinds", type=_pairs, metavar="COLUMN=KIND,...", help="number, boolean, category, mixed, "
                           "text, timestamp, cyclic:24, id or ignored (the target: number, integer, boolean, date or "
                           "text), in place of what the first 1,000 rows look like")  # fmt: skip
        group.add_argument("--categories", type=int, default=64, metavar="N", help="the most categories of a column "
                           "with a feature each; the others share some (default: 64)")  # fmt: skip
    group.add_argument("--format", help="csv, jsonl, libsvm or parquet (default: by name, then by content)")
    group.add_argument("--missing", default="fill", help="what to do where a value is missing or of another kind: fill "
                       "(the default) takes the mean so far and says so in a feature; error; skip the row")  # fmt: skip
    group.add_argument("--delimiter", help="of CSV (default: found)")
    group.add_argument("--header", action=argparse.BooleanOptionalAction, default=None, help="CSV begins with names "
                       "(default: found)")  # fmt: skip
    group.add_argument("--decimal", metavar="SIGN", help="of CSV: a comma reads 1,5 (default: a point)")
    group.add_argument("--encoding", metavar="NAME", help="of text: latin-1, cp1252, utf-16, ... (default: utf-8)")
    group.add_argument("--na-values", type=_marks, metavar="A,B,...", help="what else stands for a missing value, such "
                       "as -999,unknown. With a number first: --na-values=-999")  # fmt: skip
    group.add_argument("--max-features", type=int, metavar="N", help="refuse data with more features (default: 65,536)")
    if target:
        group.add_argument("--n-features", type=int, metavar="N", help="of LIBSVM (default: as in the first rows)")


def add_modules(parser: Any) -> None:
    """Modules that have parts of their own."""
    parser.add_argument("--parts", type=_modules, default=[], metavar="MODULE,...", help="import these first: what "
                        "they have of kernels, losses, rules and budgets has a name as all others")  # fmt: skip


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the options of the learner and the kernel."""
    group = parser.add_argument_group("model", "what is not given has the learner's default; see docs/cli.md")
    group.add_argument("--task", help="classification, regression or novelty (default: by the target)")
    group.add_argument("--anomaly", default="1", metavar="LABEL",
                       help="with --task novelty and a target: its label for an anomaly (default: 1)")  # fmt: skip
    group.add_argument("--kernel", metavar=PART, help="gaussian (the default), laplace, matern (that of the learner "
                       "additive), linear, ...; all parts are listed below")  # fmt: skip
    group.add_argument("--gamma", type=_value, help="width of the kernel; 'scale' (the default) is 1 / features")
    group.add_argument("--degree", type=int, help="of the polynomial kernel")
    group.add_argument("--coef0", type=float, help="of the polynomial kernel")
    group.add_argument("--length", type=float, help="of the Matern and exponential kernels (default: sqrt(features))")
    group.add_argument("--budget", type=_value, metavar=f"N or {PART}",
                       help="the most support points; none for all; project:N; auto; random:size=N; ...")  # fmt: skip
    group.add_argument("--loss", metavar=PART, help="hinge, logistic, squared, huber:delta=0.5, pinball, ...")
    group.add_argument("--rule", metavar=PART, help="gradient:rate=0.2, implicit, passive_aggressive, ...: these four "
                       "parts are the learner then")  # fmt: skip
    add_modules(group)
    for name, words in (
        ("C", "weight of the loss in implicit steps"), ("rate", "step size"), ("reg", "weight of the norm: forgetting"),
        ("margin", "of the hinge and novelty losses"), ("nu", "wanted fraction of errors or alarms"),
        ("epsilon", "of the epsilon-insensitive loss"), ("delta", "of the Huber loss"),
        ("quantile", "of the pinball loss"), ("radius", "norm constraint of the projection algorithms"),
    ):  # fmt: skip
        group.add_argument(f"--{name}", type=float, metavar="X", help=words)
    group.add_argument("--schedule", help="constant or inverse_sqrt")
    group.add_argument("--skip", type=float, help="novelty: alarms are rows with a p-value below this (0.05), "
                       "and runs of them are not learned")  # fmt: skip
    group.add_argument("--intercept", dest="fit_intercept", action=argparse.BooleanOptionalAction, default=None,
                       help="learn an offset")  # fmt: skip
    group.add_argument("--scale", action=argparse.BooleanOptionalAction, default=True,
                       help="scale the features online to mean 0 and deviation 1 (default: yes, but sparse rows are "
                       "learned as they are)")  # fmt: skip
    group.add_argument("--forget", type=float, default=0.0, metavar="X", help="the scaler looks back 1/X rows")
    group.add_argument("--half-life", metavar="TIME", help="what was learned loses half of its weight in this time: "
                       "7d, '12 hours'; with --time")  # fmt: skip
    group.add_argument("--class-weight", metavar="balanced or LABEL=X,...", help="what a row of each class counts for")
    group.add_argument("--metrics", type=_names, metavar="A,B,...", help="what is measured: error, loss, accuracy, "
                       "precision, recall, f1, auc, log_loss, brier, calibration; mae, rmse, pinball, coverage, "
                       "width; alarms")  # fmt: skip
    group.add_argument("--positive", metavar="LABEL", help="the class that precision, recall, f1 and auc are about "
                       "(default: the second of two; the mean over more)")  # fmt: skip
    group.add_argument("--window", type=int, metavar="N", help="rows of a line of the trace (default: 100, doubled as "
                       "the stream gets longer)")  # fmt: skip


def given(options: argparse.Namespace) -> dict[str, Any]:
    """The options of the learner and the kernel that were given."""
    found = {name: getattr(options, name) for name in MODEL if getattr(options, name) is not None}
    if found.get("budget") == "none":
        found["budget"] = None
    return found


def default_learner(options: argparse.Namespace) -> str:
    """The learner where none is named: one without settings, unless settings of another are given."""
    if options.rule:
        return "online"
    own = given(options)
    free = {"quantile", "half_life", "class_weight"}  # also of the learner without settings
    settled = isinstance(own.pop("budget", 1), int) and not own.keys() - free and not options.forget
    return "auto" if settled else "silk"


def open_data(options: argparse.Namespace, *, chunk_rows: int, task: str | None, schema: Schema | None = None,
              position: Any = None) -> Stream:  # fmt: skip
    """The stream of the options."""
    from gossamer.streams import open_stream

    if options.data != "-" and not os.path.exists(options.data):
        raise FileNotFoundError(f"{options.data}: no such file")
    if os.path.isdir(options.data):
        raise ValueError(f"{options.data} must be a file. Got a folder.")
    own = {} if schema is not None or not hasattr(options, "target") else {
        "target": options.target, "columns": options.columns, "ignore": options.ignore, "kinds": options.kinds,
        "categories": options.categories, "n_features": options.n_features,
    }  # fmt: skip
    reading = {name: getattr(options, name) for name in READING if getattr(options, name) is not None}
    return open_stream(
        options.data, format=options.format, missing=options.missing, delimiter=options.delimiter,
        header=options.header, chunk_rows=chunk_rows, task=task, schema=schema, position=position,
        encode=False, time=getattr(options, "time", None),
        bad_rows="skip" if getattr(options, "on_error", "") == "skip" else "error",
        **reading, **own,
    )  # fmt: skip


#: The metrics of --proba and of --interval.
PROBA, INTERVAL = ("log_loss", "brier", "calibration"), ("coverage", "width")


def evaluation_options(options: argparse.Namespace, stream: Stream, task: str) -> dict[str, Any]:
    """The options of the metrics, for `Evaluation`."""
    kind = None if stream.schema.target is None else stream.schema.target.kind
    found: dict[str, Any] = {"every": options.window, "metrics": options.metrics}
    for name, where, more in (("proba", "classification", PROBA), ("interval", "regression", INTERVAL)):
        value = getattr(options, name, None)
        if not value:
            continue
        if task != where:
            from gossamer import _checks

            raise _checks.wrong("run", name, f"left out where the task is not {where}", task)
        usual = options.metrics or (["error"] if name == "proba" else ["mae", "rmse"])
        found["metrics"] = [*usual, *(metric for metric in more if metric not in usual)]
        if name == "interval":
            found["coverage"] = value
    if task == "novelty" and kind:
        found["anomaly"] = label_of("anomaly", options.anomaly, kind)
    if options.positive is not None:
        if task != "classification":
            from gossamer import _checks

            raise _checks.wrong("run", "positive", "left out where the task is not classification", task)
        found["positive"] = label_of("positive", options.positive, kind)
    return found


def make_encoder(options: argparse.Namespace, stream: Stream, learner: str) -> Any:
    """What comes before the learner: an encoder of the columns; a scaler, or nothing, where all rows are numbers.

    A learner without settings scales numbers itself, and also has experts on unscaled ones. Where there is more than
    numbers, the encoder scales: places, hashes and circles have a scale of their own. Sparse rows are learned as they
    are: centred, they would not be sparse.
    """
    from gossamer.estimators import OnlineScaler
    from gossamer.rows import RowEncoder

    if stream.sparse:
        return None
    scale = options.scale
    if scale and not options.forget and tunes_itself(learner, stream.task):
        scale = not all(column.kind == "number" and not column.indicator for column in stream.schema.plan.used)
    if stream.plain:
        return OnlineScaler(options.forget, half_life=half_life(options)) if scale else None
    return RowEncoder(stream.schema.plan, scale=scale, forget=options.forget).settle()


def build(learner: str, options: argparse.Namespace, stream: Stream, encoder: Any, strict: bool = True) -> Online:
    """An estimator as the options say, for a stream, which has a target unless the task is novelty."""
    from gossamer import _checks
    from gossamer.cli.parts import make_kernel, make_learner

    if stream.task != "novelty" and stream.target is None:
        raise _checks.wrong(options.command, "target", f"given for {stream.task}", None)
    try:
        width = 1 if stream.sparse else getattr(encoder, "effective_width_", None) or len(stream.names)
        scale = options.scale and not stream.sparse
        kernel: Any = make_kernel(options.kernel, given(options), width, scale, learner)
        own = {}
        if tunes_itself(learner, stream.task):
            scaled = encoder is not None and getattr(encoder, "scale", True)
            kernel, own = kernel if options.kernel else None, {"scale": scale and not scaled}
        own |= {"half_life": half_life(options)} if options.half_life is not None else {}
        if options.class_weight is not None:
            own["class_weight"] = class_weight(options.class_weight, stream)
        return make_learner(learner, stream.task, kernel, {**given(options), **own}, strict)
    except ValueError as error:
        raise ToldError("", error, usage=True) from None


def encode(encoder: Any, chunk: Any) -> Any:
    """The rows of a chunk as the learner gets them; the encoder learns them."""
    if encoder is None:
        return chunk.X
    timed = getattr(encoder, "half_life", None) is not None
    return encoder.learn_transform(chunk.X, time=chunk.time) if timed else encoder.learn_transform(chunk.X)


def half_life(options: argparse.Namespace) -> Any:
    """The half-life of the options; None without."""
    from gossamer import _checks
    from gossamer.clock import LATE, HalfLife

    _checks.one_of("run", "late", options.late, LATE)
    if (options.half_life is None) != (options.time is None):
        told = "half_life" if options.half_life is None else "time"
        raise _checks.wrong("run", told, "given: --time and --half-life go together", None)
    return None if options.half_life is None else HalfLife(as_value(options.half_life), options.late)


def class_weight(text: str, stream: Stream) -> Any:
    """The weights of classes: balanced, or a number for each label."""
    if text == "balanced":
        return text
    kind = None if stream.schema.target is None else stream.schema.target.kind
    return {label_of("class_weight", label, kind): as_value(weight) for label, weight in _pairs(text).items()}


def tunes_itself(learner: str, task: str) -> bool:
    """Whether this is a learner without settings, which also scales."""
    return learner.partition(":")[0].strip() == "auto" and task != "novelty"


def label_of(option: str, text: str, kind: str | None) -> Any:
    """A label that an option names, in the type of the target's labels."""
    from gossamer import _checks

    try:
        if kind in ("integer", "number"):
            return float(text) if kind == "number" else int(text)
    except ValueError:
        raise _checks.wrong("run", option, f"a label of the target, which is of kind {kind!r}", text) from None
    return text.lower() in ("1", "true") if kind == "boolean" else text


def as_value(text: str) -> Any:
    """Parse a text of the command line: None, true, false, a number, or the text itself."""
    plain = text.strip()
    words = {"none": None, "true": True, "false": False}
    if plain.lower() in words:
        return words[plain.lower()]
    for kind in (int, float):
        try:
            return kind(plain)
        except ValueError:
            pass
    return plain


def _marks(text: str) -> list[str]:
    """Split a text at its commas; blanks are kept."""
    return text.split(",")


def _modules(text: str) -> list[str]:
    """Import modules, also from the current folder."""
    sys.path.append("")
    try:
        for name in _names(text):
            importlib.import_module(name)
    except ImportError as error:
        raise argparse.ArgumentTypeError(f"must be modules that can be imported. Got {error}.") from None
    finally:
        sys.path.remove("")
    return _names(text)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _pairs(text: str) -> dict[str, str]:
    pairs = [part.rpartition("=") for part in _names(text)]
    if not all(equals for _, equals, _ in pairs):
        raise argparse.ArgumentTypeError(f"must be like age=number,shop=text. Got {text!r} instead.")
    return {name: kind for name, _, kind in pairs}


def _value(text: str) -> Any:
    value = as_value(text)
    return "none" if value is None else value
