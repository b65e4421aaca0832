"""Prequential evaluation: predict each row, then learn it, and keep count.

>>> from gossamer import SILKClassifier, evaluate
>>> from gossamer.kernels import Gaussian
>>> from gossamer.synthetic import rotating_xor
>>> model = SILKClassifier(Gaussian(gamma=2.0), C=0.3, reg=0.01, budget=100)
>>> trace = evaluate.prequential(model, rotating_xor(4000, seed=0, turns=2), every=1000)
>>> trace.row.tolist(), trace.total("error").round(3).tolist()
([1000, 2000, 3000, 4000], [0.068, 0.068, 0.065, 0.064])
"""

from gossamer.evaluate.metrics import METRICS
from gossamer.evaluate.predictions import Predictions
from gossamer.evaluate.prequential import Prequential, prequential
from gossamer.evaluate.trace import Record, Trace

__all__ = [
    "METRICS",
    "Predictions",
    "Prequential",
    "Record",
    "Trace",
    "prequential",
]
