"""Detectors that do not learn what they raise alarms about, so that an anomaly that lasts is not learned away.

A row whose p-value is below ``skip`` is an alarm. An alarm by itself may be false, and is learned: the share of alarms
on normal rows would grow otherwise. An alarm with another among the `NEAR` rows before it is neither learned nor
counted, unless two fifths of about the last 1,000 rows were not: what is strange so often is not strange any more, but
a world that has changed.

The scores themselves are compared, without the threshold rho of the model: rho follows its alarms, and would follow an
anomaly that lasts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gossamer import _checks
from gossamer._typing import Array
from gossamer.clock import read_times
from gossamer.estimators import inputs
from gossamer.estimators.labels import Predictions
from gossamer.learner import Learner

#: Rows in which a second alarm makes a run; rows whose scores are not counted, as the model begins at 0 and its first
#: scores are low whatever comes; and rows that are learned before any is skipped.
NEAR, BLIND, FIRST = 3, 60, 120
#: The largest share of rows that are skipped, and the part of a row in that share.
MOST, PART = 0.4, 0.001


def predict_learn(
    model: Any, learner: Learner, names: Array | None, X: Any, sample_weight: Any, time: Any = None
) -> Predictions:
    """The p-value of each row, and then learn it unless it belongs to a run of alarms; all rows or none. Of a run no
    time passes either, until the next row that is learned."""
    X = inputs.check(learner, X)
    rows, before = inputs.count(X), learner.state() if learner.steps else None
    weights = _checks.weights(model, sample_weight, rows)
    learner.elapse(time, rows)
    times = None if time is None else read_times(model, time, rows)
    inputs.settle(learner, X)
    sure, (calm, skipped) = model._certain(), model.__dict__.get("_calm", (NEAR, 0.0))
    p, one, kept = np.ones(rows), np.empty(1), None if sure is None else sure.state()
    try:
        for t in range(rows):
            x = np.asarray(X[t].todense())[0] if hasattr(X, "todense") else X[t]
            weight = 1.0 if weights is None else float(weights[t])
            score = float(learner.score_one(x)) if learner.steps else 0.0
            if sure is not None and learner.steps >= BLIND:
                sure.p_values(np.array([score]), one)
                p[t] = one[0]
            alarm = p[t] < model.skip and learner.steps >= FIRST
            skip = alarm and calm < NEAR and skipped < MOST
            skipped += PART * (skip - skipped)
            if not skip:
                when = None if times is None else float(times[t])
                if sure is not None and when is not None:
                    fades = learner.elapse([when], 1)[0]
                    assert fades is not None
                    sure.fade(float(fades[0]))
                learner.learn_one(x, None, weight, time=when)
                if sure is not None and learner.steps > BLIND:
                    sure.learn_one(score, 0.0, weight)
            calm = 0 if alarm else calm + 1
    except BaseException:
        if before is not None:
            learner.restore(before)
            sure.restore(kept)
        raise
    found = {} if sure is None else {"_certainty": sure}
    model._keep(learner, names, _calm=(int(min(calm, NEAR)), float(skipped)), **found)
    return Predictions(np.log(p), levels=np.full(rows, np.log(model.skip)), chances=p)
