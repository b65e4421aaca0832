"""Locks: a writer is alone, readers are not; no write happens within another call, and no deadlock is possible."""

import copy
import pickle
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gossamer import Learner, SILKClassifier
from gossamer._locks import Snapshot, as_worker, exclusive, run_shared, shared, spread
from gossamer.budgets import Smallest
from gossamer.kernels import Custom, Gaussian
from gossamer.rules import Implicit


class Counter(Snapshot):
    """Two numbers that are equal, unless a thread reads while another writes."""

    def __init__(self):
        self.one = self.two = 0
        self.within = lambda: None

    @exclusive
    def add(self):
        self.one += 1
        time.sleep(0)
        self.within()
        self.two += 1

    @shared
    def both(self):
        first = self.one
        time.sleep(0)
        return first, self.two

    @shared
    def wait(self, barrier):
        barrier.wait(5)

    @shared
    def add_while_reading(self):
        self.add()

    def __getstate__(self):
        return {**super().__getstate__(), "within": None}


def test_one_writes_and_many_read():
    counter, stop = Counter(), []

    def watch():
        while not stop:
            one, two = counter.both()
            assert one == two

    with_errors = []

    def guarded(work):
        try:
            work()
        except BaseException as error:
            with_errors.append(error)

    watchers = [threading.Thread(target=guarded, args=(watch,)) for _ in range(3)]
    adders = [threading.Thread(target=guarded, args=(lambda: [counter.add() for _ in range(300)],)) for _ in range(3)]
    for thread in watchers + adders:
        thread.start()
    for thread in adders:
        thread.join()
    stop.append(True)
    for thread in watchers:
        thread.join()
    assert not with_errors
    assert counter.both() == (900, 900)


def test_readers_run_together():
    counter, barrier = Counter(), threading.Barrier(4)
    threads = [threading.Thread(target=counter.wait, args=(barrier,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not barrier.broken


def test_a_change_within_a_call_is_an_error():
    counter = Counter()
    counter.within = counter.add
    with pytest.raises(RuntimeError, match="within a call to it"):
        counter.add()
    with pytest.raises(RuntimeError, match="within a call to it"):
        counter.add_while_reading()
    counter.within = lambda: None
    counter.add()  # and nobody is kept out afterwards
    assert counter.both() == (2, 1)


def test_a_callback_may_read_within_a_write():
    counter, seen = Counter(), []
    counter.within = lambda: seen.append(counter.both())
    counter.add()
    assert seen == [(1, 0)]


def test_a_cycle_of_threads_is_an_error():
    """Two objects, two threads, each in a call to one that calls the other: one of them is told, and both end."""
    first, second, barrier, told = Counter(), Counter(), threading.Barrier(2), []

    def crossing(other):
        def within():
            barrier.wait(10)
            try:
                other.add()
            except RuntimeError as error:
                told.append(str(error))
            except threading.BrokenBarrierError:
                pass

        return within

    def once(counter, other):
        counter.within = crossing(other)
        try:
            counter.add()
        finally:
            counter.within = lambda: None

    threads = [threading.Thread(target=once, args=pair, daemon=True) for pair in ((first, second), (second, first))]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    barrier.abort()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)


def test_copies_are_of_one_moment():
    counter, bad = Counter(), []
    counter.within = None
    counter.within = lambda: time.sleep(1e-5)
    done = []

    def add():
        for _ in range(200):
            counter.add()
        done.append(True)

    thread = threading.Thread(target=add)
    thread.start()
    while not done:
        made = pickle.loads(pickle.dumps(counter))
        bad += [made] if made.one != made.two else []
        shallow = run_shared(counter, lambda: copy.copy(counter))
        bad += [shallow] if shallow.one != shallow.two else []
    thread.join()
    assert not bad


def test_a_kernel_that_calls_its_learner():
    """A kernel may look at the learner that calls it; if it learns with it, that is an error, and nothing changes."""
    learner, calls = None, []

    def kernel(A, B):
        if learner is not None and calls:
            calls.pop()(learner)
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    learner = Learner(Custom(kernel), "hinge", Implicit(), Smallest(20))
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    learner.learn(X, y)
    before = learner.state()
    calls.append(lambda learner: learner.steps)
    learner.learn(X[:1], y[:1])
    learner.restore(before)
    calls.append(lambda learner: learner.learn(X[:1], y[:1]))
    with pytest.raises(RuntimeError, match="Learner must not be changed within a call to it"):
        learner.learn(X[:5], y[:5])
    assert learner.steps == 60
    assert np.array_equal(learner.coefs, before.scale * before.raw[0])


def test_an_interrupted_call_keeps_nobody_out():
    model = SILKClassifier(Gaussian(0.5), budget=10)
    X, y = np.random.default_rng(0).normal(size=(50, 2)), np.arange(50) % 2

    class StopError(Exception):
        pass

    class Angry:
        def __array__(self, *_, **__):
            raise StopError

    model.partial_fit(X, y)
    with pytest.raises(StopError):
        model.partial_fit(Angry(), y)
    thread = threading.Thread(target=model.partial_fit, args=(X, y), daemon=True)
    thread.start()
    thread.join(10)
    assert model.n_seen_ == 100


def test_the_callback_of_a_worker_is_within_the_call_that_waits_for_it():
    """A call hands work to a pool and waits; what a worker runs looks at the same object, and changes are refused."""
    counter, seen = Counter(), []

    def work(_):
        seen.append(counter.both())
        with pytest.raises(RuntimeError, match="within a call"):
            counter.add()

    def hand_out():
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(as_worker(threading.get_ident(), work), range(4)))

    counter.within = hand_out
    thread = threading.Thread(target=counter.add, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert seen == [(1, 0)] * 4


def test_a_worker_and_its_caller_in_a_cycle():
    """A changes x and waits for a worker that changes y; B changes y and looks at x: one of them is refused."""
    x, y, inside = Counter(), Counter(), threading.Barrier(2)
    told = []

    def tell(call):
        try:
            call()
        except RuntimeError as error:
            told.append(str(error))

    def hand_out():
        def work(_):
            inside.wait(5)
            tell(y.add)

        with ThreadPoolExecutor(1) as pool:
            list(pool.map(as_worker(threading.get_ident(), work), range(1)))

    def meet():
        y.within = lambda: None
        inside.wait(5)
        time.sleep(0.05)
        tell(x.both)

    x.within, y.within = hand_out, meet
    threads = [threading.Thread(target=counter.add, daemon=True) for counter in (x, y)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert len(told) == 1
    assert "wait for ever" in told[0]


def test_a_callback_at_every_line_of_a_wait():
    """A ``__del__`` may run between any two lines while a thread waits for readers: it reads, and nothing hangs."""

    class Owner:
        @exclusive
        def write(self):
            return "written"

    owner, reading, leave = Owner(), threading.Event(), threading.Event()
    read, written = [], []

    def callback(frame, event, _):
        read.append(run_shared(owner, lambda: frame.f_lineno))
        return callback

    def stay():
        run_shared(owner, lambda: (reading.set(), leave.wait(20)))

    def write():
        sys.settrace(callback)
        try:
            written.append(owner.write())
        finally:
            sys.settrace(None)

    threads = [threading.Thread(target=work, daemon=True) for work in (stay, write)]
    threads[0].start()
    assert reading.wait(20)
    threads[1].start()
    threads[1].join(0.3)
    assert not written
    leave.set()
    for thread in threads:
        thread.join(20)
    assert written == ["written"]
    assert len(read) > 10


def test_a_callback_at_every_line_of_spread_work():
    """A ``__del__`` may run between any two lines while a thread spreads work, those of the standard library included:
    it spreads work itself, and nothing hangs. (With pools of `concurrent.futures` it did.)"""
    counts, done = [0], []

    def callback(frame, event, _):
        sys.settrace(None)
        assert spread(lambda place: -place, 3, threads=2) == [0, -1, -2]
        counts[0] += 1
        sys.settrace(callback)
        return callback

    def work():
        sys.settrace(callback)
        try:
            done.append(spread(lambda place: place, 4, threads=3))
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    assert done == [[0, 1, 2, 3]]
    assert counts[0] > 20


def test_spread_work_fails_as_a_whole():
    """The error of one place is raised, after all threads have ended."""
    running = []

    def work(place):
        running.append(place)
        if place == 2:
            raise KeyError(place)
        time.sleep(0.01)
        running.remove(place)
        return place

    with pytest.raises(KeyError):
        spread(work, 50, threads=4)
    assert running == [2]
    assert spread(lambda place: place, 0, threads=4) == []
