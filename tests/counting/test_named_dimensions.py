"""Arrays with names of their dimensions, as xarray has them, are matched by name."""

from __future__ import annotations

import numpy as np
import pytest
from deletable import kind_of_scores

import segiou
from segiou import ChannelCounts, ConfusionMatrix
from segiou.counting import count_channels, count_id_pairs
from segiou.geometry import annotator_iou, mask_iou
from segiou.measures.boundary import BoundaryOptions
from segiou.measures.objects import InstanceCounts, PanopticCounts
from segiou.scoring import Evaluator

RNG = np.random.default_rng(0)
#: Three square images: turned ones have the same shape.
TRUTH, PRED = RNG.integers(0, 2, (2, 3, 3, 3))
MASK = RNG.random(TRUTH.shape) < 0.7
SCORES = RNG.random((3, 2, 3, 3))
NAN = np.where(MASK[:, None], SCORES, np.nan)
IMAGES = ("image", "y", "x")
CHANNELS = ("image", "class", "y", "x")


class Named:
    """An array with names of its dimensions."""

    def __init__(self, data, dims):
        self.data, self.dims = np.asarray(data), tuple(dims)
        self.shape, self.dtype = self.data.shape, self.data.dtype

    def __array__(self, dtype=None, copy=None):
        return self.data

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        return Named(self.data[index], self.dims[1:])

    def __iter__(self):
        return (self[index] for index in range(len(self)))

    def transpose(self, *dims):
        return Named(self.data.transpose([self.dims.index(name) for name in dims]), dims)


def turned(data, dims):
    """The same with its dimensions in reverse order."""
    return Named(data, dims).transpose(*reversed(dims))


def one(truth, pred, mask):
    """The first image of each."""
    return [
        Named(side.data[0], side.dims[1:])
        if side.dims[0] == "image"
        else Named(side.data[..., 0], side.dims[:-1])
        for side in (truth, pred, mask)
    ]


def of_images(truth, pred, mask):
    return Evaluator(2).update(truth, pred, mask=mask, ids=list("abc")).total().matrix


def of_objects(truth, pred, mask):
    t, p, m = one(truth, pred, mask)
    return PanopticCounts(2).update(t, m, p, m).detections


def of_instances(truth, pred, mask):
    t, p, m = one(truth, pred, mask)
    return InstanceCounts(2).update(t, m, p).fp


def evaluated(truth, pred, mask):
    found = Evaluator(2, measures=[BoundaryOptions(widths=1)]).update(truth, pred, mask=mask).run()
    return np.append(found.total().matrix, found.counts_of("boundary").table)


LABELS = {
    "ConfusionMatrix": lambda t, p, m: ConfusionMatrix(2).update(t, p, mask=m).matrix,
    "many classes": lambda t, p, m: ConfusionMatrix(5_000).count(t, p, mask=m).cells.values,
    "count_channels": lambda t, p, m: count_channels(t, p, axis=0, mask=m).tp,
    "ChannelCounts": lambda t, p, m: ChannelCounts(3).update(t, p, axis=0, mask=m).counts.tp,
    "Evaluator": of_images,
    "Evaluator with measures": evaluated,
    "score": lambda t, p, m: segiou.score(t, p, labels=2, mask=m).total().matrix,
    "PanopticCounts": of_objects,
    "InstanceCounts": of_instances,
    "count_id_pairs": lambda t, p, m: count_id_pairs(t, p)[2],
    "lesion_scores": lambda t, p, m: str(
        kind_of_scores("lesions").lesion_scores(*one(t, p, m)[:2], spacing=1)
    ),
    "surface_scores": lambda t, p, m: str(kind_of_scores("surfaces").surface_scores(t, p)),
    "annotator_iou": lambda t, p, m: annotator_iou([t, p], 2),
    "mask_iou": lambda t, p, m: mask_iou(t, p),
}


@pytest.mark.parametrize("count", LABELS.values(), ids=[*LABELS])
def test_labels_and_masks(count):
    sides = TRUTH, PRED, MASK
    want = count(*(Named(side, IMAGES) for side in sides))
    found = count(Named(TRUTH, IMAGES), *(turned(side, IMAGES) for side in (PRED, MASK)))
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("scores", [SCORES, NAN], ids=["finite", "NaN outside the mask"])
def test_scores(scores):
    want = ConfusionMatrix(2).update(TRUTH, scores, mask=MASK, argmax=1).matrix
    truth, mask = Named(TRUTH, IMAGES), turned(MASK, IMAGES)
    assert ConfusionMatrix(2).update(truth, turned(scores, CHANNELS), mask=mask, argmax=2) == (
        ConfusionMatrix(2).update(TRUTH, scores, mask=MASK, argmax=1)
    )
    found = Evaluator(2).update(
        truth, Named(scores, CHANNELS), mask=mask, argmax=1, ids=list("abc")
    )
    assert found.total().matrix.tolist() == want.tolist()


def test_a_mask_of_pixels_for_all_channels():
    want = count_channels(TRUTH, PRED, axis=0, mask=MASK[0])
    truth, mask = Named(TRUTH, ("class", "y", "x")), turned(MASK[0], ("y", "x"))
    assert count_channels(truth, PRED, axis=0, mask=mask) == want
