"""What the estimators without settings reach: ``make bench-auto``.

Errors come from the results of the contest (``contest.py``, where Auto has no settings and sees no row before; there
everybody else is tuned), the rest is measured here: times, log loss, switches, memory. Every part is kept in
``results/auto.json``; the tables go to ``docs/auto.md``.

    python benchmarks/auto.py                          # everything
    python benchmarks/auto.py --part times switch      # some parts, the others as they are stored
    python benchmarks/auto.py --part                   # only the tables, and the figures of the contest
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import auto_logloss
import auto_switch
import numpy as np
from harness import DOCS, RESULTS, Row, centres_stream, machine, progress, publish, table
from standings import AUTO, Contest, Result, Subject, number

from gossamer import AutoClassifier, AutoRegressor
from gossamer.mixture.costs import expert_bytes

ONLINE = ("scikit-learn", "river", "Vowpal Wabbit")
BOOSTED = ("HistGradientBoosting, retrained on 4,000 rows", "HistGradientBoosting, retrained on all rows")
SETTLED = 2000  # rows after which the pace counts
SIZES = {"Auto": "256", "Auto, 100 points": "100"}


# --------------------------------------------------------------------------------------------- from the contest


def _named(contest: Contest, subject: Subject, name: str) -> Result | None:
    return next((one for one in contest.of(subject) if one.entry == name), None)


def _same_size(contest: Contest, subject: Subject, name: str) -> Result | None:
    """The best tuned learner of Gossamer with as many points."""
    there = [
        one for one in contest.of(subject, "Gossamer")
        if not one.untuned and f"({SIZES[name]})" in one.entry and "Nystrom" not in one.entry
    ]  # fmt: skip
    return min(there, key=lambda one: one.score, default=None)


def _count(about: str, held: dict[str, bool], must: int, aim: int, of: int) -> Row:
    good, bad = sum(held.values()), [name for name, held_ in held.items() if not held_]
    missed = f" (not: {', '.join(bad)})" if bad else ""
    reached = good >= must
    return Row(about, f"{good} of {len(held)}{missed}", f"{must} of {of}", f"{aim} of {of}", float(good), reached)


def contest_rows(contest: Contest) -> list[Row]:
    """The figures that follow from the contest."""
    online, svm, boosted, pace = {}, {}, {}, []
    sizes: dict[str, dict[str, float]] = {name: {} for name in SIZES}
    for subject in contest.subjects:
        auto = _named(contest, subject, AUTO)
        if auto is None:
            continue
        best = contest.ahead(subject, ONLINE, True)
        online[subject.name] = best is None or auto.score <= best.score
        machine_ = _named(contest, subject, "SVM, retrained")
        if machine_ is not None:
            svm[subject.name] = auto.score <= machine_.score
        trees = [one for name in BOOSTED if (one := _named(contest, subject, name)) is not None]
        if len(trees) == len(BOOSTED):
            boosted[subject.name] = auto.score < min(one.score for one in trees)
            pace.append((auto.rows_per_second / max(one.rows_per_second for one in trees), subject.name))
        for name in SIZES:
            ours, tuned = _named(contest, subject, name), _same_size(contest, subject, name)
            if ours is not None and tuned is not None:
                sizes[name][subject.name] = ours.score / tuned.score - 1
    rows = [
        _count("works where Auto is not above the best tuned online opponent", online, 9, 10, 10),
        _count("works where Auto is not above the SVM retrained (it has no quantiles)", svm, 7, 10, 10),
        _count("works where Auto is below gradient boosting retrained, both ways", boosted, 9, 10, 10),
    ]
    if pace:
        low, middle = min(pace), float(np.median([one for one, _ in pace]))
        text = f"{middle:.1f}x in the middle, {low[0]:.1f}x on {low[1]}"
        rows.append(Row("pace beside the faster of the two", text, "", "10x", low[0], True))
    for name, more in sizes.items():
        if not more:
            continue
        worst = sorted(more, key=lambda one: -more[one])
        over = [f"{one} {more[one]:+.1%}" for one in worst if more[one] > 0.03]
        text = f"{more[worst[0]]:+.1%} on {worst[0]}" + (f"; above 3 %: {', '.join(over)}" if over else "")
        about = f"error beside the best tuned single learner of {SIZES[name]} points, the worst work"
        rows.append(Row(about, text, "+3%", "below 0", max(more.values()), not over))
    return rows


def contest_table(contest: Contest) -> str:
    """A line for each piece of work."""
    heads = [
        "Auto", "best tuned online opponent", "SVM, retrained", "boosted, 4,000 rows", "boosted, all rows",
        "Gossamer tuned, 256 points", "Auto, 100 points", "Gossamer tuned, 100 points",
    ]  # fmt: skip
    lines = [f"| work | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for subject in contest.subjects:
        auto = _named(contest, subject, AUTO)
        if auto is None:
            continue
        best = contest.ahead(subject, ONLINE, True)
        small = _named(contest, subject, "Auto, 100 points")
        found = [
            auto, best, _named(contest, subject, "SVM, retrained"),
            *(_named(contest, subject, name) for name in BOOSTED), _same_size(contest, subject, "Auto"), small,
            _same_size(contest, subject, "Auto, 100 points"),
        ]  # fmt: skip
        lowest = min(one.score for one in found if one is not None)
        cells = []
        for one in found:
            score = "" if one is None else f"{one.score:.3f}" if one.score >= 1 else number(one.score)
            score = f"**{score}**" if one is not None and one.score == lowest else score
            named = one is not None and one.library != "batch" and not one.untuned
            cells.append(f"{score} ({one.title if one.library in ONLINE else one.entry})" if one and named else score)
        lines.append(f"| {subject.name}: {subject.metric} | {' | '.join(cells)} |")
    return "\n".join(lines)


# -------------------------------------------------------------------------------------------------- measured here


def _made(task: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """A table of 20 features: two classes around 24 centres that wander, or a sum of waves and products with noise."""
    X, y = centres_stream(rows, 20, 3)
    if task == "regression":
        noise = np.random.default_rng(4).normal(size=rows)
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + X[:, 3] / 2 + 0.3 * noise
    return X, y


def pass_over(task: str, rows: int, **options: Any) -> tuple[float, float, np.ndarray]:
    """The seconds of the first rows and of those after, and the predictions for all."""
    X, y = _made(task, rows)
    model: Any = (AutoRegressor if task == "regression" else AutoClassifier)(**options)
    guesses, seconds = [], [0.0, 0.0]
    for start in range(0, rows, 500):
        part = slice(start, start + 500)
        begin = time.process_time()
        guesses.append(model.predict_learn(X[part], y[part]))
        seconds[start >= SETTLED] += time.process_time() - begin
    return *seconds, np.concatenate(guesses)


def _error(task: str, y: np.ndarray, guess: np.ndarray) -> float:
    if task == "regression":
        return float(np.sqrt(np.mean((y - guess) ** 2)))
    return float(np.mean((guess >= 0) != (y > 0)))


def measure_times(rows: int = 15_000, repeats: int = 3) -> dict[str, Any]:
    """Rows per second after the first 2,000, the best of several passes in turns, for both tasks and sizes."""
    found: dict[str, Any] = {}
    for turn in range(repeats):
        for task in ("classification", "regression"):
            for budget in (256, 100):
                start, rest, guess = pass_over(task, rows, budget=budget)
                one = found.setdefault(f"{task}, {budget} points", {"pace": 0.0, "start": np.inf})
                one["pace"] = max(one["pace"], (rows - SETTLED) / rest)
                one["start"] = min(one["start"], start)
                one["error"] = _error(task, _made(task, rows)[1], guess)
                progress(f"times, turn {turn}: {task}, {budget} points: {(rows - SETTLED) / rest:,.0f} rows/s")
    return found


def measure_forest(rows: int = 15_000) -> dict[str, Any]:
    """river's adaptive random forest as it comes, on the rows of the times."""
    from river import forest

    found = {}
    for task in ("classification", "regression"):
        X, y = _made(task, rows)
        dicts = [dict(enumerate(x)) for x in X.tolist()]
        targets = y.tolist() if task == "regression" else (y > 0).tolist()
        model: Any = (forest.ARFRegressor if task == "regression" else forest.ARFClassifier)(seed=0)
        guesses, rest = [], 0.0
        for index, (x, target) in enumerate(zip(dicts, targets, strict=True)):
            begin = time.process_time()
            guess = model.predict_one(x)
            model.learn_one(x, target)
            rest += time.process_time() - begin if index >= SETTLED else 0.0
            guesses.append(guess or 0.0)
        shown = np.array(guesses, float) if task == "regression" else np.where(np.array(guesses, bool), 1.0, -1.0)
        found[task] = {"pace": (rows - SETTLED) / rest, "error": _error(task, y, shown)}
        progress(f"forest: {task}: {found[task]['pace']:,.0f} rows/s, {found[task]['error']:.4f}")
    return found


def _resident() -> float:
    """The memory that this process holds now, in MB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measure_memory(rows: int) -> dict[str, Any]:
    """The resident memory of a process along a stream that switches all the time: a small budget, many rows."""
    rng = np.random.default_rng(0)
    model, marks, seconds, points = AutoClassifier(budget=16), [], 0.0, 0
    block, places = 10_000, np.geomspace(20_000, rows, 6).astype(int) // 10_000
    for index in range(rows // block):
        X = rng.normal(size=(block, 4))
        y = np.where(X[:, index // 2 % 4] > 0, 1.0, -1.0)
        begin = time.process_time()
        model.predict_learn(X, y)
        seconds += time.process_time() - begin
        if index + 1 in places:
            experts = model.learner_.experts()
            points = max(points, max(len(learner.births) for _, _, learner in experts))
            marks.append([(index + 1) * block, _resident(), len(experts)])
            progress(f"memory: {marks[-1]}, {1e6 * seconds / marks[-1][0]:.1f} us a row")
    return {"marks": marks, "points": points, "microseconds": 1e6 * seconds / rows}


# --------------------------------------------------------------------------------------------------------- tables


def own_rows(parts: dict[str, Any]) -> list[Row]:
    """The figures of the parts that have been measured."""
    rows = []
    times, forest = parts.get("times", {}), parts.get("forest", {})
    for name, one in times.items():
        about = f"rows per second, 20 features, after the first {SETTLED:,} of 15,000 rows: {name}"
        needed = "256" in name
        must, aim = ("5,000", "25,000") if needed else ("", "")
        rows.append(Row(about, f"{one['pace']:,.0f}", must, aim, one["pace"], not needed or one["pace"] >= 5000))
    for task, theirs in forest.items():
        ours = times.get(f"{task}, 256 points")
        if ours is None:
            continue
        ratio, lower = ours["pace"] / theirs["pace"], ours["error"] < theirs["error"]
        kind = "RMSE" if task == "regression" else "error"
        text = f"{ratio:.0f}x as fast, {kind} {ours['error']:.4f} to {theirs['error']:.4f}"
        about = f"river's adaptive random forest on the same rows: {task}"
        rows.append(Row(about, text, "10x, lower", "30x", ratio, ratio >= 10 and lower))
    logs = parts.get("logloss", {})
    if logs:
        held = {name: auto_logloss.lower(one) for name, one in logs.items()}
        rows.append(_count("works where the log loss is below every tuned opponent's", held, 8, 8, 8))
    for kind, one in parts.get("switch", {}).items():
        back = one["back"] or 9999
        rows.append(Row(f"rows after a switch until the error is 1.2 times that before: {kind}", f"{back}", "150", "80",
                        back, back <= 150))  # fmt: skip
    memory = parts.get("memory")
    if memory:
        first, last = memory["marks"][1], memory["marks"][-1]
        grown = last[1] - first[1]
        text = (
            f"{grown:+.1f} MB from row {first[0]:,} to {last[0]:,} ({memory['microseconds']:.0f} us a row, 16 points)"
        )
        rows.append(Row("growth of the resident memory", text, "flat over 10,000,000 rows", "", grown, grown < 5))
    return rows


def write(parts: dict[str, Any]) -> None:
    """The tables of the page, and everything as JSON."""
    stored = RESULTS / "auto.json"
    stored.write_text(json.dumps({"machine": machine(), "parts": parts}, indent=1) + "\n")
    contest = Contest.read(RESULTS / "contest.json")
    first, second = contest_rows(contest), own_rows(parts)
    errors = f"{table(first)}\n\n{contest_table(contest)}\n\nBold: the lowest of its line. {machine()}."
    times = [table(second)]
    if parts.get("switch"):
        new = (
            "In brackets: a model that starts from nothing at the switch. The labels of a tenth of all rows are wrong."
        )
        seeds = next(iter(parts["switch"].values()))["seeds"]
        times += [auto_switch.table(parts["switch"]), f"{new} Mean of {seeds} seeds and 5 switches."]
    if parts.get("logloss"):
        times += [
            auto_logloss.shown(parts["logloss"]),
            "Mean over the rows of the contest's streams, each predicted before it is learned; to its seven works of "
            "classes, spambase is added. † on the first 1,500 rows.",
        ]  # fmt: skip
    each = f"An expert of 256 points and 20 features holds {expert_bytes(256, 20) / 1e6:.2f} MB, one of 100 points"
    times.append(f"{each} {expert_bytes(100, 20) / 1e6:.2f} MB. Processor time of one thread. {machine()}.")
    page = DOCS / "auto.md"
    if not page.exists():
        page.write_text("".join(f"<!-- {name}:begin -->\n<!-- {name}:end -->\n\n" for name in ("auto", "auto_times")))
    print(errors, *times, sep="\n\n")
    publish("auto", errors, page)
    publish("auto_times", "\n\n".join(times), page)
    record = {"machine": machine(), "parts": parts, "rows": [vars(row) for row in first + second]}
    stored.write_text(json.dumps(record, indent=1) + "\n")


PARTS = ("times", "forest", "logloss", "switch", "memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", nargs="*", choices=PARTS, default=list(PARTS), help="measure these again")
    parser.add_argument("--only", metavar="NAME", nargs="+", help="in the part logloss, these sets")
    parser.add_argument("--seeds", type=int, default=8, help="in the part switch")
    parser.add_argument("--rows", type=int, default=10_000_000, help="in the part memory")
    arguments = parser.parse_args()
    stored = RESULTS / "auto.json"
    parts: dict[str, Any] = json.loads(stored.read_text())["parts"] if stored.exists() else {}
    for part in arguments.part:
        if part == "times":
            parts[part] = measure_times()
        elif part == "forest":
            parts[part] = measure_forest()
        elif part == "memory":
            parts[part] = measure_memory(arguments.rows)
        elif part == "logloss":
            for name in arguments.only or auto_logloss.SETS:
                parts.setdefault(part, {})[name] = auto_logloss.measure(name)
                progress(f"log loss, {name}: {parts[part][name]}")
        else:
            for kind in auto_switch.KINDS:
                parts.setdefault(part, {})[kind] = auto_switch.measure(kind, arguments.seeds)
                one = parts[part][kind]
                progress(f"switch, {kind}: before {one['before']:.3f}, back {one['back']}, new {one['fresh_back']}")
    write(parts)


if __name__ == "__main__":
    main()
