"""``inspect`` lists exactly the values that ``score`` sees, in every format and kind of place."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from mask_files import png, required
from PIL import Image

import segiou
from segiou.scoring import inspect_folder


def image(path, values):
    Image.fromarray(values).save(path)


def palette(path, values):
    picture = Image.fromarray(values)
    picture.putpalette([*range(256)] * 3)
    picture.save(path)


def equal_channels(path, values):
    Image.fromarray(np.stack([values] * 3, axis=-1)).save(path, lossless=True)


def text(path, values):
    np.savetxt(path, values.ravel(), "%d")


def matlab(path, values):
    pytest.importorskip("scipy.io").savemat(path, {"mask": values})


def hdf5(path, values):
    with pytest.importorskip("h5py").File(path, "w") as file:
        file["mask"] = values


def npz(path, values):
    np.savez_compressed(path, values)


def points(path, values):
    objects = np.arange(values.size, dtype=np.uint32).reshape(values.shape) << 16
    (values.astype("<u4") | objects).tofile(path)


def lidarseg(path, values):
    values.tofile(path)


def nifti(path, values):
    nibabel = pytest.importorskip("nibabel")
    nibabel.save(nibabel.Nifti1Image(values[..., None], np.eye(4)), path)


def nifti_pair(path, values):
    nibabel = pytest.importorskip("nibabel")
    nibabel.Nifti1Pair(values[..., None], np.eye(4)).to_filename(path)


def itk(path, values):
    itk = pytest.importorskip("SimpleITK")
    itk.WriteImage(itk.GetImageFromArray(values[None]), str(path), useCompression=len(values) > 3)


def tiff(path, values):
    pytest.importorskip("tifffile").imwrite(path, values)


def color_map(path, values):
    colors = np.zeros((3, 256), np.uint16) + np.arange(256, dtype=np.uint16) * 257
    options = {"photometric": "palette", "colormap": colors}
    pytest.importorskip("tifffile").imwrite(path, values, **options)


FORMATS = {
    **dict.fromkeys(("a.png", "a.bmp", "a.tif", "a.pgm"), image),
    **dict.fromkeys(("b.png", "a.gif"), palette),
    **dict.fromkeys(("c.png", "a.webp"), equal_channels),
    "a.mat": matlab,
    "a.h5": hdf5,
    "a.labels": text,
    "a.npy": np.save,
    "a.npz": npz,
    "a.label": points,
    "a_lidarseg.bin": lidarseg,
    "a.nii.gz": nifti,
    "a.hdr": nifti_pair,
    **dict.fromkeys(("a.nrrd", "a.mha", "a.mhd"), itk),
    "b.tiff": tiff,
    "c.tiff": color_map,
}
MASKS = hnp.arrays(np.uint8, st.tuples(st.integers(2, 5), st.integers(2, 5)))
LAW = settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])


def seen_by_score(truth, pred, **options):
    """Values, or names of classes, with the pixels of the truth that are scored as them."""
    run = segiou.score_folder(truth, pred, **options)
    numbers = run.total().matrix.sum(1).tolist()
    return {name: n for name, n in zip(run.class_names, numbers, strict=True) if n}


def by_value(seen):
    return {int(name): number for name, number in seen.items()}


def counted(*several):
    """Values of arrays with their numbers, by NumPy."""
    joined = np.concatenate([np.asarray(values).ravel() for values in several])
    return dict(zip(*map(list, np.unique(joined, return_counts=True)), strict=True))


@pytest.mark.gate
@pytest.mark.parametrize("name", FORMATS)
@LAW
@given(values=MASKS)
def test_inspect_lists_what_score_sees(tmp_path, name, values):
    for side in ("truth", "pred"):
        (tmp_path / side).mkdir(exist_ok=True)
        FORMATS[name](tmp_path / side / name, values)
    options = {"labels": 256, "read_palette": "indices"}
    seen = by_value(seen_by_score(tmp_path / "truth", tmp_path / "pred", **options))
    assert inspect_folder(tmp_path / "truth").values == seen
    stored = values
    if name == "a.gif":  # Pillow drops unused colours
        with Image.open(tmp_path / "truth" / name) as opened:
            stored = np.asarray(opened)
    assert seen == counted(stored)


def in_zip(place, masks):
    with zipfile.ZipFile(place, "w") as archive:
        for id, values in masks.items():
            archive.writestr(f"masks/{id}.png", png(values))


def in_tar(place, masks, mode="w"):
    with tarfile.open(place, mode) as archive:
        for id, values in masks.items():
            info = tarfile.TarInfo(f"{id}.png")
            info.size = len(content := png(values))
            archive.addfile(info, io.BytesIO(content))


def in_npz(place, masks):
    np.savez(place, **masks)


def in_parquet(place, masks):
    arrow, parquet = required("pyarrow"), required("pyarrow.parquet")
    rows = [{"bytes": png(values), "path": f"{id}.png"} for id, values in masks.items()]
    parquet.write_table(arrow.table({"mask": rows}), place)


def in_zarr(place, masks):
    group = required("zarr").open_group(str(place), mode="w")
    for id, values in masks.items():
        group.create_array(id, data=values)


def in_safetensors(place, masks):
    required("safetensors")
    from safetensors.numpy import save_file

    save_file({id: np.ascontiguousarray(values) for id, values in masks.items()}, place)


def in_json(place, masks):
    """Segments of detectron2's semantic predictions, with uncompressed run lengths."""
    segments = []
    for id, values in masks.items():
        for value in np.unique(values).tolist():
            flat = (values == value).T.ravel().astype(int)
            edges = np.flatnonzero(np.diff(flat, prepend=0)).tolist()
            runs = np.diff([0, *edges, flat.size]).tolist()
            size = {"size": list(values.shape), "counts": runs}
            segments.append({"file_name": f"{id}.jpg", "category_id": value, "segmentation": size})
    place.write_text(json.dumps(segments), encoding="utf-8")


PLACES = {
    "masks.zip": in_zip,
    "masks.tar": in_tar,
    "masks.tar.gz": lambda place, masks: in_tar(place, masks, "w:gz"),
    "masks.npz": in_npz,
    "masks.parquet": in_parquet,
    "masks.zarr": in_zarr,
    "masks.safetensors": in_safetensors,
    "masks.json": in_json,
}


@pytest.mark.few(3)
@pytest.mark.parametrize("name", PLACES)
@LAW
@given(first=MASKS, second=MASKS)
def test_places_of_many_masks(tmp_path, name, first, second):
    for side in ("truth", "pred"):
        shutil.rmtree(tmp_path / side, ignore_errors=True)
        (tmp_path / side).mkdir()
        PLACES[name](tmp_path / side / name, {"a": first, "b": second})
    truth, pred = (tmp_path / side / name for side in ("truth", "pred"))
    seen = by_value(seen_by_score(truth, pred, labels=256))
    inspected = inspect_folder(truth, pred=pred)
    assert inspected.values == inspected.pred.values == seen == counted(first, second)
    assert inspected.files == 2


NAMES = ("hut", "cat", "tree")
POLYGONS = st.lists(
    st.tuples(st.integers(0, 2), st.lists(st.floats(0, 1, width=16), min_size=6, max_size=10)).map(
        lambda one: (one[0], one[1][: len(one[1]) // 2 * 2])
    ),
    min_size=1,
    max_size=4,
)


@LAW
@given(first=POLYGONS, second=POLYGONS)
def test_polygons_of_yolo(tmp_path, first, second):
    root = tmp_path / "set"
    for place in ("images/val", "labels/val"):
        (root / place).mkdir(parents=True, exist_ok=True)
    for id, polygons in (("a", first), ("b", second)):
        Image.new("RGB", (12, 9)).save(root / "images" / "val" / f"{id}.jpg")
        lines = [" ".join(map(str, (index, *corners))) for index, corners in polygons]
        (root / "labels" / "val" / f"{id}.txt").write_text("\n".join(lines))
    (root / "data.yaml").write_text(f"names: [{', '.join(NAMES)}]\n")
    places = root / "labels" / "val", tmp_path / "pred"
    places[1].mkdir(exist_ok=True)
    for id in "ab":
        image(places[1] / f"{id}.png", np.zeros((9, 12), np.uint8))
    seen = seen_by_score(*places, labels=root / "data.yaml")
    names = {**{str(i): name for i, name in enumerate(NAMES)}, "background": "background"}
    found = inspect_folder(places[0]).names
    assert {names[name]: number for name, number in found.items()} == seen


def slicer(path, values, names):
    """A segmentation of 3D Slicer with names of the values 1, 2, 3."""
    lines = ["NRRD0004", "type: unsigned char", "dimension: 3"]
    lines += ["space: left-posterior-superior", f"sizes: {' '.join(map(str, values.shape))}"]
    lines += ["space directions: (1,0,0) (0,1,0) (0,0,1)", "kinds: domain domain domain"]
    lines += ["encoding: gzip", "space origin: (0,0,0)"]
    for i, name in enumerate(names):
        lines += [f"Segment{i}_LabelValue:={i + 1}", f"Segment{i}_Name:={name}"]
    path.parent.mkdir(exist_ok=True)
    data = gzip.compress(values.tobytes(order="F"))
    path.write_bytes("\n".join([*lines, "", ""]).encode() + data)


@pytest.mark.parametrize("labels", [None, 4, {0: "background", 7: "hut", 8: "cat", 9: "tree"}])
@LAW
@given(
    order=st.permutations(NAMES),
    values=hnp.arrays(np.uint8, (2, 3, 4), elements=st.integers(0, 3)),
)
def test_segments_have_the_values_that_are_scored(tmp_path, labels, order, values):
    """Files of one folder number equal segments differently."""
    pytest.importorskip("SimpleITK")
    turned = np.array([0, *(order.index(name) + 1 for name in NAMES)], np.uint8)[values]
    for side, names in (("truth", {"a": NAMES, "b": order}), ("pred", {"a": order, "b": NAMES})):
        for case, ordered in names.items():
            stored = values if ordered is NAMES else turned
            slicer(tmp_path / side / f"{case}.seg.nrrd", stored, ordered)
    places = tmp_path / "truth", tmp_path / "pred"
    run = segiou.score_folder(*places, labels=labels)
    sizes = run.total().matrix.sum(0).tolist()
    values_of = [one.values[0] for one in run.options.labels.classes]
    seen = {value: n for value, n in zip(values_of, sizes, strict=True) if n}
    declared = None if labels is None else run.options.labels
    inspected = inspect_folder(places[0], pred=places[1], labels=declared)
    assert inspected.values == inspected.pred.values == seen
    assert run.report().pixel_accuracy == 1
    numbers = dict(zip(values_of, sizes, strict=True))
    wanted = dict(zip(NAMES, (7, 8, 9) if isinstance(labels, dict) else (1, 2, 3), strict=True))
    assert [numbers[wanted[name]] for name in NAMES] == [
        2 * int((values == i).sum()) for i in (1, 2, 3)
    ]


def test_one_array_of_a_file_is_inspected(tmp_path):
    np.savez(tmp_path / "case.npz", gts=np.eye(3, dtype=np.uint8), segs=np.zeros((3, 3), np.uint8))
    inspected = inspect_folder(tmp_path / "case.npz" / "gts")
    assert (inspected.files, inspected.values) == (1, {0: 6, 1: 3})
