"""Everything that must hold before a release, checked; nothing is uploaded. `make release-check` runs it.

python tools/release.py              # all of it, with a wheel made and tried: some minutes
python tools/release.py --quick      # version, changelog, tag, tree and promises only
python tools/release.py --rehearse   # the same of a version in development, 0.2.0.dev0, as if it were 0.2.0
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from dist import DIST, ROOT, run, version

#: Places that must not repeat the version: they would be forgotten.
ELSEWHERE = (
    "pyproject.toml",
    "CMakeLists.txt",
    "CITATION.cff",
    "README.md",
    "docs/conf.py",
    "src/gossamer/__init__.py",
)


def problems(rehearse: bool = False) -> list[str]:
    """What is not yet as it must be, one sentence each; with ``rehearse``, of a version in development."""
    number, found = version(), []
    final = re.sub(r"\.dev\d+$", "", number)
    if not re.fullmatch(r"\d+\.\d+\.\d+", final):
        found.append(f"The version must be three numbers, and .dev0 before its release. Got {number!r} instead.")
    if (number != final) != rehearse:
        must = "end in .dev0 to be rehearsed" if rehearse else "be three numbers to be released, or use --rehearse"
        found.append(f"The version must {must}. Got {number!r} instead.")
    pattern = rf"(?<![\d.])({re.escape(number)}|{re.escape(final)})(?![\d.])"
    found += [
        f"{name} repeats the version {number}." for name in ELSEWHERE if re.search(pattern, (ROOT / name).read_text())
    ]
    if run("git", "tag", "--list", f"v{final}", cwd=ROOT).strip():
        found.append(f"The tag v{final} exists: the version must be a new one.")
    headings = re.findall(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    first, day = headings[0] if headings else ("missing", "")
    if first != final:
        found.append(f"The first entry of CHANGELOG.md must be {final}. It is {first}.")
    elif rehearse and day != "unreleased":
        found.append(f"The entry {final} of CHANGELOG.md must be unreleased. It says {day!r}.")
    elif not rehearse and not re.fullmatch(r"\d{4}-\d{2}-\d{2}", day):
        found.append(f"The entry {final} of CHANGELOG.md must have a date. It says {day!r}.")
    if not rehearse and not (ROOT / "tests" / "data" / f"store-{final}.gsm").exists():
        found.append(f"tests/data/store-{final}.gsm is missing: python tests/data/make_store.py release")
    changed = run("git", "status", "--porcelain", cwd=ROOT).splitlines()
    if changed:
        found.append(
            f"The git tree must be clean. {len(changed)} files are not committed, {changed[0].split()[-1]} first."
        )
    return found + broken_promises(final)


def broken_promises(number: str) -> list[str]:
    """Deprecated things that were to go before or in this release, and are still there."""
    text = (ROOT / "src" / "gossamer" / "_moved.py").read_text()
    due = re.search(r"goes in (\d+\.\d+)", text)
    entries = re.search(r"^MOVED\b[^\n]*\{\n    \"", text, re.MULTILINE)
    if due and entries and pair(number) >= pair(due[1]):
        return [f"The old import paths in src/gossamer/_moved.py were to go in {due[1]}."]
    return []


def pair(number: str) -> tuple[int, int]:
    """Major and minor version.

    >>> pair("0.10.2") > pair("0.9")
    True
    """
    major, minor = number.split(".")[:2]
    return int(major), int(minor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without making anything")
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="Pythons that make a wheel and try it")
    parser.add_argument("--rehearse", action="store_true", help="of a version in development")
    options = parser.parse_args()
    found = problems(options.rehearse)
    for problem in found:
        print(problem)
    if found:
        sys.exit(f"release-check: {len(found)} things to do before {version()}")
    if options.quick:
        print(f"release-check: {version()} may be {'rehearsed' if options.rehearse else 'made'}")
        return
    made = subprocess.run([sys.executable, ROOT / "tools" / "dist.py", "--python", *options.python])
    if made.returncode:
        sys.exit("release-check: the files of the release are not as they must be")
    print(run(sys.executable, "-m", "twine", "check", "--strict", *sorted(DIST.iterdir())).strip())
    what = "rehearsed, not to be uploaded" if options.rehearse else "passed"
    print(f"release-check: {what}. dist/ has {version()} as far as this machine can make it. Next: docs/releasing.md")


if __name__ == "__main__":
    main()
