"""Every command of docs/formats.md, run on files as their tools write them."""

from __future__ import annotations

import base64
import io
import itertools
import json
import re
import shlex
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import tifffile
from mask_files import png, required, write_masks

import segiou
from segiou.cli.main import main

PAGE = (Path(__file__).parents[1] / "docs" / "formats.md").read_text(encoding="utf-8")
#: Of packages that are to be installed: tests/test_plugins.py.
ELSEWHERE = "Custom formats, label sets and protocols"
IDS = ("000000000139", "000000000285")
RANDOM = np.random.default_rng(0)
#: The right half of each image is of class 2, or in one of ten pixels of class 1.
TRUTH = {id: np.repeat([[1, 2]], 10, axis=1).repeat(8, axis=0) for id in IDS}
PRED = {id: np.where(RANDOM.random((8, 20)) < 0.1, 1, mask) for id, mask in TRUTH.items()}
SIZE = {"height": 8, "width": 20}
NAMES = {1: "car", 2: "tree"}
#: The half of an image, as the corners of its pixels.
HALVES = {1: (0, 9), 2: (10, 19)}


def write_json(path: str, content: object) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(content), encoding="utf-8")


def segments(masks, key, value_of=int, **more):
    """A segment for each class of each mask, with pycocotools' run lengths."""
    tool = required("pycocotools.mask", "SEGIOU_REQUIRE_PEERS")
    for id, mask in masks.items():
        for value in NAMES:
            packed = tool.encode(np.asfortranarray(mask == value, dtype=np.uint8))
            packed["counts"] = packed["counts"].decode()
            yield {key: value_of(id), "category_id": value, "segmentation": packed, **more}


IMAGES = [{"id": int(id), "file_name": f"{id}.jpg", **SIZE} for id in IDS]
CATEGORIES = [{"id": value, "name": name} for value, name in NAMES.items()]


def panoptic(path, masks):
    """A PNG of ids, which are ten times the category, and a JSON file beside them."""
    annotations = []
    for id, mask in masks.items():
        ids = np.zeros((*mask.shape, 3), np.uint8)
        ids[..., 0] = 10 * mask
        write_masks(Path(path), {id: ids})
        info = [{"id": 10 * value, "category_id": value} for value in NAMES]
        annotations.append({"image_id": int(id), "file_name": f"{id}.png", "segments_info": info})
    content = {"images": IMAGES, "annotations": annotations}
    things = [{**category, "isthing": 1} for category in CATEGORIES]
    write_json(f"{path}.json", {**content, "categories": things})


def coco():
    objects = list(segments(TRUTH, "image_id", iscrowd=0))
    content = {"images": IMAGES, "annotations": objects, "categories": CATEGORIES}
    write_json("annotations/instances_val2017.json", content)
    write_json("results.json", list(segments(PRED, "image_id", score=0.5)))
    write_masks(Path("stuff_pixelmaps"), TRUTH)
    panoptic("annotations/panoptic_val2017", TRUTH)
    panoptic("predictions/panoptic", PRED)
    Path("coco.toml").write_text(LABELS.to_toml())


def detectron2():
    found = segments(PRED, "file_name", lambda id: f"/data/val/{id}.jpg")
    write_json("output/inference/sem_seg_predictions.json", list(found))
    write_masks(Path("truth"), TRUTH)
    Path("coco.toml").write_text(LABELS.to_toml())


def corners(value):
    (left, right), bottom = HALVES[value], SIZE["height"] - 1
    return [[left, 0], [right, 0], [right, bottom], [left, bottom]]


def brush(mask, value):
    """A brush of Label Studio, in the plainest form of its run lengths: without runs."""
    values = np.repeat(np.where(mask == value, 255, 0).ravel(), 4)
    bits = f"{values.size:032b}" + f"{7:05b}" + "".join(f"{n:04b}" for n in (2, 3, 7, 15))
    bits += "0" + "11" + f"{values.size - 1:016b}" + "".join(f"{v:08b}" for v in values)
    rle = [int(bits[i : i + 8].ljust(8, "0"), 2) for i in range(0, len(bits), 8)]
    size = {"original_height": SIZE["height"], "original_width": SIZE["width"]}
    return {"type": "brushlabels", "value": {"rle": rle, "brushlabels": [NAMES[value]]}, **size}


def annotation_tools():
    via, tasks, extent = {}, [], {"width": 10, "height": 8}
    for id, mask in TRUTH.items():
        kept = {"imageHeight": SIZE["height"], "imageWidth": SIZE["width"]}
        shapes = [{"label": NAMES[v], "points": corners(v), "shape_type": "polygon"} for v in NAMES]
        write_json(f"labelme/{id}.json", {**kept, "shapes": shapes})
        tasks.append(
            {
                "data": {"image": f"/data/upload/1/0a1b2c3d-{id}.jpg"},
                "annotations": [{"result": [brush(mask, value) for value in NAMES]}],
            }
        )
        packed = base64.b64encode(zlib.compress(png(mask == 1))).decode()
        figures = [
            {"geometryType": "bitmap", "bitmap": {"data": packed, "origin": [0, 0]}},
            {"geometryType": "polygon", "points": {"exterior": corners(2), "interior": []}},
        ]
        objects = [{"classTitle": NAMES[v], **one} for v, one in enumerate(figures, 1)]
        write_json(f"project/ds/ann/{id}.jpg.json", {"size": SIZE, "objects": objects})
        regions = [
            {
                "shape_attributes": {"name": "rect", "x": 10 * v - 10, "y": 0, **extent},
                "region_attributes": {"class": NAMES[v]},
            }
            for v in NAMES
        ]
        via[f"{id}.png9"] = {"filename": f"{id}.png", "size": 9, "regions": regions}
    write_json("label-studio.json", tasks)
    write_json("project/meta.json", {"classes": [{"title": name} for name in NAMES.values()]})
    write_json("images/via_project.json", {"_via_img_metadata": via, "_via_settings": {}})
    write_masks(Path("images"), TRUTH)
    palette = np.array([[0, 0, 0], [10, 20, 30], [250, 50, 83]], np.uint8)
    for folder in ("SegmentationClass", "SegmentationObject"):
        write_masks(Path("cvat") / folder, {id: palette[mask] for id, mask in TRUTH.items()})
    lines = "background:0,0,0::", "car:10,20,30::", "tree:250,50,83::"
    Path("cvat/labelmap.txt").write_text("\n".join(("# label:color_rgb:parts:actions", *lines)))
    write_masks(Path("predictions"), PRED)
    Path("classes.toml").write_text(LABELS.to_toml())
    halves = [
        f'<mask label="{NAMES[v]}" rle="0,80" left="{10 * v - 10}" top="0" width="10" height="8"/>'
        for v in NAMES
    ]
    head = 'width="20" height="8"'
    entries = [f'<image name="{id}.png" {head}>{"".join(halves)}</image>' for id in IDS]
    Path("annotations.xml").write_text(f"<annotations>{''.join(entries)}</annotations>")


def run_lengths():
    write_masks(Path("images"), TRUTH)
    Path("classes.toml").write_text(LABELS.to_toml())
    for name, masks in (("train", TRUTH), ("submission", PRED)):
        lines = ["ImageId,ClassId,EncodedPixels"]
        for (id, mask), value in itertools.product(masks.items(), NAMES):
            inside = np.concatenate([[0], (mask == value).T.ravel(), [0]])
            runs = np.flatnonzero(inside[1:] != inside[:-1]) + 1
            runs[1::2] -= runs[::2]
            lines.append(f"{id}.png,{value},{' '.join(map(str, runs))}")
        Path(f"{name}.csv").write_text("\n".join(lines))


def tables():
    arrow = required("pyarrow", "SEGIOU_REQUIRE_EXTRAS")
    parquet = required("pyarrow.parquet", "SEGIOU_REQUIRE_EXTRAS")
    write_masks(Path("truth"), TRUTH)
    write_masks(Path("predictions"), PRED)
    np.savez_compressed("masks.npz", **PRED)

    def column(masks):
        return [{"bytes": png(mask), "path": f"{id}.png"} for id, mask in masks.items()]

    both = {"annotation": column(TRUTH), "prediction": column(PRED)}
    parquet.write_table(arrow.table(both), "val.parquet")
    for number, row in enumerate(column(TRUTH)):
        parquet.write_table(arrow.table({"annotation": [row]}), f"truth-{number}.parquet")
    for number in range(10):
        with tarfile.open(f"val-{number:03}.tar", "w") as shard:
            for ending, masks in (("seg", TRUTH), ("pred", PRED)):
                data = png(masks[IDS[0]])
                member = tarfile.TarInfo(f"{number:06}.{ending}.png")
                member.size = len(data)
                shard.addfile(member, io.BytesIO(data))


def soft_edges():
    write_masks(Path("truth"), {id: np.where(mask == 2, 250, 5) for id, mask in TRUTH.items()})
    write_masks(Path("predictions"), {id: mask - 1 for id, mask in PRED.items()})


def regions():
    """The last row, where all predictions are wrong, is outside."""
    row = ((0, 1), (0, 0))
    write_masks(Path("truth"), {id: np.pad(mask - 1, row) for id, mask in TRUTH.items()})
    one = {"constant_values": 1}
    write_masks(Path("predictions"), {id: np.pad(m - 1, row, **one) for id, m in PRED.items()})
    write_masks(Path("fov"), {id: np.pad(np.ones((8, 20)), row) for id in IDS})


def yolo():
    """Each pixel is a polygon whose corners are within it."""
    places = ("labels/val", "images/val", TRUTH), ("predict/labels", "predict", PRED)
    for side, images, masks in places:
        for id, mask in masks.items():
            write_masks(Path(images), {id: mask})
            lines = []
            for (y, x), value in np.ndenumerate(mask):
                near, far = [((x + d) / 20, (y + d) / 8) for d in (0.2, 0.7)]
                corners = (*near, far[0], near[1], *far, near[0], far[1])
                lines.append(" ".join(map(str, (value, *corners))))
            path = Path(side) / f"{id}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines))
    Path("data.yaml").write_text("names: [nothing, car, tree]\n")


def patterns():
    for number, id in enumerate(IDS):
        write_masks(Path(f"Val/{number}/masks_png"), {id: TRUTH[id]})
        write_masks(Path(f"Val/{number}/images_png"), {id: PRED[id]})
    write_masks(Path("data"), {f"{id}_mask": mask for id, mask in TRUTH.items()})
    write_masks(Path("predictions"), PRED)


def which_images():
    write_masks(Path("VOC2012/SegmentationClass"), TRUTH)
    write_masks(Path("VOC2012/SegmentationObject"), TRUTH)
    write_masks(Path("truth"), TRUTH)
    write_masks(Path("predictions"), PRED)
    listed = Path("VOC2012/ImageSets/Segmentation/val.txt")
    listed.parent.mkdir(parents=True)
    listed.write_text(f"{IDS[0]}\n")
    Path("split.csv").write_text(f"image,split\n{IDS[0]},val\n{IDS[1]},val\n")


def geotiff():
    keys = (1, 1, 0, 1, 3072, 0, 1, 32632)
    tags = [
        (33550, "d", 3, (10.0, 10.0, 0.0), True),
        (33922, "d", 6, (0.0, 0.0, 0.0, 5e5, 4e6, 0.0), True),
        (34735, "H", len(keys), keys, True),
        (42113, "s", 0, "255", True),
    ]
    for side, masks in (("truth", TRUTH), ("predictions", PRED)):
        Path(side).mkdir()
        for id, mask in masks.items():
            tifffile.imwrite(f"{side}/{id}.tif", mask.astype(np.uint8), extratags=tags)
    Path("landcover.toml").write_text(LABELS.to_toml())


def stacks():
    for side, masks in (("truth", TRUTH), ("predictions", PRED)):
        np.save(f"{side}.npy", np.stack([masks[id] for id in IDS]).astype(np.uint8))


def array_stores():
    zarr, tensors = required("zarr"), required("safetensors.numpy")
    for side, masks in (("truth", TRUTH), ("predictions", PRED)):
        small = {id: np.ascontiguousarray(mask, np.uint8) for id, mask in masks.items()}
        group = zarr.open_group(f"{side}.zarr", mode="w")
        for id, mask in small.items():
            group.create_array(id, shape=mask.shape, dtype=mask.dtype)[...] = mask
        tensors.save_file(small, f"{side}.safetensors")
    Path("classes.toml").write_text(LABELS.to_toml())


def matlab():
    for side, masks in (("truth", TRUTH), ("predictions", PRED)):
        Path(side).mkdir()
        for id, mask in masks.items():
            name, key = ("GTcls", "Segmentation") if side == "truth" else ("x", "pred")
            content = {key: mask.astype(np.uint8)}
            scipy.io.savemat(f"{side}/{id}.mat", {name: content} if name == "GTcls" else content)


def points():
    for side, folder in (("dataset", "labels"), ("predictions", "predictions")):
        path = Path(side) / "sequences" / "08" / folder / "000000.label"
        path.parent.mkdir(parents=True)
        np.array([10, 252, 40, 0, 99], "<u4").tofile(path)
    for folder, labels in (("v1.0-trainval", [0, 9, 17, 24]), ("val", [4, 1, 4, 11])):
        place = Path("lidarseg" if folder.startswith("v1") else "results/lidarseg") / folder
        place.mkdir(parents=True)
        np.array(labels, np.uint8).tofile(place / f"{'0a' * 16}_lidarseg.bin")


LABELS = segiou.LabelSet.from_names(["background", *NAMES.values()])
FILES = {
    "COCO: annotations and results": coco,
    "detectron2": detectron2,
    "Importing label sets": coco,
    "Annotation tools": annotation_tools,
    "Run lengths of Kaggle": run_lengths,
    "YOLO polygons": yolo,
    "Tables, shards and arrays by name": tables,
    "Soft edges": soft_edges,
    "Regions of interest": regions,
    "Patterns": patterns,
    "Pairing and selecting files": which_images,
    "GeoTIFF": geotiff,
    "Arrays of three axes": stacks,
    "Zarr and safetensors": array_stores,
    "MATLAB and HDF5": matlab,
    "Points": points,
}
COMMANDS = [
    (section.partition("\n")[0], command)
    for section in PAGE.split("\n## ")[1:]
    for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    for command in block.splitlines()
    if command.startswith("segiou ") and not section.startswith(ELSEWHERE)
]


def test_every_section_has_its_commands():
    assert {section for section, _ in COMMANDS} == set(FILES)
    assert len(COMMANDS) >= 20


@pytest.mark.filterwarnings("ignore:.*is its value for no data")
@pytest.mark.parametrize(("section", "command"), COMMANDS)
@pytest.mark.gate
def test_commands_of_the_page(tmp_path, monkeypatch, capsys, section, command):
    monkeypatch.chdir(tmp_path)
    FILES[section]()
    arguments = shlex.split(command.partition(" > ")[0])[1:]
    if arguments[0] == "labelsets":
        assert main(arguments) == 0
        assert '{ name = "tree", values = [2]' in capsys.readouterr().out
        return
    assert main([*arguments, "--format", "json", "--quiet"]) == 0
    images = IDS[:1] if ".tar" in command or "val.txt" in command else IDS
    expected = segiou.score([TRUTH[id] for id in images], [PRED[id] for id in images], labels=3)
    # Of points, all are predicted correctly; absent classes count 0 only in SemanticKITTI.
    special = {"semantickitti": 2 / 19, "nuscenes": 1.0}
    wanted = special.get(arguments[-1], expected.report().mean_iou)
    assert json.loads(capsys.readouterr().out)["mean_iou"] == pytest.approx(wanted, abs=1e-15)
