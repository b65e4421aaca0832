"""The background subtractor against OpenCV's MOG2 and KNN, in quality and speed: ``make bench-video``.

Every method is followed by the same 5x5 median filter; MOG2 and KNN run at their defaults and count at the better
reading of their mask, with their shadow pixels as foreground or as background; ours is read without its shadow pixels.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable

import cv2
import numpy as np
from clips import Clip, Tally, clips, filtered
from harness import RESULTS, machine, progress
from scipy import integrate

from gossamer.video import PLAIN, BackgroundSubtractor

OPPONENTS = {"MOG2": cv2.createBackgroundSubtractorMOG2, "KNN": cv2.createBackgroundSubtractorKNN}
BINS = 4096


def read(mask: np.ndarray, shadows: bool) -> np.ndarray:
    """The mask after the median filter, with or without its shadow pixels."""
    return filtered(np.where(mask > 0 if shadows else mask == 255, 255, 0).astype(np.uint8))


def judge(clip: Clip, apply: Callable[[np.ndarray], np.ndarray]) -> tuple[Tally, Tally]:
    """The tallies with shadows as background, and as foreground."""
    without, with_shadows = Tally(), Tally()
    for frame, truth in clip:
        mask = apply(np.ascontiguousarray(frame))
        if truth is not None:
            without.add(read(mask, False), truth)
            with_shadows.add(read(mask, True), truth)
    return without, with_shadows


def better(clip: Clip, apply: Callable[[np.ndarray], np.ndarray]) -> Tally:
    return max(judge(clip, apply), key=lambda tally: tally.f)


def on_our_frames(opponent: cv2.BackgroundSubtractor, threads: int) -> Callable[[np.ndarray], np.ndarray]:
    """An opponent that sees the frames as we do, their light compensated."""
    light = BackgroundSubtractor(threads=threads)

    def apply(frame: np.ndarray) -> np.ndarray:
        compensated = light.compensate(frame)
        light.apply(frame)
        return opponent.apply(compensated)

    return apply


def quality(clip: Clip, threads: int) -> dict[str, object]:
    """F of ours and of the opponents; where the light changes also theirs on our compensated frames."""
    ours, marked = judge(clip, BackgroundSubtractor(threads=threads).apply)
    row: dict[str, object] = {
        "clip": clip.name, "F": ours.f, "precision": ours.precision, "recall": ours.recall, "F with shadows": marked.f,
        **{name: better(clip, make().apply) for name, make in OPPONENTS.items()},
    }  # fmt: skip
    if clip.switch is not None:
        for name, make in OPPONENTS.items():
            row[f"{name}, compensated"] = better(clip, on_our_frames(make(), threads)).f
        row["settled"] = ours.settled
        row |= {f"{name}, settled": row[name].settled for name in OPPONENTS}
    return {name: value.f if isinstance(value, Tally) else value for name, value in row.items()}


def roc(clip: Clip, subtractor: BackgroundSubtractor, step: int = 5) -> tuple[float, np.ndarray, np.ndarray]:
    """The area under the ROC curve of the raw scores at every ``step``-th scored frame, and the curve."""
    old, new = np.zeros(BINS), np.zeros(BINS)
    for t, (frame, truth) in enumerate(clip):
        frame = np.ascontiguousarray(frame)
        if truth is not None and (t % step == 0 or len(clip.truth) < step):
            level = np.clip(subtractor.score(frame) * (BINS / 4) + BINS / 2, 0, BINS - 1).astype(int)
            new += np.bincount(level[truth == 255], minlength=BINS)
            old += np.bincount(level[(truth == 0) | (truth == 50)], minlength=BINS)
        subtractor.apply(frame)
    found = np.concatenate([[0.0], np.cumsum(new[::-1]) / new.sum()])
    false = np.concatenate([[0.0], np.cumsum(old[::-1]) / old.sum()])
    return float(integrate.trapezoid(found, false)), false, found


def papers(clip: Clip, threads: int) -> tuple[dict[str, object], dict[str, tuple[np.ndarray, np.ndarray]]]:
    """SILK and truncated NORMA as the papers have them: the same step, decay and kernel, margin 1, budget 20."""
    common = {"width": 10.0, "threads": threads, **PLAIN}
    row: dict[str, object] = {"clip": clip.name}
    curves = {}
    for name, options in {
        "SILK": {"rule": "silk", "C": 0.25, "reg": 0.01},
        "NORMA": {"rule": "norma", "rate": 0.25, "reg": 0.04},
    }.items():
        row[name], false, found = roc(clip, BackgroundSubtractor(**options, **common))
        curves[name] = false, found
    row["default"], false, found = roc(clip, BackgroundSubtractor(threads=threads))
    curves["SILK, all options"] = false, found
    return row, curves


def speed(size: tuple[int, int], threads: int, source: np.ndarray) -> dict[str, object]:
    """Milliseconds a frame, the methods taking turns, after as many frames to settle."""
    cv2.setNumThreads(threads)
    frames = [cv2.resize(frame, size) for frame in source]
    methods = {"ours": BackgroundSubtractor(threads=threads), **{name: make() for name, make in OPPONENTS.items()}}
    times: dict[str, list[float]] = {name: [] for name in methods}
    for repeat in range(2):
        for frame in frames:
            for name, method in methods.items():
                start = time.perf_counter()
                method.apply(frame)
                if repeat:
                    times[name].append(time.perf_counter() - start)
    cv2.setNumThreads(1)
    middle = {name: 1e3 * float(np.median(values)) for name, values in times.items()}
    return {"size": f"{size[0]}x{size[1]}", "threads": threads, **middle,
            "speed / MOG2": middle["MOG2"] / middle["ours"], "frames/s": 1e3 / middle["ours"]}  # fmt: skip


def memory(size: tuple[int, int]) -> float:
    """Bytes a pixel of what is kept, after a frame."""
    subtractor = BackgroundSubtractor(threads=1)
    subtractor.apply(np.zeros((size[1], size[0], 3), np.uint8))
    state = sum(value.nbytes for value in subtractor.state().values() if isinstance(value, np.ndarray))
    # beside the state: the features of a frame, the strongest points, the evidence and its sums over columns
    return state / (size[0] * size[1]) + 3 + 3 + 1 + 2


def table(rows: list[dict[str, object]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    show = lambda value: f"{value:.3f}" if isinstance(value, float) else str(value)  # noqa: E731
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join([*lines, *("| " + " | ".join(show(row.get(name, "")) for name in names) + " |" for row in rows)])


def picture(curves: dict[str, tuple[np.ndarray, np.ndarray]], title: str, path: str) -> None:
    """The paper's Fig. 2: ROC curves, the false alarms on a logarithmic axis."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
    for name, (false, found) in curves.items():
        axes.semilogx(np.maximum(false, 1e-5), found, label=name)
    axes.set(xlabel="false alarms", ylabel="foreground found", xlim=(1e-4, 1), ylim=(0, 1), title=title)
    axes.legend(frameon=False)
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="without the slowed clip and the ROC curves")
    parser.add_argument("--only", choices=["quality", "speed"], help="one table alone")
    parser.add_argument("--roc", help="write the ROC curves of the light switch to this picture")
    options = parser.parse_args()
    threads = os.cpu_count() or 1
    cv2.setNumThreads(1)
    qualities, papers_rows, speeds, source = [], [], [], None
    for clip in clips():
        source = clip.frames[500:560] if source is None else source
        if options.only == "speed":
            break
        if options.quick and clip.repeat > 1:
            continue
        progress(clip.name)
        qualities.append(quality(clip, threads))
        print(table(qualities[-1:]), flush=True)
        if not options.quick and clip.repeat == 1:
            row, curves = papers(clip, threads)
            papers_rows.append(row)
            if options.roc and clip.name.endswith("light switch"):
                picture(curves, clip.name, options.roc)
    if source is None:
        source = np.random.default_rng(0).integers(0, 256, (60, 240, 320, 3)).astype(np.uint8)
    if options.only != "quality":
        for size in ((320, 240), (640, 480), (1920, 1080)):
            for count in (1, 2):
                progress(f"{size[0]}x{size[1]}, {count} threads")
                speeds.append(speed(size, count, source[: 60 if size[0] < 1000 else 20]))
    note = f"{machine()}, OpenCV {cv2.__version__}; {memory((320, 240)):.0f} bytes a pixel."
    parts = {"F-measure": qualities, "area under the ROC curve of the raw scores": papers_rows,
             "milliseconds a frame": speeds}  # fmt: skip
    text = "\n\n".join(f"{title}:\n\n{table(rows)}" for title, rows in parts.items() if rows) + f"\n\n{note}"
    print(text)
    if not options.only and not options.quick:
        (RESULTS / "video.json").write_text(json.dumps({"note": note, **parts}, indent=1) + "\n")
        (RESULTS / "video.md").write_text(text + "\n")


if __name__ == "__main__":
    main()
