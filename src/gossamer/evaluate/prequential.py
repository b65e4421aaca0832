"""Prequential evaluation: predict each row, then learn it, and keep count.

The file is long because one class has all verbs of an evaluation, with its state.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._locks import exclusive, shared
from gossamer.clock import read_times
from gossamer.estimators import certain, inputs
from gossamer.estimators.pipelines import last_step
from gossamer.evaluate import metrics as _metrics
from gossamer.evaluate.adapters import Face, learner_of, task_of
from gossamer.evaluate.health import Health
from gossamer.evaluate.metrics import BANDS, CHANCES, METRICS, RATIOS, Reliability, Tally
from gossamer.evaluate.predictions import Predictions
from gossamer.evaluate.trace import Record, Trace

Metric = str | Callable[[Any, Any], float]


def prequential(
    model: Any, stream: Any, *, metrics: Sequence[Metric] | None = None, every: int = 1000, delay: int = 0,
    anomaly: Any = 1, positive: Any = None, classes: Any = None, progress: Callable[[Record], None] | None = None,
) -> Trace:  # fmt: skip
    """Predict and then learn every row of a stream; returns a `Trace`.

    The numbers are those of predicting and learning row by row, whatever the chunks.

    Parameters
    ----------
    model : an estimator (of scikit-learn too, if it has ``partial_fit``), a pipeline or a Learner. It goes on learning.
    stream : a `Stream` or other iterable of chunks with ``X`` and ``y``, and maybe ``time``; or ``(X, y)``, or ``(X, y,
        time)`` for a model with a ``half_life``.
    metrics, every, delay, anomaly, positive, classes, progress : see `Prequential`.
    """
    run = Prequential(
        model, metrics=metrics, every=every, delay=delay, anomaly=anomaly, positive=positive, classes=classes,
        progress=progress,
    )  # fmt: skip
    for X, y, when in _chunks(stream):
        run.update(X, y, when)
    return run.finish()


def _chunks(stream: Any) -> Iterable[tuple[Any, Any, Any]]:
    if isinstance(stream, tuple):
        if len(stream) not in (2, 3):
            raise _checks.wrong("prequential", "stream", "a stream, (X, y) or (X, y, time)", f"{len(stream)} things")
        X, y, *when = stream
        return [(X, None if y is None else np.asarray(y), when[0] if when else None)]
    return ((chunk.X, chunk.y, getattr(chunk, "time", None)) for chunk in stream)


class Prequential:
    """A prequential evaluation that is fed chunk by chunk: `update` for each, `finish` at the end.

    Parameters
    ----------
    model : an estimator (of scikit-learn too, if it has ``partial_fit``), a pipeline or a Learner.
    metrics : names, or functions of (targets, predictions) of a window. For classes "error", "accuracy", "loss",
        "precision", "recall", "f1", "auc", "log_loss", "brier" and "calibration"; for numbers "mae", "rmse", "pinball"
        (with the model's ``quantile``, or 0.5), "loss", "coverage" and "width" (of the intervals for ``coverage``); for
        detectors "alarms" (their rate), "loss" and, where there are targets, "error" and "auc".
    every : rows between records; they are a window.
    delay : labels come ``delay`` rows late: row t is predicted by a model that has learned rows up to t - delay - 1.
        The last ``delay`` rows are never learned.
    anomaly : the label of an anomaly, for detectors.
    positive : the class that precision, recall, F1 and AUC are about; of two classes the second in sorted order, with
        more the mean over the classes (scikit-learn's "macro"), unless given.
    classes : all classes, for scikit-learn's own classifiers.
    progress : called with each new `Record`.
    coverage : of the intervals that "coverage" and "width" measure.
    span : for detectors: scores become means over about this many rows, so that anomalies that last stand out; alarms
        stay those of single rows.

    Notes
    -----
    - "loss" is the model's; NaN where its level adapts (``nu``). A class that is new joins with a score of 0.
    - "precision", "recall" and "f1" over all rows are those of all counts so far; rows that came before any class was
      known count as missed.
    - "auc" is measured inside each window, from the scores made there, each before its row was learned: over a whole
      stream the scores of an early and a late model are not on one scale. Over all rows, "auc" and functions are the
      mean of the windows that have both classes, weighed by their rows. With several classes it is the mean over the
      classes, each against the rest.
    - "log_loss" is the mean of -log of the probability given to the class that came, for models with probabilities
      (``predict_proba``); rows whose class had not been seen have none, and are left out. "brier" is Brier's score over
      2, "calibration" the mean distance between probability and share of hits over 15 bins (of the second of two
      classes, else of the most probable). "width" leaves out infinite intervals.
    - Scores that are not finite, explode or stay constant while the targets vary raise a `RuntimeWarning`, once.

    Examples
    --------
    >>> from gossamer import SILKRegressor
    >>> run = Prequential(SILKRegressor("gaussian", budget=20), every=100, metrics=["mae"])
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> predictions = run.update(X, np.sin(X[:, 0]))
    >>> len(predictions), run.finish().row.tolist()
    (200, [100, 200])
    """

    def __init__(
        self, model: Any, *, metrics: Sequence[Metric] | None = None, every: int = 1000, delay: int = 0,
        anomaly: Any = 1, positive: Any = None, classes: Any = None, progress: Callable[[Record], None] | None = None,
        coverage: float = 0.9, span: int = 1,
    ) -> None:  # fmt: skip
        self.task = task_of(model)
        self.span = _checks.whole(self, "span", span, 1)
        if self.span > 1 and self.task != "novelty":
            raise _checks.wrong(self, "span", f"1 for {self.task}", span)
        self._mean_score: float | None = None
        names = {name for name in metrics if isinstance(name, str)} if isinstance(metrics, Sequence) else set()
        bands = names & BANDS and self.task == "regression"
        self._missed, _ = certain.shares(self, coverage) if bands else ([], False)
        self._face = Face(model, self.task, classes, bool(names & CHANCES), tuple(self._missed))
        self.every = _checks.whole(self, "every", every, 1)
        self.delay = _checks.whole(self, "delay", delay, 0)
        self._anomaly, self._positive, self._progress = anomaly, positive, progress
        self._wanted = metrics
        self._metrics: dict[str, Metric] = {} if metrics is None else self._named(metrics)
        self.row = 0
        self._records: list[Record] = []
        self._sums: dict[str, list[float]] = {}
        self._confusion: dict[tuple[Any, Any], int] = {}
        self._unpredicted = 0
        self._window: list[tuple[Any, Predictions]] = []
        self._late: tuple[Any, Any, Any] | None = None
        self._tally, self._classes, self._bins = Tally(positive), set[Any](), Reliability()
        self._health = Health(self.task, last_step(model))
        self._start = time.perf_counter()

    def _named(self, metrics: Sequence[Metric]) -> dict[str, Metric]:
        if isinstance(metrics, str) or not isinstance(metrics, Sequence):
            raise _checks.wrong(self, "metrics", "a list of names and functions", metrics)
        named: dict[str, Metric] = {}
        for metric in metrics:
            if not callable(metric):
                _checks.one_of(self, "metrics", metric, METRICS[self.task])
            if metric in CHANCES and not self._face.tells:
                raise _checks.wrong(self, "metrics", f"without {metric!r} for a model without probabilities", metric)
            if metric in BANDS and not hasattr(self._face.model, "predict_interval"):
                raise _checks.wrong(self, "metrics", f"without {metric!r} for a model without intervals", metric)
            named[metric if isinstance(metric, str) else getattr(metric, "__name__", repr(metric))] = metric
        return named

    # ------------------------------------------------------------------------------------------------- learning

    @exclusive
    def update(self, X: Any, y: Any = None, time: Any = None) -> Predictions:
        """Predict these rows, each before it is learned, and count; returns the predictions. ``time``: of each row, for
        a model with a ``half_life``."""
        if y is None and self.task != "novelty":
            raise _checks.wrong(self, "y", f"given for {self.task}", None)
        rows = inputs.count(X)
        if y is not None and len(y) != rows:
            raise _checks.wrong(self, "y", f"as long as X ({rows})", len(y))
        when = None if time is None else read_times(self, time, rows)
        if self._wanted is None and not self._metrics:
            usual = METRICS[self.task][:2]
            if self.task == "novelty":
                usual = ("alarms",) if y is None else ("alarms", "auc")
            self._metrics = {name: name for name in usual}
        if y is None and {"error", "auc"} & set(self._metrics) and self.task == "novelty":
            rule = "without 'error' and 'auc' where there are no targets"
            raise _checks.wrong(self, "metrics", rule, list(self._metrics))
        parts = []
        while inputs.count(X):
            # up to the end of the window, where the model is measured
            size = min(inputs.count(X), self.every - self.row % self.every)
            now = None if y is None else y[:size]
            learned = now if self.task != "novelty" else None
            update = self._update_delayed if self.delay else self._face.predict_learn
            made = update(X[:size], learned, None if when is None else when[:size])
            made = made if self.span == 1 else self._smoothed(made)
            parts.append(made)
            self._window.append((now, made))
            self.row += size
            X, y = X[size:], None if y is None else y[size:]
            when = None if when is None else when[size:]
            if self.row % self.every == 0:
                self._record()
        empty = np.zeros(0)
        return Predictions.join(parts) if parts else Predictions(empty, empty.astype(np.bool_), empty, empty)

    def _smoothed(self, made: Predictions) -> Predictions:
        """The scores of a detector as means over about ``span`` rows."""
        scores, mean = [], self._mean_score
        for score in made.scores.tolist():
            mean = score if mean is None else mean + (score - mean) / self.span
            scores.append(mean)
        self._mean_score = mean
        return replace(made, scores=np.array(scores))

    def _update_delayed(self, X: Any, y: Any, when: Any) -> Predictions:
        """Predict these rows; after each, learn the row that is ``delay`` rows older, if there is one by now."""
        rows, waiting = inputs.count(X), 0 if self._late is None else inputs.count(self._late[0])
        given = (X, y, when)
        every_X, every_y, every_time = given if self._late is None else map(_stack, self._late, given)
        lead, parts = min(rows, self.delay - waiting), []
        if lead:
            parts.append(self._face.predict(X[:lead], None if y is None else y[:lead]))
        due = rows - lead
        if due:
            labels = None if y is None else y[lead:]
            ready = every_X[:due], *(None if part is None else part[:due] for part in (every_y, every_time))
            parts.append(self._face.predict_learn_late(X[lead:], labels, *ready))
        self._late = every_X[due:], *(None if part is None else part[due:] for part in (every_y, every_time))
        return Predictions.join(parts)

    @property
    def tells(self) -> bool:
        """Whether the predictions have probabilities."""
        return self._face.tells

    @exclusive
    def finish(self) -> Trace:
        """A last record for the rows that remain, and the trace."""
        if self._window:
            self._record()
        return self.trace

    @property
    @shared
    def trace(self) -> Trace:
        """The records so far."""
        return Trace(self.task, list(self._metrics), list(self._records), dict(self._confusion), self._unpredicted)

    # ------------------------------------------------------------------------------------------------- counting

    def _record(self) -> None:
        made = Predictions.join([made for _, made in self._window])
        y = None
        if self._window[0][0] is not None:
            y = np.concatenate([np.asarray(labels) for labels, _ in self._window])
        self._window = []
        window, total = {}, {}
        tally = self._tally.add(y, made) if RATIOS & set(self._metrics) and y is not None else None
        for name, metric in self._metrics.items():
            if tally is not None and name in RATIOS:
                window[name], total[name] = tally.ratio(name, self._tally), self._tally.ratio(name, self._tally)
                continue
            if name == "calibration":
                window[name], total[name] = self._bins.add(y, made).error(), self._bins.error()
                continue
            value, weight = self._measure(metric, y, made)
            sums = self._sums.setdefault(name, [0.0, 0.0])
            if weight:
                sums[0] += value * weight
                sums[1] += weight
            finish = np.sqrt if name == "rmse" else float
            window[name] = float(finish(value))
            total[name] = float(finish(sums[0] / sums[1])) if sums[1] else float("nan")
        if self.task == "classification" and y is not None:
            self._count(y, made)
        self._health.check(self.row, y, made, self.row - len(made) >= self.delay)
        learner = learner_of(self._face.model)
        support = None if learner is None else len(learner.births)
        tracked = learner is not None and (learner.track_norm or not learner.budget.drops)
        norm = learner.norm if learner is not None and tracked else None
        discarded = None if learner is None else learner.discarded
        seconds = time.perf_counter() - self._start
        record = Record(self.row, len(made), total, window, support, norm, discarded, seconds)
        self._records.append(record)
        if self._progress is not None:
            self._progress(record)

    def _measure(self, metric: Metric, y: Any, made: Predictions) -> tuple[float, float]:
        """The mean of a metric over a window, and its weight."""
        rows = float(len(made))
        if callable(metric):
            known = made.known
            count = int(known.sum())
            return (float(metric(y[known], made.labels[known])), float(count)) if count else (float("nan"), 0.0)
        if metric == "loss":
            return float(made.losses.mean()), rows
        if metric == "alarms":
            return float(made.labels.mean()), rows
        if self.task == "novelty":
            odd = np.asarray(y) == self._anomaly
            return _metrics.auc(odd, -made.scores) if metric == "auc" else (float((made.labels != odd).mean()), rows)
        if metric == "auc":
            self._classes.update(np.unique(y).tolist())
            return _metrics.class_auc(y, made, sorted(self._classes), self._positive)
        if metric == "log_loss":
            return _metrics.log_loss(made)
        if metric == "brier":
            return _metrics.brier(y, made)
        if self.task == "classification":
            wrong = float((~made.known | (made.labels != y)).mean())
            return (wrong if metric == "error" else 1.0 - wrong), rows
        gap = np.asarray(y, dtype=np.float64) - made.labels
        if metric == "coverage":
            return float((np.abs(gap) <= made.radii[:, 0]).mean()), rows
        if metric == "width":
            finite = np.isfinite(made.radii[:, 0])
            return float(2 * made.radii[finite, 0].mean()) if finite.any() else float("nan"), float(finite.sum())
        if metric == "pinball":
            quantile = float(getattr(last_step(self._face.model), "quantile", 0.5))
            return float(np.maximum(quantile * gap, (quantile - 1.0) * gap).mean()), rows
        return float(np.abs(gap).mean() if metric == "mae" else (gap * gap).mean()), rows

    def _count(self, y: Any, made: Predictions) -> None:
        self._unpredicted += int((~made.known).sum())
        both = np.array([y[made.known], made.labels[made.known]])  # of one type
        for key, count in sorted(Counter(zip(*both.tolist(), strict=True)).items()):
            self._confusion[key] = self._confusion.get(key, 0) + count

    # ---------------------------------------------------------------------------------------------------- state

    @shared
    def state(self) -> dict[str, Any]:
        """Everything but the model, as JSON data: enough to resume exactly, with `restore`."""
        window = [
            [None if y is None else np.asarray(y).tolist(), *(_listed(getattr(made, name)) for name in PARTS)]
            for y, made in self._window
        ]
        late = []
        if self._late is not None and inputs.count(self._late[0]):
            late = [[None if part is None else _plain(part) for part in self._late]]
        seconds = time.perf_counter() - self._start
        sums = {name: list(pair) for name, pair in self._sums.items()}
        names = {"row": self.row, "sums": sums, "window": window, "late": late, "seconds": seconds}
        more = {
            "tally": self._tally.to_list(),
            "bins": self._bins.table.tolist(),
            "classes": sorted(self._classes),
            "warned": self._health.state(),
            "mean_score": self._mean_score,
        }
        return {**names, **more, "trace": self.trace.to_dict()}

    @exclusive
    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a `state` of an evaluation with the same parameters; the model is restored by itself."""
        trace = Trace.from_dict(state["trace"])
        if trace.task != self.task or (self._wanted is not None and trace.metrics != list(self._metrics)):
            rule = f"of an evaluation of {self.task} with {list(self._metrics)}"
            raise _checks.wrong(self, "state", rule, trace.metrics)
        if self._wanted is None:
            self._metrics = {name: name for name in trace.metrics}
        self.row, self._sums = int(state["row"]), {name: list(pair) for name, pair in state["sums"].items()}
        self._records, self._confusion = trace.records, trace.confusion
        self._unpredicted = trace.unpredicted
        self._window = [(None if y is None else np.array(y), _predictions(parts)) for y, *parts in state["window"]]
        self._late = None
        for x, *others in state["late"]:
            y, when = (None if part is None else np.array(part) for part in (*others, None)[:2])
            before: Any = self._late
            rows = (_rows_from(x), y, when)
            self._late = rows if before is None else tuple(map(_stack, before, rows))
        self._tally = Tally(self._positive, state.get("tally", []))
        self._classes, self._bins = set(state.get("classes", [])), Reliability(state.get("bins"))
        self._health.restore(state.get("warned", []))
        self._mean_score = state.get("mean_score")
        self._start = time.perf_counter() - float(state["seconds"])


def _plain(X: Any) -> Any:
    """Rows as JSON data; of sparse ones the arrays of CSR."""
    if not hasattr(X, "tocsr"):
        return np.asarray(X).tolist()
    rows = X.tocsr()
    return {"csr": [part.tolist() for part in (rows.data, rows.indices, rows.indptr)], "shape": list(rows.shape)}


def _rows_from(plain: Any) -> Any:
    """Rows from `_plain`."""
    if not isinstance(plain, dict):
        return np.array(plain)
    from scipy.sparse import csr_array

    return csr_array(tuple(map(np.array, plain["csr"])), shape=tuple(plain["shape"]))


def _stack(first: Any, second: Any) -> Any:
    """Rows after rows, of arrays, sparse matrices, frames and lists."""
    if first is None or isinstance(first, list):
        return None if first is None else first + list(second)
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    if hasattr(first, "tocsr"):
        from scipy.sparse import vstack

        return vstack([first, second]).tocsr()
    import pandas as pd

    return pd.concat([first, second])


#: The attributes of the predictions that are kept for an incomplete window.
PARTS = ("labels", "known", "scores", "losses", "classes", "counts", "chances", "shares", "radii")


def _predictions(parts: list[Any]) -> Predictions:
    kept = {name: np.array(part) for name, part in zip(PARTS, parts, strict=False) if name != "classes"}
    return Predictions(**kept, classes=tuple(parts[4]) if len(parts) > 4 else ())


def _listed(part: Any) -> list[Any]:
    return list(part) if isinstance(part, tuple) else list(np.asarray(part).tolist())
