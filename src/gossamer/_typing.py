"""The types of arrays, each under one name."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
#: The index of each row's text in a list of categories.
Codes = NDArray[np.int32]
#: A frame of a video, or a mask.
Image = NDArray[np.uint8]
