"""Regret against the number of trials, with the line of the theorems: Theorem 3 of Cheng et al. 2006 for ILK and
Theorem 4 of Kivinen et al. 2004 for NORMA, which are the same line, a sqrt(T) + b.

With steps eta / sqrt(t), the risk of f_1 ... f_T (hinge loss and lambda / 2 ||f||²) exceeds that of any fixed function
by at most so much, whatever the stream: here one that stands still, and one whose labels are always those that the
learner gets wrong. The best fixed function for the first T trials is computed for each T by coordinate ascent in the
dual (`Adatron`); its dual value is used, so that what is drawn is never less than the true regret.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from experiments.figure import COLOURS, Data, Figure, Picture, Progress, neat
from gossamer import Learner, bounds
from gossamer.bounds.comparators import cumulative_risk
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge
from gossamer.rules import Adatron, Gradient, Implicit, Rule
from gossamer.synthetic import rotating_xor

KERNEL, LOSS, REG = Gaussian(2.0), Hinge(), 0.1
RATE = 1 / (math.sqrt(2) * REG)  # the one that makes a = 4 eta X² + 2 X² / (lambda² eta) least
RULES: dict[str, Rule] = {
    "ILK": Implicit(C=1.0, rate=RATE, reg=REG, schedule="inverse_sqrt"),
    "NORMA": Gradient(rate=RATE, reg=REG, schedule="inverse_sqrt"),
}
STREAMS = {"standing": "a stream that stands still", "contrary": "a stream that contradicts the learner"}


def run(rule: Rule, X: np.ndarray, y: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The labels (without any given, those that the learner gets wrong), and the risk of f_t on trial t."""
    learner = Learner(KERNEL, LOSS, rule)
    labels, risks = np.zeros(len(X)), np.zeros(len(X))
    for t, x in enumerate(X):
        score, norm = learner.score_one(x), learner.norm
        labels[t] = y[t] if y is not None else (-1.0 if score > 0 else 1.0)
        risks[t] = cumulative_risk(LOSS, np.array([score]), labels[t : t + 1], norm, REG)
        learner.learn_one(x, labels[t])
    return labels, risks


def least_risk(X: np.ndarray, y: np.ndarray, accuracy: float) -> float:
    """Less than the least sum of risks that a fixed function can have on these trials, by at most that share of it.

    min_g sum_t hinge(y_t g(x_t)) + w / 2 ||g||², w = lambda T, is w times the largest of sum_i a_i - ||sum_i a_i y_i
    k(x_i, .)||² / 2 over 0 <= a_i <= 1 / w; any such a gives a lower bound.
    """
    weight = REG * len(X)
    learner = Learner(KERNEL, LOSS, Adatron(rate=1.0, C=1 / weight))
    for _ in range(200):
        learner.learn(X, y, ids=np.arange(len(X)))
        norm = learner.norm
        dual = weight * (float(np.abs(learner.coefs).sum()) - norm**2 / 2)
        primal = cumulative_risk(LOSS, learner.score(X), y, norm, REG)
        if primal - dual <= accuracy * primal:
            return dual
    raise RuntimeError(f"the best function is known only to {primal - dual:.3g} of {primal:.3g}")


def compute(quick: bool, progress: Progress) -> Data:
    longest, seeds = (128, 1) if quick else (8192, 3)
    lengths = 2 ** np.arange(4, int(math.log2(longest)) + 1)
    p = {"kappa": 1.0, "reg": REG, "rate": RATE}
    data: dict[str, np.ndarray] = {
        "lengths": lengths,
        "ILK:bound": np.array([bounds.ilk_regret(rounds=T, **p) for T in lengths.tolist()]),
        "NORMA:bound": np.array([bounds.norma_regret(rounds=T, **p) for T in lengths.tolist()]),
    }
    for stream in STREAMS:
        found = {name: np.zeros((seeds, len(lengths))) for name in RULES}
        for seed in progress(range(seeds), stream):
            X, y = rotating_xor(longest, seed=seed, turns=0.0)
            for name, rule in RULES.items():
                labels, risks = run(rule, X, None if stream == "contrary" else y)
                for place, T in enumerate(lengths.tolist()):
                    found[name][seed, place] = risks[:T].sum() - least_risk(X[:T], labels[:T], 1e-3)
        for name, values in found.items():
            data[f"{stream}:{name}"] = values
    return data


def growth(lengths: np.ndarray, regret: np.ndarray) -> float:
    """The exponent of T that fits the last half of the lengths best."""
    half = len(lengths) // 2
    return float(np.polyfit(np.log(lengths[half:]), np.log(regret[half:]), 1)[0])


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(1, len(STREAMS), figsize=(11, 4.8), sharey=True)
    lengths, bound = data["lengths"], data["ILK:bound"]
    for axes, (stream, title) in zip(panels, STREAMS.items(), strict=True):
        axes.loglog(lengths, bound, color="#555555", linewidth=2.2, label="a sqrt(T) + b, of both theorems")
        for name in RULES:
            mean = data[f"{stream}:{name}"].mean(axis=0)
            exponent, share = growth(lengths, mean), mean[-1] / bound[-1]
            label = f"{name}: grows as T^{exponent:.2f}, {share:.0%} of the bound at the end"
            axes.loglog(lengths, mean, "o-", color=COLOURS[name], linewidth=1.8, markersize=4, label=label)
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel("trials, T")
        axes.set_ylim(top=25 * bound[-1])  # room for the legend
        axes.legend(frameon=False, loc="upper left", fontsize=9)
        neat(axes)
    panels[0].set_ylabel("regret against the best fixed function")
    note = (
        f"Means of {len(data['standing:ILK'])} streams. Hinge loss + lambda / 2 ||f||², lambda = {REG}, steps "
        f"eta / sqrt(t) with eta = {RATE:.2f}, Gaussian kernel exp(-2 |x - x'|²)."
    )
    picture.text(0.01, -0.005, note, fontsize=9, color="#555555", va="top")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
