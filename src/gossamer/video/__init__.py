"""Video: one novelty learner per pixel, as a background subtractor of OpenCV's shape.

A pixel's colour is a row of numbers; SILK or truncated NORMA with a Gaussian kernel learns which colours it has, and
alarms where f(x) is low. docs/video.md shows what that looks like, and what each option is worth.
"""

from gossamer.video.subtractor import PLAIN, BackgroundSubtractor

__all__ = [
    "PLAIN",
    "BackgroundSubtractor",
]
