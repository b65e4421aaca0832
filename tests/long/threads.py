"""Every public object from many threads at once: ``python tests/long/threads.py --seconds 60 --threads 8``.

Each kind of object runs in a process of its own: threads that learn, predict, save, copy, ask for its length and walk
over it, in a random mix, while the garbage collector runs all the time and the ``__del__`` of what it finds uses the
object too. Found is: a crash, a process that does not end, an exception that no verb should raise, and at the end a
model that has not learned each row once or that cannot be stored and read back.

Under ThreadSanitizer: ``make tsan``, or the module built with -DGOSSAMER_SANITIZE=thread, libtsan preloaded, and
TSAN_OPTIONS="suppressions=tests/long/tsan.supp halt_on_error=0 exitcode=66".

The file is long because it is one script: each kind of object has a function with the verbs that its threads mix.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import faulthandler
import gc
import itertools
import os
import pickle
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import gossamer
from gossamer import Learner, Mixture, OnlineScaler, PerTarget, RowEncoder, pipeline, store
from gossamer._locks import run_shared
from gossamer.bank import ModelBank
from gossamer.budgets import Fourier, Nystrom, Project, Smallest
from gossamer.drift import DriftAlarm
from gossamer.estimators import OnlineClassifier, OnlineDetector
from gossamer.estimators.base import Online
from gossamer.evaluate import Prequential, prequential
from gossamer.kernels import Additive, Custom, Exponential, Gaussian, Linear
from gossamer.losses import Hinge, Novelty, Squared
from gossamer.rules import Gradient, Implicit, Newton
from gossamer.streams import open_stream
from gossamer.video import BackgroundSubtractor

#: Rows from which threads take theirs, and how many at once.
ROWS, FEATURES = 4000, 4
#: Seconds beyond those asked for, after which a process hangs.
GRACE = 20


@dataclass
class Subject:
    """An object, what threads do with it, and what must hold at the end."""

    verbs: dict[str, Callable[[random.Random], Any]]
    # What a __del__ does with it. Not np.errstate, as predict does: if CPython 3.11 collects garbage while it sets a
    # context variable, and a __del__ sets that variable too, it uses memory that was given back (Python/hamt.c).
    look: Callable[[], Any]
    end: Callable[[], None] = lambda: None
    learned: list[int] = field(default_factory=list)  # rows, of every call that learned some


def data(seed: int = 0) -> tuple[Any, Any]:
    """Rows, and labels of which new ones come now and then."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(ROWS, FEATURES))
    return X, (X[:, 0] > 0) + 2 * (X[:, 1] > 1.5) * (np.arange(ROWS) > 500)


X, Y = data()


def rows(chance: random.Random, most: int = 40) -> slice:
    start = chance.randrange(ROWS - most)
    return slice(start, start + chance.randint(1, most))


def storable(model: Any) -> bool:
    """Whether it can be stored: not with functions of Python inside."""
    try:
        model.to_bytes()
        return True
    except ValueError:
        return False


def check(right: bool, what: str) -> None:
    if not right:
        raise AssertionError(what)


# ------------------------------------------------------------------------------------------------------------- kinds


def estimator(model: Any) -> Subject:
    """An estimator or a pipeline: all that scikit-learn's verbs do, and what Gossamer adds."""
    last = model.steps[-1][1] if hasattr(model, "steps") else model
    subject = Subject({}, lambda: (run_shared(model, lambda: last.n_seen_), last.learner_.state()))
    labels = isinstance(last, OnlineClassifier)
    two = not labels or not model.__sklearn_tags__().classifier_tags.multi_class
    detects = isinstance(last, OnlineDetector)

    def targets(part: slice) -> Any:
        return None if detects else (Y[part] % 2 if two else Y[part]) if labels else X[part, 0]

    def learn(chance: random.Random) -> None:
        part = rows(chance)
        scores = model.predict_learn(X[part], targets(part))
        check(len(scores) == len(X[part]), "a score for each row")
        subject.learned.append(len(scores))

    def learn_more(chance: random.Random) -> None:
        part = rows(chance)
        model.partial_fit(X[part], targets(part))
        subject.learned.append(len(X[part]))

    def predict(chance: random.Random) -> None:
        part = rows(chance)
        found = model.predict(X[part])
        check(len(found) == len(X[part]) and np.isfinite(found.astype(float)).all(), "a prediction for each row")
        if labels:
            check(set(found.tolist()) <= {0, 1, 2, 3}, f"labels {set(found.tolist())}")

    def decide(chance: random.Random) -> None:
        if labels or detects:
            part = rows(chance)
            check(len(model.decision_function(X[part])) == len(X[part]), "a score for each row")

    def be_sure(chance: random.Random) -> None:
        part = rows(chance)
        for name in ("predict_proba", "predict_set", "predict_interval", "score_pvalue"):
            if hasattr(model, name):
                check(len(getattr(model, name)(X[part])) == len(X[part]), f"{name} of each row")

    def ask(chance: random.Random) -> None:
        check(last.n_seen_ >= 0 and last.n_updates_ >= 0 and last.norm_ >= 0, "numbers")
        check(len(last.support_vectors_) >= 0 and last.dual_coef_.ndim == 2, "points")

    def whole(copied: Any) -> None:
        check(len(copied.predict(X[:3])) == 3, "a copy that predicts")
        if labels:
            end = copied.steps[-1][1] if hasattr(copied, "steps") else copied
            known = end.learner_.state().known
            check(end.learner_.loss.target != "label" or known <= len(end._order), "a learner that knows its labels")

    start = slice(0, 40)
    model.partial_fit(X[start], targets(start))
    subject.learned.append(40)
    subject.verbs = {
        "learn": learn, "learn more": learn_more, "predict": predict, "decide": decide, "ask": ask,
        "be sure": be_sure,
        "pickle": lambda _: whole(pickle.loads(pickle.dumps(model))),
        "copy": lambda _: whole(copy.deepcopy(model)),
        "store": lambda _: whole(store.loads(model.to_bytes())),
    }  # fmt: skip

    if not storable(model):
        del subject.verbs["store"]

    def end() -> None:
        check(last.n_seen_ == sum(subject.learned), f"{last.n_seen_} rows of {sum(subject.learned)} were learned")
        if hasattr(model, "steps"):
            check(model.steps[0][1].n_seen_ == last.n_seen_, "a scaler and a model that have seen the same rows")
        twin = copy.deepcopy(model)
        check(np.array_equal(twin.predict(X), model.predict(X)), "a copy that predicts the same")

    subject.end = end
    return subject


def learner(made: Learner) -> Subject:
    subject = Subject({}, lambda: (made.steps, made.state()))
    y = {"binary": np.where(X[:, 0] > 0, 1.0, -1.0), "real": X[:, 0], "none": np.zeros(ROWS)}[made.loss.target]
    none = made.loss.target == "none"

    def learn(chance: random.Random) -> None:
        part = rows(chance)
        made.learn(X[part], None if none else y[part])
        subject.learned.append(len(X[part]))

    def learn_one(chance: random.Random) -> None:
        for i in range(20):
            made.learn_one(X[i], None if none else float(y[i]))
            subject.learned.append(1)

    def score(chance: random.Random) -> None:
        scores, levels = made.score_levels(X[rows(chance)], average=bool(made.average) and chance.random() < 0.5)
        check(bool(np.isfinite(scores).all() and np.isfinite(levels).all()), "finite scores")

    def ask(chance: random.Random) -> None:
        updates = made.updates
        check(made.steps >= updates and made.norm >= 0 and np.isfinite(made.level + made.offset), "numbers")
        check(len(made.births) >= 0 and len(made.coefs) >= 0 and made.discarded >= 0, "arrays")

    def state(chance: random.Random) -> None:
        found = made.state()
        twin = copy.copy(made)
        twin.restore(found)
        check(twin.steps == found.steps and len(found.points) == found.raw.shape[1], "a state of one moment")

    made.learn(X[:20], None if none else y[:20])
    subject.learned.append(20)
    subject.verbs = {
        "learn": learn, "learn one": learn_one, "score": score, "score one": lambda _: made.score_one(X[3]), "ask": ask,
        "state": state, "store": lambda _: store.loads(made.to_bytes()).score(X[:3]),
        "pickle": lambda _: copy.deepcopy(made).score(X[:3]),
    }  # fmt: skip
    if not storable(made):
        del subject.verbs["store"]
    subject.end = lambda: check(made.steps == sum(subject.learned), "each row learned once")
    return subject


def scaler() -> Subject:
    made = OnlineScaler().partial_fit(X[:20])
    subject = Subject({}, lambda: made.transform(X[:2]), learned=[20])

    def learn(chance: random.Random) -> None:
        part = rows(chance)
        made.learn_transform(X[part])
        subject.learned.append(len(X[part]))

    subject.verbs = {
        "learn": learn, "scale": lambda chance: check(np.isfinite(made.transform(X[rows(chance)])).all(), "finite"),
        "ask": lambda _: check(bool((made.var_ >= 0).all() and made.n_seen_ > 0), "numbers"),
        "store": lambda _: store.loads(made.to_bytes()).transform(X[:2]),
        "pickle": lambda _: pickle.loads(pickle.dumps(made)).transform(X[:2]),
    }  # fmt: skip
    subject.end = lambda: check(made.n_seen_ == sum(subject.learned), "each row learned once")
    return subject


def sparse(model: Any) -> Subject:
    """An estimator of sparse rows; by the clock if it has one, at the same time for all threads."""
    wide = csr_matrix(np.where(np.abs(np.hstack([X] * 5)) > 1, np.hstack([X] * 5), 0.0))
    when = {} if model.half_life is None else {"time": np.zeros(ROWS)}
    subject = Subject({}, lambda: (run_shared(model, lambda: model.n_seen_), model.learner_.state()))

    def learn(chance: random.Random) -> None:
        part = rows(chance)
        model.partial_fit(wide[part], Y[part] % 2, **{name: values[part] for name, values in when.items()})
        subject.learned.append(part.stop - part.start)

    learn(random.Random(0))
    subject.verbs = {
        "learn": learn, "predict": lambda chance: model.predict_proba(wide[rows(chance)]),
        "points": lambda _: check(model.support_vectors_.shape[1] == 5 * FEATURES, "sparse points"),
        "store": lambda _: store.loads(model.to_bytes()).predict(wide[:2]),
        "copy": lambda _: copy.deepcopy(model).predict(wide[:2]),
    }  # fmt: skip
    subject.end = lambda: check(model.n_seen_ == sum(subject.learned), "each row learned once")
    return subject


def alarm(**options: Any) -> Subject:
    made = DriftAlarm(**options)
    subject = Subject({}, lambda: (made.row, made.raised))

    def watch(chance: random.Random) -> None:
        part = rows(chance)
        check(all(found.row <= made.row for found in made.update(X[part, 0])), "an alarm of a row that was watched")
        subject.learned.append(len(X[part]))

    subject.verbs = {
        "watch": watch, "ask": lambda _: check(made.strength >= 0 and made.limit > 1, "capital"),
        "restart": lambda _: made.restart(), "copy": lambda _: copy.deepcopy(made).update([0.5]),
        "store": lambda _: check(store.loads(made.to_bytes()).row >= 0, "a stored alarm"),
        "pickle": lambda _: pickle.loads(pickle.dumps(made)).update([0.5]),
    }  # fmt: skip
    subject.end = lambda: check(made.row == sum(subject.learned), "each score watched once")
    return subject


def encoder() -> Subject:
    """Rows of numbers with gaps, categories, texts and times."""
    table = [
        {"size": None if i % 9 == 4 else float(X[i, 0]), "shop": f"shop {i % 61 % 23}", "note": f"it is row {i}",
         "when": 1.7e9 + 60 * i}
        for i in range(400)
    ]  # fmt: skip
    made = RowEncoder({"when": "timestamp", "note": "text:8", "shop": "category:places=4,hashed=2"}).fit(table[:20])
    subject = Subject({}, lambda: made.n_seen_, learned=[20])

    def some(chance: random.Random) -> list[dict[str, Any]]:
        start = chance.randrange(360)
        return table[start : start + chance.randint(1, 40)]

    def learn(chance: random.Random) -> None:
        part = some(chance)
        check(np.isfinite(made.learn_transform(part)).all(), "finite features")
        subject.learned.append(len(part))

    subject.verbs = {
        "learn": learn, "encode": lambda chance: check(np.isfinite(made.transform(some(chance))).all(), "finite"),
        "describe": lambda _: str(made.describe()),
        "store": lambda _: store.loads(made.to_bytes()).transform(table[:2]),
        "pickle": lambda _: pickle.loads(pickle.dumps(made)).transform(table[:2]),
        "copy": lambda _: copy.deepcopy(made).transform(table[:2]),
    }  # fmt: skip
    subject.end = lambda: check(made.n_seen_ == sum(subject.learned), "each row learned once")
    return subject


def late(model: Any, spill: bool = False) -> Subject:
    """Rows are shown, and their labels come: each is learned once."""
    folder = tempfile.mkdtemp(prefix="gossamer-threads-")
    model.keep_pending(limit=500, spill=os.path.join(folder, "waiting.sqlite") if spill else None)
    numbers, shown = itertools.count(), deque[int](range(0))
    waiting = model.pending_
    subject = Subject({}, lambda: dict(waiting.counts))

    def show(chance: random.Random) -> None:
        names = [next(numbers) for _ in range(chance.randint(1, 20))]
        model.predict(X[: len(names)], ids=names)
        shown.extend(names)

    def label(chance: random.Random) -> None:
        names = []
        while shown and len(names) < 20:
            with contextlib.suppress(IndexError):  # another thread was faster
                names.append(shown.popleft())
        model.learn_labels([*names, -1], np.arange(len(names) + 1) % 2)

    show(random.Random(0))
    label(random.Random(0))
    subject.verbs = {
        "show": show, "label": label, "predict": lambda chance: model.predict(X[rows(chance)]),
        "ask": lambda _: check(0 <= len(waiting) <= 520, f"{len(waiting)} rows wait"),
        "store": lambda _: model.to_bytes(),
    }  # fmt: skip

    def end() -> None:
        counts = waiting.counts
        seen = model.steps[-1][1].n_seen_ if hasattr(model, "steps") else model.n_seen_
        check(seen == counts["joined"], f"{seen} rows learned, {counts['joined']} labels joined")
        check(counts["shown"] == counts["joined"] + counts["dropped"] + len(waiting), f"a fate for each row: {counts}")
        check(counts["repeated"] == 0, "no label twice")

    subject.end = end
    return subject


def late_bank() -> Subject:
    """Rows of many models wait for their labels, while the bank is written to its file."""
    path = os.path.join(tempfile.mkdtemp(prefix="gossamer-threads-"), "bank.sqlite")
    made, numbers = ModelBank(gossamer.SILKRegressor(Gaussian(0.5), budget=9), path=path, threads=2), itertools.count()
    shown = deque[int]()
    subject = Subject({}, lambda: (len(made), 5 in made))

    def show(chance: random.Random) -> None:
        names = [next(numbers) for _ in range(chance.randint(1, 20))]
        made.predict([name % 7 for name in names], X[: len(names)], ids=names)
        shown.extend(names)

    def label(chance: random.Random) -> None:
        with contextlib.suppress(IndexError):
            name = shown.popleft()
            check(made.learn_labels([name], [1.0]) != [], "an answer for each label")

    show(random.Random(0))
    label(random.Random(0))
    subject.verbs = {
        "show": show, "label": label, "learn": lambda chance: made.learn([3], X[:1], [0.5]),
        "commit": lambda _: made.commit(), "ask": lambda _: check(len(made.pending) >= 0 and len(made) <= 7, "numbers"),
    }  # fmt: skip

    def end() -> None:
        counts = made.pending.counts
        check(counts["shown"] == counts["joined"] + len(made.pending), f"a fate for each row: {counts}")
        made.close()

    subject.end = end
    return subject


def bank(model: Any, **options: Any) -> Subject:
    made, keys = ModelBank(model, threads=2, errors="report", **options), np.arange(ROWS) % 97
    labels = isinstance(model, OnlineClassifier)
    subject = Subject({}, lambda: (len(made), 5 in made))

    def learn(chance: random.Random) -> None:
        part = rows(chance, 400)
        made.learn(keys[part], X[part], Y[part] if labels else None)
        subject.learned.append(len(X[part]))

    def predict(chance: random.Random) -> None:
        part = rows(chance, 100)
        made.predict(keys[part], X[part])

    def walk(chance: random.Random) -> None:
        for key in made:
            check(key in made, "a key that is walked over")
        check(len(made) == len(list(made.keys())) == 97, "as many keys as models")

    def move(chance: random.Random) -> None:
        data = made.dump(5)
        made.put(5, data)
        check(len(made.model(7).predict(X[:2])) == 2, "a model")

    made.learn(keys, X, Y if labels else None)
    subject.learned.append(ROWS)
    subject.verbs = {"learn": learn, "predict": predict, "walk": walk, "contains": lambda _: 3 in made, "move": move}
    if options.get("path") is not None:
        subject.verbs["commit"] = lambda chance: made.commit(chance.random())

    def end() -> None:
        check(sum(model.n_seen_ for model in map(made.model, made)) <= sum(subject.learned), "no row twice")
        made.close()

    subject.end = end
    return subject


def mixture(made: Mixture) -> Subject:
    subject = Subject({}, lambda: run_shared(made, lambda: made.n_features_in_))

    def learn(chance: random.Random) -> None:
        part = rows(chance)
        check(len(made.predict_learn(X[part], Y[part])) == len(X[part]), "shares for each row")
        subject.learned.append(len(X[part]))

    def predict(chance: random.Random) -> None:
        part = rows(chance)
        shares = made.predict_proba(X[part])
        check(np.allclose(shares.sum(axis=1), 1.0), "probabilities")
        check(set(made.predict(X[part]).tolist()) <= {0, 1, 2, 3}, "labels")

    made.partial_fit(X[:40], Y[:40])
    subject.learned.append(40)
    subject.verbs = {
        "learn": learn, "predict": predict, "ask": lambda _: check(abs(made.weights_.sum() - 1) < 1e-9, "weights"),
        "store": lambda _: store.loads(made.to_bytes()).predict(X[:3]), "explain": lambda _: made.explain(),
        "pickle": lambda _: pickle.loads(pickle.dumps(made)).predict(X[:3]),
        "copy": lambda _: copy.deepcopy(made).predict(X[:3]),
    }  # fmt: skip

    def end() -> None:
        seen = {model.n_seen_ for model in made.models_}
        check(seen == {sum(subject.learned)}, "each row learned once by each model")

    subject.end = end
    return subject


def per_target(made: PerTarget) -> Subject:
    subject, labels = (
        Subject({}, lambda: run_shared(made, lambda: made.n_features_in_)),
        np.column_stack([Y > 0, Y > 1]),
    )

    def learn(chance: random.Random) -> None:
        part = rows(chance)
        check(made.predict_learn(X[part], labels[part]).shape == labels[part].shape, "scores for each row")
        subject.learned.append(len(X[part]))

    def predict(chance: random.Random) -> None:
        part = rows(chance)
        check(made.predict_proba(X[part]).shape == labels[part].shape, "probabilities")
        check(set(made.predict(X[part]).ravel().tolist()) <= {0, 1}, "labels")

    made.partial_fit(X[:40], labels[:40])
    subject.learned.append(40)
    subject.verbs = {
        "learn": learn, "predict": predict, "store": lambda _: store.loads(made.to_bytes()).predict(X[:3]),
        "pickle": lambda _: pickle.loads(pickle.dumps(made)).predict(X[:3]),
        "copy": lambda _: copy.deepcopy(made).predict(X[:3]),
    }  # fmt: skip
    seen = lambda: {model.n_seen_ for model in made.models_}  # noqa: E731
    subject.end = lambda: check(seen() == {sum(subject.learned)}, "each row learned once by each model")
    return subject


def river_model(name: str) -> Subject:
    from gossamer import river
    from gossamer.river import models

    made = getattr(river, name)()
    binary = isinstance(made, models.Classifier) and not made._multiclass
    subject = Subject({}, lambda: None)
    names = [f"f{i}" for i in range(40)]

    def row(chance: random.Random) -> tuple[dict[str, float], int]:
        i, few = chance.randrange(ROWS), chance.random() < 0.01
        x = {names[j]: float(X[i, j]) for j in range(FEATURES)}
        if few:  # a feature that others do not have, and now and then nobody had
            x[chance.choice(names)] = 0.5
        return x, i

    def learn(chance: random.Random) -> None:
        for _ in range(10):
            x, i = row(chance)
            if isinstance(made, models.Detector):
                made.learn_one(x)
            else:
                label = int(Y[i] % 2 if binary else Y[i])
                made.learn_one(x, label if isinstance(made, models.Classifier) else float(X[i, 0]))
            subject.learned.append(1)

    def predict(chance: random.Random) -> None:
        for _ in range(10):
            x, _i = row(chance)
            if isinstance(made, models.Detector):
                check(np.isfinite(made.score_one(x)), "a score")
            elif isinstance(made, models.Classifier):
                check(made.predict_one(x) in (None, 0, 1, 2, 3), "a label")
                check(abs(sum(made.predict_proba_one(x).values()) - 1) < 1e-9, "shares")
            else:
                check(np.isfinite(made.predict_one(x)), "a prediction")

    def many(chance: random.Random) -> None:
        import pandas as pd

        frame = pd.DataFrame(X[rows(chance)], columns=names[:FEATURES])
        found = made.score_many(frame) if isinstance(made, models.Detector) else made.predict_many(frame)
        check(len(found) == len(frame), "one for each row")

    for _ in range(3):
        learn(random.Random(1))
    subject.look = lambda: run_shared(made, made.learner.state)
    subject.verbs = {
        "learn": learn, "predict": predict, "many": many, "copy": lambda _: copy.deepcopy(made),
        "pickle": lambda chance: pickle.loads(pickle.dumps(made)),
    }  # fmt: skip
    subject.end = lambda: check(
        made.learner.steps == sum(subject.learned), f"{made.learner.steps} rows of {sum(subject.learned)} were learned"
    )
    return subject


def subtractor(**options: Any) -> Subject:
    made = BackgroundSubtractor(threads=2, **options)
    frames = np.random.default_rng(0).integers(0, 255, (6, 33, 47, 3)).astype(np.uint8)
    made.apply(frames[0])
    subject = Subject({}, lambda: made.score(frames[0]), learned=[1])

    def learn(chance: random.Random) -> None:
        check(made.apply(chance.choice(frames)).shape == (33, 47), "a mask")
        subject.learned.append(1)

    def store_it(chance: random.Random) -> None:
        twin = BackgroundSubtractor.from_bytes(made.to_bytes())
        check(np.isfinite(twin.score(frames[1])).all(), "a stored one that scores")

    subject.verbs = {
        "learn": learn, "score": lambda chance: made.score(chance.choice(frames)), "store": store_it,
        "light": lambda chance: made.compensate(chance.choice(frames)),
        "background": lambda _: made.getBackgroundImage(),
        "still": lambda chance: made.apply(chance.choice(frames), 0.0),
    }  # fmt: skip
    subject.end = lambda: check(made.state()["frames"] == sum(subject.learned), "each frame learned once")
    return subject


def stream() -> Subject:
    """Threads that take chunks from one stream: each row goes to one of them."""
    text = ("a,b,y\n" + "".join(f"{i}.5,{i % 7},{i % 2}\n" for i in range(3000))).encode()
    opened = [open_stream(text, target="y", chunk_rows=16)]
    taken: list[int] = []
    subject = Subject({}, lambda: opened[0].rows_read)

    def take(chance: random.Random) -> None:
        source = opened[0]
        try:
            chunk = next(source)
        except StopIteration:
            opened[0] = open_stream(text, target="y", chunk_rows=16)
            return
        check(len(chunk) == 16 or chunk.rows[-1] == 3000, "a whole chunk")
        check(bool((chunk.X[:, 0] == chunk.rows - 0.5).all()), "rows under their numbers")
        taken.append(len(chunk))

    subject.verbs = {"take": take, "ask": lambda _: (opened[0].position, opened[0].names, opened[0].kinds)}
    return subject


def evaluation() -> Subject:
    run = Prequential(gossamer.SILKClassifier(Gaussian(0.5), budget=30), every=100)
    subject = Subject({}, lambda: run.trace)

    def update(chance: random.Random) -> None:
        part = rows(chance)
        run.update(X[part], Y[part])
        subject.learned.append(len(X[part]))

    update(random.Random(0))
    subject.verbs = {"update": update, "trace": lambda _: run.trace.to_dict(), "state": lambda _: run.state()}
    subject.end = lambda: check(run.finish().row[-1] == run.row == sum(subject.learned), "each row counted once")
    return subject


def trace() -> Subject:
    made = prequential(gossamer.SILKClassifier(Gaussian(0.5), budget=30), (X, Y), every=50)
    verbs = {
        "table": lambda _: made.table(), "dict": lambda _: gossamer.evaluate.Trace.from_dict(made.to_dict()) == made,
        "ask": lambda _: (made.row, made.total("error"), made.support, made.confusion_matrix()),
    }  # fmt: skip
    return Subject(verbs, lambda: len(made))


def python_kernel(A: Any, B: Any) -> Any:
    A, B = np.asarray(A), np.asarray(B)
    return (1 + A @ B.T / 4) ** 2


def kinds() -> dict[str, Callable[[], Subject]]:
    """All public objects: estimators and river models are found, the others are listed."""
    rule, silk = Implicit(C=0.5, reg=0.01), gossamer.SILKClassifier
    found: dict[str, Callable[[], Subject]] = {}
    for name in gossamer.__all__:
        part = getattr(gossamer, name)
        if isinstance(part, type) and issubclass(part, Online):
            found[name] = lambda part=part: estimator(part(budget=30))
            if part.takes_new_features:
                found[f"river {name}"] = lambda name=name: river_model(name)
    found |= {
        "python SILKClassifier": lambda: estimator(silk(Custom(python_kernel), budget=20)),
        "averaged SILKClassifier": lambda: estimator(silk(Gaussian(0.5), budget=20, average=True)),
        "pipeline": lambda: estimator(pipeline(OnlineScaler(), silk(Gaussian(0.5), budget=30))),
        "pipeline detector": lambda: estimator(pipeline(OnlineScaler(), gossamer.NORMADetector(budget=30))),
        "learner": lambda: learner(Learner(Gaussian(0.5), Hinge(), rule, Smallest(30), average=True)),
        "learner novelty": lambda: learner(Learner(Gaussian(0.5), Novelty(nu=0.1), Gradient(0.1), Smallest(30))),
        "learner project": lambda: learner(Learner(Gaussian(0.5), Squared(), rule, Project(30))),
        "learner schedule": lambda: learner(
            Learner(Gaussian(0.5), Hinge(), Gradient(0.1, 0.01, schedule=lambda t: (1 + t) ** -0.5), Smallest(30))
        ),
        "learner trees": lambda: learner(
            Learner(Additive(Exponential() + Linear()), Hinge(), rule, Smallest(30), backend="trees", track_norm=True)
        ),
        "learner newton": lambda: learner(Learner(Gaussian(0.5), Squared(), Newton(0.5, 0.999), Project(20))),
        "learner nystrom": lambda: learner(Learner(Gaussian(0.5), Hinge(), rule, Nystrom(30))),
        "learner fourier": lambda: learner(Learner(Gaussian(0.5), Hinge(), rule, Fourier(30))),
        "learner numpy": lambda: learner(Learner(Gaussian(0.5), Hinge(), rule, Smallest(20), backend="numpy")),
        "learner numpy nystrom": lambda: learner(Learner(Gaussian(0.5), Hinge(), rule, Nystrom(20), backend="numpy")),
        "learner python": lambda: learner(Learner(Custom(python_kernel), Hinge(), rule, Smallest(20), average=True)),
        "scaler": scaler,
        "sparse": lambda: sparse(silk(Gaussian(0.5), budget=20)),
        "sparse newton clock": lambda: sparse(gossamer.NewtonClassifier(Linear(), budget=20, half_life=60.0)),
        "alarm": alarm,
        "alarm that begins anew": lambda: alarm(every=200, memory=100),
        "encoder": encoder,
        "late labels": lambda: late(silk(Gaussian(0.5), budget=20)),
        "late labels pipeline": lambda: late(pipeline(OnlineScaler(), gossamer.NewtonRegressor(budget=20))),
        "late labels file": lambda: late(gossamer.SILKRegressor(Gaussian(0.5), budget=20), spill=True),
        "bank": lambda: bank(gossamer.SILKClassifier(Gaussian(0.5), budget=20)),
        "bank memory": lambda: bank(gossamer.SILKClassifier(Gaussian(0.5), budget=20), memory=20_000),
        "bank file": lambda: bank(
            gossamer.NORMADetector(Gaussian(0.5), budget=20), memory=20_000,
            path=os.path.join(tempfile.mkdtemp(prefix="gossamer-threads-"), "bank.sqlite"),
        ),
        "bank estimators": lambda: bank(gossamer.NORMADetector(Gaussian(0.5), budget=20, average=True), memory=500_000),
        "bank late labels": late_bank,
        "bank newton": lambda: bank(gossamer.NewtonClassifier(Gaussian(0.5), budget=20), memory=200_000),
        "bank auto": lambda: bank(gossamer.AutoClassifier(budget=4), memory=2_000_000),
        "mixture": lambda: mixture(
            Mixture([silk(Gaussian(0.5), budget=20), gossamer.NewtonClassifier(Gaussian(0.5), budget=20)])
        ),
        "per target": lambda: per_target(PerTarget(silk(Gaussian(0.5), budget=20))),
        "video": subtractor,
        "video norma": lambda: subtractor(rule="norma", light=False, shadows=False),
        "stream": stream,
        "evaluation": evaluation,
        "trace": trace,
    }  # fmt: skip
    return found


# ----------------------------------------------------------------------------------------------------------- running


class Litter:
    """Something whose ``__del__`` uses an object, in a ring, so that only the collector finds it."""

    def __init__(self, look: Callable[[], Any], calls: list[int]) -> None:
        self.look, self.calls, self.ring = look, calls, self

    def __del__(self) -> None:
        self.calls[0] += 1
        try:
            self.look()
        except RuntimeError as error:
            if not is_refusal(error):
                raise


def is_refusal(error: BaseException) -> bool:
    """Whether this is the documented error of a callback within a call, or of a call that such a callback waits for."""
    return isinstance(error, RuntimeError) and ("within a call to" in str(error) or "wait for ever" in str(error))


def run(name: str, threads: int, seconds: float, seed: int) -> list[str]:
    """Use an object of a kind from many threads; returns what was found."""
    unraised: list[str] = []
    sys.unraisablehook = lambda what: unraised.append(f"in __del__: {type(what.exc_value).__name__}: {what.exc_value}")
    subject, found, counts, calls = kinds()[name](), [], [0] * threads, [0]
    stop = time.monotonic() + seconds
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()  # what there is already need not be looked at again
    gc.set_threshold(100, 2, 2)

    def work(k: int) -> None:
        chance = random.Random(1000 * seed + k)
        while (time.monotonic() < stop or counts[k] < 3) and not found:
            verb = chance.choice(list(subject.verbs))
            Litter(subject.look, calls)
            try:
                subject.verbs[verb](chance)
            except BaseException as error:
                if not is_refusal(error):
                    found.append(f"{name}, {verb}: {type(error).__name__}: {str(error)[:300]}")
            counts[k] += 1

    workers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    gc.set_threshold(*before)
    gc.unfreeze()
    if not found:
        try:
            subject.end()
        except BaseException as error:
            found.append(f"{name}, end: {type(error).__name__}: {str(error)[:300]}")
    found += [f"{name}, {what}" for what in unraised[:3]]
    print(f"{name}: {sum(counts):,} calls, {calls[0]:,} callbacks, {len(found)} findings", flush=True)
    return found


def child(names: list[str], threads: int, seconds: float, seed: int) -> int:
    """Run kinds in this process, and end it if one hangs."""
    found = []
    for name in names:
        print(f"{name}: begins", flush=True)
        faulthandler.dump_traceback_later(seconds + GRACE, exit=True)
        found += run(name, threads, seconds, seed)
    faulthandler.cancel_dump_traceback_later()
    for what in found:
        print("FOUND", what, flush=True)
    return 1 if found else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each kind of object")
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", help="some of them, separated by commas; all without")
    parser.add_argument("--child", action="store_true", help="in this process, not one for each")
    given = parser.parse_args()
    names = list(kinds()) if given.kinds is None else [name.strip() for name in given.kinds.split(",")]
    faulthandler.enable()
    if given.child:
        return child(names, given.threads, given.seconds, given.seed)
    bad = []
    for name in names:
        numbers = [f"--seconds={given.seconds}", f"--threads={given.threads}", f"--seed={given.seed}"]
        command = [sys.executable, os.path.abspath(__file__), "--child", f"--kinds={name}", *numbers]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print((done.stdout.strip().splitlines() or [name])[-1], flush=True)
        reports = done.stderr.count("WARNING: ThreadSanitizer")
        if done.returncode or reports:
            bad.append(name)
            print(f"FOUND {name}: exit code {done.returncode}, {reports} reports of ThreadSanitizer", flush=True)
            print(done.stdout[-2000:], done.stderr[-8000:], sep="\n", flush=True)
    tried = f"{len(names)} kinds of objects, {given.threads} threads, {given.seconds:g} s each"
    print(f"{tried}: {len(bad)} with findings {bad}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
