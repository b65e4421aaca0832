"""The front page tells the truth: its code runs and prints what it says, and its tables were made by the benchmarks."""

import contextlib
import io
import re
from pathlib import Path

import pytest

import gossamer

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "README.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_code_runs():
    """Every block of Python runs, and prints what its comment promises."""
    assert len(CODE) >= 2
    for code in CODE:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), {})
        for promise in re.findall(r"print\(.*\)\s+# (.+)", code):
            assert promise in printed.getvalue()


@pytest.mark.parametrize("name", ["engine", "rules", "additive", "faces", "shell"])
def test_tables_are_generated(name):
    """A table of the README is the one that its benchmark wrote last."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    shown = PAGE.split(begin)[1].split(end)[0].strip()
    assert shown == (ROOT / "benchmarks" / "results" / f"{name}.md").read_text().strip()


def test_every_estimator_is_listed():
    """The table of algorithms names every estimator there is."""
    names = [name for name in gossamer.__all__ if re.search(r"(Classifier|Regressor|Detector|Perceptron)$", name)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_links_lead_somewhere():
    """Files that the README links to exist."""
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / target).exists(), target
