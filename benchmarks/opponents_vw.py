"""Vowpal Wabbit's side of the contest: its linear learner and ``--ksvm``, by its Python class."""

from __future__ import annotations

from typing import Any

import numpy as np
import vowpalwabbit
from entries import SUPERVISED, WIDTHS, Entry, Model, Setup


class Vowpal(Model):
    """A workspace; examples are parsed before the time is taken. ``learn`` predicts first."""

    def __init__(self, setup: Setup, arguments: str) -> None:
        self.setup = setup
        self.workspace = vowpalwabbit.Workspace(f"--quiet --random_seed 1 {arguments}")

    def rows(self, X: np.ndarray, y: np.ndarray) -> Any:
        if self.setup.task == "multiclass":
            y = np.searchsorted(self.setup.classes, y) + 1
        lines = []
        for x, target in zip(X, y, strict=True):
            (used,) = np.nonzero(x)
            lines.append(f"{target:g} | " + " ".join(f"{j}:{x[j]:.6g}" for j in used))
        return [self.workspace.parse(line) for line in lines]

    def step(self, rows: Any) -> np.ndarray:
        learn, guess = self.workspace.learn, []
        many = self.setup.task == "multiclass"
        for example in rows:
            learn(example)
            guess.append(example.get_multiclass_prediction() if many else example.get_simplelabel_prediction())
            self.workspace.finish_example(example)
        if many:
            return self.setup.classes[np.maximum(np.array(guess, int) - 1, 0)]
        if self.setup.task == "binary":
            return np.where(np.array(guess) >= 0, self.setup.classes[1], self.setup.classes[0])
        return np.array(guess)


def linear(setup: Setup, *, step: float, power: float, reg: float, pairs: bool, loss: str) -> Vowpal:
    """The linear learner: adaptive, normalised, invariant steps; with products of features where they are few."""
    options = f"-l {step} --power_t {power} --l2 {reg}"
    if pairs and setup.sample.shape[1] <= 50:
        options += " --interactions ::"
    if setup.task == "multiclass":
        return Vowpal(setup, f"{options} --oaa {len(setup.classes)} --loss_function {loss}")
    if setup.task == "quantile":
        return Vowpal(setup, f"{options} --loss_function quantile --quantile_tau {setup.level}")
    return Vowpal(setup, f"{options} --loss_function {loss if setup.task == 'binary' else 'squared'}")


def ksvm(setup: Setup, *, width: float, reg: float, reprocess: int) -> Vowpal:
    """LASVM with a Gaussian kernel."""
    kernel = f"--kernel rbf --bandwidth {width * setup.scale}"
    return Vowpal(setup, f"--ksvm {kernel} --l2 {reg} --reprocess {reprocess}")


VOWPAL = [
    Entry(
        "linear", "Vowpal Wabbit", SUPERVISED, linear,
        {"step": (0.01, 10.0), "power": [0.0, 0.25, 0.5], "reg": (1e-9, 1e-5), "pairs": [False, True],
         "loss": ["logistic", "hinge"]},
        {"step": 0.5, "power": 0.5, "reg": 0.0, "pairs": False, "loss": "logistic"},
    ),
    Entry(
        "--ksvm", "Vowpal Wabbit", ("binary",), ksvm,
        {"width": WIDTHS, "reg": (1e-6, 0.1), "reprocess": [1, 2]},
        {"width": 1.0, "reg": 1e-3, "reprocess": 1}, slow="always",
    ),
]  # fmt: skip
