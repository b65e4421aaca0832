"""``gossamer demo``."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Its parser."""
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
    parser.set_defaults(work=work)


def work(options: argparse.Namespace) -> None:
    """Run it."""
    from gossamer import demo

    demo.run(options.rows, options.trials, options.seed, options.out)
