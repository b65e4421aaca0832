"""Adapters for river: every estimator of the package as a river model, with the same name and parameters.

Rows are dicts. A feature may appear and vanish at any time: it is 0 where it is missing, and the model is the same as
if it had been there, at 0, from the start. The order of the keys changes nothing. ``learn_many`` takes frames (pandas,
polars, ...) and learns their rows one by one.

There is no ``n_passes``, ``shuffle`` or ``random_state``: a stream is learned once, in its order. ``gamma="scale"`` of
`Gaussian` and `Laplace` settles with the first row, at 1 / its features: right for standardised features, so write
``StandardScaler() | model``. ``cost`` is a `Taxonomy`, or a matrix over the labels 0, 1, ...

>>> from river import datasets, evaluate, metrics, preprocessing
>>> model = preprocessing.StandardScaler() | SILKClassifier(budget=512)
>>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
Accuracy: 89.83%
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import gossamer
from gossamer.estimators import OnlineClassifier, OnlineDetector, OnlineRegressor
from gossamer.estimators.base import Online
from gossamer.river.models import Classifier, Detector, Model, Regressor
from gossamer.river.rows import RowEncoder as RowEncoder
from gossamer.river.several import MultiLabel as MultiLabel, MultiTarget as MultiTarget

#: Parameters of ``fit``, which a stream does not have.
OF_FIT = ("n_passes", "shuffle", "random_state")
AVERAGE = '\n    average : whether predictions use the mean of all hypotheses (True, or "sparse" to bound its memory).'


def _constructor(signature: inspect.Signature) -> Callable[..., None]:
    """An ``__init__`` that takes and stores the parameters, and does nothing else."""

    def __init__(self: Any, *args: Any, **parameters: Any) -> None:  # noqa: N807
        given = signature.bind(self, *args, **parameters)
        given.apply_defaults()
        self.__dict__.update({name: value for name, value in given.arguments.items() if name != "self"})

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


def _face(estimator: type[Online], kind: type[Model]) -> type[Model]:
    """The river class of an estimator."""
    signature = inspect.signature(estimator.__init__)
    kept = [parameter for name, parameter in signature.parameters.items() if name not in OF_FIT]
    kept = [part.replace(default=False) if part.name == "average" else part for part in kept]
    signature = signature.replace(parameters=kept)
    name, text = estimator.__name__, str(estimator.__doc__).split(">>>")[0].rstrip()
    text = re.sub(r"\n *(n_passes|shuffle, random_state) :.*|, (n_passes|shuffle|random_state)\b", "", text)
    text = re.sub(r"\n *average :(.*\n        )*.*", AVERAGE, text)
    body = {
        "__init__": _constructor(signature),
        "__doc__": f"{text}\n{kind._example.format(name=name)}",
        "__module__": __name__,
        "_estimator": estimator,
        "_parameters": tuple(signature.parameters)[1:],
    }
    return type(name, (kind,), body)


_KINDS: dict[type[Online], type[Model]] = {
    OnlineClassifier: Classifier, OnlineRegressor: Regressor, OnlineDetector: Detector
}  # fmt: skip
_PARTS = {name: getattr(gossamer, name) for name in gossamer.__all__}
_FACES = {
    name: _face(part, kind)
    for name, part in _PARTS.items()
    for estimator, kind in _KINDS.items()
    if isinstance(part, type) and issubclass(part, estimator) and part.takes_new_features
}
globals().update(_FACES)
__all__ = sorted([*_FACES, "MultiLabel", "MultiTarget", "RowEncoder"])

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
