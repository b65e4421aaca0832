"""When a model is stored: so that a recovery takes a bounded time, also of a server that never rests."""

import numpy as np
import pytest
from hubs import COLUMNS, block, running, settle, stream

from gossamer.serve.changes import Work
from gossamer.serve.limits import Limits
from gossamer.serve.recipes import Recipe
from gossamer.serve.recovery import choose_due
from gossamer.serve.served import Served


@pytest.mark.parametrize("seed", range(20))
def test_what_is_stored_bounds_a_replay(seed):
    """If a replay would take too long, the models that take most of it are stored; one that is dear to store waits."""
    rng = np.random.default_rng(seed)
    models = [Served(number, str(number), Recipe()) for number in range(1, 30)]
    for served in models:
        served.learning_seconds, served.storing_seconds = rng.exponential(size=2) * (0.4, 0.02)
    changed, limits = [(served, 0.0) for served in models], Limits(replay_seconds=3)
    due = set(choose_due(changed, limits, now=0.0))
    left = [served for served in models if served.number not in due]
    dear = [served for served in left if served.learning_seconds < 20 * served.storing_seconds]
    rest = sum(served.learning_seconds for served in left)
    total = sum(served.learning_seconds for served in models)
    assert rest - sum(served.learning_seconds for served in dear) <= 1.5 or total < 3
    assert bool(due) == (total >= 3)
    smallest = min((served.learning_seconds for served in models if served.number in due), default=np.inf)
    assert all(served.learning_seconds <= smallest for served in left if served not in dear)
    late = [(models[0], 0.0), (models[1], 250.0)]
    models[0].learning_seconds = models[1].learning_seconds = 0.0
    assert choose_due(late, limits, now=301.0) == [1]
    models[1].rows = limits.snapshot_rows
    assert choose_due(late, limits, now=299.0) == [2]


def test_a_saturated_server_stores_its_models(tmp_path):
    """Models are stored though the queue is never empty."""
    X, y = stream("regression", 200)
    with running(tmp_path, snapshot_rows=50) as hub:
        hub.call(Work("create", "m", Recipe(learner="SILKRegressor", columns=COLUMNS)))
        stored = []

        def again(results, deliver=hub.deliver):
            """Each answer makes the next request, so that one waits always."""
            if len(stored) < 12:
                hub.submit([Work("learn", "m", block(X, y), rows=len(X))])
            stored.append(hub.counts["snapshots"])
            deliver(results)

        hub.deliver = again
        hub.call(Work("learn", "m", block(X, y), rows=len(X)))
        settle(hub, lambda: len(stored) > 12)
    assert stored[-1] >= 10
