"""The picture of the weights of a mixture."""

from dataclasses import dataclass

import numpy as np
import pytest

from gossamer import plots

pytest.importorskip("matplotlib")


@dataclass(frozen=True)
class Two:
    speed: float
    shape: str


HISTORY = [
    (10, [Two(1.0, "a"), Two(0.5, "a")], [0.75, 0.25]),
    (20, [Two(0.5, "a"), Two(0.5, "b"), Two(1.0, "a")], np.array([0.5, 0.3, 0.2])),
]


def heights(axes):
    """The height of each band at each look, from the picture itself."""
    tops = []
    for band in axes.collections:
        points = band.get_paths()[0].vertices
        tops.append([points[points[:, 0] == row, 1].max() - points[points[:, 0] == row, 1].min() for row in (10, 20)])
    return np.array(tops)


def test_a_panel_for_each_setting_and_a_band_for_each_value(tmp_path):
    figure = plots.weights(HISTORY, tmp_path / "weights.png", title="weights")
    assert (tmp_path / "weights.png").read_bytes().startswith(b"\x89PNG")
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["speed", "shape"]
    np.testing.assert_allclose(heights(figure.axes[0]), [[25, 80], [75, 20]])
    np.testing.assert_allclose(heights(figure.axes[1]), [[100, 70], [0, 30]], atol=1e-9)
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["1", "0.5"]
    assert len(plots.weights(HISTORY, by=["shape"]).axes) == 1


def test_experts_without_settings_have_one_panel():
    figure = plots.weights([(10, ["slow", "fast"], [0.9, 0.1]), (20, ["fast", "slow"], [0.6, 0.4])])
    np.testing.assert_allclose(heights(figure.axes[0]), [[90, 40], [10, 60]])


@pytest.mark.parametrize(
    ("history", "by", "rule"),
    [
        ([], None, "at least one look"), ([(1, ["a"], [0.5, 0.5])], None, "a weight for each expert"),
        ([(2, ["a"], [1.0]), (2, ["a"], [1.0])], None, "rows that ascend"), (HISTORY, ["colour"], "speed.*shape"),
    ],
)  # fmt: skip
def test_bad_looks_are_named(history, by, rule):
    with pytest.raises(ValueError, match=rf"The '(history|by)' parameter of weights must be .*{rule}"):
        plots.weights(history, by=by)
