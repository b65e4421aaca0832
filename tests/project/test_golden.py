"""The golden file: the same hashes in every process and for every split into batches; changes are found."""

import json
import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "golden.py"
#: A few cases of the engine whose scores do not depend on the split: one column, compiled code.
ENGINE = ["--groups", "engine", "--only", "^engine/native/float../Gaussian/(Hinge|Squared)/(Implicit|Perceptron)/"]
SOME = "store-v1|KernelPerceptron/two/bud|compare, settings"
OTHERS = ["--groups", "files", "estimators", "commands", "--only", SOME]


def golden(*arguments):
    environment = {**os.environ, "GOSSAMER_ISA": "baseline"}  # any machine has it
    return subprocess.run(
        [sys.executable, str(SCRIPT), *map(str, arguments)], capture_output=True, text=True, env=environment
    )  # fmt: skip


def make(path, options):
    made = golden("make", path, *options)
    assert made.returncode == 0, made.stderr
    return json.loads(path.read_text())


def test_the_same_in_another_process(tmp_path):
    hashes = make(tmp_path / "golden.json", OTHERS)
    assert {name.split("/")[0] for name in hashes} == {"files", "estimators", "commands"}
    compared = golden("compare", tmp_path / "golden.json", *OTHERS)
    assert compared.returncode == 0, compared.stdout + compared.stderr
    assert f"{len(hashes)} equal, 0 differs, 0 missing, 0 new" in compared.stdout


def test_changes_are_told_and_the_split_is_none(tmp_path):
    """Of some dozen cases, cut into other batches, only those differ whose hashes were changed."""
    path = tmp_path / "golden.json"
    hashes = make(path, ENGINE)
    assert len(hashes) > 40
    assert len(set(hashes.values())) > 40
    changed, new, *_ = hashes
    missing = changed + " of old"
    rest = {name: value for name, value in hashes.items() if name != new}
    path.write_text(json.dumps({**rest, changed: "0" * 16, missing: "0" * 16}))
    compared = golden("compare", path, *ENGINE, "--split", 1)
    assert compared.returncode == 1, compared.stderr
    *told, counts = compared.stdout.splitlines()
    assert told == [f"differs: {changed}", f"missing: {missing}", f"new: {new}"]
    assert counts == f"{len(hashes) - 2} equal, 1 differs, 1 missing, 1 new"
