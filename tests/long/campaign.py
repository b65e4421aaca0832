"""Runs the campaigns of tests/long, with an instrumented core where that finds more, and keeps what came of them.

    python tests/long/campaign.py fuzz|soak|kill|tsan [--quick]

Each script prints what it tried and found as its last line. A whole run (not --quick) writes those lines into the
tables of docs/reliability.md.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "reliability.md"

#: campaign -> (script, arguments of a whole run, arguments of a quick one, the sanitizer of the core)
CAMPAIGNS: dict[str, list[tuple[str, list[str], list[str], str | None]]] = {
    "fuzz": [  # as many as it takes with the plain core, then a part of them with a sanitizer, which is slow
        ("fuzz_readers.py", ["--count", "5000000", "--processes", "2"], ["--count", "20000"], None),
        ("fuzz_readers.py", ["--count", "100000", "--seed", "1"], ["--count", "2000"], "address"),
        ("fuzz_store.py", ["--count", "200000"], ["--count", "1000"], None),
        ("fuzz_store.py", ["--count", "10000", "--seed", "1"], ["--count", "200"], "address"),
        ("fuzz_bank.py", ["--count", "20000"], ["--count", "500"], None),
        ("fuzz_bank.py", ["--count", "1000", "--seed", "1"], ["--count", "50"], "address"),
    ],
    "soak": [("soak.py", [], ["--rows", "12000000"], None)],
    "kill": [
        ("kill_run.py", ["--count", "300"], ["--count", "10"], None),
        ("kill_bank.py", ["--count", "300"], ["--count", "10"], None),
        ("kill_labels.py", ["--count", "80"], ["--count", "10"], None),
        ("kill_spark.py", ["--count", "10"], ["--count", "1"], None),
    ],
    "tsan": [("threads.py", ["--threads", "8", "--seconds", "60"], ["--threads", "4", "--seconds", "3"], "thread")],
}
RUNTIMES = {"address": ["libasan.so", "libubsan.so"], "thread": ["libtsan.so"]}


def surroundings(sanitizer: str | None) -> dict[str, str]:
    """The environment of a script: with a sanitizer, its package and its runtime come first."""
    if sanitizer is None:
        return dict(os.environ)
    package = ROOT / "build" / sanitizer / "package"
    if not (package / "gossamer").is_dir():
        raise SystemExit(f"{package} is missing: `make fuzz` and `make tsan` build it")
    compiler = os.environ.get("CXX", "g++")
    found = [subprocess.check_output([compiler, f"-print-file-name={name}"], text=True) for name in RUNTIMES[sanitizer]]
    return {
        **os.environ,
        "PYTHONPATH": str(package),
        "LD_PRELOAD": " ".join(name.strip() for name in found),
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "TSAN_OPTIONS": f"suppressions={HERE / 'tsan.supp'}:exitcode=66:history_size=4",
    }


def run(script: str, arguments: list[str], sanitizer: str | None) -> tuple[int, str, float]:
    """The exit code, the last line and the time of a script, whose lines are shown as they come."""
    print(f"{script} {' '.join(arguments)}" + (f" ({sanitizer} sanitizer)" if sanitizer else ""), flush=True)
    start, last = time.perf_counter(), ""
    command = [sys.executable, "-u", str(HERE / script), *arguments]
    with subprocess.Popen(command, env=surroundings(sanitizer), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(f"  {line}", end="", flush=True)
            last = line.strip() or last
    return process.returncode, last, time.perf_counter() - start


def keep(campaign: str, lines: list[str]) -> None:
    """Put the lines into the campaign's table of the page."""
    made = f"{date.today()}, Python {platform.python_version()}, {platform.machine()}"
    head = ["| script | what was tried and found | minutes |", "|---|---|---|"]
    table = "\n".join([*head, *lines, "", f"Made on {made}."])
    (ROOT / "benchmarks" / "results" / f"{campaign}.md").write_text(f"{table}\n")
    marks = f"<!-- {campaign}:begin -->", f"<!-- {campaign}:end -->"
    text = PAGE.read_text()
    new = re.sub(f"{marks[0]}.*?{marks[1]}", lambda _: f"{marks[0]}\n{table}\n{marks[1]}", text, flags=re.DOTALL)
    PAGE.write_text(new)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("campaign", choices=list(CAMPAIGNS))
    parser.add_argument("--quick", action="store_true", help="a short version, which writes nothing")
    options = parser.parse_args()
    failed, lines = [], []
    for script, whole, quick, sanitizer in CAMPAIGNS[options.campaign]:
        code, last, seconds = run(script, quick if options.quick else whole, sanitizer)
        core = f", {sanitizer} sanitizer" if sanitizer else ""
        lines.append(f"| `{' '.join([script, *whole])}`{core} | {last.replace('|', '/')} | {seconds / 60:.1f} |")
        if code:
            failed.append(f"{script} (exit code {code})")
    if not options.quick:
        keep(options.campaign, lines)
    print(f"{options.campaign}: " + (f"failed: {', '.join(failed)}" if failed else "passed"))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
