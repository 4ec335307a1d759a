"""What segiou.explore takes, refuses, and writes; tests/browser drives it."""

import json
import re

import numpy as np
import pytest

import segiou


def masks_of(explorer):
    found = re.search(
        r'<script type="application/json" id="masks">(.*?)</script>', explorer.to_html()
    )
    return json.loads(found[1])


def test_masks_become_runs_of_classes():
    found = masks_of(
        segiou.explore([[3, 3, 9], [9, 9, 0]], [[3, 9, 9], [1, 9, 9]], labels=None, ignore=0)
    )
    assert found["names"] == ["1", "3", "9"]
    assert found["size"] == [3, 2]
    assert found["truth"] == [1, 2, 2, 3, 3, 1]
    assert found["pred"] == [1, 1, 2, 2, 0, 1, 2, 2]


def test_labels_say_what_is_a_class_and_what_is_in_the_mean():
    found = masks_of(segiou.explore([[0, 1]], [[1, 5]], labels=["void", "car"], exclude="void"))
    assert found["include"] == [False, True]
    assert found["pred"] == [1, 1, 2, 1], "5 is no class"


def test_names_cannot_leave_their_place():
    page = segiou.explore([[0]], [[0]], labels=["</script><b>"]).to_html()
    assert "</script><b>" not in page


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([[0]], None), TypeError, "both truth and pred, or neither"),
        (([[0]], [[0, 1]]), ValueError, "shapes must match"),
        (([0, 1], [0, 1]), ValueError, r"shape \(H, W\), got shape \(2,\)"),
        (([[0.5]], [[0]]), TypeError, "truth"),
        ((np.arange(64).reshape(8, 8),) * 2, ValueError, "64 distinct values; pass labels="),
        ((np.zeros((3000, 2000), np.uint8),) * 2, ValueError, "are too large to paint"),
    ],
)
def test_what_cannot_be_painted_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        segiou.explore(*arguments)


def test_a_truth_value_that_is_no_class_is_refused():
    with pytest.raises(ValueError, match="neither a class nor ignored: 7"):
        segiou.explore([[7]], [[0]], labels=2)


def test_it_is_saved_and_shown_inline(tmp_path):
    explorer = segiou.explore(height=500)
    assert explorer.save(tmp_path / "e.html").read_text(encoding="utf-8") == explorer.to_html()
    inline = explorer._repr_html_()
    assert inline.startswith('<iframe srcdoc="&lt;!doctype html')
    assert "height:500px" in inline
    assert "save(path)" in repr(explorer)
