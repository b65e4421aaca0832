"""How the package starts: names are imported when they are asked for, and Ctrl-C before the work is silent."""

import ast
import importlib
import pkgutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gossamer

HEAVY = ("numpy", "scipy", "sklearn", "pandas", "matplotlib")
COMMANDS = ("run", "predict", "inspect", "compare", "parts", "video", "serve", "demo")


def python(*arguments):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], *([name, "--help"] for name in COMMANDS),
                                       ["run", "x", "--no-such-option"]])  # fmt: skip
def test_help_and_version_import_nothing_heavy(arguments):
    """None of NumPy, SciPy and scikit-learn, which take a second and more; so it is told at once."""
    code = (f"import sys; sys.argv = ['gossamer', *{arguments!r}]; from gossamer.cli import main\n"
            f"try: main()\nexcept SystemExit: pass\nassert not {set(HEAVY)!r} & set(sys.modules)")  # fmt: skip
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_version_is_told_at_once():
    """In less than 0.3 s of processor time, Python's own start included: others may keep the machine busy."""
    resource = pytest.importorskip("resource")
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert python("-m", "gossamer", "--version").stdout == f"gossamer {gossamer.__version__}\n"
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.3


def test_every_name_is_there_and_known_to_type_checkers():
    """``__all__``, ``dir``, the imports that type checkers see and those at run time name the same things."""
    tree = ast.parse(Path(gossamer.__file__).read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If) and node.test.id == "TYPE_CHECKING")
    seen = {alias.asname or alias.name: (line.module, alias.name) for line in typed.body for alias in line.names}
    assert {*seen, "__version__"} == set(gossamer.__all__) <= set(dir(gossamer))
    for name, (module, inner) in seen.items():
        assert getattr(gossamer, name) is getattr(importlib.import_module(module), inner)
    assert python("-c", "from gossamer import *; SILKClassifier, load, kernels, from_bytes").returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'SILKClasifier'"):
        gossamer.SILKClasifier  # noqa: B018
    assert not hasattr(gossamer, "__wrapped__")


def test_modules_are_attributes():
    """``import gossamer`` is enough for ``gossamer.evaluate`` and every other module, in a fresh process too."""
    optional = ("river", "spark", "video", "__main__")
    names = [found.name for found in pkgutil.iter_modules(gossamer.__path__) if found.name not in optional]
    assert len(names) > 20
    done = python("-c", f"import gossamer\nfor name in {names!r}: getattr(gossamer, name)")
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="signals are of POSIX")
@pytest.mark.parametrize("module", ["gossamer.cli.run", "numpy._core", "sklearn.base", "gossamer._core"])
def test_an_interrupt_during_imports_is_silent(module, tmp_path):
    """Ctrl-C before the work begins, while any module is imported: not a word, and the shell sees the signal."""
    data = tmp_path / "d.csv"
    data.write_text("a,y\n" + "1,0\n2,1\n" * 100)
    interrupt = f"""
import os, signal, sys
class Interrupt:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["gossamer", "run", {str(data)!r}, "--target", "y", "--quiet"]
from gossamer.cli import main
sys.exit(main())
"""
    done = python("-c", interrupt)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == done.stdout == ""
