"""The law of machines: every instruction set with fused multiply-add, and every compiler, gives the same bits.

    python tests/core/compare_machines.py "build/native/core_test" "qemu-aarch64 build/arm/core_test"

Each program is tests/core/core_test.cpp, built for some machine by some compiler. It runs once for every instruction
set that it and the processor have, checks the core, and prints a hash of the scores of every run. All must print the
same hashes; the baseline of x86-64, which rounds a product before it adds it, is checked but not compared.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from itertools import zip_longest

#: Tried with every program; "" is the best that there is.
SETS = ("", "avx2", "avx512", "baseline")


def run(program: str, isa: str, word: str) -> tuple[str, list[str]]:
    """The last message of a program, and what it prints; no message but "" if the instruction set is not there."""
    environment = {**os.environ, "GOSSAMER_ISA": isa}
    done = subprocess.run([*shlex.split(program), word], env=environment, capture_output=True, text=True)
    if "GOSSAMER_ISA" in done.stderr:
        return "", []
    if done.returncode:
        raise SystemExit(f"{program} with '{isa}': exit code {done.returncode}\n{done.stderr[-2000:]}")
    return done.stderr.strip().split("\n")[-1], done.stdout.split("\n")


def main(programs: list[str]) -> int:
    if not programs:
        raise SystemExit(__doc__)
    first: list[str] | None = None
    differ = False
    for program in programs:
        seen: set[str] = set()
        for isa in SETS:
            name = run(program, isa, "--name")[1]
            if not name:
                print(f"{program}: skipped, {isa} is not there", flush=True)
            if not name or name[0] in seen:
                continue
            seen.add(name[0])
            said, hashes = run(program, isa, "--hashes")
            if " on baseline" in said:
                print(f"{program}: {said}; without fused multiply-add, not compared", flush=True)
                continue
            first = hashes if first is None else first
            wrong = sum(a != b for a, b in zip_longest(first, hashes))
            differ |= wrong > 0
            print(f"{program}: {said}; {len(hashes) - 1:,} hashes, {wrong:,} differ from the first", flush=True)
    return int(differ or first is None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
