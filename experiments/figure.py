"""What every figure shares: compute, write the data, draw from the data.

A script is ``Figure(__file__, compute, draw).main()``. ``compute(quick, progress)`` returns named arrays, which are
written to ``<name>.npz`` before anything is drawn; ``draw(data, quick)`` makes the picture from them alone, so that
``--draw`` draws again without computing.

    python experiments/norma/fig2.py            # data and picture beside the script
    python experiments/norma/fig2.py --quick    # a minute at most, small, into out/figures
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from PIL import Image

Item = TypeVar("Item")
Data = Mapping[str, np.ndarray]

#: One colour for each algorithm, the same in all figures (Okabe and Ito: told apart by colour-blind readers too).
COLOURS = {
    "ILK": "#0072B2",
    "SILK": "#56B4E9",
    "NORMA": "#D55E00",
    "truncated NORMA": "#E69F00",
    "ILK(0)": "#009E73",
    "NORMA(0)": "#CC79A7",
    "SVMD": "#009E73",
    "perceptron": "#000000",
    "ALMA": "#0072B2",
    "ALMA_0": "#56B4E9",
    "NORMA_0": "#E69F00",
}


class Progress:
    """A bar on the terminal, a line now and then elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, items: Iterable[Item], text: str = "") -> Iterator[Item]:
        total = len(items) if isinstance(items, Sized) else None
        start = shown = time.monotonic()
        for done, item in enumerate(items, 1):
            yield item
            now = time.monotonic()
            if now - shown < (0.2 if sys.stderr.isatty() else 10) and done != total:
                continue
            shown = now
            self._show(text, done, total, now - start)
        if sys.stderr.isatty():
            print(file=sys.stderr)

    def _show(self, text: str, done: int, total: int | None, seconds: float) -> None:
        count = f"{done}" if total is None else f"{done}/{total} {'#' * (20 * done // total):<20}"
        left = "" if total is None else f", {seconds * (total - done) / done:.0f} s left"
        line = f"{self.name} {text} {count} {seconds:.0f} s{left}"
        if sys.stderr.isatty():
            print(f"\r{line:<79}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)


def neat(axes: Axes) -> None:
    """A light grid behind the data, and no box around it."""
    axes.grid(color="#E4E4E4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def write_ends(axes: Axes, ends: Mapping[str, tuple[float, str]], lines: int = 1) -> None:
    """The names of curves at their right ends, {text: (height, colour)}, moved apart where they would overlap; last,
    when the limits of the axes stand."""
    room = 1.25 * lines * 9 / (72 * axes.get_figure().get_figheight() * axes.get_position().height)
    places: list[float] = []
    for text, (height, colour) in sorted(ends.items(), key=lambda end: end[1][0]):
        wanted = float(axes.transAxes.inverted().transform(axes.transData.transform((1, height)))[1])
        places.append(max(wanted, places[-1] + room) if places else wanted)
        axes.text(1.015, places[-1], text, transform=axes.transAxes, color=colour, fontsize=9, va="center")


@dataclass
class Figure:
    """One figure of a paper: where it lives, how its data is made, how it is drawn."""

    script: str
    compute: Callable[[bool, Progress], Data]
    draw: Callable[[Data, bool], Picture]
    suffix: str = ".png"
    dpi: int = 110

    def main(self, arguments: list[str] | None = None) -> None:
        """The command line of every figure."""
        parser = argparse.ArgumentParser(description=(sys.modules["__main__"].__doc__ or "").strip())
        parser.add_argument("--quick", action="store_true", help="a small version, a minute at most")
        parser.add_argument("--draw", action="store_true", help="draw again from the data written before")
        parser.add_argument("--out", type=Path, help="the folder for data and picture")
        options = parser.parse_args(arguments)
        self.make(options.quick, options.draw, options.out)

    def make(self, quick: bool = False, only_draw: bool = False, out: Path | None = None) -> Path:
        """Compute, write, draw; the path of the picture."""
        place = Path(self.script).resolve()
        if out is None:
            out = Path("out") / "figures" / place.parent.name if quick else place.parent
        out.mkdir(parents=True, exist_ok=True)
        data_path, picture_path = out / f"{place.stem}.npz", out / f"{place.stem}{self.suffix}"
        start = time.monotonic()
        if not only_draw:
            data: dict[str, Any] = {**self.compute(quick, Progress(f"{place.parent.name}/{place.stem}"))}
            np.savez_compressed(data_path, **data)
        with np.load(data_path) as stored:
            picture = self.draw({name: stored[name] for name in stored.files}, quick)
        picture.savefig(picture_path, dpi=self.dpi, bbox_inches="tight")
        if self.suffix == ".png":  # 256 colours are enough, and a third of the size
            with Image.open(picture_path) as image:
                image.convert("RGB").quantize(256).save(picture_path, optimize=True)
        plt.close(picture)
        print(f"{picture_path} ({time.monotonic() - start:.0f} s)")
        return picture_path
