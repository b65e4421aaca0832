"""How wide intervals are beside those of MAPIE and river, in units of the deviation of the model, and with steps that
need no size: three tables of docs/certainty.md.

python benchmarks/certainty_widths.py [--rows 12000] [--only widths,scaled,steps]

Needs GOSSAMER_DATA, MAPIE and river.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from certainty import streams, write

import gossamer
import gossamer.river
from gossamer import _core
from gossamer.certainty.sketch import Sketch

COVERAGE, START, EVERY = 0.9, 1000, 1000


def make() -> Any:
    """The model that all intervals are around."""
    return gossamer.pipeline(gossamer.OnlineScaler(), gossamer.NewtonRegressor(budget=128))


def measure(ends: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The coverage of intervals from row 1,001 on, and their mean width if all are stretched by one factor such that
    the coverage is the one asked for. Infinite ones cover, and are left out of the mean."""
    ends, y = ends[START:], y[START:]
    finite = np.isfinite(ends).all(axis=1)
    half, away = np.diff(ends[finite], axis=1)[:, 0] / 2, np.abs(y[finite] - ends[finite].mean(axis=1))
    wanted = (COVERAGE * len(y) - (~finite).sum()) / finite.sum()
    factor = np.quantile(away / np.maximum(half, 1e-300), wanted)
    return float(((ends[:, 0] <= y) & (y <= ends[:, 1])).mean()), float(2 * factor * half.mean())


def of_ours(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`predict_interval` before each row is learned."""
    return np.asarray(make().predict_learn(X, y, method="interval", coverage=COVERAGE))


def of_mapie(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """MAPIE's split conformal intervals, made anew every 1,000 rows: the model learns all rows but the last 500, which
    are its calibration set."""
    from mapie.regression import SplitConformalRegressor

    ends = np.full((len(y), 2), np.nan)
    for start in range(START, len(y), EVERY):
        model = make().partial_fit(X[: start - 500], y[: start - 500])
        split = SplitConformalRegressor(model, confidence_level=COVERAGE, prefit=True)
        split.conformalize(X[start - 500 : start], y[start - 500 : start])
        ends[start : start + EVERY] = split.predict_interval(X[start : start + EVERY])[1][:, :, 0]
    return ends


def of_river(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """river's RegressionJackknife around the same model, row by row."""
    from river import conf, preprocessing

    scaled = preprocessing.StandardScaler() | gossamer.river.NewtonRegressor(budget=128)
    model = conf.RegressionJackknife(scaled, confidence_level=COVERAGE)
    ends = np.full((len(y), 2), np.nan)
    for t, row in enumerate(X.tolist()):
        x = dict(enumerate(row))
        found = model.predict_one(x, with_interval=True)
        ends[t] = found.lower, found.upper
        model.learn_one(x, float(y[t]))
    return ends


def widths(rows: int) -> list[str]:
    """All three on the same rows."""
    makers = {"Gossamer": of_ours, "MAPIE": of_mapie, "river": of_river}
    lines = [
        "| stream | " + " | ".join(f"{name}: coverage | width at .9" for name in makers) + " |",
        "|---|" + "---|" * 2 * len(makers),
    ]
    best = 0
    for name, (X, y, _) in streams(rows).items():
        found = [measure(maker(X, y), y) for maker in makers.values()]
        least = min(width for _, width in found)
        best += found[0][1] == least
        cells = [f"{share:.3f} | {f'**{w:.4g}**' if w == least else f'{w:.4g}'}" for share, w in found]
        lines.append(f"| {name} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    return [*lines, "", f"Narrowest in {best} of 6 (aim 5)."]


def follow(residuals: np.ndarray, deviations: np.ndarray, rare: np.ndarray) -> tuple[float, float]:
    """The mean width of intervals in units of deviations, and the coverage of the rows where the model knows least."""
    out = np.empty((len(residuals), 1))
    values = np.ascontiguousarray(residuals / deviations)
    _core.Certainty("regression").learn_real(values, None, [1 - COVERAGE], out)
    half = out[:, 0] * deviations
    return float(2 * half[np.isfinite(half)].mean()), float((np.abs(residuals) <= half)[rare].mean())


def scaled(rows: int) -> list[str]:
    """Distances as they are, and in units of the deviation that the model itself says."""
    lines = [
        "| stream | model | mean width | in units of the deviation | coverage where it is largest | in its units |",
        "|---|---|---|---|---|---|",
    ]
    for name, (X, y, _) in streams(rows).items():
        for title, model, block in (("Newton", make(), 1), ("Auto", gossamer.AutoRegressor(budget=32), 25)):
            mean, deviation = np.zeros(len(y)), np.ones(len(y))
            for start in range(0, len(y), block):
                part = slice(start, start + block)
                if start:
                    seen = model[0].transform(X[part]) if title == "Newton" else X[part]
                    last = model[-1] if title == "Newton" else model
                    mean[part], deviation[part] = last.predict(seen, return_std=True)
                model.partial_fit(X[part], y[part])
            deviation[:30] = np.median(deviation[30:200])  # of a few rows it means nothing
            rare = deviation >= np.quantile(deviation[100:], 0.95)
            rare[:100] = False
            plain = follow(y - mean, np.ones(len(y)), rare)
            own = follow(y - mean, np.maximum(deviation, 1e-12), rare)
            lines.append(f"| {name} | {title} | {plain[0]:.4g} | {own[0]:.4g} | {plain[1]:.2f} | {own[1]:.2f} |")
            print(lines[-1], flush=True)
    return lines


def adapt(residuals: np.ndarray, rates: np.ndarray) -> tuple[float, float, float, float]:
    """Dynamically tuned adaptive conformal inference (Gibbs and Candes 2024): an expert for each step size, weighted by
    the exponentials of their pinball losses with a fixed share, as for windows of 500 rows. One step size is the
    version of 2021. Returns the mean width, the coverage, the farthest coverage of 500 rows, and the infinite share."""
    missed, span, count = 1 - COVERAGE, 500, len(rates)
    spread = (1 - missed) ** 2 * missed**3 + missed**2 * (1 - missed) ** 3
    eta, share = np.sqrt(3 / span * (np.log(count * span) + 2) / spread), 1 / (2 * span)
    sketch, alphas, weights = Sketch(), np.full(count, missed), np.full(count, 1 / count)
    half, inside = np.full(len(residuals), np.inf), np.ones(len(residuals))
    for t, value in enumerate(np.abs(residuals).tolist()):
        if sketch.total > 0:
            alpha, rank = float(weights @ alphas), 1 - sketch.below(value)
            half[t], inside[t] = max(0.0, sketch.quantile(1 - alpha)), rank >= alpha
            losses = missed * (rank - alphas) - np.minimum(0, rank - alphas)
            weights = weights * np.exp(-eta * losses)
            weights = (1 - share) * weights / weights.sum() + share / count
            alphas = alphas + rates * (missed - (rank < alphas))
        sketch.add(value)
    windows = inside[: len(inside) // 500 * 500].reshape(-1, 500).mean(axis=1)
    finite = np.isfinite(half)
    far = float(np.abs(windows - COVERAGE).max())
    return float(2 * half[finite].mean()), float(inside.mean()), far, float((~finite).mean())


def steps(rows: int) -> list[str]:
    """One step size against several that are weighted."""
    lines = [
        "| stream | model | one step: width | coverage | farthest, 500 rows | infinite "
        "| weighted: width | coverage | farthest, 500 rows | infinite |",
        "|---|---|" + "---|" * 8,
    ]
    for name, (X, y, _) in streams(rows).items():
        for title, regressor in (("SILK", gossamer.SILKRegressor), ("Newton", gossamer.NewtonRegressor)):
            model = gossamer.pipeline(gossamer.OnlineScaler(), regressor(budget=128))
            residuals = y - model.predict_learn(X, y)
            cells = []
            for rates in (np.array([0.1 * (1 - COVERAGE)]), 0.001 * 2.0 ** np.arange(8)):
                width, share, far, infinite = adapt(residuals, rates)
                cells += [f"{width:.4g}", f"{share:.3f}", f"{far:.3f}", f"{infinite:.2%}"]
            lines.append(f"| {name} | {title} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--only", default="widths,scaled,steps")
    options = parser.parse_args()
    for part in options.only.split(","):
        write(part, {"widths": widths, "scaled": scaled, "steps": steps}[part](options.rows))
