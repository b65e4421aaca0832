"""Masks beside those of OpenCV, in one picture: frame, ground truth, Gossamer, MOG2, KNN.

GOSSAMER_DATA=... python examples/video.py --out video.jpg     # the clips of that folder
python examples/video.py clip.mp4 --at 300 --out video.jpg     # any video, image folder or zip file
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from gossamer.video import BackgroundSubtractor
from gossamer.video.frames import Image, frames, truths

#: Clip, the frame that is shown, and where the light is switched down (to 0.45), if it is.
CLIPS = [
    ("video_highway", 800, None),
    ("video_highway", 800, 780),
    ("video_traffic", 1350, None),
    ("video_wavingtrees", 248, None),
]


def clip(folder: Path) -> tuple[Iterator[Image], dict[int, object]]:
    """The frames of the zip files of a folder, and the ground truth by number."""
    archives = sorted(folder.glob("*.zip"))
    images = (image for archive in archives for name, image in frames(archive) if "segmented" not in name)
    known = {number: mask for archive in archives for number, mask in truths(archive).items()}
    if folder.name == "video_wavingtrees":  # one mask, of the frame 247 counted from 0
        known = {248: known[247]}
    return images, known


def row(images: Iterator[Image], at: int, switch: int | None, truth: Image | None) -> Image:
    """Frame, truth and the masks at one frame, after the same 5x5 median filter."""
    methods = [
        BackgroundSubtractor(), cv2.createBackgroundSubtractorMOG2(), cv2.createBackgroundSubtractorKNN(),
    ]  # fmt: skip
    for t, image in enumerate(images, 1):
        frame = np.round(image * 0.45).astype(np.uint8) if switch is not None and t >= switch else image
        masks = [cv2.medianBlur(method.apply(frame), 5) for method in methods]
        if t == at:
            break
    shown = [np.zeros_like(masks[0]) if truth is None else truth, *masks]
    parts = [cv2.resize(part, (256, 192), interpolation=cv2.INTER_AREA) for part in (frame, *map(colour, shown))]
    return np.hstack([np.pad(part, ((0, 4), (0, 4), (0, 0)), constant_values=255) for part in parts])


def colour(mask: Image) -> Image:
    return cv2.cvtColor(mask, cv2.COLOR_GRAY2BGR)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", nargs="?", help="a video instead of the clips of GOSSAMER_DATA")
    parser.add_argument("--at", type=int, default=200, help="the frame of that video to show, counted from 1")
    parser.add_argument("--out", default="video.jpg")
    options = parser.parse_args()
    rows = []
    if options.input:
        rows.append(row((image for _, image in frames(options.input)), options.at, None, None))
    else:
        for name, at, switch in CLIPS:
            folder = Path(os.environ.get("GOSSAMER_DATA", "")) / name
            if not os.environ.get("GOSSAMER_DATA") or not folder.exists():
                print(f"{name} is not in GOSSAMER_DATA: left out")
                continue
            images, known = clip(folder)
            rows.append(row(images, at, switch, known[at]() if at in known else None))
    if not rows:
        raise SystemExit("no clip: name a video, or set GOSSAMER_DATA")
    head = np.full((24, rows[0].shape[1], 3), 255, np.uint8)
    for i, title in enumerate(("frame", "ground truth", "Gossamer", "OpenCV MOG2", "OpenCV KNN")):
        cv2.putText(head, title, (260 * i + 4, 17), cv2.FONT_HERSHEY_SIMPLEX, 0.5, (0, 0, 0), 1, cv2.LINE_AA)
    cv2.imwrite(options.out, np.vstack([head, *rows]), [cv2.IMWRITE_JPEG_QUALITY, 85])
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
