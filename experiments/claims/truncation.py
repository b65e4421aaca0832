"""What a budget costs: NORMA's Proposition 1 and the bound on SILK, over measured distances.

Left, ||f - f_truncated|| of NORMA: f without its terms older than tau rounds, which is what Proposition 1 (Kivinen et
al. 2004) bounds by (1 - eta lambda)^tau X / lambda, and f of a learner that runs truncated, which it does not bound.
Middle, ||f of ILK - f of SILK||, with the bound (C X / lambda) (1 + eta lambda)^-omega of `silk_tracking`; Cheng et al.
2006 (section 2) say that it falls exponentially, without proof. Right, the mistakes that the budgets cost.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

from experiments.figure import COLOURS, Data, Figure, Picture, Progress, neat
from gossamer import Learner, bounds
from gossamer.budgets import Budget, Oldest, Smallest
from gossamer.kernels import Gaussian
from gossamer.losses import Hinge
from gossamer.rules import Gradient, Implicit, Rule
from gossamer.synthetic import rotating_xor

KERNEL, LOSS = Gaussian(2.0), Hinge()
RATE, REG = 0.3, 0.1  # eta lambda = 0.03: an example has lost half its weight after 23 rounds
NORMA, ILK = Gradient(RATE, REG), Implicit(C=1.0, rate=RATE, reg=REG)


def run(rule: Rule, budget: Budget | None, X: np.ndarray, y: np.ndarray, checks: np.ndarray) -> tuple[int, np.ndarray]:
    """Mistakes, and the coefficients of f by row after each of the rounds to check."""
    learner = Learner(KERNEL, LOSS, rule, budget)
    coefs = np.zeros((len(checks), len(X)))
    for place, (start, end) in enumerate(zip([0, *checks[:-1]], checks, strict=True)):
        learner.learn(X[start:end], y[start:end])
        coefs[place, learner.births - 1] = learner.coefs
    return learner.mistakes, coefs


def compute(quick: bool, progress: Progress) -> Data:
    rounds, seeds = (400, 2) if quick else (2000, 20)
    sizes = np.unique(np.round(np.geomspace(4, 256, 5 if quick else 13))).astype(int)
    checks = np.linspace(rounds // 2, rounds, 3 if quick else 11).astype(int)
    names = ["cut", "truncated NORMA", "SILK"]
    gaps = {name: np.zeros((seeds, len(sizes))) for name in names}  # the largest over the rounds checked
    wrong = {name: np.zeros((seeds, len(sizes)), dtype=int) for name in names[1:]}
    full = {name: np.zeros(seeds, dtype=int) for name in ("NORMA", "ILK")}
    for seed in progress(range(seeds), "streams"):
        X, y = rotating_xor(rounds, seed=seed)
        gram = KERNEL(X, X)

        def largest(difference: np.ndarray, gram: np.ndarray = gram) -> float:
            return float(np.sqrt(np.maximum(0.0, np.einsum("ti,ti->t", difference @ gram, difference))).max())

        full["NORMA"][seed], norma = run(NORMA, None, X, y, checks)
        full["ILK"][seed], ilk = run(ILK, None, X, y, checks)
        for place, size in enumerate(sizes.tolist()):
            # after round t, f_(t+1) keeps the terms of rounds t + 1 - size ... t
            old = np.arange(rounds) < (checks - size)[:, None]
            gaps["cut"][seed, place] = largest(norma * old)
            wrong["truncated NORMA"][seed, place], f = run(NORMA, Oldest(age=size), X, y, checks)
            gaps["truncated NORMA"][seed, place] = largest(norma - f)
            wrong["SILK"][seed, place], f = run(ILK, Smallest(size), X, y, checks)
            gaps["SILK"][seed, place] = largest(ilk - f)
    p = {"kappa": 1.0, "reg": REG, "rate": RATE}
    return {
        "sizes": sizes,
        "rounds": np.array(rounds),
        "proposition": np.array([bounds.norma_truncation(kept=size, **p) for size in sizes.tolist()]),
        "tracking": np.array([bounds.silk_tracking(size=size, **p) for size in sizes.tolist()]),
        **{f"gap:{name}": values.astype(np.float32) for name, values in gaps.items()},
        **{f"mistakes:{name}": values for name, values in {**wrong, **full}.items()},
    }


def draw(data: Data, quick: bool) -> Picture:
    picture, (left, middle, right) = plt.subplots(1, 3, figsize=(14.5, 4.6))
    sizes = data["sizes"]

    def curve(axes: Axes, key: str, colour: str, label: str, style: str = "o-") -> None:
        """The mean over streams; for distances, the largest."""
        values = data[key].max(axis=0) if key.startswith("gap") else data[key].mean(axis=0)
        axes.plot(sizes, values, style, color=colour, linewidth=1.8, markersize=4, label=label)

    left.plot(sizes, data["proposition"], color="#555555", linewidth=2.2, label="Proposition 1")
    curve(left, "gap:truncated NORMA", COLOURS["truncated NORMA"], "a learner that runs truncated", "o--")
    curve(left, "gap:cut", COLOURS["NORMA"], "f without its old terms")
    left.set(xlabel="rounds kept, tau", ylabel="distance to the whole f", title="NORMA")
    middle.plot(sizes, data["tracking"], color="#555555", linewidth=2.2, label="bound on SILK")
    curve(middle, "gap:SILK", COLOURS["SILK"], "SILK")
    middle.set(xlabel="terms kept, omega", ylabel="distance to ILK", title="SILK")
    for axes in (left, middle):
        axes.set_yscale("log")
        axes.set_ylim(bottom=1e-4)
    for name, key in (("NORMA", "truncated NORMA"), ("ILK", "SILK")):
        curve(right, f"mistakes:{key}", COLOURS[key], key)
        whole = data[f"mistakes:{name}"].mean()
        style = "--" if name == "NORMA" else ":"
        right.axhline(whole, color=COLOURS[name], linewidth=1.6, linestyle=style, label=f"{name}, nothing dropped")
    right.set(xlabel="rounds or terms kept", ylabel=f"mistakes in {int(data['rounds']):,} trials", title="mistakes")
    right.set_ylim(bottom=0)
    ticks = sizes[:: max(1, len(sizes) // 6)]
    for axes in (left, middle, right):
        axes.set_title(axes.get_title(), loc="left", fontweight="bold")
        axes.set_title("")
        axes.set_xscale("log")
        axes.set_xticks(ticks, [str(size) for size in ticks])
        axes.minorticks_off()
        axes.legend(frameon=False)
        neat(axes)
    note = (
        f"Distances in the kernel's space: the largest of {len(data['gap:SILK'])} rotating streams, at several moments "
        f"of each. eta = {RATE}, lambda = {REG}, C = 1, hinge loss, Gaussian kernel exp(-2 |x - x'|²)."
    )
    picture.text(0.01, -0.005, note, fontsize=9, color="#555555", va="top")
    picture.tight_layout()
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
