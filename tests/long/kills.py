"""The frame of a campaign of kills: its options, how far it is, and its findings."""

from __future__ import annotations

import argparse
import random
import time


class Kills:
    """Rounds of kills, up to a count or a time given on the command line."""

    def __init__(self, text: str | None, count: int) -> None:
        parser = argparse.ArgumentParser(description=str(text).splitlines()[0])
        parser.add_argument("--count", type=int, default=count, help="how many kills")
        parser.add_argument("--seconds", type=float, default=1e9, help="or for how long")
        parser.add_argument("--seed", type=int, default=0, help="of the moments")
        options = parser.parse_args()
        self.count, self.seconds, self.seed = options.count, options.seconds, options.seed
        self.kills, self.rounds, self.findings = 0, 0, list[str]()
        self.moments, self.started = random.Random(self.seed), time.monotonic()
        self.shown = self.started

    def go_on(self) -> bool:
        """Whether there is another round; says now and then how far it is."""
        if self.rounds and time.monotonic() - self.shown > 10:
            self.shown = time.monotonic()
            print(f"{self.kills} kills in {self.rounds} rounds, {len(self.findings)} findings", flush=True)
        return self.kills < self.count and time.monotonic() - self.started < self.seconds

    @property
    def left(self) -> int:
        """Kills still to be made."""
        return self.count - self.kills

    def finish(self, what: str) -> int:
        """Print the findings, and last what was tried; returns the exit code, 1 after a finding."""
        for finding in self.findings:
            print(finding)
        took = f"{time.monotonic() - self.started:.0f} s, seed {self.seed}"
        print(f"{what}: {self.kills} kills in {self.rounds} rounds, {took}; {len(self.findings)} findings")
        return 1 if self.findings else 0
