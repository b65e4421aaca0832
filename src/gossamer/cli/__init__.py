"""The command line: the parser, and how errors and signals become exit codes. Each command has a file."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from gossamer._version import __version__
from gossamer.cli import parsers
from gossamer.cli.options import ToldError

#: Exit codes: bad data, bad usage, and 128 + the number of the signal.
BAD_DATA, BAD_USAGE, INTERRUPTED, BROKEN_PIPE = 1, 2, 130, 141

EXAMPLES = """\
examples:
  gossamer run data.csv --target price           predict each row, then learn it; a table of errors on the way
  zcat log.gz | gossamer run - --out alarms.csv  a pipe without a target: novelty detection
  gossamer run data.csv --target y --save m.gsm  keep the model
  gossamer predict m.gsm new.csv                 use it
  gossamer inspect m.gsm                         what is in the file
  gossamer compare data.csv --target y --learners silk,norma,pa --plot them.png
  gossamer video street.mp4 --out masks.mp4      what moves in a video
  gossamer serve --data models                   predict and learn over HTTP, with a page to watch it
  gossamer demo --rows 20000                     seven learners on a drifting stream, and a picture in demo.png

gossamer COMMAND --help tells the options of a command.
exit codes: 0 done, 1 bad data or file, 2 bad usage, 130 after Ctrl-C
"""

#: What the shell calls a parameter that is no option.
WORDS = {"X": "the features", "y": "the target", "position": "--resume", "state": "--resume", "path": "the file"}


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that prints an error in one line, and lists the parts where it has options for them."""

    def format_help(self) -> str:
        text = super().format_help()
        return f"{text}\n{parsers.list_names()}\n" if "--kernel" in text else text

    def error(self, message: str) -> NoReturn:
        self.exit(BAD_USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 1 or 2 after an error in one line, 130 after Ctrl-C.

    >>> main(["demo", "--rows", "3"])
    2
    """
    with _quiet_interrupts(arguments is None):
        options = make_parser().parse_args(arguments)
        command = importlib.import_module(f"gossamer.cli.{options.module}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = _show_warning
            command.work(options)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        print("\ngossamer: interrupted", *interrupt.args, file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader (head, less) has closed the pipe: discard the buffered output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (ValueError, OSError, ImportError) as error:
        message, usage = told(error, set(vars(options)))
        print("gossamer:", *message.split(), file=sys.stderr)
        return BAD_USAGE if usage or options.command == "demo" else BAD_DATA
    return 0


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Format a warning of the library in one line."""
    print("gossamer: warning:", " ".join(str(message).split()), file=sys.stderr)


def told(error: Exception, options: set[str]) -> tuple[str, bool]:
    """An error in the shell's words, and whether an option is to blame.

    >>> from gossamer.exceptions import ParameterError
    >>> told(ParameterError("SILK", "budget", "an int in [1, inf)", 0), {"budget"})
    ('--budget must be an int in [1, inf). Got 0 instead.', True)
    """
    from gossamer.exceptions import ParameterError
    from gossamer.streams._chunk import BadRowError
    from gossamer.streams._schema import Setting
    from gossamer.streams._source import ChangedDataError

    if isinstance(error, ToldError):
        message, usage = told(error.cause, options)
        return f"{error.before}{message}{error.after}", usage or error.usage
    if isinstance(error, ChangedDataError):
        need = f"--resume needs the data that the checkpoint was made of: {error.changed}"
        return f"{need}. Remove the checkpoint to begin anew.", False
    if isinstance(error, ParameterError):
        named = [name for name in (error.parameter, f"{error.parameter}s") if name in options]
        words = WORDS.get(error.parameter, f"the setting '{error.parameter}'")
        return error.told(f"--{named[0].replace('_', '-')}" if named else words), bool(named)
    if isinstance(error, BadRowError):
        pieces = (_option(part.name, part.value) if isinstance(part, Setting) else part for part in error.args)
        return "".join(pieces), False
    return str(error), False


def _option(name: str, value: str) -> str:
    return f"--{name.replace('_', '-')} {value}".rstrip()


def make_parser() -> Parser:
    """The parser of the whole command line."""
    parser = Parser(
        prog="gossamer",
        description="Online learning with kernels.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gossamer {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", dest="command", required=True)
    for add in parsers.COMMANDS:
        add(commands)
    return parser


@contextlib.contextmanager
def _quiet_interrupts(ours: bool) -> Iterator[None]:
    """While modules are imported, Ctrl-C ends a process that is ``ours`` without a word: nothing has been done yet.

    An exception would do worse: the initialisation of a compiled module turns it into an ImportError.
    """
    if not ours or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    sys.exit(main())
