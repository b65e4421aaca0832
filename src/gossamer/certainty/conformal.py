"""How sure a model is, learned from its prequential scores: thresholds that hold the coverage asked for.

Adaptive conformal inference (Gibbs and Candes 2021). Each row has a value that says how strange it was: |y - f| of a
regressor, 1 - p of the class that came, how far the score of a detector is below the usual ones. For each followed
share of misses, alpha_1 is that share, and

    alpha_{t+1} = alpha_t + step * (share - missed_t),

where the row is missed if its value lies above the 1 - alpha_t quantile of the values before, all of which are honest:
each score was made before its target was used. The quantile is infinite for alpha_t <= 0. Then, for every sequence
whatever,

    |missed share of T rows - share| <= (max(alpha_1, 1 - alpha_1) + step) / (step T)

(`gossamer.bounds.conformal_coverage`). The step is a tenth of the share, for detectors three tenths. A share in between
those followed gets an alpha in proportion, without that guarantee.

This is the specification of core/certainty/certainty.hpp, which the estimators use.
"""

from __future__ import annotations

import math
from typing import Any

from scipy.special import softmax

from gossamer.certainty.calibration import Calibration
from gossamer.certainty.links import sigmoid
from gossamer.certainty.sketch import Sketch

#: The shares of misses that are followed: coverages .5, .8, .9, .95 and .99.
MISSED = (0.5, 0.2, 0.1, 0.05, 0.01)
STEP, STEP_NOVELTY = 0.1, 0.3


class Conformal:
    """Thresholds for a few coverages at once.

    >>> import numpy as np
    >>> conformal = Conformal()
    >>> for value in np.random.default_rng(0).exponential(size=3000):
    ...     conformal.learn(value)
    >>> round(conformal.sketch.quantile(1 - conformal.alphas[2]), 1), round(float(-np.log(0.1)), 1)
    (1.9, 2.3)
    """

    def __init__(self) -> None:
        self.alphas, self.sketch = list(MISSED), Sketch()

    def learn(self, value: float, weight: float = 1.0, step: float = STEP) -> None:
        """Learn how strange a row was."""
        if self.sketch.total > 0:
            share = self.sketch.below(value)
            for k, wanted in enumerate(MISSED):
                self.alphas[k] += step * wanted * (wanted - (1.0 if share > 1.0 - self.alphas[k] else 0.0))
        self.sketch.add(value, weight)

    def alpha(self, missed: float) -> float:
        """The share of misses that stands for the one asked for now."""
        ratios = [alpha / wanted for alpha, wanted in zip(self.alphas, MISSED, strict=True)]
        if missed >= MISSED[0]:
            return missed * ratios[0]
        for k in range(1, len(MISSED)):
            if missed == MISSED[k]:
                return self.alphas[k]
            if missed > MISSED[k]:
                share = (missed - MISSED[k]) / (MISSED[k - 1] - MISSED[k])
                return missed * (share * ratios[k - 1] + (1.0 - share) * ratios[k])
        return missed * ratios[-1]


class Usual:
    """Where the scores of a detector lie, which move while it learns: their mean and mean deviation, of about 200 rows.

    >>> usual = Usual()
    >>> for score in (1.0, 3.0, 1.0, 3.0):
    ...     usual.learn(score)
    >>> usual.mean, round(usual.strangeness(0.0), 2), usual.strangeness(5.0)
    (2.0, 1.85, 0.0)
    """

    RATE, LARGEST = 0.005, 1e12

    def __init__(self) -> None:
        self.mean, self.deviation, self.rows = 0.0, 0.0, 0.0

    def strangeness(self, f: float) -> float:
        """How far a score is below the mean, in deviations."""
        if not self.deviation > 0:
            return self.LARGEST if f < self.mean else 0.0
        return min(self.LARGEST, max(0.0, (self.mean - f) / self.deviation))

    def learn(self, f: float, weight: float = 1.0) -> None:
        """Follow a score."""
        self.mean = self.mean if self.rows > 0 else f
        self.rows += weight
        share, away = min(1.0, max(self.RATE * weight, weight / self.rows)), f - self.mean
        self.mean += share * away
        self.deviation += share * (abs(away) - self.deviation)


class Certainty:
    """What an estimator keeps beside its learner: the calibration of a classifier, and thresholds.

    The task "log_odds" is that of a classifier that calibrates itself: its scores are log-odds, or with many classes
    logarithms of probabilities.

    >>> sure = Certainty("regression")
    >>> for t in range(1000):
    ...     sure.learn_real(1.0 if t % 10 else 3.0)
    >>> round(sure.threshold(0.2), 1), round(sure.threshold(0.05), 1)
    (1.0, 1.2)
    """

    def __init__(self, task: str) -> None:
        self.task, self.calibration, self.usual, self.conformal = task, Calibration(), Usual(), Conformal()

    def threshold(self, missed: float) -> float:
        """The value beyond which a row is strange, for a share of misses; of a detector below which."""
        strange = self.conformal.sketch.quantile(1.0 - self.conformal.alpha(missed))
        if self.task != "novelty":
            return strange
        return -strange if math.isinf(strange) else self.usual.mean - strange * self.usual.deviation

    def probability(self, f: float) -> float:
        """The probability of the second of two classes."""
        return sigmoid(f) if self.task == "log_odds" else self.calibration.probability(f)

    def probability_many(self, f: Any) -> Any:
        """The probability of each class."""
        return softmax(f) if self.task == "log_odds" else self.calibration.probability_many(f)

    def fade(self, factor: float) -> None:
        """Time has passed: what was learned counts less by a factor (`gossamer.clock`)."""
        if factor != 1.0:
            self.calibration.fade(factor)
            self.usual.rows *= factor
            self.conformal.sketch.fade(factor)

    def learn_two(self, f: float, second: bool, weight: float = 1.0) -> None:
        """Learn a score of two classes."""
        if math.isfinite(f) and weight:
            p = self.probability(f)
            self.conformal.learn(1.0 - p if second else p, weight)
            if self.task == "classification":
                self.calibration.learn(f, second, weight)

    def learn_many(self, f: Any, label: int, weight: float = 1.0) -> None:
        """Learn a score per class."""
        if not weight or any(math.isnan(score) or score == math.inf for score in f):
            return
        if 0 <= label < len(f) and math.isfinite(f[label]):
            self.conformal.learn(1.0 - float(self.probability_many(f)[label]), weight)
        if self.task == "classification":
            self.calibration.learn_many(f, label, weight)

    def learn_real(self, residual: float, weight: float = 1.0) -> None:
        """Learn y - f, in units of the deviation if the model has one."""
        if math.isfinite(residual) and weight:
            self.conformal.learn(abs(residual), weight)

    def learn_novelty(self, f: float, weight: float = 1.0) -> None:
        """Learn the score of a detector."""
        if math.isfinite(f) and weight:
            if self.usual.deviation > 0:
                self.conformal.learn(self.usual.strangeness(f), weight, STEP_NOVELTY)
            self.usual.learn(f, weight)

    def p_value(self, f: float) -> float:
        """The share of alarms at which a row with this score is just about to raise one: small for a strange row."""
        sketch, m, alpha = self.conformal.sketch, 0.0, 0.0
        if not sketch.total > 0:
            return 1.0
        strange, least = self.usual.strangeness(f), 1.0 / (sketch.count + 1.0)
        share, floor = max(0.0, 1.0 - sketch.below(strange)), least
        if share <= 0:  # beyond all that came: the farther the smaller
            share, floor = least * max(1e-9, min(1.0, sketch.highest() / strange)), 0.0
        for wanted, now in zip((*MISSED[::-1], 1.0), (*self.conformal.alphas[::-1], 1.0), strict=True):
            after = max(alpha, now)
            if share < after or wanted == 1.0:
                part = (share - alpha) / (after - alpha) if after > alpha else math.inf
                return max(floor, min(1.0, m + (wanted - m) * part))
            m, alpha = wanted, after
        return 1.0

    def state(self) -> list[float]:
        """All numbers, in the order of the compiled twin."""
        own = self.calibration
        first: list[float] = []
        if self.task == "classification":
            first = [*own.two, *own.mean.numbers, *own.many, *own.curve.shifts, *own.curve.curvatures]
        if self.task == "novelty":
            first = [self.usual.mean, self.usual.deviation, self.usual.rows]
        sketch = self.conformal.sketch
        counts = [sketch.octave, sketch.gain, sketch.total]
        return [*first, *self.conformal.alphas, *counts, *sketch.weights, *sketch.blocks]
