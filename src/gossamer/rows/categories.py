"""The categories of a column while it streams: which have a place of their own, and which share hashed ones."""

from __future__ import annotations

import copy
import zlib
from typing import Any

import numpy as np

from gossamer import _checks, _core
from gossamer._typing import Floats
from gossamer.rows.table import Coded

#: Candidates for a place, for each place; and the binary digits that counts are shifted by now and then.
CANDIDATES, SHIFT = 4, 40
#: Longer texts are one category with others that begin like them: texts are kept, and memory is bounded.
LONGEST = 200
FREE = -1


class Categories:
    """The state of a column: the texts of its places and candidates, and counts that fade by half in ``memory`` rows.

    `core/rows/categories.hpp` has the rules by which a category gets a place, and loses it.

    >>> from gossamer.rows import Coded
    >>> state, out = Categories(2, 1), np.zeros((5, 3))
    >>> state.encode(Coded.of(["a", "b", "a", "c", None]), out, 0, learn=True, memory=100.0)
    >>> out.tolist(), state.texts[:2]
    ([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], ['a', 'b'])
    """

    def __init__(self, places: int, hashed: int) -> None:
        self.places, self.hashed = places, hashed
        self.texts: list[str | None] = [None] * (places * (1 + CANDIDATES))
        self.counts, self.errors = np.zeros((2, len(self.texts)))
        self.weight, self.row = 1.0, 0

    def encode(self, coded: Coded, out: Floats, first: int, learn: bool, memory: float) -> None:
        """Write a 1 for each row into ``out`` from the column ``first`` on, and learn the rows."""
        codes, values = merge_codes(coded.codes, [value[:LONGEST] for value in coded.values])
        where = {text: entry for entry, text in enumerate(self.texts) if text is not None}
        values += where.keys() - set(values)  # whoever has an entry has a code
        found = np.array([where.get(value, FREE) for value in values], dtype=np.int64)
        buckets = np.array([hash_text(value) % self.hashed for value in values], dtype=np.int64)
        owners = np.full(len(self.texts), FREE, dtype=np.int64)
        owners[found[found >= 0]] = np.flatnonzero(found >= 0)
        growth, period = growth_of(memory)
        counts, errors = (self.counts, self.errors) if learn else (self.counts.copy(), self.errors.copy())
        weight, row = _core.encode_categories(
            codes, buckets, out, first, self.places, self.hashed, counts, errors, owners, found,
            (self.weight, growth), (self.row, period), learn,
        )  # fmt: skip
        if learn:
            self.weight, self.row = weight, row
            self.texts = [None if owner < 0 else values[owner] for owner in owners.tolist()]

    def clone(self) -> Categories:
        """A copy that learns by itself."""
        made = copy.copy(self)
        made.counts, made.errors = self.counts.copy(), self.errors.copy()
        return made

    def state(self) -> dict[str, Any]:
        """All of it as plain data."""
        texts = [text or "" for text in self.texts]  # an empty text is missing, and never a category
        return {"texts": texts, "counts": np.stack([self.counts, self.errors]), "weight": self.weight, "row": self.row}

    def restore(self, state: Any, memory: float) -> None:
        """From `state`, of data that may be forged: they are checked."""
        size = len(self.texts)
        try:
            texts, counts = list(state["texts"]), np.array(state["counts"], dtype=np.float64)
            weight, row = float(state["weight"]), int(state["row"])
            good = len(texts) == size and all(type(text) is str and len(text) <= LONGEST for text in texts)
            named = [text for text in texts if text]
            good = good and len(set(named)) == len(named) and counts.shape == (2, size)
            good = good and bool(np.isfinite(counts).all()) and bool((counts >= 0).all())
            good = good and 0 <= row < growth_of(memory)[1] and 1.0 <= weight <= 2.0 ** (SHIFT + 1)
        except (TypeError, KeyError, ValueError, IndexError):
            good = False
        if not good:
            raise _checks.wrong("RowEncoder", "state_", f"the state of {self.places} places", state)
        self.texts, self.weight, self.row = [text or None for text in texts], weight, row
        self.counts, self.errors = counts[0].copy(), counts[1].copy()

    @property
    def known(self) -> list[str]:
        """The categories that have a place now."""
        return [text for text in self.texts[: self.places] if text is not None]


def hash_text(text: str) -> int:
    """A hash that is the same in every process."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def growth_of(memory: float) -> tuple[float, int]:
    """How the weight grows from row to row, and after how many rows counts are shifted."""
    return 2.0 ** (1.0 / memory), max(1, int(SHIFT * memory))


def merge_codes(codes: Any, values: list[str]) -> tuple[Any, list[str]]:
    """Codes into different values, where some are the same."""
    if len(set(values)) == len(values):
        return codes, values
    once = Coded.of(values)
    return np.append(once.codes, np.int32(-1))[codes], once.values
