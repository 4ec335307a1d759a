"""Whatever counts arrays counts values: no byte of True, alignment or order changes a result."""

from __future__ import annotations

import io

import numpy as np
import pytest
from deletable import kind_of_scores
from hypothesis import given, strategies as st
from odd_arrays import LAYOUTS
from PIL import Image

import segiou
from segiou.counting import Encoding, count_id_pairs, count_pairs, scores_to_labels
from segiou.masks.read import from_bytes
from segiou.measures.boundary import boundary_counts
from segiou.measures.objects import PanopticCounts
from segiou.regions import label_components

TRUTH = np.zeros((9, 12), bool)
TRUTH[2:5, 2:6] = TRUTH[6:8, 8:11] = True
PRED = np.roll(TRUTH, 1, axis=0)
#: Found by hand: 18 pixels each; of 3 × 4 two rows remain, and of 2 × 3 one.
BOTH, ONE = 11, 7


def pixels(t, p):
    return count_pairs(t, p, 2)[:, :2].tolist()


CONSUMERS = {
    "pairs": pixels,
    "many classes": lambda t, p: Encoding.of_indices(9000).count(t, p).cells.values.tolist(),
    "id pairs": lambda t, p: [column.tolist() for column in count_id_pairs(t, p)],
    "channels": lambda t, p: segiou.ChannelCounts(1).update(t[None], p[None], axis=0).counts.tp,
    "boundary": lambda t, p: boundary_counts(t, p, 2).table.tolist(),
    "surfaces": lambda t, p: kind_of_scores("surfaces").surface_scores(t, p, labels=[1]),
    "components": lambda t, p: (label_components(t).tolist(), label_components(p).tolist()),
    "objects": lambda t, p: PanopticCounts(2).update(t, t, p, p).tp.tolist(),
    "masked": lambda t, p: count_pairs(t, p, 2, mask=t != 0).tolist(),
    "argmax": lambda t, p: scores_to_labels(np.stack([t, p]), argmax=0).tolist(),
    "scores": lambda t, p: np.flatnonzero(
        segiou.ScoreHistogram(2).update(t, p.astype("f4"), None).counts
    ).tolist(),
}


def test_the_plain_arrays_by_hand():
    assert pixels(TRUTH, PRED) == [[108 - 18 - ONE, ONE], [ONE, BOTH]]


@pytest.mark.parametrize("dtype", [bool, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", CONSUMERS)
@pytest.mark.gate
def test_no_layout_changes_a_result(name, layout, dtype):
    sides = TRUTH.astype(dtype), PRED.astype(dtype)
    assert CONSUMERS[name](*map(layout, sides)) == CONSUMERS[name](*sides)
    assert CONSUMERS[name](layout(sides[0]), sides[1]) == CONSUMERS[name](*sides)


@given(st.data())
def test_ids_in_any_layout(data):
    dtype = data.draw(st.sampled_from([np.uint16, np.uint32, np.int64]))
    sides = [
        np.array(data.draw(st.lists(st.integers(0, 3), min_size=12, max_size=12)), dtype)
        for _ in "tp"
    ]
    sides = [side.reshape(3, 4) for side in sides]
    odd = [data.draw(st.sampled_from(LAYOUTS))(side) for side in sides]
    for found, wanted in zip(count_id_pairs(*odd), count_id_pairs(*sides), strict=True):
        assert found.tolist() == wanted.tolist()
    assert label_components(odd[0]).tolist() == label_components(sides[0]).tolist()


@pytest.mark.parametrize("kind", ["BMP", "TIFF", "PNG"])
def test_masks_of_one_bit_have_bytes_of_one(kind):
    file = io.BytesIO()
    how = {"compression": "group4"} if kind == "TIFF" else {}
    Image.fromarray(TRUTH).save(file, kind, **how)
    values = from_bytes(file.getvalue(), f"a.{kind.lower()}").values
    assert values.astype(bool).tolist() == TRUTH.tolist()
    assert values.dtype != bool or values.view(np.uint8).max() == 1


def test_a_mask_of_true_bytes_of_255_selects_pixels():
    mask = (TRUTH * np.uint8(255)).view(bool)
    assert count_pairs(TRUTH, PRED, 2, mask=mask).sum() == 18
    counts = segiou.ChannelCounts(1).update(TRUTH[None], PRED[None], axis=0, mask=mask).counts
    assert (counts.tp.tolist(), counts.fn.tolist()) == ([BOTH], [ONE])
