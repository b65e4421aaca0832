"""Frames from video files, image folders, zip files and cameras, and ground truth in CDnet's layout.

Needs OpenCV: ``pip install gossamer[video]``.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Image

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp")
#: Levels of the ground truth of changedetection.net: not scored; 0 and 50 (hard shadow) are background.
FOREGROUND, UNSCORED = 255, (85, 170)


def opencv() -> Any:
    """The module cv2, or an error that names the extra."""
    return _checks.extra("cv2", "Video", "video")


def frames(source: str | Path) -> Iterator[tuple[str, Image]]:
    """The name and pixels of each frame, in order: of a video file, an image folder, a zip file of images (an ``input``
    folder inside, where there is one), or a camera's number."""
    cv2 = opencv()
    if str(source).isdigit():
        yield from _capture(cv2.VideoCapture(int(str(source))), f"camera {source}")
    elif Path(source).is_dir() or zipfile.is_zipfile(source):
        names, read = _list_images(Path(source))
        chosen = [name for name in names if "input" in Path(name).parts[:-1]] or names
        for name in chosen:
            yield name, _decode(cv2, name, read(name), cv2.IMREAD_COLOR)
    elif Path(source).is_file():
        yield from _capture(cv2.VideoCapture(str(source)), str(source))
    else:
        rule = "a video file, image folder, zip file or number of a camera"
        raise _checks.wrong("frames", "source", rule, str(source))


def truths(source: str | Path) -> dict[int, Callable[[], Image]]:
    """Ground truth by the number in a mask's name (gt000470.png is 470): a function that reads it."""
    cv2 = opencv()
    if not (Path(source).is_dir() or (Path(source).is_file() and zipfile.is_zipfile(source))):
        raise _checks.wrong("truths", "source", "a folder or zip file of masks", str(source))
    names, read = _list_images(Path(source))
    chosen = [name for name in names if "groundtruth" in Path(name).parts[:-1]] or names

    def reader(name: str) -> Callable[[], Image]:
        return lambda: _decode(cv2, name, read(name), cv2.IMREAD_GRAYSCALE)

    return {number: reader(name) for name in chosen if (number := number_of(name)) is not None}


def number_of(name: str) -> int | None:
    """The last number in a file's name.

    >>> number_of("input/in000470.jpg"), number_of("mask.png")
    (470, None)
    """
    digits = re.findall(r"\d+", Path(name).stem)
    return int(digits[-1]) if digits else None


def _list_images(source: Path) -> tuple[list[str], Callable[[str], bytes]]:
    """The images of a folder or zip file, sorted, and the function that reads an image."""
    if source.is_dir():
        names = [str(path.relative_to(source)) for path in source.rglob("*") if path.suffix.lower() in IMAGES]
        return sorted(names), lambda name: (source / name).read_bytes()
    archive = zipfile.ZipFile(source)
    return sorted(name for name in archive.namelist() if name.lower().endswith(IMAGES)), archive.read


def _decode(cv2: Any, name: str, data: bytes, flag: int) -> Image:
    image: Image | None = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    if image is None:
        raise _checks.wrong("frames", "source", "of images that can be read", name)
    return image


def _capture(capture: Any, name: str) -> Iterator[tuple[str, Image]]:
    try:
        if not capture.isOpened():
            raise _checks.wrong("frames", "source", "a video that OpenCV can read", name)
        count = 0
        while (read := capture.read())[0]:
            count += 1
            yield f"{name} {count}", read[1]
    finally:
        capture.release()
