"""Thousands to millions of models by key, behind one `learn`: a model per sensor, customer, host or camera."""

from gossamer.bank.keyed import RowError, UnknownKeyError
from gossamer.bank.model_bank import ModelBank

__all__ = [
    "ModelBank",
    "RowError",
    "UnknownKeyError",
]
