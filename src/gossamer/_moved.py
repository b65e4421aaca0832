"""The import paths of 0.1.0 that have moved: they go on working until 0.3, with a DeprecationWarning."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import warnings
from types import ModuleType
from typing import Any

#: Old module, and the modules that have its names now; the warning names the first.
MOVED = {
    "additive": ("estimators.additive",),
    "classic": ("estimators.classic",),
    "comparators": ("bounds.comparators",),
    "expansion": ("_engine.expansion", "_typing"),
    "finite": ("budgets.features",),
    "frames": ("video.frames",),
    "inverse": ("budgets.gram_inverse",),
    "loop": ("_engine.loop",),
    "machines": ("_engine.native", "_engine.trees", "_engine.blocks", "_engine.select"),
    "merging": ("estimators.combine",),
    "multiclass": ("losses", "losses.multiclass", "losses.taxonomies"),
    "pipelines": ("estimators.pipelines",),
    "rescale": ("estimators.rescale",),
    "reshaping": ("budgets", "budgets.base", "budgets.project"),
    "scaling": ("estimators.scaler",),
    "semiseparable": ("kernels.additive",),
    "trace": ("evaluate.trace",),
}


class Finder:
    """Finds an old module, and loads it with the names of the new modules."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        finder: Any = self
        package, _, name = fullname.partition(".")
        return importlib.util.spec_from_loader(fullname, finder) if package == "gossamer" and name in MOVED else None

    def create_module(self, spec: Any) -> None:
        """The module that Python makes by itself."""

    def exec_module(self, module: ModuleType) -> None:
        homes = MOVED[module.__name__.partition(".")[2]]
        text = f"{module.__name__} has moved to gossamer.{homes[0]}; the old name goes in 0.3."
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        for home in reversed(homes):
            found = vars(importlib.import_module(f"gossamer.{home}"))
            vars(module).update({name: value for name, value in found.items() if not name.startswith("__")})


def install() -> None:
    """Make the old paths importable."""
    sys.meta_path.append(Finder())  # after all other finders: existing modules are found as usual
