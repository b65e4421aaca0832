"""The pixel bank is a grid of detectors; what is added to it does what it says; on frames made here."""

import numpy as np
import pytest

import gossamer
from gossamer.kernels import Gaussian
from gossamer.video import PLAIN, BackgroundSubtractor

WIDTH = 15.0
KERNEL = Gaussian(1 / (2 * WIDTH**2))
# steps and shares without short sums that meet at 0: there float32 and float64 would decide differently
DETECTORS = {
    "silk": ({"C": 0.3, "reg": 0.02}, lambda: gossamer.SILKDetector(KERNEL, C=0.3, reg=0.02, margin=1.0, budget=5)),
    "silk, nu": (
        {"C": 0.3, "reg": 0.02, "nu": 0.173},
        lambda: gossamer.SILKDetector(KERNEL, C=0.3, reg=0.02, nu=0.173, budget=5),
    ),
    "norma": (
        {"rate": 0.2317, "reg": 0.05, "nu": 0.173, "margin": 0.0},
        lambda: gossamer.NORMADetector(KERNEL, rate=0.2317, reg=0.05, nu=0.173, budget=5),
    ),
}


def noise(frames, height, width, channels=3, level=100, sigma=15, seed=0):
    """Frames of two colours that take turns, with noise."""
    rng = np.random.default_rng(seed)
    mean = level + 50 * rng.integers(0, 2, (frames, 1, 1, 1))
    made = np.clip(rng.normal(mean, sigma, (frames, height, width, channels)), 0, 255).astype(np.uint8)
    return made[..., 0] if channels == 1 else made


def street(frames, height=96, width=128, seed=0):
    """A still scene with texture, and camera noise."""
    rng = np.random.default_rng(seed)
    scene = np.kron(rng.integers(70, 170, (height // 8, width // 8, 3)), np.ones((8, 8, 1)))
    for _ in range(frames):
        yield np.clip(scene + rng.normal(0, 3, scene.shape), 0, 255).astype(np.uint8)


def same(one, other):
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", DETECTORS)
def test_the_bank_is_a_grid_of_detectors(name, channels):
    """With the options of PLAIN, scores and support sets are those of one detector object per pixel."""
    options, detector = DETECTORS[name]
    frames = noise(60, 3, 13, channels)
    bank = BackgroundSubtractor(name.split(",")[0], budget=5, width=WIDTH, **options, **PLAIN, threads=2)
    scores = []
    for frame in frames:
        scores.append(bank.score(frame))
        bank.apply(frame)
    state = bank.state()
    slots = state["slots"].reshape(5, -1, 32 * (channels + 4))
    points = slots[:, :, : 32 * channels].reshape(5, -1, channels, 32)
    for y, x in np.ndindex(3, 13):
        rows = frames[:, y, x].reshape(60, -1).astype(np.float32)
        model = detector()
        expected = -model.predict_learn(rows)
        np.testing.assert_allclose(np.array(scores)[:, y, x], expected, atol=2e-6)
        pixel = 13 * y + x
        kept = points[:, pixel // 32, :, pixel % 32]
        assert sorted(map(tuple, kept)) == sorted(map(tuple, model.support_vectors_.astype(int)))


def test_plain_masks_are_the_detectors_alarms():
    """Without averaging, a mask at threshold 1 is f < margin."""
    frames = noise(40, 4, 9)
    bank = BackgroundSubtractor(C=0.3, reg=0.02, width=WIDTH, **PLAIN, threshold=1.0, threads=1)
    for frame in frames:
        scores = bank.score(frame)
        sure = np.abs(scores) > 1 / 255  # evidence has 256 levels
        assert np.array_equal((bank.apply(frame) == 255)[sure], (scores > 0)[sure])


@pytest.mark.parametrize("options", [{}, PLAIN, {"rule": "norma"}, {"nu": 0.1}, {"alarms": 0.05}])
def test_threads_change_nothing(options):
    """Masks and state are the same bits for any number of threads."""
    banks = [BackgroundSubtractor(**options, threads=threads) for threads in (1, 2, 5)]
    for frame in noise(12, 37, 41):
        masks = [bank.apply(frame) for bank in banks]
        assert np.array_equal(masks[0], masks[1])
        assert np.array_equal(masks[0], masks[2])
    assert same(banks[0].state(), banks[1].state())
    assert same(banks[0].state(), banks[2].state())


def test_zero_freezes():
    """learningRate = 0 changes no bit, gives the mask that would have been, and a new bank stays new."""
    frames = noise(20, 24, 31)
    bank = BackgroundSubtractor(threads=1)
    assert (bank.apply(frames[0], learningRate=0) == 255).all()
    assert bank.state() == {"shape": []}
    for frame in frames[:-1]:
        bank.apply(frame)
    before = bank.state()
    frozen = [bank.apply(frame // 2, learningRate=0) for frame in frames]
    bank.score(frames[0] // 3)
    bank.compensate(frames[0] // 3)
    assert same(before, bank.state())
    assert np.array_equal(frozen[-1], bank.apply(frames[-1] // 2))


def test_one_starts_anew():
    """learningRate = 1 is a new bank with this frame, all of which is background."""
    frames = noise(20, 24, 31)
    old, new = BackgroundSubtractor(threads=1), BackgroundSubtractor(threads=1)
    for frame in frames:
        old.apply(frame)
    mask = old.apply(frames[3], learningRate=1)
    assert not mask.any()
    assert np.array_equal(mask, new.apply(frames[3]))
    assert same(old.state(), new.state())


@pytest.mark.parametrize("options", [{}, PLAIN, {"rule": "norma"}, {"nu": 0.1}, {"light": False}, {"alarms": 0.1}])
@pytest.mark.parametrize("channels", [1, 3])
def test_a_restored_state_goes_on_exactly(options, channels):
    """The masks and scores after restore are those without it."""
    frames = noise(30, 19, 23, channels)
    first, second = BackgroundSubtractor(**options, threads=1), BackgroundSubtractor(**options, threads=2)
    for frame in frames[:17]:
        first.apply(frame)
    second.restore(first.state())
    for frame in frames[17:]:
        assert np.array_equal(first.score(frame), second.score(frame))
        assert np.array_equal(first.apply(frame), second.apply(frame))
    assert same(first.state(), second.state())


def test_a_saved_subtractor_goes_on_exactly(tmp_path):
    """The file has the parameters too, and is loaded by the class or by gossamer.load."""
    frames = noise(20, 19, 23)
    bank = BackgroundSubtractor(patience=33, threads=1)
    for frame in frames[:12]:
        bank.apply(frame)
    bank.save(tmp_path / "street.gsm")
    loaded, again = BackgroundSubtractor.load(tmp_path / "street.gsm"), gossamer.load(tmp_path / "street.gsm")
    assert loaded.get_params() == bank.get_params()
    for frame in frames[12:]:
        mask = bank.apply(frame)
        assert np.array_equal(mask, loaded.apply(frame))
        assert np.array_equal(mask, again.apply(frame))
    assert bank.to_bytes() == loaded.to_bytes()
    gossamer.SILKDetector(KERNEL).fit(np.zeros((3, 2))).save(tmp_path / "other.gsm")
    with pytest.raises(ValueError, match="a file with a BackgroundSubtractor"):
        BackgroundSubtractor.load(tmp_path / "other.gsm")


def test_a_bad_state_is_refused():
    """A state that does not fit is a ValueError and changes nothing."""
    bank = BackgroundSubtractor(threads=1)
    for frame in noise(5, 9, 11):
        bank.apply(frame)
    good = bank.state()
    changes = [
        {"shape": [9, 12, 3]}, {"shape": [9]}, {"shape": "no"}, {"used": good["used"] * 0 + 21},
        {"slots": good["slots"][1:]}, {"scales": good["scales"] * 0}, {"frames": -1}, {"busy": None},
        {"slots": good["slots"].astype(np.float64)},
    ]  # fmt: skip
    for change in changes:
        with pytest.raises(ValueError, match="must be"):
            bank.restore({**good, **change})
        assert same(bank.state(), good)


@pytest.mark.parametrize(
    "frame",
    [
        np.zeros((8, 9), np.float32), np.zeros((8, 10, 3), np.uint8), np.zeros((8, 9), np.uint8),
        np.zeros((8, 9, 4), np.uint8), np.zeros((0, 9, 3), np.uint8), np.zeros(5, np.uint8), [[0, 1]], None,
    ],
    ids=lambda frame: f"{getattr(frame, 'dtype', type(frame).__name__)} {getattr(frame, 'shape', '')}",
)  # fmt: skip
def test_bad_frames_are_refused(frame):
    """A frame of another type, size or kind is a ValueError that says so, and changes nothing."""
    bank = BackgroundSubtractor(threads=1)
    bank.apply(noise(1, 8, 9)[0])
    before = bank.state()
    for call in (bank.apply, bank.score, bank.compensate):
        with pytest.raises(ValueError, match="'frame' parameter of BackgroundSubtractor must be"):
            call(frame)
    assert same(before, bank.state())


@pytest.mark.parametrize(
    "options",
    [
        {"rule": "knn"}, {"budget": 0}, {"budget": 256}, {"patience": 0}, {"memory": -1}, {"C": 0.0}, {"width": 0},
        {"nu": 0.0}, {"margin": 0}, {"every": 0}, {"threshold": 1.5}, {"cap": 0}, {"haste": 0.5}, {"evidence": 9},
        {"features": "rgb"}, {"threads": 0}, {"light": 1}, {"guard": 2.0}, {"rate": 0.1}, {"rule": "norma", "C": 1.0},
        {"rule": "norma", "rate": 0.5, "reg": 2.0}, {"merge": -1.0}, {"spread": float("nan")}, {"known": "all"},
        {"alarms": 0.0}, {"alarms": 1.0},
    ],
    ids=str,
)  # fmt: skip
def test_bad_parameters_are_refused(options):
    with pytest.raises(ValueError, match=r"parameter of BackgroundSubtractor must be .* Got .* instead\."):
        BackgroundSubtractor(**options)


def test_strides_do_not_matter():
    """A view, whatever its strides, is the frame it shows."""
    frames = noise(6, 40, 60)
    views = [
        (lambda f: f[4:24, 8:40], lambda f: f[4:24, 8:40].copy()),
        (lambda f: f[::2, ::3], lambda f: f[::2, ::3].copy()),
        (lambda f: f[::-1, :, ::-1], lambda f: f[::-1, :, ::-1].copy()),
        (lambda f: f[:, :, 1], lambda f: f[:, :, 1].copy()),
        (np.asfortranarray, np.array),
    ]
    for view, copy in views:
        one, other = BackgroundSubtractor(threads=1), BackgroundSubtractor(threads=1)
        for frame in frames:
            assert np.array_equal(one.apply(view(frame)), other.apply(copy(frame)))
        assert same(one.state(), other.state())


def test_grey_is_colour_without_colour():
    """A grey frame gives the mask of the same frame in three equal channels, and so does a last axis of one."""
    options = {"spread": 0.0, "light": False, "threads": 1}
    grey, single, colour = (BackgroundSubtractor(**options) for _ in range(3))
    for frame in noise(20, 20, 30, 1):
        mask = grey.apply(frame)
        assert np.array_equal(mask, single.apply(frame[:, :, None]))
        assert np.array_equal(mask, colour.apply(np.repeat(frame[:, :, None], 3, axis=2)))
    assert grey.getBackgroundImage().shape == (20, 30)
    assert np.array_equal(grey.getBackgroundImage(), colour.getBackgroundImage()[:, :, 0])


def test_the_background_image_is_the_scene():
    """Also while something moves in front of it, and before the first frame there is none."""
    bank = BackgroundSubtractor(threads=1)
    with pytest.raises(ValueError, match="seen before"):
        bank.getBackgroundImage()
    for t, frame in enumerate(street(60)):
        frame[20:50, 2 * t : 2 * t + 20] = 230
        bank.apply(frame)
    scene = next(iter(street(1, seed=0)))
    assert np.abs(bank.getBackgroundImage().astype(int) - scene)[:, 20:].mean() < 6


@pytest.mark.parametrize("patience", [40, 120])
def test_patience(patience):
    """A textured object that stops is foreground for about ``patience`` frames, then background."""
    rng = np.random.default_rng(5)
    person = np.kron(rng.integers(0, 256, (8, 4, 3)), np.ones((6, 6, 1)))
    bank = BackgroundSubtractor(patience=patience, threads=1, shadows=False)
    shares = []
    for t, frame in enumerate(street(110 + 2 * patience)):
        left = min(t - 80, 30) * 2
        if left > 0:
            body = person + rng.normal(0, 3, person.shape)
            frame[30:78, left : left + 24] = np.clip(body, 0, 255)
        mask = bank.apply(frame)
        if t >= 110:
            shares.append((mask[34:74, 64:80] > 0).mean())
    gone = next(n for n, share in enumerate(shares) if share < 0.5)
    assert 0.8 * patience <= gone <= 1.2 * patience
    assert min(shares[: int(0.7 * patience)]) > 0.9
    assert max(shares[int(1.6 * patience) :]) < 0.1


def test_a_learning_rate_is_one_over_the_patience():
    """learningRate = 1 / 40 is patience = 40, once the first frames are over."""
    given, usual = BackgroundSubtractor(threads=1, warm=False), BackgroundSubtractor(patience=40, threads=1, warm=False)
    for frame in noise(30, 20, 30):
        assert np.array_equal(given.apply(frame, learningRate=1 / 40), usual.apply(frame))
    assert same(given.state(), usual.state())


def test_a_soft_shadow_is_labelled():
    """What darkens the scene evenly is 127, what stands in it is 255."""
    bank = BackgroundSubtractor(threads=1)
    for t, frame in enumerate(street(80)):
        if t >= 75:
            frame[20:60, 20:60] = frame[20:60, 20:60] * 0.65
            frame[30:50, 70:90] = (30, 40, 200)
        mask = bank.apply(frame)
    assert (mask[26:54, 26:54] == 127).mean() > 0.9
    assert (mask[33:47, 73:87] == 255).mean() > 0.98
    assert (mask[:, 100:] == 0).all()


@pytest.mark.parametrize("gain", [0.45, np.linspace(0.4, 0.6, 128)[None, :, None]], ids=["even", "uneven"])
def test_light(gain):
    """After a switch of the light the scene is background at once, and again when it is switched back."""
    bank = BackgroundSubtractor(threads=1)
    for t, frame in enumerate(street(100)):
        mask = bank.apply(np.round(frame * gain).astype(np.uint8) if 60 <= t < 80 else frame)
        assert t < 5 or (mask > 0).mean() < 0.02


def test_the_guard_starts_over():
    """A wholly new scene is foreground once, then background; without the guard it stays foreground."""
    shares = {}
    for guard in (0.5, None):
        bank = BackgroundSubtractor(guard=guard, threads=1)
        for frame in street(30, seed=0):
            bank.apply(frame)
        shares[guard] = [(bank.apply(frame) > 0).mean() for frame in street(8, seed=1)]
    assert shares[0.5][0] > 0.5  # the mask tells what was seen before the guard acted
    assert shares[0.5][2] < 0.02
    assert shares[None][7] > 0.5


#: For every option another value; each must change what is learned or seen.
CHANGES = {
    "alarms": 0.05,
    "rule": "norma", "budget": 2, "patience": 20, "memory": 30, "C": 0.5, "reg": 0.5, "margin": 2.0, "nu": 0.1,
    "width": 20.0, "spread": 0.0, "features": "bgr", "merge": None, "every": 1, "cap": 0.5, "known": 0.51,
    "haste": 1.0, "warm": False, "light": False, "guard": None, "threshold": 0.1, "evidence": 0, "shadows": False,
}  # fmt: skip


def behaviour(options):
    bank = BackgroundSubtractor(**options, threads=1)
    masks = []
    for t, frame in enumerate(noise(50, 24, 33, sigma=25, seed=3)):
        if t > 20:
            frame[5:15, 5:20] = frame[5:15, 5:20] * 0.7
        masks.append(bank.apply(frame if t < 45 else frame // 2))
    still = BackgroundSubtractor(**options, threads=1)
    for t, frame in enumerate(street(12)):
        if t > 8:
            frame[20:60, 20:60] = frame[20:60, 20:60] * 0.65
        masks.append(still.apply(frame))
    state = {name: np.asarray(value).tobytes() for name, value in bank.state().items()}
    return b"".join(mask.tobytes() for mask in masks), state


def test_every_parameter_changes_something():
    usual = behaviour({})
    assert set(CHANGES) | {"rate", "threads"} == set(BackgroundSubtractor().get_params())
    for name, value in CHANGES.items():
        assert behaviour({name: value}) != usual, name
    assert behaviour({"rule": "norma", "rate": 0.3}) != behaviour({"rule": "norma"})
