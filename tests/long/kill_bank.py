"""A process that learns into a `ModelBank` with a path, killed at random moments: the same bytes as one never stopped.

    python tests/long/kill_bank.py --count 300

The work, and the server that forks it, are those of test_bank_kill.py. Every round learns a stream to its end
through many kills; then the models, the offset and the scores of every batch are those of the whole run.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import folders  # noqa: F401
import test_bank_kill as work


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="how many kills")
    parser.add_argument("--seconds", type=float, default=1e9, help="or for how long")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments, started, shown = random.Random(options.seed), time.monotonic(), time.monotonic()
    kills, rounds, findings = 0, 0, []
    with tempfile.TemporaryDirectory() as folder, work.server() as run:
        whole = {}
        for case in work.CASES:
            whole[case] = Path(folder) / f"whole {case}", Path(folder) / f"log {case}"
            run(case, *whole[case])
        while kills < options.count and time.monotonic() - started < options.seconds:
            case = list(work.CASES)[rounds % len(work.CASES)]
            place = Path(folder) / f"round {rounds}"
            place.mkdir()
            killed = work.kill_and_go_on(run, case, place, whole[case], moments, most=options.count - kills)
            kills, rounds = kills + killed, rounds + 1
            try:
                work.check_same(case, place / "killed", place / "lines", *whole[case])
            except AssertionError as error:
                findings.append(f"round {rounds} ({case}), after {killed} kills: {error}")
            for left in place.iterdir():
                left.unlink()
            if time.monotonic() - shown > 10:
                shown = time.monotonic()
                print(f"{kills} kills in {rounds} rounds, {len(findings)} findings", flush=True)
    for finding in findings:
        print(finding)
    print(f"killed banks: {kills} kills in {rounds} rounds, {time.monotonic() - started:.0f} s, seed {options.seed}; "
          f"{len(findings)} findings")  # fmt: skip
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
