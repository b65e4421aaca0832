"""A package that was installed works: it learns, saves, loads, and runs from the shell.

python tests/smoke.py      # needs nothing but the package; `make dist` runs it in empty environments
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import gossamer
from gossamer import SILKClassifier, _core
from gossamer.kernels import Gaussian
from gossamer.synthetic import rotating_xor


def learn(folder: Path) -> None:
    """A drifting stream is followed, in compiled code, and a stored model goes on to the bit."""
    X, y = rotating_xor(2000, seed=0, turns=1)
    model = SILKClassifier(Gaussian(gamma=2.0), C=0.3, reg=0.01, budget=100)
    scores = model.predict_learn(X[:1000], y[:1000])
    errors = float(((scores[200:] >= 0) != (y[200:1000] > 0)).mean())
    assert errors < 0.15, errors
    assert model.learner_.backend.startswith("native"), model.learner_.backend
    model.save(folder / "model.gsm")
    loaded = gossamer.load(folder / "model.gsm")
    assert np.array_equal(loaded.predict_learn(X[1000:], y[1000:]), model.predict_learn(X[1000:], y[1000:]))


def shell(folder: Path) -> None:
    """`gossamer run` learns a file, and `gossamer predict` uses what it saved."""
    X, y = rotating_xor(1500, seed=1, turns=1)
    rows = [f"{a:.6f},{b:.6f},{'right' if label > 0 else 'left'}" for (a, b), label in zip(X, y, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["a,b,side", *rows]) + "\n")
    command = Path(sys.executable).parent / "gossamer"
    run = ["run", "rows.csv", "--target", "side", "--save", "shell.gsm", "--out", "learned.csv"]
    for arguments in (["--version"], run, ["predict", "shell.gsm", "rows.csv", "--out", "predicted.csv"]):
        subprocess.run([command, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    for name in ("learned.csv", "predicted.csv"):
        assert len((folder / name).read_text().splitlines()) == 1 + len(rows), name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        learn(Path(place))
        shell(Path(place))
    where = Path(gossamer.__file__).parent
    print(f"smoke: passed, gossamer {gossamer.__version__}, code path {_core.isa()}, {where.parent.name}")
