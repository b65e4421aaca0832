"""How sure, and has the world changed: every figure of docs/certainty.md, written into its tables.

python benchmarks/certainty.py [--rows 12000] [--streams 2000]
    [--only proba,coverage,alarms,delay,detectors,novelty,video,cost]

Needs GOSSAMER_DATA for the works that are not made here, and river for the other drift detectors.
"""

from __future__ import annotations

import argparse
import csv
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score

import gossamer
import gossamer.video
from gossamer.cli import main as run_command
from gossamer.drift import DriftAlarm
from gossamer.evaluate.metrics import Reliability
from gossamer.synthetic import rotating_xor

PAGE = Path(__file__).parents[1] / "docs" / "certainty.md"
COVERAGES = (0.8, 0.9, 0.95)


def works(rows: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Eight classification works: rows and labels."""
    made = {}
    names = ("ijcnn1", "a9a", "elec2", "sea", "spambase", "usps")
    for name in names:
        data = getattr(datasets, name)()
        data = (data if data.in_time else data.shuffled(0)).first(rows)
        X = data.X if data.X.shape[1] > 200 else np.clip(gossamer.OnlineScaler().learn_transform(data.X), -10, 10)
        made[name] = X, data.y
    digits = datasets.mnist().shuffled(0).first(rows)
    made["MNIST 0-4 / 5-9"] = digits.X, datasets.two_halves(digits).y
    made["rotating XOR"] = rotating_xor(rows, seed=0, turns=rows / 5000)
    return made


class Scored(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose decision function is a column of its rows."""

    def __init__(self, labels: Any = None) -> None:
        self.labels = labels
        self.classes_ = np.asarray([] if labels is None else labels)

    def fit(self, X: Any, y: Any) -> Scored:
        """Nothing to learn."""
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The class of the best score."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores."""
        return X[:, 0] if X.shape[1] == 1 else X


def recalibrated(scores: np.ndarray, y: np.ndarray, classes: np.ndarray, every: int = 1000) -> np.ndarray:
    """The probabilities of scikit-learn's CalibratedClassifierCV (its default, the sigmoid) over
    the same prequential scores, refitted on all rows so far every 1,000 rows; before, the share of each class."""
    columns = (
        scores[:, None]
        if scores.ndim == 1
        else np.where(np.isfinite(scores), scores, scores[np.isfinite(scores)].min())
    )
    found = np.full((len(y), len(classes)), 1.0 / len(classes))
    for start in range(every, len(y), every):
        known = np.isin(classes, y[:start])
        if not known.all():
            continue
        model = CalibratedClassifierCV(FrozenEstimator(Scored(classes))).fit(columns[:start], y[:start])
        found[start : start + every] = model.predict_proba(columns[start : start + every])
    return found


def measured(p: np.ndarray, codes: np.ndarray) -> tuple[float, float]:
    """Log loss, probabilities clipped to [1e-4, 1], and calibration error."""
    bins = Reliability()
    best = p.argmax(axis=1) if p.shape[1] > 2 else np.ones(len(p), dtype=int)
    rows = np.arange(len(p))
    bins.count(p[rows, best], best == codes)
    return float(-np.log(np.clip(p[rows, codes], 1e-4, 1)).mean()), bins.error()


def proba(options: argparse.Namespace) -> list[str]:
    """Log loss and calibration error against refitted calibration of the same scores."""
    lines = [
        "| work | model | log loss | CalibratedClassifierCV | calibration error | CalibratedClassifierCV |",
        "|---|---|---|---|---|---|",
    ]
    better = largest = 0.0
    for name, (X, y) in works(options.rows).items():
        for title, make in (
            ("SILK, hinge", gossamer.SILKClassifier),
            ("Newton, squared hinge", gossamer.NewtonClassifier),
        ):
            model, plain = make(budget=256), make(budget=256)
            p, scores = model.predict_learn(X, y, method="proba"), plain.predict_learn(X, y)
            codes, part = np.searchsorted(model.classes_, y), slice(1000, None)
            mine, theirs = (measured(q[part], codes[part]) for q in (p, recalibrated(scores, y, model.classes_)))
            better += mine[0] < theirs[0]
            largest = max(largest, mine[1])
            pairs = zip(mine, theirs, strict=True)
            cells = [f"**{one:.4f}**" if one == min(pair) else f"{one:.4f}" for pair in pairs for one in pair]
            lines.append(f"| {name} | {title} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return [*lines, "", f"Lower log loss in {better:.0f} of {len(lines) - 2}; largest calibration error {largest:.4f} "
            "(must: lower in all, at most .02). Rows from 1,001 on, when the other is fitted first."]  # fmt: skip


def streams(rows: int) -> dict[str, tuple[np.ndarray, np.ndarray, bool]]:
    """Six regression streams: rows, targets, and whether they are without jumps."""
    rng = np.random.default_rng(0)
    abalone, glass, elec = datasets.abalone().shuffled(0), datasets.mackey_glass().shuffled(0), datasets.elec2()
    X = rng.uniform(-2, 2, size=(rows, 2))
    drift = np.sin(3 * X[:, 0] + np.linspace(0, 6, rows)) + 0.2 * rng.normal(size=rows)
    growing = np.sin(3 * X[:, 0]) + 0.05 * np.exp(np.linspace(0, 4, rows)) * rng.normal(size=rows)
    jumps = 10.0 * (np.arange(rows) // 1000 % 2) * np.sign(rng.normal(size=rows)) + rng.normal(size=rows)
    demand = elec.X[:rows, 2]
    lagged = np.column_stack([np.roll(demand, lag) for lag in (1, 2, 3)])[3:]
    return {"abalone": (abalone.X, abalone.y, True), "Mackey-Glass": (glass.X, glass.y, True),
            "elec2, demand": (lagged, demand[3:], True), "drift": (X, drift, True),
            "growing noise": (X, growing, True), "jumps, adversarial": (X, jumps, False)}  # fmt: skip


def coverage(options: argparse.Namespace) -> list[str]:
    """Coverage over the whole and in the worst window of 500 rows, and the mean width."""
    lines = [
        "| stream | model | coverage at .8, .9, .95 | farthest, windows of 500 | mean width at .9 (infinite) |",
        "|---|---|---|---|---|",
    ]
    for name, (X, y, _) in streams(options.rows).items():
        for title, make in (("SILK", gossamer.SILKRegressor), ("Newton", gossamer.NewtonRegressor)):
            model = gossamer.pipeline(gossamer.OnlineScaler(), make(budget=128))
            ends = model.predict_learn(X, y, method="interval", coverage=list(COVERAGES))
            inside = (ends[:, :, 0] <= y[:, None]) & (y[:, None] <= ends[:, :, 1])
            windows = inside[: len(y) // 500 * 500].reshape(-1, 500, 3).mean(axis=1)
            far = np.abs(windows - COVERAGES).max(axis=0)
            width = ends[:, 1, 1] - ends[:, 1, 0]
            finite = np.isfinite(width)
            lines.append(f"| {name} | {title} | {', '.join(f'**{c:.3f}**' for c in inside.mean(axis=0))} | "
                         f"{', '.join(f'{c:.3f}' for c in far)} | {width[finite].mean():.3g} "
                         f"({(~finite).mean():.2%}) |")  # fmt: skip
            print(lines[-1], flush=True)
    return lines


def alarms(options: argparse.Namespace) -> list[str]:
    """The share of streams that stand still with a false alarm."""
    lines = ["| level | streams of 10,000 rows | with a false alarm | 95 % interval |", "|---|---|---|---|"]
    rng, n = np.random.default_rng(0), options.streams
    wealth = []
    for seed in range(n):
        draw = (rng.normal, rng.standard_cauchy, lambda size: rng.integers(0, 2, size).astype(float))[seed % 3]
        alarm = DriftAlarm(1e-12, seed=seed)
        p, capital = np.empty((2, 10_000))
        alarm._martingale.update(draw(size=10_000), seed, 10_000, p, capital, np.inf)
        wealth.append(capital.max())
    for level in (0.01, 0.05, 0.1):
        share = float(np.mean(np.array(wealth) >= 1 / level))
        spread = 1.96 * np.sqrt(max(share * (1 - share), 1 / n) / n)
        lines.append(f"| {level} | {n:,} | **{share:.4f}** | {max(0.0, share - spread):.4f} to {share + spread:.4f} |")
        print(lines[-1], flush=True)
    return lines


def changes() -> dict[str, Callable[[np.random.Generator, int, float], np.ndarray]]:
    """Four kinds of change after a normal start, with a size."""
    return {
        "mean": lambda rng, n, size: rng.normal(size, 1, n), "spread": lambda rng, n, size: rng.normal(0, 1 + size, n),
        "slow": lambda rng, n, size: rng.normal(size * np.minimum(1, np.arange(n) / 500), 1),
        "outliers": lambda rng, n, size: rng.normal(size=n) + 5 * (rng.random(n) < size / 5),
    }  # fmt: skip


def detectors() -> dict[str, tuple[Callable[[float], Any], tuple[float, ...]]]:
    """Detectors by name: made for a setting, and settings from the most to the least careful."""
    from river.drift import ADWIN, KSWIN, PageHinkley

    return {
        "DriftAlarm": (lambda every: DriftAlarm(every=int(every)), (1e6, 3e5, 1e5, 3e4, 1e4, 3e3)),
        "ADWIN": (lambda delta: ADWIN(delta=delta), (1e-8, 1e-6, 1e-4, 2e-3, 2e-2, 0.1)),
        "KSWIN": (lambda alpha: KSWIN(alpha=alpha, seed=0), (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3)),
        "Page-Hinkley": (lambda limit: PageHinkley(threshold=limit, mode="both"), (400, 200, 100, 50, 30, 20)),
    }  # fmt: skip


def first_alarm(detector: Any, scores: np.ndarray) -> int:
    """The number of rows until the first alarm; one more than there are if there is none."""
    if isinstance(detector, DriftAlarm):
        found = detector.update(scores)
        return found[0].row if found else len(scores) + 1
    for t, score in enumerate(scores.tolist(), start=1):
        detector.update(score)
        if detector.drift_detected:
            return t
    return len(scores) + 1


def is_careful(make: Callable[[float], Any], setting: float, still: list[np.ndarray]) -> bool:
    """Whether a detector raises an alarm in at most 5 % of the streams that stand still."""
    alarms = 0
    for scores in still:
        alarms += first_alarm(make(setting), scores) <= len(scores)
        if alarms > 0.05 * len(still):
            return False
    return True


def delay(options: argparse.Namespace) -> list[str]:
    """The median delay after a change, each detector with its most eager setting that raises at most 5 % false alarms
    in 2,000 rows that stand still."""
    still = [np.random.default_rng([seed, 1]).normal(size=2000) for seed in range(40)]
    chosen = {}
    for name, (make, settings) in detectors().items():
        chosen[name] = (make, next((s for s in settings[::-1] if is_careful(make, s, still)), settings[0]))
    lines = [
        f"| change | size | {' | '.join(f'{name} ({s:g})' for name, (_, s) in chosen.items())} |",
        "|---|---|" + "---|" * len(chosen),
    ]
    best = 0
    for kind, make in changes().items():
        for size in (0.5, 1.0, 2.0):
            medians = {}
            for name, (detector, setting) in chosen.items():
                delays = []
                for seed in range(11):
                    rng = np.random.default_rng([seed, 2])
                    scores = np.concatenate([rng.normal(size=1000), make(rng, 2000, size)])
                    delays.append(max(0, first_alarm(detector(setting), scores) - 1000))
                medians[name] = float(np.median(delays))
            own = medians["DriftAlarm"]
            best += own <= min(value for name, value in medians.items() if name != "DriftAlarm")
            lines.append(
                f"| {kind} | {size} | "
                + " | ".join(f"{value:.0f}" if value < 2001 else "none" for value in medians.values())
                + " |"
            )
            print(lines[-1], flush=True)
    return [*lines, "", f"DriftAlarm is not behind the best of the others in {best} of 12 (must 6, aim 10)."]


def normal_series(rows: int) -> dict[str, np.ndarray]:
    """Ten series without anomalies, of all kinds of change."""
    rng, t = np.random.default_rng(0), np.arange(rows)
    noise, walk = rng.normal(size=(rows, 2)), 0.05 * np.cumsum(rng.normal(size=(rows, 1)), axis=0)
    return {
        "normal": rng.normal(size=(rows, 2)), "heavy tails": rng.standard_t(3, size=(rows, 2)),
        "drift": noise + np.column_stack([t / 1500, np.sin(t / 500)]),
        "season": np.column_stack([np.sin(t / 20), np.cos(t / 20)]) + 0.1 * noise,
        "growing": noise * np.exp(t / rows)[:, None], "random walk": walk,
        "elec2": datasets.elec2().X[:rows], "abalone": datasets.abalone().shuffled(0).X,
        "Mackey-Glass": datasets.mackey_glass().X[:rows], "ijcnn1": datasets.ijcnn1().shuffled(0).first(rows).X,
    }  # fmt: skip


def shares(options: argparse.Namespace) -> list[str]:
    """The share of alarms on normal rows, by p-values below .01 and .05: of all rows, and of those from row 501 on."""
    lines = ["| series | SILKDetector: .01 | .05 | NORMADetector: .01 | .05 |", "|---|---|---|---|---|"]
    farthest, later = 1.0, 1.0
    for name, X in normal_series(6000).items():
        row = []
        for make in (gossamer.SILKDetector, gossamer.NORMADetector):
            p = gossamer.pipeline(gossamer.OnlineScaler(), make()).predict_learn(X, method="pvalue")
            for asked in (0.01, 0.05):
                found, after = (max(float((part < asked).mean()), 1e-9) for part in (p, p[500:]))
                farthest, later = (
                    max(old, share / asked, asked / share) for old, share in ((farthest, found), (later, after))
                )
                row.append(f"**{found:.4f}** ({after:.4f})")
        lines.append(f"| {name} | {' | '.join(row)} |")
        print(lines[-1], flush=True)
    told = f"a factor of {farthest:.2f} (must 1.5, aim 1.2); from row 501 on, in brackets, {later:.2f}."
    return [*lines, "", f"The farthest from asked is {told}"]


def novelty(options: argparse.Namespace) -> list[str]:
    """SKAB and NAB by the command line, without settings: the area under the curve of each series, and its mean."""
    lines = ["| set | series | area under the curve | alarms on normal rows |", "|---|---|---|---|"]
    for title, sets in (("SKAB", datasets.skab()), ("NAB, up to 5,000 rows", datasets.nab())):
        areas, alarmed = [], []
        for data in sets:
            odd = data.y > 0
            if not odd.any() or odd.all() or len(odd) > 5000:
                continue
            with tempfile.TemporaryDirectory() as folder:
                rows, out = Path(folder, "rows.csv"), Path(folder, "out.csv")
                names = ",".join(f"x{i}" for i in range(data.X.shape[1]))
                np.savetxt(rows, data.X, delimiter=",", header=names, comments="", fmt="%.17g")
                assert run_command(["run", str(rows), "--task", "novelty", "--out", str(out), "--quiet"]) in (0, None)
                with open(out) as file:
                    found = list(csv.DictReader(file))
            areas.append(roc_auc_score(odd, [-float(row["score"]) for row in found]))
            alarmed.append(np.mean([row["alarm"] in ("1", "True", "true") for row in found], where=~odd))
        lines.append(f"| {title} | {len(areas)} | **{np.mean(areas):.3f}** | {np.mean(alarmed):.3f} |")
        print(lines[-1], flush=True)
    return lines


def video(options: argparse.Namespace) -> list[str]:
    """Alarms of a background subtractor on clips with ground truth: the share on background, and what is found."""
    from clips import clips
    from video import judge

    lines = ["| clip | asked | alarms on background | foreground found |", "|---|---|---|---|"]
    for clip in clips():
        if clip.name not in ("highway", "highway, cold start", "traffic", "traffic, cold start"):
            continue
        for asked in (0.01, 0.05, None):
            tally, _ = judge(clip, gossamer.video.BackgroundSubtractor(alarms=asked, threads=1).apply)
            lines.append(f"| {clip.name} | {asked or 'threshold'} | {np.mean(tally.shares):.4f} | {tally.recall:.3f} |")
            print(lines[-1], flush=True)
    return lines


def cost(options: argparse.Namespace) -> list[str]:
    """What the certainty costs on top of a model, per row of a batch of 20,000 rows with 10 features."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    numbers = X[:, 0] + 0.3 * rng.normal(size=len(X))
    labels, many = (numbers > 0).astype(float), np.digitize(numbers, np.linspace(-1.6, 1.6, 9))
    lines = ["| model | microseconds a row | without certainty | on top, medians of 25 pairs |", "|---|---|---|---|"]
    for name, y in (
        ("SILKClassifier()", labels), ("SILKClassifier(budget=100)", labels), ("SILKClassifier(budget=256)", labels),
        ("NORMAClassifier()", labels), ("SILKClassifier(), 10 classes", many), ("SILKRegressor()", numbers),
        ("SILKRegressor(budget=100)", numbers), ("NewtonRegressor(budget=50)", numbers), ("SILKDetector()", None),
    ):  # fmt: skip
        made, _, kind = name.partition(", ")
        pairs = np.array([[_batch(made, X, y, off) for off in (False, True)] for _ in range(25)])
        off, top = np.median(pairs[:, 1]), np.median(pairs[:, 0] - pairs[:, 1])  # pairs, as the machine has other work
        share = np.median(pairs[:, 0] / pairs[:, 1]) - 1
        lines.append(
            f"| `{made}`{', ' + kind if kind else ''} | {off + top:.2f} | {off:.2f} | {top:.3f} ({share:.0%}) |"
        )
        print(lines[-1], flush=True)
    return lines


def _batch(made: str, X: np.ndarray, y: np.ndarray | None, off: bool) -> float:
    name, _, budget = made.rstrip(")").partition("(")
    model = getattr(gossamer, name)(**({"budget": int(budget.partition("=")[2])} if budget else {}))
    if off:
        model._rehearses = True  # as in later passes of fit
    return 1e6 * _timed(lambda: model.partial_fit(X, y)) / len(X)


def _timed(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def write(name: str, lines: list[str]) -> None:
    """Put a table into its place on the page."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    table = f"{begin}\n" + "\n".join(lines) + f"\n{end}"
    found = re.sub(re.escape(begin) + ".*?" + re.escape(end), lambda _: table, PAGE.read_text(), flags=re.DOTALL)
    PAGE.write_text(found)


def main() -> None:
    """Run the parts and write their tables into the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--streams", type=int, default=2000)
    parts = {"proba": proba, "coverage": coverage, "alarms": alarms, "delay": delay, "detectors": shares,
             "novelty": novelty, "video": video, "cost": cost}  # fmt: skip
    parser.add_argument("--only", default=",".join(parts))
    options = parser.parse_args()
    for name in options.only.split(","):
        write(name, parts[name](options))


if __name__ == "__main__":
    main()
