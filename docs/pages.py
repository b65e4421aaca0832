"""What the site has besides the pages in docs/: its order, and the pages made from the rest of the repository.

The pages in docs/ are written to be read as files too. So their links go to files of the repository, and are turned
here: to the page that shows the file if there is one, else to the file itself, which the site then carries along.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
MADE = DOCS / "made"

#: The order of the pages; a name without a page is passed over, a page without a name comes last, under "More".
ORDER = {
    "Guide": [
        "concepts",
        "auto",
        "choosing",
        "tuning",
        "second_order",
        "certainty",
        "clock",
        "budgets",
        "capacity",
        "sweeps",
        "algorithms",
    ],
    "Faces": ["rows", "sklearn", "river", "cli", "streams", "store", "video", "additive", "bank", "spark", "serve"],
    "Running": ["operations"],
    "Evidence": ["made/gallery", "made/experiments/README", "benchmarks", "performance", "reliability", "platforms"],
    "Reference": ["made/api/gossamer"],
    "Project": ["made/CONTRIBUTING", "releasing", "made/CHANGELOG"],
}

#: Files of the repository, outside docs/, that are pages of the site.
SHOWN = ["CHANGELOG.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("experiments/**/*.md"))]

FENCE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(\]\()([^)\s]+)(\))")


def order() -> dict[str, list[str]]:
    """Every page of the site but the first, by section."""
    there = {page.stem for page in DOCS.glob("*.md")} - {"index"}
    there |= {f"made/{Path(name).with_suffix('')}" for name in SHOWN} | {"made/gallery", "made/api/gossamer"}
    sections = {title: [name for name in names if name in there] for title, names in ORDER.items()}
    rest = there.difference(*sections.values())
    sections["Evidence"] += sorted(name for name in rest if name.startswith("made/experiments/"))
    sections["More"] = sorted(name for name in rest if not name.startswith("made/"))
    return {title: names for title, names in sections.items() if names}


def read(app: Any, page: str, source: list[str]) -> None:
    """Turn the links of a page, and put the order of the site under the first."""
    if not page.startswith("made/"):
        source[0] = turned(source[0], DOCS / f"{page}.md", DOCS / f"{page}.md")
    if page == "index":
        source[0] = source[0].replace("<!-- contest -->", contest())
        source[0] += "".join(_toctree(title, names) for title, names in order().items())


def contest() -> str:
    """The front page's section on other libraries, once a benchmark has filled it."""
    heading = "## Against what people use today"
    section = (ROOT / "README.md").read_text().partition(heading)[2].partition("\n## ")[0]
    filled = re.sub(r"<!--.*?-->", "", section, flags=re.DOTALL).strip()
    return turned(f"{heading}\n\n{filled}\n", ROOT / "README.md", DOCS / "index.md") if filled else ""


def turned(text: str, origin: Path, place: Path) -> str:
    """The text of a file, its links made to work where it is shown."""

    def turn(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        if not target or "://" in target:
            return match[0]
        path = (origin.parent / target).resolve()
        inside = path.is_relative_to(ROOT) and str(path.relative_to(ROOT))
        if inside in SHOWN:
            path = MADE / inside
        elif inside == "README.md":
            path = DOCS / "index.md"
        elif inside == "experiments":
            path = MADE / "gallery.md"
        return f"{match[1]}{os.path.relpath(path, place.parent)}{'#' + anchor if anchor else ''}{match[3]}"

    parts = FENCE.split(text)
    return "".join(part if i % 2 else LINK.sub(turn, part) for i, part in enumerate(parts))


def make() -> None:
    """Write every page that is made, and remove those that are no more; an unchanged page keeps its time."""
    wanted = {MADE / name: turned((ROOT / name).read_text(), ROOT / name, MADE / name) for name in SHOWN}
    wanted[MADE / "gallery.md"] = gallery()
    wanted |= {MADE / "api" / f"{name}.md": text for name, text in reference().items()}
    for old in MADE.rglob("*.md"):
        if old not in wanted:
            old.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


# ---------------------------------------------------------------------------------------------------------- the gallery


def gallery() -> str:
    """Every picture that a script of experiments/ or examples/ has made, with what the script says about it."""
    lines = ["# Gallery", "", "Every picture here was drawn by the script named under it."]
    for folder in [*sorted({path.parent for path in ROOT.glob("experiments/*/*.png")}), ROOT / "examples"]:
        lines += ["", f"## {folder.name}"]
        pictures = [path for path in sorted(folder.iterdir(), key=_by_number) if path.suffix in (".png", ".jpg")]
        for script in sorted(folder.glob("*.py"), key=_by_number):
            mine = [path for path in pictures if re.fullmatch(rf"{script.stem}(\D.*)?", path.stem)]
            lines += _shown(script, mine) if mine else []
    return "\n".join(lines) + "\n"


def _by_number(path: Path) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", path.name)]


def _shown(script: Path, pictures: list[Path]) -> list[str]:
    """A script's docstring, first sentence and rest, around its pictures."""
    text = ast.get_docstring(ast.parse(script.read_text()), clean=False) or script.stem
    first, _, rest = text.strip().partition("\n\n")
    title, name = " ".join(first.split()).rstrip("."), script.relative_to(ROOT)
    lines = ["", f"### {_escaped(title)}"]
    for picture in pictures:
        lines += ["", f"![{picture.stem}]({os.path.relpath(picture, MADE)})"]
    lines += ["", _markdown(rest)] if rest else []
    return [*lines, "", f"Made by [{name}]({os.path.relpath(script, MADE)})."]


def _markdown(text: str) -> str:
    """A docstring as Markdown: indented parts become code."""
    made = []
    for part in re.split(r"\n\s*\n", text):
        indented = all(line.startswith("    ") for line in part.splitlines())
        made.append(f"```text\n{inspect.cleandoc(part)}\n```" if indented else _escaped(part))
    return "\n\n".join(made)


def _escaped(text: str) -> str:
    """With nothing but code as mark-up."""
    parts = re.split(r"(``.*?``|`[^`]+`)", text)
    return "".join(part if i % 2 else re.sub(r"([*_<\[])", r"\\\1", part) for i, part in enumerate(parts))


# -------------------------------------------------------------------------------------------------------- the reference


#: Top-level modules that are commands: the page cli.md describes them.
COMMANDS = ("cli", "demo")


def public_modules() -> list[ModuleType]:
    """The package and the modules that users import: those of its top folder without an underscore.

    A package's ``__all__`` is its surface. The files inside are where the code lives, and have no pages.
    """
    import gossamer

    names = [module.name for module in pkgutil.iter_modules(gossamer.__path__)]
    public = [name for name in names if not name.startswith("_") and name not in COMMANDS]
    return [gossamer, *(importlib.import_module(f"gossamer.{name}") for name in public)]


def reference() -> dict[str, str]:
    """A page for each public module, by its name, and the page that lists them."""
    modules = public_modules()
    homes = {id(getattr(m, name)): f"{m.__name__}.{name}" for m in reversed(modules[1:]) for name in exported(m)}
    made = {module.__name__: _module_page(module, homes) for module in modules[1:]}
    made["gossamer"] = _first_page(modules, homes)
    return made


def exported(module: ModuleType) -> list[str]:
    """The public names of a module: its ``__all__`` without modules and the version."""
    names = [name for name in module.__all__ if not inspect.ismodule(getattr(module, name))]
    return [name for name in names if name != "__version__"]


def described(module: ModuleType, name: str) -> str:
    """The docstring of a public name, or the ``#:`` comment above a constant, in whichever file defines it."""
    thing = getattr(module, name)
    if inspect.isclass(thing) or inspect.isroutine(thing):
        return inspect.getdoc(thing) or ""
    inside = [m for key, m in sys.modules.items() if f"{key}.".startswith(f"{module.__name__}.")]
    for source in map(inspect.getsource, inside):
        comment = re.search(rf"((?:^#: .*\n)+){name}(?:: [^=\n]+)? = ", source, re.MULTILINE)
        if comment:
            return comment[1].replace("#: ", "").strip()
    return ""


def _first_line(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    return _escaped(" ".join(text.split("\n\n")[0].split())).replace("|", "\\|")


def _module_page(module: ModuleType, homes: dict[int, str]) -> str:
    lines = [f"# {module.__name__}", "", "```{eval-rst}", f".. automodule:: {module.__name__}", ""]
    for name in sorted(exported(module), key=lambda name: not inspect.isclass(getattr(module, name))):
        thing, full = getattr(module, name), f"{module.__name__}.{name}"
        if inspect.isclass(thing):  # a public base describes the members that it passes on
            public = [base.__name__ for base in thing.__mro__[1:] if id(base) in homes]
            lines += [f".. autoclass:: {full}", "   :members:"]
            lines += [f"   :inherited-members: {', '.join(public)}".rstrip(), ""]
        elif inspect.isroutine(thing):
            lines += [f".. autofunction:: {full}", ""]
        else:
            lines += [f".. py:data:: {full}", "", *(f"   {line}" for line in described(module, name).splitlines()), ""]
    return "\n".join([*lines, "```", ""])


def _first_page(modules: list[ModuleType], homes: dict[int, str]) -> str:
    top = modules[0]
    lines = ["# API reference", "", _first_line(top), "", "| module | |", "|---|---|"]
    lines += [f"| [{m.__name__}]({m.__name__}.md) | {_first_line(m)} |" for m in modules[1:]]
    lines += ["", "`gossamer` itself exports", "", "| name | |", "|---|---|"]
    for name in sorted(exported(top), key=str.lower):
        thing = getattr(top, name)
        lines += [f"| {{py:obj}}`gossamer.{name} <{homes[id(thing)]}>` | {_first_line(thing)} |"]
    names = [m.__name__ for m in modules[1:]]
    return "\n".join([*lines, "", "```{toctree}", ":hidden:", "", *names, "```", ""])


def _toctree(title: str, names: list[str]) -> str:
    return "\n".join(["", "", "```{toctree}", ":hidden:", f":caption: {title}", "", *names, "```", ""])
