"""The figures of `make bench-auto` follow from what was measured, and nobody's probabilities know the label."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

for library in ("river", "vowpalwabbit"):
    pytest.importorskip(library, reason=f"{library} is not installed")

import auto  # noqa: E402
import auto_logloss  # noqa: E402
import auto_switch  # noqa: E402
import standings  # noqa: E402
import works  # noqa: E402
from entries import Entry  # noqa: E402


def line(entry, library, score, pace=100.0):
    setting = {} if entry.startswith("Auto") else {"C": 1.0}
    return standings.Result("w", entry, library, setting, {100: score}, 100, False, pace, 1.0, None, "")


def figures(*results):
    """The rows of the contest's figures by what was held against Auto."""
    found = standings.Contest([standings.Subject("w", "error", False, "")], list(results), "", [], 1)
    rows = auto.contest_rows(found)
    assert "| w: error |" in auto.contest_table(found)
    return dict(zip(("online", "svm", "boosted", "pace", "256", "100"), rows, strict=True))


def test_the_figures_of_the_contest():
    """Counts of works, the share of error beside a learner with as many points, and the pace, by hand."""
    one, all_ = auto.BOOSTED
    others = [
        line("Auto", "Gossamer", 0.20, 50.0), line("Auto, 100 points", "Gossamer", 0.24),
        line("Newton, Project(256)", "Gossamer", 0.16), line("SILK(100)", "Gossamer", 0.25),
        line("Newton, Project(500)", "Gossamer", 0.01), line("linear", "river", 0.20),
        line("SVM, retrained", "batch", 0.19), line(one, "batch", 0.21, 10.0), line(all_, "batch", 0.20, 5.0),
    ]  # fmt: skip
    rows = figures(*others)
    assert (rows["online"].value, rows["svm"].value, rows["boosted"].value) == (1, 0, 0)  # level is not below
    assert rows["svm"].measured == "0 of 1 (not: w)"
    assert rows["pace"].value == 5.0
    assert rows["256"].value == pytest.approx(0.25)
    assert not rows["256"].reached
    assert rows["100"].value == pytest.approx(-0.04)
    assert rows["100"].reached


def test_back_is_counted_in_rows():
    """The first 50 rows in a row with at most 1.2 times the error before, counted at their end."""
    errors = np.append(np.ones(70), np.zeros(200))
    assert auto_switch.back(errors, 0.5) == 90  # 20 of the last 50 are right: error 0.6
    assert auto_switch.back(np.zeros(60), 0.1) == 50
    assert auto_switch.back(np.ones(300), 0.1) is None


@pytest.mark.parametrize("kind", auto_switch.KINDS)
def test_a_switch_is_one(kind):
    """The rule of one concept is kept within it, but for the noise, and broken by the next."""
    X, y = auto_switch.stream(kind, 0)
    again, same = auto_switch.stream(kind, 0)
    assert np.array_equal(X, again)
    assert np.array_equal(y, same)
    rng = np.random.default_rng(0)
    X, first = auto_switch.KINDS[kind](rng, np.zeros(4000, int))
    _, second = auto_switch.KINDS[kind](np.random.default_rng(0), np.ones(4000, int))
    changed = np.mean(first != second)
    assert changed > 0.03
    assert 0.2 < first.mean() < 0.8


def test_a_switch_is_measured():
    """One seed: an error before that is near the noise, a jump after the switch, and a way back."""
    found = auto_switch.measure("a half-plane turns by 120°", 1, budget=16)
    assert 0.05 < found["before"] < 0.2
    assert found["after"][0] > 2 * found["before"]
    assert found["back"] is not None
    assert "half-plane" in auto_switch.table({"a half-plane turns by 120°": found})


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_do_not_know_the_label(classes):
    """Every opponent and Auto: another last label changes the loss of that row only; probabilities sum to one."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 3))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=400), [0.0] if classes == 2 else [-0.5, 0.5]).astype(float)
    y = 2 * y - 1 if classes == 2 else y
    known = works.Series(X[:150], y[:150], X[:150])
    work = works.Work("w", "binary" if classes == 2 else "multiclass", [known], [], "", classes=tuple(np.unique(y)))
    stream = works.Series(X[150:], y[150:], X[:150])
    others = [e for e in auto_logloss.opponents(work) if classes == 2 or "river" not in e.name]
    for entry in [Entry("Auto", "", (), auto_logloss.SureAuto), *others]:
        truth = auto_logloss.losses(entry, entry.usual, work, stream)
        total = np.zeros(1)
        for label in work.classes:
            other = replace(stream, y=np.append(stream.y[:-1], label))
            losses = auto_logloss.losses(entry, entry.usual, work, other)
            assert np.array_equal(losses[:-1], truth[:-1]), entry.name
            total += np.exp(-losses[-1])
        assert total == pytest.approx(1.0, abs=1e-5), entry.name
        assert len(np.unique(truth)) > 100, entry.name
        if entry.name == "Auto":
            assert truth.mean() < 0.9 * np.log(classes)


@pytest.mark.parametrize("name", ["auto", "auto_times"])
def test_the_tables_are_those_of_the_last_run(name):
    """docs/auto.md shows what results/ has; the figures of the contest follow from results/contest.json."""
    page = (ROOT / "docs" / "auto.md").read_text()
    results = ROOT / "benchmarks" / "results"
    shown = page.split(f"<!-- {name}:begin -->")[1].split(f"<!-- {name}:end -->")[0].strip()
    assert shown == (results / f"{name}.md").read_text().strip()
    contest = standings.Contest.read(results / "contest.json")
    if name == "auto":
        assert auto.contest_table(contest) in shown
    else:
        parts = json.loads((results / "auto.json").read_text())["parts"]
        assert auto.table(auto.own_rows(parts)) in shown
