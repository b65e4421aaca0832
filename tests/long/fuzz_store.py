"""Forged store files: refused with a ValueError, or they load something that works.

    python tests/long/fuzz_store.py --count 200000

Every estimator, learner, pipeline, the video model and a checkpoint, changed in bytes, structure and arrays, most with
the checksums made right (forge.py). No crash, no hang of more than 2 s, at most 100 MB and 20 times the file.
"""

from __future__ import annotations

import os
import random
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cases
import folders  # noqa: F401
import forge

NAMES = sorted(forge.subjects())


def forged(number: int) -> tuple[str, bytes]:
    """The file of a case, the same in every run."""
    rng = random.Random(number)
    name = rng.choice(NAMES)
    return name, forge.forge(rng, forge.subjects()[name])


def case(number: int) -> str:
    """Load and use it."""
    raw = forged(number)[1]
    with cases.Limited(forge.ROOM + forge.FACTOR * len(raw)):
        return forge.attempt(raw)


if __name__ == "__main__":
    sys.exit(cases.main("forged store files", case, lambda number: forged(number)[0]))
