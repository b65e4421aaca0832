"""The clips of the video benchmark, their variants, and how a mask is scored."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import cv2
import numpy as np

FOREGROUND, IGNORED = 255, (85, 170)  # levels of CDnet's ground truth; 0 and 50 (hard shadow) are background


@dataclass
class Clip:
    """Frames in order, with ground truth for those that are scored, and where the light changes."""

    name: str
    frames: np.ndarray
    truth: dict[int, np.ndarray]
    repeat: int = 1
    noise: float = 0.0
    gains: dict[int, np.ndarray] = field(default_factory=dict)
    switch: int | None = None

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Frame and ground truth, None for a frame that is not scored; the same noise at every pass."""
        rng = np.random.default_rng(0)
        for t, original in enumerate(self.frames):
            for copy in range(self.repeat):
                frame = original
                if t in self.gains or self.noise:
                    light = frame * self.gains.get(t, 1.0)
                    if self.noise and (self.repeat > 1 or t in self.gains):
                        light = light + rng.normal(0.0, self.noise, frame.shape).astype(np.float32)
                    frame = np.clip(light + 0.5, 0, 255).astype(np.uint8)
                yield frame, self.truth.get(t) if copy == self.repeat - 1 or self.repeat == 1 else None

    def __len__(self) -> int:
        return len(self.frames) * self.repeat


def _images(archives: list[Path], inside: str, flag: int) -> np.ndarray:
    """Every image whose name contains a text, in the order of the names."""
    found = {}
    for archive in archives:
        with zipfile.ZipFile(archive) as file:
            for name in file.namelist():
                if inside in name and name.endswith((".jpg", ".png")):
                    found[name] = cv2.imdecode(np.frombuffer(file.read(name), np.uint8), flag)
    return np.stack([found[name] for name in sorted(found)])


def _cdnet(folder: Path, first: int) -> tuple[np.ndarray, dict[int, np.ndarray]]:
    """Frames and the ground truth from frame ``first`` (counted from 1) on."""
    archives = sorted(folder.glob("*.zip"))
    frames = _images(archives, "/input/", cv2.IMREAD_COLOR)
    masks = _images(archives, "/groundtruth/", cv2.IMREAD_GRAYSCALE)
    return frames, {t: masks[t] for t in range(first - 1, len(masks))}


def _uneven(shape: tuple[int, ...]) -> np.ndarray:
    """A gain from .35 (left) to .60 (right) with a colour cast."""
    plane = np.linspace(0.35, 0.60, shape[1], dtype=np.float32)[None, :, None]
    return np.broadcast_to(plane * np.array([1.05, 1.0, 0.92], np.float32), shape).astype(np.float32)


def _cold(name: str, frames: np.ndarray, truth: dict[int, np.ndarray], first: int, length: int) -> Clip:
    """So many frames from frame ``first`` (counted from 1), the first that the subtractor sees; 50 are not scored."""
    start = first - 1
    scored = {t - start: mask for t, mask in truth.items() if 50 <= t - start < length}
    return Clip(name, frames[start : start + length], scored)


def clips() -> Iterator[Clip]:
    """Every clip and variant of which the data are there."""
    data = Path(os.environ.get("GOSSAMER_DATA", ""))
    if (data / "video_highway").exists():
        frames, truth = _cdnet(data / "video_highway", 470)
        yield Clip("highway", frames, truth)
        change = range(999, 1059)
        part = {t: mask for t, mask in truth.items() if 999 <= t < 1260}
        dim = np.full(frames.shape[1:], 0.45, np.float32)
        yield Clip("highway, light switch", frames[:1260], part, gains=dict.fromkeys(change, dim), switch=999)
        uneven = _uneven(frames.shape[1:])
        yield Clip("highway, uneven switch", frames[:1260], part, 1, 2.0, dict.fromkeys(change, uneven), 999)
        yield _cold("highway, cold start", frames, truth, 470, 430)
        yield Clip("highway, slowed 12x", frames, truth, 12, 1.5)
    if (data / "video_traffic").exists():
        frames, truth = _cdnet(data / "video_traffic", 900)
        yield Clip("traffic", frames, truth)
        yield _cold("traffic, cold start", frames, truth, 900, 300)
    if (data / "video_wavingtrees").exists():
        archives = sorted((data / "video_wavingtrees").glob("*.zip"))
        frames = _images(archives, "/b0", cv2.IMREAD_COLOR)
        mask = _images(archives, "hand_segmented", cv2.IMREAD_GRAYSCALE)[0]
        yield Clip("waving trees", frames, {247: np.where(mask > 128, 255, 0).astype(np.uint8)})


@dataclass
class Tally:
    """Counts over the scored frames, and the alarms after a change of light."""

    hits: int = 0
    misses: int = 0
    alarms: int = 0
    shares: list[float] = field(default_factory=list)

    def add(self, mask: np.ndarray, truth: np.ndarray) -> None:
        known = (truth != IGNORED[0]) & (truth != IGNORED[1])
        real = truth == FOREGROUND
        found = mask & known
        hits = int(np.count_nonzero(found & real))
        self.hits += hits
        self.misses += int(np.count_nonzero(real)) - hits
        false = int(np.count_nonzero(found)) - hits
        self.alarms += false
        self.shares.append(false / max(1, int(np.count_nonzero(known & ~real))))

    @property
    def precision(self) -> float:
        return self.hits / max(1, self.hits + self.alarms)

    @property
    def recall(self) -> float:
        return self.hits / max(1, self.hits + self.misses)

    @property
    def f(self) -> float:
        return 2 * self.hits / max(1, 2 * self.hits + self.misses + self.alarms)

    @property
    def settled(self) -> int:
        """Frames after the first scored one until the false alarms are below 5 % for good (ten frames at least)."""
        for start in range(len(self.shares)):
            if all(share < 0.05 for share in self.shares[start : start + 10]):
                return start
        return len(self.shares)


def filtered(mask: np.ndarray) -> np.ndarray:
    """The 5x5 median filter after every method."""
    return cv2.medianBlur(mask, 5) > 0
