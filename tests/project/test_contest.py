"""The contest is fair, and its tables and sentences follow from what was measured."""

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import contest  # noqa: E402
import entries  # noqa: E402
import pareto  # noqa: E402
import play  # noqa: E402
import standings  # noqa: E402
import works  # noqa: E402

TASKS = ("binary", "multiclass", "regression", "quantile", "novelty")
LIBRARIES = {"river": "river", "vowpalwabbit": "Vowpal Wabbit", "sklearn": "scikit-learn"}
EVERYBODY = contest.entries()
CASES = [(entry, task) for entry in EVERYBODY for task in entry.tasks]


def small(task, rows=80):
    """A piece of work with few rows that has every label early."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(rows + 30, 3))
    y = {"binary": np.sign(X[:, 0]), "multiclass": np.arange(len(X)) % 3.0, "novelty": (X[:, 0] > 1.5) * 1.0}.get(
        task, X[:, 1] + 0.1 * rng.normal(size=len(X))
    )
    classes = tuple(np.unique(y).tolist()) if task in entries.CLASSES else ()
    one, known = works.Series(X[30:], y[30:], X[:30]), works.Series(X[:30], y[:30], X[:30])
    return works.Work(task, task, [known], [one], "made up", level=0.9, classes=classes)


@pytest.mark.parametrize("library", contest.OPPONENTS)
def test_the_opponents_are_there(library):
    """A library that is not installed is skipped, visibly; one that is takes part in everything it can do."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    assert library not in contest.missing()
    tasks = {task for entry in EVERYBODY for task in entry.tasks if entry.library == LIBRARIES[library]}
    assert tasks >= ({"binary", "multiclass", "regression", "quantile"} if library == "vowpalwabbit" else set(TASKS))


def test_gossamer_does_everything():
    """Every task has entries of Gossamer with both sizes, a batch machine and a baseline."""
    for task in TASKS:
        there = [entry for entry in EVERYBODY if task in entry.tasks]
        assert {"Gossamer", "batch", "baseline"} <= {entry.library for entry in there}
        names = [(entry.library, entry.name) for entry in there]
        assert len(set(names)) == len(names)
        assert {"SILK(100)", "SILK(500)", "NORMA(100)", "NORMA(500)"} <= {name for _, name in names}


@pytest.mark.parametrize("entry", EVERYBODY, ids=lambda entry: f"{entry.library}: {entry.name}")
def test_everybody_tries_as_many_settings(entry):
    """The usual one and different points of the space, the same in every run, then others around the best; a baseline
    has none."""
    tries = entry.settings(16)
    assert tries == entry.settings(16)
    near = entry.settings(8, tries[-1], 0.25)
    assert len(near) == (8 if entry.space else 0)
    for name, choice in entry.space.items():
        values = [setting[name] for setting in near]
        if isinstance(choice, list):
            assert tries[-1][name] in values
        else:
            assert max(values) / min(values) < 1.1 * (choice[1] / choice[0]) ** 0.25
            assert 0.9 * min(values) < tries[-1][name] < 1.1 * max(values)
    if not entry.space:
        assert tries == [{}]
        assert entry.library == "baseline" or entry.name.startswith("Auto")
        return
    assert len({repr(setting) for setting in tries}) == 16
    assert set(entry.usual) == set(entry.space)
    for setting in tries:
        for name, choice in entry.space.items():
            if isinstance(choice, list):
                assert setting[name] in choice
            elif setting is not entry.usual:
                assert choice[0] * 0.99 <= setting[name] <= choice[1] * 1.01


@pytest.mark.parametrize(("entry", "task"), CASES, ids=lambda case: getattr(case, "name", case))
def test_nobody_sees_a_label_before_predicting_it(entry, task):
    """With another last label, every prediction is as before, also the last one; a detector sees no label at all."""
    work = small(task)
    (stream,) = work.scored
    other = np.append(stream.y[:-1], work.classes[0] + work.classes[-1] - stream.y[-1] if work.classes else 50.0)
    if task == "novelty":
        other = 1 - stream.y
    played = [play.play(entry, entry.usual, work, [replace(stream, y=y)]) for y in (stream.y, other)]
    first, second = (one.predictions[0] for one in played)
    assert np.isfinite(first).all()
    assert np.array_equal(first, second)
    if entry.name not in ("the usual so far", "half-space trees"):  # the first rows are all alike to them
        assert len(np.unique(first)) > 1
    if task in entries.CLASSES:
        assert set(first) <= set(work.classes)


def test_scores_are_what_they_say():
    """Each metric by hand; a mean over streams; rows that are warm do not count."""

    def score(task, y, guess, **more):
        stream = works.Series(np.zeros((len(y), 1)), np.array(y, float), np.zeros((1, 1)))
        work = works.Work("w", task, [], [stream], "", **more)
        return work.measured([np.array(guess, float)])

    assert score("binary", [1, -1, 1, 1], [1, 1, 1, -1]) == 0.5
    assert score("regression", [1.0, 2.0], [4.0, 6.0], unit=2.0) == pytest.approx(2 * np.sqrt(12.5))
    assert score("quantile", [1.0, 2.0], [0.0, 4.0], level=0.9) == pytest.approx((0.9 + 0.2) / 2)
    assert score("novelty", [0, 0, 1, 1], [0.1, 0.3, 0.2, 0.9]) == 0.75
    assert score("novelty", [1, 1, 0, 1, 0, 1], [9, 9, 0.1, 0.2, 0.3, 0.9], warm=1 / 3) == 0.75
    two = replace(small("binary"), scored=small("binary").scored * 2)
    truth = two.scored[0].y
    assert two.measured([truth, -truth]) == 0.5
    assert two.measured([truth, np.append(truth[:10], -truth[10:])], 10) == 0.0


def line(work, library, scores, pace, entry="x"):
    rows = max(scores)
    setting = {} if entry.startswith("Auto") or library == "baseline" else {"C": 1.0}
    return standings.Result(work, entry, library, setting, scores, rows, rows < 100, pace, 1.0, None, "")


def made(*results, higher=False):
    subjects = [standings.Subject("w", "AUC" if higher else "error", higher, "made up")]
    return standings.Contest(subjects, list(results), "a machine", [], 16, "2020-01-02")


def test_losing_is_said():
    """A better score is a loss, also on fewer rows and by the same rows; so is speed. A win is not mentioned."""
    ours = line("w", "Gossamer", {10: 0.30, 100: 0.20}, 1000.0)
    assert standings.losses(made(ours, line("w", "river", {100: 0.25}, 10.0))) == []
    better = standings.losses(made(ours, line("w", "river", {100: 0.1}, 100.0, "tree")))
    assert better == ["w: river's tree has 0.1000 to 0.2000, 10.0 times as slow."]
    limited = standings.losses(made(ours, line("w", "river", {10: 0.25}, 100.0)))
    assert limited == ["w: river's x has 0.2500 to 0.3000 on the first 10 rows, 10.0 times as slow."]
    faster = standings.losses(made(ours, line("w", "scikit-learn", {100: 0.21}, 2000.0)))
    assert faster == ["In time: another best is faster with a worse score on one work, 2.0 times on w."]
    both = standings.losses(made(ours, line("w", "batch", {100: 0.1}, 2000.0)))
    assert both == ["w: x has 0.1000 to 0.2000, 2.0 times as fast."]
    area = made(line("w", "Gossamer", {100: 0.8}, 1e3), line("w", "river", {100: 0.7}, 1.0), higher=True)
    assert standings.losses(area) == []
    assert "- nowhere in this run" in standings.front(area)
    assert len(standings.losses(made(ours, line("w", "river", {100: float("nan")}, 10.0)))) == 0


def test_losses_are_those_of_auto():
    """Where Auto takes part, it is what others are held against, though Gossamer tuned would win; and that is said."""
    auto = line("w", "Gossamer", {10: 0.4, 100: 0.25}, 500.0, "Auto")
    small = line("w", "Gossamer", {10: 0.4, 100: 0.01}, 500.0, "Auto, 100 points")  # another entry: not the one shown
    tuned = line("w", "Gossamer", {10: 0.3, 100: 0.20}, 1000.0, "Newton")
    found = standings.losses(made(auto, small, tuned, line("w", "river", {100: 0.22}, 100.0, "tree")))
    assert found == [
        "w: river's tree has 0.2200 to 0.2500, 5.0 times as slow.",
        "To Gossamer itself, tuned: w (Newton: 0.2000 to 0.2500).",
    ]
    assert standings.losses(made(auto, small, line("w", "river", {100: 0.26}, 100.0))) == []


def test_the_best_is_bold():
    """One line a work: Auto, and of the tuned ones, those of other libraries and the retrained, the best on all rows;
    bold is who is not beaten."""
    ours = [line("w", "Gossamer", {10: 0.3, 100: 0.2}, 1e3), line("w", "Gossamer", {10: 0.4, 100: 0.3}, 1e5)]
    auto = [line("w", "Gossamer", {10: 0.3, 100: 0.21}, 500.0, "Auto")]
    rivals = [line("w", "river", {10: 0.25}, 10.0), line("w", "river", {10: 0.35, 100: 0.22}, 20.0, "tree")]
    rivals.append(line("w", "Vowpal Wabbit", {10: 0.35, 100: 0.23}, 20.0))
    table = standings.front(made(*ours, *auto, *rivals))
    assert "| w: error | 0.2100, 500/s | **0.2000**, 1,000/s, x | 0.2200, 20/s, river's tree |  |  |" in table
    assert "first 10 rows" in standings.every(made(*ours, *auto, *rivals))
    table = standings.front(made(*ours[1:], *auto, *rivals, line("w", "baseline", {100: 0.5}, 1e6)))
    assert "| w: error | **0.2100**, 500/s | 0.3000, 100k/s, x | 0.2200, 20/s, river's tree |  | 0.5000 |" in table


def test_lines_of_a_later_run_are_said():
    """They take the place of the same entry's; entries that are no more leave; the tables name them and their date."""
    old = made(
        line("w", "Gossamer", {100: 0.3}, 1e3), line("w", "river", {100: 0.2}, 1e3), line("w", "batch", {100: 0.1}, 1)
    )
    assert standings.later(old) == ""
    fresh = replace(made(line("w", "Gossamer", {100: 0.25}, 1e3)), when="2020-03-04")
    new = old.renewed(fresh, {("batch", "x")})
    assert [(one.library, one.score, one.run) for one in new.results] == [
        ("river", 0.2, ""),
        ("Gossamer", 0.25, "2020-03-04"),
    ]
    for table in (standings.front(new), standings.every(new)):
        assert "x: of 2020-03-04 (◦ in the long tables); the others: of the whole run of 2020-01-02." in table
    assert "| **Gossamer: x** ◦ |" in standings.every(new)
    elsewhere = old.renewed(replace(fresh, machine="another"), ())
    assert elsewhere.results[-1].run == "2020-03-04, another"
    with pytest.raises(ValueError, match="run everything"):
        old.renewed(replace(fresh, settings=3), ())
    with pytest.raises(ValueError, match="run everything"):
        old.renewed(replace(fresh, subjects=[replace(fresh.subjects[0], name="v")]), ())


def test_some_entries(tmp_path, monkeypatch):
    """Only those that are named play, and their lines go beside the stored ones, with scores at everybody's marks."""
    whole = contest.compete(["rotating XOR"], works.QUICK, entries.TRIAL, ["linear", "usual"])
    assert {one.entry for one in whole.results} >= {"the usual so far"}
    whole.write(tmp_path / "contest.json")
    monkeypatch.setattr(contest, "WORKS", works.QUICK)
    monkeypatch.setattr(contest, "FULL", entries.TRIAL)
    found = contest.renew(tmp_path / "contest.json", ["rotating XOR"], ["Newton, Project(100)"])
    assert found == standings.Contest.read(tmp_path / "contest.json")
    assert [(one.entry, bool(one.run)) for one in found.results if one.library == "Gossamer"] == [
        ("Newton, Project(100)", True)
    ]
    assert [one for one in found.results if not one.run] == whole.results
    assert sorted(found.results[-1].scores) == [150, 1000]


def test_the_whole_contest(tmp_path, capsys, monkeypatch):
    """Everybody on made-up data, through files and back, to tables and a picture."""
    monkeypatch.setattr(sys, "argv", ["contest.py", "--quick", "--only", "ring"])
    contest.main()
    printed = capsys.readouterr().out
    ran = contest.compete(["rotating XOR"], works.QUICK, entries.TRIAL)
    assert "### ring" in printed
    assert "| ring: AUC, higher is better |" in printed
    assert {one.entry for one in ran.results} == {entry.name for entry in EVERYBODY if "binary" in entry.tasks}
    assert all(0 < one.score < 0.7 and one.rows_per_second > 0 for one in ran.results)
    silk = next(one for one in ran.results if one.entry == "SILK(500)")
    assert silk.score < 0.45  # two settings are not many
    assert silk.size > 100
    one_row = {one.entry: one.score for one in ran.results if one.entry.startswith("SILK, Project(100)")}
    assert one_row["SILK, Project(100)"] == one_row["SILK, Project(100), a row a call"]
    ran.write(tmp_path / "contest.json")
    again = standings.Contest.read(tmp_path / "contest.json")
    assert again == ran
    assert standings.front(again) == standings.front(ran)
    pareto.draw(ran, tmp_path / "pareto.png")
    assert (tmp_path / "pareto.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["contest", "contest_all"])
def test_the_tables_are_those_of_the_last_run(name):
    """results/*.md, the README and docs/benchmarks.md follow from results/contest.json."""
    results = ROOT / "benchmarks" / "results"
    last = standings.Contest.read(results / "contest.json")
    page = (ROOT / ("README.md" if name == "contest" else "docs/benchmarks.md")).read_text()
    shown = page.split(f"<!-- {name}:begin -->")[1].split(f"<!-- {name}:end -->")[0].strip()
    assert shown == (results / f"{name}.md").read_text().strip()
    assert shown == (standings.front(last) if name == "contest" else standings.every(last)).strip()
