"""The measure of suspects: regions of images and volumes, against a definition in SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import ndimage

import segiou
from segiou.labels import ClassOptions
from segiou.measures import MaskPair, Masks, Parts
from segiou.measures.suspects import SuspectOptions

IGNORED, UNDECLARED = 255, 200


def plan_of(classes, *, volumes=False):
    return SuspectOptions().plan(ClassOptions.of(classes, ignore=IGNORED), Masks(volumes=volumes))


def counted(truth, pred, classes, scores=None):
    plan = plan_of(classes, volumes=np.ndim(truth) == 3)
    parts = plan.count(MaskPair(np.asarray(truth), np.asarray(pred), plan.classes, scores=scores))
    plan.check(parts)
    regions, margins = plan.regions_of(parts)
    return {"regions": regions, "margins": margins, "pixels": parts["pixels"]}


def by_definition(truth, pred, classes):
    """Label, prediction, pixels, pixels of both objects, and box along three axes."""
    known = (truth < classes) & (pred < classes)
    full = np.ones((3,) * truth.ndim)
    # Pixels without a class on either side belong to no predicted object.
    sides = truth, np.where(truth < classes, pred, UNDECLARED)
    rows = []
    for a in range(classes):
        for b in range(classes):
            ids, number = ndimage.label(known & (truth == a) & (pred == b) & (a != b), full)
            sizes = [(ids == i).sum() for i in range(1, number + 1)]
            order = sorted(range(number), key=lambda i: (-sizes[i], i))[:8]
            for i in order:
                if sizes[i] < 3**truth.ndim:
                    continue
                at = np.argwhere(ids == i + 1)
                objects = []
                for side, c in zip(sides, (a, b), strict=True):
                    parts, _ = ndimage.label(side == c, full)
                    objects.append((parts == parts[tuple(at[0])]).sum())
                ends = [[0, 1]] * (3 - truth.ndim) + [*zip(at.min(0), at.max(0) + 1, strict=True)]
                rows.append([a, b, sizes[i], *objects, *np.ravel(ends)])
    return sorted(map(tuple, np.array(rows, int).reshape(-1, 11).tolist()))


def test_a_missing_object_by_hand():
    truth, pred = np.zeros((8, 10), np.uint8), np.zeros((8, 10), np.uint8)
    pred[2:5, 3:7] = 1  # 12 pixels are an object of the prediction that the truth lacks
    truth[0, 0] = IGNORED
    parts = counted(truth, pred, 2)
    assert parts["regions"].tolist() == [[0, 1, 12, 79, 12, 0, 1, 2, 5, 3, 7]]
    assert parts["margins"].tolist() == [1.0]
    assert parts["pixels"].tolist() == [[79, 0]]


def test_small_regions_and_the_ninth_of_a_pair_are_not_kept():
    truth = np.zeros((13, 40), np.uint8)
    pred = truth.copy()
    for i in range(10):
        pred[1 + 6 * (i // 5) :, :][:3, 1 + 5 * (i % 5) :][:, :3] = 1
    pred[12, 36:40] = 1  # 4 pixels
    assert len(counted(truth, pred, 2)["regions"]) == 8
    assert len(counted(truth, np.where(pred == 1, 2, 0), 3)["regions"]) == 8


def test_regions_touch_at_corners():
    truth, pred = np.zeros((2, 6, 6), np.uint8)
    pred[:3, :3] = pred[3:, 3:] = 1
    assert counted(truth, pred, 2)["regions"][:, 2].tolist() == [18]


masks = st.tuples(
    st.integers(0, 2**32 - 1),
    st.sampled_from([(9, 12), (1, 40), (40, 1), (5, 6, 7)]),
    st.integers(1, 4),
)


@given(masks)
def test_regions_are_those_of_the_definition(case):
    seed, shape, classes = case
    rng = np.random.default_rng(seed)
    values = [*range(classes), IGNORED]
    coarse = [max(1, n // 2) for n in shape]
    truth, pred = (
        np.resize(np.kron(rng.choice(values, coarse), np.ones((2,) * len(shape), int)), shape)
        for _ in range(2)
    )
    truth, pred = (
        truth.astype(np.uint8),
        np.where(pred == IGNORED, UNDECLARED, pred).astype(np.uint8),
    )
    plan = plan_of(classes, volumes=len(shape) == 3)
    options = ClassOptions.of(classes, ignore=IGNORED, unassigned="count")
    plan = SuspectOptions().plan(options, plan.masks)
    parts = plan.count(MaskPair(truth, pred, options))
    plan.check(parts)
    regions = plan.regions_of(parts)[0]
    assert sorted(map(tuple, regions.tolist())) == by_definition(truth, pred, classes)


@pytest.mark.parametrize("dtypes", [("i8", "i8"), (">i4", "u1"), ("i2", "u2"), ("u8", "i8")])
def test_regions_do_not_depend_on_the_type(dtypes):
    rng = np.random.default_rng(5)
    truth, pred = (np.kron(rng.choice([0, 1, 255], (3, 4)), np.ones((4, 4), int)) for _ in range(2))
    options = ClassOptions.of(2, ignore=IGNORED, unassigned="count")
    plan = SuspectOptions().plan(options, Masks())
    first = plan.count(MaskPair(truth.astype(np.uint8), pred.astype(np.uint8), options))
    other = plan.count(MaskPair(truth.astype(dtypes[0]), pred.astype(dtypes[1]), options))
    assert first["regions"].tolist() == other["regions"].tolist() != []


def test_masked_and_distant_ignored_pixels_are_in_no_region():
    truth, pred = np.zeros((2, 6, 6), np.int64)
    pred[:] = 1
    truth[0, 0] = 10**12
    options = ClassOptions.of(2, ignore=[10**12])
    plan = SuspectOptions().plan(options, Masks())
    valid = np.ones((6, 6), bool)
    valid[5] = False
    for mask, pixels in (None, 35), (valid, 29):
        parts = plan.count(MaskPair(truth, pred, options, mask=mask))
        assert plan.regions_of(parts)[0][:, 2:5].tolist() == [[pixels] * 3]
    with_flags = plan.count(MaskPair(truth > 1e9, pred > 0, ClassOptions.of(2)))
    assert with_flags["regions"][:, :3].tolist() == [[0, 1, 35]]


def test_margins_of_probabilities_and_of_logits():
    truth, pred = np.zeros((2, 4, 4), np.uint8)
    pred[:3, :3] = 1
    scores = np.zeros((2, 4, 4))
    scores[1] = np.where(pred == 1, 0.9, 0.1)
    scores[0] = 1 - scores[1]
    assert counted(truth, pred, 2, scores)["margins"].tolist() == pytest.approx([0.8])
    assert counted(truth, pred, 2, scores[1])["margins"].tolist() == pytest.approx([0.8])
    eighths = np.rint(255 * scores[1]).astype(np.uint8)
    assert counted(truth, pred, 2, eighths)["margins"].tolist() == pytest.approx([0.8], abs=0.01)
    logits = np.log(scores / (1 - scores)) / 2
    assert counted(truth, pred, 2, logits)["margins"].tolist() == pytest.approx([0.8])


def test_the_prediction_can_be_less_probable_than_the_label():
    truth, pred = np.zeros((2, 4, 4), np.uint8)
    pred[:3, :3] = 1
    scores = np.stack([np.full((4, 4), 0.7), np.full((4, 4), 0.2)])
    assert counted(truth, pred, 2, scores)["margins"].tolist() == [0.0]
    scores[:] = np.nan
    assert counted(truth, pred, 2, scores)["margins"].tolist() == [0.0]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"regions": (i, n)} for i, n in ((0, 3), (1, 0), (2, 0), (3, 2**63 - 1), (6, 2), (8, 3))),
        *({"margins": value} for value in ([1.1], [1.0, 1.0])),
        *({"planes": value} for value in ([[0, 0]], [[0, 1], [0, 1]])),
    ],
)
def test_impossible_regions_are_rejected(wrong):
    row = [0, 1, 12, 67, 0, 2, 3, 3, 4]  # pixels of the objects outside, begins and sides
    if "regions" in wrong:
        column, row[column] = wrong.pop("regions")
    plan = plan_of(3)
    parts = Parts.of(plan.layout, regions=[row], pixels=[79, 0, 0], **wrong)
    with pytest.raises(ValueError, match="contradict"):
        plan.check(parts)


def test_images_and_volumes_with_and_without_scores_are_one_run():
    plan, row = plan_of(3), [0, 1, 12, 67, 0, 2, 3, 3, 4]
    several = [{}, {"planes": [[1, 2]], "margins": [0.5]}, {"margins": [0.25]}]
    parts = [Parts.of(plan.layout, regions=[row], pixels=[79, 0, 0], **one) for one in several]
    empty = Parts.of(plan.layout, pixels=[3, 0, 0])
    joined = Parts.joined(plan.layout, [parts[0], empty, *parts[1:]])
    plan.check(joined)
    regions, margins = plan.regions_of(joined)
    assert regions[:, :5].tolist() == [[0, 1, 12, 79, 12]] * 3
    assert regions[:, 5:7].tolist() == [[0, 1], [1, 3], [0, 1]]
    assert regions[:, 7:].tolist() == [[2, 5, 3, 7]] * 3
    assert margins.tolist() == [1.0, 0.5, 0.25]


@pytest.mark.needs("checks")
def test_the_contract():
    from segiou.checks import check_measure

    assert check_measure(SuspectOptions()).passed


def test_share_in_regions_of_each_class():
    truth, pred = np.zeros((2, 8, 8), np.uint8)
    truth[4:] = 1
    pred[:3, :3] = pred[4:] = 1
    run = segiou.score([truth, truth], [pred, pred], labels=["a", "b"], measures=["suspects"])
    assert run.plan("suspects").scores["suspect_share"].values(
        run.measured["suspects"]
    ).tolist() == [
        9 / 64,
        9 / 32,
        0.0,
    ]
