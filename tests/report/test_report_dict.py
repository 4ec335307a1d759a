"""The declared keys of a report are those that it has."""

import types
import typing

import numpy as np
import pytest
from command import FIXTURES
from deletable import kind_of_scores

import segiou
from segiou.accumulators.channel_counts import ChannelCounts
from segiou.document.report_dict import ReportDict

STREETS, VOLUMES = FIXTURES / "streets", FIXTURES / "volumes"


def street():
    kind_of_scores("topology")
    measures = ["boundary", "objects", "components", "topology"]
    how = {"labels": STREETS / "labels.toml", "measures": measures}
    run = segiou.score_folder(STREETS / "truth", STREETS / "model_b", **how)
    return run.report(intervals=run.intervals(groups="none"), worst=2)


def volumes():
    pytest.importorskip("nibabel", reason="volumes are NIfTI files")
    kind_of_scores("surfaces")
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


def misfits(value, shape, path="report"):
    """Places where plain data do not have the declared type of report_dict.py."""
    origin, inside = typing.get_origin(shape), typing.get_args(shape)
    if typing.is_typeddict(shape):
        hints, name = typing.get_type_hints(shape), shape.__name__
        yield from (f"{path}: {key!r} is not in {name}" for key in value.keys() - hints.keys())
        missing = shape.__required_keys__ - value.keys()
        yield from (f"{path}: lacks {key!r} of {name}" for key in missing)
        for key in value.keys() & hints.keys():
            yield from misfits(value[key], hints[key], f"{path}[{key!r}]")
    elif origin in (typing.Union, types.UnionType):
        if all([*misfits(value, one)] for one in inside):
            yield f"{path}: {value!r} is not {shape}"
    elif origin in (list, dict):
        if not isinstance(value, origin):
            yield f"{path}: {value!r} is not a {origin.__name__}"
            return
        for key, one in enumerate(value) if origin is list else value.items():
            yield from misfits(one, inside[-1], f"{path}[{key!r}]")
    elif shape in (int, str, bool, types.NoneType) and not isinstance(value, shape):
        yield f"{path}: {value!r} is not {shape.__name__}"
    elif shape is float and not isinstance(value, int | float):
        yield f"{path}: {value!r} is not a number"


@pytest.mark.parametrize("made", [street, volumes, channels, empty, many])
@pytest.mark.gate
def test_reports_have_the_declared_keys_and_types(made):
    assert [*misfits(made().to_dict(), ReportDict)] == []


def test_the_check_of_types_names_what_differs():
    found = empty().to_dict()
    assert [*misfits(found, ReportDict)] == []
    text = found | {"mean_iou": "0.5"}
    assert [*misfits(text, ReportDict)] == ["report['mean_iou']: '0.5' is not float | None"]
    added = found | {"mean_iuo": 0.5}
    assert [*misfits(added, ReportDict)] == ["report: 'mean_iuo' is not in ReportDict"]
