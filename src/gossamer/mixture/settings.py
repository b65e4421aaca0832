"""The settings that experts are made of: what a user of one learner would have to choose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from gossamer._sparse import SparseRows
from gossamer.budgets import Budget, Merge, Project
from gossamer.clock import in_words
from gossamer.kernels import Gaussian, Kernel, Laplace, Polynomial
from gossamer.kernels.pairs import distances
from gossamer.learner import Learner
from gossamer.losses import Logistic, Loss
from gossamer.rules import Newton

#: The widths of a Gaussian, in units of 1 / the median squared distance of rows; 0 is a linear kernel alone.
WIDTHS = (0.0, 0.3, 1.0, 3.0, 10.0)
#: From a world that stands still to one that changes within twenty rows.
FORGETTING = (1.0, 0.9999, 0.999, 0.99, 0.95)
#: The factor that has the half-life that is given, where experts forget by the clock.
MIDDLE = 0.999
#: From this factor on an expert is quick, and its linear part and constant have this weight only: they cover all
#: rows, so that forgetting, which goes back to 0, would always have to learn them anew.
QUICK, QUICK_LINEAR = 0.99, 0.01
#: The noise of classes, and that of targets of deviation 1.
NOISES = {"classification": (0.03, 0.1, 0.5, 2.0), "regression": (0.01, 0.1, 0.5, 2.0)}
#: Rows of at least this many features may be images, texts, codes: some experts take them as they come, unscaled.
WIDE = 50
#: The views of scaled rows.
SCALED_VIEWS = ("scaled", "squashed", "rooted")
#: The view that explorers try beside another. (Roots have their chance at the start: tried on the way too, they take
#: the place of explorers that follow a drift.)
OTHER_VIEW = {"scaled": "squashed", "squashed": "scaled", "rooted": "squashed"}
#: The widths of Laplace kernels, and their factors of forgetting, where rows are mixed: rougher functions, with steps.
ROUGH_WIDTHS, ROUGH_FORGETTING = (0.03, 0.3), (1.0, 0.9999, 0.999)
#: The fewer widths and factors of forgetting that wide rows start with, and the widths of experts on plain rows.
WIDE_WIDTHS, WIDE_FORGETTING, PLAIN_WIDTHS = (0.0, 1.0, 3.0), (1.0, 0.9999, 0.999), (0.3, 1.0, 1.7, 3.0)
#: The widths and factors of experts that start on squashed rows and on roots.
SHAPED_WIDTHS = (1.0, 3.0)
SHAPED_FORGETTING = {"squashed": (1.0, 0.9999, 0.999), "rooted": (1.0, 0.999)}
#: The widths and noises of experts with the logistic loss, where there are two classes.
SMOOTH_WIDTHS, SMOOTH_NOISES = (0.0, 1.0, 3.0), (0.1, 0.5, 2.0)


@dataclass(frozen=True)
class Setting:
    """One choice of settings.

    >>> Setting(3.0, 0.999, 0.1).describe()
    'Gaussian of width 3 and linear, forgetting 0.999 (about 1,000 rows), noise 0.1'
    """

    width: float
    forgetting: float
    noise: float
    view: str = "scaled"  # how it sees rows (`gossamer.mixture.views`); on plain ones it has no linear part
    rough: bool = False  # a Laplace kernel
    smooth: bool = False  # the logistic loss instead of the squared hinge, for two classes

    def kernel(self, unit: float, family: Any = None) -> Kernel:
        """The kernel for rows whose median squared distance is ``unit``: a Gaussian (or another ``family`` with a
        width), and beside it a linear part and a constant, which is the intercept."""
        linear: Kernel = Polynomial(1, 1.0 / unit, 1.0)
        if isinstance(family, Kernel):
            return family
        if self.width == 0:
            return linear
        bump: Kernel
        rough = self.rough or family is Laplace
        bump = Laplace(float(np.sqrt(self.width / unit))) if rough else Gaussian(self.width / unit)
        if self.view == "plain":
            return bump
        return bump + (QUICK_LINEAR * linear if self.forgetting <= QUICK else linear)

    def budget(self, size: int, family: Any = None) -> Budget:
        """The budget of an expert: a Gaussian alone can merge its points, which is far better on wide rows."""
        return Merge(size) if self.view == "plain" and family in (None, Gaussian) else Project(size)

    def loss(self, usual: Loss) -> Loss:
        """The loss of an expert, where ``usual`` is that of most."""
        return Logistic() if self.smooth else usual

    @property
    def entries(self) -> tuple[Any, ...]:
        """What a file has of it: the flags at the end only where one is set."""
        flags = (self.rough, self.smooth)
        numbers = self.width, self.forgetting, self.noise, self.view
        return (*numbers, *(flags if self.smooth else flags[:1] if self.rough else ()))

    def learner(
        self, unit: float, loss: Loss, size: int, family: Any = None, half_life: float | None = None
    ) -> Learner:
        """A new expert of at most ``size`` points; with ``half_life``, in seconds, it forgets by the clock."""
        kernel, budget = self.kernel(unit, family), self.budget(size, family)
        loss = self.loss(loss)
        if half_life is None:
            return Learner(kernel, loss, Newton(self.noise, self.forgetting), budget)
        return Learner(kernel, loss, Newton(self.noise), budget, half_life=self.half_life(half_life))

    def half_life(self, middle: float) -> float | None:
        """The half-life of an expert in seconds, where that of the middle factor is ``middle``; None forgets nothing.

        >>> [Setting(1.0, factor, 0.1).half_life(100.0) for factor in (1.0, 0.999)]
        [None, 100.0]
        """
        if self.forgetting == 1.0:
            return None
        return middle if self.forgetting == MIDDLE else middle * math.log(MIDDLE) / math.log(self.forgetting)

    def describe(self, kernel: str = "Gaussian", fixed: bool = False, half_life: float | None = None) -> str:
        """The setting in words; ``kernel``: the family, or if ``fixed`` the kernel itself; ``half_life``: as in
        `half_life`, where experts forget by the clock."""
        if fixed:
            shape = kernel
        elif self.width == 0:
            shape = "linear"
        else:
            kernel = "Laplace" if self.rough else kernel
            shape = f"{kernel} of width {self.width:g}" + ("" if self.view == "plain" else " and linear")
        views = {"scaled": "", "squashed": " on squashed rows", "rooted": " on roots", "plain": " on unscaled rows"}
        shape += views[self.view]
        noise = f"noise {self.noise:g}" + (", logistic loss" if self.smooth else "")
        if half_life is not None:
            own = self.half_life(half_life)
            told = "no forgetting" if own is None else f"half-life {in_words(own)}"
            return f"{shape}, {told}, {noise}"
        rows = "" if self.forgetting == 1 else f" (about {round(1 / (1 - self.forgetting)):,} rows)"
        return f"{shape}, forgetting {self.forgetting:g}{rows}, {noise}"


def first_settings(task: str) -> list[Setting]:
    """A few experts for the first rows, before the distances between rows are known."""
    noises = NOISES[task][1], NOISES[task][-1]
    return [Setting(width, 1.0, noise) for width in (0.0, 1.0) for noise in noises]


def young_settings(best: Setting, task: str, simple: bool, turn: int = 0) -> list[Setting]:
    """Experts for a world that has just changed: the settings of the best without forgetting; and if ``simple``,
    two for which few rows are enough, else one that is quick, of each factor in ``turn``."""
    own = replace(best, forgetting=1.0)
    if not simple:
        quick = [factor for factor in FORGETTING if factor <= QUICK]
        return [own, replace(best, forgetting=quick[turn % len(quick)])]
    noise = NOISES[task][2]
    return list(dict.fromkeys([own, Setting(0.0, 1.0, noise), Setting(1.0, 1.0, noise, best.view)]))


def all_settings(
    task: str, features: int, views: tuple[str, ...], fixed: bool, mixed: bool = False, two: bool = False
) -> list[Setting]:
    """The experts that a stream starts with; ``views``: of `SCALED_VIEWS`, ("scaled",) if rows are left alone;
    ``fixed``: the kernel is given; ``mixed``: Laplace kernels too; ``two``: there are two classes, and the logistic
    loss is tried too."""
    wide = features >= WIDE
    widths = (1.0,) if fixed else WIDE_WIDTHS if wide else WIDTHS
    forgetting = WIDE_FORGETTING if wide else FORGETTING
    found = [Setting(w, f, n) for w in widths for f in forgetting for n in NOISES[task]]
    for view in views[1:]:
        own_widths, own_forgetting = (1.0,) if fixed else SHAPED_WIDTHS, SHAPED_FORGETTING[view]
        found += [Setting(w, f, n, view) for w in own_widths for f in own_forgetting for n in NOISES[task]]
    if len(views) > 1 and wide and not fixed:
        found += [Setting(w, f, n, "plain") for w in PLAIN_WIDTHS for f in forgetting for n in NOISES[task]]
    if mixed:
        found += [Setting(w, f, n, rough=True) for w in ROUGH_WIDTHS for f in ROUGH_FORGETTING for n in NOISES[task]]
    if two:
        widths = (1.0,) if fixed else SMOOTH_WIDTHS
        found += [Setting(w, 1.0, n, view, smooth=True) for view in views for w in widths for n in SMOOTH_NOISES]
    return found


def neighbours(setting: Setting, task: str, views: tuple[str, ...], fixed: bool) -> list[Setting]:
    """The settings one step away, those of the same kernel first, which can start with what the setting knows; the last
    has another of the ``views``."""
    found = []
    widths = () if fixed else ROUGH_WIDTHS if setting.rough else WIDTHS
    for name, choices in (("forgetting", FORGETTING), ("noise", NOISES[task]), ("width", widths)):
        value = getattr(setting, name)
        if value not in choices:
            continue
        place = choices.index(value)
        for other in (place - 1, place + 1):
            if 0 <= other < len(choices) and not (name == "width" and setting.view == "plain" and choices[other] == 0):
                changed: dict[str, Any] = {name: choices[other]}
                found.append(replace(setting, **changed))
    beside = OTHER_VIEW.get(setting.view, "")
    return [*found, replace(setting, view=beside)] if beside in views else found


def median_distance(rows: Any) -> float:
    """The median squared distance of rows that differ; 1 if all are equal.

    >>> median_distance(np.array([[0.0], [1.0], [3.0]]))
    4.0
    """
    if isinstance(rows, SparseRows):
        found = distances(rows, rows, "sqeuclidean")[np.triu_indices(len(rows), 1)]
    else:
        found = pdist(np.asarray(rows, dtype=np.float64), "sqeuclidean")
    positive = found[found > 0]
    return float(np.median(positive)) if len(positive) else 1.0
