"""How sure a model is: scores become calibrated probabilities, and thresholds that hold a coverage. Both are learned on
the scores that a stream gave before its labels were used."""

from gossamer.certainty.links import Link, SoftmaxLink

__all__ = ["Link", "SoftmaxLink"]
