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


def requirements(extras: list[str], base: bool = True, without: list[str] | None = None) -> list[str]:
    """The requirements of the package (``base``) and of some extras, each once."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [project["dependencies"]] if base else []
    found += [project["optional-dependencies"][extra] for extra in extras]
    return sorted({line for lines in found for line in lines if split(line)[0] not in (without or [])})


def split(requirement: str) -> tuple[str, str, str]:
    """Name, bounds and marker.

    >>> split("dask[distributed]>=2024.8,<2030; sys_platform == 'linux'")
    ('dask[distributed]', '>=2024.8,<2030', "; sys_platform == 'linux'")
    """
    parts = re.fullmatch(r"([\w.\[\]-]+)([^;]*?)\s*(;.*)?", requirement)
    if parts is None:
        raise SystemExit(f"{requirement!r} is no requirement")
    return parts[1], parts[2], parts[3] or ""


def lowest(lines: list[str]) -> list[str]:
    """Requirements with their lower bound as the only version; of several bounds, the highest.

    >>> lowest(["pytest>=8.0.0,<9.2", "numpy>=1.26", "numpy>=2.2.5", "ruff==0.17.4"])
    ['pytest==8.0.0', 'numpy==2.2.5', 'ruff==0.17.4']
    """
    found: dict[str, tuple[list[int], str]] = {}
    for name, bounds, marker in map(split, lines):
        least = re.search(r"[>=]=([\d.]+)", bounds)
        if least is None:
            raise SystemExit(f"{name}{bounds} has no lower bound")
        entry = ([int(part) for part in least[1].split(".")], f"{name}=={least[1]}{marker}")
        found[name] = max(entry, found.get(name, entry))
    return [line for _, line in found.values()]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*")
    parser.add_argument("--lowest", action="store_true", help="the lowest versions instead of all that are allowed")
    parser.add_argument("--only", action="store_true", help="without what the package itself needs")
    parser.add_argument("--without", nargs="+", default=[], help="distributions to leave out")
    options = parser.parse_args()
    lines = requirements(options.extras, not options.only, options.without)
    print("\n".join(lowest(lines) if options.lowest else lines))
