"""``gossamer video``: masks of a video, an overlay, a table, a contact sheet, and an evaluation."""

from __future__ import annotations

import argparse
import csv
import sys
import time
from contextlib import ExitStack
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Image
from gossamer.video import BackgroundSubtractor
from gossamer.video.frames import FOREGROUND, UNSCORED, frames, number_of, opencv, truths

BINS = 2048
SHEET = 12  # frames on the contact sheet


def work(options: argparse.Namespace) -> None:
    """Run it."""
    cv2 = opencv()
    _checks.whole("video", "first", options.first, 1)
    if _checks.whole("video", "median", options.median, 1) % 2 == 0:
        raise _checks.wrong("video", "median", "odd", options.median)
    if options.load:
        subtractor = BackgroundSubtractor.load(options.load)
    else:
        subtractor = BackgroundSubtractor(
            options.rule, patience=options.patience, budget=options.budget, threads=options.threads,
            alarms=options.alarms,
        )  # fmt: skip
    known = truths(options.evaluate) if options.evaluate else {}
    score = Evaluation() if options.evaluate else None
    sheet: list[tuple[Image, Image]] = []
    step, count, spent, started = 1, 0, 0.0, time.monotonic()
    with ExitStack() as stack:
        masks = stack.enter_context(Writer(cv2, options.out, options.fps))
        overlays = stack.enter_context(Writer(cv2, options.overlay, options.fps))
        table = csv.writer(stack.enter_context(open(options.stats, "w", newline=""))) if options.stats else None
        if table:
            table.writerow(["frame", "foreground", "shadow", "milliseconds"])
        for index, (name, frame) in enumerate(frames(options.input), 1):
            if index < options.first:
                continue
            if options.last is not None and index > options.last:
                break
            truth = known.get(index if (number := number_of(name)) is None else number)
            levels = subtractor.score(frame) if score and truth else None
            start = time.perf_counter()
            mask = subtractor.apply(frame)
            took = time.perf_counter() - start
            spent, count = spent + took, count + 1
            if options.median > 1:
                mask = cv2.medianBlur(mask, options.median)
            if score and truth and levels is not None:
                score.add(mask, levels, truth())
            masks.write(mask)
            if options.overlay:
                overlays.write(marked(frame, mask))
            if table:
                share = [float((mask == level).mean()) for level in (255, 127)]
                table.writerow([index, *(f"{part:.5f}" for part in share), f"{1e3 * took:.2f}"])
            if options.preview and (count - 1) % step == 0:
                sheet.append((frame, mask))
                if len(sheet) == 2 * SHEET:  # keep every other frame, and from now on at twice the distance
                    sheet, step = sheet[::2], 2 * step
            if sys.stderr.isatty() and count % 10 == 0:
                print(f"\r{count} frames, {count / spent:.0f} frames/s", end="", file=sys.stderr, flush=True)
    if not count:
        raise _checks.wrong("video", "input", "of at least one frame", options.input)
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    if options.preview and not cv2.imwrite(options.preview, contact(cv2, sheet)):
        raise _checks.wrong("video", "preview", "an image that can be written", options.preview)
    if options.save:
        subtractor.save(options.save)
    total = time.monotonic() - started
    print(f"{count} frames, {count / spent:.0f} frames/s in the subtractor, {count / total:.0f} with what is around it")
    if score:
        print(score)


def marked(frame: Image, mask: Image) -> Image:
    """The frame with foreground in red and shadow in blue."""
    made = frame.copy()
    made[mask == 255] = made[mask == 255] // 2 + np.array([0, 0, 127], np.uint8)
    made[mask == 127] = made[mask == 127] // 2 + np.array([127, 0, 0], np.uint8)
    return made


def contact(cv2: Any, sheet: list[tuple[Image, Image]]) -> Image:
    """Frames above their masks, four in a row."""
    chosen = sheet[:: max(1, len(sheet) // SHEET)][:SHEET]
    cells = [np.vstack([frame, cv2.merge([mask] * 3)]) for frame, mask in chosen]
    width = 240
    cells = [cv2.resize(cell, (width, round(width * cell.shape[0] / cell.shape[1]))) for cell in cells]
    cells += [np.zeros_like(cells[0])] * (-len(cells) % 4)
    made: Image = np.vstack([np.hstack(cells[i : i + 4]) for i in range(0, len(cells), 4)])
    return made


class Writer:
    """Images to a video, or to a folder if the name has no ending; to nowhere without a name."""

    def __init__(self, cv2: Any, path: str | None, fps: float) -> None:
        self.cv2, self.path, self.fps, self.count = cv2, path, fps, 0
        self.video: Any = None

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *error: object) -> None:
        if self.video is not None:
            self.video.release()

    def write(self, image: Image) -> None:
        """Write an image."""
        if self.path is None:
            return
        self.count += 1
        if "." not in self.path.rsplit("/", 1)[-1]:
            from pathlib import Path

            Path(self.path).mkdir(parents=True, exist_ok=True)
            self.cv2.imwrite(f"{self.path}/{self.count:06d}.png", image)
            return
        if self.video is None:
            code = "MJPG" if self.path.endswith(".avi") else "mp4v"
            size = (image.shape[1], image.shape[0])
            self.video = self.cv2.VideoWriter(self.path, self.cv2.VideoWriter.fourcc(*code), self.fps, size)
            if not self.video.isOpened():
                raise _checks.wrong("video", "out", "a video that OpenCV can write (.mp4, .avi) or a folder", self.path)
        self.video.write(image if image.ndim == 3 else self.cv2.merge([image] * 3))


class Evaluation:
    """Counts over all frames with ground truth: shadow is background, unscored pixels of CDnet are left out."""

    def __init__(self) -> None:
        self.frames = self.hits = self.misses = self.alarms = 0
        self.old, self.new = np.zeros(BINS), np.zeros(BINS)

    def add(self, mask: Image, levels: Any, truth: Image) -> None:
        """Count a frame: its mask, the raw scores and the ground truth."""
        if truth.shape != mask.shape:
            raise _checks.wrong("video", "evaluate", f"masks of shape {mask.shape}", truth.shape)
        scored = ~np.isin(truth, UNSCORED)
        real, found = scored & (truth == FOREGROUND), scored & (mask == 255)
        self.frames += bool(scored.any())
        self.hits += int((real & found).sum())
        self.misses += int((real & ~found).sum())
        self.alarms += int((found & ~real).sum())
        place = np.clip(levels * (BINS / 4) + BINS / 2, 0, BINS - 1).astype(np.int64)
        self.new += np.bincount(place[real], minlength=BINS)
        self.old += np.bincount(place[scored & ~real], minlength=BINS)

    def __str__(self) -> str:
        if not self.new.sum() or not self.old.sum():
            return "no frame with ground truth for foreground and background"
        precision, recall = self.hits / max(1, self.hits + self.alarms), self.hits / max(1, self.hits + self.misses)
        f = 2 * self.hits / max(1, 2 * self.hits + self.misses + self.alarms)
        found = np.concatenate([[0.0], np.cumsum(self.new[::-1]) / self.new.sum()])
        false = np.concatenate([[0.0], np.cumsum(self.old[::-1]) / self.old.sum()])
        area = float(np.sum(np.diff(false) * (found[1:] + found[:-1]) / 2))
        return (
            f"{self.frames} frames with ground truth: precision {precision:.3f}, recall {recall:.3f}, F {f:.3f}, "
            f"ROC area of the raw scores {area:.3f}"
        )
