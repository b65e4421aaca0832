"""Cheng et al. (2006), Fig. 3: cars before a camera that shakes; a learner per pixel with 20 support points.

The clip is CDnet's traffic, which has the ground truth that the paper lacked, so that SILK is measured here, and beside
truncated NORMA. Both are as the papers have them (`gossamer.video.PLAIN`), and tuned by the same settings on the frames
900-1099; those after are scored, with the threshold that was best on these. A 5x5 median filter follows every mask.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from benchmarks.clips import FOREGROUND, Clip, Tally, clips
from experiments.figure import COLOURS, Data, Figure, Progress
from experiments.ilk import pixels
from experiments.ilk.common import verdict
from experiments.ilk.pixels import RULES
from gossamer.video import BackgroundSubtractor

BLOCK = 25
SETTINGS = pixels.grid(widths=(9.0, 16.0, 28.0, 45.0), decays=(0.001, 0.003, 0.01, 0.03))
MOG2, OURS = "MOG2", "SILK, all options"
COLOUR = {"SILK": COLOURS["SILK"], "truncated NORMA": COLOURS["truncated NORMA"], OURS: COLOURS["ILK"], MOG2: "0.5"}


def clip_and_parts(quick: bool) -> tuple[Clip, range, range]:
    """The clip, and the frames for tuning and for scoring."""
    found = next((clip for clip in clips() if clip.name == "traffic"), None)
    if found is None and not quick:
        raise FileNotFoundError("GOSSAMER_DATA does not name a folder with the clip video_traffic")
    if found is None:
        return pixels.synthetic(360, shake=1), range(100, 180), range(180, 360)
    return (pixels.thinned(found, 2) if quick else found), range(899, 1099), range(1099, len(found.frames))


def together(tallies: list[Tally]) -> Tally:
    return Tally(*(sum(getattr(one, count) for one in tallies) for count in ("hits", "misses", "alarms")))


def results(name: str, tallies: list[Tally], masks: list[np.ndarray]) -> dict[str, np.ndarray]:
    """F, precision and recall of all frames, F by block, the point in the plane of the ROC curve, and the masks."""
    total = together(tallies)
    blocks = [together(tallies[i : i + BLOCK]).f for i in range(0, len(tallies) - BLOCK + 1, BLOCK)]
    return {
        f"{name}/f": np.array([total.f, total.precision, total.recall]), f"{name}/f_blocks": np.array(blocks),
        f"{name}/point": np.array([np.mean([one.shares[0] for one in tallies]), total.recall]),
        f"{name}/masks": np.array(masks),
    }  # fmt: skip


def compute(quick: bool, progress: Progress) -> Data:
    clip, early, late = clip_and_parts(quick)
    settings = SETTINGS[:: 7 if quick else 1]
    best = pixels.tune(pixels.part(clip, early), settings, progress)
    scored = pixels.part(clip, late)
    busy = [t for t, mask in scored.truth.items() if (mask == FOREGROUND).mean() > 0.02]
    moments = np.random.default_rng(0).choice(busy, 2, replace=False).tolist()
    data: dict[str, np.ndarray] = {"clip": np.array(clip.name), "moments": np.array(moments)}
    data["tries"] = np.array(len(settings))
    for name in progress(list(RULES), "scored"):
        setting, before = best[name]
        level = before.level_of_best()
        seen = pixels.watch(scored, setting.subtractor(name), moments, level)
        masks = {t: pixels.median(levels < level) for t, levels in seen.kept.items()}
        data |= {
            **results(name, seen.tallies, [masks[t] for t in moments]),
            f"{name}/roc": np.array(seen.roc()), f"{name}/area": np.array(seen.area()),
            f"{name}/blocks": seen.blocks(slice(0, len(seen.new)), BLOCK), f"{name}/tuned": setting.text(name),
            f"{name}/threshold": np.array(2 * level / pixels.LEVELS),
        }  # fmt: skip
    for name, subtractor in progress([(OURS, BackgroundSubtractor()), (MOG2, pixels.mog2())], "for orientation"):
        tallies, masks = pixels.judge(scored, subtractor, moments, smooth=True)
        data |= results(name, tallies, [masks[t] for t in moments])
    data |= {f"frame{i}": pixels.packed(scored.frames[t]) for i, t in enumerate(moments)}
    return data | {"truth": np.array([scored.truth[t] for t in moments]), "late": np.array([late.start, late.stop])}


def draw(data: Data, quick: bool) -> Picture:
    picture = plt.figure(figsize=(13, 8.4), layout="constrained")
    above, below = picture.subfigures(2, 1, height_ratios=(1.2, 1))
    first, last = data["late"]
    above.suptitle(f"{data['clip']}: a shaking camera, frames {first + 1}-{last}", fontweight="bold")
    left, middle, right = above.subplots(1, 3, width_ratios=(1.1, 1, 1.1))
    draw_roc(left, data)
    draw_f(middle, data)
    draw_blocks(right, data)
    for i, row in enumerate(below.subplots(2, 6)):
        pixels.show_frame(row[0], data[f"frame{i}"], f"frame {data['moments'][i] + 1}, drawn by lot")
        pixels.show_mask(row[1], data["truth"][i], "ground truth")
        for axes, name in zip(row[2:], COLOUR, strict=True):
            pixels.show_mask(axes, 255 * data[f"{name}/masks"][i].astype(int), name)
    tries = int(data["tries"])
    text = "; ".join(f"{data[f'{name}/tuned']}, f < {data[f'{name}/threshold']:.2f} is new" for name in RULES)
    note = f"20 support points a pixel; {text} (best of {tries} on earlier frames); all masks after a 5x5 median filter"
    areas, fs = ([-data[f"{name}/{which}"] for name in RULES] for which in ("blocks", "f_blocks"))
    won = f"SILK beside truncated NORMA in blocks of {BLOCK} frames, 1 - area: {verdict(*areas)}; 1 - F: {verdict(*fs)}"
    picture.supxlabel(f"{note}\n{won}", fontsize=7.5)
    return picture


def draw_roc(axes: Axes, data: Data) -> None:
    for name in RULES:
        false, found = data[f"{name}/roc"]
        axes.semilogx(
            np.maximum(false, 1e-6), found, color=COLOUR[name], label=f"{name}: area {data[f'{name}/area']:.3f}"
        )
    for name, colour in COLOUR.items():
        axes.plot(*data[f"{name}/point"], "o", color=colour, markeredgecolor="black", markersize=5)
    axes.set(xlim=(1e-4, 1), ylim=(0, 1.01), xlabel="share of the background marked as new", ylabel="foreground found")
    axes.set_title("ROC of the raw scores; dots: the masks", fontsize=10)
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    axes.grid(alpha=0.3)


def draw_f(axes: Axes, data: Data) -> None:
    for i, (name, colour) in enumerate(COLOUR.items()):
        f, precision, recall = data[f"{name}/f"]
        axes.barh(i, f, color=colour)
        text = f"{name}: F {f:.3f}\nprecision {precision:.3f}, recall {recall:.3f}"
        axes.text(0.02, i, text, va="center", fontsize=8)
    axes.set(xlim=(0, 1), yticks=[], xlabel="F")
    axes.invert_yaxis()
    axes.set_title("masks", fontsize=10)


def draw_blocks(axes: Axes, data: Data) -> None:
    start = int(data["late"][0])
    for name, colour in COLOUR.items():
        values = data[f"{name}/f_blocks"]
        axes.plot(start + BLOCK * (np.arange(len(values)) + 0.5), values, ".-", color=colour, label=name)
    axes.set(ylim=(0, 1), xlabel="frame", ylabel="F")
    axes.set_title(f"F in blocks of {BLOCK} frames", fontsize=10)
    axes.grid(alpha=0.3)


if __name__ == "__main__":
    Figure(__file__, compute, draw).main()
