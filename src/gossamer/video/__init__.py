"""Video: a background subtractor with OpenCV's interface, a novelty learner per pixel.

A pixel's colour is a row; SILK or truncated NORMA with a Gaussian kernel learns which colours are usual there. The code
in core/video is a second loop beside that of the engine: it learns one row in each of many models, 32 neighbouring
pixels at once in vector registers, where the engine learns many rows in one model. docs/video.md shows the results.
"""

from gossamer.video.subtractor import PLAIN, BackgroundSubtractor

__all__ = [
    "PLAIN",
    "BackgroundSubtractor",
]
