"""The prequential log loss of Auto's probabilities beside that of opponents that have some, part of auto.py.

The opponents choose their settings by log loss on rows before. A row before anything is learned has equal
probabilities.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import datasets
import numpy as np
from entries import FULL, LINEAR, WIDTHS, Entry, Model, Setting, Setup, auto
from opponents_river import linear
from opponents_sklearn import Features, Retrained, boosted, boosting
from opponents_vw import linear as vowpal
from play import CALL
from works import WORKS, Series, Work, table

#: The classification works of the contest, and one more.
SETS: dict[str, Callable[[], Work]] = {
    **{name: WORKS[name] for name in ("elec2", "SEA", "rotating XOR", "ijcnn1", "a9a", "MNIST 0-4 / 5-9", "MNIST")},
    "spambase": lambda: table(datasets.spambase(), "binary", 1000),
}
LEAST = 1e-6  # of a probability, for all
TRIES, TRY_ROWS = 12, 2500
BOOSTED = "HistGradientBoosting, retrained on"
FEW = {"MNIST": 1500}  # the rows of gradient boosting, a training of which takes minutes there


class SureFeatures(Features):
    """Probabilities of stochastic gradients for the log loss."""

    def __init__(self, setup: Setup, **options: Any) -> None:
        super().__init__(setup, loss="log_loss", batches=True, **options)

    def _predict(self, Z: np.ndarray) -> np.ndarray:
        count = len(self.setup.classes)
        return self.model.predict_proba(Z) if self.seen else np.full((len(Z), count), 1 / count)


class SureTrees(Retrained):
    """Probabilities of a batch machine, as if a row more of each class had come: trees are often sure, and know no
    class that they have not seen."""

    def _predict(self, X: np.ndarray) -> np.ndarray:
        found = np.zeros((len(X), len(self.setup.classes)))
        if self.trained:
            found[:, np.searchsorted(self.setup.classes, self.model.classes_)] = self.model.predict_proba(X)
        return (self.trained * found + 1) / (self.trained + found.shape[1])


class SureRiver(Model):
    """Probabilities of river's linear model."""

    def __init__(self, setup: Setup, **options: Any) -> None:
        self.setup, self.inner = setup, linear(setup, **options)

    def rows(self, X: np.ndarray, y: np.ndarray) -> Any:
        return self.inner.rows(X, y)

    def step(self, rows: Any) -> np.ndarray:
        found = []
        for x, y in rows:
            known = self.inner.model.predict_proba_one(x)
            found.append([known.get(label, 0.0) for label in (False, True)] if known else [0.5, 0.5])
            self.inner.model.learn_one(x, y)
        return np.array(found)


class SureVowpal(Model):
    """Probabilities of Vowpal Wabbit's linear learner, for two classes: its score for the logistic loss is log-odds."""

    def __init__(self, setup: Setup, **options: Any) -> None:
        self.inner = vowpal(setup, loss="logistic", **options)

    def rows(self, X: np.ndarray, y: np.ndarray) -> Any:
        return self.inner.rows(X, y)

    def step(self, rows: Any) -> np.ndarray:
        scores = []
        for example in rows:
            self.inner.workspace.learn(example)  # which predicts first
            scores.append(example.get_simplelabel_prediction())
            self.inner.workspace.finish_example(example)
        return _two(np.array(scores))


def _two(scores: np.ndarray) -> np.ndarray:
    """The probabilities of two classes, by log-odds."""
    second = 1 / (1 + np.exp(-np.clip(scores, -500, 500)))
    return np.column_stack([1 - second, second])


class SureAuto(Model):
    """Auto's probabilities, made of what `predict_learn` gives: log-odds, or logarithms of probabilities."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.model, self.started = setup, auto(setup).estimator, False

    def step(self, rows: Any) -> np.ndarray:
        X, y = rows
        head = []
        if not self.started:
            self.started, count = True, len(self.setup.classes)
            self.model.partial_fit(X[:1], y[:1], classes=self.setup.classes)
            head, X, y = [np.full((1, count), 1 / count)], X[1:], y[1:]
        scores = self.model.predict_learn(X, y)
        return np.vstack([*head, _two(scores) if scores.ndim == 1 else np.exp(scores)])


def sure_trees(setup: Setup, **options: Any) -> SureTrees:
    """Gradient boosting."""
    inner = boosted(setup, **options)
    return SureTrees(setup, inner.model, inner.most)


def opponents(work: Work) -> list[Entry]:
    """Those with probabilities."""
    steps = {
        "step": (0.003, 3.0), "schedule": ["optimal", "constant", "invscaling"], "average": [False, True],
        "reg": (1e-7, 1e-3),
    }  # fmt: skip
    usual: Setting = {"step": 0.01, "schedule": "optimal", "average": False, "reg": 1e-4}
    mapped, first = {"width": WIDTHS, **steps, "linear": LINEAR}, {"width": 1.0, **usual, "linear": 0.0}
    found = [
        Entry("linear SGD", "", (), partial(SureFeatures, sampler=None, size=0), steps, usual),
        Entry("Nystroem(100) + SGD", "", (), partial(SureFeatures, sampler="Nystroem", size=100), mapped, first),
        Entry("Nystroem(500) + SGD", "", (), partial(SureFeatures, sampler="Nystroem", size=500), mapped, first),
    ]
    if not work.wide:
        space = {"step": (0.001, 1.0), "reg": (1e-8, 1e-3), "fall": [False, True]}
        found.append(Entry("river's linear", "", (), SureRiver, space, {"step": 0.01, "reg": 0.0, "fall": False}))
    if work.task == "binary":
        space = {"step": (0.01, 10.0), "power": [0.0, 0.25, 0.5], "reg": (1e-9, 1e-5), "pairs": [False, True]}
        first = {"step": 0.5, "power": 0.5, "reg": 0.0, "pairs": False}
        found.append(Entry("Vowpal Wabbit's linear", "", (), SureVowpal, space, first))
    for rows, most in (("4,000 rows", 4000), ("all rows", 10**9)):
        like = boosting(f"{BOOSTED} {rows}", most)
        found.append(replace(like, make=partial(sure_trees, most=most)))
    return found


def losses(entry: Entry, setting: Setting, work: Work, stream: Series) -> np.ndarray:
    """The log loss of each row."""
    stream = stream.unscaled() if entry.raw else stream
    setup = Setup(work.task, stream.sample, stream.scale, np.array(work.classes), work.level, work.batch)
    model, found = entry.make(setup, **setting), []
    for start in range(0, len(stream.y), CALL):
        part = slice(start, start + CALL)
        found.append(np.asarray(model.step(model.rows(stream.X[part], stream.y[part]))))
    truth = np.searchsorted(work.classes, stream.y)
    return -np.log(np.clip(np.vstack(found)[np.arange(len(truth)), truth], LEAST, 1.0))


def tuned(entry: Entry, work: Work) -> Setting:
    """The setting with the least log loss on the rows before."""
    rows = entry.wide_tuning if work.wide and entry.wide_tuning else TRY_ROWS

    def tried(setting: Setting) -> float:
        with np.errstate(all="ignore"):
            try:
                means = [losses(entry, setting, work, one.first(rows)).mean() for one in work.tuning]
            except (ValueError, ArithmeticError):
                return np.inf
        return float(np.nan_to_num(np.mean(means), nan=np.inf))

    return min(entry.settings(TRIES), key=tried)


def measure(name: str) -> dict[str, Any]:
    """The mean log loss of everybody on one piece of work; of gradient boosting and Auto also on its first rows."""
    work = SETS[name]().first(FULL.rows)
    (stream,) = work.scored
    few = FEW.get(name, len(stream.y))
    ours = losses(Entry("Auto", "", (), SureAuto, raw=True), {}, work, stream)
    found: dict[str, Any] = {"Auto": float(ours.mean()), "rows": len(ours), "few": few, "first": {}, "all": {}}
    found["Auto, first rows"] = float(ours[:few].mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for entry in opponents(work):
            slow, again = entry.name.startswith(BOOSTED), entry.name.endswith("all rows")
            if not again:  # which takes the settings of the last 4,000, and is the same until then
                setting = tuned(entry, work)
            if not again or few > 4000:
                theirs = losses(entry, setting, work, stream.first(few) if slow else stream)
            found["first" if slow and few < len(ours) else "all"][entry.name] = float(theirs.mean())
    return found


def lower(one: dict[str, Any]) -> bool:
    """Whether Auto's log loss is below that of all others, on the rows they had."""
    return one["Auto"] < min(one["all"].values()) and one["Auto, first rows"] < min(one["first"].values(), default=9e9)


def shown(found: dict[str, dict[str, Any]]) -> str:
    """A line for each piece of work."""
    heads = ["linear SGD", "Nystroem(100) + SGD", "Nystroem(500) + SGD", "river's linear", "Vowpal Wabbit's linear"]
    heads += [f"{BOOSTED} 4,000 rows", f"{BOOSTED} all rows"]
    lines = [f"| log loss | Auto | {' | '.join(heads)} |", "|---" * (len(heads) + 2) + "|"]
    for name, one in found.items():
        best = min([one["Auto"], *one["all"].values()])
        cells = []
        for head in heads:
            if head in one["first"]:
                cells.append(f"{one['first'][head]:.4f} († Auto {one['Auto, first rows']:.4f})")
            else:
                value = one["all"].get(head)
                cells.append("" if value is None else f"**{value:.4f}**" if value == best else f"{value:.4f}")
        own = f"**{one['Auto']:.4f}**" if one["Auto"] == best else f"{one['Auto']:.4f}"
        lines.append(f"| {name}, {one['rows']:,} rows | {own} | {' | '.join(cells)} |")
    return "\n".join(lines)
