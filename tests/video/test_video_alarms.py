"""Alarms of pixels: a share that holds whatever the frames are, p-values that are those of the alarms, a state."""

import numpy as np
import pytest

from gossamer.video import BackgroundSubtractor


def is_same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def restless(frames, kind, height=40, width=56, seed=0):
    """A still scene, noisier to the right, and what changes it."""
    rng = np.random.default_rng(seed)
    scene = np.kron(rng.integers(70, 170, (height // 8, width // 8, 3)), np.ones((8, 8, 1)))
    right = (np.arange(width) > width // 2)[:, None]
    for t in range(frames):
        if kind == "random":
            yield rng.integers(0, 256, scene.shape, dtype=np.uint8)
            continue
        moved = {"noise": 0, "flicker": 20 * np.sin(t / 3) * right, "drift": 10 * np.sin(t / 200)}[kind]
        noise = np.linspace(1, 6, width)[:, None] * rng.normal(size=scene.shape)
        yield np.clip(scene + moved + noise, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("kind", ["noise", "flicker", "drift", "random"])
@pytest.mark.parametrize("share", [0.01, 0.05])
def test_alarms_keep_their_share(kind, share):
    """Whatever the frames, no pixel raises more alarms than the theorem says; on normal ones it is the share asked."""
    bank = BackgroundSubtractor(alarms=share, threads=1, guard=None)
    before, begun, counted, early = False, 0, 0, (0, 0)
    for t, frame in enumerate(restless(1200, kind)):
        new = bank.apply(frame) > 0
        if t > 2:  # the first frames have no distribution yet
            begun, counted = begun + (new & ~before), counted + ~(new & before)
        early, before = (begun, counted) if t == 300 else early, new
    assert (begun <= share * counted + 1 + 1 / 0.3 + 0.01).all()
    if kind != "random":
        assert share / 1.5 < (begun - early[0]).sum() / (counted - early[1]).sum() < 1.5 * share


def test_p_values_are_those_of_the_alarms_and_an_object_that_stays_is_one():
    bank = BackgroundSubtractor(alarms=0.01, threads=1, shadows=False)
    with pytest.raises(ValueError, match="a share between 0 and 1 for p-values"):
        BackgroundSubtractor().score_pvalue(np.zeros((4, 4), np.uint8))
    assert (bank.score_pvalue(np.zeros((40, 56, 3), np.uint8)) == 1).all()
    hits = []
    for t, frame in enumerate(restless(420, "noise")):
        if t >= 400:
            frame[10:30, 10:30] = (30, 60, 250)
        before = bank.state() if t in (50, 410) else None
        p = bank.score_pvalue(frame)
        assert ((p >= 0) & (p <= 1)).all()
        if t > 2:
            assert np.array_equal(bank.apply(frame, learningRate=0) > 0, p < 0.01)
        assert before is None or is_same(before, bank.state())
        mask = bank.apply(frame)
        if t >= 400:
            hits.append((mask[12:28, 12:28] > 0).mean())
    assert min(hits) > 0.99
    assert p[12:28, 12:28].max() < 0.001


def test_a_state_of_alarms_is_checked():
    bank = BackgroundSubtractor(alarms=0.1, threads=1)
    for frame in restless(8, "noise"):
        bank.apply(frame)
    good = bank.state()
    for name in ("usual", "levels", "alarmed", "sketch"):
        for bad in (good[name][1:], np.full_like(good[name], 7), None):
            with pytest.raises(ValueError, match="entry of a PixelBank's state must be"):
                bank.restore({**good, name: bad})
            with pytest.raises(ValueError, match="entry of a PixelBank's state must be"):
                bank.restore({key: value for key, value in good.items() if key != name})
    assert is_same(good, bank.state())
