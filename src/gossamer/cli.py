"""The command line. A command is a function that adds its parser; its work is done elsewhere."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from gossamer import __version__

#: What the shell sees: 128 + the number of the signal.
INTERRUPTED, BROKEN_PIPE = 130, 141

EXAMPLES = """\
examples:
  gossamer demo                                  six learners on a drifting stream, and a picture in demo.png
  gossamer demo --rows 20000 --trials 5          a longer stream
  gossamer demo --seed 7 --out /tmp/drift.svg    other streams, another picture
"""


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that tells an error in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit code: 0, 2 after an error told in one line, 130 after Ctrl-C.

    >>> main(["demo", "--rows", "3"])
    2
    """
    try:
        options = make_parser().parse_args(arguments)
        options.work(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("\ngossamer: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # the reader (head, less) has gone; what is still buffered has nowhere to go
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (ValueError, OSError, ImportError) as error:
        print("gossamer:", " ".join(str(error).split()), file=sys.stderr)
        return 2
    return 0


def make_parser() -> Parser:
    """The parser of everything."""
    parser = Parser(
        prog="gossamer",
        description="Online learning with kernels.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gossamer {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)
    add_demo(commands)
    return parser


def add_demo(commands: Any) -> None:
    """``gossamer demo``."""
    parser = commands.add_parser(
        "demo",
        help="six learners side by side on a drifting stream",
        description="ILK, SILK, NORMA and truncated NORMA, and the first and third without forgetting, on a stream "
        "whose two classes rotate: a table while they learn, a summary, and a picture.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--rows", type=int, default=4000, help="length of each stream")
    parser.add_argument("--trials", type=int, default=20, help="number of streams")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first stream; the next ones count on")
    parser.add_argument("--out", default="demo.png", help="the picture: .png, .pdf or .svg")
    parser.set_defaults(work=run_demo)


def run_demo(options: argparse.Namespace) -> None:
    # imported here: a command loads what it needs, and not what the others need
    from gossamer import demo

    demo.run(options.rows, options.trials, options.seed, options.out)


if __name__ == "__main__":
    sys.exit(main())
