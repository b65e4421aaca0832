"""What Figs. 2 and 3 share: a learner per pixel over a clip, judged by its scores, and how it is tuned."""

from __future__ import annotations

import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import cv2
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from scipy import integrate

from benchmarks.clips import FOREGROUND, Clip, Tally, filtered
from experiments.figure import Progress
from experiments.ilk.common import each
from gossamer.video import PLAIN, BackgroundSubtractor

#: The papers' algorithms: 20 support points, margin 1, and nothing of what the library adds.
RULES = {"SILK": ("silk", "C"), "truncated NORMA": ("norma", "rate")}
STEPS = (0.05, 0.12, 0.3)
LEVELS = 1024


@dataclass(frozen=True)
class Setting:
    """The kernel's width in grey levels, the largest step (C or rate), and the share of f that a frame takes away."""

    width: float
    step: float
    decay: float

    def subtractor(self, name: str, threads: int | None = None) -> BackgroundSubtractor:
        rule, step = RULES[name]
        reg = self.decay / (1 - self.decay) if rule == "silk" else self.decay / self.step
        parameters: dict[str, Any] = {step: self.step, "reg": reg, "width": self.width, **PLAIN}
        return BackgroundSubtractor(rule, threads=threads, **parameters)

    def text(self, name: str) -> str:
        return f"{name}: width {self.width:g}, {RULES[name][1]} {self.step:g}, decay {self.decay:g}"


def grid(widths: Sequence[float], decays: Sequence[float]) -> list[Setting]:
    return [Setting(*one) for one in itertools.product(widths, STEPS, decays)]


@dataclass
class Seen:
    """The scores over a clip: how many new and old pixels have each level, by scored frame, the highest level first."""

    new: np.ndarray
    old: np.ndarray
    kept: dict[int, np.ndarray]
    tallies: list[Tally]

    def roc(self, frames: slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
        """The share of old and of new pixels above every level."""
        new, old = self.new[frames].sum(axis=0), self.old[frames].sum(axis=0)
        false, found = np.cumsum(old) / max(1, old.sum()), np.cumsum(new) / max(1, new.sum())
        return np.concatenate([[0.0], false]), np.concatenate([[0.0], found])

    def area(self, frames: slice = slice(None)) -> float:
        false, found = self.roc(frames)
        return float(integrate.trapezoid(found, false))

    def blocks(self, frames: slice, size: int) -> np.ndarray:
        """The area in consecutive blocks of frames."""
        starts = range(frames.start, frames.stop - size + 1, size)
        return np.array([self.area(slice(start, start + size)) for start in starts])

    def level_of_false(self, share: float, frames: slice) -> int:
        """The lowest level with at most this share of false alarms."""
        return int(np.searchsorted(self.roc(frames)[0], share, side="right")) - 1

    def level_of_best(self) -> int:
        """The level with the best F."""
        hits, alarms = np.cumsum(self.new.sum(axis=0)), np.cumsum(self.old.sum(axis=0))
        return int(np.argmax(2 * hits / (hits + alarms + self.new.sum()))) + 1

    def shares(self, level: int) -> tuple[np.ndarray, np.ndarray]:
        """False alarms and what was found, frame by frame; NaN where there is nothing to find."""
        new = self.new.sum(axis=1)
        found = np.where(new > 0, self.new[:, :level].sum(axis=1) / np.maximum(1, new), np.nan)
        return self.old[:, :level].sum(axis=1) / np.maximum(1, self.old.sum(axis=1)), found


def levels(scores: np.ndarray) -> np.ndarray:
    """0 for the newest, score 1, to the last for -1 and less."""
    return np.clip((1 - scores) * (LEVELS / 2), 0, LEVELS - 1).astype(int)


def watch(clip: Clip, subtractor: BackgroundSubtractor, keep: Sequence[int] = (), new_below: int | None = None) -> Seen:
    """Score every frame, then learn it; ``keep`` the levels of these frames. Given the level below which a pixel is
    new, tally the masks too."""
    new, old, kept, tallies = [], [], {}, []
    for t, (frame, truth) in enumerate(clip):
        frame = np.ascontiguousarray(frame)
        if truth is not None:
            level = levels(subtractor.score(frame))
            new.append(np.bincount(level[truth == FOREGROUND], minlength=LEVELS))
            old.append(np.bincount(level[(truth == 0) | (truth == 50)], minlength=LEVELS))
            if t in keep:
                kept[t] = level
            if new_below is not None:
                tallies.append(Tally())
                tallies[-1].add(median(level < new_below), truth)
        subtractor.apply(frame)
    return Seen(np.array(new), np.array(old), kept, tallies)


def median(mask: np.ndarray) -> np.ndarray:
    """A mask after the 5x5 median filter."""
    return filtered(np.where(mask, 255, 0).astype(np.uint8))


def judge(clip: Clip, subtractor: Any, keep: Sequence[int], smooth: bool) -> tuple[list[Tally], dict[int, np.ndarray]]:
    """A tally for each scored frame of a subtractor of OpenCV's shape, and some masks; its shadows are background."""
    tallies, kept = [], {}
    for t, (frame, truth) in enumerate(clip):
        mask = subtractor.apply(np.ascontiguousarray(frame)) == FOREGROUND
        if truth is not None:
            mask = median(mask) if smooth else mask
            tallies.append(Tally())
            tallies[-1].add(mask, truth)
            if t in keep:
                kept[t] = mask
    return tallies, kept


def mog2() -> Any:
    return cv2.createBackgroundSubtractorMOG2()


def thinned(clip: Clip, step: int = 5) -> Clip:
    """Every fifth pixel of every fifth row: a fair sample, as `PLAIN` learners look at their own pixel only."""
    return replace(
        clip, frames=np.ascontiguousarray(clip.frames[:, ::step, ::step]),
        truth={t: mask[::step, ::step] for t, mask in clip.truth.items()},
        gains={t: gain[::step, ::step] for t, gain in clip.gains.items()},
    )  # fmt: skip


def tune(clip: Clip, settings: list[Setting], progress: Progress) -> dict[str, tuple[Setting, Seen]]:
    """The setting of each rule with the largest area under the ROC curve, among the same settings, and what it saw."""
    runs = [(name, setting) for name in RULES for setting in settings]
    small = thinned(clip) if clip.frames.shape[1] > 100 else clip
    seen = each(lambda run: watch(small, run[1].subtractor(run[0], threads=1)), runs, progress, "tuning")
    best = {}
    for name in RULES:
        mine = [(setting, one) for (whose, setting), one in zip(runs, seen, strict=True) if whose == name]
        best[name] = max(mine, key=lambda pair: pair[1].area())
    return best


def part(clip: Clip, truth: range, **changes: Any) -> Clip:
    """A clip up to the last frame of a range, of which only that range is scored."""
    scored = {t: mask for t, mask in clip.truth.items() if t in truth}
    return replace(clip, frames=clip.frames[: truth.stop], truth=scored, **changes)


def switched(clip: Clip, first: int, frames: int = 60, gain: float = 0.45) -> Clip:
    """A clip whose light is dimmed for some frames."""
    dim = np.full(clip.frames.shape[1:], gain, np.float32)
    return replace(clip, gains=dict.fromkeys(range(first, first + frames), dim), switch=first)


def synthetic(frames: int, shake: int, seed: int = 0, height: int = 40, width: int = 56) -> Clip:
    """A made-up clip: a textured scene with noise, a block that crosses it, and a camera that shakes by some pixels."""
    rng = np.random.default_rng(seed)
    scene = cv2.GaussianBlur(rng.uniform(0, 255, (height + 8, width + 8, 3)).astype(np.float32), (0, 0), 1.5)
    pictures, truth = np.empty((frames, height, width, 3), np.uint8), {}
    for t in range(frames):
        top, left = 4 + rng.integers(-shake, shake + 1, 2) if shake else (4, 4)
        picture = scene[top : top + height, left : left + width] + rng.normal(0, 3, (height, width, 3))
        truth[t] = np.zeros((height, width), np.uint8)
        first = int(t * 1.3) % (width + 30)  # beyond the edge for a while: a scene without anything new
        truth[t][12:24, first : first + 9] = FOREGROUND
        picture[truth[t] == FOREGROUND] = np.array([40, 60, 220]) + rng.normal(0, 3, 3)
        pictures[t] = np.clip(picture, 0, 255).astype(np.uint8)
    return Clip("made-up frames", pictures, truth)


# ------------------------------------------------------------------------------------------------------- small pictures


def packed(frame: np.ndarray) -> np.ndarray:
    """A frame as the bytes of a JPEG file."""
    return np.asarray(cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, 80])[1]).ravel()


def show_frame(axes: Axes, jpeg: np.ndarray, title: str) -> None:
    _show(axes, plt.imread(io.BytesIO(jpeg.tobytes()), format="jpg"), title)


def show_mask(axes: Axes, mask: np.ndarray, title: str) -> None:
    """What is new is white; what ground truth leaves open is grey."""
    _show(axes, np.where(mask == 85, 128, np.where(mask == 170, 128, np.where(mask == 50, 0, mask))), title)


def _show(axes: Axes, image: np.ndarray, title: str) -> None:
    axes.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_title(title, fontsize=9)
