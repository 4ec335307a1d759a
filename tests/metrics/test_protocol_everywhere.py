"""One rule of the classes in a mean: every route to a mean IoU follows it, under every protocol."""

import math

import numpy as np
import pytest

import segiou
from segiou import Protocol, metrics
from segiou.analysis.gap.baselines import weighted_mean
from segiou.metrics.protocols import PROTOCOLS

RNG = np.random.default_rng(5)


def masks(error):
    """Six images of five classes; class 3 is rare, class 4 is only predicted."""
    truths = RNG.integers(0, 3, (6, 8, 8))
    truths[:2, 0, 0] = 3
    preds = np.where(RNG.random(truths.shape) < error, (truths + 1) % 3, truths)
    preds[0, 1, 1] = 4
    return truths, preds


TRUTHS, PREDS = masks(0.3)
OTHER = np.where(RNG.random(TRUTHS.shape) < 0.2, 0, TRUTHS)
OTHER[1, 2, 2] = 4


def routes(protocol):
    """The mean IoU of a run by each route."""
    one, two = (segiou.score([*TRUTHS], [*preds], labels=5) for preds in (PREDS, OTHER))
    report = one.report(protocol)
    yield "report", report.mean_iou
    yield "scores by name", report.scores_by_name["iou"].value
    yield "table", report.class_table.columns[0].means[0]
    yield "interval", one.intervals("iou", protocol=protocol, groups="none").overall.value
    yield "explained", segiou.explain(one, protocol=protocol).mean_iou
    yield "weighted", weighted_mean(one.counts, metrics.iou, report.protocol).value
    if not report.protocol.needs_images:
        yield "matrix", one.total().mean_iou(protocol)
        yield "steps", report.next_steps[0].mean_iou
        yield "pooled", float(report.protocol.pooled_mean(metrics.iou, report.counts))
    found = segiou.compare(one, two, names=("a", "b"), protocol=protocol, groups="none")
    both = found.protocol_scores or (found.pairs[0].overall.a,)
    yield "compared", both[0]


PLAIN = ("segiou", "detectron2", "paddleseg", "smp-imagewise", "nnunet", "torchvision")
EVERY = [pytest.param(n, marks=() if n in PLAIN else pytest.mark.gate) for n in PROTOCOLS]


@pytest.mark.parametrize("name", EVERY)
def test_every_protocol_has_one_mean(name):
    found = dict(routes(name))
    expected = found["report"]
    wrong = {
        route: value
        for route, value in found.items()
        if not (value == pytest.approx(expected) or (math.isnan(value) and math.isnan(expected)))
    }
    assert wrong == {}


class Frequent(Protocol):
    """A rule of one's own: classes with at least 3 pixels in the truth of the data set or image."""

    __slots__ = ()

    def taken(self, metric, counts, include=None, xp=np, values=None):
        values, part = Protocol.taken(self, metric, counts, include, xp, values)
        part = xp.logical_and(part, counts.truth >= 3)
        return xp.where(part, values, xp.zeros_like(values)), part


@pytest.mark.parametrize("unit", ["dataset", "image", "image-class"])
def test_a_rule_of_ones_own_is_followed_everywhere(unit):
    rule = Frequent("frequent", "a test", unit=unit)
    found = dict(routes(rule))
    assert found == pytest.approx(dict.fromkeys(found, found["report"]))
    assert found["report"] != pytest.approx(dict(routes("segiou"))["report"])
    mean = segiou.score([*TRUTHS], [*PREDS], labels=5).report(rule).iou_mean
    assert sorted(mean.skipped) == [3, 4]


def test_a_class_that_a_rule_of_ones_own_leaves_out_has_this_reason():
    rule = Frequent("frequent", "a test")
    report = segiou.score([*TRUTHS], [*PREDS], labels=5).report(rule)
    assert report.counts.truth[3] == 2
    assert report.iou_mean.skipped == {3: "left out by the protocol", 4: "not in truth"}
    assert "mean: 3 (left out by the protocol); 4 (not in truth)" in str(report)


@pytest.mark.few(6)
@pytest.mark.parametrize("name", PROTOCOLS)
def test_one_image_has_a_report(name):
    report = segiou.score([[[0, 0, 1, 1]]], [[[0, 1, 1, 1]]], labels=2).report(name)
    assert report.scores_by_name["iou"].rows == pytest.approx({"0": 1 / 2, "1": 2 / 3})
    assert report.mean_iou == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert "66.67 %" in str(report)
    none = segiou.score([], [], labels=2).report(name)
    assert all(math.isnan(row) for row in none.scores_by_name["iou"].rows.values())
