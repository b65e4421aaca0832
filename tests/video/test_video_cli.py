"""``gossamer video`` on frames made here: folders, zips and videos in, masks, table, sheet and scores out."""

import csv
import re
import zipfile

import cv2
import numpy as np
import pytest

from gossamer.cli import main
from gossamer.video import BackgroundSubtractor, frames


@pytest.fixture
def clip(tmp_path):
    """CDnet's layout: a bright square that crosses a grey scene, from frame 21 on."""
    rng = np.random.default_rng(0)
    for folder in ("input", "groundtruth"):
        (tmp_path / "clip" / folder).mkdir(parents=True)
    scene = rng.integers(60, 140, (48, 64, 3))
    for t in range(1, 41):
        frame = np.clip(scene + rng.normal(0, 2, scene.shape), 0, 255).astype(np.uint8)
        truth = np.zeros((48, 64), np.uint8)
        truth[:4] = 85
        if t > 20:
            frame[16:32, t : t + 16], truth[16:32, t : t + 16] = (30, 60, 250), 255
        cv2.imwrite(str(tmp_path / "clip" / "input" / f"in{t:06d}.png"), frame)
        cv2.imwrite(str(tmp_path / "clip" / "groundtruth" / f"gt{t:06d}.png"), truth)
    return tmp_path / "clip"


def test_everything_at_once(clip, tmp_path, capsys):
    out = {name: tmp_path / name for name in ("masks.avi", "overlay", "stats.csv", "sheet.png", "street.gsm")}
    arguments = ["video", str(clip), "--evaluate", str(clip), "--out", str(out["masks.avi"]), "--threads", "1"]
    arguments += ["--overlay", str(out["overlay"]), "--stats", str(out["stats.csv"])]
    assert main([*arguments, "--preview", str(out["sheet.png"]), "--save", str(out["street.gsm"])]) == 0
    text = capsys.readouterr().out
    assert text.startswith("40 frames")
    assert "40 frames with ground truth" in text
    assert float(text.split("F ")[1].split(",")[0]) > 0.9
    assert float(text.split("scores ")[1]) > 0.95  # the first frame is all new
    with open(out["stats.csv"]) as file:
        rows = list(csv.DictReader(file))
    assert [int(row["frame"]) for row in rows] == list(range(1, 41))
    assert float(rows[9]["foreground"]) == 0
    assert 0.05 < float(rows[30]["foreground"]) < 0.12
    assert len(list(frames.frames(out["masks.avi"]))) == 40
    assert len(list(out["overlay"].glob("*.png"))) == 40
    assert cv2.imread(str(out["sheet.png"])).shape[1] == 960
    assert BackgroundSubtractor.load(out["street.gsm"]).state()["frames"] == 40


def test_a_zip_is_its_folder(clip, tmp_path):
    archive = tmp_path / "clip.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in clip.rglob("*.png"):
            file.write(path, f"deep/clip/{path.relative_to(clip)}")
    folder, zipped = list(frames.frames(clip)), list(frames.frames(archive))
    assert len(folder) == len(zipped) == 40
    assert all(np.array_equal(one[1], other[1]) for one, other in zip(folder, zipped, strict=True))
    assert frames.truths(archive).keys() == frames.truths(clip).keys() == set(range(1, 41))
    assert np.array_equal(frames.truths(archive)[25](), frames.truths(clip)[25]())


def test_saved_and_gone_on(clip, tmp_path):
    """Two runs over halves, the second with what the first has saved, give the masks of one run."""
    half, whole = str(tmp_path / "half.gsm"), tmp_path / "whole"
    assert main(["video", str(clip), "--out", str(whole)]) == 0
    assert main(["video", str(clip), "--last", "25", "--save", half]) == 0
    assert main(["video", str(clip), "--first", "26", "--load", half, "--out", str(tmp_path / "rest")]) == 0
    for t in range(1, 16):
        one, other = whole / f"{25 + t:06d}.png", tmp_path / "rest" / f"{t:06d}.png"
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.parametrize(
    "arguments",
    [["nothing"], ["."], ["clip", "--patience", "0"], ["clip", "--median", "2"], ["clip", "--evaluate", "nothing"],
     ["clip", "--first", "99"], ["clip", "--load", "clip/input/in000001.png"], ["clip", "--out", "masks.txt"]],
    ids=" ".join,
)  # fmt: skip
def test_errors_are_told_in_one_line(clip, arguments, monkeypatch, capfd):
    monkeypatch.chdir(clip / "groundtruth" if arguments == ["."] else clip.parent)
    if arguments == ["."]:
        for path in (clip / "groundtruth").glob("*.png"):
            path.unlink()
    assert main(["video", *arguments]) in (1, 2)
    told = capfd.readouterr().err.splitlines()[-1]
    assert re.match(r"gossamer: .*(must be|no such)", told), told
