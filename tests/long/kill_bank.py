"""A process that learns into a `ModelBank` with a path, killed at random moments: the same bytes as one never stopped.

    python tests/long/kill_bank.py --count 300

The work, and the server that forks it, are those of test_bank_kill.py. Every round learns a stream to its end
through many kills; then the models, the offset and the scores of every batch are those of the whole run.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import folders  # noqa: F401
import killing
import test_bank_kill as work
from kills import Kills


def main() -> int:
    campaign = Kills(__doc__, 300)
    with tempfile.TemporaryDirectory() as folder, killing.server(work.__file__) as run:
        whole = {}
        for case in work.CASES:
            whole[case] = Path(folder) / f"whole {case}", Path(folder) / f"log {case}"
            run(case, *whole[case])
        while campaign.go_on():
            case = list(work.CASES)[campaign.rounds % len(work.CASES)]
            place = Path(folder) / f"round {campaign.rounds}"
            place.mkdir()
            killed = killing.kill_and_go_on(run, case, place, whole[case], campaign.moments, most=campaign.left)
            campaign.kills, campaign.rounds = campaign.kills + killed, campaign.rounds + 1
            try:
                work.check_same(case, place / "killed", place / "lines", *whole[case])
            except AssertionError as error:
                campaign.findings.append(f"round {campaign.rounds} ({case}), after {killed} kills: {error}")
            for left in place.iterdir():
                left.unlink()
    return campaign.finish("killed banks")


if __name__ == "__main__":
    sys.exit(main())
