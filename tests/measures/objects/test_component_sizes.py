"""Objects that are components of class maps, and the least size that they have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from coco_files import VOID

import segiou
from segiou import read_mask
from segiou.measures.objects import ObjectOptions, PanopticCounts
from segiou.regions import label_components
from segiou.report.pages.picture_masks import read_indices, reader_of

STREETS = Path(__file__).parents[3] / "fixtures" / "streets"
THINGS = ("tree", "car", "pole", "sign", "person", "bicycle")


def test_components_of_class_maps():
    options = ObjectOptions(things=THINGS, min_size=20, connectivity=4)
    run = segiou.score_folder(
        STREETS / "truth", STREETS / "model_a", labels=STREETS / "labels.toml", objects=options
    )
    expected = PanopticCounts(run.labels, ignore=VOID, things=THINGS, unassigned="count")
    things = [run.labels.index(name) for name in THINGS]
    for path in sorted((STREETS / "truth").glob("*.png")):
        sides = []
        for side in ("truth", "model_a"):
            values = read_mask(STREETS / side / path.name).astype(int)
            ids = label_components(values + 1, [t + 1 for t in things], connectivity=4)
            small = np.bincount(ids.ravel())[ids] < 20
            # Too small is void: ignored in the truth, no class in the prediction.
            void = {"truth": VOID, "model_a": 99}[side]
            sides += [np.where((ids > 0) & small, void, values), ids]
        expected.update(*sides)
    assert run.counts_of("objects").detections.tolist() == expected.detections.tolist()
    assert run.counts_of("objects").overlaps.tolist() == expected.overlaps.tolist()
    arrays = [
        [read_mask(path) for path in sorted((STREETS / side).glob("*.png"))]
        for side in ("truth", "model_a")
    ]
    again = segiou.score(*arrays, labels=run.labels, objects=options)
    assert again.counts_of("objects") == run.counts_of("objects")


#: Blobs along a line of voxels that the prediction finds: of 6, 4, 3 and 2 of them.
BLOBS = [n for size in (6, 4, 3, 2) for n in (*[1] * size, 0)]


@pytest.fixture
def scans(tmp_path):
    """Two volumes of the same voxels: of 1 mm³ in the first, of 2 mm³ in the second."""
    nibabel = pytest.importorskip("nibabel", reason="needs nibabel")
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir()
        for name, depth in (("fine", 1.0), ("thick", 2.0)):
            image = nibabel.Nifti1Image(np.uint8([[BLOBS]]), np.diag([1.0, 1.0, depth, 1.0]))
            image.to_filename(tmp_path / side / f"{name}.nii.gz")
    return tmp_path


def scored_scans(scans, min_size, **options):
    objects = ObjectOptions(things=("1",), min_size=min_size)
    return segiou.score_folder(
        scans / "truth", scans / "pred", labels=2, objects=objects, **options
    )


@pytest.mark.parametrize(
    ("min_size", "kept"),
    [
        (0, [4, 4]),
        (4, [2, 2]),
        ("4", [2, 2]),
        ("4mm3", [2, 4]),
        (" 4.5 mm³", [1, 3]),
        ("6.01mm3", [0, 2]),
    ],
)
def test_a_least_size_is_of_voxels_or_of_the_volume_that_they_have(scans, min_size, kept):
    run = scored_scans(scans, min_size)
    found = [run.select([id]).counts_of("objects") for id in ("fine", "thick")]
    assert [counts.tp[1] for counts in found] == kept
    # What is smaller is void on both sides.
    assert (
        run.counts_of("objects").overlaps[:, 1].tolist()
        == run.counts_of("objects").overlaps[:, 2].tolist()
    )
    given = scored_scans(scans, min_size, spacing=(1, 1, 2))
    assert given.counts_of("objects").tp[1] == (2 * kept[1])


def test_a_least_size_in_mm_is_kept_and_compared(scans):
    path = scans / "run.sqlite"
    whole = scored_scans(scans, "4.5mm³", run=path)
    again = segiou.Run.open(path)
    assert again.plan("objects").measure == ObjectOptions(things=("1",), min_size="4.5mm3")
    assert again.counts_of("objects") == whole.counts_of("objects")
    (scans / "pred" / "thick.nii.gz").touch()
    resumed = scored_scans(scans, "4.5 mm3", run=path)
    assert resumed.counts_of("objects") == whole.counts_of("objects")
    whole = resumed
    halves = [scored_scans(scans, "4.5mm3", shard=(i, 2), missing="skip") for i in (1, 2)]
    assert halves[0].merge(halves[1]).counts_of("objects") == whole.counts_of("objects")
    found = whole.report().measures["objects"]["options"]
    assert (found["min_size"], found["spacing"]) == ("4.5mm3", None)
    assert "components below 4.5 mm³ are void" in " ".join(str(whole.report()).split())
    assert "components below 4.5 voxels are void" in " ".join(
        str(scored_scans(scans, 4.5).report()).split()
    )
    files = (
        str(scans / "truth" / "thick.nii.gz"),
        [str(scans / "pred" / "thick.nii.gz")],
        [reader_of(whole)],
    )
    ((drawn, _),) = read_indices(*files, drawers=[whole.plan("objects")]).outcomes
    assert sorted(drawn) == [[1, 1, 3], [1, 1, 4], [1, 1, 6]]
    other = "min_size '4.5mm3' here and 4.5 there"
    with pytest.raises(ValueError, match=other):
        whole.merge(scored_scans(scans, 4.5))
    with pytest.raises(ValueError, match=r"objects were measured .*4\.5mm3"):
        segiou.compare(whole, scored_scans(scans, 4.5), metric="pq")
    with pytest.raises(ValueError, match=r"min_size '5mm3'"):
        scored_scans(scans, "5mm3", run=path)
    with pytest.raises(ValueError, match=r"spacing \(1\.0, 1\.0, 1\.0\) here and None there"):
        scored_scans(scans, "4.5mm3", run=path, spacing=(1, 1, 1))


def test_images_have_a_least_size_in_mm_by_their_spacing():
    image = np.array([BLOBS])
    options: dict = {"labels": 2, "objects": ObjectOptions(things=("1",), min_size="2mm2")}
    run = segiou.score([image], [image], spacing=(0.5, 1), **options)
    assert run.counts_of("objects").tp.tolist() == [1, 2]
    assert run.plan("objects").measure.spacing == (0.5, 1.0)
    assert "components below 2 mm² are void" in " ".join(str(run.report()).split())
    with pytest.raises(ValueError, match="min_size=2mm2 requires masks with 2 axes and a spacing"):
        segiou.score([image], [image], **options)
    with pytest.raises(ValueError, match="spacing must be two or three positive numbers"):
        segiou.score([image], [image], spacing=(0.5, 0), **options)
    options["objects"] = ObjectOptions(min_size="2mm3")
    with pytest.raises(
        ValueError, match=r"min_size=2mm3 requires masks with 3 axes .* got 2 axes and spacing"
    ):
        segiou.score([image], [image], spacing=(1, 1), **options)


@pytest.mark.parametrize(
    ("size", "problem"),
    [(text, f"invalid min_size '{text}'; use pixels") for text in ("", "mm3", "5cm3", "5mm", "5 5")]
    + [("-1mm3", "must be at least 0, got -1"), ("infmm3", "must be at most"), ("nan", "got NaN")],
)
def test_texts_that_are_no_size_are_named(size, problem):
    with pytest.raises(ValueError, match=problem):
        ObjectOptions(min_size=size)
