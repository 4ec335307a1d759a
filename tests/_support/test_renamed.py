"""Names that were renamed: the old one works for one version, and its warning names the new one."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import segiou
from segiou import metrics
from segiou._support import RenamedAttribute, lazy_face
from segiou.boundary import BoundaryOptions


class Box:
    width = 3
    breadth = RenamedAttribute("width")


def test_an_old_attribute_warns_and_gives_the_new_one():
    with pytest.warns(DeprecationWarning, match="Box.breadth is deprecated.*use Box.width"):
        assert Box().breadth == 3


def test_an_old_name_of_a_package_warns_and_gives_the_new_one():
    load, names = lazy_face("segiou.metrics", {"jaccard": "iou"})
    with pytest.warns(DeprecationWarning, match=r"use segiou\.metrics\.iou"):
        assert load("jaccard") is metrics.iou
    assert "jaccard" not in names()


@pytest.mark.parametrize(
    ("package", "old", "new"),
    [
        ("counting", "Tally", "ConfusionCounts"),
        ("counting", "decide", "scores_to_labels"),
        ("metrics", "FineGrained", "ImageLevelMeans"),
        ("metrics", "fine_grained", "image_level_means"),
        ("metrics", "share", "prevalence"),
    ],
)
def test_old_public_names_still_work(package, old, new):
    module = import_module(f"segiou.{package}")
    with pytest.warns(DeprecationWarning, match=rf"use segiou\.{package}\.{new}"):
        assert getattr(module, old) is getattr(module, new)


def test_what_measures_found_has_one_way_to_it():
    masks = [[[0, 1], [1, 0]]], [[[0, 1], [0, 0]]]
    run = segiou.score(*masks, labels=2, objects=True, boundary=True)
    plain = segiou.score(*masks, labels=2)
    with pytest.warns(DeprecationWarning, match=r"use Run\.counts_of\('objects'\)"):
        assert run.objects is run.counts_of("objects")
    with pytest.warns(DeprecationWarning, match=r"use Run\.plan\('boundary'\)\.measure"):
        assert (run.boundary_options, plain.boundary_options) == (BoundaryOptions(), None)
    with pytest.warns(DeprecationWarning, match=r"use Run\.counts_of"):
        assert (plain.boundary, plain.surfaces) == (None, ())
    report = run.report()
    with pytest.warns(DeprecationWarning, match=r"use Report\.measures\['objects'\]"):
        assert report.objects is report.measures["objects"]
    with pytest.warns(DeprecationWarning, match=r"use Report\.measures"):
        assert (plain.report().boundary, plain.report().objects) == ((), None)
    with pytest.warns(DeprecationWarning, match=r"use Report\.score\('pq'\)"):
        assert report.pq == report.score("pq")
    with pytest.warns(DeprecationWarning, match=r"use Report\.score"):
        assert np.isnan(plain.report().pq)
