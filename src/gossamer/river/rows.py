"""`gossamer.RowEncoder` as a transformer of river: dict rows of any kind become dicts of numbers."""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from typing import Any

from gossamer import rows
from gossamer.river import models


class RowEncoder(models.Transformer):
    """Numbers with gaps, categories, text and timestamps of dict rows as numbers, for any model of river.

    The parameters are those of `gossamer.RowEncoder`, and so are the features: what is learned from a row is used from
    the next one on. What the columns are is decided by the first row, unless ``columns`` says it, such as a plan of a
    frame. A key that comes later is left out, one that goes is a gap.

    >>> from gossamer.river import SILKClassifier
    >>> model = RowEncoder({"shop": "category:places=4,hashed=1"}) | SILKClassifier()
    >>> for i in range(200):
    ...     model.learn_one({"shop": "ab"[i % 2], "size": None if i % 7 else 1.0}, i % 2 == 0)
    >>> model.predict_one({"shop": "a"}), model.predict_one({"shop": "b", "size": 1.0})
    (True, False)
    """

    def __init__(
        self, columns: Any = None, missing: str = "fill", places: int = 64, hashed: int = 16, text_width: int = 128,
        memory: float = 2000.0, timezone: str = "UTC", scale: bool = True, clip: float = 5.0, forget: float = 0.0,
    ) -> None:  # fmt: skip
        self.columns, self.missing, self.places, self.hashed = columns, missing, places, hashed
        self.text_width, self.memory, self.timezone, self.scale = text_width, memory, timezone, scale
        self.clip, self.forget = clip, forget
        self._encoder: Any = None

    @property
    def encoder(self) -> Any:
        """The `gossamer.RowEncoder` inside; None before the first row."""
        return self._encoder

    def _settled(self, x: Any) -> Any:
        if self._encoder is None:
            names = [name for name in inspect.signature(type(self).__init__).parameters if name != "self"]
            given = {name: getattr(self, name) for name in names}
            self._encoder = rows.RowEncoder(**given, sparse=False).settle([dict(x)])
        return self._encoder

    def learn_one(self, x: Any) -> None:
        """Learn a row."""
        self._settled(x).partial_fit([dict(x)])

    def transform_one(self, x: Any) -> dict[Hashable, Any]:
        """The features of a row, all of them."""
        encoder = self._settled(x)
        return dict(zip(encoder.plan_.names, encoder.transform([dict(x)])[0].tolist(), strict=True))
