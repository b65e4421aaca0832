"""Processes whose labels come later, killed at random moments: no label is lost, and none is joined twice.

    python tests/long/kill_labels.py --count 80

The work, in memory, in a file of SQLite, behind an encoder and in a bank, is that of test_late_kill.py; kill_run.py has
the shell's. Every round makes all calls to the end through many kills; then the answers, the counts and the models are
those of a run that was never stopped.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import folders  # noqa: F401
import killing
import test_late_kill as work
from kills import Kills


def main() -> int:
    campaign = Kills(__doc__, 80)
    with tempfile.TemporaryDirectory() as folder, killing.server(work.__file__) as run:
        whole = {}
        for case in work.CASES:
            whole[case] = Path(folder) / f"whole {case}", Path(folder) / f"log {case}"
            run(case, *whole[case])
        while campaign.go_on():
            case = list(work.CASES)[campaign.rounds % len(work.CASES)]
            place = Path(folder) / f"round {campaign.rounds}"
            place.mkdir()
            most = min(campaign.left, 10)
            killed = killing.kill_and_go_on(run, case, place, whole[case], campaign.moments, most=most)
            campaign.kills, campaign.rounds = campaign.kills + killed, campaign.rounds + 1
            try:
                work.check_same(case, place / "killed", place / "lines", *whole[case])
            except AssertionError as error:
                campaign.findings.append(f"round {campaign.rounds} ({case}), after {killed} kills: {error}")
    return campaign.finish("late labels")


if __name__ == "__main__":
    sys.exit(main())
