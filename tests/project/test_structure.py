"""The tree is the architecture: imports point one way, `__all__` is the public surface, and every part stands alone."""

import ast
import graphlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gossamer
from gossamer import _moved

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "gossamer"
FILES = sorted(SOURCE.rglob("*.py"))


def load_pages():
    """docs/pages.py, which makes the API pages; it needs no Sphinx."""
    spec = importlib.util.spec_from_file_location("site_pages", ROOT / "docs" / "pages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = load_pages()
PUBLIC = PAGES.public_modules()
NAMES = [(module, name) for module in PUBLIC for name in PAGES.exported(module)]


def lint_imports(path=None):
    """Run import-linter with the contracts of pyproject.toml; on the package in ``path``, if given."""
    command = "import sys; from importlinter.cli import lint_imports_command; sys.exit(lint_imports_command())"
    environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
    options = ["--no-cache", "--config", str(ROOT / "pyproject.toml")]
    run = [sys.executable, "-c", command, *options]
    return subprocess.run(run, cwd=path or ROOT, env=environment, capture_output=True, text=True)


def test_imports_point_down():
    """No module imports from a layer above its own, and every module has a layer."""
    result = lint_imports()
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("kernels/base.py", "from gossamer import learner"),
        ("_engine/loop.py", "def late():\n    from gossamer.estimators import SILKClassifier"),
        ("kernels/base.py", "from gossamer.losses import Hinge"),
        ("attic.py", ""),
    ],
)
def test_a_wrong_import_is_found(tmp_path, file, line):
    """An import upwards, also inside a function; one of a neighbour; and a module without a layer."""
    copy = tmp_path / "gossamer"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    with open(copy / file, "a") as end:
        end.write(f"\n{line}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout
    assert file.removesuffix(".py").replace("/", ".") in result.stdout


def test_the_picture_shows_the_layers():
    """docs/layers.svg, made by docs/draw_layers.py, has every public module and the engine."""
    picture = (ROOT / "docs" / "layers.svg").read_text()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    modules = {name for layer in contract["layers"] for name in layer.split(" | ")}
    assert modules == {module.name for module in pkgutil.iter_modules([str(SOURCE)])} - {"_core"}
    drawn = {name for name in modules if name == "_engine" or name[0] != "_"} - {"exceptions"}
    assert [name for name in sorted(drawn) if not re.search(rf"\b{name}\b", picture)] == []


CODE = (".py", ".hpp", ".cpp")
SOURCES = [path for folder in ("src", "core") for path in sorted((ROOT / folder).rglob("*")) if path.suffix in CODE]


def test_long_files_say_why():
    """A file of more than 400 lines has a sentence at its top that says why."""
    tests = [path for path in sorted((ROOT / "tests").rglob("*")) if path.suffix in CODE]
    long = [path for path in [*SOURCES, *tests] if path.read_text().count("\n") > 400]
    silent = [path for path in long if "The file is long because" not in path.read_text()[:2000]]
    assert [str(path.relative_to(ROOT)) for path in silent] == []


def test_files_that_are_named_exist():
    """A Python or C++ file that a comment, a docstring or a page names is there, under that name."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
    folders = [ROOT / name for name in (".", "src/gossamer", "core", "tests", "benchmarks", "docs", "src", "examples")]
    names = {path.name for folder in folders[1:] for path in folder.rglob("*") if path.suffix in CODE}
    names |= {path.name for path in ROOT.glob("experiments/**/*.py")} | {"figN.py", "mylosses.py"}  # names of examples
    made = {f"parts/{kind}.hpp" for kind in ("kernels", "losses", "rules", "budgets")}  # CMake writes these
    for path in [*SOURCES, *pages]:
        for name in re.findall(r"[\w./]*\w\.(?:py|hpp|cpp)\b", path.read_text()):
            there = any((folder / name).exists() for folder in [*folders, path.parent])
            assert there or name in made or ("/" not in name and name in names), f"{path.relative_to(ROOT)}: {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_modules_import_modules(path):
    """Inside the package a name is imported from its module: `from gossamer import Name` would hide the direction."""
    modules = {module.name for module in pkgutil.iter_modules([str(SOURCE)])} | {"_core", "__version__"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "gossamer":
            assert {alias.name for alias in node.names} <= modules


def test_the_top_folder_says_what_is_public():
    """A module is internal by one underscore at the top folder; every other one has an `__all__`, and a page."""
    top = {module.name for module in pkgutil.iter_modules(gossamer.__path__) if not module.name.startswith("_")}
    assert {module.__name__ for module in PUBLIC} == {"gossamer"} | {f"gossamer.{n}" for n in top - {*PAGES.COMMANDS}}
    assert PAGES.reference().keys() == {module.__name__ for module in PUBLIC}
    for module in PUBLIC:
        assert sorted(set(module.__all__)) == sorted(module.__all__)


def test_the_pages_show_the_public_names():
    """The page of a module shows the names of its `__all__`, all of them and nothing else."""
    for module in PUBLIC[1:]:
        text = PAGES.reference()[module.__name__]
        shown = re.findall(r"^\.\. (?:auto(?:class|function)|py:data):: (\S+)$", text, re.MULTILINE)
        assert sorted(shown) == sorted(f"{module.__name__}.{name}" for name in PAGES.exported(module))
    first = PAGES.reference()["gossamer"]
    assert re.findall(r"`gossamer\.(\w+) <gossamer", first) == sorted(PAGES.exported(gossamer), key=str.lower)
    assert len(NAMES) > 150


@pytest.mark.parametrize(("module", "name"), NAMES, ids=lambda case: getattr(case, "__name__", case))
def test_every_public_name_is_described(module, name):
    """A class or a function has a docstring of its own, a constant a comment that starts with `#:`."""
    thing = getattr(module, name)
    text = vars(thing).get("__doc__") if inspect.isclass(thing) else PAGES.described(module, name)
    assert text, f"{module.__name__}.{name}"
    assert not text.startswith(f"{name}(")  # a dataclass without a docstring gets its signature


def test_the_changelog_has_every_moved_import():
    """Its table is that of the aliases, and says in which release they go."""
    page = (ROOT / "CHANGELOG.md").read_text()
    table = page.split("### Deprecated\n")[1].split("\n## ")[0]
    assert "until 0.3" in table
    rows = re.findall(r"^\| `gossamer\.(\w+)` \| (.*) \|$", table, re.MULTILINE)
    assert {old: tuple(re.findall(r"`gossamer\.([\w.]+)`", homes)) for old, homes in rows} == _moved.MOVED


@pytest.mark.parametrize("old", _moved.MOVED)
def test_moved_imports_work(old):
    """An old path imports with a warning that names the new one, and has the public names of every new home."""
    sys.modules.pop(f"gossamer.{old}", None)
    with pytest.warns(DeprecationWarning, match=re.escape(f"moved to gossamer.{_moved.MOVED[old][0]}; ")):
        module = importlib.import_module(f"gossamer.{old}")
    for home in _moved.MOVED[old]:
        there = importlib.import_module(f"gossamer.{home}")
        own = [name for name, thing in vars(there).items() if getattr(thing, "__module__", "") == there.__name__]
        assert [name for name in own if name[0] != "_" and getattr(module, name) is not getattr(there, name)] == []


def test_array_types_are_defined_once():
    """`_typing` defines the array types, and only it names them by what NumPy calls them."""
    for path in FILES:
        if path.name != "_typing.py":
            assert "NDArray" not in path.read_text(), path


BLOCKED = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"river", "cv2", "pyspark", "matplotlib", "pandas", "polars", "pyarrow", "dask"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_parts_need_no_extras():
    """Where river, OpenCV, Spark and the other extras are missing, all tests of the parts and of the engine can be
    collected, and those of the kernels' formulas pass; `make test-bare` runs all of them in such an environment."""
    folders = re.search(r"^BARE := (.*) tests/project", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split()
    options = ["-q", "-x", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", "formulas or algebra or kernels_of"]
    run = [sys.executable, "-c", BLOCKED, *options, *(str(ROOT / folder) for folder in folders)]
    result = subprocess.run(run, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-1000:]
    assert "skipped" not in result.stdout
    assert "passed" in result.stdout


#: The folders of the core, top to bottom; those of one layer may include each other. A source file that chooses an
#: instruction set includes what it chooses from, in any layer: nothing includes it.
CORE_LAYERS = [
    {"python"}, {"bank", "features", "video", "io", "mixture", "rows"},
    {"engine", "parts", "trees", "certainty"}, {"simd"},
]  # fmt: skip
INCLUDE = re.compile(r'^#include (["<])(.*)[">]', re.MULTILINE)


def test_includes_of_the_core_point_down():
    """No header includes one of a layer above its own, or itself by way of others; Python stays at the border."""
    layer = {folder: number for number, folders in enumerate(CORE_LAYERS) for folder in folders}
    edges = {}
    for file in sorted((ROOT / "core").rglob("*.[hc]pp")):
        name, found = file.relative_to(ROOT / "core").as_posix(), INCLUDE.findall(file.read_text())
        edges[name] = [other for sign, other in found if sign == '"']
        own = layer[name.split("/")[0]]
        if file.suffix == ".hpp":
            above = [other for other in edges[name] if layer[other.split("/")[0]] < own]
            assert not above, f"{name} includes {above}"
        assert own == 0 or not [other for _, other in found if "nanobind" in other or other == "Python.h"], name
    for kind in ("kernels", "losses", "rules", "budgets"):  # made by CMake: it includes all files of the folder
        edges[f"parts/{kind}.hpp"] = [name for name in edges if name.startswith(f"parts/{kind}/")]
    assert tuple(graphlib.TopologicalSorter(edges).static_order())  # CycleError names a cycle
