"""The front page tells the truth: its code runs and prints what it says, and its tables were made by the benchmarks."""

import contextlib
import importlib.metadata
import io
import re
from pathlib import Path

import pytest

import gossamer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "README.md").read_text()
RESULTS = ROOT / "benchmarks" / "results"
TABLES = [
    (page.relative_to(ROOT), name)
    for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")))
    for name in re.findall(r"<!-- (\w+):begin -->", page.read_text())
]


def blocks(name):
    return re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(), re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_code_runs(name):
    """Every block of Python runs, after those before it, and prints what its comment promises."""
    assert len(blocks(name)) >= 2
    space: dict[str, object] = {}
    for code in blocks(name):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, name, "exec"), space)
        for promise in re.findall(r"print\(.*\)\s+# (.+)", code):
            assert promise in printed.getvalue()


@pytest.mark.parametrize(("page", "name"), TABLES, ids=str)
def test_tables_are_generated(page, name):
    """A table between markers is the one that its benchmark wrote last; there is none before it has run."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    shown = (ROOT / page).read_text().split(begin)[1].split(end)[0].strip()
    written = RESULTS / f"{name}.md"
    assert shown == (written.read_text().strip() if written.exists() else "")


def test_tables_are_found():
    """There are tables, each on one page: an empty list would pass every test."""
    names = [name for _, name in TABLES]
    assert {"contest", "engine", "rules", "additive", "faces", "shell", "river_face"} <= {*names}
    assert len({*names}) == len(names)


def test_the_front_page_is_short():
    """The README is a front page: what is longer has a page of its own."""
    assert len(PAGE.splitlines()) <= 200


def test_every_estimator_is_listed():
    """The table of algorithms names every estimator there is."""
    names = [name for name in gossamer.__all__ if re.search(r"(Classifier|Regressor|Detector|Perceptron)$", name)]
    assert [name for name in names if f"`{name}`" not in PAGE] == []


def test_the_version_has_one_place():
    """Wheel, module, command line and stored files take it from _version.py; the changelog has a section for it."""
    assert importlib.metadata.version("gossamer") == gossamer.__version__
    assert f"## [{gossamer.__version__.partition('.dev')[0]}]" in (ROOT / "CHANGELOG.md").read_text()
    for name in ("pyproject.toml", "CITATION.cff", "CMakeLists.txt"):
        assert gossamer.__version__ not in (ROOT / name).read_text().replace("cff-version: 1.2.0", ""), name
