"""A process that learns into a `ModelBank` with a path, killed at random moments: the same bytes as one never stopped.

    python tests/long/kill_bank.py --count 300

The work, and the server that forks it, are those of test_bank_kill.py. Every round learns a stream to its end
through many kills; then the models, the offset and the scores of every batch are those of the whole run.
"""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import folders  # noqa: F401
import kills
import test_bank_kill as work

if __name__ == "__main__":
    sys.exit(kills.run_rounds(__doc__, 300, work, "killed banks"))
