from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def evaluator(need):
    need("mmengine")
    from mmengine.evaluator import Evaluator

    from segiou.hooks.mmengine import SegmentationScores

    def build(**options):
        metric = SegmentationScores(**options)
        whole = Evaluator(metric)
        return whole, metric

    return build


def samples(streets, need, rows):
    from mmengine.structures import BaseDataElement, PixelData

    torch = need("torch")
    made = []
    for i in rows:
        sample = BaseDataElement(metainfo={"img_path": f"{streets.ids[i]}.png"})
        sample.gt_sem_seg = PixelData(data=torch.from_numpy(streets.truth[i : i + 1]).long())
        sample.pred_sem_seg = PixelData(data=torch.from_numpy(streets.pred[i : i + 1]).long())
        made.append(sample)
    return made


def test_a_real_evaluator_names_classes_and_drops_padding(evaluator, streets, need):
    whole, metric = evaluator(ignore=255)
    whole.dataset_meta = {"classes": streets.names}
    for _ in range(2):
        for rows in ([0, 1, 2, 3], [4, 5, 0, 1]):  # a sampler's padding repeats 0 and 1
            whole.process(samples(streets, need, rows), data_batch=None)
        kept = [image.values.sum() for image in metric.results[:6]]
        assert sum(kept) == streets.matrix.sum()
        scores = whole.evaluate(size=6)
        diagonal = np.diag(streets.matrix)
        assert scores["segiou/pixel_accuracy"] == diagonal.sum() / streets.matrix.sum()
        union = streets.matrix.sum(0) + streets.matrix.sum(1) - diagonal
        assert scores["segiou/mean_iou"] == pytest.approx((diagonal / union).mean(), rel=1e-12)
        assert scores["segiou/iou/road"] == diagonal[2] / union[2]


def test_a_prefix_of_its_own_and_given_labels(evaluator, streets, need):
    whole, _ = evaluator(labels=streets.names, ignore=255, prefix="val", scores=["mean_iou"])
    whole.process(samples(streets, need, range(6)), data_batch=None)
    assert set(whole.evaluate(size=6)) == {"val/mean_iou"}


def test_it_is_in_the_registry(need, streets):
    need("mmengine")
    from mmengine.registry import METRICS

    import segiou.hooks.mmengine

    metric = METRICS.build({"type": "SegmentationScores", "labels": 3})
    assert isinstance(metric, segiou.hooks.mmengine.SegmentationScores)


def test_without_classes_it_says_so(evaluator, streets, need):
    whole, _ = evaluator()
    with pytest.raises(ValueError, match="dataset_meta has no 'classes'"):
        whole.process(samples(streets, need, [0]), data_batch=None)
