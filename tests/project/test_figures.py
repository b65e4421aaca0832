"""The figures of the NORMA and Herbster papers and of the claims without one: each quick version runs, and what it
measured obeys what it is about."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("norma", "herbster", "claims")
SCRIPTS = sorted(path for folder in FOLDERS for path in (ROOT / "experiments" / folder).glob("*.py"))


def load(path):
    """The script as a module; it puts the root of the repository on the path, which is taken off again."""
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location(f"figure_{path.parent.name}_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


# What the data of each script must be, by its name.


def check_fig2(module, data):
    for kind in module.KINDS:
        X, y = module.stream(kind, 300, 0)
        assert X.shape == (300, 2)
        assert set(y) == {-1.0, 1.0}
        for name, (ranges, _) in module.ALGORITHMS.items():
            runs = data[f"{kind}:{name}"].astype(int)
            assert (np.diff(runs, axis=1) >= 0).all()
            assert (runs[:, 0] >= 1).all()  # f = 0 on the first trial is a mistake
            assert (runs[:, -1] < 0.3 * data["trials"][-1]).all()  # all of them learn
            assert str(data[f"{kind}:{name}:tuned"]).split()[::2] == list(ranges)


def check_fig3(module, data):
    # rho moved by eta_t (nu - 1) on every alarm, by eta_t nu otherwise, from 0
    rates = 1 / np.sqrt(np.arange(1, int(data["trials"]) + 1))
    moved = data["nu"] * rates.sum() - rates[data["alarm_trials"] - 1].sum()
    np.testing.assert_allclose(moved, data["level"], rtol=1e-9)
    assert len(data["alarms"]) == min(50, len(data["alarm_trials"]))
    assert len(data["train"]) == len(data["test"]) == 50
    assert data["strangest_alone"].min() > 0.55  # farther from all other digits than any digit, 0.5


def check_cost(module, data):
    for name in module.KERNELS:
        dense, trees = data[f"{name}:dense"], data[f"{name}:trees"]
        assert (np.diff(dense[:, 0]) > 0).all()
        assert len(dense) == len(trees) == 4
        assert (dense > 0).all()
        assert (trees > 0).all()
    line = np.column_stack([10.0 ** np.arange(2, 6), 3e-6 * 10.0 ** (0.5 * np.arange(2, 6))])
    np.testing.assert_allclose(module.slope(line), (0.5, 3e-6))


def check_local_loss(module, data):
    good = [part for part in range(module.SEGMENTS) if part != module.NONSENSE]
    for task in module.TASKS:
        lost, bound = data[f"{task}:constrained"][:, good, -1], data[f"{task}:bound"][:, good]
        assert (lost <= bound).all()
        assert (lost > 0).all()
    # without the constraint, what came before the segment can make it lose more than the bound
    after = module.NONSENSE + 1
    assert (data["regression:free"][:, after, -1] > data["regression:bound"][:, after]).all()


def check_truncation(module, data):
    assert (data["gap:cut"] <= data["proposition"]).all()
    assert (data["gap:SILK"] <= data["tracking"]).all()
    assert (data["gap:cut"][:, 0] > 0.05 * data["proposition"][0]).all()  # and it is about something
    assert (data["mistakes:SILK"][:, 0] > data["mistakes:ILK"]).all()


def check_regret(module, data):
    for stream in module.STREAMS:
        for name in module.RULES:
            assert (data[f"{stream}:{name}"] <= data[f"{name}:bound"]).all()
            assert (data[f"{stream}:{name}"] > 0).all()  # the best function is better


def check_fixed_share(module, data):
    for stream in module.STREAMS:
        regret, bound = data[f"{stream}:mixture"], data[f"{stream}:bound"]
        assert (regret <= bound).all()
        assert (regret[:, -1] > 0).all()  # the best sequence, known afterwards, is better
        assert regret[-1, -1] > 0.3 * bound[-1, -1]
        assert regret[-1, 0] < 0  # every single expert is worse
        assert data[f"{stream}:without the share"][-1, -1] > regret[-1, -1]  # at full length, above the bound


def check_step_size(module, data):
    steps = data["steps"]
    for case in (":".join(case) for case in module.CASES):
        for name in ("ILK", "NORMA"):
            assert set(data[f"{case}:{name}:decay"]) <= set(module.DECAYS)
            assert module.price(data, case, name) >= 1
        if "Gaussian" in case:
            one, other = data[f"{case}:ILK"], data[f"{case}:NORMA"]
            if "hinge" in case:  # with steps too small for any margin to be reached, both do the same up to a factor
                np.testing.assert_array_equal(one[:, steps < 0.01], other[:, steps < 0.01])
            else:  # an explicit step beyond 2 / k(x, x) explodes
                assert other[:, steps > 2].mean() > 2 * one[:, steps > 2].mean()


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_quick_version(path, tmp_path):
    module = load(path)
    check = globals()[f"check_{path.stem}"]  # a new figure needs one
    picture = module.Figure(str(path), module.compute, module.draw).make(quick=True, out=tmp_path)
    assert picture == tmp_path / f"{path.stem}.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    with np.load(tmp_path / f"{path.stem}.npz") as data:
        check(module, {name: data[name] for name in data.files})


def test_the_digits_without_the_data(tmp_path, monkeypatch):
    monkeypatch.delenv("GOSSAMER_DATA", raising=False)
    module = load(ROOT / "experiments" / "norma" / "fig3.py")
    module.Figure(module.__file__, module.compute, module.draw).make(quick=True, out=tmp_path)
    with np.load(tmp_path / "fig3.npz") as data:
        assert str(data["name"]) == "digits"
        check_fig3(module, {name: data[name] for name in data.files})


def test_a_script_runs_by_itself_and_draws_again(tmp_path):
    path = ROOT / "experiments" / "herbster" / "local_loss.py"
    module = load(path)
    picture = module.Figure(str(path), module.compute, module.draw).make(quick=True, out=tmp_path)
    drawn, written = picture.read_bytes(), (tmp_path / "local_loss.npz").stat().st_mtime_ns
    picture.unlink()
    command = [sys.executable, str(path), "--quick", "--draw", "--out", str(tmp_path)]
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=True)
    assert picture.read_bytes() == drawn
    assert (tmp_path / "local_loss.npz").stat().st_mtime_ns == written


def test_the_committed_data_is_small():
    for path in SCRIPTS:
        assert path.with_suffix(".npz").stat().st_size < 300_000
        assert path.with_suffix(".png").stat().st_size < 250_000
