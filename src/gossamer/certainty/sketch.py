"""The distribution of recent values of any scale, in bins: four to an octave, sixteen octaves, older values
weighing less.

The specification of core/certainty/sketch.hpp, which the estimators use.
"""

from __future__ import annotations

import math

BINS, PER_OCTAVE, UNIT_BIN = 64, 4, 40
KEEP = 0.999
LARGEST_GAIN = 1e100


class Sketch:
    """The shares and quantiles of values, those before fading by a factor of .999 at each new one.

    >>> sketch = Sketch()
    >>> for value in range(1, 101):
    ...     sketch.add(float(value))
    >>> round(sketch.quantile(0.5)), round(sketch.below(90.0), 2)
    (52, 0.89)
    """

    def __init__(self) -> None:
        self.octave, self.gain, self.total = 0.0, 1.0, 0.0
        self.weights = [0.0] * BINS

    def add(self, value: float, weight: float = 1.0) -> None:
        """Add a value; values that are not positive belong to the first bin."""
        if value > 0 and self.total == 0:
            self.octave = float(math.frexp(value)[1] - 1)
        place = self._bin(value)
        if place >= BINS:
            self._raise((place - BINS) // PER_OCTAVE + 1)
            place = self._bin(value)
        elif place < 0 < value and self.weights[0] > 0.5 * self.total:
            self._lower()
            place = self._bin(value)
        self.weights[max(0, place)] += self.gain * weight
        self.total += self.gain * weight
        self.gain /= KEEP
        if self.gain > LARGEST_GAIN:
            self.weights = [one / self.gain for one in self.weights]
            self.total, self.gain = self.total / self.gain, 1.0

    def fade(self, factor: float) -> None:
        """Time has passed: older values weigh less by a factor; 0 forgets them."""
        if not factor > 0:
            self.octave, self.gain, self.total, self.weights = 0.0, 1.0, 0.0, [0.0] * BINS
            return
        self.gain /= factor
        if self.gain > LARGEST_GAIN:
            self.weights = [one / self.gain for one in self.weights]
            self.total, self.gain = self.total / self.gain, 1.0

    @property
    def count(self) -> float:
        """How many values there are, in units of the newest."""
        return self.total / self.gain

    def below(self, value: float) -> float:
        """The share of the weight below a value, linear inside a bin."""
        if self.total <= 0 or not value > 0:
            return 0.0
        place = min(max(0, self._bin(value)), BINS)
        if place == BINS:
            return 1.0
        low, high, lanes = self._edge(place), self._edge(place + 1), [0.0] * 4
        for i, weight in enumerate(self.weights[:place]):  # in four sums, as the compiled twin
            lanes[i % 4] += weight
        before = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        return min(1.0, (before + self.weights[place] * (value - low) / (high - low)) / self.total)

    def lowest(self) -> float:
        """Where the weight begins."""
        return next((self._edge(i) for i, weight in enumerate(self.weights) if weight > 0), 0.0)

    def quantile(self, share: float) -> float:
        """The least value with this share of the weight below it; infinite for a share of 1, -infinite below 0."""
        if self.total <= 0 or share >= 1:
            return math.inf
        if share < 0:
            return -math.inf
        before = 0.0
        for i, weight in enumerate(self.weights):
            if weight > 0 and before + weight >= share * self.total:
                low, high = self._edge(i), self._edge(i + 1)
                return low + (high - low) * max(0.0, share * self.total - before) / weight
            before += weight
        return self._edge(BINS)

    def _bin(self, value: float) -> int:
        if not value > 0:
            return -1
        m, exponent = math.frexp(value)
        return UNIT_BIN + PER_OCTAVE * int(exponent - 1 - self.octave) + int((m - 0.5) * 2 * PER_OCTAVE)

    def _edge(self, place: int) -> float:
        if place <= 0:
            return 0.0
        whole, part = divmod(place - UNIT_BIN, PER_OCTAVE)
        return math.ldexp(1.0 + part / PER_OCTAVE, whole + int(self.octave))

    def _raise(self, octaves: int) -> None:
        self.octave += octaves
        shift = min(BINS, octaves * PER_OCTAVE)
        first = self.weights[0]
        for weight in self.weights[1 : shift + 1]:
            first += weight
        self.weights = [first, *self.weights[shift + 1 :], *[0.0] * shift][:BINS]

    def _lower(self) -> None:
        """By four octaves."""
        shift = 4 * PER_OCTAVE
        self.octave -= 4
        last = self.weights[-1]
        for weight in self.weights[BINS - shift : -1]:
            last += weight
        self.weights = [self.weights[0], *[0.0] * shift, *self.weights[1 : BINS - 1 - shift], last]
