import contextlib
import io

import numpy as np
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from segiou.geometry import box_iou, greedy_match, match_boxes


def test_best_score_chooses_first():
    matching = greedy_match([[0.9, 0.8], [0.0, 0.6]], [0.7, 0.9])
    np.testing.assert_array_equal(matching.pairs, [[0, 1]])
    np.testing.assert_array_equal(matching.unmatched_pred, [0])
    np.testing.assert_array_equal(matching.unmatched_truth, [1])
    assert (matching.tp, matching.fp, matching.fn) == (1, 1, 1)


def test_equal_scores_keep_their_order_and_equal_ious_take_the_last():
    matching = greedy_match([[0.8, 0.8], [0.8, 0.8]], [0.5, 0.5])
    np.testing.assert_array_equal(matching.pairs, [[1, 0], [0, 1]])
    np.testing.assert_array_equal(matching.pairs, greedy_match([[0.8, 0.8], [0.8, 0.8]]).pairs)


def test_threshold_is_reached_not_passed():
    assert greedy_match([[0.5]], threshold=0.5).tp == 1
    assert greedy_match([[0.5]], threshold=np.nextafter(0.5, 1)).tp == 0
    assert greedy_match([[1 - 1e-11]], threshold=1.0).tp == 1
    assert greedy_match([[np.nan]], threshold=0.0).tp == 0


def test_crowds_absorb_and_ordinary_truths_go_first():
    iou = [[0.6, 0.0, 0.0], [0.9, 0.9, 0.9]]
    matching = greedy_match(iou, crowd=[False, True])
    np.testing.assert_array_equal(matching.pairs, [[0, 0]])
    np.testing.assert_array_equal(matching.ignored_pairs, [[1, 1], [1, 2]])
    assert (matching.tp, matching.fp, matching.fn) == (1, 0, 0)


def test_ignored_truths_are_matched_once():
    matching = greedy_match([[0.9, 0.9]], ignore=[True])
    np.testing.assert_array_equal(matching.ignored_pairs, [[0, 0]])
    assert (matching.tp, matching.fp, matching.fn) == (0, 1, 0)


@pytest.mark.parametrize(("truths", "preds"), [(0, 3), (3, 0), (0, 0)])
def test_empty_sides(truths, preds):
    matching = greedy_match(np.zeros((truths, preds)), np.zeros(preds))
    assert (matching.tp, matching.fp, matching.fn) == (0, preds, truths)
    assert matching.pairs.shape == matching.ignored_pairs.shape == (0, 2)


def test_bad_input():
    with pytest.raises(ValueError, match="truths, predictions"):
        greedy_match([0.5])
    with pytest.raises(ValueError, match="one value per prediction"):
        greedy_match([[0.5, 0.5]], [0.1])
    with pytest.raises(ValueError, match="prediction 1 is NaN"):
        greedy_match([[0.5, 0.5]], [0.1, np.nan])
    with pytest.raises(ValueError, match="threshold"):
        greedy_match([[0.5]], threshold=np.nan)
    with pytest.raises(ValueError, match="one flag per truth"):
        greedy_match([[0.5]], crowd=[True, False])


def random_image(rng):
    """Boxes on a coarse grid, so that equal IoU and equal scores are common."""
    truth = np.concatenate([rng.integers(0, 6, (6, 2)), rng.integers(2, 7, (6, 2))], axis=1)
    near = truth[rng.integers(0, 6, 12)] + rng.integers(-1, 2, (12, 4)) * [1, 1, 0, 0]
    scores = rng.integers(0, 5, 12) / 4
    return truth, near, scores, rng.random(6) < 0.3


def evaluate_with_coco(images):
    annotations = [
        {"id": 1 + 6 * image + k, "image_id": image, "category_id": 1, "bbox": box.tolist(),
         "area": float(box[2] * box[3]), "iscrowd": int(crowd[k])}
        for image, (truth, _, _, crowd) in enumerate(images)
        for k, box in enumerate(truth)
    ]  # fmt: skip
    results = [
        {"image_id": image, "category_id": 1, "bbox": box.tolist(), "score": float(score)}
        for image, (_, pred, scores, _) in enumerate(images)
        for box, score in zip(pred, scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": image} for image in range(len(images))],
            "categories": [{"id": 1}],
            "annotations": annotations,
        }
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
        evaluation.params.iouThrs = np.array([0.3, 0.5, 0.75, 1.0])
        evaluation.evaluate()
    every_size = evaluation.params.areaRng[0]
    return evaluation, [e for e in evaluation.evalImgs if e["aRng"] == every_size]


def test_the_same_matches_as_cocoeval():
    rng = np.random.default_rng(7)
    images = [random_image(rng) for _ in range(40)]
    evaluation, per_image = evaluate_with_coco(images)
    crowd_matches = 0
    for entry in per_image:
        image = entry["image_id"]
        truth, pred, scores, crowd = images[image]
        iou = box_iou(truth, pred, fmt="xywh", crowd=crowd)
        for t, threshold in enumerate(evaluation.params.iouThrs):
            found = greedy_match(iou, scores, threshold=threshold, crowd=crowd)
            partner = np.zeros(len(pred), dtype=int)
            for pairs in (found.pairs, found.ignored_pairs):
                partner[pairs[:, 1]] = pairs[:, 0] + 1 + 6 * image
            order = np.array(entry["dtIds"]) - 1 - 12 * image
            np.testing.assert_array_equal(partner[order], entry["dtMatches"][t])
            ignored, matched = entry["dtIgnore"][t], entry["dtMatches"][t] > 0
            assert found.tp == np.count_nonzero(matched & ~ignored)
            assert found.fp == np.count_nonzero(~matched & ~ignored)
            assert len(found.ignored_pairs) == np.count_nonzero(ignored)
            counted = entry["gtIgnore"] == 0
            assert found.fn == np.count_nonzero((entry["gtMatches"][t] == 0) & counted)
            crowd_matches += len(found.ignored_pairs)
            boxes = match_boxes(truth, pred, scores, threshold=threshold, crowd=crowd, fmt="xywh")
            np.testing.assert_array_equal(boxes.pairs, found.pairs)
    assert len(per_image) == 40
    assert crowd_matches > 50
