"""Without its extras the package imports, and whatever needs one says in a sentence which.

`make test-bare` runs this where the extras are missing; here they are hidden.
"""

import ast
import importlib
import importlib.util
import io
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import gossamer
from gossamer import serve, spark
from gossamer.plots import new_figure
from gossamer.streams import open_stream
from gossamer.video.frames import frames

ROOT = Path(__file__).parents[2]
SOURCE = Path(gossamer.__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: The distribution of a module, where they have different names.
DISTRIBUTIONS = {"cv2": "opencv-python-headless", "sklearn": "scikit-learn", "google": "protobuf"}

#: How a user meets each optional module: what fails without it. pandas is also needed for frames, by those who have it.
USES = {
    "matplotlib": lambda: new_figure(1, 1),
    "cv2": lambda: next(frames("clip.mp4")),
    "river": lambda: importlib.import_module("gossamer.river"),
    "pyarrow": lambda: open_stream(io.BytesIO(b"PAR1"), format="parquet"),
    "pyspark": spark.session,
    "pandas": spark.session,
    "google": spark.session,
    "uvicorn": lambda: serve.Background("data"),
    "httptools": lambda: serve.Background("data"),
    "msgspec": lambda: serve.Background("data"),
}

#: Hides the modules named in the first argument, then runs the program in the second.
HIDDEN = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
exec(sys.argv[2])
"""


def name_of(requirement):
    """The distribution that a requirement asks for, in lower case."""
    return re.match(r"[\w.-]+", requirement)[0].lower()


def imported(path):
    """The modules outside the package and the standard library that a file imports, at its top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) == "_checks.extra":
            names = [node.args[0].value]
        found |= {name.partition(".")[0] for name in names}
    return found - sys.stdlib_module_names - {"gossamer"}


NEEDED = set().union(*(imported(path) for path in SOURCE.rglob("*.py")))
REQUIRED = {name_of(requirement) for requirement in PROJECT["dependencies"]}
OPTIONAL = sorted(module for module in NEEDED if DISTRIBUTIONS.get(module, module) not in REQUIRED)


def run(hidden, program, folder):
    """Run a program where some modules are missing."""
    command = [sys.executable, "-W", "error", "-c", HIDDEN, ",".join(hidden), program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def test_every_import_is_declared():
    """What is imported anywhere is a dependency or in an extra, and every optional module is in the table above."""
    declared = REQUIRED | {name_of(one) for extra in PROJECT["optional-dependencies"].values() for one in extra}
    assert {DISTRIBUTIONS.get(module, module) for module in NEEDED} <= declared
    assert set(OPTIONAL) == {*USES}


def test_imports_without_extras(tmp_path):
    """Every module imports without any extra, but gossamer.river, whose classes are river's."""
    modules = [f"gossamer.{module.name}" for module in pkgutil.iter_modules([str(SOURCE)])]
    modules = [name for name in modules if name not in ("gossamer.river", "gossamer.__main__")]
    result = run(OPTIONAL, f"import importlib; list(map(importlib.import_module, {modules!r}))", tmp_path)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("module", USES)
def test_a_missing_extra_is_named(monkeypatch, module):
    """One sentence: who needs what, and how to install it; the extra named there does install it."""
    for name in [name for name in sys.modules if name.startswith("gossamer.river") or name.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"^[\w. ]+ needs \w+: pip install 'gossamer\[\w+\]'\.$") as error:
        USES[module]()
    missing, extra = re.search(r"needs (\w+): .*\[(\w+)\]", str(error.value)).groups()
    assert error.value.name == missing
    assert DISTRIBUTIONS.get(missing, missing) in map(name_of, PROJECT["optional-dependencies"][extra])
    assert missing == module or importlib.util.find_spec(missing) is None


def test_the_shell_names_it_too(tmp_path):
    """The commands tell the same sentence, in one line and without a traceback."""
    (tmp_path / "rows.parquet").write_bytes(b"PAR1")
    program = "import sys; from gossamer.cli import main; sys.exit(main(['run', 'rows.parquet', '--target', 'y']))"
    result = run(["pyarrow", "pandas"], program, tmp_path)  # pandas 2.2.0 warns where pyarrow is missing
    assert result.returncode != 0
    assert result.stderr.splitlines() == ["gossamer: Parquet needs pyarrow: pip install 'gossamer[io]'."]


def test_no_private_import():
    """Names with an underscore belong to their library: neither scikit-learn's nor another's are used. (``_thread`` is
    a documented module of the standard library.)"""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and not node.module.startswith("gossamer"):
                names = [*node.module.split("."), *(alias.name for alias in node.names)]
                found += [f"{path.name}: {node.module}" for name in names if name[0] == "_" and name[:2] != "__"]
    assert [name for name in found if not name.endswith(": _thread")] == []


def test_the_extras_of_tests_have_the_bounds_of_the_others():
    """A dependency that is named in several extras has the same lowest version in each."""
    bounds = {}
    for extra in PROJECT["optional-dependencies"].values():
        for requirement in extra:
            bounds.setdefault(name_of(requirement), set()).add(requirement.removeprefix(name_of(requirement)))
    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}
