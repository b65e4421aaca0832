"""The pages in docs/ tell the truth: their Python runs and prints what it promises."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {page.name: page.read_text() for page in sorted(DOCS.glob("*.md"))}
WITH_CODE = [name for name, text in PAGES.items() if "```python\n" in text]


@pytest.mark.parametrize("name", WITH_CODE)
def test_code_runs(name, tmp_path, monkeypatch):
    """The blocks of a page run in order, as one program, and each print gives what the comment behind it says."""
    if name == "river.md":
        pytest.importorskip("river")
    monkeypatch.chdir(tmp_path)
    space: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGES[name], re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, name, "exec"), space)
        for promise in re.findall(r"print\(.*\)\s+# (.+)", block):
            assert promise in printed.getvalue()


def test_pages_are_found():
    """There are pages with code: an empty list would pass every test."""
    assert "sklearn.md" in WITH_CODE
