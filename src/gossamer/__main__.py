"""``python -m gossamer`` is the command ``gossamer``."""

import signal
import sys

if __name__ == "__main__":
    # while modules are imported, Ctrl-C ends the process without a word; `main` takes it over when the work begins
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gossamer.cli import main

    sys.exit(main())
