"""Processes whose labels come later, killed at random moments: no label is lost, and none is joined twice.

    python tests/long/kill_labels.py --count 80

The work, in memory, in a file of SQLite, behind an encoder and in a bank, is that of test_late_kill.py; kill_run.py has
the shell's. Every round makes all calls to the end through many kills; then the answers, the counts and the models are
those of a run that was never stopped.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import folders  # noqa: F401
import kills
import test_late_kill as work

if __name__ == "__main__":
    sys.exit(kills.run_rounds(__doc__, 80, work, "late labels", most=10))
