"""Every relative link of every page leads to a file and a heading that exist; every page of docs/ is on the site."""

import functools
import importlib
import importlib.util
import re
import unicodedata
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "made" not in path.relative_to(ROOT).parts),
    *sorted(ROOT.glob("experiments/**/*.md")),
    *sorted(path for path in ROOT.glob("benchmarks/*.md")),
]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
REFERENCE = re.compile(r"^\[[^\]]+\]: (\S+)", re.MULTILINE)


def prose(page: Path) -> str:
    """The page without its code."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "", text)


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the site make them: words in lower case joined by hyphens."""
    found: dict[str, int] = {}
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for heading in re.findall(r"^#{1,6} (.+?)\s*$", text, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        kept = [c for c in plain if c in " -_" or unicodedata.category(c)[0] in "LN"]
        slug = "".join(kept).replace(" ", "-")
        found[slug] = found.get(slug, -1) + 1
    return {f"{slug}-{i}" if i else slug for slug, count in found.items() for i in range(count + 1)}


def problems(page: Path) -> list[str]:
    """What is wrong with the links of a page."""
    bad = []
    for link in (*LINK.findall(prose(page)), *REFERENCE.findall(prose(page))):
        if re.match(r"(https?|mailto):", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or not path.is_relative_to(ROOT):
            bad.append(f"{link}: no such file")
        elif anchor and (path.suffix != ".md" or anchor not in anchors(path)):
            bad.append(f"{link}: no such heading")
    return bad


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert problems(page) == []


def test_broken_links_are_found(tmp_path, monkeypatch):
    """The checker can fail: a missing file, a missing heading, a link out of the repository."""
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    (tmp_path / "other.md").write_text("# One `two`, three\n\n## Again\n\n## Again\n")
    (tmp_path / "page.md").write_text(
        "[a](other.md#one-two-three) [b](other.md#again-1) `[c](code.md)` [d](https://example.org)\n"
        "[e](missing.md) [f](other.md#four) ![g](missing.png) [h](../outside.md) [i](#nowhere)\n"
    )
    assert [text.split(":")[0] for text in problems(tmp_path / "page.md")] == [
        "missing.md", "other.md#four", "missing.png", "../outside.md", "#nowhere",
    ]  # fmt: skip


def site():
    """docs/pages.py, which orders the site; it needs no Sphinx."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_on_the_site():
    """Each page of docs/ stands in the order of the site once, and nothing stands there that does not exist."""
    pages = [name for names in site().order().values() for name in names]
    assert len(set(pages)) == len(pages)
    assert {name for name in pages if not name.startswith("made/")} == {
        path.stem for path in ROOT.glob("docs/*.md") if path.stem != "index"
    }
    made = {f"made/{name.removesuffix('.md')}" for name in site().SHOWN} | {"made/gallery", "made/api/gossamer"}
    assert {name for name in pages if name.startswith("made/")} == made


def test_every_figure_is_in_the_gallery():
    """A picture of experiments/ or examples/ is named after the script that draws it, which the gallery quotes."""
    shown = re.findall(r"^!\[[^\]]*\]\(\.\./\.\./(\S+)\)$", site().gallery(), re.MULTILINE)
    pictures = [*ROOT.glob("experiments/*/*.png"), *ROOT.glob("examples/*.png"), *ROOT.glob("examples/*.jpg")]
    assert {*shown} == {str(path.relative_to(ROOT)) for path in pictures}
    assert "examples/additive.png" in shown


def test_links_are_turned_for_the_site():
    """A link to a file that is a page of the site leads to the page; others stay where they lead."""
    page = ROOT / "docs" / "concepts.md"
    text = "[a](../CONTRIBUTING.md#x) [b](../README.md) [c](bank.md) [d](#e) [f](https://g.org) [h](../core/io/csv.hpp)"
    assert site().turned(text, page, page) == text.replace("../CONTR", "made/CONTR").replace("../README.md", "index.md")
    moved = site().turned("![a](docs/demo.png)", ROOT / "CONTRIBUTING.md", ROOT / "docs" / "made" / "CONTRIBUTING.md")
    assert moved == "![a](../demo.png)"
