"""Online learning with kernels: learners that predict, then learn, one example at a time, in bounded memory.

A name is imported when it is first asked for (PEP 562), so that ``import gossamer`` and ``gossamer --help`` cost next
to nothing.
"""

import importlib
import importlib.util
from typing import TYPE_CHECKING

from gossamer import _moved
from gossamer._version import __version__

if TYPE_CHECKING:
    from gossamer import bounds, budgets, kernels, losses, rules, store
    from gossamer.clock import HalfLife
    from gossamer.estimators import (
        AdatronClassifier,
        AdditiveClassifier,
        AdditiveRegressor,
        ALMAClassifier,
        AutoClassifier,
        AutoRegressor,
        KernelPerceptron,
        Mixture,
        NewtonClassifier,
        NewtonRegressor,
        NORMAClassifier,
        NORMADetector,
        NORMARegressor,
        OnlineClassifier,
        OnlineDetector,
        OnlinePipeline,
        OnlineRegressor,
        OnlineScaler,
        PAClassifier,
        PARegressor,
        PerTarget,
        ProjectionClassifier,
        ProjectionRegressor,
        ROMMAClassifier,
        SILKClassifier,
        SILKDetector,
        SILKRegressor,
        SVMDClassifier,
        SVMDDetector,
        SVMDRegressor,
        merge,
        pipeline,
    )
    from gossamer.exceptions import CollapseWarning, DivergenceWarning, ParameterError
    from gossamer.learner import Learner
    from gossamer.losses import Taxonomy, taxonomy
    from gossamer.rows import RowEncoder
    from gossamer.store import load, loads as from_bytes

__all__ = [
    "ALMAClassifier",
    "AdatronClassifier",
    "AdditiveClassifier",
    "AdditiveRegressor",
    "AutoClassifier",
    "AutoRegressor",
    "CollapseWarning",
    "DivergenceWarning",
    "HalfLife",
    "KernelPerceptron",
    "Learner",
    "Mixture",
    "NORMAClassifier",
    "NORMADetector",
    "NORMARegressor",
    "NewtonClassifier",
    "NewtonRegressor",
    "OnlineClassifier",
    "OnlineDetector",
    "OnlinePipeline",
    "OnlineRegressor",
    "OnlineScaler",
    "PAClassifier",
    "PARegressor",
    "ParameterError",
    "PerTarget",
    "ProjectionClassifier",
    "ProjectionRegressor",
    "ROMMAClassifier",
    "RowEncoder",
    "SILKClassifier",
    "SILKDetector",
    "SILKRegressor",
    "SVMDClassifier",
    "SVMDDetector",
    "SVMDRegressor",
    "Taxonomy",
    "__version__",
    "bounds",
    "budgets",
    "from_bytes",
    "kernels",
    "load",
    "losses",
    "merge",
    "pipeline",
    "rules",
    "store",
    "taxonomy",
]

#: The module that has a name; the imports for type checkers above say the same (the tests compare them).
_HOMES = {
    "clock": "HalfLife",
    "estimators": "ALMAClassifier AdatronClassifier AdditiveClassifier AdditiveRegressor AutoClassifier AutoRegressor "
    "KernelPerceptron Mixture "
    "NORMAClassifier NORMADetector NORMARegressor NewtonClassifier NewtonRegressor OnlineClassifier OnlineDetector "
    "OnlinePipeline OnlineRegressor OnlineScaler PAClassifier PARegressor PerTarget "
    "ProjectionClassifier ProjectionRegressor ROMMAClassifier SILKClassifier SILKDetector SILKRegressor "
    "SVMDClassifier SVMDDetector SVMDRegressor merge pipeline",
    "exceptions": "CollapseWarning DivergenceWarning ParameterError",
    "learner": "Learner",
    "losses": "Taxonomy taxonomy",
    "rows": "RowEncoder",
    "store": "load from_bytes",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

_moved.install()

if not TYPE_CHECKING:  # a type checker that sees this would take any name for a good one

    def __getattr__(name: str) -> object:
        """A public name, or a module of the package, on first use."""
        home = _HOME.get(name)
        if home is not None:
            found = getattr(importlib.import_module(f"gossamer.{home}"), "loads" if name == "from_bytes" else name)
        elif not name.startswith("__") and importlib.util.find_spec(f"gossamer.{name}") is not None:
            found = importlib.import_module(f"gossamer.{name}")
        else:
            raise AttributeError(f"module 'gossamer' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
