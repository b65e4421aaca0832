"""Regret of a mixture against the best expert and against the best sequence of experts, with the line of the theorem
(Herbster and Warmuth 1998; `gossamer.bounds.fixed_share`).

Two streams whose best expert changes. "learners": second-order learners of twelve settings on an XOR that stands
still, turns, stands still and turns faster. "in turn": eight experts, of which one is right at a time and the others
guess. The loss is -ln of the probability given to the label. The best sequence with a number of switches is found
afterwards, by dynamic programming. Without the share, the same weights fall behind by more than the theorem allows.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np
from matplotlib import pyplot as plt

from experiments.figure import Data, Figure, Picture, Progress, neat
from gossamer import bounds
from gossamer.losses import SquaredHinge
from gossamer.mixture import Setting
from gossamer.mixture.opinions import likelihoods
from gossamer.mixture.weights import SHARE, Weights
from gossamer.synthetic import rotating_xor

#: Turns of each quarter of the stream of "learners", for 2,000 rows.
TURNS = (0.0, 2.0, 0.0, 8.0)
SETTINGS = [Setting(w, f, n) for w in (1.0, 3.0) for f in (1.0, 0.99, 0.95) for n in (0.1, 0.5)]
EXPERTS, PARTS = 8, 4
STREAMS = {"learners": "learners of twelve settings", "in turn": "eight experts that are right in turn"}
SHARES = {"mixture": SHARE, "without the share": 0.0}
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#555555"


def learners(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The scores of the learners before each row, (experts, rows), and the labels."""
    quarters = [rotating_xor(rows // PARTS, seed, turns=turns * rows / 8000) for seed, turns in enumerate(TURNS)]
    X, y = (np.concatenate(parts) for parts in zip(*quarters, strict=True))
    made = [setting.learner(2.0, SquaredHinge(), 64) for setting in SETTINGS]
    return np.array([learner.learn(X, y) for learner in made]), y


def in_turn(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of experts of which one is right at a time."""
    rng = np.random.default_rng(0)
    y = rng.choice([-1.0, 1.0], rows)
    right = np.arange(EXPERTS)[:, None] == np.arange(rows) * PARTS // rows
    return np.where(right, y, rng.choice([-1.0, 1.0], (EXPERTS, rows))), y


def compute(quick: bool, progress: Progress) -> Data:
    rows, places = (800, 20) if quick else (8000, 160)
    lengths = np.linspace(rows / places, rows, places).astype(int)
    data: dict[str, np.ndarray] = {"lengths": lengths}
    for stream, make in {"learners": learners, "in turn": in_turn}.items():
        scores, y = make(rows)
        scores = np.ascontiguousarray(scores[:, :, None])
        found = likelihoods("sign", scores, None, y, None, Weights("sign", len(scores)).opinions)
        losses = -np.log(found)
        best = np.array([bounds.best_sequences(losses[:, :T], PARTS - 1) for T in progress(lengths.tolist(), stream)])
        for name, share in SHARES.items():
            out = Weights("sign", len(scores), share).learn(scores, None, y)[:, 0]
            own = np.logaddexp(0.0, -y * out).cumsum()[lengths - 1]
            data[f"{stream}:{name}"] = own[:, None] - best
        data[f"{stream}:bound"] = np.array([
            [bounds.fixed_share(experts=len(scores), rounds=T, share=SHARE, switches=s) for s in range(PARTS)]
            for T in lengths.tolist()
        ])  # fmt: skip
    return data


def draw(data: Data, quick: bool) -> Picture:
    picture, panels = plt.subplots(1, len(STREAMS), figsize=(11, 4.8), sharey=True)
    lengths, switches, dashes = data["lengths"], PARTS - 1, (0, (4, 2))
    for axes, (stream, title) in zip(panels, STREAMS.items(), strict=True):
        regret, bound = data[f"{stream}:mixture"], data[f"{stream}:bound"]
        sequence = f"against the best sequence with {switches} switches"
        for place, colour, text in ((0, ORANGE, "against the best expert"), (-1, BLUE, sequence)):
            axes.plot(lengths, regret[:, place], color=colour, linewidth=2.2, label=text)
            axes.plot(lengths, bound[:, place], color=colour, linewidth=1.6, linestyle=dashes)
            axes.annotate(f"bound: {bound[-1, place]:.1f}", (lengths[-1], bound[-1, place]), (0, 4), color=colour,
                          textcoords="offset points", ha="right", va="bottom", fontsize=9)  # fmt: skip
        axes.plot(lengths, data[f"{stream}:without the share"][:, -1], color=GREY, linewidth=1.4,
                  label="the same sequence, weights without the share", zorder=1)  # fmt: skip
        for part in range(1, PARTS):
            axes.axvline(part * lengths[-1] / PARTS, color="#BBBBBB", linewidth=1.0, zorder=0)
        axes.axhline(0.0, color="#222222", linewidth=0.8)
        axes.set_ylim(-40, 60)
        axes.set_title(title, loc="left", fontweight="bold")
        axes.set_xlabel("rows")
        neat(axes)
    panels[0].set_ylabel("regret in log loss")
    picture.legend(*panels[0].get_legend_handles_labels(), frameon=False, loc="upper left", ncols=3, fontsize=9)
    least = [data[f"{stream}:mixture"][-1, 0] for stream in STREAMS]
    note = (
        f"Share {SHARE:g}. Vertical lines: where the best expert changes. Below 0 the mixture is ahead: of the best "
        f"single expert by {-least[0]:.0f} (left) and {-least[1]:.0f} (right) at the end."
    )
    picture.text(0.01, -0.005, note, fontsize=9, color=GREY, va="top")
    picture.tight_layout(rect=(0, 0, 1, 0.95))
    return picture


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
