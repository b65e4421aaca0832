"""How sure a model is: links that turn scores into calibrated probabilities, learned on the scores that a stream gave
before its labels were used."""

from gossamer.certainty.links import Link, SoftmaxLink

__all__ = ["Link", "SoftmaxLink"]
