"""The declared keys of a report are those that it has."""

import types
import typing

import numpy as np
import pytest
from command import FIXTURES

import segiou
from segiou.accumulators.confusion import ChannelCounts
from segiou.report.report_dict import ReportDict

STREETS, VOLUMES = FIXTURES / "streets", FIXTURES / "volumes"
SHAPES = typing.get_type_hints(ReportDict)


def street():
    measures = ["boundary", "objects", "components", "topology"]
    how = {"labels": STREETS / "labels.toml", "measures": measures}
    run = segiou.score_folder(STREETS / "truth", STREETS / "model_b", **how)
    return run.report(intervals=run.intervals(groups="none"), worst=2)


def volumes():
    pytest.importorskip("nibabel", reason="volumes are NIfTI files")
    how = {"labels": VOLUMES / "dataset.json", "measures": ["surfaces"]}
    return segiou.score_folder(VOLUMES / "truth", VOLUMES / "model_a", **how).report()


def channels():
    counts = ChannelCounts(["edema", "tumour"])
    return counts.update([[[1, 1]], [[0, 1]]], [[[1, 0]], [[0, 1]]], axis=0).report()


def empty():
    return segiou.ConfusionMatrix(3).report()


def many():
    image = np.arange(2500).reshape(50, 50)
    return segiou.score([image], [image], labels=2500).report()


def fits(value, shape):
    """Whether plain data have the declared type."""
    origin, inside = typing.get_origin(shape), typing.get_args(shape)
    if typing.is_typeddict(shape):
        hints = typing.get_type_hints(shape)
        known = value.keys() <= hints.keys() and shape.__required_keys__ <= value.keys()
        return known and all(fits(value[key], hints[key]) for key in value)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, one) for one in inside)
    if origin is list:
        return isinstance(value, list) and all(fits(one, inside[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(one, inside[1]) for one in value.values())
    if isinstance(shape, type) and shape in (int, float, str, bool, types.NoneType):
        return isinstance(value, int | float) if shape is float else isinstance(value, shape)
    return True  # any JSON


@pytest.mark.parametrize("made", [street, volumes, channels, empty, many])
@pytest.mark.gate
def test_reports_have_the_declared_keys_and_types(made):
    found = made().to_dict()
    assert ReportDict.__required_keys__ <= found.keys() <= SHAPES.keys()
    assert [key for key, value in found.items() if not fits(value, SHAPES[key])] == []


def test_the_check_of_types_can_fail():
    found = empty().to_dict()
    assert not fits(found | {"mean_iou": "0.5"}, ReportDict)
    assert not fits(found | {"mean_iuo": 0.5}, ReportDict)
