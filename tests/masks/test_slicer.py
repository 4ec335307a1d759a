"""Segmentations of 3D Slicer: layers, and names as the label set."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import segiou
from segiou import MaskError
from segiou.cli.main import main
from segiou.masks import read_volume
from segiou.report.pages.picture_masks import read_indices, reader_of
from segiou.scoring import inspect_folder

pytest.importorskip("SimpleITK")
THREAD = Path(__file__).parents[3] / "shared" / "data" / "threads" / "09-slicer-layers"
ANY_FILE = settings(
    max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)


def write(path, layers, segments, start=(0, 0, 0)):
    """Write layers (L, X, Y, Z) and segments (name, value, layer) as 3D Slicer does.

    ``start`` is the voxel of the image that the layers begin with.
    """
    path.parent.mkdir(exist_ok=True, parents=True)
    sizes = " ".join(map(str, layers.shape))
    lines = [
        "NRRD0004",
        "# Complete NRRD file format specification at:",
        "type: unsigned char",
        "dimension: 4",
        "space: left-posterior-superior",
        f"sizes: {sizes}",
        "space directions: none (1,0,0) (0,1,0) (0,0,2)",
        "kinds: list domain domain domain",
        "encoding: gzip",
        f"space origin: ({start[0]},{start[1]},{2 * start[2]})",
    ]
    for i, (name, value, layer) in enumerate(segments):
        lines += [f"Segment{i}_LabelValue:={value}", f"Segment{i}_Layer:={layer}"]
        lines += [f"Segment{i}_Name:={name}"]
    data = np.asfortranarray(layers).tobytes(order="F")
    path.write_bytes("\n".join([*lines, "", ""]).encode() + gzip.compress(data))


def in_layers(labels, names, layer_of, value_of):
    """Layers and segments for labels 1 … K, each in a layer with a value of this layer."""
    layers = np.zeros((max(layer_of) + 1, *labels.shape), np.uint8)
    segments = []
    for label, name in enumerate(names, 1):
        layer, value = layer_of[label - 1], value_of[label - 1]
        layers[layer][labels == label] = value
        segments.append((name, value, layer))
    return layers, segments


NAMES = ("liver", "tumour", "vessel of the liver")
LABELS = np.random.default_rng(3).integers(0, 4, (4, 5, 6)).astype(np.uint8)
ORDERS = st.permutations([1, 2, 3])


@ANY_FILE
@given(values=ORDERS, layers=st.lists(st.integers(0, 2), min_size=3, max_size=3), other=ORDERS)
def test_layers_and_values_do_not_matter(tmp_path, values, layers, other):
    """Equal segments score 1 in any layers and with any values, with no label set."""
    write(tmp_path / "truth" / "a.seg.nrrd", *in_layers(LABELS, NAMES, layers, values))
    write(tmp_path / "pred" / "a.seg.nrrd", *in_layers(LABELS, NAMES, [0, 0, 0], other))
    run = segiou.score_folder(tmp_path / "truth", tmp_path / "pred")
    assert run.report().mean_iou == 1
    (files,) = run._images.files
    truth, pred = read_indices(files.truth, [files.pred], [reader_of(run)]).arrays
    assert truth.tolist() == pred.tolist()
    assert {*run.class_names} == {"background", *NAMES}
    sizes = dict(zip(run.class_names, run.total().matrix.sum(1).tolist(), strict=True))
    assert [sizes[name] for name in NAMES] == [int((k == LABELS).sum()) for k in (1, 2, 3)]
    inspected = inspect_folder(tmp_path / "truth", pred=tmp_path / "pred")
    assert inspected.values == inspected.pred.values
    assert {name: inspected.values[value] for name, value in inspected.segments.items()} == {
        name: sizes[name] for name in NAMES
    }


@pytest.mark.parametrize("equal", [False, True])
def test_one_value_per_voxel(tmp_path, equal):
    """By hand: 2 and 3 are in the second layer, or each segment is 1 in a layer of its own."""
    layers, values = ([0, 1, 2], [1, 1, 1]) if equal else ([0, 1, 1], [1, 2, 3])
    write(tmp_path / "a.seg.nrrd", *in_layers(LABELS, NAMES, layers, values))
    volume = read_volume(tmp_path / "a.seg.nrrd")
    np.testing.assert_array_equal(volume.values, LABELS)
    assert volume.spacing == (1, 1, 2)
    assert volume.segments == tuple(zip(NAMES, (1, 2, 3), strict=True))


def test_overlapping_segments_are_an_error(tmp_path):
    layers, segments = in_layers(LABELS, NAMES, [0, 1, 1], [1, 2, 3])
    layers[1][tuple(np.argwhere(LABELS == 1)[:7].T)] = 2
    write(tmp_path / "a.seg.nrrd", layers, segments)
    text = "has 7 voxels in several segments, such as liver and tumour; export each segment as"
    with pytest.raises(MaskError, match=text):
        read_volume(tmp_path / "a.seg.nrrd")


@pytest.mark.parametrize(
    ("segments", "text"),
    [
        ([], "has 2 layers without named segments; save each layer"),
        ([("liver", 1, 0), ("liver", 2, 1)], "has two segments named 'liver'; rename one"),
        ([("liver", 1, 0), ("tumour", 2, 2)], "is corrupt: its layers"),
        ([("liver", 1, 0)], r"has \d+ voxels with values that are not those of its segments"),
    ],
)
def test_layers_that_name_nothing_are_refused(tmp_path, segments, text):
    layers, _ = in_layers(np.minimum(LABELS, 2), NAMES[:2], [0, 1], [1, 2])
    write(tmp_path / "a.seg.nrrd", layers, segments)
    with pytest.raises(MaskError, match=text):
        read_volume(tmp_path / "a.seg.nrrd")


@pytest.fixture
def raters(tmp_path):
    """Three raters with equal segments in other layers and with other values; and a plain map."""
    for name, layers, values in (
        ("ann", [0, 1, 1], [1, 2, 3]),
        ("ben", [0, 0, 0], [3, 1, 2]),
        ("cat", [0, 1, 2], [1, 1, 1]),
    ):
        for case in ("a", "b"):
            path = tmp_path / name / f"{case}.seg.nrrd"
            write(path, *in_layers(LABELS, NAMES, layers, values))
    return [str(tmp_path / name) for name in ("ann", "ben", "cat")]


@pytest.mark.parametrize("labels", [None, 4, {0: "background", 7: "liver", 1: "tumour", 3: "x"}])
def test_raters_match_segments_by_name(raters, labels):
    labels = {**labels, 5: NAMES[2]} if isinstance(labels, dict) else labels
    found = segiou.compare_raters(dict(zip("abc", raters, strict=True)), labels=labels)
    assert found.agreement.value == 1
    assert {pair.dice.value for pair in found.pairs if pair.class_name != "x"} == {1}


@pytest.mark.parametrize(
    "command",
    [
        "score {0} {1} --format json",
        "raters {0} {1} {2} --format json",
        "compare {1} {2} --truth {0} --format json",
        "explain {0} {1} --format json",
        "inspect {0} --pred {2} --format json",
    ],
)
def test_commands_need_no_labels(raters, capsys, command):
    assert main(command.format(*raters).split()) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in NAMES) and json.loads(out)


def test_other_masks_need_labels(tmp_path, capsys):
    for name in ("truth", "pred"):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "a.npy", np.eye(4, dtype=np.uint8))
    folders = tmp_path / "truth", tmp_path / "pred"
    with pytest.raises(TypeError, match="labels is required, except for segmentations of 3D Slic"):
        segiou.score_folder(*folders)
    assert main(["raters", *map(str, folders)]) == 2
    assert "--labels is required" in capsys.readouterr().err


def test_inspect_proposes_the_names(raters, tmp_path, capsys):
    assert main(["inspect", raters[0], "--propose", str(tmp_path / "own.toml")]) == 0
    labels = segiou.load_labels(tmp_path / "own.toml")
    assert labels.class_names == ("background", *NAMES)
    assert "needs no --labels" in capsys.readouterr().out


@pytest.mark.skipif(not THREAD.exists(), reason="the threads are not here")
@pytest.mark.parametrize("labels", [None, 3])
def test_thread_of_layers(labels):
    """Truth in two layers, predictions as plain label maps."""
    wanted = json.loads((THREAD / "expected.json").read_text())
    run = segiou.score_folder(THREAD / "labelsTs", THREAD / "preds", labels=labels)
    report = run.report()
    assert report.mean_iou == pytest.approx(wanted["mean_iou"], rel=1e-12)
    assert report.pixel_accuracy == pytest.approx(wanted["pixel_accuracy"], rel=1e-12)
    if labels is None:
        found = {row.name: row.iou for row in report.classes}
        assert found == pytest.approx(wanted["iou"], rel=1e-12)


CORNER = st.tuples(*[st.integers(0, n - 1) for n in LABELS.shape])


def cropped(path, labels, one, other):
    """Write the part of an image between two corners, as 3D Slicer does around its segments."""
    low, high = np.minimum(one, other), np.maximum(one, other) + 1
    part = labels[tuple(slice(*ends) for ends in zip(low, high, strict=True))]
    write(path, *in_layers(part, NAMES, [0, 0, 0], [1, 2, 3]), start=low.tolist())
    whole = np.zeros_like(labels)
    whole[tuple(slice(*ends) for ends in zip(low, high, strict=True))] = part
    return whole


@ANY_FILE
@given(corners=st.lists(CORNER, min_size=4, max_size=4), both=st.booleans())
def test_the_extent_of_segments_does_not_matter(tmp_path, corners, both):
    """Voxels outside are background, on either side."""
    nibabel = pytest.importorskip("nibabel")
    moved = np.roll(LABELS, 1, axis=1)
    for side in ("truth", "pred"):
        for path in (tmp_path / side).glob("*"):
            path.unlink()
        (tmp_path / side).mkdir(exist_ok=True)
    truth = cropped(tmp_path / "truth" / "a.seg.nrrd", LABELS, *corners[:2])
    if both:
        pred = cropped(tmp_path / "pred" / "a.seg.nrrd", moved, *corners[2:])
    else:
        pred = moved
        image = nibabel.Nifti1Image(moved, np.diag([-1, -1, 2, 1]))
        image.header.set_xyzt_units("mm")
        image.to_filename(tmp_path / "pred" / "a.nii.gz")
    labels = ["background", *NAMES]
    expected = segiou.score([truth], [pred], labels=labels).total().matrix
    found = segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=labels)
    counted = found.total().matrix
    # What is outside both extents is not counted.
    assert (expected - counted)[0, 0] >= 0
    counted[0, 0] = expected[0, 0]
    np.testing.assert_array_equal(counted, expected)
    swapped = segiou.score_folder(tmp_path / "pred", tmp_path / "truth", labels=labels)
    assert (swapped.total().matrix.T - found.total().matrix == 0).all()
    assert not inspect_folder(tmp_path / "truth", pred=tmp_path / "pred").disagreements


@pytest.mark.parametrize("shift", [(0.5, 0, 0), (-1, 0, 0)])
def test_other_grids_are_refused(tmp_path, shift):
    """Neither is a prediction cut, nor are half voxels moved."""
    nibabel = pytest.importorskip("nibabel")
    write(tmp_path / "truth" / "a.seg.nrrd", *in_layers(LABELS, NAMES, [0, 0, 0], [1, 2, 3]))
    affine = np.diag([-1.0, -1, 2, 1])
    affine[:3, 3] = shift
    (tmp_path / "pred").mkdir()
    nibabel.Nifti1Image(LABELS, affine).to_filename(tmp_path / "pred" / "a.nii.gz")
    with pytest.raises(segiou.DataError, match="resample it to the truth's grid"):
        segiou.score_folder(tmp_path / "truth", tmp_path / "pred", labels=["background", *NAMES])
