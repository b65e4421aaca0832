"""The frame of a campaign of kills: its options, how far it is, and its findings."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import killing


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


def run_rounds(text: str, count: int, work: Any, name: str, most: int = sys.maxsize) -> int:
    """Kill the work of a test's module at random moments, its cases in turn, each round to its end through at most
    ``most`` kills; then everything is as in a run that was never stopped."""
    campaign = Kills(text, count)
    with tempfile.TemporaryDirectory() as folder, killing.server(work.__file__) as run:
        whole = {}
        for case in work.CASES:
            whole[case] = Path(folder) / f"whole {case}", Path(folder) / f"log {case}"
            run(case, *whole[case])
        while campaign.go_on():
            case = list(work.CASES)[campaign.rounds % len(work.CASES)]
            with tempfile.TemporaryDirectory(dir=folder) as inside:
                place, limit = Path(inside), min(campaign.left, most)
                killed = killing.kill_and_go_on(run, case, place, whole[case], campaign.moments, most=limit)
                campaign.kills, campaign.rounds = campaign.kills + killed, campaign.rounds + 1
                try:
                    work.check_same(case, place / "killed", place / "lines", *whole[case])
                except AssertionError as error:
                    campaign.findings.append(f"round {campaign.rounds} ({case}), after {killed} kills: {error}")
    return campaign.finish(name)
