"""The results of a contest as tables, and in words where Gossamer loses: all of it follows from the numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

LIBRARIES = ("Gossamer", "scikit-learn", "river", "Vowpal Wabbit", "batch", "baseline")
HEADS = {"batch": "batch, retrained", "baseline": "no learning"}


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

    @property
    def score(self) -> float:
        """On all rows it was given."""
        return self.scores[self.rows]

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

    def of(self, subject: Subject, library: str | None = None) -> list[Result]:
        """The results on one piece of work."""
        return [one for one in self.results if one.work == subject.name and library in (None, one.library)]

    def best(self, subject: Subject, library: str) -> list[Result]:
        """The best entry of a library on all rows (of those within a hundredth of the best score, the fastest), and the
        best of those with fewer rows if it is better on these."""
        there = self.of(subject, library)
        whole, fewer = (
            _fastest_of_the_best(subject, [one for one in there if one.limited == limited], library == "baseline")
            for limited in (False, True)
        )
        return whole + [one for one in fewer if not whole or beats(subject, one, whole[0])]

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
        return Contest(subjects, results, raw["machine"], raw["missing"], raw["settings"])


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


def front(contest: Contest) -> str:
    """One line for each piece of work, each library by its best entry; then where Gossamer loses."""
    heads = [HEADS.get(library, library) for library in LIBRARIES]
    lines = [f"| data, score | {' | '.join(heads)} |", "|---" * (len(heads) + 1) + "|"]
    for subject in contest.subjects:
        shown = [contest.best(subject, library) for library in LIBRARIES]
        present = [one for some in shown for one in some]
        cells = ["; ".join(_cell(subject, one, present) for one in some) for some in shown]
        arrow = ", higher is better" if subject.higher else ""
        lines.append(f"| {subject.name}: {subject.metric}{arrow} | {' | '.join(cells)} |")
    lost = "\n".join(f"- {sentence}" for sentence in losses(contest)) or "- nowhere in this run"
    note = (
        "Each library by its best entry (the fastest within a hundredth of its best score): score, and rows per "
        "second. Bold: nobody who had these rows is better. † on the first rows only, as it is "
        "slow; shown if it is its library's best there. Every entry chose among "
        f"{contest.settings} settings on rows that are not scored. One thread. All entries, with memory and settings: "
        "docs/benchmarks.md."
    )
    absent = "".join(f" Not installed in this run: {name}." for name in contest.missing)
    return "\n".join([*lines, "", f"{note}{absent} {contest.machine}.", "", "Where it loses:", "", lost])


def _cell(subject: Subject, one: Result, present: list[Result]) -> str:
    unbeaten = not any(beats(subject, other, one) for other in present if other.rows >= one.rows)
    score = f"**{number(one.score)}**" if unbeaten else number(one.score)
    mark = "†" if one.limited else ""
    return f"{score}{mark}" if one.library == "baseline" else f"{score}{mark}, {speed(one.rows_per_second)}"


def losses(contest: Contest) -> list[str]:
    """Where the best entry of another library has a better score than Gossamer's best, a line for each piece of work;
    and, in one line, where one is only faster."""
    lines, faster = [], []
    for subject in contest.subjects:
        ours = contest.best(subject, "Gossamer")[0]
        others = [one for library in LIBRARIES[1:] for one in contest.best(subject, library)]
        ahead = [one for one in others if beats(subject, one, ours)]
        if ahead:
            lines.append(f"{subject.name}: {'; '.join(_ahead(ours, one) for one in ahead)}.")
        quick = [one for one in others if one not in ahead and _pace(ours, one) > 1 and one.library != "baseline"]
        if quick:
            some = ", ".join(f"{one.title} ({_pace(ours, one):.1f} times)" for one in quick)
            faster.append(f"{subject.name}: {some}")
    return lines + ([f"Faster, with a worse score: {'; '.join(faster)}."] if faster else [])


def _pace(ours: Result, theirs: Result) -> float:
    return theirs.rows_per_second / ours.rows_per_second


def _ahead(ours: Result, theirs: Result) -> str:
    mark = min(ours.rows, theirs.rows)
    where = f" on the first {mark:,} rows" if mark < max(ours.rows, theirs.rows) else ""
    scores = f"{theirs.title} has {number(theirs.scores[mark])} to {number(ours.scores[mark])}{where}"
    if theirs.library == "baseline":
        return scores
    pace = _pace(ours, theirs)
    return f"{scores}, {pace:.1f} times as fast" if pace >= 1 else f"{scores}, {1 / pace:,.1f} times as slow"


# ---------------------------------------------------------------------------------------------------- the long table


def every(contest: Contest) -> str:
    """Every entry on every piece of work."""
    parts = [f"{contest.machine}."]
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
