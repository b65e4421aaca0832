"""The results of a contest as tables, and in words where Gossamer loses: all of it follows from the numbers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

LIBRARIES = ("Gossamer", "scikit-learn", "river", "Vowpal Wabbit", "batch", "baseline")
AUTO = "Auto"  # the entry without settings that the front page shows


@dataclass(frozen=True)
class Result:
    """How an entry did with the setting it chose; ``scores`` by how many rows of each stream count."""

    work: str
    entry: str
    library: str
    setting: dict[str, Any]
    scores: dict[int, float]
    rows: int
    limited: bool
    rows_per_second: float
    megabytes: float
    size: int | None
    made_of: str
    run: str = ""  # if it was measured later than the whole: when, and where if that was elsewhere

    @property
    def score(self) -> float:
        """On all rows it was given."""
        return self.scores[self.rows]

    @property
    def untuned(self) -> bool:
        """Whether it has no settings, and learns."""
        return not self.setting and self.library != "baseline"

    @property
    def title(self) -> str:
        """As in a sentence."""
        return self.entry if self.library in ("batch", "baseline") else f"{self.library}'s {self.entry}"


@dataclass(frozen=True)
class Subject:
    """A piece of work: what was measured on what."""

    name: str
    metric: str
    higher: bool
    about: str


@dataclass(frozen=True)
class Contest:
    """Everything that was measured."""

    subjects: list[Subject]
    results: list[Result]
    machine: str
    missing: list[str]
    settings: int  # tried by every entry
    when: str = ""

    def of(self, subject: Subject, library: str | None = None) -> list[Result]:
        """The results on one piece of work."""
        return [one for one in self.results if one.work == subject.name and library in (None, one.library)]

    def bests(self, subject: Subject, libraries: Iterable[str], limited: bool, tuned: bool = True) -> list[Result]:
        """The entry with the best score of some libraries, of those with all rows or with fewer; none, or one."""
        there = [
            one for library in libraries for one in self.of(subject, library)
            if one.limited == limited and (not one.untuned if tuned else one.entry == AUTO or one.library == "baseline")
        ]  # fmt: skip
        return sorted(there, key=lambda one: (_loss(subject, one.score), -one.rows_per_second))[:1]

    def ahead(self, subject: Subject, libraries: Iterable[str], tuned: bool) -> Result | None:
        """The entry with the best score of some libraries on all rows, tuned or untuned."""
        return next(iter(self.bests(subject, libraries, False, tuned)), None)

    def best(self, subject: Subject, library: str) -> list[Result]:
        """The best entry of a library on all rows (of those within a hundredth of the best score, the fastest), and the
        best of those with fewer rows if it is better on these."""
        there = self.of(subject, library)
        whole, fewer = (
            _fastest_of_the_best(subject, [one for one in there if one.limited == limited], library == "baseline")
            for limited in (False, True)
        )
        return whole + [one for one in fewer if not whole or beats(subject, one, whole[0])]

    def renewed(self, fresh: Contest, gone: Iterable[tuple[str, str]]) -> Contest:
        """With the lines of a later run in place of those of the same entries, and without entries that are no more."""
        known = {one.name for one in self.subjects}
        if not known >= {one.name for one in fresh.subjects} or self.settings != fresh.settings:
            raise ValueError("the later run has other works or another number of settings: run everything")
        run = fresh.when if fresh.machine == self.machine else f"{fresh.when}, {fresh.machine}"
        replaced = {(one.work, one.library, one.entry) for one in fresh.results}
        dropped = set(gone)
        kept = [
            one for one in self.results
            if (one.work, one.library, one.entry) not in replaced and (one.library, one.entry) not in dropped
        ]  # fmt: skip
        return replace(self, results=kept + [replace(one, run=run) for one in fresh.results])

    def write(self, path: Path) -> None:
        """As JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @staticmethod
    def read(path: Path) -> Contest:
        """What was written."""
        raw = json.loads(path.read_text())
        results = [
            Result(**{**one, "scores": {int(mark): score for mark, score in one["scores"].items()}})
            for one in raw["results"]
        ]
        subjects = [Subject(**one) for one in raw["subjects"]]
        return Contest(**{**raw, "subjects": subjects, "results": results})


def _loss(subject: Subject, score: float) -> float:
    """Lower is better; what is not a number is worst."""
    if score != score:
        return float("inf")
    return -score if subject.higher else score


def _fastest_of_the_best(subject: Subject, there: list[Result], exactly: bool) -> list[Result]:
    """At most one: the fastest whose score is within a hundredth of the best, or is exactly the best."""
    best = min((_loss(subject, one.score) for one in there), default=0.0)
    share = 0.0 if exactly else 0.01
    near = [one for one in there if _loss(subject, one.score) <= best + share * abs(best)]
    return sorted(near, key=lambda one: -one.rows_per_second)[:1]


def beats(subject: Subject, one: Result, other: Result) -> bool:
    """Whether one is strictly better on the rows that both were given."""
    mark = min(one.rows, other.rows)
    return _loss(subject, one.scores[mark]) < _loss(subject, other.scores[mark])


def number(score: float) -> str:
    """Four digits after the point below 1, three significant ones above."""
    return f"{score:.4f}" if abs(score) < 1 else f"{score:.3g}"


def speed(rows_per_second: float) -> str:
    """Two significant digits."""
    digits = float(f"{rows_per_second:.2g}")
    return f"{digits / 1000:,.0f}k/s" if digits >= 10_000 else f"{digits:,.0f}/s"


# ---------------------------------------------------------------------------------------------------- the front page

#: The columns of the front page: a head, the libraries, and whether their entries have settings that were chosen.
COLUMNS = (
    ("Auto, no settings", ("Gossamer",), False),
    ("Gossamer, tuned", ("Gossamer",), True),
    ("other libraries online, tuned", ("scikit-learn", "river", "Vowpal Wabbit"), True),
    ("retrained, tuned", ("batch",), True),
    ("no learning", ("baseline",), False),
)


def front(contest: Contest) -> str:
    """One line for each piece of work: Auto beside the best of everybody else; then where it loses."""
    heads = [head for head, _, _ in COLUMNS]
    lines = [f"| data, score | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for subject in contest.subjects:
        shown = [contest.ahead(subject, libraries, tuned) for _, libraries, tuned in COLUMNS]
        present = [one for one in shown if one is not None]
        cells = ["" if one is None else _cell(subject, one, present) for one in shown]
        arrow = ", higher is better" if subject.higher else ""
        lines.append(f"| {subject.name}: {subject.metric}{arrow} | {' | '.join(cells)} |")
    lost = "\n".join(f"- {sentence}" for sentence in losses(contest)) or "- nowhere in this run"
    note = (
        "The best entry of each column on all rows: score, rows per second, name. Bold: nobody is better. Auto "
        "(`AutoClassifier()`, `AutoRegressor()`) has no settings and saw no row before; everybody else chose among "
        f"{contest.settings} settings on rows that are not scored. One thread. All entries: docs/benchmarks.md."
    )
    absent = "".join(f" Not installed in this run: {name}." for name in contest.missing)
    parts = [
        *lines,
        "",
        f"{note}{absent} {contest.machine}. {later(contest)}".rstrip(),
        "",
        "Where it loses:",
        "",
        lost,
    ]
    return "\n".join(parts)


def later(contest: Contest) -> str:
    """Which entries are of another run than the rest, and when both were."""
    runs: dict[str, list[str]] = {}
    for one in contest.results:
        family = one.entry.partition(",")[0]
        if one.run and family not in runs.setdefault(one.run, []):
            runs[one.run].append(family)
    if not runs:
        return ""
    some = "; ".join(f"{', '.join(names)}: of {run}" for run, names in runs.items())
    rest = f"the others: of the whole run of {contest.when}" if contest.when else "the others: of an earlier whole run"
    return f"Lines of more than one run, on the same rows: {some} (◦ in the long tables); {rest}."


def _cell(subject: Subject, one: Result, present: list[Result]) -> str:
    unbeaten = not any(beats(subject, other, one) for other in present)
    score = f"**{number(one.score)}**" if unbeaten else number(one.score)
    if one.library == "baseline":
        return score
    name = "" if one.untuned else f", {one.entry}" if one.library == "Gossamer" else f", {one.title}"
    return f"{score}, {speed(one.rows_per_second)}{name}"


def losses(contest: Contest) -> list[str]:
    """Where others have a better score than Auto (or, where there is none, Gossamer's best), also those that had fewer
    rows on these; where Gossamer tuned by hand has; and how often one is only faster."""
    lines, ours_tuned, faster = [], [], []
    for subject in contest.subjects:
        auto, tuned = (contest.ahead(subject, ("Gossamer",), how) for how in (False, True))
        ours = auto or tuned
        if ours is None:
            continue
        others = [
            one for _, libraries, _ in COLUMNS[2:] for limited in (False, True)
            for one in contest.bests(subject, libraries, limited)
        ]  # fmt: skip
        others += [one for one in contest.of(subject, "batch") if one not in others]
        better = [one for one in others if beats(subject, one, ours)]
        if better:
            lines.append(f"{subject.name}: {'; '.join(_ahead(ours, one) for one in better)}.")
        if auto and tuned and beats(subject, tuned, auto):
            ours_tuned.append(f"{subject.name} ({tuned.entry}: {number(tuned.score)} to {number(auto.score)})")
        quick = [one for one in others if one not in better and _pace(ours, one) > 1 and one.library != "baseline"]
        if quick:
            faster.append((max(_pace(ours, one) for one in quick), subject.name))
    if ours_tuned:
        lines.append(f"To Gossamer itself, tuned: {', '.join(ours_tuned)}.")
    if faster:
        pace, where = max(faster)
        on = "one work" if len(faster) == 1 else f"{len(faster)} works"
        lines.append(f"In time: another best is faster with a worse score on {on}, {pace:,.1f} times on {where}.")
    return lines


def _pace(ours: Result, theirs: Result) -> float:
    return theirs.rows_per_second / ours.rows_per_second


def _ahead(ours: Result, theirs: Result) -> str:
    mark = min(ours.rows, theirs.rows)
    where = f" on the first {mark:,} rows" if mark < max(ours.rows, theirs.rows) else ""
    scores = f"{theirs.title} has {number(theirs.scores[mark])} to {number(ours.scores[mark])}{where}"
    if theirs.library == "baseline":
        return scores
    pace = _pace(ours, theirs)
    return f"{scores}, {pace:,.1f} times as fast" if pace >= 1 else f"{scores}, {1 / pace:,.1f} times as slow"


# ---------------------------------------------------------------------------------------------------- the long table


def every(contest: Contest) -> str:
    """Every entry on every piece of work."""
    parts = [f"{contest.machine}. {later(contest)}".rstrip()]
    for subject in contest.subjects:
        there = contest.of(subject)
        common = min(one.rows for one in there)
        limited = any(one.limited for one in there)
        same = f" first {common:,} rows |" if limited else ""
        head = f"| entry | {subject.metric} |{same} rows/s | peak MB | made of | setting |"
        lines = [f"### {subject.name}", "", f"{subject.about}.", "", head, "|---" * (7 if limited else 6) + "|"]
        bests = {id(one) for library in LIBRARIES for one in contest.best(subject, library)}
        for one in sorted(there, key=lambda one: (LIBRARIES.index(one.library), _loss(subject, one.scores[common]))):
            name = f"{one.library}: {one.entry}" if one.library not in ("batch", "baseline") else one.entry
            name = f"**{name}**" if id(one) in bests else name
            name = f"{name} ◦" if one.run else name
            score = number(one.score) + (f" († {one.rows:,} rows)" if one.limited else "")
            less = f" {number(one.scores[common])} |" if limited else ""
            size = "" if one.size is None else f"{one.size:,} {one.made_of}"
            setting = ", ".join(f"{key} {_shown(value)}" for key, value in one.setting.items())
            pace = f"{one.rows_per_second:,.0f}"
            lines.append(f"| {name} | {score} |{less} {pace} | {one.megabytes:.1f} | {size} | {setting} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _shown(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
