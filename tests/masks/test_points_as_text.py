"""Labels of points as text: Semantic3D's ``.labels``, one integer per line."""

from __future__ import annotations

import numpy as np
import pytest

import segiou
from segiou import read_mask
from segiou.masks import MaskError


def test_each_line_is_a_point(tmp_path):
    rng = np.random.default_rng(0)
    truth, pred = rng.integers(0, 9, 500), rng.integers(1, 9, 500)
    for side, labels in (("truth", truth), ("pred", pred)):
        (tmp_path / side).mkdir()
        for name in ("bildstein_station1_xyz_intensity_rgb", "sg27_station2"):
            np.savetxt(tmp_path / side / f"{name}.labels", labels, "%d")
    assert read_mask(tmp_path / "truth" / "sg27_station2.labels").tolist() == [truth.tolist()]
    # The points themselves are text as well.
    (tmp_path / "truth" / "sg27_station2.txt").write_text("1.5 2.5 3.5 -1000 10 20 30\n" * 500)
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels="1-8", ignore=0)
    kept = truth > 0
    each = [((truth == c) & kept, (pred == c) & kept) for c in range(1, 9)]
    expected = [(t & p).sum() / (t | p).sum() for t, p in each]
    assert [row.iou for row in run.report().classes] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\n2\nx\n", "is not text with one integer per line"),
        ("1.5\n2\n", "is not text with one integer per line"),
        ("1 2\n3 4\n", "has 2 numbers per line; expected one label"),
        ("# 1\n", "is not text with one integer per line"),
    ],
)
def test_other_text_is_refused(tmp_path, text, message):
    path = tmp_path / "a.labels"
    path.write_text(text)
    with pytest.raises(MaskError, match=message):
        read_mask(path)
