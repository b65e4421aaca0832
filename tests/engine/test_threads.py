"""Several threads at once: a model is scored by many while others learn. For longer: long/threads.py."""

import pathlib
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from parts import stream, user_kernel

import gossamer
from gossamer import Learner, OnlineScaler, _core, pipeline
from gossamer.bank import ModelBank
from gossamer.budgets import Smallest
from gossamer.kernels import Additive, Custom, Exponential, Gaussian, Laplace, Linear
from gossamer.losses import Hinge, Multiclass
from gossamer.rules import Gradient, Implicit
from gossamer.video import BackgroundSubtractor

LONG = pathlib.Path(__file__).parents[1] / "long" / "threads.py"
#: Objects that share more than a learner's core, for longer than the others.
SHARED = [
    "video", "bank memory", "SILKClassifier", "pipeline", "river SILKClassifier", "scaler", "learner python", "stream",
    "evaluation",
]  # fmt: skip

KERNELS = [
    Gaussian(0.5), 0.5 * Gaussian(0.2) + Linear() * Laplace(1.0), Custom(user_kernel),
    Additive(Exponential() + Linear()),
]  # fmt: skip
NAMES = ["leaf", "program", "python", "trees"]


def model(kernel, seed, dtype=np.float64):
    backend = "trees" if isinstance(kernel, Additive) else "auto"
    learner = Learner(kernel, Hinge(), Implicit(C=0.5, reg=0.01), Smallest(50), average=True, backend=backend)
    return learner, stream(Hinge(), 2000, seed, features=5, dtype=dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_many_score_one_model(kernel, dtype):
    """Threads that score one model at once, whole or row by row, get what one thread gets, bit for bit."""
    learner, (X, y) = model(kernel, 1, dtype)
    learner.learn(X[:500], y[:500])
    scores, mean = learner.score(X), learner.score(X, average=True)
    singles = np.array([learner.score_one(x) for x in X[:100]])

    def work(i):
        if i % 3 == 0:
            return np.array_equal(learner.score(X), scores)
        if i % 3 == 1:
            return np.array_equal(learner.score(X, average=True), mean)
        return np.array_equal([learner.score_one(x) for x in X[:100]], singles)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(work, range(60)))


@pytest.mark.parametrize("kernel", KERNELS, ids=NAMES)
def test_score_while_another_learns(kernel):
    """Models that learn in other threads change neither the scores of a model at rest nor each other."""
    still, (X, y) = model(kernel, 2)
    still.learn(X[:500], y[:500])
    scores = still.score(X)
    alone = []
    for seed in range(3, 6):
        learner, data = model(kernel, seed)
        alone.append(learner.learn(*data))

    def learn(seed):
        learner, data = model(kernel, seed)
        return np.array_equal(learner.learn(*data), alone[seed - 3])

    with ThreadPoolExecutor(6) as pool:
        learned = [pool.submit(learn, seed) for seed in (3, 4, 5)]
        scored = [pool.submit(lambda: np.array_equal(still.score(X), scores)) for _ in range(20)]
        assert all(task.result() for task in learned + scored)


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[3]], ids=["dense", "trees"])
def test_score_a_model_that_learns(kernel):
    """Scoring a compiled model while it learns is safe: every score is finite, and learning is not disturbed."""
    learner, (X, y) = model(kernel, 7)
    twin, _ = model(kernel, 7)
    learner.learn(X[:10], y[:10])
    twin.learn(X[:10], y[:10])
    expected = twin.learn(np.tile(X, (20, 1)), np.tile(y, 20))

    def score(_):
        finite = np.isfinite(learner.score(X[:200])).all() and np.isfinite(learner.score_one(X[0]))
        return finite and len(learner.coefs) <= 50

    with ThreadPoolExecutor(4) as pool:
        learning = pool.submit(learner.learn, np.tile(X, (20, 1)), np.tile(y, 20))
        assert all(pool.map(score, range(100)))
        assert np.array_equal(learning.result(), expected)


def test_learning_in_turns():
    """Threads that learn single rows on one model take turns: every row is learned once."""
    X, y = stream(Hinge(), 2000, seed=8)
    learner = Learner(Gaussian(0.5), Hinge(), Gradient(0.1, 0.01), Smallest(20))
    learner.learn(X[:1], y[:1])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda t: learner.learn_one(X[t], y[t]), range(1, 2000)))
    assert learner.steps == 2000
    assert np.isfinite(learner.score(X)).all()


@pytest.mark.parametrize("kernel", [KERNELS[0], KERNELS[3]], ids=["dense", "trees"])
def test_score_a_model_that_meets_new_classes(kernel):
    """Classes that come while others score do no harm: a score has those that were known when it was asked for."""
    X = np.random.default_rng(9).normal(size=(3000, 5))
    y = np.arange(3000) // 50
    learner = Learner(kernel, Multiclass(), Gradient(0.1, 0.01), Smallest(300))
    learner.learn(X[:10], y[:10])

    def score(_):
        scores = learner.score(X[:50])
        return scores.shape[0] == 50 and np.isfinite(scores).all()

    with ThreadPoolExecutor(4) as pool:
        learning = pool.submit(learner.learn, X[10:], y[10:])
        assert all(pool.map(score, range(100)))
        learning.result()
    assert learner.score(X[:5]).shape == (5, 60)


def storm(seconds, kinds=None):
    """The script for long runs, for a short time: a crash or a hang is the exit of its process."""
    options = [f"--seconds={seconds}", "--threads=6", "--child"]
    options += [] if kinds is None else [f"--kinds={','.join(kinds)}"]
    done = subprocess.run([sys.executable, LONG, *options], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-1500:] + done.stderr[-1500:]


def test_objects_that_share():
    """Threads that learn, predict, store and copy one object leave it whole: each row is learned once."""
    storm(1.0, SHARED)


def test_every_public_object():
    """The same for every estimator, river model, learner, bank and so on."""
    storm(0.05)


FROZEN = """
import faulthandler, gc, sys, threading, time
import numpy as np
from gossamer import Learner
from gossamer.budgets import Nystrom, Smallest
from gossamer.kernels import Gaussian
from gossamer.rules import Implicit
from gossamer.kernels import Additive, Exponential

faulthandler.dump_traceback_later(30, exit=True)
kind = sys.argv[1]
kernel = Additive(Exponential()) if kind == "trees" else Gaussian(0.5)
budget = Nystrom(50) if kind == "nystrom" else Smallest(50)
learner = Learner(kernel, "hinge", Implicit(), budget, backend="trees" if kind == "trees" else "auto")
X = np.random.default_rng(0).normal(size=(500, 3))
learner.learn(X, np.where(X[:, 0] > 0, 1.0, -1.0))

class Litter:
    def __init__(self):
        self.ring = self
    def __del__(self):
        learner.score_one(X[0])
        learner.learn_one(X[1], 1.0)
        time.sleep(0)

gc.freeze()
gc.set_threshold(3)
end = time.monotonic() + 1.5

def learn():
    while time.monotonic() < end:
        learner.learn_one(X[5], 1.0)

def ask():
    while time.monotonic() < end:
        Litter()
        learner.state(), learner.points

threads = [threading.Thread(target=work) for work in (learn, learn, ask, ask)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("ended")
"""


@pytest.mark.parametrize("kind", ["dense", "trees", "nystrom"])
def test_a_callback_while_the_state_is_made(kind):
    """A __del__ that runs while state() makes its arrays, and uses the model, meets nobody who waits for it."""
    command = [sys.executable, "-c", FROZEN, kind]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert done.stdout == "ended\n", done.stderr[-1500:]


def test_predict_while_a_class_is_added():
    """Who predicts has a learner and the classes of one moment, also when a third class makes another learner."""
    X, labels = np.random.default_rng(0).normal(size=(400, 3)), np.arange(400) % 7

    def work(seed):
        model = gossamer.SILKClassifier(Gaussian(0.5), budget=20).partial_fit(X[:20], labels[:20] % 2)
        done = []

        def learn():
            for k in range(2, 8):
                for i in range(0, 400, 50):
                    model.partial_fit(X[i : i + 50], labels[i : i + 50] % k)
            done.append(True)

        with ThreadPoolExecutor(3) as pool:
            task = pool.submit(learn)
            while not done and not task.done():
                assert set(model.predict(X[:30]).tolist()) <= set(range(7))
                scores = model.decision_function(X[:5])
                assert np.isfinite(scores[:, :2] if scores.ndim == 2 else scores).all()
            task.result()

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for seed in range(6):
            work(seed)
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("name", ["dual_coef_", "intercept_", "coef_"])
def test_attributes_are_of_one_moment(name, monkeypatch):
    """A third class makes another learner in the middle: an attribute is of the two classes, or of the three."""
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
    model = gossamer.SILKClassifier("linear", budget=20).partial_fit(X, y)
    threads, found = [], type(model)._hypothesis

    def interrupted(self):
        made = found(self)
        if not threads:
            threads.append(threading.Thread(target=model.partial_fit, args=(X[:3], [0, 1, 2])))
            threads[0].start()
            threads[0].join(0.2)
        return made

    monkeypatch.setattr(type(model), "_hypothesis", interrupted)
    before = np.atleast_2d(getattr(model, name))
    threads[0].join()
    after = np.atleast_2d(getattr(model, name))
    assert len(model.classes_) == 3
    assert (len(before), len(after)) == ((1, 1) if name == "intercept_" else (1, 3))


def test_a_pipeline_is_of_one_moment():
    """Who predicts never sees a scaler that has learned rows which the model has not."""
    X = np.random.default_rng(0).normal(size=(64, 2))
    model = pipeline(OnlineScaler(), gossamer.NORMARegressor(Gaussian(0.5), budget=20)).partial_fit(X[:8], X[:8, 0])
    seen = []

    class Watched(type(model.steps[-1][1])):
        def predict(self, X):
            seen.append((model.steps[0][1].n_seen_, self.n_seen_))
            return super().predict(X)

    model.steps[-1][1].__class__ = Watched
    with ThreadPoolExecutor(3) as pool:
        parts = [slice(i % 60, i % 60 + 3) for i in range(300)]
        learning = pool.submit(lambda: [model.partial_fit(X[part], X[part, 0]) for part in parts])
        while not learning.done():
            model.predict(X[:2])
        learning.result()
    assert seen
    assert all(scaler == model for scaler, model in seen)


@pytest.mark.parametrize(
    "make",
    [
        lambda: BackgroundSubtractor(threads=2**31 - 1),
        lambda: BackgroundSubtractor(every=10**9),
        lambda: ModelBank(gossamer.NORMADetector(), threads=10**6),
        lambda: _core.PixelBank(8, 8, 3, {}, 2**31 - 1),
        lambda: _core.PixelBank(2**16, 2**16, 3, {}, 1),
        lambda: _core.PixelBank(2**30, 1, 3, {}, 1),
        lambda: _core.PixelBank(8, 8, 3, {"every": 1e300}, 1),
        lambda: _core.PixelBank(8, 8, 3, {"every": 1e9}, 1),
    ],
)
def test_what_costs_threads_or_memory_has_limits(make):
    """They are checked before a thread is started or an array made."""
    with pytest.raises(ValueError, match="must"):
        make()


def test_a_stored_number_of_threads_is_checked():
    data = BackgroundSubtractor(threads=2).to_bytes()
    from gossamer import store
    from gossamer.store.nodes import Encoder

    made = BackgroundSubtractor(threads=2)
    made.threads = 2**31 - 1
    assert Encoder().node(made, "test", ())["parameters"]["threads"] == 2**31 - 1
    with pytest.raises(ValueError, match="threads"):
        store.loads(store.dumps(made))
    assert store.loads(data).threads == 2
