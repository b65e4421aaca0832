"""The demo: seven learners side by side on a stream whose drift speeds up (after Cheng et al. 2006, Fig. 1).

Auto has no settings. ILK, SILK, NORMA and truncated NORMA forget, as fast as suited such streams best; ILK(0) and
NORMA(0) are the same without forgetting (reg = 0). The stream is `speeding_xor`.
"""

from __future__ import annotations

import copy
import functools
import itertools
import math
import os
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TextIO

import numpy as np

from gossamer import _checks, plots
from gossamer._typing import Bools, Floats, Ints
from gossamer.budgets import Budget, Oldest, Project, Smallest
from gossamer.kernels import Gaussian
from gossamer.learner import Learner
from gossamer.losses import Hinge
from gossamer.mixture import MixedLearner, Setting
from gossamer.rules import Gradient, Implicit, Rule
from gossamer.synthetic import SPEEDS, rotating_xor_error, speeding_xor, speeding_xor_turns

BUDGET = 100
#: Looks at the weights of the experts of Auto.
LOOKS = 100
#: Characters in a line of text, as many as in a line of the table.
WIDTH = 96

#: The grid of `tune`, the same for every algorithm (ALGORITHMS 13.1), and its streams.
WIDTHS = (0.2, 0.3, 0.5, 0.8)
STEPS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
DECAYS = (0.001, 0.003, 0.01, 0.03, 0.1)
TUNING_SEEDS = tuple(range(1001, 1011))


@dataclass(frozen=True)
class Contestant:
    """One algorithm with its parameters, in terms that mean the same for all of them.

    ``width`` is that of the Gaussian kernel, exp(-||x - s||^2 / (2 width^2)); ``step`` is C for the implicit rule and
    the rate for the gradient rule; every coefficient shrinks by the factor 1 - ``decay`` per row.

    >>> Contestant("ILK", Implicit, None, width=0.5, step=1.0, decay=0.01).learner().rule.reg
    0.010101010101010102
    """

    name: str
    rule: type[Implicit] | type[Gradient]
    budget: Budget | None
    width: float
    step: float
    decay: float

    def learner(self) -> Learner:
        """A fresh learner."""
        rule: Rule
        if self.rule is Implicit:  # shrinks by 1 / (1 + reg)
            rule = Implicit(C=self.step, reg=self.decay / (1 - self.decay))
        else:  # shrinks by 1 - rate * reg
            rule = Gradient(rate=self.step, reg=self.decay / self.step)
        return Learner(Gaussian(1 / (2 * self.width**2)), Hinge(), rule, self.budget)

    @property
    def settings(self) -> str:
        step = "C" if self.rule is Implicit else "rate"
        return f"width {self.width:g}, {step} {self.step:g}, decay {self.decay:g}"


class Automatic:
    """The learner without settings; each of its experts has as many points as the others."""

    name, settings, budget, decay = "Auto", "no settings", Project(BUDGET), math.nan

    def learner(self) -> Learner:
        """A fresh learner."""
        return MixedLearner(budget=BUDGET)


#: The parameters are what `tune()` returns.
TUNED = (
    Contestant("ILK", Implicit, None, width=0.5, step=0.3, decay=0.03),
    Contestant("SILK", Implicit, Smallest(BUDGET), width=0.5, step=0.3, decay=0.03),
    Contestant("NORMA", Gradient, None, width=0.3, step=0.3, decay=0.1),
    Contestant("NORMA trunc", Gradient, Oldest(BUDGET), width=0.5, step=0.3, decay=0.03),
    Contestant("ILK(0)", Implicit, None, width=0.5, step=3.0, decay=0.0),
    Contestant("NORMA(0)", Gradient, None, width=0.5, step=10.0, decay=0.0),
)
CONTESTANTS: tuple[Contestant | Automatic, ...] = (Automatic(), *TUNED)
SHOWN = "Auto"


def tune(rows: int = 4000, seeds: Sequence[int] = TUNING_SEEDS) -> list[Contestant]:
    """The contestants with settings, with the best of the grid, the same for each; it took 78 seconds.

    Of the settings whose mistakes are within one standard error of the fewest, paired by stream, it takes the one that
    moves f least often: very small steps turn every algorithm into the same Parzen window, which stores each row. This
    way of choosing was settled after a look at the demo's own streams under another one, so small gaps among those that
    forget say as much about it as about them; forgetting against not forgetting does not depend on it.
    """
    streams = [speeding_xor(rows, seed) for seed in seeds]
    best = []
    for contestant in TUNED:
        decays = DECAYS if contestant.decay else (0.0,)
        tried = []
        for width, step, decay in itertools.product(WIDTHS, STEPS, decays):
            candidate = replace(contestant, width=width, step=step, decay=decay)
            learners = [candidate.learner() for _ in streams]
            for learner, (X, y) in zip(learners, streams, strict=True):
                learner.learn(X, y)
            mistakes = np.array([learner.mistakes for learner in learners])
            tried.append((mistakes, sum(learner.updates for learner in learners), candidate))
        fewest = min((mistakes for mistakes, _, _ in tried), key=np.mean)
        as_good = [t for t in tried if (t[0] - fewest).mean() <= standard_error(t[0] - fewest)]
        best.append(min(as_good, key=lambda t: t[1])[2])
    return best


# ------------------------------------------------------------------------------------------------------- the race


@dataclass
class Race:
    """The result of a race: mistakes by trial, contestant and row, and the cost of each learner."""

    wrong: Bools
    sizes: Ints
    seconds: Floats
    moments: list[plots.Moment] = field(default_factory=list)
    looks: list[tuple[int, list[Setting], Floats]] = field(default_factory=list)

    @property
    def mistakes(self) -> Ints:
        """Mistakes by trial and contestant."""
        return np.asarray(self.wrong.sum(axis=2))


def run(
    rows: int = 4000, trials: int = 10, seed: int = 0, out: str | Path = "demo.png", to: TextIO | None = None
) -> Race:
    """The whole demo: a table while it learns, a summary, what it means, and a picture.

    Parameters
    ----------
    rows : length of each stream.
    trials : number of streams; trial k has the seed ``seed + k``.
    seed : of the first stream, the one that the table and the left of the picture show.
    out : where the picture goes (.png, .pdf or .svg).
    to : where the text goes; standard output unless given.
    """
    rows = _checks.whole("demo", "rows", rows, 20)
    trials = _checks.whole("demo", "trials", trials, 1)
    seed = _checks.whole("demo", "seed", seed, 0)
    path = check_picture(out)
    say = functools.partial(print, file=to or sys.stdout, flush=True)  # at once: the table is seen while it grows
    speeds = listed([f"{speed:g}" for speed in SPEEDS])
    say(f"Stream: speeding_xor, two classes, two features, {rows:,} rows; its parts turn {speeds} times in 2,000 rows.")
    say("Learners: Auto, without settings; the others with a Gaussian kernel, hinge loss, and parameters from\n"
        f"one grid for all, tuned on such streams with seeds {TUNING_SEEDS[0]}-{TUNING_SEEDS[-1]}:")  # fmt: skip
    for contestant in CONTESTANTS:
        kept = "every support point" if contestant.budget is None else f"at most {BUDGET} support points"
        say(f"  {contestant.name:12} {contestant.settings}; keeps {kept}")
    race = Race(
        np.zeros((trials, len(CONTESTANTS), rows), dtype=bool),
        np.zeros((trials, len(CONTESTANTS)), dtype=np.int64),
        np.zeros(len(CONTESTANTS)),
    )
    say(f"\nTrial 1 (seed {seed}): error % so far, error % since the line before, support points\n")
    with Progress(trials) as progress:
        for trial in range(trials):
            progress.show(trial)
            learn_trial(race, trial, seed + trial, say if trial == 0 else None)
    say("")
    for line in summary(race):
        say(line)
    say("")
    for sentence in explain(race):
        say(textwrap.fill(sentence, WIDTH))
    draw(race, path)
    say(f"\nPicture: {path}")
    return race


def learn_trial(race: Race, trial: int, seed: int, say: Callable[[str], None] | None) -> None:
    """All contestants over one stream; with ``say``, a table on the way and the moments of the picture."""
    rows = race.wrong.shape[2]
    X, y = speeding_xor(rows, seed)
    learners = [contestant.learner() for contestant in CONTESTANTS]
    lines, moments = (checkpoints(rows), picture_rows(rows)) if say else ([rows], [])
    looks = sorted({rows * k // LOOKS for k in range(1, LOOKS + 1)} - {0}) if say else []
    digits = max(4, len(str(rows))) + 1
    if say:
        say("".join([f"{'rows':>{digits}}", *(f"{contestant.name:>{digits + 10}}" for contestant in CONTESTANTS)]))
    before = line_before = 0
    # cutting the stream at these rows changes nothing that is learned: the law of batches
    for stop in sorted({*lines, *moments, *looks}):
        part = slice(before, stop)
        for i, learner in enumerate(learners):
            started = time.perf_counter()
            scores = np.asarray(learner.learn(X[part], y[part]))
            race.seconds[i] += time.perf_counter() - started
            race.wrong[trial, i, part] = y[part] * scores <= 0
            race.sizes[trial, i] = len(learner.coefs)
        before = stop
        if say and stop in lines:
            so_far = 100 * race.wrong[trial, :, :stop].mean(axis=1)
            since = 100 * race.wrong[trial, :, line_before:stop].mean(axis=1)
            cells = zip(so_far, since, race.sizes[trial], strict=True)
            say("".join([f"{stop:{digits}}", *(f"{a:6.1f}{b:4.0f}{size:{digits}}" for a, b, size in cells)]))
            line_before = stop
        if stop in moments:
            shown = copy.deepcopy(learners[[contestant.name for contestant in CONTESTANTS].index(SHOWN)])
            recent = slice(max(0, stop - BUDGET), stop)
            race.moments.append(plots.Moment(stop, X[recent], y[recent], shown.score, best_rule(stop, rows)))
        if stop in looks:
            found = next(learner for learner in learners if isinstance(learner, MixedLearner)).experts()
            weights = np.array([weight for _, weight, _ in found])
            race.looks.append((stop, [setting for setting, _, _ in found], weights))


def checkpoints(rows: int) -> list[int]:
    """The rows at which the table has a line: doubling up to an eighth of the stream, then every eighth.

    >>> checkpoints(4000)
    [62, 125, 250, 500, 1000, 1500, 2000, 2500, 3000, 3500, 4000]
    """
    early = [rows // 64, rows // 32, rows // 16]
    return [row for row in [*early, *(rows * k // 8 for k in range(1, 9))] if row >= 1]


def picture_rows(rows: int) -> list[int]:
    """The rows of the four moments in the picture: one near the end of each part.

    >>> picture_rows(4000)
    [875, 1875, 2875, 3875]
    """
    parts = 8 * len(SPEEDS)
    return [rows * place // parts for place in range(7, parts, 8)]


def best_rule(row: int, rows: int) -> plots.Score:
    """The score of the best possible rule for `speeding_xor` at a row: which axis of the turned cross is nearer."""
    angle = 2 * np.pi * speeding_xor_turns(rows)[row - 1]

    def score(X: Floats) -> Floats:
        along = X @ np.array([np.cos(angle), np.sin(angle)])
        across = X @ np.array([-np.sin(angle), np.cos(angle)])
        return np.asarray(along**2 - across**2)

    return score


# ----------------------------------------------------------------------------------------------------- the report


def summary(race: Race) -> Iterator[str]:
    """The table at the end."""
    trials, _, rows = race.wrong.shape
    speed = trials * rows / race.seconds
    yield f"After {trials} trial{'s' * (trials > 1)} of {rows:,} rows:"
    yield f"{'':14}{'mistakes':>16}{'error %':>10}{'support':>10}{'rows/s':>12}"
    for i, contestant in enumerate(CONTESTANTS):
        mistakes = race.mistakes[:, i]
        spread = f" ± {standard_error(mistakes):4.1f}" if trials > 1 else ""
        yield (
            f"  {contestant.name:12}{f'{mistakes.mean():.1f}{spread}':>16}{100 * mistakes.mean() / rows:10.2f}"
            f"{race.sizes[:, i].mean():10.0f}{speed[i]:12,.0f}"
        )
    yield f"  {'best possible':16}{rows * rotating_xor_error():>12.1f}{100 * rotating_xor_error():10.2f}"


def explain(race: Race) -> Iterator[str]:
    """The results in words; a difference between two learners counts from two standard errors on."""
    names = [contestant.name for contestant in CONTESTANTS]
    trials, _, rows = race.wrong.shape
    mean = race.mistakes.mean(axis=0)
    best = int(mean.argmin())
    close = [name for i, name in enumerate(names) if i != best and mean[i] <= 1.02 * mean[best]]
    text = f"{names[best]} makes the fewest mistakes, on {100 * mean[best] / rows:.1f} % of the rows"
    if close:
        text += f"; {listed(close)} {'is' if len(close) == 1 else 'are'} within 2 % of that"
    yield text + f". A rule that knew the drift would err on {100 * rotating_xor_error():.1f} %."
    for forgets, keeps in (("ILK", "ILK(0)"), ("NORMA", "NORMA(0)")):
        a, b = race.mistakes[:, names.index(forgets)], race.mistakes[:, names.index(keeps)]
        if clearly_more(b, a):
            yield f"Forgetting helps: {keeps}, which does not, makes {ratio(b, a)} times the mistakes of {forgets}."
        elif clearly_more(a, b):
            yield f"Forgetting hurts here: {forgets} makes {ratio(a, b)} times the mistakes of {keeps}."
        else:
            yield f"Whether {forgets} forgets or not makes no clear difference on this stream."
    ilk, silk, auto = names.index("ILK"), names.index("SILK"), names.index("Auto")
    yield (
        f"Auto, which nobody tuned, makes {ratio(race.mistakes[:, auto], race.mistakes[:, silk])} times the mistakes "
        "of SILK, whose width, step and decay were chosen among 160 settings on such streams."
    )
    with_budget, without = race.mistakes[:, silk], race.mistakes[:, ilk]
    if clearly_more(with_budget, without) or clearly_more(without, with_budget):
        change = f"{ratio(with_budget, without)} times the mistakes of ILK"
    else:
        change = "no clearly different number of mistakes"
    yield (
        f"With {race.sizes[:, silk].mean():.0f} support points instead of {race.sizes[:, ilk].mean():,.0f}, SILK makes "
        f"{change}, and learns {race.seconds[ilk] / race.seconds[silk]:.1f} times as fast."
    )
    if trials == 1:
        yield "This was one trial: small differences may be chance."


def clearly_more(many: Ints, few: Ints) -> bool:
    """Whether the paired difference exceeds two standard errors; for a single trial, a fifth."""
    difference = many - few
    if len(difference) == 1:
        return bool(many[0] > 1.2 * few[0])
    return bool(difference.mean() > 2 * standard_error(difference))


def ratio(many: Ints, few: Ints) -> str:
    return f"{many.mean() / few.mean():.2f}" if few.any() else "infinitely many"


def standard_error(values: Ints) -> float:
    """The standard error of a mean; NaN for a single value."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")


def listed(names: Iterable[str]) -> str:
    """Names as words are listed.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def draw(race: Race, path: Path) -> None:
    """The picture: Auto at four moments of the first trial, the errors of all, averaged over the trials, and the
    weights of the experts of Auto in the first trial."""
    trials, _, rows = race.wrong.shape
    window = max(5, rows // 20)
    errors = plots.windowed(race.wrong.mean(axis=0), window)
    figure = plots.drift_figure(
        race.moments,
        {contestant.name: values for contestant, values in zip(CONTESTANTS, errors, strict=True)},
        window,
        learner=SHOWN,
        title="Who keeps up as the drift speeds up" + (f" (mean of {trials} streams)" if trials > 1 else ""),
        dashed=[contestant.name for contestant in CONTESTANTS if not contestant.decay],
        best_error=rotating_xor_error(),
        history=race.looks,
    )
    figure.savefig(path)


def check_picture(out: str | Path) -> Path:
    """Validate the path of the picture before the work, not after it."""
    plots.new_figure(1, 1)
    path = Path(out)
    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise _checks.wrong("demo", "out", "a file name that ends in .png, .pdf or .svg", str(out))
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise _checks.wrong("demo", "out", "a file in a folder that exists and can be written", str(out))
    return path


class Progress:
    """Says on stderr how far the trials are, if someone is watching."""

    def __init__(self, trials: int) -> None:
        self.trials, self.watched = trials, sys.stderr.isatty()

    def show(self, trial: int) -> None:
        if self.watched and trial:
            print(f"\rtrial {trial + 1} of {self.trials}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self.watched:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
