"""``gossamer demo``."""

from __future__ import annotations

import argparse

from gossamer import demo


def work(options: argparse.Namespace) -> None:
    """Run it."""
    demo.run(options.rows, options.trials, options.seed, options.out)
