"""Outputs as models return them: of low resolution, in lists, of several heads and of queries."""

from __future__ import annotations

import numpy as np
import pytest

from segiou import ConfusionMatrix


@pytest.fixture
def torch(need):
    need("torchmetrics")
    return need("torch")


def metric(*arguments, **options):
    from segiou.hooks.torchmetrics import SegmentationScores

    return SegmentationScores(*arguments, **options)


def test_low_resolution_logits(torch):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn((2, 3, 4, 5), generator=generator)
    truth = torch.randint(0, 3, (2, 16, 20), generator=generator)
    large = torch.nn.functional.interpolate(logits, size=(16, 20), mode="bilinear")
    expected = ConfusionMatrix(3).update(truth, large, argmax=1).matrix.tolist()
    for pred, axis in ((logits, 1), (logits.movedim(1, -1), -1)):
        found = metric(3, upsample=True, axis=axis)
        found.update(pred, truth)
        assert found.counts.matrix.tolist() == expected
    with pytest.raises(ValueError, match=r"\(2, 3, 4, 5\) .*\(2, 16, 20\); pass upsample=True"):
        metric(3).update(logits, truth)
    with pytest.raises(ValueError, match="axis is probably 3, so pass axis=3 to the hook"):
        metric(3, upsample=True).update(large.movedim(1, -1), truth)


def test_volumes_are_upsampled(torch):
    found = metric(2, upsample=True)
    found.update(torch.tensor([0.0, 1.0]).reshape(1, 2, 1, 1, 1), torch.ones((1, 2, 2, 2)).long())
    assert found.counts.matrix.tolist() == [[0, 0], [0, 8]]


def test_outputs_of_deep_supervision_are_those_of_the_first_head(torch):
    truth = torch.tensor([[[0, 1], [1, 0]]])
    scores = torch.nn.functional.one_hot(truth, 2).movedim(-1, 1).float()
    for kind in (list, tuple):
        found = metric(2)
        found.update(kind([scores, scores[..., :1]]), truth)
        assert found.counts.matrix.tolist() == [[2, 0], [0, 2]]


def test_lists_of_bfloat16(torch):
    truth = torch.tensor([[[0, 1]], [[1, 1]]])
    scores = torch.nn.functional.one_hot(truth, 2).movedim(-1, 1).bfloat16()
    found = metric(2)
    found.update([*scores], [*truth])
    assert found.counts.matrix.tolist() == [[1, 0], [0, 3]]


def test_integer_scores_are_upsampled(torch):
    found = metric(2, upsample=True)
    found.update(torch.tensor([[[[9, 0]], [[0, 9]]]]), torch.tensor([[[0, 0, 1, 1]]]))
    assert found.counts.matrix.tolist() == [[2, 0], [0, 2]]


def test_scores_of_one_image_may_be_of_low_resolution(torch):
    with pytest.raises(ValueError, match=r"\(2, 1, 2\) .*\(2, 4\); pass upsample=True"):
        metric(2, axis=0).update(torch.zeros((2, 1, 2)), torch.zeros((2, 4)).long())


def test_outputs_of_models(torch, need):
    """Labels with a class axis, and outputs of torchvision and transformers."""
    truth = torch.tensor([[[0, 1, 2, 2]]])
    scores = torch.nn.functional.one_hot(truth, 3).movedim(-1, 1).float()
    need("transformers")
    from transformers.modeling_outputs import ModelOutput, SemanticSegmenterOutput

    outputs = {
        "torchvision": {"out": scores, "aux": scores * 0},
        "transformers": SemanticSegmenterOutput(logits=scores),
        "keepdim": scores.argmax(1, keepdim=True),
    }
    for name, pred in outputs.items():
        found = metric(3)
        found.update(pred, truth)
        assert found.counts.matrix.diagonal().tolist() == [1, 1, 2], name
    with pytest.raises(TypeError, match=r"of a, b; pass one of them, such as outputs\['a'\]"):
        metric(3).update({"a": scores, "b": scores}, truth)
    queries = ModelOutput(class_queries_logits=scores, masks_queries_logits=scores)
    with pytest.raises(TypeError, match="pass label maps, as of the processor's post_process_sem"):
        metric(3).update(queries, truth)


def test_raw_outputs_of_queries(torch, need):
    """Mask2Former as a tuple: scores of 5 queries for 3 classes and none, and their masks."""
    need("transformers")
    from segiou.hooks.huggingface import ComputeMetrics, preprocess_logits_for_metrics

    outputs, truth = (torch.zeros(2, 5, 4), torch.zeros(2, 5, 6, 6)), torch.zeros(2, 6, 6).long()
    from transformers import EvalPrediction

    batch = EvalPrediction(predictions=outputs, label_ids=truth)
    for call in (
        lambda: metric(3).update(outputs, truth),
        lambda: preprocess_logits_for_metrics(outputs, truth),
        lambda: ComputeMetrics(3)(batch, compute_result=False),
    ):
        with pytest.raises(TypeError, match=r"scores of queries, of shapes .*; pass label maps"):
            call()


def test_a_data_sample_without_annotations(need):
    need("mmengine")
    from segiou.hooks.mmengine import SegmentationScores

    with pytest.raises(ValueError, match="has no 'gt_sem_seg', only 'pred_sem_seg'; load annot"):
        SegmentationScores(3).process(None, [{"pred_sem_seg": {"data": np.zeros((1, 2, 2), int)}}])
