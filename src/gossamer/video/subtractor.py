"""`BackgroundSubtractor`: its parameters, frames and state; the loop over the pixels is core/video."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from gossamer import _checks, _core
from gossamer._locks import exclusive
from gossamer._stored import Stored
from gossamer._typing import Image, Singles

if TYPE_CHECKING:
    from os import PathLike
    from typing import Self

FOREGROUND, SHADOW = 255, 127
#: Pixels that learn together in the core.
TILE = 32
#: The largest width of a pixel's kernel, in grey levels.
WIDEST = 40.0

#: Limits of the parameters ``every`` and ``threads``.
MOST_TURNS, MOST_THREADS = 2**16, 1024

#: The options under which the subtractor is exactly the papers' algorithm.
PLAIN: dict[str, Any] = {
    "merge": None, "spread": 0.0, "features": "bgr", "every": 1, "cap": 1.0, "known": 1.0, "haste": 1.0,
    "warm": False, "light": False, "guard": None, "evidence": 0, "shadows": False,
}  # fmt: skip


class BackgroundSubtractor(Stored):
    """Background subtraction: ``apply(frame)`` -> mask with 255 for foreground, 127 for shadow, 0 for background.

    Every pixel keeps f = sum_i a_i k(x_i, .), k(x, s) = exp(-||x - s||^2 / (2 width^2)), of at most ``budget`` colours.
    A frame is scored, then learned: where f(x) is below the margin, SILK adds min(margin - f(x), c) k(x, .) (Cheng et
    al. 2006, ALGORITHMS 2.2), NORMA c k(x, .) (Kivinen et al. 2004); all of f shrinks alike, and the support point that
    weighs least (SILK) or is oldest (NORMA) makes room. With the options of `PLAIN`, a pixel is exactly a
    `SILKDetector` or a `NORMADetector` on its colours.

    Parameters
    ----------
    rule : "silk" or "norma".
    budget : support points of a pixel.
    patience : frames that a still object stays foreground: c is such that a new colour, seen all the time, reaches
        threshold * cap * margin after ``patience`` frames, c (1 - keep^n) / (1 - keep) with n = patience / every.
    memory : frames in which the weight of a colour that is not seen again shrinks to 1/e.
    C, rate, reg : the papers' parameters, instead of ``patience`` (C of SILK, rate of NORMA) and ``memory`` (reg).
    margin, nu : rho, fixed; or with ``nu`` adapting in every pixel to a share nu of alarms, from ``margin``.
    width : of the kernel, in grey levels.
    spread : the width of a pixel is ``width`` + spread * the lower quartile of its change from frame to frame, at most
        40; 0 for one width.
    features : "luma" (luma and stretched chroma) or "bgr" (the channels as they are); grey frames have one.
    merge : distance in grey levels within which the nearest support point grows instead of a new one being stored;
        None never merges.
    every : each pixel learns in one of ``every`` frames.
    cap : share of the margin that is enough: no step above it, and f counts up to it.
    known : share of the margin from which on a support point nearby is filled up in one step.
    haste : a colour that is the background of a neighbouring pixel (camera shake, leaves, an uncovered place) is
        learned with a step ``haste`` times as large.
    warm : the first frame is background, and the next ones are learned with a step of margin / frame at least.
    light : whether a change of the light of the whole scene is compensated.
    guard : share of foreground beyond which all pixels learn the frame at once; None never.
    threshold : of f / (cap * margin), averaged over the neighbourhood: below it is foreground.
    evidence : radius of that neighbourhood in pixels; 0 is the pixel alone.
    shadows : whether shadows are labelled 127: darker by an even factor between 0.5 and 0.95, and of the same colour.
    alarms : a share between 0 and 1: foreground is where `score_pvalue` is below it, instead of ``threshold``. In T
        frames a pixel then raises at most alarms * T + 4.4 alarms, whatever the frames are; an alarm that goes on from
        the frame before is not counted, and its frame is not one of the T.
    threads : None for one per processor, at most 1,024. The masks do not depend on it.

    Several threads of Python may use one subtractor: frames are applied one after the other.

    >>> frames = np.random.default_rng(0).integers(90, 110, (40, 24, 32, 3)).astype(np.uint8)
    >>> subtractor = BackgroundSubtractor(threads=1)
    >>> background = [subtractor.apply(frame) for frame in frames]
    >>> frames[-1][8:16, 8:16] = 200
    >>> int((subtractor.apply(frames[-1]) == 255).sum())
    52
    """

    def __init__(
        self, rule: str = "silk", *, budget: int = 20, patience: float = 250.0, memory: float = 1000.0,
        C: float | None = None, rate: float | None = None, reg: float | None = None, margin: float = 1.0,
        nu: float | None = None, width: float = 8.0, spread: float = 2.0, features: str = "luma",
        merge: float | None = 8.0, every: int = 4, cap: float = 0.9, known: float = 0.75, haste: float = 20.0,
        warm: bool = True, light: bool = True, guard: float | None = 0.5, threshold: float = 0.5, evidence: int = 2,
        shadows: bool = True, threads: int | None = None, alarms: float | None = None,
    ) -> None:  # fmt: skip
        self.rule, self.budget, self.patience, self.memory = rule, budget, patience, memory
        self.C, self.rate, self.reg, self.margin, self.nu = C, rate, reg, margin, nu
        self.width, self.spread, self.features, self.merge, self.every = width, spread, features, merge, every
        self.cap, self.known, self.haste, self.warm, self.light = cap, known, haste, warm, light
        self.guard, self.threshold, self.evidence, self.shadows = guard, threshold, evidence, shadows
        self.threads, self.alarms = threads, alarms
        self._options = self._checked()
        self._seen: tuple[_core.PixelBank, tuple[int, ...]] | None = None  # the pixel bank, and the shape of its frames

    # ---------------------------------------------------------------------------------------------------- parameters

    def _checked(self) -> dict[str, float]:
        """The numbers that the bank takes."""
        _checks.one_of(self, "rule", self.rule, ["silk", "norma"])
        _checks.whole(self, "budget", self.budget, 1, 255)
        _checks.whole(self, "evidence", self.evidence, 0, 7)
        for name in ("patience", "memory", "width"):
            _checks.number(self, name, getattr(self, name), 0.0, math.inf)
        for name in ("C", "rate"):
            if getattr(self, name) is not None:
                _checks.number(self, name, getattr(self, name), 0.0, math.inf)
        for name, value in (("spread", self.spread), ("reg", self.reg), ("merge", self.merge)):
            if value is not None:
                _checks.number(self, name, value, 0.0, math.inf, "left")
        for name in ("cap", "known", "threshold"):
            _checks.number(self, name, getattr(self, name), 0.0, 1.0, "right")
        for name in ("warm", "light", "shadows"):
            _checks.one_of(self, name, getattr(self, name), [False, True])
        if self.guard is not None:
            _checks.number(self, "guard", self.guard, 0.0, 1.0)
        if self.alarms is not None:
            _checks.number(self, "alarms", self.alarms, 0.0, 1.0)
        if self.nu is not None:
            _checks.number(self, "nu", self.nu, 0.0, 1.0, "right")
        _checks.number(self, "margin", self.margin, 0.0, math.inf, "left" if self.nu is not None else "neither")
        _checks.number(self, "haste", self.haste, 1.0, math.inf, "left")
        _checks.one_of(self, "features", self.features, ["luma", "bgr"])
        _checks.whole(self, "every", self.every, 1, MOST_TURNS)
        if self.threads is not None:
            _checks.whole(self, "threads", self.threads, 1, MOST_THREADS)
        keep, step, level_rate = self._step()
        return {
            "budget": self.budget, "implicit": self.rule == "silk", "keep": keep, "step": step,
            "level_rate": level_rate, "margin": self.margin, "nu": -1.0 if self.nu is None else self.nu,
            "width": self.width, "spread": self.spread, "widest": max(WIDEST, self.width),
            "merge": -1.0 if self.merge is None else self.merge, "cap": self.cap, "known": self.known,
            "haste": self.haste, "chroma": self.features == "luma", "every": self.every, "warm": self.warm,
            "light": self.light, "guard": 2.0 if self.guard is None else self.guard, "threshold": self.threshold,
            "radius": self.evidence, "shadows": self.shadows, "alarms": -1.0 if self.alarms is None else self.alarms,
        }  # fmt: skip

    def _step(self) -> tuple[float, float, float]:
        """The factor of f, the largest step of a coefficient, and the step of an adaptive margin, per frame."""
        if self.rule == "silk":
            if self.rate is not None:
                raise _checks.wrong(self, "rate", "None for the rule 'silk', whose step is C", self.rate)
            reg = self.every / self.memory if self.reg is None else self.reg
            C = self._patient_step(1.0 / (1.0 + reg)) * (1.0 + reg) if self.C is None else self.C
            return 1.0 / (1.0 + reg), C / (1.0 + reg), C
        if self.C is not None:
            raise _checks.wrong(self, "C", "None for the rule 'norma', whose step is rate", self.C)
        decay = self.every / self.memory
        if decay >= 1:
            raise _checks.wrong(self, "memory", "larger than every", self.memory)
        rate = self._patient_step(1.0 - decay) if self.rate is None else self.rate
        reg = decay / rate if self.reg is None else self.reg
        if rate * reg >= 1:
            raise _checks.wrong(self, "reg", "such that rate * reg < 1", f"{rate} * {reg}")
        return 1.0 - rate * reg, rate, rate

    def _patient_step(self, keep: float, patience: float | None = None) -> float:
        """The step with which a new colour reaches the threshold after ``patience`` frames."""
        rounds = (self.patience if patience is None else patience) / self.every
        grown = (1.0 - keep**rounds) / (1.0 - keep) if keep < 1 else rounds
        return self.threshold * self.cap * (self.margin or 1.0) / grown

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    # -------------------------------------------------------------------------------------------------------- frames

    def apply(self, frame: Any, learningRate: float = -1.0) -> Image:
        """The mask of a frame; the frame is learned after the mask is made.

        learningRate : -1 as the options say; 0 learns nothing at all; 1 starts anew with this frame; between them a
            still object stays foreground for about 1 / learningRate frames.
        """
        _checks.number(self, "learningRate", learningRate, -math.inf, 1.0, "right")
        return self._apply(frame, learningRate)

    @exclusive
    def _apply(self, frame: Any, learningRate: float) -> Image:
        pixels, bank = self._frame(frame)
        mask = np.empty(pixels.shape[:2], np.uint8)
        if bank is None and learningRate == 0:
            mask.fill(FOREGROUND)  # nothing is known, and nothing is learned
            return mask
        if bank is None or learningRate == 1:
            bank = self._made(pixels.shape)
            self._seen = bank, np.shape(frame)
        step = -1.0 if learningRate < 0 or learningRate == 1 else 0.0
        if 0 < learningRate < 1:
            step = self._patient_step(self._options["keep"], 1.0 / learningRate)
        bank.apply(pixels, step, mask)
        return mask

    def score(self, frame: Any) -> Singles:
        """margin - f(x) of every pixel, the higher the newer, without learning and before any averaging."""
        pixels, bank = self._frame(frame)
        out = np.empty(pixels.shape[:2], np.float32)
        (bank or self._made(pixels.shape)).score(pixels, out)
        return out

    def score_pvalue(self, frame: Any) -> Singles:
        """The share of alarms at which every pixel is just about to raise one, small where something is new; nothing is
        learned. It needs ``alarms``, at which it keeps what is said there; elsewhere it goes by the pixels of about the
        last 50 frames."""
        if self.alarms is None:
            raise _checks.wrong(self, "alarms", "a share between 0 and 1 for p-values", None)
        pixels, bank = self._frame(frame)
        out = np.ones(pixels.shape[:2], np.float32)
        if bank is not None:
            bank.p_values(pixels, out)
        return out

    def compensate(self, frame: Any) -> Image:
        """The frame with its light compensated; nothing is learned."""
        pixels, bank = self._frame(frame)
        out = np.empty(pixels.shape, np.uint8)
        (bank or self._made(pixels.shape)).compensated(pixels, out)
        return out.reshape(np.shape(frame))

    def getBackgroundImage(self) -> Image:  # noqa: N802 (OpenCV's name)
        """The colour that weighs most in every pixel."""
        if self._seen is None:
            raise _checks.wrong(self, "frame", "seen before there is a background", None)
        bank, shape = self._seen
        height, width = shape[:2]
        out = np.empty((height, width, 1 if len(shape) == 2 else shape[2]), np.uint8)
        bank.background(out)
        return out.reshape(shape)

    def _frame(self, frame: Any) -> tuple[Image, _core.PixelBank | None]:
        """A frame as (height, width, channels), its rows dense, and the bank that fits it."""
        if not isinstance(frame, np.ndarray) or frame.dtype != np.uint8:
            got = frame.dtype if isinstance(frame, np.ndarray) else type(frame).__name__
            raise _checks.wrong(self, "frame", "an array of uint8", str(got))
        shape = frame.shape
        if len(shape) not in (2, 3) or 0 in shape or (len(shape) == 3 and shape[2] not in (1, 3)):
            raise _checks.wrong(self, "frame", "of shape (height, width) or (height, width, 3)", shape)
        bank, before = self._seen or (None, shape)
        if shape != before:
            raise _checks.wrong(self, "frame", f"of shape {before}, as the frames before", shape)
        pixels = frame[:, :, None] if len(shape) == 2 else frame
        dense = pixels.strides[2] == 1 and pixels.strides[1] == pixels.shape[2]
        return pixels if dense and pixels.strides[0] >= 0 else np.ascontiguousarray(pixels), bank

    def _made(self, shape: tuple[int, ...]) -> _core.PixelBank:
        height, width, channels = shape
        processors = os.cpu_count() or 1
        threads = min(self.threads or processors, max(8, 4 * processors))  # a file may ask for any number
        return _core.PixelBank(height, width, channels, self._options, threads)

    # --------------------------------------------------------------------------------------------------------- state

    def state(self) -> dict[str, Any]:
        """All that was learned, as numbers and arrays."""
        seen = self._seen
        return {"shape": []} if seen is None else {"shape": list(seen[1]), **seen[0].state()}

    @exclusive
    def restore(self, state: dict[str, Any]) -> Self:
        """Go on from a `state` of a subtractor with the same parameters; a bad one is refused and changes nothing."""
        shape = state.get("shape")
        if not isinstance(shape, list) or not all(type(side) is int and 0 < side < 2**16 for side in shape):
            raise _checks.wrong(self, "state", "what state() gave", shape)
        if not shape:
            self._seen = None
            return self
        if len(shape) not in (2, 3) or (len(shape) == 3 and shape[2] not in (1, 3)):
            raise _checks.wrong(self, "state", "of frames of shape (height, width) or (height, width, 3)", shape)
        # validate before memory is allocated: the state holds the colours and weights of every pixel
        channels = 1 if len(shape) == 2 else shape[2]
        tiles = -(-shape[0] * shape[1] // TILE)
        slots: Any = state.get("slots")
        wanted = tiles * TILE * (channels + 4) * self.budget
        if not isinstance(slots, np.ndarray) or slots.shape != (wanted,):
            raise _checks.wrong(self, "state", f"{wanted} bytes of slots for frames of shape {shape}", np.shape(slots))
        bank = self._made((*shape[:2], channels))
        bank.restore({name: value for name, value in state.items() if name != "shape"})
        self._seen = bank, tuple(shape)
        return self

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """A subtractor that `save` wrote: it goes on as if it had never stopped."""
        from gossamer import store

        found = store.load(path)
        if not isinstance(found, cls):
            raise _checks.wrong(cls.__name__, "path", f"a file with a {cls.__name__}", type(found).__name__)
        return found

    def __reduce__(self) -> Any:
        return type(self).from_bytes, (self.to_bytes(),)

    def _learned(self) -> dict[str, Any]:
        return self.state()

    def _relearn(self, learned: dict[str, Any]) -> None:
        self.restore(learned)
