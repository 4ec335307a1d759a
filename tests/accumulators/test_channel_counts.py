"""The accumulator of overlapping channels: its laws, its state, its report."""

import json

import numpy as np
import pytest

from segiou import metrics
from segiou.accumulators.channel_counts import ChannelCounts
from segiou.counting.counts import Counts

NAMES = ("edema", "necrosis", "tumour")


def pairs(seed, num=4):
    rng = np.random.default_rng(seed)
    return [tuple(rng.random((2, 3, 5, 7)) < 0.4) for _ in range(num)]


def counted(some_pairs, **options):
    channels = ChannelCounts(NAMES, **options)
    for truth, pred in some_pairs:
        channels.update(truth, pred, axis=0)
    return channels


def test_counts_add_up():
    some = pairs(0)
    channels = counted(some)
    truth, pred = (np.concatenate(x, axis=2) for x in zip(*some, strict=True))
    assert channels.counts.tp.tolist() == (truth & pred).sum((1, 2)).tolist()
    assert channels.counts.fp.tolist() == (~truth & pred).sum((1, 2)).tolist()
    assert channels.counts.fn.tolist() == (truth & ~pred).sum((1, 2)).tolist()
    assert channels.counts.total.tolist() == [4 * 35] * 3
    assert (channels.pairs, channels.pixels, channels.num_classes) == (4, 140, 3)


def test_foreign_states_are_refused():
    state = counted(pairs(0)).state_dict()
    with pytest.raises(ValueError, match="got 99"):
        ChannelCounts(NAMES).load_state_dict(state | {"state_version": 99})
    with pytest.raises(ValueError, match="the saved state has different options"):
        ChannelCounts(["a", "b", "c"]).load_state_dict(state)


@pytest.mark.parametrize(
    ("other", "error", "text"),
    [
        (ChannelCounts(["a", "b", "c"]), ValueError, "cannot merge channel counts: labels"),
        (ChannelCounts(NAMES, exclude=1), ValueError, r"exclude is \[\] here and \[1\] there"),
        (3, TypeError, "only channel counts can be merged, not int"),
    ],
)
def test_what_cannot_be_merged_is_refused_and_nothing_changes(other, error, text):
    channels = counted(pairs(0))
    before = channels.copy()
    with pytest.raises(error, match=text):
        channels.merge(counted(pairs(1)), other)
    assert channels == before
    assert channels != "channels"
    with pytest.raises(TypeError):
        channels += "channels"
    with pytest.raises(TypeError):
        "channels" + channels


def test_a_bad_pair_changes_nothing():
    channels = counted(pairs(0))
    before = channels.copy()
    truth = np.zeros((3, 2, 2), np.uint8)
    with pytest.raises(ValueError, match=r"found 7 \(4 times\)"):
        channels.update(truth, truth + 7 * (np.arange(3) == 1)[:, None, None], axis=0)
    with pytest.raises(ValueError, match="expected 3 channels along axis 1, got 2"):
        channels.update(truth, truth, axis=1)
    with pytest.raises(ValueError, match="axis=5 is out of range"):
        channels.update(truth, truth, axis=5)
    with pytest.raises(ValueError, match="expected counts of 3 channels"):
        channels.add(Counts([1], [1], [1], [1]))
    assert channels == before


def test_names_numbers_and_label_sets_make_channels():
    assert ChannelCounts(2).num_classes == 2
    assert ChannelCounts("brats").class_names == ChannelCounts("brats").copy().class_names
    assert ChannelCounts(NAMES, exclude=["tumour", 0]).options.include.tolist() == [
        False,
        True,
        False,
    ]
    with pytest.raises(ValueError, match="exclude: no class 3"):
        ChannelCounts(NAMES, exclude=3)


def test_masked_values_are_ignored_and_the_sum_holds():
    truth, pred = pairs(6)[0]
    channels = ChannelCounts(NAMES)
    pixels = np.zeros((5, 7), bool)
    pixels[0, :2] = True
    channels.update(truth, pred, axis=0, mask=pixels)
    assert channels.ignored.tolist() == [33] * 3
    values = np.broadcast_to(np.array([True, False, True])[:, None, None], truth.shape)
    channels.update(truth, pred, axis=0, mask=values)
    assert channels.ignored.tolist() == [33, 68, 33]
    assert (channels.counts.total + channels.ignored).tolist() == [channels.pixels] * 3 == [70] * 3


def test_scores_and_layouts():
    rng = np.random.default_rng(9)
    truth, scores = rng.random((4, 6, 3)) < 0.5, rng.random((4, 6, 3))
    last = ChannelCounts(NAMES).update(truth, scores, axis=-1, threshold=0.3)
    first = ChannelCounts(NAMES).update(
        np.moveaxis(truth, -1, 0), np.moveaxis(scores, -1, 0) > 0.3, axis=0
    )
    assert last == first


# -- the report ------------------------------------------------------------------------------


def small():
    """Channel a: TP 2, FP 1, FN 1, TN 6. Channel b: everywhere but once, always predicted."""
    truth = np.array([[1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 0]])
    pred = np.array([[1, 1, 0, 1, 0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]])
    return ChannelCounts(["a", "b"]).update(truth, pred, axis=0)


def test_report_by_hand():
    report = small().report(title="two channels")
    assert [row.iou for row in report.classes] == [0.5, 0.9]
    assert [row.share for row in report.classes] == [0.3, 0.9]
    assert report.mean_iou == 0.7
    assert report.mean_iou_classes == 2
    # 2 + 6 and 9 + 0 decisions of 20 are correct.
    assert report.pixel_accuracy == 17 / 20
    # No in channel a: 7 of 10 right, IoU 0; yes in channel b: 9 of 10, IoU .9.
    assert report.majority["pixel_accuracy"] == 16 / 20
    assert report.majority["mean_iou"] == 0.45
    assert report.pixels == 20
    assert report.ignored == 0
    assert report.matrix.shape == (0, 0)
    assert report.counts == small().counts


def test_kappa_of_yes_and_no_over_all_channels():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    truth, pred = pairs(8)[0]
    channels = ChannelCounts(NAMES).update(truth, pred, axis=0)
    theirs = sklearn_metrics.cohen_kappa_score(truth.ravel(), pred.ravel())
    assert channels.report().cohen_kappa == pytest.approx(theirs, abs=1e-12)
    jaccard = sklearn_metrics.jaccard_score(
        truth.reshape(3, -1).T, pred.reshape(3, -1).T, average=None
    )
    np.testing.assert_allclose(channels.iou(), jaccard, atol=1e-12)


def test_report_in_every_format():
    channels = small()
    data = json.loads(channels.report().to_json())
    assert data["mean_iou"] == 0.7
    assert data["matrix"] == []
    assert data["unassigned"] == [0, 0]
    assert data["pixels"] == 20
    assert json.loads(channels.report().to_json(indent=None)) == data
    assert channels.report().to_csv().splitlines()[1].startswith("a,0.5,")
    for text in (str(channels.report()), channels.report().to_markdown(), channels._repr_html_()):
        assert "70.00 %" in text
        assert "20 values (pixels × channels)" in text
        assert "the more frequent value of each channel" in " ".join(text.split())
    assert repr(channels) == "<ChannelCounts: 2 channels, 1 pair, 10 pixels>"


def test_protocols_and_exclusion_apply_to_channels():
    channels = ChannelCounts(["a", "b", "c"], exclude="b")
    truth = np.array([[1, 0], [1, 1], [0, 0]])
    channels.update(truth, np.array([[1, 1], [1, 1], [0, 0]]), axis=0)
    assert channels.mean_iou() == 0.5
    assert channels.mean_iou("paddleseg") == 0.75
    report = channels.report("ade20k")
    assert report.mean_iou == 0.25
    assert report.iou_mean.skipped == {1: "excluded"}
    assert channels.compute().mean_iou == 0.5


def test_a_tally_of_channels_is_a_matrix_of_no_and_yes_for_each():
    tally = small().tally
    assert tally.matrix.tolist() == [[[6, 1], [1, 2]], [[0, 1], [0, 9]]]
    assert tally.pixels.tolist() == [10, 10]
    assert tally.counts[..., 1] == small().counts


def test_accuracy_of_sparse_channels_hides_what_iou_shows():
    # One pixel in a hundred is of the class, none is found: .99 right, IoU 0.
    truth = np.zeros((1, 100), bool)
    truth[0, 0] = True
    report = ChannelCounts(["rare"]).update(truth, np.zeros_like(truth), axis=0).report()
    assert report.pixel_accuracy == report.majority["pixel_accuracy"] == 0.99
    assert report.mean_iou == report.majority["mean_iou"] == 0.0
    assert metrics.recall(report.counts)[0] == 0.0
