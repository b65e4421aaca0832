"""Error against the size of the budget, one panel for each set: the picture of benchmarks/budgets.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from PIL import Image

STYLES = {
    "Project": ("#0072B2", "-", "o", 2.4),
    "Project, gradient steps": ("#0072B2", "--", "o", 1.4),
    "Merge": ("#56B4E9", "-", "s", 1.4),
    "Nystrom": ("#009E73", "-", "^", 1.4),
    "Fourier": ("#CC79A7", "-", "v", 1.4),
    "SILK (smallest)": ("#E69F00", "--", "d", 1.4),
    "NORMA (oldest)": ("#D55E00", "--", "x", 1.4),
    "scikit-learn Nystroem": ("#000000", ":", "^", 1.4),
    "scikit-learn RBFSampler": ("#777777", ":", "v", 1.4),
}


def draw(records: list[dict[str, Any]], path: Path) -> None:
    """One panel for each set; what fell apart is cut off at the top."""
    names = list(dict.fromkeys(record["set"] for record in records))
    columns = 4
    rows = -(-(len(names) + 1) // columns)
    figure, axes = plt.subplots(rows, columns, figsize=(4 * columns, 3.1 * rows), squeeze=False)
    panels = list(axes.flat)
    for axis, name in zip(panels, names, strict=False):
        values = []
        for method, (colour, line, mark, width) in STYLES.items():
            found = sorted((r for r in records if (r["set"], r["method"]) == (name, method)), key=lambda r: r["size"])
            if not found:
                continue
            errors = [100 * r["error"] for r in found]
            values += errors
            axis.errorbar(
                [r["size"] for r in found], errors, [100 * r["spread"] for r in found], color=colour, linestyle=line,
                marker=mark, markersize=4, linewidth=width, label=method,
            )  # fmt: skip
        low, high = min(values), sorted(values)[int(0.93 * (len(values) - 1))]
        axis.set(xscale="log", title=name, ylim=(low - 0.05 * (high - low), high + 0.1 * (high - low)))
        axis.set_xticks([50, 100, 200, 500, 2000], ["50", "100", "200", "500", "2000"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    for axis in panels[len(names) :]:
        axis.axis("off")
    handles, labels = panels[0].get_legend_handles_labels()
    panels[len(names)].legend(handles, labels, loc="center", frameon=False)
    for axis in axes[:, 0]:
        axis.set_ylabel("error, %")
    for axis in panels[max(0, len(names) - columns) : len(names)]:
        axis.set_xlabel("size of the budget")
    figure.suptitle("Error, each row predicted before it is learned, against the size of the budget")
    figure.tight_layout()
    figure.savefig(path, dpi=90)
    plt.close(figure)
    with Image.open(path) as image:  # 256 colours are enough, and a third of the size
        image.convert("RGB").quantize(256).save(path, optimize=True)
