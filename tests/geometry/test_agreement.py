import numpy as np
import pytest
from sklearn.metrics import jaccard_score

from segiou.geometry import (
    UNDECIDED,
    annotator_iou,
    consensus,
    consensus_iou,
    disagreement,
    vote_counts,
)

# Four annotators, eight pixels, three classes; the last pixel is a tie of two and two.
MASKS = np.array(
    [
        [0, 0, 0, 1, 1, 1, 2, 0],
        [0, 0, 0, 1, 1, 2, 2, 0],
        [0, 0, 1, 1, 1, 1, 2, 1],
        [0, 1, 1, 1, 0, 1, 2, 1],
    ]
)


def test_pairwise_iou_against_scikit_learn():
    iou = annotator_iou(MASKS, 3)
    assert iou.shape == (4, 4, 3)
    np.testing.assert_array_equal(iou, iou.transpose(1, 0, 2))
    for a in range(4):
        for b in range(4):
            np.testing.assert_array_equal(
                iou[a, b], jaccard_score(MASKS[a], MASKS[b], average=None)
            )
    np.testing.assert_array_equal(iou[0, 1], [1, 2 / 3, 1 / 2])


def test_shapes_dtypes_and_sequences_do_not_matter():
    as_list = [MASKS[0].reshape(2, 4).astype(np.uint8), MASKS[1].reshape(2, 4).tolist()]
    np.testing.assert_array_equal(annotator_iou(as_list, 3), annotator_iou(MASKS[:2], 3))


def test_classes_that_neither_used_are_undefined():
    assert np.isnan(annotator_iou(MASKS, 4)[..., 3]).all()


def test_a_pixel_that_one_leaves_open_is_dropped_for_both():
    masks = [[0, 1, 1, 255], [0, 1, 255, 1], [0, 0, 0, 0]]
    iou = annotator_iou(masks, 2, ignore=255)
    np.testing.assert_array_equal(iou[0, 1], [1, 1])
    np.testing.assert_array_equal(iou[1, 0], [1, 1])
    np.testing.assert_array_equal(iou[0, 2], [1 / 3, 0])
    np.testing.assert_array_equal(iou[0, 0], [1, 1])
    np.testing.assert_array_equal(annotator_iou(masks, 2, ignore=[255, 0])[0, 1], [np.nan, 1])


def test_votes_and_majority():
    votes = vote_counts(MASKS, 3)
    np.testing.assert_array_equal(votes[:, 7], [2, 2, 0])
    np.testing.assert_array_equal(votes.sum(axis=0), 4)
    assert votes.dtype == np.uint8
    np.testing.assert_array_equal(consensus(MASKS, 3)[[0, 1, 3, 4, 5, 6]], [0, 0, 1, 1, 1, 2])
    np.testing.assert_array_equal(consensus(MASKS, 3)[[2, 7]], UNDECIDED)
    np.testing.assert_array_equal(consensus(MASKS, 3, ties="lowest"), [0, 0, 0, 1, 1, 1, 2, 0])


def test_open_pixels_have_no_consensus():
    masks = [[255, 1, 0], [255, 255, 0], [255, 0, 1]]
    np.testing.assert_array_equal(consensus(masks, 2, ignore=255), [-1, -1, 0])
    np.testing.assert_array_equal(consensus(masks, 2, ignore=255, ties="lowest"), [-1, 0, 0])
    np.testing.assert_array_equal(vote_counts(masks, 2, ignore=255).sum(axis=0), [0, 2, 3])
    np.testing.assert_array_equal(vote_counts(masks, 2, ignore=[0, 255])[0], 0)


def test_many_annotators_do_not_overflow_the_votes():
    votes = vote_counts(np.zeros((300, 2), dtype=int), 2)
    np.testing.assert_array_equal(votes, [[300, 300], [0, 0]])


def test_consensus_iou_names_who_disagrees_on_what():
    iou = consensus_iou(MASKS, 3)
    # Decided pixels 0, 1, 3, 4, 5, 6 are 0 0 1 1 1 2.
    np.testing.assert_array_equal(iou[0], [1, 1, 1])
    np.testing.assert_array_equal(iou[1], [1, 2 / 3, 1 / 2])
    np.testing.assert_array_equal(iou[2], [1, 1, 1])
    np.testing.assert_array_equal(iou[3], [1 / 3, 2 / 4, 1])
    lowest = consensus_iou(MASKS, 3, ties="lowest")
    np.testing.assert_array_equal(lowest[0], [1, 1, 1])
    np.testing.assert_array_equal(lowest[2], [2 / 4, 3 / 5, 1])


def test_consensus_iou_leaves_out_what_an_annotator_left_open():
    masks = [[0, 1, 1, 1], [0, 1, 1, 0], [0, 1, 255, 1]]
    np.testing.assert_array_equal(
        consensus_iou(masks, 2, ignore=255), [[1, 1], [1 / 2, 2 / 3], [1, 1]]
    )


def test_heat_map_as_share_off_the_majority():
    np.testing.assert_array_equal(disagreement(MASKS, 3), [0, 0.25, 0.5, 0, 0.25, 0.25, 0, 0.5])
    assert disagreement(MASKS.reshape(4, 2, 4), 3).shape == (2, 4)


def test_heat_map_as_entropy():
    even = np.array([[0, 0, 0], [1, 0, 1], [2, 0, 0]])
    half = -(1 / 3 * np.log(1 / 3) + 2 / 3 * np.log(2 / 3)) / np.log(3)
    values = disagreement(even, 3, measure="entropy")
    np.testing.assert_allclose(values, [1, 0, half], atol=1e-15)
    assert not np.signbit(values).any()


@pytest.mark.parametrize("measure", ["share", "entropy"])
def test_heat_map_is_undefined_without_votes(measure):
    values = disagreement([[9, 0, 9], [9, 0, 1]], 2, ignore=9, measure=measure)
    np.testing.assert_array_equal(values, [np.nan, 0, 0])


def test_masks_are_left_alone():
    masks = MASKS.copy()
    masks.flags.writeable = False
    annotator_iou(masks, 3, ignore=0)
    consensus_iou(masks, 3, ignore=0)
    disagreement(masks, 3, ignore=0)


@pytest.mark.parametrize("function", [annotator_iou, consensus, consensus_iou, disagreement])
def test_bad_masks(function):
    with pytest.raises(ValueError, match=r"annotator 1 .*0 to 1.*: -1 \(1 px\), 7 \(2 px\)"):
        function([[0, 1, 1, 0], [7, -1, 7, 0]], 2)
    with pytest.raises(ValueError, match=r"annotator 1 has shape \(3,\)"):
        function([[0, 1], [0, 1, 1]], 2)
    with pytest.raises(ValueError, match="at least two annotators, got 1"):
        function([[0, 1]], 2)
    with pytest.raises(ValueError, match="num_classes"):
        function(MASKS, 0)
    with pytest.raises(TypeError, match="annotator 0"):
        function([[0.5], [0.5]], 2)


def test_bad_choices():
    with pytest.raises(ValueError, match="'drop' or 'lowest'"):
        consensus(MASKS, 3, ties="highest")
    with pytest.raises(ValueError, match="'share' or 'entropy'"):
        disagreement(MASKS, 3, measure="variance")
