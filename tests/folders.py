"""The helpers in all folders of the tests can be imported by their names once this module has been."""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), *(str(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir())]
if getattr(PathFinder.find_spec("river"), "origin", None) is None:
    sys.modules["river"] = None  # type: ignore[assignment]  # not installed: the folder tests/river must not stand for it
