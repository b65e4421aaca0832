"""The figures of Cheng et al. (2006): the quick version of each runs, from the command line, and says what it must."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

SCRIPTS = Path(__file__).parents[2] / "experiments" / "ilk"


def make(name, out):
    """The data of a figure, made without data sets: digits of scikit-learn and made-up frames stand in. Its picture has
    lines and words on it, and all numbers that were written are finite, or there was nothing to find."""
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--quick", "--out", str(out)]
    environment = {key: value for key, value in os.environ.items() if key != "GOSSAMER_DATA"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=out)
    assert done.returncode == 0, done.stderr
    picture = plt.imread(out / f"{name}.png")[:, :, :3]
    assert 0.02 < (picture.min(axis=2) < 0.9).mean() < 0.6
    assert min(picture.shape[:2]) > 500
    assert len(np.unique((255 * picture).astype(int).reshape(-1, 3), axis=0)) > 50
    with np.load(out / f"{name}.npz") as stored:
        data = {key: stored[key] for key in stored.files}
    numbers = [values for key, values in data.items() if values.dtype.kind == "f" and not key.endswith("/found")]
    assert all(np.isfinite(values).all() for values in numbers)
    return data


def test_every_figure_is_tested():
    assert {path.stem for path in SCRIPTS.glob("fig*.py")} == {"fig1", "fig2", "fig3", "fig4"}


def test_fig1_forgetting_pays_on_the_turning_circle(tmp_path):
    """Mistakes are between none and chance; each algorithm that forgets beats the same without, on every stream."""
    data = make("fig1", tmp_path)
    names = data["names"].tolist()
    for stream in ("rotating", "box"):
        mistakes = data[f"{stream}_mistakes"]
        assert mistakes.shape[:2] == (len(names), 2)
        assert (mistakes > 0).all()
        assert (mistakes.mean(axis=2) < 700).all()
        assert data[f"{stream}_tried"].shape[0] == len(names)
        assert (np.diff(data[f"{stream}_curves"], axis=1) >= 0).all()
        assert np.allclose(data[f"{stream}_curves"][:, -1], mistakes[:, 0].mean(axis=1))
    turning = dict(zip(names, data["rotating_mistakes"][:, 0], strict=True))
    assert (turning["ILK"] < turning["ILK(0)"]).all()
    assert (turning["NORMA"] < turning["NORMA(0)"]).all()
    assert np.array_equal(turning["SILK"], turning["SILK by |a|"])  # k(x, x) = 1: the two weigh alike


def test_fig2_the_switch_is_seen_and_survived(tmp_path):
    """When the light goes, nearly all is new to the papers' learners; later it is not; before it, 1 % is."""
    data = make("fig2", tmp_path)
    for name in ("SILK", "truncated NORMA"):
        false = data[f"{name}/false"]
        assert 0 < false[:100].mean() < 0.011
        assert false[100] > 0.5
        assert false[-50:].mean() < 0.1
        roc = data[f"{name}/roc"]
        assert (np.diff(roc) >= 0).all()
        assert np.allclose(roc[:, [0, -1]], [[0, 1], [0, 1]])
        assert 0.8 < data[f"{name}/area"] <= 1


def test_fig3_masks_find_what_moves(tmp_path):
    """Masks of the frames drawn overlap ground truth better than chance, and F agrees with precision and recall."""
    data = make("fig3", tmp_path)
    for name in ("SILK", "truncated NORMA", "MOG2"):
        f, precision, recall = data[f"{name}/f"]
        assert f == pytest.approx(2 * precision * recall / (precision + recall))
        new = data["truth"] == 255
        assert data[f"{name}/masks"][new].mean() > data[f"{name}/masks"][~new].mean() + 0.2


def test_fig4_learns_and_larger_buffers_help(tmp_path):
    """Errors fall from the first rows to the last, far below chance, and SILK's with the size of its buffer."""
    data = make("fig4", tmp_path)
    for key, chance in (("binary", 0.5), ("ten", 0.9)):
        curves, finals = data[f"{key}_curves"], data[f"{key}_finals"]
        assert np.allclose(curves[:, -1], finals.mean(axis=0))
        assert (curves[:, -1] < curves[:, 0]).all()
        assert (finals < chance / 2).all()
        small, *_, large = np.moveaxis(data[f"{key}_buffer_finals"], 2, 0)
        assert (large < small).all()
        assert len(set(data[f"{key}_tries"][1:].tolist())) == 1
