"""What makes a release: the version in one place, bounds that can be tried, the contents of a wheel, pinned actions."""

import doctest
import importlib.util
import re
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import gossamer

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "tools"
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def load(name):
    """A module of tools/, which is no package."""
    if str(TOOLS) not in sys.path:
        sys.path.append(str(TOOLS))
    spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


dist, release, requirements = load("dist"), load("release"), load("requirements")


@pytest.mark.parametrize("module", [release, requirements], ids=lambda module: module.__name__)
def test_examples(module):
    """The examples in the docstrings are true."""
    tried = doctest.testmod(module)
    assert tried.attempted
    assert not tried.failed


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_bound_can_be_tried(extra):
    """Every requirement has a lowest version."""
    lines = requirements.lowest(requirements.requirements([extra]))
    assert all(re.fullmatch(r"[\w.\[\]-]+==[\d.]+(;.*)?", line) for line in lines)


def test_one_version():
    """The package says the version of its one file; the metadata and every other place take it from there."""
    assert dist.version() == gossamer.__version__
    assert not [problem for problem in release.problems() if "repeats" in problem]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone: git knows of no tags")
@pytest.mark.parametrize(
    ("number", "day", "rehearse", "told"),
    [
        ("7.0.0", "2027-01-31", False, None),
        ("7.0.0.dev0", "unreleased", True, None),
        ("7.0.0.dev0", "unreleased", False, "--rehearse"),
        ("7.0.0.dev0", "2027-01-31", True, "must be unreleased"),
        ("7.0.0", "2027-01-31", True, "end in .dev0"),
        ("7.0.0", "unreleased", False, "must have a date"),
        ("7.0.1", "2027-01-31", False, "must be 7.0.1. It is 7.0.0"),
        ("7.0", "2027-01-31", False, "three numbers"),
    ],
)
def test_version_and_changelog_fit(tmp_path, monkeypatch, number, day, rehearse, told):
    """A version in development is rehearsed under an unreleased heading; a release has a date and a stored file."""
    for name in release.ELSEWHERE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "CHANGELOG.md").write_text(f"## [7.0.0] - {day}\n\n## [6.0.0] - 2026-01-31\n")
    (tmp_path / "tests" / "data").mkdir(parents=True)
    (tmp_path / "tests" / "data" / f"store-{number}.gsm").write_text("")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "version", lambda: number)
    monkeypatch.setattr(release, "run", lambda *command, **options: "")
    monkeypatch.setattr(release, "broken_promises", lambda number: [])
    found = release.problems(rehearse)
    assert bool(found) == bool(told)
    assert any(told in problem for problem in found) or not told
    (tmp_path / "tests" / "data" / f"store-{number}.gsm").unlink()
    assert any("make_store" in problem for problem in release.problems(rehearse)) != rehearse


def test_old_paths_go_when_they_were_to_go():
    """An alias lives one minor release: a version that has outlived it cannot be released."""
    assert release.broken_promises("0.2.0") == []
    assert len(release.broken_promises("0.3.0")) == 1


def wheel(path, without=(), **others):
    """A file with what a wheel should have, but for some changes."""
    info = f"gossamer-{dist.version()}.dist-info"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = "".join(f"Provides-Extra: {extra}\n" for extra in EXTRAS)
    head = f"Metadata-Version: 2.4\nName: gossamer\nVersion: {dist.version()}\n"
    head += f"License-Expression: {project['license']}\nRequires-Python: {project['requires-python']}\n{extras}\n"
    files = {f"gossamer/{name}": "" for name in dist.tracked("src/gossamer")}
    files |= {"gossamer/_core.pyi": "", "gossamer/_core.abi3.so": "", f"{info}/RECORD": ""}
    files |= {f"{info}/METADATA": head + (ROOT / "README.md").read_text(), f"{info}/licenses/LICENSE": ""}
    files |= {f"{info}/entry_points.txt": "", f"{info}/WHEEL": "Tag: cp312-abi3-manylinux_2_28_x86_64\n"}
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, **others}.items():
            if name.rpartition("/")[2] not in without:
                archive.writestr(name, text)
    return path


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a clone: nobody knows which files belong to the package")
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, None),
        ({"without": ["py.typed"]}, "py.typed"),
        ({"without": ["_core.pyi"]}, "_core.pyi"),
        ({"without": ["LICENSE"]}, "LICENSE"),
        ({"without": ["_core.abi3.so"]}, "0 compiled modules"),
        ({"gossamer/notes.txt": ""}, "notes.txt"),
        ({"tests/test_wheel.py": ""}, "test_wheel.py"),
        ({"gossamer/_core.cpython-312.so": ""}, "2 compiled modules"),
        ({f"gossamer-{dist.version()}.dist-info/WHEEL": "Tag: cp312-abi3-linux_x86_64\n"}, "not repaired"),
        ({f"gossamer-{dist.version()}.dist-info/WHEEL": "Tag: cp312-cp312-macosx_11_0_arm64\n"}, "stable ABI"),
    ],
    ids=lambda case: str(case or "as it is"),
)
def test_a_wheel_is_looked_through(tmp_path, changes, told):
    """A wheel with a file too many or too few, for one Linux or for one Python only, is refused."""
    made = wheel(tmp_path / "some.whl", **changes)
    if told is None:
        dist.check_wheel(made)
    else:
        with pytest.raises(SystemExit, match=told):
            dist.check_wheel(made)


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.name)
def test_workflows_are_pinned(path):
    """Every action is a commit with its version beside it, and no workflow may write."""
    text = path.read_text()
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    assert all(re.search(r"@[0-9a-f]{40}$", action) and re.fullmatch(r" # v[\d.]+", note) for action, note in used)
    assert "permissions:\n  contents: read\n" in text
    assert not re.search(r": write|secrets\.", text)
